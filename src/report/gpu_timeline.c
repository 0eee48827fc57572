#include "analysis/costs/recompute.h"
#include "analysis/costs/sampled.h"
#include "analysis/recording.h"
#include "analysis/steps/steps.h"
#include "analysis/time/busy.h"
#include "analysis/time/gpus.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/round.h"
#include "query/report.h"

#include <math.h>
#include <stdio.h>

static const char *const kind_text[BUSY_KINDS] = {
	[BUSY_COMPUTE] = "computation",
	[BUSY_EXPOSED_COMM] = "exposed_communication",
	[BUSY_EXPOSED_COPY] = "exposed_copy",
	[BUSY_BUSY] = "busy",
	[BUSY_IDLE] = "idle",
	[BUSY_TOTAL] = "total",
	[BUSY_COMM] = "communication",
	[BUSY_COPY] = "copy",
};

/* The groups into which device work falls: take[g] is the index of its group. */
enum { MAX_GROUPS = 2 };
struct gpu_timeline_groups {
	uint8_t *take;
	struct str name[MAX_GROUPS];
	unsigned n;
};

enum gpu_timeline_grouping { GPU_TIMELINE_BY_DEVICE, GPU_TIMELINE_BY_LAUNCH, GPU_TIMELINE_BY_RECOMPUTE };

static void group_by_launch(const struct profile *p, struct gpu_timeline_groups *g)
{
	g->n = 2;
	g->name[0] = STR("launched in the recording");
	g->name[1] = STR("launched before it");
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++)
		g->take[i] = p->gpu_op.call[i] == ROW_NONE;
}

static void group_by_recompute(const struct profile *p, struct gpu_timeline_groups *g)
{
	uint8_t *in = recompute_spans(p);
	g->n = 2;
	g->name[0] = STR("not recomputation");
	g->name[1] = STR("recomputation");
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++)
		g->take[i] = p->gpu_op.call[i] != ROW_NONE && in[p->gpu_op.call[i]];
	mem_free(in);
}

static double gpu_timeline_share(int64_t part, const struct busy *whole)
{
	return percent((double)part, (double)whole->ns[BUSY_TOTAL]);
}

enum { GPU_TIMELINE_GROUP, GPU_TIMELINE_KIND, GPU_TIMELINE_TIME, GPU_TIMELINE_SHARE };

static const struct section gpu_timeline_section = {COLUMNS(
	[GPU_TIMELINE_GROUP] = {COLUMN(TEXT, "group", "Device", "mean, min, max: over the GPUs, each by itself")},
	[GPU_TIMELINE_KIND] = {COLUMN(TEXT, "kind", "What", "what the device did; exposed: while it did nothing that stands before in the list")},
	[GPU_TIMELINE_TIME] = {COLUMN(NS, "time_ns", "Time", "union over all streams of a GPU")},
	[GPU_TIMELINE_SHARE] = {COLUMN(PERCENT, "share_pct", "Share", "of total: the device's, else that of all")},
)};

/* Shares are of `whole`: b itself, or everything when the group is not a device. Such a group has neither idle nor total time of its own, since the
 * device does other work while the group rests. `sums_up`: the kinds divide the same time, and a note says so. */
static void gpu_timeline_own_rows(struct table *t, struct str group, const struct busy *b, const struct busy *whole, bool sums_up)
{
	const long long events = (long long)b->events;
	for (int k = 0; k < BUSY_KINDS; k++) {
		if (b != whole && (k == BUSY_IDLE || k == BUSY_TOTAL))
			continue;
		table_row(t);
		table_set_str_copy(t, GPU_TIMELINE_GROUP, group);
		table_set_str(t, GPU_TIMELINE_KIND, str_from(kind_text[k]));
		table_set_i64(t, GPU_TIMELINE_TIME, b->ns[k]);
		table_set_f64(t, GPU_TIMELINE_SHARE, gpu_timeline_share(b->ns[k], whole));
	}
	if (!sums_up)
		return;
	struct buf sum = {0};
	buf_printf(&sum, STR_FMT ": computation %lld + exposed communication %lld + exposed copy %lld = busy %lld", STR_ARG(group),
	           (long long)b->ns[BUSY_COMPUTE], (long long)b->ns[BUSY_EXPOSED_COMM], (long long)b->ns[BUSY_EXPOSED_COPY],
	           (long long)b->ns[BUSY_BUSY]);
	if (b == whole)
		buf_printf(&sum, "; busy + idle %lld = total %lld", (long long)b->ns[BUSY_IDLE], (long long)b->ns[BUSY_TOTAL]);
	table_note(t, STR_FMT " ns (%lld device events).", STR_ARG(buf_view(&sum)), events);
	buf_release(&sum);
}

/* Device events and the sum of their durations. */
struct gpu_timeline_tally {
	uint64_t events;
	int64_t ns;
};

static void tally_add(struct gpu_timeline_tally *t, int64_t dur)
{
	t->events++;
	t->ns += dur;
}

/* An event without duration lies where it starts. */
static bool lies_in(const struct intervals *s, int64_t start, int64_t dur)
{
	return intervals_length_within(s, start, start + (dur > 0 ? dur : 1)) > 0;
}

/* Notes device work that was launched before the recording began, or by calls that were not recorded. */
static void note_early(const struct profile *p, const struct intervals *window, struct table *t)
{
	struct gpu_timeline_tally early = {0};
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		if (p->gpu_op.call[g] == ROW_NONE && lies_in(window, p->gpu_op.start_ns[g], p->gpu_op.dur_ns[g]))
			tally_add(&early, p->gpu_op.dur_ns[g]);
	if (early.events)
		table_warn(t, "%llu device events (%lld ns) were launched before the recording began, or their launch was not recorded: "
		           "`--group-by=launch` shows them apart.", (unsigned long long)early.events, (long long)early.ns);
}

enum figure { MEAN, LEAST, MOST, FIGURES };

/* Mean, least and most of each kind over n GPUs. */
static void gpu_timeline_combine(const struct busy *v, uint32_t n, struct busy out[FIGURES])
{
	for (int k = 0; k < BUSY_KINDS; k++) {
		int64_t sum = 0, least = INT64_MAX, most = INT64_MIN;
		for (uint32_t i = 0; i < n; i++) {
			sum += v[i].ns[k];
			least = v[i].ns[k] < least ? v[i].ns[k] : least;
			most = v[i].ns[k] > most ? v[i].ns[k] : most;
		}
		out[MEAN].ns[k] = sum / n;
		out[LEAST].ns[k] = least;
		out[MOST].ns[k] = most;
	}
	/* Each mean is rounded: busy and idle follow from the parts, so that the parts sum up. */
	out[MEAN].ns[BUSY_BUSY] = out[MEAN].ns[BUSY_COMPUTE] + out[MEAN].ns[BUSY_EXPOSED_COMM] + out[MEAN].ns[BUSY_EXPOSED_COPY];
	out[MEAN].ns[BUSY_IDLE] = out[MEAN].ns[BUSY_TOTAL] - out[MEAN].ns[BUSY_BUSY];
	for (uint32_t i = 0; i < n; i++)
		for (int f = 0; f < FIGURES; f++)
			out[f].events += v[i].events;
}

/* Rows of each GPU by itself; before them, where there are several, their mean, minimum and maximum. */
static void device_rows(const struct profile *p, const struct gpus *gpus, const struct busy *v, struct table *t)
{
	static const char *const name[FIGURES] = {"mean", "min", "max"};
	struct busy over[FIGURES] = {0};
	gpu_timeline_combine(v, gpus->n, over);
	for (int f = 0; f < FIGURES && gpus->n > 1; f++)
		gpu_timeline_own_rows(t, str_from(name[f]), &over[f], &over[f], f == MEAN);
	for (uint32_t i = 0; i < gpus->n; i++) {
		struct str device = gpus->device[i] == INT32_MIN ? STR("not stated") : arena_printf(&t->arena, "%d", gpus->device[i]);
		gpu_timeline_own_rows(t, gpus->n > 1 ? device : STR("all"), &v[i], &v[i], true);
		if (gpus->n == 1)
			table_note(t, "all: device " STR_FMT ", the only one with work.", STR_ARG(device));
	}
}

/* Rows of groups of device work: where there are several GPUs, the means over them. */
static void group_rows(const struct profile *p, const struct gpus *gpus, const struct gpu_timeline_groups *g, const struct intervals *window, const struct busy *each,
                       struct table *t)
{
	struct busy *v = NEW_ARRAY(gpus->n, struct busy), all[FIGURES] = {0};
	gpu_timeline_combine(each, gpus->n, all);
	gpu_timeline_own_rows(t, gpus->n > 1 ? STR("mean") : STR("all"), &all[MEAN], &all[MEAN], true);
	for (unsigned k = 0; k < g->n; k++) {
		struct busy over[FIGURES] = {0};
		busy_measure_each(p, gpus, g->take, (uint8_t)k, window, v);
		gpu_timeline_combine(v, gpus->n, over);
		if (over[MEAN].events && over[MEAN].events == all[MEAN].events)
			table_note(t, "all: " STR_FMT ".", STR_ARG(g->name[k]));
		else if (over[MEAN].events)
			gpu_timeline_own_rows(t, g->name[k], &over[MEAN], &all[MEAN], true);
	}
	mem_free(v);
}

static void note_unstated(const struct profile *p, const struct gpus *gpus, struct table *t)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++)
		n += gpus_of(gpus, p, i) == GPUS_NONE;
	if (n)
		table_warn(t, "%llu device events count for no GPU: the input does not tell which of %u they are of.", (unsigned long long)n, gpus->n);
}

static void gpu_timeline_own_table(const struct profile *p, const struct report_args *args, const struct intervals *window, struct table *t)
{
	struct gpu_timeline_groups g = {.take = NEW_ARRAY(p->gpu_op.rows.n, uint8_t)};
	struct gpus gpus;
	bool devices = args->variant->by == GPU_TIMELINE_BY_DEVICE;
	gpus_find(p, &gpus);
	struct busy *each = NEW_ARRAY(gpus.n, struct busy);
	section_start(&gpu_timeline_section, args, 0, t);
	if (!devices)
		t->data[GPU_TIMELINE_GROUP].col.title = "Group";
	busy_measure_each(p, &gpus, NULL, 0, window, each);
	if (args->variant->by == GPU_TIMELINE_BY_LAUNCH)
		group_by_launch(p, &g);
	else if (!devices)
		group_by_recompute(p, &g);
	if (devices)
		device_rows(p, &gpus, each, t);
	else
		group_rows(p, &gpus, &g, window, each, t);
	if (args->variant->by != GPU_TIMELINE_BY_LAUNCH)
		note_early(p, window, t);
	note_unstated(p, &gpus, t);
	mem_free(each);
	mem_free(g.take);
	gpus_release(&gpus);
}

/* ---- what was sampled ---- */

enum {
	GPU_METRICS_DEVICE, GPU_METRICS_STEP, GPU_METRICS_TIME, GPU_METRICS_SAMPLED, GPU_METRICS_METRIC, GPU_METRICS_DRAM = GPU_METRICS_METRIC + SAMPLED_METRICS
};

static const struct section gpu_metrics_section = {.name = "gpu_metrics", .title = "What was sampled of the GPUs", .by = BY(GPU_TIMELINE_BY_DEVICE), COLUMNS(
	[GPU_METRICS_DEVICE] = {COLUMN(NUMBER, "device", "GPU", "ordinal", .flags = COLUMN_ANSWER), .when = WHEN_SAMPLES},
	[GPU_METRICS_STEP] = {COLUMN(TEXT, "step", "Step", "number of the step; all = the whole time that the report is of", .flags = COLUMN_ANSWER), .when = WHEN_SAMPLES},
	[GPU_METRICS_TIME] = {COLUMN(NS, "time_ns", "Time", "length of that time"), .when = WHEN_SAMPLES},
	[GPU_METRICS_SAMPLED] = {COLUMN(PERCENT, "sampled_pct", "Sampled %", "of that time, how much samples are of; the other columns are means over this part, idle time included, and empty where it is less than half or a few points of a curve"),
	                         .when = WHEN_SAMPLES},
	[GPU_METRICS_METRIC + SAMPLED_SM_ACTIVE] = {COLUMN(PERCENT, "sm_active_pct", "SMs active %", "SMs that had a warp", .flags = COLUMN_ANSWER), .when = WHEN_SAMPLES},
	[GPU_METRICS_METRIC + SAMPLED_SM_ISSUE] = {COLUMN(PERCENT, "sm_issue_pct", "SM issue %", "schedulers that issued an instruction", .flags = COLUMN_MINOR), .when = WHEN_SAMPLES},
	[GPU_METRICS_METRIC + SAMPLED_TENSOR_ACTIVE] = {COLUMN(PERCENT, "tensor_active_pct", "Tensor active %", "pipes of Tensor Cores that were issuing", .flags = COLUMN_ANSWER), .when = WHEN_SAMPLES},
	[GPU_METRICS_METRIC + SAMPLED_WARPS] = {COLUMN(PERCENT, "warps_pct", "Warps %", "warps in flight, of the most that all SMs hold", .flags = COLUMN_MINOR), .when = WHEN_SAMPLES},
	[GPU_METRICS_METRIC + SAMPLED_DRAM_READ] = {COLUMN(PERCENT, "dram_read_pct", "DRAM read %", "the device's memory was reading, of its peak bandwidth", .flags = COLUMN_MINOR), .when = WHEN_SAMPLES},
	[GPU_METRICS_METRIC + SAMPLED_DRAM_WRITE] = {COLUMN(PERCENT, "dram_write_pct", "DRAM write %", "the same of writing", .flags = COLUMN_MINOR), .when = WHEN_SAMPLES},
	[GPU_METRICS_DRAM] = {COLUMN(PERCENT, "dram_pct", "DRAM %", "both", .flags = COLUMN_ANSWER), .when = WHEN_SAMPLES},
)};

/* The curves first..end of one GPU in these pieces of time. */
static void gpu_timeline_put_sampled(struct table *t, const struct sampled_curves *c, uint32_t first, uint32_t end, struct str step, const struct interval *piece, size_t n)
{
	enum { POINTS_LEAST = 4 };
	struct sampled_time of[SAMPLED_METRICS] = {{0}};
	double v[SAMPLED_METRICS];
	int64_t ns = 0, sampled = 0;
	for (size_t i = 0; i < n; i++) {
		ns += piece[i].end - piece[i].start;
		for (uint32_t k = first; k < end; k++)
			sampled_time_add(&of[c->v[k].metric], c, &c->v[k], piece[i].start, piece[i].end);
	}
	for (unsigned m = 0; m < SAMPLED_METRICS; m++) {
		sampled = of[m].ns > sampled ? of[m].ns : sampled;
		v[m] = of[m].ns && of[m].ns >= ns / 2 && of[m].ns / POINTS_LEAST >= c->v[first].point_ns ? of[m].weighted / (double)of[m].ns : NAN;
	}
	table_row(t);
	table_set_i64(t, GPU_METRICS_DEVICE, c->v[first].device);
	table_set_str_copy(t, GPU_METRICS_STEP, step);
	table_set_i64(t, GPU_METRICS_TIME, ns);
	table_set_f64(t, GPU_METRICS_SAMPLED, percent((double)sampled, (double)ns));
	for (unsigned m = 0; m < SAMPLED_METRICS; m++)
		table_set_f64(t, GPU_METRICS_METRIC + m, v[m]);
	table_set_f64(t, GPU_METRICS_DRAM, sampled_dram_pct(v));
}

/* The steps follow `all`, where there are not too many for a table. */
static void gpu_timeline_sampled(const struct profile *p, const struct report_args *args, const struct intervals *window, struct table *out)
{
	enum { STEPS_MOST = 200 };
	const struct steps *s = p->steps;
	struct sampled_curves c;
	const bool steps = !s->whole_trace && !args->all_steps && s->n <= STEPS_MOST;
	sampled_curves_find(p, &c);
	struct table *t = c.n ? section_add(&gpu_metrics_section, args, WHEN_SAMPLES, out) : NULL;
	for (unsigned m = 0; t && m < SAMPLED_METRICS; m++)
		if (!ANY_WHERE(i, 0, c.n, c.v[i].metric == (enum sampled_metric)m))
			section_leave_out(&gpu_metrics_section, GPU_METRICS_METRIC + m, t);
	for (uint32_t first = 0, end; first < c.n; first = end) {
		end = first + 1;
		while (end < c.n && c.v[end].device == c.v[first].device)
			end++;
		gpu_timeline_put_sampled(t, &c, first, end, STR("all"), window->v, window->n);
		for (unsigned i = 0; steps && i < s->n; i++) {
			const struct step *x = &s->v[i];
			char number[24];
			if (args->has_steps && (x->number < args->step_first || x->number > args->step_last))
				continue;
			snprintf(number, sizeof number, "%lld", (long long)x->number);
			gpu_timeline_put_sampled(t, &c, first, end, str_from(number), &(struct interval){x->start_ns, x->end_ns}, 1);
		}
	}
	if (t && !s->whole_trace && s->n > STEPS_MOST)
		table_note(t, "%u steps are too many to be listed here: --steps=A-B chooses some of them", s->n);
	if (t)
		table_note(t, "Each sample is of the whole GPU: work of other programs on it counts, and so do copies.");
	sampled_curves_release(&c);
}

static int gpu_timeline_run(const struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
	struct intervals steps = {0};
	int64_t first, last;
	if (!p->gpu_op.rows.n)
		return err_set(e, ERR_DATA, "no device work in the input; to record it: %s", recording_how(p, RECORD_DEVICE_WORK));
	if (!args->all_steps)
		steps_intervals(p, args->has_steps ? args->step_first : INT64_MIN, args->has_steps ? args->step_last : INT64_MAX, &steps);
	if (args->has_steps && !steps.n)
		return err_set(e, ERR_DATA, "%s: no step has such a number", steps_range_text(args->step_first, args->step_last).s);
	if (!steps.n && recording_extent(p, &first, &last))
		intervals_add(&steps, first, last);
	gpu_timeline_own_table(p, args, &steps, t);
	if (args->variant->by == GPU_TIMELINE_BY_DEVICE)
		gpu_timeline_sampled(p, args, &steps, t);
	intervals_release(&steps);
	return 0;
}

static const struct report_variant gpu_timeline_variants[] = {
	{.group_by = "device", .by = GPU_TIMELINE_BY_DEVICE},
	{.group_by = "launch", .by = GPU_TIMELINE_BY_LAUNCH},
	{.group_by = "recompute", .by = GPU_TIMELINE_BY_RECOMPUTE},
	{0},
};

const struct report report_gpu_timeline = {
	.name = "gpu-timeline",
	.title = "GPU busy, exposed and idle time",
	.asks = ASKS_WAIT,
	.also = "idle busy timeline utilization gaps",
	.help = "What each GPU did during the steps; where there are none, from the first to the last device work; with --steps=all, during the whole recording. Computation is kernels and memsets; "
	        "communication, collective kernels; copy, memcpys: each the union over all streams. Exposed communication is that "
	        "which no computation hid, exposed copy that which neither computation nor communication hid: the parts that cost "
	        "time. Computation, exposed communication and exposed copy sum to busy; busy and idle sum to total. Grouped by "
	        "device, where there are several; by launch (was the launching call recorded?); or by recompute (activation "
	        "checkpointing's second forward pass; needs with_stack). The last two have no idle time of their own. Where the GPUs' metrics were sampled (nsys profile "
	        "--gpu-metrics-devices), a second table has their means.",
	.variants = gpu_timeline_variants,
	.sections = (const struct section *const[]){&gpu_timeline_section, &gpu_metrics_section, NULL},
	.timeline = true,
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.takes = REPORT_STEPS,
	.run = gpu_timeline_run,
};
