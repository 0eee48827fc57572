"""What tools/gpu-check asks of opscope.torch, without a GPU: torch's operators of the CPU, each of which launches a kernel of the mock driver. It passes; and where
more of the device's time than it lets pass belongs to no op, or there are no layers, it fails."""
import os
import sys
import unittest

from support import BUILD, cuda_stub, oracle
import test_gpu_check

try:
    import torch
except ImportError:
    torch = None

# In the place of the Python with torch that gpu-check asks for: the program's device is the CPU, and CUDA is cuda_stub.cpp.
PYTHON = """#!{python}
import ctypes, os, runpy, sys
if sys.argv[1] == "-c":
    sys.exit(0)
import torch
stub = ctypes.CDLL("{stub}")
assert stub.install_cuda_stub() and stub.launch_by(b"{driver}")
torch.cuda.is_available = lambda: True
torch.set_num_threads(1)
if os.environ.get("TRY_WITHOUT_LAYERS"):
    import opscope.torch
    init = opscope.torch.init
    opscope.torch.init = lambda: init(layers=False)
zero_grad, outside = torch.optim.SGD.zero_grad, int(os.environ.get("TRY_OUTSIDE", 0))
torch.optim.SGD.zero_grad = lambda self: (stub.launch_outside(outside), zero_grad(self))
torch.cuda.synchronize = lambda: None
sys.argv = sys.argv[1:] + ["--device=cpu"]
with open(sys.argv[0]) as f:
    program = f.read()
if sys.argv[0].endswith("gpu_torch.py"):
    runpy.run_path(sys.argv[0], run_name="__main__")
else:
    exec(program.replace(".cuda()", "").replace('"cuda"', '"cpu"'))
"""


@unittest.skipUnless(torch, "torch is not installed")
class GpuTorch(test_gpu_check.Base):
    def setUp(self):
        super().setUp()
        self.python = os.path.join(self.folder.name, "python")
        with open(self.python, "w") as f:
            f.write(PYTHON.format(python=sys.executable, stub=cuda_stub(), driver=os.path.join(BUILD, "tests", "mock", "libcuda.so.1")))
        os.chmod(self.python, 0o755)

    def results(self, *names, **env):
        return self.run_checks(*names, OPSCOPE_TORCH_PYTHON=self.python, PYTHONPATH=os.path.join(BUILD, "python"), OMP_NUM_THREADS="1", **env)

    def test_models(self):
        """Without torch.compile its checks are skipped, and say why."""
        names = ["layers-resnet-fp32", "layers-resnet-bf16", "layers-gpt-amp"]
        code, results, text = self.results(*names, "layers-gpt-amp-compile")
        compiled = "passed" if hasattr(torch, "compile") else "skipped"
        self.assertEqual((code, results), (0, {**dict.fromkeys(names, "passed"), "layers-gpt-amp-compile": compiled}), text)
        self.assertRegex(text, "" if compiled == "passed" else r"layers-gpt-amp-compile +skipped .* torch 1\.13\S* has no torch\.compile")

    def test_time_of_no_op(self):
        """1 % of the device's time may be missing, 3 % may not."""
        for outside, result in ((1, "passed"), (3, "FAILED")):
            code, results, text = self.results("layers-gpt-fp32", TRY_OUTSIDE=str(outside))
            self.assertEqual(results, {"layers-gpt-fp32": result}, text)

    def test_emit_nvtx(self):
        """Without opscope.torch, by torch's own ranges."""
        for outside, result in ((1, "passed"), (3, "FAILED")):
            code, results, text = self.results("torch", TRY_OUTSIDE=str(outside))
            self.assertEqual(results, {"torch": result}, text)

    def test_no_layers(self):
        code, results, text = self.results("layers-gpt-fp32", TRY_WITHOUT_LAYERS="1")
        self.assertEqual((code, results), (1, {"layers-gpt-fp32": "FAILED"}), text)
        self.assertIn("the input does not say which layers there are", text)


if __name__ == "__main__":
    oracle.main()
