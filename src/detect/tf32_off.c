#include "analysis/names/names.h"
#include "analysis/time/bounds.h"
#include "base/search.h"
#include "detect/parts/gpu_most.h"
#include "gpu/gpu_state.h"

/* Percent of the kernel time that float32 matrix products on ordinary cores take. Convolutions do not count: PyTorch lets them use TF32 by default,
 * so that one on ordinary cores is cuDNN's choice. */
static const double TOO_MUCH = 5, SEVERE = 25;
enum { PLACES_TOLD = 3 };

/* Whether the op is a product, by its model, or by its name where shapes were not recorded. */
static bool is_matmul(struct str op, const struct cost *c)
{
	static const char *const names[] = {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::linear", "aten::matmul",
	                                    "aten::_addmm_activation"};
	if (c && c->class != OP_UNKNOWN)
		return c->class == OP_GEMM;
	return ANY_WHERE(i, 0, sizeof names / sizeof names[0], str_eqc(op, names[i]));
}

/* Whether the product has a vector: memory bounds it, and Tensor Cores would not help. */
static bool is_vector_product(struct str kernel, const struct cost *c)
{
	return str_has(kernel, STR("gemv")) || str_has(kernel, STR("splitKreduce")) || (c && (c->m == 1 || c->n == 1));
}

/* GPUs of kernels, by ordinal: bits of gpu_tensor_types; -1 = not known. */
static int types_of(const struct profile *p, int32_t device)
{
	uint32_t i = profile_device_row(p, device);
	if (i == ROW_NONE)
		return -1;
	return gpu_tensor_types(profile_str(p, p->device.name[i]), p->device.cc_major[i], p->device.cc_minor[i], p->device.warp_size[i]);
}

static bool is_amd(const struct profile *p)
{
	return ANY_WHERE(i, 0, p->device.rows.n, gpu_is_amd(profile_str(p, p->device.name[i]), p->device.warp_size[i]));
}

struct tf32_off_measured {
	struct places places;
	int64_t kernel_ns;
	struct gpu_most most;    /* the part of these kernels' time that can be saved at most; 0 = not known */
	bool unknown;            /* a GPU with such kernels does not say what it is */
};

static bool is_float32(struct kernel_info k, const struct cost *c)
{
	return k.dtype != DTYPE_UNKNOWN ? k.dtype == DTYPE_FLOAT32 : c && c->dtype == DTYPE_FLOAT32;
}

/* What of such a kernel's time can go: 1 - float32 peak / TF32 peak of the GPU; 0 = not known. */
static double tf32_off_saving(const struct profile *p)
{
	const struct gpu *one = NULL;
	for (uint32_t i = 0; i < p->device.rows.n; i++) {
		const struct gpu *g = gpu_of_device(p, i);
		if (!g || (one && g != one) || !(g->flops[GPU_FP32] > 0) || !(g->flops[GPU_TF32] > 0))
			return 0;
		one = g;
	}
	return one ? 1 - one->flops[GPU_FP32] / one->flops[GPU_TF32] : 0;
}

/* At the same share of the peak as before, but not below the least that its FLOPs and bytes take. */
static int64_t tf32_off_saved(struct bounds *b, const struct costs *costs, uint32_t g, int64_t ns, double save)
{
	double least = bounds_least_ns_as(b, costs, g, DTYPE_FLOAT32), by_rate = (double)ns * save;
	double above = isnan(least) ? (double)ns : (double)ns - least;
	return above < 0 ? 0 : (int64_t)(above < by_rate ? above : by_rate);
}

static void tf32_off_measure(const struct profile *p, struct findings *f, const struct step_time *w, struct tf32_off_measured *m)
{
	const struct costs *costs = shared_costs(f);
	struct bounds *b = bounds_new(p);
	double save = tf32_off_saving(p);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		if (p->gpu_op.kind[g] != GPU_KERNEL || (w->n && !step_time_has(w, p->gpu_op.start_ns[g])))
			continue;
		const struct cost *c = costs->of_gpu[g] != ROW_NONE ? &costs->cost[costs->of_gpu[g]] : NULL;
		struct kernel_info k = *gpu_kernel(p, g);
		m->kernel_ns += p->gpu_op.dur_ns[g];
		uint32_t op = costs->op[g];
		if (k.class != KERNEL_GEMM || k.tensor_core != TRI_NO || op == ROW_NONE || !is_float32(k, c) ||
		    !is_matmul(profile_str(p, p->span.name[op]), c) || is_vector_product(profile_str(p, p->gpu_op.name[g]), c))
			continue;
		int types = types_of(p, p->launch.device[p->gpu_op.launch[g]]);
		m->unknown |= types < 0;
		if (types < 0 || !(types & 1 << GPU_TF32))
			continue;
		places_add(&m->places, shared_stacks(f), profile_str(p, p->span.name[op]), op, 1, p->gpu_op.dur_ns[g]);
		gpu_most_add(&m->most, p, g, save > 0 ? tf32_off_saved(b, costs, g, p->gpu_op.dur_ns[g], save) : 0);
	}
	gpu_most_choose(&m->most, w);
	bounds_free(b);
}

/* Boards of engineers and of single customers run at other clocks than what is sold by the name of their chip. */
static void put_no_peaks(const struct profile *p, struct buf *b)
{
	struct str name = p->device.rows.n ? profile_str(p, p->device.name[0]) : (struct str){0};
	buf_cstr(b, ". The GPU's peaks are not known");
	if (name.n)
		buf_printf(b, " (none are published for " STR_FMT "; --gpu=NAME takes those of another one)", STR_ARG(name));
	buf_cstr(b, ", so the gain is not bounded");
}

static void tf32_off_report(const struct profile *p, struct findings *f, const struct step_time *w, const struct tf32_off_measured *m)
{
	double pct = 100.0 * (double)m->places.ns / (double)m->kernel_ns, save = tf32_off_saving(p);
	unsigned steps = w->n ? w->n : 1;
	struct buf evidence = {0};
	struct finding *x = findings_add(f, pct >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	x->problem = arena_printf(&f->arena, "%.1f %% of the kernel time goes to float32 matrix products on ordinary cores, though "
	                          "the GPU could do them in TF32 on Tensor Cores", pct);
	buf_printf(&evidence, "By the kernels' names%s: ", w->n ? ", per step" : "");
	places_text(&m->places, PLACES_TOLD, steps, true, &evidence);
	if (save > 0)
		buf_printf(&evidence, ". By published peaks TF32 can take at most %.0f %% of this time away", 100 * save);
	else
		put_no_peaks(p, &evidence);
	x->evidence = finding_text(f, &evidence);
	finding_looks_at_most(x, p, &m->places);
	finding_share(x, m->places.events, m->places.ns, pct);
	if (save > 0)
		finding_gains_most(x, f, w, &m->most, "time of these kernels x (1 - float32 peak / TF32 peak), and no more than their time above the least at "
		             "TF32's peak and the memory bandwidth");
	else
		finding_covers_most(x, w, &m->most);
}

static void tf32_off_run(const struct profile *p, struct findings *f)
{
	struct tf32_off_measured m = {0};
	if (is_amd(p)) /* TF32 is no setting of PyTorch there */
		return;
	const struct step_time *w = shared_steps(f);
	gpu_most_init(&m.most, p);
	tf32_off_measure(p, f, w, &m);
	if (m.kernel_ns && 100.0 * (double)m.places.ns / (double)m.kernel_ns >= TOO_MUCH)
		tf32_off_report(p, f, w, &m);
	else if (m.unknown)
		findings_missing(f, "the input does not say what the GPUs are (their compute capability, or a name known here)");
	places_release(&m.places);
	gpu_most_release(&m.most);
}

const struct detector detector_tf32_off = {
	.id = "tf32-off",
	.title = "float32 matrix products could run in TF32",
	.why = "From compute capability 8.0, Tensor Cores multiply float32 as TF32 (10 bits of mantissa), several times faster than ordinary cores.",
	.fix = "Where 10 bits of mantissa suffice, call torch.set_float32_matmul_precision(\"high\") "
	       "(torch.backends.cuda.matmul.allow_tf32 = True); or use bfloat16 by torch.autocast.",
	.disprove = "With TF32 allowed the same kernels run (the library has none for these shapes), or they are bound by memory.",
	.shares = "no-tensor-cores",
	.report = "tensor-cores",
	.where = DETECT_DEVICE_WORK,
	.run = tf32_off_run,
};
