/* Work for the threads that answer: a bounded queue. */
#ifndef OPSCOPE_SERVE_JOB_H
#define OPSCOPE_SERVE_JOB_H

#include <stdbool.h>

struct job {
	struct job *next;
	void (*run)(struct job *j);
};

struct jobs;

/* NULL when no thread can be started. */
struct jobs *jobs_start(unsigned threads, unsigned most);
/* False when too many wait, or it has been stopped. */
bool jobs_add(struct jobs *q, struct job *j);
/* Does what waits, then ends the threads. q may be NULL. */
void jobs_stop(struct jobs *q);
/* After jobs_stop. */
void jobs_free(struct jobs *q);

#endif
