/* Folded stacks: "outer;inner weight" lines, which flamegraph.pl, speedscope, inferno and others read. */
#include "analysis/recording.h"
#include "analysis/tree/flame.h"
#include "analysis/tree/torch_events.h"
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

/* A stack, innermost frame first, the other way round. */
static void put_reversed(struct buf *b, struct str text)
{
	while (text.n) {
		const char *cut = memrchr(text.p, ';', text.n);
		const char *begin = cut ? cut + 1 : text.p;
		put_torch_frame(b, (struct str){begin, (size_t)(text.p + text.n - begin)});
		if (cut)
			buf_char(b, ';');
		text.n = cut ? (size_t)(cut - text.p) : 0;
	}
}

/* torch's own lines: one for each event that has a stack and a whole microsecond. */
static void export_stacks_put_torch(const struct export_run *x, const struct torch_rules *rules, bool device)
{
	struct torch_events *t = torch_events_new(x->p, rules, TORCH_STACKS);
	struct buf text = {0}, *b = &x->out->buf;
	if (!profile_has_arg(t->p, ARG_CALL_STACK))
		diag_add(x->notes, "no-stacks", DIAG_NOTE, -1,
		         "no event has a recorded 'Call stack', so that torch's export_stacks writes an empty file: torch 2.0 and later record it "
		         "with _ExperimentalConfig(verbose=True) alone. Without --compat, Python frames are used");
	for (uint32_t i = 0; i < t->n && sink_room(x->out) == 0; i++) {
		int64_t us = (device ? t->dev_self[i] : t->cpu_self[i]) / 1000;
		if (us <= 0 || !t->stack[i])
			continue;
		buf_clear(&text);
		torch_stack_text(t, t->stack[i], 0, &text);
		put_reversed(b, buf_view(&text));
		buf_printf(b, " %lld\n", (long long)us);
	}
	buf_release(&text);
	torch_events_free(t);
}

static void export_stacks_put_path(struct buf *b, const struct flame *f, uint32_t node)
{
	uint32_t path[FLAME_DEPTH];
	unsigned n = 0;
	for (uint32_t at = node; at; at = f->node[at].parent)
		path[n++] = at;
	while (n) {
		put_own_frame(b, flame_name(f, path[--n]));
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
		export_stacks_put_path(&x->out->buf, f, i);
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
	if (!any && !cpu && strcmp(metric, "self_cuda_time_total") != 0 && rules->cuda_alone)
		return err_set(e, ERR_USAGE, "export stacks: %s has no metric %s: it has self_cpu_time_total, self_cuda_time_total", rules->name, metric);
	export_stacks_put_torch(x, rules, any ? flame_default(x->p) == FLAME_DEVICE : !cpu);
	return 0;
}

static const char *const metrics[] = {"auto", "self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total",
                                      "self_privateuse1_time_total", NULL};
static const char *const views[] = {"stack", "module", "op", NULL};
static const char *const units[] = {"ns", "us", NULL};
static const struct export_option options[] = {
	[OPTION_METRIC] = {"metric", "METRIC", "self_cpu_time_total; self_cuda_time_total, self_xpu_time_total, self_privateuse1_time_total: all of "
	                   "them the device's; auto (default): the device's where there is device work, else the CPU's", metrics},
	[OPTION_BY] = {"by", "WHAT", "stack (default): Python frames, then ops; module: nn.Modules, then ops; op: annotations and ops", views},
	[OPTION_UNIT] = {"unit", "UNIT", "of the weights: ns (default) or us", units},
	[OPTION_COMPAT] = {"compat", "RULES", "the lines that export_stacks of that version writes, in us: {values} (default: opscope's own)",
	                   torch_versions, true},
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
	.options = EXPORT_OPTIONS(options),
	.write = write_stacks,
};
