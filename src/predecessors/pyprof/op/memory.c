/* Ops that only move or make data, and apex's fused Adam (PyProf's memory.py, misc.py, randomSample.py, optim.py); last, what has
 * no formula: shapes and types, 0 FLOPs, 0 bytes. */
#include "predecessors/pyprof/op/class.h"

static bool pyprof_memory_is_torch(const struct pyprof_marker *m)
{
	return str_eqc(m->mod, "torch");
}
static bool pyprof_memory_is_tensor(const struct pyprof_marker *m)
{
	return str_eqc(m->mod, "Tensor");
}

static int fill_with(struct pyprof_model *out, const int64_t *dims, unsigned n, struct str dtype)
{
	int size = pyprof_tensor_size(dtype);
	REQUIRE(out, size, "a known type");
	pyprof_put_tensor(out, dims, n, dtype);
	out->bytes = pyprof_int(pyprof_mul(out, size, pyprof_product(out, dims, n)));
	return 0;
}

/* Sizes given one by one. */
static int fill_sizes(struct pyprof_model *out, const struct pyprof_marker *m)
{
	int64_t dims[PYPROF_RANK];
	unsigned n = 0;
	for (unsigned i = 0; i < m->n; i++)
		if (!m->arg[i].name.n && m->arg[i].kind == PYPROF_INT) {
			REQUIRE(out, n < PYPROF_RANK, "at most 32 sizes");
			dims[n++] = m->arg[i].i;
		}
	return fill_with(out, dims, n, STR("float"));
}

static int ones_zeros(const struct pyprof_call *c, struct pyprof_model *out)
{
	const struct pyprof_marker *m = c->marker;
	REQUIRE(out, (pyprof_memory_is_torch(m) || pyprof_memory_is_tensor(m)) && m->n, "ones or zeros of torch or Tensor");
	const struct pyprof_arg *a = &m->arg[0];
	if (!str_eqc(m->op, "ones") && !str_eqc(m->op, "zeros")) {
		REQUIRE(out, m->n == 1 && pyprof_is_tensor(a), "one tensor");
		return fill_with(out, a->shape, a->rank, a->dtype);
	}
	if (a->kind == PYPROF_INT)
		return fill_sizes(out, m);
	REQUIRE(out, m->n == 1 && a->kind == PYPROF_SEQ && a->seq_of_ints, "sizes");
	return fill_with(out, a->seq, a->n_seq, STR("float"));
}

static int pyprof_memory_fill(const struct pyprof_call *c, struct pyprof_model *out)
{
	const struct pyprof_marker *m = c->marker;
	REQUIRE(out, pyprof_memory_is_tensor(m) && m->n == 2 && pyprof_is_tensor(&m->arg[0]), "Tensor.fill_ with 2 arguments");
	return fill_with(out, m->arg[0].shape, m->arg[0].rank, m->arg[0].dtype);
}

static int full(const struct pyprof_call *c, struct pyprof_model *out)
{
	const struct pyprof_marker *m = c->marker;
	REQUIRE(out, pyprof_memory_is_torch(m) && m->n == 2 && m->arg[0].kind == PYPROF_SEQ && m->arg[0].seq_of_ints, "torch.full with sizes and a value");
	struct str type = m->arg[1].type;
	REQUIRE(out, str_eqc(type, "float") || str_eqc(type, "int"), "torch.full with a float or an integer");
	return fill_with(out, m->arg[0].seq, m->arg[0].n_seq, type);
}

static int copy(const struct pyprof_call *c, struct pyprof_model *out)
{
	const struct pyprof_marker *m = c->marker;
	REQUIRE(out, pyprof_memory_is_tensor(m) && m->n == 2, "Tensor.copy_ with 2 arguments");
	const struct pyprof_arg *to = &m->arg[0], *from = &m->arg[1];
	REQUIRE(out, pyprof_is_tensor(to) && pyprof_is_tensor(from) && pyprof_same_shape(to, from), "copy_: two tensors of one shape");
	int from_size = pyprof_size(from->dtype), to_size = pyprof_size(to->dtype);
	REQUIRE(out, from_size && to_size, "copy_: known types");
	pyprof_put_shape(out, "T", from);
	pyprof_put_type(out, from->dtype);
	pyprof_put_type(out, to->dtype);
	out->bytes = pyprof_int(pyprof_mul(out, from_size + to_size, pyprof_elements(out, from)));
	return 0;
}

static int clone(const struct pyprof_call *c, struct pyprof_model *out)
{
	const struct pyprof_marker *m = c->marker;
	REQUIRE(out, pyprof_memory_is_tensor(m) && m->n == 1 && pyprof_is_tensor(&m->arg[0]), "a method of Tensor without arguments");
	int size = pyprof_size(m->arg[0].dtype);
	REQUIRE(out, size, "a known type");
	pyprof_put_shape(out, "T", &m->arg[0]);
	pyprof_put_type(out, m->arg[0].dtype);
	out->bytes = pyprof_int(pyprof_mul(out, 2 * size, pyprof_elements(out, &m->arg[0])));
	return 0;
}

static int randperm(const struct pyprof_call *c, struct pyprof_model *out)
{
	const struct pyprof_marker *m = c->marker;
	REQUIRE(out, pyprof_memory_is_torch(m) && m->n == 1 && m->arg[0].kind == PYPROF_INT, "torch.randperm with 1 argument");
	int64_t n = m->arg[0].i;
	pyprof_put_int(out, "N", n);
	out->flops = pyprof_int(pyprof_mul(out, 3, n));
	out->bytes = pyprof_int(pyprof_mul(out, 8, n));
	return 0;
}

/* Weights, half-precision weights, two moments, gradient. */
static int adam(const struct pyprof_call *c, struct pyprof_model *out)
{
	const struct pyprof_marker *m = c->marker;
	REQUIRE(out, m->n == 12 || m->n == 14, "adam with 12 or 14 arguments");
	const struct pyprof_arg *w = &m->arg[0], *half = &m->arg[1], *g = &m->arg[4];
	for (unsigned i = 0; i < 5; i++)
		REQUIRE(out, pyprof_is_tensor(&m->arg[i]) && (i == 1 || pyprof_same_shape(w, &m->arg[i])), "adam: tensors of one shape");
	REQUIRE(out, pyprof_same_shape(w, half) || (half->rank == 1 && half->shape[0] == 0), "adam: weights of half precision, or none");
	REQUIRE(out, str_eqc(w->dtype, "float32") && str_eq(w->dtype, m->arg[2].dtype) && str_eq(w->dtype, m->arg[3].dtype),
	        "adam: weights and moments of float32");
	int size = pyprof_size(g->dtype);
	REQUIRE(out, size, "adam: a known type");
	pyprof_put_shape(out, "T", w);
	pyprof_put_type(out, w->dtype);
	pyprof_put_type(out, g->dtype);
	int each = 6 * 4 + size * (str_eq(w->dtype, g->dtype) ? 1 : 2);
	out->bytes = pyprof_int(c->sub ? 0 : pyprof_mul(out, each, pyprof_elements(out, w)));
	return 0;
}

static int unsupported(const struct pyprof_call *c, struct pyprof_model *out)
{
	const struct pyprof_marker *m = c->marker;
	const char *separator = "";
	buf_cstr(&out->params, "T=[");
	for (unsigned i = 0; i < m->n; i++)
		if (str_eqc(m->arg[i].type, "tensor")) {
			buf_cstr(&out->params, separator);
			pyprof_put_dims(out, m->arg[i].shape, m->arg[i].rank, m->arg[i].shape_is_list);
			separator = ",";
		}
	buf_cstr(&out->params, "],[");
	separator = "";
	for (unsigned i = 0; i < m->n; i++)
		if (str_eqc(m->arg[i].type, "tensor")) {
			buf_printf(&out->params, "%s'" STR_FMT "'", separator, STR_ARG(m->arg[i].dtype));
			separator = ",";
		}
	buf_char(&out->params, ']');
	return 0;
}

static const char *const ones_zeros_ops[] = {"ones", "ones_like", "zero_", "zeros", "zeros_like", NULL};
static const char *const fill_ops[] = {"fill_", NULL}, *const full_ops[] = {"full", NULL}, *const copy_ops[] = {"copy_", NULL},
                        *const clone_ops[] = {"clone", "contiguous", NULL}, *const randperm_ops[] = {"randperm", NULL},
                        *const adam_ops[] = {"adam", NULL};
const struct pyprof_class pyprof_class_ones_zeros = {.ops = ones_zeros_ops, .not_in_2 = true, .model = ones_zeros};
const struct pyprof_class pyprof_class_fill = {.ops = fill_ops, .not_in_2 = true, .model = pyprof_memory_fill};
const struct pyprof_class pyprof_class_full = {.ops = full_ops, .not_in_2 = true, .model = full};
const struct pyprof_class pyprof_class_copy = {.ops = copy_ops, .model = copy};
const struct pyprof_class pyprof_class_clone = {.ops = clone_ops, .model = clone};
const struct pyprof_class pyprof_class_randperm = {.ops = randperm_ops, .model = randperm};
const struct pyprof_class pyprof_class_adam = {.ops = adam_ops, .model = adam};
const struct pyprof_class pyprof_class_unsupported = {.model = unsupported};
