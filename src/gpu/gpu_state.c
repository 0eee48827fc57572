#include "gpu/gpu_state.h"

#include "base/hash.h"
#include "gpu/gpus.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

static void gpu_state_describe(struct profile *p, struct idmap *known, int32_t device, const struct gpu *g)
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

/* What the input says of a GPU of another compute capability does not hold of this one. */
static void take_for(struct profile *p, uint32_t i, const struct gpu *g)
{
	struct devices *d = &p->device;
	bool same = d->cc_major[i] == g->cc_major && d->cc_minor[i] == g->cc_minor;
	if (d->cc_major[i] >= 0 && !same)
		d->memory_bytes[i] = d->sm_count[i] = d->max_threads_per_sm[i] = d->warp_size[i] = 0;
	d->cc_major[i] = g->cc_major;
	d->cc_minor[i] = g->cc_minor;
}

static bool gpu_state_is_word(char c)
{
	return isalnum((unsigned char)c);
}

static bool gpu_state_has_word(const char *name, const char *word, size_t n)
{
	for (const char *at = name; *at; at++)
		if (strncasecmp(at, word, n) == 0 && (at == name || !gpu_state_is_word(at[-1])) && !gpu_state_is_word(at[n]))
			return true;
	return false;
}

/* How many words of `product` this name has; one with a digit, as a model's number, counts two. */
static unsigned words_shared(struct str product, const char *name)
{
	unsigned shared = 0;
	for (size_t i = 0, n; i < product.n; i += n ? n : 1) {
		bool digit = false;
		for (n = 0; i + n < product.n && gpu_state_is_word(product.p[i + n]); n++)
			digit |= isdigit((unsigned char)product.p[i + n]) != 0;
		if (n && gpu_state_has_word(name, product.p + i, n))
			shared += digit ? 2 : 1;
	}
	return shared;
}

/* Lists the GPUs that have the whole product in their name, else those that share most words with it. */
struct gpu_state_near {
	char names[400];
	const struct gpu *only;
	unsigned n, shown;     /* of n, those whose whole name stands in `names` */
};

static void near_add(struct gpu_state_near *x, const struct gpu *g)
{
	size_t used = strlen(x->names), more = strlen(g->name) + 2;
	x->only = g;
	if (x->shown == x->n++ && used + more < sizeof x->names) {
		snprintf(x->names + used, sizeof x->names - used, "%s%s", x->shown ? ", " : "", g->name);
		x->shown++;
	}
}

/* " and 12 more" behind a list that is not whole. */
static const char *near_more(const struct gpu_state_near *x, char text[32])
{
	snprintf(text, 32, " and %u more", x->n - x->shown);
	return x->n > x->shown ? text : "";
}

static void near_by_words(struct gpu_state_near *x, struct str product)
{
	unsigned most = 1;
	for (unsigned i = 0; gpu_at(i); i++) {
		unsigned shared = words_shared(product, gpu_at(i)->name);
		if (shared > most)
			*x = (struct gpu_state_near){.n = 0};
		if (shared >= most)
			near_add(x, gpu_at(i));
		most = shared > most ? shared : most;
	}
}

const struct gpu *gpu_of_device(const struct profile *p, uint32_t row)
{
	const struct devices *d = &p->device;
	struct str name = profile_str(p, d->name[row]);
	return name.n ? gpu_find(name) : gpu_find_by_size(d->cc_major[row], d->cc_minor[row], d->sm_count[row], d->memory_bytes[row]);
}

/* The product, or the only one that has this in its name; NULL, and *e names those that are near. */
static const struct gpu *gpu_state_find(struct str product, struct err *e)
{
	const struct gpu *g = gpu_find(product);
	struct gpu_state_near x = {.n = 0};
	char more[32];
	for (unsigned i = 0; !g && gpu_at(i); i++)
		if (str_has(str_from(gpu_at(i)->name), product))
			near_add(&x, gpu_at(i));
	if (g || x.n == 1)
		return g ? g : x.only;
	if (x.n) {
		err_set(e, ERR_USAGE, "--gpu=" STR_FMT ": several GPUs have this in their name: %s%s", STR_ARG(product), x.names, near_more(&x, more));
		return NULL;
	}
	near_by_words(&x, product);
	if (x.n)
		err_set(e, ERR_USAGE, "--gpu=" STR_FMT ": not in the list of GPUs, in which these are near: %s%s", STR_ARG(product), x.names, near_more(&x, more));
	else
		err_set(e, ERR_USAGE, "--gpu=" STR_FMT ": not in the list of GPUs (src/gpu/gpus.def); a product name like 'A100-SXM4-80GB' was expected",
		        STR_ARG(product));
	return NULL;
}

int gpu_state(struct profile *p, struct str product, struct err *e)
{
	const struct gpu *g = gpu_state_find(product, e);
	if (!g)
		return -1;
	struct idmap known;
	idmap_init(&known, INT32_MIN, INT32_MAX, (uint64_t)p->device.rows.n + p->launch.rows.n + 1);
	for (uint32_t i = 0; i < p->device.rows.n; i++)
		idmap_put(&known, p->device.id[i], i);
	for (uint32_t i = 0; i < p->launch.rows.n; i++)
		if (!p->device_joined && p->launch.device[i] != INT32_MIN && idmap_get(&known, p->launch.device[i]) == IDMAP_NONE)
			gpu_state_describe(p, &known, p->launch.device[i], g);
	if (!p->device.rows.n)
		gpu_state_describe(p, &known, 0, g);
	idmap_release(&known);
	for (uint32_t i = 0; i < p->device.rows.n; i++) {
		p->device.name[i] = intern_str(&p->strings, str_from(g->name));
		take_for(p, i, g);
	}
	diag_add(&p->diags, "gpu-stated", DIAG_NOTE, -1, "the GPUs are taken for %s, as --gpu says", g->name);
	return 0;
}
