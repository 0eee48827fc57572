#include "store/save_work.h"

#include "io/sqlfail.h"

int save_fail(struct save *s, struct err *e)
{
	int code = sqlite3_extended_errcode(s->db), os = sqlite3_system_errno(s->db);
	const char *why = code == SQLITE_FULL ? "no space left" : os ? strerror(os) : sqlite3_errmsg(s->db);
	enum err_code failed = sqlfail(s->db, code, &why);
	return err_set(e, failed ? failed : ERR_IO, "%s: cannot write: %s", s->file.path, why);
}

int save_open(struct save *s, struct err *e)
{
	if (sqlite3_open_v2(s->file.temp, &s->db, SQLITE_OPEN_READWRITE, SAVE_VFS) != SQLITE_OK)
		return save_fail(s, e);
	if (sqlite3_db_readonly(s->db, "main") == 1) /* the library's way out, and it keeps the reason to itself */
		return err_set(e, ERR_IO, "%s: cannot write: unable to open database file for writing", s->file.path);
	return 0;
}

int save_run(struct save *s, const char *sql, struct err *e)
{
	return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : save_fail(s, e);
}

sqlite3_stmt *save_prepare(struct save *s, const char *sql, struct err *e)
{
	sqlite3_stmt *st = NULL;
	if (sqlite3_prepare_v2(s->db, sql, -1, &st, NULL) != SQLITE_OK)
		save_fail(s, e);
	return st;
}

int save_step(struct save *s, sqlite3_stmt *st, struct err *e)
{
	int rc = sqlite3_step(st);
	if (rc != SQLITE_DONE)
		return save_fail(s, e);
	sqlite3_reset(st);
	return 0;
}

void save_bind_str(sqlite3_stmt *st, int i, struct str v)
{
	sqlite3_bind_text64(st, i, v.p ? v.p : "", v.n, SQLITE_STATIC, SQLITE_UTF8);
}
