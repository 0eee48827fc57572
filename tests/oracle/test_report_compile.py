"""`compile`: against sums over the events of real traces, and on planted runs by hand."""
import collections
import json
import os
import re
import tempfile
from fractions import Fraction

import labelled
import labelled_compile
import oracle
from oracle import Case, data


def h200(name):
    return os.path.join(oracle.ROOT, "tests", "data", "h200", name)


def ask(path, *args):
    code, out, err = oracle.run("report", "compile", path, "--steps=all", "--format=json", *args, timeout=300)
    if code:
        raise AssertionError(f"{path}: exit {code}: {err.decode(errors='replace')}")
    doc = json.loads(out)
    return oracle.Table(doc), {s["name"]: oracle.Table(s) for s in doc.get("sections", [])}


def ns(e):
    return round(Fraction(str(e["dur"])) * 1000)


def end(e):
    return Fraction(str(e["ts"])) + Fraction(str(e["dur"]))


class Trace:
    """What the oracle reads by itself: complete events, and the thread of each."""

    def __init__(self, path):
        self.events = [e for e in oracle.events(oracle.load(path)) if e.get("ph") == "X" and "dur" in e]
        self.device = [e for e in self.events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
        self.calls = {e["args"]["correlation"]: e for e in self.events if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e.get("args", {})}

    def named(self, name, cats=("cpu_op", "user_annotation")):
        return [e for e in self.events if e.get("cat") in cats and e["name"].startswith(name)]

    def launched_in(self, ranges):
        """Device work whose call lies in one of the ranges, by thread and time."""
        out = []
        for w in self.device:
            c = self.calls.get(w.get("args", {}).get("correlation"))
            if c and any(c["tid"] == r["tid"] and Fraction(str(r["ts"])) <= Fraction(str(c["ts"])) and end(c) <= end(r) for r in ranges):
                out.append(w)
        return out


class Real(Case):
    def test_parts_add_up(self):
        """Host time and device time of regions are those of their ranges; all device work is in one of the parts."""
        for path in (h200("gpt_bf16_compiled.json.gz"), h200("gpt_bf16_compiled_graphs.json.gz"), data("tracelens", "b200", "eager_trace.json.gz"),
                     data("multirank", "megatron_a100_tp8", "megatron_kineto_0.json.gz"), data("hta", "df_index_resolver", "df_index_resolver.json.gz")):
            with self.subTest(path):
                t, table = Trace(path), ask(path)[0]
                for r in table.rows:
                    ranges = [e for e in t.named(r["region"]) if e["name"] == r["region"]]
                    self.assertEqual(r["calls"], len(ranges))
                    self.assertAlmostEqual(r["host_ns"], sum(map(ns, ranges)), delta=2 * len(ranges))
                    self.assertEqual(r["host_ns"], r["own_ns"] + r["ops_ns"] + r["api_ns"] + r["eager_ns"] + r["compiler_ns"])
                    self.assertEqual(r["device_ns"], sum(map(ns, t.launched_in(ranges))))
                    self.assertEqual(r["device_ns"], r["generated_ns"] + r["called_ns"] + r["unfused_ns"])
                note = next(n for n in table.notes if n.startswith("device work "))
                total, *parts = map(int, re.findall(r"(?<= )-?\d+(?= |$)", note.replace(" ns", "")))
                self.assertEqual([total, total], [sum(parts), sum(map(ns, t.device))])

    def test_replayed_regions(self):
        """What a graph replays is of the compiled code that captured it: the k-th kernel is that of the k-th call of the capture. Its ranges took no time of the host."""
        folder = ("graphs", "vllm_decode_full")
        t, replay = Trace(data(*folder, "capture_traces", "graph_capture_rank_0.1773709742341309550.pt.trace.json.gz")), Trace(data(*folder, "graph_execution.json.gz"))
        ran = {e["args"]["correlation"] for e in t.device}
        begin, end = (t.named(x, ("cuda_runtime",))[0]["ts"] for x in ("hipStreamBeginCapture", "hipStreamEndCapture"))
        calls = sorted((e for e in t.events if e.get("cat") == "cuda_runtime" and re.search("Launch|Memcpy|Memset", e["name"]) and begin < e["ts"] < end and e["args"]["correlation"] not in ran), key=lambda e: e["ts"])
        launch = replay.named("hipGraphLaunch", ("cuda_runtime",))[0]["args"]["correlation"]
        work = sorted((e for e in replay.device if e["args"]["correlation"] == launch), key=lambda e: e["ts"])
        self.assertEqual(len(calls), len(work))
        want = collections.Counter()
        for r in t.named("## Call CompiledFxGraph"):
            want[r["name"]] += sum(ns(w) for c, w in zip(calls, work) if r["tid"] == c["tid"] and r["ts"] <= c["ts"] < r["ts"] + r["dur"])
        table = ask(data(*folder, "graph_execution.json.gz"))[0]
        self.assertEqual({r["region"]: (r["calls"], r["device_ns"], r["host_ns"]) for r in table.rows}, {n: (len([r for r in t.named(n) if r["name"] == n]), v, 0) for n, v in want.items()})

    def test_wrapper_and_guards(self):
        path = h200("gpt_bf16_compiled.json.gz")
        t, rows = Trace(path), ask(path)[0].by("region")
        lookups = t.named("TorchDynamo Cache Lookup")
        self.assertEqual(rows["Torch-Compiled Region: 0/0"]["guards_ns"], sum(map(ns, lookups)))
        self.assertIsNone(rows["CompiledFunctionBackward"]["guards_ns"])
        self.assertEqual(rows["CompiledFunctionBackward"]["forward"], "Torch-Compiled Region: 0/0")
        graphs = t.named("## Call CompiledFxGraph")
        inside = sum(r["wrapper_ns"] + r["ops_ns"] + r["api_ns"] for r in rows.values())
        self.assertAlmostEqual(inside, sum(map(ns, graphs)), delta=10)
        self.assertEqual({r["graph"] for r in rows.values()}, {e["name"].split()[3] for e in graphs})

    def test_generated(self):
        """By kernel: calls and device time by the name that the device's record has; the ops that its name names."""
        for path in (h200("gpt_bf16_compiled.json.gz"), h200("gpt_bf16_compiled_graphs.json.gz"), data("tracelens", "triton", "trace.json.gz"),
                     data("graphs", "vllm_decode_full", "graph_execution.json.gz")):
            with self.subTest(path):
                want, got = {}, {}
                for e in Trace(path).device:
                    if e["name"].startswith("triton_"):
                        n, total = want.get(e["name"], (0, 0))
                        want[e["name"]] = (n + 1, total + ns(e))
                sections = ask(path)[1]
                for r in sections["kernels"].rows:
                    n, total = got.get(r["kernel"], (0, 0))
                    got[r["kernel"]] = (n + r["calls"], total + r["device_ns"])
                    ops = (r["source_ops"] or "").split(", ")
                    self.assertEqual(r["kernel"].split("_fused_", 1)[1].rsplit("_", 1)[0] if r["source_ops"] else "", "_".join(ops))
                    self.assertEqual(ops, sorted(set(ops)))
                self.assertEqual(got, want)
                for r in sections["source_ops"].rows:
                    rows = [k for k in sections["kernels"].rows if r["op"] in (k["source_ops"] or "").split(", ")]
                    self.assertEqual((r["kernels"], r["calls"], r["kernels_ns"]), (len(rows), sum(k["calls"] for k in rows), sum(k["device_ns"] for k in rows)))

    def test_totals(self):
        """Not per step; and the layers say what compiled code took the modules of: all that Inductor's regions launched."""
        table = oracle.report("compile", h200("gpt_bf16_compiled.json.gz"))
        self.assertIn("times and calls are totals of the whole recording with 2 steps, and not per step", table.notes)
        compiled = sum(r["generated_ns"] + r["called_ns"] for r in table.rows)
        layers = oracle.report("layers", h200("gpt_bf16_compiled.json.gz"))
        said, = [n for n in layers.notes if "torch.compile" in n]
        all_ns = sum(r["total_gpu_ns"] for r in layers.rows)
        self.assertEqual(said, f"{100 * compiled / all_ns:.2f} % of the device work was launched by graphs of torch.compile, in which no module is recorded: it counts for the layer around the graph")
        self.assertFalse([n for n in oracle.report("layers", h200("gpt_bf16.json.gz")).notes if "torch.compile" in n])

    def test_replays_have_no_shapes_of_others(self):
        """The op around the replay of a graph has shapes of its own."""
        for r in ask(h200("gpt_bf16_compiled_graphs.json.gz"))[1]["kernels"].rows:
            self.assertIsNone(r.get("input_dims"))
            self.assertIsNone(r.get("argument_bytes"))

    def test_names_without_ops(self):
        """The device calls both kernels triton__0d1d2d3de: the ops that launch them have the names."""
        rows = ask(data("multirank", "megatron_a100_tp8", "megatron_kineto_0.json.gz"))[1]["kernels"].by("kernel")
        self.assertEqual({k: (r["calls"], r["kind"], r["source_ops"]) for k, r in rows.items()},
                         {"triton_poi_fused_add_0": (80, "pointwise", "add"), "triton_poi_fused_add_mul_tanh_0": (40, "pointwise", "add, mul, tanh")})

    def test_launches_not_recorded(self):
        table, sections = ask(data("more", "puzzlers", "fusion", "fusion.json.gz"))
        self.assertTrue(any("the device time of regions, is not known" in n for n in table.notes))
        self.assertEqual({r["device_ns"] for r in table.rows}, {None})
        self.assertEqual([r["count"] for r in sections["breaks"].rows], [1, 1])

    def test_without_compiled_code(self):
        code, _, err = oracle.run("report", "compile", h200("gpt_bf16.json.gz"))
        self.assertEqual(code, 1)
        self.assertIn(b"no code of torch.compile: the input has neither ranges of it (Torch-Compiled Region", err)


class Planted(Case):
    def ask(self, trace):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "planted.pt.trace.json.gz")
            trace.save(path)
            return ask(path)

    def test_one_call(self):
        """us: guards 10; the frame 7 by itself, with 4 of eager ops; the graph 20 of wrapper, 6 and 8 of ops and 2 x 5 of calls."""
        t = labelled.Trace()
        for _ in range(3):
            t.simple("TorchDynamo Cache Lookup", 10)
            with t.op("Torch-Compiled Region: 2/1", 7):
                with t.range("## Call CompiledFxGraph fabc ##", us=20):
                    with t.op("triton_poi_fused_add_mul_0", 6, dims=[[64, 2], [64, 2]], Input_type=["float", "c10::BFloat16"]):
                        t.kernel(30, "triton_poi_fused_add_mul_0")
                    with t.op("aten::mm", 8):
                        t.kernel(50, "gemm")
                t.launch("aten::item", 3, op_us=4)
            t.launch("aten::sgd", 11)
        table, sections = self.ask(t)
        r = table.rows[0]
        self.assertEqual({k: r[k] for k in r if k.endswith("_ns")},
                         {"device_ns": 3 * 83000, "generated_ns": 90000, "called_ns": 150000, "unfused_ns": 9000, "host_ns": 3 * 60000, "guards_ns": 30000,
                          "own_ns": 3 * 27000, "wrapper_ns": 60000, "ops_ns": 3 * 14000, "api_ns": 30000, "eager_ns": 27000, "compiler_ns": 0})
        self.assertEqual((r["calls"], r["graph"], len(table.rows)), (3, "fabc", 1))
        k = sections["kernels"].rows[0]
        self.assertEqual((k["source_ops"], k["calls"], k["argument_bytes"], k["input_dims"]), ("add, mul", 3, 64 * 2 * 6, "[[64, 2], [64, 2]]"))
        self.assertEqual({(w["op"], w["place"], w["device_ns"]) for w in sections["called"].rows}, {("aten::mm", "graph", 150000), ("aten::item", "outside", 9000)})
        self.assertEqual([(w["op"], w["device_ns"]) for w in sections["eager"].rows], [("aten::sgd", 33000)])

    def test_estimates(self):
        """What Inductor states of a kernel: 0.0123 GB and 4096 FLOPs a call, 30 us each."""
        t = labelled.Trace()
        for _ in range(3):
            with t.op("Torch-Compiled Region: 0/0", 7):
                with t.op("triton_poi_fused_add_mul_0", 6, kernel_num_gb=0.0123, kernel_flop=4096):
                    t.kernel(30, "triton_poi_fused_add_mul_0")
                with t.op("triton_poi_fused_sin_1", 6, kernel_num_gb=None):
                    t.kernel(10, "triton_poi_fused_sin_1")
        rows = self.ask(t)[1]["kernels"].by("kernel")
        a, b = rows["triton_poi_fused_add_mul_0"], rows["triton_poi_fused_sin_1"]
        self.assertEqual((a["estimated_bytes"], a["estimated_flops"], a["estimated_gb_per_s"]), (12300000, 4096, 410))
        self.assertEqual((b["estimated_bytes"], b["estimated_flops"], b["estimated_gb_per_s"]), (None, None, None))

    def test_nested(self):
        """After a graph break the rest of the frame is a region inside the first: each counts for itself."""
        table, sections = self.ask(labelled_compile.broken(stacks=True))
        self.assertEqual({r["region"]: (r["calls"], r["guards_ns"], r["generated_ns"]) for r in table.rows},
                         {"Torch-Compiled Region: 0/0": (2, 20000, 4000000), "Torch-Compiled Region: 1/0": (2, 20000, 4000000)})
        self.assertEqual(table.by("region")["Torch-Compiled Region: 0/0"]["unfused_ns"], 2 * 4 * 200000)
        self.assertEqual([(r["kind"], r["place"], r["count"]) for r in sections["breaks"].rows], [("graph break", "forward at model.py(12)", 2)])

    def test_compiler(self):
        table, sections = self.ask(labelled_compile.compiling(12000, when=(2,), stacks=True))
        self.assertEqual([(r["kind"], r["place"], r["count"], r["compiler_ns"]) for r in sections["breaks"].rows], [("compiler", "frame 0", 1, 12000000)])
        self.assertTrue(any("the compiler ran 1 time in this time, 12000000 ns" in n for n in table.notes))

    def test_lazy_backward(self):
        """A backward pass that is compiled at its first call: no time of the wrapper."""
        t = labelled.Trace()
        with t.op("CompiledFunctionBackward", 4):
            t.simple("entire_backward_compile", 5000)
            labelled_compile.graph(t, 100)
        r = self.ask(t)[0].rows[0]
        self.assertEqual((r["compiler_ns"], r["wrapper_ns"], r["own_ns"], r["ops_ns"], r["api_ns"]), (5000000, 2000, 6000, 5000, 5000))

    def test_no_breaks(self):
        """Where frames would show them, an empty table says that there are none."""
        self.assertEqual(oracle.report("compile", h200("gpt_bf16_compiled_graphs.json.gz")).section("breaks").rows, [])

    def test_breaks_unknown(self):
        table = self.ask(labelled.CASES["without_frames_of_several_calls"][1]())[0]
        self.assertTrue(any(n.startswith("whether there are graph breaks is not known: Python frames were not recorded") for n in table.notes))


if __name__ == "__main__":
    oracle.main()
