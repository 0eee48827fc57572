/* Device time of compiled code by the lines of the program that the code came from, for `compile`. */
#ifndef OPSCOPE_REPORT_PARTS_COMPILE_LINES_H
#define OPSCOPE_REPORT_PARTS_COMPILE_LINES_H

#include "query/section.h"
#include "store/profile.h"

extern const struct section compile_lines_section, compile_said_section;

struct compile_lines;

/* NULL where no work of the profile has sources (analysis/tree/sources.h). Borrows p. Free with compile_lines_free. */
struct compile_lines *compile_lines_new(const struct profile *p);
void compile_lines_free(struct compile_lines *l);

/* Counts a piece of device work of compiled code. `generated`: a generated kernel; else the work of an op that the code calls. */
void compile_lines_add(struct compile_lines *l, uint32_t g, bool generated);
/* Adds the section to *first; l == NULL: none. -1 and *e on failure. */
int compile_lines_put(const struct compile_lines *l, const struct report_args *args, struct table *first, struct err *e);
/* Adds the section of graph breaks and recompilations with the compiler's reasons, if there are any. -1 and *e on failure. */
int compile_said_put(const struct profile *p, const struct report_args *args, struct table *first, struct err *e);

#endif
