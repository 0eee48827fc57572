#include "analysis/roles.h"
#include "detect/detect.h"

/* The plugin's threshold (the plugin's data.py), percent of the mean step. */
static const double TOO_MUCH = 10, SEVERE = 30;

extern const struct detector detector_communication_bound;

static int run(const struct profile *p, struct findings *f, struct err *e)
{
	(void)e;
	const struct detector *d = &detector_communication_bound;
	if (!p->steps->n) {
		findings_missing(f, d, "the input has no steps");
		return 0;
	}
	struct roles *r = roles_new(p, ROLES_DEFAULT, NULL, NULL);
	double pct = roles_share_pct(r, ROLE_COMM);
	if (pct > TOO_MUCH) {
		struct finding *x = findings_add(f, d, pct > SEVERE ? FINDING_HIGH : FINDING_MEDIUM);
		x->problem = arena_printf(&f->arena, "%.1f %% of the step time is communication that no other device work hides", pct);
		x->evidence = arena_printf(&f->arena, "Communication %.3f ms of a mean step of %.3f ms, over %u steps",
		                           roles_mean_ns(r, ROLE_COMM) / 1e6, roles_mean_step_ns(r) / 1e6, r->n);
		x->has_gain = true;
		x->gain_ns_per_step = r->sum.ns[ROLE_COMM] / r->n;
	}
	roles_free(r);
	return 0;
}

const struct detector detector_communication_bound = {
	.id = "communication-bound",
	.title = "The GPU waits for the network",
	.why = "Time in collectives that computation does not overlap is lost on every rank.",
	.fix = "Use gradient compression, gradient accumulation or a larger batch size (LAMB keeps large batches accurate), so that "
	       "each step communicates less for the same work.",
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.run = run,
};
