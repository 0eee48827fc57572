/* Joins builders of consecutive parts of one input, in their order, into what one builder would have made: strings, argument sets,
 * launches, tracks and categories get the numbers of their first appearance.
 *
 * Joined are the tables with a row for each event, and those that they refer to; facts about the run, devices, memory snapshots and
 * profile.written are not. */
#ifndef OPSCOPE_STORE_BUILD_JOIN_H
#define OPSCOPE_STORE_BUILD_JOIN_H

#include "store/build.h"

/* What a number of the later builder is in the joined one. {0} = empty; build_map_release. */
struct build_map {
	uint32_t *string, *track, *launch, *args, *cat;
	uint32_t first[STORE_N_TABLES]; /* where its rows begin, by table */
};
void build_map_release(struct build_map *m);

/* Whether joining gives what one builder would have made: no limit of build.h is reached in the whole. `from` comes behind *to, of
 * which `rows` says how long its tables will be by then. Adds the rows of *from to `rows`. */
bool build_can_join(const struct build *to, const struct build *from, uint64_t rows[STORE_N_TABLES]);

/* Joins all but the rows of events: *to has the names, *m says what they were. Where the rows of events begin in *to, rows[table] says. */
void build_join_names(struct build *to, const struct build *from, const uint64_t rows[STORE_N_TABLES], struct build_map *m);

/* Makes *to as long as `rows` says; the rows behind those that it had are not set. `from`: all n builders whose rows will be joined. */
void build_join_reserve(struct build *to, const uint64_t rows[STORE_N_TABLES], struct build *const *from, unsigned n);

/* Moves the rows of events: their columns in *from are freed. Allocates nothing; may run on several threads, one for each `from`. */
void build_join_rows(struct build *to, struct build *from, const struct build_map *m);

#endif
