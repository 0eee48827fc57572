"""Jobs that bench/jobgen makes, each with its truth."""
import json
import os
import shutil
import subprocess

import oracle

PROGRAM = os.path.join(os.environ.get("OPSCOPE_BUILD", os.path.join(oracle.ROOT, "build")), "bench", "jobgen", "jobgen")


def base(path, layers=3, kernels=3):
    """One step of one rank, for where there are no real recordings: a loader, `layers` layers of kernels and an all-reduce, the same on the autograd thread, and two more collectives."""
    events, now, ids = [], 1000.0, 0

    def put(cat, name, start, length, tid=1, **args):
        events.append({"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": start, "dur": length, "args": args})

    def work(name, length, tid, stream=7, asked_by="aten::mm"):
        nonlocal now, ids
        ids += 1
        if stream != 7:
            put("cpu_op", "record_param_comms", now - 4, 3, tid, **{"External id": 100000 + ids, "Concrete Inputs": ["", "5", "93825114103440", "0", "", "[]", "[]", "8"],
                                                                    "Input Dims": [[[4, 2048, 4096]], [], [], [], [], [], [], []]})
        else:
            put("cpu_op", asked_by, now - 4, 3, tid, **{"External id": 100000 + ids, "Input Dims": [[64, 64], [64, 64]]})
        put("cuda_runtime", "cudaLaunchKernel", now - 3, 1, tid, correlation=ids, **{"External id": 100000 + ids})
        events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": now, "dur": length, "args": {"device": 0, "stream": stream, "correlation": ids, "External id": 100000 + ids}})
        now += length + 10

    now = 1050.0
    for tid, backward in ((1, False), (2, True)):
        for layer in range(layers):
            begin = now - 6
            for _ in range(kernels):
                work("gemm_kernel", 700.0 + 50 * layer, tid)
            if backward:
                put("cpu_op", "autograd::engine::evaluate_function: MmBackward0", begin, now - begin - 2, tid, **{"External id": 200000 + layer, "Sequence number": layer + 1})
            work("ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 200.0, tid, 24)
    for _ in range(2):
        work("gemm_kernel", 500.0, 1)
        work("ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 300.0, 1, 24)
    events.append({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#4", "pid": 1, "tid": 1, "ts": 1000.0, "dur": now - 1000, "args": {"External id": 1}})
    with open(path, "w") as f:
        f.write(json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}], "traceEvents": events}))
    return path


def make(trace, folder, *options):
    """The truth of the job that jobgen makes of `trace` in `folder`. The folder has the recordings alone."""
    oracle.built(PROGRAM, "OPSCOPE_BUILD")
    said = subprocess.run([PROGRAM, trace, folder, *options], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    kept = folder.rstrip("/") + ".truth.json"
    shutil.move(os.path.join(folder, "truth.json"), kept)
    with open(kept, encoding="utf-8") as f:
        return json.load(f)
