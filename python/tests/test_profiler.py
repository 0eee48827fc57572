"""opscope.profile against torch.profiler itself: both answer for one and the same recording, byte for byte. And what torch has no answer to: every
repeat of a schedule, what is kept, errors.

Skipped under a Python without torch (Debian: python3-torch).
"""
import contextlib
import copy
import errno
import gzip
import importlib.util
import json
import os
import re
import pickle
import tempfile
import threading
import unittest
import unittest.mock
import warnings

from support import RESNET, oracle
import opscope
from opscope import _direct, _recorder

try:
    import torch
    import torch.autograd.profiler as ap
    from torch.autograd.profiler_util import EventList
except ImportError:
    torch = None

FULL = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_flops": True}
PLAIN = {}


def loop(steps=2, prof=None):
    """A training loop with convolutions, a linear layer, a branch of its own per step, ranges, an in-place op and a view."""
    torch.manual_seed(1)
    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1, stride=2), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 6))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for i in range(steps):
        with opscope.record_function("## forward ##"):
            x = torch.randn(2 + i, 3, 8, 8)
            loss = nn.functional.cross_entropy(model(x), torch.zeros(2 + i, dtype=torch.int64))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 4, 5)).add_(1).transpose(0, 1)
        if prof:
            prof.step()


class Both:
    """One recording, as opscope and as torch have it."""

    def __init__(self, options, steps=2, **more):
        kept = []
        plain = ap._disable_profiler

        def keep():
            kept.append(plain())
            return kept[-1]

        ap._disable_profiler = keep
        try:
            with opscope.profile(**options, **more) as self.prof:
                loop(steps)
        finally:
            ap._disable_profiler = plain
        inner = ap.profile(**{k: v for k, v in options.items() if k in FULL})
        self.torch = EventList(inner._parse_kineto_results(kept[-1]), use_cuda=False, profile_memory=options.get("profile_memory", False),
                               with_flops=options.get("with_flops", False))
        self.torch._build_tree()


def written(write):
    """What `write` puts into the file that it is given."""
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "out")
        write(path)
        with open(path, "rb") as f:
            return f.read()


@unittest.skipUnless(torch, "no Python with torch (Debian: python3-torch)")
class Case(oracle.Case):
    pass


@unittest.skipUnless(torch and torch.__version__.startswith("1.13"), "compared with torch 1.13, which makes its answers in Python")
class SameAsTorch(Case):
    GROUPS = ((False, 0), (True, 0), (False, 1), (False, 5), (True, 3))
    TABLES = ({}, {"sort_by": "self_cpu_time_total", "row_limit": 7}, {"sort_by": "cpu_time_total", "row_limit": -1}, {"sort_by": "cpu_memory_usage"},
              {"sort_by": "self_cpu_memory_usage", "row_limit": 20}, {"sort_by": "count", "header": "A title"}, {"sort_by": "cpu_time"},
              {"sort_by": "key", "row_limit": 5}, {"sort_by": "flops"},
              {"top_level_events_only": True, "row_limit": 12}, {"max_name_column_width": 20, "max_shapes_column_width": 30, "max_src_column_width": 25},
              {"max_name_column_width": None, "max_shapes_column_width": None, "max_src_column_width": None, "sort_by": "cuda_time_total"})

    @classmethod
    def setUpClass(cls):
        cls.full, cls.plain = Both(FULL), Both(PLAIN)

    def both(self):
        return ("full", self.full), ("plain", self.plain)

    def test_recordings_are_read_directly(self):
        """On x86-64 the fast way is taken, for which the small recording was read both ways and compared."""
        if os.uname().machine == "x86_64":
            self.assertGreater(_direct.Direct.find(), 0)

    def test_the_sample_is_apart_from_the_program(self):
        """What is recorded to see whether that works is neither disturbed by the program's modes, hooks, defaults and profilers, nor seen by them."""
        from torch.overrides import TorchFunctionMode
        from torch.utils._python_dispatch import TorchDispatchMode
        seen = []

        class Functions(TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                seen.append(function)
                return function(*args, **(kwargs or {}))

        class Ops(TorchDispatchMode):
            def __torch_dispatch__(self, op, types, args=(), kwargs=None):
                seen.append(op)
                return op(*args, **(kwargs or {}))

        def fail(*tensor):
            raise AssertionError("the program's hook")

        def half():
            torch.set_default_dtype(torch.float16)
            return contextlib.nullcontext()

        outer = ap.profile(use_kineto=True)
        makes = (torch.inference_mode, torch.no_grad, half, Functions, Ops, lambda: torch.autograd.graph.saved_tensors_hooks(fail, fail), lambda: outer)
        kept = _direct.Direct.stride
        try:
            for make in makes:
                _direct.Direct.stride = None
                try:
                    with make():
                        self.assertEqual(_direct.Direct.find(), kept)
                finally:
                    torch.set_default_dtype(torch.float32)
        finally:
            _direct.Direct.stride = kept
        self.assertEqual((seen, len(outer.function_events)), ([], 0))

    def test_the_sample_and_threads(self):
        """Hooks that the program has for its threads do not see it; where there is no room for a thread, recordings are read event by event."""
        known, seen = _direct.Direct.find(), []
        with unittest.mock.patch.object(_direct.Direct, "stride", None):
            threading.setprofile(lambda *what: seen.append(what))
            try:
                self.assertEqual(_direct.Direct.find(), known)
            finally:
                threading.setprofile(None)
        with unittest.mock.patch.object(_direct.Direct, "stride", None), \
                unittest.mock.patch.object(_direct._thread, "start_new_thread", side_effect=RuntimeError("can't start new thread")):
            with opscope.profile() as prof:
                torch.ones(3)
            self.assertEqual(_direct.Direct.stride, 0)
        self.assertIn("aten::ones", [e.name for e in prof.events()])
        self.assertEqual(seen, [])

    def test_a_sample_that_cannot_be_recorded(self):
        """It is slower then, and nothing stays on."""
        kept = _direct.Direct.stride
        try:
            _direct.Direct.stride = None
            with unittest.mock.patch.object(torch, "mm", side_effect=RuntimeError("not here")):
                self.assertEqual(_direct.Direct.find(), 0)
            with opscope.profile() as prof:
                torch.ones(2)
            self.assertIn("aten::ones", [a.key for a in prof.key_averages()])
        finally:
            _direct.Direct.stride = kept

    def test_tables_of_averages(self):
        n = 0
        for name, b in self.both():
            for shapes, frames in self.GROUPS:
                ours, theirs = b.prof.key_averages(shapes, frames), b.torch.key_averages(shapes, frames)
                for options in self.TABLES:
                    with self.subTest(recording=name, shapes=shapes, frames=frames, **options):
                        self.assertEqual(ours.table(**options), theirs.table(**options))
                    n += 1
        self.assertEqual(n, 2 * 5 * 12)

    def test_fields_of_averages(self):
        fields = ("key", "count", "node_id", "is_async", "is_remote", "is_legacy", "cpu_time_total", "self_cpu_time_total", "cuda_time_total",
                  "self_cuda_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "cuda_memory_usage", "self_cuda_memory_usage", "flops", "cpu_time",
                  "cuda_time", "input_shapes", "stack", "device_type", "cpu_time_str", "self_cpu_time_total_str")
        for name, b in self.both():
            for shapes, frames in self.GROUPS:
                ours, theirs = b.prof.key_averages(shapes, frames), b.torch.key_averages(shapes, frames)
                self.assertEqual(len(ours), len(theirs))
                for a, t in zip(ours, theirs):
                    self.assertEqual([getattr(a, f) for f in fields], [getattr(t, f) for f in fields], (name, shapes, frames, t.key))
                self.assertEqual(repr(ours), repr(list(theirs)))

    def test_events(self):
        fields = ("name", "trace_name", "count", "thread", "fwd_thread", "node_id", "input_shapes", "stack", "scope", "cpu_memory_usage", "cuda_memory_usage",
                  "self_cpu_memory_usage", "is_async", "is_remote", "is_legacy", "sequence_nr", "cpu_time_total", "self_cpu_time_total", "cuda_time_total",
                  "self_cuda_time_total", "cpu_time", "device_type", "flops", "device_index")
        for name, b in self.both():
            ours, theirs = b.prof.events(), b.torch
            self.assertEqual(len(ours), len(theirs))
            number = {id(t): i for i, t in enumerate(theirs)}
            for i, (a, t) in enumerate(zip(ours, theirs)):
                got = {f: getattr(a, f) for f in fields}
                wanted = {f: getattr(t, f) for f in fields}
                if t.name == "[memory]":  # torch leaves these without FLOPs, or with their own thread as the forward one
                    wanted.update(flops=0, fwd_thread=0)
                self.assertEqual(got, wanted, (name, i))
                self.assertEqual((a.time_range.start, a.time_range.end), (t.time_range.start, t.time_range.end), (name, i))
                self.assertEqual(a.cpu_parent and a.cpu_parent.id, t.cpu_parent and number[id(t.cpu_parent)], (name, i))
                self.assertEqual([c.id for c in a.cpu_children], [number[id(c)] for c in t.cpu_children], (name, i))
            self.assertEqual(ours.self_cpu_time_total, theirs.self_cpu_time_total)

    def test_tables_of_events(self):
        for name, b in self.both():
            for event in b.torch:
                event.flops = event.flops or 0  # of "[memory]" torch 1.13 has None, at which its own table stops
            for options in ({}, {"sort_by": "self_cpu_time_total", "row_limit": 9}, {"top_level_events_only": True, "row_limit": -1}):
                with self.subTest(recording=name, **options):
                    self.assertEqual(b.prof.events().table(**options), b.torch.table(**options))

    def test_total(self):
        for _, b in self.both():
            self.assertEqual(repr(b.prof.total_average()), repr(b.torch.total_average()))
            self.assertEqual(b.prof.self_cpu_time_total, b.torch.self_cpu_time_total)
            self.assertEqual(b.prof.total_average().flops, b.torch.total_average().flops)

    def test_chrome_trace(self):
        for _, b in self.both():
            theirs = written(b.torch.export_chrome_trace)
            self.assertEqual(written(b.prof.export_chrome_trace), theirs)
            with tempfile.TemporaryDirectory() as d:
                path = os.path.join(d, "trace.json.gz")
                b.prof.export_chrome_trace(path)
                with gzip.open(path) as f:
                    self.assertEqual(f.read(), theirs)

    def test_stacks(self):
        theirs = written(lambda path: self.full.torch.export_stacks(path, "self_cpu_time_total"))
        self.assertGreater(len(theirs), 100)
        self.assertEqual(written(self.full.prof.export_stacks), theirs)
        self.assertEqual(written(lambda path: self.full.prof.events().export_stacks(path, "self_cuda_time_total")), b"")
        with self.assertRaisesRegex(AssertionError, "requires with_stack=True"):
            self.plain.prof.export_stacks("/no/where")
        with self.assertRaisesRegex(ValueError, "metric should be one of"):
            self.full.prof.export_stacks("/no/where", "count")

    def test_both_ways_of_reading_agree(self):
        """Event by event in Python, as on other machines, and directly: the same file."""
        kept = _direct.Direct.stride
        with opscope.profile(**FULL) as prof:
            loop(1)
        again = self.result_of(prof)
        try:
            texts = []
            warnings.simplefilter("error")
            for stride in (kept, 0):
                _direct.Direct.stride = stride
                with open(prof._recorder.take(again).path, "rb") as f:
                    texts.append(f.read())
        finally:
            warnings.resetwarnings()
            _direct.Direct.stride = kept
        # Where a block lies, and what was held then, no method of torch's events tells: each has it in the one file, and in that alone.
        blocks, placed = texts[0].count(b'"name":"[memory]"'), re.compile(rb',"Addr":\d+,"Total Allocated":\d+,"Total Reserved":0')
        self.assertEqual((len(placed.findall(texts[0])), len(placed.findall(texts[1]))), (blocks, 0))
        self.assertEqual(placed.sub(b"", texts[0]), texts[1])
        self.assertGreater(len(texts[1]), 10000)

    def result_of(self, prof):
        inner = ap.profile(**FULL)
        inner._prepare_trace()
        inner._start_trace()
        loop(1)
        return ap._disable_profiler()

    def test_nothing_recorded(self):
        with opscope.profile() as prof:
            pass
        self.assertEqual((len(prof.events()), prof.key_averages().table(), list(prof.key_averages())), (0, "", []))
        self.assertEqual(written(prof.export_chrome_trace), b"[]")


class Profile(Case):
    def test_every_repeat_is_kept(self):
        ready = []
        plan = opscope.schedule(wait=1, warmup=1, active=2, repeat=3)
        with opscope.profile(schedule=plan, on_trace_ready=lambda p: ready.append(len(p.recordings))) as prof:
            loop(14, prof)
        self.assertEqual(ready, [1, 2, 3])
        self.assertEqual(len(prof.recordings), 3)
        for i, r in enumerate(prof.recordings):
            names = [e.trace_name for e in r.events() if e.name == "ProfilerStep*"]
            self.assertEqual(names, [f"ProfilerStep#{4 * i + 2}", f"ProfilerStep#{4 * i + 3}"])
            self.assertEqual([a.count for a in r.key_averages() if a.key == "ProfilerStep*"], [2])
        self.assertEqual(prof.key_averages().table(), prof.recordings[-1].key_averages().table())

    def test_all_repeats_together(self):
        plan = opscope.schedule(wait=0, warmup=1, active=1, repeat=3)
        with opscope.profile(schedule=plan, acc_events=True) as prof:
            loop(6, prof)
        counts = [{a.key: a.count for a in r.key_averages()} for r in prof.recordings]
        together = {a.key: a.count for a in prof.key_averages()}
        self.assertEqual(together, {k: sum(c.get(k, 0) for c in counts) for k in together})
        self.assertEqual(together["ProfilerStep*"], 3)
        self.assertEqual(sum(r.self_cpu_time_total for r in prof.recordings), prof.self_cpu_time_total)
        starts = [e.time_range.start for e in prof.events() if e.name == "ProfilerStep*"]
        self.assertEqual(starts, sorted(starts))

    def test_keep(self):
        with opscope.profile(schedule=opscope.schedule(wait=0, warmup=1, active=1), keep=2) as prof:
            loop(8, prof)
        self.assertEqual(len(prof.recordings), 2)
        self.assertEqual(len(os.listdir(os.path.dirname(prof.recordings[0].path))), 2)

    def test_folder_goes_with_the_profile(self):
        with opscope.profile() as prof:
            torch.ones(2)
        folder = os.path.dirname(prof.recordings[0].path)
        self.assertTrue(os.path.isdir(folder))
        del prof
        self.assertFalse(os.path.exists(folder))

    def test_a_forked_child_leaves_the_folder(self):
        with opscope.profile() as prof:
            torch.ones(2)
        if os.fork() == 0:
            try:
                del prof
            finally:
                os._exit(0)
        self.assertEqual(os.wait()[1], 0)
        self.assertGreater(prof.recordings[0].trace.events, 0)

    def test_a_forked_child_has_recordings_of_its_own(self):
        plan = opscope.schedule(wait=0, warmup=1, active=1)
        with opscope.profile(schedule=plan, keep=1) as prof:
            loop(2, prof)
            path = prof.recordings[0].path
            with open(path, "rb") as f:
                before = f.read()
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    loop(2, prof)
                    status = 0 if prof.recordings[0].path != path and len(prof.events()) else 2
                finally:
                    os._exit(status)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
            with open(path, "rb") as f:
                self.assertEqual(f.read(), before)

    def test_files_that_cannot_be_written(self):
        """An OSError, as from torch; and a recording that is saved onto itself stays."""
        with opscope.profile(**FULL) as prof:
            loop(1)
        for write in (prof.export_chrome_trace, prof.export_stacks, prof.save, lambda path: prof.export_memory_timeline(path, "cpu")):
            with self.assertRaises(FileNotFoundError):
                write("/no/such/folder/trace.json")
            with tempfile.TemporaryDirectory() as d, self.assertRaises(IsADirectoryError):
                write(d)
        path = prof.recordings[-1].path
        size = os.path.getsize(path)
        prof.save(path)
        self.assertEqual(os.path.getsize(path), size)
        with tempfile.TemporaryDirectory() as d:
            prof.save(os.fsencode(os.path.join(d, "trace.json.gz")))
            self.assertGreater(opscope.load(os.path.join(d, "trace.json.gz")).events, 50)

    def test_torchs_profiler_is_left_as_its_user_would(self):
        """Whoever watches it by __exit__, as opscope.torch does, sees each start and end; and no Python objects are made of the events."""
        seen = []
        plain = ap.profile.__exit__, ap.EventList

        def leave(p, *what):
            seen.append(p)
            return plain[0](p, *what)

        def make(events, **options):
            seen.append(len(events))
            return plain[1](events, **options)

        ap.profile.__exit__, ap.EventList = leave, make
        try:
            with opscope.profile() as prof:
                torch.ones(2)
        finally:
            ap.profile.__exit__, ap.EventList = plain
        self.assertGreater(len(prof.events()), 0)
        self.assertEqual(seen[-1], 0)
        self.assertIsInstance(seen[-2], ap.profile)

    def test_what_a_recording_holds(self):
        """Beyond torch's answers: a trace that opscope reads, with shapes, stacks, memory and facts."""
        with opscope.profile(**FULL) as prof:
            prof.add_metadata("who", 'a "test"')
            prof.add_metadata_json("numbers", "[1, 2]")
            loop(1)
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "run.pt.trace.json.gz")
            prof.save(path)
            with gzip.open(path) as f:
                doc = json.load(f)
            self.assertEqual((doc["who"], doc["numbers"], doc["with_stack"]), ('a "test"', [1, 2], 1))
            code, out, err = oracle.run("report", "operators", path, "--format=json")
            self.assertEqual(code, 0, err)
        self.assertEqual(prof.trace.problems, [])
        self.assertIn("aten::conv2d", prof.report("operators")["name"])
        self.assertGreater(len(prof.report("memory")), 0)
        self.assertTrue(any(prof.report("function-events")["call_stack"]))
        frame = prof.key_averages(True).data.to_pandas() if importlib.util.find_spec("pandas") else None
        self.assertTrue(frame is None or len(frame) == len(prof.key_averages(True)))

    def test_handlers(self):
        with tempfile.TemporaryDirectory() as d:
            where = os.path.join(d, "logs")
            for handler in (opscope.tensorboard_trace_handler(where, "w"), opscope.trace_handler(where, "all", use_gzip=True)):
                with opscope.profile(schedule=opscope.schedule(wait=0, warmup=1, active=1, repeat=2), on_trace_ready=handler) as prof:
                    loop(4, prof)
            names = sorted(os.listdir(where))
            self.assertEqual(len(names), 4)
            self.assertTrue(all(n.endswith(".pt.trace.json.gz") for n in names[:2]) and all(n.endswith(".pt.trace.json") for n in names[2:]))
            for n in names:
                self.assertGreater(opscope.load(os.path.join(where, n)).events, 50)

    def test_errors(self):
        prof = opscope.profile()
        for ask in (prof.key_averages, prof.events, prof.total_average, lambda: prof.self_cpu_time_total, lambda: prof.export_chrome_trace("x")):
            with self.assertRaisesRegex(RuntimeError, "didn't finish running"):
                ask()
        with prof, self.assertRaisesRegex(RuntimeError, "not reentrant"):
            torch.ones(2)
            prof.start()
        with self.assertRaises(RuntimeError):
            prof.stop()
        with self.assertRaisesRegex(AttributeError, "nonsense"):
            prof.key_averages().table(sort_by="nonsense")
        with self.assertRaises(ValueError):
            prof.export_memory_timeline("x.json")

    def test_wrong_compat(self):
        for enabled in (True, False):
            with self.assertRaisesRegex(ValueError, "'nonsense': there are .*torch-2.6"):
                opscope.profile(enabled, compat="nonsense")

    def test_a_handler_that_fails(self):
        """Its error passes as it is, and the profiler goes on: in step(), from warm-up to warm-up, and in stop()."""
        class Failure(Exception):
            pass

        def fail(prof):
            raise Failure(len(prof.recordings))

        plan = opscope.schedule(wait=0, warmup=1, active=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with self.assertRaises(Failure) as first:
                with opscope.profile(schedule=plan, on_trace_ready=fail) as prof:
                    loop(2, prof)
            self.assertFalse(prof._recorder.ready)
            self.assertEqual(first.exception.args, (1,))
            prof = opscope.profile(schedule=plan, on_trace_ready=fail)
            prof.start()
            for n in range(1, 3):
                prof.step()
                torch.ones(2)
                with self.assertRaisesRegex(Failure, str(n)):
                    prof.step()
            prof.step()
            with self.assertRaisesRegex(Failure, "3"):
                prof.stop()
        self.assertEqual([n for n in ("Profiler",) if opscope.KinetoStepTracker.erase_step_count(n)], [])
        self.assertEqual([[e.name for e in r.events() if e.name.startswith("ProfilerStep")] for r in prof.recordings], [["ProfilerStep*"]] * 3)

    def test_a_recording_that_cannot_begin(self):
        """The error that torch's profiler gives passes as it is, wherever the next recording is prepared or started; what was there before stays."""
        class Failure(Exception):
            pass

        for method in ("_prepare_trace", "_start_trace"):
            for first in (1, 2):
                calls = []

                def fail(inner, plain=getattr(ap.profile, method), calls=calls, first=first):
                    calls.append(inner)
                    if len(calls) == first:
                        raise Failure(method)
                    return plain(inner)

                ready = []
                with self.subTest(method=method, recording=first), warnings.catch_warnings():
                    warnings.simplefilter("error")
                    with unittest.mock.patch.object(ap.profile, method, fail), self.assertRaisesRegex(Failure, method):
                        with opscope.profile(schedule=lambda step: opscope.ProfilerAction.RECORD_AND_SAVE, on_trace_ready=ready.append) as prof:
                            torch.ones(2)
                            prof.step()
                            torch.ones(3)
                    if first == 2:
                        self.assertEqual((len(ready), len(prof.recordings)), (1, 1))
                        self.assertIn("aten::ones", [a.key for a in prof.key_averages()])
                with opscope.profile() as after:  # torch's profiler is free again
                    torch.ones(2)
                self.assertIn("aten::ones", [a.key for a in after.key_averages()])

    def test_what_could_not_begin_is_told_again(self):
        with unittest.mock.patch.object(ap.profile, "_start_trace", side_effect=OSError("no room")):
            prof = opscope.profile()
            with self.assertRaisesRegex(OSError, "no room"):
                prof.start()
        with self.assertRaisesRegex(RuntimeError, "^nothing was recorded: torch's profiler could not begin: OSError: no room$"):
            prof.key_averages()

    def test_the_programs_error_is_not_replaced(self):
        def fail(prof):
            raise OSError("the handler's")

        with self.assertRaises(ZeroDivisionError), self.assertWarnsRegex(UserWarning, "could not end as it should: OSError: the handler's"):
            with opscope.profile(on_trace_ready=fail):
                1 / 0

    def test_names_of_recordings(self):
        names = iter(["first", "second", "third"])
        with opscope.profile(schedule=opscope.schedule(wait=0, warmup=1, active=1), custom_trace_id_callback=lambda: next(names)) as prof:
            loop(2, prof)
            prof.set_custom_trace_id_callback(lambda: 'the "last"')
            loop(2, prof)
        ids = [json.loads(written(r.save))["trace_id"] for r in prof.recordings]
        self.assertEqual(ids, ["first", "second", 'the "last"'])
        with opscope.profile() as prof:
            torch.ones(2)
        self.assertRegex(prof.get_trace_id(), "^[0-9A-F]{32}$")
        self.assertEqual(json.loads(written(prof.save))["trace_id"], prof.get_trace_id())

    def test_arguments_of_other_versions(self):
        """Those of torch 2 are taken; what has no effect with this torch is said. A torch that knows them is given them."""
        activity = torch.profiler.ProfilerActivity
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with opscope.profile(post_processing_timeout_s=0.5, use_mtia=False, use_xpu=False) as prof:
                torch.ones(2)
            self.assertIn("aten::ones", [a.key for a in prof.key_averages()])
        with self.assertRaisesRegex(ValueError, "post_processing_timeout_s: seconds .* not -1"):
            opscope.profile(post_processing_timeout_s=-1)
        for device in ("xpu", "mtia"):
            if not hasattr(activity, device.upper()):
                with self.assertWarnsRegex(UserWarning, f"^use_{device}=True: this torch cannot record that device$"):
                    opscope.profile(**{f"use_{device}": True})
        with self.assertRaisesRegex(TypeError, "ProfilerActivity were expected, not 'cpu'"):
            opscope.profile(activities=[{"cpu": ["kernel"]}])
        given = {}

        class Newer(ap.profile):
            trace_id = "torch's own"

            def __init__(self, *, use_cpu, use_device, custom_trace_id_callback, activity_filters, **more):
                given.update(use_device=use_device, custom_trace_id_callback=custom_trace_id_callback, activity_filters=activity_filters, more=sorted(more))
                super().__init__(use_cpu=use_cpu, use_kineto=True)

        with unittest.mock.patch.object(ap, "profile", Newer):
            with opscope.profile(activities=[{activity.CPU: ["cpu_op"]}], custom_trace_id_callback=str) as prof:
                torch.ones(2)
        self.assertEqual(given, {"use_device": None, "custom_trace_id_callback": str, "activity_filters": {activity.CPU: {"cpu_op"}}, "more": []})
        self.assertEqual(prof.get_trace_id(), "torch's own")
        self.assertIn("aten::ones", [a.key for a in prof.key_averages()])

    def test_filters_without_effect(self):
        if "activity_filters" in ap.profile.__init__.__code__.co_varnames:
            self.skipTest("this torch has them")
        with self.assertWarnsRegex(UserWarning, "records all kinds of events .* no effect"):
            prof = opscope.profile(activities=[{torch.profiler.ProfilerActivity.CPU: ["cpu_op"]}])
        self.assertEqual(prof.activities, {torch.profiler.ProfilerActivity.CPU})

    def test_arguments_that_make_no_sense(self):
        for keep in (0, -1):
            with self.assertRaisesRegex(ValueError, "^keep: 1 or more .* not %d$" % keep):
                opscope.profile(keep=keep)
        with self.assertRaisesRegex(TypeError, "^activities: .*ProfilerActivity.* not 'cpu'$"):
            opscope.profile(activities=["cpu"])
        with self.assertRaisesRegex(TypeError, r"^schedule\(0\): a ProfilerAction was expected, not 7$"):
            opscope.profile(schedule=lambda step: 7)

    def test_a_step_after_the_end_does_nothing(self):
        prof = opscope.profile(schedule=opscope.schedule(wait=0, warmup=1, active=1))
        with self.assertWarnsRegex(UserWarning, r"^step\(\) before start\(\) has no effect"):
            prof.step()
        prof.start()
        torch.ones(3).add(1)
        prof.stop()
        prof.step()
        self.assertEqual((prof.step_num, len(prof.recordings)), (0, 1))

    def test_an_end_without_a_beginning(self):
        """Where nothing would be recorded at once it is said, as torch lets it pass; else it is an error, as in torch."""
        with self.assertWarnsRegex(UserWarning, r"^stop\(\) before start\(\) has no effect"):
            opscope.profile(schedule=opscope.schedule(wait=1, warmup=1, active=1)).stop()
        with self.assertRaisesRegex(RuntimeError, r"^stop\(\) before start\(\)$"):
            opscope.profile().stop()

    def test_copies(self):
        """Deep copies have items of their own; what cannot be pickled says what can."""
        with opscope.profile() as prof:
            torch.relu(torch.ones(3) + 1)
        averages, events = prof.key_averages(), prof.events()
        for made in (averages, events):
            for twin in (copy.copy(made), copy.deepcopy(made)):
                self.assertEqual((type(twin), repr(twin), twin.table()), (type(made), repr(made), made.table()))
            self.assertIsNot(copy.deepcopy(made)[0], made[0])
            with self.assertRaisesRegex(TypeError, r"cannot be pickled, .*prof.save\(path\)"):
                pickle.dumps(made)
        self.assertEqual(repr(pickle.loads(pickle.dumps(list(averages)))), repr(averages))
        self.assertEqual(copy.deepcopy(events[0]).name, events[0].name)

    def test_arguments_of_tables(self):
        """Limits as torch takes them: what no number of rows equals is none. Widths in the words of the argument."""
        with opscope.profile() as prof:
            torch.relu(torch.ones(3) + 1)
        averages = prof.key_averages()
        self.assertEqual(averages.table(row_limit=2.0), averages.table(row_limit=2))
        self.assertNotEqual(averages.table(row_limit=2), averages.table())
        for limit in (2.5, "2", 10 ** 30, float("inf"), -1, None):
            self.assertEqual(averages.table(row_limit=limit), averages.table())
        self.assertEqual(averages.table(max_name_column_width=10 ** 9), averages.table(max_name_column_width=None))
        for width in (0, -1, "x", 1.5):
            with self.assertRaisesRegex(ValueError, r"^table\(max_name_column_width=.*a number from 1 on"):
                averages.table(max_name_column_width=width)

    def test_reasons_of_exports(self):
        with opscope.profile() as prof:
            torch.ones(3)
        for path, kind, number in (("", FileNotFoundError, errno.ENOENT), ("/dev/full", OSError, errno.ENOSPC)):
            if path and not os.path.exists(path):
                continue
            with self.assertRaises(kind) as e:
                prof.export_chrome_trace(path)
            self.assertEqual(e.exception.errno, number)

    def test_a_schedule_that_never_records(self):
        with opscope.profile(schedule=opscope.schedule(wait=100, warmup=1, active=1)) as prof:
            for _ in range(3):
                prof.step()
        with self.assertRaisesRegex(RuntimeError, "^nothing was recorded: the schedule was still in wait at step 3$"):
            prof.key_averages()

    def test_disabled(self):
        with opscope.profile(enabled=False) as prof:
            prof.step()
        self.assertEqual(prof.recordings, [])
        with self.assertRaisesRegex(RuntimeError, "^nothing was recorded: enabled=False$"):
            prof.events()

    def test_an_error_inside_passes_and_what_ran_is_kept(self):
        with self.assertRaises(ZeroDivisionError):
            with opscope.profile() as prof:
                torch.ones(3).add(1)
                1 / 0
        self.assertIn("aten::add", [a.key for a in prof.key_averages()])

    def test_deprecated_argument(self):
        with self.assertWarnsRegex(FutureWarning, "use_cuda is deprecated"):
            opscope.profile(use_cuda=False)

    def test_torchs_own_schedule(self):
        import torch.profiler
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plan = torch.profiler.schedule(wait=1, warmup=0, active=1, repeat=1)
        with opscope.profile(schedule=plan) as prof:
            loop(3, prof)
        self.assertEqual(len(prof.recordings), 1)


    def test_our_schedule_for_torchs_profiler(self):
        import torch.profiler

        def counts(plan):
            seen = []
            with torch.profiler.profile(schedule=plan, on_trace_ready=lambda p: seen.append({a.key: a.count for a in p.key_averages()}["aten::ones"])) as prof:
                for step in range(6):
                    for _ in range(step + 1):
                        torch.ones(2)
                    prof.step()
            return seen
        self.assertEqual(counts(opscope.schedule(wait=1, warmup=1, active=1, repeat=2)), [3, 6])

        ours, theirs = opscope.ProfilerAction, torch.profiler.ProfilerAction
        for a in ours:
            self.assertEqual([b.name for b in theirs if a == b and b == a], [a.name])
            self.assertEqual([b for b in ours if a == b], [a])
            self.assertEqual({a: 1}.get(theirs[a.name]), 1)
            self.assertFalse(a == a.value or a == a.name or a == torch.profiler.ProfilerActivity.CPU)


class Others(Case):
    def test_names_that_are_torchs(self):
        """`from torch.profiler import ...` may become `from opscope import ...`, whatever it asks for."""
        import torch.profiler

        older = {"ExecutionTraceObserver": "ExecutionGraphObserver"}
        for name in ("DeviceType", "ExecutionTraceObserver", "ProfilerActivity", "itt", "kineto_available"):
            theirs = name if hasattr(torch.profiler, name) else older[name]
            for module in (opscope, opscope.profiler):
                self.assertIs(getattr(module, name), getattr(torch.profiler, theirs))
            self.assertIn(name, dir(opscope))
        with self.assertRaises(AttributeError):
            opscope.profiler.no_such

    def test_schedule_as_torch_has_it(self):
        import torch.profiler
        for arguments in ({"wait": 1, "warmup": 1, "active": 2}, {"wait": 0, "warmup": 2, "active": 1, "repeat": 2, "skip_first": 3}):
            ours, theirs = opscope.schedule(**arguments), torch.profiler.schedule(**arguments)
            self.assertEqual([ours(s).name for s in range(20)], [theirs(s).name for s in range(20)])
        with self.assertWarns(UserWarning):
            opscope.schedule(wait=1, warmup=0, active=1)
        with self.assertRaises(AssertionError):
            opscope.schedule(wait=1, warmup=1, active=0)
        endless = opscope.schedule(wait=2 ** 70, warmup=1.0, active=1)
        self.assertEqual(endless(10 ** 9).name, "NONE")
        with self.assertRaisesRegex(TypeError, r"^schedule: wait=1.5: a whole number was expected$"):
            opscope.schedule(wait=1.5, warmup=1, active=1)

    def test_record_function(self):
        @opscope.record_function("decorated")
        def f(n):
            if n:
                f(n - 1)

        with opscope.profile() as prof:
            f(2)
            with opscope.record_function("outer", "some text"), opscope.record_function("inner"):
                torch.ones(2)
        counts = {a.key: a.count for a in prof.key_averages()}
        self.assertEqual((counts["decorated"], counts["outer"], counts["inner"]), (3, 1, 1))
        inner = next(e for e in prof.events() if e.name == "inner")
        self.assertEqual(inner.cpu_parent.name, "outer")

    def test_args_of_ranges(self):
        """torch's profiler drops them. Kept in the recording, its files, and all recordings together; where others open ranges of the same name, left out."""
        @opscope.record_function("decorated", "always")
        def f(n):
            return n and f(n - 1)

        plan = opscope.schedule(wait=0, warmup=1, active=1, repeat=2)
        with opscope.profile(schedule=plan, acc_events=True) as prof:
            for i in range(4):
                with opscope.record_function("part", f'step="{i}", caf\u00e9'), opscope.record_function("part"), opscope.record_function("bare"):
                    f(1)
                prof.step()
        want = {"part": [None, 'step="3", caf\u00e9'], "bare": [None], "decorated": ["always"] * 2}

        def args(events):
            texts = [(e.name, json.loads("{" + (e.metadata_json or "") + "}").get("Record function args")) for e in events if e.name in want]
            return {n: sorted((t for m, t in texts if m == n), key=str) for n in want}
        self.assertEqual(args(prof.recordings[-1].events()), want)
        self.assertEqual([len(v) for v in args(prof.events()).values()], [4, 2, 4])
        self.assertEqual(args(prof.events())["part"], [None, None, 'step="1", caf\u00e9', 'step="3", caf\u00e9'])
        with tempfile.TemporaryDirectory() as d:
            prof.save(d + "/all.json")
            found = oracle.report("function-events", d + "/all.json", "--limit=0").rows
        self.assertEqual(sum("caf\u00e9" in (r["arguments"] or "") for r in found), 2)
        self.assertEqual(written(prof.export_chrome_trace)[:1], b"[")
        with self.assertWarnsRegex(UserWarning, r"^record_function\('part'\): the recording has 2 such ranges, of which 1 are opscope's"):
            with opscope.profile() as prof:
                with opscope.record_function("part", "mine"), ap.record_function("part"):
                    torch.ones(2)
        self.assertEqual([e.metadata_json for e in prof.events() if e.name == "part"], [None, None])

    def test_range_until_a_future(self):
        with opscope.profile() as prof:
            future = torch.futures.Future()
            with opscope.record_function("asynchronous") as range_:
                done = range_._call_end_callbacks_on_future(future)
                with self.assertRaisesRegex(RuntimeError, "can only be called once"):
                    range_._call_end_callbacks_on_future(future)
            torch.ones(2)
            future.set_result(1)
            done.wait()
        with self.assertRaisesRegex(RuntimeError, r"'asynchronous'.*within the range"):
            range_._call_end_callbacks_on_future(future)
        e = next(e for e in prof.events() if e.name == "asynchronous")
        self.assertLessEqual(next(e.time_range.end for e in prof.events() if e.name == "aten::ones"), e.time_range.end)

    def test_step_tracker(self):
        tracker = opscope.KinetoStepTracker
        start = tracker.current_step()
        tracker.init_step_count("a")
        tracker.init_step_count("b")
        self.assertEqual([tracker.increment_step(n) - start for n in ("a", "b", "b", "a")], [1, 1, 2, 2])
        self.assertTrue(tracker.erase_step_count("a") and tracker.erase_step_count("b"))
        self.assertFalse(tracker.erase_step_count("a"))

    def test_emit_without_nvtx(self):
        """A torch without CUDA or ITT says so; afterwards one can profile as before."""
        for emit in (opscope.emit_nvtx, opscope.emit_itt):
            with emit(enabled=False):
                torch.ones(2)
        if not torch.cuda.is_available():
            with self.assertRaises(RuntimeError):
                with opscope.emit_nvtx():
                    torch.ones(2)
        with opscope.profile() as prof:
            torch.ones(2)
        self.assertIn("aten::ones", [a.key for a in prof.key_averages()])

    def test_load_nvprof(self):
        path = oracle.data("pyprof", "lm_nvprof", "net.sql")
        events = opscope.load_nvprof(path)
        table = oracle.report("load-nvprof", path, "--limit=0")
        self.assertEqual([e.name for e in events], [r["name"] for r in table.rows])
        self.assertEqual([e.cuda_time_total for e in events], [r["cuda_time_ns"] / 1000 for r in table.rows])


class Kineto(Case):
    """A torch with Kineto writes the file itself; here a recorded one stands in for what it writes."""

    @staticmethod
    def taken(prof, result):
        with unittest.mock.patch.object(_recorder, "kineto", lambda: True):
            return prof._recorder.take(result)

    def test_the_saved_file_is_the_recording(self):
        class Result:
            def save(self, path):
                with gzip.open(RESNET) as f, open(path, "wb") as out:
                    out.write(f.read())

        with opscope.profile(compat="torch-2.14") as prof:
            torch.ones(2)
        prof.recordings.append(self.taken(prof, Result()))
        code, out, err = oracle.run("report", "key-averages", RESNET, "--compat=torch-2.14", "--sort=self_cpu_time_total", "--limit=5")
        self.assertEqual(code, 0, err)
        self.assertEqual(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=5), out.decode())
        with gzip.open(RESNET) as f:
            self.assertEqual(written(prof.export_chrome_trace), f.read())
        self.assertEqual(len(prof.events()), prof.events()[-1].id + 1)
        self.arguments_are_those_of_the_file(prof, oracle.load(RESNET))
        doc = oracle.load(RESNET)
        began = next(e["ts"] for e in doc["traceEvents"] if e.get("cat") == "Trace")
        first = min(e["ts"] for e in doc["traceEvents"] if e.get("cat") in ("cpu_op", "user_annotation", "python_function"))
        self.assertAlmostEqual(prof.events()[0].time_range.start, first - began, delta=0.002)

    def arguments_are_those_of_the_file(self, prof, doc):
        """concrete_inputs, metadata_json and the like, of each op."""
        ops = {(e["name"], e["ts"]): e for e in doc["traceEvents"] if e.get("cat") == "cpu_op"}
        began = next(e["ts"] for e in doc["traceEvents"] if e.get("cat") == "Trace")
        by_name = {}
        for (name, ts), e in ops.items():
            by_name.setdefault(name, []).append((ts - began, e))
        some = 0
        for e in prof.events():
            near = [x for ts, x in by_name.get(e.name, ()) if abs(ts - e.time_range.start) < 0.002]
            if len(near) != 1:
                continue
            args = near[0]["args"]
            wanted = [None if v == "" else json.loads(v.lower()) if v in ("True", "False") else v for v in args.get("Concrete Inputs", [])]
            self.assertEqual(len(e.concrete_inputs), len(wanted), e.name)
            for got, text in zip(e.concrete_inputs, wanted):
                self.assertTrue(got == text or str(got) == text or got == float(text), (e.name, got, text))
            metadata = json.loads("{%s}" % (e.metadata_json or ""))
            self.assertEqual(metadata.get("Input type"), args.get("Input type"))
            self.assertEqual(metadata.get("Input Strides"), args.get("Input Strides"))
            self.assertEqual((e.kwinputs, e.use_device, e.device_index, e.device_resource_id), ({}, None, 0, near[0]["tid"]))
            some += 1
        self.assertGreater(some, 1000)

    def test_events_on_a_device(self):
        prof = opscope.profile(compat="torch-2.14")
        path = oracle.synthetic("all_categories")

        class Result:
            def save(self, to):
                os.symlink(path, to)

        prof.recordings.append(self.taken(prof, Result()))
        doc = oracle.load(path)
        work = {(e["name"], e["args"].get("device"), e["args"].get("stream")) for e in doc["traceEvents"]
                if e.get("cat") in ("Kernel", "Memcpy", "Memset") and e.get("ph") == "X"}
        got = {(e.trace_name, e.device_index, e.device_resource_id) for e in prof.events() if e._on_device and not e.is_user_annotation}
        self.assertTrue(work and work <= got, (work, got))

    def test_args_of_ranges(self):
        """Its file has them then, too, and is else what it was."""
        class Result:
            def save(self, path):
                events = [{"ph": "X", "cat": c, "name": n, "pid": 1, "tid": 1, "ts": ts, "dur": 2.5} for c, n, ts in (
                    ("user_annotation", "part", 7.5), ("cpu_op", "part", 1), ("user_annotation", "part", 3.5), ("gpu_user_annotation", "part", 3))]
                with open(path, "w") as f:
                    json.dump({"schemaVersion": 1, "traceEvents": events, "traceName": "here"}, f)

        with opscope.profile(compat="torch-2.14") as prof:
            torch.ones(2)
        recording = self.taken(prof, Result())
        _recorder._tell_args(recording, {"part": ["first", "second"]})
        with open(recording.path) as f:
            document = json.load(f)
        self.assertEqual([e.get("args") for e in document["traceEvents"]],
                         [{"Record function args": "second"}, None, {"Record function args": "first"}, None])
        self.assertEqual((document["schemaVersion"], document["traceName"]), (1, "here"))

    def test_facts_are_told(self):
        """What torch.profiler.profile itself adds to the file: with_flops decides on a column of the table."""
        flags = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
        told = {}

        class Result:
            def save(self, path):
                doc = {k: v for k, v in oracle.load(RESNET).items() if k not in flags}
                with open(path, "w") as out:
                    json.dump({**doc, **{k: json.loads(v) for k, v in told.items()}}, out)

        prof = opscope.profile(compat="torch-2.6", with_flops=True, with_modules=True)
        with unittest.mock.patch.object(torch.autograd, "_add_metadata_json", told.__setitem__), unittest.mock.patch.object(_recorder, "kineto", lambda: True), \
                unittest.mock.patch.object(_recorder, "end", lambda inner: inner.__exit__(None, None, None) or Result()), prof:
            prof.add_metadata("who", "me")
            torch.ones(2)
        self.assertEqual(told, {"record_shapes": "1", "with_flops": "1", "with_modules": "1", "who": '"me"'})
        self.assertRegex(prof.key_averages().table(row_limit=3), "FLOPs")

    def test_files_of_all_recordings_together(self):
        """By Kineto's files: of the same one twice, all sums are double."""
        class Result:
            def save(self, path):
                doc = oracle.load(RESNET)
                doc["baseTimeNanoseconds"] = str(int(doc.get("baseTimeNanoseconds", 0)) + 10 ** 12 * len(prof.recordings))
                with open(path, "w") as out:
                    json.dump(doc, out)

        prof = opscope.profile(compat="torch-2.6", acc_events=True)
        prof.recordings.append(self.taken(prof, Result()))
        once = {a.key: (a.count, a.cpu_time_total) for a in prof.key_averages()}
        prof.recordings.append(self.taken(prof, Result()))
        twice = {a.key: (a.count, a.cpu_time_total) for a in prof.key_averages()}
        self.assertEqual(once.keys(), twice.keys())
        for key, (count, total) in once.items():
            self.assertEqual(twice[key][0], 2 * count)
            self.assertAlmostEqual(twice[key][1], 2 * total, delta=0.01 * count)


if __name__ == "__main__":
    oracle.main()
