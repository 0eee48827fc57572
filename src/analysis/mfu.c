#include "analysis/mfu.h"

#include "analysis/steps.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"

#include <stdlib.h>

/* Percent of the kernel time that may be of products with unknown FLOPs. */
static const double MOST_UNKNOWN = 10;
/* Share of the FLOPs that a type must have to be told. */
static const double LEAST_TOLD = 0.0005;
/* No run has so many steps and GPUs; an input that says so gets the rows of all steps alone. */
enum { MOST_ROWS = 1 << 20 };

struct work {
	const struct profile *p;
	struct costs *costs;
	struct bounds *bounds;
	struct mfu *out;
	struct idmap gpu_of;     /* ordinal -> number of the GPU */
	unsigned gpus, steps;    /* steps that have rows of their own */
	int64_t first_ns, last_ns; /* of all device work */
};

/* --- which GPUs, and rows for them ------------------------------------------------------------------------------ */

static int32_t ordinal(const struct profile *p, uint32_t g)
{
	uint32_t launch = p->gpu_op.launch[g];
	return launch == ROW_NONE ? INT32_MIN : p->launch.device[launch];
}

static int by_ordinal(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
	return (x > y) - (x < y);
}

/* Steps are in order of time, and none begins before the one before it has ended. */
static int64_t length_of_all(const struct steps *s)
{
	int64_t ns = 0;
	for (unsigned i = 0; i < s->n; i++)
		ns += s->v[i].end_ns - s->v[i].start_ns;
	return ns;
}

/* Distinct ordinals of device work, in order; the caller frees them. */
static int32_t *find_gpus(struct work *w)
{
	const struct profile *p = w->p;
	int32_t *id = NULL;
	uint32_t cap = 0;
	int64_t min = INT32_MIN, max = INT32_MIN;
	for (uint32_t i = 0; i < p->launch.rows.n; i++)
		max = p->launch.device[i] > max ? p->launch.device[i] : max;
	idmap_init(&w->gpu_of, min, max, (uint64_t)p->launch.rows.n + 1);
	w->first_ns = INT64_MAX;
	w->last_ns = INT64_MIN;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		int64_t start = p->gpu_op.start_ns[g], end = start + p->gpu_op.dur_ns[g];
		w->first_ns = start < w->first_ns ? start : w->first_ns;
		w->last_ns = end > w->last_ns ? end : w->last_ns;
		if (idmap_get(&w->gpu_of, ordinal(p, g)) != IDMAP_NONE)
			continue;
		MEM_GROW(id, cap, w->gpus + 1);
		id[w->gpus] = ordinal(p, g);
		idmap_put(&w->gpu_of, ordinal(p, g), w->gpus++);
	}
	if (w->gpus)
		qsort(id, w->gpus, sizeof *id, by_ordinal);
	for (unsigned i = 0; i < w->gpus; i++)
		idmap_put(&w->gpu_of, id[i], i);
	return id;
}

static void make_rows(struct work *w, const int32_t *id)
{
	const struct steps *s = w->p->steps;
	struct mfu *m = w->out;
	uint32_t each = w->steps + 1;
	m->n = w->gpus * each;
	m->v = NEW_ARRAY(m->n, struct mfu_row);
	for (uint32_t i = 0; i < m->n; i++) {
		uint32_t step = i % each == w->steps ? MFU_ALL : i % each;
		struct mfu_row *r = &m->v[i];
		*r = (struct mfu_row){.step = step, .device = id[i / each], .peak_name = ""};
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
static uint32_t step_at(const struct steps *s, int64_t time, bool on_host)
{
	uint32_t a = 0, b = s->n;
	while (a < b) {
		uint32_t m = a + (b - a) / 2;
		if ((on_host ? s->v[m].host_start_ns : s->v[m].start_ns) <= time)
			a = m + 1;
		else
			b = m;
	}
	if (!a)
		return ROW_NONE;
	const struct step *x = &s->v[a - 1];
	return time < (on_host ? x->host_end_ns : x->end_ns) ? a - 1 : ROW_NONE;
}

static uint32_t step_of(const struct work *w, uint32_t g)
{
	const struct profile *p = w->p;
	if (w->out->whole)
		return 0;
	uint32_t launcher = p->gpu_op.op[g] != ROW_NONE ? p->gpu_op.op[g] : p->gpu_op.call[g];
	if (launcher != ROW_NONE)
		return step_at(p->steps, p->span.start_ns[launcher], true);
	return step_at(p->steps, p->gpu_op.start_ns[g], false);
}

static bool plus(int64_t *sum, int64_t v)
{
	if (*sum == COST_UNKNOWN || __builtin_add_overflow(*sum, v, sum))
		*sum = COST_UNKNOWN;
	return *sum != COST_UNKNOWN;
}

static void add_type(struct mfu_row *r, enum dtype t, enum tri tc, int64_t flops)
{
	unsigned i = 0;
	while (i < MFU_TYPES && r->type[i].flops && (r->type[i].dtype != t || r->type[i].tensor_core != tc))
		i++;
	if (i == MFU_TYPES) /* no more than four matter: the least of them makes room */
		i = MFU_TYPES - 1;
	if (r->type[i].dtype != t || r->type[i].tensor_core != tc)
		r->type[i].flops = 0;
	r->type[i].dtype = t;
	r->type[i].tensor_core = tc;
	plus(&r->type[i].flops, flops);
	for (; i && r->type[i].flops > r->type[i - 1].flops; i--) {
		struct mfu_type swap = r->type[i];
		r->type[i] = r->type[i - 1];
		r->type[i - 1] = swap;
	}
}

/* Whether a kernel is a product, or may be one. */
static bool may_multiply(const struct cost *c, struct kernel_info k)
{
	if (c)
		return bounds_multiplies(c->class);
	return k.class == KERNEL_GEMM || k.class == KERNEL_CONV || k.class == KERNEL_ATTENTION || k.class == KERNEL_RNN || k.class == KERNEL_UNKNOWN ||
	       k.class == KERNEL_OTHER || (k.class == KERNEL_TRITON && k.dot);
}

static void add_to(struct work *w, struct mfu_row *r, uint32_t g, int64_t flops)
{
	uint32_t at = w->costs->of_gpu[g];
	const struct cost *c = at == ROW_NONE ? NULL : &w->costs->cost[at];
	struct kernel_info k = bounds_kernel(w->bounds, g);
	int64_t ns = w->p->gpu_op.kind[g] == GPU_KERNEL ? w->p->gpu_op.dur_ns[g] : 0; /* a copy or set may carry its op's FLOPs */
	r->kernel_ns += ns;
	r->gpu = bounds_gpu(w->bounds, g);
	if (flops < 0) {
		r->products_unknown_ns += may_multiply(c, k) ? ns : 0;
		return;
	}
	r->known_ns += ns;
	plus(&r->flops, flops);
	if (flops > 0 && bounds_multiplies(c->class))
		add_type(r, c->dtype != DTYPE_UNKNOWN ? c->dtype : k.dtype, kernel_tensor_core(k, c->dtype), flops);
}

static void add_work(struct work *w, uint32_t g)
{
	struct mfu *m = w->out;
	uint32_t step = step_of(w, g), gpu = idmap_get(&w->gpu_of, ordinal(w->p, g));
	int64_t flops = costs_flops(w->costs, g);
	if (flops > 0)
		plus(step == ROW_NONE ? &m->outside_flops : &m->inside_flops, flops);
	if (step == ROW_NONE || bounds_kernel(w->bounds, g).class == KERNEL_COMM)
		return;
	uint32_t first = gpu * (w->steps + 1);
	if (step < w->steps)
		add_to(w, &m->v[first + step], g, flops);
	add_to(w, &m->v[first + w->steps], g, flops);
}

/* --- what follows ----------------------------------------------------------------------------------------------- */

static void set_peak(struct mfu_row *r)
{
	const struct mfu_type *t = &r->type[0];
	if (!t->flops)
		return;
	r->peak_flops = gpu_peak_flops(r->gpu, t->dtype, t->tensor_core, false);
	r->peak_name = gpu_peak_name(r->gpu, t->dtype, t->tensor_core);
}

static void finish(struct mfu_row *r)
{
	r->achieved_flops = r->mfu_pct = NAN;
	set_peak(r);
	if (!r->kernel_ns)
		r->why = "no kernel ran, or only collectives";
	else if (r->flops < 0)
		r->why = "its FLOPs do not fit 64 bits";
	else if (!r->known_ns)
		r->why = "the FLOPs of no kernel are known: shapes were not recorded, or no op launched them";
	else if (r->ns <= 0)
		r->why = "it has no length";
	if (r->why)
		return;
	r->achieved_flops = (double)r->flops / (double)r->ns * 1e9;
	if (100.0 * (double)r->products_unknown_ns > MOST_UNKNOWN * (double)r->kernel_ns)
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
	struct work w = {.p = p, .out = NEW(struct mfu), .costs = costs_new(p, COST_DEFAULT), .bounds = bounds_new(p)};
	w.out->whole = p->steps->whole_trace || !p->steps->n;
	int32_t *id = find_gpus(&w);
	w.steps = w.out->whole || (uint64_t)w.gpus * p->steps->n > MOST_ROWS ? 0 : p->steps->n;
	make_rows(&w, id);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		add_work(&w, g);
	for (uint32_t i = 0; i < w.out->n; i++)
		finish(&w.out->v[i]);
	mem_free(id);
	idmap_release(&w.gpu_of);
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
	double all = 0;
	for (int i = 0; i < MFU_TYPES; i++)
		all += (double)r->type[i].flops;
	for (int i = 0; i < MFU_TYPES && (double)r->type[i].flops > LEAST_TOLD * all; i++)
		buf_printf(out, "%s%s on %s %.1f %%", i ? ", " : "", dtype_short(r->type[i].dtype), cores[r->type[i].tensor_core],
		           100 * (double)r->type[i].flops / all);
}
