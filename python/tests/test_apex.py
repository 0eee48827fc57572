"""opscope.torch and APEX, by packages that have APEX's names and shapes and do their work with torch: what of them is wrapped, and what is not."""
import ast
import importlib
import os
import sys
import tempfile
import textwrap
import types

from support import oracle

try:
    import torch
except ImportError:
    torch = None
else:
    import opscope.torch
    from opscope import _annotate, _compat

# As APEX lays them out: extensions at the top, packages that take their classes from modules of their own.
FILES = {
    "amp_C.py": """
        def multi_tensor_adam(chunk, flag, lists, lr):
            for g, p in zip(*lists):
                p.data.sub_(g, alpha=lr)
        def multi_tensor_l2norm(chunk, flag, lists):
            return sum(t.norm() for t in lists[0])
        def _private():
            pass
        VERSION = 1
        """,
    "fused_layer_norm_cuda.py": """
        import torch
        def forward_affine(x, shape, weight, bias, eps):
            return torch.nn.functional.layer_norm(x, shape, weight, bias, eps)
        """,
    "mlp_cuda.py": "raise ImportError('mlp_cuda.so: undefined symbol')",
    "apex/__init__.py": "",
    "apex/multi_tensor_apply/__init__.py": """
        from .multi_tensor_apply import MultiTensorApply
        multi_tensor_applier = MultiTensorApply(2048 * 32)
        """,
    "apex/multi_tensor_apply/multi_tensor_apply.py": """
        class MultiTensorApply:
            def __init__(self, chunk):
                self.chunk = chunk
            def __call__(self, op, flag, lists, *args):
                return op(self.chunk, flag, lists, *args)
        """,
    "apex/optimizers/__init__.py": "from .fused_adam import FusedAdam\nfrom torch.optim import SGD",
    "apex/optimizers/fused_adam.py": """
        import amp_C, torch
        from apex.multi_tensor_apply import multi_tensor_applier
        class FusedAdam(torch.optim.Optimizer):
            def __init__(self, params, lr=1e-3):
                super().__init__(params, dict(lr=lr))
            def step(self, closure=None):
                for group in self.param_groups:
                    all = [p for p in group["params"] if p.grad is not None]
                    multi_tensor_applier(amp_C.multi_tensor_adam, torch.zeros(1), [[p.grad for p in all], all], group["lr"])
        """,
    "apex/normalization/__init__.py": "from .fused_layer_norm import FusedLayerNorm",
    "apex/normalization/fused_layer_norm.py": """
        import fused_layer_norm_cuda, torch
        class FusedLayerNorm(torch.nn.Module):
            def __init__(self, n):
                super().__init__()
                self.weight, self.bias = torch.nn.Parameter(torch.ones(n)), torch.nn.Parameter(torch.zeros(n))
            def forward(self, x):
                return fused_layer_norm_cuda.forward_affine(x, self.weight.shape, self.weight, self.bias, 1e-5)
        """,
    "apex/contrib/__init__.py": "",
    "apex/contrib/xentropy/__init__.py": "from .softmax_xentropy import SoftmaxCrossEntropyLoss",
    "apex/contrib/xentropy/softmax_xentropy.py": """
        import torch
        class SoftmaxCrossEntropyLoss(torch.autograd.Function):
            @staticmethod
            def forward(ctx, logits, labels):
                ctx.save_for_backward(logits, labels)
                return torch.nn.functional.cross_entropy(logits, labels, reduction="none")
            @staticmethod
            def backward(ctx, grad):
                logits, labels = ctx.saved_tensors
                return (logits.softmax(1) - torch.nn.functional.one_hot(labels, logits.shape[1])) * grad[:, None], None
        """,
    "apex/contrib/groupbn/__init__.py": "import bnp  # an extension that was not built",
    "apex/parallel/__init__.py": "from .distributed import DistributedDataParallel\nfrom torch.nn import Linear",
    "apex/parallel/distributed.py": """
        import torch
        class DistributedDataParallel(torch.nn.Module):
            def __init__(self, module):
                super().__init__()
                self.module = module
            def forward(self, *args):
                return self.module(*args)
            def helper(self):
                pass
        """,
    "apex/amp/__init__.py": "from .frontend import initialize\nfrom .scaler import LossScaler",
    "apex/amp/frontend.py": "def initialize(model, optimizer, opt_level='O1'):\n    return model, optimizer",
    "apex/amp/scaler.py": "class LossScaler:\n    def loss_scale(self):\n        return 1",
    "apex/RNN/__init__.py": "class LSTM:\n    def forward(self, x):\n        return x",
}

WRAPPED = {("amp_C", "multi_tensor_adam"), ("amp_C", "multi_tensor_l2norm"), ("fused_layer_norm_cuda", "forward_affine"), ("FusedAdam", "step"),
           ("DistributedDataParallel", "forward"), ("SoftmaxCrossEntropyLoss", "forward"), ("SoftmaxCrossEntropyLoss", "backward")}


class Apex(oracle.Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for path, text in FILES.items():
            path = os.path.join(cls.folder.name, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as f:
                f.write(textwrap.dedent(text) + "\n")
        sys.path.insert(0, cls.folder.name)
        importlib.invalidate_caches()

    @classmethod
    def tearDownClass(cls):
        sys.path.remove(cls.folder.name)
        for name in [n for n, m in sys.modules.items() if (getattr(m, "__file__", None) or "").startswith(cls.folder.name)]:
            del sys.modules[name]
        importlib.invalidate_caches()
        cls.folder.cleanup()

    def setUp(self):
        if not torch:
            self.skipTest("torch is not installed")
        self.written = []
        self.addCleanup(opscope.torch.close)
        self.addCleanup(_annotate.copy_to, None)
        _annotate.copy_to(self.written)

    def calls(self):
        """(module or class, function) of each call, in their order."""
        marks = [ast.literal_eval(w[1]) for w in self.written if w[0] == "push" and w[1].startswith("{'mod'")]
        return [(m["mod"], m["op"]) for m in marks if "op" in m]

    def step(self):
        """One of training; the weights after it."""
        from apex import amp, optimizers, parallel
        from apex.contrib.xentropy import SoftmaxCrossEntropyLoss
        from apex.normalization import FusedLayerNorm
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(4, 8), FusedLayerNorm(8), torch.nn.Linear(8, 3))
        net, optimizer = amp.initialize(net, optimizers.FusedAdam(net.parameters(), lr=0.1))
        net = parallel.DistributedDataParallel(net)
        SoftmaxCrossEntropyLoss.apply(net(torch.randn(5, 4)), torch.arange(5) % 3).sum().backward()
        optimizer.step()
        return [p.detach().clone() for p in net.parameters()]

    def test_what_is_wrapped(self):
        """Functions of extensions; of packages the classes that are theirs, and of these forward, backward and step. Not apex.RNN, not what cannot be
        imported, nothing that was borrowed from torch."""
        found = {(owner.__name__, name) for owner, name in _compat.apex()}
        self.assertEqual(found, WRAPPED)

    def test_training(self):
        import apex.contrib.xentropy, apex.optimizers, apex.parallel, amp_C, fused_layer_norm_cuda
        owners = [amp_C, fused_layer_norm_cuda, apex.optimizers.FusedAdam, apex.parallel.DistributedDataParallel, apex.contrib.xentropy.SoftmaxCrossEntropyLoss]
        want, before = self.step(), [dict(vars(o)) for o in owners]
        for compat in (None, "pyprof", "dlprof"):
            with self.subTest(compat):
                opscope.torch.init(force=True, compat=compat, stacks=False)
                del self.written[:]
                got = self.step()
                opscope.torch.close()
                self.assertTrue(all(torch.equal(a, b) for a, b in zip(want, got)))
                calls = [c for c in self.calls() if c in WRAPPED]
                self.assertEqual(calls, [("DistributedDataParallel", "forward"), ("fused_layer_norm_cuda", "forward_affine"), ("SoftmaxCrossEntropyLoss", "forward"),
                                         ("SoftmaxCrossEntropyLoss", "backward"), ("FusedAdam", "step"), ("amp_C", "multi_tensor_adam")])
                self.assertEqual([dict(vars(o)) for o in owners], before)

    def test_stand_ins(self):
        """Of programs that have something else in APEX's place: nothing of it is wrapped."""
        from unittest import mock
        for one in (types.ModuleType("apex"), mock.MagicMock(), None):
            with mock.patch.dict(sys.modules, {"apex": one, "apex.amp": mock.MagicMock(), "amp_C": one}):
                initialize = sys.modules["apex.amp"].initialize
                self.assertEqual(_compat.apex(), [])
                opscope.torch.init(force=True)
                opscope.torch.close()
                self.assertIs(sys.modules["apex.amp"].initialize, initialize)

    def test_lists_of_tensors(self):
        """What amp_C's functions work on are lists of lists: all their tensors are named, in PyProf's form one by one."""
        import amp_C
        for compat, want in ((None, [65536, (1,), [(2, 3), (4,)]]), ("pyprof", [65536, (1,), (2, 3), (4,)])):
            opscope.torch.init(force=True, stacks=False, compat=compat)
            del self.written[:]
            amp_C.multi_tensor_l2norm(65536, torch.zeros(1), [[torch.zeros(2, 3), torch.zeros(4)]])
            mark = next(ast.literal_eval(w[1]) for w in self.written if w[0] == "push" and "multi_tensor_l2norm" in w[1])
            self.assertEqual([a.get("shape") or a.get("shapes") or a.get("value") for a in mark["args"]], want)
            opscope.torch.close()

    def test_mixed_precision_is_told(self):
        import apex.amp
        before = apex.amp.initialize
        opscope.torch.init(force=True)
        del self.written[:]
        apex.amp.initialize(None, None)
        apex.amp.initialize(None, None)
        self.assertEqual([w[1] for w in self.written if w[0] == "push"], ['{"model_config": {"amp_enabled": true}}'])
        opscope.torch.close()
        self.assertIs(apex.amp.initialize, before)


if __name__ == "__main__":
    oracle.main()
