"""`overview`, `steps`, `devices` and `advise` against the answers of the TensorBoard plugin for the same trace, cell by cell."""
import json
import os
import re

import oracle
from oracle import Case, report

TRACE = ("tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz")
ROLE_ID = {"Kernel": "kernel", "Memcpy": "memcpy", "Memset": "memset", "Communication": "communication", "Runtime": "runtime",
           "DataLoader": "dataloader", "CPU Exec": "cpu_exec", "Other": "other"}


class Overview(Case):
    def setUp(self):
        super().setUp()
        self.trace = oracle.data(*TRACE)
        with open(oracle.data(TRACE[0], TRACE[1], "expected_overview.json")) as f:
            self.want = json.load(f)

    def overview(self):
        return report("overview", self.trace, "--compat=tb-plugin")

    def check_steps(self, table):
        columns = self.want["steps"]["columns"]
        roles = [c["name"] for c in columns[1:] if "name" in c]
        shown = [i for i in table.ids if i.endswith("_us") and i != "total_us"]
        self.assertEqual(shown, [ROLE_ID[r] + "_us" for r in roles])
        self.assertEqual(len(table.rows), len(self.want["steps"]["rows"]))
        for got, want in zip(table.rows, self.want["steps"]["rows"]):
            self.assertEqual(got["step"], want[0])
            for role, us, tip in zip(roles, want[1::2], want[2::2]):
                total, pct = re.search(r"Total: (\d+)us.*Percentage: ([\d.]+)%", tip).groups()
                self.assertEqual(got["total_us"], int(total))
                self.assertEqual(got[ROLE_ID[role] + "_us"], us, (want[0], role))
                self.assertEqual(got[ROLE_ID[role] + "_pct"], float(pct), (want[0], role))

    def test_steps(self):
        self.check_steps(self.overview().section("steps"))

    def test_steps_report(self):
        self.check_steps(report("steps", self.trace, "--compat=tb-plugin"))

    def test_limit(self):
        """The parts of a sum stay together."""
        few = report("overview", self.trace, "--limit=3")
        self.assertEqual(few.rows, report("overview", self.trace).rows)
        self.assertEqual(len(few.section("steps").rows), 3)

    def test_without_a_loader(self):
        """0 ns of DataLoader where no range of one was recorded is said to be that; the predecessor's tables stay as they are."""
        gpt, text = os.path.join(oracle.ROOT, "tests", "data", "h200", "gpt_bf16.json.gz"), "No DataLoader ranges were recorded"
        for name in ("overview", "steps"):
            self.assertTrue(any(text in n for n in report(name, gpt).notes), name)
            self.assertFalse(any(text in n for n in report(name, self.trace).notes), name)
            self.assertFalse(any(text in n for n in report(name, gpt, "--compat=tb-plugin").notes), name)

    def test_mean(self):
        top = self.want["performance"][0]
        want = [[x["name"], x["value"], x["extra"]] for x in [top] + top["children"]]
        got = [[r["role"], r["mean_us"], r["share_pct"]] for r in self.overview().rows]
        self.assertEqual(got, want)

    def test_environment(self):
        got = [[r["title"], r["value"]] for r in self.overview().section("environment").rows]
        self.assertEqual(got, [[e["title"], e["value"]] for e in self.want["environments"]])

    def test_ranks(self):
        """Ours says of how many ranks the profile is one."""
        def ranks(*path):
            return {r["title"]: r["value"] for r in report("overview", oracle.data(*path)).section("environment").rows}["Ranks"]
        self.assertEqual(ranks(*TRACE), "1")
        self.assertEqual(ranks("tracelens", "mi300", "resnet_act_checkpoint.json.gz"), "8")

    def test_two_gpus(self):
        """Each GPU that ran collectives is a rank, in the environment as in the look's note; what is a mean over the GPUs is told first."""
        path = oracle.data("nsys", "2026.2_mfu_2gpu", "mfu_2gpu_before.sqlite")
        table = report("overview", path)
        self.assertEqual(table.section("environment").by("title")["Ranks"]["value"], "2")
        code, out, _ = oracle.run("look", path)
        self.assertEqual(code, 0)
        self.assertIn(b"2 GPUs ran collectives, each a rank of a job", out)
        self.assertIn(b"Means over the 2 GPUs, in Total, too.", out)
        self.assertNotIn("GPUs, in Total", " ".join(report("overview", oracle.data(*TRACE)).notes))

    def check_gpu(self, table):
        want = {e["title"]: e["value"] for e in self.want["gpu_metrics"]["data"]}
        self.assertEqual(len(table.rows), 1)
        r = table.rows[0]
        self.assertIn(f"GPU {r['device']}:", want)
        percent = {"GPU Utilization": "gpu_utilization_pct", "Est. SM Efficiency": "sm_efficiency_pct",
                   "Est. Achieved Occupancy": "achieved_occupancy_pct", "Kernel Time using Tensor Cores": "tc_time_pct"}
        self.assertEqual(set(want), {"GPU 0:", "Name", "Memory", "Compute Capability"} | set(percent))
        self.assertEqual(r["name"], want["Name"])
        self.assertEqual(r["memory_gb"], float(want["Memory"].split()[0]))
        self.assertEqual(r["compute_capability"], want["Compute Capability"])
        for title, column in percent.items():
            self.assertEqual(r[column], float(want[title].split()[0]), title)

    def test_gpu_summary(self):
        self.check_gpu(self.overview().section("devices"))

    def test_devices_report(self):
        self.check_gpu(report("devices", self.trace, "--compat=tb-plugin"))

    def test_recommendations(self):
        """Two of the plugin's seven rules hold, with its figures: the data loader's share, and the eligible kernels'."""
        items = re.findall(r"<li>(.*?)</li>", self.want["recommendations"])
        self.assertEqual(len(items), 2)
        loader = re.search(r"([\d.]+)% of the step time is in DataLoader", items[0]).group(1)
        eligible = re.search(r"Kernels with (\d+)% time", items[1]).group(1)
        code, out, _ = oracle.run("advise", self.trace, "--format=json")
        self.assertEqual(code, 0)
        rows = oracle.Table(json.loads(out)).by("detector")
        plugin = {"dataloader-bound", "data-parallel", "ddp-without-nccl", "communication-bound", "low-gpu-utilization",
                  "no-tensor-cores", "memory-nearly-full"}
        self.assertEqual(set(rows) & plugin, {"dataloader-bound", "no-tensor-cores"})
        self.assertIn(f"{loader} % of the step time is in DataLoader", rows["dataloader-bound"]["problem"])
        self.assertIn(f"Kernels with {eligible} % of the time", rows["no-tensor-cores"]["problem"])
        self.assertEqual(round(rows["dataloader-bound"]["gain_ns_per_step"] / 1000), 59262)

    def test_own_numbers_agree(self):
        """Without the plugin's mistakes in play, the default gives the same figures, unrounded."""
        got = report("overview", self.trace).by("role")
        for r in self.overview().rows:
            self.assertEqual(round(got[r["role"]]["mean_ns"] / 1000), r["mean_us"])
            self.assertAlmostEqual(got[r["role"]]["share_pct"], r["share_pct"], delta=0.00501)


class Sums(Case):
    """Parts are the whole, on every real trace."""

    def test_roles_sum_to_step(self):
        paths = oracle.data_glob("tracelens/**/*.json.gz") + oracle.data_glob("hta/**/*.json.gz") + \
            oracle.data_glob("torch/*/resnet_full.json.gz") + oracle.data_glob("multirank/*/*_[03].json.gz")
        if not paths:
            self.skipTest("no real traces")
        for path in paths:
            with self.subTest(path=path):
                table = report("overview", path)
                roles = [i for i in table.section("steps").ids if i[:-3] in ROLE_ID.values() and i.endswith("_ns")]
                for r in table.section("steps").rows:
                    self.assertEqual(r["total_ns"], sum(r[i] for i in roles), r["step"])
                rows = table.by("role")
                whole = rows.pop("Average Step Time", None) or rows.pop("Time Looked At")
                self.assertEqual(whole["total_ns"], sum(r["total_ns"] for r in rows.values()))

    def test_step_range(self):
        path = oracle.data(*TRACE)
        every = report("steps", path).rows
        some = report("steps", path, "--steps=6..8").rows
        self.assertEqual([r["step"] for r in some], [6, 7, 8])
        self.assertEqual(some, [r for r in every if r["step"] in (6, 7, 8)])
        mean = report("overview", path, "--steps=6..8").by("role")["Kernel"]
        self.assertEqual(mean["total_ns"], sum(r["kernel_ns"] for r in some))
        code, _, err = oracle.run("report", "overview", path, "--steps=90..99")
        self.assertEqual(code, 1)
        self.assertIn(b"has steps 5 to 10", err)
        device = report("devices", path, "--steps=6..8").rows[0]
        self.assertEqual(device["kernel_busy_ns"], mean["total_ns"])
        self.assertEqual(device["busy_ns"] + device["idle_ns"], sum(r["total_ns"] for r in some))


if __name__ == "__main__":
    oracle.main()
