/* Places of members are their ranks, at the edges of words too. */
#include "test.h"

#include "base/rankset.h"

static void test_places(void **state)
{
	static const uint32_t rows[] = {0, 1, 63, 64, 127, 128, 1000, 65535};
	struct rankset s;
	rankset_init(&s, 65536);
	for (int i = 7; i >= 0; i--)
		rankset_add(&s, rows[i]);
	rankset_seal(&s);
	assert_int_equal(s.members, 8);
	uint32_t at = 0;
	for (uint32_t r = 0; r < 65536; r++) {
		bool member = at < 8 && rows[at] == r;
		assert_int_equal(rankset_has(&s, r), member);
		if (member)
			assert_int_equal(rankset_place(&s, r), at++);
	}
	rankset_release(&s);
}

static void test_empty(void **state)
{
	struct rankset s;
	rankset_init(&s, 0);
	rankset_seal(&s);
	assert_int_equal(s.members, 0);
	rankset_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_places), cmocka_unit_test(test_empty)};
	return RUN_TESTS(tests);
}
