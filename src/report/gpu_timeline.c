#include "analysis/busy.h"
#include "analysis/recording.h"
#include "analysis/steps.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/round.h"
#include "report/report.h"

static const struct kind_text {
	const char *name, *tracelens;
} kind_text[BUSY_KINDS] = {
	[BUSY_COMPUTE] = {"computation", "computation_time"},
	[BUSY_EXPOSED_COMM] = {"exposed_communication", "exposed_comm_time"},
	[BUSY_EXPOSED_COPY] = {"exposed_copy", "exposed_memcpy_time"},
	[BUSY_BUSY] = {"busy", "busy_time"},
	[BUSY_IDLE] = {"idle", "idle_time"},
	[BUSY_TOTAL] = {"total", "total_time"},
	[BUSY_COMM] = {"communication", "total_comm_time"},
	[BUSY_COPY] = {"copy", "total_memcpy_time"},
};

/* The groups into which device work falls: take[g] is the index of its group, or LEFT_OUT. */
enum { LEFT_OUT = UINT8_MAX, MAX_GROUPS = LEFT_OUT };
struct groups {
	uint8_t *take;
	struct str name[MAX_GROUPS];
	unsigned n;
	uint64_t left_out;
};

static const char *const group_by[] = {"device", "launch", "recompute", NULL};

static void group_by_device(const struct profile *p, struct groups *g, struct arena *a)
{
	int32_t device[MAX_GROUPS];
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++) {
		int32_t d = p->launch.device[p->gpu_op.launch[i]];
		unsigned k = 0;
		while (k < g->n && device[k] != d)
			k++;
		if (k == g->n && (d == INT32_MIN || g->n == MAX_GROUPS)) {
			g->take[i] = LEFT_OUT;
			g->left_out++;
			continue;
		}
		if (k == g->n) {
			g->name[g->n] = arena_printf(a, "%d", d);
			device[g->n++] = d;
		}
		g->take[i] = (uint8_t)k;
	}
}

static void group_by_launch(const struct profile *p, struct groups *g)
{
	g->n = 2;
	g->name[0] = STR("launched in the recording");
	g->name[1] = STR("launched before it");
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++)
		g->take[i] = p->gpu_op.call[i] == ROW_NONE;
}

/* Frames that show activation checkpointing running the forward pass again. */
static bool is_recompute_frame(struct str name)
{
	return str_has(name, STR("torch/utils/checkpoint.py")) &&
	       (str_ends(name, STR(": recompute_fn")) || str_ends(name, STR(": unpack_hook")));
}

/* Per span: in recomputation. Parents stand before their children: one pass, however deep the nesting. */
static uint8_t *mark_recompute(const struct profile *p)
{
	uint8_t *frame = NEW_ARRAY(p->strings.n, uint8_t), *in = NEW_ARRAY(p->span.rows.n, uint8_t);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		uint32_t up = p->span.parent[i], name = p->span.name[i];
		in[i] = up < i && in[up];
		if (in[i] || p->span.kind[i] != SPAN_PYTHON)
			continue;
		if (!frame[name]) /* asked once per name */
			frame[name] = is_recompute_frame(profile_str(p, name)) ? 2 : 1;
		in[i] = frame[name] == 2;
	}
	mem_free(frame);
	return in;
}

static void group_by_recompute(const struct profile *p, struct groups *g)
{
	uint8_t *in = mark_recompute(p);
	g->n = 2;
	g->name[0] = STR("not recomputation");
	g->name[1] = STR("recomputation");
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++)
		g->take[i] = p->gpu_op.call[i] != ROW_NONE && in[p->gpu_op.call[i]];
	mem_free(in);
}

/* TraceLens counts what an ac2g arrow ties to its call, and what a graph launch started; a hipMemset, which has a call but no
 * arrow, is lost to it. */
static void leave_out_as_tracelens(const struct profile *p, struct groups *g)
{
	struct idmap arrows;
	int64_t min = INT64_MAX, max = INT64_MIN;
	uint64_t n = 0;
	for (uint32_t i = 0; i < p->flow.rows.n; i++)
		if (p->flow.phase[i] == 's' && str_eq(profile_cat(p, p->flow.cat[i]), STR("ac2g"))) {
			min = p->flow.id[i] < min ? p->flow.id[i] : min;
			max = p->flow.id[i] > max ? p->flow.id[i] : max;
			n++;
		}
	idmap_init(&arrows, min, max, n);
	for (uint32_t i = 0; i < p->flow.rows.n; i++)
		if (p->flow.phase[i] == 's' && str_eq(profile_cat(p, p->flow.cat[i]), STR("ac2g")))
			idmap_put(&arrows, p->flow.id[i], i);
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++) {
		uint32_t call = p->gpu_op.call[i];
		bool tied = call != ROW_NONE && (str_has(profile_str(p, p->span.name[call]), STR("GraphLaunch")) ||
		                                 idmap_get(&arrows, p->gpu_op.corr_id[i]) != IDMAP_NONE);
		if (!tied) {
			g->take[i] = LEFT_OUT;
			g->left_out++;
		}
	}
	idmap_release(&arrows);
}

static double share(int64_t part, const struct busy *whole)
{
	return percent((double)part, (double)whole->ns[BUSY_TOTAL]);
}

/* `whole` is what the shares are of: b itself, or, when the group is not a device, everything. Such a group has neither idle
 * nor total time of its own: while it rests, the device does the rest. */
static void own_rows(struct table *t, struct str group, const struct busy *b, const struct busy *whole)
{
	const long long events = (long long)b->events;
	for (int k = 0; k < BUSY_KINDS; k++) {
		if (b != whole && (k == BUSY_IDLE || k == BUSY_TOTAL))
			continue;
		table_row(t);
		table_set_str_copy(t, 0, group);
		table_set_str(t, 1, str_from(kind_text[k].name));
		table_set_i64(t, 2, b->ns[k]);
		table_set_f64(t, 3, share(b->ns[k], whole));
	}
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
struct tally {
	uint64_t events;
	int64_t ns;
};

static void tally_add(struct tally *t, int64_t dur)
{
	t->events++;
	t->ns += dur;
}

/* An event without duration is where it starts. */
static bool lies_in(const struct intervals *s, int64_t start, int64_t dur)
{
	return intervals_length_within(s, start, start + (dur > 0 ? dur : 1)) > 0;
}

static void all_steps(const struct profile *p, struct intervals *out)
{
	for (unsigned i = 0; !p->steps->whole_trace && i < p->steps->n; i++)
		intervals_add(out, p->steps->v[i].start_ns, p->steps->v[i].end_ns);
	intervals_normalise(out);
}

/* What makes these figures differ from those of `overview`, which counts only the steps and in another order. */
static void note_differences(const struct profile *p, const struct intervals *window, bool by_launch, const struct busy *b,
                             struct table *t)
{
	struct intervals steps = {0};
	struct tally early = {0}, outside = {0};
	all_steps(p, &steps);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		int64_t start = p->gpu_op.start_ns[g], dur = p->gpu_op.dur_ns[g];
		if (window && !lies_in(window, start, dur))
			continue;
		if (p->gpu_op.call[g] == ROW_NONE)
			tally_add(&early, dur);
		if (steps.n && !lies_in(&steps, start, dur))
			tally_add(&outside, dur);
	}
	if (early.events && !by_launch)
		table_note(t, "%llu device events (%lld ns) were launched before the recording began, or their launch was not recorded: "
		           "`--group-by=launch` shows them apart.", (unsigned long long)early.events, (long long)early.ns);
	if (outside.events)
		table_note(t, "%llu device events (%lld ns) lie outside the steps, which are all that `overview` counts: `--steps=" STR_FMT
		           ".." STR_FMT "` leaves them out.", (unsigned long long)outside.events, (long long)outside.ns,
		           STR_ARG(p->steps->v[0].name), STR_ARG(p->steps->v[p->steps->n - 1].name));
	if (b->ns[BUSY_EXPOSED_COMM] && b->ns[BUSY_COPY])
		table_note(t, "While a device communicates and copies, this report says communication; `overview`, which counts copies first, "
		           "says Memcpy. It also counts the host's part of collectives while no device does anything.");
	intervals_release(&steps);
}

/* Total is the recording, in which devices may start late. */
static void note_outer_idle(const struct profile *p, const struct intervals *window, struct table *t)
{
	int64_t first = INT64_MAX, last = INT64_MIN;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		first = p->gpu_op.start_ns[g] < first ? p->gpu_op.start_ns[g] : first;
		last = gpu_end(p, g) > last ? gpu_end(p, g) : last;
	}
	if (window->n && (first > window->v[0].start || last < window->v[0].end))
		table_note(t, "Of the %lld ns of the recording, %lld passed before the first and %lld after the last device event.",
		           (long long)intervals_length(window), (long long)(first - window->v[0].start), (long long)(window->v[0].end - last));
}

/* A group that has everything is not shown again under its own name. */
static void group_rows(const struct profile *p, const struct groups *g, const struct intervals *window, bool devices,
                       const struct busy *all, struct table *t)
{
	for (unsigned i = 0; i < g->n; i++) {
		struct busy b;
		busy_measure(p, g->take, (uint8_t)i, window, &b);
		if (b.events && b.events == all->events)
			table_note(t, devices ? "all: device " STR_FMT ", the only one with work." : "all: " STR_FMT ".", STR_ARG(g->name[i]));
		else if (b.events)
			own_rows(t, g->name[i], &b, devices ? &b : all);
	}
}

static void own_table(const struct profile *p, const struct report_args *args, const struct intervals *window, struct table *t)
{
	struct groups g = {.take = NEW_ARRAY(p->gpu_op.rows.n, uint8_t)};
	const char *by = args->group_by ? args->group_by : group_by[0];
	bool devices = strcmp(by, "device") == 0;
	struct busy all;
	TABLE_COLUMN(t, "group", devices ? "Device" : "Group", "all: at least one device", CELL_STR);
	TABLE_COLUMN(t, "kind", "What", "what the device did; exposed: while it did nothing that stands before in the list", CELL_STR);
	TABLE_COLUMN(t, "time_ns", "Time", "union over all streams", CELL_I64, UNIT_NS);
	TABLE_COLUMN(t, "share_pct", "Share", "of total: the device's, else that of all", CELL_F64, UNIT_PERCENT);
	if (strcmp(by, "launch") == 0)
		group_by_launch(p, &g);
	else if (strcmp(by, "recompute") == 0)
		group_by_recompute(p, &g);
	else
		group_by_device(p, &g, &t->arena);
	busy_measure(p, NULL, 0, window, &all);
	own_rows(t, STR("all"), &all, &all);
	group_rows(p, &g, window, devices, &all, t);
	if (g.left_out)
		table_note(t, "%llu events whose device is not stated are in `all` only.", (unsigned long long)g.left_out);
	if (!args->has_steps)
		note_outer_idle(p, window, t);
	note_differences(p, window, strcmp(by, "launch") == 0, &all, t);
	mem_free(g.take);
}

static void tracelens_rows(struct table *t, const struct busy *b, bool split, bool recompute)
{
	for (int k = 0; k < BUSY_KINDS; k++) {
		table_row(t);
		table_set_str(t, 0, str_from(kind_text[k].tracelens));
		table_set_f64(t, 1, (double)b->ns[k] / 1e6);
		table_set_f64(t, 2, share(b->ns[k], b));
		if (split)
			table_set_bool(t, 3, recompute);
	}
}

static void tracelens_table(const struct profile *p, const struct intervals *window, struct table *t)
{
	struct groups g = {.take = NEW_ARRAY(p->gpu_op.rows.n, uint8_t)};
	struct busy b, again;
	group_by_recompute(p, &g);
	leave_out_as_tracelens(p, &g);
	busy_measure(p, g.take, 0, window, &b);
	busy_measure(p, g.take, 1, window, &again);
	TABLE_COLUMN(t, "type", "type", "what the device did", CELL_STR);
	TABLE_COLUMN(t, "time_ms", "time ms", "union over all streams and devices, milliseconds", CELL_F64);
	TABLE_COLUMN(t, "percent", "percent", "of total_time", CELL_F64, UNIT_PERCENT);
	if (again.events)
		TABLE_COLUMN(t, "is_recompute", "is_recompute", "work of activation checkpointing's second forward pass", CELL_BOOL);
	tracelens_rows(t, &b, again.events > 0, false);
	if (again.events)
		tracelens_rows(t, &again, true, true);
	if (g.left_out)
		table_note(t, "%llu device events have no arrow from an API call and are left out, as TraceLens does.",
		           (unsigned long long)g.left_out);
	mem_free(g.take);
}

static int run(const struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
	struct intervals steps = {0};
	int64_t first, last;
	if (!p->gpu_op.rows.n)
		return err_set(e, ERR_DATA, "no device work in the input; to record it: %s", recording_how(p, RECORD_DEVICE_WORK));
	for (unsigned i = 0; args->has_steps && i < p->steps->n; i++)
		if (p->steps->v[i].number >= args->step_first && p->steps->v[i].number <= args->step_last)
			intervals_add(&steps, p->steps->v[i].start_ns, p->steps->v[i].end_ns);
	if (args->has_steps && !steps.n)
		return err_set(e, ERR_DATA, "%s: no step has such a number", steps_range_text(args->step_first, args->step_last).s);
	intervals_normalise(&steps);
	if (args->compat) {
		tracelens_table(p, args->has_steps ? &steps : NULL, t);
	} else {
		if (!args->has_steps && recording_extent(p, &first, &last))
			intervals_add(&steps, first, last);
		own_table(p, args, &steps, t);
	}
	intervals_release(&steps);
	return 0;
}

static const char *const compat[] = {"tracelens", NULL};

const struct report report_gpu_timeline = {
	.name = "gpu-timeline",
	.title = "GPU busy, exposed and idle time",
	.help = "What the devices did during the whole recording, from the first to the last event of host or device (or during --steps). Computation is kernels and memsets; "
	        "communication, collective kernels; copy, memcpys: each the union over all streams. Exposed communication is that "
	        "which no computation hid, exposed copy that which neither computation nor communication hid: the parts that cost "
	        "time. Computation, exposed communication and exposed copy sum to busy; busy and idle sum to total. Grouped by "
	        "device, where there are several; by launch (was the launching call recorded?); or by recompute (activation "
	        "checkpointing's second forward pass; needs with_stack). The last two have no idle time of their own.",
	.group_by = group_by,
	.compat = compat,
	.timeline = true,
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.takes = REPORT_STEPS,
	.run = run,
};
