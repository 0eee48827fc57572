/* How many threads to use, and how to start one. */
#ifndef OPSCOPE_BASE_THREADS_H
#define OPSCOPE_BASE_THREADS_H

#include <pthread.h>
#include <stdbool.h>

enum { THREADS_MOST = 64 };

/* For the calling thread, 1 to THREADS_MOST: what threads_limit said; else `asked`, where it is not 0; else what threads_set said;
 * else the variable OPSCOPE_THREADS; else as many as there are processors that this process may use. */
unsigned threads_wanted(unsigned asked);

/* For the whole process: 1 or more, 0 = not said. Before there are further threads. */
void threads_set(unsigned n);

/* For the calling thread, where it is one of several that share the processors: 1 or more, 0 = as the process. Returns what was said before. */
unsigned threads_limit(unsigned n);

/* The text of OPSCOPE_THREADS where that is no number from 1 on, so that it is passed over; NULL = it is one, is not set, or threads_set goes before it. */
const char *threads_odd(void);

/* Starts a thread that takes no signals but those of its own faults: others are for threads that know of them. False: none was started. */
bool threads_start(pthread_t *thread, void *(*run)(void *context), void *context);

#endif
