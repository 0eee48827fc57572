/* One row of PyProf's `prof` stage, for the report and for pyprof-prof: a record, what its forward kernel lends it, and PyProf's own
 * model of it. Rows are made one at a time, so that a printer needs no more memory for millions. */
#ifndef OPSCOPE_PREDECESSORS_PYPROF_ROW_H
#define OPSCOPE_PREDECESSORS_PYPROF_ROW_H

#include "predecessors/pyprof/op/pyprof.h"
#include "predecessors/pyprof/records.h"

struct pyprof_row {
	struct pyprof_record r;     /* layer, trace: the forward kernel's where it lends them */
	struct str mod, op;         /* as printed: "na" where there is none */
	struct str kernel;          /* short name, blanks replaced by '_' */
	const struct pyprof_marker *marker; /* the outermost argument marker, own or lent; NULL = none that is sound */
	bool modelled;              /* model holds numbers */
	struct pyprof_model model;
	const char *why;            /* PyProf would have ended here; NULL */
};

struct pyprof_rows;

/* `p` has had PASS_NEST and PASS_CORRELATE. */
struct pyprof_rows *pyprof_rows_new(const struct profile *p, enum pyprof_record_rules rules);
void pyprof_rows_free(struct pyprof_rows *rows);
const struct pyprof_records *pyprof_rows_records(const struct pyprof_rows *rows);

/* Row i < records->n. Valid until the next call. */
const struct pyprof_row *pyprof_rows_get(struct pyprof_rows *rows, uint32_t i);

/* Texts as PyProf's columns have them, appended. */
void pyprof_put_joined(struct buf *out, struct pyprof_texts t, const char *separator); /* "-" for nothing */
void pyprof_put_ids(struct buf *out, struct pyprof_ids ids);                           /* "1,2", "-" */
void pyprof_put_three(struct buf *out, const int64_t v[3]);                            /* "8,1,1" */

#endif
