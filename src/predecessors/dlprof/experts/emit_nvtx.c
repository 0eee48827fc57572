/* No output of DLProf with this finding is known: the text is in its manner. */
#include "predecessors/dlprof/experts/experts.h"

bool dlprof_has_emit_ranges(const struct profile *p)
{
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (p->span.kind[i] == SPAN_OP && p->span.link_id[i] != ID_NONE)
			return true;
	return false;
}

/* The markers of its module are there, or a database that was made of them, but neither the record of emit_nvtx nor a range of it. */
static void dlprof_emit_nvtx_run(const struct profile *p, struct findings *f)
{
	struct str stated;
	bool of_database = p->ops->origin == OPS_STATED && dlprof_is_pytorch(p) && model_config_find(p, "emit_nvtx", &stated);
	if ((p->ops->origin != OPS_MARKERS && !of_database) || model_config_is(p, "emit_nvtx"))
		return;
	if (!dlprof_has_emit_ranges(p))
		findings_quote(f, STR("torch.autograd.profiler.emit_nvtx was not enabled"),
		                    STR("Run the training/inference loop inside the context manager torch.autograd.profiler.emit_nvtx()"));
}

const struct detector detector_dlprof_emit_nvtx = {
	.id = "emit_nvtx_detector",
	.title = "emit_nvtx was not used (PyTorch)",
	.why = "Without it, the backward pass is one op.",
	.fix = "Run the loop inside emit_nvtx().",
	.disprove = "Only what emit_nvtx does not mark was recorded.",
	.experts = &dlprof_experts,
	.run = dlprof_emit_nvtx_run,
};
