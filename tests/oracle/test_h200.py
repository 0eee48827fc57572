"""Recordings of our own from an H200 (tests/data/h200/README.md): what torch printed of the same profile, what the program knew of itself, and what
three recorders saw of one program, say the same."""
import gzip
import json
import lzma
import os
import tempfile

import oracle
from oracle import ROOT, Case, report, run

FOLDER = os.path.join(ROOT, "tests", "data", "h200")
TRAININGS = ("resnet18_fp32", "resnet18_bf16", "gpt_fp32", "gpt_bf16", "gpt_bf16_compiled", "gpt_bf16_compiled_graphs")
REPLAYS = 10
EVENTS_PCT = 0.5  # by which a step on the host may be shorter than between its CUDA events, which the GPU's clock measures


def trace(name):
    return os.path.join(FOLDER, name + ".json.gz")


def facts(name):
    with open(os.path.join(FOLDER, name + ".facts.json")) as f:
        return json.load(f)


def sql(path, query):
    code, out, err = run("sql", path, query, "--format=json", "--limit=0")
    assert code == 0, err
    return [tuple(r) for r in json.loads(out)["rows"]]


class H200(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)

    def unpacked(self, name):
        path = os.path.join(self.folder.name, name)
        if not os.path.exists(path):
            with lzma.open(os.path.join(FOLDER, name + ".xz")) as f, open(path, "wb") as g:
                g.write(f.read())
        return path

    def table(self, name):
        """The table that torch printed, and ours."""
        with gzip.open(os.path.join(FOLDER, name + ".table.txt.gz"), "rt") as f:
            want = f.read()
        code, out, err = run("report", "key-averages", trace(name), "--compat=torch-2.11", "--sort=cuda_time_total", "--limit=0", "--max-width=key:200")
        self.assertEqual(code, 0, err)
        return want.rstrip("\n"), out.decode().rstrip("\n")

    def test_tables_of_trainings_are_torchs(self):
        """All rows, cells and footers, byte for byte."""
        for name in TRAININGS:
            with self.subTest(trace=name):
                want, got = self.table(name)
                self.assertEqual(got, want)

    def test_table_of_replays_is_torchs(self):
        """But for one kernel, which torch counts once more at an overhead: the trace has no number of overheads (docs/compat.md)."""
        want, got = (self.cells(text) for text in self.table("gpt_bf16_graph"))
        self.assertEqual(len(want), len(got))
        head, differ = want[1], set()
        for a, b in zip(sorted(want), sorted(got)):
            self.assertEqual((len(a), a[0], a[-1]), (len(b), b[0], b[-1]))
            differ |= {(a[0], head[i]) for i in range(len(a)) if a[i] != b[i]}
        means = ("CUDA total", "CUDA time avg")
        self.assertEqual(differ, {(row, c) for row in ("ProfilerStep*", "aten::fill_", "cudaLaunchKernel", "Lazy Function Loading") for c in means}
                         | {("Lazy Function Loading", "Self CUDA"), ("Lazy Function Loading", "Self CUDA %")})

    @staticmethod
    def cells(text):
        return [[c.strip() for c in line.split("  ") if c.strip()] for line in text.split("\n") if line.strip()]

    def test_steps_are_those_of_cuda_events(self):
        for name in TRAININGS:
            with self.subTest(trace=name):
                steps = report("steps", trace(name), "--per=total").rows
                events = facts(name)["step_ms"][-len(steps):]
                self.assertEqual(len(steps), 2)
                for step, ms in zip(steps, events):
                    self.assertGreater(step["total_ns"] / 1e6, ms * (1 - EVENTS_PCT / 100))
                    self.assertLess(step["total_ns"] / 1e6, 1.7 * ms)  # outside of the events the host makes the batch

    def test_each_replay_runs_the_kernels_of_the_graph(self):
        rows = sql(trace("gpt_bf16_graph"), "SELECT s.name, count(*) FROM gpu_op g JOIN span s ON s.rowid = g.call WHERE g.kind = 'kernel' AND s.name = 'cudaGraphLaunch' GROUP BY s.rowid")
        self.assertEqual(len(rows), REPLAYS)
        self.assertEqual(len({n for _, n in rows}), 1)

    def test_nsys_and_our_collector_saw_the_same(self):
        for name in ("gpt_bf16", "gpt_bf16_graph"):
            with self.subTest(program=name):
                for what in ("kind, count(*)", "kind, grid_x, grid_y, grid_z, block_x, count(*)", "kind, launch.bytes, count(*)"):
                    by = what[:what.rindex(",")]
                    seen = [sql(self.unpacked(f"{name}.{kind}"), f"SELECT {what} FROM gpu_op JOIN launch ON launch.rowid = gpu_op.launch GROUP BY {by} ORDER BY {by}")
                            for kind in ("nsys.sqlite", "opscope")]
                    self.assertTrue(seen[0])
                    self.assertEqual(*seen)

    def test_a_rank_that_sleeps_in_backward_is_found(self):
        """Four ranks over gloo, whose collectives are ranges of the host; rank 2 sleeps 20 ms in each backward pass."""
        job = os.path.join(FOLDER, "ddp_gloo_late_backward")
        row = report("stragglers", job).rows[0]
        self.assertEqual((row["rank"], row["cause"], row["phase"], row["pattern"]), (2, "host", "backward", "always"))
        self.assertGreater(row["share_pct"], 95)
        for r in report("ranks", job).rows:
            waited = r["exposed_wait_ns"] / 1e6
            self.assertTrue(waited < 1 if r["rank"] == 2 else 17 < waited < 21, r)
        late = [r for r in report("collectives", job, "--group-by=instance").rows if r["start_skew_ns"] > 10e6]
        self.assertEqual([(r["last_rank"], r["bytes"]) for r in late], [(2, 4 * 5248000)] * 4)
        work = next(r for r in report("phases", job).rows if r["phase"] == "work")
        self.assertEqual(work["rank"], 2)

    def test_symptoms_stand_behind_their_cause(self):
        """In the advice about a job, too, which joins the findings of its ranks."""
        code, out, err = run("advise", os.path.join(FOLDER, "ddp_gloo_late_backward"), "--format=json")
        self.assertEqual(code, 0, err)
        rows = [(r["detector"], r["part_of"]) for r in oracle.Table(json.loads(out)).rows]
        self.assertEqual(rows[:3], [("host-collectives", None), ("low-gpu-utilization", "host-collectives"), ("gpu-starvation", "host-collectives")])
        straggler = next(r for r in oracle.Table(json.loads(out)).rows if r["detector"] == "straggler")
        self.assertTrue(17e6 < straggler["gain_ns_per_step"] < 21e6, straggler)  # without the sleep a step is some 20 ms shorter, at most as much as a rank waits
        host = next(r for r in oracle.Table(json.loads(out)).rows if r["detector"] == "host-collectives")
        self.assertIn(", 2 times)", host["evidence"].split("gloo:all_reduce")[1][:30])

    def advice(self, name):
        code, out, err = run("advise", os.path.join(FOLDER, name), "--format=json")
        self.assertEqual(code, 0, err)
        return {r["detector"]: r for r in oracle.Table(json.loads(out)).rows}

    def test_layouts_of_convolutions(self):
        """Counted from the events: all of cuDNN's kernels that turn NCHW to NHWC or back are of convolutions."""
        for name in ("resnet18_bf16.json.gz", "resnet18_fp32.json.gz"):
            events = oracle.events(oracle.load(os.path.join(FOLDER, name)))
            kernels = [e for e in events if e.get("cat") == "kernel"]
            turned = [e for e in kernels if "nchwToNhwcKernel" in e["name"] or "nhwcToNchwKernel" in e["name"]]
            ns, steps = sum(round(e["dur"] * 1000) for e in turned), len(report("steps", os.path.join(FOLDER, name)).rows)
            r = self.advice(name)["layout-conversions"]
            self.assertEqual((r["events"], r["time_ns"]), (len(turned), ns))
            self.assertAlmostEqual(r["share_pct"], 100 * ns / sum(round(e["dur"] * 1000) for e in kernels), places=6)
            self.assertTrue(0 <= ns - steps * r["gain_ns_per_step"] < steps, r)
        for name in ("gpt_bf16.json.gz", "gpt_fp32.json.gz"):
            self.assertNotIn("layout-conversions", self.advice(name))

    def test_compiled_code_is_not_blamed_for_all_idle_time(self):
        """A thread that serves the compiler's processes stands in a frame of Inductor as long as the program runs: no call of compiled code."""
        for name in ("gpt_bf16_compiled.json.gz", "gpt_bf16_compiled_graphs.json.gz"):
            steps = len(report("steps", os.path.join(FOLDER, name)).rows)
            regions = report("compile", os.path.join(FOLDER, name)).rows
            host_ns = sum(r["host_ns"] + (r["guards_ns"] or 0) for r in regions)
            self.assertLessEqual(steps * self.advice(name)["compile-wrapper"]["gain_ns_per_step"], host_ns)

    def test_advice_of_compiled_code_in_one_region(self):
        said = self.advice("gpt_bf16_compiled_graphs.json.gz")["compile-wrapper"]
        self.assertIn("the step has one region", said["advice"])
        self.assertNotIn("CUDA graphs", said["disprove"])
        self.assertIn('mode="reduce-overhead"', self.advice("gpt_bf16_compiled.json.gz")["compile-wrapper"]["advice"])

    def test_the_long_first_step_is_left_out_by_all(self):
        """The first of 11 steps captures the graph; the GPU works in 70 % of each later one."""
        found = self.advice("gpt_bf16_graph.json.gz")
        self.assertIn("first-iteration", found)
        self.assertNotIn("low-gpu-utilization", found)

    def test_unscaling_is_the_optimizers(self):
        """A GradScaler divides the gradients: layers then have nearly all of what is forward and backward."""
        rows = report("layers", self.unpacked("gpt_amp.opscope"), "--steps=1..3", "--limit=0").rows
        both = sum(r["forward_gpu_ns"] + r["backward_gpu_ns"] for r in rows)
        inside = sum(r["forward_gpu_ns"] + r["backward_gpu_ns"] for r in rows if not r["layer"].startswith("("))
        self.assertGreater(100 * inside / both, 99)


if __name__ == "__main__":
    oracle.main()
