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
import opscope

with open(os.path.join(ROOT, "docs", "python.md"), encoding="utf-8") as _f:
    PAGE = _f.read()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)

TRAINING, TABLES, LAYERS, PROFILING = "import torch, opscope\n", "import opscope\ntrace", "import torch\nimport opscope.torch\n", "import opscope\n\nwith opscope.profile"
OWN = "import opscope, torch\n"
FLOPS = "import math, opscope, torch\n"
FRAMES, PICTURES, JOBS = "import opscope, pandas\n", "import opscope\npicture", "import opscope\njob"
# How a block begins -> the test that runs it, or why none does.
RUN = {TRAINING: "test_training", TABLES: "test_tables", LAYERS: "test_layers", PROFILING: "test_profiling", OWN: "test_own_library", FLOPS: "test_flops", FRAMES: "test_frames",
       PICTURES: "test_pictures", JOBS: "test_jobs"}
NOT_RUN = {"polars.DataFrame": "needs polars, pyarrow and duckdb, which Debian does not have; test_arrow.py takes the same tables by a consumer of its own"}


def block_of(start):
    return next(b for b in BLOCKS if b.startswith(start))


def sample_of(command):
    """What the page shows as printed by a command: the titles of the columns, and rows of cells. The last title may be "...": there are more."""
    lines = re.search(rf"^```\n\$ {re.escape(command)}\n(.*?)^```$", PAGE, re.M | re.S).group(1).splitlines()
    titles, *rows = (re.split(r" {2,}", line.strip()) for line in lines)
    return titles, rows


class Docs(oracle.Case):
    def test_every_block_is_run(self):
        for block in BLOCKS:
            known = [start for start in (*RUN, *NOT_RUN) if block.startswith(start)]
            self.assertEqual(len(known), 1, block)
        self.assertEqual(len(BLOCKS), len(RUN) + len(NOT_RUN))
        for name in RUN.values():
            self.assertTrue(hasattr(self, name))

    def run_block(self, start, folder, before=""):
        block = block_of(start)
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        p = subprocess.run([sys.executable, "-W", "ignore", "-c", before + block], cwd=folder, env=env, capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stderr)
        return p.stdout

    def test_limits(self):
        """The table has the numbers of all limits of opscope.torch, and each is in the sentence of a note."""
        with open(os.path.join(ROOT, "python", "annotate", "limits.h"), encoding="utf-8") as f:
            header = f.read()
        numbers = {name: int(value) for name, value in re.findall(r"^#define (\w+_MOST) (\d+)", header, re.M)}
        self.assertEqual(set(re.findall(r"SAY\((\w+)\)", header)) - {"number"}, set(numbers))
        rows = re.search(r"^\| limit \| beyond it \|\n.*\n((?:\|.*\n)+)", PAGE, re.M).group(1).splitlines()
        told = [int(n.replace(",", "")) for row in rows for n in re.findall(r"(?<!some )(?<![\d,])\d[\d,]*", row.split("|")[1])]
        self.assertEqual(sorted(told), sorted(numbers.values()))

    def test_training(self):
        if not importlib.util.find_spec("torch"):
            self.skipTest("torch is not installed")
        with tempfile.TemporaryDirectory() as folder:
            shown = self.run_block(TRAINING, folder)
            self.assertTrue(shown.startswith("Findings\n"), shown)
            self.assertIn("Where the step time went\n", shown)
            self.assertEqual(len(oracle.report("steps", os.path.join(folder, "run.json.gz")).rows), 3)

    def test_profiling(self):
        if not importlib.util.find_spec("torch"):
            self.skipTest("torch is not installed")
        with tempfile.TemporaryDirectory() as folder:
            before = "import torch\nloader = range(10)\ndef train(batch): torch.mm(torch.ones(20, 30), torch.ones(30, 40)).sum()\n"
            shown = self.run_block(PROFILING, folder, before)
            self.assertEqual(shown.count("Self CPU time total"), 3)
            self.assertEqual(sorted(os.listdir(folder)), ["logs", "stacks.txt", "trace.json.gz"])
            self.assertEqual(len(os.listdir(os.path.join(folder, "logs"))), 2)

    def test_own_library(self):
        if not importlib.util.find_spec("torch"):
            self.skipTest("torch is not installed")
        with tempfile.TemporaryDirectory() as folder:
            before = "import torch\nloader, net = range(10), torch.nn.Linear(3, 4)\ndef train(batch): net(torch.ones(2, 3)).sum().backward()\n"
            shown = self.run_block(OWN, folder, before)
            self.assertEqual(shown.count("Self CPU time total"), 1)
            self.assertIn("Host time by layer", shown)
            self.assertEqual(len(oracle.report("steps", os.path.join(folder, "run.seg")).rows), 3)

    def test_flops(self):
        if not importlib.util.find_spec("torch"):
            self.skipTest("torch is not installed")
        with tempfile.TemporaryDirectory() as folder:
            before = "import torch\nmodel, batch = torch.nn.Linear(3, 4), torch.ones(2, 3)\n"
            shown = self.run_block(FLOPS, folder, before)
            self.assertEqual(re.findall(r"^ - (\S+) +(\S+)", shown, re.M), [("aten.addmm", "48.000"), ("aten.mm", "48.000")])
            self.assertEqual(shown.splitlines()[-1], "96")

    def test_layers(self):
        """Under `opscope record`, the block before a training loop: then the report has what the page shows of it."""
        if not importlib.util.find_spec("torch"):
            self.skipTest("torch is not installed")
        with tempfile.TemporaryDirectory() as folder:
            script, run = os.path.join(folder, "train_it.py"), os.path.join(folder, "run")
            with open(script, "w", encoding="utf-8") as f:
                f.write(block_of(LAYERS) + 'import train\ntrain.train("resnet")\n')
            env = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(os.path.abspath(__file__)), *filter(None, sys.path)])}
            p = subprocess.run([oracle.OPSCOPE, "record", "--no-report", "-o", run, "--", sys.executable, "-W", "ignore", script], cwd=folder, env=env,
                               capture_output=True, text=True)
            self.assertEqual(p.returncode, 0, p.stderr)
            titles, rows = sample_of("opscope report ops run")
            table = oracle.report("ops", run, "--limit=0")
            code, text, err = oracle.run("report", "ops", run)
            self.assertEqual(code, 0, err)
        self.assertEqual(titles[-1], "...")
        named = {c["title"]: c["id"] for c in table.doc["columns"]}
        shown = re.split(r" {2,}", text.decode().splitlines()[1].strip())
        self.assertEqual([t for t in shown if t in titles], titles[:-1])
        for cells in rows:
            found = [r for r in table.rows if [str(r[named[t]]) for t in titles[:-1]] == cells]
            self.assertEqual(len(found), 1, cells)

    def test_tables(self):
        if not importlib.util.find_spec("pandas"):
            self.skipTest("pandas is not installed")
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(RESNET, os.path.join(folder, "run.json.gz"))
            shown = self.run_block(TABLES, folder)
            self.assertTrue(shown.startswith("Time by operator and input shape, of 3 steps together\n"), shown)
            self.assertEqual(sorted(os.listdir(folder)), ["cut.json.gz", "operators.csv", "run.json.gz"])

    def test_frames(self):
        if not importlib.util.find_spec("pandas"):
            self.skipTest("pandas is not installed")
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(RESNET, os.path.join(folder, "run.json.gz"))
            self.run_block(FRAMES, folder)

    def test_frames_of_the_page(self):
        """The page lists the columns that there are."""
        names = re.search(r"^\* Columns of `events`: (.*?)\. `parent`", PAGE, re.M | re.S).group(1)
        self.assertEqual(re.findall(r"`(\w+)`", names), [c.id for c in opscope.load(RESNET).event_table(limit=1).columns])

    def test_pictures(self):
        if not os.path.exists(os.path.join(os.path.dirname(opscope.__file__), "_plot.js.gz")):
            self.skipTest("built without npm")
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(RESNET, os.path.join(folder, "run.json.gz"))
            self.run_block(PICTURES, folder)
            self.assertEqual(sorted(os.listdir(folder)), ["run.json.gz", "timeline.html"])

    def test_jobs(self):
        if not importlib.util.find_spec("pandas"):
            self.skipTest("pandas is not installed")
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "traces"))
            for rank in range(2):
                shutil.copy(oracle.synthetic("communication"), os.path.join(folder, "traces", f"rank{rank}.json"))
            self.assertIn("Ranks that others waited for", self.run_block(JOBS, folder))


if __name__ == "__main__":
    oracle.main()
