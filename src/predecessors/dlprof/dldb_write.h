/* A database of DLProf made of any profile: dlprof_dldb.sqlite with the recording (read_only_*) and one aggregation, of the iterations that the arguments choose. What it
 * says is what the reports say: both have the same rows. Not in it, since DLProf has no table for them: ranges that are no ops (data loaders, the user's own), calls of the C
 * library, streams, counters. */
#ifndef OPSCOPE_PREDECESSORS_DLPROF_DLDB_WRITE_H
#define OPSCOPE_PREDECESSORS_DLPROF_DLDB_WRITE_H

#include "predecessors/dlprof/dldb_file.h"
#include "query/op_sums.h"
#include "query/report.h"

struct dldb_content {
	struct profile *p;              /* needs PASS_OPS */
	const struct report_args *args; /* the key op and the iterations */
	struct str profile_name;        /* p NULL = none was given: that of the recording */
	struct str mode;                /* "pytorch"; p NULL = by the ops */
	struct str command;             /* that made the recording, where it does not say; p NULL = unknown */
	struct str now;                 /* when this is */
};

/* Writes the whole file or none. ERR_IO; ERR_DATA where the reports have nothing to say. */
int dldb_write(const struct dldb_content *c, const char *path, struct err *e);

/* Within dldb_write*.c: the file, and where the rows of the profile went. */
struct dldb_work {
	struct dldb_file f;
	const struct dldb_content *c;
	struct profile *p;
	int64_t zero_ns;                /* what times count from */
	struct dlprof_op_row *order;    /* ops in DLProf's order, n of them */
	uint32_t n;
	int64_t *device_row;            /* device -> its row in read_only_gpu_infos; 0 = it is of another rank */
	int64_t *op_row;                /* op -> its row in read_only_ops; 0 = none */
	int64_t *number;                /* instance -> its number among the calls of its op */
	int64_t *kernel_row;            /* gpu_op -> its row in read_only_kernels; 0 = none */
	struct op_tc *tc;
	struct arena texts;
};
enum { DLDB_DOMAIN = 1, DLDB_AGGREGATION = 1 }; /* the rows that all others refer to */

/* The tables read_only_*; those of the aggregation. */
void dldb_write_run(struct dldb_work *w);
int dldb_write_sums(struct dldb_work *w, struct err *e);

#endif
