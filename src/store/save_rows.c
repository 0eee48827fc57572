/* Tables of plain rows in an .opscope file. */
#include "io/sqlfail.h"
#include "io/sqlmem.h"
#include "store/save_work.h"
#include "store/vtab.h"

static void save_rows_put_column(struct buf *sql, unsigned i, const char *name, const char *type)
{
	buf_cstr(sql, i ? ", " : "(");
	vtab_put_name(sql, name);
	buf_printf(sql, " %s", type);
}

/* The text of CREATE TABLE that a table's columns would have if nothing but their names and types were said. */
static bool put_create(sqlite3 *db, const char *name, struct buf *sql, struct buf *columns, int *code)
{
	sqlite3_stmt *st = NULL;
	unsigned n = 0;
	buf_cstr(sql, "CREATE TABLE ");
	vtab_put_name(sql, name);
	if (sqlmem(sqlite3_prepare_v2(db, "SELECT name, type FROM pragma_table_xinfo(?1)", -1, &st, NULL)) == SQLITE_OK) {
		sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
		while (sqlmem(sqlite3_step(st)) == SQLITE_ROW) {
			const char *column = sqlmem_text(st, 0), *type = sqlmem_text(st, 1);
			if (!column || !type)
				break;
			save_rows_put_column(sql, n++, column, type);
			buf_put(columns, column, strlen(column) + 1);
		}
	}
	*code = sqlite3_extended_errcode(db);
	sqlite3_finalize(st);
	buf_char(sql, ')');
	return n > 0;
}

int save_table_columns(sqlite3 *db, const char *name, struct buf *columns, int *code)
{
	sqlite3_stmt *st = NULL;
	struct buf want = {0};
	int rc = 0;
	buf_clear(columns);
	*code = sqlite3_prepare_v2(db, "SELECT sql, type, rootpage FROM sqlite_schema WHERE name=?1 COLLATE NOCASE", -1, &st, NULL);
	if (*code == SQLITE_OK)
		sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
	if (*code == SQLITE_OK && (*code = sqlite3_step(st)) == SQLITE_ROW) {
		struct str sql = {(const char *)sqlite3_column_text(st, 0), (size_t)sqlite3_column_bytes(st, 0)};
		bool table = str_eqc(str_from((const char *)sqlite3_column_text(st, 1)), "table") && sqlite3_column_int64(st, 2) > 0;
		*code = sqlite3_extended_errcode(db);
		rc = table && sql.p && put_create(db, name, &want, columns, code) && str_eq(sql, buf_view(&want)) ? 1 : -1;
	} else if (*code != SQLITE_DONE) {
		*code = sqlite3_extended_errcode(db);
		rc = -1;
	}
	sqlite3_finalize(st);
	buf_release(&want);
	return rc;
}

/* `code` is what the library said. */
static int changed(struct save *s, const char *name, int code, struct err *e)
{
	const char *why = NULL;
	enum err_code failed = sqlfail(s->db, code, &why);
	if (failed == ERR_NOMEM)
		return err_set(e, ERR_NOMEM, "%s: out of memory while table %s was read", s->file.path, name);
	if (failed == ERR_IO)
		return err_set(e, ERR_IO, "%s: cannot read: %s", s->file.path, why);
	return err_set(e, ERR_FORMAT, "%s: the table %s is not as opscope makes it: import the trace again", s->file.path, name);
}

static bool has(const struct buf *columns, const char *name)
{
	for (size_t i = 0; i < columns->n; i += strlen(columns->p + i) + 1)
		if (sqlite3_stricmp(columns->p + i, name) == 0)
			return true;
	return false;
}

static int add_column(struct save *s, const char *table, const char *column, const char *type, struct err *e)
{
	struct buf sql = {0};
	buf_cstr(&sql, "ALTER TABLE ");
	vtab_put_name(&sql, table);
	buf_cstr(&sql, " ADD COLUMN ");
	vtab_put_name(&sql, column);
	buf_printf(&sql, " %s", type);
	buf_char(&sql, 0);
	int rc = save_run(s, sql.p, e);
	buf_release(&sql);
	return rc;
}

/* The table with all columns of *t, and those that it has already. */
static int save_rows_make_table(struct save *s, const char *name, const struct table *t, bool keyed, struct err *e)
{
	struct buf columns = {0}, sql = {0};
	int code, rc = 0, is = save_table_columns(s->db, name, &columns, &code);
	if (is < 0)
		rc = changed(s, name, code, e);
	if (is == 0) {
		buf_cstr(&sql, "CREATE TABLE ");
		vtab_put_name(&sql, name);
		for (unsigned c = 0; c < t->n_columns; c++)
			save_rows_put_column(&sql, c, t->data[c].col.id, vtab_sql_type(t->data[c].col.type));
		if (keyed)
			save_rows_put_column(&sql, t->n_columns, "aggregation", "INTEGER");
		buf_put(&sql, ")", 2);
		rc = save_run(s, sql.p, e);
	}
	for (unsigned c = 0; is > 0 && !rc && c < t->n_columns; c++)
		if (!has(&columns, t->data[c].col.id))
			rc = add_column(s, name, t->data[c].col.id, vtab_sql_type(t->data[c].col.type), e);
	if (is > 0 && !rc && keyed && !has(&columns, "aggregation"))
		rc = add_column(s, name, "aggregation", "INTEGER", e);
	buf_release(&columns);
	buf_release(&sql);
	return rc;
}

static void bind_cell(sqlite3_stmt *st, int i, const struct table *t, size_t row, unsigned c)
{
	if (table_is_null(t, row, c))
		sqlite3_bind_null(st, i);
	else if (t->data[c].col.type == CELL_STR)
		save_bind_str(st, i, table_str(t, row, c));
	else if (t->data[c].col.type == CELL_F64)
		sqlite3_bind_double(st, i, table_f64(t, row, c));
	else
		sqlite3_bind_int64(st, i, table_i64(t, row, c));
}

static int insert_rows(struct save *s, const char *name, const struct table *t, int64_t aggregation, struct err *e)
{
	struct buf sql = {0};
	bool keyed = aggregation != ID_NONE;
	buf_cstr(&sql, "INSERT INTO ");
	vtab_put_name(&sql, name);
	for (unsigned c = 0; c < t->n_columns + keyed; c++) {
		buf_cstr(&sql, c ? ", " : "(");
		vtab_put_name(&sql, c < t->n_columns ? t->data[c].col.id : "aggregation");
	}
	for (unsigned c = 0; c < t->n_columns + keyed; c++)
		buf_cstr(&sql, c ? ",?" : ") VALUES(?");
	buf_put(&sql, ")", 2);
	sqlite3_stmt *st = save_prepare(s, sql.p, e);
	int rc = st ? 0 : -1;
	for (size_t r = 0; !rc && r < t->n_rows; r++) {
		for (unsigned c = 0; c < t->n_columns; c++)
			bind_cell(st, (int)c + 1, t, r, c);
		if (keyed)
			sqlite3_bind_int64(st, (int)t->n_columns + 1, aggregation);
		rc = save_step(s, st, e);
	}
	sqlite3_finalize(st);
	buf_release(&sql);
	return rc;
}

int save_table(struct save *s, const char *name, const struct table *t, int64_t aggregation, struct err *e)
{
	if (!t->n_columns)
		return 0;
	return save_rows_make_table(s, name, t, aggregation != ID_NONE, e) || insert_rows(s, name, t, aggregation, e) ? -1 : 0;
}

int64_t save_next_id(const struct save *s, int64_t least)
{
	return (s->last_id > least ? s->last_id : least) + 1;
}

/* Whether the file has the table of aggregations. -1 and *e: it is not as opscope makes it. */
static int has_aggregations(struct save *s, struct err *e)
{
	struct buf columns = {0};
	int code, is = save_table_columns(s->db, "aggregations", &columns, &code);
	buf_release(&columns);
	return is < 0 ? changed(s, "aggregations", code, e) : is;
}

/* The number that the statement answers, else 0. Ends the statement; NULL is one that failed. */
static int save_rows_number(struct save *s, sqlite3_stmt *st, int64_t *n, struct err *e)
{
	int code = st ? sqlite3_step(st) : SQLITE_ERROR, rc = code == SQLITE_ROW || code == SQLITE_DONE ? 0 : st ? save_fail(s, e) : -1;
	*n = code == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
	sqlite3_finalize(st);
	return rc;
}

static int count_aggregations(struct save *s, int64_t *n, struct err *e)
{
	int is = has_aggregations(s, e);
	*n = 0;
	return is > 0 ? save_rows_number(s, save_prepare(s, "SELECT count(*) FROM aggregations", e), n, e) : is;
}

int save_find_aggregation(struct save *s, const struct aggregation *like, int64_t *id, struct err *e)
{
	static const char sql[] = "SELECT id FROM aggregations WHERE ifnull(key_op, '')=?1 AND ifnull(steps, '')=?2 AND ifnull(rules, '')=?3 AND opscope=?4";
	const struct str texts[] = {like->key_op, like->steps, like->rules, like->opscope};
	int is = has_aggregations(s, e);
	*id = 0;
	if (is <= 0)
		return is;
	sqlite3_stmt *st = save_prepare(s, sql, e);
	for (int i = 0; st && i < 4; i++)
		sqlite3_bind_text64(st, i + 1, texts[i].n ? texts[i].p : "", texts[i].n, SQLITE_TRANSIENT, SQLITE_UTF8);
	return save_rows_number(s, st, id, e);
}

#define SET_TEXT(c, field)   do { if ((field).n) table_set_str(&t, (c), (field)); } while (0)
#define SET_NUMBER(c, field) do { if ((field) != ID_NONE) table_set_i64(&t, (c), (field)); } while (0)

int save_aggregation(struct save *s, const struct aggregation *a, struct err *e)
{
	struct table t;
	unsigned c = 0;
	int64_t n;
	if (count_aggregations(s, &n, e))
		return -1;
	if (n >= AGGREGATIONS_MAX)
		return err_set(e, ERR_LIMIT, "%s: it holds %lld aggregations, which are as many as there can be: delete some", s->file.path, (long long)n);
	table_init(&t, "aggregations", "Aggregations");
#define COLUMN_(kind, field) TABLE_COLUMN(&t, .id = #field, .title = #field, .type = COLUMN_##kind##_);
#define COLUMN_TEXT_ CELL_STR
#define COLUMN_NUMBER_ CELL_I64
	AGGREGATION_COLUMNS(COLUMN_)
	table_row(&t);
#define CELL_(kind, field) SET_##kind(c, a->field); c++;
	AGGREGATION_COLUMNS(CELL_)
	int rc = save_table(s, "aggregations", &t, ID_NONE, e);
	table_release(&t);
	s->last_id = a->id > s->last_id ? a->id : s->last_id;
	return rc ? rc : save_fact(s, "last_aggregation", (struct str){0}, s->last_id, e);
}

static int delete_rows(struct save *s, const char *table, const char *key, int64_t id, struct err *e)
{
	struct buf columns = {0}, sql = {0};
	int code, is = save_table_columns(s->db, table, &columns, &code), rc = 0;
	bool keyed = has(&columns, key);
	buf_release(&columns);
	if (is < 0)
		return changed(s, table, code, e);
	if (!is || !keyed)
		return 0;
	buf_cstr(&sql, "DELETE FROM ");
	vtab_put_name(&sql, table);
	buf_printf(&sql, " WHERE %s=?1", key);
	buf_char(&sql, 0);
	sqlite3_stmt *st = save_prepare(s, sql.p, e);
	if (st)
		sqlite3_bind_int64(st, 1, id);
	rc = st ? save_step(s, st, e) : -1;
	sqlite3_finalize(st);
	buf_release(&sql);
	return rc;
}

int save_report_tables(struct save *s, struct buf *names, struct err *e)
{
	sqlite3_stmt *st = save_prepare(s, "SELECT name FROM sqlite_schema WHERE type='table' AND name LIKE 'report\\_%' ESCAPE '\\' ORDER BY name", e);
	int rc = SQLITE_ERROR;
	while (st && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(st, 0);
		if (name)
			buf_put(names, name, strlen(name) + 1);
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? 0 : st ? save_fail(s, e) : -1;
}

int save_delete(struct save *s, int64_t id, struct err *e)
{
	struct buf names = {0};
	int rc = delete_rows(s, "aggregations", "id", id, e);
	if (!rc && !sqlite3_changes64(s->db))
		rc = err_set(e, ERR_USAGE, "%s: it holds no aggregation %lld", s->file.path, (long long)id);
	rc = rc ? rc : save_report_tables(s, &names, e);
	for (size_t i = 0; !rc && i < names.n; i += strlen(names.p + i) + 1)
		rc = delete_rows(s, names.p + i, "aggregation", id, e);
	buf_release(&names);
	return rc;
}
