/* Memory by operator, the life of each block and the curve (memory_parser.py of the plugin). */
#include "base/buf.h"
#include "base/mem.h"
#include "predecessors/tb_plugin/memory_blocks.h"
#include "predecessors/tb_plugin/rules.h"
#include "predecessors/tb_plugin/tables.h"
#include "report/parts/memory_view.h"

static void set_kb(struct table *t, unsigned col, int64_t bytes)
{
	table_set_f64(t, col, memory_shown((double)bytes / 1024));
}

static const struct column statistics_columns[] = {
	{.id = "operator", .title = "Operator Name", .help = "operator", .type = CELL_STR},
	{.id = "calls", .title = "Calls", .help = "how often it ran", .type = CELL_I64},
	{.id = "size_increase_kb", .title = "Size Increase (KB)", .help = "KB of 1024 bytes", .type = CELL_F64},
	{.id = "self_size_increase_kb", .title = "Self Size Increase (KB)", .help = "KB of 1024 bytes", .type = CELL_F64},
	{.id = "allocations", .title = "Allocation Count", .help = "with the ops inside", .type = CELL_I64},
	{.id = "self_allocations", .title = "Self Allocation Count", .help = "its own", .type = CELL_I64},
	{.id = "allocation_kb", .title = "Allocation Size (KB)", .help = "KB of 1024 bytes", .type = CELL_F64},
	{.id = "self_allocation_kb", .title = "Self Allocation Size (KB)", .help = "KB of 1024 bytes", .type = CELL_F64},
};

static int tb_memory_put_statistics(struct memory_view *v, struct table *out, struct err *e)
{
	struct optree *t = optree_new(v->p, &tb_optree);
	struct memory_op *op;
	uint32_t n = memory_view_ops(v, t, &op);
	table_columns(out, statistics_columns, sizeof statistics_columns / sizeof *statistics_columns);
	for (uint32_t i = 0; i < n; i++) {
		if (!op[i].touched)
			continue;
		table_row(out);
		table_set_str(out, 0, profile_str(v->p, op[i].name));
		table_set_i64(out, 1, (int64_t)op[i].calls);
		set_kb(out, 2, op[i].total[MEMORY_INCREASE]);
		set_kb(out, 3, op[i].self[MEMORY_INCREASE]);
		table_set_i64(out, 4, op[i].total[MEMORY_ALLOCATIONS]);
		table_set_i64(out, 5, op[i].self[MEMORY_ALLOCATIONS]);
		set_kb(out, 6, op[i].total[MEMORY_ALLOCATED]);
		set_kb(out, 7, op[i].self[MEMORY_ALLOCATED]);
	}
	mem_free(op);
	optree_free(t);
	return table_sort(out, str_from(statistics_columns[3].id), true, e);
}

int tb_memory_statistics(const struct profile *p, const struct report_args *args, const struct window *w, struct table *out, struct err *e)
{
	struct memory_view v;
	if (memory_view_init(&v, p, args, e) < 0)
		return -1;
	v.w = *w;
	memory_view_select(&v);
	int rc = tb_memory_put_statistics(&v, out, e);
	memory_view_release(&v);
	return rc;
}

static void tb_memory_put_events(const struct memory_view *v, struct table *t)
{
	TABLE_COLUMN(t, .id = "operator", .title = "Operator", .help = "operator", .type = CELL_STR);
	TABLE_COLUMN(t, .id = "size_kb", .title = "Size (KB)", .help = "KB of 1024 bytes", .type = CELL_F64);
	TABLE_COLUMN(t, .id = "allocation_time_ms", .title = "Allocation Time (ms)", .help = "since the start of the profiler", .type = CELL_F64);
	TABLE_COLUMN(t, .id = "release_time_ms", .title = "Release Time (ms)", .help = "since the start of the profiler", .type = CELL_F64);
	TABLE_COLUMN(t, .id = "duration_ms", .title = "Duration (ms)", .help = "release - allocation", .type = CELL_F64);
	struct optree *tree = optree_new(v->p, &tb_optree);
	struct memory_block *block;
	struct buf name = {0};
	uint32_t n = memory_blocks(v->p, tree, &v->w, v->device, &block);
	for (uint32_t i = 0; i < n; i++) {
		const struct memory_block *x = &block[i];
		table_row(t);
		buf_clear(&name);
		memory_block_name(v->p, tree, x, &name);
		table_set_str_copy(t, 0, buf_view(&name));
		set_kb(t, 1, x->bytes);
		if (x->alloc != ROW_NONE)
			table_set_f64(t, 2, memory_shown(memory_span_in(v->p, ROW_NONE, x->alloc, 1e6)));
		if (x->release != ROW_NONE)
			table_set_f64(t, 3, memory_shown(memory_span_in(v->p, ROW_NONE, x->release, 1e6)));
		if (x->alloc != ROW_NONE && x->release != ROW_NONE)
			table_set_f64(t, 4, memory_shown(memory_span_in(v->p, x->alloc, x->release, 1e6)));
	}
	buf_release(&name);
	mem_free(block);
	optree_free(tree);
}

static void tb_memory_put_point(const struct memory_view *v, struct table *t, const struct memory_curve *c, uint32_t at, uint32_t values_of)
{
	table_row(t);
	table_set_f64(t, 0, memory_shown((double)c->time_ns[at] / 1e6));
	set_kb(t, 1, c->bytes[values_of]);
	if (v->p->memory.total_reserved[c->row[values_of]] != ID_NONE)
		set_kb(t, 2, v->p->memory.total_reserved[c->row[values_of]]);
}

static void tb_memory_put_curve(const struct memory_view *v, struct table *t)
{
	struct memory_curve c;
	TABLE_COLUMN(t, .id = "time_ms", .title = "Time (ms)", .help = "since the start of the profiler", .type = CELL_F64);
	TABLE_COLUMN(t, .id = "allocated_kb", .title = "Allocated (KB)", .help = "KB of 1024 bytes", .type = CELL_F64);
	TABLE_COLUMN(t, .id = "reserved_kb", .title = "Reserved (KB)", .help = "KB of 1024 bytes", .type = CELL_F64);
	memory_curve_init(&c, v);
	memory_curve_put(v, &c, t, tb_memory_put_point);
	memory_curve_release(&c);
}

int tb_memory(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct arena a = {0};
	struct memory_view v;
	if (memory_view_init(&v, p, args, e) < 0 || tb_window(p, args, &a, &v.w, e) < 0)
		return -1;
	memory_view_select(&v);
	int rc = tb_memory_put_statistics(&v, out, e);
	memory_view_put_notes(&v, out);
	tb_memory_put_events(&v, table_section(out, "events", "Memory blocks"));
	tb_memory_put_curve(&v, table_section(out, "curve", "Memory over time"));
	memory_view_put_peaks(&v, args, out);
	memory_view_release(&v);
	arena_release(&a);
	return rc;
}
