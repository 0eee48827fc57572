/* opscope record --ask=PID|DIR|SOCKET */
#include "cli/record.h"

#include "record/ask.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t record_ask_stop;

static void record_ask_on_signal(int number)
{
	record_ask_stop = 1;
	signal(number, SIG_DFL); /* a second signal ends us */
}

static void record_ask_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void record_ask_say(const char *fmt, ...)
{
	struct err e = {.code = ERR_NONE};
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(e.msg, sizeof e.msg, fmt, ap);
	va_end(ap);
	err_prefix(&e, "record");
	cli_fail(&e, 0);
}

static void record_ask_patience(const struct ask_process *p, const struct ask_request *r)
{
	if (p->begun)
		record_ask_say("process %d: the recording should have ended ten seconds ago: the process hangs, or is in a long step; Ctrl-C ends the waiting", (int)p->pid);
	else if (r->steps)
		record_ask_say("process %d: no step has begun for ten seconds. Steps are those of opscope_step(), ranges `ProfilerStep#N`, or ranges of --key-range; Ctrl-C ends the waiting",
		               (int)p->pid);
	else
		record_ask_say("process %d: the recording has not begun for ten seconds: the process hangs, or is in a long step; Ctrl-C ends the waiting", (int)p->pid);
}

static void record_ask_tell_one(const struct ask_process *p, const struct ask_request *r)
{
	char who[64];
	int n = snprintf(who, sizeof who, "process %d", (int)p->pid);
	if (p->rank >= 0)
		snprintf(who + n, sizeof who - (size_t)n, " (rank %lld)", (long long)p->rank);
	if (p->outcome != ASK_DONE)
		record_ask_say("%s: %s", who, p->text.p);
	else if (r->steps && !p->steps)
		record_ask_say("%s: no step began in %.3f s: %s", who, (double)p->ns / 1e9, p->text.p);
	else if (r->steps)
		record_ask_say("%s: %lld of %lld steps in %.3f s: %s", who, (long long)p->steps, (long long)r->steps, (double)p->ns / 1e9, p->text.p);
	else
		record_ask_say("%s: %.3f s: %s", who, (double)p->ns / 1e9, p->text.p);
}

/* Says what became of each process. Returns the exit status. */
static int record_ask_tell(const struct ask_group *g, const struct ask_request *r)
{
	int status = EXIT_DONE;
	for (unsigned i = 0; i < g->n; i++) {
		record_ask_tell_one(&g->v[i], r);
		if (g->v[i].outcome != ASK_DONE || (r->steps && !g->v[i].steps))
			status = EXIT_INPUT;
	}
	return status;
}

static int record_ask_group(const struct record_options *o, struct ask_group *g, struct run_dir *d)
{
	const struct ask_request *r = &o->spec.asked;
	const struct record_job job = {0};
	struct record_result result = {0};
	struct sigaction on = {.sa_handler = record_ask_on_signal};
	struct err e;
	if (ask_make_folder(g, o->output, &d->path, &d->made, &e) < 0) {
		err_prefix(&e, "record");
		return cli_fail(&e, EXIT_INPUT);
	}
	sigaction(SIGINT, &on, NULL);
	sigaction(SIGTERM, &on, NULL);
	ask_record(g, r, d->path.p, &record_ask_stop, record_ask_patience);
	int status = record_ask_tell(g, r);
	if (run_dir_recordings(d->path.p)) {
		buf_put(&result.capture, d->path.p, d->path.n);
		buf_end_text(&result.capture);
		record_after(o, d, &job, &result);
	} else if (d->made) {
		rmdir(d->path.p);
	}
	record_release(&result);
	return status;
}

int record_ask(const struct record_options *o)
{
	struct ask_group g;
	struct run_dir d = {0};
	struct err e;
	if (ask_find(o->ask, &g, &e) < 0) {
		err_prefix(&e, "record");
		return cli_fail(&e, EXIT_INPUT);
	}
	int status = record_ask_group(o, &g, &d);
	run_dir_release(&d);
	ask_release(&g);
	return status;
}
