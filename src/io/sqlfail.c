#include "io/sqlfail.h"

#include <string.h>

/* Of the last read of the database's file that failed; 0 = none did. */
static int last_errno(sqlite3 *db)
{
	int n = 0;
	return db && sqlite3_file_control(db, "main", SQLITE_FCNTL_LAST_ERRNO, &n) == SQLITE_OK ? n : 0;
}

/* Of a file that was cut off the library says the same as of a read that failed, but that this was a short read. */
enum err_code sqlfail(sqlite3 *db, int rc, const char **why)
{
	int kind = rc & 0xff;
	if (kind == SQLITE_NOMEM || rc == SQLITE_IOERR_NOMEM)
		return ERR_NOMEM;
	if (kind != SQLITE_IOERR && kind != SQLITE_CORRUPT && kind != SQLITE_NOTADB)
		return ERR_NONE;
	int of_file = last_errno(db), of_call = kind == SQLITE_IOERR ? sqlite3_system_errno(db) : 0;
	if (!of_file && (kind != SQLITE_IOERR || rc == SQLITE_IOERR_SHORT_READ))
		return ERR_NONE;
	*why = of_file ? strerror(of_file) : of_call ? strerror(of_call) : sqlite3_errmsg(db);
	return ERR_IO;
}
