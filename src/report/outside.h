/* What lies outside the steps, said by reports that are of the steps: as a note and as a section of one row, sums by the columns of the report's first
 * table (outside.def). */
#ifndef OPSCOPE_REPORT_OUTSIDE_H
#define OPSCOPE_REPORT_OUTSIDE_H

#include "report/report.h"

/* Whether a device operation, an op or an API call of *p lies outside the steps that *args choose. Notes in *t how much: of device work, of ops where
 * the input has none. Needs PASS_STEPS. */
bool outside_note(const struct profile *p, const struct report_args *args, struct table *t);

/* Adds the section "outside" to *t, the report's answer about all steps: the report is run once more, for what lies outside. None where outside.def
 * has not the report, its rows are events, or it finds nothing there. */
void outside_sums(const struct report *r, const struct profile *p, const struct report_args *args, struct table *t);

#endif
