#include "detect/parts/kernel_grids.h"

#include "analysis/names/names.h"
#include "analysis/time/bounds.h"
#include "base/sort.h"

/* No GPU has so many; a count above it is not believed. */
enum { MOST_SMS = 4096 };

int launch_sms(const struct profile *p, uint32_t launch)
{
	uint32_t row = profile_device_row(p, p->launch.device[launch]);
	return row == ROW_NONE || p->device.sm_count[row] > MOST_SMS ? 0 : p->device.sm_count[row];
}

double launch_blocks(const struct profile *p, uint32_t launch)
{
	int32_t x = p->launch.grid_x[launch], y = p->launch.grid_y[launch], z = p->launch.grid_z[launch];
	return x > 0 && y > 0 && z > 0 ? (double)x * y * z : 0;
}

bool kernel_waits(const struct profile *p, uint32_t name)
{
	return name_kernel(p, name)->class == KERNEL_COMM || str_has(profile_str(p, name), STR("spin_kernel"));
}

uint8_t *kernels_beside(const struct profile *p)
{
	uint32_t n = p->gpu_op.rows.n, last = ROW_NONE;
	uint8_t *beside = NEW_ARRAY(n, uint8_t);
	struct sort_item *order = NEW_ARRAY_RAW(n, struct sort_item);
	uint32_t kernels = 0;
	for (uint32_t g = 0; g < n; g++)
		if (p->gpu_op.kind[g] == GPU_KERNEL && p->gpu_op.launch[g] != ROW_NONE)
			order[kernels++] = (struct sort_item){sort_key_i64(p->gpu_op.start_ns[g]), g, 0};
	sort_items(order, kernels);
	for (uint32_t i = 0; i < kernels; i++) /* by GPU: items of equal keys keep their order */
		order[i].key = sort_key_i64(p->launch.device[p->gpu_op.launch[order[i].row]]);
	sort_items(order, kernels);
	for (uint32_t i = 0; i < kernels; i++) {
		uint32_t g = order[i].row;
		bool same = last != ROW_NONE && order[i].key == order[i - 1].key;
		if (same && p->gpu_op.start_ns[g] < gpu_end(p, last))
			beside[g] = beside[last] = 1;
		if (!same || gpu_end(p, g) > gpu_end(p, last))
			last = g;
	}
	mem_free(order);
	return beside;
}

bool kernel_multiplies(const struct profile *p, struct findings *f, uint32_t gpu)
{
	struct kernel_info k = *gpu_kernel(p, gpu);
	if (k.class == KERNEL_GEMM || k.class == KERNEL_CONV || k.class == KERNEL_ATTENTION || k.class == KERNEL_RNN || k.dot || k.tensor_core == TRI_YES)
		return true;
	if (k.class != KERNEL_UNKNOWN && k.class != KERNEL_TRITON)
		return false;
	const struct costs *costs = shared_costs(f);
	uint32_t of = costs->of_gpu[gpu];
	return of != ROW_NONE && bounds_multiplies(costs->cost[of].class);
}
