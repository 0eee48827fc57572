#include "analysis/steps/iterations.h"
#include "report/parts/step_table.h"

enum { STEPS_KEY_NAME, STEPS_KEY_CALLS, STEPS_KEY_FIRST };

static const struct section steps_key_op_section = {.name = "key_ops", .title = "Ops that repeat", COLUMNS(
	[STEPS_KEY_NAME] = {COLUMN(TEXT, "name", "Key op", "an outermost op or range, or device work; for --key-op, where each step, and not each layer, calls it once")},
	[STEPS_KEY_CALLS] = {COLUMN(COUNT, "calls", "Calls", "how often it is called: about as often as there are steps is right")},
	[STEPS_KEY_FIRST] = {COLUMN(TIME, "first_ns", "First call", "on the trace's clock: early in the step is right")},
)};

/* Ops that repeat, where nothing marks steps. */
static void candidates(const struct profile *p, const struct report_args *args, struct table *first)
{
	enum { SHOWN = 20 };
	struct key_candidate *c;
	unsigned n = key_candidates(p, 0, true, SHOWN, &first->arena, &c);
	if (!n)
		return;
	struct table *t = section_add(&steps_key_op_section, args, 0, first);
	for (unsigned i = 0; i < n; i++) {
		table_row(t);
		table_set_str_copy(t, STEPS_KEY_NAME, c[i].name);
		table_set_i64(t, STEPS_KEY_CALLS, c[i].calls);
		table_set_i64(t, STEPS_KEY_FIRST, c[i].first_ns);
	}
}

static int steps_run(const struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
	struct roles *r = step_roles(p, p->steps, &roles_own, args, e);
	if (!r)
		return -1;
	step_table(r, p, args, true, t);
	if (p->steps->whole_trace)
		candidates(p, args, t);
	roles_free(r);
	return 0;
}

const struct report report_steps = {
	.name = "steps",
	.title = "Steps by role",
	.also = "step iterations",
	.help = "How long each step took and what filled it. A step is a ProfilerStep, else a range by which an inference server, a framework or its user marks one, else what lies "
	        "between two calls of the optimizer, else a pattern that repeats, if that is certain; --key-op=NAME names the op that marks one instead. A step is "
	        "moved and stretched to cover the device work that it launched; steps at the end that lack device work which they launched are left out. Each "
	        "nanosecond goes to the first role that was active, from left to right, so the roles sum to the step. Where no step is found, the time from the "
	        "first to the last device work is one step, and a section lists what would do as a key op.",
	.sections = (const struct section *const[]){&step_table_section, &steps_key_op_section, NULL},
	.timeline = true,
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.takes = REPORT_STEPS,
	.run = steps_run,
};
