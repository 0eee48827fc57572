/* Recording on demand (include/opscope/ask.h): a thread that waits on a socket, and begins and ends captures. Clients are of the same user as the program. Whatever a client
 * says, it gets a capture in the run directory and nothing else. */
#include "control.h"
#include "cupti.h"
#include "start.h"
#include "sys.h"

#include "opscope/ask.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#define SECOND_NS INT64_C(1000000000)
enum { CONNECTIONS = 8, BACKLOG = 16, HIGH_DESCRIPTOR = 512, AHEAD_NS = 500000000, QUICK_MS = 2, IDLE_MS = 1000, WITH_CLIENTS_MS = 100 };

/* The program may close our descriptor, and get its number again for a file of its own. A descriptor is ours as long as it stands for the same socket. */
struct ask_socket {
	int fd; /* -1 = none */
	uint64_t dev, ino;
};

struct connection {
	struct ask_socket socket;
	int32_t pid;
	int64_t since_ns;
	size_t n;
	char line[ASK_LINE_MOST + 1];
};

struct ask_request {
	char name[ASK_NAME_MOST + 1], key[ASK_KEY_MOST + 1];
	int64_t start_ns, duration_ns, steps;
};

enum ask_state { NOTHING, AHEAD, RECORDING };

static struct {
	struct segment_options segment;
	char base[4000], folder[4000], dir[4100];
	char path[4100];           /* of the socket; "" = none */
	_Atomic int32_t pid;       /* the process that listens; 0 = none yet, -1 = its parent did */
	_Atomic bool leave;
	struct ask_socket listening;
	struct connection connection[CONNECTIONS];
	enum ask_state state;
	int client;                /* the connection whose request it is */
	bool told;                 /* the client was told that the recording has begun */
	bool cut;                  /* the client has hung up, or said more: the recording ends */
	struct ask_request request;
} a = {.listening = {.fd = -1}};

/* ---- descriptors ---- */

static bool ask_is_ours(const struct ask_socket *s)
{
	struct stat st;
	return s->fd >= 0 && syscall(SYS_fstat, s->fd, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino;
}

/* Takes the descriptor over, under a high number: programs may count on the next free one. False: there is none; fd is closed. */
static bool ask_adopt(struct ask_socket *s, int fd)
{
	struct stat st;
	int high = fd < 0 ? -1 : (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR);
	if (high >= 0) {
		sys_close(fd);
		fd = high;
	}
	*s = (struct ask_socket){.fd = -1};
	if (fd < 0)
		return false;
	if (syscall(SYS_fstat, fd, &st) < 0) {
		sys_close(fd);
		return false;
	}
	*s = (struct ask_socket){fd, st.st_dev, st.st_ino};
	return true;
}

static void ask_close(struct ask_socket *s)
{
	if (ask_is_ours(s))
		sys_close(s->fd);
	s->fd = -1;
}

/* ---- the socket ---- */

/* Opens the folder for sockets, which nobody else may enter; -1 = there is none. `opscope record` made it. */
static int ask_open_folder(void)
{
	struct stat st;
	int fd = sys_open(a.folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd >= 0 && syscall(SYS_fstat, fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 077) == 0)
		return fd;
	if (fd >= 0)
		sys_close(fd);
	return -1;
}

/* Goes by the folder's descriptor: a socket's path has 107 bytes at most, and the folder must be the one that was checked. */
static bool ask_bind(int fd, int folder, const char *name)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	snprintf(to.sun_path, sizeof to.sun_path, "/proc/self/fd/%d/%s", folder, name);
	return syscall(SYS_bind, fd, &to, sizeof to) == 0 && syscall(SYS_fchmodat, folder, name, 0600) == 0 && syscall(SYS_listen, fd, BACKLOG) == 0;
}

static void ask_unlink(void)
{
	if (a.path[0])
		syscall(SYS_unlinkat, AT_FDCWD, a.path, 0);
	a.path[0] = 0;
}

static void ask_listen(void)
{
	char name[80];
	struct stat run = {.st_dev = 0};
	int folder = ask_open_folder();
	if (folder < 0)
		return;
	syscall(SYS_newfstatat, AT_FDCWD, a.base, &run, 0);
	int fd = (int)syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	snprintf(name, sizeof name, "%d-%lld" ASK_RUN_FORMAT ASK_SUFFIX, (int)getpid(), (long long)now_ns(), (unsigned long long)run.st_dev, (unsigned long long)run.st_ino);
	if (ask_adopt(&a.listening, fd)) {
		ask_unlink();
		if (ask_bind(a.listening.fd, folder, name))
			snprintf(a.path, sizeof a.path, "%s/%s", a.folder, name);
		else
			ask_close(&a.listening);
	}
	sys_close(folder);
}

/* ---- what is said ---- */

static void ask_say(struct connection *c, const char *line)
{
	if (ask_is_ours(&c->socket))
		syscall(SYS_sendto, c->socket.fd, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
}

static void ask_refuse(struct connection *c, const char *why)
{
	char line[ASK_ANSWER_MOST];
	snprintf(line, sizeof line, "error %s\n", why);
	ask_say(c, line);
	ask_close(&c->socket);
}

static const char *ask_error_text(int error)
{
	switch (error) {
	case ENOSPC: return "there is no room on the disk";
	case EDQUOT: return "the user's part of the disk is full";
	case EACCES:
	case EPERM:
	case EROFS: return "the program may not write there";
	case ENOENT:
	case ENOTDIR: return "there is no such folder";
	case EMFILE:
	case ENFILE: return "the program has no free descriptor";
	case EFBIG: return "the program may not write so long a file (ulimit -f)";
	case ENOMEM: return "there is no memory for it";
	case EBUSY: return "the capture before has not come to its end";
	default: return NULL;
	}
}

static void ask_refuse_errno(struct connection *c, const char *where, int error)
{
	char why[ASK_ANSWER_MOST - 16];
	const char *text = ask_error_text(error);
	if (text)
		snprintf(why, sizeof why, "%s: %s", where, text);
	else
		snprintf(why, sizeof why, "%s: errno %d", where, error);
	ask_refuse(c, why);
}

/* ---- requests ---- */

/* " KEY=" and digits up to a blank. */
static bool ask_take_number(const char **at, const char *key, int64_t *v)
{
	size_t n = strlen(key);
	if (strncmp(*at, key, n) != 0 || (*at)[n] < '0' || (*at)[n] > '9')
		return false;
	*v = sys_number(*at + n, at);
	return **at == ' ' && *v < INT64_MAX / 2;
}

/* False: the line is no request of ask.h. */
static bool ask_parse(const char *line, struct ask_request *r)
{
	static const char begins[] = "record name=";
	if (strncmp(line, begins, sizeof begins - 1) != 0)
		return false;
	const char *at = line + sizeof begins - 1, *end = strchr(at, ' ');
	if (!end || (size_t)(end - at) >= sizeof r->name)
		return false;
	*r = (struct ask_request){.start_ns = 0};
	memcpy(r->name, at, (size_t)(end - at));
	at = end;
	if (!ask_is_name(r->name) || !ask_take_number(&at, " start=", &r->start_ns) || !ask_take_number(&at, " duration=", &r->duration_ns) ||
	    !ask_take_number(&at, " steps=", &r->steps) || strncmp(at, " key=", 5) != 0 || strlen(at + 5) > ASK_KEY_MOST)
		return false;
	strcpy(r->key, at + 5);
	return true;
}

static void ask_accept_request(int client, int64_t now)
{
	struct connection *c = &a.connection[client];
	struct ask_request r;
	char why[96];
	if (!ask_parse(c->line, &r)) {
		ask_refuse(c, "this version does not know the request: the same version of opscope was expected on both sides");
	} else if (r.start_ns > now + ASK_AHEAD_S * SECOND_NS) {
		ask_refuse(c, "the start lies more than an hour ahead");
	} else if (a.state != NOTHING) {
		snprintf(why, sizeof why, "already recording for process %d", (int)a.connection[a.client].pid);
		ask_refuse(c, why);
	} else {
		a.request = r;
		a.client = client;
		a.told = a.cut = false;
		a.state = AHEAD;
	}
}

/* Makes the folder of the recording, a.dir. 0 or an errno. A folder that is there already must be our user's, and no link. */
static int ask_make_folder(void)
{
	struct stat st;
	if ((size_t)snprintf(a.dir, sizeof a.dir, "%s/%s", a.base, a.request.name) >= sizeof a.dir)
		return ENAMETOOLONG;
	if (syscall(SYS_mkdirat, AT_FDCWD, a.dir, 0700) == 0)
		return 0;
	if (errno != EEXIST)
		return errno;
	int fd = sys_open(a.dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0), why = fd < 0 ? errno : syscall(SYS_fstat, fd, &st) < 0 ? errno : st.st_uid == geteuid() ? 0 : EACCES;
	if (fd >= 0)
		sys_close(fd);
	return why;
}

static void ask_begin(void)
{
	const struct control_asked asked = {a.request.start_ns, a.request.duration_ns, a.request.steps, a.request.key};
	struct segment_options o = a.segment;
	int error = ask_make_folder();
	o.dir = a.dir;
	if (!error)
		error = -start_asked(&o, &asked, cupti_begin);
	if (error) {
		ask_refuse_errno(&a.connection[a.client], a.dir, error);
		a.state = NOTHING;
		return;
	}
	a.state = RECORDING;
}

/* CUPTI tells of device work when it has ended: work that was launched before the end and ends within CUPTI_TELLS_NS is waited for. */
static void ask_finish(int64_t now)
{
	enum { CUPTI_TELLS_NS = 20000000 };
	char file[4200], line[ASK_ANSWER_MOST];
	struct connection *c = &a.connection[a.client];
	control_over(now);
	if (cupti_is_on())
		sys_sleep(CUPTI_TELLS_NS);
	snprintf(file, sizeof file, "%s", segment_path());
	int error = -end_own(cupti_end);
	if (error == EBUSY)
		return; /* tried again in the next round */
	snprintf(line, sizeof line, "done steps=%lld ns=%lld file=%s\n", (long long)control_steps(), (long long)control_recorded_ns(), file);
	control_rest();
	ask_say(c, line);
	ask_close(&c->socket);
	a.state = NOTHING;
}

static void ask_go_on(int64_t now)
{
	if (a.state == NOTHING)
		return;
	struct connection *c = &a.connection[a.client];
	bool cut = a.cut || !ask_is_ours(&c->socket);
	if (a.state == AHEAD) {
		if (cut) {
			a.state = NOTHING;
			ask_refuse(c, "the recording was given up before it began");
		} else if (now >= a.request.start_ns - AHEAD_NS) {
			ask_begin();
		}
		return;
	}
	if (control_began() && !a.told) {
		a.told = true;
		ask_say(c, "begun\n");
	}
	if (cut || control_is_over(now))
		ask_finish(now);
}

/* ---- connections ---- */

static void ask_take_new(int64_t now)
{
	struct connection *c = a.connection;
	for (int i = 1; i < CONNECTIONS && c->socket.fd >= 0; i++)
		c = &a.connection[i];
	if (c->socket.fd >= 0 || !ask_is_ours(&a.listening))
		return;
	int fd = (int)syscall(SYS_accept4, a.listening.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred who = {.pid = 0, .uid = (uid_t)-1, .gid = (gid_t)-1};
	socklen_t n = sizeof who;
	char line[ASK_ANSWER_MOST];
	if (fd < 0 || !ask_adopt(&c->socket, fd))
		return;
	c->n = 0;
	c->since_ns = now;
	if (getsockopt(c->socket.fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0 || who.uid != geteuid()) {
		ask_refuse(c, "only the user whose program this is may ask");
		return;
	}
	c->pid = who.pid;
	snprintf(line, sizeof line, ASK_GREETING "pid=%d rank=%lld state=%s dir=%s\n", (int)getpid(), (long long)a.segment.rank, a.state == NOTHING ? "idle" : "recording", a.base);
	ask_say(c, line);
	sys_sleep(QUICK_MS * 1000000); /* so that a client that connects again and again does not keep a processor busy */
}

/* Reads the request of a connection. The client that is recorded for has nothing more to say: whatever comes from it ends the recording. */
static void ask_hear(int client, int64_t now)
{
	struct connection *c = &a.connection[client];
	bool is_asking = a.state != NOTHING && client == a.client;
	char piece[ASK_LINE_MOST];
	if (!ask_is_ours(&c->socket)) {
		c->socket.fd = -1;
		return;
	}
	if (!is_asking && now - c->since_ns > ASK_PATIENCE_S * SECOND_NS) {
		ask_refuse(c, "no request came");
		return;
	}
	long n = syscall(SYS_recvfrom, c->socket.fd, piece, sizeof piece, MSG_DONTWAIT, NULL, NULL);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (is_asking) {
		a.cut = true;
		return;
	}
	if (n <= 0) {
		ask_close(&c->socket);
		return;
	}
	if (c->n + (size_t)n > ASK_LINE_MOST || memchr(piece, 0, (size_t)n)) {
		ask_refuse(c, "the request is no line of text, or is too long");
		return;
	}
	memcpy(c->line + c->n, piece, (size_t)n);
	c->n += (size_t)n;
	c->line[c->n] = 0;
	char *end = strchr(c->line, '\n');
	if (!end)
		return;
	*end = 0;
	if (end != c->line + c->n - 1)
		ask_refuse(c, "one line was expected");
	else
		ask_accept_request(client, now);
}

static void ask_wait(void)
{
	struct pollfd p[CONNECTIONS + 1];
	unsigned n = 0;
	for (int i = 0; i < CONNECTIONS; i++)
		if (ask_is_ours(&a.connection[i].socket) && !(a.state != NOTHING && i == a.client && a.cut))
			p[n++] = (struct pollfd){.fd = a.connection[i].socket.fd, .events = POLLIN};
	int wait = a.state != NOTHING ? QUICK_MS : n ? WITH_CLIENTS_MS : IDLE_MS;
	if (n < CONNECTIONS && ask_is_ours(&a.listening))
		p[n++] = (struct pollfd){.fd = a.listening.fd, .events = POLLIN};
	poll(p, n, wait);
}

static void *ask_run(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "opscope-ask");
	while (!atomic_load(&a.leave)) {
		if (!ask_is_ours(&a.listening))
			ask_listen();
		ask_wait();
		int64_t now = now_ns();
		ask_take_new(now);
		for (int i = 0; i < CONNECTIONS; i++)
			if (a.connection[i].socket.fd >= 0)
				ask_hear(i, now);
		ask_go_on(now_ns());
	}
	return NULL;
}

/* ---- life ---- */

static int ask_threads(void) { return atomic_load(&a.pid) == (int32_t)getpid(); }

static void ask_end(void)
{
	if (ask_threads())
		ask_unlink();
}

static bool ask_start(const char *dir, const struct segment_options *o)
{
	if (strlen(dir) >= sizeof a.folder - 80 || strlen(o->dir) >= sizeof a.base)
		return false;
	for (const char *c = o->dir; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f) /* the greeting is a line of text */
			return false;
	strcpy(a.folder, dir);
	strcpy(a.base, o->dir);
	a.segment = *o;
	for (int i = 0; i < CONNECTIONS; i++)
		a.connection[i].socket.fd = -1;
	atomic_store(&a.pid, (int32_t)getpid());
	ask_listen(); /* before the thread starts, so that the program can be asked as soon as it runs */
	if (start_thread(ask_run))
		return true;
	ask_end();
	return false;
}

static void ask_leave(void) { atomic_store(&a.leave, true); }

static void ask_forked(void)
{
	if (!atomic_load(&a.pid))
		return;
	atomic_store(&a.pid, -1);
	ask_close(&a.listening);
	for (int i = 0; i < CONNECTIONS; i++)
		ask_close(&a.connection[i].socket);
}

static __attribute__((constructor)) void ask_register(void)
{
	static const struct start_asking asking = {.start = ask_start, .forked = ask_forked, .end = ask_end, .leave = ask_leave, .threads = ask_threads};
	start_register(&asking);
}
