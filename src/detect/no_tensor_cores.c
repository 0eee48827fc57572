#include "analysis/costs/tc_use.h"
#include "analysis/costs/tc_used.h"
#include "analysis/names/names.h"
#include "analysis/steps/steps.h"
#include "analysis/time/bounds.h"
#include "base/search.h"
#include "detect/parts/gpu_most.h"
#include "gpu/gpu_state.h"

/* Kernel time of ops, the part that Tensor Cores could do, and the part that they do. */
struct no_tensor_cores_measured {
	int64_t all_ns, eligible_ns, tc_ns, unknown_ns;
	struct gpu_most most;    /* the part of eligible_ns that can be saved at most; 0 = not known */
	uint64_t kernels;        /* eligible ones */
};

/* The GPU that the advice is for. */
struct target {
	struct str name;
	int types;               /* gpu_tensor_types */
	bool amd;
	const struct gpu *peaks; /* NULL = not known, or the devices differ */
};

static bool no_tensor_cores_has_work(const struct profile *p, uint32_t row)
{
	return ANY_WHERE(i, 0, p->launch.rows.n,
	                 p->launch.device[i] == p->device.id[row] || (p->device_joined && profile_device_row(p, p->launch.device[i]) == row));
}

/* The least able device among those with work; types -1 = the input describes none of them. */
static struct target find_target(const struct profile *p)
{
	struct target t = {.types = -1};
	bool differ = false;
	for (uint32_t i = 0; i < p->device.rows.n; i++) {
		struct str name = profile_str(p, p->device.name[i]);
		int types = gpu_tensor_types(name, p->device.cc_major[i], p->device.cc_minor[i], p->device.warp_size[i]);
		if (types < 0 || !no_tensor_cores_has_work(p, i))
			continue;
		differ |= t.types >= 0 && !str_eq(name, t.name);
		if (t.types < 0 || types < t.types)
			t = (struct target){name, types, gpu_is_amd(name, p->device.warp_size[i]), gpu_of_device(p, i)};
	}
	if (differ)
		t.peaks = NULL;
	return t;
}

static bool can(const struct target *t, enum gpu_dtype type)
{
	return t->types & 1 << type;
}

static struct str no_tensor_cores_advice(const struct target *t, struct arena *a)
{
	struct buf text = {0};
	if (t->amd)
		buf_cstr(&text, "Enable Automatic Mixed Precision (torch.autocast with bfloat16, or float16 with a GradScaler), so that "
		         "the matrix cores do the products.");
	else if (can(t, GPU_BF16))
		buf_cstr(&text, "Enable Automatic Mixed Precision (torch.autocast with bfloat16, or float16 with a GradScaler); where "
		         "float32 must stay, allow TF32 (torch.set_float32_matmul_precision(\"high\")).");
	else
		buf_cstr(&text, "Enable Automatic Mixed Precision with float16 (torch.autocast(\"cuda\", torch.float16) and a GradScaler): "
		         "the only floating-point type of this GPU's Tensor Cores.");
	if (can(t, GPU_FP8))
		buf_cstr(&text, " Large linear layers that bear it can run in FP8, twice as fast again.");
	struct str s = arena_str(a, buf_view(&text));
	buf_release(&text);
	return s;
}

/* What of a kernel's time can go when it does on Tensor Cores, at the same share of the peak, what it did on ordinary cores:
 * 1 - fp32 peak / best peak. *best gets the type; 0 = not known. */
static double no_tensor_cores_saving(const struct target *t, enum gpu_dtype *best)
{
	if (!t->peaks || !(t->peaks->flops[GPU_FP32] > 0))
		return 0;
	*best = GPU_FP32;
	for (int k = GPU_FP32 + 1; k < GPU_DTYPES; k++)
		if (can(t, (enum gpu_dtype)k) && t->peaks->flops[k] > t->peaks->flops[*best])
			*best = (enum gpu_dtype)k;
	return 1 - t->peaks->flops[GPU_FP32] / t->peaks->flops[*best];
}

/* At the same share of the peak as before, but not below the least that its FLOPs, and its bytes in that type, take. */
static int64_t no_tensor_cores_saved(struct bounds *b, const struct costs *costs, uint32_t g, int64_t ns, double save, enum gpu_dtype best)
{
	static const enum dtype of_rate[GPU_DTYPES] = {[GPU_TF32] = DTYPE_FLOAT32, [GPU_FP16] = DTYPE_FLOAT16, [GPU_BF16] = DTYPE_BFLOAT16,
	                                               [GPU_FP8] = DTYPE_FP8_E4M3};
	double least = bounds_least_ns_as(b, costs, g, of_rate[best]), above = isnan(least) ? (double)ns : (double)ns - least;
	double by_rate = (double)ns * save;
	return above < 0 ? 0 : (int64_t)(above < by_rate ? above : by_rate);
}

/* Measures the kernels of the steps; without steps, those of the whole recording. */
static struct no_tensor_cores_measured no_tensor_cores_measure(const struct profile *p, struct findings *f, const struct optree *t, const struct target *target)
{
	struct no_tensor_cores_measured m = {0};
	gpu_most_init(&m.most, p);
	const struct step_time *w = shared_steps(f);
	uint8_t *could = tc_could_use(p, t);
	struct bounds *b = bounds_new(p);
	enum gpu_dtype best = GPU_FP32;
	double save = no_tensor_cores_saving(target, &best);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t node = t->gpu_node[g];
		if (p->gpu_op.kind[g] != GPU_KERNEL || node == ROW_NONE || t->kind[node] != NODE_OP || (w->n && !step_time_has(w, p->gpu_op.start_ns[g])))
			continue;
		enum tri tc = gpu_tensor_core_or_listed(p, g);
		int64_t dur = p->gpu_op.dur_ns[g];
		m.all_ns += dur;
		m.kernels += could[g];
		if (could[g])
			gpu_most_add(&m.most, p, g, save > 0 ? no_tensor_cores_saved(b, shared_costs(f), g, dur, save, best) : 0);
		m.eligible_ns += could[g] ? dur : 0;
		m.tc_ns += tc == TRI_YES ? dur : 0;
		m.unknown_ns += tc == TRI_UNKNOWN ? dur : 0;
	}
	gpu_most_choose(&m.most, w);
	bounds_free(b);
	mem_free(could);
	return m;
}

static void no_tensor_cores_report(const struct profile *p, struct findings *f, const struct no_tensor_cores_measured *m, const struct target *t)
{
	double pct = 100.0 * (double)m->eligible_ns / (double)m->all_ns;
	const char *cores = t->amd ? "matrix cores" : "Tensor Cores";
	enum gpu_dtype best = GPU_FP32;
	double save = no_tensor_cores_saving(t, &best);
	struct finding *x = findings_add(f, m->unknown_ns ? FINDING_LOW : FINDING_MEDIUM);
	struct buf text = {0};
	x->problem = arena_printf(&f->arena, "Kernels with %.0f %% of the time are launched by operators that could use %s, and none is "
	                          "known to use them", pct, cores);
	buf_printf(&text, "%.3f ms of %.3f ms of kernels launched by operators are eligible", (double)m->eligible_ns / 1e6, (double)m->all_ns / 1e6);
	if (m->unknown_ns)
		buf_printf(&text, "; the names of kernels that take %.3f ms do not tell whether they use %s", (double)m->unknown_ns / 1e6, cores);
	buf_cstr(&text, ". ");
	if (save > 0)
		buf_printf(&text, "By published peaks, as opscope has them, " STR_FMT " does %.1f TFLOP/s in float32 and %.1f in %s, so at most %.0f %% of the "
		           "eligible time can go", STR_ARG(t->name), t->peaks->flops[GPU_FP32] / 1e12, t->peaks->flops[best] / 1e12,
		           gpu_dtype_name[best], 100 * save);
	else
		buf_printf(&text, "The peaks of " STR_FMT " are not known, so the gain is not bounded", STR_ARG(t->name));
	x->evidence = arena_str(&f->arena, buf_view(&text));
	x->advice = no_tensor_cores_advice(t, &f->arena);
	buf_release(&text);
	finding_rests_on(x, NULL, m->kernels, m->eligible_ns);
	finding_covers_most(x, shared_steps(f), &m->most);
	x->has_share = true;
	x->share_pct = pct;
	if (save > 0)
		finding_gains_most(x, f, shared_steps(f), &m->most, "eligible kernel time x (1 - float32 peak / peak of the best type), and no more than "
		                   "their time above the least at that peak and the memory bandwidth");
}

static void no_tensor_cores_run(const struct profile *p, struct findings *f)
{
	struct target target = find_target(p);
	if (target.types < 0)
		findings_missing(f, "the input does not say what the GPUs are (their compute capability, or a name known here)");
	if (target.types <= 0)
		return;
	struct optree *t = optree_new(p, &optree_own);
	struct no_tensor_cores_measured m = no_tensor_cores_measure(p, f, t, &target);
	if (!m.all_ns)
		findings_missing(f, "no kernel can be attributed to an operator");
	else if (!m.tc_ns && m.eligible_ns)
		no_tensor_cores_report(p, f, &m, &target);
	gpu_most_release(&m.most);
	optree_free(t);
}

const struct detector detector_no_tensor_cores = {
	.id = "no-tensor-cores",
	.title = "Tensor Cores are not used",
	.why = "Matrix products and convolutions run several times faster on Tensor Cores (AMD: matrix cores) than on ordinary cores.",
	.fix = "Enable Automatic Mixed Precision in a type that the GPU's Tensor Cores have: float16 from compute capability 7.0, also "
	       "bfloat16 and TF32 from 8.0, also FP8 from 8.9; AMD Instinct: float16 and bfloat16.",
	.disprove = "With mixed precision the step is no shorter: then memory, launches or the host limit these kernels, not arithmetic.",
	.report = "tensor-cores",
	.where = DETECT_DEVICE_WORK,
	.run = no_tensor_cores_run,
};
