/* A profile as Chrome trace JSON in memory. */
#ifndef OPSCOPE_SERVE_CHROME_H
#define OPSCOPE_SERVE_CHROME_H

#include "base/buf.h"
#include "base/err.h"

struct profile;

/* Appends it, packed by gzip; with counters over time if asked for. ERR_LIMIT when it would be too much for a browser. The caller has its turn at the entry. */
int chrome_packed(struct profile *p, bool counters, struct buf *out, struct err *e);

#endif
