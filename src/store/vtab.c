#include "store/vtab.h"

#include <limits.h>
#include <math.h>

#include "base/mem.h"

/* What is behind one virtual table: either a table of the store or a struct table. */
struct vtab {
	sqlite3_vtab base;
	const struct profile *p;
	const struct store_table *desc; /* NULL: a struct table */
	const void *table;              /* in *p */
	const struct table *plain;
};

struct vtab_cursor {
	sqlite3_vtab_cursor base;
	uint64_t row, end;
};

struct store_source {
	const struct profile *p;
	const struct store_table *desc;
};

enum { PLAN_ALL, PLAN_ROWID };

void vtab_put_name(struct buf *b, const char *name)
{
	buf_char(b, '"');
	for (; *name; name++) {
		if (*name == '"')
			buf_char(b, '"');
		buf_char(b, *name);
	}
	buf_char(b, '"');
}

static uint64_t n_rows(const struct vtab *v)
{
	return v->desc ? ((const struct rows *)v->table)->n : v->plain->n_rows;
}

static const char *store_sql_type(enum store_type t)
{
	switch (t) {
	case ST_STR: case ST_CAT: case ST_SPAN_KIND: case ST_GPU_KIND: case ST_EVIDENCE: case ST_PHASE: return "TEXT";
	case ST_F64: return "REAL";
	default: return "INTEGER";
	}
}

const char *vtab_sql_type(enum cell_type t)
{
	return t == CELL_STR ? "TEXT" : t == CELL_F64 ? "REAL" : "INTEGER";
}

static int declare(sqlite3 *db, const struct vtab *v)
{
	struct buf sql = {0};
	buf_cstr(&sql, "CREATE TABLE x");
	unsigned n = v->desc ? v->desc->n_columns : v->plain->n_columns;
	for (unsigned c = 0; c < n; c++) {
		buf_char(&sql, c ? ',' : '(');
		vtab_put_name(&sql, v->desc ? v->desc->columns[c].name : v->plain->data[c].col.id);
		buf_char(&sql, ' ');
		buf_cstr(&sql, v->desc ? store_sql_type(v->desc->columns[c].type) : vtab_sql_type(v->plain->data[c].col.type));
	}
	buf_put(&sql, n ? ")" : "(nothing)", n ? 2 : 10);
	int rc = sqlite3_declare_vtab(db, sql.p);
	buf_release(&sql);
	sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
	return rc;
}

/* SQLite must not be left by a jump: what allocates below it does so within a mem_try. */
struct connection {
	sqlite3 *db;
	const struct vtab *v;
	struct vtab *made;
	int rc;
};

static void make_vtab(void *context)
{
	struct connection *c = context;
	struct vtab *copy = NEW(struct vtab);
	*copy = *c->v;
	c->rc = declare(c->db, c->v);
	if (c->rc == SQLITE_OK)
		c->made = copy;
	else
		mem_free(copy);
}

static int connect_as(sqlite3 *db, const struct vtab *v, sqlite3_vtab **out)
{
	struct connection c = {.db = db, .v = v};
	if (mem_try(NULL, make_vtab, &c) < 0)
		return SQLITE_NOMEM;
	if (c.made)
		*out = &c.made->base;
	return c.rc;
}

static int connect_store(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out, char **why)
{
	const struct store_source *s = aux;
	const void *table = (const char *)s->p + s->desc->offset;
	return connect_as(db, &(struct vtab){.p = s->p, .desc = s->desc, .table = table}, out);
}

struct vtab_making {
	const struct vtab_lazy *lazy;
	const struct table *t;
	struct err e;
};

static void vtab_make_table(void *context)
{
	struct vtab_making *m = context;
	m->t = m->lazy->make(m->lazy->arg, &m->e);
}

static int connect_plain(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out, char **why)
{
	struct vtab_making m = {.lazy = aux};
	if (mem_try(NULL, vtab_make_table, &m) < 0 || m.e.code == ERR_NOMEM)
		return SQLITE_NOMEM;
	if (!m.t) {
		*why = sqlite3_mprintf("%s: %s", m.lazy->name, m.e.msg);
		return SQLITE_ERROR;
	}
	return connect_as(db, &(struct vtab){.plain = m.t}, out);
}

static int disconnect(sqlite3_vtab *v)
{
	mem_free(v);
	return SQLITE_OK;
}

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	uint64_t n = n_rows((struct vtab *)base);
	info->estimatedCost = (double)n + 1;
	info->estimatedRows = (sqlite3_int64)n;
	for (int i = 0; i < info->nConstraint; i++) {
		if (!info->aConstraint[i].usable || info->aConstraint[i].iColumn >= 0 ||
		    info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
			continue;
		info->idxNum = PLAN_ROWID;
		info->aConstraintUsage[i].argvIndex = 1;
		info->estimatedCost = 1;
		info->estimatedRows = 1;
		info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
		return SQLITE_OK;
	}
	if (info->nOrderBy == 1 && info->aOrderBy[0].iColumn < 0 && !info->aOrderBy[0].desc)
		info->orderByConsumed = 1;
	return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
	struct vtab_cursor *c = sqlite3_malloc(sizeof *c);
	if (!c)
		return SQLITE_NOMEM;
	*c = (struct vtab_cursor){0};
	*out = &c->base;
	return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *c)
{
	sqlite3_free(c);
	return SQLITE_OK;
}

/* The value of rowid = ? may be of any type; SQLite checks the row again, so 1.5 and 'x' just find nothing. */
static int filter(sqlite3_vtab_cursor *base, int plan, const char *text, int argc, sqlite3_value **argv)
{
	struct vtab_cursor *c = (struct vtab_cursor *)base;
	c->row = 0;
	c->end = n_rows((struct vtab *)base->pVtab);
	if (plan != PLAN_ROWID)
		return SQLITE_OK;
	int64_t row = sqlite3_value_numeric_type(argv[0]) == SQLITE_INTEGER ? sqlite3_value_int64(argv[0]) : -1;
	if (sqlite3_value_numeric_type(argv[0]) == SQLITE_FLOAT) {
		double f = sqlite3_value_double(argv[0]);
		row = f >= 0 && f < (double)c->end && f == floor(f) ? (int64_t)f : -1;
	}
	if (row < 0 || (uint64_t)row >= c->end)
		c->row = c->end;
	else
		c->row = (uint64_t)row, c->end = c->row + 1;
	return SQLITE_OK;
}

static int next(sqlite3_vtab_cursor *base)
{
	((struct vtab_cursor *)base)->row++;
	return SQLITE_OK;
}

static int eof(sqlite3_vtab_cursor *base)
{
	struct vtab_cursor *c = (struct vtab_cursor *)base;
	return c->row >= c->end;
}

static int rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
	*out = (sqlite3_int64)((struct vtab_cursor *)base)->row;
	return SQLITE_OK;
}

void vtab_result_text(sqlite3_context *x, struct str s)
{
	enum { IN_ONE_ROW = 4 }; /* SQLite limits the sum of a row that it sorts, too */
	sqlite3 *db = sqlite3_context_db_handle(x);
	if (s.n > (size_t)sqlite3_limit(db, SQLITE_LIMIT_LENGTH, -1) / IN_ONE_ROW)
		sqlite3_limit(db, SQLITE_LIMIT_LENGTH, s.n < INT_MAX / IN_ONE_ROW ? (int)(s.n * IN_ONE_ROW) : INT_MAX);
	sqlite3_result_text64(x, s.p ? s.p : "", s.n, SQLITE_STATIC, SQLITE_UTF8);
}

static void result_ref(sqlite3_context *x, uint32_t v)
{
	if (v != ROW_NONE)
		sqlite3_result_int64(x, v);
}

static void result_store(sqlite3_context *x, const struct vtab *v, const struct store_column *c, uint64_t row)
{
	const void *data = *rows_column(v->table, c);
	if (!data) { /* derived by a pass that has not run, or stated of no row */
		if (c->group == SPARSE && c->type == ST_I32_MINUS)
			sqlite3_result_int(x, -1);
		return;
	}
	switch (c->type) {
	case ST_TIME: case ST_DUR: case ST_ID: case ST_I64: case ST_I64_NONE: {
		int64_t value = ((const int64_t *)data)[row];
		if (value != ID_NONE)
			sqlite3_result_int64(x, value);
		return;
	}
	case ST_I32: case ST_I32_NONE: case ST_I32_MINUS: {
		int32_t value = ((const int32_t *)data)[row];
		if (value != INT32_MIN)
			sqlite3_result_int(x, value);
		return;
	}
	case ST_I16: case ST_I16_MINUS: sqlite3_result_int(x, ((const int16_t *)data)[row]); return;
	case ST_F64: sqlite3_result_double(x, ((const double *)data)[row]); return; /* NaN becomes NULL */
	case ST_BOOL: sqlite3_result_int(x, ((const uint8_t *)data)[row]); return;
	case ST_STR: vtab_result_text(x, profile_str(v->p, ((const uint32_t *)data)[row])); return;
	case ST_CAT: vtab_result_text(x, profile_cat(v->p, ((const uint16_t *)data)[row])); return;
	case ST_TRACK: case ST_SPAN: case ST_LAUNCH: case ST_ARGS: result_ref(x, ((const uint32_t *)data)[row]); return;
	case ST_SPAN_KIND: vtab_result_text(x, str_from(span_kind_name[((const uint8_t *)data)[row]])); return;
	case ST_GPU_KIND: vtab_result_text(x, str_from(gpu_kind_name[((const uint8_t *)data)[row]])); return;
	case ST_EVIDENCE:
		if (((const uint8_t *)data)[row])
			vtab_result_text(x, str_from(gpu_evidence_name[((const uint8_t *)data)[row]]));
		return;
	case ST_PHASE: vtab_result_text(x, (struct str){(const char *)data + row, 1}); return;
	}
}

static void result_cell(sqlite3_context *x, const struct table *t, uint64_t row, unsigned c)
{
	if (table_is_null(t, row, c))
		return;
	if (t->data[c].col.type == CELL_STR)
		vtab_result_text(x, table_str(t, row, c));
	else if (t->data[c].col.type == CELL_F64)
		sqlite3_result_double(x, table_f64(t, row, c));
	else
		sqlite3_result_int64(x, table_i64(t, row, c));
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *x, int i)
{
	const struct vtab *v = (const struct vtab *)base->pVtab;
	uint64_t row = ((struct vtab_cursor *)base)->row;
	if (v->desc)
		result_store(x, v, &v->desc->columns[i], row);
	else if (v->plain->n_columns)
		result_cell(x, v->plain, row, (unsigned)i);
	return SQLITE_OK;
}

/* No xCreate: the tables are there by themselves, and cannot be made anew. */
#define VTAB_METHODS(connect)                                                                                    \
	{.xConnect = connect, .xBestIndex = best_index, .xDisconnect = disconnect, .xOpen = open_cursor,         \
	 .xClose = close_cursor, .xFilter = filter, .xNext = next, .xEof = eof, .xColumn = column, .xRowid = rowid}
static const sqlite3_module store_module = VTAB_METHODS(connect_store);
static const sqlite3_module plain_module = VTAB_METHODS(connect_plain);

static int vtab_refuse(sqlite3 *db, const char *table, struct err *e)
{
	bool memory = (sqlite3_errcode(db) & 0xff) == SQLITE_NOMEM;
	return err_set(e, memory ? ERR_NOMEM : ERR_USAGE, "SQL table %s: %s", table, sqlite3_errmsg(db));
}

int vtab_add_store(sqlite3 *db, const struct profile *p, struct err *e)
{
	for (int t = 0; t < STORE_N_TABLES; t++) {
		struct store_source *s = NEW(struct store_source);
		*s = (struct store_source){p, &store_tables[t]};
		if (sqlite3_create_module_v2(db, store_tables[t].name, &store_module, s, mem_free) != SQLITE_OK)
			return vtab_refuse(db, store_tables[t].name, e);
	}
	return 0;
}

int vtab_add_table(sqlite3 *db, const struct vtab_lazy *l, struct err *e)
{
	if (sqlite3_create_module_v2(db, l->name, &plain_module, (void *)(uintptr_t)l, NULL) != SQLITE_OK)
		return vtab_refuse(db, l->name, e);
	return 0;
}
