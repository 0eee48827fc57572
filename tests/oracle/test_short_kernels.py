"""`short-kernels`: against TraceLens' short_kernels_summary.csv and short_kernel_histogram.csv of the same traces, row by row, and on a small trace by hand."""
import ast
import collections
import csv
import json
import os
import tempfile

import oracle
from oracle import Case, data, report

H100 = ["Falconsai_nsfw_image_detection__1016002", "gaunernst_bert-small-uncased__1016001", "Qwen_Qwen1.5-0.5B-Chat__1016005"]


def sheet(name, which):
    with open(data("tracelens", "h100", name + "_perf_report_csvs", which + ".csv"), newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def tuples(x):
    return tuple(tuples(i) for i in x) if isinstance(x, list) else x


class TraceLens(Case):
    def test_summary(self):
        for name in H100:
            want, got = collections.defaultdict(lambda: [0, 0]), collections.defaultdict(lambda: [0, 0])
            for r in sheet(name, "short_kernels_summary"):
                row = want[r["Parent cpu_op"], ast.literal_eval(r["Input dims"]), r["Kernel name"]]
                row[0] += int(r["Short Kernel count"])
                row[1] += round(float(r["Short Kernel duration (µs) sum"]) * 1000)
                self.assertAlmostEqual(float(r["Short Kernel duration (µs) mean"]), float(r["Short Kernel duration (µs) sum"]) / int(r["Short Kernel count"]))
            path = data("tracelens", "h100", name + ".json.gz")
            for r in report("short-kernels", path, "--group-by=shape").rows:
                if r["operator"] is None:  # launched before the recording began: its histogram has them, its summary has not
                    continue
                row = got[r["operator"], tuples(json.loads(r["input_dims"])) if r["input_dims"] else None, r["name"]]
                row[0] += r["calls"]
                row[1] += r["total_ns"]
            with self.subTest(name):
                self.assertEqual(got, want)
                self.assertEqual(sum(r["calls"] for r in report("short-kernels", path).rows if r["operator"]), sum(n for n, _ in want.values()))

    @oracle.of("tracelens")
    def test_histogram(self):
        for name in H100:
            want = sheet(name, "short_kernel_histogram")
            got = report("short-kernels", data("tracelens", "h100", name + ".json.gz"), "--compat=tracelens", "--group-by=duration").rows
            with self.subTest(name):
                self.assertEqual(len(got), len(want))
                for g, w in zip(got, want):
                    self.assertAlmostEqual(g["from_ns"], float(w["bin_start"]) * 1000, places=6)
                    self.assertAlmostEqual(g["to_ns"], float(w["bin_end"]) * 1000, places=6)
                self.assertEqual([g["calls"] for g in got], [int(w["count"]) for w in want])

    def test_bins(self):
        for name in H100:
            path = data("tracelens", "h100", name + ".json.gz")
            kernels = [r["dur_ns"] for r in report("kernels", path, "--group-by=instance").rows if r["dur_ns"] < 10000]
            for r in report("short-kernels", path, "--group-by=duration").rows:
                of = [ns for ns in kernels if r["from_ns"] <= ns < r["to_ns"]]
                self.assertEqual((r["calls"], r["total_ns"]), (len(of), sum(of)))


class Small(Case):
    def report(self, kernels, *args):
        """kernels: (name, correlation, duration), calls take 5; in us."""
        events = [{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 10 * c, "dur": 5, "args": {"correlation": c}}
                  for c in sorted({c for _, c, _ in kernels})]
        events += [{"ph": "X", "cat": "kernel", "name": n, "pid": 0, "tid": 7, "ts": 100 + 50 * i, "dur": d, "args": {"device": 0, "stream": 7, "correlation": c}}
                   for i, (n, c, d) in enumerate(kernels)]
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, "t.json")
            with open(path, "w", encoding="utf-8") as f:
                f.write(json.dumps({"traceEvents": events}))
            return report("short-kernels", path, *args)

    def test_launches(self):
        """10 us are not short; a call that launched two is the launch of neither alone."""
        table = self.report([("a", 1, 3), ("a", 2, 6), ("b", 3, 10), ("a", 4, 1), ("c", 4, 1)])
        rows = table.by("name")
        self.assertEqual(set(rows), {"a", "c"})
        self.assertEqual([rows["a"][c] for c in ("calls", "total_ns", "under_launch", "launch_ns")], [3, 10000, 1, 10000])
        self.assertEqual([rows["c"][c] for c in ("calls", "under_launch", "launch_ns")], [1, 0, 0])
        self.assertIn("4 of 5", table.notes[0])

    def test_none(self):
        with self.assertRaisesRegex(AssertionError, "none of the 1 kernels is shorter"):
            self.report([("a", 1, 10)])


if __name__ == "__main__":
    oracle.main()
