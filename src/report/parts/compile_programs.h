/* Programs that XLA (JAX, TensorFlow) and TensorRT compiled, found by their NVTX ranges, for `compile`. */
#ifndef OPSCOPE_REPORT_PARTS_COMPILE_PROGRAMS_H
#define OPSCOPE_REPORT_PARTS_COMPILE_PROGRAMS_H

#include "query/section.h"
#include "store/profile.h"

extern const struct section compile_programs_section, compile_program_ops_section;

struct compile_programs;

/* NULL where there are no programs. Borrows p. Needs PASS_NEST and PASS_CORRELATE. O(ranges + device work). Free with compile_programs_free. */
struct compile_programs *compile_programs_new(const struct profile *p);
void compile_programs_free(struct compile_programs *x);

/* Adds both sections to *first. -1 and *e on failure. */
int compile_programs_put(const struct compile_programs *x, const struct report_args *args, struct table *first, struct err *e);

#endif
