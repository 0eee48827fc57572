"""bench/python.py judges its figures: what is wanted and missed is named, and rounding prints no sign twice."""
import importlib.util
import os

from support import ROOT, oracle


class Judges(oracle.Case):
    def setUp(self):
        spec = importlib.util.spec_from_file_location("bench_python", os.path.join(ROOT, "bench", "python.py"))
        self.bench = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.bench)
        self.figures = {"bare": {"torch.add": 1000, "module": 400, "training step": 1e6}, "shapes and types": {"torch.add": 700}, "switched off": {"torch.add": 60},
                        self.bench.ALL: {"torch.add": 800, "module": 250, "training step": 250000}}

    def test_wanted(self):
        self.assertEqual(self.bench.missed(self.figures, 0), [])
        self.figures["shapes and types"]["torch.add"] = 710
        self.figures[self.bench.ALL]["training step"] = 300000
        self.assertEqual(self.bench.missed(self.figures, 0), ["torch.add, shapes and types: 710 ns, wanted at most 700 ns",
                                                              "training step, all, `init()`: 30 %, wanted at most 25 %"])
        self.assertEqual(self.bench.missed(self.figures, 2), ["training step, all, `init()`: 30 %, wanted at most 25 %"])
        self.assertEqual(self.bench.missed(self.figures, 20), [])

    def test_cells(self):
        cell = lambda ns: self.bench.cell("training step", self.bench.ALL, {**self.figures, self.bench.ALL: {"training step": ns}})
        self.assertEqual([cell(ns) for ns in (-12000, -400, 400, 250000)], ["-1 %", "+0 %", "+0 %", "+25 %"])
        self.assertEqual(self.bench.cell("module", "bare", self.figures), "400 ns")
        self.assertEqual(self.bench.cell("module", "switched off", self.figures), "-")


if __name__ == "__main__":
    oracle.main()
