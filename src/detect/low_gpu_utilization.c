#include <assert.h>

#include "detect/parts/shared.h"

/* Of the time of the steps. */
static const double TOO_LITTLE = 0.5, SEVERE = 0.25;

/* By what the host does while the GPU waits. A larger batch is for launch-bound to propose: it helps where the pace of launching is the cause alone. */
static const char *advice_for(const struct gaps *g)
{
	static const char *const advice[GAP_N_CAUSES] = {
		[GAP_DATA] = "See to the data loader first: it is what the GPU waits for most.",
		[GAP_SYNC] = "See to the calls that wait for the GPU first: after each of them it has no work until the host has launched again.",
		[GAP_ALLOC] = "See to the calls that allocate and free device memory first: the GPU waits for them most.",
		[GAP_GC] = "See to Python's garbage collector first: the GPU waits for it most.",
		[GAP_PROFILER] = "Record less and look again: the GPU waits for the profiler most.",
		[GAP_LOAD] = "Record later steps: the GPU waits for kernels to be loaded most, which happens once.",
		[GAP_CALL] = "See to the calls of the GPU's runtime that take the host long: launches (CUDA graphs, torch.compile, fused ops) or copies (non_blocking, pinned memory).",
		[GAP_OP] = "Give the host less to do for the same work of the GPU: torch.compile, CUDA graphs, fused ops.",
		[GAP_PYTHON] = "Take Python work out of the way of launching first: the GPU waits for it most.",
		[GAP_LATENCY] = "See the timeline of `opscope serve` for what the GPU waits for: the work was launched before, and streams or other GPUs wait for each other.",
		[GAP_UNKNOWN] = "Find out what the host does meanwhile, which was not recorded: call stacks, system calls, ranges around the parts of the step.",
	};
	enum gap_cause most = GAP_UNKNOWN;
	for (unsigned c = 0; c < GAP_N_CAUSES; c++)
		most = g->ns[c] > g->ns[most] ? (enum gap_cause)c : most;
	return advice[most];
}

/* How long each GPU of the window ran kernels in it: ns[i] of w->gpu[i]; -1 = it runs none in the whole recording, and is there for copies alone. */
static void low_gpu_utilization_kernels(const struct profile *p, const struct step_time *w, int64_t *ns)
{
	struct gpus gpus;
	struct intervals *kernels = NEW_ARRAY(w->gpus, struct intervals);
	gpus_find(p, &gpus);
	assert(gpus.n == w->gpus);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t at = p->gpu_op.kind[g] == GPU_KERNEL ? gpus_of(&gpus, p, g) : GPUS_NONE;
		if (at != GPUS_NONE)
			intervals_add(&kernels[at], p->gpu_op.start_ns[g], p->gpu_op.start_ns[g] + p->gpu_op.dur_ns[g]);
	}
	for (unsigned i = 0; i < w->gpus; i++) {
		intervals_normalise(&kernels[i]);
		bool any = kernels[i].n > 0;
		intervals_intersect(&kernels[i], &w->all, &kernels[i]);
		ns[i] = any ? intervals_length(&kernels[i]) : -1;
		intervals_release(&kernels[i]);
	}
	gpus_release(&gpus);
	mem_free(kernels);
}

static void low_gpu_utilization_report(struct findings *f, const struct step_time *w, struct buf *list, double lowest)
{
	int64_t idle_ns = w->ns;
	for (unsigned i = 0; i < w->gpus; i++)
		if (w->gpu[i].idle_ns < idle_ns)
			idle_ns = w->gpu[i].idle_ns;
	int64_t busiest_ns = w->ns - idle_ns;
	struct finding *x = findings_add(f, lowest < SEVERE && w->kind == WINDOW_STEPS ? FINDING_HIGH : FINDING_MEDIUM);
	x->problem = arena_printf(&f->arena, "Low GPU utilization: " STR_FMT " of the %s with a kernel running", STR_ARG(buf_view(list)), w->time);
	if (w->kind == WINDOW_STEPS)
		x->evidence = arena_printf(&f->arena, "%.3f ms in %u step%s; the busiest device has work during %.3f ms of them", (double)w->ns / 1e6,
		                           w->n, w->n == 1 ? "" : "s", (double)busiest_ns / 1e6);
	else
		x->evidence = arena_printf(&f->arena, "%.3f ms, in which no steps were found, so that start-up may count too; the busiest device has work "
		                           "during %.3f ms of them", (double)w->ns / 1e6, (double)busiest_ns / 1e6);
	x->advice = str_from(advice_for(shared_gaps(f)));
	finding_rests_on(x, NULL, w->gpus, busiest_ns);
	x->has_share = w->ns > 0;
	x->share_pct = x->has_share ? 100.0 * (double)busiest_ns / (double)w->ns : 0;
	finding_gain(x, w, idle_ns, "the time without work on the busiest device"); /* no step can get shorter than its device work */
	finding_covers(x, &w->idle);
}

static void low_gpu_utilization_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	int64_t *kernel_ns = NEW_ARRAY(w->gpus, int64_t);
	struct buf list = {0};
	double lowest = 1;
	low_gpu_utilization_kernels(p, w, kernel_ns);
	for (unsigned i = 0; i < w->gpus; i++) {
		double u = (double)kernel_ns[i] / (double)w->ns;
		if (w->ns <= 0 || kernel_ns[i] < 0 || u >= TOO_LITTLE)
			continue;
		buf_printf(&list, "%sGPU %d %.1f %%", list.n ? ", " : "", w->gpu[i].device, u * 100);
		lowest = u < lowest ? u : lowest;
	}
	if (list.n)
		low_gpu_utilization_report(f, w, &list, lowest);
	buf_release(&list);
	mem_free(kernel_ns);
}

const struct detector detector_low_gpu_utilization = {
	.id = "low-gpu-utilization",
	.title = "The GPU is idle most of the time",
	.why = "A GPU that runs nothing for more than half of the step costs as much as a busy one.",
	.fix = "Find what the GPU waits for (the findings beside this one, `overview`), and see to that. A larger batch helps where launching is what takes long, "
	       "because each launch then brings more work.",
	.disprove = "A recording of more steps, without their start-up, shows the GPU busy; or the GPU works for another process meanwhile.",
	.symptom = SYMPTOM_IDLE,
	.report = "devices",
	.where = DETECT_WINDOW,
	.run = low_gpu_utilization_run,
};
