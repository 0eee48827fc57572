"""Which part of a file reports are of: the steps. What lies outside is said, --steps=all counts it, and the steps add up to all of them."""
import os
import re
import tempfile

import labelled
import oracle
from oracle import Case, data, events, load, report, steps_report

QWEN = ("tracelens", "h100", "Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz")
OUTSIDE = re.compile(r"Of the (\d+) steps?\. Outside (?:it|them): (\d+) of (\d+) device operations, ([\d.]+) % of the device time; --steps=all counts everything\.")
SUMS = {"kernels": ("calls", "total_ns"), "operators": ("calls", "host_self_ns", "device_self_ns"), "api": ("calls", "total_ns"), "memcpy": ("calls", "total_ns"),
        "ops": ("calls",), "triton": ("calls", "total_ns"), "waits": ("calls", "total_ns")}


def with_steps():
    """Traces in which several steps are marked, with what lies outside them."""
    found = [p for pattern in ("tb_plugin/*/*.pt.trace.json.gz", "hta/df_index_resolver/*.gz", "hta/ns_resolution_trace/*.gz", "tracelens/mi300/*.gz",
                               "nsys/2024.5_pipit_cloverleaf/*.sqlite", "more/kineto_pairs/transformer_h100/first*.gz") for p in oracle.data_glob(pattern)]
    return found + [os.path.join(oracle.ROOT, "tests", "data", "torch214_cpu_resnet.json.gz")]


def sums(table, columns):
    return [sum(r.get(c) or 0 for r in table.rows) for c in columns if c in table.ids]


def table_or_none(name, path, option):
    code, out, _ = oracle.run("report", name, path, "--format=json", *[option] * bool(option))
    return oracle.Table(oracle.json.loads(out)) if code == 0 else None


class Population(Case):
    def test_qwen(self):
        """509 of 1707 operations, 30.1 % of the device time, were launched before the recording: by python's own reading."""
        path = data(*QWEN)
        ev = [e for e in events(load(path)) if e.get("ph") == "X"]
        step, = [e for e in ev if e["name"].startswith("ProfilerStep#") and e["cat"] == "user_annotation"]
        began = {e["args"]["correlation"]: e["ts"] for e in ev if e.get("cat") in ("cuda_runtime", "cuda_driver")}
        kernels = [e for e in ev if e["cat"] == "kernel"]
        inside = [e for e in kernels if step["ts"] <= began.get(e["args"]["correlation"], 0) < step["ts"] + step["dur"]]
        self.assertLess(len(inside), len(kernels))
        table = steps_report("kernels", path)
        self.assertEqual(sum(r["calls"] for r in table.rows), len(inside))
        self.assertAlmostEqual(sum(r["total_ns"] for r in table.rows), 1000 * sum(e["dur"] for e in inside), delta=len(inside))
        self.assertEqual([OUTSIDE.match(n).groups() for n in table.notes if OUTSIDE.match(n)], [("1", "509", "1707", "30.1")])
        note, = (n for n in table.notes if OUTSIDE.match(n))
        before = max(e["ts"] + e["dur"] for e in kernels if began.get(e["args"]["correlation"], 0) < step["ts"])
        ms = re.search(r"Step 6 begins ([0-9.]+) ms after its range did, when the GPU had ended work that was launched before the range", note)
        self.assertAlmostEqual(float(ms[1]), (before - step["ts"]) / 1e3, delta=0.01)
        self.assertEqual(sum(r["calls"] for r in report("kernels", path).rows), len(kernels))

    def test_steps_add_up(self):
        """Each step alone, added up, is what a report says without --steps."""
        compared = 0
        for i, path in enumerate(with_steps()):
            numbers = [r["step"] for r in steps_report("steps", path).rows if r.get("whole") is not False]
            for name, columns in oracle.part(SUMS.items(), 5, i):
                code, out, _ = oracle.run("report", name, path, "--format=json")
                if code:
                    continue
                with self.subTest(path=os.path.basename(path), report=name):
                    got = sums(oracle.Table(oracle.json.loads(out)), columns)
                    each = [0] * len(got)
                    for n in numbers:
                        code, out, _ = oracle.run("report", name, path, f"--steps={n}", "--format=json")
                        part = sums(oracle.Table(oracle.json.loads(out)), columns) if code == 0 else [0] * len(got)
                        each = [a + b for a, b in zip(each, part)]
                    self.assertEqual(got, each)
                    compared += 1
        if len(with_steps()) > 1:
            self.assertGreater(compared, 20 if oracle.ALL else 4)

    def test_outside_adds_up(self):
        """What the steps hold, and the section of what lies outside, are the file; --steps=outside is that section in detail."""
        with open(os.path.join(oracle.ROOT, "src", "query", "outside.def")) as f:
            rows = re.findall(r'^OUTSIDE\("(.*?)", "(.*?)"\)', f.read(), re.M)
        self.assertGreater(len(rows), 10)
        compared = 0
        for i, path in enumerate(with_steps() + oracle.data_glob("/".join(QWEN))):
            for name, ids in oracle.part(rows, 7, i):
                whole, inside, rest = (table_or_none(name, path, o) for o in ("--steps=all", None, "--steps=outside"))
                if not inside:
                    continue
                section = next((s for s in inside.doc["sections"] if s["name"] == "outside"), None)
                told = dict(zip([c["id"] for c in section["columns"]], section["rows"][0])) if section else {}
                for column in ids.split():
                    with self.subTest(path=os.path.basename(path), report=name, column=column):
                        total, steps, outside = (sums(t, [column]) if t else [0] for t in (whole, inside, rest))
                        self.assertEqual((total or [0])[0], (steps or [0])[0] + (outside or [0])[0])
                        self.assertEqual(told.get(column) or 0, (outside or [0])[0])
                        compared += bool(told.get(column))
        if len(with_steps()) > 1:
            self.assertGreater(compared, 0)

    def test_outside_of_what_has_none(self):
        path = os.path.join(oracle.ROOT, "tests", "data", "torch214_cpu_resnet.json.gz")
        for asked in (["report", "steps", path], ["report", "kernels", path, "--compat=tb-plugin"], ["report", "memory", path], ["advise", path],
                      ["export", "chrome", path], ["report", "overview", path]):
            with self.subTest(asked=asked[:2]):
                code, out, err = oracle.run(*asked, "--steps=outside")
                self.assertNotEqual(code, 0)
                self.assertEqual(out, b"")
                self.assertIn(b"outside", err)

    def test_what_outside_is_of(self):
        """One GPU alone, a later --steps, calls inside, no means of no step."""
        def recorded():
            t = labelled.Trace(dict(labelled.A100, id=0), dict(labelled.A100, id=1))
            for _ in t.steps(2, fill=1000):
                pass
            for _ in range(10):
                t.work("kernel", labelled.REDUCE, 300, "cudaLaunchKernel", device=1)
            return t
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json.gz")
            recorded().save(path)
            self.assertFalse([n for n in steps_report("kernels", path, "--device=0").notes if "Outside" in n])
            self.assertEqual(sum(r["calls"] for r in steps_report("kernels", path, "--steps=1", "--steps=all").rows), 12)
            self.assertEqual(sum(r["calls"] for r in steps_report("kernels", path, "--steps=outside", "--steps=1").rows), 1)
            self.assertIn("not counted here: 2 calls inside the steps", " ".join(steps_report("api", path, "--steps=outside").notes))
            self.assertNotEqual(oracle.run("report", "groups", path, "--steps=outside")[0], 0)
            self.assertIn(b"10", oracle.run("report", "kernels", path, "--filter=gemm")[1].split(b"Outside the steps")[1])

    def test_without_steps(self):
        """Nothing is left out, and no note speaks of steps."""
        path = data("more", "puzzlers", "d2h_sync", "d2h_sync_final.json.gz")
        self.assertEqual(steps_report("kernels", path).rows, report("kernels", path).rows)
        self.assertFalse([n for n in steps_report("kernels", path).notes if "Outside" in n])

    def test_all_outside(self):
        """The steps hold no kernel, the file does: the error says how to see it."""
        code, out, err = oracle.run("report", "kernels", oracle.synthetic("kernel_out_of_step"))
        if code:
            self.assertEqual(out, b"")
            self.assertIn(b"--steps=all", err)


if __name__ == "__main__":
    oracle.main()
