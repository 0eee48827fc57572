/* The ranks of a job beside each other: where the time of each one's steps went, whom the others waited for, and how its clock was found. */
#include "analysis/ranks/job_blame.h"
#include "base/mem.h"
#include "base/round.h"
#include "base/search.h"
#include "query/report.h"
#include "report/parts/job_notes.h"

enum {
	RANKS_RANK, RANKS_DEVICE, RANKS_GPU, RANKS_STEPS, RANKS_STEP, RANKS_COMPUTE, RANKS_TRANSFER, RANKS_WAIT, RANKS_UNKNOWN, RANKS_COPY, RANKS_IDLE, RANKS_LAST,
	RANKS_LAST_PCT, RANKS_FIRST, RANKS_WAITED, RANKS_OFFSET, RANKS_DRIFT, RANKS_RESIDUAL, RANKS_CLOCK, RANKS_INPUT
};

static const struct section ranks_section = {COLUMNS(
	[RANKS_RANK] = {COLUMN(NUMBER, "rank", "Rank", "number in the job; without one, the place in the list", .flags = COLUMN_ANSWER | COLUMN_GROUP)},
	[RANKS_DEVICE] = {COLUMN(NUMBER, "device", "GPU", "ordinal on its machine")},
	[RANKS_GPU] = {COLUMN(TEXT, "gpu", "Name", "of the GPU", .flags = COLUMN_DETAIL)},
	[RANKS_STEPS] = {COLUMN(COUNT, "steps", "Steps", "how many the times are means of; where none were found 1, from the first to the last device work",
	                        .flags = COLUMN_MINOR)},
	[RANKS_STEP] = {COLUMN(MEAN_NS, "step_ns", "Step", "mean length, with the device work that it launched", .flags = COLUMN_ANSWER)},
	[RANKS_COMPUTE] = {COLUMN(MEAN_NS, "compute_ns", "Computation", "mean per step: the GPU ran any kernel but collectives", .flags = COLUMN_ANSWER)},
	[RANKS_TRANSFER] = {COLUMN(MEAN_NS, "exposed_transfer_ns", "Transfer", "mean per step: only collectives ran, and all ranks had come", .flags = COLUMN_ANSWER)},
	[RANKS_WAIT] = {COLUMN(MEAN_NS, "exposed_wait_ns", "Waiting", "mean per step: only collectives ran, and the last rank had not come", .flags = COLUMN_ANSWER)},
	[RANKS_UNKNOWN] = {COLUMN(MEAN_NS, "exposed_unknown_ns", "Transfer or waiting",
	                          "mean per step: only collectives ran, and how long they waited is unknown", .flags = COLUMN_ANSWER), .when = WHEN_RECORDED},
	[RANKS_COPY] = {COLUMN(MEAN_NS, "exposed_copy_ns", "Copies", "mean per step: the GPU only copied", .flags = COLUMN_MINOR)},
	[RANKS_IDLE] = {COLUMN(MEAN_NS, "idle_ns", "Idle", "mean per step: the GPU did nothing", .flags = COLUMN_ANSWER)},
	[RANKS_LAST] = {COLUMN(COUNT, "last_count", "Came last", "collectives that it reached last, so that the others waited for it")},
	[RANKS_LAST_PCT] = {COLUMN(PERCENT, "last_pct", "Last %", "of the collectives that it took part in", .flags = COLUMN_MINOR)},
	[RANKS_FIRST] = {COLUMN(COUNT, "first_count", "Came first", "collectives that it reached first, so that it waited longest", .flags = COLUMN_DETAIL)},
	[RANKS_WAITED] = {COLUMN(NS, "waited_for_ns", "Others waited, sum",
	                         "device time that the other ranks spent waiting for this one, summed over these ranks and all steps; `stragglers` says why", .flags = COLUMN_ANSWER)},
	[RANKS_OFFSET] = {COLUMN(NS, "offset_ns", "Clock offset", "how far its clock is ahead of the job's; 0 where clocks are as recorded; empty = unknown",
	                         .flags = COLUMN_MINOR)},
	[RANKS_DRIFT] = {COLUMN(REAL, "drift_ppm", "Drift ppm", "how much faster its clock runs than the job's", .flags = COLUMN_DETAIL, .digits = 3)},
	[RANKS_RESIDUAL] = {COLUMN(NS, "residual_ns", "Residual", "median distance of the ends of its collectives from those of the other ranks, on the job's clock",
	                           .flags = COLUMN_MINOR)},
	[RANKS_CLOCK] = {COLUMN(TEXT, "clock", "Clock", "how it was found: as recorded, by ends (those of collectives), by file (--align=FILE), or unknown", .flags = COLUMN_DETAIL)},
	[RANKS_INPUT] = {COLUMN(TEXT, "input", "Input", "path of the recording", .flags = COLUMN_DETAIL | COLUMN_PATH), .when = WHEN_SEVERAL_INPUTS},
)};

/* Accepted collectives of several ranks: how many it took part in, and how many of these it reached first. */
struct ranks_parts {
	uint64_t n, first;
};

/* By rank; of several that came first in one moment, the first of the list. The caller frees it. */
static struct ranks_parts *ranks_count_parts(const struct job *j)
{
	struct ranks_parts *n = NEW_ARRAY(j->n, struct ranks_parts);
	for (uint32_t i = 0; i < j->n_instances; i++) {
		const struct job_instance *x = &j->instance[i];
		uint32_t first = 0;
		if (x->n < 2 || !x->accepted)
			continue;
		for (uint32_t k = 0; k < x->n; k++) {
			first = x->part[k].start_ns < x->part[first].start_ns ? k : first;
			n[x->part[k].rank].n++;
		}
		n[x->part[first].rank].first++;
	}
	return n;
}

static void ranks_put_clock(const struct job *j, uint32_t r, struct table *t)
{
	static const char *const words[] = {[JOB_CLOCK_RAW] = "as recorded", [JOB_CLOCK_ENDS] = "by ends", [JOB_CLOCK_FILE] = "by file", [JOB_CLOCK_UNKNOWN] = "unknown"};
	const struct job_clocks *c = &j->clock[r];
	table_set_str(t, RANKS_CLOCK, str_from(words[c->how]));
	if (c->ends)
		table_set_i64(t, RANKS_RESIDUAL, c->residual_ns);
	if (c->how == JOB_CLOCK_UNKNOWN)
		return;
	table_set_i64(t, RANKS_OFFSET, c->offset_ns);
	table_set_f64(t, RANKS_DRIFT, c->drift * 1e6);
}

/* met: of a collective of several ranks its wait is known. */
static void ranks_put_times(const struct job_times *times, bool met, struct table *t)
{
	static const struct {
		unsigned column;
		enum job_time_kind kind;
	} parts[] = {{RANKS_STEP, JOB_TOTAL}, {RANKS_COMPUTE, JOB_COMPUTE}, {RANKS_TRANSFER, JOB_TRANSFER}, {RANKS_WAIT, JOB_WAIT},
	             {RANKS_UNKNOWN, JOB_EXPOSED_UNKNOWN}, {RANKS_COPY, JOB_COPY}, {RANKS_IDLE, JOB_IDLE}};
	table_set_i64(t, RANKS_STEPS, times->steps);
	bool told = met || !times->ns[JOB_EXPOSED_UNKNOWN];
	for (size_t i = 0; i < sizeof parts / sizeof *parts && times->steps; i++)
		if (told || times->ns[parts[i].kind] || (parts[i].kind != JOB_TRANSFER && parts[i].kind != JOB_WAIT))
			table_set_f64(t, parts[i].column, (double)times->ns[parts[i].kind] / times->steps);
}

static void ranks_put_row(const struct job *j, uint32_t i, const struct job_times *times, const struct job_blame *late, const struct ranks_parts *parts, struct table *t)
{
	const struct rank *r = j->rank[i];
	table_row(t);
	table_set_i64(t, RANKS_RANK, job_rank_number(j, i));
	if (r->device != INT32_MIN)
		table_set_i64(t, RANKS_DEVICE, r->device);
	table_set_str_copy(t, RANKS_GPU, r->gpu);
	table_set_str_copy(t, RANKS_INPUT, r->path);
	ranks_put_times(times, parts->n > 0, t);
	if (parts->n) {
		table_set_i64(t, RANKS_LAST, (int64_t)late->last);
		table_set_f64(t, RANKS_LAST_PCT, percent((double)late->last, (double)parts->n));
		table_set_i64(t, RANKS_FIRST, (int64_t)parts->first);
		table_set_i64(t, RANKS_WAITED, late->total_ns);
	}
	ranks_put_clock(j, i, t);
}

/* The longest mean step of a rank without what it waited, or may have waited: no step of the job can be shorter while the rest stays as it is. */
struct ranks_least {
	int64_t rank;
	double step_ns, idle_ns; /* of which the device is idle */
	bool waited;             /* a rank is known to have waited */
};

static void ranks_add_least(struct ranks_least *l, int64_t rank, const struct job_times *times)
{
	const int64_t *ns = times->ns;
	double step_ns = times->steps ? (double)(ns[JOB_TOTAL] - ns[JOB_WAIT] - ns[JOB_EXPOSED_UNKNOWN]) / times->steps : 0;
	l->waited |= ns[JOB_WAIT] > 0;
	if (step_ns > l->step_ns)
		*l = (struct ranks_least){rank, step_ns, (double)ns[JOB_IDLE] / times->steps, l->waited};
}

static void ranks_put_least(const struct ranks_least *l, bool is_window, struct table *t)
{
	if (l->waited)
		table_note(t, "rank %lld takes longest without waiting for others, %lld ns%s (of it %lld ns idle): before that rank gets faster, %s takes no less", (long long)l->rank,
		           (long long)l->step_ns, is_window ? "" : " a step", (long long)l->idle_ns, is_window ? "the time from the first to the last device work" : "a step");
}

static bool ranks_have_inputs(const struct job *j)
{
	return ANY_WHERE(r, 1, j->n, !str_eq(j->rank[r]->path, j->rank[0]->path));
}

static int ranks_run(const struct job *j, const struct report_args *args, struct table *out, struct err *e)
{
	int64_t first = args->has_steps ? args->step_first : INT64_MIN, last = args->has_steps ? args->step_last : INT64_MAX;
	struct job_blame *late = job_blame_find(j);
	struct ranks_parts *parts = ranks_count_parts(j);
	int64_t unknown = 0;
	uint32_t steps = 0;
	struct ranks_least least = {0};
	section_start(&ranks_section, args, WHEN_RECORDED | (ranks_have_inputs(j) ? WHEN_SEVERAL_INPUTS : 0), out);
	for (uint32_t i = 0; i < j->n; i++) {
		struct job_times times = job_times_of(j, i, first, last);
		unknown += times.ns[JOB_EXPOSED_UNKNOWN];
		steps += times.steps;
		ranks_add_least(&least, job_rank_number(j, i), &times);
		ranks_put_row(j, i, &times, &late[i], &parts[i], out);
	}
	mem_free(late);
	mem_free(parts);
	if (!unknown)
		section_leave_out(&ranks_section, RANKS_UNKNOWN, out);
	ranks_put_least(&least, j->rank[0]->steps_are_window, out);
	job_put_notes(j, out);
	table_note(out, "step = computation + transfer + waiting%s + copies + idle, of each rank; collectives beside computation count as computation",
	           unknown ? " + transfer or waiting" : "");
	return steps ? 0 : err_set(e, ERR_DATA, "no rank has such a step");
}

const struct report report_ranks = {
	.name = "ranks",
	.title = "Ranks of the job",
	.asks = ASKS_MOVE,
	.also = "job distributed stragglers",
	.help = "Each rank of a distributed job: what its steps are made of, how much of its communication is waiting for other ranks, how often it came last, and how long the others "
	        "waited for it. Give the recordings of all ranks: a folder, or several files.",
	.sections = (const struct section *const[]){&ranks_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.takes = REPORT_STEPS,
	.timeline = true,
	.run_job = ranks_run,
};
