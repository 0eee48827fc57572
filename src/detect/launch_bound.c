#include "analysis/names/names.h"
#include "base/search.h"
#include "detect/parts/shared.h"

/* A gap up to this is the pace of launching: an eager op takes the host 10 to 100 us; what takes longer is something else. */
static const int64_t LONGEST_NS = 200 * 1000;
/* Percent of the steps' time in such gaps. */
static const double TOO_MUCH = 10, SEVERE = 30;
/* Between kernels that are queued lie some microseconds. */
static const int64_t QUEUED_NS = 8 * 1000;
/* Gaps a step: fewer are single events, not a pace. Kernels in a row from the queue: fewer say nothing. */
enum { FEWEST = 20, QUEUE_LEAST = 10 };

struct pace {
	uint64_t gaps, works, unknown; /* unknown: gaps whose next launch was not recorded */
	int64_t gap_ns, work_ns;
	int64_t called_ns;             /* the part of gap_ns behind the call of the next launch, which gpu-starvation leaves out */
	int64_t most_from_ns, most_to_ns; /* the step with most time in the gaps */
	struct intervals when;
	bool collectives;              /* there are some, which are not in works */
	uint64_t queued;               /* the longest row of kernels of a stream before the next such gap */
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

/* A gap that the pace of launching makes: the host had not yet called, and was busy with other things than waiting. Where the call is not recorded
 * (Triton's, by some recorders), a gap longer than any between kernels that are queued is taken for one. */
static bool is_pace(const struct profile *p, const struct gap *x)
{
	int64_t ns = x->end_ns - x->start_ns;
	if (ns > LONGEST_NS || x->blocked_ns || x->gpu == ROW_NONE)
		return false;
	return x->call != ROW_NONE ? gap_waits_for_host(x, p) : ns >= QUEUED_NS && p->gpu_op.kind[x->gpu] == GPU_KERNEL;
}

/* Whether a gap of the pace of launching ends when this kernel starts. */
static bool ends_pace(const struct profile *p, const struct gaps *g, int64_t start)
{
	uint32_t a = FIRST_WHERE(i, 0, g->n, g->v[i].end_ns >= start);
	return a < g->n && g->v[a].end_ns == start && is_pace(p, &g->v[a]);
}

static bool launch_bound_counts(const struct profile *p, const struct step_time *w, uint32_t g)
{
	return p->gpu_op.kind[g] == GPU_KERNEL && p->launch.device[p->gpu_op.launch[g]] == w->gpu[w->lead].device && step_time_has(w, p->gpu_op.start_ns[g]);
}

/* How long a queue of launches lasts: kernels of each stream in order of time. */
static void find_queue(const struct profile *p, const struct step_time *w, const struct gaps *g, struct pace *m)
{
	uint64_t row = 0;
	uint32_t track = ROW_NONE;
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++) {
		if (!launch_bound_counts(p, w, i))
			continue;
		bool dry = ends_pace(p, g, p->gpu_op.start_ns[i]);
		row = track == p->gpu_op.track[i] ? row : 0;
		track = p->gpu_op.track[i];
		m->queued = dry && row > m->queued ? row : m->queued;
		row = dry ? 1 : row + 1;
	}
}

static struct pace launch_bound_measure(const struct profile *p, struct findings *f, const struct step_time *w, const struct gaps *g)
{
	struct pace m = {0};
	struct step_sum sum = {.steps = p->steps};
	for (uint32_t i = 0; i < g->n; i++) {
		const struct gap *x = &g->v[i];
		if (!is_pace(p, x))
			continue;
		m.gaps++;
		m.unknown += x->call == ROW_NONE;
		m.gap_ns += x->end_ns - x->start_ns;
		m.called_ns += x->end_ns - gap_host_until(x, p);
		intervals_add(&m.when, x->start_ns, x->end_ns);
		step_sum_add(&sum, &m, x);
	}
	intervals_normalise(&m.when);
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++) {
		if (!launch_bound_counts(p, w, i))
			continue;
		if (gpu_kernel(p, i)->class == KERNEL_COMM) { /* lasts as long as the slowest rank takes */
			m.collectives = true;
			continue;
		}
		m.works++;
		m.work_ns += p->gpu_op.dur_ns[i];
	}
	return m;
}

static void launch_bound_report(struct findings *f, const struct step_time *w, const struct pace *m)
{
	double pct = step_time_pct(w, m->gap_ns);
	const char *each = w->kind == WINDOW_STEPS ? " a step" : "";
	struct buf evidence = {0};
	struct finding *x = findings_add(f, pct >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	x->problem = arena_printf(&f->arena, "The host launches small kernels more slowly than the GPU runs them: %.1f %% of the %s passes "
	                          "between kernels, waiting for the next launch and its start", pct, w->time);
	buf_printf(&evidence, "%.0f kernels%s%s run for ", (double)m->works / w->n, each, m->collectives ? ", without collectives," : "");
	put_ns(&evidence, (double)m->work_ns / (double)m->works);
	buf_cstr(&evidence, " on average, and one comes every ");
	put_ns(&evidence, (double)w->ns / (double)m->works);
	buf_printf(&evidence, "; %.0f times%s the GPU had no work, for at most %.0f us, because the next launch had not been called yet: ", (double)m->gaps / w->n, each,
	           (double)LONGEST_NS / 1e3);
	put_ns(&evidence, (double)m->gap_ns / (double)m->gaps);
	buf_cstr(&evidence, " on average until its work began");
	if (m->called_ns > 0) {
		buf_cstr(&evidence, ", of it ");
		put_ns(&evidence, (double)m->called_ns / (double)m->gaps);
		buf_cstr(&evidence, " from the call on, which gpu-starvation does not count");
	}
	if (m->unknown)
		buf_printf(&evidence, "; of %llu of these launches the call was not recorded", (unsigned long long)m->unknown);
	if (w->n == 1 && m->queued >= QUEUE_LEAST)
		buf_printf(&evidence, "; the queue of launches lasts for %llu kernels in a row at most, and then it is empty", (unsigned long long)m->queued);
	x->evidence = finding_text(f, &evidence);
	finding_looks_at(x, m->most_from_ns, m->most_to_ns);
	finding_measured(x, w, m->gaps, m->gap_ns, &m->when, "all these gaps");
}

static void launch_bound_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	struct pace m = launch_bound_measure(p, f, w, shared_gaps(f));
	if (m.works && m.gaps >= (uint64_t)FEWEST * w->n && step_time_pct(w, m.gap_ns) >= TOO_MUCH) {
		find_queue(p, w, shared_gaps(f), &m);
		launch_bound_report(f, w, &m);
	}
	intervals_release(&m.when);
}

const struct detector detector_launch_bound = {
	.id = "launch-bound",
	.title = "Launching takes longer than the kernels",
	.why = "Each kernel costs the host some microseconds; kernels that are done sooner leave the GPU waiting for the next.",
	.fix = "Replay the step as a CUDA graph (torch.compile(mode=\"reduce-overhead\") or torch.cuda.graph), fuse elementwise ops with "
	       "torch.compile, or give each launch more work with a larger batch.",
	.disprove = "Without the profiler (time the steps alone) the step is shorter by about the gaps: recording makes each launch dearer.",
	.symptom = SYMPTOM_PACE,
	.shares = "gpu-starvation",
	.where = DETECT_WINDOW,
	.run = launch_bound_run,
};
