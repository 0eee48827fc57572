/* Tables as answers: which rows, in which order, in which form. What endpoints that answer with a table share. */
#ifndef OPSCOPE_SERVE_TABLES_H
#define OPSCOPE_SERVE_TABLES_H

#include "query/report.h"
#include "serve/endpoint.h"

extern const char *const table_formats[]; /* json, csv */

/* Parameters of the rows and the form. */
#define TABLE_PARAMS                                                                                                               \
	{"sort", "column to sort by; -COLUMN: largest first", NULL, false},                                                        \
	{"filter", "only rows with this text in a cell, whatever the case", NULL, false},                                          \
	{"limit", "no more rows than this; 0 = all", NULL, false}, {"offset", "leave out so many rows first", NULL, false},        \
	{"columns", "ids of the columns to give, with commas", NULL, false},                                                       \
	{"section", "which of the tables csv gives, by name", NULL, false},                                                        \
	{"format", "json: all tables; csv: one, to be saved", table_formats, false}

/* Parameters that choose steps, and what else a report is about. */
#define STEP_PARAMS                                                                                                                \
	{"steps", "only these steps: A..B, A.., ..B or A", NULL, false},                                                           \
	{"key_op", "what each step calls once: name of a range, op or kernel, or an op's id", NULL, false}
#define CHOICE_PARAMS                                                                                                              \
	STEP_PARAMS, {"aggregation", "key op and steps of this aggregation of the input, by number", NULL, false}

/* *a from the CHOICE_PARAMS, group_by, compat, per and device, of which an endpoint may have some; strings are the request's. */
int table_choice(const struct request *r, struct report_args *a, struct err *e);

/* Sorts, filters and cuts as the request says, and renders into *out. */
int table_answer(const struct request *r, struct table *t, struct response *out, struct err *e);

#endif
