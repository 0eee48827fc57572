/* torch's prof.events(): each event by itself (torch/autograd/profiler_util.py, FunctionEvent). */
#include "analysis/recording.h"
#include "base/json_text.h"
#include "base/mem.h"
#include "io/json_valid.h"
#include "query/report.h"
#include "report/parts/key_groups.h"

enum {
	EVENTS_EVENT, EVENTS_NAME, EVENTS_TRACE_NAME, EVENTS_SINCE, EVENTS_START, EVENTS_END, EVENTS_PARENT, EVENTS_THREAD, EVENTS_NODE, EVENTS_ON_DEVICE, EVENTS_ASYNC,
	EVENTS_ANNOTATION, EVENTS_BACKWARD, EVENTS_SEQUENCE, EVENTS_FWD_THREAD, EVENTS_HOST_SELF, EVENTS_DEV_SELF, EVENTS_DEV_TOTAL, EVENTS_KERNELS, EVENTS_CPU_MEM,
	EVENTS_CPU_MEM_SELF, EVENTS_DEV_MEM, EVENTS_DEV_MEM_SELF, EVENTS_FLOPS, EVENTS_SHAPES, EVENTS_OVERLOAD, EVENTS_STACK, EVENTS_LAUNCHED, EVENTS_DEVICE, EVENTS_STREAM, EVENTS_CONCRETE,
	EVENTS_ARGUMENTS, EVENTS_COLUMNS
};

static const struct section_column function_events_columns[EVENTS_COLUMNS] = {
	[EVENTS_EVENT] = {COLUMN(NUMBER, "event", "Event", "its number, from 0, in order of start")},
	[EVENTS_NAME] = {COLUMN(TEXT, "name", "Name", "name as key_averages() has it: ProfilerStep* for all steps", .flags = COLUMN_ANSWER)},
	[EVENTS_TRACE_NAME] = {COLUMN(TEXT, "trace_name", "Name in the trace", "name as recorded; empty = not in the trace by itself", .flags = COLUMN_DETAIL)},
	[EVENTS_SINCE] = {COLUMN(NS, "since_first_ns", "Start", "since the first event of the table", .digits = 3, .shown_in = "ms")},
	[EVENTS_START] = {COLUMN(TIME, "start_ns", "Start by the clock", "on the trace's clock", .flags = COLUMN_DETAIL)},
	[EVENTS_END] = {COLUMN(TIME, "end_ns", "End by the clock", "on the trace's clock", .flags = COLUMN_DETAIL)},
	[EVENTS_PARENT] = {COLUMN(NUMBER, "parent", "Parent", "number of the event around it; empty = none")},
	[EVENTS_THREAD] = {COLUMN(TEXT, "thread", "Thread", "thread id as recorded; of an API call that of the op that made it")},
	[EVENTS_NODE] = {COLUMN(NUMBER, "node_id", "Node", "the process that it ran in, called by RPC; empty = this one"), .when = WHEN_RECORDED},
	[EVENTS_ON_DEVICE] = {COLUMN(YES_NO, "on_device", "On device", "it ran on a device, not on the host", .flags = COLUMN_DETAIL)},
	[EVENTS_ASYNC] = {COLUMN(YES_NO, "async", "Async", "it began on one thread and ended on another", .flags = COLUMN_DETAIL)},
	[EVENTS_ANNOTATION] = {COLUMN(YES_NO, "user_annotation", "Annotation", "record_function, or its shadow on the device", .flags = COLUMN_DETAIL)},
	[EVENTS_BACKWARD] = {COLUMN(YES_NO, "backward_node", "Backward node", "a node of the backward pass", .flags = COLUMN_DETAIL)},
	[EVENTS_SEQUENCE] = {COLUMN(NUMBER, "sequence_number", "Sequence", "autograd's sequence number; empty = none")},
	[EVENTS_FWD_THREAD] = {COLUMN(NUMBER, "fwd_thread", "Forward thread", "of a backward op, torch's number of the thread of its forward op",
	                              .flags = COLUMN_DETAIL)},
	[EVENTS_HOST_SELF] = {COLUMN(NS, "host_self_ns", "Host self", "time on the host less the events inside it")},
	[EVENTS_DEV_SELF] = {COLUMN(NS, "device_self_ns", "Device self", "device time of what it launched itself"), .when = WHEN_DEVICE},
	[EVENTS_DEV_TOTAL] = {COLUMN(NS, "device_total_ns", "Device total", "device time of what it and the events inside it launched"), .when = WHEN_DEVICE},
	[EVENTS_KERNELS] = {COLUMN(COUNT, "kernels", "Kernels", "pieces of device work that it launched itself"), .when = WHEN_DEVICE},
	[EVENTS_CPU_MEM] = {COLUMN(BYTES, "host_memory_bytes", "Host memory", "allocated less freed in it, on the host"), .when = WHEN_MEMORY},
	[EVENTS_CPU_MEM_SELF] = {COLUMN(BYTES, "host_self_memory_bytes", "Host self memory", "the same less the events inside it"), .when = WHEN_MEMORY},
	[EVENTS_DEV_MEM] = {COLUMN(BYTES, "device_memory_bytes", "Device memory", "allocated less freed in it, on the device"), .when = WHEN_MEMORY},
	[EVENTS_DEV_MEM_SELF] = {COLUMN(BYTES, "device_self_memory_bytes", "Device self memory", "the same less the events inside it"), .when = WHEN_MEMORY},
	[EVENTS_FLOPS] = {COLUMN(FLOPS, "flops", "FLOPs", "by formula; empty = unknown")},
	[EVENTS_SHAPES] = {COLUMN(TEXT, "input_shape", "Input shape", "dimensions of its inputs", .flags = COLUMN_WIDE), .when = WHEN_SHAPES},
	[EVENTS_OVERLOAD] = {COLUMN(TEXT, "overload_name", "Overload", "which overload of the op", .flags = COLUMN_DETAIL), .when = WHEN_RECORDED},
	[EVENTS_STACK] = {COLUMN(TEXT, "call_stack", "Call stack", "Python frames, innermost first; of the forward op for ops of the backward pass",
	                         .flags = COLUMN_WIDE | COLUMN_STACK), .when = WHEN_STACKS},
	[EVENTS_LAUNCHED] = {COLUMN(TEXT, "device_work", "Device work", "what it launched itself, as a JSON list of [name, device, ns]",
	                            .flags = COLUMN_WIDE | COLUMN_DETAIL), .when = WHEN_DEVICE},
	[EVENTS_DEVICE] = {COLUMN(NUMBER, "device", "Device", "of device work, the ordinal of the device", .flags = COLUMN_DETAIL), .when = WHEN_DEVICE},
	[EVENTS_STREAM] = {COLUMN(NUMBER, "stream", "Stream", "of device work, its stream", .flags = COLUMN_DETAIL), .when = WHEN_DEVICE},
	[EVENTS_CONCRETE] = {COLUMN(TEXT, "concrete_inputs", "Concrete inputs", "values of its inputs that are no tensors, as a JSON list",
	                            .flags = COLUMN_WIDE | COLUMN_DETAIL), .when = WHEN_RECORDED},
	[EVENTS_ARGUMENTS] = {COLUMN(TEXT, "arguments", "Arguments", "what else the trace says of it, as a JSON object", .flags = COLUMN_WIDE | COLUMN_DETAIL),
	                             .when = WHEN_RECORDED},
};
static const struct section function_events_section = {.columns = function_events_columns, .n = EVENTS_COLUMNS};
/* The columns of opscope's own variant, in two lists. Device and stream are left out: only torch's rules give device work events of its own. */
static const struct section function_events_head = {.columns = function_events_columns, .n = EVENTS_DEVICE};
static const struct section function_events_tail = {.columns = function_events_columns + EVENTS_CONCRETE, .n = EVENTS_COLUMNS - EVENTS_CONCRETE};

struct function_events_view {
	const struct profile *p;
	struct torch_events *t;
	struct table *out;
	struct buf text;
	struct str *arguments; /* by argument set, made when first needed */
	int64_t first_ns;      /* the earliest start */
};

/* Whether a column of its own has the argument. */
static bool function_events_is_shown(const struct profile *p, uint32_t key)
{
	return profile_is_arg(p, key, ARG_INPUT_DIMS) || profile_is_arg(p, key, ARG_CALL_STACK) || profile_is_arg(p, key, ARG_OVERLOAD) ||
	       profile_is_arg(p, key, ARG_INPUT_VALUES) || profile_is_arg(p, key, ARG_BACKWARD_NODE);
}

/* The argument set as a JSON object in the table's arena; empty where columns of their own have all arguments. */
static struct str arguments_text(struct function_events_view *v, uint32_t set)
{
	const struct profile *p = v->p;
	uint32_t end = set + 1 < p->arg_set.rows.n ? p->arg_set.first[set + 1] : p->arg.rows.n;
	v->text.n = 0;
	for (uint32_t i = p->arg_set.first[set]; i < end; i++) {
		if (function_events_is_shown(p, p->arg.key[i]))
			continue;
		buf_cstr(&v->text, v->text.n ? ", " : "{");
		json_put_string(&v->text, profile_str(p, p->arg.key[i]));
		buf_cstr(&v->text, ": ");
		if (p->arg.is_string[i])
			json_put_string(&v->text, profile_str(p, p->arg.value[i]));
		else
			json_put_valid_text(&v->text, profile_str(p, p->arg.value[i]));
	}
	if (!v->text.n)
		return (struct str){"", 0};
	buf_char(&v->text, '}');
	return arena_str(&v->out->arena, buf_view(&v->text));
}

static void put_arguments(struct function_events_view *v, uint32_t i)
{
	struct str text;
	uint32_t set = torch_event_args(v->t, i);
	if (!set)
		return;
	if (profile_arg(v->p, set, ARG_INPUT_VALUES, &text))
		table_set_str(v->out, EVENTS_CONCRETE, text);
	if (!v->arguments[set].p)
		v->arguments[set] = arguments_text(v, set);
	if (v->arguments[set].n)
		table_set_str(v->out, EVENTS_ARGUMENTS, v->arguments[set]);
}

static void function_events_start(const struct function_events_view *v, const struct report_args *args)
{
	const struct torch_events *t = v->t;
	bool stacks = stacks_any(t->stacks) && (!t->rules->name || profile_has_arg(v->p, ARG_CALL_STACK));
	unsigned have = WHEN_RECORDED | (v->p->gpu_op.rows.n ? WHEN_DEVICE : 0) | (t->memory_known ? WHEN_MEMORY : 0) | (t->shapes_known ? WHEN_SHAPES : 0) |
	                (stacks ? WHEN_STACKS : 0);
	const struct {
		unsigned column;
		bool has;
	} of_data[] = {
		{EVENTS_NODE, t->node_id}, {EVENTS_OVERLOAD, profile_has_arg(v->p, ARG_OVERLOAD)}, {EVENTS_DEVICE, t->rules->name}, {EVENTS_STREAM, t->rules->name},
		{EVENTS_CONCRETE, profile_has_arg(v->p, ARG_INPUT_VALUES)}, {EVENTS_ARGUMENTS, v->p->arg.rows.n},
	};
	section_start(&function_events_section, args, have, v->out);
	for (size_t i = 0; i < sizeof of_data / sizeof of_data[0]; i++)
		if (!of_data[i].has)
			section_leave_out(&function_events_section, of_data[i].column, v->out);
	if (!t->flops)
		table_leave_out(v->out, EVENTS_FLOPS);
}

static void function_events_put_thread(struct function_events_view *v, uint32_t track)
{
	if (track >= v->p->track.rows.n)
		return;
	if (v->p->track.tid[track] != ID_NONE)
		table_set_fmt(v->out, EVENTS_THREAD, "%lld", (long long)v->p->track.tid[track]);
	else
		table_set_str(v->out, EVENTS_THREAD, profile_str(v->p, v->p->track.tid_text[track]));
}

static void function_events_put_texts(struct function_events_view *v, uint32_t i)
{
	const struct torch_events *t = v->t;
	uint32_t shapes = torch_event_shapes(t, i), overload = torch_event_overload(t, i), stack = torch_event_stack(t, i);
	table_set_str_copy(v->out, EVENTS_NAME, torch_event_name(t, i));
	if (torch_event_trace_name(t, i).n)
		table_set_str(v->out, EVENTS_TRACE_NAME, torch_event_trace_name(t, i));
	if (overload)
		table_set_str(v->out, EVENTS_OVERLOAD, profile_str(v->p, overload));
	if (t->shapes_known && t->rules->name) {
		v->text.n = 0;
		torch_shapes_text(profile_str(v->p, shapes), &v->text);
		table_set_str_copy(v->out, EVENTS_SHAPES, buf_view(&v->text));
	} else if (shapes) {
		table_set_str(v->out, EVENTS_SHAPES, profile_str(v->p, shapes));
	}
	if (stack) {
		v->text.n = 0;
		torch_stack_text(t, stack, 0, &v->text);
		table_set_str_copy(v->out, EVENTS_STACK, buf_view(&v->text));
	}
}

/* [["gemm", 0, 2000], ...]; a device that is not known is null. Empty where it launched nothing. */
static void function_events_put_launched(struct function_events_view *v, uint32_t i)
{
	const struct torch_events *t = v->t;
	v->text.n = 0;
	for (uint32_t k = t->kernel_first[i]; k < t->kernel_first[i + 1]; k++) {
		int32_t device = torch_kernel_device(t, t->kernel[k]);
		buf_cstr(&v->text, v->text.n ? ", [" : "[[");
		json_put_string(&v->text, torch_kernel_name(t, t->kernel[k]));
		if (device >= 0)
			buf_printf(&v->text, ", %d, ", device);
		else
			buf_cstr(&v->text, ", null, ");
		buf_printf(&v->text, "%lld]", (long long)torch_kernel_ns(t, t->kernel[k]));
	}
	if (!v->text.n)
		return;
	buf_char(&v->text, ']');
	table_set_str_copy(v->out, EVENTS_LAUNCHED, buf_view(&v->text));
}

static void function_events_put_place(struct function_events_view *v, uint32_t i)
{
	const struct launches *l = &v->p->launch;
	uint32_t row = torch_event_launch(v->t, i);
	if (row == ROW_NONE)
		return;
	if (l->device[row] >= 0)
		table_set_i64(v->out, EVENTS_DEVICE, l->device[row]);
	if (l->stream[row] != ID_NONE)
		table_set_i64(v->out, EVENTS_STREAM, l->stream[row]);
}

static void function_events_put_event(struct function_events_view *v, uint32_t i)
{
	const struct torch_events *t = v->t;
	table_row(v->out);
	table_set_i64(v->out, EVENTS_EVENT, i);
	table_set_i64(v->out, EVENTS_SINCE, t->start_ns[i] - v->first_ns);
	table_set_i64(v->out, EVENTS_START, t->start_ns[i]);
	table_set_i64(v->out, EVENTS_END, t->end_ns[i]);
	if (t->parent[i] != ROW_NONE)
		table_set_i64(v->out, EVENTS_PARENT, t->parent[i]);
	function_events_put_thread(v, t->track[i]);
	if (t->node_id && t->node_id[i] >= 0)
		table_set_i64(v->out, EVENTS_NODE, t->node_id[i]);
	table_set_bool(v->out, EVENTS_ON_DEVICE, t->device_type[i] != TORCH_CPU);
	table_set_bool(v->out, EVENTS_ASYNC, t->flags[i] & TORCH_ASYNC);
	table_set_bool(v->out, EVENTS_ANNOTATION, t->flags[i] & TORCH_USER_ANNOTATION);
	table_set_bool(v->out, EVENTS_BACKWARD, t->flags[i] & TORCH_BACKWARD);
	if (torch_event_sequence(t, i) >= 0)
		table_set_i64(v->out, EVENTS_SEQUENCE, torch_event_sequence(t, i));
	if (torch_event_fwd_thread(t, i))
		table_set_i64(v->out, EVENTS_FWD_THREAD, torch_event_fwd_thread(t, i));
	table_set_i64(v->out, EVENTS_HOST_SELF, t->cpu_self[i]);
	table_set_i64(v->out, EVENTS_DEV_SELF, t->dev_self[i]);
	table_set_i64(v->out, EVENTS_DEV_TOTAL, t->dev_total[i]);
	table_set_i64(v->out, EVENTS_KERNELS, t->kernel_first[i + 1] - t->kernel_first[i]);
	if (t->memory_known) {
		table_set_i64(v->out, EVENTS_CPU_MEM, t->cpu_mem[i]);
		table_set_i64(v->out, EVENTS_CPU_MEM_SELF, t->cpu_mem_self[i]);
		table_set_i64(v->out, EVENTS_DEV_MEM, t->dev_mem[i]);
		table_set_i64(v->out, EVENTS_DEV_MEM_SELF, t->dev_mem_self[i]);
	}
	if (t->flops && t->flops[i] != TORCH_UNKNOWN)
		table_set_i64(v->out, EVENTS_FLOPS, t->flops[i]);
	function_events_put_texts(v, i);
	function_events_put_launched(v, i);
	function_events_put_place(v, i);
	put_arguments(v, i);
}

/* args->variant->rules: struct torch_rules; NULL = opscope's own. */
static int function_events_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct function_events_view v = {.p = p, .out = out, .arguments = NEW_ARRAY(p->arg_set.rows.n + 1, struct str)};
	v.t = torch_events_new(p, args->variant->rules ? args->variant->rules : &torch_rules[TORCH_OWN], TORCH_STACKS | TORCH_FLOPS);
	uint32_t n = args->row_limit && args->row_limit < v.t->n ? (uint32_t)args->row_limit : v.t->n;
	int rc = 0;
	if (!v.t->n) {
		rc = err_set(e, ERR_DATA, "the trace holds no framework ops; to record them: %s", recording_how(p, RECORD_OPS));
	} else {
		function_events_start(&v, args);
		v.first_ns = v.t->start_ns[0];
		for (uint32_t i = 1; i < v.t->n; i++)
			v.first_ns = v.t->start_ns[i] < v.first_ns ? v.t->start_ns[i] : v.first_ns;
		for (uint32_t i = 0; i < n; i++)
			function_events_put_event(&v, i);
		out->hidden_rows = v.t->n - n;
		if (v.t->dropped_names)
			table_note(out, "%llu events of the profiler's own ops are left out, as torch does", (unsigned long long)v.t->dropped_names);
	}
	buf_release(&v.text);
	mem_free(v.arguments);
	torch_events_free(v.t);
	return rc;
}

const struct report report_function_events = {
	.name = "function-events",
	.title = "Events one by one",
	.help = "What prof.events() of torch lists: every op, annotation and API call with its times, parent, memory, shapes and stack.",
	.sections = (const struct section *const[]){&function_events_head, &function_events_tail, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_LIMIT,
	.run = function_events_run,
};
