"""reports gemm, conv, attention and roofline: against TraceLens' tables of the same traces, identities between columns, and small traces
that state one rule each."""
import ast
import collections
import csv
import json
import math
import os
import re
import tempfile

import oracle
from oracle import Case, data, report

csv.field_size_limit(10**9)

H100 = ["Falconsai_nsfw_image_detection__1016002", "gaunernst_bert-small-uncased__1016001", "Qwen_Qwen1.5-0.5B-Chat__1016005"]
TRACES = [("tracelens/h100/%s.json.gz" % n, "tracelens/h100/%s_perf_report_csvs" % n) for n in H100] + [
    ("tracelens/mi300/resnet_act_checkpoint.json.gz", "tracelens/mi300/resnet_act_checkpoint_recompute_perf_report_csvs"),
    ("tracelens/triton/trace.json.gz", "tracelens/triton/trace_perf_report_csvs")]


def tracelens(folder, name):
    """Rows of one of its tables; none where it wrote none."""
    path = os.path.join(folder, name + ".csv")
    if not os.path.exists(path):
        return []
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


def param(row, name):
    return ast.literal_eval(row["param: " + name])


def params(text):
    return {k: int(v) for k, _, v in (p.partition("=") for p in text.split(",")) if v}


class Sum:
    """Calls, ns, shortest, longest, FLOPs of what has one key."""

    def __init__(self):
        self.calls = self.ns = self.flops = self.max = 0
        self.min = math.inf

    def theirs(self, r):
        n = int(r["name_count"])
        self.calls += n
        self.ns += float(r["Kernel Time (µs)_sum"]) * 1000
        self.flops += float(r["GFLOPS_first"]) * 1e9 * n
        self.min = min(self.min, float(r["Kernel Time (µs)_min"]) * 1000)
        self.max = max(self.max, float(r["Kernel Time (µs)_max"]) * 1000)

    def ours(self, r):
        self.calls += r["calls"]
        self.ns += r["total_gpu_ns"]
        self.flops += r["flops"]
        self.min, self.max = min(self.min, r["min_gpu_ns"]), max(self.max, r["max_gpu_ns"])


class TraceLens(Case):
    """Its times went through floats of microseconds: some ns a call are lost."""

    def agree(self, got, want, key, times=True):
        self.assertIn(key, got)
        g, w = got[key], want[key]
        self.assertEqual(g.calls, w.calls, key)
        self.assertTrue(math.isclose(g.flops, w.flops, rel_tol=1e-6), (key, g.flops, w.flops))
        if times:
            for a, b in ((g.ns, w.ns), (g.min, w.min), (g.max, w.max)):
                self.assertLessEqual(abs(a - b), 2 * w.calls, key)

    def sums(self, rows, key, add):
        out = collections.defaultdict(Sum)
        for r in rows:
            getattr(out[key(r)], add)(r)
        return out

    def test_gemm(self):
        seen = 0
        for trace, folder in TRACES:
            rows = tracelens(data(folder), "GEMM")
            want = self.sums(rows, lambda r: (r["name"], *(param(r, p) for p in "BMNK")), "theirs")
            got = self.sums(report("gemm", data(trace), "--compat=tracelens").rows, lambda r: (r["op"], r["b"], r["m"], r["n"], r["k"]), "ours")
            with self.subTest(trace=trace):
                self.assertEqual(set(got), set(want))
                for key in want:
                    self.agree(got, want, key)
                seen += len(want)
        self.assertGreaterEqual(seen, 15)

    def test_gemm_default_leaves_out_the_bias(self):
        """TraceLens counts M x N additions of addmm's bias; torch's flop counter, and so we, do not."""
        for trace, folder in TRACES:
            extra = sum(param(r, "M") * param(r, "N") * int(r["name_count"]) for r in tracelens(data(folder), "GEMM") if param(r, "bias"))
            total = [sum(r["flops"] or 0 for r in report("gemm", data(trace), *args).rows) for args in ([], ["--compat=tracelens"])]
            self.assertEqual(total[0] + extra, total[1], trace)

    def test_attention(self):
        """TraceLens names the outer op; the one inside, whose kernel it is, has the same shapes."""
        for trace, folder in TRACES:
            rows = tracelens(data(folder), "SDPA_fwd")
            if not rows:
                continue
            names = ("B", "H_Q", "H_KV", "N_Q", "N_KV", "d_h_qk", "d_h_v")
            want = self.sums(rows, lambda r: tuple(param(r, n) for n in names), "theirs")
            got = self.sums(report("attention", data(trace), "--compat=tracelens").rows,
                            lambda r: tuple(params(r["params"])[n] for n in ("B", "H", "Hkv", "Q", "K", "D", "V")), "ours")
            with self.subTest(trace=trace):
                self.assertEqual(set(got), set(want))
                for key in want:
                    self.agree(got, want, key)

    @staticmethod
    def conv_key(r):
        p = params(r["params"])
        return tuple(p[n] for n in "NCHWKRS")

    @staticmethod
    def conv_key_tl(r):
        x, w = param(r, "input_shape"), param(r, "filter_shape")
        return (*x, w[0], *w[2:])

    def test_conv_forward(self):
        for trace, folder in TRACES:
            rows = tracelens(data(folder), "CONV_fwd")
            if not rows:
                continue
            want = self.sums(rows, self.conv_key_tl, "theirs")
            ours = [r for r in report("conv", data(trace), "--compat=tracelens").rows if not r["op"].endswith("_backward")]
            got = self.sums(ours, self.conv_key, "ours")
            with self.subTest(trace=trace):
                self.assertEqual(set(got), set(want))
                for key in want:
                    self.agree(got, want, key, times=False)

    def spreads(self, kind, sheet, key_tl, key):
        """Rates call by call, of the rows that have one counterpart. A time that is half a nanosecond off moves the rate of a short call most."""
        seen = 0
        for trace, folder in TRACES:
            theirs, ours = collections.defaultdict(list), collections.defaultdict(list)
            for r in tracelens(data(folder), sheet):
                theirs[key_tl(r)].append(r)
            for r in report(kind, data(trace), "--compat=tracelens").rows if theirs else []:
                ours[key(r)].append(r)
            for k in theirs:
                if len(theirs[k]) > 1 or len(ours[k]) > 1:
                    continue
                want, got = theirs[k][0], ours[k][0]
                off = 0.5 / (float(want["Kernel Time (µs)_min"]) * 1000)
                for column, unit, to_ours in (("TFLOPS/s", "tflops_per_s", 1), ("TB/s", "gb_per_s", 1000)):
                    for ours_id, theirs_id in (("mean", "mean"), ("median", "median"), ("stddev", "std"), ("min", "min"), ("max", "max")):
                        w = float(want[f"{column}_{theirs_id}"] or 0) * to_ours
                        self.assertAlmostEqual(got[f"{ours_id}_{unit}"], w, delta=2 * off * float(want[f"{column}_max"]) * to_ours, msg=(trace, k, column, theirs_id))
                for ours_id, theirs_id in (("mean", "mean"), ("median", "median"), ("stddev", "std"), ("min", "min"), ("max", "max")):
                    self.assertAlmostEqual(got[f"{ours_id}_gpu_ns"], float(want[f"Kernel Time (µs)_{theirs_id}"] or 0) * 1000, delta=1.5, msg=(trace, k, theirs_id))
                seen += 1
        return seen

    def test_rates_of_calls(self):
        gemm = self.spreads("gemm", "GEMM", lambda r: (r["name"], *(param(r, p) for p in "BMNK")), lambda r: (r["op"], r["b"], r["m"], r["n"], r["k"]))
        names = ("B", "H_Q", "H_KV", "N_Q", "N_KV", "d_h_qk", "d_h_v")
        attention = self.spreads("attention", "SDPA_fwd", lambda r: tuple(param(r, n) for n in names),
                                 lambda r: tuple(params(r["params"])[n] for n in ("B", "H", "Hkv", "Q", "K", "D", "V")))
        self.assertGreaterEqual((gemm, attention), (12, 3))

    def test_conv_times(self):
        """What differs in time: TraceLens leaves ROCm's memsets out; with a bias, its op holds an aten::add_ with a model of its own."""
        trace, folder = TRACES[3]
        rows = {k: tracelens(data(folder), k) for k in ("CONV_fwd", "CONV_bwd")}
        ours = report("conv", data(trace)).rows
        events = oracle.events(oracle.load(data(trace)))
        ops = {e["args"]["External id"]: e["name"] for e in events if e.get("cat") == "cpu_op" and "External id" in e["args"]}
        memset = collections.Counter()
        for e in events:
            if e.get("cat") == "gpu_memset":
                memset[ops.get(e["args"].get("External id"))] += round(e["dur"] * 1000)
        for table, op in (("CONV_fwd", "aten::miopen_convolution"), ("CONV_bwd", "aten::convolution_backward")):
            want = sum(float(r["Kernel Time (µs)_sum"]) * 1000 for r in rows[table])
            got = sum(r["total_gpu_ns"] for r in ours if r["op"] == op)
            self.assertGreater(memset[op], 0)
            self.assertLessEqual(abs(got - want - memset[op]), 200, op)
        trace, folder = TRACES[0]
        want = sum(float(r["Kernel Time (µs)_sum"]) * 1000 for r in tracelens(data(folder), "CONV_fwd"))
        got = sum(r["total_gpu_ns"] for r in report("conv", data(trace)).rows)
        bias = [e for e in oracle.events(oracle.load(data(trace))) if e.get("cat") == "kernel" and round(want - got) == round(e["dur"] * 1000)]
        self.assertTrue(bias and all("CUDAFunctor_add" in e["name"] for e in bias), want - got)

    def test_conv_backward(self):
        """Both gradients, 4 products; TraceLens leaves the gradient of the first layer's input in, which was not asked for."""
        trace, folder = TRACES[3]
        want = self.sums(tracelens(data(folder), "CONV_bwd"), self.conv_key_tl, "theirs")
        ours = [r for r in report("conv", data(trace)).rows if r["op"].endswith("_backward")]
        got = self.sums(ours, self.conv_key, "ours")
        self.assertEqual(set(got), set(want))
        different = [k for k in want if not math.isclose(got[k].flops, want[k].flops, rel_tol=1e-6)]
        self.assertEqual(different, [(10, 3, 224, 224, 64, 7, 7)])
        self.assertTrue(math.isclose(2 * got[different[0]].flops, want[different[0]].flops, rel_tol=1e-6))
        self.assertEqual({k: v.calls for k, v in got.items()}, {k: v.calls for k, v in want.items()})


def close(a, b):
    return math.isclose(a, b, rel_tol=1e-9)


class Identities(Case):
    """Columns follow from one another, and the parts of the note add up, on every trace and in every grouping."""

    def note(self, t):
        return [int(w) for w in re.findall(r" (\d+)(?![.\d])", t.notes[0])]

    def check_rows(self, t, whole):
        for r in t.rows:
            self.assertTrue(close(r["total_pct"], 100 * r["total_gpu_ns"] / whole), r)
            if r["flops"] is not None and r["bytes"] and r["flops_per_byte"] is not None:
                self.assertTrue(close(r["flops_per_byte"], r["flops"] / r["bytes"]), r)
                if r["total_gpu_ns"] == 0:  # by a trace that counts whole microseconds
                    self.assertIsNone(r["tflops_per_s"])
                    continue
                self.assertTrue(close(r["tflops_per_s"] * 1000, r["flops_per_byte"] * r["gb_per_s"]), r)

    def test_sums(self):
        for trace, _ in TRACES + [("tb_plugin/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz", None)]:
            path = data(trace)
            gpu = [e for e in oracle.events(oracle.load(path)) if e.get("cat", "").lower() in ("kernel", "memcpy", "memset", "gpu_memcpy", "gpu_memset")]
            whole = sum(round(e["dur"] * 1000) for e in gpu if e["ph"] == "X")
            modelled = set()
            for args in ([], ["--group-by=shape"], ["--group-by=kernel"]):
                with self.subTest(trace=trace, args=args):
                    try:
                        t = report("roofline", path, *args)
                    except AssertionError as e:  # no shapes were recorded
                        self.assertIn("record_shapes=True", str(e))
                        self.assertIn(f"device work {whole} ns = ", str(e))
                        continue
                    numbers = self.note(t)
                    self.assertEqual(numbers[0], whole)
                    self.assertEqual(sum(numbers[1:4]), whole)
                    self.assertEqual(sum(r["total_gpu_ns"] for r in t.rows), numbers[1])
                    self.check_rows(t, whole)
                    modelled.add(numbers[1])
            self.assertLessEqual(len(modelled), 1)

    def test_same_in_all_groupings(self):
        path = data("tracelens", "mi300", "resnet_act_checkpoint.json.gz")
        by = {g: report("roofline", path, "--group-by=" + g).rows for g in ("op", "shape", "kernel")}
        for column in ("flops", "bytes"):
            sums = {g: sum(r[column] or 0 for r in rows) for g, rows in by.items()}
            self.assertEqual(len(set(sums.values())), 1, (column, sums))
        self.assertTrue(close(*(sum(r["attainable_ns"] or 0 for r in by[g]) for g in ("op", "shape"))))
        gains = [r["gain_ns"] for r in by["op"] if r["gain_ns"] is not None]
        self.assertEqual(gains, sorted(gains, reverse=True))

    def test_roofline_of_equal_calls(self):
        """By shape all calls are alike: attainable is the longer of the two times, summed."""
        rows = report("roofline", data("tracelens", "h100", H100[0] + ".json.gz"), "--group-by=shape").rows
        bandwidth, peaks, seen = 3350e9, {"bfloat16": 989.4e12, "float32": 66.9e12}, 0
        for r in rows:
            if r["op"] not in ("aten::addmm", "aten::_flash_attention_forward"):
                continue
            compute, memory = r["flops"] / peaks[r["dtype"]] * 1e9, r["bytes"] / bandwidth * 1e9
            self.assertTrue(math.isclose(r["attainable_ns"], max(compute, memory), rel_tol=1e-3), r)
            self.assertTrue(math.isclose(r["peak_pct"], 100 * compute / r["total_gpu_ns"], rel_tol=1e-3), r)
            self.assertTrue(math.isclose(r["bandwidth_pct"], 100 * memory / r["total_gpu_ns"], rel_tol=1e-3), r)
            self.assertTrue(close(r["gain_ns"], r["total_gpu_ns"] - r["attainable_ns"]), r)
            self.assertTrue(close(r["efficiency_pct"], 100 * r["attainable_ns"] / r["total_gpu_ns"]), r)
            seen += 1
        self.assertEqual(seen, 5)

    def test_layers_have_the_flops(self):
        """What report layers gives to layers and to rows in parentheses is all that the models say."""
        path = data("tracelens", "mi300", "resnet_act_checkpoint.json.gz")
        for args in ([], ["--group-by=type"], ["--group-by=line"]):
            rows = report("layers", path, *args).rows
            self.assertEqual(sum(r["flops"] or 0 for r in rows), sum(r["flops"] or 0 for r in report("roofline", path).rows))


GEMM = "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32_stage4_warpsize2x2x1_tensor16x8x16_kernel"
SGEMM = "ampere_sgemm_128x64_tn"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(int)"


class ByName(Case):
    def test_kernels_without_shapes(self):
        """A trace without shapes: rows by the kernels' names, with time and Tensor Cores; counted from the events. Products under a convolution
        are convolutions."""
        path = data("hta/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz")
        events = oracle.events(oracle.load(path))
        ops = {e["args"]["External id"]: e["name"] for e in events if e.get("cat") == "cpu_op"}
        want = {"gemm": collections.Counter(), "conv": collections.Counter()}
        for e in events:
            op = ops.get(e["args"].get("External id"), "") if e.get("cat") == "kernel" else ""
            if e.get("cat") == "kernel" and re.match("volta_sgemm_|cublas|gemv", e["name"]):
                want["conv" if "conv" in op else "gemm"][e["name"]] += round(e["dur"] * 1000)
        for name in want:
            rows = [r for r in report(name, path).rows if r["params"] in want[name]]
            got = collections.Counter()
            for r in rows:
                got[r["params"]] += r["total_gpu_ns"]
                self.assertIsNone(r["flops"])
                self.assertEqual(r["tensor_cores"], "no")
            self.assertEqual(got, want[name])
            self.assertTrue(want[name], name)

    def test_all_that_is_listed_adds_up(self):
        path = data("hta/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz")
        table = report("conv", path)
        words = next(n for n in table.notes if n.startswith("device work")).replace(";", "").split()
        self.assertEqual(sum(r["total_gpu_ns"] for r in table.rows), int(words[words.index("listed") + 1]))
        self.assertEqual(int(words[2]), sum(int(words[i]) for i, _ in enumerate(words) if i > 3 and words[i].isdigit()))


class Linked(Case):
    def test_convolutions_without_values(self):
        """A trace of 2021 has shapes, but neither stride nor padding: the result of a convolution has the size of its gradient, and the gradient of a
        weight the size of the weight that the op around has. Counted from the sizes of the backward ops: three convolutions each, two of
        the first, whose input needs no gradient."""
        path = data("tb_plugin/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz")
        want = 0
        for e in oracle.events(oracle.load(path)):
            if e.get("name") == "aten::cudnn_convolution_backward":
                (n, c, _, _), (_, k, p, q), (_, per_group, r, s) = e["args"]["Input Dims"][:3]
                want += 2 * n * k * p * q * per_group * r * s * (2 if c == 3 else 3)
        rows = report("conv", path, "--limit=0").rows
        self.assertEqual(sum(r["flops"] for r in rows), want)
        self.assertEqual({r["op"] for r in rows if r["flops"]}, {"aten::cudnn_convolution", "aten::cudnn_convolution_backward_input",
                                                                  "aten::cudnn_convolution_backward_weight"})


class Rules(Case):
    def setUp(self):
        super().setUp()
        self.events, self.n, self.sms = [], 0, 0

    def op(self, name, dims, types, *kernels, concrete=None):
        """An op and its kernels: (name, us)."""
        self.n += 1
        ts, base = 1000 * self.n, {"pid": 1, "tid": 1, "ph": "X"}
        self.events.append({**base, "cat": "cpu_op", "name": name, "ts": ts, "dur": 500,
                            "args": {"External id": self.n, "Input Dims": dims, "Input type": types,
                                     "Concrete Inputs": concrete or [""] * len(dims)}})
        for i, (kernel, us) in enumerate(kernels):
            corr = 100 * self.n + i
            self.events.append({**base, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": ts + 1 + i, "dur": 1,
                                "args": {"External id": self.n, "correlation": corr}})
            self.events.append({"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": ts + 5 + 300 * i, "dur": us,
                                "args": {"External id": self.n, "correlation": corr, "device": 0, "stream": 7}})

    def report(self, name, *args, gpu="NVIDIA A100-SXM4-80GB"):
        f = tempfile.NamedTemporaryFile("w", suffix=".json", delete=False)
        self.addCleanup(os.unlink, f.name)
        with f:
            f.write(json.dumps({"deviceProperties": [{"id": 0, "name": gpu, "numSms": self.sms}] if gpu else [], "traceEvents": self.events}))
        return report(name, f.name, *args)

    def mm(self, m, n, k, us, kernel=GEMM, dtype="c10::Half"):
        self.op("aten::mm", [[m, k], [k, n]], [dtype, dtype], (kernel, us))

    def test_compute_bound(self):
        """2 x 4096^3 FLOPs at 312 TFLOP/s are 440.51 us."""
        self.mm(4096, 4096, 4096, 881.02)
        r, = self.report("roofline").rows
        self.assertEqual((r["flops"], r["bytes"], r["bound"]), (2 * 4096**3, 3 * 2 * 4096**2, "compute"))
        self.assertAlmostEqual(r["attainable_ns"], 2 * 4096**3 / 312e12 * 1e9, places=3)
        self.assertAlmostEqual(r["efficiency_pct"], 50, places=1)
        self.assertAlmostEqual(r["peak_pct"], 50, places=1)
        self.assertIn("float16 on Tensor Cores of A100-SXM4-80GB, 312 TFLOP/s", r["peak"])
        self.assertNotIn("over_peak", r)

    def test_memory_bound(self):
        self.op("aten::add", [[1 << 24], [1 << 24], []], ["float", "float", "Scalar"], (ADD, 200))
        r, = self.report("roofline").rows
        self.assertEqual((r["bytes"], r["bound"], r["tensor_cores"]), (3 * 4 << 24, "memory", "no"))
        self.assertAlmostEqual(r["attainable_ns"], (3 * 4 << 24) / 2039, places=3)

    def copy(self, us):
        """An aten::copy_ of 1 MiB between float tensors that a copy engine does."""
        self.op("aten::copy_", [[1 << 18], [1 << 18], []], ["float", "float", "Scalar"], ("Memcpy HtoD (Pageable -> Device)", us))
        self.events[-1].update(cat="gpu_memcpy")
        self.events[-1]["args"]["bytes"] = 1 << 20

    def test_copies_have_their_own_row(self):
        """Copies over the link say nothing about the memory's bandwidth: all columns of the kernels' row are of the kernels."""
        kernel = "void at::native::elementwise_kernel<128, 2, at::native::direct_copy_kernel_cuda>(int)"
        size = 2 * 4 << 22
        for us in (750, 250):
            self.copy(us)
        for _ in range(4):
            self.op("aten::copy_", [[1 << 22], [1 << 22], []], ["float", "float", "Scalar"], (kernel, 40))
        by = self.report("roofline").by("done_by")
        self.assertEqual(set(by), {"kernels", "copy engines"})
        r = by["kernels"]
        self.assertEqual((r["op"], r["calls"], r["total_gpu_ns"], r["bytes"], r["kernels"]), ("aten::copy_", 4, 160000, 4 * size, kernel))
        attainable = 4 * size / 2039
        self.assertTrue(close(r["gb_per_s"], 4 * size / 160000), r)
        self.assertTrue(close(r["bandwidth_pct"], 100 * r["gb_per_s"] / 2039), r)
        self.assertTrue(close(r["attainable_ns"], attainable) and close(r["gain_ns"], 160000 - attainable) and close(r["efficiency_pct"], 100 * attainable / 160000), r)
        r = by["copy engines"]
        self.assertEqual((r["op"], r["calls"], r["total_gpu_ns"], r["bytes"]), ("aten::copy_", 2, 1000000, 2 * 2 << 20))
        self.assertTrue(close(r["gb_per_s"], (2 * 2 << 20) / 1000000), r)
        for column in ("bandwidth_pct", "attainable_ns", "gain_ns", "gain_pct", "efficiency_pct", "bound", "peak"):
            self.assertIsNone(r[column], column)
        rows = self.report("roofline", "--group-by=shape").rows
        self.assertEqual(sorted((r["done_by"], r["total_gpu_ns"]) for r in rows), [("copy engines", 1000000), ("kernels", 160000)])
        self.assertNotIn("done_by", self.report("roofline", "--group-by=kernel").rows[0])
        r, = self.report("roofline", "--compat=tracelens").rows
        self.assertEqual((r["calls"], r["total_gpu_ns"]), (6, 1160000))

    def test_latency(self):
        self.mm(16, 16, 16, 5)
        r, = self.report("roofline").rows
        self.assertEqual(r["bound"], "latency")

    def test_latency_of_few_blocks(self):
        """A loss of one block takes long, and uses one SM of 108: neither memory nor compute holds it up. Of 10 blocks, too, but not of 11; and unknown blocks say nothing."""
        self.sms = 108
        for blocks, bound in ((1, "latency"), (10, "latency"), (11, "memory"), (108, "memory"), (None, "memory")):
            self.events.clear()
            self.op("aten::nll_loss_forward", [[4096, 8192], [4096], [], [], []], ["c10::BFloat16", "long int", "", "Scalar", "Scalar"], ("nll_loss_forward_reduce_cuda_kernel_2d", 200))
            if blocks:
                self.events[-1]["args"].update(grid=[blocks, 1, 1], block=[32, 1, 1])
            r, = self.report("roofline").rows
            self.assertEqual((r["bound"], r["efficiency_pct"] < 10), (bound, True), blocks)

    def test_unknown_gpu_abstains(self):
        self.mm(4096, 4096, 4096, 500)
        for gpu, text in (("NVIDIA Imaginary 9000", "the list of GPUs does not have 'NVIDIA Imaginary 9000'"), (None, "does not name the GPU")):
            for name in ("roofline", "gemm"):
                t = self.report(name, gpu=gpu)
                r, = t.rows
                for column in ("attainable_ns", "efficiency_pct", "gain_ns", "gain_pct", "bound", "peak_pct", "bandwidth_pct", "peak", "over_peak"):
                    self.assertIsNone(r.get(column), column)
                self.assertEqual(r["flops"], 2 * 4096**3)
                self.assertTrue(any(text in n for n in t.notes), t.notes)
                self.assertFalse(any("100 %" in n and "cannot be" in n for n in t.notes))

    def test_stated_gpu(self):
        """--gpu names it where the input does not, or says it wrong."""
        self.mm(4096, 4096, 4096, 500)
        with_name = self.report("roofline").rows
        for gpu in ("NVIDIA Imaginary 9000", None):
            self.assertEqual(self.report("roofline", "--gpu=A100-SXM4-80GB", gpu=gpu).rows, with_name)
        code, _, err = oracle.run("report", "roofline", os.path.join(oracle.ROOT, "tests", "data", "torch214_cpu_resnet.json.gz"), "--gpu=A100")
        self.assertEqual(code, 2)
        self.assertIn(b"several GPUs have this in their name: A100-SXM4-40GB, ", err)

    def test_more_than_a_peak(self):
        """Named with its denominator, not capped."""
        self.mm(4096, 4096, 4096, 220.255)
        for name in ("roofline", "gemm"):
            t = self.report(name)
            r, = t.rows
            self.assertAlmostEqual(r["peak_pct"], 200, places=1)
            self.assertRegex(r["over_peak"], r"^200\.0 % of float16 on Tensor Cores of A100-SXM4-80GB, 312 TFLOP/s$")
            self.assertTrue(any(n.startswith("cannot be: 1 row comes out beyond 100 % of a peak, most so aten::mm with 200.0 %") for n in t.notes), t.notes)
        r, = self.report("roofline").rows
        self.assertGreater(r["efficiency_pct"], 199)
        self.assertEqual((r["bound"], r["gain_ns"], r["gain_pct"]), ("over peak", None, None))

    def test_more_than_the_bandwidth(self):
        self.op("aten::add", [[1 << 20], [1 << 20], []], ["float", "float", "Scalar"], (ADD, 3))
        t = self.report("roofline")
        self.assertRegex(t.rows[0]["over_peak"], r"^205\.\d % of the memory bandwidth of A100-SXM4-80GB, 2039 GB/s$")
        self.assertGreater(t.rows[0]["bandwidth_pct"], 200)
        self.assertEqual((t.rows[0]["bound"], t.rows[0]["gain_ns"]), ("over peak", None))
        self.assertEqual([n.split(",")[0] for n in t.notes if n.startswith("cannot be")],
                         ["cannot be: 1 row comes out beyond 100 % of the memory bandwidth"])

    def test_eligible_but_not_used(self):
        """float16 without Tensor Cores is compared with them; float32 only where it used them."""
        self.mm(512, 512, 500, 100, kernel="ampere_fp16_sgemm_fp16_128x32_tn")
        self.mm(512, 512, 512, 100, kernel=SGEMM, dtype="float")
        half, single = sorted(self.report("gemm").rows, key=lambda r: r["dtype"])
        self.assertEqual((half["dtype"], half["tensor_cores"], half["tc_eligible"], half["tc_hint"]), ("float16", "no", "yes", "K=500: not a multiple of 8"))
        self.assertIn("float16 on Tensor Cores", half["peak"])
        self.assertEqual((single["tensor_cores"], single["tc_eligible"]), ("no", "unknown"))
        self.assertIn("TF32", single["tc_hint"])
        self.assertIn("float32 on ordinary cores", single["peak"])
        older = [r for r in self.report("gemm", gpu="Tesla V100-SXM2-16GB").rows if r["dtype"] == "float32"]
        self.assertRegex(older[0]["tc_hint"], "^float32: .* 16 bits and less$")

    def test_several_kernels(self):
        """All time of the op, FLOPs once; by kernel the helper carries none."""
        self.op("aten::mm", [[256, 64], [64, 256]], ["c10::Half"] * 2, (GEMM, 40), ("void splitKreduce_kernel<32, 16, int, __half>(int)", 10))
        r, = self.report("gemm").rows
        self.assertEqual((r["calls"], r["total_gpu_ns"], r["flops"], r["tensor_cores"]), (1, 50000, 2 * 256 * 256 * 64, "yes"))
        self.assertTrue(r["kernels"].startswith(GEMM + "; void splitK"))
        by = self.report("roofline", "--group-by=kernel").by("kernel")
        self.assertEqual([by[k]["flops"] for k in sorted(by)], [2 * 256 * 256 * 64, None])

    def test_unknown_is_not_zero(self):
        self.op("mylib::secret_op", [[4, 4]], ["float"], ("secret", 10))
        self.mm(64, 64, 64, 5)
        t = self.report("roofline")
        self.assertEqual([r["op"] for r in t.rows], ["aten::mm"])
        self.assertEqual(t.notes[1], "the roofline leaves out 10000 ns = ops without a model 10000 + work of no op 0 + ops with unknown FLOPs, bytes or peak 0; 66.7 % of device work")
        self.assertEqual(t.notes[0], "device work 15000 ns = ops with a model 5000 + ops without 10000 + unattributed 0; 33.33 % have a model")

    def test_one_name_three_times(self):
        """Rows that only the direction tells apart show it, however narrow the terminal."""
        path = data("tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz")
        rows = [r for r in report("roofline", path).rows if r["op"] == "aten::add_"]
        self.assertEqual(sorted(r["direction"] for r in rows), ["backward", "forward", "optimizer"])
        for width in (72, 80, 100, 120, 160):
            text = oracle.run("report", "roofline", path, f"--width={width}")[1].decode()
            shown = [line for line in text.splitlines() if line.startswith("aten::add_ ")]
            self.assertEqual(len(shown), 3)
            self.assertEqual({d for d in ("backward", "forward", "optimizer") if any(f" {d} " in line for line in shown)}, {"backward", "forward", "optimizer"}, width)
            self.assertIn("Gain", text)

    def test_no_gain_below_zero(self):
        paths = [p for pattern in ("tb_plugin/*/*.gz", "more/kineto_pairs/*/*.json.gz", "pyprof/*/net.sql*", "verdicts/*.json.gz", "tracelens/**/*.json.gz")
                 for p in oracle.data_glob(pattern)]
        over = 0
        for path in paths:
            code, out, _ = oracle.run("report", "roofline", path, "--format=json")
            for r in oracle.Table(json.loads(out)).rows if code == 0 else ():
                with self.subTest(trace=os.path.basename(path), op=r["op"]):
                    beyond = any((r[c] or 0) > 100.0001 for c in ("peak_pct", "bandwidth_pct", "efficiency_pct"))
                    over += beyond
                    self.assertEqual(r["bound"] == "over peak", beyond and r["efficiency_pct"] is not None)
                    self.assertTrue(r["gain_ns"] is None or (r["gain_ns"] >= 0 and not beyond), r)
        if paths:
            self.assertGreater(over, 3)

    def test_nothing_to_show(self):
        self.mm(64, 64, 64, 5)
        with self.assertRaisesRegex(AssertionError, "the run has no convolution: .* = ops with another model 5.000 us"):
            self.report("conv")
        with self.assertRaisesRegex(AssertionError, "no fused attention kernel was found; `opscope advise` says whether attention runs unfused; device work 5.000 us = "):
            self.report("attention")
        self.events = []
        self.op("aten::relu", [[1024, 1024]], ["float"], ("elementwise_kernel", 5))
        with self.assertRaisesRegex(AssertionError, "the run has no matrix product: "):
            self.report("gemm")
        self.events = []
        self.op("aten::relu", [], [], ("elementwise_kernel", 5))  # no op says its shapes
        with self.assertRaisesRegex(AssertionError, "no kernel belongs to a matrix product with recorded shapes.*to record them: profile"):
            self.report("gemm")


if __name__ == "__main__":
    oracle.main()
