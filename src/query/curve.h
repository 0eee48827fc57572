/* Tables whose rows are the points of a curve, for people who cannot read thousands of them. */
#ifndef OPSCOPE_QUERY_CURVE_H
#define OPSCOPE_QUERY_CURVE_H

#include "base/table.h"

/* Of a table of a curve keeps some `n` rows, those by which the sum of its columns looks the same (analysis/timeline/lttb.h), and of each column
 * the first row at its highest; a note says so. Nothing where there are no more rows, or n is too small for a curve. */
void curve_thin(struct table *t, size_t n);

#endif
