/* What names say: rows for test_names.c.
 *   R(name of a range, facts, what autograd it is, what the host does)   K(name of a kernel, facts, class, Tensor Cores) */
#define S NAME_SCOPED

/* Steps: torch.profiler's own. */
R("ProfilerStep#7", NAME_STEP, NONE, PLAIN)
R("ProfilerStep#last", NAME_STEP, NONE, PLAIN)
R("ProfilerStep", 0, NONE, PLAIN)
R("ProfilerStep*", 0, NONE, PLAIN)
R("my ProfilerStep#7", 0, NONE, PLAIN)
R("profilerstep#7", 0, NONE, PLAIN)
R("train_step 7", 0, NONE, PLAIN)

/* Modules. */
R("nn.Module: Linear_3", NAME_MODULE, NONE, PLAIN)
R("nn.Module:Linear_3", 0, NONE, PLAIN)
R("torch.nn.Module: Linear_3", 0, NONE, PLAIN)
R("[module]layer1.0", NAME_MODULE_ANNOTATED, NONE, PLAIN)
R("module layer1.0", 0, NONE, PLAIN)
R("[pl][module]torch.nn.Linear: layer1", NAME_MODULE_LIGHTNING, NONE, PLAIN)
R("[pl][profile]run_training_batch", 0, NONE, PLAIN)

/* Autograd; tests/unit/test_autograd_names.c has more. */
R("autograd::engine::evaluate_function: MmBackward0", NAME_ENGINE | S, ENGINE, PLAIN)
R("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", NAME_ENGINE | S, ACCUMULATE, PLAIN)
R("autograd::engine::execute", S, NONE, PLAIN)
R("torch::autograd::AccumulateGrad", S, ACCUMULATE, PLAIN)
R("MmBackward0", 0, NODE, PLAIN)
R("aten::threshold_backward", S, FORMULA, PLAIN)

/* Optimizers, and what stands around ops of a whole program. */
R("Optimizer.step#SGD.step", NAME_OPTIMIZER_STEP | NAME_WRAPPER, OPTIMIZER, PLAIN)
R("Optimizer.step", NAME_OPTIMIZER_STEP | NAME_WRAPPER, OPTIMIZER, PLAIN)
R("Optimizer.zero_grad#SGD.zero_grad", NAME_WRAPPER, OPTIMIZER, PLAIN)
R("MyOptimizer.step#SGD.step", 0, NONE, PLAIN)
R("torch.optim.adam.Adam.step", 0, OPTIMIZER, PLAIN)
R("DataParallel.forward", NAME_WRAPPER, NONE, PLAIN)
R("DistributedDataParallel.forward", NAME_WRAPPER, NONE, PLAIN)
R("FullyShardedDataParallel.forward", 0, NONE, PLAIN)
R("DataParallel.forward2", 0, NONE, PLAIN)

/* Collectives. */
R("nccl:all_reduce", NAME_COMM, NONE, PLAIN)
R("gloo:all_reduce", NAME_COMM | NAME_COMM_BY_HOST, NONE, PLAIN)
R("mpi:send", NAME_COMM | NAME_COMM_BY_HOST, NONE, PLAIN)
R("c10d::allreduce_", NAME_COMM | S, NONE, PLAIN)
R("_c10d_functional::all_reduce", NAME_COMM | S, NONE, PLAIN)
R("record_param_comms", NAME_COMM, NONE, PLAIN)
R("my nccl:all_reduce", 0, NONE, PLAIN)
R("ncclAllReduce", 0, NONE, PLAIN)
R("glooms", 0, NONE, PLAIN)

/* What could use Tensor Cores. */
R("aten::mm", NAME_TC_ELIGIBLE | S, NONE, PLAIN)
R("aten::convolution_backward", NAME_TC_ELIGIBLE | S, FORMULA, PLAIN)
R("aten::baddbmm_", NAME_TC_ELIGIBLE | S, NONE, PLAIN)
R("aten::mul", S, NONE, PLAIN)
R("aten::mmm", S, NONE, PLAIN)
R("mm", 0, NONE, PLAIN)

/* Data loaders: PyTorch's ranges, DLProf's marker, frames of PyTorch's loader. */
R("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, NONE, DATA)
R("enumerate(DataLoader)#", 0, NONE, DATA)
R("enumerate(DataLoader)", 0, NONE, PLAIN)
R("enumerate(DataPipe)#MapperIterDataPipe", 0, NONE, DATA)
R("torch.utils.data.dataloader.DataLoader.__iter__", 0, NONE, DATA)
R("torch.utils.data.sampler.Sampler", 0, NONE, PLAIN)
R("torch/utils/data/dataloader.py(628): __next__", 0, NONE, DATA)
R("/usr/lib/python3/site-packages/torch/utils/data/dataloader.py(628): __next__", 0, NONE, DATA)
R("/home/me/my_dataloader.py(3): __next__", 0, NONE, PLAIN)
R("DataLoader", 0, NONE, PLAIN)

/* Calls. */
R("cudaStreamSynchronize", 0, NONE, SYNC)
R("hipDeviceSynchronize", 0, NONE, SYNC)
R("cudaStreamSynchronizer", 0, NONE, PLAIN)
R("cudaMemcpy", 0, NONE, SYNC_COPY)
R("cudaMemcpyAsync", 0, NONE, PLAIN)
R("cudaMalloc", 0, NONE, ALLOC)
R("cudaMallocAsync", 0, NONE, PLAIN)
R("cuModuleLoadData", 0, NONE, LOAD)
R("Python GC", 0, NONE, GC)
R("cudaLaunchKernel", 0, NONE, PLAIN)
R("fread", NAME_FILE_IO, NONE, PLAIN)
R("pwrite64", NAME_FILE_IO, NONE, PLAIN)
R("freadx", 0, NONE, PLAIN)
R("read", 0, NONE, PLAIN)
R("", 0, NONE, PLAIN)

/* Kernels. */
K("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", NAME_COMM_KERNEL, COMM, NO)
K("my_ncclesque", 0, UNKNOWN, UNKNOWN)
K("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", NAME_TC_LISTED, GEMM, YES)
K("ampere_sgemm_128x64_nn", 0, GEMM, NO)
K("void at::native::vectorized_elementwise_kernel<4, f>()", 0, ELEMENTWISE, NO)
K("mystery", 0, UNKNOWN, UNKNOWN)
#undef S
