/* Convolutions of one to three dimensions, plain and transposed, forward and backward.
 *
 *   FLOPs = 2 N (product of the output's sizes) (product of the filter's sizes) w0 w1, w the weight; transposed: of the input's sizes
 *   out   = floor((in + 2 pad - dilation (filter - 1) - 1) / stride) + 1
 *   transposed: out = (in - 1) stride - 2 pad + dilation (filter - 1) + output_padding + 1
 * (torch/utils/flop_counter.py). Input and weight gradient are a convolution of the same FLOPs each. */
#include "op/cost_rules.h"

#include "base/buf.h"

enum { MAX_SPATIAL = 3, NONE = -1 };

/* Numbers of the arguments. The first matching row counts; a name that ends in '*' stands for all that begin so. */
static const struct conv_layout {
	const char *name;
	signed char input, weight, bias, stride, pad, dilation, groups, transposed, out_pad, is_transposed;
} layouts[] = {
	{"aten::conv_transpose*", 0, 1, 2, 3, 4, 7, 6, NONE, 5, 1},
	{"aten::convolution*", 0, 1, 2, 3, 4, 5, 8, 6, 7, 0},
	{"aten::_convolution", 0, 1, 2, 3, 4, 5, 8, 6, 7, 0},
	{"aten::cudnn_convolution_transpose", 0, 1, NONE, 4, 2, 5, 6, NONE, 3, 1},
	{"aten::cudnn_convolution_relu", 0, 1, 2, 3, 4, 5, 6, NONE, NONE, 0},
	{"aten::miopen_convolution_relu", 0, 1, 2, 3, 4, 5, 6, NONE, NONE, 0},
	{"aten::cudnn_convolution_add_relu", 0, 1, 4, 5, 6, 7, 8, NONE, NONE, 0},
	{"aten::miopen_convolution_add_relu", 0, 1, 4, 5, 6, 7, 8, NONE, NONE, 0},
	{"aten::cudnn_convolution", 0, 1, NONE, 3, 2, 4, 5, NONE, NONE, 0},
	{"aten::miopen_convolution_transpose", 0, 1, 2, 5, 3, 6, 7, NONE, 4, 1},
	{"aten::miopen_*", 0, 1, 2, 4, 3, 5, 6, NONE, NONE, 0},
	{"aten::mkldnn_convolution", 0, 1, 2, 4, 3, 5, 6, NONE, NONE, 0},
	{"mkldnn::_convolution_pointwise", 0, 1, 2, 4, 3, 5, 6, NONE, NONE, 0},
	{"aten::mps_convolution", 0, 1, 2, 4, 3, 5, 6, NONE, NONE, 0},
	{"aten::_mps_convolution", 0, 1, 2, 3, 4, 5, 6, NONE, NONE, 0},
	{"aten::_nnpack_spatial_convolution", 0, 1, 2, 4, 3, NONE, NONE, NONE, NONE, 0},
	{"aten::slow_conv_transpose*", 0, 1, 3, 4, 5, 7, NONE, NONE, 6, 1},
	{"aten::thnn_conv2d", 0, 1, 3, 4, 5, NONE, NONE, NONE, NONE, 0},
	{"aten::_slow_conv2d_forward", 0, 1, 3, 4, 5, NONE, NONE, NONE, NONE, 0},
	{"aten::slow_conv*", 0, 1, 3, 4, 5, 6, NONE, NONE, NONE, 0},
	{"aten::_conv_depthwise2d", 0, 1, 3, 4, 5, 6, NONE, NONE, NONE, 0},
	{"aten::conv_depthwise3d", 0, 1, 3, 4, 5, 6, NONE, NONE, NONE, 0},
	{"*", 0, 1, 2, 3, 4, 5, 6, NONE, NONE, 0}, /* conv1d, conv2d, conv3d */
};

struct conv {
	int64_t n, c, k, groups;           /* k: output channels */
	int64_t in[MAX_SPATIAL], out[MAX_SPATIAL], filter[MAX_SPATIAL], stride[MAX_SPATIAL], pad[MAX_SPATIAL], dilation[MAX_SPATIAL];
	unsigned d;
	bool transposed;
	enum dtype type;
	int64_t in_elements, weight_elements, out_elements, bias_bytes;
};

static const struct conv_layout *conv_layout_of(struct str name)
{
	for (const struct conv_layout *l = layouts;; l++) {
		struct str pattern = str_from(l->name);
		bool prefix = pattern.n && pattern.p[pattern.n - 1] == '*';
		pattern.n -= prefix;
		if (prefix ? str_starts(name, pattern) : str_eq(name, pattern))
			return l;
	}
}

/* Shapes of input and weight; the batch dimension may be missing. */
static bool shapes(struct cost_call *c, struct conv *v, const struct op_tensor *in, const struct op_tensor *w)
{
	v->d = w->rank - 2;
	if (w->rank < 3 || v->d > MAX_SPATIAL || (in->rank != w->rank && in->rank + 1 != w->rank)) {
		cost_unknown(c, "the input has %u dimensions and the weight %u", in->rank, w->rank);
		return false;
	}
	const int64_t *di = op_dims(&c->args, in) + (in->rank == w->rank), *dw = op_dims(&c->args, w);
	int64_t per_group = v->transposed ? dw[0] : dw[1];
	v->n = in->rank == w->rank ? di[-1] : 1;
	v->c = di[0];
	for (unsigned i = 0; i < v->d; i++)
		v->in[i] = di[1 + i], v->filter[i] = dw[2 + i];
	v->in_elements = in->elements;
	v->weight_elements = w->elements;
	int64_t groups = v->transposed ? v->groups : per_group > 0 && v->c % per_group == 0 ? v->c / per_group : -1;
	if (v->transposed ? per_group != v->c : groups < 0 || (v->groups && groups != v->groups)) {
		cost_unknown(c, "%lld channels of the input do not fit a weight for %lld", (long long)v->c, (long long)per_group);
		return false;
	}
	v->groups = groups ? groups : 1;
	v->k = v->transposed ? cost_mul(dw[1], v->groups) : dw[0];
	return true;
}

static bool parameter(struct cost_call *c, struct conv *v, int at, int64_t list[MAX_SPATIAL], int64_t otherwise, const char *what)
{
	int64_t given[MAX_SPATIAL];
	unsigned n = 0;
	bool absent = at == NONE || (c->args.has_concrete && !op_arg(&c->args, at)->concrete.n);
	if (!absent && (!op_arg_ints(&c->args, at, given, MAX_SPATIAL, &n) || (n > 1 && n != v->d))) {
		cost_unknown(c, "the %s was not recorded as %u numbers", what, v->d);
		return false;
	}
	for (unsigned i = 0; i < v->d; i++) {
		list[i] = n == 0 ? otherwise : given[n == 1 ? 0 : i];
		if (list[i] < 0 || list[i] > INT32_MAX) {
			cost_unknown(c, "the %s is impossible", what);
			return false;
		}
	}
	return true;
}

/* padding="same" keeps the size, "valid" is none. */
static bool padding(struct cost_call *c, struct conv *v, int at, bool *same)
{
	struct str text = op_arg(&c->args, at)->concrete;
	*same = str_eqc(text, "same");
	if (!*same && !str_eqc(text, "valid"))
		return parameter(c, v, at, v->pad, 0, "padding");
	memset(v->pad, 0, sizeof v->pad);
	return true;
}

/* Tensor `i` of the linked op; its rank, 0 = not known. */
static unsigned linked_sizes(const struct cost_call *c, unsigned i, int64_t d[MAX_SPATIAL + 2])
{
	struct op_facts f = {.name = c->facts->name, .dims = c->facts->linked};
	struct op_args a = {0};
	char why[160];
	unsigned rank = 0;
	const struct op_tensor *t = c->facts->linked.n && op_args_parse(&a, &f, why) == 0 ? op_arg_tensor(&a, i) : NULL;
	if (t && t->rank <= MAX_SPATIAL + 2 && t->elements >= 0) {
		memcpy(d, op_dims(&a, t), t->rank * sizeof *d);
		rank = t->rank;
	}
	op_args_release(&a);
	return rank;
}

/* The size of the result is that of its gradient, which the node of the backward got. */
static bool out_by_gradient(const struct cost_call *c, struct conv *v)
{
	int64_t g[MAX_SPATIAL + 2];
	if (linked_sizes(c, 0, g) != v->d + 2 || g[0] != v->n || g[1] != v->k)
		return false;
	v->out_elements = cost_mul(v->n, v->k);
	for (unsigned i = 0; i < v->d; i++) {
		v->out[i] = g[2 + i];
		v->out_elements = cost_mul(v->out_elements, v->out[i]);
	}
	return true;
}

static bool conv_out_size(struct cost_call *c, struct conv *v, const struct conv_layout *l)
{
	int64_t out_pad[MAX_SPATIAL];
	bool same;
	if (!c->args.has_concrete && out_by_gradient(c, v))
		return true;
	if (!c->args.has_concrete) {
		cost_unknown(c, "stride and padding were not recorded");
		return false;
	}
	if (!parameter(c, v, l->stride, v->stride, 1, "stride") || !padding(c, v, l->pad, &same) ||
	    !parameter(c, v, l->dilation, v->dilation, 1, "dilation") || !parameter(c, v, l->out_pad, out_pad, 0, "output padding"))
		return false;
	v->out_elements = cost_mul(v->n, v->k);
	for (unsigned i = 0; i < v->d; i++) {
		int64_t reach = cost_mul(v->dilation[i], v->filter[i] - 1);
		if (v->stride[i] < 1 || v->dilation[i] < 1 || reach < 0 || reach > INT64_MAX / 4 || v->in[i] > INT32_MAX) {
			cost_unknown(c, "impossible sizes");
			return false;
		}
		int64_t span = v->in[i] + 2 * v->pad[i] - reach - 1;
		v->out[i] = v->transposed ? (v->in[i] - 1) * v->stride[i] - 2 * v->pad[i] + reach + out_pad[i] + 1
		            : same        ? (v->in[i] + v->stride[i] - 1) / v->stride[i]
		            : span < 0    ? -1
		                          : span / v->stride[i] + 1;
		if (v->out[i] < 0) {
			cost_unknown(c, "the filter is larger than the padded input");
			return false;
		}
		v->out_elements = cost_mul(v->out_elements, v->out[i]);
	}
	return true;
}

/* One convolution; the formula of torch's flop_counter. */
static int64_t conv_flops_of(const struct conv *v)
{
	int64_t x = cost_mul(cost_mul(2, v->n), v->weight_elements);
	for (unsigned i = 0; i < v->d; i++)
		x = cost_mul(x, v->transposed ? v->in[i] : v->out[i]);
	return cost_mul(x, cost_complex_factor(v->type));
}

static void conv_describe(struct cost_call *c, const struct conv *v)
{
	struct cost *o = c->out;
	static const char *const names[3][MAX_SPATIAL] = {{"W"}, {"H", "W"}, {"D", "H", "W"}};
	static const char *const outs[3][MAX_SPATIAL] = {{"Q"}, {"P", "Q"}, {"O", "P", "Q"}};
	static const char *const filters[3][MAX_SPATIAL] = {{"S"}, {"R", "S"}, {"T", "R", "S"}};
	static const char *const rest[4][3][MAX_SPATIAL] = {
		{{"pw"}, {"ph", "pw"}, {"pd", "ph", "pw"}}, {{"V"}, {"U", "V"}, {"UD", "U", "V"}}, {{"dw"}, {"dh", "dw"}, {"dd", "dh", "dw"}}};
	const int64_t *const values[] = {v->pad, v->stride, v->dilation};
	struct buf b = {0};
	unsigned d = v->d - 1;
	buf_printf(&b, "N=%lld,C=%lld", (long long)v->n, (long long)v->c);
	for (unsigned i = 0; i < v->d && v->in_elements; i++) /* of a gradient's op they may not have been recorded */
		buf_printf(&b, ",%s=%lld", names[d][i], (long long)v->in[i]);
	buf_printf(&b, ",K=%lld", (long long)v->k);
	for (unsigned i = 0; i < v->d; i++)
		buf_printf(&b, ",%s=%lld", outs[d][i], (long long)v->out[i]);
	for (unsigned i = 0; i < v->d; i++)
		buf_printf(&b, ",%s=%lld", filters[d][i], (long long)v->filter[i]);
	for (unsigned p = 0; v->stride[0] && p < 3; p++)
		for (unsigned i = 0; i < v->d; i++)
			buf_printf(&b, ",%s=%lld", rest[p][d][i], (long long)values[p][i]);
	buf_printf(&b, ",g=%lld,%s%s", (long long)v->groups, v->transposed ? "transposed," : "", dtype_short(v->type));
	o->params = arena_str(c->arena, buf_view(&b));
	buf_release(&b);
	o->dtype = v->type;
	/* As a product: rows are output positions; of a transposed one, input positions. */
	o->b = v->groups;
	o->m = v->n;
	for (unsigned i = 0; i < v->d; i++)
		o->m = cost_mul(o->m, v->transposed ? v->in[i] : v->out[i]);
	o->n = v->k / v->groups;
	o->k = v->k > 0 && o->n > 0 ? (v->transposed ? v->c / v->groups : v->weight_elements / v->k) : 0;
	if (v->transposed) {
		o->n = v->c > 0 ? v->weight_elements / v->c : 0;
	}
	o->class = OP_CONV;
	/* Depthwise convolutions have kernels of their own, few of them on Tensor Cores. */
	o->tc_eligible = v->groups > 1 && v->groups == v->c ? TRI_UNKNOWN : cost_tc_eligible(v->type);
}

static void set_forward(struct cost_call *c, const struct conv *v)
{
	int64_t in = cost_bytes_of(v->in_elements, v->type), w = cost_bytes_of(v->weight_elements, v->type);
	bool bias = !c->rules->bias_is_free && c->direction == COST_FORWARD;
	cost_set_flops(c, conv_flops_of(v));
	cost_set_bytes(c, cost_add(cost_add(in, w), bias ? v->bias_bytes : 0), cost_bytes_of(v->out_elements, v->type),
	               "the type of the input was not recorded");
}

void cost_conv(struct cost_call *c)
{
	const struct conv_layout *l = conv_layout_of(c->name);
	const struct op_tensor *in = op_arg_tensor(&c->args, l->input), *w = op_arg_tensor(&c->args, l->weight);
	const struct op_tensor *bias = l->bias == NONE ? NULL : op_arg_tensor(&c->args, l->bias);
	struct conv v = {.transposed = l->is_transposed, .type = op_arg(&c->args, l->input)->dtype};
	c->out->formula = STR("2*N*P*Q*K*C/g*R*S, in three dimensions also *O*T; transposed: H*W for P*Q");
	if (!in || !w) {
		cost_unknown(c, "the shape of input %d was not recorded", in ? l->weight : l->input);
		return;
	}
	if (l->transposed != NONE && !op_arg_bool(&c->args, l->transposed, &v.transposed)) {
		cost_unknown(c, "whether it is transposed was not recorded");
		return;
	}
	if (l->groups != NONE && op_arg(&c->args, l->groups)->concrete.n &&
	    (!op_arg_int(&c->args, l->groups, &v.groups) || v.groups < 1)) {
		cost_unknown(c, "the number of groups is no positive number");
		return;
	}
	if (!shapes(c, &v, in, w) || !conv_out_size(c, &v, l))
		return;
	v.bias_bytes = bias ? cost_bytes_of(bias->elements, op_arg(&c->args, l->bias)->dtype) : 0;
	conv_describe(c, &v);
	set_forward(c, &v);
	if (c->direction == COST_BACKWARD)
		cost_double(c);
}

/* Numbers of the arguments of the backward ops. `both`: which gradients without a mask: 1 = input, 2 = weight. */
static const struct back_layout {
	const char *name;
	signed char grad, input, weight, mask, transposed, gradients;
} back_layouts[] = {
	{"aten::convolution_backward", 0, 1, 2, 10, 7, 0},
	{"aten::convolution_backward_overrideable", 0, 1, 2, 9, 6, 0},
	{"aten::cudnn_convolution_backward", 1, 0, 2, 10, NONE, 0},
	{"aten::cudnn_convolution_backward_input", 1, NONE, 2, NONE, NONE, 1},
	{"aten::cudnn_convolution_backward_weight", 1, 2, NONE, NONE, NONE, 2},
	{"aten::miopen_convolution_backward", 1, 0, 2, 9, NONE, 0},
	{"aten::miopen_convolution_backward_input", 1, NONE, 2, NONE, NONE, 1},
	{"aten::miopen_convolution_backward_weight", 1, 2, NONE, NONE, NONE, 2},
	{"aten::mkldnn_convolution_backward", 1, 0, 2, 7, NONE, 0},
};

/* The weight of an op that has only its gradient: of the op around it. */
static bool linked_weight(const struct cost_call *c, const struct back_layout *l, int64_t w[MAX_SPATIAL + 2], unsigned *rank, int64_t *elements)
{
	enum { WEIGHT = 2 }; /* of every such op around */
	*rank = l->weight == NONE ? linked_sizes(c, WEIGHT, w) : 0;
	*elements = 1;
	for (unsigned i = 0; i < *rank; i++)
		*elements = cost_mul(*elements, w[i]);
	return *rank > 0;
}

/* Where a tensor was not passed its size may have been, as a list of numbers. */
static bool sizes_of(const struct cost_call *c, int tensor, int list, int64_t d[MAX_SPATIAL + 2], unsigned *rank, int64_t *elements)
{
	const struct op_tensor *t = tensor == NONE ? NULL : op_arg_tensor(&c->args, tensor);
	if (t && t->rank <= MAX_SPATIAL + 2) {
		memcpy(d, op_dims(&c->args, t), t->rank * sizeof *d);
		*rank = t->rank;
		*elements = t->elements;
		return true;
	}
	if (tensor != NONE || !op_arg_ints(&c->args, list, d, MAX_SPATIAL + 2, rank))
		return false;
	*elements = 1;
	for (unsigned i = 0; i < *rank; i++)
		*elements = cost_mul(*elements, d[i]);
	return true;
}

static void backward_bytes(struct cost_call *c, const struct conv *v, unsigned gradients)
{
	int64_t in = cost_bytes_of(v->in_elements, v->type), w = cost_bytes_of(v->weight_elements, v->type);
	int64_t out = cost_bytes_of(v->out_elements, v->type), read = 0, written = 0;
	if (gradients & 1) {
		read = cost_add(out, w);
		written = in;
	}
	if (gradients & 2) {
		read = cost_add(read, cost_add(out, in));
		written = cost_add(written, w);
	}
	cost_set_bytes(c, read, written, "the type of the input was not recorded");
}

static const struct back_layout *back_layout_of(struct str name)
{
	const struct back_layout *l = back_layouts;
	while (!str_eqc(name, l->name) && l + 1 < back_layouts + sizeof back_layouts / sizeof back_layouts[0])
		l++;
	return l;
}

/* Which gradients are computed: bit 0 the input's, bit 1 the weight's; -1 = not recorded. */
static int gradients_of(const struct cost_call *c, const struct back_layout *l)
{
	bool mask[3];
	unsigned n;
	if (c->rules->both_gradients)
		return 3;
	if (l->gradients)
		return l->gradients;
	return op_arg_bools(&c->args, l->mask, mask, 3, &n) && n >= 2 ? mask[0] | mask[1] << 1 : -1;
}

void cost_conv_backward(struct cost_call *c)
{
	const struct back_layout *l = back_layout_of(c->name);
	int64_t g[MAX_SPATIAL + 2], in[MAX_SPATIAL + 2], w[MAX_SPATIAL + 2];
	unsigned rg = 0, ri = 0, rw = 0;
	int gradients = gradients_of(c, l);
	struct conv v = {.type = op_arg(&c->args, l->grad)->dtype};
	c->out->formula = STR("2*N*P*Q*K*C/g*R*S of each gradient, in three dimensions also *O*T; transposed: H*W for P*Q");
	if (!sizes_of(c, l->grad, 0, g, &rg, &v.out_elements) || (!linked_weight(c, l, w, &rw, &v.weight_elements) && !sizes_of(c, l->weight, 0, w, &rw, &v.weight_elements)) || rw < 3 ||
	    rg != rw || (sizes_of(c, l->input, 0, in, &ri, &v.in_elements) && ri != rw)) {
		cost_unknown(c, "the shapes of gradient, input and weight were not recorded, or do not fit each other");
		return;
	}
	if (l->transposed != NONE && !op_arg_bool(&c->args, l->transposed, &v.transposed)) {
		cost_unknown(c, "whether it is transposed was not recorded");
		return;
	}
	if (gradients < 0) {
		cost_unknown(c, "which gradients are computed was not recorded");
		return;
	}
	v.d = rw - 2;
	v.n = g[0], v.k = g[1];
	v.c = ri ? in[1] : v.transposed ? w[0] : w[1];
	int64_t part = v.transposed ? w[0] : w[1];
	bool fits = v.transposed ? v.c == w[0] && w[1] > 0 && v.k % w[1] == 0 : v.k == w[0] && part > 0 && v.c % part == 0;
	if (!fits || (ri && in[0] != g[0])) {
		cost_unknown(c, "the channels of gradient, input and weight do not fit each other");
		return;
	}
	v.groups = v.transposed ? v.k / w[1] : v.c / part;
	v.groups = v.groups ? v.groups : 1;
	for (unsigned i = 0; i < v.d; i++)
		v.out[i] = g[2 + i], v.in[i] = ri ? in[2 + i] : 0, v.filter[i] = w[2 + i];
	if (v.transposed && !ri) {
		cost_unknown(c, "the shape of the input was not recorded");
		return;
	}
	conv_describe(c, &v);
	int parts = (gradients & 1) + (gradients >> 1 & 1);
	c->out->parts = parts ? parts : 1;
	cost_set_flops(c, cost_mul(conv_flops_of(&v), parts));
	if (ri || !gradients)
		backward_bytes(c, &v, (unsigned)gradients);
	else
		cost_bytes_unknown(c, "the shape of the input was not recorded");
}
