"""What detectors of waiting, copying and communication say is gained at most, against what planted runs were made to lose, and against counts of
real files by python."""
import collections
import json
import os
import shutil
import tempfile

import labelled
import labelled_waiting  # noqa: F401 (adds its cases)
import oracle
from oracle import Case


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
                ("collectives_and_loader", "communication-bound", 15000),
                ("gloo_all_reduce", "host-collectives", 20000), ("gloo_all_reduce_beside_two_gpus", "host-collectives", 20000),
                ("gloo_and_loader", "host-collectives", 12000),
                ("launches_of_collectives", "host-collectives", 60 * 77),     # 80 us and 2 less the all-reduce before, which runs meanwhile
                ("small_collectives", "unbucketed-collectives", 60 * 12), ("small_collectives_of_two_gpus", "unbucketed-collectives", 60 * 12),
                ("small_collectives_without_sizes", "unbucketed-collectives", 60 * 12), ("small_collectives_and_loader", "unbucketed-collectives", 59 * 12)):
            with self.subTest(case=case, detector=detector):
                self.assertAlmostEqual(self.find(case, detector)["gain_ns_per_step"] / 1000, want, delta=want * 0.1)

    def test_advice_on_groups(self):
        """What makes sense for gradients alone is not said of collectives within layers, nor of those of which nothing is known."""
        for case, gradients in (("collectives_of_layers", False), ("collectives_of_gradients", True), ("collectives_of_two_gpus", False)):
            advice = self.find(case, "communication-bound")["advice"]
            for word in ("gradient", "LAMB", "compress", "accumulation"):
                if not gradients or word == "LAMB":
                    self.assertNotIn(word, advice, case)
            self.assertIn("even out its work first", advice)
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
    out = []
    for a, b in ranges:
        for c, d in cut:
            if d <= a or c >= b:
                continue
            if c > a:
                out.append([a, c])
            a = max(a, d)
        if a < b:
            out.append([a, b])
    return out


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


if __name__ == "__main__":
    oracle.main()
