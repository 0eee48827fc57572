/* Attention, forward and backward. b: sequences, h: heads of the queries, q, k: lengths, d: size of a head of queries and keys, v: of
 * values (torch/utils/flop_counter.py):
 *   forward   2 b h q k (d + v)                 scores, weighted values
 *   backward  2 b h q k (3 d + 2 v)             scores again, gradients of scores, values, queries, keys
 *             2 b h q k (2 d + 2 v)             where the scores were kept (math)
 * All pairs count in `flops`. With a causal mask flops_causal counts the pairs that it leaves: query i sees keys 0..i, for
 * flash-attention's own functions 0..k-q+i. The softmax is not counted. Bytes: queries, keys, values and result once. */
#include "op/cost_rules.h"

#include "base/buf.h"
#include "base/search.h"

enum { NONE = -1 };

enum axes { BHSD, BSHD, PACKED }; /* order of the dimensions; PACKED: [all tokens][heads][size] with cumulative lengths */

static const struct attention_layout {
	const char *name;
	enum axes axes;
	signed char q, k, v, causal, cu_q, cu_k, max_q, max_k;
	bool bottom;   /* the causal mask is aligned to the end */
	bool math;     /* a composite that keeps the scores */
} layouts[] = {
	{"aten::scaled_dot_product_attention", BHSD, 0, 1, 2, 5, NONE, NONE, NONE, NONE, false, false},
	{"aten::_scaled_dot_product_attention", BHSD, 0, 1, 2, 6, NONE, NONE, NONE, NONE, false, true},
	{"aten::_scaled_dot_product_flash_attention", BHSD, 0, 1, 2, 4, NONE, NONE, NONE, NONE, false, false},
	{"aten::_scaled_dot_product_efficient_attention", BHSD, 0, 1, 2, 6, NONE, NONE, NONE, NONE, false, false},
	{"aten::_scaled_dot_product_cudnn_attention", BHSD, 0, 1, 2, 6, NONE, NONE, NONE, NONE, false, false},
	{"aten::_scaled_dot_product_attention_math", BHSD, 0, 1, 2, 5, NONE, NONE, NONE, NONE, false, true},
	{"aten::_scaled_dot_product_attention_math_for_mps", BHSD, 0, 1, 2, 5, NONE, NONE, NONE, NONE, false, true},
	{"aten::_scaled_dot_product_fused_attention_overrideable", BHSD, 0, 1, 2, 5, NONE, NONE, NONE, NONE, false, false},
	{"aten::_scaled_dot_product_flash_attention_for_cpu", BHSD, 0, 1, 2, 4, NONE, NONE, NONE, NONE, false, false},
	{"aten::_flash_attention_forward", BSHD, 0, 1, 2, 8, 3, 4, 5, 6, false, false},
	{"aten::_efficient_attention_forward", BSHD, 0, 1, 2, 9, 4, 5, 6, 7, false, false},
	{"aten::_cudnn_attention_forward", BHSD, 0, 1, 2, 10, 4, 5, 6, 7, false, false},
	{"flash_attn::_flash_attn_forward", BSHD, 0, 1, 2, 5, NONE, NONE, NONE, NONE, true, false},
	{"flash_attn::_flash_attn_varlen_forward", PACKED, 0, 1, 2, 9, 3, 4, 5, 6, true, false},
	{"flash_attn::fwd", BSHD, 0, 1, 2, 6, NONE, NONE, NONE, NONE, true, false},
	{"aiter::mha_fwd", BSHD, 0, 1, 2, 5, NONE, NONE, NONE, NONE, true, false},
	{"aiter::fmha_v3_fwd", BSHD, 0, 1, 2, 5, NONE, NONE, NONE, NONE, true, false},
	{"aiter::_flash_attn_forward", BSHD, 0, 1, 2, 5, NONE, NONE, NONE, NONE, true, false},
	/* Backward: 0 is the gradient of the result. */
	{"aten::_scaled_dot_product_flash_attention_backward", BHSD, 1, 2, 3, 11, NONE, NONE, NONE, NONE, false, false},
	{"aten::_scaled_dot_product_efficient_attention_backward", BHSD, 1, 2, 3, 11, NONE, NONE, NONE, NONE, false, false},
	{"aten::_scaled_dot_product_cudnn_attention_backward", BHSD, 1, 2, 3, 14, NONE, NONE, NONE, NONE, false, false},
	{"aten::_scaled_dot_product_fused_attention_overrideable_backward", BHSD, 1, 2, 3, 13, NONE, NONE, NONE, NONE, false, false},
	{"aten::_scaled_dot_product_flash_attention_for_cpu_backward", BHSD, 1, 2, 3, 7, NONE, NONE, NONE, NONE, false, false},
	{"aten::_flash_attention_backward", BSHD, 1, 2, 3, 11, 6, 7, 8, 9, false, false},
	{"aten::_efficient_attention_backward", BSHD, 1, 2, 3, 14, 6, 7, 8, 9, false, false},
	{"flash_attn::_flash_attn_backward", BSHD, 1, 2, 3, 11, NONE, NONE, NONE, NONE, true, false},
	{"flash_attn::_flash_attn_varlen_backward", PACKED, 1, 2, 3, 15, 9, 10, 11, 12, true, false},
	{"aiter::mha_bwd", BSHD, 1, 2, 3, 8, NONE, NONE, NONE, NONE, true, false},
	{"aiter::_flash_attn_backward", BSHD, 1, 2, 3, 11, NONE, NONE, NONE, NONE, true, false},
};

struct attention {
	int64_t b, h, h_kv, q, k, d, v;
	int64_t q_elements, k_elements, v_elements, out_elements;
	bool causal, bottom;
	enum dtype type;
};

static const struct attention_layout *attention_layout_of(struct str name)
{
	return ELEMENT_WHERE(i, layouts, sizeof layouts / sizeof layouts[0], str_eqc(name, layouts[i].name));
}

static void attention_take(enum axes axes, const int64_t *d, int64_t *b, int64_t *h, int64_t *s, int64_t *size)
{
	*b = axes == PACKED ? 1 : d[0];
	*h = axes == BHSD ? d[1] : axes == BSHD ? d[2] : d[1];
	*s = axes == BHSD ? d[2] : axes == BSHD ? d[1] : d[0];
	*size = axes == PACKED ? d[2] : d[3];
}

/* Sequences of unequal length: what they cost depends on the lengths, which are values in tensors. Only when as many tokens as
 * the longest times the number of sequences are there, all are that long. */
static bool packed_lengths(struct cost_call *c, const struct attention_layout *l, struct attention *a)
{
	const struct op_tensor *cu = l->cu_q == NONE ? NULL : op_arg_tensor(&c->args, l->cu_q);
	int64_t max_q, max_k, tokens_q = a->q, tokens_k = a->k;
	if (cu && cu->rank == 1 && op_arg_int(&c->args, l->max_q, &max_q) && op_arg_int(&c->args, l->max_k, &max_k) && max_q > 0 && max_k > 0) {
		a->b = op_dims(&c->args, cu)[0] - 1;
		a->q = max_q;
		a->k = max_k;
		if (a->b > 0 && cost_mul(a->b, max_q) == tokens_q && cost_mul(a->b, max_k) == tokens_k)
			return true;
	}
	cost_unknown(c, "the lengths of the sequences are values in tensors, which were not recorded");
	return false;
}

static bool read_shapes(struct cost_call *c, const struct attention_layout *l, struct attention *a)
{
	const struct op_tensor *q = op_arg_tensor(&c->args, l->q), *k = op_arg_tensor(&c->args, l->k), *v = op_arg_tensor(&c->args, l->v);
	if (!q || !k || !v) {
		cost_unknown(c, "the shapes of queries, keys and values were not recorded");
		return false;
	}
	enum axes axes = l->axes;
	if (l->cu_q != NONE && op_arg_tensor(&c->args, l->cu_q) && q->rank == 3)
		axes = PACKED;
	uint32_t rank = axes == PACKED ? 3 : 4;
	if (q->rank != rank || k->rank != rank || v->rank != rank) {
		cost_unknown(c, "queries, keys and values have %u, %u and %u dimensions, %u expected", q->rank, k->rank, v->rank, rank);
		return false;
	}
	int64_t bk, bv, hv, dk, sv;
	attention_take(axes, op_dims(&c->args, q), &a->b, &a->h, &a->q, &a->d);
	attention_take(axes, op_dims(&c->args, k), &bk, &a->h_kv, &a->k, &dk);
	attention_take(axes, op_dims(&c->args, v), &bv, &hv, &sv, &a->v);
	if (bk != a->b || bv != a->b || dk != a->d || sv != a->k || hv != a->h_kv || a->h_kv == 0 || a->h % a->h_kv) {
		cost_unknown(c, "the shapes of queries, keys and values do not fit each other");
		return false;
	}
	a->q_elements = q->elements;
	a->k_elements = k->elements;
	a->v_elements = v->elements;
	a->out_elements = cost_mul(cost_mul(cost_mul(a->b, a->h), a->q), a->v);
	a->type = op_arg(&c->args, l->q)->dtype;
	bool nested = l->cu_q != NONE && op_arg_tensor(&c->args, l->cu_q);
	return axes == PACKED || nested ? packed_lengths(c, l, a) : true;
}

/* False when the mask was not recorded. */
static bool read_mask(struct cost_call *c, const struct attention_layout *l, struct attention *a)
{
	int64_t kind;
	a->bottom = l->bottom;
	if (l->causal == NONE)
		return false;
	if (str_has(c->name, STR("_efficient_attention_forward")) || str_has(c->name, STR("::_efficient_attention_backward"))) {
		/* 0 none, 1 aligned to the start, 2 to the end */
		if (!op_arg_int(&c->args, l->causal, &kind))
			return false;
		a->causal = kind == 1 || kind == 2;
		a->bottom = kind == 2;
		return true;
	}
	return op_arg_bool(&c->args, l->causal, &a->causal);
}

/* Pairs of query and key that a causal mask leaves, of one head: sum over queries of min(k, i + 1 + shift). */
static int64_t causal_pairs(int64_t q, int64_t k, bool bottom)
{
	int64_t shift = bottom ? k - q : 0;
	int64_t first = shift + 1 < 0 ? -shift : 0;         /* queries before see nothing */
	int64_t full = k - shift - 1;                       /* from here on a query sees all k */
	full = full < first ? first : full > q ? q : full;
	if (first >= q)
		return 0;
	int64_t ramp = full - first;
	int64_t sum = cost_mul(ramp, 2 * (first + shift + 1) + ramp - 1);
	return sum < 0 ? COST_UNKNOWN : cost_add(sum / 2, cost_mul(q - full, k));
}

static void attention_describe(struct cost_call *c, const struct attention *a)
{
	c->out->params = arena_printf(c->arena, "B=%lld,H=%lld,Hkv=%lld,Q=%lld,K=%lld,D=%lld,V=%lld,%s%s", (long long)a->b, (long long)a->h,
	                              (long long)a->h_kv, (long long)a->q, (long long)a->k, (long long)a->d, (long long)a->v,
	                              a->causal ? "causal," : "", dtype_short(a->type));
	c->out->dtype = a->type;
	c->out->tc_eligible = cost_tc_eligible(a->type);
	c->out->class = OP_ATTENTION;
}

static int64_t attention_flops_of(const struct attention *a, int64_t pairs, int64_t n_d, int64_t n_v)
{
	int64_t width = cost_add(cost_mul(n_d, a->d), cost_mul(n_v, a->v));
	return cost_mul(cost_mul(cost_mul(2, cost_mul(a->b, a->h)), cost_mul(pairs, width)), cost_complex_factor(a->type));
}

static void set_flops(struct cost_call *c, const struct attention *a, bool mask_known, int64_t n_d, int64_t n_v)
{
	struct cost *o = c->out;
	int64_t all = attention_flops_of(a, cost_mul(a->q, a->k), n_d, n_v);
	cost_set_flops(c, all);
	o->causal = a->causal;
	if (a->causal)
		o->flops_causal = attention_flops_of(a, causal_pairs(a->q, a->k, a->bottom), n_d, n_v);
	if (!c->rules->causal_is_half)
		return;
	if (!mask_known)
		cost_set_flops(c, COST_UNKNOWN);
	else if (a->causal && all >= 0)
		cost_set_flops(c, all / 2);
}

static void set_bytes(struct cost_call *c, const struct attention *a, bool backward)
{
	int64_t in = cost_add(cost_add(a->q_elements, a->k_elements), a->v_elements);
	int64_t read = backward ? cost_add(in, cost_mul(2, a->out_elements)) : in, written = backward ? in : a->out_elements;
	cost_set_bytes(c, cost_bytes_of(read, a->type), cost_bytes_of(written, a->type), "the type of the queries was not recorded");
}

static bool attention_begin(struct cost_call *c, struct attention *a, bool *mask_known, const struct attention_layout **l)
{
	*l = attention_layout_of(c->name);
	if (!*l) {
		cost_unknown(c, "the arguments of this op are not known");
		return false;
	}
	if (!read_shapes(c, *l, a))
		return false;
	*mask_known = read_mask(c, *l, a);
	attention_describe(c, a);
	return true;
}

void cost_attention(struct cost_call *c)
{
	struct attention a = {0};
	bool mask_known, backward = c->direction == COST_BACKWARD;
	const struct attention_layout *l;
	c->out->formula = backward ? STR("2*b*h*q*k*(3*d + 2*v)") : STR("2*b*h*q*k*(d + v)");
	if (!attention_begin(c, &a, &mask_known, &l))
		return;
	if (backward && str_eqc(c->name, "aten::scaled_dot_product_attention")) {
		cost_unknown(c, "depends on the backend that was chosen");
		return;
	}
	if (backward && l->math)
		c->out->formula = STR("2*b*h*q*k*(2*d + 2*v)");
	set_flops(c, &a, mask_known, backward ? (l->math ? 2 : 3) : 1, backward ? 2 : 1);
	set_bytes(c, &a, backward);
}

void cost_attention_backward(struct cost_call *c)
{
	struct attention a = {0};
	bool mask_known;
	const struct attention_layout *l;
	c->out->formula = STR("2*b*h*q*k*(3*d + 2*v)");
	if (!attention_begin(c, &a, &mask_known, &l))
		return;
	set_flops(c, &a, mask_known, 3, 2);
	set_bytes(c, &a, true);
}

/* One query against a cache of blocks: how much of it each sequence has is a value in a tensor. */
void cost_paged_attention(struct cost_call *c)
{
	c->out->class = OP_ATTENTION;
	c->out->formula = STR("2*b*h*q*k*(d + v)");
	c->out->dtype = op_arg(&c->args, 0)->dtype;
	c->out->tc_eligible = cost_tc_eligible(c->out->dtype);
	cost_unknown(c, "the lengths of the cached sequences are values in tensors, which were not recorded");
}
