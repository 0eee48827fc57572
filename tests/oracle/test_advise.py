"""The detectors, each on a run that has its problem, one that has not, and one that does not say."""
import glob
import json
import os
import re
import tempfile

import nsys_db
import oracle
from oracle import Case

STEP = 100000
V100 = {"id": 0, "name": "Tesla V100", "totalGlobalMem": 1 << 34, "computeMajor": 7, "computeMinor": 0, "warpSize": 32}


def span(name, start, dur, ext=0, cat="cpu_op", tid=1):
    return {"ph": "X", "cat": cat, "name": name, "pid": 10, "tid": tid, "ts": start, "dur": dur, "args": {"External id": ext}}


def launch(corr, start, ext):
    return {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 10, "tid": 1, "ts": start, "dur": 5,
            "args": {"correlation": corr, "External id": ext}}


def kernel(name, corr, start, dur, ext, device=0):
    return {"ph": "X", "cat": "kernel", "name": name, "pid": device, "tid": 7, "ts": start, "dur": dur,
            "args": {"device": device, "stream": 7, "correlation": corr, "External id": ext}}


def run_of(name, op, dur, device=0, corr=1, start=1000):
    """An op that launches one kernel."""
    return [span(op, start, 20, corr), launch(corr, start + 5, corr), kernel(name, corr, start + 100, dur, corr, device)]


def step(*events):
    return [span("ProfilerStep#1", 0, STEP, 999, cat="user_annotation"), *(e for group in events for e in group)]


def memory(total, device=0):
    return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 10, "tid": 1, "ts": 50, "s": "t",
            "args": {"Device Type": 1, "Device Id": device, "Addr": 1, "Bytes": 512, "Total Allocated": total, "Total Reserved": total}}


BUSY = run_of("elementwise_kernel", "aten::add", 95000)


class Advise(Case):
    def advise(self, events, devices=(V100,), **top):
        doc = {"schemaVersion": 1, "deviceProperties": list(devices), **top, "traceEvents": events}
        code, out, err = oracle.run("advise", "-", "--format=json", stdin=json.dumps(doc).encode())
        self.assertEqual(code, 0, err)
        return oracle.Table(json.loads(out))

    def found(self, *args, **kw):
        return {r["detector"]: r for r in self.advise(*args, **kw).rows}

    def not_looked(self, table, detector):
        return [n for n in table.notes if detector in n.split(" not applicable")[0].split(", ")]

    def test_nothing(self):
        self.assertEqual(self.found(step(BUSY, [memory(1 << 20)])), {})

    def test_dataloader(self):
        loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
        r = self.found(step([span(loader, 10, 800)], BUSY))
        self.assertNotIn("dataloader-bound", r)
        for dur, severity in ((6000, "medium"), (60000, "high")):
            r = self.found(step([span(loader, 10, dur)], run_of("k", "aten::add", 20000, start=70000)))["dataloader-bound"]
            self.assertEqual((r["severity"], r["gain_ns_per_step"]), (severity, dur * 1000))
            self.assertIn(f"{100 * dur / STEP:.1f} % of the step time is in DataLoader, with the GPU idle", r["problem"])
        r = self.found(step([span(loader, 10, 60000)]), devices=())["dataloader-bound"]
        self.assertTrue(r["problem"].endswith("is in DataLoader"), r["problem"])

    def test_dataloader_hidden_by_the_gpu(self):
        self.assertEqual(self.found(step([span("enumerate(DataLoader)#x.__next__", 10000, 60000)], BUSY)), {})

    def test_data_parallel(self):
        dp = [span("DataParallel.forward", 500, 3000)]
        second = run_of("k2", "aten::mul", 90000, device=1, corr=2, start=2000)
        r = self.found(step(dp, BUSY, second))["data-parallel"]
        self.assertIn("2 GPUs", r["problem"])
        self.assertNotIn("data-parallel", self.found(step(dp, BUSY)))
        self.assertNotIn("data-parallel", self.found(step(BUSY, second)))

    def test_ddp_without_nccl(self):
        ddp = [span("DistributedDataParallel.forward", 500, 3000)]
        self.assertIn("ddp-without-nccl", self.found(step(ddp, BUSY)))
        self.assertIn("ddp-without-nccl", self.found(step(ddp, BUSY), distributedInfo={"backend": "gloo", "rank": 0}))
        self.assertNotIn("ddp-without-nccl", self.found(step(ddp, BUSY), distributedInfo={"backend": "nccl", "rank": 0}))
        self.assertNotIn("ddp-without-nccl", self.found(step(ddp, BUSY, run_of("ncclKernel_AllReduce", "x", 9, corr=3))))
        self.assertNotIn("ddp-without-nccl", self.found(step(BUSY)))
        old = dict(V100, computeMajor=3, computeMinor=0)
        self.assertNotIn("ddp-without-nccl", self.found(step(ddp, BUSY), devices=[old]))
        self.assertTrue(self.not_looked(self.advise(step(ddp, BUSY), devices=[]), "ddp-without-nccl"))

    def test_communication(self):
        comm = run_of("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "nccl:all_reduce", 40000, corr=2, start=40000)
        add = run_of("elementwise_kernel", "aten::add", 20000)
        r = self.found(step(add, comm))["communication-bound"]
        self.assertEqual(r["severity"], "high")
        self.assertGreaterEqual(r["gain_ns_per_step"], 40000000)
        self.assertNotIn("communication-bound", self.found(step(BUSY, comm)))

    def test_where_to_look(self):
        """The longest piece, on the trace's clock: for who looks at it in a timeline."""
        starved = step(run_of("k", "aten::add", 10000), run_of("k2", "aten::mul", 5000, corr=2, start=60000))
        comm = run_of("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "nccl:all_reduce", 40000, corr=2, start=40000)
        ddp = [span("DistributedDataParallel.forward", 500, 3000), span("DistributedDataParallel.forward", 5000, 9000)]
        for detector, events, want in (("gpu-starvation", starved, (11100, 60005)),  # from the end of the first kernel to the call of the next
                                       ("communication-bound", step(run_of("k", "aten::add", 20000), comm), (40100, 80100)),
                                       ("ddp-without-nccl", step(ddp, BUSY), (5000, 14000)),
                                       ("dataloader-bound", step([span("enumerate(DataLoader)#x.__next__", 20, 900), span("enumerate(DataLoader)#x.__next__", 70000, 29000)],
                                                                 run_of("k", "aten::add", 60000)), (70000, 99000)), ("low-gpu-utilization", starved, None)):
            r = self.found(events)[detector]
            got = (r["from_ns"], r["to_ns"])
            self.assertEqual(got, (None, None) if want is None else tuple(1000 * t for t in want), detector)

    def recorded_by_nsys(self, overhead):
        """Three steps with 80 ms between their two kernels, in which the host does nothing that was recorded, or the recorder itself runs."""
        ms, rows = 1000000, {"StringIds": [{"id": 1, "value": "k"}, {"id": 2, "value": "cudaLaunchKernel"}, {"id": 3, "value": "Buffer flush"}],
                             "CUPTI_ACTIVITY_KIND_KERNEL": [], "CUPTI_ACTIVITY_KIND_RUNTIME": [], "NVTX_EVENTS": [], "PROFILER_OVERHEAD": []}
        for i in range(3):
            begin = (1 + 100 * i) * ms
            rows["NVTX_EVENTS"].append(nsys_db.nvtx(begin, begin + 99 * ms, f"train_step {i}", 10, 11))
            for k, at in enumerate((begin + ms, begin + 90 * ms)):
                rows["CUPTI_ACTIVITY_KIND_RUNTIME"].append(nsys_db.call(at, at + 5000, 2 * i + k + 1, 10, 11))
                rows["CUPTI_ACTIVITY_KIND_KERNEL"].append(nsys_db.kernel(at + 10000, at + 8 * ms, 2 * i + k + 1, 10))
            if overhead:
                rows["PROFILER_OVERHEAD"].append({"start": begin + 10 * ms, "end": begin + 89 * ms, "globalTid": nsys_db.tid(10, 11), "nameId": 3})
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.sqlite")
            nsys_db.make(path, rows)
            code, out, err = oracle.run("advise", path, "--format=json")
        self.assertEqual(code, 0, err)
        return {r["detector"]: r for r in oracle.Table(json.loads(out)).rows}

    def test_advice_names_the_recorders_own_switches(self):
        torch = self.found(step(run_of("k", "aten::add", 10000), run_of("k2", "aten::mul", 5000, corr=2, start=60000)))
        self.assertIn("with_stack=True", torch["gpu-starvation"]["advice"])
        nothing, itself = (self.recorded_by_nsys(overhead) for overhead in (False, True))
        self.assertRegex(nothing["gpu-starvation"]["advice"], r"NVTX ranges .*\(nsys profile -t cuda,nvtx,osrt")
        self.assertIn("nothing recorded", nothing["gpu-starvation"]["problem"])
        self.assertIn("nsys profile -t cuda,nvtx,", itself["gpu-starvation"]["advice"])
        self.assertIn("the profiler itself", itself["gpu-starvation"]["problem"])
        for r in (*nothing.values(), *itself.values()):
            self.assertNotRegex(r["advice"], "with_stack|record_shapes|profile_memory", r["detector"])

    def test_low_utilization(self):
        r = self.found(step(run_of("k", "aten::add", 40000)))["low-gpu-utilization"]
        self.assertIn("GPU 0 40.0 %", r["problem"])
        self.assertEqual((r["severity"], r["gain_ns_per_step"]), ("medium", 60000000))
        table = self.advise([span("aten::add", 0, 10)])
        self.assertTrue(self.not_looked(table, "low-gpu-utilization"))

    def test_many_not_applicable(self):
        """As text one line: their number, and what would make most of them applicable; everywhere else, and when asked, the names and reasons."""
        trace = json.dumps({"schemaVersion": 1, "traceEvents": [span("aten::add", 0, 10)]}).encode()
        said = lambda *args: oracle.run("advise", "-", "--width=100000", *args, stdin=trace)[1].decode()  # noqa: E731
        names, = [n.split(" not applicable")[0].split(", ") for n in self.advise([span("aten::add", 0, 10)], devices=[]).notes
                  if "not applicable: the input has no device work; applicable with: profile(activities=" in n]
        self.assertGreater(len(names), 10)
        brief, full = said(), said("--all")
        line, = [x for x in brief.splitlines() if "not applicable" in x]
        self.assertRegex(line, r"^\d+ detectors are not applicable; (%d )?would be with: profile\(activities=\[\.\.\., ProfilerActivity\.CUDA\]\).* "
                         r"\(opscope advise --all says more\)\.$" % len(names))
        self.assertIn(", ".join(names) + " not applicable: the input has no device work; applicable with: ", full)
        self.assertNotIn(names[0], brief)
        self.assertLess(max(map(len, brief.splitlines())), 200)
        self.assertIn(", ".join(names), said("--format=html"))

    def test_each_reason_has_a_remedy(self):
        """The reasons in the sources, against the table that says what to do about them; and as they are told."""
        detect = os.path.join(oracle.ROOT, "src", "detect")
        with open(os.path.join(detect, "not_applicable.def")) as f:
            known = re.findall(r'^(?:RECORD|SAY|ASIDE)_IT\("((?:[^"\\]|\\.)*)"', f.read(), re.M)
        reasons = []
        for path in sorted(glob.glob(os.path.join(detect, "**", "*.c"), recursive=True)):
            with open(path) as f:
                source = f.read()
            reasons += re.findall(r'findings_missing\([^";]*"((?:[^"\\]|\\.)*)"(?: : "([^"]*)")?', source) if os.path.basename(path) != "shared.c" else []
            reasons += [(r, "") for r in re.findall(r'why(?:\[\])? = "([^"]*)"' if os.path.basename(path) == "shared.c" else r'why\[\] = "([^"]*)"', source)]
        reasons = [r for pair in reasons for r in pair if r and r != "%s"]
        self.assertGreater(len(reasons), 20)
        for r in reasons:
            self.assertTrue([k for k in known if r.startswith(k)], r)
        for k in known:
            self.assertTrue([r for r in reasons if r.startswith(k)], k)
        notes = self.advise([span("aten::add", 0, 10)]).notes
        for n in notes:
            if "not applicable" in n:
                self.assertRegex(n, "; (applicable with|to find out): ")

    def test_fail_on(self):
        """Findings are no failure, unless they are asked to be: of the severity named, or of a higher one."""
        trace = json.dumps({"schemaVersion": 1, "traceEvents": step(run_of("k", "aten::add", 40000)), "deviceProperties": []}).encode()
        status = lambda *args: oracle.run("advise", "-", *args, stdin=trace)[0]  # noqa: E731
        severities = {r["severity"] for r in oracle.Table(json.loads(oracle.run("advise", "-", "--format=json", stdin=trace)[1])).rows}
        self.assertEqual((severities & {"high", "medium"}), {"medium"})
        self.assertEqual([status(), status("--fail-on=high"), status("--fail-on=medium"), status("--fail-on=low")], [0, 0, 3, 3])
        self.assertEqual(status("--fail-on=medium", "--filter=nothing has this", "--limit=1"), 3)  # what is shown is no matter
        self.assertEqual([status("--fail-on=bad"), status("--fail-on=info")], [2, 2])
        for compat in ("dlprof", "torch"):
            with self.subTest(compat=compat):
                self.assertEqual(status("--fail-on=low", "--compat=" + compat), 2)

    SLOW = step(run_of("volta_sgemm_128x64_nn", "aten::mm", 60000), run_of("elementwise_kernel", "aten::add", 20000, corr=2, start=70000))

    def gpu(self, name, cc, warp=32):
        return dict(V100, name=name, computeMajor=cc // 10, computeMinor=cc % 10, warpSize=warp)

    def slow_on(self, *devices, events=None):
        return self.found(events or self.SLOW, devices=devices).get("no-tensor-cores")

    def test_tensor_cores(self):
        self.assertIn("Kernels with 75 % of the time", self.slow_on(V100)["problem"])
        fast = step(run_of("volta_h884gemm_128x64_nn", "aten::mm", 60000))
        self.assertIsNone(self.slow_on(V100, events=fast))
        for name, cc in (("Tesla P100-SXM2-16GB", 60), ("NVIDIA GeForce GTX 1660", 75)):
            self.assertIsNone(self.slow_on(self.gpu(name, cc)))
        self.assertTrue(self.not_looked(self.advise(self.SLOW, devices=[]), "no-tensor-cores"))
        vega = self.gpu("AMD Radeon Graphics", 90, 64)  # gfx900 to gfx90a look alike here: with and without matrix cores
        self.assertTrue(self.not_looked(self.advise(self.SLOW, devices=[vega]), "no-tensor-cores"))

    def test_tensor_core_types(self):
        """Only what the GPU can do is recommended."""
        words = ("float16", "bfloat16", "TF32", "FP8")
        for name, cc, warp, want in (("Tesla V100-SXM2-16GB", 70, 32, {"float16"}), ("Tesla T4", 75, 32, {"float16"}),
                                     ("NVIDIA A100-SXM4-40GB", 80, 32, {"float16", "bfloat16", "TF32"}),
                                     ("NVIDIA A10G", 86, 32, {"float16", "bfloat16", "TF32"}),
                                     ("NVIDIA L4", 89, 32, set(words)), ("NVIDIA H100 PCIe", 90, 32, set(words)),
                                     ("NVIDIA B200", 100, 32, set(words)), ("AMD Instinct MI250X", 90, 64, {"float16", "bfloat16"}),
                                     ("AMD Instinct MI300X", 94, 64, {"float16", "bfloat16", "FP8"})):
            with self.subTest(name):
                r = self.slow_on(self.gpu(name, cc, warp))
                said = set(re.findall(r"\b(?:bfloat16|float16|TF32|FP8)\b", r["advice"]))
                self.assertEqual(said, want)
                amd = name.startswith("AMD")
                text = r["problem"] + r["evidence"] + r["advice"]
                self.assertEqual("matrix cores" in text, amd)
                self.assertEqual("Tensor Core" in text, not amd)
                if amd:
                    self.assertNotRegex(text, "(?i)cuda|tensor core")

    def test_tensor_core_gain(self):
        """Eligible time x (1 - peak in float32 / best peak), by the data sheets."""
        for name, cc, fp32, best in (("Tesla V100-DGXS-32GB", 70, 15.7, 125), ("NVIDIA A100-SXM4-80GB", 80, 19.5, 312),
                                     ("NVIDIA H100 80GB HBM3", 90, 67, 1979), ("NVIDIA GeForce RTX 3090", 86, 35.6, 71)):
            with self.subTest(name):
                r = self.slow_on(self.gpu(name, cc))
                self.assertAlmostEqual(r["gain_ns_per_step"], 60000000 * (1 - fp32 / best), delta=1)
                self.assertIn(f"{fp32:.1f} TFLOP/s in float32 and {best:.1f} in ", r["evidence"])
        a100 = self.gpu("NVIDIA A100-SXM4-80GB", 80)
        for devices in ([V100], [self.gpu("NVIDIA A100-SXM4-80GB MIG 1g.10gb", 80)], [self.gpu("NVIDIA GH200", 90)]):
            self.assertIsNone(self.slow_on(*devices)["gain_ns_per_step"])
        idle = dict(self.gpu("Tesla V100-SXM2-16GB", 70), id=1)
        self.assertIn("TF32", self.slow_on(idle, a100)["advice"])  # the idle one does not count
        both = self.SLOW + run_of("volta_sgemm_128x64_nn", "aten::mm", 5, device=1, corr=3, start=60000)
        r = self.slow_on(a100, idle, events=both)
        self.assertNotIn("TF32", r["advice"])
        self.assertIsNone(r["gain_ns_per_step"])

    def test_tensor_cores_real(self):
        """PyTorch 1.8 on a V100, in float32."""
        path = oracle.data("tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz")
        code, out, err = oracle.run("advise", path, "--format=json")
        self.assertEqual(code, 0, err)
        r = {x["detector"]: x for x in oracle.Table(json.loads(out)).rows}["no-tensor-cores"]
        self.assertNotRegex(r["advice"], "bfloat16|TF32|FP8")
        bound = 399.991e6 / 6 * (1 - 15.7 / 125)  # a little less: some kernels are near what peak and bandwidth allow
        self.assertLessEqual(r["gain_ns_per_step"], bound)
        self.assertGreater(r["gain_ns_per_step"], bound * 0.95)

    def test_memory(self):
        total = V100["totalGlobalMem"]
        r = self.found(step(BUSY, [memory(total * 95 // 100)]))["memory-nearly-full"]
        self.assertIn("95.0 % of 16.00 GiB", r["problem"])
        self.assertNotIn("memory-nearly-full", self.found(step(BUSY, [memory(total * 9 // 10)])))
        self.assertTrue(self.not_looked(self.advise(step(BUSY)), "memory-nearly-full"))

    def test_memory_by_device(self):
        """A finding for each GPU; memory of the host (MKLDNN and the like) and failed requests are not a GPU's."""
        total = V100["totalGlobalMem"]
        both = (V100, dict(V100, id=1))
        table = self.advise(step(BUSY, [memory(total * 95 // 100), memory(total * 97 // 100, 1)]), devices=both)
        found = [r["problem"] for r in table.rows if r["detector"] == "memory-nearly-full"]
        self.assertEqual([("GPU 0" in f, "GPU 1" in f) for f in sorted(found)], [(True, False), (False, True)])
        for host in (0, 2, 5):
            event = memory(total)
            event["args"]["Device Type"] = host
            self.assertNotIn("memory-nearly-full", self.found(step(BUSY, [event])))
        live, failed = memory(0), memory(0)
        for event, nbytes in ((live, total // 2), (failed, total // 2)):
            event["args"]["Bytes"] = nbytes
            del event["args"]["Total Allocated"], event["args"]["Total Reserved"]
        self.assertIn("memory-nearly-full", self.found(step(BUSY, [live, failed])))
        failed["name"] = "[OutOfMemory]"
        self.assertNotIn("memory-nearly-full", self.found(step(BUSY, [live, failed])))

    def test_worst_first(self):
        rows = self.advise(step([span("enumerate(DataLoader)#x.__next__", 10, 60000)], run_of("volta_sgemm", "aten::mm", 20000, start=70000))).rows
        symptoms = ("gpu-starvation", "low-gpu-utilization")
        gains = [r["gain_ns_per_step"] for r in rows if r["part_of"] is None and r["gain_ns_per_step"] is not None and r["detector"] not in symptoms]
        self.assertEqual(gains, sorted(gains, reverse=True))
        self.assertEqual([(r["detector"], r["part_of"]) for r in rows][:2], [("dataloader-bound", None), ("gpu-starvation", None)])  # 60 of 80 ms: below its cause, no part of it
        self.assertGreaterEqual(len(rows), 3)

    def test_how_much_of_the_same_time(self):
        """A part is only what lies in the other finding for four fifths, and says how much; the step becomes shorter by all time that any finding is about, once."""
        loader = [span("enumerate(DataLoader)#x.__next__", 0, 0), span("enumerate(DataLoader)#x.__next__", 1000, 60000)]
        for start, part in ((62000, "dataloader-bound"), (78000, None)):  # the work begins 100 us later and ends with the step
            work = run_of("volta_sgemm", "aten::mm", STEP - start - 100, start=start)
            table = self.advise(step(loader, work))
            r = table.by("detector")["gpu-starvation"]
            self.assertEqual(r["part_of"], part)
            self.assertEqual("; dataloader-bound gains up to 60.000 ms of this time, too" in r["bound"], part is not None, r["bound"])
            outlook = next(n for n in table.notes if n.startswith("Step "))
            gains = {x["detector"]: x["gain_ns_per_step"] for x in table.rows}
            self.assertLessEqual({d for d, g in gains.items() if g}, set(outlook.replace(",", "").split()))
            self.assertRegex(outlook, "^Step 100.000 ms -> at least ")
            idle = max(gains[d] for d in ("gpu-starvation", "low-gpu-utilization") if gains.get(d))
            busy = [g for d, g in gains.items() if d not in ("gpu-starvation", "low-gpu-utilization", "dataloader-bound", "launch-bound") and g]
            least = float(re.search(r"at least ([\d.]+) ms", outlook)[1]) if " ms if" in outlook else 0
            self.assertAlmostEqual(least, (STEP * 1000 - idle - sum(busy)) / 1e6, delta=0.2)


if __name__ == "__main__":
    oracle.main()
