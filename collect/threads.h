#ifndef OPSCOPE_COLLECT_THREADS_H
#define OPSCOPE_COLLECT_THREADS_H

#include "writer.h"

/* Takes up what happened to the process since this thread last looked: a fork, a switch of collecting. */
void writer_refresh(struct writer *w);
/* Gives back the writers of threads that are gone, and adds up what was counted by them. */
void threads_sweep(void);
/* In a forked child, by the thread that forked: it goes on, and its writer with it. */
void threads_forked(void);
/* In a forked child: the other threads of the parent are not here. */
void threads_forget(void);
/* A range that control.c waits for was ended, that the thread of this number had started. False: nothing is known of such a range. */
bool threads_ended(uint32_t number);
/* What so many calls of the library took. */
void threads_cost(uint64_t calls, uint64_t ns);
/* Before the process ends: adds up what threads have counted. */
void threads_add_up(void);
/* With live->epoch at 0: waits, a second at most, until no thread is between enter and leave. False: some thread still is, or that is not to be known. */
bool threads_quiet(void);
/* After that: what all threads have counted; no writer knows a chunk any more. */
void threads_add_up_all(void);
void threads_unbind(void);

#endif
