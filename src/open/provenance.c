#include "open/provenance.h"

#include "analysis/names/stacks.h"
#include "base/buf.h"
#include "base/intern.h"
#include "base/mem.h"
#include "base/sort.h"
#include "io/json.h"
#include "open/provenance_text.h"

#include <stdlib.h>

/* Limits for one call, so that hostile input cannot make the result large. A list of names or lines that is cut ends in "and N more".
 * MOST_FRAMES: of a stack trace; the outermost ones are left out. MOST_PRE: pre-grad nodes of one post-grad node; the rest is left out. */
enum { PROVENANCE_MOST_NAMES = 256, PROVENANCE_MOST_LINES = 8, PROVENANCE_MOST_FRAMES = 128, PROVENANCE_MOST_PRE = 1024 };

/* A set of ids in the order in which they came. Emptying it takes O(1). */
struct name_set {
	uint32_t *v;
	uint32_t *stamp;         /* by id: `now` if the set has it */
	uint32_t n, cap, n_stamps, now;
};

static void names_clear(struct name_set *s)
{
	s->n = 0;
	s->now++;
}

/* False: the set has it already. */
static bool names_put(struct name_set *s, uint32_t id)
{
	MEM_GROW_ZERO(s->stamp, s->n_stamps, id + 1);
	if (s->stamp[id] == s->now)
		return false;
	s->stamp[id] = s->now;
	MEM_PUSH(s->v, s->n, s->cap, id);
	return true;
}

static void names_release(struct name_set *s)
{
	mem_free(s->v);
	mem_free(s->stamp);
}

/* The two graphs of a compilation. */
enum { GRAPH_PRE, GRAPH_POST, GRAPHS };

/* What the texts of one graph say. Ids are those of the interns; id 0 = none. */
struct provenance_work {
	struct provenance *v;
	struct provenance_graph *graph;
	struct intern nodes, frames, calls;
	struct provenance_frame *frame; /* by id of a frame; slices of the arena */
	uint32_t *line_of[GRAPHS];      /* by id of a node: the frame of its line */
	struct { uint32_t first, n; } *pre; /* by id of a post-grad node: its pre-grad nodes, in pre_node */
	uint32_t *pre_node;
	struct provenance_told {
		struct str nodes, stacks; /* JSON arrays: post-grad nodes, stack traces */
		struct str ops, sources; /* lists in the comments of the code: ATen ops, pre-grad nodes */
		bool in_code;           /* a handle of the code names it */
	} *told;                        /* by id of a call */
	bool has_handles;               /* the code names each call by a handle, "triton_poi_fused_mul_0:1" */
	struct name_set node_set, frame_set; /* scratch */
	uint32_t cap_frames, cap_line[GRAPHS], cap_pre, n_pre_nodes, cap_pre_nodes, cap_told;
};

static uint32_t work_node(struct provenance_work *w, struct str name)
{
	const uint32_t id = intern_str(&w->nodes, name);
	for (unsigned i = 0; i < GRAPHS; i++)
		MEM_GROW_ZERO(w->line_of[i], w->cap_line[i], id + 1);
	MEM_GROW_ZERO(w->pre, w->cap_pre, id + 1);
	return id;
}

/* In "Call stack", ';' stands between frames, and a name may hold anything. */
static void buf_make_frames_safe(struct buf *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->p[i] == ';' || (unsigned char)b->p[i] < ' ')
			b->p[i] = ',';
}

/* Id of a frame in torch.profiler's form, "model.py(12): forward". */
static uint32_t work_frame(struct provenance_work *w, const struct provenance_frame *f)
{
	struct buf b = {0};
	buf_str(&b, f->path);
	buf_printf(&b, "(%lld): ", (long long)f->line);
	buf_str(&b, f->function);
	buf_make_frames_safe(&b);
	const uint32_t before = w->frames.n, id = intern_str(&w->frames, buf_view(&b));
	buf_release(&b);
	if (w->frames.n > before) {
		MEM_GROW(w->frame, w->cap_frames, id + 1);
		w->frame[id] = (struct provenance_frame){arena_str(&w->v->arena, f->path), arena_str(&w->v->arena, f->function), f->line};
	}
	return id;
}

/* Reads the text of a graph: each comment with a line holds for the nodes below it. */
static void work_lines_of_graph(struct provenance_work *w, struct str text, unsigned which)
{
	struct str line, name;
	struct provenance_frame f;
	uint32_t frame = 0;
	while (provenance_line(&text, &line))
		if (provenance_frame_of_comment(line, &f))
			frame = work_frame(w, &f);
		else if (str_starts(line, STR("# No stacktrace")))
			frame = 0;
		else if (provenance_node_of(line, &name)) {
			const uint32_t node = work_node(w, name); /* may move line_of */
			w->line_of[which][node] = frame;
		}
}

/* ---- code ---- */

static uint32_t work_call(struct provenance_work *w, struct str name)
{
	const uint32_t id = intern_str(&w->calls, name);
	MEM_GROW_ZERO(w->told, w->cap_told, id + 1);
	return id;
}

/* What the lines above say of the next call or kernel. */
struct code_reading {
	struct str nodes, ops;   /* of the comment with the sources */
	struct str hash;         /* of the comment with the path */
	uint32_t n_calls;        /* calls without handles so far */
};

static void code_handles(struct provenance_work *w, struct code_reading *r, struct str list)
{
	struct str handle;
	while (provenance_item(&list, &handle)) {
		const uint32_t i = work_call(w, handle);
		w->told[i].ops = r->ops;
		w->told[i].sources = r->nodes;
		w->told[i].in_code = true;
	}
}

/* A call in code without handles. Its place among the calls serves as the number of a handle. */
static void code_call(struct provenance_work *w, struct code_reading *r, struct str name)
{
	struct buf b = {0};
	buf_str(&b, name);
	buf_printf(&b, ":%u", r->n_calls++);
	const uint32_t i = work_call(w, buf_view(&b));
	w->told[i].ops = r->ops;
	w->told[i].sources = r->nodes;
	buf_release(&b);
}

/* Whether a comment with sources does not reach beyond this line. Other comments and the line that gets the stream may stand before the call. */
static bool code_ends_sources(enum provenance_code what, struct str line)
{
	return what != CODE_COMMENT && what != CODE_SOURCES && what != CODE_HANDLES && what != CODE_PATH && line.n && !str_has(line, STR("get_raw_stream("));
}

static void work_code(struct provenance_work *w, struct str text)
{
	struct provenance_graph *g = w->graph;
	struct code_reading r = {0};
	struct str line, name, nodes, ops;
	w->has_handles = str_has(text, STR("[Provenance debug handles] "));
	while (provenance_line(&text, &line)) {
		const enum provenance_code what = provenance_code_of(line, &name, &nodes, &ops);
		switch (what) {
		case CODE_SOURCES:
			r.nodes = nodes, r.ops = ops;
			break;
		case CODE_HANDLES:
			code_handles(w, &r, name);
			break;
		case CODE_PATH:
			r.hash = name;
			break;
		case CODE_KERNEL:
			MEM_PUSH(g->kernel, g->n_kernels, g->cap_kernels,
			         (struct provenance_kernel){arena_str(&w->v->arena, name), arena_str(&w->v->arena, r.hash)});
			r.hash = (struct str){0};
			break;
		case CODE_CALL:
			if (!w->has_handles)
				code_call(w, &r, name);
			break;
		case CODE_COMMENT:
		case CODE_OTHER:
			break;
		}
		if (code_ends_sources(what, line))
			r.nodes = r.ops = (struct str){0};
	}
	g->has_code = true;
}

/* ---- JSON ---- */

/* Calls member() for each member of an object, which moves *at behind the value. False: it is no object, or damaged; or member() gave false. */
static bool json_members(struct str text, bool (*member)(void *of, struct str key, struct json *j, const char **at), void *of)
{
	struct json j = {.end = text.p + text.n};
	const char *at = text.n ? json_space(text.p) : "";
	struct buf name = {0};
	bool first = true, good = *at == '{';
	at += good;
	while (good) {
		struct json_value key;
		const char *value = json_member(&j, at, &first, &key);
		if (!value || !key.raw.p) {
			good = value != NULL;
			break;
		}
		buf_clear(&name);
		json_unescape(key.raw, &name, &j.repairs);
		at = value;
		good = member(of, buf_view(&name), &j, &at);
	}
	buf_release(&name);
	return good;
}

/* Calls string() for each string of an array; other elements are passed over. False: it is no array, or damaged. */
static bool json_strings(struct str text, void (*string)(void *of, struct str s), void *of)
{
	struct json j = {.end = text.p + text.n};
	const char *at = text.n ? json_space(text.p) : "";
	struct buf s = {0};
	bool first = true, done = false, good = *at == '[';
	at += good;
	while (good) {
		struct json_value value;
		at = json_element(&j, at, &first, &done);
		if (!at || done)
			break;
		at = json_value(&j, at, &value);
		if (!at)
			break;
		if (value.type != JSON_STRING)
			continue;
		buf_clear(&s);
		json_unescape(value.raw, &s, &j.repairs);
		string(of, buf_view(&s));
	}
	buf_release(&s);
	return good && at;
}

/* The text of the value at *at, which moves behind it. False: damaged. */
static bool json_slice(struct json *j, const char **at, struct str *out)
{
	struct json_value v;
	*at = json_value(j, *at, &v);
	*out = *at ? v.raw : (struct str){0};
	return *at;
}

static void nodes_add_pre(void *of, struct str name)
{
	struct provenance_work *w = of;
	MEM_PUSH(w->pre_node, w->n_pre_nodes, w->cap_pre_nodes, work_node(w, name));
}

/* "postToPre": a post-grad node and the array of its pre-grad nodes. */
static bool nodes_post(void *of, struct str key, struct json *j, const char **at)
{
	struct provenance_work *w = of;
	struct str list;
	const uint32_t node = work_node(w, key), first = w->n_pre_nodes;
	if (!json_slice(j, at, &list))
		return false;
	(void)json_strings(list, nodes_add_pre, w);
	w->pre[node].first = first;
	w->pre[node].n = w->n_pre_nodes - first < PROVENANCE_MOST_PRE ? w->n_pre_nodes - first : PROVENANCE_MOST_PRE;
	return true;
}

struct calls_reading {
	struct provenance_work *w;
	bool stacks;             /* else nodes */
};

/* A call, by its handle or the kernel's name, and its array. */
static bool call_list(void *of, struct str key, struct json *j, const char **at)
{
	const struct calls_reading *r = of;
	struct str list;
	if (!json_slice(j, at, &list))
		return false;
	const uint32_t call = work_call(r->w, key);
	*(r->stacks ? &r->w->told[call].stacks : &r->w->told[call].nodes) = list;
	return true;
}

/* A member of PROVENANCE_NODES. */
static bool nodes_part(void *of, struct str key, struct json *j, const char **at)
{
	struct str part;
	if (!json_slice(j, at, &part))
		return false;
	if (str_eqc(key, "postToPre"))
		return json_members(part, nodes_post, of);
	if (str_eqc(key, "cppCodeToPost"))
		return json_members(part, call_list, &(struct calls_reading){of, false});
	return true;
}

static bool key_member(void *of, struct str key, struct json *j, const char **at)
{
	struct json_value v;
	struct str *out = of;
	*at = json_value(j, *at, &v);
	if (*at && str_eqc(key, "key") && v.type == JSON_STRING)
		*out = v.raw;
	return *at;
}

/* ---- calls ---- */

/* The names of a set, joined: "addmm, gelu". */
static struct str work_put_names(struct provenance_work *w, const struct intern *names, const struct name_set *s)
{
	struct buf b = {0};
	for (uint32_t i = 0; i < s->n && i < PROVENANCE_MOST_NAMES; i++) {
		buf_cstr(&b, i ? ", " : "");
		buf_str(&b, intern_get(names, s->v[i]));
	}
	if (s->n > PROVENANCE_MOST_NAMES)
		buf_printf(&b, ", and %u more", s->n - PROVENANCE_MOST_NAMES);
	const struct str out = arena_str(&w->v->arena, buf_view(&b));
	buf_release(&b);
	return out;
}

/* A list of ATen ops without name spaces, as in the names of kernels: "addmm" of "aten.addmm". */
static struct str work_put_ops(struct provenance_work *w, struct str list)
{
	struct str item;
	names_clear(&w->node_set);
	while (provenance_item(&list, &item)) {
		const char *dot = memrchr(item.p, '.', item.n);
		const struct str name = dot ? (struct str){dot + 1, (size_t)(item.p + item.n - dot - 1)} : item;
		if (name.n)
			(void)names_put(&w->node_set, work_node(w, name));
	}
	return work_put_names(w, &w->nodes, &w->node_set);
}

static int lines_by_place(const void *a, const void *b)
{
	const struct provenance_frame *x = a, *y = b;
	return str_cmp(x->path, y->path) ?: str_cmp(x->function, y->function) ?: COMPARE(x->line, y->line);
}

/* "model.py(12,13): forward + norm.py(7): forward" of the frames in frame_set. */
static struct str work_put_lines(struct provenance_work *w)
{
	const struct name_set *s = &w->frame_set;
	struct provenance_frame *v = NEW_ARRAY_RAW(s->n, struct provenance_frame);
	struct buf b = {0};
	uint32_t shown = s->n < PROVENANCE_MOST_LINES ? s->n : PROVENANCE_MOST_LINES;
	for (uint32_t i = 0; i < s->n; i++)
		v[i] = w->frame[s->v[i]];
	if (s->n)
		qsort(v, s->n, sizeof *v, lines_by_place);
	for (uint32_t i = 0, next; i < shown; i = next) {
		buf_cstr(&b, i ? " + " : "");
		buf_str(&b, v[i].path);
		for (next = i; next < shown && str_eq(v[next].path, v[i].path) && str_eq(v[next].function, v[i].function); next++)
			buf_printf(&b, "%c%lld", next == i ? '(' : ',', (long long)v[next].line);
		buf_cstr(&b, "): ");
		buf_str(&b, v[i].function);
	}
	if (shown < s->n)
		buf_printf(&b, " + %u more", s->n - shown);
	buf_make_frames_safe(&b);
	const struct str out = arena_str(&w->v->arena, buf_view(&b));
	mem_free(v);
	buf_release(&b);
	return out;
}

/* The stack traces of one call, as ids of frames, outermost first. */
struct traces_reading {
	struct provenance_work *w;
	unsigned n;                              /* traces */
	uint32_t frame[PROVENANCE_MOST_FRAMES];  /* scratch: the trace that is being read */
	uint32_t first[PROVENANCE_MOST_FRAMES];  /* the whole first trace */
	uint32_t common[PROVENANCE_MOST_FRAMES]; /* frames around the user's line that all traces begin with */
	unsigned n_first, n_common;
};

/* Adds a trace: the innermost frame of the user's own code goes to frame_set. */
static void traces_add(void *of, struct str text)
{
	struct traces_reading *r = of;
	struct str line;
	struct provenance_frame f;
	unsigned n = 0, users;
	while (provenance_line(&text, &line))
		if (provenance_frame_of_trace(line, &f)) {
			if (n == PROVENANCE_MOST_FRAMES) /* the outermost one goes */
				memmove(r->frame, r->frame + 1, --n * sizeof *r->frame);
			r->frame[n++] = work_frame(r->w, &f);
		}
	if (!n)
		return;
	for (users = n; users && !stacks_is_user_frame(intern_get(&r->w->frames, r->frame[users - 1])); users--)
		;
	users = users ? users - 1 : n - 1;
	(void)names_put(&r->w->frame_set, r->frame[users]);
	if (r->n++ == 0) {
		memcpy(r->first, r->frame, n * sizeof *r->first);
		memcpy(r->common, r->frame, users * sizeof *r->common);
		r->n_first = n;
		r->n_common = users;
	}
	unsigned same = 0;
	while (same < r->n_common && same < users && r->common[same] == r->frame[same])
		same++;
	r->n_common = same;
}

/* The stack of one trace; of several, the lines called from the common frames. */
static void call_put_stack(struct provenance_work *w, struct provenance_call *c, const struct traces_reading *r)
{
	struct buf b = {0};
	const uint32_t *outer = r->n == 1 ? r->first : r->common;
	unsigned n = r->n == 1 ? r->n_first : r->n_common;
	if (r->n != 1)
		buf_str(&b, c->lines);
	while (n--) {
		buf_cstr(&b, b.n ? ";" : "");
		buf_str(&b, intern_get(&w->frames, outer[n]));
	}
	c->stack = arena_str(&w->v->arena, buf_view(&b));
	buf_release(&b);
}

/* The lines are those of the stack traces; without traces, those of the post-grad nodes, else of the pre-grad nodes. */
static void call_put_lines(struct provenance_work *w, struct provenance_call *c, struct str stacks, const struct name_set *post, const struct name_set *pre)
{
	struct traces_reading r = {.w = w};
	names_clear(&w->frame_set);
	if (stacks.n)
		(void)json_strings(stacks, traces_add, &r);
	for (unsigned which = GRAPHS; which-- && !w->frame_set.n;) {
		const struct name_set *nodes = which == GRAPH_POST ? post : pre;
		for (uint32_t i = 0; i < nodes->n; i++)
			if (w->line_of[which][nodes->v[i]])
				(void)names_put(&w->frame_set, w->line_of[which][nodes->v[i]]);
	}
	if (!w->frame_set.n)
		return;
	c->lines = work_put_lines(w);
	call_put_stack(w, c, &r);
}

struct nodes_reading {
	struct provenance_work *w;
	struct name_set *post, *pre;
};

static void nodes_add_post(void *of, struct str name)
{
	struct nodes_reading *r = of;
	const uint32_t node = work_node(r->w, name);
	if (names_put(r->post, node))
		for (uint32_t i = 0; i < r->w->pre[node].n; i++)
			(void)names_put(r->pre, r->w->pre_node[r->w->pre[node].first + i]);
}

/* The name of a kernel as a trace has it: a generated kernel's own, "aten::mm" of a called op. */
static struct str call_kernel(struct provenance *v, struct str called)
{
	struct str space, name;
	provenance_called_name(called, &space, &name);
	return space.n ? arena_printf(&v->arena, STR_FMT "::" STR_FMT, STR_ARG(space), STR_ARG(name)) : arena_str(&v->arena, name);
}

/* Cuts the number off a handle, "triton_poi_fused_mul_0:1"; -1 = it has none. */
static int64_t handle_cut_number(struct str *handle)
{
	int64_t number;
	const char *colon = memrchr(handle->p, ':', handle->n);
	if (!colon || !str_to_i64((struct str){colon + 1, (size_t)(handle->p + handle->n - colon - 1)}, &number) || number < 0)
		return -1;
	handle->n = (size_t)(colon - handle->p);
	return number;
}

/* Adds call i to the graph. post, pre: scratch. */
static void work_put_call(struct provenance_work *w, uint32_t i, struct name_set *post, struct name_set *pre)
{
	struct provenance_graph *g = w->graph;
	struct str handle = intern_get(&w->calls, i);
	struct provenance_call c = {.number = handle_cut_number(&handle)};
	c.kernel = call_kernel(w->v, handle);
	names_clear(post);
	names_clear(pre);
	if (w->told[i].nodes.n)
		(void)json_strings(w->told[i].nodes, nodes_add_post, &(struct nodes_reading){w, post, pre});
	if (!pre->n)
		for (struct str list = w->told[i].sources, item; provenance_item(&list, &item);)
			(void)names_put(pre, work_node(w, item));
	c.nodes = work_put_names(w, &w->nodes, pre);
	call_put_lines(w, &c, w->told[i].stacks, post, pre);
	c.ops = work_put_ops(w, w->told[i].ops);
	MEM_PUSH(g->call, g->n_calls, g->cap_calls, c);
}

static void work_release(struct provenance_work *w)
{
	intern_release(&w->nodes);
	intern_release(&w->frames);
	intern_release(&w->calls);
	mem_free(w->frame);
	mem_free(w->line_of[0]);
	mem_free(w->line_of[1]);
	mem_free(w->pre);
	mem_free(w->pre_node);
	mem_free(w->told);
	names_release(&w->node_set);
	names_release(&w->frame_set);
}

void provenance_add(struct provenance *v, const struct str text[PROVENANCE_PARTS], struct str compile_id)
{
	struct provenance_graph g = {.compile_id = arena_str(&v->arena, compile_id)};
	struct provenance_work w = {.v = v, .graph = &g};
	struct name_set post = {0}, pre = {0};
	struct str key = {0};
	intern_init(&w.nodes);
	intern_init(&w.frames);
	intern_init(&w.calls);
	if (text[PROVENANCE_PRE].n)
		work_lines_of_graph(&w, text[PROVENANCE_PRE], GRAPH_PRE);
	if (text[PROVENANCE_POST].n)
		work_lines_of_graph(&w, text[PROVENANCE_POST], GRAPH_POST);
	if (text[PROVENANCE_CODE].n)
		work_code(&w, text[PROVENANCE_CODE]);
	v->damaged += text[PROVENANCE_NODES].n && !json_members(text[PROVENANCE_NODES], nodes_part, &w);
	v->damaged += text[PROVENANCE_STACKS].n && !json_members(text[PROVENANCE_STACKS], call_list, &(struct calls_reading){&w, true});
	v->damaged += text[PROVENANCE_KEY].n && !json_members(text[PROVENANCE_KEY], key_member, &key);
	g.key = arena_str(&v->arena, key);
	/* Some versions of torch repeat the calls of the graphs before in the JSON. */
	for (uint32_t i = 1; i < w.calls.n; i++)
		if (!w.has_handles || w.told[i].in_code)
			work_put_call(&w, i, &post, &pre);
	names_release(&post);
	names_release(&pre);
	work_release(&w);
	if (g.n_calls || g.n_kernels) {
		MEM_PUSH(v->graph, v->n, v->cap, g);
		return;
	}
	mem_free(g.call);
	mem_free(g.kernel);
}

/* ---- graph breaks and recompilations ---- */

struct said_reading {
	struct provenance *v;
	struct provenance_said x;
};

/* The first SAID_BYTES of a text, on one line. */
static struct str said_text(struct provenance *v, struct str s)
{
	enum { SAID_BYTES = 500 };
	struct buf b = {0};
	buf_put(&b, s.p, s.n < SAID_BYTES ? s.n : SAID_BYTES);
	buf_cstr(&b, s.n < SAID_BYTES ? "" : "...");
	for (size_t i = 0; i < b.n; i++)
		b.p[i] = (unsigned char)b.p[i] < ' ' ? ' ' : b.p[i];
	const struct str out = arena_str(&v->arena, str_trim(buf_view(&b)));
	buf_release(&b);
	return out;
}

static void said_add(void *of, struct str reason)
{
	struct said_reading *r = of;
	r->x.reason = said_text(r->v, reason);
	if (r->v->n_said < PROVENANCE_MOST_SAID)
		MEM_PUSH(r->v->said, r->v->n_said, r->v->cap_said, r->x);
}

/* Reads the text of a graph break. The place is that of "Graph break in user code at /a/model.py:12", else the innermost frame of the first stack. The reason is
 * that of "Graph Break Reason: ..." or "Reason: ...", else the first line. */
static void said_break(struct said_reading *r, struct str text)
{
	struct str line, first = {0}, reason = {0};
	struct provenance_frame f;
	bool in_stack = false, stack_ends = false;
	while (provenance_line(&text, &line)) {
		first = first.n ? first : line;
		if (str_skip(&line, STR("Graph break in user code at ")))
			r->x.place = said_text(r->v, line);
		else if (!reason.n && (str_skip(&line, STR("Graph Break Reason: ")) || str_skip(&line, STR("Reason: "))))
			reason = line;
		else if (provenance_frame_of_trace(line, &f) && !stack_ends && !(r->x.place.n && !in_stack)) {
			in_stack = true;
			r->x.place = arena_printf(&r->v->arena, STR_FMT ":%lld", STR_ARG(said_text(r->v, f.path)), (long long)f.line);
		} else if (in_stack && (!line.n || str_starts(line, STR("Traceback"))))
			stack_ends = true;
	}
	said_add(r, reason.n ? reason : first);
}

void provenance_say(struct provenance *v, enum provenance_part part, struct str text, struct str compile_id)
{
	struct said_reading r = {v, {.recompiles = part == PROVENANCE_RECOMPILE, .frame = arena_str(&v->arena, compile_id)}};
	if (part == PROVENANCE_BREAK)
		said_break(&r, text);
	else if (!text.n || *text.p != '[')
		said_add(&r, text);
	else
		v->damaged += !json_strings(text, said_add, &r);
}

void provenance_release(struct provenance *v)
{
	for (uint32_t i = 0; i < v->n; i++) {
		mem_free(v->graph[i].call);
		mem_free(v->graph[i].kernel);
	}
	mem_free(v->graph);
	mem_free(v->said);
	arena_release(&v->arena);
	*v = (struct provenance){0};
}
