#include "analysis/memory/memory.h"
#include "base/mem.h"
#include "detect/detect.h"

/* Of the device's memory. */
static const double TOO_MUCH = 0.9;

/* The most that was allocated on the device at a time; -1 = no event of it. Where the trace gives no running total, a lower
 * bound. */
static int64_t peak_allocated(const struct profile *p, const struct memory_peak *peak, size_t n, int32_t device)
{
	size_t at = (size_t)((int64_t)device - MEMORY_CPU);
	if (device < 0 || at >= n || !peak[at].events)
		return -1;
	return peak[at].allocated != ROW_NONE ? p->memory.total_allocated[peak[at].allocated] : peak[at].net;
}

static void memory_nearly_full_report(struct findings *f, int32_t device, int64_t peak, int64_t total)
{
	struct finding *x = findings_add(f, FINDING_LOW);
	const double gib = 1024.0 * 1024.0 * 1024.0;
	x->problem = arena_printf(&f->arena, "Memory of GPU %d is nearly full: %.1f %% of %.2f GiB was allocated at the peak", device,
	                          100.0 * (double)peak / (double)total, (double)total / gib);
	x->evidence = arena_printf(&f->arena, "%.2f GiB allocated, by the trace's [memory] events", (double)peak / gib);
	x->has_share = true;
	x->share_pct = 100.0 * (double)peak / (double)total;
}

static void memory_nearly_full_run(const struct profile *p, struct findings *f)
{
	bool seen = false, stated = false, too_many = false;
	struct memory_peak *all;
	size_t n = memory_peaks(p, INT64_MIN, INT64_MAX, &all);
	for (uint32_t i = 0; i < p->device.rows.n; i++) {
		int64_t total = p->device.memory_bytes[i], peak = peak_allocated(p, all, n, p->device.id[i]);
		seen |= peak >= 0;
		stated |= total > 0;
		too_many |= total > 0 && peak > total;
		if (peak >= 0 && total > 0 && peak <= total && (double)peak > TOO_MUCH * (double)total)
			memory_nearly_full_report(f, p->device.id[i], peak, total);
	}
	mem_free(all);
	if (p->gpu_op.rows.n && !stated)
		findings_missing(f, "the input does not state the devices' memory");
	else if (p->gpu_op.rows.n && !seen)
		findings_missing(f, "no [memory] events of a GPU");
	else if (too_many)
		findings_missing(f, "by its [memory] events more is allocated than a GPU has memory");
}

const struct detector detector_memory_nearly_full = {
	.id = "memory-nearly-full",
	.title = "GPU memory is nearly full",
	.why = "Near the limit the allocator frees and re-allocates blocks, which stalls the GPU, and a longer input ends the run.",
	.fix = "Use gradient checkpointing, or Automatic Mixed Precision to halve what activations take.",
	.disprove = "Other processes use the GPU, or it was made full on purpose: steps take as long with a smaller batch, per sample.",
	.report = "memory",
	.run = memory_nearly_full_run,
};
