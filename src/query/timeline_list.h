/* The timeline as a table of bounded size: what is too short to be drawn is summed up. For pictures of a whole run: the Python package draws one. */
#ifndef OPSCOPE_QUERY_TIMELINE_LIST_H
#define OPSCOPE_QUERY_TIMELINE_LIST_H

#include "query/report.h"

/* A row for each item of each lane (analysis/timeline/timeline.h), at the smallest zoom with which there are at most `most` of them, or, where a trace has more lanes than that, at the
 * largest. The section "steps" has the steps. Heeds the steps of *args. Times count from the first event. Initialises *out; on error there is nothing to release. *p must outlive the table.
 * ERR_DATA where the input has no times. O(n log n). */
int timeline_list(struct profile *p, const struct report_args *args, size_t most, struct table *out, struct err *e);

#endif
