/* What `opscope record` does when the program has ended: reads what was recorded, prints overview and findings, and says what is missing. */
#include "cli/record.h"

#include "base/now.h"
#include "base/program.h"
#include "base/search.h"
#include "open/trace_open.h"
#include "query/advice.h"
#include "query/aggregate.h"
#include "store/torch_names.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static void cli_record_after_say(const struct record_job *job, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A line of ours, "opscope: record: ...", with the rank where there are several. */
static void cli_record_after_say(const struct record_job *job, const char *fmt, ...)
{
	struct err e = {.code = ERR_NONE};
	va_list ap;
	size_t n = (size_t)snprintf(e.msg, sizeof e.msg, "record: %s%s", job->member, *job->member ? ": " : "");
	va_start(ap, fmt);
	vsnprintf(e.msg + n, sizeof e.msg - n, fmt, ap);
	va_end(ap);
	cli_fail(&e, 0);
}

static void say_all(const struct record_job *job, const struct words *list)
{
	for (int i = 0; i < list->n; i++)
		cli_record_after_say(job, "%s", list->v[i]);
}

/* --- the tables ------------------------------------------------------------------------------------------------- */

/* One report (group_by may be NULL); *there (may be NULL): whether the capture has what it is about. That it has not is no failure: the notes say what was recorded. */
static void cli_record_after_print_report(const char *name, const char *group_by, struct profile *p, const struct output_options *out, bool *there)
{
	const struct report_args args = {.group_by = group_by};
	struct table t;
	struct err e;
	bool ok = report_run(report_find(str_from(name)), p, &args, &t, &e) == 0;
	if (there)
		*there = ok;
	if (!ok) {
		if (e.code != ERR_DATA)
			cli_fail(&e, 0);
		return;
	}
	cli_output(&t, out, p->input_path.p);
	table_release(&t);
	fputc('\n', stdout);
	fflush(stdout);
}

/* Ranges of the program's own, steps apart: they name the parts of what the overview calls CPU Exec. */
static bool has_ranges(const struct profile *p)
{
	return ANY_WHERE(i, 0, p->span.rows.n, (p->span.kind[i] == SPAN_USER || p->span.kind[i] == SPAN_RANGE || p->span.kind[i] == SPAN_MARKER) &&
	                                       !str_starts(profile_str(p, p->span.name[i]), STR(TORCH_STEP)));
}

static bool cli_record_after_has_ops(const struct profile *p)
{
	return ANY_WHERE(i, 0, p->span.rows.n, p->span.kind[i] == SPAN_OP);
}

/* Where the time went: by role, then by range; then what was on the CPU. What there is more to ask is added to *more. */
static void print_overview(struct profile *p, const struct output_options *out, struct buf *more)
{
	bool there, sampled, ranges = has_ranges(p);
	cli_record_after_print_report("overview", NULL, p, out, &there);
	if (!there || ranges)
		cli_record_after_print_report("nvtx", there ? "path" : NULL, p, out, NULL);
	cli_record_after_print_report("samples", NULL, p, out, &sampled);
	const struct { bool there; const char *text; } reports[] = {
		{ranges, "nvtx (ranges; --group-by=path: in what)"}, {cli_record_after_has_ops(p), "operators, key-averages (ops)"}, {p->gpu_op.rows.n > 0, "kernels"},
		{p->memory.rows.n > 0, "memory"}, {sampled, "samples"},
	};
	for (size_t i = 0; i < sizeof reports / sizeof reports[0]; i++)
		if (reports[i].there)
			buf_printf(more, "%s%s", more->n ? ", " : "", reports[i].text);
}

static void cli_record_after_print_findings(struct profile *p, const struct output_options *out)
{
	const struct report_args args = {.brief = true};
	struct table t;
	struct err e;
	if (advice_table(p, &args, &t, &e) < 0) {
		cli_fail(&e, 0);
		return;
	}
	cli_output(&t, out, p->input_path.p);
	table_release(&t);
}

/* What was lost or repaired has been said by cli_open; this is what could not be seen, and other things worth knowing. */
static void cli_record_after_print_notes(const struct profile *p, const struct record_job *job)
{
	bool refused = false;
	for (unsigned i = 0; i < p->diags.n; i++) {
		const struct diag_entry *d = &p->diags.entry[i];
		if (d->level == DIAG_NOTE)
			cli_record_after_say(job, STR_FMT "%s", STR_ARG(d->message), d->count > 1 ? " (several times)" : "");
		refused |= d->level == DIAG_LOSS && strncmp(d->kind, "cupti-", 6) == 0 && strcmp(d->kind, "cupti-busy") != 0;
	}
	if (refused && program_find("nsys", NULL) == 0)
		cli_record_after_say(job, "an nsys is on the PATH, which brings a CUPTI of its own: --backend=nsys records with it");
}

static int import_into(struct profile *p, const struct run_dir *d, const struct record_job *job)
{
	char now[NOW_BYTES];
	const struct aggregate_spec spec = {.name = {"", 0}, .created = now_text(now), .rules = {"", 0}};
	struct err e;
	if (aggregate_import(p, d->into.p, &spec, &e) < 0) {
		cli_fail(&e, 0);
		cli_record_after_say(job, "the capture is kept in %s: `opscope import %s -o FILE.opscope` makes a file of it", d->path.p, d->path.p);
		return EXIT_INPUT;
	}
	run_dir_remove(d);
	return EXIT_DONE;
}

/* The one trace that is printed: of a job with several ranks, that of the lowest. *others is how many more there are. NULL when nothing can be read. */
static struct profile *open_first(const char *capture, unsigned *others, int *status)
{
	enum { RANKS_TRIED = 64 };
	char *v[] = {(char *)(uintptr_t)capture};
	const struct cli_args paths = {v, 1};
	struct trace_options o = {.by_path = true};
	struct trace_list all = {0}, one = {0};
	struct profile *p = NULL;
	struct err e;
	*others = 0;
	if (cli_discover(&paths, &o, &all, status) == 0) {
		*others = all.n - 1;
		for (int64_t rank = 0; all.n > 1 && !one.n && rank < RANKS_TRIED; rank++) {
			discover_release(&one);
			if (discover_add(&one, capture, &e) == 0)
				discover_select_rank(&one, rank);
		}
		p = cli_read(one.n ? one.v[0].path.p : all.v[0].path.p, &o, status);
	}
	discover_release(&all);
	discover_release(&one);
	return p;
}

static void print_all(struct profile *p, const struct record_job *job, struct buf *more)
{
	enum { ROWS = 12 };
	const struct output_options out = {.limit = -1}, few = {.limit = ROWS};
	print_overview(p, &few, more);
	cli_record_after_print_findings(p, &out);
	fputc('\n', stdout);
	fflush(stdout);
	cli_record_after_print_notes(p, job);
}

/* Why what was asked for did not come, and how to find out what would have. */
static void say_empty(const struct record_options *o, const struct record_job *job)
{
	static const char *const how = "record a moment without it, and `opscope report nvtx` lists the ranges that there are";
	const struct record_spec *s = &o->spec;
	if (s->range && strcmp(s->range, RECORD_API_RANGE) == 0)
		cli_record_after_say(job, "nothing was recorded: the program never called cudaProfilerStart()");
	else if (s->steps && s->key_range)
		cli_record_after_say(job, "nothing was recorded: no range `%s` (--key-range) came, or, counted from 0, not the first of --steps; %s", s->key_range, how);
	else if (s->steps)
		cli_record_after_say(job, "nothing was recorded: --steps without --key-range=NAME is about the numbers of opscope_step(), and none of those came");
	else if (s->range)
		cli_record_after_say(job, "nothing was recorded: the program never entered the range `%s`; %s", s->range, how);
	else if (s->delay_ns)
		cli_record_after_say(job, "nothing was recorded: the program ended before --delay, or did nothing of that kind after it");
}

static bool cli_record_after_is_empty(const struct profile *p) { return diag_count(&p->diags, "nothing-recorded") > 0; }

/* Where no report was asked for, one does not wait until all of a large capture was read: it is not empty. */
static bool capture_is_empty(const struct run_dir *d)
{
	enum { BYTES_MOST = 64 << 20 };
	struct trace_list all = {0};
	struct err e;
	bool empty = run_dir_bytes(d->path.p) <= BYTES_MOST && discover_add(&all, d->path.p, &e) == 0 && all.n;
	for (unsigned i = 0; i < all.n && empty; i++) {
		struct profile *p = trace_open(all.v[i].path.p, NULL, &e);
		empty = p && cli_record_after_is_empty(p);
		profile_free(p);
	}
	discover_release(&all);
	return empty;
}

/* *more: the reports that have something to say of what was recorded, as a list. */
static int read_and_print(const struct record_options *o, const struct run_dir *d, const struct record_job *job, const struct record_result *r, struct buf *more)
{
	int status = EXIT_DONE;
	unsigned others;
	if (o->no_report && !d->into.n) {
		if (capture_is_empty(d))
			say_empty(o, job);
		return EXIT_DONE;
	}
	struct profile *p = open_first(r->capture.p, &others, &status);
	if (!p) /* that has been said; the program's status is not changed by it, unless a file was asked for */
		return d->into.n ? status : EXIT_DONE;
	if (!o->no_report)
		print_all(p, job, more);
	if (cli_record_after_is_empty(p))
		say_empty(o, job);
	if (others && !o->no_report)
		cli_record_after_say(job, "there are %u traces, a rank of the job each; this was " STR_FMT ", `opscope info %s` lists them", others + 1, STR_ARG(p->input_path), d->path.p);
	if (d->into.n && others) {
		cli_record_after_say(job, "%s was not written: a file holds one trace, and there are %u; they are kept in %s", d->into.p, others + 1, d->path.p);
		status = EXIT_INPUT;
	} else if (d->into.n) {
		status = import_into(p, d, job);
	}
	profile_free(p);
	return status;
}

/* --- what there is ---------------------------------------------------------------------------------------------- */

static void say_where(const struct run_dir *d, const struct record_job *job, int status)
{
	const char *path = d->into.n && status == EXIT_DONE ? d->into.p : d->path.p;
	cli_record_after_say(job, "recorded in %s (opscope report NAME %s, opscope serve %s)", path, path, path);
}

static void say_nothing(const struct record_options *o, const struct run_dir *d, const struct record_job *job)
{
	if (o->spec.range || o->spec.steps || o->spec.delay_ns)
		cli_record_after_say(job, "nothing was recorded: what --range, --steps or --delay wait for did not come, or no process called CUDA, NVTX, ITT or opscope/trace.h");
	else
		cli_record_after_say(job, "nothing was recorded: no process of the command called CUDA, NVTX, ITT or opscope/trace.h, or its environment or %s did not reach it%s", d->path.p,
		                     o->spec.sample_cpu ? "" : "; --sample=cpu shows what a program does that marks nothing");
}

int record_after(const struct record_options *o, const struct run_dir *d, const struct record_job *job, const struct record_result *r)
{
	struct buf more = {0};
	bool own = r->capture.n && str_eq(buf_view(&r->capture), buf_view(&d->path));
	bool any = r->capture.n && (!own || o->ask || run_dir_segments(d->path.p));
	int status = EXIT_DONE;
	/* Standard output was the program's: a pipe there must not get our tables behind its own. */
	fflush(stdout);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	say_all(job, &r->warnings);
	unsigned absent = run_dir_absent(d->path.p);
	if (absent)
		cli_record_after_say(job, "%u %s could not begin a capture: no free descriptor, or no room in %s", absent, absent == 1 ? "process" : "processes", d->path.p);
	else if (!any && !r->warnings.n)
		say_nothing(o, d, job);
	if (any && !job->has_rank) /* one of many sees its own part only, and must not wait for the others */
		status = read_and_print(o, d, job, r, &more);
	say_all(job, &r->notes);
	if (any && (!job->has_rank || job->rank == 0))
		say_where(d, job, status);
	if (more.n)
		cli_record_after_say(job, "its reports NAME: %s; `opscope report` lists all", more.p);
	buf_release(&more);
	return status;
}

void record_after_demand(const struct run_dir *d, const struct record_job *job, const struct record_result *r)
{
	struct buf list = {0};
	unsigned n = run_dir_asked(d->path.p, &list);
	say_all(job, &r->warnings);
	say_all(job, &r->notes);
	if (n)
		cli_record_after_say(job, "recorded on demand:%.*s (opscope report NAME FOLDER)", (int)list.n, list.p);
	else
		cli_record_after_say(job, "nothing was recorded: nobody asked for it, or no process of the command called CUDA, NVTX, ITT or opscope/trace.h");
	buf_release(&list);
}
