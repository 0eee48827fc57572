/* C++ names made readable; names made to break demanglers end early. */
#include "test.h"

#include "base/demangle.h"

static enum demangled read_name(const char *name, struct buf *out)
{
	buf_clear(out);
	return demangle(str_from(name), out);
}

static bool is_there(void)
{
	struct buf b = {0};
	bool there = read_name("_Z1fv", &b) != DEMANGLE_ABSENT;
	buf_release(&b);
	return there;
}

static void test_names(void **state)
{
	static const struct { const char *name, *readable; } cases[] = {
		{"_Z1fv", "f()"},
		{"_Z3addIfEvPT_i", "void add<float>(float*, int)"},
		{"_ZN2at6native12_GLOBAL__N_16kernelILi512EEEvPKfb", "void at::native::(anonymous namespace)::kernel<512>(float const*, bool)"},
		{"_ZN1a1bIZNS_1cEvEUliE_EEvT_", "void a::b<a::c()::{lambda(int)#1}>(a::c()::{lambda(int)#1})"},
		{"_Z1kIJifEEvDpT_", "void k<int, float>(int, float)"},
	};
	struct buf b = {0};
	if (!is_there())
		skip_because("built without libiberty");
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_int_equal(read_name(cases[i].name, &b), DEMANGLE_DONE);
		assert_true(str_eqc(buf_view(&b), cases[i].readable));
	}
	buf_release(&b);
}

/* Appended to, not replaced; nothing is left of a name that failed. */
static void test_buffer(void **state)
{
	struct buf b = {0};
	buf_cstr(&b, "x");
	if (!is_there())
		skip_because("built without libiberty");
	assert_int_equal(demangle(STR("_Z1fv"), &b), DEMANGLE_DONE);
	assert_int_equal(demangle(STR("_Z1fI"), &b), DEMANGLE_FAILED);
	assert_true(str_eqc(buf_view(&b), "xf()"));
	buf_release(&b);
}

static void test_no_names(void **state)
{
	static const char *const plain[] = {"", "_", "sgemm_128x64", "void f<int>(int)", "Z1fv", "triton_poi_fused_0"};
	struct buf b = {0};
	for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
		assert_int_equal(read_name(plain[i], &b), DEMANGLE_NO);
		assert_int_equal(b.n, 0);
	}
	if (is_there()) {
		assert_int_equal(read_name("_Z", &b), DEMANGLE_FAILED);
		assert_int_equal(demangle((struct str){"_Z1f\0v", 6}, &b), DEMANGLE_FAILED);
	}
	buf_release(&b);
}

static enum demangled repeated(const char *start, const char *middle, size_t n, const char *end, struct buf *out)
{
	struct buf name = {0};
	buf_cstr(&name, start);
	while (name.n + strlen(middle) <= n)
		buf_cstr(&name, middle);
	buf_cstr(&name, end);
	buf_clear(out);
	enum demangled how = demangle(buf_view(&name), out);
	buf_release(&name);
	return how;
}

/* Names of several thousand characters are real; those beyond the limit stay. */
static void test_long(void **state)
{
	struct buf b = {0};
	if (!is_there())
		skip_because("built without libiberty");
	size_t n = (DEMANGLE_IN_MAX - 4) / 21;
	assert_int_equal(repeated("_Z1f", "19some_kind_of_tensor", DEMANGLE_IN_MAX, "", &b), DEMANGLE_DONE);
	assert_int_equal(b.n, strlen("f()") + 19 * n + 2 * (n - 1));
	assert_int_equal(repeated("_Z1f", "i", DEMANGLE_IN_MAX, "i", &b), DEMANGLE_FAILED);
	buf_release(&b);
}

/* Nested as deep as fits: whatever the answer, it comes back. */
static void test_deep(void **state)
{
	static const char *const middle[] = {"P", "1aI", "PF", "N1a", "IXadL_Z1f", "Dp", "A1_", "U1a", "J", "Dv4_"};
	struct buf b = {0};
	for (size_t i = 0; i < sizeof middle / sizeof middle[0]; i++) {
		enum demangled how = repeated("_Z1f", middle[i], DEMANGLE_IN_MAX - 1, "i", &b);
		assert_true(how == DEMANGLE_DONE || how == DEMANGLE_FAILED || how == DEMANGLE_ABSENT);
		assert_true(b.n <= DEMANGLE_OUT_MAX);
	}
	buf_release(&b);
}

/* Each parameter twice as long as the one before: 2^35 characters, if they were written. */
static void test_explosion(void **state)
{
	static const char digit[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	struct buf name = {0}, b = {0};
	buf_cstr(&name, "_Z1f1AIiiE");
	for (int i = 0; i < 35; i++)
		buf_printf(&name, "S_IS%c_S%c_E", digit[i], digit[i]);
	enum demangled how = demangle(buf_view(&name), &b);
	assert_true(how == DEMANGLE_FAILED || how == DEMANGLE_ABSENT);
	assert_int_equal(b.n, 0);
	buf_release(&name);
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names), cmocka_unit_test(test_buffer), cmocka_unit_test(test_no_names), cmocka_unit_test(test_long),
		cmocka_unit_test(test_deep), cmocka_unit_test(test_explosion),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
