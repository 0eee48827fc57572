/* How many threads ask a profile at once. */
#include "profile_builder.h"

#include "base/spill.h"
#include "store/together.h"

enum { THREADS = 6 };

/* A profile with so many ops, which THREADS may ask. */
static struct profile *profile_of(unsigned ops)
{
	struct builder m;
	builder_begin(&m);
	const uint32_t thread = builder_track(&m, "1", "1");
	for (unsigned i = 0; i < ops; i++)
		builder_span(&m, thread, SPAN_OP, "aten::mm", 10 * i, 10 * i + 5);
	m.p->threads = THREADS;
	return builder_finish(&m, PASS_NEST);
}

static void test_few_rows(void **state)
{
	(void)state;
	struct profile *few = profile_of(100), *many = profile_of(20000);
	assert_int_equal(together_threads(few), 1);
	assert_int_equal(together_threads(many), THREADS);
	profile_free(few);
	profile_free(many);
}

/* Half of a limit that holds seven profiles: one with what is kept of it, and what three threads make of it. Of the whole process: the last test. */
static void test_room(void **state)
{
	(void)state;
	struct profile *many = profile_of(20000), *more = profile_of(60000);
	spill_limit_unless_set(14 * profile_bytes(many) + 2);
	assert_int_equal(together_threads(many), 3);
	assert_int_equal(together_threads(more), 1);
	profile_free(many);
	profile_free(more);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_few_rows), cmocka_unit_test(test_room)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
