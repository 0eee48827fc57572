/* Reports of the steps tell what lies outside the steps: in a note, and in a section of one row with the sums of columns of the report's first table
 * (outside.def). */
#ifndef OPSCOPE_QUERY_OUTSIDE_H
#define OPSCOPE_QUERY_OUTSIDE_H

#include "query/report.h"

/* Notes how much device work (ops, where the input has none) lies outside. Returns whether anything does, API calls included. Needs PASS_STEPS. */
bool outside_note(const struct profile *p, const struct report_args *args, struct table *t);

/* Whether outside_sums adds a section, as far as the report and its grouping decide. */
bool outside_is_summed(const struct report *r, const struct report_args *args);

/* Adds the section "outside" to *t, the report's answer about all steps: the report is run once more, for what lies outside. No section where
 * outside.def does not have the report, where its rows are events, or where it finds nothing outside. */
void outside_sums(const struct report *r, const struct profile *p, const struct report_args *args, struct table *t);

#endif
