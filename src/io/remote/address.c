/* Addresses, taken apart. */
#include "io/remote/own.h"

void remote_put_encoded(struct buf *b, struct str s, bool slash)
{
	for (size_t i = 0; i < s.n; i++) {
		const char c = s.p[i];
		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || (c && strchr("-._~", c)) || (slash && c == '/'))
			buf_char(b, c);
		else
			buf_printf(b, "%%%02X", (unsigned)(uint8_t)c);
	}
}

static int hex_digit(char c)
{
	return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static struct str address_decoded(struct str s, struct arena *a)
{
	char *p = arena_bytes(a, s.n + 1);
	size_t n = 0;
	for (size_t i = 0; i < s.n; i++) {
		const bool coded = s.p[i] == '%' && i + 2 < s.n && hex_digit(s.p[i + 1]) >= 0 && hex_digit(s.p[i + 2]) >= 0;
		p[n++] = coded ? (char)(hex_digit(s.p[i + 1]) * 16 + hex_digit(s.p[i + 2])) : s.p[i];
		i += coded ? 2 : 0;
	}
	return (struct str){p, n};
}

/* Cuts *s at the first `c`, and gives what follows. */
static struct str address_cut(struct str *s, char c)
{
	const char *at = s->n ? memchr(s->p, c, s->n) : NULL;
	if (!at)
		return (struct str){"", 0};
	struct str behind = {at + 1, s->n - (size_t)(at + 1 - s->p)};
	s->n = (size_t)(at - s->p);
	return behind;
}

/* Cuts the query off an address, and gives it without '?' and fragment. */
static struct str address_query(struct str *url)
{
	const size_t at = remote_query_at(*url);
	struct str query = {url->p + at, url->n - at};
	url->n = at;
	address_cut(&query, '#');
	str_skip(&query, STR("?"));
	return query;
}

int remote_place(struct remote_place *at, const char *path, struct arena *a, struct err *e)
{
	static const struct {
		const char *begins;
		enum remote_scheme scheme;
	} schemes[] = {{"s3://", REMOTE_S3}, {"gs://", REMOTE_GS}, {"az://", REMOTE_AZ}};
	const struct str blob_host = STR(".blob.core.windows.net");
	const char *name = remote_name(path);
	const struct str given = str_from(remote_given(name));
	struct str rest = given;
	*at = (struct remote_place){.scheme = REMOTE_WEB, .name = arena_str(a, str_from(name)), .secret = arena_str(a, rest)};
	for (unsigned i = 0; i < sizeof schemes / sizeof *schemes; i++)
		if (str_skip(&rest, str_from(schemes[i].begins)))
			at->scheme = schemes[i].scheme;
	struct str whole = given;
	if (str_starts(given, STR("https://"))) {
		struct str query = address_query(&whole), url = whole;
		str_skip(&url, STR("https://"));
		struct str blob = address_cut(&url, '/');
		if (str_ends(url, blob_host) && !memchr(url.p, '@', url.n)) {
			at->scheme = REMOTE_AZ;
			at->account = arena_str(a, (struct str){url.p, url.n - blob_host.n});
			at->secret = arena_str(a, query);
			rest = address_decoded(blob, a);
		}
	} else if (at->scheme == REMOTE_AZ) {
		at->secret = arena_str(a, address_query(&whole));
		str_skip(&whole, STR("az://"));
		rest = whole;
	}
	if (at->scheme == REMOTE_WEB && str_starts(given, STR("http://")) && !remote_is_loopback(given))
		return err_set(e, ERR_USAGE, "%s: anyone on the way could read and change it: an https:// address was expected", name);
	if (at->scheme == REMOTE_WEB)
		return 0;
	at->key = arena_str(a, address_cut(&rest, '/'));
	at->bucket = arena_str(a, rest);
	if (at->scheme != REMOTE_AZ)
		at->secret = (struct str){"", 0};
	bool sound = at->bucket.n > 0;
	for (size_t i = 0; i < at->bucket.n; i++)
		sound &= is_digit(at->bucket.p[i]) || strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-._$", at->bucket.p[i]) != NULL;
	return sound ? 0 : err_set(e, ERR_USAGE, "%s: the name of a %s was expected behind the \"//\"", name, at->scheme == REMOTE_AZ ? "container" : "bucket");
}
