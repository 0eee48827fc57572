/* torch.nn.functional.linear (PyProf's linear.py). Its bytes are m*n + m*k + n*k*size: the product was meant to cover all. */
#include "predecessors/pyprof/op/class.h"

static const char *const ops[] = {"linear", NULL};
static const char *const gemm_kernels[] = {"gemm", "gemv", "dot_kernel", "splitKreduce_kernel", "reduce_1Block_kernel", NULL};
static const char *const bias_kernels[] = {"kernelReduceContigDim", "kernelReduceNoncontigDim_shared", "elementwise_kernel",
                                           "reduce_kernel", "kernelPointwiseApply2", "2d_grouped_direct_kernel", NULL};
static const char *const bias_kernels2[] = {"kernelReduceContigDim", "kernelReduceNoncontigDim_shared", "elementwise_kernel",
                                            "reduce_kernel", "kernelPointwiseApply2", "legacy::elementwise_kernel",
                                            "scal_kernel", NULL};

struct shape {
	const struct pyprof_arg *x, *w;
	int64_t m, n, k;   /* n: rows of x, all leading dimensions */
	unsigned n_dims;   /* how many these are */
	int size;
};

static bool is_bias(const struct pyprof_call *c, const struct pyprof_arg *b, int64_t m)
{
	if (str_eqc(b->type, "NoneType"))
		return true;
	if (!str_eqc(b->type, "tensor") || !b->rank)
		return false;
	if (b->shape[0] == m)
		return c->rules == PYPROF_3 || b->rank == 1;
	return c->rules == PYPROF_3 && b->rank > 1 && b->shape[0] == 1 && b->shape[1] == m;
}

static int read_shape(const struct pyprof_call *c, struct pyprof_model *out, struct shape *s)
{
	const struct pyprof_marker *mk = c->marker;
	REQUIRE(out, str_eqc(mk->mod, "torch.nn.functional"), "linear of torch.nn.functional");
	REQUIRE(out, mk->n == 2 || mk->n == 3, "linear with 2 or 3 arguments");
	s->x = &mk->arg[0];
	s->w = &mk->arg[1];
	REQUIRE(out, pyprof_is_tensor(s->x) && pyprof_is_tensor(s->w) && s->x->rank && s->w->rank == 2, "linear of two tensors");
	s->m = s->w->shape[0];
	s->n_dims = s->x->rank - 1;
	s->k = s->x->shape[s->n_dims];
	s->n = pyprof_product(out, s->x->shape, s->n_dims);
	REQUIRE(out, s->k == s->w->shape[1], "linear: equal inner dimensions");
	REQUIRE(out, mk->n == 2 || is_bias(c, &mk->arg[2], s->m), "linear: a bias as long as the weight");
	REQUIRE(out, c->rules == PYPROF_3 || str_eq(s->x->dtype, s->w->dtype), "linear: equal types");
	s->size = pyprof_size(s->x->dtype);
	REQUIRE(out, s->size, "linear: a known type");
	return 0;
}

/* The rows of x, as a number when x has two dimensions. */
static void pyprof_linear_put_rows(struct pyprof_model *out, const char *key, const struct shape *s)
{
	if (s->n_dims == 1) {
		pyprof_put_int(out, key, s->x->shape[0]);
		return;
	}
	buf_printf(&out->params, "%s=", key);
	pyprof_put_dims(out, s->x->shape, s->n_dims, false);
	buf_char(&out->params, ',');
}

static void put_gemm(const struct pyprof_call *c, struct pyprof_model *out, const struct shape *s)
{
	if (!c->backward) {
		pyprof_put_int(out, "M", s->m);
		pyprof_linear_put_rows(out, "N", s);
		pyprof_put_int(out, "K", s->k);
	} else if (c->sub == 0) { /* gradient of the input */
		pyprof_put_int(out, "M", s->k);
		pyprof_linear_put_rows(out, "N", s);
		pyprof_put_int(out, "K", s->m);
	} else if (c->sub == 1) { /* of the weight */
		pyprof_put_int(out, "M", s->k);
		pyprof_put_int(out, "N", s->m);
		pyprof_linear_put_rows(out, "K", s);
	} else {
		pyprof_put_shape(out, "X", s->x);
		pyprof_put_shape(out, "W", s->w);
	}
}

static int pyprof_linear_model(const struct pyprof_call *c, struct pyprof_model *out)
{
	struct shape s;
	if (read_shape(c, out, &s) < 0)
		return -1;
	bool gemm = pyprof_contains(c->kernel, gemm_kernels) || (c->rules == PYPROF_3 && str_has(c->kernel, STR("cutlass")));
	int64_t mn = pyprof_mul(out, s.m, s.n);
	if (gemm) {
		bool counted = !c->backward || c->sub < 2;
		int64_t nk = pyprof_mul(out, s.n, s.k);
		int64_t bytes = pyprof_add(out, pyprof_add(out, mn, pyprof_mul(out, s.m, s.k)), pyprof_mul(out, nk, s.size));
		out->flops = pyprof_int(counted ? pyprof_mul(out, 2, pyprof_mul(out, mn, s.k)) : 0);
		out->bytes = pyprof_int(counted ? bytes : 0);
		out->op = STR("linear");
		out->tc = pyprof_tensor_core(c, "884gemm", NULL, '0');
		put_gemm(c, out, &s);
	} else {
		bool bias = c->rules == PYPROF_3 ? pyprof_contains(c->kernel, bias_kernels) : pyprof_word_in(c->kernel, bias_kernels2);
		REQUIRE(out, bias, "linear: a kernel of its lists");
		out->flops = pyprof_int(mn);
		out->bytes = pyprof_int(pyprof_mul(out, 2 * s.size, mn));
		out->op = STR("bias");
		pyprof_put_int(out, "M", s.m);
		pyprof_linear_put_rows(out, "N", &s);
	}
	pyprof_put_type(out, s.x->dtype);
	return 0;
}

const struct pyprof_class pyprof_class_linear = {.ops = ops, .model = pyprof_linear_model};
