/* Folded stacks: "outer;inner weight" lines, which flamegraph.pl, speedscope, inferno and others read. */
#include "analysis/autograd_names.h"
#include "analysis/flame.h"
#include "analysis/fwdbwd.h"
#include "analysis/recording.h"
#include "analysis/torch_events.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "export/export.h"

enum { OPTION_METRIC, OPTION_BY, OPTION_UNIT, OPTION_COMPAT };

/* What separates frames and lines becomes '_', as torch does (torch/profiler/profiler.py, export_stacks). */
static void put_torch_frame(struct buf *b, struct str frame)
{
	size_t from = b->n;
	buf_str(b, frame);
	for (size_t i = from; i < b->n; i++)
		if (b->p[i] == ' ' || b->p[i] == ';' || b->p[i] == '\t' || b->p[i] == '\n')
			b->p[i] = '_';
}

/* By our own rules, so does whatever could change what a terminal shows; the text is valid UTF-8. */
static void put_own_frame(struct buf *b, struct str frame)
{
	uint32_t code;
	for (size_t at = 0, n; at < frame.n; at += n) {
		n = utf8_next(frame, at, &code);
		if (code == UTF8_BAD)
			buf_cstr(b, "\uFFFD");
		else if (code == ' ' || code == ';' || utf8_is_unsafe(code))
			buf_char(b, '_');
		else
			buf_put(b, frame.p + at, n);
	}
}

static void put_frame(struct buf *b, struct str frame, bool torch)
{
	if (torch)
		put_torch_frame(b, frame);
	else
		put_own_frame(b, frame);
}

/* The frames that torch takes out of each stack (torch/autograd/profiler_util.py): both parts occur in it. */
static bool is_kept(struct str frame)
{
	static const char *const out[][2] = {{"autograd/__init__", "_make_grads"},          {"autograd/__init__", "backward"},
	                                     {"torch/tensor", "backward"},                  {"_internal/common_utils", "prof_callable"},
	                                     {"_internal/common_utils", "prof_func_call"},  {"_internal/common_utils", "prof_meth_call"}};
	for (size_t i = 0; i < sizeof out / sizeof out[0]; i++)
		if (str_has(frame, str_from(out[i][0])) && str_has(frame, str_from(out[i][1])))
			return false;
	return true;
}

/* A recorded stack, innermost frame first, the other way round. False when nothing is left of it. */
static bool put_recorded(struct buf *b, struct str text)
{
	size_t before = b->n;
	while (text.n) {
		const char *cut = memrchr(text.p, ';', text.n);
		const char *begin = cut ? cut + 1 : text.p;
		struct str frame = {begin, (size_t)(text.p + text.n - begin)};
		if (is_kept(frame)) {
			if (b->n > before)
				buf_char(b, ';');
			put_frame(b, frame, true);
		}
		text.n = cut ? (size_t)(cut - text.p) : 0;
	}
	return b->n > before;
}

/* Ranges of the scope BACKWARD_FUNCTION: nodes of autograd, not the engine's ranges around them. */
static bool is_backward_node(const struct torch_events *t, uint32_t i)
{
	if (t->kind[i] != TORCH_SPAN || t->p->span.kind[t->row[i]] != SPAN_OP)
		return false;
	struct str name = torch_event_trace_name(t, i);
	enum autograd_name a = autograd_classify(name);
	return (a == AUTOGRAD_NODE || a == AUTOGRAD_ACCUMULATE) && !str_starts(name, STR("autograd::engine::"));
}

/* torch gives what runs under a node of the backward pass the stack of the first event outside of any that has the node's sequence
 * number, on the thread of the forward pass. */
struct forward {
	struct fwdbwd *links;
	struct intern keys; /* (number, track) */
	uint32_t *event;    /* by key; the first of each */
	uint32_t cap;
	uint32_t *node;     /* event -> the node at or around it */
};

struct forward_key {
	int64_t sequence;
	uint32_t track, zero;
};

/* Parents mostly stand before their children in the list: not where both have the same times. */
static void find_nodes(struct forward *f, const struct torch_events *t)
{
	f->node = NEW_ARRAY_RAW(t->n, uint32_t);
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t up = i;
		while (up != ROW_NONE && up >= i && !is_backward_node(t, up))
			up = t->parent[up];
		f->node[i] = up == ROW_NONE || up >= i ? up : f->node[up];
	}
}

static void forward_init(struct forward *f, const struct torch_events *t)
{
	*f = (struct forward){.links = fwdbwd_new(t->p)};
	intern_init(&f->keys);
	find_nodes(f, t);
	for (uint32_t i = 0; i < t->n; i++) {
		struct forward_key k = {torch_event_sequence(t, i), t->track[i], 0};
		if (k.sequence < 0 || t->kind[i] != TORCH_SPAN || f->node[i] != ROW_NONE)
			continue;
		uint32_t before = f->keys.n, id = intern_put(&f->keys, (const char *)&k, sizeof k);
		if (f->keys.n == before)
			continue;
		MEM_GROW(f->event, f->cap, id + 1);
		f->event[id] = i;
	}
}

static void forward_release(struct forward *f)
{
	fwdbwd_free(f->links);
	intern_release(&f->keys);
	mem_free(f->event);
	mem_free(f->node);
}

static uint32_t forward_of(const struct forward *f, const struct torch_events *t, uint32_t node)
{
	uint32_t row = fwdbwd_forward(f->links, t->row[node]);
	if (row == ROW_NONE)
		return ROW_NONE;
	struct forward_key k = {torch_event_sequence(t, node), t->p->span.track[row], 0};
	uint32_t id = intern_find(&f->keys, (struct str){(const char *)&k, sizeof k});
	return id == INTERN_NONE ? ROW_NONE : f->event[id];
}

static struct str torch_stack(const struct forward *f, const struct torch_events *t, uint32_t i)
{
	struct str text = {0};
	if (t->kind[i] != TORCH_SPAN)
		return text;
	uint32_t node = f->node[i], from = node == ROW_NONE ? i : forward_of(f, t, node);
	if (from != ROW_NONE)
		profile_arg(t->p, t->p->span.args[t->row[from]], t->key_stack, &text);
	return text;
}

/* torch's own lines: one for each event that has a stack and a whole microsecond. */
static void put_torch(const struct export_run *x, const struct torch_rules *rules, bool device)
{
	struct torch_events *t = torch_events_new(x->p, rules, 0);
	struct forward f;
	struct buf *b = &x->out->buf;
	if (!t->key_stack)
		diag_add(x->notes, "no-stacks", DIAG_NOTE, -1,
		         "no event has a recorded 'Call stack', so that torch's export_stacks writes an empty file: torch 2.0 and later record it "
		         "with _ExperimentalConfig(verbose=True) alone. Without --compat, Python frames are used");
	forward_init(&f, t);
	for (uint32_t i = 0; t->key_stack && i < t->n && sink_room(x->out) == 0; i++) {
		int64_t us = (device ? t->dev_self[i] : t->cpu_self[i]) / 1000;
		struct str text = us > 0 ? torch_stack(&f, t, i) : (struct str){0};
		if (text.n && put_recorded(b, text))
			buf_printf(b, " %lld\n", (long long)us);
	}
	forward_release(&f);
	torch_events_free(t);
}

static void put_path(struct buf *b, const struct flame *f, uint32_t node)
{
	uint32_t path[FLAME_DEPTH];
	unsigned n = 0;
	for (uint32_t at = node; at; at = f->node[at].parent)
		path[n++] = at;
	while (n) {
		put_frame(b, flame_name(f, path[--n]), false);
		if (n)
			buf_char(b, ';');
	}
}

static int put_own(const struct export_run *x, enum flame_by by, enum flame_metric metric, struct err *e)
{
	struct flame *f = flame_new(x->p, by, metric);
	bool us = strcmp(x->value[OPTION_UNIT], "us") == 0;
	int64_t lost = 0;
	if (!f->node[0].total_ns) {
		flame_free(f);
		return err_set(e, ERR_DATA, "export stacks: there is no %s in the input; to record it: %s",
		               metric == FLAME_DEVICE ? "device work" : "op, annotation or Python frame",
		               recording_how(x->p, metric == FLAME_DEVICE ? RECORD_DEVICE_WORK : RECORD_OPS));
	}
	for (uint32_t i = 1; i < f->n && sink_room(x->out) == 0; i++) {
		int64_t weight = us ? f->node[i].self_ns / 1000 : f->node[i].self_ns;
		lost += us ? f->node[i].self_ns % 1000 : 0;
		if (weight <= 0)
			continue;
		put_path(&x->out->buf, f, i);
		buf_printf(&x->out->buf, " %lld\n", (long long)weight);
	}
	if (by != FLAME_OP && !f->has_stacks)
		diag_add(x->notes, "no-stacks", DIAG_NOTE, -1, "no Python stacks were recorded: the lines hold ops alone; to record them: %s",
		         recording_how(x->p, RECORD_STACKS));
	diag_add(x->notes, "weights", DIAG_NOTE, -1, "weights are %s of %s: %lld ns in all%s", us ? "us" : "ns",
	         metric == FLAME_DEVICE ? "device work" : "host time", (long long)f->node[0].total_ns, us ? ", less what whole microseconds drop" : "");
	if (lost)
		diag_add(x->notes, "lost", DIAG_NOTE, -1, "whole microseconds drop %lld ns; --unit=ns drops none", (long long)lost);
	if (f->too_deep)
		diag_add_n(x->notes, "too-deep", DIAG_NOTE, f->too_deep, -1, "frames nested deeper than %d stand with that at this depth", FLAME_DEPTH);
	flame_free(f);
	return 0;
}

static int write_stacks(const struct export_run *x, struct err *e)
{
	const char *metric = x->value[OPTION_METRIC];
	const struct torch_rules *rules = torch_rules_of(x->value[OPTION_COMPAT]);
	bool any = strcmp(metric, "auto") == 0, cpu = strcmp(metric, "self_cpu_time_total") == 0;
	if (!rules->name) {
		enum flame_by by = strcmp(x->value[OPTION_BY], "op") == 0       ? FLAME_OP :
		                   strcmp(x->value[OPTION_BY], "module") == 0 ? FLAME_MODULE : FLAME_STACK;
		return put_own(x, by, any ? flame_default(x->p) : cpu ? FLAME_CPU : FLAME_DEVICE, e);
	}
	if (!any && !cpu && strcmp(metric, "self_cuda_time_total") != 0 && strcmp(rules->name, "torch-1.13") == 0)
		return err_set(e, ERR_USAGE, "export stacks: %s has no metric %s: it has self_cpu_time_total, self_cuda_time_total", rules->name, metric);
	put_torch(x, rules, any ? flame_default(x->p) == FLAME_DEVICE : !cpu);
	return 0;
}

static const char *const metrics[] = {"auto", "self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total",
                                      "self_privateuse1_time_total", NULL};
static const char *const views[] = {"stack", "module", "op", NULL};
static const char *const units[] = {"ns", "us", NULL};
static const char *const compats[] = {"opscope", "torch-1.13", "torch-2.6", "torch-2.14", NULL};
static const struct export_option options[] = {
	[OPTION_METRIC] = {"metric", "METRIC", "self_cpu_time_total; self_cuda_time_total, self_xpu_time_total, self_privateuse1_time_total: all of "
	                   "them the device's; auto (default): the device's where there is device work, else the CPU's", metrics},
	[OPTION_BY] = {"by", "WHAT", "stack (default): Python frames, then ops; module: nn.Modules, then ops; op: annotations and ops", views},
	[OPTION_UNIT] = {"unit", "UNIT", "of the weights: ns (default) or us", units},
	[OPTION_COMPAT] = {"compat", "RULES", "opscope (default); torch-1.13, torch-2.6, torch-2.14: the lines that export_stacks of that version "
	                   "writes, in us", compats},
	{0},
};

const struct export_format export_format_stacks = {
	.name = "stacks",
	.title = "folded stacks, for flame graphs",
	.help = "A line a call path: frames from outside in, separated by ';', a blank and the time spent in it itself. Read by flamegraph.pl, inferno, "
	        "speedscope. Of device work, at the Python stack and op that launched it, down to the kernel, or of host time. The weights add "
	        "up to all the time there is.",
	.suffix = "txt",
	.needs = PASS_NEST | PASS_CORRELATE | PASS_MEMORY,
	.timeline = false,
	.options = options,
	.write = write_stacks,
};
