"""Findings about computing: what they say is gained against planted amounts, and their figures on real traces against a count by python."""
import json
import os
import tempfile

import labelled
import labelled_compute
import oracle
import verdict_labels_compute
from oracle import Case

A100_FLOPS, A100_BYTES = 312e12, 1555e9  # bf16 on Tensor Cores; memory


def advise(path, *args):
    code, out, err = oracle.run("advise", path, "--format=json", *args)
    if code:
        raise AssertionError(f"advise {path}: exit {code}: {err.decode(errors='replace')}")
    return {r["detector"]: r for r in oracle.Table(json.loads(out)).rows}


class Planted(Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.folder.cleanup()

    def findings(self, trace):
        path = os.path.join(self.folder.name, "x.pt.trace.json.gz")
        trace.save(path)
        return advise(path)

    def of(self, case, detector):
        return self.findings(labelled.CASES[case][1]())[detector]

    def test_labels(self):
        for name, (label, make) in labelled.CASES.items():
            if make.__module__ == "labelled_compute":
                with self.subTest(name):
                    self.assertEqual(set(self.findings(make())), set(label))

    def test_attention(self):
        """us per step: 4 layers of 500 us of kernels, less what one fused kernel takes at 312 TFLOP/s."""
        flops = 2 * 2 * 16 * 1024 * 1024 * 64
        for case, ns, least in (("attention_written_out", 500, flops), ("attention_masked", 600, flops / 2),
                                ("attention_with_softmax_written_out", 500, flops), ("attention_backward", 700, flops * 2.5),
                                ("attention_with_values_between", 500, flops)):
            with self.subTest(case):
                r = self.of(case, "unfused-attention")
                self.assertEqual(r["time_ns"], 2 * 4 * ns * 1000)
                self.assertAlmostEqual(r["gain_ns_per_step"] / 1000, 4 * (ns - least / A100_FLOPS * 1e6), delta=0.1)
        self.assertIn("1027 scores are not a multiple of 8", self.of("attention_not_aligned", "unfused-attention")["evidence"])
        self.assertEqual(self.of("attention_on_two_gpus", "unfused-attention")["time_ns"], 2 * 2 * 4 * 500 * 1000)

    def test_attention_without_steps(self):
        t = labelled.Trace()
        for _ in range(4):
            labelled_compute.attention(t)
        self.assertEqual(self.findings(t)["unfused-attention"]["time_ns"], 4 * 500 * 1000)


    def test_chains(self):
        """us per step, less what reading the first operands and writing the last result takes at 1555 GB/s."""
        x = 8192 * 1024
        wide, half = 8192 * 4096, 8192 * 2816
        for case, count, us, least in (("norm_written_out", 4, 230, 2 * x + 2 * x), ("swiglu_written_out", 4, 220, 2 * half + 2 * half),
                                       ("bias_gelu_dropout", 4, 300, 2 * wide + 2 * 4096 + 2 * wide),
                                       ("norm_and_attention_written_out", 2, 230, 2 * x + 2 * x)):
            with self.subTest(case):
                r = self.of(case, "unfused-elementwise")
                self.assertEqual(r["time_ns"], 2 * count * us * 1000)
                self.assertAlmostEqual(r["gain_ns_per_step"] / 1000, count * (us - least / A100_BYTES * 1e6), delta=0.1)
        self.assertIn("copy_, pow, mean, add, rsqrt, mul, copy_, mul", self.of("norm_written_out", "unfused-elementwise")["evidence"])
        self.assertEqual(self.of("norm_written_out_on_two_gpus", "unfused-elementwise")["time_ns"], 2 * 2 * 4 * 230 * 1000)

    def test_bytes_of_chains(self):
        """Each kernel's operands and result: what one kernel would save."""
        x, rows = 8192 * 1024, 8192
        moved = (2 + 4) * x + (4 + 4) * x + 4 * x + 4 * rows + 8 * rows + 8 * rows + 4 * x + 4 * rows + 4 * x + (4 + 2) * x + 2 * 1024 + (2 + 2) * x
        saved = moved - (2 * x + 2 * x)
        self.assertIn(f"They read and write {4 * moved / 2 ** 30:.2f} GiB per step; one kernel per chain would save {4 * saved / 2 ** 30:.2f} GiB",
                      self.of("norm_written_out", "unfused-elementwise")["evidence"])


    def test_few_blocks(self):
        """us per step: 20 kernels of 100 us on 27 of 108 SMs."""
        r = self.of("few_blocks", "few-blocks")
        self.assertAlmostEqual(r["gain_ns_per_step"] / 1000, 20 * 100 * (1 - 27 / 108), delta=0.1)
        self.assertAlmostEqual(r["share_pct"], 100 * 75 / 250, places=3)
        self.assertIn("27 blocks for 108 SMs: reduce_kernel", r["evidence"])
        r = self.of("few_blocks_on_two_gpus", "few-blocks")
        self.assertEqual(r["time_ns"], 2 * 2 * 20 * 100 * 1000)
        self.assertAlmostEqual(self.of("few_blocks_and_chains", "few-blocks")["gain_ns_per_step"] / 1000, 4 * 200 * (1 - 4 / 108), delta=0.1)

    def test_most_of_several_gpus(self):
        """Eight GPUs save what one of them does: they work at the same time."""
        for case, bound in (("few_blocks_on_one_of_one", "time of these"), ("few_blocks_on_eight_gpus", "of GPU 0, which has most of it: time of these")):
            with self.subTest(case):
                r = self.of(case, "few-blocks")
                self.assertAlmostEqual(r["gain_ns_per_step"] / 1000, 1200 * (1 - 1 / 108), delta=0.1)
                self.assertAlmostEqual(r["share_pct"], 12 * (1 - 1 / 108), places=3)
                self.assertEqual(r["bound"][:len(bound)], bound)

    def test_gpu_with_most(self):
        """GPU 5 does twice what each of the seven others does: what is gained is its own, what is measured is of all."""
        align1 = "void cutlass::Kernel<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x64_nn_align1>"

        def sgemm(t, **more):
            labelled_compute.product(t, 400, [1024, 1024], [1024, 1024], "ampere_sgemm_128x64_nn", "float", "aten::mm", **more)

        def unaligned(t, **more):
            labelled_compute.product(t, 1000, [2048, 768], [768, 50257], align1, op="aten::mm", **more)

        layers = {"few-blocks": labelled_compute.sum_of_one_block, "unfused-attention": labelled_compute.attention_on,
                  "unfused-elementwise": labelled_compute.rms_norm, "many-small-gemms": labelled_compute.small,
                  "dtype-conversions": labelled_compute.forth_and_back, "no-tensor-cores": sgemm, "tf32-off": sgemm, "unaligned-gemm": unaligned}
        for detector, layer in layers.items():
            with self.subTest(detector):
                good = labelled.ELEMENTWISE if layer is sgemm else labelled.TENSOR_CORE
                one = self.findings(labelled_compute.on_gpus(layer, [8], good))[detector]
                r = self.findings(labelled_compute.on_gpus(layer, [4, 4, 4, 4, 4, 8, 4, 4], good))[detector]
                self.assertEqual(r["time_ns"] * 8, one["time_ns"] * 36)
                self.assertGreater(one["gain_ns_per_step"], 0)
                self.assertEqual(r["gain_ns_per_step"], one["gain_ns_per_step"])
                self.assertTrue(r["bound"].startswith("of GPU 5, which has most of it: "), r["bound"])
                self.assertNotIn("which has most", one["bound"])

    def test_peaks_not_known(self):
        """An A100 that no list names: how much of the products' time can go is not known; that they could use Tensor Cores is told once."""
        for name, known in ((labelled.A100["name"], True), ("NVIDIA PG509-210", False)):
            with self.subTest(name):
                t = labelled.CASES["float32_alone_on_ampere"][1]()
                t.gpus = (dict(labelled.A100, name=name),)
                found = self.findings(t)
                cores, tf32 = found["no-tensor-cores"], found["tf32-off"]
                self.assertEqual((cores["part_of"], tf32["part_of"]), (None, "no-tensor-cores"))
                self.assertEqual([r["gain_ns_per_step"] is not None for r in (cores, tf32)], [known, known])
                self.assertEqual("The GPU's peaks are not known (none are published for NVIDIA PG509-210; --gpu=NAME takes those of another one), so the gain is "
                                 "not bounded" in tf32["evidence"], not known)

    def test_device_of_another_number(self):
        """The process calls its only GPU 0, the tracer calls the same GPU 3."""
        def trace(device):
            t = labelled.Trace()
            for _ in t.steps():
                for _ in range(8):
                    labelled_compute.small(t, us=30, device=device)
                    labelled_compute.linear(t, 200, device=device, **labelled_compute.grid(1080))
            return t
        same, other = self.findings(trace(0)), self.findings(trace(3))
        for detector in ("few-blocks", "many-small-gemms"):
            with self.subTest(detector):
                self.assertGreater(same[detector]["gain_ns_per_step"], 0)
                self.assertEqual(other[detector]["gain_ns_per_step"], same[detector]["gain_ns_per_step"])

    def test_few_blocks_without_steps(self):
        t = labelled.Trace()
        for _ in range(10):
            with t.op("aten::sum"):
                t.kernel(100, labelled.REDUCE, **labelled_compute.grid(1))
        self.assertEqual(self.findings(t)["few-blocks"]["time_ns"], 10 * 100 * 1000)

    def test_allocator_retries(self):
        """A call that frees and one that allocates a step, while the GPU has no work."""
        for case in ("allocator_retries", "allocator_retries_on_two_gpus"):
            r = self.of(case, "allocator-retries")
            self.assertAlmostEqual(r["gain_ns_per_step"] / 1000, 800, delta=1)
            self.assertIn("in 4 of 4 steps", r["problem"])
            self.assertIn("up to 2.00 GiB were held that no tensor used", r["evidence"])
        self.assertAlmostEqual(self.of("allocator_retries_and_attention", "allocator-retries")["gain_ns_per_step"] / 1000, 500, delta=1)

    def test_conversions(self):
        for case, gpus, us in (("converted_forth_and_back", 1, 100), ("converted_on_two_gpus", 2, 100), ("converted_and_few_blocks", 1, 150)):
            with self.subTest(case):
                r = self.of(case, "dtype-conversions")
                self.assertEqual(r["time_ns"], 2 * gpus * 4 * 2 * us * 1000)
                self.assertEqual(r["gain_ns_per_step"], 4 * 2 * us * 1000)
        self.assertIn("float32 to bfloat16 of [8192, 1024]", self.of("converted_forth_and_back", "dtype-conversions")["evidence"])

    def test_conversions_without_steps(self):
        t = labelled.Trace()
        labelled_compute.forth_and_back(t, 100)
        self.assertEqual(self.findings(t)["dtype-conversions"]["time_ns"], 200 * 1000)

    def test_small_products(self):
        """us per step: 8 rows of 16 products, which one launch could do in the time of one."""
        for case, us, gpus in (("small_products", 4, 1), ("small_products_that_last", 30, 1), ("small_products_on_two_gpus", 4, 2),
                               ("small_products_and_attention", 4, 1)):
            with self.subTest(case):
                r = self.of(case, "many-small-gemms")
                self.assertEqual((r["time_ns"], r["events"]), (2 * gpus * 8 * 16 * us * 1000, 2 * gpus * 8))
                self.assertEqual(r["gain_ns_per_step"], 8 * 15 * us * 1000)
        self.assertIn("rows of 16 aten::mm, M=256 N=256 K=64 bf16", self.of("small_products", "many-small-gemms")["evidence"])

    def test_small_products_without_steps(self):
        t = labelled.Trace()
        labelled_compute.small(t)
        self.assertEqual(self.findings(t)["many-small-gemms"]["time_ns"], 16 * 4 * 1000)

    def test_compiled(self):
        """The time in regions and guards in which no kernel runs, counted from the events."""
        for case in ("compiled_wrapper", "compiled_wrapper_in_part"):
            with self.subTest(case):
                t = labelled.CASES[case][1]()
                inside = [e for e in t.events if e["name"].startswith(("Torch-Compiled Region", "TorchDynamo Cache"))]
                busy = set()
                for e in t.events:
                    if e["cat"] == "kernel":
                        busy.update(range(e["ts"], e["ts"] + e["dur"]))
                idle = sum(us not in busy for e in inside for us in range(e["ts"], e["ts"] + e["dur"]))
                r = self.findings(t)["compile-wrapper"]
                self.assertEqual(r["gain_ns_per_step"], idle * 1000 // 4)
                self.assertIn("reduce-overhead", r["advice"])
        found = self.findings(labelled.CASES["compiled_wrapper"][1]())
        self.assertIn("reduce-overhead", found["gpu-starvation"]["advice"])
        again = self.of("compiled_again_in_the_steps", "recompiles")
        self.assertIn("torch.compile compiles within the steps", again["problem"])
        self.assertIn("2 of 2 calls of compiled frames run code that was compiled again", again["evidence"])
        self.assertAlmostEqual(again["gain_ns_per_step"] / 1000, 8000, delta=200)


class Real(Case):
    def kernels(self, path, wanted):
        events = oracle.events(oracle.load(path))
        return sum(float(e["dur"]) * 1000 for e in events if e.get("cat") == "kernel" and wanted(e["name"]))

    def test_owlv2(self):
        """Softmax and two bmm over 5185 tokens: 87 % of the GPU's time; the padding of the same products is not a finding of its own."""
        path = oracle.data_glob("verdicts/google_owlv2*.gz")[0] if oracle.data("verdicts") else None
        found = advise(path)
        r = found["unfused-attention"]
        self.assertNotIn("unaligned-gemm", found)
        softmax = self.kernels(path, lambda n: "SoftMaxForward" in n or "softmax_warp" in n)
        self.assertGreater(r["time_ns"], softmax)
        self.assertAlmostEqual(r["share_pct"], 87, delta=0.5)
        for text in ("5185 queries x 5185 keys", "36 layers", "modeling_owlv2.py(410)"):
            self.assertIn(text, r["evidence"])
        # The least of 120 fused kernels of 16 heads over 5185 tokens: 989.5 TFLOP/s; those over 5 tokens need next to nothing.
        flops = 120 * 2 * 2 * 16 * 5185 ** 2 * 64
        self.assertAlmostEqual(r["gain_ns_per_step"], r["time_ns"] - flops / 989.5e12 * 1e9, delta=1e5)

    def test_megatron(self):
        """40 core attentions a rank, of the same time on each, though ranks wait for each other."""
        for rank in range(8):
            path = oracle.data("multirank", "megatron_a100_tp8", f"megatron_kineto_{rank}.json.gz")
            r = advise(path)["unfused-attention"]
            softmax = self.kernels(path, lambda n: "scaled_upper_triang_masked_softmax" in n)
            products = 0
            for row in oracle.report("gemm", path).rows:
                if row["op"] in ("aten::bmm", "aten::baddbmm"):
                    products += row["total_gpu_ns"]
            self.assertEqual(r["time_ns"], round(softmax) + products)
            self.assertIn("2048 queries x 2048 keys", r["evidence"])


    def test_qwen(self):
        """The written-out RMSNorm of 24 layers, with the sum before it: 9 kernels each, counted in the trace by the ops that launched them. Line 218 is RMSNorm's,
        which launches 8 of them; the sum before it is of line 243."""
        path = oracle.data("tracelens", "h100", "Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz")
        events = oracle.events(oracle.load(path))
        step = next(e for e in events if e.get("cat") == "user_annotation" and e["name"].startswith("ProfilerStep"))
        ops = {e["args"]["External id"]: e["name"] for e in events if e.get("cat") == "cpu_op"}
        kernels = sorted((e for e in events if e.get("cat") == "kernel" and e["ts"] >= step["ts"] and e["args"].get("External id") in ops), key=lambda e: e["ts"])
        names = [ops[k["args"]["External id"]].removeprefix("aten::") for k in kernels]
        chain = "add copy_ pow mean add rsqrt mul copy_ mul".split()
        at = [i for i in range(len(names)) if names[i:i + 9] == chain]
        self.assertEqual(len(at), 48)
        ns = sum(round(k["dur"] * 1000) for i in at for k in kernels[i:i + 9])
        r = advise(path)["unfused-elementwise"]
        self.assertIn(f"modeling_qwen2.py(218): forward ({ns / 1e6:.3f} ms, 48 times)", r["evidence"])
        self.assertGreater(r["share_pct"], 50)


    def test_bound_is_the_roofline(self):
        """What a padded product can gain is what the roofline says of it: its bytes count, too."""
        path = oracle.data("tracelens", "h100", "gaunernst_bert-small-uncased__1016001.json.gz")
        row = next(r for r in oracle.report("roofline", path, "--group-by=shape").rows if "N=30522" in (r["params"] or ""))
        self.assertEqual(row["bound"], "memory")
        self.assertAlmostEqual(advise(path)["unaligned-gemm"]["gain_ns_per_step"], row["gain_ns"], delta=2)

    def test_particle_transformer(self):
        """Kernels of copy_ whose two types differ, both of floating point."""
        floats = {"float", "c10::Half"}
        for batch in ("002", "016", "128", "512"):
            path = oracle.data("more", "kineto_pairs", "particle_transformer_a100", f"forward_batch_{batch}.json.gz")
            events = oracle.events(oracle.load(path))
            ops = {e["args"]["External id"]: e for e in events if e.get("cat") == "cpu_op"}
            want = 0
            for e in events:
                copy = ops.get(e["args"].get("External id")) if e.get("cat") == "kernel" else None
                types = copy["args"]["Input type"][:2] if copy and copy["name"] == "aten::copy_" else ["float", "float"]
                want += round(e["dur"] * 1000) if types[0] != types[1] and floats >= set(types) else 0
            self.assertEqual(advise(path)["dtype-conversions"]["time_ns"], want)

    def test_fusion(self):
        """A puzzler whose compiled parts run Inductor's wrapper between short kernels, its compiled functions taken for steps."""
        path = oracle.data("more", "puzzlers", "fusion", "fusion.json.gz")
        found = advise(path, "--key-op=CompiledFunction")
        self.assertIn("reduce-overhead", found["compile-wrapper"]["advice"])
        self.assertNotIn("Move this Python work", found["gpu-starvation"]["advice"])


class Labels(Case):
    def test_all_inputs(self):
        """Every real input: each detector of verdict_labels_compute.py fires where its label says so, and nowhere else."""
        detectors = {row[1] for row in verdict_labels_compute.LABELS}
        seen = 0
        for path in inputs():
            code, out, _ = oracle.run("advise", path, "--format=json", timeout=300)
            if code:
                continue
            seen += 1
            name = os.path.relpath(path, oracle.DATA)
            table = oracle.Table(json.loads(out))
            found, fires = {r["detector"] for r in table.rows}, verdict_labels_compute.fires(name)
            if any("no steps were found" in n for n in table.notes):
                fires -= {"compile-wrapper"}  # it is not applicable
            with self.subTest(name):
                self.assertEqual(found & detectors, fires)
        if not seen:
            self.skipTest("no real traces")


def inputs():
    """What opscope might read: some are other things, which it refuses."""
    folders = ("dlprof", "graphs", "hta", "more", "multirank", "nsys", "nvprof", "pyprof", "tb_plugin", "torch", "tracelens", "verdicts")
    ends = (".json", ".json.gz", ".sqlite", ".nvvp", ".sql")
    return [p for folder in folders for p in oracle.data_glob(folder + "/**/*") if p.endswith(ends) and "expected" not in os.path.basename(p)]


if __name__ == "__main__":
    oracle.main()
