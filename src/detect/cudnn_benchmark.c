#include "analysis/names/names.h"
#include "analysis/time/bounds.h"
#include "base/search.h"
#include "detect/parts/shared.h"
#include "op/model_config.h"

/* Percent of the kernel time in convolutions: less is not worth a search. */
static const double WORTH = 5;
/* Kernels of products and convolutions with different names that one call of a convolution launches: an algorithm has up to four, in the backward
 * pass twice (two gradients). More is a search through the algorithms. */
enum { SEARCH = 10, PLACES_TOLD = 2 };
/* Percent of the steps' time in calls that search. */
static const double TOO_MUCH = 2;

/* Kernels, and the time that they take above their least time (analysis/time/bounds.h); all of their time where the least is unknown. */
struct above {
	struct intervals when;
	int64_t ns, above_ns;
	bool known, unknown;     /* the least time of some kernels is known; that of some is not */
};

struct cudnn_benchmark_measured {
	struct bounds *bounds;
	int64_t kernel_ns;
	uint64_t convs;
	struct above conv, search; /* kernels of convolutions; kernels of calls that search */
	struct places searches;
};

/* The kernels of one call of a convolution, counted by distinct names. */
struct cudnn_benchmark_call {
	uint32_t op, names[SEARCH];
	unsigned n;
	struct above sum;
};

static bool has_name(const struct cudnn_benchmark_call *c, uint32_t name)
{
	return ANY_WHERE(i, 0, c->n, c->names[i] == name);
}

static void above_add(struct above *x, const struct profile *p, uint32_t g, double least)
{
	int64_t ns = p->gpu_op.dur_ns[g];
	x->ns += ns;
	x->above_ns += bounds_above_ns(ns, least);
	x->known |= least > 0;
	x->unknown |= isnan(least);
	intervals_add(&x->when, p->gpu_op.start_ns[g], gpu_end(p, g));
}

static void above_join(struct above *to, const struct above *x)
{
	to->ns += x->ns;
	to->above_ns += x->above_ns;
	to->known |= x->known;
	to->unknown |= x->unknown;
	for (size_t i = 0; i < x->when.n; i++)
		intervals_add(&to->when, x->when.v[i].start, x->when.v[i].end);
}

/* Device work is sorted by stream and start: the kernels of a call on one stream stand together. */
static void end_call(const struct profile *p, struct findings *f, struct cudnn_benchmark_measured *m, struct cudnn_benchmark_call *c)
{
	if (c->op != ROW_NONE && c->n >= SEARCH) {
		places_add(&m->searches, shared_stacks(f), profile_str(p, p->span.name[c->op]), c->op, 1, c->sum.ns);
		above_join(&m->search, &c->sum);
	}
	intervals_release(&c->sum.when);
	*c = (struct cudnn_benchmark_call){.op = ROW_NONE};
}

static void cudnn_benchmark_measure(const struct profile *p, struct findings *f, const struct step_time *w, struct cudnn_benchmark_measured *m)
{
	const struct costs *costs = shared_costs(f);
	struct cudnn_benchmark_call call = {.op = ROW_NONE};
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t op = costs->op[g];
		if (p->gpu_op.kind[g] != GPU_KERNEL || (w->n && !step_time_has(w, p->gpu_op.start_ns[g])))
			continue;
		m->kernel_ns += p->gpu_op.dur_ns[g];
		if (op == ROW_NONE || !str_has(profile_str(p, p->span.name[op]), STR("conv")))
			continue;
		m->convs++;
		if (op != call.op)
			end_call(p, f, m, &call);
		enum kernel_class k = gpu_kernel(p, g)->class;
		call.op = op;
		double least = bounds_least_ns(m->bounds, costs, g);
		above_add(&m->conv, p, g, least);
		above_add(&call.sum, p, g, least);
		if ((k == KERNEL_CONV || k == KERNEL_GEMM) && call.n < SEARCH && !has_name(&call, p->gpu_op.name[g]))
			call.names[call.n++] = p->gpu_op.name[g];
	}
	end_call(p, f, m, &call);
}

/* `what` of the kernels, and how it was bounded. */
static void gain(struct findings *f, struct finding *x, const struct step_time *w, struct above *m, const char *what)
{
	finding_covers_work(x, w, &m->when);
	const char *how = !m->known  ? "; not reduced, since the least time of these kernels is not known"
	                : m->unknown ? " less the least time that the GPU's peaks allow, where that is known"
	                             : " less the least time that the GPU's peaks allow";
	finding_gain(x, w, m->above_ns, arena_printf(&f->arena, "%s%s", what, how).p);
}

static void report_off(struct findings *f, const struct step_time *w, struct cudnn_benchmark_measured *m)
{
	double pct = 100.0 * (double)m->conv.ns / (double)m->kernel_ns;
	struct finding *x = findings_add(f, FINDING_LOW);
	x->problem = arena_printf(&f->arena, "Convolutions take %.0f %% of the kernel time, and torch.backends.cudnn.benchmark was off", pct);
	x->evidence = arena_printf(&f->arena, "Recorded marker: cudnn_benchmark_disabled; %llu kernels of convolutions, %.3f ms of %.3f ms",
	                           (unsigned long long)m->convs, (double)m->conv.ns / 1e6, (double)m->kernel_ns / 1e6);
	finding_share(x, m->convs, m->conv.ns, pct);
	gain(f, x, w, &m->conv, "kernel time of convolutions");
}

static void report_search(const struct profile *p, struct findings *f, const struct step_time *w, struct cudnn_benchmark_measured *m)
{
	struct buf evidence = {0};
	struct finding *x = findings_add(f, FINDING_MEDIUM);
	x->problem = arena_printf(&f->arena, "cuDNN searches for convolution algorithms: %.1f %% of the %s", step_time_pct(w, m->searches.ns), w->time);
	buf_printf(&evidence, "Calls that each launch %d or more different kernels of convolutions or products. %s: ", SEARCH, w->per);
	finding_evidence(x, f, &evidence, &m->searches, PLACES_TOLD, w->n, true);
	x->advice = STR("Keep the shapes of the inputs fixed (pad them to a few sizes), so that each is searched for once, before the steps that matter; "
	                "or set torch.backends.cudnn.benchmark = False.");
	finding_looks_at_most(x, p, &m->searches);
	finding_rests_on(x, w, m->searches.events, m->searches.ns);
	gain(f, x, w, &m->search, "device time of these calls");
}

static void cudnn_benchmark_run(const struct profile *p, struct findings *f)
{
	struct cudnn_benchmark_measured m = {0};
	const struct step_time *w = shared_steps(f);
	bool off = model_config_is(p, "cudnn_benchmark_disabled");
	m.bounds = bounds_new(p);
	cudnn_benchmark_measure(p, f, w, &m);
	if (w->n && step_time_pct(w, m.searches.ns) >= TOO_MUCH)
		report_search(p, f, w, &m);
	else if (off && m.convs && 100.0 * (double)m.conv.ns >= WORTH * (double)m.kernel_ns)
		report_off(f, w, &m);
	else if (!off && m.convs && !model_config_any(p))
		findings_missing_aside(f, "the input does not tell whether torch.backends.cudnn.benchmark is on", model_config_how);
	intervals_release(&m.conv.when);
	intervals_release(&m.search.when);
	bounds_free(m.bounds);
	places_release(&m.searches);
}

const struct detector detector_cudnn_benchmark = {
	.id = "cudnn-benchmark",
	.title = "cuDNN's choice of algorithms",
	.why = "With benchmark on, cuDNN tries the algorithms of each new shape once and takes the fastest; off, it takes a guess; with ever new shapes, "
	       "it searches all the time.",
	.fix = "Set torch.backends.cudnn.benchmark = True where the shapes of the inputs stay the same.",
	.disprove = "With the setting changed the same kernels run, or the step is no shorter.",
	.shares = "no-tensor-cores tf32-off",
	.report = "conv",
	.where = DETECT_DEVICE_WORK,
	.run = cudnn_benchmark_run,
};
