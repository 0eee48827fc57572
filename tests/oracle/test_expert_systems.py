"""DLProf's expert systems: its own findings of a real run, word by word; and each of its detectors on a run that has the problem and on one
that has not. Texts that DLProf is known to print are asserted in full, those written in its manner only by what they name."""
import csv
import json
import os
import tempfile

import nsys_db
import oracle
from nsys_db import call, kernel, nvtx
from oracle import Case

MS = 1000000
PROCESS, THREAD = 10, 11
TENSORFLOW = 9
STRINGS = ["void sgemm(float*)", "cudaLaunchKernel_v7000", "volta_h884gemm_128x64_nn"]


def tensor(*shape, dtype="float32"):
    return {"type": "tensor", "shape": shape, "dtype": dtype, "name": ""}


def marker(mod, op, *args):
    return repr({"mod": mod, "op": op, "args": list(args)})


def linear(dtype="float32"):
    return marker("torch.nn.functional", "linear", tensor(64, 64, dtype=dtype), tensor(64, 64, dtype=dtype))


def config(**pairs):
    return json.dumps({"model_config": pairs})


class Run:
    """A recording: ops one after the other on the host, each with a kernel of its own."""

    def __init__(self, gpus=1):
        self.ranges, self.calls, self.kernels, self.now, self.corr, self.gpus = [], [], [], 0, 0, gpus

    def op(self, text, host, device=None, gpu=0, name=1, **more):
        """`host`, `device` in ns: the range, and the kernel that it launches half way."""
        self.ranges.append(nvtx(self.now, self.now + host, text, PROCESS, THREAD, **more))
        if device:
            self.corr += 1
            start = self.now + host // 2
            self.calls.append(call(start, start + 1000, self.corr, PROCESS, THREAD))
            self.kernels.append(kernel(start + 2000, start + 2000 + device, self.corr, PROCESS, name=name, device=gpu))
        self.now += host
        return self

    def note(self, text):
        self.ranges.append(nvtx(self.now, self.now + 1, text, PROCESS, THREAD))
        self.now += 2
        return self

    def write(self, path):
        gpus = [{"vmId": 1, "id": i, "name": "NVIDIA A100-SXM4-80GB", "totalMemory": 85899345920, "smCount": 108, "threadsPerWarp": 32,
                 "maxWarpsPerSm": 64, "computeMajor": 8, "computeMinor": 0} for i in range(self.gpus)]
        domain = [nvtx(0, None, "tensorflow-core", PROCESS, THREAD, nsys_db.DOMAIN, domainId=TENSORFLOW)]
        nsys_db.make(path, {
            "StringIds": nsys_db.strings(*STRINGS), "META_DATA_EXPORT": [{"name": "EXPORT_SCHEMA_VERSION", "value": "3.25.0"}],
            "TARGET_INFO_GPU": gpus, "TARGET_INFO_CUDA_DEVICE": [{"gpuId": i, "cudaId": i, "pid": PROCESS} for i in range(self.gpus)],
            "PROCESSES": [{"globalPid": nsys_db.pid(PROCESS), "pid": PROCESS, "name": "train.py"}],
            "CUPTI_ACTIVITY_KIND_KERNEL": self.kernels, "CUPTI_ACTIVITY_KIND_RUNTIME": self.calls, "NVTX_EVENTS": domain + self.ranges})


def advise(path, *args):
    code, out, err = oracle.run("advise", "--compat=dlprof", path, "--format=json", *args)
    if code:
        raise AssertionError(f"advise {path}: exit {code}: {err.decode(errors='replace')}")
    return oracle.Table(json.loads(out))


class Real(Case):
    """The CSV that DLProf wrote, against both what it read and what it wrote."""

    def expected(self):
        with open(oracle.data("dlprof", "w_relu", "dlprof_expert_systems.csv"), newline="") as f:
            lines = list(csv.reader(f))
        return lines[0][0], lines[1], lines[2:]

    def same(self, name):
        title, columns, rows = self.expected()
        table = advise(oracle.data("dlprof", "w_relu", name))
        code, text, _ = oracle.run("advise", "--compat=dlprof", oracle.data("dlprof", "w_relu", name))
        self.assertEqual((code, text.decode().splitlines()[0]), (0, title))
        self.assertEqual([c["title"] for c in table.doc["columns"]], columns)
        self.assertEqual([[r["problem"], r["recommendation"]] for r in table.rows], rows)
        self.assertEqual(len(rows), 4)

    def test_recording(self):
        self.same("nsys_profile.sqlite")

    def test_database(self):
        self.same("dlprof_dldb.sqlite")

    def test_iterations_chosen(self):
        """The only one, by its number: the same findings."""
        path = oracle.data("dlprof", "w_relu", "nsys_profile.sqlite")
        self.assertEqual(advise(path, "--steps=0").rows, advise(path).rows)


class Folder(Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.folder.cleanup()


class Synthetic(Folder):
    def found(self, run, *args):
        """problem -> recommendation"""
        path = os.path.join(self.folder.name, "run.sqlite")
        if os.path.exists(path):
            os.remove(path)
        run.write(path)
        return {r["problem"]: r["recommendation"] for r in advise(path, *args).rows}

    def starts(self, found, text):
        return [p for p in found if p.startswith(text)]

    def test_amp(self):
        text = "1 ops were eligible to use tensor cores but none are using FP16"
        self.assertIn(text, self.found(Run().op(linear(), MS, MS // 2)))
        self.assertNotIn(text, self.found(Run().op(linear("float16"), MS, MS // 2)))
        self.assertNotIn(text, self.found(Run().note(config(amp_enabled=True)).op(linear(), MS, MS // 2)))
        self.assertNotIn(text, self.found(Run().op(marker("torch", "relu", tensor(3)), MS, MS // 2)))

    def test_underutilized(self):
        """The share of kernels, and what the rest went to: ops on the host, the data loader, nothing that was recorded."""
        low = "The GPU is underutilized: Only 20.0% of the profiled time is spent on GPU kernel operations"
        run = Run().op(linear(), 9 * MS, 2 * MS)
        run.op(linear(), MS)
        self.assertEqual(self.found(run)[low],
                         "CPU has the highest (non-GPU) usage at 80.0%. Consider swapping ops that are running on the CPU for equivalent GPU ops")
        run = Run().op(linear(), 3 * MS, MS)
        run.op(marker("torch.utils.data.dataloader", "DataLoader"), 7 * MS)
        self.assertEqual(self.found(run)["The GPU is underutilized: Only 10.0% of the profiled time is spent on GPU kernel operations"],
                         "Dataloader has the highest (non-GPU) usage at 70.0%. Investigate the dataloading pipeline as this often indicates "
                         "too much time is being spent here")
        run = Run().op(linear(), 2 * MS, MS)
        run.now = 10 * MS - 2
        run.note("end")
        found = self.found(run)
        self.assertRegex(found["The GPU is underutilized: Only 10.0% of the profiled time is spent on GPU kernel operations"],
                         '^"Other" has the highest \\(non-GPU\\) usage at (79|80)\\.\\d%\\. Investigate the dataloading pipeline')
        self.assertFalse(self.starts(self.found(Run().op(linear(), MS, 10 * MS)), "The GPU is underutilized"))

    def test_unused(self):
        used = Run(gpus=3).op(linear(), MS, 10 * MS, gpu=1)
        self.assertEqual(len([p for p in self.found(used) if p.endswith("unused: 0, 2")]), 1)
        self.assertFalse(self.starts(self.found(Run(gpus=1).op(linear(), MS, 10 * MS)), "The following GPUs"))

    def test_imbalanced(self):
        def two(a, b):
            return self.starts(self.found(Run(gpus=2).op(linear(), MS, a).op(linear(), MS, b, gpu=1)), "GPU utilization is imbalanced: GPUs 1 ")
        self.assertTrue(two(10 * MS, 4 * MS))
        self.assertFalse(two(10 * MS, 6 * MS))

    def test_dataloader(self):
        loader = marker("torch.utils.data.dataloader", "DataLoader")
        found = self.found(Run().op(linear(), MS, MS // 4).op(loader, 9 * MS))
        text = "90.0% of the aggregated run was spent in the dataloader while not simultaneously running on the GPU"
        self.assertTrue(found[text].startswith("Focus on reducing time spent in the training data input process. This could be time spent in "
                                               "file reading, preprocessing and augmentation or file transfer.\nConsider using NVIDIA DALI"))
        self.assertNotIn("No DALI ops detected", found)
        found = self.found(Run().op(linear(), 9 * MS, MS // 4).op(loader, MS))
        self.assertIn("No DALI ops detected", found)
        self.assertFalse([p for p in found if "was spent in the dataloader" in p])
        self.assertNotIn("No DALI ops detected", self.found(Run().op(linear(), MS, MS).note("[DALI][CPU op] Reader")))

    def iterations(self, *lengths):
        run = Run()
        for n in lengths:
            run.op(linear(), n - 2000, MS).note("my_key")
        return run

    def test_iterations(self):
        missing = "Unable to split profile into training iterations: key op  not found"
        steady = self.iterations(*[10 * MS] * 10)
        self.assertEqual(self.found(steady)[missing], "Specify key op by setting the --key_op argument")
        self.assertNotIn(missing, self.found(steady, "--key-op=my_key"))

    def test_range(self):
        text = "The aggregated iteration range of 0 to 12 contains a lot of variation"
        varied = self.iterations(90 * MS, 40 * MS, *[10 * MS] * 8, 30 * MS, 50 * MS)
        self.assertEqual(self.found(varied, "--key-op=my_key")[text],
                         "Try limiting the iteration range to a steady range by rerunning with the --database option and setting "
                         "--iter_start=2 --iter_stop=9")
        self.assertFalse(self.starts(self.found(varied, "--key-op=my_key", "--steps=2..9"), "The aggregated iteration range"))
        self.assertFalse(self.starts(self.found(self.iterations(*[10 * MS] * 40), "--key-op=my_key", "--steps=0..39"),
                                     "The aggregated iteration range"))

    def test_range_does_not_judge_the_tail(self):
        """What is behind the last call of the key op is no iteration: its length says nothing. It is aggregated all the same."""
        equal = self.iterations(*[10 * MS] * 10)
        for args in ((), ("--steps=1..10",)):
            self.assertFalse(self.starts(self.found(equal, "--key-op=my_key", *args), "The aggregated iteration range"), args)
        varied = self.found(self.iterations(*[10 * MS] * 9, 90 * MS), "--key-op=my_key")
        self.assertIn("The aggregated iteration range of 0 to 10 contains a lot of variation", varied)

    def test_markers(self):
        benchmark = "Convolution operations were detected but torch.backends.cudnn.benchmark was not enabled."
        found = self.found(Run().note(config(cudnn_benchmark_disabled=True)).op(linear(), MS, MS))
        self.assertEqual(found[benchmark], "Try setting torch.backends.cudnn.benchmark = True in your network. For best performance, the input "
                                           "shapes should be relatively stable.")
        slow = self.found(Run().note(config(gradcheck=True)).note(config(detect_anomaly=True)).op(linear(), MS, MS))
        self.assertEqual(len([p for p in slow if "gradcheck" in p and "detect_anomaly" in p]), 1)
        clean = self.found(Run().note(config(gradcheck=False)).note(config(emit_nvtx=True)).op(linear(), MS, MS))
        self.assertFalse([p for p in clean if "gradcheck" in p or "emit_nvtx" in p or p == benchmark])

    def test_emit_nvtx(self):
        self.assertTrue([p for p in self.found(Run().op(linear(), MS, MS)) if "emit_nvtx" in p])
        with_it = Run().op("aten::mm, seq = 7", MS, MS).op(linear(), MS, MS)
        self.assertFalse([p for p in self.found(with_it) if "emit_nvtx" in p])

    def tensorflow(self, *types):
        run = Run()
        for t in types:
            run.op(t, MS, MS, domainId=TENSORFLOW)
        return self.found(run)

    def test_tensorflow(self):
        xla = "XLA is not enabled: No XLA ops detected"
        self.assertEqual(self.tensorflow("MatMul", "Relu")[xla], "Try enabling XLA. See https://www.tensorflow.org/xla/"
                         "#enable_xla_for_tensorflow_models for information on how to enable XLA.")
        self.assertNotIn(xla, self.tensorflow("_XlaRun", "Relu"))
        self.assertNotIn(xla, self.found(Run().op(linear(), MS, MS)))
        self.assertTrue(self.starts(self.tensorflow("MatMul", "BiasAdd"), "Fusion is not enabled"))
        self.assertFalse(self.starts(self.tensorflow("_FusedMatMul", "MatMul", "BiasAdd"), "Fusion is not enabled"))
        self.assertFalse(self.starts(self.tensorflow("MatMul", "Relu"), "Fusion is not enabled"))

    def test_batch_size(self):
        """From the allocator's events; DLProf asks the driver."""
        def with_memory(share):
            total = 1 << 34
            events = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 50, "args": {"External id": 1}},
                      {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 12, "dur": 2, "args": {"correlation": 1}},
                      {"ph": "X", "cat": "kernel", "name": "sgemm", "pid": 0, "tid": 7, "ts": 20, "dur": 20,
                       "args": {"device": 0, "stream": 7, "correlation": 1}}]
            if share is not None:
                events.append({"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 15, "s": "t",
                               "args": {"Total Allocated": 512, "Total Reserved": int(total * share), "Bytes": 512, "Addr": 1, "Device Type": 1,
                                        "Device Id": 0}})
            path = os.path.join(self.folder.name, "memory.json")
            with open(path, "w") as f:
                json.dump({"deviceProperties": [{"id": 0, "name": "Tesla V100", "totalGlobalMem": total, "computeMajor": 7, "computeMinor": 0}],
                           "traceEvents": events}, f)
            table = advise(path)
            return {r["problem"]: r["recommendation"] for r in table.rows}, table.notes
        found, _ = with_memory(0.075)
        self.assertEqual(found["GPU Memory is underutilized: Only 7% of GPU Memory is used"],
                         "Try increasing batch size by 4x to increase data throughput")
        self.assertIn("Try increasing batch size by 2x to increase data throughput", with_memory(0.4)[0].values())
        self.assertFalse(self.starts(with_memory(0.6)[0], "GPU Memory"))
        found, notes = with_memory(None)
        self.assertFalse(self.starts(found, "GPU Memory"))
        self.assertTrue([n for n in notes if n.startswith("batch_size_detector not applicable")])

    def test_wrong_name(self):
        code, _, err = oracle.run("advise", "--compat=nvprof", "x")
        self.assertEqual((code, b"expected dlprof" in err), (2, True))


class OwnFromMarkers(Folder):
    """opscope's own detector of the same marker."""

    def test_cudnn_benchmark(self):
        def own(run):
            path = os.path.join(self.folder.name, "own.sqlite")
            if os.path.exists(path):
                os.remove(path)
            run.write(path)
            code, out, err = oracle.run("advise", path, "--format=json")
            self.assertEqual(code, 0, err)
            return [r for r in oracle.Table(json.loads(out)).rows if r["detector"] == "cudnn-benchmark"]
        conv = marker("torch.nn.functional", "conv2d", tensor(8, 3, 32, 32), tensor(16, 3, 3, 3))
        off = Run().note(config(cudnn_benchmark_disabled=True)).op(conv, MS, MS)
        self.assertEqual([r["events"] for r in own(off)], [1])
        self.assertFalse(own(Run().note(config(emit_nvtx=True)).op(conv, MS, MS)))
        self.assertFalse(own(Run().note(config(cudnn_benchmark_disabled=True)).op(linear(), MS, MS)))


if __name__ == "__main__":
    oracle.main()
