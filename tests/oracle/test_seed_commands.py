"""Command lines of the manuals of the tools that opscope replaces, as people have them in scripts: what must come out of each.

One row a command, run by a shell in a folder of its own, where `dlprof`, `dlprofviewer` and `nsys` are on the PATH; nsys is a stand-in that runs the program and leaves
a real database. PyProf's and PyProf2's are in python/tests/test_pyprof_modules.py, torch's docstrings in python/tests/test_torch_behaviour.py, the plugin's addresses in
test_serve_plugin.py.
"""
import csv
import os
import shutil
import subprocess
import tempfile

import oracle
from oracle import Case, data
from served import Server

W_RELU, LM = ("dlprof", "w_relu", "nsys_profile.sqlite"), ("pyprof", "lm_nvprof", "net.sql")

NSYS = """#!/bin/sh
while [ $# -gt 0 ] && [ "$1" != -o ]; do shift; done
base=$2; shift 2
"$@"; code=$?
cp "$DATABASE" "$base.sqlite"
exit $code
"""

# The command; files that it leaves; what it says.
COMMANDS = [
    ("dlprof --mode=pytorch python3 train.py", "dlprof_dldb.opscope nsys_profile.sqlite", "Expert Systems Feedback: 4 issues detected"),
    ("dlprof --mode=simple --reports=summary,kernel python3 train.py", "dlprof_kernel.csv dlprof_summary.csv nsys_profile.sqlite", "trained"),
    ("dlprof -m simple -f true -v quiet -y 2 -d 60 python3 train.py", "nsys_profile.sqlite", None),
    ("dlprof --reports=all --formats=csv,json --output_path=./results --base_name=run python3 train.py",
     " ".join(f"results/run_{r}.{f}" for r in ("summary", "detailed", "iteration", "kernel", "tensor_core", "op_type", "group_op", "expert_systems") for f in ("csv", "json")),
     "Writing tensor report to ./results/run_tensor_core.csv"),
    ("dlprof --reports summary detail iteration --file_formats csv json --profile_name ten -- python3 train.py", "ten_detailed.json ten_iteration.csv ten_summary.json", None),
    ("dlprof --nsys_opts=\"-t cuda,nvtx,osrt -s none\" --nsys_base_name=other --dump_model_data=true python3 train.py", "dlprof_model_data.json other.sqlite", None),
    ("nsys profile -t cuda,nvtx -s none --show-output=true --export=sqlite -o ./nsys_profile python3 train.py && dlprof --database=nsys_profile.sqlite --reports=op_type",
     "dlprof_op_type.csv nsys_profile.sqlite", "Writing op_type report"),
    ("dlprof --mode=pytorch python3 train.py && dlprof --database=dlprof_dldb.opscope --reports=group_node", "dlprof_group_op.csv", None),
    ("dlprof --dldb=instead python3 train.py && dlprof --database=dlprof_dldb.sqlite --reports=tensor", "dlprof_dldb.sqlite dlprof_tensor_core.csv", None),
    ("dlprof --help && dlprof --version && dlprofviewer --version", "", "--iter_start=N"),
]


class Commands(Case):
    def setUp(self):
        super().setUp()
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)
        self.bin = os.path.join(self.tmp, "bin")
        os.mkdir(self.bin)
        for name in ("dlprof", "dlprofviewer", "opscope"):
            os.symlink(oracle.OPSCOPE, os.path.join(self.bin, name))
        with open(os.path.join(self.bin, "nsys"), "w") as f:
            f.write(NSYS)
        os.chmod(f.name, 0o755)

    def sh(self, command, database=W_RELU):
        """(folder, what it prints)"""
        folder = tempfile.mkdtemp(dir=self.tmp)
        with open(os.path.join(folder, "train.py"), "w") as f:
            f.write("print('trained', flush=True)\n")
        env = {**os.environ, "PATH": self.bin + os.pathsep + os.environ["PATH"], "DATABASE": data(*database)}
        p = subprocess.run(["sh", "-c", command], cwd=folder, env=env, capture_output=True, text=True, timeout=oracle.TIMEOUT)
        self.assertEqual(p.returncode, 0, f"{command}: {p.stdout}{p.stderr}")
        return folder, p.stdout

    @staticmethod
    def rows(folder, name):
        """Of a report of DLProf: rows by the titles below the first line."""
        with open(os.path.join(folder, name), newline="") as f:
            next(f)
            return list(csv.DictReader(f))

    @oracle.of("dlprof")
    def test_dlprof(self):
        for command, files, said in COMMANDS:
            with self.subTest(command):
                folder, out = self.sh(command)
                self.assertEqual([f for f in files.split() if not os.path.getsize(os.path.join(folder, f))], [])
                if said:
                    self.assertIn(said, out)

    @oracle.of("dlprof")
    def test_find_a_key_op(self):
        """An op that is called once a step: by the calls in the detailed report; then the same profile again, with that op, for some of the iterations."""
        folder, _ = self.sh("dlprof --reports=detail --mode=pytorch python3 train.py", LM)
        calls = {r["Op ID"]: int(r["No. Calls"]) for r in self.rows(folder, "dlprof_detailed.csv")}
        self.assertEqual(calls["RELU_1"], 2)  # of two steps
        database = os.path.join(folder, "nsys_profile.sqlite")
        folder, out = self.sh(f"dlprof --reports=summary,iteration --key_node=RELU_1 --database={database}", LM)
        self.assertIn('Found 3 iterations using key_op "RELU_1"', out)
        whole = self.rows(folder, "dlprof_iteration.csv")
        self.assertEqual((len(whole), {r["Iteration"] for r in whole}), (284, {"0", "1", "2"}))
        folder, out = self.sh(f"dlprof --reports=iteration --key_node=RELU_1 --iter_start=1 --iter_stop=1 --database={database}", LM)
        self.assertIn("Aggregating data over 1 iteration", out)
        self.assertEqual(self.rows(folder, "dlprof_iteration.csv"), [r for r in whole if r["Iteration"] == "1"])

    @oracle.of("dlprof")
    def test_ops_that_could_use_tensor_cores(self):
        """The op with most time that could, and does not; and that the findings ask for mixed precision."""
        folder, out = self.sh("dlprof --reports=tensor,detail python3 train.py")
        rows = [r for r in self.rows(folder, "dlprof_tensor_core.csv") if r["Uses TC"] == "no"]
        most = max(rows, key=lambda r: int(r["Total GPU Time (ns)"]))
        detailed = {r["Op ID"]: r for r in self.rows(folder, "dlprof_detailed.csv")}
        self.assertEqual((most["Op ID"], detailed[most["Op ID"]]["TC Eligible"]), ("CONV2D_1", "yes"))
        self.assertIn("Try enabling AMP", out)

    @oracle.of("dlprof")
    def test_viewer(self):
        if oracle.run("help")[1].find(b"\n  serve ") < 0:
            self.skipTest("built without libmicrohttpd")
        folder, _ = self.sh("dlprof python3 train.py")
        server = Server(self, "-b", "localhost", os.path.join(folder, "dlprof_dldb.opscope"), program=os.path.join(self.bin, "dlprofviewer"))
        self.assertEqual(len(server.get("/api/report/tensor-cores", compat="dlprof")["rows"]), 5)

    @oracle.of("tb_plugin")
    def test_plugin(self):
        """`tensorboard --logdir=./samples --bind_all` is `opscope serve ./samples --bind=0.0.0.0`; what stands behind the plugin's address answers."""
        if oracle.run("help")[1].find(b"\n  serve ") < 0:
            self.skipTest("built without libmicrohttpd")
        samples = os.path.join(self.tmp, "samples", "run")
        os.makedirs(samples)
        shutil.copy(oracle.synthetic("two_steps"), os.path.join(samples, "worker0.1623143089861.pt.trace.json"))
        server = Server(self, os.path.dirname(samples), "--bind=0.0.0.0")
        self.assertEqual(server.get("/data/plugin/pytorch_profiler/runs"), {"runs": ["run"], "loading": False})
        self.assertEqual(server.get("/data/plugin/pytorch_profiler/workers", run="run", view="Overview"), ["worker0"])


if __name__ == "__main__":
    oracle.main()
