/* What the names of an input say (analysis/names.h): the rows of name_rows.h. */
#include "made.h"

#include "analysis/names.h"

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

static void add_kernel(struct made *m, const char *name, uint8_t kind)
{
	struct launch_row none = launch_none();
	build_gpu(&m->b, &(struct gpu_row){.start_ns = 1, .dur_ns = 1, .ext_id = ID_NONE, .corr_id = ID_NONE, .name = made_id(m, name),
	                                   .track = made_thread(m, "0", "7"), .launch = build_launch(&m->b, &none),
	                                   .cat = build_cat(&m->b, made_id(m, "kernel")), .kind = kind});
}

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
	struct made m;
	made_begin(&m);
	for (size_t i = 0; i < N_RANGES; i++)
		made_span(&m, made_thread(&m, "1", "1"), SPAN_USER, ranges[i].name, (int64_t)i * 10, (int64_t)i * 10 + 5);
	made_finish(&m, 0);
	for (size_t i = 0; i < N_RANGES; i++)
		check_range(m.p, intern_find(&m.p->strings, str_from(ranges[i].name)), &ranges[i]);
	profile_free(m.p);
}

static void test_kernels(void **state)
{
	struct made m;
	made_begin(&m);
	for (size_t i = 0; i < N_KERNELS; i++)
		add_kernel(&m, kernels[i].name, GPU_KERNEL);
	made_finish(&m, 0);
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

/* One text may be the name of ranges and of kernels, and of work that is no kernel. */
static void test_shared_names(void **state)
{
	struct made m;
	made_begin(&m);
	made_span(&m, made_thread(&m, "1", "1"), SPAN_OP, "ncclDevKernel_mm", 0, 5);
	add_kernel(&m, "ncclDevKernel_mm", GPU_KERNEL);
	add_kernel(&m, "ncclDevKernel_copy", GPU_MEMCPY);
	made_id(&m, "nccl:all_reduce"); /* no name of anything */
	made_finish(&m, 0);
	assert_true(name_is(m.p, made_id(&m, "ncclDevKernel_mm"), NAME_COMM_KERNEL));
	assert_int_equal(name_kernel(m.p, made_id(&m, "ncclDevKernel_mm"))->class, KERNEL_COMM);
	assert_false(name_is(m.p, made_id(&m, "ncclDevKernel_copy"), NAME_COMM_KERNEL));
	assert_int_equal(name_kernel(m.p, made_id(&m, "ncclDevKernel_copy"))->class, KERNEL_UNKNOWN);
	assert_int_equal(m.p->names->facts[made_id(&m, "nccl:all_reduce")], 0);
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
	struct made m;
	made_begin(&m);
	uint32_t one = made_id(&m, "four"), two = made_id(&m, "");
	made_finish(&m, 0);
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
	struct made m;
	struct str v;
	made_begin(&m);
	struct arg_pair old = {made_id(&m, "Input dims"), made_id(&m, "[[1]]"), 0}, new = {made_id(&m, "Input Dims"), made_id(&m, "[[2]]"), 0};
	struct arg_pair both[2] = {old, new}, other = {made_id(&m, "mine"), made_id(&m, "3"), 0};
	uint32_t a = build_args(&m.b, &old, 1), b = build_args(&m.b, &new, 1), c = build_args(&m.b, both, 2), d = build_args(&m.b, &other, 1);
	made_finish(&m, 0);
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
