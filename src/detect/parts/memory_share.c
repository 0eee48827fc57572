#include "detect/parts/memory_share.h"

#include "analysis/memory/memory.h"
#include "base/mem.h"

/* The highest running total of one device; -1 = none was recorded. */
static int64_t most_held(const struct profile *p, const struct memory_peak *peak, enum memory_held held)
{
	uint32_t row = held == MEMORY_ALLOCATED ? peak->allocated : peak->reserved;
	const int64_t *total = held == MEMORY_ALLOCATED ? p->memory.total_allocated : p->memory.total_reserved;
	return row == ROW_NONE ? -1 : total[row];
}

double memory_share_pct(const struct profile *p, enum memory_held held)
{
	struct memory_peak *peak;
	size_t n = memory_peaks(p, INT64_MIN, INT64_MAX, &peak);
	double most = -1;
	for (uint32_t i = 0; i < p->device.rows.n; i++) {
		int64_t size = p->device.memory_bytes[i], id = p->device.id[i];
		int64_t bytes = id >= 0 && (size_t)(id - MEMORY_CPU) < n ? most_held(p, &peak[id - MEMORY_CPU], held) : -1;
		if (size <= 0 || bytes < 0)
			continue;
		double pct = 100.0 * (double)bytes / (double)size;
		most = pct > most ? pct : most;
	}
	mem_free(peak);
	return most;
}
