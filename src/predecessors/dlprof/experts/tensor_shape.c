/* No output of DLProf with this finding is known: the text is in its manner. */
#include "analysis/names/names.h"
#include "base/mem.h"
#include "predecessors/dlprof/experts/experts.h"

/* Sizes in "<N:32, C:3, H:32, W:32>; <6>" that are larger than one and no multiple of 8: Tensor Cores of that time wanted multiples for
 * 16-bit floats. */
static bool has_odd_size(struct str shapes)
{
	bool odd = false;
	for (size_t i = 0; i < shapes.n; i++) {
		int64_t v = 0;
		if (shapes.p[i] < '0' || shapes.p[i] > '9')
			continue;
		for (; i < shapes.n && shapes.p[i] >= '0' && shapes.p[i] <= '9'; i++)
			v = (v * 10 + shapes.p[i] - '0') % 8 + 8; /* keeps what is needed: the remainder, and that it is large */
		odd |= v % 8 != 0;
	}
	return odd;
}

/* By op: an instance of it launched a kernel that uses Tensor Cores. */
static uint8_t *find_users(const struct profile *p)
{
	uint8_t *uses = NEW_ARRAY(p->ops->n_ops, uint8_t);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		if (p->gpu_op.kind[g] == GPU_KERNEL && name_is(p, p->gpu_op.name[g], NAME_TC_LISTED))
			uses[p->ops->instance[p->ops->of_gpu[g]].op] = 1;
	return uses;
}

static void dlprof_tensor_shape_run(const struct profile *p, struct findings *f)
{
	unsigned bad = 0;
	if (!dlprof_is_tensorflow(p))
		return;
	uint8_t *uses = find_users(p);
	for (uint32_t i = 0; i < p->ops->n_ops; i++) {
		const struct op *op = &p->ops->op[i];
		struct op_shapes s;
		if (!dlprof_is_eligible(op) || !dlprof_is_half(op->data_type))
			continue;
		op_instance_shapes(p->ops, p, op->first, &f->arena, &s);
		bad += has_odd_size(s.inputs) && !uses[i];
	}
	mem_free(uses);
	if (bad)
		findings_quote(f, arena_printf(&f->arena, "%u ops were eligible to use tensor cores but their tensor shapes are not multiples of 8", bad),
		                    STR("Try changing the tensor shapes so that all dimensions are multiples of 8"));
}

const struct detector detector_dlprof_tensor_shape = {
	.id = "bad_tensor_shape_detector",
	.title = "Shapes keep ops off Tensor Cores (TensorFlow)",
	.why = "Older libraries use Tensor Cores only for multiples of 8.",
	.fix = "Pad tensors to multiples of 8.",
	.disprove = "Newer cuDNN and cuBLAS use Tensor Cores for any shape.",
	.experts = &dlprof_experts,
	.run = dlprof_tensor_shape_run,
};
