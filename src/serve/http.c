/* The protocol: connections, headers and bodies, by libmicrohttpd; who may ask; how answers go out. */
#include "serve/server_own.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "serve/assets.h"
#include "serve/mhd.h"

#include <ctype.h>
#include <poll.h>
#include <stdio.h>
#include <strings.h>

enum {
	BODY_MAX = 1 << 20,       /* of a POST */
	HEAD_MAX = 32 << 10,      /* request line and headers; more is 431 */
	CONNECTIONS_MAX = 1300,   /* nobody more is let in */
	IDLE_SECONDS = 30,
	ARGUMENTS_MAX = 40,
};

/* One request and what http.c needs of it. */
struct visit {
	struct exchange x;
	struct MHD_Connection *connection;
	struct client *client;
	int fd;                  /* of the connection */
	struct server *server;
	struct request_arg arg[ARGUMENTS_MAX];
	struct buf body;
	bool asked, too_long, too_many, bad_text;
};

static struct str header(struct MHD_Connection *c, const char *name)
{
	const char *v = mhd.lookup_connection_value(c, MHD_HEADER_KIND, name);
	return str_from(v);
}

/* "name", "name:80", "[::1]:80" -> name; of anything else, which names no host, all of it. */
static struct str host_name(struct str host)
{
	size_t digits = 0;
	while (digits < host.n && isdigit((unsigned char)host.p[host.n - 1 - digits]))
		digits++;
	size_t name = host.n - digits;
	bool port = digits && name && host.p[name - 1] == ':';
	return port ? (struct str){host.p, name - 1} : host;
}

/* A page from elsewhere can have its name mean this machine; then the browser sends that name as Host. */
static bool host_is_ours(const struct server *s, struct str host)
{
	struct str name = host_name(host);
	if (s->any_host)
		return true;
	for (const char **h = s->hosts; *h; h++)
		if (name.n && name.n == strlen(*h) && strncasecmp(name.p, *h, name.n) == 0)
			return true;
	return false;
}

/* By what the browser says of the page that asks: one of ours, or none, such as the line for addresses. What is no browser says nothing. */
static bool site_is_ours(struct MHD_Connection *c)
{
	struct str site = header(c, "Sec-Fetch-Site");
	return !site.p || str_eqc(site, "same-origin") || str_eqc(site, "none");
}

/* Whether a page of ours asks: others cannot set this header without leave, which is never given. */
static bool origin_is_ours(struct MHD_Connection *c)
{
	struct str origin = header(c, "Origin"), host = header(c, "Host");
	if (!str_eqc(header(c, "X-Opscope"), "1") || !site_is_ours(c))
		return false;
	const char *rest = origin.n ? strstr(origin.p, "://") : NULL;
	return !origin.n || (rest && str_eq(str_from(rest + 3), host));
}

/* NULL = the request may be looked at. */
static struct answer *refuse_visit(const struct visit *v)
{
	struct str host = header(v->connection, "Host");
	if (!host_is_ours(v->server, host))
		return answer_error(403, "this server is not '" STR_FMT "'; to let it be asked by that name, start it with --allow-host=" STR_FMT,
		                    STR_ARG(host), STR_ARG(host_name(host)));
	if (v->too_long)
		return answer_error(413, "a body of at most %d bytes was expected", BODY_MAX);
	if (v->too_many)
		return answer_error(400, "at most %d arguments were expected", ARGUMENTS_MAX);
	if (v->bad_text)
		return answer_error(400, "arguments of valid UTF-8 without NUL were expected");
	if (v->x.post && !origin_is_ours(v->connection))
		return answer_error(403, "a POST is for the viewer's own pages: the header X-Opscope: 1 was expected, from the same origin");
	return NULL;
}

static enum MHD_Result take_argument(void *context, enum MHD_ValueKind kind, const char *key, size_t key_n, const char *value, size_t value_n)
{
	struct visit *v = context;
	struct request *r = &v->x.request;
	struct str k = {key, key_n}, w = {value ? value : "", value ? value_n : 0};
	if (r->n_args == ARGUMENTS_MAX) {
		v->too_many = true;
		return MHD_NO;
	}
	v->bad_text |= memchr(k.p, 0, k.n) || memchr(w.p, 0, w.n) || !utf8_valid(k) || !utf8_valid(w);
	v->arg[r->n_args++] = (struct request_arg){arena_str(&v->x.arena, k), arena_str(&v->x.arena, w)};
	return MHD_YES;
}

/* The response that is being made. */
struct serve_http_making {
	struct MHD_Response *r;
	bool failed;             /* there was no memory for a header: it must not go out without */
};

static void add_header(struct serve_http_making *m, const char *name, const char *value)
{
	m->failed |= mhd.add_response_header(m->r, name, value) == MHD_NO;
}

/* `same`: without the body, which the client has. */
static void add_headers(struct serve_http_making *m, const struct answer *a, bool packed, bool same)
{
	add_header(m, "Content-Type", a->type);
	add_header(m, "X-Content-Type-Options", "nosniff");
	add_header(m, "Referrer-Policy", "no-referrer");
	add_header(m, "Cross-Origin-Resource-Policy", "same-origin");
	add_header(m, "X-Frame-Options", "DENY");
	add_header(m, "Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
	           "connect-src 'self'; font-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
	add_header(m, "Vary", "Accept-Encoding");
	add_header(m, "Cache-Control", a->etag[0] ? "no-cache" : "no-store");
	if (packed && !same)
		add_header(m, "Content-Encoding", "gzip");
	if (a->etag[0]) {
		char etag[ETAG_MAX];
		answer_etag(a, packed, etag);
		add_header(m, "ETag", etag);
	}
	if (a->status == 503)
		add_header(m, "Retry-After", "1");
	if (a->file_name) {
		char text[300];
		snprintf(text, sizeof text, "attachment; filename=\"%s\"", a->file_name);
		add_header(m, "Content-Disposition", text);
	}
}

/* Whether a comma-separated header holds the word, not refused by q=0. */
static bool header_has(struct str list, struct str word)
{
	struct str item;
	while (str_split(&list, ',', &item)) {
		struct str name, q = {0};
		while (item.n && *item.p == ' ')
			item.p++, item.n--;
		struct str rest = item;
		str_split(&rest, ';', &name);
		while (name.n && name.p[name.n - 1] == ' ')
			name.n--;
		if (rest.p)
			q = rest;
		while (q.n && *q.p == ' ')
			q.p++, q.n--;
		if ((str_eq(name, word) || str_eqc(name, "*")) && !str_eqc(q, "q=0") && !str_eqc(q, "q=0.0"))
			return true;
	}
	return false;
}

/* What an input lacks is no mistake of the page that asks, but browsers log each answer above 399 as one: for our pages it goes out as 200, with the status
 * beside it. */
static bool is_told_aside(const struct visit *v)
{
	unsigned status = v->x.answer->status;
	return (status == 400 || status == 422) && !v->x.post && str_eqc(header(v->connection, "X-Opscope"), "1");
}

static enum MHD_Result send_answer(struct visit *v)
{
	const struct answer *a = v->x.answer;
	bool packed = a->packed.n && (!a->body.p || v->x.packs);
	char etag[ETAG_MAX];
	answer_etag(a, packed, etag);
	bool same = a->etag[0] && header_has(header(v->connection, "If-None-Match"), str_from(etag));
	struct str body = same ? (struct str){"", 0} : packed ? a->packed : a->body;
	/* The bytes live until the request is completed. */
	struct serve_http_making m = {.r = mhd.create_response_from_buffer(body.n, (void *)(uintptr_t)body.p, MHD_RESPMEM_PERSISTENT)};
	if (!m.r)
		return MHD_NO;
	add_headers(&m, a, packed, same);
	bool aside = is_told_aside(v);
	if (aside)
		add_header(&m, "X-Opscope-Status", a->status == 400 ? "400" : "422");
	enum MHD_Result rc = m.failed ? MHD_NO : mhd.queue_response(v->connection, same ? 304 : aside ? 200 : a->status, m.r);
	mhd.destroy_response(m.r);
	clients_set(v->server->clients, v->client, CLIENT_TAKES);
	return rc;
}

static void on_done(struct exchange *x)
{
	struct visit *v = (struct visit *)(void *)((char *)x - offsetof(struct visit, x));
	mhd.resume_connection(v->connection);
}

/* What stands behind the prefix; false when the prefix is not there. */
static bool strip_prefix(const struct server *s, struct str url, struct str *path)
{
	size_t n = strlen(s->prefix);
	*path = (struct str){url.p + n, url.n - (n < url.n ? n : url.n)};
	return str_starts(url, str_from(s->prefix)) && path->n && path->p[0] == '/';
}

struct serve_http_asking {
	struct visit *v;
	bool answered;           /* else another thread has it by now */
};

static void find_answer(void *asking)
{
	struct serve_http_asking *k = asking;
	struct visit *v = k->v;
	v->x.request.body = buf_view(&v->body);
	v->x.packs = header_has(header(v->connection, "Accept-Encoding"), STR("gzip"));
	v->x.answer = refuse_visit(v);
	struct str path = v->x.request.path;
	if (!v->x.answer && !strip_prefix(v->server, path, &v->x.request.path))
		v->x.answer = answer_error(404, "no page '" STR_FMT "'; the pages begin at %s/", STR_ARG(path), v->server->prefix);
	/* Pages of others may lead to ours; what costs time is not for them, though they could not read the answer. */
	if (!v->x.answer && !site_is_ours(v->connection) && !asset_is_there(v->x.request.path))
		v->x.answer = answer_error(403, STR_FMT ": a page of another site asks; one of the viewer's own, or none, was expected", STR_ARG(path));
	k->answered = v->x.answer || dispatch(&v->server->to, &v->x);
}

static void serve_http_ask(struct visit *v)
{
	struct serve_http_asking k = {.v = v};
	struct mem_pool blocks = {0};
	if (mem_try(&blocks, find_answer, &k) < 0) {
		mem_pool_release(&blocks);
		v->x.answer = answer_no_memory();
		k.answered = true;
	}
	mem_pool_drop(&blocks);
	if (k.answered)
		on_done(&v->x);
}

/* While its answer is awaited nobody reads from the connection. One that says no more is as good as closed: no browser closes its half and waits. */
static bool has_gone(const void *visit)
{
	const struct visit *v = visit;
	struct pollfd p = {.fd = v->fd, .events = POLLRDHUP};
	return poll(&p, 1, 0) > 0;
}

/* What libmicrohttpd tells of a request. */
struct arrival {
	struct server *server;
	struct MHD_Connection *connection;
	const char *url, *data;
	size_t n;                /* of the data */
	bool post;
	struct visit *v;
};

static void make_visit(void *arrival)
{
	const struct arrival *a = arrival;
	struct visit *v = NEW(struct visit);
	v->connection = a->connection;
	v->client = mhd.get_connection_info(a->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
	v->fd = mhd.get_connection_info(a->connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	v->server = a->server;
	v->x.post = a->post;
	v->x.done = on_done;
	v->x.request.arg = v->arg;
	v->x.request.gone = has_gone;
	v->x.request.who = v;
	v->bad_text = !utf8_valid(str_from(a->url));
	v->x.request.path = arena_str(&v->x.arena, str_from(a->url));
	mhd.get_connection_values_n(a->connection, MHD_GET_ARGUMENT_KIND, take_argument, v);
	((struct arrival *)arrival)->v = v;
}

/* NULL where there is no memory, for it or for its client. */
static struct visit *visit_new(struct arrival *a)
{
	struct mem_pool blocks = {0};
	if (!mhd.get_connection_info(a->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context)
		return NULL;
	if (mem_try(&blocks, make_visit, a) < 0)
		mem_pool_release(&blocks);
	mem_pool_drop(&blocks);
	return a->v;
}

static void take_data(void *arrival)
{
	const struct arrival *a = arrival;
	buf_put(&a->v->body, a->data, a->n);
}

static enum MHD_Result refuse_method(struct MHD_Connection *c)
{
	static const char text[] = "{\"error\":\"GET, HEAD or POST was expected\"}\n";
	struct serve_http_making m = {.r = mhd.create_response_from_buffer(sizeof text - 1, (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT)};
	if (!m.r)
		return MHD_NO;
	add_header(&m, "Content-Type", "application/json; charset=utf-8");
	add_header(&m, "Allow", "GET, HEAD, POST");
	enum MHD_Result rc = m.failed ? MHD_NO : mhd.queue_response(c, 405, m.r);
	mhd.destroy_response(m.r);
	return rc;
}

/* By what it says before it is sent. */
static bool body_is_long(struct MHD_Connection *c)
{
	struct str length = header(c, "Content-Length");
	int64_t n = 0;
	return length.n && (!str_to_i64(length, &n) || n > BODY_MAX);
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *c, const char *url, const char *method, const char *version,
                                  const char *data, size_t *data_n, void **visit)
{
	struct visit *v = *visit;
	bool post = strcmp(method, "POST") == 0;
	struct arrival a = {.server = context, .connection = c, .url = url, .data = data, .n = *data_n, .post = post, .v = v};
	if (!v && !post && strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return refuse_method(c);
	if (!v) {
		*visit = v = visit_new(&a);
		if (!v)
			return MHD_NO;
		v->too_long = body_is_long(c);
		if (!v->too_long)
			return MHD_YES;
		v->x.answer = refuse_visit(v);
		return send_answer(v);
	}
	if (*data_n) {
		v->too_long |= v->body.n + *data_n > BODY_MAX;
		if (v->too_long) /* of unknown length, so that it could not be refused before: it may have no end */
			return MHD_NO;
		if (mem_try(NULL, take_data, &a) < 0)
			return MHD_NO;
		*data_n = 0;
		return MHD_YES;
	}
	if (v->asked)
		return send_answer(v);
	v->asked = true;
	clients_set(v->server->clients, v->client, CLIENT_WAITS);
	mhd.suspend_connection(c);
	serve_http_ask(v);
	return MHD_YES;
}

static void on_completed(void *context, struct MHD_Connection *c, void **visit, enum MHD_RequestTerminationCode why)
{
	struct server *s = context;
	struct visit *v = *visit;
	if (!v)
		return;
	clients_set(s->clients, v->client, CLIENT_ASKS);
	answers_release(s->to.answers, v->x.answer);
	buf_release(&v->body);
	buf_release(&v->x.key);
	arena_release(&v->x.arena);
	mem_free(v);
	*visit = NULL;
}

static void on_connection(void *context, struct MHD_Connection *c, void **client, enum MHD_ConnectionNotificationCode code)
{
	struct server *s = context;
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		*client = clients_add(s->clients, mhd.get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd);
	else
		clients_remove(s->clients, *client);
}

/* As the protocol wants it, but that a NUL becomes a byte that no text has: it would end the text before its time. */
static size_t unescape(void *context, struct MHD_Connection *c, char *s)
{
	size_t n = 0;
	for (size_t i = 0; s[i]; i++) {
		unsigned byte;
		bool escaped = s[i] == '%' && isxdigit((unsigned char)s[i + 1]) && isxdigit((unsigned char)s[i + 2]) && sscanf(s + i + 1, "%2x", &byte) == 1;
		s[n++] = escaped ? (byte ? (char)byte : '\xff') : s[i];
		i += escaped ? 2 : 0;
	}
	s[n] = 0;
	return n;
}

struct MHD_Daemon *http_listen(struct server *s, const struct addrinfo *a)
{
	unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | (a->ai_family == AF_INET6 ? MHD_USE_IPv6 : 0);
	return mhd.start_daemon(flags, 0, NULL, NULL, on_request, s, MHD_OPTION_SOCK_ADDR, a->ai_addr, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
	                        MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL,
	                        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
	                        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_MAX, MHD_OPTION_END);
}
