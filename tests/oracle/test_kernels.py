"""`report kernels` against the TensorBoard plugin's own table and pie, and against TraceLens' summary of the same traces."""
import csv
import decimal
import json
import math
import os
import statistics

import oracle
from oracle import Case, data, report

RUN = ("tb_plugin", "resnet50_num_workers_0")
TRACE = "worker0.1623143089861.pt.trace.json.gz"  # span 1


def expected(name):
    with open(data(*RUN, name)) as f:
        return json.load(f)


def by_title(table):
    """Rows keyed by the columns' titles, as the plugin names them."""
    titles = [c["title"] for c in table.doc["columns"]]
    return [dict(zip(titles, r)) for r in table.doc["rows"]]


class TbPlugin(Case):
    def test_table(self):
        want = expected("expected_kernel_table.json")["data"]
        titles = [c["name"] for c in want["columns"]]
        rows = by_title(report("kernels", data(*RUN, TRACE), "--compat=tb-plugin"))
        self.assertEqual(len(want["rows"]), 67)
        self.assertEqual(len(rows), 67)
        got = {r["Name"]: r for r in rows}
        for w in want["rows"]:
            with self.subTest(kernel=w[0][:60]):
                self.assertEqual([got[w[0]][t] for t in titles], w)
        self.assertEqual([r["Total Duration (us)"] for r in rows], [w[titles.index("Total Duration (us)")] for w in want["rows"]])

    def test_pie(self):
        rows = by_title(report("kernels", data(*RUN, TRACE), "--compat=tb-plugin"))
        want = expected("expected_kernel_pie.json")["total"]["rows"]
        self.assertEqual(sorted((r["Name"], r["Total Duration (us)"]) for r in rows), sorted(map(tuple, want)))


class TbPluginByName(Case):
    """The plugin's table by name is made of all events of kind kernel, whatever its tree of ops made of their launches: its KernelParser
    adds up calls and durations by name. Its table by op leaves out kernels whose call belongs to no op."""

    TRACES = (("hta", "df_index_resolver", "df_index_resolver.json.gz"), ("hta", "triton_example", "triton_example.json.gz"),
              ("hta", "amd_trace", "mi250_minitoy_train_ROCm6_2_kineto.json.gz"),
              ("hta", "critical_path", "cuda_event_sync", "event_sync_trace.json.gz"),
              ("multirank", "megatron_a100_tp8", "megatron_kineto_0.json.gz"))

    @staticmethod
    def kernels(path):
        ns = {}
        for e in oracle.events(oracle.load(path)):
            if e.get("ph") == "X" and str(e.get("cat", "")).lower() == "kernel":
                ns.setdefault(e["name"], []).append(decimal.Decimal(str(e["dur"])) * 1000)
        return {n: (len(d), round(sum(d) / 1000)) for n, d in ns.items()}

    def check(self, path):
        want = self.kernels(path)
        if want:
            rows = report("kernels", path, "--compat=tb-plugin").rows
            self.assertEqual({r["name"]: (r["calls"], r["total_duration_us"]) for r in rows}, want)
        return sum(calls for calls, _ in want.values())

    def test_real(self):
        paths = [data(*t) for t in self.TRACES]
        n = {os.path.basename(p): self.check(p) for p in paths}
        self.assertEqual(n["df_index_resolver.json.gz"], 19370)

    def test_synthetic(self):
        for path in sorted(oracle.glob.glob(oracle.synthetic("*"))):
            with self.subTest(trace=os.path.basename(path)):
                self.check(path)


class Independent(Case):
    """Every figure of a kernel, from python's own reading of the trace."""

    def test_statistics(self):
        path = data("tracelens", "h100", "Falconsai_nsfw_image_detection__1016002.json.gz")
        durations = {}
        for e in oracle.events(oracle.load(path)):
            if e.get("cat") == "kernel":
                durations.setdefault(e["name"], []).append(round(e["dur"] * 1000))
        rows = report("kernels", path).by("name")
        self.assertEqual(set(rows), set(durations))
        for name, d in durations.items():
            d.sort()
            r = rows[name]
            with self.subTest(kernel=name[:60]):
                self.assertEqual((r["calls"], r["total_ns"], r["min_ns"], r["max_ns"]), (len(d), sum(d), d[0], d[-1]))
                self.assertTrue(math.isclose(r["mean_ns"], sum(d) / len(d), rel_tol=1e-12), r)
                self.assertEqual(r["median_ns"], statistics.median(d))
                for column, percent in (("p95_ns", 95), ("p99_ns", 99)):
                    rank = max(1, -(-percent * len(d) // 100))  # nearest rank
                    self.assertEqual(r[column], d[rank - 1], column)
                self.assertTrue(math.isclose(r["stddev_ns"], statistics.stdev(d) if len(d) > 1 else 0, rel_tol=1e-9, abs_tol=1e-9), r)


class TraceLens(Case):
    """Counts and times per launching op and kernel; TraceLens' summary has the stream besides, of which each of these
    traces uses one."""

    @staticmethod
    def summary(path):
        out = {}
        with open(path, newline="") as f:
            for r in csv.DictReader(f):
                have = out.setdefault((r["Parent cpu_op"] or None, r["Kernel name"]), [0, 0, math.inf, 0])
                figures = [float(r[f"Kernel duration (µs)_{c}"]) for c in ("count", "sum", "min", "max")]
                out[r["Parent cpu_op"] or None, r["Kernel name"]] = [
                    have[0] + int(figures[0]), have[1] + round(figures[1] * 1000), min(have[2], round(figures[2] * 1000)),
                    max(have[3], round(figures[3] * 1000))]
        return out

    def test_kernel_summaries(self):
        paths = oracle.data_glob("tracelens/**/kernel_summary.csv")
        if not paths:
            self.skipTest("no TraceLens summaries")
        for path in paths:
            trace = os.path.dirname(path).replace("_perf_report_csvs", "") + ".json.gz"
            got = {(r["operator"] or None, r["name"]): [r["calls"], r["total_ns"], r["min_ns"], r["max_ns"]]
                   for r in report("kernels", trace, "--group-by=op").rows}
            want = self.summary(path)
            with self.subTest(trace=os.path.basename(trace)):
                self.assertEqual({k: v for k, v in got.items() if k not in want}, {})
                for key, w in want.items():
                    self.assertEqual(got.get(key), w, key)


if __name__ == "__main__":
    oracle.main()
