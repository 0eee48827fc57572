#include "detect/parts/shared.h"

/* Percent of the steps' time in which the GPU has no work while the profiler itself runs: more distorts every figure about waiting. */
static const double TOO_MUCH = 2, SEVERE = 10;
/* Python calls a profiling hook at each call and return; both together take at least this time, whatever the machine. */
static const int64_t FRAME_NS = 250;
/* Percent of the time in which the host keeps the GPU waiting that the hooks would take. */
static const double FRAMES_TOO_MUCH = 10;

static void report_overhead(const struct profile *p, struct findings *f, const struct step_time *w, const struct gaps *g)
{
	double pct = step_time_pct(w, g->ns[GAP_PROFILER]);
	struct buf evidence = {0};
	struct finding *x = findings_add(f, pct >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	x->problem = arena_printf(&f->arena, "The GPU has no work for %.1f %% of the %s because the profiler itself runs", pct, w->time);
	buf_printf(&evidence, "%s: ", w->per);
	finding_evidence(x, f, &evidence, &g->place[GAP_PROFILER], 3, w->n, false);
	if (!str_eqc(p->format, "kineto"))
		x->advice = STR("Believe times on the GPU, not the gaps between them; record again with fewer kinds of events, without backtraces, and few steps at a time.");
	finding_rests_on(x, w, g->place[GAP_PROFILER].events, g->ns[GAP_PROFILER]);
	finding_gain(x, w, g->ns[GAP_PROFILER], "idle time in the profiler's own ranges; it is gained by not recording");
}

static uint64_t count_frames(const struct profile *p, const struct step_time *w)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		n += p->span.kind[i] == SPAN_PYTHON && !span_is_replay(p, i) && step_time_has(w, p->span.start_ns[i]);
	return n;
}

static void report_frames(struct findings *f, const struct step_time *w, uint64_t frames, int64_t starved)
{
	struct finding *x = findings_add(f, FINDING_INFO);
	x->problem = arena_printf(&f->arena, "Recording stacks makes this run slower: part of the %.1f %% of the %s in which the GPU waits for the "
	                          "host is the profiler's", step_time_pct(w, starved), w->time);
	x->evidence = arena_printf(&f->arena, "%.0f calls of Python functions%s were recorded. Their cost is not recorded; at no less than "
	                           "%.2f us each it is %.3f ms of the %.3f ms%s that the GPU waits for the host", (double)frames / w->n, w->a_step,
	                           (double)FRAME_NS / 1e3, (double)frames * (double)FRAME_NS / w->n / 1e6, (double)starved / w->n / 1e6, w->a_step);
	x->has_events = true;
	x->events = frames;
}

static void profiler_overhead_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	const struct gaps *g = shared_gaps(f);
	int64_t starved = w->idle_ns - g->ns[GAP_LATENCY];
	if (step_time_pct(w, g->ns[GAP_PROFILER]) >= TOO_MUCH)
		report_overhead(p, f, w, g);
	uint64_t frames = count_frames(p, w);
	if (step_time_pct(w, starved) >= FRAMES_TOO_MUCH && 100.0 * (double)frames * (double)FRAME_NS >= FRAMES_TOO_MUCH * (double)starved)
		report_frames(f, w, frames, starved);
}

const struct detector detector_profiler_overhead = {
	.id = "profiler-overhead",
	.title = "The profiler distorts what it measures",
	.why = "What the profiler adds on the host makes gaps on the GPU that the run does not have without it.",
	.fix = "Believe times on the GPU, not the gaps between them; record again without with_stack, record_shapes and profile_memory, and few steps "
	       "at a time.",
	.disprove = "A recording without stacks, shapes and memory has steps of the same length.",
	.shares = "gpu-starvation",
	.report = "api",
	.where = DETECT_WINDOW,
	.run = profiler_overhead_run,
};
