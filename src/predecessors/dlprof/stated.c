/* Numbers that a DLProf database states against those that opscope's own reports compute from its recording. */
#include "predecessors/dlprof/stated.h"

#include <math.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/intern.h"
#include "base/mem.h"
#include "predecessors/dlprof/experts/experts.h"
#include "query/stated.h"

enum { COMPARED_MAX = 16, SHOWN_MAX = 1000 }; /* aggregations; rows */

static const struct dlprof_stated_pair {
	const char *stated, *report, *group_by;
	const char *key[2];        /* columns that tell rows apart, in both */
	const char *only, *only_value; /* rows of `stated` whose column `only` is this number */
	const char *computed_only; /* a row that DLProf made up only when it printed */
} pairs[] = {
	{"op_nodes", "ops", NULL, {"op_id"}, NULL, NULL, NULL},
	{"op_type_metrics", "op-types", NULL, {"op_type"}, NULL, NULL, NULL},
	{"group_ops", "groups", NULL, {"name"}, "row_type", "1", "_CompleteModel_"},
	{"kernel_summaries", "kernels", "op", {"kernel_name", "op_id"}, NULL, NULL, NULL},
	{"iteration_list", "steps", NULL, {"iteration"}, NULL, NULL, NULL},
	{"iteration_aggregation_list", "steps", NULL, {"iteration"}, NULL, NULL, NULL},
	{"expert_systems_feedback", NULL, NULL, {"problem"}, NULL, NULL, NULL}, /* advise */
};

/* Cells of the summaries and where the report summary has them. */
static const struct summary_cell {
	const char *stated, *column;  /* in the database */
	const char *section, *row, *computed; /* section of the report; name of the row, NULL = it has one; column */
} summary_cells[] = {
	{"model_summary", "wall_clock_time_ns", "summary_report", NULL, "wall_clock_time_ns"},
	{"model_summary", "tc_utilization_pct", "summary_report", NULL, "tensor_core_kernel_utilization"},
	{"model_summary", "gpu_utilization_pct", "summary_report", NULL, "gpu_utilization"},
	{"model_summary", "tc_duration_pct", "summary_report", NULL, "tensor_core_kernel_duration"},
	{"model_summary", "non_tc_duration_pct", "summary_report", NULL, "non_tensor_core_kernel_duration"},
	{"model_summary", "memory_duration_pct", "summary_report", NULL, "memory_duration"},
	{"model_summary", "dataloader_duration_pct", "summary_report", NULL, "dataloader_duration"},
	{"model_summary", "io_duration_pct", "summary_report", NULL, "io_duration"},
	{"model_summary", "cpu_duration_pct", "summary_report", NULL, "cpu_duration"},
	{"model_summary", "other_duration_pct", "summary_report", NULL, "other_duration"},
	{"model_summary", "total_iterations", "iterations", NULL, "total_iterations"},
	{"model_summary", "aggregated_iterations", "iterations", NULL, "aggregated_iterations"},
	{"model_summary", "start_iteration", "iterations", NULL, "start_iteration"},
	{"model_summary", "stop_iteration", "iterations", NULL, "stop_iteration"},
	{"model_summary", "average_iteration_time_ns", "iterations", NULL, "average_iteration_time_ns"},
	{"model_summary", "iteration_time_standard_deviation_ns", "iterations", NULL, "iteration_time_standard_deviation"},
	{"model_summary", "all_ops_gpu_time_ns", "all_ops", "All ops", "gpu_time_ns"},
	{"model_summary", "all_ops_cpu_time_ns", "all_ops", "All ops", "cpu_time_ns"},
	{"model_summary", "all_ops", "all_ops", "All ops", "ops"},
	{"model_summary", "ops_using_tc_gpu_time_ns", "all_ops", "Ops using TC", "gpu_time_ns"},
	{"model_summary", "ops_using_tc_cpu_time_ns", "all_ops", "Ops using TC", "cpu_time_ns"},
	{"model_summary", "ops_using_tc", "all_ops", "Ops using TC", "ops"},
	{"model_summary", "ops_eligible_not_using_tc_gpu_time_ns", "all_ops", "Ops eligible for TC but not using", "gpu_time_ns"},
	{"model_summary", "ops_eligible_not_using_tc_cpu_time_ns", "all_ops", "Ops eligible for TC but not using", "cpu_time_ns"},
	{"model_summary", "ops_eligible_not_using_tc", "all_ops", "Ops eligible for TC but not using", "ops"},
	{"model_summary", "other_ops_gpu_time_ns", "all_ops", "All other ops", "gpu_time_ns"},
	{"model_summary", "other_ops_cpu_time_ns", "all_ops", "All other ops", "cpu_time_ns"},
	{"model_summary", "other_ops", "all_ops", "All other ops", "ops"},
	{"kernel_summary_metrics", "kernels_using_tc_gpu_time_ns", "all_kernels", "Kernels using TC", "gpu_time_ns"},
	{"kernel_summary_metrics", "kernels_using_tc_cpu_time_ns", "all_kernels", "Kernels using TC", "cpu_time_ns"},
	{"kernel_summary_metrics", "kernels_using_tc", "all_kernels", "Kernels using TC", "kernels"},
	{"kernel_summary_metrics", "kernels_not_using_tc_gpu_time_ns", "all_kernels", "All other kernels", "gpu_time_ns"},
	{"kernel_summary_metrics", "kernels_not_using_tc_cpu_time_ns", "all_kernels", "All other kernels", "cpu_time_ns"},
	{"kernel_summary_metrics", "kernels_not_using_tc", "all_kernels", "All other kernels", "kernels"},
	{"memory_summary_metrics", "memory_gpu_time_ns", "all_kernels", "Memory", "gpu_time_ns"},
	{"memory_summary_metrics", "memory_cpu_time_ns", "all_kernels", "Memory", "cpu_time_ns"},
	{"memory_summary_metrics", "memory", "all_kernels", "Memory", "kernels"},
};

struct compare {
	struct profile *p;
	const struct table *stated;
	struct table *diff;
	int64_t aggregation;
	uint64_t cells, rows, different;
	struct buf not_compared;
};

enum { D_AGGREGATION, D_TABLE, D_ROW, D_COLUMN, D_STATED, D_COMPUTED };

static struct str cell_text(const struct table *t, size_t row, unsigned c, char text[40])
{
	if (row == SIZE_MAX || table_is_null(t, row, c))
		return (struct str){"", 0};
	if (t->data[c].col.type == CELL_STR)
		return table_str(t, row, c);
	int n = t->data[c].col.type == CELL_F64 ? snprintf(text, 40, "%.9g", table_f64(t, row, c))
	                                        : snprintf(text, 40, "%lld", (long long)table_i64(t, row, c));
	return (struct str){text, (size_t)n};
}

static uint32_t dlprof_stated_key_of(struct intern *keys, const struct dlprof_stated_pair *p, const struct table *t, size_t row, bool add)
{
	struct buf key = {0};
	char text[40];
	for (size_t i = 0; i < 2 && p->key[i]; i++) {
		int c = table_find_column(t, str_from(p->key[i]));
		if (c >= 0)
			buf_str(&key, cell_text(t, row, (unsigned)c, text));
		buf_char(&key, '\n');
	}
	uint32_t id = add ? intern_str(keys, buf_view(&key)) : intern_find(keys, buf_view(&key));
	buf_release(&key);
	return id;
}

static void dlprof_stated_tell(struct compare *x, const char *table, struct str row, const char *column, struct str stated, struct str computed)
{
	struct table *t = x->diff;
	x->different++;
	if (t->n_rows == SHOWN_MAX)
		return;
	table_row(t);
	table_set_i64(t, D_AGGREGATION, x->aggregation);
	table_set_str(t, D_TABLE, str_from(table));
	table_set_str_copy(t, D_ROW, row);
	table_set_str_copy(t, D_COLUMN, str_from(column));
	table_set_str_copy(t, D_STATED, stated);
	table_set_str_copy(t, D_COMPUTED, computed);
}

/* DLProf stores six decimals. */
static bool same(const struct table *a, size_t ra, unsigned ca, const struct table *b, size_t rb, unsigned cb)
{
	enum cell_type ta = a->data[ca].col.type, tb = b->data[cb].col.type;
	if (ta == CELL_STR || tb == CELL_STR)
		return ta == tb && str_eq(table_str(a, ra, ca), table_str(b, rb, cb));
	if (ta != CELL_F64 && tb != CELL_F64)
		return table_i64(a, ra, ca) == table_i64(b, rb, cb);
	double va = table_f64(a, ra, ca), vb = table_f64(b, rb, cb);
	return fabs(va - vb) <= 1e-6 + 1e-12 * fabs(vb);
}

static void compare_row(struct compare *x, const struct dlprof_stated_pair *p, const struct table *s, size_t rs, const struct table *c, size_t rc)
{
	char a[40], b[40], row[40];
	struct str name = cell_text(s, rs, (unsigned)table_find_column(s, str_from(p->key[0])), row);
	x->rows++;
	if (rc == SIZE_MAX) {
		dlprof_stated_tell(x, p->stated, name, "", STR("this row"), STR("no such row"));
		return;
	}
	for (unsigned i = 1; i < s->n_columns; i++) {
		int k = table_find_column(c, str_from(s->data[i].col.id));
		if (k < 0 || table_is_null(s, rs, i))
			continue;
		x->cells++;
		if (!same(s, rs, i, c, rc, (unsigned)k))
			dlprof_stated_tell(x, p->stated, name, s->data[i].col.id, cell_text(s, rs, i, a), cell_text(c, rc, (unsigned)k, b));
	}
}

static bool dlprof_stated_is_of(const struct dlprof_stated_pair *p, const struct table *s, size_t row, int64_t aggregation)
{
	char text[40];
	int only = p->only ? table_find_column(s, str_from(p->only)) : -1;
	return !table_is_null(s, row, 0) && table_i64(s, row, 0) == aggregation &&
	       (only < 0 || str_eqc(cell_text(s, row, (unsigned)only, text), p->only_value));
}

static void compare_tables(struct compare *x, const struct dlprof_stated_pair *p, const struct table *s, const struct table *c)
{
	struct intern keys;
	uint32_t *row = NEW_ARRAY(c->n_rows + 2, uint32_t); /* key -> row of ours + 1 */
	char text[40];
	intern_init(&keys);
	for (size_t r = 0; r < c->n_rows && r < UINT32_MAX - 2; r++)
		row[dlprof_stated_key_of(&keys, p, c, r, true)] = (uint32_t)r + 1;
	for (size_t r = 0; r < s->n_rows; r++) {
		if (!dlprof_stated_is_of(p, s, r, x->aggregation))
			continue;
		uint32_t at = dlprof_stated_key_of(&keys, p, s, r, false);
		compare_row(x, p, s, r, c, at == INTERN_NONE || !row[at] ? SIZE_MAX : row[at] - 1);
		if (at != INTERN_NONE && row[at])
			row[at] = 0;
	}
	for (size_t r = 0; r < c->n_rows; r++) {
		uint32_t at = dlprof_stated_key_of(&keys, p, c, r, false);
		struct str name = cell_text(c, r, (unsigned)table_find_column(c, str_from(p->key[0])), text);
		if (at != INTERN_NONE && row[at] == r + 1 && !(p->computed_only && str_eqc(name, p->computed_only)))
			dlprof_stated_tell(x, p->stated, name, "", STR("no such row"), STR("this row"));
	}
	mem_free(row);
	intern_release(&keys);
}

static int compute(struct compare *x, const char *report, const char *group_by, const struct report_args *args, struct table *t, struct err *e)
{
	const struct report *r = report ? report_find(str_from(report)) : NULL;
	struct report_args own = *args;
	own.group_by = group_by;
	own.compat = "dlprof";
	if (!report)
		return steps_choose(x->p, args->key_op, e) < 0 ? -1 : dlprof_findings(x->p, args, t, e);
	return r ? report_run(r, x->p, &own, t, e) : err_set(e, ERR_USAGE, "no such report");
}

static void dlprof_stated_skip(struct compare *x, const char *table, const struct err *why)
{
	buf_printf(&x->not_compared, "%s%s of aggregation %lld (%s)", x->not_compared.n ? "; " : "", table, (long long)x->aggregation, why->msg);
}

static void compare_pair(struct compare *x, const struct dlprof_stated_pair *p, const struct report_args *args)
{
	const struct table *s = stated_find(x->stated, p->stated);
	struct table t;
	struct err e;
	if (stated_row(s, x->aggregation, 0) == SIZE_MAX || table_find_column(s, str_from(p->key[0])) < 0)
		return;
	if (compute(x, p->report, p->group_by, args, &t, &e) < 0) {
		dlprof_stated_skip(x, p->stated, &e);
		return;
	}
	compare_tables(x, p, s, &t);
	table_release(&t);
}

static void compare_summary_cell(struct compare *x, const struct summary_cell *c, const struct table *summary)
{
	const struct table *s = stated_find(x->stated, c->stated), *t = stated_find(summary, c->section);
	size_t rs = stated_row(s, x->aggregation, 0), rt = 0;
	int cs = rs == SIZE_MAX ? -1 : table_find_column(s, str_from(c->column)), ct = t ? table_find_column(t, str_from(c->computed)) : -1;
	char a[40], b[40];
	while (t && c->row && rt < t->n_rows && !str_eqc(table_str(t, rt, 0), c->row))
		rt++;
	if (cs < 0 || ct < 0 || rt >= t->n_rows || table_is_null(s, rs, (unsigned)cs))
		return;
	x->cells++;
	if (!same(s, rs, (unsigned)cs, t, rt, (unsigned)ct))
		dlprof_stated_tell(x, c->stated, str_from(c->row ? c->row : ""), c->column, cell_text(s, rs, (unsigned)cs, a), cell_text(t, rt, (unsigned)ct, b));
}

static void compare_summary(struct compare *x, const struct report_args *args)
{
	struct table t;
	struct err e;
	if (compute(x, "summary", NULL, args, &t, &e) < 0) {
		dlprof_stated_skip(x, "model_summary", &e);
		return;
	}
	x->rows += 3;
	for (size_t i = 0; i < sizeof summary_cells / sizeof summary_cells[0]; i++)
		compare_summary_cell(x, &summary_cells[i], &t);
	table_release(&t);
}

static bool stated_args(const struct table *stated, int64_t aggregation, struct report_args *args)
{
	const struct table *s = stated_find(stated, "model_summary");
	size_t row = stated_row(s, aggregation, 0);
	if (row == SIZE_MAX)
		return false;
	int key = table_find_column(s, STR("key_op")), at[3];
	static const char *const id[] = {"start_iteration", "stop_iteration", "total_iterations"};
	int64_t v[3];
	if (key >= 0 && s->data[key].col.type == CELL_STR && table_str(s, row, (unsigned)key).n)
		args->key_op = table_str(s, row, (unsigned)key).p;
	for (int i = 0; i < 3; i++) {
		at[i] = table_find_column(s, str_from(id[i]));
		if (at[i] < 0 || s->data[at[i]].col.type != CELL_I64 || table_is_null(s, row, (unsigned)at[i]))
			return true;
		v[i] = table_i64(s, row, (unsigned)at[i]);
	}
	args->has_steps = v[0] <= v[1] && (v[0] > 0 || v[1] < v[2] - 1);
	args->step_first = v[0];
	args->step_last = v[1];
	return true;
}

/* What was asked for then: all iterations unless it covers fewer. */
static void compare_aggregation(struct compare *x)
{
	struct report_args args = {0};
	if (!stated_args(x->stated, x->aggregation, &args))
		return;
	compare_summary(x, &args);
	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
		compare_pair(x, &pairs[i], &args);
}

static void stated_compare(struct profile *p, const struct table *stated, struct table *out)
{
	const struct table *list = stated_find(stated, "aggregations");
	struct compare x = {.p = p, .stated = stated};
	unsigned n = 0;
	x.diff = table_section(out, "differences", "Stored numbers that opscope computes differently");
	TABLE_COLUMN(x.diff, .id = "aggregation", .title = "No.", .help = "the aggregation", .type = CELL_I64);
	TABLE_COLUMN(x.diff, .id = "table_name", .title = "Table", .help = "table of the database", .type = CELL_STR);
	TABLE_COLUMN(x.diff, .id = "row", .title = "Row", .help = "what the row is about", .type = CELL_STR, .flags = COLUMN_WIDE);
	TABLE_COLUMN(x.diff, .id = "column", .title = "Column", .help = "column; none: the row is in one only", .type = CELL_STR);
	TABLE_COLUMN(x.diff, .id = "stated", .title = "Stored", .help = "as the database has it", .type = CELL_STR);
	TABLE_COLUMN(x.diff, .id = "computed", .title = "Computed", .help = "from the recording, with --compat=dlprof", .type = CELL_STR);
	for (size_t i = 0; list && i < list->n_rows && n < COMPARED_MAX; i++, n++) {
		x.aggregation = table_is_null(list, i, 0) ? 0 : table_i64(list, i, 0);
		compare_aggregation(&x);
	}
	table_note(x.diff, "%llu stored numbers in %llu rows were compared with those computed from the recording: %llu differ",
	           (unsigned long long)x.cells, (unsigned long long)x.rows, (unsigned long long)x.different);
	if (x.different > x.diff->n_rows)
		table_note(x.diff, "only the first %d differences are listed", SHOWN_MAX);
	if (list && list->n_rows > COMPARED_MAX)
		table_note(x.diff, "only the first %d aggregations were compared", COMPARED_MAX);
	if (x.not_compared.n)
		table_note(x.diff, "not compared: " STR_FMT, STR_ARG(buf_view(&x.not_compared)));
	buf_release(&x.not_compared);
}

static const struct predecessor_cell stated_cells[] = {
	{"created", "aggregations", "start"}, {"key_op", "model_summary", "key_op"}, {"first_step", "model_summary", "start_iteration"},
	{"last_step", "model_summary", "stop_iteration"}, {"aggregated_steps", "model_summary", "aggregated_iterations"},
	{"total_steps", "model_summary", "total_iterations"}, {"wall_ns", "model_summary", "wall_clock_time_ns"},
	{"gpu_utilization_pct", "model_summary", "gpu_utilization_pct"}, {"tc_utilization_pct", "model_summary", "tc_utilization_pct"},
	{0},
};

const struct predecessor_stated dlprof_stated = {
	.version = "system_config:dlprof_version", .list = "aggregations", .cells = stated_cells, .args = stated_args, .compare = stated_compare,
};
