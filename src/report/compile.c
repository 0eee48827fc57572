/* What compilers made of the program, torch.compile above all, and what that costs on the host and on the device. Of a broken call and of the compiler, the evidence is that of
 * the detectors graph-breaks and recompiles. */
#include "base/mem.h"
#include "base/round.h"
#include "detect/parts/compiled_calls.h"
#include "detect/parts/compiler_runs.h"
#include "op/inductor_name.h"
#include "query/report.h"
#include "report/parts/compile_kernels.h"
#include "report/parts/compile_lines.h"
#include "report/parts/compile_programs.h"

enum {
	COMPILE_NAME, COMPILE_GRAPH, COMPILE_CODE, COMPILE_FORWARD, COMPILE_CALLS, COMPILE_DEVICE, COMPILE_PCT, COMPILE_GENERATED, COMPILE_CALLED, COMPILE_UNFUSED, COMPILE_HOST,
	COMPILE_GUARDS_NS, COMPILE_OWN_NS, COMPILE_WRAPPER_NS, COMPILE_OPS_NS, COMPILE_CALLS_NS, COMPILE_EAGER_NS, COMPILE_COMPILER_NS
};

static const struct section compile_section = {COLUMNS(
	[COMPILE_NAME] = {COLUMN(TEXT, "region", "Region", "range in which compiled code runs: the compiled frame (its number, and which of its compilations), the backward pass of one, or "
	                         "where these have no ranges what runs a graph", .flags = COLUMN_ANSWER)},
	[COMPILE_GRAPH] = {COLUMN(TEXT, "graph", "Graph", "hash of its first graph; empty = not recorded", .flags = COLUMN_DETAIL)},
	[COMPILE_CODE] = {COLUMN(TEXT, "code", "Code", "function of the generated file that calls its ops and kernels; empty = not recorded", .flags = COLUMN_DETAIL | COLUMN_PATH)},
	[COMPILE_FORWARD] = {COLUMN(TEXT, "forward", "Backward of", "of a backward pass: the region that it belongs to; empty = not known", .flags = COLUMN_MINOR)},
	[COMPILE_CALLS] = {COLUMN(COUNT, "calls", "Calls", "how often it ran", .flags = COLUMN_ANSWER)},
	[COMPILE_DEVICE] = {COLUMN(NS, "device_ns", "Device time", "sum of the durations of what it launched: generated + called + outside; empty = not known", .flags = COLUMN_ANSWER), .when = WHEN_DEVICE},
	[COMPILE_PCT] = {COLUMN(PERCENT, "device_pct", "Device %", "device time / that of all device work"), .when = WHEN_DEVICE},
	[COMPILE_GENERATED] = {COLUMN(NS, "generated_ns", "Generated", "device time of kernels that Inductor generated; empty = their launches are not recorded"), .when = WHEN_DEVICE},
	[COMPILE_CALLED] = {COLUMN(NS, "called_ns", "Called", "device time of other kernels, copies and sets that its graph launched: products, convolutions, attention"), .when = WHEN_DEVICE},
	[COMPILE_UNFUSED] = {COLUMN(NS, "unfused_ns", "Outside", "device time of what it launched outside of its graph: at a graph break, or around the graph", .flags = COLUMN_MINOR),
	                     .when = WHEN_DEVICE},
	[COMPILE_HOST] = {COLUMN(NS, "host_ns", "Host time", "time of the host in it, without regions inside it and without guards: own + ops + API calls + eager + compiler",
	                         .flags = COLUMN_ANSWER)},
	[COMPILE_GUARDS_NS] = {COLUMN(NS, "guards_ns", "Guards", "time of the host before it, in which Dynamo looks whether what it compiled fits; empty = not recorded")},
	[COMPILE_OWN_NS] = {COLUMN(NS, "own_ns", "Own", "time of the host outside of ops and API calls: the generated wrapper, and what stands around the graph (bytecode, AOTAutograd)")},
	[COMPILE_WRAPPER_NS] = {COLUMN(NS, "wrapper_ns", "Of it wrapper", "own time in the graph: the generated code that calls its ops and kernels, and what runs it; empty = the graph's "
	                               "range is not recorded")},
	[COMPILE_OPS_NS] = {COLUMN(NS, "ops_ns", "Ops", "time of the host in ops that the graph calls and in launches of generated kernels that have a range, without API calls")},
	[COMPILE_CALLS_NS] = {COLUMN(NS, "api_ns", "API calls", "time of the host in API calls of the graph")},
	[COMPILE_EAGER_NS] = {COLUMN(NS, "eager_ns", "Eager", "time of the host in ops and API calls of the region, outside of its graph", .flags = COLUMN_MINOR)},
	[COMPILE_COMPILER_NS] = {COLUMN(NS, "compiler_ns", "Compiler", "time of the host in the compiler within the region, as when a backward pass is compiled at its first call",
	                                .flags = COLUMN_MINOR)},
)};

enum { EVENTS_KIND, EVENTS_WHERE, EVENTS_N, EVENTS_NS };

static const struct section compile_events_section = {.name = "breaks", .title = "Graph breaks and runs of the compiler", COLUMNS(
	[EVENTS_KIND] = {COLUMN(TEXT, "kind", "What", "graph break = Dynamo left its graph and went on behind what it cannot trace; compiler = it compiled within the time looked at",
	                        .flags = COLUMN_ANSWER)},
	[EVENTS_WHERE] = {COLUMN(TEXT, "place", "Where", "graph break: function and line at which it was left, else the range that goes on behind it; compiler: the frame that runs next",
	                         .flags = COLUMN_ANSWER)},
	[EVENTS_N] = {COLUMN(COUNT, "count", "Times", "how often", .flags = COLUMN_ANSWER)},
	[EVENTS_NS] = {COLUMN(NS, "compiler_ns", "Host time", "of the compiler; what a graph break costs is in `opscope advise`", .flags = COLUMN_ANSWER)},
)};

static void put_region(const struct profile *p, const struct compile_regions *all, const struct compile_kernels *k, int64_t all_ns, uint32_t i, struct table *t)
{
	const struct compile_device *d = compile_kernels_of(k, i);
	const struct compile_region *r = &all->v[i];
	int64_t device_ns = d->generated_ns + d->called_ns + d->eager_ns;
	table_row(t);
	table_set_str(t, COMPILE_NAME, profile_str(p, r->name));
	if (r->graph)
		table_set_str(t, COMPILE_GRAPH, inductor_graph_key(profile_str(p, r->graph)));
	if (r->code)
		table_set_str(t, COMPILE_CODE, profile_str(p, r->code));
	if (r->forward != ROW_NONE)
		table_set_str(t, COMPILE_FORWARD, profile_str(p, all->v[r->forward].name));
	table_set_i64(t, COMPILE_CALLS, (int64_t)r->calls);
	if (compile_kernels_placed(k)) {
		table_set_i64(t, COMPILE_DEVICE, device_ns);
		table_set_f64(t, COMPILE_PCT, percent((double)device_ns, (double)all_ns));
		table_set_i64(t, COMPILE_GENERATED, d->generated_ns);
	}
	table_set_i64(t, COMPILE_CALLED, d->called_ns);
	table_set_i64(t, COMPILE_UNFUSED, d->eager_ns);
	table_set_i64(t, COMPILE_HOST, compile_region_host_ns(r));
	if (r->guarded)
		table_set_i64(t, COMPILE_GUARDS_NS, r->part_ns[COMPILE_GUARD]);
	table_set_i64(t, COMPILE_OWN_NS, r->part_ns[COMPILE_OWN] + r->part_ns[COMPILE_WRAPPER]);
	if (r->shows_wrapper)
		table_set_i64(t, COMPILE_WRAPPER_NS, r->part_ns[COMPILE_WRAPPER]);
	table_set_i64(t, COMPILE_OPS_NS, r->part_ns[COMPILE_OP]);
	table_set_i64(t, COMPILE_CALLS_NS, r->part_ns[COMPILE_CALL]);
	table_set_i64(t, COMPILE_EAGER_NS, r->part_ns[COMPILE_EAGER]);
	table_set_i64(t, COMPILE_COMPILER_NS, r->part_ns[COMPILE_COMPILER]);
}

/* What happened at one place. */
struct compile_event {
	uint64_t n;
	int64_t ns;
};

struct compile_events {
	struct intern names[2];  /* graph breaks, runs of the compiler */
	struct compile_event *v[2];
	uint32_t n[2], cap[2];
	uint64_t all[2];
	int64_t compiler_ns;
	bool frames, may_be_broken, hides_graphs; /* frames: the input shows compiled frames */
};

static void add_event(struct compile_events *x, unsigned kind, struct buf *place, int64_t ns)
{
	uint32_t i = intern_str(&x->names[kind], buf_view(place)) - 1;
	if (i == x->n[kind])
		MEM_PUSH(x->v[kind], x->n[kind], x->cap[kind], (struct compile_event){0});
	x->v[kind][i].n++;
	x->v[kind][i].ns += ns;
	x->all[kind]++;
	buf_release(place);
}

static void find_breaks(const struct profile *p, struct compile_events *x)
{
	struct step_time w = {.n = p->steps && p->steps->n ? p->steps->n : 1};
	intervals_add(&w.all, INT64_MIN / 2, INT64_MAX / 2);
	struct compiled_calls *c = compiled_calls_new(p, &w);
	for (uint32_t i = 0; c && i < p->span.rows.n; i++)
		if (c->is_break[i]) {
			struct buf b = {0};
			compiled_put_break(c, i, &b);
			add_event(x, 0, &b, 0);
		}
	x->frames = c != NULL;
	x->may_be_broken = c && compiled_may_be_broken(c);
	x->hides_graphs = c && c->unknown.n;
	compiled_calls_free(c);
	intervals_release(&w.all);
}

static void find_compiler_runs(const struct profile *p, struct compile_events *x)
{
	uint8_t *mark = compiler_runs_new(p);
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (compiler_run_starts(p, mark, i)) {
			struct buf b = {0};
			compiler_run_put_frame(p, i, &b);
			add_event(x, 1, &b, p->span.dur_ns[i]);
			x->compiler_ns += p->span.dur_ns[i];
		}
	mem_free(mark);
}

static void put_events(const struct compile_events *x, const struct report_args *args, struct table *first)
{
	static const char *const kind_name[2] = {"graph break", "compiler"};
	if (!x->all[0] && !x->all[1] && (!x->frames || x->may_be_broken))
		return; /* an empty table says that there are none */
	struct table *t = section_add(&compile_events_section, args, 0, first);
	for (unsigned kind = 0; kind < 2; kind++)
		for (uint32_t i = 0; i < x->n[kind]; i++) {
			table_row(t);
			table_set_str(t, EVENTS_KIND, str_from(kind_name[kind]));
			table_set_str_copy(t, EVENTS_WHERE, intern_get(&x->names[kind], i + 1));
			table_set_i64(t, EVENTS_N, (int64_t)x->v[kind][i].n);
			if (kind)
				table_set_i64(t, EVENTS_NS, x->v[kind][i].ns);
		}
	if (x->hides_graphs)
		table_note(t, "what graph breaks cost is not known: %s", compiled_no_graphs_why);
}

static void put_notes(const struct profile *p, const struct compile_regions *r, const struct compile_events *x, struct table *t)
{
	bool frames = false, wrapper = false, several = false;
	for (uint32_t i = 0; i < p->span.rows.n && !frames; i++)
		frames = r->of_span[i] != ROW_NONE && p->span.kind[i] == SPAN_PYTHON;
	for (uint32_t i = 0; i < r->n; i++) {
		wrapper |= r->v[i].shows_wrapper;
		several |= r->v[i].graphs > 1;
	}
	if (p->steps && p->steps->n)
		table_note(t, "times and calls are totals of %s%u step%s, and not per step", p->whole ? "" : "the whole recording with ", p->steps->n, p->steps->n == 1 ? "" : "s");
	if (frames)
		table_warn(t, "Python frames were recorded, which makes Python slower than it is without: own time, wrapper and guards are shorter in the run itself");
	if (r->n && !wrapper)
		table_note(t, "the wrapper's time is not known: the recording has neither ranges \"## Call CompiledFxGraph\" nor frames of the files that Inductor wrote");
	if (several)
		table_note(t, "some calls run several graphs: graph and code name the first one");
	if (x->all[1])
		table_note(t, "the compiler ran %llu time%s in this time, %lld ns of the host", (unsigned long long)x->all[1], x->all[1] == 1 ? "" : "s", (long long)x->compiler_ns);
	if (x->may_be_broken)
		table_warn(t, "whether there are graph breaks is not known: %s", compiled_no_frames_why);
	else if (r->n && !x->frames && !frames)
		table_note(t, "whether there are graph breaks is not known: the recording has neither ranges of compiled frames nor Python frames");
	else if (r->n && !x->all[0])
		table_note(t, "no graph break is seen");
	if (r->lost_guards)
		table_note(t, "%llu range%s of guards, %lld ns, %s followed by no region: what they guard has no range, or was not compiled", (unsigned long long)r->lost_guards,
		           r->lost_guards == 1 ? "" : "s", (long long)r->lost_guards_ns, r->lost_guards == 1 ? "is" : "are");
}

static int compile_put(const struct profile *p, const struct report_args *args, const struct compile_regions *r, const struct compile_kernels *k, struct table *out, struct err *e)
{
	struct compile_events x = {0};
	int64_t all_ns = 0;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		all_ns += p->gpu_op.dur_ns[g];
	section_start(&compile_section, args, p->gpu_op.rows.n ? WHEN_DEVICE : 0, out);
	for (uint32_t i = 0; i < r->n; i++)
		put_region(p, r, k, all_ns, i, out);
	for (unsigned kind = 0; kind < 2; kind++)
		intern_init(&x.names[kind]);
	find_breaks(p, &x);
	find_compiler_runs(p, &x);
	put_notes(p, r, &x, out);
	int rc = compile_kernels_put(k, args, out, e);
	if (rc == 0)
		put_events(&x, args, out);
	for (unsigned kind = 0; kind < 2; kind++) {
		intern_release(&x.names[kind]);
		mem_free(x.v[kind]);
	}
	return rc < 0 ? rc : table_sort(out, p->gpu_op.rows.n && compile_kernels_placed(k) ? STR("device_ns") : STR("host_ns"), true, e);
}

static int compile_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct compile_regions r;
	compile_regions_find(p, &r);
	struct compile_kernels *k = compile_kernels_new(p, &r);
	struct compile_programs *x = compile_programs_new(p);
	const bool torch = r.n || compile_kernels_any(k);
	int rc = 0;
	if (!torch && !x)
		rc = err_set(e, ERR_DATA, "no code of torch.compile: the input has neither ranges of it (Torch-Compiled Region, CompiledFunction, ## Call CompiledFxGraph), nor frames of "
		             "files that Inductor wrote, nor kernels with names of Inductor (triton_poi_fused_...); nor has it ranges of XLA's programs or of TensorRT's engines");
	if (torch)
		rc = compile_put(p, args, &r, k, out, e);
	else if (x) {
		section_start(&compile_section, args, p->gpu_op.rows.n ? WHEN_DEVICE : 0, out);
		table_note(out, "nothing of torch.compile is recorded");
	}
	if (rc == 0 && torch)
		rc = compile_said_put(p, args, out, e);
	if (rc == 0 && x)
		rc = compile_programs_put(x, args, out, e);
	compile_kernels_free(k);
	compile_programs_free(x);
	compile_regions_release(&r);
	return rc;
}

const struct report report_compile = {
	.name = "compile",
	.title = "Code that torch.compile, XLA and TensorRT made",
	.asks = ASKS_FASTER,
	.also = "torch_compile inductor dynamo compiled graph_breaks recompiles guards provenance xla jax hlo tensorrt engine",
	.help = "What torch.compile made of the program, and what that costs: each compiled region with its device time and with what the host does in it (guards, the generated "
	        "wrapper, ops, API calls); the kernels that Inductor generated, with the ops of the program that they fuse; what the compiled code calls besides; what is not compiled; "
	        "graph breaks and runs of the compiler. A region inside another counts for itself, so that rows add up. With --provenance, what torch.compile wrote down, also the lines of the "
	        "program that kernels came from. Of XLA (JAX, TensorFlow) and TensorRT: each program and its ops or layers, by their NVTX ranges. `opscope report triton` has the launch parameters of "
	        "kernels.",
	.sections = (const struct section *const[]){&compile_section, &compile_kernels_section, &compile_sources_section, &compile_lines_section, &compile_called_section, &compile_eager_section,
	                                            &compile_events_section, &compile_said_section, &compile_programs_section, &compile_program_ops_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.takes = REPORT_OF_STEPS,
	.run = compile_run,
};
