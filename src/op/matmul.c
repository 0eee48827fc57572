/* Products whose operands may have several ranks, or whose types are packed: matmul, tensordot, einsum, scaled and grouped GEMM.
 * FLOPs: 2 b m n k (torch/utils/flop_counter.py). */
#include "op/cost_call.h"

enum { MAX_RANK = 16, MAX_OPERANDS = 8 };

static const struct op_tensor *need(struct cost_call *c, int64_t i)
{
	const struct op_tensor *t = op_arg_tensor(&c->args, i);
	if (!t)
		cost_unknown(c, "the shape of input %lld was not recorded", (long long)i);
	return t;
}

static enum dtype matmul_type_of(const struct cost_call *c, int64_t i) { return op_arg(&c->args, i)->dtype; }

static int64_t matmul_bytes_of(const struct cost_call *c, int64_t i)
{
	const struct op_arg *x = op_arg(&c->args, i);
	int64_t n = 0;
	for (uint32_t k = 0; k < x->n_tensors; k++)
		n = cost_add(n, c->args.tensor[x->tensor + k].elements);
	return n == 0 ? 0 : cost_bytes_of(n, x->dtype);
}

static int64_t matmul_product(const int64_t *d, uint32_t n)
{
	int64_t v = 1;
	for (uint32_t i = 0; i < n; i++)
		v = cost_mul(v, d[i]);
	return v;
}

static void matmul_finish(struct cost_call *c, int64_t read, int64_t written)
{
	cost_set_bytes(c, read, written, "the type of an input was not recorded, or it does not fit 64 bits");
}

/* Product of the batch dimensions of both after broadcasting; -1 = they do not. */
static int64_t batch_of(const int64_t *a, uint32_t ra, const int64_t *b, uint32_t rb)
{
	int64_t v = 1;
	for (uint32_t i = 0; i < (ra > rb ? ra : rb); i++) {
		int64_t x = i < ra ? a[ra - 1 - i] : 1, y = i < rb ? b[rb - 1 - i] : 1;
		if (x != y && x != 1 && y != 1)
			return -1;
		v = cost_mul(v, x == 1 ? y : x);
	}
	return v;
}

/* torch.matmul: one of at most two dimensions makes it a single product of all rows; else products of matrices, whose batch
 * dimensions are broadcast. */
void cost_matmul(struct cost_call *c)
{
	const struct op_tensor *a = need(c, 0), *b = a ? need(c, 1) : NULL;
	if (!b)
		return;
	c->out->formula = STR("2*b*m*n*k");
	if (!a->rank || !b->rank) {
		cost_unknown(c, "input %d has no dimensions", a->rank ? 1 : 0);
		return;
	}
	const int64_t *da = op_dims(&c->args, a), *db = op_dims(&c->args, b);
	int64_t k = da[a->rank - 1], kb = db[b->rank > 1 ? b->rank - 2 : 0];
	int64_t m = a->rank > 1 ? da[a->rank - 2] : 1, n = b->rank > 1 ? db[b->rank - 1] : 1, batch = 1;
	if (k != kb) {
		cost_unknown(c, "k is %lld in input 0 and %lld in input 1", (long long)k, (long long)kb);
		return;
	}
	if (a->rank > 2 && b->rank <= 2)
		m = matmul_product(da, a->rank - 1);
	else if (b->rank > 2)
		batch = batch_of(da, a->rank > 2 ? a->rank - 2 : 0, db, b->rank - 2);
	if (batch < 0 || m < 0) {
		cost_unknown(c, "the batch dimensions of the inputs do not broadcast");
		return;
	}
	cost_set_gemm(c, batch, m, n, k, matmul_type_of(c, 0));
	matmul_finish(c, cost_add(matmul_bytes_of(c, 0), matmul_bytes_of(c, 1)), cost_bytes_of(cost_mul(cost_mul(batch, m), n), matmul_type_of(c, 0)));
}

/* tensordot(a, b, dims of a, dims of b). */
void cost_tensordot(struct cost_call *c)
{
	const struct op_tensor *a = need(c, 0), *b = a ? need(c, 1) : NULL;
	int64_t dims[2][MAX_RANK], k = 1;
	unsigned n[2];
	if (!b)
		return;
	if (!op_arg_ints(&c->args, 2, dims[0], MAX_RANK, &n[0]) || !op_arg_ints(&c->args, 3, dims[1], MAX_RANK, &n[1]) || n[0] != n[1]) {
		cost_unknown(c, "which dimensions are contracted was not recorded");
		return;
	}
	for (unsigned i = 0; i < n[0]; i++) {
		int64_t x = dims[0][i] < 0 ? dims[0][i] + a->rank : dims[0][i], y = dims[1][i] < 0 ? dims[1][i] + b->rank : dims[1][i];
		if (x < 0 || x >= a->rank || y < 0 || y >= b->rank || op_dims(&c->args, a)[x] != op_dims(&c->args, b)[y]) {
			cost_unknown(c, "the contracted dimensions of the inputs differ");
			return;
		}
		k = cost_mul(k, op_dims(&c->args, a)[x]);
	}
	if (k <= 0 || a->elements < 0 || b->elements < 0) {
		cost_unknown(c, k ? "does not fit 64 bits" : "the contracted dimensions are empty");
		return;
	}
	int64_t rows = a->elements / k, cols = b->elements / k;
	c->out->formula = STR("2*m*n*k");
	cost_set_gemm(c, 1, rows, cols, k, matmul_type_of(c, 0));
	matmul_finish(c, cost_add(matmul_bytes_of(c, 0), matmul_bytes_of(c, 1)), cost_bytes_of(cost_mul(rows, cols), matmul_type_of(c, 0)));
}

/* An einsum in progress: sizes of the letters, which letters each operand has, and which are wanted. */
struct einsum {
	int64_t size[52];
	uint64_t has[MAX_OPERANDS], out;
	unsigned n;
};

static int letter_bit(char l)
{
	return l >= 'a' && l <= 'z' ? l - 'a' : l >= 'A' && l <= 'Z' ? l - 'A' + 26 : -1;
}

static bool read_operand(struct einsum *e, const struct cost_call *c, struct str text, const struct op_tensor *t)
{
	uint32_t d = 0;
	for (size_t i = 0; i < text.n; i++) {
		int bit = letter_bit(text.p[i]);
		if (text.p[i] == ' ')
			continue;
		if (bit < 0 || d >= t->rank)
			return false;
		int64_t size = op_dims(&c->args, t)[d++];
		if (e->size[bit] >= 0 && e->size[bit] != size && e->size[bit] != 1 && size != 1)
			return false;
		e->size[bit] = e->size[bit] > size ? e->size[bit] : size;
		e->has[e->n] |= 1ull << bit;
	}
	e->n++;
	return d == t->rank;
}

static bool read_equation(struct einsum *e, const struct cost_call *c, struct str eq, const struct op_tensor *const t[], unsigned n)
{
	ptrdiff_t arrow = str_find(eq, STR("->"));
	struct str in = {eq.p, arrow >= 0 ? (size_t)arrow : eq.n}, piece;
	uint64_t seen = 0, twice = 0;
	for (unsigned i = 0; i < 52; i++)
		e->size[i] = -1;
	while (str_split(&in, ',', &piece))
		if (e->n >= n || !read_operand(e, c, piece, t[e->n]))
			return false;
	for (unsigned i = 0; i < e->n; i++) {
		twice |= seen & e->has[i];
		seen |= e->has[i];
	}
	e->out = seen & ~twice;
	if (arrow >= 0) {
		e->out = 0;
		for (size_t i = (size_t)arrow + 2; i < eq.n; i++)
			if (letter_bit(eq.p[i]) >= 0)
				e->out |= 1ull << letter_bit(eq.p[i]);
	}
	return e->n == n && !(e->out & ~seen);
}

static int64_t letters_product(const struct einsum *e, uint64_t letters)
{
	int64_t v = 1;
	for (unsigned i = 0; i < 52; i++)
		if (letters >> i & 1)
			v = cost_mul(v, e->size[i]);
	return v;
}

/* Contracts from left to right, as torch does without opt_einsum; each step is a batched GEMM. */
static int64_t contract(const struct einsum *e, struct cost_call *c)
{
	uint64_t left = e->has[0];
	int64_t flops = 0;
	for (unsigned i = 1; i < e->n; i++) {
		uint64_t right = e->has[i], later = e->out;
		for (unsigned k = i + 1; k < e->n; k++)
			later |= e->has[k];
		left &= later | right;   /* summed over by itself before the product */
		right &= later | left;
		uint64_t batch = left & right & later, sum = left & right & ~later;
		int64_t b = letters_product(e, batch), m = letters_product(e, left & ~right), n = letters_product(e, right & ~left);
		int64_t k = letters_product(e, sum);
		cost_set_gemm(c, b, m, n, k, matmul_type_of(c, 1));
		flops = cost_add(flops, c->out->flops);
		left = (left | right) & later;
	}
	return e->n == 1 ? letters_product(e, e->has[0]) : flops;
}

/* einsum(equation, tensors): the equation has to be recorded, which torch.profiler does not do. */
void cost_einsum(struct cost_call *c)
{
	struct einsum e = {.n = 0};
	const struct op_tensor *t[MAX_OPERANDS];
	unsigned n = 0;
	int64_t read = 0;
	for (unsigned i = 0; i < c->args.n; i++) {
		const struct op_arg *x = &c->args.arg[i];
		for (uint32_t k = 0; x->kind != OP_ARG_NONE && k < x->n_tensors && n < MAX_OPERANDS; k++)
			t[n++] = &c->args.tensor[x->tensor + k];
		read = cost_add(read, x->kind == OP_ARG_NONE ? 0 : matmul_bytes_of(c, i));
	}
	struct str equation = op_arg(&c->args, 0)->concrete;
	c->out->formula = STR("2*b*m*n*k of each product");
	if (!equation.n || !n) {
		cost_unknown(c, "the equation was not recorded");
		return;
	}
	if (!read_equation(&e, c, equation, t, n)) {
		cost_unknown(c, "the equation does not fit the inputs, or has an ellipsis");
		return;
	}
	int64_t flops = contract(&e, c);
	c->out->class = OP_GEMM;
	cost_set_flops(c, flops);
	int64_t elements = letters_product(&e, e.out);
	matmul_finish(c, read, cost_bytes_of(elements, matmul_type_of(c, 1)));
}

/* Elements of the contracted dimension: a byte of a 4-bit pair holds two. */
static int64_t unpacked(int64_t k, enum dtype t) { return t == DTYPE_FP4X2 ? cost_mul(k, 2) : k; }

static enum dtype asked_type(const struct cost_call *c, int64_t i, enum dtype otherwise)
{
	int64_t code;
	return op_arg_int(&c->args, i, &code) ? dtype_of_code(code) : otherwise;
}

static int64_t all_inputs(const struct cost_call *c)
{
	int64_t read = 0;
	for (unsigned i = 0; i < c->args.n; i++)
		read = cost_add(read, matmul_bytes_of(c, i));
	return read;
}

/* _scaled_mm(a, b, scale_a, scale_b, bias, scale_result, out_dtype, ...): FP8 or FP4 operands with scales. */
void cost_scaled_mm(struct cost_call *c)
{
	const struct op_tensor *a = need(c, 0), *b = a ? need(c, 1) : NULL;
	if (!b)
		return;
	const int64_t *da = op_dims(&c->args, a), *db = op_dims(&c->args, b);
	if (a->rank != 2 || b->rank != 2 || da[1] != db[0]) {
		cost_unknown(c, "the inputs are no matrices [m,k] and [k,n]");
		return;
	}
	c->out->formula = STR("2*m*n*k");
	cost_set_gemm(c, 1, da[0], db[1], unpacked(da[1], matmul_type_of(c, 0)), matmul_type_of(c, 0));
	enum dtype out = asked_type(c, 6, c->args.has_concrete ? matmul_type_of(c, 0) : DTYPE_UNKNOWN);
	matmul_finish(c, all_inputs(c), cost_bytes_of(cost_mul(da[0], db[1]), out));
}

/* _grouped_mm(a, b, offs, bias, out_dtype), _scaled_grouped_mm(a, b, scale_a, scale_b, offs, bias, scale_result, out_dtype):
 * two operands of two dimensions share k among the groups, one of two its rows or columns. The offsets do not matter: their
 * parts add up to the whole. */
void cost_grouped_mm(struct cost_call *c)
{
	const struct op_tensor *a = need(c, 0), *b = a ? need(c, 1) : NULL;
	bool scaled = str_has(c->name, STR("_scaled"));
	if (!b)
		return;
	const int64_t *da = op_dims(&c->args, a), *db = op_dims(&c->args, b);
	if (a->rank < 2 || a->rank > 3 || b->rank < 2 || b->rank > 3 || da[a->rank - 1] != db[b->rank - 2]) {
		cost_unknown(c, "the inputs are no (groups of) matrices [m,k] and [k,n]");
		return;
	}
	int64_t m = da[a->rank - 2], n = db[b->rank - 1], k = da[a->rank - 1], groups = 1, outs = 1;
	if (a->rank == 3 && b->rank == 3) {
		if (da[0] != db[0]) {
			cost_unknown(c, "the inputs differ in the number of groups");
			return;
		}
		groups = outs = da[0];
	} else if (a->rank == 2 && b->rank == 2) {
		const struct op_tensor *offs = op_arg_tensor(&c->args, scaled ? 4 : 2);
		outs = offs ? offs->elements : -1;
	}
	c->out->formula = STR("2*g*m*n*k");
	cost_set_gemm(c, groups, m, n, unpacked(k, matmul_type_of(c, 0)), matmul_type_of(c, 0));
	enum dtype out = asked_type(c, scaled ? 7 : 4, scaled ? DTYPE_BFLOAT16 : matmul_type_of(c, 0));
	matmul_finish(c, all_inputs(c), cost_bytes_of(cost_mul(cost_mul(outs, m), n), out));
}
