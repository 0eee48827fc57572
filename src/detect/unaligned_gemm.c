#include "analysis/names/names.h"
#include "detect/parts/attention_chains.h"
#include "detect/parts/gpu_most.h"
#include "op/op_args.h"

/* Elements of 16 bits that make the 16 bytes which Tensor Core kernels read at once. */
enum { ALIGN = 8, SHAPES_TOLD = 3 };
/* Percent of the kernel time: where the kernel's name shows that it is slower; where only the shape suggests it. */
static const double TOO_MUCH = 2, SEVERE = 10, TOO_MUCH_BY_SHAPE = 5;

enum { PAD_M = 1, PAD_N = 2, PAD_K = 4 };

/* The distance between rows (or columns) of a matrix, from the strides of its last two dimensions; 0 = not told, or a vector. */
static int64_t leading(const struct op_args *strides, const struct op_args *dims, unsigned i)
{
	const struct op_tensor *s = op_arg_tensor(strides, i), *t = op_arg_tensor(dims, i);
	if (!s || !t || s->rank != t->rank || s->rank < 2)
		return 0;
	const int64_t *step = op_dims(strides, s) + s->rank - 2, *size = op_dims(dims, t) + t->rank - 2;
	if (size[0] <= 1 || size[1] <= 1)
		return 0;
	return step[1] == 1 ? step[0] : step[0] == 1 ? step[1] : 0;
}

static int pad_of(int64_t lead, const struct cost *c)
{
	if (lead % ALIGN == 0)
		return 0;
	return lead == c->k ? PAD_K : lead == c->n ? PAD_N : lead == c->m ? PAD_M : 0;
}

/* Which dimensions keep an operand's rows from beginning at multiples of 16 bytes. The result's rows are N long; how the operands lie, only
 * strides tell: without them K counts only when M is unaligned too, so that A's rows are, whichever way it lies. */
static int unaligned(const struct op_facts *f, const struct cost *c)
{
	struct op_facts as_dims = {.name = f->name, .dims = f->strides};
	struct op_args strides = {0}, dims = {0};
	unsigned first = str_starts(f->name, STR("aten::add")) || str_starts(f->name, STR("aten::baddbmm")) ? 1 : 0;
	char why[160];
	int pad = c->n % ALIGN ? PAD_N : 0;
	if (f->strides.n && op_args_parse(&strides, &as_dims, why) == 0 && op_args_parse(&dims, f, why) == 0)
		pad |= pad_of(leading(&strides, &dims, first), c) | pad_of(leading(&strides, &dims, first + 1), c);
	else if (c->k % ALIGN && c->m % ALIGN)
		pad |= PAD_K;
	op_args_release(&strides);
	op_args_release(&dims);
	return pad;
}

static bool is_half_gemm(const struct cost *c)
{
	return c->class == OP_GEMM && (c->dtype == DTYPE_FLOAT16 || c->dtype == DTYPE_BFLOAT16) && c->m > 1 && c->n > 1 && c->k > 1;
}

/* A kernel that reads fewer than 16 bytes at once, or does without Tensor Cores. */
static bool suffers(const struct profile *p, uint32_t name)
{
	struct str s = profile_str(p, name);
	return str_has(s, STR("align1")) || str_has(s, STR("align2")) || str_has(s, STR("align4")) || name_tensor_core(p, name) == TRI_NO;
}

struct unaligned_gemm_measured {
	struct places shown, by_shape; /* kernels that are slower, and all kernels of an unaligned shape; time and line by shape */
	struct bounds *bounds;
	int64_t kernel_ns;
	struct gpu_most shown_above, above; /* of the same kernels: their time beyond the least (analysis/time/bounds.h); all of it where that is unknown */
	bool no_peaks;
};

static int64_t unaligned_gemm_padded(int64_t n)
{
	return n / ALIGN * ALIGN + ALIGN;
}

static void unaligned_gemm_describe(struct buf *b, const struct op_facts *f, const struct cost *c, int pad)
{
	buf_printf(b, STR_FMT " M=%lld N=%lld K=%lld %s, pad", STR_ARG(f->name), (long long)c->m, (long long)c->n, (long long)c->k,
	           dtype_short(c->dtype));
	if (pad & PAD_M)
		buf_printf(b, " M to %lld", (long long)unaligned_gemm_padded(c->m));
	if (pad & PAD_N)
		buf_printf(b, " N to %lld", (long long)unaligned_gemm_padded(c->n));
	if (pad & PAD_K)
		buf_printf(b, " K to %lld", (long long)unaligned_gemm_padded(c->k));
}

static void unaligned_gemm_add(const struct profile *p, struct findings *f, struct unaligned_gemm_measured *m, uint32_t g, struct buf *text)
{
	const struct costs *costs = shared_costs(f);
	double least = bounds_least_ns(m->bounds, costs, g);
	int64_t ns = p->gpu_op.dur_ns[g], above = isnan(least) ? ns : least < (double)ns ? ns - (int64_t)least : 0;
	m->no_peaks |= isnan(least);
	gpu_most_add(&m->above, p, g, above);
	places_add(&m->by_shape, shared_stacks(f), buf_view(text), costs->op[g], 1, ns);
	if (!suffers(p, p->gpu_op.name[g]))
		return;
	gpu_most_add(&m->shown_above, p, g, above);
	places_add(&m->shown, shared_stacks(f), buf_view(text), costs->op[g], 1, ns);
}

/* What is known of a cost with certain strides: bits of PAD_*, -1 = not asked. */
struct pads {
	struct intern keys;
	int *v;                  /* of key i + 1: key 0 is the empty string */
	uint32_t n, cap;
};

static int *pads_at(struct pads *s, uint32_t cost, uint32_t strides)
{
	uint32_t key[2] = {cost, strides}, id = intern_put_key(&s->keys, key, sizeof key);
	if (id > s->n) {
		MEM_GROW(s->v, s->cap, id);
		s->v[s->n++] = -1;
	}
	return &s->v[id - 1];
}

static void unaligned_gemm_measure(const struct profile *p, struct findings *f, const struct step_time *w, struct unaligned_gemm_measured *m)
{
	const struct costs *costs = shared_costs(f);
	struct pads pads = {0};
	struct buf text = {0};
	const struct attentions *attention = shared_attentions(f);
	bool by_other_name = attentions_matter(attention); /* unfused-attention names these products, and says that they are not aligned */
	intern_init(&pads.keys);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t k = costs->of_gpu[g];
		enum cost_direction d;
		if (p->gpu_op.kind[g] != GPU_KERNEL || (w->n && !step_time_has(w, p->gpu_op.start_ns[g])))
			continue;
		m->kernel_ns += p->gpu_op.dur_ns[g];
		if (k == ROW_NONE || (by_other_name && attention->member[g]) || !costs->parts[g] || !is_half_gemm(&costs->cost[k]))
			continue;
		uint32_t strides = profile_arg_id(p, p->span.args[costs->op[g]], ARG_INPUT_STRIDES);
		struct op_facts facts = costs_facts(costs, p, k, &d);
		facts.strides = profile_str(p, strides);
		int *pad = pads_at(&pads, k, strides);
		if (*pad < 0)
			*pad = d == COST_FORWARD ? unaligned(&facts, &costs->cost[k]) : 0;
		if (!*pad)
			continue;
		buf_clear(&text);
		unaligned_gemm_describe(&text, &facts, &costs->cost[k], *pad);
		unaligned_gemm_add(p, f, m, g, &text);
	}
	buf_release(&text);
	intern_release(&pads.keys);
	mem_free(pads.v);
	gpu_most_choose(&m->above, w);
	gpu_most_choose(&m->shown_above, w);
}

static void unaligned_gemm_report(const struct profile *p, struct findings *f, const struct step_time *w, const struct unaligned_gemm_measured *m, bool shown)
{
	const struct places *t = shown ? &m->shown : &m->by_shape;
	double pct = 100.0 * (double)t->ns / (double)m->kernel_ns;
	struct buf evidence = {0};
	struct finding *x = findings_add(f, !shown ? FINDING_INFO : pct >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	x->problem = arena_printf(&f->arena, "%.1f %% of the kernel time goes to products of 16-bit matrices whose rows are no multiple of %d elements%s",
	                          pct, ALIGN, shown ? ", by kernels that read them in smaller pieces or without Tensor Cores" :
	                          "; whether their kernels suffer from it, their names do not tell");
	buf_cstr(&evidence, w->n ? "Per step: " : "In the recording: ");
	finding_evidence(x, f, &evidence, t, SHAPES_TOLD, w->n, true);
	finding_looks_at_most(x, p, t);
	finding_share(x, t->events, t->ns, pct);
	finding_gains_most(x, f, w, shown ? &m->shown_above : &m->above, m->no_peaks ?
	             "time of these kernels above the least at the GPU's peaks, and all of it where these or their bytes are not known" :
	             "time of these kernels above the least: their FLOPs at the GPU's peak or their bytes at its bandwidth, whichever is longer");
}

static void unaligned_gemm_run(const struct profile *p, struct findings *f)
{
	struct unaligned_gemm_measured m = {0};
	const struct step_time *w = shared_steps(f);
	m.bounds = bounds_new(p);
	gpu_most_init(&m.shown_above, p);
	gpu_most_init(&m.above, p);
	unaligned_gemm_measure(p, f, w, &m);
	if (100.0 * (double)m.shown.ns > TOO_MUCH * (double)m.kernel_ns)
		unaligned_gemm_report(p, f, w, &m, true);
	else if (100.0 * (double)m.by_shape.ns > TOO_MUCH_BY_SHAPE * (double)m.kernel_ns)
		unaligned_gemm_report(p, f, w, &m, false);
	bounds_free(m.bounds);
	gpu_most_release(&m.above);
	gpu_most_release(&m.shown_above);
	places_release(&m.shown);
	places_release(&m.by_shape);
}

const struct detector detector_unaligned_gemm = {
	.id = "unaligned-gemm",
	.title = "Matrices that are not aligned for Tensor Cores",
	.why = "Tensor Core kernels read 16 bytes at once; where rows of fp16 or bf16 matrices are no multiple of 8 elements, slower kernels run.",
	.fix = "Pad vocabulary, hidden sizes, heads and sequence lengths to multiples of 8 (64 on newer GPUs), and mask what was added.",
	.disprove = "The same product with the padded size takes as long.",
	.shares = "no-tensor-cores tf32-off",
	.report = "gemm",
	.where = DETECT_DEVICE_WORK,
	.run = unaligned_gemm_run,
};
