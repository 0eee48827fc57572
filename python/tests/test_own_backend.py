"""opscope.profile(backend="opscope"): the process records itself. What recordings hold, each repeat of a schedule apart; that everything is put back; what
happens when there is no library, no folder, no end, another profile, a forked child, or `opscope record` around it.

Skipped under a Python without torch (Debian: python3-torch).
"""
import ast
import asyncio
import contextlib
import ctypes
import errno
import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest
import unittest.mock
import warnings

from support import ROOT, oracle
import opscope

try:
    import torch
    from opscope import _own
    from opscope._recorder import Recorder
    import opscope.torch
except ImportError:
    torch = None

BUILD = os.environ.get("OPSCOPE_BUILD", os.path.join(ROOT, "build"))
PATIENCE = 120
CONV, LINEAR = "torch.nn.functional.conv2d", "torch.nn.functional.linear"


def model():
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))


def step(net):
    torch.nn.functional.cross_entropy(net(torch.randn(2, 3, 8, 8)), torch.zeros(2, dtype=torch.int64)).backward()


@unittest.skipUnless(torch, "no Python with torch (Debian: python3-torch)")
class Case(oracle.Case):
    def setUp(self):
        super().setUp()
        self.original = torch.nn.functional.conv2d
        torch.set_num_threads(1)

    def tearDown(self):
        self.assertIs(torch.nn.functional.conv2d, self.original, "annotations that were left behind")
        self.assertIsNone(_own.Capture.running)

    def profile(self, **options):
        return opscope.profile(backend="opscope", **options)

    def recorded(self, steps=1, **options):
        net = model()
        with self.profile(**options) as prof:
            for _ in range(steps):
                step(net)
                prof.step()
        return prof

    def script(self, code, *around, env=None, status=0):
        """A process of its own; what it printed."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.py")
            with open(path, "w") as f:
                f.write("import torch, opscope, opscope.torch, os, sys\nsys.path.insert(0, " + repr(os.path.dirname(__file__)) + ")\n" + textwrap.dedent(code))
            plain = {k: v for k, v in os.environ.items() if not k.startswith(("OPSCOPE_DIR", "NVTX", "CUDA", "MOCK"))}
            p = subprocess.run([*around, sys.executable, "-W", "ignore", path], env={**plain, "PYTHONPATH": os.path.dirname(os.path.dirname(opscope.__file__)), **(env or {})}, capture_output=True, timeout=PATIENCE, text=True)
        self.assertEqual(p.returncode, status, p.stderr)
        self.said = p.stderr
        return p.stdout

    def calls(self, recording, name=CONV):
        return {a.key: a.count for a in recording.key_averages()}.get(name, 0)


class Answers(Case):
    @classmethod
    def setUpClass(cls):
        if torch:
            torch.set_num_threads(1)
            cls.net = model()
            with opscope.profile(backend="opscope", record_shapes=True, with_stack=True) as cls.prof:
                with opscope.record_function("## mine ##"):
                    step(cls.net)
                step(cls.net)

    def test_args_of_ranges(self):
        """Also of torch's own record_function, and of a range that is cut and goes on."""
        prof = self.profile()
        with prof:
            with opscope.record_function("mine", 'a="1"'), torch.autograd.profiler.record_function("torch's", "caf\u00e9"):
                step(self.net)
            with opscope.record_function("mine"):
                step(self.net)
        told = [(e.name, e.metadata_json) for e in prof.events() if e.name in ("mine", "torch's")]
        self.assertEqual(told, [("mine", '"Record function args": "a=\\"1\\""'), ("torch's", '"Record function args": "caf\u00e9"'), ("mine", None)])

    def test_averages(self):
        prof = self.prof
        counts = {a.key: a.count for a in prof.key_averages()}
        self.assertEqual({k: counts.get(k) for k in (CONV, LINEAR, "## mine ##", "ConvolutionBackward0", "[module]Conv2d: Sequential.0")},
                         {CONV: 2, LINEAR: 2, "## mine ##": 1, "ConvolutionBackward0": 2, "[module]Conv2d: Sequential.0": 2})
        self.assertNotIn("ProfilerStep*", counts)
        text = prof.key_averages().table(sort_by="cpu_time_total", row_limit=5)
        self.assertIn("Self CPU %", text)
        self.assertEqual(str(prof), prof.key_averages().table())
        total = prof.total_average()
        self.assertEqual(total.count, sum(counts.values()))
        self.assertAlmostEqual(total.self_cpu_time_total, prof.self_cpu_time_total, delta=1)

    def test_shapes(self):
        shapes = {a.key: a.input_shapes for a in self.prof.key_averages(group_by_input_shape=True)}
        self.assertEqual(ast.literal_eval(str(shapes[CONV]))[:3], [[2, 3, 8, 8], [4, 3, 3, 3], [4]])
        event = next(e for e in self.prof.events() if e.name == CONV)
        self.assertEqual(event.input_shapes[:3], [[2, 3, 8, 8], [4, 3, 3, 3], [4]])

    def test_stacks(self):
        event = next(e for e in self.prof.events() if e.name == LINEAR)
        self.assertTrue([line for line in event.stack if "test_own_backend.py" in line and line.endswith(": step")], event.stack)
        self.assertFalse([line for line in event.stack if "opscope/_own.py" in line or "opscope/profiler.py" in line or "opscope/torch.py" in line])
        with tempfile.TemporaryDirectory() as folder:
            self.prof.export_stacks(os.path.join(folder, "stacks"))
            with open(os.path.join(folder, "stacks")) as f:
                self.assertIn("step", f.read())

    def test_events(self):
        events = self.prof.events()
        inside = next(e for e in events if e.name == CONV)
        self.assertEqual(inside.cpu_parent.name, "[module]Conv2d: Sequential.0")
        self.assertEqual(inside.cpu_parent.cpu_parent.cpu_parent.name, "## mine ##")
        self.assertEqual(len(events), sum(a.count for a in self.prof.key_averages()))

    def test_reports(self):
        layers = self.prof.report("layers")
        self.assertEqual({(r["layer"], r["type"]): r["calls"] for r in layers if r["type"] not in ("Sequential", None)},
                         {("Sequential.0", "Conv2d"): 2, ("Sequential.1", "ReLU"): 2, ("Sequential.2", "Flatten"): 2, ("Sequential.3", "Linear"): 2})
        self.assertIn("problem", self.prof.advise().to_dict())
        self.assertEqual(self.prof.trace.format, "capture")

    def test_what_is_unknown(self):
        """Memory is not 0, and the reason is said."""
        for answer in (self.prof.key_averages()[0], self.prof.total_average(), self.prof.events()[0]):
            self.assertEqual([getattr(answer, n) for n in _own.MEMORY], [None] * 4)
        for ask in (lambda: self.prof.export_memory_timeline("x.html"), lambda: self.prof.key_averages().table(sort_by="self_cpu_memory_usage"),
                    lambda: self.prof.key_averages(group_by_overload_name=True)):
            with self.assertRaisesRegex(ValueError, "unknown, because"):
                ask()
        self.assertEqual(set(self.prof.unknown), {"memory", "overload names", "times of coroutines"})
        with self.assertWarnsRegex(UserWarning, "memory: unknown, because"):
            self.profile(profile_memory=True)
        with self.assertWarnsRegex(UserWarning, "experimental_config has no effect"):
            self.profile(experimental_config=object())
        with self.assertWarnsRegex(UserWarning, "no place"):
            self.prof.add_metadata("key", "value")

    def test_files(self):
        n = self.calls(self.prof)
        with tempfile.TemporaryDirectory() as folder:
            place = lambda name: os.path.join(folder, name)  # noqa: E731
            self.prof.save(place("run.seg"))
            self.prof.save(place("run.json"))
            self.prof.export_chrome_trace(place("trace.json.gz"))
            opscope.tensorboard_trace_handler(place("logs"))(self.prof)
            names = [place("run.seg"), place("run.json"), place("trace.json.gz"), *(place("logs/" + f) for f in os.listdir(place("logs")))]
            self.assertEqual(len(names), 4)
            for name in names:
                with self.subTest(os.path.basename(name)), opscope.load(name) as trace:
                    self.assertEqual(trace.sql(f"SELECT count(*) AS n FROM span WHERE name = '{CONV}'")["n"], [n])

    def test_whose_answers(self):
        """The newest rules, with whole ns; another version's if they are asked for."""
        self.assertEqual(self.prof.recordings[0].compat, "torch-2.14")
        self.assertEqual(self.recorded(compat="torch-1.13").recordings[0].compat, "torch-1.13")


class Schedules(Case):
    def test_each_window_is_a_trace(self):
        seen = []
        prof = self.recorded(9, schedule=opscope.schedule(wait=1, warmup=1, active=2, repeat=2),
                             on_trace_ready=lambda p: seen.append(([r["step"] for r in p.report("steps")], self.calls(p))))
        self.assertEqual(seen, [([2, 3], 2), ([6, 7], 2)])
        self.assertEqual(len(prof.recordings), 2)
        self.assertEqual([[r["step"] for r in recording.report("steps")] for recording in prof.recordings], [[2, 3], [6, 7]])
        self.assertEqual({a.key: a.count for a in prof.key_averages()}["ProfilerStep*"], 2)

    def test_keep(self):
        prof = self.recorded(15, schedule=opscope.schedule(wait=0, warmup=1, active=1), keep=2)
        self.assertEqual([[r["step"] for r in recording.report("steps")] for recording in prof.recordings], [[13], [15]])
        with self.profile(schedule=opscope.schedule(wait=0, warmup=1, active=1), keep=1) as ended_in_warmup:
            for _ in range(4):
                ended_in_warmup.step()
        self.assertEqual([r["step"] for r in ended_in_warmup.report("steps")], [3])
        folder = prof._recorder._capture.folder
        self.assertEqual(sum(len(f) for _, _, f in os.walk(folder)), 2)
        del prof
        gc.collect()
        self.assertFalse(os.path.exists(folder))

    def test_all_together(self):
        prof = self.recorded(6, schedule=opscope.schedule(wait=0, warmup=1, active=2, repeat=2), acc_events=True)
        self.assertEqual(self.calls(prof), 4)
        self.assertEqual([r["step"] for r in prof.report("steps")], [1, 2, 4, 5])
        with tempfile.TemporaryDirectory() as folder:
            prof.save(os.path.join(folder, "run"))
            self.assertEqual(len(os.listdir(os.path.join(folder, "run"))), 2)

    def test_all_together_that_failed_once(self):
        prof = self.recorded(6, schedule=opscope.schedule(wait=0, warmup=1, active=2, repeat=2), acc_events=True)
        for fails in (0, 1):
            with unittest.mock.patch.object(_own.os, "link", side_effect=[unittest.mock.DEFAULT] * fails + [OSError(errno.EMLINK, "no more links")]):
                with self.assertRaisesRegex(OSError, "no more links"):
                    prof.key_averages()
        self.assertEqual(self.calls(prof), 4)

    def test_nothing_was_recorded(self):
        prof = self.recorded(1, schedule=opscope.schedule(wait=5, warmup=1, active=1))
        with self.assertRaisesRegex(RuntimeError, "still in wait at step 1"):
            prof.key_averages()
        with self.profile(enabled=False) as prof:
            pass
        with self.assertRaisesRegex(RuntimeError, "enabled=False"):
            prof.table()

    def test_again(self):
        """The same object, begun anew, and another one, after the end of the first."""
        prof = self.profile()
        for _ in range(2):
            prof.start()
            step(model())
            prof.stop()
        with self.assertRaisesRegex(RuntimeError, "not reentrant"), prof:
            pass
        self.assertEqual([self.calls(r) for r in prof.recordings], [1, 1])
        self.assertEqual(self.calls(self.recorded(3)), 3)

    def test_facts_that_were_told_before(self):
        """A data loader that was made before the window: the detectors know of it in each."""
        seen = []
        with self.profile(schedule=opscope.schedule(wait=0, warmup=1, active=1, repeat=2),
                          on_trace_ready=lambda p: seen.append(len(p.trace.sql("SELECT name FROM span WHERE name LIKE '%num_workers%'")))) as prof:
            torch.utils.data.DataLoader([1, 2])
            for _ in range(4):
                prof.step()
        self.assertEqual(seen, [1, 1])


class Beside(Case):
    def test_init_of_the_program(self):
        """Annotations that the program began stay as they are, also when they had found nobody to listen to."""
        opscope.torch.init(stacks=False)
        self.addCleanup(opscope.torch.close)
        self.assertIs(torch.nn.functional.conv2d, self.original)
        self.assertEqual(self.calls(self.recorded(2)), 2)
        self.assertIs(torch.nn.functional.conv2d, self.original)
        self.assertEqual(opscope.torch._state.options["stacks"], False)
        opscope.torch.close()
        opscope.torch.init(force=True)
        theirs = torch.nn.functional.conv2d
        self.assertIsNot(theirs, self.original)
        self.assertEqual(self.calls(self.recorded(2)), 2)
        self.assertIs(torch.nn.functional.conv2d, theirs)
        opscope.torch.close()

    def test_init_of_the_program_meanwhile(self):
        """What the program asks for while a profile goes on stays after it, also where it is what the profile itself had asked for."""
        self.addCleanup(opscope.torch.close)
        for options in ({"stacks": True, "force": True}, {"stacks": False, "links": "hooks", "force": True}):
            with self.subTest(options):
                with self.profile() as prof:
                    opscope.torch.init(**options)
                    step(model())
                self.assertEqual(self.calls(prof), 1)
                self.assertIsNot(torch.nn.functional.conv2d, self.original)
                self.assertEqual({k: opscope.torch._state.options[k] for k in options}, options)
                opscope.torch.close()
        opscope.torch.init(stacks=False)
        with self.profile() as prof:
            opscope.torch.close()
        self.assertIs(torch.nn.functional.conv2d, self.original)
        self.assertIsNone(opscope.torch._state.options)

    def test_one_at_a_time(self):
        with self.profile() as outer:
            step(model())
            with self.assertRaisesRegex(RuntimeError, "goes on already"):
                self.profile().start()
            with self.assertRaisesRegex(RuntimeError, "not reentrant"):
                outer.start()
            step(model())
        self.assertEqual(self.calls(outer), 2)

    def test_torchs_profiler_inside(self):
        with self.profile() as prof, torch.autograd.profiler.profile() as theirs:
            step(model())
        self.assertEqual(self.calls(prof), 1)
        self.assertIn("aten::conv2d", [e.key for e in theirs.key_averages()])

    def test_threads(self):
        """Each thread's calls, also of threads that began before and end later."""
        net, go, over = model(), threading.Event(), threading.Event()

        def work():
            go.wait(PATIENCE)
            for _ in range(5):
                step(net)
            over.set()
            done.wait(PATIENCE)

        done = threading.Event()
        threads = [threading.Thread(target=work) for _ in range(3)]
        for t in threads:
            t.start()
        with self.profile() as prof:
            go.set()
            over.wait(PATIENCE)
            late = [threading.Thread(target=step, args=(net,)) for _ in range(2)]
            for t in late:
                t.start()
            for t in late:
                t.join()
            done.set()
            for t in threads:
                t.join()
        self.assertEqual(self.calls(prof), 3 * 5 + 2)
        self.assertEqual(len({e.thread for e in prof.events() if e.name == CONV}), 5)

    def test_forked_child(self):
        """It goes on without being recorded, may record itself, and takes nothing from its parent."""
        net, (r, w) = model(), os.pipe()
        with self.profile() as prof:
            step(net)
            child = os.fork()
            if child == 0:
                status = 1
                with contextlib.suppress(BaseException):
                    with opscope.profile(backend="opscope") as own:
                        torch.nn.functional.relu(torch.ones(2))
                    status = 0 if self.calls(own, "torch.nn.functional.relu") == 1 and not self.calls(own) else 2
                    del own
                    gc.collect()
                    os.write(w, b"done")
                os._exit(status)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            step(net)
        os.close(w)
        with os.fdopen(r, "rb") as f:
            self.assertEqual(f.read(), b"done")
        self.assertEqual(self.calls(prof), 2)
        self.assertEqual(self.calls(prof, "torch.nn.functional.relu"), 2)  # of nn.ReLU

    def test_forked_child_that_leaves_the_profile(self):
        """As a function that forks within a `with` and returns in both: the recordings are the parent's, also that of a window that begins in the child."""
        net, ready, unused = model(), [], self.profile()
        prof = self.profile(schedule=opscope.schedule(wait=0, warmup=1, active=1, repeat=2), on_trace_ready=lambda p: ready.append(os.getpid()))
        child = None
        try:
            with prof:
                prof.step()
                step(net)
                child = os.fork()
                for _ in range(3):
                    prof.step()
                    step(net)
        finally:
            if child == 0 and sys.exc_info()[0]:
                os._exit(3)
        if child == 0:
            status = 1
            with contextlib.suppress(BaseException):
                try:
                    prof.table()
                except RuntimeError as e:
                    alone = "the parent's" in str(e) and not ready and not prof.recordings
                with opscope.profile(backend="opscope") as own:
                    step(net)
                with unused:
                    step(net)
                status = 0 if alone and [self.calls(own), self.calls(unused)] == [1, 1] else 2
            os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(ready, [os.getpid()] * 2)
        self.assertEqual([self.calls(r) for r in prof.recordings], [1, 1])

    def test_profile_that_is_dropped(self):
        prof = self.profile()
        prof.start()
        folder = prof._recorder._capture.folder
        del prof
        gc.collect()
        self.assertIsNone(_own.Capture.running)
        self.assertFalse(os.path.exists(folder))
        self.assertEqual(self.calls(self.recorded()), 1)

    def test_exit_without_stop(self):
        out = self.script("""
            from test_own_backend import model, step
            prof = opscope.profile(backend="opscope")
            prof.start()
            step(model())
            print(prof._recorder._capture.folder)
        """)
        self.assertTrue(out.startswith(tempfile.gettempdir()))
        self.assertFalse(os.path.exists(out.strip()))


class Failures(Case):
    def test_names(self):
        with self.assertRaisesRegex(ValueError, "backend='cupti': there are torch, opscope"):
            opscope.profile(backend="cupti")
        self.assertIs(type(opscope.profile(backend="torch")), opscope.profile)
        for name in opscope.profiler.BACKENDS:
            self.assertIn(Recorder, opscope.profiler._recorder_of(name).__mro__)
        self.assertIsInstance(self.profile(), opscope.profile)

    def test_no_library(self):
        with unittest.mock.patch.dict(os.environ, {"OPSCOPE_INJECT": "/nowhere/library.so"}):
            with self.assertRaisesRegex(FileNotFoundError, "looked for /nowhere/library.so"):
                self.profile().start()
        self.assertEqual(self.calls(self.recorded()), 1)
        self.assertRegex(self.script(f"""
            os.environ["OPSCOPE_INJECT"] = {__file__!r}
            try:
                opscope.profile(backend="opscope").start()
            except OSError as e:
                print(e)
            del os.environ["OPSCOPE_INJECT"]
            with opscope.profile(backend="opscope") as prof:
                torch.ones(2).add(1)
        """), "test_own_backend.py.*(invalid ELF|file too short)")

    def test_two_libraries(self):
        """Texts have the numbers of one."""
        self.recorded()
        with unittest.mock.patch.dict(os.environ, {"OPSCOPE_INJECT": __file__}):
            with self.assertRaisesRegex(ValueError, "test_own_backend.py: captures of this process are made by .*libopscope-inject.so, and by no other library"):
                self.profile().start()
        self.assertEqual(self.calls(self.recorded()), 1)

    def test_end_that_cannot_be(self):
        """While another thread is at it: the capture goes on, is told of all that happens, and can be ended later."""
        compiler = shutil.which("cc")
        if not compiler:
            self.skipTest("no compiler")
        with tempfile.TemporaryDirectory() as folder:
            library = os.path.join(folder, "libstub.so")
            subprocess.run([compiler, "-shared", "-fPIC", os.path.join(os.path.dirname(__file__), "capture_stub.c"), "-o", library], check=True)
            out = self.script(f"""
                import ctypes, errno, threading, time
                from opscope import _annotate
                library = {library!r}
                stub = ctypes.CDLL(library)
                answer, waits, inside = (ctypes.c_int.in_dll(stub, name) for name in ("answer", "waits", "inside"))
                def refused(function, *arguments):
                    try:
                        function(*arguments)
                    except OSError as e:
                        return errno.errorcode[e.errno], _annotate.listener()
                begin = (_annotate.capture_begin, library, "/", 0, False)
                begin[0](*begin[1:])
                answer.value = -errno.EBUSY
                print(refused(_annotate.capture_end))
                answer.value, waits.value = 0, 1
                ends = threading.Thread(target=_annotate.capture_end)
                ends.start()
                while not inside.value:
                    time.sleep(0.001)
                print(refused(*begin), refused(_annotate.capture_end))
                waits.value = 0
                ends.join()
                print(_annotate.listener())
                begin[0](*begin[1:])
                answer.value = -errno.ESRCH
                print(refused(_annotate.capture_end))
            """)
        self.assertEqual(out.splitlines(), ["('EBUSY', 'opscope')", "('EBUSY', 'opscope') ('EBUSY', 'opscope')", "none", "('ESRCH', 'none')"])
        prof = self.profile()
        prof.start()
        with unittest.mock.patch.object(_own._annotate, "capture_end", side_effect=OSError(errno.EBUSY, "busy")):
            with self.assertRaisesRegex(OSError, "busy"):
                prof.stop()
        self.assertIs(_own.Capture.running, prof._recorder._capture)
        del prof
        gc.collect()
        self.assertIsNone(_own.Capture.running)

    def test_no_folder(self):
        """Neither a folder that cannot be made nor one that cannot be written leaves anything behind."""
        with tempfile.NamedTemporaryFile() as file, unittest.mock.patch.object(tempfile, "tempdir", file.name):
            with self.assertRaises(NotADirectoryError):
                self.profile().start()
        with unittest.mock.patch.object(_own.os, "mkdir"):
            with self.assertRaises(FileNotFoundError):
                self.profile().start()

    @unittest.skipIf(os.geteuid() == 0 and not shutil.which("setpriv"), "root may write everywhere")
    def test_no_permission(self):
        """As an ordinary user, where root runs the tests."""
        code = "from opscope import _annotate, _own\ntry: _annotate.capture_begin(_own.find_library(), '/proc/1', 0, False)\nexcept OSError as e: print(type(e).__name__)"
        around = ["setpriv", "--reuid=65534", "--clear-groups", "--"] if os.geteuid() == 0 else []
        out = subprocess.run([*around, sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
        if out.returncode:
            self.skipTest("an ordinary user cannot read this folder: " + out.stderr.strip().splitlines()[-1])
        self.assertIn(out.stdout.strip(), ("PermissionError", "FileNotFoundError"))

    def test_folder_that_goes_away(self):
        prof = self.profile()
        prof.start()
        shutil.rmtree(prof._recorder._capture.folder)
        for _ in range(3):
            step(model())
        with self.assertRaisesRegex(FileNotFoundError, "removed meanwhile"):
            prof.stop()
        self.assertEqual(self.calls(self.recorded()), 1)

    def test_error_of_the_program(self):
        with self.assertRaisesRegex(ZeroDivisionError, "division"):
            with self.profile() as prof:
                step(model())
                1 / 0
        self.assertEqual(self.calls(prof), 1)

    def test_error_of_on_trace_ready(self):
        def fails(prof):
            raise KeyError("mine")
        with self.assertRaisesRegex(KeyError, "mine"):
            self.recorded(on_trace_ready=fails)


class UnderRecord(Case):
    def test_record(self):
        """One capture, that of `opscope record`, with the steps in it; the profile says that this has the answers."""
        with tempfile.TemporaryDirectory() as folder:
            run = os.path.join(folder, "run")
            out = self.script("""
                import warnings
                from test_own_backend import model, step
                ready = []
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    net = model()
                    with opscope.profile(backend="opscope", schedule=opscope.schedule(wait=1, warmup=0, active=2, repeat=1), on_trace_ready=ready.append) as prof:
                        for _ in range(4):
                            step(net)
                            prof.step()
                print([str(w.message) for w in caught if "opscope record" in str(w.message)], ready, prof.recordings)
                try:
                    prof.key_averages()
                except RuntimeError as e:
                    print(e)
            """, os.environ.get("OPSCOPE", os.path.join(BUILD, "src", "cli", "opscope")), "record", "--no-report", "-o", run, "--")
            first, second = out.splitlines()
            self.assertIn("on_trace_ready is not called", first)
            self.assertTrue(first.endswith("[] []"), first)
            self.assertIn(f"opscope.load({run!r}) has the answers", second)
            self.assertEqual(len([f for f in os.listdir(run) if f.endswith(".seg")]), 1)
            with opscope.load(run) as trace:
                names = trace.sql("SELECT name, count(*) AS n FROM span GROUP BY name")
                counts = dict(zip(names["name"], names["n"]))
        self.assertEqual(counts.get(CONV), 4)
        self.assertLessEqual({f"ProfilerStep#{i}" for i in range(4)}, set(counts))


class Coroutines(Case):
    def test_times_of_ranges(self):
        """Ranges of coroutines overlap: what is in them is not known, and not stated as 0; what nests is."""
        async def job(name):
            with opscope.record_function(name):
                await asyncio.sleep(0)
                torch.ones(2)

        async def jobs():
            await asyncio.gather(job("a"), job("b"))
        with self.profile() as prof:
            asyncio.run(jobs())
            with opscope.record_function("c"):
                torch.ones(2)
        averages = prof.key_averages()
        for of_name in ({a.key: a for a in averages}, {e.name: e for e in prof.events()}):
            for name in "ab":
                x = of_name[name]
                self.assertEqual((x.self_cpu_time_total, x.device_time_total, x.self_device_time_total, x.device_time), (None,) * 4)
                self.assertEqual((x.self_cpu_time_total_str, x.cuda_time_str), ("unknown",) * 2)
                self.assertGreater(x.cpu_time_total, 0)
                self.assertIn(name, repr(x))
            c = of_name["c"]
            self.assertGreater(c.self_cpu_time_total, 0)
            self.assertEqual(c.device_time_total, 0)
        self.assertIn("coroutine", prof.unknown["times of coroutines"])
        own = sum(a.self_cpu_time_total for a in averages if a.key not in "ab")
        self.assertAlmostEqual(averages.self_cpu_time_total, own, delta=0.01)
        self.assertAlmostEqual(prof.key_averages().total_average().self_cpu_time_total, own, delta=0.01)


class Devices(Case):
    def waited_for(self, capturing=False, error=None, **options):
        """The devices, of three, that are waited for when a profile ends, and what it warns of."""
        devices = []

        def synchronize(device):
            self.assertIsNotNone(_own.Capture.running)
            devices.append(device)
            if error:
                raise error
        prof = self.profile(**options)
        with warnings.catch_warnings(record=True) as caught, contextlib.ExitStack() as patches:
            warnings.simplefilter("always")
            prof.start()
            step(model())
            for name, value in {"is_initialized": True, "is_current_stream_capturing": capturing, "device_count": 3}.items():
                patches.enter_context(unittest.mock.patch.object(torch.cuda, name, lambda value=value: value))
            patches.enter_context(unittest.mock.patch.object(torch.cuda, "synchronize", synchronize))
            patches.enter_context(unittest.mock.patch.object(torch._C, "_cuda_hasPrimaryContext", lambda device: device != 1, create=True))
            prof.stop()
        self.assertEqual(self.calls(prof), 1)
        return devices, [str(w.message) for w in caught]

    def test_work_that_has_not_ended(self):
        """A window waits for the devices that the process uses."""
        cuda = [torch.profiler.ProfilerActivity.CUDA]
        self.assertEqual(self.waited_for(activities=cuda), ([0, 2], []))
        self.assertEqual(self.waited_for(activities=cuda, capturing=True), ([], []))
        self.assertEqual(self.waited_for(activities=[torch.profiler.ProfilerActivity.CPU]), ([], []))
        devices, said = self.waited_for(activities=cuda, error=RuntimeError("CUDA error: an illegal access"))
        self.assertEqual(devices, [0])
        self.assertRegex(" ".join(said), "work that had not ended is not recorded: CUDA error: an illegal access")

    def test_kernels(self):
        """Through a mock of CUPTI: each window has the kernels that were launched in it, under the ranges that launched them, and no others; the
        devices are those of the driver, since CUPTI tells of none that were initialised before."""
        mock = os.path.join(BUILD, "tests", "mock")
        oracle.built(os.path.join(mock, "libmock_cupti_13.0.so"), "OPSCOPE_BUILD")
        with tempfile.TemporaryDirectory() as libs:
            shutil.copy(os.path.join(mock, "libmock_cupti_13.0.so"), os.path.join(libs, "libcupti.so.13"))
            out = self.script("""
                import ctypes, json
                cuda = ctypes.CDLL("libcuda.so.1")
                cuda.cuInit(0)
                names = [f"kernel_{i}".encode() for i in range(5)]
                def kernels(p):
                    rows = p.trace.sql("SELECT k.name AS k, r.name AS r, d.name AS d FROM gpu_op k JOIN launch l ON l.rowid = k.launch JOIN span c ON c.rowid = k.call "
                                       "JOIN span r ON r.rowid = c.parent LEFT JOIN device d ON d.id = l.device ORDER BY k.start_ns")
                    print(json.dumps([list(row.values()) for row in rows] + [[str(t.text) for t in p.trace.problems]]))
                with opscope.profile(backend="opscope", schedule=opscope.schedule(wait=1, warmup=0, active=1, repeat=2), on_trace_ready=kernels) as prof:
                    for i in range(5):
                        with opscope.record_function(f"layer {i}"):
                            cuda.mock_launch(names[i], 7, ctypes.c_int64(3000))
                        prof.step()
            """, env={"LD_LIBRARY_PATH": libs + ":" + mock})
        self.assertEqual([json.loads(line) for line in out.splitlines()],
                         [[["kernel_1", "layer 1", "NVIDIA H200"], []], [["kernel_3", "layer 3", "NVIDIA H200"], []]])


if __name__ == "__main__":
    oracle.main()
