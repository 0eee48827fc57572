#include "base/buf.h"
#include "base/json_text.h"

#include "test.h"

static void test_put(void **state)
{
	struct buf b = {0};
	buf_put(&b, NULL, 0);
	assert_null(b.p);
	buf_cstr(&b, "a");
	buf_char(&b, 'b');
	buf_str(&b, STR("cd"));
	buf_fill(&b, '-', 3);
	buf_fill(&b, 'x', 0);
	assert_str_equal(buf_view(&b), "abcd---");
	buf_clear(&b);
	assert_str_equal(buf_view(&b), "");
	assert_true(b.cap > 0);
	buf_release(&b);
	assert_null(b.p);
}

static void test_printf_grows(void **state)
{
	struct buf b = {0};
	buf_printf(&b, "%s", "");
	assert_int_equal(b.n, 0);
	size_t n = 0;
	for (int width = 1; width < 600; width++) {
		buf_printf(&b, "%*d", width, width);
		n += (size_t)width;
		assert_int_equal(b.n, n);
	}
	assert_memory_equal(b.p + b.n - 4, " 599", 4);
	buf_release(&b);
}

static void test_i64(void **state)
{
	static const struct {
		int64_t v;
		const char *text;
	} cases[] = {{0, "0"}, {7, "7"}, {-7, "-7"}, {1000000007, "1000000007"}, {INT64_MAX, "9223372036854775807"},
	             {INT64_MIN, "-9223372036854775808"}};
	struct buf b = {0};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		buf_clear(&b);
		buf_i64(&b, cases[i].v);
		assert_str_equal(buf_view(&b), cases[i].text);
	}
	buf_release(&b);
}

/* On both sides of every power of ten and of two. */
static void test_i64_as_printf(void **state)
{
	struct buf b = {0};
	(void)state;
	for (unsigned base = 2; base <= 10; base += 8)
		for (uint64_t power = 1; power <= INT64_MAX / base; power *= base)
			for (int step = -1; step <= 1; step++)
				for (int sign = -1; sign <= 1; sign += 2) {
					int64_t v = sign * ((int64_t)(power * base) + step);
					char want[32];
					buf_clear(&b);
					buf_i64(&b, v);
					snprintf(want, sizeof want, "%lld", (long long)v);
					assert_str_equal(buf_view(&b), want);
					assert_true(b.n <= I64_DIGITS);
				}
	buf_release(&b);
}

static void test_a_million_bytes(void **state)
{
	struct buf b = {0};
	for (int i = 0; i < 1000000; i++)
		buf_char(&b, (char)('a' + i % 26));
	assert_int_equal(b.n, 1000000);
	assert_int_equal(b.p[999999], 'a' + 999999 % 26);
	buf_release(&b);
}

static void test_json_texts(void **state)
{
	static const struct {
		struct str text;
		const char *json;
	} cases[] = {
		{STR(""), "\"\""}, {STR("aten::mm"), "\"aten::mm\""}, {STR("a\"b\\c"), "\"a\\\"b\\\\c\""}, {STR("\na\tb\x01 \x7f"), "\"\\na\\tb\\u0001 \\u007f\""},
		{STR("\"\""), "\"\\\"\\\"\""}, {STR("h\xc3\xa9h\xe2\x80\xa8"), "\"h\xc3\xa9h\\u2028\""}, {STR("a\xff" "b\xc3"), "\"a\xef\xbf\xbd" "b\xef\xbf\xbd\""},
		{STR("\0x"), "\"\\u0000x\""},
	};
	struct buf b = {0};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		buf_clear(&b);
		json_put_string(&b, cases[i].text);
		assert_str_equal(buf_view(&b), cases[i].json);
	}
	buf_clear(&b);
	JSON_PUT_TEXTS(&b, {"a", STR("x")}, {"b", STR("\n")}, {"c", STR("")});
	assert_str_equal(buf_view(&b), "\"a\":\"x\",\"b\":\"\\n\",\"c\":\"\"");
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_put),
		cmocka_unit_test(test_printf_grows),
		cmocka_unit_test(test_i64),
		cmocka_unit_test(test_i64_as_printf),
		cmocka_unit_test(test_a_million_bytes),
		cmocka_unit_test(test_json_texts),
	};
	return RUN_TESTS(tests);
}
