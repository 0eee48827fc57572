#include "detect/shared.h"

/* A gap up to this is the pace of launching: an eager op takes the host 10 to 100 us; what takes longer is something else. */
static const int64_t LONGEST_NS = 200 * 1000;
/* Percent of the steps' time in such gaps. */
static const double TOO_MUCH = 10, SEVERE = 30;
/* Gaps a step: fewer are single events, not a pace. */
enum { FEWEST = 20 };

extern const struct detector detector_launch_bound;

struct pace {
	uint64_t gaps, works;
	int64_t gap_ns, work_ns;
	int64_t most_from_ns, most_to_ns; /* the step with most time in the gaps */
};

/* Sums up the gaps of each step, one after the other in order of time. */
struct step_sum {
	const struct steps *steps;
	unsigned at;
	int64_t ns, most_ns;
};

static void step_sum_add(struct step_sum *s, struct pace *m, const struct gap *x)
{
	for (; s->at + 1 < s->steps->n && s->steps->v[s->at + 1].start_ns <= x->start_ns; s->at++)
		s->ns = 0;
	s->ns += x->end_ns - x->start_ns;
	if (s->ns <= s->most_ns)
		return;
	s->most_ns = s->ns;
	m->most_from_ns = s->steps->v[s->at].start_ns;
	m->most_to_ns = s->steps->v[s->at].end_ns;
}

static struct pace measure(const struct profile *p, const struct step_time *w, const struct gaps *g)
{
	struct pace m = {0};
	struct step_sum sum = {.steps = p->steps};
	for (uint32_t i = 0; i < g->n; i++) {
		const struct gap *x = &g->v[i];
		int64_t ns = x->end_ns - x->start_ns;
		if (ns > LONGEST_NS || x->blocked_ns || !gap_waits_for_host(x, p))
			continue;
		m.gaps++;
		m.gap_ns += ns;
		step_sum_add(&sum, &m, x);
	}
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++) {
		if (p->gpu_op.kind[i] != GPU_KERNEL || !step_time_has(w, p->gpu_op.start_ns[i]))
			continue;
		m.works++;
		m.work_ns += p->gpu_op.dur_ns[i];
	}
	return m;
}

static void report(struct findings *f, const struct step_time *w, const struct pace *m)
{
	double pct = step_time_pct(w, m->gap_ns);
	struct buf evidence = {0};
	struct finding *x = findings_add(f, &detector_launch_bound, pct >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	x->problem = arena_printf(&f->arena, "The host launches small kernels more slowly than the GPU runs them: %.1f %% of the step time passes "
	                          "between kernels, waiting for the next launch", pct);
	buf_printf(&evidence, "%.0f kernels a step run for ", (double)m->works / w->n);
	put_ns(&evidence, (double)m->work_ns / (double)m->works);
	buf_cstr(&evidence, " on average, and one comes every ");
	put_ns(&evidence, (double)w->ns / (double)m->works);
	buf_printf(&evidence, "; %.0f times a step no GPU had work for up to %.0f us before the next launch was called, ", (double)m->gaps / w->n,
	           (double)LONGEST_NS / 1e3);
	put_ns(&evidence, (double)m->gap_ns / (double)m->gaps);
	buf_cstr(&evidence, " on average");
	x->evidence = finding_text(f, &evidence);
	finding_looks_at(x, m->most_from_ns, m->most_to_ns);
	finding_rests_on(x, w, m->gaps, m->gap_ns);
	finding_gain(x, w, m->gap_ns, "all these gaps");
}

static int run(const struct profile *p, struct findings *f, struct err *e)
{
	const struct step_time *w = shared_window(f, &detector_launch_bound);
	if (!w)
		return 0;
	struct pace m = measure(p, w, shared_gaps(f));
	if (m.works && m.gaps >= (uint64_t)FEWEST * w->n && step_time_pct(w, m.gap_ns) >= TOO_MUCH)
		report(f, w, &m);
	return 0;
}

const struct detector detector_launch_bound = {
	.id = "launch-bound",
	.title = "Launching takes longer than the kernels",
	.why = "Each kernel costs the host some microseconds; kernels that are done sooner leave the GPU waiting for the next.",
	.fix = "Replay the step as a CUDA graph (torch.compile(mode=\"reduce-overhead\") or torch.cuda.graph), fuse elementwise ops with "
	       "torch.compile, or give each launch more work with a larger batch.",
	.disprove = "Without the profiler (time the steps alone) the step is shorter by about the gaps: recording makes each launch dearer.",
	.shares = "gpu-starvation",
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.run = run,
};
