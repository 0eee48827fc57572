/* Every event of a profile as one table, for programs that make sums of their own: the C interface and the Python package have it. */
#ifndef OPSCOPE_QUERY_EVENT_LIST_H
#define OPSCOPE_QUERY_EVENT_LIST_H

#include "query/report.h"

/* A row for each range of the host and each piece of device work, in order of start, of ranges that start together the longest first. Heeds the steps of *args. The module of an event, and
 * whether it is forward, backward or the optimizer's, is that of the report `layers`; its step is the one that --steps puts it in: host ranges by the start of the outermost op around them, device work
 * by what launched it, else by its own start. Initialises *out; on error there is nothing to release. *p must outlive the table. ERR_LIMIT beyond 2^32-2 events. O(n log n). */
int event_list(struct profile *p, const struct report_args *args, struct table *out, struct err *e);

#endif
