/* How much of the communication of each rank runs beside computation. */
#include "analysis/ranks/job.h"
#include "base/round.h"
#include "query/report.h"
#include "report/parts/job_notes.h"

enum { OVERLAP_RANK, OVERLAP_STEPS, OVERLAP_STEP, OVERLAP_COMPUTE, OVERLAP_BOTH, OVERLAP_EXPOSED, OVERLAP_OTHER, OVERLAP_PCT, OVERLAP_SHARE };

static const struct section overlap_section = {COLUMNS(
	[OVERLAP_RANK] = {COLUMN(NUMBER, "rank", "Rank", "number in the job; without one, the place in the list", .flags = COLUMN_ANSWER | COLUMN_GROUP)},
	[OVERLAP_STEPS] = {COLUMN(COUNT, "steps", "Steps", "how many the times are means of; where none were found 1, from the first to the last device work",
	                          .flags = COLUMN_MINOR)},
	[OVERLAP_STEP] = {COLUMN(MEAN_NS, "step_ns", "Step", "mean length, with the device work that it launched", .flags = COLUMN_ANSWER)},
	[OVERLAP_COMPUTE] = {COLUMN(MEAN_NS, "compute_only_ns", "Computation alone", "mean per step: computation without communication beside it", .flags = COLUMN_ANSWER)},
	[OVERLAP_BOTH] = {COLUMN(MEAN_NS, "overlap_ns", "Both", "mean per step: computation and communication beside each other", .flags = COLUMN_ANSWER)},
	[OVERLAP_EXPOSED] = {COLUMN(MEAN_NS, "communication_only_ns", "Communication alone", "mean per step: communication without computation beside it",
	                            .flags = COLUMN_ANSWER)},
	[OVERLAP_OTHER] = {COLUMN(MEAN_NS, "other_ns", "Neither", "mean per step: the GPU only copied, or did nothing")},
	[OVERLAP_PCT] = {COLUMN(PERCENT, "overlap_pct", "Overlapped", "both / all communication; empty = no communication",
	                        .flags = COLUMN_ANSWER)},
	[OVERLAP_SHARE] = {COLUMN(PERCENT, "communication_pct", "Alone, of step", "communication alone / step")},
)};

static void overlap_put_row(const struct job *j, uint32_t r, const struct job_times *times, struct table *t)
{
	const int64_t *ns = times->ns;
	int64_t exposed = ns[JOB_TRANSFER] + ns[JOB_WAIT] + ns[JOB_EXPOSED_UNKNOWN], both = ns[JOB_TALK] - exposed;
	double n = times->steps;
	table_row(t);
	table_set_i64(t, OVERLAP_RANK, job_rank_number(j, r));
	table_set_i64(t, OVERLAP_STEPS, times->steps);
	table_set_f64(t, OVERLAP_STEP, (double)ns[JOB_TOTAL] / n);
	table_set_f64(t, OVERLAP_COMPUTE, (double)(ns[JOB_COMPUTE] - both) / n);
	table_set_f64(t, OVERLAP_BOTH, (double)both / n);
	table_set_f64(t, OVERLAP_EXPOSED, (double)exposed / n);
	table_set_f64(t, OVERLAP_OTHER, (double)(ns[JOB_TOTAL] - ns[JOB_COMPUTE] - exposed) / n);
	if (ns[JOB_TALK])
		table_set_f64(t, OVERLAP_PCT, percent((double)both, (double)ns[JOB_TALK]));
	table_set_f64(t, OVERLAP_SHARE, percent((double)exposed, (double)ns[JOB_TOTAL]));
}

static int overlap_run(const struct job *j, const struct report_args *args, struct table *out, struct err *e)
{
	int64_t first = args->has_steps ? args->step_first : INT64_MIN, last = args->has_steps ? args->step_last : INT64_MAX;
	section_start(&overlap_section, args, 0, out);
	for (uint32_t r = 0; r < j->n; r++) {
		struct job_times times = job_times_of(j, r, first, last);
		if (times.steps)
			overlap_put_row(j, r, &times, out);
	}
	job_put_notes(j, out);
	table_note(out, "step = computation alone + both + communication alone + neither, of each rank");
	return out->n_rows ? 0 : err_set(e, ERR_DATA, "no rank has such a step");
}

const struct report report_overlap = {
	.name = "overlap",
	.title = "Communication beside computation",
	.asks = ASKS_MOVE,
	.also = "hidden_communication comm_overlap",
	.help = "How much of each rank's communication runs beside computation and costs nothing, and how much does not. The step is divided into computation alone, both, communication alone and "
	        "neither, which add up.",
	.sections = (const struct section *const[]){&overlap_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.takes = REPORT_STEPS,
	.timeline = true,
	.run_job = overlap_run,
};
