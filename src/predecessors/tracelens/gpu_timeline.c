/* TraceLens' GPU timeline: what the devices did, all of them as one. */
#include "analysis/costs/recompute.h"
#include "analysis/recording.h"
#include "analysis/steps/steps.h"
#include "analysis/time/busy.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/round.h"
#include "predecessors/tracelens/tables.h"

static const char *const timeline_kind[BUSY_KINDS] = {
	[BUSY_COMPUTE] = "computation_time",
	[BUSY_EXPOSED_COMM] = "exposed_comm_time",
	[BUSY_EXPOSED_COPY] = "exposed_memcpy_time",
	[BUSY_BUSY] = "busy_time",
	[BUSY_IDLE] = "idle_time",
	[BUSY_TOTAL] = "total_time",
	[BUSY_COMM] = "total_comm_time",
	[BUSY_COPY] = "total_memcpy_time",
};

/* The groups of device work: take[g] is 1 for recomputation, else 0; LEFT_OUT is in neither. */
enum { LEFT_OUT = UINT8_MAX };

static uint8_t *timeline_groups(const struct profile *p)
{
	uint8_t *again = recompute_spans(p), *take = NEW_ARRAY(p->gpu_op.rows.n, uint8_t);
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++)
		take[i] = p->gpu_op.call[i] != ROW_NONE && again[p->gpu_op.call[i]];
	mem_free(again);
	return take;
}

/* TraceLens counts what an ac2g arrow ties to its call, and what a graph launch started; a hipMemset, which has a call but no
 * arrow, is lost to it. Returns how many are left out. */
static uint64_t timeline_leave_out(const struct profile *p, uint8_t *take)
{
	struct idmap arrows;
	int64_t min = INT64_MAX, max = INT64_MIN;
	uint64_t n = 0, left_out = 0;
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
			take[i] = LEFT_OUT;
			left_out++;
		}
	}
	idmap_release(&arrows);
	return left_out;
}

static void timeline_rows(struct table *t, const struct busy *b, bool split, bool recompute)
{
	for (int k = 0; k < BUSY_KINDS; k++) {
		table_row(t);
		table_set_str(t, 0, str_from(timeline_kind[k]));
		table_set_f64(t, 1, (double)b->ns[k] / 1e6);
		table_set_f64(t, 2, percent((double)b->ns[k], (double)b->ns[BUSY_TOTAL]));
		if (split)
			table_set_bool(t, 3, recompute);
	}
}

static void timeline_table(const struct profile *p, const struct intervals *window, struct table *t)
{
	uint8_t *take = timeline_groups(p);
	uint64_t left_out = timeline_leave_out(p, take);
	struct busy b, again;
	busy_measure(p, take, 0, window, &b);
	busy_measure(p, take, 1, window, &again);
	TABLE_COLUMN(t, .id = "type", .title = "type", .help = "what the device did", .type = CELL_STR);
	TABLE_COLUMN(t, .id = "time_ms", .title = "time ms", .help = "union over all streams and devices, milliseconds", .type = CELL_F64);
	TABLE_COLUMN(t, .id = "percent", .title = "percent", .help = "of total_time", .type = CELL_F64, .unit = UNIT_PERCENT);
	if (again.events)
		TABLE_COLUMN(t, .id = "is_recompute", .title = "is_recompute", .help = "work of activation checkpointing's second forward pass", .type = CELL_BOOL);
	timeline_rows(t, &b, again.events > 0, false);
	if (again.events)
		timeline_rows(t, &again, true, true);
	if (left_out)
		table_note(t, "%llu device events have no arrow from an API call and are left out, as TraceLens does.",
		           (unsigned long long)left_out);
	mem_free(take);
}

int tracelens_gpu_timeline(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct intervals steps = {0};
	if (!p->gpu_op.rows.n)
		return err_set(e, ERR_DATA, "no device work in the input; to record it: %s", recording_how(p, RECORD_DEVICE_WORK));
	if (args->has_steps)
		steps_intervals(p, args->step_first, args->step_last, &steps);
	if (args->has_steps && !steps.n)
		return err_set(e, ERR_DATA, "%s: no step has such a number", steps_range_text(args->step_first, args->step_last).s);
	timeline_table(p, args->has_steps ? &steps : NULL, out);
	intervals_release(&steps);
	return 0;
}
