"""Who launched what, where it is not plain: several processes with the same ids, ranges inside ops, frames that overlap."""
import collections
import json
import os
import tempfile

import oracle
from oracle import Case, report, synthetic


def launched(name):
    return {r["name"]: r["operator"] for r in report("kernels", synthetic(name), "--group-by=op").rows}


class Attribution(Case):
    def test_two_processes(self):
        self.assertEqual(launched("two_processes"), {
            "kernel_a": "aten::a", "kernel_b": "aten::b", "kernel_unclear": None, "kernel_too": "aten::same_too",
            "kernel_late": "aten::same"})

    def test_two_processes_in_operators(self):
        table = report("operators", synthetic("two_processes"))
        self.assertEqual({r["name"]: r["device_self_ns"] for r in table.rows}, {
            "aten::a": 10000, "aten::b": 20000, "aten::same": 160000, "aten::same_too": 80000, "(unattributed)": 40000})
        self.assertTrue(any("device work 310000 ns = attributed to operators 270000 + unattributed 40000" in n for n in table.notes))

    def test_range_inside_an_op(self):
        self.assertEqual(launched("annotation_in_op"), {"inner_kernel": "MyFunction", "step_kernel": None})
        rows = report("operators", synthetic("annotation_in_op")).by("name")
        self.assertEqual(rows["MyFunction"]["device_self_ns"], 30000)
        self.assertEqual(rows["(unattributed)"]["device_self_ns"], 70000)

    def test_step_beside_the_frame_that_opens_it(self):
        rows = report("operators", synthetic("annotation_in_op"), "--group-by=stack").by("name")
        self.assertEqual(rows["MyFunction"]["call_stack"], "loop.py(3): train")

    def test_own_time_is_never_negative(self):
        """An op covered by its API call, with a range across its end: the parts overlap, and count once."""
        rows = report("operators", synthetic("covered_op")).by("name")
        self.assertEqual(rows["aten::op"]["host_total_ns"], 10000)
        self.assertEqual(rows["aten::op"]["host_self_ns"], 0)


class ExternalIdIsCorrelation(Case):
    """Many traces of 2022 to 2025 have the correlation id of a call as its external id: ops of that number are others. Time tells who launched."""

    TRACES = (("more", "puzzlers", "streams", "blocking.json.gz"), ("more", "puzzlers", "d2h_sync", "d2h_sync_final.json.gz"),
              ("more", "kineto_pairs", "switch_transformer_moe_a100", "trace.json.gz"),
              ("hta", "critical_path", "simple_add", "benchmark_result_493459_1694039959_trace.json.gz"))

    @staticmethod
    def innermost(path):
        """Name of the innermost op around the call that launched each piece of device work -> its time in ns; python's reading."""
        threads, calls, work = collections.defaultdict(list), {}, []
        for e in oracle.events(oracle.load(path)):
            args = e.get("args") or {}
            if e.get("ph") != "X":
                continue
            if e.get("cat") == "cpu_op":
                threads[e["tid"]].append(e)
            elif e.get("cat") == "cuda_runtime":
                assert str(args["External id"]) == str(args["correlation"])
                calls[args["correlation"]] = e
            elif e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
                work.append(e)
        around = {}
        for tid, ops in threads.items():
            marks = sorted([(o["ts"], 0, -o["dur"], o) for o in ops] + [(c["ts"], 1, 0, c) for c in calls.values() if c["tid"] == tid],
                           key=lambda m: m[:3])
            stack = []
            for ts, is_call, _, e in marks:
                while stack and stack[-1]["ts"] + stack[-1]["dur"] <= ts:
                    stack.pop()
                if is_call:
                    around[e["args"]["correlation"]] = stack[-1]["name"] if stack else None
                else:
                    stack.append(e)
        sums = collections.Counter()
        for w in work:
            sums[around.get(w["args"]["correlation"])] += round(w["dur"] * 1000)
        return sums

    def test_real(self):
        for trace in self.TRACES:
            path = oracle.data(*trace)
            want = self.innermost(path)
            want["(unattributed)"] = want.pop(None, 0)
            rows = report("operators", path).rows
            with self.subTest(trace=trace[-1]):
                self.assertEqual({r["name"]: r["device_self_ns"] for r in rows if r["device_self_ns"]}, {n: t for n, t in want.items() if t})

    def test_products_are_of_mm(self):
        rows = report("kernels", oracle.data(*self.TRACES[0]), "--group-by=op").rows
        self.assertEqual({r["operator"]: r["calls"] for r in rows if "sgemm" in r["name"]}, {"aten::mm": 1000})

    def planted(self, external):
        events = []
        for i, name in enumerate(("aten::a", "aten::b", "aten::c"), 1):
            events += [{"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 100 * i, "dur": 50, "args": {"External id": i}},
                       {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 100 * i + 10, "dur": 5,
                        "args": {"correlation": 4 - i, "External id": external(i)}},
                       {"ph": "X", "cat": "kernel", "name": f"k{i}", "pid": 0, "tid": 7, "ts": 100 * i + 30, "dur": i,
                        "args": {"correlation": 4 - i, "External id": external(i)}}]
        return json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()

    def test_planted(self):
        """As correlation ids they mean nothing; where one differs they are of ops, whatever the time is."""
        for external, want in ((lambda i: 4 - i, "abc"), (lambda i: [0, 3, 1, 2][i], "cab")):
            rows = report("kernels", "-", "--group-by=op", stdin=self.planted(external)).rows
            self.assertEqual("".join(r["operator"][-1] for r in sorted(rows, key=lambda r: r["name"])), want)

    def test_the_plugin_goes_by_the_id(self):
        rows = report("kernels", "-", "--group-by=op", "--compat=tb-plugin", stdin=self.planted(lambda i: 4 - i)).rows
        self.assertEqual("".join(r["operator"][-1] for r in sorted(rows, key=lambda r: r["name"])), "cba")


class CouldUseTensorCores(Case):
    """Of what an autograd function launched only its products: neither its all-reduces nor its elementwise kernels."""

    OPS = [("MyFunction", 0, 100, None, 0), ("aten::mm", 5, 10, "volta_sgemm_128x64_nn", 100), ("c10d::allreduce_", 20, 10, "ncclKernel_AllReduce_RING_LL_Sum_float", 300),
           ("aten::add", 40, 10, "vectorized_elementwise_kernel", 50), ("aten::linear", 60, 30, None, 0), ("aten::addmm", 62, 10, "volta_sgemm_32x32_tn", 7),
           ("aten::copy_", 75, 10, "unrolled_elementwise_kernel", 11)]

    def test_planted(self):
        events, at = [], 1000
        for i, (name, ts, dur, kernel, us) in enumerate(self.OPS, 1):
            ids = {"External id": i, "correlation": 100 + i}
            events.append({"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": {"External id": i}})
            if kernel:
                events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": ts + 1, "dur": 2, "args": ids})
                events.append({"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": at, "dur": us, "args": ids})
                at += us
        trace = json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Tesla V100-SXM2-16GB", "computeMajor": 7, "computeMinor": 0}],
                            "traceEvents": events}).encode()
        table = report("tensor-cores", "-", stdin=trace)
        r, = table.rows
        self.assertEqual((r["total_kernel_ns"], r["possible_ns"], r["non_tc_ns"], r["kernels"], r["tc_used"]), (468000, 107000, 107000, 2, "no"))
        self.assertIn("kernels 468000 ns = could use Tensor Cores 107000 (with 0, without 107000, unknown 0) + all others 361000", table.notes)
        found = {x["detector"]: x for x in oracle.Table(json.loads(oracle.run("advise", "-", "--format=json", stdin=trace)[1])).rows}
        self.assertEqual((found["no-tensor-cores"]["time_ns"], found["no-tensor-cores"]["events"]), (107000, 2))
        ops = report("summary", "-", stdin=trace).section("ops").by("ops")
        self.assertEqual((ops["could, but do not"]["gpu_ns"], ops["all others"]["gpu_ns"]), (107000, 361000))


class PythonLines(Case):
    def test_lines(self):
        table = report("operators", synthetic("python_lines"), "--group-by=line")
        self.assertEqual({r["python_line"]: (r["calls"], r["device_self_ns"], r["host_self_ns"]) for r in table.rows}, {
            "model.py(7): forward": (1, 11000, 25000), "layers.py(12): forward": (3, 23000, 40000 + 40000 + 15000),
            "(no line known)": (1, 0, 7000)})
        self.assertIn("they are nodes of autograd's graph, of which a call can have several, and count as calls, too", "\n".join(table.notes))

    def test_directions(self):
        table = report("operators", synthetic("python_lines"), "--group-by=line")
        parts = [f"{d}_{where}_self_ns" for where in ("device", "host") for d in ("forward", "backward", "optimizer")]
        self.assertEqual({r["python_line"]: tuple(r[p] for p in parts) for r in table.rows}, {
            "model.py(7): forward": (11000, 0, 0, 25000, 0, 0), "layers.py(12): forward": (0, 23000, 0, 40000, 40000 + 15000, 0),
            "(no line known)": (0, 0, 0, 7000, 0, 0)})

    def test_stacks(self):
        rows = report("operators", synthetic("python_lines"), "--group-by=stack").by("name")
        forward = "torch/nn/functional.py(1): linear;layers.py(12): forward;train.py(31): <module>"
        self.assertEqual(rows["aten::mm"]["call_stack"], forward)
        self.assertEqual(rows["MmBackward0"]["call_stack"], forward)
        self.assertEqual(rows["aten::t"]["call_stack"], forward)
        self.assertEqual(rows["aten::relu"]["call_stack"],
                         "<built-in method relu of type object>;/opt/lib/site-packages/einops/einops.py(5): reduce;"
                         "model.py(7): forward;train.py(30): <module>")
        self.assertIsNone(rows["aten::lost"]["call_stack"])

    def test_lines_add_up_to_operators(self):
        self.adds_up(os.path.join(oracle.ROOT, "tests", "data", "torch214_cpu_resnet.json.gz"))

    def test_lines_add_up_on_a_gpu(self):
        self.adds_up(oracle.data("tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz"))
        self.adds_up(oracle.data("tracelens", "mi300", "resnet_act_checkpoint.json.gz"))

    def test_directions_of_layers(self):
        """Device time of each line, forward and backward, is that of report layers, which adds up kernels."""
        path = oracle.data("tracelens", "mi300", "resnet_act_checkpoint.json.gz")
        lines, seen = report("operators", path, "--group-by=line").by("python_line"), 0
        for r in report("layers", path, "--group-by=line").rows:
            if not r["line"].startswith("("):
                self.assertEqual([lines[r["line"]][f"{d}_device_self_ns"] for d in ("forward", "backward")],
                                 [r["forward_gpu_ns"], r["backward_gpu_ns"]], r["line"])
                seen += 1
        self.assertEqual(seen, 3)

    def adds_up(self, trace):
        sums = []
        for r in report("operators", trace, "--group-by=line").rows:
            for where in ("host", "device"):
                parts = [r.get(f"{d}_{where}_self_ns") for d in ("forward", "backward", "optimizer")]
                if None not in parts:
                    self.assertEqual(sum(parts), r[where + "_self_ns"], r)
        for by in ("name", "line"):
            rows = report("operators", trace, f"--group-by={by}").rows
            sums.append([sum(r.get(c) or 0 for r in rows) for c in ("host_self_ns", "device_self_ns")])
        self.assertEqual(*sums)
        self.assertGreater(sums[0][0], 0)


class Recomputation(Case):
    """What the backward pass calls in Python: modules that run again have their own stacks, other frames stand upon the forward op's."""

    @staticmethod
    def own_modules(path, names):
        """(op, innermost module around it on its own thread) -> calls, from the trace itself."""
        threads = collections.defaultdict(list)
        for e in oracle.events(oracle.load(path)):
            if e.get("ph") == "X" and (e["name"].startswith("nn.Module: ") or e["name"] in names):
                threads[e["pid"], e["tid"]].append((e["ts"], -e["dur"], e["name"]))
        found = collections.Counter()
        for rows in threads.values():
            stack = []
            for start, dur, name in sorted(rows):
                while stack and stack[-1][0] <= start:
                    stack.pop()
                if name in names:
                    found[name, stack[-1][1] if stack else None] += 1
                else:
                    stack.append((start - dur, name[len("nn.Module: "):]))
        return found

    def test_real(self):
        path = oracle.data("tracelens", "mi300", "resnet_act_checkpoint.json.gz")
        names = ("aten::miopen_convolution", "aten::conv2d", "aten::batch_norm", "aten::relu_")
        want = self.own_modules(path, names)
        got = {(r["name"], r["module"]): r["calls"] for r in report("key-averages", path, "--group-by=module").rows if r["name"] in names}
        self.assertGreater(len(want), 60)
        self.assertEqual(got, dict(want))
        for by in ("module", "stack"):
            _, out, _ = oracle.run("export", "stacks", path, "--by=" + by)
            lines = [line for line in out.decode().split("\n") if ";aten::conv2d;" in line]
            self.assertTrue(lines)
            for line in lines:
                frames = line[:line.index(";aten::conv2d;")].split(";")
                self.assertRegex([f for f in frames if f.startswith("nn.Module:_")][-1], r"^nn.Module:_Conv2d_\d+$")
                self.assertFalse([f for f in frames if "ReluBackward0" in f])

    def test_frames_in_the_backward_pass(self):
        """A checkpointed module and a torch.autograd.Function, both run by nodes that belong to module Act."""
        def frame(name, ts, dur, tid):
            return {"ph": "X", "cat": "python_function", "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": {}}

        def op(name, ts, dur, tid, ext, **args):
            return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur,
                    "args": {"External id": ext, "Sequence number": 7, **args}}
        link = {"Fwd thread id": 1}
        trace = [frame("train.py(1): main", 0, 100, 1), frame("nn.Module: Act_0", 10, 20, 1), op("aten::relu", 12, 5, 1, 1),
                 op("ReluBackward0", 200, 100, 2, 2, **link),
                 frame("checkpoint.py(9): recompute", 210, 60, 2), op("aten::set_rng", 212, 3, 2, 3),
                 frame("nn.Module: Conv_0", 220, 40, 2), op("aten::conv2d", 225, 20, 2, 4), op("aten::mkldnn", 228, 8, 2, 5),
                 op("aten::threshold_backward", 280, 10, 2, 6)]
        for e in trace:
            if e["name"] in ("aten::set_rng", "aten::conv2d", "aten::mkldnn", "aten::threshold_backward"):
                del e["args"]["Sequence number"]
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            f.write(json.dumps({"schemaVersion": 1, "traceEvents": trace}))
            f.flush()
            rows = report("key-averages", f.name, "--group-by=module,stack").by("name")
            _, lines, _ = oracle.run("export", "stacks", f.name, "--metric=self_cpu_time_total")
            _, modules, _ = oracle.run("export", "stacks", f.name, "--by=module", "--metric=self_cpu_time_total")
        act = "nn.Module: Act_0;train.py(1): main"
        conv = "nn.Module: Conv_0;checkpoint.py(9): recompute"
        self.assertEqual({n: (r["module"], r["call_stack"]) for n, r in rows.items()}, {
            "aten::relu": ("Act_0", act), "ReluBackward0": ("Act_0", act), "aten::threshold_backward": ("Act_0", act),
            "aten::set_rng": ("Act_0", "checkpoint.py(9): recompute;" + act),
            "aten::conv2d": ("Conv_0", conv), "aten::mkldnn": ("Conv_0", conv)})
        self.assertIn(b"\nnn.Module:_Conv_0;aten::conv2d;aten::mkldnn 8000\n", b"\n" + modules)
        self.assertIn(b"\nnn.Module:_Conv_0;aten::conv2d 12000\n", b"\n" + modules)
        self.assertIn(b"\ncheckpoint.py(9):_recompute;nn.Module:_Conv_0;aten::conv2d 12000\n", b"\n" + lines)
        total = 100 + 100  # us: main and the node cover all
        for text in (lines, modules):
            self.assertEqual(sum(int(line.rsplit(b" ", 1)[1]) for line in text.splitlines()), total * 1000)


if __name__ == "__main__":
    oracle.main()
