/* Asks running programs to record: the client's side of opscope/ask.h. */
#ifndef OPSCOPE_RECORD_ASK_H
#define OPSCOPE_RECORD_ASK_H

#include "base/buf.h"
#include "base/err.h"

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

enum ask_outcome { ASK_WAITS, ASK_DONE, ASK_FAILED };

/* A process that listens, and the connection to it. */
struct ask_process {
	int fd;                    /* -1 = the connection has ended, or is yet to be made */
	struct buf socket;         /* its path; NUL-terminated */
	bool expected;             /* it is one of those to be asked, as far as is known without its greeting */
	pid_t pid;                 /* in our PID namespace */
	int64_t rank;              /* -1 = none */
	struct buf dir;            /* its run directory; NUL-terminated; empty = it has not greeted */
	struct buf heard;          /* what it said and was not yet taken as a line */
	bool begun;                /* the recording has begun */
	bool told;                 /* that one has to wait for it */
	enum ask_outcome outcome;
	int64_t steps, ns;         /* of ASK_DONE */
	struct buf text;           /* ASK_DONE: the file; ASK_FAILED: why; NUL-terminated */
};

struct ask_group {
	struct ask_process *v;     /* by pid */
	unsigned n, cap;
	const char *dir;           /* the run directory; of one of v */
	int64_t until_ns;          /* CLOCK_MONOTONIC: who has not greeted by then does not answer */
};

struct ask_request {
	int64_t start_ns;          /* CLOCK_REALTIME; 0 = now; with several processes a moment later, so that they begin together */
	int64_t delay_ns;          /* added to start_ns */
	int64_t duration_ns, steps; /* 0 = not bounded by time; by steps */
	const char *key_range;     /* NULL = the program's own steps */
};

/* The folder for sockets, made if need be, NUL-terminated: OPSCOPE_ASK, else in XDG_RUNTIME_DIR, else in /tmp. ERR_IO when none of these is the user's own and closed
 * to others. */
int ask_folder(struct buf *path, struct err *e);

/* Connects to the processes that `what` names: the number of a process, which also stands for its descendants; a run directory; or a socket. ERR_DATA or ERR_IO when
 * no such process listens, when none of them answers within some seconds, or when they record into several directories. Processes that are silent while others answer
 * are in the group, too. */
int ask_find(const char *what, struct ask_group *g, struct err *e);

/* The folder for the recording, in the run directory: `name`; without a name (NULL) asked-N, where N is one more than the highest that is there. *made: this call made it. */
int ask_make_folder(const struct ask_group *g, const char *name, struct buf *path, bool *made, struct err *e);

/* Asks all processes, and waits until the recording of each has ended or failed. When a signal sets *stop, the recordings end. `patience` is called once for a process that has not
 * begun ten seconds after it should have (a step begins late), or has not ended. A process that has not ended 30 seconds after it should have by the duration is waited for as
 * long as it answers: it is in a long step. A process fails that does not answer then, or has not ended ten seconds after *stop. `stop` and `patience` may be NULL. */
void ask_record(struct ask_group *g, const struct ask_request *r, const char *folder, const volatile sig_atomic_t *stop,
                void (*patience)(const struct ask_process *p, const struct ask_request *r));

void ask_release(struct ask_group *g);

#endif
