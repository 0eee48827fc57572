#include "query/event_list.h"

#include "analysis/steps/steps.h"
#include "analysis/tree/layers.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

enum {
	LIST_EVENT, LIST_NAME, LIST_KIND, LIST_CATEGORY, LIST_START, LIST_DURATION, LIST_STEP, LIST_OP, LIST_MODULE, LIST_DIRECTION, LIST_PROCESS, LIST_THREAD, LIST_THREAD_NAME,
	LIST_DEVICE, LIST_STREAM, LIST_PARENT, LIST_CALL, LIST_OP_EVENT, LIST_CORRELATION, LIST_EXTERNAL, LIST_BYTES, LIST_COLUMNS
};

static const struct section_column event_list_columns[LIST_COLUMNS] = {
	[LIST_EVENT] = {COLUMN(NUMBER, "event", "Event", "its number, from 0, in order of start")},
	[LIST_NAME] = {COLUMN(TEXT, "name", "Name", "name as recorded")},
	[LIST_KIND] = {COLUMN(TEXT, "kind", "Kind", "op, user, python, call, ... of a range of the host; kernel, memcpy, memset of device work")},
	[LIST_CATEGORY] = {COLUMN(TEXT, "category", "Category", "category as written in the input; empty = none")},
	[LIST_START] = {COLUMN(TIME, "start_ns", "Start", "on the trace's clock; empty where the input has no times")},
	[LIST_DURATION] = {COLUMN(NS, "duration_ns", "Duration", "from its start to its end")},
	[LIST_STEP] = {COLUMN(NUMBER, "step", "Step", "number of the step that it belongs to; empty = none")},
	[LIST_OP] = {COLUMN(TEXT, "op", "Op", "the op that launched the work, made the call or is around the range; empty = none")},
	[LIST_MODULE] = {COLUMN(TEXT, "module", "Module", "the module or layer that it counts for, with those around it; empty = none, or not known")},
	[LIST_DIRECTION] = {COLUMN(TEXT, "direction", "Direction", "forward, backward or optimizer; empty = outside all ops")},
	[LIST_PROCESS] = {COLUMN(TEXT, "process", "Process", "process of the host that ran or launched it, as recorded; empty = not stated")},
	[LIST_THREAD] = {COLUMN(TEXT, "thread", "Thread", "thread of the host, as recorded; empty of device work")},
	[LIST_THREAD_NAME] = {COLUMN(TEXT, "thread_name", "Thread's name", "as recorded; empty = not stated")},
	[LIST_DEVICE] = {COLUMN(NUMBER, "device", "Device", "ordinal of the device that the work ran on; empty = it ran on the host, or not stated")},
	[LIST_STREAM] = {COLUMN(NUMBER, "stream", "Stream", "stream of the work; empty = it ran on the host, or not stated")},
	[LIST_PARENT] = {COLUMN(NUMBER, "parent", "Parent", "number of the innermost range of the same thread around it; empty = none")},
	[LIST_CALL] = {COLUMN(NUMBER, "call", "Call", "of device work, number of the API call that launched it; empty = not known")},
	[LIST_OP_EVENT] = {COLUMN(NUMBER, "op_event", "Op's event", "number of the event that is its op; empty = none")},
	[LIST_CORRELATION] = {COLUMN(NUMBER, "correlation", "Correlation", "correlation id of an API call or of device work; empty = none")},
	[LIST_EXTERNAL] = {COLUMN(NUMBER, "external_id", "External id", "External id as recorded; empty = none")},
	[LIST_BYTES] = {COLUMN(BYTES, "bytes", "Bytes", "moved by a copy or set; empty = not stated")},
};

struct event_list {
	const struct profile *p;
	struct table *out;
	struct layers *layers;
	struct str *module;        /* by layer: its name, in the arena of the table, which outlives the layers */
	int64_t *root_ns;          /* span -> start of the outermost op around it */
	uint32_t *number;          /* span, then gpu_op -> its event */
};

static uint32_t event_list_step_at(const struct steps *s, int64_t time_ns, bool device)
{
	uint32_t i = device ? FIRST_WHERE(k, 0, s->n, s->v[k].end_ns > time_ns) : FIRST_WHERE(k, 0, s->n, s->v[k].host_end_ns > time_ns);
	return i < s->n && (device ? s->v[i].start_ns : s->v[i].host_start_ns) <= time_ns ? i : ROW_NONE;
}

static void event_list_put_step(struct event_list *l, int64_t time_ns, bool device)
{
	const struct steps *s = l->p->steps;
	uint32_t i = s && !s->whole_trace ? event_list_step_at(s, time_ns, device) : ROW_NONE;
	if (i != ROW_NONE)
		table_set_i64(l->out, LIST_STEP, s->v[i].number);
}

static void event_list_put_id(struct event_list *l, unsigned column, int64_t id)
{
	if (id != ID_NONE)
		table_set_i64(l->out, column, id);
}

static void event_list_put_text(struct event_list *l, unsigned column, struct str text)
{
	if (text.n)
		table_set_str(l->out, column, text);
}

static void event_list_put_event(struct event_list *l, unsigned column, uint32_t span)
{
	if (span != ROW_NONE)
		table_set_i64(l->out, column, l->number[span]);
}

static void event_list_put_op(struct event_list *l, uint32_t span)
{
	event_list_put_event(l, LIST_OP_EVENT, span);
	if (span != ROW_NONE)
		event_list_put_text(l, LIST_OP, profile_str(l->p, l->p->span.name[span]));
}

static void event_list_put_place(struct event_list *l, uint32_t layer, uint8_t direction)
{
	if (layer != LAYER_NONE)
		event_list_put_text(l, LIST_MODULE, l->module[layer]);
	if (direction != DIR_OTHER)
		table_set_str(l->out, LIST_DIRECTION, str_from(direction_name[direction]));
}

static void event_list_put_time(struct event_list *l, int64_t start_ns, int64_t duration_ns)
{
	if (!l->p->durations_only)
		table_set_i64(l->out, LIST_START, start_ns);
	table_set_i64(l->out, LIST_DURATION, duration_ns);
}

static void event_list_put_thread(struct event_list *l, uint32_t track)
{
	const struct profile *p = l->p;
	if (track >= p->track.rows.n)
		return;
	event_list_put_text(l, LIST_PROCESS, profile_str(p, p->track.pid_text[track]));
	event_list_put_text(l, LIST_THREAD, profile_str(p, p->track.tid_text[track]));
	event_list_put_text(l, LIST_THREAD_NAME, profile_str(p, p->track.thread_name[track]));
}

static void event_list_put_span(struct event_list *l, uint32_t i)
{
	const struct profile *p = l->p;
	const struct spans *s = &p->span;
	event_list_put_text(l, LIST_NAME, profile_str(p, s->name[i]));
	table_set_str(l->out, LIST_KIND, str_from(span_kind_name[s->kind[i]]));
	event_list_put_text(l, LIST_CATEGORY, profile_cat(p, s->cat[i]));
	event_list_put_time(l, s->start_ns[i], s->dur_ns[i]);
	event_list_put_step(l, l->root_ns[i], false);
	event_list_put_op(l, s->op[i]);
	event_list_put_place(l, l->layers->of_span ? l->layers->of_span[i] : LAYER_NONE, l->layers->dir->span[i]);
	event_list_put_thread(l, s->track[i]);
	event_list_put_event(l, LIST_PARENT, s->parent[i]);
	if (s->kind[i] == SPAN_CALL)
		event_list_put_id(l, LIST_CORRELATION, s->link_id[i]);
	event_list_put_id(l, LIST_EXTERNAL, span_ext_id(s, i));
}

static void event_list_put_launch(struct event_list *l, uint32_t launch)
{
	const struct launches *x = &l->p->launch;
	if (launch == ROW_NONE)
		return;
	if (x->device[launch] != INT32_MIN)
		table_set_i64(l->out, LIST_DEVICE, x->device[launch]);
	if (x->pid[launch] != ID_NONE)
		table_set_fmt(l->out, LIST_PROCESS, "%lld", (long long)x->pid[launch]);
	event_list_put_id(l, LIST_STREAM, x->stream[launch]);
	event_list_put_id(l, LIST_BYTES, x->bytes[launch]);
}

static void event_list_put_work(struct event_list *l, uint32_t i)
{
	const struct profile *p = l->p;
	const struct gpu_ops *g = &p->gpu_op;
	uint32_t launcher = g->op[i] != ROW_NONE ? g->op[i] : g->call[i];
	event_list_put_text(l, LIST_NAME, profile_str(p, g->name[i]));
	table_set_str(l->out, LIST_KIND, str_from(gpu_kind_name[g->kind[i]]));
	event_list_put_text(l, LIST_CATEGORY, profile_cat(p, g->cat[i]));
	event_list_put_time(l, g->start_ns[i], g->dur_ns[i]);
	event_list_put_step(l, launcher != ROW_NONE ? l->root_ns[launcher] : g->start_ns[i], launcher == ROW_NONE);
	event_list_put_op(l, g->op[i]);
	event_list_put_place(l, layers_of_gpu(l->layers, p, i), l->layers->dir->gpu[i]);
	event_list_put_launch(l, g->launch[i]);
	event_list_put_event(l, LIST_CALL, g->call[i]);
	event_list_put_id(l, LIST_CORRELATION, g->corr_id[i]);
	event_list_put_id(l, LIST_EXTERNAL, gpu_ext_id(g, i));
}

/* As slice_of has it. */
static void event_list_find_roots(struct event_list *l)
{
	const struct spans *s = &l->p->span;
	l->root_ns = NEW_ARRAY(s->rows.n, int64_t);
	for (uint32_t i = 0; i < s->rows.n; i++)
		l->root_ns[i] = s->op[i] < i ? l->root_ns[s->op[i]] : s->start_ns[i];
}

/* The events in order: ranges of the host by their rows, then device work, from the number of ranges on. The caller's. */
static struct sort_item *event_list_order(const struct profile *p, uint32_t n)
{
	const uint32_t spans = p->span.rows.n;
	struct sort_item *v = NEW_ARRAY_RAW(n, struct sort_item);
	for (uint32_t i = 0; i < n; i++)
		v[i] = (struct sort_item){~sort_key_i64(i < spans ? p->span.dur_ns[i] : p->gpu_op.dur_ns[i - spans]), i, 0};
	sort_items(v, n);
	for (uint32_t i = 0; i < n; i++)
		v[i].key = sort_key_i64(v[i].row < spans ? p->span.start_ns[v[i].row] : p->gpu_op.start_ns[v[i].row - spans]);
	sort_items(v, n);
	return v;
}

static void event_list_fill(struct event_list *l, uint32_t n)
{
	const uint32_t spans = l->p->span.rows.n;
	struct sort_item *order = event_list_order(l->p, n);
	l->number = NEW_ARRAY_RAW(n, uint32_t);
	for (uint32_t i = 0; i < n; i++)
		l->number[order[i].row] = i;
	for (uint32_t i = 0; i < n; i++) {
		table_row(l->out);
		table_set_i64(l->out, LIST_EVENT, i);
		if (order[i].row < spans)
			event_list_put_span(l, order[i].row);
		else
			event_list_put_work(l, order[i].row - spans);
	}
	mem_free(l->number);
	mem_free(order);
}

static void event_list_find_modules(struct event_list *l)
{
	const struct layers *x = l->layers;
	l->module = NEW_ARRAY(x->n, struct str);
	for (uint32_t i = 0; i < x->n; i++)
		l->module[i] = arena_str(&l->out->arena, intern_get(&x->names, x->v[i].name));
}

int event_list(struct profile *whole, const struct report_args *asked, struct table *out, struct err *e)
{
	struct report_args args;
	if (report_args_chosen(whole, asked, &args, e) < 0)
		return -1;
	const unsigned needs = PASS_NEST | PASS_CORRELATE | (whole->durations_only ? 0 : PASS_STEPS);
	struct profile *p = report_part(whole, &args, needs, e);
	if (!p)
		return -1;
	if (p->gpu_op.rows.n >= ROW_NONE - p->span.rows.n)
		return err_set(e, ERR_LIMIT, "more than 2^32-2 events");
	struct event_list l = {.p = p, .out = out, .layers = layers_new(p)};
	table_init(out, "events", "Events");
	for (unsigned i = 0; i < LIST_COLUMNS; i++)
		table_column(out, &event_list_columns[i].column);
	event_list_find_roots(&l);
	event_list_find_modules(&l);
	event_list_fill(&l, p->span.rows.n + p->gpu_op.rows.n);
	layers_free(l.layers);
	mem_free(l.module);
	mem_free(l.root_ns);
	return 0;
}
