"""`memcpy`: how fast copies and sets were, one by one and over time. Against the bandwidth that Kineto states of each, by HolisticTraceAnalysis' definitions (get_memory_bw_summary,
get_memory_bw_time_series), and on a small trace by hand."""
import collections
import functools
import gzip
import json
import math
import os
import statistics
import tempfile
from decimal import Decimal

import oracle
from oracle import Case, data, report
from test_queues import quantile

REAL = [("hta", "ns_resolution_trace", "rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz"), ("tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz"),
        ("hta", "df_index_resolver", "df_index_resolver.json.gz"), ("multirank", "megatron_a100_tp8", "megatron_kineto_0.json.gz"),
        ("verdicts", "google_owlv2-large-patch14-ensemble__1016001.json.gz")]


@functools.lru_cache(None)
def copies(path):
    """(name, start, end in ns, GB/s) of each copy and set: as stated, or of its bytes and time in a trace of whole us, whose rates were of the unrounded times."""
    with gzip.open(path, "rt", errors="replace") as f:
        doc = json.load(f, parse_float=Decimal, parse_int=Decimal, strict=False)
    found = [e for e in doc["traceEvents"] if e.get("ph") == "X" and e.get("cat", "").lower() in ("gpu_memcpy", "gpu_memset", "memcpy", "memset")]
    whole_us = all(e["dur"] == int(e["dur"]) for e in found)
    rows = []
    for e in found:
        args = {k.lower(): v for k, v in e["args"].items()}
        rate = args["bytes"] / e["dur"] / 1000 if whole_us else args["memory bandwidth (gb/s)"]
        rows.append((e["name"], int(e["ts"] * 1000), int((e["ts"] + e["dur"]) * 1000), float(rate)))
    return rows


class Real(Case):
    def test_summary(self):
        for path in REAL:
            want = collections.defaultdict(list)
            for name, _, _, rate in copies(data(*path)):
                want[name].append(rate)
            got = report("memcpy", data(*path)).by("name")
            self.assertEqual(set(got), set(want))
            for name, rates in want.items():
                row = got[name]
                self.assertEqual(row["calls"], len(rates))
                figures = {"mean": statistics.fmean(rates), "stddev": statistics.stdev(rates) if len(rates) > 1 else 0, "min": min(rates), "p25": quantile(rates, .25),
                           "median": quantile(rates, .5), "p75": quantile(rates, .75), "max": max(rates)}
                for k, v in figures.items():
                    self.assertTrue(math.isclose(row[f"{k}_gb_per_s"], v, rel_tol=1e-9, abs_tol=1e-9), (path, name, k, row[f"{k}_gb_per_s"], v))

    def test_series(self):
        for path in REAL:
            want = collections.defaultdict(list)
            for name, start, end, rate in copies(data(*path)):
                kind = ("memset", "") if name.startswith("Memset") else ("memcpy", name.split()[1])
                want[kind] += [(start, 1, rate), (end, 0, -rate)]
            got = collections.defaultdict(list)
            for r in report("memcpy", data(*path), "--group-by=change").rows:
                got[r["operation"], r["direction"]].append((r["time_ns"], r["running"], r["gb_per_s"]))
            self.assertEqual(set(got), set(want))
            for kind, changes in want.items():
                now = running = 0
                for (at, begins, rate), row in zip(sorted(changes), got[kind]):
                    running += 1 if begins else -1
                    now += rate
                    self.assertEqual((at, running), row[:2])
                    self.assertAlmostEqual(max(now, 0), row[2], delta=1e-6)


class Small(Case):
    def test_at_the_same_time(self):
        work = [("Memcpy HtoD (Pinned -> Device)", "gpu_memcpy", 0, 10, 1000), ("Memcpy HtoD (Pageable -> Device)", "gpu_memcpy", 5, 5, 1000),
                ("Memset (Device)", "gpu_memset", 5, 5, 100), ("Memcpy HtoD (Pinned -> Device)", "gpu_memcpy", 10, 10, 3000), ("Memset (Device)", "gpu_memset", 20, 5, None)]
        events = [{"ph": "X", "cat": c, "name": n, "pid": 0, "tid": 7 + i, "ts": s, "dur": d,
                   "args": {"device": 0, "stream": 7 + i, "correlation": i, **({} if b is None else {"bytes": b})}} for i, (n, c, s, d, b) in enumerate(work)]
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, "t.json")
            with open(path, "w", encoding="utf-8") as f:
                f.write(json.dumps({"traceEvents": events}))
            table = report("memcpy", path, "--group-by=change")
        self.assertEqual([(r["time_ns"], r["running"], round(r["gb_per_s"], 6)) for r in table.rows if r["operation"] == "memcpy"],
                         [(0, 1, .1), (5000, 2, .3), (10000, 1, .2), (10000, 0, 0), (10000, 1, .3), (20000, 0, 0)])
        self.assertIn("left out: 1", "\n".join(table.notes))


if __name__ == "__main__":
    oracle.main()
