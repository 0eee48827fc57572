/* What was odd about an input (base/diag.h), for pages. */
#ifndef OPSCOPE_SERVE_PROBLEMS_H
#define OPSCOPE_SERVE_PROBLEMS_H

#include "base/buf.h"
#include "base/diag.h"

/* Appends objects of JSON separated by commas, one for each kind of at least this level: kind, level ("note", "repaired", "lost"), count, message. */
void problems_put(const struct diags *d, enum diag_level least, struct buf *out);

#endif
