#include "record/ask.h"

#include "base/folder.h"
#include "base/mem.h"
#include "base/sort.h"
#include "record/ask_talk.h"
#include "record/launch.h"
#include "record/proc.h"

#include "opscope/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A process gives a client up that asks for nothing in ASK_PATIENCE_S: requests must be sent within LINGER_NS of the first greeting, whoever else is silent. */
enum { LINGER_NS = 1000000000, STRANGERS_NS = 300000000 };
#define ASK_ANSWER_NS (5 * LAUNCH_S)

/* --- the folder for sockets ------------------------------------------------------------------------------------- */

static bool ask_is_private(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 077) == 0;
}

/* The n-th place for the folder, from 0; false = there are no more places. */
static bool ask_place(int n, struct buf *path)
{
	const char *given = getenv("OPSCOPE_ASK"), *runtime = getenv("XDG_RUNTIME_DIR");
	buf_clear(path);
	if (given && *given) {
		buf_cstr(path, n ? "" : given);
	} else {
		n += !(runtime && *runtime == '/');
		if (n == 0)
			buf_printf(path, "%s/opscope", runtime);
		else if (n == 1)
			buf_printf(path, "/tmp/opscope-%u", (unsigned)geteuid());
	}
	bool is = path->n > 0;
	buf_end_text(path);
	return is;
}

/* The program may change its working directory. */
static void ask_make_absolute(struct buf *path)
{
	char *real = realpath(path->p, NULL);
	if (real) {
		buf_clear(path);
		buf_cstr(path, real);
		buf_end_text(path);
	}
	free(real);
}

int ask_folder(struct buf *path, struct err *e)
{
	for (int n = 0; ask_place(n, path); n++) {
		mkdir(path->p, 0700);
		if (ask_is_private(path->p)) {
			ask_make_absolute(path);
			return 0;
		}
		err_set(e, ERR_IO, "%s: the folder for sockets must be yours and closed to others (mode 0700); OPSCOPE_ASK names another one", path->p);
	}
	return -1;
}

/* --- who listens ------------------------------------------------------------------------------------------------ */

void ask_release(struct ask_group *g)
{
	for (unsigned i = 0; i < g->n; i++)
		ask_forget(&g->v[i]);
	mem_free(g->v);
	*g = (struct ask_group){0};
}

static int ask_try(struct ask_group *g, const char *path, int folder, const char *name)
{
	struct ask_process p = {.fd = -1, .pid = ask_named(name), .rank = -1};
	if (ask_join(&p, folder, name) < 0)
		return -1;
	buf_printf(&p.socket, "%s/%s", path, name);
	buf_end_text(&p.socket);
	MEM_PUSH(g->v, g->n, g->cap, p);
	return 0;
}

static void ask_try_all(struct ask_group *g)
{
	struct buf path = {0};
	const char *name;
	for (int n = 0; ask_place(n, &path); n++) {
		struct folder f;
		int folder = ask_is_private(path.p) ? open(path.p, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
		if (folder < 0)
			continue;
		folder_open(&f, path.p);
		while ((name = folder_next(&f)))
			if (str_ends(str_from(name), STR(ASK_SUFFIX)))
				ask_try(g, path.p, folder, name);
		folder_close(&f);
		close(folder);
	}
	buf_release(&path);
}

/* What is waited for: false = p is none of those that are to be asked. */
typedef bool ask_wanted(const struct ask_process *p, const void *what);

/* Takes what the silent ones say, and forgets those that are not wanted. Returns how many are still waited for. *strangers: others that are silent, too. */
static unsigned ask_greetings(struct ask_group *g, ask_wanted *wanted, const void *what, unsigned *strangers)
{
	struct buf line = {0};
	unsigned kept = 0, awaited = 0;
	*strangers = 0;
	for (unsigned i = 0; i < g->n; i++) {
		struct ask_process *p = &g->v[i];
		bool was_silent = ask_is_silent(p);
		if (was_silent && (!ask_meet(p, &line) || (p->dir.n && wanted && !wanted(p, what)))) {
			ask_forget(p);
			continue;
		}
		awaited += ask_is_silent(p) && p->expected;
		*strangers += ask_is_silent(p) && !p->expected;
		g->v[kept++] = *p;
	}
	g->n = kept;
	buf_release(&line);
	return awaited;
}

static unsigned ask_greeters(const struct ask_group *g)
{
	unsigned n = 0;
	for (unsigned i = 0; i < g->n; i++)
		n += g->v[i].dir.n > 0;
	return n;
}

/* Waits for greetings, a moment longer where some of the processes greeted and others are silent. Afterwards g has those that greeted, and those that are silent and expected to be
 * wanted. */
static void ask_await_greetings(struct ask_group *g, ask_wanted *wanted, const void *what)
{
	unsigned strangers = 0, awaited = ask_greetings(g, wanted, what, &strangers), kept = 0;
	struct pollfd *p = mem_alloc(g->n + 1, sizeof *p);
	int64_t begin = launch_now_ns(), first = 0;
	for (int64_t now = begin; awaited + strangers && now < begin + ASK_ANSWER_NS; now = launch_now_ns()) {
		if (!first && ask_greeters(g))
			first = now;
		if (first && (now >= first + LINGER_NS || (!awaited && now >= first + STRANGERS_NS)))
			break;
		ask_poll(g, p);
		awaited = ask_greetings(g, wanted, what, &strangers);
	}
	for (unsigned i = 0; i < g->n; i++) {
		if (g->v[i].dir.n || g->v[i].expected)
			g->v[kept++] = g->v[i];
		else
			ask_forget(&g->v[i]);
	}
	g->n = kept;
	g->until_ns = begin + ASK_ANSWER_NS;
	mem_free(p);
}

/* --- which of them ---------------------------------------------------------------------------------------------- */

static void ask_keep(struct ask_group *g, ask_wanted *wanted, const void *what)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < g->n; i++) {
		if (wanted(&g->v[i], what))
			g->v[kept++] = g->v[i];
		else
			ask_forget(&g->v[i]);
	}
	g->n = kept;
}

struct ask_family {
	pid_t *pid;
	unsigned n, cap;
};

static void ask_add_relative(void *context, pid_t pid, const char *program)
{
	struct ask_family *f = context;
	(void)program;
	MEM_PUSH(f->pid, f->n, f->cap, pid);
}

static int ask_by_number(const void *x, const void *y)
{
	pid_t a = *(const pid_t *)x, b = *(const pid_t *)y;
	return COMPARE(a, b);
}

static bool ask_is_relative(const struct ask_process *p, const void *what)
{
	const struct ask_family *f = what;
	return bsearch(&p->pid, f->pid, f->n, sizeof *f->pid, ask_by_number);
}

static int ask_of_process(pid_t pid, struct ask_group *g, struct err *e)
{
	struct ask_family f = {0};
	MEM_PUSH(f.pid, f.n, f.cap, pid);
	proc_descendants(pid, ask_add_relative, &f);
	qsort(f.pid, f.n, sizeof *f.pid, ask_by_number);
	ask_try_all(g);
	ask_keep(g, ask_is_relative, &f);
	mem_free(f.pid);
	for (unsigned i = 0; i < g->n; i++)
		g->v[i].expected = true;
	ask_await_greetings(g, NULL, NULL);
	if (g->n)
		return 0;
	if (kill(pid, 0) < 0 && errno == ESRCH)
		return err_set(e, ERR_DATA, "--ask=%d: there is no such process", (int)pid);
	return err_set(e, ERR_DATA, "--ask=%d: neither this process nor a descendant listens: it was not started under `opscope record --on-demand`, or has not called "
	               "CUDA, NVTX, ITT or opscope/trace.h yet", (int)pid);
}

static bool ask_is_of_run(const struct ask_process *p, const void *what)
{
	const struct stat *run = what;
	struct stat st;
	return stat(p->dir.p, &st) == 0 && st.st_dev == run->st_dev && st.st_ino == run->st_ino;
}

/* Whether the socket's name states this run directory. */
static bool ask_names_run(const struct ask_process *p, const struct stat *run)
{
	char suffix[64];
	snprintf(suffix, sizeof suffix, ASK_RUN_FORMAT ASK_SUFFIX, (unsigned long long)run->st_dev, (unsigned long long)run->st_ino);
	return str_ends(str_from(p->socket.p), str_from(suffix));
}

static int ask_of_run(const char *dir, const struct stat *st, struct ask_group *g, struct err *e)
{
	ask_try_all(g);
	for (unsigned i = 0; i < g->n; i++)
		g->v[i].expected = ask_names_run(&g->v[i], st);
	ask_await_greetings(g, ask_is_of_run, st);
	return g->n ? 0 : err_set(e, ERR_DATA, "--ask=%s: no process on this machine records on demand into this directory: it was not started under `opscope record --on-demand -o %s`, "
	                          "has ended, or has not called CUDA, NVTX, ITT or opscope/trace.h yet", dir, dir);
}

static int ask_of_socket(const char *path, struct ask_group *g, struct err *e)
{
	const char *slash = strrchr(path, '/');
	struct buf dir = {0};
	buf_put(&dir, path, slash ? (size_t)(slash - path) + 1 : 0);
	buf_cstr(&dir, slash ? "" : ".");
	buf_end_text(&dir);
	int folder = open(dir.p, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = folder < 0 ? -1 : ask_try(g, dir.p, folder, slash ? slash + 1 : path), why = errno;
	if (folder >= 0)
		close(folder);
	buf_release(&dir);
	if (rc < 0)
		return err_set(e, ERR_IO, "--ask=%s: %s", path, why == ECONNREFUSED ? "nobody listens there: the process has ended" : why == EPERM ? "the process is another user's" : strerror(why));
	ask_await_greetings(g, NULL, NULL);
	return g->n ? 0 : err_set(e, ERR_DATA, "--ask=%s: the process that listens there does not answer as opscope does", path);
}

static int ask_by_pid(const void *x, const void *y)
{
	pid_t a = ((const struct ask_process *)x)->pid, b = ((const struct ask_process *)y)->pid;
	return COMPARE(a, b);
}

/* All must record into one directory, and one of them must have said which. */
static int ask_check_directory(const char *what, struct ask_group *g, struct err *e)
{
	for (unsigned i = 0; i < g->n; i++) {
		const struct buf *dir = &g->v[i].dir;
		if (dir->n && !g->dir)
			g->dir = dir->p;
		else if (dir->n && strcmp(dir->p, g->dir))
			return err_set(e, ERR_DATA, "--ask=%s: these processes are of several runs (%s, %s): the directory of one run, or one process, was expected", what, g->dir, dir->p);
	}
	return g->dir ? 0 : err_set(e, ERR_DATA, "--ask=%s: process %d listens, but " ASK_NO_ANSWER, what, (int)g->v[0].pid);
}

int ask_find(const char *what, struct ask_group *g, struct err *e)
{
	struct stat st;
	int64_t pid;
	int rc;
	*g = (struct ask_group){0};
	if (str_to_i64(str_from(what), &pid) && pid > 0 && pid < INT32_MAX)
		rc = ask_of_process((pid_t)pid, g, e);
	else if (stat(what, &st) < 0)
		rc = err_set(e, ERR_IO, "--ask=%s: %s; the number of a process, a run directory or a socket was expected", what, strerror(errno));
	else if (S_ISSOCK(st.st_mode))
		rc = ask_of_socket(what, g, e);
	else if (S_ISDIR(st.st_mode))
		rc = ask_of_run(what, &st, g, e);
	else
		rc = err_set(e, ERR_DATA, "--ask=%s: the number of a process, a run directory or a socket was expected", what);
	if (g->n)
		qsort(g->v, g->n, sizeof *g->v, ask_by_pid);
	if (rc == 0)
		rc = ask_check_directory(what, g, e);
	if (rc < 0)
		ask_release(g);
	return rc;
}
