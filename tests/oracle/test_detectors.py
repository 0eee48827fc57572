"""How often detectors are right: every one of them over every trace whose problems are known - those of labelled.py, and the real ones,
whose findings were looked at one by one. What is found and is not in the label is false; what is in the label and not found is missed."""
import collections
import json
import os
import tempfile

import labelled
import labelled_compile  # noqa: F401 (adds its cases)
import labelled_compute  # noqa: F401: adds its cases to labelled's
import labelled_occupancy  # noqa: F401 (its cases are then among those of labelled)
import labelled_kinds  # noqa: F401 (adds its cases)
import labelled_waiting  # noqa: F401 (its cases are then among those of labelled)
import nsys_db
import oracle
import segment
import verdict_labels_compute
from oracle import Case

# Real traces and what is true of them. Each finding was checked in the trace: the calls, kernels or gaps that it names are there.
REAL = {
    "dlprof/w_relu/nsys_profile.sqlite": (
        "cudnn-benchmark", "gpu-starvation", "low-gpu-utilization", "no-tensor-cores", "pageable-copies", "synchronising-calls"),
    "hta/amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz": ("copied-constants", "gpu-starvation", "low-gpu-utilization"),
    "hta/cpu_only/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz": (),  # no device, and its collectives lie outside the step
    "hta/critical_path/cuda_event_sync/event_sync_trace.json.gz": ("gpu-starvation", "low-gpu-utilization"),
    "hta/critical_path/end_to_end/simple_add/input/trace.json.gz": ("gpu-starvation", "low-gpu-utilization", "tf32-off"),
    "hta/critical_path/end_to_end/simple_add/output/overlaid_critical_path_trace.json.gz": ("gpu-starvation", "low-gpu-utilization", "tf32-off"),
    "hta/critical_path/simple_add/benchmark_result_493459_1694039959_trace.json.gz": ("gpu-starvation", "low-gpu-utilization", "tf32-off"),
    "hta/nccl_parser_config/nccl_data.json.gz": ("gpu-starvation", "launch-bound", "layout-conversions", "low-gpu-utilization"),
    "hta/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz": ("no-tensor-cores",),
    "hta/timeline_analysis/sampled_rank-0.json.gz": (),  # most events were taken out: its gaps are not those of the run
    "hta/triton_example/triton_example.json.gz": ("gpu-starvation", "low-gpu-utilization"),
    "multirank/megatron_a100_tp8/megatron_kineto_0.json.gz": ("communication-bound", "gpu-starvation"),
    "multirank/megatron_a100_tp8/megatron_kineto_1.json.gz": ("communication-bound",),
    "multirank/megatron_a100_tp8/megatron_kineto_2.json.gz": ("communication-bound", "gpu-starvation"),
    "multirank/megatron_a100_tp8/megatron_kineto_3.json.gz": ("communication-bound",),
    "multirank/megatron_a100_tp8/megatron_kineto_4.json.gz": ("communication-bound",),
    "multirank/megatron_a100_tp8/megatron_kineto_5.json.gz": ("communication-bound",),
    "multirank/megatron_a100_tp8/megatron_kineto_6.json.gz": ("communication-bound", "gpu-starvation"),
    "multirank/megatron_a100_tp8/megatron_kineto_7.json.gz": ("communication-bound",),
    "nsys/2021.2_mordred/report1.sqlite": ("first-iteration", "gpu-starvation", "low-gpu-utilization", "pageable-copies", "synchronising-calls"),
    "nsys/2022.2_pipit_saxpy_full_schema/saxpy-mpi-cuda_nsys_perlmutter0.sqlite": (
        "gpu-starvation", "low-gpu-utilization", "pageable-copies", "synchronising-calls"),
    "nsys/2023.1_gtls/report1__430cb02d.sqlite": (),
    "nsys/2023.1_transformer_osrt/report1__027ecdf7.sqlite": ("gpu-starvation", "low-gpu-utilization", "pageable-copies"),  # one cudaLaunchKernel of 1.2 ms
    "nsys/2023.4_easycuda_empty/report1.sqlite": (),
    "nsys/2024.5_pipit_cloverleaf/perlmutter-cloverleaf-cuda.sqlite": ("pageable-copies", "synchronising-calls"),
    "nsys/2024.6_fuser_h100/report1__da819b5f.sqlite": ("gpu-starvation", "low-gpu-utilization"),
    "nsys/2025.1_fuser_h200/report1.sqlite": ("gpu-starvation", "low-gpu-utilization"),
    "nsys/2025.3_nsightful_t4/power_iteration__baseline.json.gz": (),
    "nsys/2025.3_nsightful_t4/power_iteration__baseline.sqlite": ("gpu-starvation",),
    "nsys/2025.5_flameox_graph/nsight-2025.5.2.sqlite": (),
    "nsys/2026.2_mfu_2gpu/mfu_2gpu_before.sqlite": (),
    "nsys/tensorrt_poolformer/poolformer.sqlite": (),
    "nsys/trixi_stats/report1.sqlite": (),
    "nvprof/nccl_8gpu_v16.nvvp": ("gpu-starvation", "low-gpu-utilization"),
    "pyprof/mmagic_nsys/net.sqlite": ("gpu-starvation", "low-gpu-utilization"),
    "tb_plugin/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz": (
        "dataloader-bound", "gpu-starvation", "no-tensor-cores", "pageable-copies", "single-process-dataloader", "zeroed-gradients"),
    "tb_plugin/resnet50_num_workers_0/worker0.1623143566756.pt.trace.json.gz": (
        "dataloader-bound", "gpu-starvation", "no-tensor-cores", "pageable-copies", "single-process-dataloader", "zeroed-gradients"),
    "torch/torch113_cpu/lstm_full.json.gz": (),
    "torch/torch113_cpu/lstm_plain.json.gz": (),
    "torch/torch113_cpu/resnet_full.json.gz": (),
    "torch/torch113_cpu/resnet_plain.json.gz": (),
    "torch/torch214_cpu/lstm_full.json.gz": (),
    "torch/torch214_cpu/lstm_plain.json.gz": (),
    "torch/torch214_cpu/resnet_full.json.gz": (),
    "torch/torch214_cpu/resnet_plain.json.gz": (),
    "torch/torch26_cpu/lstm_full.json.gz": (),
    "torch/torch26_cpu/lstm_plain.json.gz": (),
    "torch/torch26_cpu/resnet_full.json.gz": (),
    "torch/torch26_cpu/resnet_plain.json.gz": (),
    "tracelens/b200/eager_trace.json.gz": ("gpu-starvation", "launch-bound", "low-gpu-utilization"),
    "tracelens/h100/Falconsai_nsfw_image_detection__1016002.json.gz": ("gpu-starvation", "launch-bound", "low-gpu-utilization"),
    "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz": (),
    "tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz": ("gpu-starvation", "launch-bound", "low-gpu-utilization", "unaligned-gemm"),
    "tracelens/inference/sglang_decode/capture_traces/bs_32_rank0.json.gz": (),
    "tracelens/inference/sglang_decode/sglang_Qwen3-8B_decode.json.gz": (),
    "tracelens/mi300/resnet_act_checkpoint.json.gz": ("communication-bound", "device-copies", "recomputation"),
    "tracelens/triton/trace.json.gz": (),
}


# No input states what they would need; they say so where it may matter.
NEVER_FINDS = {"numa"}


def advise(path):
    code, out, err = oracle.run("advise", path, "--format=json", timeout=300)
    if code:
        raise AssertionError(f"advise {path}: exit {code}: {err.decode(errors='replace')}")
    return oracle.Table(json.loads(out))


def step_ns(path):
    """Mean length of a step; None where there are none."""
    code, out, _ = oracle.run("report", "overview", path, "--format=json", timeout=300)
    if code:
        return None
    rows = oracle.Table(json.loads(out)).section("steps").rows
    return sum(r["total_ns"] for r in rows) / len(rows) if rows else None


class Score:
    def __init__(self):
        self.right, self.false, self.missed = {}, {}, {}

    def add(self, name, found, expected):
        for table, detectors in ((self.right, found & expected), (self.false, found - expected), (self.missed, expected - found)):
            for d in detectors:
                table.setdefault(d, []).append(name)

    def lines(self):
        yield f"{'detector':28} right false missed precision recall"
        for d in sorted({*self.right, *self.false, *self.missed}):
            r, f, m = (len(t.get(d, [])) for t in (self.right, self.false, self.missed))
            share = [f"{n / (n + other):.2f}" if n + other else "-" for n, other in ((r, f), (r, m))]
            yield f"{d:28} {r:5} {f:5} {m:6} {share[0]:>9} {share[1]:>6}"


class Detectors(Case):
    def score(self, traces):
        """Findings against labels, and what must hold of every finding."""
        score = Score()
        for name, path, expected in traces:
            with self.subTest(name):
                table = advise(path)
                found = {r["detector"] for r in table.rows}
                score.add(name, found, set(expected))
                self.sound(table, path)
                self.assertEqual(found, set(expected))
        for line in score.lines():
            print("# " + line)
        return score

    def sound(self, table, path):
        longest = step_ns(path)
        for r in table.rows:
            for column in ("problem", "evidence", "advice", "disprove"):
                self.assertTrue(r[column], (r["detector"], column))
            if r["gain_ns_per_step"] is not None:
                self.assertTrue(r["bound"], r)
                self.assertGreaterEqual(r["gain_ns_per_step"], 0, r)
                self.assertLessEqual(r["gain_ns_per_step"], longest * 1.0001 + 1, r)
            if r["share_pct"] is not None:
                self.assertGreaterEqual(r["share_pct"], 0, r)
                self.assertLessEqual(r["share_pct"], 100.0001, r)

        self.overlaps(table)

    def overlaps(self, table):
        """Gains that count the same time name each other; whatever is idle time names gpu-starvation where that is found."""
        said = collections.defaultdict(set)
        for r in table.rows:
            said[r["detector"]].update((r["bound"] or "").partition("some or all of it is also in the gain of ")[2].split(", "))
            said[r["detector"]].discard("")
        for detector, others in said.items():
            self.assertNotIn(detector, others)
            for other in others:
                self.assertIn(detector, said[other], other)
        for r in table.rows:
            idle = r["bound"] and any(t in r["bound"] for t in ("without device work", "idle time", "these gaps"))
            if idle and r["gain_ns_per_step"] and "gpu-starvation" in said and r["detector"] != "gpu-starvation":
                self.assertIn("gpu-starvation", said[r["detector"]], r["bound"])

    def test_planted_often_enough(self):
        """Each detector has six runs that are there for its sake: with its problem, without it, with something like it, ..."""
        count = collections.Counter(d for about in labelled.ABOUT.values() for d in about)
        self.assertEqual({d: count[d] for d in registered() - NEVER_FINDS if count[d] < 6}, {})

    def test_labelled(self):
        with tempfile.TemporaryDirectory() as folder:
            score = self.score(labelled.write(folder))
        self.assertEqual((score.false, score.missed), ({}, {}))
        silent = registered() - NEVER_FINDS - set(score.right)
        self.assertEqual(silent, set(), "no labelled trace for these")

    def test_real(self):
        traces = [(name, oracle.data(*name.split("/")), {*fires, *verdict_labels_compute.fires(name)}) for name, fires in REAL.items()]
        score = self.score(traces)
        self.assertEqual((score.false, score.missed), ({}, {}))


class Amounts(Case):
    """What findings say is gained at most, against what the run was made to lose; us per step."""

    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.folder.cleanup()

    def finding(self, case, detector, *args):
        path = os.path.join(self.folder.name, case + ".pt.trace.json.gz")
        labelled.CASES[case][1]().save(path)
        code, out, err = oracle.run("advise", path, "--format=json", *args)
        self.assertEqual(code, 0, err)
        return next(r for r in oracle.Table(json.loads(out)).rows if r["detector"] == detector)

    def gain(self, case, detector):
        return self.finding(case, detector)["gain_ns_per_step"] / 1000

    def test_causes(self):
        """20 ms a step, all of one cause, which the finding names."""
        for case, cause in (("allocator", "device memory calls 100 %"), ("garbage_collector", "Python's garbage collector 100 %"),
                            ("python_code", "Python code 100 %"), ("host_op", "operators on the host 100 %"),
                            ("profiler", "the profiler itself 100 %")):
            with self.subTest(case):
                self.assertAlmostEqual(self.gain(case, "gpu-starvation"), 20000, delta=20)
                self.assertIn(cause, self.finding(case, "gpu-starvation")["problem"])
        self.assertIn("train.py(12): metrics (20.000 ms)", self.finding("python_code", "gpu-starvation")["evidence"])

    def test_loader(self):
        for detector in ("dataloader-bound", "single-process-dataloader"):
            self.assertAlmostEqual(self.gain("slow_loader", detector), 20000, delta=20)
            self.assertIn("; some or all of it is also in the gain of ", self.finding("slow_loader", detector)["bound"])

    def test_workers_that_there_are(self):
        """By the class of the loader that PyTorch names, and how many by what the program says of it."""
        self.assertIn("has workers already, and", self.finding("slow_workers", "dataloader-bound")["advice"])
        self.assertIn("Set num_workers > 0", self.finding("slow_loader", "dataloader-bound")["advice"])
        single, multi = "_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"
        for workers, loader, want in ((2, multi, "has workers already (num_workers=2), and"), (3, "Loader", "has workers already (num_workers=3), and"),
                                      (0, "Loader", "Set num_workers > 0"), (2, single, "Set num_workers > 0"), (-1, "Loader", "Set num_workers > 0")):
            s = segment.Segment()
            s.push(100, json.dumps({"model_config": {"num_workers": workers}}), segment.BASE + 100)
            s.pop(100, segment.BASE + 200)
            for i in range(2):
                at = segment.BASE + 1000 + i * 100_000
                s.push(100, f"ProfilerStep#{i}", at)
                s.push(100, f"enumerate(DataLoader)#{loader}.__next__", at + 10)
                s.pop(100, at + 60_000)
                s.pop(100, at + 90_000)
            folder = os.path.join(self.folder.name, f"{workers}{loader}")
            os.mkdir(folder)
            s.write(folder)
            code, out, err = oracle.run("advise", folder, "--format=json")
            self.assertEqual(code, 0, err)
            found = [r["advice"] for r in oracle.Table(json.loads(out)).rows if r["detector"] == "dataloader-bound"]
            self.assertEqual(len(found), 1)
            self.assertIn(want, found[0], (workers, loader))

    def test_waiting(self):
        """20 times a step the GPU stands idle until the host is back: 400 us of its own work and a launch. With the op and the line."""
        r = self.finding("item_each_layer", "synchronising-calls")
        self.assertEqual(r["events"], 2 * 20 - 1)  # each .item() once, though its copy waits, too; nothing comes after the last
        self.assertAlmostEqual(r["gain_ns_per_step"] / 1000, 20 * 410, delta=20 * 12)
        self.assertIn("aten::_local_scalar_dense at train.py(19): step", r["evidence"])

    def test_launches(self):
        """A kernel of 8 us every 20 + 5 us."""
        self.assertAlmostEqual(self.gain("small_kernels", "launch-bound"), 300 * (20 - 8), delta=60)
        self.assertIn("12.0 us on average until its work began, of it 5.0 us from the call on, which gpu-starvation does not count", self.finding("small_kernels", "launch-bound")["evidence"])
        self.assertAlmostEqual(self.gain("small_kernels", "gpu-starvation"), 300 * (20 - 8 - 5), delta=60)

    def test_where_to_look(self):
        """The call with most idle time behind it, until the device works again; the step with most of the gaps."""
        r = self.finding("item_each_layer", "synchronising-calls")
        self.assertAlmostEqual((r["to_ns"] - r["from_ns"]) / 1000, 2000 + 410, delta=20)
        path = os.path.join(self.folder.name, "small_kernels.pt.trace.json.gz")
        r = self.finding("small_kernels", "launch-bound")
        steps = oracle.Table(json.loads(oracle.run("report", "steps", path, "--format=json")[1])).rows
        self.assertIn(r["from_ns"], [s["start_ns"] for s in steps])
        # Others: the op with most of it, which began in a step.
        for case, detector in (("pageable_input", "pageable-copies"), ("zeroed_gradients", "zeroed-gradients"), ("float32_on_ampere", "tf32-off"),
                               ("zeros_to_device", "copied-constants"), ("vocabulary_not_padded", "unaligned-gemm"), ("search_in_the_steps", "cudnn-benchmark"),
                               ("slow_loader", "single-process-dataloader")):
            r = self.finding(case, detector)
            steps = oracle.Table(json.loads(oracle.run("report", "steps", os.path.join(self.folder.name, case + ".pt.trace.json.gz"), "--format=json")[1])).rows
            self.assertTrue(any(s["start_ns"] <= r["from_ns"] < r["to_ns"] <= s["start_ns"] + s["total_ns"] for s in steps), (case, r["from_ns"], r["to_ns"]))

    def test_work(self):
        for case, detector, want in (
                ("uneven", "uneven-gpus", 30000 - (30000 + 18000) / 2), ("pageable_input", "pageable-copies", 3000 + 10),
                ("float32_on_ampere", "tf32-off", 10 * 1000 * (1 - 19.5 / 156)), ("slow_network", "communication-bound", 15000),
                ("checkpointing", "recomputation", 4 * 2000), ("one_by_one", "unfused-optimizer", 200 * 20),
                ("foreach", "unfused-optimizer", 15 * 200), ("zeroed_gradients", "zeroed-gradients", 100 * 5),
                ("bias_before_norm", "conv-bias", 5 * 200), ("layouts_around_convolutions", "layout-conversions", 5 * 3 * 200), ("search_in_the_steps", "cudnn-benchmark", 5 * 12 * 2000),
                ("zeros_to_device", "copied-constants", 10 * 5 + 425)):
            with self.subTest(case):
                self.assertAlmostEqual(self.gain(case, detector), want, delta=want * 0.02 + 10)

    def test_product_at_peak(self):
        """Kernel time less what the peak allows, 312 TFLOP/s."""
        flops = 2 * 2048 * 768 * 50257
        self.assertAlmostEqual(self.gain("vocabulary_not_padded", "unaligned-gemm"), 10 * (1000 - flops / 312e6), delta=1)
        self.assertIn("pad N to 50264", self.finding("vocabulary_not_padded", "unaligned-gemm")["evidence"])
        self.assertIn("pad K to 776", self.finding("inner_size_not_padded", "unaligned-gemm")["evidence"])

    def test_kinds(self):
        """The same cause costs as much beside another GPU or a loader, and without marked steps as often as it was planted; us."""
        elsewise = {
            "uneven_beside_a_gpu": 30000 - (30000 + 18000 + 30000) / 3,
            "slow_zeros_to_device_without_steps": 2 * self.gain("slow_zeros_to_device", "copied-constants") - 11000,  # the first tensor is filled before the time looked at
            "one_by_one_without_steps": 200 * 20,                     # the optimizer tells the steps
            "slow_loader_without_steps": 20000,                       # as the first tensor
            "idle_gpu_with_a_loader": 200000 + 280000 / 4, "python_code_with_a_loader": 20000 + 100000 / 4}
        compared = 0
        for detector, name in labelled_kinds.PROBLEMS.items():
            for kind in (labelled_kinds.without_steps, labelled_kinds.beside_a_gpu, labelled_kinds.with_a_loader):
                planted = f"{name}_{kind.__name__}"
                alone = self.finding(name, detector)["gain_ns_per_step"]
                if planted not in labelled.CASES or alone is None or planted == "sleep_in_steps_without_steps":
                    continue
                steps = len(labelled_kinds.steps_of(labelled.CASES[name][1]())) if kind is labelled_kinds.without_steps else 1
                want = elsewise.get(planted, alone / 1000 * steps)
                compared += 1
                with self.subTest(planted):
                    self.assertAlmostEqual(self.gain(planted, detector), want, delta=want * 0.1)
        self.assertGreater(compared, 60)

    def test_search_at_peak(self):
        """Kernel time less what one run of the convolution takes at 312 TFLOP/s."""
        flops = 2 * 64 * 256 * 56 * 56 * 256 * 9
        r = self.finding("search_for_a_large_convolution", "cudnn-benchmark")
        self.assertAlmostEqual(r["gain_ns_per_step"] / 1000, 5 * (12 * 2000 - flops / 312e6), delta=10)
        self.assertIn("less the least time that the GPU's peaks allow", r["bound"])

    def test_of_some_steps(self):
        """--steps: the same finding of one step."""
        whole, one = (self.finding("pageable_input", "pageable-copies", *a) for a in ((), ("--steps=2",)))
        self.assertEqual((whole["events"], one["events"]), (2, 1))
        self.assertAlmostEqual(whole["gain_ns_per_step"], one["gain_ns_per_step"], delta=20000)


class Evidence(Case):
    """What findings on real traces count, counted again."""

    RESNET = "tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz"

    def finding(self, path, detector):
        return next(r for r in advise(path).rows if r["detector"] == detector)

    def events_in_steps(self, path, keep):
        """Complete events that begin in a step, steps and events as they are in the file."""
        events = [e for e in oracle.events(oracle.load(path)) if e.get("ph") == "X"]
        steps = [(e["ts"], e["ts"] + e["dur"]) for e in events if e["name"].startswith("ProfilerStep#")]
        return [e for e in events if keep(e) and any(a <= e["ts"] < b for a, b in steps)], len(steps)

    def test_zeroed_gradients(self):
        path = oracle.data(*self.RESNET)
        outer, _ = self.events_in_steps(path, lambda e: e["name"].startswith("Optimizer.zero_grad"))
        zeros, steps = self.events_in_steps(path, lambda e: e["name"] == "aten::zero_" and
                                            any(o["ts"] <= e["ts"] < o["ts"] + o["dur"] and o["tid"] == e["tid"] for o in outer))
        r = self.finding(path, "zeroed-gradients")
        self.assertEqual((r["events"], steps), (len(zeros), 6))
        self.assertIn(f"{len(zeros) // steps} times", r["evidence"])

    def test_pageable_copies(self):
        path = oracle.data(*self.RESNET)
        copies, steps = self.events_in_steps(path, lambda e: "Pageable" in e["name"])
        r = self.finding(path, "pageable-copies")
        self.assertEqual(r["events"], len(copies))
        self.assertLessEqual(r["time_ns"], sum(e["dur"] for e in copies) * 1000 * 1.3)  # and some idle time in their calls

    def test_loader_and_gaps(self):
        """Time without device work, by adding up the file's events; and what of it is in the loader."""
        path = oracle.data(*self.RESNET)
        loader, steps = self.events_in_steps(path, lambda e: "DataLoader" in e["name"])
        work = [e for e in oracle.events(oracle.load(path)) if e.get("cat") in ("Kernel", "Memcpy", "Memset")]
        busy, end = 0, 0
        for a, b in sorted((e["ts"], e["ts"] + e["dur"]) for e in work):
            busy += max(b - max(a, end), 0)
            end = max(end, b)
        in_loader = sum(e["dur"] for e in loader) - sum(max(0, min(e["ts"] + e["dur"], w["ts"] + w["dur"]) - max(e["ts"], w["ts"]))
                                                        for e in loader for w in work)
        idle = step_ns(path) * steps - busy * 1000
        r = self.finding(path, "gpu-starvation")
        self.assertIn(f"{idle / steps / 1e6:.3f} ms without device work", r["evidence"])
        self.assertLess(r["time_ns"], idle)
        self.assertGreater(r["time_ns"], idle * 0.94)  # the rest is latency after the launch
        share = 100 * in_loader * 1000 / r["time_ns"]
        self.assertRegex(r["problem"], "data loader (%d|%d) %%" % (int(share), int(share) - 1))

    def test_vocabulary(self):
        """BERT's 30522 words: its last product is the only one that is not aligned."""
        path = oracle.data("tracelens", "h100", "gaunernst_bert-small-uncased__1016001.json.gz")
        kernels, _ = self.events_in_steps(path, lambda e: e.get("cat") == "kernel" and "align2" in e["name"])
        r = self.finding(path, "unaligned-gemm")
        self.assertEqual((r["events"], r["time_ns"]), (1, round(sum(e["dur"] for e in kernels) * 1000)))
        self.assertIn("pad N to 30528", r["evidence"])


def registered():
    """The ids of opscope's own detectors, from the page that is made of the registry."""
    with open(os.path.join(oracle.ROOT, "docs", "detectors.md")) as f:
        text = f.read()
    own = text.split("\n## DLProf")[0] if "\n## DLProf" in text else text
    return {line[3:].strip() for line in own.splitlines() if line.startswith("## ") and " " not in line[3:].strip()}


if __name__ == "__main__":
    oracle.main()
