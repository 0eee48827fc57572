/* The fast JSON reader against the strict one; built twice, with the machine's lanes and with those of plain C. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/buf.h"
#include "glue_same.h"

#include <stdlib.h>

static uint64_t seed = 7;
static unsigned glue_rnd(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 33) % n;
}

static const char *any(const char *const *of, unsigned n)
{
	return of[glue_rnd(n)];
}
#define ANY(...) any((const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void put_object(struct buf *b, unsigned depth, const char *space)
{
	buf_char(b, '{');
	for (unsigned i = 0, n = glue_rnd(6); i < n; i++) {
		buf_cstr(b, i ? "," : "");
		buf_cstr(b, space);
		buf_cstr(b, ANY("\"ts\"", "\"dur\"", "\"name\"", "\"name of more than sixteen bytes\"", "\"a\\\"b\"", "\"\"", "\"ph\""));
		buf_cstr(b, ANY(":", ": ", ": ", ": ", " :", ":  ", ":\n"));
		if (depth < 3 && glue_rnd(4) == 0)
			put_object(b, depth + 1, space);
		else
			buf_cstr(b, ANY("1", "-12.5", "123456789012345678901234", "\"X\"", "\"a text of more than sixteen bytes\"", "\"a\\\\\"", "null",
			                "true", "N/A", "[1, {\"a\": 2}]", "1e3", "-", "-Infinity", "1669783687464181", "1419120373006.081", "4.3", "0.35", "12.", ".5", "1.2345", "12345678", "123456789",
			                "9999999999999999", "99999999999999999", "8999999999999999.999", "9000000000000000", "007", "-7", "-1048576", "--1", "-12345678901234567", "[1, 2, 3]", "[65536,1,1]", "[1, 2, 3, 4]", "[1, 2]", "[1, -2, 3]",
			                "[2147483647, 0, 1]", "[2147483648, 0, 1]", "[01, 2, 3]", "[1 , 2, 3]", "[1,  2, 3]", "[ 1, 2, 3]", "[1, 2, 3 ]", "[1, 2, \"3\"]", "[1,, 2, 3]", "1.2.3", "1669783687464181 ", "12/3", "\"15 bytes of text\"", "\"sixteen bytes of\""));
		if (glue_rnd(40) == 0)
			buf_cstr(b, ANY(",", " ", "}", "\"", "{", ":"));
	}
	buf_cstr(b, space);
	buf_char(b, '}');
}

/* Texts as a program writes them, alike but not quite, each whole and cut anywhere. */
static void test_as_the_strict_reader(void **state)
{
	(void)state;
	unsigned known = 0;
	for (unsigned round = 0; round < 60; round++) {
		struct json_glue g;
		json_glue_init(&g);
		for (unsigned i = 0; i < 60; i++) {
			struct buf b = {0};
			put_object(&b, 0, ANY("", "", " ", "\n  "));
			size_t n = glue_rnd(3) ? b.n : glue_rnd((unsigned)b.n) + 1;
			char *copy = calloc(n + JSON_PADDING, 1);
			assert_non_null(copy);
			memcpy(copy, b.p, n);
			if (!glue_same_text(&g, copy, n))
				fail_msg("the readers differ on %.*s", (int)n, copy);
			free(copy);
			buf_release(&b);
		}
		known += g.n;
		json_glue_release(&g);
	}
	assert_in_range(known, 2000, 60 * GLUE_STATES);
}

/* Reads an object of numbers: the position behind it, what was repaired, and whether nothing was learnt. */
static const char *read_object(struct json_glue *g, const char *text, struct buf *window, unsigned *repairs, bool *met_all)
{
	buf_clear(window);
	buf_cstr(window, text);
	size_t n = window->n;
	buf_fill(window, 0, JSON_PADDING);
	struct json j = {.end = window->p + n};
	bool first = true;
	struct json_value key = {0};
	const char *p = window->p + 1;
	json_glue_begin(g);
	unsigned states = g->n;
	do {
		struct json_glue_state *met;
		struct json_value v;
		p = json_glue_member(g, &j, p, &first, &key, &met);
		key.raw = met ? met->key : key.raw;
		if (p && key.raw.p)
			p = json_near_value(&j, p, &v);
	} while (p && key.raw.p);
	*met_all = states == g->n;
	*repairs = j.repairs;
	return p;
}

/* A repair is met each time, not only the first time; and what was read once is known the second time. */
static void test_repairs_are_not_learnt(void **state)
{
	(void)state;
	struct json_glue g;
	struct buf window = {0};
	unsigned repairs;
	bool met_all;
	json_glue_init(&g);
	for (unsigned i = 0; i < 3; i++) {
		assert_non_null(read_object(&g, "{\"a\": 1,, \"b\": 2,}", &window, &repairs, &met_all));
		assert_int_equal(repairs, JSON_REPAIR_COMMA);
	}
	for (unsigned i = 0; i < 3; i++) {
		assert_non_null(read_object(&g, "{\"a\": 1, \"b\": 2}", &window, &repairs, &met_all));
		assert_int_equal(repairs, 0);
		assert_true(met_all == (i > 0));
	}
	buf_release(&window);
	json_glue_release(&g);
}

/* More ways than are learnt, more states than there are, and longer texts: still read. */
static void test_no_room(void **state)
{
	(void)state;
	struct json_glue g;
	json_glue_init(&g);
	struct buf b = {0};
	for (unsigned i = 0; i < 4000; i++) {
		buf_clear(&b);
		buf_printf(&b, "{\"k%u\": 1, \"l%u\": {\"m%u\": 2, \"a key of quite some length, so that the text with it is not learnt: too long\": 3}}", i % 900, i, i / 3);
		size_t n = b.n;
		buf_fill(&b, 0, JSON_PADDING);
		assert_true(glue_same_text(&g, b.p, n));
	}
	assert_in_range(g.n, 3, GLUE_STATES);
	buf_release(&b);
	json_glue_release(&g);
}

/* Sixteen bytes at once against one at a time. Texts lie at the ends of blocks, so that a sanitizer sees a read too far. */
static void test_lanes(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		char x[LANES];
		unsigned digits = 0;
		for (unsigned k = 0; k < LANES; k++)
			x[k] = (char)(glue_rnd(12) ? '0' + glue_rnd(10) : ' ' + glue_rnd(90));
		while (digits < LANES && x[digits] >= '0' && x[digits] <= '9')
			digits++;
		assert_int_equal(lanes_run(lanes_within(lanes_at(x), '0', 9)), digits);
		const size_t n = 8 + glue_rnd(60);
		char *a = malloc(n), *b = malloc(n);
		assert_non_null(a);
		assert_non_null(b);
		memset(a, 'a', n);
		memset(b, 'a', n);
		if (glue_rnd(2))
			b[glue_rnd((unsigned)n)] = 'b';
		assert_true(lanes_same_within(a, b, n) == (memcmp(a, b, n) == 0));
		free(a);
		free(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_the_strict_reader), cmocka_unit_test(test_repairs_are_not_learnt), cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_lanes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
