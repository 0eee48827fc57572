"""The notebooks of docs/notebooks run, and say what the program says of the same recordings. Each takes a kernel of Jupyter some seconds: tools/nightly runs this, ./test does not."""
import html
import os
import re
import shutil
import subprocess
import sys
import tempfile

from support import ROOT, oracle

FOLDER = os.path.join(ROOT, "docs", "notebooks")
H200 = os.path.join(ROOT, "tests", "data", "h200")
BF16, FP32 = (os.path.join(H200, f"gpt_{precision}.json.gz") for precision in ("bf16", "fp32"))


def lacking():
    """What is not there to run a notebook."""
    if not shutil.which("jupyter-nbconvert"):
        return "jupyter-nbconvert is not installed (Debian: jupyter-nbconvert python3-ipykernel)"
    have = subprocess.run([sys.executable, "-c", "import ipykernel, pandas"], capture_output=True, text=True)
    return "" if not have.returncode else have.stderr.strip().splitlines()[-1]


def ran(name):
    """What the page of the executed notebook says."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "IPYTHONDIR": folder, "PATH": os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]}
        p = subprocess.run(["jupyter-nbconvert", "--execute", "--to", "html", "--output-dir", folder, os.path.join(FOLDER, name + ".ipynb")], env=env, capture_output=True, text=True)
        if p.returncode:
            raise AssertionError(p.stderr)
        with open(os.path.join(folder, name + ".html"), encoding="utf-8") as f:
            return html.unescape(re.sub(r"<[^>]*>", "", f.read()))


def ms(ns, sign=""):
    return f"{ns / 1e6:{sign}.3f} ms"


class Notebooks(oracle.Case):
    def setUp(self):
        if lacking():
            self.skipTest(lacking())

    def test_first_look(self):
        page = ran("first_look")
        self.assertIn(f"a step takes {ms(oracle.steps_report('overview', BF16).rows[0]['mean_ns'])}", page)
        kernels = oracle.steps_report("kernels", BF16).rows
        self.assertIn(f"{sum(k['calls'] for k in kernels)} kernels run for {ms(sum(k['total_ns'] for k in kernels))}", page)
        self.assertIn(str(oracle.steps_report("layers", BF16, "--group-by=type").rows[0]["total_gpu_ns"]), page)
        self.assertIn("launch-bound", page)

    def test_compare_runs(self):
        page, (verdict, rows, _) = ran("compare_runs"), oracle.diff(FP32, BF16)
        self.assertIn(verdict["verdict"], page)
        self.assertIn(f"{ms(verdict['delta_ns'], '+')}, give or take {ms(verdict['half_ns'])}", page)
        for kind in ("compute", "idle"):
            self.assertRegex(page, rf"{kind} +{sum(r['delta_ns'] for r in rows if r['kind'] == kind) / 1e6:.3f}")

    def test_memory_and_roofline(self):
        page, memory = ran("memory_and_roofline"), oracle.steps_report("memory", BF16)
        peak = next(r for r in memory.section("peaks").rows if r["device"] == "GPU0")["peak_allocated_bytes"]
        self.assertIn(f"peak {peak / 2**20:.1f} MiB", page)
        gain = sum(r["gain_ns"] or 0 for r in oracle.steps_report("roofline", BF16).rows)
        self.assertIn(f"{ms(gain)} of both steps are missing to the roof", page)


if __name__ == "__main__":
    oracle.main()
