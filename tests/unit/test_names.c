/* What the names of an input say (analysis/names/names.h): the rows of name_rows.h. */
#include "profile_builder.h"

#include "analysis/names/names.h"

static const struct range_row {
	const char *name;
	uint32_t facts;
	enum autograd_name autograd;
	enum host_kind host;
} ranges[] = {
#define R(name, facts, autograd, host) {name, facts, AUTOGRAD_##autograd, HOST_##host},
#define K(...)
#include "name_rows.h"
#undef R
#undef K
};
static const struct kernel_row {
	const char *name;
	uint32_t facts;
	enum kernel_class class;
	enum tri tensor_core;
} kernels[] = {
#define R(...)
#define K(name, facts, class, tensor_core) {name, facts, KERNEL_##class, TRI_##tensor_core},
#include "name_rows.h"
#undef R
#undef K
};
enum { N_RANGES = sizeof ranges / sizeof ranges[0], N_KERNELS = sizeof kernels / sizeof kernels[0] };

static void check_range(const struct profile *p, uint32_t id, const struct range_row *r)
{
	if (p->names->facts[id] != r->facts)
		fail_msg("%s: facts %x, not %x", r->name, p->names->facts[id], r->facts);
	if (name_autograd(p, id) != r->autograd)
		fail_msg("%s: autograd %d, not %d", r->name, name_autograd(p, id), r->autograd);
	if (name_host_kind(p, id) != r->host)
		fail_msg("%s: host kind %d, not %d", r->name, name_host_kind(p, id), r->host);
	assert_int_equal(name_is_dataloader(p, id), r->host == HOST_DATA);
	assert_int_equal(name_says_dataloader(str_from(r->name)), r->host == HOST_DATA);
}

static void test_ranges(void **state)
{
	struct builder m;
	builder_begin(&m);
	for (size_t i = 0; i < N_RANGES; i++)
		builder_span(&m, builder_track(&m, "1", "1"), SPAN_USER, ranges[i].name, (int64_t)i * 10, (int64_t)i * 10 + 5);
	builder_finish(&m, 0);
	for (size_t i = 0; i < N_RANGES; i++)
		check_range(m.p, intern_find(&m.p->strings, str_from(ranges[i].name)), &ranges[i]);
	profile_free(m.p);
}

static void test_kernels(void **state)
{
	struct builder m;
	builder_begin(&m);
	for (size_t i = 0; i < N_KERNELS; i++)
		builder_gpu(&m, 0, GPU_KERNEL, kernels[i].name, (int64_t)i * 10, (int64_t)i * 10 + 5);
	builder_finish(&m, 0);
	for (size_t i = 0; i < N_KERNELS; i++) {
		const struct kernel_row *r = &kernels[i];
		uint32_t id = intern_find(&m.p->strings, str_from(r->name));
		const struct kernel_info *k = name_kernel(m.p, id);
		if (m.p->names->facts[id] != r->facts || k->class != r->class || k->tensor_core != r->tensor_core)
			fail_msg("%s: facts %x, class %s, Tensor Cores %d", r->name, m.p->names->facts[id], kernel_class_name[k->class], k->tensor_core);
		assert_int_equal(name_tensor_core(m.p, id), r->facts & NAME_TC_LISTED ? TRI_YES : r->tensor_core);
	}
	profile_free(m.p);
}

/* A range, a kernel and a copy can have the same name. */
static void test_shared_names(void **state)
{
	struct builder m;
	builder_begin(&m);
	builder_span(&m, builder_track(&m, "1", "1"), SPAN_OP, "ncclDevKernel_mm", 0, 5);
	builder_gpu(&m, 0, GPU_KERNEL, "ncclDevKernel_mm", 10, 15);
	builder_gpu(&m, 0, GPU_MEMCPY, "ncclDevKernel_copy", 20, 25);
	builder_text(&m, "nccl:all_reduce"); /* no name of anything */
	builder_finish(&m, 0);
	assert_true(name_is(m.p, builder_text(&m, "ncclDevKernel_mm"), NAME_COMM_KERNEL));
	assert_int_equal(name_kernel(m.p, builder_text(&m, "ncclDevKernel_mm"))->class, KERNEL_COMM);
	assert_false(name_is(m.p, builder_text(&m, "ncclDevKernel_copy"), NAME_COMM_KERNEL));
	assert_int_equal(name_kernel(m.p, builder_text(&m, "ncclDevKernel_copy"))->class, KERNEL_UNKNOWN);
	assert_int_equal(m.p->names->facts[builder_text(&m, "nccl:all_reduce")], 0);
	profile_free(m.p);
}

static unsigned asked;

static uint8_t count_letters(struct str name)
{
	asked++;
	return (uint8_t)name.n;
}

static void test_memo(void **state)
{
	struct builder m;
	builder_begin(&m);
	uint32_t one = builder_text(&m, "four"), two = builder_text(&m, "");
	builder_finish(&m, 0);
	struct name_memo memo = name_memo_new(m.p, count_letters);
	for (int again = 0; again < 3; again++) {
		assert_int_equal(name_memo_of(&memo, one), 4);
		assert_int_equal(name_memo_of(&memo, two), 0);
	}
	assert_int_equal(asked, 2);
	name_memo_release(&memo);
	profile_free(m.p);
}

/* Two spellings of one argument (store/arg_keys.def). */
static void test_arguments(void **state)
{
	struct builder m;
	struct str v;
	builder_begin(&m);
	struct arg_pair old = {builder_text(&m, "Input dims"), builder_text(&m, "[[1]]"), 0}, new = {builder_text(&m, "Input Dims"), builder_text(&m, "[[2]]"), 0};
	struct arg_pair both[2] = {old, new}, other = {builder_text(&m, "mine"), builder_text(&m, "3"), 0};
	uint32_t a = build_args(&m.b, &old, 1), b = build_args(&m.b, &new, 1), c = build_args(&m.b, both, 2), d = build_args(&m.b, &other, 1);
	builder_finish(&m, 0);
	assert_int_equal(profile_arg_id(m.p, a, ARG_INPUT_DIMS), old.value);
	assert_int_equal(profile_arg_id(m.p, b, ARG_INPUT_DIMS), new.value);
	assert_int_equal(profile_arg_id(m.p, c, ARG_INPUT_DIMS), new.value);
	assert_int_equal(profile_arg_id(m.p, d, ARG_INPUT_DIMS), 0);
	assert_false(profile_arg(m.p, d, ARG_INPUT_DIMS, &v));
	assert_false(profile_arg(m.p, 0, ARG_INPUT_DIMS, &v));
	assert_true(profile_has_arg(m.p, ARG_INPUT_DIMS));
	assert_false(profile_has_arg(m.p, ARG_INPUT_TYPES));
	assert_true(profile_is_arg(m.p, old.key, ARG_INPUT_DIMS) && profile_is_arg(m.p, new.key, ARG_INPUT_DIMS));
	assert_false(profile_is_arg(m.p, other.key, ARG_INPUT_DIMS) || profile_is_arg(m.p, 0, ARG_INPUT_TYPES));
	assert_true(profile_arg_named(m.p, b, STR("Input dims"), &v) && str_eqc(v, "[[2]]"));
	assert_true(profile_arg_named(m.p, d, STR("mine"), &v) && str_eqc(v, "3"));
	assert_false(profile_arg_named(m.p, d, STR("yours"), &v));
	profile_free(m.p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranges), cmocka_unit_test(test_kernels), cmocka_unit_test(test_shared_names),
		                                  cmocka_unit_test(test_memo), cmocka_unit_test(test_arguments)};
	return RUN_TESTS(tests);
}
