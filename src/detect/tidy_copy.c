#include "detect/torch_tidy.h"

extern const struct detector detector_tidy_copy;

/* aten::to > aten::_to_copy > aten::copy_ between equal types; and what stands before the op or frame around aten::to ends in a fill. */
static bool match(const struct tidy *t, uint32_t i)
{
	static const char *const fills[] = {"aten::fill_", "aten::zero_", "aten::normal_", "aten::uniform_"};
	struct str to, from;
	uint32_t inner = tidy_is(t, i, "aten::to") ? t->last_child[i] : ROW_NONE;
	uint32_t copy = tidy_is(t, inner, "aten::_to_copy") ? t->last_child[inner] : ROW_NONE;
	if (!tidy_is(t, copy, "aten::copy_") || !tidy_item(t, copy, t->key_types, 0, &to) || !tidy_item(t, copy, t->key_types, 1, &from) || !to.n ||
	    !str_eq(to, from) || t->parent[i] == ROW_NONE)
		return false;
	uint32_t at = t->before[t->parent[i]];
	for (int down = 0; at != ROW_NONE && down < TIDY_DEPTH; at = t->last_child[at], down++)
		for (size_t k = 0; k < sizeof fills / sizeof *fills; k++)
			if (tidy_is(t, at, fills[k]))
				return at != t->before[t->parent[i]] || t->last_child[at] == ROW_NONE;
	return false;
}

static int run(const struct profile *p, struct findings *f, struct err *e)
{
	tidy_run(p, f, &detector_tidy_copy, TIDY_STACKS | TIDY_SHAPES, "Extra CUDA Copy Pattern",
	         "Filled a CPU tensor and immediately moved it to GPU. Please initalize it on GPU.", match);
	return 0;
}

const struct detector detector_tidy_copy = {
	.id = "extra_cuda_copy",
	.title = "A tensor filled on the CPU and moved to the GPU at once",
	.why = "The copy over the bus costs more than filling it on the GPU.",
	.fix = "Make it with device=.",
	.disprove = "The values must come from the host.",
	.compat = "torch",
	.needs = PASS_NEST,
	.run = run,
};
