/* JSON, always valid UTF-8, one row a line:
 * {"report","version":1,"input","columns":[{"id","title","type","unit","help"}],"rows":[[...]],"notes":[...],
 *  "sections":[{"name","title","columns","rows","notes"}]}
 * Numbers stand in full (int64 as integers, doubles with the fewest digits that read back the same). */
#include "base/json_text.h"
#include "render/number.h"
#include "render/render.h"

static void render_json_put_cstring(struct buf *out, const char *s)
{
	json_put_string(out, str_from(s ? s : ""));
}

static void render_json_put_columns(struct buf *out, const struct table *t)
{
	const char *comma = "";
	buf_cstr(out, "\"columns\":[");
	for (unsigned i = 0; i < t->n_columns; i++) {
		const struct column *c = &t->data[i].col;
		if (c->flags & COLUMN_INDENT)
			continue;
		buf_printf(out, "%s\n{\"id\":", comma);
		comma = ",";
		render_json_put_cstring(out, c->id);
		buf_cstr(out, ",\"title\":");
		render_json_put_cstring(out, c->title);
		buf_printf(out, ",\"type\":\"%s\",\"unit\":\"%s\",\"help\":", table_type_name(c->type),
		           table_unit_name(c->unit));
		render_json_put_cstring(out, c->help);
		buf_char(out, '}');
	}
	buf_char(out, ']');
}

static void render_json_put_cell(struct buf *out, const struct column_data *d, size_t row)
{
	if (!d->set[row])
		buf_cstr(out, "null");
	else if (d->col.type == CELL_STR)
		json_put_string(out, d->cell[row].s);
	else
		number_put_cell(out, d, row);
}

static void render_json_put_rows(struct buf *out, const struct table *t)
{
	buf_cstr(out, ",\n\"rows\":[");
	for (size_t r = 0; r < t->n_rows; r++) {
		const char *comma = "";
		buf_cstr(out, r ? ",\n[" : "\n[");
		for (unsigned c = 0; c < t->n_columns; c++) {
			if (t->data[c].col.flags & COLUMN_INDENT)
				continue;
			buf_cstr(out, comma);
			render_json_put_cell(out, &t->data[c], r);
			comma = ",";
		}
		buf_char(out, ']');
	}
	buf_char(out, ']');
}

static void put_body(struct buf *out, const struct table *t)
{
	render_json_put_columns(out, t);
	render_json_put_rows(out, t);
	buf_cstr(out, ",\n\"notes\":[");
	for (unsigned i = 0; i < t->n_notes; i++) {
		if (i)
			buf_char(out, ',');
		json_put_string(out, t->notes[i]);
	}
	buf_char(out, ']');
}

static int render_json(const struct table *t, const struct render_options *o, struct buf *out, struct err *e)
{
	buf_cstr(out, "{\"report\":");
	render_json_put_cstring(out, t->name);
	buf_cstr(out, ",\"version\":1,\"input\":");
	render_json_put_cstring(out, o->input);
	buf_cstr(out, ",\n");
	put_body(out, t);
	buf_cstr(out, ",\n\"sections\":[");
	for (const struct table *s = t->next; s; s = s->next) {
		buf_cstr(out, s == t->next ? "\n{\"name\":" : ",\n{\"name\":");
		render_json_put_cstring(out, s->name);
		buf_cstr(out, ",\"title\":");
		render_json_put_cstring(out, s->title);
		buf_cstr(out, ",\n");
		put_body(out, s);
		buf_char(out, '}');
	}
	buf_cstr(out, "]}\n");
	return 0;
}

const struct renderer renderer_json = {
	.name = "json",
	.help = "columns with type, unit and help; rows with numbers in full; notes; all sections",
	.render = render_json,
};
