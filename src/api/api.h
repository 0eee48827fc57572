/* What stands behind the opaque structs of opscope.h. */
#ifndef OPSCOPE_API_API_H
#define OPSCOPE_API_API_H

#include "opscope/opscope.h"

#include "base/intern.h"
#include "base/mem.h"
#include "input/input.h"
#include "query/arrange.h"
#include "query/diff.h"
#include "query/report.h"

#include <pthread.h>
#include <sys/types.h>

struct api_option {
	const char *name, *value;
	struct api_option *next;
};

struct opscope_options {
	struct input_options input;
	struct report_args report;
	struct arrangement arrange;
	const char *run, *worker, *span, *gpu, *rank; /* which trace; what it is to be taken for */
	const char *rules, *kernel_rules; /* files; NULL = none */
	const char *input_name;         /* instead of the table's own; NULL = that */
	const char *limit, *width;
	enum table_names names;
	enum table_notes notes;
	bool fragment;
	struct diff_ask diff;
	struct api_option *own;         /* of export formats, the newest first */
	struct arena arena;             /* owns all strings */
};

struct opscope_profile {
	struct profile *p;
	pthread_mutex_t lock;   /* reports may run analysis passes, which add to *p */
	bool lost;              /* this is a forked child, and a thread of its parent had the lock */
	struct opscope_profile *next, **at; /* all of the process */
	dev_t device;           /* of the file that it was read from; */
	ino_t inode;            /* 0 = not known */
};

/* The sections are opscope_tables in a row behind the first. */
struct opscope_table {
	struct table *t;
	struct opscope_table *next;
	struct intern *text;    /* owns all text of the cells, NUL-terminated; the first table's */
	unsigned *column;       /* those that can be asked for: a COLUMN_INDENT is for renderers alone */
	unsigned n_columns;
	const char *input;      /* name of what it was made from; in `text` */
	bool limited;           /* by the caller: it is shown as it is */
};

struct trace_file;

int api_error(const struct err *e, char *error, size_t size);

/* A number >= 0 of an option; -1 = not given. The value was checked when it was set. */
int64_t api_number(const char *value);

/* The trace that the path and the options choose. NULL and *e. */
struct profile *api_open(const char *path, const struct opscope_options *o, struct err *e);

/* One that was found, with what the options say of reading and of GPUs and rules. NULL and *e. */
struct profile *api_open_found(const struct trace_file *f, const struct opscope_options *o, struct err *e);

/* What a caller gets of *t, which is taken over: sorted, filtered and cut as asked; NULL and *e. `r`: the report, NULL = none. `input`: what it was made from. */
struct opscope_table *api_finish_table(struct table *t, const struct report *r, struct str input, const struct opscope_options *o, struct err *e);
/* It outlives the mem_try that it was made in. NULL: nothing. */
void api_disown_table(const struct opscope_table *t);

/* mem_try, with ERR_NOMEM where memory ran out; what run() had allocated is freed then, and stands in *pool else. */
int api_try(struct mem_pool *pool, void (*run)(void *context), void *context, struct err *e);
/* The same with a turn at the profile, which becomes the owner of what is left in *pool, or is broken. */
int api_try_with(struct opscope_profile *p, void (*run)(void *context), void *context, struct err *e);

/* The lock of a profile from api_turns_begin to api_turns_end. api_enter: ERR_USAGE where its profile is lost, ERR_NOMEM where it is broken; it
 * waits else. */
void api_turns_begin(struct opscope_profile *p);
void api_turns_end(struct opscope_profile *p);
int api_enter(struct opscope_profile *p, struct err *e);
void api_leave(struct opscope_profile *p);

#endif
