#include "cli/side.h"

static struct diff_side *cli_side_of(struct profile *p, const struct trace_options *o, int *status)
{
	struct err e;
	struct diff_side *s = p ? diff_side_new(p, &o->report, &e) : NULL;
	if (p && !s)
		*status = cli_fail(&e, e.code == ERR_USAGE ? EXIT_USAGE : EXIT_INPUT);
	profile_free(p);
	return s;
}

static struct diff_side *cli_side_of_job(const struct trace_list *l, const struct trace_options *o, int *status)
{
	struct diff_side *job = NULL;
	for (unsigned i = 0; i < l->n; i++) {
		struct err e;
		struct diff_side *rank = cli_side_of(cli_read(l->v[i].path.p, o, status), o, status);
		const bool joined = job && rank && diff_side_join(job, rank, &e) == 0;
		if (job && rank && !joined)
			*status = cli_fail(&e, EXIT_INPUT);
		if (!job && rank) {
			job = rank;
			continue;
		}
		diff_side_free(rank);
		if (!joined) {
			diff_side_free(job);
			return NULL;
		}
	}
	diff_side_join_end(job);
	return job;
}

struct diff_side *cli_side_read(const struct cli_args *paths, const struct trace_options *o, int *status)
{
	struct trace_list l = {0};
	struct diff_side *s = NULL;
	const bool found = cli_discover(paths, o, &l, status) == 0, job = found && l.n > 1 && cli_is_job(&l);
	if (job)
		s = cli_side_of_job(&l, o, status);
	discover_release(&l);
	return !found || job ? s : cli_side_of(cli_open_one(paths, o, status), o, status);
}
