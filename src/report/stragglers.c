/* For whom the ranks of a job waited, how long, and why that rank came late (analysis/ranks/job_blame.h). */
#include "analysis/ranks/job_blame.h"
#include "base/mem.h"
#include "base/round.h"
#include "query/report.h"
#include "report/parts/hang_table.h"
#include "report/parts/job_notes.h"

/* The cause of most of the waiting is named where it is of so much of it, percent. */
static const double STRAGGLERS_NAMED_PCT = 50;
/* A rank is late all along where it is the worst in so many of the steps, percent; of fewer steps nothing is said. */
static const double STRAGGLERS_ALWAYS_PCT = 75;
enum { STRAGGLERS_STEPS = 4 };
/* The straggler rotates where no rank is the worst in so many of the steps, percent. */
static const double STRAGGLERS_ROTATES_PCT = 50;
/* Where the ranks wait less than this, percent of their time, there is no straggler. */
static const double STRAGGLERS_LEAST_PCT = 1;

enum {
	STRAGGLERS_RANK, STRAGGLERS_WAITED, STRAGGLERS_SHARE, STRAGGLERS_LAST, STRAGGLERS_CAUSE, STRAGGLERS_PHASE, STRAGGLERS_SLOWER, STRAGGLERS_MORE_WORK, STRAGGLERS_COPIES, STRAGGLERS_DATA,
	STRAGGLERS_GC, STRAGGLERS_HOST, STRAGGLERS_RECORDING, STRAGGLERS_UNKNOWN, STRAGGLERS_PASSED, STRAGGLERS_OP, STRAGGLERS_WORST, STRAGGLERS_WORST_PCT, STRAGGLERS_PATTERN
};
_Static_assert(STRAGGLERS_UNKNOWN - STRAGGLERS_SLOWER == JOB_CAUSE_UNKNOWN, "a column for each cause, in their order");

static const struct section stragglers_section = {COLUMNS(
	[STRAGGLERS_RANK] = {COLUMN(NUMBER, "rank", "Rank", "number in the job; without one, the place in the list", .flags = COLUMN_ANSWER | COLUMN_GROUP)},
	[STRAGGLERS_WAITED] = {COLUMN(NS, "waited_for_ns", "Others waited", "device time that the other ranks spent waiting for this one, summed over these ranks",
	                              .flags = COLUMN_ANSWER)},
	[STRAGGLERS_SHARE] = {COLUMN(PERCENT, "share_pct", "Share", "of all waiting", .flags = COLUMN_ANSWER)},
	[STRAGGLERS_LAST] = {COLUMN(COUNT, "last_count", "Came last", "collectives that it came last to")},
	[STRAGGLERS_CAUSE] = {COLUMN(TEXT, "cause", "Because of", "the cause of most of that waiting; empty = none is the cause of half of it", .flags = COLUMN_ANSWER)},
	[STRAGGLERS_PHASE] = {COLUMN(TEXT, "phase", "Lost in", "the phase of the step in which the rank lost most of that time: data loading, forward, backward, optimizer; empty = not known, or "
	                             "no phase has half of it", .flags = COLUMN_ANSWER)},
	[STRAGGLERS_SLOWER] = {COLUMN(NS, "slower_ns", "Slower device", "its GPU took longer than the others' for as many kernels")},
	[STRAGGLERS_MORE_WORK] = {COLUMN(NS, "more_work_ns", "More work", "its GPU took longer than the others', for more kernels")},
	[STRAGGLERS_COPIES] = {COLUMN(NS, "copies_ns", "Copies", "its GPU copied more", .flags = COLUMN_MINOR)},
	[STRAGGLERS_DATA] = {COLUMN(NS, "data_loader_ns", "Data loader", "its GPU had nothing to do while its host was in a data loader", .flags = COLUMN_MINOR)},
	[STRAGGLERS_GC] = {COLUMN(NS, "gc_ns", "GC", "its GPU had nothing to do while its host collected garbage", .flags = COLUMN_MINOR)},
	[STRAGGLERS_HOST] = {COLUMN(NS, "host_ns", "Host", "its GPU had nothing to do: its host launched work later than those of the others")},
	[STRAGGLERS_RECORDING] = {COLUMN(NS, "recorded_ns", "Recorded otherwise",
	                                 "as host, of a rank that recorded stacks or memory and most others did not: recording is what made it late, and it may be no straggler without"),
	                          .when = WHEN_RECORDED},
	[STRAGGLERS_UNKNOWN] = {COLUMN(NS, "unknown_ns", "Unknown", "where nothing that the rank did explains it, as at the first collective of the recording",
	                               .flags = COLUMN_MINOR)},
	[STRAGGLERS_PASSED] = {COLUMN(NS, "passed_on_ns", "Passed on", "waiting at collectives that it came last to because another rank had kept it: counted for that rank",
	                              .flags = COLUMN_MINOR)},
	[STRAGGLERS_OP] = {COLUMN(TEXT, "op", "At op", "the op of the collective at which the others waited longest", .flags = COLUMN_MINOR)},
	[STRAGGLERS_WORST] = {COLUMN(COUNT, "worst_steps", "Worst steps", "steps in which the others waited longer because of this rank than because of any other", .flags = COLUMN_MINOR)},
	[STRAGGLERS_WORST_PCT] = {COLUMN(PERCENT, "worst_steps_pct", "Worst in", "worst steps / steps in which ranks waited for others")},
	[STRAGGLERS_PATTERN] = {COLUMN(TEXT, "pattern", "Pattern",
	                               "always: the worst in 75 % of the steps and more; at times: in fewer; empty = in none, or the job has fewer than 4 steps")},
)};

static enum job_cause stragglers_main_cause(const struct job_blame *b)
{
	unsigned most = 0;
	for (unsigned c = 1; c < JOB_N_CAUSES; c++)
		most = b->ns[c] > b->ns[most] ? c : most;
	return (enum job_cause)most;
}

/* The known phase with half of the waiting and more; "" = there is none. */
static const char *stragglers_main_phase(const struct job_blame *b)
{
	for (unsigned k = 0; k < RANK_SPENT_OTHER; k++)
		if (percent_or_zero((double)b->phase_ns[k], (double)b->total_ns) >= STRAGGLERS_NAMED_PCT)
			return rank_phase_name[rank_spent_phase[k]];
	return "";
}

/* steps: of the job. worst: in how many of them ranks waited for others, so that one is the worst. */
static void stragglers_put_row(const struct job *j, uint32_t r, const struct job_blame *b, int64_t all, uint32_t steps, uint32_t worst, struct table *t)
{
	enum job_cause main = stragglers_main_cause(b);
	table_row(t);
	table_set_i64(t, STRAGGLERS_RANK, job_rank_number(j, r));
	table_set_i64(t, STRAGGLERS_WAITED, b->total_ns);
	table_set_f64(t, STRAGGLERS_SHARE, percent((double)b->total_ns, (double)all));
	table_set_i64(t, STRAGGLERS_LAST, (int64_t)b->last);
	if (percent((double)b->ns[main], (double)b->total_ns) >= STRAGGLERS_NAMED_PCT)
		table_set_str(t, STRAGGLERS_CAUSE, str_from(job_cause_name[main]));
	if (*stragglers_main_phase(b))
		table_set_str(t, STRAGGLERS_PHASE, str_from(stragglers_main_phase(b)));
	for (unsigned c = 0; c < JOB_N_CAUSES; c++)
		table_set_i64(t, STRAGGLERS_SLOWER + c, b->ns[c]);
	table_set_i64(t, STRAGGLERS_PASSED, b->passed_ns);
	table_set_str_copy(t, STRAGGLERS_OP, intern_get(&j->rank[r]->texts, b->op));
	table_set_i64(t, STRAGGLERS_WORST, b->steps);
	if (worst)
		table_set_f64(t, STRAGGLERS_WORST_PCT, percent(b->steps, worst));
	if (steps >= STRAGGLERS_STEPS && b->steps)
		table_set_str(t, STRAGGLERS_PATTERN, percent(b->steps, steps) >= STRAGGLERS_ALWAYS_PCT ? STR("always") : STR("at times"));
}

/* Whether the others wait for one rank, or for another one each time. worst: in how many steps ranks waited for others. */
static void stragglers_put_verdict(const struct job *j, const struct job_blame *blame, int64_t waited, uint32_t worst, struct table *t)
{
	uint32_t first = 0, ranks = 0;
	double time = 0;
	for (uint32_t r = 0; r < j->n; r++) {
		first = blame[r].steps > blame[first].steps ? r : first;
		ranks += blame[r].steps > 0;
		for (uint32_t s = 0; s < j->rank[r]->n_steps; s++)
			time += (double)(j->rank[r]->step[s].end_ns - j->rank[r]->step[s].start_ns);
	}
	double pct = percent_or_zero(blame[first].steps, worst);
	if (percent_or_zero((double)waited, time) < STRAGGLERS_LEAST_PCT)
		table_note(t, "waiting is %.2f %% of the time of the ranks' steps: there is no straggler to speak of", percent_or_zero((double)waited, time));
	else if (worst < STRAGGLERS_STEPS)
		table_note(t, "to tell whether the straggler stays the same takes %d steps with waiting; here %s %u", STRAGGLERS_STEPS, worst == 1 ? "is" : "are", worst);
	else if (pct >= STRAGGLERS_ALWAYS_PCT)
		table_note(t, "the straggler is persistent: rank %lld is the one that the others waited longest for in %u of %u steps", (long long)job_rank_number(j, first), blame[first].steps, worst);
	else if (pct < STRAGGLERS_ROTATES_PCT)
		table_note(t, "the straggler rotates: %u ranks in turn are the one that the others waited longest for, and none in more than %u of %u steps", ranks, blame[first].steps, worst);
	else
		table_note(t, "the straggler is mostly rank %lld, in %u of %u steps; in the others the ranks waited longer for another one", (long long)job_rank_number(j, first), blame[first].steps, worst);
}

static int stragglers_refuse(const struct job *j, struct err *e)
{
	const char *why = j->n < 2           ? "the recordings of several ranks are needed, and one is here"
	                  : !j->n_instances ? "no kernel in the recordings is of a collective, nor a range of the host (gloo, MPI, UCC)"
	                                    : "the wait of no collective is known, and `opscope report collectives` says why";
	return err_set(e, ERR_DATA, "who waited for whom is not known: %s%s", why,
	               j->n < 2 ? "" : "; `opscope report phases` needs no common clock, and names the rank that is behind in each phase");
}

static int stragglers_run(const struct job *j, const struct report_args *args, struct table *out, struct err *e)
{
	if (job_is_hang(j))
		return hang_run(j, args, out, e);
	struct job_blame *blame = job_blame_find(j);
	int64_t all = 0;
	uint64_t told = 0;
	int64_t otherwise = 0;
	uint32_t worst = 0;
	section_start(&stragglers_section, args, WHEN_RECORDED, out);
	for (uint32_t r = 0; r < j->n; r++) {
		all += blame[r].total_ns;
		worst += blame[r].steps;
		otherwise += blame[r].ns[JOB_CAUSE_RECORDING];
	}
	for (uint32_t i = 0; i < j->n_instances; i++)
		told += j->instance[i].accepted && j->instance[i].n > 1;
	for (uint32_t r = 0; r < j->n; r++)
		if (blame[r].total_ns || blame[r].passed_ns)
			stragglers_put_row(j, r, &blame[r], all, job_blame_steps(j), worst, out);
	if (told)
		stragglers_put_verdict(j, blame, all, worst, out);
	mem_free(blame);
	if (!otherwise)
		section_leave_out(&stragglers_section, STRAGGLERS_RECORDING, out);
	table_note(out, "of %u collectives, who came last is known of %llu; all waiting at these, summed over the ranks: %lld ns", j->n_instances, (unsigned long long)told, (long long)all);
	job_put_notes(j, out);
	if (!told)
		return stragglers_refuse(j, e);
	return table_sort(out, STR("waited_for_ns"), true, e);
}

const struct report report_stragglers = {
	.name = "stragglers",
	.title = "Ranks that others waited for",
	.asks = ASKS_MOVE,
	.also = "straggler slow_rank late imbalance",
	.help = "For which rank the others waited, how long, and why it came late. The ranks of a group leave a collective together, so that the rank which comes last to the next one took "
	        "longer in between: its GPU computed longer (a slower device, or more work), or had nothing to do (the host, its data loader, garbage collection, or the host of a rank that was recorded with more than the others), or the rank had waited for "
	        "another one itself, which is blamed then. A rank is compared with those of the same process group, not with other pipeline stages.",
	.sections = (const struct section *const[]){&stragglers_section, &hang_section, NULL}, /* of dumps of a job that hangs */
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.timeline = true,
	.run_job = stragglers_run,
};
