#include "predecessors/dlprof/experts/experts.h"

static void dlprof_no_iterations_run(const struct profile *p, struct findings *f)
{
	const struct dlprof_run *r = dlprof_run_of(f, p);
	if (!r->iterations.calls)
		findings_quote(f, arena_printf(&f->arena, "Unable to split profile into training iterations: key op " STR_FMT " not found",
		                                 STR_ARG(r->whole->key_op)),
		                    STR("Specify key op by setting the --key_op argument"));
}

const struct detector detector_dlprof_no_iterations = {
	.id = "no_iterations_detector",
	.title = "The key op is missing",
	.why = "Without iterations, start-up counts like steady work.",
	.fix = "Name an op that each iteration calls once (--key-op).",
	.disprove = "The run has a single iteration.",
	.experts = &dlprof_experts,
	.run = dlprof_no_iterations_run,
};
