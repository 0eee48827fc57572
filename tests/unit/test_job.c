/* Which rank a recording is, and which of the GPUs that it lists are its own (analysis/ranks/rank_place.h). */
#include "profile_builder.h"

#include "analysis/ranks/rank_place.h"

static void begin(struct builder *m, const char *info)
{
	builder_begin(m);
	if (info)
		build_meta(&m->b, builder_text(m, "distributedInfo"), builder_text(m, info), false);
}

static void test_job(void **state)
{
	static const struct { const char *info; bool is_rank; int64_t rank, world; } want[] = {
		{NULL, false, 0, 0},
		{"{\"backend\": \"nccl\", \"rank\": 3, \"world_size\": 8}", true, 3, 8},
		{"{\"rank\": 0, \"world_size\": 8}", true, 0, 8},
		{"{\"rank\": 2}", true, 2, 0},
		{"{\"rank\": 0, \"world_size\": 1}", false, 0, 1},
		{"{\"world_size\": 4}", false, 0, 4},
		{"{\"rank\": \"3\", \"world_size\": 8}", false, 0, 8},
		{"{\"rank\": -1, \"world_size\": -8}", false, 0, 0},
		{"{\"rank\": 1.5, \"world_size\": 2}", false, 0, 2},
		{"{\"rank\": 2.0, \"world_size\": 4e0}", true, 2, 4},
		{"{\"inner\": {\"rank\": 3}, \"world_size\": 2}", false, 0, 2},
		{"{\"rank\": 3, \"world_si", true, 3, 0},
		{"[3]", false, 0, 0},
		{"", false, 0, 0},
	};
	for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
		struct builder m;
		begin(&m, want[i].info);
		builder_finish(&m, 0);
		struct rank_place j = rank_place_of(m.p);
		if (j.is_rank != want[i].is_rank || j.rank != want[i].rank || j.world != want[i].world)
			fail_msg("%s: %d %lld %lld", want[i].info, j.is_rank, (long long)j.rank, (long long)j.world);
		profile_free(m.p);
	}
}

static void check_gpus(const char *info, int listed, const int *used, int n_used, const uint8_t *want, uint32_t n_want)
{
	struct builder m;
	uint8_t foreign[4] = {0};
	begin(&m, info);
	for (int i = 0; i < listed; i++)
		builder_device(&m, i, 0);
	for (int i = 0; i < n_used; i++)
		builder_launch_on(&m, used[i]);
	builder_finish(&m, 0);
	assert_int_equal(rank_foreign_gpus(m.p, foreign), n_want);
	for (int i = 0; i < listed; i++)
		assert_int_equal(foreign[i], want ? want[i] : 0);
	assert_int_equal(rank_own_gpus(m.p), (uint32_t)listed - n_want);
	profile_free(m.p);
}

static void test_foreign_gpus(void **state)
{
	static const char rank[] = "{\"rank\": 1, \"world_size\": 4}", alone[] = "{\"rank\": 0, \"world_size\": 1}";
	check_gpus(rank, 4, (int[]){1}, 1, (uint8_t[]){1, 0, 1, 1}, 3);
	check_gpus(rank, 4, (int[]){2, 1, 2}, 3, (uint8_t[]){1, 0, 0, 1}, 2);
	check_gpus(rank, 3, (int[]){0, 1, 2}, 3, NULL, 0);
	check_gpus(rank, 4, NULL, 0, NULL, 0);       /* which is its own is not known */
	check_gpus(rank, 4, (int[]){9}, 1, NULL, 0); /* none that is listed */
	check_gpus(rank, 1, (int[]){9}, 1, NULL, 0);
	check_gpus(rank, 0, (int[]){0}, 1, NULL, 0);
	check_gpus(alone, 4, (int[]){1}, 1, NULL, 0);
	check_gpus(NULL, 4, (int[]){1}, 1, NULL, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(test_job), cmocka_unit_test(test_foreign_gpus)};
	return RUN_TESTS(tests);
}
