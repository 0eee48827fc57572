/* matmul, addmm, mm, bmm (PyProf's blas.py). Matmul leaves the batch out of its bytes. */
#include "predecessors/pyprof/op/class.h"

static const char *const no_gemm[] = {"kernelPointwiseApply2", "reduce_1Block_kernel", "elementwise_kernel", NULL};
static const char *const no_gemm2[] = {"kernelPointwiseApply2", "reduce_1Block_kernel", "elementwise_kernel", "splitKreduce_kernel", NULL};
static const char *const matmul_kernels[] = {"kernelPointwiseApply2", "reduce_1Block_kernel", "elementwise_kernel", "dot_kernel",
                                             "gemm", "gemv", NULL};

/* size * b * (mn + mk + nk) and 2 b mnk */
static void pyprof_gemm_set_cost(struct pyprof_model *out, int64_t b, int64_t m, int64_t n, int64_t k, int64_t bytes_b, int size)
{
	int64_t mn = pyprof_mul(out, m, n);
	int64_t sum = pyprof_add(out, pyprof_add(out, mn, pyprof_mul(out, m, k)), pyprof_mul(out, n, k));
	out->flops = pyprof_int(pyprof_mul(out, 2, pyprof_mul(out, b, pyprof_mul(out, mn, k))));
	out->bytes = pyprof_int(pyprof_mul(out, size, pyprof_mul(out, bytes_b, sum)));
}

static bool pyprof_gemm_is_torch(const struct pyprof_marker *m, bool or_tensor)
{
	return str_eqc(m->mod, "torch") || (or_tensor && str_eqc(m->mod, "Tensor"));
}

/* A of rank `rank` times B; the last two dimensions are the matrices. */
static int pyprof_gemm_product(const struct pyprof_call *c, struct pyprof_model *out, const struct pyprof_arg *a, const struct pyprof_arg *b,
                               unsigned rank)
{
	REQUIRE(out, a && b && pyprof_is_tensor(a) && pyprof_is_tensor(b) && a->rank == rank && b->rank == rank, "product of two matrices");
	int64_t batch = rank == 3 ? a->shape[0] : 1, m = a->shape[rank - 2], k = a->shape[rank - 1], n = b->shape[rank - 1];
	REQUIRE(out, b->shape[rank - 2] == k && (rank == 2 || b->shape[0] == batch), "product: equal inner dimensions");
	REQUIRE(out, str_eq(a->dtype, b->dtype), "product: equal types");
	int size = pyprof_size(a->dtype);
	REQUIRE(out, size, "product: a known type");
	if (rank == 3)
		pyprof_put_int(out, "B", batch);
	pyprof_put_int(out, "M", n); /* as the library sees it: column by column */
	pyprof_put_int(out, "N", m);
	pyprof_put_int(out, "K", k);
	pyprof_put_type(out, a->dtype);
	out->tc = pyprof_tensor_core(c, "884gemm", "1688gemm", '0');
	pyprof_gemm_set_cost(out, batch, m, n, k, batch, size);
	return 0;
}

static int addmm(const struct pyprof_call *c, struct pyprof_model *out)
{
	const struct pyprof_marker *mk = c->marker;
	const struct pyprof_arg *v[3];
	unsigned n = 0;
	REQUIRE(out, pyprof_gemm_is_torch(mk, true), "addmm of torch or Tensor");
	for (unsigned i = 0; i < mk->n; i++) {
		const struct pyprof_arg *a = &mk->arg[i];
		if (a->name.n || (c->rules == PYPROF_2 && !str_eqc(a->type, "tensor")))
			continue;
		REQUIRE(out, n < 3, "addmm with 3 arguments");
		v[n++] = a;
	}
	REQUIRE(out, n == 3, "addmm with 3 arguments");
	REQUIRE(out, str_eq(v[0]->dtype, v[1]->dtype), "addmm: equal types");
	return pyprof_gemm_product(c, out, v[1], v[2], 2);
}

static int mm(const struct pyprof_call *c, struct pyprof_model *out)
{
	const struct pyprof_marker *mk = c->marker;
	REQUIRE(out, pyprof_gemm_is_torch(mk, false) && mk->n == 2, "torch.mm with 2 arguments");
	return pyprof_gemm_product(c, out, &mk->arg[0], &mk->arg[1], 2);
}

static int bmm(const struct pyprof_call *c, struct pyprof_model *out)
{
	const struct pyprof_marker *mk = c->marker;
	REQUIRE(out, pyprof_gemm_is_torch(mk, false) && pyprof_n_positional(mk) == 2, "torch.bmm with 2 arguments");
	return pyprof_gemm_product(c, out, pyprof_positional(mk, 0), pyprof_positional(mk, 1), 3);
}

/* torch.matmul's cases: a vector is a matrix of one row (A) or one column (B); the leading dimensions are broadcast. */
static int matmul_shape(struct pyprof_model *out, const struct pyprof_arg *a, const struct pyprof_arg *b, int64_t *batch, int64_t mnk[3])
{
	REQUIRE(out, a->rank && b->rank, "matmul of tensors with dimensions");
	mnk[0] = a->rank == 1 ? 1 : a->shape[a->rank - 2];
	mnk[1] = b->rank == 1 ? 1 : b->shape[b->rank - 1];
	mnk[2] = a->shape[a->rank - 1];
	REQUIRE(out, mnk[2] == (b->rank == 1 ? b->shape[0] : b->shape[b->rank - 2]), "matmul: equal inner dimensions");
	struct pyprof_arg lead[2] = {*a, *b};
	lead[0].rank = a->rank > 2 ? a->rank - 2 : 0;
	lead[1].rank = b->rank > 2 ? b->rank - 2 : 0;
	const struct pyprof_arg *both[] = {&lead[0], &lead[1]};
	int64_t dims[PYPROF_RANK];
	unsigned rank;
	REQUIRE(out, pyprof_broadcast(both, 2, dims, &rank), "matmul: batches that fit");
	*batch = pyprof_product(out, dims, rank);
	return 0;
}

static int matmul(const struct pyprof_call *c, struct pyprof_model *out)
{
	const struct pyprof_marker *mk = c->marker;
	REQUIRE(out, (str_eqc(mk->mod, "torch") && str_eqc(mk->op, "matmul")) || (str_eqc(mk->mod, "Tensor") && str_eqc(mk->op, "__matmul__")),
	        "torch.matmul or Tensor.__matmul__");
	REQUIRE(out, mk->n == 2, "matmul with 2 arguments");
	bool known = pyprof_contains(c->kernel, matmul_kernels) || (c->rules == PYPROF_2 && str_has(c->kernel, STR("splitKreduce_kernel")));
	REQUIRE(out, known, "matmul: a kernel of its lists");
	const struct pyprof_arg *a = &mk->arg[0], *b = &mk->arg[1];
	REQUIRE(out, pyprof_is_tensor(a) && pyprof_is_tensor(b) && str_eq(a->dtype, b->dtype), "matmul of two tensors of one type");
	int64_t batch, mnk[3];
	if (matmul_shape(out, a, b, &batch, mnk) < 0)
		return -1;
	int size = pyprof_size(a->dtype);
	REQUIRE(out, size, "matmul: a known type");
	pyprof_put_shape(out, "A", a);
	pyprof_put_shape(out, "B", b);
	pyprof_put_type(out, a->dtype);
	bool gemm = !pyprof_word_in(c->kernel, c->rules == PYPROF_2 ? no_gemm2 : no_gemm);
	if (gemm)
		pyprof_gemm_set_cost(out, batch, mnk[0], mnk[1], mnk[2], 1, size);
	else
		out->bytes = pyprof_int(pyprof_mul(out, 2 * size, pyprof_elements(out, a)));
	if (gemm && !str_eqc(c->kernel, "dot_kernel"))
		out->tc = pyprof_tensor_core(c, "884gemm", "1688gemm", '0');
	return 0;
}

static const char *const matmul_ops[] = {"__matmul__", "matmul", NULL};
static const char *const addmm_ops[] = {"addmm", "addmm_", NULL};
static const char *const mm_ops[] = {"mm", NULL};
static const char *const bmm_ops[] = {"bmm", NULL};
const struct pyprof_class pyprof_class_matmul = {.ops = matmul_ops, .model = matmul};
const struct pyprof_class pyprof_class_addmm = {.ops = addmm_ops, .model = addmm};
const struct pyprof_class pyprof_class_mm = {.ops = mm_ops, .model = mm};
const struct pyprof_class pyprof_class_bmm = {.ops = bmm_ops, .model = bmm};
