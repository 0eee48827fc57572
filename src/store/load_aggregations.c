#include "base/mem.h"
#include "io/sqlfail.h"
#include "io/sqlmem.h"
#include "store/load.h"
#include "store/save_work.h"

struct aggregation load_first_aggregation(struct str opscope)
{
	struct str none = {"", 0};
	return (struct aggregation){
		.id = 1, .name = none, .created = none, .key_op = none, .steps = none, .opscope = opscope, .rules = none, .first_step = ID_NONE, .last_step = ID_NONE,
		.aggregated_steps = ID_NONE, .total_steps = ID_NONE, .wall_ns = ID_NONE, .device_busy_ns = ID_NONE, .tables = ID_NONE,
		.rows = ID_NONE, .missing = ID_NONE,
	};
}

/* `code` is what the library said. */
static int load_aggregations_damaged(sqlite3 *db, int code, const char *path, struct err *e)
{
	const char *why = NULL;
	enum err_code failed = sqlfail(db, code, &why);
	if (failed == ERR_NOMEM)
		return err_set(e, ERR_NOMEM, "%s: out of memory while it was read", path);
	if (failed == ERR_IO)
		return err_set(e, ERR_IO, "%s: cannot read: %s", path, why);
	return err_set(e, ERR_FORMAT, "%s: the .opscope file is damaged: its list of aggregations; import the trace again", path);
}

static bool load_aggregations_take_text(sqlite3_stmt *st, int c, struct arena *a, struct str *out)
{
	*out = (struct str){"", 0};
	if (sqlite3_column_type(st, c) == SQLITE_NULL)
		return true;
	const char *text = sqlmem_text(st, c);
	size_t n = text ? (size_t)sqlite3_column_bytes(st, c) : 0;
	if (!text || n > AGGREGATION_TEXT_MAX || sqlite3_column_type(st, c) != SQLITE_TEXT)
		return false;
	*out = arena_str(a, (struct str){text, n});
	return true;
}

static bool load_aggregations_take_number(sqlite3_stmt *st, int c, int64_t *out)
{
	int type = sqlite3_column_type(st, c);
	*out = type == SQLITE_INTEGER ? sqlite3_column_int64(st, c) : ID_NONE;
	return type == SQLITE_INTEGER || type == SQLITE_NULL;
}

static bool read_row(sqlite3_stmt *st, struct arena *a, struct aggregation *g)
{
	int c = 0;
	bool good = true;
#define TAKE_TEXT(field) good &= load_aggregations_take_text(st, c++, a, &g->field);
#define TAKE_NUMBER(field) good &= load_aggregations_take_number(st, c++, &g->field);
#define TAKE_(kind, field) TAKE_##kind(field)
	AGGREGATION_COLUMNS(TAKE_)
	return good && g->id > 0;
}

static int read_rows(sqlite3_stmt *st, const char *path, struct profile *p, struct err *e)
{
	struct aggregation *v = NEW_ARRAY(AGGREGATIONS_MAX, struct aggregation);
	unsigned n = 0;
	int rc;
	bool good = true;
	while (good && (rc = sqlmem(sqlite3_step(st))) == SQLITE_ROW) {
		good = n < AGGREGATIONS_MAX && read_row(st, &p->arena, &v[n]) && (!n || v[n].id > v[n - 1].id);
		n++;
	}
	if (good && rc == SQLITE_DONE && n) {
		p->aggregation = ARENA_ARRAY(&p->arena, n, struct aggregation);
		memcpy(p->aggregation, v, n * sizeof *v);
		p->n_aggregations = n;
	}
	mem_free(v);
	return good && rc == SQLITE_DONE ? 0 : load_aggregations_damaged(sqlite3_db_handle(st), sqlite3_extended_errcode(sqlite3_db_handle(st)), path, e);
}

/* SQLITE_ROW and the statement at its first row, SQLITE_DONE when there is none, or what failed. */
static int first_row(sqlite3 *db, const char *sql, sqlite3_stmt **st)
{
	int rc = sqlite3_prepare_v2(db, sql, -1, st, NULL);
	return rc == SQLITE_OK ? sqlite3_step(*st) : rc;
}

static int first_only(sqlite3 *db, const char *path, struct profile *p, struct err *e)
{
	sqlite3_stmt *st = NULL;
	struct str program = {"", 0};
	int rc = first_row(db, "SELECT value FROM meta WHERE key='opscope'", &st);
	bool failed = rc == SQLITE_ROW ? !load_aggregations_take_text(st, 0, &p->arena, &program) && sqlite3_errcode(db) == SQLITE_NOMEM : rc != SQLITE_DONE;
	if (failed)
		load_aggregations_damaged(db, sqlite3_extended_errcode(db), path, e);
	sqlite3_finalize(st);
	if (failed)
		return -1;
	p->aggregation = ARENA_ARRAY(&p->arena, 1, struct aggregation);
	p->aggregation[0] = load_first_aggregation(program);
	p->n_aggregations = 1;
	return 0;
}

/* A file of version 1 has reports, and no list of aggregations. */
static int without_list(sqlite3 *db, const char *path, struct profile *p, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int has = first_row(db, "SELECT 1 FROM sqlite_schema WHERE name='report_columns'", &st), rc = 0;
	if (has != SQLITE_ROW && has != SQLITE_DONE)
		rc = load_aggregations_damaged(db, sqlite3_extended_errcode(db), path, e);
	sqlite3_finalize(st);
	return has == SQLITE_ROW ? first_only(db, path, p, e) : rc;
}

/* A column that the file lacks reads as null: files of older programs may have fewer. */
static void put_query(const struct buf *columns, struct buf *sql)
{
	const char *before = "SELECT ";
#define PUT_(kind, field)                                                                                  \
	do {                                                                                               \
		bool there = false;                                                                        \
		for (size_t i = 0; i < columns->n; i += strlen(columns->p + i) + 1)                        \
			there |= strcmp(columns->p + i, #field) == 0;                                      \
		buf_printf(sql, "%s%s", before, there ? #field : "NULL");                                  \
		before = ", ";                                                                             \
	} while (0);
	AGGREGATION_COLUMNS(PUT_)
	buf_cstr(sql, " FROM aggregations ORDER BY id");
	buf_char(sql, 0);
}

int load_aggregations(sqlite3 *db, const char *path, struct profile *p, struct err *e)
{
	struct buf columns = {0}, sql = {0};
	sqlite3_stmt *st = NULL;
	int code, is = save_table_columns(db, "aggregations", &columns, &code), rc;
	if (is > 0) {
		put_query(&columns, &sql);
		code = sqlite3_prepare_v2(db, sql.p, -1, &st, NULL);
	}
	if (is < 0 || (is > 0 && !st))
		rc = load_aggregations_damaged(db, code, path, e);
	else
		rc = is > 0 ? read_rows(st, path, p, e) : without_list(db, path, p, e);
	sqlite3_finalize(st);
	buf_release(&columns);
	buf_release(&sql);
	return rc;
}
