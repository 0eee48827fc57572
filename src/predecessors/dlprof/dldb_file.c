#include "predecessors/dlprof/dldb_file.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>

#include "base/buf.h"
#include "io/sqlmem.h"
#include "store/save_work.h"

static const struct {
	const char *name, *columns;
} tables[DLDB_TABLES] = {
#define DLDB_TABLE(name, columns) {#name, columns},
#include "predecessors/dlprof/dldb_tables.def"
#undef DLDB_TABLE
};

static const struct {
	const char *name, *query;
} views[] = {
#define DLDB_VIEW(name, query) {#name, query},
#include "predecessors/dlprof/dldb_views.def"
#undef DLDB_VIEW
};

static sqlite3_stmt *dldb_file_insert(struct dldb_file *f, enum dldb_file_table table, size_t columns)
{
	struct buf sql = {0};
	if (f->insert[table] || f->failed)
		return f->failed ? NULL : f->insert[table];
	buf_printf(&sql, "INSERT INTO %s VALUES(NULL", tables[table].name);
	for (size_t i = 0; i < columns; i++)
		buf_cstr(&sql, ", ?");
	buf_put(&sql, ")", 2);
	f->insert[table] = save_prepare(f->save, sql.p, f->e);
	f->failed = !f->insert[table];
	buf_release(&sql);
	return f->insert[table];
}

static void dldb_file_add_word(struct dldb_file *f, struct str text)
{
	sqlite3_stmt *st = dldb_file_insert(f, DLDB_dictionary, 1);
	if (!st)
		return;
	save_bind_str(st, 1, text);
	f->failed = save_step(f->save, st, f->e) < 0;
}

int dldb_file_begin(struct dldb_file *f, const char *path, mode_t mode, struct err *e)
{
	struct buf sql = {0};
	*f = (struct dldb_file){.e = e};
	for (size_t i = 0; i < DLDB_TABLES; i++)
		buf_printf(&sql, "CREATE TABLE %s(id INTEGER PRIMARY KEY, %s);", tables[i].name, tables[i].columns);
	for (size_t i = 0; i < sizeof views / sizeof views[0]; i++)
		buf_printf(&sql, "CREATE VIEW %s AS %s;", views[i].name, views[i].query);
	buf_char(&sql, '\0');
	f->save = save_begin_tables(path, mode, 0, 0, 0, sql.p, e);
	buf_release(&sql);
	if (!f->save)
		return -1;
	intern_init(&f->words);
	dldb_file_add_word(f, STR("")); /* which an interner begins with */
	return 0;
}

int dldb_file_end(struct dldb_file *f)
{
	int rc = f->failed ? -1 : 0;
	for (int t = 0; t < DLDB_TABLES; t++)
		sqlite3_finalize(f->insert[t]);
	intern_release(&f->words);
	if (rc)
		save_abort(f->save);
	else
		rc = save_commit(f->save, f->e);
	return rc;
}

static void dldb_file_text(sqlite3_stmt *st, int column, struct str text)
{
	if (text.p)
		save_bind_str(st, column, text);
	else
		sqlite3_bind_null(st, column);
}

int64_t dldb_file_word(struct dldb_file *f, struct str text)
{
	uint32_t before = f->words.n, id = intern_put(&f->words, text.p ? text.p : "", text.n);
	if (f->words.n > before)
		dldb_file_add_word(f, text);
	return (int64_t)id + 1;
}

int64_t dldb_file_put(struct dldb_file *f, enum dldb_file_table table, const char *form, ...)
{
	sqlite3_stmt *st = dldb_file_insert(f, table, strlen(form));
	va_list ap;
	if (!st)
		return 0;
	va_start(ap, form);
	for (int column = 1; form[column - 1]; column++) {
		int64_t number;
		switch (form[column - 1]) {
		case 'i': sqlite3_bind_int64(st, column, va_arg(ap, int64_t)); break;
		case 'n':
			number = va_arg(ap, int64_t);
			if (number == ID_NONE)
				sqlite3_bind_null(st, column);
			else
				sqlite3_bind_int64(st, column, number);
			break;
		case 'f': sqlite3_bind_double(st, column, round(va_arg(ap, double) * 1e6) / 1e6); break;
		case 's': dldb_file_text(st, column, va_arg(ap, struct str)); break;
		case 'w': sqlite3_bind_int64(st, column, dldb_file_word(f, va_arg(ap, struct str))); break;
		default: assert(form[column - 1] == '0'); sqlite3_bind_null(st, column);
		}
	}
	va_end(ap);
	f->failed = f->failed || save_step(f->save, st, f->e) < 0;
	return f->failed ? 0 : sqlite3_last_insert_rowid(f->save->db);
}
