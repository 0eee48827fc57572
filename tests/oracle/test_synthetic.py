"""The small traces of tests/data/synthetic: each states one rule, and the numbers below follow from it by hand. They are the
numbers of the plugin's own unit tests; where its answer is a known mistake, both answers are tested."""
import json

import oracle
from oracle import Case, report, synthetic

ROLES = ("kernel", "memcpy", "memset", "communication", "runtime", "dataloader", "cpu_exec", "other")


def steps(name, compat=True):
    """Per step: total and the eight roles in the plugin's order, in us."""
    table = report("overview", synthetic(name), *(["--compat=tb-plugin"] if compat else [])).section("steps")
    unit, scale = ("us", 1) if compat else ("ns", 1000)
    rows = []
    for r in table.rows:
        values = [r[f"total_{unit}"]] + [r.get(f"{role}_{unit}") or 0 for role in ROLES]
        rows.append([v / scale for v in values])
    return rows


def operators(name, *args, compat=True):
    """name -> (calls, host total, host self, device total, device self), in us."""
    table = report("operators", synthetic(name), *(["--compat=tb-plugin"] if compat else []), *args)
    out = {}
    for r in table.rows:
        if r["name"].startswith("("):
            continue
        if compat:
            out[r["name"]] = (r["calls"], r["host_total_duration"], r["host_self_duration"],
                              r.get("device_total_duration") or 0, r.get("device_self_duration") or 0)
        else:
            out[r["name"]] = (r["calls"], *((r.get(c) or 0) / 1000 for c in
                                            ("host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns")))
    return out


def kernels(name, *args):
    return report("kernels", synthetic(name), "--compat=tb-plugin", *args).rows


class Both(Case):
    def same(self, ask, name, want):
        """The plugin's answer, which is also the right one."""
        for compat in (False, True):
            with self.subTest(compat=compat):
                self.assertEqual(ask(name, compat=compat), want)


class StepTimes(Both):
    def test_all_categories(self):
        self.same(steps, "all_categories", [[400, 15, 10, 5, 0, 30, 180, 35, 125]])

    def test_runtime_called_by_profilerstep(self):
        self.same(steps, "runtime_called_by_profilerstep", [[300, 8, 0, 0, 0, 20, 0, 0, 272]])

    def test_no_profilerstep(self):
        """Without steps, the plugin takes the time of the ops for the whole, we that from the first to the last device work: here one kernel."""
        self.assertEqual(steps("no_profilerstep", False), [[100, 100, 0, 0, 0, 0, 0, 0, 0]])
        self.assertEqual(steps("no_profilerstep", True), [[320, 100, 0, 0, 0, 10, 0, 70, 140]])

    def test_two_steps(self):
        self.same(steps, "two_steps", [[220, 0, 40, 0, 0, 5, 0, 55, 120], [260, 200, 0, 0, 0, 5, 0, 45, 10]])

    def test_two_steps_overlap(self):
        self.same(steps, "two_steps_overlap", [[140, 0, 100, 0, 0, 5, 0, 15, 20], [230, 200, 0, 0, 0, 5, 0, 25, 0]])

    def test_last_steps_no_kernel(self):
        for compat in (False, True):
            got = steps("last_steps_no_kernel", compat)
            self.assertEqual([s[0] for s in got], [220])

    def test_tail_step(self):
        """Seven launches after steps of ten, each with its kernel: the plugin takes the step for cut off, but it is whole."""
        for compat, want in ((False, [3, 3]), (True, [2, 3])):
            self.assertEqual([len(steps(name, compat)) for name in ("tail_step_cut", "tail_step_whole")], want)

    def test_tail_step_lost(self):
        """Launches without kernels are the evidence: of ten more than two are missing, or not."""
        doc = json.load(open(synthetic("tail_step_whole")))
        events = doc["traceEvents"] if isinstance(doc, dict) else doc
        for kept, lost, want in ((8, 2, 3), (7, 3, 2), (0, 10, 2)):
            step3 = [e for e in events if e["cat"] == "kernel" and e["ts"] > 3000][:kept]
            calls = [dict(events[-2], ts=3300 + i, dur=1, args={"correlation": 900 + i, "External id": 3})
                     for i in range(kept + lost - 8)]
            self.assertEqual(calls[0]["name"] if calls else "cudaLaunchKernel", "cudaLaunchKernel")
            trace = [e for e in events if e["cat"] != "kernel" or e["ts"] < 3000] + step3 + calls
            table = report("steps", "-", stdin=json.dumps({"schemaVersion": 1, "traceEvents": trace}).encode())
            self.assertEqual(len(table.rows), want, (kept, lost))
            self.assertEqual([n for n in table.notes if f"of the 10 calls in them that launch device work, {lost} have none" in n] != [],
                             want == 2, table.notes)

    def test_pure_cpu(self):
        self.same(steps, "pure_cpu", [[200, 0, 0, 0, 0, 0, 0, 10, 190], [100, 0, 0, 0, 0, 0, 0, 40, 60]])

    def test_datapipe(self):
        self.same(steps, "datapipe", [[300, 0, 0, 0, 0, 0, 100, 40, 160]])

    def test_communication(self):
        """Without steps, the plugin takes the time of the ops for the whole, we that from the first to the last device work: the collective goes on for long. Where
        the GPU runs collectives, what the host does in nccl:... only enqueues them: CPU Exec."""
        self.assertEqual(steps("communication", False), [[1718 - 16, 161, 0, 0, 32 - 16 + 1718 - 291, 0, 0, 75 - 32 + 20, 35]])
        self.assertEqual(steps("communication", True), [[235, 105, 0, 0, 75, 0, 0, 20, 35]])

    def test_communication_annotation(self):
        self.assertEqual(steps("communication_annotation", False), [[235, 105, 0, 0, 16, 0, 0, 75 - 16 + 20, 35]])
        self.assertEqual(steps("communication_annotation", True), [[235, 105, 0, 0, 75, 0, 0, 20, 35]])

    def test_kernels_cover_step(self):
        """A mistake of the plugin: once the kernels cover the steps, what is left is taken to be everything again."""
        self.assertEqual(steps("kernels_cover_step", False), [[100, 100, 0, 0, 0, 0, 0, 0, 0]])
        self.assertEqual(steps("kernels_cover_step", True), [[100, 100, 0, 0, 0, 20, 0, 80, 0]])

    def test_parts_are_the_whole(self):
        for path in sorted(oracle.glob.glob(synthetic("*"))):
            name = path.rsplit("/", 1)[1][:-5]
            status, _, _ = oracle.run("report", "overview", path, "--format=json")
            if status == 0:
                for s in steps(name, compat=False):
                    self.assertEqual(s[0], sum(s[1:]), name)

    def test_mean_step(self):
        table = report("overview", synthetic("two_steps"), "--compat=tb-plugin")
        self.assertEqual(table.rows[0]["mean_us"], 240)


class Operators(Both):
    def test_all_categories(self):
        for compat in (False, True):
            got = operators("all_categories", compat=compat)
            self.assertEqual(got["aten::to"], (1, 60, 60, 0, 0))
            self.assertEqual(got["aten::nll_loss_backward"], (1, 70, 35, 30, 30))
            self.assertEqual(len(got), 2)

    def test_shapes(self):
        rows = report("operators", synthetic("all_categories"), "--compat=tb-plugin", "--group-by=shape").by("name")
        self.assertEqual(rows["aten::to"]["input_shape"], "[[2, 8, 5], [], []]")
        self.assertEqual(rows["aten::nll_loss_backward"]["input_shape"], "[[], [32, 1000], [32]]")

    def test_external_id(self):
        self.same(operators, "external_id", {"aten::matmul": (1, 100, 30, 26, 14), "aten::mm": (1, 70, 70, 12, 12)})

    def test_operator_relation(self):
        for name in ("operator_relation_start", "operator_relation_end"):
            self.same(operators, name, {"aten::matmul": (1, 100, 30, 0, 0), "aten::mm": (1, 70, 70, 0, 0)})

    def test_remove_dup_nodes(self):
        for compat in (False, True):
            got = operators("remove_dup_nodes", compat=compat)
            self.assertEqual(list(got), ["aten::mm"])
            self.assertEqual((got["aten::mm"][0], got["aten::mm"][4]), (1, 8))

    def test_dup_node_with_own_call(self):
        """A mistake of the plugin: the outer op's own launches are lost."""
        self.assertEqual(operators("dup_node_with_own_call", compat=False)["aten::mm"][3:], (11, 11))
        self.assertEqual(operators("dup_node_with_own_call", compat=True)["aten::mm"][3:], (8, 8))

    def test_top_level_runtime(self):
        rows = report("operators", synthetic("top_level_runtime")).by("name")
        self.assertEqual(rows["(unattributed)"]["device_self_ns"], 8000)
        for compat in (False, True):
            self.assertEqual(operators("top_level_runtime", compat=compat)["aten::mm"][3:], (0, 0))
        self.assertEqual(kernels("top_level_runtime")[0]["calls"], 1)

    def test_runtime_called_by_profilerstep(self):
        status, out, err = oracle.run("report", "operators", synthetic("runtime_called_by_profilerstep"))
        self.assertEqual((status, out), (1, b""))
        self.assertIn(b"no framework ops", err)
        self.assertEqual(kernels("runtime_called_by_profilerstep")[0]["calls"], 1)

    def test_runtime_launch_multiple_kernels(self):
        for compat in (False, True):
            self.assertEqual(operators("runtime_launch_multiple_kernels", compat=compat)["Broadcast"][3], 120318 + 132800)
        rows = kernels("runtime_launch_multiple_kernels")
        self.assertEqual([(r["calls"], r["total_duration_us"]) for r in rows], [(2, 253118)])

    def test_no_profilerstep(self):
        self.same(operators, "no_profilerstep", {"aten::to": (1, 60, 60, 0, 0), "aten::nll_loss_backward": (1, 70, 50, 100, 100)})

    def test_two_steps(self):
        self.same(operators, "two_steps", {"aten::to": (1, 60, 55, 40, 40), "aten::mm": (1, 50, 45, 200, 200)})

    def test_self_time(self):
        self.same(operators, "self_time", {"aten::matmul": (1, 100, 35, 36, 16), "aten::mm": (1, 40, 30, 20, 20)})

    def test_partial_overlap(self):
        """The plugin drops the range that crosses; by default none is lost."""
        self.assertEqual(set(operators("partial_overlap", compat=False)), {"outer", "inner", "crossing"})
        self.assertEqual(set(operators("partial_overlap", compat=True)), {"outer", "inner"})

    def test_tensor_core(self):
        rows = report("operators", synthetic("tensor_core"), "--compat=tb-plugin").by("name")
        got = {n: (r["tc_eligible"], r["tc_self_ratio"], r["tc_total_ratio"]) for n, r in rows.items()}
        self.assertEqual(got, {"aten::conv2d": ("Yes", 0, 60.0), "op_no_tc": ("No", 0, 0), "aten::cudnn_convolution": ("Yes", 100.0, 100.0)})


class Kernels(Case):
    def test_all_categories(self):
        r, = kernels("all_categories")
        self.assertEqual([r[c] for c in ("calls", "total_duration_us", "mean_duration_us", "min_duration_us", "max_duration_us")],
                         [1, 15, 15, 15, 15])

    def groups(self, name):
        rows = kernels(name, "--group-by=launch")
        return sorted((r["operator"], r["grid"], r["block"], r["registers_per_thread"], r["shared_memory"], r["calls"],
                       r["total_duration_us"], r["min_duration_us"], r["max_duration_us"]) for r in rows)

    def test_grouping(self):
        self.assertEqual(self.groups("kernel_grouping"), sorted([
            ("op1", "[16, 1, 1]", "[16, 16, 4]", 18, 0, 2, 25, 10, 15),
            ("op1", "[16, 1, 1]", "[16, 16, 2]", 18, 0, 1, 13, 13, 13),
            ("op2", "[16, 1, 1]", "[16, 16, 2]", 18, 0, 1, 17, 17, 17)]))

    def test_mean_of_a_group(self):
        rows = report("kernels", synthetic("kernel_grouping"), "--group-by=launch").rows
        self.assertIn(12500, [r["mean_ns"] for r in rows])

    def test_grouping_missing(self):
        """What a kernel does not state is empty, and makes a group of its own."""
        rows = kernels("kernel_grouping_missing", "--group-by=launch")
        got = {r["total_duration_us"]: (r["grid"] or None, r["block"] or None, r["registers_per_thread"], r["shared_memory"]) for r in rows}
        g, b = "[16, 1, 1]", "[16, 16, 4]"
        self.assertEqual(got, {1: (None, b, 18, 0), 2: (g, None, 18, 0), 3: (g, b, None, 0), 4: (g, b, 18, None), 5: (None,) * 4})

    def test_tensor_core(self):
        rows = {r["name"]: r for r in kernels("tensor_core", "--group-by=launch")}
        tc = next(n for n in rows if "s884" in n)
        for name, want in (("kernel_no_tc", ("op_no_tc", "No", "No")), (tc, ("aten::cudnn_convolution", "Yes", "Yes"))):
            r = rows[name]
            self.assertEqual((r["operator"], r["kernel_uses_tensor_cores"], r["op_is_tensor_cores_eligible"]), want)

    WEIGHTED = ("mean_blocks_per_sm", "mean_est_achieved_occupancy_pct")

    def test_blocks_and_occupancy(self):
        """Weighted by duration, so a kernel of no length has no say."""
        rows = {r["name"]: r for r in report("kernels", synthetic("gpu_utilization")).rows}
        self.assertAlmostEqual(rows["gemm_kernel"]["mean_blocks_per_sm"], 0.6)
        self.assertAlmostEqual(rows["gemm_kernel"]["mean_occupancy_pct"], 0.1)
        self.assertAlmostEqual(rows["norm_kernel"]["mean_blocks_per_sm"], (0.5 * 10 + 0.3 * 25 + 10.5 * 20) / 55)
        self.assertAlmostEqual(rows["norm_kernel"]["mean_occupancy_pct"], (0.6 * 10 + 1.0 * 25 + 0.3 * 20) / 55)
        by_op = {(r["name"], r["operator"]): r for r in report("kernels", synthetic("gpu_utilization"), "--group-by=op").rows}
        self.assertAlmostEqual(by_op["norm_kernel", "aten::mm"]["mean_blocks_per_sm"], (0.5 * 10 + 0.3 * 25) / 35)
        self.assertAlmostEqual(by_op["norm_kernel", "aten::matmul"]["mean_occupancy_pct"], 0.3)
        self.assertAlmostEqual(by_op["gemm_kernel", "aten::matmul"]["mean_blocks_per_sm"], 0.6)
        rows = {r["name"]: r for r in kernels("gpu_utilization")}
        self.assertEqual([rows["gemm_kernel"][c] for c in self.WEIGHTED], [0.6, 0.1])
        self.assertEqual([rows["norm_kernel"][c] for c in self.WEIGHTED], [4.05, 0.67])

    def test_out_of_step(self):
        """Kernels before and after the steps are in the plugin's table as well."""
        r, = kernels("kernel_out_of_step")
        self.assertEqual([r[c] for c in ("calls", "total_duration_us", "mean_duration_us", "max_duration_us", "min_duration_us", *self.WEIGHTED)],
                         [2, 45, 22, 25, 20, 6.06, 0.43])

    def test_lost_by_its_tree(self):
        """Launches that belong to no op of the main thread's tree: in the table by name, and not in that by op."""
        self.assertEqual(sum(r["calls"] for r in kernels("two_processes")), 5)
        self.assertEqual(sum(r["calls"] for r in kernels("two_processes", "--group-by=op")), 4)


class Gpu(Case):
    def device(self, name, *args):
        return report("devices", synthetic(name), *args).rows[0]

    def test_gpu_utilization(self):
        """The plugin divides by the 120 us of the recording, we by the 90 from the first to the last device work."""
        blocks = 0.5 * 5 + 1.0 * 5 + 0.6 * 5 + 0.9 * 5 + 0.3 * 20 + 1.0 * 20
        r = self.device("gpu_utilization")
        self.assertEqual(r["device"], 1)
        self.assertAlmostEqual(r["gpu_utilization_pct"], 60 / 90 * 100)
        self.assertAlmostEqual(r["sm_efficiency_pct"], blocks / 90 * 100)
        self.assertAlmostEqual(r["achieved_occupancy_pct"], (0.6 * 10 + 0.1 * 15 + 1.0 * 25 + 0.3 * 20) / 70)
        plugin = self.device("gpu_utilization", "--compat=tb-plugin")
        self.assertAlmostEqual(plugin["gpu_utilization_pct"], 50.0)
        self.assertAlmostEqual(plugin["sm_efficiency_pct"], round(blocks / 120 * 100, 2))
        r = self.device("gpu_utilization", "--compat=tb-plugin")
        self.assertEqual([r[c] for c in ("gpu_utilization_pct", "sm_efficiency_pct", "achieved_occupancy_pct")], [50.0, 34.17, 0.55])

    def test_kernel_out_of_step(self):
        """No kernel inside the steps: utilisation is zero, and occupancy is not known."""
        rows = report("kernels", synthetic("kernel_out_of_step")).rows
        self.assertAlmostEqual(rows[0]["mean_blocks_per_sm"], (20 * 0.5 + 25 * 10.5) / 45)
        self.assertAlmostEqual(rows[0]["mean_occupancy_pct"], (20 * 0.6 + 25 * 0.3) / 45)
        for args in ((), ("--compat=tb-plugin",)):
            r = self.device("kernel_out_of_step", *args)
            self.assertEqual(r["gpu_utilization_pct"], 0)
            self.assertFalse(r["sm_efficiency_pct"])
            self.assertIsNone(r["achieved_occupancy_pct"])
        self.assertIsNone(r["sm_efficiency_pct"])

    def test_tensor_core(self):
        self.assertAlmostEqual(self.device("tensor_core", "--compat=tb-plugin")["tc_time_pct"], 60.0)


class Memory(Case):
    """Per op: calls, increase, own increase, allocations, own allocations, bytes allocated, own bytes allocated."""

    COLUMNS = ("calls", "size_increase_bytes", "self_size_increase_bytes", "allocations", "self_allocations",
               "allocation_bytes", "self_allocation_bytes")
    GPU = {
        "aten::to": (4, 104, 104, 3, 2, 204, 104),
        "aten::nll_loss_backward": (1, 0, 0, 1, 1, 10, 10),
        "aten::copy_": (1, 0, 0, 1, 1, 100, 100),
        "aten::addmm": (1, 0, 0, 1, 1, 30, 30),
        "aten::as_strided": (1, 0, 0, 1, 1, 50, 50),
        "aten::transpose": (1, 0, 0, 2, 1, 100, 50),
        "aten::t": (1, 0, 0, 3, 1, 200, 100),
        "aten::linear": (1, 20, 20, 7, 3, 360, 130),
    }
    CPU = {
        "aten::to": (4, 4, 4, 1, 1, 4, 4),
        "aten::linear": (1, 50, 0, 2, 1, 150, 100),
        "aten::as_strided": (1, 50, 50, 1, 1, 50, 50),
        "aten::transpose": (1, 50, 0, 1, 0, 50, 0),
        "aten::t": (1, 50, 0, 1, 0, 50, 0),
    }

    def rows(self, device):
        table = report("memory", synthetic("memory_view"), f"--device={device}")
        return {r["operator"]: tuple(r[c] for c in self.COLUMNS) for r in table.rows if r["self_size_increase_bytes"] is not None}

    def test_statistics(self):
        for device, want in (("0", self.GPU), ("cpu", self.CPU)):
            got = self.rows(device)
            for name, w in want.items():
                with self.subTest(device=device, operator=name):
                    self.assertEqual(got[name], w)

    def test_statistics_of_the_plugin(self):
        """The same operators and calls in KB."""
        for device, want in (("0", self.GPU), ("cpu", self.CPU)):
            rows = report("memory", synthetic("memory_view"), f"--device={device}", "--compat=tb-plugin").by("operator")
            self.assertEqual(set(rows), set(want))
            for name, w in want.items():
                got = [rows[name][c.replace("_bytes", "_kb")] for c in self.COLUMNS]
                kb = [v / 1024 if c.endswith("_bytes") else v for c, v in zip(self.COLUMNS, w)]
                self.assertTrue(all(abs(a - b) <= 0.005 for a, b in zip(got, kb)), (name, got, kb))

    def test_first_gpu_is_shown_first(self):
        rows = report("memory", synthetic("memory_view")).by("operator")
        self.assertEqual(rows["aten::linear"]["allocation_bytes"], 360)

    def curve(self, device, *args):
        return report("memory", synthetic("memory_curve"), f"--device={device}", *args).section("curve").rows

    def test_curve(self):
        """12 events on the CPU, 10 on the GPU; times count from the first event."""
        cpu = [(0, 4), (19, 0), (99, 8000), (199, 0), (299, 4), (399, 20), (499, 4020), (599, 4004), (699, 4084), (799, 4080),
               (899, 4000), (904, 0)]
        gpu = [(1, 400), (21, 0), (104, 5000), (105, 8000), (204, 3000), (400, 4024), (498, 4028), (500, 1028), (501, 1024), (905, 0)]
        for device, want in (("cpu", cpu), ("0", gpu)):
            got = [(r["time_ns"] // 1000, r["allocated_bytes"]) for r in self.curve(device)]
            self.assertEqual([g for g in got if g in want], [w for w in want if w in got])
            self.assertTrue(set(want) <= set(got), device)

    def test_curve_as_steps(self):
        """The plugin puts a point with the old value before each change: 2n - 1 points."""
        self.assertEqual(len(self.curve("cpu", "--compat=tb-plugin")), 23)
        self.assertEqual(len(self.curve("0", "--compat=tb-plugin")), 19)


class Modules(Case):
    def test_hierarchy(self):
        """Roots by name; MyModule ran three times with Linear inside, which ran addmm."""
        rows = report("modules", synthetic("module_hierarchy")).rows
        got = [(r["depth"], r["module"], r["calls"], r["operators"]) for r in rows if not r["module"].startswith("(")]
        self.assertEqual(got, [(0, "Conv2", 1, 0), (0, "MyModule", 3, 0), (1, "Linear", 3, 3)])
        rows = report("modules", synthetic("module_hierarchy"), "--compat=tb-plugin").rows
        self.assertEqual([(r["depth"], r["name"], r["occurences"], r["operators"]) for r in rows], got)


if __name__ == "__main__":
    oracle.main()
