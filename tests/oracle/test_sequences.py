"""`sequences`: what ops launch one after the other. Against a count of its own over the raw events, as HolisticTraceAnalysis counts for one operator (the kernels of the
calls inside it, in order of start; a pattern's count, kernel time and op time), and on small traces by hand."""
import bisect
import collections
import gzip
import json
import os
import tempfile
from decimal import Decimal

import oracle
from oracle import Case, data, report

REAL = [("hta", "ns_resolution_trace", "rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz"), ("tracelens", "h100", "Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"),
        ("hta", "df_index_resolver", "df_index_resolver.json.gz"), ("tracelens", "h100", "Falconsai_nsfw_image_detection__1016002.json.gz")]
LONGEST = 64


def ns(x):
    return int(x * 1000)


def patterns(path):
    """By (op, names): calls, device time, time between, host time, delays from the op; of ops with 2 to LONGEST pieces."""
    with gzip.open(path, "rt", errors="replace") as f:
        doc = json.load(f, parse_float=Decimal, parse_int=Decimal, strict=False)
    ops, calls, work = collections.defaultdict(list), {}, collections.defaultdict(list)
    for e in doc["traceEvents"]:
        if e.get("ph") != "X":
            continue
        cat, correlation = e.get("cat", "").lower(), (e.get("args") or {}).get("correlation")
        if cat in ("cpu_op", "operator"):
            ops[e["pid"], e["tid"]].append(e)
        elif cat in ("cuda_runtime", "cuda_driver") and correlation is not None:
            calls[correlation] = e
        elif cat in ("kernel", "gpu_memcpy", "gpu_memset"):
            work[correlation].append(e)
    by_thread = collections.defaultdict(list)
    for c, e in calls.items():
        by_thread[e["pid"], e["tid"]] += [(e["ts"], k) for k in work[c]]
    out = collections.defaultdict(lambda: [0, 0, 0, 0, 0])
    for thread, spans in ops.items():
        launched = sorted(by_thread[thread], key=lambda x: x[0])
        times = [t for t, _ in launched]
        for op in spans:
            lo, hi = bisect.bisect_left(times, op["ts"]), bisect.bisect_right(times, op["ts"] + op["dur"])
            if not 2 <= hi - lo <= LONGEST:
                continue
            pieces = sorted((k for _, k in launched[lo:hi]), key=lambda k: k["ts"])
            row, until = out[op["name"], "|".join(k["name"] for k in pieces)], pieces[0]["ts"]
            row[0] += 1
            row[3] += ns(op["dur"])
            row[4] += ns(pieces[0]["ts"] - op["ts"])
            for k in pieces:
                row[1] += ns(k["dur"])
                row[2] += ns(max(0, k["ts"] - until))
                until = max(until, k["ts"] + k["dur"])
    return out


class Real(Case):
    def test_every_op(self):
        for path in REAL:
            want, got = patterns(data(*path)), report("sequences", data(*path), "--group-by=every-op").rows
            with self.subTest(path):
                self.assertEqual({(r["op"], r["kernel_names"]): [r["calls"], r["total_gpu_ns"], r["between_ns"], r["total_host_ns"], round(r["op_delay_ns"] * r["calls"])] for r in got},
                                 dict(want))
                for r in got:
                    self.assertEqual((r["length"], r["launches_less"]), (r["kernel_names"].count("|") + 1, r["calls"] * (r["length"] - 1)))

    def test_clone(self):
        """HTA's own test: this rank has no sequence of three or more below aten::clone."""
        rows = report("sequences", data("hta", "df_index_resolver", "df_index_resolver.json.gz"), "--group-by=every-op").rows
        self.assertEqual([r for r in rows if "aten::clone" in r["op"] and r["length"] >= 3], [])

    def test_op(self):
        """Has the innermost op of each sequence: its time is in one row, where ops do not launch several sequences."""
        path = data(*REAL[1])
        every, own = ({(r["op"], r["kernel_names"]): r for r in report("sequences", path, *a).rows} for a in (["--group-by=every-op"], []))
        self.assertLessEqual(set(own), set(every))
        self.assertEqual({op for op, _ in own}, {"aten::mm", "aten::addmm"})
        self.assertIn("aten::linear", {op for op, _ in every})
        self.assertEqual(sum(r["calls"] for (op, _), r in every.items() if op == "aten::linear"), sum(r["calls"] for r in own.values()))


class Small(Case):
    def report(self, ops, work, *args):
        """ops: (name, start, duration); work: (name, launched, start, duration), all in us."""
        events = [{"ph": "X", "cat": "cpu_op", "name": n, "pid": 1, "tid": 1, "ts": s, "dur": d, "args": {}} for n, s, d in ops]
        for i, (name, call, start, dur) in enumerate(work, 1):
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": call, "dur": 1, "args": {"correlation": i}})
            events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": start, "dur": dur, "args": {"device": 0, "stream": 7, "correlation": i}})
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, "t.json")
            with open(path, "w", encoding="utf-8") as f:
                f.write(json.dumps({"traceEvents": events}))
            return report("sequences", path, *args)

    def test_figures(self):
        ops = [("aten::linear", 0, 50), ("aten::addmm", 5, 40), ("aten::linear", 100, 50), ("aten::addmm", 105, 40)]
        work = [("fill", 10, 60, 2), ("gemm", 20, 65, 5), ("gemm", 21, 70, 5), ("fill", 110, 160, 2), ("gemm", 120, 161, 5), ("gemm", 121, 200, 5)]
        row, = self.report(ops, work).rows
        self.assertEqual([row[c] for c in ("op", "kernels", "kernel_names", "length", "calls", "total_gpu_ns", "total_pct", "between_ns", "launches_less", "total_host_ns")],
                         ["aten::addmm", "fill | gemm x 2", "fill|gemm|gemm", 3, 2, 24000, 100, 3000 + 34000, 4, 80000])
        self.assertEqual((row["op_delay_ns"], row["launch_delay_ns"]), (55000, (50 + 45 + 49 + 50 + 41 + 79) / 6 * 1000))
        every = self.report(ops, work, "--group-by=every-op").by("op")
        self.assertEqual((every["aten::linear"]["calls"], every["aten::linear"]["total_host_ns"], every["aten::linear"]["op_delay_ns"]), (2, 100000, 60000))

    def test_through_several_ops(self):
        ops = [("block", 0, 90), ("aten::mul", 5, 10), ("aten::add", 20, 10)]
        row, = self.report(ops, [("mul", 6, 60, 2), ("add", 21, 65, 5)]).rows
        self.assertEqual((row["op"], row["kernels"]), ("block", "mul | add"))

    def test_too_long(self):
        ops = [("model", 0, 1000), ("aten::a", 0, 10)]
        work = [("a", 1 + i, 2000 + i, 1) for i in range(2)] + [("b", 20 + i, 3000 + i, 1) for i in range(LONGEST)]
        table = self.report(ops, work)
        self.assertEqual([r["op"] for r in table.rows], ["aten::a"])
        self.assertIn("more than 64 pieces are left out: 1", "\n".join(table.notes))

    def test_none(self):
        with self.assertRaisesRegex(AssertionError, "no op launched from two to 64"):
            self.report([("aten::a", 0, 10)], [("a", 1, 20, 1)])


if __name__ == "__main__":
    oracle.main()
