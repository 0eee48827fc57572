/* Forms of the memory timeline (torch/profiler/_memory_profiler.py, MemoryProfileTimeline). */
#ifndef OPSCOPE_EXPORT_MEMORY_TIMELINE_H
#define OPSCOPE_EXPORT_MEMORY_TIMELINE_H

#include "analysis/memory/memory_categories.h"
#include "io/sink.h"

/* The microsecond that torch puts a time into: int(ns / 1000) in doubles, which near today's times are a quarter of a microsecond
 * coarse, so that .875 and more go to the next. */
int64_t memory_torch_us(int64_t ns);

/* The page: a stacked plot, what the peak consists of, why blocks are Unknown. Sums were checked by memory_timeline_new. */
void memory_timeline_page(const struct profile *p, const struct memory_timeline *t, struct buf *out);

#endif
