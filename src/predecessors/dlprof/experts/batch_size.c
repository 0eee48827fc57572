#include "detect/parts/memory_share.h"
#include "predecessors/dlprof/experts/experts.h"

/* The largest factor that DLProf was seen to recommend; below half of the memory, doubling is the least. */
enum { MOST = 4 };

/* What a database of DLProf states of this column; 0 = not stated. */
static int64_t stated_bytes(const struct profile *p, const char *column)
{
	int64_t most = 0;
	for (uint32_t i = 0; i < p->stated.rows.n; i++) {
		int64_t v;
		if (str_eqc(profile_str(p, p->stated.tbl[i]), "gpu_memories") && str_eqc(profile_str(p, p->stated.col[i]), column) &&
		    str_to_i64(profile_str(p, p->stated.value[i]), &v) && v > most)
			most = v;
	}
	return most;
}

double dlprof_memory_pct(const struct profile *p)
{
	double used = memory_share_pct(p, MEMORY_RESERVED); /* DLProf samples it while it runs the program */
	int64_t total = used < 0 ? stated_bytes(p, "total_bytes") : 0;
	return total ? 100 * (double)stated_bytes(p, "used_bytes") / (double)total : used;
}

static void dlprof_batch_size_run(const struct profile *p, struct findings *f)
{
	double used = dlprof_memory_pct(p);
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
