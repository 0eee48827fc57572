"""opscope.FlopCounterMode: against sums of products that are counted by hand, and against what torch's own profiler says of the same forward pass.

Skipped under a Python without torch (Debian: python3-torch).
"""
import contextlib
import io
import unittest

from support import oracle
import opscope

try:
    import torch
    from torch import nn
    F = nn.functional
    aten = torch.ops.aten
except ImportError:
    torch = None


def counted(work, *arguments, **options):
    with opscope.FlopCounterMode(*arguments, display=False, **options) as counter:
        work()
    return counter


def by_loops(x, w, stride, padding, groups):
    """Of a convolution in two dimensions: each output element multiplies and adds as many numbers as its filter has."""
    n, _, height, width = x
    out, inputs, r, s = w
    heights, widths = (height + 2 * padding - r) // stride + 1, (width + 2 * padding - s) // stride + 1
    return sum(2 * inputs * r * s for _ in range(n) for _ in range(out) for _ in range(heights) for _ in range(widths))


@unittest.skipUnless(torch, "no Python with torch (Debian: python3-torch)")
class Formulas(oracle.Case):
    def test_products(self):
        a, b = torch.ones(3, 4), torch.ones(4, 5)
        self.assertEqual(counted(lambda: a @ b).get_total_flops(), 2 * 3 * 4 * 5)
        self.assertEqual(counted(lambda: torch.addmm(torch.ones(5), a, b)).get_total_flops(), 2 * 3 * 4 * 5)
        self.assertEqual(counted(lambda: torch.ones(7, 3, 4) @ torch.ones(7, 4, 5)).get_total_flops(), 7 * 2 * 3 * 4 * 5)
        self.assertEqual(counted(lambda: torch.baddbmm(torch.ones(5), torch.ones(7, 3, 4), torch.ones(7, 4, 5))).get_total_flops(), 7 * 2 * 3 * 4 * 5)
        self.assertEqual(counted(lambda: torch.einsum("bij,bjk->bik", torch.ones(7, 3, 4), torch.ones(7, 4, 5))).get_total_flops(), 7 * 2 * 3 * 4 * 5)
        self.assertEqual(counted(lambda: a + a * 2).get_total_flops(), 0)

    def test_convolutions(self):
        for stride, padding, groups in ((1, 0, 1), (2, 1, 1), (1, 1, 3), (2, 2, 6)):
            x, w = torch.ones(2, 6, 9, 8), torch.ones(12, 6 // groups, 3, 2)
            forward = by_loops(x.shape, w.shape, stride, padding, groups)
            for of_x, of_w in ((0, 0), (0, 1), (1, 0), (1, 1)):
                def work():
                    out = F.conv2d(x.clone().requires_grad_(bool(of_x)), w.clone().requires_grad_(bool(of_w)), stride=stride, padding=padding, groups=groups)
                    if of_x or of_w:
                        out.sum().backward()
                self.assertEqual(counted(work).get_total_flops(), forward * (1 + of_x + of_w), (stride, padding, groups, of_x, of_w))

    def test_transposed(self):
        """It is the backward pass of a convolution the other way round, and as much work."""
        def work():
            F.conv_transpose2d(torch.ones(2, 4, 5, 5, requires_grad=True), torch.ones(4, 3, 2, 2, requires_grad=True), stride=2).sum().backward()
        one = 2 * (2 * 4 * 5 * 5) * (3 * 2 * 2)
        self.assertEqual(counted(work).get_total_flops(), 3 * one)
        other = counted(lambda: F.conv2d(torch.ones(2, 3, 10, 10), torch.ones(4, 3, 2, 2), stride=2)).get_total_flops()
        self.assertEqual(other, one)

    def test_attention(self):
        """Of ops that this torch does not have or cannot run here: their formulas get shapes."""
        from opscope import flops
        q, k, v = (2, 8, 100, 64), (2, 8, 70, 64), (2, 8, 70, 32)
        scores, values = 2 * 2 * 8 * 100 * 70 * 64, 2 * 2 * 8 * 100 * 70 * 32
        self.assertEqual(flops._sdpa(q, k, v, 0.0, True), scores + values)
        self.assertEqual(flops._sdpa_backward(q, q, k, v), 3 * scores + 2 * values)
        q, k, v = torch.ones(2, 100, 8, 64), torch.ones(2, 70, 8, 64), torch.ones(2, 70, 8, 32)
        for after in (3, 4):
            self.assertEqual(flops._of_sequences(after, False)(q, k, v, *[None] * 4), scores + values)
        # Two sequences, of 60 and 40, and of 30 and 50.
        q, k, v = torch.ones(1, 100, 8, 64), torch.ones(1, 80, 8, 64), torch.ones(1, 80, 8, 64)
        starts = torch.tensor([0, 60, 100], dtype=torch.int32), torch.tensor([0, 30, 80], dtype=torch.int32)
        want = 2 * 8 * 64 * (60 * 30 + 40 * 50)
        self.assertEqual(flops._of_sequences(3, False)(q, k, v, *starts, 60, 50), 2 * want)
        self.assertEqual(flops._of_sequences(4, False)(q, k, v, None, *starts, 60, 50), 2 * want)
        self.assertEqual(flops._of_sequences(5, True)(q, q, k, v, None, None, *starts, 60, 50), 5 * want)

    @unittest.skipUnless(torch and hasattr(F, "scaled_dot_product_attention"), "since torch 2")
    def test_attention_that_runs(self):
        q = torch.ones(2, 3, 16, 8)
        self.assertEqual(counted(lambda: F.scaled_dot_product_attention(q, q, q)).get_total_flops(), 2 * 2 * (2 * 3 * 16 * 16 * 8))

    def test_as_torchs_profiler(self):
        """Of a forward pass torch.profiler knows products and convolutions by the same rules."""
        net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10))
        x = torch.ones(4, 3, 6, 6)
        counter = counted(lambda: net(x))
        with opscope.profile(with_flops=True) as prof:
            net(x)
        known = {a.key: a.flops for a in prof.key_averages()}
        self.assertEqual(counter.get_flop_counts()["Global"], {aten.convolution: known["aten::conv2d"], aten.addmm: known["aten::addmm"]})

    def test_torchs_own_counter(self):
        try:
            from torch.utils.flop_counter import FlopCounterMode
        except ImportError:
            self.skipTest("torch has one since 2.1")
        net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(8 * 16, 10))
        x = torch.ones(4, 3, 6, 6)
        with FlopCounterMode(display=False) as theirs:
            net(x).sum().backward()
        self.assertEqual(counted(lambda: net(x).sum().backward()).get_flop_counts(), theirs.get_flop_counts())


@unittest.skipUnless(torch, "no Python with torch (Debian: python3-torch)")
class Counter(oracle.Case):
    def test_modules(self):
        """A module has the work of its forward and of its backward pass; one that gets no gradient for its input has no product for that."""
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Linear(8, 16), nn.Linear(16, 8)

            def forward(self, x):
                return x + self.b(torch.relu(self.a(x)))

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.blocks = nn.ModuleList([Block(), Block()])
                self.head = nn.Linear(8, 3)

            def forward(self, x):
                for b in self.blocks:
                    x = b(x)
                return self.head(x)

        net, x = Net(), torch.ones(5, 8)
        one = 2 * 5 * 8 * 16
        for backward in (False, True):
            counter = counted(lambda: net(x).sum().backward() if backward else net(x))
            flops = {m: sum(ops.values()) for m, ops in counter.get_flop_counts().items()}
            head = 2 * 5 * 8 * 3
            times = 3 if backward else 1
            self.assertEqual(flops["Net.head"], head * times)
            self.assertEqual((flops["Net.blocks.1.a"], flops["Net.blocks.1.b"], flops["Net.blocks.1"]), (one * times, one * times, 2 * one * times))
            self.assertEqual((flops["Net.blocks.0.a"], flops["Net.blocks.0.b"]), (one * (2 if backward else 1), one * times))
            self.assertEqual(flops["Net"], flops["Global"])
            self.assertEqual(counter.get_total_flops(), flops["Global"])
            self.assertEqual(flops["Global"], sum(flops[m] for m in ("Net.head", "Net.blocks.0", "Net.blocks.1")))

    def test_nothing_stays(self):
        net, x = nn.Linear(4, 4), torch.ones(2, 4, requires_grad=True)
        counter = counted(lambda: net(x))
        net(x)
        self.assertEqual(counter.get_total_flops(), 2 * 2 * 4 * 4)
        with counter:
            pass
        self.assertEqual(counter.get_total_flops(), 0)
        with self.assertRaises(ZeroDivisionError), opscope.FlopCounterMode(display=False):
            1 / 0
        self.assertFalse(nn.modules.module._global_forward_hooks or nn.modules.module._global_forward_pre_hooks)

    def test_table(self):
        net = nn.Sequential(nn.Linear(1000, 500), nn.Linear(500, 10))
        out = io.StringIO()
        with contextlib.redirect_stdout(out), opscope.FlopCounterMode() as counter:
            net(torch.ones(3, 1000))
        self.assertEqual(out.getvalue(), counter.get_table() + "\n")
        self.assertEqual(counter.get_table(2).splitlines(), [
            "Module              FLOP  % Total",
            "---------------  -------  -------",
            "Global            3.030M  100.00%",
            " - aten.addmm     3.030M  100.00%",
            " Sequential       3.030M  100.00%",
            "  - aten.addmm    3.030M  100.00%",
            "  Sequential.0    3.000M   99.01%",
            "   - aten.addmm   3.000M   99.01%",
            "  Sequential.1   30.000K    0.99%",
            "   - aten.addmm  30.000K    0.99%"])
        self.assertEqual(len(counter.get_table(1).splitlines()), 6)
        self.assertEqual(counted(lambda: None).get_table().splitlines()[-1].split(), ["Global", "0.000", "0.00%"])

    def test_formulas_of_ones_own(self):
        from opscope import flops
        op = aten.sin
        try:
            @opscope.register_flop_formula(op)
            def sines(x, out_shape=None):
                return 7 * x.numel() if hasattr(x, "numel") else 7 * out_shape[0]
            self.assertEqual(counted(lambda: torch.ones(4).sin()).get_total_flops(), 28)
            with self.assertRaisesRegex(RuntimeError, "duplicate registrations for aten.sin"):
                opscope.register_flop_formula(op)(sines)
        finally:
            flops.flop_registry.pop(op, None)

        @opscope.register_flop_formula(aten.cos, get_raw=True)
        def cosines(x, out_val=None):
            return int(out_val.sum())
        try:
            self.assertEqual(counted(lambda: torch.zeros(5).cos()).get_total_flops(), 5)
        finally:
            flops.flop_registry.pop(aten.cos, None)
        with self.assertRaisesRegex(ValueError, "an op as torch.ops.aten.mm was expected"):
            opscope.register_flop_formula(torch.mm)(sines)
        mine = counted(lambda: torch.ones(2, 3) @ torch.ones(3, 4), custom_mapping={aten.mm: lambda a, b, out_shape=None: 1000 + out_shape[1]})
        self.assertEqual(mine.get_total_flops(), 1004)
        self.assertEqual(counted(lambda: torch.ones(2, 3) @ torch.ones(3, 4)).get_total_flops(), 48)

    def test_ops_made_of_others(self):
        with torch.inference_mode():
            self.assertEqual(counted(lambda: F.linear(torch.ones(2, 3, 4), torch.ones(5, 4))).get_total_flops(), 2 * 2 * 3 * 4 * 5)


if __name__ == "__main__":
    oracle.main()
