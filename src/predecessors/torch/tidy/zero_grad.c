#include "base/mem.h"
#include "predecessors/torch/tidy/tidy.h"

/* Whether an aten::zero_ is inside that is not directly in an aten::zeros; from the inside out. */
static void find_zeroed(struct tidy *t)
{
	t->zeroed = NEW_ARRAY(t->p->span.rows.n, uint8_t);
	for (uint32_t i = t->p->span.rows.n; i-- > 0;) {
		uint32_t up = t->parent[i];
		if (up != ROW_NONE)
			t->zeroed[up] |= t->zeroed[i] || (tidy_is(t, i, "aten::zero_") && !tidy_is(t, up, "aten::zeros"));
	}
}

static bool torch_zero_grad_match(const struct tidy *t, uint32_t i)
{
	return t->zeroed[i] && str_ends(tidy_name(t, i), STR(": zero_grad"));
}

static void torch_zero_grad_run(const struct profile *p, struct findings *f)
{
	struct tidy *t = tidy_ready(p, f, TIDY_STACKS);
	if (!t)
		return;
	find_zeroed(t);
	tidy_look(t, "Gradient Set To Zero Instead of None Pattern",
	         "Detected gradient set to zero instead of None. Please add 'set_to_none=True' when calling zero_grad().", torch_zero_grad_match);
}

const struct detector detector_tidy_zero_grad = {
	.id = "grad_not_set_to_none",
	.title = "Gradients that are filled with zeros",
	.why = "None costs nothing, and the first gradient need not be added.",
	.fix = "zero_grad(set_to_none=True).",
	.disprove = "Something reads the zeros.",
	.experts = &tidy_experts,
	.run = torch_zero_grad_run,
};
