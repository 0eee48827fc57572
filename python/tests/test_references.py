"""Nothing grows: neither references nor memory, over thousands of traces, tables, rows and failures.

With a debug build of Python (python3-dbg), every reference is counted; with any other, those of the objects that are handed in and out, what
Python has allocated, and the memory of the process.
"""
import gc
import json
import os
import sys
import tempfile
import tracemalloc

from support import oracle, under_debug_python
import opscope
from opscope import _profiler

TRACE = oracle.synthetic("operator_relation_start")
ROUNDS = int(os.environ.get("OPSCOPE_ROUNDS", 10000))


def loads():
    opscope.load(TRACE).close()


def loads_not_closed():
    opscope.load(TRACE)


def failures(trace=opscope.load(TRACE)):
    for ask in (lambda: opscope.load(TRACE, no_such=1), lambda: opscope.load(TRACE, input_format=5.5), lambda: trace.report("no-such"),
                lambda: trace.report("operators", sort="no-such"), lambda: trace.report("operators")["no-such"],
                lambda: trace._profile.report("operators", {1: 2}), lambda: trace._profile.report("operators", []),
                lambda: trace.export("chrome", "/no/such/folder/x"), lambda: trace.export("no-such", "x"), lambda: trace.report("operators")._table.column(99)):
        try:
            ask()
        except (opscope.Error, KeyError, IndexError, TypeError):
            continue
        raise AssertionError("no error")


def tables(trace=opscope.load(TRACE)):
    table = trace.report("operators")
    table.columns, table.notes, table.title, table.sections
    trace.problems, trace.n_events, trace.format


def events(trace=opscope.load(TRACE)):
    table = trace.event_table(limit=20)
    for i, column in enumerate(table.columns):
        table._table.codes(i) if column.type == "string" else table._table.numbers(i)
    trace._profile.timeline({})
    try:
        table._table.codes(0)  # a number
    except TypeError:
        return
    raise AssertionError("no error")


def told(seen=[0]):
    opscope.load(TRACE, progress=lambda done, total: seen.__setitem__(0, total))
    try:
        opscope.load(TRACE, progress=lambda: None)
    except TypeError:
        return
    raise AssertionError("no error")


def jobs(folder=tempfile.TemporaryDirectory()):
    for rank in range(2):
        path = os.path.join(folder.name, f"rank{rank}.json")
        os.path.lexists(path) or os.symlink(TRACE, path)
    job = opscope.load(folder.name, progress=lambda done, total: None)
    job.report("operators"), job.advise(), job.diff(job), job.recordings, job.kept
    for ask in (lambda: job.report("no-such"), lambda: job.report("operators", rank=1), lambda: job._job.report("operators", {}, lambda: None), lambda: job._job.diff({}, None, {}, {})):
        try:
            ask()
        except (opscope.Error, TypeError):
            continue
        raise AssertionError("no error")


def rows(table=opscope.load(TRACE).report("operators")):
    for row in table:
        row["name"]
    table.to_dict()
    table._table.numbers(1)


def forms(table=opscope.load(TRACE).report("operators")):
    table.to_csv()
    table._repr_html_()
    table.__arrow_c_array__()
    table.__arrow_c_stream__()
    table.__arrow_c_schema__()


def lists():
    opscope.reports()


class Event:
    """As torch has them, as far as its methods go."""
    VALUES = dict(name='a "name"', start_us=1000, duration_us=20, start_thread_id=1, end_thread_id=1, fwd_thread_id=2, linked_correlation_id=0, flops=6,
                  sequence_nr=7, nbytes=0, cuda_elapsed_us=3, device_type=0, device_index=-1, scope=0, is_async=False, shapes=[[2, 3], []],
                  dtypes=["float", "Scalar"], stack=["f.py(1): f", "g.py(2): g"])

    def __init__(self, **changes):
        for name, value in {**self.VALUES, **changes}.items():
            setattr(self, name, lambda value=value: value)


EVENTS = [Event(), Event(name="[memory]", nbytes=64), Event(device_type=1, linked_correlation_id=5)]
BROKEN = [Event(shapes=[["x"]]), Event(shapes=3), Event(dtypes=[1]), Event(stack=[None]), Event(name=1), Event(scope="x"), object()]


FORM = {"head": "[", "tail": "]", "base_us": None, "pid": 1, "shapes": True, "stacks": True, "flops": True, "device_times": True}


def recording(events=EVENTS):
    with tempfile.TemporaryFile() as f:
        made = _profiler.write_events(events, 990, f.fileno(), **FORM)
        f.seek(0)
        return made, f.read().decode()


def recordings():
    recording()
    for broken in BROKEN:
        try:
            recording([broken])
        except (TypeError, ValueError, AttributeError):
            continue
        raise AssertionError("no error")


def schedules():
    tracker = _profiler.Tracker()
    tracker.init("a"), tracker.increment("a"), tracker.current(), tracker.erase("a")
    spec = (1, 1, 2, 0, 0, 0)
    _profiler.schedule_check(spec), [_profiler.schedule_action(spec, step) for step in range(6)], _profiler.transition(0, 2)


#: What is repeated -> how often one round is, as part of ROUNDS.
WORK = {loads: 1, loads_not_closed: 1, failures: 0.1, tables: 1, events: 0.1, told: 0.1, jobs: 0.02, rows: 1, forms: 1, lists: 0.1, recordings: 0.1, schedules: 1}


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def repeat(work, n):
    for _ in range(n):
        work()
    gc.collect()


class References(oracle.Case):
    def test_memory(self):
        sanitized = "asan" in os.environ.get("LD_PRELOAD", "")  # which keeps what is freed, for a while
        for work, part in WORK.items():
            with self.subTest(work.__name__):
                n = max(int(ROUNDS * part) // (10 if sanitized else 1), 20)
                repeat(work, max(n // 10, 10))
                tracemalloc.start()
                before, memory = tracemalloc.get_traced_memory()[0], resident()
                repeat(work, n)
                grown, held = tracemalloc.get_traced_memory()[0] - before, resident() - memory
                tracemalloc.stop()
                # One object lost in each round would be 16 bytes a round at least.
                self.assertLess(grown, 4096 + 4 * n)
                if not sanitized:
                    self.assertLess(held, (4 << 20) + 32 * n)

    def test_recording(self):
        made, text = recording()
        self.assertEqual((made[0], made[1], made[4]), (3, 990, 1))
        op, memory, work, _ = json.loads(text)
        self.assertEqual((op["name"], op["ts"], op["dur"]), ('a "name"', 10, 20))
        self.assertEqual(op["args"], {"Sequence number": 7, "Fwd thread id": 2, "Input Dims": [[2, 3], []], "Input type": ["float", "Scalar"],
                                      "Counted FLOPs": 6, "Call stack": "f.py(1): f;g.py(2): g"})
        self.assertEqual(memory["args"], {"Bytes": 64, "Device Type": 0, "Device Id": -1})
        self.assertEqual((work["cat"], work["args"]), ("kernel", {"External id": 5, "device": -1}))
        for form, error in (({}, TypeError), ({**FORM, "shape": True}, TypeError), ({**FORM, "head": 3}, TypeError), ({**FORM, "base_us": "x"}, TypeError)):
            with self.assertRaises(error):
                _profiler.write_events(EVENTS, 990, 1, **form)
        things = [*EVENTS, *BROKEN, *Event.VALUES["shapes"], Event.VALUES["shapes"], Event.VALUES["dtypes"], Event.VALUES["stack"]]
        before = [sys.getrefcount(x) for x in things]
        repeat(recordings, 100)
        self.assertEqual([sys.getrefcount(x) for x in things], before)

    def test_names_of_methods(self):
        """Python keeps names by which it was asked: each is the same one every time."""
        repeat(recordings, 20)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        repeat(recordings, 100)
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        self.assertLess(grown, 1000)

    def test_texts_and_numbers_of_a_recording(self):
        """What must be escaped, at each place of a text; numbers of all lengths."""
        names = ["x" * n + c + "y" * (20 - n) for n in range(21) for c in ('"', "\\", "\x1f", "\0", " ", "!", "\x7f", "\u00e9", "\U0001f600", '\\"')]
        numbers = sorted({s * (10 ** k + d) for k in range(18) for d in (-1, 0, 1, 11 ** k % 10 ** k) for s in (1, -1)} | {2 ** 63 - 1, -2 ** 63})
        events = [Event(name=n) for n in names] + [Event(sequence_nr=v if v >= 0 else 0, shapes=[[v, 10, v]]) for v in numbers]
        events += [Event(name="[memory]", nbytes=v) for v in numbers]
        _, text = recording(events)
        doc = json.loads(text)
        self.assertEqual([e["name"] for e in doc[:len(names)]], names)
        self.assertEqual([e["args"]["Input Dims"] for e in doc[len(names):len(names) + len(numbers)]], [[[v, 10, v]] for v in numbers])
        self.assertEqual([e["args"]["Sequence number"] for e in doc[len(names):len(names) + len(numbers)]], [max(v, 0) for v in numbers])
        self.assertEqual([e["args"]["Bytes"] for e in doc[len(names) + len(numbers):-1]], numbers)

    def test_objects_handed_in(self):
        options, name, key = {"sort": "name"}, "operators-" + "x" * 20, "group-" + "x" * 20
        profile = opscope.load(TRACE)._profile
        before = [sys.getrefcount(x) for x in (options, name, key, None, profile)]
        for _ in range(1000):
            profile.report("operators", options)
            for bad in ((name, options), ("operators", {key: name})):
                try:
                    profile.report(*bad)
                except opscope.Error:
                    pass
        after = [sys.getrefcount(x) for x in (options, name, key, None, profile)]
        for a, b in zip(before, after):
            self.assertAlmostEqual(a, b, delta=50)

    def test_types(self):
        """An instance of a type that is made at run time holds it."""
        core = sys.modules["opscope._core"]
        before = sys.getrefcount(core.Table), sys.getrefcount(core.Profile)
        repeat(tables, 100)
        repeat(loads, 100)
        self.assertEqual((sys.getrefcount(core.Table), sys.getrefcount(core.Profile)), before)

    def test_debug_python(self):
        """Every reference there is, under a debug build of Python."""
        under_debug_python(self, "References.test_total", 1000, "_core", "_profiler")

    def test_total(self):
        if not hasattr(sys, "gettotalrefcount"):
            self.skipTest("not a debug build of Python")
        for work, part in WORK.items():
            n = max(int(ROUNDS * part), 100)
            repeat(work, 20)
            before = sys.gettotalrefcount()
            repeat(work, n)
            self.assertLess(sys.gettotalrefcount() - before, n // 4, work.__name__)


if __name__ == "__main__":
    oracle.main()
