#include "op/torch_flops.h"

#include "base/search.h"
#include "op/cost_call.h"
#include "op/op_args.h"

static int64_t all_of(const struct op_args *a, const struct op_tensor *t, unsigned first, unsigned end)
{
	int64_t n = 1;
	for (unsigned i = first; i < end; i++)
		n = cost_mul(n, op_dims(a, t)[i]);
	return n;
}

static int64_t elementwise(const struct op_args *a, unsigned at)
{
	const struct op_tensor *x = op_arg_tensor(a, 0);
	return x ? all_of(a, x, 0, x->rank) : 0;
}

/* Products of matrices, the first at argument `at`; dimensions before the last two of the first are a batch. */
static int64_t torch_flops_product(const struct op_args *a, unsigned at)
{
	const struct op_tensor *x = op_arg_tensor(a, at), *y = op_arg_tensor(a, at + 1);
	if (!x || !y || !x->rank || !y->rank || op_dims(a, x)[x->rank - 1] == 0)
		return 0;
	unsigned batch = x->rank > 2 ? x->rank - 2 : 0;
	if (all_of(a, x, 0, batch) == 0)
		return 0;
	unsigned skip = batch < y->rank ? batch : y->rank;
	return cost_mul(2, cost_mul(all_of(a, x, 0, x->rank - 1), all_of(a, y, skip, y->rank)));
}

/* One output dimension; -1: torch's own arithmetic would wrap. */
static int64_t torch_flops_out_size(int64_t in, int64_t kernel, int64_t pad, int64_t dilation, int64_t stride)
{
	int64_t reach, v;
	if (__builtin_mul_overflow(dilation, kernel - 1, &reach) || __builtin_mul_overflow(pad, 2, &v) ||
	    __builtin_add_overflow(v, in, &v) || __builtin_sub_overflow(v, reach, &v) || v < 1)
		return COST_UNKNOWN;
	return (v - 1) / stride + 1;
}

static int64_t conv2d(const struct op_args *a, unsigned at)
{
	const struct op_tensor *x = op_arg_tensor(a, 0), *w = op_arg_tensor(a, 1);
	if (a->n < 7 || !x || !w || x->rank != 4 || w->rank != 4)
		return 0;
	if (!a->has_concrete)
		return COST_UNKNOWN;
	int64_t stride[2], pad[2], dilation[2], groups;
	unsigned n_stride, n_pad, n_dilation;
	if (!op_arg_ints(a, 3, stride, 2, &n_stride) || !op_arg_ints(a, 4, pad, 2, &n_pad) ||
	    !op_arg_ints(a, 5, dilation, 2, &n_dilation) || !op_arg_int(a, 6, &groups))
		return 0; /* padding "same" */
	if (n_stride != 2 || n_pad != 2 || n_dilation != 2 || stride[0] <= 0 || stride[1] <= 0 || groups <= 0)
		return 0;
	const int64_t *in = op_dims(a, x), *k = op_dims(a, w);
	int64_t h = torch_flops_out_size(in[2], k[2], pad[0], dilation[0], stride[0]), wd = torch_flops_out_size(in[3], k[3], pad[1], dilation[1], stride[1]);
	int64_t n = cost_mul(2, cost_mul(in[0], cost_mul(h, wd)));
	n = cost_mul(n, cost_mul(cost_mul(k[2], k[3]), cost_mul(in[1], k[0])));
	return n < 0 ? COST_UNKNOWN : n / groups;
}

static const struct {
	const char *name;
	int64_t (*flops)(const struct op_args *a, unsigned at);
	unsigned at;
} counted[] = {
	{"aten::conv2d", conv2d, 0},  {"aten::mm", torch_flops_product, 0},       {"aten::addmm", torch_flops_product, 1},
	{"aten::bmm", torch_flops_product, 0},    {"aten::baddbmm", torch_flops_product, 1},  {"aten::mul", elementwise, 0},
	{"aten::add", elementwise, 0},
};

bool torch_flops_counts(struct str op_name)
{
	return ANY_WHERE(i, 0, sizeof counted / sizeof counted[0], str_eqc(op_name, counted[i].name));
}

int64_t torch_flops(const struct op_facts *f)
{
	for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++) {
		if (!str_eqc(f->name, counted[i].name))
			continue;
		if (!f->dims.n)
			return COST_UNKNOWN;
		struct op_args a;
		char why[160];
		int64_t n = op_args_parse(&a, f, why) < 0 ? COST_UNKNOWN : counted[i].flops(&a, counted[i].at);
		op_args_release(&a);
		return n;
	}
	return 0;
}
