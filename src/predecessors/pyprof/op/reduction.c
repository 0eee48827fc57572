/* sum, mean, norm, any and mse_loss (PyProf's reduction.py, misc.py, loss.py). */
#include "predecessors/pyprof/op/class.h"

static bool is_torch_or_tensor(const struct pyprof_marker *m)
{
	return str_eqc(m->mod, "torch") || str_eqc(m->mod, "Tensor");
}

static int pyprof_reduction_put(struct pyprof_model *out, const struct pyprof_arg *a, int64_t *elements, int *size)
{
	REQUIRE(out, a && pyprof_is_tensor(a), "a tensor");
	*size = pyprof_size(a->dtype);
	REQUIRE(out, *size, "a known type");
	*elements = pyprof_elements(out, a);
	pyprof_put_shape(out, "T", a);
	pyprof_put_type(out, a->dtype);
	return 0;
}

static int pyprof_reduction_sum(const struct pyprof_call *c, struct pyprof_model *out)
{
	int64_t e;
	int size;
	REQUIRE(out, is_torch_or_tensor(c->marker), "sum of torch or Tensor");
	if (pyprof_reduction_put(out, pyprof_at_or_named(c->marker, 0, "input"), &e, &size) < 0)
		return -1;
	out->flops = pyprof_int(e); /* for every kernel of the op */
	out->bytes = pyprof_int(c->sub ? 0 : pyprof_mul(out, size, e));
	return 0;
}

static int mean(const struct pyprof_call *c, struct pyprof_model *out)
{
	const struct pyprof_marker *m = c->marker;
	REQUIRE(out, is_torch_or_tensor(m) && pyprof_n_positional(m) <= 2, "mean of torch or Tensor");
	const struct pyprof_arg *given = pyprof_positional(m, 0);
	REQUIRE(out, given, "an input");
	struct pyprof_arg in = *given;
	if (c->rules == PYPROF_3 && !in.has_shape) { /* a number */
		in.rank = 0;
		in.dtype = in.type;
	} else {
		REQUIRE(out, pyprof_is_tensor(&in), "a tensor");
	}
	int size = c->rules == PYPROF_2 ? pyprof_size(in.dtype) : pyprof_tensor_size(in.dtype);
	REQUIRE(out, size, "mean: a known type");
	int64_t e = pyprof_elements(out, &in), moved = c->rules == PYPROF_2 ? e : pyprof_add(out, e, 1);
	out->flops = pyprof_int(c->sub ? 0 : pyprof_add(out, e, 1));
	out->bytes = pyprof_int(c->sub ? 0 : pyprof_mul(out, size, moved));
	pyprof_put_input(out, c, &in);
	return 0;
}

static int norm(const struct pyprof_call *c, struct pyprof_model *out)
{
	int64_t e;
	int size;
	REQUIRE(out, is_torch_or_tensor(c->marker) && c->marker->n, "norm of torch or Tensor");
	if (pyprof_reduction_put(out, &c->marker->arg[0], &e, &size) < 0)
		return -1;
	out->flops = pyprof_int(c->sub ? 0 : pyprof_add(out, pyprof_mul(out, 2, e), 1));
	out->bytes = pyprof_int(c->sub ? 0 : pyprof_mul(out, size, e));
	return 0;
}

static int pyprof_reduction_any(const struct pyprof_call *c, struct pyprof_model *out)
{
	int64_t e;
	int size;
	REQUIRE(out, str_eqc(c->marker->mod, "Tensor") && c->marker->n == 1, "Tensor.any without arguments");
	if (pyprof_reduction_put(out, &c->marker->arg[0], &e, &size) < 0)
		return -1;
	out->bytes = pyprof_int(pyprof_mul(out, size, e));
	return 0;
}

static int mse_loss(const struct pyprof_call *c, struct pyprof_model *out)
{
	const struct pyprof_marker *m = c->marker;
	REQUIRE(out, str_eqc(m->mod, "torch.nn.functional") && m->n == 3, "mse_loss of torch.nn.functional with 3 arguments");
	const struct pyprof_arg *x = pyprof_at_or_named(m, 0, "input"), *y = pyprof_at_or_named(m, 1, "target");
	const struct pyprof_arg *r = pyprof_at_or_named(m, 2, "reduction");
	REQUIRE(out, x && y && pyprof_is_tensor(x) && pyprof_is_tensor(y) && pyprof_same_shape(x, y) && str_eq(x->dtype, y->dtype),
	        "mse_loss: two tensors of one shape and type");
	static const char *const reductions[] = {"none", "mean", "sum", NULL};
	REQUIRE(out, r && r->kind == PYPROF_STR && pyprof_word_in(r->s, reductions), "mse_loss: a reduction");
	int64_t e;
	int size;
	if (pyprof_reduction_put(out, x, &e, &size) < 0)
		return -1;
	pyprof_put_text(out, "red", r->s);
	int64_t moved = pyprof_mul(out, (c->backward ? 3 : 2) + str_eqc(r->s, "none"), e);
	out->flops = pyprof_int(pyprof_add(out, pyprof_mul(out, 2, moved), 1));
	out->bytes = pyprof_int(pyprof_mul(out, size, moved));
	return 0;
}

static const char *const sum_ops[] = {"sum", NULL}, *const mean_ops[] = {"mean", NULL}, *const norm_ops[] = {"norm", NULL},
                        *const any_ops[] = {"any", NULL}, *const mse_loss_ops[] = {"mse_loss", NULL};
const struct pyprof_class pyprof_class_sum = {.ops = sum_ops, .model = pyprof_reduction_sum};
const struct pyprof_class pyprof_class_mean = {.ops = mean_ops, .model = mean};
const struct pyprof_class pyprof_class_norm = {.ops = norm_ops, .model = norm};
const struct pyprof_class pyprof_class_any = {.ops = any_ops, .model = pyprof_reduction_any};
const struct pyprof_class pyprof_class_mse_loss = {.ops = mse_loss_ops, .model = mse_loss};
