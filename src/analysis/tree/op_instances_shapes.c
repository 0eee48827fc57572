#include "analysis/tree/op_instances_work.h"
#include "base/search.h"
#include "op/op_args.h"

/* Sizes with letters, one letter a dimension. */
struct lettered {
	const char *type;
	const char *input[2], *output;
	unsigned spatial;          /* dimensions of a convolution; 0 = none */
};
static const struct lettered known[] = {
	{"conv1d", {"NCW", "KCS"}, "NKQ", 1},
	{"conv2d", {"NCHW", "KCRS"}, "NKPQ", 2},
	{"conv3d", {"NCDHW", "KCTRS"}, "NKOPQ", 3},
	{"linear", {"NK", "MK"}, "NM", 0},
};
static const char *const spatial_letters[] = {"", "W", "HW", "DHW"};

static const struct lettered *letters_of(struct str type)
{
	return ELEMENT_WHERE(i, known, sizeof known / sizeof known[0], str_eqc(type, known[i].type));
}

/* "<N:32, C:3>"; without letters where they do not fit. */
static void op_instances_shapes_put_sizes(struct buf *b, const int64_t *v, uint32_t n, const char *letters)
{
	bool fit = letters && strlen(letters) == n;
	buf_cstr(b, b->n ? "; <" : "<");
	for (uint32_t i = 0; i < n; i++) {
		if (i)
			buf_cstr(b, ", ");
		if (fit)
			buf_printf(b, "%c:", letters[i]);
		buf_i64(b, v[i]);
	}
	buf_char(b, '>');
}

static struct str in_arena(struct buf *b, struct arena *a)
{
	struct str out = arena_str(a, b->n ? buf_view(b) : (struct str){"", 0});
	buf_release(b);
	return out;
}

static struct str inputs_text(const struct op_args *args, const struct lettered *l, struct arena *a)
{
	struct buf b = {0};
	for (unsigned i = 0, tensor = 0; i < args->n; i++)
		for (uint32_t k = 0; k < args->arg[i].n_tensors; k++, tensor++) {
			const struct op_tensor *t = &args->tensor[args->arg[i].tensor + k];
			op_instances_shapes_put_sizes(&b, op_dims(args, t), t->rank, l && tensor < 2 ? l->input[tensor] : NULL);
		}
	return in_arena(&b, a);
}

static struct str types_text(const struct op_args *args, struct arena *a)
{
	struct buf b = {0};
	for (unsigned i = 0; i < args->n; i++) {
		enum dtype t = args->arg[i].n_tensors ? args->arg[i].dtype : DTYPE_UNKNOWN;
		if (t != DTYPE_UNKNOWN && !str_has(buf_view(&b), str_from(dtype_name(t))))
			buf_printf(&b, "%s%s", b.n ? ", " : "", dtype_name(t));
	}
	return in_arena(&b, a);
}

/* --- convolutions ----------------------------------------------------------------------------------------------- */

struct op_instances_shapes_conv {
	int64_t stride[3], padding[3], dilation[3], groups;
	bool stated;               /* any of these */
	bool unclear;              /* stated in words ("same"), or not in numbers */
};

/* A parameter: one number for all dimensions, or one for each. */
static void take_param(const struct op_args *args, const char *name, int place, unsigned spatial, int64_t *v, struct op_instances_shapes_conv *c)
{
	int at = op_arg_named(args, name);
	unsigned n = 0;
	if (at < 0)
		at = place;
	if ((unsigned)at >= args->n || (!args->arg[at].concrete.n && !args->arg[at].n_tensors))
		return;
	if (!op_arg_ints(args, at, v, 3, &n) || (n != 1 && n != spatial)) {
		c->unclear = true;
		return;
	}
	c->stated = true;
	for (unsigned i = n; i < spatial; i++)
		v[i] = v[0];
}

static struct op_instances_shapes_conv conv_params(const struct op_args *args, unsigned spatial)
{
	struct op_instances_shapes_conv c = {{1, 1, 1}, {0, 0, 0}, {1, 1, 1}, 1, false, false};
	int64_t groups[3] = {1, 1, 1};
	take_param(args, "stride", 3, spatial, c.stride, &c);
	take_param(args, "padding", 4, spatial, c.padding, &c);
	take_param(args, "dilation", 5, spatial, c.dilation, &c);
	take_param(args, "groups", 6, 1, groups, &c);
	c.groups = groups[0];
	return c;
}

static void put_param(struct buf *b, char what, const int64_t *v, unsigned spatial)
{
	buf_cstr(b, b->n ? "; <" : "<");
	for (unsigned i = 0; i < spatial; i++)
		buf_printf(b, "%s%c%c:%lld", i ? ", " : "", what, spatial_letters[spatial][i], (long long)v[i]);
	buf_char(b, '>');
}

static struct str params_text(const struct op_instances_shapes_conv *c, unsigned spatial, struct arena *a)
{
	struct buf b = {0};
	put_param(&b, 'S', c->stride, spatial);
	put_param(&b, 'P', c->padding, spatial);
	put_param(&b, 'D', c->dilation, spatial);
	buf_printf(&b, "; <G:%lld>", (long long)c->groups);
	return in_arena(&b, a);
}

/* (in + 2 padding - dilation (kernel - 1) - 1) / stride + 1; -1 = no such size. */
static int64_t conv_size(int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation)
{
	int64_t reach, wide;
	if (stride <= 0 || kernel <= 0 || dilation <= 0 || __builtin_mul_overflow(dilation, kernel - 1, &reach) ||
	    __builtin_mul_overflow(padding, 2, &wide) || __builtin_add_overflow(in, wide, &wide) ||
	    __builtin_sub_overflow(wide, reach, &wide) || wide < 1)
		return -1;
	return (wide - 1) / stride + 1;
}

static void conv_outputs(const struct op_args *args, const struct lettered *l, struct arena *a, struct op_shapes *out)
{
	const struct op_tensor *x = op_arg_tensor(args, 0), *k = op_arg_tensor(args, 1);
	struct op_instances_shapes_conv c = conv_params(args, l->spatial);
	int64_t size[5];
	struct buf b = {0};
	if (c.stated && !c.unclear)
		out->parameters = params_text(&c, l->spatial, a);
	if (c.unclear || !x || !k || x->rank != l->spatial + 2 || k->rank != x->rank)
		return;
	size[0] = op_dims(args, x)[0];
	size[1] = op_dims(args, k)[0];
	for (unsigned i = 0; i < l->spatial; i++) {
		size[i + 2] = conv_size(op_dims(args, x)[i + 2], op_dims(args, k)[i + 2], c.stride[i], c.padding[i], c.dilation[i]);
		if (size[i + 2] < 0)
			return;
	}
	op_instances_shapes_put_sizes(&b, size, l->spatial + 2, l->output);
	out->outputs = in_arena(&b, a);
	out->assumed = !c.stated;
}

static void linear_outputs(const struct op_args *args, const struct lettered *l, struct arena *a, struct op_shapes *out)
{
	const struct op_tensor *x = op_arg_tensor(args, 0), *k = op_arg_tensor(args, 1);
	enum { RANK_MAX = 16 };
	int64_t size[RANK_MAX];
	struct buf b = {0};
	if (!x || !k || !x->rank || x->rank > RANK_MAX || k->rank != 2)
		return;
	memcpy(size, op_dims(args, x), x->rank * sizeof *size);
	size[x->rank - 1] = op_dims(args, k)[0];
	op_instances_shapes_put_sizes(&b, size, x->rank, l->output);
	out->outputs = in_arena(&b, a);
}

static struct str op_instances_shapes_arg_text(const struct profile *p, uint32_t span, enum arg_key key)
{
	return profile_str(p, profile_arg_id(p, p->span.args[span], key));
}

/* --- of a DLProf database --------------------------------------------------------------------------------------- */

/* The sizes that a list states, as if they were arguments. */
static bool stated_sizes(const struct profile *p, uint32_t span, enum arg_key key, struct op_args *args)
{
	struct op_facts f = {.dims = op_instances_shapes_arg_text(p, span, key)};
	char why[160];
	return f.dims.n && op_args_parse(args, &f, why) == 0;
}

/* "[[16,3],[]]" is "<16, 3>; <>": all that a database lists are tensors, those of one number too. */
static struct str stated_inputs(struct str list, const struct lettered *l, struct arena *a)
{
	enum { RANK_MAX = 16 };
	int64_t size[RANK_MAX];
	struct buf b = {0};
	unsigned tensor = 0;
	const char *p = list.p + (list.n > 0), *end = list.p + list.n;
	while (p < end) {
		const char *open = memchr(p, '[', (size_t)(end - p)), *close = open ? memchr(open, ']', (size_t)(end - open)) : NULL;
		if (!close)
			break;
		struct str inside = {open + 1, (size_t)(close - open) - 1}, number;
		uint32_t n = 0;
		while (n < RANK_MAX && str_split(&inside, ',', &number) && str_to_i64(number, &size[n]))
			n++;
		op_instances_shapes_put_sizes(&b, size, n, l && tensor < 2 ? l->input[tensor] : NULL);
		tensor++;
		p = close + 1;
	}
	return in_arena(&b, a);
}

static void stated_outputs(const struct op_args *args, const struct lettered *l, struct arena *a, struct op_shapes *out)
{
	struct buf b = {0};
	for (unsigned i = 0; i < args->n; i++)
		for (uint32_t k = 0; k < args->arg[i].n_tensors; k++) {
			const struct op_tensor *t = &args->tensor[args->arg[i].tensor + k];
			op_instances_shapes_put_sizes(&b, op_dims(args, t), t->rank, l && !b.n ? l->output : NULL);
		}
	if (b.n) {
		out->outputs = in_arena(&b, a);
		out->assumed = false;
	}
}

static void stated_parameters(const struct op_args *args, unsigned spatial, struct arena *a, struct op_shapes *out)
{
	struct op_instances_shapes_conv c = {.stated = true};
	int64_t *const v[] = {c.stride, c.padding, c.dilation, &c.groups};
	for (int i = 0; i < 4; i++) {
		const struct op_tensor *t = op_arg_tensor(args, i);
		unsigned n = i < 3 ? spatial : 1;
		if (!t || t->rank != n)
			return;
		memcpy(v[i], op_dims(args, t), n * sizeof **v);
	}
	out->parameters = params_text(&c, spatial, a);
}

static void stated_shapes(const struct profile *p, uint32_t span, const struct lettered *l, struct arena *a, struct op_shapes *out)
{
	struct op_args outputs = {0}, parameters = {0};
	out->inputs = stated_inputs(op_instances_shapes_arg_text(p, span, ARG_OP_INPUTS), l, a);
	if (stated_sizes(p, span, ARG_OP_OUTPUTS, &outputs))
		stated_outputs(&outputs, l, a, out);
	if (l && l->spatial && stated_sizes(p, span, ARG_OP_PARAMETERS, &parameters))
		stated_parameters(&parameters, l->spatial, a, out);
	op_args_release(&outputs);
	op_args_release(&parameters);
}

/* ---------------------------------------------------------------------------------------------------------------- */

void op_instance_shapes(const struct ops *o, const struct profile *p, uint32_t instance, struct arena *a, struct op_shapes *out)
{
	const struct op *op = &o->op[o->instance[instance].op];
	struct str none = {"", 0};
	*out = (struct op_shapes){none, none, none, none, false};
	uint32_t span = op->forward == ROW_NONE ? o->instance[instance].span : o->instance[o->op[op->forward].first].span;
	if (op->unassociated || span == ROW_NONE)
		return;
	struct op_facts f = {
		.name = profile_str(p, p->span.name[span]), .dims = op_instances_shapes_arg_text(p, span, ARG_INPUT_DIMS), .types = op_instances_shapes_arg_text(p, span, ARG_INPUT_TYPES),
		.concrete = op_instances_shapes_arg_text(p, span, ARG_INPUT_VALUES), .names = op_instances_shapes_arg_text(p, span, ARG_INPUT_NAMES),
	};
	struct op_args args = {0};
	char why[160];
	const struct lettered *l = letters_of(op->type);
	if (f.dims.n && op_args_parse(&args, &f, why) == 0) {
		out->inputs = inputs_text(&args, l, a);
		out->data_types = types_text(&args, a);
		if (l && l->spatial)
			conv_outputs(&args, l, a, out);
		else if (l)
			linear_outputs(&args, l, a, out);
	}
	op_args_release(&args);
	if (o->origin == OPS_STATED)
		stated_shapes(p, span, l, a, out);
	if (!out->data_types.n && out->inputs.n && op_instances_shapes_arg_text(p, span, ARG_OP_DATA_TYPE).n)
		out->data_types = op->data_type;
}
