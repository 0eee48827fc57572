#include "base/mem.h"
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

static int damaged(const char *path, const char *what, struct err *e)
{
	return err_set(e, ERR_FORMAT, "%s: the .opscope file is damaged: %s; import the trace again", path, what);
}

static bool take_text(sqlite3_stmt *st, int c, struct arena *a, struct str *out)
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

static bool take_number(sqlite3_stmt *st, int c, int64_t *out)
{
	int type = sqlite3_column_type(st, c);
	*out = type == SQLITE_INTEGER ? sqlite3_column_int64(st, c) : ID_NONE;
	return type == SQLITE_INTEGER || type == SQLITE_NULL;
}

static bool read_row(sqlite3_stmt *st, struct arena *a, struct aggregation *g)
{
	int c = 0;
	bool good = true;
#define TAKE_TEXT(field) good &= take_text(st, c++, a, &g->field);
#define TAKE_NUMBER(field) good &= take_number(st, c++, &g->field);
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
	return good && rc == SQLITE_DONE ? 0 : damaged(path, "its list of aggregations", e);
}

static int first_only(sqlite3 *db, struct profile *p)
{
	sqlite3_stmt *st = NULL;
	struct str program = {"", 0};
	if (sqlmem(sqlite3_prepare_v2(db, "SELECT value FROM meta WHERE key='opscope'", -1, &st, NULL)) == SQLITE_OK && sqlmem(sqlite3_step(st)) == SQLITE_ROW)
		take_text(st, 0, &p->arena, &program);
	sqlite3_finalize(st);
	p->aggregation = ARENA_ARRAY(&p->arena, 1, struct aggregation);
	p->aggregation[0] = load_first_aggregation(program);
	p->n_aggregations = 1;
	return 0;
}

static bool has_reports(sqlite3 *db)
{
	sqlite3_stmt *st = NULL;
	bool has = sqlmem(sqlite3_prepare_v2(db, "SELECT 1 FROM sqlite_schema WHERE name='report_columns'", -1, &st, NULL)) == SQLITE_OK &&
	           sqlmem(sqlite3_step(st)) == SQLITE_ROW;
	sqlite3_finalize(st);
	return has;
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
	int is = save_table_columns(db, "aggregations", &columns), rc = 0;
	if (is > 0)
		put_query(&columns, &sql);
	if (is < 0 || (is > 0 && sqlmem(sqlite3_prepare_v2(db, sql.p, -1, &st, NULL)) != SQLITE_OK))
		rc = damaged(path, "its list of aggregations", e);
	else if (is > 0)
		rc = read_rows(st, path, p, e);
	else if (has_reports(db)) /* file version 1 */
		rc = first_only(db, p);
	sqlite3_finalize(st);
	buf_release(&columns);
	buf_release(&sql);
	return rc;
}
