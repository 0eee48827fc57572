"""`report slowdown` and `report pipeline` of timelines of workers: a production job against what the simulator of its authors printed (multirank/straggler_AR), and small pipelines with a planted
truth; and `report pipeline` of ranks whose process groups tell the stage."""
import json
import os
import random
import shutil
import tempfile

import oracle
from oracle import Case, data, report

MS = 1000  # times in timelines are us
AR = ("multirank", "straggler_AR")


def result(name):
    with open(data(*AR, name), encoding="utf-8") as f:
        return json.load(f)


class Pipeline:
    """Workers of a 1F1B pipeline: `pp` stages, `dp` replicas, `m` microbatches, `steps` steps. length(replica, stage, step, direction, microbatch) us of a computation. All else follows: each task begins when
    what it waits for has ended; sends and receives are there from when the worker could run them, collectives without their waiting, as in the real timeline."""
    SEND, GATHER, REDUCE, CLIP, OPTIMIZER = 2 * MS, 5 * MS, 20 * MS, 3 * MS, 4 * MS

    def __init__(self, pp=3, dp=2, m=6, steps=2, length=lambda r, p, s, d, i: 10 * MS if d == "forward" else 20 * MS):
        self.pp, self.dp, self.events, self.lengths = pp, dp, [], []
        origin = 1000 * MS
        for s in range(steps):
            origin += self.play(s, origin, m, length) + 100 * MS

    def add(self, r, p, stream, name, step, seq, start, end):
        self.events.append({"name": name, "cat": name, "ph": "X", "pid": r, "tid": 80 * p + stream, "ts": start, "dur": end - start,
                            "args": {"step": step, "model_chunk": 0, "mb_id": seq, "seq_id": seq}})

    def play(self, s, origin, m, length):
        order = {}
        for p in range(self.pp):
            warm = min(self.pp - 1 - p, m)
            order[p] = [("forward", i) for i in range(warm)]
            for i in range(m - warm):
                order[p] += [("forward", warm + i), ("backward", i)]
            order[p] += [("backward", i) for i in range(m - warm, m)]
        ends = {}  # (replica, stage) -> when its last computation ended
        for r in range(self.dp):
            done, free = {}, {p: origin + self.GATHER for p in range(self.pp)}
            at = dict.fromkeys(range(self.pp), 0)
            for p in range(self.pp):
                self.add(r, p, 3, "params-all-gather", s, 0, origin, origin + self.GATHER)
            while any(at[p] < len(order[p]) for p in at):
                for p in at:
                    if at[p] == len(order[p]):
                        continue
                    d, i = order[p][at[p]]
                    before = p - 1 if d == "forward" else p + 1
                    ready = free[p]
                    if 0 <= before < self.pp:
                        if (before, d, i) not in done:
                            continue
                        sent = done[before, d, i]
                        # The receive is there when the computation before it of its direction has ended
                        own = done.get((p, d, i - 1), origin)
                        self.add(r, before, 1, d + "-send", s, i, sent, max(sent, own) + self.SEND)
                        self.add(r, p, 1, d + "-recv", s, i, own, max(sent, own) + self.SEND)
                        ready = max(ready, max(sent, own) + self.SEND)
                    ns = length(r, p, s, d, i)
                    self.add(r, p, 0, d + "-compute", s, i, ready, ready + ns)
                    done[p, d, i] = free[p] = ready + ns
                    at[p] += 1
            ends.update({(r, p): free[p] for p in at})
        clip = 0
        reduced = {}
        for p in range(self.pp):
            last = max(ends[r, p] for r in range(self.dp))
            for r in range(self.dp):
                self.add(r, p, 3, "grads-reduce-scatter", s, 0, last, last + self.REDUCE)
                reduced[r, p] = last + self.REDUCE
            clip = max(clip, last + self.REDUCE)
        for r, p in reduced:
            self.add(r, p, 3, "optimizer-clip-main-grad", s, 0, clip, clip + self.CLIP)
            self.add(r, p, 0, "optimizer", s, 0, clip + self.CLIP, clip + self.CLIP + self.OPTIMIZER)
        self.lengths.append(clip + self.CLIP + self.OPTIMIZER - origin)
        return self.lengths[-1]

    def trace(self):
        names = {0: "compute", 1: "pp-comm", 3: "dp-comm"}
        meta = [{"ph": "M", "name": "thread_name", "pid": r, "tid": 80 * p + s, "args": {"name": f"PP rank {p}, TP rank 0, {names[s]}"}}
                for r in range(self.dp) for p in range(self.pp) for s in names]
        return meta + self.events


class Workers(Case):
    def setUp(self):
        super().setUp()
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)

    def write(self, trace):
        path = os.path.join(self.tmp, "timeline.json")
        with open(path, "w") as f:
            f.write(json.dumps(trace))
        return path

    def refused(self, path, what, name="slowdown", *args):
        code, out, err = oracle.run("report", name, path, *args)
        self.assertEqual((code, out, err.count(b"\n")), (1, b"", 1), err)
        self.assertIn(what, err.decode())


class Real(Workers):
    """One worker of 64 GPUs was slowed on purpose: that of replica 0, stage 0."""

    def test_slowdown(self):
        table = report("slowdown", data(*AR, "timeline-AR.json.gz"))
        want, mw = result("result-AR.json"), result("mw-AR.json")
        first = table.rows[0]
        self.assertEqual(len(table.rows), 16)
        self.assertEqual((first["replica"], first["stage"]), (0, 0))
        self.assertAlmostEqual(first["removed_pct"], mw["rem"] * 100, delta=0.01)
        self.assertAlmostEqual(first["added_pct"], mw["add"] * 100, delta=0.01)
        self.assertAlmostEqual(first["slowdown"], mw["tadd"] / mw["tideal"], delta=1e-5)
        note = next(n for n in table.notes if "a slowdown of" in n)
        self.assertAlmostEqual(float(note.split("a slowdown of ")[1].split(" ")[0].rstrip(".")), want["blocking_slowdown"], delta=1e-5)
        for text, seconds in (("a step takes ", mw["tori"]), (" and ", mw["tideal"]), ("As recorded it takes ", sum(want["step_t_base"].values()) / 44)):
            self.assertAlmostEqual(int(note.split(text)[1].split(" ")[0]) / 1e9, seconds, delta=1e-3)

    def test_by_stage_replica_and_op(self):
        want = result("result-AR.json")
        for by, key, column in (("stage", "blocking_decompose_by_stage", "stage"), ("replica", "blocking_decompose_by_dp_rank", "replica"), ("op", "blocking_decompose_by_optype", "op")):
            rows = {str(r[column]): r for r in report("slowdown", data(*AR, "timeline-AR.json.gz"), f"--group-by={by}").rows}
            compared = [k for k in want[key] if k in rows]
            self.assertGreaterEqual(len(compared), 4)
            for k in compared:
                self.assertAlmostEqual(rows[k]["slowdown"], want[key][k], delta=1e-5, msg=k)
            if by == "stage":
                self.assertAlmostEqual(rows["3"]["removed_pct"], result("ms-AR.json")["rem"] * 100, delta=0.01)
                self.assertAlmostEqual(rows["3"]["added_pct"], result("ms-AR.json")["add"] * 100, delta=0.01)

    def test_ideal(self):
        """The ideal timeline is ideal."""
        table = report("slowdown", data(*AR, "ideal-timeline-AR.json.gz"))
        self.assertTrue(all(abs(r["slowdown"] - 1) < 1e-6 for r in table.rows))

    def test_pipeline(self):
        rows = report("pipeline", data(*AR, "timeline-AR.json.gz")).by("stage")
        self.assertEqual([rows[s]["slowest_rank"] for s in range(1)], [0])
        self.assertGreater(rows[0]["slowest_compute_ns"], 1.9 * rows[1]["slowest_compute_ns"])
        for r in rows.values():
            self.assertAlmostEqual(r["compute_ns"] + r["collective_ns"] + r["p2p_ns"] + r["idle_ns"], r["step_ns"], delta=1)
            self.assertEqual((r["ranks"], r["steps"], r["microbatches"]), (4, 44, 32))
            self.assertAlmostEqual(r["least_bubble_pct"], 100 * 3 / 35)
            self.assertGreater(r["bubble_pct"], 35)
        base = result("result-AR.json")["step_t_base"]
        steps = report("pipeline", data(*AR, "timeline-AR.json.gz"), "--group-by=step").rows
        self.assertEqual(len(steps), 44 * 4)
        for r in steps:
            self.assertAlmostEqual(r["step_ns"] / 1e9, base[str(r["step"])], delta=1e-3)

    def test_other_reports(self):
        for name in ("ranks", "collectives", "overlap", "phases", "stragglers"):
            self.refused(data(*AR, "timeline-AR.json.gz"), "a timeline of workers", name)


class Planted(Workers):
    def slowdown(self, pipeline, *args):
        return report("slowdown", self.write(pipeline.trace()), *args)

    def test_step_is_replayed(self):
        """Where each task begins as soon as it can, the replay is the recording."""
        chance = random.Random(3)
        pipeline = Pipeline(pp=4, dp=3, m=7, steps=3, length=lambda r, p, s, d, i: chance.randrange(8 * MS, 30 * MS))
        note = next(n for n in self.slowdown(pipeline).notes if "a slowdown of" in n)
        mean = sum(pipeline.lengths) / 3 * 1000
        self.assertAlmostEqual(int(note.split("a step takes ")[1].split(" ")[0]), mean, delta=5)
        self.assertAlmostEqual(int(note.split("As recorded it takes ")[1].split(" ")[0]), mean, delta=5)

    def test_slow_worker(self):
        for replica, stage in ((0, 2), (1, 0), (1, 1)):
            pipeline = Pipeline(length=lambda r, p, s, d, i: (10 if d == "forward" else 20) * MS * (2 if (r, p) == (replica, stage) else 1))
            first = self.slowdown(pipeline).rows[0]
            self.assertEqual((first["replica"], first["stage"], first["rank"]), (replica, stage, 3 * replica + stage))
            self.assertGreater(first["removed_pct"], 95)
            self.assertEqual(report("pipeline", self.write(pipeline.trace()), "--steps=1").by("stage")[stage]["slowest_rank"], first["rank"])

    def test_long_last_stage(self):
        """No worker stands out, but the stage does."""
        pipeline = Pipeline(dp=4, length=lambda r, p, s, d, i: (10 if d == "forward" else 20) * MS * (1.5 if p == 2 else 1))
        by_stage, by_worker = self.slowdown(pipeline, "--group-by=stage").rows, self.slowdown(pipeline).rows
        self.assertEqual(by_stage[0]["stage"], 2)
        self.assertGreater(by_stage[0]["removed_pct"], 90)
        self.assertLess(by_worker[0]["removed_pct"], 10)  # the other replicas have it, too
        rows = report("pipeline", self.write(pipeline.trace())).by("stage")
        self.assertAlmostEqual(rows[2]["beyond_mean_pct"], 100 * (274 / ((184 + 184 + 274) / 3) - 1))
        self.assertLess(rows[2]["bubble_pct"], rows[0]["bubble_pct"])

    def test_least_bubble(self):
        """Equal stages, and next to no communication: the bubble is that of the schedule."""
        class Bare(Pipeline):
            SEND = GATHER = REDUCE = CLIP = OPTIMIZER = 0
        for row in report("pipeline", self.write(Bare(pp=4, dp=1, m=8).trace())).rows:
            self.assertAlmostEqual(row["bubble_pct"], 100 * 3 / 11, delta=0.1)
            self.assertAlmostEqual(row["least_bubble_pct"], 100 * 3 / 11)
            self.assertAlmostEqual(row["beyond_mean_pct"], 0, delta=0.1)

    def test_many_workers(self):
        """Of more than 64 workers those are replayed whose stage and replica both are slow."""
        pipeline = Pipeline(pp=3, dp=30, m=3, steps=1, length=lambda r, p, s, d, i: 30 * MS if (r, p) == (17, 1) else 10 * MS)
        table = self.slowdown(pipeline)
        self.assertEqual((len(table.rows), table.rows[0]["rank"]), (64, 17 * 3 + 1))
        self.assertIn("64 of 90 workers", "\n".join(table.notes))

    def test_bad_timelines(self):
        good = Pipeline().trace()
        twice = json.loads(json.dumps(good))
        for e in twice:
            if e["name"] == "forward-send":
                e["args"]["seq_id"] = 0
        self.refused(self.write(twice), "in a circle")
        for e in good:
            if e["name"].endswith("compute") and e["args"]["seq_id"] == 1:
                e["args"]["model_chunk"] = 1
        self.refused(self.write(good), "several chunks")
        self.refused(self.write(Pipeline().trace()), "no such step", "slowdown", "--steps=77")
        self.refused(oracle.synthetic("two_steps"), "timeline of workers")
        self.refused(oracle.synthetic("two_steps"), "is known to divide a pipeline", "pipeline")

    def test_missing_tasks(self):
        """A worker, or tasks, that were not recorded: what is there is replayed."""
        trace = Pipeline().trace()
        for drop in (lambda e: e["pid"] == 1, lambda e: e["name"] == "forward-recv", lambda e: e["name"] == "backward-compute" and e["pid"] == 0, lambda e: e["name"].startswith("params"),
                     lambda e: e["ph"] == "X" and e["args"]["seq_id"] > 2):
            path = self.write([e for e in trace if e["ph"] == "M" or not drop(e)])
            self.assertGreater(len(report("slowdown", path).rows), 0)
            self.assertGreater(len(report("pipeline", path).rows), 0)


class Groups(Workers):
    """Ranks of a Kineto job whose groups say which stage they are of."""

    def test_stages_by_groups(self):
        """Stage 1 computes twice as long; stage 0 waits for it in a receive."""
        for rank in (0, 1):
            events = [{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 1, "tid": 1, "ts": 1000, "dur": 1000}]
            work = (("gemm", 1000, 300 * (rank + 1)), ("ncclDevKernel_SendRecv(x)", 1000 + 300 * (rank + 1), 100 if rank else 400), ("gemm", 1700, 200), ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 1900, 100))
            for i, (name, start, length) in enumerate(work, 1):
                args = {"device": 0, "stream": 7, "correlation": i, "External id": i}
                if "SendRecv" in name:
                    args.update({"Collective name": "send" if rank else "recv", "Process Group Name": "5", "Process Group Description": "PIPELINE_MODEL_PARALLEL_GROUP", "Group size": 2,
                                 "Process Group Ranks": "[0, 1]", "In msg nelems": 8, "Out msg nelems": 8, "dtype": "Float"})
                events += [{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": start, "dur": 0.5, "args": {"correlation": i, "External id": i}},
                           {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": start, "dur": length, "args": args}]
            with open(os.path.join(self.tmp, f"r{rank}.json"), "w") as f:
                f.write(json.dumps({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}, "traceEvents": events}))
        rows = report("pipeline", self.tmp).by("stage")
        self.assertEqual({s: (r["compute_ns"], r["collective_ns"], r["p2p_ns"], r["idle_ns"]) for s, r in rows.items()},
                         {0: (500_000, 100_000, 400_000, 0), 1: (800_000, 100_000, 100_000, 0)})
        self.assertEqual((rows[0]["bubble_pct"], rows[1]["bubble_pct"]), (40, 10))
        self.assertAlmostEqual(rows[1]["beyond_mean_pct"], 100 * 150 / 650)


if __name__ == "__main__":
    oracle.main()
