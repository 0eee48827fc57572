/* Text for people: human units, columns that fit the terminal, nothing from the input that could act on it. */
#include "base/utf8.h"
#include "render/layout.h"
#include "render/notes.h"
#include "render/number.h"
#include "render/render.h"
#include "render/text_cut.h"
#include "render/text_layout.h"

#define BOLD "\x1b[1m"
#define BOLD_RED "\x1b[1;31m"
#define BOLD_YELLOW "\x1b[1;33m"
#define DIM "\x1b[2m"
#define PLAIN "\x1b[0m"
#define LINE "\xe2\x94\x80" /* U+2500 */

struct page {
	struct buf *out;
	const struct render_options *o;
};

static void style(const struct page *p, const char *code)
{
	if (p->o->color)
		buf_cstr(p->out, code);
}

static void render_text_end_line(const struct page *p)
{
	while (p->out->n && p->out->p[p->out->n - 1] == ' ')
		p->out->n--;
	buf_char(p->out, '\n');
}

static void put_aligned(struct buf *out, struct str s, const struct text_column *c)
{
	size_t cells = text_width(s);
	if (cells > c->width) {
		text_put_cut(out, s, c->width);
		return;
	}
	if (c->right)
		buf_fill(out, ' ', c->width - cells);
	buf_str(out, s);
	if (!c->right)
		buf_fill(out, ' ', c->width - cells);
}

static void put_safe_line(const struct page *p, struct str s, const char *code)
{
	struct buf safe = {0};
	utf8_put_safe(&safe, s);
	struct str rest = buf_view(&safe), line;
	while (text_wrap(&rest, p->o->width, &line)) {
		style(p, code);
		buf_str(p->out, line);
		style(p, *code ? PLAIN : "");
		buf_char(p->out, '\n');
	}
	buf_release(&safe);
}

static void render_text_put_cell(struct buf *out, struct str s, const struct text_column *c)
{
	if (c->stack && text_width(s) > c->width)
		text_put_cut_stack(out, s, c->width);
	else if (c->width < c->body)
		text_alike_put(&c->alike, c->how, s, c->width, out);
	else
		put_aligned(out, s, c);
}

/* Line `n` of `lines`, the titles standing on the bottom line. */
static struct str header_line(const struct table *t, const struct text_column *c, size_t n, size_t lines)
{
	struct str rest = str_from(t->data[c->col].col.title), line;
	size_t own = 0;
	while (text_wrap(&rest, c->width, &line))
		own++;
	rest = str_from(t->data[c->col].col.title);
	struct str found = STR("");
	for (size_t i = lines - own; i <= n && text_wrap(&rest, c->width, &line); i++)
		if (i == n)
			found = line;
	return found;
}

static void render_text_put_header(const struct page *p, const struct table *t, const struct text_layout *l)
{
	for (size_t n = 0; n < l->header_lines; n++) {
		style(p, BOLD);
		for (unsigned i = 0; i < l->n; i++) {
			if (i)
				buf_fill(p->out, ' ', TEXT_GAP);
			put_aligned(p->out, header_line(t, &l->v[i], n, l->header_lines), &l->v[i]);
		}
		style(p, PLAIN);
		render_text_end_line(p);
	}
	style(p, DIM);
	for (unsigned i = 0; i < l->n; i++) {
		if (i)
			buf_fill(p->out, ' ', TEXT_GAP);
		for (size_t k = 0; k < l->v[i].width; k++)
			buf_cstr(p->out, LINE);
	}
	style(p, PLAIN);
	buf_char(p->out, '\n');
}

static void render_text_put_rows(const struct page *p, const struct table *t, const struct text_layout *l)
{
	struct text_scratch scratch = {0};
	for (size_t r = 0; r < t->n_rows; r++) {
		for (unsigned i = 0; i < l->n; i++) {
			if (i)
				buf_fill(p->out, ' ', TEXT_GAP);
			render_text_put_cell(p->out, text_cell(t, r, &l->v[i], &scratch), &l->v[i]);
		}
		render_text_end_line(p);
	}
	text_scratch_release(&scratch);
}

static bool is_prose(const struct table *t, const struct text_column *c)
{
	return t->data[c->col].col.flags & COLUMN_PROSE;
}

/* How bad it is, in a colour. */
static void put_level(const struct page *p, struct str level)
{
	style(p, str_eqc(level, "high") ? BOLD_RED : str_eqc(level, "medium") ? BOLD_YELLOW : "");
	buf_str(p->out, level);
	style(p, PLAIN BOLD);
}

/* The short cells of a record; numbers, which do not speak for themselves, with their titles. *level, *level_n: which part is the level. */
static void put_record_head_text(const struct table *t, size_t row, const struct text_layout *l, struct text_scratch *scratch, struct buf *out, size_t *level, size_t *level_n)
{
	*level = *level_n = 0;
	for (unsigned i = 0; i < l->n_all; i++) {
		const struct text_column *c = &l->v[i];
		if (is_prose(t, c) || table_is_null(t, row, c->col))
			continue;
		buf_cstr(out, out->n ? "  " : "");
		if (t->data[c->col].col.type != CELL_STR)
			buf_printf(out, "%s: ", t->data[c->col].col.title);
		else if (t->data[c->col].col.flags & COLUMN_TITLED)
			buf_printf(out, "%s ", t->data[c->col].col.title);
		size_t from = out->n;
		buf_str(out, text_cell(t, row, c, scratch));
		if (t->data[c->col].col.flags & COLUMN_LEVEL) {
			*level = from;
			*level_n = out->n - from;
		}
	}
}

/* On as many lines as the width asks for. Nothing where there are no short cells. */
static void put_record_head(const struct page *p, const struct table *t, size_t row, const struct text_layout *l,
                            struct text_scratch *scratch)
{
	struct buf head = {0};
	size_t level, level_n;
	put_record_head_text(t, row, l, scratch, &head, &level, &level_n);
	struct str rest = buf_view(&head), line;
	while (text_wrap(&rest, p->o->width, &line)) {
		size_t from = (size_t)(line.p - head.p);
		bool has_level = level_n && level >= from && level + level_n <= from + line.n;
		style(p, BOLD);
		if (has_level) {
			buf_str(p->out, (struct str){line.p, level - from});
			put_level(p, (struct str){head.p + level, level_n});
			buf_str(p->out, (struct str){head.p + level + level_n, from + line.n - level - level_n});
		} else {
			buf_str(p->out, line);
		}
		style(p, PLAIN);
		buf_char(p->out, '\n');
	}
	buf_release(&head);
}

static void put_record_prose(const struct page *p, const struct table *t, size_t row, const struct text_column *c,
                             size_t indent, struct text_scratch *scratch)
{
	size_t width = p->o->width > indent + 20 ? p->o->width - indent : p->o->width ? 20 : 0;
	struct str rest = text_cell(t, row, c, scratch), line;
	for (size_t n = 0; text_wrap(&rest, width, &line); n++) {
		size_t used = 0;
		if (n == 0) {
			style(p, DIM);
			buf_printf(p->out, "  %s", t->data[c->col].col.title);
			style(p, PLAIN);
			used = 2 + c->title;
		}
		buf_fill(p->out, ' ', indent - used);
		buf_str(p->out, line);
		buf_char(p->out, '\n');
	}
}

/* Returns whether the table has prose, and so was shown as records. */
static bool put_records(const struct page *p, const struct table *t, const struct text_layout *l)
{
	struct text_scratch scratch = {0};
	size_t indent = 0;
	for (unsigned i = 0; i < l->n_all; i++)
		if (is_prose(t, &l->v[i]) && l->v[i].title + 4 > indent)
			indent = l->v[i].title + 4;
	for (size_t r = 0; indent && r < t->n_rows; r++) {
		buf_char(p->out, '\n');
		put_record_head(p, t, r, l, &scratch);
		for (unsigned i = 0; i < l->n_all; i++)
			if (is_prose(t, &l->v[i]) && !table_is_null(t, r, l->v[i].col))
				put_record_prose(p, t, r, &l->v[i], indent, &scratch);
	}
	text_scratch_release(&scratch);
	return indent > 0;
}

static void put_hidden_rows(const struct page *p, const struct table *t)
{
	struct buf line = {0};
	buf_cstr(&line, "... and ");
	number_grouped(&line, (int64_t)t->hidden_rows);
	buf_cstr(&line, t->hidden_rows == 1 ? " more row (--limit=0 shows all)" : " more rows (--limit=0 shows all)");
	put_safe_line(p, buf_view(&line), DIM);
	buf_release(&line);
}

static bool shares(const struct text_column *c)
{
	return c->width < c->body && c->how >= TEXT_SHARED_HEAD;
}

/* The rows that a line below the table is true of: rows that --limit took away may differ. */
static const char *every_row(const struct table *t)
{
	return t->hidden_rows ? "every row shown" : "every row";
}

enum { SAME_LONG = 240 }; /* cells of a sentence that holds for all rows */

/* How many cells of a text that holds for all rows are shown: more of a text that can be broken into lines than of a path or a name. */
static size_t most_of(const struct page *p, struct str value)
{
	size_t line = p->o->width > 1 && p->o->width < 120 ? p->o->width - 1 : 120, longest = 0;
	struct str word;
	while (text_wrap(&value, 1, &word))
		longest = text_width(word) > longest ? text_width(word) : longest;
	return longest > line ? line : SAME_LONG;
}

static void put_line_item(const struct page *p, const struct table *t, const struct text_column *c, const char *between, struct str value, struct buf *line)
{
	size_t cells = text_width(value), most = most_of(p, value);
	buf_printf(line, "%s%s%s", line->n ? "; " : "", t->data[c->col].col.title, between);
	text_put_cut(line, value, cells < most ? cells : most);
}

/* "in every row: Dir = forward; TC = yes": columns that are left out because they have one value. */
static void put_same(const struct page *p, const struct table *t, const struct text_layout *l)
{
	struct buf items = {0}, line = {0};
	struct text_scratch scratch = {0};
	for (unsigned i = l->n; i < l->n_all; i++)
		if (l->v[i].constant)
			put_line_item(p, t, &l->v[i], " = ", text_cell(t, 0, &l->v[i], &scratch), &items);
	if (items.n)
		buf_printf(&line, "in %s: " STR_FMT, every_row(t), STR_ARG(buf_view(&items)));
	put_safe_line(p, buf_view(&line), DIM);
	text_scratch_release(&scratch);
	buf_release(&items);
	buf_release(&line);
}

/* "left out of every cell: Shape N=1,...,fp32": what the texts of a column that is too narrow for them have in common. */
static void put_shared(const struct page *p, const struct table *t, const struct text_layout *l)
{
	struct buf items = {0}, value = {0}, line = {0};
	for (unsigned i = 0; i < l->n; i++) {
		if (!shares(&l->v[i]))
			continue;
		buf_clear(&value);
		text_alike_put_shared(&l->v[i].alike, &value);
		put_line_item(p, t, &l->v[i], " ", buf_view(&value), &items);
	}
	if (items.n)
		buf_printf(&line, "left out of every cell: " STR_FMT, STR_ARG(buf_view(&items)));
	put_safe_line(p, buf_view(&line), DIM);
	buf_release(&items);
	buf_release(&value);
	buf_release(&line);
}

enum left_out { OUT_EMPTY, OUT_ZERO, OUT_NO_ROOM };

/* "empty in every row: FLOP/B, Gain"; "no room for: flops, bytes (--columns chooses)", with the ids that --columns takes. */
static void render_text_put_left_out(const struct page *p, const struct table *t, const struct text_layout *l, enum left_out why)
{
	static const char *const says[] = {[OUT_EMPTY] = "empty in ", [OUT_ZERO] = "0 in ", [OUT_NO_ROOM] = "no room for"};
	struct buf line = {0};
	for (unsigned i = l->n; i < l->n_all; i++) {
		const struct column *col = &t->data[l->v[i].col].col;
		if (l->v[i].constant || (l->v[i].empty ? OUT_EMPTY : l->v[i].zero ? OUT_ZERO : OUT_NO_ROOM) != why)
			continue;
		if (line.n)
			buf_cstr(&line, ", ");
		else
			buf_printf(&line, "%s%s: ", says[why], why == OUT_NO_ROOM ? "" : every_row(t));
		buf_cstr(&line, why == OUT_NO_ROOM ? col->id : col->title);
	}
	if (line.n && why == OUT_NO_ROOM)
		buf_cstr(&line, " (--columns chooses)");
	put_safe_line(p, buf_view(&line), DIM);
	buf_release(&line);
}

/* "6 more columns: --columns shows them, `opscope report kernels --help` lists them". */
static void put_details(const struct page *p, const struct text_layout *l)
{
	struct buf line = {0};
	const char *them = l->n_details == 1 ? "it" : "them";
	if (l->n_details && p->o->report)
		buf_printf(&line, "%u more column%s: --columns shows %s, `opscope report %s --help` lists %s", l->n_details, l->n_details == 1 ? "" : "s", them, p->o->report, them);
	put_safe_line(p, buf_view(&line), DIM);
	buf_release(&line);
}

/* What the table does not show. */
static void render_text_put_missing(const struct page *p, const struct table *t, const struct text_layout *l, bool records)
{
	if (t->hidden_rows && !t->thinned)
		put_hidden_rows(p, t);
	if (records)
		return;
	put_same(p, t, l);
	put_shared(p, t, l);
	for (enum left_out why = OUT_EMPTY; why <= OUT_NO_ROOM; why++)
		render_text_put_left_out(p, t, l, why);
	put_details(p, l);
}

static void render_text_put_notes(const struct page *p, const struct table *t)
{
	struct buf line = {0};
	bool brief = t->shown_notes == NOTES_BRIEF && !t->notes_answer;
	for (unsigned i = 0; i < t->n_notes && (i == 0 || !brief); i++) {
		buf_clear(&line);
		if (brief)
			note_put_brief(&line, t);
		else if (t->shown_notes)
			note_put(&line, t, t->notes[note_at(t, i)]);
		else
			buf_str(&line, t->notes[i]);
		put_safe_line(p, buf_view(&line), "");
	}
	buf_release(&line);
}

static void render_text_put_table(const struct page *p, const struct table *t)
{
	const char *heading = t->heading ? t->heading : t->title;
	if (heading && *heading)
		put_safe_line(p, str_from(heading), BOLD);
	struct text_layout l;
	text_layout_make(&l, t, p->o->width);
	if (l.n) {
		bool records = put_records(p, t, &l);
		if (!records) {
			render_text_put_header(p, t, &l);
			render_text_put_rows(p, t, &l);
		}
		if (!t->n_rows)
			put_safe_line(p, STR("(none)"), DIM);
		render_text_put_missing(p, t, &l, records);
	}
	text_layout_release(&l);
	if (t->n_notes && t->n_columns)
		buf_char(p->out, '\n');
	render_text_put_notes(p, t);
}

static int render_text(const struct table *t, const struct render_options *o, struct buf *out, struct err *e)
{
	const struct page p = {out, o};
	const struct layout *l = layout_of(t);
	if (l) {
		l->put(t, out);
		return 0;
	}
	size_t first = out->n;
	for (int lead = 1; lead >= 0; lead--) {
		for (const struct table *s = t; s; s = s->next) {
			if (s->lead != lead)
				continue;
			if (out->n > first)
				buf_char(out, '\n');
			render_text_put_table(&p, s);
		}
	}
	return 0;
}

const struct renderer renderer_text = {
	.name = "text",
	.suffix = "txt",
	.help = "for reading: titles, human units, as wide as the terminal, 30 rows unless --limit says otherwise",
	.rows = 30,
	.folds = true,
	.layouts = true,
	.for_people = true,
	.render = render_text,
};
