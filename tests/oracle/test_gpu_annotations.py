"""`gpu-annotations`, and the annotation of each kernel: against HolisticTraceAnalysis' own test of the same trace, a count over the raw events, and small traces."""
import collections
import gzip
import json
import os
import statistics
import tempfile
from decimal import Decimal

import oracle
from oracle import Case, data, report

NS = ("hta", "ns_resolution_trace", "rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz")
REAL = [NS, ("tracelens", "mi300", "resnet_act_checkpoint.json.gz"), ("tracelens", "b200", "eager_trace.json.gz"), ("hta", "nccl_parser_config", "nccl_data.json.gz")]


def events(path):
    with gzip.open(path, "rt", errors="replace") as f:
        return [e for e in json.load(f, parse_float=Decimal, parse_int=Decimal, strict=False)["traceEvents"] if e.get("ph") == "X"]


def ns(x):
    return int(x * 1000)


class Hta(Case):
    """It leaves out what was launched in the last step, and annotations on the GPU that begin after that step did on the host."""

    def rows(self):
        path = data(*NS)
        code, out, err = oracle.run("sql", path, """SELECT k.annotation, k.step, k.kernel_name, g.corr_id, g.start_ns FROM gpu_op g LEFT JOIN kernels_by_instance k ON k.start_ns = g.start_ns
                                    AND k.stream = (SELECT stream FROM launch WHERE rowid = g.launch)""", "--steps=all", "--format=json")
        self.assertEqual(code, 0, err)
        return oracle.Table(json.loads(out)).rows

    def test_kernels_with_annotations(self):
        raw = events(data(*NS))
        last = max(e["ts"] for e in raw if e["name"].startswith("ProfilerStep#") and e["cat"] == "user_annotation")
        calls = {e["args"]["correlation"]: e for e in raw if e.get("cat") in ("cuda_runtime", "cuda_driver")}
        work = [e for e in raw if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and calls[e["args"]["correlation"]]["ts"] < last]
        self.assertEqual(len(work), 4876)
        table = report("gpu-annotations", data(*NS))
        self.assertEqual(len(table.rows), 3)
        self.assertEqual(table.by("annotation")["Optimizer.step#SGD.step"]["kernels"], 27 + 2 * 9)  # in three steps, and two that are left out there
        sgd = [ns(e["ts"]) for e in raw if e.get("cat") == "gpu_user_annotation" and "SGD" in e["name"] and e["ts"] < last]
        self.assertEqual(len(sgd) * 9, 27)

    def test_two_pieces(self):
        by_correlation = {r["corr_id"]: r for r in self.rows()}
        self.assertEqual(by_correlation[164926]["annotation"], "Optimizer.step#SGD.step")
        self.assertIn("multi_tensor_apply_kernel", by_correlation[164926]["kernel_name"])
        rows = report("gpu-annotations", data(*NS), "--group-by=kernel").rows  # 135139 is a copy
        copies, = (r for r in rows if r["annotation"] == "DistributedDataParallel.forward" and r["name"] == "Memcpy DtoD (Device -> Device)")
        raw = events(data(*NS))
        copy, = (e for e in raw if e["args"].get("correlation") == 135139 and e["cat"] == "gpu_memcpy")
        self.assertEqual(copy["name"], copies["name"])
        self.assertTrue(any(e["cat"] == "gpu_user_annotation" and e["name"] == copies["annotation"] and e["ts"] <= copy["ts"] < e["ts"] + e["dur"] for e in raw))

    def test_breakdown(self):
        """Sum and mean of the durations by name, as its test computes them."""
        for path in REAL:
            want = collections.defaultdict(list)
            for e in events(data(*path)):
                if e.get("cat") == "gpu_user_annotation":
                    want[e["name"]].append(ns(e["dur"]))
            got = report("gpu-annotations", data(*path)).by("annotation")
            self.assertEqual({k: (r["calls"], r["total_ns"]) for k, r in got.items()}, {k: (len(v), sum(v)) for k, v in want.items()})
            for k, r in got.items():
                self.assertAlmostEqual(r["mean_ns"], statistics.fmean(want[k]))


class Real(Case):
    def test_work(self):
        """By its start: in every range around it, and of each piece the innermost."""
        for path in REAL:
            raw, want, inner = events(data(*path)), collections.Counter(), collections.Counter()
            ranges = collections.defaultdict(list)
            for e in raw:
                if e.get("cat") == "gpu_user_annotation":
                    ranges[e["pid"], e["tid"]].append(e)
            for e in raw:
                if e.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset"):
                    continue
                around = [r for r in ranges[e["pid"], e["tid"]] if r["ts"] <= e["ts"] < r["ts"] + r["dur"]]
                want.update(r["name"] for r in around)
                inner[min(around, key=lambda r: (r["dur"], -r["ts"]))["name"] if around else None, e["name"]] += 1
            self.assertEqual({r["annotation"]: r["gpu_ops"] for r in report("gpu-annotations", data(*path)).rows if r["gpu_ops"]}, dict(want))
            self.assertEqual({(r["annotation"], r["name"]): r["calls"] for r in report("gpu-annotations", data(*path), "--group-by=kernel").rows}, dict(inner))


class Small(Case):
    def report(self, ranges, work, *args):
        """ranges: (name, stream, start, duration); work: (stream, start, duration), in us."""
        events = [{"ph": "X", "cat": "gpu_user_annotation", "name": n, "pid": 0, "tid": t, "ts": s, "dur": d, "args": {"External id": 1}} for n, t, s, d in ranges]
        events += [{"ph": "X", "cat": "kernel", "name": f"k{s}", "pid": 0, "tid": t, "ts": s, "dur": d, "args": {"device": 0, "stream": t, "correlation": s}} for t, s, d in work]
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, "t.json")
            with open(path, "w", encoding="utf-8") as f:
                f.write(json.dumps({"traceEvents": events}))
            return report("gpu-annotations", path, *args)

    def test_nested(self):
        args = [("a", 7, 0, 100), ("b", 7, 10, 20), ("c", 20, 0, 100)], [(7, 0, 5), (7, 10, 5), (7, 29, 5), (7, 30, 5), (7, 100, 5), (20, 12, 5)]
        rows = self.report(*args).by("annotation")
        self.assertEqual({k: (r["kernels"], r["gpu_ns"], r["busy_pct"]) for k, r in rows.items()}, {"a": (4, 20000, 20), "b": (2, 10000, 50), "c": (1, 5000, 5)})
        rows = self.report(*args, "--group-by=kernel").by("name")
        self.assertEqual({k: r["annotation"] for k, r in rows.items()}, {"k0": "a", "k10": "b", "k29": "b", "k30": "a", "k100": None, "k12": "c"})

    def test_overlapping(self):
        rows = self.report([("a", 7, 0, 20), ("b", 7, 10, 20)], [(7, 5, 1), (7, 15, 1), (7, 25, 1)]).by("annotation")
        self.assertEqual({k: r["kernels"] for k, r in rows.items()}, {"a": 1, "b": 2})

    def test_none(self):
        with self.assertRaisesRegex(AssertionError, "no annotation on a stream"):
            self.report([], [(7, 0, 1)])


if __name__ == "__main__":
    oracle.main()
