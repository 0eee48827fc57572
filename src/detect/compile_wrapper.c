#include "analysis/names/names.h"
#include "detect/parts/compiled.h"
#include "detect/parts/compiled_calls.h"
#include "detect/parts/inside.h"

/* Percent of the steps' time without device work while the host is in compiled code. The time of the compiler is another finding: recompiles. */
static const double TOO_MUCH = 5, SEVERE = 25;
enum { PLACES_TOLD = 3 };

enum { OUTSIDE, REGION, GUARD, COMPILER };

static uint8_t compile_wrapper_class_of(struct str name)
{
	if (compiled_is_compiler(name))
		return COMPILER;
	if (compiled_is_region(name) || compiled_is_wrapper(name))
		return REGION;
	return compiled_is_guard(name) ? GUARD : OUTSIDE;
}

/* All inside a region counts for the region, all inside the compiler for the compiler; guards count for the region that they let in. */
static uint8_t compile_wrapper_mark_of(uint8_t around, uint8_t own)
{
	if (around == COMPILER || own == COMPILER)
		return COMPILER;
	return around == REGION || own ? REGION : around;
}

struct regions {
	uint64_t calls;          /* outermost regions in the steps */
	uint64_t backward;       /* of these, backward passes */
	uint64_t again;          /* how many of these were compiled again, by their names: "Torch-Compiled Region: 0/1" */
	bool inductor;           /* the wrapper is Inductor's: its frames, its range, or a Triton kernel from inside */
	bool graphs;             /* a graph is launched from inside */
};

static struct regions compile_wrapper_count(const struct profile *p, struct findings *f, const struct step_time *w, const uint8_t *mark, struct places *t)
{
	struct regions r = {0};
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (mark[i] != REGION || span_is_replay(p, i) || !step_time_has(w, p->span.start_ns[i]))
			continue;
		struct str name = profile_str(p, p->span.name[i]);
		uint32_t up = p->span.parent[i];
		r.inductor |= compiled_is_wrapper(name) || inductor_is_graph_range(name);
		r.graphs |= p->span.kind[i] == SPAN_CALL && str_has(name, STR("GraphLaunch"));
		if (up != ROW_NONE && mark[up] == REGION)
			continue;
		r.calls += !compiled_is_guard(name);
		r.backward += str_starts(name, STR("CompiledFunctionBackward"));
		r.again += compiled_is_again(name);
		places_add(t, shared_stacks(f), name, i, 1, step_time_idle_within(w, p->span.start_ns[i], span_end(p, i)));
	}
	for (uint32_t g = 0; g < p->gpu_op.rows.n && !r.inductor; g++)
		r.inductor = inside_of_gpu(p, mark, g) == REGION && gpu_kernel(p, g)->class == KERNEL_TRITON;
	return r;
}

/* Takes out of *when what is graph-breaks' case: the time between the graphs of broken calls, and all of broken calls whose graphs are not shown. Returns
 * how much the second was. */
static int64_t leave_out_eager(const struct profile *p, const struct step_time *w, struct intervals *when)
{
	struct compiled_calls *x = compiled_calls_new(p, w);
	if (!x)
		return 0;
	intervals_subtract(when, &x->between, when);
	int64_t before = intervals_length(when);
	intervals_subtract(when, &x->unknown, when);
	compiled_calls_free(x);
	return before - intervals_length(when);
}

/* Times without device work in which the host is in a compiled region that began in the steps, and not in the compiler. The caller releases them. */
static struct intervals idle_in_regions(const struct profile *p, const struct step_time *w, const uint8_t *mark)
{
	struct intervals when = {0}, compiling = {0};
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if ((mark[i] == COMPILER || (mark[i] == REGION && !span_is_replay(p, i) && step_time_has(w, p->span.start_ns[i]))) &&
		    (p->span.parent[i] == ROW_NONE || mark[p->span.parent[i]] != mark[i]))
			intervals_add(mark[i] == REGION ? &when : &compiling, p->span.start_ns[i], span_end(p, i));
	intervals_normalise(&when);
	intervals_normalise(&compiling);
	intervals_subtract(&when, &compiling, &when);
	intervals_intersect(&when, &w->idle, &when);
	intervals_release(&compiling);
	return when;
}

static void compile_wrapper_report(const struct profile *p, struct findings *f, const struct step_time *w, struct regions r, const struct intervals *when,
                                   const struct places *t)
{
	int64_t ns = intervals_length(when);
	double pct = step_time_pct(w, ns);
	struct buf b = {0};
	struct finding *x = findings_add(f, pct >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	put_lead(w, &b);
	buf_printf(&b, " has no work in %.1f %% of the %s while the host is in the wrapper of code that torch.compile made", pct, w->time);
	x->problem = finding_text(f, &b);
	b = (struct buf){0};
	put_mean(&b, (double)r.calls / w->n);
	buf_printf(&b, " call%s of compiled code%s, with ", r.calls == w->n ? "" : "s", w->n > 1 ? " a step" : "");
	put_ns(&b, (double)ns / w->n);
	buf_cstr(&b, " without device work: ");
	places_text(t, PLACES_TOLD, w->n, true, &b);
	if (r.again)
		buf_printf(&b, "; %llu of the calls %s code that was compiled again for other inputs", (unsigned long long)r.again, r.again == 1 ? "runs" : "run");
	x->evidence = finding_text(f, &b);
	if (r.graphs) {
		x->advice = r.calls - r.backward > w->n ?
			STR("CUDA graphs are in use already: make fewer, larger regions. TORCH_LOGS=graph_breaks names what ends a region.") :
			STR("CUDA graphs are in use already, and the step has one region. Compile or capture more of the step with it: loss, optimizer, zeroing of gradients.");
		x->disprove = STR("With a larger region the step is no shorter: then the device, or the host outside the compiled code, sets the pace.");
	}
	finding_looks_at_most(x, p, t);
	finding_measured(x, w, r.calls, ns, when, "time without device work while the host is in compiled code");
}

static void compile_wrapper_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	struct places t = {0};
	uint8_t *mark = inside_new(p, compile_wrapper_class_of, compile_wrapper_mark_of);
	struct regions r = compile_wrapper_count(p, f, w, mark, &t);
	struct intervals when = idle_in_regions(p, w, mark);
	int64_t unknown_ns = r.inductor ? leave_out_eager(p, w, &when) : 0;
	if (r.inductor && step_time_pct(w, intervals_length(&when)) >= TOO_MUCH)
		compile_wrapper_report(p, f, w, r, &when, &t);
	else if (step_time_pct(w, unknown_ns) >= TOO_MUCH)
		findings_missing(f, "%s", compiled_no_graphs_why);
	intervals_release(&when);
	places_release(&t);
	mem_free(mark);
}

const struct detector detector_compile_wrapper = {
	.id = "compile-wrapper",
	.title = "The host is slow in code that torch.compile made",
	.why = "Inductor's kernels are launched by a wrapper in Python, after guards that are checked at each call; where the kernels are short, the GPU waits "
	       "for it.",
	.fix = "torch.compile(mode=\"reduce-overhead\") records the kernels in a CUDA graph, which is one launch; fewer graph breaks "
	       "(TORCH_LOGS=graph_breaks, fullgraph=True) make fewer wrappers.",
	.disprove = "With CUDA graphs the step is no shorter: then the device, or the host outside the compiled code, sets the pace.",
	.shares = "graph-breaks gpu-starvation launch-bound low-gpu-utilization profiler-overhead",
	.report = "compile",
	.where = DETECT_WINDOW,
	.run = compile_wrapper_run,
};
