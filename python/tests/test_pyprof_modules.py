"""pyprof, pyprof2 and nvidia_dlprof_pytorch_nvtx by opscope-pyprof: the quick starts of their pages, command by command, in an environment in which both wheels
are installed by pip; and that a real one is never shadowed.

nsys and nvprof are stand-ins: they run the program under a tool that listens to NVTX, and put a real recording where theirs would be. So are CUDA's ranges
(cuda_stub.cpp) and its profiler's switch, since the programs run on the CPU. Skipped under a Python without torch (Debian: python3-torch).
"""
import ast
import csv
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import ROOT, cuda_stub, oracle
from test_torch_recorded import TOOL
from test_wheel import build

try:
    import torch
except ImportError:
    torch = None

LM, MMAGIC = ("pyprof", "lm_nvprof"), ("pyprof", "mmagic_nsys")

# What the README of PyProf has a program do; PyProf2's has the other name.
NET = """
import torch.cuda.profiler as profiler
import pyprof
pyprof.init()

iters = 500
iter_to_capture = 100

# Define network, loss function, optimizer etc.
import torch
net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
criterion, optimizer = torch.nn.MSELoss(), torch.optim.SGD(net.parameters(), lr=0.1)
images, labels = torch.ones(2, 4), torch.ones(2, 3)
iters, iter_to_capture = 5, 2

# PyTorch NVTX context manager
with torch.autograd.profiler.emit_nvtx():

    for iter in range(iters):

        if iter == iter_to_capture:
            profiler.start()

        output = net(images)
        loss = criterion(output, labels)
        loss.backward()
        optimizer.step()

        if iter == iter_to_capture:
            profiler.stop()
"""

# CUDA, before the program: its ranges, its wait, and the switch of its profiler.
CUDA = """
import ctypes, os
if "TEST_CUDA_STUB" in os.environ and "NVTX_INJECTION64_PATH" in os.environ:
    import torch
    assert ctypes.CDLL(os.environ["TEST_CUDA_STUB"]).install_cuda_stub()
    import torch.cuda.profiler
    torch.cuda.synchronize = lambda device=None: None
    torch.cuda.profiler.start = lambda: print("profiler start", flush=True)
    torch.cuda.profiler.stop = lambda: print("profiler stop", flush=True)
"""

# The last words, from "python" on, are the program; -o says what its file is called.
RECORDER = """#!/bin/sh
words="$*" name=
while [ "$1" != python ]; do
    [ "$1" != -o ] || name=$2
    shift
done
NVTX_INJECTION64_PATH=$TEST_TOOL "$@" > "$TEST_HEARD" && cp "$TEST_RECORDING" "$name$TEST_SUFFIX"
"""

FULL_WIDTH = "kernel,op,sil,tc,flops,bytes,device,stream,block,grid"


@unittest.skipUnless(torch, "no Python with torch (Debian: python3-torch)")
class Modules(oracle.Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        top = cls.folder.name
        cls.bin, cls.python = os.path.join(top, "env", "bin"), os.path.join(top, "env", "bin", "python")
        made = subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", os.path.join(top, "env")], capture_output=True, text=True)
        if made.returncode:
            raise unittest.SkipTest("no virtual environment can be made here: " + made.stdout.strip())
        cls.env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "NVTX_INJECTION64_PATH", "OPSCOPE_DIR")}
        cls.env.update(PATH=cls.bin + os.pathsep + os.environ["PATH"], OMP_NUM_THREADS="1")
        cls.wheel = cls.wheel_of_modules(top)
        cls.pip("install", "--no-deps", build("build_wheel", top), cls.wheel)

    @classmethod
    def wheel_of_modules(cls, folder):
        """Built as pip builds it, in a process of its own."""
        code = "import sys; sys.path.insert(0, '.'); import backend; print(backend.build_wheel(sys.argv[1]))"
        p = subprocess.run([sys.executable, "-c", code, folder], cwd=os.path.join(ROOT, "python", "pyprof"), capture_output=True, text=True, check=True)
        return os.path.join(folder, p.stdout.strip())

    @classmethod
    def pip(cls, command, *words):
        subprocess.run([cls.python, "-m", "pip", command, "-q", "--no-index", "--disable-pip-version-check", *words], env=cls.env, cwd=cls.folder.name, check=True,
                       capture_output=True)

    def setUp(self):
        self.work = tempfile.mkdtemp(dir=self.folder.name)

    def sh(self, command, code=0, **env):
        """What a command line prints, on both."""
        p = subprocess.run(["sh", "-c", command], cwd=self.work, env={**self.env, **env}, capture_output=True, text=True)
        self.assertEqual(p.returncode, code, f"{command}: {p.stdout} {p.stderr}")
        return p.stdout, p.stderr

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.work, name)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, mode)
        return path

    def read(self, name):
        with open(os.path.join(self.work, name)) as f:
            return f.read()

    def recorder(self, name, recording, suffix):
        """A stand-in for nsys or nvprof, and what the program needs below it: environment variables."""
        compiler = shutil.which("cc")
        if not compiler:
            self.skipTest("no compiler")
        bin_folder = os.path.join(self.work, "tools")
        os.makedirs(bin_folder, exist_ok=True)
        self.write(os.path.join("tools", name), RECORDER, 0o755)
        self.write(os.path.join("tools", "sitecustomize.py"), CUDA)
        tool = os.path.join(self.work, "tool.so")
        subprocess.run([compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", tool], input=TOOL, text=True, check=True)
        return dict(PATH=bin_folder + os.pathsep + self.env["PATH"], PYTHONPATH=bin_folder, TEST_TOOL=tool, TEST_CUDA_STUB=cuda_stub(), TEST_RECORDING=recording,
                    TEST_SUFFIX=suffix, TEST_HEARD=os.path.join(self.work, "heard"))

    def check_markers(self, module):
        """What the tool heard of the program: PyProf's markers around torch's own ranges, and the switch in the third iteration."""
        lines = self.read("heard").splitlines()
        self.assertEqual(sum(line.startswith(f"{module}: ") for line in lines), 2)
        start, stop = lines.index("profiler start"), lines.index("profiler stop")
        texts = [line[len("push "):] for line in lines[start:stop] if line.startswith("push ")]
        markers = [ast.literal_eval(t) for t in texts if t.startswith("{")]
        ops = [m["op"] for m in markers if "op" in m]
        self.assertEqual([o for o in dict.fromkeys(ops) if o in ("linear", "relu", "mse_loss")], ["linear", "relu", "mse_loss"])
        linear = next(m for m in markers if m.get("op") == "linear")
        self.assertEqual((linear["mod"], linear["args"][0]), ("torch.nn.functional", {"name": "", "type": "tensor", "shape": (2, 4), "dtype": "float32"}))
        trace = next(m["traceMarker"] for m in markers if "traceMarker" in m)
        self.assertTrue(any("net.py:" in place for place in trace), trace)
        self.assertTrue(any(t.startswith("aten::addmm, seq = ") for t in texts), texts)

    def rows(self, text, columns):
        """Of pyprof.prof --csv."""
        return [[row[t] for t in columns] for row in csv.DictReader(text.splitlines())]

    def test_quick_start_of_pyprof_with_nsys(self):
        env = self.recorder("nsys", oracle.data(*MMAGIC, "net.sqlite"), ".sqlite")
        self.write("net.py", NET)
        self.sh("nsys profile -f true -o net -c cudaProfilerApi --stop-on-range-end true --export sqlite python net.py", **env)
        self.check_markers("pyprof")
        self.sh("nsys profile -f true -o net --export sqlite python net.py", **env)
        _, err = self.sh("python -m pyprof.parse net.sqlite > net.dict")
        self.assertIn("Found 328 kernels", err)
        self.assertEqual(len([ast.literal_eval(line) for line in self.read("net.dict").splitlines()]), 328)
        with open(oracle.data(*MMAGIC, "expected_pyprof.csv"), newline="") as f:
            wanted = list(csv.DictReader(f))
        out, _ = self.sh("python -m pyprof.prof --csv -c idx,dir,kernel,params,sil net.dict")
        titles = ["Idx", "Direction", "Kernel", "Params", "Sil(ns)"]
        self.assertEqual(self.rows(out, titles), [[w[t] for t in titles] for w in wanted])

    def test_quick_start_of_pyprof_with_nvprof(self):
        env = self.recorder("nvprof", oracle.data(*LM, "net.sql"), "")
        self.write("net.py", NET)
        self.sh("nvprof -f -o net.sql --profile-from-start off -- python net.py", **env)
        self.check_markers("pyprof")
        self.sh("nvprof -f -o net.sql -- python net.py", **env)
        self.sh("python -m pyprof.parse net.sql > net.dict")
        without = 'import runpy, sys; sys.modules["torch"] = None; runpy.run_module("pyprof.parse", run_name="__main__", alter_sys=True)'
        self.sh(f"python -c '{without}' net.sql > bare.dict")
        self.assertEqual(self.read("bare.dict"), self.read("net.dict"))
        with open(oracle.data(*LM, "expected_net.dict")) as f:
            self.assertEqual(len(self.read("net.dict").splitlines()), len(f.readlines()))
        out, _ = self.sh("python -m pyprof.prof -h")
        for column in ("idx", "altseq", "params", "flops", "bytes"):
            self.assertIn(column, out)
        out, _ = self.sh("python -m pyprof.prof -w 150 net.dict")
        self.assertEqual(len(out.splitlines()[0]), 149 + 8)  # a blank behind each of eight columns; two of these share an odd rest
        self.assertEqual(len(out.splitlines()), 285)
        for command, separator in (("python -m pyprof.prof --csv net.dict", '","'), ("python -m pyprof.prof net.dict", " "),
                                   (f"python -m pyprof.prof -w 130 -c {FULL_WIDTH} net.dict", " "),
                                   ("python -m pyprof.prof --csv -c idx,dir,kernel,params,sil net.dict", '","'),
                                   ("python -m pyprof.prof -c idx,dir,kernel,params,sil net.dict", " ")):
            out, _ = self.sh(command)
            self.assertEqual(len(out.splitlines()), 285, command)
            self.assertIn(separator, out.splitlines()[0])
        self.assertEqual(self.sh("python -m pyprof.prof < net.dict")[0], self.sh("python -m pyprof.prof net.dict")[0])
        self.sh("python -m pyprof.prof --csv net.dict > results.csv")
        self.assertEqual(self.read("results.csv"), self.sh("python -m pyprof.prof --csv net.dict")[0])
        _, err = self.sh("python -m pyprof.parse missing.sql", code=2)
        self.assertRegex(err, "missing.sql")

    def test_quick_start_of_pyprof2(self):
        """Its programs are run by path, where PyProf2 lies."""
        env = self.recorder("nvprof", oracle.data(*LM, "net.sql"), "")
        self.write("net.py", NET.replace("pyprof", "pyprof2"))
        self.sh("nvprof -f -o net.sql --profile-from-start off -- python net.py", **env)
        self.check_markers("pyprof2")
        where, _ = self.sh("python -c 'import opscope_pyprof; print(opscope_pyprof.FOLDER)'")
        os.symlink(os.path.join(where.strip(), "pyprof2"), os.path.join(self.work, "pyprof2"))
        self.sh("pyprof2/parse/parse.py net.sql > net.dict")
        out, _ = self.sh("pyprof2/prof/prof.py -w 150 net.dict")
        self.assertEqual(len(out.splitlines()), 285)
        self.sh("pyprof2/prof/prof.py --csv net.dict > net.csv")
        code, want, _ = oracle.run("pyprof-prof", "--compat=pyprof2", "--csv", oracle.data(*LM, "net.sql"))
        self.assertEqual((code, self.read("net.csv")), (0, want.decode()))

    def test_dlprofs_module(self):
        """As DLProf's user guide has it: names of functions in the markers; numbers of calls between start_graph and stop_graph."""
        env = self.recorder("nsys", oracle.data(*MMAGIC, "net.sqlite"), ".sqlite")
        self.write("net.py", """if 1:
            import torch
            import nvidia_dlprof_pytorch_nvtx
            nvidia_dlprof_pytorch_nvtx.init(enable_function_stack=True)

            def forward(x):
                return torch.nn.functional.relu(x)

            with torch.autograd.profiler.emit_nvtx():
                forward(torch.ones(2, 3))
            from nvidia_dlprof_pytorch_nvtx.config import Config
            from nvidia_dlprof_pytorch_nvtx.dlprof import DLProf
            assert Config() is Config(enable_function_stack=False) and Config().func_stack_enabled and not Config().capture_input_ops
            assert DLProf() is DLProf()
            def here():
                return nvidia_dlprof_pytorch_nvtx.nvmarker.traceMarker("sum")
            assert eval(here())["funcStack"].endswith("/here/sum"), here()
            import nvidia_dlprof_pytorch_nvtx as nvtx
            nvtx.init(capture_input_ops=True, delay_graph_capture=True)
            a = torch.ones(2)
            nvtx.start_graph()
            (a + 1).exp()
            nvtx.stop_graph()
            a.exp()
        """)
        self.sh("nsys profile -o net --export sqlite python net.py", **env)
        texts = [line[len("push "):] for line in self.read("heard").splitlines() if line.startswith("push {")]
        markers = [ast.literal_eval(t) for t in texts if "model_config" not in t]
        stacks = [m["funcStack"] for m in markers if "funcStack" in m]
        self.assertTrue(any(s.endswith("/forward/relu") for s in stacks), stacks)
        exps = [m for m in markers if m.get("op") == "exp"]
        added = next(m for m in markers if m.get("op") == "__add__")
        self.assertEqual(exps[0]["input_callids"], [added["callid"]])
        self.assertNotIn("callid", exps[1])

    def test_where_nobody_records(self):
        out, _ = self.sh("""python -c "
import torch, pyprof, pyprof.nvtx, pyprof2, nvidia_dlprof_pytorch_nvtx
before = torch.add, torch.nn.functional.relu
pyprof.init(); pyprof2.init(); nvidia_dlprof_pytorch_nvtx.init(); pyprof.nvtx.init()
assert (torch.add, torch.nn.functional.relu) == before and type(torch.add).__module__ == 'builtins'
class Mine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x
pyprof.wrap(Mine, 'forward'); pyprof.nvtx.wrap(Mine, 'forward'); nvidia_dlprof_pytorch_nvtx.wrap(Mine, 'forward')
" """)
        self.assertEqual(out.count("nobody records"), 4)

    def test_under_opscope_record(self):
        """The same program without any tool of NVIDIA: its capture is an input of parse."""
        self.write("net.py", "import torch, pyprof\npyprof.init()\nnet = torch.nn.Linear(4, 3)\nnet(torch.ones(2, 4)).sum().backward()\n")
        self.sh("opscope record -o run --no-report -- python net.py")
        out, _ = self.sh("opscope report operators run --format=csv")
        self.assertIn("torch.nn.functional.linear", out)
        _, err = self.sh("python -m pyprof.parse run")
        self.assertIn("Found 0 kernels", err)

    def test_a_real_one_is_not_shadowed(self):
        """Wherever it is found: beside it, in a folder that comes later, by a finder that was added later."""
        site = self.sh("python -c 'import sysconfig; print(sysconfig.get_path(\"purelib\"))'")[0].strip()
        which = "python -c 'import pyprof; print(pyprof.__file__)'"
        ours = self.sh(which)[0]
        self.assertIn(os.path.join("opscope_pyprof", "dropin"), ours)
        real = os.path.join(site, "pyprof")
        os.mkdir(real)
        try:
            self.write(os.path.join(real, "__init__.py"), "")
            self.assertEqual(self.sh(which)[0].strip(), os.path.join(real, "__init__.py"))
            self.pip("install", "--no-deps", "--force-reinstall", self.wheel)
            self.assertEqual(os.listdir(real)[:1], ["__init__.py"])
            self.assertEqual(self.sh(which)[0].strip(), os.path.join(real, "__init__.py"))
            other = os.path.join(self.work, "other")
            shutil.move(real, os.path.join(other, "pyprof"))
        finally:
            shutil.rmtree(real, ignore_errors=True)
        self.assertEqual(self.sh(which)[0], ours)
        self.assertIn("/other/", self.sh(f"python -c 'import sys; sys.path.append(\"{other}\"); import pyprof; print(pyprof.__file__)'")[0])
        self.assertIn("/other/", self.sh(f"""python -c '
import sys
from importlib.machinery import PathFinder
class Later:
    find_spec = staticmethod(lambda name, path, target=None: PathFinder.find_spec(name, ["{other}"]) if name == "pyprof" else None)
sys.meta_path.append(Later)
import pyprof; print(pyprof.__file__)'""")[0])
        self.pip_uninstalls(which, ours)

    def pip_uninstalls(self, which, ours):
        subprocess.run([self.python, "-m", "pip", "uninstall", "-q", "-y", "opscope-pyprof"], env=self.env, check=True, capture_output=True)
        try:
            self.sh(which, code=1)
        finally:
            self.pip("install", "--no-deps", self.wheel)
        self.assertEqual(self.sh(which)[0], ours)

    def test_the_extra(self):
        """opscope[pyprof] needs the same version of it."""
        out, _ = self.sh("python -c 'import importlib.metadata as m; print(m.requires(\"opscope\"), m.requires(\"opscope-pyprof\"), m.version(\"opscope-pyprof\"))'")
        version = out.split()[-1]
        self.assertEqual(out, f"[\"opscope-pyprof=={version}; extra == 'pyprof'\"] ['opscope=={version}'] {version}\n")


if __name__ == "__main__":
    oracle.main()
