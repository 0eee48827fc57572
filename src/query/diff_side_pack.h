/* A side as bytes and back: for the file of a job. */
#ifndef OPSCOPE_QUERY_DIFF_SIDE_PACK_H
#define OPSCOPE_QUERY_DIFF_SIDE_PACK_H

#include "query/diff_side.h"

/* Appends the bytes of the side of one recording, of which waiting is not told yet. */
void diff_side_pack(const struct diff_side *s, struct buf *out);
/* From all of the bytes; the caller's (diff_side_free). NULL, and ERR_FORMAT, where they are damaged or of another version. */
struct diff_side *diff_side_unpack(struct str bytes, struct err *e);

#endif
