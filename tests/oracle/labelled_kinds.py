"""More traces with known problems: of a run that labelled.py and its like have, the same without marked steps, before the steps, beside a second GPU, and
with a second cause. They are made from its events, so that what is planted stays what it is."""
import functools

import labelled
import labelled_compute  # noqa: F401 (adds its cases)
import labelled_waiting  # noqa: F401 (adds its cases)
from labelled import ABOUT, CASES, STREAM, TENSOR_CORE, case

LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
DEVICE_WORK = ("kernel", "gpu_memcpy", "gpu_memset")


def steps_of(t):
    return sorted((e for e in t.events if e["name"].startswith("ProfilerStep#")), key=lambda e: e["ts"])


def without_steps(t):
    """Ranges of another name for the steps."""
    for e in steps_of(t):
        e["name"] = "round"
    return t


def before_the_steps(t):
    """Good work follows, in steps."""
    without_steps(t)
    end = max(e["ts"] + e.get("dur", 0) for e in t.events)
    t.now, t.thread, t.free = end + 100, 1, {}
    for _ in t.steps(4):
        for _ in range(8):
            with t.op("aten::mm", 10):
                for gpu in t.gpus:
                    t.kernel(1000, TENSOR_CORE, device=gpu["id"])
    return t


def beside_a_gpu(t):
    """In each step another GPU computes a little longer than the first works, so that the first is what there is to look at."""
    t.gpus = (*t.gpus, {**t.gpus[0], "id": len(t.gpus)})
    device = len(t.gpus) - 1
    for s in steps_of(t):
        busy = sum(e["dur"] for e in t.events if e["cat"] in DEVICE_WORK and s["ts"] <= e["ts"] < s["ts"] + s["dur"] and e["args"]["device"] == 0)
        busy = min(busy * 11 // 10, s["dur"] - 2)
        corr = t.id()
        t.event("cuda_runtime", "cudaLaunchKernel", s["ts"], s["ts"] + 1, {"correlation": corr}, tid=99)
        t.event("kernel", TENSOR_CORE, s["ts"] + 1, s["ts"] + 1 + busy, {"device": device, "stream": STREAM, "correlation": corr}, pid=device, tid=STREAM)
    return t


def with_a_loader(t):
    """Each step begins with a fifth of its length in the loader, while the GPU has nothing left to do."""
    steps = steps_of(t)
    us = max(s["dur"] for s in steps) // 4
    starts = [s["ts"] for s in steps]
    for e in t.events:
        begun = sum(s < e["ts"] or (s == e["ts"] and e not in steps) for s in starts)
        e["ts"] += us * begun
    for s in steps:
        s["dur"] += us
        t.event("user_annotation", LOADER, s["ts"], s["ts"] + us)
    return t


# Of each detector: a case that has its problem, or what makes one; with a loader the GPU waits for that, too.
WAITS = {"dataloader-bound", "gpu-starvation"}
PROBLEMS = {
    "data-parallel": "data_parallel", "ddp-without-nccl": "gloo", "memory-nearly-full": "full_memory", "uneven-gpus": "uneven",
    "zeroed-gradients": "zeroed_gradients", "cudnn-benchmark": "search_in_the_steps", "conv-bias": "bias_before_norm", "layout-conversions": "layouts_around_convolutions",
    "copied-constants": "slow_zeros_to_device", "loop-indexing": "loop_over_index", "no-tensor-cores": "float32_on_volta",
    "tf32-off": "float32_on_ampere", "profiler-overhead": "profiler", "unfused-optimizer": "one_by_one", "pageable-copies": "pageable_input",
    "recomputation": "checkpointing", "single-process-dataloader": "slow_loader", "throttling": "slowed_down_by_heat", "low-gpu-utilization": "idle_gpu",
    "compile-wrapper": "compiled_wrapper", "sleeping-host": "sleep_in_steps", "launch-bound": "small_kernels", "unbucketed-collectives": "small_collectives",
    "synchronising-calls": "item_each_layer", "unaligned-gemm": "vocabulary_not_padded", "tiny-copies": "tiny_inputs",
    "host-collectives": "gloo_all_reduce", "gpu-starvation": "python_code",
}
# Two causes, one of which is the loader already.
HAS_LOADER = {"single-process-dataloader"}
# How the program and its machine are set up, which holds for all of the recording.
EVERYWHERE = {"data-parallel", "ddp-without-nccl", "memory-nearly-full", "throttling"}
# What more there is to find: kernels that are too few in a step to be a pace are many in all; of two GPUs that wait both for the loader and one for the
# other, one is idle for more than half of the time.
MORE = {"compiled_wrapper_without_steps": {"launch-bound"}, "uneven_with_a_loader": {"low-gpu-utilization"}}


@case("copied-constants", "gpu-starvation")
def slow_zeros_to_device():
    return labelled.constants("aten::zero_", us=11000)


def numbered(t, ops, calls):
    """Numbers of ops and calls go up by so many."""
    for e in t.events:
        for key, by in (("External id", ops), ("correlation", calls)):
            if key in e["args"]:
                e["args"][key] *= by
    return t


@case(about=("gpu-starvation", "low-gpu-utilization", "launch-bound"))
def without_most_events():
    """The run of small kernels as it is when most was taken out of the file: its gaps say nothing."""
    return numbered(labelled.small_kernels(), 5, 40)


@case("gpu-starvation", "low-gpu-utilization", "launch-bound")
def all_ops_and_some_calls():
    """Many calls are not written, and all ops: nothing was taken out."""
    return numbered(labelled.small_kernels(), 1, 40)


def make(name, kind):
    return kind(CASES[name][1]())


def add(detector, name):
    fires = CASES[name][0]
    for kind, found in ((without_steps, fires), (before_the_steps, {detector} & EVERYWHERE), (beside_a_gpu, fires), (with_a_loader, fires | WAITS)):
        if kind is not with_a_loader or detector not in HAS_LOADER:
            planted = f"{name}_{kind.__name__}"
            CASES[planted] = (frozenset(found | MORE.get(planted, set())), functools.partial(make, name, kind))
            ABOUT[planted] = {detector}


for _detector, _name in PROBLEMS.items():
    add(_detector, _name)
