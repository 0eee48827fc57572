#include "render/text_layout.h"

#include "base/mem.h"
#include "base/search.h"
#include "base/utf8.h"
#include "render/render.h"
#include "render/text_cut.h"
#include "render/text_room.h"

#include <sys/param.h>

enum { MAX_DEPTH = 32 }; /* deeper trees are not indented further */

void text_scratch_release(struct text_scratch *s)
{
	buf_release(&s->raw);
	buf_release(&s->short_paths);
	buf_release(&s->safe);
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
		longest = MAX(longest, text_width(word));
	return longest;
}

static bool same_cell(const struct column_data *d, size_t a, size_t b)
{
	if (d->set[a] != d->set[b] || !d->set[a])
		return d->set[a] == d->set[b];
	switch (d->col.type) {
	case CELL_STR:
		return str_eq(d->cell[a].s, d->cell[b].s);
	case CELL_F64:
		return d->cell[a].f == d->cell[b].f;
	case CELL_I64:
	case CELL_BOOL:
		break;
	}
	return d->cell[a].i == d->cell[b].i;
}

/* Null counts as zero; a number of another unit than a count or an amount (a device, a step) is no zero. */
static bool is_zero(const struct column_data *d, size_t row)
{
	if (!d->set[row])
		return true;
	switch (d->col.unit) {
	case UNIT_NONE:
	case UNIT_TIME_NS:
		return false;
	default:
		return d->col.type == CELL_F64 ? d->cell[row].f == 0 : d->col.type == CELL_I64 && d->cell[row].i == 0;
	}
}

static void render_text_layout_measure(struct text_column *c, const struct table *t, struct text_scratch *scratch)
{
	struct str title = str_from(t->data[c->col].col.title);
	c->title = text_width(title);
	c->word = longest_word(title);
	c->empty = c->zero = c->constant = t->n_rows > 0;
	for (size_t r = 0; r < t->n_rows; r++) {
		struct str text = text_cell(t, r, c, scratch);
		c->body = MAX(c->body, text_width(text));
		c->empty &= !t->data[c->col].set[r] || !text.n;
		c->zero &= is_zero(&t->data[c->col], r);
		c->constant &= same_cell(&t->data[c->col], 0, r);
		if (c->can_share)
			text_alike_add(&c->alike, text);
	}
	c->constant &= t->n_rows > 1 && !c->empty && c->depth_col < 0;
	c->zero &= !c->empty && !c->constant;
}

static void render_text_layout_choose_columns(struct text_layout *l, const struct table *t)
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
		if (!(col->flags & COLUMN_DETAIL) || (col->flags & COLUMN_ASKED)) {
			struct text_column *c = &l->v[l->n_all++];
			*c = (struct text_column){.col = i, .depth_col = text ? depth_col : -1};
			c->key = text && !any_text;
			c->short_names = t->names == NAMES_SHORT && (table_shown_column(t, i) != i || col->short_of);
			c->stack = text && (col->flags & COLUMN_STACK);
			c->can_share = text && !c->stack && depth_col < 0;
			any_text |= text;
			c->right = col->type == CELL_I64 || col->type == CELL_F64;
			text_alike_init(&c->alike, col->flags & COLUMN_PATH);
			render_text_layout_measure(c, t, &scratch);
		} else {
			l->n_details += !col->short_of && !(col->flags & COLUMN_INDENT);
		}
		if (text)
			depth_col = -1;
	}
	l->n = l->n_all;
	text_scratch_release(&scratch);
}

static size_t count_header_lines(const struct text_layout *l, const struct table *t)
{
	size_t most = 0;
	for (unsigned i = 0; i < l->n; i++) {
		struct str title = str_from(t->data[l->v[i].col].col.title), line;
		size_t lines = 0;
		while (text_wrap(&title, l->v[i].width, &line))
			lines++;
		most = MAX(most, lines);
	}
	return most;
}

static bool render_text_layout_has_prose(const struct text_layout *l, const struct table *t)
{
	return ANY_WHERE(i, 0, l->n_all, t->data[l->v[i].col].col.flags & COLUMN_PROSE);
}

static void choose_cut(struct text_column *c)
{
	unsigned distinct;
	c->how = text_alike_choose(&c->alike, c->width, &distinct);
	size_t widest = c->how >= TEXT_SHARED_HEAD ? text_alike_widest(&c->alike) : 0;
	if (widest && MAX(widest, c->word) < c->width)
		c->width = MAX(widest, c->word);
}

void text_layout_make(struct text_layout *l, const struct table *t, size_t width)
{
	*l = (struct text_layout){0};
	render_text_layout_choose_columns(l, t);
	for (unsigned i = 0; i < l->n; i++)
		l->v[i].width = MAX(l->v[i].body, l->v[i].title);
	if (width && !render_text_layout_has_prose(l, t))
		text_room_find(l, t, width);
	for (unsigned i = 0; i < l->n; i++) {
		unsigned most = t->data[l->v[i].col].col.max_width;
		if (most && l->v[i].width > most)
			l->v[i].width = MAX(l->v[i].word, most);
	}
	for (unsigned i = 0; i < l->n; i++)
		if (l->v[i].can_share && l->v[i].width < l->v[i].body)
			choose_cut(&l->v[i]);
	l->header_lines = count_header_lines(l, t);
}

void text_layout_release(struct text_layout *l)
{
	for (unsigned i = 0; i < l->n_all; i++)
		text_alike_release(&l->v[i].alike);
	mem_free(l->v);
}
