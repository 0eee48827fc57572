/* conv1d and conv2d (PyProf's conv.py). FLOPs and bytes are Python floats: they are divided by the groups. */
#include "predecessors/pyprof/op/class.h"

static const char *const ops[] = {"conv1d", "conv2d", NULL};
static const char *const auxiliary[] = {"nchwToNhwc", "nhwcToNchw", "OffsetsKernel", "generateWinogradTilesKernel", "winogradWgradData",
                                        "winogradWgradOutput", "winogradWgradDelta", "compute_gemm_pointers", "flip_filter",
                                        "fft2d_r2c_", "fft2d_c2r_", "fft1d_r2c", "fft1d_c2r", "scaleTensor_kernel", NULL};
static const char *const main_kernels[] = {"_s884cudnn_", "_s1688cudnn_", "_scudnn_", "2d_grouped_direct_kernel",
                                           "cudnn::detail::implicit_convolve_sgemm", "cudnn::detail::dgrad2d_alg1_1",
                                           "cudnn::detail::wgrad_alg0_engine", "cudnn::detail::dgrad_engine",
                                           "dgrad_1x1_stride_2x2", "spatialDepthwiseConvolutionUpdateOutput",
                                           "winograd3x3Kernel", "_sgemm_", "fermiPlusCgemmLDS128_batched", "_gcgemm_", NULL};
static const char *const whole[] = {"2d_grouped_direct_kernel", "spatialDepthwiseConvolutionUpdateOutput", NULL};

struct pyprof_conv_conv {
	int64_t n, c, h, w, k, p, q, r, s, ph, pw, u, v, dh, dw, g;
};

/* An argument that is one number or one for each dimension. `lists`: whether a list is as good as a tuple. */
static bool read_pair(const struct pyprof_marker *m, unsigned at, const char *name, int64_t otherwise, unsigned n, int64_t v[2])
{
	const struct pyprof_arg *a = at < m->n && !m->arg[at].name.n ? &m->arg[at] : pyprof_named(m, name);
	v[0] = v[1] = otherwise;
	if (!a)
		return true;
	if (a->kind == PYPROF_INT) {
		v[0] = v[1] = a->i;
		return true;
	}
	if (a->kind != PYPROF_SEQ || !a->seq_of_ints || (n == 2 && (a->seq_is_list || a->n_seq != 2)) || !a->n_seq)
		return false;
	v[0] = a->seq[0];
	v[1] = n == 2 ? a->seq[1] : a->seq[0];
	return true;
}

/* int(1 + (in + 2 pad - ((filter - 1) dilation + 1)) / stride) */
static int64_t pyprof_conv_out_size(struct pyprof_model *out, int64_t in, int64_t pad, int64_t filter, int64_t dilation, int64_t stride)
{
	int64_t covered = pyprof_add(out, pyprof_mul(out, filter - 1, dilation), 1);
	int64_t span = pyprof_add(out, pyprof_add(out, in, pyprof_mul(out, 2, pad)), -covered);
	return pyprof_add(out, span, stride) / stride;
}

static int read_conv(const struct pyprof_call *c, struct pyprof_model *out, struct pyprof_conv_conv *v)
{
	const struct pyprof_marker *m = c->marker;
	bool two = str_eqc(m->op, "conv2d");
	REQUIRE(out, str_eqc(m->mod, "torch.nn.functional") && (two || str_eqc(m->op, "conv1d")), "conv1d or conv2d of torch.nn.functional");
	REQUIRE(out, m->n >= 2 && m->n <= 7, "convolution with 2 to 7 arguments");
	const struct pyprof_arg *x = &m->arg[0], *w = &m->arg[1];
	unsigned rank = two ? 4 : 3;
	REQUIRE(out, pyprof_is_tensor(x) && pyprof_is_tensor(w) && x->rank == rank && w->rank == rank, "convolution of two tensors");
	REQUIRE(out, str_eq(x->dtype, w->dtype), "convolution: equal types");
	int64_t stride[2], pad[2], dilation[2], groups[2];
	REQUIRE(out, read_pair(m, 3, "stride", 1, two + 1u, stride) && read_pair(m, 4, "padding", 0, two + 1u, pad) &&
	                     read_pair(m, 5, "dilation", 1, two + 1u, dilation) &&
	                     read_pair(m, m->n == 7 ? 6 : UINT32_MAX, "groups", 1, two + 1u, groups),
	        "convolution: numbers or tuples for stride, padding, dilation, groups");
	*v = (struct pyprof_conv_conv){.n = x->shape[0], .c = x->shape[1], .h = two ? x->shape[2] : 1, .w = x->shape[rank - 1], .k = w->shape[0],
	                               .r = two ? w->shape[2] : 1, .s = w->shape[rank - 1], .ph = two ? pad[0] : 0, .pw = pad[1],
	                               .u = two ? stride[0] : 1, .v = stride[1], .dh = two ? dilation[0] : 1, .dw = dilation[1], .g = groups[0]};
	REQUIRE(out, two ? v->g >= 1 && v->c == pyprof_mul(out, w->shape[1], v->g) : v->g == 1 && v->c == w->shape[1],
	        "convolution: channels that fit the groups (one for conv1d)");
	REQUIRE(out, v->u > 0 && v->v > 0, "convolution: a stride above 0");
	v->p = pyprof_conv_out_size(out, v->h, v->ph, v->r, v->dh, v->u);
	v->q = pyprof_conv_out_size(out, v->w, v->pw, v->s, v->dw, v->v);
	REQUIRE(out, (v->h != 1 || v->p == 1) && (v->w != 1 || v->q == 1), "convolution: an output of 1 for an input of 1");
	return 0;
}

static void put_params(struct pyprof_model *out, const struct pyprof_conv_conv *v, struct str dtype)
{
	const struct {
		const char *key;
		int64_t value;
	} list[] = {{"N", v->n}, {"C", v->c}, {"H", v->h}, {"W", v->w}, {"K", v->k}, {"P", v->p}, {"Q", v->q}, {"R", v->r}, {"S", v->s},
	            {"ph", v->ph}, {"pw", v->pw}, {"U", v->u}, {"V", v->v}, {"dh", v->dh}, {"dw", v->dw}, {"g", v->g}};
	for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
		pyprof_put_int(out, list[i].key, list[i].value);
	pyprof_put_type(out, dtype);
}

/* A kernel that does all groups. */
static void whole_cost(struct pyprof_model *out, const struct pyprof_conv_conv *v, int size)
{
	const int64_t macs[] = {2, v->n, v->k, v->p, v->q, v->c, v->r, v->s}, x[] = {v->n, v->c, v->h, v->w},
	              w[] = {v->k, v->c, v->r, v->s}, y[] = {v->n, v->k, v->p, v->q};
	double filter = (double)pyprof_product(out, w, 4) / (double)v->g;
	out->flops = pyprof_float((double)pyprof_product(out, macs, 8) / (double)v->g);
	out->bytes = pyprof_float(((double)pyprof_product(out, x, 4) + filter + (double)pyprof_product(out, y, 4)) * size);
}

/* A kernel that does one of several groups: everything from channels that are floats already. */
static void group_cost(struct pyprof_model *out, const struct pyprof_conv_conv *v, int size)
{
	double n = (double)v->n, c = (double)v->c / (double)v->g, k = (double)v->k / (double)v->g, p = (double)v->p, q = (double)v->q;
	double r = (double)v->r, s = (double)v->s, h = (double)v->h, w = (double)v->w;
	out->flops = pyprof_float(2 * n * k * p * q * c * r * s);
	out->bytes = pyprof_float((n * c * h * w + k * c * r * s + n * k * p * q) * size);
}

static int pyprof_conv_model(const struct pyprof_call *c, struct pyprof_model *out)
{
	struct pyprof_conv_conv v;
	if (read_conv(c, out, &v) < 0)
		return -1;
	struct str dtype = c->marker->arg[0].dtype;
	int size = pyprof_size(dtype);
	REQUIRE(out, size, "convolution: a known type");
	if (!pyprof_contains(c->kernel, auxiliary)) {
		if (pyprof_contains(c->kernel, main_kernels)) {
			if (v.g == 1 || pyprof_contains(c->kernel, whole))
				whole_cost(out, &v, size);
			else
				group_cost(out, &v, size);
		} else if (str_has(c->kernel, STR("calc_bias_diff"))) {
			const int64_t y[] = {v.n, v.k, v.p, v.q};
			int64_t elements = pyprof_product(out, y, 4);
			out->flops = pyprof_int(elements);
			out->bytes = pyprof_int(pyprof_mul(out, 2 * size, elements));
		}
	}
	out->tc = pyprof_tensor_core(c, "884cudnn", "1688cudnn", '-');
	put_params(out, &v, dtype);
	return 0;
}

const struct pyprof_class pyprof_class_conv = {.ops = ops, .model = pyprof_conv_model};
