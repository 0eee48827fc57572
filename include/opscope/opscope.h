/* opscope: where the GPU time of a deep-learning run went. The C interface to what the `opscope` program does:
 *
 *	char error[256];
 *	struct opscope_profile *p = opscope_open("trace.json.gz", NULL, error, sizeof error);
 *	struct opscope_table *t = p ? opscope_report(p, "operators", NULL, error, sizeof error) : NULL;
 *	for (size_t r = 0; t && r < opscope_table_rows(t); r++)
 *		puts(opscope_table_text(t, r, 0));
 *	opscope_table_free(t);
 *	opscope_close(p);
 *
 * Link with `pkg-config --cflags --libs opscope`.
 *
 * Ownership: what a function returns as non-const is the caller's and has a function that frees it; both accept NULL. Every
 * `const char *` belongs to the object it was asked of and lives as long as that; it is NUL-terminated UTF-8, or ASCII
 * (names of kernels and ops are bytes as the trace has them). A table does not need its profile any more once it is made.
 * Errors: functions that return a pointer return NULL, those that return int -1, and write one line into `error` (cut to
 * error_size bytes with its NUL; NULL, 0 is fine). Nothing is printed, and nothing ends the process.
 * Memory: where the system has none left, the call alone fails (OPSCOPE_ERROR_NOMEM) and gives back what it had allocated. If the
 * call asked a profile for a report, a query, findings or an export, that profile can no longer be used: each further call with it fails
 * with OPSCOPE_ERROR_NOMEM, and it reports no problems. Close the profile, which frees its memory, and open it again. All other objects
 * stay as they were.
 * NULL for an object, a name or a value where none is allowed is such an error; where there is no `error` to write, do not.
 * What kind of error it was: opscope_error_code.
 * Threads: different objects are independent of each other. One profile may be asked by several threads at once for reports
 * and SQL (they take turns) and for its facts. One table may be read by several threads; options while nobody sets them.
 * A forked child may go on with all that it has; a profile that another thread was at when the process forked is an error in it
 * (OPSCOPE_ERROR_USAGE), without problems: to be opened again.
 * Binary compatibility: all structs are opaque, and functions are only ever added. */
#ifndef OPSCOPE_OPSCOPE_H
#define OPSCOPE_OPSCOPE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define OPSCOPE_API __attribute__((visibility("default")))
#else
#define OPSCOPE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct opscope_options;
struct opscope_profile;
struct opscope_table;

/* "0.1.0" of the library that is running. */
OPSCOPE_API const char *opscope_version(void);

/* What kind of error it was, for programs: the text is for people, and may change. */
enum opscope_error {
	OPSCOPE_NO_ERROR = 0,
	OPSCOPE_ERROR_IO = 1,     /* the operating system refused: missing file, permission, full disk */
	OPSCOPE_ERROR_FORMAT = 2, /* the bytes are not what they claim to be */
	OPSCOPE_ERROR_USAGE = 3,  /* the caller asked for something that does not exist */
	OPSCOPE_ERROR_LACKS = 4,  /* the input is sound but lacks what was asked for: no ops, no such steps */
	OPSCOPE_ERROR_LIMIT = 5,  /* a size or depth beyond what is supported */
	OPSCOPE_ERROR_NOMEM = 6,  /* the system has no memory left */
};
/* Of the newest call by this thread that failed, among the functions of this header and of arrow.h that have an `error`; all others, as those that find
 * nothing and those of schedule.h, and calls that succeed leave it as it is. OPSCOPE_NO_ERROR before the first. */
OPSCOPE_API enum opscope_error opscope_error_code(void);

/* Options, as on the command line without the dashes. Unknown names and bad values are errors at once, values that a certain
 * report does not have when it is run. Values are copied.
 *   input-format  for opscope_open: read the file as this format instead of recognising it
 *   capture       for opscope_open: a trace of the capture of the graphs that this one replays, or a folder of such; without it capture_traces/ beside it
 *   provenance    for opscope_open: what torch.compile wrote down about its kernels (docs/compile.md), a file or a folder; without it torch_trace/ beside it
 *   counters      for opscope_open: what Nsight Compute measured of its kernels (docs/counters.md), a CSV file
 *   as-written    for opscope_open: "1" = keep how each event was written, for opscope_export "chrome" and "chrome-list"; "0"
 *   run, worker, span, rank  for opscope_open: which trace, where the path stands for several
 *   rank          for opscope_job_report: "all" = rows of each rank
 *   gpu           for opscope_open: the GPUs are these ("H100 SXM"), whatever the input says or does not say
 *   rules, kernel-rules  for opscope_open: files of rules of your own (docs/costs.md); they are this profile's alone
 *   threads       for opscope_open and opscope_job_open: how many threads read a trace and look for findings; default: OPSCOPE_THREADS of the environment, else one a processor
 *   memory        "1G", "500M": what the process keeps of large traces in memory from this call on, about; the rest lies in a file (docs/large_traces.md)
 *   group-by      for reports: opscope_report_choice lists the values, of which some reports combine several: "name,shape"
 *   compat        for reports and findings: give the numbers of a predecessor, e.g. "tb-plugin"
 *   per           for reports: sums as "total", per "step" or per "call"; then the ids of columns say so ("total_ns_per_step")
 *   top-level     for reports: "1" = only what no other event called, where the report has such rows; "0"
 *   steps         for reports, findings, SQL and exports: "A..B", "A..", "..B" or "A", by step number
 *   key-op        for the same: what each step calls once, by the name of a range, op or kernel, or an op's id
 *   aggregation   for reports, findings and SQL: key op and steps of this aggregation of an .opscope file, by number
 *   device        for reports, SQL, exports and opscope_diff: "cpu" or a GPU's number
 *   by            for opscope_diff: a row for each "term" (the default), "module", "op", "kernel" or "line"; or "tree"
 *   force         for opscope_diff: "1" = compare runs that have little in common, too; "0"
 *   sort          for tables: a column; text from A and numbers from the largest, "+" in front: ascending, "-": descending
 *   filter        for tables: only rows with this text, whatever its case
 *   columns       for tables: only these, "a,b"; of a report, those that it has for other inputs are empty
 *   limit         for tables: the first N rows; "0" = all. Without it a table has all rows, and as text and HTML as many as those show
 *   title, time-unit, max-width  for tables as text and HTML, as on the command line
 *   names         for opscope_table_render as text and HTML: kernels by "short" (the default) or "full" names
 *   notes         for the same: "brief" = the note that matters most; "full" (the default) = all; in readable units
 *   width         for opscope_table_render: columns of the terminal; "0" = unlimited
 *   input         for opscope_table_render: the input's name in JSON and HTML; else that of the path
 *   fragment      for opscope_table_render: "1" = HTML to be put into a page; "0" = a page
 * and, for opscope_export, those of its formats (`opscope export FORMAT --help`).
 * opscope_options_new gives NULL where there is no memory. */
OPSCOPE_API struct opscope_options *opscope_options_new(void);
OPSCOPE_API int opscope_options_set(struct opscope_options *o, const char *name, const char *value, char *error,
                                    size_t error_size);
/* For opscope_open: told(context, bytes of the file that were read, its size or 0 where that is not known) is called now and then by the thread that reads. For
 * opscope_job_report and opscope_job_advise: the same over the files of all recordings. NULL = nobody is told. */
OPSCOPE_API void opscope_options_progress(struct opscope_options *o, void (*told)(void *context, uint64_t done_bytes, uint64_t total_bytes), void *context);
OPSCOPE_API void opscope_options_free(struct opscope_options *o);

/* Reads a trace: a file of any known format, a directory in which there is one (or of which the options choose one), or "-" for
 * standard input. `o` may be NULL. */
OPSCOPE_API struct opscope_profile *opscope_open(const char *path, const struct opscope_options *o, char *error,
                                                 size_t error_size);
OPSCOPE_API void opscope_close(struct opscope_profile *p);

/* Facts: the format's name, the events that the input held, and what was odd about it. Severity 0: worth knowing, 1: was
 * wrong and has been repaired, 2: something could not be used. A report or a query may find further problems: they come behind
 * those that were there, and their counts may grow. */
OPSCOPE_API const char *opscope_format(const struct opscope_profile *p);
OPSCOPE_API uint64_t opscope_events(const struct opscope_profile *p);
OPSCOPE_API unsigned opscope_problems(const struct opscope_profile *p);
OPSCOPE_API const char *opscope_problem_text(const struct opscope_profile *p, unsigned i);
OPSCOPE_API uint64_t opscope_problem_count(const struct opscope_profile *p, unsigned i);
OPSCOPE_API int opscope_problem_severity(const struct opscope_profile *p, unsigned i);

/* The reports there are, in order; NULL from `i` = their number on. `choice`: value k of an option ("group-by", "compat")
 * for that report, the first group-by being the default; NULL when there is none. */
OPSCOPE_API unsigned opscope_reports(void);
OPSCOPE_API const char *opscope_report_name(unsigned i);
OPSCOPE_API const char *opscope_report_title(unsigned i);
OPSCOPE_API const char *opscope_report_help(unsigned i);
OPSCOPE_API const char *opscope_report_choice(unsigned i, const char *option, unsigned k);
/* 1 when several of the choices go together, separated by commas; "stack:N" then stands for "stack" and "stack:5". */
OPSCOPE_API int opscope_report_combines(unsigned i, const char *option);

/* Runs a report, or a SQL query over the events and the reports (see `opscope sql`). `o` may be NULL. */
OPSCOPE_API struct opscope_table *opscope_report(struct opscope_profile *p, const char *name,
                                                 const struct opscope_options *o, char *error, size_t error_size);
OPSCOPE_API struct opscope_table *opscope_sql(struct opscope_profile *p, const char *query,
                                              const struct opscope_options *o, char *error, size_t error_size);
/* What `opscope advise` lists: what keeps the run from being faster, with evidence and what to do, the worst first. `o` may be NULL. */
OPSCOPE_API struct opscope_table *opscope_advise(struct opscope_profile *p, const struct opscope_options *o, char *error,
                                                 size_t error_size);
/* What `opscope diff` shows: what changed from run `a` to run `b`, as terms that add up to the difference of their steps; the verdict is the section "verdict".
 * `of_a` and `of_b` say which steps of each (steps, key-op), `o` how they are compared (by, force) and what of the table is wanted. Each may be NULL. `a` may be `b`, with
 * other steps. OPSCOPE_ERROR_LACKS where the two have too little in common, and nothing is forced. Another thread may ask each of the two meanwhile. */
OPSCOPE_API struct opscope_table *opscope_diff(struct opscope_profile *a, const struct opscope_options *of_a, struct opscope_profile *b, const struct opscope_options *of_b,
                                               const struct opscope_options *o, char *error, size_t error_size);
/* A row for each event, in order of start: ranges of the host and work of devices, with where they ran, what launched them, and the step, op and module that
 * they belong to. `o` may be NULL; it chooses steps (steps, key-op, aggregation) and arranges the table. */
OPSCOPE_API struct opscope_table *opscope_event_list(struct opscope_profile *p, const struct opscope_options *o, char *error, size_t error_size);
/* The timeline in a bounded number of rows, for pictures: what is too short is summed up. At most about `limit` rows (6000 without it); the section "steps" has the steps. `o` may be NULL; else
 * it chooses the steps, too. */
OPSCOPE_API struct opscope_table *opscope_timeline(struct opscope_profile *p, const struct opscope_options *o, char *error, size_t error_size);
OPSCOPE_API void opscope_table_free(struct opscope_table *t);

/* A job: one run on several ranks, each of which has a recording of its own. `path`: the folder of these, or the file that `opscope import FOLDER` made of them.
 * OPSCOPE_ERROR_LACKS: it is no job, but what opscope_open takes. `o` may be NULL; it chooses among recordings (run, worker, span), and says how they are read, whenever that is.
 * Recordings are found, and not yet read: each report reads them, as many at a time as there are processors (OPSCOPE_THREADS says otherwise). Several threads may ask one job. */
struct opscope_job;
OPSCOPE_API struct opscope_job *opscope_job_open(const char *path, const struct opscope_options *o, char *error, size_t error_size);
OPSCOPE_API void opscope_job_close(struct opscope_job *j);
/* The recordings, by rank: of one there may be several, which follow each other. Behind the last: NULL and -1. */
OPSCOPE_API unsigned opscope_job_recordings(const struct opscope_job *j);
OPSCOPE_API const char *opscope_job_path(const struct opscope_job *j, unsigned i);
OPSCOPE_API int64_t opscope_job_rank(const struct opscope_job *j, unsigned i);
/* 1: it is kept in one file, which answers reports of all ranks together, and advice; the paths are those that the recordings had. */
OPSCOPE_API int opscope_job_is_kept(const struct opscope_job *j);
/* What `opscope report NAME FOLDER` and `opscope advise FOLDER` print. `o` may be NULL. */
OPSCOPE_API struct opscope_table *opscope_job_report(struct opscope_job *j, const char *name, const struct opscope_options *o, char *error, size_t error_size);
OPSCOPE_API struct opscope_table *opscope_job_advise(struct opscope_job *j, const struct opscope_options *o, char *error, size_t error_size);
/* opscope_diff of two jobs: waiting is told from transfer. */
OPSCOPE_API struct opscope_table *opscope_job_diff(struct opscope_job *a, const struct opscope_options *of_a, struct opscope_job *b, const struct opscope_options *of_b,
                                                   const struct opscope_options *o, char *error, size_t error_size);

OPSCOPE_API const char *opscope_table_name(const struct opscope_table *t);
OPSCOPE_API const char *opscope_table_title(const struct opscope_table *t);
OPSCOPE_API size_t opscope_table_rows(const struct opscope_table *t);
OPSCOPE_API unsigned opscope_table_columns(const struct opscope_table *t);

/* Remarks under the table: what its numbers do not cover, what is unknown and why. */
OPSCOPE_API unsigned opscope_table_notes(const struct opscope_table *t);
OPSCOPE_API const char *opscope_table_note(const struct opscope_table *t, unsigned i);

/* Further tables of the same report; they belong to *t. The section after the last is NULL. */
OPSCOPE_API const struct opscope_table *opscope_table_section(const struct opscope_table *t, unsigned i);

enum opscope_type {
	OPSCOPE_TEXT = 0,
	OPSCOPE_INTEGER = 1, /* int64 */
	OPSCOPE_REAL = 2,    /* double */
	OPSCOPE_BOOLEAN = 3, /* 0 or 1, read as an integer */
};

/* The table, with its sections where the format has them, as the command line prints it with --format=FORMAT: "text", "csv", "json",
 * "html", "markdown". NUL-terminated; *size (may be NULL) is its length. `o` may be NULL; what it says of tables holds for this text alone, *t stays
 * as it is. The caller frees it with opscope_text_free. */
OPSCOPE_API char *opscope_table_render(const struct opscope_table *t, const char *format, const struct opscope_options *o, size_t *size,
                                       char *error, size_t error_size);
OPSCOPE_API void opscope_text_free(char *text);

/* Writes the profile as a file of another program, `opscope export FORMAT`: "chrome", "stacks", "flamegraph" ...; as gzip when the path
 * ends in .gz. The file appears whole or not at all; that which the profile was read from is refused (OPSCOPE_ERROR_USAGE). *notes (may
 * be NULL) is what the file lacks, a line each, or NULL when there is nothing to say; the caller frees it with opscope_text_free. `o` may be
 * NULL. */
OPSCOPE_API int opscope_export(struct opscope_profile *p, const char *format, const char *path, const struct opscope_options *o, char **notes,
                               char *error, size_t error_size);

/* Columns. The id is what CSV has as its header; the unit is "", "count", "ns", "time_ns" (a point in time), "us", "bytes",
 * "percent", "ratio" or "flops". A column that does not exist has id NULL. */
OPSCOPE_API const char *opscope_column_id(const struct opscope_table *t, unsigned column);
OPSCOPE_API const char *opscope_column_title(const struct opscope_table *t, unsigned column);
OPSCOPE_API const char *opscope_column_help(const struct opscope_table *t, unsigned column);
OPSCOPE_API const char *opscope_column_unit(const struct opscope_table *t, unsigned column);
OPSCOPE_API enum opscope_type opscope_column_type(const struct opscope_table *t, unsigned column);
/* Its number by id; -1 = none. */
OPSCOPE_API int opscope_column_find(const struct opscope_table *t, const char *id);

/* Sorts the rows, unknown values last; equal rows keep their order. *t must not be read by others meanwhile. */
OPSCOPE_API int opscope_table_sort(struct opscope_table *t, const char *column_id, int descending, char *error,
                                   size_t error_size);

/* Cells. 1 when the value is unknown, or the cell does not exist: it then reads as 0, NaN, "" by the functions below. */
OPSCOPE_API int opscope_table_is_null(const struct opscope_table *t, size_t row, unsigned column);
/* Of an integer or boolean column; else 0. */
OPSCOPE_API int64_t opscope_table_integer(const struct opscope_table *t, size_t row, unsigned column);
/* Of a real or integer column; else NaN. */
OPSCOPE_API double opscope_table_real(const struct opscope_table *t, size_t row, unsigned column);
/* Of a text column, else "". Its size in bytes without the last NUL: others may be in it. */
OPSCOPE_API const char *opscope_table_text(const struct opscope_table *t, size_t row, unsigned column);
OPSCOPE_API size_t opscope_table_text_size(const struct opscope_table *t, size_t row, unsigned column);

#ifdef __cplusplus
}
#endif

#endif
