/* TraceLens' conventions beside opscope's, where they count the same call in another way. */
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

#include "predecessors/tracelens/rules.h"

/* One call, as Kineto writes it. */
#define CALL(op, shapes, of_types, values) {.name = STR(op), .dims = STR(shapes), .types = STR(of_types), .concrete = STR(values), \
                                            .in_elements = -1, .out_elements = -1, .group_size = -1}

static const struct counted {
	const char *what;
	struct op_facts facts;
	enum cost_direction direction;
	int64_t own_flops, own_bytes, flops, bytes;
} counted[] = {
	{"a bias: one FLOP an element of the result, read once",
	 CALL("aten::addmm", "[[6],[4,5],[5,6],[],[]]", "[\"float\",\"float\",\"float\",\"Scalar\",\"Scalar\"]", "[\"\",\"\",\"\",\"1\",\"1\"]"), COST_FORWARD,
	 240, 4 * (6 + 20 + 30 + 24), 240 + 24, 4 * (6 + 20 + 30 + 24)},
	{"a convolution's bias is not read",
	 CALL("aten::conv2d", "[[1,2,4,4],[3,2,1,1],[3],[],[],[],[]]", "[\"float\",\"float\",\"float\",\"ScalarList\",\"ScalarList\",\"ScalarList\",\"Scalar\"]",
	      "[\"\",\"\",\"\",\"[1, 1]\",\"[0, 0]\",\"[1, 1]\",\"1\"]"), COST_FORWARD,
	 2 * 16 * 3 * 2, 4 * (32 + 6 + 3 + 48), 2 * 16 * 3 * 2, 4 * (32 + 6 + 48)},
	{"a convolution's backward: both gradients, whatever the mask says",
	 CALL("aten::convolution_backward", "[[1,3,4,4],[1,2,4,4],[3,2,1,1],[],[],[],[],[],[],[],[]]",
	      "[\"float\",\"float\",\"float\",\"ScalarList\",\"ScalarList\",\"ScalarList\",\"ScalarList\",\"Scalar\",\"ScalarList\",\"Scalar\",\"\"]",
	      "[\"\",\"\",\"\",\"[0]\",\"[1, 1]\",\"[0, 0]\",\"[1, 1]\",\"False\",\"[0, 0]\",\"1\",\"[False, True, False]\"]"), COST_FORWARD,
	 2 * 16 * 3 * 2, 4 * (48 + 32 + 6), 2 * 2 * 16 * 3 * 2, 4 * (48 + 6 + 32 + 48 + 32 + 6)},
	{"causal attention: half of the FLOPs of all pairs",
	 CALL("aten::_scaled_dot_product_flash_attention", "[[4,8,128,64],[4,8,128,64],[4,8,128,64],[],[]]",
	      "[\"c10::Half\",\"c10::Half\",\"c10::Half\",\"Scalar\",\"Scalar\"]", "[\"\",\"\",\"\",\"0.\",\"True\"]"), COST_FORWARD,
	 134217728, 2 * 4 * 4 * 8 * 128 * 64, 67108864, 2 * 4 * 4 * 8 * 128 * 64},
	{"truth values have no size",
	 CALL("aten::logical_not", "[[10]]", "[\"bool\"]", "[\"\"]"), COST_FORWARD, 10, 20, 10, COST_UNKNOWN},
};

static void test_conventions(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++) {
		const struct counted *t = &counted[i];
		struct arena a = {0};
		struct cost own, c;
		cost_of(&t->facts, &cost_own, t->direction, NULL, &a, &own);
		cost_of(&t->facts, &tracelens_rules, t->direction, NULL, &a, &c);
		if (own.flops != t->own_flops || own.bytes != t->own_bytes || c.flops != t->flops || c.bytes != t->bytes)
			fail_msg("%s: opscope %lld FLOPs, %lld bytes; TraceLens %lld, %lld (" STR_FMT ")", t->what, (long long)own.flops, (long long)own.bytes,
			         (long long)c.flops, (long long)c.bytes, STR_ARG(c.why));
		arena_release(&a);
	}
}

/* The user's rules go before TraceLens' rows, and these before opscope's. */
static void test_order(void **state)
{
	(void)state;
	static const char text[] = "RULE(OTHER, \"aten::addmm\", \"#,mk,kn\", \"11\", \"1\", \"1\")";
	const struct op_facts f = counted[0].facts;
	char path[] = "/tmp/opscope_rules_XXXXXX";
	struct arena a = {0};
	struct user_rules *u = user_rules_new(&a);
	struct err e = {0};
	struct cost c;
	const int fd = mkstemp(path);
	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	assert_int_equal(user_rules_add_costs(u, path, &e), 0);
	unlink(path);
	cost_of(&f, &tracelens_rules, COST_FORWARD, u, &a, &c);
	assert_true(c.flops == 11 && c.class == OP_OTHER);
	cost_of(&f, &tracelens_rules, COST_FORWARD, NULL, &a, &c);
	assert_true(c.flops == 264 && c.class == OP_GEMM);
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_conventions), cmocka_unit_test(test_order)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
