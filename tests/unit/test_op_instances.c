/* Ops, their names and times, by the rules that analysis/tree/op_instances.h states. */
#include "profile_builder.h"

#include "analysis/tree/op_instances.h"
#include "base/mem.h"
#include "input/marker.h"

struct maker {
	struct builder b;
	struct profile *p;
	struct markers *markers;
	uint32_t main, other;
	struct arena arena;
};

static void begin(struct maker *m)
{
	*m = (struct maker){0};
	builder_begin(&m->b);
	m->p = m->b.p;
	m->markers = markers_new(&m->b.b);
	m->main = builder_track(&m->b, "1", "10");
	m->other = builder_track(&m->b, "1", "11");
}

/* An NVTX range. */
static void nvtx_of(struct maker *m, const char *domain, uint32_t track, int64_t start, int64_t end, const char *text)
{
	struct marker x = marker_read(m->markers, str_from(text), domain ? str_from(domain) : (struct str){0}, 0);
	build_span(&m->b.b, &(struct span_row){.start_ns = start, .dur_ns = end - start, .ext_id = ID_NONE, .link_id = x.link_id, .aux_id = -1,
	                                       .name = x.name, .track = track, .args = x.args,
	                                       .cat = build_cat(&m->b.b, builder_text(&m->b, domain ? domain : "nvtx")), .kind = x.kind});
}

static void nvtx(struct maker *m, uint32_t track, int64_t start, int64_t end, const char *text)
{
	nvtx_of(m, NULL, track, start, end, text);
}

/* What DLProf records of a call: the stack of functions around the marker. */
static void marked(struct maker *m, int64_t start, int64_t end, const char *stack, const char *op)
{
	char text[512];
	snprintf(text, sizeof text, "{'traceMarker': ['a.py:1', 'a.py:2'], 'funcStack': '%s'}", stack);
	nvtx(m, m->main, start - 1, end + 1, text);
	snprintf(text, sizeof text, "{'mod': 'torch.nn.functional', 'op': '%s', 'args': []}", op);
	nvtx(m, m->main, start, end, text);
}

static void call(struct maker *m, uint32_t track, int64_t start, int64_t end, const char *name)
{
	builder_call(&m->b, track, name, start, end, ID_NONE);
}

static void work(struct maker *m, int device, int64_t start, int64_t end, int64_t correlation)
{
	struct gpu_row r = builder_gpu_row(&m->b, device, GPU_KERNEL, "kernel", start, end);
	r.corr_id = correlation;
	build_gpu(&m->b.b, &r);
}

/* A launch and what it launched. */
static void launch(struct maker *m, uint32_t track, int64_t start, int64_t end, int device, int64_t gpu_start, int64_t gpu_end)
{
	builder_launch(&m->b, track, start, end, device, "kernel", gpu_start, gpu_end);
}

static const struct ops *finish(struct maker *m)
{
	markers_free(m->markers);
	builder_finish(&m->b, PASS_OPS);
	const struct ops *o = m->p->ops;
	uint32_t sum = 0;
	for (uint32_t i = 0; i < o->n_ops; i++)
		sum += o->op[i].instances;
	assert_int_equal(sum, o->n_instances);
	for (uint32_t g = 0; g < m->p->gpu_op.rows.n; g++)
		assert_true(o->of_gpu[g] < o->n_instances);
	return o;
}

static void end(struct maker *m)
{
	arena_release(&m->arena);
	profile_free(m->p);
}

/* The op with this id. */
static const struct op *op(const struct ops *o, const char *id)
{
	for (uint32_t i = 0; i < o->n_ops; i++)
		if (str_eqc(o->op[i].id, id))
			return &o->op[i];
	fail_msg("no op %s", id);
	return NULL;
}

static const struct op_instance *first(const struct ops *o, const char *id)
{
	return &o->instance[op(o, id)->first];
}

/* --- names ------------------------------------------------------------------------------------------------------ */

/* a calls b twice, b calls conv1d twice: four places, four ops; the second time around the same ones. */
static void test_function_stacks(void **state)
{
	static const char *const stack[] = {"/a/b/conv1d", "/a/b/conv1d(2)", "/a/b(2)/conv1d", "/a/b(2)/conv1d(2)"};
	static const char *const id[] = {"CONV1D_1", "CONV1D_2", "CONV1D_3", "CONV1D_4"};
	struct maker m;
	begin(&m);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 4; i++)
			marked(&m, 1000 * round + 100 * i + 10, 1000 * round + 100 * i + 90, stack[i], "conv1d");
	const struct ops *o = finish(&m);
	assert_int_equal(o->origin, OPS_MARKERS);
	assert_int_equal(o->n_ops, 4);
	for (int i = 0; i < 4; i++) {
		assert_str_equal(op(o, id[i])->name, stack[i]);
		assert_str_equal(op(o, id[i])->type, "conv1d");
		assert_int_equal(op(o, id[i])->instances, 2);
		assert_int_equal(op(o, id[i])->direction, DIR_FORWARD);
		assert_true(op(o, id[i])->tc_eligible);
	}
	assert_str_equal(op(o, "CONV1D_1")->stack, "a.py:1\na.py:2");
	assert_str_equal(((struct str){op(o, "CONV1D_3")->name.p, op(o, "CONV1D_3")->path_n}), "/a/b(2)/");
	end(&m);
	(void)state;
}

static void test_module_and_lambda(void **state)
{
	struct maker m;
	begin(&m);
	marked(&m, 10, 20, "/<module>/Net::f/<lambda>/cuda", "cuda");
	const struct ops *o = finish(&m);
	assert_str_equal(op(o, "CUDA_1")->name, "/module/Net::f/lambda/cuda");
	end(&m);
	(void)state;
}

/* Without function stacks the lines tell calls at one place apart. */
static void test_lines(void **state)
{
	struct maker m;
	begin(&m);
	for (int i = 0; i < 4; i++) {
		nvtx(&m, m.main, 100 * i, 100 * i + 50, i % 2 ? "{'traceMarker': ['a.py:7']}" : "{'traceMarker': ['a.py:5']}");
		nvtx(&m, m.main, 100 * i + 10, 100 * i + 40, "{'mod': 'torch', 'op': 'relu', 'args': []}");
	}
	const struct ops *o = finish(&m);
	assert_int_equal(o->n_ops, 2);
	assert_str_equal(op(o, "RELU_1")->name, "/relu");
	assert_str_equal(op(o, "RELU_2")->name, "/relu(2)");
	assert_int_equal(op(o, "RELU_2")->instances, 2);
	end(&m);
	(void)state;
}

/* Annotations make the path, but not those that count iterations, and of a large family its numbers do not. */
static void test_annotations(void **state)
{
	struct maker m;
	char text[32];
	begin(&m);
	for (int i = 0; i < 3; i++) {
		snprintf(text, sizeof text, "Epoch #%d:", i);
		nvtx(&m, m.main, 1000 * i - 20, 1000 * i + 920, text);
		nvtx(&m, m.main, 1000 * i - 10, 1000 * i + 910, "loopy 1");
		snprintf(text, sizeof text, "iteration %d", i);
		nvtx(&m, m.main, 1000 * i, 1000 * i + 900, text);
		nvtx(&m, m.main, 1000 * i + 100, 1000 * i + 800, "encoder 2");
		nvtx(&m, m.main, 1000 * i + 200, 1000 * i + 300, "aten::mm, seq = 1");
	}
	for (int i = 0; i < 100; i++) {
		snprintf(text, sizeof text, "sentence-%d", i);
		nvtx(&m, m.main, 10000 + 100 * i, 10000 + 100 * i + 90, text);
		nvtx(&m, m.main, 10000 + 100 * i + 10, 10000 + 100 * i + 20, "aten::add");
	}
	const struct ops *o = finish(&m);
	assert_int_equal(o->origin, OPS_AUTOGRAD);
	assert_int_equal(o->n_ops, 2);
	assert_str_equal(op(o, "MM_1")->name, "/loopy 1/encoder 2/mm");
	assert_int_equal(op(o, "MM_1")->instances, 3);
	assert_str_equal(op(o, "ADD_1")->name, "/sentence-#/add");
	assert_int_equal(op(o, "ADD_1")->instances, 100);
	end(&m);
	(void)state;
}

/* Layers are ops, the call of the network around them a group; without layers it is the op. */
static void test_tensorrt(void **state)
{
	struct maker m;
	begin(&m);
	nvtx(&m, m.main, 0, 1000, "detect");
	nvtx_of(&m, "TensorRT", m.main, 1000, 1100, "ExecutionContext::enqueue");
	nvtx_of(&m, "TensorRT", m.main, 1010, 1020, "/net/Conv2D_12 + fusion.3 + pool2");
	nvtx_of(&m, "TensorRT", m.main, 10, 500, "ExecutionContext::enqueue");
	nvtx_of(&m, "TensorRT", m.main, 20, 100, "/net/conv_1/Conv + /net/Relu");
	nvtx_of(&m, "TensorRT", m.main, 110, 200, "Reformatting CopyNode for Input Tensor 0 to /net/conv_1/Conv");
	launch(&m, m.main, 30, 40, 0, 50, 60);
	call(&m, m.main, 300, 310, "cudaEventRecord");
	nvtx_of(&m, "TensorRT", m.main, 2000, 2100, "ExecutionContext::enqueue");
	const struct ops *o = finish(&m);
	assert_int_equal(o->origin, OPS_LIBRARY);
	assert_str_equal(op(o, "CONV + RELU_1")->name, "/detect/ExecutionContext::enqueue/net/conv_1/Conv + /net/Relu");
	assert_int_equal(op(o, "CONV + RELU_1")->path_n, strlen("/detect/ExecutionContext::enqueue/net/conv_1/"));
	assert_int_equal(first(o, "CONV + RELU_1")->gpu_ns, 10);
	assert_str_equal(op(o, "REFORMATTING COPYNODE_1")->type, "Reformatting CopyNode");
	assert_true(op(o, "CONV + RELU_1")->tc_eligible);
	assert_str_equal(op(o, "CONV2D + FUSION + POOL2_1")->type, "Conv2D + fusion + pool2");
	assert_true(op(o, "CUDAEVENTRECORD_1")->unassociated);
	assert_str_equal(op(o, "EXECUTIONCONTEXT::ENQUEUE_1")->name, "/ExecutionContext::enqueue");
	end(&m);
	(void)state;
}

/* --- what belongs to an op -------------------------------------------------------------------------------------- */

static void test_times(void **state)
{
	struct maker m;
	begin(&m);
	marked(&m, 100, 200, "/f/conv2d", "conv2d");
	nvtx(&m, m.main, 105, 190, "aten::conv2d, seq = 0");
	nvtx(&m, m.main, 106, 180, "aten::cudnn_convolution");
	launch(&m, m.main, 110, 120, 0, 150, 160);
	call(&m, m.main, 112, 115, "cuLaunchKernel"); /* within the call before */
	launch(&m, m.main, 130, 140, 0, 155, 170);
	launch(&m, m.main, 141, 145, 0, 190, 195);
	call(&m, m.main, 185, 189, "cudaEventRecord");
	const struct ops *o = finish(&m);
	const struct op_instance *x = first(o, "CONV2D_1");
	assert_int_equal(o->n_ops, 1);
	assert_int_equal(x->api_ns, 10 + 10 + 4 + 4);
	assert_int_equal(x->overhead_ns, 100 - 28);
	assert_int_equal(x->gpu_ns, 20 + 5);
	assert_int_equal(x->idle_ns, 195 - 150 - 25);
	assert_int_equal(x->gpu_n, 3);
	for (uint32_t i = 1; i < x->gpu_n; i++)
		assert_true(m.p->gpu_op.start_ns[o->gpu[x->gpu_first + i]] >= m.p->gpu_op.start_ns[o->gpu[x->gpu_first + i - 1]]);
	end(&m);
	(void)state;
}

/* Work on two GPUs at the same time is twice the work. */
static void test_two_gpus(void **state)
{
	struct maker m;
	begin(&m);
	nvtx(&m, m.main, 100, 200, "aten::mm, seq = 1");
	launch(&m, m.main, 110, 112, 0, 120, 140);
	launch(&m, m.main, 113, 114, 1, 120, 140);
	launch(&m, m.main, 115, 116, 1, 150, 155);
	const struct ops *o = finish(&m);
	assert_int_equal(first(o, "MM_1")->gpu_ns, 20 + 20 + 5);
	assert_int_equal(first(o, "MM_1")->idle_ns, 10);
	end(&m);
	(void)state;
}

/* A call that is longer than its op leaves no overhead, and none that is negative. */
static void test_call_beyond_its_op(void **state)
{
	struct maker m;
	begin(&m);
	nvtx(&m, m.main, 100, 200, "aten::mm, seq = 1");
	call(&m, m.main, 110, 400, "cudaDeviceSynchronize");
	const struct ops *o = finish(&m);
	assert_int_equal(first(o, "MM_1")->overhead_ns, 0);
	assert_int_equal(first(o, "MM_1")->api_ns, 290);
	end(&m);
	(void)state;
}

/* Calls outside ops: equal ones behind the same op are one; work of no recorded call is in no op. */
static void test_unassociated(void **state)
{
	struct maker m;
	begin(&m);
	for (int i = 0; i < 2; i++) {
		call(&m, m.main, 1000 * i + 10, 1000 * i + 20, "cudaMalloc");
		nvtx(&m, m.main, 1000 * i + 100, 1000 * i + 200, "aten::mm, seq = 1");
		launch(&m, m.main, 1000 * i + 300, 1000 * i + 310, 0, 1000 * i + 320, 1000 * i + 350);
		nvtx(&m, m.main, 1000 * i + 400, 1000 * i + 500, "aten::add, seq = 1");
		call(&m, m.main, 1000 * i + 600, 1000 * i + 610, "cudaLaunchKernel");
	}
	work(&m, 0, 5, 8, 999);
	const struct ops *o = finish(&m);
	assert_str_equal(op(o, "CUDALAUNCHKERNEL_1")->name, "unassociated_cudaLaunchKernel");
	assert_str_equal(op(o, "CUDALAUNCHKERNEL_2")->name, "unassociated_cudaLaunchKernel");
	assert_int_equal(op(o, "CUDALAUNCHKERNEL_1")->instances, 2);
	assert_int_equal(op(o, "CUDALAUNCHKERNEL_1")->path_n, 0);
	assert_int_equal(op(o, "CUDALAUNCHKERNEL_1")->direction, DIR_OTHER);
	assert_int_equal(first(o, "CUDALAUNCHKERNEL_1")->gpu_ns, 30);
	assert_int_equal(first(o, "CUDALAUNCHKERNEL_1")->overhead_ns, 0);
	/* The first cudaMalloc stands behind no op, the second behind add. */
	assert_int_equal(op(o, "CUDAMALLOC_1")->instances, 1);
	assert_int_equal(op(o, "CUDAMALLOC_2")->instances, 1);
	assert_int_equal(first(o, "UNATTRIBUTED_1")->span, ROW_NONE);
	assert_int_equal(first(o, "UNATTRIBUTED_1")->gpu_ns, 3);
	end(&m);
	(void)state;
}

/* Without any op: one op for each name of call. */
static void test_no_ops(void **state)
{
	struct maker m;
	begin(&m);
	for (int i = 0; i < 3; i++)
		launch(&m, i % 2 ? m.main : m.other, 100 * i, 100 * i + 10, 0, 100 * i + 20, 100 * i + 30);
	call(&m, m.main, 500, 600, "cudaDeviceSynchronize");
	const struct ops *o = finish(&m);
	assert_int_equal(o->origin, OPS_NONE);
	assert_int_equal(o->n_ops, 2);
	assert_int_equal(op(o, "CUDALAUNCHKERNEL_1")->instances, 3);
	end(&m);
	(void)state;
}

/* --- threads ---------------------------------------------------------------------------------------------------- */

/* A Kineto op: its calls have its external id, wherever they are made. */
static void test_call_of_other_thread(void **state)
{
	struct maker m;
	begin(&m);
	struct span_row mm = builder_span_row(&m.b, m.main, SPAN_OP, "aten::mm", 100, 200);
	struct span_row launch = builder_span_row(&m.b, m.other, SPAN_CALL, "cudaLaunchKernel", 150, 160);
	mm.ext_id = launch.ext_id = 5;
	launch.link_id = 1;
	build_span(&m.b.b, &mm);
	build_span(&m.b.b, &launch);
	builder_call(&m.b, m.main, "cudaEventRecord", 150, 160, 2);
	work(&m, 0, 170, 180, 1);
	const struct ops *o = finish(&m);
	assert_int_equal(o->origin, OPS_KINETO);
	assert_int_equal(o->n_ops, 1);
	assert_int_equal(first(o, "MM_1")->gpu_ns, 10);
	assert_int_equal(first(o, "MM_1")->api_ns, 20);
	end(&m);
	(void)state;
}

/* A backward op has name and type of the forward op with its number; one without is of type backward. */
static void test_backward(void **state)
{
	struct maker m;
	begin(&m);
	nvtx(&m, m.main, 0, 500, "encoder");
	nvtx(&m, m.main, 10, 100, "aten::mm, seq = 7, op_id = 1, sizes = [[4, 5], [5, 6]]");
	nvtx(&m, m.other, 1000, 1100, "autograd::engine::evaluate_function: MmBackward0");
	nvtx(&m, m.other, 1010, 1090, "MmBackward0, seq = 7");
	launch(&m, m.other, 1020, 1030, 0, 1040, 1055);
	nvtx(&m, m.other, 1200, 1300, "autograd::engine::evaluate_function: AddBackward0");
	nvtx(&m, m.other, 1210, 1290, "AddBackward0, seq = 99");
	const struct ops *o = finish(&m);
	const struct op *f = op(o, "MM_1"), *b = op(o, "MM_2"), *lost = op(o, "BACKWARD_1");
	assert_int_equal(f->direction, DIR_FORWARD);
	assert_int_equal(b->direction, DIR_BACKWARD);
	assert_str_equal(b->name, "/encoder/mm");
	assert_str_equal(b->type, "mm");
	assert_true(b->tc_eligible);
	assert_int_equal(b->forward, f - o->op);
	assert_int_equal(f->forward, ROW_NONE);
	assert_int_equal(first(o, "MM_2")->gpu_ns, 15);
	assert_str_equal(lost->name, "/AddBackward0");
	assert_str_equal(lost->type, "backward");
	struct op_shapes s;
	op_instance_shapes(o, m.p, b->first, &m.arena, &s);
	assert_str_equal(s.inputs, "<4, 5>; <5, 6>");
	end(&m);
	(void)state;
}

/* Without ranges of the backward pass, what its threads launch belongs to the call of backward() that goes on. */
static void test_backward_without_ranges(void **state)
{
	struct maker m;
	begin(&m);
	nvtx(&m, m.main, 100, 500, "{'mod': 'Tensor', 'op': 'backward', 'args': []}");
	launch(&m, m.other, 200, 210, 0, 220, 260);
	launch(&m, m.other, 600, 610, 0, 620, 660);
	const struct ops *o = finish(&m);
	assert_int_equal(op(o, "BACKWARD_1")->direction, DIR_BACKWARD);
	assert_int_equal(first(o, "BACKWARD_1")->gpu_ns, 40);
	assert_int_equal(first(o, "CUDALAUNCHKERNEL_1")->gpu_ns, 40);
	end(&m);
	(void)state;
}

/* --- shapes, what is stated ------------------------------------------------------------------------------------- */

static struct op_shapes shapes_of(const char *op_name, const char *args)
{
	static struct maker m;
	static struct arena kept;
	char text[1024];
	struct op_shapes s, out;
	begin(&m);
	snprintf(text, sizeof text, "{'mod': 'torch.nn.functional', 'op': '%s', 'args': [%s]}", op_name, args);
	nvtx(&m, m.main, 0, 10, text);
	const struct ops *o = finish(&m);
	op_instance_shapes(o, m.p, 0, &m.arena, &s);
	out = (struct op_shapes){arena_str(&kept, s.data_types), arena_str(&kept, s.inputs), arena_str(&kept, s.parameters),
	                         arena_str(&kept, s.outputs), s.assumed};
	end(&m);
	return out;
}
#define TENSOR(name, shape, dtype) "{'name': '" name "', 'type': 'tensor', 'shape': " shape ", 'dtype': '" dtype "'}"

static void test_shapes(void **state)
{
	struct op_shapes s = shapes_of("conv2d", TENSOR("", "(2, 3, 8, 8)", "float16") ", " TENSOR("", "(4, 3, 3, 3)", "float16") ", "
	                                         TENSOR("bias", "(4,)", "float16"));
	assert_str_equal(s.inputs, "<N:2, C:3, H:8, W:8>; <K:4, C:3, R:3, S:3>; <4>");
	assert_str_equal(s.data_types, "float16");
	assert_str_equal(s.outputs, "<N:2, K:4, P:6, Q:6>");
	assert_str_equal(s.parameters, "");
	assert_true(s.assumed);
	s = shapes_of("conv2d", TENSOR("", "(2, 3, 8, 8)", "float16") ", " TENSOR("", "(4, 3, 3, 3)", "float16") ", "
	                        "{'name': 'stride', 'type': 'tuple', 'value': (2, 2)}, {'name': 'padding', 'type': 'int', 'value': 1}");
	assert_str_equal(s.outputs, "<N:2, K:4, P:4, Q:4>");
	assert_false(s.assumed);
	s = shapes_of("conv2d", TENSOR("", "(2, 3, 2, 2)", "float16") ", " TENSOR("", "(4, 3, 3, 3)", "float16"));
	assert_str_equal(s.outputs, ""); /* the kernel is larger than the image */
	s = shapes_of("linear", TENSOR("", "(7, 5)", "float32") ", " TENSOR("", "(6, 5)", "float32"));
	assert_str_equal(s.inputs, "<N:7, K:5>; <M:6, K:5>");
	assert_str_equal(s.outputs, "<N:7, M:6>");
	s = shapes_of("relu", TENSOR("", "(7, 5)", "float32"));
	assert_str_equal(s.inputs, "<7, 5>");
	assert_str_equal(s.outputs, "");
	(void)state;
}

/* A DLProf database says itself what its ops are. */
static void test_stated(void **state)
{
	struct maker m;
	begin(&m);
	for (int i = 0; i < 2; i++) {
		struct span_row r = builder_span_row(&m.b, m.main, SPAN_OP, "relu", 100 * i, 100 * i + 50);
		r.args = builder_text_args(&m.b, (const char *const[]){"op_id", "RELU_7", "op_name", "/a/relu[2]", "op_type", "relu", "direction", "bprop",
		                                                       "stack", "x.py:3\ny.py:4", NULL});
		build_span(&m.b.b, &r);
	}
	const struct ops *o = finish(&m);
	assert_int_equal(o->origin, OPS_STATED);
	assert_int_equal(o->n_ops, 1);
	assert_str_equal(op(o, "RELU_7")->name, "/a/relu[2]");
	assert_str_equal(op(o, "RELU_7")->stack, "x.py:3\ny.py:4");
	assert_int_equal(op(o, "RELU_7")->instances, 2);
	assert_int_equal(op(o, "RELU_7")->direction, DIR_BACKWARD);
	assert_int_equal(op(o, "RELU_7")->path_n, 3);
	end(&m);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_function_stacks), cmocka_unit_test(test_module_and_lambda), cmocka_unit_test(test_lines),
		cmocka_unit_test(test_annotations), cmocka_unit_test(test_tensorrt), cmocka_unit_test(test_times), cmocka_unit_test(test_two_gpus),
		cmocka_unit_test(test_call_beyond_its_op), cmocka_unit_test(test_unassociated), cmocka_unit_test(test_no_ops),
		cmocka_unit_test(test_call_of_other_thread), cmocka_unit_test(test_backward), cmocka_unit_test(test_backward_without_ranges),
		cmocka_unit_test(test_shapes), cmocka_unit_test(test_stated),
	};
	return RUN_TESTS(tests);
}
