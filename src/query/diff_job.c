#include "query/diff_job.h"

#include "analysis/ranks/job.h"
#include "base/mem.h"
#include "query/diff_wait.h"
#include "query/job_read.h"

/* Joins recording i to the side and to the ranks; takes over what was read of it. */
static int diff_job_add(struct diff_side **side, struct job *ranks, unsigned i, struct job_read *x, struct err *e)
{
	struct diff_side *mine = x->side;
	if (x->failed.code || !mine) {
		*e = x->failed.code ? x->failed : x->side_failed;
		return -1;
	}
	for (uint32_t r = 0; r < x->ranks->n; r++)
		x->ranks->rank[r]->input = i;
	job_read_take_ranks(x, ranks);
	if (*side)
		return diff_side_join(*side, mine, e);
	*side = mine;
	x->side = NULL;
	return 0;
}

/* A rank alone tells nothing of what it waited for, and where no collective was alone, there is nothing to tell. */
static int diff_job_tell_waits(struct diff_side *side, struct job *ranks, const struct report_args *args, struct err *e)
{
	if (!side->n_exposed || ranks->n < 2)
		return 0;
	if (job_finish(ranks, (enum job_align)args->align, args->clocks, e) < 0)
		return -1;
	diff_wait_tell(side, ranks);
	return 0;
}

struct diff_side *diff_job_read(const struct job_inputs *in, const struct report_args *args, struct err *e)
{
	const struct job_ask ask = {.args = args, .side = true};
	struct job *ranks = job_new();
	struct diff_side *side = NULL;
	int rc = 0;
	for (unsigned i = 0; i < in->n && rc == 0; i++) {
		struct job_read *x = job_read_of(in, i, &ask);
		rc = diff_job_add(&side, ranks, i, x, e);
		job_read_free(x);
	}
	if (rc == 0 && in->n > 1)
		diff_side_join_end(side);
	rc = rc < 0 ? rc : diff_job_tell_waits(side, ranks, args, e);
	job_free(ranks);
	if (rc == 0)
		return side;
	diff_side_free(side);
	return NULL;
}

struct diff_side *diff_job_of_recording(struct profile *p, const struct report_args *args, struct err *e)
{
	struct diff_side *side = diff_side_new(p, args, e);
	if (!side || side->gpus < 2)
		return side;
	struct job *ranks = job_new();
	job_add_profile(ranks, p, RANK_UNKNOWN);
	const int rc = diff_job_tell_waits(side, ranks, args, e);
	job_free(ranks);
	if (rc == 0)
		return side;
	diff_side_free(side);
	return NULL;
}
