/* The server as a whole: where it listens, what threads it has, how it begins and ends. */
#include "serve/server_own.h"

#include "base/mem.h"
#include "serve/mhd.h"
#include "serve/shelf.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	CLIENTS_MAX = 1200,       /* whoever comes takes the place of one who has not asked yet */
	ASK_SECONDS = 30,
	TAKE_SECONDS = 600,
	WAITING_MAX = 400,        /* requests for the threads that answer, in each queue */
	QUERY_THREADS = 2,
	SUMMARY_THREADS = 2,
	QUERY_SECONDS = 30,
	END_SECONDS = 1,
	KEPT_BYTES = 128 << 20,   /* of answers */
};

static int set_prefix(struct server *s, const char *prefix, struct err *e)
{
	struct str p = str_from(prefix ? prefix : "");
	while (p.n && p.p[p.n - 1] == '/')
		p.n--;
	bool plain = !p.n || p.p[0] == '/';
	for (size_t i = 0; i < p.n; i++)
		plain &= (p.p[i] > ' ' && p.p[i] < 127 && !strchr("%?#\"\\<>", p.p[i]));
	if (!plain || p.n > 200)
		return err_set(e, ERR_USAGE, "--path-prefix=%s: a path like /x was expected", prefix);
	s->prefix = arena_str(&s->arena, p).p;
	return 0;
}

static bool is_loopback(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
	return a->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

static void set_hosts(struct server *s, const char *const *more)
{
	static const char *const ours[] = {"localhost", "127.0.0.1", "[::1]"};
	unsigned n = 0, k = sizeof ours / sizeof ours[0];
	while (more && more[n])
		n++;
	s->hosts = NEW_ARRAY(n + k + 2, const char *);
	memcpy(s->hosts, ours, sizeof ours);
	s->hosts[k++] = s->bind;
	for (unsigned i = 0; i < n; i++)
		s->hosts[k++] = arena_str(&s->arena, str_from(more[i])).p;
}

static int start_listening(struct server *s, uint16_t port, struct err *e)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *found = NULL;
	char service[8];
	snprintf(service, sizeof service, "%u", port);
	int rc = getaddrinfo(strcmp(s->bind, "localhost") == 0 ? "127.0.0.1" : s->bind, service, &hints, &found);
	if (rc)
		return err_set(e, ERR_IO, "--bind=%s: %s", s->bind, gai_strerror(rc));
	s->any_host = !is_loopback(found->ai_addr);
	errno = 0;
	s->daemon = http_listen(s, found);
	int why = errno;
	freeaddrinfo(found);
	if (!s->daemon)
		return err_set(e, ERR_IO, "cannot listen at %s:%u: %s%s", s->bind, port, why ? strerror(why) : "the address is in use or not this machine's",
		               port ? "; --port=0 takes any port that is free" : "");
	s->port = mhd.get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
	bool v6 = strchr(s->bind, ':') != NULL;
	s->url = arena_printf(&s->arena, "http://%s%s%s:%u%s/", v6 ? "[" : "", s->bind, v6 ? "]" : "", s->port, s->prefix).p;
	return 0;
}

static unsigned threads_of(const struct serve_options *o)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	return o->threads ? o->threads : cores > 2 ? (unsigned)cores : 2;
}

static void raise_file_limit(void)
{
	struct rlimit r;
	if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
		r.rlim_cur = r.rlim_max < 8192 ? r.rlim_max : 8192;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}

static int start_threads(struct server *s, const struct serve_options *o, struct err *e)
{
	const unsigned threads[QUEUES] = {[QUEUE_TABLES] = threads_of(o), [QUEUE_QUICK] = threads_of(o), [QUEUE_QUERIES] = QUERY_THREADS, [QUEUE_SUMMARIES] = SUMMARY_THREADS,
	                                  [QUEUE_WRITES] = 1};
	bool ok = true;
	for (int i = 0; i < QUEUES; i++)
		ok &= (s->to.jobs[i] = jobs_start(threads[i], WAITING_MAX)) != NULL;
	s->clients = clients_new(&(struct client_limits){CLIENTS_MAX, ASK_SECONDS, TAKE_SECONDS});
	return ok && s->clients ? 0 : err_set(e, ERR_LIMIT, "no thread could be started");
}

static unsigned endpoints_look(const struct profile *p)
{
	unsigned marks = 0;
	for (const struct endpoint *const *x = endpoint_registry; *x; x++)
		marks |= (*x)->look ? (*x)->look(p) : 0;
	return marks;
}

struct server *server_start(const struct serve_options *o, struct err *e)
{
	struct server *s = NEW(struct server);
	s->bind = arena_str(&s->arena, str_from(o->bind && *o->bind ? o->bind : "localhost")).p;
	set_hosts(s, o->hosts);
	raise_file_limit();
	s->to.read_only = o->read_only;
	s->to.editor = o->editor ? arena_str(&s->arena, str_from(o->editor)).p : NULL;
	s->to.query_seconds = o->query_seconds ? o->query_seconds : QUERY_SECONDS;
	s->to.answers = answers_new(KEPT_BYTES);
	s->to.shelf = shelf_new();
	int rc = set_prefix(s, o->prefix, e);
	if (rc == 0)
		rc = mhd_load(e);
	if (rc == 0) {
		s->to.library = library_open(&(struct library_options){o->paths, o->n_paths, o->memory_bytes, o->follow_links, endpoints_look}, e);
		rc = s->to.library ? 0 : -1;
	}
	if (rc == 0)
		rc = start_threads(s, o, e);
	if (rc == 0)
		rc = start_listening(s, o->port, e);
	if (rc == 0)
		return s;
	server_stop(s);
	return NULL;
}

uint16_t server_port(const struct server *s)
{
	return s->port;
}

const char *server_url(const struct server *s)
{
	return s->url;
}

void server_left_out(struct server *s, void (*see)(void *context, struct str path), void *context)
{
	library_left_out(s->to.library, see, context);
}

bool server_stop(struct server *s)
{
	struct timespec until;
	bool idle = true;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += END_SECONDS;
	MHD_socket listening = MHD_INVALID_SOCKET;
	/* Nobody may be suspended when the daemon stops: first no one new, then everyone who waits gets an answer. The daemon's thread may still take the
	 * socket out of its poll set: closed now, its number could be somebody else's by then. */
	if (s->daemon && (listening = mhd.quiesce_daemon(s->daemon)) != MHD_INVALID_SOCKET)
		shutdown(listening, SHUT_RDWR);
	if (s->to.library)
		library_refuse(s->to.library);
	for (int i = 0; i < QUEUES; i++)
		idle &= jobs_stop(s->to.jobs[i], i == QUEUE_WRITES ? NULL : &until);
	if (!idle)
		return false;
	if (s->daemon)
		mhd.stop_daemon(s->daemon);
	if (listening != MHD_INVALID_SOCKET)
		close(listening);
	clients_free(s->clients);
	s->clients = NULL;
	shelf_free(s->to.shelf);
	s->to.shelf = NULL;
	if (!library_close(s->to.library, &until))
		return false;
	for (int i = 0; i < QUEUES; i++)
		jobs_free(s->to.jobs[i]);
	answers_free(s->to.answers);
	arena_release(&s->arena);
	mem_free(s->hosts);
	mem_free(s);
	return true;
}
