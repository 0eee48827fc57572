#include "analysis/costs/mfu.h"

#include "analysis/names/names.h"
#include "analysis/steps/steps.h"
#include "analysis/time/gpus.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/search.h"

/* Percent of the kernel time that may be of products with unknown FLOPs. */
static const double MOST_UNKNOWN = 10;
/* Share of the FLOPs that a type must have to be told. */
static const double LEAST_TOLD = 0.0005;
/* No run has so many steps and GPUs; an input that says so gets the rows of all steps alone. */
enum { MOST_ROWS = 1 << 20 };

/* FLOPs of products of one row, by type and cores. */
struct mfu_sum {
	struct mfu_type of;
	uint32_t next;           /* of the same row, in work.sum; ROW_NONE */
};

struct mfu_work {
	const struct profile *p;
	struct costs *costs;
	struct bounds *bounds;
	struct mfu *out;
	struct gpus gpus;
	struct mfu_sum *sum;
	uint32_t n_sums, cap_sums;
	uint32_t *first_sum;     /* by row of `out`, in `sum`; ROW_NONE */
	unsigned steps;          /* that have rows of their own */
	int64_t first_ns, last_ns; /* of all device work */
};

/* --- rows for the GPUs and steps --------------------------------------------------------------------------------- */

/* Steps are in order of time, and none begins before the one before it has ended. */
static int64_t length_of_all(const struct steps *s)
{
	int64_t ns = 0;
	for (unsigned i = 0; i < s->n; i++)
		ns += s->v[i].end_ns - s->v[i].start_ns;
	return ns;
}

static void mfu_find_ends(struct mfu_work *w)
{
	const struct profile *p = w->p;
	w->first_ns = INT64_MAX;
	w->last_ns = INT64_MIN;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		int64_t start = p->gpu_op.start_ns[g], end = start + p->gpu_op.dur_ns[g];
		w->first_ns = start < w->first_ns ? start : w->first_ns;
		w->last_ns = end > w->last_ns ? end : w->last_ns;
	}
}

static void make_rows(struct mfu_work *w)
{
	const struct steps *s = w->p->steps;
	struct mfu *m = w->out;
	uint32_t each = w->steps + 1;
	m->n = w->gpus.n * each;
	m->v = NEW_ARRAY(m->n, struct mfu_row);
	w->first_sum = NEW_ARRAY_RAW(m->n, uint32_t);
	for (uint32_t i = 0; i < m->n; i++) {
		uint32_t step = i % each == w->steps ? MFU_ALL : i % each;
		struct mfu_row *r = &m->v[i];
		w->first_sum[i] = ROW_NONE;
		*r = (struct mfu_row){.step = step, .device = w->gpus.device[i / each], .peak_name = ""};
		if (m->whole)
			r->ns = w->last_ns - w->first_ns;
		else if (step == MFU_ALL)
			r->ns = length_of_all(s);
		else
			r->ns = s->v[step].end_ns - s->v[step].start_ns;
	}
}

/* --- what runs in a step ---------------------------------------------------------------------------------------- */

/* The last step that starts at or before a time, by its host's or its devices' times. */
static uint32_t mfu_step_at(const struct steps *s, int64_t time, bool on_host)
{
	uint32_t a = FIRST_WHERE(i, 0, s->n, (on_host ? s->v[i].host_start_ns : s->v[i].start_ns) > time);
	if (!a)
		return ROW_NONE;
	const struct step *x = &s->v[a - 1];
	return time < (on_host ? x->host_end_ns : x->end_ns) ? a - 1 : ROW_NONE;
}

static uint32_t mfu_step_of(const struct mfu_work *w, uint32_t g)
{
	const struct profile *p = w->p;
	if (w->out->whole)
		return 0;
	uint32_t launcher = p->gpu_op.op[g] != ROW_NONE ? p->gpu_op.op[g] : p->gpu_op.call[g];
	if (launcher != ROW_NONE)
		return mfu_step_at(p->steps, p->span.start_ns[launcher], true);
	return mfu_step_at(p->steps, p->gpu_op.start_ns[g], false);
}

static bool mfu_plus(int64_t *sum, int64_t v)
{
	if (*sum == COST_UNKNOWN || __builtin_add_overflow(*sum, v, sum))
		*sum = COST_UNKNOWN;
	return *sum != COST_UNKNOWN;
}

/* A row has few types, at most DTYPES x 3. */
static void add_type(struct mfu_work *w, uint32_t row, enum dtype t, enum tri tc, int64_t flops)
{
	uint32_t i = w->first_sum[row];
	while (i != ROW_NONE && (w->sum[i].of.dtype != t || w->sum[i].of.tensor_core != tc))
		i = w->sum[i].next;
	if (i == ROW_NONE) {
		i = w->n_sums++;
		MEM_GROW(w->sum, w->cap_sums, w->n_sums);
		w->sum[i] = (struct mfu_sum){{t, tc, 0}, w->first_sum[row]};
		w->first_sum[row] = i;
	}
	mfu_plus(&w->sum[i].of.flops, flops);
	mfu_plus(&w->out->v[row].product_flops, flops);
}

/* Whether a kernel is a product, or may be one. */
static bool may_multiply(const struct cost *c, struct kernel_info k)
{
	if (c)
		return bounds_multiplies(c->class);
	return k.class == KERNEL_GEMM || k.class == KERNEL_CONV || k.class == KERNEL_ATTENTION || k.class == KERNEL_RNN || k.class == KERNEL_UNKNOWN ||
	       k.class == KERNEL_OTHER || (k.class == KERNEL_TRITON && k.dot);
}

static void add_to(struct mfu_work *w, uint32_t row, uint32_t g, int64_t flops)
{
	struct mfu_row *r = &w->out->v[row];
	uint32_t at = w->costs->of_gpu[g];
	const struct cost *c = at == ROW_NONE ? NULL : &w->costs->cost[at];
	struct kernel_info k = *gpu_kernel(w->p, g);
	int64_t ns = w->p->gpu_op.kind[g] == GPU_KERNEL ? w->p->gpu_op.dur_ns[g] : 0; /* a copy or set may carry its op's FLOPs */
	r->kernel_ns += ns;
	r->gpu = bounds_gpu(w->bounds, g);
	if (flops < 0) {
		const enum gpu_evidence evidence = gpu_evidence(&w->p->gpu_op, g);
		const int64_t unknown_ns = may_multiply(c, k) ? ns : 0;
		r->products_unknown_ns += unknown_ns;
		r->replays_unknown_ns += evidence == EVIDENCE_UNKNOWN || evidence == EVIDENCE_AMBIGUOUS ? unknown_ns : 0;
		return;
	}
	r->known_ns += ns;
	mfu_plus(&r->flops, flops);
	if (flops > 0 && bounds_multiplies(c->class))
		add_type(w, row, c->dtype != DTYPE_UNKNOWN ? c->dtype : k.dtype, bounds_tensor_core(w->p, c, g), flops);
}

static void mfu_add_work(struct mfu_work *w, uint32_t g)
{
	struct mfu *m = w->out;
	uint32_t step = mfu_step_of(w, g), gpu = gpus_of(&w->gpus, w->p, g);
	int64_t flops = costs_flops(w->costs, g);
	bool inside = step != ROW_NONE && gpu != GPUS_NONE;
	if (flops > 0)
		mfu_plus(inside ? &m->inside_flops : &m->outside_flops, flops);
	if (!inside || gpu_kernel(w->p, g)->class == KERNEL_COMM)
		return;
	uint32_t first = gpu * (w->steps + 1);
	if (step < w->steps)
		add_to(w, first + step, g, flops);
	add_to(w, first + w->steps, g, flops);
}

/* --- what follows ----------------------------------------------------------------------------------------------- */

/* The types with most FLOPs. Where their sum does not fit 64 bits, which has most is not known. */
static void set_types(const struct mfu_work *w, uint32_t row)
{
	struct mfu_type *type = w->out->v[row].type;
	if (w->out->v[row].product_flops < 0)
		return;
	for (uint32_t s = w->first_sum[row]; s != ROW_NONE; s = w->sum[s].next) {
		struct mfu_type x = w->sum[s].of;
		for (int i = 0; i < MFU_TYPES; i++) {
			if (x.flops <= type[i].flops)
				continue;
			struct mfu_type less = type[i];
			type[i] = x;
			x = less;
		}
	}
}

static void set_peak(struct mfu_row *r)
{
	const struct mfu_type *t = &r->type[0];
	if (!t->flops)
		return;
	r->peak_flops = gpu_peak_flops(r->gpu, t->dtype, t->tensor_core, false);
	r->peak_name = gpu_peak_name(r->gpu, t->dtype, t->tensor_core);
}

static void mfu_finish(struct mfu_row *r)
{
	r->achieved_flops = r->mfu_pct = NAN;
	set_peak(r);
	if (!r->kernel_ns)
		r->why = "no kernel ran, or only collectives";
	else if (r->flops < 0)
		r->why = "the FLOPs do not fit 64 bits";
	else if (!r->known_ns)
		r->why = "the FLOPs of no kernel are known: shapes were not recorded, or no op launched them";
	else if (r->ns <= 0)
		r->why = "the step has no length";
	if (r->why)
		return;
	r->achieved_flops = (double)r->flops / (double)r->ns * 1e9;
	r->incomplete = 100.0 * (double)r->products_unknown_ns > MOST_UNKNOWN * (double)r->kernel_ns;
	if (r->incomplete && 2 * r->replays_unknown_ns > r->products_unknown_ns)
		r->why = "the ops that graphs replay are not known, and so their FLOPs are not (`opscope report graphs`, --capture)";
	else if (r->incomplete)
		r->why = "the FLOPs of more than a tenth of the kernel time, in products or what may be some, are not known";
	else if (!r->type[0].flops)
		r->why = "no kernel multiplies matrices";
	else if (!r->gpu)
		r->why = "what the GPU can do is not known (--gpu=NAME says which it is)";
	else if (!(r->peak_flops > 0))
		r->why = "the GPU's peak in the type of the products is not known";
	else
		r->mfu_pct = 100 * r->achieved_flops / r->peak_flops;
}

struct mfu *mfu_new(const struct profile *p)
{
	struct mfu_work w = {.p = p, .out = NEW(struct mfu), .costs = costs_new(p, &cost_own), .bounds = bounds_new(p)};
	w.out->whole = p->steps->whole_trace || !p->steps->n;
	gpus_find(p, &w.gpus);
	mfu_find_ends(&w);
	w.out->steps_left_out = !w.out->whole && (uint64_t)w.gpus.n * p->steps->n > MOST_ROWS;
	w.steps = w.out->whole || w.out->steps_left_out ? 0 : p->steps->n;
	make_rows(&w);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		mfu_add_work(&w, g);
	for (uint32_t i = 0; i < w.out->n; i++) {
		set_types(&w, i);
		mfu_finish(&w.out->v[i]);
	}
	mem_free(w.sum);
	mem_free(w.first_sum);
	gpus_release(&w.gpus);
	costs_free(w.costs);
	bounds_free(w.bounds);
	return w.out;
}

void mfu_free(struct mfu *m)
{
	if (!m)
		return;
	mem_free(m->v);
	mem_free(m);
}

void mfu_types_text(const struct mfu_row *r, struct buf *out)
{
	static const char *const cores[] = {[TRI_NO] = "ordinary cores", [TRI_YES] = "Tensor Cores", [TRI_UNKNOWN] = "unknown cores"};
	double all = (double)r->product_flops;
	for (int i = 0; i < MFU_TYPES && (double)r->type[i].flops > LEAST_TOLD * all; i++)
		buf_printf(out, "%s%s on %s %.1f %%", i ? ", " : "", dtype_short(r->type[i].dtype), cores[r->type[i].tensor_core],
		           100 * (double)r->type[i].flops / all);
}
