"""`report costs` against TraceLens' figures of the same traces, and what of it holds for every trace."""
import ast
import csv
import json
import math
import os

import oracle
from oracle import Case, data, report

# Sheets that TraceLens writes per class of op, of its ops as such.
SHEETS = ("GEMM", "CONV_fwd", "CONV_bwd", "SDPA_fwd", "BinaryElementwise", "UnaryElementwise", "Reduce_fwd", "Reduce_bwd",
          "Normalization", "InferenceAttention_fwd", "RMSNorm_fwd", "RoPE_fwd")

# Rows that cannot agree; docs/compat.md says why.
KNOWN = {
    "sglang_profiler::attention_paged_attention_ragged",  # lengths from an annotation beside the trace
    "triton_poi_fused__unsafe_view_mul_silu_2",           # generated kernels: what they compute is not among their arguments
    "triton_poi_fused__unsafe_view_add_3",
    "triton_red_fused__unsafe_view_add_mean_mul_pow_rsqrt_1",
    "triton_red_fused_add_mean_mul_pow_rsqrt_0",
}

# GPU graphs: the ops stand in the trace of their capture.
CAPTURE = ("tracelens", "inference", "sglang_decode", "capture_traces", "bs_32_rank0.json.gz")


def fold(x):
    """Lists and tuples alike."""
    return tuple(fold(y) for y in x) if isinstance(x, (list, tuple)) else str(x)


def key_of(name, dims, types, concrete):
    return name, fold(dims), fold(types), fold(concrete)


def sheets():
    """(folder, trace) of every TraceLens report."""
    for path in oracle.data_glob("tracelens/**/unified_perf_summary.csv"):
        folder = os.path.dirname(path)
        for tail in ("_recompute_perf_report_csvs", "_perf_report_csvs"):
            if folder.endswith(tail):
                yield folder, folder[:-len(tail)] + ".json.gz"
                break
        else:
            yield folder, os.path.join(os.path.dirname(folder), "sglang_Qwen3-8B_decode.json.gz")


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
                yield name, key, float(r["GFLOPS" + first]), float(r["Data Moved (MB)" + first])


def ours(trace, compat):
    out = {}
    for r in report("costs", trace, *(["--compat=tracelens"] if compat else [])).rows:
        if compat:
            parts = [json.loads(r[c]) if r[c] else [] for c in ("input_dims", "input_type", "concrete_inputs")]
            out[key_of(r["name"], *parts)] = (r["gflops"], r["data_moved_mb"])
    return out


def near(a, b):
    return a is not None and math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-12)


class TraceLens(Case):
    def test_rows(self):
        total = agree = 0
        bad = []
        for folder, trace in sheets():
            got = ours(trace, True)
            if "sglang" in trace:
                got = {**ours(data(*CAPTURE), True), **got}
            for sheet, key, gflops, mb in rows_of(folder):
                total += 1
                have = got.get(key)
                if have and near(have[0], gflops) and near(have[1], mb):
                    agree += 1
                else:
                    bad.append((sheet, os.path.basename(trace), key[0], key[1], (gflops, mb), have))
        if not total:
            self.skipTest("no TraceLens reports")
        print(f"# {agree} of {total} rows agree", flush=True)
        for b in bad:
            print("#", *b, flush=True)
        self.assertEqual({b[2] for b in bad} - KNOWN, set())
        of_classes = total - sum(b[2] in KNOWN for b in bad)
        self.assertGreaterEqual(of_classes, 380)
        self.assertGreaterEqual(agree / of_classes, 0.99)


if __name__ == "__main__":
    oracle.main()
