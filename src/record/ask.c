#include "record/ask.h"

#include "base/folder.h"
#include "base/mem.h"
#include "base/now.h"
#include "base/saturate.h"
#include "base/sort.h"
#include "record/launch.h"
#include "record/proc.h"

#include "opscope/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { ASK_MODE = 0700, ASK_NUMBERS_MOST = 100000, GREETING_MS = 5000, TOGETHER_NS = 300000000, ROUND_MS = 100, PATIENCE_NS_S = 10 };

/* --- the folder for sockets ------------------------------------------------------------------------------------- */

static bool ask_is_private(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 077) == 0;
}

/* The n-th place for it; false = there are no more. */
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

/* The program may go to another folder. */
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
		mkdir(path->p, ASK_MODE);
		if (ask_is_private(path->p)) {
			ask_make_absolute(path);
			return 0;
		}
		err_set(e, ERR_IO, "%s: for sockets a folder was expected that is yours and closed to others (mode 0700); OPSCOPE_ASK names another one", path->p);
	}
	return -1;
}

/* --- who listens ------------------------------------------------------------------------------------------------ */

static void ask_drop(struct ask_process *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

static void ask_forget(struct ask_process *p)
{
	ask_drop(p);
	buf_release(&p->dir);
	buf_release(&p->heard);
	buf_release(&p->text);
}

void ask_release(struct ask_group *g)
{
	for (unsigned i = 0; i < g->n; i++)
		ask_forget(&g->v[i]);
	mem_free(g->v);
	*g = (struct ask_group){0};
}

/* By the folder's descriptor, since the path of a socket has 107 bytes at most. -1 with errno. */
static int ask_connect(int folder, const char *name)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	if ((size_t)snprintf(to.sun_path, sizeof to.sun_path, "/proc/self/fd/%d/%s", folder, name) >= sizeof to.sun_path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct timeval patience = {.tv_sec = GREETING_MS / 1000}; /* where many others wait */
	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) == 0)
		return fd;
	int why = errno;
	if (fd >= 0)
		close(fd);
	errno = why;
	return -1;
}

/* Who listens there; -1 when that is another user, who could tell us anything. */
static pid_t ask_peer(int fd)
{
	struct ucred who;
	socklen_t n = sizeof who;
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && who.uid == geteuid() ? who.pid : -1;
}

/* What a process that was killed has left. */
static void ask_sweep(int folder, const char *name)
{
	struct str number = str_from(name), pid;
	int64_t v;
	if (str_split(&number, '-', &pid) && str_to_i64(pid, &v) && v > 0 && v < INT32_MAX && kill((pid_t)v, 0) < 0 && errno == ESRCH)
		unlinkat(folder, name, 0);
}

static int ask_try(struct ask_group *g, int folder, const char *name)
{
	int fd = ask_connect(folder, name);
	if (fd < 0) {
		int why = errno;
		if (why == ECONNREFUSED)
			ask_sweep(folder, name);
		return errno = why, -1;
	}
	pid_t pid = ask_peer(fd);
	if (pid < 0) {
		close(fd);
		return errno = EPERM, -1;
	}
	MEM_PUSH(g->v, g->n, g->cap, (struct ask_process){.fd = fd, .pid = pid, .rank = -1});
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
				ask_try(g, folder, name);
		folder_close(&f);
		close(folder);
	}
	buf_release(&path);
}

/* --- lines ------------------------------------------------------------------------------------------------------ */

/* What came is added to p->heard; false: nothing more will come. */
static bool ask_hear(struct ask_process *p)
{
	char piece[4096];
	ssize_t n;
	while ((n = recv(p->fd, piece, sizeof piece, MSG_DONTWAIT)) > 0 && p->heard.n <= ASK_ANSWER_MOST)
		buf_put(&p->heard, piece, (size_t)n);
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* The first line is taken off; false = there is none. */
static bool ask_take_line(struct ask_process *p, struct buf *line)
{
	const char *end = p->heard.n ? memchr(p->heard.p, '\n', p->heard.n) : NULL;
	if (!end)
		return false;
	size_t n = (size_t)(end - p->heard.p);
	buf_clear(line);
	buf_put(line, p->heard.p, n);
	buf_end_text(line);
	memmove(p->heard.p, end + 1, p->heard.n - n - 1);
	p->heard.n -= n + 1;
	return true;
}

static bool ask_number(struct str *s, struct str key, int64_t *v)
{
	struct str word;
	if (!str_skip(s, key))
		return false;
	str_split(s, ' ', &word);
	return str_to_i64(word, v);
}

/* Whether it is one of ask.h. */
static bool ask_greeted(struct ask_process *p, const struct buf *line)
{
	struct str s = str_from(line->p), state;
	int64_t pid;
	if (!str_skip(&s, STR(ASK_GREETING)) || !ask_number(&s, STR("pid="), &pid) || !ask_number(&s, STR("rank="), &p->rank) || !str_skip(&s, STR("state=")))
		return false;
	str_split(&s, ' ', &state);
	if (!str_skip(&s, STR("dir=")) || !s.n || s.p[0] != '/')
		return false;
	buf_put(&p->dir, s.p, s.n);
	buf_end_text(&p->dir);
	return true;
}

/* Those that greet in time stay. */
static void ask_await_greetings(struct ask_group *g)
{
	struct buf line = {0};
	struct pollfd *p = mem_alloc(g->n + 1, sizeof *p);
	unsigned silent = g->n, kept = 0;
	for (int64_t end = launch_now_ns() + (int64_t)GREETING_MS * 1000000; silent && launch_now_ns() < end;) {
		for (unsigned i = 0; i < g->n; i++)
			p[i] = (struct pollfd){.fd = g->v[i].dir.n ? -1 : g->v[i].fd, .events = POLLIN};
		poll(p, g->n, ROUND_MS);
		silent = 0;
		for (unsigned i = 0; i < g->n; i++) {
			struct ask_process *q = &g->v[i];
			if (q->fd < 0 || q->dir.n)
				continue;
			bool more = ask_hear(q);
			if (ask_take_line(q, &line) ? !ask_greeted(q, &line) : !more || q->heard.n > ASK_ANSWER_MOST)
				ask_drop(q);
			silent += q->fd >= 0 && !q->dir.n;
		}
	}
	for (unsigned i = 0; i < g->n; i++) {
		if (g->v[i].fd >= 0 && g->v[i].dir.n)
			g->v[kept++] = g->v[i];
		else
			ask_forget(&g->v[i]);
	}
	g->n = kept;
	mem_free(p);
	buf_release(&line);
}

/* --- which of them ---------------------------------------------------------------------------------------------- */

static void ask_keep(struct ask_group *g, bool (*wanted)(const struct ask_process *p, const void *what), const void *what)
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
	ask_await_greetings(g);
	if (g->n)
		return 0;
	if (kill(pid, 0) < 0 && errno == ESRCH)
		return err_set(e, ERR_DATA, "--ask=%d: there is no such process", (int)pid);
	return err_set(e, ERR_DATA, "--ask=%d: neither this process nor one that it started listens: it was not started under `opscope record --on-demand`, or has not called "
	               "CUDA, NVTX, ITT or opscope/trace.h yet", (int)pid);
}

static bool ask_is_of_run(const struct ask_process *p, const void *what)
{
	const struct stat *run = what;
	struct stat st;
	return stat(p->dir.p, &st) == 0 && st.st_dev == run->st_dev && st.st_ino == run->st_ino;
}

static int ask_of_run(const char *dir, const struct stat *st, struct ask_group *g, struct err *e)
{
	ask_try_all(g);
	ask_await_greetings(g);
	ask_keep(g, ask_is_of_run, st);
	return g->n ? 0 : err_set(e, ERR_DATA, "--ask=%s: no process on this machine records on demand into this directory: none was started under `opscope record --on-demand -o %s`, "
	                          "it has ended, or has not called CUDA, NVTX, ITT or opscope/trace.h yet", dir, dir);
}

static int ask_of_socket(const char *path, struct ask_group *g, struct err *e)
{
	const char *slash = strrchr(path, '/');
	struct buf dir = {0};
	buf_put(&dir, path, slash ? (size_t)(slash - path) + 1 : 0);
	buf_cstr(&dir, slash ? "" : ".");
	buf_end_text(&dir);
	int folder = open(dir.p, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = folder < 0 ? -1 : ask_try(g, folder, slash ? slash + 1 : path), why = errno;
	if (folder >= 0)
		close(folder);
	buf_release(&dir);
	if (rc < 0)
		return err_set(e, ERR_IO, "--ask=%s: %s", path, why == ECONNREFUSED ? "nobody listens there: the process has ended" : why == EPERM ? "another user's" : strerror(why));
	ask_await_greetings(g);
	return g->n ? 0 : err_set(e, ERR_DATA, "--ask=%s: what listens there does not answer as opscope would", path);
}

static int ask_by_pid(const void *x, const void *y)
{
	pid_t a = ((const struct ask_process *)x)->pid, b = ((const struct ask_process *)y)->pid;
	return COMPARE(a, b);
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
	for (unsigned i = 1; rc == 0 && i < g->n; i++)
		if (!str_eq(buf_view(&g->v[i].dir), buf_view(&g->v[0].dir)))
			rc = err_set(e, ERR_DATA, "--ask=%s: these processes are of several runs (%s, %s): the directory of one, or one process was expected", what, g->v[0].dir.p, g->v[i].dir.p);
	if (rc < 0)
		ask_release(g);
	return rc;
}

/* --- recording -------------------------------------------------------------------------------------------------- */

static bool ask_folder_is_used(const char *path)
{
	struct folder f;
	const char *name;
	bool used = false;
	folder_open(&f, path);
	while (!used && (name = folder_next(&f)))
		used = name[0] != '.';
	folder_close(&f);
	return used;
}

int ask_make_folder(const struct ask_group *g, const char *name, struct buf *path, bool *made, struct err *e)
{
	const char *dir = g->v[0].dir.p;
	for (int i = 1; i <= ASK_NUMBERS_MOST; i++) {
		buf_clear(path);
		if (name)
			buf_printf(path, "%s/%s", dir, name);
		else
			buf_printf(path, "%s/asked-%d", dir, i);
		buf_end_text(path);
		*made = mkdir(path->p, ASK_MODE) == 0;
		if (*made)
			return 0;
		if (errno != EEXIST)
			return err_set(e, ERR_IO, "cannot make the folder %s for the recording: %s%s", path->p, strerror(errno),
			               errno == ENOENT ? "; of a program in a container ask inside it" : "");
		if (name && ask_folder_is_used(path->p))
			return err_set(e, ERR_DATA, "%s: there are files already: --output=NAME chooses another name", path->p);
		if (name)
			return 0;
	}
	return err_set(e, ERR_LIMIT, "%s: there are %d recordings already", dir, ASK_NUMBERS_MOST);
}

static void ask_end_with(struct ask_process *p, enum ask_outcome outcome, struct str text)
{
	p->outcome = outcome;
	buf_clear(&p->text);
	buf_put(&p->text, text.p, text.n);
	buf_end_text(&p->text);
	ask_drop(p);
}

static void ask_take(struct ask_process *p, const struct buf *line)
{
	struct str s = str_from(line->p);
	if (str_eqc(s, "begun"))
		p->begun = true;
	else if (str_skip(&s, STR("error ")))
		ask_end_with(p, ASK_FAILED, s);
	else if (str_skip(&s, STR("done ")) && ask_number(&s, STR("steps="), &p->steps) && ask_number(&s, STR("ns="), &p->ns) && str_skip(&s, STR("file=")))
		ask_end_with(p, ASK_DONE, s);
	else
		ask_end_with(p, ASK_FAILED, STR("its answer is none that this version of opscope knows"));
}

static void ask_listen_to(struct ask_process *p, struct buf *line)
{
	bool more = ask_hear(p);
	while (p->fd >= 0 && ask_take_line(p, line))
		ask_take(p, line);
	if (p->fd < 0)
		return;
	if (p->heard.n > ASK_ANSWER_MOST)
		ask_end_with(p, ASK_FAILED, STR("its answer is too long"));
	else if (!more && p->begun)
		ask_end_with(p, ASK_FAILED, STR("the process ended while it recorded: what came until then is in its file"));
	else if (!more)
		ask_end_with(p, ASK_FAILED, STR("the process ended, or listens no more"));
}

static void ask_send(struct ask_group *g, const struct ask_request *r, const char *folder)
{
	struct buf line = {0};
	int64_t start = r->start_ns;
	if (!start && (r->delay_ns || g->n > 1))
		start = now_realtime_ns() + (g->n > 1 ? TOGETHER_NS : 0);
	if (start)
		add_saturated(&start, r->delay_ns);
	buf_printf(&line, "record name=%s start=%lld duration=%lld steps=%lld key=%s\n", strrchr(folder, '/') + 1, (long long)start, (long long)r->duration_ns,
	           (long long)r->steps, r->key_range ? r->key_range : "");
	for (unsigned i = 0; i < g->n; i++)
		if (send(g->v[i].fd, line.p, line.n, MSG_NOSIGNAL) != (ssize_t)line.n)
			ask_end_with(&g->v[i], ASK_FAILED, STR("the process ended, or listens no more"));
	buf_release(&line);
}

static bool ask_any(const struct ask_group *g, bool to_begin)
{
	bool any = false;
	for (unsigned i = 0; i < g->n; i++)
		any |= g->v[i].fd >= 0 && !(to_begin && g->v[i].begun);
	return any;
}

static void ask_stop(struct ask_group *g)
{
	for (unsigned i = 0; i < g->n; i++)
		if (g->v[i].fd >= 0)
			shutdown(g->v[i].fd, SHUT_WR);
}

void ask_record(struct ask_group *g, const struct ask_request *r, const char *folder, const volatile sig_atomic_t *stop, void (*patience)(const struct ask_group *g))
{
	struct pollfd *p = mem_alloc(g->n + 1, sizeof *p);
	struct buf line = {0};
	int64_t impatient = launch_now_ns() + PATIENCE_NS_S * LAUNCH_S;
	bool stopped = false;
	ask_send(g, r, folder);
	add_saturated(&impatient, r->delay_ns);
	while (ask_any(g, false)) {
		for (unsigned i = 0; i < g->n; i++)
			p[i] = (struct pollfd){.fd = g->v[i].fd, .events = POLLIN};
		poll(p, g->n, ROUND_MS);
		for (unsigned i = 0; i < g->n; i++)
			if (g->v[i].fd >= 0 && p[i].revents)
				ask_listen_to(&g->v[i], &line);
		if (stop && *stop && !stopped) {
			ask_stop(g);
			stopped = true;
		}
		if (patience && r->steps && launch_now_ns() > impatient && ask_any(g, true)) {
			patience(g);
			patience = NULL;
		}
	}
	buf_release(&line);
	mem_free(p);
}
