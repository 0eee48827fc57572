"""`report pyprof`, `pyprof-parse`, `pyprof-prof`: against what PyProf printed of the same databases, cell by cell; against a
brute-force join of ranges and launches on random small databases; and what the default does right where PyProf did not."""
import ast
import csv
import functools
import io
import json
import os
import random
import re
import resource
import sqlite3
import subprocess
import tempfile
import unittest

import oracle
from oracle import Case, data, info, report, run

LM = ("pyprof", "lm_nvprof")
MMAGIC = ("pyprof", "mmagic_nsys")
IDS = {"Idx": "idx", "SeqId": "seq", "AltSeqId": "altseq", "TId": "tid", "Layer": "layer", "Trace": "trace", "Direction": "dir",
       "Sub": "sub", "Module": "mod", "Op": "op", "Kernel": "kernel", "Params": "params", "Sil(ns)": "sil_ns", "TC": "tc",
       "Device": "device", "Stream": "stream", "Grid": "grid", "Block": "block", "FLOPs": "flops", "Bytes": "bytes"}
FLAGS = {"Sil(ns)": "sil"}


def csv_rows(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


def report_csv(*args):
    code, out, err = run("report", "pyprof", *args, "--format=csv")
    if code:
        raise AssertionError(err.decode())
    return list(csv.DictReader(io.StringIO(out.decode())))


literal = functools.lru_cache(None)(ast.literal_eval)  # it takes longer than all else, and several tests read the same lines


def dicts(path, *options):
    code, out, err = run("pyprof-parse", path, *options)
    if code:
        raise AssertionError(err.decode())
    return list(map(literal, out.decode().splitlines())), err.decode()


def kernel_name_key(name):
    """What must be equal of a kernel's long name. Demanglers disagree about lambdas: about their spelling, {lambda(int)#1} or
    'lambda'(int), and about what a template parameter inside one stands for. Names with lambdas are compared up to the first one,
    and by the words that occur after it."""
    at = name.find("lambda")
    if at < 0:
        return name
    head = re.sub(r"[{']*$", "", name[:at])
    return head, sorted(set(re.findall(r"[A-Za-z_]\w*", name[at:])) - {"lambda"})


class CellByCell(Case):
    def compare(self, got, want):
        self.assertEqual(len(got), len(want))
        cells = 0
        for i, (g, w) in enumerate(zip(got, want)):
            for title, value in w.items():
                cells += 1
                self.assertEqual(g[IDS[title]], value, f"row {i + 1}, {title}, op {w['Op']}")
        return cells

    def test_mmagic(self):
        got = report_csv(data(*MMAGIC, "net.sqlite"), "--compat=pyprof")
        self.assertEqual(self.compare(got, csv_rows(data(*MMAGIC, "expected_pyprof.csv"))), 328 * 20)

    def test_mmagic_printed(self):
        """The whole file, byte by byte."""
        path = data(*MMAGIC, "expected_pyprof.csv")
        columns = ",".join(IDS[t] if t not in FLAGS else FLAGS[t] for t in csv_rows(path)[0])
        code, out, _ = run("pyprof-prof", "--csv", "-c", columns, data(*MMAGIC, "net.sqlite"))
        with open(path, newline="") as f:
            self.assertEqual((code, out.decode()), (0, f.read().replace("\r\n", "\n")))

    def test_mmagic_by_dict(self):
        """From what pyprof-parse printed, which is another input, the same comes out."""
        _, parsed, _ = run("pyprof-parse", data(*MMAGIC, "net.sqlite"))
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "net.dict")
            with open(path, "wb") as f:
                f.write(parsed)
            got = report_csv(path, "--compat=pyprof")
            again = dicts(path)[0]
            convs = [report("conv", p).by("params") for p in (path, data(*MMAGIC, "net.sqlite"))]
        self.assertEqual([(k, r["calls"], r["flops"]) for k, r in sorted(convs[0].items())],
                         [(k, r["calls"], r["flops"]) for k, r in sorted(convs[1].items())])
        self.compare(got, csv_rows(data(*MMAGIC, "expected_pyprof.csv")))
        self.assertEqual(again, list(map(literal, parsed.decode().splitlines())))

    def test_lm_dict(self):
        got, err = dicts(data(*LM, "net.sql"))
        with open(data(*LM, "expected_net.dict")) as f:
            want = [ast.literal_eval(line) for line in f]
        self.assertIn("Found 284 kernels. Getting info for each kernel.", err)
        self.assertEqual(len(got), 284)
        for i, (g, w) in enumerate(zip(got, want)):
            self.assertEqual(list(g), list(w), "order of the keys")
            for key, value in w.items():
                if key == "kLongName":
                    self.assertEqual(kernel_name_key(g[key]), kernel_name_key(value), i)
                else:
                    self.assertEqual(g[key], value, (i, key))

    def lm_rows(self, name):
        got, want = report_csv(data(*LM, name), "--compat=pyprof2"), csv_rows(data(*LM, "expected_lm.csv"))
        norms = 0
        for g, w in zip(got, want):
            if w["Op"] == "norm":
                # That version has 2E + 1 FLOPs and 4E bytes at every kernel of the op, PyProf2 at sub 0 only (docs/compat.md).
                norms += 1
                if g["sub"] != "0":
                    self.assertEqual((g["flops"], g["bytes"]), ("0", "0"))
                    w["FLOPs"], w["Bytes"] = g["flops"], g["bytes"]
        self.assertEqual(norms, 28)
        self.assertEqual(self.compare(got, want), 284 * 12)

    def test_lm_database(self):
        self.lm_rows("net.sql")

    def test_lm_from_dict(self):
        self.lm_rows("expected_net.dict")

    def test_no_kernels(self):
        code, out, err = run("pyprof-parse", data(*LM, "no_kernels.sql"))
        self.assertEqual((code, out), (0, b""))
        self.assertIn(b"Found 0 kernels. Exiting.", err)


class Database:
    """A small database as Nsight Systems writes it."""

    def __init__(self, folder, name="n.sqlite"):
        self.path = os.path.join(folder, name)
        self.db = sqlite3.connect(self.path)
        self.strings = {}
        self.db.executescript("""
            create table StringIds(id integer primary key, value text);
            create table META_DATA_EXPORT(name text, value text);
            create table NVTX_EVENTS(start integer, end integer, eventType integer, text text, textId integer, globalTid integer, domainId integer);
            create table CUPTI_ACTIVITY_KIND_RUNTIME(start integer, end integer, eventClass integer, globalTid integer, correlationId integer, nameId integer, returnValue integer);
            create table CUPTI_ACTIVITY_KIND_KERNEL(start integer, end integer, deviceId integer, contextId integer, streamId integer,
                correlationId integer, globalPid integer, demangledName integer, shortName integer, mangledName integer, gridX integer, gridY integer,
                gridZ integer, blockX integer, blockY integer, blockZ integer, staticSharedMemory integer, dynamicSharedMemory integer,
                registersPerThread integer);
            insert into META_DATA_EXPORT values('EXPORT_SCHEMA_VERSION', '2.10.0');""")
        self.correlation = 0

    def string(self, text):
        if text not in self.strings:
            self.strings[text] = len(self.strings) + 1
            self.db.execute("insert into StringIds values(?, ?)", (self.strings[text], text))
        return self.strings[text]

    def range(self, start, end, text, tid=7, pid=5):
        self.db.execute("insert into NVTX_EVENTS values(?, ?, 59, ?, null, ?, 0)", (start, end, text, self.global_tid(pid, tid)))

    @staticmethod
    def global_tid(pid, tid):
        return (1 << 48) | pid << 24 | tid

    def kernel(self, launch, start, end, name="void at::native::k<float>(int)", tid=7, pid=5, stream=7):
        """launch: (start, end) of the call."""
        self.correlation += 1
        self.db.execute("insert into CUPTI_ACTIVITY_KIND_RUNTIME values(?, ?, 0, ?, ?, ?, 0)",
                        (*launch, self.global_tid(pid, tid), self.correlation, self.string("cudaLaunchKernel_v7000")))
        s = self.string(name)
        self.db.execute("insert into CUPTI_ACTIVITY_KIND_KERNEL values(?, ?, 0, 1, ?, ?, ?, ?, ?, ?, 8, 1, 1, 32, 1, 1, 0, 0, 16)",
                        (start, end, stream, self.correlation, self.global_tid(pid, 0), s, s, s))

    def close(self):
        self.db.commit()
        self.db.close()
        return self.path


def marker(mod, op, *args):
    return repr({"mod": mod, "op": op, "args": list(args)})


def tensor(*shape, dtype="float32", name=""):
    return {"name": name, "type": "tensor", "shape": tuple(shape), "dtype": dtype}


class Made(Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.db = Database(self.folder.name)


def classify(text):
    """PyProf's order of tests, written anew from its description."""
    if "CheckpointFunctionBackward" in text:
        return None
    if all(w in text for w in ("mod", "op", "args", "type")):
        return "marker"
    for word, kind in (("layer:", "layer"), ("traceMarker", "trace"), ("strRepr", "reprMarkers"), (", seq = ", "seqMarker")):
        if word in text:
            return kind
    return "other"


def fill(r, ranges, launches, text, overlap, tid, start, end, depth=0):
    """Random ranges, (thread, start, end, text(number of the range)), and launches between start and end; with `overlap`, ranges may end behind one around them."""
    at = start
    while at + 8 < end:
        at += r.randrange(1, 4)
        length = r.randrange(4, max(5, (end - at) // 2 + 5))
        if r.random() < 0.4 or depth > 5:
            launches.append((tid, at, at + 2))
            at += 3
        else:
            stop = at + length + r.randrange(0, 12) if overlap else min(at + length, end - 1)
            if stop > at:
                ranges.append((tid, at, stop, text(len(ranges))))
                fill(r, ranges, launches, text, overlap, tid, at, at + length, depth + 1)
            at += length


class BruteForce(Made):
    """Random databases: nested and overlapping ranges of two threads; the ranges of a kernel by looking at all of them."""

    NAMES = ["aten::mm, seq = {}", "mm, seq = {}", "MmBackward, seq = {}", "add_, seq = {}", "plain", "layer:block{}", "layer:a:b",
             marker("torch", "relu", tensor(3, 4)), marker("torch.nn.functional", "linear", tensor(2, 3), tensor(4, 3)),
             "CheckpointFunctionBackward, seq = {}", "{{'traceMarker': ['a.py:{}', '/x/torch/nn/modules/linear.py:3']}}",
             "{{'mod': 'Linear', 'strRepr': 'in={}'}}"]

    def make(self, seed, overlap):
        r = random.Random(seed)
        db = Database(self.folder.name, f"{seed}.sqlite")
        ranges, launches = [], []

        def text(_):
            name = r.choice(self.NAMES)
            return name if name.startswith("{'mod': 'torch") else name.format(r.randrange(4))

        for tid in (7, 8):
            fill(r, ranges, launches, text, overlap, tid, 10, 400)
        for tid, a, b, t in ranges:
            db.range(a, b, t, tid=tid)
        launches.sort(key=lambda x: (x[1], x[0]))
        for i, (tid, a, b) in enumerate(launches):
            db.kernel((a, b), 1000 + 10 * i, 1005 + 10 * i, tid=tid)
        return db.close(), ranges, launches

    def check(self, seed, overlap):
        path, ranges, launches = self.make(seed, overlap)
        got, _ = dicts(path)
        self.assertEqual(len(got), len(launches))
        for g, (tid, a, b) in zip(got, launches):
            around = sorted((x for x in ranges if x[0] == tid and x[1] < a and x[2] > b), key=lambda x: (x[1], -x[2]))
            texts = {}
            for x in around:
                texts.setdefault(classify(x[3]), []).append(x[3])
            self.assertEqual(g["tid"], tid)
            self.assertEqual(g["marker"], texts.get("marker", []), (seed, a))
            self.assertEqual(g["reprMarkers"], texts.get("reprMarkers", []))
            self.assertEqual(g["layer"], [t.split(":")[1] for t in texts.get("layer", [])])
            trace = texts.get("trace", [])
            self.assertEqual(g["trace"], ast.literal_eval(trace[-1])["traceMarker"][:1] if trace else [])
            seqs = {int(t.split(" = ")[1]) for t in texts.get("seqMarker", [])}
            seqs = seqs - {0} if len(seqs) > 1 else seqs
            self.assertEqual(set(g["seqId"]) | set(g["altSeqId"]), seqs, (seed, a))
            self.assertLessEqual(set(g["seqMarker"]), set(texts.get("seqMarker", [])))
            self.assertEqual(g["dir"], "bprop" if any("Backward, seq" in t for t in g["seqMarker"]) else "fprop")

    def test_nested(self):
        for seed in range(15):
            with self.subTest(seed=seed):
                self.check(seed, False)

    def test_overlapping(self):
        for seed in range(100, 115):
            with self.subTest(seed=seed):
                self.check(seed, True)


class BruteForceDefault(Made):
    """Random databases of two threads, read by the default rules; what follows for each kernel by looking at all ranges and at all kernels before it."""

    def make(self, seed, overlap):
        r = random.Random(seed)
        db = Database(self.folder.name, f"{seed}.sqlite")
        ranges, launches = [], []

        def text(i):
            number = r.choice((0, 0, 1, 2, 3, 4, 5))
            return r.choice((f"aten::op{i}, seq = {number}", f"aten::op{i}, seq = {number}", f"aten::same, seq = {number}", f"Node{i}Backward0, seq = {number}",
                             f"layer:block{i}", f"plain{i}"))

        for tid in (7, 8):
            fill(r, ranges, launches, text, overlap, tid, 10, 600)
        launches = sorted((a, b, tid) for tid, a, b in launches)
        for tid, a, b, t in ranges:
            db.range(2 * a, 2 * b, t, tid=tid)
        for i, (a, b, tid) in enumerate(launches):
            db.kernel((2 * a + (tid == 8), 2 * b), 10000 + 10 * i, 10005 + 10 * i, tid=tid) # no two launches begin at one time
        return db.close(), ranges, launches

    def check(self, seed, overlap):
        path, ranges, launches = self.make(seed, overlap)
        got = report_csv(path)
        self.assertEqual(len(got), len(launches))
        latest, lent = {}, 0
        for g, (a, b, tid) in zip(got, launches):
            around = [x[3] for x in sorted((x for x in ranges if x[0] == tid and 2 * x[1] <= 2 * a + (tid == 8) and x[2] >= b), key=lambda x: (x[1], -x[2]))]
            numbered = [tuple(t.split(", seq = ")) for t in around if ", seq = " in t]
            numbered = [x for i, x in enumerate(numbered) if x not in numbered[:i]]
            ids = sorted({int(n) for _, n in numbered})
            ids = ids[1:] if len(ids) > 1 and not ids[0] else ids
            back = [n for n, _ in numbered if "Backward" in n]
            ops = [n.removesuffix("Backward0") for n in back] or [n for n, _ in numbered] or [t for t in around if t.startswith("plain")][:1]
            layers = [t[6:] for t in around if t.startswith("layer:")]
            if back and ids[0] in latest:
                ops, layers = latest[ids[0]]
                lent += 1
            elif not back:
                latest.update({i: (ops, layers) for i in ids})
            where = (seed, a, tid)
            self.assertEqual((g["seq"], g["altseq"]), (str(ids[0]) if ids else "", ",".join(map(str, ids[1:]))), where)
            self.assertEqual(g["ops"], " > ".join(ops), where)
            self.assertEqual(g["layer"], ":".join(layers), where)
            self.assertEqual(g["dir"], "" if not numbered and not any(t.startswith("plain") for t in around) else "bprop" if back else "fprop", where)
        return lent

    def test_nested(self):
        self.assertGreater(sum(self.check(seed, False) for seed in range(12)), 50)

    def test_overlapping(self):
        self.assertGreater(sum(self.check(seed, True) for seed in range(100, 112)), 50)


class Deep(Made):
    """However many ranges stand around a launch, each counts: the outermost is the layer."""

    def make(self, depth, text):
        self.db.range(0, 10 * depth + 10, "layer:outer")
        for i in range(depth):
            self.db.range(3 * i + 1, 10 * depth - i, text.format(i))
            self.db.kernel((3 * i + 2, 3 * i + 3), 100 * depth + 10 * i, 100 * depth + 10 * i + 5)
        return self.db.close()

    def test_layer(self):
        path = self.make(700, "plain{}")
        self.assertEqual([r["layer"] for r in report_csv(path)], ["outer"] * 700)
        self.assertEqual([d["layer"] for d in dicts(path)[0]], [["outer"]] * 700)

    def test_long_cells(self):
        """The cell of the deepest kernel says how many ops it leaves out; the .dict has them all."""
        path = self.make(700, "aten::op{0}, seq = {0}")
        last = report_csv(path)[-1]
        ops = last["ops"].split(" > ")
        self.assertEqual((ops[0], ops[127], ops[128], ops[-1]), ("aten::op0", "aten::op127", "... (444 more)", "aten::op699"))
        self.assertEqual(len(ops), 257)
        self.assertTrue(last["altseq"].endswith(",... (444 more)"), last["altseq"])
        self.assertEqual(last["layer"], "outer")
        deepest = literal(run("pyprof-parse", path)[1].decode().splitlines()[-1])
        self.assertEqual(sorted(deepest["altSeqId"] + deepest["seqId"]), list(range(1, 700)))

    def test_layers_of_a_dict(self):
        line = dict(kShortName="k", kDuration=5, layer=[f"l{i}" for i in range(300)], trace=[], reprMarkers=[], marker=[], seqMarker=[], seqId=[], subSeqId=0, altSeqId=[],
                    dir="fprop", mod=["na"], op=["na"], tid=1, device=0, stream=7, grid=(1, 1, 1), block=(1, 1, 1), kLongName="k")
        path = os.path.join(self.folder.name, "deep.dict")
        with open(path, "w") as f:
            f.write(repr(line) + "\n")
        layers = report_csv(path)[0]["layer"].split(":")
        self.assertEqual((len(layers), layers[0], layers[-1]), (300, "l0", "l299"))

    def test_linear(self):
        """Ten times as deep, with ten times the kernels: as much longer, and not a hundred times."""
        seconds = []
        for depth in (2000, 20000):
            self.db = Database(self.folder.name, f"{depth}.sqlite")
            path = self.make(depth, "aten::op, seq = {}")
            begin = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            self.assertEqual(report_csv(path)[-1]["layer"], "outer")
            seconds.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - begin)
        self.assertLess(seconds[1], 40 * seconds[0] + 0.2)


class ParseRules(Made):
    def test_sequence_markers(self):
        """Repeated ones go, sorted as texts, and one that another of the same number contains; zero goes beside others."""
        db = self.db
        db.range(0, 100, "threshold_backward, seq = 0")
        db.range(1, 99, "ReluBackward, seq = 210")
        db.range(2, 98, "relu, seq = 30")
        db.range(3, 97, "relu_, seq = 30")
        db.kernel((10, 12), 200, 210)
        (g,), _ = dicts(db.close())
        self.assertEqual(g["seqMarker"], ["threshold_backward, seq = 0", "ReluBackward, seq = 210", "relu, seq = 30"])
        self.assertEqual((g["seqId"], g["altSeqId"], g["dir"]), ([30], [210], "bprop"))
        self.assertEqual((g["op"], g["mod"]), (["threshold", "Relu"], ["na", "na"]))

    def test_ids_left_behind(self):
        """PyProf takes from a list while walking it: every second one of those to go stays. The default moves all."""
        for i in range(4):
            self.db.range(i, 100 - i, f"op{i}, seq = {i + 5}")
        self.db.kernel((10, 12), 200, 210)
        path = self.db.close()
        (g,), _ = dicts(path)
        self.assertEqual((g["seqId"], g["altSeqId"]), ([5, 7], [6, 8]))
        (g,), _ = dicts(path, "--compat=opscope")
        self.assertEqual((g["seqId"], g["altSeqId"]), ([5], [6, 7, 8]))

    def test_sub_ids(self):
        """One more kernel of the same op and number; a cell's forward counts on; another number, or op, begins anew."""
        cell = marker("LSTMCell", "forward", tensor(5, 10), tensor(5, 20))
        texts = ["mm, seq = 3", "mm, seq = 3", "mm, seq = 4", "add, seq = 4"]
        for i, t in enumerate(texts):
            self.db.range(10 * i, 10 * i + 9, t)
            self.db.kernel((10 * i + 2, 10 * i + 3), 1000 + 10 * i, 1005 + 10 * i)
        for i in (4, 5):
            self.db.range(10 * i, 10 * i + 9, cell)
            self.db.range(10 * i + 1, 10 * i + 8, f"addmm, seq = {i + 5}")
            self.db.kernel((10 * i + 2, 10 * i + 3), 1000 + 10 * i, 1005 + 10 * i)
        got, _ = dicts(self.db.close())
        self.assertEqual([g["subSeqId"] for g in got], [0, 1, 0, 0, 0, 1])
        self.assertEqual([g["seqId"] for g in got], [[3], [3], [4], [4], [9], [10]])

    def test_names_of_the_backward_pass(self):
        """PyProf knows three endings, PyProf2 one more, the default all."""
        for i, name in enumerate(("mm_backward", "MmBackward", "MmBackward0", "MmBackward1", "MmBackward2", "Mm")):
            self.db.range(10 * i, 10 * i + 9, f"{name}, seq = {i + 1}")
            self.db.kernel((10 * i + 2, 10 * i + 3), 1000 + 10 * i, 1005 + 10 * i)
        path = self.db.close()
        for rules, backward in (("pyprof", 3), ("pyprof2", 4), ("opscope", 5)):
            got, _ = dicts(path, f"--compat={rules}")
            self.assertEqual([g["dir"] for g in got], ["bprop"] * backward + ["fprop"] * (6 - backward), rules)

    def test_checkpointing(self):
        """What runs again inside a checkpoint's backward is forward, as PyProf has it."""
        self.db.range(0, 50, "CheckpointFunctionBackward, seq = 9")
        self.db.range(1, 49, marker("torch", "relu", tensor(3)))
        self.db.range(2, 48, "relu, seq = 3")
        self.db.kernel((10, 12), 200, 210)
        path = self.db.close()
        for rules in ("pyprof", "opscope"):
            (g,), _ = dicts(path, f"--compat={rules}")
            self.assertEqual((g["dir"], g["seqId"], g["op"], g["seqMarker"]), ("fprop", [3], ["relu"], ["relu, seq = 3"]))

    def test_forward_lookup(self):
        """A backward kernel has marker, op, layer and trace of the latest earlier forward kernel with its number."""
        def forward(at, number, rows):
            self.db.range(at, at + 20, "layer:mlp")
            self.db.range(at + 1, at + 19, "{'traceMarker': ['train.py:7', 'model.py:%d']}" % rows)
            self.db.range(at + 2, at + 18, marker("torch", "mm", tensor(rows, 3), tensor(3, 4)))
            self.db.range(at + 3, at + 17, f"mm, seq = {number}")
            self.db.kernel((at + 4, at + 5), 1000 + at, 1005 + at, "sgemm")
        forward(0, 5, 8)
        forward(30, 5, 16)
        self.db.range(100, 120, "MmBackward, seq = 5")
        self.db.kernel((104, 105), 1104, 1109, "sgemm")
        self.db.range(130, 150, "MmBackward, seq = 6")
        self.db.kernel((134, 135), 1134, 1139, "sgemm")
        rows = report("pyprof", self.db.close(), "--compat=pyprof").rows
        self.assertEqual([(r["dir"], r["mod"], r["op"], r["params"], r["layer"], r["trace"]) for r in rows[2:]],
                         [("bprop", "torch", "mm", "M=4,N=16,K=3,fp32,", "mlp", "train.py:7,model.py:16"),
                          ("bprop", "na", "Mm", "na=na,", "-", "-")])
        self.assertEqual([r["flops"] for r in rows], ["192", "384", "384", "0"])

    def test_what_pyprof_asserts(self):
        """Such rows are printed like those of unknown ops, counted, and the first is named."""
        self.db.range(0, 20, marker("torch.nn.functional", "linear", tensor(2, 3), tensor(4, 3)))
        self.db.kernel((4, 5), 1004, 1009, "another_kernel")
        self.db.kernel((6, 7), 1014, 1019, "sgemm")
        table = report("pyprof", self.db.close(), "--compat=pyprof")
        self.assertEqual([(r["params"], r["tc"], r["flops"], r["bytes"]) for r in table.rows],
                         [("na=na,", "na", "0", "0"), ("M=4,N=2,K=3,fp32,", "0", "48", "44")])
        self.assertTrue(any("ended at 1 of the 2 rows" in n and "first at row 1" in n for n in table.notes), table.notes)


class Default(Made):
    """What is right where PyProf was not."""

    def rows(self):
        return report("pyprof", self.db.close())

    def test_modern_markers(self):
        """emit_nvtx of today: PyProf could not read a line of it."""
        self.db.range(0, 20, "aten::linear, seq = 4, op_id = 28, sizes = [[2, 3], [4, 3], [4]]")
        self.db.range(1, 19, "aten::addmm, seq = 5, op_id = 32, sizes = [[4], [2, 3], [3, 4], [], []]")
        self.db.kernel((4, 5), 1004, 1009, "sgemm")
        self.db.range(100, 120, "autograd::engine::evaluate_function: AddmmBackward0, op_id = 59")
        self.db.range(101, 119, "AddmmBackward0, seq = 5, op_id = 60")
        self.db.kernel((104, 105), 1104, 1109, "sgemm")
        rows = self.rows().rows
        self.assertEqual([r["dir"] for r in rows], ["fprop", "bprop"])
        self.assertEqual((rows[0]["seq"], rows[0]["altseq"]), ("4", "5"))
        self.assertEqual(rows[0]["flops"], 2 * 2 * 3 * 4)
        self.assertEqual([r["ops"] for r in rows], ["aten::linear > aten::addmm"] * 2)

    def test_backward_of_a_marker(self):
        """The gradients of a product are two of its size: one at each of two kernels, nothing at the third."""
        self.db.range(0, 20, marker("torch.nn.functional", "linear", tensor(8, 16), tensor(32, 16)))
        self.db.range(3, 17, "mm, seq = 5")
        self.db.kernel((4, 5), 1000, 1100, "sgemm")
        self.db.range(100, 120, "MmBackward, seq = 5")
        for i, ns in enumerate((90, 80, 5)):
            self.db.kernel((104 + 2 * i, 105 + 2 * i), 2000 + 100 * i, 2000 + 100 * i + ns, "sgemm")
        table = self.rows()
        self.assertEqual([(r["dir"], r["op"], r["sub"], r["flops"]) for r in table.rows],
                         [("fprop", "linear", 0, 8192), ("bprop", "linear", 0, 8192), ("bprop", "linear", 1, 8192), ("bprop", "linear", 2, 0)])
        self.assertEqual([r["tflops"] for r in table.rows], [8192 / 100 / 1e3, 8192 / (90 + 2.5) / 1e3, 8192 / (80 + 2.5) / 1e3, None])
        self.assertIn("backward kernels 175 ns, of which 175 ns were given op, layer and line of a forward kernel by sequence number", table.notes)
        self.assertTrue(any(n.startswith("a model covers 100.0 % of the kernels' time: 275 ns of 275 ns") for n in table.notes), table.notes)

    def test_accumulate_grad(self):
        """Adding a gradient to a parameter's is of no one forward op, whatever its number is: ops without a node have 0, too."""
        self.db.range(0, 20, marker("Tensor", "sum", tensor(8, 16)))
        self.db.range(3, 17, "sum, seq = 0")
        self.db.kernel((4, 5), 1000, 1100, "reduce")
        self.db.range(100, 120, "torch::autograd::AccumulateGrad")
        self.db.range(101, 119, "add_, seq = 0")
        self.db.kernel((104, 105), 2000, 2010, "add")
        table = self.rows()
        self.assertEqual([(r["dir"], r["op"]) for r in table.rows], [("fprop", "sum"), ("bprop", "add_")])
        self.assertIn("backward kernels 10 ns, of which 0 ns were given op, layer and line of a forward kernel by sequence number", table.notes)

    def test_direction_needs_an_op(self):
        self.db.kernel((4, 5), 1000, 1100, "gemm")
        self.assertIsNone(self.rows().rows[0]["dir"])

    def test_failed_attribute_lookup(self):
        """PyProf marks torch.__getattr__; one that fails is never closed, and is no op of all that follows."""
        for i in range(3):
            self.db.range(i, 900, marker("torch", "__getattr__"))
        self.db.range(10, 20, marker("torch", "relu", tensor(3)))
        self.db.kernel((14, 15), 1000, 1100, "relu")
        self.db.kernel((34, 35), 1200, 1250, "lost")
        path = self.db.close()
        table = report("pyprof", path)
        self.assertEqual([(r["op"], r["dir"]) for r in table.rows], [("relu", "fprop"), (None, None)])
        self.assertIn("kernels 150 ns = launched by an op 100 ns + inside a user's range only 0 ns + unattributed 50 ns", table.notes)
        ranges = {r["range"]: r for r in report("nvtx", path).rows}
        self.assertEqual((ranges["torch.__getattr__"]["calls"], ranges["torch.__getattr__"]["gpu_ns"]), (3, 150))
        kinds = {r["kind"]: r["count"] for r in info(path).section("problems").rows}
        self.assertEqual(kinds["range-never-popped"], 3)

    def test_rates_are_of_the_whole_call(self):
        """A convolution by FFT: what is counted at one kernel took all of them."""
        self.db.range(0, 20, marker("torch", "mm", tensor(8, 16), tensor(16, 32)))
        for i, ns in enumerate((40, 100, 60)):
            self.db.kernel((4 + 2 * i, 5 + 2 * i), 1000 + 200 * i, 1000 + 200 * i + ns, "some_kernel")
        rows = self.rows().rows
        self.assertEqual([r["flops"] for r in rows], [0, 8192, 0])
        self.assertEqual([r["tflops"] for r in rows], [None, 8192 / 200 / 1e3, None])

    def test_keyword_arguments(self):
        """PyProf's markers name the arguments that were given by name; their place in the list says nothing."""
        args = [{"name": "bias", "type": "tensor", "shape": (32,), "dtype": "float32"},
                {"name": "input", "type": "tensor", "shape": (8, 16), "dtype": "float32"},
                {"name": "weight", "type": "tensor", "shape": (32, 16), "dtype": "float32"}]
        self.db.range(0, 20, repr({"mod": "torch.nn.functional", "op": "linear", "args": args}))
        self.db.kernel((4, 5), 1000, 1100, "sgemm")
        image = [{"name": "", "type": "tensor", "shape": (1, 3, 8, 8), "dtype": "float32"},
                 {"name": "", "type": "tensor", "shape": (4, 3, 3, 3), "dtype": "float32"},
                 {"name": "padding", "type": "int", "value": 2}]
        self.db.range(100, 120, repr({"mod": "torch.nn.functional", "op": "conv2d", "args": image}))
        self.db.kernel((104, 105), 2000, 2100, "conv")
        rows = self.rows().rows
        self.assertEqual([r["flops"] for r in rows], [2 * 8 * 16 * 32, 2 * 4 * 10 * 10 * 27])

    def test_unknown_is_empty(self):
        """An op without a model has no FLOPs; 0 would be a claim. Its kernel's name does not tell about Tensor Cores."""
        self.db.range(0, 20, marker("mymodule", "myop", tensor(2, 3)))
        self.db.kernel((4, 5), 1004, 1009, "some_kernel")
        self.db.kernel((30, 31), 1014, 1034, "some_kernel")
        table = self.rows()
        first, second = table.rows
        self.assertEqual((first["op"], first["flops"], first["bytes"], first["tflops"], first["tc"]), ("myop", None, None, None, "unknown"))
        self.assertEqual((second["op"], second["flops"]), (None, None))
        self.assertIn("kernels 25 ns = launched by an op 5 ns + inside a user's range only 0 ns + unattributed 20 ns", table.notes)

    def test_threads_do_not_mix(self):
        """The kernels of an op count on for their thread, whatever another launches between them."""
        for tid in (7, 8):
            self.db.range(0, 90, marker("torch", "relu", tensor(3)), tid=tid)
        for i in range(6):
            self.db.kernel((10 + 5 * i, 12 + 5 * i), 1000 + 10 * i, 1005 + 10 * i, tid=7 + i % 2)
        self.assertEqual([r["sub"] for r in self.rows().rows], [0, 0, 1, 1, 2, 2])

    def test_processes_do_not_mix(self):
        """Sequence numbers are those of one process."""
        for pid, rows in ((5, 8), (6, 16)):
            self.db.range(0, 20, f"layer:of{pid}", pid=pid)
            self.db.range(1, 19, marker("torch", "mm", tensor(rows, 3), tensor(3, 4)), pid=pid)
            self.db.range(3, 17, "mm, seq = 5", pid=pid)
            self.db.kernel((4, 5), 1000 + rows, 1004 + rows, "sgemm", pid=pid, stream=pid)
        self.db.range(100, 120, "MmBackward, seq = 5", pid=5)
        self.db.kernel((104, 105), 1104, 1109, "sgemm", pid=5, stream=5)
        rows = self.rows().rows
        self.assertEqual([(r["dir"], r["mod"], r["op"], r["layer"]) for r in rows],
                         [("fprop", "torch", "mm", "of5"), ("fprop", "torch", "mm", "of6"), ("bprop", "torch", "mm", "of5")])

    def test_limit_is_no_filter(self):
        """The rows shown are the first of all, and the notes are of all."""
        for i in range(50):
            self.db.kernel((10 * i, 10 * i + 2), 10000 + 10 * i, 10005 + 10 * i)
        path = self.db.close()
        code, text, _ = run("report", "pyprof", path, "--width=200", "--notes=full")
        self.assertEqual(code, 0)
        self.assertIn("... and 20 more rows", text.decode())
        self.assertIn("kernels 250 ns = ", text.decode())
        limited = report("pyprof", path, "--limit=7")
        self.assertEqual(limited.rows, report("pyprof", path).rows[:7])
        by_end = report("pyprof", path, "--sort=idx", "--limit=3")
        self.assertEqual([r["idx"] for r in by_end.rows], [50, 49, 48])


class Lenet(Case):
    """A network of two convolutions and three linear layers, with DLProf's markers."""

    def test_invariants(self):
        table = report("pyprof", data("dlprof", "w_relu", "nsys_profile.sqlite"))
        self.assertEqual([r["idx"] for r in table.rows], list(range(1, 60)))
        self.assertLessEqual({r["dir"] for r in table.rows}, {"fprop", "bprop"})
        self.assertEqual({r["op"] for r in table.rows}, {"conv2d", "relu", "max_pool2d", "linear"})
        self.assertEqual(sum(r["sil_ns"] for r in table.rows), 589147)
        self.assertTrue(any(n.startswith("kernels 589147 ns = launched by an op 589147 ns + inside a user's range only 0 ns + unattributed 0 ns") for n in table.notes))
        # Each call of an op counts once: 2NKPQCRS of the convolutions, 2mnk of the linear layers.
        flops = {op: sum(r["flops"] or 0 for r in table.rows if r["op"] == op) for op in ("conv2d", "linear")}
        self.assertEqual(flops["linear"], 2 * 32 * (400 * 120 + 120 * 84 + 84 * 10))
        self.assertEqual(flops["conv2d"], 2 * 32 * (6 * 30 * 30 * 3 * 3 * 3 + 16 * 11 * 11 * 6 * 5 * 5))

    def test_never_ends_early(self):
        table = report("pyprof", data("dlprof", "w_relu", "nsys_profile.sqlite"), "--compat=pyprof")
        self.assertEqual(len(table.rows), 59)


class Names(Case):
    """Every name in PyProf's lists, by records that parse could have printed of it: FLOPs and bytes by the published formulas."""

    def rows(self, *calls, direction="fprop"):
        """calls: (module, op, shapes with types, kernel)."""
        lines = []
        for mod, op, tensors, kernel in calls:
            args = [{"name": "", "type": "tensor", "shape": tuple(shape), "dtype": dtype} for shape, dtype in tensors]
            lines.append(repr({"kShortName": kernel, "kDuration": 100, "layer": [], "trace": [], "reprMarkers": [], "marker": [repr({"mod": mod, "op": op, "args": args})],
                               "seqMarker": ["x, seq = 1"], "seqId": [1], "subSeqId": 0, "altSeqId": [], "dir": direction, "mod": [mod], "op": [op], "tid": 1, "device": 0,
                               "stream": 7, "grid": (1, 1, 1), "block": (1, 1, 1), "kLongName": kernel}))
        code, out, err = run("pyprof-prof", "--csv", "-c", "op,params,flops,bytes,tc", stdin="\n".join(lines + [""]).encode())
        self.assertEqual((code, err), (0, b""))
        rows = list(csv.DictReader(io.StringIO(out.decode())))
        self.assertEqual([r["Op"] for r in rows], [op for _, op, _, _ in calls])
        return rows

    def check(self, cases, direction):
        """cases: (ops, module, number of tensors of 2 x 3 floats, FLOPs, bytes)."""
        calls = [((mod, op, [((2, 3), "float32")] * n, "k"), flops, bytes_) for ops, mod, n, flops, bytes_ in cases for op in ops.split()]
        for (call, flops, bytes_), row in zip(calls, self.rows(*[c for c, _, _ in calls], direction=direction)):
            self.assertEqual((call[1], row["FLOPs"], row["Bytes"]), (call[1], str(flops), str(bytes_)))
        return len(calls)

    def test_elementwise(self):
        one = "abs neg reciprocal ceil clamp floor frac round sign trunc"
        slow = "exp log log10 log1p log2 rsqrt sqrt acos asin atan cos cosh sin sinh tan sigmoid tanh erf erfc erfinv"
        two = "add div mul remainder sub fmod"
        compared = "lt gt ge le eq ne"
        active = ("celu elu elu_ hardshrink hardtanh hardtanh_ leaky_relu leaky_relu_ logsigmoid prelu relu relu_ relu6 rrelu rrelu_ selu softplus softshrink softsign "
                  "tanhshrink threshold threshold_")

        def placed(ops):
            return ops + " " + " ".join(op + "_" for op in ops.split())

        def dunder(ops):
            return " ".join(f"__{op}__" for op in ops.split())
        functional = "torch.nn.functional"
        n = self.check([(placed(one) + " " + dunder("abs neg invert"), "torch", 1, 6, 48), (placed(slow), "torch", 1, 120, 48),
                        (placed(two), "torch", 2, 6, 72), (placed(compared) + " " + dunder(compared), "torch", 2, 6, 54),
                        (dunder("add sub mul floordiv truediv mod radd rsub rmul rdiv rtruediv rfloordiv iadd isub imul itruediv and or xor lshift rshift"), "Tensor", 2, 6, 72),
                        ("pow pow_ __pow__ __rpow__", "Tensor", 2, 120, 72), (placed("addcdiv addcmul"), "Tensor", 3, 18, 96), (active, functional, 1, 6, 48),
                        ("byte char", "Tensor", 1, 0, 30), ("half short", "Tensor", 1, 0, 36), ("float int to", "Tensor", 1, 0, 48), ("double long", "Tensor", 1, 0, 72),
                        ("softmax", functional, 1, 240, 72), ("log_softmax", functional, 1, 126, 72), ("batch_norm", functional, 1, 48, 96), ("dropout", functional, 1, 30, 48),
                        ("ones_like zeros_like zero_", "torch", 1, 0, 24), ("any", "Tensor", 1, 0, 24), ("clone contiguous", "Tensor", 1, 0, 48),
                        ("copy_", "Tensor", 2, 0, 48)], "fprop")
        n += self.check([("add __add__ sub __sub__ __isub__", "Tensor", 2, 0, 48), ("__mul__ __imul__ __rmul__ div __truediv__", "Tensor", 2, 6, 72),
                         (active, functional, 1, 6, 72)], "bprop")
        self.assertGreater(n, 180)

    def test_types(self):
        sizes = {1: "uint8 byte int8 char bool", 2: "float16 half int16 short", 4: "float32 float int32 int", 8: "int64 long float64 double"}
        types = [(t, n) for n, names in sizes.items() for t in names.split()]
        rows = self.rows(*[("torch.nn.functional", "relu", [((5,), t)], "k") for t, _ in types])
        self.assertEqual([r["Bytes"] for r in rows], [str(2 * 5 * n) for _, n in types])
        printed = dict(zip((t for t, _ in types), (r["Params"] for r in rows)))
        self.assertEqual([printed[t] for t in ("float16", "half", "float32", "float64", "int64")], ["[5]fp16", "[5]fp16", "[5]fp32", "[5]fp64", "[5]int64"])

    def test_tensor_cores(self):
        parts = ("h884 s884 h1688 s1688 hmma i8816 16816 dgrad_1x1_stride_2x2 first_layer_wgrad_kernel conv1x1 conv2d_c1_k1 direct_group xmma_implicit_gemm xmma_sparse_conv "
                 "xmma_warp_specialized_implicit_gemm xmma_gemm xmma_sparse_gemm c1688").split()
        product = [((8, 16), "float16"), ((16, 4), "float16")]
        rows = self.rows(*[("torch", "mm", product, f"a{p}b") for p in parts + ["volta_sgemm_"]])
        self.assertEqual([r["TC"] for r in rows], ["1"] * 18 + ["0"])

    def test_convolutions(self):
        work = ("_s884cudnn_ _s1688cudnn_ _scudnn_ 2d_grouped_direct_kernel cudnn::detail::implicit_convolve_sgemm cudnn::detail::dgrad2d_alg1_1 cudnn::detail::wgrad_alg0_engine "
                "cudnn::detail::dgrad_engine dgrad_1x1_stride_2x2 spatialDepthwiseConvolutionUpdateOutput winograd3x3Kernel _sgemm_ fermiPlusCgemmLDS128_batched _gcgemm_").split()
        beside = ("nchwToNhwc nhwcToNchw OffsetsKernel generateWinogradTilesKernel winogradWgradData winogradWgradOutput winogradWgradDelta compute_gemm_pointers flip_filter "
                  "fft2d_r2c_ fft2d_c2r_ fft1d_r2c fft1d_c2r scaleTensor_kernel").split()
        tensors = [((2, 3, 8, 8), "float32"), ((4, 3, 3, 3), "float32")]
        rows = self.rows(*[("torch.nn.functional", "conv2d", tensors, f"a{p}b") for p in work + beside + ["nchwToNhwc_scudnn_"]])
        self.assertEqual([float(r["FLOPs"]) for r in rows], [2.0 * 2 * 4 * 6 * 6 * 3 * 3 * 3] * len(work) + [0] * (len(beside) + 1))


class Commands(Made):
    def make(self):
        self.db.range(0, 40, "{'traceMarker': ['/home/train.py:7', '/home/model.py:9']}")
        self.db.range(1, 39, marker("torch.nn.functional", "linear", tensor(2, 3), tensor(4, 3)))
        self.db.kernel((4, 5), 1004, 1009, "sgemm")
        return self.db.close()

    def test_default_columns(self):
        code, out, err = run("pyprof-prof", self.make())
        self.assertEqual((code, err), (0, b""))
        self.assertEqual(out.decode(), "Idx Direction Sub Module Op Kernel Params Sil(ns)\n"
                                       "1 fprop 0 torch.nn.functional linear sgemm M=4,N=2,K=3,fp32, 5\n")

    def test_fixed_widths(self):
        """Every column is followed by a blank; texts are cut, numbers stand right; what is left goes to kernel and params."""
        path = self.make()
        code, out, _ = run("pyprof-prof", "-w", "75", "-c", "idx,dir,op,kernel,params,trace,flops", path)
        header, row = out.decode().splitlines()
        self.assertEqual(header, "Idx     Direc Op              Kerne Param Trace                     FLOPs        ")
        self.assertEqual(row, "      1 fprop linear          sgemm M=4,N model.py:9                          48 ")
        code, out, _ = run("pyprof-prof", "-w", "20", path)
        self.assertEqual((code, out), (1, b"Minimum width required to print idx,dir,sub,mod,op,kernel,params,sil = 55. Exiting.\n"))

    def test_csv(self):
        code, out, _ = run("pyprof-prof", "--csv", "-c", "trace,flops,bytes,tc,layer", self.make())
        self.assertEqual((code, out.decode()), (0, '"Trace","FLOPs","Bytes","TC","Layer"\n"/home/train.py:7,/home/model.py:9","48","44","0","-"\n'))

    def test_standard_input(self):
        _, parsed, _ = run("pyprof-parse", self.make())
        code, out, _ = run("pyprof-prof", "-c", "op,flops", stdin=parsed)
        self.assertEqual((code, out), (0, b"Op FLOPs\nlinear 48\n"))

    def test_refusals(self):
        path = self.make()
        for args, status, text in ((("pyprof-prof", "-c", "idx,foo", path), 2, "foo is not a valid column name. Valid column names are idx,seq,"),
                                   (("pyprof-prof", "--csv", "-w", "100", path), 2, "not allowed with"),
                                   (("pyprof-prof", path + ".missing"), 1, "Error opening file"),
                                   (("pyprof-parse", path + ".missing"), 2, "No such file"),
                                   (("pyprof-parse",), 2, "FILE was expected"),
                                   (("pyprof-prof", "--compat=nonsense", path), 2, "expected one of pyprof, pyprof2")):
            code, out, err = run(*args)
            self.assertEqual((code, out), (status, b""), args)
            self.assertIn(text, err.decode())

    def test_no_kernels(self):
        self.db.range(0, 10, "x")
        code, out, err = run("pyprof-parse", self.db.close())
        self.assertEqual((code, out), (0, b""))
        self.assertIn(b"Found 0 kernels. Exiting.", err)

    def test_closed_pipe(self):
        for i in range(3000):
            self.db.kernel((10 * i, 10 * i + 2), 100000 + 10 * i, 100005 + 10 * i)
        path = self.db.close()
        for command in ("pyprof-parse", "pyprof-prof"):
            p = subprocess.Popen([oracle.OPSCOPE, command, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            p.stdout.readline()
            p.stdout.close()
            err = p.stderr.read()
            p.stderr.close()
            self.assertEqual(p.wait(timeout=60), 0, command)
            self.assertNotIn(b"roken", err)

    def test_by_name(self):
        """Under the old tools' names the program is these tools."""
        path = self.make()
        link = os.path.join(self.folder.name, "pyprof-prof")
        os.symlink(oracle.OPSCOPE, link)
        p = subprocess.run([link, "-c", "op", path], capture_output=True)
        self.assertEqual((p.returncode, p.stdout), (0, b"Op\nlinear\n"))


if __name__ == "__main__":
    oracle.main()
