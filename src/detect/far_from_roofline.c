/* The op whose kernels lose most time above the least that the GPU's peaks allow. What a kernel achieves is its least time / its time.
 *
 * A kernel is judged only where the least time says something of it: the op's model is known, the kernel runs alone, is long enough for a peak to rule it, and has blocks for the whole
 * GPU. The least time is that on the cores that the kernel used, since no-tensor-cores and tf32-off tell of other cores. Where bytes depend on values in tensors (which experts tokens
 * choose), a kernel is judged by the likely ones, and what it could gain is bounded by the fewest. */
#include "analysis/names/names.h"
#include "analysis/time/bounds.h"
#include "detect/parts/gpu_most.h"
#include "detect/parts/kernel_grids.h"
#include "op/kernels.h"

#include <math.h>

static const double
	FAR_OF_MEMORY = 0.6,   /* share of the least time, where memory rules it: kernels that stream reach nine tenths */
	FAR_OF_COMPUTE = 0.4,  /* the same of arithmetic: large products reach two thirds of a published peak */
	LEAST = 5,             /* percent of the steps' time that the kernels of an op lose: less is not told */
	SEVERE = 20;           /* percent, from which the finding is of medium severity */
enum { PLACES_TOLD = 2, OTHERS_TOLD = 3 };
/* A shorter kernel, or one that its bytes and FLOPs would keep busy for less, is ruled by how long it takes to start and end. */
static const double SHORTEST_NS = 10000, LEAST_BOUND_NS = 5000;

/* Kernels for ops of one name that the same peak bounds: of one name, or all those that are far from their bound. */
struct far_group {
	uint32_t op;             /* string id */
	bool is_memory;          /* memory bounds them */
	uint64_t n;
	int64_t ns;
	double least_ns;         /* as judged: by the bytes that are likely */
	bool inexact;
	uint32_t first;          /* the first of its kernels */
	uint32_t told;           /* of kernels of one name: their op in `ops`; ROW_NONE = they are not far */
};

struct far_groups {
	struct intern keys;
	struct far_group *v;
	uint32_t n, cap;
};

struct far_from_roofline {
	const struct profile *p;
	const struct costs *costs;
	struct bounds *bounds;
	struct far_groups kernels, ops;
	uint32_t *of;            /* by row of gpu_op: its group in `kernels`; ROW_NONE */
	bool no_gpu;             /* the peaks of a GPU with work are not known */
};

/* Classes whose models say what any kernel for them has to move and compute. Sorts, sums along a dimension and their like may need several passes. */
static bool far_is_judged(enum op_class class)
{
	return class == OP_GEMM || class == OP_CONV || class == OP_ATTENTION || class == OP_ELEMENTWISE || class == OP_COPY;
}

/* The bound by which kernel `g` is judged; least_ns NaN = it is not judged. */
static struct bound far_bound(struct far_from_roofline *x, struct findings *f, uint32_t g)
{
	static const struct bound none = {.least_ns = NAN};
	const struct profile *p = x->p;
	const uint32_t of = x->costs->of_gpu[g];
	if (p->gpu_op.kind[g] != GPU_KERNEL || of == ROW_NONE || !x->costs->parts[g] || (double)p->gpu_op.dur_ns[g] < SHORTEST_NS || kernel_waits(p, p->gpu_op.name[g]))
		return none;
	const struct cost *c = &x->costs->cost[of];
	int64_t flops = costs_flops(x->costs, g);
	if (!far_is_judged(c->class) || flops < 0 || costs_bytes(x->costs, g) < 0 || shared_beside(f)[g] || bounds_is_small(p, g))
		return none;
	if (c->causal)
		flops = c->flops > 0 && c->flops_causal >= 0 ? (int64_t)((double)flops * ((double)c->flops_causal / (double)c->flops)) : 0;
	const struct bound b = bounds_of(x->bounds, c, flops, costs_bytes(x->costs, g), g, BOUND_AS_RUN);
	x->no_gpu |= !b.gpu;
	return b.least_ns >= LEAST_BOUND_NS ? b : none;
}

static struct far_group *far_group_of(struct far_groups *x, const uint32_t key[3], uint32_t first)
{
	const uint32_t before = x->keys.n, at = intern_put(&x->keys, (const char *)key, 3 * sizeof *key) - 1;
	if (x->keys.n > before)
		MEM_PUSH(x->v, x->n, x->cap, ((struct far_group){.op = key[0], .is_memory = key[1], .first = first, .told = ROW_NONE}));
	return &x->v[at];
}

static void far_add(struct far_from_roofline *x, uint32_t g, const struct bound *b)
{
	const struct profile *p = x->p;
	const uint32_t op = x->costs->op[g], of = x->costs->of_gpu[g];
	const uint32_t key[] = {op == ROW_NONE ? 0 : p->span.name[op], b->memory_ns >= b->compute_ns, p->gpu_op.name[g]};
	struct far_group *v = far_group_of(&x->kernels, key, g);
	x->of[g] = (uint32_t)(v - x->kernels.v);
	v->n++;
	v->ns += p->gpu_op.dur_ns[g];
	v->least_ns += b->least_ns;
	v->inexact |= x->costs->cost[of].bytes != x->costs->cost[of].bytes_least;
}

static double far_achieved(const struct far_group *v) { return v->least_ns / (double)v->ns; }

static double far_lost_ns(const struct far_group *v) { return (double)v->ns - v->least_ns; }

static void far_sum_ops(struct far_from_roofline *x)
{
	for (uint32_t i = 0; i < x->kernels.n; i++) {
		struct far_group *k = &x->kernels.v[i];
		if (far_achieved(k) >= (k->is_memory ? FAR_OF_MEMORY : FAR_OF_COMPUTE))
			continue;
		struct far_group *v = far_group_of(&x->ops, (const uint32_t[]){k->op, k->is_memory, 0}, k->first);
		k->told = (uint32_t)(v - x->ops.v);
		v->n += k->n;
		v->ns += k->ns;
		v->least_ns += k->least_ns;
		v->inexact |= k->inexact;
	}
}

/* The op that loses most; NULL = none is far from its bound. */
static const struct far_group *far_most(const struct far_from_roofline *x)
{
	const struct far_group *most = NULL;
	for (uint32_t i = 0; i < x->ops.n; i++)
		if (!most || far_lost_ns(&x->ops.v[i]) > far_lost_ns(most))
			most = &x->ops.v[i];
	return most;
}

static bool far_is_of(const struct far_from_roofline *x, const struct far_group *op, uint32_t g)
{
	return x->of[g] != ROW_NONE && x->kernels.v[x->of[g]].told == (uint32_t)(op - x->ops.v);
}

static struct str far_op(const struct profile *p, const struct far_group *v)
{
	return v->op ? profile_str(p, v->op) : STR("kernels");
}

static const char *far_bound_name(const struct far_group *v) { return v->is_memory ? "memory bandwidth" : "arithmetic"; }

/* Others that are far from their bounds and lose as much time as would be told. */
static void far_put_others(const struct far_from_roofline *x, struct findings *f, const struct step_time *w, const struct far_group *told, struct finding *found)
{
	struct buf b = {0};
	unsigned n = 0;
	buf_str(&b, found->evidence);
	for (uint32_t i = 0; i < x->ops.n && n < OTHERS_TOLD; i++) {
		const struct far_group *v = &x->ops.v[i];
		if (v == told || step_time_pct(w, (int64_t)far_lost_ns(v)) < LEAST)
			continue;
		buf_printf(&b, "%s" STR_FMT " (%.0f %% of its %s, ", n++ ? ", " : ". Also far: ", STR_ARG(far_op(x->p, v)), 100 * far_achieved(v), far_bound_name(v));
		put_ns(&b, (double)v->ns / w->n);
		buf_char(&b, ')');
	}
	found->evidence = finding_text(f, &b);
}

static void far_report(struct far_from_roofline *x, struct findings *f, const struct step_time *w, const struct far_group *v, const struct gpu_most *most)
{
	const struct profile *p = x->p;
	const struct gpu *gpu = bounds_gpu(x->bounds, v->first);
	const double pct = step_time_pct(w, v->inexact && far_lost_ns(v) < (double)most->ns ? (int64_t)far_lost_ns(v) : most->ns);
	struct finding *found = findings_add(f, v->inexact ? FINDING_INFO : pct >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	struct buf b = {0};
	struct places places = {0};
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		if (far_is_of(x, v, g))
			places_add(&places, shared_stacks(f), kernel_function_name(profile_str(p, p->gpu_op.name[g])), x->costs->op[g], 1, p->gpu_op.dur_ns[g]);
	found->problem = arena_printf(&f->arena, STR_FMT " runs at %.0f %% of what the GPU's %s allows: %.1f %% of the %s is beyond that", STR_ARG(far_op(p, v)), 100 * far_achieved(v), far_bound_name(v), pct, w->time);
	buf_printf(&b, "At the published peaks of %s its work takes %.3f ms of the %.3f ms", gpu->name, v->least_ns / 1e6 / w->n, (double)v->ns / 1e6 / w->n);
	if (w->gpus > 1)
		buf_printf(&b, " of %u GPUs", w->gpus);
	buf_printf(&b, "%s%s. %s: ", w->a_step, v->inexact ? ", were the experts chosen evenly: which ones tokens choose is not recorded" : "", w->per);
	finding_evidence(found, f, &b, &places, PLACES_TOLD, w->n, true);
	far_put_others(x, f, w, v, found);
	finding_looks_at_most(found, p, &places);
	finding_share(found, v->n, v->ns, pct);
	finding_gains_most(found, f, w, most, "time of these kernels above what their FLOPs and least bytes take at the GPU's published peaks; kernels that exist reach some 90 % of the "
	                   "bandwidth, and two thirds of the arithmetic");
	places_release(&places);
}

static void far_measure(struct far_from_roofline *x, struct findings *f, const struct step_time *w)
{
	for (uint32_t g = 0; g < x->p->gpu_op.rows.n; g++) {
		x->of[g] = ROW_NONE;
		if (!step_time_has(w, x->p->gpu_op.start_ns[g]))
			continue;
		const struct bound b = far_bound(x, f, g);
		if (!isnan(b.least_ns))
			far_add(x, g, &b);
	}
}

static void far_groups_release(struct far_groups *x)
{
	intern_release(&x->keys);
	mem_free(x->v);
}

static void far_from_roofline_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	struct far_from_roofline x = {.p = p, .costs = shared_costs(f), .bounds = bounds_new(p), .of = NEW_ARRAY_RAW(p->gpu_op.rows.n, uint32_t)};
	struct gpu_most most;
	intern_init(&x.kernels.keys);
	intern_init(&x.ops.keys);
	gpu_most_init(&most, p);
	far_measure(&x, f, w);
	far_sum_ops(&x);
	const struct far_group *v = far_most(&x);
	for (uint32_t g = 0; v && g < p->gpu_op.rows.n; g++)
		if (far_is_of(&x, v, g))
			gpu_most_add(&most, p, g, bounds_above_ns(p->gpu_op.dur_ns[g], bounds_least_ns(x.bounds, x.costs, g)));
	gpu_most_choose(&most, w);
	if (v && step_time_pct(w, most.ns) >= LEAST)
		far_report(&x, f, w, v, &most);
	else if (!x.kernels.n && x.no_gpu)
		findings_missing(f, "the input does not say what the GPUs are, or their peaks are not known here");
	gpu_most_release(&most);
	far_groups_release(&x.kernels);
	far_groups_release(&x.ops);
	bounds_free(x.bounds);
	mem_free(x.of);
}

const struct detector detector_far_from_roofline = {
	.id = "far-from-roofline",
	.title = "A kernel is far from what the GPU can do",
	.why = "What an op has to read, write and compute takes a least time at the GPU's peaks. A kernel that takes twice that leaves half of the GPU unused, also where the GPU is never idle.",
	.fix = "Look for another kernel for the op: a newer library, another backend (torch.backends.cuda, the server's option), torch.compile with max-autotune, a tuned configuration for this GPU "
	       "and these sizes (vLLM and SGLang take files of them for mixtures of experts). A larger batch uses what is read more often.",
	.disprove = "Nsight Compute shows that the kernel moves or computes more than its op has to, or that the GPU ran below its clocks: then the peaks are not those of this run.",
	.shares = "few-blocks wave-quantisation low-occupancy unaligned-gemm unfused-elementwise unfused-attention dtype-conversions no-tensor-cores tf32-off many-small-gemms device-copies conv-bias recomputation "
	          "launch-bound gpu-starvation unfused-optimizer cudnn-benchmark throttling",
	.report = "roofline",
	.where = DETECT_WINDOW,
	.run = far_from_roofline_run,
};
