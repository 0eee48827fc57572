#include "store/load_work.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/hash.h"
#include "io/sqlfail.h"

int load_out_of_memory(struct load *l)
{
	return err_set(l->e, ERR_NOMEM, "%s: out of memory while it was read", l->path);
}

int load_damaged(struct load *l, const char *fmt, ...)
{
	if (l->no_memory)
		return load_out_of_memory(l);
	char what[256];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	return err_set(l->e, ERR_FORMAT, "%s: the .opscope file is damaged: %s; import the trace again", l->path, what);
}

int load_sqlite_failed(struct load *l)
{
	const char *why = sqlite3_errmsg(l->db);
	int code = sqlite3_extended_errcode(l->db), kind = code & 0xff;
	enum err_code failed = sqlfail(l->db, code, &why);
	if (failed == ERR_NOMEM)
		return load_out_of_memory(l);
	if (failed == ERR_IO || kind == SQLITE_CANTOPEN || kind == SQLITE_PERM)
		return err_set(l->e, ERR_IO, "%s: cannot read: %s", l->path, why);
	return load_damaged(l, "%s", why);
}

struct str load_text_of(struct load *l, sqlite3_stmt *st, int column)
{
	const char *text = (const char *)sqlite3_column_text(st, column);
	l->no_memory |= !text && sqlite3_errcode(l->db) == SQLITE_NOMEM;
	return (struct str){text, text ? (size_t)sqlite3_column_bytes(st, column) : 0};
}

uint64_t load_content(uint64_t content, int64_t id, int64_t checksum)
{
	uint64_t all[] = {content, (uint64_t)id, (uint64_t)checksum};
	return hash_bytes(all, sizeof all);
}
