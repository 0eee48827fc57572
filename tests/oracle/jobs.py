"""Small jobs with a planted truth: Kineto files of ranks whose clocks, process groups and lateness are chosen.

A job is a grid of `dp` replicas of `tp` ranks. In each step every rank computes, reduces within its tensor-parallel group, computes again, and reduces within
its data-parallel group. `late(rank, step, part)` ns are added before a collective, in the way that `how` says: by a "slower" kernel, by one kernel "more", or by a "host" or a "data" loader
that gives the GPU nothing to do; a collective begins on a rank when the rank comes, and ends on all
ranks of the group `transfer` ns after the last one has come, which may be a function of the group's ranks."""
import gzip
import json
import os

US = 1000


class Job:
    def __init__(self, tp=2, dp=2, steps=4, compute=3_000_000, transfer=400_000, late=lambda rank, step, part: 0, how="slower", seq=True, names=None, ranks_listed=True):
        self.tp, self.dp, self.n = tp, dp, tp * dp
        self.steps, self.compute, self.transfer, self.late, self.how = steps, compute, transfer, late, how
        self.seq, self.names, self.ranks_listed = seq, names or (lambda rank, kind: kind), ranks_listed
        self.events = {r: [] for r in range(self.n)}  # (kind, group, start, end, seq) or ("compute", None, start, end, None), true times
        self.marks = {r: [] for r in range(self.n)}
        self.idle = {r: [] for r in range(self.n)}
        self.play()

    def groups(self, part):
        if part == 0:
            return [[d * self.tp + t for t in range(self.tp)] for d in range(self.dp)]
        return [[d * self.tp + t for d in range(self.dp)] for t in range(self.tp)]

    def play(self):
        free = {r: 1_000_000_000 for r in range(self.n)}
        for step in range(self.steps):
            begin = dict(free)
            for part in (0, 1):
                for r in range(self.n):
                    late = self.late(r, step, part)
                    if late and self.how in ("host", "data"):
                        self.idle[r].append((free[r], free[r] + late))
                        free[r] += late
                    if late and self.how == "more":
                        self.events[r].append(("compute", None, free[r], free[r] + late, None))
                        free[r] += late
                    length = self.compute + (late if self.how == "slower" else 0)
                    self.events[r].append(("compute", None, free[r], free[r] + length, None))
                    free[r] += length
                for group in self.groups(part):
                    end = max(free[r] for r in group) + (self.transfer(group) if callable(self.transfer) else self.transfer)
                    for r in group:
                        self.events[r].append(("tp" if part == 0 else "dp", group, free[r], end, step))
                        free[r] = end
            for r in range(self.n):
                self.marks[r].append((step, begin[r], free[r]))

    def waits(self, rank):
        """What the rank waited, ns: by the definition."""
        total = 0
        for kind, group, start, end, _ in self.events[rank]:
            total += end - self.transfer - start if kind != "compute" else 0
        return total

    def trace(self, rank, offset=0, drift=0.0):
        """The rank's recording, by a clock that runs `offset` ns before the true one and gains `drift` ns each ns."""
        def clock(ns):
            return round((ns + offset + drift * ns) / US, 3)
        events = []
        for i, (step, begin, end) in enumerate(self.marks[rank]):
            events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": clock(begin), "dur": (end - begin) / US, "args": {"External id": 9000 + i}})
        for i, (start, end) in enumerate(self.idle[rank] if self.how == "data" else []):
            events.append({"ph": "X", "cat": "user_annotation", "name": "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "pid": 1, "tid": 1, "ts": clock(start + 1000),
                           "dur": (end - start - 2000) / US, "args": {"External id": 8000 + i}})
        for i, (kind, group, start, end, seq) in enumerate(self.events[rank]):
            call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": clock(start - 500), "dur": 0.4, "args": {"correlation": i + 1, "External id": i + 1}}
            kernel = {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "ts": clock(start), "dur": (end - start) / US, "name": "gemm_kernel",
                      "args": {"device": 0, "stream": 7, "correlation": i + 1, "External id": i + 1}}
            if group:
                kernel["name"] = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
                kernel["args"].update({"Collective name": "allreduce", "In msg nelems": 262144, "Out msg nelems": 262144, "Group size": len(group), "dtype": "Float",
                                       "Process Group Name": self.names(rank, kind), "Process Group Description": "undefined"})
                if self.ranks_listed:
                    kernel["args"]["Process Group Ranks"] = str(group)
                if self.seq:
                    kernel["args"]["Seq"] = seq
            events += [call, kernel]
        return {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": self.n},
                "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}], "traceEvents": events}

    def write(self, folder, clocks=None, ranks=None, name="x{}.json.gz"):
        """One file a rank, whose names do not tell the rank. clocks: {rank: (offset, drift)}."""
        for r in ranks if ranks is not None else range(self.n):
            with gzip.open(os.path.join(folder, name.format(chr(ord("a") + (self.n - 1 - r) % 26) + "w" * (r // 26))), "wt", compresslevel=1) as f:
                f.write(json.dumps(self.trace(r, *(clocks or {}).get(r, (0, 0.0)))))
