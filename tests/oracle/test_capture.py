"""The input `capture`: segments with planted records, and those that the library writes of programs that say all that NVTX, ITT and trace.h can say.
Every value that was planted is compared."""
import glob
import json
import os
import re
import resource
import shutil
import struct
import subprocess
import tempfile
import time

import oracle
import segment
from segment import BASE, Segment

BUILD = os.path.abspath(os.environ.get("OPSCOPE_BUILD", os.path.join(oracle.ROOT, "build")))
LIBRARY = os.path.join(BUILD, "collect", "libopscope-inject.so")
GUESTS = os.path.join(BUILD, "tests", "collect")
F64 = lambda v: struct.pack("<d", v)  # noqa: E731


def sql(path, query):
    code, out, err = oracle.run("sql", path, query, "--format=json", "--limit=0")
    assert code == 0, err.decode()
    return [tuple(r) for r in json.loads(out)["rows"]]


def problems(path):
    """{kind: (level, count, message)}"""
    return {r["kind"]: (r["level"], r["count"], r["message"]) for r in oracle.info(path).section("problems").rows}


def cpu_s(*args):
    """The processor's time that a command takes."""
    used = lambda u: u.ru_utime + u.ru_stime  # noqa: E731
    before = used(resource.getrusage(resource.RUSAGE_CHILDREN))
    code, _, err = oracle.run(*args)
    assert code == 0, err.decode()
    return used(resource.getrusage(resource.RUSAGE_CHILDREN)) - before


def planted_environment(folder, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("OPSCOPE_", "SLURM_", "OMPI_", "PMI")) and k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    return {**env, "OPSCOPE_DIR": folder, "NVTX_INJECTION64_PATH": LIBRARY, "INTEL_LIBITTNOTIFY64": LIBRARY, **more}


class CaptureCase(oracle.Case):
    def setUp(self):
        super().setUp()
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)

    def guest(self, name, *args, status=0, **env):
        """Runs a guest; the folder of its capture."""
        folder = tempfile.mkdtemp(dir=self.dir)
        p = subprocess.run([os.path.join(GUESTS, name), *args], env=planted_environment(folder, **env), capture_output=True, timeout=120)
        self.assertEqual((p.returncode, p.stderr), (status, b""))
        return folder


class Nvtx(CaptureCase):
    """What guest_nvtx.c says."""
    guest_name = "guest_nvtx"

    def setUp(self):
        super().setUp()
        if not os.path.exists(os.path.join(GUESTS, self.guest_name)):
            self.skipTest("NVTX's headers are not installed")
        self.run_dir = self.guest(self.guest_name)

    def test_ranges(self):
        rows = sql(self.run_dir, "SELECT name, kind, cat, link_id, arg(args, 'Payload'), arg(args, 'Category'), arg(args, 'Color'), arg(args, 'Input Dims'), "
                   "t.thread_name FROM span s JOIN track t ON t.rowid = s.track WHERE s.kind != 'range' ORDER BY start_ns, dur_ns DESC")
        own, second, X = "ärste", "second", "x" * 32768

        def user(name, payload=None, category=None, colour=None, cat="nvtx", thread=own):
            return name, "user", cat, None, payload, category, colour, None, thread
        expected = [
            user("outer"),
            ("aten::conv2d", "op", "nvtx", 4, None, None, None, "[[2, 3, 8, 8], [4, 3, 3, 3], []]", own),
            ("aten::_convolution", "op", "nvtx", 4, None, None, None, None, own),
            ("ConvolutionBackward0", "op", "nvtx", 4, None, None, None, None, own),
            ("odd", "op", "nvtx", 7, None, None, None, None, own),
            ("", "op", "nvtx", None, None, None, None, "[[2, 16], []]", own),
            user("weit: ü 中 🚀"),
            user("payload 0", "18446744073709551615"), user("payload 1", "-7"), user("payload 2", "1.5"), user("payload 3", "4000000000"),
            user("payload 4", str(0xdeadbeef - (1 << 32))), user("payload 5", "0.25"),
            user("with category and colour", None, "three", "#80FF0000"), user("Kategorie", None, "vier 😀"), user(""), user(X),
            user("registered", None, "five of the library", "#FF102030", "library"), user("✓ weit", cat="Bücherei"), user("default inside"),
            user("on the second thread", thread=second), user("never popped"),
        ]
        self.assertEqual(rows, expected)

    def test_starts_and_ends(self):
        rows = sql(self.run_dir, "SELECT s.name, cat, arg(args, 'Category'), start_ns, start_ns + dur_ns, t.tid_text FROM span s JOIN track t ON t.rowid = s.track "
                   "WHERE kind = 'range' ORDER BY start_ns")
        self.assertEqual([r[:3] for r in rows], [
            ("registered", "library", "five of the library"), ("plain start", "nvtx", None), ("start weit", "nvtx", None),
            ("with category and colour", "nvtx", "three"), ("overlapping a", "nvtx", None), ("overlapping b", "nvtx", None),
            ("ends elsewhere", "nvtx", None), ("never ended", "nvtx", None)])
        a, b, elsewhere, never = rows[4:]
        self.assertTrue(a[3] <= b[3] <= a[4] <= b[4])
        (begin, end), = sql(self.run_dir, "SELECT start_ns, start_ns + dur_ns FROM span WHERE name = 'on the second thread'")
        self.assertTrue(elsewhere[3] <= begin <= elsewhere[4] <= end)
        last, = sql(self.run_dir, "SELECT max(start_ns + dur_ns) FROM span")[0]
        self.assertEqual(never[4], last)
        self.assertTrue(all(r[5].endswith(" start/end") for r in rows))

    def test_marks(self):
        rows = sql(self.run_dir, "SELECT name, cat, arg(args, 'Category'), arg(args, 'Color'), phase FROM mark ORDER BY time_ns")
        self.assertEqual(rows, [("registered", "library", "five of the library", "#FF102030", "i"), ("a mark", "nvtx", None, None, "i"),
                                ("eine Marke ⚑", "nvtx", None, None, "i"), ("with category and colour", "nvtx", "three", "#80FF0000", "i")])

    def test_problems_and_facts(self):
        found = problems(self.run_dir)
        self.assertEqual({k: v[:2] for k, v in found.items()}, {"range-without-end": ("repaired", 3), "text-cut": ("note", 1), "partial-overlap": ("note", 2)})
        facts = dict(sql(self.run_dir, "SELECT key, value FROM meta"))
        self.assertEqual(facts["capture:version.nvtx"], "3")
        self.assertTrue(facts["capture:argv"].endswith(self.guest_name))
        self.assertEqual({v for k, v in facts.items() if k.startswith("resource:")}, {"a thing", "copies"})
        for note in (oracle.report("nvtx", self.run_dir).notes, oracle.report("overview", self.run_dir).notes):
            said, = [n for n in note if n.startswith("recorded by opscope")]
            self.assertIn("no event was lost", said)

    def test_long_texts(self):
        """Wide ones have as many bytes as narrow ones; what is cut is cut between characters and told, of the table's texts and of those in records."""
        run = self.guest(self.guest_name, "long")
        long, cut, inside = "ä" * 5000, "中" * (32768 // 3), "x" + "ä" * 16383
        rows = sql(run, "SELECT s.name, cat, arg(args, 'Text'), t.thread_name FROM span s JOIN track t ON t.rowid = s.track ORDER BY start_ns")
        self.assertEqual(rows, [(long, "nvtx", None, long), (long, long, None, long), (cut, "nvtx", "cut", long), (inside, "nvtx", "cut", long)])
        self.assertEqual(sql(run, "SELECT name = arg(args, 'Category'), length(name) FROM mark WHERE args"), [(1, 5000)])
        self.assertEqual({k: v[:2] for k, v in problems(run).items()}, {"text-cut": ("note", 2)})

    def test_nesting(self):
        rows = dict(sql(self.run_dir, "SELECT s.name, p.name FROM span s LEFT JOIN span p ON p.rowid = s.parent WHERE s.kind = 'op'"))
        self.assertEqual((rows["aten::conv2d"], rows["aten::_convolution"], rows["ConvolutionBackward0"]), ("outer", "aten::conv2d", "outer"))


class RealNvtx(Nvtx):
    """The same program, with the headers of the toolkit where they are installed."""
    guest_name = "guest_nvtx_real"
    test_long_texts = None  # the headers have no part in it


class Planted(CaptureCase):
    """Segments made here, record by record."""

    def test_ranges(self):
        s = Segment()
        s.push(7, "plain", BASE + 100)
        s.push(7, "aten::mm", BASE + 110, seq=5, op=12, sizes="[[2, 3], [3, 4]]")
        s.push(7, "aten::add", BASE + 120, seq=6, rest=", sizes = [[4], []], input_op_ids = [(1,0)]")
        s.pop(7, BASE + 130)
        s.pop(7, BASE + 150)
        s.push(7, None, BASE + 160, rest="inside the record")
        s.pop(7, BASE + 161)
        s.push(7, "declared", BASE + 170, seq=None, op=None)
        s.threads[7][-1] = segment.record(segment.PUSH, segment.HAS_OP, s.text("declared"), struct.pack("<qII", BASE + 170, segment.NONE32, segment.NONE32))
        s.event(7, segment.ARG, 2, s.text("count"), "QII", (1 << 64) - 3, 0, 0)
        s.event(7, segment.ARG, 3, s.text("ratio"), "8sII", F64(0.5), 0, 0)
        s.event(7, segment.ARG, 0, s.text("who"), "QII", s.text("me"), 0, 0)
        s.event(7, segment.ARG, 1, s.text("Input Dims"), "QII", s.text("[[2, 2]]"), 0, 0)
        s.event(7, segment.ARG, 1, s.text("broken"), "QII", s.text("[1, nan"), 0, 0)
        s.event(7, segment.ARG, 3, s.text("nothing"), "8sII", F64(float("nan")), 0, 0)
        s.pop(7, BASE + 180)
        s.pop(7, BASE + 200)
        s.pop(7, BASE + 201)
        path = s.write(self.dir)
        rows = sql(path, "SELECT s.name, s.kind, s.start_ns, s.dur_ns, s.link_id, arg(s.args, 'Input Dims'), p.name FROM span s LEFT JOIN span p ON p.rowid = s.parent "
                   "ORDER BY s.start_ns")
        self.assertEqual(rows, [
            ("plain", "user", 100, 100, None, None, None), ("aten::mm", "op", 110, 40, 5, "[[2, 3], [3, 4]]", "plain"),
            ("aten::add", "op", 120, 10, 6, "[[4], []]", "aten::mm"), ("inside the record", "user", 160, 1, None, None, "plain"),
            ("declared", "op", 170, 10, None, "[[2, 2]]", "plain")])
        args = sql(path, "SELECT arg(args, 'count'), arg(args, 'ratio'), arg(args, 'who'), arg(args, 'broken'), arg(args, 'nothing') FROM span WHERE name = 'declared'")
        self.assertEqual(args, [("-3", "0.5", "me", "[1, nan", "nan")])
        strings = dict(sql(path, "SELECT key, is_string FROM arg"))
        self.assertEqual([strings[k] for k in ("count", "Input Dims", "broken", "nothing")], [0, 0, 1, 1])
        self.assertEqual(problems(path)["range-without-start"][:2], ("note", 1))

    def test_cut(self):
        """What was cut says so: a text of the table, shapes, a text in its record, a stack."""
        s = Segment()
        whole = s.text("whole")
        for name in ("cut name", "[[1]]"):
            s.texts[name.encode()] = len(s.texts) + 1
            s.kept.append(segment.record(segment.STRING, segment.CUT, s.texts[name.encode()], struct.pack("<II", len(name), 0) + name.encode()))
        s.push(7, "whole", BASE + 10)
        s.push(7, "cut name", BASE + 20)
        s.push(7, "whole", BASE + 30, seq=1, sizes="[[1]]")
        s.threads[7].append(segment.record(segment.PUSH, segment.HAS_TEXT | segment.CUT, 0, struct.pack("<qI", BASE + 40, 6) + b"inside"))
        for at in range(4):
            s.pop(7, BASE + 50 + at)
        s.event(7, segment.CPU_SAMPLE, segment.CUT, 7, "qIIQ", BASE + 60, 1, 1000, segment.FRAME_TEXT | whole)
        path = s.write(self.dir)
        self.assertEqual(sql(path, "SELECT name, arg(args, 'Text') FROM span ORDER BY start_ns"), [("whole", None), ("cut name", "cut"), ("whole", "cut"), ("inside", "cut")])
        self.assertEqual({k: v[:2] for k, v in problems(path).items()}, {"text-cut": ("note", 3), "stack-cut": ("note", 1)})

    def test_lists_of_numbers(self):
        s = Segment()
        s.push(7, "call", BASE + 10)
        s.event(7, segment.ARG, 4, s.text("input_callids"), "QIIqq", 2, 0, 0, 7, -1)
        s.event(7, segment.ARG, 4, s.text("none"), "QII", 0, 0, 0)
        s.event(7, segment.ARG, 4, s.text("more than there are"), "QIIq", 2, 0, 0, 7)
        s.event(7, segment.ARG, 4, s.text("more than there can be"), "QIIq", 1 << 61, 0, 0, 7)
        s.pop(7, BASE + 20)
        path = s.write(self.dir)
        self.assertEqual(sql(path, "SELECT key, value, is_string FROM arg"), [("input_callids", "[7, -1]", 0), ("none", "[]", 0)])
        self.assertEqual(problems(path)["damaged-record"][:2], ("lost", 2))

    def test_marker_with_a_number(self):
        """What opscope.torch writes: the text of the call, its number beside it, and the node of the backward pass with the same number."""
        marker = "{'mod': 'torch', 'op': 'mm', 'args': [{'name': '', 'type': 'tensor', 'shape': (2, 3), 'dtype': 'float32'}]}"
        s = Segment()
        s.push(7, "[module]Linear: Net.fc", BASE + 10)
        for at, number in ((20, 4), (40, 5)):
            s.push(7, marker, BASE + at, seq=number)
            s.event(7, segment.ARG, 0, s.text("Call stack"), "QII", s.text(f"train.py({at}): main"), 0, 0)
            s.pop(7, BASE + at + 10)
        s.pop(7, BASE + 60)
        for at, number in ((70, 5), (80, 4)):
            s.push(7, "MmBackward0", BASE + at, seq=number)
            s.pop(7, BASE + at + 5)
        path = s.write(self.dir)
        self.assertEqual(sql(path, "SELECT name, kind, link_id, arg(args, 'Input Dims'), arg(args, 'Call stack') FROM span WHERE kind = 'op' ORDER BY start_ns"),
                         [("torch.mm", "op", 4, "[[2, 3]]", "train.py(20): main"), ("torch.mm", "op", 5, "[[2, 3]]", "train.py(40): main"),
                          ("MmBackward0", "op", 5, None, None), ("MmBackward0", "op", 4, None, None)])
        self.assertEqual([(r["name"], r["direction"], r["calls"]) for r in oracle.report("ops", path, "--sort=name").rows],
                         [("/Net/fc/mm", "forward", 1), ("/Net/fc/mm", "backward", 1), ("/Net/fc/mm(2)", "forward", 1), ("/Net/fc/mm(2)", "backward", 1)])
        layer, = [r for r in oracle.report("layers", path).rows if r["layer"] == "Net.fc"]
        self.assertEqual((layer["type"], layer["backward_host_ns"]), ("Linear", 10))

    def test_numbers_that_come_again(self):
        """Starts and ends of one number are paired by time; the innermost ends first; threads do not matter."""
        s = Segment(last=BASE + 900)
        starts = ((1, "frame", 4, 10), (1, "frame", 4, 30), (2, "frame", 4, 50), (1, "other", 6, 12), (1, "out", 8, 100), (1, "in", 8, 110),
                  (1, "edge", 10, 200), (1, "edge", 10, 210), (1, "clock was set", 12, 300), (1, "no end", 14, 400))
        ends = ((1, 4, 20), (2, 4, 40), (1, 4, 60), (1, 6, 95), (1, 8, 120), (1, 8, 130), (1, 10, 210), (1, 10, 210), (1, 12, 290), (1, 14, 380), (1, 14, 390))
        for tid, name, number, at in starts:
            s.push(tid, None, BASE + at, kind=segment.START, number=number, rest=name)
        for tid, number, at in ends:
            s.event(tid, segment.END, 0, 0, "qQ", BASE + at, number)
        path = s.write(self.dir)
        self.assertEqual(sql(path, "SELECT name, start_ns, start_ns + dur_ns FROM span ORDER BY start_ns"), [
            ("frame", 10, 20), ("other", 12, 95), ("frame", 30, 40), ("frame", 50, 60), ("out", 100, 130), ("in", 110, 120), ("edge", 200, 210), ("edge", 210, 210),
            ("clock was set", 300, 300), ("no end", 400, 900)])
        found = problems(path)
        self.assertEqual({k: v[1] for k, v in found.items() if k != "partial-overlap"}, {"negative-duration": 1, "range-without-end": 1, "range-without-start": 2})

    def test_domains_interleave(self):
        s = Segment()
        for i, name in enumerate(("one", "two", "NCCL"), 1):
            s.keep(segment.DOMAIN, 0, i, "II", s.text(name), 0)
        s.push(1, "a", BASE + 10, domain=1)
        s.push(1, "b", BASE + 20, domain=2)
        s.pop(1, BASE + 30, domain=1)
        s.push(1, "ncclAllReduce", BASE + 32, domain=3)
        s.pop(1, BASE + 33, domain=3)
        s.pop(1, BASE + 40, domain=2)
        rows = sql(s.write(self.dir), "SELECT name, cat, kind, start_ns, dur_ns FROM span ORDER BY start_ns")
        self.assertEqual(rows, [("a", "one", "user", 10, 20), ("b", "two", "user", 20, 20), ("ncclAllReduce", "NCCL", "op", 32, 1)])

    def test_machine(self):
        """The processor and the driver that a capture states are in System Config, as in DLProf's files."""
        s = Segment()
        s.meta("cpu_model", "A Processor @ 3 GHz")
        s.meta("version.driver", "580.95.05")
        s.push(1, "aten::relu", BASE + 10, op=1)
        s.pop(1, BASE + 20)
        rows = {r["name"]: r["value"] for r in oracle.report("summary", s.write(self.dir), "--compat=dlprof").rows}
        self.assertEqual(rows, {"CPU Model": "A Processor @ 3 GHz", "GPU Driver Version": "580.95.05"})

    def test_nodes(self):
        """TensorFlow starts and ends the range of a node: what one thread started and ended is its op."""
        s = Segment()
        s.keep(segment.DOMAIN, 0, 1, "II", s.text("tensorflow-core"), 0)
        for number, at, name, by in ((1, 10, "MatMul: fc/MatMul", 1), (2, 30, "Recv: from/elsewhere", 2)):
            s.push(1, name, BASE + at, domain=1, kind=segment.START, number=number)
            s.event(by, segment.END, 0, 0, "qQ", BASE + at + 15, number)
        path = s.write(self.dir)
        rows = sql(path, "SELECT s.name, kind, arg(args, 'op_type'), start_ns, dur_ns, t.tid_text FROM span s JOIN track t ON t.rowid = s.track ORDER BY start_ns")
        self.assertEqual(rows, [("fc/MatMul", "op", "MatMul", 10, 15, "1"), ("from/elsewhere", "range", "Recv", 30, 15, "1 start/end")])

    def test_switches(self):
        """A range that was open when collecting was switched off ends there, whatever comes later."""
        s = Segment(last=BASE + 1000)
        for on, at in ((0, 50), (1, 70), (0, 500)):
            s.keep(segment.SWITCH, on, 1, "q", BASE + at)
        s.push(1, "outer", BASE + 10)
        s.push(1, "inner", BASE + 20)
        s.event(1, segment.SWITCH, 0, 1, "q", BASE + 50)
        s.event(1, segment.SWITCH, 1, 1, "q", BASE + 70)
        s.push(1, "later", BASE + 80)
        s.pop(1, BASE + 90)
        s.pop(1, BASE + 95)   # of "outer"
        s.push(2, "other thread", BASE + 30)
        s.push(3, "last", BASE + 100)
        s.push(3, None, BASE + 60, kind=segment.START, number=2, rest="range")
        path = s.write(self.dir)
        self.assertEqual(sql(path, "SELECT name, start_ns, start_ns + dur_ns FROM span ORDER BY start_ns"), [
            ("outer", 10, 50), ("inner", 20, 50), ("other thread", 30, 50), ("range", 60, 500), ("later", 80, 90), ("last", 100, 500)])
        self.assertEqual({k: v[:2] for k, v in problems(path).items()}, {"recorded-in-part": ("note", 3), "range-without-start": ("note", 1)})

    def test_advice_without_ops(self):
        """Ranges alone: how to record ops is said in the terms of this recorder."""
        s = Segment(last=BASE + 1000)
        s.push(1, "work", BASE + 10)
        s.pop(1, BASE + 20)
        path = s.write(self.dir)
        for name in ("ops", "operators", "layers", "modules", "pyprof", "costs"):
            with self.subTest(name):
                code, _, err = oracle.run("report", name, path)
                self.assertEqual(code, 1, err)
                self.assertIn(b"import opscope.torch; opscope.torch.init()", err)
                for other in (b"nsys", b"torch.profiler", b"profile(", b"ProfilerActivity"):
                    self.assertNotIn(other, err)

    def test_steps_and_switches(self):
        """A step ends where collecting was switched off, not where the next one that was recorded begins."""
        s = Segment(last=BASE + 1000)
        for on, at in ((0, 150), (1, 300)):
            s.keep(segment.SWITCH, on, 1, "q", BASE + at)
        for kind, flags, text, at, number in ((segment.STEP, 0, "s", 100, 1), (segment.SWITCH, 0, None, 150, None), (segment.SWITCH, 1, None, 300, None),
                                              (segment.STEP, 0, "s", 310, 4), (segment.STEP, 0, "s", 330, 5)):
            if text:
                s.event(1, kind, flags, s.text(text), "qq", BASE + at, number)
            else:
                s.event(1, kind, flags, 1, "q", BASE + at)
        path = s.write(self.dir)
        self.assertEqual(sql(path, "SELECT name, start_ns, start_ns + dur_ns FROM span ORDER BY start_ns"), [("s#1", 100, 150), ("s#4", 310, 330), ("s#5", 330, 1000)])

    def cut_steps(self, s):
        """{step: whole} of `steps`, the notes about what was cut, and how many `summary` counts."""
        s.push(2, "aten::mm", BASE + 1, seq=1)
        s.pop(2, BASE + 2)
        path = s.write(tempfile.mkdtemp(dir=self.dir))
        imported = path + ".opscope"
        self.assertEqual(oracle.run("import", path, "-o", imported)[0], 0)
        found = oracle.report("steps", path)
        whole = [r.get("whole") for r in found.rows]
        self.assertEqual([r.get("whole") for r in oracle.report("steps", imported).rows], whole)
        counted = oracle.report("summary", path).section("steps").rows[0]
        return dict(zip([r["step"] for r in found.rows], whole)), [n for n in found.doc["notes"] if "to its end" in n or "to their ends" in n], \
            (counted["counted"], counted["partial"], counted["max_ns"])

    def steps_until(self, why=None, state=2, last=330, key=False):
        """Steps of 100 ns, of which the third has had 30: then its recording ends."""
        s = Segment(last=BASE + last, state=state)
        for i, at in enumerate((0, 100, 200)):
            if key:
                s.push(1, f"ProfilerStep#{i}", BASE + at)
                if i < 2:
                    s.pop(1, BASE + at + 100)
            else:
                s.event(1, segment.STEP, 0, s.text("ProfilerStep"), "qq", BASE + at, i)
        if why:
            s.keep(segment.SWITCH, 0, why, "q", BASE + 230)
            s.event(1, segment.SWITCH, 0, why, "q", BASE + 230)
        return s

    def test_steps_cut_by_the_end_of_the_recording(self):
        """A step of which only the beginning was recorded counts in no sum, mean or count, and says so."""
        cut = {0: True, 1: True, 2: False}, ["Step 2 was not recorded to its end: in no sum, mean or count."], (2, 1, 100)
        for what in (dict(why=5), dict(why=6), dict(why=7), dict(why=1), dict(why=5, key=True), dict(state=1, last=230), dict(state=1, last=230, key=True), dict(key=True)):
            with self.subTest(**what):
                self.assertEqual(self.cut_steps(self.steps_until(**what)), cut)

    def test_steps_that_end_with_the_recording(self):
        """--steps ends where a step does; the last step of a process that left by exit() ends with it."""
        for what, last in ((dict(why=2), 30 + 70), (dict(), 130)):
            with self.subTest(**what):
                self.assertEqual(self.cut_steps(self.steps_until(**what)), ({0: None, 1: None, 2: None}, [], (3, 0, last)))

    def test_only_step_is_cut(self):
        s = Segment(last=BASE + 30, state=1)
        s.event(1, segment.STEP, 0, s.text("ProfilerStep"), "qq", BASE, 7)
        self.assertEqual(self.cut_steps(s), ({7: False}, ["Step 7 was not recorded to its end: as no step is whole, the figures are of such parts."], (1, 0, 30)))

    def test_many_cut_steps(self):
        """Of each of several processes the last one."""
        folder = tempfile.mkdtemp(dir=self.dir)
        for pid in (100, 101, 102):
            s = Segment(pid=pid, state=1, last=BASE + 1000 * pid)
            for at in (0, 10):
                s.push(1, f"ProfilerStep#{pid + at}", BASE + 1000 * pid + at)
                if not at:
                    s.pop(1, BASE + 1000 * pid + 10)
            s.write(folder)
        found = oracle.report("steps", folder)
        self.assertEqual([(r["step"], r["whole"]) for r in found.rows],
                         [(100, True), (110, False), (101, True), (111, False), (102, True), (112, False)])
        self.assertIn("3 steps, the first 110 and the last 112, were not recorded to their ends: in no sum, mean or count.", found.doc["notes"])

    def test_open_at_the_end(self):
        s = Segment(last=BASE + 900, state=1)
        s.push(1, "open", BASE + 10)
        s.push(1, None, BASE + 20, kind=segment.START, number=4, rest="started")
        s.push(2, "short", BASE + 100)
        s.pop(2, BASE + 950)
        path = s.write(self.dir)
        self.assertEqual(sql(path, "SELECT name, start_ns + dur_ns FROM span ORDER BY start_ns"), [("open", 950), ("started", 950), ("short", 950)])
        found = problems(path)
        self.assertEqual({k: v[:2] for k, v in found.items()}, {"range-without-end": ("repaired", 2), "no-exit": ("note", 1)})

    def test_processes_that_live(self):
        """A segment without an end is still written to when its process is there: not one that has ended and was not waited for, nor another one of that number."""
        with open("/proc/sys/kernel/random/boot_id") as f:
            boot = f.read().strip()

        def planted(pid, steady):
            s = Segment(pid=pid, state=1, boot=boot, steady=steady, host=os.uname().nodename)
            s.push(1, "open", BASE + 10)
            path = s.write(tempfile.mkdtemp(dir=self.dir))
            return {k: v[2] for k, v in problems(path).items()}
        lives, gone = {"range-without-end", "still-recording"}, {"range-without-end", "no-exit"}
        child = subprocess.Popen(["true"])
        self.addCleanup(child.wait)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        self.assertEqual(set(planted(child.pid, now)), gone)
        said = planted(os.getpid(), now)
        self.assertEqual(set(said), lives)
        self.assertEqual(said["range-without-end"], "a range was still open when the capture of a process that still runs was read: it ends there")
        self.assertEqual(set(planted(os.getpid(), now - 10 ** 16)), gone)  # began when this process was not there

    def test_numbers(self):
        s = Segment()
        s.event(9, segment.COUNTER, 3, s.text("loss"), "q8sII", BASE + 5, F64(0.125), 0, s.text("nats"))
        s.event(9, segment.COUNTER, 2, s.text("queue"), "qqII", BASE + 6, -4, 0, 0)
        s.event(9, segment.COUNTER, 1, s.text("bytes"), "qQII", BASE + 7, 1 << 63, 0, 0)
        s.event(9, segment.STEP, 0, s.text("ProfilerStep"), "qq", BASE + 100, 3)
        s.event(9, segment.STEP, 0, s.text("ProfilerStep"), "qq", BASE + 200, 4)
        s.event(9, segment.MEMORY, 0, 0, "qqqqqhhI", BASE + 110, 0x1000, 512, 2048, 4096, 1, 2, 0)
        s.event(9, segment.MEMORY, 0, 0, "qqqqqhhI", BASE + 120, 0x1000, -512, -(1 << 63), -(1 << 63), 0, -1, 0)
        s.push(9, "work", BASE + 300)
        s.pop(9, BASE + 400)
        path = s.write(self.dir)
        self.assertEqual(sql(path, "SELECT name, time_ns, arg(args, 'value'), arg(args, 'unit') FROM mark ORDER BY time_ns"),
                         [("loss", 5, "0.125", "nats"), ("queue", 6, "-4", None), ("bytes", 7, str(1 << 63), None)])
        self.assertEqual(sql(path, "SELECT name, start_ns, dur_ns FROM span WHERE cat = 'step' ORDER BY start_ns"),
                         [("ProfilerStep#3", 100, 100), ("ProfilerStep#4", 200, 1_000_000 - 200)])
        self.assertEqual(sql(path, "SELECT time_ns, addr, bytes, total_allocated, total_reserved, device_type, device_id FROM memory ORDER BY time_ns"),
                         [(110, 4096, 512, 2048, 4096, 1, 2), (120, 4096, -512, None, None, 0, -1)])
        self.assertEqual([r["step"] for r in oracle.report("overview", path).section("steps").rows], [3, 4])

    def test_ranges_of_steps(self):
        """Steps are one row, and one part of a path; NVTX ranges of such a text are what nsys has, but in paths."""
        s = Segment()
        for step in range(3):
            s.event(9, segment.STEP, 0, 0, "qq", BASE + 1000 * step, step)
            s.push(9, "forward", BASE + 1000 * step + 100)
            s.pop(9, BASE + 1000 * step + 200 + step)
            s.push(10, f"ProfilerStep#{step}", BASE + 1000 * step + 300)
            s.push(10, "inside", BASE + 1000 * step + 310)
            s.pop(10, BASE + 1000 * step + 350)
            s.pop(10, BASE + 1000 * step + 400)
        path = s.write(self.dir)
        rows = lambda *args: sorted((r["range"], r["domain"], r["calls"]) for r in oracle.report("nvtx", path, *args).rows)
        self.assertEqual(rows(), [*((f"ProfilerStep#{i}", "", 1) for i in range(3)), ("ProfilerStep*", "step", 3), ("forward", "", 3), ("inside", "", 3)])
        self.assertEqual(rows("--group-by=path"), [("ProfilerStep*", "", 3), ("ProfilerStep*", "step", 3), ("ProfilerStep* > forward", "", 3),
                                                   ("ProfilerStep* > inside", "", 3)])
        self.assertEqual([r["total_ns"] for r in oracle.report("nvtx", path, "--group-by=path").rows if r["range"] == "ProfilerStep* > forward"], [303])
        self.assertTrue(any("Total % is of the sum of all totals" in n for n in oracle.report("nvtx", path).notes))

    def device(self, s, device=0, name="NVIDIA H100", uuid=b"u" * 16, nvml=0):
        s.keep(segment.DEVICE, 0, s.text(name), "IIQQIIIIII16s", device, nvml, 80 << 30, 3_000_000_000_000, 9, 0, 132, 1_980_000, 64, 32, uuid)

    def kernel(self, s, tid, name, start, end, corr=0, device=0, context=1, stream=7, grid=(4, 1, 1), block=(128, 1, 1), graph=0, node=0):
        s.event(tid, segment.KERNEL, 0, s.text(name), "qqIIII3I3IIIII3IIQ", start, end, corr, device, context, stream, *grid, *block, 32, 100, 28, 0, 0, 0, 0, graph, node)

    def test_device_work(self):
        s = Segment(pid=55)
        self.device(s)
        s.keep(segment.CONTEXT, 0, 1, "II", 0, 7)
        s.keep(segment.STREAM, 0, 7, "IIiI", 1, 0, 0, 0)
        s.push(55, "aten::mm", BASE + 100, seq=1, sizes="[[2, 3], [3, 4]]")
        s.pop(55, BASE + 200)
        s.event(56, segment.API, 0, 211, "qqIIII", BASE + 110, BASE + 120, 77, 55, 0, s.text("cudaLaunchKernel"))
        s.event(56, segment.API, 1, 307, "qqIIII", BASE + 130, BASE + 140, 78, 55, 2, 0)
        self.kernel(s, 56, "_Z3addIfEvPT_", BASE + 150, BASE + 170, corr=77)
        s.event(56, segment.COPY, 1, 0, "qqQIIIIBBBBIQII", BASE + 180, BASE + 190, 4096, 78, 0, 1, 7, 1, 3, 1, 0, 0, 0, 0, 0)
        s.event(56, segment.COPY, 10, 0, "qqQIIIIBBBBIQII", BASE + 191, BASE + 192, 64, 79, 0, 1, 7, 3, 3, 1, 1, 0, 0, 0, 1)
        s.event(56, segment.SET, 3, 0, "qqQIIIIIIQ", BASE + 195, BASE + 196, 256, 80, 0, 1, 7, 0, 0, 0)
        s.event(56, segment.SYNC, 3, segment.NONE32, "qqIIII", BASE + 200, BASE + 210, 81, 1, 7, 0)
        s.event(56, segment.OVERHEAD, 0, s.text("Instrumentation"), "qqII", BASE + 220, BASE + 230, 55, 0)
        s.event(56, segment.DEVICE_MEMORY, 3, 0, "qQqIIIIII", BASE + 240, 0xA000, 1 << 20, 0, 1, 7, 82, 55, 0)
        path = s.write(self.dir)
        self.assertEqual(sql(path, "SELECT g.name, kind, start_ns, dur_ns, corr_id, t.tid, l.bytes, l.grid_x, l.block_x, l.registers, l.shared_bytes, l.device, l.context, "
                             "l.stream, l.pid, l.blocks_per_sm, l.warps_per_sm FROM gpu_op g JOIN launch l ON l.rowid = g.launch JOIN track t ON t.rowid = g.track ORDER BY start_ns"), [
            ("void add<float>(float*)", "kernel", 150, 20, 77, 7, None, 4, 128, 32, 128, 0, 1, 7, 55, 4 / 132, 4 / 132 * 4),
            ("Memcpy HtoD (Pageable -> Device)", "memcpy", 180, 10, 78, 7, 4096, None, None, None, None, 0, 1, 7, 55, None, None),
            ("Memcpy PtoP (Device -> Device)", "memcpy", 191, 1, 79, 7, 64, None, None, None, None, 0, 1, 7, 55, None, None),
            ("Memset (Device)", "memset", 195, 1, 80, 7, 256, None, None, None, None, 0, 1, 7, 55, None, None)])
        self.assertEqual(sql(path, "SELECT s.name, cat, kind, start_ns, dur_ns, link_id, arg(args, 'Return value'), t.tid FROM span s JOIN track t ON t.rowid = s.track "
                             "WHERE kind != 'op' ORDER BY start_ns"), [
            ("cudaLaunchKernel", "cuda_runtime", "call", 110, 10, 77, None, 55), ("cuLaunchKernel", "cuda_driver", "call", 130, 10, 78, "2", 55),
            ("Stream Sync", "cuda_sync", "sync", 200, 10, 81, None, 7), ("Instrumentation", "overhead", "overhead", 220, 10, None, None, 55)])
        self.assertEqual(sql(path, "SELECT time_ns, addr, bytes, device_type, device_id FROM memory"), [(240, 0xA000, 1 << 20, 1, 0)])
        self.assertEqual(sql(path, "SELECT id, name, memory_bytes, cc_major, cc_minor, sm_count, max_threads_per_sm, warp_size FROM device"),
                         [(0, "NVIDIA H100", 80 << 30, 9, 0, 132, 2048, 32)])
        kernels = oracle.report("kernels", path).rows
        self.assertEqual([(k["name"], k["total_ns"]) for k in kernels], [("void add<float>(float*)", 20)])
        self.assertEqual(sql(path, "SELECT s.name FROM gpu_op g JOIN span s ON s.rowid = g.op WHERE g.kind = 'kernel'"), [("aten::mm",)])

    def test_arguments_of_device_work(self):
        s = Segment(pid=5)
        self.device(s)
        self.device(s, 1, uuid=b"v" * 16, nvml=1)
        for at, asynchronous, peer in ((10, 1, 0), (20, 0, 0), (30, 0, 1)):
            s.event(6, segment.COPY, 1, 0, "qqQIIIIBBBBIQII", BASE + at, BASE + at + 1, 8, at, 0, 1, 7, 1, 3, asynchronous, peer, 0, 0, 0, peer)
        for flags, device in ((2, 1), (3, 1)):  # of a thread, of a device
            s.event(6, segment.OVERHEAD, flags, s.text("JIT"), "qqII", BASE + 40 + flags, BASE + 50, 0, device)
        path = s.write(self.dir)
        self.assertEqual(sql(path, "SELECT arg(args, 'async'), arg(args, 'fromDevice'), arg(args, 'toDevice') FROM gpu_op ORDER BY start_ns"),
                         [(None, None, None), ("0", None, None), ("0", "0", "1")])
        self.assertEqual(sql(path, "SELECT arg(args, 'device') FROM span ORDER BY start_ns"), [(None,), ("1",)])

    def test_streams(self):
        """What is known of a stream is in its name: of the device, by whatever record, the last name of several."""
        s = Segment(pid=55)
        self.device(s)
        self.device(s, 1, uuid=b"v" * 16, nvml=1)
        for context in (1, 2):
            s.keep(segment.CONTEXT, 0, context, "II", context - 1, 7)
        for stream, context, flags, priority in ((20, 1, 2, -5), (21, 2, 3, 0), (22, 9, 1, -1)):
            s.keep(segment.STREAM, 0, stream, "IIiI", context, flags, priority, 0)
        for name, device, stream in (("first", 0, 20), ("second", 0, 20), ("of the other", 1, 20), ("ünd", 1, 21)):
            s.keep(segment.RESOURCE, 0, s.text(name), "IIQ", 0, 0x40000005, device << 32 | stream)
        for i, (device, stream) in enumerate(((0, 7), (0, 20), (0, 22), (1, 7), (1, 20), (1, 21))):
            self.kernel(s, 56, "k", BASE + 100 + i, BASE + 101 + i, device=device, stream=stream)
        path = s.write(self.dir)
        self.assertEqual(sql(path, "SELECT process_labels, thread_name FROM track WHERE process_labels LIKE 'GPU%' ORDER BY pid, tid"), [
            ("GPU 0", "stream 7 (default)"), ("GPU 0", "stream 20: second, priority -5"), ("GPU 0", "stream 22"), ("GPU 1", "stream 7 (default)"),
            ("GPU 1", "stream 20: of the other"), ("GPU 1", "stream 21 (default): ünd")])

    def test_kernel_launched_by_a_kernel(self):
        s = Segment(pid=5)
        self.device(s)
        s.push(5, "aten::captured", BASE + 10, seq=1)
        s.event(5, segment.GRAPH_NODE, 0, 1, "qQQ", BASE + 20, 900, 0)
        s.pop(5, BASE + 30)
        self.kernel(s, 6, "k", BASE + 100, BASE + 110, corr=3, graph=2, node=900)
        s.threads[6][-1] = s.threads[6][-1][:1] + b"\1" + s.threads[6][-1][2:]
        path = s.write(self.dir)
        self.assertEqual(sql(path, "SELECT arg(args, 'Captured in'), arg(args, 'Launched by') FROM gpu_op"), [("aten::captured", "device")])

    def test_events_that_are_waited_for(self):
        """The last recording before the wait, of that context and event, by the time of its call, wherever that stands in the segment."""
        s = Segment(pid=5)
        self.device(s)
        s.keep(segment.CONTEXT, 0, 1, "II", 0, 7)
        for correlation, context, event, stream in ((1, 1, 9, 7), (2, 1, 9, 8), (3, 2, 9, 20), (4, 1, 10, 21), (99, 1, 9, 22)):
            s.event(6, segment.CUDA_EVENT, 0, event, "IIII", correlation, context, stream, 0)
        for at, context, event in ((150, 1, 9), (250, 1, 9), (350, 1, 10), (50, 1, 9), (360, 3, 9)):
            s.event(6, segment.SYNC, 1, event, "qqIIII", BASE + at, BASE + at + 5, 100 + at, context, segment.NONE32, segment.NONE32)
        for correlation in (1, 2, 3, 4):
            s.event(7, segment.API, 0, 135, "qqIIII", BASE + 100 * correlation - 10, BASE + 100 * correlation, correlation, 5, 0, 0)
        path = s.write(self.dir)
        rows = sql(path, "SELECT start_ns, arg(args, 'wait_on_stream'), arg(args, 'wait_on_cuda_event_record_corr_id') FROM span WHERE kind = 'sync' ORDER BY start_ns")
        self.assertEqual(rows, [(50, None, None), (150, "7", "1"), (250, "8", "2"), (350, None, None), (360, None, None)])

    def test_graphs(self):
        """What is replayed names the range in which its node was made; a copy of a node that of the original."""
        s = Segment(pid=5)
        self.device(s)
        s.push(5, "aten::captured", BASE + 10, seq=1)
        s.event(5, segment.GRAPH_NODE, 0, 1, "qQQ", BASE + 20, 900, 0)
        s.pop(5, BASE + 30)
        s.event(5, segment.GRAPH_NODE, 0, 2, "qQQ", BASE + 40, 901, 900)
        self.kernel(s, 6, "k", BASE + 100, BASE + 110, corr=3, graph=2, node=901)
        self.kernel(s, 6, "other", BASE + 120, BASE + 130, corr=3, graph=2, node=950)
        s.event(6, segment.GRAPH, 0, 4, "qqIIII", BASE + 200, BASE + 250, 8, 0, 1, 7)
        path = s.write(self.dir)
        self.assertEqual(sql(path, "SELECT g.name, arg(g.args, 'Captured in'), l.graph_id, l.graph_node_id FROM gpu_op g JOIN launch l ON l.rowid = g.launch ORDER BY start_ns"),
                         [("k", "aten::captured", 2, 901), ("other", None, 2, 950), ("CUDA graph 4", None, 4, None)])
        self.assertIn("whole-graphs", problems(path))

    def test_replays_are_of_the_ops_that_made_their_nodes(self):
        """By the id of the node, through its copies; what no op made, and what no one saw made, is unknown."""
        s = Segment(pid=5)
        self.device(s)
        for n, op in enumerate(("aten::first", "aten::second")):
            s.push(5, op, BASE + 10 + 100 * n, seq=1 + n)
            s.event(5, segment.GRAPH_NODE, 0, 1, "qQQ", BASE + 20 + 100 * n, 900 + n, 0)
            s.pop(5, BASE + 30 + 100 * n)
        s.event(5, segment.GRAPH_NODE, 0, 1, "qQQ", BASE + 205, 902, 0)
        for node in (900, 901, 902):
            s.event(5, segment.GRAPH_NODE, 0, 2, "qQQ", BASE + 210, node + 50, node)
        for launch in range(2):
            at = BASE + 1000 + 500 * launch
            s.event(5, segment.API, 0, 311, "qqIIII", at, at + 50, 30 + launch, 5, 0, s.text("cudaGraphLaunch_v10000"))
            for i, node in enumerate((951, 950, 952, 999)):
                self.kernel(s, 6, f"k{node}", at + 100 + 20 * i, at + 110 + 20 * i, corr=30 + launch, graph=2, node=node)
        path = s.write(self.dir)
        self.assertEqual(sql(path, "SELECT g.name, o.name, g.evidence FROM gpu_op g LEFT JOIN span o ON o.rowid = g.op ORDER BY g.start_ns"),
                         [("k951", "aten::second", "node"), ("k950", "aten::first", "node"), ("k952", None, "unknown"), ("k999", None, "unknown")] * 2)

    def test_two_processes_and_their_devices(self):
        """Ordinals are each process's own: the uuid says which GPU is meant."""
        for pid, order in ((10, (b"a" * 16, b"b" * 16)), (11, (b"b" * 16, b"c" * 16))):
            s = Segment(pid=pid, start=BASE + pid)
            s.text(f"only in {pid}")  # the same number is another text in each
            for i, uuid in enumerate(order):
                self.device(s, i, f"GPU {uuid[:1].decode()}", uuid, segment.NONE32)
            self.kernel(s, pid, f"k{pid}", BASE + 100 + pid, BASE + 120 + pid, corr=1, device=1)
            self.kernel(s, pid, "first", BASE + 200 + pid, BASE + 220 + pid, corr=2, device=0)
            s.event(pid, segment.API, 0, 60000, "qqIIII", BASE + 50, BASE + 60, 1, pid, 0, s.text(f"call of {pid}"))
            s.write(self.dir)
        self.assertEqual(sql(self.dir, "SELECT id, name FROM device ORDER BY id"), [(0, "GPU a"), (1, "GPU b"), (2, "GPU c")])
        rows = sql(self.dir, "SELECT g.name, g.start_ns, l.device, l.pid, c.name FROM gpu_op g JOIN launch l ON l.rowid = g.launch LEFT JOIN span c ON c.rowid = g.call "
                   "ORDER BY g.start_ns")
        self.assertEqual(rows, [("k10", 100, 1, 10, "call of 10"), ("k11", 101, 2, 11, "call of 11"), ("first", 200, 0, 10, None), ("first", 201, 1, 11, None)])

    def test_samples(self):
        s = Segment()
        self.device(s, nvml=3, device=1)
        s.event(4, segment.GPU_SAMPLE, 0, 0b11000001, "qIIIIIIIIQQ", BASE + 5, 3, 87, 0, 0, 0, 0, 0, 0, 5 << 30, 4)
        s.keep(segment.MAPPING, 0, s.text("/usr/lib/libx.so"), "QQQ", 0x1000, 0x2000, 0x40)
        s.keep(segment.MAPPING, 0, s.text("/bin/p"), "QQQ", 0x100, 0x200, 0)
        frames = (segment.FRAME_TEXT | s.text("train.py:12 step"), 0x1010, 0x180, 0x5000)
        s.event(4, segment.CPU_SAMPLE, 0, 44, "qII4Q", BASE + 9, 4, 1000, *frames)
        path = s.write(self.dir)
        self.assertEqual(sql(path, "SELECT m.name, time_ns, arg(args, 'value'), arg(args, 'device'), arg(args, 'Call stack'), t.tid, phase FROM mark m JOIN track t ON t.rowid = m.track "
                             "ORDER BY time_ns, m.rowid"), [
            ("gpu_utilization_pct", 5, "87", "1", None, None, "C"), ("gpu_memory_used_bytes", 5, str(5 << 30), "1", None, None, "C"),
            ("gpu_throttle_reasons", 5, "4", "1", None, None, "C"),
            ("train.py:12 step", 9, None, None, "train.py:12 step;libx.so+0x50;p+0x80;0x5000", 44, "P")])

    def test_what_it_cost_and_lost(self):
        s = Segment(calls=1000, cost=150_000, helper=7_000_000, lost={0: 5, 3: 2, 20: 1})
        s.keep(segment.NOTE, 0, s.text("cupti-busy"), "qII", BASE, s.text("another profiler is attached"), 1)
        s.keep(segment.NOTE, 0, s.text("clock"), "qII", BASE, s.text("a remark"), 0)
        s.push(1, "r", BASE + 1)
        s.pop(1, BASE + 2)
        path = s.write(self.dir)
        found = problems(path)
        self.assertEqual({k: v[:2] for k, v in found.items()}, {"lost-size": ("lost", 5), "lost-texts": ("lost", 2), "lost-other": ("lost", 1), "cupti-busy": ("lost", 1),
                                                                "clock": ("note", 1)})
        for name in ("nvtx", "overview"):
            notes = oracle.report(name, path).notes
            self.assertIn("another profiler is attached", notes)
            self.assertIn("recorded by opscope: its library took about 0.150 ms of the program's time in 1000 calls and its start, and 7.000 ms in a thread of its own; lost: "
                          "5 events that came after the capture had reached its greatest size (--max-size); 2 texts for which there was no room", notes)

    def test_cost_of_what_goes_on(self):
        """Threads tell now and then what they did: less than all of it stands there before the end."""
        def note(**more):
            s = Segment(calls=10, cost=1_000_000, helper=2_000_000, **more)
            s.push(1, "r", BASE + 1)
            s.pop(1, BASE + 2)
            return [n for n in oracle.report("nvtx", s.write(tempfile.mkdtemp(dir=self.dir))).notes if n.startswith("recorded by")]
        with open("/proc/sys/kernel/random/boot_id") as f:
            boot = f.read().strip()
        rest = "its library took at least 1.000 ms of the program's time in at least 10 calls and its start, and 2.000 ms in a thread of its own; no event was lost"
        self.assertEqual(note(state=1), ["recorded by opscope: " + rest])
        self.assertEqual(note(state=1, pid=os.getpid(), boot=boot, host=os.uname().nodename, steady=time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)),
                         ["recorded by opscope from a program that still ran when this was read: " + rest])

    def test_ends_that_were_lost(self):
        """Where events are missing a start without its end is no range until the end of the process; what was pushed is: a pop is never lost."""
        def planted(**lost):
            s = Segment(last=BASE + 1000, **lost)
            s.push(1, "pushed", BASE + 10)
            for number, name in ((4, "whole"), (6, "no end")):
                s.push(1, None, BASE + 10 * number, kind=segment.START, number=number, rest=name)
            s.event(1, segment.END, 0, 0, "qQ", BASE + 70, 4)
            for number in (1, 2):
                s.event(1, segment.STEP, 0, s.text("s"), "qq", BASE + 100 * number, number)
            path = s.write(self.dir)
            return sql(path, "SELECT name, start_ns, dur_ns FROM span ORDER BY start_ns"), {k: v[1] for k, v in problems(path).items() if k.startswith("range-")}
        sure = [("pushed", 10, 990), ("whole", 40, 30), ("s#1", 100, 100)]
        no_end, last_step = ("no end", 60, 940), ("s#2", 200, 800)
        for reason in (3, 4, 5, 9, 11, 12, 13):  # texts, domains, depth, those of devices, samples: no range's end
            self.assertEqual(planted(lost={reason: 1}), (sorted([*sure, no_end, last_step], key=lambda r: r[1]), {"range-without-end": 2}), reason)
        for reason in (0, 1, 6, 7, 8):
            self.assertEqual(planted(lost={reason: 1}), (sure, {"range-without-end": 1, "range-end-unknown": 2}), reason)
        self.assertEqual(planted(lost={2: 4096}), ([*sure, last_step], {"range-without-end": 1, "range-end-unknown": 1}))

    def test_clock(self):
        s = Segment()
        s.keep(segment.ANCHOR, 0, 0, "qq", BASE + 2_000_000_000, 5_000_000 + 1_000_000_000)
        s.push(1, "r", BASE + 1)
        s.pop(1, BASE + 2)
        self.assertIn("1000000000 ns away from a steady one after 1000000000 ns", problems(s.write(self.dir))["clock-moved"][2])

    def test_clock_that_follows_another_one(self):
        """20 ms away after 100 s is no more than what the network may do; a step is between two anchors."""
        s = Segment()
        for wall, steady in ((100_020_000_000, 100_000_000_000), (500_100_000_000, 500_000_000_000)):
            s.keep(segment.ANCHOR, 0, 0, "qq", BASE + wall, 5_000_000 + steady)
        s.push(1, "r", BASE + 1)
        s.pop(1, BASE + 2)
        self.assertEqual(problems(s.write(self.dir)), {})
        s.keep(segment.ANCHOR, 0, 0, "qq", BASE + 501_090_000_000, 5_000_000 + 501_000_000_000)
        self.assertIn("-10000000 ns away from a steady one after 501000000000 ns", problems(s.write(self.dir))["clock-moved"][2])

    def test_switch_without_a_time(self):
        """What was open ends when the process switched collecting off next."""
        s = Segment(last=BASE + 900)
        for at, on in ((20, 0), (30, 1), (60, 0), (70, 1)):
            s.keep(segment.SWITCH, on, 1, "q", BASE + at)
        s.push(1, "first", BASE + 10)
        s.event(1, segment.SWITCH, 0, 0, "q", 0)
        s.event(1, segment.SWITCH, 1, 1, "q", BASE + 30)
        s.push(1, "second", BASE + 40)
        s.event(1, segment.SWITCH, 0, 0, "q", 0)
        s.event(1, segment.SWITCH, 1, 1, "q", BASE + 70)
        s.push(1, "third", BASE + 80)
        s.pop(1, BASE + 90)
        self.assertEqual(sql(s.write(self.dir), "SELECT name, start_ns, dur_ns FROM span ORDER BY start_ns"), [("first", 10, 10), ("second", 40, 20), ("third", 80, 10)])


class Ring(CaptureCase):
    def test_gap_in_a_step(self):
        s = Segment(last=BASE + 100)
        text = s.text("s")
        s.kept_bytes = b"".join(s.kept)
        at = segment.BLOCK + len(s.chunk(segment.KEEP, s.kept_bytes, 0, 1))
        step = lambda ns, number: segment.record(segment.STEP, 0, text, struct.pack("<qq", BASE + ns, number))  # noqa: E731
        first = s.chunk(segment.EVENTS, step(10, 1), at, 2, 1, 1, 4)
        s.chunks = [first, s.chunk(segment.EVENTS, step(50, 5), at + len(first), 9, 1, 1, 6)]
        path = s.write(self.dir)
        self.assertEqual(sql(path, "SELECT name, start_ns, dur_ns FROM span"), [("s#5", 50, 50)])
        self.assertEqual(problems(path)["range-cut-by-ring"][1], 1)

    def test_gap(self):
        """A chunk of the thread is missing: the ends of what was open before it are not known, and later pops belong to nothing."""
        s = Segment()
        text = {t: s.text(t) for t in ("before", "after", "inner")}
        s.kept_bytes = b"".join(s.kept)
        at = segment.BLOCK + len(s.chunk(segment.KEEP, s.kept_bytes, 0, 1))
        record, push = segment.record, lambda t, ns: segment.record(segment.PUSH, 0, text[t], struct.pack("<q", BASE + ns))
        pop = lambda ns: record(segment.POP, 0, 0, struct.pack("<q", BASE + ns))  # noqa: E731
        first = s.chunk(segment.EVENTS, push("before", 10), at, 2, 1, 1, 4)
        second = s.chunk(segment.EVENTS, pop(15) + push("after", 20) + push("inner", 25) + pop(30) + pop(40) + pop(50), at + len(first), 9, 1, 1, 6)
        s.chunks = [first, second]
        path = s.write(self.dir)
        self.assertEqual(sql(path, "SELECT name, start_ns, dur_ns FROM span ORDER BY start_ns"), [("after", 20, 20), ("inner", 25, 5)])
        found = problems(path)
        self.assertEqual((found["range-cut-by-ring"][:2], found["range-without-start"][:2]), (("lost", 1), ("note", 2)))


class Format(oracle.Case):
    def test_types(self):
        """Each type of record in the description is written by somebody, and read."""
        def text(*folders):
            return "".join(open(f, encoding="utf-8").read() for d in folders for f in sorted(glob.glob(os.path.join(oracle.ROOT, d, "*.c"))))
        with open(os.path.join(oracle.ROOT, "include", "opscope", "wire.h"), encoding="utf-8") as f:
            types = re.findall(r"^\t(WIRE_[A-Z_]+)(?: = \d+)?,", re.search(r"enum wire_type {(.*?)^};", f.read(), re.S | re.M).group(1), re.M)
        self.assertGreater(len(types), 30)
        written, read = text("collect", "src/record"), text("src/input/capture")
        for name in types:
            self.assertRegex(written, rf"\b{name}\b")
            self.assertRegex(read, rf"ROW\({name},")


class Runs(CaptureCase):
    def plant(self, pid, rank=-1, world=-1, **kw):
        s = Segment(pid=pid, start=BASE + pid, rank=rank, world=world, **kw)
        s.meta("argv", b"/usr/bin/python3\0train.py\0")
        s.push(pid, f"range of {pid}", BASE + 1000 + pid)
        s.pop(pid, BASE + 2000 + pid)
        return s.write(self.dir)

    def test_ranks_are_traces(self):
        for pid, rank in ((20, 0), (21, 1), (22, 0), (23, -1)):
            self.plant(pid, rank, 2 if rank >= 0 else -1)
        code, _, err = oracle.run("report", "nvtx", self.dir)
        self.assertEqual((code, "3 traces where one was expected" in err.decode()), (2, True), err)
        for rank, names in ((0, [("range of 20", 1000), ("range of 22", 1002)]), (1, [("range of 21", 1001)])):
            out = json.loads(oracle.run("report", "nvtx", self.dir, f"--rank={rank}", "--format=json")[1])
            self.assertEqual(sorted(r[0] for r in out["rows"]), [n for n, _ in names])
        path = os.path.join(self.dir, f"node-21-{BASE + 21}.seg")
        self.assertEqual(dict(sql(path, "SELECT key, value FROM meta"))["distributedInfo"], '{"rank": 1, "world_size": 2}')
        # Times are those of the run: rank 1 began later than the first process of it.
        self.assertEqual(sql(path, "SELECT start_ns, t.process_name FROM span JOIN track t ON t.rowid = track"), [(1001, "python3")])

    def test_one_of_several(self):
        """The first segment stands for all; another one for itself."""
        first, second = self.plant(30), self.plant(31)
        self.assertEqual(len(sql(first, "SELECT 1 FROM span")), 2)
        self.assertEqual(sql(second, "SELECT name FROM span"), [("range of 31",)])
        self.assertEqual(len(sql(self.dir, "SELECT 1 FROM span")), 2)

    def test_unreadable_ones(self):
        self.plant(30)
        with open(os.path.join(self.dir, f"node-31-{BASE + 31}.seg"), "wb") as f:
            f.write(Segment().bytes()[:300])
        open(os.path.join(self.dir, f"node-32-{BASE + 32}.seg"), "wb").close()
        self.assertEqual(sql(self.dir, "SELECT name FROM span"), [("range of 30",)])

    def sampler(self, pid, start, name, tid=None):
        """What samples of stacks leave of a process: no facts, and names of threads as the system has them."""
        s = Segment(pid=pid, start=start, host="samples")
        s.keep(segment.THREAD_NAME, 1, s.text(name), "II", tid or pid, 0)
        s.event(pid, segment.CPU_SAMPLE, 0, tid or pid, "qIIQ", start + 10, 1, 1000, segment.FRAME_TEXT | s.text("f"))
        return s.write(self.dir)

    def test_samples_without_an_end(self):
        """Who took the samples was killed: they are there, as addresses in files, and that something is missing is told."""
        s = Segment(pid=9, state=1)
        s.keep(segment.MAPPING, 0, s.text("/usr/lib/libm.so.6"), "QQQ", 0x1000, 0x2000, 0x500)
        s.event(9, segment.CPU_SAMPLE, 0, 9, "qIIQ", BASE + 5, 1, 1000, 0x1010)
        path = s.write(self.dir)
        self.assertEqual(oracle.report("samples", path).rows[0]["function"], "libm.so.6+0x510")
        found = problems(path)
        self.assertEqual((found["samples-not-ended"][:2], "no-exit" in found), (("lost", 1), False))
        self.assertIn("`opscope record` was killed", found["samples-not-ended"][2])

    def test_no_samples_yet(self):
        """Of a process that still runs they may be there a second later."""
        with open("/proc/sys/kernel/random/boot_id") as f:
            boot = f.read().strip()
        s = Segment(pid=os.getpid(), state=1, host=os.uname().nodename, boot=boot, steady=time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW))
        s.push(1, "a", BASE + 1)
        code, out, err = oracle.run("report", "samples", s.write(self.dir))
        self.assertEqual((code, out), (1, b""))
        self.assertIn(b"holds no samples of stacks yet; ", err)

    def test_samples_beside(self):
        """The facts of a run are those of the first process that tells any; a thread's name is the program's, whoever else knows one."""
        self.sampler(30, BASE, "comm")
        s = Segment(pid=30, start=BASE + 5)
        s.meta("argv", b"/usr/bin/python3\0train.py\0")
        s.keep(segment.THREAD_NAME, 0, s.text("trainer"), "II", 30, 0)
        s.keep(segment.THREAD_NAME, 1, s.text("python3"), "II", 30, 0)
        s.keep(segment.THREAD_NAME, 1, s.text("python3"), "II", 31, 0)
        for tid in (30, 31):
            s.push(tid, f"r{tid}", BASE + 20)
            s.pop(tid, BASE + 30)
        s.write(self.dir)
        self.sampler(30, BASE + 7, "later comm")
        self.sampler(30, BASE + 8, "reader", tid=31)
        self.assertEqual(dict(sql(self.dir, "SELECT key, value FROM meta WHERE key LIKE 'capture:a%'")), {"capture:argv": "/usr/bin/python3 train.py"})
        self.assertEqual(sql(self.dir, "SELECT tid, thread_name FROM track WHERE pid = 30 ORDER BY tid"), [(30, "trainer"), (31, "reader")])

    def test_thousands(self):
        """Four times as many processes take some four times as long to find."""
        if oracle.SANITIZED:
            self.skipTest("times are those of the plain build")
        times = []
        for n in (500, 2000):
            folder = os.path.join(self.dir, str(n))
            os.mkdir(folder)
            for pid in range(1, n + 1):
                Segment(pid=pid, start=BASE + pid).write(folder)
            times.append(min(cpu_s("info", folder) for _ in range(3)))
        self.assertLess(times[1], 8 * times[0] + 0.2)

    def test_slurm(self):
        """A batch script, and the only task of a step, are no ranks; the tasks of a step are."""
        for env, info in (({"SLURM_NTASKS": "4"}, None), ({"SLURM_NTASKS": "1", "SLURM_STEP_NUM_TASKS": "1"}, None),
                          ({"SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "4"}, '{"rank": 0, "world_size": 4}')):
            folder = self.guest("guest", "ends", "exit", "1", status=7, SLURM_PROCID="0", **env)
            self.assertEqual(dict(sql(folder, "SELECT key, value FROM meta")).get("distributedInfo"), info)

    def test_saved(self):
        self.plant(30)
        saved = os.path.join(self.dir, "run.opscope")
        self.assertEqual(oracle.run("import", os.path.join(self.dir, f"node-30-{BASE + 30}.seg"), "-o", saved)[0], 0)
        self.assertEqual(oracle.report("nvtx", saved).doc["rows"], oracle.report("nvtx", os.path.join(self.dir, f"node-30-{BASE + 30}.seg")).doc["rows"])
        self.assertTrue(any(n.startswith("recorded by opscope") for n in oracle.report("nvtx", saved).notes))


class Hostile(CaptureCase):
    """Whatever stands in a segment: what can be read is, the rest is counted, and memory stays in proportion."""

    def good(self):
        s = Segment()
        s.keep(segment.DOMAIN, 0, 1, "II", s.text("d"), 0)
        for i in range(20):
            s.push(1, f"range {i}", BASE + 10 * i, domain=i % 2)
            s.pop(1, BASE + 10 * i + 5, domain=i % 2)
        return s

    def read(self, data, *expect_codes):
        path = os.path.join(self.dir, f"h-1-{BASE}.seg")
        with open(path, "wb") as f:
            f.write(data)
        code, out, err = oracle.run("report", "nvtx", path, "--format=json")
        self.assertIn(code, expect_codes or (0, 1), err)
        if code:
            self.assertEqual(err.count(b"\n"), 1, err)
            return None
        return json.loads(out)

    def test_cut_anywhere(self):
        data = self.good().bytes()
        for n in [*range(0, 700, 97), *range(700, len(data), 331)]:
            self.read(data[:n])

    def test_damage(self):
        good = self.good().bytes()
        for at in range(0, len(good), 61):
            if 600 <= at < segment.BLOCK:
                continue  # nothing stands there
            for value in (0, 0xFF):
                self.read(good[:at] + bytes([value]) * 4 + good[at + 4:])

    def test_sizes_that_lie(self):
        s = self.good()
        for mutate in (
            lambda t: t.kept.append(segment.record(segment.STRING, 0, 99, struct.pack("<II", 0xFFFFFFFF, 0))),
            lambda t: t.kept.append(segment.record(segment.DOMAIN, 0, 0xFFFFFFFF, struct.pack("<II", 1, 0))),
            lambda t: t.event(1, segment.CPU_SAMPLE, 0, 1, "qII", BASE, 0xFFFFFFFF, 0),
            lambda t: t.event(1, segment.PUSH, 0xFF, 1, "q", BASE),
            lambda t: t.event(1, segment.PUSH, segment.HAS_TEXT, 0, "qII", BASE, 0xFFFFFFF0, 0),
            lambda t: t.event(1, segment.PUSH, segment.HAS_DOMAIN, 1, "qII", BASE, 0xFFFFFFFF, 0),
            lambda t: t.event(1, segment.POP, 0, 0xFFFFFFFF, "q", BASE),
            lambda t: t.event(1, 255, 0, 0, "q", BASE),
            lambda t: t.event(1, segment.KERNEL, 0, 1, "q", BASE),
            lambda t: t.event(1, segment.PUSH, 0, 1234567, "q", BASE + 500),
            lambda t: t.event(1, segment.PUSH, 0, 1, "q", (1 << 63) - 1),
            lambda t: t.threads[1].append(b"\x10\0\0\0\0\0\0\0"),
        ):
            t = self.good()
            mutate(t)
            doc = self.read(t.bytes(), 0)
            self.assertGreaterEqual(len(doc["rows"]), 20)
            kinds = set(problems(os.path.join(self.dir, f"h-1-{BASE}.seg")))
            self.assertTrue(kinds & {"damaged-record", "unknown-record", "unknown-text", "bad-time"}, kinds)
        del s

    def test_headers_that_lie(self):
        for at, value in ((12, 0), (16, 0), (16, 1 << 30), (20, 0), (20, 3), (8, 99)):
            data = bytearray(self.good().bytes())
            struct.pack_into("<I", data, at, value)
            self.read(bytes(data))
        huge = bytearray(self.good().bytes())
        struct.pack_into("<Q", huge, 552 - 256 - 40, 1 << 60)
        self.assertEqual(len(self.read(bytes(huge), 0)["rows"]), 20)

    def test_hole(self):
        """A file that says it is a terabyte long, and is not."""
        path = os.path.join(self.dir, f"h-1-{BASE}.seg")
        data = bytearray(self.good().bytes())
        struct.pack_into("<Q", data, 552 - 256 - 40, 1 << 40)
        with open(path, "wb") as f:
            f.write(data)
            try:
                f.truncate(1 << 40)
            except OSError as e:
                self.skipTest(f"no file of a terabyte here: {e}")
        self.assertEqual(len(oracle.report("nvtx", path).rows), 20)
        far = (1 << 40) - (1 << 20)  # a chunk behind the hole is found; text 1 is "d"
        records = segment.record(segment.PUSH, 0, 1, struct.pack("<q", BASE + 5000)) + segment.record(segment.POP, 0, 0, struct.pack("<q", BASE + 5010))
        last = Segment().chunk(segment.EVENTS, records, far, 99, 2, 2, 0)
        with open(path, "r+b") as f:
            f.seek(far)
            f.write(last)
        self.assertEqual(sum(r["calls"] for r in oracle.report("nvtx", path).rows), 21)

    def test_long_texts_of_many(self):
        """A few bytes name a long text: facts take as long as those with a short one, and steps have short names that differ."""
        times = []
        for text in ("short", "B" * 32768):
            s = self.good()
            key, value = s.text("key"), s.text(text)
            s.kept.extend([segment.record(segment.META, 0, key, struct.pack("<II", value, 0))] * 100000)
            path = s.write(tempfile.mkdtemp(dir=self.dir))
            times.append(cpu_s("info", path))
            self.assertEqual(sql(path, "SELECT DISTINCT value FROM meta WHERE key = 'capture:key'"), [(text,)])
        self.assertLess(times[1], 4 * times[0] + 0.5)
        s = Segment()
        for number in range(4):
            s.event(1, segment.STEP, 0, s.text("ä" * 16384), "qq", BASE + 10 * number, number)
        path = s.write(tempfile.mkdtemp(dir=self.dir))
        self.assertEqual(sql(path, "SELECT name FROM span ORDER BY start_ns"), [("ä" * 128 + f"#{number}",) for number in range(4)])
        self.assertEqual({k: v[:2] for k, v in problems(path).items()}, {"step-name-cut": ("note", 4)})

    def test_deep_and_crossed(self):
        s = Segment()
        for i in range(1, 101):
            s.keep(segment.DOMAIN, 0, i, "II", s.text(f"d{i}"), 0)
        for i in range(20000):
            s.push(1, "deep", BASE + i, domain=i % 100 + 1)
        for i in range(20000):
            s.pop(1, BASE + 20000 + i, domain=i % 100 + 1)
        doc = self.read(s.bytes(), 0)
        self.assertEqual(sum(dict(zip((c["id"] for c in doc["columns"]), r))["calls"] for r in doc["rows"]), 20000)


if __name__ == "__main__":
    oracle.main()
