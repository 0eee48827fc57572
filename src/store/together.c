#include "store/together.h"

#include "base/mem.h"
#include "base/spill.h"
#include "base/threads.h"
#include "store/profile.h"
#include "store/reuse.h"

#include <limits.h>
#include <sys/param.h>

struct together {
	const struct crew_jobs *jobs;
	const void *thread;            /* the calling one */
};

/* How many threads' questions fit into half of the memory: *p and what is kept for all take about 4 times what *p does, and what each thread makes for itself as much as *p. */
static unsigned together_room(const struct profile *p)
{
	enum { KEPT = 4 };
	const uint64_t most = spill_most_bytes(), fit = most / 2 / profile_bytes(p);
	return !most || fit > UINT_MAX ? UINT_MAX : fit > KEPT ? (unsigned)fit - KEPT : 1;
}

unsigned together_threads(const struct profile *p)
{
	enum { MOST = 8, ROWS_EACH = 2048 }; /* questions wait for each other's results; a few rows are looked through faster than a thread starts */
	const unsigned pay = MIN(MOST, 1 + p->span.rows.n / ROWS_EACH + p->gpu_op.rows.n / ROWS_EACH + p->memory_block.rows.n / ROWS_EACH);
	return spill_is_short() ? 1 : MIN(MIN(pay, together_room(p)), threads_wanted(p->threads));
}

static void together_join(void *together)
{
	reuse_join(((const struct together *)together)->thread);
}

static void together_make(void *together, unsigned job)
{
	const struct together *a = together;
	a->jobs->make(a->jobs->context, job);
}

static int together_take(void *together, unsigned job)
{
	const struct together *a = together;
	return a->jobs->take(a->jobs->context, job);
}

static void together_end(void *profile)
{
	((struct profile *)profile)->is_asked = false;
}

int together_run(struct profile *p, const struct crew_jobs *jobs, unsigned threads)
{
	struct together a = {.jobs = jobs, .thread = reuse_thread()};
	struct mem_undo undo = {0};
	if (threads > 1) {
		profile_assert_alone(p);
		p->is_asked = true;
		mem_undo_begin(&undo, together_end, p);
	}
	int rc = crew_run(&(struct crew_jobs){.n = jobs->n, .context = &a, .join = together_join, .make = together_make, .take = together_take}, threads);
	if (threads > 1) {
		mem_undo_end(&undo);
		together_end(p);
	}
	return rc;
}
