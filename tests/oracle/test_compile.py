"""What the detectors of torch.compile say of planted runs, against what these were made to lose; and of real ones."""
import json
import os
import tempfile

import labelled
import labelled_compile  # noqa: F401 (adds its cases)
import oracle
from oracle import Case


def advise(path, *args):
    code, out, err = oracle.run("advise", path, "--format=json", "--all", *args, timeout=300)
    if code:
        raise AssertionError(f"advise {path}: exit {code}: {err.decode(errors='replace')}")
    return oracle.Table(json.loads(out))


class Planted(Case):
    def advise(self, case):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, case + ".pt.trace.json.gz")
            labelled.CASES[case][1]().save(path)
            return advise(path)

    def find(self, case, detector):
        return next(r for r in self.advise(case).rows if r["detector"] == detector)

    def test_gains(self):
        """us a step. Of 4 eager ops of 1 ms and a kernel of 0.2 ms, the GPU idles for all of the first and 0.8 ms of the others; guards take 10 us, and all
        kernels would be in the graph. Of the backward pass: 3 ms of the host, and a kernel of 0.1 ms."""
        between = 1000 + 3 * 800 + 4 * 200
        for case, detector, want in (
                ("recompiles_in_each_step", "recompiles", 10000), ("recompiles_in_one_step", "recompiles", 12000 / 2),
                ("recompiles_and_loader", "recompiles", 10000), ("recompiles_without_steps", "recompiles", 2 * 10000),
                ("recompiles_beside_two_gpus", "recompiles", 10000), ("recompiles_that_compare_kernels", "recompiles", 9500),
                ("broken_call", "graph-breaks", between), ("broken_call_with_frames", "graph-breaks", between),
                ("broken_call_and_loader", "graph-breaks", between), ("broken_call_without_steps", "graph-breaks", 2 * between),
                ("broken_calls_of_two_gpus", "graph-breaks", between), ("broken_call_with_long_eager_ops", "graph-breaks", 4 * 2000),
                ("broken_call_and_recompiles", "recompiles", 6000), ("broken_call_and_recompiles", "graph-breaks", between),
                ("frames_of_one_call", "graph-breaks", 2 * (600 + 3 * 400 + 4 * 200)),
                ("broken_call_and_backward", "graph-breaks", 600 + 3 * 400 + 4 * 200 + 3000 + 100)):
            with self.subTest(case=case, detector=detector):
                self.assertAlmostEqual(self.find(case, detector)["gain_ns_per_step"] / 1000, want, delta=want * 0.1)

    def test_evidence(self):
        r = self.find("recompiles_in_one_step", "recompiles")
        self.assertIn("1 time in step 2 and takes 12.000 ms of the host. The GPU has no work for 12.000 ms of that: ", r["evidence"])
        self.assertIn("frame 0 (12.000 ms, 1 time)", r["evidence"])
        r = self.find("broken_call_with_frames", "graph-breaks")
        self.assertIn("leaves its graphs 1 time a step", r["problem"])
        self.assertIn("forward at model.py(12) (3.4", r["evidence"])
        self.assertIn("Outside of the graphs 4 ops and 4 pieces of device work: aten::add at model.py(9): forward", r["evidence"])

    def test_first_step(self):
        self.assertIn("of what is more, 60.000 ms are in torch.compile's compiler", self.find("first_step_compiles", "first-iteration")["evidence"])
        self.assertIn("1 time in step 1", self.find("first_step_compiles", "recompiles")["evidence"])

    def test_unknown(self):
        for case, why in (("without_graphs_of_broken_calls", "compile-wrapper, graph-breaks not applicable: the input does not show which part of a compiled frame is its graph"),
                          ("without_frames_of_several_calls", "graph-breaks not applicable: Python frames were not recorded")):
            with self.subTest(case):
                self.assertTrue(any(n.startswith(why) for n in self.advise(case).notes))


class Real(Case):
    def test_fusion(self):
        """Both compiled functions of the puzzler make a layer norm, which Dynamo of that version did not trace: each goes on behind it."""
        path = oracle.data("more", "puzzlers", "fusion", "fusion.json.gz")
        r = next(r for r in advise(path).rows if r["detector"] == "graph-breaks")
        resumed = [e for e in oracle.events(oracle.load(path)) if "<resume in " in e.get("name", "")]
        self.assertEqual(r["events"], len(resumed))
        for e in resumed:
            self.assertIn(e["name"], r["evidence"])

    def test_megatron(self):
        """120 fused functions a step, compiled one by one: without Python frames nothing tells them from one that was broken up."""
        table = advise(oracle.data("multirank", "megatron_a100_tp8", "megatron_kineto_0.json.gz"))
        self.assertFalse({"graph-breaks", "recompiles"} & {r["detector"] for r in table.rows})
        self.assertTrue(any(n.startswith("graph-breaks not applicable: Python frames") for n in table.notes))


if __name__ == "__main__":
    oracle.main()
