"""Metrics of GPUs that Nsight Systems samples. No export at hand has any: databases are planted, in which each sample is the mean of a known truth over the time before it. Names, scales and the
device in the lowest byte of typeId are those of NVIDIA's exports."""
import os
import tempfile

import nsys_db
import oracle
from nsys_db import call, kernel, nvtx, strings
from oracle import Case
from served import Server

US, MS = 1000, 1000000
EVERY = 100 * US
TYPE = 0x1000100000000  # of GPU 0
SM, ISSUE, TENSOR, WARPS, READ, WRITE, CLOCK, AVG = range(8)
NAMES = ["SMs Active [Throughput %]", "SM Issue [Throughput %]", "Tensor Active [Throughput %]", "Compute Warps in Flight [Throughput %]", "DRAM Read Bandwidth [Throughput %]",
         "DRAM Write Bandwidth [Throughput %]", "GPC Clock Frequency [MHz]", "Compute Warps in Flight [Avg]"]
HERTZ = 2526795000 - (1 << 32)  # as a signed column holds it
GPUS = ("NVIDIA A100-SXM4-80GB", 108)
A100_BYTES_PER_S = 2039e9


def gpu(i):
    return {"vmId": 1, "id": i, "name": GPUS[0], "totalMemory": 85899345920, "smCount": GPUS[1], "threadsPerWarp": 32, "maxWarpsPerSm": 64, "computeMajor": 8, "computeMinor": 0}


def names(*devices, metrics=range(len(NAMES))):
    return [{"typeId": TYPE + d, "sourceId": TYPE, "typeName": "", "metricId": m, "metricName": NAMES[m]} for d in devices for m in metrics]


def mean(truth, a, b):
    """Of [(start, end, level)], 0 elsewhere."""
    return sum(level * max(0, min(b, end) - max(a, start)) for start, end, level in truth) / (b - a)


def samples(truth, until, device=0, begin=-3 * EVERY, every=EVERY, behind=True):
    """`truth`: {metric: [(start, end, level)]}. behind: a sample is of the time before its timestamp; else of that after it."""
    out = []
    for i in range((until - begin) // every):
        at = begin + i * every
        for m, pieces in truth.items():
            v = HERTZ if m == CLOCK else 123456789 if m == AVG else round(mean(pieces, at - every, at) if behind else mean(pieces, at, at + every))
            out.append({"rawTimestamp": at, "timestamp": at, "typeId": TYPE + device, "metricId": m, "value": v})
    return out


def inside(rows, start, end, metric, device=0):
    """Samples around which [start, end) takes up the time to both neighbours."""
    v = [(r["timestamp"], r["value"]) for r in rows if r["metricId"] == metric and r["typeId"] == TYPE + device]
    return [v[i][1] for i in range(1, len(v) - 1) if v[i - 1][0] >= start and v[i + 1][0] <= end]


def database(kernels, rows, gpus=(0,), process=10, maps=None, **more):
    """`kernels`: (name, start, end, fields)."""
    texts = sorted({k[0] for k in kernels})
    work, calls = [], []
    for i, (name, start, end, *fields) in enumerate(kernels, 1):
        work.append(kernel(start, end, i, process, name=texts.index(name) + 2, **(fields[0] if fields else {})))
        calls.append(call(start - 20 * US, start - 15 * US, i, process, 11, name=1))
    maps = [{"gpuId": g, "cudaId": g, "pid": process} for g in gpus] if maps is None else maps
    made = {"StringIds": strings("cudaLaunchKernel", *texts), "META_DATA_EXPORT": [{"name": "EXPORT_SCHEMA_VERSION", "value": "3.25.0"}], "TARGET_INFO_GPU": [gpu(g) for g in gpus],
            "TARGET_INFO_CUDA_DEVICE": maps, "CUPTI_ACTIVITY_KIND_KERNEL": work, "CUPTI_ACTIVITY_KIND_RUNTIME": calls,
            "TARGET_INFO_GPU_METRICS": names(*range(max(gpus) + 1)), "GPU_METRICS": rows}
    made.update(more)
    return {k: v for k, v in made.items() if v is not None}


def levels(kernels):
    """A truth of all metrics: (name, start, end) with levels in percent."""
    truth = {m: [] for m in range(len(NAMES))}
    for start, end, v in kernels:
        for m, level in v.items():
            truth[m].append((start, end, level))
    return truth


GEMM = {SM: 90, ISSUE: 40, TENSOR: 70, WARPS: 25, READ: 30, WRITE: 10}
COPY = {SM: 60, ISSUE: 5, WARPS: 50, READ: 44, WRITE: 41}


class Planted(Case):
    def path(self, made):
        d = tempfile.TemporaryDirectory()
        self.addCleanup(d.cleanup)
        path = os.path.join(d.name, "t.sqlite")
        nsys_db.make(path, made)
        return path

    def kernels(self, path, *args):
        return {r["name"]: r for r in oracle.report("kernels", path, *args).rows}

    def assert_kernel(self, row, v, samples):
        self.assertEqual(row["samples"], samples)
        for column, metric in ("sm_active", SM), ("sm_issue", ISSUE), ("tensor_active", TENSOR), ("warps", WARPS):
            self.assertAlmostEqual(row[f"sampled_{column}_pct"], v.get(metric, 0), msg=column)
        self.assertAlmostEqual(row["sampled_dram_pct"], v[READ] + v[WRITE])
        self.assertIsNone(row["sampled_unknown"])

    def assert_unknown(self, row, why):
        self.assertLessEqual({row[c] for c in row if c.startswith("sampled_") and c.endswith("_pct")}, {None})
        self.assertIn(why, row["sampled_unknown"])


class Kernels(Planted):
    def test_long_ones(self):
        """Edges that other time is in do not count, whichever way a timestamp is meant."""
        spans = [("gemm", 1 * MS + 30 * US, 2 * MS + 70 * US), ("copy", 3 * MS + 50 * US, 5 * MS + 1)]
        truth = levels([(*spans[0][1:], GEMM), (*spans[1][1:], COPY)])
        for behind in True, False:
            rows = samples(truth, 6 * MS, behind=behind)
            table = self.kernels(self.path(database(spans, rows)))
            self.assert_kernel(table["gemm"], GEMM, len(inside(rows, *spans[0][1:], SM)))
            self.assert_kernel(table["copy"], COPY, len(inside(rows, *spans[1][1:], SM)))

    def test_levels_that_change(self):
        """The mean over time of several, by Python."""
        start, end = 1 * MS, 3 * MS
        rows = samples({SM: [(start, start + 700 * US, 90), (start + 700 * US, end, 33)], READ: [(start, end, 7)]}, 4 * MS)
        path = self.path(database([("k", start, end)], rows))
        want = inside(rows, start, end, SM)
        row = self.kernels(path)["k"]
        self.assertAlmostEqual(row["sampled_sm_active_pct"], round(sum(want) / len(want), 2))
        self.assertNotIn("sampled_tensor_active_pct", row)
        self.assertNotIn("sampled_dram_pct", row)  # what was written is not known

    def test_counters(self):
        spans = [("gemm", 1 * MS, 2 * MS), ("gemm", 3 * MS, 7 * MS)]
        lower = {m: v // 2 for m, v in GEMM.items()}
        rows = samples(levels([(*spans[0][1:], GEMM), (*spans[1][1:], lower)]), 8 * MS)
        path = self.path(database(spans, rows))
        n = [len(inside(rows, *s[1:], SM)) for s in spans]
        each = [r for r in oracle.report("counters", path, "--group-by=instance").rows if r["metric"] == NAMES[SM]]
        self.assertEqual([(r["start_ns"], r["value"], r["told_by"], r["samples"]) for r in each], [(1 * MS, 90, "samples", n[0]), (3 * MS, 45, "samples", n[1])])
        by_metric = {r["metric"]: r for r in oracle.report("counters", path).rows}
        self.assertEqual(set(by_metric), set(NAMES) - {NAMES[AVG]})
        row = by_metric[NAMES[SM]]
        self.assertEqual((row["unit"], row["calls"], row["samples"], row["sum"], row["min"], row["max"]), ("%", 2, sum(n), None, 45, 90))
        self.assertAlmostEqual(row["mean"], (90 * n[0] + 45 * n[1]) / sum(n))
        self.assertEqual(by_metric[NAMES[CLOCK]]["unit"], "MHz")
        self.assertAlmostEqual(by_metric[NAMES[CLOCK]]["mean"], 2526.795, delta=0.01)

    def test_calls_that_are_too_short(self):
        """Of one kernel, one behind the other: together they tell."""
        spans = [("k", 1 * MS + i * 30 * US, 1 * MS + i * 30 * US + 29 * US) for i in range(100)]
        rows = samples(levels([(1 * MS, 4 * MS, GEMM)]), 5 * MS)
        path = self.path(database(spans, rows))
        row = self.kernels(path)["k"]
        self.assertGreaterEqual(row["samples"], 25)
        self.assert_kernel(row, GEMM, row["samples"])
        self.assertEqual([(r["operator"], r["mean"], r["samples"]) for r in oracle.report("counters", path).rows if r["metric"] == NAMES[TENSOR]], [(None, 70, row["samples"])])
        self.assertEqual(oracle.report("counters", path, "--group-by=instance").rows, [])

    def test_too_few_of_them(self):
        spans = [("k", 1 * MS + i * 30 * US, 1 * MS + i * 30 * US + 29 * US) for i in range(30)]
        rows = samples(levels([(1 * MS, 1 * MS + 900 * US, GEMM)]), 5 * MS)
        row = self.kernels(self.path(database(spans, rows)))["k"]
        self.assertTrue(0 < row["samples"] < 10)
        self.assert_unknown(row, "no call is as long as 4 sampling intervals of 100 us")

    def test_short_ones_of_several_kernels(self):
        spans = [("ab"[i % 2], 1 * MS + i * 50 * US, 1 * MS + i * 50 * US + 49 * US) for i in range(100)]
        for row in self.kernels(self.path(database(spans, samples(levels([(1 * MS, 6 * MS, GEMM)]), 7 * MS)))).values():
            self.assertEqual(row["samples"], 0)
            self.assert_unknown(row, "only 0 samples lie in calls of this kernel alone")

    def test_another_grid_is_another_kernel(self):
        spans = [("k", 1 * MS + i * 50 * US, 1 * MS + i * 50 * US + 49 * US, {"gridX": 1 + i % 2}) for i in range(100)]
        row = self.kernels(self.path(database(spans, samples(levels([(1 * MS, 6 * MS, GEMM)]), 7 * MS))))["k"]
        self.assertEqual(row["samples"], 0)

    def test_not_alone(self):
        """A kernel or a copy of another stream, or of another process, of the same time."""
        copy = {**kernel(1 * MS, 9 * MS, 90, 10, stream=8), "bytes": 4096, "copyKind": 2, "srcKind": 2, "dstKind": 0}
        truth = samples(levels([(1 * MS, 9 * MS, GEMM)]), 10 * MS)
        for more in [("b", 1 * MS, 9 * MS, {"streamId": 9})], [("b", 1 * MS, 9 * MS, {"globalPid": nsys_db.pid(12)})], []:
            made = database([("a", 2 * MS, 8 * MS), *more], truth, maps=[{"gpuId": 0, "cudaId": 0, "pid": p} for p in (10, 12)])
            if not more:
                made["CUPTI_ACTIVITY_KIND_MEMCPY"] = [copy]
            row = self.kernels(self.path(made))["a"]
            self.assertEqual(row["samples"], 0)
            self.assert_unknown(row, "during which no other work ran")

    def test_another_program(self):
        """SMs are active while nothing runs."""
        spans = [("a", 1 * MS, 3 * MS), ("a", 6 * MS, 8 * MS)]
        path = self.path(database(spans, samples(levels([(0, 9 * MS, GEMM)]), 9 * MS)))
        self.assert_unknown(self.kernels(path)["a"], "90 % of the SMs were active while no recorded work ran")
        self.assertIn("another program used the GPU", " ".join(r["message"] for r in oracle.info(path).section("problems").rows))

    def test_two_gpus(self):
        """The process calls GPU 1 its device 0: CUDA_VISIBLE_DEVICES."""
        span = ("k", 1 * MS, 3 * MS)
        rows = samples(levels([(*span[1:], {m: 99 for m in GEMM})]), 4 * MS) + samples(levels([(*span[1:], GEMM)]), 4 * MS, device=1)
        row = self.kernels(self.path(database([span], rows, gpus=(0, 1), maps=[{"gpuId": 1, "cudaId": 0, "pid": 10}])))["k"]
        self.assert_kernel(row, GEMM, len(inside(rows, *span[1:], SM, device=1)))

    def test_which_of_two_gpus_is_not_told(self):
        span = ("k", 1 * MS, 3 * MS)
        rows = samples(levels([(*span[1:], {m: 99 for m in GEMM})]), 4 * MS) + samples(levels([(*span[1:], GEMM)]), 4 * MS, device=1)
        for maps in [], [{"gpuId": 0, "cudaId": 0, "pid": 77}]:
            self.assert_unknown(self.kernels(self.path(database([span], rows, gpus=(0, 1), maps=maps)))["k"], "does not tell which GPU")

    def test_samples_are_missing(self):
        """A gap of half a millisecond in the kernel, and metrics that lack single samples."""
        start, end = 1 * MS, 5 * MS
        rows = samples(levels([(start, end, GEMM)]), 6 * MS)
        rows = [r for r in rows if not 2 * MS < r["timestamp"] < 2 * MS + 500 * US and not (r["metricId"] == TENSOR and r["timestamp"] == 4 * MS)]
        row = self.kernels(self.path(database([("k", start, end)], rows)))["k"]
        self.assert_kernel(row, GEMM, row["samples"])
        self.assertGreater(row["samples"], 20)

    def test_roofline(self):
        """Bytes by the share of the peak, beside those of the model."""
        span = ("ampere_sgemm_128x64_nn", 1 * MS, 3 * MS)
        made = database([span], samples(levels([(*span[1:], GEMM)]), 4 * MS))
        made["NVTX_EVENTS"] = [nvtx(900 * US, 999 * US, "aten::mm, seq = 7, op_id = 1, sizes = [[512, 256], [256, 1024]]", 10, 11)]
        row = oracle.report("roofline", self.path(made)).rows[0]
        self.assertEqual((row["op"], row["calls"], row["sampled_calls"]), ("aten::mm", 1, 1))
        self.assertAlmostEqual(row["sampled_dram_bytes"], 0.4 * A100_BYTES_PER_S * 2e-3)
        self.assertEqual((row["bytes"], row["sampled_to_model"]), (None, None))  # the range states no types
        self.assertEqual(row["sampled_dram_per_call_bytes"], row["sampled_dram_bytes"])
        self.assertAlmostEqual(row["sampled_gb_per_s"], 0.4 * A100_BYTES_PER_S / 1e9)
        self.assertAlmostEqual(row["sampled_bandwidth_pct"], 40)
        self.assertNotIn("measured_calls", row)

    def test_imported(self):
        span = ("k", 1 * MS, 3 * MS)
        path = self.path(database([span], samples(levels([(*span[1:], GEMM)]), 4 * MS)))
        kept = path + ".opscope"
        oracle.run("import", path, "-o", kept)
        for name in "kernels", "counters", "gpu-timeline":
            self.assertEqual(oracle.report(name, kept).rows, oracle.report(name, path).rows)
        self.assertEqual(self.metrics(kept), self.metrics(path))

    def metrics(self, path):
        return oracle.report("gpu-timeline", path).section("gpu_metrics").rows


class Time(Planted):
    TRUTH = {SM: [(1 * MS, 2 * MS, 80), (3 * MS, 5 * MS, 40)], TENSOR: [(3 * MS, 5 * MS, 30)], READ: [(1 * MS, 5 * MS, 20)], WRITE: [(4 * MS, 5 * MS, 50)]}

    def rows(self, path, *args):
        return oracle.steps_report("gpu-timeline", path, *args).section("gpu_metrics").rows

    def made(self, every=EVERY, **more):
        spans = [("k", 1 * MS, 2 * MS), ("k", 3 * MS, 5 * MS)]
        made = database(spans, samples(self.TRUTH, 7 * MS, every=every), **more)
        made["NVTX_EVENTS"] = [nvtx(900 * US, 2500 * US, "train_step 1", 10, 11), nvtx(2500 * US, 6000 * US, "train_step 2", 10, 11)]
        return self.path(made)

    def test_steps(self):
        path = self.made()
        steps = oracle.report("steps", path).rows
        rows = {r["step"]: r for r in self.rows(path)}
        self.assertEqual(set(rows), {"all", "1", "2"})
        for r in steps:
            row, a, b = rows[str(r["step"])], r["start_ns"], r["start_ns"] + r["total_ns"]
            self.assertEqual((row["time_ns"], row["sampled_pct"]), (b - a, 100))
            for column, metric in ("sm_active_pct", SM), ("tensor_active_pct", TENSOR), ("dram_read_pct", READ), ("dram_write_pct", WRITE):
                self.assertAlmostEqual(row[column], mean(self.TRUTH[metric], a, b))
            self.assertAlmostEqual(row["dram_pct"], row["dram_read_pct"] + row["dram_write_pct"])
            self.assertNotIn("sm_issue_pct", row)
        ns = sum(rows[k]["time_ns"] for k in "12")
        self.assertAlmostEqual(rows["all"]["sm_active_pct"], sum(rows[k]["time_ns"] * rows[k]["sm_active_pct"] for k in "12") / ns)
        self.assertEqual([r["step"] for r in self.rows(path, "--steps=2")], ["all", "2"])

    def test_curves(self):
        """Of the viewer: 25 pieces of 200 us, from the first event to the last."""
        server = Server(self, self.path(database([("k", 20 * US, 2 * MS), ("k", 3 * MS, 5 * MS)], samples(self.TRUTH, 7 * MS))))
        c = server.get("/api/timeline/counters", points=25)
        self.assertEqual((c["from"], c["to"], len(c["sampled"])), (0, 5 * MS, 1))
        for name, metric in ("sm_active", SM), ("tensor_active", TENSOR), ("dram_read", READ), ("dram_write", WRITE):
            self.assertEqual([100 * v for v in c["sampled"][0][name]], [mean(self.TRUTH[metric], i * 200 * US, (i + 1) * 200 * US) for i in range(25)])

    def test_chrome(self):
        """Counters over time, each from the begin of the time that it is of."""
        code, out, _ = oracle.run("export", "chrome", self.made())
        found = {(e["name"], e["ts"]): e["args"]["value"] for e in oracle.json.loads(out)["traceEvents"] if e["ph"] == "C"}
        rows = samples(self.TRUTH, 7 * MS)
        self.assertEqual((code, found), (0, {(NAMES[r["metricId"]], (r["timestamp"] - EVERY) / US): r["value"] for r in rows}))

    def test_read_again_from_chrome(self):
        path = self.made()
        again = path + ".json"
        self.assertEqual(oracle.run("export", "chrome", path, "-o", again)[0], 0)
        columns = "samples", "sampled_sm_active_pct", "sampled_dram_pct"
        want, got = (self.kernels(p)["k"] for p in (path, again))
        self.assertEqual([got[c] for c in columns], [want[c] for c in columns])
        self.assertEqual(self.rows(again), self.rows(path))

    def test_two_gpus(self):
        rows = samples(self.TRUTH, 7 * MS) + samples({SM: [(0, 10 * MS, 12)]}, 7 * MS, device=1)
        table = {(r["device"], r["step"]): r for r in self.rows(self.path(database([("k", 1 * MS, 5 * MS)], rows, gpus=(0, 1))))}
        self.assertAlmostEqual(table[0, "all"]["sm_active_pct"], mean(self.TRUTH[SM], 1 * MS, 5 * MS))
        self.assertEqual((table[1, "all"]["sm_active_pct"], table[1, "all"]["dram_pct"]), (12, None))

    def test_half_of_it_was_sampled(self):
        rows = [r for r in samples(self.TRUTH, 7 * MS) if r["timestamp"] >= 4 * MS]
        table = self.rows(self.path(database([("k", 1 * MS, 5 * MS)], rows)))
        self.assertEqual(table[0]["sm_active_pct"], None)
        self.assertLess(table[0]["sampled_pct"], 50)

    def test_long_recordings_are_thinned(self):
        """More than half a million values of one metric, in a row for each: points are means, and kernels have theirs of all."""
        n = 600000
        rows = ({"timestamp": i * 10 * US, "typeId": TYPE, "metricId": SM, "value": 10 + i % 7} for i in range(n))
        path = self.path(database([("k", 0, n * 10 * US), ("j", n * 10 * US + MS, n * 10 * US + 2 * MS)], rows))
        self.assertAlmostEqual(self.kernels(path)["k"]["sampled_sm_active_pct"], 13, places=2)
        self.assertAlmostEqual(self.rows(path)[0]["sm_active_pct"], 13, places=2)
        code, out, _ = oracle.run("sql", path, "SELECT count(*) FROM mark", "--format=json")
        self.assertEqual((code, oracle.json.loads(out)["rows"]), (0, [[n // 2]]))


class Odd(Planted):
    SPAN = ("k", 1 * MS, 3 * MS)

    def good(self):
        return samples(levels([(*self.SPAN[1:], GEMM)]), 4 * MS)

    def diags(self, path):
        return {r["kind"]: r["count"] for r in oracle.info(path).section("problems").rows}

    def test_rows_in_any_order(self):
        rows = self.good()
        want = self.kernels(self.path(database([self.SPAN], rows)))["k"]
        self.assert_kernel(want, GEMM, want["samples"])
        for order in sorted(rows, key=lambda r: (r["metricId"], r["timestamp"])), list(reversed(rows)), sorted(rows, key=lambda r: r["timestamp"] * 7919 % 1000003):
            self.assertEqual(self.kernels(self.path(database([self.SPAN], order)))["k"], want)

    def test_no_such_tables(self):
        for gone in ("GPU_METRICS",), ("TARGET_INFO_GPU_METRICS",), ("GPU_METRICS", "TARGET_INFO_GPU_METRICS"):
            path = self.path(database([self.SPAN], self.good(), **{t: None for t in gone}))
            self.assertNotIn("samples", self.kernels(path)["k"])
            self.assertEqual(self.diags(path).get("gpu-metric-unnamed", 0), len(self.good()) if gone == ("TARGET_INFO_GPU_METRICS",) else 0)

    def test_no_such_columns(self):
        for column in "timestamp", "typeId", "metricId", "value":
            path = self.path(database([self.SPAN], self.good()))
            nsys_db.sqlite3.connect(path).execute(f"ALTER TABLE GPU_METRICS DROP COLUMN {column}").connection.commit()
            self.assertNotIn("samples", self.kernels(path)["k"])

    def test_too_many_metrics(self):
        """4,096 metrics are read, and a kernel has up to 512 arguments: what is beyond is counted."""
        path = self.path(database([self.SPAN], self.good()))
        db = nsys_db.sqlite3.connect(path)
        known = db.execute("SELECT COUNT(*) FROM TARGET_INFO_GPU_METRICS").fetchone()[0]
        db.executemany("INSERT INTO TARGET_INFO_GPU_METRICS (typeId, metricId, metricName) VALUES (?, ?, ?)", [(TYPE, 1000 + i, f"x{i} [Throughput %]") for i in range(4100)])
        times = sorted({r["timestamp"] for r in self.good()})
        db.executemany("INSERT INTO GPU_METRICS (timestamp, typeId, metricId, value) VALUES (?, ?, ?, 5)", [(t, TYPE, 1000 + i) for i in range(600) for t in times])
        db.commit()
        found = self.diags(path)
        self.assertEqual(found["gpu-metrics-limit"], known + 4100 - 4096)
        self.assertGreater(found["too-many-args"], 600 - 512)
        self.assertEqual(self.kernels(path)["k"]["sampled_sm_active_pct"], 90)

    def test_values_that_cannot_be(self):
        """A few of a metric are left out, and the rest is right; a metric with many is no share."""
        bad = [-1, 1000, None, "x", 2 ** 62, b"\xff"]
        rows = self.good()
        for i, v in enumerate(bad):
            rows[8 * (30 + i) + ISSUE]["value"] = v
        one = self.path(database([self.SPAN], rows[:8 * 25 + SM] + [{**rows[8 * 25 + SM], "value": 128}] + rows[8 * 25 + SM + 1:] + [
            {"timestamp": (4 + i) * MS, "typeId": TYPE, "metricId": SM, "value": 0} for i in range(200)]))
        row = self.kernels(one)["k"]
        self.assertEqual((row["sampled_sm_active_pct"], row["sampled_tensor_active_pct"], "sampled_sm_issue_pct" in row), (90, 70, False))
        self.assertEqual(self.diags(one)["gpu-metric-value"], len(bad) + 1)

    def test_times_that_cannot_be(self):
        rows = self.good() + [{"timestamp": t, "typeId": TYPE, "metricId": SM, "value": 1} for t in (None, "x", 2 ** 62, -2 ** 62, 2 ** 63 - 1, 2 ** 60, -2 ** 60)] + self.good()[:9]
        path = self.path(database([self.SPAN], rows))
        self.assertEqual(self.kernels(path)["k"]["sampled_sm_active_pct"], 90)
        self.assertEqual(self.diags(path)["bad-time"], 5)

    def test_one_sample(self):
        for n in 8, 16, 24:
            row = self.kernels(self.path(database([self.SPAN], self.good()[:n])))["k"]
            self.assertEqual(row["samples"], 0)

    def test_other_reports_stay_as_they_are(self):
        """The samples begin before the program and end behind it."""
        with_them, without = (self.path(database([self.SPAN], rows, TARGET_INFO_GPU_METRICS=names(0) if rows else None)) for rows in (self.good(), None))
        for name in "operators", "memcpy", "steps", "devices":
            self.assertEqual(oracle.run("report", name, with_them, "--format=json")[1].replace(with_them.encode(), b""), oracle.run("report", name, without, "--format=json")[1].replace(without.encode(), b""))


if __name__ == "__main__":
    oracle.main()
