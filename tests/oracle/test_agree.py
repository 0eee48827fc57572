"""Reports of one trace do not contradict each other: what two of them say of the same thing is the same number."""
import collections
import os
import re

import oracle
from oracle import Case, info, report


EACH = 1 if oracle.ALL else 8  # of the traces


def traces():
    """Real traces of every kind, with and without steps, devices and ops: all (OPSCOPE_ALL), or every eighth one."""
    found = [p for pattern in ("nsys/*/*.sqlite", "tb_plugin/*/*.pt.trace.json.gz", "tracelens/**/*.json.gz", "hta/*/*.json.gz",
                               "pyprof/*/net.sql*", "nvprof/*.nvvp", "torch/*/*_full.json.gz", "multirank/*/*_0.json.gz",
                               "dlprof/w_relu/*.sqlite", "verdicts/*.json.gz", "more/**/*.json.gz", "more/nsys/*/*.sqlite") for p in oracle.data_glob(pattern)]
    return found[::EACH] + [os.path.join(oracle.ROOT, "tests", "data", "torch214_cpu_resnet.json.gz")]


def table_or_none(name, *args):
    """None where the input lacks what the report is about."""
    code, out, err = oracle.run("report", name, *args, "--format=json")
    if code == 1:
        return None
    if code:
        raise AssertionError(f"report {name} {args}: exit {code}: {err.decode(errors='replace')}")
    return oracle.Table(oracle.json.loads(out))


class Agree(Case):
    def each(self, check, least):
        """`check` returns whether it compared anything."""
        paths, compared = traces(), 0
        for path in paths:
            with self.subTest(path=os.path.relpath(path, oracle.DATA)):
                compared += bool(check(path))
        if len(paths) > 1:
            self.assertGreaterEqual(compared, least // EACH)

    def lengths(self, path):
        steps, summary, overview = table_or_none("steps", path), table_or_none("summary", path), table_or_none("overview", path)
        if not steps or not summary:
            return False
        whole = [r for r in steps.rows if r.get("whole") is not False]
        total, host = sum(r["total_ns"] for r in whole), sum(r["host_ns"] for r in whole)
        self.assertEqual(summary.section("figures").rows[0]["wall_ns"], total)
        self.assertEqual(overview.rows[0]["total_ns"], total)
        counted = summary.section("steps").rows[0]
        recorded = next(r["number"] for r in info(path).rows if r["fact"] == "recorded time")
        if counted["counted"]:
            self.assertEqual(counted["counted"], len(whole))
            self.assertAlmostEqual(counted["mean_ns"], total / len(whole), delta=1e-6 * total)
            self.assertAlmostEqual(counted["host_mean_ns"], host / len(whole), delta=1e-6 * host)
            self.assertEqual((counted["min_ns"], counted["max_ns"]), (min(r["total_ns"] for r in whole), max(r["total_ns"] for r in whole)))
            self.assertAlmostEqual(overview.rows[0]["mean_ns"], counted["mean_ns"], delta=0.51)
        self.assertIn(f" {recorded} ns were recorded.", summary.notes[0])
        if not counted["counted"]:  # the window, and what the recording holds before and after it
            self.assertEqual(sum(r["total_ns"] for r in steps.rows), recorded)
            self.assertEqual(len(whole), 1)
        timeline = table_or_none("gpu-timeline", path)
        if timeline:
            self.assertEqual({r["time_ns"] for r in timeline.rows if r["kind"] == "total"}, {total})
        return True

    def test_length_of_steps_and_recording(self):
        self.each(self.lengths, 35)

    def uses(self, path):
        """`summary` and `steps` divide the same time, by the same ranges of the host; only where collectives are shown apart, or file
        I/O is, do they draw other lines."""
        steps, summary = table_or_none("steps", path), table_or_none("summary", path)
        if not steps or not summary or summary.section("figures").rows[0]["gpus"] > 1:
            return False
        role = collections.Counter()
        for r in steps.rows:
            if r.get("whole") is not False:
                role.update({k: v for k, v in r.items() if k.endswith("_ns")})
        use = {r["use"]: r["total_ns"] for r in summary.rows}
        device = use["Tensor Core kernels"] + use["other kernels"] + use["kernels, unknown"] + use["copies and sets"]
        role_device = role["kernel_ns"] + role["memcpy_ns"] + role["memset_ns"]
        self.assertLessEqual(role_device, device)
        self.assertLessEqual(device, role_device + role["communication_ns"])
        if not role["communication_ns"]:
            self.assertEqual(role_device, device)
        self.assertLessEqual(role["other_ns"] - use["file I/O"], use["other"])
        self.assertLessEqual(use["other"], role["other_ns"])
        return True

    def test_uses_and_roles(self):
        self.each(self.uses, 35)

    def test_uses_with_ranges_as_steps(self):
        """Plain ranges inside the range that makes the steps are CPU time in both."""
        path = oracle.data("nsys", "2025.3_nsightful_t4", "power_iteration__baseline.sqlite")
        self.assertTrue(self.uses(path))
        self.assertEqual([r["total_ns"] for r in report("summary", path).rows if r["use"] == "other"], [0])

    def tensor_cores(self, path):
        """Who uses Tensor Cores could use them."""
        compared = 0
        for name, could, does in (("ops", "tc_eligible", "tc_used"), ("op-types", "tc_eligible", "tc_pct"),
                                  ("tensor-cores", "tc_possible", "tc_used"), ("gemm", "tc_eligible", "tensor_cores"),
                                  ("conv", "tc_eligible", "tensor_cores"), ("attention", "tc_eligible", "tensor_cores"),
                                  ("operators", "tc_eligible", "tc_total_pct"), ("operators", "tc_eligible", "tc_self_pct")):
            t = table_or_none(name, path)
            for r in t.rows if t and does in t.ids else ():
                uses = r[does] == "yes" or (isinstance(r[does], float) and r[does] > 0)
                compared += uses
                self.assertFalse(uses and r[could] in (False, "no", "unknown"), (name, r))
        return compared

    def test_tensor_cores(self):
        self.each(self.tensor_cores, 15)

    def possible(self, path):
        """What could use Tensor Cores: the finding rests on the kernels of the report, and no collective is among them."""
        table = table_or_none("tensor-cores", path)
        code, out, _ = oracle.run("advise", path, "--format=json")
        if not table or code:
            return False
        if any("the input holds no kernels" in n for n in table.notes):
            self.assertTrue(all(r[c] is None for r in table.rows for c in ("possible_ns", "tc_ns", "total_kernel_ns", "tc_used", "tc_kernel_names")))
            return False
        could = sum(r["possible_ns"] for r in table.rows)
        for r in table.rows:
            self.assertEqual(r["possible_ns"], r["tc_ns"] + r["non_tc_ns"] + r["unknown_ns"])
            self.assertLessEqual(r["possible_ns"], r["total_kernel_ns"])
            names = ", ".join(r[c] for c in ("tc_kernel_names", "non_tc_kernel_names", "unknown_kernel_names"))
            self.assertNotRegex(names, "(?i)n?rccl|nccl|allreduce")
        summary = table_or_none("summary", path)
        figures = summary.section("figures").rows[0] if summary else {}
        parts = [sum(r[c] for r in table.rows) for c in ("tc_ns", "unknown_ns")]
        if could and self.same_window(table, summary):
            for column, part in zip(("tc_pct", "tc_unknown_pct"), parts):
                self.assertAlmostEqual(figures[column], 100 * part / could, places=6)
        findings = [r for r in oracle.Table(oracle.json.loads(out)).rows if r["detector"] == "no-tensor-cores"]
        for r in findings:
            self.assertEqual((r["time_ns"], r["events"]), (could, sum(x["kernels"] for x in table.rows)))
        return bool(findings)

    @staticmethod
    def same_window(table, summary):
        """Whether both are about all kernels of the file."""
        kernels = int(next(re.match(r"kernels (\d+) ns", n) for n in table.notes if n.startswith("kernels "))[1])
        rows = summary.section("kernels").by("kernels")
        return kernels == rows["all"]["gpu_ns"] - rows["copies and sets"]["gpu_ns"]

    def test_possible(self):
        self.each(self.possible, 4)

    def kernels(self, path):
        """Each kernel's operator, one by one and added up."""
        by_op, one_by_one, plain = (table_or_none("kernels", path, *more) for more in
                                    (("--group-by=op",), ("--group-by=instance",), ()))
        if not by_op:
            return False
        sums, calls = collections.Counter(), collections.Counter()
        for r in one_by_one.rows:
            sums[r["kernel_name"], r["operator"]] += r["dur_ns"]
            calls[r["kernel_name"]] += 1
        self.assertEqual(sums, collections.Counter({(r["name"], r["operator"]): r["total_ns"] for r in by_op.rows}))
        self.assertEqual(calls, collections.Counter({r["name"]: r["calls"] for r in plain.rows}))
        whole = sum(r["total_ns"] for r in plain.rows)
        summary = report("summary", path).section("kernels").by("kernels")
        if not report("summary", path).section("steps").rows[0]["counted"]:
            self.assertEqual(whole, summary["all"]["gpu_ns"] - summary["copies and sets"]["gpu_ns"])
            self.assertEqual(sum(calls.values()), summary["all"]["calls"] - summary["copies and sets"]["calls"])
        return True

    def test_operators_of_kernels(self):
        self.each(self.kernels, 25)


    def flops(self, path):
        """All FLOPs of a trace, by module and in one sum: forward and backward, each operation once."""
        total, modules = table_or_none("total-average", path), table_or_none("module-flops", path, "--steps=all")
        if not total or not modules:
            return False
        sums = re.match(r"FLOPs (\d+) = ", modules.notes[0])
        unknown = [m for m in (re.match(r"unknown: the FLOPs of (\d+) calls", n) for n in modules.notes) if m]
        if not {"flops", "flops_unknown"} <= set(total.ids):
            self.assertEqual(int(sums[1]), 0)
            return False
        self.assertEqual((total.rows[0]["flops"], total.rows[0]["flops_unknown"]), (int(sums[1]), int(unknown[0][1])))
        return total.rows[0]["flops"] > 0

    def test_flops(self):
        self.each(self.flops, 10)


class Steps(Case):
    """Every report either heeds --steps itself or is given that part of the profile."""

    ABOUT_THE_FILE = {"aggregations"}
    # What --steps cuts a part of: host columns differ by what lies outside the step, device columns do not.
    DEVICE = {"kernels": "total_ns", "operators": "device_self_ns", "key-averages": "device_self_ns", "costs": "gpu_ns",
              "gemm": "total_gpu_ns", "conv": "total_gpu_ns", "attention": "total_gpu_ns", "roofline": "total_gpu_ns",
              "memcpy": "total_ns", "ops": "total_gpu_ns", "op-types": "total_gpu_ns", "tensor-cores": "total_kernel_ns",
              "kernels-unknown": "total_ns", "layers": "total_gpu_ns", "triton": "total_ns"}

    def names(self):
        code, out, _ = oracle.run("report", "--format=json")
        self.assertEqual(code, 0)
        return [r[0] for r in oracle.json.loads(out)["rows"] if r[0] not in self.ABOUT_THE_FILE]

    def sums(self, table):
        return {c: sum(r[c] or 0 for r in table.rows) for c in table.ids
                if c.endswith("_ns") and all(isinstance(r[c], (int, type(None))) for r in table.rows)}

    def one_step(self, path, step, at):
        compared = 0
        for name in oracle.part(self.names(), 2, at):
            with self.subTest(report=name):
                plain, part = table_or_none(name, path), table_or_none(name, path, f"--steps={step}..{step}")
                self.assertEqual(plain is None, part is None)
                if plain and name in self.DEVICE:
                    self.assertEqual(self.sums(plain).get(self.DEVICE[name]), self.sums(part).get(self.DEVICE[name]))
                    compared += 1
                elif plain and name in ("overview", "steps", "summary", "devices"):
                    self.assertEqual(plain.rows, part.rows)
        self.assertGreaterEqual(compared, 10 if oracle.ALL else 5)

    def test_one_step_is_all(self):
        self.one_step(oracle.data("tracelens", "h100", "gaunernst_bert-small-uncased__1016001.json.gz"), 6, 0)
        self.one_step(oracle.data("tracelens", "h100", "Falconsai_nsfw_image_detection__1016002.json.gz"), 6, 1)

    def test_steps_sum_to_all(self):
        """All device work of this trace belongs to its steps."""
        path = oracle.data("tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz")
        steps, compared = [r["step"] for r in report("steps", path).rows], 0
        for name, column in oracle.part(self.DEVICE.items(), 2):
            plain = table_or_none(name, path)
            if not plain or column not in self.sums(plain):
                continue
            with self.subTest(report=name):
                parts = [table_or_none(name, path, f"--steps={s}..{s}") for s in steps]
                self.assertEqual(sum(self.sums(p)[column] for p in parts if p), self.sums(plain)[column])
                compared += self.sums(plain)[column] > 0
        self.assertGreaterEqual(compared, 8 if oracle.ALL else 4)


if __name__ == "__main__":
    oracle.main()
