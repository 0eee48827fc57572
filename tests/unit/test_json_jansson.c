/* The JSON reader against jansson, value by value: on tricky snippets, and on whole real traces where they are at hand. */
#include "io/json.h"

#include "jansson_ref.h"
#include "test.h"

#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

struct walk {
	struct json j;
	uint64_t values;
	struct buf text; /* scratch for decoded strings */
};

static const char *compare(struct walk *w, const char *p, const struct ref *want);

static struct str decoded(struct walk *w, const struct json_value *v)
{
	if (!v->escaped)
		return v->raw;
	buf_clear(&w->text);
	json_unescape(v->raw, &w->text, &w->j.repairs);
	return buf_view(&w->text);
}

static const char *compare_object(struct walk *w, const char *p, const struct ref *want)
{
	bool first = true;
	for (size_t n = 0;; n++) {
		struct json_value key;
		p = json_member(&w->j, p, &first, &key);
		assert_non_null(p);
		if (!key.raw.p) {
			assert_int_equal(n, ref_size(want));
			return p;
		}
		const struct ref *member = ref_member(want, decoded(w, &key));
		assert_non_null(member);
		p = compare(w, p, member);
	}
}

static const char *compare_array(struct walk *w, const char *p, const struct ref *want)
{
	bool first = true, done;
	for (size_t i = 0;; i++) {
		p = json_element(&w->j, p, &first, &done);
		assert_non_null(p);
		if (done) {
			assert_int_equal(i, ref_size(want));
			return p;
		}
		p = compare(w, p, ref_element(want, i));
	}
}

static void compare_number(struct str raw, const struct ref *want)
{
	int64_t i, scaled;
	double f;
	assert_true(json_to_f64(raw, &f));
	assert_true(f == ref_number(want));
	if (ref_kind(want) != REF_INTEGER)
		return;
	assert_true(json_to_i64(raw, &i));
	assert_true(i == ref_integer(want));
	if (i > -9000000000000000 && i < 9000000000000000) {
		assert_true(json_to_scaled(raw, 3, &scaled));
		assert_true(scaled == i * 1000);
	}
}

/* The value at p must be `want`; gives the position behind it. What is walked must also be what is skipped. */
static const char *compare(struct walk *w, const char *p, const struct ref *want)
{
	static const enum json_type type_of[] = {JSON_OBJECT, JSON_ARRAY, JSON_STRING, JSON_NUMBER,
	                                         JSON_NUMBER, JSON_TRUE,  JSON_FALSE,  JSON_NULL};
	struct json_value v;
	const char *behind = json_value(&w->j, p, &v);
	assert_non_null(behind);
	w->values++;
	enum ref_kind kind = ref_kind(want);
	assert_int_equal(v.type, type_of[kind]);
	if (kind == REF_OBJECT) {
		assert_ptr_equal(compare_object(w, p + 1, want), behind);
	} else if (kind == REF_ARRAY) {
		assert_ptr_equal(compare_array(w, p + 1, want), behind);
	} else if (kind == REF_STRING) {
		struct str got = decoded(w, &v), text = ref_string(want);
		assert_int_equal(got.n, text.n);
		assert_memory_equal(got.n ? got.p : "", text.p, text.n);
	} else if (kind == REF_INTEGER || kind == REF_REAL) {
		compare_number(v.raw, want);
	}
	return behind;
}

/* The text with the padding that the reader wants, on the heap and of exact size, so that sanitizers see any step beyond. */
static char *padded(struct str s)
{
	char *copy = malloc(s.n + JSON_PADDING);
	memcpy(copy, s.p, s.n);
	memset(copy + s.n, 0, JSON_PADDING);
	return copy;
}

static uint64_t compare_text(struct str s)
{
	char *copy = padded(s);
	struct ref *want = ref_parse(copy, s.n);
	assert_non_null(want);
	struct walk w = {.j = {.end = copy + s.n}};
	compare(&w, json_space(copy), want);
	assert_int_equal(w.j.repairs, 0); /* sound JSON needs none */
	ref_free(want);
	buf_release(&w.text);
	free(copy);
	return w.values;
}

static void test_sound_snippets(void **state)
{
	static const char *const snippets[] = {
		"{}", "[]", "[[]]", "[{}]", "{\"a\":{}}", " [ 1 , 2 ] ", "\t\r\n[\r\n]\t",
		"[0,-0,1,-1,10,123456789012345,9223372036854775807,-9223372036854775808]",
		"[0.0,-0.5,1e3,1E+3,1e-3,1.5e2,123456.789,1234567890123.456,0.1,2.2250738585072014e-308,1.7976931348623157e308]",
		"[true,false,null]", "{\"true\":true,\"null\":null}",
		"[\"\",\"a\",\"\\\"\",\"\\\\\",\"\\\\\\\"\",\"\\/\\b\\f\\n\\r\\t\"]",
		"[\"\\\\\\\\\",\"a\\\\\",\"\\\\\"]",
		"[\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\",\"\\u0000\",\"\\uD834\\uDD1E\",\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"]",
		"{\"\":0,\"\\u0061\\\"b\":1,\"c d\":[{\"e\":[]}]}",
		"[\"[{]}\",\"\\\"[\",{\"}\":\"]\"}]",
		"{\"args\":{\"Input Dims\":[[2,3],[],[[4]]],\"x\":\"a,b:c\"}}",
		"[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]",
		"[\"0123456789012345678901234567890\",\"01234567890123456789012345678901\",\"012345678901234567890123456789012\"]",
	};
	for (size_t i = 0; i < sizeof snippets / sizeof *snippets; i++)
		assert_true(compare_text(str_from(snippets[i])) > 0);
}

/* Strings of every length around the width of a vector register, with an escape at every place. */
static void test_strings_at_every_offset(void **state)
{
	for (size_t n = 0; n < 70; n++) {
		for (size_t at = 0; at <= n; at++) {
			struct buf b = {0};
			buf_cstr(&b, "[\"");
			buf_fill(&b, 'x', at);
			buf_cstr(&b, at % 3 == 0 ? "\\\"" : at % 3 == 1 ? "\\\\" : "\\u00e9");
			buf_fill(&b, 'y', n - at);
			buf_cstr(&b, "\",{\"k\":\"v\"}]");
			compare_text(buf_view(&b));
			buf_release(&b);
		}
	}
}

/* A container that is cut anywhere is "more", never "bad" and never taken as whole. */
static void test_cut_anywhere(void **state)
{
	struct str whole = STR("{\"a\":[1,2.5e3,\"x\\\"y\\\\\",{\"b\":null}],\"c\":{\"d\":[[],[true]]},\"e\":\"\\u00e9\"}");
	for (size_t n = 0; n < whole.n; n++) {
		char *copy = padded((struct str){whole.p, n});
		struct json j = {.end = copy + n};
		struct json_value v;
		assert_null(json_value(&j, copy, &v));
		assert_int_equal(j.status, JSON_MORE);
		free(copy);
	}
	char *copy = padded(whole);
	struct json j = {.end = copy + whole.n};
	assert_ptr_equal(json_skip(&j, copy), copy + whole.n);
	free(copy);
}

static void test_damage(void **state)
{
	static const char *const bad[] = {"[}", "{]", "[[}]", "{\"a\":[}}", "]", "}", ",", ":", "[{\"a\":1]}"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char *copy = padded(str_from(bad[i]));
		struct json j = {.end = copy + strlen(bad[i])};
		assert_null(json_skip(&j, copy));
		assert_int_equal(j.status, JSON_BAD);
		assert_true(j.bad >= copy && j.bad < j.end);
		assert_non_null(j.expected);
		free(copy);
	}
}

static void test_depth(void **state)
{
	for (size_t depth = JSON_DEPTH - 1; depth <= JSON_DEPTH + 1; depth++) {
		struct buf b = {0};
		buf_fill(&b, '[', depth);
		buf_fill(&b, ']', depth);
		char *copy = padded(buf_view(&b));
		struct json j = {.end = copy + b.n};
		assert_int_equal(json_skip(&j, copy) != NULL, depth <= JSON_DEPTH);
		if (depth > JSON_DEPTH)
			assert_int_equal(j.status, JSON_BAD);
		free(copy);
		buf_release(&b);
	}
}

static void test_repairs(void **state)
{
	static const struct {
		const char *text;
		unsigned repair;
		const char *decoded;
	} cases[] = {
		{"\"C:\\Users\\temp\\new\"", JSON_REPAIR_ESCAPE, "C:\\Users\\temp\\new"},
		{"\"\\ud800\"", JSON_REPAIR_UTF16, "\xef\xbf\xbd"},
		{"\"\\udc00x\"", JSON_REPAIR_UTF16, "\xef\xbf\xbdx"},
		{"\"\\ud83d\\u0041\"", JSON_REPAIR_UTF16, "\xef\xbf\xbd""A"},
		{"N/A", JSON_REPAIR_BARE, NULL},
		{"NaN", JSON_REPAIR_BARE, NULL},
		{"-Infinity", JSON_REPAIR_BARE, NULL},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct str s = str_from(cases[i].text);
		assert_null(ref_parse(s.p, s.n)); /* jansson refuses them all */
		struct buf in = {0}, out = {0};
		buf_printf(&in, "%s ", cases[i].text);
		char *copy = padded(buf_view(&in));
		struct json j = {.end = copy + in.n};
		struct json_value v;
		assert_non_null(json_value(&j, copy, &v));
		if (cases[i].decoded) {
			json_unescape(v.raw, &out, &j.repairs);
			assert_str_equal(buf_view(&out), cases[i].decoded);
		} else {
			assert_str_equal(v.raw, cases[i].text);
			assert_int_equal(v.type, JSON_BARE);
		}
		assert_int_equal(j.repairs, cases[i].repair);
		buf_release(&in);
		buf_release(&out);
		free(copy);
	}
}

static void test_times_are_exact(void **state)
{
	static const struct {
		const char *text;
		bool ok;
		int64_t ns;
	} cases[] = {
		{"0", true, 0}, {"1", true, 1000}, {"1.5", true, 1500}, {"-1.5", true, -1500}, {"0.001", true, 1},
		{"0.0004", true, 0}, {"0.0005", true, 1}, {"1623143566756000.123", true, 1623143566756000123},
		{"9007199254740993.001", true, 9007199254740993001}, {"1.623e3", true, 1623000}, {"5e-3", true, 5},
		{"4363514239411.836", true, 4363514239411836}, {"9223372036854775.807", true, INT64_MAX},
		{"9223372036854775.808", false, 0}, {"9223372036854775807", false, 0}, {"1e400", false, 0}, {"-", false, 0},
		{"1.2.3", false, 0}, {"", false, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t ns = 0;
		assert_int_equal(json_to_scaled(str_from(cases[i].text), 3, &ns), cases[i].ok);
		assert_true(ns == cases[i].ns);
	}
}

static void compare_file(const char *folder, const char *name)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	struct buf b = {0};
	gzFile f = gzopen(path, "rb");
	assert_non_null(f);
	char block[1 << 16];
	for (int n; (n = gzread(f, block, sizeof block)) > 0;)
		buf_put(&b, block, (size_t)n);
	gzclose(f);
	assert_true(compare_text(buf_view(&b)) > 100);
	buf_release(&b);
}

static void test_own_trace(void **state)
{
	compare_file(getenv("OPSCOPE_ROOT") ? getenv("OPSCOPE_ROOT") : ".", "tests/data/torch214_cpu_resnet.json.gz");
}

static void test_real_trace(void **state)
{
	const char *data = getenv("OPSCOPE_DATA") ? getenv("OPSCOPE_DATA") : "../shared/data";
	if (access(data, R_OK) != 0)
		skip_because("no real traces (they are not part of the repository)");
	compare_file(data, *state);
}

int main(void)
{
	char names[][80] = {
		"torch/torch113_cpu/lstm_full.json.gz",
		"torch/torch26_cpu/resnet_full.json.gz",
		"hta/timeline_analysis/sampled_rank-0.json.gz",
		"hta/amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz",
		"tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz",
		"multirank/megatron_a100_tp8/megatron_kineto_0.json.gz",
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sound_snippets),
		cmocka_unit_test(test_strings_at_every_offset),
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_repairs),
		cmocka_unit_test(test_times_are_exact),
		cmocka_unit_test(test_own_trace),
		{names[0], test_real_trace, NULL, NULL, names[0]},
		{names[1], test_real_trace, NULL, NULL, names[1]},
		{names[2], test_real_trace, NULL, NULL, names[2]},
		{names[3], test_real_trace, NULL, NULL, names[3]},
		{names[4], test_real_trace, NULL, NULL, names[4]},
		{names[5], test_real_trace, NULL, NULL, names[5]},
	};
	return RUN_TESTS(tests);
}
