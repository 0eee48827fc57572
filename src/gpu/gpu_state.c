#include "gpu/gpu_state.h"

#include "base/hash.h"
#include "gpu/gpus.h"

#include <stdio.h>

static void describe(struct profile *p, struct idmap *known, int32_t device, const struct gpu *g)
{
	struct devices *d = &p->device;
	uint32_t i = rows_push(d, &store_tables[TABLE_device]);
	if (i == ROW_NONE)
		return;
	idmap_put(known, device, i);
	d->id[i] = device;
	d->cc_major[i] = g->cc_major;
	d->cc_minor[i] = g->cc_minor;
	d->memory_bytes[i] = d->sm_count[i] = d->max_threads_per_sm[i] = d->warp_size[i] = 0;
}

/* The product, or the only one that has this in its name; NULL, and *e names those that have. */
static const struct gpu *find(struct str product, struct err *e)
{
	const struct gpu *g = gpu_find(product), *only = NULL;
	char names[400] = "";
	unsigned n = 0;
	for (unsigned i = 0; !g && gpu_at(i); i++) {
		if (!str_has(str_from(gpu_at(i)->name), product))
			continue;
		size_t used = strlen(names);
		snprintf(names + used, sizeof names - used, "%s%s", n++ ? ", " : "", gpu_at(i)->name);
		only = gpu_at(i);
	}
	if (g || n == 1)
		return g ? g : only;
	if (n)
		err_set(e, ERR_USAGE, "--gpu=" STR_FMT ": several GPUs have this in their name: %s", STR_ARG(product), names);
	else
		err_set(e, ERR_USAGE, "--gpu=" STR_FMT ": not in the list of GPUs (src/gpu/gpus.def); a product name like 'A100-SXM4-80GB' was expected",
		        STR_ARG(product));
	return NULL;
}

int gpu_state(struct profile *p, struct str product, struct err *e)
{
	const struct gpu *g = find(product, e);
	if (!g)
		return -1;
	struct idmap known;
	idmap_init(&known, INT32_MIN, INT32_MAX, (uint64_t)p->device.rows.n + p->launch.rows.n + 1);
	for (uint32_t i = 0; i < p->device.rows.n; i++)
		idmap_put(&known, p->device.id[i], i);
	for (uint32_t i = 0; i < p->launch.rows.n; i++)
		if (!p->device_joined && p->launch.device[i] != INT32_MIN && idmap_get(&known, p->launch.device[i]) == IDMAP_NONE)
			describe(p, &known, p->launch.device[i], g);
	if (!p->device.rows.n)
		describe(p, &known, 0, g);
	idmap_release(&known);
	for (uint32_t i = 0; i < p->device.rows.n; i++)
		p->device.name[i] = intern_str(&p->strings, str_from(g->name));
	diag_add(&p->diags, "gpu-stated", DIAG_NOTE, -1, "the GPUs are taken for %s, as --gpu says", g->name);
	return 0;
}
