#include "analysis/optree.h"
#include "analysis/steps.h"
#include "base/mem.h"
#include "detect/detect.h"
#include "op/kernels.h"

extern const struct detector detector_no_tensor_cores;

/* Kernel time of ops, and what of it Tensor Cores could do or do. */
struct measured {
	int64_t all_ns, eligible_ns, tc_ns, unknown_ns;
};

/* Eligible nodes without an eligible one below them. */
static uint8_t *bottom_eligible(const struct optree *t)
{
	uint8_t *bottom = NEW_ARRAY(t->n, uint8_t), *below = NEW_ARRAY(t->n, uint8_t);
	for (uint32_t n = t->n; n-- > 0;) { /* children stand behind their parents */
		bottom[n] = t->tc_eligible[n] && !below[n];
		if (t->parent[n] != ROW_NONE && (t->tc_eligible[n] || below[n]))
			below[t->parent[n]] = 1;
	}
	mem_free(below);
	return bottom;
}

/* enum tri of a kernel, looked up once per name; a name on the plugin's list counts as yes. */
static enum tri tensor_core(const struct profile *p, uint32_t name, uint8_t *known)
{
	if (!known[name]) {
		struct str s = profile_str(p, name);
		known[name] = (uint8_t)(1 + (kernel_uses_tc_compat(s) ? TRI_YES : kernel_classify(s).tensor_core));
	}
	return known[name] - 1;
}

static struct measured measure(const struct profile *p, const struct optree *t)
{
	struct measured m = {0};
	uint8_t *bottom = bottom_eligible(t), *known = NEW_ARRAY(p->strings.n, uint8_t);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t node = t->gpu_node[g];
		if (p->gpu_op.kind[g] != GPU_KERNEL || node == ROW_NONE || t->kind[node] != NODE_OP)
			continue;
		enum tri tc = tensor_core(p, p->gpu_op.name[g], known);
		int64_t dur = p->gpu_op.dur_ns[g];
		m.all_ns += dur;
		m.eligible_ns += bottom[node] ? dur : 0;
		m.tc_ns += tc == TRI_YES ? dur : 0;
		m.unknown_ns += tc == TRI_UNKNOWN ? dur : 0;
	}
	mem_free(known);
	mem_free(bottom);
	return m;
}

enum capability { CAPABLE, NOT_CAPABLE, NOT_STATED };

/* Compute capability 7 and up has Tensor Cores; AMD's numbers mean something else (its wavefronts are 64 wide). */
static enum capability capability(const struct profile *p)
{
	enum capability c = NOT_STATED;
	for (uint32_t i = 0; i < p->device.rows.n; i++) {
		if (p->device.cc_major[i] < 0)
			continue;
		bool amd = p->device.warp_size[i] == 64 || str_has(profile_str(p, p->device.name[i]), STR("AMD"));
		if (!amd && p->device.cc_major[i] >= 7)
			return CAPABLE;
		c = NOT_CAPABLE;
	}
	return c;
}

static void report(const struct profile *p, struct findings *f, const struct measured *m)
{
	double pct = 100.0 * (double)m->eligible_ns / (double)m->all_ns;
	struct finding *x = findings_add(f, &detector_no_tensor_cores, m->unknown_ns ? FINDING_LOW : FINDING_MEDIUM);
	x->problem = arena_printf(&f->arena, "Kernels with %.0f %% of the time are launched by operators that could use Tensor Cores, and "
	                          "none is known to use them", pct);
	x->evidence = arena_printf(&f->arena, "%.3f ms of %.3f ms of kernels launched by operators are eligible; of %.3f ms it is not "
	                           "known from the kernel's name whether it uses Tensor Cores",
	                           (double)m->eligible_ns / 1e6, (double)m->all_ns / 1e6, (double)m->unknown_ns / 1e6);
	if (p->steps->n) {
		x->has_gain = true;
		x->gain_ns_per_step = m->eligible_ns / p->steps->n;
	}
}

static int run(const struct profile *p, struct findings *f, struct err *e)
{
	(void)e;
	const struct detector *d = &detector_no_tensor_cores;
	if (!p->gpu_op.rows.n) {
		findings_missing(f, d, "the input has no device work");
		return 0;
	}
	enum capability c = capability(p);
	if (c == NOT_STATED)
		findings_missing(f, d, "the input does not state the devices' compute capability");
	if (c != CAPABLE)
		return 0;
	struct optree *t = optree_new(p, OPTREE_DEFAULT);
	struct measured m = measure(p, t);
	if (!m.all_ns)
		findings_missing(f, d, "no kernel can be attributed to an operator");
	else if (!m.tc_ns && m.eligible_ns)
		report(p, f, &m);
	optree_free(t);
	return 0;
}

const struct detector detector_no_tensor_cores = {
	.id = "no-tensor-cores",
	.title = "Tensor Cores are not used",
	.why = "Matrix products and convolutions run several times faster on Tensor Cores than on ordinary cores.",
	.fix = "Enable Automatic Mixed Precision (torch.autocast with float16 or bfloat16), or allow TF32.",
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.run = run,
};
