/* Which collective a kernel runs, by its name: names as recordings and sources of the libraries have them (op/comm_kind.h). */
#include "test.h"

#include "op/comm_kind.h"
#include "op/kernels.h"

static const struct {
	const char *kernel, *want;
} kernels[] = {
	/* NCCL: up to 2.2, to 2.18, from 2.19, symmetric memory from 2.27, mangled */
	{"ncclAllReduceRingLLKernel_sum_f32(ncclColl)", "all_reduce"},
	{"_Z33ncclBroadcastRingLLKernel_copy_i88ncclColl", "broadcast"},
	{"ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)", "all_reduce"},
	{"ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)", "send_recv"},
	{"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_gather"},
	{"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "reduce_scatter"},
	{"ncclDevKernel_Reduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "reduce"},
	{"ncclDevKernel_Broadcast_RING_LL", "broadcast"},
	{"ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC_sum_bf16(ncclSymkDevWorkArgs4K)", "all_reduce"},
	{"ncclSymkDevKernel_ReduceScatter_RailA2A_LsaLD_sum_f16(ncclSymkDevWorkArgs4K)", "reduce_scatter"},
	{"ncclSymkDevKernel_AllGather_STMC", "all_gather"},
	/* RCCL runs all kinds by kernels of one name */
	{"ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>) [clone .kd]", ""},
	{"ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", ""},
	{"rcclAllReduce_Sum(x)", "all_reduce"},
	/* MSCCL says which algorithm file, not which collective */
	{"mscclKernel_Sum_hip_bfloat16_Simple_false(ncclDevComm*, mscclAlgo*, mscclWork*)", ""},
	/* vLLM, SGLang, AITER */
	{"void vllm::cross_device_reduce_1stage<float, 4>(vllm::RankData*)", "all_reduce"},
	{"void sglang::cross_device_reduce_2stage<__nv_bfloat16, 8>(sglang::RankData*, sglang::RankSignals, sglang::Signal*, __nv_bfloat16*, int, int)", "all_reduce"},
	{"void aiter::cross_device_reduce_1stage<__hip_bfloat16, 8>(aiter::RankData*)", "all_reduce"},
	{"void quickreduce::allreduce_prototype_twoshot<AllReduceTwoshot<__half, CodecQ4<__half, 8>, true>, __half>(__half const*)", "all_reduce"},
	/* FlashInfer, TensorRT-LLM */
	{"void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<(flashinfer::trtllm_allreduce_fusion::AllReduceFusionPattern)1, __nv_bfloat16, 8, false, "
	 "false>(x)", "all_reduce"},
	{"void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_twoshot_sync<(AllReduceFusionPattern)1, __half, 4>(x)", "all_reduce"},
	{"void tensorrt_llm::kernels::oneShotAllReduceKernel<__half, 8, true>(tensorrt_llm::kernels::AllReduceParams)", "all_reduce"},
	{"void tensorrt_llm::kernels::twoShotAllReduceKernel<__half, 2>(tensorrt_llm::kernels::AllReduceParams)", "all_reduce"},
	{"tensorrt_llm::kernels::moe_comm::moeA2ADispatchKernel(int const*, KernelPointers, int, int, int*, int* recv_counters)", "dispatch"},
	{"tensorrt_llm::kernels::moe_comm::moeA2ACombineKernel(CombineKernelPointers, int)", "combine"},
	{"flashinfer::trtllm_alltoall::moeAllToAllKernel(x)", "all_to_all"},
	/* torch's symmetric memory */
	{"void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*, unsigned long)", "all_reduce"},
	{"void (anonymous namespace)::multimem_all_gather_kernel<16>(char*)", "all_gather"},
	{"void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 8>(x)", "all_reduce"},
	/* DeepEP, also as Primus-Turbo has it; what plans a dispatch stays on its rank */
	{"void deep_ep::intranode::notify_dispatch<8>(int const*, int*, int const*, int*, int, int, int)", "dispatch"},
	{"void deep_ep::intranode::dispatch<(int)2, (int)768, (int)8192>(int4 *, float *, float *)", "dispatch"},
	{"void deep_ep::internode_ll::dispatch<(bool)1, (bool)1, (int)6144>(void *, void *, int *, long *)", "dispatch"},
	{"void deep_ep::internode_ll::combine<(bool)0, (int)6144, (int)11, (int)4>(void *, void *)", "combine"},
	{"void deep_ep::intranode::cached_notify_combine<8>(void**, int*, int, int, int, int**, int)", "combine"},
	{"void primus_turbo::deep_ep::internode::notify_dispatch<false, 2>", "dispatch"},
	{"void deep_ep::intranode::barrier<8>(int**, int)", "barrier"},
	/* NVSHMEM */
	{"void barrier_on_stream_kernel_threadgroup<(threadgroup_t)1>(int, int)", "barrier"},
	{"nvshmemi_init_array_kernel(int*, int, int)", ""},
	/* Transformer Engine */
	{"userbuffers_fp16_sum_inplace_gpu_rr_rs_oop<8>(int, int, int)", "reduce_scatter"},
	{"userbuffers_fp16_sum_inplace_gpu_rw_ag<8>(int, int, int)", "all_gather"},
	{"userbuffers_fp16_sum_inplace_gpu_mc(int, int)", "all_reduce"},
	{"kuserbuffers_pushsend(int*, int*, int4*, int4*, int)", "send"},
	{"kuserbuffers_pushrecv(int, int, int*)", "recv"},
};

static const struct {
	const char *name, *want;
} said[] = {
	{"nccl:all_reduce", "all_reduce"}, {"nccl:_all_gather_base", "all_gather"}, {"nccl:_reduce_scatter_base", "reduce_scatter"}, {"nccl:all_to_all", "all_to_all"},
	{"nccl:send 0->1", "send"}, {"nccl:recv 0<-1", "recv"}, {"nccl:broadcast", "broadcast"}, {"gloo:all_reduce", "all_reduce"}, {"gloo:barrier", "barrier"}, {"nccl:coalesced", "coalesced"},
	{"allreduce_coalesced", "all_reduce"}, {"_allgather_base", "all_gather"}, {"all_to_allv", "all_to_all"}, {"c10d::alltoall_base_", "all_to_all"}, {"wait", ""},
	{"_c10d_functional::reduce_scatter_tensor", "reduce_scatter"}, {"ncclAllReduce", "all_reduce"}, {"", ""},
};

static void test_kernels(void **state)
{
	for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
		struct str name = str_from(kernels[i].kernel);
		if (kernel_classify(name, NULL).class != KERNEL_COMM)
			fail_msg("%s is of no collective", kernels[i].kernel);
		assert_string_equal(comm_kind_name(comm_kind_of(name)), kernels[i].want);
	}
}

static void test_others(void **state)
{
	static const char *const others[] = {
		"void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*, int*, int*)", "_fwd_kernel_ep_scatter_2",
		"void cub::DeviceReduceByKeyKernel<cub::DispatchReduceByKey<long*, long*>>(x)", "_combined_routing_compute", "void at::native::reduce_kernel<512, 1>(x)",
	};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (kernel_classify(str_from(others[i]), NULL).class == KERNEL_COMM)
			fail_msg("%s is taken for a collective", others[i]);
}

static void test_said(void **state)
{
	for (size_t i = 0; i < sizeof said / sizeof *said; i++)
		if (strcmp(comm_kind_name(comm_kind_of(str_from(said[i].name))), said[i].want) != 0)
			fail_msg("%s: %s", said[i].name, comm_kind_name(comm_kind_of(str_from(said[i].name))));
}

/* Where ranks end at different moments, ends say nothing of clocks. */
static void test_together(void **state)
{
	static const enum comm_kind apart[] = {COMM_GATHER, COMM_SCATTER, COMM_BROADCAST, COMM_REDUCE, COMM_SEND_RECV, COMM_SEND, COMM_RECV, COMM_DISPATCH, COMM_COMBINE, COMM_COALESCED, COMM_UNKNOWN};
	static const enum comm_kind together[] = {COMM_ALL_REDUCE, COMM_ALL_GATHER, COMM_REDUCE_SCATTER, COMM_ALL_TO_ALL, COMM_BARRIER};
	for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
		assert_false(comm_kind_ends_together(apart[i]));
	for (size_t i = 0; i < sizeof together / sizeof *together; i++)
		assert_true(comm_kind_ends_together(together[i]));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels), cmocka_unit_test(test_others), cmocka_unit_test(test_said), cmocka_unit_test(test_together)};
	return RUN_TESTS(tests);
}
