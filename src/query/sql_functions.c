#include "query/sql_functions.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/str.h"

/* p is NULL for NULL, and when memory is short. */
static struct str sql_functions_text_of(sqlite3_value *v)
{
	const char *p = (const char *)sqlite3_value_text(v);
	return (struct str){p, p ? (size_t)sqlite3_value_bytes(v) : 0};
}

static struct str blob_of(sqlite3_value *v)
{
	const char *p = sqlite3_value_blob(v);
	return (struct str){p, (size_t)sqlite3_value_bytes(v)};
}

/* Whether the byte continues the UTF-8 character of the byte before. */
static bool continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* The number of the byte or, in text, of the character at which `part` begins, from 1; 0 = nowhere. */
static int64_t sql_functions_place_of(struct str whole, struct str part, bool text)
{
	if (!part.n)
		return 1;
	if (part.n > whole.n)
		return 0;
	/* A part that begins in the middle of a character is found only at the beginning of a text that begins in the same way. */
	if (text && continues(*part.p))
		return memcmp(whole.p, part.p, part.n) == 0;
	const char *at = memmem(whole.p, whole.n, part.p, part.n);
	if (!at)
		return 0;
	if (!text)
		return at - whole.p + 1;
	int64_t n = 1;
	for (const char *p = whole.p + 1; p <= at; p++)
		n += !continues(*p);
	return n;
}

static void instr(sqlite3_context *x, int n, sqlite3_value **v)
{
	int whole_type = sqlite3_value_type(v[0]), part_type = sqlite3_value_type(v[1]);
	if (whole_type == SQLITE_NULL || part_type == SQLITE_NULL)
		return;
	bool text = whole_type != SQLITE_BLOB || part_type != SQLITE_BLOB;
	struct str whole = text ? sql_functions_text_of(v[0]) : blob_of(v[0]), part = text ? sql_functions_text_of(v[1]) : blob_of(v[1]);
	if ((!whole.p && (text || whole.n)) || (!part.p && (text || part.n)))
		sqlite3_result_error_nomem(x);
	else
		sqlite3_result_int64(x, sql_functions_place_of(whole, part, text));
}

/* Copies `whole` with each `part` replaced; out may be NULL. Gives the length. */
static uint64_t put_replaced(struct str whole, struct str part, struct str by, char *out)
{
	uint64_t n = 0;
	for (;;) {
		const char *at = memmem(whole.p, whole.n, part.p, part.n);
		size_t before = at ? (size_t)(at - whole.p) : whole.n;
		if (out)
			memcpy(out + n, whole.p, before);
		n += before;
		if (!at)
			return n;
		if (out)
			memcpy(out + n, by.p, by.n);
		n += by.n;
		whole = (struct str){at + part.n, whole.n - before - part.n};
	}
}

static void replace(sqlite3_context *x, int n, sqlite3_value **v)
{
	struct str whole = sql_functions_text_of(v[0]), part = sql_functions_text_of(v[1]), by;
	if (!whole.p || !part.p)
		return;
	if (!*part.p) {
		sqlite3_result_value(x, v[0]);
		return;
	}
	by = sql_functions_text_of(v[2]);
	if (!by.p)
		return;
	uint64_t length = put_replaced(whole, part, by, NULL);
	if (length > (uint64_t)sqlite3_limit(sqlite3_context_db_handle(x), SQLITE_LIMIT_LENGTH, -1)) {
		sqlite3_result_error_toobig(x);
		return;
	}
	char *out = sqlite3_malloc64(length + 1);
	if (!out) {
		sqlite3_result_error_nomem(x);
		return;
	}
	put_replaced(whole, part, by, out);
	sqlite3_result_text64(x, out, length, sqlite3_free, SQLITE_UTF8);
}

/* The characters to trim: by length and bytes, each once. */
struct trimmed {
	struct trimmed_char {
		struct str s;
		size_t place;     /* place in the given list: of two characters that fit, the first is taken */
		size_t same;      /* of the first character of a length: how many characters have that length */
	} *c;
	size_t n;
};

static int sql_functions_by_bytes(const void *a, const void *b)
{
	struct str x = ((const struct trimmed_char *)a)->s, y = ((const struct trimmed_char *)b)->s;
	if (x.n != y.n)
		return x.n < y.n ? -1 : 1;
	return memcmp(x.p, y.p, x.n);
}

static int by_bytes_and_place(const void *a, const void *b)
{
	int c = sql_functions_by_bytes(a, b);
	size_t x = ((const struct trimmed_char *)a)->place, y = ((const struct trimmed_char *)b)->place;
	return c ? c : x < y ? -1 : x > y;
}

/* Reads the list, which ends at a NUL, as SQLite's does. False when memory is short. The caller frees t->c. */
static bool trimmed_read(struct trimmed *t, const char *list)
{
	size_t n = strlen(list), kept = 0;
	*t = (struct trimmed){.c = sqlite3_malloc64((n + 1) * sizeof *t->c)};
	if (!t->c)
		return false;
	for (const char *p = list; *p; t->n++) {
		const char *begin = p;
		if ((unsigned char)*p++ >= 0xc0)
			while (continues(*p))
				p++;
		t->c[t->n] = (struct trimmed_char){.s = {begin, (size_t)(p - begin)}, .place = t->n};
	}
	qsort(t->c, t->n, sizeof *t->c, by_bytes_and_place);
	for (size_t i = 0; i < t->n; i++)
		if (!kept || sql_functions_by_bytes(&t->c[kept - 1], &t->c[i]) != 0)
			t->c[kept++] = t->c[i];
	t->n = kept;
	for (size_t i = 0, first = 0; i < kept; i++) {
		if (t->c[i].s.n != t->c[first].s.n)
			first = i;
		t->c[first].same++;
	}
	return true;
}

/* How many bytes one character takes off the left or the right end; 0 = none fits. */
static size_t taken(const struct trimmed *t, struct str s, bool left)
{
	const struct trimmed_char *best = NULL;
	/* Valid UTF-8 has characters of four lengths. */
	for (const struct trimmed_char *k = t->c; k < t->c + t->n && k->s.n <= s.n; k += k->same) {
		size_t n = k->s.n;
		struct trimmed_char end = {.s = {left ? s.p : s.p + s.n - n, n}};
		const struct trimmed_char *found = bsearch(&end, k, k->same, sizeof end, sql_functions_by_bytes);
		if (found && (!best || found->place < best->place))
			best = found;
	}
	return best ? best->s.n : 0;
}

enum { LEFT = 1, RIGHT = 2 };

static void trim(sqlite3_context *x, int n, sqlite3_value **v)
{
	const int *ends = sqlite3_user_data(x);
	struct str s = sql_functions_text_of(v[0]);
	const char *list = n == 2 ? sql_functions_text_of(v[1]).p : " ";
	struct trimmed t;
	if (!s.p || !list)
		return;
	if (!trimmed_read(&t, list)) {
		sqlite3_result_error_nomem(x);
		return;
	}
	for (size_t k; *ends & LEFT && (k = taken(&t, s, true));)
		s = (struct str){s.p + k, s.n - k};
	for (size_t k; *ends & RIGHT && (k = taken(&t, s, false));)
		s.n -= k;
	sqlite3_free(t.c);
	sqlite3_result_text64(x, s.p, s.n, SQLITE_TRANSIENT, SQLITE_UTF8);
}

int sql_functions_add(sqlite3 *db)
{
	static const int left = LEFT, right = RIGHT, both = LEFT | RIGHT;
	static const struct {
		const char *name;
		int n_args;
		const int *data;
		void (*run)(sqlite3_context *x, int n, sqlite3_value **v);
	} functions[] = {
		{"instr", 2, NULL, instr}, {"replace", 3, NULL, replace}, {"trim", 1, &both, trim},   {"trim", 2, &both, trim},
		{"ltrim", 1, &left, trim}, {"ltrim", 2, &left, trim},     {"rtrim", 1, &right, trim}, {"rtrim", 2, &right, trim},
	};
	int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
	int rc = SQLITE_OK;
	for (size_t i = 0; i < sizeof functions / sizeof functions[0] && rc == SQLITE_OK; i++)
		rc = sqlite3_create_function_v2(db, functions[i].name, functions[i].n_args, flags, (void *)(uintptr_t)functions[i].data, functions[i].run, NULL, NULL,
		                                NULL);
	return rc;
}
