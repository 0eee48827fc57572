#include "base/arena.h"

#include "test.h"

static void test_empty_is_valid(void **state)
{
	struct arena a = {0};
	arena_release(&a);
	assert_null(a.chunk);
	assert_int_equal(a.bytes, 0);
}

static void test_alloc_is_zeroed_and_aligned(void **state)
{
	struct arena a = {0};
	for (size_t n = 0; n < 300; n++) {
		unsigned char *p = arena_alloc(&a, n);
		assert_int_equal((uintptr_t)p % 16, 0);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(p[i], 0);
		memset(p, 0xaa, n);
	}
	arena_release(&a);
}

/* A block wider than a chunk must not overlap what came before or comes after it. */
static void test_big_blocks_do_not_overlap(void **state)
{
	struct arena a = {0};
	char *small = arena_alloc(&a, 100);
	memset(small, 1, 100);
	char *big = arena_alloc(&a, 5 << 20);
	memset(big, 2, 5 << 20);
	char *after = arena_alloc(&a, 100);
	memset(after, 3, 100);
	assert_int_equal(small[0], 1);
	assert_int_equal(small[99], 1);
	assert_int_equal(big[0], 2);
	assert_int_equal(big[(5 << 20) - 1], 2);
	assert_ptr_equal(after, small + 112); /* the chunk in use stays in use */
	assert_true(a.bytes >= 5 << 20);
	arena_release(&a);
}

static void test_strings(void **state)
{
	struct arena a = {0};
	struct str s = arena_str(&a, (struct str){"abc\0def", 7});
	assert_int_equal(s.n, 7);
	assert_memory_equal(s.p, "abc\0def", 8);
	assert_str_equal(arena_str(&a, (struct str){NULL, 0}), "");
	assert_str_equal(arena_printf(&a, "%d-%s", 42, "x"), "42-x");
	struct str longer = arena_printf(&a, "%09999d", 7);
	assert_int_equal(longer.n, 9999);
	assert_int_equal(longer.p[9998], '7');
	assert_int_equal(longer.p[9999], 0);
	arena_release(&a);
}

static void test_many_strings_stay_put(void **state)
{
	struct arena a = {0};
	enum { N = 20000 };
	static struct str s[N];
	for (int i = 0; i < N; i++)
		s[i] = arena_printf(&a, "string %d", i);
	for (int i = 0; i < N; i++) {
		char want[32];
		snprintf(want, sizeof want, "string %d", i);
		assert_str_equal(s[i], want);
	}
	arena_release(&a);
}

static void test_arrays_are_zeroed(void **state)
{
	struct arena a = {0};
	int64_t *v = ARENA_ARRAY(&a, 1000, int64_t);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(v[i], 0);
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_is_valid),
		cmocka_unit_test(test_alloc_is_zeroed_and_aligned),
		cmocka_unit_test(test_big_blocks_do_not_overlap),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_many_strings_stay_put),
		cmocka_unit_test(test_arrays_are_zeroed),
	};
	return RUN_TESTS(tests);
}
