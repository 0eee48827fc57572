#include "render/text_layout.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "render/render.h"
#include "render/text_cut.h"

/* Text is not cut below this many cells, nor the first text column, which names the row, below MIN_KEY or a third of the
 * terminal; deeper trees are not indented further. */
enum { MIN_WIDE = 12, MIN_TEXT = 16, MIN_STACK = 32, MIN_KEY = 40, MAX_DEPTH = 32 };

void text_scratch_release(struct text_scratch *s)
{
	buf_release(&s->raw);
	buf_release(&s->short_paths);
	buf_release(&s->safe);
}

size_t text_width(struct str s)
{
	size_t width = 0;
	for (size_t at = 0; at < s.n;) {
		uint32_t code;
		at += utf8_next(s, at, &code);
		width += code == UTF8_BAD ? 1 : utf8_width(code);
	}
	return width;
}

struct str text_cell(const struct table *t, size_t row, const struct text_column *c, struct text_scratch *scratch)
{
	buf_clear(&scratch->raw);
	format_cell(t, row, c->col, &scratch->raw);
	if (t->data[c->col].col.type != CELL_STR)
		return buf_view(&scratch->raw);
	buf_clear(&scratch->safe);
	if (c->depth_col >= 0) {
		int64_t depth = table_i64(t, row, (unsigned)c->depth_col);
		buf_fill(&scratch->safe, ' ', 2 * (size_t)(depth < 0 ? 0 : depth > MAX_DEPTH ? MAX_DEPTH : depth));
	}
	struct str text = buf_view(&scratch->raw);
	if (c->stack) {
		buf_clear(&scratch->short_paths);
		text_put_short_stack(&scratch->short_paths, text);
		text = buf_view(&scratch->short_paths);
	}
	utf8_put_safe(&scratch->safe, text);
	return buf_view(&scratch->safe);
}

bool text_wrap(struct str *text, size_t width, struct str *line)
{
	while (text->n && text->p[0] == ' ') {
		text->p++;
		text->n--;
	}
	if (!text->n)
		return false;
	size_t end = 0, cells = 0;
	for (size_t at = 0; at < text->n;) {
		const char *blank = memchr(text->p + at, ' ', text->n - at);
		size_t stop = blank ? (size_t)(blank - text->p) : text->n;
		size_t more = text_width((struct str){text->p + end, stop - end});
		if (end && width && cells + more > width)
			break;
		cells += more;
		end = stop;
		at = stop + 1;
	}
	*line = (struct str){text->p, end};
	text->p += end;
	text->n -= end;
	return true;
}

static size_t longest_word(struct str title)
{
	size_t longest = 0;
	struct str word;
	while (text_wrap(&title, 1, &word))
		if (text_width(word) > longest)
			longest = text_width(word);
	return longest;
}

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void measure(struct text_column *c, const struct table *t, struct text_scratch *scratch)
{
	struct str title = str_from(t->data[c->col].col.title);
	c->title = text_width(title);
	c->word = longest_word(title);
	for (size_t r = 0; r < t->n_rows; r++)
		c->body = larger(c->body, text_width(text_cell(t, r, c, scratch)));
}

static void choose_columns(struct text_layout *l, const struct table *t)
{
	int depth_col = -1;
	bool any_text = false;
	struct text_scratch scratch = {0};
	l->v = NEW_ARRAY(t->n_columns, struct text_column);
	for (unsigned i = 0; i < t->n_columns; i++) {
		const struct column *col = &t->data[i].col;
		if ((col->flags & COLUMN_TREE) && col->type == CELL_I64) {
			depth_col = (int)i;
			continue;
		}
		bool text = col->type == CELL_STR;
		if (!(col->flags & COLUMN_DETAIL)) {
			struct text_column *c = &l->v[l->n_all++];
			*c = (struct text_column){.col = i, .depth_col = text ? depth_col : -1};
			c->key = text && !any_text;
			c->stack = text && (col->flags & COLUMN_STACK);
			any_text |= text;
			c->right = col->type == CELL_I64 || col->type == CELL_F64;
			measure(c, t, &scratch);
		}
		if (text)
			depth_col = -1;
	}
	l->n = l->n_all;
	text_scratch_release(&scratch);
}

static size_t total_width(const struct text_layout *l)
{
	size_t sum = l->n ? TEXT_GAP * (l->n - 1) : 0;
	for (unsigned i = 0; i < l->n; i++)
		sum += l->v[i].width;
	return sum;
}

enum cut { CUT_TITLE, CUT_WIDE, CUT_TEXT, CUTS };

/* How narrow a column may become at this stage. */
static size_t least(const struct text_column *c, const struct table *t, size_t width, enum cut cut)
{
	const struct column *col = &t->data[c->col].col;
	size_t whole = larger(c->body, c->word);
	bool wide = col->flags & (COLUMN_WIDE | COLUMN_STACK);
	if (col->type != CELL_STR || cut == CUT_TITLE || (cut == CUT_WIDE && !wide))
		return whole;
	size_t key = smaller(MIN_KEY, width / 3);
	return smaller(whole, c->key ? key : c->stack ? MIN_STACK : wide ? MIN_WIDE : MIN_TEXT);
}

/* Takes cells from the widest columns first until the table fits or nothing more can be taken. */
static void shrink(struct text_layout *l, const struct table *t, size_t width, enum cut cut)
{
	size_t total = total_width(l);
	while (total > width) {
		struct text_column *widest = NULL;
		for (unsigned i = 0; i < l->n; i++)
			if (l->v[i].width > least(&l->v[i], t, width, cut) && (!widest || l->v[i].width > widest->width))
				widest = &l->v[i];
		if (!widest)
			return;
		widest->width--;
		total--;
	}
}

static bool fit(struct text_layout *l, const struct table *t, size_t width)
{
	for (unsigned i = 0; i < l->n; i++) {
		struct text_column *c = &l->v[i];
		c->width = larger(c->body, c->title);
		if (width && t->data[c->col].col.type == CELL_STR && c->width > width)
			c->width = width; /* one huge cell must not make the loop above long */
	}
	for (int cut = 0; width && cut < CUTS; cut++)
		shrink(l, t, width, (enum cut)cut);
	return !width || total_width(l) <= width;
}

void text_layout_make(struct text_layout *l, const struct table *t, size_t width)
{
	*l = (struct text_layout){0};
	choose_columns(l, t);
	while (!fit(l, t, width) && l->n > 1)
		l->n--;
	for (unsigned i = 0; i < l->n; i++) {
		struct str title = str_from(t->data[l->v[i].col].col.title), line;
		size_t lines = 0;
		while (text_wrap(&title, l->v[i].width, &line))
			lines++;
		l->header_lines = larger(l->header_lines, lines);
	}
}

void text_layout_release(struct text_layout *l)
{
	mem_free(l->v);
}
