/* Functions of the expressions in rules.def. */
#include "op/cost_rules.h"

#include <stdio.h>

enum { OUT = -2, NO_ARG = -1, MAX_LIST = 16 };

enum rule_fns_as { AS_IS, AS_FLOAT }; /* integers as float32 */

static int rule_fns_fail(char why[EXPR_WHY], const char *fmt, long long i)
{
	snprintf(why, EXPR_WHY, fmt, i);
	return -1;
}

static int failed(char why[EXPR_WHY], const char *what)
{
	snprintf(why, EXPR_WHY, "%s", what);
	return -1;
}

static bool is_operand(const struct cost_call *c, int64_t i)
{
	return i >= 0 && i < 64 && (c->operands >> i & 1);
}

/* Elements of argument i: 0 where it is no tensor. */
static int rule_fns_elements_of(const struct cost_call *c, int64_t i, int64_t *v, char why[EXPR_WHY])
{
	const struct op_arg *x = op_arg(&c->args, i);
	*v = 0;
	if (x->kind == OP_ARG_HIDDEN)
		return rule_fns_fail(why, "the shapes of the list in input %lld were not recorded", i);
	for (uint32_t k = 0; k < x->n_tensors; k++) {
		int64_t n = c->args.tensor[x->tensor + k].elements;
		if (n < 0 || __builtin_add_overflow(*v, n, v))
			return rule_fns_fail(why, "the elements of input %lld do not fit 64 bits", i);
	}
	return 0;
}

/* Size of the broadcast of all operands in dimension `d` from the last; 0 = none has it, -1 = they disagree. */
static int64_t broadcast_dim(const struct cost_call *c, uint32_t d)
{
	int64_t size = 0;
	bool have = false;
	for (unsigned i = 0; i < c->args.n && i < 64; i++) {
		const struct op_tensor *t = is_operand(c, i) ? op_arg_tensor(&c->args, i) : NULL;
		if (!t || t->rank <= d)
			continue;
		int64_t n = op_dims(&c->args, t)[t->rank - 1 - d];
		if (have && size != n && size != 1 && n != 1)
			return -1;
		size = !have || size == 1 ? n : size;
		have = true;
	}
	return have ? size : 0;
}

static int out_elements(const struct cost_call *c, int64_t *v, char why[EXPR_WHY])
{
	uint32_t rank = 0;
	for (unsigned i = 0; i < c->args.n && i < 64; i++) {
		const struct op_arg *x = &c->args.arg[i];
		if (is_operand(c, i) && x->kind == OP_ARG_LIST)
			return rule_fns_elements_of(c, i, v, why);
		if (is_operand(c, i) && c->args.tensor[x->tensor].rank > rank)
			rank = c->args.tensor[x->tensor].rank;
	}
	*v = 1;
	for (uint32_t d = 0; d < rank; d++) {
		int64_t n = broadcast_dim(c, d);
		if (n < 0)
			return rule_fns_fail(why, "the inputs do not broadcast: dimension %lld from the last disagrees", d);
		if (__builtin_mul_overflow(*v, n, v))
			return failed(why, "the elements of the result do not fit 64 bits");
	}
	return 0;
}

/* As torch does: tensors with dimensions decide; one without them only if its kind is higher (a float scalar on an integer
 * tensor gives the default type). */
enum dtype rule_result_type(const struct cost_call *c)
{
	enum dtype best[2] = {DTYPE_UNKNOWN, DTYPE_UNKNOWN};
	for (unsigned i = 0; i < c->args.n && i < 64; i++) {
		const struct op_arg *x = &c->args.arg[i];
		if (!is_operand(c, i))
			continue;
		if (x->dtype == DTYPE_UNKNOWN)
			return DTYPE_UNKNOWN;
		const struct op_tensor *t = op_arg_tensor(&c->args, i);
		enum dtype *b = &best[t && t->rank == 0];
		bool bigger = dtype_kind(x->dtype) > dtype_kind(*b) ||
		              (dtype_kind(x->dtype) == dtype_kind(*b) && dtype_bits(x->dtype) > dtype_bits(*b));
		bool halves = (*b == DTYPE_FLOAT16 && x->dtype == DTYPE_BFLOAT16) || (*b == DTYPE_BFLOAT16 && x->dtype == DTYPE_FLOAT16);
		if (halves)
			*b = DTYPE_FLOAT32;
		else if (bigger)
			*b = x->dtype;
	}
	if (best[0] == DTYPE_UNKNOWN)
		return best[1];
	if (best[1] == DTYPE_UNKNOWN || dtype_kind(best[1]) <= dtype_kind(best[0]))
		return best[0];
	return best[1] == DTYPE_FLOAT64 ? DTYPE_FLOAT32 : best[1] == DTYPE_COMPLEX128 ? DTYPE_COMPLEX64 : best[1];
}

/* The name alone: "add_" of "aten::add_", "aten::add_.Tensor" and "torch.Tensor.add_". */
static struct str bare_name(struct str name)
{
	ptrdiff_t colons = str_find(name, STR("::"));
	size_t from = colons < 0 ? 0 : (size_t)colons + 2, to = name.n;
	for (size_t i = name.n; i-- > from;)
		if (name.p[i] == '.' && colons >= 0)
			to = i;
		else if (name.p[i] == '.' && !from)
			from = i + 1;
	return (struct str){name.p + from, to - from};
}

/* Whether the op writes into its first input: "aten::add_", "torch.Tensor.__iadd__". */
static bool in_place(const struct cost_call *c)
{
	struct str name = bare_name(c->facts->name);
	if (str_starts(name, STR("__")) && str_ends(name, STR("__")))
		return str_starts(name, STR("__i")) && !str_eqc(name, "__invert__");
	return str_ends(name, STR("_"));
}

static int type_for(const struct cost_call *c, int64_t i, enum dtype *t, char why[EXPR_WHY])
{
	/* In place the result has the type of the tensor that it is written to, whatever the arithmetic is done in. */
	if (i == OUT && in_place(c))
		i = 0;
	*t = i == OUT ? rule_result_type(c) : op_arg(&c->args, i)->dtype;
	if (c->rules->truth_values && *t == DTYPE_BOOL)
		return failed(why, c->rules->truth_values);
	if (*t != DTYPE_UNKNOWN)
		return 0;
	if (i == OUT)
		return failed(why, "the type of an input was not recorded");
	return op_arg(&c->args, i)->kind == OP_ARG_LIST ? rule_fns_fail(why, "the types of the list in input %lld were not recorded", i)
	                                                : rule_fns_fail(why, "the type of input %lld was not recorded", i);
}

static int rule_fns_bytes_of(const struct cost_call *c, int64_t n, int64_t i, enum rule_fns_as as, int64_t *v, char why[EXPR_WHY])
{
	enum dtype t;
	*v = 0;
	if (n == 0)
		return 0;
	if (type_for(c, i, &t, why) < 0)
		return -1;
	bool whole = dtype_kind(t) == DTYPE_KIND_INT || dtype_kind(t) == DTYPE_KIND_BOOL;
	if (as == AS_FLOAT && whole && !(i == OUT && in_place(c)))
		t = DTYPE_FLOAT32;
	*v = cost_bytes_of(n, t);
	return *v < 0 ? rule_fns_fail(why, "the bytes of input %lld do not fit 64 bits", i) : 0;
}

static int rule_fns_count(const struct cost_call *c, int64_t i, int64_t *v, char why[EXPR_WHY])
{
	return i == OUT ? out_elements(c, v, why) : rule_fns_elements_of(c, i, v, why);
}

static int tensor_of(const struct cost_call *c, int64_t i, const struct op_tensor **t, char why[EXPR_WHY])
{
	*t = op_arg_tensor(&c->args, i);
	return *t ? 0 : rule_fns_fail(why, "the shape of input %lld was not recorded", i);
}

/* D(i, d), lead(i, d) = product of the dimensions before d, after(i, d) = from d on. */
static int dims(const struct cost_call *c, char which, const int64_t *a, int64_t *v, char why[EXPR_WHY])
{
	const struct op_tensor *t;
	if (tensor_of(c, a[0], &t, why) < 0)
		return -1;
	int64_t d = a[1] < 0 ? a[1] + t->rank : a[1];
	if (d < 0 || d > t->rank || (d == t->rank && which == 'D'))
		return rule_fns_fail(why, "input %lld has too few dimensions", a[0]);
	uint32_t from = which == 'D' ? (uint32_t)d : which == 'a' ? (uint32_t)d : 0;
	uint32_t to = which == 'D' ? (uint32_t)d + 1 : which == 'a' ? t->rank : (uint32_t)d;
	*v = 1;
	for (uint32_t k = from; k < to; k++)
		if (__builtin_mul_overflow(*v, op_dims(&c->args, t)[k], v))
			return rule_fns_fail(why, "the elements of input %lld do not fit 64 bits", a[0]);
	return 0;
}

static int list_of(const struct cost_call *c, int64_t i, int64_t list[MAX_LIST], unsigned *n, char why[EXPR_WHY])
{
	if (op_arg_ints(&c->args, i, list, MAX_LIST, n))
		return 0;
	return rule_fns_fail(why, "the value of input %lld was not recorded", i);
}

/* red(i, j): elements of tensor i after reducing the dimensions that value j lists; all where it lists none. */
static int reduced(const struct cost_call *c, int64_t i, int64_t j, int64_t *v, char why[EXPR_WHY])
{
	const struct op_tensor *t;
	int64_t list[MAX_LIST];
	unsigned n;
	if (tensor_of(c, i, &t, why) < 0)
		return -1;
	*v = 1;
	/* sum(x, dtype) reduces all, as sum(x) does; the overload with dimensions has more arguments. */
	bool torch_op = str_starts(c->facts->name, STR("aten::"));
	struct str value = op_arg(&c->args, j)->concrete;
	if (torch_op && c->args.n <= 2 && (!value.n || value.p[0] != '['))
		return 0;
	if (!c->args.has_concrete)
		return rule_fns_fail(why, "which dimensions are reduced (input %lld) was not recorded", j);
	if (!op_arg(&c->args, j)->concrete.n)
		return 0;
	if (list_of(c, j, list, &n, why) < 0)
		return -1;
	uint64_t gone = n ? 0 : UINT64_MAX;
	for (unsigned k = 0; k < n; k++) {
		int64_t d = list[k] < 0 ? list[k] + t->rank : list[k];
		if (d < 0 || d >= (t->rank ? t->rank : 1) || d >= 64)
			return rule_fns_fail(why, "input %lld lists a dimension that the tensor does not have", j);
		gone |= 1ull << d;
	}
	for (uint32_t k = 0; k < t->rank; k++)
		if (!(k < 64 && gone >> k & 1) && __builtin_mul_overflow(*v, op_dims(&c->args, t)[k], v))
			return rule_fns_fail(why, "the elements of input %lld do not fit 64 bits", i);
	return 0;
}

/* size(i, j): elements of tensor i with its last dimensions replaced by those that value j lists. */
static int resized(const struct cost_call *c, int64_t i, int64_t j, int64_t *v, char why[EXPR_WHY])
{
	const struct op_tensor *t;
	int64_t list[MAX_LIST];
	unsigned n;
	if (tensor_of(c, i, &t, why) < 0 || list_of(c, j, list, &n, why) < 0)
		return -1;
	if (!n || n > t->rank)
		return rule_fns_fail(why, "input %lld does not list an output size", j);
	*v = 1;
	for (uint32_t k = 0; k < t->rank; k++) {
		int64_t d = k + n < t->rank ? op_dims(&c->args, t)[k] : list[k + n - t->rank];
		if (d < 0 || __builtin_mul_overflow(*v, d, v))
			return rule_fns_fail(why, "input %lld: impossible size", j);
	}
	return 0;
}

/* Item k of a parameter that is given once for all dimensions or for each; `otherwise` where it is left out. */
static int64_t item(const int64_t *list, unsigned n, unsigned k, int64_t otherwise)
{
	return n == 0 ? otherwise : n == 1 ? list[0] : k < n ? list[k] : otherwise;
}

static int pooled_dim(int64_t in, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation, bool up, int64_t *v)
{
	int64_t span;
	if (kernel < 1 || stride < 1 || pad < 0 || dilation < 1 || pad > INT32_MAX || in > INT64_MAX / 4 ||
	    stride > INT64_MAX / 4 ||
	    __builtin_mul_overflow(dilation, kernel - 1, &span) || (span = in + 2 * pad - span - 1) < 0)
		return -1;
	*v = (span + (up ? stride - 1 : 0)) / stride + 1;
	/* The last window starts inside the input or its left padding. */
	if (up && (*v - 1) * stride >= in + pad)
		--*v;
	return 0;
}

/* In how many dimensions a pooling op goes: its name says so; else as many as the kernel has. */
static unsigned spatial_of(const struct cost_call *c, unsigned n_kernel)
{
	ptrdiff_t at = str_find(c->name, STR("_pool"));
	char digit = at >= 0 && (size_t)at + 5 < c->name.n ? c->name.p[at + 5] : 0;
	return digit >= '1' && digit <= '3' ? (unsigned)(digit - '0') : n_kernel;
}

/* window(kernel): elements under it; one number stands for all dimensions. */
static int window_elements(const struct cost_call *c, int64_t kernel, int64_t *v, char why[EXPR_WHY])
{
	int64_t list[MAX_LIST];
	unsigned n = 0;
	if (list_of(c, kernel, list, &n, why) < 0)
		return -1;
	*v = 1;
	for (unsigned s = 0; s < spatial_of(c, n); s++)
		if (__builtin_mul_overflow(*v, item(list, n, s, 1), v))
			return failed(why, "the elements of the window do not fit 64 bits");
	return 0;
}

/* pool(i, kernel, stride, padding, dilation, ceil_mode): elements after pooling; arguments by number, `none` = left out. */
static int pooled(const struct cost_call *c, const int64_t *a, int64_t *v, char why[EXPR_WHY])
{
	const struct op_tensor *t;
	int64_t list[4][MAX_LIST];
	unsigned n[4] = {0};
	bool up = false;
	if (tensor_of(c, a[0], &t, why) < 0 || list_of(c, a[1], list[0], &n[0], why) < 0)
		return -1;
	for (unsigned k = 1; k < 4; k++)
		if (a[1 + k] != NO_ARG && op_arg(&c->args, a[1 + k])->concrete.n && list_of(c, a[1 + k], list[k], &n[k], why) < 0)
			return -1;
	if (a[5] != NO_ARG)
		op_arg_bool(&c->args, a[5], &up);
	/* Lists may have one value for all dimensions. */
	unsigned spatial = spatial_of(c, n[0]);
	if (!spatial || t->rank < spatial + 1)
		return rule_fns_fail(why, "input %lld has too few dimensions", a[0]);
	*v = 1;
	for (uint32_t k = 0; k < t->rank; k++) {
		int64_t d = op_dims(&c->args, t)[k];
		unsigned s = k + spatial >= t->rank ? k + spatial - t->rank : UINT32_MAX;
		int64_t kernel = s == UINT32_MAX ? 1 : item(list[0], n[0], s, 1);
		if (s != UINT32_MAX && pooled_dim(d, kernel, item(list[1], n[1], s, kernel), item(list[2], n[2], s, 0),
		                                  item(list[3], n[3], s, 1), up, &d) < 0)
			return rule_fns_fail(why, "the window does not fit input %lld", a[0]);
		if (__builtin_mul_overflow(*v, d, v))
			return failed(why, "the elements of the result do not fit 64 bits");
	}
	return 0;
}

/* The number of a loss's reduction by its name, as markers state it. */
static bool reduction_of(struct str s, int64_t *v)
{
	static const char *const names[] = {"none", "mean", "sum"};
	for (*v = 0; *v < 3; ++*v)
		if (str_eqc(s, names[*v]))
			return true;
	return false;
}

static int rule_fns_value(const struct cost_call *c, const int64_t *a, unsigned n, int64_t *v, char why[EXPR_WHY])
{
	if (op_arg_int(&c->args, a[0], v) || reduction_of(op_arg(&c->args, a[0])->concrete, v))
		return 0;
	if (n == 2 && !op_arg(&c->args, a[0])->concrete.n && c->args.has_concrete) {
		*v = a[1];
		return 0;
	}
	return rule_fns_fail(why, "the value of input %lld was not recorded", a[0]);
}

static int product_of(const struct cost_call *c, int64_t i, int64_t *v, char why[EXPR_WHY])
{
	int64_t list[MAX_LIST];
	unsigned n;
	if (list_of(c, i, list, &n, why) < 0)
		return -1;
	*v = 1;
	for (unsigned k = 0; k < n; k++)
		if (list[k] < 0 || __builtin_mul_overflow(*v, list[k], v))
			return rule_fns_fail(why, "input %lld: impossible size", i);
	return 0;
}

/* coded(n, i, j): bytes of n elements of the type that value i names by torch's number (c10::ScalarType); of input j's type where
 * no value was given; `none` = there is no such input. */
static int coded(const struct cost_call *c, const int64_t *a, int64_t *v, char why[EXPR_WHY])
{
	int64_t code, n = a[0], i = a[1];
	if (a[2] != NO_ARG && c->args.has_concrete && !op_arg(&c->args, i)->concrete.n)
		return rule_fns_bytes_of(c, n, a[2], AS_IS, v, why);
	enum dtype t = op_arg_int(&c->args, i, &code) ? dtype_of_code(code) : dtype_find(op_arg(&c->args, i)->concrete);
	if (t == DTYPE_UNKNOWN)
		return rule_fns_fail(why, "the type that input %lld asks for was not recorded", i);
	*v = cost_bytes_of(n, t);
	return *v < 0 ? failed(why, "does not fit 64 bits") : 0;
}

static int last(const struct cost_call *c, int64_t i, int64_t *v, char why[EXPR_WHY])
{
	int64_t list[MAX_LIST];
	unsigned n;
	if (list_of(c, i, list, &n, why) < 0)
		return -1;
	*v = n ? list[n - 1] : -1;
	return 0;
}

/* flag(i): 1 when value i is True; 0 when it is not, and where it is left out. */
static int flag(const struct cost_call *c, int64_t i, int64_t *v, char why[EXPR_WHY])
{
	bool b = false;
	if (!op_arg_bool(&c->args, i, &b) && (op_arg(&c->args, i)->concrete.n || !c->args.has_concrete))
		return rule_fns_fail(why, "the value of input %lld was not recorded", i);
	*v = b;
	return 0;
}

static int fn_constant(const struct cost_call *c, struct str name, const int64_t *a, unsigned n, int64_t *v, char why[EXPR_WHY])
{
	*v = str_eqc(name, "out") ? OUT : NO_ARG;
	return 0;
}

static int fn_data(const struct cost_call *c, struct str name, const int64_t *a, unsigned n, int64_t *v, char why[EXPR_WHY])
{
	return failed(why, "depends on the values in the tensors");
}

/* batch_pairs, batch_keys, batch_decode_pairs, batch_decode_keys */
static int fn_batch(const struct cost_call *c, struct str name, const int64_t *a, unsigned n, int64_t *v, char why[EXPR_WHY])
{
	const struct op_batch *b = &c->facts->batch;
	bool decode = str_has(name, STR("decode")), pairs = str_ends(name, STR("pairs"));
	*v = decode ? (pairs ? b->decode_pairs : b->decode_keys) : pairs ? b->pairs : b->keys;
	return *v > 0 ? 0 : failed(why, "the lengths of the cached sequences are values in tensors, which were not recorded, and no range of the "
	                                "server around the op states their sums");
}

static int fn_rank(const struct cost_call *c, struct str name, const int64_t *a, unsigned n, int64_t *v, char why[EXPR_WHY])
{
	const struct op_tensor *t;
	return tensor_of(c, a[0], &t, why) < 0 ? -1 : (*v = t->rank, 0);
}

static int fn_bytes(const struct cost_call *c, struct str name, const int64_t *a, unsigned n, int64_t *v, char why[EXPR_WHY])
{
	int64_t k;
	return rule_fns_count(c, a[0], &k, why) < 0 ? -1 : rule_fns_bytes_of(c, k, a[0], name.n == 2 ? AS_FLOAT : AS_IS, v, why);
}

/* ranked(i): 1 for a tensor with dimensions. */
static int fn_ranked(const struct cost_call *c, struct str name, const int64_t *a, unsigned n, int64_t *v, char why[EXPR_WHY])
{
	const struct op_tensor *t = op_arg_tensor(&c->args, a[0]);
	*v = t && t->rank > 0;
	return 0;
}

/* test(i): a truth value is a byte; in place it is written to the tensor that was tested, in its type. */
static int fn_test(const struct cost_call *c, struct str name, const int64_t *a, unsigned n, int64_t *v, char why[EXPR_WHY])
{
	int64_t k;
	if (rule_fns_count(c, a[0], &k, why) < 0)
		return -1;
	return in_place(c) ? rule_fns_bytes_of(c, k, 0, AS_IS, v, why) : (*v = k, 0);
}

/* hit(i, n): how many elements of i an op writes that names n of them: in place no more than these, else all of a new tensor. */
static int fn_hit(const struct cost_call *c, struct str name, const int64_t *a, unsigned n, int64_t *v, char why[EXPR_WHY])
{
	if (rule_fns_count(c, a[0], v, why) < 0)
		return -1;
	if (in_place(c) && a[1] < *v)
		*v = a[1];
	return 0;
}

/* The others are one call each. */
#define FN(id, call) \
	static int fn_##id(const struct cost_call *c, struct str name, const int64_t *a, unsigned n, int64_t *v, char why[EXPR_WHY]) \
	{ \
		return call; \
	}
FN(elements, rule_fns_count(c, a[0], v, why))
FN(by, rule_fns_bytes_of(c, a[0], a[1], name.n == 3 ? AS_FLOAT : AS_IS, v, why))
FN(new, (*v = in_place(c) ? 0 : a[0], 0))
FN(dims, dims(c, name.p[0], a, v, why))
FN(has, (*v = op_arg(&c->args, a[0])->n_tensors > 0, 0))
FN(count, (*v = op_arg(&c->args, a[0])->n_tensors, 0))
FN(flag, flag(c, a[0], v, why))
FN(value, rule_fns_value(c, a, n, v, why))
FN(prod, product_of(c, a[0], v, why))
FN(given, (*v = op_arg(&c->args, a[0])->concrete.n > 0, 0))
FN(coded, coded(c, a, v, why))
FN(last, last(c, a[0], v, why))
FN(red, reduced(c, a[0], a[1], v, why))
FN(size, resized(c, a[0], a[1], v, why))
FN(window, window_elements(c, a[0], v, why))
FN(pool, pooled(c, a, v, why))
FN(complex, (*v = dtype_kind(rule_result_type(c)) == DTYPE_KIND_COMPLEX ? a[0] : 1, 0))
#undef FN

/* With how many arguments, at least and at most. */
static const struct rule_fns_function {
	const char *name;
	unsigned least, most;
	int (*run)(const struct cost_call *c, struct str name, const int64_t *a, unsigned n, int64_t *v, char why[EXPR_WHY]);
} functions[] = {
	{"B", 1, 1, fn_bytes},        {"E", 1, 1, fn_elements},  {"by", 2, 2, fn_by},       {"D", 2, 2, fn_dims},
	{"out", 0, 0, fn_constant},   {"BF", 1, 1, fn_bytes},    {"byf", 2, 2, fn_by},      {"after", 2, 2, fn_dims},
	{"lead", 2, 2, fn_dims},      {"R", 1, 1, fn_rank},      {"has", 1, 1, fn_has},     {"count", 1, 1, fn_count},
	{"flag", 1, 1, fn_flag},      {"I", 1, 2, fn_value},     {"prod", 1, 1, fn_prod},   {"given", 1, 1, fn_given},
	{"coded", 3, 3, fn_coded},    {"last", 1, 1, fn_last},   {"data", 0, 0, fn_data},   {"red", 2, 2, fn_red},
	{"size", 2, 2, fn_size},      {"window", 1, 1, fn_window}, {"pool", 6, 6, fn_pool}, {"cx", 1, 1, fn_complex},
	{"none", 0, 0, fn_constant},  {"test", 1, 1, fn_test},   {"hit", 2, 2, fn_hit},     {"new", 1, 1, fn_new},
	{"ranked", 1, 1, fn_ranked},  {"batch_pairs", 0, 0, fn_batch}, {"batch_keys", 0, 0, fn_batch},
	{"batch_decode_pairs", 0, 0, fn_batch}, {"batch_decode_keys", 0, 0, fn_batch},
};

static const struct rule_fns_function *function_find(struct str name, unsigned n, char why[EXPR_WHY])
{
	for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
		if (n >= functions[i].least && n <= functions[i].most && str_eqc(name, functions[i].name))
			return &functions[i];
	snprintf(why, EXPR_WHY, "no function '%.*s' with %u arguments", (int)(name.n < 40 ? name.n : 40), name.p, n);
	return NULL;
}

int rule_function(void *call, struct str name, const int64_t *a, unsigned n, int64_t *v, char why[EXPR_WHY])
{
	const struct rule_fns_function *f = function_find(name, n, why);
	return f ? f->run(call, name, a, n, v, why) : -1;
}

int rule_function_check(struct str name, unsigned n, char why[EXPR_WHY])
{
	return function_find(name, n, why) ? 0 : -1;
}
