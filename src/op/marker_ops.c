/* The functions that PyProf wraps, as the aten ops that they call. */
#include "op/cost_call.h"

#include "base/mem.h"

static const struct marker_row {
	const char *names, *op, *order;
} rows[] = {
#define MARKER(names, op, order) {names, op, order},
#include "base/search.h"
#include "op/marker_ops.def"
#undef MARKER
};

/* How the ops of a module begin, where torch has none of the same name: torch.fft.fft is aten::fft_fft, torch.linalg.matmul is aten::matmul. */
static const struct module {
	const char *name, *ops;
} modules[] = {
	{"torch.nn.functional.", ""}, {"torch.functional.", ""}, {"torch.nn.init.", ""}, {"torch._C._nn.", ""}, {"torch.Tensor.", ""}, {"Tensor.", ""},
	{"torch.special.", "special_"}, {"torch.linalg.", "linalg_"}, {"torch.fft.", "fft_"}, {"torch.", ""}, {"amp_C.", ""},
};

/* NULL = of none of them. */
static const struct module *cut_module(struct str *name)
{
	for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++) {
		struct str m = str_from(modules[i].name);
		if (str_starts(*name, m) && name->n > m.n) {
			name->p += m.n;
			name->n -= m.n;
			return memchr(name->p, '.', name->n) ? NULL : &modules[i];
		}
	}
	return NULL;
}

static const struct marker_row *marker_ops_row_of(struct str name)
{
	return ELEMENT_WHERE(i, rows, sizeof rows / sizeof rows[0], str_has_word(rows[i].names, name));
}

/* Arguments by name go to the place that the op has for them; those without a name keep their order. A place marked '@' is not
 * where the function has that argument: embedding(input, weight) is aten::embedding(weight, input). */
static void marker_ops_reorder(struct op_args *a, const char *order)
{
	struct str list = str_from(order), name;
	struct op_arg *sorted = NEW_ARRAY(a->n + 16, struct op_arg);
	unsigned n = 0;
	while (n < 16 && str_split(&list, ' ', &name)) {
		char key[64] = {0};
		bool moved = name.p[0] == '@';
		name.p += moved, name.n -= moved;
		memcpy(key, name.p, name.n < sizeof key - 1 ? name.n : sizeof key - 1);
		int at = op_arg_named(a, key);
		if (at < 0 && !moved && n < a->n && !a->arg[n].name.n)
			at = (int)n;
		if (at >= 0)
			sorted[n] = a->arg[at];
		n++;
	}
	mem_free(a->arg);
	a->arg = sorted;
	a->cap = a->n + 16;
	a->n = n;
}

/* Positional arguments of functions that have them elsewhere than their op: those of torch.nn.functional do, torch.embedding and
 * torch.batch_norm are the op's own. */
static void marker_ops_place(struct op_args *a, struct str function)
{
	static const struct {
		const char *function, *order[8];
	} known[] = {
		{"torch.nn.functional.embedding", {"input", "weight"}},
		{"torch.embedding", {"weight", "input"}},
		{"torch.nn.functional.batch_norm", {"input", "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps"}},
		{"torch.batch_norm", {"input", "weight", "bias", "running_mean", "running_var", "training", "momentum", "eps"}},
	};
	for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
		for (unsigned i = 0; str_eqc(function, known[k].function) && i < 8 && i < a->n && known[k].order[i]; i++)
			if (!a->arg[i].name.n)
				a->arg[i].name = str_from(known[k].order[i]);
}

/* How the op that a function calls begins; "" also where torch has the op without that. */
static const char *beginning(const struct cost_call *c, const struct module *module, struct str name)
{
	if (!*module->ops || marker_ops_row_of(name) || rule_find(arena_printf(c->arena, "aten::" STR_FMT, STR_ARG(name)), c->rules, COST_FORWARD, c->user))
		return "";
	return module->ops;
}

bool marker_to_op(struct cost_call *c)
{
	struct str name = c->name;
	const struct module *module = cut_module(&name);
	if (!module)
		return false;
	name = arena_printf(c->arena, "%s" STR_FMT, beginning(c, module, name), STR_ARG(name));
	const struct marker_row *row = marker_ops_row_of(name);
	if (row) {
		marker_ops_place(&c->args, c->name);
		marker_ops_reorder(&c->args, row->order);
	}
	c->name = row && *row->op ? str_from(row->op) : arena_printf(c->arena, "aten::" STR_FMT, STR_ARG(name));
	return true;
}
