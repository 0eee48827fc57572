/* What kernels are by name: rows of real names from traces of V100, A100, H100, B200, MI300 and what must be said of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "op/kernels.h"

static const struct row {
	const char *name;
	enum kernel_class class;
	enum tri tensor_core;
} rows[] = {
	{"volta_sgemm_64x64_nt", KERNEL_GEMM, TRI_NO},
	{"volta_h884gemm_256x128_ldg8_tn", KERNEL_GEMM, TRI_YES},
	{"volta_s884gemm_fp16_64x64_ldg8_f2f_nn", KERNEL_GEMM, TRI_YES},
	{"volta_scudnn_128x64_relu_interior_nn_v1", KERNEL_CONV, TRI_NO},
	{"turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn", KERNEL_GEMM, TRI_YES},
	{"ampere_sgemm_128x64_tn", KERNEL_GEMM, TRI_NO},
	{"ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn", KERNEL_GEMM, TRI_YES},
	{"sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas",
	 KERNEL_GEMM, TRI_NO},
	{"sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize96x128x32_stage4_warpsize2x2x1_tensor16x8x16_kernel", KERNEL_GEMM, TRI_YES},
	{"sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16_stage4_warpsize2x2x1_g1_tensor16x8x8_kernel_cudnn",
	 KERNEL_CONV, TRI_YES},
	{"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
	 KERNEL_GEMM, TRI_YES},
	{"void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn_align8>(cutlass_80_wmma::Params)",
	 KERNEL_GEMM, TRI_YES},
	{"void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(Params)", KERNEL_GEMM, TRI_NO},
	{"nvjet_tst_64x64_64x16_2x1_2cta_v_bz_bias_TNT", KERNEL_GEMM, TRI_YES},
	{"bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32_sm100f", KERNEL_GEMM, TRI_YES},
	{"Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT64x32x256_MI16x16x1_SN", KERNEL_GEMM, TRI_YES},
	{"igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt64x128x32", KERNEL_CONV, TRI_YES},
	{"void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4, false>>", KERNEL_ATTENTION, TRI_YES},
	{"fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext", KERNEL_ATTENTION, TRI_YES},
	{"attn_fwd", KERNEL_ATTENTION, TRI_UNKNOWN},
	{"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", KERNEL_COMM, TRI_NO},
	{"ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", KERNEL_COMM, TRI_NO},
	{"void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)", KERNEL_COMM, TRI_NO},
	{"void at::native::vectorized_elementwise_kernel<4, fbgemm_gpu::_float_to_hfp8_gpu(at::Tensor const&)>", KERNEL_ELEMENTWISE, TRI_NO},
	{"_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1", KERNEL_GEMM, TRI_YES},
	{"_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu", KERNEL_GEMM, TRI_YES},
	{"_matmul_ogs_NNT_fp32xfp32xfp32_16x128x256x1", KERNEL_GEMM, TRI_UNKNOWN},
	{"_gemm_afp4_wfp4_kernel", KERNEL_GEMM, TRI_YES},
	{"_gemm_afp4wfp4_reduce_kernel", KERNEL_REDUCE, TRI_NO},
	{"_fused_moe_kernel_mxfp4_silu", KERNEL_GEMM, TRI_YES},
	{"flatmm_uk_gfx9_f16f8_128x256x128_1x4x1_16x16x32", KERNEL_GEMM, TRI_YES},
	{"_ZN5aiter18fmha_fwd_hd128_fp8E", KERNEL_ATTENTION, TRI_YES},
	{"kernel_unified_attention_3d", KERNEL_ATTENTION, TRI_UNKNOWN},
	{"void cask_plugin__5x_cudnn::xmma__5x_cudnn::init_device_workspace_kernel<xmma__5x_cudnn::implicit_gemm::dgrad::Params>(Params, bool)",
	 KERNEL_OTHER, TRI_NO},
	{"_finalize_matmul_scatter_bf16", KERNEL_REDUCE, TRI_NO},
	{"reduce_segments", KERNEL_ATTENTION, TRI_NO},
	{"MIOpenBatchNormFwdTrainSpatialFinalMeanVariance", KERNEL_NORM, TRI_NO},
	{"__amd_rocclr_fillBufferAligned.kd", KERNEL_ELEMENTWISE, TRI_NO},
	{"__amd_rocclr_copyBuffer.kd", KERNEL_COPY, TRI_NO},
	{"void <unnamed>::indexing_backward_kernel<float, (int)4>(const long *, const long *, const T1 *, T1 *)", KERNEL_EMBEDDING, TRI_NO},
	{"at::native::xpu::ReduceKernel<1, at::native::xpu::ReduceOp<float>, 4>", KERNEL_REDUCE, TRI_NO},
	{"at::native::xpu::DispatchSoftmaxForwardKernelFunctor<8>", KERNEL_SOFTMAX, TRI_NO},
	{"at::native::xpu::BatchNormTransformInputKernelFunctor<float>", KERNEL_NORM, TRI_NO},
	{"at::native::xpu::VectorizedElementwiseKernel<4, at::native::xpu::GeluErfFunctor<float> >", KERNEL_ELEMENTWISE, TRI_NO},
	{"at::native::xpu::DistributionElementwiseKernelFunctor<float>", KERNEL_RANDOM, TRI_NO},
	{"gen_conv", KERNEL_CONV, TRI_UNKNOWN},
	{"micro_sdpa", KERNEL_ATTENTION, TRI_UNKNOWN},
	{"fc-12", KERNEL_GEMM, TRI_UNKNOWN},
	{"batch_matmul-3", KERNEL_GEMM, TRI_UNKNOWN},
	{"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float>>>", KERNEL_REDUCE, TRI_NO},
	{"void fbgemm_gpu::permute_2D_lengths_kernel<int>(int, int, int const*)", KERNEL_OTHER, TRI_NO},
	{"void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>(cudnnTensorStruct)", KERNEL_NORM, TRI_NO},
	{"triton_poi_fused_add_cos_sin_0", KERNEL_TRITON, TRI_NO},
	{"triton_tem_fused_mm_1", KERNEL_TRITON, TRI_UNKNOWN},
	{"triton_red_fused_add_mean_mul_pow_rsqrt_0", KERNEL_TRITON, TRI_NO},
	{"cutlass3x_sm100_simt_sgemm_f32_f32_f32_f32_f32_64x64x16_1x1x1_3_tnn_align1_bias_f32_relu", KERNEL_GEMM, TRI_NO},
	{"cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_3_64x128x128_4x1x1_kernel0_0", KERNEL_ATTENTION, TRI_YES},
	{"fmha_cutlassF_f32_aligned_64x64_rf_sm75(PyTorchMemEffAttention::Params)", KERNEL_ATTENTION, TRI_NO},
	{"fmha_cutlassB_f32_aligned_64x64_k64_sm80(PyTorchMemEffAttention::Params)", KERNEL_ATTENTION, TRI_YES},
	{"void pytorch_flash::flash_bwd_dot_do_o_kernel<true, pytorch_flash::Flash_bwd_kernel_traits<64>>", KERNEL_ATTENTION, TRI_NO},
	{"void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<cutlass::bfloat16_t>>>", KERNEL_ATTENTION,
	 TRI_YES},
	{"_Z33ncclBroadcastRingLLKernel_copy_i88ncclColl", KERNEL_COMM, TRI_NO},
	{"Cijk_Ailk_Bljk_SB_MT128x64x8_SE_K1", KERNEL_GEMM, TRI_UNKNOWN},
	{"Cijk_SB_Bias_AS_SAV_PostGSU4_VW4", KERNEL_GEMM, TRI_NO},
	{"miopenSp3AsmConv_v30_3_1_gfx9_fp16_dot2_f3x2_stride1", KERNEL_CONV, TRI_NO},
	{"generateWinogradTilesKernel", KERNEL_CONV, TRI_NO},
	{"my_own_kernel", KERNEL_UNKNOWN, TRI_UNKNOWN},
	{"", KERNEL_UNKNOWN, TRI_UNKNOWN},
};

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct kernel_info got = kernel_classify(str_from(rows[i].name), NULL);
		if (got.class != rows[i].class || got.tensor_core != rows[i].tensor_core)
			fail_msg("%s: class %s, tensor core %d; expected %s, %d", rows[i].name, kernel_class_name[got.class],
			         got.tensor_core, kernel_class_name[rows[i].class], rows[i].tensor_core);
	}
}

static void test_types(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		enum dtype dtype;
		const char *arch;
		bool sparse;
	} types[] = {
		{"volta_sgemm_64x64_nt", DTYPE_FLOAT32, "sm70", false},
		{"volta_h884gemm_256x128_ldg8_tn", DTYPE_FLOAT16, "sm70", false},
		{"turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn", DTYPE_FLOAT16, "sm75", false},
		{"ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn", DTYPE_BFLOAT16, "sm80", false},
		{"sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16_tensor16x8x8_kernel", DTYPE_FLOAT32,
		 "sm80", false},
		{"sm80_xmma_sparse_gemm_f16f16_f16f32_f32_tn_n_tilesize96x128x32_tensor16x8x32_kernel", DTYPE_FLOAT16, "sm80", true},
		{"void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4>(Params)", DTYPE_FLOAT32, "sm80", false},
		{"nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NTN", DTYPE_FLOAT16, "", false},
		{"nvjet_sm100_tst_64x8_64x16_2x4_h_bz_splitK_TNT", DTYPE_BFLOAT16, "sm100", false},
		{"nvjet_qqtst_128x256_128x6_2x1_2cta_v_bz_TNT", DTYPE_FP8_E4M3, "", false},
		{"bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_sm100f", DTYPE_UNKNOWN, "sm100", false},
		{"Cijk_Ailk_Bjlk_BBS_BH_Bias_HAS_SAV_UserArgs_MT64x32x64_MI16x16x1_SN_ISA942", DTYPE_BFLOAT16, "gfx942", false},
		{"volta_cgemm_32x32_tn", DTYPE_UNKNOWN, "sm70", false},
		{"void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>", DTYPE_UNKNOWN, "", false},
		{"", DTYPE_UNKNOWN, "", false},
	};
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		struct kernel_info k = kernel_classify(str_from(types[i].name), NULL);
		if (k.dtype != types[i].dtype || strcmp(k.arch, types[i].arch) != 0 || k.sparse != types[i].sparse)
			fail_msg("%s: type %d, built for %s, sparse %d", types[i].name, k.dtype, k.arch, k.sparse);
	}
}

/* A compiler's dot product runs on Tensor Cores when its operands are narrow; of float32 the name does not tell. */
static void test_dot(void **state)
{
	(void)state;
	struct kernel_info dot = kernel_classify(STR("triton_tem_fused_mm_1"), NULL), own = kernel_classify(STR("my_own_kernel"), NULL);
	assert_int_equal(kernel_tensor_core(dot, DTYPE_BFLOAT16), TRI_YES);
	assert_int_equal(kernel_tensor_core(dot, DTYPE_FLOAT32), TRI_UNKNOWN);
	assert_int_equal(kernel_tensor_core(dot, DTYPE_UNKNOWN), TRI_UNKNOWN);
	assert_int_equal(kernel_tensor_core(own, DTYPE_BFLOAT16), TRI_UNKNOWN);
	assert_int_equal(kernel_tensor_core(kernel_classify(STR("volta_sgemm_64x64_nt"), NULL), DTYPE_FLOAT16), TRI_NO);
}

static void test_plugin_rule(void **state)
{
	(void)state;
	assert_true(kernel_uses_tc_listed(STR("sm80_xmma_gemm_f32f32_f32f32_f32_ffma")));
	assert_true(kernel_uses_tc_listed(STR("volta_h884gemm_256x128")));
	assert_false(kernel_uses_tc_listed(STR("nvjet_tst_64x64")));
	assert_false(kernel_uses_tc_listed(STR("volta_sgemm_64x64_nt")));
}

static void test_ops(void **state)
{
	(void)state;
	assert_true(op_tc_eligible(STR("aten::addmm")));
	assert_true(op_tc_eligible(STR("BmmBackward0")));
	assert_false(op_tc_eligible(STR("aten::add")));
	assert_false(op_tc_eligible(STR("addmm")));
	assert_true(op_is_comm(STR("nccl:all_reduce")));
	assert_true(op_is_comm(STR("c10d::allreduce_")));
	assert_false(op_is_comm(STR("aten::all")));
	assert_true(op_is_comm(STR("torch.distributed.all_reduce")));
	assert_true(op_is_comm(STR("torch.distributed.isend")));
	assert_true(op_is_comm(STR("torch.distributed.monitored_barrier")));
	assert_false(op_is_comm(STR("torch.distributed.get_rank")));
	assert_false(op_is_comm(STR("torch.distributed.ddp.reducer::copy_bucket_to_grad")));
	assert_false(op_is_comm(STR("torch.distributed.init_process_group")));
	assert_false(op_is_comm(STR("torch.all")));
}

static int load(struct user_rules *u, const char *text, struct err *e)
{
	char path[] = "/tmp/opscope_rules_XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	int rc = user_rules_add_kernels(u, path, e);
	unlink(path);
	return rc;
}

/* Rows of a file come first, for those who have them; one that is not a rule is named with its line. */
static void test_user_rules(void **state)
{
	(void)state;
	struct err e = {0};
	struct arena a = {0};
	struct user_rules *u = user_rules_new(&a), *other = user_rules_new(&a);
	assert_int_equal(load(u, "/* mine */\n\nKERNEL(\"^my_own_\", GEMM, YES)\n  KERNEL ( \"volta_sgemm*_tt\" , OTHER , UNKNOWN )\n", &e), 0);
	assert_int_equal(kernel_classify(STR("my_own_kernel"), u).class, KERNEL_GEMM);
	assert_int_equal(kernel_classify(STR("my_own_kernel"), u).tensor_core, TRI_YES);
	assert_int_equal(kernel_classify(STR("volta_sgemm_64x64_tt"), u).class, KERNEL_OTHER);
	assert_int_equal(kernel_classify(STR("volta_sgemm_64x64_nt"), u).class, KERNEL_GEMM);
	assert_int_equal(load(other, "KERNEL(\"^my_own_\", SORT, NO)\n", &e), 0);
	assert_int_equal(kernel_classify(STR("my_own_kernel"), other).class, KERNEL_SORT);
	assert_int_equal(kernel_classify(STR("my_own_kernel"), u).class, KERNEL_GEMM);
	assert_int_equal(kernel_classify(STR("my_own_kernel"), NULL).class, KERNEL_UNKNOWN);
	static const char *const bad[] = {"KERNEL(\"a\", GEMM)\n", "KERNEL(\"a\", GEMN, YES)\n", "KERNEL(\"a\", GEMM, MAYBE)\n", "a, b\n",
	                                  "KERNEL(\"\", GEMM, YES)\n", "KERNEL(\"^\", GEMM, YES)\n", "KERNEL(\"^**\", GEMM, YES)\n",
	                                  "KERNEL(\"a\", GEMM, YES\n", "KERNEL(\"a\", GEMM, YES) b\n"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		e = (struct err){0};
		assert_int_equal(load(u, bad[i], &e), -1);
		assert_non_null(strstr(e.msg, ":1: "));
	}
	assert_int_equal(user_rules_add_kernels(u, "/nonexistent/rules", &e), -1);
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_types),
	                                   cmocka_unit_test(test_dot), cmocka_unit_test(test_plugin_rule),
	                                   cmocka_unit_test(test_ops), cmocka_unit_test(test_user_rules)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
