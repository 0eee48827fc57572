#include "base/err.h"

#include "test.h"

static void test_set(void **state)
{
	struct err e = {0};
	assert_int_equal(err_set(&e, ERR_FORMAT, "bad %s at %d", "byte", 7), -1);
	assert_int_equal(e.code, ERR_FORMAT);
	assert_string_equal(e.msg, "bad byte at 7");
	assert_int_equal(err_set(NULL, ERR_IO, "nobody listens"), -1);
}

static void test_prefix(void **state)
{
	struct err e = {0};
	err_set(&e, ERR_IO, "no such file");
	assert_int_equal(err_prefix(&e, "trace %d", 3), -1);
	assert_string_equal(e.msg, "trace 3: no such file");
	assert_int_equal(e.code, ERR_IO);
	assert_int_equal(err_prefix(NULL, "x"), -1);
}

/* However long, the message is cut inside its buffer and the front is kept. */
static void test_long(void **state)
{
	struct err e = {0};
	err_set(&e, ERR_DATA, "%05000d", 1);
	assert_int_equal(strlen(e.msg), sizeof e.msg - 1);
	err_prefix(&e, "front");
	assert_memory_equal(e.msg, "front: 000", 10);
	assert_true(strlen(e.msg) < sizeof e.msg);
	for (int i = 0; i < 300; i++)
		err_prefix(&e, "level %d", i);
	assert_memory_equal(e.msg, "level 299: level 298", 20);
	err_prefix(&e, "%02000d", 1); /* longer than the buffer: what is there stays */
	assert_memory_equal(e.msg, "level 299", 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_prefix),
		cmocka_unit_test(test_long),
	};
	return RUN_TESTS(tests);
}
