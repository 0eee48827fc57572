#include "detect/parts/collective_waits.h"

#include "analysis/ranks/rank_place.h"
#include "base/sort.h"

struct collective_waits_work {
	const struct profile *p;
	uint32_t *row;            /* gpu_op rows: those of the first GPU in order of start, then those of the next */
	const struct collective_gpu **gpu;
	uint64_t *last;           /* by GPU: how often it came last */
	uint32_t gpus;
};

/* False where GPUs have unequal numbers of collectives. */
static bool collective_waits_collect(struct collective_waits_work *x, const struct collectives *c, uint64_t *n)
{
	struct sort_item *order = NEW_ARRAY_RAW(c->n, struct sort_item);
	for (uint32_t i = 0; i < c->n; i++)
		order[i] = (struct sort_item){sort_key_i64(x->p->gpu_op.start_ns[c->v[i].gpu_op]), i, 0};
	sort_items(order, c->n);
	bool equal = true;
	for (uint32_t g = 0; g < c->n_gpus; g++) {
		if (!c->gpu[g].n)
			continue;
		*n = x->gpus ? *n : c->gpu[g].n;
		equal &= c->gpu[g].n == *n;
		x->gpu[x->gpus] = &c->gpu[g];
		uint64_t k = 0;
		for (uint32_t i = 0; i < c->n && equal; i++)
			if (c->v[order[i].row].gpu == g)
				x->row[x->gpus * *n + k++] = c->v[order[i].row].gpu_op;
		x->gpus++;
	}
	mem_free(order);
	return equal;
}

/* Adds number i of each GPU; false where these kernels are not one collective. A GPU that sends to the others may be done before they begin. */
static bool collective_waits_add(struct collective_waits_work *x, uint64_t i, uint64_t n, struct collective_waits *out, int64_t *sum)
{
	const struct gpu_ops *g = &x->p->gpu_op;
	int64_t last_start = INT64_MIN, first_end = INT64_MAX, shortest = INT64_MAX;
	uint32_t last = 0;
	for (uint32_t k = 0; k < x->gpus; k++) {
		uint32_t row = x->row[k * n + i];
		int64_t end = gpu_end(x->p, row);
		if (g->name[row] != g->name[x->row[i]])
			return false;
		last = g->start_ns[row] > last_start ? k : last;
		last_start = g->start_ns[row] > last_start ? g->start_ns[row] : last_start;
		first_end = end < first_end ? end : first_end;
		shortest = g->dur_ns[row] < shortest ? g->dur_ns[row] : shortest;
		*sum += g->dur_ns[row];
	}
	x->last[last]++;
	out->transfer_ns += shortest;
	struct str name = profile_str(x->p, g->name[x->row[i]]);
	return last_start < first_end || str_has(name, STR("Broadcast")) || str_has(name, STR("_Reduce_"));
}

/* Whether the recording may hold all GPUs that take part. */
static bool has_all(const struct profile *p, const struct collectives *c, uint32_t gpus)
{
	struct rank_place place = rank_place_of(p);
	return gpus > 1 && c->ranks <= gpus && (!place.is_rank || (place.world && place.world <= gpus));
}

struct collective_waits collective_waits_find(const struct profile *p, const struct collectives *c)
{
	struct collective_waits out = {0};
	struct collective_waits_work x = {.p = p, .row = NEW_ARRAY(c->n, uint32_t), .gpu = NEW_ARRAY(c->n_gpus, const struct collective_gpu *), .last = NEW_ARRAY(c->n_gpus, uint64_t)};
	int64_t sum = 0;
	out.known = collective_waits_collect(&x, c, &out.n) && has_all(p, c, x.gpus);
	for (uint64_t i = 0; i < out.n && out.known; i++)
		out.known = collective_waits_add(&x, i, out.n, &out, &sum);
	for (uint32_t k = 0; k < x.gpus && out.known; k++)
		if (x.last[k] > out.last_n) {
			out.last_n = x.last[k];
			out.last_device = x.gpu[k]->device;
		}
	out.wait_ns = out.known ? sum / x.gpus - out.transfer_ns : 0;
	mem_free(x.row);
	mem_free(x.gpu);
	mem_free(x.last);
	return out;
}
