/* A row as Python shows an object: "<TITLE FIELD=VALUE FIELD=VALUE>", the fields being the titles of the columns, times as torch writes
 * them. Notes follow. */
#include "base/utf8.h"
#include "render/layout.h"
#include "render/number.h"
#include "render/torch_format.h"

static void render_layout_repr_put_value(const struct table *t, size_t row, unsigned col, struct buf *out)
{
	const struct column_data *d = &t->data[col];
	double v = d->col.type == CELL_F64 ? d->cell[row].f : (double)d->cell[row].i;
	if (!d->set[row])
		buf_cstr(out, "None");
	else if (d->col.type == CELL_STR)
		utf8_put_safe(out, d->cell[row].s);
	else if (d->col.unit == UNIT_NS || d->col.unit == UNIT_US)
		torch_text_time(out, d->col.unit == UNIT_NS ? v / 1000 : v, d->col.shown_in);
	else if (d->col.type == CELL_F64)
		number_shortest(out, v);
	else
		buf_i64(out, d->cell[row].i);
}

static void render_layout_repr_put_row(const struct table *t, size_t row, struct buf *out)
{
	buf_printf(out, "<%s", t->title);
	for (unsigned c = 0; c < t->n_columns; c++) {
		if (t->data[c].col.flags & COLUMN_DETAIL)
			continue;
		buf_printf(out, " %s=", t->data[c].col.title);
		render_layout_repr_put_value(t, row, c, out);
	}
	buf_cstr(out, ">\n");
}

static void layout_repr_put(const struct table *t, struct buf *out)
{
	for (size_t r = 0; r < t->n_rows; r++)
		render_layout_repr_put_row(t, r, out);
	for (unsigned i = 0; i < t->n_notes; i++) {
		utf8_put_safe(out, t->notes[i]);
		buf_char(out, '\n');
	}
}

const struct layout layout_repr = {
	.name = "repr",
	.put = layout_repr_put,
};
