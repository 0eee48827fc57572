#include "base/intern.h"

#include "test.h"

static void test_ids_count_up(void **state)
{
	struct intern t;
	intern_init(&t);
	assert_int_equal(intern_str(&t, STR("")), 0);
	assert_int_equal(intern_put(&t, NULL, 0), 0);
	assert_int_equal(intern_str(&t, STR("a")), 1);
	assert_int_equal(intern_str(&t, STR("b")), 2);
	assert_int_equal(intern_str(&t, STR("a")), 1);
	assert_int_equal(t.n, 3);
	assert_str_equal(intern_get(&t, 2), "b");
	assert_str_equal(intern_get(&t, 0), "");
	assert_str_equal(intern_get(&t, 3), "");
	assert_str_equal(intern_get(&t, INTERN_NONE), "");
	intern_release(&t);
}

static void test_find_never_adds(void **state)
{
	struct intern t;
	intern_init(&t);
	uint32_t a = intern_str(&t, STR("a"));
	assert_int_equal(intern_find(&t, STR("a")), a);
	assert_int_equal(intern_find(&t, STR("b")), INTERN_NONE);
	assert_int_equal(intern_find(&t, STR("")), 0);
	assert_int_equal(t.n, 2);
	intern_release(&t);
	struct intern empty = {0};
	assert_int_equal(intern_find(&empty, STR("a")), INTERN_NONE);
}

static void test_bytes_are_not_text(void **state)
{
	struct intern t;
	intern_init(&t);
	uint32_t a = intern_put(&t, "x\0y", 3), b = intern_put(&t, "x\0z", 3), c = intern_put(&t, "x", 1);
	assert_true(a != b && b != c && a != c);
	assert_int_equal(intern_get(&t, a).n, 3);
	intern_release(&t);
}

/* Through many rehashes: same ids, and pointers that never move. */
static void test_many(void **state)
{
	struct intern t;
	intern_init(&t);
	enum { N = 100000 };
	static const char *p[N];
	char text[32];
	for (int i = 0; i < N; i++) {
		int n = snprintf(text, sizeof text, "name %d", i);
		uint32_t id = intern_put(&t, text, (size_t)n);
		assert_int_equal(id, i + 1);
		p[i] = intern_get(&t, id).p;
	}
	for (int i = 0; i < N; i++) {
		int n = snprintf(text, sizeof text, "name %d", i);
		assert_int_equal(intern_put(&t, text, (size_t)n), i + 1);
		assert_ptr_equal(intern_get(&t, (uint32_t)i + 1).p, p[i]);
	}
	assert_true(intern_bytes(&t) > N * 10u);
	assert_int_equal(t.dropped, 0);
	intern_release(&t);
}

/* Keys of every length, also such as differ in their last byte alone, or in the order of their words. */
static void test_keys(void **state)
{
	struct intern t;
	char key[40] = {0};
	intern_init(&t);
	for (size_t n = 1; n <= sizeof key; n++)
		for (int last = 0; last < 3; last++) {
			key[n - 1] = (char)last;
			uint32_t before = t.n;
			assert_int_equal(intern_find_key(&t, key, n), INTERN_NONE);
			assert_int_equal(intern_put_key(&t, key, n), before);
			assert_int_equal(intern_put_key(&t, key, n), before);
			assert_int_equal(intern_find_key(&t, key, n), before);
			assert_int_equal(intern_get(&t, before).n, n);
			assert_memory_equal(intern_get(&t, before).p, key, n);
		}
	intern_release(&t);
	intern_init(&t);
	enum { N = 300 };
	for (uint32_t a = 0; a < N; a++)
		for (uint32_t b = 0; b < N; b++)
			assert_int_equal(intern_put_key(&t, (uint32_t[]){a, b, 0}, 3 * sizeof a), a * N + b + 1);
	for (uint32_t a = 0; a < N; a++)
		for (uint32_t b = 0; b < N; b++)
			assert_int_equal(intern_put_key(&t, (uint32_t[]){a, b, 0}, 3 * sizeof a), a * N + b + 1);
	intern_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids_count_up),
		cmocka_unit_test(test_find_never_adds),
		cmocka_unit_test(test_bytes_are_not_text),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_keys),
	};
	return RUN_TESTS(tests);
}
