#include "report/step_table.h"

static int run(const struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
	struct roles *r = step_roles(p, args, e);
	if (!r)
		return -1;
	step_table(r, p, report_is_plugin(args), t);
	roles_free(r);
	return 0;
}

static const char *const compat[] = {"tb-plugin", NULL};

const struct report report_steps = {
	.name = "steps",
	.title = "Steps by role",
	.help = "How long each step took and what filled it. A step is a ProfilerStep, moved and stretched to cover the device work "
	        "that it launched; steps at the end that lack device work which they launched are left out. Each "
	        "nanosecond goes to the first role that was active, from left to right, so the roles sum to the step. A trace "
	        "without ProfilerStep (call prof.step() after each iteration) is one step.",
	.compat = compat,
	.timeline = true,
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.takes = REPORT_STEPS,
	.run = run,
};
