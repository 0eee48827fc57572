#include "analysis/time/gpus.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

/* Launches that no device work names are not of a GPU that worked. */
static uint8_t *gpus_used_launches(const struct profile *p)
{
	uint8_t *used = NEW_ARRAY(p->launch.rows.n, uint8_t);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		used[p->gpu_op.launch[g]] = 1;
	return used;
}

void gpus_find(const struct profile *p, struct gpus *out)
{
	uint32_t n = p->launch.rows.n;
	uint8_t *used = gpus_used_launches(p);
	struct sort_item *item = NEW_ARRAY(n, struct sort_item);
	uint32_t k = 0;
	for (uint32_t i = 0; i < n; i++)
		if (used[i])
			item[k++] = (struct sort_item){sort_key_i64(p->launch.device[i]), i, 0};
	sort_items(item, k);
	*out = (struct gpus){NEW_ARRAY(k + 1, int32_t), 0, NEW_ARRAY(n, uint32_t)};
	for (uint32_t i = 0; i < k; i++) {
		int32_t device = p->launch.device[item[i].row];
		bool other = device != INT32_MIN && (!out->n || out->device[out->n - 1] != device);
		if (other && out->n < GPUS_MOST)
			out->device[out->n++] = device;
		bool known = out->n && out->device[out->n - 1] == device;
		out->of_launch[item[i].row] = known ? out->n - 1 : GPUS_NONE;
	}
	if (!out->n && k)
		out->device[out->n++] = INT32_MIN;
	for (uint32_t i = 0; i < k && out->n == 1; i++)
		out->of_launch[item[i].row] = 0;
	mem_free(item);
	mem_free(used);
}

bool gpus_keep(struct gpus *g, const struct profile *p, int64_t ordinal)
{
	const uint32_t at = FIRST_WHERE(i, 0u, g->n, g->device[i] >= ordinal);
	if (at == g->n || g->device[at] != ordinal)
		return false;
	for (uint32_t i = 0; i < p->launch.rows.n; i++)
		g->of_launch[i] = g->of_launch[i] == at ? 0 : GPUS_NONE;
	g->device[0] = g->device[at];
	g->n = 1;
	return true;
}

void gpus_release(struct gpus *g)
{
	mem_free(g->device);
	mem_free(g->of_launch);
	*g = (struct gpus){0};
}
