/* Mutates an .opscope file where it counts. Bytes changed at random are refused by the checksums, so most mutations go
 * through SQLite: a piece of a column, a number of rows, a fact, a diagnostic; and every checksum is made right again. What
 * is left to refuse the file is store/load_check.c, and what it lets through must not hurt a report. */
#include "import.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

enum { PIECE = 64 << 10 };

/* In place of SQLite's, so that a seed always gives the same. */
static void sql_random(sqlite3_context *x, int n, sqlite3_value **v)
{
	uint64_t *state = sqlite3_user_data(x);
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	sqlite3_result_int64(x, (int64_t)(*state ^ *state >> 29 ^ *state << 32));
}

static void sql_checksum(sqlite3_context *x, int n, sqlite3_value **v)
{
	const void *p = sqlite3_value_blob(v[0]);
	sqlite3_result_int64(x, (int64_t)hash_bytes(p ? p : "", (size_t)sqlite3_value_bytes(v[0])));
}

/* mutate(value): of the same type; a blob keeps its length, since a column of another length is refused at once. */
static void sql_mutate(sqlite3_context *x, int n, sqlite3_value **v)
{
	uint8_t block[PIECE];
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

/* set_element(data, size, at, value): one element of a column; near the others, to be believed more often. */
static void sql_set_element(sqlite3_context *x, int n, sqlite3_value **v)
{
	uint8_t block[PIECE];
	const void *p = sqlite3_value_blob(v[0]);
	size_t bytes = (size_t)sqlite3_value_bytes(v[0]), size = (size_t)sqlite3_value_int64(v[1]);
	int64_t value = sqlite3_value_int64(v[3]);
	if (!p || !size || size > sizeof value || bytes < size || bytes > sizeof block) {
		sqlite3_result_value(x, v[0]);
		return;
	}
	memcpy(block, p, bytes);
	memcpy(block + (uint64_t)sqlite3_value_int64(v[2]) % (bytes / size) * size, &value, size);
	sqlite3_result_blob(x, block, (int)bytes, SQLITE_TRANSIENT);
}

#define ONE_OF(table) " WHERE rowid = (SELECT rowid FROM " table " ORDER BY random() LIMIT 1)"

static const char *const mutations[] = {
	"UPDATE store_chunk SET data = mutate(data)" ONE_OF("store_chunk"),
	"UPDATE store_chunk SET data = set_element(data, size, random(), random() % 8)" ONE_OF("store_chunk"),
	"UPDATE store_chunk SET data = set_element(data, size, random(), abs(random() % 64))" ONE_OF("store_chunk"),
	"UPDATE store_chunk SET data = set_element(data, size, random(), 1 << abs(random() % 64))" ONE_OF("store_chunk"),
	"UPDATE store_chunk SET data = set_element(data, size, random(), -1)" ONE_OF("store_chunk"),
	"UPDATE store_chunk SET data = substr(data, 1, length(data) - size * (random() & 3))" ONE_OF("store_chunk"),
	"DELETE FROM store_chunk" ONE_OF("store_chunk"),
	"UPDATE store_table SET rows = mutate(rows)" ONE_OF("store_table"),
	"UPDATE meta SET value = mutate(value) WHERE key = (SELECT key FROM meta ORDER BY random() LIMIT 1)",
	"UPDATE meta SET value = abs(random() % 256) WHERE key = 'passes'",
	"UPDATE diag SET count = mutate(count), message = mutate(message)" ONE_OF("diag"),
};
enum { N_MUTATIONS = sizeof mutations / sizeof mutations[0] };

static sqlite3 *open_bytes(const uint8_t *data, size_t size, uint64_t *random_state)
{
	sqlite3 *db = NULL;
	unsigned char *copy = sqlite3_malloc64(size + 1);
	memcpy(copy, data, size);
	if (sqlite3_open(":memory:", &db) != SQLITE_OK ||
	    sqlite3_deserialize(db, "main", copy, (int64_t)size, (int64_t)size,
	                        SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE) != SQLITE_OK ||
	    sqlite3_exec(db, "PRAGMA journal_mode=OFF; SELECT count(*) FROM store_chunk", NULL, NULL, NULL) != SQLITE_OK) {
		sqlite3_close(db);
		return NULL;
	}
	sqlite3_create_function(db, "random", 0, SQLITE_UTF8, random_state, sql_random, NULL, NULL);
	sqlite3_create_function(db, "checksum", 1, SQLITE_UTF8, NULL, sql_checksum, NULL, NULL);
	sqlite3_create_function(db, "mutate", 1, SQLITE_UTF8, NULL, sql_mutate, NULL, NULL);
	sqlite3_create_function(db, "set_element", 4, SQLITE_UTF8, NULL, sql_set_element, NULL, NULL);
	return db;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	uint64_t random_state = seed;
	sqlite3 *db = seed % 8 ? open_bytes(data, size, &random_state) : NULL;
	if (!db)
		return LLVMFuzzerMutate(data, size, max_size);
	for (unsigned i = 0, n = 1 + seed / 8 % 3; i < n; i++)
		sqlite3_exec(db, mutations[(seed / 32 + i * 7) % N_MUTATIONS], NULL, NULL, NULL);
	sqlite3_exec(db, "UPDATE store_chunk SET checksum = checksum(data)", NULL, NULL, NULL);
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
