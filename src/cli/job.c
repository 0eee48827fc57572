/* The ranks of a job on the command line. */
#include "cli/cli.h"

#include "base/mem.h"
#include "base/sort.h"
#include "query/job_advice.h"

#include <stdlib.h>

static int cli_job_by_rank(const void *a, const void *b)
{
	const struct trace_file *x = a, *y = b;
	return COMPARE(x->rank, y->rank) ?: str_cmp_natural(x->path, y->path);
}

bool cli_is_job(struct trace_list *l)
{
	struct trace_file *v = NEW_ARRAY(l->n, struct trace_file);
	bool is = l->n > 1, differs = false;
	for (unsigned i = 0; i < l->n && is; i++) {
		v[i] = l->v[i];
		is = discover_rank_for_certain(&l->v[i], &v[i].rank) && str_eq(l->v[i].run, l->v[0].run);
	}
	if (is)
		qsort(v, l->n, sizeof *v, cli_job_by_rank);
	for (unsigned i = 1; i < l->n && is; i++) {
		bool again = v[i].rank == v[i - 1].rank;
		differs |= !again;
		is = !again || str_eq(v[i].span, v[i - 1].span); /* spans of one rank follow each other */
	}
	for (unsigned i = 0; i < l->n && is && differs; i++)
		l->v[i] = v[i];
	mem_free(v);
	return is && differs;
}

/* The ranks of a job, as the command line opens them. */
struct cli_job {
	const struct trace_list *list;
	const struct trace_options *options;
};

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

int cli_print_job_findings(struct table_command *c, const struct trace_list *l, bool (*is_severe)(const struct table *t, const char *from), const char *from)
{
	struct cli_job job = {l, &c->trace};
	const struct job_inputs in = {l->n, cli_job_open_rank, cli_job_path_of_rank, cli_job_rank_of, &job};
	struct table t;
	struct err e;
	if (job_advice_run(&in, &c->trace.report, &t, &e) < 0)
		return cli_fail(&e, e.code == ERR_USAGE ? EXIT_USAGE : EXIT_INPUT);
	bool severe = is_severe(&t, from);
	int status = cli_output(&t, &c->output, c->args.v[0]);
	table_release(&t);
	return status == EXIT_DONE && severe ? EXIT_FINDING : status;
}

int cli_print_job(const struct report *r, struct table_command *c, const struct trace_list *l, const char *note)
{
	struct cli_job job = {l, &c->trace};
	const struct job_inputs in = {l->n, cli_job_open_rank, cli_job_path_of_rank, cli_job_rank_of, &job};
	struct table t;
	struct err e;
	if (job_report_run(r, &in, c->trace.every_rank, &c->trace.report, &t, &e) < 0)
		return cli_fail(&e, e.code == ERR_USAGE ? EXIT_USAGE : EXIT_INPUT);
	if (note) {
		table_note(&t, "%s", note);
		t.notes_answer = true;
	}
	c->output.report = c->trace.report.compat ? NULL : r;
	int status = cli_output(&t, &c->output, c->args.v[c->args.n - 1]);
	table_release(&t);
	return status;
}
