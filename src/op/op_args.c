#include "op/op_args.h"

#include "base/mem.h"
#include "base/search.h"

#include <stdio.h>

enum { MAX_ARGS = 4096, MAX_DIMS = 1 << 20 };

/* A place in one of the texts. */
struct at {
	const char *p, *end;
};

static void skip_space(struct at *t)
{
	while (t->p < t->end && (*t->p == ' ' || *t->p == '\n' || *t->p == '\t' || *t->p == '\r'))
		t->p++;
}

static bool op_args_take(struct at *t, char c)
{
	skip_space(t);
	if (t->p >= t->end || *t->p != c)
		return false;
	t->p++;
	return true;
}

static bool take_int(struct at *t, int64_t *v)
{
	skip_space(t);
	const char *from = t->p;
	while (t->p < t->end && ((*t->p >= '0' && *t->p <= '9') || *t->p == '-'))
		t->p++;
	return str_to_i64((struct str){from, (size_t)(t->p - from)}, v);
}

static int op_args_bad(char why[160], const char *what)
{
	snprintf(why, 160, "%s", what);
	return -1;
}

static struct op_arg *arg_at(struct op_args *a, unsigned i)
{
	while (a->n <= i)
		MEM_PUSH(a->arg, a->n, a->cap, (struct op_arg){0});
	return &a->arg[i];
}

/* Behind '[': the sizes of one tensor. */
static int take_sizes(struct op_args *a, struct at *t, char why[160])
{
	struct op_tensor x = {.dim = a->n_dims, .elements = 1};
	MEM_GROW(a->dim, a->cap_dims, a->n_dims + 1);
	while (!op_args_take(t, ']')) {
		int64_t v;
		if ((x.rank && !op_args_take(t, ',')) || !take_int(t, &v))
			return op_args_bad(why, "the shapes are not lists of integers");
		if (v < 0)
			return op_args_bad(why, "a dimension is negative");
		if (a->n_dims >= MAX_DIMS)
			return op_args_bad(why, "too many dimensions");
		MEM_PUSH(a->dim, a->n_dims, a->cap_dims, v);
		x.rank++;
		if (x.elements >= 0 && __builtin_mul_overflow(x.elements, v, &x.elements))
			x.elements = -1;
	}
	for (uint32_t i = 0; i < x.rank; i++)
		x.elements = a->dim[x.dim + i] ? x.elements : 0;
	MEM_PUSH(a->tensor, a->n_tensors, a->cap_tensors, x);
	return 0;
}

/* Behind '[' of a list of tensors, which may be lists themselves (hidden states). */
static int op_args_take_list(struct op_args *a, struct at *t, unsigned depth, char why[160])
{
	for (bool first = true; !op_args_take(t, ']'); first = false) {
		if ((!first && !op_args_take(t, ',')) || !op_args_take(t, '[') || depth > 4)
			return op_args_bad(why, "the shapes are not lists of integers");
		skip_space(t);
		int rc = t->p < t->end && *t->p == '[' ? op_args_take_list(a, t, depth + 1, why) : take_sizes(a, t, why);
		if (rc < 0)
			return -1;
	}
	return 0;
}

static int parse_dims(struct op_args *a, struct str text, char why[160])
{
	if (!text.n)
		return 0;
	struct at t = {text.p, text.p + text.n};
	a->has_dims = true;
	if (!op_args_take(&t, '['))
		return op_args_bad(why, "the shapes are not a list");
	for (unsigned i = 0; !op_args_take(&t, ']'); i++) {
		if ((i && !op_args_take(&t, ',')) || !op_args_take(&t, '[') || i >= MAX_ARGS)
			return op_args_bad(why, "the shapes are not a list of lists");
		skip_space(&t);
		bool list = t.p < t.end && *t.p == '[';
		uint32_t first = a->n_tensors;
		if (list ? op_args_take_list(a, &t, 0, why) < 0 : take_sizes(a, &t, why) < 0)
			return -1;
		struct op_arg *x = arg_at(a, i);
		x->kind = list ? OP_ARG_LIST : OP_ARG_TENSOR;
		x->tensor = first;
		x->n_tensors = a->n_tensors - first;
	}
	skip_space(&t);
	return t.p == t.end ? 0 : op_args_bad(why, "something stands behind the shapes");
}

/* The next element of a list of strings; other values (nested lists, numbers) as written. False at the end or when damaged. */
static bool op_args_take_text(struct at *t, struct str *s)
{
	skip_space(t);
	if (t->p >= t->end)
		return false;
	const char *from = t->p;
	if (*from == '"') {
		for (t->p++; t->p < t->end && *t->p != '"'; t->p++)
			t->p += *t->p == '\\' && t->p + 1 < t->end;
		*s = (struct str){from + 1, (size_t)(t->p - from - 1)};
		return op_args_take(t, '"');
	}
	for (int depth = 0; t->p < t->end && (depth || (*t->p != ',' && *t->p != ']')); t->p++)
		depth += *t->p == '[' ? 1 : *t->p == ']' ? -1 : 0;
	*s = (struct str){from, (size_t)(t->p - from)};
	return t->p > from;
}

static int parse_texts(struct op_args *a, struct str text, size_t field, bool *has, const char *what, char why[160])
{
	if (!text.n)
		return 0;
	struct at t = {text.p, text.p + text.n};
	*has = true;
	if (!op_args_take(&t, '['))
		return op_args_bad(why, what);
	for (unsigned i = 0; !op_args_take(&t, ']'); i++) {
		struct str s;
		if ((i && !op_args_take(&t, ',')) || i >= MAX_ARGS || !op_args_take_text(&t, &s))
			return op_args_bad(why, what);
		*(struct str *)((char *)arg_at(a, i) + field) = s;
	}
	return 0;
}

/* Types that name no tensor: torch's own kinds of values, in the spelling of several versions. */
static bool is_value_type(struct str type)
{
	static const char *const kinds[] = {"", "Scalar", "ScalarList", "Int", "Bool", "Double", "None", "String", "Device",
	                                    "IntList", "BoolList", "DoubleList", "SymInt", "Generator", "Object"};
	return ANY_WHERE(i, 0, sizeof kinds / sizeof kinds[0], str_eqc(type, kinds[i]));
}

static bool is_list_type(struct str type)
{
	return str_eqc(type, "TensorList") || str_eqc(type, "GenericList") || str_eqc(type, "OptionalTensorList");
}

/* All of a list of types as "[float, float]" have to agree. */
static enum dtype op_args_type_of(struct str type)
{
	if (type.n < 2 || type.p[0] != '[')
		return dtype_find(type);
	struct at t = {type.p + 1, type.p + type.n};
	enum dtype common = DTYPE_UNKNOWN;
	for (unsigned i = 0; !op_args_take(&t, ']'); i++) {
		struct str s;
		if ((i && !op_args_take(&t, ',')) || !op_args_take_text(&t, &s))
			return DTYPE_UNKNOWN;
		enum dtype d = dtype_find(s);
		if (i && d != common)
			return DTYPE_UNKNOWN;
		common = d;
	}
	return common;
}

/* "[]" is a tensor without dimensions, or no tensor at all: the type tells, and a value that was recorded. */
static void settle(struct op_args *a, struct op_arg *x)
{
	bool empty = x->kind == OP_ARG_TENSOR && a->tensor[x->tensor].rank == 0;
	if (x->kind != OP_ARG_NONE)
		x->dtype = op_args_type_of(x->type);
	if ((empty || x->kind == OP_ARG_NONE) && is_list_type(x->type))
		x->kind = OP_ARG_HIDDEN;
	else if (empty && (is_value_type(x->type) || x->concrete.n || x->dtype == DTYPE_UNKNOWN))
		x->kind = OP_ARG_NONE;
	if (x->kind == OP_ARG_NONE)
		x->n_tensors = 0;
}

int op_args_parse(struct op_args *a, const struct op_facts *f, char why[160])
{
	*a = (struct op_args){0};
	bool names = false;
	if (parse_dims(a, f->dims, why) < 0 ||
	    parse_texts(a, f->types, offsetof(struct op_arg, type), &a->has_types, "the types are not a list of names", why) < 0 ||
	    parse_texts(a, f->concrete, offsetof(struct op_arg, concrete), &a->has_concrete, "the values are not a list", why) < 0 ||
	    parse_texts(a, f->names, offsetof(struct op_arg, name), &names, "the names are not a list", why) < 0)
		return -1;
	for (unsigned i = 0; i < a->n; i++)
		settle(a, &a->arg[i]);
	return 0;
}

void op_args_release(struct op_args *a)
{
	mem_free(a->arg);
	mem_free(a->tensor);
	mem_free(a->dim);
	*a = (struct op_args){0};
}

const struct op_arg *op_arg(const struct op_args *a, int64_t i)
{
	static const struct op_arg none;
	return i >= 0 && i < a->n ? &a->arg[i] : &none;
}

const struct op_tensor *op_arg_tensor(const struct op_args *a, int64_t i)
{
	const struct op_arg *x = op_arg(a, i);
	return x->kind == OP_ARG_TENSOR ? &a->tensor[x->tensor] : NULL;
}

bool op_arg_int(const struct op_args *a, int64_t i, int64_t *v)
{
	return str_to_i64(op_arg(a, i)->concrete, v);
}

static bool to_bool(struct str s, bool *v)
{
	*v = str_eqc(s, "True") || str_eqc(s, "true") || str_eqc(s, "1");
	return *v || str_eqc(s, "False") || str_eqc(s, "false") || str_eqc(s, "0");
}

bool op_arg_bool(const struct op_args *a, int64_t i, bool *v)
{
	return to_bool(op_arg(a, i)->concrete, v);
}

/* The next item of "[a, b]", "(a, b)" or "a". */
static bool next_item(struct str *s, struct str *item)
{
	if (!str_split(s, ',', item))
		return false;
	while (item->n && strchr(" [(", item->p[0]))
		item->p++, item->n--;
	while (item->n && strchr(" ])", item->p[item->n - 1]))
		item->n--;
	return true;
}

bool op_arg_ints(const struct op_args *a, int64_t i, int64_t *v, unsigned max, unsigned *n)
{
	struct str s = op_arg(a, i)->concrete, item;
	*n = 0;
	if (!s.n)
		return false;
	while (next_item(&s, &item)) {
		if (!item.n && !s.p)
			break;
		if (*n == max || !str_to_i64(item, &v[*n]))
			return false;
		++*n;
	}
	return true;
}

bool op_arg_bools(const struct op_args *a, int64_t i, bool *v, unsigned max, unsigned *n)
{
	struct str s = op_arg(a, i)->concrete, item;
	*n = 0;
	while (s.n && next_item(&s, &item)) {
		if (!item.n && !s.p)
			break;
		if (*n == max || !to_bool(item, &v[*n]))
			return false;
		++*n;
	}
	return *n > 0;
}

int op_arg_named(const struct op_args *a, const char *name)
{
	for (unsigned i = 0; i < a->n; i++)
		if (a->arg[i].name.n && str_eqc(a->arg[i].name, name))
			return (int)i;
	return -1;
}
