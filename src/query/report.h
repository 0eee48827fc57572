/* Reports: each answers one question about a profile with a table.
 *
 * Adding a report: a file src/report/NAME.c that ends in `const struct report report_NAME = {...};` and the word NAME in
 * src/report/meson.build. The command line, CSV, JSON, HTML, SQL, the C API and the docs page then have it.
 * (A dash in the report's name is an underscore in file and symbol.) */
#ifndef OPSCOPE_QUERY_REPORT_H
#define OPSCOPE_QUERY_REPORT_H

#include "analysis/analysis.h"
#include "query/section.h"

#include <string.h>

/* What the user asked for. {0} = all defaults. Strings are borrowed. */
struct report_args {
	const char *group_by; /* one of report->group_by, or parts of it joined by ','; NULL = the first */
	const char *compat;   /* one of report->compat; NULL = opscope's own numbers */
	const char *key_op;   /* what marks a step: analysis/steps/iterations.h, key_calls_find; NULL = to be found */
	int64_t aggregation;  /* key op and steps are those of this aggregation of the input; 0 = none: report_args_chosen */
	bool all_steps;       /* everything in the file, also what is outside the steps; has_steps is then false */
	bool has_steps;
	int64_t step_first, step_last; /* inclusive, by step number; only if has_steps */
	bool outside;         /* only what lies outside the steps; has_steps is then true, and the range is that of no step (STEP_OUTSIDE);
	                       * code that does not know `outside` then finds no step and fails */
	const char *device;   /* "cpu" or a GPU ordinal, where the report has a choice; NULL = all or the first */
	bool top_level;       /* only what no other event of the report called */
	int align;            /* how the clocks of a job's ranks are compared: enum job_align (analysis/ranks/job.h) */
	const struct clock_file *clocks; /* these clocks of the ranks, in place of `align` (analysis/ranks/clock_file.h); NULL = none. Borrowed */
	bool brief;           /* of the findings: how many detectors are not applicable, in place of a long list of their names */
	enum { REPORT_PER_TOTAL, REPORT_PER_STEP_IF_RIGHT, REPORT_PER_STEP, REPORT_PER_CALL } per; /* query/per.h */
	size_t row_limit;     /* no more rows of the main table will be looked at, in the report's own order; 0 = all. Only for variants
	                       * that take REPORT_LIMIT, which then set hidden_rows; the others need not know */
	const struct report_pieces *pieces; /* takes the rows of the main table as they are made, of variants that take REPORT_LIMIT; NULL = the table has all */
	const struct report_variant *variant; /* what group_by and compat choose. report_run sets it; what a caller leaves here is not looked at */
};

/* Sets the steps from text: "3..7", "3.." (to the last), "..7" or "5". ERR_USAGE when it is nothing of these. */
int report_args_steps(struct report_args *a, struct str text, struct err *e);
/* The same, or "all": everything in the file; or "outside": what lies outside the steps. */
int report_args_population(struct report_args *a, struct str text, struct err *e);

/* *out = *in with the key op and steps of in->aggregation in place of its number. ERR_USAGE when the input has none of this number, or a key
 * op or steps are chosen as well; ERR_DATA for a predecessor's iterations without its compat, if they are not all. */
int report_args_chosen(const struct profile *p, const struct report_args *in, struct report_args *out, struct err *e);

/* Receives the rows of a report with one for each event, in pieces, each with the columns of the whole. The table of report_run then
 * holds only the last piece and the notes. */
struct report_pieces {
	void (*put)(void *context, struct table *piece); /* may change it; released behind the call */
	void *context;
};

enum report_option {
	REPORT_STEPS = 1, REPORT_DEVICE = 2,
	REPORT_LIMIT = 4, /* has a row for each event, heeds args->row_limit, and fills the main table as one with a drain (base/table.h) is filled */
	REPORT_SORTED = 128, /* with REPORT_LIMIT: sorts or cuts its table when all rows are in, so that none may leave before: no drain */
	REPORT_FILE = 8, /* about the file, not the run: no aggregation keeps it */
	REPORT_TOP_LEVEL = 16,
	REPORT_WORKERS = 64, /* a report of a job: answers for a timeline of workers, too (analysis/ranks/rank_workers.h), which has tasks and neither device work nor collectives */
	REPORT_OF_STEPS = 32, /* where the input has steps, and neither steps nor a predecessor is asked for, it is of the steps: what lies outside them
	                       * (start-up, what was launched before the recording) is left out, a note says how much that is, and if outside.def has
	                       * the report, so does a section; has --steps=outside, unless run() refuses it */
};

/* The questions by which reports are listed, in this order: X(id, question). */
#define REPORT_QUESTIONS(X)                                                                                        \
	X(WHERE, "Where did the time go?") X(PART, "Which layer, which line of Python?") X(WAIT, "Why does the GPU wait?")          \
	X(MOVE, "What do communication and copies cost?") X(FASTER, "Could it be faster?") X(MEMORY, "What about memory?")        \
	X(INPUT, "What was recorded, and on what?")

enum report_question {
#define REPORT_QUESTION_ID_(id, question) ASKS_##id,
	REPORT_QUESTIONS(REPORT_QUESTION_ID_)
	REPORT_N_QUESTIONS
};
extern const char *const report_question[];

typedef int report_run_fn(const struct profile *p, const struct report_args *args, struct table *out, struct err *e);

/* A report of a job that takes one recording after the other, and keeps of each what it needs: in place of run and run_job. */
struct report_gather {
	void *(*start)(const struct report_args *args);
	/* Takes a recording on which the passes have run, and which is freed behind the call. rank: as stated, else its place in the list. */
	void (*add)(void *gathered, const struct profile *p, int64_t rank);
	int (*finish)(void *gathered, struct table *out, struct err *e);
	void (*end)(void *gathered); /* frees it */
};

/* One way to ask a report: whose numbers, by which grouping. Help, refusals and dispatch follow from these rows; no report compares texts. */
struct report_variant {
	const char *report;          /* the report of a row that stands in a wing (query/predecessor.h); NULL in the list of the report itself */
	const char *compat;          /* the predecessor whose numbers these are, as a user types it; NULL = opscope's own */
	const char *group_by;        /* the grouping; NULL: these numbers have no choice */
	const char *const *parts;    /* NULL-terminated, in place of group_by: parts of a key, which go together: "name,shape". "stack:N" allows stack and
	                              * stack:5. SQL has a table for each part alone. run() asks report_groups_by */
	int by;                      /* the report's own number of the grouping: for run(), in args->variant */
	const void *rules;           /* what the analysis does otherwise for a predecessor: for run(), too */
	unsigned needs, takes, ignores; /* beyond those of the report */
	report_run_fn *run;          /* NULL = the report's */
	const struct report_gather *gather; /* of the recordings of a job, or of a single one; NULL = run, or the report's */
};

struct job;
/* Of the ranks of a job together (analysis/ranks/job.h). */
typedef int report_run_job_fn(const struct job *j, const struct report_args *args, struct table *out, struct err *e);

struct report {
	const char *name;        /* "gpu-timeline" */
	const char *title;       /* "GPU busy, exposed and idle time" */
	enum report_question asks; /* the question that it answers */
	const char *also;        /* what else people type for it, separated by blanks: told to who does; NULL = nothing */
	const char *help;        /* what question it answers and how to read it; several sentences */
	const struct report_variant *variants; /* ends with {0}; a pair (compat, group_by) stands in one row. The groupings of opscope's own rows are those of the
	                          * report, the first is the default. NULL, or no row of opscope's own: no choice of groupings */
	const struct section *const *sections; /* all that opscope's own variants can give, NULL-terminated; the main table first */
	unsigned needs;          /* enum analysis_pass bits */
	unsigned takes;          /* enum report_option bits: what it heeds of the args; anything else is refused (ERR_USAGE), so that no
	                          * table looks filtered that is not. Without REPORT_STEPS, --steps gives it a part of the profile
	                          * (analysis/steps/slice.h; of a predecessor by its own iterations) and args without steps */
	unsigned ignores;        /* enum left_out bits: what opscope's own variants never look at, so that an input need not keep it. 0 = they may look at everything.
	                          * LEFT_FRAMES is for those with REPORT_STEPS alone: others count all ranges in a note. LEFT_QUIET is for those
	                          * without sums (query/per.h), which count steps; with --steps everything is kept */
	const char *none_in_steps; /* what it means where the steps hold nothing for the report, and which report then answers; NULL = nothing more to say */
	bool timeline;           /* its numbers need times, not only durations: refused (ERR_DATA) for profile->durations_only */
	/* Fills *out, which is table_init-ed with the report's name and title. ERR_DATA when the profile lacks what the
	 * report is about, saying what is missing and how to record it. The profile has had the passes that report and variant need. */
	report_run_fn *run;
	report_run_job_fn *run_job; /* in place of run: of a single input, its ranks are the job */
};

static inline bool report_compat_is(const struct report_args *a, const char *tool)
{
	return a->compat && strcmp(a->compat, tool) == 0;
}

/* The i-th grouping of the report, the first is the default; NULL behind the last. "stack:N" where groupings combine. */
const char *report_grouping(const struct report *r, unsigned i);
/* Whether the groupings are parts of a key, which go together: "name,shape". */
bool report_combines(const struct report *r);
/* The i-th predecessor that the report reproduces; NULL behind the last. */
const char *report_compat(const struct report *r, unsigned i);

/* The row that a->compat and a->group_by choose. Without a->group_by: the row without a choice, else that of the report's default grouping.
 * NULL and ERR_USAGE, which says what there is, when there is none. */
const struct report_variant *report_variant_of(const struct report *r, const struct report_args *a, struct err *e);

/* Whether *a are choices that the report has; ERR_USAGE says which there are. report_run checks; before a long trace is read, its
 * caller may. */
int report_check(const struct report *r, const struct report_args *a, struct err *e);

/* Of a report whose groupings combine: whether a->group_by names this part ("stack"). *n (may be NULL) is then the number behind its
 * colon, 0 = without one. */
bool report_groups_by(const struct report_args *a, const char *part, int64_t *n);

/* "stack" of "stack:5" and of "stack:N". */
struct str report_part_name(struct str part);

/* What the report with these choices does not look at: enum left_out bits. Of a profile that lacks anything else it may not be asked. */
unsigned report_ignores(const struct report *r, const struct report_args *a);

/* Whether opscope's own table by this grouping (NULL = the default) has a row for each event: no aggregation. */
bool report_is_per_event(const struct report *r, const char *group_by);

/* All reports, in the order of meson.build, NULL-terminated (generated). */
extern const struct report *const report_registry[];

/* By name; NULL = none. */
const struct report *report_find(struct str name);

/* What *args (report_args_chosen) choose of *p: after the passes `needs` and choosing the key op, *p itself or, if args->has_steps, the part
 * of it with these steps (analysis/steps/slice.h). NULL and *e. */
struct profile *report_part(struct profile *p, const struct report_args *args, unsigned needs, struct err *e);

/* Runs the passes and the report: checks args against what the report offers, initialises *out. On error *out is empty and
 * need not be released. */
int report_run(const struct report *r, struct profile *p, const struct report_args *args, struct table *out,
               struct err *e);

/* run_job() of the report; ERR_DATA of a timeline of workers where it does not take REPORT_WORKERS. */
int report_run_job(const struct report *r, const struct job *j, const struct report_args *args, struct table *out, struct err *e);

/* run() of the report or of args->variant, which is set: for what asks a report again, of other steps. *out is table_init-ed. */
int report_fill(const struct report *r, const struct profile *p, const struct report_args *args, struct table *out, struct err *e);

#endif
