/* GitHub's Markdown, for pull requests, issues and summaries of CI jobs: all sections, columns of details left out, the rows that text shows.
 *
 * Texts come from traces, which may be hostile. What is no plain word stands in a code span, where nothing is markup and nobody is mentioned; sentences
 * keep their code spans, and all else of them that could be markup is escaped. */
#include "base/mem.h"
#include "base/search.h"
#include "base/utf8.h"
#include "render/notes.h"
#include "render/number.h"
#include "render/render.h"

#include <strings.h>

enum { RENDER_MARKDOWN_ROWS = 30, RENDER_MARKDOWN_TEXT_MAX = 120 };

#define RENDER_MARKDOWN_NO_WIDTH "\xe2\x80\x8b"

/* Letters, digits, and punctuation that means nothing within a line. */
static bool render_markdown_is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr(" .,;()%+-=?!'\"", c));
}

/* Whether GitHub makes links of what stands around: @user, #12, http://, www.host */
static bool render_markdown_links(const struct buf *b, size_t i)
{
	const struct str rest = {b->p + i, b->n - i};
	return *rest.p == '@' || *rest.p == '#' || str_starts(rest, STR("://")) || (*rest.p == '.' && i >= 3 && strncasecmp(rest.p - 3, "www", 3) == 0);
}

/* A sentence outside of code: ASCII that may be markup is escaped, and a character without width keeps what looks like a link from being one. */
static void render_markdown_put_escaped(struct buf *out, struct str s)
{
	struct buf safe = {0};
	utf8_put_safe(&safe, s);
	for (size_t i = 0; i < safe.n; i++) {
		const char c = safe.p[i];
		const bool links = render_markdown_links(&safe, i);
		if (c == '<' || c == '>' || c == '&')
			buf_cstr(out, c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&amp;");
		else
			buf_printf(out, "%s%c%s", (unsigned char)c >= 0x80 || render_markdown_is_plain(c) || c == ':' || c == '/' ? "" : "\\", c, links ? RENDER_MARKDOWN_NO_WIDTH : "");
	}
	buf_release(&safe);
}

/* A code span. It is fenced by one backtick more than there are in a row within it; `cell`: of a table, where a bar has to be escaped even there. */
static void render_markdown_put_code(struct buf *out, struct str s, bool cell)
{
	struct buf safe = {0};
	size_t most = 0, row = 0;
	utf8_put_safe(&safe, s);
	for (size_t i = 0; i < safe.n; i++) {
		row = safe.p[i] == '`' ? row + 1 : 0;
		most = row > most ? row : most;
	}
	buf_fill(out, '`', most + 1);
	if (most)
		buf_char(out, ' ');
	for (size_t i = 0; i < safe.n; i++)
		buf_printf(out, "%s%c", cell && safe.p[i] == '|' ? "\\" : "", safe.p[i]);
	if (most)
		buf_char(out, ' ');
	buf_fill(out, '`', most + 1);
	buf_release(&safe);
}

/* Several backticks in a row are no fence of ours: they come from a name. */
static bool render_markdown_has_code(struct str s)
{
	return !str_has(s, STR("``"));
}

/* A sentence with `code` in it; a backtick without a second one is text, and so are all where some stand side by side. */
static void render_markdown_put_sentence(struct buf *out, struct str s)
{
	const char *from, *to;
	const bool code = render_markdown_has_code(s);
	while (code && (from = memchr(s.p, '`', s.n)) && (to = memchr(from + 1, '`', (size_t)(s.p + s.n - from - 1)))) {
		render_markdown_put_escaped(out, (struct str){s.p, (size_t)(from - s.p)});
		render_markdown_put_code(out, (struct str){from + 1, (size_t)(to - from - 1)}, false);
		s = (struct str){to + 1, (size_t)(s.p + s.n - to - 1)};
	}
	render_markdown_put_escaped(out, s);
}

static bool render_markdown_is_number(const struct column *c)
{
	return c->type == CELL_I64 || c->type == CELL_F64;
}

static bool render_markdown_is_depth(const struct column *c)
{
	return (c->flags & COLUMN_TREE) && c->type == CELL_I64;
}

static bool render_markdown_is_left_out(const struct table *t, unsigned col)
{
	const struct column *c = &t->data[col].col;
	const int full = c->short_of ? table_find_column(t, str_from(c->short_of)) : -1;
	const bool shown = full >= 0 && table_shown_column(t, (unsigned)full) == col; /* in the place of the full names */
	return render_markdown_is_depth(c) || shown || (c->flags & COLUMN_INDENT) || ((c->flags & COLUMN_DETAIL) && !(c->flags & COLUMN_ASKED));
}

/* The cell as people read it, cut in the middle: its end often tells most. */
static void render_markdown_take_cell(const struct table *t, size_t row, unsigned col, struct buf *text)
{
	buf_clear(text);
	format_cell(t, row, col, text);
	if (t->data[col].col.type != CELL_STR || (t->data[col].col.flags & COLUMN_PROSE) || text->n <= RENDER_MARKDOWN_TEXT_MAX)
		return;
	size_t head = RENDER_MARKDOWN_TEXT_MAX * 2 / 3, tail = text->n - RENDER_MARKDOWN_TEXT_MAX / 3;
	while (head && ((unsigned char)text->p[head] & 0xc0) == 0x80)
		head--;
	while (tail < text->n && ((unsigned char)text->p[tail] & 0xc0) == 0x80)
		tail++;
	struct buf cut = {0};
	buf_put(&cut, text->p, head);
	buf_cstr(&cut, "\xe2\x80\xa6");
	buf_put(&cut, text->p + tail, text->n - tail);
	buf_release(text);
	*text = cut;
}

/* Whether a text of the column is no plain word: then all of them stand in code. */
static bool render_markdown_is_code(const struct table *t, unsigned col, struct buf *text)
{
	if (t->data[col].col.type != CELL_STR)
		return false;
	for (size_t r = 0; r < t->n_rows; r++) {
		render_markdown_take_cell(t, r, col, text);
		if (ANY_WHERE(i, 0, text->n, (unsigned char)text->p[i] < 0x80 && !render_markdown_is_plain(text->p[i])))
			return true;
	}
	return false;
}

static void render_markdown_put_row(struct buf *out, const struct table *t, size_t row, const bool *code, struct buf *text)
{
	int64_t depth = 0;
	buf_char(out, '|');
	for (unsigned c = 0; c < t->n_columns; c++) {
		if (render_markdown_is_depth(&t->data[c].col)) {
			depth = table_i64(t, row, c);
			continue;
		}
		if (render_markdown_is_left_out(t, c))
			continue;
		buf_char(out, ' ');
		if (t->data[c].col.type == CELL_STR) {
			for (int64_t i = 0; i < depth && i < 16; i++)
				buf_cstr(out, "&emsp;");
			depth = 0;
		}
		render_markdown_take_cell(t, row, c, text);
		if (code[c] && text->n && !table_is_null(t, row, table_shown_column(t, c)))
			render_markdown_put_code(out, buf_view(text), true);
		else
			render_markdown_put_escaped(out, buf_view(text));
		buf_cstr(out, " |");
	}
	buf_char(out, '\n');
}

static void render_markdown_put_head(struct buf *out, const struct table *t)
{
	buf_char(out, '|');
	for (unsigned c = 0; c < t->n_columns; c++)
		if (!render_markdown_is_left_out(t, c)) {
			buf_char(out, ' ');
			render_markdown_put_escaped(out, str_from(t->data[c].col.title));
			buf_cstr(out, " |");
		}
	buf_cstr(out, "\n|");
	for (unsigned c = 0; c < t->n_columns; c++)
		if (!render_markdown_is_left_out(t, c))
			buf_cstr(out, render_markdown_is_number(&t->data[c].col) ? " ---: |" : " --- |");
	buf_char(out, '\n');
}

/* A table of sentences: a paragraph a row, what is no sentence in bold before it. */
static void render_markdown_put_prose(struct buf *out, const struct table *t, struct buf *text)
{
	for (size_t r = 0; r < t->n_rows; r++) {
		bool first = true;
		for (unsigned prose = 0; prose < 2; prose++)
			for (unsigned c = 0; c < t->n_columns; c++) {
				const struct column *column = &t->data[c].col;
				if (render_markdown_is_left_out(t, c) || table_is_null(t, r, c) || !!(column->flags & COLUMN_PROSE) != prose)
					continue;
				render_markdown_take_cell(t, r, c, text);
				if (!text->n)
					continue;
				buf_cstr(out, first ? "" : prose ? "  \n" : " \xc2\xb7 ");
				if (prose) {
					render_markdown_put_sentence(out, buf_view(text));
				} else {
					buf_cstr(out, "**");
					render_markdown_put_escaped(out, buf_view(text));
					buf_cstr(out, "**");
				}
				first = false;
			}
		buf_cstr(out, "\n\n");
	}
}

static void render_markdown_put_notes(struct buf *out, const struct table *t)
{
	struct buf text = {0};
	const bool brief = t->shown_notes == NOTES_BRIEF && !t->notes_answer;
	for (unsigned i = 0; i < t->n_notes && (i == 0 || !brief); i++) {
		buf_clear(&text);
		if (brief)
			note_put_brief(&text, t);
		else
			note_put(&text, t, t->notes[note_at(t, i)]);
		buf_cstr(out, "- ");
		render_markdown_put_sentence(out, buf_view(&text));
		buf_char(out, '\n');
	}
	if (t->n_notes)
		buf_char(out, '\n');
	buf_release(&text);
}

static void render_markdown_put_table(struct buf *out, const struct table *t)
{
	struct buf text = {0};
	if (ANY_WHERE(i, 0, t->n_columns, t->data[i].col.flags & COLUMN_PROSE))
		render_markdown_put_prose(out, t, &text);
	else if (t->n_columns && t->n_rows) {
		bool *code = NEW_ARRAY(t->n_columns, bool);
		for (unsigned c = 0; c < t->n_columns; c++)
			code[c] = render_markdown_is_code(t, c, &text);
		render_markdown_put_head(out, t);
		for (size_t r = 0; r < t->n_rows; r++)
			render_markdown_put_row(out, t, r, code, &text);
		mem_free(code);
		buf_char(out, '\n');
	} else if (t->n_columns)
		buf_cstr(out, "No rows.\n\n");
	if (t->hidden_rows && !t->thinned) {
		number_grouped(out, (int64_t)t->hidden_rows);
		buf_printf(out, " more row%s.\n\n", t->hidden_rows == 1 ? "" : "s");
	}
	render_markdown_put_notes(out, t);
	buf_release(&text);
}

static int render_markdown(const struct table *t, const struct render_options *o, struct buf *out, struct err *e)
{
	(void)o, (void)e;
	buf_cstr(out, "### ");
	render_markdown_put_escaped(out, str_from(t->heading ? t->heading : t->title));
	buf_cstr(out, "\n\n");
	for (int lead = 1; lead >= 0; lead--)
		for (const struct table *s = t; s; s = s->next) {
			if (s->lead != lead)
				continue;
			if (s != t && !s->lead) {
				buf_cstr(out, "#### ");
				render_markdown_put_escaped(out, str_from(s->title));
				buf_cstr(out, "\n\n");
			}
			render_markdown_put_table(out, s);
		}
	return 0;
}

const struct renderer renderer_markdown = {
	.name = "markdown",
	.suffix = "md",
	.help = "GitHub's Markdown, for pull requests: the columns and as many rows as text has",
	.rows = RENDER_MARKDOWN_ROWS,
	.folds = true,
	.for_people = true,
	.render = render_markdown,
};
