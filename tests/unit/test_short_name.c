/* Short names of kernels: real ones from traces of V100, T4, A100, H100, B200 and AMD, by PyTorch's profiler, Nsight Systems and nvprof. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "op/short_name.h"

static const char *const names[][2] = {
	{"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)",
	 "elementwise<CUDAFunctor_add>"},
	{"void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<c10::Half>, std::array<char *, (unsigned long)3>>(int, T2, T3)",
	 "elementwise<CUDAFunctor_add>"},
	{"void at::native::elementwise_kernel<(int)128, (int)2, void at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float>>>(at::TensorIteratorBase &, const T1 &)::[lambda(int) (instance 1)]>(int, T3)",
	 "elementwise<MulFunctor>"},
	{"void at::native::vectorized_elementwise_kernel<(int)4, void at::native::<unnamed>::pow_tensor_scalar_kernel_impl<float, float>(at::TensorIteratorBase &, T2)::[lambda(float) (instance 1)], std::array<char *, (unsigned long)2>>(int, T2, T3)",
	 "elementwise<pow_tensor_scalar_kernel_impl>"},
	{"void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, unsigned int, float, (int)4, (int)4>>(T3)",
	 "reduce<MeanOps>"},
	{"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<c10::BFloat16, at::native::NormTwoOps<c10::BFloat16, float, c10::BFloat16>, unsigned int, c10::BFloat16, 4> >(at::native::ReduceOp<c10::BFloat16, at::native::NormTwoOps<c10::BFloat16, float, c10::BFloat16>, unsigned int, c10::BFloat16, 4>)",
	 "reduce<NormTwoOps>"},
	{"void at::native::_scatter_gather_elementwise_kernel<(int)128, (int)8, void at::native::_cuda_scatter_gather_internal_kernel<(bool)0, at::native::OpaqueType<(int)4>, long>::operator ()<at::native::TensorAssign>(at::TensorIterator &, long, long, long, const T1 &)::[lambda(int) (instance 1)]>(int, T3)",
	 "scatter_gather<TensorAssign>"},
	{"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<1>, at::native::(anonymous namespace)::BinaryOpScalarFunctor<float, 1, 1, 0>, std::multiplies<float>, float>(at::native::(anonymous namespace)::TensorListMetadata<1>, at::native::(anonymous namespace)::BinaryOpScalarFunctor<float, 1, 1, 0>, std::multiplies<float>, float)",
	 "multi_tensor_apply<BinaryOpScalarFunctor>"},
	{"void at::native::<unnamed>::CatArrayBatchedCopy_aligned16_contig<float, unsigned int, (int)4, (int)128, (int)1>(T1 *, at::native::<unnamed>::CatArrInputTensorMetadata<T1, T2, T4, T5>, at::native::<unnamed>::TensorSizeStride<T2, (unsigned int)4>, int, T2)",
	 "CatArrayBatchedCopy_aligned16_contig"},
	{"void at::native::(anonymous namespace)::cunn_SoftMaxForward<2, float, float, float, at::native::(anonymous namespace)::LogSoftMaxForwardEpilogue>(float*, float*, int)",
	 "cunn_SoftMaxForward"},
	{"void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long, unsigned int, 2, 2, -2, true>(at::cuda::detail::TensorInfo<c10::BFloat16, unsigned int>, at::cuda::detail::TensorInfo<c10::BFloat16 const, unsigned int>, at::cuda::detail::TensorInfo<long const, unsigned int>, int, int, unsigned int, unsigned int, long)",
	 "indexSelectLargeIndex"},
	{"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float, c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, float*, c10::BFloat16*)",
	 "vectorized_layer_norm_kernel"},
	{"void (anonymous namespace)::scaled_upper_triang_masked_softmax_warp_forward<c10::Half, c10::Half, float, 11>(c10::Half*, c10::Half const*, float, int, int, int)",
	 "scaled_upper_triang_masked_softmax_warp_forward"},
	{"void <unnamed>::elementwise_kernel_with_index<int, at::native::arange_cuda_out(const c10::Scalar &, const c10::Scalar &, const c10::Scalar &, at::Tensor &)::[lambda() (instance 1)]::operator ()() const::[lambda() (instance 4)]::operator ()() const::[lambda(long) (instance 1)]>(T1, T2, function_traits<T2>::result_type *)",
	 "elementwise<arange_cuda_out>"},
	{"void at::native::triu_tril_kernel<float, int, false, 2, false>(at::cuda::detail::TensorInfo<float, int>, at::cuda::detail::TensorInfo<float const, int>, long, long, int)",
	 "triu_tril_kernel"},
	{"void at::native::(anonymous namespace)::max_pool_forward_nchw<c10::BFloat16>(int, c10::BFloat16 const*, long, long, long, int, int, int, int, int, int, int, int, int, int, c10::BFloat16*, long*)",
	 "max_pool_forward_nchw"},
	{"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2>(cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2::Params)",
	 "cutlass gemm bf16 256x128x64 sm80"},
	{"void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(cutlass_80_simt_sgemm_128x32_8x5_nn_align1::Params)",
	 "cutlass gemm fp32 128x32x8 sm80"},
	{"void cutlass::Kernel2<cutlass_75_wmma_tensorop_bf16_s161616gemm_bf16_32x32_32x1_nn_align1>(cutlass_75_wmma_tensorop_bf16_s161616gemm_bf16_32x32_32x1_nn_align1::Params)",
	 "cutlass gemm bf16 32x32x32 sm75"},
	{"void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4>(cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4::Params)",
	 "cutlass gemm tf32 128x128x16 sm80"},
	{"void cutlass_cudnn_infer::Kernel<cutlass_tensorop_s1688fprop_optimized_tf32_128x128_16x4_nhwc_align4>(cutlass_tensorop_s1688fprop_optimized_tf32_128x128_16x4_nhwc_align4::Params)",
	 "cutlass conv fprop tf32 128x128x16"},
	{"void cutlass_cudnn_infer::Kernel<cutlass_tensorop_s1688dgrad_optimized_tf32_128x128_16x4_nhwc_unity_stride_align4>(cutlass_tensorop_s1688dgrad_optimized_tf32_128x128_16x4_nhwc_unity_stride_align4::Params)",
	 "cutlass conv dgrad tf32 128x128x16"},
	{"void cutlass_cudnn_train::Kernel<cutlass_tensorop_s1688wgrad_optimized_tf32_256x128_16x3_nhwc_align4>(cutlass_tensorop_s1688wgrad_optimized_tf32_256x128_16x3_nhwc_align4::Params)",
	 "cutlass conv wgrad tf32 256x128x16"},
	{"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
	 "xmma gemm bf16 128x128x64 sm90"},
	{"sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_stage4_warpsize2x2x1_g1_tensor16x8x8_alignc4_execute_kernel_cudnn",
	 "xmma conv fprop tf32 128x128x16 sm80"},
	{"sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize192x128x32_stage4_warpsize4x2x1_tensor16x8x16_kernel",
	 "xmma gemm fp16 192x128x32 sm80"},
	{"ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn",
	 "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn"},
	{"volta_sgemm_128x128_tn",
	 "volta_sgemm_128x128_tn"},
	{"nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NTN",
	 "nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NTN"},
	{"igemm_wrw_gtcx3_nhwc_bf16_bx0_ex1_bt128x64x32_wt32x32x8_ws1x1_wr1x2_ta1x4x1x4_1x8x1x32_tb1x4x1x2_1x8x1x32_gkgs",
	 "igemm conv wgrad bf16 128x64x32"},
	{"igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x128x32_wt32x32x8_ws1x1_wr2x2_ta1x8x2x1_1x4x1x64_tb1x8x2x1_1x4x1x64_gkgs",
	 "igemm conv fprop bf16 128x128x32"},
	{"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)",
	 "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"},
	{"ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
	 "ncclKernel_AllReduce_RING_LL_Sum_float"},
	{"std::enable_if<!T7, void>::type internal::gemvx::kernel<int, int, float2, float2, float2, float2, (bool)0, (bool)1, (bool)1, (bool)0, (int)6, (bool)0, cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<const float2>, cublasGemvTensorStridedBatched<const float2>, cublasGemvTensorStridedBatched<float2>, float2>>(T13)",
	 "gemvx::kernel"},
	{"std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::BFloat16>::exists, void>::type vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long, c10::BFloat16*, c10::BFloat16 const*, float, int, int)",
	 "fused_add_rms_norm_kernel"},
	{"void epilogue::impl::globalKernel<float, float, float, true, true>(int, int, long, float*, cublasLtEpilogue_t, int, float*, long, void*, long, long, long, float*, long, int*)",
	 "epilogue::globalKernel"},
	{"void cub::DeviceScanInitKernel<cub::ScanTileState<float, (bool)1>>(T1, int)",
	 "DeviceScanInitKernel"},
	{"void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, float, int>::Policy800, false, long, float, int, int>(int*, int*, int*, int const*, long*, long const*, float*, float const*, int, int, int)",
	 "DeviceRadixSortOnesweepKernel"},
	{"void clover::par_ranged1d_kernel<build_field(global_variables &)::[lambda(int) (instance 1)]>(clover::Range1d, T1)",
	 "par_ranged1d_kernel<build_field>"},
	{"void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<(int)128, (int)128, (int)64, (int)4, (bool)0, (bool)0, cutlass::bfloat16_t, Flash_kernel_traits<(int)128, (int)128, (int)64, (int)4, cutlass::bfloat16_t>>, (bool)0, (bool)0, (bool)0, (bool)0, (bool)0, (bool)1, (bool)0, (bool)0>(flash::Flash_fwd_params)",
	 "flash_fwd_kernel"},
	{"void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(cudnn::bn_fw_tr_1C11_args<float>)",
	 "bn_fw_tr_1C11_singleread"},
	{"<unnamed>::nvfuser_pointwise_f0_c1_r0_g0(<unnamed>::Tensor<float, (int)2, (int)2>, <unnamed>::Tensor<float, (int)2, (int)2>)",
	 "nvfuser_pointwise_f0_c1_r0_g0"},
	/* Types that the demangler does not know: std::bfloat16_t, parameters with their kind (C++20). */
	{"_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb0ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_S4_diiiiiiib", "add_rmsnorm_quant_kernel"},
	{"_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_RKS3_EXadL_Z4siluIS2_ES3_S5_EEEEvPS3_PS4_i", "act_and_mul_kernel"},
	{"_Z9no_kernelIDF16bE5other", "no_kernel"},
	{"_ZN99short", "_ZN99short"},
	{"_ZN0E", "_ZN0E"},
	{"triton_red_fused__unsafe_view_add_mean_mul_pow_rsqrt_1",
	 "triton_red_fused__unsafe_view_add_mean_mul_pow_rsqrt_1"},
	{"triton_poi_fused_relu_1_0d1d2d",
	 "triton_poi_fused_relu_1_0d1d2d"},
	{"triton__0d1d2d3d4de",
	 "triton__0d1d2d3d4de"},
	{"void cublasLt::splitKreduce_kernel<32, 16, int, __nv_bfloat16, __nv_bfloat16, float, __nv_bfloat16, true, true, false>(cublasLt::cublasSplitKParams<float>, __nv_bfloat16 const*, __nv_bfloat16 const*, __nv_bfloat16*, float const*, float const*, __nv_bfloat16 const*, __nv_bfloat16 const*, __nv_bfloat16*, void*, long, float*, int*)",
	 "splitKreduce_kernel"},
	{"void fft2d_r2c_32x32<float, (bool)0, (unsigned int)0, (bool)0>(float2 *, const T1 *, int, int, int, int, int, int, int, int, int, cudnn::reduced_divisor, bool, int2, int, int)",
	 "fft2d_r2c_32x32"},
	{"CUDA graph 1",
	 "CUDA graph 1"},
	{"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>) [clone .kd]",
	 "elementwise<CUDAFunctor_add>"},
	{"cupy_true_divide__float32_float32_float32",
	 "cupy_true_divide__float32_float32_float32"},
	{"fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext",
	 "fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext"},
	{"__amd_rocclr_fillBufferAligned.kd",
	 "__amd_rocclr_fillBufferAligned"},
	{"void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*, c10::BFloat16*, c10::BFloat16*, c10::BFloat16 const*, int, long, long, long, int, int, int)",
	 "rotary_embedding_kernel"},
	{"void <unnamed>::indexing_backward_kernel<c10::BFloat16, (int)4>(const long *, const long *, const T1 *, T1 *, long, long, long, long, bool)",
	 "indexing_backward_kernel"},
	{"void moe::dev::routing::routingIndicesHistogramKernel<moe::dev::routing::routingRenormalize::KernelParams<__nv_bfloat16, __nv_bfloat16, 128, false, true, true> >(moe::dev::routing::routingRenormalize::KernelParams<__nv_bfloat16, __nv_bfloat16, 128, false, true, true>)",
	 "routingIndicesHistogramKernel"},
	{"add_arrays_(CuDeviceArray<Int64, (int)3, (int)1>, CuDeviceArray<Int64, (int)3, (int)1>, CuDeviceArray<Int64, (int)3, (int)1>)",
	 "add_arrays_"},
	{"saxpy(double *, double *, double *, double, int)",
	 "saxpy"},
	{"void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, c10::Scalar, at::native::detail::ClampLimits)::{lambda()#1}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}, at::detail::Array<char*, 2> >(int, at::native::(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, c10::Scalar, at::native::detail::ClampLimits)::{lambda()#1}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}, at::detail::Array<char*, 2>)",
	 "elementwise<launch_clamp_scalar>"},
	{"void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::masked_fill_kernel(at::TensorIterator&, c10::Scalar const&)::{lambda()#1}::operator()() const::{lambda()#7}::operator()() const::{lambda(float, bool)#1}, std::array<char*, 3ul> >(int, at::native::(anonymous namespace)::masked_fill_kernel(at::TensorIterator&, c10::Scalar const&)::{lambda()#1}::operator()() const::{lambda()#7}::operator()() const::{lambda(float, bool)#1}, std::array<char*, 3ul>)",
	 "elementwise<masked_fill_kernel>"},
	{"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4> >(at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4>)",
	 "reduce<sum_functor>"},
	{"Cijk_Ailk_Bjlk_BBS_BH_Bias_HAS_SAV_UserArgs_MT64x32x64_MI16x16x1_SN_LDSB0_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0_DTVA0_DTVB0_EPS0_FDSI0_GRPM1_GRVWA8_GRVWB8_GSUAMB_GLS0_ISA942_IU1_K1_LBSPPA512_LBSPPB256_LBSPPM0_LPA32_LPB16_LPM0_LRVW4_LWPMn1_MIAV0_MIWT2_1_MO40_NTn1_NTA0_NTB0_NTC0_NTD4_NTM0_NEPBS16_NLCA1_NLCB1_ONLL1_PGR2_PLR1_PKA1_SIA3_SS1_SPO0_SRVW0_SSO0_SVW2_SK0_SKXCCM0_TLDS0_ULSGRO0_USL1_UIOFGRO0_USFGROn1_VSn1_VWA2_VWB1_WSGRA0_WSGRB0_WS64_WG32_8_1",
	 "tensile gemm bf16 64x32x64 gfx942"},
	{"Cijk_Alik_Bljk_S_B_Bias_HA_S_SAV_UserArgs_MT64x64x64_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0_DTLA0_DTLB0_DTVA0_DTVB0_EPS0_FDSI0_GRPM1_GRVWA4_GRVWB4_GSU0_GSUAMB_GLS0_ISA950_IU1_K1_LBSPPA512_LBSPPB512_LBSPPM0_LPA8_LPB8_LPM0_LRVW4_LWPMn1_MIAV0_MIWT2_2_MO40_NTn1_NTA0_NTB0_NTC0_NTD0_NTM0_NEPBS0_NLCA1_NLCB1_ONLL1_PGR2_PLR1_PKA1_SIA3_SS1_SPO0_SRVW0_SSO0_SVW2_SK3_SKXCCM8_TLDS1_ULSGRO0_USL1_UIOFGRO0_USFGRO0_VSn1_VWA2_VWB2_WSGRA0_WSGRB0_WS64_WG32_8_1.kd",
	 "tensile gemm fp32 64x64x64 gfx950"},
	{"void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda()#6}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int, at::native::(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda()#6}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul>)",
	 "elementwise<silu_kernel>"},
	{"void at::native::vectorized_elementwise_kernel<(int)8, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase &, at::native::GeluType)::[lambda() (instance 1)]::operator ()() const::[lambda() (instance 4)]::operator ()() const::[lambda(c10::BFloat16) (instance 1)], std::array<char *, (unsigned long)2>>(int, T2, T3)",
	 "elementwise<GeluCUDAKernelImpl>"},
	{"void at::native::elementwise_kernel<(int)128, (int)2, void at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase &)::[lambda() (instance 3)]::operator ()() const::[lambda() (instance 7)]::operator ()() const::[lambda(float) (instance 1)]>(at::TensorIteratorBase &, const T1 &)::[lambda(int) (instance 1)]>(int, T3)",
	 "elementwise<direct_copy_kernel_cuda>"},
	{"std::enable_if<!T7, void>::type internal::gemvx::kernel<int, int, float, (bool)0>(T13)", "gemvx::kernel"},
	{"compute_gemm_pointers(float2 **, const float2 *, int)", "compute_gemm_pointers"},
	{"foo.kd", "foo"},
	{"<<<", "<<<"},
	{"(", "("},
	{"()", "()"},
	{"a<b", "a"},
	{"f<int> (int)", "f"},
	{"::", "::"},
	{"", ""},
};

static void test_names(void **state)
{
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		struct buf b = {0};
		kernel_short_name(&b, str_from(names[i][0]));
		struct str got = b.n ? buf_view(&b) : STR("");
		if (!str_eqc(got, names[i][1]))
			fail_msg("%s: '" STR_FMT "', expected '%s'", names[i][0], STR_ARG(got), names[i][1]);
		buf_release(&b);
	}
}

#define ADD "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<"
#define ADD_END ">, std::array<char*, 3ul> >(int)"
#define PLAIN "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::CUDAFunctor_add<float> >(at::TensorIteratorBase&)::{lambda(int)#1}>(int)"
#define GEMM(tail) "void cutlass::Kernel<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_" tail ">(T1::Params)"

/* Names that are alike, and what tells them apart; the other names stay short. */
static const char *const apart[][2] = {
	{ADD "float" ADD_END, "elementwise<CUDAFunctor_add> float vectorized"},
	{ADD "c10::Half" ADD_END, "elementwise<CUDAFunctor_add> Half"},
	{PLAIN, "elementwise<CUDAFunctor_add> float not vectorized"},
	{GEMM("tn_align8"), "cutlass gemm bf16 256x128x32 sm80 tn align8"},
	{GEMM("tn_align4"), "cutlass gemm bf16 256x128x32 sm80 tn align4"},
	{GEMM("nn_align4"), "cutlass gemm bf16 256x128x32 sm80 nn"},
	{"void f<int, 1>(int)", "f int"},
	{"void f<float, 1>(float)", "f float 1"},
	{"void f<float, 2>(float)", "f float 2"},
	{"void a::g(int)", "g a"},
	{"void b::g(int)", "g b"},
	{"void h<(int)1>(int)", "h #2"},
	{"void h<(int)1> (int)", "h"},
	{"triton_poi_fused_add_mul_3", "triton_poi_fused_add_mul_3"},
	{"volta_sgemm_64x64_nt", "volta_sgemm_64x64_nt"},
};
enum { APART = sizeof apart / sizeof apart[0] };

static void check_apart(bool backwards)
{
	struct arena a = {0};
	struct str full[APART], out[APART];
	for (uint32_t i = 0; i < APART; i++)
		full[i] = str_from(apart[backwards ? APART - 1 - i : i][0]);
	kernel_short_names(&a, full, APART, out);
	for (uint32_t i = 0; i < APART; i++)
		assert_string_equal(out[i].p, apart[backwards ? APART - 1 - i : i][1]);
	arena_release(&a);
}

static void test_apart(void **state)
{
	check_apart(false);
	check_apart(true); /* the order is no matter */
}

/* The same name twice gets two names, so that no two rows look alike; thousands of names take no time. */
static void test_many(void **state)
{
	enum { N = 4000 };
	static char text[N][64];
	struct str full[N], *out = calloc(N, sizeof *out);
	struct arena a = {0};
	for (int i = 0; i < N; i++) {
		snprintf(text[i], sizeof text[i], "void ns::run_%d<float, %d, %d>(float*)", i % 3, i % 50, i);
		full[i] = str_from(text[i]);
	}
	full[1] = full[0];
	kernel_short_names(&a, full, N, out);
	for (int i = 1; i < N; i++) {
		assert_true(out[i].n > 0);
		assert_false(str_eq(out[i], out[i - 1]));
	}
	assert_false(str_eq(out[0], out[1]));
	arena_release(&a);
	free(out);
}

/* Names that nest without end, and thousands that differ in the last of many words only, take no time and no stack. */
static void test_hostile(void **state)
{
	enum { N = 3000, DEEP = 100000 };
	static const char *const pieces[] = {"operator()<", "f<", "gpu_kernel_impl<", "(", "{", "a::", "<", "ReduceOp<x, operator()<"};
	for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
		struct buf name = {0}, out = {0};
		buf_cstr(&name, "void elementwise_kernel<");
		for (int k = 0; k < DEEP; k++)
			buf_cstr(&name, pieces[i]);
		kernel_short_name(&out, buf_view(&name));
		assert_true(out.n > 0);
		buf_release(&name);
		buf_release(&out);
	}
	struct arena a = {0};
	struct str *full = calloc(N, sizeof *full), *out = calloc(N, sizeof *out);
	for (int i = 0; i < N; i++) {
		struct buf name = {0};
		buf_cstr(&name, "void f<");
		for (int k = 0; k < 200; k++)
			buf_printf(&name, "%d, ", k == i % 200 ? i : k);
		buf_cstr(&name, "1>(int)");
		full[i] = arena_str(&a, buf_view(&name));
		buf_release(&name);
	}
	kernel_short_names(&a, full, N, out);
	for (int i = 1; i < N; i++)
		assert_false(str_eq(out[i], out[0]));
	arena_release(&a);
	free(full);
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_apart), cmocka_unit_test(test_many), cmocka_unit_test(test_hostile)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
