"""Who launched what, where it is not plain: several processes with the same ids, ranges inside ops, frames that overlap."""
import os

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


class PythonLines(Case):
    def test_lines(self):
        table = report("operators", synthetic("python_lines"), "--group-by=line")
        self.assertEqual({r["python_line"]: (r["calls"], r["device_self_ns"], r["host_self_ns"]) for r in table.rows}, {
            "model.py(7): forward": (1, 11000, 25000), "layers.py(12): forward": (3, 23000, 40000 + 40000 + 15000),
            "(no line known)": (1, 0, 7000)})

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

    def adds_up(self, trace):
        sums = []
        for by in ("name", "line"):
            rows = report("operators", trace, f"--group-by={by}").rows
            sums.append([sum(r.get(c) or 0 for r in rows) for c in ("host_self_ns", "device_self_ns")])
        self.assertEqual(*sums)
        self.assertGreater(sums[0][0], 0)


if __name__ == "__main__":
    oracle.main()
