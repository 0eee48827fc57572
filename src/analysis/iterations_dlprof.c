/* DLProf's cutting of a recording into iterations, and the search for a key op by hand that its guide describes: sort the ops by their
 * number of calls, take one that is called about as often as there are steps, early in the step. */
#include "analysis/iterations.h"

#include <math.h>

#include "analysis/analysis.h"
#include "analysis/iterations_names.h"
#include "base/mem.h"
#include "base/sort.h"

void dlprof_iterations_release(struct dlprof_iterations *d)
{
	mem_free(d->start_ns);
	mem_free(d->stop_ns);
	*d = (struct dlprof_iterations){0};
}

int64_t dlprof_zero_ns(const struct profile *p)
{
	int64_t first, last;
	while (p->whole)
		p = p->whole;
	return p->zero_is_start || !work_extent(p, &first, &last) ? 0 : first;
}

/* TensorFlow's node that counts steps, under each name that it goes by. */
static bool find_default(const struct profile *p, struct key_calls *k)
{
	uint8_t *wanted = NEW_ARRAY(p->strings.n, uint8_t);
	struct str name = {0};
	for (uint32_t s = 1; s < p->strings.n; s++) {
		unsigned row = str_has(profile_str(p, s), STR("global_step")) ? step_key_of(profile_str(p, s)) : n_step_keys;
		wanted[s] = row < n_step_keys && strstr(step_keys[row].pattern, "global_step");
		name = wanted[s] ? profile_str(p, s) : name;
	}
	if (name.n)
		key_calls_of_names(p, wanted, name, k);
	mem_free(wanted);
	return k->n > 0;
}

void iterations_dlprof(const struct profile *p, struct str key, struct dlprof_iterations *out)
{
	struct key_calls k = {0};
	int64_t first, last;
	uint32_t n = 0;
	int64_t *border = NULL;
	*out = (struct dlprof_iterations){.key = key.n ? key : STR("global_step")};
	if (key.n ? key_calls_find(p, key, &k) : find_default(p, &k))
		border = key_borders(&k, true, &n);
	if (!work_extent(p, &first, &last))
		first = last = 0;
	if (p->zero_is_start && first > 0)
		first = 0;
	out->calls = k.n;
	out->n = n + 1;
	out->start_ns = NEW_ARRAY(out->n, int64_t);
	out->stop_ns = NEW_ARRAY(out->n, int64_t);
	for (uint32_t i = 0; i <= n; i++) {
		out->start_ns[i] = i ? border[i - 1] : first;
		out->stop_ns[i] = i < n ? border[i] - 1 : last;
		if (out->stop_ns[i] < out->start_ns[i]) /* the last event is the key op's */
			out->stop_ns[i] = out->start_ns[i];
	}
	mem_free(border);
	key_calls_release(&k);
}

/* Lengths sum to the length of the whole. */
static double length_of(const struct dlprof_iterations *d, uint32_t i)
{
	int64_t end = i + 1 < d->n ? d->start_ns[i + 1] : d->stop_ns[i];
	return (double)(end - d->start_ns[i]);
}

void iterations_mean(const struct dlprof_iterations *d, uint32_t first, uint32_t last, double *mean, double *deviation)
{
	double sum = 0, squares = 0;
	uint32_t n = 0;
	for (uint32_t i = first; i <= last && i < d->n; i++, n++)
		sum += length_of(d, i);
	*mean = n ? sum / n : 0;
	for (uint32_t i = first; i <= last && i < d->n; i++)
		squares += (length_of(d, i) - *mean) * (length_of(d, i) - *mean);
	*deviation = n ? sqrt(squares / n) : 0;
}

/* What steps may differ by, as the standard deviation of their lengths divided by the mean, and what share of the time from the first to the last device
 * work they must fill, for an op to be proposed as what marks them. */
static const double MOST_SPREAD = 0.3, LEAST_COVERED = 0.5;

/* Calls of a name, by string id, on the thread or stream that called it first: each rank of several counts its own. */
struct tally {
	uint32_t *calls, *track;
	int64_t *first, *last;
	double *squares;         /* sum of the squares of the distances from call to call */
};

static struct tally tally_new(uint32_t names)
{
	return (struct tally){NEW_ARRAY(names, uint32_t), NEW_ARRAY(names, uint32_t), NEW_ARRAY(names, int64_t), NEW_ARRAY(names, int64_t),
	                      NEW_ARRAY(names, double)};
}

static void tally_release(struct tally *t)
{
	mem_free(t->calls);
	mem_free(t->track);
	mem_free(t->first);
	mem_free(t->last);
	mem_free(t->squares);
}

static void count_call(struct tally *t, uint32_t name, uint32_t track, int64_t start)
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
static bool makes_even_steps(const struct tally *t, uint32_t name, int64_t device_ns)
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
static bool count_ranges(const struct profile *p, struct tally *t)
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
static uint32_t usual_count(const struct profile *p, const struct tally *t)
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
	struct tally t = tally_new(p->strings.n);
	if (!count_ranges(p, &t))
		for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
			count_call(&t, p->gpu_op.name[g], p->gpu_op.track[g], p->gpu_op.start_ns[g]);
	if (!expected)
		expected = usual_count(p, &t);
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
