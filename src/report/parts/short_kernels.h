/* What a variant of `short-kernels` states. */
#ifndef OPSCOPE_REPORT_PARTS_SHORT_KERNELS_H
#define OPSCOPE_REPORT_PARTS_SHORT_KERNELS_H

#include "query/report.h"

enum short_by { SHORT_BY_OP, SHORT_BY_SHAPE, SHORT_BY_DURATION };

/* report_variant.rules of SHORT_BY_DURATION: so many rows of equal width from the shortest to the longest of these kernels. */
struct short_bins {
	unsigned n;
};

#endif
