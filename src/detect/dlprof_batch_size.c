#include "analysis/memory.h"
#include "base/mem.h"
#include "detect/dlprof.h"

extern const struct detector detector_dlprof_batch_size;

/* The largest factor that DLProf was seen to recommend; below half of the memory, doubling is the least. */
enum { MOST = 4 };

/* The highest share of a GPU's memory that was held at a time, percent; -1 = not recorded. DLProf samples it while it runs the program; here it is
 * what the profiler recorded of the allocator. */
static double used_pct(const struct profile *p)
{
	struct memory_peak *peak;
	size_t n = memory_peaks(p, INT64_MIN, INT64_MAX, &peak);
	double most = -1;
	for (uint32_t i = 0; i < p->device.rows.n; i++) {
		int64_t total = p->device.memory_bytes[i];
		size_t at = (size_t)((int64_t)p->device.id[i] - MEMORY_CPU);
		if (p->device.id[i] < 0 || at >= n || total <= 0 || peak[at].reserved == ROW_NONE)
			continue;
		double pct = 100.0 * (double)p->memory.total_reserved[peak[at].reserved] / (double)total;
		most = pct > most ? pct : most;
	}
	mem_free(peak);
	return most;
}

static int run(const struct profile *p, struct findings *f, struct err *e)
{
	double used = used_pct(p);
	int factor = used > 0 ? (int)(100 / used) : 0;
	factor = factor > MOST ? MOST : factor;
	if (used < 0 && p->gpu_op.rows.n)
		findings_missing(f, &detector_dlprof_batch_size, "the input does not state how much GPU memory was used");
	if (factor >= 2)
		findings_add_compat(f, &detector_dlprof_batch_size,
		                    arena_printf(&f->arena, "GPU Memory is underutilized: Only %d%% of GPU Memory is used", (int)used),
		                    arena_printf(&f->arena, "Try increasing batch size by %dx to increase data throughput", factor));
	return 0;
}

const struct detector detector_dlprof_batch_size = {
	.id = "batch_size_detector",
	.title = "GPU memory is hardly used",
	.why = "A larger batch gives each launch more work.",
	.fix = "Increase the batch size.",
	.disprove = "A larger batch takes as long per sample, or trains worse.",
	.compat = "dlprof",
	.needs = DLPROF_NEEDS,
	.run = run,
};
