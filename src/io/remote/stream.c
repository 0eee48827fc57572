/* One file, or one answer, as a stream of bytes. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "base/hash.h"
#include "base/mem.h"
#include "io/remote/own.h"

enum {
	BUFFER = 512 << 10,
	TEXT = 256,            /* of a header, and of an error's code */
	SAID = 2048,           /* what is kept of the body of an answer that is an error */
	TRIES = 5,             /* without PROGRESS between them */
	REDIRECTS = 5,
	WAIT_MS = 1000,
	BACK_OFF_MS = 100,     /* doubled with each try */
	LEAST_BYTES = 1024,    /* in the time of OPSCOPE_REMOTE_TIMEOUT */
	PROGRESS = 1 << 20,
};

struct remote {
	struct remote_place *place, own_place;
	struct arena arena;          /* of own_place */
	char *query;                 /* NULL: the file */
	bool head;
	CURL *easy;
	CURLM *multi;
	bool added, paused, ended, stopped; /* stopped: atomic */
	struct remote_ask ask;
	struct buf moved;            /* where a redirect led; n == 0: nowhere */
	char *buffer;                /* BUFFER bytes, of which at .. n are to be handed out */
	size_t at, n;
	uint64_t offset, skip, size; /* bytes that came so far; of a new answer these again are left out; size 0 = not stated */
	char version[TEXT];
	long timeout_ms, waited_ms;
	uint64_t came, last_try_at;  /* bytes since waited_ms was 0; offset when the last try began */
	unsigned tries, redirects;
	bool begun;                  /* an answer with bytes of the file has begun */
	/* Of the answer that is coming in. */
	long status;
	bool judged;
	char its_version[TEXT], its_modified[TEXT], its_region[TEXT];
	int64_t its_start;           /* Content-Range; -1 = not stated */
	char said[SAID];
	size_t n_said;
	char curl_error[CURL_ERROR_SIZE];
	char error[512];
	enum err_code code;
	struct mem_undo undo;
};

static void stream_fail(struct remote *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void stream_fail(struct remote *r, const char *fmt, ...)
{
	va_list ap;
	if (r->code)
		return;
	va_start(ap, fmt);
	vsnprintf(r->error, sizeof r->error, fmt, ap);
	va_end(ap);
	r->code = ERR_IO;
}

static bool header_is(struct str line, const char *name, char to[TEXT])
{
	const size_t n = strlen(name);
	if (line.n <= n || strncasecmp(line.p, name, n) != 0 || line.p[n] != ':')
		return false;
	struct str value = {line.p + n + 1, line.n - n - 1};
	while (value.n && (value.p[value.n - 1] == '\n' || value.p[value.n - 1] == '\r'))
		value.n--;
	value = str_trim(value);
	if (value.n < TEXT) {
		memcpy(to, value.p, value.n);
		to[value.n] = 0;
	}
	return true;
}

/* libcurl calls the functions below: they neither allocate nor leave by a jump. */
static size_t on_header(char *p, size_t size, size_t n, void *context)
{
	struct remote *r = context;
	struct str line = {p, size * n};
	char text[TEXT] = "";
	if (str_starts(line, STR("HTTP/"))) {
		r->its_version[0] = r->its_modified[0] = r->its_region[0] = 0;
		r->its_start = -1;
		r->n_said = 0;
		r->judged = false;
	}
	(void)(header_is(line, "ETag", r->its_version) || header_is(line, "Last-Modified", r->its_modified) || header_is(line, "x-amz-bucket-region", r->its_region));
	if (header_is(line, "Content-Range", text) && strncmp(text, "bytes ", 6) == 0)
		r->its_start = strtoll(text + 6, NULL, 10);
	return line.n;
}

static bool is_good(long status)
{
	return status == 200 || status == 206;
}

/* Of the first bytes of an answer: whether they go on where the last ones ended. */
static bool stream_judge(struct remote *r)
{
	curl_off_t length = -1;
	const char *version = r->its_version[0] ? r->its_version : r->its_modified;
	libcurl.easy_getinfo(r->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
	r->judged = true;
	r->skip = 0;
	if (!r->begun) {
		memcpy(r->version, version, strlen(version) + 1);
		r->size = length > 0 ? (uint64_t)length : 0;
		r->begun = true;
		return true;
	}
	if (strcmp(version, r->version) != 0) {
		stream_fail(r, "the file was replaced while it was read");
		return false;
	}
	if (r->status == 206 && (uint64_t)r->its_start != r->offset) {
		stream_fail(r, "the server gives other bytes than those from %llu on, which were asked for", (unsigned long long)r->offset);
		return false;
	}
	r->skip = r->status == 206 ? 0 : r->offset;
	return true;
}

static size_t on_bytes(char *p, size_t size, size_t n, void *context)
{
	struct remote *r = context;
	const size_t all = size * n;
	size_t left = all;
	libcurl.easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &r->status);
	if (!is_good(r->status)) {
		const size_t some = SAID - r->n_said < left ? SAID - r->n_said : left;
		memcpy(r->said + r->n_said, p, some);
		r->n_said += some;
		return all;
	}
	if (!r->judged && !stream_judge(r))
		return 0;
	const size_t skipped = r->skip < left ? (size_t)r->skip : left;
	left -= skipped;
	if (left > BUFFER - r->n) {
		r->paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	r->skip -= skipped;
	memcpy(r->buffer + r->n, p + skipped, left);
	r->n += left;
	r->offset += left;
	r->came += all;
	return all;
}

static void stream_leave(struct remote *r)
{
	if (r->added)
		libcurl.multi_remove_handle(r->multi, r->easy);
	r->added = r->paused = false;
}

static const char *stream_authorities(void)
{
	static const char *const names[] = {"AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"};
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (getenv(names[i]) && *getenv(names[i]))
			return getenv(names[i]);
	return NULL;
}

/* Sends the request, for what is still missing. */
static void stream_begin(struct remote *r)
{
	struct err e;
	char range[64];
	const bool rest = r->begun && r->offset;
	stream_leave(r);
	remote_ask_release(&r->ask);
	snprintf(range, sizeof range, "bytes=%llu-", (unsigned long long)r->offset);
	if (remote_ask_make(&r->ask, r->place, r->head ? "HEAD" : "GET", r->query, rest ? range : NULL, &e) < 0) {
		stream_fail(r, "%s", e.msg);
		return;
	}
	CURL *c = r->easy;
	libcurl.easy_reset(c);
	r->curl_error[0] = 0;
	r->status = 0;
	r->judged = false;
	r->waited_ms = 0;
	r->came = 0;
	r->last_try_at = r->offset;
	bool set = libcurl.easy_setopt(c, CURLOPT_URL, r->moved.n ? r->moved.p : r->ask.url.p) == CURLE_OK;
	set &= libcurl.easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK;
	set &= libcurl.easy_setopt(c, CURLOPT_HTTPHEADER, r->ask.headers) == CURLE_OK;
	if (r->ask.sign.n) {
		set &= libcurl.easy_setopt(c, CURLOPT_USERPWD, r->ask.user.p) == CURLE_OK;
		set &= libcurl.easy_setopt(c, CURLOPT_AWS_SIGV4, r->ask.sign.p) == CURLE_OK;
	}
	if (stream_authorities())
		set &= libcurl.easy_setopt(c, CURLOPT_CAINFO, stream_authorities()) == CURLE_OK;
	set &= libcurl.easy_setopt(c, CURLOPT_SSL_VERIFYPEER, r->ask.no_verify ? 0L : 1L) == CURLE_OK;
	set &= libcurl.easy_setopt(c, CURLOPT_SSL_VERIFYHOST, r->ask.no_verify ? 0L : 2L) == CURLE_OK;
	set &= libcurl.easy_setopt(c, CURLOPT_USERAGENT, "opscope/" OPSCOPE_VERSION) == CURLE_OK;
	libcurl.easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	libcurl.easy_setopt(c, CURLOPT_PATH_AS_IS, 1L);
	libcurl.easy_setopt(c, CURLOPT_NOBODY, r->head ? 1L : 0L);
	libcurl.easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, r->timeout_ms);
	libcurl.easy_setopt(c, CURLOPT_ERRORBUFFER, r->curl_error);
	libcurl.easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
	libcurl.easy_setopt(c, CURLOPT_HEADERDATA, r);
	libcurl.easy_setopt(c, CURLOPT_WRITEFUNCTION, on_bytes);
	libcurl.easy_setopt(c, CURLOPT_WRITEDATA, r);
	r->added = set && libcurl.multi_add_handle(r->multi, c) == CURLM_OK;
	if (!r->added)
		stream_fail(r, "the request cannot be made: libcurl does not take it");
}

/* What an error's body says it is, "AccessDenied": S3, GCS and Azure have <Code>. The rest may hold what was signed. */
static void put_code(const struct remote *r, char to[TEXT])
{
	struct str said = {r->said, r->n_said};
	const ptrdiff_t at = str_find(said, STR("<Code>"));
	size_t n = 0;
	for (size_t i = at < 0 ? said.n : (size_t)at + 6; i < said.n && n < 64; i++) {
		const char c = said.p[i];
		if (!is_digit(c) && !(c >= 'A' && c <= 'Z') && !(c >= 'a' && c <= 'z'))
			break;
		to[++n] = c;
	}
	to[0] = n ? ' ' : 0;
	to[n ? n + 1 : 0] = 0;
}

static void fail_status(struct remote *r)
{
	char code[TEXT];
	put_code(r, code);
	if (r->status == 401 || r->status == 403)
		stream_fail(r, "access is refused (%ld%s) to %s", r->status, code, r->ask.who.p);
	else if (r->status == 404)
		stream_fail(r, "there is no such file (404%s)", code);
	else
		stream_fail(r, "the server answers %ld%s, 200 was expected", r->status, code);
}

/* "https://host:443" of a URL; "" where it is none. */
static void put_origin(const char *url, struct buf *to)
{
	CURLU *u = libcurl.url();
	char *part[3] = {NULL};
	if (!u)
		mem_fail(0);
	const bool sound = libcurl.url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK && libcurl.url_get(u, CURLUPART_SCHEME, &part[0], 0) == CURLUE_OK &&
	                   libcurl.url_get(u, CURLUPART_HOST, &part[1], 0) == CURLUE_OK && libcurl.url_get(u, CURLUPART_PORT, &part[2], CURLU_DEFAULT_PORT) == CURLUE_OK;
	if (sound)
		buf_printf(to, "%s://%s:%s", part[0], part[1], part[2]);
	buf_end_text(to);
	for (int i = 0; i < 3; i++)
		libcurl.free(part[i]);
	libcurl.url_cleanup(u);
}

/* Only to https, or to where the request went; credentials stay with those whom the address names. */
static void stream_redirect(struct remote *r)
{
	const char *to = NULL;
	struct buf from = {0}, into = {0};
	libcurl.easy_getinfo(r->easy, CURLINFO_REDIRECT_URL, &to);
	if (!to) {
		fail_status(r);
		return;
	}
	put_origin(r->moved.n ? r->moved.p : r->ask.url.p, &from);
	put_origin(to, &into);
	const bool same = into.n && str_eq(buf_view(&from), buf_view(&into));
	if (r->place->scheme != REMOTE_WEB)
		stream_fail(r, "the server redirects (%ld) to %s, where these credentials do not go: name its region or endpoint", r->status, into.p);
	else if (!same && !str_starts(buf_view(&into), STR("https://")))
		stream_fail(r, "the server redirects (%ld) to %s, an https:// address was expected", r->status, into.n ? into.p : "no address");
	else if (++r->redirects > REDIRECTS)
		stream_fail(r, "more than %d redirects", REDIRECTS);
	if (!r->code) {
		struct buf next = {0};
		buf_cstr(&next, to);
		buf_end_text(&next);
		buf_release(&r->moved);
		r->moved = next;
	}
	buf_release(&from);
	buf_release(&into);
	if (!r->code)
		stream_begin(r);
}

static bool is_passing(CURLcode why)
{
	return why == CURLE_PARTIAL_FILE || why == CURLE_RECV_ERROR || why == CURLE_SEND_ERROR || why == CURLE_GOT_NOTHING || why == CURLE_OPERATION_TIMEDOUT ||
	       why == CURLE_HTTP2 || why == CURLE_HTTP2_STREAM;
}

/* Once more, after a while; false where that is of no use. */
static bool stream_again(struct remote *r)
{
	if (r->offset - r->last_try_at >= PROGRESS)
		r->tries = 0;
	if (++r->tries >= TRIES || (r->begun && r->offset && !r->version[0]))
		return false;
	stream_leave(r);
	libcurl.multi_poll(r->multi, NULL, 0, BACK_OFF_MS << r->tries, NULL);
	if (!__atomic_load_n(&r->stopped, __ATOMIC_ACQUIRE))
		stream_begin(r);
	return true;
}

static void stream_lost(struct remote *r, const char *why)
{
	if (stream_again(r))
		return;
	const char *hint = r->begun && r->offset && !r->version[0] ? "; the server names no version (ETag), so that reading cannot go on there" : "";
	if (r->begun)
		stream_fail(r, "the connection was lost at byte %llu: %s%s", (unsigned long long)r->offset, why, hint);
	else
		stream_fail(r, "no answer: %s", why);
}

/* The region in which the bucket is, where it is another than was asked; as it stands in the answer to a wrong one. */
static bool takes_region(struct remote *r)
{
	const char *region = r->its_region;
	if (r->place->scheme != REMOTE_S3 || !region[0] || r->place->region[0] || strlen(region) >= sizeof r->place->region || (r->status != 301 && r->status != 400 && r->status != 307))
		return false;
	for (const char *c = region; *c; c++)
		if (!is_digit(*c) && !(*c >= 'a' && *c <= 'z') && *c != '-')
			return false;
	memcpy(r->place->region, region, strlen(region) + 1);
	return true;
}

static void stream_done(struct remote *r, CURLcode why)
{
	libcurl.easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &r->status);
	if (r->code)
		return;
	if (why == CURLE_OK && is_good(r->status) && !r->judged && !stream_judge(r))
		return;
	if (why == CURLE_OK && is_good(r->status) && !r->head && r->size && r->offset < r->size)
		why = CURLE_PARTIAL_FILE;
	if (why != CURLE_OK) {
		const char *text = r->curl_error[0] ? r->curl_error : libcurl.easy_strerror(why);
		if (is_passing(why) || (r->begun && why == CURLE_COULDNT_CONNECT))
			stream_lost(r, text);
		else
			stream_fail(r, "%s", text);
	} else if (is_good(r->status)) {
		r->ended = true;
	} else if (takes_region(r)) {
		stream_begin(r);
	} else if (r->status == 408 || r->status == 429 || r->status == 500 || (r->status >= 502 && r->status <= 504)) {
		if (!stream_again(r))
			fail_status(r);
	} else if (r->status >= 300 && r->status < 400 && r->status != 304) {
		stream_redirect(r);
	} else if (r->head) {
		r->ended = true;
	} else {
		fail_status(r);
	}
}

static int64_t stream_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Whether too little came for too long. */
static bool is_stalled(struct remote *r, int64_t waited_ns)
{
	r->waited_ms += (long)(waited_ns / 1000000);
	if (r->waited_ms < r->timeout_ms)
		return false;
	const bool stalled = r->came < LEAST_BYTES;
	r->waited_ms = 0;
	r->came = 0;
	return stalled;
}

/* Goes on until something came, or a while has passed; at once, where `want` bytes are there. */
static void stream_step(struct remote *r, size_t want)
{
	int running, left;
	if (r->paused) {
		r->paused = false;
		libcurl.easy_pause(r->easy, CURLPAUSE_CONT);
	}
	libcurl.multi_perform(r->multi, &running);
	const CURLMsg *m = libcurl.multi_info_read(r->multi, &left);
	if (m && m->msg == CURLMSG_DONE) {
		stream_done(r, m->data.result);
		return;
	}
	if (r->n - r->at >= want)
		return;
	const int64_t before = stream_now_ns();
	libcurl.multi_poll(r->multi, NULL, 0, r->timeout_ms < WAIT_MS ? (int)r->timeout_ms : WAIT_MS, NULL);
	if (is_stalled(r, stream_now_ns() - before))
		stream_lost(r, "nothing, or almost nothing, comes in the time of OPSCOPE_REMOTE_TIMEOUT");
}

/* Waits until there are bytes, or no more will come. */
static void stream_fill(void *context)
{
	struct remote *r = context;
	if (r->at == r->n)
		r->at = r->n = 0;
	while (r->at == r->n && !r->ended && !r->code) {
		if (__atomic_load_n(&r->stopped, __ATOMIC_ACQUIRE))
			stream_fail(r, "reading was stopped");
		else
			stream_step(r, 1);
	}
}

/* Reading may run on a thread of its own, which has no mem_try. */
static void stream_try(struct remote *r, void (*run)(void *context))
{
	struct mem_pool blocks = {0};
	if (mem_try(&blocks, run, r) < 0) {
		stream_fail(r, "out of memory");
		r->code = ERR_NOMEM;
	}
	mem_pool_drop(&blocks);
}

struct str remote_peek(struct remote *r, size_t n)
{
	while (r->n - r->at < n && !r->ended && !r->code) {
		/* What is there already stays: the buffer is larger than what is peeked at. */
		const size_t kept = r->n - r->at;
		memmove(r->buffer, r->buffer + r->at, kept);
		r->at = 0;
		r->n = kept;
		stream_step(r, n);
	}
	return (struct str){r->buffer + r->at, r->n - r->at < n ? r->n - r->at : n};
}

ssize_t remote_read(struct remote *r, char *p, size_t n)
{
	if (r->at == r->n)
		stream_try(r, stream_fill);
	const size_t some = r->n - r->at < n ? r->n - r->at : n;
	if (!some)
		return r->code ? -1 : 0;
	memcpy(p, r->buffer + r->at, some);
	r->at += some;
	return (ssize_t)some;
}

const char *remote_error(const struct remote *r)
{
	return r->code ? r->error : NULL;
}

uint64_t remote_bytes(const struct remote *r)
{
	return r->size;
}

long remote_status(const struct remote *r)
{
	return r->status;
}

const char *remote_version(const struct remote *r)
{
	return r->version;
}

const struct remote_place *remote_place_of(const struct remote *r)
{
	return r->place;
}

int remote_fail_status(struct remote *r, struct err *e)
{
	fail_status(r);
	return err_set(e, ERR_IO, STR_FMT ": %s", STR_ARG(r->place->name), r->error);
}

void remote_stop(struct remote *r)
{
	__atomic_store_n(&r->stopped, true, __ATOMIC_RELEASE);
	libcurl.multi_wakeup(r->multi);
}

void remote_close(struct remote *r)
{
	mem_undo_end(&r->undo);
	stream_leave(r);
	libcurl.easy_cleanup(r->easy);
	libcurl.multi_cleanup(r->multi);
	remote_ask_release(&r->ask);
	buf_release(&r->moved);
	arena_release(&r->arena);
	mem_free(r->query);
	mem_free(r->buffer);
	mem_free(r);
}

static void stream_abandon(void *r)
{
	remote_close(r);
}

static long stream_timeout_ms(void)
{
	const char *text = getenv("OPSCOPE_REMOTE_TIMEOUT");
	int64_t s = 0;
	return text && str_to_i64(str_from(text), &s) && s > 0 && s <= 3600 ? (long)s * 1000 : REMOTE_TIMEOUT_S * 1000L;
}

static struct remote *stream_new(void)
{
	struct remote *r = NEW(struct remote);
	mem_undo_begin(&r->undo, stream_abandon, r);
	r->timeout_ms = stream_timeout_ms();
	r->buffer = mem_alloc(BUFFER, 1);
	r->easy = libcurl.easy_init();
	r->multi = libcurl.multi_init();
	if (!r->easy || !r->multi)
		mem_fail(0);
	return r;
}

/* Until the first answer, whose bytes may follow. */
static struct remote *stream_open(struct remote *r, struct err *e)
{
	stream_begin(r);
	while (!r->begun && !r->ended && !r->code)
		stream_step(r, 1);
	if (!r->code) {
		mem_undo_end(&r->undo);
		if (!r->query && r->begun)
			remote_note_state(r->place->name.p, (struct remote_state){r->size, hash_bytes(r->version, strlen(r->version))});
		return r;
	}
	err_set(e, r->code, STR_FMT ": %s", STR_ARG(r->place->name), r->error);
	remote_close(r);
	return NULL;
}

struct remote *remote_start(struct remote_place *at, const char *query, bool head, struct err *e)
{
	if (remote_curl_load(e) < 0) {
		err_prefix(e, STR_FMT, STR_ARG(at->name));
		return NULL;
	}
	struct remote *r = stream_new();
	r->place = at;
	r->head = head;
	if (query)
		r->query = memcpy(mem_alloc(strlen(query) + 1, 1), query, strlen(query) + 1);
	return stream_open(r, e);
}

struct remote *remote_open(const char *path, struct err *e)
{
	if (remote_curl_load(e) < 0) {
		err_prefix(e, "%s", remote_name(path));
		return NULL;
	}
	struct remote *r = stream_new();
	r->place = &r->own_place;
	if (remote_place(r->place, path, &r->arena, e) < 0) {
		remote_close(r);
		return NULL;
	}
	if (r->place->scheme != REMOTE_WEB && !r->place->key.n) {
		err_set(e, ERR_IO, STR_FMT ": is a bucket, a file was expected", STR_ARG(r->place->name));
		remote_close(r);
		return NULL;
	}
	return stream_open(r, e);
}
