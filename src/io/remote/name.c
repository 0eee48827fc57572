/* Which paths are addresses, what they are called, and what was last heard of them. */
#include <pthread.h>

#include "base/hash.h"
#include "base/mem.h"
#include "io/remote/name.h"

bool remote_is_loopback(struct str url)
{
	if (!str_skip(&url, STR("http://")))
		return false;
	static const char *const hosts[] = {"localhost", "127.0.0.1", "[::1]"};
	for (size_t i = 0; i < url.n && url.p[i] != '/'; i++)
		if (url.p[i] == '@') /* what stands before is a user's name */
			url = (struct str){url.p + i + 1, url.n - i - 1}, i = 0;
	for (unsigned i = 0; i < sizeof hosts / sizeof *hosts; i++) {
		struct str rest = url;
		if (str_skip(&rest, str_from(hosts[i])) && (!rest.n || *rest.p == ':' || *rest.p == '/'))
			return true;
	}
	return false;
}

bool remote_is(const char *path)
{
	static const char *const schemes[] = {"https://", "http://", "s3://", "gs://", "az://"};
	struct str s = str_from(path);
	for (unsigned i = 0; i < sizeof schemes / sizeof *schemes; i++)
		if (str_starts(s, str_from(schemes[i])))
			return true;
	return false;
}

/* What is known of a name. Never freed: names are handed out for good. */
struct known {
	struct known *next;
	const char *name, *given; /* given == NULL: nothing is hidden */
	struct remote_state state;
	bool has_state;
};
enum { KNOWN_SLOTS = 1 << 14 };
static struct known *remote_known[KNOWN_SLOTS];
static pthread_mutex_t remote_known_lock = PTHREAD_MUTEX_INITIALIZER;

static struct known **known_slot(struct str name)
{
	return &remote_known[hash_bytes(name.p, name.n) % KNOWN_SLOTS];
}

/* Locked. */
static struct known *known_of(struct str name)
{
	struct known *k = *known_slot(name);
	while (k && !str_eqc(name, k->name))
		k = k->next;
	return k;
}

static const char *known_text(struct str s)
{
	char *copy = mem_alloc(s.n + 1, 1);
	memcpy(copy, s.p, s.n);
	copy[s.n] = 0;
	mem_disown(copy);
	return copy;
}

/* Makes what known_enter will enter. Not locked, since memory may run out. */
static struct known *known_new(struct str name, const char *given)
{
	const char *own_name = known_text(name), *own_given = given ? known_text(str_from(given)) : NULL;
	struct known *k = NEW(struct known);
	mem_disown(k);
	*k = (struct known){.name = own_name, .given = own_given};
	return k;
}

static void known_drop(struct known *k)
{
	mem_free((void *)(uintptr_t)k->name);
	mem_free((void *)(uintptr_t)k->given);
	mem_free(k);
}

static void known_enter(struct known *k)
{
	struct known **slot = known_slot(str_from(k->name));
	k->next = *slot;
	*slot = k;
}

size_t remote_query_at(struct str url)
{
	size_t at = url.n;
	if (str_starts(url, STR("s3://")) || str_starts(url, STR("gs://")))
		return at;
	if (str_starts(url, STR("az://"))) {
		const char *query = memrchr(url.p, '?', url.n);
		const size_t begins = query ? (size_t)(query - url.p) : at;
		return str_has((struct str){url.p + begins, url.n - begins}, STR("sig=")) ? begins : at;
	}
	for (at = 0; at < url.n && url.p[at] != '?' && url.p[at] != '#'; at++)
		;
	return at;
}

static void put_clean(struct buf *b, struct str url)
{
	const size_t scheme = (size_t)(str_find(url, STR("://")) + 3), end = remote_query_at(url);
	size_t host = scheme;
	if (str_starts(url, STR("http")))
		for (size_t i = scheme; i < end && url.p[i] != '/'; i++)
			if (url.p[i] == '@')
				host = i + 1;
	buf_put(b, url.p, scheme);
	buf_put(b, url.p + host, end - host);
}

const char *remote_name(const char *path)
{
	struct str given = str_from(path);
	struct buf name = {0};
	if (!remote_is(path))
		return path;
	pthread_mutex_lock(&remote_known_lock);
	const struct known *is_name = known_of(given);
	pthread_mutex_unlock(&remote_known_lock);
	if (is_name)
		return is_name->name;
	put_clean(&name, given);
	if (str_eq(buf_view(&name), given)) {
		buf_release(&name);
		return path;
	}
	const size_t plain = name.n;
	for (unsigned i = 1;; i++) {
		name.n = plain;
		if (i > 1)
			buf_printf(&name, "#%u", i);
		struct known *fresh = known_new(buf_view(&name), path);
		pthread_mutex_lock(&remote_known_lock);
		struct known *k = known_of(buf_view(&name));
		if (!k)
			known_enter(k = fresh);
		pthread_mutex_unlock(&remote_known_lock);
		if (k != fresh)
			known_drop(fresh);
		if (k->given && str_eqc(given, k->given)) {
			buf_release(&name);
			return k->name;
		}
	}
}

const char *remote_given(const char *name)
{
	pthread_mutex_lock(&remote_known_lock);
	const struct known *k = known_of(str_from(name));
	pthread_mutex_unlock(&remote_known_lock);
	return k && k->given ? k->given : name;
}

const char *remote_note_state(const char *name, struct remote_state s)
{
	struct known *fresh = known_new(str_from(name), NULL);
	pthread_mutex_lock(&remote_known_lock);
	struct known *k = known_of(str_from(name));
	if (!k)
		known_enter(k = fresh);
	k->state = s;
	k->has_state = true;
	pthread_mutex_unlock(&remote_known_lock);
	if (k != fresh)
		known_drop(fresh);
	return k->name;
}

bool remote_state(const char *path, struct remote_state *s)
{
	const char *name = remote_name(path);
	pthread_mutex_lock(&remote_known_lock);
	const struct known *k = known_of(str_from(name));
	const bool has = k && k->has_state;
	if (has)
		*s = k->state;
	pthread_mutex_unlock(&remote_known_lock);
	return has;
}
