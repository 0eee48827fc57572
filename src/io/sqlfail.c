#include "io/sqlfail.h"

#include "io/sqlmem.h"

#include <string.h>

/* Of the last read of the database's file that failed; 0 = none did. */
static int last_errno(sqlite3 *db)
{
	int n = 0;
	return db && sqlite3_file_control(db, "main", SQLITE_FCNTL_LAST_ERRNO, &n) == SQLITE_OK ? n : 0;
}

/* SQLite reports a file that was cut off as it reports a failed read, but as a short one. */
enum err_code sqlfail(sqlite3 *db, int rc, const char **why)
{
	int kind = rc & 0xff;
	if (sqlmem_is_short(rc))
		return ERR_NOMEM;
	if (kind != SQLITE_IOERR && kind != SQLITE_CORRUPT && kind != SQLITE_NOTADB)
		return ERR_NONE;
	int of_file = last_errno(db), of_call = kind == SQLITE_IOERR ? sqlite3_system_errno(db) : 0;
	if (!of_file && (kind != SQLITE_IOERR || rc == SQLITE_IOERR_SHORT_READ))
		return ERR_NONE;
	*why = of_file ? strerror(of_file) : of_call ? strerror(of_call) : sqlite3_errmsg(db);
	return ERR_IO;
}
