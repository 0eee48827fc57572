"""opscope.torch on a real PyTorch: what is written of functions, layers, training and the backward pass."""
import ast
import asyncio
import contextlib
import copy
import inspect
import json
import pickle
import threading
import warnings

from annotated import LENET_FORWARD, Base, F, Squares, _annotate, lenet_step, nn, torch
from support import oracle

if torch:
    import opscope.torch
    import train
    from opscope import _compat


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

    def test_lists(self):
        """Each name is in one of them; what they leave out is left out, by its owner where that is said."""
        lists = [_compat.PROTOCOL, _compat.RECURSIVE, _compat.CHEAP, _compat.NO_WORK]
        self.assertEqual(len(frozenset().union(*lists)), sum(map(len, lists)))
        self.assertEqual([n for n in _compat.NO_WORK if n.startswith(_compat.STATE)], [])
        self.assertEqual([_compat.does_work(*a) for a in ((torch, "cond"), (torch.linalg, "cond"), (torch, "seed"), (torch, "is_tensor"), (torch, "add"))],
                         [False, True, False, False, True])
        for compat, wrapped in ((None, True), ("pyprof", False), ("dlprof", False)):
            self.init(compat=compat)
            for owner, name in ((torch.linalg, "cond"), (torch.fft, "fft"), (torch.special, "expit"), (torch.sparse, "mm")):
                self.assertEqual(isinstance(vars(owner)[name], _annotate.function), wrapped)
            self.assertIsInstance(torch.add, _annotate.function)


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


class Named(Base):
    """record_function: each range ends where its own `with` does."""

    def setUp(self):
        super().setUp()
        self.range = torch.autograd.profiler.record_function

    def events(self):
        """In their order: the text of what begins, "/" and the text of what ends; those that have numbers in capitals."""
        out, nested, numbers = [], [], {}
        fact = [("push", '{"model_config": {"record_function": true}}'), ("pop",)]
        at = self.written.index(fact[0]) if fact[0] in self.written else len(self.written)
        self.assertIn(self.written[at:at + 2], (fact, []))
        for w in self.written[:at] + self.written[at + 2:]:
            if w[0] == "push":
                nested.append(w[1])
                out.append(w[1])
            elif w[0] == "pop":
                out.append("/" + nested.pop())
            elif w[0] == "start":
                numbers[w[2]] = w[1].upper()
                out.append(numbers[w[2]])
            elif w[0] == "end":
                out.append("/" + numbers.pop(w[1]))
        self.assertEqual((nested, numbers), ([], {}), "not ended")
        return out

    def test_that_cannot_be_entered(self):
        self.init()
        for wrong in (5, "\ud800"):
            with self.assertRaises(Exception):
                with self.range(wrong):
                    pass
        with self.range("after"):
            pass
        self.assertEqual(self.events(), ["after", "/after"])

    def test_interrupted(self):
        def interrupted(*args):
            raise KeyboardInterrupt
        before = self.range.__enter__
        self.addCleanup(setattr, self.range, "__enter__", before)
        self.range.__enter__ = interrupted
        self.init()
        with self.assertRaises(KeyboardInterrupt):
            with self.range("a"):
                pass
        opscope.torch.close()
        self.assertEqual(self.events(), [])

    def test_coroutines(self):
        """They take turns on one thread, and end in the order in which they began; also in a context manager, one in the other."""
        @contextlib.contextmanager
        def named(text):
            with self.range(text):
                yield

        async def task(text, began, goes_on):
            with named(text):
                with self.range(text + text):
                    began.set()
                    await goes_on.wait()

        async def main():
            began, goes_on = ([asyncio.Event() for _ in "ab"] for _ in "12")
            tasks = [asyncio.ensure_future(task(*a)) for a in zip("ab", began, goes_on)]
            for i in (0, 1):
                await began[i].wait()
            with self.range("main"):
                for i in (0, 1):
                    goes_on[i].set()
                    await tasks[i]

        self.init()
        asyncio.run(main())
        self.assertEqual(self.events(), ["A", "AA", "B", "BB", "MAIN", "/AA", "/A", "/BB", "/B", "/MAIN"])

    def test_one_object_in_two_coroutines(self):
        """The one that is left is the one of that place."""
        def turn():
            with one:
                yield
        self.init()
        one = self.range("one")
        a, b = turn(), turn()
        next(a), next(b)
        first, second = (w[2] for w in self.written if w[0] == "start")
        a.close()
        self.assertEqual([w[1] for w in self.written if w[0] == "end"], [first])
        b.close()
        self.assertEqual([w[1] for w in self.written if w[0] == "end"], [first, second])
        self.assertEqual([n for n in vars(one) if "opscope" in n], [])

    def test_generator_that_is_closed_late(self):
        def batches():
            for _ in range(3):
                with self.range("load"):
                    yield
        self.init()
        loaded = batches()
        with self.range("epoch"):
            next(loaded)
        loaded.close()
        self.assertEqual(self.events(), ["epoch", "LOAD", "/epoch", "/LOAD"])

    def test_what_is_called_by_coroutines_nests(self):
        @self.range("decorated")
        def decorated():
            with self.range("inside"):
                pass

        async def main():
            decorated()

        self.init()
        asyncio.run(main())
        self.assertEqual(self.events(), ["decorated", "inside", "/inside", "/decorated"])

    def test_steps_of_profilers(self):
        """step() is called within a range of the program: it is the other one that is cut, since a step is one."""
        with torch.profiler.profile(schedule=torch.profiler.schedule(wait=9, warmup=1, active=1)) as p:
            self.init()
            for _ in range(3):
                with self.range("batch"):
                    with self.range("inner"):
                        p.step()
        steps = [e for e in self.events() if "ProfilerStep#" in e]
        numbers = sorted({int(e.split("#")[1]) for e in steps})
        self.assertEqual(len(numbers), 3)
        self.assertEqual(steps, [e for n in numbers for e in (f"ProfilerStep#{n}", f"/ProfilerStep#{n}")])

    def test_ranges_that_end_inside_of_others(self):
        step = None
        self.init()
        for i in range(3):
            with self.range("batch"):
                if step:
                    step.__exit__(None, None, None)
                step = self.range(f"step{i}")
                step.__enter__()
        step.__exit__(None, None, None)
        self.assertEqual(self.events(), ["batch", "step0", "/step0", "/batch", "step0",
                                         "batch", "/batch", "/step0", "batch", "step1", "/step1", "/batch", "step1",
                                         "batch", "/batch", "/step1", "batch", "step2", "/step2", "/batch", "step2", "/step2"])

    def test_end_below_a_layer(self):
        """A range cannot be ended while a layer is open in it: it is afterwards."""
        outer = self.range("outer")

        class Ends(nn.Module):
            def forward(self, x):
                outer.__exit__(None, None, None)
                return x

        layer = Ends()
        self.init()
        outer.__enter__()
        layer(1)
        with self.range("next"):
            pass
        self.assertEqual(self.events(), ["outer", "[module]Ends: Ends", "/[module]Ends: Ends", "/outer", "next", "/next"])

    def test_end_on_another_thread(self):
        self.init()
        outer = self.range("outer")
        outer.__enter__()
        other = threading.Thread(target=outer.__exit__, args=(None, None, None))
        other.start()
        other.join()
        with self.range("next"):
            pass
        self.assertEqual(self.events(), ["outer", "/outer", "next", "/next"])


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
        return [forward.get(n) for _, t, n in self.pushes() if "Backward" in t]

    def test_what_is_not_wrapped(self):
        """Its nodes have ranges of their own, that are no wrapped call's, whatever ran before them."""
        class Slow(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g * 2

        x = torch.ones(4, requires_grad=True)
        self.init()
        torch.sum(torch.relu(Slow.apply(torch.exp(x)[1:]).to(torch.float64).reshape(3, 1).t().contiguous())).backward()
        self.assertEqual([(t, op) for (_, t, _), op in zip([p for p in self.pushes() if "Backward" in p[1]], self.backward_ops())],
                         [("SumBackward0", "sum"), ("ReluBackward0", "relu"), ("TBackward0", "t"), ("ReshapeAliasBackward0", "reshape"),
                          ("ToCopyBackward0", None), ("SlowBackward", "apply"), ("SliceBackward0", "__getitem__"), ("ExpBackward0", "exp")])

    def test_functions_that_hand_on_what_they_got(self):
        x = torch.ones(3, requires_grad=True)
        self.init()
        y = F.dropout(torch.relu(x), 0.5, False)
        y = torch.broadcast_tensors(y, torch.ones(3))[0].float()
        torch.sum(y).backward()
        self.assertEqual(self.backward_ops(), ["sum", "relu"])

    def test_functions_that_hand_on_more_than_one(self):
        """Each node has one range, of the call that made it, and none is empty since the outer call has the same node."""
        class Program:
            @staticmethod
            def both(x):
                return torch.relu(x), torch.sigmoid(x)

        opscope.torch.wrap(Program, "both")
        self.addCleanup(opscope.torch._wrapped.remove, (Program, "both"))
        x, attention = torch.ones(2, 1, 4, requires_grad=True), nn.MultiheadAttention(4, 2)
        self.init()
        a, b = Program.both(x)
        torch.sum(torch.add(a, b)).backward()
        self.assertEqual(self.backward_ops(), ["sum", "add", "sigmoid", "relu"])
        del self.written[:]
        torch.sum(attention(x, x, x)[0]).backward()
        numbers = [n for _, t, n in self.pushes() if "Backward" in t]
        outer = [n for _, t, n in self.pushes() if "'multi_head_attention_forward'" in t]
        wrapped = [n for n in numbers if n not in outer]
        self.assertEqual(len(wrapped), len(set(wrapped)))
        # Of the outer call is only what contiguous() made, which is not wrapped.
        self.assertEqual({t for _, t, n in self.pushes() if "Backward" in t and n in outer}, {"CloneBackward0"})

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
        self.assertEqual(self.backward_ops(), ["sum", "apply"])

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

    def test_values_of_other_types(self):
        """Numbers of other libraries are numbers; nothing that a value says when it is asked reaches the program, and a tensor is not asked."""
        class Number(int):
            def __int__(self):
                return 1

        class Odd:
            def __bool__(self):
                raise KeyError("odd")

        class Asked(torch.Tensor):
            def __int__(self):
                raise AssertionError("asked")

        tensor = torch.tensor(0).as_subclass(Asked)
        self.init()
        for workers, pin in ((Number(0), 0), (tensor, False), (0, Odd()), (tensor, Odd())):
            made = torch.utils.data.DataLoader([1], num_workers=workers, pin_memory=pin)
            self.assertIs(made.num_workers, workers)
            self.assertIs(made.pin_memory, pin)
        self.assertEqual(self.facts(), [{"num_workers": 1, "pin_memory": False}, {"pin_memory": False}, {"num_workers": 0}])

    def test_numbers_of_numpy(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not installed")
        self.init()
        for workers in (numpy.int64(0), numpy.int32(0), numpy.bool_(False)):
            torch.utils.data.DataLoader([1], num_workers=workers, pin_memory=numpy.bool_(False))
        self.assertEqual(self.facts(), [{"num_workers": 0, "pin_memory": False}])

    def test_what_torch_does_itself(self):
        step = lenet_step()
        self.init()
        step()
        self.assertEqual(self.facts(), [])

    def test_warning_of_anomaly_detection(self):
        """It says the line of the program, as without us."""
        self.init()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with torch.autograd.detect_anomaly():
                pass
        self.assertEqual([w.filename for w in caught], [__file__])
        self.assertEqual(self.facts(), [{"detect_anomaly": True}])

    def test_benchmark(self):
        step = lenet_step()
        self.init(compat="dlprof")
        step(), step()
        self.assertEqual(self.facts(), [{"cudnn_benchmark_disabled": True}])


if __name__ == "__main__":
    oracle.main()
