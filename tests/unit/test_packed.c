/* Columns in few bytes: what was packed is what is unpacked, whatever the values; and any bytes are refused or unpacked, never read beyond. */
#include "test.h"

#include <stdlib.h>

#include "base/mem.h"
#include "store/packed.h"
#include "store/rows.h"

enum { ROWS = 3 * PACKED_BLOCK + 77, KINDS = 9 };

static uint64_t random_state = 1;

static uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 0x2545f4914f6cdd1d;
}

/* Value i of a column of a kind, KINDS of them. */
static int64_t value_of(unsigned kind, unsigned i)
{
	uint64_t r = random_next();
	switch (kind) {
	case 0: return 7;
	case 1: return 1419116733267580000 + (int64_t)i * 1000;
	case 2: return (int64_t)r;
	case 3: return r % 50 ? (int64_t)(r % 300) : (int64_t)r;
	case 4: return r % 3 ? ID_NONE : (int64_t)i;
	case 5: return r % 2 ? -1 : (int64_t)(r >> 40) * 512;
	case 6: return i % 2 ? INT64_MAX : INT64_MIN;
	case 7: return ID_NONE;
	default: return 1669783688671111000 + (int64_t)(i * 5 + r % 7) * 1000;
	}
}

static void put(void *data, unsigned size, unsigned i, int64_t v)
{
	memcpy((char *)data + (size_t)i * size, &v, size); /* the least bytes */
}

/* Packs rows first .. first+n-1 of *c, and unpacks them into a column that holds others: they must be the same, and only they. */
static size_t check_same(const struct packed_column *c, uint32_t first, uint32_t n)
{
	struct buf out = {0};
	struct packed_column again = *c;
	const size_t bytes = (size_t)c->n * c->size;
	char *want = mem_alloc(bytes, 1);
	packed_put(c, first, n, &out);
	again.data = mem_alloc(bytes, 1);
	memset(again.data, 0x5a, bytes);
	memset(want, 0x5a, bytes);
	memcpy(want + (size_t)first * c->size, (char *)c->data + (size_t)first * c->size, (size_t)n * c->size);
	size_t packed = out.n;
	memset(buf_room(&out, PACKED_PADDING), 0xff, PACKED_PADDING);
	assert_true(packed_take(&again, first, n, (struct str){out.p, packed}));
	assert_memory_equal(again.data, want, bytes);
	if (packed)
		assert_false(packed_take(&again, first, n, (struct str){out.p, packed - 1}));
	assert_false(packed_take(&again, first, n, (struct str){out.p, packed + 1}));
	mem_free(again.data);
	mem_free(want);
	buf_release(&out);
	return packed;
}

static void all_sizes(void **state)
{
	static const unsigned sizes[] = {1, 2, 4, 8}, lengths[] = {0, 1, 2, 7, 8, 9, 63, PACKED_BLOCK - 1, PACKED_BLOCK, PACKED_BLOCK + 1, ROWS};
	for (unsigned kind = 0; kind < KINDS; kind++)
		for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++)
			for (unsigned l = 0; l < sizeof lengths / sizeof *lengths; l++) {
				char *data = mem_alloc(ROWS, sizes[s]);
				for (unsigned i = 0; i < ROWS; i++)
					put(data, sizes[s], i, value_of(kind, i));
				const struct packed_column c = {.data = data, .size = sizes[s], .none = sizes[s] == 8 ? ID_NONE : -1, .n = ROWS};
				check_same(&c, 0, lengths[l]);
				if (lengths[l] + PACKED_BLOCK <= ROWS)
					check_same(&c, PACKED_BLOCK, lengths[l]);
				mem_free(data);
			}
}

/* Values of each number of bits, which are read by eights, fours, twos and one by one. */
static void all_widths(void **state)
{
	uint64_t data[PACKED_BLOCK + 5];
	const struct packed_column c = {.data = data, .size = 8, .none = ID_NONE, .n = PACKED_BLOCK + 5};
	for (unsigned width = 0; width <= 64; width++) {
		for (unsigned i = 0; i < c.n; i++)
			data[i] = width ? random_next() >> (64 - width) : 0;
		size_t packed = check_same(&c, 0, c.n);
		assert_in_range(packed, c.n * width / 8, c.n * width / 8 + 32);
	}
}

/* With classes, and columns that are like the values. */
static void helpers(void **state)
{
	uint8_t klass[ROWS];
	int64_t like[ROWS], data[ROWS];
	uint32_t at[ROWS];
	for (unsigned what = 0; what < 6; what++) {
		int64_t of_class[256] = {0};
		uint64_t sum = 0;
		for (unsigned i = 0; i < ROWS; i++) {
			klass[i] = (uint8_t)(what == 5 ? random_next() : random_next() % 3 + 's');
			like[i] = value_of(what == 4 ? 2 : 8, i);
			at[i] = random_next() % 5 ? (uint32_t)(random_next() % ROWS) : ROW_NONE;
		}
		for (unsigned i = 0; i < ROWS; i++) {
			sum += (uint64_t)like[i];
			of_class[klass[i]] += (int64_t)(random_next() % 4);
			switch (what) {
			case 0: data[i] = like[i] + (int64_t)(random_next() % 4); break;
			case 1: data[i] = at[i] < ROWS ? like[at[i]] : 3; break;
			case 2: data[i] = (int64_t)sum; break;
			case 3: data[i] = klass[i] == 's' ? like[i] : klass[i] == 't' ? ID_NONE : like[at[i] % ROWS]; break;
			default: data[i] = klass[i] * 1000003 + of_class[klass[i]]; break;
			}
		}
		struct packed_split *split = packed_split(klass, ROWS);
		const struct packed_column c = {.data = data, .size = 8, .none = ID_NONE, .split = split, .like = like, .at = at, .n = ROWS};
		size_t packed = check_same(&c, 0, ROWS);
		if (what < 3)
			assert_true(packed < ROWS / 2);
		check_same(&c, PACKED_BLOCK, ROWS - PACKED_BLOCK);
		mem_free(split);
	}
}

/* What traces hold takes as few bits as it should. */
static void few_bytes(void **state)
{
	int64_t data[ROWS];
	const struct packed_column c = {.data = data, .size = 8, .none = ID_NONE, .n = ROWS};
	for (unsigned i = 0; i < ROWS; i++)
		data[i] = 42;
	assert_int_equal(check_same(&c, 0, ROWS), 2 + 4 * PACKED_LEAST);
	for (unsigned i = 0; i < ROWS; i++)
		data[i] = 1669783688671111000 + i * 1000ll;     /* each 1000 ns after the one before */
	assert_true(check_same(&c, 0, ROWS) < 64);
	for (unsigned i = 0; i < ROWS; i++)
		data[i] = (int64_t)(random_next() % 16) * 1000;  /* whole microseconds: 4 bits each */
	assert_true(check_same(&c, 0, ROWS) < ROWS / 2 + 64);
	for (unsigned i = 0; i < ROWS; i++)
		data[i] = i % 100 ? (int64_t)(random_next() % 16) : INT64_MAX - (int64_t)i; /* a few of 8 bytes do not make all of them wide */
	assert_true(check_same(&c, 0, ROWS) < ROWS / 2 + ROWS / 100 * 12 + 64);
	for (unsigned i = 0; i < ROWS; i++)
		data[i] = i % 3 ? ID_NONE : 1 << 20;             /* none is one more value */
	assert_true(check_same(&c, 0, ROWS) < ROWS / 8 + 64);
}

/* The bytes stand at the end of what is allocated, with the padding that is asked for: a sanitizer sees what reads beyond. */
static bool take_exact(const struct packed_column *c, uint32_t n, const char *bytes, size_t size)
{
	char *copy = malloc(size + PACKED_PADDING);
	assert_non_null(copy);
	memcpy(copy, bytes, size);
	memset(copy + size, 0xee, PACKED_PADDING);
	bool good = packed_take(c, 0, n, (struct str){copy, size});
	free(copy);
	return good;
}

static void hostile(void **state)
{
	static const struct { unsigned n; uint8_t byte[16]; } bad[] = {
		{0, {0}}, {1, {8}}, {2, {8, 0}}, {4, {8, 0, 0, 0}}, {5, {7, 0, 0, 0, 0}}, {5, {8, 2, 0, 0, 0}}, {5, {8, 1, 0, 0, 0}}, {5, {8, 0, 64, 0, 0}}, {5, {8, 0, 5, 0, 0}},
		{5, {8, 0, 2, 0, 0}}, {5, {8, 0, 0, 65, 0}}, {5, {8, 0, 0, 1, 0}}, {6, {8, 0, 0, 0, 0x80, 0x80}},
		{14, {8, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}}, {5, {8, 0, 32, 0, 0}}, {7, {8, 0, 16, 0, 0, 9, 1}}, {7, {8, 0, 16, 0, 0, 1, 65}},
		{10, {8, 0, 16, 0, 0, 1, 8, 8, 0, 1}}, {6, {8, 0, 0, 0, 0, 0}},
	};
	uint64_t data[8];
	const struct packed_column c = {.data = data, .size = 8, .none = ID_NONE, .n = 8};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(take_exact(&c, 8, (const char *)bad[i].byte, bad[i].n));
	assert_true(take_exact(&c, 8, (const char *)(const uint8_t[]){8, 0, 0, 0, 0}, 5));
	assert_true(take_exact(&c, 8, (const char *)(const uint8_t[]){8, 0, 16, 0, 0, 1, 8, 7, 0, 1}, 10));
	assert_true(data[6] == 0 && data[7] == 1);
	assert_false(packed_take(&c, 4, 4, (struct str){"\4\0\0\0\0", 5})); /* no block begins there */
}

/* Good bytes, of which some are changed. */
static void changed(void **state)
{
	uint8_t klass[ROWS];
	int64_t like[ROWS], data[ROWS];
	uint32_t at[ROWS];
	for (unsigned i = 0; i < ROWS; i++) {
		klass[i] = random_next() % 4;
		like[i] = value_of(8, i);
		at[i] = (uint32_t)random_next();
		data[i] = klass[i] ? value_of(3, i) : like[i];
	}
	struct packed_split *split = packed_split(klass, ROWS);
	const struct packed_column c = {.data = data, .size = 8, .none = ID_NONE, .split = split, .like = like, .at = at, .n = ROWS};
	struct buf good = {0};
	packed_put(&c, 0, ROWS, &good);
	unsigned taken = 0;
	for (unsigned i = 0; i < 3000; i++) {
		struct buf bytes = {0};
		buf_str(&bytes, buf_view(&good));
		for (unsigned k = 0; k <= i % 3; k++)
			bytes.p[random_next() % (i % 2 ? 64 : bytes.n)] = (char)random_next();
		taken += take_exact(&c, ROWS, bytes.p, i % 5 ? bytes.n : random_next() % bytes.n);
		buf_release(&bytes);
	}
	assert_in_range(taken, 1, 2999);
	buf_release(&good);
	mem_free(split);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_sizes),
		cmocka_unit_test(all_widths),
		cmocka_unit_test(helpers),
		cmocka_unit_test(few_bytes),
		cmocka_unit_test(hostile),
		cmocka_unit_test(changed),
	};
	return RUN_TESTS(tests);
}
