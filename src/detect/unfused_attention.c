#include "detect/parts/attention_chains.h"
#include "detect/parts/gpu_most.h"
#include "detect/parts/layer_count.h"

/* Percent of the steps' time that can go at most (of the device time where there are no steps). */
static const double LITTLE = 3, SEVERE = 10, WORST = 25;
/* Elements of 16 bits that make the 16 bytes which Tensor Core kernels read at once. */
enum { ALIGN = 8, SHAPES_TOLD = 3 };

static void unfused_attention_describe(const struct attention *x, struct buf *b)
{
	buf_printf(b, "%s%lld queries x %lld keys, %lld heads x batch, head size %lld", x->backward ? "backward, " : "", (long long)x->q,
	           (long long)x->k, (long long)x->b, (long long)x->d);
	if (x->dtype != DTYPE_UNKNOWN)
		buf_printf(b, ", %s", dtype_short(x->dtype));
}

/* What else keeps the same kernels slow. */
static void put_aspects(const struct attentions *a, struct buf *b)
{
	for (uint32_t i = 0; i < a->n; i++) {
		const struct attention *x = &a->v[i];
		if (dtype_bits(x->dtype) != 16 || x->k % ALIGN == 0 || x->q * x->k < ALIGN * ALIGN * ALIGN)
			continue;
		buf_printf(b, ". Rows of %lld scores are not a multiple of %d elements, for which slower products run: a fused kernel makes no such rows",
		           (long long)x->k, ALIGN);
		return;
	}
}

static void unfused_attention_put_evidence(const struct profile *p, struct findings *f, const struct step_time *w, const struct attentions *a, struct finding *x)
{
	struct places shapes = {0};
	struct layer_count layers;
	struct buf b = {0}, text = {0};
	layer_count_init(&layers, p, f);
	for (uint32_t i = 0; i < a->n; i++) {
		buf_clear(&text);
		unfused_attention_describe(&a->v[i], &text);
		places_add(&shapes, shared_stacks(f), buf_view(&text), a->v[i].op, 1, a->v[i].ns);
		layer_count_add(&layers, a->v[i].gpu);
	}
	buf_printf(&b, w->n > 1 ? "%.1f kernels a step: " : "%.0f kernels: ", (double)a->kernels / (w->n ? w->n : 1));
	places_text(&shapes, SHAPES_TOLD, w->n, true, &b);
	layer_count_text(&layers, &b);
	put_aspects(a, &b);
	x->evidence = finding_text(f, &b);
	finding_looks_at_most(x, p, &shapes);
	buf_release(&text);
	layer_count_release(&layers);
	places_release(&shapes);
}

/* An attention is of one stream, so of one GPU. */
static void unfused_attention_find_most(const struct profile *p, const struct step_time *w, const struct attentions *a, struct gpu_most *most)
{
	gpu_most_init(most, p);
	for (uint32_t i = 0; i < a->n; i++)
		gpu_most_add(most, p, a->v[i].gpu, bounds_above_ns(a->v[i].ns, a->v[i].least_ns));
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		if (a->member[g])
			gpu_most_add(most, p, g, 0);
	gpu_most_choose(most, w);
}

static void unfused_attention_report(const struct profile *p, struct findings *f, const struct step_time *w, const struct attentions *a)
{
	struct gpu_most most;
	unfused_attention_find_most(p, w, a, &most);
	double pct = 100.0 * (double)a->ns / (double)a->device_ns, above = w->n ? step_time_pct(w, most.ns) : pct;
	struct finding *x = findings_add(f, above >= WORST ? FINDING_HIGH : above >= SEVERE ? FINDING_MEDIUM :
	                                 above >= LITTLE ? FINDING_LOW : FINDING_INFO);
	x->problem = arena_printf(&f->arena, "%.1f %% of the device time (without collectives) goes to attention whose products and softmax are kernels of their own, which "
	                          "write all scores to memory and read them again", pct);
	unfused_attention_put_evidence(p, f, w, a, x);
	finding_share(x, a->kernels, a->ns, pct);
	finding_gains_most(x, f, w, &most, a->least_known ?
	             "time of these kernels above the least of one fused kernel: the FLOPs of the products at the GPU's peak (half of them where scores are "
	             "masked; backward five products) or the bytes of Q, K, V and the result at its bandwidth, whichever is longer" :
	             "time of these kernels above the least of one fused kernel, and all of it where the GPU's peaks or the types are not known");
	gpu_most_release(&most);
}

static void unfused_attention_run(const struct profile *p, struct findings *f)
{
	const struct attentions *a = shared_attentions(f);
	if (attentions_matter(a))
		unfused_attention_report(p, f, shared_steps(f), a);
	else if (a->unsized_ns)
		findings_missing(f, "there are kernels of softmax between products whose shapes were not recorded");
}

const struct detector detector_unfused_attention = {
	.id = "unfused-attention",
	.title = "Attention is not one fused kernel",
	.why = "Attention that is written out as product, softmax and product writes its scores, queries x keys of each head, to memory and reads them "
	       "several times; a fused kernel (FlashAttention and its like) keeps them on the chip.",
	.fix = "Call torch.nn.functional.scaled_dot_product_attention, which has fused kernels, forward and backward; in transformers "
	       "attn_implementation=\"sdpa\" or \"flash_attention_2\", in Megatron --use-flash-attn, in nn.MultiheadAttention need_weights=False.",
	.disprove = "With scaled_dot_product_attention the step is no shorter; or the probabilities themselves are needed (output_attentions, a hook), "
	            "or what lies between the products is nothing that a fused kernel can do.",
	.shares = "unaligned-gemm tf32-off no-tensor-cores unfused-elementwise recomputation",
	.report = "gemm",
	.where = DETECT_DEVICE_WORK,
	.run = unfused_attention_run,
};
