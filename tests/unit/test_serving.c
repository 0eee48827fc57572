/* What inference servers say of their iterations: the names that they write, hostile ones, and which iterations the steps hold. */
#include "profile_builder.h"

#include "analysis/steps/serving_steps.h"
#include "analysis/steps/steps.h"
#include "base/mem.h"

#define NONE SERVING_NOT_TOLD

static const struct row {
	const char *name;
	enum serving_phase phase;
	struct serving_part all, prefill, decode; /* requests, tokens, keys, queries2, pairs */
	int64_t padded, generated;
} rows[] = {
	{"execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)", SERVING_DECODE, {32, 32, 55086, 32, 55086}, {0, 0, 0, 0, 0},
	 {32, 32, 55086, 32, 55086}, NONE, 32},
	{"execute_130_context_2(sq128sk256sqsq8192sqsk16384)_generation_2(sq2sk90sqsq2sqsk90)", SERVING_MIXED, {4, 130, 346, 8194, 16474},
	 {2, 128, 256, 8192, 16384}, {2, 2, 90, 2, 90}, NONE, 2},
	{"execute_12_context_0(sq0sk0sqsq0sqsk0)_generation_4(sq12sk90sqsq36sqsk270)", SERVING_DECODE, {4, 12, 90, 36, 270}, {0, 0, 0, 0, 0},
	 {4, 12, 90, 36, 270}, NONE, NONE},
	{"execute_context_2(14721)_generation_0(0)", SERVING_PREFILL, {2, 14721, NONE, NONE, NONE}, {2, 14721, NONE, NONE, NONE}, {0, 0, 0, 0, 0}, NONE, 0},
	{"execute_context_1(512)_generation_31(31)", SERVING_MIXED, {32, 543, NONE, NONE, NONE}, {1, 512, NONE, NONE, NONE}, {31, 31, NONE, NONE, NONE}, NONE, 31},
	{"execute_context_0(0)_generation_0(0)", SERVING_IDLE, {0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}, NONE, 0},
	{"step[DECODE bs=32]", SERVING_DECODE, {32, 32, NONE, NONE, NONE}, {0, 0, 0, 0, 0}, {32, 32, NONE, NONE, NONE}, NONE, 32},
	{"step[EXTEND bs=2 toks=14721]", SERVING_PREFILL, {2, 14721, NONE, NONE, NONE}, {2, 14721, NONE, NONE, NONE}, {0, 0, 0, 0, 0}, NONE, 0},
	{"step[MIXED bs=2 other=(1 2)x]", SERVING_MIXED, {2, NONE, NONE, NONE, NONE}, {NONE, NONE, NONE, NONE, NONE}, {NONE, NONE, NONE, NONE, NONE}, NONE, NONE},
	{"step[EXTEND bs=2 toks=12 c_sqsq=80 c_sqsk=120 c_sk=20]", SERVING_PREFILL, {2, 12, 20, 80, 120}, {2, 12, 20, 80, 120}, {0, 0, 0, 0, 0}, NONE, 0},
	{"step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40 g_sq=1 g_sk=12 g_sqsq=1 g_sqsk=12]", SERVING_MIXED, {2, 6, 20, 26, 52}, {1, 5, 8, 25, 40},
	 {1, 1, 12, 1, 12}, NONE, 1},
	{"step[TARGET_VERIFY bs=23]", SERVING_DECODE, {23, NONE, NONE, NONE, NONE}, {0, 0, 0, 0, 0}, {23, NONE, NONE, NONE, NONE}, NONE, NONE},
	{"step[IDLE bs=0]", SERVING_IDLE, {0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}, NONE, 0},
	{"step[DECODE bs=64 g_sq=128 g_sqsq=256 g_sqsk=4000 g_sk=2000]", SERVING_DECODE, {64, 128, 2000, 256, 4000}, {0, 0, 0, 0, 0},
	 {64, 128, 2000, 256, 4000}, NONE, NONE},
	{"[Executor] _forward_step 60000: 0 ctx reqs, 0 ctx tokens, 32 gen reqs", SERVING_DECODE, {32, NONE, NONE, NONE, NONE}, {0, 0, 0, 0, 0},
	 {32, NONE, NONE, NONE, NONE}, NONE, NONE},
	{"[Executor] _forward_step 7: 2 ctx reqs, 900 ctx tokens, 0 gen reqs", SERVING_PREFILL, {2, 900, NONE, NONE, NONE}, {2, 900, NONE, NONE, NONE},
	 {0, 0, 0, 0, 0}, NONE, 0},
	{"[Executor] _forward_step 7: 2 ctx reqs, 3 gen reqs", SERVING_MIXED, {5, NONE, NONE, NONE, NONE}, {2, NONE, NONE, NONE, NONE},
	 {3, NONE, NONE, NONE, NONE}, NONE, NONE},
	{"[Executor] _forward_step: 0 ctx reqs, 0 gen reqs", SERVING_IDLE, {0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}, NONE, 0},
	{"prefill[bs=2 tok=14721 ctx=[1024, 13697]]", SERVING_PREFILL, {2, 14721, 14721, NONE, NONE}, {2, 14721, 14721, NONE, NONE}, {0, 0, 0, 0, 0}, NONE, 0},
	{"decode[bs=117/128 tok=117 d=117]", SERVING_DECODE, {117, 117, NONE, NONE, NONE}, {0, 0, 0, 0, 0}, {117, 117, NONE, NONE, NONE}, 128, 117},
	{"capture_32_FULL", SERVING_CAPTURE, {NONE, NONE, NONE, NONE, NONE}, {NONE, NONE, NONE, NONE, NONE}, {NONE, NONE, NONE, NONE, NONE}, 32, NONE},
	{"capture_8_FULL_DECODE_ONLY", SERVING_CAPTURE, {NONE, NONE, NONE, NONE, NONE}, {NONE, NONE, NONE, NONE, NONE}, {NONE, NONE, NONE, NONE, NONE}, 8, NONE},
};

static void assert_part(const char *name, struct serving_part got, struct serving_part want)
{
	if (got.requests != want.requests || got.tokens != want.tokens || got.keys != want.keys || got.queries2 != want.queries2 || got.pairs != want.pairs)
		fail_msg("%s: %lld requests, %lld tokens, %lld keys, %lld, %lld; expected %lld, %lld, %lld, %lld, %lld", name, (long long)got.requests,
		         (long long)got.tokens, (long long)got.keys, (long long)got.queries2, (long long)got.pairs, (long long)want.requests, (long long)want.tokens,
		         (long long)want.keys, (long long)want.queries2, (long long)want.pairs);
}

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct serving x;
		if (!serving_parse(str_from(rows[i].name), &x))
			fail_msg("%s: not taken for a server's", rows[i].name);
		assert_string_equal(serving_phase_name[x.phase], serving_phase_name[rows[i].phase]);
		assert_part(rows[i].name, x.all, rows[i].all);
		assert_part(rows[i].name, x.prefill, rows[i].prefill);
		assert_part(rows[i].name, x.decode, rows[i].decode);
		assert_int_equal(x.padded, rows[i].padded);
		assert_int_equal(serving_generated(&x), rows[i].generated);
		assert_int_equal(x.iterations, 1);
		assert_int_equal(x.mode.n > 0, x.phase == SERVING_CAPTURE);
	}
}

/* Names that are near, and names that somebody means harm with. */
static void test_others(void **state)
{
	(void)state;
	static const char *const others[] = {
		"", "execute", "execute_", "execute_context_2(14721)_generation_0(0) ", " execute_context_2(14721)_generation_0(0)", "execute_context_(1)_generation_0(0)",
		"execute_context_-1(1)_generation_0(0)", "execute_context_1(1)_generation_0", "capture_32_full", "execute_context_99999999999999999999(1)_generation_0(0)",
		"execute_model", "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32)", "step", "step[", "step[]", "step[DECODE]", "step[DECODE ]",
		"step[DECODE bs=]", "step[DECODE bs=3", "step[DECODE bs=3]]", "step[DECODE bs=3 bs=4]", "step[DECODE  bs=3]", "step[DECODE bs=3 ]", "step[DECODE =3]",
		"step[TRAIN bs=3]", "step[3]", "prefill", "prefill[0]", "prefill[bs=2 ctx=[1,]]", "prefill[bs=2 ctx=[[1]]]", "prefill[bs=2 ctx=[9223372036854775807,1]]",
		"[Executor] _forward_step 7: ctx reqs, 3 gen reqs", "[Executor] _forward_step", "decode[bs=1/]", "decode[bs=1/2/3]", "decode[x=]", "decode[x=(]", "decode[x=)]", "decode[x=a]b]", "capture_32_", "capture__FULL", "capture_x_FULL",
		"Optimizer.step#SGD.step", "aten::mm",
	};
	struct serving x;
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		if (serving_parse(str_from(others[i]), &x))
			fail_msg("%s: taken for a server's", others[i]);
	char *long_name = NEW_ARRAY(1 << 20, char);
	size_t n = (size_t)snprintf(long_name, 1 << 20, "decode[");
	while (n < (1 << 20) - 16)
		n += (size_t)snprintf(long_name + n, 16, "a=((((( ");
	assert_false(serving_parse((struct str){long_name, n}, &x));
	mem_free(long_name);
	assert_false(serving_parse((struct str){"decode[bs=1\0]", 13}, &x));
	assert_true(serving_parse(STR("step[DECODE bs=9223372036854775807]"), &x));
	serving_add(&x, &x);
	assert_int_equal(x.all.requests, NONE);
}

static void annotate(struct builder *b, uint32_t track, const char *name, int64_t start, int64_t end)
{
	builder_span(b, track, SPAN_USER, name, start, end);
}

/* Numbers are sizes of batches, here ascending by chance; ranges around the iteration's own, which tell more; another worker; a captured graph. */
static void test_steps(void **state)
{
	(void)state;
	struct builder b;
	builder_begin(&b);
	uint32_t a = builder_track(&b, "1", "1"), other = builder_track(&b, "2", "2");
	annotate(&b, a, "capture_64_FULL", 0, 90);
	annotate(&b, a, "step[EXTEND bs=1 toks=64]", 100, 200);
	annotate(&b, a, "step[DECODE bs=8]", 200, 290);
	annotate(&b, a, "execute_9_context_0(sq0sk0sqsq0sqsk0)_generation_9(sq9sk90sqsq9sqsk90)", 295, 405);
	annotate(&b, a, "step[DECODE bs=9]", 300, 400);
	annotate(&b, other, "step[DECODE bs=9]", 300, 400);
	for (int i = 0; i < 3; i++)
		builder_launch(&b, a, 110 + 100 * i, 111 + 100 * i, 0, "kernel", 120 + 100 * i, 130 + 100 * i);
	struct profile *p = builder_finish(&b, PASS_NEST | PASS_CORRELATE | PASS_STEPS);
	const struct steps *s = p->steps;
	static const enum serving_phase phase[] = {SERVING_PREFILL, SERVING_DECODE, SERVING_DECODE};
	static const int64_t requests[] = {1, 8, 9}, keys[] = {NONE, NONE, 90};
	assert_int_equal(s->source, STEPS_NAMED);
	assert_int_equal(s->n, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_non_null(s->v[i].serving);
		assert_int_equal(s->v[i].number, i);
		assert_int_equal(s->v[i].host_start_ns, 100 + 100 * i); /* not 295 */
		assert_int_equal(s->v[i].serving->phase, phase[i]);
		assert_int_equal(s->v[i].serving->all.requests, requests[i]);
		assert_int_equal(s->v[i].serving->all.keys, keys[i]);
		assert_int_equal(s->v[i].serving->iterations, 1);
	}
	profile_free(p);
}

/* The profiler's own steps stay: each has what the iterations in it come to. A captured graph alone makes no step. */
static void test_other_steps(void **state)
{
	(void)state;
	struct builder b;
	builder_begin(&b);
	uint32_t a = builder_track(&b, "1", "1");
	annotate(&b, a, "ProfilerStep#7", 100, 300);
	annotate(&b, a, "execute_context_1(64)_generation_0(0)", 110, 200);
	annotate(&b, a, "execute_context_0(0)_generation_8(8)", 210, 290);
	annotate(&b, a, "ProfilerStep#8", 300, 400);
	struct profile *p = builder_finish(&b, PASS_NEST | PASS_CORRELATE | PASS_STEPS);
	assert_int_equal(p->steps->source, STEPS_PROFILER);
	assert_int_equal(p->steps->v[0].number, 7);
	assert_int_equal(p->steps->v[0].serving->phase, SERVING_MIXED);
	assert_int_equal(p->steps->v[0].serving->iterations, 2);
	assert_int_equal(p->steps->v[0].serving->all.tokens, 72);
	assert_null(p->steps->v[1].serving);
	profile_free(p);

	builder_begin(&b);
	a = builder_track(&b, "1", "1");
	annotate(&b, a, "capture_64_FULL", 0, 90);
	builder_launch(&b, a, 10, 11, 0, "kernel", 20, 30);
	p = builder_finish(&b, PASS_NEST | PASS_CORRELATE | PASS_STEPS);
	assert_true(p->steps->whole_trace);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_others), cmocka_unit_test(test_steps),
	                                   cmocka_unit_test(test_other_steps)};
	return RUN_TESTS(tests);
}
