/* Resident blocks by registers, shared memory, threads and number, against what profilers and NVIDIA's guides state. */
#include "test.h"

#include <math.h>

#include "analysis/time/gpu_metrics.h"
#include "gpu/occupancy.h"

static struct occupancy find(int cc, int threads, int registers, int shared_bytes)
{
	struct occupancy o;
	assert_true(occupancy_find(sm_limits(cc / 10, cc % 10), threads, registers, shared_bytes, &o));
	return o;
}

/* CUDA C++ Best Practices Guide, "Calculating Occupancy", compute capability 7.0. */
static void test_guide(void **state)
{
	(void)state;
	struct occupancy o = find(70, 128, 37, 0);
	assert_int_equal(o.blocks, 12);
	assert_true(o.pct == 75);
	assert_int_equal(o.by, OCCUPANCY_BY_REGISTERS);
	o = find(70, 320, 37, 0);
	assert_int_equal(o.blocks, 4);
	assert_true(o.pct == 62.5); /* "63 %" */
	assert_true(find(70, 256, 32, 0).pct == 100);
	assert_true(find(70, 256, 33, 0).pct < 100);
}

/* Launches of real recordings with grids that fill the GPU: Kineto's "est. achieved occupancy %", which is rounded. */
static void test_kineto(void **state)
{
	(void)state;
	enum { REGISTERS = OCCUPANCY_BY_REGISTERS, SHARED = OCCUPANCY_BY_SHARED, WARPS = OCCUPANCY_BY_WARPS, BLOCKS = OCCUPANCY_BY_BLOCKS };
	static const struct { int cc, threads, registers, shared_bytes; unsigned by; int stated_pct; } launch[] = {
		{70, 256, 118, 16896, REGISTERS, 25},             /* volta_sgemm_128x128_tn */
		{70, 128, 128, 32768, SHARED, 19},                /* cudnn_infer_volta_scudnn_128x64_stridedB_interior */
		{70, 256, 126, 49152, REGISTERS | SHARED, 25},    /* cudnn_infer_volta_scudnn_winograd_128x128 */
		{70, 512, 26, 0, REGISTERS | WARPS, 100},         /* epilogue::impl::globalKernel */
		{70, 64, 19, 0, WARPS | BLOCKS, 100},             /* vectorized_elementwise_kernel */
		{70, 64, 88, 3328, REGISTERS, 31},                /* cudnn dgrad_engine */
		{80, 128, 86, 32768, SHARED, 25},                 /* ampere_sgemm_32x32_sliced1x4_tn */
		{80, 128, 160, 16384, REGISTERS, 19},             /* cudnn_ampere_scudnn_128x64 */
		{80, 32, 64, 448, REGISTERS | BLOCKS, 50},        /* gemvx::kernel */
		{80, 64, 32, 416, REGISTERS | WARPS | BLOCKS, 100},
		{80, 128, 91, 0, REGISTERS, 31},                  /* scaled_upper_triang_masked_softmax_warp_forward */
		{90, 128, 43, 24, REGISTERS, 63},                 /* vectorized_layer_norm_kernel */
		{90, 128, 255, 49152, REGISTERS, 13},             /* flash_fwd_kernel */
		{90, 128, 22, 0, WARPS, 100},
		{100, 256, 44, 384, REGISTERS, 63},               /* finalizeKernelVecLoad */
	};
	for (size_t i = 0; i < sizeof launch / sizeof *launch; i++) {
		struct occupancy o = find(launch[i].cc, launch[i].threads, launch[i].registers, launch[i].shared_bytes);
		assert_true(o.pct >= launch[i].stated_pct - 0.5 && o.pct <= launch[i].stated_pct + 0.5);
		assert_int_equal(o.by, launch[i].by);
		assert_int_equal(o.warps, o.blocks * ((launch[i].threads + 31) / 32));
	}
}

/* The system's 1 KiB: three blocks of 54 KiB make 162 of 164 KiB, and do not fit. */
static void test_reserved(void **state)
{
	(void)state;
	assert_int_equal(find(80, 128, 32, 54 << 10).blocks, 2);
	assert_int_equal(find(80, 128, 32, 53 << 10).blocks, 3);
	assert_int_equal(find(70, 128, 32, 32 << 10).blocks, 3);
	assert_int_equal(find(80, 128, 32, 163 << 10).blocks, 1);
}

static void test_small_and_large_blocks(void **state)
{
	(void)state;
	struct occupancy o = find(86, 32, 32, 0);
	assert_int_equal(o.blocks, 16);
	assert_int_equal(o.by, OCCUPANCY_BY_BLOCKS);
	assert_int_equal(o.most_warps, 48);
	o = find(89, 1024, 32, 0); /* a second block of 32 warps has no room among 48 */
	assert_int_equal(o.blocks, 1);
	assert_int_equal(o.by, OCCUPANCY_BY_WARPS);
	assert_int_equal(find(80, 1, 32, 0).warps, 32); /* a thread takes a warp */
}

static void test_unknown(void **state)
{
	(void)state;
	struct occupancy o;
	assert_null(sm_limits(3, 5));
	assert_null(sm_limits(12, 0));
	assert_null(sm_limits(-1, -1));
	const struct sm_limits *sm = sm_limits(8, 0);
	assert_false(occupancy_find(sm, 0, 32, 0, &o));
	assert_false(occupancy_find(sm, 2048, 32, 0, &o));
	assert_false(occupancy_find(sm, 128, -1, 0, &o));
	assert_false(occupancy_find(sm, 128, 256, 0, &o));
	assert_false(occupancy_find(sm, 128, 32, 164 << 10, &o));
	assert_false(occupancy_find(sm, 128, 32, INT32_MAX, &o));
	assert_false(occupancy_find(sm, 1024, 255, 0, &o)); /* more registers than there are */
}

static void launch(struct profile *p, const char *gpu, int cc_major, int registers, int shared_bytes)
{
	uint32_t row = rows_push(&p->device, &store_tables[TABLE_device]), l = rows_push(&p->launch, &store_tables[TABLE_launch]);
	p->device.id[row] = (int32_t)row;
	p->device.name[row] = intern_str(&p->strings, str_from(gpu));
	p->device.cc_major[row] = cc_major;
	p->device.cc_minor[row] = cc_major < 0 ? -1 : 0;
	p->device.max_threads_per_sm[row] = p->device.warp_size[row] = 0;
	p->launch.device[l] = (int32_t)row;
	p->launch.block_x[l] = 256;
	p->launch.block_y[l] = p->launch.block_z[l] = 1;
	p->launch.registers[l] = registers;
	p->launch.shared_bytes[l] = shared_bytes;
}

static void test_launches(void **state)
{
	(void)state;
	static const struct { const char *gpu; int cc_major, registers, shared_bytes; enum occupancy_known known; } rows[] = {
		{"NVIDIA A100-SXM4-80GB", 8, 64, 0, OCCUPANCY_KNOWN},
		{"NVIDIA A100-SXM4-80GB", -1, 64, 0, OCCUPANCY_KNOWN}, /* by its name */
		{"NVIDIA Unheard-of", -1, 64, 0, OCCUPANCY_NO_LIMITS},
		{"AMD Instinct MI210", 9, 64, 0, OCCUPANCY_NO_LIMITS}, /* gfx90a is no Hopper */
		{"NVIDIA A100-SXM4-80GB", 8, INT32_MIN, 0, OCCUPANCY_NO_LAUNCH},
		{"NVIDIA A100-SXM4-80GB", 8, 64, INT32_MIN, OCCUPANCY_NO_LAUNCH},
	};
	struct profile *p = profile_new();
	struct occupancy o;
	for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		launch(p, rows[i].gpu, rows[i].cc_major, rows[i].registers, rows[i].shared_bytes);
		assert_int_equal(occupancy_of_launch(p, i, &o), rows[i].known);
		if (rows[i].known == OCCUPANCY_KNOWN)
			assert_true(o.pct == 50);
	}
	p->device.max_threads_per_sm[0] = 1536; /* as no SM of 8.0 */
	assert_int_equal(occupancy_of_launch(p, 0, &o), OCCUPANCY_NO_LIMITS);
	profile_free(p);
}

/* What a launch states counts as stated, its borders too; what it does not state comes from its grid and the device. */
static void test_stated(void **state)
{
	(void)state;
	struct profile *p = profile_new();
	launch(p, "NVIDIA A100-SXM4-80GB", 8, 64, 0);
	p->device.sm_count[0] = 100;
	p->launch.warps_per_sm[0] = 0;
	static const double stated[] = {0, 37.5, 100};
	for (size_t i = 0; i < sizeof stated / sizeof *stated; i++) {
		p->launch.occupancy_pct[0] = stated[i];
		assert_true(launch_occupancy_pct(p, 0) == stated[i]);
	}
	p->launch.blocks_per_sm[0] = NAN;
	p->launch.grid_x[0] = 50;
	p->launch.grid_y[0] = p->launch.grid_z[0] = 2;
	assert_true(launch_blocks_per_sm(p, 0) == 2);
	p->launch.blocks_per_sm[0] = 0.25;
	assert_true(launch_blocks_per_sm(p, 0) == 0.25);
	for (int i = 0; i < 3; i++) {
		int32_t *grid[] = {p->launch.grid_x, p->launch.grid_y, p->launch.grid_z};
		p->launch.blocks_per_sm[0] = 0; /* nothing is stated */
		grid[i][0] = 0;
		assert_true(isnan(launch_blocks_per_sm(p, 0)));
		grid[i][0] = 2;
	}
	p->device.sm_count[0] = 0;
	assert_true(isnan(launch_blocks_per_sm(p, 0)));
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_guide),    cmocka_unit_test(test_kineto),  cmocka_unit_test(test_reserved), cmocka_unit_test(test_small_and_large_blocks),
		cmocka_unit_test(test_unknown),  cmocka_unit_test(test_launches), cmocka_unit_test(test_stated),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
