"""`queues`: how much launched work waited on each stream. Against a count of its own over the raw events, by the definition of HolisticTraceAnalysis' queue length
(one more when a runtime call begins, one less when its work begins; `describe` over the changes), and on small traces by hand."""
import collections
import gzip
import json
import os
import statistics
import tempfile
from decimal import Decimal

import oracle
from oracle import Case, data, report

REAL = [("hta", "ns_resolution_trace", "rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz"), ("more", "puzzlers", "streams", "blocking.json.gz"),
        ("more", "puzzlers", "streams", "non_blocking.json.gz"), ("tracelens", "h100", "Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"),
        ("tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz"), ("multirank", "megatron_a100_tp8", "megatron_kineto_0.json.gz"),
        ("tracelens", "mi300", "resnet_act_checkpoint.json.gz")]
DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}
HOST = {"cuda_runtime", "cuda_driver", "runtime"}


def series(path):
    """By stream: [(time in ns, length, host ns of the call if a launch)]. Work of a call that launches several pieces on a stream counts once."""
    with gzip.open(path, "rt", errors="replace") as f:
        doc = json.load(f, parse_float=Decimal, parse_int=Decimal, strict=False)
    calls, work = {}, []
    for e in doc["traceEvents"]:
        correlation = (e.get("args") or {}).get("correlation") if e.get("ph") == "X" else None
        if correlation is None:
            continue
        if e["cat"].lower() in DEVICE:
            work.append(e)
        elif e["cat"].lower() in HOST:
            calls[correlation] = e
    seen, changes, lost = set(), collections.defaultdict(list), 0
    for e in sorted(work, key=lambda e: e["ts"]):
        call, stream = calls.get(e["args"]["correlation"]), int(e["args"]["stream"])
        if call is None:
            lost += 1
        elif (stream, call["args"]["correlation"]) not in seen:
            seen.add((stream, call["args"]["correlation"]))
            assert call["ts"] <= e["ts"]
            changes[stream] += [(call["ts"], 0, call), (e["ts"], 1, None)]
    out = {}
    for stream, of in changes.items():
        length, rows = 0, []
        for ts, _, call in sorted(of, key=lambda c: c[:2]):
            length += 1 if call else -1
            rows.append((int(ts * 1000), length, call and int(call["dur"] * 1000)))
        out[stream] = rows
    return out, lost


def quantile(values, share):
    """pandas' default: between the two values around the place, in proportion."""
    values = sorted(values)
    at = share * (len(values) - 1)
    low = int(at)
    return values[low] + (at - low) * (values[min(low + 1, len(values) - 1)] - values[low])


class Real(Case):
    def check(self, path):
        want, lost = series(path)
        table = report("queues", path)
        got = {r["stream"]: r for r in table.rows}
        self.assertEqual(set(got), set(want))
        for stream, changes in want.items():
            row, lengths = got[stream], [c[1] for c in changes]
            lasting = [(n, b[0] - a) for (a, n), b in zip(((c[0], c[1]) for c in changes), changes[1:])]
            whole = sum(ns for _, ns in lasting)
            self.assertEqual([row[c] for c in ("launches", "max_length", "empty_ns", "changes", "changes_min")],
                             [len(changes) // 2, max(lengths), sum(ns for n, ns in lasting if n == 0), len(changes), min(lengths)])
            for column, value in (("mean_length", sum(n * ns for n, ns in lasting) / whole if whole else None), ("changes_mean", statistics.fmean(lengths)),
                                  ("changes_stddev", statistics.stdev(lengths)), ("changes_p25", quantile(lengths, .25)), ("changes_p50", quantile(lengths, .5)),
                                  ("changes_p75", quantile(lengths, .75))):
                self.assertAlmostEqual(row[column] or 0, value or 0, places=6, msg=(stream, column))
            if row["full_ns"] is not None:
                self.assertEqual(row["full_ns"], sum(ns for n, ns in lasting if n >= 1022))
                self.assertEqual(row["blocked_host_ns"], sum(ns for _, n, ns in changes if ns is not None and n >= 1022))
        self.assertEqual(any(f"launch was not recorded are left out: {lost}." in n for n in table.notes), lost > 0)
        return want, got

    def test_rows(self):
        for path in REAL:
            with self.subTest(path):
                self.check(data(*path))

    def test_changes_and_lengths(self):
        path = data(*REAL[0])
        want, _ = series(path)
        rows = report("queues", path, "--group-by=change").rows
        self.assertEqual([(r["time_ns"], r["length"]) for r in rows if r["stream"] == 7], [c[:2] for c in want[7]])
        # HTA's "time spent blocked on a full queue" of any length is a sum over them.
        code, out, err = oracle.run("sql", path, """SELECT sum(next - time_ns) FROM (SELECT length, time_ns, lead(time_ns) OVER (PARTITION BY device, stream ORDER BY time_ns) AS next
                                    FROM queues_by_change) WHERE length >= 400""", "--steps=all", "--format=csv")
        self.assertEqual(code, 0, err)
        self.assertEqual(int(out.split()[-1]), sum(b[0] - a[0] for a, b in zip(want[7], want[7][1:]) if a[1] >= 400))
        lengths = report("queues", path, "--group-by=length").rows
        for r in lengths:
            self.assertEqual(r["time_ns"], sum(b[0] - a[0] for a, b in zip(want[7], want[7][1:]) if r["from_length"] <= a[1] <= r["to_length"]))

    def test_the_limit(self):
        """No queue of a CUDA stream is longer than 1022; on ROCm they are."""
        for path in REAL[:6]:
            self.assertLessEqual(max(r["max_length"] for r in report("queues", data(*path)).rows), 1022)
        row = report("queues", data(*REAL[6])).rows[0]
        self.assertGreater(row["max_length"], 1022)
        self.assertEqual((row["full_ns"], row["blocked_host_ns"]), (None, None))


class Small(Case):
    def report(self, calls, work, *args):
        """calls: (correlation, start, duration); work: (correlation, stream, start), in us."""
        events = [{"ph": "X", "cat": "cuda_runtime", "name": "cudaGraphLaunch", "pid": 1, "tid": 1, "ts": s, "dur": d, "args": {"correlation": c}} for c, s, d in calls]
        events += [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": stream, "ts": s, "dur": 1, "args": {"device": 0, "stream": stream, "correlation": c}}
                   for c, stream, s in work]
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, "t.json")
            with open(path, "w", encoding="utf-8") as f:
                f.write(json.dumps({"traceEvents": events}))
            return report("queues", path, *args)

    def test_a_graph_is_one_launch_of_each_stream(self):
        table = self.report([(1, 0, 5), (2, 10, 5)], [(1, 7, 20), (1, 7, 30), (1, 8, 25), (2, 7, 40)])
        rows = table.by("stream")
        self.assertEqual((rows[7]["launches"], rows[7]["max_length"], rows[7]["empty_ns"], rows[7]["mean_length"]), (2, 2, 0, 50 / 40))
        self.assertEqual((rows[8]["launches"], rows[8]["max_length"]), (1, 1))

    def test_equal_times(self):
        table = self.report([(1, 0, 5), (2, 10, 5)], [(1, 7, 0), (2, 7, 10)], "--group-by=change")
        self.assertEqual([(r["time_ns"], r["length"]) for r in table.rows], [(0, 1), (0, 0), (10000, 1), (10000, 0)])

    def test_work_before_its_launch(self):
        table = self.report([(1, 10, 5), (2, 20, 5)], [(1, 7, 5), (2, 7, 30)])
        self.assertEqual(table.rows[0]["launches"], 1)
        self.assertIn("work began before their call are left out: 1.", "\n".join(table.notes))

    def test_nothing_known(self):
        for calls, work in ([], [(1, 7, 5)]), ([(1, 10, 5)], [(1, 7, 5)]):
            with self.assertRaisesRegex(AssertionError, "how much waited is unknown"):
                self.report(calls, work)


if __name__ == "__main__":
    oracle.main()
