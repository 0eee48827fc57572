#include "op/torch_flops.h"

#include "test.h"

static int64_t flops(const char *name, const char *dims, const char *types, const char *concrete)
{
	struct op_facts f = {.name = str_from(name), .in_elements = -1, .out_elements = -1, .group_size = -1};
	if (dims)
		f.dims = str_from(dims);
	if (types)
		f.types = str_from(types);
	if (concrete)
		f.concrete = str_from(concrete);
	return torch_flops(&f);
}

static void test_products(void **state)
{
	(void)state;
	const char *two = "[\"float\",\"float\"]", *three = "[\"float\",\"float\",\"float\",\"Scalar\",\"Scalar\"]";
	assert_int_equal(flops("aten::mm", "[[4,5],[5,6]]", two, NULL), 2 * 4 * 5 * 6);
	assert_int_equal(flops("aten::addmm", "[[6],[4,5],[5,6],[],[]]", three, "[\"\",\"\",\"\",\"1\",\"3\"]"), 2 * 4 * 5 * 6);
	assert_int_equal(flops("aten::bmm", "[[3,4,5],[3,5,6]]", two, NULL), 3 * 2 * 4 * 5 * 6);
	assert_int_equal(flops("aten::baddbmm", "[[3,4,6],[3,4,5],[3,5,6],[],[]]", three, NULL), 3 * 2 * 4 * 5 * 6);
	assert_int_equal(flops("aten::mm", "[[4,0],[0,6]]", two, NULL), 0);
	assert_int_equal(flops("aten::bmm", "[[0,4,5],[0,5,6]]", two, NULL), 0);
	assert_int_equal(flops("aten::mm", "[[],[5,6]]", "[\"\",\"float\"]", NULL), 0);
	assert_int_equal(flops("aten::mm", "[[4000000000,5],[5,4000000000]]", two, NULL), COST_UNKNOWN);
}

static void test_elementwise(void **state)
{
	(void)state;
	const char *types = "[\"float\",\"float\",\"Scalar\"]";
	assert_int_equal(flops("aten::add", "[[2,3],[7,2,3],[]]", types, NULL), 6); /* of the first, though the result has 42 */
	assert_int_equal(flops("aten::mul", "[[2,3],[2,3]]", types, NULL), 6);
	assert_int_equal(flops("aten::mul", "[[2,3],[]]", "[\"float\",\"Scalar\"]", NULL), 6);
	assert_int_equal(flops("aten::add_", "[[2,3],[2,3],[]]", types, NULL), 0);
	assert_int_equal(flops("aten::sub", "[[2,3],[2,3],[]]", types, NULL), 0);
}

static int64_t conv(const char *dims, const char *concrete)
{
	return flops("aten::conv2d", dims, "[\"float\",\"float\",\"\",\"ScalarList\",\"ScalarList\",\"ScalarList\",\"Scalar\"]", concrete);
}

static void test_conv2d(void **state)
{
	(void)state;
	const char *dims = "[[8,3,32,32],[16,3,3,3],[],[],[],[],[]]";
	assert_int_equal(conv(dims, "[\"\",\"\",\"\",\"[1, 1]\",\"[1, 1]\",\"[1, 1]\",\"1\"]"), 2ll * 8 * 16 * 32 * 32 * 3 * 9);
	assert_int_equal(conv(dims, "[\"\",\"\",\"\",\"[2, 3]\",\"[1, 0]\",\"[1, 2]\",\"1\"]"), 2ll * 8 * 16 * 16 * 10 * 3 * 9);
	/* Depthwise: the input's channels count, divided by the groups. */
	assert_int_equal(conv("[[1,4,8,8],[4,1,3,3],[],[],[],[],[]]", "[\"\",\"\",\"\",\"[1, 1]\",\"[1, 1]\",\"[1, 1]\",\"4\"]"), 2 * 64 * 4 * 9);
	/* What torch warns about and counts 0. */
	assert_int_equal(conv(dims, "[\"\",\"\",\"\",\"[1, 1]\",\"same\",\"[1, 1]\",\"1\"]"), 0);
	assert_int_equal(conv(dims, "[\"\",\"\",\"\",\"[0, 1]\",\"[1, 1]\",\"[1, 1]\",\"1\"]"), 0);
	assert_int_equal(conv("[[3,32,32],[16,3,3,3],[],[],[],[],[]]", "[\"\",\"\",\"\",\"[1, 1]\",\"[1, 1]\",\"[1, 1]\",\"1\"]"), 0);
	assert_int_equal(flops("aten::conv1d", "[[8,3,32],[16,3,3],[],[],[],[],[]]", NULL, NULL), 0);
}

static void test_unknown(void **state)
{
	(void)state;
	assert_int_equal(flops("aten::mm", NULL, NULL, NULL), COST_UNKNOWN);
	assert_int_equal(conv("[[8,3,32,32],[16,3,3,3],[],[],[],[],[]]", NULL), COST_UNKNOWN);
	assert_int_equal(flops("aten::softmax", NULL, NULL, NULL), 0);
	assert_int_equal(flops("aten::mm", "[[4,5],[5", NULL, NULL), COST_UNKNOWN);
	assert_true(torch_flops_counts(STR("aten::baddbmm")));
	assert_false(torch_flops_counts(STR("aten::convolution_backward")));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_products),
		cmocka_unit_test(test_elementwise),
		cmocka_unit_test(test_conv2d),
		cmocka_unit_test(test_unknown),
	};
	return RUN_TESTS(tests);
}
