#include "base/mem.h"
#include "base/sort.h"
#include "predecessors/dlprof/experts/experts.h"

/* The guide says "large variation" without a figure. A standard deviation of a quarter of the mean is one; steady is what differs from the median
 * by a tenth at most. */
static const double LARGE = 0.25, STEADY = 0.1;
/* A range worth proposing, and iterations to judge by. */
enum { SHORTEST = 3, FEWEST = 4 };

static int64_t dlprof_iteration_range_length_of(const struct dlprof_run *r, uint32_t i)
{
	return dlprof_iteration_end(r, i) - r->iterations.start_ns[i];
}

/* The longest run of steady iterations in the range; false when none is long enough. */
static bool find_steady(const struct dlprof_run *r, uint32_t *first, uint32_t *last)
{
	uint32_t n = r->last - r->first + 1, best = 0, from = r->first;
	int64_t *sorted = NEW_ARRAY(n, int64_t);
	for (uint32_t i = 0; i < n; i++)
		sorted[i] = dlprof_iteration_range_length_of(r, r->first + i);
	sort_i64(sorted, n);
	double median = (double)sorted[n / 2];
	mem_free(sorted);
	for (uint32_t i = r->first; i <= r->last; i++) {
		double differs = ((double)dlprof_iteration_range_length_of(r, i) - median) / median;
		if (differs > STEADY || differs < -STEADY) {
			from = i + 1;
		} else if (i - from + 1 > best) {
			best = i - from + 1;
			*first = from;
			*last = i;
		}
	}
	return best >= SHORTEST;
}

/* What is behind the last call of the key op is where the recording was cut or the program ended: of any length, it says nothing of the others. */
static uint32_t last_whole(const struct dlprof_run *r)
{
	bool has_tail = r->iterations.calls && r->last + 1 == r->iterations.n && r->last > r->first;
	return r->last - has_tail;
}

static void dlprof_iteration_range_run(const struct profile *p, struct findings *f)
{
	const struct dlprof_run *r = dlprof_run_of(f, p);
	double mean, deviation;
	uint32_t first, last, judged = last_whole(r);
	dlprof_iterations_mean(&r->iterations, r->first, judged, &mean, &deviation);
	if (judged - r->first + 1 < FEWEST || deviation <= LARGE * mean)
		return;
	struct str advice = STR("Try limiting the iteration range to a steady range by rerunning with the --database option and setting --iter_start "
	                        "and --iter_stop");
	if (find_steady(r, &first, &last))
		advice = arena_printf(&f->arena, "Try limiting the iteration range to a steady range by rerunning with the --database option and "
		                      "setting --iter_start=%u --iter_stop=%u", first, last);
	findings_quote(f, arena_printf(&f->arena, "The aggregated iteration range of %u to %u contains a lot of variation", r->first, r->last), advice);
}

const struct detector detector_dlprof_iteration_range = {
	.id = "bad_iteration_range_detector",
	.title = "Iterations differ much in length",
	.why = "Means over start-up, steady work and the end say nothing of any of them.",
	.fix = "Aggregate a steady range.",
	.disprove = "The iterations do different work by design.",
	.experts = &dlprof_experts,
	.run = dlprof_iteration_range_run,
};
