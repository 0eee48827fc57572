"""Small traces with known problems. Each function below writes one run in a few lines; its label says which detectors must fire on it,
and none else may. A `without_...` case is the same run with the problem taken out, or something that looks like it and is none.

The writer keeps two clocks, in us: host work moves the first; a launch puts work behind what its device already has to do. So gaps,
waits and overlaps come about as on a machine, and are not typed in."""
import contextlib
import gzip
import json
import os

V100 = {"id": 0, "name": "Tesla V100-SXM2-16GB", "totalGlobalMem": 1 << 34, "computeMajor": 7, "computeMinor": 0, "numSms": 80, "warpSize": 32}
A100 = {"id": 0, "name": "NVIDIA A100-SXM4-40GB", "totalGlobalMem": 40 << 30, "computeMajor": 8, "computeMinor": 0, "numSms": 108, "warpSize": 32}
TENSOR_CORE = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"
ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float> >(int)"
REDUCE = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >(float)"
HOST, DEVICE, STREAM = 10, 0, 7


class Trace:
    def __init__(self, *gpus, meta=None):
        self.gpus, self.meta, self.events = gpus or (A100,), meta or {}, []
        self.now, self.ids, self.free, self.ops, self.thread = 1000, 0, {}, [], 1

    def id(self):
        self.ids += 1
        return self.ids

    def event(self, cat, name, start, end, args=None, pid=HOST, tid=None):
        self.events.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid or self.thread, "ts": start, "dur": end - start,
                            "args": args or {}})

    def host(self, us):
        """The host does something that is not recorded."""
        self.now += us

    @contextlib.contextmanager
    def range(self, name, cat="user_annotation", us=0, **args):
        """`us`: what it takes the host besides what is inside."""
        start = self.now
        yield
        self.now += us
        self.event(cat, name, start, self.now, args)

    @contextlib.contextmanager
    def op(self, name, us=10, dims=None, **more):
        args = {"External id": self.id(), **({"Input Dims": dims} if dims is not None else {}), **{k if k.startswith("kernel_") else k.replace("_", " "): v for k, v in more.items()}}
        start = self.now
        self.ops.append(args["External id"])
        self.now += us
        yield
        self.ops.pop()
        self.event("cpu_op", name, start, self.now, args)

    def simple(self, name, us=10, **more):
        with self.op(name, us, **more):
            pass

    def frame(self, name, us=0):
        return self.range(name, "python_function", us)

    def call(self, name, us=5, cat="cuda_runtime", **args):
        if self.ops:
            args["External id"] = self.ops[-1]
        self.event(cat, name, self.now, self.now + us, args)
        self.now += us

    def work(self, cat, name, us, call, call_us=5, device=0, stream=STREAM, waits=False, **args):
        """The call, and the work when the stream is free, 5 us after the call began at the earliest. `waits`: the call returns when it is done."""
        corr, begin = self.id(), self.now
        start = max(self.free.get((device, stream), 0), begin + 5)
        self.free[device, stream] = start + us
        ext = {"External id": self.ops[-1]} if self.ops else {}
        self.event(cat, name, start, start + us, {"device": device, "stream": stream, "correlation": corr, **ext, **args}, pid=device, tid=stream)
        self.call(call, max(start + us + 2 - begin, call_us) if waits else call_us, correlation=corr)

    def kernel(self, us, name=ELEMENTWISE, **more):
        self.work("kernel", name, us, "cudaLaunchKernel", **more)

    def launch(self, op, us, name=ELEMENTWISE, dims=None, op_us=10, **more):
        """An op with one kernel."""
        with self.op(op, op_us, dims, **more):
            self.kernel(us, name)

    def copy(self, way, us, nbytes, memory="Pageable", waits=None):
        kind = f"Memcpy HtoD ({memory} -> Device)" if way == "HtoD" else f"Memcpy DtoH (Device -> {memory})"
        self.work("gpu_memcpy", kind, us, "cudaMemcpyAsync", waits=memory == "Pageable" if waits is None else waits, bytes=nbytes)

    def sample(self, reasons, mhz, device=0):
        """What NVML says of a GPU at this moment."""
        for name, value in (("gpu_utilization_pct", 97), ("gpu_sm_clock_mhz", mhz), ("gpu_temperature_c", 88), ("gpu_throttle_reasons", reasons)):
            self.events.append({"ph": "C", "cat": "gpu_sample", "name": name, "pid": device, "tid": 0, "ts": self.now,
                                "args": {"value": value, "device": device}})

    def sync(self, name="cudaStreamSynchronize", device=0, stream=STREAM):
        """The host waits until the stream is free."""
        self.call(name, max(self.free.get((device, stream), 0) + 2 - self.now, 5))

    def busy(self, us):
        """A product that uses the GPU well."""
        self.launch("aten::mm", us, TENSOR_CORE)

    @contextlib.contextmanager
    def step(self, n, fill=0):
        """`fill`: first of all the GPU gets this much good work."""
        with self.range(f"ProfilerStep#{n}"):
            if fill:
                self.busy(fill)
            yield

    def steps(self, count=2, fill=0):
        for n in range(1, count + 1):
            with self.step(n, fill):
                yield n
                self.drain()

    def drain(self):
        """The step's last range lasts until its work is nearly done, as when the next one waits for memory."""
        end = max([self.now, *self.free.values()])
        self.now = max(self.now, end - 10)

    def memory(self, allocated, device=0):
        self.events.append({"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": HOST, "tid": 1, "ts": self.now, "s": "t",
                            "args": {"Total Allocated": allocated, "Total Reserved": allocated, "Bytes": 512, "Addr": 1, "Device Type": 1, "Device Id": device}})

    def save(self, path):
        doc = {"schemaVersion": 1, "deviceProperties": list(self.gpus), **self.meta, "traceEvents": self.events}
        with gzip.open(path, "wt", compresslevel=1) as f:
            f.write(json.dumps(doc))


CASES, ABOUT = {}, {}
# Runs for the sake of other detectors, whose kernels take a multiple of what their sizes take at the GPU's peaks.
FAR = frozenset("""
    without_tf32_off inner_size_not_padded without_unaligned_rows search_for_a_large_convolution attention_written_out attention_masked
    attention_with_softmax_written_out attention_backward attention_not_aligned attention_and_vocabulary_not_aligned attention_on_two_gpus
    attention_with_values_between without_attention without_attention_but_a_loss without_written_out_attention norm_written_out bias_gelu_dropout
    norm_and_attention_written_out norm_written_out_on_two_gpus without_norm_in_the_steps without_kernels_that_read_each_other without_chains_of_an_optimizer
    without_unfused_kernels few_blocks_on_one_of_one few_blocks_on_eight_gpus without_few_blocks_in_the_steps converted_forth_and_back converted_on_two_gpus
    converted_and_few_blocks without_way_back without_conversions_of_floating_point without_conversions_in_the_steps small_products_and_attention
    without_small_products_in_the_steps low_occupancy_by_block_size last_wave_of_attention without_last_wave_of_equal_blocks
""".split())


def case(*fires, about=()):
    """Registers a case with the detectors that must fire. `about`: one of them, or those that must not, for whose sake it is there."""
    def register(make):
        CASES[make.__name__] = (frozenset(fires) | ({"far-from-roofline"} if make.__name__ in FAR else frozenset()), make)
        ABOUT[make.__name__] = {*fires, *([about] if isinstance(about, str) else about)}
        return make
    return register


def write(folder):
    """All of them, as [(name, path, detectors that must fire)]."""
    out = []
    for name, (fires, make) in CASES.items():
        path = os.path.join(folder, name + ".pt.trace.json.gz")
        trace = make()
        trace.save(path)
        out.append((name, path, fires))
    return out


@case()
def healthy():
    t = Trace()
    for _ in t.steps(3):
        for _ in range(20):
            t.busy(1000)
    return t


@case()
def without_any_gpu():
    t = Trace()
    for _ in t.steps():
        t.simple("aten::mm", 1000)
    return t


@case()
def without_steps():
    """Start-up and work, and nothing that tells them apart: only what the kernels show themselves may be said."""
    t = Trace()
    t.call("cudaMalloc", 30000)
    for _ in range(30):
        t.busy(1000 + 100 * _)
    return t


# The data loader.

def loading(kind, us, fill=50000, queued=0):
    t = Trace()
    for _ in t.steps(fill=queued):
        with t.range(f"enumerate(DataLoader)#_{kind}DataLoaderIter.__next__", us=us):
            pass
        t.busy(fill)
    return t


@case("dataloader-bound", "gpu-starvation")
def slow_workers():
    return loading("MultiProcessing", 20000)


@case("dataloader-bound", "gpu-starvation", "single-process-dataloader")
def slow_loader():
    return loading("SingleProcess", 20000)


@case(about="dataloader-bound")
def without_wait_for_workers():
    """The loader takes as long, but the GPU still has work."""
    return loading("MultiProcessing", 20000, queued=30000)


@case(about="single-process-dataloader")
def without_cost_of_loader():
    return loading("SingleProcess", 200)


# What keeps the GPU waiting.

def waiting(us, fill=40000, around=None, call=None):
    t = Trace()
    for _ in t.steps():
        t.busy(fill)
        t.sync("cudaEventQuery")
        t.now = max(t.now, max(t.free.values()))
        if call:
            t.call(call, us)
        elif around:
            with around(t, us):
                pass
        t.busy(fill)
    return t


@case("gpu-starvation")
def allocator():
    return waiting(20000, call="cudaMalloc")


@case("gpu-starvation")
def garbage_collector():
    return waiting(20000, around=lambda t, us: t.range("Python GC", us=us))


@case("gpu-starvation")
def python_code():
    return waiting(20000, around=lambda t, us: t.frame("train.py(12): metrics", us))


@case("gpu-starvation")
def host_op():
    return waiting(20000, around=lambda t, us: t.op("aten::sort", us))


@case("gpu-starvation", "profiler-overhead")
def profiler():
    return waiting(20000, around=lambda t, us: t.range("Activity Buffer Request", "overhead", us))


@case(about=("gpu-starvation", "low-gpu-utilization", "profiler-overhead"))
def without_much_waiting():
    return waiting(3000, around=lambda t, us: t.frame("train.py(12): metrics", us))


@case(about=("gpu-starvation", "low-gpu-utilization"))
def without_host_at_fault():
    """The GPU has nothing to do for a while though all is launched: one stream waits for another that nobody sees."""
    t = Trace()
    for _ in t.steps():
        t.busy(30000)
        t.free[0, STREAM] += 12000
        t.busy(30000)
    return t


@case("low-gpu-utilization", "gpu-starvation")
def idle_gpu():
    return waiting(200000, around=lambda t, us: t.frame("train.py(12): evaluate", us))


@case("gpu-starvation", "profiler-overhead")
def stacks_recorded():
    t = Trace()
    for _ in t.steps(fill=10000):
        t.now = max(t.free.values())
        for _ in range(4000):
            with t.frame("train.py(12): one_of_many", 1):
                pass
        t.busy(10000)
    return t


# Launching.

@case("launch-bound", "gpu-starvation", "low-gpu-utilization")
def small_kernels():
    t = Trace()
    for _ in t.steps():
        for _ in range(300):
            t.launch("aten::add", 8, op_us=15)
    return t


@case(about="launch-bound")
def without_small_kernels():
    t = Trace()
    for _ in t.steps():
        for _ in range(300):
            t.launch("aten::add", 30, op_us=15)
    return t


@case(about="launch-bound")
def without_launches_of_a_graph():
    """The same small kernels, all of one graph launch."""
    t = Trace()
    for _ in t.steps():
        with t.op("graph replay", 5):
            corr, start = t.id(), t.now + 5
            t.call("cudaGraphLaunch", 10, correlation=corr)
            for i in range(300):
                t.event("kernel", ELEMENTWISE, start + 12 * i, start + 12 * i + 8,
                        {"device": 0, "stream": STREAM, "correlation": corr, "External id": t.ops[-1]}, pid=0, tid=STREAM)
            t.free[0, STREAM] = start + 12 * 300
    return t


# Calls that wait.

def results(read, host=400, layers=20):
    t = Trace()
    for _ in t.steps():
        for _ in range(layers):
            t.busy(2000)
            read(t)
            with t.frame("train.py(20): log", host):
                pass
    return t


def item(t):
    with t.frame("train.py(19): step"), t.op("aten::item", 2), t.op("aten::_local_scalar_dense", 2):
        t.copy("DtoH", 2, 4)
        t.sync()


@case("synchronising-calls", "gpu-starvation")
def item_each_layer():
    return results(item)


@case("synchronising-calls", "gpu-starvation")
def device_synchronize():
    return results(lambda t: t.sync("cudaDeviceSynchronize"))


@case(about="synchronising-calls")
def without_waiting_for_results():
    return results(lambda t: None)


@case(about="synchronising-calls")
def without_queue_emptied():
    """The host waits, but for a copy on a stream of its own; the GPU has more to do."""
    t = Trace()
    for _ in t.steps():
        for _ in range(20):
            t.busy(2000)
            t.work("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 2, "cudaMemcpyAsync", stream=20, bytes=4)
            t.sync(stream=20)
    return t


@case("gpu-starvation", about="synchronising-calls")
def without_anything_to_wait_for():
    """The host has much to do after the call, but the call itself found the GPU ready: it costs nothing."""
    t = Trace()
    for _ in t.steps():
        t.busy(30000)
        t.now = max(t.free.values())
        t.sync()
        with t.frame("train.py(20): log", 10000):
            pass
        t.busy(30000)
    return t


# Copies.

def input_copies(memory, us, count, nbytes, fill=40000):
    t = Trace()
    for _ in t.steps():
        for _ in range(count):
            with t.op("aten::to", 2), t.op("aten::_to_copy", 2), t.op("aten::copy_", 2):
                t.copy("HtoD", us, nbytes, memory)
        t.busy(fill)
    return t


@case("pageable-copies")
def pageable_input():
    return input_copies("Pageable", 3000, 1, 24 << 20)


@case(about="pageable-copies")
def without_pageable_input():
    return input_copies("Pinned", 3000, 1, 24 << 20)


@case(about="pageable-copies")
def without_cost_of_pageable_input():
    return input_copies("Pageable", 100, 1, 1 << 20)


@case("tiny-copies")
def tiny_inputs():
    return input_copies("Pinned", 2, 100, 256, 20000)


@case(about="tiny-copies")
def without_many_tiny_inputs():
    return input_copies("Pinned", 2, 10, 256, 20000)


@case(about="tiny-copies")
def without_tiny_inputs():
    return input_copies("Pinned", 20, 30, 1 << 20, 20000)


# Tensor Cores.

def product(kernel, gpu, dims, op="aten::mm", dtype="float", strides=None, good=TENSOR_CORE):
    t = Trace(gpu)
    more = {"Input_type": [dtype, dtype], **({"Input_Strides": strides} if strides else {})}
    for _ in t.steps():
        for _ in range(10):
            t.launch("aten::bmm", 1000, good)
            t.launch(op, 1000, kernel, dims, **more)
    return t


MULTIPLES = [[4096, 1024], [1024, 1024]]
VOCABULARY = [[2048, 768], [768, 50257]]
ROW_MAJOR = [[768, 1], [50257, 1]]
COLUMN_MAJOR = [[768, 1], [1, 768]]


@case("no-tensor-cores")
def float32_on_volta():
    return product("volta_sgemm_128x64_nn", V100, MULTIPLES, good=ELEMENTWISE)


@case("tf32-off")
def float32_on_ampere():
    return product("ampere_sgemm_128x64_nn", A100, MULTIPLES)


@case("tf32-off", "no-tensor-cores")
def float32_alone_on_ampere():
    return product("ampere_sgemm_128x64_nn", A100, MULTIPLES, good=ELEMENTWISE)


@case(about="tf32-off")
def without_tf32_off():
    return product("cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4", A100, MULTIPLES)


@case(about=("tf32-off", "no-tensor-cores"))
def without_tf32_on_volta():
    return product("volta_sgemm_128x64_nn", V100, MULTIPLES, good="volta_h884gemm_128x64_nn")


@case(about=("tf32-off", "no-tensor-cores"))
def without_products_of_matrices():
    return product("void gemv2T_kernel_val<int, int, float, float, float, float, 128>", A100, [[1, 1024], [1024, 1024]])


@case(about="tf32-off")
def without_float32_convolutions():
    """PyTorch allows TF32 in convolutions: cuDNN chose otherwise."""
    return product("implicit_convolve_sgemm", A100, [[8, 3, 32, 32], [16, 3, 3, 3]], "aten::conv2d")


@case("unaligned-gemm")
def vocabulary_not_padded():
    return product("void cutlass::Kernel<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x64_nn_align1>", A100, VOCABULARY, dtype="c10::BFloat16")


@case("unaligned-gemm")
def vocabulary_not_padded_by_strides():
    return product(TENSOR_CORE, A100, VOCABULARY, dtype="c10::BFloat16", strides=ROW_MAJOR)


@case("unaligned-gemm")
def inner_size_not_padded():
    return product("void cutlass::Kernel<cutlass_80_tensorop_f16_s16816gemm_f16_128x64_tn_align2>", A100, [[4096, 770], [770, 512]],
                   dtype="c10::Half", strides=[[770, 1], [1, 770]])


@case(about="unaligned-gemm")
def without_unaligned_sizes():
    return product(TENSOR_CORE, A100, [[4096, 768], [768, 50304]], dtype="c10::BFloat16", strides=COLUMN_MAJOR)


@case(about="unaligned-gemm")
def without_unaligned_rows():
    """Only the batch is no multiple, along which no row lies."""
    return product(TENSOR_CORE, A100, [[4099, 768], [768, 512]], dtype="c10::BFloat16", strides=COLUMN_MAJOR)


@case(about="unaligned-gemm")
def without_16_bit_products():
    return product("cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align1", A100, VOCABULARY)


# Several GPUs.

def gpus(*loads, name=TENSOR_CORE, op="aten::mm"):
    t = Trace(*(dict(A100, id=i) for i in range(len(loads))))
    for _ in t.steps():
        with t.op(op, 10):
            for i, us in enumerate(loads):
                t.kernel(us, name, device=i)
    return t


@case("data-parallel")
def data_parallel():
    return gpus(20000, 20000, op="DataParallel.forward")


@case(about="data-parallel")
def without_second_gpu():
    return gpus(20000, op="DataParallel.forward")


@case("uneven-gpus")
def uneven():
    return gpus(30000, 18000)


@case(about="uneven-gpus")
def without_uneven_gpus():
    return gpus(30000, 28000)


def distributed(backend, comm, hidden):
    t = Trace(meta={"distributedInfo": {"backend": backend, "rank": 0, "world_size": 2}})
    for _ in t.steps():
        with t.op("DistributedDataParallel.forward", 10):
            t.busy(30000)
        if comm:
            if not hidden:
                t.free[0, 20] = t.free[0, STREAM]
            with t.op("nccl:all_reduce", 10):
                t.kernel(comm, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", stream=20)
            if not hidden:
                t.free[0, STREAM] = t.free[0, 20]
    return t


@case("ddp-without-nccl")
def gloo():
    return distributed("gloo", 0, False)


@case(about="ddp-without-nccl")
def without_other_backend():
    return distributed("nccl", 0, False)


@case("communication-bound")
def slow_network():
    return distributed("nccl", 15000, False)


@case(about="communication-bound")
def without_exposed_communication():
    return distributed("nccl", 15000, True)


# Memory.

def memory(share):
    t = Trace()
    for _ in t.steps(fill=20000):
        t.memory(int(A100["totalGlobalMem"] * share))
    return t


@case("memory-nearly-full")
def full_memory():
    return memory(0.95)


@case(about="memory-nearly-full")
def without_full_memory():
    return memory(0.6)


# The backward pass and the optimizer.

def backward(recompute, used=None, op_frames=True):
    t = Trace()
    for _ in t.steps():
        for _ in range(4):
            t.busy(2000)
        if used:
            t.memory(used)
        for _ in range(4):
            with t.op("autograd::engine::evaluate_function: MmBackward0", 2):
                if recompute:
                    with t.frame("torch/utils/checkpoint.py(1111): unpack_hook"), t.frame("torch/utils/checkpoint.py(1385): recompute_fn"):
                        with t.frame("nn.Module: Linear_0"):
                            t.busy(2000)
                with t.op("MmBackward0", 2):
                    t.busy(2000)
                    t.busy(2000)
    return t


@case("recomputation")
def checkpointing():
    return backward(True)


@case("recomputation")
def checkpointing_with_room():
    return backward(True, 10 << 30)


@case(about="recomputation")
def without_checkpointing():
    return backward(False)


@case("recomputation")
def reentrant_checkpointing():
    t = Trace()
    for _ in t.steps():
        t.busy(2000)
        with t.op("autograd::engine::evaluate_function: CheckpointFunctionBackward", 2), t.op("CheckpointFunctionBackward", 2):
            t.busy(2000)
            with t.op("autograd::engine::evaluate_function: MmBackward0", 2), t.op("MmBackward0", 2):
                t.busy(4000)
    return t


def optimizer(name, kernels, us, kernel, fill=20000):
    t = Trace()
    for _ in t.steps(fill=fill):
        with t.range(f"Optimizer.step#{name}.step"):
            for _ in range(kernels):
                t.launch("aten::add_", us, kernel)
    return t


FOREACH = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<BinaryOpScalarFunctor<float> >"
FUSED = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor<float> >"


@case("unfused-optimizer")
def one_by_one():
    return optimizer("AdamW", 200, 20, ELEMENTWISE)


@case("unfused-optimizer")
def foreach():
    return optimizer("AdamW", 15, 200, FOREACH)


@case(about="unfused-optimizer")
def without_unfused_optimizer():
    return optimizer("AdamW", 15, 200, FUSED)


@case(about="unfused-optimizer")
def without_fused_form():
    """No fused form of this one exists."""
    return optimizer("Shampoo", 200, 20, ELEMENTWISE)


@case(about="unfused-optimizer")
def without_cost_of_optimizer():
    return optimizer("SGD", 60, 5, ELEMENTWISE, 60000)


def zeroing(op, parent="Optimizer.zero_grad#SGD.zero_grad", outer=None):
    t = Trace()
    for _ in t.steps(fill=20000):
        with t.range(parent):
            for _ in range(100):
                with t.op(outer, 1) if outer else contextlib.nullcontext():
                    with t.op(op, 5):
                        t.work("gpu_memset", "Memset (Device)", 5, "cudaMemsetAsync", bytes=4096)
    return t


@case("zeroed-gradients")
def zeroed_gradients():
    return zeroing("aten::zero_")


@case(about="zeroed-gradients")
def without_zeroed_gradients():
    return zeroing("aten::zero_", "forward")


@case(about="zeroed-gradients")
def without_old_zeros():
    """New memory is zeroed, not a gradient."""
    return zeroing("aten::zero_", outer="aten::zeros")


# Ops that follow each other.

def constants(fill, shape=(64, 64), copied=(64, 64), on_gpu=False, us=400):
    t = Trace()
    for _ in t.steps():
        for _ in range(10):
            with t.op("aten::zeros", 5):
                t.simple("aten::empty", 5)
                with t.op(fill, us, [list(shape), []]):
                    if on_gpu:
                        t.kernel(5)
            with t.op("aten::to", 5, [list(copied), []]), t.op("aten::_to_copy", 5, [list(copied)]), t.op("aten::copy_", 5, [list(copied)] * 2):
                t.copy("HtoD", 5, 16384, "Pinned", waits=False)
            t.busy(8000)
    return t


@case("copied-constants")
def zeros_to_device():
    t = constants("aten::zero_")
    return t


@case("copied-constants")
def random_to_device():
    return constants("aten::normal_")


@case(about="copied-constants")
def without_copied_constants():
    return constants("aten::add_")


@case(about="copied-constants")
def without_same_shape():
    return constants("aten::zero_", copied=(32, 3))


@case(about="copied-constants")
def without_fill_on_host():
    return constants("aten::zero_", on_gpu=True)


def rounds(count, same=True):
    t = Trace()
    for _ in t.steps(fill=12000):
        t.now = max(t.free.values())
        for i in range(count):
            t.simple("aten::select", 20)
            t.launch("aten::mul" if same or i % 2 else "aten::div", 10, op_us=40)
            t.launch("aten::copy_", 5, op_us=20)
        t.busy(12000)
    return t


@case("loop-indexing")
def loop_over_index():
    return rounds(18)


@case(about="loop-indexing")
def without_loop_over_index():
    return rounds(18, False)


@case(about="loop-indexing")
def without_long_loop():
    return rounds(8)


def convolutions(bias, norm="aten::batch_norm", training="True", counter=True, bias_us=200):
    t = Trace()
    for _ in t.steps():
        for _ in range(5):
            with t.op("aten::conv2d", 5, [[8, 3, 64, 64], [16, 3, 3, 3], [16] if bias else []]), t.op("aten::convolution", 5):
                t.kernel(5000, "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_stage4")
                if bias and bias_us:
                    t.launch("aten::add_", bias_us)
            if counter:
                t.simple("aten::add_", 5, dims=[[], [], []])
            with t.op(norm, 5, [[8, 16, 64, 64], [16], [16], [16], [16], [], [], [], []],
                      Concrete_Inputs=["", "", "", "", "", training, "0.1", "1e-5", "True"]):
                t.kernel(500)
    return t


@case("conv-bias")
def bias_before_norm():
    return convolutions(True)


@case("conv-bias")
def bias_without_counter():
    return convolutions(True, counter=False, bias_us=0)


@case(about="conv-bias")
def without_bias():
    return convolutions(False)


@case(about="conv-bias")
def without_norm():
    return convolutions(True, "aten::group_norm")


@case(about="conv-bias")
def without_training():
    return convolutions(True, training="False")


TO_NHWC = "void cudnn::engines_precompiled::nchwToNhwcKernel<__nv_bfloat16, __nv_bfloat16, float, false, true, (cudnnKernelDataType_t)2>()"
TO_NCHW = "void cudnn::engines_precompiled::nhwcToNchwKernel<__nv_bfloat16, __nv_bfloat16, float, true, false, (cudnnKernelDataType_t)2>()"


def layouts(us=200, op="aten::cudnn_convolution", to_nhwc=TO_NHWC, to_nchw=TO_NCHW, count=5):
    """Convolutions of 1600 us, whose input, weight and result are turned around."""
    t = Trace()
    for _ in t.steps():
        for i in range(5):
            with t.op(op, 5):
                for name in (to_nhwc, to_nhwc) if i < count else ():
                    t.kernel(us, name)
                t.kernel(1600, "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_stage4")
                if i < count:
                    t.kernel(us, to_nchw)
    return t


@case("layout-conversions")
def layouts_around_convolutions():
    return layouts()


@case("layout-conversions")
def layouts_in_the_backward():
    return layouts(op="aten::convolution_backward")


@case(about="layout-conversions")
def without_layouts():
    return layouts(count=0)


@case(about="layout-conversions")
def without_layouts_of_convolutions():
    """Another op's: channels_last of the model would not change them."""
    return layouts(op="aten::convert_layout")


@case(about="layout-conversions")
def without_long_layouts():
    """4.5 % of the device time."""
    return layouts(us=25)


@case(about="layout-conversions")
def without_kernels_of_layouts():
    """A conversion of types, or of both, as its arguments have it."""
    return layouts(to_nhwc="void cudnn::ops::convertTensor_kernel<float, __half, float, (cudnnKernelDataType_t)0>()", to_nchw=ELEMENTWISE)


def algorithms(count, data=(8, 3, 64, 64), weight=(16, 3, 3, 3)):
    t = Trace()
    for _ in t.steps():
        for _ in range(5):
            with t.op("aten::cudnn_convolution", 5, [list(data), list(weight), [], [], [], [], [], [], []],
                      Input_type=["c10::BFloat16", "c10::BFloat16"], Concrete_Inputs=["", "", "[1, 1]", "[1, 1]", "[1, 1]", "1", "True", "False", "True"]):
                for i in range(count):
                    t.kernel(2000, f"sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x{64 + 8 * i}x32_stage4")
    return t


@case("cudnn-benchmark")
def search_in_the_steps():
    return algorithms(12)


@case("cudnn-benchmark")
def search_for_a_large_convolution():
    """One of its 12 algorithms is needed: no less than 237 GFLOP."""
    return algorithms(12, (64, 256, 56, 56), (256, 256, 3, 3))


@case(about="cudnn-benchmark")
def without_search():
    return algorithms(3)


def sampled(*samples):
    """A run that keeps its GPU busy and Tensor Cores used, with one sample of (reasons, MHz) in each of its steps."""
    t = Trace()
    for i, _ in enumerate(t.steps(len(samples))):
        t.sample(*samples[i])
        for _ in range(4):
            t.launch("aten::mm", 6000, TENSOR_CORE)
    return t


@case("throttling")
def slowed_down_by_heat():
    return sampled((0, 1980), (0x68, 1200), (0x68, 1200), (0, 1980), (0x20, 1300))


@case("throttling")
def slowed_down_by_the_power_limit():
    return sampled((4, 1500), (4, 1500), (0, 1980), (4, 1490))


@case(about="throttling")
def without_slow_clocks():
    """Idle at first, application clocks set by somebody, one sample that may be chance."""
    return sampled((1, 345), (2, 1400), (2, 1400), (0x40, 1400), (2, 1400))
