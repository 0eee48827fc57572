#include "base/hash.h"

#include "test.h"

static void test_bytes(void **state)
{
	assert_true(hash_bytes(NULL, 0) == 0);
	assert_true(hash_bytes("a", 1) == hash_bytes("a", 1));
	assert_true(hash_bytes("a", 1) != hash_bytes("b", 1));
	assert_true(hash_bytes("a", 1) != hash_bytes("a\0", 2));
}

static void test_direct(void **state)
{
	struct idmap m;
	idmap_init(&m, 100, 1100, 1000);
	assert_true(m.span > 0);
	assert_int_equal(idmap_get(&m, 100), IDMAP_NONE);
	idmap_put(&m, 100, 1);
	idmap_put(&m, 1100, 2);
	idmap_put(&m, 1100, 3);
	idmap_put(&m, 1101, 9); /* outside the announced range: not kept, not written out of bounds */
	idmap_put(&m, 99, 9);
	assert_int_equal(idmap_get(&m, 100), 1);
	assert_int_equal(idmap_get(&m, 1100), 3);
	assert_int_equal(idmap_get(&m, 1101), IDMAP_NONE);
	assert_int_equal(idmap_get(&m, INT64_MIN), IDMAP_NONE);
	assert_int_equal(idmap_get(&m, INT64_MAX), IDMAP_NONE);
	idmap_release(&m);
}

static void test_hashed(void **state)
{
	struct idmap m;
	idmap_init(&m, INT64_MIN, INT64_MAX, 4); /* too few announced: it grows */
	assert_true(m.span == 0);
	for (int64_t i = 0; i < 50000; i++)
		idmap_put(&m, i * 0x100000001 - 7, (uint32_t)i);
	for (int64_t i = 0; i < 50000; i++)
		assert_int_equal(idmap_get(&m, i * 0x100000001 - 7), i);
	idmap_put(&m, INT64_MIN, 1);
	idmap_put(&m, INT64_MAX, 2);
	assert_int_equal(idmap_get(&m, INT64_MIN), 1);
	assert_int_equal(idmap_get(&m, INT64_MAX), 2);
	assert_int_equal(idmap_get(&m, 12345), IDMAP_NONE);
	idmap_put(&m, -7, 77);
	assert_int_equal(idmap_get(&m, -7), 77);
	idmap_release(&m);
}

static void assert_has_alone(const struct idset *s, const int64_t *id, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		assert_true(idset_has(s, id[i]));
		assert_false(idset_has(s, id[i] - 1));
		assert_false(idset_has(s, id[i] + 1));
	}
}

static void test_set(void **state)
{
	static const int64_t close[] = {-70, -3, 0, 63, 128, 400}, far[] = {INT64_MIN + 1, -7, 5, INT64_MAX - 1};
	struct idset s;
	idset_init(&s, -70, 400, 6);
	assert_true(s.span > 0);
	for (unsigned i = 0; i < 6; i++)
		idset_put(&s, close[i]);
	idset_put(&s, 401); /* outside the announced range: not kept */
	idset_put(&s, -71);
	assert_has_alone(&s, close, 6);
	assert_false(idset_has(&s, INT64_MIN) || idset_has(&s, INT64_MAX));
	idset_release(&s);
	idset_init(&s, INT64_MIN + 1, INT64_MAX - 1, 4);
	assert_true(s.span == 0);
	for (unsigned i = 0; i < 4; i++)
		idset_put(&s, far[i]);
	assert_has_alone(&s, far, 4);
	idset_release(&s);
	idset_init(&s, 1, 0, 0);
	assert_false(idset_has(&s, 0));
	idset_release(&s);
}

static void test_empty(void **state)
{
	struct idmap m;
	idmap_init(&m, 1, 0, 0);
	assert_int_equal(idmap_get(&m, 0), IDMAP_NONE);
	idmap_put(&m, 0, 5);
	assert_int_equal(idmap_get(&m, 0), 5);
	idmap_release(&m);
	assert_int_equal(idmap_get(&m, 0), IDMAP_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_direct),
		cmocka_unit_test(test_hashed),
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_empty),
	};
	return RUN_TESTS(tests);
}
