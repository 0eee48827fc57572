"""`op-classes`: against TraceLens' ops_summary.csv and ops_summary_by_category.csv of the same traces, and against other reports of the same device work."""
import collections
import csv
import json

import oracle
from oracle import Case, data, report

TRACES = [("tracelens/h100/%s" % n, "tracelens/h100/%s_perf_report_csvs" % n) for n in (
    "Falconsai_nsfw_image_detection__1016002", "gaunernst_bert-small-uncased__1016001", "Qwen_Qwen1.5-0.5B-Chat__1016005")] + [
    ("tracelens/triton/trace", "tracelens/triton/trace_perf_report_csvs")]
# Its categories, but for what it calls elementwise or other, and we by what it does.
CLASS = {"GEMM": "gemm", "CONV_fwd": "conv", "NORM_fwd": "norm", "elementwise": "elementwise", "reduce": "reduce", "triton": "triton"}
OURS = {"aten::copy_": "copy", "aten::_flash_attention_forward": "attention", "aten::_scaled_dot_product_flash_attention": "attention", "aten::cat": "copy", "aten::index_select": "copy",
        "aten::arange": "fill", "aten::_local_scalar_dense": "memcpy", "aten::_efficient_attention_forward": "attention"}


def sheet(folder, name):
    with open(data(folder, name + ".csv"), newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


class TraceLens(Case):
    def test_categories(self):
        for trace, folder in TRACES:
            want, by_category = collections.defaultdict(lambda: [0, 0]), collections.Counter()
            for r in sheet(folder, "ops_summary"):
                category = r["Categories"].strip("[]'")
                row = want[OURS.get(r["name"]) or CLASS[category]]
                row[0] += int(r["Count"])
                row[1] += float(r["total_direct_kernel_time_ms"]) * 1e6
                by_category[category] += int(r["Count"])
            self.assertEqual(by_category, {r["op category"]: int(r["Count"]) for r in sheet(folder, "ops_summary_by_category")})
            got = {r["class"]: r for r in report("op-classes", data(trace + ".json.gz")).rows if r["direction"] != "other"}
            with self.subTest(trace):
                self.assertEqual(set(got), set(want))
                for name, (calls, ns) in want.items():
                    self.assertEqual(got[name]["calls"], calls, name)
                    self.assertAlmostEqual(got[name]["total_gpu_ns"], ns, delta=2 * got[name]["gpu_ops"], msg=name)


class Sums(Case):
    INPUTS = [("hta", "df_index_resolver", "df_index_resolver.json.gz"), ("tracelens", "mi300", "resnet_act_checkpoint.json.gz"), ("nsys", "2026.2_mfu_2gpu", "mfu_2gpu_after.sqlite"),
              ("pyprof", "mmagic_nsys", "net.sqlite"), ("multirank", "megatron_a100_tp8", "megatron_kineto_0.json.gz")]

    def test_parts_add_up(self):
        for path in self.INPUTS:
            path = data(*path)
            rows = report("op-classes", path).rows
            total = report("kernels", path).rows
            copies = oracle.run("report", "memcpy", path, "--steps=all", "--format=json")
            moved = sum(r["total_ns"] for r in oracle.Table(json.loads(copies[1])).rows) if copies[0] == 0 else 0
            self.assertEqual(sum(r["total_gpu_ns"] for r in rows), sum(r["total_ns"] for r in total) + moved, path)
            self.assertEqual([r["total_gpu_ns"] for r in rows], sorted((r["total_gpu_ns"] for r in rows), reverse=True))
            self.assertAlmostEqual(rows[-1]["cumulative_pct"], 100)
            self.assertAlmostEqual(rows[0]["cumulative_pct"], rows[0]["total_pct"])

    def test_products(self):
        """Of a class that a report of its own has, the time is that report's."""
        path = data("hta", "df_index_resolver", "df_index_resolver.json.gz")
        rows = report("op-classes", path).rows
        self.assertEqual({r["direction"] for r in rows}, {"forward", "backward", "optimizer"})
        self.assertEqual(sum(r["total_gpu_ns"] for r in rows if r["class"] == "gemm"), sum(r["total_gpu_ns"] for r in report("gemm", path).rows))


if __name__ == "__main__":
    oracle.main()
