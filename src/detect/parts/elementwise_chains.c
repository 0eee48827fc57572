#include "detect/parts/elementwise_chains.h"

#include "analysis/names/names.h"
#include "analysis/time/bounds.h"
#include "base/saturate.h"
#include "detect/parts/attention_chains.h"
#include "detect/parts/inside.h"
#include "op/op_args.h"

enum { OPERANDS = 6, RESULTS = 8, MOST_BITS = 128 }; /* MOST_BITS: of an element, a complex number of two float64 */
/* No tensor has as many; more in an input are nonsense, and their bytes would not fit. */
static const int64_t MOST_ELEMENTS = (int64_t)1 << 48;

/* What an op reads and writes, by its shapes. */
struct flow {
	bool asked, passes;      /* it only passes data through, and how much is known */
	bool product;            /* of matrices */
	bool copies;
	unsigned n;
	struct { int64_t elements; int bits; } operand[OPERANDS];
	int64_t elements;        /* of the result; of a product, too; 0 = not known */
	int bits;                /* of an element of it; 0 = not known */
};

struct result {
	int64_t elements;
	int bits;
	bool copies;
};

struct elementwise_chains_search {
	const struct profile *p;
	struct findings *f;
	const struct costs *costs;
	struct bounds *bounds;
	const struct attentions *attention; /* NULL = they do not matter */
	uint8_t *mark;           /* inside.h: parameter by parameter */
	struct name_memo multi;  /* of a kernel: does it go through many tensors at once? */
	struct flow *flow;       /* by cost */
	struct chains *out;
	struct chain open;       /* n = 0: none */
	struct result result[RESULTS]; /* of the last ops of the open chain, in a ring */
	unsigned results;
	int64_t product;         /* elements of the result of a product that the open chain was carried past; 0 = none */
	uint32_t last_op;
	int64_t last_written;
};

static uint8_t elementwise_chains_class_of(struct str name)
{
	return str_has(name, STR("AccumulateGrad")) || str_starts(name, STR("Optimizer."));
}

static void add_operand(struct flow *x, int64_t elements, int bits)
{
	if (x->n == OPERANDS)
		return;
	x->operand[x->n].elements = elements;
	x->operand[x->n++].bits = bits;
}

/* Of the broadcast of all operands; 0 = they do not fit. */
static int64_t broadcast(const struct op_args *a)
{
	int64_t all = 1;
	unsigned rank = 0;
	for (unsigned i = 0; i < a->n_tensors; i++)
		rank = a->tensor[i].rank > rank ? a->tensor[i].rank : rank;
	for (unsigned d = 1; d <= rank; d++) {
		int64_t size = 1;
		for (unsigned i = 0; i < a->n_tensors; i++) {
			int64_t own = a->tensor[i].rank >= d ? op_dims(a, &a->tensor[i])[a->tensor[i].rank - d] : 1;
			if (own != 1 && size != 1 && own != size)
				return 0;
			size = own != 1 ? own : size;
		}
		if (__builtin_mul_overflow(all, size, &all))
			return 0;
	}
	return all;
}

static int64_t sum_of_list(const struct op_args *a)
{
	int64_t all = 0;
	for (unsigned i = 0; i < a->n_tensors; i++)
		if (a->tensor[i].elements < 0 || __builtin_add_overflow(all, a->tensor[i].elements, &all))
			return 0;
	return all;
}

/* 0 = not known, or not in the range of an int64. */
static int64_t bits_written(const struct cost *c)
{
	return c->bytes_written > 0 && c->bytes_written <= INT64_MAX / 8 ? c->bytes_written * 8 : 0;
}

static void look_at_args(struct flow *x, const struct cost *c, struct str name, const struct op_args *a)
{
	bool copy = str_eqc(name, "aten::copy_"), cat = str_eqc(name, "aten::cat");
	for (unsigned i = copy ? 1 : 0; i < a->n; i++) {
		const struct op_arg *arg = op_arg(a, i);
		for (unsigned k = 0; k < arg->n_tensors; k++)
			add_operand(x, a->tensor[arg->tensor + k].elements, dtype_bits(arg->dtype));
	}
	x->copies = copy;
	if (copy)
		x->bits = dtype_bits(op_arg(a, 0)->dtype);
	if (cat)
		x->elements = sum_of_list(a);
	else if (c->class == OP_REDUCE)
		x->elements = dtype_bits(c->dtype) ? bits_written(c) / dtype_bits(c->dtype) : 0;
	else
		x->elements = broadcast(a);
	if (!copy && x->elements > 0 && bits_written(c) / x->elements <= MOST_BITS)
		x->bits = (int)(bits_written(c) / x->elements);
	bool sound = x->n > 0 && x->elements > 0 && x->elements < MOST_ELEMENTS;
	for (unsigned i = 0; i < x->n; i++)
		sound &= x->operand[i].elements >= 0 && x->operand[i].elements < MOST_ELEMENTS;
	x->passes = sound && (c->bytes >= 0 || cat);
}

static const struct flow *elementwise_chains_flow_of(struct elementwise_chains_search *s, uint32_t cost)
{
	struct flow *x = &s->flow[cost];
	const struct cost *c = &s->costs->cost[cost];
	if (x->asked)
		return x;
	enum cost_direction d;
	struct op_args a = {0};
	char why[160];
	struct op_facts facts = costs_facts(s->costs, s->p, cost, &d);
	x->asked = true;
	x->product = c->class == OP_GEMM;
	bool passes = d == COST_FORWARD && (c->class == OP_ELEMENTWISE || c->class == OP_REDUCE || c->class == OP_COPY || c->class == OP_RANDOM);
	if ((passes || x->product) && op_args_parse(&a, &facts, why) == 0) {
		look_at_args(x, c, facts.name, &a);
		x->passes &= passes;
		if (x->product && (__builtin_mul_overflow(c->b, c->m, &x->elements) || __builtin_mul_overflow(x->elements, c->n, &x->elements)))
			x->elements = 0;
	}
	op_args_release(&a);
	return x;
}

static void close_chain(struct elementwise_chains_search *s)
{
	struct chains *out = s->out;
	struct chain *x = &s->open;
	if (x->n >= 2) {
		double bandwidth = gpu_peak_bytes(bounds_gpu(s->bounds, out->gpu[x->first]));
		add_saturated(&x->least_bytes, s->last_written);
		x->least_bytes = x->least_bytes < x->bytes ? x->least_bytes : x->bytes;
		x->least_ns = bandwidth > 0 ? (double)x->least_bytes / bandwidth * 1e9 : NAN;
		out->least_known &= !isnan(x->least_ns);
		add_saturated(&out->ns, x->ns);
		add_saturated(&out->above_ns, bounds_above_ns(x->ns, x->least_ns));
		add_saturated(&out->bytes, x->bytes);
		add_saturated(&out->least_bytes, x->least_bytes);
		MEM_PUSH(out->v, out->n, out->cap, *x);
	} else {
		out->n_gpu -= x->n;
	}
	*x = (struct chain){.first = out->n_gpu};
	s->results = 0;
	s->product = 0;
	s->last_op = ROW_NONE;
}

/* Which result of the open chain an op reads. A copy reads the last one, if that is not a copy of the same kind: these stand beside each other
 * (queries, keys and values, each made contiguous). */
static const struct result *read_by(const struct elementwise_chains_search *s, const struct flow *x)
{
	unsigned n = x->copies ? 1 : s->results < RESULTS ? s->results : RESULTS;
	for (unsigned i = 1; i <= n; i++) {
		const struct result *r = &s->result[(s->results - i) % RESULTS];
		if (r->copies && x->copies && r->bits == x->bits)
			continue;
		unsigned fit = 0, taken = s->product == r->elements; /* one such operand is what the product wrote */
		for (unsigned k = 0; k < x->n; k++)
			fit += x->operand[k].elements == r->elements && (!r->bits || !x->operand[k].bits || r->bits == x->operand[k].bits);
		if (fit > taken)
			return r;
	}
	return NULL;
}

/* Bytes that an op reads; where its types were not recorded, by the size of what it writes. */
static int64_t elementwise_chains_bytes_read(const struct flow *x, int bits)
{
	int64_t sum = 0;
	for (unsigned i = 0; i < x->n; i++)
		sum += x->operand[i].elements * (x->operand[i].bits ? x->operand[i].bits : bits) / 8;
	return sum;
}

/* A kernel of the op that the last one is of, too: of the same call. */
static void more_of_call(struct elementwise_chains_search *s, uint32_t g)
{
	s->out->gpu[s->out->n_gpu++] = g;
	s->open.n++;
	add_saturated(&s->open.ns, s->p->gpu_op.dur_ns[g]);
}

static void elementwise_chains_add(struct elementwise_chains_search *s, uint32_t g, const struct flow *x)
{
	const struct result *from = s->open.n ? read_by(s, x) : NULL;
	if (s->open.n && (!from || s->open.n >= CHAIN_LONGEST))
		close_chain(s);
	int bits = x->bits ? x->bits : from ? from->bits : 0;
	if (!bits) { /* how many bytes they are is not known */
		close_chain(s);
		return;
	}
	int64_t read = elementwise_chains_bytes_read(x, bits), written = x->elements * bits / 8;
	if (!s->open.n)
		s->open.least_bytes = read;
	add_saturated(&s->open.bytes, read + written); /* some 2^55 at most, MOST_ELEMENTS of MOST_BITS each */
	s->last_written = written;
	s->last_op = s->costs->op[g];
	s->product = 0;
	s->result[s->results++ % RESULTS] = (struct result){x->elements, bits, x->copies};
	more_of_call(s, g);
}

/* A product that did not read the last result leaves the chain open: what comes behind it may read it. */
static void pass_product(struct elementwise_chains_search *s, const struct flow *x)
{
	if (!s->open.n)
		return;
	struct result last = s->result[(s->results - 1) % RESULTS];
	bool may_read = x->n == 0;
	for (unsigned k = 0; k < x->n; k++)
		may_read |= x->operand[k].elements == last.elements;
	if (may_read) {
		close_chain(s);
		return;
	}
	s->result[0] = last;
	s->results = 1;
	s->product = x->elements;
}

static uint8_t is_multi(struct str name)
{
	return str_has(name, STR("multi_tensor_apply"));
}

static bool left_out(struct elementwise_chains_search *s, uint32_t g, enum kernel_class class)
{
	return class == KERNEL_TRITON || class == KERNEL_OPTIMIZER || inside_of_gpu(s->p, s->mark, g) ||
	       shared_directions(s->f)->gpu[g] == DIR_OPTIMIZER || (s->attention && s->attention->member[g]) ||
	       name_memo_of(&s->multi, s->p->gpu_op.name[g]);
}

static void elementwise_chains_look(struct elementwise_chains_search *s, uint32_t g)
{
	enum kernel_class class = gpu_kernel(s->p, g)->class;
	uint32_t cost = s->costs->of_gpu[g];
	int64_t ns = s->p->gpu_op.dur_ns[g];
	if (class == KERNEL_COMM)
		return;
	add_saturated(&s->out->device_ns, ns);
	if (s->p->gpu_op.kind[g] != GPU_KERNEL)
		return;
	add_saturated(&s->out->passing_ns, class == KERNEL_ELEMENTWISE || class == KERNEL_COPY || class == KERNEL_REDUCE ? ns : 0);
	if (left_out(s, g, class)) {
		close_chain(s);
		return;
	}
	if (cost == ROW_NONE) {
		add_saturated(&s->out->unsized_ns, class == KERNEL_ELEMENTWISE ? ns : 0);
		close_chain(s);
		return;
	}
	const struct flow *x = elementwise_chains_flow_of(s, cost);
	if (x->product)
		pass_product(s, x);
	else if (x->passes && s->open.n && s->costs->op[g] == s->last_op)
		more_of_call(s, g);
	else if (x->passes)
		elementwise_chains_add(s, g, x);
	else if (s->costs->cost[cost].class != OP_FILL)
		close_chain(s);
}

/* Rows of gpu_op are sorted by stream and time. */
struct chains *chains_new(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	const struct attentions *a = shared_attentions(f);
	struct elementwise_chains_search s = {.p = p, .f = f, .costs = shared_costs(f), .bounds = bounds_new(p), .attention = attentions_matter(a) ? a : NULL,
	                                      .mark = inside_new(p, elementwise_chains_class_of, NULL), .out = NEW(struct chains), .last_op = ROW_NONE};
	s.flow = NEW_ARRAY(s.costs->n, struct flow);
	s.multi = name_memo_new(p, is_multi);
	s.out->gpu = NEW_ARRAY_RAW(p->gpu_op.rows.n, uint32_t);
	s.out->least_known = true;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		if (g && p->gpu_op.track[g] != p->gpu_op.track[g - 1])
			close_chain(&s);
		if (!w->n || step_time_has(w, p->gpu_op.start_ns[g]))
			elementwise_chains_look(&s, g);
	}
	close_chain(&s);
	bounds_free(s.bounds);
	mem_free(s.mark);
	mem_free(s.flow);
	name_memo_release(&s.multi);
	return s.out;
}

void chains_free(struct chains *c)
{
	if (!c)
		return;
	mem_free(c->v);
	mem_free(c->gpu);
	mem_free(c);
}
