/* What each phase of a step adds to the step of the ranks together, and which rank is at the frontier (analysis/ranks/job_frontier.h). */
#include "analysis/ranks/job_frontier.h"
#include "analysis/ranks/job_peers.h"
#include "base/round.h"
#include "query/report.h"
#include "report/parts/job_notes.h"

enum {
	PHASES_STAGE, PHASES_PHASE, PHASES_ADDED, PHASES_SHARE, PHASES_BEYOND, PHASES_RANK, PHASES_RANK_STEPS, PHASES_SECOND, PHASES_LEAD, PHASES_OWN, PHASES_LONGEST,
	PHASES_LONGEST_RANK, PHASES_STEPS
};

static const struct section phases_section = {COLUMNS(
	[PHASES_STAGE] = {COLUMN(NUMBER, "stage", "Stage", "of the pipeline: ranks are compared with those of their stage; empty = no process group tells the stage",
	                         .flags = COLUMN_ANSWER | COLUMN_GROUP), .when = WHEN_RECORDED},
	[PHASES_PHASE] = {COLUMN(TEXT, "phase", "Phase", "of the step", .flags = COLUMN_ANSWER)},
	[PHASES_ADDED] = {COLUMN(MEAN_NS, "added_ns", "Adds to step", "mean per step: how far the phase moves the frontier, which is the longest time that any rank has taken since "
	                         "its first step began. The phases add up to the step of the ranks together", .flags = COLUMN_ANSWER)},
	[PHASES_SHARE] = {COLUMN(PERCENT, "share_pct", "Share", "of the step of the ranks together", .flags = COLUMN_ANSWER)},
	[PHASES_BEYOND] = {COLUMN(MEAN_NS, "beyond_ns", "Beyond median", "what the phase adds beyond the median rank's own time in it: the delay by the rank at the frontier",
	                          .flags = COLUMN_ANSWER)},
	[PHASES_RANK] = {COLUMN(NUMBER, "rank", "At frontier", "the rank that is at the frontier behind this phase in most steps", .flags = COLUMN_ANSWER)},
	[PHASES_RANK_STEPS] = {COLUMN(PERCENT, "rank_steps_pct", "In steps", "in how many of the steps that rank is at the frontier")},
	[PHASES_SECOND] = {COLUMN(NUMBER, "second_rank", "Next", "of the other ranks, the one that is most often at the frontier or next behind it", .flags = COLUMN_ANSWER)},
	[PHASES_LEAD] = {COLUMN(MEAN_NS, "lead_ns", "Ahead by", "mean per step: the distance from the frontier to the rank next behind it. Where it is small, no single rank holds the others up")},
	[PHASES_OWN] = {COLUMN(MEAN_NS, "own_ns", "Mean of ranks", "a rank's own time in the phase, waiting for others included: mean per step and rank", .flags = COLUMN_MINOR)},
	[PHASES_LONGEST] = {COLUMN(MEAN_NS, "longest_ns", "Longest", "own time of the rank that spent most in the phase: mean per step", .flags = COLUMN_MINOR)},
	[PHASES_LONGEST_RANK] = {COLUMN(NUMBER, "longest_rank", "Of rank", "that rank", .flags = COLUMN_MINOR)},
	[PHASES_STEPS] = {COLUMN(COUNT, "steps", "Steps", "steps that all ranks recorded; the numbers are of these", .flags = COLUMN_DETAIL)},
)};

static void phases_put_row(const struct job *j, const struct job_frontier *f, unsigned phase, uint32_t stage, struct table *t)
{
	const struct job_frontier_phase *x = &f->phase[phase];
	const double steps = f->steps;
	table_row(t);
	if (stage != UINT32_MAX)
		table_set_i64(t, PHASES_STAGE, stage);
	table_set_str(t, PHASES_PHASE, str_from(job_frontier_phase_name(f, phase)));
	table_set_f64(t, PHASES_ADDED, (double)x->added_ns / steps);
	table_set_f64(t, PHASES_SHARE, percent((double)x->added_ns, (double)f->total_ns));
	table_set_f64(t, PHASES_BEYOND, (double)x->beyond_ns / steps);
	table_set_i64(t, PHASES_RANK, job_rank_number(j, x->first));
	table_set_f64(t, PHASES_RANK_STEPS, percent(x->first_steps, steps));
	if (x->second != UINT32_MAX) {
		table_set_i64(t, PHASES_SECOND, job_rank_number(j, x->second));
		table_set_f64(t, PHASES_LEAD, (double)x->lead_ns / steps);
	}
	table_set_f64(t, PHASES_OWN, (double)x->own_ns / steps / f->n);
	table_set_f64(t, PHASES_LONGEST, (double)x->longest_ns / steps);
	table_set_i64(t, PHASES_LONGEST_RANK, job_rank_number(j, x->longest));
	table_set_i64(t, PHASES_STEPS, f->steps);
}

/* What the numbers of a set of peers are of. `of`: " of stage 2", or nothing. */
static void phases_put_notes(const struct job *j, const struct job_frontier *f, struct str of, struct table *t)
{
	uint32_t host = 0;
	for (uint32_t i = 0; i < f->n; i++)
		host += j->rank[f->rank[i]]->phases_of_host;
	if (!f->steps) {
		table_warn(t, "no step was recorded by all %u ranks" STR_FMT ": their phases cannot be compared", f->n, STR_ARG(of));
		return;
	}
	table_note(t, "the phases" STR_FMT " add up to %lld ns a step: over %u step%s, the time of the slowest of %u ranks. Each rank's time counts from its own beginning: no clocks are compared",
	           STR_ARG(of), (long long)(f->total_ns / f->steps), f->steps, f->steps == 1 ? "" : "s", f->n);
	if (f->other_steps)
		table_warn(t, "%u step%s" STR_FMT " that not all ranks recorded %s left out", f->other_steps, f->other_steps == 1 ? "" : "s", STR_ARG(of), f->other_steps == 1 ? "is" : "are");
	if (host)
		table_warn(t, "%u rank%s" STR_FMT " recorded no device work: the phases of %s are those of the host, and waiting for others is part of the phase that waits", host,
		           host == 1 ? "" : "s", STR_ARG(of), host == 1 ? "this rank" : "these ranks");
	if (f->is_merged)
		table_warn(t, "%.0f %% of the time" STR_FMT " is of no known phase: no op or range around it says forward, backward or optimizer. So all but data loading and communication is one phase: work",
		           f->unknown_pct, STR_ARG(of));
}

static int phases_run(const struct job *j, const struct report_args *args, struct table *out, struct err *e)
{
	int64_t first = args->has_steps ? args->step_first : INT64_MIN, last = args->has_steps ? args->step_last : INT64_MAX;
	struct job_peers peers;
	job_peers_find(j, &peers);
	section_start(&phases_section, args, peers.stages ? WHEN_RECORDED : 0, out);
	for (uint32_t s = 0; s < peers.n; s++) {
		struct job_frontier f;
		job_frontier_find(j, &peers.rank[peers.first[s]], peers.first[s + 1] - peers.first[s], first, last, &f);
		for (unsigned k = 0; k < JOB_FRONTIER_PHASES; k++)
			if (f.phase[k].own_ns || f.phase[k].added_ns)
				phases_put_row(j, &f, k, peers.stage[s], out);
		phases_put_notes(j, &f, !peers.stages ? STR("") : peers.stage[s] == UINT32_MAX ? STR(" of ranks without a known stage") : arena_printf(&out->arena, " of stage %u", peers.stage[s]), out);
	}
	job_peers_release(&peers);
	job_put_rank_notes(j, out);
	return out->n_rows ? 0 : err_set(e, ERR_DATA, args->has_steps ? "no such step was recorded by all ranks" : "no step was recorded by all ranks: their phases cannot be compared");
}

const struct report report_phases = {
	.name = "phases",
	.title = "What each phase adds to the step of the ranks together",
	.asks = ASKS_MOVE,
	.also = "stages frontier data_loading forward backward optimizer",
	.help = "What data loading, forward, backward, optimizer and their communication add to the step of the ranks of a job, and which rank is at the frontier: the one that has taken longest from "
	        "the beginning of its first step to the end of the phase. No delay is counted twice: what the phases add sums up to the step exactly. No common clock is needed: phases also answers for "
	        "jobs whose waiting `stragglers` and `collectives` cannot tell. Start with Beyond median: the delay by the rank under At frontier.",
	.sections = (const struct section *const[]){&phases_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.takes = REPORT_STEPS,
	.timeline = true,
	.run_job = phases_run,
};
