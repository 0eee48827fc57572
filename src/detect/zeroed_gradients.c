#include "detect/parts/inside.h"

/* Percent of the steps' time: one memset a parameter, and a launch for each. Less is not worth a change. */
static const double TOO_MUCH = 0.5, SEVERE = 5;

enum { OUTSIDE, ZERO_GRAD, ZERO };

static uint8_t zeroed_gradients_class_of(struct str name)
{
	if (str_eq(name, STR("aten::zero_")) || str_eq(name, STR("aten::_foreach_zero_")))
		return ZERO;
	if (str_eq(name, STR("aten::zeros")) || str_eq(name, STR("aten::new_zeros")))
		return OUTSIDE + ZERO + 1;
	return str_starts(name, STR("Optimizer.zero_grad")) || str_ends(name, STR(": zero_grad")) ? ZERO_GRAD : OUTSIDE;
}

/* ZERO: gradients are written, and all inside; aten::zeros makes new memory and ends it. */
static uint8_t zeroed_gradients_mark_of(uint8_t around, uint8_t own)
{
	switch (own) {
	case ZERO: return around ? ZERO : OUTSIDE;
	case ZERO_GRAD: return ZERO_GRAD;
	case OUTSIDE: return around;
	default: return OUTSIDE;
	}
}

static void zeroed_gradients_report(const struct profile *p, struct findings *f, const struct step_time *w, const uint8_t *mark, struct inside_cost c)
{
	int64_t ns = c.device_ns + c.idle_ns;
	struct places t = {0};
	struct buf evidence = {0};
	struct finding *x = findings_add(f, step_time_pct(w, ns) >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		bool outermost = p->span.parent[i] == ROW_NONE || mark[p->span.parent[i]] != ZERO;
		if (mark[i] == ZERO && outermost && step_time_has(w, p->span.start_ns[i]))
			places_add(&t, shared_stacks(f), profile_str(p, p->span.name[i]), i, 1, p->span.dur_ns[i]);
	}
	x->problem = arena_printf(&f->arena, "Gradients are set to zero instead of None: %.1f %% of the %s", step_time_pct(w, ns), w->time);
	buf_printf(&evidence, "%s, on the host: ", w->per);
	places_text(&t, 2, w->n, true, &evidence);
	buf_cstr(&evidence, "; on the device ");
	put_ns(&evidence, (double)c.device_ns / w->n);
	buf_cstr(&evidence, ", and ");
	put_ns(&evidence, (double)c.idle_ns / w->n);
	buf_cstr(&evidence, " without device work meanwhile");
	x->evidence = finding_text(f, &evidence);
	finding_looks_at_most(x, p, &t);
	finding_measured(x, w, t.events, ns, &c.when, "device time of writing zeros, and the time without device work while the host orders it");
	places_release(&t);
}

static void zeroed_gradients_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	uint8_t *mark = inside_new(p, zeroed_gradients_class_of, zeroed_gradients_mark_of);
	struct inside_cost c = inside_cost_of(p, w, mark, ZERO);
	if (step_time_pct(w, c.device_ns + c.idle_ns) >= TOO_MUCH)
		zeroed_gradients_report(p, f, w, mark, c);
	inside_cost_release(&c);
	mem_free(mark);
}

const struct detector detector_zeroed_gradients = {
	.id = "zeroed-gradients",
	.title = "Gradients are zeroed, not dropped",
	.why = "Writing zeros costs a launch for each parameter, and the backward pass then adds to them instead of storing.",
	.fix = "Use optimizer.zero_grad(set_to_none=True), the default from torch 2.0 on.",
	.disprove = "The gradients are needed as zeros (views of one flat buffer, as DDP and FSDP keep them).",
	.shares = "gpu-starvation unfused-optimizer",
	.report = "operators",
	.where = DETECT_WINDOW,
	.run = zeroed_gradients_run,
};
