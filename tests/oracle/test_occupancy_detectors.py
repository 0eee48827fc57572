"""Findings about how blocks lie on the GPU: which planted runs they are of, and what they say is gained."""
import gzip
import json
import os
import re
import tempfile

import labelled
import oracle
from labelled import A100
from labelled_occupancy import of, steps, tiled
from oracle import Case
from test_compute_detectors import advise


class Planted(Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.folder.cleanup()

    def path(self, trace):
        path = os.path.join(self.folder.name, "x.pt.trace.json.gz")
        trace.save(path)
        return path

    def findings(self, trace):
        return advise(self.path(trace))

    def of(self, case, detector):
        return self.findings(labelled.CASES[case][1]())[detector]

    def test_labels(self):
        looked = 0
        for name, (label, make) in labelled.CASES.items():
            if make.__module__ == "labelled_occupancy":
                looked += 1
                with self.subTest(name):
                    self.assertEqual(set(self.findings(make())), set(label))
        self.assertGreater(looked, 30)

    def test_few_warps(self):
        """us per step: 8 of 64 warps leave 7/8 of the time; where the bytes are known, no more than the time above 201 MB at 600 GB/s."""
        above = 1000 - 3 * 4096 * 4096 * 4 / 600e9 * 1e6
        for case, us in (("low_occupancy_by_registers", 3000 * 7 / 8), ("low_occupancy_by_shared_memory", 3000 * 7 / 8), ("low_occupancy_by_block_size", 10 * above), ("low_occupancy_without_sizes", 3000 * 7 / 8),
                         ("low_occupancy_of_two_kinds", 4000 * 7 / 8), ("low_occupancy_on_two_gpus", 6 * 300 * 7 / 8), ("low_occupancy_and_few_blocks", 3000 * 7 / 8),
                         ("low_occupancy_without_steps", 3000 * 7 / 8), ("last_wave_and_low_occupancy", 3000 * 7 / 8)):
            with self.subTest(case):
                self.assertAlmostEqual(self.of(case, "low-occupancy")["gain_ns_per_step"] / 1000, us, delta=0.1)

    def test_limits(self):
        for case, evidence, problem, advice in (
                ("low_occupancy_by_registers", "8 of 64 warps, by 255 registers per thread: reduce_kernel", "at once, because of their registers", "__launch_bounds__"),
                ("low_occupancy_by_shared_memory", "8 of 64 warps, by 96.0 KiB of shared memory per block: reduce_kernel", "at once, because of their shared memory", "fewer stages"),
                ("low_occupancy_by_block_size", "16 of 48 warps, by blocks of 32 threads: vectorized_elementwise_kernel", "at once, because of the size of their blocks", "128 to 256"),
                ("low_occupancy_of_two_kinds", "8 of 64 warps, by 255 registers", "at once, mostly because of their registers", "__launch_bounds__")):
            with self.subTest(case):
                r = self.of(case, "low-occupancy")
                self.assertIn(evidence, r["evidence"])
                self.assertIn(problem, r["problem"])
                self.assertIn(advice, r["advice"])

    def test_severity(self):
        """Where it is not known that memory could be faster, it is a hint."""
        for case, severity in (("low_occupancy_by_registers", "medium"), ("low_occupancy_without_sizes", "low"), ("low_occupancy_of_an_unknown_kernel", "low")):
            self.assertEqual(self.of(case, "low-occupancy")["severity"], severity)

    def test_last_waves(self):
        """us per step: 1 - waves / waves rounded up; near the peak, the time above 1024 x 8192 x 6144 products at 312 TFLOP/s."""
        one, two = 1 - 120 / 216, 1 - 256 / 432
        above = 400 - 2 * 1024 * 8192 * 6144 / 312e12 * 1e6
        for case, us in (("last_wave_nearly_empty", 3000 * one), ("last_wave_of_two_blocks_on_an_sm", 3000 * two), ("last_wave_on_two_gpus", 6 * 300 * one),
                         ("last_wave_and_few_blocks", 3000 * one), ("last_wave_without_steps", 3000 * one), ("last_wave_near_the_peak", 10 * above),
                         ("last_wave_of_attention", 3000 * one)):
            with self.subTest(case):
                self.assertAlmostEqual(self.of(case, "wave-quantisation")["gain_ns_per_step"] / 1000, us, delta=0.1)

    def test_shares_of_last_waves(self):
        """Of 450 us: SMs with two blocks share them, those with three end last."""
        for case, lost in (("last_wave_nearly_empty", 1 - 120 / 216), ("last_wave_of_two_blocks_on_an_sm", 1 - 256 / 324)):
            with self.subTest(case):
                self.assertAlmostEqual(self.of(case, "wave-quantisation")["share_pct"], 100 * 300 * lost / 450, places=3)
        self.assertIn("256 blocks, 1.19 waves of 216: ampere_bf16_s16816gemm", self.of("last_wave_of_two_blocks_on_an_sm", "wave-quantisation")["evidence"])
        self.assertIn("120 blocks would be whole waves if they were 108 (0.90 times as many) or 216 (1.80 times as many)", self.of("last_wave_nearly_empty", "wave-quantisation")["evidence"])

    def test_no_launch_counts_twice(self):
        """From one block to many: fewer than SMs are few-blocks' case, up to a wave none's, more wave-quantisation's."""
        for count, found in ((60, {"few-blocks"}), (107, set()), (108, set()), (109, {"wave-quantisation"}), (130, {"wave-quantisation"}), (216, set()), (217, {"wave-quantisation"})):
            with self.subTest(count):
                self.assertEqual(set(self.findings(steps(of(tiled, count=count)))), found)

    def test_not_known(self):
        """Without limits of the GPU, or what the launch took, nothing is said but why."""
        amd = dict(A100, name="AMD Instinct MI210", computeMajor=9, warpSize=64, numSms=104)
        for name, trace, why in (("amd", steps(of(tiled, count=120), gpus=(amd,)), "how many blocks an SM of these GPUs holds is not known"),
                                 ("launch", steps(lambda t: t.kernel(300, labelled.TENSOR_CORE, grid=[120, 1, 1], block=[256, 1, 1])),
                                  "the input does not state grid, registers and shared memory of products")):
            with self.subTest(name):
                code, out, err = oracle.run("advise", self.path(trace), "--all")
                self.assertEqual(code, 0, err)
                self.assertIn(why, out.decode())

    def test_another_gpu(self):
        """--gpu takes the GPUs for another one: what the input says of an A100 does not hold of an H100, and is unknown."""
        path = self.path(labelled.CASES["last_wave_nearly_empty"][1]())
        h100 = oracle.report("devices", path, "--gpu=H100 80GB HBM3").rows[0]
        self.assertEqual((h100["name"], h100["compute_capability"], h100["sm_count"]), ("H100 80GB HBM3", "9.0", None))
        self.assertNotIn(b"wave-quantisation", oracle.run("advise", path, "--gpu=H100 80GB HBM3", "--format=csv")[1])
        self.assertIn(b"wave-quantisation", oracle.run("advise", path, "--gpu=A100-SXM4-80GB", "--format=csv")[1])


class Estimates(Case):
    """Recordings without the occupancy that Kineto states: what the launches give is what it stated."""
    FILES = (("tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz"), ("hta", "ns_resolution_trace", "rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz"),
             ("more", "kineto_pairs", "particle_transformer_a100", "forward_batch_016.json.gz"), ("tracelens", "h100", "Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"),
             ("tracelens", "b200", "eager_trace.json.gz"))

    def occupancy(self, path):
        """By kernel and launch."""
        code, out, err = oracle.run("report", "kernels", path, "--group-by=launch", "--steps=all", "--format=json", "--limit=0")
        self.assertEqual(code, 0, err)
        return {tuple(r[k] for k in ("name", "operator", "grid", "block", "registers_per_thread", "shared_bytes")): r["mean_occupancy_pct"] for r in oracle.Table(json.loads(out)).rows}

    def test_estimates(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in self.FILES:
                path, without = oracle.data(*name), os.path.join(folder, "x.pt.trace.json.gz")
                with gzip.open(path, "rt") as f, gzip.open(without, "wt", compresslevel=1) as g:
                    g.write(re.sub(r'"est\. achieved occupancy %":', '"unstated":', f.read()))
                stated, estimated = self.occupancy(path), self.occupancy(without)
                with self.subTest(name[-1]):
                    self.assertEqual(stated.keys(), estimated.keys())
                    self.assertGreater(sum(v is not None for v in stated.values()), 20)
                    for launch, value in stated.items():
                        if value is None:  # kernels that took no time by the trace's clock
                            self.assertIsNone(estimated[launch])
                            continue
                        self.assertAlmostEqual(estimated[launch], value, delta=0.501, msg=launch)


if __name__ == "__main__":
    oracle.main()
