"""`opscope diff A B`: what changed between two runs. Planted changes are recovered, terms add up to the difference, and real pairs get the verdict that is known of them."""
import collections
import csv
import gzip
import json
import os
import re
import shutil
import tempfile

import oracle
from oracle import Case, data

H200 = os.path.join(oracle.ROOT, "tests", "data", "h200")


class Run:
    """Steps of a training whose GPU never waits but where that is planted: [(op, shapes, [(kernel, us)])], with the path of its modules as a fourth element where it is in any."""

    def __init__(self, ops, steps=4, sleep_us=0, jitter=(0, 0, 0, 0), rank=None, world=None):
        self.events, self.at, self.ids = [], 1000.0, 1
        for step in range(steps):
            self.step(step, ops, sleep_us, jitter[step % len(jitter)])
        self.doc = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 80 << 30, "numSms": 108}], "record_shapes": 1, "traceEvents": self.events}
        if world:
            self.doc["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world}

    def step(self, number, ops, sleep_us, jitter_us):
        begin = host = self.at
        gpu = begin + 20
        modules = []
        for op, shapes, kernels, *path in ops:
            host = self.enter(modules, path[0].split("/") if path else [], host)
            self.events.append({"ph": "X", "cat": "cpu_op", "name": op, "pid": 1, "tid": 1, "ts": host, "dur": 2 * len(kernels) + 1, "args": {"External id": self.ids, "Input Dims": shapes, "Input type": ["float"] * len(shapes)}})
            for i, (name, us, *stream) in enumerate(kernels):
                self.ids += 1
                self.events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": host + 2 * i + 0.5, "dur": 1, "args": {"correlation": self.ids}})
                copy = name.startswith("Memcpy")
                at = gpu - us if stream else gpu # on another stream: at the same time as the one before
                self.events.append({"ph": "X", "cat": "gpu_memcpy" if copy else "kernel", "name": name, "pid": 0, "tid": stream[0] if stream else 7, "ts": at, "dur": us,
                                    "args": {"correlation": self.ids, "device": 0, "stream": stream[0] if stream else 7}})
                gpu = max(gpu, at + us)
            host += 2 * len(kernels) + 2
            self.ids += 1
        host = self.enter(modules, [], host)
        if sleep_us + jitter_us:
            late = max(gpu, host) + sleep_us + jitter_us
            self.events.append({"ph": "X", "cat": "user_annotation", "name": "planted sleep", "pid": 1, "tid": 1, "ts": host, "dur": late - host - 4, "args": {}})
            self.events.append({"ph": "X", "cat": "cpu_op", "name": "aten::fill_", "pid": 1, "tid": 1, "ts": late - 3, "dur": 3, "args": {"External id": self.ids, "Input Dims": [[1]]}})
            self.ids += 1
            self.events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": late - 2, "dur": 1, "args": {"correlation": self.ids}})
            self.events.append({"ph": "X", "cat": "kernel", "name": "fill", "pid": 0, "tid": 7, "ts": late, "dur": 1, "args": {"correlation": self.ids, "device": 0, "stream": 7}})
            self.ids += 1
            gpu = late + 1
        self.events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 1, "tid": 1, "ts": begin, "dur": max(host, gpu - 2) - begin, "args": {}})
        self.at = max(host, gpu) + 5

    def enter(self, inside, path, host):
        """Leaves the modules [(name, since)] that are not around the path, and enters those that are; each takes 0.1 us."""
        while [name for name, _ in inside] != path[:len(inside)]:
            name, since = inside.pop()
            self.events.append({"ph": "X", "cat": "python_function", "name": f"nn.Module: {name}", "pid": 1, "tid": 1, "ts": since, "dur": host - since, "args": {"Python id": self.ids, "Python module id": 0}})
            self.ids += 1
            host += 0.1
        for name in path[len(inside):]:
            inside.append((name, host))
            host += 0.1
        return host


def layer(n, gemm_us=500.0, norm_us=100.0, gemm="ampere_sgemm_128x64_tn", shapes=((64, 512), (512, 512))):
    return [("aten::linear", [list(s) for s in shapes], [(gemm, gemm_us)]), ("aten::layer_norm", [[64, 512]], [("vectorized_layer_norm_kernel", norm_us)])] * n


BASE = layer(6)


class Written(Case):
    """Recordings that the test writes."""

    def setUp(self):
        super().setUp()
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)
        self.n = 0

    def write(self, *args, **kwargs):
        self.n += 1
        path = os.path.join(self.tmp, f"{self.n}.json")
        with open(path, "w") as f:
            f.write(json.dumps(Run(*args, **kwargs).doc))
        return path

    def compare(self, ops, *args, base=BASE, **kwargs):
        verdict, rows, notes = oracle.diff(self.write(base), self.write(ops, **kwargs), *args)
        self.assertAlmostEqual(sum(r["delta_ns"] for r in rows), verdict["delta_ns"], delta=1)
        return verdict, rows, notes

    def only(self, rows, **want):
        """All rows but this one are noise: under 1 % of it."""
        row = rows[0]
        for key, value in want.items():
            if isinstance(value, float):
                self.assertAlmostEqual(row[key], value, delta=abs(value) * 0.01)
            else:
                self.assertEqual(row[key], value, row)
        for other in rows[1:]:
            self.assertLessEqual(abs(other["delta_ns"]), 0.01 * abs(row["delta_ns"]), other)
        return row

    def job(self, name, ranks, **more):
        """A folder of ranks; `ranks`: the ops of each."""
        folder = os.path.join(self.tmp, name)
        os.mkdir(folder)
        for i, ops in enumerate(ranks):
            with open(os.path.join(folder, f"rank{i}.json"), "w") as f:
                f.write(json.dumps(Run(ops, rank=i, world=len(ranks), **more).doc))
        return folder


class Planted(Written):
    def test_same(self):
        verdict, rows, _ = self.compare(BASE)
        self.assertEqual((rows, verdict["delta_ns"]), ([], 0))
        self.assertTrue(verdict["verdict"].startswith("No difference that 4 and 4 steps can show"), verdict)

    def test_names_of_counts(self):
        """Of GPUs kernels are counted, of which an op's call can launch several; of the host calls."""
        a, b = self.job("a", [BASE]), self.job("b", [layer(6, gemm_us=650.0)])
        for args, word in (((), "Kernels"), (("--device=cpu",), "Calls")):
            text = oracle.run("diff", a, b, *args, "--columns=name,a_calls,b_calls", "--limit=0")[1].decode()
            self.assertIn(f"{word} A", text)
            self.assertIn(f"{word} B", text)

    def test_jobs(self):
        """One rank of four has a slower kernel: numbers are means over the GPUs."""
        a, b = self.job("a", [BASE] * 4), self.job("b", [BASE, BASE, layer(6, gemm_us=650.0), BASE])
        verdict, rows, notes = oracle.diff(a, b)
        self.only(rows, kind="compute", name="/linear", label="slower", delta_ns=225_000.0, a_calls=6.0, b_calls=6.0)
        self.assertAlmostEqual(verdict["delta_ns"], 225_000, delta=2)
        self.assertIn("rank0.json and 3 more, 4 steps", notes)
        verdict, rows, _ = oracle.diff([a, "--rank=2"], [b, "--rank=2"])
        self.only(rows, name="/linear", delta_ns=900_000.0)
        os.unlink(os.path.join(b, "rank0.json"))
        code, out, err = oracle.run("diff", a, b)
        self.assertEqual((code, err), (1, b"opscope: A is 4 ranks of a job, B 3: --rank chooses the same ones (--force compares them anyway)\n"))
        verdict, rows, notes = oracle.diff(a, b, "--force")
        self.only(rows, name="/linear", delta_ns=300_000.0)
        self.assertIn("A has 4 GPUs, B 3", notes)

    def test_jobs_that_do_not_fit(self):
        folder = self.job("a", [BASE] * 3)
        with open(os.path.join(folder, "rank1.json"), "w") as f:
            f.write(json.dumps(Run(BASE, steps=3, rank=1, world=3).doc))
        code, out, err = oracle.run("diff", folder, folder)
        self.assertEqual((code, out), (1, b""))
        self.assertRegex(err.decode(), r"^opscope: of the job, .*rank1.json has 3 steps to compare, other ranks 4: --steps=A\.\.B chooses steps that all have\n$")
        self.assertEqual(oracle.diff([folder, "--steps=0..2"], [folder, "--steps=0..2"])[1], [])

    def test_a_slower_kernel(self):
        verdict, rows, _ = self.compare(layer(6, gemm_us=650.0))
        self.only(rows, kind="compute", name="/linear", direction="forward", label="slower", delta_ns=900_000.0, by_each_ns=900_000.0, a_calls=6.0, b_calls=6.0)
        self.assertEqual(rows[0]["by_calls_ns"], 0)
        self.assertRegex(verdict["verdict"], r"^B is \d+\.\d % slower: step .*; of it kernels 3\.6 ms -> 4\.5 ms; the difference: \+900\.0 us /linear forward \(slower\)")

    def test_more_calls(self):
        """6 and then 10 of 500 us: all of it comes from calls."""
        _, rows, _ = self.compare(layer(6) + layer(2, norm_us=0.001)[::2] * 2)
        self.only(rows, name="/linear", label="more calls", delta_ns=2_000_000.0, by_calls_ns=2_000_000.0, a_calls=6.0, b_calls=10.0)

    def test_calls_and_time(self):
        """The midpoint rule leaves nothing over: (8 - 6) (500 + 600) / 2 + (600 - 500) (6 + 8) / 2 = 1100 + 700."""
        _, rows, _ = self.compare([x for x in layer(8, gemm_us=600.0) if x[0] == "aten::linear"] + [x for x in layer(6) if x[0] != "aten::linear"])
        row = self.only(rows, name="/linear", delta_ns=1_800_000.0)
        self.assertAlmostEqual(row["by_calls_ns"], 1_100_000, delta=1)
        self.assertAlmostEqual(row["by_each_ns"], 700_000, delta=1)

    def test_another_kernel(self):
        _, rows, _ = self.compare(layer(6, gemm="cutlass_80_tensorop_s1688gemm_64x64", gemm_us=200.0))
        row = self.only(rows, name="/linear", label="other kernels", delta_ns=-1_800_000.0)
        self.assertEqual((row["by_calls_ns"], row["by_each_ns"], row["a_calls"], row["a_each_ns"], row["b_each_ns"]), (None, None, 6, 500_000, 200_000)) # not calls of the same thing
        _, rows, _ = self.compare(layer(6, gemm="cutlass_80_tensorop_s1688gemm_64x64", gemm_us=200.0), "--by=kernel")
        self.assertEqual([(r["label"], r["delta_ns"]) for r in rows[:2]], [("gone", -3_000_000), ("new", 1_200_000)])

    def test_other_shapes(self):
        _, rows, _ = self.compare(layer(6, gemm_us=900.0, shapes=((128, 512), (512, 512))))
        self.only(rows, name="/linear", label="other shapes", delta_ns=2_400_000.0)

    def test_sets_of_kernels(self):
        """Each op runs another pair of eight kernels, in all combinations, at the same times: every row says so."""
        first = [("aten::cat", [[8]], [(f"kernel{i}", 10.0) for i in range(8)])]
        pairs = [(i, j) for i in range(8) for j in range(i)]
        ops = lambda turn: first + [(f"aten::op{n}", [[8]], [(f"kernel{k}", us) for k, us in zip(pairs[(n + turn) % len(pairs)], (50.0, 60.0 + 10 * bool(turn)))]) for n in range(len(pairs))]
        for turn in range(1, 12):
            _, rows, _ = self.compare(ops(turn), base=ops(0))
            self.assertEqual(len(rows), len(pairs))
            self.assertEqual({r["label"] for r in rows}, {"other kernels"})

    def test_kernels_that_no_op_launched(self):
        """Of a recording without ops, each kernel is a row of its own, and two programs are no runs of one."""
        def bare(kernels):
            path = self.write([("aten::x", [[1]], kernels)] * 3)
            with open(path) as f:
                doc = json.load(f)
            doc["traceEvents"] = [e for e in doc["traceEvents"] if e["cat"] != "cpu_op"]
            with open(path, "w") as f:
                f.write(json.dumps(doc))
            return path
        a = bare([("gemm_a", 100.0), ("norm_a", 50.0)])
        _, rows, _ = oracle.diff(a, bare([("gemm_a", 130.0), ("norm_a", 50.0)]))
        self.only(rows, name="gemm_a", label="slower", delta_ns=90_000.0)
        self.assertIn("only 0 % of the time", self.refused(a, bare([("conv_b", 100.0), ("relu_b", 50.0)]))[1])

    def test_regions_of_one_pass(self):
        """Two compiled regions in place of all ops: which op went into which is unknown, so that they are one row."""
        region = lambda n, us: (f"CompiledFunction{n}", [[64, 512]], [(f"triton_fused_{n}", us)])
        for turn in (False, True):
            ops = [region(0, 900.0), region(1, 1300.0)]
            _, rows, _ = self.compare(ops[::-1] if turn else ops)
            row = self.only(rows, label="as a region", a_ns=3_600_000.0, b_ns=2_200_000.0, a_calls=12.0, b_calls=2.0)
            self.assertRegex(row["name"], r"CompiledFunction1 and 1 more$")

    def test_other_collectives(self):
        """A collective of another kind is not the old one renamed."""
        collective = lambda name: [("c10d::x_", [[64]], [(f"ncclDevKernel_{name}_Sum_f32_RING_LL()", 700.0)])]
        _, rows, _ = self.compare(BASE + collective("AllReduce"), base=BASE + collective("ReduceScatter"))
        self.assertEqual({(r["name"].split("_")[1], r["label"]) for r in rows}, {("AllReduce", "new"), ("ReduceScatter", "gone")})

    def test_new_and_gone(self):
        extra = [("aten::dropout", [[64, 512]], [("fused_dropout_kernel", 300.0)])]
        _, rows, _ = self.compare(BASE + extra)
        self.only(rows, name="/dropout", label="new", delta_ns=300_000.0)
        _, rows, _ = self.compare(BASE, base=BASE + extra)
        self.only(rows, name="/dropout", label="gone", delta_ns=-300_000.0)

    def test_a_sleep(self):
        """The host sleeps 3 ms a step: the time is without work, and no kernel is named."""
        _, rows, _ = self.compare(BASE, sleep_us=3000)
        self.assertEqual(rows[0]["kind"], "idle")
        self.assertAlmostEqual(sum(r["delta_ns"] for r in rows if r["kind"] == "idle"), 3_000_000, delta=30_000)
        for r in rows:
            if r["kind"] == "compute":
                self.assertLessEqual(abs(r["delta_ns"]), 2_000, r)

    def test_a_stream_moved(self):
        """Work that runs beside other work makes the step shorter by its length; shared moments are halved, and still add up."""
        both = [("aten::linear", [[64, 512], [512, 512]], [("ampere_sgemm_128x64_tn", 500.0)]), ("aten::relu", [[64, 512]], [("relu_kernel", 500.0, 9)])]
        after = [("aten::linear", [[64, 512], [512, 512]], [("ampere_sgemm_128x64_tn", 500.0)]), ("aten::relu", [[64, 512]], [("relu_kernel", 500.0)])]
        verdict, rows, _ = self.compare(both * 4, base=after * 4)
        self.assertAlmostEqual(verdict["delta_ns"], -2_000_000, delta=10_000)
        self.assertEqual([round(r["delta_ns"] / 1e6, 2) for r in rows[:2]], [-1.0, -1.0])

    def test_copies_and_collectives(self):
        ops = BASE + [("aten::copy_", [[64, 512]], [("Memcpy HtoD (Pageable -> Device)", 400.0)]), ("c10d::allreduce_", [[64]], [("ncclDevKernel_AllReduce_Sum_f32_RING_LL()", 700.0)])]
        _, rows, _ = self.compare(ops)
        self.assertEqual([(r["kind"], round(r["delta_ns"])) for r in rows[:2]], [("comm", 700_000), ("copy", 400_000)])

    def test_a_lower_clock(self):
        """Every kernel takes 1.1 times as long: that is said once, and not of each kernel."""
        extra = [("aten::relu", [[64, 512]], [("relu_kernel", 80.0)])]
        slow = [(op, shapes, [(name, us * 1.1) for name, us in kernels]) for op, shapes, kernels in BASE + extra]
        _, _, notes = self.compare(slow, base=BASE + extra)
        self.assertIn("take 1.10 times as long in B, nearly all of them: the GPU's clock", notes)
        _, _, notes = self.compare(layer(6, gemm_us=650.0) + extra, base=BASE + extra)
        self.assertNotIn("the GPU's clock", notes)

    def test_scatter(self):
        """Steps scatter by some 300 us: 20 us are no difference, and the least that would be seen is said; 3 ms are one."""
        noise = (150, 420, 10, 300, 260, 80, 390, 210)
        a = self.write(BASE, steps=8, jitter=noise)
        verdict, _, _ = oracle.diff(a, self.write(layer(6, norm_us=103.0), steps=8, jitter=noise[::-1]))
        self.assertTrue(verdict["verdict"].startswith("No difference that 8 and 8 steps can show (from "), verdict)
        self.assertGreater(verdict["least_ns"], verdict["half_ns"])
        verdict, _, _ = oracle.diff(a, self.write(layer(6, gemm_us=1000.0), steps=8, jitter=noise[::-1]))
        self.assertTrue(verdict["verdict"].startswith("B is "), verdict)
        self.assertGreater(verdict["delta_ns"], verdict["half_ns"])

    def test_scatter_of_rows(self):
        """The host is late by other times in each step; in B a kernel is 30 us slower in all steps. The kernel's change is known, the host's is not."""
        a, b = self.write(BASE, steps=8, jitter=(0, 900, 300, 600)), self.write(layer(6, gemm_us=530.0), steps=8, jitter=(700, 0, 900, 500))
        verdict, rows, _ = oracle.diff(a, b)
        gemm, = (r for r in rows if r["name"] == "/linear")
        self.assertEqual((gemm["label"], gemm["delta_ns"], gemm["half_ns"]), ("slower", 180_000, 0))
        host = max((r for r in rows if r["kind"] == "idle"), key=lambda r: r["half_ns"])
        self.assertEqual(host["label"], "unclear")
        # Of (0, 900, 300, 600) and (700, 0, 900, 500) twice each: means 450 and 525; by hand, as in query/diff_noise.h, which tests/unit/test_diff_noise.c checks.
        self.assertAlmostEqual(host["delta_ns"], 75_000, delta=2_000)
        self.assertGreater(host["half_ns"], 300_000)
        self.assertLess(host["half_ns"], 500_000)
        self.assertNotIn("without work", verdict["verdict"])
        sure = oracle.diff(self.write(BASE, steps=8, jitter=(10, 15, 10, 15)), self.write(BASE, steps=8, jitter=(515, 510, 515, 510)))
        self.assertEqual([(r["kind"], r["label"]) for r in sure[1][:1]], [("idle", "more")])
        self.assertRegex(sure[0]["verdict"], r"slower: step .*: \+500\.0 us without work")

    def test_hosts(self):
        """--device=cpu compares what the hosts did, though the GPUs worked: an op of the host takes 300 us longer; a builtin's object has another address in each run."""
        def hosts(us, address, jitter=(0, 0, 0, 0)):
            doc = Run(BASE, jitter=jitter).doc
            steps = [e for e in doc["traceEvents"] if e["name"].startswith("ProfilerStep")]
            for i, e in enumerate(steps):
                end = e["ts"] + e["dur"]
                doc["traceEvents"].append({"ph": "X", "cat": "cpu_op", "name": "aten::unique", "pid": 1, "tid": 1, "ts": end - 1000, "dur": us, "args": {"External id": 90000 + i, "Input Dims": [[8]]}})
                doc["traceEvents"].append({"ph": "X", "cat": "python_function", "name": f"<built-in method item of Tensor object at {address}>", "pid": 1, "tid": 1, "ts": end - 500, "dur": 400, "args": {"Python id": 90000 + i}})
            self.n += 1
            path = os.path.join(self.tmp, f"{self.n}.json")
            with open(path, "w") as f:
                f.write(json.dumps(doc))
            return path
        a, b = hosts(100, "0x7f00aa"), hosts(400, "0x7fffbb0")
        verdict, rows, notes = oracle.diff(a, b, "--device=cpu")
        row, = (r for r in rows if r["name"] == "/unique")
        self.assertEqual((row["kind"], row["label"], row["delta_ns"], row["half_ns"]), ("host", "slower", 300_000, 0))
        self.assertFalse([r for r in rows if "built-in" in r["name"]])
        self.assertAlmostEqual(sum(r["delta_ns"] for r in rows), verdict["delta_ns"], delta=1)
        self.assertIn("of the thread that runs the steps", notes)
        self.assertEqual(oracle.diff(a, b)[1], oracle.diff(a, b, "--device=0")[1])
        for device, status, why in (("1", 2, "--device=1: no work of this GPU in "), ("gpu", 2, "--device=gpu: cpu or the number of a GPU was expected")):
            code, out, err = oracle.run("diff", a, b, f"--device={device}")
            self.assertEqual((code, out), (status, b""))
            self.assertIn(why, err.decode())

    def host(self, frames, jitter=(0, 0, 0, 0)):
        """A run with more ranges on the thread of its steps: frames(begin of the step, its end) -> [(category, name, start, us)]."""
        doc = Run(BASE, jitter=jitter).doc
        for e in [e for e in doc["traceEvents"] if e["name"].startswith("ProfilerStep")]:
            for cat, name, at, us in frames(e["ts"], e["ts"] + e["dur"]):
                ids = {"Python id": len(doc["traceEvents"])} if cat == "python_function" else {"External id": 10 ** 6 + len(doc["traceEvents"])}
                doc["traceEvents"].append({"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": at, "dur": us, "args": ids})
        self.n += 1
        path = os.path.join(self.tmp, f"{self.n}.json")
        with open(path, "w") as f:
            f.write(json.dumps(doc))
        return path

    def test_a_frame_without_end(self):
        """torch writes frames whose end it has not seen as if they went on for long: such a frame ends with the range around it, and the ops of later steps keep their time."""
        ops = lambda begin, end: [("cpu_op", "aten::unique", end - 900, 300), ("python_function", "f.py(1): around", end - 500, 400), ("cpu_op", "aten::sort", end - 300, 100)]
        endless = lambda begin, end: [x if x[1] != "f.py(1): around" else (*x[:3], 10 ** 7) for x in ops(begin, end)] + [("user_annotation", "caller", end - 550, 470)]
        _, rows, _ = oracle.diff(self.host(lambda begin, end: [("python_function", "f.py(1): other", end - 500, 400)]), self.host(endless), "--device=cpu", "--force", "--by=op")
        for name, us in (("unique", 300_000), ("sort", 100_000), ("around", 320_000)):
            row, = (r for r in rows if r["name"].endswith(name))
            self.assertEqual((row["b_ns"], row["b_calls"], row["half_ns"]), (us, 1, 0), row)

    def test_a_frame_called_from_elsewhere(self):
        """A Python frame has no kernels: called from another range it is the same, or slower."""
        def frame(around, us):
            return lambda begin, end: [("user_annotation", around, end - 900, 800), ("python_function", "f.py(1): f", end - 800, us)]
        _, rows, _ = oracle.diff(self.host(frame("one", 300)), self.host(frame("two", 500)), "--device=cpu", "--force")
        row, = (r for r in rows if r["name"] == "f.py(1): f")
        self.assertEqual((row["label"], row["delta_ns"], row["by_each_ns"]), ("slower", 200_000, 200_000))

    def test_what_is_clear_within_no_difference(self):
        """A slower kernel, and communication that is gone: they cancel out, and each is known, though whole steps scatter too much."""
        comm = lambda us: [("c10d::allreduce_", [[64]], [("ncclDevKernel_AllReduce_Sum_f32_RING_LL()", us)])]
        a = self.write(BASE + comm(1200.0), steps=8, jitter=(0, 900, 300, 600))
        b = self.write(layer(6, gemm_us=700.0) + comm(100.0), steps=8, jitter=(700, 0, 900, 500))
        verdict, rows, notes = oracle.diff(a, b)
        self.assertRegex(verdict["verdict"], r"^No difference that 8 and 8 steps can show .*; of it kernels 3\.6 ms -> 4\.8 ms; within it \+1\.2 ms /linear forward \(slower\), "
                                             r"-1\.1 ms exposed communication: ncclDevKernel_AllReduce_Sum_f32_RING_LL \(shorter, or less waiting\)$")
        self.assertNotIn("lasts until the last rank has come", notes)
        self.assertNotIn("within it", oracle.diff(a, a)[0]["verdict"])

    def test_advice_on_communication(self):
        """One rank does not tell waiting from transfer; both jobs' folders do."""
        comm = lambda us: [("c10d::allreduce_", [[64]], [("ncclDevKernel_AllReduce_Sum_f32_RING_LL()", us)])]
        self.assertIn("`opscope diff` of the folders with all ranks of both jobs tells waiting from transfer", self.compare(BASE + comm(2000.0), base=BASE + comm(500.0))[2])

    def test_one_step(self):
        verdict, _, _ = oracle.diff(self.write(BASE, steps=1), self.write(layer(6, gemm_us=650.0), steps=1))
        self.assertIn("unknown whether that is more than steps scatter, because each has 1 step", verdict["verdict"])
        self.assertIsNone(verdict["half_ns"])

    def test_warm_up(self):
        """The first step takes ten times as long: it is left out, and said to be."""
        doc = Run(BASE, steps=5).doc
        first = next(e for e in doc["traceEvents"] if e["name"] == "ProfilerStep#0")
        for e in doc["traceEvents"]:
            e["ts"] += 0 if e["ts"] <= first["ts"] else 40_000
        first["dur"] += 40_000
        path = os.path.join(self.tmp, "warm.json")
        with open(path, "w") as f:
            f.write(json.dumps(doc))
        verdict, _, notes = oracle.diff(path, self.write(BASE))
        self.assertEqual((verdict["a_steps"], verdict["delta_ns"]), (4, 0))
        self.assertIn("A: the first 1 step took over 1.3 times the median and is left out", notes)

    def test_steps_of_each_side(self):
        path = self.write(BASE)
        for words, want in (((path, "--steps=1", path, "--steps=2..3"), (1, 2)), (("--steps=1", path, path), (1, 1)), ((path, path, "--steps=0..2"), (3, 3)), ((path, "--steps=1", path), (1, 4))):
            verdict, _, _ = oracle.diff(list(words), [])
            self.assertEqual((verdict["a_steps"], verdict["b_steps"]), want, words)

    def refused(self, *args):
        code, out, err = oracle.run("diff", *args)
        self.assertEqual((out, err.count(b"\n")), (b"", 1), err)
        return code, err.decode()

    def test_refused(self):
        a, other = self.write(BASE), self.write([("aten::conv2d", [[1, 3, 8, 8]], [("implicit_convolve_sgemm", 100.0)])] * 5)
        code, why = self.refused(a, other)
        self.assertEqual(code, 1)
        self.assertIn("only 0 % of the time of computation is in ops that both have", why)
        self.assertEqual(oracle.diff(a, other, "--force")[0]["matched_pct"], 0)
        code, why = self.refused(self.write(BASE, rank=3, world=8), self.write(BASE, rank=1, world=2))
        self.assertIn("the job of A has 8 ranks, that of B 2", why)
        self.assertEqual(self.refused(a)[0], 2)
        self.assertEqual(self.refused(a, a, a)[0], 2)
        self.assertEqual(self.refused(a, a, "--by=layer")[0], 2)
        self.assertEqual(self.refused(a, a, "--steps=70")[0], 2)
        self.assertEqual(self.refused(a, "/nowhere")[0], 1)
        self.assertEqual(self.refused(a, a, "-o", a)[0], 2)
        code, why = self.refused(a, os.path.join(oracle.ROOT, "tests", "data", "torch214_cpu_resnet.json.gz"))
        self.assertIn("A has device work, the other recording has none", why)

    def test_formats(self):
        a, b = self.write(BASE), self.write(layer(6, gemm_us=650.0))
        for form in ("text", "csv", "html"):
            code, out, _ = oracle.run("diff", a, b, f"--format={form}")
            self.assertEqual(code, 0)
            self.assertIn(b"linear", out)
        self.assertTrue(oracle.run("diff", a, b)[1].decode().startswith("Verdict\n"))

    def test_names_of_both(self):
        """The heading names both files, with what tells them apart; JSON has their paths."""
        a, b = self.write(BASE), self.write(layer(6, gemm_us=650.0))
        for folder in ("before", "after"):
            os.mkdir(os.path.join(self.tmp, folder))
            shutil.copy(a, os.path.join(self.tmp, folder, "trace.json"))
        before, after = (os.path.join(self.tmp, x, "trace.json") for x in ("before", "after"))
        for pair, want in (((a, b), "What changed from A (1.json) to B (2.json)"), ((before, after), "What changed from A (before/trace.json) to B (after/trace.json)"), ((a, a), "What changed from A (1.json) to B (1.json)"),
                           ((self.job("x", [BASE] * 2), self.job("y", [BASE] * 2)), "What changed from A (x) to B (y)")):
            for form in ("text", "markdown", "html"):
                self.assertIn(want, oracle.run("diff", *pair, f"--format={form}")[1].decode(), form)
            verdict, _, _ = oracle.diff(*pair)
            self.assertEqual((verdict["a_path"], verdict["b_path"]), pair)
        self.assertIn("Mine", oracle.run("diff", a, b, "--title=Mine")[1].decode())


def left_out_ns(notes):
    """What the rows of depth 0 add up to that the tree leaves out."""
    m = re.search(r"those of depth 0 add up to ([+-]?[\d.]+) (ns|us|ms|s)\b", notes)
    return float(m[1]) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[m[2]] if m else 0


class Real(Case):
    def test_kernels_of_tracediff(self):
        """TraceLens' TraceDiff of two pairs: the same kernels take the same time on each side, in all. Two models are refused unless forced."""
        for pair, paths, more in (("transformer_h100", [("more", "kineto_pairs", "transformer_h100", x) for x in ("first_run.pt.trace.json.gz", "second_run.pt.trace.json.gz")], []),
                                  ("bert_vs_falconsai_h100", [("tracelens", "h100", x) for x in ("gaunernst_bert-small-uncased__1016001.json.gz", "Falconsai_nsfw_image_detection__1016002.json.gz")], ["--force"])):
            with gzip.open(data("expected", "tracelens_diff", pair, "diff_stats.csv.gz"), "rt") as f:
                want = collections.defaultdict(lambda: [0, 0])
                for r in csv.DictReader(f):
                    want[r["name"]][r["source"] == "trace2"] += float(r["kernel_time"])
            a, b = (data(*x) for x in paths)
            if more:
                self.assertEqual(oracle.run("diff", a, b)[0], 1)
            verdict, rows, _ = oracle.diff(a, b, "--by=kernel", "--steps=all", *more)
            got = {r["full_name"] or r["name"]: [(r[f"{x}_ns"] or 0) * verdict[f"{x}_steps"] / 1000 for x in "ab"] for r in rows if r["kind"] in ("compute", "copy")}
            self.assertEqual(set(got) - set(want), set())
            for name, (first, second) in want.items():
                with self.subTest(pair=pair, kernel=name):
                    if name not in got:  # rows without a difference are left out
                        self.assertEqual(first, second)
                        continue
                    for mine, theirs in zip(got[name], (first, second)):
                        self.assertAlmostEqual(mine, theirs, delta=0.002)

    def test_modules_and_lines(self):
        """The same sums by the module that an op is in, and by the line that called it: of a GPT in float and bfloat16."""
        paths = [os.path.join(H200, f"gpt_{t}.json.gz") for t in ("fp32", "bf16")]
        by = {how: oracle.diff(*paths, f"--by={how}") for how in ("term", "module", "line")}
        verdict, rows, notes = oracle.diff(*paths, "--by=tree")
        self.assertAlmostEqual(sum(r["delta_ns"] for r in rows if r["depth"] == 0) + left_out_ns(notes), verdict["delta_ns"], delta=60)
        self.assertEqual([r["kind"] for r in rows[:4]], ["idle"] * 4)
        self.assertEqual([r["name"] for r in rows if r["depth"] == 1 and r["name"].startswith("Block")], [f"Block_{i}" for i in range(4)])
        self.assertFalse([r for r in rows if r["label"] in ("new", "gone") and r["kind"] == "compute" and r["name"] != "_to_copy" and r["depth"] < 2])
        terms = [r for r in by["term"][1] if r["kind"] == "compute"]
        for how, (verdict, rows, _) in by.items():
            self.assertAlmostEqual(sum(r["delta_ns"] for r in rows), verdict["delta_ns"], delta=1)
            self.assertEqual([r["delta_ns"] for r in rows if r["kind"] == "idle"], [r["delta_ns"] for r in by["term"][1] if r["kind"] == "idle"])
        for direction in ("forward", "backward"):
            row, = (r for r in by["module"][1] if (r["name"], r["direction"]) == ("/GPT/Block/Sequential/Linear", direction))
            inside = [r for r in terms if r["direction"] == direction and r["name"].rsplit("/", 1)[0] == "/GPT/Block/Sequential/Linear"]
            self.assertAlmostEqual(row["a_ns"], sum(r["a_ns"] for r in inside), delta=1)
        lines = {r["name"] for r in by["line"][1] if r["kind"] == "compute"}
        self.assertTrue({"gpu_capture.py(54): forward", "gpu_capture.py(68): forward", "gpu_capture.py(105): step"} <= lines, lines)
        bare = data("tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz")
        code, out, err = oracle.run("diff", *[oracle.synthetic("two_steps_overlap")] * 2, "--by=line")
        self.assertEqual((code, out), (1, b""))
        self.assertIn("A has no call stacks, so that its lines of Python are unknown", err.decode())
        self.assertEqual(oracle.run("diff", bare, bare, "--by=line")[0], 0)

    def test_frames_on_one_side(self):
        """torch 2.14 has Python frames, 2.6 none: the time of frames belongs to the ranges around them, and the ops are the same ones."""
        for model in ("lstm", "resnet"):
            verdict, rows, notes = oracle.diff(*(data("torch", f"torch{v}_cpu", f"{model}_full.json.gz") for v in ("26", "214")))
            self.assertGreater(verdict["matched_pct"], 95)
            self.assertAlmostEqual(sum(r["delta_ns"] for r in rows), verdict["delta_ns"], delta=1)
            self.assertFalse([r["name"] for r in rows if ".py(" in r["name"] or "<built-in" in r["name"] or "ProfilerStep#" in r["name"]])
            self.assertIn("B alone has Python frames", notes)

    def test_buckets_of_nsys_ai(self):
        """Its four buckets, summed over the GPUs: computation -54.70 ms, communication 25.400 -> 33.740 (+8.34), launch +4.95 and idle +41.35; it has kernels alone, and a span for each GPU."""
        folder = ("nsys", "2026.2_mfu_2gpu")
        verdict, rows, _ = oracle.diff(*(data(*folder, f"mfu_2gpu_{x}.sqlite") for x in ("before", "after")))
        ms = {(kind, side): 2e-6 * sum(r[f"{side}_ns"] or 0 for r in rows if r["kind"] in (kind, "wait" if kind == "comm" else kind)) for kind in ("compute", "comm", "copy", "idle") for side in "ab"}
        self.assertAlmostEqual(ms["comm", "a"], 25.400, delta=0.005)
        self.assertAlmostEqual(ms["comm", "b"], 33.740, delta=0.005)
        self.assertAlmostEqual(ms["compute", "b"] - ms["compute", "a"], -54.70, delta=0.05)  # memsets count here
        rest = sum(ms[kind, "b"] - ms[kind, "a"] for kind in ("copy", "idle"))
        edges = 2e-6 * verdict["delta_ns"] - (598.46 - 598.51)  # one span for both GPUs
        self.assertAlmostEqual(rest - edges, 4.95 + 41.35, delta=0.1)
        self.assertTrue(verdict["verdict"].startswith("Unknown whether B is slower at the same work, because neither has steps"), verdict)

    def test_itself(self):
        """No row, and no difference."""
        for path in (data("more", "kineto_pairs", "transformer_h100", "first_run.pt.trace.json.gz"), data("tb_plugin", "resnet50_num_workers_0", "worker0.1623143566756.pt.trace.json.gz"),
                     data("multirank", "megatron_a100_tp8", "megatron_kineto_0.json.gz"), data("nsys", "2026.2_mfu_2gpu", "mfu_2gpu_before.sqlite"), data("torch", "torch113_cpu", "lstm_plain.json.gz"),
                     os.path.join(H200, "gpt_bf16.json.gz"), os.path.join(H200, "gpt_bf16_graph.json.gz")):
            for by in ("term", "op", "kernel"):
                verdict, rows, _ = oracle.diff(path, path, f"--by={by}")
                self.assertEqual((rows, verdict["delta_ns"]), ([], 0), path)
                self.assertRegex(verdict["verdict"], "^(No difference|Unknown whether B is slower)")

    def test_steps_are_those_of_the_report(self):
        """The mean of the sum of roles of the steps that count, from another report."""
        path = data("tb_plugin", "resnet50_num_workers_0", "worker0.1623143566756.pt.trace.json.gz")
        verdict, _, _ = oracle.diff(path, path)
        steps = oracle.report("steps", path).rows
        self.assertAlmostEqual(verdict["a_step_ns"], sum(r["total_ns"] for r in steps) / len(steps), delta=2)

    def test_the_same_program_twice(self):
        """Its kernels take 391 and 393 us: host times differ more, and the steps scatter more than that."""
        pair = [data("more", "kineto_pairs", "transformer_h100", f"{n}_run.pt.trace.json.gz") for n in ("first", "second")]
        verdict, _, _ = oracle.diff(*pair)
        self.assertTrue(verdict["verdict"].startswith("No difference that "), verdict)

    def test_two_spans_of_one_run(self):
        """The plugin's two recordings of one training: the later one waited 24 ms longer for its data in each step, and nothing else differs by 1 % of the step."""
        one, two = (data("tb_plugin", "resnet50_num_workers_0", f"worker0.{n}.pt.trace.json.gz") for n in (1623143566756, 1623143089861))
        verdict, rows, _ = oracle.diff(one, two)
        self.assertRegex(verdict["verdict"], r"^B is 14\.6 % slower: .*; of it kernels 98\.6 ms -> 98\.7 ms; the difference: \+23\.8 ms without work: data loader, -1\.1 ms in a term that 6 and 6 steps cannot tell from noise \(")
        self.assertEqual([r["name"] for r in rows if abs(r["step_pct"]) > 1], ["data loader"])

    def test_lower_precision(self):
        """A GPT in fp32 and in bf16: products get other kernels and are faster; the host is late then."""
        verdict, rows, _ = oracle.diff(os.path.join(H200, "gpt_fp32.json.gz"), os.path.join(H200, "gpt_bf16.json.gz"))
        self.assertRegex(verdict["verdict"], r"^B is 34\.9 % faster \(as recorded, with call stacks that slow the host\): step .*; of it kernels 23\.4 ms -> 4\.6 ms; the difference: ")
        self.assertEqual((rows[0]["label"], rows[0]["direction"]), ("other kernels", "backward"))
        self.assertTrue(rows[0]["name"].endswith("/linear"))

    def test_80_columns(self):
        """A, B, their difference and why stand before calls; times in one unit."""
        out = oracle.run("diff", *[os.path.join(H200, f"gpt_{t}.json.gz") for t in ("fp32", "bf16")], "--width=80")[1].decode().split("What changed from ")[1].splitlines()
        self.assertEqual(out[1].split(), ["Name", "Pass", "A", "B", "B", "-", "A", "Because"])
        self.assertRegex(out[3], r"backward +6\.684 ms +0\.713 ms +-5\.971 ms +other kernels$")

    def test_hosts_of_compiled(self):
        """A frame of Python begins in the last step and has no end: the optimizer's ops, which the region leaves alone, keep their time and calls."""
        _, rows, _ = oracle.diff(os.path.join(H200, "gpt_bf16.json.gz"), os.path.join(H200, "gpt_bf16_compiled.json.gz"), "--device=cpu", "--force")
        ops = [r for r in rows if r["direction"] == "optimizer" and r["a_calls"] and r["name"].startswith("/Optimizer.step")]
        self.assertGreater(len(ops), 5)
        for r in ops:
            self.assertGreater(r["b_ns"], 0.5 * r["a_ns"], r)
            self.assertEqual(r["a_calls"], r["b_calls"])

    def test_compiled(self):
        """The region stands beside the ops that it replaced."""
        verdict, rows, notes = oracle.diff(os.path.join(H200, "gpt_bf16.json.gz"), os.path.join(H200, "gpt_bf16_compiled.json.gz"))
        regions = [r for r in rows if r["label"] == "as a region"]
        self.assertEqual({r["direction"] for r in regions}, {"forward", "backward"})
        for r in regions:
            self.assertGreater(r["a_ns"], r["b_ns"])
        self.assertIn("of B's time with work is in compiled regions or graphs", notes)
        self.assertIsNone(verdict["matched_pct"])

    def test_recorded_with_less(self):
        """The same recording without Python frames, or without shapes: no difference, and no row that says there is one."""
        with tempfile.TemporaryDirectory() as tmp:
            full = os.path.join(H200, "gpt_bf16.json.gz")
            for lacks, said in (("python_function", "or one side does not tell the modules (with_stack, with_modules)"), ("Input Dims", "has no shapes (record_shapes)")):
                doc = oracle.load(full)
                doc["traceEvents"] = [e for e in doc["traceEvents"] if e.get("cat") != lacks]
                for e in doc["traceEvents"]:
                    e.get("args", {}).pop(lacks, None)
                path = os.path.join(tmp, "less.json")
                with open(path, "w") as f:
                    f.write(json.dumps(doc))
                for pair in ((full, path), (path, full)):
                    for by in ("term", "op"):
                        verdict, rows, notes = oracle.diff(*pair, f"--by={by}")
                        self.assertIn(said, notes)
                        self.assertEqual(verdict["delta_ns"], 0)
                        self.assertEqual([r for r in rows if r["kind"] != "idle"], [])
                    if lacks == "python_function":
                        code, out, err = oracle.run("diff", *pair, "--by=tree")
                        self.assertEqual((code, out), (1, b""))
                        self.assertIn("one side does not tell the modules: record both with stacks (with_stack) or modules (with_modules)", err.decode())

    def test_another_model(self):
        code, _, err = oracle.run("diff", os.path.join(H200, "gpt_bf16.json.gz"), os.path.join(H200, "resnet18_bf16.json.gz"))
        self.assertEqual(code, 1)
        self.assertRegex(err, rb"only \d+ % of the time of computation is in ops that both have")

    def test_whole_recordings_are_no_steps(self):
        """Before and after a change, one iteration is a third shorter, while the recordings are equally long: nothing may be said of the latter."""
        verdict, _, notes = oracle.diff(*(data("nsys", "2026.2_mfu_2gpu", f"mfu_2gpu_{w}.sqlite") for w in ("before", "after")))
        self.assertTrue(verdict["verdict"].startswith("Unknown whether B is slower at the same work, because neither has steps"), verdict)
        self.assertIn("A has no steps", notes)

    def test_ranks_of_a_job(self):
        folder = data("multirank", "megatron_a100_tp8")
        verdict, rows, _ = oracle.diff([folder, "--rank=0"], [folder, "--rank=6"])
        self.assertAlmostEqual(sum(r["delta_ns"] for r in rows), verdict["delta_ns"], delta=1)
        self.assertEqual({"comm", "idle"}, {r["kind"] for r in rows[:4]})


if __name__ == "__main__":
    oracle.main()
