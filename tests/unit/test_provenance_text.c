/* Lines of what Dynamo and Inductor write: frames, nodes, comments and calls of generated code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "open/provenance_text.h"

static void same(struct str got, const char *want)
{
	assert_int_equal(got.n, strlen(want));
	assert_memory_equal(got.p, want, got.n);
}

static void test_frames(void **state)
{
	static const struct { bool comment; const char *text, *path, *function; int64_t line; } is[] = {
		{false, "File \"/a/model.py\", line 12, in forward", "/a/model.py", "forward", 12},
		{false, "File \"/a b/m, line.py\", line 3, in <module>", "/a b/m, line.py", "<module>", 3},
		{false, "File \"x.py\", line 3", "x.py", "", 3},
		{true, "# File: /a/model.py:12 in forward, code: x = f(a, code: b in c)", "/a/model.py", "forward", 12},
		{true, "# File: C:/a/model.py:7 in <lambda>", "C:/a/model.py", "<lambda>", 7},
	};
	static const char *const no[] = {"", "File \"", "File \"a\", line x, in f", "File \"\", line 1, in f", "# File: ", "# File: a in f", "# File: a:b in f, code: x", "# File: :3 in f, code: x",
	                                 "File \"a\", line 99999999999999999999, in f", "# File: a:-4 in f, code: x"};
	struct provenance_frame f;
	for (size_t i = 0; i < sizeof is / sizeof is[0]; i++) {
		assert_true((is[i].comment ? provenance_frame_of_comment : provenance_frame_of_trace)(str_from(is[i].text), &f));
		same(f.path, is[i].path);
		same(f.function, is[i].function);
		assert_int_equal(f.line, is[i].line);
	}
	for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) {
		assert_false(provenance_frame_of_comment(str_from(no[i]), &f));
		assert_false(provenance_frame_of_trace(str_from(no[i]), &f));
	}
}

static void test_nodes(void **state)
{
	struct str name;
	assert_true(provenance_node_of(STR("mul_1: \"f32[8, 8][8, 1]cuda:0\" = torch.ops.aten.mul.Tensor(arg0_1, 3.14);  arg0_1 = None"), &name));
	same(name, "mul_1");
	assert_true(provenance_node_of(STR("getitem = split[0]"), &name));
	same(name, "getitem");
	static const char *const no[] = {"", "return (mul,)", "class GraphModule(torch.nn.Module):", "def forward(self, arg0_1: \"f32[8]\"):", "# a comment", "1 = 2", "a.b = c"};
	for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
		assert_false(provenance_node_of(str_from(no[i]), &name));
}

static void test_code(void **state)
{
	static const struct { enum provenance_code what; const char *text, *name, *nodes, *ops; } is[] = {
		{CODE_SOURCES, "# Topologically Sorted Source Nodes: [add, gelu], Original ATen: [aten.addmm, aten.gelu]", NULL, "add, gelu", "aten.addmm, aten.gelu"},
		{CODE_SOURCES, "// Topologically Sorted Source Nodes: [], Original ATen: [aten.addmm]", NULL, "", "aten.addmm"},
		{CODE_HANDLES, "# [Provenance debug handles] triton_poi_fused_mul_0:1", "triton_poi_fused_mul_0:1", NULL, NULL},
		{CODE_PATH, "# kernel path: /tmp/torchinductor_me/ab/cabc.py", "cabc", NULL, NULL},
		{CODE_PATH, "# kernel path: cabc", "cabc", NULL, NULL},
		{CODE_KERNEL, "triton_poi_fused_mul_0 = async_compile.triton('triton_poi_fused_mul_0', '''", "triton_poi_fused_mul_0", NULL, NULL},
		{CODE_KERNEL, "cpp_fused_mul_0 = async_compile.cpp_pybinding(['const float*'], '''", "cpp_fused_mul_0", NULL, NULL},
		{CODE_CALL, "triton_poi_fused_mul_0.run(arg0_1, buf0, 64, stream=stream0)", "triton_poi_fused_mul_0", NULL, NULL},
		{CODE_CALL, "extern_kernels.mm(arg0_1, buf0, out=buf1)", "extern_kernels.mm", NULL, NULL},
		{CODE_CALL, "buf1 = extern_kernels.convolution(arg0_1, buf0, stride=(1, 1))", "extern_kernels.convolution", NULL, NULL},
		{CODE_CALL, "buf1 = torch.ops.aten.bmm.default(arg0_1, buf0)", "torch.ops.aten.bmm.default", NULL, NULL},
		{CODE_CALL, "cpp_fused_mul_0(arg0_1, buf0)", "cpp_fused_mul_0", NULL, NULL},
		{CODE_COMMENT, "# AOT ID: ['0_inference']", NULL, NULL, NULL},
		{CODE_OTHER, "buf0 = empty_strided_cuda((8, 8), (8, 1), torch.float32)", NULL, NULL, NULL},
		{CODE_OTHER, "stream0 = get_raw_stream(0)", NULL, NULL, NULL},
		{CODE_OTHER, "", NULL, NULL, NULL},
	};
	for (size_t i = 0; i < sizeof is / sizeof is[0]; i++) {
		struct str name, nodes, ops;
		assert_int_equal(provenance_code_of(str_from(is[i].text), &name, &nodes, &ops), is[i].what);
		if (is[i].name)
			same(name, is[i].name);
		if (is[i].ops) {
			same(nodes, is[i].nodes);
			same(ops, is[i].ops);
		}
	}
}

static void test_called(void **state)
{
	static const struct { const char *called, *space, *name; } is[] = {
		{"triton_poi_fused_mul_0", "", "triton_poi_fused_mul_0"}, {"extern_kernels.mm", "aten", "mm"},
		{"extern_kernels.bias_addmm", "aten", "addmm"},           {"aoti_torch_cuda_mm_out", "aten", "mm"},
		{"torch.ops.aten.bmm.default", "aten", "bmm"},            {"torch.ops.mylib.op", "mylib", "op"},
		{"torch.ops.", "", ""},
	};
	for (size_t i = 0; i < sizeof is / sizeof is[0]; i++) {
		struct str space, name;
		provenance_called_name(str_from(is[i].called), &space, &name);
		same(space, is[i].space);
		same(name, is[i].name);
	}
}

static void test_lists(void **state)
{
	struct str text = STR("  a\r\n\n b"), line, list = STR(", a,b ,"), item;
	assert_true(provenance_line(&text, &line));
	same(line, "a");
	assert_true(provenance_line(&text, &line));
	same(line, "");
	assert_true(provenance_line(&text, &line));
	same(line, "b");
	assert_false(provenance_line(&text, &line));
	assert_true(provenance_item(&list, &item));
	same(item, "a");
	assert_true(provenance_item(&list, &item));
	same(item, "b");
	assert_false(provenance_item(&list, &item));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames), cmocka_unit_test(test_nodes), cmocka_unit_test(test_code), cmocka_unit_test(test_called), cmocka_unit_test(test_lists),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
