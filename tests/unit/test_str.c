#include "base/str.h"
#include "base/utf8.h"

#include "test.h"

static void test_compare(void **state)
{
	assert_true(str_eq(STR(""), (struct str){NULL, 0}));
	assert_true(str_eq(STR("ab"), STR("ab")));
	assert_false(str_eq(STR("ab"), STR("abc")));
	assert_true(str_eqc(STR("ab"), "ab"));
	assert_true(str_starts(STR("aten::mm"), STR("aten::")));
	assert_true(str_starts(STR("x"), STR("")));
	assert_false(str_starts(STR("at"), STR("aten")));
	assert_true(str_ends(STR("a.json.gz"), STR(".gz")));
	assert_false(str_ends(STR("gz"), STR(".gz")));
	assert_true(str_cmp(STR("a"), STR("b")) < 0);
	assert_true(str_cmp(STR("a"), STR("aa")) < 0);
	assert_true(str_cmp(STR("aa"), STR("a")) > 0);
	assert_int_equal(str_cmp(STR(""), (struct str){NULL, 0}), 0);
	assert_true(str_cmp(STR("\x7f"), STR("\x80")) < 0); /* bytes, not chars */
}

static void test_natural_order(void **state)
{
	assert_true(str_cmp_natural(STR("rank2"), STR("rank10")) < 0);
	assert_true(str_cmp_natural(STR("rank10"), STR("rank2")) > 0);
	assert_true(str_cmp_natural(STR("w1s2"), STR("w1s10")) < 0);
	assert_true(str_cmp_natural(STR("a"), STR("a1")) < 0);
	assert_true(str_cmp_natural(STR("a007"), STR("a8")) < 0);
	assert_true(str_cmp_natural(STR("a99999999999999999998"), STR("a99999999999999999999")) < 0);
	assert_int_equal(str_cmp_natural(STR("x12"), STR("x12")), 0);
	/* Equal as numbers: an order all the same, so that sorting is stable between runs. */
	assert_true(str_cmp_natural(STR("a01"), STR("a1")) != 0);
}

static void test_find(void **state)
{
	assert_int_equal(str_find(STR("hello"), STR("llo")), 2);
	assert_int_equal(str_find(STR("hello"), STR("")), 0);
	assert_int_equal(str_find(STR(""), STR("a")), -1);
	assert_int_equal(str_find(STR("abc"), STR("abcd")), -1);
	assert_true(str_has_nocase(STR("Volta_SGEMM_128x64"), STR("sgemm")));
	assert_true(str_has_nocase(STR("x"), STR("")));
	assert_true(str_has_nocase(STR(""), STR("")));
	assert_false(str_has_nocase(STR(""), STR("x")));
	assert_true(str_has_nocase(STR("Ssgsgemm"), STR("SGEMM")));
	assert_true(str_has_nocase(STR("sSgeSGEmM"), STR("sgemm")));
	assert_false(str_has_nocase(STR("sSgeSGEm"), STR("sgemm")));
	assert_true(str_has_nocase(STR("a::B_x"), STR("_X")));
	assert_false(str_has_nocase(STR("a::B[x"), STR("{x")));
	assert_true(str_has_nocase(STR("X"), STR("x")));
	assert_false(str_has_nocase(STR("sgem"), STR("sgemm")));
}

static void test_split(void **state)
{
	struct str s = STR("a,,b,"), piece;
	static const char *const want[] = {"a", "", "b", ""};
	for (int i = 0; i < 4; i++) {
		assert_true(str_split(&s, ',', &piece));
		assert_str_equal(piece, want[i]);
	}
	assert_false(str_split(&s, ',', &piece));
	s = STR("");
	assert_true(str_split(&s, ',', &piece));
	assert_str_equal(piece, "");
	assert_false(str_split(&s, ',', &piece));
}

static void test_words(void **state)
{
	assert_true(str_has_word("calls", STR("calls")));
	assert_true(str_has_word("calls total_ns", STR("total_ns")));
	assert_false(str_has_word("calls total_ns", STR("total")));
	assert_false(str_has_word("calls total_ns", STR("")));
	assert_false(str_has_word(NULL, STR("calls")));
}

static void test_to_i64(void **state)
{
	static const struct {
		const char *text;
		bool ok;
		int64_t v;
	} cases[] = {
		{"0", true, 0}, {"-1", true, -1}, {"0012", true, 12},
		{"9223372036854775807", true, INT64_MAX}, {"-9223372036854775808", true, INT64_MIN},
		{"9223372036854775808", false, 0}, {"-9223372036854775809", false, 0},
		{"", false, 0}, {"-", false, 0}, {"+1", false, 0}, {" 1", false, 0}, {"1 ", false, 0}, {"1.0", false, 0},
		{"--1", false, 0}, {"99999999999999999999999999", false, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t v = 0;
		assert_int_equal(str_to_i64(str_from(cases[i].text), &v), cases[i].ok);
		assert_true(v == cases[i].v);
	}
}

/* Whether a text is UTF-8 does not depend on where in it something other than ASCII stands. */
static void valid_utf8_anywhere(void **state)
{
	static const struct { const char *bytes; bool valid; } parts[] = {
		{"", true}, {"\xc3\xa9", true}, {"\xe2\x82\xac", true}, {"\xf0\x9f\x94\xa5", true}, {"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", true},
		{"\xff", false}, {"\x80", false}, {"\xc3", false}, {"\xe2\x82", false}, {"\xc0\x80", false}, {"\xed\xa0\x80", false}, {"\xf4\x90\x80\x80", false},
	};
	char text[64];
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		for (size_t before = 0; before < 20; before++)
			for (size_t after = 0; after < 20; after++) {
				size_t n = strlen(parts[i].bytes);
				memset(text, 'a', sizeof text);
				memcpy(text + before, parts[i].bytes, n);
				assert_int_equal(utf8_valid((struct str){text, before + n + after}), parts[i].valid);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(valid_utf8_anywhere),
		cmocka_unit_test(test_compare),
		cmocka_unit_test(test_natural_order),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_split), cmocka_unit_test(test_words),
		cmocka_unit_test(test_to_i64),
	};
	return RUN_TESTS(tests);
}
