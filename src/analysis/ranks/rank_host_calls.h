/* Collectives that the host does itself (gloo, MPI, UCC): ranges of its threads, where a rank's GPU ran no kernel of a collective. */
#ifndef OPSCOPE_ANALYSIS_RANKS_RANK_HOST_CALLS_H
#define OPSCOPE_ANALYSIS_RANKS_RANK_HOST_CALLS_H

#include "base/sort.h"
#include "analysis/time/interval.h"
#include "store/profile.h"

/* Whether a row of span is such a collective, and not part of another. Needs PASS_NEST. */
bool rank_host_calls_has(const struct profile *p, uint32_t span);

/* All of them in order of start: .row is the row of span. Adds their time to *talking, which is not normalised. The caller frees what it gets (mem_free); *n are there. */
struct sort_item *rank_host_calls_list(const struct profile *p, struct intervals *talking, uint32_t *n);

#endif
