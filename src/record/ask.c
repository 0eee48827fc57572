#include "record/ask.h"

#include "base/folder.h"
#include "base/mem.h"
#include "base/now.h"
#include "base/saturate.h"
#include "base/search.h"
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

/* A process gives a client up that asks for nothing in ASK_PATIENCE_S: requests must be sent within LINGER_NS of the first greeting, whoever else is silent. */
enum { ASK_MODE = 0700, ASK_NUMBERS_MOST = 100000, TOGETHER_NS = 300000000, LINGER_NS = 1000000000, STRANGERS_NS = 300000000, ROUND_MS = 100, QUICK_MS = 20, PATIENCE_S = 10, OVERDUE_S = 30, STOPPED_S = 10 };
#define ASK_ANSWER_NS (5 * LAUNCH_S)
#define ASK_NO_ANSWER "does not answer within 5 s: it is stopped, or hangs"

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
		mkdir(path->p, ASK_MODE);
		if (ask_is_private(path->p)) {
			ask_make_absolute(path);
			return 0;
		}
		err_set(e, ERR_IO, "%s: the folder for sockets must be yours and closed to others (mode 0700); OPSCOPE_ASK names another one", path->p);
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
	buf_release(&p->socket);
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

/* Goes by the folder's descriptor, since a socket's path has 107 bytes at most. Does not block. -1 with errno; EAGAIN: many others wait for the process. */
static int ask_connect(int folder, const char *name)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	if ((size_t)snprintf(to.sun_path, sizeof to.sun_path, "/proc/self/fd/%d/%s", folder, name) >= sizeof to.sun_path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) == 0)
		return fd;
	int why = errno;
	if (fd >= 0)
		close(fd);
	errno = why;
	return -1;
}

/* The process that listens; -1 where it is another user's, who could tell us anything. */
static pid_t ask_peer(int fd)
{
	struct ucred who;
	socklen_t n = sizeof who;
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && who.uid == geteuid() ? who.pid : -1;
}

/* The process that a socket's name states; -1 = none. */
static pid_t ask_named(const char *name)
{
	struct str number = str_from(name), pid;
	int64_t v;
	return str_split(&number, '-', &pid) && str_to_i64(pid, &v) && v > 0 && v < INT32_MAX ? (pid_t)v : -1;
}

/* Removes the socket of a process that was killed. */
static void ask_sweep(int folder, const char *name)
{
	pid_t pid = ask_named(name);
	if (pid > 0 && kill(pid, 0) < 0 && errno == ESRCH)
		unlinkat(folder, name, 0);
}

/* Connects p, or leaves p->fd at -1 where others wait for the process. -1 with errno: nobody is to be asked there. */
static int ask_join(struct ask_process *p, int folder, const char *name)
{
	p->fd = ask_connect(folder, name);
	if (p->fd < 0) {
		int why = errno;
		if (why == ECONNREFUSED)
			ask_sweep(folder, name);
		errno = why;
		return why == EAGAIN ? 0 : -1;
	}
	pid_t pid = ask_peer(p->fd);
	if (pid < 0) {
		ask_drop(p);
		errno = EPERM;
		return -1;
	}
	p->pid = pid;
	return 0;
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

/* Tries again to connect. False: nobody is to be asked there. */
static bool ask_try_again(struct ask_process *p)
{
	char *slash = strrchr(p->socket.p, '/');
	*slash = 0;
	int folder = open(p->socket.p, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool fine = folder >= 0 && ask_join(p, folder, slash + 1) == 0;
	*slash = '/';
	if (folder >= 0)
		close(folder);
	return fine;
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

/* --- lines ------------------------------------------------------------------------------------------------------ */

/* Adds what has come to p->heard; false: nothing more will come. */
static bool ask_hear(struct ask_process *p)
{
	char piece[4096];
	ssize_t n;
	while ((n = recv(p->fd, piece, sizeof piece, MSG_DONTWAIT)) > 0 && p->heard.n <= ASK_ANSWER_MOST)
		buf_put(&p->heard, piece, (size_t)n);
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Takes the first line off p->heard; false = there is no whole line. */
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

/* Whether the line is a greeting of ask.h. */
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

/* What is waited for: false = p is none of those that are to be asked. */
typedef bool ask_wanted(const struct ask_process *p, const void *what);

static bool ask_is_silent(const struct ask_process *p) { return p->outcome == ASK_WAITS && !p->dir.n; }

/* Hears whether a silent process greets; false: it says something else, or is gone. */
static bool ask_meet(struct ask_process *p, struct buf *line)
{
	if (p->fd < 0)
		return ask_try_again(p);
	bool more = ask_hear(p);
	return ask_take_line(p, line) ? ask_greeted(p, line) : more && p->heard.n <= ASK_ANSWER_MOST;
}

/* Waits for a word of any process, and a moment where one is yet to be connected. */
static void ask_poll(const struct ask_group *g, struct pollfd *p)
{
	bool connecting = false;
	for (unsigned i = 0; i < g->n; i++) {
		p[i] = (struct pollfd){.fd = g->v[i].fd, .events = POLLIN};
		connecting |= g->v[i].fd < 0 && ask_is_silent(&g->v[i]);
	}
	poll(p, g->n, connecting ? QUICK_MS : ROUND_MS);
}

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
	const char *dir = g->dir;
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
			               errno == ENOENT ? "; if the program runs in a container, ask inside the container" : "");
		if (name && ask_folder_is_used(path->p))
			return err_set(e, ERR_DATA, "%s: the folder has files already; --output=NAME chooses another name", path->p);
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

/* Whether `path` is a file in the folder. */
static bool ask_is_file_of(const char *path, const char *folder)
{
	struct stat file, in, asked;
	struct buf parent = {0};
	const char *slash = strrchr(path, '/');
	if (!slash)
		return false;
	buf_put(&parent, path, (size_t)(slash - path) + 1);
	buf_end_text(&parent);
	bool is = lstat(path, &file) == 0 && S_ISREG(file.st_mode) && stat(parent.p, &in) == 0 && stat(folder, &asked) == 0 && in.st_dev == asked.st_dev && in.st_ino == asked.st_ino;
	buf_release(&parent);
	return is;
}

/* Ends with what a process says that it has recorded, as far as that can be. */
static void ask_take_done(struct ask_process *p, struct str file, const char *folder)
{
	ask_end_with(p, ASK_DONE, file);
	if (p->steps < 0 || p->ns < 0)
		ask_end_with(p, ASK_FAILED, STR("the process says that it has recorded less than nothing: the same version of opscope was expected on both sides"));
	else if (!ask_is_file_of(p->text.p, folder))
		ask_end_with(p, ASK_FAILED, STR("the process says that it has recorded, but its file is not in the folder of the recording"));
}

static void ask_take(struct ask_process *p, const struct buf *line, const char *folder)
{
	struct str s = str_from(line->p);
	if (str_eqc(s, "begun"))
		p->begun = true;
	else if (str_skip(&s, STR("error ")))
		ask_end_with(p, ASK_FAILED, s);
	else if (str_skip(&s, STR("done ")) && ask_number(&s, STR("steps="), &p->steps) && ask_number(&s, STR("ns="), &p->ns) && str_skip(&s, STR("file=")))
		ask_take_done(p, s, folder);
	else
		ask_end_with(p, ASK_FAILED, STR("this version of opscope does not know the answer of the process"));
}

static void ask_listen_to(struct ask_process *p, const char *folder, struct buf *line)
{
	bool more = ask_hear(p);
	while (p->fd >= 0 && ask_take_line(p, line))
		ask_take(p, line, folder);
	if (p->fd < 0)
		return;
	if (p->heard.n > ASK_ANSWER_MOST)
		ask_end_with(p, ASK_FAILED, STR("the answer of the process is too long"));
	else if (!more && p->begun)
		ask_end_with(p, ASK_FAILED, STR("the process ended while it recorded: its file has what was recorded until then"));
	else if (!more)
		ask_end_with(p, ASK_FAILED, STR("the process ended, or listens no more"));
}

/* What every process is told. */
struct ask_order {
	const char *folder;      /* of the recording */
	struct buf line;
	int64_t begins_ns;       /* CLOCK_MONOTONIC: when the recordings are to begin */
};

static void ask_make_order(struct ask_order *o, const struct ask_group *g, const struct ask_request *r, const char *folder)
{
	int64_t start = r->start_ns, now = now_realtime_ns();
	if (!start && (r->delay_ns || g->n > 1))
		start = now + (g->n > 1 ? TOGETHER_NS : 0);
	if (start)
		add_saturated(&start, r->delay_ns);
	*o = (struct ask_order){.folder = folder, .begins_ns = launch_now_ns()};
	add_saturated(&o->begins_ns, start > now ? start - now : 0);
	buf_printf(&o->line, "record name=%s start=%lld duration=%lld steps=%lld key=%s\n", strrchr(folder, '/') + 1, (long long)start, (long long)r->duration_ns,
	           (long long)r->steps, r->key_range ? r->key_range : "");
}

/* A process that would not hear any more may have said why. */
static void ask_send(struct ask_process *p, const struct ask_order *o)
{
	struct buf line = {0};
	if (send(p->fd, o->line.p, o->line.n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)o->line.n) {
		ask_listen_to(p, o->folder, &line);
		if (p->fd >= 0)
			ask_end_with(p, ASK_FAILED, STR("the process ended, or listens no more"));
	}
	buf_release(&line);
}

static bool ask_any(const struct ask_group *g)
{
	return ANY_WHERE(i, 0, g->n, g->v[i].outcome == ASK_WAITS);
}

/* What becomes of a process that has been asked and says nothing. */
struct ask_watch {
	int64_t late_ns;    /* CLOCK_MONOTONIC: it should have begun by then */
	int64_t over_ns;    /* it should have ended; INT64_MAX = it may go on */
	int64_t stopped_ns; /* it was told to end; 0 = it was not */
	void (*patience)(const struct ask_process *p, const struct ask_request *r);
};

static void ask_watch(struct ask_process *p, const struct ask_watch *w, const struct ask_request *r)
{
	int64_t now = launch_now_ns(), late = p->begun ? w->over_ns : w->late_ns, given_up = w->over_ns;
	add_saturated(&late, PATIENCE_S * LAUNCH_S);
	add_saturated(&given_up, OVERDUE_S * LAUNCH_S);
	if (w->stopped_ns && now > w->stopped_ns + STOPPED_S * LAUNCH_S) {
		ask_end_with(p, ASK_FAILED, STR("does not answer: it has not ended the recording within 10 s after it was told to"));
	} else if (now > given_up) {
		ask_end_with(p, ASK_FAILED, STR("does not answer: the recording should have ended 30 s ago; the process is stopped, hangs, or is in a long step"));
	} else if (w->patience && !p->told && !w->stopped_ns && now > late) {
		p->told = true;
		w->patience(p, r);
	}
}

/* One of those that had not greeted when the others were asked. */
static void ask_late(struct ask_group *g, struct ask_process *p, const struct ask_order *o, bool stopped)
{
	struct buf line = {0};
	if (!ask_meet(p, &line))
		ask_end_with(p, ASK_FAILED, STR("the process ended, or does not answer as opscope does"));
	else if (p->dir.n && strcmp(p->dir.p, g->dir))
		ask_end_with(p, ASK_FAILED, STR("it records into another directory"));
	else if (p->dir.n && !stopped)
		ask_send(p, o);
	else if (stopped)
		ask_end_with(p, ASK_FAILED, STR("was not asked: it had not answered when the recording was ended"));
	else if (launch_now_ns() > g->until_ns)
		ask_end_with(p, ASK_FAILED, STR(ASK_NO_ANSWER));
	buf_release(&line);
}

static void ask_stop(struct ask_group *g)
{
	for (unsigned i = 0; i < g->n; i++)
		if (g->v[i].fd >= 0)
			shutdown(g->v[i].fd, SHUT_WR);
}

void ask_record(struct ask_group *g, const struct ask_request *r, const char *folder, const volatile sig_atomic_t *stop,
                void (*patience)(const struct ask_process *p, const struct ask_request *r))
{
	struct pollfd *p = mem_alloc(g->n + 1, sizeof *p);
	struct buf line = {0};
	struct ask_order o;
	ask_make_order(&o, g, r, folder);
	struct ask_watch w = {.late_ns = o.begins_ns, .over_ns = r->duration_ns ? o.begins_ns : INT64_MAX, .patience = patience};
	add_saturated(&w.over_ns, r->duration_ns);
	for (unsigned i = 0; i < g->n; i++)
		if (g->v[i].dir.n)
			ask_send(&g->v[i], &o);
	while (ask_any(g)) {
		ask_poll(g, p);
		for (unsigned i = 0; i < g->n; i++) {
			struct ask_process *q = &g->v[i];
			if (ask_is_silent(q))
				ask_late(g, q, &o, w.stopped_ns > 0);
			else if (q->fd >= 0 && p[i].revents)
				ask_listen_to(q, folder, &line);
			if (q->outcome == ASK_WAITS && q->dir.n)
				ask_watch(q, &w, r);
		}
		if (stop && *stop && !w.stopped_ns) {
			ask_stop(g);
			w.stopped_ns = launch_now_ns();
		}
	}
	buf_release(&o.line);
	buf_release(&line);
	mem_free(p);
}
