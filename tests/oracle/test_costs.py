"""`report costs` against TraceLens' figures of the same traces, and what of it holds for every trace."""
import ast
import collections
import csv
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
