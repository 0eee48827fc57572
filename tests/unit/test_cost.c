/* Costs of ops: a row of cost_rows.h per formula, collectives, names of arguments, causal masks, and what the expressions refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/buf.h"
#include "op/cost.h"
#include "op/expr.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct row {
	const char *op, *dims, *types, *values;
	int64_t flops, read, written;
	enum cost_direction direction;
	struct op_batch batch;
};

static const struct row rows[] = {
#define F(...) {__VA_ARGS__, COST_FORWARD},
#define G(...) {__VA_ARGS__, COST_BACKWARD},
#define S(...) {__VA_ARGS__, COST_FORWARD, {.pairs = 5000, .keys = 700, .decode_pairs = 4000, .decode_keys = 600}},
#include "cost_rows.h"
#undef F
#undef G
#undef S
};

static const char *type_name(char letter)
{
	switch (letter) {
	case 'f': return "float";
	case 'd': return "double";
	case 'h': return "c10::Half";
	case 'b': return "c10::BFloat16";
	case 'l': return "long int";
	case 'i': return "int";
	case 'u': return "unsigned char";
	case '8': return "signed char";
	case 'o': return "bool";
	case 'c': return "c10::complex<float>";
	case 'e': return "c10::Float8_e4m3fn";
	case 'x': return "c10::Float4_e2m1fn_x2";
	case 's': return "Scalar";
	case 'L': return "ScalarList";
	case 'T': return "TensorList";
	default: return "";
	}
}

static struct str types_text(struct buf *b, const char *letters)
{
	if (!*letters)
		return (struct str){0};
	for (const char *p = letters; *p; p++)
		buf_printf(b, "%s\"%s\"", p == letters ? "[" : ", ", type_name(*p));
	buf_char(b, ']');
	return buf_view(b);
}

static struct str values_text(struct buf *b, const char *values)
{
	struct str rest = str_from(strcmp(values, "-") == 0 ? "|" : values), one;
	if (!rest.n)
		return (struct str){0};
	for (bool first = true; str_split(&rest, '|', &one); first = false)
		buf_printf(b, "%s\"" STR_FMT "\"", first ? "[" : ", ", STR_ARG(one));
	buf_char(b, ']');
	return buf_view(b);
}

static void cost_of_row(const struct row *r, const struct cost_rules *rules, const struct user_rules *user, struct arena *a, struct cost *c)
{
	struct buf types = {0}, values = {0};
	struct op_facts f = {.name = str_from(r->op), .dims = str_from(r->dims), .in_elements = -1, .out_elements = -1, .group_size = -1};
	f.batch = r->batch;
	f.types = types_text(&types, r->types);
	f.concrete = values_text(&values, r->values);
	cost_of(&f, rules, r->direction, user, a, c);
	buf_release(&types);
	buf_release(&values);
}

static void test_rows(void **state)
{
	(void)state;
	unsigned bad = 0;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct row *r = &rows[i];
		struct arena a = {0};
		struct cost c;
		cost_of_row(r, &cost_own, NULL, &a, &c);
		int64_t bytes = r->read < 0 || r->written < 0 ? COST_UNKNOWN : r->read + r->written;
		bool ok = c.flops == r->flops && c.bytes == bytes && (bytes < 0 || (c.bytes_read == r->read && c.bytes_written == r->written)) &&
		          (c.why.n > 0) == (c.flops < 0 || c.bytes < 0);
		if (!ok)
			print_message("# %s %s%s: %lld FLOPs, %lld + %lld bytes (" STR_FMT "), expected %lld, %lld + %lld\n", r->op, r->dims,
			              r->direction == COST_BACKWARD ? " backward" : "", (long long)c.flops, (long long)c.bytes_read,
			              (long long)c.bytes_written, STR_ARG(c.why), (long long)r->flops, (long long)r->read, (long long)r->written);
		bad += !ok;
		arena_release(&a);
	}
	assert_int_equal(bad, 0);
}

/* The type that experts multiply in, and what they read at least. */
static void test_experts(void **state)
{
	(void)state;
	static const struct {
		struct row row;
		enum dtype type;
	} of[] = {
		{{"vllm::outplace_fused_experts", "[[2,8],[4,12,8],[4,8,6],[2,2],[2,2]]", "bbbfi", ""}, DTYPE_BFLOAT16},
		{{"vllm::outplace_fused_experts", "[[2,8],[4,12,8],[4,8,6],[2,2],[2,2]]", "beefi", ""}, DTYPE_FP8_E4M3},
		{{"vllm::outplace_fused_experts", "[[2,8],[4,12,8],[4,8,6],[2,2],[2,2]]", "b88fi", ""}, DTYPE_INT8},
		{{"vllm::outplace_fused_experts", "[[2,8],[4,12,4],[4,8,3],[2,2],[2,2]]", "buufi", ""}, DTYPE_BFLOAT16}, /* pairs of 4-bit numbers that the kernel unpacks */
		{{"aiter::fused_moe_", "[[2,8],[4,12,4],[4,8,3],[2,2],[2,2]]", "bxxfi", ""}, DTYPE_FP4X2},
	};
	for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
		struct arena a = {0};
		struct cost c;
		cost_of_row(&of[i].row, &cost_own, NULL, &a, &c);
		int64_t one = (c.bytes - c.bytes_least), both = i == 0 ? 2 * (96 + 48) : i < 3 ? 96 + 48 : 48 + 24;
		assert_int_equal(c.dtype, of[i].type);
		assert_int_equal(one, both); /* 3 experts of 4 if chosen evenly, 2 at least */
		assert_true(c.parts == 2 && c.uneven && c.first.flops == 2 * 4 * 8 * 12);
		arena_release(&a);
	}
}

/* Sizes of hostile recordings give an answer or none, and no overflow. */
static void test_huge_experts(void **state)
{
	(void)state;
	static const char *const dims[] = {
		"[[9223372036854775807,1],[1,1,1],[1,1,1],[9223372036854775807,1],[9223372036854775807,1]]",
		"[[2,3037000499],[4,3037000499,3037000499],[4,3037000499,3037000499],[2,2],[2,2]]",
		"[[2,8],[9223372036854775807,12,8],[9223372036854775807,8,6],[2,2],[2,2]]",
		"[[2,8],[576460752303423487,2,8],[576460752303423487,8,2],[2,2],[2,2]]",
		"[[0,0],[0,0,0],[0,0,0],[0,0],[0,0]]",
	};
	for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
		struct arena a = {0};
		struct cost c;
		const struct row r = {"vllm::outplace_fused_experts", dims[i], "bbbfi", ""};
		cost_of_row(&r, &cost_own, NULL, &a, &c);
		assert_true(c.bytes < 0 && c.why.n > 0);
		arena_release(&a);
	}
}

/* Every row of rules.def has a row of its own in cost_rows.h: one of its names, in the same direction. */
struct rule_names {
	const char *names;
	enum cost_direction direction;
};

static const struct rule_names rules[] = {
#define RULE(class, names, ...) {names, COST_FORWARD},
#define CODE(class, names, ...) {names, COST_FORWARD},
#define GRAD(class, names, ...) {names, COST_BACKWARD},
#define GRAD_CODE(class, names, ...) {names, COST_BACKWARD},
#include "op/rules.def"
#undef RULE
#undef CODE
#undef GRAD
#undef GRAD_CODE
};

static bool names_op(const char *names, const char *op)
{
	struct str rest = str_from(names), one, name = str_from(op);
	while (str_split(&rest, ' ', &one))
		if (str_eq(one, name) || (name.n && name.p[name.n - 1] == '_' && str_eq(one, (struct str){name.p, name.n - 1})))
			return true;
	return false;
}

static void test_every_rule_has_a_row(void **state)
{
	(void)state;
	unsigned missing = 0;
	for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
		bool found = str_has(str_from(rules[i].names), STR("c10d::")); /* test_collectives */
		for (size_t k = 0; k < sizeof rows / sizeof rows[0] && !found; k++)
			found = rows[k].direction == rules[i].direction && names_op(rules[i].names, rows[k].op);
		if (!found)
			print_message("# no row for %s of %.60s\n", rules[i].direction ? "the backward" : "the formula", rules[i].names);
		missing += !found;
	}
	assert_int_equal(missing, 0);
}

/* Without shapes no op has FLOPs; 0 are known of what never computes: views, fills, collectives that only move. */
static void test_no_shapes(void **state)
{
	(void)state;
	unsigned bad = 0, asked = 0;
	for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
		struct str rest = str_from(rules[i].names), one;
		while (str_split(&rest, ' ', &one)) {
			struct arena a = {0};
			struct cost c;
			struct op_facts f = {.name = one, .in_elements = -1, .out_elements = -1, .group_size = -1};
			cost_of(&f, &cost_own, rules[i].direction, NULL, &a, &c);
			bool ok = c.flops < 0 ? c.why.n > 0 : c.flops == 0 && (c.class == OP_VIEW || c.class == OP_FILL || c.class == OP_COMM);
			if (!ok)
				print_message("# " STR_FMT ": %lld FLOPs without shapes\n", STR_ARG(one), (long long)c.flops);
			bad += !ok;
			asked++;
			arena_release(&a);
		}
	}
	assert_int_equal(bad, 0);
	assert_true(asked > 400);
}

static struct cost collective(const char *name, int64_t in, int64_t out, int64_t ranks)
{
	struct arena a = {0};
	struct cost c;
	struct op_facts f = {.name = STR("record_param_comms"), .collective = str_from(name), .comm_dtype = STR("BFloat16"),
	                     .in_elements = in, .out_elements = out, .group_size = ranks};
	cost_of(&f, &cost_own, COST_FORWARD, NULL, &a, &c);
	c.params = c.why = c.formula = (struct str){0};
	arena_release(&a);
	return c;
}

/* nccl-tests: bus bandwidth is S / time times 2 (n-1)/n, (n-1)/n or 1. */
static void test_collectives(void **state)
{
	(void)state;
	struct cost c = collective("allreduce", 800, 800, 8);
	assert_int_equal(c.wire_bytes, 1600 * 2 * 7 / 8);
	assert_int_equal(c.bytes, 3200);
	assert_int_equal(c.flops, 700);
	c = collective("_allgather_base", 100, 800, 8);
	assert_int_equal(c.wire_bytes, 1600 * 7 / 8);
	assert_int_equal(c.bytes, 200 + 1600);
	assert_int_equal(c.flops, 0);
	c = collective("reduce_scatter_tensor", 800, 100, 8);
	assert_int_equal(c.wire_bytes, 1600 * 7 / 8);
	assert_int_equal(c.flops, 700);
	c = collective("all_to_allv", 800, 800, 8);
	assert_int_equal(c.wire_bytes, 1600 * 7 / 8);
	c = collective("broadcast", 800, 800, 8);
	assert_int_equal(c.wire_bytes, 1600);
	c = collective("send", 800, 0, 2);
	assert_int_equal(c.wire_bytes, 1600);
	assert_int_equal(c.bytes, 1600);
	c = collective("allreduce", 800, 800, -1);
	assert_int_equal(c.wire_bytes, COST_UNKNOWN);
	assert_int_equal(c.flops, COST_UNKNOWN);
	assert_int_equal(collective("something", 800, 800, 8).bytes, COST_UNKNOWN);
	assert_int_equal(c.class, OP_COMM);
}

/* Pairs below the diagonal: 128 * 129 / 2 of 128 * 128. With fewer queries than keys it matters where the mask is aligned. */
static void test_causal(void **state)
{
	(void)state;
	static const struct row square = {"aten::_scaled_dot_product_flash_attention", "[[4,8,128,64],[4,8,128,64],[4,8,128,64],[],[]]", "hhhss",
	                                  "|||0.|True", 0, 0, 0, COST_FORWARD};
	static const struct row top = {"aten::_scaled_dot_product_flash_attention", "[[1,1,2,64],[1,1,4,64],[1,1,4,64],[],[]]", "hhhss",
	                               "|||0.|True", 0, 0, 0, COST_FORWARD};
	static const struct row bottom = {"flash_attn::_flash_attn_forward", "[[1,2,1,64],[1,4,1,64],[1,4,1,64],[],[],[]]", "hhhsss",
	                                  "|||0.|1.|True", 0, 0, 0, COST_FORWARD};
	static const struct row tall = {"flash_attn::_flash_attn_forward", "[[1,4,1,64],[1,2,1,64],[1,2,1,64],[],[],[]]", "hhhsss",
	                                "|||0.|1.|True", 0, 0, 0, COST_FORWARD};
	const struct {
		const struct row *row;
		int64_t all, causal;
	} cases[] = {{&square, 134217728, 2ll * 32 * (128 * 129 / 2) * 128}, {&top, 2 * 8 * 128, 2 * (1 + 2) * 128},
	             {&bottom, 2 * 8 * 128, 2 * (3 + 4) * 128}, {&tall, 2 * 8 * 128, 2 * (0 + 0 + 1 + 2) * 128}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct arena a = {0};
		struct cost c;
		cost_of_row(cases[i].row, &cost_own, NULL, &a, &c);
		assert_true(c.causal);
		assert_int_equal(c.flops, cases[i].all);
		assert_int_equal(c.flops_causal, cases[i].causal);
		arena_release(&a);
	}
}

/* flop_counter's test_backward: mm, bmm, and the backward of both: 5184. */
static void test_backward_chain(void **state)
{
	(void)state;
	static const struct row chain[] = {
		{"aten::mm", "[[4,5],[5,6]]", "ff", "-", 0, 0, 0, COST_FORWARD}, {"aten::mm", "[[4,5],[5,6]]", "ff", "-", 0, 0, 0, COST_FORWARD},
		{"aten::bmm", "[[7,4,6],[7,6,7]]", "ff", "-", 0, 0, 0, COST_FORWARD}, {"aten::bmm", "[[7,4,7],[7,7,6]]", "ff", "-", 0, 0, 0, COST_FORWARD},
	};
	int64_t sum = 0;
	for (size_t i = 0; i < sizeof chain / sizeof chain[0]; i++) {
		struct arena a = {0};
		struct cost c;
		cost_of_row(&chain[i], &cost_own, NULL, &a, &c);
		sum += c.flops;
		arena_release(&a);
	}
	assert_int_equal(sum, 5184);
}

static void test_gemm_fields(void **state)
{
	(void)state;
	static const struct row r = {"aten::linear", "[[2,8,9],[10,9],[10]]", "bbb", "-", 0, 0, 0, COST_BACKWARD};
	struct arena a = {0};
	struct cost c;
	cost_of_row(&r, &cost_own, NULL, &a, &c);
	assert_true(c.b == 1 && c.m == 16 && c.n == 10 && c.k == 9);
	assert_int_equal(c.parts, 2);
	assert_int_equal(c.tc_eligible, TRI_YES);
	assert_int_equal(c.dtype, DTYPE_BFLOAT16);
	assert_true(str_eqc(c.params, "M=16,N=10,K=9,bf16"));
	arena_release(&a);
}

/* Arguments by name stand where the function's order does not have them. */
static void test_argument_names(void **state)
{
	(void)state;
	struct arena a = {0};
	struct cost c;
	struct op_facts f = {.name = STR("torch.nn.functional.linear"), .dims = STR("[[10],[8,9],[10,9]]"),
	                     .types = STR("[\"float\",\"float\",\"float\"]"), .names = STR("[\"bias\",\"input\",\"weight\"]")};
	cost_of(&f, &cost_own, COST_FORWARD, NULL, &a, &c);
	assert_int_equal(c.flops, 2 * 8 * 9 * 10);
	f = (struct op_facts){.name = STR("torch.nn.functional.conv2d"), .dims = STR("[[2,3,6,6],[6,3,4,4],[]]"),
	                      .types = STR("[\"float\",\"float\",\"Scalar\"]"), .concrete = STR("[\"\",\"\",\"1\"]"),
	                      .names = STR("[\"\",\"\",\"padding\"]")};
	cost_of(&f, &cost_own, COST_FORWARD, NULL, &a, &c);
	assert_int_equal(c.flops, 28800);
	arena_release(&a);
}

static void test_types(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		enum dtype type;
		int bits;
	} types[] = {
		{"float", DTYPE_FLOAT32, 32}, {"c10::BFloat16", DTYPE_BFLOAT16, 16}, {"torch.float8_e4m3fn", DTYPE_FP8_E4M3, 8},
		{"*bf16", DTYPE_BFLOAT16, 16}, {"long int", DTYPE_INT64, 64}, {"c10::complex<float>", DTYPE_COMPLEX64, 64},
		{"*fp8e5", DTYPE_FP8_E5M2, 8}, {"unsigned char", DTYPE_UINT8, 8}, {"Half", DTYPE_FLOAT16, 16}, {"c10::qint8", DTYPE_QINT8, 8},
		{"", DTYPE_UNKNOWN, 0}, {"Scalar", DTYPE_UNKNOWN, 0},
	};
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		assert_int_equal(dtype_find(str_from(types[i].name)), types[i].type);
		assert_int_equal(dtype_bits(types[i].type), types[i].bits);
	}
}

static void test_expressions(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t v;  /* -1 = refused */
	} cases[] = {
		{"1 + 2*3", 7}, {"(1 + 2)*3", 9}, {"2^10", 1024}, {"7/2", 3}, {"ceil(7, 2)", 4}, {"max(1, m, 3)", 5}, {"min(4, 2)", 2},
		{"log2(9)", 4}, {"log2(1)", 0}, {"-m + 6", 1}, {"m*n", 30}, {"9223372036854775807 + 1", -1}, {"1/0", -1}, {"z", -1},
		{"", -1}, {"1 2", -1}, {"(1", -1}, {"4611686018427387904*2", -1}, {"2^64", -1}, {"foo(1)", -1}, {"99999999999999999999", -1},
		{"log2(0)", -1}, {"max(1,2,3,4,5,6,7,8,9)", -1}, {"2^(0-1)", -1},
	};
	struct expr_scope s = {0};
	expr_bind(&s, 'm', 5);
	expr_bind(&s, 'n', 6);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char why[EXPR_WHY] = "";
		int64_t v = -1;
		int rc = expr_eval(str_from(cases[i].text), &s, &v, why);
		if ((rc == 0) != (cases[i].v >= 0) || (rc == 0 && v != cases[i].v) || (rc < 0 && !*why))
			fail_msg("%s: %d, %lld, %s", cases[i].text, rc, (long long)v, why);
	}
}

static int load(struct user_rules *u, const char *text, struct err *e)
{
	char path[] = "/tmp/opscope_rules_XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	int rc = user_rules_add_costs(u, path, e);
	unlink(path);
	return rc;
}

static void test_own_rules(void **state)
{
	(void)state;
	struct err e = {0};
	struct arena a = {0};
	struct cost c;
	struct user_rules *u = user_rules_new(&a);
	assert_int_equal(load(u, "# mine\n\nRULE(GEMM, \"my::mm my::mm2\", \"mk,nk\", \"2*m*n*k\", \"B(0) + B(1)\", \"by(m*n, 0)\")\n"
	                      "GRAD(OTHER, \"my::mm\", \"mk,nk\", \"7\", \"8\", \"9\", 1)\n", &e), 0);
	static const char *const broken[] = {
		"RULE(GEMM, \"my::op\")", "RULE(NO_CLASS, \"a\", \"b\", \"c\", \"d\", \"e\")", "hello",
		"GRAD(GEMM, \"a\", \"b\", \"1\", \"1\", \"1\")", "RULE(GEMM, \"a\", \"B!\", \"1\", \"1\", \"1\")",
		"RULE(GEMM, \"a\", \"b\", \"1\", \"1\", \"1", "RULE(GEMM, \"a\", \"b\", \"1\", \"1\", \"1\") more",
		"RULE(GEMM, \"a\", \"b\", \"1\", \"1\", \"1\"", "RULE(GEMM, \" \", \"b\", \"1\", \"1\", \"1\")",
		"GRAD(GEMM, \"a\", \"b\", \"1\", \"1\", \"1\", 0)", "GRAD(GEMM, \"a\", \"b\", \"1\", \"1\", \"1\", 99999999999999999999)",
		"GRAD(GEMM, \"a\", \"b\", \"1\", \"1\", \"1\", 2 x)",
	};
	/* Patterns, and expressions for the pattern "mk,kn". */
	static const char *const patterns[] = {
		"m#,kn", "#m", "m?", "m*", "m.", "##", "(m", "m)", "()", "(m)(k)", "((m))", "(mk)", ")m(", "(", ")", "m,", ",m", "m,,k", ",", "(#)", "m k",
	};
	static const char *const expressions[] = {
		"", "2*", "2**3", "(m", "m)", "m k", "z", "foo(1)", "B()", "B(0,1)", "pool(0)", "max()", "log2(1,2)", "1 + * 2", "99999999999999999999",
		"m%k", "max(1,2,3,4,5,6,7,8,9)", "E(0", "out(1)", "I()", "-",
	};
	for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
		char text[200];
		snprintf(text, sizeof text, "\n%s\n", broken[i]);
		assert_int_equal(load(u, text, &e), -1);
		assert_true(strstr(e.msg, ":2: ") != NULL && strstr(e.msg, "expected") != NULL);
	}
	for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
		char text[200];
		snprintf(text, sizeof text, "\nRULE(GEMM, \"a\", \"%s\", \"1\", \"1\", \"1\")\n", patterns[i]);
		if (load(u, text, &e) == 0 || !strstr(e.msg, ":2: ") || !strstr(e.msg, "the pattern"))
			fail_msg("%s: %s", patterns[i], e.msg);
	}
	for (size_t i = 0; i < 3 * sizeof expressions / sizeof expressions[0]; i++) {
		char text[200];
		const char *x = expressions[i / 3];
		snprintf(text, sizeof text, "RULE(GEMM, \"a\", \"mk,kn\", \"%s\", \"%s\", \"%s\")", i % 3 == 0 ? x : "m", i % 3 == 1 ? x : "n",
		         i % 3 == 2 ? x : "max(2, k - 1)^2/ceil(m, 3)");
		if (load(u, text, &e) == 0 || !strstr(e.msg, ":1: ") || !strstr(e.msg, "the expression"))
			fail_msg("%s: %s", x, e.msg);
	}
	assert_int_equal(user_rules_add_costs(u, "/no/such/file", &e), -1);
	assert_int_equal(user_rules_add_costs(u, "/", &e), -1);
	assert_non_null(strstr(e.msg, "/: Is a directory"));
	assert_int_equal(user_rules_add_costs(u, "/dev/zero", &e), -1);
	assert_non_null(strstr(e.msg, "/dev/zero:1: a zero byte; lines of text were expected"));
	static const struct row r = {"my::mm", "[[4,5],[6,5]]", "ff", "-", 0, 0, 0, COST_FORWARD};
	cost_of_row(&r, &cost_own, u, &a, &c);
	assert_true(c.flops == 240 && c.bytes == 4 * (20 + 30 + 24) && c.class == OP_GEMM);
	struct row back = r;
	back.direction = COST_BACKWARD;
	cost_of_row(&back, &cost_own, u, &a, &c);
	assert_true(c.flops == 7 && c.bytes == 17 && c.class == OP_OTHER);
	cost_of_row(&back, &cost_own, NULL, &a, &c);
	assert_true(c.flops == COST_UNKNOWN && c.class == OP_UNKNOWN);
	arena_release(&a);
}

/* Each set of rules is for those who have it, and goes before the built-in rows. */
static void test_rules_apart(void **state)
{
	(void)state;
	static const struct row r = {"aten::mm", "[[4,5],[5,6]]", "ff", "-", 0, 0, 0, COST_FORWARD};
	struct err e = {0};
	struct arena a = {0};
	struct cost c;
	struct user_rules *u[] = {user_rules_new(&a), user_rules_new(&a), NULL};
	assert_int_equal(load(u[0], "RULE(OTHER, \"aten::mm\", \"mk,kn\", \"11\", \"1\", \"1\")", &e), 0);
	assert_int_equal(load(u[1], "RULE(SORT, \"aten::mm\", \"mk,kn\", \"22\", \"1\", \"1\")\nRULE(OTHER, \"aten::mm\", \"mk,kn\", \"33\", \"1\", \"1\")", &e), 0);
	static const int64_t flops[] = {11, 22, 240};
	static const enum op_class class[] = {OP_OTHER, OP_SORT, OP_GEMM};
	for (int i = 0; i < 6; i++) {
		cost_of_row(&r, &cost_own, u[i % 3], &a, &c);
		assert_int_equal(c.flops, flops[i % 3]);
		assert_int_equal(c.class, class[i % 3]);
	}
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_experts), cmocka_unit_test(test_huge_experts), cmocka_unit_test(test_rows), cmocka_unit_test(test_every_rule_has_a_row), cmocka_unit_test(test_no_shapes), cmocka_unit_test(test_collectives),
		cmocka_unit_test(test_causal), cmocka_unit_test(test_backward_chain), cmocka_unit_test(test_gemm_fields),
		cmocka_unit_test(test_argument_names), cmocka_unit_test(test_types), cmocka_unit_test(test_expressions),
		cmocka_unit_test(test_own_rules), cmocka_unit_test(test_rules_apart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
