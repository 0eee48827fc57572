/* Memory by operator, the life of each block, the curve and its peaks. */
#include "analysis/memory/memory.h"
#include "analysis/recording.h"
#include "base/mem.h"
#include "report/parts/memory_peak.h"
#include "report/parts/memory_view.h"

/* --- statistics ------------------------------------------------------------------------------------------------- */

static const struct column statistics_columns[] = {
	{.id = "operator", .title = "Operator Name", .help = "name of the op as the framework recorded it", .type = CELL_STR},
	{.id = "calls", .title = "Calls", .help = "how often it ran, whether it allocated or not", .type = CELL_I64, .unit = UNIT_COUNT},
	{.id = "size_increase_bytes", .title = "Size Increase", .help = "allocated less freed, by it and the ops inside it", .type = CELL_I64, .unit = UNIT_BYTES},
	{.id = "self_size_increase_bytes", .title = "Self Size Increase", .help = "allocated less freed, by itself", .type = CELL_I64, .unit = UNIT_BYTES},
	{.id = "allocations", .title = "Allocation Count", .help = "how often it or an op inside it allocated", .type = CELL_I64, .unit = UNIT_COUNT},
	{.id = "self_allocations", .title = "Self Allocation Count", .help = "how often it allocated itself", .type = CELL_I64, .unit = UNIT_COUNT},
	{.id = "allocation_bytes", .title = "Allocation Size", .help = "allocated by it and the ops inside it, frees not subtracted", .type = CELL_I64, .unit = UNIT_BYTES},
	{.id = "self_allocation_bytes", .title = "Self Allocation Size", .help = "allocated by itself, frees not subtracted", .type = CELL_I64, .unit = UNIT_BYTES},
};

static int memory_put_statistics(struct memory_view *v, struct table *out, struct err *e)
{
	struct optree *t = optree_new(v->p, &optree_own);
	struct memory_op *op;
	uint32_t n = memory_view_ops(v, t, &op);
	table_columns(out, statistics_columns, sizeof statistics_columns / sizeof *statistics_columns);
	for (uint32_t i = 0; i < n; i++) {
		if (!op[i].touched)
			continue;
		table_row(out);
		table_set_str(out, 0, profile_str(v->p, op[i].name));
		table_set_i64(out, 1, (int64_t)op[i].calls);
		table_set_i64(out, 2, op[i].total[MEMORY_INCREASE]);
		table_set_i64(out, 3, op[i].self[MEMORY_INCREASE]);
		table_set_i64(out, 4, op[i].total[MEMORY_ALLOCATIONS]);
		table_set_i64(out, 5, op[i].self[MEMORY_ALLOCATIONS]);
		table_set_i64(out, 6, op[i].total[MEMORY_ALLOCATED]);
		table_set_i64(out, 7, op[i].self[MEMORY_ALLOCATED]);
	}
	mem_free(op);
	optree_free(t);
	return table_sort(out, str_from(statistics_columns[3].id), true, e);
}

/* --- events ----------------------------------------------------------------------------------------------------- */

/* `aten::empty` and its kin allocate for others: the op around says for whom, or else the step or other annotation. */
static void set_operator(const struct memory_view *v, struct table *t, uint32_t alloc)
{
	const struct spans *s = &v->p->span;
	uint32_t span = alloc == ROW_NONE ? ROW_NONE : v->p->memory.span[alloc], around = ROW_NONE;
	if (span == ROW_NONE) {
		table_set_str(t, 0, STR("<unknown>"));
		return;
	}
	struct str name = profile_str(v->p, s->name[span]);
	if (str_starts(name, STR("aten::empty")))
		around = s->op[span] != ROW_NONE ? s->op[span] : s->parent[span];
	while (around != ROW_NONE && s->kind[around] != SPAN_OP && s->kind[around] != SPAN_USER)
		around = s->parent[around];
	if (around != ROW_NONE)
		table_set_fmt(t, 0, STR_FMT " (" STR_FMT ")", STR_ARG(profile_str(v->p, s->name[around])), STR_ARG(name));
	else
		table_set_str(t, 0, name);
}

static bool memory_in_window(const struct memory_view *v, uint32_t row)
{
	return row != ROW_NONE && window_has(&v->w, v->p->memory.time_ns[row]);
}

static void memory_put_events(const struct memory_view *v, struct table *t)
{
	const struct memories *m = &v->p->memory;
	TABLE_COLUMN(t, .id = "operator", .title = "Operator", .help = "innermost op around the allocation; of aten::empty and its kin the op or annotation around it first", .type = CELL_STR);
	TABLE_COLUMN(t, .id = "size_bytes", .title = "Size", .help = "size of the block", .type = CELL_I64, .unit = UNIT_BYTES);
	TABLE_COLUMN(t, .id = "allocation_time_ns", .title = "Allocation Time", .help = "since the start of the trace; empty: before it", .type = CELL_I64, .unit = UNIT_NS);
	TABLE_COLUMN(t, .id = "release_time_ns", .title = "Release Time", .help = "since the start of the trace; empty: not before its end", .type = CELL_I64, .unit = UNIT_NS);
	TABLE_COLUMN(t, .id = "duration_ns", .title = "Duration", .help = "release - allocation", .type = CELL_I64, .unit = UNIT_NS);
	struct memory_pair *pair;
	uint32_t n = memory_pairs(v->p, v->device, &pair), kept = 0, freed = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t a = pair[i].alloc, r = pair[i].release;
		if (!memory_in_window(v, a) && !memory_in_window(v, r))
			continue;
		table_row(t);
		set_operator(v, t, a);
		table_set_i64(t, 1, a != ROW_NONE ? m->bytes[a] : -m->bytes[r]);
		if (a != ROW_NONE)
			table_set_i64(t, 2, m->time_ns[a] - v->start_ns);
		if (r != ROW_NONE)
			table_set_i64(t, 3, m->time_ns[r] - v->start_ns);
		if (a != ROW_NONE && r != ROW_NONE)
			table_set_i64(t, 4, m->time_ns[r] - m->time_ns[a]);
		kept += r == ROW_NONE;
		freed += a == ROW_NONE;
	}
	mem_free(pair);
	if (v->without_address)
		table_warn(t, "%llu of %u memory events have no address and are left out: traces of torch 1.10 and later have it",
		           (unsigned long long)v->without_address, v->n);
	if (kept || freed)
		table_note(t, "blocks not freed within the trace: %u; freed, but allocated before it: %u", kept, freed);
}

/* --- curve ------------------------------------------------------------------------------------------------------ */

static void memory_put_point(const struct memory_view *v, struct table *t, const struct memory_curve *c, uint32_t at, uint32_t values_of)
{
	table_row(t);
	table_set_i64(t, 0, c->time_ns[at]);
	table_set_i64(t, 1, c->bytes[values_of]);
	if (!c->at_least && v->p->memory.total_reserved[c->row[values_of]] != ID_NONE)
		table_set_i64(t, 2, v->p->memory.total_reserved[c->row[values_of]]);
}

/* Where more is freed than was allocated, that was held before the first event. */
static void own_sums(const struct memory_view *v, struct memory_curve *c)
{
	int64_t sum = 0, lowest = 0;
	for (uint32_t k = 0; k < v->n; k++) {
		if (__builtin_add_overflow(sum, v->p->memory.bytes[v->row[k]], &sum)) {
			c->n = 0;
			return;
		}
		lowest = sum < lowest ? sum : lowest;
		c->time_ns[k] = v->p->memory.time_ns[v->row[k]] - v->start_ns;
		c->bytes[k] = sum;
		c->n++;
	}
	for (uint32_t k = 0; k < c->n; k++)
		if (__builtin_sub_overflow(c->bytes[k], lowest, &c->bytes[k]))
			c->bytes[k] = INT64_MAX;
}

static void curve_columns(const struct memory_curve *c, struct table *t)
{
	TABLE_COLUMN(t, .id = "time_ns", .title = "Time", .help = "since the start of the trace", .type = CELL_I64, .unit = UNIT_NS);
	if (c->at_least) {
		TABLE_COLUMN(t, .id = "allocated_at_least_bytes", .title = "Allocated, at least", .help = "in blocks of this trace and those held before that it frees",
		             .type = CELL_I64, .unit = UNIT_BYTES);
		return;
	}
	TABLE_COLUMN(t, .id = "allocated_bytes", .title = "Allocated", .help = "in live blocks on this device", .type = CELL_I64, .unit = UNIT_BYTES);
	TABLE_COLUMN(t, .id = "reserved_bytes", .title = "Reserved", .help = "held by the caching allocator; 0 on the CPU, which has none", .type = CELL_I64, .unit = UNIT_BYTES);
}

static void memory_put_curve(const struct memory_view *v, struct table *t)
{
	struct memory_curve c;
	memory_curve_init(&c, v);
	c.at_least = v->n && v->without_totals == v->n;
	curve_columns(&c, t);
	if (c.at_least)
		own_sums(v, &c);
	memory_curve_put(v, &c, t, memory_put_point);
	memory_curve_release(&c);
}

static int memory_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct memory_view v;
	if (memory_view_init(&v, p, args, e) < 0 || window_of(p, args, &v.w, e) < 0)
		return -1;
	memory_view_select(&v);
	int rc = memory_put_statistics(&v, out, e);
	memory_view_put_notes(&v, out);
	struct table *events = table_section(out, "events", "Memory blocks"), *curve = table_section(out, "curve", "Memory over time");
	curve->curve = true;
	memory_put_events(&v, events);
	memory_put_curve(&v, curve);
	events->folded = curve->folded = true;
	struct table *peaks = table_section(out, "peaks", "Peak memory by device");
	peaks->lead = true;
	memory_view_put_peaks(&v, peaks);
	if (rc == 0)
		rc = memory_peak_sections(p, &v.w, v.device, !args->device, out, e);
	memory_view_release(&v);
	return rc;
}

const struct report report_memory = {
	.name = "memory",
	.title = "Memory by operator",
	.asks = ASKS_MEMORY,
	.also = "mem peak allocations",
	.help = "How much memory was held at the peak, by which op, line and category, and which operators allocate memory on one device (--device=cpu or a GPU "
	        "ordinal; default: the first GPU that has memory events). An allocation or free counts for the innermost op of its thread at that moment; what is "
	        "not 'self' has the ops inside in. Sections: 'peaks' (every device), 'held' (what was held at the peak, by category) and 'held_by_op' (by what "
	        "allocated it, with lines where Python stacks were recorded), which are read first; 'events' (the life of each block: an allocation and the next "
	        "free of the same address), 'curve' (allocated and reserved memory over time, in steps; without recorded totals what the events add up to, a lower "
	        "bound). Needs profile_memory=True.",
	.needs = PASS_NEST | PASS_CORRELATE | PASS_MEMORY,
	.takes = REPORT_STEPS | REPORT_DEVICE,
	.run = memory_run,
};
