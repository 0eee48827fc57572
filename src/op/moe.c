/* Mixtures of experts, as inference servers run them. There are e experts. Each of t tokens of width h goes through k of them. The weights of an expert are
 * n x h ("up"; n = i, or 2 i with a gate) and h x i ("down").
 *   FLOPs   2 t k h n + 2 t k i h     the two products. Routing, activation and the sum over a token's experts are not counted.
 *   bytes   the tokens, the choice of experts, the weights of the chosen experts, and the result. Scales and biases of weights are not counted.
 * Which experts are chosen is a value in a tensor. `bytes_least` counts the fewest, k. `bytes` counts e (1 - (1 - k/e)^t), the expected number if each token
 * chooses evenly and by itself; tokens that prefer the same experts need fewer.
 * Weights may be packed: an element then holds several values. */
#include "op/moe.h"

#include "op/cost_rules.h"

/* One of the two weights: `rows` x `cols` elements of each expert. A row is an output; an element holds one input, or several packed. */
struct moe_weight {
	int64_t experts, rows, cols;
	enum dtype type;
};

/* How many values an element of a weight with n inputs holds; 0 = the sizes do not fit, or a value would have less than 4 bits. */
static int64_t moe_packed(int64_t n, const struct moe_weight *w)
{
	int64_t values = w->cols > 0 && n % w->cols == 0 ? n / w->cols : 0;
	bool power = values > 0 && (values & (values - 1)) == 0;
	return power && (values == 1 || dtype_bits(w->type) >= 4 * values) ? values : 0;
}

/* Takes the sizes of both weights into *m. NULL, or why they do not fit each other or the tokens. */
static const char *moe_fit(struct moe *m, const struct moe_weight *up, const struct moe_weight *down)
{
	m->experts = up->experts;
	m->hidden = down->rows;
	m->up_rows = up->rows;
	const int64_t packed = moe_packed(m->hidden, up);
	m->inner = cost_mul(down->cols, packed);
	if (down->experts != m->experts || down->type != up->type || !packed || m->inner <= 0 || (m->up_rows != m->inner && m->up_rows != cost_mul(2, m->inner)))
		return "the weights of the experts do not fit each other";
	if (m->tokens < 0 || m->top_k < 1 || m->top_k > m->experts)
		return "a token goes to no expert, or to more than there are";
	m->up_bytes = cost_bytes_of(cost_mul(up->rows, up->cols), up->type);
	m->down_bytes = cost_bytes_of(cost_mul(down->rows, down->cols), down->type);
	return NULL;
}

/* The type of the products: that of the weights if it is narrower and the GPU can multiply in it, as the op then converts the tokens; else that of the tokens.
 * Integers that hold packed values are unpacked to the type of the tokens. */
static enum dtype moe_type(enum dtype tokens, const struct moe_weight *w, bool packed)
{
	const bool is_number = dtype_kind(w->type) == DTYPE_KIND_FLOAT || (dtype_kind(w->type) == DTYPE_KIND_INT && dtype_bits(w->type) == 8 && !packed);
	return is_number && dtype_bits(w->type) < dtype_bits(tokens) ? w->type : tokens;
}

/* The expected number of chosen experts if each token chooses evenly: between k and min(e, t k). */
static double moe_even(const struct moe *m)
{
	const double most = (double)m->experts < (double)m->tokens * (double)m->top_k ? (double)m->experts : (double)m->tokens * (double)m->top_k;
	double left = 1, power = 1 - (double)m->top_k / (double)m->experts;
	for (int64_t t = m->tokens; t > 0; t /= 2, power *= power)
		left *= t % 2 ? power : 1;
	const double even = (double)m->experts * (1 - left);
	return even < (double)m->top_k ? (double)m->top_k : even > most ? most : even;
}

/* Bytes of weights, `one` of each expert: of the fewest experts. COST_UNKNOWN. */
static int64_t moe_least_bytes(const struct moe *m, int64_t one)
{
	return m->tokens ? cost_mul(m->top_k, one) : 0;
}

/* The same of the experts that an even choice takes. */
static int64_t moe_even_bytes(const struct moe *m, int64_t one)
{
	const int64_t all = cost_mul(m->experts, one);
	if (m->tokens <= 1)
		return moe_least_bytes(m, one);
	return all < 0 || all > INT64_MAX / 2 ? COST_UNKNOWN : (int64_t)(moe_even(m) * (double)one);
}

static void moe_params(struct cost_call *c, const struct moe *m, enum dtype weights)
{
	c->out->params = arena_printf(c->arena, "T=%lld,top %lld of %lld,H=%lld,N=%lld,I=%lld,%s,weights %s", (long long)m->tokens, (long long)m->top_k,
	                              (long long)m->experts, (long long)m->hidden, (long long)m->up_rows, (long long)m->inner, dtype_short(m->type), dtype_short(weights));
}

/* Sets the cost. Each product is a part: the first reads the tokens, the second writes the result. */
static void moe_set(struct cost_call *c, const struct moe *m)
{
	struct cost *o = c->out;
	const int64_t chosen = cost_mul(2, cost_mul(m->tokens, m->top_k)), up = cost_mul(chosen, cost_mul(m->hidden, m->up_rows));
	o->formula = STR("2*t*k*(h*n + i*h)");
	o->dtype = m->type;
	o->tc_eligible = m->tokens > 1 ? cost_tc_eligible(m->type) : TRI_NO;
	o->parts = 2;
	o->uneven = true;
	cost_set_flops(c, cost_add(up, cost_mul(chosen, cost_mul(m->inner, m->hidden))));
	o->first.flops = up;
	o->first.bytes = cost_add(m->input_bytes, moe_even_bytes(m, m->up_bytes));
	o->first.bytes_least = cost_add(m->input_bytes, moe_least_bytes(m, m->up_bytes));
	cost_set_bytes(c, cost_add(o->first.bytes, moe_even_bytes(m, m->down_bytes)), m->output_bytes, "the type of an input was not recorded, or the bytes do not fit 64 bits");
	o->bytes_least = cost_add(cost_add(o->first.bytes_least, moe_least_bytes(m, m->down_bytes)), m->output_bytes);
}

/* Takes the tokens [t, h] into *m, whose `hidden` is set. An element of 8 bits may hold two values. False: the width is another. */
static bool moe_tokens(const struct cost_call *c, int64_t arg, struct moe *m)
{
	const struct op_tensor *x = op_arg_tensor(&c->args, arg);
	const enum dtype type = op_arg(&c->args, arg)->dtype;
	if (!x || x->rank < 2 || x->elements < 0)
		return false;
	const int64_t last = op_dims(&c->args, x)[x->rank - 1];
	if (last <= 0 || (last != m->hidden && (dtype_bits(type) != 8 || cost_mul(2, last) != m->hidden)))
		return false;
	m->tokens = x->elements / last;
	m->input_bytes = cost_add(m->input_bytes, cost_bytes_of(x->elements, type));
	m->output_bytes = cost_bytes_of(cost_mul(m->tokens, m->hidden), dtype_bits(type) < 16 ? DTYPE_BFLOAT16 : type);
	return true;
}

/* Bytes of a tensor; 0 for another argument. */
static int64_t moe_bytes_of(const struct cost_call *c, int64_t arg)
{
	const struct op_tensor *t = op_arg_tensor(&c->args, arg);
	return t ? cost_bytes_of(t->elements, op_arg(&c->args, arg)->dtype) : 0;
}

/* A weight [experts][rows][columns]. False: the argument is no tensor of three dimensions. */
static bool moe_weight_of(const struct cost_call *c, int64_t arg, struct moe_weight *w)
{
	const struct op_tensor *t = op_arg_tensor(&c->args, arg);
	if (!t || t->rank != 3)
		return false;
	const int64_t *d = op_dims(&c->args, t);
	*w = (struct moe_weight){d[0], d[1], d[2], op_arg(&c->args, arg)->dtype};
	return true;
}

/* Sets the cost of a fused call, given the arguments of its tensors; m->top_k and m->input_bytes of the choice are set. */
static void moe_fused(struct cost_call *c, struct moe *m, int64_t tokens, int64_t up_arg, int64_t down_arg)
{
	struct moe_weight up, down;
	if (!moe_weight_of(c, up_arg, &up) || !moe_weight_of(c, down_arg, &down)) {
		cost_unknown(c, "the weights of the experts, inputs %lld and %lld, are not [experts][rows][columns]", (long long)up_arg, (long long)down_arg);
		return;
	}
	m->hidden = down.rows;
	if (!moe_tokens(c, tokens, m)) {
		cost_unknown(c, "the rows of input %lld are not as long as the results of the experts", (long long)tokens);
		return;
	}
	const char *why = moe_fit(m, &up, &down);
	if (why) {
		cost_unknown(c, "%s", why);
		return;
	}
	m->type = moe_type(op_arg(&c->args, tokens)->dtype, &up, up.cols != m->hidden);
	moe_set(c, m);
	moe_params(c, m, up.type);
}

/* Whether an argument from `from` on is a list of integers: a map or mask of experts, or a number of tokens. Then fewer experts or tokens count than the shapes
 * say, and how many is a value in this tensor. */
static bool moe_is_partial(const struct cost_call *c, unsigned from)
{
	for (unsigned i = from; i < c->args.n; i++) {
		const struct op_tensor *t = op_arg_tensor(&c->args, i);
		if (t && t->rank == 1 && t->elements > 0 && dtype_kind(op_arg(&c->args, i)->dtype) == DTYPE_KIND_INT)
			return true;
	}
	return false;
}

/* f(tokens [t,h], up [e,n,h], down [e,h,i], weights of the chosen experts [t,k], chosen experts [t,k], ...) */
void cost_moe(struct cost_call *c)
{
	struct moe m = {0};
	const struct op_tensor *chosen = op_arg_tensor(&c->args, 4), *weights = op_arg_tensor(&c->args, 3);
	if (!chosen || chosen->rank != 2 || !weights || weights->elements != chosen->elements) {
		cost_unknown(c, "the experts of the tokens, input 4, are not [tokens][experts chosen]");
		return;
	}
	if (moe_is_partial(c, 5)) {
		cost_unknown(c, "how many tokens go to experts of this GPU is a value in a tensor");
		return;
	}
	m.top_k = op_dims(&c->args, chosen)[1];
	m.input_bytes = cost_add(moe_bytes_of(c, 3), moe_bytes_of(c, 4));
	moe_fused(c, &m, 0, 1, 2);
	if (c->out->flops >= 0 && m.tokens != op_dims(&c->args, chosen)[0])
		cost_unknown(c, "inputs 0 and 4 differ in the number of tokens");
}

/* f(logits, bias, tokens, up, [scale of up,] down, [scale of down,] number of experts on all GPUs, k, ...): FlashInfer's, as vLLM calls them. FP8 has scales. */
void cost_moe_flashinfer(struct cost_call *c)
{
	const int64_t scaled = str_has(c->name, STR("fp8")), experts_arg = scaled ? 7 : 5;
	const struct op_tensor *up = op_arg_tensor(&c->args, 3);
	int64_t experts;
	struct moe m = {0};
	if (!op_arg_int(&c->args, experts_arg, &experts) || !op_arg_int(&c->args, experts_arg + 1, &m.top_k)) {
		cost_unknown(c, "how many experts there are and how many a token goes to, inputs %lld and %lld, was not recorded", (long long)experts_arg, (long long)experts_arg + 1);
		return;
	}
	if (up && up->rank == 3 && op_dims(&c->args, up)[0] != experts) {
		cost_unknown(c, "how many tokens go to experts of this GPU is a value in a tensor");
		return;
	}
	m.input_bytes = moe_bytes_of(c, 0);
	moe_fused(c, &m, 2, 3, scaled ? 5 : 4);
}

/* The sizes d[0..rank-1] and the type of the first argument of an op inside, and, unless `value` is NULL, the integer in its second. False: not known, or of
 * another rank. */
static bool moe_inner(const struct op_inner *x, uint32_t rank, int64_t d[3], enum dtype *type, int64_t *value)
{
	struct op_args a = {0};
	char why[EXPR_WHY];
	const bool read = op_args_parse(&a, &(struct op_facts){.dims = x->dims, .types = x->types, .concrete = x->concrete}, why) == 0;
	const struct op_tensor *t = read ? op_arg_tensor(&a, 0) : NULL;
	const bool ok = t && t->rank == rank && (!value || op_arg_int(&a, 1, value));
	for (uint32_t i = 0; ok && i < rank; i++)
		d[i] = op_dims(&a, t)[i];
	if (ok)
		*type = op_arg(&a, 0)->dtype;
	op_args_release(&a);
	return ok;
}

/* f(tokens [t,h], logits [t,e], ...), without the weights. Ops inside state the sizes: TopK(logits, k, ...) chooses the experts, view(up [e,h,n]) and
 * view(down [e,i,h]) look at the weights. */
void cost_moe_inner(struct cost_call *c)
{
	const struct op_facts *f = c->facts;
	int64_t logits[3], u[3], d[3];
	enum dtype type;
	struct moe m = {0};
	struct moe_weight up, down;
	if (!f->up.dims.n || !f->down.dims.n || !f->routing.dims.n) {
		cost_unknown(c, "neither its arguments nor the ops inside it state the weights of the experts");
		return;
	}
	if (!moe_inner(&f->routing, 2, logits, &type, &m.top_k) || !moe_inner(&f->up, 3, u, &up.type, NULL) || !moe_inner(&f->down, 3, d, &down.type, NULL)) {
		cost_unknown(c, "the sizes of the experts' weights, or how many a token goes to, were not recorded of the ops inside it");
		return;
	}
	up = (struct moe_weight){u[0], u[2], u[1], up.type};
	down = (struct moe_weight){d[0], d[2], d[1], down.type};
	m.hidden = down.rows;
	const char *why = !moe_tokens(c, 0, &m) || logits[0] != m.tokens || logits[1] != up.experts ? "the ops inside it are of other sizes" : moe_fit(&m, &up, &down);
	if (why) {
		cost_unknown(c, "%s", why);
		return;
	}
	/* The kernels behind such views convert the weights to the type of the tokens. */
	m.type = op_arg(&c->args, 0)->dtype;
	if (c->rules->experts)
		c->rules->experts(&m);
	moe_set(c, &m);
	c->out->apart = true; /* the router or shared experts inside are products of their own */
	moe_params(c, &m, up.type);
}
