/* What the text of an NVTX range says: emit_nvtx of all generations, PyProf's and DLProf's markers, domains of libraries. */
#include "test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "input/marker.h"

static struct profile *p;
static struct build b;
static struct markers *m;

static int setup(void **state)
{
	p = profile_new();
	build_init(&b, p);
	m = markers_new(&b);
	return 0;
}

static int teardown(void **state)
{
	struct err e;
	markers_free(m);
	build_finish(&b, &e);
	profile_free(p);
	return 0;
}

static struct marker read_in(const char *text, const char *domain)
{
	return marker_read(m, str_from(text), str_from(domain), 1);
}

static struct str arg(struct marker k, const char *key)
{
	struct str v = {"(absent)", 8};
	profile_find_arg_keys(p);
	profile_arg_named(p, k.args, str_from(key), &v);
	return v;
}

#define assert_str(s, text) assert_true(str_eq((s), str_from(text)))

static void test_emit_nvtx(void **state)
{
	static const struct { const char *text, *name; int64_t seq; enum span_kind kind; const char *dims; } cases[] = {
		{"embedding, seq = 115", "embedding", 115, SPAN_OP, "(absent)"},
		{"aten::mm, seq = 7, op_id = 9", "aten::mm", 7, SPAN_OP, "(absent)"},
		{"aten::t, op_id = 9", "aten::t", ID_NONE, SPAN_OP, "(absent)"},
		{"aten::mm, seq = 0, op_id = 3, sizes = [[2, 3], [3, 4]], input_op_ids = [(1,0), (2,-1)]", "aten::mm", 0, SPAN_OP, "[[2, 3], [3, 4]]"},
		{"aten::mm, seq = 0, sizes = [[2, 3], []]", "aten::mm", 0, SPAN_OP, "[[2, 3], []]"},
		{"aten::empty", "aten::empty", ID_NONE, SPAN_OP, "(absent)"},
		{", sizes = [[16], []]", "", ID_NONE, SPAN_OP, "[[16], []]"},
		{"AddmmBackward0, seq = 5, op_id = 8", "AddmmBackward0", 5, SPAN_OP, "(absent)"},
		{"autograd::engine::evaluate_function: AddmmBackward0, op_id = 7", "autograd::engine::evaluate_function: AddmmBackward0", ID_NONE,
		 SPAN_OP, "(absent)"},
		{"torch::autograd::AccumulateGrad, op_id = 11", "torch::autograd::AccumulateGrad", ID_NONE, SPAN_OP, "(absent)"},
		{"detach_, op_id = 4", "detach_", ID_NONE, SPAN_OP, "(absent)"},
		{"ProfilerStep#3, op_id = 4", "ProfilerStep#3", ID_NONE, SPAN_USER, "(absent)"},
		{"Optimizer.step#SGD.step, op_id = 4", "Optimizer.step#SGD.step", ID_NONE, SPAN_USER, "(absent)"},
		{"## step 0 ##, op_id = 1", "## step 0 ##", ID_NONE, SPAN_USER, "(absent)"},
		{"load, seq = soon", "load, seq = soon", ID_NONE, SPAN_USER, "(absent)"},
		{"a, b, seq = 3", "a, b", 3, SPAN_OP, "(absent)"},
		{"aten::mm, seq = 99999999999999999999", "aten::mm, seq = 99999999999999999999", ID_NONE, SPAN_OP, "(absent)"},
		{"aten::mm, sizes = [[2, x]]", "aten::mm, sizes = [[2, x]]", ID_NONE, SPAN_OP, "(absent)"},
		{"aten::mm, sizes = [[2]", "aten::mm, sizes = [[2]", ID_NONE, SPAN_OP, "(absent)"},
		{"aten::mm, seq = 8, sizes = [[2, 3], []]", "aten::mm", 8, SPAN_OP, "[[2, 3], []]"}, /* sizes that were read before, with something behind them */
		{"aten::mm, seq = 9, sizes = [[2, 3], []]x", "aten::mm, seq = 9, sizes = [[2, 3], []]x", ID_NONE, SPAN_OP, "(absent)"},
		{"aten::mm, sizes = [[2, 3], []], seq = 10", "aten::mm", 10, SPAN_OP, "[[2, 3], []]"},
		{"aten::t, seq = 11, sizes = [[2, 3], []]", "aten::t", 11, SPAN_OP, "[[2, 3], []]"},
		{"Forward pass", "Forward pass", ID_NONE, SPAN_USER, "(absent)"},
		{"Engine::evaluate", "Engine::evaluate", ID_NONE, SPAN_USER, "(absent)"},
		{"mine::step", "mine::step", ID_NONE, SPAN_USER, "(absent)"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct marker k = read_in(cases[i].text, "");
		assert_str(profile_str(p, k.name), cases[i].name);
		assert_true(k.link_id == cases[i].seq);
		assert_int_equal(k.kind, cases[i].kind);
		assert_str(arg(k, "Input Dims"), cases[i].dims);
	}
	struct marker k = read_in("aten::mm, seq = 0, op_id = 3, sizes = [[2, 3], [3, 4]], input_op_ids = [(1,0), (2,-1)]", "");
	assert_true(k.op_id == 3);
	assert_str(profile_str(p, k.input_ops), "[(1,0), (2,-1)]");
	k = read_in("aten::mm, seq = 7, op_id = 9", "");
	assert_true(k.op_id == 9 && k.input_ops == 0);
	k = read_in("aten::mm, seq = 7", "");
	assert_true(k.op_id == 0 && k.input_ops == 0);
}

static void test_argument_marker(void **state)
{
	const char *text = "{'mod': 'torch.nn.functional', 'op': 'linear', 'args': [{'name': '', 'type': 'tensor', 'shape': (4, 5), "
	                   "'dtype': 'float16'}, {'name': 'bias', 'type': 'NoneType', 'value': None}, {'name': 'p', 'type': 'float', "
	                   "'value': 1e-05}, {'name': '', 'type': 'tuple', 'value': (1, 1)}, {'name': '', 'type': 'str', 'value': 'it\\'s \"x\"'}]}";
	struct marker k = read_in(text, "");
	assert_int_equal(k.kind, SPAN_OP);
	assert_str(profile_str(p, k.name), "torch.nn.functional.linear");
	assert_str(arg(k, "Input Dims"), "[[4, 5], [], [], [], []]");
	assert_str(arg(k, "Input type"), "[\"c10::Half\", \"\", \"Scalar\", \"ScalarList\", \"Scalar\"]");
	assert_str(arg(k, "Concrete Inputs"), "[\"\", \"\", \"1e-05\", \"[1, 1]\", \"it's \\\"x\\\"\"]");
	assert_str(arg(k, "Input names"), "[\"\", \"bias\", \"p\", \"\", \"\"]");
	assert_str(arg(k, "Module"), "torch.nn.functional");
	assert_str(arg(k, "Op"), "linear");
	assert_str(arg(k, "marker"), text);
	struct marker again = read_in(text, "");
	assert_int_equal(again.args, k.args);
}

/* opscope.torch keeps lists of tensors together. */
static void test_lists(void **state)
{
	struct marker k = read_in("{'mod': 'torch', 'op': 'cat', 'args': [{'name': '', 'type': 'tensors', 'shapes': [(2,), (), (3, 4)], "
	                          "'dtypes': ['float32', 'float16', 'odd']}, {'name': 'dim', 'type': 'int', 'value': 1}]}", "");
	assert_int_equal(k.kind, SPAN_OP);
	assert_str(arg(k, "Input Dims"), "[[[2], [], [3, 4]], []]");
	assert_str(arg(k, "Input type"), "[[\"float\", \"c10::Half\", \"odd\"], \"Scalar\"]");
	assert_str(arg(k, "Concrete Inputs"), "[\"\", \"1\"]");
	assert_str(arg(k, "Input names"), "[\"\", \"dim\"]");
	assert_int_equal(read_in("{'mod': 'torch', 'op': 'cat', 'args': [{'name': '', 'type': 'tensors', 'shapes': [(2,)], 'dtypes': [5]}]}", "").kind, SPAN_OP);
}

static void test_dlprof(void **state)
{
	struct marker k = read_in("{'mod': 'torch', 'op': 'add', 'args': [], 'callid': 3, 'input_callids': [1, -1]}", "");
	assert_int_equal(k.kind, SPAN_OP);
	assert_str(arg(k, "callid"), "3");
	assert_str(arg(k, "input_callids"), "[1, -1]");
	k = read_in("{\"model_config\": {\"num_workers\": 4}}", "");
	assert_int_equal(k.kind, SPAN_MARKER);
	assert_str(arg(k, "model_config"), "{\"num_workers\": 4}");
}

static void test_descriptions(void **state)
{
	struct marker k = read_in("{'traceMarker': ['outer.py:1', 'inner.py:2'], 'funcStack': 'a/b'}", "");
	assert_int_equal(k.kind, SPAN_MARKER);
	assert_str(arg(k, "Call stack"), "inner.py:2;outer.py:1");
	assert_str(arg(k, "funcStack"), "a/b");
	k = read_in("{'mod': 'Linear', 'strRepr': 'in_features=3'}", "");
	assert_int_equal(k.kind, SPAN_MARKER);
	assert_str(arg(k, "Module"), "Linear");
	assert_str(arg(k, "strRepr"), "in_features=3");
	k = read_in("layer:encoder.3:more", "");
	assert_int_equal(k.kind, SPAN_USER);
	assert_str(arg(k, "Layer"), "encoder.3");
	assert_str(profile_str(p, k.name), "layer:encoder.3:more");
}

static void test_damaged(void **state)
{
	static const char *const texts[] = {
		"{'mod': 'torch', 'op': 'add', 'args': [{'name': ''", "{'traceMarker': 'x'}", "{'traceMarker': __import__('os')}",
		"{'mod': 'torch', 'op': 'add', 'args': [{'type': 'tensor', 'shape': (-1,)}]}", "{'mod': 'torch', 'op': 'add', 'args': 3}",
		"{'mod': 'torch', 'op': 'cat', 'args': [{'name': '', 'type': 'tensors', 'shapes': [2], 'dtypes': []}]}",
		"{'mod': 'torch', 'op': 'cat', 'args': [{'name': '', 'type': 'tensors', 'shapes': [(-2,)], 'dtypes': []}]}",
		"{'mod': 'torch', 'op': 'cat', 'args': [{'name': '', 'type': 'tensors', 'shapes': [(2,)], 'dtypes': 5}]}",
	};
	unsigned before = p->diags.n;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct marker k = read_in(texts[i], "");
		assert_int_equal(k.kind, SPAN_USER);
		assert_str(profile_str(p, k.name), texts[i]);
		assert_int_equal(k.args, 0);
	}
	assert_int_equal(p->diags.n, before + 1);
	assert_int_equal(p->diags.entry[before].count, 8);
	read_in("{somebody's own}", "");
	assert_int_equal(p->diags.entry[before].count, 8);
}

static void test_domains(void **state)
{
	assert_int_equal(read_in("ncclAllReduce", "NCCL").kind, SPAN_OP);
	assert_int_equal(read_in("anything, seq = 3", "TensorRT").kind, SPAN_OP);
	assert_int_equal(read_in("anything", "my domain").kind, SPAN_USER);
	struct marker k = read_in("Thunk:#hlo_op=fusion.3,hlo_module=jit_f#", "TSL");
	assert_str(profile_str(p, k.name), "fusion.3");
	assert_str(arg(k, "hlo_module"), "jit_f");
}

static void test_nodes(void **state)
{
	struct marker k = read_in("Conv2D: resnet/conv1/Conv2D_3", "tensorflow-core");
	assert_int_equal(k.kind, SPAN_OP);
	assert_true(k.is_node);
	assert_str(profile_str(p, k.name), "resnet/conv1/Conv2D_3");
	assert_str(arg(k, "op_type"), "Conv2D");
	k = read_in("{\"op\":\"MatMul\",\"name\":\"fc/MatMul\",\"args\":[{\"name\":\"x:0\",\"shape\":[8,64]},{\"name\":\"w\",\"shape\":null},null],"
	            "\"attrs\":{\"value\":\"Tensor<\"say\">\",\"T\":\"bfloat32\"}}", "tensorflow-core");
	assert_str(profile_str(p, k.name), "fc/MatMul");
	assert_str(arg(k, "op_type"), "MatMul");
	assert_str(arg(k, "data_type"), "bfloat16");
	assert_str(arg(k, "Input Dims"), "[[8, 64], []]");
	assert_str(arg(k, "Input names"), "[\"x:0\", \"w\"]");
	k = read_in("{\"op\":\"NoOp\",\"name\":\"a\",\"args\":[],\"attrs\":{}}", "tensorflow-core");
	assert_str(profile_str(p, k.name), "a");
	assert_str(arg(k, "op_type"), "NoOp");

	static const char *const names[] = {"global_step", "Conv2D:", "Conv2D: ", "my op: x", "{\"op\":\"MatMul\",\"name\":", "{\"op\":\"\",\"name\":\"x\"}", ""};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		k = read_in(names[i], "tensorflow-core");
		assert_int_equal(k.kind, SPAN_OP);
		assert_str(profile_str(p, k.name), names[i]);
		assert_int_equal(k.args, 0);
	}
	assert_false(read_in("Conv2D: x", "TensorRT").is_node);
}

/* Every range of real training loops under emit_nvtx: the fields, by another way of finding them, and nothing left in a name. */
static void test_real_strings(void **state)
{
	const char *data = getenv("OPSCOPE_DATA");
	char path[4096], line[65536];
	snprintf(path, sizeof path, "%s/nvtx_strings", data ? data : "");
	DIR *d = data ? opendir(path) : NULL;
	if (!d)
		skip_because("no real traces (they are not part of the repository)");
	unsigned long n = 0, with_seq = 0, with_sizes = 0;
	for (struct dirent *f; (f = readdir(d));) {
		snprintf(path, sizeof path, "%s/nvtx_strings/%s", data, f->d_name);
		FILE *in = f->d_name[0] == '.' ? NULL : fopen(path, "r");
		while (in && fgets(line, sizeof line, in)) {
			char *text = strstr(line, " PUSH ");
			if (!text)
				continue;
			text += 6;
			text[strcspn(text, "\n")] = 0;
			struct marker k = read_in(text, "");
			struct str name = profile_str(p, k.name);
			const char *seq = strstr(text, ", seq = "), *sizes = strstr(text, ", sizes = ");
			assert_true(str_starts(str_from(text), name));
			assert_false(str_has(name, STR(", seq")) || str_has(name, STR(", op_id")) || str_has(name, STR(", sizes")));
			assert_true(k.link_id == (seq ? atoll(seq + 8) : ID_NONE));
			struct str dims = arg(k, "Input Dims");
			assert_int_equal(sizes != NULL, !str_eq(dims, STR("(absent)")));
			if (sizes)
				assert_memory_equal(dims.p, sizes + 10, dims.n);
			n++;
			with_seq += seq != NULL;
			with_sizes += sizes != NULL;
		}
		if (in)
			fclose(in);
	}
	closedir(d);
	assert_true(n > 4000 && with_seq > 1000 && with_sizes > 1000);
}

/* Texts of the pieces that fields are made of, behind as many false beginnings as make the reader start from the end: they read
 * as without them. */
static void test_many_false_beginnings(void **state)
{
	static const char *const piece[] = {
		", seq = 1", ", seq = 22", ", op_id = 3", ", sizes = [[1, 2]", "]", "[", ", sizes = [", ", input_op_ids = [", ", input_op_ids = [(1,0)]",
		", ", "x", ", sizes = [[2, 3], []]", "]]", ", seq = ",
	};
	uint64_t r = 88172645463325252u, fields = 0;
	for (int i = 0; i < 20000; i++) {
		char text[512] = "n", behind[768];
		for (int k = 0; k < 6; k++) {
			r ^= r << 13, r ^= r >> 7, r ^= r << 17;
			strcat(text, piece[r % (sizeof piece / sizeof piece[0])]);
		}
		struct marker direct = read_in(text, "");
		strcpy(behind, ", seq = !, seq = !, seq = !, seq = !, seq = !, seq = !, seq = !, seq = !, seq = !");
		size_t before = strlen(behind);
		strcat(behind, text);
		struct marker k = read_in(behind, "");
		assert_true(k.link_id == direct.link_id);
		struct str name = profile_str(p, k.name);
		assert_true(name.n > before && str_eq((struct str){name.p + before, name.n - before}, profile_str(p, direct.name)));
		assert_true(str_eq(arg(k, "Input Dims"), arg(direct, "Input Dims")));
		fields += direct.link_id != ID_NONE;
	}
	assert_true(fields > 1000);
}

/* Texts whose fields do not end well, a million of them: time in proportion to the text. */
static void test_long_texts(void **state)
{
	static const char *const field[] = {", input_op_ids = [", ", seq = 1", ", sizes = [", ", input_op_ids = [["};
	enum { TIMES = 1000000 };
	for (size_t i = 0; i < sizeof field / sizeof field[0]; i++) {
		size_t n = strlen(field[i]);
		char *text = NEW_ARRAY_RAW(n * TIMES + 2, char);
		text[0] = 'a';
		for (size_t k = 0; k < TIMES; k++)
			memcpy(text + 1 + k * n, field[i], n);
		text[n * TIMES + 1] = '!';
		struct marker k = marker_read(m, (struct str){text, n * TIMES + 2}, STR(""), 1);
		assert_true(k.link_id == ID_NONE);
		assert_int_equal(profile_str(p, k.name).n, n * TIMES + 2);
		mem_free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_emit_nvtx), cmocka_unit_test(test_argument_marker), cmocka_unit_test(test_lists), cmocka_unit_test(test_dlprof),
		cmocka_unit_test(test_descriptions), cmocka_unit_test(test_damaged), cmocka_unit_test(test_domains),
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_real_strings), cmocka_unit_test(test_many_false_beginnings), cmocka_unit_test(test_long_texts),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
