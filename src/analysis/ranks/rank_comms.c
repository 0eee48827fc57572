#include "analysis/ranks/rank_comms.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

/* A GPU as a rank of a communicator. */
struct rank_comms_member {
	int64_t size, rank;
	uint32_t comm;           /* string */
	uint32_t gpu;            /* index */
};

struct rank_comms {
	struct rank_comms_member *v;
	uint32_t n, cap;
};

static bool rank_comms_i64(const struct profile *p, uint32_t set, enum arg_key key, int64_t *v)
{
	struct str text;
	return profile_arg(p, set, key, &text) && str_to_i64(text, v);
}

static void rank_comms_collect(const struct profile *p, const struct gpus *gpus, struct rank_comms *c)
{
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		uint32_t set = p->span.args[i];
		int64_t device;
		struct rank_comms_member m = {.comm = set ? profile_arg_id(p, set, ARG_GROUP_ID) : 0};
		if (!m.comm || !rank_comms_i64(p, set, ARG_GROUP_GPU, &device) || !rank_comms_i64(p, set, ARG_GROUP_RANK, &m.rank) ||
		    !rank_comms_i64(p, set, ARG_GROUP_SIZE, &m.size) || m.rank < 0 || m.rank >= m.size)
			continue;
		m.gpu = FIRST_WHERE(g, 0, gpus->n, gpus->device[g] >= device);
		if (m.gpu < gpus->n && gpus->device[m.gpu] == device)
			MEM_PUSH(c->v, c->n, c->cap, m);
	}
}

/* Largest first; of one communicator by rank. */
static int rank_comms_by_size(const void *a, const void *b)
{
	const struct rank_comms_member *x = a, *y = b;
	return COMPARE(y->size, x->size) ?: COMPARE(x->comm, y->comm) ?: COMPARE(x->rank, y->rank) ?: COMPARE(x->gpu, y->gpu);
}

/* Members [from, to) of one communicator: whether each talking GPU is one rank, and another one than the others. */
static bool rank_comms_fits(const struct rank_comms_member *v, uint32_t from, uint32_t to, const struct gpus *gpus, const uint8_t *talks, int64_t *number)
{
	for (uint32_t g = 0; g < gpus->n; g++)
		number[g] = -1;
	for (uint32_t i = from; i < to; i++) {
		bool other_gpu = i > from && v[i].rank == v[i - 1].rank && v[i].gpu != v[i - 1].gpu;
		if (other_gpu || (number[v[i].gpu] >= 0 && number[v[i].gpu] != v[i].rank))
			return false;
		number[v[i].gpu] = v[i].rank;
	}
	return !ANY_WHERE(g, 0, gpus->n, talks[g] && number[g] < 0);
}

bool rank_comms_numbers(const struct profile *p, const struct gpus *gpus, const uint8_t *talks, int64_t *number, int64_t *world)
{
	struct rank_comms c = {0};
	bool found = false;
	if (!profile_has_arg(p, ARG_GROUP_GPU) || !profile_has_arg(p, ARG_GROUP_ID))
		return false;
	rank_comms_collect(p, gpus, &c);
	if (c.n)
		qsort(c.v, c.n, sizeof *c.v, rank_comms_by_size);
	/* One that too few members state cannot fit, so that the GPUs are looked at once for each member at most. */
	uint32_t talking = 0;
	for (uint32_t g = 0; g < gpus->n; g++)
		talking += talks[g];
	for (uint32_t from = 0, to; from < c.n && !found; from = to) {
		to = FIRST_WHERE(i, from, c.n, c.v[i].size != c.v[from].size || c.v[i].comm != c.v[from].comm);
		found = to - from >= talking && rank_comms_fits(c.v, from, to, gpus, talks, number);
		*world = c.v[from].size;
	}
	mem_free(c.v);
	return found;
}
