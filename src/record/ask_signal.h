/* `opscope record --on-demand=SIGNAL` asks its own program to record when the signal comes. The signal comes to opscope, not to the program, whose handlers stay. */
#ifndef OPSCOPE_RECORD_ASK_SIGNAL_H
#define OPSCOPE_RECORD_ASK_SIGNAL_H

#include "record/ask.h"
#include "record/words.h"

#include <pthread.h>
#include <stdbool.h>

struct ask_signal {
	const struct ask_request *request;
	pthread_t thread;
	bool started;              /* `thread` is to be joined */
	_Atomic bool busy;         /* the thread asks, or waits for the recording to end */
	unsigned missed;           /* signals that came while it was busy */
	struct words notes;        /* of the thread: recordings that failed, and why */
};

/* The signal came: a thread asks the processes that descend from this one. */
void ask_signal_came(struct ask_signal *s);
/* The program has ended: waits for the thread, adds its notes to *notes, and releases *s. */
void ask_signal_end(struct ask_signal *s, struct words *notes);

#endif
