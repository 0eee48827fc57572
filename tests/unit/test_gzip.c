/* What is packed in one piece is what zlib unpacks. */
#include "test.h"

#include <stdlib.h>
#include <zlib.h>

#include "base/mem.h"
#include "io/gzip.h"

static void check(struct str s)
{
	struct str packed = gzip_pack(s);
	assert_true(packed.n > 0 && packed.n < s.n);
	z_stream z = {.next_in = (Bytef *)(uintptr_t)packed.p, .avail_in = (uInt)packed.n};
	char *out = mem_alloc(s.n + 1, 1);
	z.next_out = (Bytef *)out;
	z.avail_out = (uInt)s.n + 1;
	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.total_out, s.n);
	assert_int_equal(z.avail_in, 0);
	assert_memory_equal(out, s.p, s.n);
	inflateEnd(&z);
	mem_free(out);
	mem_free((char *)(uintptr_t)packed.p);
}

static void test_round_trip(void **state)
{
	(void)state;
	enum { MOST = 1 << 21 };
	char *text = mem_alloc(MOST, 1);
	unsigned seed = 7;
	for (size_t i = 0; i < MOST; i++)
		text[i] = "0123456789,"[rand_r(&seed) % 11];
	for (size_t n = 200; n <= MOST; n = n * 3 / 2 + 1)
		check((struct str){text, n});
	memset(text, 'x', MOST);
	for (size_t n = 200; n <= MOST; n *= 2)
		check((struct str){text, n});
	mem_free(text);
}

static void test_what_does_not_get_shorter(void **state)
{
	(void)state;
	char noise[5000];
	unsigned seed = 9;
	for (size_t i = 0; i < sizeof noise; i++)
		noise[i] = (char)(rand_r(&seed) >> 7);
	assert_null(gzip_pack((struct str){noise, sizeof noise}).p);
	assert_null(gzip_pack((struct str){noise, 1}).p);
	assert_null(gzip_pack((struct str){NULL, 0}).p);
	assert_null(gzip_pack((struct str){"abc", 3}).p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_what_does_not_get_shorter),
	};
	return RUN_TESTS(tests);
}
