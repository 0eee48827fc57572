/* Sort, filter, limit and select. A table with a COLUMN_TREE stays a tree: sorting orders the children of each parent,
 * filtering keeps the ancestors of what it keeps. */
#include "base/table.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/search.h"

#include <assert.h>

#define NO_ROW SIZE_MAX

static void swap_arrays(size_t **a, size_t **b)
{
	size_t *x = *a;
	*a = *b;
	*b = x;
}

/* New row i is old row order[i], for n rows; rows behind them stay. */
static void table_ops_reorder(struct table *t, const size_t *order, size_t n)
{
	union cell *cell = NEW_ARRAY_RAW(t->cap_rows, union cell);
	uint8_t *set = NEW_ARRAY_RAW(t->cap_rows, uint8_t);
	/* From here on nothing is allocated: all columns change, or none. Each leaves its old room to the next. */
	for (unsigned c = 0; c < t->n_columns; c++) {
		struct column_data *d = &t->data[c];
		for (size_t i = 0; i < n; i++) {
			cell[i] = d->cell[order[i]];
			set[i] = d->set[order[i]];
		}
		for (size_t i = n; i < t->held_rows; i++) {
			cell[i] = d->cell[i];
			set[i] = d->set[i];
		}
		union cell *old_cell = d->cell;
		uint8_t *old_set = d->set;
		d->cell = cell;
		d->set = set;
		cell = old_cell;
		set = old_set;
	}
	mem_free(cell);
	mem_free(set);
}

static void hold_rows(struct table *t)
{
	if (t->held_rows < t->n_rows)
		t->held_rows = t->n_rows;
}

static int unknown_column(const struct table *t, struct str id, struct err *e)
{
	struct buf list = {0};
	for (unsigned c = 0; c < t->n_columns; c++)
		buf_printf(&list, "%s%s", c ? ", " : "", t->data[c].col.id);
	err_set(e, ERR_USAGE, "no column '" STR_FMT "' in %s; there are: " STR_FMT, STR_ARG(id), t->name,
	        STR_ARG(buf_view(&list)));
	buf_release(&list);
	return -1;
}

/* Order of two rows by one column; nulls last in either direction. */
static int table_ops_compare(const struct column_data *d, bool descending, size_t a, size_t b)
{
	if (!d->set[a] || !d->set[b])
		return (int)d->set[b] - (int)d->set[a];
	const union cell *x = &d->cell[a], *y = &d->cell[b];
	int c;
	if (d->col.type == CELL_STR)
		c = str_cmp_natural(x->s, y->s);
	else if (d->col.type == CELL_F64)
		c = (x->f > y->f) - (x->f < y->f);
	else
		c = (x->i > y->i) - (x->i < y->i);
	return descending ? -c : c;
}

/* Row numbers in sorted order: bottom-up merge sort, stable. The caller frees the result. */
static size_t *sorted_rows(const struct table *t, const struct column_data *d, bool descending)
{
	size_t n = t->n_rows;
	size_t *from = NEW_ARRAY_RAW(n, size_t), *to = NEW_ARRAY_RAW(n, size_t);
	for (size_t i = 0; i < n; i++)
		from[i] = i;
	for (size_t run = 1; run < n; run *= 2) {
		for (size_t lo = 0; lo < n; lo += 2 * run) {
			size_t mid = lo + run < n ? lo + run : n, hi = mid + run < n ? mid + run : n;
			size_t a = lo, b = mid;
			for (size_t k = lo; k < hi; k++)
				to[k] = b == hi || (a < mid && table_ops_compare(d, descending, from[a], from[b]) <= 0)
				                ? from[a++]
				                : from[b++];
		}
		swap_arrays(&from, &to);
	}
	mem_free(to);
	return from;
}

static const struct column_data *tree_column(const struct table *t)
{
	return ELEMENT_WHERE(c, t->data, t->n_columns,
	                     (t->data[c].col.flags & COLUMN_TREE) && t->data[c].col.type == CELL_I64 && !t->data[c].left_out);
}

/* The row of which each row is a child, NO_ROW for roots. Rows stand in pre-order, so the open ancestors of a row are the
 * chain of parents of the row before it. The caller frees the result. */
static size_t *tree_parents(const struct table *t, const struct column_data *depth)
{
	size_t *parent = NEW_ARRAY_RAW(t->n_rows, size_t);
	for (size_t i = 0; i < t->n_rows; i++) {
		size_t up = i ? i - 1 : NO_ROW;
		while (up != NO_ROW && depth->cell[up].i >= depth->cell[i].i)
			up = parent[up];
		parent[i] = up;
	}
	return parent;
}

/* Rearranges `order`, in which any row may stand anywhere, so that it is a pre-order with siblings in their order there. */
static void order_as_tree(const struct table *t, const struct column_data *depth, size_t *order)
{
	size_t n = t->n_rows, *parent = tree_parents(t, depth);
	size_t *child = NEW_ARRAY_RAW(n + 1, size_t), *sibling = NEW_ARRAY_RAW(n + 1, size_t);
	for (size_t i = 0; i <= n; i++)
		child[i] = sibling[i] = NO_ROW;
	for (size_t k = n; k-- > 0;) {
		size_t up = parent[order[k]] == NO_ROW ? n : parent[order[k]]; /* n stands above all roots */
		sibling[order[k]] = child[up];
		child[up] = order[k];
	}
	size_t at = child[n], used = 0;
	while (at != NO_ROW) {
		order[used++] = at;
		if (child[at] != NO_ROW) {
			at = child[at];
			continue;
		}
		while (at != NO_ROW && sibling[at] == NO_ROW)
			at = parent[at];
		if (at != NO_ROW)
			at = sibling[at];
	}
	mem_free(parent);
	mem_free(child);
	mem_free(sibling);
}

int table_sort(struct table *t, struct str column, bool descending, struct err *e)
{
	assert(!t->drain); /* rows have left it */
	int col = table_find_column(t, column);
	if (col < 0)
		return unknown_column(t, column, e);
	if (t->n_rows < 2)
		return 0;
	size_t *order = sorted_rows(t, &t->data[col], descending);
	const struct column_data *depth = tree_column(t);
	if (depth)
		order_as_tree(t, depth, order);
	table_ops_reorder(t, order, t->n_rows);
	mem_free(order);
	return 0;
}

static bool row_has(const struct table *t, size_t row, struct str text)
{
	return ANY_WHERE(c, 0, t->n_columns, t->data[c].col.type == CELL_STR && t->data[c].set[row] && str_has_nocase(t->data[c].cell[row].s, text));
}

/* Marks the ancestors of marked rows. A marked ancestor ends the climb, so this is O(rows). */
static void keep_ancestors(const struct table *t, const struct column_data *depth, uint8_t *keep)
{
	size_t *parent = tree_parents(t, depth);
	for (size_t i = t->n_rows; i-- > 0;)
		if (keep[i])
			for (size_t up = parent[i]; up != NO_ROW && !keep[up]; up = parent[up])
				keep[up] = 1;
	mem_free(parent);
}

bool table_has_text(const struct table *t)
{
	return ANY_WHERE(c, 0, t->n_columns, t->data[c].col.type == CELL_STR);
}

void table_filter(struct table *t, struct str text)
{
	assert(!t->drain);
	if (!t->n_rows || !table_has_text(t))
		return;
	uint8_t *keep = NEW_ARRAY_RAW(t->n_rows, uint8_t);
	for (size_t i = 0; i < t->n_rows; i++)
		keep[i] = row_has(t, i, text);
	const struct column_data *depth = tree_column(t);
	if (depth)
		keep_ancestors(t, depth, keep);
	table_keep(t, keep);
	mem_free(keep);
}

void table_keep(struct table *t, const uint8_t *keep)
{
	assert(!t->drain);
	if (!t->n_rows)
		return;
	hold_rows(t);
	size_t *order = NEW_ARRAY_RAW(t->n_rows, size_t), n = 0, kept;
	for (int round = 1; round >= 0; round--)
		for (size_t i = 0; i < t->n_rows; i++)
			if (!keep[i] == !round)
				order[n++] = i;
	for (kept = 0, n = 0; n < t->n_rows; n++)
		kept += keep[n] != 0;
	table_ops_reorder(t, order, t->n_rows);
	t->n_rows = kept;
	mem_free(order);
}

void table_limit(struct table *t, size_t n)
{
	assert(!t->drain);
	if (!n || t->whole || t->n_rows <= n)
		return;
	hold_rows(t);
	t->hidden_rows += t->n_rows - n;
	t->n_rows = n;
}

/* The COLUMN_TREE that indents column `c`, -1 = none: the last one before it with no text column in between. */
static int indent_of(const struct table *t, unsigned c)
{
	if (t->data[c].col.type != CELL_STR)
		return -1;
	while (c-- > 0) {
		const struct column *col = &t->data[c].col;
		if (col->type == CELL_STR)
			return -1;
		if ((col->flags & COLUMN_TREE) && col->type == CELL_I64)
			return (int)c;
	}
	return -1;
}

/* Columns of short names whose full names are chosen, and the other way round, stay in the background. */
static unsigned pick_names(const struct table *t, uint8_t *asked, unsigned *pick, unsigned n)
{
	for (unsigned i = 0; i < t->n_columns; i++) {
		const struct column *c = &t->data[i].col;
		int full = c->short_of ? table_find_column(t, str_from(c->short_of)) : -1;
		if (full < 0 || (asked[i] != 0) == (asked[full] != 0))
			continue;
		unsigned kept = asked[i] ? (unsigned)full : i;
		asked[kept] = 3;
		pick[n++] = kept;
	}
	return n;
}

/* Column numbers in the order chosen, each once. `asked` gets 1 for those named, 2 for those kept to indent, 3 for those kept for their names. */
static unsigned pick_columns(const struct table *t, struct str ids, uint8_t *asked, unsigned *pick)
{
	unsigned n = 0;
	struct str rest = ids, id;
	while (str_split(&rest, ',', &id))
		asked[table_find_column(t, id)] = 1;
	uint8_t *taken = NEW_ARRAY(t->n_columns, uint8_t);
	rest = ids;
	while (str_split(&rest, ',', &id)) {
		unsigned c = (unsigned)table_find_column(t, id);
		int depth = indent_of(t, c);
		if (taken[c])
			continue;
		if (depth >= 0 && !asked[depth]) {
			pick[n++] = (unsigned)depth;
			asked[depth] = 2;
		}
		pick[n++] = c;
		taken[c] = 1;
	}
	mem_free(taken);
	return pick_names(t, asked, pick, n);
}

int table_select(struct table *t, struct str comma_separated_ids, struct err *e)
{
	struct str rest = comma_separated_ids, id;
	while (str_split(&rest, ',', &id))
		if (table_find_column(t, id) < 0)
			return unknown_column(t, id, e);

	struct column_data *old = t->data;
	unsigned n_old = t->n_columns;
	unsigned *pick = NEW_ARRAY_RAW(n_old, unsigned);
	uint8_t *asked = NEW_ARRAY(n_old, uint8_t);
	unsigned n = pick_columns(t, comma_separated_ids, asked, pick);
	t->data = NEW_ARRAY(n, struct column_data);
	for (unsigned i = 0; i < n; i++) {
		t->data[i] = old[pick[i]];
		t->data[i].col.flags &= ~(unsigned)(COLUMN_DETAIL | COLUMN_INDENT);
		t->data[i].col.flags |= asked[pick[i]] == 3 ? COLUMN_INDENT | COLUMN_DETAIL : asked[pick[i]] == 2 ? COLUMN_INDENT : COLUMN_ASKED;
	}
	t->n_columns = t->cap_columns = n;
	for (unsigned c = 0; c < n_old; c++)
		if (!asked[c]) {
			mem_free(old[c].cell);
			mem_free(old[c].set);
		}
	mem_free(old);
	mem_free(pick);
	mem_free(asked);
	return 0;
}

int table_show_in(struct table *t, const char *unit, struct err *e)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	for (unsigned i = 0; i < sizeof units / sizeof *units; i++) {
		if (!str_eqc(str_from(unit), units[i]))
			continue;
		for (unsigned c = 0; c < t->n_columns; c++)
			t->data[c].col.shown_in = units[i];
		return 0;
	}
	return err_set(e, ERR_USAGE, "'%s': ns, us, ms or s was expected", unit);
}

int table_max_width(struct table *t, struct str widths, struct err *e)
{
	struct str rest = widths, part;
	while (str_split(&rest, ',', &part)) {
		ptrdiff_t colon = str_find(part, STR(":"));
		size_t from = colon < 0 ? 0 : (size_t)colon + 1;
		int64_t n;
		if (!str_to_i64((struct str){part.p + from, part.n - from}, &n) || n <= 0 || n > 1000000)
			return err_set(e, ERR_USAGE, "'" STR_FMT "': N or COLUMN:N was expected, N from 1 on", STR_ARG(part));
		int only = colon < 0 ? -1 : table_find_column(t, (struct str){part.p, (size_t)colon});
		if (colon >= 0 && only < 0)
			return unknown_column(t, (struct str){part.p, (size_t)colon}, e);
		if (only >= 0 && t->data[only].col.type != CELL_STR)
			return err_set(e, ERR_USAGE, "'" STR_FMT "': the column holds numbers, which are not cut", STR_ARG(part));
		for (unsigned c = 0; c < t->n_columns; c++)
			if (colon < 0 ? t->data[c].col.type == CELL_STR : (int)c == only)
				t->data[c].col.max_width = (unsigned)n;
	}
	return 0;
}
