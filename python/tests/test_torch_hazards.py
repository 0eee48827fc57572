"""opscope.torch on a real PyTorch: what must go on working beside it: scripts, traces, copies, processes, profilers, torch.compile."""
import copy
import functools
import inspect
import io
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from typing import NamedTuple

from annotated import Base, F, LeNet, Squares, _annotate, nn, torch
from support import oracle

if torch:
    import opscope.torch


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

    def test_script_of_a_class(self):
        """What it names is where the class is: in the function around it, or in one that hands it on."""
        class Inner(NamedTuple):
            x: int

        class Outer:
            def __init__(self, x: int):
                self.p = Inner(x)

        def script(c):
            return torch.jit.script(c, None, 1)

        class Again:
            def __init__(self, x: int):
                self.p = Inner(x)

        self.assertEqual(torch.jit.script(Outer)(3).p.x, 3)
        self.assertEqual(script(Again)(4).p.x, 4)

    def test_script_of_methods(self):
        class M(torch.jit.ScriptModule):
            def __init__(self):
                super().__init__()
                self.define("def more(self, x):\n    return torch.add(x, 1)\n")

            @torch.jit.script_method
            def forward(self, x):
                return torch.relu(F.elu(x)).add(1)

        m = M()
        m.define("def less(self, x):\n    return torch.sub(x, 1)\n")
        self.assertEqual([f(torch.ones(1)).item() for f in (m, m.more, m.less)], [2, 2, 0])
        self.assertIn("aten::sub", str(m.less.graph))
        self.assertIsInstance(torch.add, _annotate.function)

    def test_quantization_of_graphs(self):
        """It looks for torch's functions by identity: the same model with and without, in whatever way its functions were imported."""
        from torch.ao.quantization import get_default_qconfig_mapping
        from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(4, 4)

            def forward(self, x):
                return F.relu(self.linear(x)) + torch.add(x, x)

        torch.manual_seed(0)
        model, x = M().eval(), torch.randn(8, 4)

        def quantized():
            prepared = prepare_fx(copy.deepcopy(model), get_default_qconfig_mapping("fbgemm"), (x,))
            prepared(x)
            return convert_fx(prepared)
        opscope.torch.close()
        if torch.backends.quantized.engine == "none":
            self.skipTest("torch has no engine for quantized numbers")
        want = quantized()
        self.init()
        got = quantized()
        self.assertIsInstance(torch.add, _annotate.function)
        self.assertEqual([str(n.target) for n in got.graph.nodes], [str(n.target) for n in want.graph.nodes])
        self.assertTrue(torch.equal(got(x), want(x)))

    def test_tables_of_quantization(self):
        """They are of torch's own functions also where the program imports them after init()."""
        program = """if 1:
            import sys, torch, opscope.torch
            opscope.torch.init(force=True)
            import torch.ao.quantization.quantize_fx
            def flat(o):
                return [p for q in (*o, *(o.values() if isinstance(o, dict) else ())) for p in flat(q)] if isinstance(o, (tuple, list, dict, set)) else [o]
            found = [v for n, m in sys.modules.items() if n.startswith("torch.ao.quantization") for v in flat([v for k, v in vars(m).items() if k[0] != "_"])]
            print(torch.add in found, [v for v in found if type(v).__module__.startswith("opscope")])"""
        p = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True)
        self.assertEqual((p.returncode, p.stdout.strip()), (0, "True []"), p.stderr)

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
        self.assertEqual([n.target for n in graph.graph.nodes if n.target is F.relu], [F.relu] * 4)
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
        functions = lambda: (F.relu, torch.add, torch.relu, torch.Tensor.add, functools.partial(F.relu, inplace=False))  # noqa: E731
        for f in functions():
            again = pickle.loads(pickle.dumps(f))
            self.assertEqual(getattr(again, "func", again), getattr(f, "func", f))
        for f in (*functions()[:-1], torch.fft.fft):
            self.assertIs(copy.deepcopy(f), f)
        self.assertIs(pickle.loads(pickle.dumps(torch.fft.fft)), torch.fft.fft)
        protocols = range(pickle.HIGHEST_PROTOCOL + 1)
        pickles = [pickle.dumps(f, n) for f in functions() for n in protocols]
        opscope.torch.close()
        self.assertEqual(pickles, [pickle.dumps(f, n) for f in functions() for n in protocols])

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

    def test_who_hears_what_tensors_are_asked(self):
        """The program's __torch_function__ hears of its own calls alone."""
        heard = []

        class Logged(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                heard.append(function.__name__)
                return super().__torch_function__(function, types, args, kwargs or {})

        class Mode(getattr(torch.overrides, "TorchFunctionMode", object)):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                heard.append(function.__name__)
                return function(*args, **(kwargs or {}))

        def work(x):
            y = F.relu(x + 1)
            torch.cat([y, y, x]).sum().backward()
            torch.relu_(y.detach()).shape

        def all_of_it():
            del heard[:]
            work(torch.ones(3).as_subclass(Logged).requires_grad_())
            if hasattr(torch.overrides, "TorchFunctionMode"):
                with Mode():
                    work(torch.ones(3, requires_grad=True))
                    with Mode():
                        work(torch.nn.Parameter(torch.ones(3)).as_subclass(Logged))
                heard.append("after")
                work(torch.ones(3, requires_grad=True))
            return list(heard)

        opscope.torch.close()
        want = all_of_it()
        self.assertGreaterEqual(want.count("relu"), 1)
        for options in ({}, dict(enable_function_stack=True, capture_input_ops=True), dict(compat="pyprof"), dict(compat="dlprof", capture_input_ops=True)):
            with self.subTest(**options):
                self.init(**options)
                self.assertEqual(all_of_it(), want)
                self.assertIn("'shape': (3,)", "".join(self.texts()))

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
        for method in ("fork", "forkserver"):  # which begins its children as spawn does
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


if __name__ == "__main__":
    oracle.main()
