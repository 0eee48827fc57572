/* What the files dlprof*.c share: DLProf's command line. */
#ifndef OPSCOPE_CLI_DLPROF_H
#define OPSCOPE_CLI_DLPROF_H

#include "base/buf.h"
#include "base/now.h"
#include "cli/cli.h"
#include "query/aggregate.h"

enum dlprof_mode { DLPROF_AUTO, DLPROF_SIMPLE, DLPROF_TENSORFLOW1, DLPROF_TENSORFLOW2, DLPROF_TENSORRT, DLPROF_PYTORCH };
enum dlprof_verbosity { DLPROF_QUIET, DLPROF_MINIMAL, DLPROF_NORMAL, DLPROF_DETAILED, DLPROF_DIAGNOSTIC };
enum dlprof_dldb { DLDB_NO, DLDB_BESIDE, DLDB_INSTEAD };
enum dlprof_format { DLPROF_CSV, DLPROF_JSON, DLPROF_FORMATS };
extern const char *const dlprof_format_name[DLPROF_FORMATS];

/* Rows of cli_reports.def; their places are the bits of options.reports. */
struct dlprof_report {
	const char *key, *other, *suffix, *title;
	const char *report, *group_by;   /* report NULL: expert_systems */
};
enum {
	DLPROF_SUMMARY, DLPROF_DETAIL, DLPROF_ITERATION, DLPROF_KERNEL, DLPROF_TENSOR, DLPROF_OP_TYPE, DLPROF_GROUP, DLPROF_EXPERT,
	DLPROF_REPORTS,
};
extern const struct dlprof_report dlprof_reports[DLPROF_REPORTS];

struct dlprof_options {
	const char *database;
	const char *nsys_base, *nsys_args, *delay, *duration; /* as typed; delay, duration: NULL = none */
	int64_t delay_ns, duration_ns;
	const char *key_op, *output_path;
	const char *profile_name;        /* as typed; NULL = none given */
	struct str base_name;            /* without blanks */
	enum dlprof_mode mode;
	enum dlprof_dldb dldb;           /* whether dlprof_dldb.sqlite is written, and dlprof_dldb.opscope with it */
	enum dlprof_verbosity verbosity;
	bool force, detailed, profile_range, dump_model, has_start, has_stop;
	int64_t iter_start, iter_stop;
	unsigned reports, formats;       /* bits */
	char **app;                      /* the program to profile and its arguments; NULL-terminated */
	int app_n;
	unsigned list;                   /* while parsing: whether plain words may go on a list; enum in dlprof_options.c */
	struct arena arena;
};

/* "pytorch"; {0} where none was asked for. */
struct str dlprof_mode_name(enum dlprof_mode mode);

/* Parses and checks; ends the process on wrong usage. */
void dlprof_parse(int argc, char **argv, struct dlprof_options *o);

/* "[DLProf-HH:MM:SS] ..." on standard output, from this verbosity on. */
void dlprof_say(const struct dlprof_options *o, enum dlprof_verbosity from, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The line on standard output, with what a terminal would act on made visible. */
void dlprof_put_safe(struct buf *line);

/* OUTPUT_PATH/NAME, in o->arena. */
const char *dlprof_path(struct dlprof_options *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The file of a report. */
const char *dlprof_report_path(struct dlprof_options *o, const struct dlprof_report *r, enum dlprof_format f);

/* dlprof_own.c: profiles o->app, under nsys where that is on the PATH, else with our own library in it. As dlprof_run_nsys. */
const char *dlprof_run(struct dlprof_options *o, int *status);

/* dlprof_nsys.c: profiles o->app. The profile's path, or NULL after saying why; *status is what to exit with: the status of nsys, or
 * what a shell says of a signal. */
const char *dlprof_run_nsys(struct dlprof_options *o, int *status);

/* Makes this the key op (NULL = none), whether the profile has it or not, and the steps from it. */
int dlprof_set_key(struct profile *p, const char *key_op, struct err *e);

/* dlprof_files.c: the table as DLProf's file. ERR_IO. */
int dlprof_write(const struct table *t, const struct dlprof_report *r, enum dlprof_format f, const char *profile_name, const char *path,
                 struct err *e);

/* dlprof_database.c: what DLProf would keep for its viewer. *p was read from the file `from`. Planned before anything is written, so that what
 * cannot be kept is said first: for a new file a warning, and it holds all; for an .opscope file, to which it would be added, an error. */
struct dlprof_plan {
	const char *from;
	const char *path;                /* what to write; NULL = nothing */
	const char *dldb_path;           /* DLProf's own form of it; NULL = not asked for */
	struct aggregate_spec spec;
	char now[NOW_BYTES];
};
int dlprof_plan_database(struct dlprof_options *o, struct profile *p, const char *from, const struct report_args *args, struct dlprof_plan *plan,
                         struct err *e);
int dlprof_write_database(struct dlprof_options *o, struct profile *p, const struct report_args *args, const struct dlprof_plan *plan, struct err *e);

/* dlprof_simple.c: the two tables of mode simple. Need PASS_NEST and PASS_CORRELATE. */
void dlprof_simple_summary(const struct profile *p, struct table *t);
int dlprof_simple_kernels(const struct profile *p, struct table *t, struct err *e);

/* dlprof_model.c: ops, their instances, API calls and device work as JSON. Needs PASS_OPS. */
int dlprof_dump_model(const struct profile *p, const char *path, struct err *e);

#endif
