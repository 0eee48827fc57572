#include "predecessors/pyprof/row.h"

#include "base/intern.h"
#include "base/mem.h"

/* Parsed markers are forgotten when they take so much: a program whose shapes never repeat would fill the memory with them. */
enum { SCRATCH_BYTES = 64 << 10, KEEP_BYTES = 32 << 20 };

/* A cell lists no more layers, ops, lines or numbers than these; it says how many it leaves out. Real programs nest some dozens. */
enum { PYPROF_ROW_MOST = 256 };

struct pyprof_rows {
	struct pyprof_records *records;
	enum pyprof_rules rules;
	struct arena scratch;         /* of the current row */
	struct arena keep;            /* parsed markers */
	struct intern texts;          /* markers met so far */
	struct pyprof_marker **parsed; /* by id of the text; NULL: damaged */
	uint32_t n_parsed, cap_parsed;
	struct buf kernel;
	struct pyprof_row row;
};

struct pyprof_rows *pyprof_rows_new(const struct profile *p, enum pyprof_record_rules rules)
{
	struct pyprof_rows *x = NEW(struct pyprof_rows);
	x->records = pyprof_records_new(p, rules);
	x->rules = rules == PYPROF_RECORDS_2 ? PYPROF_2 : PYPROF_3;
	intern_init(&x->texts);
	return x;
}

void pyprof_rows_free(struct pyprof_rows *x)
{
	if (!x)
		return;
	pyprof_records_free(x->records);
	arena_release(&x->scratch);
	arena_release(&x->keep);
	intern_release(&x->texts);
	mem_free(x->parsed);
	buf_release(&x->kernel);
	buf_release(&x->row.model.params);
	mem_free(x);
}

const struct pyprof_records *pyprof_rows_records(const struct pyprof_rows *x)
{
	return x->records;
}

/* Equal markers are parsed once. */
static const struct pyprof_marker *pyprof_row_parse(struct pyprof_rows *x, struct str text)
{
	uint32_t id = intern_str(&x->texts, text);
	while (x->n_parsed <= id) {
		MEM_GROW(x->parsed, x->cap_parsed, x->n_parsed + 1);
		struct pyprof_marker *m = ARENA_ARRAY(&x->keep, 1, struct pyprof_marker);
		bool sound = pyprof_marker_parse(intern_get(&x->texts, x->n_parsed), &x->keep, m) == 0;
		x->parsed[x->n_parsed++] = sound ? m : NULL;
	}
	return x->parsed[id];
}

static void forget_markers(struct pyprof_rows *x)
{
	arena_release(&x->keep);
	intern_release(&x->texts);
	intern_init(&x->texts);
	x->n_parsed = 0;
}

static void set_kernel(struct pyprof_rows *x)
{
	buf_clear(&x->kernel);
	buf_str(&x->kernel, x->row.r.short_name);
	for (size_t i = 0; i < x->kernel.n; i++)
		if (x->kernel.p[i] == ' ')
			x->kernel.p[i] = '_';
	x->row.kernel = x->kernel.n ? buf_view(&x->kernel) : STR("");
}

static struct str first_or_na(struct pyprof_texts t)
{
	return t.n && t.v[0].n ? t.v[0] : STR("na");
}

/* Marker, op, module, layer and trace of the forward kernel. */
static void lend(struct pyprof_rows *x, uint32_t forward, struct pyprof_record *r)
{
	struct pyprof_record f;
	pyprof_record_get(x->records, forward, PYPROF_ROW_MOST, &x->scratch, &f);
	r->marker = f.marker;
	r->repr = f.repr;
	r->mod = f.mod;
	r->op = f.op;
	r->layer = f.layer;
	r->trace = f.trace;
}

static void set_model(struct pyprof_rows *x)
{
	struct pyprof_row *row = &x->row;
	struct pyprof_call c = {.rules = x->rules, .marker = row->marker, .kernel = row->kernel, .backward = row->r.backward, .sub = row->r.sub,
	                        .mod = first_or_na(row->r.mod), .op = first_or_na(row->r.op)};
	for (int k = 0; k < 3; k++)
		c.grid[k] = (int32_t)row->r.grid[k];
	row->modelled = pyprof_model_of(&c, &row->model) == 0;
	row->why = row->model.why;
	if (row->modelled)
		row->op = row->model.op.n ? row->model.op : STR("na");
}

const struct pyprof_row *pyprof_rows_get(struct pyprof_rows *x, uint32_t i)
{
	struct pyprof_row *row = &x->row;
	if (x->scratch.bytes > SCRATCH_BYTES)
		arena_release(&x->scratch);
	if (x->keep.bytes > KEEP_BYTES)
		forget_markers(x);
	struct buf params = row->model.params;
	*row = (struct pyprof_row){.model.params = params};
	pyprof_record_get(x->records, i, PYPROF_ROW_MOST, &x->scratch, &row->r);
	bool orphan = row->r.backward && !row->r.seq.n;
	if (row->r.backward && !row->r.marker.n && x->records->forward[i] != ROW_NONE)
		lend(x, x->records->forward[i], &row->r);
	row->mod = first_or_na(row->r.mod);
	row->op = first_or_na(row->r.op);
	set_kernel(x);
	if (row->r.marker.n)
		row->marker = pyprof_row_parse(x, row->r.marker.v[0]);
	if (orphan)
		row->why = "a sequence number on a backward kernel";
	else if (row->marker)
		set_model(x);
	return row;
}

static void row_put_gap(struct buf *out, unsigned left_out, const char *separator, bool last)
{
	buf_printf(out, "... (%u more)%s", left_out, last ? "" : separator);
}

void pyprof_put_joined(struct buf *out, struct pyprof_texts t, const char *separator)
{
	size_t before = out->n;
	for (unsigned i = 0; i < t.n; i++) {
		if (i)
			buf_cstr(out, separator);
		if (t.left_out && i == t.gap)
			row_put_gap(out, t.left_out, separator, false);
		buf_str(out, t.v[i]);
	}
	if (out->n == before)
		buf_char(out, '-');
}

void pyprof_put_ids(struct buf *out, struct pyprof_ids ids)
{
	for (unsigned i = 0; i < ids.n; i++) {
		if (i)
			buf_char(out, ',');
		buf_i64(out, ids.v[i]);
	}
	if (ids.left_out) {
		buf_cstr(out, ids.n ? "," : "");
		row_put_gap(out, ids.left_out, ",", true);
	}
	if (!ids.n && !ids.left_out)
		buf_char(out, '-');
}

void pyprof_put_three(struct buf *out, const int64_t v[3])
{
	for (int i = 0; i < 3; i++) {
		if (i)
			buf_char(out, ',');
		buf_i64(out, v[i]);
	}
}
