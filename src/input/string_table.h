/* The texts of a SQLite export (StringIds of Nsight Systems, StringTable of nvprof), which its other tables name by id. */
#ifndef OPSCOPE_INPUT_STRING_TABLE_H
#define OPSCOPE_INPUT_STRING_TABLE_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/intern.h"
#include "io/sqldb.h"

/* Interned at first use, since captures hold millions of which few are names. */
struct string_cell {
	const char *p;
	uint32_t n, id; /* id: among the strings of the profile; STRING_CELL_NO_ID = not yet */
};
#define STRING_CELL_NO_ID UINT32_MAX

struct string_table {
	struct string_cell *v; /* in stored order */
	uint32_t n, cap;
	struct arena bytes;
	struct idmap at;       /* id in the file -> place in v */
};

/* `columns`: id and text. What cannot be read goes to *d. `table` may be NULL: there is none, and it stays empty. */
void string_table_load(struct string_table *t, struct sqldb *db, const char *table, const char *const *columns, struct diags *d);
void string_table_release(struct string_table *t);

/* NULL: the table has no such id. */
struct string_cell *string_table_find(const struct string_table *t, int64_t id);
uint32_t string_cell_intern(struct string_cell *s, struct intern *strings);

#endif
