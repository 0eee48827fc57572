"""`report costs` against TraceLens' figures of the same traces, and what of it holds for every trace."""
import ast
import collections
import csv
import gzip
import json
import math
import os
import re

import oracle
from oracle import Case, report

# Classes of op ("op category" of the unified sheet, or the sheet's own name) in which it models something else than GEMM, convolution,
# SDPA, elementwise, reduction and normalisation: what those rows would need is not in the trace. docs/compat.md.
OTHER_CLASSES = {"triton", "MoE_unfused"}

# Sheets that TraceLens writes per class of op, of its ops as such.
SHEETS = ("GEMM", "CONV_fwd", "CONV_bwd", "SDPA_fwd", "BinaryElementwise", "UnaryElementwise", "Reduce_fwd", "Reduce_bwd",
          "Normalization", "InferenceAttention_fwd", "RMSNorm_fwd", "RoPE_fwd")

# Rows that cannot agree; docs/compat.md says why.
KNOWN = {
    "pseudo_op::moe_triton_unfused_down",                 # calls that TraceLens makes up of kernels
    "pseudo_op::moe_triton_unfused_up",
    "triton_poi_fused__to_copy_1",
    "triton_poi_fused_constant_pad_nd_moe_forward_0",
    "triton_poi_fused__unsafe_view_mul_silu_2",           # generated kernels: what they compute is not among their arguments
    "triton_poi_fused__unsafe_view_add_3",
    "triton_red_fused__unsafe_view_add_mean_mul_pow_rsqrt_1",
    "triton_red_fused_add_mean_mul_pow_rsqrt_0",
}

PLACES = ("tracelens", "verdicts", "more/tracelens", "graphs")


def fold(x):
    """Lists and tuples alike."""
    return tuple(fold(y) for y in x) if isinstance(x, (list, tuple)) else str(x)


def key_of(name, dims, types, concrete):
    if name.startswith("sglang_profiler::"):
        name = re.sub(r"_\d+$", "", name)  # TraceLens leaves out the number
    return name, fold(dims), fold(types), fold(concrete)


def sheets():
    """(folder, trace) of every TraceLens report."""
    for path in [p for place in PLACES for p in oracle.data_glob(place + "/**/unified_perf_summary.csv")]:
        folder = os.path.dirname(path)
        for tail in ("_recompute_perf_report_csvs", "_perf_report_csvs"):
            if folder.endswith(tail):
                yield folder, folder[:-len(tail)] + ".json.gz"
                break
        else:
            yield folder, next(p for p in oracle.data_glob(os.path.relpath(os.path.dirname(folder), oracle.DATA) + "/*.json.gz"))


def number(text):
    """None where TraceLens does not know."""
    return float(text) if text else None


def rows_of(folder):
    for name in SHEETS + ("unified_perf_summary",):
        path = os.path.join(folder, name + ".csv")
        if not os.path.exists(path):
            continue
        first = "" if name == "unified_perf_summary" else "_first"
        with open(path, newline="") as f:
            for r in csv.DictReader(f):
                if not r["GFLOPS" + first]:
                    continue
                key = key_of(r["name"], *(ast.literal_eval(r[c + first]) for c in ("Input Dims", "Input type", "Concrete Inputs")))
                yield r.get("op category", name), key, float(r["GFLOPS" + first]), number(r["Data Moved (MB)" + first])


def ours(trace, compat):
    out = {}
    for r in report("costs", trace, *(["--compat=tracelens"] if compat else [])).rows:
        if compat:
            parts = [json.loads(r[c]) if r[c] else [] for c in ("input_dims", "input_type", "concrete_inputs")]
            out[key_of(r["name"], *parts)] = (r["gflops"], r["data_moved_mb"])
    return out


def near(a, b):
    if a is None or b is None:
        return a is b
    return math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-12)


class TraceLens(Case):
    def test_rows(self):
        agree = collections.Counter()
        total = collections.Counter()
        bad = []
        for folder, trace in sheets():
            got = ours(trace, True)
            for kind, key, gflops, mb in rows_of(folder):
                total[kind] += 1
                have = got.get(key)
                if have and near(have[0], gflops) and near(have[1], mb):
                    agree[kind] += 1
                else:
                    bad.append((kind, os.path.basename(trace), key[0], key[1], (gflops, mb), have))
        if not total:
            self.skipTest("no TraceLens reports")
        for kind in sorted(total):
            print(f"# {kind}: {agree[kind]} of {total[kind]} rows agree", flush=True)
        for b in bad:
            print("#", *b, flush=True)
        self.assertEqual({b[2] for b in bad}, KNOWN)
        self.assertLessEqual({b[0] for b in bad}, OTHER_CLASSES)
        self.assertGreaterEqual(sum(n for kind, n in total.items() if kind not in OTHER_CLASSES), 630)

    NORMS = {"aten::batch_norm", "aten::native_batch_norm", "aten::miopen_batch_norm", "aten::miopen_batch_norm_backward",
             "aten::layer_norm", "aten::native_layer_norm", "aten::native_layer_norm_backward", "aten::group_norm",
             "aten::native_group_norm", "aten::native_group_norm_backward", "aten::instance_norm", "aten::_fused_rms_norm",
             "aten::_fused_rms_norm_backward"}
    RMS_NORMS = {"aiter::rmsnorm", "aiter::rms_norm", "aiter::add_rmsnorm", "aiter::rmsnorm2d_fwd_with_add_ck"}
    # Where the default is another figure, and of what; docs/compat.md has the reasons.
    DIFFERENT = {
        "flops": {"aten::copy_", "aten::addmm", "vllm::rocm_unquantized_gemm", "sgl_kernel::silu_and_mul", "aten::linalg_norm",
                  "aten::_scaled_dot_product_flash_attention", "aten::convolution_backward"} | NORMS | RMS_NORMS,
        "bytes": {"aten::mean", "aten::sum", "aten::max", "aten::linalg_norm", "aten::convolution", "aten::convolution_backward",
                  "aten::add", "aten::add_", "aten::mul", "aten::div", "aten::copy_"} | NORMS | {"aten::native_batch_norm_backward"},
    }

    def test_default(self):
        total, agree, different = 0, {"flops": 0, "bytes": 0}, {"flops": set(), "bytes": set()}
        for folder, trace in sheets():
            got = {}
            for r in report("costs", trace).rows:
                key = key_of(r["op"], *(json.loads(r[c]) if r[c] else [] for c in ("input_dims", "input_types")), [])[:3]
                got.setdefault(key, []).append(r)
            for sheet, key, gflops, mb in rows_of(folder):
                if key[0] in KNOWN:
                    continue
                total += 1
                for what, value in (("flops", gflops * 1e9), ("bytes", None if mb is None else mb * 2**20)):
                    ok = value is None or any(r[what] is not None and near(r[what], value) for r in got.get(key[:3], []))
                    agree[what] += ok
                    if not ok:
                        different[what].add(key[0])
        if not total:
            self.skipTest("no TraceLens reports")
        print(f"# by default {agree} of {total} rows agree", flush=True)
        self.assertEqual(different, self.DIFFERENT)


class Replays(Case):
    """What a graph replayed, with the work around it: from the replay alone, whose capture is found beside it."""

    TRACES = ("graphs/vllm_decode_full/graph_execution.json.gz", "tracelens/inference/sglang_decode/sglang_Qwen3-8B_decode.json.gz")
    SHEETS = ("GEMM", "RMSNorm_fwd", "RoPE_fwd", "UnaryElementwise", "Reduce_fwd", "InferenceAttention_fwd")
    # TraceLens has a row for these and another for the product inside, of the same kernels; here the kernels are of the inner one.
    # docs/compat.md.
    TWICE = {"vllm::rocm_unquantized_gemm": ("aten::addmm", "aten::mm"), "aiter::gemm_a16w16": ("aten::mm",)}

    # Ops around another one with a row: it adds the time of the copy inside, of one call, ns.
    WITHIN = {("aten::copy_", ("int", "long int", "Scalar")): 4526, ("aten::cumsum", ("int", "Scalar", "")): 5447}

    def theirs(self, trace):
        """(op, shapes, types) -> calls, GFLOPS, MB, ns."""
        rows = {}
        for sheet in self.SHEETS:
            path = os.path.join(os.path.dirname(trace), "perf_csvs", sheet + ".csv")
            if not os.path.exists(path):
                continue
            with open(path, newline="") as f:
                for r in csv.DictReader(f):
                    key = key_of(r["name"], *(ast.literal_eval(r[c + "_first"]) for c in ("Input Dims", "Input type")), ())[:3]
                    x = rows.setdefault(key, [0, float(r["GFLOPS_first"]), number(r["Data Moved (MB)_first"]), 0.0])
                    x[0] += int(r["name_count"])
                    x[3] += float(r["Kernel Time (µs)_sum"]) * 1000
        return rows

    def ours(self, trace):
        rows = {}
        for r in report("costs", trace).rows:
            key = key_of(r["op"], *(json.loads(r[c]) if r[c] else [] for c in ("input_dims", "input_types")), ())[:3]
            x = rows.setdefault(key, [0, None, None, 0])
            x[0] += r["calls"]
            x[3] += r["gpu_ns"]
        for key, (gflops, mb) in ours(trace, True).items():
            rows[key[:3]][1:3] = gflops, mb
        return rows

    def test_rows(self):
        compared = 0
        for trace in [p for t in self.TRACES for p in oracle.data_glob(t)]:
            want, got = self.theirs(trace), self.ours(trace)
            for key, (calls, gflops, mb, ns) in want.items():
                with self.subTest(trace=os.path.basename(trace), op=key):
                    have = got[key]
                    self.assertEqual(have[0], calls)
                    self.assertTrue(near(have[1], gflops) and near(have[2], mb), (have, gflops, mb))
                    if key[0] in self.TWICE:
                        self.assertEqual(have[3], 0)
                    else:
                        self.assertAlmostEqual(have[3] + self.WITHIN.get((key[0], key[2]), 0), ns, delta=calls)
                    compared += 1
            for outer, inner in self.TWICE.items():
                outside = [r for key, r in want.items() if key[0] == outer]
                inside = [r for key, r in want.items() if key[0] in inner]
                for r in outside:
                    self.assertIn(r, inside)
        if not compared:
            self.skipTest("no replays")
        print(f"# {compared} rows of replays", flush=True)


class Experts(Case):
    """Mixtures of experts: sizes as an independent reading of the capture has them, and TraceLens' figures, which take another width."""

    FOLDER = "graphs/vllm_decode_full"
    UP, DOWN = "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu", "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1"

    def trace(self):
        return oracle.data(self.FOLDER, "graph_execution.json.gz")

    def sizes(self):
        """The set of (tokens, k, experts, hidden, rows up, width of an expert) of the mixtures in the capture, and how many there are."""
        path, = oracle.data_glob(self.FOLDER + "/capture_traces/*.pt.trace.json.gz")
        with gzip.open(path, "rt") as f:
            ops = [e for e in json.load(f)["traceEvents"] if e.get("cat") == "cpu_op"]
        mixtures = [e for e in ops if e["name"] == "vllm::moe_forward"]
        found = set()
        for m in mixtures:
            inside = [e for e in ops if m["ts"] <= e["ts"] < m["ts"] + m["dur"] and e["tid"] == m["tid"]]
            top, = (e["args"] for e in inside if e["name"] == "TopK")
            up, down = (e["args"]["Input Dims"][0] for e in inside if e["name"] == "aten::view" and e["args"]["Input type"][0] == "unsigned char")
            (tokens, experts), k = top["Input Dims"][0], int(top["Concrete Inputs"][1])
            self.assertEqual((up[0], down[0]), (experts, experts))
            found.add((tokens, k, experts, 2 * up[1], up[2], 2 * down[1]))
        return found, len(mixtures)

    def test_vllm(self):
        (sizes,), n = self.sizes()
        self.assertEqual((sizes, n), ((32, 4, 32, 3072, 5888, 2944), 24))
        tokens, k, experts, hidden, rows, width = sizes
        up, down = 2 * tokens * k * hidden * rows, 2 * tokens * k * width * hidden
        packed_up, packed_down, each = hidden * rows // 2, hidden * width // 2, 2 * tokens * hidden
        even = 32 * (1 - (7 / 8) ** 32)
        row, = (r for r in report("costs", self.trace()).rows if r["op"] == "vllm::moe_forward")
        self.assertEqual((row["calls"], row["flops"], row["dtype"], row["why"]), (n, up + down, "bfloat16", None))
        self.assertEqual(row["bytes_least"], 2 * each + k * (packed_up + packed_down))
        self.assertEqual(row["bytes"], 2 * each + int(even * packed_up) + int(even * packed_down))
        kernels = {r["kernel"]: r for r in report("roofline", self.trace(), "--group-by=kernel").rows}
        for name, flops, weight in ((self.UP, up, packed_up), (self.DOWN, down, packed_down)):
            self.assertEqual((kernels[name]["calls"], kernels[name]["flops"], kernels[name]["bytes"]), (n, n * flops, n * (each + int(even * weight))))
            self.assertLess(kernels[name]["bandwidth_pct"], 100)
            self.assertAlmostEqual(kernels[name]["attainable_ns"], n * (each + k * weight) / 5.3e12 * 1e9, delta=1)
        self.assertGreater(sum(r["total_ns"] for r in report("kernels", self.trace()).rows) * 0.05, self.unmodelled(self.trace()))

    @staticmethod
    def unmodelled(trace):
        kernels, known, without, _ = [int(x) for x in report("costs", trace).notes[0].replace("ns", "").split() if x.isdigit()]
        assert kernels == known + without
        return without

    def test_tracelens(self):
        """Its two made-up calls are as wide as the tokens, 3,072; by that its figures are ours, and by the width that the weights have we are lower by known factors."""
        theirs = {}
        with open(oracle.data(self.FOLDER, "perf_csvs", "MoE_unfused_fwd.csv"), newline="") as f:
            for r in csv.DictReader(f):
                theirs[r["name"].rsplit("_", 1)[1]] = float(r["GFLOPS_first"]), float(r["Data Moved (MB)_first"]), int(r["name_count"]), float(r["Kernel Time (µs)_sum"])
        self.assertEqual({k: round(v[0] * 1e9) for k, v in theirs.items()}, {"up": 2 * 32 * 4 * 3072 * 6144, "down": 2 * 32 * 4 * 3072 * 3072})
        compat, = (r for r in report("costs", self.trace(), "--compat=tracelens").rows if r["name"] == "vllm::moe_forward")
        self.assertTrue(near(compat["gflops"], theirs["up"][0] + theirs["down"][0]))
        self.assertTrue(near(compat["data_moved_mb"], theirs["up"][1] + theirs["down"][1]))
        kernels = {r["kernel"]: r for r in report("roofline", self.trace(), "--group-by=kernel").rows}
        for part, name, ratio in (("up", self.UP, (5888, 6144)), ("down", self.DOWN, (2944, 3072))):
            ours = kernels[name]
            self.assertEqual(ours["flops"] * ratio[1], round(theirs[part][0] * 1e9) * ours["calls"] * ratio[0])
            self.assertEqual(ours["calls"], theirs[part][2])
            self.assertAlmostEqual(ours["total_gpu_ns"], theirs[part][3] * 1000, delta=ours["calls"])

    def test_not_stated(self):
        """The weights of TensorRT-LLM's kernels stand nowhere: neither FLOPs nor bytes are known, nor a share of a peak."""
        trace = oracle.data("tracelens/b200/eager_trace.json.gz")
        row, = (r for r in report("costs", trace).rows if r["op"] == "vllm::moe_forward")
        self.assertEqual((row["calls"], row["flops"], row["bytes"], row["bytes_least"]), (36, None, None, None))
        self.assertIn("weights of the experts", row["why"])
        self.assertNotIn("vllm::moe_forward", {r["op"] for r in report("roofline", trace).rows})


class Torch(Case):
    """The FLOPs that torch.profiler(with_flops=True) counted of the same run, op by op and shape by shape."""

    OPS = ("aten::conv2d", "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::add", "aten::mul")

    def test_with_flops(self):
        paths = [p for p in oracle.data_glob("torch/*_cpu/*_full.key_averages.json") if "torch113" not in p]
        if not paths:
            self.skipTest("no captures of torch")
        compared = 0
        for path in paths:
            with open(path) as f:
                rows = json.load(f)
            want, got = {}, {}
            for r in rows if isinstance(rows, list) else rows["group_by_input_shape"]:
                if r["key"] in self.OPS and r["flops"]:
                    key = r["key"], fold(ast.literal_eval(r["input_shapes"]))
                    want[key] = want.get(key, 0) + r["flops"]
            for r in report("costs", path.replace(".key_averages.json", ".json.gz")).rows:
                if r["op"] in self.OPS and r["flops"] is not None:
                    key = r["op"], fold(json.loads(r["input_dims"]))
                    got[key] = got.get(key, 0) + r["flops"] * r["calls"]
            with self.subTest(run=path):
                self.assertEqual({k: got.get(k) for k in want}, want)
                compared += len(want)
        print(f"# {compared} ops and shapes", flush=True)
        self.assertGreater(compared, 40)


class Sums(Case):
    """What holds for any trace: every kernel is covered or not, and the report says how much."""

    def test_reconciliation(self):
        paths = oracle.data_glob("tracelens/h100/*.json.gz") + oracle.data_glob("tracelens/mi300/*.json.gz")
        if not paths:
            self.skipTest("no traces")
        for path in paths:
            t = report("costs", path)
            figures = [int(x) for x in t.notes[0].replace("ns", "").split() if x.isdigit()]
            kernels = sum(r["total_ns"] for r in report("kernels", path).rows)
            with self.subTest(trace=os.path.basename(path)):
                self.assertEqual(figures[0], kernels)
                self.assertEqual(figures[0], sum(figures[1:]))
                for r in t.rows:
                    self.assertEqual(r["why"] is None, r["flops"] is not None and r["bytes"] is not None, r)


if __name__ == "__main__":
    oracle.main()
