#include "mutate_database.h"

/* In place of SQLite's, so that a seed always gives the same. */
static void sql_random(sqlite3_context *x, int n, sqlite3_value **v)
{
	uint64_t *state = sqlite3_user_data(x);
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	sqlite3_result_int64(x, (int64_t)(*state ^ *state >> 29 ^ *state << 32));
}

/* mutate(value): of the same type; a blob keeps its length, since a column of another length is refused at once. */
static void sql_mutate(sqlite3_context *x, int n, sqlite3_value **v)
{
	uint8_t block[DATABASE_PIECE];
	int type = sqlite3_value_type(v[0]);
	if (type == SQLITE_INTEGER) {
		int64_t i = sqlite3_value_int64(v[0]);
		LLVMFuzzerMutate((uint8_t *)&i, sizeof i, sizeof i);
		sqlite3_result_int64(x, i);
		return;
	}
	const void *p = sqlite3_value_blob(v[0]);
	size_t bytes = (size_t)sqlite3_value_bytes(v[0]);
	if (!p || !bytes || bytes > sizeof block) {
		sqlite3_result_value(x, v[0]);
		return;
	}
	memcpy(block, p, bytes);
	LLVMFuzzerMutate(block, bytes, bytes);
	if (type == SQLITE_BLOB)
		sqlite3_result_blob(x, block, (int)bytes, SQLITE_TRANSIENT);
	else
		sqlite3_result_text(x, (const char *)block, (int)bytes, SQLITE_TRANSIENT);
}

sqlite3 *database_open(const uint8_t *data, size_t size, uint64_t *random_state)
{
	sqlite3 *db = NULL;
	unsigned char *copy = sqlite3_malloc64(size + 1);
	memcpy(copy, data, size);
	if (sqlite3_open(":memory:", &db) != SQLITE_OK ||
	    sqlite3_deserialize(db, "main", copy, (int64_t)size, (int64_t)size,
	                        SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE) != SQLITE_OK ||
	    sqlite3_exec(db, "PRAGMA journal_mode=OFF; SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL) != SQLITE_OK) {
		sqlite3_close(db);
		return NULL;
	}
	sqlite3_create_function(db, "random", 0, SQLITE_UTF8, random_state, sql_random, NULL, NULL);
	sqlite3_create_function(db, "mutate", 1, SQLITE_UTF8, NULL, sql_mutate, NULL, NULL);
	return db;
}

size_t database_close(sqlite3 *db, uint8_t *data, size_t size, size_t max_size)
{
	sqlite3_int64 bytes = 0;
	unsigned char *out = sqlite3_serialize(db, "main", &bytes, 0);
	if (out && bytes > 0 && (size_t)bytes <= max_size) {
		memcpy(data, out, (size_t)bytes);
		size = (size_t)bytes;
	}
	sqlite3_free(out);
	sqlite3_close(db);
	return size;
}
