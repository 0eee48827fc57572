#include "analysis/time/interval.h"

#include "test.h"

#include <stdlib.h>

#define SET(...) set_of((const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static struct intervals set_of(const int64_t *v, size_t n)
{
	struct intervals s = {0};
	for (size_t i = 0; i + 1 < n; i += 2)
		intervals_add(&s, v[i], v[i + 1]);
	return s;
}

/* Compares with start, end, start, end, ... and releases both sides. */
static void assert_set(struct intervals *got, struct intervals want)
{
	assert_int_equal(got->n, want.n);
	for (size_t i = 0; i < want.n; i++) {
		assert_int_equal(got->v[i].start, want.v[i].start);
		assert_int_equal(got->v[i].end, want.v[i].end);
	}
	intervals_release(got);
	intervals_release(&want);
}

static const struct intervals none;

static void test_merge(void **state)
{
	struct intervals s = SET(1100, 2200, 1500, 2300, 3300, 3900, 3500, 3600, 3700, 3800, 4100, 4200);
	intervals_normalise(&s);
	assert_set(&s, SET(1100, 2300, 3300, 3900, 4100, 4200));
	s = SET(30, 40, 10, 20, 20, 30, 0, 5);
	intervals_normalise(&s);
	assert_set(&s, SET(0, 5, 10, 40));
	s = none;
	intervals_normalise(&s);
	assert_set(&s, none);
}

static void test_empty_and_negative_ranges_are_ignored(void **state)
{
	struct intervals s = SET(5, 5, 9, 3, 1, 2);
	assert_set(&s, SET(1, 2));
}

static void test_subtract(void **state)
{
	struct intervals a = SET(11, 22, 33, 40, 43, 44), b = SET(5, 10, 12, 14, 20, 34, 43, 44), out = {0};
	intervals_subtract(&a, &b, &out);
	assert_set(&out, SET(11, 12, 14, 20, 34, 40));
	intervals_subtract(&a, &none, &out);
	assert_set(&out, SET(11, 22, 33, 40, 43, 44));
	intervals_subtract(&a, &a, &out);
	assert_set(&out, none);
	intervals_release(&a);
	intervals_release(&b);
}

static void test_intersect(void **state)
{
	struct intervals a = SET(11, 22, 33, 40, 43, 44), b = SET(5, 10, 12, 14, 20, 34, 43, 50), out = {0};
	intervals_intersect(&a, &b, &out);
	assert_set(&out, SET(12, 14, 20, 22, 33, 34, 43, 44));
	intervals_intersect(&b, &none, &out);
	assert_set(&out, none);
	intervals_release(&a);
	intervals_release(&b);
}

static void test_union(void **state)
{
	struct intervals a = SET(0, 10, 20, 30), b = SET(10, 20, 40, 50), out = {0};
	intervals_union(&a, &b, &out);
	assert_set(&out, SET(0, 30, 40, 50));
	/* *out is replaced, not added to. */
	intervals_union(&none, &b, &out);
	intervals_union(&none, &b, &out);
	assert_set(&out, SET(10, 20, 40, 50));
	intervals_release(&a);
	intervals_release(&b);
}

static void test_length(void **state)
{
	struct intervals s = SET(11, 22, 33, 40, 43, 44);
	assert_int_equal(intervals_length(&s), 19);
	assert_int_equal(intervals_length(&none), 0);
	assert_int_equal(intervals_length_within(&s, 0, 100), 19);
	assert_int_equal(intervals_length_within(&s, 12, 34), 11);
	assert_int_equal(intervals_length_within(&s, 22, 33), 0);
	assert_int_equal(intervals_length_within(&s, 34, 35), 1);
	assert_int_equal(intervals_length_within(&s, 35, 34), 0);
	intervals_release(&s);
}

enum { WORLD = 257 };

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static struct intervals random_set(uint64_t *seed, uint8_t *bitmap)
{
	struct intervals s = {0};
	memset(bitmap, 0, WORLD);
	for (uint64_t i = next(seed) % 40; i > 0; i--) {
		int64_t start = (int64_t)(next(seed) % WORLD), end = start + (int64_t)(next(seed) % 20);
		end = end > WORLD ? WORLD : end;
		intervals_add(&s, start, end);
		for (int64_t k = start; k < end; k++)
			bitmap[k] = 1;
	}
	intervals_normalise(&s);
	return s;
}

/* The set says of each point what the bitmap says, and is sorted with gaps between its ranges. */
static void assert_bitmap(const struct intervals *s, const uint8_t *want)
{
	uint8_t got[WORLD] = {0};
	int64_t sum = 0;
	for (size_t i = 0; i < s->n; i++) {
		assert_true(s->v[i].start < s->v[i].end);
		if (i)
			assert_true(s->v[i - 1].end < s->v[i].start);
		for (int64_t k = s->v[i].start; k < s->v[i].end; k++)
			got[k] = 1;
	}
	for (int k = 0; k < WORLD; k++)
		sum += want[k];
	assert_memory_equal(got, want, WORLD);
	assert_int_equal(intervals_length(s), sum);
}

static void test_against_bitmap(void **state)
{
	uint64_t seed = 0x2545f4914f6cdd1d;
	for (int round = 0; round < 2000; round++) {
		uint8_t ba[WORLD], bb[WORLD], want[WORLD];
		struct intervals a = random_set(&seed, ba), b = random_set(&seed, bb), out = {0};
		assert_bitmap(&a, ba);
		intervals_union(&a, &b, &out);
		for (int k = 0; k < WORLD; k++)
			want[k] = ba[k] | bb[k];
		assert_bitmap(&out, want);
		intervals_intersect(&a, &b, &out);
		for (int k = 0; k < WORLD; k++)
			want[k] = ba[k] & bb[k];
		assert_bitmap(&out, want);
		intervals_subtract(&a, &b, &out);
		for (int k = 0; k < WORLD; k++)
			want[k] = ba[k] & !bb[k];
		assert_bitmap(&out, want);
		int64_t from = (int64_t)(next(&seed) % WORLD), to = (int64_t)(next(&seed) % WORLD), sum = 0;
		for (int64_t k = from; k < to; k++)
			sum += want[k];
		assert_int_equal(intervals_length_within(&out, from, to), sum);
		intervals_release(&a);
		intervals_release(&b);
		intervals_release(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_empty_and_negative_ranges_are_ignored),
		cmocka_unit_test(test_subtract),
		cmocka_unit_test(test_intersect),
		cmocka_unit_test(test_union),
		cmocka_unit_test(test_length),
		cmocka_unit_test(test_against_bitmap),
	};
	return RUN_TESTS(tests);
}
