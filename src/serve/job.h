/* Work for the threads that answer: bounded queues, each with threads of its own. */
#ifndef OPSCOPE_SERVE_JOB_H
#define OPSCOPE_SERVE_JOB_H

#include <stdbool.h>
#include <time.h>

struct serve_task {
	struct serve_task *next;
	void (*run)(struct serve_task *j);
};

struct jobs;

/* NULL when no thread can be started. */
struct jobs *jobs_start(unsigned threads, unsigned most);
/* False when too many wait, or it has been stopped. */
bool jobs_add(struct jobs *q, struct serve_task *j);
/* Does what waits, then ends the threads. False when they have not done it `until` (CLOCK_REALTIME; NULL = however long it takes); then it
 * must not be freed. q may be NULL. */
bool jobs_stop(struct jobs *q, const struct timespec *until);
/* After jobs_stop. */
void jobs_free(struct jobs *q);

#endif
