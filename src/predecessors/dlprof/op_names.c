#include "predecessors/dlprof/op_names.h"

#include <stdlib.h>

#include "base/mem.h"

struct str op_name_brackets(struct str name, struct arena *a)
{
	struct str out = arena_str(a, name);
	char *p = (char *)(uintptr_t)out.p;
	for (size_t i = 0; i < out.n; i++) {
		size_t k = i + 1;
		while (p[i] == '(' && k < out.n && p[k] >= '0' && p[k] <= '9')
			k++;
		if (p[i] == '(' && k > i + 1 && k < out.n && p[k] == ')' && (k + 1 == out.n || p[k + 1] == '/')) {
			p[i] = '[';
			p[k] = ']';
		}
	}
	return out;
}

/* Of TensorFlow, whose nodes have their own names; "/" is the root of PyTorch's modules. */
static bool is_node(const struct profile *p, uint32_t span)
{
	return span != ROW_NONE && str_eqc(profile_cat(p, p->span.cat[span]), "tensorflow-core");
}

void dlprof_op_names(const struct ops *o, const struct profile *p, uint32_t op, struct arena *a, struct dlprof_op_names *out)
{
	const struct op *x = &o->op[op];
	uint32_t span = o->instance[x->first].span;
	*out = (struct dlprof_op_names){x->id, x->name, x->type};
	if (!x->unassociated) {
		struct str name = x->name;
		if (is_node(p, span))
			while (name.n > 1 && name.p[0] == '/')
				name.p++, name.n--;
		out->name = op_name_brackets(name, a);
		return;
	}
	struct str version = span == ROW_NONE ? STR("") : profile_str(p, profile_arg_id(p, p->span.args[span], ARG_API_VERSION));
	if (!version.n || x->id.n <= x->type.n)
		return;
	struct str number = {x->id.p + x->type.n, x->id.n - x->type.n};
	out->name = arena_printf(a, STR_FMT "_" STR_FMT, STR_ARG(x->name), STR_ARG(version));
	out->type = arena_printf(a, STR_FMT "_" STR_FMT, STR_ARG(x->type), STR_ARG(version));
	out->id = arena_printf(a, "%.*s_V" STR_FMT STR_FMT, (int)x->type.n, x->id.p, (int)version.n - 1, version.p + 1, STR_ARG(number));
}

struct str dlprof_direction(const struct op *op)
{
	static const char *const name[DIRECTIONS] = {
		[DIR_FORWARD] = "fprop", [DIR_BACKWARD] = "bprop", [DIR_OPTIMIZER] = "fprop", [DIR_OTHER] = "",
	};
	return str_from(name[op->direction]);
}

static int compare_ids(const void *a, const void *b)
{
	const struct dlprof_op_row *x = a, *y = b;
	return str_cmp(x->names.id, y->names.id);
}

struct dlprof_op_row *dlprof_op_order(const struct profile *p, struct arena *a, uint32_t *n)
{
	const struct ops *o = p->ops;
	struct dlprof_op_row *v = NEW_ARRAY(o->n_ops, struct dlprof_op_row);
	*n = 0;
	for (uint32_t i = 0; i < o->n_ops; i++) {
		if (o->instance[o->op[i].first].span == ROW_NONE)
			continue;
		v[*n].op = i;
		dlprof_op_names(o, p, i, a, &v[(*n)++].names);
	}
	qsort(v, *n, sizeof *v, compare_ids);
	return v;
}
