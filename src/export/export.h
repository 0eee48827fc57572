/* Exports: each writes a profile as a file that other programs read.
 *
 * Adding one: a file src/export/NAME.c that ends in `const struct export_format export_format_NAME = {...};` and the word NAME in
 * src/export/meson.build. The command line, its list and its help then have it. (A dash in the format's name is an underscore
 * in file and symbol.) */
#ifndef OPSCOPE_EXPORT_EXPORT_H
#define OPSCOPE_EXPORT_EXPORT_H

#include "io/sink.h"
#include "query/job_report.h"

/* An option of one format: --NAME=ARG. */
struct export_option {
	const char *name, *arg, *help; /* arg NULL = it takes no value; "{values}" in help stands for the list of `values` */
	const char *const *values;     /* NULL-terminated, the first is the default; NULL = any text, not given unless told */
	bool optional;                 /* no default: not given unless told */
};

/* One run of a format. Everything is borrowed. */
struct export_run {
	struct profile *p;              /* what the options chose: all of it, or a part in time; it has had the passes in `needs` */
	const struct report_args *args; /* key op, device; --steps is done */
	const char *const *value;       /* of format->options, in order: given or the default; NULL = not given; "" of one without value */
	struct sink *out;
	struct diags *notes;            /* what the file lacks, for stderr */
};

/* One run over the ranks of a job. Everything is borrowed. */
struct export_ranks {
	const struct job_inputs *look;  /* the recordings, for what is in them */
	const struct job_inputs *in;    /* the same, opened as format->as_written wants them */
	const struct report_args *args;
	struct sink *out;
	struct diags *notes;
};

enum export_takes {
	EXPORT_DEVICE = 1,  /* heeds args->device; others refuse --device */
	EXPORT_BINARY = 2,  /* the file is no text: not for a terminal */
};

/* For .options: a list without its end has at most so many; of longer ones it does not compile. */
enum { EXPORT_OPTIONS_MAX = 16 };
#define EXPORT_OPTIONS(list) ((list) + 0 * sizeof(char[sizeof(list) / sizeof *(list) <= EXPORT_OPTIONS_MAX + 1 ? 1 : -1]))

struct export_format {
	const char *name;      /* "chrome" */
	const char *title;     /* what the file is, in some words: "Chrome trace JSON ..." */
	const char *help;      /* who reads it and what is in it; several sentences */
	const char *suffix;    /* as such files are called: "json" */
	unsigned needs;        /* enum analysis_pass bits */
	unsigned takes;        /* enum export_takes bits */
	bool as_written;       /* input_options.as_written: how each event was written is wanted */
	bool timeline;         /* needs times: refused for profile->durations_only */
	const struct export_option *options; /* EXPORT_OPTIONS(array), ended by a row without name; NULL = none */
	/* Appends everything to x->out. -1 and *e, whatever has been written by then: ERR_DATA when the profile lacks what the
	 * format is about, saying how to record it. When sink_room fails it may return 0 at once: who called it looks. */
	int (*write)(const struct export_run *x, struct err *e);
	/* The same of all ranks of a job; NULL = the format is of one recording. */
	int (*write_job)(const struct export_ranks *x, struct err *e);
};

extern const struct export_format *const export_registry[]; /* in the order of meson.build, NULL-terminated (generated) */

/* By name; NULL = none. */
const struct export_format *export_find(struct str name);

/* Appends an option's help. */
void export_help(const struct export_option *o, struct buf *out);

/* Checks an option's value: ERR_USAGE with what there is. */
int export_check_value(const struct export_format *f, const struct export_option *o, const char *value, struct err *e);

/* `value` is as in struct export_run, without the defaults. *out is not finished. Errors as write(). */
int export_run(const struct export_format *f, struct profile *p, const struct report_args *args, const char *const *value,
               struct sink *out, struct diags *notes, struct err *e);

#endif
