"""`report phases`: what each phase adds to the step of the ranks together, against the definition counted by hand, and of planted faults."""
import json
import os
import random
import shutil
import tempfile

import oracle
from oracle import Case, data, report, steps_report

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
                json.dump(self.trace(r), f)

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


class Phases(Case):
    def setUp(self):
        super().setUp()
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)

    def ask(self, run, *args):
        folder = tempfile.mkdtemp(dir=self.tmp)
        run.write(folder)
        return report("phases", folder, *args)

    def test_definition(self):
        """Cell by cell, on jobs whose ranks are late by chance; the phases add up to the longest time of a rank, to the nanosecond."""
        for seed, n in enumerate((1, 2, 3, 5, 8)):
            chance = random.Random(seed)
            run = Run(n, 6, late=lambda r, s, p, c=chance: c.randrange(3 * MS) if c.random() < 0.3 else 0, host=seed % 2, seed=seed)
            table = self.ask(run)
            added, beyond = run.frontier()
            rows = table.by("phase")
            for phase, ns in added.items():
                if not ns and phase not in rows:
                    continue
                self.assertEqual(round(rows[phase]["added_ns"] * 6), ns, (n, phase))
                self.assertEqual(round(rows[phase]["beyond_ns"] * 6), beyond[phase], (n, phase))
            self.assertEqual(round(sum(r["added_ns"] for r in table.rows) * 6), max(run.steps[r][-1][1] - run.steps[r][0][0] for r in range(n)))
            self.assertAlmostEqual(sum(r["share_pct"] for r in table.rows), 100)

    def test_one_step_is_exact(self):
        run = Run(4, 3, late=lambda r, s, p: 777_777 * r if p == "forward" else 0)
        for s in range(3):
            rows = self.ask(run, f"--steps={s}").rows
            self.assertEqual(sum(r["added_ns"] for r in rows), max(run.steps[r][s][1] - run.steps[r][s][0] for r in range(4)))

    def test_planted_faults(self):
        """50 faults, one rank slower or later in one phase: phase and rank are among the first two that Beyond median tells. Also in the optimizer, for which others wait in the next step,
        and in backward, which the timers of hosts cannot see."""
        chance = random.Random(7)
        for i in range(50):
            rank, phase, n = chance.randrange(6), chance.choice(list(Run.LENGTH)), 6
            delay = chance.choice((1, 2, 20, 200)) * MS
            run = Run(n, 4, late=lambda r, s, p: delay if (r, p) == (rank, phase) else 0, host=i % 2 and phase != "data loading", seed=i)
            rows = sorted(self.ask(run).rows, key=lambda r: -r["beyond_ns"])[:2]
            self.assertIn((phase, rank), [(r["phase"], r["rank"]) for r in rows], (i, delay))
            found, = [r for r in rows if r["phase"] == phase]
            self.assertAlmostEqual(found["beyond_ns"] / delay, 1, delta=0.15)

    def test_names(self):
        """The rank at the frontier, and the one next behind it."""
        run = Run(5, 4, late=lambda r, s, p: {3: 8 * MS, 1: 6 * MS}.get(r, 0) if p == "forward" else 0)
        row = self.ask(run).by("phase")["forward"]
        self.assertEqual((row["rank"], row["rank_steps_pct"], row["second_rank"], row["longest_rank"]), (3, 100, 1, 3))
        self.assertAlmostEqual(row["lead_ns"] / (2 * MS), 1, delta=0.1)

    def test_steps_with_gaps(self):
        """Numbers that do not follow each other: time begins anew, and what lies between is of no step."""
        run = Run(3, 3, numbers=[4, 5, 9])
        table = self.ask(run)
        want = max(run.steps[r][1][1] - run.steps[r][0][0] for r in range(3)) + max(run.steps[r][2][1] - run.steps[r][2][0] for r in range(3))
        self.assertEqual(round(sum(r["added_ns"] for r in table.rows) * 3), want)

    def test_steps_that_some_ranks_lack(self):
        folder = tempfile.mkdtemp(dir=self.tmp)
        run = Run(3, 5)
        run.write(folder)
        trace = run.trace(1)
        trace["traceEvents"] = [e for e in trace["traceEvents"] if e["name"] != "ProfilerStep#4"]
        with open(os.path.join(folder, "rank1.json"), "w") as f:
            json.dump(trace, f)
        table = report("phases", folder)
        self.assertEqual({r["steps"] for r in table.rows}, {4})
        self.assertIn("1 step that not all ranks recorded is left out", "\n".join(table.notes))
        code, _, err = oracle.run("report", "phases", folder, "--steps=4")
        self.assertEqual((code, err.count(b"\n")), (1, 1), err)

    def test_pipeline(self):
        """Ranks are compared with those of their pipeline stage."""
        folder = tempfile.mkdtemp(dir=self.tmp)
        run = Run(4, 3, late=lambda r, s, p: 7 * MS if p == "forward" and r >= 2 else 0)
        for r in range(4):
            trace = run.trace(r)
            for e in trace["traceEvents"]:
                if "Group size" in e.get("args", {}):
                    e["args"].update({"Group size": 2, "Process Group Ranks": str([r % 2, r % 2 + 2]), "Process Group Name": str(r % 2),
                                      "Process Group Description": "PIPELINE_MODEL_PARALLEL_GROUP"})
            with open(os.path.join(folder, f"rank{r}.json"), "w") as f:
                json.dump(trace, f)
        rows = {(r["stage"], r["phase"]): r for r in report("phases", folder).rows}
        for stage in (0, 1):
            self.assertIn(rows[stage, "forward"]["rank"], (2 * stage, 2 * stage + 1))
            self.assertLess(rows[stage, "forward"]["beyond_ns"], MS)
        self.assertAlmostEqual(rows[1, "forward"]["added_ns"] - rows[0, "forward"]["added_ns"], 7 * MS, delta=MS)

    def test_host(self):
        """Without device work the phases are those of the host."""
        trace = Run(2, 3).trace(0)
        trace["traceEvents"] = [e for e in trace["traceEvents"] if e["cat"] in ("cpu_op", "user_annotation")]
        for name in ("rank0.json", "rank1.json"):
            trace["distributedInfo"]["rank"] = int(name[4])
            with open(os.path.join(self.tmp, name), "w") as f:
                json.dump(trace, f)
        table = report("phases", self.tmp)
        self.assertIn("2 ranks recorded no device work", "\n".join(table.notes))
        self.assertEqual(table.by("phase")["data loading"]["beyond_ns"], 0)


class Real(Case):
    def check(self, *path):
        table = steps_report("phases", data(*path))
        ranks = steps_report("ranks", data(*path)).rows
        self.assertGreaterEqual(sum(r["added_ns"] for r in table.rows) + 1, max(r["step_ns"] for r in ranks))
        own = sum(r["own_ns"] for r in table.rows if r["phase"] != "between steps")
        self.assertAlmostEqual(own, sum(r["step_ns"] for r in ranks) / len(ranks), delta=1)
        return table

    def test_eight_ranks(self):
        """Ranks 0 and 6 hold the others up (test_ranks.py)."""
        table = self.check("multirank", "megatron_a100_tp8")
        worst = max(table.rows, key=lambda r: r["beyond_ns"])
        self.assertIn(worst["rank"], (0, 6))

    def test_where_clocks_are_refused(self):
        self.check("multirank", "hta_trace_filter")

    def test_nsys(self):
        self.check("nsys", "2026.2_mfu_2gpu", "mfu_2gpu_before.sqlite")
        table = self.check("more", "nsys", "2026.3_ddp_2gpu_nccl", "ddp_overlapped.sqlite")
        self.assertEqual([r["phase"] for r in table.rows], ["work", "communication"])  # nothing tells more
        self.assertIn("of no known phase", "\n".join(table.notes))
        self.assertEqual(table.rows[0]["rank"], steps_report("stragglers", data("more", "nsys", "2026.3_ddp_2gpu_nccl", "ddp_overlapped.sqlite")).rows[0]["rank"])


if __name__ == "__main__":
    oracle.main()
