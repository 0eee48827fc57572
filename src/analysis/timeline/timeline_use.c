/* How busy devices were over time: one sweep over a device's lanes, each of which does one thing at a time. */
#include "analysis/names/names.h"
#include "analysis/time/gpu_metrics.h"
#include "analysis/timeline/timeline_sums.h"
#include "base/mem.h"

#include <math.h>

/* A lane on its way through the window. */
struct timeline_use_cursor {
	uint32_t at, end;          /* places in timeline->row */
	int64_t start_ns, end_ns;  /* of its kernel, within the window; begins not before the one before ended */
	bool open, comm;           /* comm: of a collective */
	double blocks;             /* NaN = unknown */
};

struct timeline_use_sweep {
	const struct timeline *t;
	int64_t from_ns, to_ns;
	uint32_t points;
	struct timeline_use_cursor *v;
	uint32_t n, cap;
	double *used, *load, *kernels, *known; /* ns by piece: of any kernel; by blocks; of all kernels; of those with known blocks */
	double *comm, *exposed;    /* of any collective; of collectives while no other kernel ran */
	bool any_comm;
};

/* To the lane's next kernel; false when there is none. */
static bool timeline_use_step(const struct timeline_use_sweep *s, struct timeline_use_cursor *c)
{
	const struct gpu_ops *g = &s->t->p->gpu_op;
	int64_t before = c->end_ns;
	for (c->open = false; c->at < c->end; c->at++) {
		uint32_t row = s->t->row[c->at];
		int64_t start = g->start_ns[row], end = gpu_end(s->t->p, row);
		start = start < before ? before : start;
		end = end > s->to_ns ? s->to_ns : end;
		if (g->kind[row] != GPU_KERNEL || start >= end)
			continue;
		c->start_ns = start;
		c->end_ns = end;
		c->blocks = g->launch[row] == ROW_NONE ? NAN : launch_blocks_per_sm(s->t->p, g->launch[row]);
		c->comm = name_is(s->t->p, g->name[row], NAME_COMM_KERNEL);
		c->at++;
		return true;
	}
	return false;
}

static void add_lane(struct timeline_use_sweep *s, uint32_t lane)
{
	MEM_GROW(s->v, s->cap, s->n + 1);
	struct timeline_use_cursor *c = &s->v[s->n];
	*c = (struct timeline_use_cursor){.end_ns = s->from_ns};
	c->at = timeline_slices(s->t, lane, s->from_ns, s->to_ns, &c->end);
	s->n += timeline_use_step(s, c);
}

/* When piece i begins. */
static int64_t border(const struct timeline_use_sweep *s, uint32_t i)
{
	return s->from_ns + (int64_t)((__int128)(s->to_ns - s->from_ns) * i / s->points);
}

static uint32_t piece_of(const struct timeline_use_sweep *s, int64_t ns)
{
	uint32_t i = (uint32_t)((__int128)(ns - s->from_ns) * s->points / (s->to_ns - s->from_ns));
	return i + 1 < s->points && border(s, i + 1) <= ns ? i + 1 : i;
}

/* Between two moments nothing begins or ends. */
static void add_time(struct timeline_use_sweep *s, int64_t start, int64_t end)
{
	unsigned open = 0, known = 0, comm = 0;
	double blocks = 0;
	for (uint32_t i = 0; i < s->n; i++) {
		if (!s->v[i].open)
			continue;
		open++;
		comm += s->v[i].comm;
		known += s->v[i].blocks > 0;
		blocks += s->v[i].blocks > 0 ? s->v[i].blocks : 0;
	}
	for (uint32_t k = piece_of(s, start); open && start < end; k++) {
		int64_t to = border(s, k + 1);
		double ns = (double)((to < end ? to : end) - start);
		s->used[k] += ns;
		s->load[k] += ns * (blocks < 1 ? blocks : 1);
		s->kernels[k] += ns * open;
		s->known[k] += ns * known;
		s->comm[k] += comm ? ns : 0;
		s->exposed[k] += comm == open ? ns : 0;
		start = to;
	}
	s->any_comm |= comm > 0;
}

/* Opens and closes what does so at `now`; when that happens next, INT64_MAX = never. */
static int64_t turn(struct timeline_use_sweep *s, int64_t now)
{
	int64_t next = INT64_MAX;
	for (uint32_t i = 0; i < s->n; i++) {
		struct timeline_use_cursor *c = &s->v[i];
		if (c->open && c->end_ns <= now && !timeline_use_step(s, c)) {
			s->v[i--] = s->v[--s->n];
			continue;
		}
		c->open = c->start_ns <= now;
		int64_t at = c->open ? c->end_ns : c->start_ns;
		next = at < next ? at : next;
	}
	return next;
}

static void timeline_use_sweep(struct timeline_use_sweep *s)
{
	int64_t now = s->from_ns, next;
	while ((next = turn(s, now)) < INT64_MAX) {
		add_time(s, now, next);
		now = next;
	}
}

static int32_t timeline_use_device_of(const struct timeline *t, const struct timeline_track *k)
{
	uint32_t launch = t->p->gpu_op.launch[t->row[t->lanes[k->first_lane].first]];
	return launch == ROW_NONE ? INT32_MIN : t->p->launch.device[launch];
}

/* The ordinals that there are, ascending. */
static uint32_t timeline_use_list_devices(const struct timeline *t, struct timeline_use **out)
{
	struct timeline_use *v = NULL;
	uint32_t n = 0, cap = 0;
	for (uint32_t k = 0; k < t->n_tracks; k++) {
		uint32_t i = 0;
		if (!t->tracks[k].device)
			continue;
		int32_t device = timeline_use_device_of(t, &t->tracks[k]);
		while (i < n && v[i].device < device)
			i++;
		if (i < n && v[i].device == device)
			continue;
		MEM_GROW(v, cap, n + 1);
		memmove(v + i + 1, v + i, (n - i) * sizeof *v);
		v[i] = (struct timeline_use){.device = device};
		n++;
	}
	*out = v;
	return n;
}

static void timeline_use_measure(struct timeline_use_sweep *s, struct timeline_use *u)
{
	uint32_t n = s->points;
	double *sum = NEW_ARRAY(6 * (size_t)n, double);
	s->used = sum, s->load = sum + n, s->kernels = sum + 2 * (size_t)n, s->known = sum + 3 * (size_t)n;
	s->comm = sum + 4 * (size_t)n, s->exposed = sum + 5 * (size_t)n;
	s->any_comm = false;
	s->n = 0;
	for (uint32_t k = 0; k < s->t->n_tracks; k++) {
		const struct timeline_track *x = &s->t->tracks[k];
		for (uint32_t l = 0; x->device && timeline_use_device_of(s->t, x) == u->device && l < x->n_lanes; l++)
			add_lane(s, x->first_lane + l);
	}
	timeline_use_sweep(s);
	u->utilization = NEW_ARRAY_RAW(n, double);
	u->sm_efficiency = NEW_ARRAY_RAW(n, double);
	u->comm = s->any_comm ? NEW_ARRAY_RAW(n, double) : NULL;
	u->exposed_comm = s->any_comm ? NEW_ARRAY_RAW(n, double) : NULL;
	for (uint32_t i = 0; i < n; i++) {
		double ns = (double)(border(s, i + 1) - border(s, i));
		if (s->any_comm) {
			u->comm[i] = ns > 0 ? s->comm[i] / ns : 0;
			u->exposed_comm[i] = ns > 0 ? s->exposed[i] / ns : 0;
		}
		u->utilization[i] = ns > 0 ? s->used[i] / ns : 0;
		u->sm_efficiency[i] = 2 * s->known[i] < s->kernels[i] ? NAN : ns > 0 ? s->load[i] / ns : 0;
	}
	mem_free(sum);
}

uint32_t timeline_use(const struct timeline *t, int64_t from_ns, int64_t to_ns, uint32_t points, struct timeline_use **out)
{
	struct timeline_use_sweep s = {.t = t, .from_ns = from_ns, .to_ns = to_ns, .points = points};
	uint32_t n = timeline_use_list_devices(t, out);
	for (uint32_t i = 0; i < n; i++)
		timeline_use_measure(&s, &(*out)[i]);
	mem_free(s.v);
	return n;
}

void timeline_use_release(struct timeline_use *u, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		mem_free(u[i].utilization);
		mem_free(u[i].sm_efficiency);
		mem_free(u[i].comm);
		mem_free(u[i].exposed_comm);
	}
	mem_free(u);
}
