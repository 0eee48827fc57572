"""opscope.torch on a real PyTorch: wrap(), init() and close(): what is taken and what is refused, and that nothing is left behind."""
import ast
import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import unittest.mock
import warnings

from annotated import Base, F, nn, torch
from support import oracle

if torch:
    import opscope.torch


def scale(x, factor):
    return x * factor


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

    def test_classes_that_forbid_it(self):
        """Whether something is annotated yet or not; init() goes on without it."""
        class Meta(type):
            def __setattr__(cls, name, value):
                raise TypeError("no setting here")

        class Closed(metaclass=Meta):
            def f(self):
                return 1

        for _ in range(2):
            with self.assertRaisesRegex(TypeError, "no setting here"):
                opscope.torch.wrap(Closed, "f")
            self.init()
        opscope.torch.close()
        self.init(stacks=False)
        torch.add(torch.ones(1), 1)
        self.assertEqual(self.ops(), ["ones", "add"])
        self.assertEqual(opscope.torch._wrapped, [])

    def test_coroutines_and_generators(self):
        class Calls:
            async def coroutine(self):
                return 1

            def generator(self):
                yield 1

            async def both(self):
                yield 1

            @classmethod
            async def of_class(cls):
                return 1

        for name in ("coroutine", "generator", "both", "of_class"):
            with self.assertRaisesRegex(TypeError, "its call returns before it runs"):
                opscope.torch.wrap(Calls, name)
        self.assertEqual(opscope.torch._wrapped, [])

    def test_classes_are_no_functions(self):
        class Outer:
            class Inner:
                pass

        for owner, name in ((nn, "Linear"), (Outer, "Inner"), (Outer, "__class__")):
            with self.assertRaisesRegex(TypeError, "is not a function"):
                opscope.torch.wrap(owner, name)
        self.init()
        self.assertIsInstance(nn.Linear(1, 1), nn.Linear)

    def test_what_is_no_function(self):
        with self.assertRaises(TypeError):
            opscope.torch.wrap(torch, "float32")
        with self.assertRaises(AttributeError):
            opscope.torch.wrap(torch, "no_such_name")


class Closing(Base):
    OWNERS = [] if not torch else [torch, torch._VF, torch.Tensor, F, torch.nn.Module, torch.nn.LSTM, torch.nn.RNN, torch.autograd, torch.jit, torch.jit._script,
                                   torch.autograd.profiler.record_function, torch.autograd.profiler.profile, torch.autograd.profiler.emit_nvtx,
                                   torch.utils.data.DataLoader, torch.utils.data.dataloader._BaseDataLoaderIter, torch.cuda.amp.GradScaler, torch.autocast,
                                   torch.distributed, torch.fft, torch.linalg, torch.sparse, torch.special, threading.Thread, torch.autograd.anomaly_mode.detect_anomaly]

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

    def test_first_of_a_process(self):
        """As in each run: what calls itself by another way is one op, from the start."""
        code = """
import opscope.torch, torch
written = []
opscope._annotate.copy_to(written)
x = torch.ones(4, 4)
opscope.torch.init(force=True, links="none")
x.norm(), x.unique()
print([w[1].split("'op': '")[1].split("'")[0] for w in written if w[0] == "push" and "'op'" in w[1]])
"""
        p = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual((p.stdout, p.stderr), ("['norm', 'unique']\n", ""))

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

    def test_child_of_a_process_that_begins(self):
        """Another thread is in init() when the process forks: the child does not wait for it."""
        held, done = threading.Event(), threading.Event()

        def holds():
            with opscope.torch._lock, opscope.torch._synchronize_lock:
                held.set()
                done.wait()

        self.init()
        other = threading.Thread(target=holds)
        other.start()
        held.wait()
        child = os.fork()
        if not child:
            signal.alarm(60)
            ours = torch.add
            opscope.torch.init(force=True)
            anew = torch.add is not ours
            opscope.torch.close()
            with opscope.torch._synchronize_lock:
                os._exit(0 if anew and not hasattr(torch.add, "__wrapped__") else 1)
        _, status = os.waitpid(child, 0)
        done.set()
        other.join()
        self.assertEqual(status, 0)

    def test_child_of_who_holds_the_lock(self):
        """The one thread that goes on in the child has what it had."""
        before = opscope.torch._lock
        with opscope.torch._lock:
            child = os.fork()
            if not child:
                os._exit(0 if opscope.torch._lock is before else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_child_of_a_process_that_compiles(self):
        """What a compiler on another thread was not to see is there in the child, which does not have that thread; its own compiler goes on."""
        looks, done = threading.Event(), threading.Event()

        def compiles():
            with opscope.torch._unpatched():
                looks.set()
                done.wait()

        def forked(function):
            child = os.fork()
            if not child:
                signal.alarm(60)
                os._exit(0 if function() else 1)
            return os.waitpid(child, 0)[1]

        self.init()
        ours = torch.add
        other = threading.Thread(target=compiles)
        other.start()
        looks.wait()
        plain = torch.add
        annotated = forked(lambda: torch.add is ours)
        with contextlib.ExitStack() as compiler:
            compiler.enter_context(opscope.torch._unpatched())
            still_plain = forked(lambda: torch.add is plain and (compiler.close() or torch.add is ours))
        done.set()
        other.join()
        self.assertIs(plain, ours.__wrapped__)
        self.assertIs(torch.add, ours)
        self.assertEqual([annotated, still_plain], [0, 0])

    def test_options_that_change_while_a_compiler_looks(self):
        self.init()
        with opscope.torch._unpatched():
            for options in dict(layers=False), dict(stacks=False):
                opscope.torch.init(force=True, **options)
                self.assertFalse(hasattr(torch.add, "__wrapped__"), options)
        self.assertTrue(hasattr(torch.add, "__wrapped__"))
        with opscope.torch._unpatched():
            opscope.torch.close()
        self.assertFalse(hasattr(torch.add, "__wrapped__"))

    def test_wrong_options(self):
        for wrong, words in ((dict(compat="nsys"), "compat='nsys': must be one of None, 'pyprof', 'dlprof'"), (dict(compat="own"), "must be one of"),
                             (dict(links="magic"), "links"), *([] if torch.cuda.is_available() else [(dict(links="nvtx"), "CUDA")])):
            with self.assertRaisesRegex(ValueError, words):
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


class Told(Base):
    """What a user should know of what was written."""

    def warned(self, do):
        with warnings.catch_warnings(record=True) as all:
            warnings.simplefilter("always")
            do()
        for w in all:
            self.assertEqual((w.category, w.filename), (RuntimeWarning, __file__))
        return [str(w.message) for w in all]

    def test_form_that_changes(self):
        with unittest.mock.patch.object(opscope.torch, "_form", None):
            for listens, options, told in ((True, {}, False), (True, dict(stacks=False), False), (True, dict(compat="pyprof"), True), (True, dict(compat="pyprof"), False),
                                           (True, dict(compat="dlprof"), True), (False, {}, False), (True, dict(compat="pyprof"), True)):
                with self.subTest(options), unittest.mock.patch.object(opscope.torch, "_listens", lambda: listens):
                    said = self.warned(lambda: opscope.torch.init(force=True, **options))
                    self.assertEqual(len(said), told, said)
            self.assertIn("in the form 'own' until now, and are in the form 'pyprof' from here on", said[0])
            opscope.torch.close()
            with unittest.mock.patch.object(opscope.torch, "_listens", lambda: True):  # it is the same capture
                self.assertEqual(len(self.warned(lambda: opscope.torch.init(force=True))), 1)

    def test_what_is_left_out(self):
        self.init(stacks=False)
        torch.stack([torch.zeros(2, 3)] * 400)
        self.assertEqual(self.texts()[-1].count("(2, 3)"), 400)
        self.assertEqual(self.warned(opscope.torch.close), [])
        self.init(stacks=False)
        zeros = [torch.zeros(2)] * 3000
        torch.stack(zeros), torch.cat(zeros)
        self.assertEqual(self.texts()[-1], "{'mod': 'torch', 'op': 'cat', 'args': []}")
        self.assertEqual(self.warned(opscope.torch.close),
                         ["opscope.torch: calls whose arguments would be a text of more than 32000 bytes are told without them (2 times)"])
        self.assertEqual(self.warned(opscope.torch.close), [])

    def test_without_close(self):
        p = subprocess.run([sys.executable, "-c", "import torch, opscope.torch\nopscope.torch.init(force=True, compat='pyprof')\nopscope.torch.init(force=True)\n"
                            "from opscope import _annotate\n_annotate.copy_to([])\ntorch.stack([torch.zeros(2)] * 3000)"], capture_output=True, text=True)
        self.assertEqual((p.returncode, p.stderr.count("RuntimeWarning")), (0, 1), p.stderr)
        self.assertIn("without them (1 time)", p.stderr)


if __name__ == "__main__":
    oracle.main()
