/* The ranks of a job on the command line. */
#include "cli/cli.h"

#include "base/mem.h"
#include "base/threads.h"
#include "cli/share.h"
#include "io/remote/remote.h"
#include "open/job_list.h"
#include "query/job_advice.h"
#include "query/job_each.h"
#include "query/job_file.h"

#include <stdio.h>
#include <sys/stat.h>

bool cli_is_job(struct trace_list *l)
{
	return cli_is_job_file(l) || cli_share_me() || job_list_is(l);
}

static struct profile *cli_job_open_rank(void *context, unsigned i, struct err *e)
{
	const struct cli_job *j = context;
	return cli_try_read(j->list->v[i].path.p, j->options, e);
}

static const char *cli_job_path_of_rank(void *context, unsigned i)
{
	return ((const struct cli_job *)context)->list->v[i].path.p;
}

static int64_t cli_job_rank_of(void *context, unsigned i)
{
	return ((const struct cli_job *)context)->list->v[i].rank;
}

static struct profile *cli_job_open_quietly(void *context, unsigned i, struct err *e)
{
	const struct cli_job *j = context;
	return cli_read_quietly(j->list->v[i].path.p, j->options, &j->said[i], e);
}

static uint64_t cli_job_size(const struct cli_job *j, unsigned i)
{
	return source_size_of(j->list->v[i].path.p);
}

/* Recording i was opened quietly. */
static void cli_job_opened(void *context, unsigned i)
{
	struct cli_job *j = context;
	j->done_bytes += cli_job_size(j, i);
	progress_update(&j->bar, j->done_bytes, j->all_bytes);
	if (j->said[i].n || i + 1 == j->list->n)
		progress_stop(&j->bar);
	if (j->said[i].n)
		fwrite(j->said[i].p, 1, j->said[i].n, stderr);
	buf_release(&j->said[i]);
}

/* Several threads may open them. */
static void cli_job_open_at_once(struct cli_job *j, struct job_inputs *in)
{
	j->said = NEW_ARRAY(j->list->n, struct buf);
	for (unsigned i = 0; i < j->list->n; i++)
		j->all_bytes += cli_job_size(j, i);
	progress_start(&j->bar, j->list->v[0].path.p);
	in->open_quietly = cli_job_open_quietly;
	in->opened = cli_job_opened;
	in->threads = threads_wanted(0);
	cli_warn_threads();
}

static void cli_job_end(struct cli_job *j, struct job_inputs *in)
{
	cli_share_end(in);
	cli_job_close(j);
	for (unsigned i = 0; j->said && i < j->list->n; i++)
		buf_release(&j->said[i]);
	mem_free(j->said);
}

void cli_job_inputs(struct cli_job *job, struct job_inputs *in)
{
	*in = (struct job_inputs){.n = job->list->n, .open = cli_job_open_rank, .path = cli_job_path_of_rank, .rank = cli_job_rank_of, .context = job};
}

/* What the options ask for and a job's file has not; NULL = nothing. */
static const char *cli_job_lacks(const struct trace_options *o)
{
	return o->has_rank ? "--rank=N is about one recording" : o->gpu || o->rules || o->kernel_rules ? "--gpu, --rules and --kernel-rules change what is read of recordings" : NULL;
}

static bool cli_job_asks_rank(const void *options, int64_t rank)
{
	const struct trace_options *o = options;
	return o->has_rank ? rank == o->rank : discover_is_among(rank, o->ranks, o->n_ranks);
}

int cli_job_open(struct cli_job *job, struct job_inputs *in, struct err *e)
{
	const struct trace_options *o = job->options;
	const char *path = job->list->v[0].path.p;
	cli_job_inputs(job, in);
	if (!cli_is_job_file(job->list))
		return 0;
	job->kept = job_file_open(path, e);
	if (!job->kept)
		return -1;
	*in = job_file_inputs(job->kept);
	if (!(o->ranks || o->has_rank) || (in->n = job_file_choose(job->kept, cli_job_asks_rank, o)))
		return 0;
	cli_job_close(job);
	return err_set(e, ERR_USAGE, "%s: no recording is of a rank that --rank asks for; `opscope report ranks` lists the ranks", path);
}

void cli_job_close(struct cli_job *job)
{
	job_file_close(job->kept);
	job->kept = NULL;
}

/* The inputs of the job, until cli_job_end. `together`: each is read once, in order, and may be read by another process. -1 and *e. */
static int cli_job_begin(struct cli_job *j, const struct trace_list *l, const struct trace_options *o, bool together, struct job_inputs *in, struct err *e)
{
	*j = (struct cli_job){.list = l, .options = o};
	const char *lacks = cli_job_lacks(o);
	if (cli_is_job_file(l) && lacks)
		return err_set(e, ERR_USAGE, "%s keeps no recordings, and %s: give the folder of the ranks", l->v[0].path.p, lacks);
	const int rc = cli_job_open(j, in, e);
	if (!cli_is_job_file(l)) {
		if (together && cli_share_count() > 1) {
			threads_limit(1); /* the processes share the processors */
			cli_share_work(l, in);
		} else {
			cli_job_open_at_once(j, in);
		}
	}
	return rc;
}

static int cli_job_fail(const struct err *e)
{
	return cli_fail(e, e->code == ERR_USAGE ? EXIT_USAGE : EXIT_INPUT);
}

int cli_print_job_findings(struct table_command *c, const struct trace_list *l, bool (*is_severe)(const struct table *t, const char *from), const char *from)
{
	struct cli_job job;
	struct job_inputs in;
	struct table t;
	struct err e;
	int rc = cli_job_begin(&job, l, &c->trace, true, &in, &e);
	rc = rc < 0 ? rc : job_advice_run(&in, &c->trace.report, &t, &e);
	cli_job_end(&job, &in);
	if (rc < 0)
		return cli_job_fail(&e);
	job_list_warn(l, &t);
	bool severe = is_severe(&t, from);
	int status = cli_output(&t, &c->output, c->args.v[0]);
	table_release(&t);
	return status == EXIT_DONE && severe ? EXIT_FINDING : status;
}

int cli_print_job(const struct report *r, struct table_command *c, const struct trace_list *l, const char *note)
{
	struct cli_job job;
	struct job_inputs in;
	struct table t;
	struct err e;
	int rc = cli_job_begin(&job, l, &c->trace, r->run_job, &in, &e);
	rc = rc < 0 ? rc : job_report_run(r, &in, c->trace.every_rank, &c->trace.report, &t, &e);
	cli_job_end(&job, &in);
	if (rc < 0)
		return cli_job_fail(&e);
	job_list_warn(l, &t);
	if (note) {
		table_note(&t, "%s", note);
		t.notes_answer = true;
	}
	c->output.report = c->trace.report.compat ? NULL : r;
	int status = cli_output(&t, &c->output, c->args.v[c->args.n - 1]);
	table_release(&t);
	return status;
}

/* A new file has no permission that one of the recordings lacks. */
static mode_t cli_job_mode(const struct trace_list *l)
{
	enum { ALL = 0666 };
	mode_t mode = ALL;
	struct stat st;
	for (unsigned i = 0; i < l->n; i++)
		mode &= remote_is(l->v[i].path.p) ? S_IRUSR | S_IWUSR : stat(l->v[i].path.p, &st) == 0 && S_ISREG(st.st_mode) ? st.st_mode | S_IRUSR | S_IWUSR : ALL;
	return mode;
}

static void cli_job_warn(const char *recording, const struct err *why)
{
	struct err e;
	err_set(&e, ERR_NONE, "%s is left out: %s", recording, why->msg);
	cli_fail(&e, 0);
}

int cli_import_job(const struct trace_list *l, const struct trace_options *o, const char *path, const char *input)
{
	struct cli_job job;
	struct job_inputs in;
	struct err e;
	for (unsigned i = 0; i < l->n; i++)
		cli_refuse_overwrite(path, &(struct cli_args){(char *[]){(char *)(uintptr_t)l->v[i].path.p}, 1});
	int rc = cli_job_begin(&job, l, o, true, &in, &e);
	if (rc == 0 && cli_share_me()) {
		job_file_read_all(&in);
		cli_job_end(&job, &in);
	}
	rc = rc < 0 ? rc : job_file_save(&in, path, cli_job_mode(l), str_from(input), cli_job_warn, &e);
	cli_job_end(&job, &in);
	return rc < 0 ? cli_job_fail(&e) : EXIT_DONE;
}
