/* The stages of a pipeline: what each computes, and its bubble (analysis/ranks/job_pipeline.h). */
#include "analysis/ranks/job_pipeline.h"
#include "base/mem.h"
#include "base/round.h"
#include "base/sort.h"
#include "query/report.h"
#include "report/parts/job_notes.h"

#include <stdlib.h>

enum pipeline_by { PIPELINE_BY_STAGE, PIPELINE_BY_STEP, PIPELINE_BY_RANK };

enum {
	PIPELINE_STEP, PIPELINE_STAGE, PIPELINE_RANK, PIPELINE_RANKS, PIPELINE_STEPS, PIPELINE_STEP_NS, PIPELINE_COMPUTE, PIPELINE_FORWARD, PIPELINE_BACKWARD, PIPELINE_COLLECTIVE, PIPELINE_P2P,
	PIPELINE_IDLE, PIPELINE_BUBBLE_PCT, PIPELINE_LEAST_PCT, PIPELINE_BEYOND_PCT, PIPELINE_MICROBATCHES, PIPELINE_SLOWEST, PIPELINE_SLOWEST_NS
};

static const struct section pipeline_section = {COLUMNS(
	[PIPELINE_STEP] = {COLUMN(NUMBER, "step", "Step", "its number", .flags = COLUMN_ANSWER | COLUMN_GROUP), .by = BY(PIPELINE_BY_STEP)},
	[PIPELINE_STAGE] = {COLUMN(NUMBER, "stage", "Stage", "of the pipeline, from 0 on", .flags = COLUMN_ANSWER | COLUMN_GROUP)},
	[PIPELINE_RANK] = {COLUMN(NUMBER, "rank", "Rank", "number in the job", .flags = COLUMN_ANSWER | COLUMN_GROUP), .by = BY(PIPELINE_BY_RANK)},
	[PIPELINE_RANKS] = {COLUMN(COUNT, "ranks", "Ranks", "ranks of the stage; times are means over these", .flags = COLUMN_MINOR), .not_by = BY(PIPELINE_BY_RANK)},
	[PIPELINE_STEPS] = {COLUMN(COUNT, "steps", "Steps", "steps that count; times are means over these, too", .flags = COLUMN_DETAIL), .not_by = BY(PIPELINE_BY_STEP)},
	[PIPELINE_STEP_NS] = {COLUMN(MEAN_NS, "step_ns", "Length", "mean length of the step; of a timeline of workers, from the first to the last task of all workers", .flags = COLUMN_ANSWER)},
	[PIPELINE_COMPUTE] = {COLUMN(MEAN_NS, "compute_ns", "Computation", "mean per step and rank: computation ran", .flags = COLUMN_ANSWER)},
	[PIPELINE_FORWARD] = {COLUMN(MEAN_NS, "forward_ns", "Forward", "of computation: forward", .flags = COLUMN_MINOR), .when = WHEN_RECORDED},
	[PIPELINE_BACKWARD] = {COLUMN(MEAN_NS, "backward_ns", "Backward", "of computation: backward", .flags = COLUMN_MINOR), .when = WHEN_RECORDED},
	[PIPELINE_COLLECTIVE] = {COLUMN(MEAN_NS, "collective_ns", "Collectives", "mean: only collectives other than sends and receives ran")},
	[PIPELINE_P2P] = {COLUMN(MEAN_NS, "p2p_ns", "Send and receive", "mean: only sends and receives ran, transferring or waiting")},
	[PIPELINE_IDLE] = {COLUMN(MEAN_NS, "idle_ns", "Idle", "mean: nothing ran")},
	[PIPELINE_BUBBLE_PCT] = {COLUMN(PERCENT, "bubble_pct", "Bubble", "of the step: nothing ran, or sends and receives alone", .flags = COLUMN_ANSWER)},
	[PIPELINE_LEAST_PCT] = {COLUMN(PERCENT, "least_bubble_pct", "Least bubble", "the least bubble of stages that are all alike: (stages - 1) / (microbatches + stages - 1), in a schedule without "
	                               "interleaved chunks", .flags = COLUMN_MINOR), .when = WHEN_RECORDED},
	[PIPELINE_BEYOND_PCT] = {COLUMN(PERCENT, "beyond_mean_pct", "Beyond mean", "by how much the stage computes longer than the mean of the stages; negative: shorter", .flags = COLUMN_ANSWER)},
	[PIPELINE_MICROBATCHES] = {COLUMN(REAL, "microbatches", "Microbatches", "forward computations in a step; mean", .flags = COLUMN_MINOR, .digits = 1), .when = WHEN_RECORDED},
	[PIPELINE_SLOWEST] = {COLUMN(NUMBER, "slowest_rank", "Slowest rank", "the rank of the stage that computes longest", .flags = COLUMN_ANSWER), .not_by = BY(PIPELINE_BY_RANK)},
	[PIPELINE_SLOWEST_NS] = {COLUMN(MEAN_NS, "slowest_compute_ns", "It computes", "computation of that rank: mean per step, or in this step", .flags = COLUMN_MINOR), .not_by = BY(PIPELINE_BY_RANK)},
)};

/* By stage, then rank, then step. */
static int pipeline_by_rank(const void *a, const void *b)
{
	const struct job_pipeline_cell *x = a, *y = b;
	return COMPARE(x->stage, y->stage) ?: COMPARE(x->rank, y->rank) ?: COMPARE(x->step, y->step);
}

/* Sums over cells that follow each other. */
struct pipeline_sum {
	double step, compute, forward, backward, collective, p2p, idle, microbatches;
	uint32_t n, ranks;
	uint32_t slowest;            /* rank, and its mean */
	double slowest_ns;
};

static struct pipeline_sum pipeline_add(const struct job_pipeline_cell *v, uint32_t n)
{
	struct pipeline_sum s = {.n = n, .slowest_ns = -1};
	for (uint32_t i = 0, to; i < n; i = to) {
		double compute = 0;
		for (to = i; to < n && v[to].rank == v[i].rank; to++) {
			const struct job_pipeline_cell *c = &v[to];
			s.step += (double)c->step_ns;
			s.compute += (double)c->compute_ns;
			s.forward += (double)c->forward_ns;
			s.backward += (double)c->backward_ns;
			s.collective += (double)c->collective_ns;
			s.p2p += (double)c->p2p_ns;
			s.idle += (double)c->idle_ns;
			s.microbatches += c->microbatches;
			compute += (double)c->compute_ns;
		}
		s.ranks++;
		compute /= to - i;
		if (compute > s.slowest_ns) {
			s.slowest_ns = compute;
			s.slowest = v[i].rank;
		}
	}
	return s;
}

static bool pipeline_same_row(const struct job_pipeline_cell *a, const struct job_pipeline_cell *b, enum pipeline_by by)
{
	return a->stage == b->stage && (by != PIPELINE_BY_STEP || a->step == b->step) && (by != PIPELINE_BY_RANK || a->rank == b->rank);
}

static uint32_t pipeline_row_end(const struct job_pipeline *x, uint32_t at, enum pipeline_by by)
{
	uint32_t to = at + 1;
	while (to < x->n && pipeline_same_row(&x->cell[at], &x->cell[to], by))
		to++;
	return to;
}

/* The mean of the stages' mean computation, of the cells from `at` up to `end`. */
static double pipeline_mean_of_stages(const struct job_pipeline *x, uint32_t at, uint32_t end)
{
	double sum = 0;
	uint32_t n = 0;
	for (uint32_t to; at < end; at = to, n++) {
		double compute = 0;
		for (to = at; to < end && x->cell[to].stage == x->cell[at].stage; to++)
			compute += (double)x->cell[to].compute_ns;
		sum += compute / (to - at);
	}
	return n ? sum / n : 0;
}

static void pipeline_put_row(const struct job *j, const struct job_pipeline *x, uint32_t at, uint32_t to, double mean, struct table *t)
{
	const struct job_pipeline_cell *c = &x->cell[at];
	struct pipeline_sum s = pipeline_add(c, to - at);
	const double n = s.n, microbatches = s.microbatches / n;
	table_row(t);
	table_set_i64(t, PIPELINE_STEP, c->step);
	table_set_i64(t, PIPELINE_STAGE, c->stage);
	table_set_i64(t, PIPELINE_RANK, job_rank_number(j, c->rank));
	table_set_i64(t, PIPELINE_RANKS, s.ranks);
	table_set_i64(t, PIPELINE_STEPS, s.n / s.ranks);
	table_set_f64(t, PIPELINE_STEP_NS, s.step / n);
	table_set_f64(t, PIPELINE_COMPUTE, s.compute / n);
	table_set_f64(t, PIPELINE_FORWARD, s.forward / n);
	table_set_f64(t, PIPELINE_BACKWARD, s.backward / n);
	table_set_f64(t, PIPELINE_COLLECTIVE, s.collective / n);
	table_set_f64(t, PIPELINE_P2P, s.p2p / n);
	table_set_f64(t, PIPELINE_IDLE, s.idle / n);
	table_set_f64(t, PIPELINE_BUBBLE_PCT, percent(s.p2p + s.idle, s.step));
	if (mean > 0)
		table_set_f64(t, PIPELINE_BEYOND_PCT, 100 * (s.compute / n - mean) / mean);
	if (s.microbatches > 0) {
		table_set_f64(t, PIPELINE_MICROBATCHES, microbatches);
		table_set_f64(t, PIPELINE_LEAST_PCT, 100.0 * (x->stages - 1) / (microbatches + x->stages - 1));
	}
	table_set_i64(t, PIPELINE_SLOWEST, job_rank_number(j, s.slowest));
	table_set_f64(t, PIPELINE_SLOWEST_NS, s.slowest_ns);
}

static void pipeline_put_rows(const struct job *j, struct job_pipeline *x, enum pipeline_by by, struct table *t)
{
	if (by != PIPELINE_BY_STEP)
		qsort(x->cell, x->n, sizeof *x->cell, pipeline_by_rank);
	double mean = pipeline_mean_of_stages(x, 0, x->n);
	for (uint32_t at = 0, to, end = 0; at < x->n; at = to) {
		to = pipeline_row_end(x, at, by);
		if (by == PIPELINE_BY_STEP && at == end) {
			for (end = at; end < x->n && x->cell[end].step == x->cell[at].step; end++)
				;
			mean = pipeline_mean_of_stages(x, at, end);
		}
		pipeline_put_row(j, x, at, to, mean, t);
	}
}

static void pipeline_put_notes(const struct job *j, const struct job_pipeline *x, struct table *t)
{
	double step = 0, bubble = 0;
	for (uint32_t i = 0; i < x->n; i++) {
		step += (double)x->cell[i].step_ns;
		bubble += (double)x->cell[i].p2p_ns + (double)x->cell[i].idle_ns;
	}
	if (step > 0)
		table_note(t, "the bubble is %.1f %% of the time of all ranks. It holds all waiting of one stage for another, and idle time with any other cause: a slow rank, a host that launches late", percent(bubble, step));
	table_note(t, "step = computation + collectives + send and receive + idle");
	if (x->unknown)
		table_warn(t, "the stage of %u rank%s is not known: no process group of a pipeline lists %s", x->unknown, x->unknown == 1 ? "" : "s", x->unknown == 1 ? "it" : "them");
	if (x->of_workers)
		table_note(t, "`opscope report slowdown` says what slow workers and unlike stages cost");
	job_put_rank_notes(j, t);
}

static int pipeline_run(const struct job *j, const struct report_args *args, struct table *out, struct err *e)
{
	int64_t first = args->has_steps ? args->step_first : INT64_MIN, last = args->has_steps ? args->step_last : INT64_MAX;
	struct job_pipeline x;
	if (job_pipeline_find(j, first, last, &x, e) < 0)
		return -1;
	section_start(&pipeline_section, args, x.of_workers ? WHEN_RECORDED : 0, out);
	pipeline_put_rows(j, &x, (enum pipeline_by)args->variant->by, out);
	pipeline_put_notes(j, &x, out);
	job_pipeline_release(&x);
	return 0;
}

const struct report report_pipeline = {
	.name = "pipeline",
	.title = "Stages of the pipeline: computation, imbalance, bubble",
	.asks = ASKS_MOVE,
	.also = "pipeline_parallel bubble stages imbalance microbatches",
	.help = "What each stage of a pipeline computes, by how much the stages differ, and how much of the step is bubble: nothing ran, or sends and receives alone. By stage, by stage of each step, or by rank. "
	        "Stages are those that process groups of a pipeline tell (`collectives --group-by=group` says what a group divides), or those of a timeline of workers (see `slowdown`).",
	.sections = (const struct section *const[]){&pipeline_section, NULL},
	.variants = (const struct report_variant[]){{.group_by = "stage", .by = PIPELINE_BY_STAGE}, {.group_by = "step", .by = PIPELINE_BY_STEP}, {.group_by = "rank", .by = PIPELINE_BY_RANK}, {0}},
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.takes = REPORT_STEPS | REPORT_WORKERS,
	.timeline = true,
	.run_job = pipeline_run,
};
