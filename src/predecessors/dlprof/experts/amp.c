#include "predecessors/dlprof/experts/experts.h"

static void dlprof_amp_run(const struct profile *p, struct findings *f)
{
	unsigned eligible = 0;
	bool half = model_config_is(p, "amp_enabled");
	for (uint32_t i = 0; i < p->ops->n_ops; i++) {
		if (!dlprof_is_eligible(&p->ops->op[i]))
			continue;
		eligible++;
		half |= dlprof_is_half(p->ops->op[i].data_type);
	}
	if (!eligible || half)
		return;
	dlprof_note_hints(f, p, HINT_KERNELS | HINT_TYPES);
	findings_quote(f, arena_printf(&f->arena, "%u ops were eligible to use tensor cores but none are using FP16", eligible),
	                    STR("Try enabling AMP (Automatic Mixed Precision). For more information: "
	                        "https://developer.nvidia.com/automatic-mixed-precision"));
}

const struct detector detector_dlprof_amp = {
	.id = "amp_detector",
	.title = "No op that could use Tensor Cores works on FP16",
	.why = "Tensor Cores multiply 16-bit floats several times faster.",
	.fix = "Enable Automatic Mixed Precision.",
	.disprove = "The ops run in TF32, which DLProf does not tell from float32.",
	.experts = &dlprof_experts,
	.run = dlprof_amp_run,
};
