#include "analysis/time/copy_rates.h"

#include "analysis/analysis.h"
#include "base/intern.h"
#include "base/mem.h"
#include "base/sort.h"

/* How inputs spell the direction of a copy: the first of these of which the name of a copy holds a text. */
static const struct {
	const char *name, *text[3];
} copy_directions[] = {
	{"HtoD", {"HtoD", "Host-to-Device", "HostToDevice"}},   {"DtoH", {"DtoH", "Device-to-Host", "DeviceToHost"}},
	{"DtoD", {"DtoD", "Device-to-Device", "DeviceToDevice"}}, {"HtoH", {"HtoH", "Host-to-Host", "HostToHost"}},
	{"PtoP", {"PtoP", "Peer-to-Peer", "PeerToPeer"}},
	{"HtoA", {"HtoA"}}, {"AtoH", {"AtoH"}}, {"DtoA", {"DtoA"}}, {"AtoD", {"AtoD"}}, {"AtoA", {"AtoA"}},
};

static const char copy_no_direction[] = "";

const char *copy_direction(struct str name)
{
	for (size_t i = 0; i < sizeof copy_directions / sizeof *copy_directions; i++)
		for (size_t k = 0; k < 3 && copy_directions[i].text[k]; k++)
			if (str_has(name, str_from(copy_directions[i].text[k])))
				return copy_directions[i].name;
	return copy_no_direction;
}

struct copy_rates_key {
	int32_t device;
	uint32_t kind;
	const char *direction;
};

struct copy_rates_now {
	double gbs;
	uint32_t running;
};

/* Bit 0 of an item's `tie` is set at a begin; the rest is its group, below n_groups. */
static void sum_up(const struct profile *p, const struct sort_item *v, uint32_t n, uint32_t n_groups, struct copy_rates *out)
{
	struct copy_rates_now *now = NEW_ARRAY(n_groups, struct copy_rates_now);
	for (uint32_t i = 0; i < n; i++) {
		struct copy_rates_now *x = &now[v[i].tie >> 1];
		uint32_t g = v[i].row;
		bool begins = v[i].tie & 1;
		double gbs = (double)p->launch.bytes[p->gpu_op.launch[g]] / (double)p->gpu_op.dur_ns[g];
		x->running = begins ? x->running + 1 : x->running - 1;
		x->gbs = x->running ? x->gbs + (begins ? gbs : -gbs) : 0; /* sums of doubles leave a rest */
		out->v[i] = (struct copy_rate){begins ? p->gpu_op.start_ns[g] : gpu_end(p, g), g, x->running, x->gbs};
	}
	mem_free(now);
}

/* Ends stand at the front of v, begins at its back until all are there. */
void copy_rates_find(const struct profile *p, const uint8_t *wanted, struct copy_rates *out)
{
	const struct gpu_ops *g = &p->gpu_op;
	size_t room = (size_t)g->rows.n * 2;
	struct sort_item *v = NEW_ARRAY_RAW(room, struct sort_item);
	struct intern keys;
	uint32_t n = 0;
	*out = (struct copy_rates){0};
	intern_init(&keys);
	for (uint32_t i = 0; i < g->rows.n; i++) {
		if (g->kind[i] == GPU_KERNEL || (wanted && !wanted[i]))
			continue;
		if (p->launch.bytes[g->launch[i]] < 0 || g->dur_ns[i] <= 0) {
			out->left_out++;
			continue;
		}
		struct copy_rates_key k = {p->launch.device[g->launch[i]], g->kind[i], copy_direction(profile_str(p, g->name[i]))};
		uint32_t at = intern_put_key(&keys, &k, sizeof k) << 1;
		v[n++] = (struct sort_item){sort_key_i64(gpu_end(p, i)), i, at};
		v[room - n] = (struct sort_item){sort_key_i64(g->start_ns[i]), i, at | 1};
	}
	memmove(v + n, v + room - n, n * sizeof *v); /* begins behind ends: the sort keeps that order of equal times */
	sort_items(v, 2 * n);
	out->n = 2 * n;
	out->v = NEW_ARRAY_RAW(out->n, struct copy_rate);
	sum_up(p, v, out->n, keys.n, out);
	intern_release(&keys);
	mem_free(v);
}

void copy_rates_release(struct copy_rates *r) { mem_free(r->v); }
