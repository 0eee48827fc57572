"""The type stubs say what the extensions have; mypy, where it is installed, finds nothing wrong with the package or its use."""
import ast
import glob
import importlib
import os
import subprocess
import sys
import tempfile
import unittest

from support import ROOT, oracle
import opscope

PACKAGE = os.path.join(ROOT, "python", "opscope")
USE = """
import opscope
trace = opscope.load("x", gpu="H100 80GB HBM3")
table: opscope.Table = trace.report("operators", steps=(1, 2))
cell = table[0]["name"]
names = [c.id for c in table.columns] + list(table.sections) + [p.text for p in trace.problems]
text: str = table.to_csv("x") + table.to_text(width=80) + opscope.version
table.to_pandas()
opscope.advise(trace).to_dict()["title"]
trace.events, trace.steps, trace.kernels, trace.ops
count: int = trace.n_events
named: opscope.Table = trace.report.key_averages(limit=3)
page: str = trace.plot.timeline(steps=(1, 2)).to_html() + trace.plot.roofline().title
job = opscope.load("y", progress=lambda done, total: print(done, total))
assert isinstance(job, opscope.Job)
ranks = [(rank, other.n_events) for rank, other in job.ranks.items()]
joined: opscope.Table = job.report("kernels", rank="all")
"""


def public(names):
    return {n for n in names if not n.startswith("_")}


def declared(body):
    """Name -> None, or the names declared in it."""
    out = {}
    for node in body:
        if isinstance(node, ast.ClassDef):
            out[node.name] = declared(node.body)
        elif isinstance(node, ast.FunctionDef):
            out[node.name] = None
        elif isinstance(node, ast.AnnAssign):
            out[node.target.id] = None
    return out


class Stubs(oracle.Case):
    def test_extensions(self):
        """Every stub, and both ways: nothing missing, nothing that is not there."""
        stubs = glob.glob(os.path.join(PACKAGE, "*.pyi"))
        self.assertTrue(stubs)
        for path in stubs:
            module = importlib.import_module("opscope." + os.path.basename(path)[:-len(".pyi")])
            with open(path) as f:
                names = declared(ast.parse(f.read()).body)
            self.assertEqual(public(names), public(vars(module)), path)
            for name, members in names.items():
                if members:
                    self.assertEqual(public(members), public(vars(getattr(module, name))), name)

    def test_marked_as_typed(self):
        self.assertTrue(os.path.exists(os.path.join(os.path.dirname(opscope.__file__), "py.typed")))

    def test_what_all_says(self):
        for name in opscope.__all__:
            if name not in opscope._LAZY:
                self.assertTrue(hasattr(opscope, name), name)

    def test_mypy(self):
        if subprocess.run([sys.executable, "-c", "import mypy"], capture_output=True).returncode:
            self.skipTest("mypy is not installed")
        with tempfile.TemporaryDirectory() as folder:
            use = os.path.join(folder, "use.py")
            with open(use, "w") as f:
                f.write(USE)
            p = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "--no-site-packages", "--python-version=3.9", "--cache-dir", folder,
                                PACKAGE, use], env={**os.environ, "MYPYPATH": os.path.join(ROOT, "python")}, cwd=folder, capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)


if __name__ == "__main__":
    oracle.main()
