/* Asking programs that run to record: the client's side of opscope/ask.h. */
#ifndef OPSCOPE_RECORD_ASK_H
#define OPSCOPE_RECORD_ASK_H

#include "base/buf.h"
#include "base/err.h"

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

enum ask_outcome { ASK_WAITS, ASK_DONE, ASK_FAILED };

/* A process that listens. */
struct ask_process {
	int fd;                    /* -1 = no more */
	pid_t pid;                 /* as it is called here */
	int64_t rank;              /* -1 = none */
	struct buf dir;            /* its run directory; NUL-terminated */
	struct buf heard;          /* of what it says: the line that is not complete */
	bool begun;
	enum ask_outcome outcome;
	int64_t steps, ns;         /* of ASK_DONE */
	struct buf text;           /* its file, or why not; NUL-terminated */
};

struct ask_group {
	struct ask_process *v;     /* by pid */
	unsigned n, cap;
};

struct ask_request {
	int64_t start_ns;          /* CLOCK_REALTIME; 0 = now, of several processes as soon as all of them can */
	int64_t delay_ns;          /* later than that */
	int64_t duration_ns, steps; /* 0 = not bounded by it */
	const char *key_range;     /* NULL = steps of the program's own */
};

/* The folder for sockets, made if need be, NUL-terminated: OPSCOPE_ASK, else in XDG_RUNTIME_DIR, else in /tmp. ERR_IO when there is none that is the
 * user's own and closed to others. */
int ask_folder(struct buf *path, struct err *e);

/* Connects to the processes that `what` names: a process's number (also those that descend from it), a run directory, or a socket. ERR_DATA or ERR_IO when
 * nobody listens, or not all of them record into one directory. */
int ask_find(const char *what, struct ask_group *g, struct err *e);

/* The folder for the recording, in the run directory: `name`, or the first of asked-1, asked-2, ... that is not there (NULL). *made: it was not there. */
int ask_make_folder(const struct ask_group *g, const char *name, struct buf *path, bool *made, struct err *e);

/* Asks all, and waits until each has answered. A signal that sets *stop (may be NULL) ends the recordings. `patience` is called once, when a process has waited
 * for its first step for ten seconds; may be NULL. */
void ask_record(struct ask_group *g, const struct ask_request *r, const char *folder, const volatile sig_atomic_t *stop, void (*patience)(const struct ask_group *g));

void ask_release(struct ask_group *g);

#endif
