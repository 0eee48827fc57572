#include "detect/parts/compiled.h"
#include "detect/parts/shared.h"

/* Percent of the steps' time in which the host leaves every device without work. Below a tenth, other things are worth more; at a
 * quarter, it is the first thing to look at. What launches and dependencies cost is no fault of the host and counts apart. */
static const double TOO_MUCH = 10, SEVERE = 25;
/* Percent of this time that a cause must have to be told; the longest cause is always told. */
static const double LEAST_TOLD = 2;
/* How many causes the problem names, and places the evidence names for each. */
enum { CAUSES_TOLD = 4, PLACES_TOLD = 2 };

static const char *const advice[GAP_N_CAUSES] = {
	[GAP_DATA] = "Load data in other processes (num_workers > 0; more of them where there are some), so that the batch is there when the step begins.",
	[GAP_SYNC] = "Take out calls that wait for the device, or move them to where their result is needed.",
	[GAP_ALLOC] = "Let the caching allocator reuse memory: allocate once before the loop, avoid empty_cache(), keep shapes fixed or set "
	              "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
	[GAP_GC] = "Call gc.freeze() after set-up and collect at chosen steps (gc.disable() in between).",
	[GAP_PROFILER] = "Record less (no stacks, no shapes) and look again: the profiler itself keeps the GPU waiting.",
	[GAP_LOAD] = "Run more steps before recording: kernels are loaded at their first launch (CUDA_MODULE_LOADING=EAGER loads them before).",
	[GAP_CALL] = "Launch less often: CUDA graphs, torch.compile, fused ops, a larger batch.",
	[GAP_OP] = "Give the host less to do per op: torch.compile or CUDA graphs, fused ops, a larger batch; run ops on the GPU where their "
	           "tensors are.",
	[GAP_PYTHON] = "Move this Python work out of the step, or to another thread or process.",
	[GAP_UNKNOWN] = "Record what the host does then: with_stack=True, or record_function around the parts of the step.",
};

/* What to do where the recorder is not torch.profiler, which the texts above are about, and has other switches. */
static const struct {
	const char *format;
	enum gap_cause cause;
	const char *advice;
} by_recorder[] = {
	{"nsys", GAP_UNKNOWN, "Record what the host does then: NVTX ranges around the parts of the step (torch.cuda.nvtx.range, emit_nvtx), system calls and "
	 "samples of the CPU (nsys profile -t cuda,nvtx,osrt --sample=process-tree)."},
	{"nsys", GAP_PROFILER, "Record less (nsys profile -t cuda,nvtx, no backtraces, no --cuda-memory-usage) and look again: the profiler itself keeps the GPU "
	 "waiting."},
	{"nvprof", GAP_UNKNOWN, "Record what the host does then: NVTX ranges around the parts of the step (torch.cuda.nvtx.range, emit_nvtx)."},
	{"nvprof", GAP_PROFILER, "Record less (no metrics, no CPU samples) and look again: the profiler itself keeps the GPU waiting."},
	{"capture", GAP_UNKNOWN, "Record what the host does then: NVTX ranges around the parts of the step (torch.cuda.nvtx.range, emit_nvtx), and "
	 "opscope record --sample=cpu."},
	{"capture", GAP_PROFILER, "Record fewer steps and look again: the recorder itself keeps the GPU waiting."},
};

static const char *advice_of(const struct profile *p, enum gap_cause c)
{
	for (size_t i = 0; i < sizeof by_recorder / sizeof *by_recorder; i++)
		if (by_recorder[i].cause == c && str_eqc(p->format, by_recorder[i].format))
			return by_recorder[i].advice;
	return advice[c];
}

/* Python and ops of the host that are torch.compile's own: the program has nothing to move out of the step. */
static const char advice_compiled[] = "Most of this is torch.compile's own: its wrapper, guards or compiler, not code of the program. Its "
	"mode=\"reduce-overhead\" (CUDA graphs) leaves one launch of the wrapper; compile before the steps, with shapes that do not change.";

static bool is_compiled(const struct places *t)
{
	int64_t ns = 0;
	for (uint32_t i = 0; i < t->n; i++) {
		struct str name = intern_get(&t->texts, t->v[i].name), line = intern_get(&t->texts, t->v[i].line);
		if (compiled_is_region(name) || compiled_is_wrapper(name) || compiled_is_wrapper(line) || compiled_is_guard(name))
			ns += t->v[i].ns;
	}
	return t->ns && 2 * ns >= t->ns;
}

/* The causes sorted by time, the longest first; *n causes took any time. */
static void rank(const struct gaps *g, enum gap_cause order[GAP_N_CAUSES], unsigned *n)
{
	*n = 0;
	for (int c = 0; c < GAP_N_CAUSES; c++) {
		if (c == GAP_LATENCY || !g->ns[c])
			continue;
		unsigned k = (*n)++;
		for (; k > 0 && g->ns[order[k - 1]] < g->ns[c]; k--)
			order[k] = order[k - 1];
		order[k] = (enum gap_cause)c;
	}
}

static bool is_told(const struct gaps *g, enum gap_cause c, int64_t starved)
{
	return 100.0 * (double)g->ns[c] >= LEAST_TOLD * (double)starved;
}

static void cover_waits(const struct profile *p, const struct gaps *g, struct finding *x)
{
	struct intervals when = {0};
	for (uint32_t i = 0; i < g->n; i++)
		intervals_add(&when, g->v[i].start_ns, gap_host_until(&g->v[i], p));
	intervals_normalise(&when);
	finding_covers(x, &when);
	intervals_release(&when);
}

static void gpu_starvation_report(const struct profile *p, struct findings *f, const struct step_time *w, const struct gaps *g, int64_t starved)
{
	enum gap_cause order[GAP_N_CAUSES];
	unsigned n;
	double pct = step_time_pct(w, starved);
	struct buf problem = {0}, evidence = {0};
	rank(g, order, &n);
	struct finding *x = findings_add(f, pct >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	put_lead(w, &problem);
	buf_printf(&problem, " has no work in %.1f %% of the %s, because the host has not launched any:", pct, w->time);
	for (unsigned i = 0; i < n && i < CAUSES_TOLD && is_told(g, order[i], starved); i++)
		buf_printf(&problem, "%s %s %.0f %%", i ? "," : "", gap_cause_text[order[i]], 100.0 * (double)g->ns[order[i]] / (double)starved);
	buf_printf(&evidence, "%s: ", w->per);
	put_ns(&evidence, (double)w->idle_ns / w->n);
	buf_cstr(&evidence, " without device work");
	put_idle_of_gpus(w, &evidence);
	buf_cstr(&evidence, ", of it ");
	put_ns(&evidence, (double)g->ns[GAP_LATENCY] / w->n);
	buf_cstr(&evidence, " after the launch. The rest:");
	for (unsigned i = 0; i < n && i < CAUSES_TOLD && is_told(g, order[i], starved); i++) {
		buf_printf(&evidence, "%s %s (", i ? ";" : "", gap_cause_text[order[i]]);
		put_ns(&evidence, (double)g->ns[order[i]] / w->n);
		buf_char(&evidence, ')');
		if (!g->place[order[i]].n)
			continue;
		buf_cstr(&evidence, ": ");
		places_text(&g->place[order[i]], PLACES_TOLD, w->n, false, &evidence);
	}
	x->problem = finding_text(f, &problem);
	x->evidence = finding_text(f, &evidence);
	bool compiled = (order[0] == GAP_PYTHON || order[0] == GAP_OP) && is_compiled(&g->place[order[0]]);
	x->advice = str_from(compiled ? advice_compiled : advice_of(p, order[0]));
	for (uint32_t i = 0; i < g->n; i++)
		finding_looks_at(x, g->v[i].start_ns, gap_host_until(&g->v[i], p));
	finding_rests_on(x, w, g->n, starved);
	finding_gain(x, w, starved, "all time without device work before the next launch was called");
	cover_waits(p, g, x);
}

static void gpu_starvation_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	const struct gaps *g = shared_gaps(f);
	int64_t starved = w->idle_ns - g->ns[GAP_LATENCY];
	if (step_time_pct(w, starved) >= TOO_MUCH)
		gpu_starvation_report(p, f, w, g, starved);
}

const struct detector detector_gpu_starvation = {
	.id = "gpu-starvation",
	.title = "The GPU runs out of work, and what the host does then",
	.why = "Each moment in which nothing is queued for the GPU makes the step longer.",
	.fix = "Remove what the host does in the gaps: the finding names it, by cause, op and line.",
	.disprove = "The gaps vanish in a recording without stacks, shapes and memory, or by Nsight Systems: then the profiler made them.",
	.symptom = SYMPTOM_HOST,
	.where = DETECT_WINDOW,
	.run = gpu_starvation_run,
};
