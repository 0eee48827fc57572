/* Which op made which input of which op: a row for each input whose producer is stated (analysis/tree/op_graph.h). */
#include "analysis/tree/direction.h"
#include "analysis/tree/op_graph.h"
#include "base/search.h"
#include "query/window.h"

enum {
	OP_GRAPH_OP_ID, OP_GRAPH_OP, OP_GRAPH_DIRECTION, OP_GRAPH_INPUT, OP_GRAPH_SHAPE, OP_GRAPH_PRODUCER_ID, OP_GRAPH_PRODUCER, OP_GRAPH_OUTPUT, OP_GRAPH_PRODUCER_DIRECTION,
	OP_GRAPH_PASSED_ON, OP_GRAPH_START, OP_GRAPH_PRODUCER_START
};

static const struct section op_graph_section = {COLUMNS(
	[OP_GRAPH_OP_ID] = {COLUMN(NUMBER, "op_id", "Op id", "the op's id as recorded: op_id of emit_nvtx, callid of a marker, External id with an execution trace; empty = none")},
	[OP_GRAPH_OP] = {COLUMN(TEXT, "op", "Op", "the op that has the input", .flags = COLUMN_ANSWER | COLUMN_GROUP)},
	[OP_GRAPH_DIRECTION] = {COLUMN(TEXT, "direction", "Direction", "forward, backward, optimizer or other", .flags = COLUMN_ANSWER)},
	[OP_GRAPH_INPUT] = {COLUMN(NUMBER, "input", "Input", "which input, from 0; a list of tensors counts tensor by tensor. Of markers with callid: which of the tensors", .flags = COLUMN_ANSWER)},
	[OP_GRAPH_SHAPE] = {COLUMN(TEXT, "shape", "Shape", "dimensions of the input", .flags = COLUMN_ANSWER), .when = WHEN_SHAPES},
	[OP_GRAPH_PRODUCER_ID] = {COLUMN(NUMBER, "producer_id", "Producer's id", "id of the op that made the input")},
	[OP_GRAPH_PRODUCER] = {COLUMN(TEXT, "producer", "Producer", "the op that made the input; empty = it is not in the recording, or what is stated cannot be right", .flags = COLUMN_ANSWER)},
	[OP_GRAPH_OUTPUT] = {COLUMN(NUMBER, "output", "Output", "which output of the producer it is, from 0; empty = not stated")},
	[OP_GRAPH_PRODUCER_DIRECTION] = {COLUMN(TEXT, "producer_direction", "Producer's direction", "forward, backward, optimizer or other", .flags = COLUMN_ANSWER)},
	[OP_GRAPH_PASSED_ON] = {COLUMN(YES_NO, "passed_on", "Passed on", "the op around this one has the same input, and passed it on")},
	[OP_GRAPH_START] = {COLUMN(TIME, "start_ns", "Start", "of the op, on the trace's clock", .flags = COLUMN_DETAIL)},
	[OP_GRAPH_PRODUCER_START] = {COLUMN(TIME, "producer_start_ns", "Producer's start", "on the trace's clock", .flags = COLUMN_DETAIL)},
)};

static void op_graph_put_edge(const struct profile *p, const struct op_graph *g, const struct op_edge *e, const struct directions *dir, struct table *t)
{
	int64_t id;
	table_row(t);
	if (op_graph_id(p, g->source, e->to, &id))
		table_set_i64(t, OP_GRAPH_OP_ID, id);
	table_set_str(t, OP_GRAPH_OP, profile_str(p, p->span.name[e->to]));
	table_set_str(t, OP_GRAPH_DIRECTION, str_from(direction_name[dir->span[e->to]]));
	table_set_i64(t, OP_GRAPH_INPUT, e->input);
	if (e->shape.n)
		table_set_str(t, OP_GRAPH_SHAPE, e->shape);
	table_set_i64(t, OP_GRAPH_PRODUCER_ID, e->from_id);
	if (e->output >= 0)
		table_set_i64(t, OP_GRAPH_OUTPUT, e->output);
	table_set_bool(t, OP_GRAPH_PASSED_ON, e->passed_on);
	table_set_i64(t, OP_GRAPH_START, p->span.start_ns[e->to]);
	if (e->from == ROW_NONE)
		return;
	table_set_str(t, OP_GRAPH_PRODUCER, profile_str(p, p->span.name[e->from]));
	table_set_str(t, OP_GRAPH_PRODUCER_DIRECTION, str_from(direction_name[dir->span[e->from]]));
	table_set_i64(t, OP_GRAPH_PRODUCER_START, p->span.start_ns[e->from]);
}

static void op_graph_put_notes(const struct op_graph *g, struct table *t)
{
	static const char *const told_by[] = {
		[OP_GRAPH_RANGES] = "input_op_ids of emit_nvtx's ranges, which tell tensors by the address of torch's object: an input that no op made can have the address of a tensor "
		                    "that is gone, and is then said to be of the op that made that one; shapes do not always show that",
		[OP_GRAPH_CALLS] = "input_callids of the markers",
		[OP_GRAPH_TENSORS] = "the execution trace: an input was made by the op that ended last with this tensor, of the same storage, among its outputs",
	};
	table_note(t, "told by %s", told_by[g->source]);
	table_note(t, "ops that state their inputs: %u. Tensors among these whose producer is not stated (weights, data, what was made before the recording): %llu", g->ops,
	           (unsigned long long)g->unknown);
	if (g->outside)
		table_note(t, "inputs whose producer is stated and is not in the recording: %llu", (unsigned long long)(g->outside - g->not_believed));
	if (g->not_believed)
		table_warn(t, "inputs whose stated producer is left empty, since it ended after the op began, or several ops have its id, or an op before saw this output with another shape: %llu", (unsigned long long)g->not_believed);
}

static int op_graph_refuse(const struct profile *p, struct err *e)
{
	if (p->recorder == RECORDER_TORCH)
		return err_set(e, ERR_DATA, "the trace does not state which op made the inputs of which, as torch.profiler does not record it; to have it: an execution trace of the "
		                            "same run (ExecutionTraceObserver), by --execution-trace=PATH, or emit_nvtx(record_shapes=True) with nsys");
	return err_set(e, ERR_DATA, "the input does not state which op made the inputs of which; to record it: emit_nvtx(record_shapes=True), or "
	                            "opscope.torch.init(capture_input_ops=True)");
}

static bool op_graph_has_shapes(const struct op_graph *g)
{
	return ANY_WHERE(i, 0, g->n, g->edge[i].shape.n);
}

static int op_graph_put(const struct profile *p, const struct op_graph *g, const struct window *w, const struct report_args *args, struct table *out, struct err *e)
{
	struct directions *dir = directions_new(p);
	size_t n = 0;
	section_start(&op_graph_section, args, op_graph_has_shapes(g) ? WHEN_SHAPES : 0, out);
	for (uint32_t i = 0; i < g->n; i++) {
		if (!window_has(w, p->span.start_ns[g->edge[i].to]))
			continue;
		if (args->row_limit && n >= args->row_limit)
			out->hidden_rows++;
		else
			op_graph_put_edge(p, g, &g->edge[i], dir, out);
		n++;
	}
	directions_free(dir);
	op_graph_put_notes(g, out);
	return n ? 0 : err_set(e, ERR_DATA, w->all ? "the input states inputs of ops, but the producer of none of them" : "no op that began in those steps has an input whose producer is stated");
}

static int op_graph_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct window w;
	if (op_graph_source(p) == OP_GRAPH_NONE)
		return op_graph_refuse(p, e);
	if (window_of(p, args, &w, e) < 0)
		return -1;
	struct op_graph *g = op_graph_new(p);
	const int rc = op_graph_put(p, g, &w, args, out, e);
	op_graph_free(g);
	return rc;
}

const struct report report_op_graph = {
	.name = "op-graph",
	.title = "Op graph: which op made the inputs of which",
	.asks = ASKS_PART,
	.also = "graph dataflow producers consumers input_ops input_op_ids",
	.help = "A row for each input of each op whose producer is stated: the op, which input it is, its shape, the op that made it, and which of its outputs it is. So the model's graph "
	        "can be drawn, and a tensor followed through forward, backward and optimizer. Producers are stated by emit_nvtx(record_shapes=True), by markers with callid "
	        "(opscope.torch.init(capture_input_ops=True), DLProf), and by an execution trace (--execution-trace=PATH). `passed_on` marks an input that the op around has, too.",
	.sections = (const struct section *const[]){&op_graph_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.takes = REPORT_LIMIT | REPORT_STEPS,
	.timeline = true,
	.run = op_graph_run,
};
