"""`report operators` against the TensorBoard plugin's own table and pies, cell by cell, and against sums over the trace."""
import glob
import json
import os
import tempfile
import unittest

import oracle
from oracle import Case, data, report

RUN = ("tb_plugin", "resnet50_num_workers_0")
TRACE = "worker0.1623143089861.pt.trace.json.gz"  # span 1


def expected(name):
    with open(data(*RUN, name)) as f:
        return json.load(f)


class TbPlugin(Case):
    @classmethod
    def setUpClass(cls):
        cls.table = None

    def setUp(self):
        super().setUp()
        path = data(*RUN, TRACE)
        if TbPlugin.table is None:
            TbPlugin.table = report("operators", path, "--compat=tb-plugin")

    def test_table(self):
        want = expected("expected_operator_table.json")["data"]
        self.assertEqual(len(want), 76)
        self.assertEqual(len(self.table.rows), len(want))
        rows = self.table.by("name")
        for w in want:
            with self.subTest(operator=w["name"]):
                self.assertEqual({k: rows[w["name"]][k] for k in w}, w)

    def test_order(self):
        """Sorted by device self duration; the plugin leaves the order of equals to chance."""
        got = [r["device_self_duration"] for r in self.table.rows]
        self.assertEqual(got, [w["device_self_duration"] for w in expected("expected_operator_table.json")["data"]])

    def test_pies(self):
        pies = expected("expected_operator_pies.json")
        for pie, column in (("device_total_time", "device_total_duration"), ("device_self_time", "device_self_duration"),
                            ("host_total_time", "host_total_duration"), ("host_self_time", "host_self_duration")):
            with self.subTest(pie=pie):
                got = sorted((-r[column], r["name"]) for r in self.table.rows if r[column] > 0)
                self.assertEqual(got, sorted((-v, n) for n, v in pies[pie]["rows"]))


class Reconciliation(Case):
    """What operators and the row (unattributed) have of the device is all that the trace has, to the nanosecond."""

    def check(self, path):
        table = report("operators", path)
        device = [e for e in oracle.events(oracle.load(path)) if e.get("ph") == "X"
                  and str(e.get("cat", "")).lower() in ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset")]
        want = sum(round(float(e.get("dur", 0)) * 1000) for e in device)
        if device:
            self.assertEqual(sum(r["device_self_ns"] for r in table.rows), want)
        return table

    def test_every_trace_with_a_device(self):
        paths = [p for pattern in ("hta/**/*.json.gz", "tracelens/**/*.json.gz", "multirank/**/*_0.json.gz", "tb_plugin/**/*.gz")
                 for p in oracle.data_glob(pattern) if "overlaid" not in p]
        if not paths:
            self.skipTest("no real traces")
        for path in paths[::4] if oracle.SANITIZED else paths:
            with self.subTest(trace=path[len(oracle.DATA) + 1:]):
                status, _, err = oracle.run("report", "operators", path, "--format=json")
                if status and b"no framework ops" in err:
                    continue
                self.check(path)

    def test_groupings_add_up_alike(self):
        path = data(*RUN, TRACE)
        by_name, *others = (report("operators", path, f"--group-by={g}") for g in ("name", "shape", "stack"))
        for other in others:
            for column in ("calls", "host_self_ns", "device_self_ns", "device_total_ns"):
                self.assertEqual(sum(r[column] or 0 for r in by_name.rows), sum(r[column] or 0 for r in other.rows), column)
            self.assertGreater(len(other.rows), len(by_name.rows))


def op(name, ts, dur, line, cat="cpu_op"):
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur,
            "args": {"Call stack": f"net.py({line}): forward"} if line else {}}


class RangesInsideOps(Case):
    """An op has the own time of ranges inside it that have no row; what ops inside such ranges take is theirs."""
    EVENTS = [op("ProfilerStep#1", 0, 1000, 0, "user_annotation"),
              op("aten::conv2d", 100, 300, 5),
              op("reorder", 110, 40, 0, "user_annotation"),
              op("convolution", 160, 200, 0, "user_annotation"),
              op("inner", 170, 100, 0, "user_annotation"),
              op("aten::empty", 180, 30, 5),
              op("aten::max_pool2d", 500, 100, 7)]

    def check(self, key, want, *options):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            f.write(json.dumps({"traceEvents": self.EVENTS}))
            f.flush()
            self.assertEqual({r[key]: r["host_self_ns"] for r in report("operators", f.name, *options).rows}, want)

    def test_by_name(self):
        self.check("name", {"aten::conv2d": 270000, "aten::empty": 30000, "aten::max_pool2d": 100000})

    def test_by_line(self):
        self.check("python_line", {"net.py(5): forward": 300000, "net.py(7): forward": 100000}, "--group-by=line")


class OwnFrames(Case):
    def test_lines(self):
        """Frames of opscope's own package are not the program's; those of a program in a folder of that name are, and of another package."""
        stacks = {"opscope/profiler.py(509): _open_step;train.py(12): <module>": "train.py(12): <module>",
                  "/build/python/opscope/_own.py(5): begin;loop.py(4): main": "loop.py(4): main",
                  "/env/opscope/torch.py(300): call": "(no line known)",
                  "/home/u/opscope/train.py(3): main": "/home/u/opscope/train.py(3): main",
                  "myopscope/profiler.py(1): opscope/_f": "myopscope/profiler.py(1): opscope/_f"}
        stacks.update({f"/home/u/opscope/{name}(3): main": f"/home/u/opscope/{name}(3): main" for name in ("__init__.py", "__main__.py", "_mine.py", "torch.pyx")})
        package = {os.path.basename(path) for path in glob.glob(os.path.join(oracle.ROOT, "python", "opscope", "*.py"))} - {"__init__.py", "__main__.py"}
        self.assertIn("profiler.py", package)
        stacks.update({f"/env/opscope/{name}(7): f;main.py({i}): main": f"main.py({i}): main" for i, name in enumerate(package)})
        events = [op("aten::add", 200 * i, 10 + i, 0) for i in range(len(stacks))]
        for event, stack in zip(events, stacks):
            event["args"] = {"Call stack": stack}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            f.write(json.dumps({"traceEvents": events}))
            f.flush()
            found = {r["host_self_ns"]: r["python_line"] for r in report("operators", f.name, "--group-by=line").rows}
        self.assertEqual(found, {1000 * (10 + i): line for i, line in enumerate(stacks.values())})


class CallsOfItself(Case):
    """An op that calls one of its own name, and others besides, counts what it holds once. torch and the plugin add up both calls."""

    def outermost(self, path, name):
        """(host time, device time) of the calls of an op that no other of the name holds; python's reading of the trace."""
        calls, launches, work = {}, {}, {}
        for e in oracle.events(oracle.load(path)):
            args = e.get("args") or {}
            if e.get("ph") != "X":
                continue
            if e.get("cat") == "cpu_op" and e["name"] == name:
                calls.setdefault(e["tid"], []).append((round(e["ts"] * 1000), round(e["dur"] * 1000)))
            elif e.get("cat") == "cuda_runtime":
                launches[args.get("correlation")] = e["tid"], round(e["ts"] * 1000)
            elif e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
                work.setdefault(args.get("correlation"), []).append(round(e["dur"] * 1000))
        host = device = 0
        for tid, spans in calls.items():
            end = 0
            for start, dur in sorted(spans, key=lambda s: (s[0], -s[1])):
                if start >= end:
                    end = start + dur
                    host += dur
                    device += sum(sum(work.get(c, [])) for c, (t, ts) in launches.items() if t == tid and start <= ts < end)
        return host, device

    def test_real(self):
        path = data("verdicts", "google_owlv2-large-patch14-ensemble__1016001.json.gz")
        rows = report("operators", path).by("name")
        for name in ("aten::arange", "aten::where"):
            self.assertEqual((rows[name]["host_total_ns"], rows[name]["device_total_ns"]), self.outermost(path, name), name)
        self.assertEqual(report("operators", path, "--compat=tb-plugin").by("name")["aten::arange"]["device_total_duration"], 27)

    def test_planted(self):
        names = [("aten::a", 0, 100), ("aten::b", 10, 20), ("aten::a", 40, 50), ("aten::a", 45, 20), ("aten::b", 70, 10), ("aten::a", 200, 30)]
        events = []
        for i, (name, ts, dur) in enumerate(names, 1):
            ids = {"External id": i, "correlation": i}
            events += [{"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": {"External id": i}},
                       {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": ts + 1, "dur": 1, "args": ids},
                       {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 300 + 10 * i, "dur": i, "args": ids}]
        trace = json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()
        for args, a, b in (([], (4, 130000, 21000), (2, 30000, 7000)), (["--compat=tb-plugin"], (4, 200, 21 + 12 + 4), (2, 30, 7))):
            rows = report("operators", "-", *args, stdin=trace).by("name")
            host, device = ("host_total_duration", "device_total_duration") if args else ("host_total_ns", "device_total_ns")
            self.assertEqual([tuple(rows[n][c] for c in ("calls", host, device)) for n in ("aten::a", "aten::b")], [a, b])


class Eligible(Case):
    """Which ops the plugin takes for eligible for Tensor Cores: those of its list, and those that called one or launched a kernel that uses
    them. It asks of the kernel's op before it looks at what this called and launched, and of the first op of a name only."""

    LIST = ("aten::mm", "aten::_convolution_nogroup", "aten::addmm_", "CudnnConvolutionBackward")
    NOT = ("aten::convolution_backward", "aten::mat_mul", "aten::addmv_", "aten::baddbmm_", "AddmmBackward0")

    @staticmethod
    def trace(device):
        events, at = [], 100

        def add(name, length, kernel=None, number=[0]):
            number[0] += 1
            events.append({"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": at, "dur": length, "args": {"External id": number[0]}})
            if kernel and device:
                ids = {"correlation": number[0], "External id": number[0]}
                events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at + 1, "dur": 2, "args": ids})
                events.append({"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": at + 50, "dur": 5, "args": ids})

        for name in Eligible.LIST + Eligible.NOT:
            add(name, 10, "elementwise")
            at += 100
        add("calls_later", 90)
        at += 100
        for outer in ("calls_later", "calls"):
            add(outer, 90)
            at += 10
            add("aten::mm", 10, "elementwise")
            at += 90
        add("launches", 90, "volta_h884gemm")
        return json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()

    def test_operators(self):
        for device in (True, False):
            rows = report("operators", "-", "--compat=tb-plugin", stdin=self.trace(device)).by("name")
            yes = set(self.LIST) | {"calls"} | ({"launches"} if device else set())
            self.assertEqual({n for n, r in rows.items() if r["tc_eligible"] == "Yes"}, yes)
            self.assertEqual(set(rows) - yes, set(self.NOT) | {"calls_later"} | (set() if device else {"launches"}))
            self.assertEqual((rows["launches"]["tc_self_ratio"], rows["launches"]["tc_total_ratio"]), (100, 100) if device else (0, 0))

    def test_default(self):
        rows = report("operators", "-", stdin=self.trace(True)).by("name")
        self.assertTrue(all(rows[n]["tc_eligible"] for n in ("aten::convolution_backward", "aten::addmv_", "calls_later", "launches")))

    def test_kernels(self):
        rows = report("kernels", "-", "--compat=tb-plugin", "--group-by=op", stdin=self.trace(True)).rows
        self.assertEqual({r["operator"] for r in rows if r["op_is_tensor_cores_eligible"] == "Yes"}, set(self.LIST))
        used, = (r for r in rows if r["kernel_uses_tensor_cores"] == "Yes")
        self.assertEqual((used["operator"], used["op_is_tensor_cores_eligible"]), ("launches", "No"))

    def test_without_a_device(self):
        """The columns are there, with the names that the list has."""
        rows = report("operators", data("torch", "torch26_cpu", "resnet_full.json.gz"), "--compat=tb-plugin").by("name")
        self.assertEqual((rows["aten::convolution_backward"]["tc_eligible"], rows["aten::addmm"]["tc_eligible"]), ("No", "Yes"))
        self.assertEqual({(r["tc_self_ratio"], r["tc_total_ratio"]) for r in rows.values()}, {(0, 0)})


if __name__ == "__main__":
    oracle.main()
