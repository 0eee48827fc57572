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
	bool *otherwise;           /* by rank: it was recorded with more than most */
	int64_t *waited;           /* by rank: how long another one had waited for it; 0 between uses */
	uint32_t *stage;           /* by rank: ranks of different ones are not compared */
	uint32_t most_steps;
	uint32_t step;             /* of the waiting that is shared; UINT32_MAX = of none */
	int64_t *step_ns;          /* by step and rank: waiting because of that rank */
	uint32_t *most_of;         /* by instance: the rank that has most of its waiting; that is most_ns of the instance that is shared */
	int64_t most_ns;
	uint32_t shared;           /* this instance */
};

/* What a rank did from one collective of a group to the next; to the first one, from its first collective of any group on, to which it may have come late. */
enum job_blame_span { JOB_BLAME_LENGTH, JOB_BLAME_COMPUTE, JOB_BLAME_COPY, JOB_BLAME_TALK, JOB_BLAME_IDLE, JOB_BLAME_DATA, JOB_BLAME_GC, JOB_BLAME_KERNELS, JOB_BLAME_FIRST,
	JOB_BLAME_SPANS };

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
	const struct rank_call *a = from ? job_blame_call(j, from, rank) : &j->rank[rank]->call[0], *b = job_blame_call(j, to, rank);
	if (!a || !b)
		return false;
	const struct rank_past *p = from ? &a->after : &a->before, *q = &b->before;
	v[JOB_BLAME_LENGTH] = b->start_ns - (from ? a->end_ns : a->start_ns);
	v[JOB_BLAME_FIRST] = from ? 0 : job_time(j, rank, a->start_ns);
	v[JOB_BLAME_COMPUTE] = q->compute_ns - p->compute_ns;
	v[JOB_BLAME_COPY] = q->copy_ns - p->copy_ns;
	v[JOB_BLAME_TALK] = q->talk_ns - p->talk_ns;
	v[JOB_BLAME_IDLE] = v[JOB_BLAME_LENGTH] - v[JOB_BLAME_COMPUTE] - v[JOB_BLAME_COPY] - v[JOB_BLAME_TALK];
	v[JOB_BLAME_DATA] = q->loading_ns - p->loading_ns;
	v[JOB_BLAME_GC] = q->collecting_ns - p->collecting_ns;
	v[JOB_BLAME_KERNELS] = (int64_t)(q->kernels - p->kernels);
	return true;
}

/* The collective before instance i in its group; NULL = it is the first. */
static const struct job_instance *job_blame_before(const struct job_blame_work *w, uint32_t i)
{
	return w->before[i] == UINT32_MAX ? NULL : &w->j->instance[w->before[i]];
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
	return excess[JOB_BLAME_LENGTH] + excess[JOB_BLAME_FIRST] > 0;
}

/* For whom the last rank of `to` had waited longest since `from`, in collectives of other groups, and in which of these; UINT32_MAX = for none. *waited: for all. */
static uint32_t job_blame_victim_of(struct job_blame_work *w, const struct job_instance *from, const struct job_instance *to, int64_t *waited)
{
	const struct job *j = w->j;
	const struct rank *r = j->rank[to->last];
	const struct rank_call *first = from ? job_blame_call(j, from, to->last) : r->call, *b = job_blame_call(j, to, to->last);
	int64_t longest = 0, most = 0;
	uint32_t found = UINT32_MAX, of = UINT32_MAX;
	*waited = 0;
	for (int turn = 0; turn < 3; turn++)
		for (const struct rank_call *c = first; first && c < b; c++) {
			uint32_t i = w->instance[to->last][c - r->call];
			const struct job_instance *x = i == UINT32_MAX ? NULL : &j->instance[i];
			if (c->wait_ns <= 0 || !x || x->group == to->group || x->last == to->last)
				continue;
			if (turn == 0) {
				w->waited[x->last] += c->wait_ns;
				*waited += c->wait_ns;
			} else if (turn == 1 && w->waited[x->last] > most) {
				most = w->waited[x->last];
				of = x->last;
			} else if (turn == 2) {
				w->waited[x->last] = 0;
				if (x->last == of && c->wait_ns > longest) {
					longest = c->wait_ns;
					found = i;
				}
			}
		}
	return found;
}

static void job_blame_add(struct job_blame *b, enum job_cause cause, int64_t ns)
{
	b->ns[cause] += ns;
	b->total_ns += ns;
}

/* What a rank spent in a phase from instance `from` to `to`; without `from`, from its first collective on. False: it has no part. */
static bool job_blame_spent(const struct job *j, const struct job_instance *from, const struct job_instance *to, uint32_t rank, unsigned phase, int64_t *ns)
{
	const struct rank_call *a = from ? job_blame_call(j, from, rank) : &j->rank[rank]->call[0], *b = job_blame_call(j, to, rank);
	*ns = a && b ? b->spent_ns[phase] - a->spent_ns[phase] : 0;
	return a && b;
}

/* Shares waiting for the last rank of `to` among the phases in which it spent more than the median of its peers. */
static void job_blame_add_phases(struct job_blame_work *w, const struct job_instance *from, const struct job_instance *to, int64_t ns)
{
	int64_t excess[RANK_N_SPENT];
	double all = 0;
	for (unsigned s = 0; s < RANK_N_SPENT; s++) {
		size_t n = 0;
		job_blame_spent(w->j, from, to, to->last, s, &excess[s]);
		for (uint32_t k = 0; k < to->n; k++)
			n += job_blame_is_peer(w, to, k) && job_blame_spent(w->j, from, to, to->part[k].rank, s, &w->scratch[n]);
		excess[s] = n ? excess[s] - sort_median_i64(w->scratch, n) : 0;
		all += excess[s] > 0 ? (double)excess[s] : 0;
	}
	for (unsigned s = 0; s < RANK_N_SPENT && all > 0; s++)
		w->out[to->last].phase_ns[s] += excess[s] > 0 ? (int64_t)((double)ns * (double)excess[s] / all) : 0;
}

/* By rank: whether it recorded stacks or memory, and most ranks did not. The caller frees it. */
static bool *job_blame_recorded_otherwise(const struct job *j)
{
	bool *more = NEW_ARRAY(j->n, bool);
	uint32_t n = 0;
	for (uint32_t r = 0; r < j->n; r++)
		n += more[r] = j->rank[r]->recording.stacks || j->rank[r]->recording.memory;
	if (n > j->n / 2)
		memset(more, 0, j->n * sizeof *more);
	return more;
}

/* Shares idle time of a rank among what its host did meanwhile. */
static void job_blame_add_idle(const struct job_blame_work *w, uint32_t rank, const int64_t excess[JOB_BLAME_SPANS], int64_t ns)
{
	int64_t idle = excess[JOB_BLAME_IDLE], data = excess[JOB_BLAME_DATA], gc = excess[JOB_BLAME_GC];
	data = data > 0 ? data < idle ? data : idle : 0;
	gc = gc > 0 ? gc < idle - data ? gc : idle - data : 0;
	struct job_blame *b = &w->out[rank];
	int64_t to_data = (int64_t)((double)ns * (double)data / (double)idle), to_gc = (int64_t)((double)ns * (double)gc / (double)idle);
	job_blame_add(b, JOB_CAUSE_DATA, to_data);
	job_blame_add(b, JOB_CAUSE_GC, to_gc);
	job_blame_add(b, w->otherwise[rank] ? JOB_CAUSE_RECORDING : JOB_CAUSE_HOST, ns - to_data - to_gc);
}

static void job_blame_share(struct job_blame_work *w, uint32_t i, int64_t ns, int depth);

/* Hands on `ns` of waiting for the last rank of instance i, which was `excess` longer in collectives of other groups than its peers: what it waited there is the
 * blame of whom it had waited for. What it did not wait stays unexplained. Returns how much went on. */
static int64_t job_blame_pass_on(struct job_blame_work *w, uint32_t i, int64_t excess, int64_t ns, int depth)
{
	const struct job_instance *to = &w->j->instance[i];
	int64_t waited;
	uint32_t of = depth < JOB_BLAME_DEEPEST ? job_blame_victim_of(w, job_blame_before(w, i), to, &waited) : UINT32_MAX;
	if (of == UINT32_MAX)
		return 0;
	int64_t part = waited < excess ? (int64_t)((double)ns * (double)waited / (double)excess) : ns;
	w->out[to->last].passed_ns += part;
	job_blame_share(w, of, part, depth + 1);
	return part;
}

/* Blames `ns` of waiting on the rank that came last in instance i, or on whom that one had waited for. */
static void job_blame_share(struct job_blame_work *w, uint32_t i, int64_t ns, int depth)
{
	static const enum job_blame_span shared[] = {JOB_BLAME_COMPUTE, JOB_BLAME_COPY, JOB_BLAME_TALK, JOB_BLAME_IDLE, JOB_BLAME_FIRST};
	const struct job_instance *to = &w->j->instance[i];
	struct job_blame *b = &w->out[to->last];
	int64_t excess[JOB_BLAME_SPANS], left = ns, passed = 0;
	double all = 0;
	bool known = job_blame_excess(w, job_blame_before(w, i), to, excess);
	for (size_t s = 0; s < sizeof shared / sizeof *shared && known; s++)
		all += excess[shared[s]] > 0 ? (double)excess[shared[s]] : 0;
	for (size_t s = 0; s < sizeof shared / sizeof *shared && all > 0; s++) {
		int64_t part = excess[shared[s]] > 0 ? (int64_t)((double)ns * (double)excess[shared[s]] / all) : 0;
		if (!part || shared[s] == JOB_BLAME_FIRST)
			continue;
		if (shared[s] == JOB_BLAME_COMPUTE)
			job_blame_add(b, excess[JOB_BLAME_KERNELS] > 0 ? JOB_CAUSE_MORE_WORK : JOB_CAUSE_SLOWER, part);
		else if (shared[s] == JOB_BLAME_COPY)
			job_blame_add(b, JOB_CAUSE_COPIES, part);
		else if (shared[s] == JOB_BLAME_IDLE)
			job_blame_add_idle(w, to->last, excess, part);
		else
			passed = part = job_blame_pass_on(w, i, excess[JOB_BLAME_TALK], part, depth);
		left -= part;
	}
	job_blame_add(b, JOB_CAUSE_UNKNOWN, left);
	job_blame_add_phases(w, job_blame_before(w, i), to, ns - passed - left);
	if (ns - passed > w->most_ns) {
		w->most_ns = ns - passed;
		w->most_of[w->shared] = to->last;
	}
	if (w->step != UINT32_MAX)
		w->step_ns[(size_t)w->step * w->j->n + to->last] += ns - passed;
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

/* All that is found: the caller's, both. */
struct job_blame_found {
	struct job_blame *of_rank;
	uint32_t *most_of;
};

static struct job_blame_found job_blame_run(const struct job *j)
{
	struct job_blame_work w = {.j = j, .out = NEW_ARRAY(j->n, struct job_blame), .before = NEW_ARRAY(j->n_instances, uint32_t), .instance = NEW_ARRAY(j->n, uint32_t *),
	                           .scratch = NEW_ARRAY(j->n, int64_t), .waited = NEW_ARRAY(j->n, int64_t), .otherwise = job_blame_recorded_otherwise(j),
	                           .most_of = NEW_ARRAY(j->n_instances, uint32_t)};
	job_blame_map_calls(&w);
	w.step_ns = NEW_ARRAY((size_t)w.most_steps * j->n, int64_t);
	job_blame_find_before(&w);
	job_blame_find_stages(&w);
	for (uint32_t i = 0; i < j->n_instances; i++) {
		const struct job_instance *x = &j->instance[i];
		w.most_of[i] = x->last;
		if (!x->accepted || x->n < 2)
			continue;
		w.shared = i;
		w.most_ns = 0;
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
	mem_free(w.waited);
	mem_free(w.otherwise);
	mem_free(w.step_ns);
	return (struct job_blame_found){w.out, w.most_of};
}

struct job_blame *job_blame_find(const struct job *j)
{
	struct job_blame_found x = job_blame_run(j);
	mem_free(x.most_of);
	return x.of_rank;
}

uint32_t *job_blame_ranks(const struct job *j)
{
	struct job_blame_found x = job_blame_run(j);
	mem_free(x.of_rank);
	return x.most_of;
}

uint32_t job_blame_steps(const struct job *j)
{
	uint32_t n = 0;
	for (uint32_t r = 0; r < j->n; r++)
		n = j->rank[r]->n_steps > n ? j->rank[r]->n_steps : n;
	return n;
}
