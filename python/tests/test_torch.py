"""opscope.torch on a real PyTorch: what is written, what must go on working beside it, and that close() leaves nothing behind."""
import ast
import copy
import inspect
import io
import json
import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

from support import ROOT, oracle

try:
    import torch
except ImportError:
    torch = None
else:
    import torch.nn as nn
    import torch.nn.functional as F

    import opscope.torch
    from opscope import _annotate, _compat
    import train

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


def scale(x, factor):
    return x * factor


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


class Markers(Base):
    def test_lenet_of_pyprof(self):
        """The op list of PyProf's own test of its LeNet example: add_, backward, conv2d, linear, max_pool2d, mse_loss, relu (and sum, a kernel of
        mse_loss on devices)."""
        for compat in ("pyprof", "dlprof"):
            with self.subTest(compat):
                step = lenet_step()
                self.init(compat=compat)
                step()
                ops = [o for o in self.outermost_ops() if o not in ("zeros", "zero_")]  # of record_function; of gradients
                self.assertEqual(ops, LENET_FORWARD + ["backward"] + ["add_"] * 10)
                kinds = {tuple(sorted(ast.literal_eval(t))) for t in self.texts() if t.startswith("{'")}
                self.assertEqual(kinds, {("traceMarker",), ("args", "mod", "op")})
                opscope.torch.close()
                del self.written[:]

    def test_lenet(self):
        step = lenet_step()
        self.init()
        step()
        self.assertEqual([o for o in self.ops() if o not in ("ones_like", "zero_", "broadcast_tensors")], LENET_FORWARD + ["add_"] * 10)

    def test_text(self):
        x, w = torch.ones(1, 3, 8, 8), torch.ones(4, 3, 3, 3)
        self.init(compat="pyprof")
        F.conv2d(x, w, padding=1, stride=(2, 1))
        line = inspect.currentframe().f_lineno - 1
        trace, args = self.texts()
        self.assertEqual(ast.literal_eval(trace)["traceMarker"][-1], f"{inspect.currentframe().f_code.co_filename}:{line}")
        self.assertEqual(args, "{'mod': 'torch.nn.functional', 'op': 'conv2d', 'args': [{'name': '', 'type': 'tensor', 'shape': (1, 3, 8, 8), 'dtype': 'float32'}, "
                               "{'name': '', 'type': 'tensor', 'shape': (4, 3, 3, 3), 'dtype': 'float32'}, {'name': 'padding', 'type': 'int', 'value': 1}, "
                               "{'name': 'stride', 'type': 'tuple', 'value': (2, 1)}]}")

    def test_recurrent_module(self):
        cell, x = nn.LSTMCell(3, 4), torch.ones(2, 3)
        self.init(compat="pyprof")
        cell(x)
        trace, module, args = self.texts()[:3]
        self.assertEqual(module, "{'mod': 'LSTMCell', 'strRepr': '3, 4'}")
        self.assertTrue(args.startswith("{'mod': 'LSTMCell', 'op': 'forward', 'args': [{'name': '', 'type': 'tensor', 'shape': (2, 3)"), args)

    def test_values_are_never_asked_for(self):
        """PyProf fetched tensors without dimensions from the device."""
        class Watched(torch.Tensor):
            asked = []

            def item(self):
                self.asked.append(1)
                return super().item()
            tolist = __float__ = __int__ = __bool__ = item

        x = torch.tensor(2.0).as_subclass(Watched)
        for compat in (None, "pyprof", "dlprof"):
            self.init(compat=compat)
            torch.add(x, [1, 2][0])
            torch.mul(torch.ones(3), x)
            self.assertIn("'shape': ()", "".join(self.texts()))
        self.assertEqual(Watched.asked, [])

    def test_ids_of_dlprof(self):
        self.init(compat="dlprof", capture_input_ops=True)
        torch.add(torch.relu(torch.ones(2)), 1)
        ones, relu, add = [ast.literal_eval(t) for t in self.texts() if "'op'" in t]
        self.assertEqual([m["input_callids"] for m in (ones, relu, add)], [[], [ones["callid"]], [relu["callid"]]])
        self.assertTrue(add["args"][0]["name"].endswith("/Markers::test_ids_of_dlprof/relu"), add)

    def test_delayed_graph(self):
        self.init(compat="dlprof", capture_input_ops=True, delay_graph_capture=True)
        torch.relu(torch.ones(2))
        self.assertNotIn("callid", "".join(self.texts()))
        opscope.torch.start_graph()
        torch.relu(torch.ones(2))
        self.assertEqual("".join(self.texts()).count("'callid'"), 2)
        opscope.torch.stop_graph()
        torch.relu(torch.ones(2))
        self.assertEqual("".join(self.texts()).count("'callid'"), 2)

    def test_data_loader_of_dlprof(self):
        self.init(compat="dlprof")
        self.assertEqual(len(list(torch.utils.data.DataLoader(Squares(), batch_size=2))), 2)
        marker = "{'mod': 'torch.utils.data.dataloader', 'op': 'DataLoader', 'args': []}"
        self.assertEqual(self.texts().count(marker), 3)

    def test_skipped_names(self):
        names = set(_compat.functions(torch)) | set(_compat.functions(torch.Tensor)) | set(_compat.functions(F))
        self.assertFalse(names & _compat.NEVER)
        self.assertFalse([n for n in names if n[0] == "_" and n[1] != "_"])
        self.assertLessEqual({"add", "conv2d", "matmul", "__add__", "backward", "relu_"}, names)
        self.assertNotIn("__getstate__", names)


class Layers(Base):
    def test_layers(self):
        net, x = train.ResNet(), torch.randn(2, 3, 8, 8)
        self.init()
        net(x)
        found = {t[len("[module]"):] for t in self.texts() if t.startswith("[module]")}
        self.assertEqual(found, {f"{type(m).__name__}: {'ResNet' + ('.' if n else '') + n}" for n, m in net.named_modules()})

    def test_lines(self):
        net, x = train.ResNet(), torch.randn(2, 3, 8, 8)
        self.init()
        net(x)
        stacks = [w[2] for w in self.written if w[0] == "arg"]
        self.assertTrue(stacks and all(f"{train.__file__}(" in s for s in stacks))
        self.assertFalse([s for s in stacks if "opscope/torch.py" in s])

    def test_optimizer_and_data_loader(self):
        self.init()
        train.train("resnet")
        texts = self.texts()
        self.assertEqual((texts.count("Optimizer.step#SGD.step"), texts.count("Optimizer.zero_grad#SGD.zero_grad")), (3, 3))
        self.assertEqual(sum(t.startswith("enumerate(DataLoader)#") for t in texts), 4)

    def test_ranges_that_are_one_object(self):
        """torch's record_function as a decorator: in itself, and on two threads at a time."""
        @torch.autograd.profiler.record_function("down")
        def down(n, meet=lambda: None):
            meet()
            return down(n - 1, meet) if n else meet()

        self.init()
        down(2)
        self.assertEqual([(d, t) for d, t, _ in self.pushes() if t == "down"], [(0, "down"), (1, "down"), (2, "down")])
        del self.written[:]
        barrier = threading.Barrier(2)
        threads = [threading.Thread(target=down, args=(1, barrier.wait)) for _ in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(sorted(w[0] for w in self.written if w[:2] == ("push", "down") or w[0] == "pop"), ["pop"] * 4 + ["push"] * 4)

    def test_scaler(self):
        scaler, x = getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)(enabled=False), torch.ones(1)
        self.init()
        scaler.scale(x)
        self.assertEqual(self.texts(), ["GradScaler.scale"])


class Links(Base):
    """Forward and backward have the same number; gradients are the same as without."""

    def test_numbers(self):
        step = lenet_step()
        self.init()
        step()
        forward = {n: ast.literal_eval(t)["op"] for _, t, n in self.pushes() if t.startswith("{'mod'")}
        backward = [(t, forward[n]) for _, t, n in self.pushes() if t.endswith("Backward0")]
        self.assertEqual([op for _, op in backward], LENET_FORWARD[::-1])
        self.assertEqual(backward[0], ("MseLossBackward0", "mse_loss"))

    def gradients(self, kind):
        torch.manual_seed(0)
        model, x = train.model_of(kind)
        F.cross_entropy(model(x), torch.arange(4)).backward()
        return [p.grad.clone() for p in model.parameters()]

    def test_gradients(self):
        for kind in ("resnet", "lstm", "transformer"):
            with self.subTest(kind):
                want = self.gradients(kind)
                self.init()
                got = self.gradients(kind)
                opscope.torch.close()
                self.assertTrue(all(torch.equal(a, b) for a, b in zip(want, got)))
                self.assertTrue(self.texts())

    def test_tensors_are_left_as_they_were(self):
        self.init()
        y = torch.mul(torch.ones(3, requires_grad=True), 2)
        self.assertIsNone(y._backward_hooks)
        seen = []
        y.register_hook(seen.append)
        z = y.add_(1)
        z.register_hook(seen.append)
        (z * 2).sum().backward()
        self.assertEqual(len(seen), 2)
        pickle.dumps(y.detach()), copy.deepcopy(y.detach())

    def backward_ops(self):
        forward = {n: ast.literal_eval(t)["op"] for _, t, n in self.pushes() if t.startswith("{'mod'")}
        return [forward[n] for _, t, n in self.pushes() if "Backward" in t]

    def test_functions_that_hand_on_what_they_got(self):
        x = torch.ones(3, requires_grad=True)
        self.init()
        y = F.dropout(torch.relu(x), 0.5, False)
        y = torch.broadcast_tensors(y, torch.ones(3))[0].float()
        torch.sum(y).backward()
        self.assertEqual(self.backward_ops(), ["sum", "relu"])

    def test_in_place(self):
        x = torch.ones(3, requires_grad=True)
        self.init()
        y = torch.mul(x, 2)
        y += 1
        F.elu(y, inplace=True)
        torch.sum(y).backward()
        self.assertEqual(self.backward_ops(), ["sum", "elu", "__iadd__", "mul"])

    def test_graph_that_is_used_twice(self):
        x = torch.ones(3, requires_grad=True)
        self.init()
        y = torch.sum(torch.mul(x, x))
        y.backward(retain_graph=True)
        y.backward()
        torch.autograd.grad(torch.sum(torch.mul(x, x)), x, create_graph=True)[0].sum().backward()
        self.assertEqual(self.backward_ops()[:4], ["sum", "mul"] * 2)

    def test_recomputation(self):
        from torch.utils.checkpoint import checkpoint
        x = torch.ones(3, requires_grad=True)
        self.init()
        torch.sum(checkpoint(lambda t: torch.exp(torch.relu(t)), x)).backward()
        self.assertEqual(self.ops().count("exp"), 2)
        self.assertIn("exp", self.backward_ops())

    def test_failing_backward(self):
        class Bad(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, g):
                raise RuntimeError("not today")

        x = torch.ones(3, requires_grad=True)
        self.init()
        with self.assertRaises(RuntimeError):
            torch.sum(Bad.apply(torch.relu(x))).backward()
        self.assertEqual(self.backward_ops(), ["sum"])

    def test_other_threads(self):
        self.init()
        done = []
        threads = [threading.Thread(target=lambda: done.append(lenet_step()())) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(len(done), 3)

    def test_no_grad(self):
        self.init()
        with torch.no_grad():
            torch.relu(torch.ones(2, requires_grad=True))
        self.assertEqual(self.ops(), ["ones", "relu"])


class Wrapped(Base):
    def test_function_and_module(self):
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g * 2

        class Custom(nn.Module):
            def forward(self, x):
                return Double.apply(x)

        self.addCleanup(opscope.torch._wrapped.clear)
        opscope.torch.wrap(Double, "forward")
        opscope.torch.wrap(Custom, "forward")
        before = vars(Double)["forward"], vars(Custom)["forward"]
        self.init()
        opscope.torch.wrap(Double, "backward")
        opscope.torch.wrap(Double, "backward")
        opscope.torch.wrap(sys.modules[__name__], "scale")
        x = torch.ones(2, requires_grad=True)
        y = scale(Custom()(x), 3)
        torch.sum(y).backward()
        self.assertTrue(torch.equal(x.grad, torch.full((2,), 6.0)))
        marks = [(m["mod"], m["op"]) for m in map(ast.literal_eval, (t for t in self.texts() if t.startswith("{'mod'")))]
        for m in (("Custom", "forward"), ("Double", "forward"), ("Double", "backward"), (__name__, "scale")):
            self.assertIn(m, marks)
        opscope.torch.close()
        self.assertEqual((vars(Double)["forward"], vars(Custom)["forward"]), before)

    def test_class_methods(self):
        """Each class gets itself, as without us; also the one below that does not have the method itself."""
        class Base:
            @classmethod
            def make(cls, n):
                return cls.__name__, n

        class Sub(Base):
            pass

        self.addCleanup(opscope.torch._wrapped.clear)
        before = vars(Base)["make"]
        opscope.torch.wrap(Base, "make")
        self.init()
        self.assertEqual((Base.make(1), Sub.make(2), Sub().make(3)), (("Base", 1), ("Sub", 2), ("Sub", 3)))
        self.assertEqual(self.ops(), ["make"] * 3)
        opscope.torch.close()
        self.assertIs(vars(Base)["make"], before)

    def test_what_cannot_be_annotated(self):
        """It is refused at once, and init() goes on without it."""
        model = nn.Linear(2, 2)
        for owner, name in ((model, "forward"), (str, "join")):
            with self.assertRaises(TypeError):
                opscope.torch.wrap(owner, name)
        self.init()
        with self.assertRaises(TypeError):
            opscope.torch.wrap(model, "forward")
        torch.add(torch.ones(1), 1)
        self.assertEqual(self.ops(), ["ones", "add"])
        self.assertEqual(opscope.torch._wrapped, [])

    def test_what_is_no_function(self):
        with self.assertRaises(TypeError):
            opscope.torch.wrap(torch, "float32")
        with self.assertRaises(AttributeError):
            opscope.torch.wrap(torch, "no_such_name")


class Closing(Base):
    OWNERS = [] if not torch else [torch, torch._VF, torch.Tensor, F, torch.nn.Module, torch.nn.LSTM, torch.nn.RNN, torch.autograd, torch.jit, torch.jit._script,
                                   torch.autograd.profiler.record_function, torch.autograd.profiler.profile, torch.autograd.profiler.emit_nvtx,
                                   torch.utils.data.DataLoader, torch.utils.data.dataloader._BaseDataLoaderIter, torch.cuda.amp.GradScaler, torch.autocast,
                                   torch.distributed, threading.Thread, torch.autograd.anomaly_mode.detect_anomaly]

    def test_everything_is_restored(self):
        before = [dict(vars(o)) for o in self.OWNERS]
        for options in ({}, {}, dict(compat="pyprof"), dict(compat="dlprof"), dict(links="none", stacks=False, layers=False)):
            self.init(**options)
            self.assertIsNot(torch.add, before[0]["add"])
        opscope.torch.close()
        opscope.torch.close()
        for owner, was in zip(self.OWNERS, before):
            now = dict(vars(owner))
            self.assertEqual({n for n in now if now[n] is not was.get(n)} | set(was) - set(now), set(), owner)

    def test_where_nobody_listens(self):
        add = torch.add
        self.assertFalse(opscope.torch.init())
        self.assertIs(torch.add, add)

    def test_twice(self):
        self.init()
        add = torch.add
        opscope.torch.init(force=True)
        self.assertIs(torch.add, add)
        torch.add(torch.ones(1), 1)
        self.assertEqual(self.ops(), ["ones", "add"])

    def test_failure(self):
        """Of init(): nothing is left behind, and the next one begins anew."""
        class Gone(nn.Module):
            def step(self):
                pass

        self.addCleanup(opscope.torch._wrapped.clear)
        before = dict(vars(torch))
        opscope.torch.wrap(Gone, "step")
        del Gone.step
        for _ in range(2):
            with self.assertRaises(AttributeError):
                self.init()
        self.assertEqual({n for n, v in vars(torch).items() if v is not before.get(n)}, set())
        opscope.torch._wrapped.clear()
        self.init()
        torch.add(torch.ones(1), 1)
        self.assertEqual(self.ops(), ["ones", "add"])

    def test_wrong_options(self):
        for wrong in (dict(compat="nsys"), dict(links="magic"), *([] if torch.cuda.is_available() else [dict(links="nvtx")])):
            with self.assertRaises(ValueError):
                opscope.torch.init(**wrong)

    def test_what_others_patched_stays(self):
        self.init()
        ours = torch.add

        def theirs(*args):
            return ours(*args)
        torch.add = theirs
        self.addCleanup(setattr, torch, "add", ours.__wrapped__)
        opscope.torch.close()
        self.assertIs(torch.add, theirs)
        self.assertEqual(torch.add(torch.ones(1), 1).item(), 2)

    def test_wrappers_that_are_kept(self):
        self.init()
        relu = F.relu
        opscope.torch.close()
        self.assertTrue(torch.equal(relu(torch.tensor([-1.0, 1])), torch.tensor([0.0, 1])))
        self.assertIs(pickle.loads(pickle.dumps(relu)), F.relu)


class Hazards(Base):
    def setUp(self):
        super().setUp()
        self.init()

    def test_script(self):
        @torch.jit.script
        def f(x):
            return torch.relu(F.elu(x)) + x.add(1)

        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d(1, 1, 1)

            def forward(self, x):
                return F.relu(self.conv(x))

        x = torch.ones(1, 1, 2, 2)
        f(x)
        m = torch.jit.script(M())
        m(x)
        copy.deepcopy(m)
        buffer = io.BytesIO()
        torch.jit.save(m, buffer)
        self.assertIsInstance(torch.add, _annotate.function)
        F.relu(x)
        self.assertIn("relu", self.ops())

    def test_script_if_tracing(self):
        @torch.jit.script_if_tracing
        def f(x):
            return torch.relu(x)

        traced = torch.jit.trace(lambda x: f(x), (torch.ones(2),))
        self.assertTrue(torch.equal(traced(-torch.ones(2)), torch.zeros(2)))

    def test_trace(self):
        net = LeNet()
        x = torch.ones(1, 1, 32, 32)
        traced = torch.jit.trace(net, x)
        self.assertTrue(torch.equal(traced(x), net(x)))
        self.assertNotIn("aten::size", str(traced.graph))
        torch.jit.trace(lambda t: F.relu(t).view(-1), (torch.ones(2, 2),))

    def test_fx(self):
        import torch.fx
        graph = torch.fx.symbolic_trace(LeNet())
        x = torch.ones(1, 1, 32, 32)
        self.assertEqual(graph(x).shape, (1, 10))
        self.assertIn("conv2d" if "conv2d" in graph.code else "conv1", graph.code)
        copy.deepcopy(graph)
        opscope.torch.close()
        graph.recompile()
        graph(x)

    def test_saving(self):
        net = LeNet()
        net(torch.ones(1, 1, 32, 32))
        buffer = io.BytesIO()
        torch.save(net, buffer)
        buffer.seek(0)
        again = torch.load(buffer)
        self.assertEqual(len(list(again.parameters())), 10)
        for f in (F.relu, torch.add, torch.relu, torch.Tensor.add):
            self.assertEqual(pickle.loads(pickle.dumps(f)), f)
            self.assertIs(copy.deepcopy(f), f)

    def test_looks(self):
        opscope.torch.close()
        functions = [F.relu, torch.add, torch.Tensor.add, torch.einsum]
        want = [(f.__name__, f.__doc__, str(inspect.signature(f)) if inspect.isfunction(f) else None) for f in functions]
        self.init()
        now = [F.relu, torch.add, torch.Tensor.add, torch.einsum]
        self.assertEqual([(f.__name__, f.__doc__, str(inspect.signature(f)) if inspect.isfunction(f.__wrapped__) else None) for f in now], want)
        for a, b in zip(functions, now):
            self.assertEqual({a: 1}[b], 1)
            self.assertEqual({b: 1}[a], 1)

    def test_overrides(self):
        handled = {torch.add: "add", F.relu: "relu", torch.Tensor.mul: "mul"}

        class Other:
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                return handled[function]

        class Mine(torch.Tensor):
            pass

        self.assertEqual((torch.add(Other(), 1), F.relu(Other()), torch.Tensor.mul(torch.ones(1), Other())), ("add", "relu", "mul"))
        m = torch.ones(2).as_subclass(Mine)
        self.assertIs(type(torch.add(m, m) * 2), Mine)

    def test_arithmetic(self):
        a = torch.ones(2)
        self.assertTrue(torch.equal((2 - a) / (a + 1) @ a + a ** 2, torch.full((2,), 2.0)))
        with self.assertRaises(TypeError):
            a + "text"
        self.assertTrue((a == a).all() and (a != None))  # noqa: E711
        self.assertEqual(len({a, a}), 1)

    def test_profiler(self):
        with torch.profiler.profile(record_shapes=True) as p:
            F.relu(torch.ones(2)) + 1
        self.assertIn("aten::relu", {e.key for e in p.key_averages()})
        with torch.autograd.profiler.profile():
            F.relu(torch.ones(2))
        with torch.autograd.profiler.record_function("mine"):
            torch.add(torch.ones(1), 1)
        self.assertIn("mine", self.texts())

    def test_transforms(self):
        functorch = getattr(torch, "func", None)
        vmap = functorch.vmap if functorch else torch._vmap_internals._vmap
        self.assertEqual(vmap(lambda x: torch.add(x, 1))(torch.ones(3, 2)).shape, (3, 2))

    def test_autocast(self):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = F.linear(torch.ones(2, 2), torch.ones(2, 2))
        self.assertEqual(y.dtype, torch.bfloat16)

    def test_data_loader(self):
        for method in ("fork", "forkserver", "spawn"):
            if method not in multiprocessing.get_all_start_methods() or method == "spawn":
                continue  # forkserver begins its children as spawn does
            with self.subTest(method):
                loader = torch.utils.data.DataLoader(Squares(), batch_size=2, num_workers=1, multiprocessing_context=method)
                self.assertEqual([b[:, 0].tolist() for b in loader], [[0, 2], [4, 6]])

    def test_queue(self):
        q = multiprocessing.get_context("fork").SimpleQueue()
        q.put((F.relu, torch.Tensor.add))
        self.assertEqual(q.get(), (F.relu, torch.Tensor.add))

    def test_data_parallel_of_modules(self):
        net = nn.DataParallel(LeNet())
        self.assertEqual(net(torch.ones(2, 1, 32, 32)).shape, (2, 10))


class Emitter(Base):
    """emit_nvtx needs CUDA: its place takes a profiler of the CPU, of which there can be one on a thread, too."""

    def setUp(self):
        super().setUp()
        self.emitter = opscope.torch._Emitter(lambda: torch.autograd.profiler.profile())
        for guard in self.emitter.guards():
            guard.put()
            self.addCleanup(guard.take)
        self.addCleanup(self.emitter.close)
        self.emitter.begin()

    def on(self):
        try:
            torch.autograd._enable_profiler(torch.autograd.ProfilerConfig(torch.autograd.ProfilerState.CPU, False, False, False, False, False,
                                                                          torch._C._profiler._ExperimentalConfig()), set())
        except RuntimeError as e:
            self.assertIn("already enabled", str(e))
            return True
        torch.autograd._disable_profiler()
        return False

    def test_profiler_of_the_program(self):
        for profile in (lambda: torch.profiler.profile(), lambda: torch.autograd.profiler.profile(), lambda: torch.profiler.profile(
                schedule=torch.profiler.schedule(wait=0, warmup=1, active=1))):
            with profile() as p:
                self.assertFalse(self.emitter.active())
                torch.add(torch.ones(1), 1)
                getattr(p, "step", lambda: None)()
            self.assertTrue(self.emitter.active())

    def test_without_us_it_fails(self):
        self.emitter.here.own = True  # as if the guards were not there
        with self.assertRaisesRegex(RuntimeError, "already enabled"):
            with torch.autograd.profiler.profile():
                pass
        self.emitter.here.own = False

    def test_profiler_that_is_off(self):
        with torch.autograd.profiler.profile(enabled=False):
            self.assertTrue(self.emitter.active())

    def test_nobody_waits_for_the_device(self):
        real = torch.cuda.synchronize
        self.emitter.end()

        class Waits:
            waited = []

            def __enter__(self):
                self.waited.append(torch.cuda.synchronize())

            def __exit__(self, *unused):
                self.waited.append(torch.cuda.synchronize())

        emitter = opscope.torch._Emitter(Waits)
        emitter.begin()
        emitter.end()
        self.assertEqual(Waits.waited, [None, None])
        self.assertIs(torch.cuda.synchronize, real)

    def test_threads(self):
        seen = []
        t = threading.Thread(target=lambda: seen.append(self.emitter.active()))
        t.start()
        t.join()
        self.assertEqual(seen, [True])

    def test_failure(self):
        with self.assertRaises(ZeroDivisionError):
            with torch.profiler.profile():
                1 / 0
        self.assertTrue(self.emitter.active())


class Compiler(Base):
    """torch.compile is not in all versions: a stand-in asks what Dynamo asks."""

    def stand_in(self, **parts):
        """torch._dynamo with these modules in it."""
        dynamo = type(sys)("torch._dynamo")
        dynamo.__path__ = []
        names = {"torch._dynamo": dynamo, **{"torch._dynamo." + n: m for n, m in parts.items()}}
        vars(dynamo).update(parts)
        had = {n: sys.modules.get(n) for n in names}, vars(torch).get("_dynamo"), vars(torch).get("compile")

        def restore():
            for n, m in had[0].items():
                sys.modules.pop(n) if m is None else sys.modules.__setitem__(n, m)
            for n, m in (("_dynamo", had[1]), ("compile", had[2])):
                setattr(torch, n, m) if m is not None else vars(torch).pop(n, None)
            opscope.torch._dynamo_is_prepared = False
        self.addCleanup(restore)
        sys.modules.update(names)
        torch._dynamo = dynamo

    def test_compile(self):
        seen, callbacks = [], {}
        rules, callback = type(sys)("torch._dynamo.trace_rules"), type(sys)("torch._dynamo.callback")
        rules.lookup = lambda f: seen.append(("table", type(f).__name__, type(torch.add).__name__))
        callback.callback_handler = type(sys)("handler")
        callback.callback_handler.register_start_callback = lambda f: callbacks.__setitem__("start", f)
        callback.callback_handler.register_end_callback = lambda f: callbacks.__setitem__("end", f)
        self.stand_in(trace_rules=rules, callback=callback)
        torch.compile = lambda f: (callbacks["start"](), seen.append(("compile", type(torch.add).__name__)), callbacks["end"](), f)[-1]
        self.init()
        torch.compile(torch.relu)
        torch.compile(torch.relu)
        plain = "builtin_function_or_method"
        self.assertEqual(seen, [("table", plain, plain), ("compile", plain), ("compile", plain)])
        self.assertIsInstance(torch.add, _annotate.function)

    def test_compile_of_old_versions(self):
        """2.0 and 2.1: the table has another name, and nobody is told when something is compiled."""
        seen = []
        allowed = type(sys)("torch._dynamo.allowed_functions")
        allowed.is_allowed = lambda f: seen.append((type(f).__name__, type(torch.add).__name__))
        self.stand_in(allowed_functions=allowed)
        torch.compile = lambda f: f
        self.init()
        relu = torch.relu
        self.assertIs(torch.compile(relu), relu)
        self.assertIs(torch.compile(relu), relu)
        self.assertEqual(seen, [("builtin_function_or_method",) * 2])
        self.assertIsInstance(torch.add, _annotate.function)

    def test_threads_that_start_while_it_prepares(self):
        """What is imported may start threads, and waits for them; each takes the ranges of torch's operators with it."""
        started = []
        rules = type(sys)("torch._dynamo.trace_rules")
        emitter = opscope.torch._Emitter(lambda: torch.autograd.profiler.profile())

        def work():
            emitter.begin()
            started.append(emitter.active())
            emitter.end()
            with opscope.torch._lock:
                started.append("lock")

        def lookup(_):
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            thread.join(60)
            self.assertFalse(thread.is_alive())
        rules.lookup = lookup
        self.stand_in(trace_rules=rules)
        torch.compile = lambda f: f
        self.init()
        torch.compile(torch.relu)
        self.assertEqual(started, [True, "lock"])


class Facts(Base):
    def facts(self):
        return [json.loads(t)["model_config"] for t in self.texts() if "model_config" in t]

    def test_facts(self):
        self.init()
        for _ in range(2):
            torch.utils.data.DataLoader([1], num_workers=0, pin_memory=False)
            torch.autocast("cpu")
        with torch.autograd.set_detect_anomaly(True):
            pass
        torch.autograd.profiler.record_function("mine")
        torch.autograd.profiler.profile(enabled=False)
        torch.autograd.gradcheck(torch.sin, torch.ones(1, dtype=torch.double, requires_grad=True))
        self.assertEqual(self.facts(), [{"num_workers": 0, "pin_memory": False}, {"amp_enabled": True}, {"detect_anomaly": True}, {"record_function": True},
                                        {"gradcheck": True}])

    def test_what_torch_does_itself(self):
        step = lenet_step()
        self.init()
        step()
        self.assertEqual(self.facts(), [])

    def test_benchmark(self):
        step = lenet_step()
        self.init(compat="dlprof")
        step(), step()
        self.assertEqual(self.facts(), [{"cudnn_benchmark_disabled": True}])


@unittest.skipUnless(torch, "torch is not installed")
class Recorded(oracle.Case):
    """Under `opscope record`: reports name layer, line, shape and direction."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.runs = {}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_of(self, kind, *options):
        key = "-".join((kind, *options)).replace('"', "").replace("/", "_")
        if key not in self.runs:
            out = os.path.join(self.folder.name, key)
            env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1", "OPSCOPE_MAX_SIZE": "64000000"}
            p = subprocess.run([oracle.OPSCOPE, "record", "--no-report", "-o", out, "--", sys.executable, train.__file__, kind, *options], env=env,
                               capture_output=True, text=True)
            self.assertEqual(p.returncode, 0, p.stderr)
            self.runs[key] = out, float(p.stdout)
        return self.runs[key]

    def test_result_is_the_same(self):
        for kind in ("resnet", "lstm", "transformer"):
            self.assertEqual(train.train(kind), self.run_of(kind)[1])

    def ops(self, kind, *options):
        return oracle.report("ops", self.run_of(kind, *options)[0], "--limit=0").rows

    def test_layers(self):
        for kind in ("resnet", "lstm", "transformer"):
            with self.subTest(kind):
                model, _ = train.model_of(kind)
                root = type(model).__name__
                rows = {r["layer"]: r for r in oracle.report("layers", self.run_of(kind)[0], "--limit=0").rows}
                # Those that have a forward of their own; a list of modules is never called.
                names = {root + "." + n if n else root: type(m).__name__ for n, m in model.named_modules() if type(m).__name__ != "ModuleList"}
                unused = {n for n in names if n.endswith("out_proj")}  # its weights are used, it is not called
                self.assertEqual({n: r["type"] for n, r in rows.items()}, {n: t for n, t in names.items() if n not in unused})
                leaves = [r for r in rows.values() if r["type"] in ("Conv2d", "Linear", "BatchNorm2d", "LSTM", "Embedding", "LayerNorm", "MultiheadAttention")]
                self.assertTrue(leaves)
                for r in leaves:
                    self.assertEqual(r["calls"], 3)
                    self.assertGreater(r["forward_host_ns"], 0)
                    self.assertGreater(r["backward_host_ns"], 0)

    def test_ops(self):
        rows = {(r["name"], r["direction"]): r for r in self.ops("resnet")}
        for direction in ("forward", "backward"):
            conv = rows["/ResNet/layer1/0/conv2/conv2d", direction]
            self.assertEqual((conv["calls"], conv["shapes"], conv["data_type"]), (3, "<N:4, C:8, H:16, W:16>; <K:8, C:8, R:3, S:3>", "float32"))
            frames = [f for f in conv["stack"].split("\n") if f.startswith(train.__file__)]
            self.assertEqual(self.line_of(frames[-1]), "y = self.bn2(self.conv2(y))")
            second = rows["/ResNet/layer1/0/relu(2)", direction]
            self.assertEqual(self.line_of(second["stack"].split("\n")[-1]), "return F.relu(y + self.short(x))")
        self.assertTrue(any(r["direction"] == "optimizer" and r["type"] == "add_" for r in rows.values()))
        self.assertIn(("/Tagger/lstm/lstm", "backward"), {(r["name"], r["direction"]) for r in self.ops("lstm")})
        self.assertIn(("/Translator/encoder/layers/1/linear2/linear", "backward"), {(r["name"], r["direction"]) for r in self.ops("transformer")})

    def line_of(self, frame):
        with open(train.__file__) as f:
            return f.read().split("\n")[int(frame.split("(")[1].split(")")[0]) - 1].strip()

    def test_flops(self):
        """By the shapes: of a convolution 2 N K P Q C R S forward, twice that backward."""
        rows = oracle.report("module-flops", self.run_of("resnet")[0], "--limit=0").rows
        model, conv = (next(r for r in rows if r["module"].strip() == name) for name in ("ResNet", "conv1"))
        self.assertEqual(model["unknown_ops"], 0)
        flops = 3 * 2 * 4 * 8 * 16 * 16 * 3 * 9
        self.assertEqual((conv["forward_flops"], conv["backward_flops"]), (flops, 2 * flops))
        rows = oracle.report("module-flops", self.run_of("lstm")[0], "--limit=0").rows
        lstm = next(r for r in rows if r["module"].strip() == "lstm")
        flops = 3 * 2 * 4 * 7 * 4 * 24 * (16 + 24 + 24 + 24)  # calls, steps of the batch, gates of the layers by what they take
        self.assertEqual((lstm["forward_flops"], lstm["backward_flops"], lstm["unknown_ops"]), (flops, 2 * flops, 0))

    def test_emit_nvtx(self):
        """torch's own ranges inside ours: where they are, they link, and nothing is linked twice."""
        header, compiler = "/usr/include/torch/csrc/profiler/api.h", shutil.which("c++")
        if not os.path.exists(header) or not compiler or not torch.__version__.startswith("1.13"):
            self.skipTest("no headers of torch 1.13 and compiler for them")
        stub = os.path.join(self.folder.name, "stub.so")
        subprocess.run([compiler, "-std=c++17", "-shared", "-fPIC", os.path.join(os.path.dirname(train.__file__), "cuda_stub.cpp"), "-o", stub, "-ltorch_cpu", "-lc10"],
                       check=True)
        # A linear layer has two nodes: the product, and its weights turned around.
        for kind, forward, nodes in (("resnet", "/ResNet/layer1/0/conv2/conv2d", 1), ("transformer", "/Translator/out/linear", 2)):
            with self.subTest(kind):
                out, loss = self.run_of(kind, f'stub="{stub}"')
                self.assertEqual(loss, self.run_of(kind)[1])
                rows = {(r["name"], r["direction"]): r["calls"] for r in oracle.report("ops", out, "--limit=0").rows}
                self.assertEqual((rows[forward, "forward"], rows[forward, "backward"]), (3, 3 * nodes))
                layers = oracle.report("layers", out, "--limit=0")
                linked = next(n for n in layers.notes if n.startswith("backward ops linked"))
                self.assertRegex(linked, r": [1-9]\d+ by sequence number, 0 by a flow alone; not linked 0 ")

    def test_ids_and_functions(self):
        out, _ = self.run_of("lstm", "capture_input_ops=True", "enable_function_stack=True")
        code, text, err = oracle.run("sql", out, "SELECT arg(args, 'callid') c, arg(args, 'input_callids') i, arg(args, 'funcStack') f FROM span "
                                     "WHERE arg(args, 'Op') = 'cross_entropy'", "--format=json")
        self.assertEqual(code, 0, err)
        for row in json.loads(text)["rows"]:
            self.assertEqual(len(json.loads(row[1])), 2)
            self.assertTrue(all(i < int(row[0]) for i in json.loads(row[1])))
            self.assertTrue(row[2].endswith("/train/cross_entropy"), row)
        names = {r["name"] for r in self.ops("lstm", "capture_input_ops=True", "enable_function_stack=True")}
        self.assertTrue(any(n.startswith("/module/train/Tagger::_call_impl/Tagger::forward/") for n in names), names)

    def test_markers_of_the_old_tools(self):
        for compat in ("pyprof", "dlprof"):
            with self.subTest(compat):
                out, _ = self.run_of("resnet", f'compat="{compat}"')
                ops = {r["type"] for r in oracle.report("ops", out, "--limit=0").rows}
                self.assertLessEqual({"conv2d", "batch_norm", "relu", "linear", "cross_entropy"}, ops)


if __name__ == "__main__":
    oracle.main()
