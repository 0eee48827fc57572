#include "analysis/time/bounds.h"
#include "detect/parts/elementwise_chains.h"
#include "detect/parts/gpu_most.h"
#include "detect/parts/layer_count.h"

/* Percent of the device time (without collectives) that fusing could take away at most; percent of the steps' time, for the severity. */
static const double TOO_MUCH = 10, LITTLE = 3, SEVERE = 15;
/* Percent of the elementwise time: more of it without shapes, and nothing can be said. */
static const double UNKNOWN = 50;
enum { CHAINS_TOLD = 3, OPS_TOLD = 8 };
/* What a kernel moves at least, on average: kernels that move less are bound by their launches, not by memory. */
static const double LEAST_BYTES = 4096;

static struct str unfused_elementwise_short_name(struct str op)
{
	struct str prefix = STR("aten::");
	return str_starts(op, prefix) ? (struct str){op.p + prefix.n, op.n - prefix.n} : op;
}

/* "copy_, pow, mean, add, rsqrt, mul, copy_, mul"; one op of several kernels once. */
static void unfused_elementwise_put_ops(const struct profile *p, struct findings *f, const uint32_t *gpu, uint32_t n, struct buf *b)
{
	const struct costs *costs = shared_costs(f);
	uint32_t told = 0, ops = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (i && costs->op[gpu[i]] == costs->op[gpu[i - 1]])
			continue;
		if (ops++ >= OPS_TOLD)
			continue;
		struct str name = unfused_elementwise_short_name(profile_str(p, p->span.name[costs->op[gpu[i]]]));
		buf_printf(b, "%s" STR_FMT, told++ ? ", " : "", STR_ARG(name));
	}
	if (ops > told)
		buf_printf(b, " and %u more", ops - told);
}

static void unfused_elementwise_put_bytes(struct buf *b, double bytes)
{
	if (bytes < 1 << 10)
		buf_printf(b, "%.0f B", bytes);
	else if (bytes < 1 << 20)
		buf_printf(b, "%.1f KiB", bytes / (1 << 10));
	else if (bytes < 1 << 30)
		buf_printf(b, "%.1f MiB", bytes / (1 << 20));
	else
		buf_printf(b, "%.2f GiB", bytes / (1 << 30));
}

/* The op in the middle of the chain's time, which names its line: the first kernels and the last may be of the code around the function. */
static uint32_t main_op(const struct profile *p, struct findings *f, const uint32_t *gpu, uint32_t n)
{
	int64_t all = 0, before = 0;
	uint32_t i = 0;
	for (uint32_t k = 0; k < n; k++)
		all += p->gpu_op.dur_ns[gpu[k]];
	for (; i + 1 < n && before + p->gpu_op.dur_ns[gpu[i]] < all / 2; i++)
		before += p->gpu_op.dur_ns[gpu[i]];
	return shared_costs(f)->op[gpu[i]];
}

static void unfused_elementwise_put_evidence(const struct profile *p, struct findings *f, const struct step_time *w, const struct chains *c, struct finding *x)
{
	unsigned steps = w->n ? w->n : 1;
	struct places which = {0};
	struct layer_count layers;
	struct buf b = {0}, ops = {0};
	layer_count_init(&layers, p, f);
	for (uint32_t i = 0; i < c->n; i++) {
		const uint32_t *gpu = c->gpu + c->v[i].first;
		buf_clear(&ops);
		unfused_elementwise_put_ops(p, f, gpu, c->v[i].n, &ops);
		places_add(&which, shared_stacks(f), buf_view(&ops), main_op(p, f, gpu, c->v[i].n), 1, c->v[i].ns);
		layer_count_add(&layers, gpu[0]);
	}
	buf_printf(&b, w->n > 1 ? "%.1f kernels a step in %.1f chains: " : "%.0f kernels in %.0f chains: ", (double)c->n_gpu / steps, (double)c->n / steps);
	places_text(&which, CHAINS_TOLD, steps, true, &b);
	if (c->bytes == INT64_MAX) {
		buf_cstr(&b, ". The bytes that they read and write do not fit 64 bits, so that the shapes are doubtful");
	} else {
		buf_cstr(&b, ". They read and write ");
		unfused_elementwise_put_bytes(&b, (double)c->bytes / steps);
		buf_cstr(&b, w->n > 1 ? " per step; one kernel per chain would save " : "; one kernel per chain would save ");
		unfused_elementwise_put_bytes(&b, (double)(c->bytes - c->least_bytes) / steps);
	}
	layer_count_text(&layers, &b);
	x->evidence = finding_text(f, &b);
	finding_looks_at_most(x, p, &which);
	buf_release(&ops);
	layer_count_release(&layers);
	places_release(&which);
}

/* A chain is of one stream, so of one GPU. */
static void unfused_elementwise_find_most(const struct profile *p, const struct step_time *w, const struct chains *c, struct gpu_most *most)
{
	gpu_most_init(most, p);
	for (uint32_t i = 0; i < c->n; i++)
		for (uint32_t k = 0; k < c->v[i].n; k++)
			gpu_most_add(most, p, c->gpu[c->v[i].first + k], k ? 0 : bounds_above_ns(c->v[i].ns, c->v[i].least_ns));
	gpu_most_choose(most, w);
}

static void unfused_elementwise_report(const struct profile *p, struct findings *f, const struct step_time *w, const struct chains *c)
{
	struct gpu_most most;
	unfused_elementwise_find_most(p, w, c, &most);
	double pct = 100.0 * (double)c->ns / (double)c->device_ns, above = w->n ? step_time_pct(w, most.ns) : pct;
	struct finding *x = findings_add(f, above >= SEVERE ? FINDING_MEDIUM : above >= LITTLE ? FINDING_LOW : FINDING_INFO);
	x->problem = arena_printf(&f->arena, "%.1f %% of the device time (without collectives) goes to chains of kernels that do next to no arithmetic, "
	                          "each of which reads from memory what the one before it wrote", pct);
	unfused_elementwise_put_evidence(p, f, w, c, x);
	finding_share(x, c->n_gpu, c->ns, pct);
	finding_gains_most(x, f, w, &most, c->least_known ?
	             "time of these chains above that of reading the operands of the first kernel and writing the result of the last, once, at the GPU's "
	             "memory bandwidth" :
	             "time of these chains above the least that their bytes take, and all of it where the GPU's bandwidth is not known");
	gpu_most_release(&most);
}

static void unfused_elementwise_run(const struct profile *p, struct findings *f)
{
	struct chains *c = chains_new(p, f);
	bool moves = (double)c->bytes >= LEAST_BYTES * (double)c->n_gpu;
	if (moves && c->device_ns && 100.0 * (double)c->above_ns >= TOO_MUCH * (double)c->device_ns)
		unfused_elementwise_report(p, f, shared_steps(f), c);
	else if (100.0 * (double)c->passing_ns >= TOO_MUCH * (double)c->device_ns && 100.0 * (double)c->unsized_ns > UNKNOWN * (double)c->passing_ns)
		findings_missing(f, "the ops or shapes of most elementwise kernels were not recorded");
	chains_free(c);
}

const struct detector detector_unfused_elementwise = {
	.id = "unfused-elementwise",
	.title = "Elementwise kernels that one kernel could do",
	.why = "A kernel that adds, scales or converts takes as long as reading and writing its tensors; a chain of them moves the same data again and "
	       "again, which a compiler or a fused op keeps on the chip.",
	.fix = "torch.compile the model, or the function that the line names; or call fused forms: torch.nn.RMSNorm, torch.nn.functional.gelu, Liger or Apex "
	       "kernels for rotary embeddings and SwiGLU.",
	.disprove = "torch.compile makes no fewer kernels of these lines, or the step is no shorter; results follow each other by order and size of tensors "
	            "alone, which a trace cannot prove.",
	.shares = "launch-bound recomputation no-tensor-cores",
	.report = "roofline",
	.where = DETECT_DEVICE_WORK,
	.run = unfused_elementwise_run,
};
