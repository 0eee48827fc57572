#include "predecessors/torch/tidy/tidy.h"

static bool is_fill(const struct tidy *t, uint32_t i)
{
	return tidy_is(t, i, "aten::fill_") || tidy_is(t, i, "aten::zero_") || tidy_is(t, i, "aten::normal_") || tidy_is(t, i, "aten::uniform_");
}

/* Whether a fill is among its last children, their last children, ...; itself only when it has no child. */
static bool ends_in_fill(const struct tidy *t, uint32_t i)
{
	if (i == ROW_NONE || t->last_child[i] == ROW_NONE)
		return is_fill(t, i);
	for (int down = 0; (i = t->last_child[i]) != ROW_NONE && down < TIDY_DEPTH; down++)
		if (is_fill(t, i))
			return true;
	return false;
}

/* aten::to > aten::_to_copy > aten::copy_ between equal types; and what stands before the op or frame around aten::to ends in a fill. */
static bool torch_copy_match(const struct tidy *t, uint32_t i)
{
	struct str to, from;
	uint32_t inner = tidy_is(t, i, "aten::to") ? t->last_child[i] : ROW_NONE;
	uint32_t copy = tidy_is(t, inner, "aten::_to_copy") ? t->last_child[inner] : ROW_NONE;
	if (!tidy_is(t, copy, "aten::copy_") || !tidy_item(t, copy, ARG_INPUT_TYPES, 0, &to) || !tidy_item(t, copy, ARG_INPUT_TYPES, 1, &from) || !to.n ||
	    !str_eq(to, from) || t->parent[i] == ROW_NONE)
		return false;
	return ends_in_fill(t, t->before[t->parent[i]]);
}

static void torch_copy_run(const struct profile *p, struct findings *f)
{
	tidy_run(p, f, TIDY_STACKS | TIDY_SHAPES, "Extra CUDA Copy Pattern",
	         "Filled a CPU tensor and immediately moved it to GPU. Please initalize it on GPU.", torch_copy_match);
}

const struct detector detector_tidy_copy = {
	.id = "extra_cuda_copy",
	.title = "A tensor filled on the CPU and moved to the GPU at once",
	.why = "The copy over the bus costs more than filling it on the GPU.",
	.fix = "Make it with device=.",
	.disprove = "The values must come from the host.",
	.experts = &tidy_experts,
	.run = torch_copy_run,
};
