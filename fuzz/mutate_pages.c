/* Mutates a database of another program: half the time bytes of one page, so that the rest stays a database; else its rows, columns and tables,
 * through SQLite, so that all of it does. */
#include "mutate_database.h"

#include <stdio.h>

enum { PAGE = 512 };

/* %1$s, %2$s: a table, a column of it. */
#define A_ROW " WHERE rowid = (SELECT rowid FROM \"%1$s\" ORDER BY random() LIMIT 1)"
static const char *const edits[] = {
	"UPDATE \"%1$s\" SET \"%2$s\" = mutate(\"%2$s\")" A_ROW,
	"UPDATE \"%1$s\" SET \"%2$s\" = \"%2$s\" + random() %% 4" A_ROW,
	"UPDATE \"%1$s\" SET \"%2$s\" = (1 << abs(random() %% 64)) - (random() & 1)" A_ROW,
	"UPDATE \"%1$s\" SET \"%2$s\" = random()" A_ROW,
	"UPDATE \"%1$s\" SET \"%2$s\" = (SELECT \"%2$s\" FROM \"%1$s\" ORDER BY random() LIMIT 1)" A_ROW,
	"UPDATE \"%1$s\" SET \"%2$s\" = NULL" A_ROW,
	"UPDATE \"%1$s\" SET \"%2$s\" = NULL",
	"UPDATE \"%1$s\" SET \"%2$s\" = CAST(\"%2$s\" AS TEXT)" A_ROW,
	"UPDATE \"%1$s\" SET \"%2$s\" = CAST(\"%2$s\" AS BLOB)" A_ROW,
	"UPDATE \"%1$s\" SET \"%2$s\" = abs(random() %% 12)",
	"DELETE FROM \"%1$s\"" A_ROW,
	"DELETE FROM \"%1$s\" WHERE random() & 1",
	"INSERT INTO \"%1$s\" SELECT * FROM \"%1$s\" ORDER BY random() LIMIT 3",
	"INSERT INTO \"%1$s\" DEFAULT VALUES",
	"ALTER TABLE \"%1$s\" DROP COLUMN \"%2$s\"",
	"ALTER TABLE \"%1$s\" RENAME COLUMN \"%2$s\" TO \"other\"",
	"DROP TABLE \"%1$s\"",
};
enum { EDITS = sizeof edits / sizeof edits[0] };

/* Those that take a table or column away come seldom. */
enum { SELDOM = 3 };

static void edit_rows(sqlite3 *db, unsigned seed)
{
	sqlite3_stmt *s = NULL;
	unsigned n = seed % 8 ? EDITS - SELDOM : EDITS;
	char sql[512];
	if (sqlite3_prepare_v2(db, "SELECT t.name, c.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c WHERE t.type = 'table' ORDER BY random() LIMIT 1",
	                       -1, &s, NULL) == SQLITE_OK &&
	    sqlite3_step(s) == SQLITE_ROW) {
		int length = snprintf(sql, sizeof sql, edits[seed / 8 % n], (const char *)sqlite3_column_text(s, 0), (const char *)sqlite3_column_text(s, 1));
		sqlite3_reset(s);
		if (length < (int)sizeof sql)
			sqlite3_exec(db, sql, NULL, NULL, NULL);
	}
	sqlite3_finalize(s);
}

static size_t mutate_rows(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	uint64_t random_state = seed;
	sqlite3 *db = database_open(data, size, &random_state);
	if (!db)
		return LLVMFuzzerMutate(data, size, max_size);
	for (unsigned i = 0, n = 1 + seed % 3; i < n; i++)
		edit_rows(db, seed / 3 + i * 40503);
	return database_close(db, data, size, max_size);
}

size_t mutate_pages(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	if (seed % 2)
		return mutate_rows(data, size, max_size, seed / 2);
	if (size < 2 * PAGE)
		return LLVMFuzzerMutate(data, size, max_size);
	size_t at = seed / 2 % (size / PAGE) * PAGE;
	LLVMFuzzerMutate(data + at, PAGE, PAGE);
	return size;
}
