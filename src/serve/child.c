#include "serve/child.h"

#include "base/mem.h"
#include "base/spill.h"
#include "op/cost_call.h"
#include "serve/library.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum {
	GRACE_MS = 500,           /* a query that looks at the clock ends by itself, and says more than its end by a signal */
	LOOK_MS = 100,            /* between two looks whether the server ends */
	BYTES_MAX = 256 << 20,    /* of the query */
	PIPE_BYTES = 1 << 20,
	READ_BYTES = 1 << 20,
	EXIT_MEMORY = 99,         /* of a child that had none left */
};

/* What the child writes; the file name and the body follow. Static texts are at the same place in both processes. */
struct serve_child_head {
	int rc;
	struct response out;
	struct err e;
	size_t name_bytes, body_bytes;
};

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

/* Another thread may be inside SQLite, reading a file, when this one forks: what SQLite's threads share is whole only while nobody holds these. */
static const int first_mutex = 2 /* SQLITE_MUTEX_STATIC_MAIN, or _MASTER in older headers */, last_mutex = SQLITE_MUTEX_STATIC_VFS3;

static void leave_sqlite(int below)
{
	for (int id = below - 1; id >= first_mutex; id--)
		sqlite3_mutex_leave(sqlite3_mutex_alloc(id));
}

/* All or none at a time: whoever holds one waits for no one here, so that any order will do. */
static void enter_sqlite(void)
{
	sqlite3_initialize();
	for (int id = first_mutex; id <= last_mutex; id++)
		if (sqlite3_mutex_try(sqlite3_mutex_alloc(id)) != SQLITE_OK) {
			leave_sqlite(id);
			sched_yield();
			id = first_mutex - 1;
		}
}

static void lower_limit(int which, rlim_t most)
{
	struct rlimit l;
	if (getrlimit(which, &l) == 0 && (l.rlim_cur == RLIM_INFINITY || l.rlim_cur > most)) {
		l.rlim_cur = most;
		setrlimit(which, &l);
	}
}

/* Bytes of address space that this process has. */
static uint64_t size_of_process(void)
{
	unsigned long long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	if (f && fscanf(f, "%llu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Reports that a query names take memory as the profile does, and what the query makes of them has its bound beside that. The sanitizers keep
 * terabytes of addresses. */
static void limit_memory(const struct request *r)
{
	uint64_t size = size_of_process();
	if (SANITIZED || !size)
		return;
	lower_limit(RLIMIT_AS, size + BYTES_MAX + profile_bytes(r->entry->profile));
}

static void close_all_but(int fd)
{
	struct rlimit l;
#ifdef SYS_close_range
	if ((fd == STDERR_FILENO + 1 || syscall(SYS_close_range, STDERR_FILENO + 1, fd - 1, 0) == 0) && syscall(SYS_close_range, fd + 1, ~0u, 0) == 0)
		return;
#endif
	int end = getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < 65536 ? (int)l.rlim_cur : 65536;
	for (int i = STDERR_FILENO + 1; i < end; i++)
		if (i != fd)
			close(i);
}

static void write_all(int fd, const void *p, size_t n)
{
	while (n) {
		ssize_t k = write(fd, p, n);
		if (k < 0 && errno != EINTR)
			_exit(EXIT_FAILURE);
		p = (const char *)p + (k > 0 ? k : 0);
		n -= k > 0 ? (size_t)k : 0;
	}
}

/* A child whose answer is awaited. */
struct child {
	pid_t pid;
	int from; /* where its answer comes from */
};

struct serve_child_running {
	const struct endpoint *k;
	const struct request *r;
	struct response *out;
	struct serve_child_head *h;
};

static void run_it(void *running)
{
	const struct serve_child_running *x = running;
	x->h->rc = x->k->run(x->r, x->out, &x->h->e);
}

/* All that the child does. Locks of the server may be held by threads that are not here: no lock is taken, and no thread started. */
static _Noreturn void answer(const struct endpoint *k, const struct request *asked, struct response *out, pid_t server, int to)
{
	struct request r = *asked;
	struct serve_child_head h = {0};
	r.alone = true;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != server)
		_exit(EXIT_FAILURE);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXCPU, SIG_DFL);
	close_all_but(to);
	lower_limit(RLIMIT_CORE, 0);
	lower_limit(RLIMIT_CPU, r.query_seconds + 2);
	limit_memory(&r);
	struct serve_child_running run = {k, &r, out, &h};
	/* Without memory the child ends here: the mem_try around the fork is the server's. */
	if (mem_try(NULL, run_it, &run) < 0)
		_exit(EXIT_MEMORY);
	h.out = *out;
	h.name_bytes = out->file_name ? strlen(out->file_name) : 0;
	h.body_bytes = h.rc < 0 ? 0 : out->body.n;
	write_all(to, &h, sizeof h);
	write_all(to, out->file_name, h.name_bytes);
	write_all(to, out->body.p, h.body_bytes);
	_exit(EXIT_SUCCESS);
}

/* NULL, or why nobody wants the answer any more. */
static const char *unwanted(const struct request *r)
{
	if (library_ends(r->library))
		return "the server is ending";
	return r->gone && r->gone(r->who) ? "the client has gone" : NULL;
}

/* Everything that the child writes until its end; NULL, or why the child must be ended before. */
static const char *serve_child_read_all(int from, const struct request *r, struct buf *got)
{
	int64_t until = now_ms() + r->query_seconds * INT64_C(1000) + GRACE_MS;
	for (;;) {
		struct pollfd p = {.fd = from, .events = POLLIN};
		int64_t left = until - now_ms();
		if (left <= 0)
			return "it took too long";
		const char *why = unwanted(r);
		if (why)
			return why;
		if (poll(&p, 1, left < LOOK_MS ? (int)left : LOOK_MS) <= 0)
			continue;
		ssize_t n = read(from, buf_room(got, READ_BYTES), READ_BYTES);
		if (n == 0)
			return NULL;
		got->n += n > 0 ? (size_t)n : 0;
	}
}

static int serve_child_refuse(const char *why, struct err *e)
{
	return err_set(e, ERR_LIMIT, "SQL: the query was ended: %s", why);
}

/* Of a child that did not say all. */
static int serve_child_explain(int status, struct response *out, struct err *e)
{
	bool killed = WIFSIGNALED(status);
	if (killed && WTERMSIG(status) == SIGXCPU)
		return serve_child_refuse("it took too long", e);
	if ((WIFEXITED(status) && WEXITSTATUS(status) == EXIT_MEMORY) || (killed && WTERMSIG(status) == SIGKILL))
		return serve_child_refuse("it took too much memory", e);
	out->status = 500;
	return err_set(e, ERR_IO, "SQL: the process of the query ended with %s %d before its answer", killed ? "signal" : "status",
	               killed ? WTERMSIG(status) : WEXITSTATUS(status));
}

static int serve_child_take(struct buf *got, const struct request *r, int status, struct response *out, struct err *e)
{
	struct serve_child_head h;
	if (got->n >= sizeof h)
		memcpy(&h, got->p, sizeof h);
	if (got->n < sizeof h || got->n != sizeof h + h.name_bytes + h.body_bytes)
		return serve_child_explain(status, out, e);
	*out = h.out;
	if (h.out.file_name)
		out->file_name = arena_str(r->arena, (struct str){got->p + sizeof h, h.name_bytes}).p;
	*e = h.e;
	got->n = h.body_bytes;
	memmove(got->p, got->p + sizeof h + h.name_bytes, got->n);
	out->body = *got;
	*got = (struct buf){0};
	return h.rc;
}

/* Its status. */
static int serve_child_wait(const struct child *c)
{
	int status = 0;
	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	spill_child_ended();
	close(c->from);
	return status;
}

/* For mem_undo_begin. */
static void serve_child_end(void *running)
{
	const struct child *c = running;
	kill(c->pid, SIGKILL);
	serve_child_wait(c);
}

/* 0, or -1 and errno. */
static int serve_child_start(const struct endpoint *k, const struct request *r, struct response *out, struct child *c)
{
	int pipe_end[2];
	pid_t server = getpid();
	if (pipe2(pipe_end, O_CLOEXEC) < 0)
		return -1;
	fcntl(pipe_end[0], F_SETPIPE_SZ, PIPE_BYTES);
	enter_sqlite();
	spill_child_begins();
	*c = (struct child){fork(), pipe_end[0]};
	int why = errno;
	leave_sqlite(last_mutex + 1);
	if (c->pid == 0)
		answer(k, r, out, server, pipe_end[1]);
	close(pipe_end[1]);
	if (c->pid > 0)
		return 0;
	spill_child_ended();
	close(pipe_end[0]);
	errno = why;
	return -1;
}

int child_run(const struct endpoint *k, const struct request *r, struct response *out, struct err *e)
{
	struct buf got = {0};
	struct child child;
	struct mem_undo undo;
	rule_find((struct str){0}, &cost_own, COST_FORWARD, NULL); /* makes the index of rules once for all children */
	/* Those who asked may have left while the query waited for its turn. */
	const char *unasked = unwanted(r);
	if (unasked)
		return serve_child_refuse(unasked, e);
	/* While nobody changes the profile. */
	struct library_turn turn;
	if (library_turn_begin(&turn, r->entry, e) < 0)
		return -1;
	int rc = k->prepare ? k->prepare(r, e) : 0;
	int started = rc == 0 ? serve_child_start(k, r, out, &child) : -1, why = errno;
	library_turn_end(&turn);
	if (rc < 0)
		return -1;
	if (started < 0) {
		out->status = 503;
		return err_set(e, ERR_LIMIT, "no process for the query could be started: %s", strerror(why));
	}
	mem_undo_begin(&undo, serve_child_end, &child);
	const char *ended = serve_child_read_all(child.from, r, &got);
	mem_undo_end(&undo);
	if (ended)
		kill(child.pid, SIGKILL);
	const int status = serve_child_wait(&child);
	rc = ended ? serve_child_refuse(ended, e) : serve_child_take(&got, r, status, out, e);
	buf_release(&got);
	return rc;
}
