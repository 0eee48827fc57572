#include "analysis/ranks/job_peers.h"

#include "analysis/ranks/job_groups.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

bool job_group_is_pipeline(const struct job_group *g) { return g->split == 1u << JOB_SPLIT_PIPELINE; }

/* By rank: its stage, UINT32_MAX where no group tells. Returns how many stages there are: members of the largest group. */
static uint32_t job_peers_find_stages(const struct job *j, uint32_t *stage)
{
	uint32_t stages = 0;
	memset(stage, 0xff, j->n * sizeof *stage);
	for (uint32_t g = 0; g < j->n_groups; g++) {
		const struct job_group *x = &j->group[g];
		if (!x->member || x->n_members < 2 || !job_group_is_pipeline(x))
			continue;
		stages = x->n_members > stages ? x->n_members : stages;
		for (uint32_t r = 0; r < j->n; r++) {
			uint32_t at = FIRST_WHERE(k, 0, x->n_members, x->member[k] >= j->rank[r]->number);
			if (at < x->n_members && x->member[at] == j->rank[r]->number)
				stage[r] = at;
		}
	}
	return stages;
}

void job_peers_find(const struct job *j, struct job_peers *out)
{
	uint32_t *stage = NEW_ARRAY(j->n, uint32_t);
	struct sort_item *v = NEW_ARRAY_RAW(j->n, struct sort_item);
	*out = (struct job_peers){.rank = NEW_ARRAY(j->n, uint32_t), .first = NEW_ARRAY((size_t)j->n + 1, uint32_t), .stage = NEW_ARRAY(j->n, uint32_t),
	                          .stages = job_peers_find_stages(j, stage)};
	for (uint32_t r = 0; r < j->n; r++)
		v[r] = (struct sort_item){stage[r], r, 0};
	sort_items(v, j->n);
	for (uint32_t i = 0; i < j->n; i++) {
		if (!i || v[i].key != v[i - 1].key) {
			out->stage[out->n] = (uint32_t)v[i].key;
			out->first[out->n++] = i;
		}
		out->rank[i] = v[i].row;
	}
	out->first[out->n] = j->n;
	mem_free(v);
	mem_free(stage);
}

void job_peers_release(struct job_peers *x)
{
	mem_free(x->rank);
	mem_free(x->first);
	mem_free(x->stage);
}
