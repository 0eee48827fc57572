"""What detectors of waiting, copying and communication say is gained at most, against what planted runs were made to lose, and against counts of
real files by python."""
import collections
import fnmatch
import itertools
import json
import os
import shutil
import tempfile

import labelled
import labelled_compute  # noqa: F401 (adds its cases)
import labelled_occupancy  # noqa: F401 (adds its cases)
import labelled_waiting  # noqa: F401 (adds its cases)
import oracle
from oracle import Case
from verdict_labels_waiting import LABELS


def advise(path, *args):
    code, out, err = oracle.run("advise", path, "--format=json", *args, timeout=300)
    if code:
        raise AssertionError(f"advise {path}: exit {code}: {err.decode(errors='replace')}")
    return oracle.Table(json.loads(out))


def finding(path, detector, *args):
    return next((r for r in advise(path, *args).rows if r["detector"] == detector), None)


class Planted(Case):
    def find(self, case, detector):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, case + ".pt.trace.json.gz")
            labelled.CASES[case][1]().save(path)
            return finding(path, detector)

    def test_gains(self):
        """us a step."""
        for case, detector, want in (
                ("collectives_of_two_gpus", "communication-bound", 12000),    # mean of 15 ms and 9 ms
                ("collectives_of_layers", "communication-bound", 10 * 1000), ("collectives_of_gradients", "communication-bound", 4 * 2500),
                ("collectives_and_loader", "communication-bound", 15000), ("collectives_on_two_streams", "communication-bound", 12000),
                ("gloo_all_reduce", "host-collectives", 20000), ("gloo_all_reduce_beside_two_gpus", "host-collectives", 20000),
                ("gloo_and_loader", "host-collectives", 12000),
                ("launches_of_collectives", "host-collectives", 60 * 77),     # 80 us and 2 less the all-reduce before, which runs meanwhile
                ("small_collectives", "unbucketed-collectives", 60 * 12), ("small_collectives_of_two_gpus", "unbucketed-collectives", 60 * 12),
                ("small_collectives_without_sizes", "unbucketed-collectives", 60 * 12), ("small_collectives_and_loader", "unbucketed-collectives", 59 * 12),
                ("small_collectives_without_steps", "unbucketed-collectives", 60 * 12),
                ("small_collectives_one_by_one", "unbucketed-collectives", 60 * 106 + 12 - 12),  # a launch and 100 us each, but for the first all-reduce
                ("collectives_without_steps", "communication-bound", 5 * 5000), ("gloo_without_steps", "host-collectives", 4 * 12000),
                # Copies could all run beside the products, of which there is more.
                ("blocking_copies", "blocking-copies", 8 * 3000), ("blocking_copies_and_loader", "blocking-copies", 8 * 3000),
                ("blocking_copies_of_a_gpu_of_two", "blocking-copies", 8 * 3000), ("blocking_copies_without_steps", "blocking-copies", 8 * 3000),
                ("copy_per_element", "tiny-copies", 499 * 35), ("copy_and_kernel_per_element", "tiny-copies", 500 * 9),
                ("copies_between_gpus", "peer-copies", 5000), ("copies_between_gpus_without_steps", "peer-copies", 2 * 5000),
                ("copies_between_gpus_and_loader", "peer-copies", 5000),
                ("copies_within_a_gpu", "device-copies", 20 * 100), ("copies_within_two_gpus", "device-copies", 20 * 100),
                ("copies_within_a_gpu_without_steps", "device-copies", 2 * 20 * 100), ("copies_within_a_gpu_and_loader", "device-copies", 20 * 100),
                ("sleep_in_steps", "sleeping-host", 20000), ("sleep_and_loader", "sleeping-host", 20000),
                ("small_kernels_without_calls", "launch-bound", 200 * 24)):
            with self.subTest(case=case, detector=detector):
                self.assertAlmostEqual(self.find(case, detector)["gain_ns_per_step"] / 1000, want, delta=want * 0.1)

    def test_waits(self):
        """Where the recording holds all GPUs of the collectives, waiting and transfer are told apart."""
        r = self.find("collectives_that_wait_for_gpu_1", "communication-bound")
        self.assertNotIn("one rank alone", r["problem"])
        self.assertRegex(r["evidence"], r"add up to (19\.9|20\.0)\d* ms, which is transfer; 7\.[45]\d* ms more are waiting, mean of the GPUs; GPU 1 comes last in 10 of 10")
        for case in ("collectives_of_two_gpus", "collectives_of_layers"):  # a rank of 8; GPU 0 alone
            self.assertNotIn("which is transfer", self.find(case, "communication-bound")["evidence"])

    def test_moments_count_once(self):
        """A moment with two collectives is that of the one that began first."""
        r = self.find("collectives_on_two_streams", "communication-bound")
        self.assertIn("ncclDevKernel_AllReduce_RING_LL (10.000 ms, 1 time); ncclDevKernel_AllGather_RING_LL (2.000 ms, 1 time)", r["evidence"])

    def test_rows_on_two_streams(self):
        """One row is one row, on however many streams: 57 of 60 collectives of 12 us could be spared."""
        self.assertEqual(self.find("small_collectives_on_two_streams", "unbucketed-collectives")["gain_ns_per_step"], 57 * 12000)

    def test_low_utilization(self):
        """A larger batch is proposed by launch-bound alone."""
        for case, (fires, _) in labelled.CASES.items():
            if "low-gpu-utilization" in fires:
                self.assertNotIn("batch", self.find(case, "low-gpu-utilization")["advice"], case)

    def test_first_iteration(self):
        """What is more than usual in the step, and the mean without it."""
        for case, cause in (("first_step_allocates", "20.000 ms are in calls that allocate or free memory"),
                            ("first_step_loads_on_two_gpus", "20.000 ms are in loading kernels"),
                            ("first_step_searches", "20.000 ms are in kernels that no other step runs"),
                            ("third_step_allocates", "20.000 ms are in calls that allocate or free memory"),
                            ("first_step_launches_slowly", "are in launches of a millisecond or more")):
            r = self.find(case, "first-iteration")
            self.assertIn(cause, r["evidence"])
            self.assertRegex(r["problem"], r"a mean step of 3[25]\.\d* ms is 30\.0\d* ms without it")
            self.assertIsNone(r["gain_ns_per_step"])

    def test_nested_causes(self):
        """A call inside a call of the same cause counts once."""
        self.assertIn("more, 10.000 ms are in calls that allocate or free memory", self.find("first_step_allocates_in_calls_of_calls", "first-iteration")["evidence"])

    def test_longest_steps(self):
        """Of five long steps the three longest are told, and how many more there are."""
        r = self.find("long_steps_of_many", "first-iteration")
        self.assertRegex(r["problem"], "^5 of 20 steps are far longer")
        self.assertRegex(r["evidence"], r"^Step 10 takes 5.*\. Step 13 takes 5.*\. Step 7 takes 5.*; and 2 more$")

    def test_first_step_in_python(self):
        r = self.find("first_step_in_python", "first-iteration")
        self.assertIn("18.000 ms are in model.py(36): forward itself", r["evidence"])
        self.assertNotIn("train.py(7)", r["evidence"])

    def test_buckets(self):
        for case in ("copies_of_buckets", "copies_of_buckets_on_two_gpus"):  # one GPU's copies, as all of the finding
            r = self.find(case, "device-copies")
            self.assertIn("Per step: 20 copies", r["evidence"])
            self.assertIn("20 of them move gradients out of the buckets", r["evidence"])
            self.assertIn("gradient_as_bucket_view=True", r["advice"])
        self.assertNotIn("bucket", self.find("copies_within_a_gpu", "device-copies")["advice"])

    def test_overlapping_copies(self):
        """A sum over copies that overlap is said to be one where it is more than there is time."""
        r = self.find("overlapping_copies_between_gpus", "peer-copies")
        self.assertIn("6 copies: GPU 0 to GPU 2 2.3 GB/s, GPU 0 to GPU 1 4.7 GB/s, GPU 1 to GPU 0 9.3 GB/s", r["evidence"])
        self.assertIn("aten::copy_ (27.000 ms, 3 times); these are sums over copies that overlap", r["evidence"])
        self.assertNotIn("overlap", self.find("copies_between_gpus", "peer-copies")["evidence"])

    def test_lead_gpu(self):
        """What is said of idle time is that of one GPU, and it is named; the other one may work."""
        r = self.find("compiled_again_beside_a_busy_gpu", "recompiles")
        self.assertRegex(r["problem"], r"^torch\.compile compiles within the steps: 1[0-9]\.\d % of the step time")
        self.assertRegex(r["evidence"], r"^Its compiler runs 1 time in step 2 and takes 8\.010 ms .*; 1 of 2 calls of compiled frames runs code that was compiled again")
        r = self.find("allocator_retries_on_two_gpus", "allocator-retries")
        self.assertRegex(r["problem"], r"^GPU [01] has no work in 3\.\d % of the step time while the host frees device memory .* in 4 of 4 steps$")
        self.assertRegex(r["evidence"], "^Per step 1 call that allocates and 1 that frees: ")
        self.assertRegex(self.find("allocator_retries", "allocator-retries")["problem"], "^The GPU has no work in ")

    def test_inside_the_loader(self):
        """What it does where frames tell; one function with most of the time is to be mended first."""
        r = self.find("loader_with_a_slow_function", "dataloader-bound")
        self.assertRegex(r["evidence"], r"the loader is in data\.py\(5\): resize \(1[45]\.\d+ ms, 1 time\); data\.py\(9\): normalize \(3\.000 ms, 1 time\); ")
        self.assertRegex(r["advice"], r"^First make data\.py\(5\): resize faster, in which 75 % of that time goes: .* Then: Set num_workers > 0")
        r = self.find("loader_with_equal_functions", "dataloader-bound")
        self.assertIn("part_2", r["evidence"])
        self.assertRegex(r["advice"], "^Set num_workers > 0")
        self.assertNotIn("the loader is in", self.find("slow_loader", "dataloader-bound")["evidence"])

    def test_whole_counts(self):
        """801 copies in 40 steps are 20 a step, not 20.0."""
        r = self.find("copies_one_more_in_a_step_of_40", "device-copies")
        self.assertRegex(r["evidence"], r"^Per step: 20 copies of 100\.0 us .*aten::copy_ \(2\.\d+ ms, 20 times\)")

    def test_numa(self):
        """Said where copies matter, and nowhere else."""
        for case, want in (("pageable_input", True), ("without_pageable_input", True), ("without_cost_of_pageable_input", False), ("healthy", False)):
            with self.subTest(case), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, case + ".pt.trace.json.gz")
                labelled.CASES[case][1]().save(path)
                self.assertEqual(any(n.startswith("numa not applicable: ") for n in advise(path, "--all").notes), want)

    def test_throttling(self):
        """Of each GPU by itself."""
        r = self.find("one_gpu_of_two_slowed_down", "throttling")
        self.assertEqual(r["problem"], "GPU 1 is slowed down by heat in 100 % of the samples")

    def test_advice_on_groups(self):
        """What makes sense for gradients alone is not said of collectives within layers, nor of those of which nothing is known."""
        for case, gradients in (("collectives_of_layers", False), ("collectives_of_gradients", True), ("collectives_of_two_gpus", False)):
            advice = self.find(case, "communication-bound")["advice"]
            for word in ("gradient", "LAMB", "compress", "accumulation"):
                if not gradients or word == "LAMB":
                    self.assertNotIn(word, advice, case)
            self.assertIn("Even out its work first", advice)
        self.assertIn("bf16_compress_hook", self.find("collectives_of_gradients", "communication-bound")["advice"])

    def test_other_ranks(self):
        """Files beside the trace are named only where their names differ in the rank's number alone, and a rank is stated."""
        with tempfile.TemporaryDirectory() as folder:
            def evidence(name, *others):
                here = tempfile.mkdtemp(dir=folder)
                path = os.path.join(here, name)
                labelled.CASES["collectives_of_gradients"][1]().save(path)
                for other in others:
                    shutil.copy(path, os.path.join(here, other))
                return finding(path, "communication-bound")["evidence"]

            self.assertIn("those of 2 other ranks: x_rank1.json.gz, x_rank2.json.gz", evidence("x_rank0.json.gz", "x_rank1.json.gz", "x_rank2.json.gz", "y_rank3.json.gz"))
            self.assertIn("those of 1 other rank: rank-3.77.json.gz", evidence("rank-0.99.json.gz", "rank-3.77.json.gz", "rank-3.78.json.gz"))
            self.assertIn("those of 7 other ranks: t1.json.gz to t7.json.gz", evidence("t0.json.gz", *(f"t{i}.json.gz" for i in range(1, 8))))
            for name, *others in (("x_rank5.json.gz", "x_rank1.json.gz"), ("trace.json.gz", "trace1.json.gz"), ("t0_0.json.gz", "t1_0.json.gz"),
                                  ("t0.json.gz", "t8.json.gz"), ("t0.json.gz",)):
                self.assertNotIn("Beside this trace", evidence(name, *others), name)


def union(ranges):
    out = []
    for a, b in sorted(ranges):
        if out and a <= out[-1][1]:
            out[-1][1] = max(out[-1][1], b)
        else:
            out.append([a, b])
    return out


def without(ranges, cut):
    """Two unions: what of the first is not in the second."""
    out, first = [], 0
    for a, b in ranges:
        while first < len(cut) and cut[first][1] <= a:
            first += 1
        for c, d in itertools.islice(cut, first, None):
            if c >= b:
                break
            if c > a:
                out.append([a, c])
            a = max(a, d)
        if a < b:
            out.append([a, b])
    return out


class Puzzlers(Case):
    """Small programs whose authors say in writing why they are slow."""

    def first(self, *parts):
        table = advise(oracle.data("more", "puzzlers", *parts))
        self.assertTrue(table.rows, "nothing found")
        return table.rows

    def test_copy_per_element(self):
        """A copy to the host for each of 4096 elements and a wait for each; then a kernel for each."""
        rows = self.first("d2h_sync", "d2h_sync_final.json.gz")
        self.assertEqual((rows[0]["detector"], rows[0]["events"]), ("tiny-copies", 4097))
        self.assertIn("of 4097 small copies between host and GPU follow one another", rows[0]["problem"])
        self.assertRegex(rows[0]["evidence"], "host waits for the GPU 409[4-7] times")
        self.assertIn("first_sum", rows[0]["evidence"])
        detectors = [r["detector"] for r in rows]
        self.assertLess(detectors.index("tiny-copies"), detectors.index("loop-indexing"))
        self.assertIn("launch-bound", detectors)
        loop = next(r for r in rows if r["detector"] == "loop-indexing")
        self.assertIn("second_sum", loop["evidence"].split(";")[0])

    def test_streams(self):
        """HTA says 16.5 % and 32.3 % overlap."""
        rows = self.first("streams", "blocking.json.gz")
        self.assertEqual((rows[0]["detector"], rows[0]["events"]), ("blocking-copies", 200))
        self.assertIn("in 16.5 % of the time in which the GPU works", rows[0]["problem"])
        rows = self.first("streams", "non_blocking.json.gz")
        self.assertNotIn("blocking-copies", {r["detector"] for r in rows})
        self.assertIn("in 32.3 % of the time in which the GPU works", next(r for r in rows if r["detector"] == "pageable-copies")["evidence"])

    def test_launch_queue(self):
        """Gaps return after about 35 small kernels. The program also sleeps, between its two parts."""
        rows = self.first("launch_queue", "more_small_kernels.json.gz")
        self.assertEqual(rows[0]["detector"], "launch-bound")
        self.assertIn("the queue of launches lasts for 37 kernels in a row at most", rows[0]["evidence"])  # the long one, and 36 small ones
        self.assertIsNone(next(r for r in rows if r["detector"] == "sleeping-host")["gain_ns_per_step"])

    def test_fusion(self):
        """Launch overhead; compiled code is launched by Python, too."""
        rows = self.first("fusion", "fusion.json.gz")
        r = rows[0]
        self.assertEqual(r["detector"], "launch-bound")
        self.assertIn("64 kernels run for 5.9 us on average", r["evidence"])
        self.assertIn("of 17 of these launches the call was not recorded", r["evidence"])  # Triton's

    def test_peer_copies(self):
        rows = self.first("collectives", "p2p_copy.json.gz")
        self.assertEqual((rows[0]["detector"], rows[0]["events"], rows[0]["time_ns"]), ("peer-copies", 30, 53921000))
        self.assertIn("30 copies: GPU 0 to GPU 2 7.5 GB/s, GPU 0 to GPU 4 45.5 GB/s, GPU 0 to GPU 1 88.5 GB/s", rows[0]["evidence"])


class Real(Case):
    def exposed_us(self, path):
        """A step, of one GPU: what its collectives last while none of its other work does."""
        events = [e for e in oracle.events(oracle.load(path)) if e.get("ph") == "X"]
        steps = union((e["ts"], e["ts"] + e["dur"]) for e in events if e["name"].startswith("ProfilerStep#"))
        steps[-1][1] = max([steps[-1][1], *(e["ts"] + e["dur"] for e in events if e.get("cat") == "kernel")])  # the last lasts until devices are done
        work = collections.defaultdict(list)
        for e in events:
            if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
                work[e["cat"] == "kernel" and "nccl" in e["name"].lower()].append((e["ts"], e["ts"] + e["dur"]))
        alone = without(union(work[True]), union(work[False]))
        inside = sum(max(0, min(b, d) - max(a, c)) for a, b in alone for c, d in steps)
        return inside / sum(e["name"].startswith("ProfilerStep#") for e in events)

    def test_exposed(self):
        """Device intervals alone; what the host does meanwhile is a finding of its own."""
        for want, parts in ((71468.6, ("hta", "df_index_resolver", "df_index_resolver.json.gz")),
                            (241191, ("multirank", "megatron_a100_tp8", "megatron_kineto_0.json.gz")),
                            (495240, ("multirank", "megatron_a100_tp8", "megatron_kineto_4.json.gz")),
                            (263846, ("multirank", "megatron_a100_tp8", "megatron_kineto_6.json.gz"))):
            with self.subTest(parts[-1]):
                path = oracle.data(*parts)
                r = finding(path, "communication-bound")
                self.assertAlmostEqual(r["gain_ns_per_step"] / 1000, want, delta=0.01)
                self.assertAlmostEqual(self.exposed_us(path), want, delta=0.01)
                self.assertIn("one rank alone does not tell waiting for other ranks from transfer", r["problem"])

    def test_tensor_parallel(self):
        """Its collectives are in _ReduceFromModelParallelRegion and _VocabParallelCrossEntropy; seven more ranks lie beside."""
        for rank, others in ((0, "megatron_kineto_1.json.gz to megatron_kineto_7.json.gz"), (7, "megatron_kineto_0.json.gz to megatron_kineto_6.json.gz")):
            r = finding(oracle.data("multirank", "megatron_a100_tp8", f"megatron_kineto_{rank}.json.gz"), "communication-bound")
            self.assertNotIn("gradient", r["advice"])
            self.assertNotIn("LAMB", r["advice"])
            self.assertIn("those of 7 other ranks: " + others, r["evidence"])

    def test_no_device(self):
        """A recording without a device has four collectives outside its step: nothing is known of what a GPU waits for."""
        path = oracle.data("hta", "cpu_only", "rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz")
        table = advise(path, "--all")
        self.assertNotIn("communication-bound", {r["detector"] for r in table.rows})
        self.assertTrue(any("communication-bound" in n and "no device work" in n for n in table.notes), table.notes)

    def test_small_collectives(self):
        """404 all-reduces a step; no more than one kernel stands between most of them, and the host launches each by itself."""
        path = oracle.data("hta", "df_index_resolver", "df_index_resolver.json.gz")
        r, host = finding(path, "unbucketed-collectives"), finding(path, "host-collectives")
        self.assertIn("of 404 collectives a step are small", r["problem"])
        kernels = [e for e in oracle.events(oracle.load(path)) if e.get("cat") == "kernel" and "nccl" in e["name"].lower()]
        self.assertIn(f"the shortest {min(e['dur'] for e in kernels):.1f} us", r["evidence"])
        self.assertLessEqual(r["events"], sum(e["dur"] <= 200 for e in kernels))
        self.assertGreater(r["events"], 0.9 * sum(e["dur"] <= 200 for e in kernels))
        self.assertGreater(host["gain_ns_per_step"], 10_000_000)
        self.assertLess(host["gain_ns_per_step"], 15_077_000)  # overview's communication less what runs on the device

    def test_loader(self):
        """One cause, one finding: the others about the same time are part of it, and none proposes a larger batch."""
        rows = advise(oracle.data("verdicts", "google_owlv2-large-patch14-ensemble__1016001.json.gz")).rows
        self.assertEqual(rows[0]["detector"], "dataloader-bound")
        self.assertIn("zoom_shift", rows[0]["evidence"])
        self.assertIn("transformers/image_transforms.py(390): normalize (61.362 ms, 50 times)", rows[0]["evidence"])
        self.assertRegex(rows[0]["advice"], "^First make <built-in function zoom_shift> faster, .*num_workers")
        parts = {r["detector"] for r in rows if r["part_of"] == "dataloader-bound"}
        self.assertLessEqual({"gpu-starvation", "low-gpu-utilization", "single-process-dataloader"}, parts)
        for r in rows:
            if r["detector"] == "low-gpu-utilization" or r["part_of"]:
                self.assertNotIn("batch size", r["advice"])


class Labels(Case):
    """Findings on all real inputs against verdict_labels_waiting."""

    KINDS = ("json.gz", "json", "sqlite", "sql", "nvvp")

    def inputs(self):
        return sorted({p for kind in self.KINDS for p in oracle.data_glob("**/*." + kind)})

    def labels_of(self, name):
        out = {}
        for glob, detector, want, why in LABELS:
            if fnmatch.fnmatch(name, glob):
                out.setdefault(detector, (want, why))
        return out

    def test_labels(self):
        right, wrong = collections.Counter(), []
        matched = set()
        for path in self.inputs():
            code, out, _ = oracle.run("advise", path, "--format=json", timeout=300)
            if code:
                continue  # no trace
            name = os.path.relpath(path, oracle.DATA)
            found = {r["detector"] for r in oracle.Table(json.loads(out)).rows}
            matched |= {(g, d) for g, d, _, _ in LABELS if fnmatch.fnmatch(name, g)}
            for detector, (want, why) in self.labels_of(name).items():
                right[detector] += want and detector in found
                if want != (detector in found):
                    wrong.append((name, detector, "missed" if want else "false", why))
        if not matched:
            self.skipTest("no real traces")
        for detector in sorted({d for _, d, _, _ in LABELS}):
            false, missed = (sum(w[1] == detector and w[2] == kind for w in wrong) for kind in ("false", "missed"))
            print(f"# {detector:28} right {right[detector]:3} false {false:3} missed {missed:3}")
        self.assertEqual(wrong, [])
        self.assertEqual({(g, d) for g, d, _, _ in LABELS} - matched, set(), "rows that match no input")


if __name__ == "__main__":
    oracle.main()
