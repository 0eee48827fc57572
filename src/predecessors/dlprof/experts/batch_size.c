#include "detect/parts/memory_share.h"
#include "predecessors/dlprof/experts/experts.h"

/* The largest factor that DLProf was seen to recommend; below half of the memory, doubling is the least. */
enum { MOST = 4 };

static void dlprof_batch_size_run(const struct profile *p, struct findings *f)
{
	double used = memory_share_pct(p, MEMORY_RESERVED); /* DLProf samples it while it runs the program */
	int factor = used > 0 ? (int)(100 / used) : 0;
	factor = factor > MOST ? MOST : factor;
	if (used < 0 && p->gpu_op.rows.n)
		findings_missing_aside(f, "the input does not state how much GPU memory was used",
		                       "DLProf, which samples the GPUs' memory while it runs");
	if (factor >= 2)
		findings_quote(f, arena_printf(&f->arena, "GPU Memory is underutilized: Only %d%% of GPU Memory is used", (int)used),
		                    arena_printf(&f->arena, "Try increasing batch size by %dx to increase data throughput", factor));
}

const struct detector detector_dlprof_batch_size = {
	.id = "batch_size_detector",
	.title = "GPU memory is hardly used",
	.why = "A larger batch gives each launch more work.",
	.fix = "Increase the batch size.",
	.disprove = "A larger batch takes as long per sample, or trains worse.",
	.experts = &dlprof_experts,
	.run = dlprof_batch_size_run,
};
