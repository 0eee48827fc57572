#include "base/table.h"

#include "base/mem.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const type_name[] = {
	[CELL_STR] = "string",
	[CELL_I64] = "integer",
	[CELL_F64] = "number",
	[CELL_BOOL] = "boolean",
};

static const char *const unit_name[] = {
	[UNIT_NONE] = "",
	[UNIT_COUNT] = "count",
	[UNIT_NS] = "ns",
	[UNIT_TIME_NS] = "time_ns",
	[UNIT_US] = "us",
	[UNIT_BYTES] = "bytes",
	[UNIT_PERCENT] = "percent",
	[UNIT_RATIO] = "ratio",
	[UNIT_FLOPS] = "flops",
};

const char *table_type_name(enum cell_type t)
{
	return type_name[t];
}

const char *table_unit_name(enum unit u)
{
	return unit_name[u];
}

void table_init(struct table *t, const char *name, const char *title)
{
	*t = (struct table){.name = name, .title = title};
}

static void release_one(struct table *t)
{
	for (unsigned c = 0; c < t->n_columns; c++) {
		mem_free(t->data[c].cell);
		mem_free(t->data[c].set);
	}
	mem_free(t->data);
	mem_free(t->notes);
	arena_release(&t->arena);
}

static void disown_one(const struct table *t)
{
	for (unsigned c = 0; c < t->n_columns; c++) {
		mem_disown(t->data[c].cell);
		mem_disown(t->data[c].set);
	}
	mem_disown(t->data);
	mem_disown(t->notes);
	arena_disown(&t->arena);
}

void table_disown(const struct table *t)
{
	disown_one(t);
	for (struct table *s = t->next; s; s = s->next) {
		disown_one(s);
		mem_disown(s);
	}
}

void table_release(struct table *t)
{
	for (struct table *s = t->next; s;) {
		struct table *next = s->next;
		release_one(s);
		mem_free(s);
		s = next;
	}
	release_one(t);
	*t = (struct table){0};
}

static void copy_one(struct table *out, const struct table *t)
{
	size_t rows = t->held_rows > t->n_rows ? t->held_rows : t->n_rows;
	*out = *t;
	out->next = NULL;
	out->drain = NULL;
	out->arena = (struct arena){0};
	out->cap_columns = t->n_columns;
	out->cap_rows = rows;
	out->data = NEW_ARRAY_RAW(t->n_columns, struct column_data);
	for (unsigned c = 0; c < t->n_columns; c++) {
		struct column_data *d = &out->data[c];
		*d = (struct column_data){t->data[c].col, NEW_ARRAY_RAW(rows, union cell), NEW_ARRAY_RAW(rows, uint8_t), t->data[c].left_out};
		for (size_t r = 0; r < rows; r++) {
			d->cell[r] = t->data[c].cell[r];
			d->set[r] = t->data[c].set[r];
		}
	}
	out->cap_notes = t->n_notes;
	out->notes = NEW_ARRAY_RAW(t->n_notes, struct str);
	for (unsigned i = 0; i < t->n_notes; i++)
		out->notes[i] = t->notes[i];
}

void table_copy(struct table *out, const struct table *t)
{
	copy_one(out, t);
	while ((t = t->next)) {
		out->next = NEW(struct table);
		out = out->next;
		copy_one(out, t);
	}
}

struct table *table_section(struct table *t, const char *name, const char *title)
{
	while (t->next)
		t = t->next;
	t->next = NEW(struct table);
	table_init(t->next, name, title);
	return t->next;
}

unsigned table_column(struct table *t, const struct column *c)
{
	MEM_GROW(t->data, t->cap_columns, t->n_columns + 1);
	struct column_data *d = &t->data[t->n_columns];
	*d = (struct column_data){.col = *c};
	if (t->cap_rows) {
		d->cell = NEW_ARRAY(t->cap_rows, union cell);
		d->set = NEW_ARRAY(t->cap_rows, uint8_t);
	}
	return t->n_columns++;
}

void table_columns(struct table *t, const struct column *list, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		table_column(t, &list[i]);
}

void table_leave_out(struct table *t, unsigned col)
{
	t->data[col].left_out = true;
}

void table_drop_left_out(struct table *t)
{
	for (; t; t = t->next) {
		unsigned kept = 0;
		for (unsigned c = 0; c < t->n_columns; c++) {
			if (!t->data[c].left_out) {
				t->data[kept++] = t->data[c];
				continue;
			}
			mem_free(t->data[c].cell);
			mem_free(t->data[c].set);
		}
		t->n_columns = kept;
	}
}

/* Rows that leave a table at once: few enough for the caches of a core. */
enum { TABLE_DRAIN_ROWS = 1024 };

static void table_drain_rows(struct table *t)
{
	t->drain->put(t->drain->context, t);
	arena_release(&t->drain->texts);
	t->n_rows = 0;
}

void table_end_drain(struct table *t)
{
	if (t->drain)
		arena_adopt(&t->arena, &t->drain->texts);
	t->drain = NULL;
}

size_t table_row(struct table *t)
{
	if (t->drain && t->n_rows == TABLE_DRAIN_ROWS)
		table_drain_rows(t);
	if (t->n_rows == t->cap_rows) {
		size_t cap = t->cap_rows ? t->cap_rows + t->cap_rows / 2 : 16;
		for (unsigned c = 0; c < t->n_columns; c++) {
			t->data[c].cell = mem_realloc(t->data[c].cell, cap, sizeof *t->data[c].cell);
			t->data[c].set = mem_realloc(t->data[c].set, cap, sizeof *t->data[c].set);
		}
		t->cap_rows = cap;
	}
	for (unsigned c = 0; c < t->n_columns; c++) {
		t->data[c].cell[t->n_rows] = (union cell){.s = {"", 0}};
		t->data[c].set[t->n_rows] = 0;
	}
	return t->n_rows++;
}

/* The cell of the last row, now with a value. */
static union cell *last(struct table *t, unsigned col)
{
	assert(t->n_rows && col < t->n_columns);
	t->data[col].set[t->n_rows - 1] = 1;
	return &t->data[col].cell[t->n_rows - 1];
}

void table_set_i64(struct table *t, unsigned col, int64_t v)
{
	union cell *c = last(t, col);
	assert(t->data[col].col.type != CELL_STR);
	if (t->data[col].col.type == CELL_F64)
		c->f = (double)v;
	else
		c->i = v;
}

void table_set_f64(struct table *t, unsigned col, double v)
{
	assert(col < t->n_columns && t->data[col].col.type == CELL_F64);
	if (isfinite(v))
		last(t, col)->f = v;
}

void table_set_bool(struct table *t, unsigned col, bool v)
{
	assert(col < t->n_columns && t->data[col].col.type == CELL_BOOL);
	last(t, col)->i = v;
}

void table_set_str(struct table *t, unsigned col, struct str s)
{
	assert(col < t->n_columns && t->data[col].col.type == CELL_STR);
	last(t, col)->s = s.p ? s : STR("");
}

static struct arena *table_texts_of(struct table *t)
{
	return t->drain ? &t->drain->texts : &t->arena;
}

void table_set_str_copy(struct table *t, unsigned col, struct str s)
{
	table_set_str(t, col, arena_str(table_texts_of(t), s));
}

__attribute__((nonnull)) static struct str format_in(struct arena *a, const char *fmt, va_list ap)
{
	va_list again;
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n <= 0)
		return STR("");
	char *p = arena_bytes(a, (size_t)n + 1);
	vsnprintf(p, (size_t)n + 1, fmt, ap);
	return (struct str){p, (size_t)n};
}

void table_set_fmt(struct table *t, unsigned col, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	table_set_str(t, col, format_in(table_texts_of(t), fmt, ap));
	va_end(ap);
}

void table_note(struct table *t, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	MEM_PUSH(t->notes, t->n_notes, t->cap_notes, format_in(&t->arena, fmt, ap));
	va_end(ap);
}

void table_warn_first(struct table *t, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	MEM_GROW(t->notes, t->cap_notes, t->n_notes + 1);
	memmove(t->notes + 1, t->notes, t->n_notes * sizeof *t->notes);
	t->notes[0] = format_in(&t->arena, fmt, ap);
	t->n_notes++;
	t->warnings = t->warnings << 1 | 1;
	va_end(ap);
}

void table_warn(struct table *t, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	MEM_GROW(t->notes, t->cap_notes, t->n_notes + 1);
	t->warnings |= t->n_notes < 64 ? UINT64_C(1) << t->n_notes : 0;
	t->notes[t->n_notes++] = format_in(&t->arena, fmt, ap);
	va_end(ap);
}

int table_find_column(const struct table *t, struct str id)
{
	for (unsigned c = 0; c < t->n_columns; c++)
		if (str_eqc(id, t->data[c].col.id))
			return (int)c;
	for (unsigned c = 0; c < t->n_columns; c++)
		if (str_has_word(t->data[c].col.also, id))
			return (int)c;
	return -1;
}

unsigned table_shown_column(const struct table *t, unsigned col)
{
	const struct column *c = &t->data[col].col;
	bool to_full = t->names == NAMES_FULL && c->short_of && !(c->flags & COLUMN_DETAIL);
	for (unsigned i = 0; i < t->n_columns && t->names; i++) {
		const struct column *other = &t->data[i].col;
		bool is_short = t->names == NAMES_SHORT && (c->flags & COLUMN_KERNEL) && other->short_of && !(other->flags & COLUMN_ASKED) &&
		                strcmp(other->short_of, c->id) == 0;
		if (is_short || (to_full && strcmp(other->id, c->short_of) == 0))
			return i;
	}
	return col;
}

bool table_is_null(const struct table *t, size_t row, unsigned col)
{
	assert(row < t->n_rows && col < t->n_columns);
	return !t->data[col].set[row];
}

int64_t table_i64(const struct table *t, size_t row, unsigned col)
{
	assert(row < t->n_rows && col < t->n_columns);
	assert(t->data[col].col.type == CELL_I64 || t->data[col].col.type == CELL_BOOL);
	return t->data[col].set[row] ? t->data[col].cell[row].i : 0;
}

double table_f64(const struct table *t, size_t row, unsigned col)
{
	assert(row < t->n_rows && col < t->n_columns && t->data[col].col.type != CELL_STR);
	if (!t->data[col].set[row])
		return 0;
	const union cell *c = &t->data[col].cell[row];
	return t->data[col].col.type == CELL_F64 ? c->f : (double)c->i;
}

struct str table_str(const struct table *t, size_t row, unsigned col)
{
	assert(row < t->n_rows && col < t->n_columns && t->data[col].col.type == CELL_STR);
	return t->data[col].set[row] ? t->data[col].cell[row].s : STR("");
}
