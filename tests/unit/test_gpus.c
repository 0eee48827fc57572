/* Peaks by product, type and cores; what is not known is 0. */
#include "test.h"

#include "gpu/gpus.h"

static double peak(const char *product, enum dtype t, enum tri tc, bool sparse)
{
	return gpu_peak_flops(gpu_find(str_from(product)), t, tc, sparse) / 1e12;
}

#define NEAR(got, want) assert_true((got) > (want) * (1 - 1e-12) && (got) < (want) * (1 + 1e-12))

static void test_peaks(void **state)
{
	(void)state;
	NEAR(peak("NVIDIA A100-SXM4-80GB", DTYPE_FLOAT16, TRI_YES, false), 312);
	NEAR(peak("NVIDIA A100-SXM4-80GB", DTYPE_FLOAT16, TRI_YES, true), 624);
	NEAR(peak("NVIDIA A100-SXM4-80GB", DTYPE_FLOAT16, TRI_NO, false), 78);
	NEAR(peak("NVIDIA A100-SXM4-80GB", DTYPE_FLOAT32, TRI_YES, false), 156);
	NEAR(peak("NVIDIA A100-SXM4-80GB", DTYPE_FLOAT32, TRI_NO, false), 19.5);
	NEAR(peak("NVIDIA A100-SXM4-80GB", DTYPE_FLOAT64, TRI_YES, false), 19.5);
	NEAR(peak("NVIDIA A100-SXM4-80GB", DTYPE_FLOAT64, TRI_NO, false), 9.7);
	NEAR(peak("NVIDIA A100-SXM4-80GB", DTYPE_INT8, TRI_YES, false), 624);
	NEAR(peak("NVIDIA H100 80GB HBM3", DTYPE_BFLOAT16, TRI_YES, false), 989.5);
	NEAR(peak("NVIDIA H100 80GB HBM3", DTYPE_FP8_E4M3, TRI_YES, false), 1979);
	NEAR(peak("Tesla V100-SXM2-16GB", DTYPE_FLOAT16, TRI_YES, false), 125);
	NEAR(peak("NVIDIA GeForce RTX 4090", DTYPE_FLOAT16, TRI_YES, false), 165.16);
	NEAR(peak("NVIDIA GB300", DTYPE_BFLOAT16, TRI_YES, true), 5000);
	NEAR(peak("AMD Instinct MI300X", DTYPE_FLOAT32, TRI_YES, false), 163.4);
	NEAR(peak("AMD Instinct MI300X", DTYPE_BFLOAT16, TRI_YES, true), 2614.9);
	NEAR(gpu_peak_bytes(gpu_find(STR("NVIDIA A100-SXM4-80GB"))), 2039e9);
}

/* Multiples of a family, against what NVIDIA's tables state of the board: dense, accumulating in float32, to the digits stated. */
static void test_families(void **state)
{
	(void)state;
	static const struct { const char *product; enum dtype t; double stated, half_digit; } rates[] = {
		{"NVIDIA GeForce RTX 2080 Ti", DTYPE_FLOAT16, 53.8, 0.05},  {"NVIDIA GeForce RTX 2080 Ti", DTYPE_INT8, 215.2, 0.05},
		{"NVIDIA TITAN RTX", DTYPE_FLOAT16, 130.5, 0.15},           {"NVIDIA GeForce RTX 3090", DTYPE_FLOAT16, 71, 0.5},
		{"NVIDIA RTX A6000", DTYPE_BFLOAT16, 154.8, 0.05},          {"NVIDIA RTX A6000", DTYPE_INT8, 309.7, 0.15},
		{"NVIDIA GeForce RTX 4090", DTYPE_FP8_E4M3, 330.3, 0.05},   {"NVIDIA RTX 6000 Ada Generation", DTYPE_FP8_E4M3, 728.5, 0.5},
		{"NVIDIA GeForce RTX 5090", DTYPE_FLOAT16, 209.5, 0.15},    {"NVIDIA GeForce RTX 5090", DTYPE_FP8_E4M3, 419, 0.5},
		{"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", DTYPE_BFLOAT16, 503.8, 0.05},
		{"NVIDIA RTX PRO 6000 Blackwell Server Edition", DTYPE_FLOAT32, 234, 0.5},
	};
	for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
		double got = peak(rates[i].product, rates[i].t, TRI_YES, false);
		if (!(got > rates[i].stated - rates[i].half_digit && got < rates[i].stated + rates[i].half_digit))
			fail_msg("%s: %g, stated %g", rates[i].product, got, rates[i].stated);
	}
}

static int tensor_types(const char *product, int cc)
{
	return gpu_tensor_types(str_from(product), cc / 10, cc % 10, 32);
}

static void test_tensor_types(void **state)
{
	(void)state;
	assert_int_equal(tensor_types("Tesla T4", 75), 1 << GPU_FP16);
	assert_int_equal(tensor_types("Quadro RTX 4000", 75), 1 << GPU_FP16);
	assert_int_equal(tensor_types("NVIDIA GeForce GTX 1660 Ti", 75), 0);
	assert_int_equal(tensor_types("NVIDIA T1000 8GB", 75), 0);
	assert_int_equal(tensor_types("Quadro T2000 with Max-Q Design", 75), 0);
	assert_int_equal(tensor_types("NVIDIA A2", 86), 1 << GPU_FP16 | 1 << GPU_BF16 | 1 << GPU_TF32);
	assert_int_equal(tensor_types("NVIDIA GB10", 121), 1 << GPU_FP16 | 1 << GPU_BF16 | 1 << GPU_TF32 | 1 << GPU_FP8);
	assert_int_equal(gpu_tensor_types(STR("NVIDIA H200"), -1, 0, 32), -1);
}

static void test_abstains(void **state)
{
	(void)state;
	assert_true(peak("NVIDIA A100-SXM4-80GB", DTYPE_FLOAT16, TRI_UNKNOWN, false) == 0);
	assert_true(peak("NVIDIA A100-SXM4-80GB", DTYPE_UNKNOWN, TRI_YES, false) == 0);
	assert_true(peak("NVIDIA A100-SXM4-80GB", DTYPE_INT64, TRI_YES, false) == 0);
	assert_true(peak("NVIDIA A100-SXM4-80GB", DTYPE_FLOAT32, TRI_NO, true) == 0);
	assert_true(peak("NVIDIA A100-SXM4-80GB", DTYPE_FLOAT64, TRI_YES, true) == 0);
	assert_true(peak("Tesla V100-SXM2-16GB", DTYPE_BFLOAT16, TRI_YES, false) == 0);
	assert_true(peak("Tesla V100-SXM2-16GB", DTYPE_FLOAT16, TRI_YES, true) == 0);
	assert_true(peak("NVIDIA A100-SXM4-40GB MIG 1g.5gb", DTYPE_FLOAT16, TRI_YES, false) == 0);
	assert_true(peak("NVIDIA GeForce RTX 4090 Laptop GPU", DTYPE_FLOAT16, TRI_YES, false) == 0);
	assert_true(gpu_peak_bytes(NULL) == 0);
	assert_null(gpu_find(STR("NVIDIA GeForce RTX 2060"))); /* boards of this name have different numbers of cores */
	assert_null(gpu_find(STR("NVIDIA GeForce RTX 3080")));
	assert_true(gpu_peak_bytes(gpu_find(STR("NVIDIA GeForce RTX 4070"))) == 0); /* GDDR6X or GDDR6 */
	assert_true(peak("NVIDIA GB10", DTYPE_BFLOAT16, TRI_YES, false) == 0);
	assert_str_equal(str_from(gpu_peak_name(NULL, DTYPE_FLOAT16, TRI_YES)), "");
}

static void test_sizes(void **state)
{
	(void)state;
	const struct gpu *mi300 = gpu_find_by_size(9, 4, 304, 206141652992), *mi325 = gpu_find_by_size(9, 4, 304, 274861129728);
	assert_ptr_equal(mi300, gpu_find(STR("AMD Instinct MI300X")));
	assert_ptr_equal(mi325, gpu_find(STR("AMD Instinct MI325X")));
	assert_null(gpu_find_by_size(9, 5, 256, 309220868096));   /* MI350X or MI355X */
	assert_null(gpu_find_by_size(9, 4, 38, 206141652992));    /* a part of an MI300X */
	assert_null(gpu_find_by_size(9, 4, 304, 51535413248));
	assert_null(gpu_find_by_size(9, 4, 304, 0));
	assert_null(gpu_find_by_size(-1, 0, 0, 0));
}

static void test_names(void **state)
{
	(void)state;
	const struct gpu *a100 = gpu_find(STR("NVIDIA A100-SXM4-80GB")), *mi300 = gpu_find(STR("AMD Instinct MI300X"));
	assert_str_equal(str_from(gpu_peak_name(a100, DTYPE_FLOAT32, TRI_YES)), "TF32 on Tensor Cores");
	assert_str_equal(str_from(gpu_peak_name(a100, DTYPE_BFLOAT16, TRI_NO)), "bfloat16 on ordinary cores");
	assert_str_equal(str_from(gpu_peak_name(mi300, DTYPE_FLOAT32, TRI_YES)), "float32 on matrix cores");
	assert_true(gpu_is_verified(a100));
	assert_str_equal(str_from(gpu_find(STR("NVIDIA GH200 480GB"))->name), "GH200 480GB");
	assert_str_equal(str_from(gpu_find(STR("NVIDIA H200"))->name), "H200");
	assert_str_equal(str_from(gpu_find(STR("NVIDIA GeForce RTX 2070 SUPER"))->name), "RTX 2070 SUPER");
	assert_null(gpu_find(STR("")));
	assert_str_equal(str_from(gpu_find(STR("NVIDIA GeForce RTX 4090 D"))->name), "RTX 4090 D");
	assert_null(gpu_find(STR("NVIDIA RTX PRO 6000")));
	assert_null(gpu_find(STR("NVIDIA GeForce RTX 2070 Super"))); /* of a laptop */
}

static double link_of(const char *product)
{
	const struct gpu_link *l = gpu_link_find(str_from(product));
	return l ? l->bytes_per_s / 1e9 : 0;
}

/* In one direction: half of what data sheets state. */
static void test_links(void **state)
{
	NEAR(link_of("NVIDIA A100-SXM4-80GB"), 300);
	NEAR(link_of("Tesla V100-SXM2-32GB"), 150);
	NEAR(link_of("NVIDIA H100 80GB HBM3"), 450);
	NEAR(link_of("NVIDIA H200"), 450);
	NEAR(link_of("NVIDIA GB200"), 900);
	NEAR(link_of("AMD Instinct MI300X"), 448);
	NEAR(link_of("NVIDIA L4"), 32);
	assert_true(link_of("NVIDIA A100 80GB PCIe") == 0); /* with a bridge or without */
	assert_true(link_of("NVIDIA H100 PCIe") == 0);
	assert_true(link_of("NVIDIA GH200 480GB") == 0);
	assert_true(link_of("") == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_peaks), cmocka_unit_test(test_families), cmocka_unit_test(test_tensor_types), cmocka_unit_test(test_abstains),
	                                   cmocka_unit_test(test_links), cmocka_unit_test(test_sizes), cmocka_unit_test(test_names)};
	return RUN_TESTS(tests);
}
