/* The clocks of ranks against each other, by the ends of collectives that end on all ranks at one moment.
 *
 * The ranks of a group are placed by the median difference of their ends from those of a rank that has its place; so on from group to group. Then, in turns, each
 * instance's end becomes the median over its ranks, and each rank's offset the median distance of its ends from these: what a few instances get wrong moves
 * no median. Where a rank's ends span a second or more, the median slope of their distances is its drift. */
#include "analysis/ranks/job.h"

#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

#include <math.h>
#include <stdlib.h>

enum {
	JOB_ALIGN_TURNS = 8,
	JOB_ALIGN_DRIFT_ENDS = 16,           /* ends by which a drift can be told, at least */
};
static const int64_t JOB_ALIGN_SAME_NS = 100000;       /* clocks agree: median end skew at most */
static const int64_t JOB_ALIGN_APART_NS = 1000000;     /* what is left of a median end skew after alignment, at most */
static const int64_t JOB_ALIGN_DRIFT_SPAN_NS = 1000000000;
/* No two clocks that tell the date are farther apart: recordings that are, are of different runs. */
static const int64_t JOB_ALIGN_DATED_NS = 60000000000;
static const int64_t JOB_ALIGN_DATE_NS = 1000000000000000000; /* later times are dates: 2001 */

/* One end that counts: instance and rank. */
struct job_align_end {
	uint32_t instance, rank;
	int64_t ns;              /* on the rank's own clock */
};

struct job_align_work {
	struct job *j;
	struct job_align_end *by_instance, *by_rank; /* the same ends in both orders */
	uint32_t *first_of_rank; /* n + 1 */
	size_t n;
	int64_t *end;            /* by instance: on the job's clock */
	uint32_t *component;     /* by rank; UINT32_MAX = not placed */
	int64_t *scratch;
};

static int job_align_by_rank(const void *a, const void *b)
{
	const struct job_align_end *x = a, *y = b;
	return COMPARE(x->rank, y->rank) ?: COMPARE(x->ns, y->ns) ?: COMPARE(x->instance, y->instance);
}

static bool job_align_counts(const struct job *j, const struct job_instance *x)
{
	return x->n > 1 && comm_kind_ends_together(x->kind) && j->group[x->group].refusal == JOB_ACCEPTED;
}

static void job_align_collect(struct job_align_work *w)
{
	struct job *j = w->j;
	size_t n = 0;
	for (uint32_t i = 0; i < j->n_instances; i++)
		n += job_align_counts(j, &j->instance[i]) ? j->instance[i].n : 0;
	w->by_instance = NEW_ARRAY(n, struct job_align_end);
	w->by_rank = NEW_ARRAY(n, struct job_align_end);
	w->scratch = NEW_ARRAY(n, int64_t);
	w->end = NEW_ARRAY(j->n_instances, int64_t);
	w->first_of_rank = NEW_ARRAY(j->n + 1, uint32_t);
	w->component = NEW_ARRAY(j->n, uint32_t);
	for (uint32_t i = 0; i < j->n_instances; i++) {
		const struct job_instance *x = &j->instance[i];
		for (uint32_t k = 0; job_align_counts(j, x) && k < x->n; k++) {
			const struct job_part *part = &x->part[k];
			w->by_instance[w->n++] = (struct job_align_end){i, part->rank, j->rank[part->rank]->call[part->call].end_ns};
			w->first_of_rank[part->rank + 1]++;
		}
	}
	for (uint32_t r = 0; r < j->n; r++)
		w->first_of_rank[r + 1] += w->first_of_rank[r];
	memcpy(w->by_rank, w->by_instance, w->n * sizeof *w->by_rank);
	if (w->n)
		qsort(w->by_rank, w->n, sizeof *w->by_rank, job_align_by_rank);
}

/* The end of rank r in an instance; false when it has no part. */
static bool job_align_end_of(const struct job *j, const struct job_instance *x, uint32_t r, int64_t *ns)
{
	uint32_t at = FIRST_WHERE(k, 0, x->n, x->part[k].rank >= r);
	if (at == x->n || x->part[at].rank != r)
		return false;
	*ns = j->rank[r]->call[x->part[at].call].end_ns;
	return true;
}

/* Places rank r by its ends in group g against those of rank `by`, which has its place. False: they share no end. */
static bool job_align_place(struct job_align_work *w, const struct job_group *g, uint32_t by, uint32_t r)
{
	struct job *j = w->j;
	size_t n = 0;
	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		int64_t mine, other;
		if (job_align_counts(j, &j->instance[i]) && job_align_end_of(j, &j->instance[i], r, &mine) && job_align_end_of(j, &j->instance[i], by, &other))
			w->scratch[n++] = mine - other;
	}
	if (!n)
		return false;
	j->clock[r].offset_ns = j->clock[by].offset_ns + sort_median_i64(w->scratch, n);
	w->component[r] = w->component[by];
	return true;
}

/* Places what group g ties to a rank of the component. Returns how many ranks. */
static uint32_t job_align_spread(struct job_align_work *w, const struct job_group *g, uint32_t component)
{
	struct job *j = w->j;
	uint32_t placed = 0, by = UINT32_MAX;
	if (!g->n || g->refusal)
		return 0;
	const struct job_instance *all = &j->instance[g->first];
	for (uint32_t i = 1; i < g->n; i++)
		all = j->instance[g->first + i].n > all->n ? &j->instance[g->first + i] : all;
	for (uint32_t k = 0; k < all->n && by == UINT32_MAX; k++)
		by = w->component[all->part[k].rank] == component ? all->part[k].rank : UINT32_MAX;
	for (uint32_t k = 0; k < all->n && by != UINT32_MAX; k++)
		if (w->component[all->part[k].rank] == UINT32_MAX)
			placed += job_align_place(w, g, by, all->part[k].rank);
	return placed;
}

/* Every rank with an end gets a place in a component; returns the component with most ranks. */
static uint32_t job_align_place_all(struct job_align_work *w)
{
	struct job *j = w->j;
	uint32_t n = 0, best = 0, most = 0;
	memset(w->component, 0xff, j->n * sizeof *w->component);
	for (uint32_t r = 0; r < j->n; r++) {
		if (w->component[r] != UINT32_MAX || w->first_of_rank[r] == w->first_of_rank[r + 1])
			continue;
		uint32_t size = 1;
		w->component[r] = n;
		for (uint32_t placed = 1; placed; size += placed) {
			placed = 0;
			for (uint32_t g = 0; g < j->n_groups; g++)
				placed += job_align_spread(w, &j->group[g], n);
		}
		best = size > most ? n : best;
		most = size > most ? size : most;
		n++;
	}
	return best;
}

static void job_align_find_ends(struct job_align_work *w)
{
	for (size_t from = 0, to; from < w->n; from = to) {
		for (to = from; to < w->n && w->by_instance[to].instance == w->by_instance[from].instance; to++)
			w->scratch[to - from] = job_time(w->j, w->by_instance[to].rank, w->by_instance[to].ns);
		w->end[w->by_instance[from].instance] = sort_median_i64(w->scratch, to - from);
	}
}

/* Moves each rank by the median distance of its ends. Returns the farthest move. */
static int64_t job_align_move(struct job_align_work *w)
{
	int64_t farthest = 0;
	for (uint32_t r = 0; r < w->j->n; r++) {
		uint32_t from = w->first_of_rank[r], to = w->first_of_rank[r + 1];
		for (uint32_t i = from; i < to; i++)
			w->scratch[i - from] = job_time(w->j, r, w->by_rank[i].ns) - w->end[w->by_rank[i].instance];
		if (from == to)
			continue;
		int64_t by = sort_median_i64(w->scratch, to - from);
		w->j->clock[r].offset_ns += by;
		farthest = llabs(by) > farthest ? llabs(by) : farthest;
	}
	return farthest;
}

static void job_align_polish(struct job_align_work *w)
{
	for (int i = 0; i < JOB_ALIGN_TURNS; i++) {
		job_align_find_ends(w);
		if (job_align_move(w) < 1000)
			break;
	}
	job_align_find_ends(w);
}

/* The median slope of the distances over pairs of ends half the recording apart; 0 where it stays within the noise. */
static double job_align_slope(struct job_align_work *w, uint32_t r)
{
	uint32_t from = w->first_of_rank[r], n = w->first_of_rank[r + 1] - from, half = n / 2;
	const struct job_align_end *v = &w->by_rank[from];
	if (n < JOB_ALIGN_DRIFT_ENDS)
		return 0;
	int64_t lo = INT64_MAX, hi = INT64_MIN;
	for (uint32_t i = 0; i < n; i++) {
		lo = v[i].ns < lo ? v[i].ns : lo;
		hi = v[i].ns > hi ? v[i].ns : hi;
	}
	if (hi - lo < JOB_ALIGN_DRIFT_SPAN_NS)
		return 0;
	enum { PER_NS = 1000000000 }; /* slopes as whole numbers: ns a second */
	size_t pairs = 0;
	for (uint32_t i = 0; i + half < n; i++) {
		int64_t a = job_time(w->j, r, v[i].ns) - w->end[v[i].instance], b = job_time(w->j, r, v[i + half].ns) - w->end[v[i + half].instance];
		if (v[i + half].ns != v[i].ns)
			w->scratch[pairs++] = (int64_t)((double)(b - a) * PER_NS / (double)(v[i + half].ns - v[i].ns));
	}
	double slope = pairs ? (double)sort_median_i64(w->scratch, pairs) / PER_NS : 0;
	return fabs(slope) * (double)(hi - lo) > 2 * (double)w->j->clock[r].residual_ns ? slope : 0;
}

static void job_align_residuals(struct job_align_work *w)
{
	for (uint32_t r = 0; r < w->j->n; r++) {
		uint32_t from = w->first_of_rank[r], to = w->first_of_rank[r + 1];
		for (uint32_t i = from; i < to; i++)
			w->scratch[i - from] = llabs(job_time(w->j, r, w->by_rank[i].ns) - w->end[w->by_rank[i].instance]);
		w->j->clock[r].ends = to - from;
		w->j->clock[r].residual_ns = from < to ? sort_median_i64(w->scratch, to - from) : 0;
	}
}

/* Median over the instances of latest - earliest end on the clocks as they are. */
static int64_t job_align_skew(struct job_align_work *w)
{
	size_t n = 0;
	for (size_t from = 0, to; from < w->n; from = to) {
		int64_t lo = INT64_MAX, hi = INT64_MIN;
		for (to = from; to < w->n && w->by_instance[to].instance == w->by_instance[from].instance; to++) {
			int64_t t = job_time(w->j, w->by_instance[to].rank, w->by_instance[to].ns);
			lo = t < lo ? t : lo;
			hi = t > hi ? t : hi;
		}
		w->scratch[n++] = hi - lo;
	}
	return n ? sort_median_i64(w->scratch, n) : 0;
}

/* Offsets against the first rank of each component, so that its clock is that of the component. Those of `main` are the job's. */
static void job_align_anchor(struct job_align_work *w, uint32_t main)
{
	struct job *j = w->j;
	int64_t *first = NEW_ARRAY(j->n, int64_t); /* by component */
	for (uint32_t r = j->n; r-- > 0;)
		if (w->component[r] != UINT32_MAX)
			first[w->component[r]] = j->clock[r].offset_ns;
	for (uint32_t r = 0; r < j->n; r++) {
		bool placed = w->component[r] != UINT32_MAX;
		j->clock[r].how = placed ? JOB_CLOCK_ENDS : JOB_CLOCK_UNKNOWN;
		j->clock[r].apart = placed && w->component[r] != main;
		j->clock[r].tied = w->component[r];
		j->clock[r].offset_ns = placed ? j->clock[r].offset_ns - first[w->component[r]] : 0;
	}
	mem_free(first);
}

static bool job_align_is_dated(const struct job *j, uint32_t r)
{
	return j->clock[r].how == JOB_CLOCK_ENDS && !j->clock[r].apart && j->rank[r]->call[0].start_ns > JOB_ALIGN_DATE_NS;
}

/* Ranks whose clocks tell the date, and another one than most of the others, are of another run. */
static void job_align_drop_other_days(struct job_align_work *w)
{
	struct job *j = w->j;
	size_t n = 0;
	for (uint32_t r = 0; r < j->n; r++)
		if (job_align_is_dated(j, r))
			w->scratch[n++] = j->clock[r].offset_ns;
	int64_t date = n ? sort_median_i64(w->scratch, n) : 0;
	for (uint32_t r = 0; r < j->n; r++)
		if (job_align_is_dated(j, r) && llabs(j->clock[r].offset_ns - date) > JOB_ALIGN_DATED_NS)
			j->clock[r] = (struct job_clocks){.how = JOB_CLOCK_UNKNOWN, .residual_ns = j->clock[r].residual_ns, .ends = j->clock[r].ends};
}

/* The middle between the first and the last end of a rank that count; without one, of its collectives. */
static int64_t job_align_middle(const struct job_align_work *w, uint32_t r)
{
	const struct rank *rank = w->j->rank[r];
	uint32_t from = w->first_of_rank[r], to = w->first_of_rank[r + 1];
	if (from < to)
		return w->by_rank[from].ns / 2 + w->by_rank[to - 1].ns / 2;
	return rank->n_calls ? rank->call[0].start_ns / 2 + rank->call[rank->n_calls - 1].start_ns / 2 : 0;
}

static void job_align_by_file(struct job_align_work *w, const struct clock_file *clocks)
{
	struct job *j = w->j;
	for (uint32_t r = 0; r < j->n; r++) {
		const struct clock_of_rank *c = clock_file_find(clocks, job_rank_number(j, r));
		j->clock[r] = (struct job_clocks){.how = JOB_CLOCK_UNKNOWN};
		if (c && c->is_known)
			j->clock[r] = (struct job_clocks){.how = JOB_CLOCK_FILE, .offset_ns = c->offset_ns, .drift = c->drift, .mid_ns = job_align_middle(w, r)};
	}
	job_align_find_ends(w);
	job_align_residuals(w);
}

static void job_align_by_ends(struct job_align_work *w, enum job_align align)
{
	struct job *j = w->j;
	uint32_t component = job_align_place_all(w);
	job_align_polish(w);
	job_align_residuals(w);
	bool drifts = false;
	for (uint32_t r = 0; r < j->n; r++)
		if (w->first_of_rank[r] < w->first_of_rank[r + 1])
			j->clock[r].mid_ns = job_align_middle(w, r);
	double *slope = NEW_ARRAY(j->n, double);
	for (uint32_t r = 0; r < j->n; r++)
		drifts |= (slope[r] = job_align_slope(w, r)) != 0;
	for (uint32_t r = 0; r < j->n; r++)
		j->clock[r].drift = slope[r];
	mem_free(slope);
	if (drifts)
		job_align_polish(w);
	job_align_anchor(w, component);
	job_align_find_ends(w);
	job_align_residuals(w);
	if (job_align_skew(w) > JOB_ALIGN_APART_NS)
		for (uint32_t r = 0; r < j->n; r++)
			j->clock[r] = (struct job_clocks){.how = JOB_CLOCK_UNKNOWN, .residual_ns = j->clock[r].residual_ns, .ends = j->clock[r].ends};
	else if (align == JOB_ALIGN_AUTO)
		job_align_drop_other_days(w);
}

void job_clocks_find(struct job *j, enum job_align align, const struct clock_file *clocks)
{
	struct job_align_work w = {.j = j};
	mem_free(j->clock);
	j->clock = NEW_ARRAY(j->n, struct job_clocks);
	job_align_collect(&w);
	if (clocks) {
		job_align_by_file(&w, clocks);
	} else if (w.n) {
		job_align_find_ends(&w);
		job_align_residuals(&w);
		if (align == JOB_ALIGN_ENDS || (align == JOB_ALIGN_AUTO && job_align_skew(&w) > JOB_ALIGN_SAME_NS))
			job_align_by_ends(&w, align);
	}
	mem_free(w.by_instance);
	mem_free(w.by_rank);
	mem_free(w.scratch);
	mem_free(w.end);
	mem_free(w.first_of_rank);
	mem_free(w.component);
}
