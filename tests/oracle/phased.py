"""Jobs whose ranks load data, go forward and backward, average gradients and take an optimizer's step, with a planted delay in any of these."""
import json
import os
import random

PHASES = ("data loading", "forward", "forward communication", "backward", "backward communication", "optimizer", "optimizer communication", "other", "other communication")
RANGES = {"forward": "aten::mm", "backward": "autograd::engine::evaluate_function: MmBackward0", "optimizer": "Optimizer.step#SGD.step"}
MS = 1_000_000


class Run:
    """A job of `n` ranks that average gradients in each step. late(rank, step, phase) ns are added to a phase: by a longer kernel, or, with host=True, by a host that is late.
    What the GPU does in a step: nothing while data are loaded, forward, backward, an all-reduce that ends on all ranks at once, optimizer."""
    LENGTH = {"data loading": 1 * MS, "forward": 5 * MS, "backward": 9 * MS, "optimizer": 2 * MS}
    TRANSFER = MS

    def __init__(self, n, steps, late=lambda r, s, p: 0, host=False, seed=1, numbers=None):
        self.n, self.numbers = n, numbers or list(range(steps))
        noise = random.Random(seed)
        self.events = [[] for _ in range(n)]  # (phase, what, start, end): what is "kernel", "collective", "data"
        self.steps = [[] for _ in range(n)]   # (start, end, {phase: ns})
        self.offset = [noise.randrange(-50 * MS, 50 * MS) for _ in range(n)]
        free = [1_000 * MS + noise.randrange(MS // 10) for _ in range(n)]
        for s in range(len(self.numbers)):
            begin, spent = list(free), [dict.fromkeys(PHASES, 0) for _ in range(n)]
            for phase in ("data loading", "forward", "backward", "backward communication", "optimizer"):
                arrived = max(free)
                for r in range(n):
                    start = free[r]
                    if phase == "backward communication":
                        free[r] = arrived + self.TRANSFER
                        self.events[r].append((phase, "collective", start, free[r]))
                    else:
                        length, extra = self.LENGTH[phase] + noise.randrange(MS // 100), late(r, s, phase)
                        free[r] += length + extra
                        what = "data" if phase == "data loading" else "kernel"
                        self.events[r].append((phase, what, start + (extra if host and what == "kernel" else 0), free[r]))
                    spent[r][phase] += free[r] - start
            for r in range(n):
                self.steps[r].append((begin[r], free[r], spent[r]))

    def trace(self, rank):
        def clock(ns):
            return (ns + self.offset[rank]) / 1000
        out = []
        for i, (start, end, _) in zip(self.numbers, self.steps[rank]):
            out.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "pid": 1, "tid": 1, "ts": clock(start), "dur": (end - start) / 1000})
        for i, (phase, what, start, end) in enumerate(self.events[rank], 1):
            if what == "data":
                out.append({"ph": "X", "cat": "user_annotation", "name": "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "pid": 1, "tid": 1, "ts": clock(start),
                            "dur": (end - start) / 1000})
                continue
            name = RANGES[phase.split()[0]]
            kind = "cpu_op" if "::" in name else "user_annotation"
            out.append({"ph": "X", "cat": kind, "name": name, "pid": 1, "tid": 2 if phase.startswith("backward") else 1, "ts": clock(start), "dur": 0.9, "args": {"External id": i}})
            out.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2 if phase.startswith("backward") else 1, "ts": clock(start + 100), "dur": 0.5,
                        "args": {"correlation": i, "External id": i}})
            kernel = {"ph": "X", "cat": "kernel", "name": "gemm_kernel", "pid": 0, "tid": 7, "ts": clock(start), "dur": (end - start) / 1000,
                      "args": {"device": 0, "stream": 7, "correlation": i, "External id": i}}
            if what == "collective":
                kernel["name"] = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
                kernel["args"].update({"Collective name": "allreduce", "In msg nelems": 262144, "Out msg nelems": 262144, "Group size": self.n, "dtype": "Float",
                                       "Process Group Name": "0", "Process Group Ranks": str(list(range(self.n)))})
            out.append(kernel)
        return {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": self.n}, "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}],
                "traceEvents": out}

    def write(self, folder):
        for r in range(self.n):
            with open(os.path.join(folder, f"rank{r}.json"), "w") as f:
                f.write(json.dumps(self.trace(r)))

    def frontier(self):
        """By phase: what it adds, and what of that the median rank did not take, over all steps: by the definition."""
        added, beyond = dict.fromkeys(PHASES, 0), dict.fromkeys(PHASES, 0)
        top = 0
        for s in range(len(self.numbers)):
            spent = [self.steps[r][s][0] - self.steps[r][0][0] for r in range(self.n)]
            for phase in PHASES:
                own = [self.steps[r][s][2][phase] for r in range(self.n)]
                spent = [a + b for a, b in zip(spent, own)]
                more = max(0, max(spent) - top)
                top += more
                own.sort()
                median = own[self.n // 2] if self.n % 2 else own[self.n // 2 - 1] + (own[self.n // 2] - own[self.n // 2 - 1]) // 2
                added[phase] += more
                beyond[phase] += max(0, more - median)
        return added, beyond
