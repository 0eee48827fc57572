/* The vectors of the standards: FIPS 180-4's examples, RFC 4231, RFC 4648. */
#include "base/sha256.h"

#include "base/mem.h"
#include "test.h"

#include <stdio.h>

static struct str hex_of(const uint8_t *p, char text[2 * SHA256_BYTES + 1])
{
	for (int i = 0; i < SHA256_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", p[i]);
	return str_from(text);
}

static void test_digest(void **state)
{
	static const struct {
		const char *text, *sum;
	} rows[] = {
		{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
		{"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
	         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
	};
	uint8_t sum[SHA256_BYTES];
	char text[2 * SHA256_BYTES + 1];
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		sha256(str_from(rows[i].text), sum);
		assert_string_equal(hex_of(sum, text).p, rows[i].sum);
	}
	const size_t million = 1000000;
	char *a = memset(mem_alloc(million, 1), 'a', million);
	sha256((struct str){a, million}, sum);
	assert_string_equal(hex_of(sum, text).p, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	mem_free(a);
}

static void test_hmac(void **state)
{
	uint8_t sum[SHA256_BYTES], key[131];
	char text[2 * SHA256_BYTES + 1];
	sha256_hmac(STR("Jefe"), STR("what do ya want for nothing?"), sum);
	assert_string_equal(hex_of(sum, text).p, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof key);
	sha256_hmac((struct str){(const char *)key, sizeof key}, STR("Test Using Larger Than Block-Size Key - Hash Key First"), sum);
	assert_string_equal(hex_of(sum, text).p, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static void test_base64(void **state)
{
	static const struct {
		const char *bytes, *text;
	} rows[] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
	struct buf b = {0};
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		buf_clear(&b);
		base64_put(&b, (const uint8_t *)rows[i].bytes, strlen(rows[i].bytes));
		assert_true(str_eqc(buf_view(&b), rows[i].text));
		buf_clear(&b);
		assert_true(base64_read(&b, str_from(rows[i].text)));
		assert_true(str_eqc(buf_view(&b), rows[i].bytes));
	}
	assert_false(base64_read(&b, STR("Zm9v!")));
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_digest), cmocka_unit_test(test_hmac), cmocka_unit_test(test_base64)};
	return RUN_TESTS(tests);
}
