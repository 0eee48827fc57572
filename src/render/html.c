/* One self-contained page: all sections, sorted by a click on a heading, searched by the box; COLUMN_DETAIL columns are shown
 * when a button is pressed. Everything that comes from
 * the input is escaped, and the page's policy allows no network access. */
#include "base/html_text.h"
#include "base/search.h"
#include "render/html_page.h"
#include "render/notes.h"
#include "render/number.h"
#include "render/render.h"

static void render_html_put_text(struct buf *out, struct str s)
{
	html_put_text(out, s);
}

static void render_html_put_cstring(struct buf *out, const char *s)
{
	render_html_put_text(out, str_from(s ? s : ""));
}

static bool render_html_is_number(const struct column *c)
{
	return c->type == CELL_I64 || c->type == CELL_F64;
}

static bool is_depth(const struct column *c)
{
	return (c->flags & COLUMN_TREE) && c->type == CELL_I64;
}

static const char *detail_class(const struct column *c)
{
	return c->flags & COLUMN_DETAIL ? " d" : "";
}

/* Text with `code` in it; a backtick without a second one stays what it is. */
static void put_marked(struct buf *out, struct str s)
{
	const char *from, *to;
	while ((from = memchr(s.p, '`', s.n)) && (to = memchr(from + 1, '`', (size_t)(s.p + s.n - from - 1)))) {
		render_html_put_text(out, (struct str){s.p, (size_t)(from - s.p)});
		buf_cstr(out, "<code>");
		render_html_put_text(out, (struct str){from + 1, (size_t)(to - from - 1)});
		buf_cstr(out, "</code>");
		s = (struct str){to + 1, (size_t)(s.p + s.n - to - 1)};
	}
	render_html_put_text(out, s);
}

static bool render_html_has_prose(const struct table *t)
{
	return ANY_WHERE(i, 0, t->n_columns, t->data[i].col.flags & COLUMN_PROSE);
}

/* Depths only indent; names that another column shows are its tooltips. */
static bool is_left_out(const struct table *t, unsigned col)
{
	const struct column *c = &t->data[col].col;
	int full = c->short_of ? table_find_column(t, str_from(c->short_of)) : -1;
	bool shown = full >= 0 && table_shown_column(t, (unsigned)full) == col;
	return is_depth(c) || shown || (c->flags & COLUMN_INDENT);
}

static void render_html_put_header(struct buf *out, const struct table *t)
{
	buf_cstr(out, "<thead><tr>");
	for (unsigned i = 0; i < t->n_columns; i++) {
		const struct column *c = &t->data[i].col;
		if (is_left_out(t, i))
			continue;
		buf_printf(out, "<th scope=col tabindex=0 class=\"%s%s\" title=\"", render_html_is_number(c) ? "n" : "t", detail_class(c));
		render_html_put_cstring(out, c->id);
		if (c->help && *c->help) {
			buf_cstr(out, ": ");
			render_html_put_cstring(out, c->help);
		}
		buf_cstr(out, "\">");
		render_html_put_cstring(out, c->title);
		if (c->unit == UNIT_US && !c->shown_in && !strstr(c->title, "(us)"))
			buf_cstr(out, " (us)");
		buf_cstr(out, "</th>");
	}
	buf_cstr(out, "</tr></thead>\n");
}

/* The column's title for a cell that stands without its heading. */
static void put_label(struct buf *out, const struct column *c)
{
	buf_cstr(out, " data-t=\"");
	render_html_put_cstring(out, c->title);
	buf_char(out, '"');
}

/* The full name of a cell that shows a short one. */
static void put_full_name(struct buf *out, const struct table *t, unsigned col, size_t row)
{
	const struct column *c = &t->data[col].col;
	int full = table_shown_column(t, col) != col ? (int)col : c->short_of && t->names == NAMES_SHORT ? table_find_column(t, str_from(c->short_of)) : -1;
	if (full < 0 || c->type != CELL_STR || !t->data[full].set[row] || t->names == NAMES_FULL)
		return;
	out->n--; /* the '>' of the cell that was opened */
	buf_cstr(out, " title=\"");
	render_html_put_text(out, table_str(t, row, (unsigned)full));
	buf_cstr(out, "\">");
}

/* Opens the cell; its raw number goes along for sorting, a percentage for its bar. */
static void open_cell(struct buf *out, const struct column_data *d, size_t row, int64_t depth, bool label)
{
	const char *null = d->set[row] ? "" : " z";
	bool prose = d->col.flags & COLUMN_PROSE;
	if (!render_html_is_number(&d->col)) {
		buf_printf(out, "<td class=\"s%s%s%s\"", null, detail_class(&d->col), prose ? " open" : "");
		if (prose)
			put_label(out, &d->col);
		if (depth > 0)
			buf_printf(out, " style=\"padding-left:%.1frem\"", 0.5 + 1.2 * (double)(depth > 32 ? 32 : depth));
		buf_char(out, '>');
		return;
	}
	double v = d->col.type == CELL_F64 ? d->cell[row].f : (double)d->cell[row].i;
	bool bar = d->set[row] && d->col.unit == UNIT_PERCENT && v > 0;
	buf_printf(out, "<td class=\"n%s%s%s\"", null, detail_class(&d->col), bar ? " p" : "");
	if (label)
		put_label(out, &d->col);
	if (d->set[row]) {
		buf_cstr(out, " data-v=");
		if (d->col.type == CELL_F64)
			number_shortest(out, v);
		else
			buf_i64(out, d->cell[row].i);
	}
	if (bar) {
		buf_cstr(out, " style=\"--p:");
		number_fixed(out, v > 100 ? 100 : v, 1, false);
		buf_char(out, '"');
	}
	buf_char(out, '>');
}

static void render_html_put_row(struct buf *out, const struct table *t, size_t row, struct buf *scratch)
{
	int64_t depth = 0;
	bool label = render_html_has_prose(t);
	buf_cstr(out, "<tr>");
	for (unsigned c = 0; c < t->n_columns; c++) {
		if (is_depth(&t->data[c].col)) {
			depth = table_i64(t, row, c);
			continue;
		}
		if (is_left_out(t, c))
			continue;
		open_cell(out, &t->data[c], row, depth, label);
		put_full_name(out, t, c, row);
		if (t->data[c].col.type == CELL_STR)
			depth = 0;
		buf_clear(scratch);
		format_cell(t, row, c, scratch);
		render_html_put_text(out, buf_view(scratch));
		buf_cstr(out, "</td>");
	}
	buf_cstr(out, "</tr>\n");
}

static unsigned count_details(const struct table *t)
{
	unsigned n = 0;
	for (unsigned i = 0; i < t->n_columns; i++)
		n += !is_left_out(t, i) && (t->data[i].col.flags & COLUMN_DETAIL);
	return n;
}

static void render_html_put_count(struct buf *out, const struct table *t, bool fragment)
{
	unsigned details = fragment ? 0 : count_details(t);
	buf_cstr(out, "<p class=count><span class=shown></span>");
	number_grouped(out, (int64_t)t->n_rows);
	buf_cstr(out, t->n_rows == 1 ? " row" : " rows");
	if (t->hidden_rows && !t->thinned) {
		buf_cstr(out, ", ");
		number_grouped(out, (int64_t)t->hidden_rows);
		buf_cstr(out, fragment ? " more left out" : " more left out (--limit=0 shows all)");
	}
	if (details)
		buf_printf(out, " <button type=button class=more aria-expanded=false>%u more column%s</button>", details, details == 1 ? "" : "s");
	buf_cstr(out, "</p>\n");
}

static void render_html_put_table(struct buf *out, const struct table *t, bool fragment)
{
	struct buf scratch = {0};
	if (t->n_columns) {
		buf_cstr(out, render_html_has_prose(t) ? "<div class=scroll><table class=prose>" : "<div class=scroll><table>");
		render_html_put_header(out, t);
		buf_cstr(out, "<tbody>\n");
		for (size_t r = 0; r < t->n_rows; r++)
			render_html_put_row(out, t, r, &scratch);
		buf_cstr(out, "</tbody></table></div>\n");
	}
	render_html_put_count(out, t, fragment);
	if (t->n_notes) {
		buf_cstr(out, "<ul class=notes>");
		bool brief = t->shown_notes == NOTES_BRIEF && !t->notes_answer;
		for (unsigned i = 0; i < t->n_notes && (i == 0 || !brief); i++) {
			buf_clear(&scratch);
			if (brief)
				note_put_brief(&scratch, t);
			else if (t->shown_notes)
				note_put(&scratch, t, t->notes[note_at(t, i)]);
			else
				buf_str(&scratch, t->notes[i]);
			buf_cstr(out, "<li>");
			put_marked(out, buf_view(&scratch));
			buf_cstr(out, "</li>");
		}
		buf_cstr(out, "</ul>\n");
	}
	buf_release(&scratch);
}

static void put_sections(struct buf *out, const struct table *t)
{
	bool leads = false;
	for (const struct table *s = t; s; s = s->next)
		leads |= s->lead;
	for (int lead = 1; lead >= 0; lead--) {
		for (const struct table *s = t; s; s = s->next) {
			if (s->lead != lead)
				continue;
			buf_cstr(out, "<section>");
			if (s != t || leads) {
				buf_cstr(out, "<h2>");
				render_html_put_cstring(out, s->title);
				buf_cstr(out, "</h2>\n");
			}
			render_html_put_table(out, s, false);
			buf_cstr(out, "</section>\n");
		}
	}
}

/* One table: a page that holds many things is no place for all of a report's. */
static void put_fragment(struct buf *out, const struct table *t)
{
	buf_cstr(out, "<div class=opscope>\n<style>\n");
	buf_cstr(out, html_fragment_style);
	buf_cstr(out, "</style>\n<b>");
	render_html_put_cstring(out, t->heading ? t->heading : t->title);
	buf_cstr(out, "</b>\n");
	render_html_put_table(out, t, true);
	buf_cstr(out, "</div>\n");
}

static int render_html(const struct table *t, const struct render_options *o, struct buf *out, struct err *e)
{
	if (o->fragment) {
		put_fragment(out, t);
		return 0;
	}
	buf_cstr(out, "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n"
	              "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'; "
	              "script-src 'unsafe-inline'\">\n"
	              "<meta name=viewport content=\"width=device-width,initial-scale=1\">\n<title>");
	render_html_put_cstring(out, t->heading ? t->heading : t->title);
	buf_cstr(out, "</title>\n<style>\n");
	buf_cstr(out, html_style);
	buf_cstr(out, "</style></head><body>\n<header><h1>");
	render_html_put_cstring(out, t->heading ? t->heading : t->title);
	buf_cstr(out, "</h1><span class=input>");
	render_html_put_cstring(out, o->input);
	if (o->choice.n) {
		buf_cstr(out, " <code>");
		render_html_put_text(out, o->choice);
		buf_cstr(out, "</code>");
	}
	buf_cstr(out, "</span><input id=q type=search placeholder=\"Search all tables\" aria-label=Search></header>\n<main>\n");
	put_sections(out, t);
	buf_cstr(out, "</main>\n<footer>opscope " OPSCOPE_VERSION "</footer>\n<script>\n");
	buf_cstr(out, html_script);
	buf_cstr(out, "</script></body></html>\n");
	return 0;
}

const struct renderer renderer_html = {
	.name = "html",
	.help = "one page for a browser, no network needed: sortable, searchable, all sections, 10,000 rows of each unless --limit says otherwise",
	.rows = 10000, /* what a browser shows without delay */
	.for_people = true,
	.render = render_html,
};
