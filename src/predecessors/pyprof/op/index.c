/* Ops that pick, join and rearrange elements (PyProf's index_slice_join_mutate.py). */
#include "predecessors/pyprof/op/class.h"

static bool is_mod(const struct pyprof_marker *m, bool torch, bool tensor)
{
	return (torch && str_eqc(m->mod, "torch")) || (tensor && str_eqc(m->mod, "Tensor"));
}

/* The arguments without "out". */
static unsigned without_out(const struct pyprof_marker *m, struct pyprof_arg *v, unsigned max)
{
	unsigned n = 0;
	for (unsigned i = 0; i < m->n; i++)
		if (!str_eqc(m->arg[i].name, "out")) {
			if (n < max)
				v[n] = m->arg[i];
			n++;
		}
	return n;
}

static int pyprof_index_put(struct pyprof_model *out, const struct pyprof_arg *a, int *size)
{
	REQUIRE(out, a && pyprof_is_tensor(a), "a tensor");
	*size = pyprof_size(a->dtype);
	REQUIRE(out, *size, "a known type");
	pyprof_put_shape(out, "T", a);
	return 0;
}

static int pyprof_index_cat(const struct pyprof_call *c, struct pyprof_model *out)
{
	const struct pyprof_marker *m = c->marker;
	REQUIRE(out, is_mod(m, true, false) && m->n >= 2 && m->arg[0].dtype.p, "torch.cat of tensors");
	struct str dtype = m->arg[0].dtype;
	int size = pyprof_size(dtype);
	REQUIRE(out, size, "cat: a known type");
	int64_t e = 0;
	bool first = true;
	buf_cstr(&out->params, "T=[");
	for (unsigned i = 0; i < m->n; i++) {
		const struct pyprof_arg *a = &m->arg[i];
		if (!str_eqc(a->type, "tensor"))
			continue;
		REQUIRE(out, a->has_shape && str_eq(a->dtype, dtype), "cat: tensors of one type");
		e = pyprof_add(out, e, pyprof_elements(out, a));
		if (!first)
			buf_char(&out->params, ',');
		first = false;
		pyprof_put_dims(out, a->shape, a->rank, a->shape_is_list);
	}
	buf_cstr(&out->params, "],");
	pyprof_put_type(out, dtype);
	out->bytes = pyprof_int(c->sub ? 0 : pyprof_mul(out, 2 * size, e));
	return 0;
}

static int reshape(const struct pyprof_call *c, struct pyprof_model *out)
{
	const struct pyprof_marker *m = c->marker;
	int size;
	REQUIRE(out, is_mod(m, false, true) && m->n, "Tensor.reshape");
	if (pyprof_index_put(out, &m->arg[0], &size) < 0)
		return -1;
	pyprof_put_type(out, m->arg[0].dtype);
	return 0;
}

static int pyprof_index_gather(const struct pyprof_call *c, struct pyprof_model *out)
{
	struct pyprof_arg v[3];
	int size;
	REQUIRE(out, is_mod(c->marker, true, true) && without_out(c->marker, v, 3) == 3, "gather with 3 arguments");
	const struct pyprof_marker kept = {.arg = v, .n = 3};
	const struct pyprof_arg *a = pyprof_at_or_named(&kept, 0, "input");
	if (pyprof_index_put(out, a, &size) < 0)
		return -1;
	pyprof_put_type(out, a->dtype);
	out->bytes = pyprof_int(pyprof_mul(out, 2 * size, pyprof_elements(out, a)));
	return 0;
}

static int masked_scatter(const struct pyprof_call *c, struct pyprof_model *out)
{
	const struct pyprof_marker *m = c->marker;
	int size;
	REQUIRE(out, is_mod(m, false, true) && m->n == 3, "Tensor.masked_scatter_ with 3 arguments");
	const struct pyprof_arg *to = &m->arg[0], *mask = &m->arg[1], *from = &m->arg[2];
	REQUIRE(out, pyprof_is_tensor(to) && pyprof_is_tensor(mask) && pyprof_is_tensor(from), "masked_scatter_: three tensors");
	REQUIRE(out, str_eqc(mask->dtype, "uint8") && str_eq(to->dtype, from->dtype) && pyprof_same_shape(to, mask),
	        "masked_scatter_: a mask of uint8 and equal types");
	if (pyprof_index_put(out, to, &size) < 0)
		return -1;
	pyprof_put_type(out, to->dtype);
	out->bytes = pyprof_int(c->sub > 0 ? 0 : pyprof_mul(out, 2 * size + 1, pyprof_elements(out, to)));
	return 0;
}

static int nonzero(const struct pyprof_call *c, struct pyprof_model *out)
{
	const struct pyprof_marker *m = c->marker;
	int size;
	REQUIRE(out, is_mod(m, true, true) && m->n == 1, "nonzero with 1 argument");
	const struct pyprof_arg *a = &m->arg[0];
	if (pyprof_index_put(out, a, &size) < 0)
		return -1;
	pyprof_put_type(out, a->dtype);
	out->bytes = pyprof_int(c->sub > 0 ? 0 : pyprof_mul(out, size + 8 * (int64_t)a->rank, pyprof_elements(out, a)));
	return 0;
}

static int index_select(const struct pyprof_call *c, struct pyprof_model *out)
{
	struct pyprof_arg v[3];
	int size;
	REQUIRE(out, is_mod(c->marker, true, true) && without_out(c->marker, v, 3) == 3, "index_select with 3 arguments");
	const struct pyprof_marker kept = {.arg = v, .n = 3};
	const struct pyprof_arg *t = pyprof_at_or_named(&kept, 0, "input"), *d = pyprof_at_or_named(&kept, 1, "dim");
	const struct pyprof_arg *i = pyprof_at_or_named(&kept, 2, "index");
	REQUIRE(out, t && d && i && pyprof_is_tensor(i) && d->kind == PYPROF_INT, "index_select: a tensor, a dimension, indices");
	REQUIRE(out, str_eqc(i->dtype, "int64") && i->rank == 1, "index_select: a vector of int64");
	if (pyprof_index_put(out, t, &size) < 0)
		return -1;
	int64_t dim = d->i < 0 ? d->i + (int64_t)t->rank : d->i, e = 1;
	REQUIRE(out, dim >= 0 && dim < (int64_t)t->rank, "index_select: a dimension of the tensor");
	for (unsigned k = 0; k < t->rank; k++)
		e = pyprof_mul(out, e, k == (unsigned)dim ? i->shape[0] : t->shape[k]);
	pyprof_put_int(out, "D", d->i);
	pyprof_put_int(out, "I", i->shape[0]);
	pyprof_put_type(out, t->dtype);
	out->bytes = pyprof_int(pyprof_add(out, pyprof_mul(out, 2 * size, e), pyprof_mul(out, 8, i->shape[0])));
	return 0;
}

static int masked_select(const struct pyprof_call *c, struct pyprof_model *out)
{
	struct pyprof_arg v[2];
	int size;
	REQUIRE(out, is_mod(c->marker, true, true) && without_out(c->marker, v, 2) == 2, "masked_select with 2 arguments");
	const struct pyprof_marker kept = {.arg = v, .n = 2};
	const struct pyprof_arg *t = pyprof_at_or_named(&kept, 0, "input"), *m = pyprof_at_or_named(&kept, 1, "mask");
	REQUIRE(out, t && m && pyprof_is_tensor(m) && str_eqc(m->dtype, "uint8"), "masked_select: a mask of uint8");
	if (pyprof_index_put(out, t, &size) < 0)
		return -1;
	const struct pyprof_arg *both[] = {t, m};
	int64_t dims[PYPROF_RANK];
	unsigned rank;
	REQUIRE(out, pyprof_broadcast(both, 2, dims, &rank), "masked_select: a mask that fits");
	pyprof_put_shape(out, "M", m);
	pyprof_put_type(out, t->dtype);
	out->bytes = pyprof_int(pyprof_add(out, pyprof_mul(out, 2 * size, pyprof_elements(out, t)), pyprof_elements(out, m)));
	return 0;
}

static const char *const cat_ops[] = {"cat", NULL}, *const reshape_ops[] = {"reshape", NULL}, *const gather_ops[] = {"gather", NULL},
                        *const masked_scatter_ops[] = {"masked_scatter_", NULL}, *const nonzero_ops[] = {"nonzero", NULL},
                        *const index_select_ops[] = {"index_select", NULL}, *const masked_select_ops[] = {"masked_select", NULL};
const struct pyprof_class pyprof_class_cat = {.ops = cat_ops, .model = pyprof_index_cat};
const struct pyprof_class pyprof_class_reshape = {.ops = reshape_ops, .model = reshape};
const struct pyprof_class pyprof_class_gather = {.ops = gather_ops, .model = pyprof_index_gather};
const struct pyprof_class pyprof_class_masked_scatter = {.ops = masked_scatter_ops, .model = masked_scatter};
const struct pyprof_class pyprof_class_nonzero = {.ops = nonzero_ops, .model = nonzero};
const struct pyprof_class pyprof_class_index_select = {.ops = index_select_ops, .model = index_select};
const struct pyprof_class pyprof_class_masked_select = {.ops = masked_select_ops, .model = masked_select};
