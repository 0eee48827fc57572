#include "analysis/ranks/job.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

/* Ends coincide where they lie within so many medians of the group's end skews, and always within the least. */
enum { JOB_SKEWS = 3 };
static const int64_t JOB_LEAST_SKEW_NS = 100000;
/* A group of which the median end skew is larger does not end together. */
static const int64_t JOB_MOST_SKEW_NS = 1000000;

static const char *const job_refusal_words[JOB_REFUSALS] = {
	[JOB_ACCEPTED] = "",
	[JOB_ONE_RANK] = "only one rank of the group is here",
	[JOB_UNEQUAL] = "the ranks have unequal numbers of collectives in the group, and no sequence numbers tell which belong together",
	[JOB_OTHER_STEPS] = "the ranks' recordings are of other steps, and no sequence numbers tell which belong together",
	[JOB_NOT_TOGETHER] = "collectives of this kind do not end on all ranks at one moment",
	[JOB_ENDS_APART] = "the ends of the same collectives do not coincide: the recordings are not of the same moments, or clocks are not known",
};

const char *job_refusal_text(enum job_refusal r) { return job_refusal_words[r]; }

struct job *job_new(void) { return NEW(struct job); }

void job_free(struct job *j)
{
	if (!j)
		return;
	for (uint32_t i = 0; i < j->n + j->repeated; i++)
		rank_free(j->rank[i]);
	mem_free(j->rank);
	mem_free(j->clock);
	mem_free(j->group);
	mem_free(j->instance);
	mem_free(j->host);
	arena_release(&j->arena);
	mem_free(j);
}

void job_add(struct job *j, struct rank *r)
{
	MEM_PUSH(j->rank, j->n, j->cap_ranks, r);
}

void job_add_profile(struct job *j, const struct profile *p, int64_t number)
{
	unsigned n = rank_count(p);
	for (unsigned i = 0; i < n; i++) {
		struct rank *r = rank_new(p, i);
		r->number = r->number == RANK_UNKNOWN ? number : r->number;
		job_add(j, r);
	}
}

/* By number, those without one last; of one number by path. */
static int job_by_number(const void *a, const void *b)
{
	const struct rank *x = *(struct rank *const *)a, *y = *(struct rank *const *)b;
	bool no_x = x->number == RANK_UNKNOWN, no_y = y->number == RANK_UNKNOWN;
	return COMPARE(no_x, no_y) ?: COMPARE(x->number, y->number) ?: str_cmp_natural(x->path, y->path);
}

/* How many ranks a job has at least that this rank is of. */
static int64_t job_world_of(const struct rank *r)
{
	int64_t world = r->world;
	for (uint32_t i = 0; i < r->n_groups; i++) {
		const struct rank_group *g = &r->group[i];
		int64_t highest = g->n ? g->member[g->n - 1] : -1;
		int64_t least = highest < INT64_MAX && highest + 1 > g->size ? highest + 1 : g->size;
		world = least > world ? least : world;
	}
	return world;
}

/* Ranks whose number an earlier one has go behind the others, where nothing looks at them. */
static void job_identify(struct job *j)
{
	uint32_t kept = 0;
	struct rank **repeated = NEW_ARRAY(j->n, struct rank *);
	qsort(j->rank, j->n, sizeof *j->rank, job_by_number);
	for (uint32_t i = 0; i < j->n; i++) {
		struct rank *r = j->rank[i];
		int64_t world = job_world_of(r);
		j->world = world > j->world ? world : j->world;
		if (kept && r->number != RANK_UNKNOWN && r->number == j->rank[kept - 1]->number) {
			repeated[j->repeated++] = r;
			continue;
		}
		j->rank[kept++] = r;
	}
	memcpy(j->rank + kept, repeated, j->repeated * sizeof *repeated);
	mem_free(repeated);
	j->n = kept;
	j->world = j->world > (int64_t)j->n ? j->world : (int64_t)j->n;
	j->missing = j->world - j->n;
}

/* What holds of any instance, accepted or not. */
static void job_measure_times(struct job *j, struct job_instance *x)
{
	int64_t first_start = INT64_MAX, first_end = INT64_MAX, last_end = INT64_MIN;
	x->arrival_ns = INT64_MIN;
	x->shortest_ns = INT64_MAX;
	x->exposed_ns = 0;
	for (uint32_t i = 0; i < x->n; i++) {
		struct job_part *part = &x->part[i];
		const struct rank_call *c = &j->rank[part->rank]->call[part->call];
		part->start_ns = job_time(j, part->rank, c->start_ns);
		part->end_ns = part->start_ns + (c->end_ns - c->start_ns);
		x->shortest_ns = c->end_ns - c->start_ns < x->shortest_ns ? c->end_ns - c->start_ns : x->shortest_ns;
		x->exposed_ns += c->exposed_ns;
		first_start = part->start_ns < first_start ? part->start_ns : first_start;
		first_end = part->end_ns < first_end ? part->end_ns : first_end;
		last_end = part->end_ns > last_end ? part->end_ns : last_end;
		if (part->start_ns > x->arrival_ns) {
			x->arrival_ns = part->start_ns;
			x->last = part->rank;
		}
	}
	x->start_skew_ns = x->arrival_ns - first_start;
	x->end_skew_ns = last_end - first_end;
	x->wait_ns = -1;
	x->transfer_ns = -1;
}

static void job_measure_waits(const struct job *j, struct job_instance *x, int64_t *scratch)
{
	x->wait_ns = 0;
	for (uint32_t i = 0; i < x->n; i++) {
		struct job_part *part = &x->part[i];
		int64_t until = x->arrival_ns < part->end_ns ? x->arrival_ns : part->end_ns, wait = until - part->start_ns;
		j->rank[part->rank]->call[part->call].wait_ns = wait;
		x->wait_ns += wait;
		scratch[i] = part->end_ns - x->arrival_ns;
	}
	x->transfer_ns = sort_median_i64(scratch, x->n);
	x->transfer_ns = x->transfer_ns > 0 ? x->transfer_ns : 0;
}

/* The clocks of all its ranks are known. */
static bool job_has_clocks(const struct job *j, const struct job_instance *x)
{
	for (uint32_t i = 0; i < x->n; i++)
		if (j->clock[x->part[i].rank].how == JOB_CLOCK_UNKNOWN)
			return false;
	return true;
}

/* Which instances ended at one moment. median_ns: the median end skew of those whose kind must. */
static void job_measure_ends(struct job *j, struct job_group *g, int64_t median_ns)
{
	int64_t most = JOB_SKEWS * median_ns > JOB_LEAST_SKEW_NS ? JOB_SKEWS * median_ns : JOB_LEAST_SKEW_NS;
	g->end_skew_ns = median_ns;
	for (uint32_t i = g->first; i < g->first + g->n; i++)
		j->instance[i].coincides = j->instance[i].n > 1 && j->instance[i].end_skew_ns <= most;
}

/* Two ranks' times can be compared: ends of collectives agree on their clocks, a file states them, or they are of one machine. */
static bool job_compares(const struct job *j, uint32_t a, uint32_t b)
{
	const struct job_clocks *x = &j->clock[a], *y = &j->clock[b];
	if (x->how == JOB_CLOCK_UNKNOWN || y->how == JOB_CLOCK_UNKNOWN)
		return false;
	return (x->how == JOB_CLOCK_FILE && y->how == JOB_CLOCK_FILE) || (x->ends && y->ends && (x->how != JOB_CLOCK_ENDS || x->tied == y->tied)) || (j->hosts_by == JOB_HOSTS_RECORDED && j->host[a] == j->host[b]);
}

/* A receive is not done before the send has begun. The sender may put a message that is small where the receiver finds it, and be done: what it waits is not known. */
static void job_measure_pair(const struct job *j, struct job_instance *x)
{
	uint32_t to = j->rank[x->part[0].rank]->call[x->part[0].call].kind == COMM_RECV ? 0 : 1;
	const struct job_part *recv = &x->part[to], *send = &x->part[1 - to];
	if (!job_compares(j, send->rank, recv->rank) || send->start_ns > recv->end_ns + JOB_LEAST_SKEW_NS)
		return;
	int64_t begin = send->start_ns > recv->start_ns ? send->start_ns : recv->start_ns;
	begin = begin < recv->end_ns ? begin : recv->end_ns;
	x->wait_ns = begin - recv->start_ns;
	x->transfer_ns = recv->end_ns - begin;
}

static void job_measure_group(struct job *j, struct job_group *g, int64_t *scratch)
{
	size_t n = 0;
	bool clocks = true;
	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		struct job_instance *x = &j->instance[i];
		job_measure_times(j, x);
		x->accepted = g->alone;
		if (x->accepted)
			job_measure_waits(j, x, scratch);
		if (x->paired)
			job_measure_pair(j, x);
		if (x->n < 2 || !comm_kind_ends_together(x->kind))
			continue;
		scratch[n++] = x->end_skew_ns;
		clocks &= job_has_clocks(j, x);
	}
	job_measure_ends(j, g, n ? sort_median_i64(scratch, n) : 0);
	if (!n) {
		g->refusal = g->refusal || g->alone ? g->refusal : JOB_NOT_TOGETHER;
		return;
	}
	if (!g->refusal && (!clocks || g->end_skew_ns > JOB_MOST_SKEW_NS))
		g->refusal = JOB_ENDS_APART;
	for (uint32_t i = g->first; i < g->first + g->n && !g->refusal; i++) {
		struct job_instance *x = &j->instance[i];
		x->accepted = x->coincides && comm_kind_ends_together(x->kind);
		if (x->accepted)
			job_measure_waits(j, x, scratch);
	}
}

void job_measure(struct job *j)
{
	int64_t *scratch = NEW_ARRAY((j->n_instances > j->n ? j->n_instances : j->n) + 1, int64_t);
	for (uint32_t g = 0; g < j->n_groups; g++)
		job_measure_group(j, &j->group[g], scratch);
	mem_free(scratch);
}

/* The part of [start, end) within [from, to). */
static int64_t job_overlap(int64_t start, int64_t end, int64_t from, int64_t to)
{
	start = start > from ? start : from;
	end = end < to ? end : to;
	return end > start ? end - start : 0;
}

/* What the collectives of the rank leave exposed in one step. Pieces are disjoint and ascend, and so do the collectives that they are of. */
static void job_times_add_exposed(const struct rank *r, const struct rank_step *s, struct job_times *out)
{
	uint32_t k = FIRST_WHERE(i, 0, r->n_pieces, r->piece[i].end > s->start_ns);
	uint32_t of = FIRST_WHERE(i, 0, r->n_calls, r->call[i].piece + r->call[i].n_pieces > k);
	for (; k < r->n_pieces && r->piece[k].start < s->end_ns; k++) {
		while (r->call[of].piece + r->call[of].n_pieces <= k)
			of++;
		const struct rank_call *c = &r->call[of];
		int64_t start = r->piece[k].start, end = r->piece[k].end, arrival = c->start_ns + c->wait_ns;
		int64_t all = job_overlap(start, end, s->start_ns, s->end_ns);
		int64_t wait = job_overlap(start, end < arrival ? end : arrival, s->start_ns, s->end_ns);
		out->ns[JOB_WAIT] += c->wait_ns >= 0 ? wait : 0;
		out->ns[c->wait_ns >= 0 ? JOB_TRANSFER : JOB_EXPOSED_UNKNOWN] += c->wait_ns >= 0 ? all - wait : all;
	}
}

void job_times_add_step(const struct job *j, uint32_t rank, uint32_t i, struct job_times *out)
{
	const struct rank *r = j->rank[rank];
	const struct rank_step *s = &r->step[i];
	out->steps++;
	out->ns[JOB_COMPUTE] += s->busy.ns[BUSY_COMPUTE];
	out->ns[JOB_COPY] += s->busy.ns[BUSY_EXPOSED_COPY];
	out->ns[JOB_IDLE] += s->busy.ns[BUSY_IDLE];
	out->ns[JOB_TOTAL] += s->busy.ns[BUSY_TOTAL];
	out->ns[JOB_TALK] += s->busy.ns[BUSY_COMM];
	job_times_add_exposed(r, s, out);
}

struct job_times job_times_of(const struct job *j, uint32_t rank, int64_t first, int64_t last)
{
	const struct rank *r = j->rank[rank];
	struct job_times out = {0};
	for (uint32_t i = 0; i < r->n_steps; i++)
		if (r->step[i].number >= first && r->step[i].number <= last)
			job_times_add_step(j, rank, i, &out);
	return out;
}

static bool job_is_stated(const struct job *j, const struct clock_file *clocks)
{
	return ANY_WHERE(r, 0, j->n, clock_file_find(clocks, job_rank_number(j, r)) != NULL);
}

/* Whether all times of all ranks can be added up, with room for what is computed of them. */
static bool job_can_add_up(const struct job *j)
{
	int64_t sum = 0;
	for (uint32_t r = 0; r < j->n; r++) {
		const struct rank *x = j->rank[r];
		for (uint32_t i = 0; i < x->n_calls; i++)
			if (__builtin_add_overflow(sum, x->call[i].end_ns - x->call[i].start_ns, &sum))
				return false;
		for (uint32_t i = 0; i < x->n_steps; i++)
			if (__builtin_add_overflow(sum, x->step[i].end_ns - x->step[i].start_ns, &sum))
				return false;
		for (uint32_t i = 0; i < x->n_tasks; i++)
			if (__builtin_add_overflow(sum, x->task[i].end_ns - x->task[i].start_ns, &sum))
				return false;
	}
	return sum <= INT64_MAX / 2;
}

int job_finish(struct job *j, enum job_align align, const struct clock_file *clocks, struct err *e)
{
	if (!j->n)
		return err_set(e, ERR_DATA, "the job has no rank that could be read");
	if (!job_can_add_up(j))
		return err_set(e, ERR_DATA, "the times of the %u ranks add up to more than 64 bits hold of ns (146 years): a recording is damaged", j->n);
	job_identify(j);
	if (clocks && !job_is_stated(j, clocks))
		return err_set(e, ERR_DATA, "%s states the clock of no rank that is here", clocks->path);
	job_match(j);
	job_find_hosts(j);
	job_tell_groups(j);
	job_clocks_find(j, align, clocks);
	job_measure(j);
	return 0;
}
