#include "analysis/tree/projection.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

#include <sys/param.h>

enum { BLOCK = 32 };

struct projection_extent {
	int64_t start, end, kernel_start, kernel_end;
};
static const struct projection_extent nothing = {INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN};

/* Device work by who launched it: sorted by (group, begin of the call). */
struct projection_list {
	uint32_t n, n_blocks;
	uint32_t near;         /* where the range that was asked for last begins */
	uint32_t *first;       /* of each group, and one more */
	uint32_t *gpu;         /* rows of gpu_op */
	int64_t *called_ns;    /* when the call began */
	int64_t *device_ns, *kernel_ns; /* sums over all before; n + 1 */
	uint32_t *kernels;
	struct projection_extent *tree;   /* segment tree over blocks: leaf i is tree[n_blocks + i] */
};

struct projection {
	const struct profile *p;
	uint32_t *process;     /* track -> the first track of its process */
	struct projection_list by_track, by_process; /* by_process: empty without SPAN_RANGE */
};

static void widen(struct projection_extent *x, const struct projection_extent *y)
{
	x->start = MIN(x->start, y->start);
	x->end = MAX(x->end, y->end);
	x->kernel_start = MIN(x->kernel_start, y->kernel_start);
	x->kernel_end = MAX(x->kernel_end, y->kernel_end);
}

static void widen_by(struct projection_extent *x, const struct profile *p, uint32_t gpu)
{
	struct projection_extent y = nothing;
	y.start = p->gpu_op.start_ns[gpu];
	y.end = gpu_end(p, gpu);
	if (p->gpu_op.kind[gpu] == GPU_KERNEL && !gpu_is_graph(p, gpu))
		y.kernel_start = y.start, y.kernel_end = y.end;
	widen(x, &y);
}

static void list_sums(struct projection_list *l, const struct profile *p)
{
	l->device_ns = NEW_ARRAY(l->n + 1, int64_t);
	l->kernel_ns = NEW_ARRAY(l->n + 1, int64_t);
	l->kernels = NEW_ARRAY(l->n + 1, uint32_t);
	l->n_blocks = (l->n + BLOCK - 1) / BLOCK;
	l->tree = NEW_ARRAY_RAW(2 * (size_t)l->n_blocks, struct projection_extent);
	for (uint32_t b = 0; b < 2 * l->n_blocks; b++)
		l->tree[b] = nothing;
	for (uint32_t i = 0; i < l->n; i++) {
		uint32_t g = l->gpu[i];
		bool kernel = p->gpu_op.kind[g] == GPU_KERNEL && !gpu_is_graph(p, g);
		l->device_ns[i + 1] = l->device_ns[i] + p->gpu_op.dur_ns[g];
		l->kernel_ns[i + 1] = l->kernel_ns[i] + (kernel ? p->gpu_op.dur_ns[g] : 0);
		l->kernels[i + 1] = l->kernels[i] + kernel;
		widen_by(&l->tree[l->n_blocks + i / BLOCK], p, g);
	}
	for (uint32_t b = l->n_blocks; b-- > 1;) {
		l->tree[b] = l->tree[2 * b];
		widen(&l->tree[b], &l->tree[2 * b + 1]);
	}
}

/* `group_of`: of each track, below `n_groups`; NULL = the track itself. */
static void list_init(struct projection_list *l, const struct profile *p, const uint32_t *group_of, uint32_t n_groups)
{
	struct sort_item *v = NEW_ARRAY_RAW(p->gpu_op.rows.n, struct sort_item);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t call = p->gpu_op.call[g];
		if (call == ROW_NONE)
			continue;
		uint32_t track = p->span.track[call];
		v[l->n++] = (struct sort_item){sort_key_i64(p->span.start_ns[call]), g, group_of ? group_of[track] : track};
	}
	sort_items(v, l->n);
	l->first = NEW_ARRAY(n_groups + 1, uint32_t);
	for (uint32_t i = 0; i < l->n; i++)
		l->first[v[i].tie + 1]++;
	for (uint32_t k = 0; k < n_groups; k++)
		l->first[k + 1] += l->first[k];
	l->gpu = NEW_ARRAY_RAW(l->n, uint32_t);
	l->called_ns = NEW_ARRAY_RAW(l->n, int64_t);
	uint32_t *at = NEW_ARRAY_RAW(n_groups, uint32_t);
	for (uint32_t k = 0; k < n_groups; k++)
		at[k] = l->first[k];
	for (uint32_t i = 0; i < l->n; i++) {
		uint32_t to = at[v[i].tie]++;
		l->gpu[to] = v[i].row;
		l->called_ns[to] = p->span.start_ns[p->gpu_op.call[v[i].row]];
	}
	mem_free(at);
	mem_free(v);
	list_sums(l, p);
}

static void list_release(struct projection_list *l)
{
	mem_free(l->first);
	mem_free(l->gpu);
	mem_free(l->called_ns);
	mem_free(l->device_ns);
	mem_free(l->kernel_ns);
	mem_free(l->kernels);
	mem_free(l->tree);
}

struct projection *projection_new(const struct profile *p)
{
	struct projection *x = NEW(struct projection);
	uint32_t n = p->track.rows.n;
	struct idmap processes;
	x->p = p;
	x->process = NEW_ARRAY_RAW(n, uint32_t);
	idmap_init(&processes, 0, p->strings.n, n);
	for (uint32_t t = 0; t < n; t++) {
		x->process[t] = idmap_get(&processes, p->track.pid_text[t]);
		if (x->process[t] == IDMAP_NONE)
			idmap_put(&processes, p->track.pid_text[t], x->process[t] = t);
	}
	idmap_release(&processes);
	list_init(&x->by_track, p, NULL, n);
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (p->span.kind[i] == SPAN_RANGE) {
			list_init(&x->by_process, p, x->process, n);
			break;
		}
	return x;
}

void projection_free(struct projection *x)
{
	list_release(&x->by_track);
	list_release(&x->by_process);
	mem_free(x->process);
	mem_free(x);
}

/* The first in [lo, hi) that was called at or after `ns`; found the sooner, the nearer it is to lo. */
static uint32_t lower_bound(const struct projection_list *l, uint32_t lo, uint32_t hi, int64_t ns)
{
	uint64_t step = 1;
	for (; step <= hi - lo && l->called_ns[lo + step - 1] < ns; step *= 2)
		lo += (uint32_t)step;
	hi = step < hi - lo ? lo + (uint32_t)step : hi;
	return FIRST_WHERE(i, lo, hi, l->called_ns[i] >= ns);
}

/* The same of a group; ranges that are asked for in order of time begin near to each other. */
static uint32_t projection_begin(struct projection_list *l, uint32_t group, int64_t ns)
{
	const uint32_t first = l->first[group], end = l->first[group + 1];
	const bool behind = l->near > first && l->near <= end && l->called_ns[l->near - 1] < ns;
	return l->near = lower_bound(l, behind ? l->near : first, end, ns);
}

static struct projection_extent extent_of(const struct projection_list *l, const struct profile *p, uint32_t lo, uint32_t hi)
{
	struct projection_extent x = nothing;
	while (lo < hi && lo % BLOCK)
		widen_by(&x, p, l->gpu[lo++]);
	while (lo < hi && hi % BLOCK)
		widen_by(&x, p, l->gpu[--hi]);
	for (uint32_t a = lo / BLOCK + l->n_blocks, b = hi / BLOCK + l->n_blocks; a < b; a /= 2, b /= 2) {
		if (a & 1)
			widen(&x, &l->tree[a++]);
		if (b & 1)
			widen(&x, &l->tree[--b]);
	}
	return x;
}

struct projected projection_of(struct projection *x, uint32_t span)
{
	const struct profile *p = x->p;
	bool range = p->span.kind[span] == SPAN_RANGE;
	struct projection_list *l = range ? &x->by_process : &x->by_track;
	uint32_t group = range ? x->process[p->span.track[span]] : p->span.track[span];
	uint32_t lo = projection_begin(l, group, p->span.start_ns[span]);
	uint32_t hi = lower_bound(l, lo, l->first[group + 1], span_end(p, span));
	struct projected r = {.ops = hi - lo, .kernels = l->kernels[hi] - l->kernels[lo], .device_ns = l->device_ns[hi] - l->device_ns[lo],
	                      .kernel_ns = l->kernel_ns[hi] - l->kernel_ns[lo]};
	if (lo == hi)
		return r;
	struct projection_extent e = extent_of(l, p, lo, hi);
	r.start_ns = e.start, r.end_ns = e.end;
	r.kernel_start_ns = e.kernel_start, r.kernel_end_ns = e.kernel_end;
	return r;
}
