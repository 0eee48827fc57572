"""The Python of docs/python.md runs: the script that trains, where torch is; then what it shows of traces and tables, on that script's trace."""
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import RESNET, ROOT, oracle

with open(os.path.join(ROOT, "docs", "python.md"), encoding="utf-8") as _f:
    BLOCKS = re.findall(r"^```python\n(.*?)^```$", _f.read(), re.M | re.S)


class Docs(oracle.Case):
    def run_block(self, start, folder, before=""):
        block = next(b for b in BLOCKS if b.startswith(start))
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        p = subprocess.run([sys.executable, "-W", "ignore", "-c", before + block], cwd=folder, env=env, capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stderr)
        return p.stdout

    def test_training(self):
        if not importlib.util.find_spec("torch"):
            self.skipTest("torch is not installed")
        with tempfile.TemporaryDirectory() as folder:
            shown = self.run_block("import torch, opscope", folder)
            self.assertTrue(shown.startswith("Findings\n"), shown)
            self.assertIn("Where the step time went\n", shown)
            self.assertEqual(len(oracle.report("steps", os.path.join(folder, "run.json.gz")).rows), 3)

    def test_profiling(self):
        if not importlib.util.find_spec("torch"):
            self.skipTest("torch is not installed")
        with tempfile.TemporaryDirectory() as folder:
            before = "import torch\nloader = range(10)\ndef train(batch): torch.mm(torch.ones(20, 30), torch.ones(30, 40)).sum()\n"
            shown = self.run_block("import opscope\n\nwith opscope.profile", folder, before)
            self.assertEqual(shown.count("Self CPU time total"), 3)
            self.assertEqual(sorted(os.listdir(folder)), ["logs", "stacks.txt", "trace.json.gz"])
            self.assertEqual(len(os.listdir(os.path.join(folder, "logs"))), 2)

    def test_tables(self):
        if not importlib.util.find_spec("pandas"):
            self.skipTest("pandas is not installed")
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(RESNET, os.path.join(folder, "run.json.gz"))
            shown = self.run_block("import opscope\n", folder)
            self.assertTrue(shown.startswith("Time by operator and input shape\n"), shown)
            self.assertEqual(sorted(os.listdir(folder)), ["cut.json.gz", "operators.csv", "run.json.gz"])


if __name__ == "__main__":
    oracle.main()
