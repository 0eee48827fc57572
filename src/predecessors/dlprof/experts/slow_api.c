/* No output of DLProf with this finding is known: the text is in its manner. */
#include "detect/parts/shared.h"
#include "predecessors/dlprof/experts/experts.h"

/* What DLProf's module records, and what it is a call of. The database knows the last two under other names. */
static const struct {
	const char *key, *api;
} slow[] = {
	{"detect_anomaly", "torch.autograd.detect_anomaly"},
	{"gradcheck", "torch.autograd.gradcheck"},
	{"gradgradcheck", "torch.autograd.gradgradcheck"},
	{"record_function", "torch.autograd.profiler.record_function"},
	{"profile", "torch.autograd.profiler.profile"},
	{"autograd_profile", "torch.autograd.profiler.profile"},
	{"autograd_set_detect_anomaly", "torch.autograd.set_detect_anomaly"},
};

static void dlprof_slow_api_run(const struct profile *p, struct findings *f)
{
	struct buf used = {0};
	for (size_t i = 0; i < sizeof slow / sizeof slow[0]; i++)
		if (model_config_is(p, slow[i].key))
			buf_printf(&used, "%s%s", used.n ? ", " : "", slow[i].api);
	if (used.n)
		findings_quote(f, arena_printf(&f->arena, "The following debug APIs are enabled and slow down training: " STR_FMT, STR_ARG(buf_view(&used))),
		                    STR("Try disabling them when not debugging"));
	buf_release(&used);
}

const struct detector detector_dlprof_slow_api = {
	.id = "slow_api_detector",
	.title = "APIs for debugging are in use (PyTorch)",
	.why = "Anomaly detection, gradient checks and the autograd profiler slow each op down.",
	.fix = "Disable them.",
	.disprove = "They run outside the training loop.",
	.experts = &dlprof_experts,
	.run = dlprof_slow_api_run,
};
