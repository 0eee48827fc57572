/* The table of prof.key_averages().table() (torch/autograd/profiler_util.py). What stands where follows from the columns: text columns are
 * as wide as their longest text of all rows, those left out too; everything else takes 12 characters, and what is longer sticks out.
 *   first text column        the name: cut at its end; every further one that is none of those below is as wide
 *   COLUMN_WIDE              shapes: cut without a mark
 *   COLUMN_STACK             at the left, a line for each frame, cut at its start; then an empty line
 *   UNIT_FLOPS               one unit for all rows, named in the heading; left out when no row has any
 *   null of UNIT_PERCENT     NaN: the base is 0
 *   is_async (bool)          total_cpu_percent of such rows is a bare 0
 * Columns of text that no row has are left out. Where FLOPs and a stack both stand, torch writes FLOPs below the stack's heading and the
 * stack below the FLOPs'. Each further table is a line "TEXT: TIME" a row below it; notes follow. */
#include "base/mem.h"
#include "base/search.h"
#include "base/utf8.h"
#include "render/layout.h"
#include "render/number.h"
#include "render/torch_format.h"

enum { OTHER_WIDTH = 12, NAME_WIDTH = 55, SHAPES_WIDTH = 80, STACK_WIDTH = 75, ROOM = 4, GAP = 2 };

/* What differs between the versions. */
static const struct style {
	const char *layout;        /* as struct table has it */
	const char *const *memory;
	unsigned frames;           /* lines of a stack; 0 = all */
} styles[] = {
	{"torch-1.13", torch_memory_units_old, 5},
	{"torch-2.6", torch_memory_units_old, 0},
	{"torch-2.11", torch_memory_units, 0},
	{"torch-2.14", torch_memory_units, 0},
};

enum render_layout_torch_kind { NAME, SHAPES, STACK, FLOPS, OTHER };

struct place {
	unsigned col;
	enum render_layout_torch_kind kind;
	size_t width, most;
};

struct sheet {
	const struct table *t;
	const struct style *style;
	struct buf *out;
	struct place *v;
	unsigned n;
	int async;                 /* column; -1 = none */
	struct torch_flops_unit flops;
	struct buf text, part;
};

static size_t all_rows(const struct table *t)
{
	return t->held_rows > t->n_rows ? t->held_rows : t->n_rows;
}

static size_t render_layout_torch_length(struct str s)
{
	size_t n = 0;
	uint32_t code;
	for (size_t at = 0; at < s.n; n++)
		at += utf8_next(s, at, &code);
	return n;
}

/* The first n characters. */
static struct str render_layout_torch_head(struct str s, size_t n)
{
	size_t at = 0;
	uint32_t code;
	while (n-- && at < s.n)
		at += utf8_next(s, at, &code);
	return (struct str){s.p, at};
}

static struct str without_head(struct str s, size_t n)
{
	size_t cut = render_layout_torch_head(s, n).n;
	return (struct str){s.p + cut, s.n - cut};
}

/* The text of a cell as it may be shown; valid until the next call. */
static struct str render_layout_torch_text_of(struct sheet *s, size_t row, unsigned col)
{
	const struct column_data *d = &s->t->data[col];
	buf_clear(&s->text);
	if (d->set[row])
		utf8_put_safe(&s->text, d->cell[row].s);
	return buf_view(&s->text);
}

static enum render_layout_torch_kind render_layout_torch_kind_of(const struct column *c)
{
	if (c->type == CELL_STR)
		return c->flags & COLUMN_STACK ? STACK : c->flags & COLUMN_WIDE ? SHAPES : NAME;
	return c->type == CELL_I64 && c->unit == UNIT_FLOPS ? FLOPS : OTHER;
}

/* The longest text, or the longest frame. */
static size_t longest(struct sheet *s, const struct place *p)
{
	size_t most = 0;
	for (size_t r = 0; r < all_rows(s->t); r++) {
		struct str rest = render_layout_torch_text_of(s, r, p->col), line;
		while (str_split(&rest, p->kind == STACK ? ';' : '\n', &line)) {
			size_t n = render_layout_torch_length(line);
			most = n > most ? n : most;
		}
	}
	return most;
}

static int64_t smallest_flops(const struct sheet *s, unsigned col)
{
	const struct column_data *d = &s->t->data[col];
	int64_t least = 0;
	for (size_t r = 0; r < all_rows(s->t); r++)
		if (d->set[r] && d->cell[r].i > 0 && (!least || d->cell[r].i < least))
			least = d->cell[r].i;
	return least;
}

/* False when the column is left out. */
static bool render_layout_torch_measure(struct sheet *s, struct place *p)
{
	static const unsigned usual[] = {[NAME] = NAME_WIDTH, [SHAPES] = SHAPES_WIDTH, [STACK] = STACK_WIDTH, [FLOPS] = 0, [OTHER] = 0};
	const struct column *c = &s->t->data[p->col].col;
	p->width = OTHER_WIDTH;
	if (p->kind == FLOPS) {
		int64_t least = smallest_flops(s, p->col);
		s->flops = torch_flops_unit_of(least ? least : 1);
		return least > 0;
	}
	if (p->kind == OTHER)
		return true;
	p->most = c->max_width ? c->max_width : usual[p->kind];
	size_t n = longest(s, p);
	p->width = n + ROOM < p->most ? n + ROOM : p->most;
	return n > 0;
}

static void render_layout_torch_find_places(struct sheet *s)
{
	size_t name = 0;
	s->v = NEW_ARRAY(s->t->n_columns + 1, struct place);
	for (unsigned c = 0; c < s->t->n_columns; c++) {
		const struct column *col = &s->t->data[c].col;
		struct place *p = &s->v[s->n];
		*p = (struct place){.col = c, .kind = render_layout_torch_kind_of(col)};
		if ((col->flags & (COLUMN_DETAIL | COLUMN_INDENT)) || !render_layout_torch_measure(s, p))
			continue;
		if (p->kind == NAME)
			p->width = name = name ? name : p->width;
		s->n++;
	}
}

static void put_in(struct sheet *s, const struct place *p, struct str text)
{
	size_t n = render_layout_torch_length(text), fill = n < p->width ? p->width - n : 0;
	buf_fill(s->out, ' ', p->kind == STACK ? 0 : fill);
	buf_str(s->out, text);
	buf_fill(s->out, ' ', (p->kind == STACK ? fill : 0) + GAP);
}

static void render_layout_torch_end_line(struct sheet *s)
{
	buf_char(s->out, '\n');
}

static void put_rule(struct sheet *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		buf_fill(s->out, '-', s->v[i].width);
		buf_fill(s->out, ' ', GAP);
	}
	render_layout_torch_end_line(s);
}

static void put_banner(struct sheet *s, const char *text)
{
	size_t n = 0;
	if (!text)
		return;
	for (unsigned i = 0; i < s->n; i++)
		n += s->v[i].width + (i ? GAP : 0);
	buf_fill(s->out, '=', n);
	render_layout_torch_end_line(s);
	utf8_put_safe(s->out, str_from(text));
	render_layout_torch_end_line(s);
}

static void render_layout_torch_put_header(struct sheet *s)
{
	put_rule(s);
	for (unsigned i = 0; i < s->n; i++) {
		buf_clear(&s->part);
		buf_cstr(&s->part, s->v[i].kind == FLOPS ? "Total " : "");
		buf_cstr(&s->part, s->v[i].kind == FLOPS ? s->flops.name : s->t->data[s->v[i].col].col.title);
		put_in(s, &s->v[i], buf_view(&s->part));
	}
	render_layout_torch_end_line(s);
	put_rule(s);
}

static void render_layout_torch_cut_name(struct sheet *s, struct str text, size_t most)
{
	size_t keep = most > 3 ? most - 3 : 0;
	bool cut = render_layout_torch_length(text) >= keep;
	buf_str(&s->part, cut ? render_layout_torch_head(text, keep) : text);
	buf_cstr(&s->part, cut ? "..." : "");
}

static void cut_path(struct sheet *s, struct str text, size_t width)
{
	size_t n = render_layout_torch_length(text);
	bool mark = n > width && width > 3;
	if (n > width)
		text = without_head(text, n - width + (mark ? 3 : 0));
	buf_cstr(&s->part, mark ? "..." : "");
	buf_str(&s->part, text);
}

static struct str first_frame(struct str stack)
{
	struct str line = STR("");
	str_split(&stack, ';', &line);
	return line;
}

static void render_layout_torch_put_number(struct sheet *s, size_t row, const struct place *p)
{
	const struct column_data *d = &s->t->data[p->col];
	const struct column *c = &d->col;
	double v = c->type == CELL_F64 ? d->cell[row].f : (double)d->cell[row].i;
	if (c->unit == UNIT_PERCENT && s->async >= 0 && s->t->data[s->async].cell[row].i && strcmp(c->id, "total_cpu_percent") == 0)
		buf_char(&s->part, '0');
	else if (!d->set[row])
		buf_cstr(&s->part, c->unit == UNIT_PERCENT ? "NaN" : "-");
	else if (c->unit == UNIT_NS || c->unit == UNIT_US)
		torch_text_time(&s->part, c->unit == UNIT_NS ? v / 1000 : v, c->shown_in);
	else if (c->unit == UNIT_PERCENT)
		torch_text_share(&s->part, v);
	else if (c->unit == UNIT_BYTES && c->type == CELL_I64)
		torch_text_memory(&s->part, d->cell[row].i, s->style->memory);
	else if (c->type == CELL_BOOL)
		buf_cstr(&s->part, d->cell[row].i ? "True" : "False");
	else if (c->type == CELL_I64)
		buf_i64(&s->part, d->cell[row].i);
	else
		number_shortest(&s->part, v);
}

/* The cell in s->part. */
static void make_cell(struct sheet *s, size_t row, const struct place *p)
{
	buf_clear(&s->part);
	const struct column_data *d = &s->t->data[p->col];
	switch (p->kind) {
	case NAME:
		render_layout_torch_cut_name(s, render_layout_torch_text_of(s, row, p->col), p->most);
		break;
	case SHAPES:
		buf_str(&s->part, render_layout_torch_head(render_layout_torch_text_of(s, row, p->col), p->width));
		break;
	case STACK:
		cut_path(s, first_frame(render_layout_torch_text_of(s, row, p->col)), p->width);
		break;
	case FLOPS:
		torch_text_flops(&s->part, d->set[row] ? d->cell[row].i : 0, s->flops.scale);
		break;
	case OTHER:
		render_layout_torch_put_number(s, row, p);
	}
}

/* Which column's value stands in column i: those of a stack and of the FLOPs behind it change places. */
static const struct place *render_layout_torch_value_of(const struct sheet *s, unsigned i)
{
	if (i + 1 < s->n && s->v[i].kind == STACK && s->v[i + 1].kind == FLOPS)
		return &s->v[i + 1];
	return i && s->v[i].kind == FLOPS && s->v[i - 1].kind == STACK ? &s->v[i - 1] : &s->v[i];
}

/* A line that has text in its last column alone. */
static void put_last(struct sheet *s, struct str text)
{
	for (unsigned i = 0; i < s->n; i++)
		put_in(s, &s->v[i], i + 1 < s->n ? STR("") : text);
	render_layout_torch_end_line(s);
}

/* The frames behind the first, and an empty line. */
static void put_frames(struct sheet *s, size_t row, const struct place *p)
{
	struct str rest = render_layout_torch_text_of(s, row, p->col), line;
	for (unsigned n = 0; rest.n && str_split(&rest, ';', &line) && (!s->style->frames || n < s->style->frames); n++) {
		if (!n)
			continue;
		buf_clear(&s->part);
		cut_path(s, line, p->width);
		put_last(s, buf_view(&s->part));
	}
	put_last(s, STR(""));
}

static void render_layout_torch_put_row(struct sheet *s, size_t row)
{
	const struct place *stack = NULL;
	for (unsigned i = 0; i < s->n; i++) {
		stack = s->v[i].kind == STACK ? &s->v[i] : stack;
		make_cell(s, row, render_layout_torch_value_of(s, i));
		put_in(s, &s->v[i], buf_view(&s->part));
	}
	render_layout_torch_end_line(s);
	if (stack)
		put_frames(s, row, stack);
}

/* "Self CPU time total: 1.234ms". */
static void render_layout_torch_put_totals(struct sheet *s, const struct table *t)
{
	for (size_t r = 0; t->n_columns > 1 && r < t->n_rows; r++) {
		utf8_put_safe(s->out, t->data[0].cell[r].s);
		buf_cstr(s->out, ": ");
		torch_text_time(s->out, t->data[1].cell[r].f, t->data[1].col.shown_in);
		render_layout_torch_end_line(s);
	}
}

static const struct style *style_of(const char *layout)
{
	return ELEMENT_WHERE(i, styles, sizeof styles / sizeof *styles, strcmp(styles[i].layout, layout) == 0);
}

static bool knows(const char *layout)
{
	return style_of(layout) != NULL;
}

static void layout_torch_put(const struct table *t, struct buf *out)
{
	struct sheet s = {.t = t, .style = style_of(t->layout), .out = out, .async = table_find_column(t, STR("is_async"))};
	if (!t->n_rows && !t->held_rows)
		return;
	render_layout_torch_find_places(&s);
	put_banner(&s, t->heading);
	put_banner(&s, t->banner);
	render_layout_torch_put_header(&s);
	for (size_t r = 0; r < t->n_rows; r++)
		render_layout_torch_put_row(&s, r);
	put_rule(&s);
	for (const struct table *more = t->next; more; more = more->next)
		render_layout_torch_put_totals(&s, more);
	for (unsigned i = 0; i < t->n_notes; i++) {
		utf8_put_safe(out, t->notes[i]);
		render_layout_torch_end_line(&s);
	}
	mem_free(s.v);
	buf_release(&s.text);
	buf_release(&s.part);
}

const struct layout layout_torch = {
	.name = "torch",
	.rows = 100,
	.knows = knows,
	.put = layout_torch_put,
};
