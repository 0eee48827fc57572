#include "report/parts/memory_view.h"

#include "analysis/memory/memory.h"
#include "analysis/recording.h"
#include "analysis/timeline/lttb.h"
#include "base/mem.h"

#include <stdio.h>

/* How many points a curve has at most, the corners of its steps included. */
enum { CURVE_POINTS = 10240 };

int memory_view_init(struct memory_view *v, const struct profile *p, const struct report_args *args, struct err *e)
{
	*v = (struct memory_view){.p = p};
	if (!p->memory.rows.n)
		return err_set(e, ERR_DATA, "the input holds no memory events; to record them: %s", recording_how(p, RECORD_MEMORY));
	v->start_ns = memory_zero_ns(p);
	return memory_device_choose(p, args->device, &v->device, e);
}

void memory_view_release(struct memory_view *v)
{
	mem_free(v->row);
}

void memory_view_select(struct memory_view *v)
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

/* --- operators -------------------------------------------------------------------------------------------------- */

struct node_metrics {
	int64_t self[MEMORY_METRICS], total[MEMORY_METRICS];
	bool touched;
};

static void count_event(struct node_metrics *m, int64_t bytes)
{
	m->touched = true;
	m->self[MEMORY_INCREASE] += bytes;
	if (bytes > 0) {
		m->self[MEMORY_ALLOCATIONS]++;
		m->self[MEMORY_ALLOCATED] += bytes;
	}
}

/* Adds the events to the own figures of their nodes, then the figures of children to totals, from the last node to the first: children stand behind. */
static struct node_metrics *nodes_measure(struct memory_view *v, const struct optree *t)
{
	struct node_metrics *m = NEW_ARRAY(t->n, struct node_metrics);
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
		for (int c = 0; c < MEMORY_METRICS; c++)
			m[n].total[c] += m[n].self[c];
		if (t->parent[n] == ROW_NONE)
			continue;
		struct node_metrics *up = &m[t->parent[n]];
		up->touched |= m[n].touched;
		for (int c = 0; c < MEMORY_METRICS; c++)
			up->total[c] += m[n].total[c];
	}
	return m;
}

uint32_t memory_view_ops(struct memory_view *v, const struct optree *t, struct memory_op **out)
{
	const struct spans *s = &v->p->span;
	struct node_metrics *m = nodes_measure(v, t);
	struct memory_op *op = NULL;
	struct intern keys;
	uint32_t count = 0, cap = 0;
	intern_init(&keys);
	for (uint32_t n = 0; n < t->n; n++) {
		uint32_t span = t->span[n];
		if (t->kind[n] != NODE_OP ||
		    !(v->w.all || (s->start_ns[span] < v->w.end_ns && span_end(v->p, span) >= v->w.start_ns)))
			continue;
		uint32_t at = intern_put(&keys, (const char *)&s->name[span], sizeof s->name[span]) - 1;
		if (at == count) {
			count++;
			MEM_GROW(op, cap, count);
			op[at] = (struct memory_op){.name = s->name[span]};
		}
		op[at].calls++;
		op[at].touched |= m[n].touched;
		for (int c = 0; c < MEMORY_METRICS; c++) {
			op[at].self[c] += m[n].self[c];
			op[at].total[c] += m[n].total[c];
		}
	}
	intern_release(&keys);
	mem_free(m);
	*out = op;
	return count;
}

/* --- curve and peaks -------------------------------------------------------------------------------------------- */

void memory_curve_init(struct memory_curve *c, const struct memory_view *v)
{
	*c = (struct memory_curve){NEW_ARRAY_RAW(v->n, int64_t), NEW_ARRAY_RAW(v->n, int64_t), NEW_ARRAY_RAW(v->n, uint32_t), 0, false};
	for (uint32_t k = 0; k < v->n; k++) {
		if (!memory_has_totals(v->p, v->row[k]))
			continue;
		c->row[c->n] = v->row[k];
		c->time_ns[c->n] = v->p->memory.time_ns[v->row[k]] - v->start_ns;
		c->bytes[c->n++] = v->p->memory.total_allocated[v->row[k]];
	}
}

void memory_curve_release(struct memory_curve *c)
{
	mem_free(c->time_ns);
	mem_free(c->bytes);
	mem_free(c->row);
}

static void note_totals(const struct memory_view *v, const struct memory_curve *c, struct table *t)
{
	if (c->at_least)
		table_warn(t, "no totals were recorded (torch 1.10 and later have them): this is what the events themselves add up to, without what was "
		           "held all the time");
	else if (v->without_totals)
		table_note(t, "%llu of %u memory events have no totals and are left out: traces of torch 1.10 and later have them",
		           (unsigned long long)v->without_totals, v->n);
}

/* Draws a curve of steps: before each point but the first stands a point at the same time with the values before. Points are chosen first, so that no corner
 * is lost: n points make 2n - 1. */
void memory_curve_put(const struct memory_view *v, const struct memory_curve *c, struct table *t, memory_curve_put_fn *put)
{
	uint32_t *keep = NEW_ARRAY_RAW(v->n, uint32_t);
	uint32_t kept = lttb_select(c->time_ns, c->bytes, c->n, CURVE_POINTS / 2, keep);
	for (uint32_t k = 0; k < kept; k++) {
		if (k)
			put(v, t, c, keep[k], keep[k - 1]);
		put(v, t, c, keep[k], keep[k]);
	}
	if (kept < c->n)
		table_note(t, "%u of %u points shown, chosen by Largest-Triangle-Three-Buckets on the allocated size", kept, c->n);
	note_totals(v, c, t);
	mem_free(keep);
}

enum {
	MEMORY_PEAK_DEVICE, MEMORY_PEAK_ALLOCATED, MEMORY_PEAK_ALLOCATED_AT, MEMORY_PEAK_RESERVED, MEMORY_PEAK_RESERVED_AT, MEMORY_PEAK_EVENTS, MEMORY_PEAK_FAILED,
	MEMORY_PEAK_AT_LEAST
};

const struct section memory_peaks_section = {.name = "peaks", .title = "Peak memory by device", COLUMNS(
	[MEMORY_PEAK_DEVICE] = {COLUMN(TEXT, "device", "Device", "CPU or GPU and its ordinal")},
	[MEMORY_PEAK_ALLOCATED] = {COLUMN(BYTES, "peak_allocated_bytes", "Peak Allocated", "most memory in live blocks")},
	[MEMORY_PEAK_ALLOCATED_AT] = {COLUMN(NS, "peak_allocated_time_ns", "Allocated At", "first time of it, since the start of the trace")},
	[MEMORY_PEAK_RESERVED] = {COLUMN(BYTES, "peak_reserved_bytes", "Peak Reserved", "most memory held by the caching allocator")},
	[MEMORY_PEAK_RESERVED_AT] = {COLUMN(NS, "peak_reserved_time_ns", "Reserved At", "first time of it, since the start of the trace")},
	[MEMORY_PEAK_EVENTS] = {COLUMN(COUNT, "events", "Events", "allocations and frees")},
	[MEMORY_PEAK_FAILED] = {COLUMN(COUNT, "out_of_memory", "Out of Memory", "failed allocations")},
	[MEMORY_PEAK_AT_LEAST] = {COLUMN(BYTES, "peak_at_least_bytes", "Peak, at least", "most of what the events of the trace add up to"),
	                                 .when = WHEN_NO_TOTALS},
)};

static void memory_view_put_peak(const struct memory_view *v, struct table *t, int device, const struct memory_peak *k)
{
	const struct memories *m = &v->p->memory;
	char buf[24];
	const char *name = device_name(device, buf);
	table_row(t);
	table_set_fmt(t, MEMORY_PEAK_DEVICE, "%s", name);
	if (k->allocated != ROW_NONE) {
		table_set_i64(t, MEMORY_PEAK_ALLOCATED, m->total_allocated[k->allocated]);
		table_set_i64(t, MEMORY_PEAK_ALLOCATED_AT, m->time_ns[k->allocated] - v->start_ns);
	} else if (k->events) {
		table_set_i64(t, MEMORY_PEAK_AT_LEAST, k->net);
		table_note(t, "%s: no totals were recorded (torch 1.10 and later have them): by the events themselves the peak is %lld bytes and what was "
		           "held all the time", name, (long long)k->net);
	}
	if (k->reserved != ROW_NONE) {
		table_set_i64(t, MEMORY_PEAK_RESERVED, m->total_reserved[k->reserved]);
		table_set_i64(t, MEMORY_PEAK_RESERVED_AT, m->time_ns[k->reserved] - v->start_ns);
	}
	table_set_i64(t, MEMORY_PEAK_EVENTS, (int64_t)k->events);
	table_set_i64(t, MEMORY_PEAK_FAILED, (int64_t)k->out_of_memory);
}

struct table *memory_view_put_peaks(const struct memory_view *v, const struct report_args *args, struct table *out)
{
	struct memory_peak *peak;
	bool without_totals = false;
	size_t n = memory_peaks(v->p, v->w.all ? INT64_MIN : v->w.start_ns, v->w.all ? INT64_MAX : v->w.end_ns - 1, &peak);
	for (size_t d = 0; d < n; d++)
		without_totals |= peak[d].events && peak[d].allocated == ROW_NONE;
	struct table *t = section_add(&memory_peaks_section, args, without_totals ? WHEN_NO_TOTALS : 0, out);
	for (size_t d = 0; d < n; d++)
		if (peak[d].events || peak[d].out_of_memory)
			memory_view_put_peak(v, t, (int)d + MEMORY_CPU, &peak[d]);
	mem_free(peak);
	return t;
}

void memory_view_put_notes(const struct memory_view *v, struct table *out)
{
	char name[24];
	table_note(out, "%s: %u allocations and frees, net %lld bytes = in operators %lld + outside any operator %lld (%llu events)",
	           device_name(v->device, name), v->n, (long long)v->net, (long long)(v->net - v->net_outside),
	           (long long)v->net_outside, (unsigned long long)v->outside);
	if (v->p->memory.args)
		table_note(out, "a memory snapshot records no ops: the section held_by_op and the report leaks tell who allocated, by its stacks");
	if (v->out_of_memory)
		table_warn(out, "%llu allocations failed for lack of memory ([OutOfMemory])", (unsigned long long)v->out_of_memory);
	uint64_t other = 0;
	for (uint32_t i = 0; i < v->p->memory.rows.n; i++)
		other += memory_device(v->p, i) != v->device;
	if (other)
		table_warn(out, "%llu events are of other devices: see the section 'peaks', and choose with --device",
		           (unsigned long long)other);
}
