/* The JSON reader: numbers against exact references, repairs, windows that end anywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "io/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t seed = 42;
static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

/* The window of a text, padded as the reader asks. */
static struct json open_text(struct buf *b, const char *text)
{
	buf_clear(b);
	buf_cstr(b, text);
	size_t n = b->n;
	buf_fill(b, 0, JSON_PADDING);
	return (struct json){.end = b->p + n};
}

static void scaled_is(const char *text, int digits, bool ok, int64_t want)
{
	int64_t got = -77;
	bool r = json_to_scaled(str_from(text), digits, &got);
	if (r != ok || (ok && got != want))
		fail_msg("%s: got %d %" PRId64 ", want %d %" PRId64, text, r, got, ok, want);
}

static void test_microseconds_to_nanoseconds(void **state)
{
	(void)state;
	scaled_is("0", 3, true, 0);
	scaled_is("1623142623460111", 3, true, 1623142623460111000);
	scaled_is("4363514239411.836", 3, true, 4363514239411836);
	scaled_is("4363514239411.8", 3, true, 4363514239411800);
	scaled_is("-12.5", 3, true, -12500);
	scaled_is("0.0004", 3, true, 0);
	scaled_is("0.0005", 3, true, 1);
	scaled_is("1.99949", 3, true, 1999);
	scaled_is("1.9995", 3, true, 2000);
	scaled_is("1e3", 3, true, 1000000);
	scaled_is("1.5E-3", 3, true, 2);
	scaled_is("1.25e+2", 3, true, 125000);
	scaled_is("9223372036854775.807", 3, true, INT64_MAX);
	scaled_is("9223372036854775.808", 3, false, 0);
	scaled_is("9223372036854775808", 3, false, 0);
	scaled_is("1e30", 3, false, 0);
	scaled_is("1e99999999999999999999", 3, false, 0);
	scaled_is("0000000000000000000000000012.5", 3, true, 12500);
	scaled_is("", 3, false, 0);
	scaled_is("-", 3, false, 0);
	scaled_is("abc", 3, false, 0);
	scaled_is("1.2.3", 3, false, 0);
	scaled_is("12x", 3, false, 0);
}

static void test_times_are_exact(void **state)
{
	(void)state;
	for (int i = 0; i < 200000; i++) {
		int64_t ns = (int64_t)(rnd() >> (1 + rnd() % 60));
		char text[64];
		snprintf(text, sizeof text, "%" PRId64 ".%03d", ns / 1000, (int)(ns % 1000));
		scaled_is(text, 3, true, ns);
	}
}

static void test_doubles_are_the_nearest(void **state)
{
	(void)state;
	for (int i = 0; i < 200000; i++) {
		char text[64];
		int decimals = (int)(rnd() % 16);
		snprintf(text, sizeof text, "%.*f", decimals, (double)(rnd() >> (rnd() % 64)) / 1e6);
		double got = -1;
		bool ok = json_to_f64(str_from(text), &got);
		assert_true(ok == (strlen(text) < 64));
		if (ok)
			assert_true(got == strtod(text, NULL));
	}
}

static void test_integers(void **state)
{
	(void)state;
	int64_t v;
	assert_true(json_to_i64(STR("9223372036854775807"), &v) && v == INT64_MAX);
	assert_true(json_to_i64(STR("-9223372036854775808"), &v) && v == INT64_MIN);
	assert_false(json_to_i64(STR("9223372036854775808"), &v));
	assert_true(json_to_i64(STR("12.9"), &v) && v == 12);
	assert_true(json_to_i64(STR("1e3"), &v) && v == 1000);
	assert_false(json_to_i64(STR("N/A"), &v));
	assert_false(json_to_i64(STR(""), &v));
}

static void unescaped_is(const char *raw, const char *want, unsigned want_repairs)
{
	struct buf out = {0};
	unsigned repairs = 0;
	json_unescape(str_from(raw), &out, &repairs);
	buf_char(&out, 0);
	assert_string_equal(out.p, want);
	assert_int_equal(repairs, want_repairs);
	buf_release(&out);
}

static void test_escapes(void **state)
{
	(void)state;
	unescaped_is("plain", "plain", 0);
	unescaped_is("a\\\"b\\\\c\\/d\\b\\f\\n\\r\\t", "a\"b\\c/d\b\f\n\r\t", 0);
	unescaped_is("\\u0041\\u00e9\\u20ac\\ud83d\\ude00", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 0);
	unescaped_is("\\ud83d x", "\xef\xbf\xbd x", JSON_REPAIR_UTF16);
	unescaped_is("C:\\Users\\nora\\code", "C:\\Users\\nora\\code", JSON_REPAIR_ESCAPE);
	unescaped_is("say \\\"hi\\\" in C:\\q", "say \"hi\" in C:\\q", JSON_REPAIR_ESCAPE);
	unescaped_is("end\\", "end\\", JSON_REPAIR_ESCAPE);
}

static const char document[] = "{\"a\": [1, {\"b\": \"x\\\"]}\"}, []], \"long key of more than sixteen bytes\" : -1.5e3,\n"
			       "\"s\":\"a string that is rather longer than sixteen bytes \\\\\",\"t\":true,\"n\":null}";

/* Reads the whole object; how many members, or -1 with the status in j. */
static int count_members(struct json *j, const char *p)
{
	bool first = true;
	int n = 0;
	struct json_value key, v;
	for (p++;; n++) {
		p = json_member(j, p, &first, &key);
		if (!p)
			return -1;
		if (!key.raw.p)
			return n;
		p = json_value(j, p, &v);
		if (!p)
			return -1;
	}
}

static void test_any_cut_asks_for_more(void **state)
{
	(void)state;
	for (size_t n = 1; n < sizeof document - 1; n++) {
		/* From the heap and exact but for the padding, so that a sanitizer sees a read too far. */
		char *copy = calloc(n + JSON_PADDING, 1);
		memcpy(copy, document, n);
		struct json j = {.end = copy + n};
		assert_int_equal(count_members(&j, copy), -1);
		assert_int_equal(j.status, JSON_MORE);
		free(copy);
	}
	struct buf b = {0};
	struct json j = open_text(&b, document);
	assert_int_equal(count_members(&j, b.p), 5);
	buf_release(&b);
}

static void members_are(const char *text, int want, unsigned repairs)
{
	struct buf b = {0};
	struct json j = open_text(&b, text);
	int n = count_members(&j, b.p);
	if (n != want || (want >= 0 && j.repairs != repairs))
		fail_msg("%s: %d members (want %d), repairs %u (want %u)", text, n, want, j.repairs, repairs);
	if (want < 0)
		assert_int_equal(j.status, JSON_BAD);
	buf_release(&b);
}

static void test_repairs_and_damage(void **state)
{
	(void)state;
	members_are("{}", 0, 0);
	members_are("{\"a\":1}", 1, 0);
	members_are("{\"a\":1,}", 1, JSON_REPAIR_COMMA);
	members_are("{\"a\":1,,\"b\":2}", 2, JSON_REPAIR_COMMA);
	members_are("{\"a\":N/A,\"b\":NaN,\"c\":-Infinity}", 3, JSON_REPAIR_BARE);
	members_are("{\"a\" 1}", -1, 0);
	members_are("{\"a\":}", -1, 0);
	members_are("{\"a\":1 \"b\":2}", -1, 0);
	members_are("{a:1}", -1, 0);
	members_are("{\"a\":[1}", -1, 0);
	members_are("{\"a\":{]}", -1, 0);
}

static void test_one_line(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{"[\n  [\n    8,\n    3\n  ],\n  []\n]", "[[8, 3], []]"},
		{"[[8, 3], []]", "[[8, 3], []]"},
		{"{\"a b\" :\t[\"x,  \\\"y:\" , 1]}", "{\"a b\": [\"x,  \\\"y:\", 1]}"},
		{"[]", "[]"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct buf out = {0};
		json_one_line(str_from(cases[i][0]), &out);
		buf_char(&out, 0);
		assert_string_equal(out.p, cases[i][1]);
		buf_release(&out);
	}
}

static void test_depth_is_limited(void **state)
{
	(void)state;
	struct buf b = {0};
	buf_fill(&b, '[', 100000);
	size_t n = b.n;
	buf_fill(&b, 0, JSON_PADDING);
	struct json j = {.end = b.p + n};
	assert_null(json_skip(&j, b.p));
	assert_int_equal(j.status, JSON_BAD);
	buf_clear(&b);
	buf_fill(&b, '[', JSON_DEPTH);
	buf_fill(&b, ']', JSON_DEPTH);
	n = b.n;
	buf_fill(&b, 0, JSON_PADDING);
	j = (struct json){.end = b.p + n};
	assert_ptr_equal(json_skip(&j, b.p), b.p + n);
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_microseconds_to_nanoseconds), cmocka_unit_test(test_times_are_exact),
		cmocka_unit_test(test_doubles_are_the_nearest), cmocka_unit_test(test_integers), cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_any_cut_asks_for_more), cmocka_unit_test(test_repairs_and_damage),
		cmocka_unit_test(test_one_line), cmocka_unit_test(test_depth_is_limited),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
