"""The wrappers of opscope._annotate, with things that look like tensors: what they look like, what they write, and that nothing grows."""
import ast
import copy
import functools
import gc
import inspect
import math
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import types
import weakref

from support import ROOT, oracle, under_debug_python
from opscope import _annotate

INJECT = os.path.join(os.environ.get("OPSCOPE_BUILD", os.path.join(ROOT, "build")), "collect", "libopscope-inject.so")
ROUNDS = int(os.environ.get("OPSCOPE_ROUNDS", 1000 if "asan" in os.environ.get("LD_PRELOAD", "") else 5000))


class Dtype:
    def __repr__(self):
        return "library.float32"


FLOAT = Dtype()


class Tensor:
    """Shape and type, and nothing that gives a value."""

    def __init__(self, *shape):
        self.shape, self.dtype, self.grad_fn = shape, FLOAT, None

    def item(self):
        raise AssertionError("the value was asked for")

    __float__ = __bool__ = __len__ = __iter__ = __repr__ = item


library = types.ModuleType("library")
sys.modules["library"] = library


def add(a, b=None, *more, alpha=1):
    """Adds."""
    return a


def outer(a):
    return library.inner(a)


def fails(a):
    raise KeyError(a)


add.__module__ = outer.__module__ = "library"


class Base(oracle.Case):
    def setUp(self):
        library.add, library.outer, library.inner, library.fails = add, outer, add, fails
        self.configure()
        self.written = []
        _annotate.copy_to(self.written)
        _annotate.enable(True)
        self.addCleanup(_annotate.copy_to, None)
        self.addCleanup(_annotate.enable, False)
        _annotate.left_out()

    def configure(self, **changes):
        _annotate.configure(**{**dict(tensor=Tensor, format="own", stacks=False, function_stacks=False, call_ids=False, layers=True, links=False), **changes})

    def wrap(self, name, owner=library):
        setattr(owner, name, _annotate.function(getattr(owner, name), owner, name))
        return getattr(owner, name)

    def texts(self):
        return [w[1] for w in self.written if w[0] == "push"]

    def said(self, key):
        return [w[2] for w in self.written if w[:2] == ("arg", key)]

    def left_out(self, what):
        """How often that was, which must be all that was left out."""
        (sentence, times), = _annotate.left_out().items()
        self.assertIn(what, sentence)
        return times


class Texts(Base):
    def args(self, *args, **kwargs):
        del self.written[:]
        self.wrap("add")(*args, **kwargs)
        text, = self.texts()
        head = "{'mod': 'library', 'op': 'add', 'args': "
        self.assertTrue(text.startswith(head), text)
        library.add = add
        return text[len(head):-1]

    def test_tensors(self):
        self.assertEqual(self.args(Tensor(2, 3), Tensor()), "[{'name': '', 'type': 'tensor', 'shape': (2, 3), 'dtype': 'float32'}, "
                                                            "{'name': '', 'type': 'tensor', 'shape': (), 'dtype': 'float32'}]")
        self.assertEqual(self.args(Tensor(7), b=Tensor(0)), "[{'name': '', 'type': 'tensor', 'shape': (7,), 'dtype': 'float32'}, "
                                                            "{'name': 'b', 'type': 'tensor', 'shape': (0,), 'dtype': 'float32'}]")

    def test_scalars(self):
        for value, text in ((3, "'type': 'int', 'value': 3"), (-2.5, "'type': 'float', 'value': -2.5"), (1e22, "'type': 'float', 'value': 1e+22"),
                            (float("inf"), "'type': 'float', 'value': 'inf'"), (float("-inf"), "'type': 'float', 'value': '-inf'"),
                            (float("nan"), "'type': 'float', 'value': 'nan'"), (True, "'type': 'bool', 'value': True"),
                            (None, "'type': 'NoneType', 'value': None"), ("it's", "'type': 'str', 'value': \"it's\""), (1 << 80, f"'type': 'int', 'value': {1 << 80}")):
            self.assertEqual(self.args(value, alpha=value), f"[{{'name': '', {text}}}, {{'name': 'alpha', {text}}}]")

    def test_lists(self):
        self.assertEqual(self.args([1, 2], (3,)), "[{'name': '', 'type': 'list', 'value': [1, 2]}, {'name': '', 'type': 'tuple', 'value': (3,)}]")
        self.assertEqual(self.args([], ()), "[{'name': '', 'type': 'list', 'value': []}, {'name': '', 'type': 'tuple', 'value': ()}]")
        tensor = "{'name': '%s', 'type': 'tensor', 'shape': (2,), 'dtype': 'float32'}"
        tensors = "{'name': '%s', 'type': 'tensors', 'shapes': [%s], 'dtypes': [%s]}"
        self.assertEqual(self.args([Tensor(2), Tensor()], b=(Tensor(2, 3),)), "[" + tensors % ("", "(2,), ()", "'float32', 'float32'") + ", " +
                         tensors % ("b", "(2, 3)", "'float32'") + "]")
        self.assertEqual(self.args([Tensor(2), None]), "[" + tensor % "" + ", {'name': '', 'type': 'NoneType', 'value': None}]")
        self.configure(format="pyprof")
        del self.written[:]
        self.wrap("add")([Tensor(2), Tensor(2)], b=(Tensor(2),))
        self.assertTrue(self.texts()[-1].endswith(f"[{tensor % ''}, {tensor % ''}, {tensor % 'b'}]}}"), self.texts())
        library.add = add
        self.configure()
        # Of a list that begins with a number but has tensors in it, too, the values would be printed.
        self.assertEqual(self.args([1, Tensor(2)]), "[{'name': '', 'type': 'list'}]")

    def test_what_is_left_out(self):
        self.assertEqual(self.args(object(), {"a": 1}), "[]")

    def test_arrays(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("no numpy")
        self.assertEqual(self.args(numpy.zeros((2, 3), "int8")), "[{'name': '', 'type': 'ndarray', 'shape': (2, 3), 'dtype': 'int8'}]")

    def test_numbers_that_change_with_each_call(self):
        f = self.wrap("add")
        for i in range(1000):
            f(Tensor(2), i / 7)
        self.assertLess(len(set(self.texts())), 300)
        self.assertEqual(self.texts()[-1], "{'mod': 'library', 'op': 'add', 'args': [{'name': '', 'type': 'tensor', 'shape': (2,), 'dtype': 'float32'}, "
                                           "{'name': '', 'type': 'float'}]}")

    def test_shapes_that_change_with_each_call(self):
        f = self.wrap("add")
        for i in range(20000):
            f(Tensor(i), 1)
        self.assertEqual(self.texts()[100].count("shape"), 1)
        self.assertEqual(self.texts()[-1], "{'mod': 'library', 'op': 'add', 'args': []}")
        self.assertEqual(self.left_out("more than 16384 combinations"), 20000 - 16384)
        self.assertEqual(_annotate.left_out(), {})

    def test_many_tensors(self):
        tensors = [Tensor(2, i) for i in range(400)]
        self.assertEqual(self.args(tensors), "[{'name': '', 'type': 'tensors', 'shapes': [" + ", ".join(f"(2, {i})" for i in range(400)) +
                         "], 'dtypes': [" + ", ".join(["'float32'"] * 400) + "]}]")
        self.assertEqual(_annotate.left_out(), {})

    def test_more_than_a_text_may_hold(self):
        for format, tensors in (("own", [Tensor(2)] * 2000), ("own", [[Tensor(2)] * 2000, [Tensor(2)] * 2000]), ("pyprof", [Tensor(2)] * 1000),
                                ("pyprof", list(range(100000)))):
            with self.subTest(format, n=len(tensors)):
                self.configure(format=format)
                del self.written[:]
                f = self.wrap("add")
                f(tensors), f(tensors)
                self.assertEqual([t for t in self.texts() if "'op'" in t], ["{'mod': 'library', 'op': 'add', 'args': []}"] * 2)
                self.assertEqual(self.left_out("more than 32000 bytes"), 2)
                del self.written[:]
                f(Tensor(3))
                self.assertIn("'shape': (3,)", self.texts()[-1])
                library.add = add
        self.configure(format="dlprof", call_ids=True)
        self.wrap("add")([Tensor(2)] * 1000)
        self.assertRegex(self.texts()[-1], r"^\{'mod': 'library', 'op': 'add', 'callid': \d+, 'input_callids': \[-1\], 'args': \[\]\}$")
        self.assertEqual(self.left_out("more than 32000 bytes"), 1)

    def test_many_numbers(self):
        self.assertEqual(self.args(list(range(65)), [1]), "[{'name': '', 'type': 'list'}, {'name': '', 'type': 'list', 'value': [1]}]")
        self.assertEqual(_annotate.left_out(), {})  # which is usual: the capture says so, no warning does
        self.configure(format="pyprof")
        del self.written[:]
        self.wrap("add")(list(range(1000)))
        self.assertEqual(eval(self.texts()[-1])["args"][0]["value"], list(range(1000)))

    def test_lists_in_lists(self):
        def nested(n):
            return [nested(n - 1)] if n else Tensor(2)
        self.assertEqual(self.args(nested(4)).count("shape"), 1)
        self.assertEqual(_annotate.left_out(), {})
        self.assertEqual(self.args(nested(5)).count("shape"), 0)
        self.assertEqual(self.left_out("more than 4 deep"), 1)
        mixed = [1]
        mixed.append(mixed)
        self.assertEqual(self.args(mixed), "[{'name': '', 'type': 'list'}]")
        self.assertEqual(self.args([[[[[1]]]]]), "[{'name': '', 'type': 'list', 'value': [1]}]")
        self.assertEqual(self.args([[[[[2]]]]]), "[{'name': '', 'type': 'list', 'value': [2]}]")

    def test_shapes_that_are_no_numbers(self):
        self.assertIn("'shape': (-1, 3)", self.args(Tensor("n", 3)))

    def test_attributes_that_fail(self):
        class Odd(Tensor):
            shape = property(lambda self: 1 / 0, lambda self, v: None)
        self.assertEqual(self.args(Odd(), 1), "[{'name': '', 'type': 'int', 'value': 1}]")


class Ranges(Base):
    def test_list_that_changes_while_it_is_read(self):
        """What is asked is held until it has answered all."""
        for format in ("own", "pyprof"):
            events, items = [], []

            class Clears(Tensor):
                @property
                def shape(self):
                    events.append("shape")
                    items.clear()
                    return (2,)

                @property
                def dtype(self):
                    events.append("dtype")
                    return FLOAT

                def __init__(self):
                    weakref.finalize(self, events.append, "gone")

            self.configure(format=format)
            f = self.wrap("add")
            items[:] = [Clears(), Clears()]
            f(items)  # in words: nothing is left of the list for the text
            self.assertEqual(events, ["shape", "gone", "dtype", "gone"])
            library.add = add

    def test_one_op_that_calls_itself_by_another_name(self):
        self.wrap("outer"), self.wrap("inner")
        library.outer(Tensor(2))
        self.assertEqual([t.split("'")[7] for t in self.texts()], ["outer", "inner"])
        del self.written[:]
        library.outer = _annotate.function(lambda a: library.inner(a), library, "inner")
        library.outer(Tensor(2))
        self.assertEqual([t.split("'")[7] for t in self.texts()], ["inner"])

    def test_another_form(self):
        """What a program has by name, called from the same place after init() was given another form."""
        f, forms = self.wrap("add"), {}

        def again(n):
            return again(n - 1) if n else f([Tensor(2)] * 2)

        for form in ("own", "pyprof", "dlprof", "own"):
            self.configure(format=form)
            del self.written[:]
            again(3)
            forms[form] = self.texts()
        self.assertIn("'tensors'", forms["own"][0])
        for form in ("pyprof", "dlprof"):
            self.assertEqual(forms[form][1].count("'type': 'tensor',"), 2, forms[form])
        pyprof, dlprof = (ast.literal_eval(forms[form][0])["traceMarker"] for form in ("pyprof", "dlprof"))
        self.assertEqual([pyprof.count(pyprof[-1]), dlprof.count(pyprof[-1])], [4, 1])

    def test_format_that_there_is_not(self):
        self.assertEqual(_annotate.formats(), ("own", "pyprof", "dlprof"))
        self.configure(format="pyprof")
        with self.assertRaisesRegex(ValueError, r"no format 'nsys': \('own', 'pyprof', 'dlprof'\)"):
            self.configure(format="nsys")
        self.wrap("add")(1, 2)
        self.assertEqual(len(self.texts()), 2)  # as it was set before

    def test_failure(self):
        with self.assertRaises(KeyError):
            self.wrap("fails")(1)
        self.assertEqual([w[0] for w in self.written], ["push", "pop"])

    def test_quiet(self):
        f = self.wrap("add")
        was = _annotate.quiet(True)
        f(1, 2)
        _annotate.quiet(was)
        _annotate.enable(False)
        f(1, 2)
        self.assertEqual(self.written, [])

    def test_stack(self):
        self.configure(stacks=True)
        f = self.wrap("add")
        f(1, 2); line = inspect.currentframe().f_lineno  # noqa: E702
        arg = next(w for w in self.written if w[0] == "arg")
        self.assertEqual(arg[1], "Call stack")
        self.assertEqual(arg[2].split(";")[0], f"{inspect.currentframe().f_code.co_filename}({line}): test_stack")

    def test_call_ids(self):
        self.configure(call_ids=True)
        f = self.wrap("add")
        x = Tensor(2)
        y = f(x, 1)          # the result is x itself
        f([y, Tensor(3)], 1)
        ids = [w[2] for w in self.written if w[0] == "arg"]
        self.assertEqual(ids[1:], [[-1], ids[0] + 1, [ids[0], -1]])
        del x, y
        f(Tensor(2), 1)
        self.assertEqual([w[2] for w in self.written if w[0] == "arg"][-1], [-1])  # another tensor, though it may stand at the same address


    def test_makers_of_many_tensors(self):
        self.configure(call_ids=True)
        library.inner = lambda n: Tensor(n)
        make, use = self.wrap("inner"), self.wrap("add")
        tensors = [make(i) for i in range(300)]
        numbers = self.said("callid")
        del self.written[:]
        for t in tensors:
            use(t)
        self.assertEqual(self.said("input_callids"), [[n] for n in numbers])
        self.assertEqual(_annotate.left_out(), {})
        del self.written[:]
        use([make(i) for i in range(300)])
        self.assertEqual(len(self.said("input_callids")[-1]), 256)
        self.assertEqual(self.left_out("no more than 256"), 44)
        tensors = [make(i) for i in range(9000)]
        self.assertGreaterEqual(self.left_out("which call made them"), 9000 - 8192)

    def test_name_of_a_maker_long_ago(self):
        self.configure(format="dlprof", function_stacks=True, call_ids=True)
        library.inner = lambda: Tensor(2)
        weight, use = self.wrap("inner")(), self.wrap("add")
        for _ in range(10000):
            use(1)
            del self.written[:]
        use(weight)
        self.assertTrue(eval(self.texts()[-1])["args"][0]["name"].endswith("/Ranges::test_name_of_a_maker_long_ago/inner"), self.texts()[-1])
        self.assertEqual(_annotate.left_out(), {})

    def test_deep_stack(self):
        self.configure(stacks=True)
        space = {"f": self.wrap("add")}
        # A file of a short name: what a stack says may be no longer than some bytes, either.
        exec(compile("def down(n): return down(n - 1) if n else f(1, 2)", "deep.py", "exec"), space)
        down = space["down"]
        down(100)
        self.assertEqual(self.written[1][2].count("down"), 101)
        self.assertEqual(_annotate.left_out(), {})
        down(300)
        self.assertEqual(self.written[4][2].count("down"), 256)
        self.assertEqual(self.left_out("more than 256 frames"), 1)

    def test_stack_of_long_names(self):
        """Markers are whole, whatever the names are."""
        name, space = "f" * 4000, {}
        exec(f"def {name}(n, g): return {name}(n - 1, g) if n else g(1, 2)", space)
        for format in "own", "pyprof", "dlprof":
            with self.subTest(format):
                library.add = add
                self.configure(stacks=True, function_stacks=True, format=format)
                space[name](20, self.wrap("add"))
                self.assertLess(max(len(t) for w in self.written for t in w[1:] if isinstance(t, str)), 32000)
                self.assertGreaterEqual(self.left_out("24000 bytes"), 1)
                if format != "own":
                    self.assertEqual(len(eval(self.texts()[-2])["traceMarker"]), 5 if format == "pyprof" else 1)  # all are one line


class Module:
    def __init__(self, **inner):
        self._modules = inner

    def named_modules(self, path=""):
        yield path, self
        for name, m in self._modules.items():
            yield from m.named_modules(path + "." + name if path else name)

    def __call__(self):
        for m in self._modules.values():
            m()


class Layers(Base):
    def setUp(self):
        super().setUp()
        original = Module.__call__
        Module.__call__ = _annotate.layer_method(original, Module, "__call__")
        self.addCleanup(setattr, Module, "__call__", original)
        self.addCleanup(_annotate.forget)

    def test_names(self):
        a = Module(conv=Module(), block=Module(**{"0": Module(), "1": Module()}))
        a()
        self.assertEqual(self.texts(), ["[module]Module: " + p for p in ("Module", "Module.conv", "Module.block", "Module.block.0", "Module.block.1")])

    def test_two_models(self):
        a, b = Module(x=Module()), Module(x=Module())
        a(), b(), a()
        self.assertEqual(self.texts()[2:], ["[module]Module: Module(2)", "[module]Module: Module(2).x", "[module]Module: Module", "[module]Module: Module.x"])
        del a, b
        Module()()
        self.assertEqual(self.texts()[-1], "[module]Module: Module")

    def test_named_again(self):
        a, b = Module(x=Module()), Module()
        a(), b()
        _annotate.forget()  # as another init() does
        b(), a(), Module()()
        self.assertEqual([t[len("[module]Module: "):] for t in self.texts()[3:]], ["Module(2)", "Module", "Module.x", "Module(3)"])

    def test_module_that_came_later(self):
        a = Module()
        a()
        a._modules["late"] = Module()
        a()
        self.assertEqual(self.texts()[-1], "[module]Module: Module.late")

    def test_address_that_is_used_again(self):
        a = Module(x=Module())
        a()
        for _ in range(20):
            del a
            a = Module(y=Module())
            a()
            self.assertEqual(self.texts()[-2:], ["[module]Module: Module", "[module]Module: Module.y"])

    def test_classes_are_given_back(self):
        """Those that a program makes as it runs; their numbers are free, too, and those of others stay."""
        def made():
            class Made(Module):
                pass
            return Made
        kept = [Module(), Module()]
        for m in kept:
            m()
        classes = []
        for _ in range(5):
            model = made()()
            model()
            classes.append(weakref.ref(type(model)))
        del model
        gc.collect()
        self.assertEqual([c() for c in classes], [None] * 5)
        again = Module()
        again()
        _annotate.forget()
        for m in (again, *kept):
            m()
        self.assertEqual([t[len("[module]"):] for t in self.texts()], ["Module: Module", "Module: Module(2)"] + ["Made: Made"] * 5 + ["Module: Module(3)"] +
                         ["Module: Module(3)", "Module: Module", "Module: Module(2)"])

    def test_places_of_other_classes(self):
        """Whose place one has does not show in its number."""
        class First(Module):
            pass
        model = First()
        model()
        models = [Module(), Module()]
        models[0](), models[1]()
        del model, First
        gc.collect()
        models.append(Module())
        models[2]()
        del models
        Module()()
        self.assertEqual([t[len("[module]Module: "):] for t in self.texts()[1:]], ["Module", "Module(2)", "Module(3)", "Module"])

    def test_names_that_are_forgotten_while_they_are_asked_for(self):
        """As close() does, which the program calls there, or another thread."""
        class Forgets(Module):
            def named_modules(self):
                _annotate.forget()
                return super().named_modules()

        Forgets(x=Module())()
        self.assertEqual(self.texts(), ["[module]Module: Forgets.x"])
        self.assertEqual([w[0] for w in self.written], ["push", "pop"])


class Limits(Base):
    """Those that fill what the rest of the process needs, too."""
    PROLOGUE = """
import sys
sys.path.insert(0, {folder!r})
from test_annotate import Module, Tensor, _annotate, add, library
_annotate.configure(tensor=Tensor, format="own", stacks=True, function_stacks=False, call_ids=False, layers=True, links=False)
_annotate.enable(True)
written = []
_annotate.copy_to(written)
"""

    def child(self, code, *command):
        prologue = self.PROLOGUE.format(folder=os.path.dirname(os.path.abspath(__file__)))
        p = subprocess.run([*command, sys.executable, "-c", prologue + code], capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        return p.stdout

    def test_modules(self):
        out = self.child("""
Module.__call__ = _annotate.layer_method(Module.__call__, Module, "__call__")
models = [Module() for _ in range(4097)]
for m in models:
    m()
print(written[-2], _annotate.left_out())
inner = {str(i): Module() for i in range(1 << 16)}
Module(**inner)
models[0]._modules = inner
Module(**inner)()
print(len([w for w in written if w[0] == "push"]), _annotate.left_out())
""")
        models, modules = out.splitlines()
        self.assertIn("Module(4097)", models)
        self.assertIn("more than 4096 models were called: others have numbers that may be another one's, too\": 1", models)
        pushed, _, said = modules.partition(" ")
        self.assertEqual(int(pushed), 1 << 16)
        self.assertIn("more than 65536 modules were called", said)

    def test_stacks(self):
        out = self.child("""
library.add = _annotate.function(add, library, "add")
space = {"f": library.add}
exec("def low():\\n" + " f(1)\\n" * 512 + "def high():\\n" + " low()\\n" * 257, space)
space["high"]()
ops = [w for w in written if w[0] == "push"]
print(len(ops), len([w for w in written if w[0] == "arg"]), _annotate.left_out())
""")
        self.assertEqual(out.split()[:2], [str(512 * 257), str(1 << 17)])
        self.assertIn(f"131072 different stacks: those from others have no lines': {512 * 257 - (1 << 17)}", out)

    def test_capture(self):
        """Reports of the capture say what was left out, and how often it was is no matter."""
        if "asan" in os.environ.get("LD_PRELOAD", ""):
            self.skipTest("the sanitizer would have to be in the recorder, too")
        with tempfile.TemporaryDirectory() as folder:
            run = os.path.join(folder, "run")
            self.child("""
f = _annotate.function(add, library, "add")
f([Tensor(2)] * 5000), f([Tensor(2)] * 5000), f(list(range(100)))
""", oracle.OPSCOPE, "record", "--no-report", "-o", run, "--")
            for command, *said in (("report", "operators"), "more than 31.2 KiB are told without them"), (("info",), "32000 bytes", "more than 64 in a list"):
                code, out, err = oracle.run(*command, "--notes=full", run)
                self.assertEqual(code, 0, err)
                self.assertEqual(out.decode().count("opscope.torch: "), len(said), out.decode())
                for what in said:
                    self.assertIn(what, out.decode())

    def test_captures_of_its_own(self):
        """Each says what it lacks, however often that was before."""
        if "asan" in os.environ.get("LD_PRELOAD", ""):
            self.skipTest("captures of its own are tried without the sanitizer")
        with tempfile.TemporaryDirectory() as folder:
            self.child(f"""
import os
f = _annotate.function(add, library, "add")
for i in range(4):
    os.mkdir(os.path.join({folder!r}, str(i)))
    _annotate.capture_begin({INJECT!r}, os.path.join({folder!r}, str(i)), 0, False)
    f([Tensor(2)] * 5000)
    _annotate.capture_end()
assert list(_annotate.left_out().values()) == [4]
""")
            for i in range(4):
                code, out, err = oracle.run("info", os.path.join(folder, str(i)))
                self.assertEqual(code, 0, err)
                self.assertIn("more than 32000 bytes are told without them", out.decode(), i)


class Looks(Base):
    """A wrapper is taken for what it wraps."""

    def test_names(self):
        f = self.wrap("add")
        self.assertEqual((f.__name__, f.__doc__, f.__module__, f.__qualname__, f.__defaults__), ("add", "Adds.", "library", "add", (None,)))
        self.assertEqual(inspect.signature(f), inspect.signature(add))
        self.assertEqual(repr(f), repr(add))
        f.mark = 1
        self.assertEqual(add.mark, 1)
        del f.mark
        with self.assertRaises(AttributeError):
            f.no_such_name

    def test_equality(self):
        f = self.wrap("add")
        self.assertTrue(f == add and add == f and not f != add and f == f and f != outer)
        self.assertEqual({add: 1}[f], 1)
        self.assertEqual({f: 1}[add], 1)
        n = self.wrap("inner")
        self.assertEqual(n, f)

    def test_copies(self):
        f = self.wrap("add")
        self.assertIs(copy.deepcopy(f), f)
        self.assertIs(pickle.loads(pickle.dumps(f)), f)
        pickles = [pickle.dumps(f, n) for n in range(pickle.HIGHEST_PROTOCOL + 1)]
        library.add = add
        self.assertEqual(pickles, [pickle.dumps(add, n) for n in range(pickle.HIGHEST_PROTOCOL + 1)])
        self.assertIs(pickle.loads(pickle.dumps(f)), add)  # taken out of its place meanwhile
        self.assertIs(copy.copy(f), f)
        # What is pickled by its place in a class, or by its name.
        for original, owner, name in ((str.upper, str, "upper"), (math.floor, math, "floor")):
            wrapper = _annotate.function(original, owner, name)
            self.assertIs(copy.deepcopy(wrapper), wrapper)
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                self.assertIs(pickle.loads(pickle.dumps(wrapper, protocol)), original)

    def test_methods(self):
        class C:
            bound = _annotate.method(add, library, "add")
            free = _annotate.function(max, library, "max")
        self.assertEqual(C().free(1, 2), 2)
        c = C()
        self.assertIs(c.bound(2), c)
        self.assertIsInstance(c.bound, types.MethodType)
        self.assertIs(C.bound(1, 2), 1)

    def test_weak_references(self):
        f = _annotate.function(add, library, "add")
        r = weakref.ref(f)
        del f
        gc.collect()
        self.assertIsNone(r())

    def test_wrong_use(self):
        for wrong in ((), (add,), (add, library), (add, library, 5), (add, object(), "add")):
            with self.assertRaises((TypeError, AttributeError)):
                _annotate.function(*wrong)
        for make in (_annotate.function, _annotate.method, _annotate.layer_method):
            with self.assertRaises(UnicodeEncodeError):
                make(add, library, "\ud800")
        with self.assertRaises(TypeError):
            _annotate.copy_to(1)
        with self.assertRaises(TypeError):
            _annotate.configure(tensor=1, format="own", stacks=1, function_stacks=1, call_ids=1, layers=1, links=1)


class Functions(Base):
    """DLProf's names of functions (its documentation, and what its own tests expect)."""

    def names(self, format="own"):
        self.configure(format=format, function_stacks=True)
        self.wrap("add")
        return lambda: [w[2].split("Functions::")[-1].split("/", 1)[1] for w in self.written if w[0] == "arg" and w[1] == "funcStack"]

    def test_example_of_the_guide(self):
        names = self.names()

        def b():
            library.add(1, 2)
            library.add(1, 2)

        def a():
            b()
            b()

        a()
        self.assertEqual(names(), ["a/b/add", "a/b/add(2)", "a/b(2)/add", "a/b(2)/add(2)"])
        del self.written[:]
        a()
        self.assertEqual(names(), ["a(2)/b/add", "a(2)/b/add(2)", "a(2)/b(2)/add", "a(2)/b(2)/add(2)"])

    def test_recursion_and_lambda(self):
        names = self.names()

        def down(n):
            return down(n - 1) if n else (lambda: library.add(1, 2))()

        down(3)
        self.assertEqual(names(), ["down/<lambda>/add"])

    def test_wrappers_vanish_but_count(self):
        names = self.names()

        def wrapper_func():
            library.add(1, 2)

        def f():
            wrapper_func()
            wrapper_func()

        f()
        self.assertEqual(names(), ["f/add", "f/add(2)"])

    def test_methods(self):
        names = self.names()

        class Net:
            def forward(self):
                library.add(1, 2)
                (lambda: (self, library.add(1, 2)))()

        Net().forward()
        self.assertEqual(names(), ["Net::forward/add", "Net::forward/Net::<lambda>/add"])

    def test_variables_live_as_long_as_without(self):
        """The object of a method is asked for, and nothing of its frame is kept: neither its own variables nor those that functions inside use."""
        self.names()
        out = []

        class Net:
            def forward(self):
                x, used_inside = Tensor(3), Tensor(2)
                references = [weakref.ref(used_inside), weakref.ref(x)]
                library.add(1, 2)
                del x
                out.append(references[1]() is None)
                (lambda: (self, library.add(used_inside, 1)))()
                del used_inside
                out.append(references[0]() is None)

            def steps(self):
                tensor = Tensor(2)
                reference = weakref.ref(tensor)
                yield library.add(1, 2)
                del tensor
                yield reference() is None

            def without(self):
                del self
                library.add(1, 2)

        net = Net()
        net.forward()
        out.append(list(net.steps())[1])
        net.without()
        reference = weakref.ref(net)
        del net
        self.assertEqual([*out, reference() is None], [True] * 4)
        names = [stack.rsplit("/", 2)[1] for stack in self.said("funcStack")]
        self.assertEqual(names, ["Net::forward", "Net::<lambda>", "Net::steps", "without"])

    def test_class_that_is_being_made(self):
        names = self.names()

        class Outer:
            def make(self):
                class Inner:
                    owner = self
                    library.add(1, 2)
                return Inner

        Outer().make()
        self.assertEqual(names(), ["Outer::make/Inner/add"])

    def test_marker(self):
        self.configure(format="dlprof", function_stacks=True)

        def f():
            return _annotate.trace_marker("relu")

        marker = eval(f())
        self.assertEqual(sorted(marker), ["funcStack", "traceMarker"])
        self.assertTrue(marker["funcStack"].endswith("Functions::test_marker/f/relu"), marker)
        self.assertEqual([os.path.basename(x.rsplit(":", 1)[0]) for x in marker["traceMarker"][-2:]], ["test_annotate.py"] * 2)


    def test_marker_of_a_deep_program(self):
        self.configure(format="dlprof", function_stacks=True, call_ids=True)
        self.wrap("add")
        space = {"library": library}
        names = [f"function_{i}_with_a_name_that_is_not_short" for i in range(10)]
        for name, inner in zip(names, [*names[1:], "library.add"]):
            exec(f"def {name}(a): return {inner}(a)", space)
        tensor = Tensor(2)
        space[names[0]](tensor)
        space[names[0]](tensor)
        marker = eval(self.texts()[-1])
        self.assertTrue(marker["args"][0]["name"].endswith("/".join(names) + "/add"), marker)
        self.assertTrue(eval(self.texts()[-2])["funcStack"].endswith("/".join(names[1:]) + "/add"), self.texts()[-2])


class TimeIsUp(Exception):
    pass


class Interruptions(Base):
    """What interrupts the program while it is asked is the program's; what its objects raise is not."""

    def setUp(self):
        super().setUp()
        self.configure(format="pyprof", links=True)
        original = Module.__call__
        Module.__call__ = _annotate.layer_method(original, Module, "__call__")
        self.addCleanup(setattr, Module, "__call__", original)
        self.addCleanup(_annotate.forget)
        self.addCleanup(signal.signal, signal.SIGUSR1, signal.getsignal(signal.SIGUSR1))

    def handlers(self):
        def function(number, frame):
            raise TimeIsUp(number)

        class Object:
            def method(self, number, frame):
                raise TimeIsUp(number)
            __call__ = method

        return function, Object().method, Object(), functools.partial(Object().method)

    def calls(self, interrupt):
        """What is asked -> the call that asks it; its result is 1."""
        class Asked(Module):
            def named_modules(self):
                interrupt()
                return super().named_modules()

            def extra_repr(self):
                interrupt()
                return ""

            def __call__(self):
                Module.__call__(self)
                return 1

            def forward(self):
                return 1

        class Shaped(Tensor):
            @property
            def shape(self):
                interrupt()
                return (1,)

        class Linked(Tensor):
            @property
            def grad_fn(self):
                interrupt()

            def __init__(self):
                pass

        Asked.forward = _annotate.method(Asked.forward, Asked, "forward")
        one = _annotate.function(lambda *a: 1, library, "add")
        linked = _annotate.function(lambda: Linked(), library, "add")
        shaped = Tensor.__new__(Shaped)
        shaped.dtype = FLOAT
        return dict(named_modules=Asked(), extra_repr=Asked().forward, shape=lambda: one(shaped), shapes=lambda: one([shaped]),
                    before=lambda: _annotate.function(lambda: 1, library, "add", interrupt)(), grad_fn=lambda: bool(type(linked()) is Linked))

    def raised(self, call):
        """By a call that had begun no range that it did not end."""
        del self.written[:]
        try:
            self.assertEqual(call(), 1)
        except BaseException as e:
            return type(e)
        finally:
            kinds = [w[0] for w in self.written]
            self.assertEqual(kinds.count("push"), kinds.count("pop"))

    def interrupted_by(self, interrupt):
        return {what: self.raised(call) for what, call in self.calls(interrupt).items()}

    def test_keyboard(self):
        def interrupt():
            raise KeyboardInterrupt
        self.assertEqual(set(self.interrupted_by(interrupt).values()), {KeyboardInterrupt})

    def test_handlers_of_signals(self):
        for handler in self.handlers():
            with self.subTest(type(handler)):
                signal.signal(signal.SIGUSR1, handler)
                self.assertEqual(set(self.interrupted_by(lambda: signal.raise_signal(signal.SIGUSR1)).values()), {TimeIsUp})

    def test_objects_that_fail(self):
        signal.signal(signal.SIGUSR1, self.handlers()[0])

        def fail():
            raise TimeIsUp
        self.assertEqual(set(self.interrupted_by(fail).values()), {None})

    def test_once(self):
        """The next call does not get it again."""
        raising = [KeyboardInterrupt]

        def interrupt():
            if raising:
                raise raising.pop()
        model = self.calls(interrupt)["named_modules"]
        self.assertEqual([self.raised(model), self.raised(model)], [KeyboardInterrupt, None])
        self.assertEqual(self.texts(), ["[module]Asked: Asked"])


class Node:
    """Of autograd, as far as hooks go."""

    next_functions = ()

    @property
    def metadata(self):
        return self.__dict__.setdefault("kept", {})

    def _register_hook_dict(self, tensor):
        self.hooks = tensor._backward_hooks

    def register_prehook(self, hook):
        self.__dict__.setdefault("before", []).append(hook)


class AddBackward0(Node):
    pass


class Odd(Node):
    pass


def made(node):
    t = Tensor(2)
    t.grad_fn, t._backward_hooks = node, None
    return t


class Backward(Base):
    def configure(self, **changes):
        super().configure(**{"links": True, **changes})

    def call(self, function, *args):
        library.inner = function
        return self.wrap("inner")(*args)

    def test_ranges(self):
        nodes = [AddBackward0(), AddBackward0(), Odd()]
        tensors = [self.call(lambda node: made(node), n) for n in nodes[:2]] + self.call(lambda: [made(nodes[2]), 1])[:1]
        numbers = [w[2] for w in self.written if w[0] == "push"]
        self.assertEqual([t._backward_hooks for t in tensors], [None] * 3)
        del self.written[:]
        was = _annotate.begin_backward()
        for n in reversed(nodes):
            for hook in n.hooks.values():
                self.assertIsNone(hook(1, 2))
        _annotate.end_backward(was)
        for hook in nodes[0].hooks.values():
            hook()  # outside of backward()
        pop = ("pop",)
        self.assertEqual(self.written, [("push", "torch.autograd.backward"), ("push", "innerBackward", numbers[2]), pop, ("push", "AddBackward0", numbers[1]),
                                        pop, ("push", "AddBackward0", numbers[0]), pop, pop])

    def test_many_results(self):
        """A node has one hook, however many results come from it, and each of many nodes has its own."""
        class Counted(AddBackward0):
            registered = 0

            def _register_hook_dict(self, tensor):
                super()._register_hook_dict(tensor)
                self.registered += 1

        whole, parts = Counted(), [Counted() for _ in range(40)]
        self.call(lambda: tuple(made(whole) for _ in range(40)))
        self.call(lambda: [made(p) for p in parts])
        self.assertEqual([whole.registered, {p.registered for p in parts}], [1, {1}])
        self.assertEqual(sys.getrefcount(whole), sys.getrefcount(parts[0]))

    def test_many_results_of_calls_inside(self):
        """Handed on in a tuple, a list or late: each node has the hook of the call that made it, and no other one."""
        class Counted(AddBackward0):
            def __init__(self):
                self.all = []

            def _register_hook_dict(self, tensor):
                self.all += tensor._backward_hooks.values()

        def fails():
            library.add(nodes[3])
            raise KeyError

        def calls():
            first, second = library.add(nodes[0]), library.add(nodes[1])
            with self.assertRaises(KeyError):
                library.outer(fails)
            library.outer(lambda: [library.add(nodes[4]), 1])
            for _ in range(300):
                library.add(Counted())
            return first, [second], second, made(nodes[2])

        library.add, library.outer = lambda a: made(a), lambda f: f()
        nodes = [Counted() for _ in range(5)]
        for name in ("add", "outer"):
            self.wrap(name)
        for result, of_this in (lambda r: r, 1), (list, 1), (lambda r: r[2], 0):
            for n in nodes:
                n.all.clear()
                n.metadata.clear()
            del self.written[:]
            self.call(lambda: result(calls()))
            self.assertEqual([len(n.all) for n in nodes], [1, 1, of_this, 1, 1])
            adds = [w[2] for w in self.written if w[0] == "push" and "'add'" in w[1]]
            del self.written[:]
            was = _annotate.begin_backward()
            for i in 0, 1, 3, 4:
                nodes[i].all[0]()
            _annotate.end_backward(was)
            self.assertEqual([w[2] for w in self.written if w[0] == "push" and len(w) > 2], adds[:4])

    def test_call_that_goes_on(self):
        """What is known of results inside of it goes with them, and is kept of one that lives."""
        def references():
            return sum(type(o) is weakref.ref for o in gc.get_objects())

        def trains():
            first, before = library.add(node), references()
            for _ in range(3000):
                library.add(AddBackward0())
            grown.append(references() - before)
            return first

        library.add, node, grown = lambda a: made(a), AddBackward0(), []
        self.wrap("add")
        self.call(trains)
        number = next(w[2] for w in self.written if w[0] == "push" and "'add'" in w[1])
        del self.written[:]
        self.assertLess(grown[0], 300)
        was = _annotate.begin_backward()
        for hook in node.hooks.values():
            hook()
        _annotate.end_backward(was)
        self.assertEqual(self.written[1], ("push", "AddBackward0", number))

    def test_result_that_is_handed_on(self):
        node, inner = AddBackward0(), Odd()
        library.add = lambda a: made(a)
        self.wrap("add")
        self.call(lambda: library.add(node))
        number, = [w[2] for w in self.written if w[0] == "push" and "'add'" in w[1]]
        del self.written[:]
        was = _annotate.begin_backward()
        for hook in node.hooks.values():
            hook()
        _annotate.end_backward(was)
        self.assertEqual(self.written[1], ("push", "AddBackward0", number))
        tensor = made(inner)
        self.call(lambda a: a, tensor)
        self.assertFalse(hasattr(inner, "hooks"))
        self.assertEqual(self.ranges_of(inner), [("push", "OddBackward", -1)])

    def ranges_of(self, *nodes):
        """What those write whose hooks are of what is not wrapped."""
        del self.written[:]
        was = _annotate.begin_backward()
        for node in nodes:
            hook, = node.before
            self.assertIsNone(hook(1))
        _annotate.end_backward(was)
        return [w for w in self.written if w[0] == "push"][1:]

    def test_nodes_of_what_is_not_wrapped(self):
        """Their time is not that of the wrapped call whose node runs before them: each has a range, of no call, or of that which goes on around."""
        class AccumulateGrad(Node):
            pass

        wrapped, leaf = AddBackward0(), AccumulateGrad()
        below, above, beside, inside = (type(n, (Node,), {})() for n in ("BelowBackward0", "AboveBackward0", "BesideBackward", "InsideBackward0"))
        self.call(lambda: made(wrapped))
        below.next_functions = ((wrapped, 0), (leaf, 0), (None, 0))
        above.next_functions = ((below, 0), (below, 1))
        tensor = made(above)
        self.call(lambda *a: None, tensor, [made(above), made(beside), 1], tensor)
        self.assertEqual(self.ranges_of(above, below, beside),
                         [("push", "AboveBackward0", -1), ("push", "BelowBackward0", -1), ("push", "BesideBackward", -1)])
        self.assertEqual([len(wrapped.hooks), hasattr(wrapped, "before"), vars(leaf)], [1, False, {}])
        library.add = lambda a: a
        self.wrap("add")
        self.call(lambda: library.add(made(inside)))
        number, = [w[2] for w in self.written if w[0] == "push" and "'inner'" in w[1]]
        self.assertEqual(self.ranges_of(inside), [("push", "InsideBackward0", number)])

    def test_nodes_without_what_newer_ones_have(self):
        class Old(AddBackward0):
            register_prehook = None

        class Bare:
            pass

        self.call(lambda *a: made(AddBackward0()), made(Old()), made(Bare()), made(7))
        self.assertEqual([w[0] for w in self.written], ["push", "pop"])

    def test_result_that_had_no_node_yet(self):
        """As in forward() of an autograd.Function, after which the same tensor has one."""
        node = AddBackward0()
        library.add = lambda: made(None)
        self.wrap("add")

        def outer():
            tensor = library.add()
            tensor.grad_fn = node
            return tensor

        self.call(outer)
        self.assertEqual(len(node.hooks), 1)

    def test_names_of_nodes(self):
        long = "x" * 300
        names = {"MulBackward0": "MulBackward0", "FnBackward": "FnBackward", "Odd": "innerBackward", long: "innerBackward", long + "Backward": "x" * 127}
        classes = []
        for name, said in names.items():
            node = type(name, (Node,), {})()
            classes.append(weakref.ref(type(node)))
            self.call(lambda node: made(node), node)
            del self.written[:]
            was = _annotate.begin_backward()
            for hook in node.hooks.values():
                hook()
            _annotate.end_backward(was)
            self.assertEqual(self.texts(), ["torch.autograd.backward", said])
        del node, hook
        gc.collect()
        self.assertEqual([c() for c in classes], [None] * len(names))

    def test_address_that_is_used_again(self):
        """What another one had that is gone is not this result's."""
        library.add = lambda: made(AddBackward0())
        self.wrap("add")
        node, again = AddBackward0(), []

        def outer():
            before, others, tensor = id(library.add()), [], made(node)
            while id(tensor) != before and len(others) < 1000:
                others.append(tensor)
                tensor = made(node)
            again.append(id(tensor) == before)
            return tensor

        self.call(outer)
        if not again[0]:
            self.skipTest("the memory of an object was not used again")
        self.assertEqual(len(node.hooks), 1)

    def test_results_that_change_while_they_are_linked(self):
        events, results = [], []

        class Clears(Tensor):
            @property
            def grad_fn(self):
                results.clear()
                return AddBackward0()

            @property
            def _backward_hooks(self):
                events.append("asked")

            def __init__(self):
                weakref.finalize(self, events.append, "gone")

        def two():
            results[:] = [Clears(), Clears()]
            return results

        self.call(two)
        self.assertEqual(events, ["gone", "asked", "gone"])


class Growth(Base):
    """Over thousands of calls: neither with each, nor until some cache of names or addresses is full."""

    WORK = dict(own={}, everything=dict(stacks=True, function_stacks=True, call_ids=True), pyprof=dict(format="pyprof"),
                dlprof=dict(format="dlprof", function_stacks=True, call_ids=True), links=dict(links=True))

    ALWAYS = Tensor(2)  # another one in each round would be at another address, known for as long as that is

    def with_node(self, node):
        self.ALWAYS.grad_fn, self.ALWAYS._backward_hooks = node, None
        return self.ALWAYS

    def rounds(self, n, args=(Tensor(2, 3), [Tensor(4), 1], (1, 2.5, None, True, "text"))):
        written = []
        _annotate.copy_to(written)  # without anyone who listens, nothing would be done
        call, broken, inner = library.add, library.fails, library.inner
        for _ in range(n):
            call(*args, alpha=2)
            node = AddBackward0()
            inner(node)
            was = _annotate.begin_backward()
            for hook in getattr(node, "hooks", {}).values():
                hook(node)
            _annotate.end_backward(was)
            try:
                broken(1)
            except KeyError:
                pass
            _annotate.push("text"), _annotate.pop(), _annotate.stack()
            del written[:]
        _annotate.copy_to(None)

    def test_memory(self):
        import tracemalloc
        for name, changes in self.WORK.items():
            with self.subTest(name):
                self.setUp()
                self.configure(**changes)
                library.inner = self.with_node
                self.wrap("add"), self.wrap("fails"), self.wrap("inner")
                held = []
                for n in (200, 200, ROUNDS):  # from one line: calls from another one are another stack
                    self.rounds(n)
                    gc.collect()
                    held.append(tracemalloc.get_traced_memory()[0])
                    tracemalloc.start()
                tracemalloc.stop()
                self.assertLess(held[2] - held[1], 512)  # one object lost in each tenth round would be more

    def test_names_that_are_asked_for(self):
        """A type's cache keeps each str that it was asked with."""
        asked = []

        class Watched(Tensor):
            def __getattribute__(self, name):
                asked.append(name)
                return super().__getattribute__(name)

        class Watching(Module):
            def __getattribute__(self, name):
                if name == "extra_repr":
                    asked.append(name)
                return super().__getattribute__(name)

            def extra_repr(self):
                return "2, 3"

            def forward(self, x):
                return x

        original = Watching.forward
        self.configure(format="pyprof", tensor=Watched)
        Watching.forward = _annotate.method(original, Watching, "forward")
        module, tensor = Watching(), Watched(2)
        del asked[:]
        for _ in range(3):
            module.forward(tensor)
        self.assertIn("{'mod': 'Watching', 'strRepr': '2, 3'}", self.texts())
        self.assertEqual({name: sum(a == name for a in asked) >= 3 for name in ("shape", "dtype", "extra_repr")}, dict(shape=True, dtype=True, extra_repr=True))
        self.assertEqual(len({id(name) for name in asked}), len(set(asked)))

    def test_references(self):
        for name, changes in self.WORK.items():
            with self.subTest(name):
                self.setUp()
                self.configure(**changes)
                library.inner = self.with_node
                self.wrap("add"), self.wrap("fails"), self.wrap("inner")
                things = [Tensor(2), [1, 2], (3, 4), FLOAT, None, True, add, library, Tensor, _annotate.function]
                counts = []
                for n in (100, ROUNDS):
                    self.rounds(n, tuple(things[:3]))
                    gc.collect()
                    counts.append([sys.getrefcount(x) for x in things])
                for a, b in zip(*counts):
                    self.assertAlmostEqual(a, b, delta=10)

    def test_debug_python(self):
        """Every reference there is, under a debug build of Python, with the extension built for it."""
        under_debug_python(self, "Growth.test_total", 3000, "_annotate")

    def test_total(self):
        if not hasattr(sys, "gettotalrefcount"):
            self.skipTest("not a debug build of Python")
        for name, changes in self.WORK.items():
            with self.subTest(name):
                self.setUp()
                self.configure(**changes)
                library.inner = self.with_node
                self.wrap("add"), self.wrap("fails"), self.wrap("inner")
                counts = []
                for n in (500, ROUNDS):
                    self.rounds(n)
                    gc.collect()
                    counts.append(sys.gettotalrefcount())
                self.assertLess(counts[1] - counts[0], 50)


if __name__ == "__main__":
    oracle.main()
