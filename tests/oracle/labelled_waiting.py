"""More traces with known problems, as in labelled.py: of collectives, and of copies and calls that wait."""
from labelled import A100, STREAM, TENSOR_CORE, Trace, case

COMM = 20
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"
RANK = {"distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8}}


def rank(gpus=1):
    return Trace(*(dict(A100, id=i) for i in range(gpus)), meta=RANK)


def collective(t, us, hidden=False, device=0, around=None, elements=None, launch=10):
    """An all-reduce on a stream of its own, which waits for what is computed, and for which that waits where it is not hidden."""
    if not hidden:
        t.free[device, COMM] = max(t.free.get((device, COMM), 0), t.free.get((device, STREAM), 0))
    stated = {"Collective name": "allreduce", "In msg nelems": elements, "Out msg nelems": elements, "Group size": 2, "dtype": "Float"} if elements else {}
    with t.op(around or "c10d::allreduce_", 2), t.op("nccl:all_reduce", launch):
        t.kernel(us, NCCL, device=device, stream=COMM, **stated)
    if not hidden:
        t.free[device, STREAM] = t.free[device, COMM]


# Communication on devices.

@case("communication-bound")
def collectives_of_two_gpus():
    """Exposed 15 ms on GPU 0 and 9 ms on GPU 1, which computes for part of that: one GPU hides nothing of the other's."""
    t = rank(2)
    for _ in t.steps():
        for device, us in ((0, 30000), (1, 33000)):
            with t.op("aten::mm", 10):
                t.kernel(us, TENSOR_CORE, device=device)
        collective(t, 15000, device=0)
        collective(t, 9000, device=1)
    return t


@case("communication-bound")
def collectives_that_wait_for_gpu_1():
    """GPU 1 computes 3 ms longer before each of 5: GPU 0 waits that long in it, and the transfer takes both 4 ms."""
    t = Trace(A100, dict(A100, id=1))
    for _ in t.steps():
        for _ in range(5):
            for device, us in ((0, 17000), (1, 20000)):
                with t.op("aten::mm", 10):
                    t.kernel(us, TENSOR_CORE, device=device)
            end = max(t.free.values()) + 4000
            for device in range(2):
                begin = t.free[device, STREAM]
                collective(t, end - max(begin, t.now + 10), device=device)
    return t


@case(about="communication-bound")
def without_collectives_in_the_steps():
    t = rank()
    collective(t, 50000)
    t.now = max(t.free.values()) + 100
    for _ in t.steps():
        t.busy(30000)
    t.now = max(t.free.values()) + 100
    collective(t, 50000)
    return t


@case("communication-bound")
def collectives_of_layers():
    """Tensor parallelism: each layer needs the sum of the one before."""
    t = rank()
    for _ in t.steps():
        for _ in range(10):
            t.busy(2000)
            collective(t, 1000, around="_ReduceFromModelParallelRegion")
    return t


@case("communication-bound")
def collectives_of_gradients():
    t = rank()
    for _ in t.steps():
        t.busy(30000)
        for _ in range(4):
            collective(t, 2500, around="autograd::engine::evaluate_function: torch::autograd::AccumulateGrad")
    return t


@case("communication-bound")
def collectives_on_two_streams():
    """In each step an all-reduce of 10 ms, and 2 ms after its start an all-gather of 10 ms on another stream: 12 ms, of which the second has 2."""
    t = rank()
    for _ in t.steps():
        t.busy(30000)
        begin = t.free[0, STREAM]
        for stream, name, after in ((COMM, "AllReduce", 0), (COMM + 1, "AllGather", 2000)):
            t.free[0, stream] = begin + after
            with t.op("c10d::" + name, 2):
                t.kernel(10000, f"ncclDevKernel_{name}_RING_LL(ncclDevComm*)", stream=stream)
        t.free[0, STREAM] = max(t.free.values())
    return t


@case("communication-bound", "dataloader-bound", "gpu-starvation")
def collectives_and_loader():
    t = rank()
    for _ in t.steps():
        with t.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", us=20000):
            pass
        t.busy(30000)
        collective(t, 15000)
    return t


# Collectives on the host.

def by_host(us, queued=0, name="gloo:all_reduce", before=False, gpus=1):
    t = rank(gpus)
    if before:
        t.simple(name, us)
    for _ in t.steps():
        for device in range(gpus):
            with t.op("aten::mm", 10):
                t.kernel(30000, TENSOR_CORE, device=device)
        t.now = max(t.free.values())
        for device in range(gpus if queued else 0):
            with t.op("aten::mm", 10):
                t.kernel(queued, TENSOR_CORE, device=device)
        if not before:
            t.simple(name, us)
        for device in range(gpus):
            with t.op("aten::mm", 10):
                t.kernel(20000, TENSOR_CORE, device=device)
    return t


@case("host-collectives", "gpu-starvation")
def gloo_all_reduce():
    return by_host(20000)


@case("host-collectives", "gpu-starvation")
def gloo_all_reduce_beside_two_gpus():
    return by_host(20000, gpus=2)


@case(about="host-collectives")
def without_wait_for_gloo():
    return by_host(20000, queued=30000)


@case(about="host-collectives")
def without_gloo_in_the_steps():
    return by_host(20000, before=True)


@case("host-collectives", "gpu-starvation", "dataloader-bound")
def gloo_and_loader():
    t = by_host(20000)
    loads = [e for e in t.events if e["name"].startswith("gloo")]
    for e in loads:  # the last 8 ms of each are the loader's
        e["dur"] -= 8000
        t.event("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", e["ts"] + e["dur"], e["ts"] + e["dur"] + 8000)
    return t


def launched(count, host, fill=30000, compute=0):
    """All-reduces of 5 us, each `host` us after the last."""
    t = rank()
    for _ in t.steps():
        t.busy(fill)
        t.now = max(t.free.values())
        for _ in range(count):
            if compute:
                t.launch("aten::mm", compute, TENSOR_CORE)
                t.launch("aten::mm", compute, TENSOR_CORE)
            collective(t, 5, launch=host)
        t.busy(fill)
    return t


@case("host-collectives", "unbucketed-collectives")
def launches_of_collectives():
    return launched(60, 80)


@case("gpu-starvation", about="host-collectives")
def without_pace_of_launches():
    """Three that take long: something else holds up the host."""
    return launched(3, 3000)


# Many small collectives.

LATENCY, RATE = 12, 50e3  # us; bytes/us that go over the wire: of two ranks, as many as the message has


def small(count, elements=2048, large=True, sized=True, gpus=1, between=0, hidden=False, fill=10000):
    """Each takes LATENCY, and its bytes at RATE; the host is far ahead."""
    t = rank(gpus)
    each = LATENCY + elements * 4 / RATE
    for _ in t.steps():
        for device in range(gpus):
            with t.op("aten::mm", 10):
                t.kernel(fill, TENSOR_CORE, device=device)
        for i in range(count):
            for device in range(gpus):
                for _ in range(between):
                    with t.op("aten::mm", 1):
                        t.kernel(60, TENSOR_CORE, device=device)
                collective(t, each, hidden, device, elements=elements if sized else None, launch=1)
        if large:
            for device in range(gpus):
                collective(t, (1 << 20) * 4 / RATE, hidden, device, elements=1 << 20 if sized else None)
    return t


@case("unbucketed-collectives")
def small_collectives():
    return small(60)


@case("unbucketed-collectives")
def small_collectives_of_two_gpus():
    return small(60, gpus=2)


@case("unbucketed-collectives")
def small_collectives_on_two_streams():
    """Three rows of 20 a step, of which every other collective is on a second stream: 57 could be spared."""
    t = rank()
    for _ in t.steps():
        for i in range(60):
            if i % 20 == 0:
                t.free[0, STREAM] = max(t.free.values(), default=0)
                t.busy(2000)
                t.busy(2000)
            stream = COMM + i % 2
            t.free[0, stream] = max(t.free.get((0, s), 0) for s in (STREAM, COMM, COMM + 1))
            stated = {"Collective name": "allreduce", "In msg nelems": 8, "Out msg nelems": 8, "Group size": 2, "dtype": "Float"}
            with t.op("c10d::allreduce_", 2), t.op("nccl:all_reduce", 1):
                t.kernel(LATENCY, NCCL, stream=stream, **stated)
        t.free[0, STREAM] = max(t.free.values())
    return t


@case("unbucketed-collectives")
def small_collectives_without_sizes():
    return small(60, sized=False)


@case(about="unbucketed-collectives")
def without_small_collectives():
    """Full buckets: 21 us of each 4 MiB are the bytes' own."""
    return small(60, elements=1 << 20, large=False, fill=60000)


@case(about="unbucketed-collectives")
def without_joinable_collectives():
    """Each is needed by the products that follow."""
    return small(60, between=2)


@case(about="unbucketed-collectives")
def without_many_small_collectives():
    return small(15)


@case(about="unbucketed-collectives")
def without_cost_of_small_collectives():
    return small(60, hidden=True, fill=20000)


@case("unbucketed-collectives", "launch-bound", "gpu-starvation", about="unbucketed-collectives")
def small_collectives_one_by_one():
    """The loop over the parameters does something for each, and the GPU waits for that."""
    t = rank()
    for _ in t.steps():
        t.busy(10000)
        t.sync()
        for _ in range(60):
            collective(t, LATENCY, elements=8, launch=1)
            t.host(100)
    return t


@case("unbucketed-collectives", "dataloader-bound", "gpu-starvation")
def small_collectives_and_loader():
    t = rank()
    for _ in t.steps():
        with t.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", us=5000):
            pass
        t.busy(10000)
        for _ in range(60):
            collective(t, LATENCY, elements=8, launch=1)
    return t


# Copies that the host waits for.

def turn(t, waits=True, stream=STREAM, device=0, copies=8, copy=3000, fill=4000):
    """A copy, its product, and so on; on one stream, so that one waits for the other."""
    for _ in range(copies):
        with t.op("aten::copy_", 2):
            t.work("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", copy, "cudaMemcpyAsync", device=device, stream=stream, bytes=24 << 20)
            if waits:
                t.sync(device=device, stream=stream)
        with t.op("aten::mm", 10):
            t.kernel(fill, TENSOR_CORE, device=device)


def turns(gpus=1, loader=0, **how):
    t = Trace(*(dict(A100, id=i) for i in range(gpus)))
    for _ in t.steps():
        if loader:
            with t.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", us=loader):
                pass
        for device in range(gpus):
            turn(t, device=device, **how)
    return t


@case("blocking-copies")
def blocking_copies():
    return turns()


@case("blocking-copies", "dataloader-bound", "gpu-starvation")
def blocking_copies_and_loader():
    return turns(loader=7000)


@case("blocking-copies")
def blocking_copies_of_a_gpu_of_two():
    """The other one computes."""
    t = Trace(A100, dict(A100, id=1))
    for _ in t.steps():
        with t.op("aten::mm", 10):
            t.kernel(8 * 4200, TENSOR_CORE, device=1)
        turn(t)
    return t


@case("blocking-copies")
def blocking_copies_without_steps():
    t = Trace()
    t.busy(2000)
    turn(t)
    t.busy(2000)
    return t


@case(about="blocking-copies")
def without_blocking_copies():
    """The same copies run beside the products: a stream of their own, and nobody waits."""
    return turns(waits=False, stream=21)


@case(about="blocking-copies")
def without_many_blocking_copies():
    return turns(copies=2, fill=20000)


@case(about="blocking-copies")
def without_work_beside_blocking_copies():
    t = Trace()
    for _ in t.steps():
        for _ in range(8):
            with t.op("aten::copy_", 2):
                t.copy("HtoD", 3000, 24 << 20, "Pinned")
                t.sync()
    return t


@case(about="blocking-copies")
def without_blocking_copies_in_the_steps():
    t = Trace()
    turn(t)
    t.now = max(t.free.values()) + 100
    for _ in t.steps(fill=30000):
        pass
    return t


# Small copies in a row.

def element(t, device=0):
    with t.op("aten::select", 3):
        pass
    with t.op("aten::copy_", 8):
        t.work("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 2, "cudaMemcpyAsync", waits=True, device=device, bytes=4)
        t.sync(device=device)
    t.simple("aten::add_", 10)


def elements(count, fill=40000, gpus=1, kernel=0, pause=0):
    t = Trace(*(dict(A100, id=i) for i in range(gpus)))
    for _ in t.steps():
        for device in range(gpus):
            with t.op("aten::mm", 10):
                t.kernel(fill, TENSOR_CORE, device=device)
        t.now = max(t.free.values())
        for _ in range(count):
            for device in range(gpus):
                element(t, device)
                if kernel:
                    t.launch("aten::mul", kernel)
            t.host(pause)
        t.now = max(t.free.values())
    return t


@case("tiny-copies", "gpu-starvation", "synchronising-calls", "pageable-copies")
def copy_per_element():
    return elements(500)


@case("tiny-copies", "gpu-starvation", "synchronising-calls", "pageable-copies", "loop-indexing")
def copy_and_kernel_per_element():
    """Work of the GPU between two of them, so that one copy cannot bring all."""
    return elements(500, kernel=10)


@case(about="tiny-copies")
def without_many_elements():
    return elements(8)


@case(about="tiny-copies")
def without_elements_in_the_steps():
    t = Trace()
    for _ in range(500):
        element(t)
    t.now = max(t.free.values()) + 100
    for _ in t.steps(fill=30000):
        pass
    return t


# Copies between GPUs.

def peer(t, us, nbytes, source=0, target=1, stream=30):
    with t.op("aten::copy_", 5):
        t.work("gpu_memcpy", "Memcpy PtoP (Device -> Device)", us, "cudaMemcpyAsync", device=source, stream=stream, bytes=nbytes,
               fromDevice=source, inDevice=source, toDevice=target)


def peers(us=5000, fill=10000, hidden=False, steps=True, before=False, loader=0):
    t = Trace(A100, dict(A100, id=1))
    for n in range(2):
        if before and not n:
            peer(t, 4 * us, 40 << 20)
            t.now = max(t.free.values()) + 100
        with t.step(n) if steps else t.range("round"):
            if loader:
                with t.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", us=loader):
                    pass
            for device in range(2):
                with t.op("aten::mm", 5):
                    t.kernel(fill, TENSOR_CORE, device=device)
            if not before:
                if not hidden:
                    t.free[0, 30] = max(t.free.values())
                peer(t, us, 40 << 20)
            t.free[0, STREAM] = t.free[1, STREAM] = max(t.free.values())
            t.drain()
    return t


@case("peer-copies")
def copies_between_gpus():
    return peers()


@case("peer-copies", "low-gpu-utilization")
def overlapping_copies_between_gpus():
    """Three copies of 9 ms at the same time: 27 ms of copies in a step of 10 ms."""
    t = Trace(A100, dict(A100, id=1))
    for _ in t.steps():
        for device in range(2):
            with t.op("aten::mm", 5):
                t.kernel(1000, TENSOR_CORE, device=device)
        t.free[0, 30] = t.free[1, 30] = t.free[0, 31] = max(t.free.values())
        peer(t, 9000, 40 << 20)
        peer(t, 9000, 80 << 20, 1, 0)
        peer(t, 9000, 20 << 20, 0, 2, stream=31)
        t.free[0, STREAM] = t.free[1, STREAM] = max(t.free.values())
    return t


@case("peer-copies")
def copies_between_gpus_without_steps():
    return peers(steps=False)


@case("peer-copies", "dataloader-bound", "gpu-starvation")
def copies_between_gpus_and_loader():
    return peers(fill=14000, loader=5000)


@case(about="peer-copies")
def without_exposed_copies_between_gpus():
    return peers(hidden=True)


@case(about="peer-copies")
def without_long_copies_between_gpus():
    return peers(us=500)


@case(about="peer-copies")
def without_copies_between_gpus_in_the_steps():
    return peers(before=True)


# The program sleeps.

def sleeping(us, steps=True, queued=0, before=False, loader=0):
    t = Trace()
    if before:
        with t.frame("<built-in function sleep>", us):
            pass
    for n in range(3):
        with t.step(n) if steps else t.range("round"):
            t.busy(30000)
            t.now = max(t.free.values())
            if queued:
                t.busy(queued)
            if not before:
                with t.frame("<built-in function sleep>", us):
                    pass
            if loader:
                with t.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", us=loader):
                    pass
            t.busy(30000)
            t.drain()
    return t


@case("sleeping-host", "gpu-starvation")
def sleep_in_steps():
    return sleeping(20000)


@case("sleeping-host", "gpu-starvation")
def sleep_without_steps():
    return sleeping(20000, steps=False)


@case("sleeping-host", "gpu-starvation", "dataloader-bound")
def sleep_and_loader():
    return sleeping(20000, loader=15000)


@case(about="sleeping-host")
def without_long_sleep():
    return sleeping(1500)


@case(about="sleeping-host")
def without_sleep_while_the_gpu_waits():
    return sleeping(20000, queued=30000)


@case(about="sleeping-host")
def without_sleep_in_the_steps():
    return sleeping(20000, before=True)


# The pace of launching.

def triton(us=6, every=30, count=200):
    """Kernels whose launches the recorder does not know, as it once did not know those of Triton."""
    t = Trace()
    for _ in t.steps():
        t.busy(2000)
        t.now = max(t.free.values())
        for _ in range(count):
            with t.frame("<built-in function launch>", every):
                pass
            t.event("kernel", "triton_poi_fused_add_0", t.now, t.now + us, {"device": 0, "stream": STREAM}, pid=0, tid=STREAM)
        t.free[0, STREAM] = t.now + us
    return t


@case("launch-bound", "gpu-starvation", "low-gpu-utilization")
def small_kernels_without_calls():
    return triton()


@case(about="launch-bound")
def without_pace_of_kernels_without_calls():
    return triton(us=28)


# Collectives where no steps are marked.

@case("communication-bound")
def collectives_without_steps():
    t = rank()
    for i in range(5):
        t.busy(10000 + 500 * i)
        collective(t, 5000)
    return t


@case("host-collectives", "gpu-starvation")
def gloo_without_steps():
    t = rank()
    for i in range(4):
        t.busy(30000 + 1000 * i)
        t.now = max(t.free.values())
        t.simple("gloo:all_reduce", 12000)
    t.busy(30000)
    return t


@case("unbucketed-collectives")
def small_collectives_without_steps():
    t = rank()
    t.busy(10000)
    for _ in range(60):
        collective(t, LATENCY, elements=8, launch=1)
    collective(t, (1 << 20) * 4 / RATE, elements=1 << 20)
    t.busy(9000)
    return t


# Steps that are far longer than the others.

def iterations(first=None, middle=None, count=4, fill=30000, gpus=1, before=False, loader=0):
    """`first`, `middle`: what the first step and the one after it have besides."""
    t = Trace(*(dict(A100, id=i) for i in range(gpus)))
    if before and first:
        first(t)
    for n in t.steps(count):
        if loader:
            with t.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", us=loader):
                pass
        if first and n == 1 and not before:
            first(t)
        if middle and n == 3:
            middle(t)
        for device in range(gpus):
            with t.op("aten::mm", 10):
                t.kernel(fill, TENSOR_CORE, device=device)
    return t


def allocate(t):
    for _ in range(4):
        t.call("cudaMalloc", 5000)


def load(t):
    with t.range("Lazy Function Loading", "overhead", 20000):
        pass


def search(t):
    for i in range(10):
        t.launch("aten::cudnn_convolution", 2000, f"implicit_convolve_sgemm_{i}")


@case("first-iteration", "gpu-starvation")
def first_step_allocates():
    return iterations(allocate)


@case("first-iteration", "gpu-starvation")
def first_step_loads_on_two_gpus():
    return iterations(load, gpus=2)


@case("first-iteration", "gpu-starvation")
def first_step_launches_slowly():
    """The first launch of a kernel loads it."""
    return iterations(lambda t: t.work("kernel", TENSOR_CORE, 10, "cudaLaunchKernel", 20000))


@case("first-iteration")
def first_step_searches():
    return iterations(search, count=8)


@case("first-iteration", "gpu-starvation")
def third_step_allocates():
    return iterations(middle=allocate)


@case("first-iteration", "gpu-starvation", "dataloader-bound")
def first_step_allocates_and_loader():
    return iterations(allocate, loader=15000)


@case("first-iteration", "gpu-starvation")
def first_step_allocates_in_calls_of_calls():
    """The driver's calls are inside the runtime's: 10 ms in all, not 19.5. Of 10 ms more nothing was recorded."""
    def nested(t):
        for _ in range(4):
            with t.range("cudaMalloc", "cuda_runtime", 125):
                t.call("cuMemCreate", 2375, "cuda_driver")
        t.host(10000)
    return iterations(nested)


@case("first-iteration", "gpu-starvation")
def long_steps_of_many():
    """Steps 1, 4, 7, 10 and 13 of 20 allocate: 20 to 24 ms, step 10 longest."""
    t = Trace()
    for n in t.steps(20):
        if n % 3 == 1 and n < 15:
            t.call("cudaMalloc", {1: 21000, 4: 20000, 7: 22000, 10: 24000, 13: 23000}[n])
        t.busy(30000)
    return t


@case(about="first-iteration")
def without_length_of_steps():
    """The steps are marks of no length, but one, and all device work lies outside them: of that time nothing can be said."""
    t = Trace()
    for n in range(1, 9):
        with t.range(f"ProfilerStep#{n}"):
            if n == 1:
                t.call("cudaMalloc", 20000)
        t.busy(30000)
        t.now = max(t.free.values()) + 10
    return t


@case("first-iteration", "gpu-starvation")
def first_step_in_python():
    """No call tells why the first step takes longer; one function does: 18 ms beyond its 1 ms in the others."""
    t = Trace()
    for n in t.steps(4):
        with t.frame("train.py(7): step", 500 if n == 1 else 400):
            with t.frame("model.py(36): forward", 19000 if n == 1 else 1000):
                pass
            t.busy(30000)
            t.drain()
    return t


@case(about="first-iteration")
def without_long_first_step():
    return iterations(lambda t: t.call("cudaMalloc", 3000))


@case(about="first-iteration")
def without_start_up_in_the_steps():
    return iterations(allocate, before=True)


@case(about="first-iteration")
def without_other_start_up():
    """The third step has more of the same work: nothing of it is start-up."""
    return iterations(middle=lambda t: t.busy(20000))


@case("gpu-starvation", about="first-iteration")
def without_steps_to_compare():
    return iterations(allocate, count=2)


@case("gpu-starvation", about="first-iteration")
def without_steps_allocates_at_first():
    t = Trace()
    t.busy(30000)
    t.now = max(t.free.values())
    allocate(t)
    for i in range(4):
        t.busy(30000 + 1000 * i)
    return t


# Clocks.

@case("throttling")
def one_gpu_of_two_slowed_down():
    """Of each GPU by itself: GPU 1 is hot, GPU 0 is not."""
    t = Trace(A100, dict(A100, id=1))
    for _ in t.steps(5):
        for device in range(2):
            t.sample(0x20 if device else 0, 1200 if device else 1980, device)
            with t.op("aten::mm", 10):
                t.kernel(24000, TENSOR_CORE, device=device)
    return t


# Copies within a GPU.

def inner_copies(count, us=100, fill=20000, gpus=1, steps=True, stream=STREAM, around=None, before=False, loader=0):
    t = Trace(*(dict(A100, id=i) for i in range(gpus)))

    def copy_all():
        for _ in range(count):
            for device in range(gpus):
                with t.op(around or "aten::clone", 2), t.op("aten::copy_", 2):
                    t.work("gpu_memcpy", "Memcpy DtoD (Device -> Device)", us, "cudaMemcpyAsync", device=device, stream=stream, bytes=us << 20)
    if before:
        copy_all()
        t.now = max(t.free.values()) + 100
    for n in range(2):
        with t.step(n) if steps else t.range("round"):
            if loader:
                with t.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", us=loader):
                    pass
            for device in range(gpus):
                with t.op("aten::mm", 10):
                    t.kernel(fill, TENSOR_CORE, device=device)
            if not before:
                copy_all()
            t.drain()
    return t


@case("device-copies")
def copies_within_a_gpu():
    return inner_copies(20)


@case("device-copies")
def copies_within_two_gpus():
    return inner_copies(20, gpus=2)


@case("device-copies")
def copies_within_a_gpu_without_steps():
    return inner_copies(20, steps=False)


@case("device-copies")
def copies_of_buckets():
    return inner_copies(20, around="torch.distributed.ddp.reducer::copy_bucket_to_grad")


@case("device-copies")
def copies_of_buckets_on_two_gpus():
    return inner_copies(20, around="torch.distributed.ddp.reducer::copy_bucket_to_grad", gpus=2)


@case("device-copies", "dataloader-bound", "gpu-starvation")
def copies_within_a_gpu_and_loader():
    return inner_copies(20, loader=5000)


@case(about="device-copies")
def without_exposed_copies_within_a_gpu():
    return inner_copies(20, stream=21)


@case(about="device-copies")
def without_long_copies_within_a_gpu():
    return inner_copies(20, us=10)


@case(about="device-copies")
def without_copies_within_a_gpu_in_the_steps():
    return inner_copies(20, before=True)


# Code that torch.compile made, beside a GPU that has work all the time.

@case("recompiles", "gpu-starvation")
def compiled_again_beside_a_busy_gpu():
    """GPU 0 waits 8 ms in the second step, in which code is compiled again; GPU 1 works on."""
    t = Trace(A100, dict(A100, id=1))
    for n in t.steps():
        with t.op("aten::mm", 10):
            t.kernel(34000, TENSOR_CORE, device=1)
        t.busy(20000)
        t.now = t.free[0, STREAM]
        if n == 2:
            with t.frame("torch/_dynamo/convert_frame.py(1350): __call__", 10), t.frame("torch/_inductor/graph.py(10): run", 8000):
                pass
        with t.op(f"Torch-Compiled Region: 0/{n - 1}", 10):
            t.kernel(10000, TENSOR_CORE)
    return t


# What the loader does.

@case("dataloader-bound", "gpu-starvation", "single-process-dataloader")
def loader_with_a_slow_function():
    """Per step 20 ms in the loader: 15 ms in one function, 3 ms in another one, and 2 ms of its own."""
    t = Trace()
    for _ in t.steps():
        with t.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", us=2000):
            with t.frame("data.py(5): resize", 15000):
                pass
            with t.frame("data.py(9): normalize", 3000):
                pass
        t.busy(50000)
    return t


@case("dataloader-bound", "gpu-starvation", "single-process-dataloader")
def loader_with_equal_functions():
    t = Trace()
    for _ in t.steps():
        with t.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", us=2000):
            for i in range(3):
                with t.frame(f"data.py({i}): part_{i}", 6000):
                    pass
        t.busy(50000)
    return t


# Sentences.

@case("device-copies")
def copies_one_more_in_a_step_of_40():
    t = Trace()
    for n in t.steps(40):
        t.busy(5000)
        for _ in range(21 if n == 40 else 20):
            with t.op("aten::copy_", 2):
                t.work("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 100, "cudaMemcpyAsync", bytes=100 << 20)
    return t
