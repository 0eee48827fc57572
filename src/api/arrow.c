#include "opscope/arrow.h"

#include "api/api.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdatomic.h>

/* Above it, offsets into text need 64 bits. Tests have a smaller one. */
#ifndef ARROW_TEXT_MAX
#define ARROW_TEXT_MAX INT32_MAX
#endif

/* --- schemas ---------------------------------------------------------------------------------------------------- */

struct arrow_field {
	const char *name, *format, *metadata;
};

/* What all schemas of one table share; the last of them frees it. */
struct arrow_fields {
	atomic_uint users;
	unsigned n;              /* columns; field 0 is the whole, column c is field c + 1 */
	struct arrow_field *field;
	struct arena arena;
};

static void fields_leave(struct arrow_fields *f)
{
	if (atomic_fetch_sub(&f->users, 1) > 1)
		return;
	arena_release(&f->arena);
	mem_free(f);
}

static void put_i32(struct buf *b, size_t n)
{
	int32_t v = (int32_t)n;
	buf_put(b, &v, sizeof v);
}

/* Pairs of a key and a value, NULL at the end; values that are NULL or empty are left out. */
static const char *arrow_metadata(struct arena *a, const char *const *pair)
{
	struct buf body = {0}, all = {0}, text = {0};
	size_t n = 0;
	for (; pair[0]; pair += 2) {
		if (!pair[1] || !*pair[1])
			continue;
		n++;
		put_i32(&body, strlen(pair[0]));
		buf_cstr(&body, pair[0]);
		buf_clear(&text);
		utf8_put_valid(&text, str_from(pair[1]));
		put_i32(&body, text.n);
		buf_str(&body, buf_view(&text));
	}
	put_i32(&all, n);
	buf_str(&all, buf_view(&body));
	const char *kept = arena_str(a, buf_view(&all)).p;
	buf_release(&body);
	buf_release(&all);
	buf_release(&text);
	return n ? kept : NULL;
}

static const struct column_data *arrow_column_of(const struct opscope_table *t, unsigned c)
{
	return &t->t->data[t->column[c]];
}

/* s, or what it becomes in *scratch. */
static struct str as_utf8(struct str s, struct buf *scratch)
{
	if (utf8_valid(s))
		return s;
	buf_clear(scratch);
	utf8_put_valid(scratch, s);
	return buf_view(scratch);
}

/* Of all rows of a text column. */
static size_t text_bytes(const struct column_data *d, size_t rows)
{
	struct buf scratch = {0};
	size_t n = 0;
	for (size_t r = 0; r < rows; r++)
		if (d->set[r])
			n += as_utf8(d->cell[r].s, &scratch).n;
	buf_release(&scratch);
	return n;
}

static const char *format_of(const struct opscope_table *t, unsigned c)
{
	const struct column_data *d = arrow_column_of(t, c);
	switch (d->col.type) {
	case CELL_I64:
		return "l";
	case CELL_F64:
		return "g";
	case CELL_BOOL:
		return "b";
	case CELL_STR:
		break;
	}
	return text_bytes(d, t->t->n_rows) > ARROW_TEXT_MAX ? "U" : "u";
}

static const char *all_notes(const struct table *t, struct arena *a)
{
	struct buf b = {0};
	for (unsigned i = 0; i < t->n_notes; i++)
		buf_printf(&b, "%s" STR_FMT, i ? "\n" : "", STR_ARG(t->notes[i]));
	const char *kept = arena_str(a, buf_view(&b)).p;
	buf_release(&b);
	return kept;
}

static struct arrow_fields *arrow_describe(const struct opscope_table *t)
{
	struct arrow_fields *f = NEW(struct arrow_fields);
	struct arena *a = &f->arena;
	f->n = t->n_columns;
	f->field = ARENA_ARRAY(a, f->n + 1, struct arrow_field);
	const char *const whole[] = {"report", t->t->name, "title", t->t->heading ? t->t->heading : t->t->title, "input", t->input,
	                             "notes", all_notes(t->t, a), NULL};
	f->field[0] = (struct arrow_field){"", "+s", arrow_metadata(a, whole)};
	for (unsigned c = 0; c < f->n; c++) {
		const struct column *col = &arrow_column_of(t, c)->col;
		const char *const pairs[] = {"title", col->title, "unit", table_unit_name(col->unit), "help", col->help, NULL};
		struct buf id = {0};
		utf8_put_valid(&id, str_from(col->id));
		f->field[c + 1] = (struct arrow_field){arena_str(a, buf_view(&id)).p, format_of(t, c), arrow_metadata(a, pairs)};
		buf_release(&id);
	}
	return f;
}

static void release_schema(struct ArrowSchema *s)
{
	for (int64_t i = 0; i < s->n_children; i++) {
		if (s->children[i]->release)
			s->children[i]->release(s->children[i]);
		mem_free(s->children[i]);
	}
	mem_free(s->children);
	fields_leave(s->private_data);
	s->release = NULL;
}

static void fill_field(struct arrow_fields *f, unsigned i, struct ArrowSchema *out)
{
	const struct arrow_field *field = &f->field[i];
	atomic_fetch_add(&f->users, 1);
	*out = (struct ArrowSchema){.format = field->format, .name = field->name, .metadata = field->metadata, .flags = i ? ARROW_FLAG_NULLABLE : 0,
	                            .release = release_schema, .private_data = f};
}

/* The whole, which has all other fields as its children. Memory first: then all of it counts as a user of *f, or none. */
static void fill_schema(struct arrow_fields *f, struct ArrowSchema *out)
{
	struct ArrowSchema **children = NEW_ARRAY_RAW(f->n, struct ArrowSchema *);
	for (unsigned c = 0; c < f->n; c++)
		children[c] = NEW(struct ArrowSchema);
	fill_field(f, 0, out);
	out->n_children = f->n;
	out->children = children;
	for (unsigned c = 0; c < f->n; c++)
		fill_field(f, c + 1, children[c]);
}

/* --- the cells -------------------------------------------------------------------------------------------------- */

enum { ALIGN = 64 };

/* Buffers of one column, in one block. */
struct arrow_block {
	void *memory;
	char *at;
	const void *buffer[3];
};

static void release_array(struct ArrowArray *a)
{
	struct arrow_block *b = a->private_data;
	for (int64_t i = 0; i < a->n_children; i++) {
		if (a->children[i]->release)
			a->children[i]->release(a->children[i]);
		mem_free(a->children[i]);
	}
	mem_free(a->children);
	mem_free(b->memory);
	mem_free(b);
	a->release = NULL;
}

static size_t arrow_padded(size_t bytes)
{
	return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static struct arrow_block *new_block(size_t bytes)
{
	struct arrow_block *b = NEW(struct arrow_block);
	b->memory = mem_zalloc(bytes + ALIGN, 1);
	b->at = (char *)(((uintptr_t)b->memory + ALIGN - 1) / ALIGN * ALIGN);
	return b;
}

static void *arrow_take(struct arrow_block *b, size_t bytes)
{
	void *p = b->at;
	b->at += arrow_padded(bytes);
	return p;
}

static void arrow_set_bit(uint8_t *bits, size_t i)
{
	bits[i / 8] |= (uint8_t)(1u << i % 8);
}

static int64_t fill_validity(const struct column_data *d, size_t rows, uint8_t *bits)
{
	int64_t nulls = 0;
	for (size_t r = 0; r < rows; r++)
		if (d->set[r])
			arrow_set_bit(bits, r);
		else
			nulls++;
	return nulls;
}

static void fill_text(const struct column_data *d, size_t rows, bool large, void *offsets, char *text)
{
	struct buf scratch = {0};
	size_t n = 0;
	for (size_t r = 0; r <= rows; r++) {
		if (large)
			((int64_t *)offsets)[r] = (int64_t)n;
		else
			((int32_t *)offsets)[r] = (int32_t)n;
		if (r == rows || !d->set[r])
			continue;
		struct str s = as_utf8(d->cell[r].s, &scratch);
		memcpy(text + n, s.p, s.n);
		n += s.n;
	}
	buf_release(&scratch);
}

static void fill_values(const struct column_data *d, size_t rows, void *values)
{
	for (size_t r = 0; r < rows; r++) {
		if (!d->set[r])
			continue;
		if (d->col.type == CELL_F64)
			((double *)values)[r] = d->cell[r].f;
		else if (d->col.type == CELL_I64)
			((int64_t *)values)[r] = d->cell[r].i;
		else if (d->cell[r].i)
			arrow_set_bit(values, r);
	}
}

static void fill_column(const struct column_data *d, size_t rows, const char *format, struct ArrowArray *out)
{
	bool text = d->col.type == CELL_STR, large = *format == 'U';
	size_t bits = (rows + 7) / 8, offsets = (rows + 1) * (large ? sizeof(int64_t) : sizeof(int32_t));
	size_t values = text ? text_bytes(d, rows) : d->col.type == CELL_BOOL ? bits : rows * sizeof(int64_t);
	struct arrow_block *b = new_block(arrow_padded(bits) + (text ? arrow_padded(offsets) : 0) + arrow_padded(values));
	void *validity = arrow_take(b, bits), *offset = text ? arrow_take(b, offsets) : NULL, *value = arrow_take(b, values);
	int64_t nulls = fill_validity(d, rows, validity);
	if (text)
		fill_text(d, rows, large, offset, value);
	else
		fill_values(d, rows, value);
	b->buffer[0] = nulls ? validity : NULL;
	b->buffer[1] = text ? offset : value;
	b->buffer[2] = text ? value : NULL;
	*out = (struct ArrowArray){.length = (int64_t)rows, .null_count = nulls, .n_buffers = text ? 3 : 2, .buffers = b->buffer,
	                           .release = release_array, .private_data = b};
}

static void fill_batch(const struct opscope_table *t, const struct arrow_fields *f, struct ArrowArray *out)
{
	struct arrow_block *b = new_block(0);
	*out = (struct ArrowArray){.length = (int64_t)t->t->n_rows, .n_buffers = 1, .buffers = b->buffer, .n_children = t->n_columns,
	                           .release = release_array, .private_data = b};
	out->children = NEW_ARRAY_RAW(t->n_columns, struct ArrowArray *);
	for (unsigned c = 0; c < t->n_columns; c++) {
		out->children[c] = NEW(struct ArrowArray);
		fill_column(arrow_column_of(t, c), t->t->n_rows, f->field[c + 1].format, out->children[c]);
	}
}

static int no_table(const char *function, char *error, size_t error_size)
{
	struct err e = {0};
	err_set(&e, ERR_USAGE, "%s: a table and a place to put it were expected, not NULL", function);
	return api_error(&e, error, error_size);
}

struct arrow_conversion {
	const struct opscope_table *t;
	struct ArrowSchema *schema;
	struct ArrowArray *batch;
	struct ArrowArrayStream *stream;
};

/* What it makes belongs to whoever takes it; without memory for it, nothing is made. */
static int arrow_convert(struct arrow_conversion *x, void (*run)(void *conversion), char *error, size_t error_size)
{
	struct mem_pool blocks = {0};
	struct err e = {0};
	int rc = api_try(&blocks, run, x, &e);
	mem_pool_drop(&blocks);
	return rc < 0 ? api_error(&e, error, error_size) : 0;
}

static void convert_table(void *conversion)
{
	struct arrow_conversion *x = conversion;
	struct ArrowSchema schema;
	struct ArrowArray batch;
	struct arrow_fields *f = arrow_describe(x->t);
	atomic_fetch_add(&f->users, 1);
	if (x->schema)
		fill_schema(f, &schema);
	if (x->batch)
		fill_batch(x->t, f, &batch);
	if (x->schema)
		*x->schema = schema;
	if (x->batch)
		*x->batch = batch;
	fields_leave(f);
}

int opscope_table_arrow(const struct opscope_table *t, struct ArrowSchema *schema, struct ArrowArray *batch, char *error, size_t error_size)
{
	struct arrow_conversion x = {.t = t, .schema = schema, .batch = batch};
	if (!t)
		return no_table("opscope_table_arrow", error, error_size);
	return arrow_convert(&x, convert_table, error, error_size);
}

/* --- streams ---------------------------------------------------------------------------------------------------- */

struct stream {
	struct arrow_fields *fields;
	struct ArrowArray batch; /* release NULL = handed out */
	struct ArrowSchema *wanted;
	bool no_memory;          /* for the schema, the last time */
};

static void make_schema(void *stream)
{
	struct stream *p = stream;
	fill_schema(p->fields, p->wanted);
}

static int stream_schema(struct ArrowArrayStream *s, struct ArrowSchema *out)
{
	struct stream *p = s->private_data;
	struct mem_pool blocks = {0};
	p->wanted = out;
	p->no_memory = api_try(&blocks, make_schema, p, NULL) < 0;
	mem_pool_drop(&blocks);
	return p->no_memory ? ENOMEM : 0;
}

static int stream_next(struct ArrowArrayStream *s, struct ArrowArray *out)
{
	struct stream *p = s->private_data;
	*out = p->batch;
	p->batch.release = NULL;
	return 0;
}

static const char *stream_error(struct ArrowArrayStream *s)
{
	return ((struct stream *)s->private_data)->no_memory ? "out of memory" : NULL;
}

static void stream_release(struct ArrowArrayStream *s)
{
	struct stream *p = s->private_data;
	if (p->batch.release)
		p->batch.release(&p->batch);
	fields_leave(p->fields);
	mem_free(p);
	s->release = NULL;
}

static void make_stream(void *conversion)
{
	struct arrow_conversion *x = conversion;
	struct stream *p = NEW(struct stream);
	p->fields = arrow_describe(x->t);
	atomic_fetch_add(&p->fields->users, 1);
	fill_batch(x->t, p->fields, &p->batch);
	*x->stream = (struct ArrowArrayStream){stream_schema, stream_next, stream_error, stream_release, p};
}

int opscope_table_arrow_stream(const struct opscope_table *t, struct ArrowArrayStream *stream, char *error, size_t error_size)
{
	if (!t || !stream)
		return no_table("opscope_table_arrow_stream", error, error_size);
	struct arrow_conversion x = {.t = t, .stream = stream};
	return arrow_convert(&x, make_stream, error, error_size);
}
