#include "cli/side.h"

#include "query/diff_job.h"

static int cli_side_fail(const struct err *e)
{
	return cli_fail(e, e->code == ERR_USAGE ? EXIT_USAGE : EXIT_INPUT);
}

static struct diff_side *cli_side_of(struct profile *p, const struct trace_options *o, int *status)
{
	struct err e;
	struct diff_side *s = p ? diff_job_of_recording(p, &o->report, &e) : NULL;
	if (p && !s)
		*status = cli_side_fail(&e);
	profile_free(p);
	return s;
}

static struct diff_side *cli_side_of_job(const struct trace_list *l, const struct trace_options *o, int *status)
{
	struct cli_job job = {.list = l, .options = o};
	struct job_inputs in;
	struct err e;
	struct diff_side *s = cli_job_open(&job, &in, &e) == 0 ? diff_job_read(&in, &o->report, &e) : NULL;
	cli_job_close(&job);
	if (!s)
		*status = cli_side_fail(&e);
	return s;
}

struct diff_side *cli_side_read(const struct cli_args *paths, const struct trace_options *o, int *status)
{
	struct trace_list l = {0};
	struct diff_side *s = NULL;
	const bool found = cli_discover(paths, o, &l, status) == 0, job = found && cli_is_job(&l);
	if (job)
		s = cli_side_of_job(&l, o, status);
	discover_release(&l);
	return !found || job ? s : cli_side_of(cli_open_one(paths, o, status), o, status);
}
