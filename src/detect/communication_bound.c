#include "analysis/ranks/job_files.h"
#include "base/mem.h"
#include "base/sort.h"
#include "detect/parts/collective_waits.h"

/* Percent of the steps' time, mean over the GPUs. */
static const double TOO_MUCH = 10, SEVERE = 30;
/* A step has far more than the others if it has so many times the median of the steps, and so many percent of a step more. */
static const double UNEVEN = 1.5, UNEVEN_PCT = 5;
enum { COLLECTIVES_TOLD = 3 };

#define COMPARE_RANKS "Find the rank that the others wait for, and why: `opscope report stragglers` with the recordings of all ranks. Even out its work first. "

static const char *const advice[COLLECTIVE_USES] = {
	[COLLECTIVE_UNKNOWN] = COMPARE_RANKS "What remains is transfer: begin collectives sooner, beside computation that does not need their result, join small "
	                       "messages, use faster links between the ranks.",
	[COLLECTIVE_GRADIENTS] = COMPARE_RANKS "What remains is transfer of gradients: let it run beside the backward pass (DistributedDataParallel does, in buckets of "
	                         "bucket_cap_mb), send it in 16 bits (bf16_compress_hook), or less often (gradient accumulation within no_sync()).",
	[COLLECTIVE_LAYERS] = COMPARE_RANKS "What remains is transfer that the next layer needs: keep the group of ranks that share a layer small and on the fastest links "
	                      "(NVLink), use sequence parallelism, and overlap each product with its collective (tp_comm_overlap in Megatron and Transformer Engine, "
	                      "async tensor parallelism in torch.compile).",
	[COLLECTIVE_SHARDS] = COMPARE_RANKS "What remains is transfer of parameters and their gradients: fetch the next layer's sooner (backward_prefetch, forward_prefetch), "
	                      "shard within a machine only (HYBRID_SHARD), or keep parameters whole (SHARD_GRAD_OP) where memory allows.",
};

/* The use with most exposed time. */
static enum collective_use main_use(const struct collectives *c)
{
	int64_t ns[COLLECTIVE_USES] = {0};
	unsigned best = 0;
	for (uint32_t i = 0; i < c->n; i++)
		ns[c->v[i].use] += c->v[i].exposed_ns;
	for (unsigned u = 1; u < COLLECTIVE_USES; u++)
		best = ns[u] > ns[best] ? u : best;
	return (enum collective_use)best;
}

static void communication_bound_put_gpus(const struct collectives *c, const struct step_time *w, struct buf *out)
{
	const struct collective_gpu *least = &c->gpu[0], *most = collectives_most(c);
	for (uint32_t i = 1; i < c->n_gpus; i++)
		least = c->gpu[i].exposed_ns < least->exposed_ns ? &c->gpu[i] : least;
	if (c->n_gpus < 2)
		return;
	buf_printf(out, ", mean of %u GPUs: least on GPU %d (%.3f ms), most on GPU %d (%.3f ms)", c->n_gpus, least->device, (double)least->exposed_ns / 1e6 / w->n,
	           most->device, (double)most->exposed_ns / 1e6 / w->n);
}

/* Names the collectives with most exposed time, and says where to look first. */
static void put_collectives(const struct profile *p, struct findings *f, const struct collectives *c, const struct step_time *w, struct finding *x, struct buf *out)
{
	struct places places = {0};
	for (uint32_t i = 0; i < c->n; i++) {
		const struct collective *k = &c->v[i];
		if (k->exposed_ns)
			places_add(&places, shared_stacks(f), collective_name(p, k->gpu_op), k->at, 1, k->exposed_ns);
	}
	for (uint32_t g = 0; g < c->n_gpus; g++)
		for (size_t i = 0; i < c->gpu[g].exposed.n; i++)
			finding_looks_at(x, c->gpu[g].exposed.v[i].start, c->gpu[g].exposed.v[i].end);
	places_text(&places, COLLECTIVES_TOLD, w->n * c->n_gpus, true, out);
	places_release(&places);
}

static void put_waits(const struct collective_waits *t, const struct step_time *w, struct buf *out)
{
	buf_printf(out, ". The shortest of each collective over the GPUs add up to %.3f ms, which is transfer; %.3f ms more are waiting, mean of the GPUs; GPU %d comes last "
	           "in %llu of %llu", (double)t->transfer_ns / 1e6 / w->n, (double)t->wait_ns / 1e6 / w->n, t->last_device, (unsigned long long)t->last_n,
	           (unsigned long long)t->n);
}

/* Names the step that has far more exposed time than the others. Equal messages take equally long in each step, so that the excess is not transfer. */
static void put_uneven(const struct profile *p, const struct collectives *c, const struct step_time *w, struct buf *out)
{
	const struct steps *s = p->steps;
	const struct intervals *exposed = &collectives_most(c)->exposed;
	if (w->kind != WINDOW_STEPS || w->n < 3)
		return;
	struct sort_item *ns = NEW_ARRAY_RAW(s->n, struct sort_item);
	for (unsigned i = 0; i < s->n; i++)
		ns[i] = (struct sort_item){sort_key_i64(intervals_length_within(exposed, s->v[i].start_ns, s->v[i].end_ns)), i, 0};
	sort_items(ns, s->n);
	const struct step *longest = &s->v[ns[s->n - 1].row], *middle = &s->v[ns[(s->n - 1) / 2].row];
	int64_t most = intervals_length_within(exposed, longest->start_ns, longest->end_ns), usual = intervals_length_within(exposed, middle->start_ns, middle->end_ns);
	if ((double)most > UNEVEN * (double)usual && (double)(most - usual) > UNEVEN_PCT / 100 * (double)w->ns / w->n)
		buf_printf(out, ". Step %lld has %.3f ms of it, others %.3f ms: if its messages are no larger, what is more is waiting", (long long)longest->number,
		           (double)most / 1e6, (double)usual / 1e6);
	mem_free(ns);
}

static void put_other_ranks(const struct profile *p, const struct collectives *c, struct buf *out)
{
	struct buf names = {0};
	unsigned n = job_files_of_others(p, &names);
	if (n)
		buf_printf(out, ". Beside this trace lie those of %u other rank%s: " STR_FMT, n, n == 1 ? "" : "s", STR_ARG(buf_view(&names)));
	else if (c->ranks > 1)
		buf_printf(out, ". Up to %lld ranks take part in one", (long long)c->ranks);
	buf_release(&names);
}

static void communication_bound_report(const struct profile *p, struct findings *f, const struct step_time *w, const struct collectives *c, int64_t ns)
{
	double pct = step_time_pct(w, ns);
	struct collective_waits waits = collective_waits_find(p, c);
	struct buf evidence = {0};
	struct finding *x = findings_add(f, pct > SEVERE ? FINDING_HIGH : FINDING_MEDIUM);
	x->problem = arena_printf(&f->arena, "%.1f %% of the %s is communication that no other work of its GPU hides%s", pct, w->time,
	                          waits.known ? "" : c->n_gpus == 1 ? "; one rank alone does not tell waiting for other ranks from transfer"
	                                                            : "; these GPUs alone do not tell waiting for other ranks from transfer");
	buf_printf(&evidence, "%s: %.3f ms of %.3f ms", w->per, (double)ns / 1e6 / w->n, (double)w->ns / 1e6 / w->n);
	communication_bound_put_gpus(c, w, &evidence);
	buf_cstr(&evidence, ". Not hidden: ");
	put_collectives(p, f, c, w, x, &evidence);
	put_uneven(p, c, w, &evidence);
	if (waits.known)
		put_waits(&waits, w, &evidence);
	else
		put_other_ranks(p, c, &evidence);
	x->evidence = finding_text(f, &evidence);
	x->advice = str_from(advice[main_use(c)]);
	finding_rests_on(x, w, c->n, ns);
	finding_covers(x, &collectives_most(c)->exposed);
	finding_gain(x, w, ns, waits.known ? "communication that no other work of its GPU hides, mean over the GPUs"
	                                   : "communication that no other work of its GPU hides; how much of it is waiting for other ranks, this trace does not tell");
}

static void communication_bound_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	struct collectives *c = collectives_new(p, f, w);
	int64_t ns = collectives_exposed_ns(c);
	if (step_time_pct(w, ns) > TOO_MUCH)
		communication_bound_report(p, f, w, c, ns);
	collectives_free(c);
}

const struct detector detector_communication_bound = {
	.id = "communication-bound",
	.title = "The GPU waits for other ranks or for the network",
	.why = "While a GPU runs a collective and nothing beside it, it computes nothing: it transfers, or waits for the rank that comes last.",
	.fix = "Find the rank that the others wait for, and why: `opscope report stragglers` with the recordings of all ranks. What remains when all come together "
	       "is transfer: begin collectives sooner, beside computation that does not need their result, join small messages, use faster links.",
	.disprove = "Recordings of all ranks show that one begins these collectives late: then this rank waits for that one, not for the network.",
	.report = "gpu-timeline",
	.where = DETECT_WINDOW,
	.run = communication_bound_run,
};
