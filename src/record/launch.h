/* Starting a program and waiting for it, with the manners of `time` and `perf record`: it has our terminal, process group, standard streams and
 * signals, as if we were not there. What the terminal sends (Ctrl-C) reaches it without us; what is sent to us alone is handed on. A signal that
 * was ignored when we were started (nohup) is left alone, and stays ignored in the program. */
#ifndef OPSCOPE_RECORD_LAUNCH_H
#define OPSCOPE_RECORD_LAUNCH_H

#include "base/buf.h"
#include "base/err.h"

#include <sys/types.h>

#define LAUNCH_S 1000000000ll
enum { LAUNCH_GRACE_S = 10 };

struct launch {
	char *const *argv;      /* NULL-terminated; argv[0] as execvp takes it */
	char *const *env;       /* "NAME=VALUE", NULL-terminated, put into its environment; "NAME" alone is taken out of it. May be NULL */
	const char *log;        /* its standard output and error go to this file, and it has no standard input; NULL = it has ours */
	int64_t term_after_ns;  /* this long after its start it gets SIGTERM, and SIGKILL LAUNCH_GRACE_S later; 0 = never */
	void *context;
	/* Its process exists and waits; the program starts when this returns. May be NULL. */
	void (*ready)(void *context, pid_t pid);
	/* Called every tick_ns while it runs. May be NULL. */
	void (*tick)(void *context, pid_t pid);
	int64_t tick_ns;
	/* This one is not handed on when it comes to us, but told; 0 = none, else one of those that are handed on. */
	int own_signal;
	void (*signalled)(void *context);
};

struct launched {
	int wait_status;        /* of waitpid */
	bool timed_out;         /* it was sent SIGTERM because of term_after_ns */
	bool interrupted;       /* SIGINT, SIGTERM, SIGHUP or SIGQUIT came to us while it ran */
};

/* -1 when it could not be started (ERR_IO); r->wait_status is then what a shell gives: 127 not found, 126 not to be executed. */
int launch_run(const struct launch *l, struct launched *r, struct err *e);

/* Runs a program without input and takes what it prints, at most LAUNCH_OUTPUT bytes, on both streams. It is killed after `limit_ns`. ERR_IO. */
enum { LAUNCH_OUTPUT = 1 << 20 };
int launch_capture(char *const *argv, int64_t limit_ns, struct buf *out, int *wait_status, struct err *e);

/* What a shell makes of a wait status: the exit status, or 128 and the signal's number. */
int launch_status(int wait_status);
/* Ends this process as that one ended: by the same signal (without a core file), or with its exit status. */
void launch_end_like(int wait_status) __attribute__((noreturn));

int64_t launch_now_ns(void); /* CLOCK_MONOTONIC */

#endif
