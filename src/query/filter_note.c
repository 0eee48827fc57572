#include "query/filter_note.h"

#include "base/buf.h"
#include "base/nearest.h"

enum {
	ROWS_READ = 10000,   /* of a table: what is near stands among them, or is not looked for */
	VALUES_SHOWN = 6,    /* of a column */
	COLUMNS_SHOWN = 3,
	VALUE_BYTES = 40,    /* a longer text is not one that is typed */
};

static size_t rows_read(const struct table *t)
{
	size_t n = t->held_rows > t->n_rows ? t->held_rows : t->n_rows;
	return n < ROWS_READ ? n : ROWS_READ;
}

static bool filter_note_is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

struct filter_note_near {
	struct str best;
	unsigned distance; /* distance of the best so far; only a nearer text is taken */
};

static void try_word(struct filter_note_near *near, struct str typed, struct str w)
{
	size_t apart = w.n > typed.n ? w.n - typed.n : typed.n - w.n;
	if (!w.n || apart >= near->distance)
		return;
	unsigned d = nearest_distance(typed, w);
	if (d < near->distance && d < w.n)
		*near = (struct filter_note_near){w, d};
}

/* Compares the cell's text and each of its words with what was typed. */
static void try_cell(struct filter_note_near *near, struct str typed, struct str cell)
{
	try_word(near, typed, cell);
	for (size_t i = 0, end; i < cell.n; i = end + 1) {
		for (end = i; end < cell.n && filter_note_is_word(cell.p[end]);)
			end++;
		if (end - i < cell.n)
			try_word(near, typed, (struct str){cell.p + i, end - i});
	}
}

/* The value of the column (NULL: of any text column) that is nearest to what was typed; empty = no value is near. */
static struct str nearest_value(const struct table *t, const struct column_data *only, struct str typed)
{
	struct filter_note_near near = {.distance = nearest_limit(typed.n)};
	for (unsigned c = 0; c < t->n_columns; c++) {
		const struct column_data *d = &t->data[c];
		if (d->col.type != CELL_STR || (only && d != only))
			continue;
		for (size_t r = 0; r < rows_read(t); r++)
			if (d->set[r])
				try_cell(&near, typed, d->cell[r].s);
	}
	return near.best;
}

static bool holds(const struct table *t, const struct column_data *d, struct str text)
{
	for (size_t r = 0; r < rows_read(t); r++)
		if (d->set[r] && str_has_nocase(d->cell[r].s, text))
			return true;
	return false;
}

/* Writes the first distinct values, "a, b, c, ..."; false = no value is short enough. */
static bool filter_note_put_values(struct buf *out, const struct table *t, const struct column_data *d)
{
	struct str seen[VALUES_SHOWN];
	unsigned n = 0;
	bool more = false;
	for (size_t r = 0; r < rows_read(t); r++) {
		struct str v = d->set[r] ? d->cell[r].s : STR("");
		bool known = !v.n || v.n > VALUE_BYTES;
		more |= v.n > VALUE_BYTES;
		for (unsigned i = 0; i < n && !known; i++)
			known = str_eq(seen[i], v);
		if (known)
			continue;
		if (n == VALUES_SHOWN) {
			more = true;
			break;
		}
		buf_printf(out, "%s" STR_FMT, n ? ", " : "", STR_ARG(v));
		seen[n++] = v;
	}
	if (n && more)
		buf_cstr(out, ", ...");
	return n > 0;
}

/* Writes "; column class has: gemm, conv, ...; column ..." for one column, or for all text columns that text output shows. */
static void filter_note_put_columns(struct buf *out, const struct table *t, const struct column_data *only)
{
	unsigned n = 0;
	for (unsigned c = 0; c < t->n_columns && n < COLUMNS_SHOWN; c++) {
		const struct column_data *d = &t->data[c];
		struct buf values = {0};
		if (d->col.type == CELL_STR && (only ? d == only : !(d->col.flags & COLUMN_DETAIL)) && filter_note_put_values(&values, t, d)) {
			buf_printf(out, "; column %s has: " STR_FMT, d->col.id, STR_ARG(buf_view(&values)));
			n++;
		}
		buf_release(&values);
	}
}

static void put_meant(struct buf *out, struct str value)
{
	if (value.n)
		buf_printf(out, "; did you mean --filter=%s" STR_FMT "%s?", str_has(value, STR(" ")) ? "\"" : "", STR_ARG(value),
		           str_has(value, STR(" ")) ? "\"" : "");
}

/* "" = no column is near. */
static const char *nearest_column(const struct table *t, struct str id)
{
	unsigned nearest = nearest_limit(id.n);
	const char *best = "";
	for (unsigned c = 0; c < t->n_columns; c++) {
		unsigned d = nearest_distance(id, str_from(t->data[c].col.id));
		if (d < nearest) {
			nearest = d;
			best = t->data[c].col.id;
		}
	}
	return best;
}

static void put_column_value(struct buf *out, const struct table *t, struct str column, struct str value)
{
	int col = table_find_column(t, column);
	buf_cstr(out, "; --filter takes a TEXT that a text column holds, not COLUMN=VALUE");
	if (col < 0) {
		const char *near = nearest_column(t, column);
		buf_printf(out, "; no column has the id " STR_FMT "%s%s", STR_ARG(column), *near ? ", the nearest is " : "", near);
		col = *near ? table_find_column(t, str_from(near)) : -1;
	}
	const struct column_data *d = col < 0 ? NULL : &t->data[col];
	if (d && d->col.type != CELL_STR) {
		buf_printf(out, "; column %s holds numbers, which --filter does not search (--sort=%s puts the largest first)", d->col.id, d->col.id);
		return;
	}
	if (d && value.n && holds(t, d, value)) {
		put_meant(out, value);
		return;
	}
	put_meant(out, nearest_value(t, d, value));
	filter_note_put_columns(out, t, d);
}

void filter_note(struct table *t, struct str text)
{
	struct buf out = {0};
	ptrdiff_t sign = str_find(text, STR("="));
	buf_printf(&out, "no text column holds \"" STR_FMT "\" (capitals do not matter)", STR_ARG(text));
	if (sign > 0) {
		size_t at = (size_t)sign + 1;
		at += at < text.n && text.p[at] == '=';
		put_column_value(&out, t, (struct str){text.p, (size_t)sign}, (struct str){text.p + at, text.n - at});
	} else {
		put_meant(&out, nearest_value(t, NULL, text));
		filter_note_put_columns(&out, t, NULL);
	}
	table_warn_first(t, STR_FMT, STR_ARG(buf_view(&out)));
	buf_release(&out);
}
