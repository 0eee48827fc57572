/* The process groups of one rank: what its collectives, and the ranges around their launches, say of the group that they are of. Private to rank.c. */
#ifndef OPSCOPE_ANALYSIS_RANKS_RANK_GROUPS_H
#define OPSCOPE_ANALYSIS_RANKS_RANK_GROUPS_H

#include "analysis/ranks/rank.h"
#include "base/intern.h"

struct rank_groups {
	struct rank *r;
	struct intern keys;      /* of r->group: what tells the groups apart, by index + 1 */
	struct intern listed;    /* names in the list of groups of the input's head, by index + 1 */
	struct rank_group *list; /* these groups */
	uint32_t n_list, cap_list, cap;
	uint32_t n_members;      /* of all groups so far */
};

/* Reads the list of groups in distributedInfo, where there is one. */
void rank_groups_init(struct rank_groups *s, const struct profile *p, struct rank *r);
void rank_groups_release(struct rank_groups *s);

/* Where the facts of a collective stand: its own arguments (a set of them), then those of the ranges from `around` outwards (a row of span; ROW_NONE). */
struct rank_groups_at {
	uint32_t args, around;
};
static inline struct rank_groups_at rank_groups_at_kernel(const struct profile *p, uint32_t g)
{
	return (struct rank_groups_at){p->gpu_op.args[g], p->gpu_op.call[g]};
}

/* The group of a collective, as an index into r->group; a collective of which nothing is recorded is of a group without a name. *seq: its number in the group, RANK_UNKNOWN. */
uint32_t rank_groups_of(struct rank_groups *s, const struct profile *p, struct rank_groups_at from, int64_t *seq);

/* Of a send or receive in row g: the number of the rank that it sends to or receives from; RANK_UNKNOWN. `group`: that of the collective. */
int64_t rank_groups_peer(const struct profile *p, uint32_t g, enum comm_kind kind, const struct rank_group *group);

enum { RANK_GROUPS_PARTS = 30 }; /* longer lists are not written */
/* Of an all-to-all in row g: in how many parts it sends, in order of the group's ranks. 0 = in equal parts; -1 = not recorded, or not all of them. */
int rank_groups_parts(const struct profile *p, uint32_t g, int64_t part[RANK_GROUPS_PARTS]);

#endif
