/* Commands of the command line.
 *
 * Adding a command: a file src/cli/NAME.c that ends in `const struct command command_NAME = {...};` and the word NAME in
 * src/cli/meson.build. Help and docs come from the struct. */
#ifndef OPSCOPE_CLI_CLI_H
#define OPSCOPE_CLI_CLI_H

#include "base/arena.h"
#include "cli/progress.h"
#include "base/err.h"
#include "base/table.h"
#include "input/discover.h"
#include "input/input.h"
#include "io/atomic.h"
#include "query/report.h"

#include <argp.h>

enum { EXIT_DONE = 0, EXIT_INPUT = 1, EXIT_USAGE = 2, EXIT_FINDING = 3, EXIT_UNDECIDED = 4 };

struct command {
	const char *name;      /* "report" */
	const char *args;      /* "NAME INPUT... " for the usage line */
	const char *help;      /* one line */
	/* argv[0] is the command's name. Returns the exit status. */
	int (*run)(int argc, char **argv);
};

extern const struct command *const command_registry[]; /* NULL-terminated, generated */

/* Parses the command's own arguments; --help prints what argp knows and ends the program, and so does a wrong option,
 * with one line and EXIT_USAGE. Option parsers may end it with cli_usage. */
void cli_parse(const struct argp *a, int argc, char **argv, void *input);
/* The same for a command that starts another: what stands behind the first word that is no option is not looked at. */
void cli_parse_in_order(const struct argp *a, int argc, char **argv, void *input);
void cli_usage(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Positional arguments, collected by the commands' parsers. Points into argv. */
struct cli_args {
	char **v;
	int n;
};
void cli_args_add(struct cli_args *a, char *arg);

/* The nearest (base/nearest.h) of `n` words to what the user typed; NULL when none is near. */
const char *cli_nearest(const char *typed, const char *(*word)(unsigned i), unsigned n);

struct trace_options;
struct user_rules;

/* Options that every command which prints a table takes; used as an argp child. */
struct output_options {
	const char *format;   /* renderer name; NULL = text, or by the suffix of -o */
	const char *path;     /* -o FILE; NULL = stdout */
	const char *sort;     /* --sort=COLUMN, ascending with a leading '+' */
	const char *columns;  /* --columns=a,b */
	const char *filter;   /* --filter=TEXT */
	const char *section;  /* --section=NAME */
	const char *title;    /* --title=TEXT */
	const char *time_unit; /* --time-unit=ms */
	const char *max_width; /* --max-width=name:55,80 */
	enum table_names names; /* --names */
	enum table_notes notes; /* --notes */
	long limit;           /* --limit=N; -1 = default of the format */
	unsigned width;       /* --width=N; 0 = the terminal's, or unlimited */
	const struct report *report; /* --columns may name columns that it has for other inputs alone; NULL = none */
	const struct trace_options *trace; /* of the same command line, for the head of a page; may be NULL */
};
extern const struct argp output_argp;   /* input: struct output_options * */

/* Whether what goes to the place that the options name may have colours. */
bool cli_color(const struct output_options *o);
/* Columns of the terminal that standard output is; 0 = it is none, and lines may be of any length. The variable COLUMNS goes first, also where standard
 * output is a pipe. */
unsigned cli_terminal_width(void);

/* The format that --format, else the suffix of -o, else nothing (text) chooses; NULL = no format has this suffix. */
const struct renderer *cli_renderer(const struct output_options *o);

/* Options that choose the trace: --input-format, --run, --worker, --span, --rank, --steps... */
struct trace_options {
	struct input_options input;
	const char *run, *worker, *span;
	const char *gpu;      /* --gpu=NAME */
	bool has_rank, every_rank; /* every_rank: --rank=all */
	int64_t rank;
	const struct rank_range *ranks; /* --rank=LIST: these; has_rank is false then. NULL = none was given */
	unsigned n_ranks;
	const char *rank_list; /* as given */
	struct report_args report;
	bool by_path;         /* the command has none of these options: where there are several traces it wants the path of one */
	uint64_t rules, kernel_rules; /* hashes of these files; 0 = none was given */
	struct user_rules *user_rules; /* what is in them, which each profile that is read has; NULL = none was given */
	struct arena arena;           /* owns them: trace_options_release, once these profiles are gone */
};
void trace_options_release(struct trace_options *o);
extern const struct argp trace_argp;    /* input: struct trace_options * */
/* "--gpu=H100 80GB HBM3 --rules=#0123456789abcdef ...": a text that differs where these do, "" without them. */
enum { CLI_RULES_BYTES = 200 };
struct str cli_rules(const struct trace_options *o, bool gpu, char text[CLI_RULES_BYTES]);

/* What a command takes that reads a trace and prints a table: inputs (with what else its args_doc names), the options that
 * choose the trace, and those of the output. */
struct table_command {
	struct cli_args args;
	struct trace_options trace;
	struct output_options output;
};
/* Parses such a command line; `doc` is the text of --help. The caller frees c->args.v. */
void cli_parse_table(const char *args_doc, const char *doc, int argc, char **argv, struct table_command *c);
/* Ends the process with EXIT_USAGE when `path` (NULL = none) is one of the input files: it would be lost. */
void cli_refuse_overwrite(const char *path, const struct cli_args *inputs);
/* For a command with options of its own: its argp has these children, and its parser, whose input is a struct table_command,
 * hands on what it does not know. */
extern const struct argp_child table_children[];
error_t cli_table_option(int key, char *arg, struct argp_state *state);

/* The traces that the paths (files, directories, "-") stand for and the options select, at least one; -1 after printing
 * the error, and *status is the exit status. The caller releases *l in either case. */
int cli_discover(const struct cli_args *paths, const struct trace_options *o, struct trace_list *l, int *status);

/* The table of these traces, by which a user chooses one; `note` stands under it (NULL = nothing). Returns the exit status. */
int cli_list_traces(const struct trace_list *l, const char *note, const struct output_options *o, const char *input_name);

/* Whether the traces are one job: several recordings, each of another rank of one run, as their contents say; or one file that keeps a job. Sorts recordings by rank. */
bool cli_is_job(struct trace_list *l);
bool cli_is_job_file(const struct trace_list *l);

/* The ranks of a job as the command line opens them: sets in->context to *job. */
struct cli_job {
	const struct trace_list *list;
	const struct trace_options *options;
	struct job_file *kept; /* NULL = the list is of recordings */
	struct buf *said;      /* by recording: what there is to say of it */
	struct progress bar;   /* of all recordings */
	uint64_t done_bytes, all_bytes;
};
struct job_inputs;
void cli_job_inputs(struct cli_job *job, struct job_inputs *in);
/* The inputs of job->list (cli_is_job), each opened when it is read; of a job's file only the ranks that the options ask for. -1 and *e: nothing is open. cli_job_close ends it. */
int cli_job_open(struct cli_job *job, struct job_inputs *in, struct err *e);
void cli_job_close(struct cli_job *job);

/* Prints a report of one recording: the one trace among the inputs. The exit status. */
int cli_report_print_one(const struct report *r, struct table_command *c, struct cli_args *inputs);
/* Prints a report about a job: these traces (cli_is_job). `note` stands under it (NULL = nothing). Returns the exit status. */
int cli_print_job(const struct report *r, struct table_command *c, const struct trace_list *l, const char *note);

/* The same of what keeps the job from being faster. EXIT_FINDING where is_severe(the findings, from). */
int cli_print_job_findings(struct table_command *c, const struct trace_list *l, bool (*is_severe)(const struct table *t, const char *from), const char *from);

/* Keeps what reports of all ranks together need of a job (cli_is_job) in the file `path`; `input`: what the job is called. Returns the exit status. */
int cli_import_job(const struct trace_list *l, const struct trace_options *o, const char *path, const char *input);

/* Opens the one profile that the paths and options select; prints losses and repairs on stderr as one line each. NULL
 * after printing the error; *status gets the exit status. */
struct profile *cli_open_one(const struct cli_args *paths, const struct trace_options *o, int *status);
struct profile *cli_open(const char *path, const struct trace_options *o, int *status);
/* The same for a file that is known to be the one. */
struct profile *cli_read(const char *path, const struct trace_options *o, int *status);

/* The same for one of several: NULL and *e, and nothing is printed of the failure. */
struct profile *cli_try_read(const char *path, const struct trace_options *o, struct err *e);
/* The same, and nothing at all is printed: what would be, goes to *said. Safe on several threads. */
struct profile *cli_read_quietly(const char *path, const struct trace_options *o, struct buf *said, struct err *e);

/* Values of options, "--memory" and the like, which end the process with EXIT_USAGE: "8", "8G", "500M" in bytes; "2", "0.5" seconds in ns. */
uint64_t cli_size(const char *option, struct str arg);
/* The value of --memory: bytes, which are the limit of this process from now on (base/spill.h). Where it cannot be kept, it says so and goes on. */
uint64_t cli_limit_memory(const char *arg);
int64_t cli_seconds_ns(const char *option, const char *text, bool zero);

/* The value of --threads; says what OPSCOPE_THREADS is where that is no number, once. */
#define CLI_THREADS_HELP "read with N threads, and make the reports of import and the findings of advise with as many (default: $OPSCOPE_THREADS, else one per processor); answers do not depend on N"
void cli_set_threads(const char *arg);
void cli_warn_threads(void);

/* The value of -o; ends the process with EXIT_USAGE when it is empty. */
const char *cli_output_path(const char *arg);
/* Whether the value of -o is a name of standard output: as a file to be replaced, /dev/stdout would lose what it holds. False for NULL. */
bool cli_is_stdout(const char *path);

/* How many rows of a report's main table will be printed, if they are printed in its own order; 0 = all, or not known before
 * they have been sorted or filtered. */
size_t cli_row_limit(const struct output_options *o);

/* A table that is written piece by piece, for what may be longer than the memory. Each piece has the columns of the whole. */
struct cli_stream {
	const struct output_options *options;
	const struct renderer *renderer;
	struct atomic_file file;
	size_t rows;             /* written */
	bool begun, enough;      /* enough: --limit, or nobody reads any more */
};

/* Whether these options allow pieces: a format that has them, and no order or choice of rows that asks for the whole. */
bool cli_can_stream(const struct output_options *o);
/* Prints the piece, which is changed as cli_output changes a table. 1: no more are wanted. -1 and *e. */
int cli_stream_put(struct cli_stream *s, struct table *piece, struct err *e);
/* Ends it. `ok`: the file takes its place; else nothing of the file is left. */
int cli_stream_end(struct cli_stream *s, bool ok, struct err *e);

/* Sorts, filters, limits, selects, renders and writes; atomically when it goes to a file. Returns the exit status. */
int cli_output(struct table *t, const struct output_options *o, const char *input_name);

/* Calls `print` now and again every `every_ns` while what is written to the n paths goes on (cli/record.h), of any other input until it is interrupted; the
 * last call's status. With `screen`, what a terminal showed is replaced; with `text`, a line says of which
 * moment each table is, and whether the run goes on. */
int cli_follow(char *const *paths, int n, int64_t every_ns, bool screen, bool text, int (*print)(void *context), void *context);

/* Whether all that was printed with stdio has reached standard output; a reader that is gone has seen enough. Says once when it has not. */
bool cli_printed(void);

/* "opscope: <message>" on stderr; returns `status`. */
int cli_fail(const struct err *e, int status);
void cli_put_failure(const struct err *e, struct buf *out); /* that line */

#endif
