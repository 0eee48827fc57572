#include "analysis/tree/torch_events.h"

#include "analysis/tree/torch_events_work.h"
#include "base/buf.h"
#include "base/demangle.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

#include <string.h>

const char *const torch_versions[] = {
#define TORCH_VERSION(id, name, ...) name,
#include "analysis/tree/torch_versions.def"
#undef TORCH_VERSION
	NULL,
};

const struct torch_rules torch_rules[] = {
	[TORCH_OWN] = {.name = NULL, .overload = true, .user_annotation = true, .xpu_memory = true},
#define TORCH_VERSION(id, n, ...) [TORCH_##id] = {.name = n, __VA_ARGS__},
#include "analysis/tree/torch_versions.def"
#include "store/torch_names.h"
#undef TORCH_VERSION
};

const struct torch_rules *torch_rules_of(const char *version)
{
	for (int i = TORCH_OWN + 1; version && i < TORCH_VERSIONS; i++)
		if (strcmp(torch_rules[i].name, version) == 0)
			return &torch_rules[i];
	return &torch_rules[TORCH_OWN];
}

static bool is_utility(struct str name)
{
	static const char *const names[] = {"[memory]", "[OutOfMemory]", "profiler::_record_function_enter",
	                                    "profiler::_record_function_enter_new", "profiler::_record_function_exit",
	                                    "aten::is_leaf", "aten::output_nr", "aten::_version"};
	return ANY_WHERE(i, 0, sizeof names / sizeof names[0], str_eq(name, str_from(names[i])));
}

/* torch demangles by __cxa_demangle of libstdc++, which refuses longer names (since GCC 9: DEMANGLE_RECURSION_LIMIT components, 2 per character). */
enum { MOST_MANGLED = 1024 };

uint32_t torch_key(struct torch_work *w, uint32_t name)
{
	uint32_t *slot = &w->key_of_name[name];
	if (*slot)
		return *slot;
	struct str s = profile_str(w->p, name);
	struct buf text = {0};
	if (is_utility(s))
		*slot = TORCH_KEY_DROPPED;
	else if (str_starts(s, STR(TORCH_STEP)))
		*slot = intern_str(&w->t->keys, STR(TORCH_ANY_STEP));
	else if (s.n > 1 && (!w->t->rules->name || s.n <= MOST_MANGLED) && demangle(s, &text) == DEMANGLE_DONE)
		*slot = intern_str(&w->t->keys, buf_view(&text));
	else
		*slot = intern_str(&w->t->keys, s);
	buf_release(&text);
	return *slot;
}

static struct torch_candidate *torch_events_add(struct torch_work *w)
{
	MEM_GROW(w->v, w->cap, w->n + 1);
	return &w->v[w->n++];
}

/* A remote event of the list form has its node in place of the thread: " node_id:1, thread_id:3 ". */
static int32_t remote_node(struct str tid)
{
	while (tid.n && tid.p[0] == ' ')
		tid = (struct str){tid.p + 1, tid.n - 1};
	if (!str_starts(tid, STR("node_id:")))
		return -1;
	int64_t v = 0;
	size_t at = sizeof "node_id:" - 1;
	for (; at < tid.n && tid.p[at] >= '0' && tid.p[at] <= '9' && v < INT32_MAX / 10; at++)
		v = v * 10 + tid.p[at] - '0';
	return at > sizeof "node_id:" - 1 ? (int32_t)v : -1;
}

/* For the name of an engine's range, "autograd::engine::evaluate_function: X": the string X; for all others 0. */
static uint32_t node_run(struct torch_work *w, uint32_t name)
{
	uint32_t *slot = &w->run_by_name[name];
	if (*slot)
		return *slot - 1;
	struct str s = profile_str(w->p, name);
	uint32_t id = INTERN_NONE;
	if (str_skip(&s, STR(TORCH_ENGINE)))
		id = intern_find(&w->p->strings, s);
	*slot = id == INTERN_NONE ? 1 : id + 1;
	return *slot - 1;
}

/* A node of the backward pass, where the trace says so; else what the engine runs in a range with its name; without such ranges (torch
 * before 1.9), what knows its forward thread. */
static bool torch_events_is_node(struct torch_work *w, uint32_t span)
{
	const struct spans *s = &w->p->span;
	if (profile_has_arg(w->p, ARG_BACKWARD_NODE))
		return profile_arg_id(w->p, s->args[span], ARG_BACKWARD_NODE) != 0;
	uint32_t up = s->op[span];
	if (up != ROW_NONE && s->track[up] == s->track[span] && node_run(w, s->name[up]) == s->name[span])
		return s->name[span] != 0;
	return span_aux_id(s, span) > 0 && !node_run(w, s->name[span]);
}

uint32_t torch_add_span(struct torch_work *w, uint32_t span, uint32_t key)
{
	const struct spans *s = &w->p->span;
	struct torch_candidate *c = torch_events_add(w);
	*c = (struct torch_candidate){.start_ns = s->start_ns[span], .end_ns = span_end(w->p, span), .row = span, .key = key,
	                              .track = s->track[span], .parent = ROW_NONE, .node_id = -1, .kind = TORCH_SPAN};
	uint8_t kind = s->kind[span];
	c->flags = kind == SPAN_RANGE ? TORCH_ASYNC : kind == SPAN_PYTHON ? TORCH_PYTHON : 0;
	if (kind == SPAN_USER || kind == SPAN_GPU_USER)
		c->flags |= TORCH_USER_ANNOTATION;
	if (kind == SPAN_OP && torch_events_is_node(w, span))
		c->flags |= TORCH_BACKWARD;
	if (kind == SPAN_GPU_USER || kind == SPAN_SYNC)
		c->device_type = TORCH_CUDA;
	uint32_t tid = c->track < w->p->track.rows.n && w->p->track.tid[c->track] == ID_NONE ? w->p->track.tid_text[c->track] : 0;
	if (tid && (c->node_id = remote_node(profile_str(w->p, tid))) >= 0)
		c->flags |= TORCH_REMOTE;
	return w->n - 1;
}

uint32_t torch_add_gpu(struct torch_work *w, uint32_t row)
{
	const struct gpu_ops *g = &w->p->gpu_op;
	struct torch_candidate *c = torch_events_add(w);
	*c = (struct torch_candidate){.start_ns = g->start_ns[row], .end_ns = gpu_end(w->p, row), .row = row, .track = g->track[row],
	                              .parent = ROW_NONE, .node_id = -1, .kind = TORCH_GPU, .device_type = TORCH_CUDA};
	c->key = torch_key(w, g->name[row]);
	return w->n - 1;
}

uint32_t torch_add_memory(struct torch_work *w, uint32_t row)
{
	const struct memories *m = &w->p->memory;
	struct torch_candidate *c = torch_events_add(w);
	*c = (struct torch_candidate){.start_ns = m->time_ns[row], .end_ns = m->time_ns[row], .row = row, .track = m->track[row],
	                              .parent = ROW_NONE, .node_id = -1, .kind = TORCH_MEMORY};
	c->key = intern_str(&w->t->keys, profile_str(w->p, m->name[row]));
	return w->n - 1;
}

static void sort_order(struct torch_work *w)
{
	struct sort_item *v = NEW_ARRAY_RAW(w->n, struct sort_item);
	for (uint32_t i = 0; i < w->n; i++)
		v[i] = (struct sort_item){.key = sort_key_i64(w->v[i].start_ns), .row = i};
	sort_items(v, w->n);
	/* Events that start together: the longest first. */
	for (uint32_t i = 0, end; i < w->n; i = end) {
		bool sorted = true;
		for (end = i + 1; end < w->n && v[end].key == v[i].key; end++)
			sorted &= w->v[v[end].row].end_ns <= w->v[v[end - 1].row].end_ns;
		if (sorted)
			continue;
		for (uint32_t k = i; k < end; k++)
			v[k].key = ~sort_key_i64(w->v[v[k].row].end_ns);
		sort_items(v + i, end - i);
	}
	w->order = NEW_ARRAY_RAW(w->n, uint32_t);
	w->place = NEW_ARRAY_RAW(w->n, uint32_t);
	for (uint32_t i = 0; i < w->n; i++) {
		w->order[i] = v[i].row;
		w->place[v[i].row] = i;
	}
	mem_free(v);
}

static void alloc_columns(struct torch_events *t)
{
	uint32_t n = t->n;
	t->kind = NEW_ARRAY_RAW(n, uint8_t);
	t->row = NEW_ARRAY_RAW(n, uint32_t);
	t->key = NEW_ARRAY_RAW(n, uint32_t);
	t->flags = NEW_ARRAY_RAW(n, uint8_t);
	t->device_type = NEW_ARRAY_RAW(n, uint8_t);
	t->parent = NEW_ARRAY_RAW(n, uint32_t);
	t->track = NEW_ARRAY_RAW(n, uint32_t);
	t->start_ns = NEW_ARRAY_RAW(n, int64_t);
	t->end_ns = NEW_ARRAY_RAW(n, int64_t);
	t->cpu_self = NEW_ARRAY(n, int64_t);
	t->dev_total = NEW_ARRAY(n, int64_t);
	t->dev_self = NEW_ARRAY(n, int64_t);
	if (!t->memory_known)
		return;
	t->cpu_mem = NEW_ARRAY(n, int64_t);
	t->cpu_mem_self = NEW_ARRAY(n, int64_t);
	t->dev_mem = NEW_ARRAY(n, int64_t);
	t->dev_mem_self = NEW_ARRAY(n, int64_t);
}

void torch_sort(struct torch_work *w)
{
	struct torch_events *t = w->t;
	sort_order(w);
	t->n = w->n;
	alloc_columns(t);
	for (uint32_t i = 0; i < t->n; i++) {
		const struct torch_candidate *c = &w->v[w->order[i]];
		t->kind[i] = c->kind;
		t->row[i] = c->row;
		t->key[i] = c->key;
		t->flags[i] = c->flags;
		t->device_type[i] = c->device_type;
		t->parent[i] = c->parent == ROW_NONE ? ROW_NONE : w->place[c->parent];
		t->track[i] = c->track;
		t->start_ns[i] = c->start_ns;
		t->end_ns[i] = c->end_ns;
		if (c->node_id != -1 && !t->node_id) {
			t->node_id = NEW_ARRAY_RAW(t->n, int32_t);
			memset(t->node_id, 0xff, t->n * sizeof *t->node_id);
		}
		if (t->node_id)
			t->node_id[i] = c->node_id;
	}
}

void torch_put_kernels(struct torch_events *t, const uint32_t *item, const uint32_t *of, uint32_t n)
{
	t->kernel_first = NEW_ARRAY((size_t)t->n + 1, uint32_t);
	for (uint32_t i = 0; i < n; i++)
		if (of[i] != ROW_NONE)
			t->kernel_first[of[i] + 1]++;
	for (uint32_t i = 0; i < t->n; i++)
		t->kernel_first[i + 1] += t->kernel_first[i];
	t->kernel = NEW_ARRAY_RAW(t->kernel_first[t->n], uint32_t);
	uint32_t *next = NEW_ARRAY_RAW((size_t)t->n + 1, uint32_t);
	memcpy(next, t->kernel_first, ((size_t)t->n + 1) * sizeof *next);
	for (uint32_t i = 0; i < n; i++)
		if (of[i] != ROW_NONE)
			t->kernel[next[of[i]]++] = item[i];
	mem_free(next);
}

const struct torch_device_name *torch_device_name(uint32_t type)
{
	static const struct torch_device_name cuda = {"CUDA", "cuda"}, names[] = {
		[TORCH_CPU] = {"CPU", "cpu"}, [TORCH_XPU] = {"XPU", "xpu"}, [TORCH_PRIVATEUSE1] = {"PRIVATEUSE1", "privateuse1"}};
	return type < sizeof names / sizeof *names && names[type].text ? &names[type] : &cuda;
}

/* c10 device types (torch/autograd/profiler.py). */
enum { C10_CPU = 0, C10_CUDA = 1, C10_MKLDNN = 2, C10_IDEEP = 5, C10_HIP = 6, C10_XPU = 12, C10_PRIVATEUSE1 = 20 };

enum torch_side torch_memory_side(const struct torch_events *t, uint32_t row)
{
	switch (t->p->memory.device_type[row]) {
	case C10_CPU:
	case C10_MKLDNN:
	case C10_IDEEP:
		return TORCH_HOST;
	case C10_XPU:
		return t->rules->xpu_memory ? TORCH_DEVICE : TORCH_NEITHER;
	case C10_CUDA:
	case C10_HIP:
	case C10_PRIVATEUSE1:
		return TORCH_DEVICE;
	}
	return t->rules->name ? TORCH_NEITHER : TORCH_DEVICE; /* torch counts no others */
}

struct str torch_event_trace_name(const struct torch_events *t, uint32_t i)
{
	switch (t->kind[i]) {
	case TORCH_SPAN:
		return profile_str(t->p, t->p->span.name[t->row[i]]);
	case TORCH_GPU:
		return profile_str(t->p, t->p->gpu_op.name[t->row[i]]);
	}
	return (struct str){"", 0};
}

static uint32_t torch_events_arg_of(const struct torch_events *t, uint32_t i, enum arg_key key)
{
	return t->kind[i] == TORCH_SPAN ? profile_arg_id(t->p, t->p->span.args[t->row[i]], key) : 0;
}

uint32_t torch_event_shapes(const struct torch_events *t, uint32_t i) { return torch_events_arg_of(t, i, ARG_INPUT_DIMS); }
uint32_t torch_event_overload(const struct torch_events *t, uint32_t i) { return torch_events_arg_of(t, i, ARG_OVERLOAD); }

uint32_t torch_event_args(const struct torch_events *t, uint32_t i)
{
	uint32_t set = t->kind[i] == TORCH_SPAN ? t->p->span.args[t->row[i]] : t->kind[i] == TORCH_GPU ? t->p->gpu_op.args[t->row[i]] : 0;
	return set < t->p->arg_set.rows.n ? set : 0;
}

uint32_t torch_event_launch(const struct torch_events *t, uint32_t i)
{
	uint32_t launch = t->kind[i] == TORCH_GPU ? t->p->gpu_op.launch[t->row[i]] : ROW_NONE;
	return launch < t->p->launch.rows.n ? launch : ROW_NONE;
}

static bool torch_events_is_op(const struct torch_events *t, uint32_t i)
{
	return t->kind[i] == TORCH_SPAN && (t->p->span.kind[t->row[i]] == SPAN_OP || t->p->span.kind[t->row[i]] == SPAN_USER);
}

int64_t torch_event_sequence(const struct torch_events *t, uint32_t i)
{
	return torch_events_is_op(t, i) && t->p->span.link_id[t->row[i]] != ID_NONE ? t->p->span.link_id[t->row[i]] : -1;
}

int32_t torch_event_fwd_thread(const struct torch_events *t, uint32_t i)
{
	int32_t id = torch_events_is_op(t, i) ? span_aux_id(&t->p->span, t->row[i]) : 0;
	return id > 0 ? id : 0;
}

struct str torch_kernel_name(const struct torch_events *t, uint32_t k)
{
	uint32_t n = t->p->gpu_op.rows.n;
	return profile_str(t->p, k < n ? t->p->gpu_op.name[k] : t->p->span.name[k - n]);
}

int64_t torch_kernel_start(const struct torch_events *t, uint32_t k)
{
	uint32_t n = t->p->gpu_op.rows.n;
	return k < n ? t->p->gpu_op.start_ns[k] : t->p->span.start_ns[k - n];
}

int64_t torch_kernel_ns(const struct torch_events *t, uint32_t k)
{
	uint32_t n = t->p->gpu_op.rows.n;
	return k < n ? t->p->gpu_op.dur_ns[k] : t->p->span.dur_ns[k - n];
}

int32_t torch_kernel_device(const struct torch_events *t, uint32_t k)
{
	uint32_t launch = k < t->p->gpu_op.rows.n ? t->p->gpu_op.launch[k] : ROW_NONE;
	return launch < t->p->launch.rows.n && t->p->launch.device[launch] >= 0 ? t->p->launch.device[launch] : -1;
}
