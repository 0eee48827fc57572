/* How full the GPUs' memory was: the fullest counts, what is not stated does not (detect/parts/memory_share.h). */
#include "profile_builder.h"

#include "analysis/memory/memory.h"
#include "detect/parts/memory_share.h"

static void event(struct builder *m, int device, int64_t time, int64_t allocated, int64_t reserved)
{
	build_memory(&m->b, &(struct memory_row){.time_ns = time, .addr = time, .bytes = 1, .total_allocated = allocated, .total_reserved = reserved,
	                                         .track = builder_track(m, "1", "1"), .name = builder_text(m, "[memory]"),
	                                         .cat = build_cat(&m->b, builder_text(m, "cpu_instant_event")), .device_type = device < 0 ? 0 : 1, .device_id = (int16_t)device});
}

static void assert_shares(struct builder *m, double allocated, double reserved)
{
	struct profile *p = builder_finish(m, PASS_MEMORY);
	assert_true(memory_share_pct(p, MEMORY_ALLOCATED) == allocated);
	assert_true(memory_share_pct(p, MEMORY_RESERVED) == reserved);
	profile_free(p);
}

static void test_the_fullest(void **state)
{
	struct builder m;
	builder_begin(&m);
	builder_device(&m, 0, 1000);
	builder_device(&m, 1, 4000);
	event(&m, 0, 1, 250, 400);
	event(&m, 0, 2, 200, 500);
	event(&m, 1, 3, 900, 1200);
	event(&m, MEMORY_CPU, 4, 99999, 99999);
	assert_shares(&m, 25, 50);
}

static void test_not_stated(void **state)
{
	struct builder m;
	builder_begin(&m);
	builder_device(&m, 0, 0); /* its size is not known */
	builder_device(&m, 1, 1000); /* no event of it */
	event(&m, 0, 1, 250, 400);
	assert_shares(&m, -1, -1);
	builder_begin(&m);
	builder_device(&m, 0, 1000);
	event(&m, 0, 1, ID_NONE, ID_NONE);
	assert_shares(&m, -1, -1);
	builder_begin(&m);
	assert_shares(&m, -1, -1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_fullest), cmocka_unit_test(test_not_stated)};
	return RUN_TESTS(tests);
}
