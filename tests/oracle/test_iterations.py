"""Steps: ProfilerSteps as python counts them, what is found without them, borders by DLProf's rule, parts of a profile."""
import json
import os
import sqlite3
import tempfile

from oracle import Case, data, data_glob, events, info, load, main, of, report, run

PROFILER = data_glob("tb_plugin/*/*.json.gz") + data_glob("tracelens/*/*.json.gz") + data_glob("tracelens/inference/*/*.json.gz")


def fact(t, name):
    return next((r for r in t.rows if r["fact"] == name), None)


def rows(*args):
    return report("steps", *args).rows


class Profiler(Case):
    def test_numbers(self):
        """The steps of every trace with ProfilerStep are these, in order, and are said to be."""
        checked = 0
        for path in PROFILER:
            names = [(e["ts"], e["name"].split("#")[1]) for e in events(load(path))
                     if e.get("ph") == "X" and e.get("name", "").startswith("ProfilerStep#") and e.get("cat") != "gpu_user_annotation"]
            if not names:
                continue
            with self.subTest(os.path.basename(path)):
                want = [int(n) for _, n in sorted(names)]
                t = info(path)
                self.assertEqual(fact(t, "steps")["number"], len(want))
                self.assertTrue(fact(t, "steps from")["value"].startswith("profiler"))
                self.assertEqual([r["step"] for r in rows(path)], want)
                checked += 1
        if not PROFILER:
            self.skipTest("no real traces")
        self.assertGreaterEqual(checked, 6)

    def test_megatron_ranks(self):
        ranks = data_glob("multirank/megatron_a100_tp8/*.json.gz")
        if not ranks:
            self.skipTest("no real traces")
        self.assertEqual(len(ranks), 8)
        for path in ranks:
            with self.subTest(os.path.basename(path)):
                self.assertEqual([r["step"] for r in rows(path)], [3])


class Found(Case):
    """What was looked at by eye, in traces without ProfilerStep."""

    def found(self, source, steps, *path):
        t = info(data(*path))
        self.assertEqual(fact(t, "steps from")["value"].split(",")[0], source)
        self.assertEqual(fact(t, "steps")["number"], steps)
        return t

    def test_user_ranges(self):
        """44 ranges "Step 0 to 10", "Step 10 to 20", ..."""
        self.found("named", 44, "nsys", "2025.3_nsightful_t4", "power_iteration__baseline.sqlite")
        got = rows(data("nsys", "2025.3_nsightful_t4", "power_iteration__baseline.sqlite"))
        self.assertEqual([r["step"] for r in got], list(range(0, 440, 10)))

    def test_tensorrt(self):
        """188 executions; host ranges alone."""
        self.found("named", 187, "nsys", "tensorrt_poolformer", "poolformer.sqlite")

    def test_serving(self):
        self.found("named", 1, "tracelens", "inference", "sglang_decode", "sglang_Qwen3-8B_decode.json.gz")
        self.found("named", 1, "graphs", "vllm_decode_full", "graph_execution.json.gz")

    def test_captured_graphs_are_no_steps(self):
        for parts in (("tracelens", "inference", "sglang_decode", "capture_traces", "bs_32_rank0.json.gz"),
                      ("graphs", "vllm_decode_full", "capture_traces", "graph_capture_rank_0.1773709742341309550.pt.trace.json.gz")):
            self.assertFalse([n for n in report("steps", data(*parts)).notes if "capture_#" in n])

    def test_time_steps_of_a_simulation(self):
        """Ten, each with one calc_dt kernel; every second one sweeps the other way."""
        self.found("period", 10, "nsys", "2024.5_pipit_cloverleaf", "perlmutter-cloverleaf-cuda.sqlite")

    def test_abstained(self):
        """One step or one call; layers of one step; a loop that nothing marks as steps."""
        for path in (("nsys", "2026.2_mfu_2gpu", "mfu_2gpu_before.sqlite"), ("nsys", "2023.1_gtls", "report1__430cb02d.sqlite"),
                     ("pyprof", "lm_nvprof", "net.sql"), ("pyprof", "mmagic_nsys", "net.sqlite"), ("dlprof", "w_relu", "nsys_profile.sqlite"),
                     ("tracelens", "b200", "eager_trace.json.gz"), ("nvprof", "nccl_8gpu_v16.nvvp")):
            with self.subTest(path[1]):
                t = self.found("none", 0, *path)
                self.assertTrue(any("No steps were found" in n and "The figures are of the " in n for n in t.notes), t.notes)

    def test_loop_is_told_of(self):
        """26 rounds of 1109 operations: the note says so, and names of which there are 26."""
        t = info(data("nsys", "2023.1_gtls", "report1__430cb02d.sqlite"))
        self.assertTrue(any("pattern of 1109 device operations" in n and "repeats 26 times on stream 7. It begins with `calcAllFullSum`" in n for n in t.notes), t.notes)

    def test_plugin_knows_profiler_steps_alone(self):
        t = report("steps", data("nsys", "2025.3_nsightful_t4", "power_iteration__baseline.sqlite"), "--compat=tb-plugin")
        self.assertEqual([r["step"] for r in t.rows], ["0"])


def gpu_calls(path, name):
    """(start, end) of this NVTX range by process, outermost ones."""
    db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    out = {}
    for start, end, tid, text in db.execute(
            "SELECT n.start, n.end, n.globalTid, coalesce(n.text, s.value) FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId"
            " WHERE n.end IS NOT NULL ORDER BY n.globalTid, n.start, n.end DESC"):
        if text and text.split(",")[0] == name:
            calls = out.setdefault(tid >> 24, [])
            if not calls or start >= calls[-1][1]:
                calls.append((start, end))
    db.close()
    return out


class TwoGpus(Case):
    PATH = ("nsys", "2026.2_mfu_2gpu", "mfu_2gpu_before.sqlite")

    def host_starts(self, key):
        """Where steps begin on the host: of point-like calls, the earlier of the i-th of both GPUs, or each."""
        t = report("steps", data(*self.PATH), f"--key-op={key}", "--columns=step,whole,host_ns")
        return t

    def test_equal_counts(self):
        by_process = gpu_calls(data(*self.PATH), "aten::gelu")
        self.assertEqual([len(v) for v in by_process.values()], [17, 17])
        first = [min(a[0], b[0]) for a, b in zip(*by_process.values())]
        t = self.host_starts("aten::gelu")
        got = [r["host_ns"] for r in t.rows if r["whole"]]
        self.assertEqual(got, [b - a for a, b in zip(first, first[1:])])
        self.assertTrue(any("Each of 2 GPUs has as many" in n for n in t.notes))

    def test_other_counts(self):
        by_process = gpu_calls(data(*self.PATH), "FlashAttnFunc")
        self.assertEqual(sorted(len(v) for v in by_process.values()), [33, 34])
        first = sorted(s for v in by_process.values() for s, _ in v)
        t = self.host_starts("FlashAttnFunc")
        got = [r["host_ns"] for r in t.rows if r["whole"]]
        self.assertEqual(got, [b - a for a, b in zip(first, first[1:])])
        self.assertTrue(any("each is a border" in n for n in t.notes))


@of("dlprof")
class DLProf(Case):
    def test_one_iteration(self):
        """iteration_list and iteration_aggregation_list of DLProf's own database."""
        db = sqlite3.connect(f"file:{data('dlprof', 'w_relu', 'dlprof_dldb.sqlite')}?mode=ro&immutable=1", uri=True)
        want = db.execute("SELECT l.iter_value, start_time, stop_time, gpu_utilization FROM iteration_list l"
                          " JOIN iteration_aggregation_list a USING (aggr_id, iter_value)").fetchall()
        db.close()
        got = report("steps", data("dlprof", "w_relu", "nsys_profile.sqlite"), "--compat=dlprof").rows
        self.assertEqual([(r["iteration"], r["start_ns"], r["stop_ns"], round(r["gpu_utilization_pct"], 6)) for r in got], want)

    def test_borders(self):
        """[0, end1 - 1], [end1, end2 - 1], ..., of the later of both GPUs; lengths sum to the whole."""
        path = data(*TwoGpus.PATH)
        ends = [max(a[1], b[1]) for a, b in zip(*gpu_calls(path, "aten::gelu").values())]
        got = report("steps", path, "--compat=dlprof", "--key-op=aten::gelu").rows
        self.assertEqual(len(got), 18)
        self.assertEqual([r["start_ns"] for r in got], [0] + ends)
        self.assertEqual([r["stop_ns"] for r in got[:-1]], [t - 1 for t in ends])
        self.assertEqual(sum(r["total_ns"] for r in got), got[-1]["stop_ns"])
        some = report("steps", path, "--compat=dlprof", "--key-op=aten::gelu", "--steps=3..5").rows
        self.assertEqual(some, got[3:6])

    def test_unequal_borders(self):
        """Each call of either GPU is one."""
        path = data(*TwoGpus.PATH)
        ends = sorted(e for v in gpu_calls(path, "FlashAttnFunc").values() for _, e in v)
        got = report("steps", path, "--compat=dlprof", "--key-op=FlashAttnFunc").rows
        self.assertEqual([r["start_ns"] for r in got], [0] + ends)


class Parts(Case):
    """--steps of reports that know nothing of steps."""

    def test_ops_keep_their_ids(self):
        """Parts of all steps sum to the part with all of them, op by op under the same id and name, but for what is between two steps."""
        path = data("tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz")
        whole = report("ops", path).by("op_id")
        every = report("ops", path, "--steps=5..10")
        calls, gpu = {}, {}
        for step in range(5, 11):
            for r in report("ops", path, f"--steps={step}").rows:
                self.assertEqual(r["name"], whole[r["op_id"]]["name"])
                calls[r["op_id"]] = calls.get(r["op_id"], 0) + r["calls"]
                gpu[r["op_id"]] = gpu.get(r["op_id"], 0) + r["total_gpu_ns"]
        ev = [e for e in events(load(path)) if e.get("ph") == "X"]
        steps = sorted((e["ts"], e["ts"] + e["dur"]) for e in ev if e["name"].startswith("ProfilerStep#"))
        between = [e for e in ev if e["name"] == "aten::zeros" and any(a[1] <= e["ts"] < b[0] for a, b in zip(steps, steps[1:]))]
        self.assertEqual(len(between), 5)  # what begins between two steps is in none, so that steps 5 to 10 are the sum of each
        self.assertEqual(calls, {r["op_id"]: r["calls"] for r in every.rows})
        self.assertEqual(gpu, {r["op_id"]: r["total_gpu_ns"] for r in every.rows})
        self.assertTrue(all(n <= whole[i]["calls"] for i, n in calls.items()))

    def test_device_work_by_launch(self):
        """Kernels of a part are those whose launching call began in the step, by python's own reading."""
        path = data("tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz")
        ev = [e for e in events(load(path)) if e.get("ph") == "X"]
        step = next(e for e in ev if e["name"] == "ProfilerStep#7")
        inside = {e["args"]["correlation"] for e in ev if e.get("cat") == "Runtime" and step["ts"] <= e["ts"] < step["ts"] + step["dur"]}
        work = [e for e in ev if e.get("cat") in ("Kernel", "Memcpy", "Memset") and e["args"].get("correlation") in inside]
        kinds = {}
        for e in work:
            kinds[e["cat"]] = kinds.get(e["cat"], 0) + 1
        t = report("trace", path, "--steps=7")
        got = {r["category"]: r["events"] for r in t.rows}
        self.assertTrue(any(n.startswith("--steps=7: ") for n in t.notes))
        self.assertEqual({k: got[k] for k in kinds}, kinds)


def trace(steps, optimizer=True):
    """`steps` iterations of 100 us, without ProfilerStep: forward, backward, optimizer, each with a kernel."""
    out = []
    for i in range(steps):
        for k, name in enumerate(("forward", "backward", "Optimizer.step#SGD.step" if optimizer else "update")):
            ts, corr = 1000 + 100 * i + 30 * k, 3 * i + k + 1
            out.append({"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": 20})
            out.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": ts + 5, "dur": 5,
                        "args": {"correlation": corr}})
            out.append({"ph": "X", "cat": "kernel", "name": f"k{k}", "pid": 0, "tid": "stream 7", "ts": ts + 12, "dur": 10,
                        "args": {"correlation": corr, "device": 0, "stream": 7}})
    return {"schemaVersion": 1, "traceEvents": out}


class Synthetic(Case):
    def setUp(self):
        super().setUp()
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def write(self, doc):
        path = os.path.join(self.dir.name, "t.json")
        with open(path, "w") as f:
            f.write(json.dumps(doc))
        return path

    def test_optimizer(self):
        path = self.write(trace(5))
        t = report("steps", path)
        self.assertEqual([r["step"] for r in t.rows if r["whole"]], [1, 2, 3, 4])
        self.assertEqual([r["step"] for r in t.rows if not r["whole"]], [0, 5])
        self.assertTrue(all(r["host_ns"] == 100000 for r in t.rows if r["whole"]))
        self.assertTrue(any("from end to end of `Optimizer.step#SGD.step` (5 calls)" in n for n in t.notes))
        mean = report("overview", path).by("role")["Average Step Time"]
        self.assertEqual(mean["mean_ns"], 100000)
        self.assertEqual(mean["total_ns"], 400000)

    def test_type_of_the_numbers(self):
        """Integers where all steps have numbers; as recorded where one has none, or one that is written in another way."""
        for last, kind, want in (("12", "integer", [11, 12]), ("last", "string", ["11", "last"]), ("012", "string", ["11", "012"])):
            path = self.write({"traceEvents": [{"ph": "X", "cat": c, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur} for c, name, ts, dur in (
                ("user_annotation", "ProfilerStep#11", 0, 100), ("cpu_op", "aten::mm", 10, 50), ("user_annotation", "ProfilerStep#" + last, 100, 100))]})
            for t in (report("steps", path), report("overview", path).section("steps"), report("steps", path, "--steps=11..11")):
                self.assertEqual(t.doc["columns"][0]["type"], kind)
                self.assertEqual([r["step"] for r in t.rows], want[:len(t.rows)])
            with self.subTest(last=last):
                self.assertEqual([r["step"] for r in report("steps", path, "--compat=tb-plugin").rows], ["11", last])

    def phases(self, *phases):
        """(optimizer, steps) one after the other; a step is 100 us, of which the optimizer takes the last 10."""
        events, at = [], 0
        for name, steps in phases:
            for _ in range(steps):
                events += [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": at, "dur": 40},
                           {"ph": "X", "cat": "user_annotation", "name": f"Optimizer.step#{name}.step", "pid": 1, "tid": 1, "ts": at + 90, "dur": 10}]
                at += 100
        return self.write({"traceEvents": events})

    def test_two_optimizers_in_turn(self):
        """Those of one phase of the run are the steps: which part that is, and how to see the other, is said."""
        for phases, chosen, other, calls, share in ((("SGD", 10), ("Adam", 10)), "Adam", "SGD", 10, "45.0"), ((("SGD", 5), ("Adam", 15)), "SGD", "Adam", 15, "20.0"):
            path = self.phases(*phases)
            for t in (report("steps", path), report("overview", path).section("steps")):
                note = next(n for n in t.notes if n.startswith("Steps go from"))
                self.assertIn(f"`Optimizer.step#{chosen}.step`", note)
                self.assertIn(f"They cover {share} % of the recording: `Optimizer.step#{other}.step` is called {calls} times outside them; "
                              f"--key-op='Optimizer.step#{other}.step' shows the steps that it makes.", note)
            t = report("steps", path, f"--key-op=Optimizer.step#{other}.step")
            self.assertEqual([r["host_ns"] for r in t.rows if r["whole"]], [100000] * (calls - 1))

    def test_two_optimizers_in_each_step(self):
        """Both mark the same steps: there is nothing to choose."""
        for phases in ([("D", 1), ("G", 1)] * 6, [("D", 3), ("G", 1)] * 6, [("SGD", 8)], [("SGD", 8), ("Adam", 1)]):
            self.assertFalse([n for n in report("steps", self.phases(*phases)).notes if "outside them" in n])

    def test_why_a_pattern_is_no_step(self):
        """Kernels of one CUDA graph repeat within one launch; layers repeat within a step."""
        decode = load(data("graphs", "vllm_decode_full", "graph_execution.json.gz"))
        for e in decode["traceEvents"]:
            e["name"] = "run" if e["name"].startswith("execute_") else e["name"]  # the server's mark of the step
        for path, why in ((self.write(decode), "several are launched by one call, so that they are parts of a step"),
                          (data("nsys", "2026.2_mfu_2gpu", "mfu_2gpu_after.sqlite"), "modules that differ in their number alone occur once each, so that they are layers of a step")):
            with self.subTest(trace=os.path.basename(path)):
                self.assertEqual(sum(why in n for n in report("steps", path).notes), 1)

    def test_layers_are_not_proposed_as_steps(self):
        """Each of two GPUs runs 17 numbered blocks once: what is called 17 times a GPU is called once a block."""
        path = data("nsys", "2026.2_mfu_2gpu", "mfu_2gpu_before.sqlite")
        how = next(n for n in report("steps", path).notes if "layers of a step" in n)
        self.assertNotIn("--key-op", how)
        self.assertIn("An op that is called about 16 times is called once a layer", how)
        doubt = "Perhaps these are layers, not steps: a pattern of device work repeats 16 times"
        for name in ("steps", "overview"):
            self.assertEqual(sum(doubt in n for n in report(name, path, "--key-op=aten::gelu").notes), 1)
        self.assertIn("0 % certain", fact(info(path, "--key-op=aten::gelu"), "steps from")["value"])

    def test_key_op(self):
        path = self.write(trace(5))
        t = report("steps", path, "--key-op=forward")
        self.assertEqual(len([r for r in t.rows if r["whole"]]), 4)
        self.assertEqual(fact(info(path, "--key-op=k1"), "steps")["number"], 4)  # a kernel
        alone = trace(5)
        alone["traceEvents"] = [e for e in alone["traceEvents"] if e["cat"] == "kernel"]
        self.assertEqual(fact(info(self.write(alone), "--key-op=k1"), "steps")["number"], 4)  # a kernel without a call
        path = self.write(trace(5))
        code, _, err = run("report", "steps", path, "--key-op=nothing")
        self.assertEqual(code, 2)
        self.assertIn(b"`forward` (5 calls), `backward` (5 calls)", err)
        self.assertEqual(err.count(b"\n"), 1)

    def test_parts(self):
        """Each step's part has its three kernels; the sum over all steps is what the steps hold."""
        path = self.write(trace(5))
        for name in ("trace", "ops", "memcpy", "devices", "kernels", "pyprof", "api"):
            with self.subTest(name):
                code, _, err = run("report", name, path, "--steps=2..3", "--format=json")
                self.assertIn(code, (0, 1), err)
                self.assertNotIn(b"--steps", err)
        kinds = {r["category"]: r["events"] for r in report("trace", path, "--steps=2..3").rows}
        self.assertEqual(kinds, {"user_annotation": 6, "cuda_runtime": 6, "kernel": 6})

    def test_parts_of_a_kept_file(self):
        """An .opscope file gives the same."""
        path, kept = self.write(trace(5)), os.path.join(self.dir.name, "t.opscope")
        self.assertEqual(run("import", path, "-o", kept)[0], 0)
        for args in (("steps",), ("steps", "--key-op=forward"), ("trace", "--steps=2"), ("ops", "--steps=1..2"), ("overview", "--steps=3")):
            with self.subTest(args):
                a, b = report(args[0], path, *args[1:]), report(args[0], kept, *args[1:])
                self.assertEqual(a.rows, b.rows)
                self.assertEqual(a.notes, b.notes)

    def test_no_steps(self):
        path = self.write(trace(1))
        code, _, err = run("report", "kernels", path, "--steps=1")
        self.assertEqual(code, 1)
        self.assertIn(b"--key-op=NAME", err)
        t = report("steps", path)
        self.assertEqual([r["step"] for r in t.rows if r["whole"]], [0])
        self.assertTrue(any("No steps were found" in n for n in t.notes))


if __name__ == "__main__":
    main()
