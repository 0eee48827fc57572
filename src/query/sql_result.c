#include "query/sql_result.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"

/* A value as SQLite gave it; text and blobs in the table's arena. */
struct value {
	int type;
	union cell v;
};

struct values {
	struct value *v;
	size_t n, cap;
};

static struct str sql_result_hex(struct arena *a, const unsigned char *p, size_t n)
{
	static const char digit[] = "0123456789abcdef";
	char *text = arena_bytes(a, 2 * n + 1);
	for (size_t i = 0; i < n; i++) {
		text[2 * i] = digit[p[i] >> 4];
		text[2 * i + 1] = digit[p[i] & 15];
	}
	text[2 * n] = 0;
	return (struct str){text, 2 * n};
}

/* SQLITE_OK, or SQLITE_NOMEM where SQLite had no memory for the text or the blob. */
static int sql_result_take(sqlite3_stmt *st, int c, struct arena *a, struct value *out)
{
	struct value x = {.type = sqlite3_column_type(st, c)};
	switch (x.type) {
	case SQLITE_INTEGER:
		x.v.i = sqlite3_column_int64(st, c);
		break;
	case SQLITE_FLOAT:
		x.v.f = sqlite3_column_double(st, c);
		break;
	case SQLITE_TEXT: {
		const char *p = (const char *)sqlite3_column_text(st, c);
		if (!p)
			return SQLITE_NOMEM;
		x.v.s = arena_str(a, (struct str){p, (size_t)sqlite3_column_bytes(st, c)});
		break;
	}
	case SQLITE_BLOB: {
		const void *p = sqlite3_column_blob(st, c);
		int n = sqlite3_column_bytes(st, c);
		if (!p && (n || sqlite3_errcode(sqlite3_db_handle(st)) == SQLITE_NOMEM))
			return SQLITE_NOMEM;
		x.v.s = sql_result_hex(a, p, (size_t)n);
		break;
	}
	}
	*out = x;
	return SQLITE_OK;
}

/* Types of values that a column has had so far. */
struct column_values {
	bool text, real, whole;
};

static void column_note(struct column_values *c, int type)
{
	c->text |= type == SQLITE_TEXT || type == SQLITE_BLOB;
	c->real |= type == SQLITE_FLOAT;
	c->whole |= type == SQLITE_INTEGER;
}

static enum cell_type column_type(const struct column_values *c)
{
	return c->text || !(c->real || c->whole) ? CELL_STR : c->real ? CELL_F64 : CELL_I64;
}

/* Whether a value of this type leaves the type of the column as it is. */
static bool column_fits(const struct column_values *c, int type)
{
	struct column_values with = *c;
	column_note(&with, type);
	return column_type(&with) == column_type(c);
}

static enum unit sql_result_unit_of(struct str id, enum cell_type type)
{
	static const struct { const char *suffix; enum unit unit; } units[] = {
		{"start_ns", UNIT_TIME_NS}, {"end_ns", UNIT_TIME_NS}, {"time_ns", UNIT_NS}, {"_ns", UNIT_NS},
		{"_bytes", UNIT_BYTES},     {"_pct", UNIT_PERCENT},   {"_flops", UNIT_FLOPS},
	};
	if (type == CELL_STR)
		return UNIT_NONE;
	if (str_eq(id, STR("time_ns")) && type == CELL_I64)
		return UNIT_TIME_NS;
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
		if (str_ends(id, str_from(units[i].suffix)))
			return units[i].unit == UNIT_TIME_NS && type != CELL_I64 ? UNIT_NS : units[i].unit;
	return str_eq(id, STR("bytes")) ? UNIT_BYTES : UNIT_NONE;
}

static bool has_id(const struct table *t, const char *id)
{
	for (unsigned c = 0; c < t->n_columns; c++)
		if (strcmp(t->data[c].col.id, id) == 0)
			return true;
	return false;
}

/* An id that no column has yet. Of columns with one name, the second gets "name:1", as in a table that SQLite makes of a query. */
static const char *sql_result_new_id(struct table *t, const char *name)
{
	unsigned n = 0;
	for (unsigned c = 0; c < t->n_columns; c++)
		n += strcmp(t->data[c].col.title, name) == 0;
	const char *id = n ? arena_printf(&t->arena, "%s:%u", name, n).p : name;
	while (has_id(t, id))
		id = arena_printf(&t->arena, "%s:%u", name, ++n).p;
	return id;
}

static void sql_result_add_columns(sqlite3_stmt *st, const struct column_values *seen, struct table *out)
{
	unsigned n = (unsigned)sqlite3_column_count(st);
	for (unsigned c = 0; c < n; c++) {
		/* A query may name a column with any bytes: the title must be safe for a terminal. */
		struct buf safe = {0};
		utf8_put_safe(&safe, str_from(sqlite3_column_name(st, (int)c)));
		struct str id = arena_str(&out->arena, buf_view(&safe));
		buf_release(&safe);
		enum cell_type type = column_type(&seen[c]);
		TABLE_COLUMN(out, .id = sql_result_new_id(out, id.p), .title = id.p, .help = "column of the query", .type = type,
		             .unit = sql_result_unit_of(id, type));
	}
}

static void sql_result_set_cell(struct table *out, unsigned c, const struct value *x)
{
	enum cell_type want = out->data[c].col.type;
	bool is_text = x->type == SQLITE_TEXT || x->type == SQLITE_BLOB;
	if (x->type == SQLITE_NULL)
		return;
	if (want == CELL_I64)
		table_set_i64(out, c, x->v.i);
	else if (want == CELL_F64)
		table_set_f64(out, c, x->type == SQLITE_INTEGER ? (double)x->v.i : x->v.f);
	else if (is_text)
		table_set_str(out, c, x->v.s);
	else if (x->type == SQLITE_INTEGER)
		table_set_fmt(out, c, "%lld", (long long)x->v.i);
	else
		table_set_fmt(out, c, "%.15g", x->v.f);
}

static bool sql_result_has_names(sqlite3_stmt *st)
{
	for (int c = 0; c < sqlite3_column_count(st); c++)
		if (!sqlite3_column_name(st, c))
			return false;
	return true;
}

/* The most that is held at once: the cells and their text; besides, first the values that the cells come from, later the text that is written. */
static uint64_t sql_result_bytes_of(const struct values *all, const struct arena *text)
{
	enum { WRITTEN = 12 }; /* bytes of a written number, on average */
	uint64_t n = all->n, values = n * sizeof *all->v, written = n * WRITTEN + text->bytes;
	return n * (sizeof(union cell) + sizeof(uint8_t)) + text->bytes + (values > written ? values : written);
}

static void sql_result_fill(sqlite3_stmt *st, const struct values *all, struct table *out)
{
	size_t n_columns = (size_t)sqlite3_column_count(st);
	struct column_values *seen = NEW_ARRAY(n_columns, struct column_values);
	for (size_t i = 0; i < all->n; i++)
		column_note(&seen[i % n_columns], all->v[i].type);
	sql_result_add_columns(st, seen, out);
	for (size_t i = 0; i < all->n; i++) {
		if (i % n_columns == 0)
			table_row(out);
		sql_result_set_cell(out, (unsigned)(i % n_columns), &all->v[i]);
	}
	mem_free(seen);
}

int sql_result(sqlite3_stmt *st, bool (*fits)(void *context, uint64_t bytes), void *context, struct table *out)
{
	struct values all = {0};
	size_t n_columns = (size_t)sqlite3_column_count(st);
	uint64_t text = 0; /* bytes of text at the last question */
	int rc = sql_result_has_names(st) ? SQLITE_ROW : SQLITE_NOMEM;
	while (rc == SQLITE_ROW && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		MEM_GROW(all.v, all.cap, all.n + n_columns);
		for (size_t c = 0; c < n_columns && rc == SQLITE_ROW; c++) {
			if (sql_result_take(st, (int)c, &out->arena, &all.v[all.n++]) == SQLITE_NOMEM)
				rc = SQLITE_NOMEM;
			else if ((c + 1 == n_columns || out->arena.bytes != text) && !fits(context, sql_result_bytes_of(&all, &out->arena)))
				rc = SQLITE_TOOBIG;
			text = out->arena.bytes;
		}
	}
	if (rc == SQLITE_DONE)
		sql_result_fill(st, &all, out);
	mem_free(all.v);
	return rc;
}

/* Adds the statement's row. SQLITE_ROW; SQLITE_MISMATCH if a value does not fit its column; SQLITE_NOMEM. */
static int pieces_add_row(sqlite3_stmt *st, const struct column_values *seen, struct table *out)
{
	int rc = SQLITE_ROW;
	table_row(out);
	for (unsigned c = 0; c < out->n_columns && rc == SQLITE_ROW; c++) {
		struct value x;
		if (sql_result_take(st, (int)c, &out->arena, &x) == SQLITE_NOMEM)
			rc = SQLITE_NOMEM;
		else if (!column_fits(&seen[c], x.type))
			rc = SQLITE_MISMATCH;
		else
			sql_result_set_cell(out, c, &x);
	}
	return rc;
}

/* Pieces large enough that the cost of each does not matter. BYTES: of text. */
enum { PIECE_ROWS = 1 << 16, PIECE_BYTES = 16 << 20 };

static bool piece_is_full(size_t rows, const struct table *t)
{
	return rows >= PIECE_ROWS || t->arena.bytes >= PIECE_BYTES;
}

/* Fills *out with the whole result if that is no more than a piece: SQLITE_DONE. SQLITE_ROW: there is more, and *out has no columns. Else an error. */
static int pieces_only(sqlite3_stmt *st, struct table *out)
{
	struct values all = {0};
	size_t n_columns = (size_t)sqlite3_column_count(st);
	int rc = SQLITE_ROW;
	while (rc == SQLITE_ROW && !piece_is_full(all.n / n_columns, out) && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		MEM_GROW(all.v, all.cap, all.n + n_columns);
		for (size_t c = 0; c < n_columns && rc == SQLITE_ROW; c++)
			if (sql_result_take(st, (int)c, &out->arena, &all.v[all.n++]) == SQLITE_NOMEM)
				rc = SQLITE_NOMEM;
	}
	if (rc == SQLITE_DONE)
		sql_result_fill(st, &all, out);
	mem_free(all.v);
	return rc;
}

/* Notes the types of all values, from the first row on, and rewinds. SQLITE_DONE, or an error. */
static int pieces_look(sqlite3_stmt *st, struct column_values *seen)
{
	int rc;
	sqlite3_reset(st);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW)
		for (int c = 0; c < sqlite3_column_count(st); c++)
			column_note(&seen[c], sqlite3_column_type(st, c));
	sqlite3_reset(st);
	return rc;
}

/* Fills a piece with the next rows. SQLITE_ROW: it is full; SQLITE_DONE: there are no more rows; else an error. */
static int pieces_fill(sqlite3_stmt *st, const struct column_values *seen, struct table *out)
{
	int rc = SQLITE_ROW;
	sql_result_add_columns(st, seen, out);
	while (rc == SQLITE_ROW && !piece_is_full(out->n_rows, out))
		if ((rc = sqlite3_step(st)) == SQLITE_ROW)
			rc = pieces_add_row(st, seen, out);
	return rc;
}

int sql_result_pieces(sqlite3_stmt *st, int (*take)(void *context, struct table *piece), void *context)
{
	struct column_values *seen = NULL;
	int rc = SQLITE_NOMEM, more = 0;
	if (!sql_result_has_names(st))
		return rc;
	do {
		struct table piece;
		table_init(&piece, "sql", "Query result");
		rc = seen ? pieces_fill(st, seen, &piece) : pieces_only(st, &piece);
		if (rc == SQLITE_DONE ? !seen || piece.n_rows : rc == SQLITE_ROW && seen)
			more = take(context, &piece);
		table_release(&piece);
		if (rc == SQLITE_ROW && !seen) {
			seen = NEW_ARRAY((size_t)sqlite3_column_count(st), struct column_values);
			rc = pieces_look(st, seen) == SQLITE_DONE ? SQLITE_ROW : sqlite3_errcode(sqlite3_db_handle(st));
		}
	} while (rc == SQLITE_ROW && !more);
	mem_free(seen);
	return more < 0 ? SQLITE_ABORT : more ? SQLITE_DONE : rc;
}
