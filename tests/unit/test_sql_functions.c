#include "test.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <time.h>

#include "query/sql_functions.h"

/* SQLite's own functions, and those in their place. */
static sqlite3 *theirs, *ours;

static int open_both(void **state)
{
	assert_int_equal(sqlite3_open(":memory:", &theirs), SQLITE_OK);
	assert_int_equal(sqlite3_open(":memory:", &ours), SQLITE_OK);
	return sql_functions_add(ours);
}

static int close_both(void **state)
{
	sqlite3_close(theirs);
	sqlite3_close(ours);
	return 0;
}

/* One value, as its type and its bytes. */
static char *answer(sqlite3 *db, const char *expression)
{
	sqlite3_stmt *st;
	char *query = sqlite3_mprintf("SELECT typeof(v) || ' ' || ifnull(hex(v), '') FROM (SELECT %s AS v)", expression);
	assert_int_equal(sqlite3_prepare_v2(db, query, -1, &st, NULL), SQLITE_OK);
	char *text = sqlite3_step(st) == SQLITE_ROW ? sqlite3_mprintf("%s", sqlite3_column_text(st, 0)) : sqlite3_mprintf("%s", sqlite3_errmsg(db));
	sqlite3_finalize(st);
	sqlite3_free(query);
	return text;
}

static void assert_same(const char *expression)
{
	char *want = answer(theirs, expression), *got = answer(ours, expression);
	if (strcmp(want, got) != 0)
		print_error("%s\n", expression);
	assert_string_equal(got, want);
	sqlite3_free(want);
	sqlite3_free(got);
}

static void test_odd_arguments(void **state)
{
	static const char *const value[] = {"NULL", "''", "x''", "0", "10", "1.5", "'a'", "'aa'", "'aba'", "x'61'", "x'00'", "'a' || char(0) || 'b'", "'äa'", "x'a4'", "x'c3'",
	                                    "CAST(x'a4' AS TEXT)", "CAST(x'c3' AS TEXT)", "CAST(x'c3a4a4c3' AS TEXT)", "CAST(x'a4c3a4' AS TEXT)", "' a '", "'1'", "'€'"};
	enum { N = sizeof value / sizeof value[0] };
	for (int i = 0; i < N; i++)
		for (int k = 0; k < N; k++) {
			static const char *const form[] = {"instr(%s, %s)", "replace(%s, %s, 'xyz')", "replace('a' || %s, %s, NULL)", "trim(%s, %s)", "ltrim(%s, %s)", "rtrim(%s, %s)"};
			for (size_t f = 0; f < sizeof form / sizeof form[0]; f++) {
				char text[300];
				snprintf(text, sizeof text, form[f], value[i], value[k]);
				assert_same(text);
			}
		}
	for (int i = 0; i < N; i++) {
		static const char *const form[] = {"trim(%s)", "ltrim(%s)", "rtrim(%s)"};
		for (size_t f = 0; f < sizeof form / sizeof form[0]; f++) {
			char text[300];
			snprintf(text, sizeof text, form[f], value[i]);
			assert_same(text);
		}
	}
}

/* Of few different bytes, so that parts are found, at the start, amid characters and more than once. */
static void put_random(char *out, int most)
{
	static const char *const piece[] = {"61", "61", "62", "c3a4", "c3a5", "e282ac", "a4", "c3", "f09f9880"};
	static const char *const plain[] = {"61", "62"};
	bool odd = rand() % 2;
	*out = 0;
	for (int n = rand() % most; n; n--)
		strcat(out, odd ? piece[(size_t)rand() % (sizeof piece / sizeof piece[0])] : plain[rand() % 2]);
}

static void test_random_arguments(void **state)
{
	srand(1);
	for (int i = 0; i < 20000; i++) {
		static const char *const form[] = {"instr(%s, %s)", "replace(%s, %s, %s)", "trim(%s, %s)", "ltrim(%s, %s)", "rtrim(%s, %s)"};
		char v[3][200], text[900], bytes[160];
		for (int k = 0; k < 3; k++) {
			put_random(bytes, k ? 4 : 16);
			snprintf(v[k], sizeof v[k], rand() % 4 ? "CAST(x'%s' AS TEXT)" : "x'%s'", bytes);
		}
		snprintf(text, sizeof text, form[(size_t)rand() % (sizeof form / sizeof form[0])], v[0], v[1], v[2]);
		assert_same(text);
	}
}

static void test_too_long(void **state)
{
	sqlite3_limit(theirs, SQLITE_LIMIT_LENGTH, 1000);
	sqlite3_limit(ours, SQLITE_LIMIT_LENGTH, 1000);
	assert_same("length(replace(hex(zeroblob(100)), '0', 'abcde'))");
	assert_same("length(replace(hex(zeroblob(100)), '0', 'abcdef'))");
}

/* A megabyte each: text times pattern would take minutes. */
static void test_linear(void **state)
{
	static const char *const expression[] = {
		"instr(hex(zeroblob(500000)), hex(zeroblob(250000)) || '1')",
		"instr(hex(zeroblob(500000)), '1' || hex(zeroblob(250000)))",
		"length(replace(hex(zeroblob(500000)), hex(zeroblob(250000)) || '1', ''))",
		"length(replace(hex(zeroblob(50000)), '00', '1'))",
		"length(trim(hex(zeroblob(400000)), replace(hex(zeroblob(200000)), '00', 'äö') || '1' || char(8364) || '0'))",
	};
	for (size_t i = 0; i < sizeof expression / sizeof expression[0]; i++) {
		struct timespec begin, end;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
		sqlite3_free(answer(ours, expression[i]));
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
		if (end.tv_sec - begin.tv_sec > 2)
			fail_msg("%s: %ld s", expression[i], (long)(end.tv_sec - begin.tv_sec));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_odd_arguments, open_both, close_both),
		cmocka_unit_test_setup_teardown(test_random_arguments, open_both, close_both),
		cmocka_unit_test_setup_teardown(test_too_long, open_both, close_both),
		cmocka_unit_test_setup_teardown(test_linear, open_both, close_both),
	};
	return RUN_TESTS(tests);
}
