/* The search for a key op by hand: sort the ops by their number of calls, take one that is called about as often as there are steps, early in the step. */
#include "analysis/steps/iterations.h"

#include "analysis/analysis.h"
#include "base/mem.h"
#include "base/sort.h"

/* What steps may differ by, as the standard deviation of their lengths divided by the mean, and what share of the time from the first to the last device
 * work they must fill, for an op to be proposed as what marks them. */
static const double MOST_SPREAD = 0.3, LEAST_COVERED = 0.5;

/* Calls of a name, by string id, on the thread or stream that called it first: each rank of several counts its own. */
struct iterations_candidates_tally {
	uint32_t *calls, *track;
	int64_t *first, *last;
	double *squares;         /* sum of the squares of the distances from call to call */
};

static struct iterations_candidates_tally tally_new(uint32_t names)
{
	return (struct iterations_candidates_tally){NEW_ARRAY(names, uint32_t), NEW_ARRAY(names, uint32_t), NEW_ARRAY(names, int64_t), NEW_ARRAY(names, int64_t),
	                                            NEW_ARRAY(names, double)};
}

static void tally_release(struct iterations_candidates_tally *t)
{
	mem_free(t->calls);
	mem_free(t->track);
	mem_free(t->first);
	mem_free(t->last);
	mem_free(t->squares);
}

static void count_call(struct iterations_candidates_tally *t, uint32_t name, uint32_t track, int64_t start)
{
	if (t->calls[name] && t->track[name] != track)
		return;
	if (!t->calls[name]++)
		t->first[name] = start; /* rows of a track stand in order of start */
	else
		t->squares[name] += (double)(start - t->last[name]) * (double)(start - t->last[name]);
	t->last[name] = start;
	t->track[name] = track;
}

static int64_t device_extent_ns(const struct profile *p)
{
	int64_t first = INT64_MAX, last = INT64_MIN;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		first = p->gpu_op.start_ns[g] < first ? p->gpu_op.start_ns[g] : first;
		last = gpu_end(p, g) > last ? gpu_end(p, g) : last;
	}
	return first < last ? last - first : 0;
}

/* Steps from call to call of this name would be about equally long, and would fill most of the time of device work. Two calls make 1 step, which has nothing
 * to be compared with. */
static bool makes_even_steps(const struct iterations_candidates_tally *t, uint32_t name, int64_t device_ns)
{
	double steps = t->calls[name] - 1, sum = (double)(t->last[name] - t->first[name]), mean = sum / steps;
	double variance = t->squares[name] / steps - mean * mean;
	return mean > 0 && sum >= LEAST_COVERED * (double)device_ns && variance <= MOST_SPREAD * MOST_SPREAD * mean * mean;
}

static bool op_kind(uint8_t kind)
{
	return kind == SPAN_OP || kind == SPAN_USER || kind == SPAN_RANGE;
}

/* Outermost ranges, those aside that are called but once, such as one around everything. */
static bool count_ranges(const struct profile *p, struct iterations_candidates_tally *t)
{
	uint32_t *all = NEW_ARRAY(p->strings.n, uint32_t), track = ROW_NONE;
	int64_t open_until = INT64_MIN;
	bool any = false;
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (op_kind(p->span.kind[i]))
			all[p->span.name[i]]++;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (!op_kind(p->span.kind[i]) || all[p->span.name[i]] < 2)
			continue;
		if (track != p->span.track[i])
			open_until = INT64_MIN;
		track = p->span.track[i];
		if (p->span.start_ns[i] < open_until)
			continue;
		if (p->span.kind[i] != SPAN_RANGE)
			open_until = span_end(p, i);
		count_call(t, p->span.name[i], track, p->span.start_ns[i]);
		any = true;
	}
	mem_free(all);
	return any;
}

/* The number of calls that most names have, at least 2; the smaller one of equals. */
static uint32_t iterations_candidates_usual_count(const struct profile *p, const struct iterations_candidates_tally *t)
{
	struct sort_item *item = NEW_ARRAY(p->strings.n, struct sort_item);
	uint32_t n = 0, best = 0, longest = 0;
	for (uint32_t s = 0; s < p->strings.n; s++)
		if (t->calls[s] > 1)
			item[n++] = (struct sort_item){t->calls[s], s, 0};
	sort_items(item, n);
	for (uint32_t i = 0, run; i < n; i += run) {
		for (run = 1; i + run < n && item[i + run].key == item[i].key;)
			run++;
		if (run > longest) {
			longest = run;
			best = (uint32_t)item[i].key;
		}
	}
	mem_free(item);
	return best;
}

static uint64_t away(uint32_t calls, uint32_t expected)
{
	return calls > expected ? calls - expected : expected - calls;
}

unsigned key_candidates(const struct profile *p, uint32_t expected, bool even, unsigned max, struct arena *a, struct key_candidate **out)
{
	struct iterations_candidates_tally t = tally_new(p->strings.n);
	if (!count_ranges(p, &t))
		for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
			count_call(&t, p->gpu_op.name[g], p->gpu_op.track[g], p->gpu_op.start_ns[g]);
	if (!expected)
		expected = iterations_candidates_usual_count(p, &t);
	struct sort_item *item = NEW_ARRAY(p->strings.n, struct sort_item);
	uint32_t n = 0;
	int64_t device_ns = device_extent_ns(p);
	for (uint32_t s = 0; s < p->strings.n; s++)
		if (t.calls[s] > 1 && (!even || makes_even_steps(&t, s, device_ns)))
			item[n++] = (struct sort_item){sort_key_i64(t.first[s]), s, 0};
	sort_items(item, n);
	for (uint32_t i = 0; i < n; i++)
		item[i].key = away(t.calls[item[i].row], expected);
	sort_items(item, n); /* equal keys keep their order: the first called first */
	if (n > max)
		n = max;
	*out = ARENA_ARRAY(a, n, struct key_candidate);
	for (uint32_t i = 0; i < n; i++)
		(*out)[i] = (struct key_candidate){profile_str(p, item[i].row), t.calls[item[i].row], t.first[item[i].row]};
	mem_free(item);
	tally_release(&t);
	return n;
}
