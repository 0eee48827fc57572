#include "detect/parts/attention_chains.h"

#include "analysis/names/names.h"
#include "base/search.h"
#include "op/op_args.h"

/* How many kernels may lie between the product that makes scores and the one that takes them, how many products a search looks back at,
 * and within how many kernels of a softmax a product without shapes is taken for one of its attention. */
enum { LONGEST = 24, PRODUCTS = 4, BESIDE = 4 };
/* Percent of the device time: below, other things are worth more. */
static const double MATTERS = 5;

struct attention_chains_search {
	const struct profile *p;
	struct findings *f;
	const struct costs *costs;
	struct bounds *bounds;
	struct attentions *out;
	int64_t *elements;       /* by cost: of the largest operand; 0 = not asked, -1 = not known */
	const uint32_t *at;      /* the kernels of one stream in order of time */
	uint32_t n;
	uint8_t *kind;           /* of `at`: enum kind */
	struct name_memo op_kind; /* enum kind */
};

/* BATCHED: a product of two batches of matrices, if it is one; LOG: a softmax of a loss. */
enum attention_chains_kind { OTHER, PRODUCT, SOFTMAX, SOFTMAX_BACKWARD, EXPONENTIAL, SUM, BATCHED, LOG };

static const struct cost *attention_chains_cost_of_kernel(const struct attention_chains_search *s, uint32_t g)
{
	uint32_t c = s->costs->of_gpu[g];
	return c == ROW_NONE ? NULL : &s->costs->cost[c];
}

/* By its name. Linear layers multiply by weights: they are not BATCHED. */
static uint8_t kind_of_op(struct str op)
{
	if (str_has(op, STR("bmm")) || str_has(op, STR("matmul")) || str_has(op, STR("einsum")))
		return BATCHED;
	if (str_has_nocase(op, STR("log_softmax")))
		return LOG;
	if (str_eqc(op, "aten::exp") || str_eqc(op, "aten::exp_"))
		return EXPONENTIAL;
	return str_eqc(op, "aten::sum") ? SUM : OTHER;
}

static enum attention_chains_kind kind_of_kernel(const struct profile *p, uint32_t name)
{
	struct str text = profile_str(p, name);
	if (name_kernel(p, name)->class != KERNEL_SOFTMAX)
		return OTHER;
	if (str_has_nocase(text, STR("LogSoftMax")))
		return LOG;
	return str_has_nocase(text, STR("backward")) ? SOFTMAX_BACKWARD : SOFTMAX;
}

static enum attention_chains_kind attention_chains_kind_of(const struct attention_chains_search *s, uint32_t g)
{
	const struct cost *c = attention_chains_cost_of_kernel(s, g);
	uint32_t op = s->costs->op[g], kernel = s->p->gpu_op.name[g], name = op == ROW_NONE ? 0 : s->p->span.name[op];
	enum attention_chains_kind of_op = (enum attention_chains_kind)name_memo_of(&s->op_kind, name);
	if (c && c->class == OP_GEMM)
		return s->costs->parts[g] && c->k > 0 && of_op == BATCHED ? PRODUCT : OTHER;
	enum attention_chains_kind of_kernel = kind_of_kernel(s->p, kernel);
	if (of_op == LOG || of_kernel == LOG)
		return OTHER;
	return of_kernel != OTHER ? of_kernel : of_op == EXPONENTIAL || of_op == SUM ? of_op : OTHER;
}

/* Elements of the largest operand of the op of a kernel; -1 = not known. */
static int64_t attention_chains_elements_of(struct attention_chains_search *s, uint32_t g)
{
	uint32_t c = s->costs->of_gpu[g];
	enum cost_direction d;
	struct op_args a = {0};
	char why[160];
	if (c == ROW_NONE)
		return -1;
	if (s->elements[c])
		return s->elements[c];
	struct op_facts facts = costs_facts(s->costs, s->p, c, &d);
	s->elements[c] = -1;
	if (op_args_parse(&a, &facts, why) == 0)
		for (unsigned i = 0; i < a.n_tensors; i++)
			s->elements[c] = a.tensor[i].elements > s->elements[c] ? a.tensor[i].elements : s->elements[c];
	s->elements[c] = s->elements[c] ? s->elements[c] : -1;
	op_args_release(&a);
	return s->elements[c];
}

static bool masks(const struct attention_chains_search *s, uint32_t g)
{
	static const char *const words[] = {"mask", "aten::add", "aten::where", "aten::sub", "triang", "tril", "triu"};
	uint32_t op = s->costs->op[g];
	struct str name = op == ROW_NONE ? STR("") : profile_str(s->p, s->p->span.name[op]), kernel = profile_str(s->p, s->p->gpu_op.name[g]);
	return ANY_WHERE(i, 0, sizeof words / sizeof *words,
	                 str_has(name, str_from(words[i])) || (i != 1 && i != 3 && str_has(kernel, str_from(words[i]))));
}

static void attention_chains_join(struct attention_chains_search *s, struct attention *x, uint32_t g)
{
	if (s->out->member[g])
		return;
	s->out->member[g] = 1;
	x->ns += s->p->gpu_op.dur_ns[g];
	x->kernels++;
}

/* The kernels between two of the stream that work on the scores. */
static void join_between(struct attention_chains_search *s, struct attention *x, uint32_t from, uint32_t to)
{
	for (uint32_t i = from + 1; i < to; i++) {
		uint32_t g = s->at[i];
		if (s->kind[i] != SOFTMAX && s->kind[i] != SOFTMAX_BACKWARD && (s->kind[i] == PRODUCT || attention_chains_elements_of(s, g) != x->b * x->q * x->k))
			continue;
		x->masked |= masks(s, g);
		attention_chains_join(s, x, g);
	}
}

/* Elements times FLOPs fit a double; what does not fit 64 bits is not known. */
static int64_t as_count(double v)
{
	return v < 9e18 ? (int64_t)v : COST_UNKNOWN;
}

static void set_least(struct attention_chains_search *s, struct attention *x)
{
	const struct cost *product = attention_chains_cost_of_kernel(s, x->gpu);
	double b = (double)x->b, q = (double)x->q, k = (double)x->k, d = (double)x->d, dv = (double)x->dv;
	double scores = 2 * b * q * k * d, result = 2 * b * q * k * dv;
	double flops = x->backward ? 3 * scores + 2 * result : scores + result;
	double elements = b * (q * d + k * d + k * dv + q * dv) * (x->backward ? 2 : 1);
	struct cost c = {.class = OP_ATTENTION, .dtype = x->dtype, .tc_eligible = product->tc_eligible};
	int bits = dtype_bits(x->dtype);
	x->least_ns = bounds_of(s->bounds, &c, as_count(x->masked ? flops / 2 : flops), bits ? as_count(elements * bits / 8) : COST_UNKNOWN, x->gpu,
	                        BOUND_AS_RUN).least_ns;
}

static void attention_chains_finish(struct attention_chains_search *s, struct attention *x)
{
	struct attentions *a = s->out;
	set_least(s, x);
	a->ns += x->ns;
	a->least_known &= !isnan(x->least_ns);
	a->kernels += x->kernels;
	MEM_PUSH(a->v, a->n, a->cap, *x);
}

static struct attention attention_chains_begin(const struct attention_chains_search *s, uint32_t g, const struct cost *c)
{
	enum dtype t = c->dtype != DTYPE_UNKNOWN ? c->dtype : gpu_kernel(s->p, g)->dtype;
	return (struct attention){.b = c->b, .q = c->m, .k = c->n, .d = c->k, .dtype = t, .op = s->costs->op[g], .gpu = g};
}

/* Whether there is a softmax between two of the stream. */
static bool has_softmax(const struct attention_chains_search *s, uint32_t from, uint32_t to)
{
	bool exponential = false;
	for (uint32_t i = from + 1; i < to; i++) {
		if (s->kind[i] == SOFTMAX || (exponential && s->kind[i] == SUM))
			return true;
		exponential |= s->kind[i] == EXPONENTIAL;
	}
	return false;
}

/* Number `i` of the stream takes scores: those of which product? */
static bool attention_chains_find_forward(struct attention_chains_search *s, uint32_t i)
{
	const struct cost *c = attention_chains_cost_of_kernel(s, s->at[i]);
	unsigned products = 0;
	for (uint32_t k = i; k-- > 0 && i - k <= LONGEST && products < PRODUCTS;) {
		if (s->kind[k] != PRODUCT)
			continue;
		const struct cost *scores = attention_chains_cost_of_kernel(s, s->at[k]);
		products++;
		if (s->out->member[s->at[k]] || scores->b != c->b || scores->m != c->m || scores->n != c->k || scores->n <= 1 || !has_softmax(s, k, i))
			continue;
		struct attention x = attention_chains_begin(s, s->at[k], scores);
		x.dv = c->n;
		attention_chains_join(s, &x, s->at[k]);
		join_between(s, &x, k, i);
		attention_chains_join(s, &x, s->at[i]);
		attention_chains_finish(s, &x);
		return true;
	}
	return false;
}

/* A product near number `i` whose sums are so long, in the direction `by`; at most PRODUCTS products away. n = none. */
static uint32_t near(const struct attention_chains_search *s, uint32_t i, int by, int64_t b, int64_t m, int64_t k, uint32_t but)
{
	unsigned products = 0;
	uint32_t at = i;
	for (unsigned steps = 0; steps < LONGEST && products < PRODUCTS; steps++) {
		at += (uint32_t)by; /* wraps below the first */
		if (at >= s->n)
			break;
		if (s->kind[at] == SOFTMAX_BACKWARD)
			break;
		if (s->kind[at] != PRODUCT)
			continue;
		products++;
		const struct cost *c = attention_chains_cost_of_kernel(s, s->at[at]);
		if (at != but && !s->out->member[s->at[at]] && c->b == b && (m == 0 || c->m == m) && c->k == k)
			return at;
	}
	return s->n;
}

/* Number `i` is a softmax's backward. */
static void find_backward(struct attention_chains_search *s, uint32_t i)
{
	uint32_t before = i;
	for (unsigned products = 0, steps = 0; before-- > 0 && steps < LONGEST && products < PRODUCTS; steps++) {
		if (s->kind[before] != PRODUCT || s->out->member[s->at[before]])
			continue;
		const struct cost *c = attention_chains_cost_of_kernel(s, s->at[before]);
		uint32_t of_q = near(s, i, 1, c->b, c->m, c->n, s->n);
		products++;
		if (c->n <= 1 || of_q == s->n)
			continue;
		struct attention x = attention_chains_begin(s, s->at[before], c);
		uint32_t of_v = near(s, i, -1, c->b, 0, c->m, before), of_k = near(s, i, 1, c->b, 0, c->m, of_q);
		uint32_t last = of_k < s->n && of_k > of_q ? of_k : of_q;
		x.backward = true;
		x.dv = c->k;
		x.d = attention_chains_cost_of_kernel(s, s->at[of_q])->n;
		attention_chains_join(s, &x, s->at[before]);
		join_between(s, &x, of_v < before ? of_v : before, last);
		attention_chains_join(s, &x, s->at[of_q]);
		if (of_v < s->n)
			attention_chains_join(s, &x, s->at[of_v]);
		if (of_k < s->n)
			attention_chains_join(s, &x, s->at[of_k]);
		attention_chains_finish(s, &x);
		return;
	}
}

/* A softmax between products, if only their sizes were known. */
static bool is_between_products(const struct attention_chains_search *s, uint32_t i)
{
	bool before = false, behind = false;
	for (uint32_t k = i; k-- > 0 && i - k <= BESIDE && !before;)
		before = gpu_kernel(s->p, s->at[k])->class == KERNEL_GEMM && !attention_chains_cost_of_kernel(s, s->at[k]);
	for (uint32_t k = i + 1; k < s->n && k - i <= BESIDE && !behind; k++)
		behind = gpu_kernel(s->p, s->at[k])->class == KERNEL_GEMM && !attention_chains_cost_of_kernel(s, s->at[k]);
	return before && behind;
}

static void search_stream(struct attention_chains_search *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		s->kind[i] = (uint8_t)attention_chains_kind_of(s, s->at[i]);
	for (uint32_t i = 0; i < s->n; i++)
		if (s->kind[i] == PRODUCT)
			attention_chains_find_forward(s, i);
	for (uint32_t i = 0; i < s->n; i++)
		if (s->kind[i] == SOFTMAX_BACKWARD)
			find_backward(s, i);
	for (uint32_t i = 0; i < s->n; i++)
		if ((s->kind[i] == SOFTMAX || s->kind[i] == SOFTMAX_BACKWARD) && !s->out->member[s->at[i]] && is_between_products(s, i))
			s->out->unsized_ns += s->p->gpu_op.dur_ns[s->at[i]];
}

/* Rows of gpu_op are sorted by stream and time. */
struct attentions *attentions_new(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	uint32_t n = p->gpu_op.rows.n, *at = NEW_ARRAY_RAW(n, uint32_t);
	struct attentions *out = NEW(struct attentions);
	struct attention_chains_search s = {.p = p, .f = f, .costs = shared_costs(f), .bounds = bounds_new(p), .out = out, .at = at, .kind = NEW_ARRAY_RAW(n, uint8_t)};
	s.elements = NEW_ARRAY(s.costs->n, int64_t);
	s.op_kind = name_memo_new(p, kind_of_op);
	out->member = NEW_ARRAY(n, uint8_t);
	out->least_known = true;
	for (uint32_t g = 0; g < n; g++) {
		if (s.n && p->gpu_op.track[g] != p->gpu_op.track[at[0]]) {
			search_stream(&s);
			s.n = 0;
		}
		if (w->n && !step_time_has(w, p->gpu_op.start_ns[g]))
			continue;
		bool kernel = p->gpu_op.kind[g] == GPU_KERNEL;
		out->device_ns += kernel && gpu_kernel(p, g)->class == KERNEL_COMM ? 0 : p->gpu_op.dur_ns[g];
		if (kernel)
			at[s.n++] = g;
	}
	search_stream(&s);
	bounds_free(s.bounds);
	mem_free(s.elements);
	mem_free(s.kind);
	name_memo_release(&s.op_kind);
	mem_free(at);
	return out;
}

void attentions_free(struct attentions *a)
{
	if (!a)
		return;
	mem_free(a->v);
	mem_free(a->member);
	mem_free(a);
}

bool attentions_matter(const struct attentions *a)
{
	return a->device_ns && 100.0 * (double)a->ns >= MATTERS * (double)a->device_ns;
}
