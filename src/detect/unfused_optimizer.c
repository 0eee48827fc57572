#include "base/search.h"
#include "detect/parts/inside.h"
#include "store/torch_names.h"

/* Percent of the steps' time that the optimizer takes: parameter by parameter, and by foreach, which is much nearer to the best. */
static const double TOO_MUCH_SINGLE = 2, TOO_MUCH_FOREACH = 5, SEVERE = 10;
/* Kernels a step; a model with few parameters has few. */
enum { FEWEST_SINGLE = 50, FEWEST_FOREACH = 10 };

enum { OUTSIDE, OPTIMIZER };

/* torch's own optimizers, which have foreach forms. The advice would not help another optimizer. */
static bool has_foreach(struct str class)
{
	static const char *const names[] = {"Adam", "AdamW", "SGD", "Adagrad", "Adadelta", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop"};
	return ANY_WHERE(i, 0, sizeof names / sizeof names[0], str_eqc(class, names[i]));
}

/* "Optimizer.step#AdamW.step"; older versions say "Optimizer.step" alone. */
static uint8_t unfused_optimizer_class_of(struct str name)
{
	struct str class = name, end = STR(".step");
	if (!str_skip(&class, STR(TORCH_OPTIMIZER_STEP)))
		return OUTSIDE;
	if (!class.n)
		return OPTIMIZER;
	if (class.p[0] != '#' || !str_ends(class, end))
		return OUTSIDE;
	return has_foreach((struct str){class.p + 1, class.n - 1 - end.n}) ? OPTIMIZER : OUTSIDE;
}

/* Kernels that the optimizer launched: one parameter at a time, many at once (foreach), or fused. */
struct kernels {
	uint64_t all, foreach, fused;
};

/* multi_tensor_apply kernels work on many parameters at once; "Fused" ones do all of an optimizer's arithmetic. */
static struct kernels count_kernels(const struct profile *p, const struct step_time *w, const uint8_t *mark)
{
	struct kernels k = {0};
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		if (p->gpu_op.kind[g] != GPU_KERNEL || inside_of_gpu(p, mark, g) != OPTIMIZER || !step_time_has(w, p->gpu_op.start_ns[g]))
			continue;
		struct str name = profile_str(p, p->gpu_op.name[g]);
		bool multi = str_has(name, STR("multi_tensor_apply"));
		bool fused = str_has_nocase(name, STR("fused")) || str_has(name, STR("distributed_adam")) || str_starts(name, STR("triton"));
		k.all++;
		k.fused += fused;
		k.foreach += multi && !fused;
	}
	return k;
}

/* The optimizer's function for single tensors, if a frame of it was recorded. */
static struct str single_frame(const struct profile *p)
{
	for (uint32_t i = 0; i < p->strings.n; i++)
		if (str_has(profile_str(p, i), STR(": _single_tensor_")))
			return profile_str(p, i);
	return STR("");
}

static void unfused_optimizer_report(const struct profile *p, struct findings *f, const struct step_time *w, struct kernels k, struct inside_cost c)
{
	int64_t ns = c.device_ns + c.idle_ns;
	double pct = step_time_pct(w, ns);
	bool single = !k.foreach;
	struct str frame = single_frame(p);
	struct buf evidence = {0};
	struct finding *x = findings_add(f, !single ? FINDING_INFO : pct >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	x->problem = arena_printf(&f->arena, "The optimizer takes %.1f %% of the %s, %s", pct, w->time,
	                          single ? "updating the parameters one by one" : "in several passes over the parameters (foreach)");
	buf_printf(&evidence, "%.0f kernels%s inside Optimizer.step, %.0f of them for many tensors at once, %.0f fused; together ",
	           (double)k.all / w->n, w->a_step, (double)k.foreach / w->n, (double)k.fused / w->n);
	put_ns(&evidence, (double)c.device_ns / w->n);
	buf_cstr(&evidence, " of device work and ");
	put_ns(&evidence, (double)c.idle_ns / w->n);
	buf_cstr(&evidence, " without device work");
	if (single && frame.n)
		buf_printf(&evidence, "; recorded frame: " STR_FMT, STR_ARG(frame));
	x->evidence = finding_text(f, &evidence);
	finding_measured(x, w, k.all, ns, &c.when,
	                 "the optimizer's device work and the idle time in it; reading and writing the parameters once remains");
}

static void unfused_optimizer_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	uint8_t *mark = inside_new(p, unfused_optimizer_class_of, NULL);
	struct kernels k = count_kernels(p, w, mark);
	struct inside_cost c = inside_cost_of(p, w, mark, OPTIMIZER);
	double pct = step_time_pct(w, c.device_ns + c.idle_ns);
	uint64_t fewest = (uint64_t)(k.foreach ? FEWEST_FOREACH : FEWEST_SINGLE) * w->n;
	if (!k.fused && k.all >= fewest && pct >= (k.foreach ? TOO_MUCH_FOREACH : TOO_MUCH_SINGLE))
		unfused_optimizer_report(p, f, w, k, c);
	inside_cost_release(&c);
	mem_free(mark);
}

const struct detector detector_unfused_optimizer = {
	.id = "unfused-optimizer",
	.title = "The optimizer is not fused",
	.why = "An update of each parameter by several small kernels costs a launch for each, and memory is read and written again and again.",
	.fix = "Use the fused form (torch.optim.AdamW(..., fused=True), also SGD, Adam, Adagrad), else foreach=True; Apex's FusedAdam in older versions.",
	.disprove = "With fused=True the step takes as long: the optimizer overlaps other work, or other work of the host sets the pace.",
	.shares = "gpu-starvation launch-bound",
	.report = "operators",
	.where = DETECT_WINDOW,
	.run = unfused_optimizer_run,
};
