/* The sections of report memory that tell what a device held when it held most. */
#ifndef OPSCOPE_REPORT_PARTS_MEMORY_PEAK_H
#define OPSCOPE_REPORT_PARTS_MEMORY_PEAK_H

#include "query/window.h"

extern const struct section memory_held_section, memory_held_by_op_section;

/* Appends these sections, by category, and by category, op and line of Python, at the first moment of the window at which the allocator's
 * total is highest; where no totals were recorded, the sum of the events. Of `device` (memory_device), or, where args name none, of each accelerator that
 * has events, of the CPU where there is none. Parts sum to the total; what is in no block that can be followed is a row of its own. Needs PASS_NEST,
 * PASS_CORRELATE and PASS_MEMORY. -1 and *e when sums leave 64 bits. */
int memory_peak_sections(const struct profile *p, const struct window *w, int device, const struct report_args *args, struct table *out, struct err *e);

#endif
