#include "analysis/names/names.h"
#include "detect/parts/op_siblings.h"
#include "detect/parts/shared.h"
#include "op/op_args.h"

/* Percent of the steps' time that adding the bias and its gradient take; below, the finding only says that it is there. */
static const double WORTH = 0.5;

static struct str conv_bias_arg_of(const struct profile *p, uint32_t span, enum arg_key key)
{
	return profile_str(p, profile_arg_id(p, p->span.args[span], key));
}

/* Reads the sizes of argument i into size[4] and returns its rank; 0 = not a tensor, -1 = not recorded. */
static int conv_bias_shape_of(const struct profile *p, uint32_t span, unsigned i, int64_t size[4])
{
	struct op_facts f = {.name = profile_str(p, p->span.name[span]), .dims = conv_bias_arg_of(p, span, ARG_INPUT_DIMS)};
	struct op_args a = {0};
	char why[160];
	int rank = f.dims.n && op_args_parse(&a, &f, why) == 0 ? 0 : -1;
	const struct op_tensor *t = rank == 0 ? op_arg_tensor(&a, i) : NULL;
	if (t) {
		rank = (int)(t->rank < 4 ? t->rank : 4);
		for (int k = 0; k < rank; k++)
			size[k] = op_dims(&a, t)[k];
	}
	op_args_release(&a);
	return rank;
}

/* Whether batch normalisation goes by running statistics, where that was recorded: then it does not subtract the mean of its input. */
static bool is_evaluating(const struct profile *p, uint32_t norm)
{
	enum { TRAINING = 5 };
	struct op_facts f = {.name = profile_str(p, p->span.name[norm]), .dims = conv_bias_arg_of(p, norm, ARG_INPUT_DIMS), .types = conv_bias_arg_of(p, norm, ARG_INPUT_TYPES),
	                     .concrete = conv_bias_arg_of(p, norm, ARG_INPUT_VALUES)};
	struct op_args a = {0};
	char why[160];
	bool training = true;
	if (op_args_parse(&a, &f, why) < 0 || !op_arg_bool(&a, TRAINING, &training))
		training = true;
	op_args_release(&a);
	return !training;
}

static bool is_conv(struct str s)
{
	return str_eq(s, STR("aten::conv1d")) || str_eq(s, STR("aten::conv2d")) || str_eq(s, STR("aten::conv3d")) ||
	       str_eq(s, STR("aten::conv_transpose1d")) || str_eq(s, STR("aten::conv_transpose2d")) || str_eq(s, STR("aten::conv_transpose3d"));
}

static struct str conv_bias_name_of(const struct profile *p, uint32_t span)
{
	return profile_str(p, p->span.name[span]);
}

/* The convolution whose result batch normalisation `norm` takes and whose bias it takes away again; ROW_NONE. Only its own counter (add_ of a
 * scalar) may come between. */
static uint32_t conv_before(const struct profile *p, const struct op_siblings *s, uint32_t norm)
{
	int64_t bias[4], input[4], counter[4];
	uint32_t conv = s->before[norm];
	if (conv != ROW_NONE && str_starts(conv_bias_name_of(p, conv), STR("aten::add")) && conv_bias_shape_of(p, conv, 0, counter) == 0)
		conv = s->before[conv];
	if (conv == ROW_NONE || !is_conv(conv_bias_name_of(p, conv)) || conv_bias_shape_of(p, conv, 2, bias) != 1 || conv_bias_shape_of(p, norm, 0, input) < 2 ||
	    is_evaluating(p, norm))
		return ROW_NONE;
	return bias[0] == input[1] ? conv : ROW_NONE;
}

struct conv_bias_work {
	const struct profile *p;
	struct findings *f;
	const struct step_time *w;
	uint8_t *of_conv;        /* by span: it is such a convolution, or inside one */
	struct places places;
	uint64_t unrecorded;     /* batch normalisations after a convolution without shapes */
};

static void conv_bias_find(struct conv_bias_work *x)
{
	const struct profile *p = x->p;
	struct op_siblings s;
	int64_t size[4];
	op_siblings_init(&s, p);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (p->span.kind[i] != SPAN_OP || !str_eq(conv_bias_name_of(p, i), STR("aten::batch_norm")) || !step_time_has(x->w, p->span.start_ns[i]))
			continue;
		uint32_t conv = conv_before(p, &s, i);
		x->unrecorded += conv_bias_shape_of(p, i, 0, size) < 0;
		if (conv == ROW_NONE)
			continue;
		x->of_conv[conv] = 1;
		places_add(&x->places, shared_stacks(x->f), conv_bias_name_of(p, conv), conv, 1, 0);
	}
	op_siblings_release(&s);
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (p->span.op[i] != ROW_NONE && p->span.op[i] < i)
			x->of_conv[i] |= x->of_conv[p->span.op[i]];
}

/* Kernels that add the bias in these convolutions, and kernels that sum up the gradient of the bias in the backward. */
static int64_t cost(struct conv_bias_work *x, uint64_t *kernels, struct intervals *when)
{
	const struct profile *p = x->p;
	const struct directions *dir = shared_directions(x->f);
	int64_t ns = 0;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		if (p->gpu_op.kind[g] != GPU_KERNEL || p->gpu_op.op[g] == ROW_NONE || !step_time_has(x->w, p->gpu_op.start_ns[g]))
			continue;
		enum kernel_class k = gpu_kernel(p, g)->class;
		uint32_t forward = dir->forward[g];
		bool adds = k == KERNEL_ELEMENTWISE && x->of_conv[p->gpu_op.op[g]];
		bool sums = k == KERNEL_REDUCE && forward != ROW_NONE && x->of_conv[forward];
		ns += adds || sums ? p->gpu_op.dur_ns[g] : 0;
		*kernels += adds || sums;
		if (adds || sums)
			intervals_add(when, p->gpu_op.start_ns[g], gpu_end(p, g));
	}
	return ns;
}

static void conv_bias_report(struct conv_bias_work *x)
{
	const struct step_time *w = x->w;
	uint64_t kernels = 0;
	struct intervals when = {0};
	int64_t ns = cost(x, &kernels, &when);
	struct buf evidence = {0};
	struct finding *d = findings_add(x->f, step_time_pct(w, ns) >= WORTH ? FINDING_LOW : FINDING_INFO);
	d->problem = arena_printf(&x->f->arena, "%.1f convolutions%s add a bias that the batch normalisation after them takes away again: "
	                          "%.1f %% of the %s", (double)x->places.events / w->n, w->a_step, step_time_pct(w, ns), w->time);
	buf_printf(&evidence, "Recorded shapes: a bias, then aten::batch_norm; %.1f kernels%s add it or sum up its gradient. ",
	           (double)kernels / w->n, w->a_step);
	finding_evidence(d, x->f, &evidence, &x->places, 3, w->n, true);
	finding_rests_on(d, w, x->places.events, ns);
	finding_covers_work(d, w, &when);
	finding_gain(d, w, ns, "kernels that add these biases, and reductions in the backward of these convolutions");
}

static void conv_bias_run(const struct profile *p, struct findings *f)
{
	struct conv_bias_work x = {.p = p, .f = f, .w = shared_steps(f)};
	x.of_conv = NEW_ARRAY(p->span.rows.n, uint8_t);
	conv_bias_find(&x);
	if (x.places.n)
		conv_bias_report(&x);
	else if (x.unrecorded)
		findings_missing(f, "shapes were not recorded");
	mem_free(x.of_conv);
	places_release(&x.places);
}

const struct detector detector_conv_bias = {
	.id = "conv-bias",
	.title = "A bias before batch normalisation",
	.why = "Batch normalisation subtracts the mean, and the bias with it: adding it and computing its gradient is for nothing.",
	.fix = "Make these convolutions with bias=False; for inference, fold the normalisation into the convolution (torch.nn.utils.fusion).",
	.disprove = "Something else uses the convolution's result, too; or the normalisation is in evaluation mode, where the bias counts.",
	.report = "conv",
	.where = DETECT_WINDOW,
	.run = conv_bias_run,
};
