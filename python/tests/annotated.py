"""What the tests of opscope.torch share: what is annotated, as a list; a small model, and a step of its training."""
import ast
import unittest

from support import oracle

try:
    import torch
except ImportError:
    torch = nn = F = _annotate = None
else:
    import torch.nn as nn
    import torch.nn.functional as F

    import opscope.torch
    from opscope import _annotate

    torch.set_num_threads(1)


class LeNet(nn.Module if torch else object):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), (2, 2))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(x.view(-1, 16 * 5 * 5)))
        return self.fc3(F.relu(self.fc2(x)))


LENET_FORWARD = ["conv2d", "relu", "max_pool2d", "conv2d", "relu", "max_pool2d", "view", "linear", "relu", "linear", "relu", "linear", "mse_loss"]


def lenet_step(net=None):
    net = net or LeNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x, target = torch.randn(1, 1, 32, 32), torch.randn(1, 10)

    def step():
        optimizer.zero_grad()
        loss = nn.MSELoss()(net(x), target)
        loss.backward()
        optimizer.step()
        return loss.detach()
    return step


class Squares(torch.utils.data.Dataset if torch else object):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return F.relu(torch.full((2,), float(i))) * torch.tensor(2.0)


@unittest.skipUnless(torch, "torch is not installed")
class Base(oracle.Case):
    def setUp(self):
        self.written = []
        _annotate.copy_to(self.written)
        self.addCleanup(_annotate.copy_to, None)
        self.addCleanup(opscope.torch.close)

    def init(self, **options):
        opscope.torch.init(force=True, **options)
        del self.written[:]

    def pushes(self):
        """(depth, text, number) of all ranges."""
        depth, out = 0, []
        for w in self.written:
            if w[0] == "push":
                out.append((depth, w[1], w[2] if len(w) > 2 else None))
            depth += {"push": 1, "pop": -1}.get(w[0], 0)
            self.assertGreaterEqual(depth, 0)
        self.assertEqual(depth, 0, "ranges that were not ended")
        return out

    def texts(self):
        return [t for _, t, _ in self.pushes()]

    def ops(self):
        return [ast.literal_eval(t)["op"] for t in self.texts() if t.startswith("{'mod'")]

    def outermost_ops(self):
        """Of markers: a call is an argument marker inside a trace marker."""
        out, around = [], []
        for depth, t, _ in self.pushes():
            around = [d for d in around if d < depth]
            if t.startswith("{'mod'") and "'op'" in t:
                if not around:
                    out.append(ast.literal_eval(t)["op"])
                around.append(depth)
        return out
