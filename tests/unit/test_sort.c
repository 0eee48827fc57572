#include "base/sort.h"

#include "test.h"

#include <stdlib.h>

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Random keys under a mask, so that every digit of the radix is sometimes shared and sometimes not; rows prove stability. */
static void check(uint32_t n, uint64_t mask, uint64_t offset)
{
	struct sort_item *v = calloc(n + 1u, sizeof *v);
	uint64_t seed = 0x9e3779b97f4a7c15u + n;
	for (uint32_t i = 0; i < n; i++)
		v[i] = (struct sort_item){(next(&seed) & mask) + offset, i, i ^ 0x5555};
	sort_items(v, n);
	assert_true(sort_is_sorted(v, n));
	uint64_t rows = 0;
	for (uint32_t i = 0; i < n; i++) {
		rows += v[i].row;
		assert_int_equal(v[i].tie, v[i].row ^ 0x5555);
		if (i && v[i].key == v[i - 1].key)
			assert_true(v[i].row > v[i - 1].row);
	}
	assert_true(rows == (uint64_t)n * (n - (n > 0)) / 2);
	free(v);
}

static void test_sizes_and_masks(void **state)
{
	static const uint32_t sizes[] = {0, 1, 2, 31, 32, 33, 1000, 70000};
	static const uint64_t masks[] = {0, 1, 0x7ff, 0xff00, 0xffffffff, 0xffffffff00000000u, UINT64_MAX};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (size_t k = 0; k < sizeof masks / sizeof *masks; k++)
			check(sizes[i], masks[k], masks[k] == UINT64_MAX ? 0 : 1700000000000000000u);
}

static void test_signed_keys(void **state)
{
	static const int64_t want[] = {INT64_MIN, -2, -1, 0, 1, INT64_MAX};
	struct sort_item v[6];
	for (uint32_t i = 0; i < 6; i++)
		v[i] = (struct sort_item){.key = sort_key_i64(want[5 - i]), .row = 5 - i};
	sort_items(v, 6);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(v[i].row, i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes_and_masks),
		cmocka_unit_test(test_signed_keys),
	};
	return RUN_TESTS(tests);
}
