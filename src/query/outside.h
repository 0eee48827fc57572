/* What lies outside the steps, said by reports that are of the steps: as a note and as a section of one row, sums by the columns of the report's first
 * table (outside.def). */
#ifndef OPSCOPE_QUERY_OUTSIDE_H
#define OPSCOPE_QUERY_OUTSIDE_H

#include "query/report.h"

/* Notes how much device work (ops, where the input has none) lies outside. Returns whether anything does, API calls included. Needs PASS_STEPS. */
bool outside_note(const struct profile *p, const struct report_args *args, struct table *t);

/* Adds the section "outside" to *t, the report's answer about all steps: the report is run once more, for what lies outside. None where outside.def
 * has not the report, its rows are events, or it finds nothing there. */
void outside_sums(const struct report *r, const struct profile *p, const struct report_args *args, struct table *t);

#endif
