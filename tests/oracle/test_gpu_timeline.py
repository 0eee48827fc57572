"""`gpu-timeline` against TraceLens's gpu_timeline.csv.

TraceLens computes with doubles on times of 1e12 us and more, whose neighbours lie 0.1 to 1 ns apart, so its sums are off by up
to that much per range. Two checks, then: the same definition evaluated here with doubles gives its figures (which shows that
the definition is TraceLens's), and opscope's integer figures agree within the doubles' error."""
import csv
import json
import math
import os
import sqlite3

import oracle
from oracle import Case, report

COMM = ("nccl", "multimem_all_reduce")  # the collective kernels that occur in these traces
GPU = ("kernel", "gpu_memcpy", "gpu_memset")
NAMES = ("computation_time", "exposed_comm_time", "exposed_memcpy_time", "busy_time", "idle_time", "total_time",
         "total_comm_time", "total_memcpy_time")


def merge(ranges):
    out = []
    for s, e in sorted(ranges):
        if out and s <= out[-1][1]:
            out[-1][1] = max(out[-1][1], e)
        else:
            out.append([s, e])
    return out


def subtract(a, b):
    out, j = [], 0
    for s, e in a:
        while j < len(b) and b[j][1] <= s:
            j += 1
        k = j
        while k < len(b) and b[k][0] < e:
            if b[k][0] > s:
                out.append([s, b[k][0]])
            s = max(s, b[k][1])
            k += 1
        if s < e:
            out.append([s, e])
    return out


def length(ranges):
    return sum(e - s for s, e in ranges)


def union(ranges):
    return length(merge(ranges))


def figures(ranges):
    """From {"comp": [...], "comm": [...], "copy": [...]}, in the unit of the times."""
    comp, comm, copy = (merge(ranges[k]) for k in ("comp", "comm", "copy"))
    busy = merge(comp + comm + copy)
    total = busy[-1][1] - busy[0][0] if busy else 0
    return dict(zip(NAMES, (length(comp), length(subtract(comm, comp)), length(subtract(subtract(copy, comp), comm)),
                            length(busy), total - length(busy), total, length(comm), length(copy))))


def classify(events, keep=lambda e: True):
    out = {"comp": [], "comm": [], "copy": []}
    for e in events:
        if e.get("ph") == "X" and e.get("cat") in GPU and keep(e):
            comm = any(x in e["name"].lower() for x in COMM)
            kind = "copy" if e["cat"] == "gpu_memcpy" else "comm" if comm and e["cat"] == "kernel" else "comp"
            out[kind].append((e["ts"], e["ts"] + e["dur"]))
    return out


def tied_to_call(events):
    """Those that an ac2g arrow, or a graph launch, ties to a recorded call."""
    calls = {e["args"].get("correlation"): e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")}
    arrows = {e["id"] for e in events if e.get("cat") == "ac2g" and e["ph"] == "s"}

    def keep(e):
        corr = e["args"].get("correlation")
        return corr in calls and (corr in arrows or "GraphLaunch" in calls[corr]["name"])
    return keep


class TraceLens(Case):
    def check(self, trace, folder):
        trace, path = oracle.data("tracelens", trace), oracle.data("tracelens", folder, "gpu_timeline.csv")
        with open(path) as f:
            want = list(csv.DictReader(f))
        events = oracle.events(oracle.load(trace))
        times = [e["ts"] for e in events if e.get("ph") == "X" and e.get("cat") in GPU]
        noise_ms = len(times) * math.ulp(max(times)) / 1000
        rows = report("gpu-timeline", trace, "--compat=tracelens").rows
        self.assertEqual([r["type"] for r in rows], [w["type"] for w in want])
        again = figures(classify(events, tied_to_call(events)))
        total = None
        for got, w in zip(rows, want):
            ms, pct, name = float(w["time ms"]), float(w["percent"]), w["type"]
            total = total or float(next(x for x in want if x["type"] == "total_time")["time ms"])
            self.assertEqual(got.get("is_recompute", False), w.get("is_recompute", "False") == "True")
            self.assertAlmostEqual(got["time_ms"], ms, delta=noise_ms, msg=name)
            self.assertAlmostEqual(got["percent"], pct, delta=2 * 100 * noise_ms / total, msg=name)
            self.assertLess(abs(got["time_ms"] - ms), 30e-6, name)  # and in fact within 30 ns
            if "is_recompute" not in w:
                self.assertTrue(math.isclose(again[name] / 1000, ms, rel_tol=1e-12, abs_tol=1e-12), (name, again[name], ms))

    def test_qwen(self):
        self.check("h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", "h100/Qwen_Qwen1.5-0.5B-Chat__1016005_perf_report_csvs")

    def test_bert(self):
        self.check("h100/gaunernst_bert-small-uncased__1016001.json.gz",
                   "h100/gaunernst_bert-small-uncased__1016001_perf_report_csvs")

    def test_vit(self):
        self.check("h100/Falconsai_nsfw_image_detection__1016002.json.gz",
                   "h100/Falconsai_nsfw_image_detection__1016002_perf_report_csvs")

    def test_recompute(self):
        self.check("mi300/resnet_act_checkpoint.json.gz", "mi300/resnet_act_checkpoint_recompute_perf_report_csvs")

    def test_graph_replay(self):
        self.check("inference/sglang_decode/sglang_Qwen3-8B_decode.json.gz", "inference/sglang_decode/perf_csvs")

    def test_triton(self):
        self.check("triton/trace.json.gz", "triton/trace_perf_report_csvs")

    def test_every_csv_is_checked(self):
        oracle.data("tracelens")
        self.assertEqual(len(oracle.data_glob("tracelens/**/*gpu_timeline.csv")), 6)


class OwnNumbers(Case):
    """By default all device work counts, also what was launched before the recording began: checked against exact integers."""

    def exact(self, path):
        out = {"comp": [], "comm": [], "copy": []}
        for kind, ranges in classify(oracle.events(self.exact_load(path))).items():
            out[kind] = [r for r in ranges if r[1] > r[0]]
        return figures(out)

    def recording(self, path):
        """From the first to the last event."""
        times = [(e["ts"], e["ts"] + e["dur"]) for e in oracle.events(self.exact_load(path))
                 if e.get("ph") == "X" and e.get("cat") != "Trace"]
        return max(t[1] for t in times) - min(t[0] for t in times)

    def exact_load(self, path):
        """Times as integers of ns, from the decimal digits."""
        import decimal
        import gzip
        with gzip.open(path) as f:
            doc = json.loads(f.read(), parse_float=decimal.Decimal, strict=False)
        for e in oracle.events(doc):
            for key in ("ts", "dur"):
                if key in e:
                    e[key] = int(decimal.Decimal(e[key]) * 1000)
        return doc

    def test_exact(self):
        paths = oracle.data_glob("tracelens/**/*.json.gz") + oracle.data_glob("multirank/*/*_0.json.gz") + \
            oracle.data_glob("hta/ns_resolution_trace/*.json.gz")
        if not paths:
            self.skipTest("no real traces")
        own = dict(zip(("computation", "exposed_communication", "exposed_copy", "busy", "idle", "total", "communication", "copy"),
                       NAMES))
        for path in paths:
            with self.subTest(path=os.path.basename(path)):
                want = self.exact(path)
                want["total_time"] = self.recording(path)
                want["idle_time"] = want["total_time"] - want["busy_time"]
                table = report("gpu-timeline", path)
                got = {r["kind"]: r["time_ns"] for r in table.rows if r["group"] == "all"}
                self.assertEqual(got, {k: want[v] for k, v in own.items()})
                self.sums(table)

    def sums(self, table):
        for group in {r["group"] for r in table.rows}:
            g = {r["kind"]: r["time_ns"] for r in table.rows if r["group"] == group}
            self.assertEqual(g["computation"] + g["exposed_communication"] + g["exposed_copy"], g["busy"])
            if "total" in g:
                self.assertEqual(g["busy"] + g["idle"], g["total"])

    def test_groups(self):
        path = oracle.data(*self.MI300)
        for by, want in (("launch", {"all", "launched in the recording", "launched before it"}),
                         ("recompute", {"all", "not recomputation", "recomputation"}), ("device", {"all"})):
            table = report("gpu-timeline", path, f"--group-by={by}")
            self.assertEqual({r["group"] for r in table.rows}, want)
            self.sums(table)
            self.assertEqual("all: device 2, the only one with work." in table.notes, by == "device")
            # Only what stands for a device, or for all, is ever idle; the shares of the others are of the same total.
            self.assertEqual({r["group"] for r in table.rows if r["kind"] in ("idle", "total")}, {"all"})
            total = next(r["time_ns"] for r in table.rows if r["kind"] == "total")
            for r in table.rows:
                self.assertAlmostEqual(r["share_pct"], 100 * r["time_ns"] / total)

    def test_several_devices(self):
        kernel = {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "name": "k"}
        events = [dict(kernel, ts=0, dur=10, args={"device": 0, "stream": 7}), dict(kernel, ts=20, dur=10, args={"device": 1, "stream": 7})]
        table = report("gpu-timeline", "-", stdin=json.dumps({"schemaVersion": 1, "traceEvents": events}).encode())
        got = {(r["group"], r["kind"]): r["time_ns"] for r in table.rows}
        self.assertEqual([got[g, "idle"] for g in ("mean", "min", "max", "0", "1")], [20000] * 5)
        self.assertEqual([got[g, "total"] for g in ("mean", "0", "1")], [30000, 30000, 30000])
        self.sums(table)

    def test_two_gpus(self):
        """The work of one GPU hides neither the communication nor the idle time of the other: by python's own reading of the database."""
        path = oracle.data("nsys", "2026.2_mfu_2gpu", "mfu_2gpu_before.sqlite")
        table = report("gpu-timeline", path)
        db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
        names = dict(db.execute("SELECT id, value FROM StringIds"))
        for gpu in (0, 1):
            comm, other, copy = [], [], []
            for start, end, name in db.execute("SELECT start, end, shortName FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE deviceId = ?", (gpu,)):
                (comm if "nccl" in names[name].lower() else other).append((start, end))
            other += db.execute("SELECT start, end FROM CUPTI_ACTIVITY_KIND_MEMSET WHERE deviceId = ?", (gpu,)).fetchall()
            copy = db.execute("SELECT start, end FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE deviceId = ?", (gpu,)).fetchall()
            got = {r["kind"]: r["time_ns"] for r in table.rows if r["group"] == str(gpu)}
            self.assertEqual(got["computation"], union(other))
            self.assertEqual(got["exposed_communication"], union(comm + other) - union(other))
            self.assertEqual(got["busy"], union(comm + other + copy))
        db.close()
        exposed = {r["group"]: round(r["time_ns"] / 1e6, 1) for r in table.rows if r["kind"] == "exposed_communication"}
        self.assertEqual(exposed, {"0": 17.2, "1": 8.2, "mean": 12.7, "min": 8.2, "max": 17.2})

    MI300 = ("tracelens", "mi300", "resnet_act_checkpoint.json.gz")

    def test_overview_says_the_same(self):
        """Of the steps; work that was launched before the recording is counted in a note."""
        path = oracle.data(*self.MI300)
        doc = self.exact_load(path)
        device = [e for e in oracle.events(doc) if e.get("ph") == "X" and e.get("cat") in GPU]
        calls = {e["args"].get("correlation") for e in oracle.events(doc) if e.get("cat") in ("cuda_runtime", "cuda_driver")}
        early = [e for e in device if e["args"].get("correlation") not in calls]
        notes = report("gpu-timeline", path).notes
        self.assertTrue(any(n.startswith(f"{len(early)} device events ({sum(e['dur'] for e in early)} ns) were launched before the "
                                         "recording began") for n in notes), notes)
        for inside in (oracle.steps_report("gpu-timeline", path), report("gpu-timeline", path, "--steps=15..17")):
            ns = {r["kind"]: r["time_ns"] for r in inside.rows}
            roles = {r["role"]: r["total_ns"] for r in report("overview", path).rows}
            self.assertEqual(ns["total"], roles["Average Step Time"])
            self.assertEqual(ns["computation"], roles["Kernel"] + roles["Memset"])
            self.assertEqual(ns["exposed_communication"], roles["Communication"])
            self.assertEqual(ns["exposed_copy"], roles["Memcpy"])
            self.assertEqual(ns["idle"], roles["Runtime"] + roles["DataLoader"] + roles["CPU Exec"] + roles["Other"])

    def test_steps(self):
        """Over a range of steps the total is the length of the steps."""
        path = oracle.data("tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz")
        table = report("gpu-timeline", path, "--steps=6..7")
        self.sums(table)
        got = {r["kind"]: r["time_ns"] for r in table.rows if r["group"] == "all"}
        steps = report("steps", path, "--steps=6..7").rows
        self.assertEqual(got["total"], sum(s["total_ns"] for s in steps))
        self.assertEqual(got["busy"], sum(s["kernel_ns"] + s["memcpy_ns"] + s["memset_ns"] for s in steps))

    def test_no_device_work(self):
        code, out, err = oracle.run("report", "gpu-timeline", oracle.synthetic("pure_cpu"))
        self.assertEqual((code, out), (1, b""))
        self.assertIn(b"no device work", err)


if __name__ == "__main__":
    oracle.main()
