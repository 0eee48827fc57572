#include "analysis/names/autograd_names.h"

#include "store/torch_names.h"

#include <ctype.h>

/* Without namespaces, and without what some compilers put before the name of a type: "struct torch::autograd::AccumulateGrad". */
static struct str last_scope(struct str s)
{
	for (size_t i = s.n; i-- > 1;)
		if (s.p[i] == ' ' || (s.p[i] == ':' && s.p[i - 1] == ':'))
			return (struct str){s.p + i + 1, s.n - i - 1};
	return s;
}

static struct str autograd_names_without_number(struct str s)
{
	while (s.n && isdigit((unsigned char)s.p[s.n - 1]))
		s.n--;
	return s;
}

static bool autograd_names_is_node(struct str name)
{
	struct str s = autograd_names_without_number(last_scope(name));
	return str_ends(s, STR("Backward")) || str_ends(s, STR("Backwards")) || str_eq(s, STR("CopySlices")) || str_eq(s, STR("GraphRoot"));
}

static bool autograd_names_is_formula(struct str name)
{
	struct str s = last_scope(name);
	return str_ends(s, STR("_backward")) || str_has(s, STR("_backward_")) || str_starts(name, STR("torch::distributed::reducer::")) ||
	       str_starts(name, STR("torch.distributed.ddp.reducer::"));
}

/* A GradScaler divides the gradients before the optimizer's step, and adjusts its scale after it; "GradScaler.scale" belongs to the forward pass. */
static bool autograd_names_is_unscaling(struct str name)
{
	return str_starts(name, STR("aten::_amp_")) || str_eq(name, STR("GradScaler.unscale_")) || str_eq(name, STR("GradScaler.step")) ||
	       str_eq(name, STR("GradScaler.update"));
}

/* PyProf's markers name the class and the method: "torch.optim.adam.Adam.step", "apex.optimizers.FusedAdam.step". */
static bool autograd_names_is_optimizer(struct str name)
{
	return autograd_names_is_unscaling(name) || str_starts(name, STR(TORCH_OPTIMIZER_STEP)) || str_starts(name, STR("Optimizer.zero_grad")) ||
	       (str_has(name, STR("optim")) && str_ends(name, STR(".step"))) || str_starts(name, STR("aten::_fused_ada")) ||
	       str_starts(name, STR("aten::_fused_sgd"));
}

enum autograd_name autograd_classify(struct str name)
{
	if (str_ends(name, STR("AccumulateGrad")))
		return AUTOGRAD_ACCUMULATE;
	if (str_starts(name, STR(TORCH_ENGINE)))
		return AUTOGRAD_ENGINE;
	if (autograd_names_is_optimizer(name))
		return AUTOGRAD_OPTIMIZER;
	if (autograd_names_is_node(name))
		return AUTOGRAD_NODE;
	return autograd_names_is_formula(name) ? AUTOGRAD_FORMULA : AUTOGRAD_NONE;
}

/* The next letter or digit of *s, in lower case; 0 at the end. */
static char next_letter(struct str *s)
{
	while (s->n) {
		char c = *s->p++;
		s->n--;
		if (isalnum((unsigned char)c))
			return (char)tolower((unsigned char)c);
	}
	return '\0';
}

bool autograd_node_fits(struct str node, struct str op)
{
	node = autograd_names_without_number(last_scope(node));
	op = last_scope(op);
	if (str_ends(node, STR("Backward")))
		node.n -= sizeof "Backward" - 1;
	else if (str_ends(node, STR("Backwards")))
		node.n -= sizeof "Backwards" - 1;
	size_t same = 0;
	char a, b;
	while ((a = next_letter(&node)) == (b = next_letter(&op)) && a)
		same++;
	return same && (!a || !b);
}
