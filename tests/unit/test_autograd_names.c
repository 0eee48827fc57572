/* What names of autograd's ranges say, as torch 1.0 to 2.14 write them. */
#include "test.h"

#include "analysis/names/autograd_names.h"

static void test_classes(void **state)
{
	static const struct {
		const char *name;
		enum autograd_name is;
	} rows[] = {
		{"aten::mm", AUTOGRAD_NONE},
		{"mul", AUTOGRAD_NONE},
		{"", AUTOGRAD_NONE},
		{"Backwardness", AUTOGRAD_NONE},
		{"Tensor.backward", AUTOGRAD_NONE}, /* the call that starts it all, on the caller's thread */
		{"MmBackward0", AUTOGRAD_NODE},
		{"MmBackward", AUTOGRAD_NODE},
		{"SumBackward12", AUTOGRAD_NODE},
		{"torch::autograd::CopyBackwards", AUTOGRAD_NODE},
		{"struct torch::autograd::CopySlices", AUTOGRAD_NODE},
		{"CompiledFunctionBackward", AUTOGRAD_NODE},
		{"ThresholdBackwardBackward0", AUTOGRAD_NODE},
		{"autograd::engine::evaluate_function: MmBackward0", AUTOGRAD_ENGINE},
		{"autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", AUTOGRAD_ACCUMULATE},
		{"torch::autograd::AccumulateGrad", AUTOGRAD_ACCUMULATE},
		{"struct torch::autograd::AccumulateGrad", AUTOGRAD_ACCUMULATE},
		{"aten::threshold_backward", AUTOGRAD_FORMULA},
		{"torch.distributed.ddp.reducer::copy_bucket_to_grad", AUTOGRAD_FORMULA},
		{"torch::distributed::reducer::mul_out", AUTOGRAD_FORMULA},
		{"aten::_log_softmax_backward_data", AUTOGRAD_FORMULA},
		{"aten::cudnn_convolution_backward_weight", AUTOGRAD_FORMULA},
		{"Optimizer.step#SGD.step", AUTOGRAD_OPTIMIZER},
		{"Optimizer.zero_grad#Adam.zero_grad", AUTOGRAD_OPTIMIZER},
		{"torch.optim.adam.Adam.step", AUTOGRAD_OPTIMIZER},
		{"apex.optimizers.FusedAdam.step", AUTOGRAD_OPTIMIZER},
		{"aten::_fused_adamw_", AUTOGRAD_OPTIMIZER},
		{"aten::_amp_foreach_non_finite_check_and_unscale_", AUTOGRAD_OPTIMIZER},
		{"aten::_amp_update_scale_", AUTOGRAD_OPTIMIZER},
		{"GradScaler.unscale_", AUTOGRAD_OPTIMIZER},
		{"GradScaler.update", AUTOGRAD_OPTIMIZER},
		{"GradScaler.scale", AUTOGRAD_NONE},
		{"aten::_foreach_add_", AUTOGRAD_NONE}, /* foreach ops serve others as well: only inside an optimizer's range */
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (autograd_classify(str_from(rows[i].name)) != rows[i].is)
			fail_msg("%s: %d, not %d", rows[i].name, autograd_classify(str_from(rows[i].name)), rows[i].is);
}

static void test_fits(void **state)
{
	static const struct {
		const char *node, *op;
		bool fits;
	} rows[] = {
		{"AddmmBackward0", "aten::addmm", true},
		{"MmBackward", "mm", true},
		{"AddBackward0", "aten::add_", true},
		{"NllLossBackward0", "aten::nll_loss_forward", true},
		{"UnsafeViewBackward0", "aten::_unsafe_view", true},
		{"NativeBatchNormBackward0", "aten::native_batch_norm", true},
		{"MaxPool2DWithIndicesBackward0", "aten::max_pool2d_with_indices", true},
		{"struct ReluBackward0", "aten::relu", true},
		{"ThresholdBackwardBackward0", "aten::threshold_backward", true},
		{"MyFunctionBackward", "MyFunction", true},
		{"MulBackward0", "aten::mm", false},
		{"MulBackward0", "aten::div", false},
		{"Backward", "aten::mm", false},
		{"MmBackward0", "", false},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (autograd_node_fits(str_from(rows[i].node), str_from(rows[i].op)) != rows[i].fits)
			fail_msg("%s and %s", rows[i].node, rows[i].op);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_fits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
