#include "base/crew.h"

#include "base/mem.h"
#include "base/threads.h"

#include <stdbool.h>
#include <sys/param.h>

struct crew_member {
	struct crew *crew;
	pthread_t thread;
	bool started;
	struct mem_pool blocks;    /* what it allocated, where the caller's blocks are noted */
};

struct crew {
	const struct crew_jobs *jobs;
	struct crew_member *member;
	unsigned n_members;
	bool notes;                /* whether the caller's blocks are noted */
	pthread_mutex_t lock;      /* of what follows */
	pthread_cond_t changed;
	unsigned next;             /* the first job that nobody has begun */
	bool *made;                /* by job */
	bool failed;               /* memory ran out in a member */
	int rc;
};

/* Begins the next job: its number; n = there is none. */
static unsigned crew_begin(struct crew *c)
{
	pthread_mutex_lock(&c->lock);
	const unsigned job = c->next;
	c->next = MIN(job + 1, c->jobs->n);
	pthread_mutex_unlock(&c->lock);
	return job;
}

static void crew_make(struct crew *c, unsigned job)
{
	const unsigned before = threads_limit(1);
	c->jobs->make(c->jobs->context, job);
	threads_limit(before);
	pthread_mutex_lock(&c->lock);
	c->made[job] = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

/* No job is begun any more. */
static void crew_stop(struct crew *c, bool failed)
{
	pthread_mutex_lock(&c->lock);
	c->next = c->jobs->n;
	c->failed = c->failed || failed;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

static void crew_work(void *crew)
{
	struct crew *c = crew;
	if (c->jobs->join)
		c->jobs->join(c->jobs->context);
	for (unsigned job; (job = crew_begin(c)) < c->jobs->n;)
		crew_make(c, job);
}

static void *crew_member_run(void *member)
{
	struct crew_member *m = member;
	if (mem_try(m->crew->notes ? &m->blocks : NULL, crew_work, m->crew) < 0)
		crew_stop(m->crew, true);
	return NULL;
}

/* False: a member failed, so that it will never be there. */
static bool crew_await(struct crew *c, unsigned job)
{
	pthread_mutex_lock(&c->lock);
	while (!c->made[job] && !c->failed)
		pthread_cond_wait(&c->changed, &c->lock);
	const bool failed = c->failed;
	pthread_mutex_unlock(&c->lock);
	return !failed;
}

static bool crew_is_made(struct crew *c, unsigned job)
{
	pthread_mutex_lock(&c->lock);
	const bool made = c->made[job];
	pthread_mutex_unlock(&c->lock);
	return made;
}

/* The caller takes what is made, and else makes a job itself. */
static void crew_lead(void *crew)
{
	struct crew *c = crew;
	for (unsigned job = 0; job < c->jobs->n && !c->rc; job++) {
		for (unsigned own; !crew_is_made(c, job) && (own = crew_begin(c)) < c->jobs->n;)
			crew_make(c, own);
		if (!crew_await(c, job))
			return;
		c->rc = c->jobs->take(c->jobs->context, job);
	}
}

static int crew_run_alone(const struct crew_jobs *jobs)
{
	int rc = 0;
	for (unsigned job = 0; job < jobs->n && !rc; job++) {
		const unsigned before = threads_limit(1);
		jobs->make(jobs->context, job);
		threads_limit(before);
		rc = jobs->take(jobs->context, job);
	}
	return rc;
}

/* Waits for the members; what they allocated is the caller's. */
static void crew_end(struct crew *c)
{
	for (unsigned i = 0; i < c->n_members; i++) {
		if (c->member[i].started)
			pthread_join(c->member[i].thread, NULL);
		mem_adopt(&c->member[i].blocks);
	}
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	mem_free(c->member);
	mem_free(c->made);
}

int crew_run(const struct crew_jobs *jobs, unsigned threads)
{
	threads = MIN(threads, jobs->n);
	if (threads < 2)
		return crew_run_alone(jobs);
	struct crew c = {.jobs = jobs, .member = NEW_ARRAY(threads - 1, struct crew_member), .n_members = threads - 1, .made = NEW_ARRAY(jobs->n, bool), .notes = mem_is_noted()};
	pthread_mutex_init(&c.lock, NULL);
	pthread_cond_init(&c.changed, NULL);
	for (unsigned i = 0; i < c.n_members; i++) {
		c.member[i].crew = &c;
		c.member[i].started = threads_start(&c.member[i].thread, crew_member_run, &c.member[i]);
	}
	crew_stop(&c, mem_try(NULL, crew_lead, &c) < 0);
	crew_end(&c);
	if (c.failed)
		mem_fail(0);
	return c.rc;
}
