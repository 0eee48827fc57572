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


@case()
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


@case()
def without_wait_for_gloo():
    return by_host(20000, queued=30000)


@case()
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


@case("gpu-starvation")
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
def small_collectives_without_sizes():
    return small(60, sized=False)


@case()
def without_small_collectives():
    """Full buckets: 21 us of each 4 MiB are the bytes' own."""
    return small(60, elements=1 << 20, large=False, fill=60000)


@case()
def without_joinable_collectives():
    """Each is needed by the products that follow."""
    return small(60, between=2)


@case()
def without_many_small_collectives():
    return small(15)


@case()
def without_cost_of_small_collectives():
    return small(60, hidden=True, fill=20000)


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
