/* Tables whose rows are the points of a curve, for people who cannot read thousands of them. */
#ifndef OPSCOPE_QUERY_CURVE_H
#define OPSCOPE_QUERY_CURVE_H

#include "base/table.h"

/* Thins the table of a curve to some `n` rows, so chosen that the sum of its columns looks the same (analysis/timeline/lttb.h). The first row at which a
 * column is highest stays. A note says so. Does nothing where the table has no more rows, or n is too small for a curve. */
void curve_thin(struct table *t, size_t n);

#endif
