/* Python literals: what repr() writes is read, what is none is refused at the right byte, nothing recurses without end. */
#include "test.h"

#include "base/buf.h"
#include "io/pyliteral.h"

static struct arena a;

static const struct py *read_text(const char *text)
{
	size_t at;
	return py_parse(str_from(text), &a, &at);
}

static void test_scalars(void **state)
{
	assert_int_equal(read_text("None")->type, PY_NONE);
	assert_int_equal(read_text(" True ")->i, 1);
	assert_int_equal(read_text("false")->type, PY_BOOL);
	assert_true(read_text("-9223372036854775808")->i == INT64_MIN);
	assert_int_equal(read_text("9223372036854775808")->type, PY_FLOAT);
	assert_int_equal(read_text("1e-05")->type, PY_FLOAT);
	assert_int_equal(read_text("-inf")->type, PY_FLOAT);
	assert_int_equal(read_text("nan")->type, PY_FLOAT);
	assert_true(str_eq(read_text("0.1")->raw, STR("0.1")));
}

static void test_strings(void **state)
{
	assert_true(str_eq(read_text("'it\\'s'")->s, STR("it's")));
	assert_true(str_eq(read_text("\"it's\"")->s, STR("it's")));
	assert_true(str_eq(read_text("u'x'")->s, STR("x")));
	assert_true(str_eq(read_text("'a\\n\\x41\\u00e9\\q'")->s, STR("a\nA\xc3\xa9\\q")));
	assert_null(read_text("'open"));
	assert_null(read_text("'\\x4"));
	assert_null(read_text("'\\"));
}

static void test_containers(void **state)
{
	const struct py *d = read_text("{'shape': (2, 3), 'one': (4,), 'paren': (5), 'l': [], 'd': {}, 1: 'n',}");
	assert_int_equal(d->n, 6);
	assert_int_equal(py_get(d, "shape")->type, PY_TUPLE);
	assert_int_equal(py_get(d, "shape")->first->next->i, 3);
	assert_int_equal(py_get(d, "one")->type, PY_TUPLE);
	assert_int_equal(py_get(d, "paren")->type, PY_INT);
	assert_true(str_eq(py_get(d, "shape")->raw, STR("(2, 3)")));
	assert_int_equal(py_get(d, "l")->n, 0);
	assert_null(py_get(d, "none"));
	assert_null(py_get(py_get(d, "l"), "x"));
}

static void test_refused(void **state)
{
	static const struct { const char *text; size_t at; } cases[] = {
		{"", 0}, {"{'a': }", 6}, {"[1 2]", 3}, {"[1,", 3}, {"(1]", 2}, {"__import__('os')", 0}, {"{'a': os}", 6}, {"1 1", 2},
		{"{'a'}", 4}, {"1.2.3", 0}, {"-", 0}, {"{1: 2, 3}", 8},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		size_t at;
		assert_null(py_parse(str_from(cases[i].text), &a, &at));
		assert_int_equal(at, cases[i].at);
	}
}

static void test_depth(void **state)
{
	struct buf b = {0};
	size_t at;
	for (int n = PY_DEPTH; n < PY_DEPTH + 2; n++) {
		b.n = 0;
		for (int i = 0; i < n; i++)
			buf_char(&b, '[');
		for (int i = 0; i < n; i++)
			buf_char(&b, ']');
		assert_int_equal(py_parse(buf_view(&b), &a, &at) != NULL, n == PY_DEPTH);
	}
	b.n = 0;
	for (int i = 0; i < 1000000; i++)
		buf_cstr(&b, "{'a':");
	assert_null(py_parse(buf_view(&b), &a, &at));
	buf_release(&b);
}

static int release(void **state)
{
	arena_release(&a);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scalars), cmocka_unit_test(test_strings), cmocka_unit_test(test_containers),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_depth),
	};
	return cmocka_run_group_tests(tests, NULL, release);
}
