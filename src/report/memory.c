/* Memory by operator, the life of each block, the curve and its peaks (the plugin's memory_parser.py). */
#include "analysis/lttb.h"
#include "analysis/memory.h"
#include "analysis/optree.h"
#include "analysis/recording.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/round.h"
#include "report/memory_blocks.h"
#include "report/memory_peak.h"

#include <stdio.h>

/* Points of the curve at most, its step corners among them. */
enum { CURVE_POINTS = 10240 };

enum metric { INCREASE, ALLOCATIONS, ALLOCATED, N_METRICS };

struct metrics {
	int64_t self[N_METRICS], total[N_METRICS];
	bool touched; /* some event on the device lies in it or below */
};

struct operator {
	uint64_t calls;
	struct metrics m;
};

struct view {
	const struct profile *p;
	struct window w;
	bool compat;
	int device;
	int64_t start_ns;        /* first moment of the trace */
	uint32_t *row, n;        /* memory rows of the device in the window, in order of time */
	uint64_t without_address, without_totals, out_of_memory;
	/* What the rows add up to, and which part no operator claims. */
	int64_t net, net_outside;
	uint64_t outside;
};

static void select_rows(struct view *v)
{
	const struct memories *m = &v->p->memory;
	v->row = NEW_ARRAY_RAW(m->rows.n, uint32_t);
	for (uint32_t i = 0; i < m->rows.n; i++) {
		if (memory_device(v->p, i) != v->device || !window_has(&v->w, m->time_ns[i]))
			continue;
		if (!memory_is_event(v->p, i)) {
			v->out_of_memory++;
			continue;
		}
		v->without_address += m->addr[i] == ID_NONE;
		v->without_totals += !memory_has_totals(v->p, i);
		v->row[v->n++] = i;
	}
}

static const char *device_name(int device, char buf[24])
{
	if (device == MEMORY_CPU)
		return "CPU";
	snprintf(buf, 24, "GPU%d", device);
	return buf;
}

/* --- statistics ------------------------------------------------------------------------------------------------- */

static void count_event(struct metrics *m, int64_t bytes)
{
	m->touched = true;
	m->self[INCREASE] += bytes;
	if (bytes > 0) {
		m->self[ALLOCATIONS]++;
		m->self[ALLOCATED] += bytes;
	}
}

/* Own figures of each node from the events, then totals from the last node to the first: children stand behind. */
static struct metrics *node_metrics(struct view *v, const struct optree *t)
{
	struct metrics *m = NEW_ARRAY(t->n, struct metrics);
	for (uint32_t k = 0; k < v->n; k++) {
		uint32_t span = v->p->memory.span[v->row[k]];
		uint32_t node = span == ROW_NONE ? ROW_NONE : t->node_of_span[span];
		int64_t bytes = v->p->memory.bytes[v->row[k]];
		v->net += bytes;
		if (node == ROW_NONE || t->kind[node] != NODE_OP) {
			v->outside++;
			v->net_outside += bytes;
		}
		if (node != ROW_NONE)
			count_event(&m[node], bytes);
	}
	for (uint32_t n = t->n; n-- > 0;) {
		for (int c = 0; c < N_METRICS; c++)
			m[n].total[c] += m[n].self[c];
		if (t->parent[n] == ROW_NONE)
			continue;
		struct metrics *up = &m[t->parent[n]];
		up->touched |= m[n].touched;
		for (int c = 0; c < N_METRICS; c++)
			up->total[c] += m[n].total[c];
	}
	return m;
}

/* Operators by name, in order of first appearance: keys.entry[i + 1] is operator i. */
static struct operator *group(const struct view *v, const struct optree *t, const struct metrics *m, struct intern *keys)
{
	struct operator *op = NULL;
	size_t cap = 0;
	for (uint32_t n = 0; n < t->n; n++) {
		const struct spans *s = &v->p->span;
		uint32_t span = t->span[n];
		if (t->kind[n] != NODE_OP ||
		    !(v->w.all || (s->start_ns[span] < v->w.end_ns && span_end(v->p, span) >= v->w.start_ns)))
			continue;
		uint32_t before = keys->n;
		uint32_t at = intern_put(keys, (const char *)&s->name[span], sizeof s->name[span]) - 1;
		if (keys->n > before) {
			MEM_GROW(op, cap, at + 1);
			op[at] = (struct operator){0};
		}
		op[at].calls++;
		op[at].m.touched |= m[n].touched;
		for (int c = 0; c < N_METRICS; c++) {
			op[at].m.self[c] += m[n].self[c];
			op[at].m.total[c] += m[n].total[c];
		}
	}
	return op;
}

static void set_bytes(const struct view *v, struct table *t, unsigned col, int64_t bytes)
{
	if (v->compat)
		table_set_f64(t, col, memory_shown_compat((double)bytes / 1024));
	else
		table_set_i64(t, col, bytes);
}

static void set_time(const struct view *v, struct table *t, unsigned col, int64_t time_ns)
{
	if (v->compat)
		table_set_f64(t, col, memory_shown_compat((double)time_ns / 1e6));
	else
		table_set_i64(t, col, time_ns);
}

static const struct column statistics_columns[] = {
	{"operator", "Operator Name", "name of the op as the framework recorded it", CELL_STR},
	{"calls", "Calls", "how often it ran, whether it allocated or not", CELL_I64, UNIT_COUNT},
	{"size_increase_bytes", "Size Increase", "allocated less freed, by it and the ops inside it", CELL_I64, UNIT_BYTES},
	{"self_size_increase_bytes", "Self Size Increase", "allocated less freed, by itself", CELL_I64, UNIT_BYTES},
	{"allocations", "Allocation Count", "how often it or an op inside it allocated", CELL_I64, UNIT_COUNT},
	{"self_allocations", "Self Allocation Count", "how often it allocated itself", CELL_I64, UNIT_COUNT},
	{"allocation_bytes", "Allocation Size", "allocated by it and the ops inside it, frees not subtracted", CELL_I64, UNIT_BYTES},
	{"self_allocation_bytes", "Self Allocation Size", "allocated by itself, frees not subtracted", CELL_I64, UNIT_BYTES},
};

static const struct column statistics_columns_tb[] = {
	{"operator", "Operator Name", "operator", CELL_STR},
	{"calls", "Calls", "how often it ran", CELL_I64},
	{"size_increase_kb", "Size Increase (KB)", "KB of 1024 bytes", CELL_F64},
	{"self_size_increase_kb", "Self Size Increase (KB)", "KB of 1024 bytes", CELL_F64},
	{"allocations", "Allocation Count", "with the ops inside", CELL_I64},
	{"self_allocations", "Self Allocation Count", "its own", CELL_I64},
	{"allocation_kb", "Allocation Size (KB)", "KB of 1024 bytes", CELL_F64},
	{"self_allocation_kb", "Self Allocation Size (KB)", "KB of 1024 bytes", CELL_F64},
};

static int put_statistics(struct view *v, struct table *out, struct err *e)
{
	struct optree *t = optree_new(v->p, v->compat ? OPTREE_TB_PLUGIN : OPTREE_DEFAULT);
	struct metrics *m = node_metrics(v, t);
	struct intern keys;
	intern_init(&keys);
	struct operator *op = group(v, t, m, &keys);
	table_columns(out, v->compat ? statistics_columns_tb : statistics_columns, 8);
	for (uint32_t i = 0; i + 1 < keys.n; i++) {
		if (!op[i].m.touched)
			continue;
		uint32_t name;
		memcpy(&name, intern_get(&keys, i + 1).p, sizeof name);
		table_row(out);
		table_set_str(out, 0, profile_str(v->p, name));
		table_set_i64(out, 1, (int64_t)op[i].calls);
		set_bytes(v, out, 2, op[i].m.total[INCREASE]);
		set_bytes(v, out, 3, op[i].m.self[INCREASE]);
		table_set_i64(out, 4, op[i].m.total[ALLOCATIONS]);
		table_set_i64(out, 5, op[i].m.self[ALLOCATIONS]);
		set_bytes(v, out, 6, op[i].m.total[ALLOCATED]);
		set_bytes(v, out, 7, op[i].m.self[ALLOCATED]);
	}
	int rc = table_sort(out, str_from(out->data[3].col.id), true, e);
	mem_free(op);
	mem_free(m);
	intern_release(&keys);
	optree_free(t);
	return rc;
}

/* --- events ----------------------------------------------------------------------------------------------------- */

/* `aten::empty` and its kin allocate for others: the op around says for whom, or else the step or other annotation. */
static void set_operator(const struct view *v, struct table *t, uint32_t alloc)
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

static bool in_window(const struct view *v, uint32_t row)
{
	return row != ROW_NONE && window_has(&v->w, v->p->memory.time_ns[row]);
}

static void put_events_compat(const struct view *v, struct table *t)
{
	TABLE_COLUMN(t, "operator", "Operator", "operator", CELL_STR);
	TABLE_COLUMN(t, "size_kb", "Size (KB)", "KB of 1024 bytes", CELL_F64);
	TABLE_COLUMN(t, "allocation_time_ms", "Allocation Time (ms)", "since the start of the profiler", CELL_F64);
	TABLE_COLUMN(t, "release_time_ms", "Release Time (ms)", "since the start of the profiler", CELL_F64);
	TABLE_COLUMN(t, "duration_ms", "Duration (ms)", "release - allocation", CELL_F64);
	struct optree *tree = optree_new(v->p, OPTREE_TB_PLUGIN);
	struct memory_block *block;
	struct buf name = {0};
	uint32_t n = memory_blocks(v->p, tree, &v->w, v->device, &block);
	for (uint32_t i = 0; i < n; i++) {
		const struct memory_block *x = &block[i];
		table_row(t);
		buf_clear(&name);
		memory_block_name(v->p, tree, x, &name);
		table_set_str_copy(t, 0, buf_view(&name));
		set_bytes(v, t, 1, x->bytes);
		if (x->alloc != ROW_NONE)
			table_set_f64(t, 2, memory_shown_compat(memory_span_compat(v->p, ROW_NONE, x->alloc, 1e6)));
		if (x->release != ROW_NONE)
			table_set_f64(t, 3, memory_shown_compat(memory_span_compat(v->p, ROW_NONE, x->release, 1e6)));
		if (x->alloc != ROW_NONE && x->release != ROW_NONE)
			table_set_f64(t, 4, memory_shown_compat(memory_span_compat(v->p, x->alloc, x->release, 1e6)));
	}
	buf_release(&name);
	mem_free(block);
	optree_free(tree);
}

static void put_events(const struct view *v, struct table *t)
{
	const struct memories *m = &v->p->memory;
	TABLE_COLUMN(t, "operator", "Operator", "innermost op around the allocation; of aten::empty and its kin the op or annotation around it first", CELL_STR);
	TABLE_COLUMN(t, "size_bytes", "Size", "size of the block", CELL_I64, UNIT_BYTES);
	TABLE_COLUMN(t, "allocation_time_ns", "Allocation Time", "since the start of the trace; empty: before it", CELL_I64, UNIT_NS);
	TABLE_COLUMN(t, "release_time_ns", "Release Time", "since the start of the trace; empty: not before its end", CELL_I64, UNIT_NS);
	TABLE_COLUMN(t, "duration_ns", "Duration", "release - allocation", CELL_I64, UNIT_NS);
	struct memory_pair *pair;
	uint32_t n = memory_pairs(v->p, v->device, &pair), kept = 0, freed = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t a = pair[i].alloc, r = pair[i].release;
		if (!in_window(v, a) && !in_window(v, r))
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

/* --- curve and peaks -------------------------------------------------------------------------------------------- */

/* The points of a curve before sampling. */
struct points {
	int64_t *time_ns, *bytes;
	uint32_t *row, n;
	bool at_least; /* sums of the trace's own changes: no totals were recorded */
};

static void put_point(const struct view *v, struct table *t, const struct points *c, uint32_t at, uint32_t values_of)
{
	table_row(t);
	set_time(v, t, 0, c->time_ns[at]);
	set_bytes(v, t, 1, c->bytes[values_of]);
	if (!c->at_least && v->p->memory.total_reserved[c->row[values_of]] != ID_NONE)
		set_bytes(v, t, 2, v->p->memory.total_reserved[c->row[values_of]]);
}

static void recorded_totals(const struct view *v, struct points *c)
{
	for (uint32_t k = 0; k < v->n; k++) {
		if (!memory_has_totals(v->p, v->row[k]))
			continue;
		c->row[c->n] = v->row[k];
		c->time_ns[c->n] = v->p->memory.time_ns[v->row[k]] - v->start_ns;
		c->bytes[c->n++] = v->p->memory.total_allocated[v->row[k]];
	}
}

/* Where more is freed than was allocated, that was held before the first event. */
static void own_sums(const struct view *v, struct points *c)
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

static void curve_columns(const struct view *v, const struct points *c, struct table *t)
{
	if (v->compat) {
		TABLE_COLUMN(t, "time_ms", "Time (ms)", "since the start of the profiler", CELL_F64);
		TABLE_COLUMN(t, "allocated_kb", "Allocated (KB)", "KB of 1024 bytes", CELL_F64);
		TABLE_COLUMN(t, "reserved_kb", "Reserved (KB)", "KB of 1024 bytes", CELL_F64);
		return;
	}
	TABLE_COLUMN(t, "time_ns", "Time", "since the start of the trace", CELL_I64, UNIT_NS);
	if (c->at_least) {
		TABLE_COLUMN(t, "allocated_at_least_bytes", "Allocated, at least", "in blocks of this trace and those held before that it frees",
		             CELL_I64, UNIT_BYTES);
		return;
	}
	TABLE_COLUMN(t, "allocated_bytes", "Allocated", "in live blocks on this device", CELL_I64, UNIT_BYTES);
	TABLE_COLUMN(t, "reserved_bytes", "Reserved", "held by the caching allocator; 0 on the CPU, which has none", CELL_I64, UNIT_BYTES);
}

static void note_totals(const struct view *v, const struct points *c, struct table *t)
{
	if (c->at_least)
		table_warn(t, "no totals were recorded (torch 1.10 and later have them): this is what the events themselves add up to, without what was "
		           "held all the time");
	else if (v->without_totals)
		table_note(t, "%llu of %u memory events have no totals and are left out: traces of torch 1.10 and later have them",
		           (unsigned long long)v->without_totals, v->n);
}

/* Each point but the first is preceded by one at its time with the values before: a curve of steps. Sampling comes first,
 * so that no corner is lost: 2n - 1 points of the n kept. */
static void put_curve(const struct view *v, struct table *t)
{
	struct points c = {NEW_ARRAY_RAW(v->n, int64_t), NEW_ARRAY_RAW(v->n, int64_t), NEW_ARRAY_RAW(v->n, uint32_t), 0,
	                   !v->compat && v->n && v->without_totals == v->n};
	uint32_t *keep = NEW_ARRAY_RAW(v->n, uint32_t);
	curve_columns(v, &c, t);
	if (c.at_least)
		own_sums(v, &c);
	else
		recorded_totals(v, &c);
	uint32_t kept = lttb_select(c.time_ns, c.bytes, c.n, CURVE_POINTS / 2, keep);
	for (uint32_t k = 0; k < kept; k++) {
		if (k)
			put_point(v, t, &c, keep[k], keep[k - 1]);
		put_point(v, t, &c, keep[k], keep[k]);
	}
	if (kept < c.n)
		table_note(t, "%u of %u points shown, chosen by Largest-Triangle-Three-Buckets on the allocated size", kept, c.n);
	note_totals(v, &c, t);
	mem_free(c.time_ns);
	mem_free(c.bytes);
	mem_free(c.row);
	mem_free(keep);
}

static void put_peak(const struct view *v, struct table *t, int device, const struct memory_peak *k)
{
	const struct memories *m = &v->p->memory;
	char buf[24];
	const char *name = device_name(device, buf);
	table_row(t);
	table_set_fmt(t, 0, "%s", name);
	if (k->allocated != ROW_NONE) {
		table_set_i64(t, 1, m->total_allocated[k->allocated]);
		table_set_i64(t, 2, m->time_ns[k->allocated] - v->start_ns);
	} else if (k->events) {
		table_set_i64(t, 7, k->net);
		table_note(t, "%s: no totals were recorded (torch 1.10 and later have them): by the events themselves the peak is %lld bytes and what was "
		           "held all the time", name, (long long)k->net);
	}
	if (k->reserved != ROW_NONE) {
		table_set_i64(t, 3, m->total_reserved[k->reserved]);
		table_set_i64(t, 4, m->time_ns[k->reserved] - v->start_ns);
	}
	table_set_i64(t, 5, (int64_t)k->events);
	table_set_i64(t, 6, (int64_t)k->out_of_memory);
}

static void put_peaks(const struct view *v, struct table *t)
{
	TABLE_COLUMN(t, "device", "Device", "CPU or GPU and its ordinal", CELL_STR);
	TABLE_COLUMN(t, "peak_allocated_bytes", "Peak Allocated", "most memory in live blocks", CELL_I64, UNIT_BYTES);
	TABLE_COLUMN(t, "peak_allocated_time_ns", "Allocated At", "first time of it, since the start of the trace", CELL_I64, UNIT_NS);
	TABLE_COLUMN(t, "peak_reserved_bytes", "Peak Reserved", "most memory held by the caching allocator", CELL_I64, UNIT_BYTES);
	TABLE_COLUMN(t, "peak_reserved_time_ns", "Reserved At", "first time of it, since the start of the trace", CELL_I64, UNIT_NS);
	TABLE_COLUMN(t, "events", "Events", "allocations and frees", CELL_I64, UNIT_COUNT);
	TABLE_COLUMN(t, "out_of_memory", "Out of Memory", "failed allocations", CELL_I64, UNIT_COUNT);
	struct memory_peak *peak;
	bool without_totals = false;
	size_t n = memory_peaks(v->p, v->w.all ? INT64_MIN : v->w.start_ns, v->w.all ? INT64_MAX : v->w.end_ns - 1, &peak);
	for (size_t d = 0; d < n; d++)
		without_totals |= peak[d].events && peak[d].allocated == ROW_NONE;
	if (without_totals)
		TABLE_COLUMN(t, "peak_at_least_bytes", "Peak, at least",
		             "where no totals were recorded: most of what the events of the trace add up to", CELL_I64, UNIT_BYTES);
	for (size_t d = 0; d < n; d++)
		if (peak[d].events || peak[d].out_of_memory)
			put_peak(v, t, (int)d + MEMORY_CPU, &peak[d]);
	mem_free(peak);
}

static void put_notes(const struct view *v, struct table *out)
{
	char name[24];
	table_note(out, "%s: %u allocations and frees, net %lld bytes = in operators %lld + outside any operator %lld (%llu events)",
	           device_name(v->device, name), v->n, (long long)v->net, (long long)(v->net - v->net_outside),
	           (long long)v->net_outside, (unsigned long long)v->outside);
	if (v->out_of_memory)
		table_warn(out, "%llu allocations failed for lack of memory ([OutOfMemory])", (unsigned long long)v->out_of_memory);
	uint64_t other = 0;
	for (uint32_t i = 0; i < v->p->memory.rows.n; i++)
		other += memory_device(v->p, i) != v->device;
	if (other)
		table_warn(out, "%llu events are of other devices: see the section 'peaks', and choose with --device",
		           (unsigned long long)other);
}

static int memory_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct view v = {.p = p, .compat = args->compat != NULL};
	if (!p->memory.rows.n)
		return err_set(e, ERR_DATA, "the input holds no memory events; to record them: %s", recording_how(p, RECORD_MEMORY));
	if (memory_device_choose(p, args->device, &v.device, e) < 0 || window_of(p, args, &v.w, e) < 0)
		return -1;
	v.start_ns = memory_zero_ns(p);
	select_rows(&v);
	int rc = put_statistics(&v, out, e);
	put_notes(&v, out);
	struct table *events = table_section(out, "events", "Memory blocks"), *curve = table_section(out, "curve", "Memory over time");
	curve->curve = !args->compat;
	(v.compat ? put_events_compat : put_events)(&v, events);
	put_curve(&v, curve);
	events->folded = curve->folded = !v.compat;
	struct table *peaks = table_section(out, "peaks", "Peak memory by device");
	peaks->lead = !v.compat;
	put_peaks(&v, peaks);
	if (!v.compat && rc == 0)
		rc = memory_peak_sections(p, &v.w, v.device, !args->device, out, e);
	mem_free(v.row);
	return rc;
}

static const struct report_variant memory_variants[] = {
	{.compat = "tb-plugin"},
	{0},
};

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
	.variants = memory_variants,
	.needs = PASS_NEST | PASS_CORRELATE | PASS_MEMORY,
	.takes = REPORT_STEPS | REPORT_DEVICE,
	.run = memory_run,
};
