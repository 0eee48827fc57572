/* What a dump of a flight recorder says of one rank: how far each of its process groups has come, and which calls are pending. */
#ifndef OPSCOPE_ANALYSIS_RANKS_RANK_HANG_H
#define OPSCOPE_ANALYSIS_RANKS_RANK_HANG_H

#include "store/profile.h"

enum { RANK_HANG_UNKNOWN = -2 }; /* of numbers of calls; -1 = none was */

struct rank_hang_group {
	struct str name, about;
	int64_t *member;             /* numbers of the ranks, ascending */
	uint32_t n;
	int64_t enqueued, completed; /* number of the last call that the rank made, and of the last that is done; RANK_HANG_UNKNOWN */
	bool has_pairs;              /* sends or receives of it are in the dump: then the two numbers may be those of these, which count for themselves */
};

struct rank_hang_call {
	uint32_t group;
	int64_t seq;                 /* number in the group; of sends and receives in that of these */
	int64_t record;              /* calls of the rank in the order in which it made them */
	int64_t created_ns;          /* when */
	int64_t peer;                /* of a send or receive: the other rank; -1 = not told */
	struct str op, sizes, where; /* "all_to_all"; "[[4096,5120]] BFloat16"; the innermost frame of the program, "" = not recorded */
	bool is_pair, sends, started;
};

struct rank_hang {
	bool is_dump;                /* false: a recording of another kind, and nothing else is set */
	struct rank_hang_group *group;
	uint32_t n_groups;
	struct rank_hang_call *call; /* those that are not completed, in order of record */
	uint32_t n_calls;
};

/* Texts go into the arena. O(n log n). */
void rank_hang_read(const struct profile *p, struct arena *a, struct rank_hang *h);
void rank_hang_release(struct rank_hang *h);

#endif
