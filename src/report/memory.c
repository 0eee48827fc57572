/* Memory by operator, the life of each block, the curve and its peaks. */
#include "analysis/memory/memory.h"
#include "analysis/memory/memory_owners.h"
#include "analysis/recording.h"
#include "base/mem.h"
#include "report/parts/memory_peak.h"
#include "report/parts/memory_view.h"

/* --- statistics ------------------------------------------------------------------------------------------------- */

enum {
	MEMORY_OP_NAME, MEMORY_OP_CALLS, MEMORY_OP_INCREASE, MEMORY_OP_SELF_INCREASE, MEMORY_OP_ALLOCATIONS, MEMORY_OP_SELF_ALLOCATIONS, MEMORY_OP_ALLOCATED,
	MEMORY_OP_SELF_ALLOCATED
};

static const struct section memory_op_section = {COLUMNS(
	[MEMORY_OP_NAME] = {COLUMN(TEXT, "operator", "Operator Name", "name of the op as the framework recorded it")},
	[MEMORY_OP_CALLS] = {COLUMN(COUNT, "calls", "Calls", "how often it ran, whether it allocated or not")},
	[MEMORY_OP_INCREASE] = {COLUMN(BYTES, "size_increase_bytes", "Size Increase", "allocated less freed, by it and the ops inside it")},
	[MEMORY_OP_SELF_INCREASE] = {COLUMN(BYTES, "self_size_increase_bytes", "Self Size Increase", "allocated less freed, by itself")},
	[MEMORY_OP_ALLOCATIONS] = {COLUMN(COUNT, "allocations", "Allocation Count", "how often it or an op inside it allocated")},
	[MEMORY_OP_SELF_ALLOCATIONS] = {COLUMN(COUNT, "self_allocations", "Self Allocation Count", "how often it allocated itself")},
	[MEMORY_OP_ALLOCATED] = {COLUMN(BYTES, "allocation_bytes", "Allocation Size", "allocated by it and the ops inside it, frees not subtracted")},
	[MEMORY_OP_SELF_ALLOCATED] = {COLUMN(BYTES, "self_allocation_bytes", "Self Allocation Size", "allocated by itself, frees not subtracted")},
)};

static int memory_put_statistics(struct memory_view *v, const struct report_args *args, struct table *out, struct err *e)
{
	struct optree *t = optree_new(v->p, &optree_own);
	struct memory_op *op;
	uint32_t n = memory_view_ops(v, t, &op);
	section_start(&memory_op_section, args, 0, out);
	for (uint32_t i = 0; i < n; i++) {
		if (!op[i].touched)
			continue;
		table_row(out);
		table_set_str(out, MEMORY_OP_NAME, profile_str(v->p, op[i].name));
		table_set_i64(out, MEMORY_OP_CALLS, (int64_t)op[i].calls);
		table_set_i64(out, MEMORY_OP_INCREASE, op[i].total[MEMORY_INCREASE]);
		table_set_i64(out, MEMORY_OP_SELF_INCREASE, op[i].self[MEMORY_INCREASE]);
		table_set_i64(out, MEMORY_OP_ALLOCATIONS, op[i].total[MEMORY_ALLOCATIONS]);
		table_set_i64(out, MEMORY_OP_SELF_ALLOCATIONS, op[i].self[MEMORY_ALLOCATIONS]);
		table_set_i64(out, MEMORY_OP_ALLOCATED, op[i].total[MEMORY_ALLOCATED]);
		table_set_i64(out, MEMORY_OP_SELF_ALLOCATED, op[i].self[MEMORY_ALLOCATED]);
	}
	mem_free(op);
	optree_free(t);
	return table_sort(out, STR("self_size_increase_bytes"), true, e);
}

/* --- events ----------------------------------------------------------------------------------------------------- */

enum { MEMORY_EVENT_OPERATOR, MEMORY_EVENT_SIZE, MEMORY_EVENT_ALLOCATED, MEMORY_EVENT_RELEASED, MEMORY_EVENT_DURATION };

static const struct section memory_event_section = {.name = "events", .title = "Memory blocks", COLUMNS(
	[MEMORY_EVENT_OPERATOR] = {COLUMN(TEXT, "operator", "Operator", "innermost op around the allocation; of aten::empty and its kin the op or annotation around it "
	                                  "first; of a memory snapshot the op in its C++ frames and the line of Python, as far as recorded")},
	[MEMORY_EVENT_SIZE] = {COLUMN(BYTES, "size_bytes", "Size", "size of the block")},
	[MEMORY_EVENT_ALLOCATED] = {COLUMN(NS, "allocation_time_ns", "Allocation Time", "since the start of the trace; empty: before it")},
	[MEMORY_EVENT_RELEASED] = {COLUMN(NS, "release_time_ns", "Release Time", "since the start of the trace; empty: not before its end")},
	[MEMORY_EVENT_DURATION] = {COLUMN(NS, "duration_ns", "Duration", "release - allocation")},
)};

/* Of an allocation that has a stack of its own. */
static void set_owner(struct memory_owners *owners, struct table *t, uint32_t alloc)
{
	struct memory_owner w = memory_owner_of(owners, alloc);
	struct str op = memory_owner_text(owners, w.op), line = memory_owner_text(owners, w.line);
	if (!op.n && !line.n)
		table_set_str(t, MEMORY_EVENT_OPERATOR, STR("<unknown>"));
	else
		table_set_fmt(t, MEMORY_EVENT_OPERATOR, STR_FMT "%s" STR_FMT, STR_ARG(op), op.n && line.n ? " in " : "", STR_ARG(line));
}

/* aten::empty and its kin allocate for another op: the op around them is named, too, or else the step or annotation around them. */
static void set_operator(const struct memory_view *v, struct memory_owners *owners, struct table *t, uint32_t alloc)
{
	if (owners && alloc != ROW_NONE && memory_args(&v->p->memory, alloc)) {
		set_owner(owners, t, alloc);
		return;
	}
	const struct spans *s = &v->p->span;
	uint32_t span = alloc == ROW_NONE ? ROW_NONE : v->p->memory.span[alloc], around = ROW_NONE;
	if (span == ROW_NONE) {
		table_set_str(t, MEMORY_EVENT_OPERATOR, STR("<unknown>"));
		return;
	}
	struct str name = profile_str(v->p, s->name[span]);
	if (str_starts(name, STR("aten::empty")))
		around = s->op[span] != ROW_NONE ? s->op[span] : s->parent[span];
	while (around != ROW_NONE && s->kind[around] != SPAN_OP && s->kind[around] != SPAN_USER)
		around = s->parent[around];
	if (around != ROW_NONE)
		table_set_fmt(t, MEMORY_EVENT_OPERATOR, STR_FMT " (" STR_FMT ")", STR_ARG(profile_str(v->p, s->name[around])), STR_ARG(name));
	else
		table_set_str(t, MEMORY_EVENT_OPERATOR, name);
}

static bool memory_in_window(const struct memory_view *v, uint32_t row)
{
	return row != ROW_NONE && window_has(&v->w, v->p->memory.time_ns[row]);
}

static void memory_put_events(const struct memory_view *v, struct table *t)
{
	const struct memories *m = &v->p->memory;
	struct memory_pair *pair;
	struct memory_owners *owners = m->args ? memory_owners_new(v->p) : NULL;
	uint32_t n = memory_pairs(v->p, v->device, &pair), kept = 0, freed = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t a = pair[i].alloc, r = pair[i].release;
		if (!memory_in_window(v, a) && !memory_in_window(v, r))
			continue;
		table_row(t);
		set_operator(v, owners, t, a);
		table_set_i64(t, MEMORY_EVENT_SIZE, a != ROW_NONE ? m->bytes[a] : -m->bytes[r]);
		if (a != ROW_NONE)
			table_set_i64(t, MEMORY_EVENT_ALLOCATED, m->time_ns[a] - v->start_ns);
		if (r != ROW_NONE)
			table_set_i64(t, MEMORY_EVENT_RELEASED, m->time_ns[r] - v->start_ns);
		if (a != ROW_NONE && r != ROW_NONE)
			table_set_i64(t, MEMORY_EVENT_DURATION, m->time_ns[r] - m->time_ns[a]);
		kept += r == ROW_NONE;
		freed += a == ROW_NONE;
	}
	mem_free(pair);
	memory_owners_free(owners);
	if (v->without_address)
		table_warn(t, "%llu of %u memory events have no address and are left out: traces of torch 1.10 and later have it",
		           (unsigned long long)v->without_address, v->n);
	if (kept || freed)
		table_note(t, "blocks not freed within the trace: %u; freed, but allocated before it: %u", kept, freed);
}

/* --- curve ------------------------------------------------------------------------------------------------------ */

enum { MEMORY_CURVE_TIME, MEMORY_CURVE_AT_LEAST, MEMORY_CURVE_ALLOCATED, MEMORY_CURVE_RESERVED };

static const struct section memory_curve_section = {.name = "curve", .title = "Memory over time", COLUMNS(
	[MEMORY_CURVE_TIME] = {COLUMN(NS, "time_ns", "Time", "since the start of the trace")},
	[MEMORY_CURVE_AT_LEAST] = {COLUMN(BYTES, "allocated_at_least_bytes", "Allocated, at least", "in blocks of this trace and those held before that it frees"),
	                                  .when = WHEN_NO_TOTALS},
	[MEMORY_CURVE_ALLOCATED] = {COLUMN(BYTES, "allocated_bytes", "Allocated", "in live blocks on this device"), .when = WHEN_RECORDED},
	[MEMORY_CURVE_RESERVED] = {COLUMN(BYTES, "reserved_bytes", "Reserved", "held by the caching allocator; 0 on the CPU, which has none"), .when = WHEN_RECORDED},
)};

static void memory_put_point(const struct memory_view *v, struct table *t, const struct memory_curve *c, uint32_t at, uint32_t values_of)
{
	table_row(t);
	table_set_i64(t, MEMORY_CURVE_TIME, c->time_ns[at]);
	table_set_i64(t, MEMORY_CURVE_AT_LEAST, c->bytes[values_of]);
	table_set_i64(t, MEMORY_CURVE_ALLOCATED, c->bytes[values_of]);
	if (!c->at_least && v->p->memory.total_reserved[c->row[values_of]] != ID_NONE)
		table_set_i64(t, MEMORY_CURVE_RESERVED, v->p->memory.total_reserved[c->row[values_of]]);
}

/* Sums of the events themselves. The lowest sum is 0: what is freed without an allocation was held before the first event. */
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

static void memory_put_curve(const struct memory_view *v, struct table *t)
{
	struct memory_curve c;
	memory_curve_init(&c, v);
	c.at_least = v->n && v->without_totals == v->n;
	if (c.at_least) {
		section_leave_out(&memory_curve_section, MEMORY_CURVE_ALLOCATED, t);
		section_leave_out(&memory_curve_section, MEMORY_CURVE_RESERVED, t);
		own_sums(v, &c);
	} else {
		section_leave_out(&memory_curve_section, MEMORY_CURVE_AT_LEAST, t);
	}
	memory_curve_put(v, &c, t, memory_put_point);
	memory_curve_release(&c);
}

static int memory_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct memory_view v;
	if (memory_view_init(&v, p, args, e) < 0 || window_of(p, args, &v.w, e) < 0)
		return -1;
	memory_view_select(&v);
	int rc = memory_put_statistics(&v, args, out, e);
	memory_view_put_notes(&v, out);
	struct table *events = section_add(&memory_event_section, args, 0, out), *curve = section_add(&memory_curve_section, args, WHEN_RECORDED | WHEN_NO_TOTALS, out);
	curve->curve = true;
	memory_put_events(&v, events);
	memory_put_curve(&v, curve);
	events->folded = curve->folded = true;
	memory_view_put_peaks(&v, args, out)->lead = true;
	if (rc == 0)
		rc = memory_peak_sections(p, &v.w, v.device, args, out, e);
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
	.sections = (const struct section *const[]){&memory_op_section, &memory_event_section, &memory_curve_section, &memory_peaks_section,
	                                            &memory_held_section, &memory_held_by_op_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE | PASS_MEMORY,
	.takes = REPORT_STEPS | REPORT_DEVICE,
	.run = memory_run,
};
