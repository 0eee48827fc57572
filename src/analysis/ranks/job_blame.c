#include "analysis/ranks/job_blame.h"

#include "analysis/ranks/job_peers.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

#include <stdlib.h>

enum { JOB_BLAME_DEEPEST = 8 }; /* collectives through which blame is passed on */

const char *const job_cause_name[JOB_N_CAUSES] = {
#define JOB_CAUSE_NAME_(id, name) [JOB_CAUSE_##id] = name,
	JOB_CAUSES(JOB_CAUSE_NAME_)
};

struct job_blame_work {
	const struct job *j;
	struct job_blame *out;
	uint32_t *before;          /* by instance: the accepted one before it in its group; UINT32_MAX = none */
	uint32_t **instance;       /* by rank and call: its instance */
	int64_t *scratch;
	uint32_t *stage;           /* by rank: ranks of different ones are not compared */
	uint32_t most_steps;
	uint32_t step;             /* of the waiting that is shared; UINT32_MAX = of none */
	int64_t *step_ns;          /* by step and rank: waiting because of that rank */
};

/* What a rank did from one collective of a group to the next. */
enum job_blame_span { JOB_BLAME_LENGTH, JOB_BLAME_COMPUTE, JOB_BLAME_COPY, JOB_BLAME_TALK, JOB_BLAME_IDLE, JOB_BLAME_DATA, JOB_BLAME_GC, JOB_BLAME_KERNELS, JOB_BLAME_SPANS };

static int job_blame_by_arrival(const void *a, const void *b, void *job)
{
	const struct job_instance *v = ((const struct job *)job)->instance;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return COMPARE(v[x].arrival_ns, v[y].arrival_ns) ?: COMPARE(x, y);
}

static void job_blame_find_before(struct job_blame_work *w)
{
	const struct job *j = w->j;
	uint32_t *order = NEW_ARRAY(j->n_instances, uint32_t);
	memset(w->before, 0xff, j->n_instances * sizeof *w->before);
	for (uint32_t g = 0; g < j->n_groups; g++) {
		uint32_t n = 0;
		for (uint32_t i = j->group[g].first; i < j->group[g].first + j->group[g].n; i++)
			if (j->instance[i].accepted)
				order[n++] = i;
		qsort_r(order, n, sizeof *order, job_blame_by_arrival, (void *)(uintptr_t)j);
		for (uint32_t i = 1; i < n; i++)
			w->before[order[i]] = order[i - 1];
	}
	mem_free(order);
}

static void job_blame_map_calls(struct job_blame_work *w)
{
	const struct job *j = w->j;
	for (uint32_t r = 0; r < j->n; r++) {
		w->instance[r] = NEW_ARRAY(j->rank[r]->n_calls, uint32_t);
		memset(w->instance[r], 0xff, j->rank[r]->n_calls * sizeof **w->instance);
		w->most_steps = j->rank[r]->n_steps > w->most_steps ? j->rank[r]->n_steps : w->most_steps;
	}
	for (uint32_t i = 0; i < j->n_instances; i++)
		for (uint32_t k = 0; k < j->instance[i].n; k++)
			w->instance[j->instance[i].part[k].rank][j->instance[i].part[k].call] = i;
}

/* The call of a rank in an instance; NULL = it has no part. */
static const struct rank_call *job_blame_call(const struct job *j, const struct job_instance *x, uint32_t rank)
{
	uint32_t at = FIRST_WHERE(k, 0, x->n, x->part[k].rank >= rank);
	return at < x->n && x->part[at].rank == rank ? &j->rank[rank]->call[x->part[at].call] : NULL;
}

static bool job_blame_spans_of(const struct job *j, const struct job_instance *from, const struct job_instance *to, uint32_t rank, int64_t v[JOB_BLAME_SPANS])
{
	const struct rank_call *a = job_blame_call(j, from, rank), *b = job_blame_call(j, to, rank);
	if (!a || !b)
		return false;
	const struct rank_past *p = &a->after, *q = &b->before;
	v[JOB_BLAME_LENGTH] = b->start_ns - a->end_ns;
	v[JOB_BLAME_COMPUTE] = q->compute_ns - p->compute_ns;
	v[JOB_BLAME_COPY] = q->copy_ns - p->copy_ns;
	v[JOB_BLAME_TALK] = q->talk_ns - p->talk_ns;
	v[JOB_BLAME_IDLE] = v[JOB_BLAME_LENGTH] - v[JOB_BLAME_COMPUTE] - v[JOB_BLAME_COPY] - v[JOB_BLAME_TALK];
	v[JOB_BLAME_DATA] = q->loading_ns - p->loading_ns;
	v[JOB_BLAME_GC] = q->collecting_ns - p->collecting_ns;
	v[JOB_BLAME_KERNELS] = (int64_t)(q->kernels - p->kernels);
	return true;
}

/* Whether a part is of a rank that the last one of the instance is compared with. */
static bool job_blame_is_peer(const struct job_blame_work *w, const struct job_instance *x, uint32_t part)
{
	return x->part[part].rank != x->last && w->stage[x->part[part].rank] == w->stage[x->last];
}

/* How much more the last rank has of each than the median of the others. False: there is nothing to compare. */
static bool job_blame_excess(struct job_blame_work *w, const struct job_instance *from, const struct job_instance *to, int64_t excess[JOB_BLAME_SPANS])
{
	int64_t v[JOB_BLAME_SPANS], last[JOB_BLAME_SPANS];
	if (!job_blame_spans_of(w->j, from, to, to->last, last))
		return false;
	for (unsigned s = 0; s < JOB_BLAME_SPANS; s++) {
		size_t n = 0;
		for (uint32_t k = 0; k < to->n; k++)
			if (job_blame_is_peer(w, to, k) && job_blame_spans_of(w->j, from, to, to->part[k].rank, v))
				w->scratch[n++] = v[s];
		if (!n)
			return false;
		excess[s] = last[s] - sort_median_i64(w->scratch, n);
	}
	return excess[JOB_BLAME_LENGTH] > 0;
}

/* The collective of another group in which the last rank of `to` had waited longest since `from`; UINT32_MAX = none. */
static uint32_t job_blame_victim_of(const struct job_blame_work *w, const struct job_instance *from, const struct job_instance *to)
{
	const struct job *j = w->j;
	const struct rank *r = j->rank[to->last];
	const struct rank_call *a = job_blame_call(j, from, to->last), *b = job_blame_call(j, to, to->last);
	int64_t longest = 0;
	uint32_t found = UINT32_MAX;
	for (const struct rank_call *c = a + 1; a && c < b; c++) {
		uint32_t i = w->instance[to->last][c - r->call];
		if (c->wait_ns > longest && i != UINT32_MAX && j->instance[i].group != to->group && j->instance[i].last != to->last) {
			longest = c->wait_ns;
			found = i;
		}
	}
	return found;
}

static void job_blame_add(struct job_blame_work *w, uint32_t rank, enum job_cause cause, int64_t ns)
{
	w->out[rank].ns[cause] += ns;
	w->out[rank].total_ns += ns;
	if (w->step != UINT32_MAX)
		w->step_ns[(size_t)w->step * w->j->n + rank] += ns;
}

/* By phase, how much more the last rank spent since `from` than the median of its peers. */
static void job_blame_phase_excess(struct job_blame_work *w, const struct job_instance *from, const struct job_instance *to, int64_t excess[RANK_N_SPENT])
{
	const struct rank_call *a = job_blame_call(w->j, from, to->last), *b = job_blame_call(w->j, to, to->last), *p, *q;
	for (unsigned s = 0; s < RANK_N_SPENT; s++) {
		size_t n = 0;
		for (uint32_t k = 0; k < to->n; k++)
			if (job_blame_is_peer(w, to, k) && (p = job_blame_call(w->j, from, to->part[k].rank)) && (q = job_blame_call(w->j, to, to->part[k].rank)))
				w->scratch[n++] = q->spent_ns[s] - p->spent_ns[s];
		excess[s] = n && a && b ? b->spent_ns[s] - a->spent_ns[s] - sort_median_i64(w->scratch, n) : 0;
	}
}

/* Shares waiting for the last rank among the phases in which it spent more than its peers. */
static void job_blame_add_phases(struct job_blame_work *w, const struct job_instance *from, const struct job_instance *to, int64_t ns)
{
	int64_t excess[RANK_N_SPENT];
	double all = 0;
	job_blame_phase_excess(w, from, to, excess);
	for (unsigned s = 0; s < RANK_N_SPENT; s++)
		all += excess[s] > 0 ? (double)excess[s] : 0;
	for (unsigned s = 0; s < RANK_N_SPENT && all > 0; s++)
		w->out[to->last].phase_ns[s] += excess[s] > 0 ? (int64_t)((double)ns * (double)excess[s] / all) : 0;
}

/* Shares idle time among what the host did meanwhile. */
static void job_blame_add_idle(struct job_blame_work *w, uint32_t rank, const int64_t excess[JOB_BLAME_SPANS], int64_t ns)
{
	int64_t idle = excess[JOB_BLAME_IDLE], data = excess[JOB_BLAME_DATA], gc = excess[JOB_BLAME_GC];
	data = data > 0 ? data < idle ? data : idle : 0;
	gc = gc > 0 ? gc < idle - data ? gc : idle - data : 0;
	int64_t to_data = (int64_t)((double)ns * (double)data / (double)idle), to_gc = (int64_t)((double)ns * (double)gc / (double)idle);
	job_blame_add(w, rank, JOB_CAUSE_DATA, to_data);
	job_blame_add(w, rank, JOB_CAUSE_GC, to_gc);
	job_blame_add(w, rank, JOB_CAUSE_HOST, ns - to_data - to_gc);
}

/* Blames `ns` of waiting on the rank that came last in instance i, or on whom that one had waited for. */
static void job_blame_share(struct job_blame_work *w, uint32_t i, int64_t ns, int depth)
{
	const struct job_instance *to = &w->j->instance[i];
	int64_t excess[JOB_BLAME_SPANS];
	if (w->before[i] == UINT32_MAX || !job_blame_excess(w, &w->j->instance[w->before[i]], to, excess)) {
		job_blame_add(w, to->last, JOB_CAUSE_UNKNOWN, ns);
		return;
	}
	static const enum job_blame_span shared[] = {JOB_BLAME_COMPUTE, JOB_BLAME_COPY, JOB_BLAME_TALK, JOB_BLAME_IDLE};
	double all = 0;
	int64_t left = ns, own = ns;
	for (size_t s = 0; s < sizeof shared / sizeof *shared; s++)
		all += excess[shared[s]] > 0 ? (double)excess[shared[s]] : 0;
	for (size_t s = 0; s < sizeof shared / sizeof *shared && all > 0; s++) {
		int64_t part = excess[shared[s]] > 0 ? (int64_t)((double)ns * (double)excess[shared[s]] / all) : 0;
		left -= part;
		if (shared[s] == JOB_BLAME_COMPUTE)
			job_blame_add(w, to->last, excess[JOB_BLAME_KERNELS] > 0 ? JOB_CAUSE_MORE_WORK : JOB_CAUSE_SLOWER, part);
		else if (shared[s] == JOB_BLAME_COPY)
			job_blame_add(w, to->last, JOB_CAUSE_COPIES, part);
		else if (shared[s] == JOB_BLAME_IDLE && part)
			job_blame_add_idle(w, to->last, excess, part);
		if (shared[s] != JOB_BLAME_TALK || !part)
			continue;
		own -= part;
		uint32_t of = depth < JOB_BLAME_DEEPEST ? job_blame_victim_of(w, &w->j->instance[w->before[i]], to) : UINT32_MAX;
		if (of == UINT32_MAX) {
			job_blame_add(w, to->last, JOB_CAUSE_UNKNOWN, part);
		} else {
			w->out[to->last].passed_ns += part;
			job_blame_share(w, of, part, depth + 1);
		}
	}
	job_blame_add(w, to->last, JOB_CAUSE_UNKNOWN, left);
	job_blame_add_phases(w, &w->j->instance[w->before[i]], to, own - left);
}

/* What op each rank was late for most, and how many steps are its. */
static void job_blame_count(struct job_blame_work *w)
{
	const struct job *j = w->j;
	int64_t *most = NEW_ARRAY(j->n, int64_t);
	for (uint32_t i = 0; i < j->n_instances; i++) {
		const struct job_instance *x = &j->instance[i];
		if (!x->accepted || x->n < 2)
			continue;
		const struct rank_call *c = job_blame_call(j, x, x->last);
		w->out[x->last].last += x->wait_ns > 0;
		if (x->wait_ns > most[x->last]) {
			most[x->last] = x->wait_ns;
			w->out[x->last].op = c->op;
		}
	}
	for (uint32_t s = 0; s < w->most_steps; s++) {
		const int64_t *ns = &w->step_ns[(size_t)s * j->n];
		uint32_t rank = 0;
		for (uint32_t r = 1; r < j->n; r++)
			rank = ns[r] > ns[rank] ? r : rank;
		w->out[rank].steps += ns[rank] > 0;
	}
	mem_free(most);
}

static void job_blame_find_stages(struct job_blame_work *w)
{
	struct job_peers peers;
	w->stage = NEW_ARRAY(w->j->n, uint32_t);
	job_peers_find(w->j, &peers);
	for (uint32_t s = 0; s < peers.n; s++)
		for (uint32_t i = peers.first[s]; i < peers.first[s + 1]; i++)
			w->stage[peers.rank[i]] = s;
	job_peers_release(&peers);
}

struct job_blame *job_blame_find(const struct job *j)
{
	struct job_blame_work w = {.j = j, .out = NEW_ARRAY(j->n, struct job_blame), .before = NEW_ARRAY(j->n_instances, uint32_t), .instance = NEW_ARRAY(j->n, uint32_t *),
	                           .scratch = NEW_ARRAY(j->n, int64_t)};
	job_blame_map_calls(&w);
	w.step_ns = NEW_ARRAY((size_t)w.most_steps * j->n, int64_t);
	job_blame_find_before(&w);
	job_blame_find_stages(&w);
	for (uint32_t i = 0; i < j->n_instances; i++) {
		const struct job_instance *x = &j->instance[i];
		if (!x->accepted || x->n < 2)
			continue;
		w.step = rank_step_at(j->rank[x->last], job_blame_call(j, x, x->last)->start_ns);
		job_blame_share(&w, i, x->wait_ns, 0);
	}
	job_blame_count(&w);
	for (uint32_t r = 0; r < j->n; r++)
		mem_free(w.instance[r]);
	mem_free(w.instance);
	mem_free(w.before);
	mem_free(w.scratch);
	mem_free(w.stage);
	mem_free(w.step_ns);
	return w.out;
}

uint32_t job_blame_steps(const struct job *j)
{
	uint32_t n = 0;
	for (uint32_t r = 0; r < j->n; r++)
		n = j->rank[r]->n_steps > n ? j->rank[r]->n_steps : n;
	return n;
}
