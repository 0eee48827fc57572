/* Aggregations: what an .opscope file keeps of one question asked about its data: by which key op steps were told, which of them were
 * taken, and all reports and findings of these. A file holds one or more; they are told apart by number. */
#ifndef OPSCOPE_STORE_AGGREGATION_H
#define OPSCOPE_STORE_AGGREGATION_H

#include "base/str.h"

struct aggregation {
	int64_t id;             /* 1, 2, ...; never given twice in a file */
	struct str name;        /* given by the user; "" = none */
	struct str created;     /* "2026-01-31T12:00:00Z"; "" = not known */
	struct str key_op;      /* what was asked for; "" = steps were found by opscope's own rules */
	struct str steps;       /* what was asked for, "2..5"; "" = the whole recording */
	struct str opscope;     /* version of the program that made it */
	struct str rules;       /* rules of the user's own that made its numbers (--rules, --kernel-rules, --gpu); "" = none */
	/* ID_NONE = not known */
	int64_t first_step, last_step; /* numbers of the first and last step that it covers */
	int64_t aggregated_steps, total_steps;
	int64_t wall_ns;        /* time that it covers */
	int64_t device_busy_ns; /* of that, how long any device worked */
	int64_t tables, rows;   /* that it has in the file */
	int64_t missing;        /* reports that the data had nothing for */
};

/* The columns of the table `aggregations`, in order. X(kind, name): kind TEXT or NUMBER. */
#define AGGREGATION_COLUMNS(X)                                                                              \
	X(NUMBER, id) X(TEXT, name) X(TEXT, created) X(TEXT, key_op) X(TEXT, steps) X(NUMBER, first_step)    \
	X(NUMBER, last_step) X(NUMBER, aggregated_steps) X(NUMBER, total_steps) X(NUMBER, wall_ns)           \
	X(NUMBER, device_busy_ns) X(NUMBER, tables) X(NUMBER, rows) X(NUMBER, missing) X(TEXT, opscope) X(TEXT, rules)

enum { AGGREGATIONS_MAX = 1000, AGGREGATION_TEXT_MAX = 1000 }; /* in one file; bytes of one text */

#endif
