#include "report/parts/copy_changes.h"

#include "analysis/time/copy_rates.h"
#include "base/mem.h"
#include "query/window.h"

enum { RATES_TIME, RATES_DEVICE, RATES_KIND, RATES_DIRECTION, RATES_RUNNING, RATES_GBS };

const struct section copy_changes_section = {.by = BY(MEMCPY_BY_CHANGE), COLUMNS(
	[RATES_TIME] = {COLUMN(TIME, "time_ns", "Time", "when one began or ended")},
	[RATES_DEVICE] = {COLUMN(NUMBER, "device", "Device", "ordinal of the device", .flags = COLUMN_GROUP)},
	[RATES_KIND] = {COLUMN(TEXT, "operation", "Operation", "memcpy or memset", .flags = COLUMN_GROUP)},
	[RATES_DIRECTION] = {COLUMN(TEXT, "direction", "Direction", "H = host, D = device, P = another device, A = array; empty = not told", .flags = COLUMN_GROUP)},
	[RATES_RUNNING] = {COLUMN(COUNT, "running", "Running", "of this operation and direction, how many run from then on")},
	[RATES_GBS] = {COLUMN(REAL, "gb_per_s", "GB/s", "sum of bytes / time of each of these, in 10^9 bytes", .digits = 2, .flags = COLUMN_ANSWER)},
)};

static void copy_changes_put(const struct profile *p, const struct copy_rate *x, struct table *t)
{
	int32_t device = p->launch.device[p->gpu_op.launch[x->gpu]];
	table_row(t);
	table_set_i64(t, RATES_TIME, x->time_ns);
	if (device != INT32_MIN)
		table_set_i64(t, RATES_DEVICE, device);
	table_set_str(t, RATES_KIND, str_from(gpu_kind_name[p->gpu_op.kind[x->gpu]]));
	table_set_str(t, RATES_DIRECTION, str_from(copy_direction(profile_str(p, p->gpu_op.name[x->gpu]))));
	table_set_i64(t, RATES_RUNNING, x->running);
	table_set_f64(t, RATES_GBS, x->gbs);
}

int copy_changes(const struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
	struct window w;
	struct copy_rates r;
	if (window_of(p, args, &w, e) < 0)
		return -1;
	uint8_t *wanted = NEW_ARRAY(p->gpu_op.rows.n, uint8_t);
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++)
		wanted[i] = window_has_gpu(&w, p, i);
	copy_rates_find(p, wanted, &r);
	int rc = 0;
	if (!r.n) {
		rc = err_set(e, ERR_DATA, "no copy or set of memory%s states its bytes", w.all ? "" : " of the steps asked for");
	} else {
		uint32_t shown = args->row_limit && args->row_limit < r.n ? (uint32_t)args->row_limit : r.n;
		section_start(&copy_changes_section, args, 0, t);
		for (uint32_t i = 0; i < shown; i++)
			copy_changes_put(p, &r.v[i], t);
		t->hidden_rows = r.n - shown;
		if (r.left_out)
			table_note(t, "copies and sets that state no bytes, or took no time, are left out: %u", r.left_out);
	}
	copy_rates_release(&r);
	mem_free(wanted);
	return rc;
}
