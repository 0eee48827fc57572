/* What sqldb.c and sqldb_schema.c share: the list of the tables. */
#ifndef OPSCOPE_IO_SQLDB_SCHEMA_H
#define OPSCOPE_IO_SQLDB_SCHEMA_H

#include "base/buf.h"
#include "base/intern.h"
#include "io/sqldb.h"

struct sqldb_table {
	size_t name;  /* in `names` */
	int64_t root; /* page, above 0 */
};

struct sqldb_schema {
	struct intern folded_names; /* in lower case; id = place in `table`, of which place 0 stands for no table */
	struct buf folded;          /* the last name that was asked for */
	struct buf names;           /* as they are written, each with a NUL */
	struct buf views;
	struct sqldb_table *table;
	uint32_t n, cap;
	bool damaged;               /* cut short */
};

/* Into d->schema. */
void sqldb_schema_read(struct sqldb *d);
void sqldb_schema_free(struct sqldb_schema *c);
/* 0 = no ordinary table: views and virtual tables have no root page. */
int64_t sqldb_root_page(const struct sqldb *d, const char *table);

/* Keeps what the library's code says in d->failed when it says that a read or an allocation failed; a damaged file is neither. `table`: which was read;
 * NULL = their list. */
void sqldb_failed(struct sqldb *d, int code, const char *table);
/* A text that is not NULL in the file; NULL, and d->failed is set, without memory for it. */
const char *sqldb_text(struct sqldb *d, sqlite3_stmt *st, int column, const char *table);

#endif
