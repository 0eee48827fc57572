#include "input/cupti.h"

#define NAME_OF(names, i) ((i) >= 0 && (i) < (int64_t)(sizeof(names) / sizeof((names)[0])) ? (names)[i] : "Unknown")

const char *cupti_memory_kind(int64_t kind)
{
	static const char *const name[] = {"Unknown", "Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static"};
	return NAME_OF(name, kind);
}

const char *cupti_copy_kind(int64_t kind)
{
	static const char *const name[] = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
	return NAME_OF(name, kind);
}

const char *cupti_sync_name(int64_t type)
{
	static const char *const name[] = {"Unknown", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync"};
	return NAME_OF(name, type);
}

void cupti_per_sm(const struct devices *d, uint32_t row, struct launch_row *l)
{
	const int32_t size[] = {l->grid_x, l->grid_y, l->grid_z, l->block_x, l->block_y, l->block_z};
	for (int k = 0; k < 6; k++)
		if (size[k] == INT32_MIN)
			return;
	if (row == ROW_NONE || !d->sm_count[row])
		return;
	l->blocks_per_sm = (double)l->grid_x * l->grid_y * l->grid_z / d->sm_count[row];
	if (d->warp_size[row])
		l->warps_per_sm = l->blocks_per_sm * ((double)l->block_x * l->block_y * l->block_z / d->warp_size[row]);
}
