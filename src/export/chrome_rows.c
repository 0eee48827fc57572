/* Chrome trace events made from the rows of a profile: categories and arguments as Kineto has them, whoever recorded it. */
#include "analysis/analysis.h"
#include "analysis/tree/fwdbwd.h"
#include "base/hash.h"
#include "base/json_text.h"
#include "base/mem.h"
#include "export/chrome.h"
#include "io/json_valid.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct writer {
	const struct profile *p;
	struct sink *out;
	struct buf *b;
	bool kineto;            /* the categories are Kineto's own */
	bool number_calls;      /* correlation ids are made anew: those of several processes are alike */
	uint32_t *around;       /* External ids are made, since in the input none lead from work to ops: ops_around. NULL = they are the input's */
	uint8_t *plain;         /* by string: 1 = nothing to escape, 2 = there is; 0 = not looked at */
	struct str *json;       /* by string: what is JSON text, made valid; .p NULL = not looked at */
	struct str *launch;     /* by launch: its arguments as text, made when first needed */
	struct str *place;      /* by track: "pid" and "tid" as text */
	struct arena texts;
	bool any;               /* an event is written already */
};

static void put_string(struct writer *w, uint32_t id)
{
	struct str s = profile_str(w->p, id);
	if (id < w->p->strings.n && !w->plain[id])
		w->plain[id] = json_is_plain(s) ? 1 : 2;
	if (id >= w->p->strings.n || w->plain[id] == 2) {
		json_put_string(w->b, s);
		return;
	}
	char *p = buf_room(w->b, s.n + 2);
	*p++ = '"';
	memcpy(p, s.p, s.n);
	p[s.n] = '"';
	w->b->n += s.n + 2;
}

static void export_chrome_rows_put_i64(struct buf *b, int64_t v)
{
	b->n = (size_t)(chrome_put_i64(buf_room(b, CHROME_NUMBER_MAX), v) - b->p);
}

static void export_chrome_rows_put_us(struct buf *b, int64_t ns)
{
	b->n = (size_t)(chrome_put_us(buf_room(b, CHROME_NUMBER_MAX), ns) - b->p);
}

/* With as many digits as tell it from all other doubles. */
static void export_chrome_rows_put_f64(struct buf *b, double v)
{
	char text[40];
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	buf_cstr(b, text);
}

/* ,"key":v and the like; the first of an object has no comma. */
static void export_chrome_rows_put_key(struct buf *b, const char *key)
{
	if (b->n && b->p[b->n - 1] != '{')
		buf_char(b, ',');
	buf_char(b, '"');
	buf_cstr(b, key);
	buf_put(b, "\":", 2);
}

static void export_chrome_rows_put_number(struct buf *b, const char *key, int64_t v, int64_t unless)
{
	if (v == unless)
		return;
	export_chrome_rows_put_key(b, key);
	export_chrome_rows_put_i64(b, v);
}

static void put_real(struct buf *b, const char *key, double v)
{
	if (!isfinite(v))
		return;
	export_chrome_rows_put_key(b, key);
	export_chrome_rows_put_f64(b, v);
}

static void put_triple(struct buf *b, const char *key, const int32_t v[3])
{
	if (v[0] == INT32_MIN)
		return;
	export_chrome_rows_put_key(b, key);
	buf_printf(b, "[%d, %d, %d]", v[0], v[1], v[2]);
}

static struct str launch_text(struct writer *w, uint32_t id)
{
	const struct launches *l = &w->p->launch;
	if (w->launch[id].p)
		return w->launch[id];
	struct buf b = {0};
	buf_char(&b, '{');
	export_chrome_rows_put_number(&b, "device", l->device[id], INT32_MIN);
	export_chrome_rows_put_number(&b, "context", l->context[id], ID_NONE);
	export_chrome_rows_put_number(&b, "stream", l->stream[id], ID_NONE);
	export_chrome_rows_put_number(&b, "bytes", l->bytes[id], ID_NONE);
	export_chrome_rows_put_number(&b, "registers per thread", l->registers[id], INT32_MIN);
	export_chrome_rows_put_number(&b, "shared memory", l->shared_bytes[id], INT32_MIN);
	put_real(&b, "blocks per SM", l->blocks_per_sm[id]);
	put_real(&b, "warps per SM", l->warps_per_sm[id]);
	put_triple(&b, "grid", (int32_t[]){l->grid_x[id], l->grid_y[id], l->grid_z[id]});
	put_triple(&b, "block", (int32_t[]){l->block_x[id], l->block_y[id], l->block_z[id]});
	put_real(&b, "est. achieved occupancy %", l->occupancy_pct[id]);
	export_chrome_rows_put_number(&b, "graph id", l->graph_id[id], ID_NONE);
	export_chrome_rows_put_number(&b, "graph node id", l->graph_node_id[id], ID_NONE);
	w->launch[id] = arena_str(&w->texts, (struct str){b.p + 1, b.n - 1});
	buf_release(&b);
	return w->launch[id];
}

/* Whether text stands for the number that it looks like, and so can go without quotes. */
static bool is_integer(struct str s)
{
	int64_t v;
	char text[CHROME_NUMBER_MAX];
	return str_to_i64(s, &v) && str_eq(s, (struct str){text, (size_t)(chrome_put_i64(text, v) - text)});
}

void chrome_put_id(struct buf *b, struct str s)
{
	if (is_integer(s))
		buf_str(b, s);
	else
		json_put_string(b, s);
}

static struct str track_text(struct writer *w, uint32_t track)
{
	const struct tracks *t = &w->p->track;
	if (w->place[track].p)
		return w->place[track];
	struct buf b = {0};
	buf_cstr(&b, ",\"pid\":");
	chrome_put_id(&b, profile_str(w->p, t->pid_text[track]));
	buf_cstr(&b, ",\"tid\":");
	chrome_put_id(&b, profile_str(w->p, t->tid_text[track]));
	w->place[track] = arena_str(&w->texts, buf_view(&b));
	buf_release(&b);
	return w->place[track];
}

/* {"ph":"X","cat":...,"name":...,"pid":...,"tid":...,"ts":... */
static void export_chrome_rows_begin(struct writer *w, char phase, struct str cat, uint32_t name, uint32_t track, int64_t ts)
{
	struct buf *b = w->b;
	buf_cstr(b, w->any ? ",\n{\"ph\":" : "\n{\"ph\":");
	json_put_string(b, (struct str){&phase, 1});
	if (cat.n) {
		buf_cstr(b, ",\"cat\":");
		json_put_string(b, cat);
	}
	buf_cstr(b, ",\"name\":");
	put_string(w, name);
	if (track < w->p->track.rows.n)
		buf_str(b, track_text(w, track));
	buf_cstr(b, ",\"ts\":");
	export_chrome_rows_put_us(b, ts);
	w->any = true;
}

static void export_chrome_rows_put_json(struct writer *w, uint32_t id)
{
	if (!w->json[id].p) {
		struct buf b = {0};
		struct str s = profile_str(w->p, id);
		json_put_valid_text(&b, s);
		w->json[id] = str_eq(buf_view(&b), s) ? s : arena_str(&w->texts, buf_view(&b));
		buf_release(&b);
	}
	buf_str(w->b, w->json[id]);
}

static void export_chrome_rows_put_args(struct writer *w, uint32_t set)
{
	const struct profile *p = w->p;
	if (!set || set >= p->arg_set.rows.n)
		return;
	uint32_t end = set + 1 < p->arg_set.rows.n ? p->arg_set.first[set + 1] : p->arg.rows.n;
	for (uint32_t i = p->arg_set.first[set]; i < end; i++) {
		if (w->b->p[w->b->n - 1] != '{')
			buf_char(w->b, ',');
		put_string(w, p->arg.key[i]);
		buf_char(w->b, ':');
		if (p->arg.is_string[i])
			put_string(w, p->arg.value[i]);
		else
			export_chrome_rows_put_json(w, p->arg.value[i]);
	}
}

/* The category of Kineto for ranges that others recorded; those of Kineto keep their own. */
static struct str span_cat(const struct writer *w, uint32_t i)
{
	static const char *const by_kind[SPAN_KINDS] = {
		[SPAN_OP] = "cpu_op", [SPAN_USER] = "user_annotation", [SPAN_PYTHON] = "python_function", [SPAN_GPU_USER] = "gpu_user_annotation",
		[SPAN_SYNC] = "cuda_sync", [SPAN_OVERHEAD] = "overhead", [SPAN_MARKER] = "nvtx_marker", [SPAN_RANGE] = "nvtx_range", [SPAN_OS] = "osrt",
	};
	const char *known = w->kineto ? NULL : by_kind[w->p->span.kind[i]];
	return known ? str_from(known) : profile_cat(w->p, w->p->span.cat[i]);
}

static int64_t op_number(uint32_t op)
{
	return op == ROW_NONE ? ID_NONE : (int64_t)op + 1;
}

/* Calls have the number of the op around them, device work that of its call; none where an annotation is nearer, which readers find by
 * nesting. */
static int64_t span_number(const struct writer *w, uint32_t i)
{
	if (!w->around)
		return span_ext_id(&w->p->span, i);
	return op_number(w->p->span.kind[i] == SPAN_OP ? i : w->around[i]);
}

static int64_t gpu_number(const struct writer *w, uint32_t i)
{
	uint32_t call = w->p->gpu_op.call[i];
	if (!w->around)
		return gpu_is_replayed(&w->p->gpu_op, i) ? ID_NONE : gpu_ext_id(&w->p->gpu_op, i);
	return op_number(call != ROW_NONE ? w->around[call] : w->p->gpu_op.op[i]);
}

/* By span: for calls the op around them, if no annotation is nearer. Parents stand before their children. */
static uint32_t *ops_around(const struct profile *p)
{
	const struct spans *s = &p->span;
	uint32_t *nearest = NEW_ARRAY(s->rows.n, uint32_t); /* op or annotation */
	for (uint32_t i = 0; i < s->rows.n; i++) {
		uint32_t up = s->parent[i];
		nearest[i] = up == ROW_NONE || s->kind[up] == SPAN_OP || s->kind[up] == SPAN_USER ? up : nearest[up];
	}
	for (uint32_t i = 0; i < s->rows.n; i++)
		if ((s->kind[i] != SPAN_CALL && s->kind[i] != SPAN_SYNC) || (nearest[i] != ROW_NONE && s->kind[nearest[i]] == SPAN_USER))
			nearest[i] = ROW_NONE;
	return nearest;
}

static int64_t call_number(const struct writer *w, uint32_t call)
{
	return w->number_calls ? (int64_t)call + 1 : w->p->span.link_id[call];
}

static void put_span_ids(struct writer *w, uint32_t i)
{
	const struct spans *s = &w->p->span;
	struct buf *b = w->b;
	switch ((enum span_kind)s->kind[i]) {
	case SPAN_CALL:
	case SPAN_SYNC:
		export_chrome_rows_put_number(b, "External id", span_number(w, i), ID_NONE);
		export_chrome_rows_put_number(b, "cbid", span_aux_id(s, i), -1);
		if (s->link_id[i] != ID_NONE)
			export_chrome_rows_put_number(b, "correlation", s->kind[i] == SPAN_CALL ? call_number(w, i) : s->link_id[i], ID_NONE);
		break;
	case SPAN_PYTHON:
		export_chrome_rows_put_number(b, "Python id", span_ext_id(s, i), ID_NONE);
		export_chrome_rows_put_number(b, "Python parent id", s->link_id[i], ID_NONE);
		export_chrome_rows_put_number(b, "Python module id", span_aux_id(s, i), -1);
		break;
	default:
		export_chrome_rows_put_number(b, "External id", span_number(w, i), ID_NONE);
		export_chrome_rows_put_number(b, "Sequence number", s->link_id[i], ID_NONE);
		export_chrome_rows_put_number(b, "Fwd thread id", span_aux_id(s, i), -1);
	}
}

static void export_chrome_rows_put_span(struct writer *w, uint32_t i)
{
	const struct spans *s = &w->p->span;
	export_chrome_rows_begin(w, 'X', span_cat(w, i), s->name[i], s->track[i], s->start_ns[i]);
	buf_cstr(w->b, ",\"dur\":");
	export_chrome_rows_put_us(w->b, s->dur_ns[i]);
	buf_cstr(w->b, ",\"args\":{");
	put_span_ids(w, i);
	export_chrome_rows_put_args(w, s->args[i]);
	buf_cstr(w->b, "}}");
}

/* Device work is linked by the call that analysis found; what has none keeps a number that no call has. */
static int64_t gpu_correlation(const struct writer *w, uint32_t i)
{
	const struct gpu_ops *g = &w->p->gpu_op;
	if (!w->number_calls)
		return g->corr_id[i];
	return g->call[i] != ROW_NONE ? call_number(w, g->call[i]) : (int64_t)w->p->span.rows.n + 1 + i;
}

static void export_chrome_rows_put_gpu(struct writer *w, uint32_t i)
{
	static const char *const by_kind[GPU_KINDS] = {[GPU_KERNEL] = "kernel", [GPU_MEMCPY] = "gpu_memcpy", [GPU_MEMSET] = "gpu_memset"};
	const struct gpu_ops *g = &w->p->gpu_op;
	export_chrome_rows_begin(w, 'X', w->kineto ? profile_cat(w->p, g->cat[i]) : str_from(by_kind[g->kind[i]]), g->name[i], g->track[i], g->start_ns[i]);
	buf_cstr(w->b, ",\"dur\":");
	export_chrome_rows_put_us(w->b, g->dur_ns[i]);
	buf_cstr(w->b, ",\"args\":{");
	export_chrome_rows_put_number(w->b, "External id", gpu_number(w, i), ID_NONE);
	export_chrome_rows_put_number(w->b, "correlation", gpu_correlation(w, i), ID_NONE);
	if (g->launch[i] < w->p->launch.rows.n) {
		struct str text = launch_text(w, g->launch[i]);
		if (text.n && w->b->p[w->b->n - 1] != '{')
			buf_char(w->b, ',');
		buf_str(w->b, text);
	}
	export_chrome_rows_put_args(w, g->args[i]);
	buf_cstr(w->b, "}}");
}

static void export_chrome_rows_put_memory(struct writer *w, uint32_t i)
{
	const struct memories *m = &w->p->memory;
	export_chrome_rows_begin(w, 'i', profile_cat(w->p, m->cat[i]), m->name[i], m->track[i], m->time_ns[i]);
	buf_cstr(w->b, ",\"s\":\"t\",\"args\":{");
	export_chrome_rows_put_number(w->b, "Addr", m->addr[i], ID_NONE);
	export_chrome_rows_put_number(w->b, "Bytes", m->bytes[i], ID_NONE);
	export_chrome_rows_put_number(w->b, "Total Allocated", m->total_allocated[i], ID_NONE);
	export_chrome_rows_put_number(w->b, "Total Reserved", m->total_reserved[i], ID_NONE);
	export_chrome_rows_put_number(w->b, "Device Type", m->device_type[i], ID_NONE);
	export_chrome_rows_put_number(w->b, "Device Id", m->device_id[i], ID_NONE);
	export_chrome_rows_put_args(w, memory_args(m, i));
	buf_cstr(w->b, "}}");
}

static void put_mark(struct writer *w, uint32_t i)
{
	const struct marks *m = &w->p->mark;
	export_chrome_rows_begin(w, (char)m->phase[i], profile_cat(w->p, m->cat[i]), m->name[i], m->track[i], m->time_ns[i]);
	if (m->phase[i] == 'i' || m->phase[i] == 'I')
		buf_cstr(w->b, ",\"s\":\"t\"");
	buf_cstr(w->b, ",\"args\":{");
	export_chrome_rows_put_args(w, m->args[i]);
	buf_cstr(w->b, "}}");
}

/* One end of an arrow; those of Kineto have their category as name. */
static void put_arrow(struct writer *w, char phase, const char *cat, uint32_t track, int64_t ts, int64_t id)
{
	struct buf *b = w->b;
	buf_printf(b, "%s\n{\"ph\":\"%c\",\"cat\":\"%s\",\"name\":\"%s\"", w->any ? "," : "", phase, cat, cat);
	buf_str(b, track_text(w, track));
	buf_cstr(b, ",\"ts\":");
	export_chrome_rows_put_us(b, ts);
	export_chrome_rows_put_number(b, "id", id, ID_NONE);
	buf_cstr(b, phase == 'f' ? ",\"bp\":\"e\"}" : "}");
	w->any = true;
}

static void put_flow(struct writer *w, uint32_t i)
{
	const struct flows *f = &w->p->flow;
	struct buf *b = w->b;
	export_chrome_rows_begin(w, (char)f->phase[i], profile_cat(w->p, f->cat[i]), w->p->cat.name[f->cat[i]], f->track[i], f->time_ns[i]);
	int64_t text = -2 - f->id[i]; /* the reader numbers ids that are text so */
	if (f->id[i] < -1 && f->id[i] != ID_NONE && text < (int64_t)w->p->strings.n && !is_integer(profile_str(w->p, (uint32_t)text))) {
		export_chrome_rows_put_key(b, "id");
		put_string(w, (uint32_t)text);
	} else {
		export_chrome_rows_put_number(b, "id", f->id[i], ID_NONE);
	}
	buf_cstr(b, f->phase[i] == 'f' ? ",\"bp\":\"e\"}" : "}");
}

/* From each launch to its work, and from forward ops to their backward ops, where the input has no arrows. */
static void put_made_flows(struct writer *w)
{
	const struct profile *p = w->p;
	for (uint32_t i = 0; i < p->gpu_op.rows.n && sink_room(w->out) == 0; i++) {
		uint32_t call = p->gpu_op.call[i];
		if (call == ROW_NONE)
			continue;
		put_arrow(w, 's', "ac2g", p->span.track[call], p->span.start_ns[call], gpu_correlation(w, i));
		put_arrow(w, 'f', "ac2g", p->gpu_op.track[i], p->gpu_op.start_ns[i], gpu_correlation(w, i));
	}
	struct fwdbwd *links = fwdbwd_new(p);
	int64_t id = 1;
	for (uint32_t i = 0; i < p->span.rows.n && sink_room(w->out) == 0; i++) {
		uint32_t forward = fwdbwd_forward(links, i);
		if (forward == ROW_NONE || span_is_replay(p, i) || span_is_replay(p, forward))
			continue;
		put_arrow(w, 's', "fwdbwd", p->span.track[forward], p->span.start_ns[forward], id);
		put_arrow(w, 'f', "fwdbwd", p->span.track[i], p->span.start_ns[i], id++);
	}
	fwdbwd_free(links);
}

static void export_chrome_rows_put_name(struct writer *w, const char *what, const char *key, uint32_t track, struct str text)
{
	struct buf *b = w->b;
	buf_printf(b, "%s\n{\"ph\":\"M\",\"name\":\"%s\"", w->any ? "," : "", what);
	buf_str(b, track_text(w, track));
	buf_printf(b, ",\"ts\":0,\"args\":{\"%s\":", key);
	if (strcmp(key, "sort_index") == 0)
		buf_str(b, text);
	else
		json_put_string(b, text);
	buf_cstr(b, "}}");
	w->any = true;
}

/* Devices stand below the host's processes. */
static void put_order(struct writer *w, uint32_t track)
{
	enum { DEVICES_FROM = 5000000 };
	int64_t pid = w->p->track.pid[track];
	char text[CHROME_NUMBER_MAX];
	if (pid < 0 || pid > 1000)
		return;
	export_chrome_rows_put_name(w, "process_sort_index", "sort_index", track, (struct str){text, (size_t)(chrome_put_i64(text, DEVICES_FROM + pid) - text)});
}

static void export_chrome_rows_put_names(struct writer *w)
{
	const struct profile *p = w->p;
	const struct tracks *t = &p->track;
	struct idmap seen;
	uint8_t *device = NEW_ARRAY(t->rows.n, uint8_t);
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++)
		device[p->gpu_op.track[i]] = 1;
	idmap_init(&seen, 1, 0, t->rows.n);
	for (uint32_t i = 0; i < t->rows.n && sink_room(w->out) == 0; i++) {
		if (idmap_get(&seen, t->pid_text[i]) == IDMAP_NONE) {
			idmap_put(&seen, t->pid_text[i], i);
			if (t->process_name[i])
				export_chrome_rows_put_name(w, "process_name", "name", i, profile_str(p, t->process_name[i]));
			if (t->process_labels[i])
				export_chrome_rows_put_name(w, "process_labels", "labels", i, profile_str(p, t->process_labels[i]));
			if (device[i])
				put_order(w, i);
		}
		if (t->thread_name[i])
			export_chrome_rows_put_name(w, "thread_name", "name", i, profile_str(p, t->thread_name[i]));
	}
	idmap_release(&seen);
	mem_free(device);
}

/* Numbers of calls repeat when several processes made them. */
static bool several_processes(const struct profile *p)
{
	int64_t first = ID_NONE;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		int64_t pid = p->span.kind[i] == SPAN_CALL ? p->track.pid[p->span.track[i]] : ID_NONE;
		if (pid != ID_NONE && first != ID_NONE && pid != first)
			return true;
		first = pid != ID_NONE ? pid : first;
	}
	return false;
}

/* What links calls and device work to ops; a number that ops alone have links nothing. */
static bool has_external_ids(const struct profile *p)
{
	for (uint32_t i = 0; p->span.ext_id && i < p->span.rows.n; i++)
		if (p->span.kind[i] == SPAN_CALL && p->span.ext_id[i] != ID_NONE)
			return true;
	return p->gpu_op.ext_id;
}

static void put_all(struct writer *w)
{
	const struct profile *p = w->p;
	export_chrome_rows_put_names(w);
	/* What graphs replayed is what we found, and not what was recorded. */
	for (uint32_t i = 0; i < p->span.rows.n && sink_room(w->out) == 0; i++)
		if (!span_is_replay(p, i))
			export_chrome_rows_put_span(w, i);
	for (uint32_t i = 0; i < p->gpu_op.rows.n && sink_room(w->out) == 0; i++)
		export_chrome_rows_put_gpu(w, i);
	for (uint32_t i = 0; i < p->memory.rows.n && sink_room(w->out) == 0; i++)
		export_chrome_rows_put_memory(w, i);
	for (uint32_t i = 0; i < p->mark.rows.n && sink_room(w->out) == 0; i++)
		put_mark(w, i);
	for (uint32_t i = 0; i < p->flow.rows.n && sink_room(w->out) == 0; i++)
		put_flow(w, i);
	if (!p->flow.rows.n && !w->kineto)
		put_made_flows(w);
}

int chrome_put_rows(const struct export_run *x, struct err *e)
{
	const struct profile *p = x->p;
	struct writer w = {.p = p, .out = x->out, .b = &x->out->buf, .kineto = str_eqc(p->format, "kineto")};
	w.number_calls = !w.kineto && several_processes(p);
	w.around = w.kineto || has_external_ids(p) ? NULL : ops_around(p);
	w.plain = NEW_ARRAY(p->strings.n, uint8_t);
	w.json = NEW_ARRAY(p->strings.n, struct str);
	w.launch = NEW_ARRAY(p->launch.rows.n, struct str);
	w.place = NEW_ARRAY(p->track.rows.n, struct str);
	put_all(&w);
	mem_free(w.around);
	mem_free(w.plain);
	mem_free(w.json);
	mem_free(w.launch);
	mem_free(w.place);
	arena_release(&w.texts);
	return 0;
}
