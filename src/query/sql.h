/* SQL over a profile: a SQLite connection in memory with
 *
 *   span, gpu_op, ...          the tables of the store (store/vtab.h)
 *   operators, kernels, ...    every report, run when a query first names it; the same as report_operators, ... (the only
 *                              name where a store table has the short one), and _by_GROUPING and _SECTION behind it
 *   findings                   what `opscope advise` lists; also report_findings
 *   ops, kernels_raw           views: framework ops, and kernels with their launch, with every reference resolved
 *   opscope_tables, opscope_columns   what there is, and what it means; naming one runs every report, to know its sections
 *   arg(args, 'Input Dims')    function: the value of an argument in an argument set
 *
 * It can only read. Life cycle: sql_open, sql_run..., sql_close; one thread at a time. */
#ifndef OPSCOPE_QUERY_SQL_H
#define OPSCOPE_QUERY_SQL_H

#include "query/report.h"

struct sql;

/* What a query may cost, and who else uses the profile. {0} = no limit, nobody. */
struct sql_limits {
	int64_t time_ns;                /* of one sql_run; with it, a value that the query makes has 1 MB at most */
	uint64_t bytes;                 /* of SQLite's memory, of the result and of its text, together */
	bool (*stop)(void *context);    /* asked now and then: true ends the query */
	/* Around each report that is run, which adds to the profile: so that others can take turns with a long query. -1: not now. Where memory
	 * runs out in between, leave is not called: a mem_undo has to see to it. */
	int (*enter)(void *context, struct err *e);
	void (*leave)(void *context);
	void *context;
};

/* Runs all analysis passes. *p must outlive the result; `args` say for which steps and device the reports are run. */
struct sql *sql_open(struct profile *p, const struct report_args *args, struct err *e);
void sql_close(struct sql *s);

/* For each sql_run from now on. */
void sql_limit(struct sql *s, const struct sql_limits *l);

/* One SELECT; *out is initialised here and gets its rows, a column's type being what all its values can be. On error
 * (ERR_USAGE; ERR_DATA where the input lacks what a table is made of; ERR_LIMIT for a query that costs too much; ERR_NOMEM)
 * *out is empty and need not be released. */
int sql_run(struct sql *s, struct str query, struct table *out, struct err *e);

/* The rows of sql_run a piece at a time, each a table with all columns, so that a result of any length takes no more memory than a piece; at least one
 * piece. take(context, piece, e): -1 with *e ends it as an error, 1 = enough. The query runs twice, the first time for the types of the columns. Without
 * limits (sql_limit) alone. Errors as sql_run's. */
int sql_run_pieces(struct sql *s, struct str query, int (*take)(void *context, struct table *piece, struct err *e), void *context, struct err *e);

#endif
