/* What a gate has learned: a text file, to be kept with the program that it guards. One block for each machine and configuration; in it one line for each metric, and one for each accepted
 * run. Runs stand in order of time. One may be taken out by hand, with the
 * indented lines below it.
 *
 *     opscope gate 1
 *     configuration
 *       GPU: NVIDIA A100-SXM4-40GB
 *       recorder: kineto
 *     metric step_ns
 *     metric op:conv2d
 *     anchor runs/monday.json.gz
 *       step_ns 312100000 +- 120000
 *       op:conv2d 8000000
 *     run runs/tuesday.json.gz
 *       ...
 *
 * An anchor is a run, too (struct gate_run). `+-` is the standard error of the mean of the run's own steps. A value that a run does not have has no line. */
#ifndef OPSCOPE_QUERY_GATE_FILE_H
#define OPSCOPE_QUERY_GATE_FILE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

enum { GATE_VERSION = 1, GATE_METRICS_MAX = 64, GATE_FACTS_MAX = 32 };

struct gate_value {
	double value;            /* NaN = not known */
	double error;            /* standard error of the mean of the run's own steps; 0 = not known */
};

struct gate_run {
	struct str path;
	bool anchor;             /* of those that were accepted first: later ones must not creep away from them */
	struct gate_value *v;    /* by metric of its block */
};

struct gate_fact {
	struct str name, value;  /* "GPU", "NVIDIA A100-SXM4-40GB" */
};

/* Runs of one machine and configuration. */
struct gate_block {
	struct gate_fact *fact;
	unsigned n_facts;
	struct str *metric;      /* "step_ns", "op:conv2d" */
	unsigned n_metrics;
	struct gate_run *run;    /* in order of time */
	unsigned n_runs, cap_runs;
};

struct gate_file {
	struct arena arena;      /* owns texts and the values of runs */
	struct gate_block *block;
	unsigned n_blocks, cap_blocks;
};

/* Reads such a text; `path` stands in errors: ERR_DATA with the line, and what was expected there. *f is released by the caller in either case. */
int gate_file_read(struct str text, const char *path, struct gate_file *f, struct err *e);
void gate_file_put(const struct gate_file *f, struct buf *out);
void gate_file_release(struct gate_file *f);

/* A new block at the end of *f, with copies of these facts and metrics. Pointers to other blocks are no longer valid. */
struct gate_block *gate_file_add_block(struct gate_file *f, const struct gate_fact *fact, unsigned n_facts, const struct str *metric, unsigned n_metrics);
/* A new run at the end of a block, all of whose values are unknown. */
struct gate_run *gate_file_add_run(struct gate_file *f, struct gate_block *b, struct str path, bool anchor);
/* Another metric, which the runs that are there do not have. -1 and *e, ERR_LIMIT: GATE_METRICS_MAX are there. */
int gate_file_add_metric(struct gate_file *f, struct gate_block *b, struct str name, struct err *e);
/* The number of a metric; n_metrics = it has none of this name. */
unsigned gate_block_metric(const struct gate_block *b, struct str name);

#endif
