"""Report mfu: against a count by hand, against planted FLOPs, and against the other reports that count FLOPs."""
import os
import re
import tempfile

import labelled
import labelled_compute
import oracle
import test_compute_detectors
from oracle import Case

BF16 = labelled_compute.BF16


def note(table, text):
    return next(n for n in table.notes if text in n)


def roofline(path):
    """FLOPs of all ops with a model that launched device work."""
    code, _, _ = oracle.run("report", "roofline", path, "--format=json")
    return sum(r["flops"] or 0 for r in oracle.report("roofline", path, "--group-by=shape").rows) if code == 0 else 0


class Planted(Case):
    def report(self, trace, *args):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.pt.trace.json.gz")
            trace.save(path)
            return oracle.report("mfu", path, *args)

    def test_two_gpus(self):
        """GPU 0 has two products a step, GPU 1 one; 2 x 1024^3 FLOPs each."""
        t = labelled.Trace(labelled.A100, dict(labelled.A100, id=1))
        for _ in t.steps():
            for device in (0, 0, 1):
                labelled_compute.product(t, 1000, [1024, 1024], [1024, 1024], op="aten::mm", device=device)
        rows = self.report(t).rows
        self.assertEqual([(r["device"], r["step"]) for r in rows], [(0, "1"), (0, "2"), (0, "all"), (1, "1"), (1, "2"), (1, "all")])
        for r in rows:
            flops = 2 * 1024 ** 3 * (2 if r["device"] == 0 else 1) * (2 if r["step"] == "all" else 1)
            self.assertEqual((r["flops"], r["peak_tflops_per_s"], r["known_pct"]), (flops, 312, 100))
            self.assertAlmostEqual(r["tflops_per_s"], flops / r["time_ns"] / 1e3, places=6)
            self.assertAlmostEqual(r["mfu_pct"], 100 * flops / (r["time_ns"] * 1e-9) / 312e12, places=6)

    def test_each_gpu_says_why(self):
        """GPUs 0 and 2 multiply without shapes, GPU 1 multiplies nothing: `devices` says both, and of which GPUs."""
        t = labelled.Trace(labelled.A100, dict(labelled.A100, id=1), dict(labelled.A100, id=2))
        for _ in t.steps():
            for device in (0, 2):
                with t.op("aten::mm", 10):
                    t.kernel(1000, labelled.TENSOR_CORE, device=device)
            labelled_compute.unary(t, 1000, "aten::relu", [1024, 1024], device=1)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.pt.trace.json.gz")
            t.save(path)
            notes = [n for n in oracle.report("devices", path).notes if n.startswith("MFU")]
        self.assertEqual(notes, ["MFU of GPU 0, 2 is unknown: the FLOPs of no kernel are known: shapes were not recorded, or no op launched them.",
                                 "MFU of GPU 1 is unknown: no kernel multiplies matrices."])

    def test_peak_is_that_of_most_flops(self):
        """float32 on ordinary cores does three quarters of the FLOPs."""
        t = labelled.Trace()
        for _ in t.steps():
            for dtype, kernel in ((BF16, labelled.TENSOR_CORE), *(("float", "ampere_sgemm_128x64_nn"),) * 3):
                labelled_compute.product(t, 1000, [1024, 1024], [1024, 1024], kernel, dtype, "aten::mm")
        r = self.report(t).rows[0]
        self.assertEqual((r["peak_tflops_per_s"], r["peak_of"]), (19.5, "float32 on ordinary cores"))
        self.assertEqual(r["types"], "fp32 on ordinary cores 75.0 %, bf16 on Tensor Cores 25.0 %")

    def test_many_types(self):
        """Six types, the least of them first: all count, and the four with most FLOPs are told. Products of 512^3 by turns of 5, 4, 3, 2, 1, 1."""
        kinds = [("c10::Half", "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn", 1), ("double", "ampere_dgemm_64x64_nn", 1),
                 ("float", "ampere_sgemm_128x64_nn", 2), (BF16, "ampere_sgemm_bf16_128x64_nn", 3),
                 ("float", "cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4", 4), (BF16, labelled.TENSOR_CORE, 5)]
        t = labelled.Trace()
        for _ in t.steps():
            for turn in range(5):
                for dtype, kernel, turns in kinds:
                    if turn < turns:
                        labelled_compute.product(t, 100, [512, 512], [512, 512], kernel, dtype, "aten::mm")
        for r in self.report(t).rows:
            steps = 2 if r["step"] == "all" else 1
            self.assertEqual((r["flops"], r["peak_of"]), (steps * 16 * 2 * 512 ** 3, "bfloat16 on Tensor Cores"))
            self.assertEqual(r["types"], "bf16 on Tensor Cores 31.2 %, fp32 on Tensor Cores 25.0 %, bf16 on ordinary cores 18.8 %, fp32 on ordinary cores 12.5 %")
            self.assertAlmostEqual(r["mfu_pct"], 100 * r["flops"] / (r["time_ns"] * 1e-9) / 312e12, places=6)

    def test_unknown(self):
        """An eighth of the kernel time is of a product without shapes; in the second run a twelfth. Collectives do not count."""
        for us, known in ((1000, False), (600, True)):
            t = labelled.Trace()
            for _ in t.steps():
                for _ in range(7):
                    labelled_compute.product(t, 1000, [1024, 1024], [1024, 1024], op="aten::mm")
                t.launch("aten::mm", us, labelled.TENSOR_CORE)
                t.kernel(50000, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", stream=20)
            r = self.report(t).rows[0]
            self.assertEqual(r["mfu_pct"] is not None, known, r)
            self.assertEqual(bool(r["why"]), not known)
            self.assertEqual((r["kernel_ns"], r["products_unknown_ns"]), ((7000 + us) * 1000, us * 1000))

    def test_reasons_as_text(self):
        """At 80 columns each reason is a note, whole."""
        t = labelled.Trace(dict(labelled.A100, name="Some GPU"))
        for n in t.steps():
            if n == 1:
                t.launch("aten::mm", 500, labelled.TENSOR_CORE)
            else:
                labelled_compute.product(t, 1000, [1024, 1024], [1024, 1024], op="aten::mm")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.pt.trace.json.gz")
            t.save(path)
            code, out, err = oracle.run("report", "mfu", path, "--width=80")
        text = " ".join(out.decode().split())
        self.assertEqual(code, 0, err)
        self.assertIn("MFU is unknown in 1 of 3 rows: the FLOPs of no kernel are known: shapes were not recorded, or no op launched them", text)
        self.assertIn("MFU is unknown in 1 of 3 rows: what the GPU can do is not known (--gpu=NAME says which it is)", text)
        self.assertIn("MFU is unknown in 1 of 3 rows: the FLOPs of more than a tenth of the kernel time", text)
        self.assertNotIn("Why unknown", text)

    def test_unknown_gpu(self):
        t = labelled.Trace(dict(labelled.A100, name="Some GPU"))
        for _ in t.steps():
            labelled_compute.product(t, 1000, [1024, 1024], [1024, 1024], op="aten::mm")
        r = self.report(t).rows[0]
        self.assertEqual((r["flops"], r["mfu_pct"], r["peak_tflops_per_s"]), (2 * 1024 ** 3, None, None))
        self.assertIn("--gpu=NAME", r["why"])
        self.assertEqual(self.report(t, "--gpu=NVIDIA H100 80GB HBM3").rows[0]["peak_tflops_per_s"], 989.5)

    def test_names_of_gpus(self):
        """The example in the help is accepted, and an error lists the names that are near."""
        t = labelled.Trace()
        for _ in t.steps():
            labelled_compute.product(t, 1000, [1024, 1024], [1024, 1024], op="aten::mm")
        _, out, _ = oracle.run("report", "--help")
        example = re.search(r'--gpu=NAME\s+the GPUs are these \("([^"]*)"\)', out.decode()).group(1)
        self.assertEqual(self.report(t, f"--gpu={example}").rows[0]["peak_tflops_per_s"], 989.5)
        h100 = "H100 80GB HBM3, H100 PCIe, H100 NVL\n"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.pt.trace.json.gz")
            t.save(path)
            for name, want in (("H100", "several GPUs have this in their name: " + h100), ("H100 SXM", "these are near: " + h100), ("rtx 4090", "these are near: RTX 4090, RTX 4090 D\n"),
                               ("RTX", " more\n"), ("zork", "a product name like 'A100-SXM4-80GB' was expected\n")):
                code, _, err = oracle.run("report", "mfu", path, f"--gpu={name}")
                self.assertEqual(code, 2)
                self.assertTrue(err.decode().endswith(want), err)
                if name == "RTX":  # whole names alone, and as many as are told of
                    names, more = re.search(r"in their name: (.*) and (\d+) more\n", err.decode()).groups()
                    names = names.split(", ")
                    with open(os.path.join(oracle.ROOT, "src", "gpu", "gpus.def")) as f:
                        known = [n for n in re.findall(r'^GPU\("([^"]*)"', f.read(), re.M) if "RTX" in n]
                    self.assertEqual(names, known[:len(names)])
                    self.assertEqual(len(names) + int(more), len(known))

    def test_without_steps(self):
        """From the first to the last device work."""
        t = labelled.Trace()
        for _ in range(3):
            labelled_compute.product(t, 1000, [1024, 1024], [1024, 1024], op="aten::mm")
        rows = self.report(t).rows
        self.assertEqual([(r["step"], r["time_ns"], r["flops"]) for r in rows], [("first to last device work", 3000000, 3 * 2 * 1024 ** 3)])

    def test_of_some_steps(self):
        t = labelled.Trace()
        for n in t.steps(3):
            for _ in range(n):
                labelled_compute.product(t, 1000, [1024, 1024], [1024, 1024], op="aten::mm")
        self.assertEqual([(r["step"], r["flops"]) for r in self.report(t, "--steps=2").rows], [("2", 2 * 2 * 1024 ** 3), ("all", 2 * 2 * 1024 ** 3)])


class Real(Case):
    def test_replays_of_unknown_ops(self):
        """Nine tenths of the kernel time are replays that no capture explains: the rate of the rest is no rate of the GPU."""
        folder = os.path.join(oracle.ROOT, "tests", "data", "h200")
        path = os.path.join(folder, "gpt_bf16_compiled_graphs.json.gz")
        self.assertIn("the ops that graphs replay are not known", note(oracle.report("mfu", path), "MFU is unknown"))
        device = oracle.report("devices", path).rows[0]
        self.assertEqual((device["tflops_per_s"], device["mfu_pct"]), (None, None))
        told = oracle.report("devices", path, "--capture=" + os.path.join(folder, "gpt_bf16_compiled.json.gz")).rows[0]
        self.assertTrue(12 < told["mfu_pct"] < 13, told)

    def test_owlv2(self):
        """29.444 TFLOP in 1.211 s on a GPU of 989.5 TFLOP/s: 2.5 %."""
        oracle.data("verdicts")
        path = oracle.data_glob("verdicts/google_owlv2*.gz")[0]
        for r in oracle.report("mfu", path).rows:
            self.assertAlmostEqual(r["flops"] / 1e12, 29.444, places=3)
            self.assertAlmostEqual(r["time_ns"] / 1e9, 1.211, places=3)
            self.assertAlmostEqual(r["mfu_pct"], 100 * 29.444 / 1.211182 / 989.5, places=2)
            self.assertEqual(r["peak_of"], "bfloat16 on Tensor Cores")

    def test_other_reports(self):
        """The FLOPs of all kernels are those of total-average, less those of ops that launched no kernel in the recording; rows add up."""
        equal = 0
        for path in test_compute_detectors.inputs():
            code, _, _ = oracle.run("report", "mfu", path, "--format=json")
            if code:
                continue
            name = os.path.relpath(path, oracle.DATA)
            table, total = oracle.report("mfu", path), None
            code, _, _ = oracle.run("report", "total-average", path, "--format=json")
            if code == 0:
                total = oracle.report("total-average", path).rows[0].get("flops")
            words = note(table, "FLOPs of all kernels").replace(":", "").replace(";", "").split()
            kernels = int(words[4])
            with self.subTest(name):
                if not name.startswith("pyprof/"):  # total-average has no backward from PyProf's markers
                    self.assertLessEqual(kernels, total or 0)
                self.assertEqual(kernels, roofline(path))
                equal += kernels == total
                steps = sum(r["flops"] or 0 for r in table.rows if r["step"] not in ("all", "first to last device work"))
                every = sum(r["flops"] or 0 for r in table.rows if r["step"] in ("all", "first to last device work"))
                if steps:
                    self.assertEqual(steps, every)
                self.assertLessEqual(every, kernels)
                for r in table.rows:
                    self.assertEqual(r["mfu_pct"] is None, bool(r["why"]))
                    if r["mfu_pct"] is not None:
                        self.assertLess(r["mfu_pct"], 100)
        if not os.path.isdir(oracle.DATA):
            self.skipTest("no real traces")
        self.assertGreater(equal, 10)


if __name__ == "__main__":
    oracle.main()
