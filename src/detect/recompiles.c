#include "detect/parts/compiled.h"
#include "detect/parts/compiler_runs.h"

/* Percent of the steps' time that the compiler costs. */
static const double TOO_MUCH = 2, SEVERE = 25;
enum { PLACES_TOLD = 3, STEPS_TOLD = 4 };

struct compiles {
	struct places places;    /* by frame */
	struct inside_cost cost;
	uint64_t n;              /* runs of the compiler */
	int64_t ns;              /* of the host, in them */
	uint32_t *steps;         /* runs by step */
	uint64_t calls, again;   /* of compiled frames in the steps; of these, of code that was compiled again */
	struct str latest;       /* the name of one of these frames */
};

static void add_step(const struct profile *p, const struct step_time *w, int64_t at_ns, struct compiles *m)
{
	for (unsigned s = 0; s < p->steps->n && w->kind == WINDOW_STEPS; s++)
		if (at_ns < p->steps->v[s].host_end_ns) {
			m->steps[s] += at_ns >= p->steps->v[s].host_start_ns;
			return;
		}
}

static void recompiles_measure(const struct profile *p, struct findings *f, const struct step_time *w, const uint8_t *mark, struct compiles *m)
{
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		struct str name = profile_str(p, p->span.name[i]);
		if (!step_time_has(w, p->span.start_ns[i]) || p->span.kind[i] == SPAN_GPU_USER)
			continue;
		if (compiled_is_frame(name)) {
			m->calls++;
			m->again += compiled_is_again(name);
			m->latest = compiled_is_again(name) ? name : m->latest;
		}
		if (!compiler_run_starts(p, mark, i))
			continue;
		struct buf frame = {0};
		compiler_run_put_frame(p, i, &frame);
		m->n++;
		m->ns += p->span.dur_ns[i];
		places_add(&m->places, shared_stacks(f), buf_view(&frame), i, 1, p->span.dur_ns[i]);
		buf_release(&frame);
		add_step(p, w, p->span.start_ns[i], m);
	}
	m->cost = inside_cost_of(p, w, mark, 1);
}

/* " in steps 3, 5 and 2 more". */
static void recompiles_put_steps(const struct profile *p, const struct step_time *w, const struct compiles *m, struct buf *b)
{
	unsigned n = 0, told = 0;
	for (unsigned s = 0; s < p->steps->n && w->kind == WINDOW_STEPS; s++)
		n += m->steps[s] > 0;
	if (!n)
		return;
	buf_printf(b, " in step%s ", n == 1 ? "" : "s");
	for (unsigned s = 0; s < p->steps->n && told < STEPS_TOLD; s++)
		if (m->steps[s])
			buf_printf(b, "%s%lld", told++ ? ", " : "", (long long)p->steps->v[s].number);
	if (n > told)
		buf_printf(b, " and %u more", n - told);
}

static void recompiles_report(const struct profile *p, struct findings *f, const struct step_time *w, const struct compiles *m)
{
	int64_t ns = intervals_length(&m->cost.when);
	double pct = step_time_pct(w, ns);
	struct buf b = {0};
	struct finding *x = findings_add(f, pct >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	x->problem = arena_printf(&f->arena, "torch.compile compiles within the %s: %.1f %% of the %s", w->kind == WINDOW_STEPS ? "steps" : "time looked at", pct, w->time);
	buf_printf(&b, "Its compiler runs %llu time%s", (unsigned long long)m->n, m->n == 1 ? "" : "s");
	recompiles_put_steps(p, w, m, &b);
	buf_cstr(&b, " and takes ");
	put_ns(&b, (double)m->ns);
	buf_cstr(&b, " of the host. ");
	put_lead(w, &b);
	buf_cstr(&b, " has no work for ");
	put_ns(&b, (double)m->cost.idle_ns);
	buf_cstr(&b, " of that: ");
	places_text(&m->places, PLACES_TOLD, 1, true, &b);
	if (m->again)
		buf_printf(&b, "; %llu of %llu calls of compiled frames %s code that was compiled again for other inputs (" STR_FMT ")",
		           (unsigned long long)m->again, (unsigned long long)m->calls, m->again == 1 ? "runs" : "run", STR_ARG(m->latest));
	x->evidence = finding_text(f, &b);
	finding_looks_at_most(x, p, &m->places);
	finding_measured(x, w, m->n, ns, &m->cost.when,
	                 "time without device work while the compiler runs, and device time of what it launches to compare kernels");
}

static void recompiles_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	struct compiles m = {0};
	uint8_t *mark = compiler_runs_new(p);
	m.steps = NEW_ARRAY(p->steps->n + 1, uint32_t);
	recompiles_measure(p, f, w, mark, &m);
	if (m.n && step_time_pct(w, intervals_length(&m.cost.when)) >= TOO_MUCH)
		recompiles_report(p, f, w, &m);
	inside_cost_release(&m.cost);
	places_release(&m.places);
	mem_free(m.steps);
	mem_free(mark);
}

const struct detector detector_recompiles = {
	.id = "recompiles",
	.title = "torch.compile compiles while the steps run",
	.why = "Code is compiled when it is called first, and again for inputs that its guards refuse (another shape, type or Python value): for seconds, in which "
	       "nothing is launched.",
	.fix = "Compile before the steps: run each shape once; mark sizes that change (torch._dynamo.mark_dynamic, dynamic=True) or pad them to a few. "
	       "TORCH_LOGS=recompiles names the guard that failed.",
	.disprove = "Later steps of a longer recording hold no compilation: then these are the first calls, and nothing is lost in steady work.",
	.shares = "gpu-starvation launch-bound low-gpu-utilization profiler-overhead graph-breaks",
	.report = "compile",
	.where = DETECT_WINDOW,
	.run = recompiles_run,
};
