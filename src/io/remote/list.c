/* Folders: what lies below a prefix. S3 and GCS answer as ListObjectsV2 does, Azure as List Blobs. */
#include "base/hash.h"
#include "base/mem.h"
#include "io/remote/own.h"

enum { PAGE_MOST = 32 << 20 };

/* The text of the first <name>...</name> in *from, and cuts *from behind it; false where there is none. */
static bool xml_next(struct str *from, const char *name, struct str *text)
{
	struct buf open = {0}, close = {0};
	buf_printf(&open, "<%s>", name);
	buf_printf(&close, "</%s>", name);
	ptrdiff_t at = str_find(*from, buf_view(&open)), end = -1;
	if (at >= 0) {
		*text = (struct str){from->p + at + open.n, from->n - (size_t)at - open.n};
		end = str_find(*text, buf_view(&close));
	}
	if (end >= 0) {
		text->n = (size_t)end;
		*from = (struct str){text->p + text->n, (size_t)(from->p + from->n - text->p) - text->n};
	}
	buf_release(&open);
	buf_release(&close);
	return end >= 0;
}

/* The same of one that is asked for anywhere in the element. */
static bool xml_in(struct str element, const char *name, struct str *text)
{
	return xml_next(&element, name, text);
}

static void put_code_point(struct buf *b, int64_t c)
{
	if (c < 0x80) {
		buf_char(b, (char)c);
	} else if (c < 0x800) {
		buf_char(b, (char)(0xc0 | c >> 6));
		buf_char(b, (char)(0x80 | (c & 63)));
	} else if (c < 0x10000) {
		buf_char(b, (char)(0xe0 | c >> 12));
		buf_char(b, (char)(0x80 | (c >> 6 & 63)));
		buf_char(b, (char)(0x80 | (c & 63)));
	} else {
		buf_char(b, (char)(0xf0 | c >> 18));
		buf_char(b, (char)(0x80 | (c >> 12 & 63)));
		buf_char(b, (char)(0x80 | (c >> 6 & 63)));
		buf_char(b, (char)(0x80 | (c & 63)));
	}
}

static bool put_number(struct buf *b, struct str entity)
{
	int64_t c = 0;
	const bool hex = entity.n > 1 && entity.p[1] == 'x';
	if (!entity.n || entity.p[0] != '#')
		return false;
	for (size_t i = hex ? 2 : 1; i < entity.n; i++) {
		const char *digits = "0123456789abcdef0123456789ABCDEF", *d = entity.p[i] ? strchr(digits, entity.p[i]) : NULL;
		d = d ? d : entity.p[i] ? strchr(digits + 16, entity.p[i]) : NULL;
		if (!d || (!hex && !is_digit(entity.p[i])) || c > 0x10ffff)
			return false;
		c = c * (hex ? 16 : 10) + (d - digits) % 16;
	}
	if (c > 0x10ffff || !c)
		return false;
	put_code_point(b, c);
	return true;
}

/* A text without its entities. */
static void xml_put_text(struct buf *b, struct str s)
{
	static const struct {
		const char *name;
		char is;
	} entities[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
	for (size_t i = 0; i < s.n; i++) {
		const char *end = s.p[i] == '&' ? memchr(s.p + i, ';', s.n - i) : NULL;
		struct str entity = {s.p + i + 1, end ? (size_t)(end - s.p) - i - 1 : 0};
		bool known = end && put_number(b, entity);
		for (unsigned k = 0; end && !known && k < sizeof entities / sizeof *entities; k++)
			if (str_eqc(entity, entities[k].name)) {
				buf_char(b, entities[k].is);
				known = true;
			}
		if (known)
			i += entity.n + 1;
		else
			buf_char(b, s.p[i]);
	}
}

/* One walk over a folder. */
struct remote_listing {
	struct remote_place at;
	struct buf prefix;      /* of the keys: ends in '/', or is empty */
	struct buf marker;      /* of the next page, as the server gave it; n == 0: there is none */
	struct buf name;
	unsigned page_keys;     /* at most as many a page; 0 = as many as the server gives */
	uint64_t n;
	remote_list_fn *fn;     /* NULL: they are counted */
	void *context;
};

static int list_get(struct remote_listing *l, struct buf *page, struct err *e)
{
	const bool azure = l->at.scheme == REMOTE_AZ;
	struct buf query = {0};
	buf_cstr(&query, azure ? "comp=list" : "");
	if (l->marker.n) {
		buf_cstr(&query, azure ? "&marker=" : "continuation-token=");
		remote_put_encoded(&query, buf_view(&l->marker), false);
		buf_cstr(&query, azure ? "" : "&");
	}
	buf_cstr(&query, azure ? "" : "list-type=2");
	if (l->page_keys)
		buf_printf(&query, azure ? "&maxresults=%u" : "&max-keys=%u", l->page_keys);
	buf_cstr(&query, "&prefix=");
	remote_put_encoded(&query, buf_view(&l->prefix), false);
	buf_cstr(&query, azure ? "&restype=container" : "");
	buf_end_text(&query);
	struct remote *r = remote_start(&l->at, query.p, false, e);
	buf_release(&query);
	if (!r)
		return -1;
	ssize_t got;
	enum { PIECE = 64 << 10 };
	while ((got = remote_read(r, buf_room(page, PIECE), PIECE)) > 0 && page->n <= PAGE_MOST)
		page->n += (size_t)got;
	int rc = 0;
	if (got < 0)
		rc = err_set(e, ERR_IO, STR_FMT ": %s", STR_ARG(l->at.name), remote_error(r));
	else if (page->n > PAGE_MOST)
		rc = err_set(e, ERR_LIMIT, STR_FMT ": a page of the list of its files is larger than %d bytes", STR_ARG(l->at.name), PAGE_MOST);
	remote_close(r);
	return rc;
}

/* The name of a file of the folder, whose size and version are noted; never freed. A token that stood behind the folder's address is the file's, too. */
static const char *list_name(struct remote_listing *l, struct str below, uint64_t bytes, struct str version)
{
	struct str folder = str_from(remote_given(l->at.name.p));
	folder.n = remote_query_at(folder);
	struct buf given = {0};
	buf_str(&given, folder);
	if (given.p[given.n - 1] != '/')
		buf_char(&given, '/');
	if (str_starts(folder, STR("http")))
		remote_put_encoded(&given, below, true);
	else
		buf_str(&given, below);
	if (l->at.secret.n)
		buf_printf(&given, "?" STR_FMT, STR_ARG(l->at.secret));
	buf_end_text(&given);
	const char *name = remote_note_state(remote_name(given.p), (struct remote_state){bytes, hash_bytes(version.p, version.n)});
	buf_release(&given);
	return name;
}

static void list_one(struct remote_listing *l, struct str element)
{
	const bool azure = l->at.scheme == REMOTE_AZ;
	struct str key, size, version;
	int64_t bytes = 0;
	if (!xml_in(element, azure ? "Name" : "Key", &key))
		return;
	l->name.n = 0;
	xml_put_text(&l->name, key);
	struct str below = buf_view(&l->name);
	/* A folder may be a file itself, of no bytes, whose name ends in '/'. */
	if (!str_skip(&below, buf_view(&l->prefix)) || !below.n || below.p[below.n - 1] == '/' || memchr(below.p, 0, below.n))
		return;
	if (!xml_in(element, azure ? "Content-Length" : "Size", &size) || !str_to_i64(size, &bytes) || bytes < 0)
		bytes = 0;
	l->n++;
	if (!l->fn)
		return;
	if (!xml_in(element, azure ? "Etag" : "ETag", &version))
		version = STR("");
	l->fn(l->context, list_name(l, below, (uint64_t)bytes, version), below, (uint64_t)bytes);
}

static int list_page(struct remote_listing *l, struct err *e)
{
	const bool azure = l->at.scheme == REMOTE_AZ;
	struct buf page = {0};
	struct str element, marker;
	int rc = list_get(l, &page, e);
	struct str rest = buf_view(&page);
	if (rc == 0 && !str_has(rest, azure ? STR("EnumerationResults") : STR("ListBucketResult")))
		rc = err_set(e, ERR_FORMAT, STR_FMT ": the server's answer is no list of files", STR_ARG(l->at.name));
	l->marker.n = 0;
	if (rc == 0 && xml_in(rest, azure ? "NextMarker" : "NextContinuationToken", &marker))
		xml_put_text(&l->marker, marker);
	while (rc == 0 && xml_next(&rest, azure ? "Blob" : "Contents", &element)) {
		list_one(l, element);
		if (l->n > REMOTE_LIST_MOST)
			rc = err_set(e, ERR_LIMIT, STR_FMT ": more than %d files lie there: name a folder in it", STR_ARG(l->at.name), REMOTE_LIST_MOST);
	}
	buf_release(&page);
	return rc;
}

static void list_release(struct remote_listing *l)
{
	buf_release(&l->prefix);
	buf_release(&l->marker);
	buf_release(&l->name);
}

static void list_set_prefix(struct remote_listing *l)
{
	buf_str(&l->prefix, l->at.key);
	if (l->prefix.n && l->prefix.p[l->prefix.n - 1] != '/')
		buf_char(&l->prefix, '/');
}

int remote_list(const char *folder, remote_list_fn *fn, void *context, struct err *e)
{
	struct arena a = {0};
	struct remote_listing l = {.fn = fn, .context = context};
	int rc = remote_place(&l.at, folder, &a, e);
	if (rc == 0)
		list_set_prefix(&l);
	do
		rc = rc == 0 ? list_page(&l, e) : rc;
	while (rc == 0 && l.marker.n);
	list_release(&l);
	arena_release(&a);
	return rc;
}

/* Whether any file lies below. */
static int list_any(struct remote_place *at, struct err *e)
{
	struct remote_listing l = {.at = *at, .page_keys = 1};
	list_set_prefix(&l);
	int rc = list_page(&l, e);
	rc = rc < 0 ? rc : l.n > 0 || l.marker.n > 0;
	list_release(&l);
	return rc;
}

int remote_is_folder(const char *path, struct err *e)
{
	struct arena a = {0};
	struct remote_place at;
	int rc = remote_place(&at, path, &a, e);
	const bool folder = rc == 0 && (at.scheme == REMOTE_WEB ? str_ends(at.name, STR("/")) : !at.key.n || str_ends(at.key, STR("/")));
	if (folder && at.scheme == REMOTE_WEB) {
		rc = err_set(e, ERR_USAGE, STR_FMT ": a web server does not list a folder: the address of a file was expected", STR_ARG(at.name));
	} else if (folder) {
		rc = 1;
	} else if (rc == 0 && at.scheme != REMOTE_WEB) {
		struct remote *r = remote_start(&at, NULL, true, e);
		const long status = r ? remote_status(r) : 0;
		rc = r ? 0 : -1;
		if (status == 404) {
			rc = list_any(&at, e);
			rc = rc < 0 || rc > 0 ? rc : err_set(e, ERR_IO, STR_FMT ": there is no such file or folder (404)", STR_ARG(at.name));
		} else if (status >= 300) {
			rc = remote_fail_status(r, e);
		}
		if (r)
			remote_close(r);
	}
	arena_release(&a);
	return rc;
}
