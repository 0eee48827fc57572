"""`opscope diff` of two jobs: waiting apart from transfer, for whom the ranks waited, and a job kept in one file as a side."""
import gzip
import json
import os
import shutil
import tempfile

import jobgen
import jobs
import oracle
from oracle import Case, data, steps_report

TP8 = data("multirank", "megatron_a100_tp8")


def total(rows, what="delta_ns", **of):
    return sum(r[what] or 0 for r in rows if all(r[k] == v for k, v in of.items()))


class Jobs(Case):
    def setUp(self):
        super().setUp()
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)
        self.base = jobgen.base(os.path.join(self.tmp, "base.json"))

    def make(self, *options):
        folder = os.path.join(tempfile.mkdtemp(dir=self.tmp), "job")
        return folder, jobgen.make(self.base, folder, "--rounds=6", *options)

    def planted(self, **how):
        folder = tempfile.mkdtemp(dir=self.tmp)
        jobs.Job(**how).write(folder, {1: (40_000_000, 0.0), 3: (-7_000_000, 0.0)})
        return folder


class Planted(Jobs):
    def check_late(self, ranks, a, b):
        """Rank 3 computes 5 ms longer: so long the others wait, and the transfer is as it was. Means over the ranks."""
        (folder_a, _), (folder_b, truth) = a, b
        verdict, rows, notes = oracle.diff(folder_a, folder_b)
        self.assertAlmostEqual(total(rows), verdict["delta_ns"], delta=1)
        self.assertAlmostEqual(total(rows, kind="compute"), 5e6 / ranks, delta=5e4 / ranks)
        self.assertAlmostEqual(total(rows, kind="comm"), 0, delta=0.01 * 5e6)
        row, = (r for r in rows if r["name"] == "waiting for rank 3")
        self.assertEqual((row["kind"], row["label"], row["a_calls"]), ("wait", "more", None))
        waited = sum(r["wait_ns"] for r in truth["ranks"]) / ranks / truth["steps"]
        self.assertAlmostEqual(total(rows, "b_ns", kind="wait"), waited, delta=0.01 * waited)
        self.assertAlmostEqual(row["b_ns"], 5e6 * (ranks - 1) / ranks, delta=0.01 * 5e6)
        self.assertIn("ms waiting for rank 3, ", verdict["verdict"])
        self.assertNotIn("unknown", notes)
        self.assertNotIn("tells waiting from transfer", notes)
        return rows

    def test_a_late_rank(self):
        a, b = self.make("--tp=4"), self.make("--tp=4", "--late=3:slower:5")
        rows = self.check_late(4, a, b)
        self.assertAlmostEqual(total(rows, "delta_ns", name="waiting for rank 3"), 3.75e6, delta=0.01 * 3.75e6)
        back = oracle.diff(b[0], a[0])[1]
        self.assertAlmostEqual(total(back, name="waiting for rank 3"), -total(rows, name="waiting for rank 3"), delta=1)
        self.assertEqual(next(r["label"] for r in back if r["name"] == "waiting for rank 3"), "less")
        for by, name in (("kernel", "waiting for rank 3 in ncclDevKernel_AllReduce_Sum_f16_RING_LL"), ("op", "waiting for rank 3 in /MmBackward0"), ("module", "waiting for rank 3")):
            with self.subTest(by=by):
                verdict, by_rows, _ = oracle.diff(a[0], b[0], f"--by={by}")
                self.assertIn(name, [r["name"] for r in by_rows])
                self.assertAlmostEqual(total(by_rows, kind="wait"), total(rows, kind="wait"), delta=1)
        same = oracle.diff(b[0], b[0])
        self.assertEqual(same[1], [])

    def test_clocks_that_differ(self):
        self.check_late(4, self.make("--tp=4", "--offsets=50", "--drifts=20"), self.make("--tp=4", "--late=3:slower:5", "--offsets=50", "--drifts=20", "--seed=2"))

    def test_waiting_that_is_passed_on(self):
        """Rank 3 keeps rank 2, and both keep the replicas of each other: all of the waiting goes back to rank 3."""
        self.check_late(8, self.make("--tp=2", "--dp=4"), self.make("--tp=2", "--dp=4", "--late=3:slower:5"))

    def test_ranks_in_turns(self):
        """Another rank is late in each step: none is named, unless much of a side's waiting is for it."""
        verdict, rows, _ = oracle.diff(self.make("--tp=4", "--dp=2")[0], self.make("--tp=4", "--dp=2", "--late=turns:host:3")[0])
        self.assertIn("ms waiting for other ranks", verdict["verdict"])
        self.assertGreater(total(rows, name="waiting for other ranks"), 2e6)

    def test_slower_transfer(self):
        """Collectives take 1.25 times as long from the last arrival on."""
        verdict, rows, _ = oracle.diff(self.planted(transfer=400_000), self.planted(transfer=500_000))
        self.assertAlmostEqual(total(rows, kind="comm"), 200_000, delta=2_000)
        self.assertEqual({r["label"] for r in rows if r["kind"] == "comm"}, {"longer"})
        self.assertAlmostEqual(total(rows, kind="wait"), 0, delta=2_000)
        self.assertEqual(rows[0]["kind"], "comm")

    def test_numbers_are_those_of_ranks(self):
        folder, _ = self.make("--tp=2", "--dp=2", "--late=3:slower:5", "--jitter=300")
        rows = oracle.diff(folder, self.make("--tp=2", "--dp=2")[0])[1]
        ranks = steps_report("ranks", folder).rows
        self.assertAlmostEqual(total(rows, "a_ns", kind="wait"), sum(r["exposed_wait_ns"] for r in ranks) / len(ranks), delta=5_000)

    def test_unknown_waiting(self):
        """Ranks that were recorded at other times tell nothing of whom they waited for: the time stays whole, on both sides."""
        a, b = self.make("--tp=2")[0], self.make("--tp=2", "--late=1:slower:5")[0]
        first = os.path.join(b, sorted(os.listdir(b))[0])
        doc = oracle.load(first)
        kernels = [e for e in doc["traceEvents"] if e.get("name", "").startswith("nccl")]
        doc["traceEvents"].remove(kernels[-1])
        for e in kernels:
            e["args"].pop("Seq", None)
        with open(first, "w") as f:
            f.write(json.dumps(doc))
        for pair in ((a, b), (b, a)):
            verdict, rows, notes = oracle.diff(*pair)
            self.assertEqual([r for r in rows if r["kind"] == "wait"], [])
            self.assertAlmostEqual(total(rows), verdict["delta_ns"], delta=1)
            self.assertEqual({r["label"] for r in rows if r["kind"] == "comm"} & {"longer", "shorter"}, set())
            self.assertRegex(notes, r"[AB]: for 100 % of the exposed communication, it is unknown how much of it is waiting for other ranks: the ranks have unequal numbers of collectives")

    def test_missing_ranks(self):
        """What is seen of the waiting is told, and the rest may be waiting, too."""
        a, b = self.make("--tp=4")[0], self.make("--tp=4", "--late=3:slower:5")[0]
        _, rows, notes = oracle.diff([a, "--rank=0..2"], [b, "--rank=0..2"])
        self.assertIn("(A: 1, B: 1): what was waited for these counts as communication", notes)
        self.assertEqual(next(r["label"] for r in rows if r["kind"] == "comm"), "longer, or waiting")

    def test_one_rank(self):
        """A rank alone does not tell."""
        folder = self.make("--tp=4", "--late=3:slower:5")[0]
        _, rows, notes = oracle.diff([folder, "--rank=3"], [folder, "--rank=0"])
        self.assertEqual({r["label"] for r in rows if r["kind"] == "comm"}, {"longer, or waiting"})
        self.assertNotIn("for other ranks", notes)


class File(Jobs):
    """A job kept in one file is the side that its folder is."""

    def keep(self, folder):
        path = tempfile.mktemp(dir=self.tmp, suffix=".opscope")
        self.assertEqual(oracle.run("import", folder, "-o", path)[0], 0)
        return path

    def assert_same(self, a, b, *args):
        want = oracle.diff(a, b, *args)
        for pair in ((self.keep(a), self.keep(b)), (a, self.keep(b)), (self.keep(a), b)):
            self.assertEqual(oracle.diff(*pair, *args), want, pair)

    def test_planted(self):
        a, b = self.make("--tp=2", "--dp=2", "--offsets=50")[0], self.make("--tp=2", "--dp=2", "--late=3:slower:5", "--jitter=200")[0]
        for args in ([], ["--by=op"], ["--by=kernel"], ["--rank=0,3"], ["--rank=3"], ["--align=none"]):
            self.assert_same(a, b, *args)

    def test_real(self):
        self.assert_same(TP8, TP8)
        kept = self.keep(TP8)
        self.assertEqual(oracle.diff([kept, "--rank=0..3"], [kept, "--rank=4..7"]), oracle.diff([TP8, "--rank=0..3"], [TP8, "--rank=4..7"]))

    def test_what_is_not_kept(self):
        kept = self.keep(self.make("--tp=2")[0])
        for args in (["--steps=1..2"], ["--key-op=aten::mm"]):
            code, out, err = oracle.run("diff", kept, kept, *args)
            self.assertEqual((code, out), (2, b""))
            self.assertRegex(err.decode(), r"^opscope: .*\.opscope keeps no recordings, and answers this only of all steps and GPUs: give the folder of the ranks for a part of them\n$")
        code, _, err = oracle.run("diff", kept, kept, "--rank=7")
        self.assertEqual(code, 2)
        self.assertIn(b"no recording is of a rank that --rank asks for", err)


class Real(Case):
    def test_waiting_of_megatron(self):
        """As `ranks` has it, over eight ranks; a job against itself has no difference."""
        verdict, rows, _ = oracle.diff(TP8, TP8)
        self.assertEqual((rows, verdict["delta_ns"]), ([], 0))
        kinds = {r["kind"] for r in oracle.diff([TP8, "--rank=0..3"], [TP8, "--rank=4..7"])[1]}
        self.assertIn("wait", kinds)

    def test_gpus_of_one_recording(self):
        """Two ranks in one database of nsys: their waiting is that of `ranks`."""
        a, b = (data("nsys", "2026.2_mfu_2gpu", f"mfu_2gpu_{x}.sqlite") for x in ("before", "after"))
        _, rows, _ = oracle.diff(a, b)
        for side, path in (("a_ns", a), ("b_ns", b)):
            ranks = oracle.report("ranks", path).rows
            self.assertAlmostEqual(total(rows, side, kind="wait"), sum(r["exposed_wait_ns"] for r in ranks) / 2, delta=1e4)


class Workers(Case):
    """Timelines of StragglerAnalysis: a job of 16 workers, and what its simulator makes of it if tasks of one name take the same on all workers."""

    def setUp(self):
        super().setUp()
        self.folder = ("multirank", "straggler_AR")
        self.real, self.ideal = (data(*self.folder, f"{x}timeline-AR.json.gz") for x in ("", "ideal-"))
        with open(data(*self.folder, "result-AR.json"), encoding="utf-8") as f:
            self.result = json.load(f)

    def test_slowdown(self):
        """The simulator's slowdowns: S without the launch delays of hosts, and what these add. Its ideal computations are means, so that all of the difference is waiting."""
        verdict, rows, notes = oracle.diff(self.ideal, self.real)
        base = list(self.result["step_t_base"].values())
        self.assertEqual((verdict["a_steps"], verdict["b_steps"]), (len(base), len(base)))
        self.assertAlmostEqual(verdict["b_step_ns"], 1e9 * sum(base) / len(base), delta=1e-5 * verdict["b_step_ns"])
        self.assertAlmostEqual(verdict["a_step_ns"], 1e9 * next(iter(self.result["step_t_noblk"].values())), delta=1e3)
        slowdown = self.result["blocking_slowdown"] * self.result["launch_slowdown"]
        self.assertAlmostEqual(verdict["b_step_ns"] / verdict["a_step_ns"], slowdown, delta=1e-4 * slowdown)
        self.assertAlmostEqual(verdict["b_step_ns"] / verdict["a_step_ns"], self.result["blocking_slowdown"], delta=0.01 * slowdown)
        self.assertAlmostEqual(total(rows), verdict["delta_ns"], delta=1)
        self.assertAlmostEqual(total(rows, kind="compute"), 0, delta=1e-5 * verdict["delta_ns"])
        self.assertAlmostEqual(total(rows, kind="idle"), verdict["delta_ns"], delta=0.01 * verdict["delta_ns"])
        self.assertRegex(verdict["verdict"], r"^B is 98\.6 % slower: .*; in B worker 0 \(replica 0, stage 0\) computes 45\.3 s of a step, the median worker 19\.3 s; the difference: \S+ s without work: until grads-reduce-scatter begins")
        self.assertIn("B: `opscope report slowdown` tells what each worker costs the step", notes)
        self.assertNotIn("A: ", notes.replace("\nA: " + self.ideal, ""))
        self.assertNotIn("GPU", verdict["verdict"] + notes)
        verdict, _, notes = oracle.diff([self.real, "--steps=16..30"], [self.real, "--steps=31..45"])
        self.assertNotIn("computes", verdict["verdict"])
        self.assertIn("A: worker 0 (replica 0, stage 0) computes", notes)
        code, out, err = oracle.run("diff", self.ideal, self.real, "--device=cpu")
        self.assertEqual((code, out, err.decode().endswith("is a timeline of workers, which tells nothing of devices\n")), (2, b"", True))

    def test_tasks(self):
        """Times and calls of each kind of task are those of the file, where nothing ran beside it."""
        _, rows, _ = oracle.diff(self.ideal, self.real, "--by=op")
        with gzip.open(self.real, "rt") as f:
            events = [e for e in json.load(f) if e["ph"] == "X"]
        for name in ("forward-compute", "backward-compute", "optimizer"):
            row, = (r for r in rows if r["name"] == name)
            mine = [1000 * e["dur"] for e in events if e["name"] == name]
            self.assertAlmostEqual(row["b_ns"], sum(mine) / 44 / 16, delta=1e-5 * row["b_ns"], msg=name)  # some overlap by microseconds
            self.assertAlmostEqual(row["b_calls"], len(mine) / 44 / 16, delta=1e-9)

    def test_itself_and_parts(self):
        self.assertEqual(oracle.diff(self.real, self.real)[1], [])
        verdict, rows, _ = oracle.diff([self.real, "--steps=16..30"], [self.ideal, "--steps=16..30"])
        self.assertEqual((verdict["a_steps"], verdict["b_steps"]), (4, 4))
        base = [t for s, t in self.result["step_t_base"].items() if 16 <= int(s) <= 30]
        self.assertAlmostEqual(verdict["a_step_ns"], 1e9 * sum(base) / 4, delta=1e6)
        code, _, err = oracle.run("diff", self.real, self.ideal, "--steps=1..2")
        self.assertEqual((code, err.decode().endswith("no step has a number of --steps=1..2\n")), (2, True))


if __name__ == "__main__":
    oracle.main()
