"""Lists of events that a program makes or changes: against torch's own classes, which get the same events. And what torch's helpers do with raw records.

Skipped under a Python without torch (Debian: python3-torch).
"""
import copy
import itertools
import os
import pickle
import random
import shutil
import tempfile
import unittest

from support import oracle
import opscope

try:
    import torch
    import torch.autograd.profiler as ap
    import torch.autograd.profiler_util as util
except ImportError:
    torch = None

SUMS = ("count", "cpu_time_total", "self_cpu_time_total", "cuda_time_total", "self_cuda_time_total", "cpu_memory_usage", "self_cpu_memory_usage",
        "cuda_memory_usage", "self_cuda_memory_usage", "flops")
TABLES = ({}, {"sort_by": "self_cpu_time_total", "row_limit": 3}, {"sort_by": "cuda_time_total", "row_limit": -1, "header": "A title"},
          {"sort_by": "count", "max_name_column_width": 14, "max_shapes_column_width": 9, "max_src_column_width": 12}, {"sort_by": "key"},
          {"top_level_events_only": True}, {"max_name_column_width": None, "max_shapes_column_width": None, "max_src_column_width": None})


def specified(seed):
    """Events as the arguments of both classes: two threads, ranges in each other, some asynchronous, remote or of the backward pass, with kernels."""
    rng = random.Random(seed)
    events = []
    for i in range(40):
        start = rng.randrange(0, 4000)
        thread = rng.randrange(2)
        name = rng.choice(["aten::mm", "aten::add_", "a range with a long name indeed", "backward"])
        events.append((dict(id=i, name=name, thread=thread, start_us=start, end_us=start + rng.choice([0, 3, 400, 2500, 1200000]),
                            fwd_thread=0, input_shapes=rng.choice([[], [[2, 3], []], [[16, 3, 224, 224]]]), scope=rng.choice([0, 0, 1]),
                            stack=rng.choice([[], ["model.py(3): forward", "a/b/train.py(9): step"], [f"f{k}.py(1): f" for k in range(8)]]),
                            cpu_memory_usage=rng.choice([0, 12, -4096, 3 << 20]), cuda_memory_usage=rng.choice([0, 0, 1 << 31]),
                            is_async=rng.random() < 0.1, node_id=-1 if thread else 4, flops=rng.choice([0, 2048, 3000000]), trace_name=name,
                            sequence_nr=i), [("gemm", 0, rng.randrange(1, 900)) for _ in range(rng.choice([0, 0, 1, 3]))]))
    return events


def made(kind, kind_of_list, seed, **options):
    """The list of these events, nested by their times."""
    events = kind_of_list([], **options)
    for arguments, kernels in specified(seed):
        e = kind(**arguments)
        for k in kernels:
            e.append_kernel(*k)
        events.append(e)
    for i in range(3):  # without work of a device torch stops at shares of it
        events.append(kind(id=90 + i, name="gemm", thread=7, start_us=9000 * i, end_us=9000 * i + 700, device_type=torch.autograd.DeviceType.CUDA, stack=[],
                           input_shapes=[], flops=0, trace_name="gemm"))
    events._populate_cpu_children()
    events._tree_built = True
    return events


@unittest.skipUnless(torch and torch.__version__.startswith("1.13"), "compared with torch 1.13, which makes its answers in Python")
class MadeLists(oracle.Case):
    def both(self, seed=1, **options):
        options = {"use_cuda": True, "profile_memory": True, "with_flops": True, **options}
        return made(opscope.FunctionEvent, opscope.EventList, seed, **options), made(util.FunctionEvent, util.EventList, seed, **options)

    def test_events(self):
        for seed in range(5):
            for ours, theirs in zip(*self.both(seed)):
                self.assertEqual([getattr(ours, f) for f in SUMS], [getattr(theirs, f) for f in SUMS])
                self.assertEqual(ours.cpu_parent and ours.cpu_parent.id, theirs.cpu_parent and theirs.cpu_parent.id)
                self.assertEqual([c.id for c in ours.cpu_children], [c.id for c in theirs.cpu_children])
                self.assertEqual([tuple(k) for k in ours.kernels], [tuple(k) for k in theirs.kernels])
                self.assertEqual(repr(ours), repr(theirs))

    def test_averages(self):
        ours, theirs = self.both()
        for by_shape, frames in itertools.product((False, True), (0, 1, 5)):
            a, t = ours.key_averages(by_shape, frames), theirs.key_averages(by_shape, frames)
            fields = (*SUMS, "key", "node_id", "is_async", "is_legacy", "scope", "stack", "input_shapes", "cpu_time_str")
            self.assertEqual([[getattr(x, f) for f in fields] for x in a], [[getattr(x, f) for f in fields] for x in t])
            self.assertEqual([x.cpu_parent and x.cpu_parent.id for x in a], [x.cpu_parent and x.cpu_parent.id for x in t])
            self.assertEqual(repr(a), repr(list(t)))
        self.assertEqual(repr(ours.total_average()), repr(theirs.total_average()))
        self.assertEqual(ours.self_cpu_time_total, theirs.self_cpu_time_total)

    def test_tables(self):
        for memory, flops in itertools.product((False, True), repeat=2):
            ours, theirs = self.both(profile_memory=memory, with_flops=flops)
            pairs = [(ours, theirs)] + [(ours.key_averages(s, n), theirs.key_averages(s, n)) for s, n in ((False, 0), (True, 0), (True, 5))]
            for (a, t), options in itertools.product(pairs, TABLES):
                self.assertEqual(a.table(**options), t.table(**options), options)
        self.assertEqual(opscope.EventList().table(), "")

    def test_files(self):
        ours, theirs = self.both()
        with tempfile.TemporaryDirectory() as d:
            read = lambda name: open(os.path.join(d, name)).read()  # noqa: E731
            for metric in ("self_cpu_time_total", "self_cuda_time_total"):
                ours.export_stacks(d + "/a", metric)
                theirs.export_stacks(d + "/b", metric)
                self.assertEqual(read("a"), read("b"))
                self.assertIn(";", read("a"))
            ours.export_chrome_trace(d + "/a")
            theirs.export_chrome_trace(d + "/b")
            self.assertEqual(read("a"), read("b"))

    def test_nesting_that_torch_tests(self):
        """Two threads; ranges that touch, lie in each other and overlap in part."""
        times = {0: [(0, 10), (1, 2), (3, 4), (3, 4)], 1: [(0, 1), (2, 6), (3, 5), (5, 9)]}
        events = opscope.EventList([opscope.FunctionEvent(id=10 * thread + i, node_id=0, name="", thread=thread, start_us=a, end_us=b)
                                    for thread, spans in times.items() for i, (a, b) in enumerate(spans)])
        events._populate_cpu_children()
        inside = {e.id: [c.id for c in e.cpu_children] for e in events}
        self.assertEqual(inside, {0: [1, 2], 1: [], 2: [3], 3: [], 10: [], 11: [12], 12: [], 13: []})

    def test_adding(self):
        avg = opscope.FunctionEventAvg()
        avg.add(opscope.FunctionEvent(id=0, node_id=0, name="f", thread=0, start_us=10, end_us=15))
        avg += opscope.FunctionEvent(id=1, node_id=0, name="f", thread=0, start_us=20, end_us=30)
        avg.add(avg)
        self.assertEqual((avg.key, avg.count, avg.cpu_time_total, avg.cpu_time, avg.scope), ("f", 4, 30, 7.5, 0))
        with self.assertRaises(AssertionError):
            avg.add(opscope.FunctionEvent(id=2, name="g", thread=0, start_us=0, end_us=1))

    def test_a_list_is_a_list(self):
        ours, _ = self.both()
        rest = ours[2:]
        del ours[2:]
        ours.extend(rest[:1])
        ours.insert(0, rest[1])
        ours.sort(key=lambda e: -e.id)
        self.assertEqual([e.id for e in ours], [3, 2, 1, 0])
        self.assertEqual(sum(a.count for a in ours.key_averages()), 4)
        self.assertEqual([e.id for e in copy.deepcopy(ours)], [3, 2, 1, 0])
        self.assertEqual([e.id for e in pickle.loads(pickle.dumps(ours))], [3, 2, 1, 0])
        self.assertIn(rest[5], [*rest])


@unittest.skipUnless(torch, "no Python with torch (Debian: python3-torch)")
class Recorded(oracle.Case):
    def recorded(self):
        with opscope.profile(record_shapes=True, profile_memory=True) as prof:
            for _ in range(2):
                with opscope.record_function("part"):
                    torch.mm(torch.ones(30, 40, requires_grad=True), torch.ones(40, 20)).sum().backward()
        return prof

    def test_scope_and_place_of_averages(self):
        prof = self.recorded()
        events = prof.events()
        for shapes, frames in ((False, 0), (True, 0), (True, 3)):
            for a in prof.key_averages(shapes, frames):
                group = [e for e in events if e.key == a.key and (not shapes or e.input_shapes == a.input_shapes)]
                self.assertEqual((a.scope, a.cpu_parent, a.cpu_children), (group[0].scope, group[0].cpu_parent, group[0].cpu_children), a.key)
        scopes = {a.key: a.scope for a in prof.key_averages()}
        self.assertEqual((scopes["part"], scopes["aten::mm"], scopes["MmBackward0"]), (7, 0, 1))
        one = pickle.loads(pickle.dumps(prof.key_averages()[0]))
        self.assertEqual(one.key, prof.key_averages()[0].key)

    def test_an_event_that_is_changed(self):
        """Its list is the program's from there on, with the same numbers but for what was added."""
        prof = self.recorded()
        before = {a.key: (a.count, a.self_cpu_time_total, a.self_cpu_memory_usage) for a in prof.key_averages()}
        events = prof.events()
        mm = next(e for e in events if e.name == "aten::mm")
        self.assertEqual((mm.kernels, mm.kernel_count), ([], 0))
        mm.append_kernel("gemm", 0, 250)
        self.assertEqual(({a.key: (a.count, a.self_cpu_time_total, a.self_cpu_memory_usage) for a in events.key_averages()}), before)
        part = next(e for e in events if e.name == "part")
        self.assertEqual((mm.cuda_time_total, part.cuda_time_total, part.self_cuda_time_total), (250, 250, 0))
        self.assertIs(next(e for e in events if e.name == "aten::mm"), mm)
        self.assertIn("Self CUDA", events.key_averages().table())
        n = len(events)
        del events[0]
        self.assertEqual((len(events), len(prof.recordings[-1].events())), (n - 1, n - 1))
        self.assertNotIn("Self CUDA", prof.key_averages().table())  # the recording itself is as it was

    def test_the_same_event_is_the_same_object(self):
        events = self.recorded().events()
        held = list(events)
        self.assertIs(events[3], held[3])
        child = next(e for e in held if e.cpu_parent)
        self.assertIn(child, child.cpu_parent.cpu_children)

    def test_averages_that_are_changed(self):
        averages = self.recorded().key_averages()
        text = averages.table(row_limit=-1)
        averages.sort(key=lambda a: a.key)
        self.assertEqual(sorted(text.splitlines()), sorted(averages.table(row_limit=-1).splitlines()))
        self.assertEqual([a.key for a in averages], sorted(a.key for a in averages))

    def test_a_finished_profile_is_not_entered_again(self):
        prof = self.recorded()
        with self.assertRaisesRegex(RuntimeError, "not reentrant"), prof:
            self.fail("entered")
        prof.start()
        prof.stop()
        self.assertEqual(len(prof.recordings), 2)


class DeviceWork(oracle.Case):
    """Kernels of events, of recorded traces: each piece of work at one event, with the times that the event has."""

    def test_kernels(self):
        from opscope._recording import Recording
        path = oracle.data("tb_plugin", "resnet50_num_workers_0")
        path = next(os.path.join(path, n) for n in sorted(os.listdir(path)) if n.endswith((".pt.trace.json", ".pt.trace.json.gz")))
        for rules in ("torch-1.13", "torch-2.14"):
            events = Recording(path, rules, frozenset()).events()
            n = 0
            for e in events:
                self.assertEqual(len(e.kernels), e.kernel_count)
                n += len(e.kernels)
                if e.kernels and not e.cpu_children:
                    self.assertEqual(round(sum(k.duration for k in e.kernels), 3), round(e.device_time_total, 3))
            self.assertGreater(n, 100)


@unittest.skipUnless(torch, "no Python with torch (Debian: python3-torch)")
class Nvprof(oracle.Case):
    def test_as_torch(self):
        path = oracle.data("pyprof", "lm_nvprof", "net.sql")
        ours = opscope.load_nvprof(path)
        with tempfile.TemporaryDirectory() as d:  # torch opens it for writing
            theirs = ap.load_nvprof(shutil.copy(path, d + "/copy"))
        self.assertEqual(len(ours), 1195)
        for a, t in zip(ours, theirs):
            self.assertEqual((a.id, a.name, a.thread, a.node_id, a.is_remote), (t.id, t.name, t.thread, t.node_id, t.is_remote))
            self.assertEqual(len(a.kernels), len(t.kernels))
            self.assertEqual(round(a.time_range.start * 1000), t.time_range.start - theirs[0].time_range.start)
            self.assertAlmostEqual(a.cuda_time_total * 1000, t.cuda_time_total, 0)
            self.assertEqual(sorted(round(k.duration * 1000) for k in a.kernels), sorted(k.duration for k in t.kernels))
        theirs._tree_built = True  # else its averages are an assertion
        for t in theirs:
            t.stack = []  # the next thing at which they stop
        wanted = theirs.key_averages()
        self.assertEqual([(a.key, a.count) for a in ours.key_averages()], [(t.key, t.count) for t in wanted])
        for a, t in zip(ours.key_averages(), wanted):
            self.assertAlmostEqual(a.cpu_time_total * 1000, t.cpu_time_total, 0)
        total = ours.total_average()
        self.assertEqual((total.key, total.count), ("Total", 1195))
        rows = ours.table(sort_by="cuda_time_total", row_limit=4).splitlines()
        self.assertEqual((len(rows), rows[1].split()[:3]), (10, ["Name", "Self", "CPU"]))
        ours.append(opscope.FunctionEvent(id=-1, node_id=0, name="mine", thread=0, start_us=0, end_us=1))
        self.assertEqual(ours.key_averages()[-1].key, "mine")
        first = next(e for e in ours if e.kernels)
        n, us = len(first.kernels), first.cuda_time_total
        first.append_kernel("more", 0, 5)
        self.assertEqual((len(first.kernels), round(first.cuda_time_total - us, 6)), (n + 1, 5))


class Helpers(oracle.Case):
    def test_enforce_unique(self):
        unique = opscope.EnforceUnique()
        unique.see(1)
        unique.see(1, 2)
        unique.see("1")
        with self.assertRaisesRegex(RuntimeError, r"^duplicate key: \(1, 2\)$"):
            unique.see(1, 2)

    def test_allocations_by_time(self):
        class Us:
            def __init__(self, us):
                self.us = us

            def start_us(self):
                return self.us

        class Ns(Us):
            def start_ns(self):
                return self.us * 1000

        for kind in (Us, Ns):
            records = [[kind(t), False] for t in (30, 10, 20, 20)]
            acc = opscope.MemRecordsAcc(records)
            self.assertEqual([r[0].us for r in acc.in_interval(10, 20)], [10, 20, 20])
            self.assertEqual([r[0].us for r in acc.in_interval(11, 19)], [])
            self.assertIs(next(acc.in_interval(25, 99)), records[0])
        self.assertEqual(list(opscope.MemRecordsAcc([]).in_interval(0, 9)), [])


if __name__ == "__main__":
    oracle.main()
