/* What a row of a comparison says: what it is called, and why it differs. */
#ifndef OPSCOPE_QUERY_DIFF_LABEL_H
#define OPSCOPE_QUERY_DIFF_LABEL_H

#include "query/diff_rows.h"

/* Percent by which a call's time, or the number of calls, must differ to be named. */
enum { DIFF_NAMED_PCT = 2, DIFF_CALLS_PCT = 1 };

/* Why the row differs: "new", "slower", "other kernels", ...; docs/diff.md lists them. */
const char *diff_label(const struct diff *d, const struct diff_row *r);

/* The row's name as it is shown. */
struct str diff_shown(const struct diff *d, const struct diff_row *r);

/* Whether a row is of kernels or calls, which can be counted. */
bool diff_has_calls(const struct diff_row *r);
/* Whether both sides have shapes, and others. */
bool diff_has_other_shapes(const struct diff_row *r);
/* Whether the sets of kernels differ, of a row that may have several: their calls are then not calls of the same thing. */
bool diff_has_other_kernels(const struct diff *d, const struct diff_row *r);
/* Collectives whose waiting is unknown: of 1 % or more of their time. */
bool diff_may_wait(const struct diff_row *r);
/* The interval of the row's change, from these steps, holds 0. */
bool diff_is_unclear(const struct diff_row *r);

#endif
