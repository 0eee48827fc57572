#include "predecessors/torch/tidy/tidy.h"

/* The last two sizes of an operand, "[4, 17, 9]"; whether all are multiples of 8. */
static bool is_aligned(struct str dims)
{
	enum { MULTIPLE = 8 };
	size_t at = dims.n;
	for (int k = 0; k < 2; k++) {
		while (at > 0 && (dims.p[at - 1] < '0' || dims.p[at - 1] > '9'))
			at--;
		size_t end = at;
		while (at > 0 && dims.p[at - 1] >= '0' && dims.p[at - 1] <= '9')
			at--;
		int64_t n;
		if (at < end && str_to_i64((struct str){dims.p + at, end - at}, &n) && n % MULTIPLE)
			return false;
	}
	return true;
}

static bool torch_matmul_match(const struct tidy *t, uint32_t i)
{
	struct str type, dims;
	if ((!tidy_is(t, i, "aten::mm") && !tidy_is(t, i, "aten::bmm") && !tidy_is(t, i, "aten::addmm")) ||
	    !tidy_item(t, i, ARG_INPUT_TYPES, 0, &type) || (!str_eqc(type, "c10::Half") && !str_eqc(type, "c10::BFloat16")))
		return false;
	for (unsigned k = 0; tidy_item(t, i, ARG_INPUT_DIMS, k, &dims); k++)
		if (!is_aligned(dims))
			return true;
	return false;
}

static void torch_matmul_run(const struct profile *p, struct findings *f)
{
	tidy_run(p, f, TIDY_STACKS | TIDY_SHAPES, "Matrix Multiplication Dimension Not Aligned Pattern",
	         "Detected matmul with dimension not aligned. Please use matmul with aligned dimension.", torch_matmul_match);
}

const struct detector detector_tidy_matmul = {
	.id = "matmul_not_aligned",
	.title = "16-bit products whose sizes are no multiples of 8",
	.why = "Tensor Core kernels read 16 bytes at once.",
	.fix = "Pad them.",
	.disprove = "The padded product takes as long.",
	.experts = &tidy_experts,
	.run = torch_matmul_run,
};
