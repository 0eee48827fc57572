/* A rank as bytes: for another process, and for a file. The fields stand in rank_fields.def. */
#ifndef OPSCOPE_ANALYSIS_RANKS_RANK_PACK_H
#define OPSCOPE_ANALYSIS_RANKS_RANK_PACK_H

#include "analysis/ranks/rank.h"
#include "base/buf.h"
#include "base/err.h"

/* Appends the rank. What a job finds out (rank_call.wait_ns) is not kept. About 40 bytes a collective. */
void rank_pack(const struct rank *r, struct buf *out);

/* The rank that the bytes, all of them, are of: the caller's (rank_free). Packing it gives the same bytes. NULL and ERR_FORMAT where they are damaged, are of a
 * version with other fields, or state what no rank can be: hostile bytes harm nothing that takes ranks. */
struct rank *rank_unpack(struct str bytes, struct err *e);

#endif
