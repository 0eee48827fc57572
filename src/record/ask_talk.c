#include "record/ask_talk.h"

#include "opscope/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* How long a wait lasts at most; the second where a process is yet to be connected. */
enum { ROUND_MS = 100, QUICK_MS = 20 };

/* --- connections ------------------------------------------------------------------------------------------------ */

void ask_drop(struct ask_process *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

void ask_forget(struct ask_process *p)
{
	ask_drop(p);
	buf_release(&p->socket);
	buf_release(&p->dir);
	buf_release(&p->heard);
	buf_release(&p->text);
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

pid_t ask_named(const char *name)
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

int ask_join(struct ask_process *p, int folder, const char *name)
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

/* --- lines ------------------------------------------------------------------------------------------------------ */

bool ask_hear(struct ask_process *p)
{
	char piece[4096];
	ssize_t n;
	while ((n = recv(p->fd, piece, sizeof piece, MSG_DONTWAIT)) > 0 && p->heard.n <= ASK_ANSWER_MOST)
		buf_put(&p->heard, piece, (size_t)n);
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

bool ask_take_line(struct ask_process *p, struct buf *line)
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

bool ask_number(struct str *s, struct str key, int64_t *v)
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

bool ask_is_silent(const struct ask_process *p) { return p->outcome == ASK_WAITS && !p->dir.n; }

bool ask_meet(struct ask_process *p, struct buf *line)
{
	if (p->fd < 0)
		return ask_try_again(p);
	bool more = ask_hear(p);
	return ask_take_line(p, line) ? ask_greeted(p, line) : more && p->heard.n <= ASK_ANSWER_MOST;
}

void ask_poll(const struct ask_group *g, struct pollfd *p)
{
	bool connecting = false;
	for (unsigned i = 0; i < g->n; i++) {
		p[i] = (struct pollfd){.fd = g->v[i].fd, .events = POLLIN};
		connecting |= g->v[i].fd < 0 && ask_is_silent(&g->v[i]);
	}
	poll(p, g->n, connecting ? QUICK_MS : ROUND_MS);
}
