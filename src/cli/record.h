/* What the files record*.c share: the command `record`, its run directory, and what it prints afterwards. */
#ifndef OPSCOPE_CLI_RECORD_H
#define OPSCOPE_CLI_RECORD_H

#include "cli/cli.h"
#include "record/job.h"
#include "record/record.h"

enum record_backend { RECORD_AUTO, RECORD_OWN, RECORD_NSYS };

struct record_options {
	struct record_spec spec;  /* without dir */
	enum record_backend backend;
	const char *output;       /* a directory, or NAME.opscope; NULL = a new directory */
	bool force, no_report;
	char steps[48];           /* spec.steps */
	const char *steps_given;  /* --steps, as it was given */
	bool on_demand;
	const char *ask;          /* whom to ask: nothing is run; NULL = a command is run */
};

/* Parses and checks; ends the process on wrong usage. */
void record_parse(int argc, char **argv, struct record_options *o);

/* A run directory holds the captures of one run:
 *
 *   HOST-PID-NS.seg       of a process, by our own library
 *   nsys.*                of nsys, its database and its report
 *   HOST-PID.run.json     of each `opscope record` that wrote there: what it ran, when, and how that ended
 *
 * Ranks of a job that are each started under `opscope record` share one. Other files may lie there, and stay. */
struct run_dir {
	struct buf path;          /* NUL-terminated, absolute */
	struct buf run_file;      /* of this process; NUL-terminated */
	struct buf into;          /* NAME.opscope to import into; NUL-terminated, empty = none */
	bool made;                /* the directory was not there before */
	int64_t start_ns;         /* CLOCK_REALTIME */
};

/* Makes it ready for a run, and writes the run file. ERR_IO, or ERR_DATA when there are captures and !force. */
int run_dir_open(struct run_dir *d, const struct record_options *o, const char *backend, const struct record_job *job, struct err *e);
/* Adds to the run file how the program ended. */
int run_dir_end(const struct run_dir *d, const struct record_options *o, const char *backend, const struct record_job *job, int wait_status, struct err *e);
/* Where nothing was captured: takes the run file away again, and the directory if it was made for this run and nothing else is in it. */
void run_dir_forget(const struct run_dir *d);
/* Removes the captures of the directory, and it if nothing else is left. */
void run_dir_remove(const struct run_dir *d);
void run_dir_release(struct run_dir *d);
/* How many segments there are. */
unsigned run_dir_segments(const char *path);
/* How many processes could not begin a segment, and have no parent whose segment says so. */
unsigned run_dir_absent(const char *path);
/* How many bytes on disk they take. */
uint64_t run_dir_bytes(const char *path);
/* Whether an `opscope record` wrote a run file there. */
bool run_dir_has_run(const char *path);
/* When the first `opscope record` that wrote a run file there began, CLOCK_REALTIME; 0 = none did. */
int64_t run_dir_start(const char *path);
/* Whether the directory's run goes on: an `opscope record` that wrote a run file there has not ended, or a process that it recorded. */
bool run_dir_is_live(const char *path);

/* `opscope record --ask=...`: asks programs that run to record, and says what came of it. The exit status. */
int record_ask(const struct record_options *o);
/* How many files of recordings there are in the folder of one on demand. */
unsigned run_dir_recordings(const char *path);
/* How many folders of recordings on demand there are in a run directory, each added to *list (may be NULL) with a blank before it. */
unsigned run_dir_asked(const char *path, struct buf *list);
/* In place of record_after, of a run with --on-demand. */
void record_after_demand(const struct run_dir *d, const struct record_job *job, const struct record_result *r);

/* Reads what was recorded and prints it, on standard error: standard output is the program's. EXIT_INPUT when a file that was
 * asked for could not be written; what else fails is only said, as the program's own status counts. */
int record_after(const struct record_options *o, const struct run_dir *d, const struct record_job *job, const struct record_result *r);

#endif
