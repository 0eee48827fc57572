#include "detect/torch_tidy.h"

extern const struct detector detector_tidy_zero_grad;

static bool match(const struct tidy *t, uint32_t i)
{
	return t->zeroed[i] && str_ends(tidy_name(t, i), STR(": zero_grad"));
}

static int run(const struct profile *p, struct findings *f, struct err *e)
{
	tidy_run(p, f, &detector_tidy_zero_grad, TIDY_STACKS, "Gradient Set To Zero Instead of None Pattern",
	         "Detected gradient set to zero instead of None. Please add 'set_to_none=True' when calling zero_grad().", match);
	return 0;
}

const struct detector detector_tidy_zero_grad = {
	.id = "grad_not_set_to_none",
	.title = "Gradients that are filled with zeros",
	.why = "None costs nothing, and the first gradient need not be added.",
	.fix = "zero_grad(set_to_none=True).",
	.disprove = "Something reads the zeros.",
	.compat = "torch",
	.needs = PASS_NEST,
	.run = run,
};
