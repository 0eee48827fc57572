#include "io/sqldb_schema.h"
#include "io/sqlfail.h"

void sqldb_failed(struct sqldb *d, int code, const char *table)
{
	const char *why = NULL;
	enum err_code failed = d->failed.code ? ERR_NONE : sqlfail(d->db, code, &why);
	if (failed == ERR_NOMEM)
		err_set(&d->failed, ERR_NOMEM, "%s: out of memory while %s%s was read", d->path, table ? "table " : "the list of tables", table ? table : "");
	else if (failed == ERR_IO)
		err_set(&d->failed, ERR_IO, "%s: cannot read: %s", d->path, why);
}

const char *sqldb_text(struct sqldb *d, sqlite3_stmt *st, int column, const char *table)
{
	const char *text = (const char *)sqlite3_column_text(st, column);
	if (!text)
		sqldb_failed(d, sqlite3_extended_errcode(d->db), table);
	return text;
}
