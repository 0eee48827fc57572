/* Several threads make the results of jobs, and one thread takes them in the order of the jobs: so the outcome is that of one thread, whoever makes what. */
#ifndef OPSCOPE_BASE_CREW_H
#define OPSCOPE_BASE_CREW_H

struct crew_jobs {
	unsigned n;
	void *context;
	void (*join)(void *context);               /* each further thread calls it first; NULL = nothing */
	void (*make)(void *context, unsigned job); /* by any of the threads, several at once; a job is begun after all before it */
	int (*take)(void *context, unsigned job);  /* by the calling thread, job after job, when it is made; not 0: no further job is taken */
};

/* Runs jobs 0 to n-1 by the calling thread and up to threads - 1 others, which have ended when it returns. 0, or what take() said. By one thread each job is
 * taken before the next is made. A job that is not taken may have been made all the same: its result is for the caller to free. While a job is made,
 * threads_wanted() is 1.
 *
 * Where memory runs out in any thread, it has run out for the caller (base/mem.h). What other threads allocated is then in the pool of the caller's mem_try, as it is after a success. */
int crew_run(const struct crew_jobs *jobs, unsigned threads);

#endif
