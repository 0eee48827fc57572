/* Mutates an .opscope file where it counts. Bytes changed at random are refused by the checksums, so most mutations go
 * through SQLite: a piece of a column, a number of rows, a fact, a diagnostic; and every checksum is made right again. Others
 * open the file, change an element of a column, and save it again: columns are packed, so that no byte is an element. What
 * is left to refuse the file is store/load_check.c, and what it lets through must not hurt a report. */
#include "mutate_database.h"

#include "base/hash.h"
#include "store/load.h"
#include "store/save.h"

#include <stdio.h>
#include <stdlib.h>

static void sql_checksum(sqlite3_context *x, int n, sqlite3_value **v)
{
	const void *p = sqlite3_value_blob(v[0]);
	sqlite3_result_int64(x, (int64_t)hash_bytes(p ? p : "", (size_t)sqlite3_value_bytes(v[0])));
}

/* set_element(data, size, at, value): one element of a column; near the others, to be believed more often. */
static void sql_set_element(sqlite3_context *x, int n, sqlite3_value **v)
{
	uint8_t block[DATABASE_PIECE];
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

/* Sets an element of a column of *p that has rows. */
static void set_in_column(struct profile *p, unsigned seed)
{
	int64_t value = seed % 3 == 0 ? -1 : seed % 3 == 1 ? (int64_t)(seed >> 8) % 64 : (int64_t)(1ull << (seed >> 8) % 64);
	unsigned skip = (seed >> 2) % 97;
	for (;;) {
		bool any = false;
		for (int t = 0; t < STORE_N_TABLES; t++)
			for (unsigned c = 0; c < store_tables[t].n_columns; c++) {
				const struct store_column *col = &store_tables[t].columns[c];
				char *data = *rows_column(profile_table(p, t), col);
				uint32_t n = ((const struct rows *)profile_table(p, t))->n;
				if (!data || !n)
					continue;
				any = true;
				if (skip-- > 0)
					continue;
				memcpy(data + (size_t)((seed >> 4) % n) * col->size, &value, col->size);
				return;
			}
		if (!any)
			return;
	}
}

/* The file into data[0 .. max_size), and its size; 0 where there is no room, and the bytes are as they were. */
static size_t read_back(const char *path, uint8_t *data, size_t max_size)
{
	uint8_t *bytes = malloc(max_size + 1);
	FILE *from = fopen(path, "rb");
	size_t n = from && bytes ? fread(bytes, 1, max_size + 1, from) : 0;
	if (n > max_size)
		n = 0;
	if (n)
		memcpy(data, bytes, n);
	if (from)
		fclose(from);
	free(bytes);
	return n;
}

/* The size, or 0 where the file cannot be opened or saved. */
static size_t mutate_column(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	struct target_file f;
	struct err e = {0};
	struct profile *p = profile_new();
	size_t got = 0;
	target_file_make(&f, data, size);
	if (load_profile(f.path, p, &e) == 0) {
		set_in_column(p, seed);
		struct save *s = save_begin(f.path, 0666, 0, &e);
		if (s && save_profile(s, p, &e) < 0)
			save_abort(s);
		else if (s && save_commit(s, &e) == 0)
			got = read_back(f.path, data, max_size);
	}
	target_file_remove(&f);
	profile_free(p);
	return got;
}

size_t mutate_opscope(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	enum { EACH = 8 };
	uint64_t random_state = seed;
	size_t changed = seed % EACH == 0 ? mutate_column(data, size, max_size, seed / EACH) : 0;
	if (changed)
		return changed;
	sqlite3 *db = database_open(data, size, &random_state);
	if (!db || sqlite3_exec(db, "SELECT count(*) FROM store_chunk", NULL, NULL, NULL) != SQLITE_OK) {
		sqlite3_close(db);
		return LLVMFuzzerMutate(data, size, max_size);
	}
	sqlite3_create_function(db, "checksum", 1, SQLITE_UTF8, NULL, sql_checksum, NULL, NULL);
	sqlite3_create_function(db, "set_element", 4, SQLITE_UTF8, NULL, sql_set_element, NULL, NULL);
	for (unsigned i = 0, n = 1 + seed % 3; i < n; i++)
		sqlite3_exec(db, mutations[(seed / 4 + i * 7) % N_MUTATIONS], NULL, NULL, NULL);
	sqlite3_exec(db, "UPDATE store_chunk SET checksum = checksum(data)", NULL, NULL, NULL);
	return database_close(db, data, size, max_size);
}
