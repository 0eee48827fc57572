/* The direct reader of SQLite tables against the library: the same rows, whatever the page size, types and lengths; damaged
 * files end early, and what was read before is what the library wrote. */
#include "test.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/sqlpage.h"

enum { COLUMNS = 5 }; /* a, b, id, c and d, which is added later */

static char path[] = "/tmp/opscope_sqlpage_XXXXXX";

static int make_file(void **state)
{
	int fd = mkstemp(path);
	return fd >= 0 ? close(fd) : -1;
}

static int remove_file(void **state)
{
	return unlink(path);
}

static uint64_t next_random(uint64_t *r)
{
	*r ^= *r << 13;
	*r ^= *r >> 7;
	*r ^= *r << 17;
	return *r;
}

static void run(sqlite3 *db, const char *sql)
{
	char *error = NULL;
	if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK)
		fail_msg("%s: %s", sql, error);
}

/* A value of any type; integers of every width, texts from nothing to several pages. */
static void bind_random(sqlite3_stmt *st, int i, uint64_t *r, const char *pool, size_t pool_bytes)
{
	uint64_t what = next_random(r) % 12, x = next_random(r);
	size_t n = what < 10 ? x % 40 : x % pool_bytes;
	switch (what) {
	case 0: sqlite3_bind_null(st, i); break;
	case 1: sqlite3_bind_int64(st, i, (int64_t)(x % 3) - 1); break;
	case 2: case 3: case 4: sqlite3_bind_int64(st, i, (int64_t)x >> (next_random(r) % 64)); break;
	case 5: sqlite3_bind_double(st, i, (double)(int64_t)x / 3); break;
	case 6: sqlite3_bind_blob(st, i, pool, (int)n, SQLITE_STATIC); break;
	default: sqlite3_bind_text(st, i, pool + x % 7, (int)(n < 7 ? 0 : n - 7), SQLITE_STATIC);
	}
}

static void write_table(int page_bytes, int rows, uint64_t seed)
{
	enum { POOL = 200000 };
	char *pool = NEW_ARRAY(POOL, char), sql[64];
	for (int i = 0; i < POOL; i++)
		pool[i] = (char)('a' + i % 26);
	unlink(path);
	sqlite3 *db;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	snprintf(sql, sizeof sql, "PRAGMA page_size=%d", page_bytes);
	run(db, sql);
	run(db, "CREATE TABLE other(x); CREATE TABLE t(a, b INT, id INTEGER PRIMARY KEY, c TEXT); BEGIN");
	sqlite3_stmt *st;
	assert_int_equal(sqlite3_prepare_v2(db, "INSERT INTO t VALUES(?1, ?2, ?3, ?4)", -1, &st, NULL), SQLITE_OK);
	for (int i = 0; i < rows; i++) {
		bind_random(st, 1, &seed, pool, POOL);
		bind_random(st, 2, &seed, pool, 40);
		sqlite3_bind_int64(st, 3, (int64_t)(next_random(&seed) >> (i % 2 ? 1 : 40)));
		bind_random(st, 4, &seed, pool, 3000);
		if (sqlite3_step(st) != SQLITE_DONE)
			assert_int_equal(sqlite3_errcode(db) & 0xff, SQLITE_CONSTRAINT); /* the id is taken */
		sqlite3_reset(st);
		if (i % 5 == 0)
			run(db, "INSERT INTO other VALUES(zeroblob(700))");
	}
	sqlite3_finalize(st);
	run(db, "COMMIT; DELETE FROM t WHERE id % 7 = 3; ALTER TABLE t ADD COLUMN d; INSERT INTO t(a, d) VALUES('last', 'd')");
	sqlite3_close(db);
	mem_free(pool);
}

static void assert_same(const struct sqlpage_value *v, sqlite3_stmt *st, int i)
{
	int type = sqlite3_column_type(st, i);
	static const int expected[] = {SQLITE_NULL, SQLITE_INTEGER, SQLITE_FLOAT, SQLITE_TEXT, SQLITE_BLOB};
	assert_int_equal(expected[v->type], type);
	if (type == SQLITE_INTEGER) {
		assert_true(v->i == sqlite3_column_int64(st, i));
	} else if (type == SQLITE_FLOAT) {
		assert_true(v->real == sqlite3_column_double(st, i));
	} else if (type != SQLITE_NULL) {
		const void *p = sqlite3_column_blob(st, i);
		assert_int_equal(v->s.n, sqlite3_column_bytes(st, i));
		assert_true(!v->s.n || memcmp(v->s.p, p, v->s.n) == 0);
	}
}

static uint32_t root_of(sqlite3 *db)
{
	sqlite3_stmt *st;
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT rootpage FROM sqlite_schema WHERE name='t'", -1, &st, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	uint32_t root = (uint32_t)sqlite3_column_int(st, 0);
	sqlite3_finalize(st);
	return root;
}

static const int all_columns[COLUMNS] = {0, 1, 2, 3, 4};

static int compare(void)
{
	sqlite3 *db;
	sqlite3_stmt *st;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT a, b, id, c, d FROM t NOT INDEXED", -1, &st, NULL), SQLITE_OK);
	int fd = open(path, O_RDONLY), rows = 0;
	struct sqlpage *s = sqlpage_open(fd, root_of(db), all_columns, COLUMNS, 2);
	assert_non_null(s);
	while (sqlite3_step(st) == SQLITE_ROW) {
		const struct sqlpage_value *v = sqlpage_next(s);
		assert_non_null(v);
		for (int i = 0; i < COLUMNS; i++)
			assert_same(&v[i], st, i);
		rows++;
	}
	assert_null(sqlpage_next(s));
	assert_false(sqlpage_damaged(s));
	sqlpage_close(s);
	sqlite3_finalize(st);
	sqlite3_close(db);
	close(fd);
	return rows;
}

static void test_same_rows(void **state)
{
	for (int page = 512; page <= 65536; page *= 2) {
		write_table(page, 600, (uint64_t)page * 77 + 1);
		assert_true(compare() > 300);
	}
}

static void test_empty(void **state)
{
	write_table(4096, 0, 1);
	assert_int_equal(compare(), 1);
}

/* Some columns, in any order, one of them twice, one that is not there. */
static void test_columns(void **state)
{
	write_table(1024, 200, 5);
	sqlite3 *db;
	sqlite3_stmt *st;
	sqlite3_open(path, &db);
	sqlite3_prepare_v2(db, "SELECT c, a, NULL, c, id FROM t", -1, &st, NULL);
	static const int columns[] = {3, 0, -1, 3, 2};
	int fd = open(path, O_RDONLY);
	struct sqlpage *s = sqlpage_open(fd, root_of(db), columns, 5, 2);
	while (sqlite3_step(st) == SQLITE_ROW) {
		const struct sqlpage_value *v = sqlpage_next(s);
		assert_non_null(v);
		for (int i = 0; i < 5; i++)
			assert_same(&v[i], st, i);
	}
	assert_null(sqlpage_next(s));
	sqlpage_close(s);
	sqlite3_finalize(st);
	sqlite3_close(db);
	close(fd);
}

/* A NULL whose type is written in two bytes where one would do: no SQLite writes that, but it reads it. */
static void test_long_null(void **state)
{
	unlink(path);
	sqlite3 *db;
	sqlite3_open(path, &db);
	run(db, "CREATE TABLE t(a, b INT, id INTEGER PRIMARY KEY, c TEXT, d); "
	        "INSERT INTO t VALUES(zeroblob(58), 1, 5, zeroblob(64), 'd')");
	sqlite3_close(db);
	int fd = open(path, O_RDWR);
	char file[8192];
	ssize_t size = read(fd, file, sizeof file);
	char *types = memmem(file, (size_t)size, "\x81\x00\x09\x00\x81\x0c", 6); /* 58 bytes, the integer 1, the row's id, 64 bytes */
	assert_non_null(types);
	assert_int_equal(pwrite(fd, "\x80\x00\x09\x00\x82\x00", 6, types - file), 6); /* NULL, 1, id, 122 bytes */
	close(fd);
	assert_int_equal(compare(), 1);
}

/* Reads all there is to read and touches every byte of it. */
static uint64_t read_all(int fd, uint32_t root)
{
	struct sqlpage *s = sqlpage_open(fd, root, all_columns, COLUMNS, 2);
	uint64_t sum = 0, rows = 0;
	if (!s)
		return 0;
	for (const struct sqlpage_value *v; (v = sqlpage_next(s)); rows++)
		for (int i = 0; i < COLUMNS; i++)
			for (size_t k = 0; v[i].type >= SQLPAGE_TEXT && k < v[i].s.n; k++)
				sum += (uint8_t)v[i].s.p[k];
	sqlpage_close(s);
	return rows + (sum & 0);
}

static void test_damage(void **state)
{
	write_table(512, 300, 99);
	int fd = open(path, O_RDWR);
	off_t size = lseek(fd, 0, SEEK_END);
	uint64_t r = 4242, all = read_all(fd, 3), most = 0;
	assert_true(all > 100);
	for (int i = 0; i < 3000; i++) {
		off_t at = 100 + (off_t)(next_random(&r) % (uint64_t)(size - 100));
		uint8_t old, changed = (uint8_t)next_random(&r);
		assert_int_equal(pread(fd, &old, 1, at), 1);
		assert_int_equal(pwrite(fd, &changed, 1, at), 1);
		uint64_t rows = read_all(fd, 1 + (uint32_t)(next_random(&r) % 40));
		most = rows > most ? rows : most;
		assert_true(rows <= 2 * (uint64_t)size);
		if (i % 3)
			assert_int_equal(pwrite(fd, &old, 1, at), 1);
	}
	assert_true(most > 0);
	assert_int_equal(ftruncate(fd, size / 2), 0);
	assert_true(read_all(fd, 3) < all);
	close(fd);
}

static void test_refused(void **state)
{
	int fd = open(path, O_RDWR | O_TRUNC);
	assert_null(sqlpage_open(fd, 1, all_columns, COLUMNS, 2));
	assert_int_equal(write(fd, "SQLite format 3", 16), 16);
	assert_null(sqlpage_open(fd, 1, all_columns, COLUMNS, 2));
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_null(sqlpage_open(fd, 1, all_columns, COLUMNS, 2));
	close(fd);
}

/* Few headers that come again and again: other values, other lengths, NULL where the row before had a value. */
static void test_same_headers(void **state)
{
	enum { ROWS = 4000 };
	sqlite3 *db;
	sqlite3_stmt *st;
	unlink(path);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	run(db, "CREATE TABLE t(a, b, id INTEGER PRIMARY KEY, c, d); BEGIN");
	assert_int_equal(sqlite3_prepare_v2(db, "INSERT INTO t VALUES(?1, ?2, NULL, ?3, ?4)", -1, &st, NULL), SQLITE_OK);
	for (int i = 0; i < ROWS; i++) {
		sqlite3_clear_bindings(st);
		if (i % 3)
			sqlite3_bind_int64(st, 1, i % 5 ? INT64_C(1) << (i % 63) : -i);
		sqlite3_bind_int64(st, 2, i % 7 ? i : i % 2);
		if (i % 4)
			sqlite3_bind_text(st, 3, path, i % 11, SQLITE_STATIC);
		if (i % 4 == 1)
			sqlite3_bind_double(st, 4, i / 3.0);
		else if (i % 4 == 2)
			sqlite3_bind_blob(st, 4, path, i % 9, SQLITE_STATIC);
		assert_int_equal(sqlite3_step(st), SQLITE_DONE);
		sqlite3_reset(st);
	}
	sqlite3_finalize(st);
	run(db, "COMMIT");
	sqlite3_close(db);
	assert_int_equal(compare(), ROWS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_rows), cmocka_unit_test(test_empty),  cmocka_unit_test(test_columns),
		cmocka_unit_test(test_long_null),  cmocka_unit_test(test_same_headers),
		cmocka_unit_test(test_damage),    cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, make_file, remove_file);
}
