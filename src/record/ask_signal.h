/* Asking the own program to record when a signal comes to `opscope record --on-demand=SIGNAL`. Nothing is done in the program for it: its handlers stay. */
#ifndef OPSCOPE_RECORD_ASK_SIGNAL_H
#define OPSCOPE_RECORD_ASK_SIGNAL_H

#include "record/ask.h"
#include "record/words.h"

#include <pthread.h>
#include <stdbool.h>

struct ask_signal {
	const struct ask_request *request;
	pthread_t thread;
	bool started;              /* there is a thread to be joined */
	_Atomic bool busy;         /* it is asking */
	unsigned missed;           /* signals that came meanwhile */
	struct words notes;        /* of the thread: what did not come of it, and why */
};

/* The signal came: the processes that descend from this one are asked, in a thread. */
void ask_signal_came(struct ask_signal *s);
/* When the program has ended. What there is to say is added to *notes. */
void ask_signal_end(struct ask_signal *s, struct words *notes);

#endif
