/* Which traces a path stands for: a file is one, a directory is all that lie in it at any depth, as runs, workers and
 * spans.
 *
 * In `WORKER[.DIGITS].pt.trace.json[.gz]` the name before the digits is the worker, and the digits order its spans, which
 * are numbered 1, 2, ... in the text order of the digits; without digits the span is "default". Of other files, those
 * whose content is a trace count: *.json, *.json.gz, *.opscope, *.sqlite, *.sql, *.nvvp, *.dict, *.seg, *.pickle and *.pkl, and names without a suffix that end in a digit; the worker is the file
 * name without suffix, the span "default". The run is the directory, named relative to the one given, or by its base name when it is that one.
 *
 * Life cycle: discover_add for each path, discover_finish, then reading and narrowing, discover_release. */
#ifndef OPSCOPE_INPUT_DISCOVER_H
#define OPSCOPE_INPUT_DISCOVER_H

#include "base/arena.h"
#include "base/err.h"

struct trace_file {
	struct str run, worker, span; /* span: "1", "2", ... or "default" */
	struct str path;              /* NUL-terminated */
	struct str stamp;             /* digits in the name; n == 0: none */
	struct str root;              /* the real path of the directory in which it was found and must lie; n == 0: may lie anywhere */
	int64_t rank;                 /* of a job: by what it states, or else by its name; the caller's */
	bool keeps_job;               /* it is a job in one file (store/load_job.h); the caller's */
	bool remote;                  /* it came of an address, and lies there or is a copy */
	bool found;                   /* in a directory, as a regular file; else it was named, and may be a pipe */
};

struct trace_list {
	struct trace_file *v;
	unsigned n, cap;
	unsigned unreadable;          /* directories that could not be entered, or lay too deep */
	bool stays;                   /* leave out links that lead out of their directory; set before discover_add */
	bool keeps_empty;             /* files without a byte that are named like traces are listed as traces; set before discover_add */
	struct str *left_out;         /* the paths of those that lead to a trace or to a directory; NUL-terminated */
	unsigned n_left_out, cap_left_out;
	struct str *empty;            /* the paths of files without a byte, unpacked, that are named like traces; NUL-terminated */
	unsigned n_empty, cap_empty;
	struct trace_odd {
		struct str path;      /* NUL-terminated */
		int64_t rank;
	} *odd;                       /* files that are named like a trace of this rank, and are no trace, or links that lead nowhere */
	unsigned n_odd, cap_odd;
	struct arena arena;           /* owns the strings */
};

/* A folder of this name beside a trace holds recordings of the capture of graphs that the trace replays, as inference servers write them: they are no traces of the folder around it. */
#define DISCOVER_CAPTURES "capture_traces"
/* The same of what torch.compile wrote down while it compiled: TORCH_TRACE. */
#define DISCOVER_PROVENANCE "torch_trace"

/* Appends how files are named whose content decides whether they are traces: "*.json, *.json.gz, ...". */
struct buf;
void discover_put_names(struct buf *out);

/* Whether the regular file holds nothing, or packed nothing. */
bool discover_is_empty(const char *path);
/* Takes trace i out of the list and into that of empty files. */
void discover_drop_empty(struct trace_list *l, unsigned i);

/* Adds what `path` stands for. Symbolic links are followed (`path` itself always), each directory is entered once. ERR_IO when `path` cannot be
 * read, or when something below it fails with an errno that is not discover_is_absent. A directory without traces adds nothing. */
int discover_add(struct trace_list *l, const char *path, struct err *e);

/* Whether a path, with all links followed, lies in the directory of this real path. */
bool discover_lies_in(const char *path, struct str root);
/* Whether a path that was found below the directory of this real path is a link out of it; root.n == 0: links may lead anywhere. */
bool discover_leads_out(const char *path, struct str root);

/* Numbers the spans and sorts by run, worker and span. */
void discover_finish(struct trace_list *l);

/* Keeps what matches; a NULL argument matches all. */
void discover_select(struct trace_list *l, const char *run, const char *worker, const char *span);

/* The rank of a trace: by what distributedInfo states, or else the number in the worker's name; false when there is neither. Reads the head of the file. */
bool discover_rank(const struct trace_file *f, int64_t *rank);

/* The same, but a number in the name counts only behind the word "rank": run1.json and run2.json are not ranks. */
bool discover_rank_for_certain(const struct trace_file *f, int64_t *rank);

/* Keeps the traces of one rank, and those that cannot be read and whose name states none: reading them says why. */
void discover_select_rank(struct trace_list *l, int64_t rank);
/* The same of several ranks: those in any of the n ranges. */
struct rank_range {
	int64_t first, last;
};
void discover_select_ranks(struct trace_list *l, const struct rank_range *v, unsigned n);
bool discover_is_among(int64_t rank, const struct rank_range *v, unsigned n);
/* "0,3,8..11" in the arena; *n = how many ranges. NULL: it is no such list. */
struct rank_range *discover_read_ranks(struct str text, struct arena *a, unsigned *n);

void discover_release(struct trace_list *l);

/* Whether this errno of stat, open or opendir only means that there is nothing for this user: gone, a broken link, forbidden. Any other errno is a
 * failure, and the list would be incomplete. */
bool discover_is_absent(int why);

/* "worker3.17.pt.trace.json.gz" -> worker "worker3", stamp "17"; false when the name is not of this form. */
bool discover_parse_name(struct str file_name, struct str *worker, struct str *stamp);

/* The number in a worker's name: after "rank", else the last one, of at most seven digits (longer ones are times); false when there is none. */
bool discover_rank_in_name(struct str worker, int64_t *rank);

/* The rank in distributedInfo, looked for in the first bytes of a trace; false when it is not there. */
bool discover_rank_in_head(struct str head, int64_t *rank);

#endif
