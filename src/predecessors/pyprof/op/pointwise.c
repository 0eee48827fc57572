/* Elementwise arithmetic (PyProf's pointwise.py of either version). */
#include "predecessors/pyprof/op/class.h"

#define UNARY                                                                                          \
	"abs", "abs_", "neg", "neg_", "reciprocal", "reciprocal_", "__abs__", "__neg__", "__invert__", "ceil", "ceil_", "clamp",  \
		"clamp_", "floor", "floor_", "frac", "frac_", "round", "round_", "sign", "sign_", "trunc", "trunc_"
#define TRANSCENDENTAL                                                                                 \
	"exp", "exp_", "exp1m", "exp1m_", "log", "log_", "log10", "log10_", "log1p", "log1p_", "log2", "log2_", "rsqrt", "rsqrt_", \
		"sqrt", "sqrt_", "acos", "acos_", "asin", "asin_", "atan", "atan_", "atan2", "atan2_", "cos", "cos_", "cosh",     \
		"cosh_", "sin", "sin_", "sinh", "sinh_", "tan", "tan_", "sigmoid", "sigmoid_", "tanh", "tanh_", "erf", "erf_",    \
		"erfc", "erfc_", "erfinv", "erfinv_"
#define COMPARISON                                                                                     \
	"lt", "lt_", "gt", "gt_", "ge", "ge_", "le", "le_", "eq", "eq_", "ne", "ne_", "__lt__", "__gt__", "__ge__", "__le__",      \
		"__eq__", "__ne__"
#define BINARY                                                                                         \
	"add", "add_", "div", "div_", "mul", "mul_", "remainder", "remainder_", "sub", "sub_", "__add__", "__sub__", "__mul__",    \
		"__floordiv__", "__truediv__", "__mod__", "__radd__", "__rsub__", "__rmul__", "__rdiv__", "__rtruediv__",         \
		"__rfloordiv__", "fmod", "fmod_", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__and__", "__or__",        \
		"__xor__", "__lshift__", "__rshift__", "__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__"
#define POWER "pow", "pow_", "__pow__", "__rpow__"
#define TERNARY "addcdiv", "addcdiv_", "addcmul", "addcmul_"

static const char *const ops[] = {UNARY, TRANSCENDENTAL, COMPARISON, BINARY, POWER, TERNARY, "digamma", "lerp", "lerp_", "mvlgamma", NULL};
static const char *const unary[] = {UNARY, NULL}, *const transcendental[] = {TRANSCENDENTAL, NULL}, *const comparison[] = {COMPARISON, NULL},
                        *const binary[] = {BINARY, COMPARISON, NULL}, *const power[] = {POWER, NULL}, *const ternary[] = {TERNARY, NULL};
static const char *const back_copies[] = {"add", "__add__", "sub", "__sub__", "__isub__", NULL};
static const char *const back_products[] = {"__mul__", "__imul__", "__rmul__", "div", "__truediv__", NULL};

enum { INPUTS = 4 };

/* A tensor as PyProf 3 sees it: a number is one without dimensions. */
struct input {
	struct pyprof_arg arg;
	int64_t elements, bytes;
};

static int read_inputs(const struct pyprof_call *c, struct pyprof_model *out, struct input v[INPUTS], unsigned *n)
{
	unsigned given = pyprof_n_positional(c->marker);
	REQUIRE(out, given <= INPUTS, "at most 4 inputs");
	for (*n = 0; *n < given; ++*n) {
		struct input *in = &v[*n];
		in->arg = *pyprof_positional(c->marker, *n);
		if (!str_eqc(in->arg.type, "tensor")) {
			REQUIRE(out, str_eqc(in->arg.type, "float") || str_eqc(in->arg.type, "int"), "inputs that are tensors, floats or integers");
			in->arg.rank = 0;
			in->arg.dtype = in->arg.type;
		}
		int size = pyprof_tensor_size(in->arg.dtype);
		REQUIRE(out, size, "inputs of known types");
		in->elements = pyprof_elements(out, &in->arg);
		in->bytes = pyprof_mul(out, in->elements, size);
		if (*n)
			buf_char(&out->params, ';');
		pyprof_put_tensor(out, in->arg.shape, in->arg.rank, in->arg.dtype);
	}
	return 0;
}

/* Elements of the broadcast result, and the sum of the inputs' bytes. */
static int pyprof_pointwise_combine(struct pyprof_model *out, const struct input *v, unsigned n, int64_t *elements, int64_t *bytes)
{
	const struct pyprof_arg *args[INPUTS];
	int64_t dims[PYPROF_RANK];
	unsigned rank;
	*bytes = 0;
	for (unsigned i = 0; i < n; i++) {
		args[i] = &v[i].arg;
		*bytes = pyprof_add(out, *bytes, v[i].bytes);
	}
	REQUIRE(out, pyprof_broadcast(args, n, dims, &rank), "inputs whose shapes can be broadcast");
	*elements = pyprof_product(out, dims, rank);
	return 0;
}

static int binary_cost(const struct pyprof_call *c, struct pyprof_model *out, const struct input *v, unsigned n)
{
	int64_t e, in_bytes;
	REQUIRE(out, n == 2, "two inputs");
	if (pyprof_pointwise_combine(out, v, 2, &e, &in_bytes) < 0)
		return -1;
	int size = pyprof_tensor_size(v[0].arg.dtype);
	struct str op = c->marker->op;
	if (!c->backward) {
		int64_t out_bytes = pyprof_mul(out, e, pyprof_word_in(op, comparison) ? 1 : size);
		out->flops = pyprof_int(e);
		out->bytes = pyprof_int(pyprof_add(out, in_bytes, out_bytes));
	} else if (pyprof_word_in(op, back_copies)) {
		out->bytes = pyprof_int(pyprof_mul(out, 2 * (int64_t)size, e));
	} else {
		REQUIRE(out, pyprof_word_in(op, back_products), "an op whose backward pass it knows");
		out->flops = pyprof_int(e);
		out->bytes = pyprof_int(pyprof_mul(out, 3 * size, e));
	}
	return 0;
}

/* f FLOPs for each element of the result; every input is read, the result written. */
static int spread_cost(struct pyprof_model *out, const struct input *v, unsigned n, int64_t f)
{
	int64_t e, in_bytes;
	if (pyprof_pointwise_combine(out, v, n, &e, &in_bytes) < 0)
		return -1;
	out->flops = pyprof_int(pyprof_mul(out, f, e));
	out->bytes = pyprof_int(pyprof_add(out, in_bytes, pyprof_mul(out, e, pyprof_tensor_size(v[0].arg.dtype))));
	return 0;
}

static int ternary_cost(struct pyprof_model *out, const struct input *v, unsigned n)
{
	struct input tensor[INPUTS];
	unsigned tensors = 0;
	for (unsigned i = 0; i < n; i++)
		if (v[i].arg.rank)
			tensor[tensors++] = v[i];
	REQUIRE(out, tensors == 3, "three tensors");
	return spread_cost(out, tensor, 3, 3);
}

static int model3(const struct pyprof_call *c, struct pyprof_model *out)
{
	struct input v[INPUTS];
	unsigned n;
	struct str op = c->marker->op;
	REQUIRE(out, pyprof_word_in(op, ops), "an elementwise op");
	if (read_inputs(c, out, v, &n) < 0)
		return -1;
	bool dear = pyprof_word_in(op, transcendental);
	if (dear || pyprof_word_in(op, unary)) {
		REQUIRE(out, n == 1 || (n && !dear), "one input");
		out->flops = pyprof_int(pyprof_mul(out, dear ? 20 : 1, v[0].elements));
		out->bytes = pyprof_int(pyprof_mul(out, 2, v[0].bytes));
		return 0;
	}
	if (pyprof_word_in(op, binary))
		return binary_cost(c, out, v, n);
	if (pyprof_word_in(op, power)) {
		REQUIRE(out, n == 2, "two inputs");
		return spread_cost(out, v, n, 20);
	}
	REQUIRE(out, pyprof_word_in(op, ternary), "an op that it knows");
	return ternary_cost(out, v, n);
}

/* PyProf2. FLOPs per element moved, in halves. */
static const char *const halves1[] = {
	"__abs__", "__neg__", "__add__", "__sub__", "__mul__", "__radd__", "__rmul__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "abs",
	"abs_", "neg", "neg_", "add", "add_", "div", "div_", "mul", "mul_", "sub", "sub_", "exp", "exp_", "sign", "sign_", "trunc", "trunc_", "sin",
	"sin_", "cos", "cos_", "sinh", "sinh_", "cosh", "cosh_", "sqrt", "sqrt_", "rsqrt", "rsqrt_", COMPARISON, "ceil", "ceil_", "clamp", "clamp_",
	"floor", "floor_", "round", NULL};
static const char *const halves2[] = {"fmod", "fmod_", NULL};
static const char *const halves4[] = {"tanh", "tanh_", "sigmoid", "sigmoid_", "log", "log_", "log2", "log2_", "log10", "log10_", NULL};
static const char *const halves20[] = {"asin", "asin_", "acos", "acos_", "atan", "atan_", NULL};
static const char *const back_products2[] = {"__mul__", "__rmul__", "div", "__truediv__", NULL};

static struct pyprof_num flops2(struct pyprof_model *out, struct str op, int64_t moved)
{
	if (pyprof_word_in(op, halves1))
		return pyprof_float((double)moved / 2);
	int64_t each = pyprof_word_in(op, halves2) ? 1 : pyprof_word_in(op, halves4) ? 2 : pyprof_word_in(op, halves20) ? 10 : 0;
	return pyprof_int(pyprof_mul(out, each, moved));
}

static int moved2(const struct pyprof_call *c, struct pyprof_model *out, const struct pyprof_arg *const *t, unsigned n, int64_t *moved)
{
	int64_t e0 = n ? pyprof_elements(out, t[0]) : 1, dims[PYPROF_RANK];
	unsigned rank;
	if (n < 2) {
		*moved = pyprof_mul(out, 2, e0);
	} else if (n == 3) {
		REQUIRE(out, pyprof_same_shape(t[0], t[1]) && pyprof_same_shape(t[1], t[2]), "three tensors of one shape");
		*moved = pyprof_mul(out, 4, e0);
	} else if (pyprof_same_shape(t[0], t[1])) {
		struct str op = c->marker->op;
		bool copies = pyprof_word_in(op, back_copies);
		REQUIRE(out, !c->backward || copies || pyprof_word_in(op, back_products2), "an op whose backward pass it knows");
		*moved = pyprof_mul(out, c->backward && copies ? 2 : 3, e0);
	} else {
		REQUIRE(out, pyprof_broadcast(t, 2, dims, &rank), "inputs whose shapes can be broadcast");
		int64_t both = pyprof_add(out, e0, pyprof_elements(out, t[1]));
		*moved = pyprof_add(out, both, pyprof_product(out, dims, rank));
	}
	return 0;
}

static int model2(const struct pyprof_call *c, struct pyprof_model *out)
{
	const struct pyprof_marker *mk = c->marker;
	const struct pyprof_arg *t[3];
	unsigned n = 0;
	REQUIRE(out, pyprof_word_in(mk->op, ops), "an elementwise op");
	for (unsigned i = 0; i < mk->n; i++)
		if (!mk->arg[i].name.n && str_eqc(mk->arg[i].type, "tensor")) {
			REQUIRE(out, n < 3, "at most 3 tensors");
			t[n++] = &mk->arg[i];
			REQUIRE(out, str_eq(t[0]->dtype, t[n - 1]->dtype), "tensors of one type");
		}
	struct str dtype = n ? t[0]->dtype : STR("float32");
	int size = pyprof_size(dtype);
	REQUIRE(out, size, "tensors of a known type");
	int64_t moved;
	if (moved2(c, out, t, n, &moved) < 0)
		return -1;
	out->bytes = pyprof_int(pyprof_mul(out, size, moved));
	out->flops = flops2(out, mk->op, moved);
	buf_cstr(&out->params, n ? "T=[" : "T=[(1,)");
	for (unsigned i = 0; i < n; i++) {
		if (i)
			buf_char(&out->params, ',');
		pyprof_put_dims(out, t[i]->shape, t[i]->rank, t[i]->shape_is_list);
	}
	buf_cstr(&out->params, "],");
	pyprof_put_type(out, dtype);
	return 0;
}

static int pyprof_pointwise_model(const struct pyprof_call *c, struct pyprof_model *out)
{
	return c->rules == PYPROF_2 ? model2(c, out) : model3(c, out);
}

const struct pyprof_class pyprof_class_pointwise = {.ops = ops, .model = pyprof_pointwise_model};
