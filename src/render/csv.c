/* CSV as in RFC 4180, with LF line ends: a header of column ids, then numbers in full (ns, bytes; doubles with the fewest
 * digits that read back the same). Null is an empty field; an empty string is "". */
#include "base/utf8.h"
#include "render/csv_text.h"
#include "render/number.h"
#include "render/render.h"

void csv_put_quoted(struct buf *out, struct str s)
{
	struct str rest = s, piece;
	buf_char(out, '"');
	for (bool more = str_split(&rest, '"', &piece); more;) {
		utf8_put_valid(out, piece);
		more = str_split(&rest, '"', &piece);
		if (more)
			buf_cstr(out, "\"\"");
	}
	buf_char(out, '"');
}

static void put_text(struct buf *out, struct str s)
{
	bool quote = s.n == 0 || s.p[0] == ' ' || s.p[s.n - 1] == ' ';
	for (size_t i = 0; i < s.n && !quote; i++)
		quote = s.p[i] == '"' || s.p[i] == ',' || s.p[i] == '\n' || s.p[i] == '\r';
	if (quote)
		csv_put_quoted(out, s);
	else
		utf8_put_valid(out, s);
}

static void put_cell(struct buf *out, const struct column_data *d, size_t row)
{
	if (!d->set[row])
		return;
	switch (d->col.type) {
	case CELL_STR:
		put_text(out, d->cell[row].s);
		break;
	case CELL_I64:
		buf_i64(out, d->cell[row].i);
		break;
	case CELL_F64:
		number_shortest(out, d->cell[row].f);
		break;
	case CELL_BOOL:
		buf_cstr(out, d->cell[row].i ? "true" : "false");
		break;
	}
}

static int render_csv(const struct table *t, const struct render_options *o, struct buf *out, struct err *e)
{
	const struct table *s = t;
	while (o->section && s && strcmp(s->name, o->section) != 0)
		s = s->next;
	if (!s)
		return err_set(e, ERR_USAGE, "no section '%s' in %s", o->section, t->name);
	const char *comma = "";
	for (unsigned c = 0; c < s->n_columns; c++) {
		if (s->data[c].col.flags & COLUMN_INDENT)
			continue;
		buf_cstr(out, comma);
		put_text(out, str_from(s->data[c].col.id));
		comma = ",";
	}
	buf_char(out, '\n');
	for (size_t r = 0; r < s->n_rows; r++) {
		comma = "";
		for (unsigned c = 0; c < s->n_columns; c++) {
			if (s->data[c].col.flags & COLUMN_INDENT)
				continue;
			buf_cstr(out, comma);
			put_cell(out, &s->data[c], r);
			comma = ",";
		}
		buf_char(out, '\n');
	}
	return 0;
}

const struct renderer renderer_csv = {
	.name = "csv",
	.help = "RFC 4180: column ids and numbers in full, one table (--section chooses another than the first)",
	.render = render_csv,
};
