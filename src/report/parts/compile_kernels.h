/* Device work of compiled code by kernel, by op of the program and by op that a graph calls; and device work outside, for `compile`. */
#ifndef OPSCOPE_REPORT_PARTS_COMPILE_KERNELS_H
#define OPSCOPE_REPORT_PARTS_COMPILE_KERNELS_H

#include "query/section.h"
#include "report/parts/compile_regions.h"

extern const struct section compile_kernels_section, compile_sources_section, compile_called_section, compile_eager_section;

/* Device time of a region. */
struct compile_device {
	int64_t generated_ns, called_ns; /* kernels that Inductor generated; of the rest what was launched in graphs */
	int64_t eager_ns;                /* launched in the region, outside of its graph */
	uint64_t works;
};

struct compile_kernels;

/* Borrows both. Needs PASS_NEST and PASS_CORRELATE. Free with compile_kernels_free. */
struct compile_kernels *compile_kernels_new(const struct profile *p, const struct compile_regions *r);
void compile_kernels_free(struct compile_kernels *k);

/* Of region i. */
const struct compile_device *compile_kernels_of(const struct compile_kernels *k, uint32_t i);
/* Whether there are any that Inductor generated. */
bool compile_kernels_any(const struct compile_kernels *k);
/* Whether the launches of all these are recorded: else the device time of regions is not known. */
bool compile_kernels_placed(const struct compile_kernels *k);

/* Adds the sections that have rows, and the notes that reconcile times to *first. */
int compile_kernels_put(const struct compile_kernels *k, const struct report_args *args, struct table *first, struct err *e);

#endif
