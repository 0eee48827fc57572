/* One tensor in, one out, with a fixed factor: conversions, activations, softmax, dropout, batch norm; embedding (PyProf's
 * convert.py, activation.py, softmax.py, dropout.py, normalization.py, embedding.py). */
#include "predecessors/pyprof/op/class.h"

static bool is_functional(const struct pyprof_marker *m)
{
	return str_eqc(m->mod, "torch.nn.functional");
}

/* Checks the input, puts the parameters and gives elements and size. PyProf 3 knows bool here. */
static int read_input(const struct pyprof_call *c, struct pyprof_model *out, const struct pyprof_arg *a, int64_t *elements, int *size)
{
	REQUIRE(out, a && pyprof_is_tensor(a), "a tensor");
	*size = c->rules == PYPROF_2 ? pyprof_size(a->dtype) : pyprof_tensor_size(a->dtype);
	REQUIRE(out, *size, "a known type");
	*elements = pyprof_elements(out, a);
	pyprof_put_input(out, c, a);
	return 0;
}

static void pyprof_layers_set_cost(struct pyprof_model *out, int64_t flops_each, int64_t bytes_factor, int64_t elements, int size)
{
	out->flops = pyprof_int(pyprof_mul(out, flops_each, elements));
	out->bytes = pyprof_int(pyprof_mul(out, bytes_factor * size, elements));
}

static int pyprof_layers_convert(const struct pyprof_call *c, struct pyprof_model *out)
{
	const struct pyprof_marker *m = c->marker;
	REQUIRE(out, str_eqc(m->mod, "Tensor") && m->n == 1, "a method of Tensor without arguments");
	struct pyprof_arg in = m->arg[0];
	bool two = c->rules == PYPROF_2, tensor = str_eqc(in.type, "tensor");
	static const int64_t one[] = {1};
	if (!tensor) { /* a number */
		in.shape = one;
		in.rank = two;
		in.dtype = in.type;
	}
	struct str to = str_eqc(m->op, "to") ? in.dtype : m->op; /* "to" does not say */
	int from_size = two ? pyprof_size(in.dtype) : pyprof_tensor_size(in.dtype);
	int to_size = two ? pyprof_size(to) : pyprof_tensor_size(to);
	REQUIRE(out, from_size && to_size, "known types");
	out->bytes = pyprof_int(pyprof_mul(out, from_size + to_size, pyprof_elements(out, &in)));
	if (two) {
		pyprof_put_shape(out, "T", &in);
		pyprof_put_type(out, in.dtype);
		pyprof_put_type(out, to);
	} else {
		pyprof_put_tensor(out, in.shape, in.rank, in.dtype);
	}
	return 0;
}

static int activation(const struct pyprof_call *c, struct pyprof_model *out)
{
	const struct pyprof_marker *m = c->marker;
	int64_t e;
	int size;
	REQUIRE(out, is_functional(m) || str_eqc(m->mod, "torch") || str_eqc(m->mod, "Tensor"), "an activation of torch");
	if (read_input(c, out, pyprof_positional(m, 0), &e, &size) < 0)
		return -1;
	pyprof_layers_set_cost(out, 1, c->backward ? 3 : 2, e, size);
	return 0;
}

static int any_softmax(const struct pyprof_call *c, struct pyprof_model *out, int64_t flops_each)
{
	int64_t e;
	int size;
	REQUIRE(out, pyprof_n_positional(c->marker) <= 2, "at most 2 arguments");
	if (read_input(c, out, pyprof_positional(c->marker, 0), &e, &size) < 0)
		return -1;
	pyprof_layers_set_cost(out, c->rules == PYPROF_2 ? 0 : flops_each, c->backward ? 5 : 3, e, size);
	return 0;
}

static int softmax(const struct pyprof_call *c, struct pyprof_model *out)
{
	REQUIRE(out, is_functional(c->marker), "softmax of torch.nn.functional");
	return any_softmax(c, out, 40);
}

static int log_softmax(const struct pyprof_call *c, struct pyprof_model *out)
{
	struct str mod = c->marker->mod;
	bool other = c->rules == PYPROF_3 && (str_eqc(mod, "torch") || str_eqc(mod, "Tensor"));
	REQUIRE(out, is_functional(c->marker) || other, "log_softmax of torch.nn.functional");
	return any_softmax(c, out, 21);
}

static int dropout(const struct pyprof_call *c, struct pyprof_model *out)
{
	const struct pyprof_marker *m = c->marker;
	REQUIRE(out, is_functional(m) && m->n && pyprof_is_tensor(&m->arg[0]), "dropout of torch.nn.functional");
	int size = pyprof_size(m->arg[0].dtype);
	REQUIRE(out, size, "dropout: a known type");
	pyprof_layers_set_cost(out, 5, 2, pyprof_elements(out, &m->arg[0]), size);
	pyprof_put_shape(out, "T", &m->arg[0]);
	pyprof_put_type(out, m->arg[0].dtype);
	return 0;
}

static int batch_norm(const struct pyprof_call *c, struct pyprof_model *out)
{
	int64_t e;
	int size;
	if (read_input(c, out, c->marker->n ? &c->marker->arg[0] : NULL, &e, &size) < 0)
		return -1;
	pyprof_layers_set_cost(out, 8, c->sub > 0 ? 0 : c->backward ? 5 : 4, e, size);
	return 0;
}

static int embedding(const struct pyprof_call *c, struct pyprof_model *out)
{
	const struct pyprof_marker *m = c->marker;
	REQUIRE(out, is_functional(m) && m->n >= 2, "embedding of torch.nn.functional");
	const struct pyprof_arg *index = &m->arg[0], *table = &m->arg[1];
	REQUIRE(out, pyprof_is_tensor(index) && pyprof_is_tensor(table) && table->rank == 2, "embedding: indices and a matrix");
	bool two = c->rules == PYPROF_2;
	int index_size = two ? pyprof_size(index->dtype) : pyprof_tensor_size(index->dtype);
	int size = two ? pyprof_size(table->dtype) : pyprof_tensor_size(table->dtype);
	REQUIRE(out, index_size && size, "embedding: known types");
	int64_t n = pyprof_elements(out, index), values = pyprof_mul(out, n, table->shape[1]);
	int64_t forward = pyprof_add(out, pyprof_mul(out, n, index_size), pyprof_mul(out, 2 * size, values));
	out->bytes = pyprof_int(!c->backward ? forward : c->sub > 0 ? 0 : pyprof_mul(out, 3 * size, values));
	if (two) {
		pyprof_put_shape(out, "I", index);
		pyprof_put_type(out, index->dtype);
		pyprof_put_shape(out, "E", table);
		pyprof_put_type(out, table->dtype);
	} else {
		pyprof_put_input(out, c, index);
		buf_char(&out->params, ';');
		pyprof_put_input(out, c, table);
	}
	return 0;
}

static const char *const convert_ops[] = {"byte", "char", "double", "float", "half", "int", "long", "short", "to", NULL};
static const char *const activation_ops[] = {"celu", "elu", "elu_", "hardshrink", "hardtanh", "hardtanh_", "leaky_relu", "leaky_relu_",
                                             "logsigmoid", "prelu", "relu", "relu_", "relu6", "rrelu", "rrelu_", "selu", "sigmoid",
                                             "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold", "threshold_", NULL};
static const char *const softmax_ops[] = {"softmax", NULL}, *const log_softmax_ops[] = {"log_softmax", NULL},
                        *const dropout_ops[] = {"dropout", NULL}, *const batch_norm_ops[] = {"batch_norm", NULL},
                        *const embedding_ops[] = {"embedding", NULL};
const struct pyprof_class pyprof_class_convert = {.ops = convert_ops, .model = pyprof_layers_convert};
const struct pyprof_class pyprof_class_activation = {.ops = activation_ops, .model = activation};
const struct pyprof_class pyprof_class_softmax = {.ops = softmax_ops, .model = softmax};
const struct pyprof_class pyprof_class_log_softmax = {.ops = log_softmax_ops, .model = log_softmax};
const struct pyprof_class pyprof_class_dropout = {.ops = dropout_ops, .model = dropout};
const struct pyprof_class pyprof_class_batch_norm = {.ops = batch_norm_ops, .model = batch_norm};
const struct pyprof_class pyprof_class_embedding = {.ops = embedding_ops, .model = embedding};
