#include "analysis/time/busy.h"
#include "detect/parts/inside.h"
#include "detect/parts/memory_share.h"
#include "store/torch_names.h"

/* Percent of the device's computing time. Recomputing the whole forward pass takes about a quarter of a training step; a tenth is worth a look at
 * which layers need it. */
static const double TOO_MUCH = 10;
/* Percent of the device's memory up to which there is room to recompute less. */
static const double ROOM = 75;
enum { PLACES_TOLD = 3 };

/* Marks and classes. In a backward node (NODE), the forward pass runs again (AGAIN) inside a frame of torch.utils.checkpoint, the node of its
 * reentrant form, or a module; within that form the backward pass then goes on (NODE again). */
enum { OUTSIDE, NODE, AGAIN, MODULE };

static uint8_t recomputation_class_of(struct str name)
{
	if (str_has(name, STR("torch/utils/checkpoint.py(")) && (str_ends(name, STR(": unpack_hook")) || str_ends(name, STR(": recompute_fn"))))
		return AGAIN;
	if (str_eq(name, STR("CheckpointFunctionBackward")))
		return AGAIN;
	if (str_starts(name, STR(TORCH_ENGINE)))
		return NODE;
	return str_starts(name, STR(TORCH_MODULE)) ? MODULE : OUTSIDE;
}

static uint8_t recomputation_mark_of(uint8_t around, uint8_t own)
{
	if (own == MODULE)
		return around == NODE ? AGAIN : around;
	return own ? own : around;
}

static void recomputation_find_places(const struct profile *p, struct findings *f, const struct step_time *w, const uint8_t *mark, struct places *t)
{
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t op = p->gpu_op.op[g];
		if (op != ROW_NONE && inside_of_gpu(p, mark, g) == AGAIN && step_time_has(w, p->gpu_op.start_ns[g]))
			places_add(t, shared_stacks(f), profile_str(p, p->span.name[op]), op, 1, p->gpu_op.dur_ns[g]);
	}
}

static void recomputation_report(const struct profile *p, struct findings *f, const struct step_time *w, const uint8_t *mark, struct inside_cost c,
                                 double compute_pct)
{
	struct places t = {0};
	struct buf evidence = {0};
	double used = memory_share_pct(p, MEMORY_ALLOCATED);
	struct finding *x = findings_add(f, used >= 0 && used < ROOM ? FINDING_LOW : FINDING_INFO);
	x->problem = arena_printf(&f->arena, "%.1f %% of the GPU's computing time goes to running the forward pass again (activation "
	                          "checkpointing)", compute_pct);
	buf_printf(&evidence, "%.0f pieces of device work%s are launched by the forward pass within the backward pass. %s, most time: ",
	           (double)c.works / w->n, w->a_step, w->per);
	recomputation_find_places(p, f, w, mark, &t);
	places_text(&t, PLACES_TOLD, w->n, true, &evidence);
	places_release(&t);
	if (used >= 0)
		buf_printf(&evidence, ". At most %.0f %% of the GPU's memory was allocated", used);
	else
		buf_cstr(&evidence, ". How full the memory is was not recorded");
	x->evidence = finding_text(f, &evidence);
	finding_rests_on(x, w, c.works, c.device_ns);
	x->share_pct = compute_pct;
	finding_covers(x, &c.when);
	finding_gain(x, w, c.device_ns + c.idle_ns, "device time of this work, and the time without device work while the host runs it");
}

static void recomputation_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	uint8_t *mark = inside_new(p, recomputation_class_of, recomputation_mark_of);
	struct inside_cost c = inside_cost_of(p, w, mark, AGAIN);
	struct busy b;
	busy_measure(p, NULL, 0, &w->all, &b);
	double pct = b.ns[BUSY_COMPUTE] ? 100.0 * (double)c.device_ns / (double)b.ns[BUSY_COMPUTE] : 0;
	if (c.works && pct >= TOO_MUCH)
		recomputation_report(p, f, w, mark, c, pct < 100 ? pct : 100);
	inside_cost_release(&c);
	mem_free(mark);
}

const struct detector detector_recomputation = {
	.id = "recomputation",
	.title = "The forward pass runs twice",
	.why = "Activation checkpointing trades computing for memory; where memory would suffice, it only costs.",
	.fix = "Checkpoint only the layers whose activations are large and cheap to recompute (selective checkpointing, every second block), as far as "
	       "memory allows.",
	.disprove = "Without it the run does not fit in memory, or only with a batch so small that a sample takes longer.",
	.shares = "gpu-starvation",
	.report = "modules",
	.where = DETECT_WINDOW,
	.run = recomputation_run,
};
