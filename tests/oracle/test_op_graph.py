"""Which op made an input of which: ranges of emit_nvtx read by python straight from the database, an execution trace followed tensor by tensor, and small recordings by hand."""
import collections
import gzip
import json
import os
import re
import shutil
import sqlite3
import tempfile

import nsys_db
import oracle
from oracle import Case, data

TEXT = re.compile(r"^(.*?)(?:, seq = (-?\d+))?(?:, op_id = (\d+))?(?:, sizes = (\[.*?\]))?(?:, input_op_ids = (\[.*\]))?$")
SHOWN = ("op_id", "op", "input", "shape", "producer_id", "producer", "output", "passed_on")


def around(ranges):
    """The op around each op of one thread: [(start, end, id)] -> {id: id or None}."""
    out, open_ = {}, []
    for start, end, id_ in sorted(ranges, key=lambda r: (r[0], -r[1])):
        while open_ and open_[-1][1] <= start:
            open_.pop()
        out[id_] = open_[-1][2] if open_ else None
        open_.append((start, end, id_))
    return out


def of_ranges(path):
    """What the ranges of a database state, as rows of the report."""
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    ops, threads = {}, collections.defaultdict(list)
    for start, end, thread, text in db.execute("SELECT start, end, globalTid, coalesce(e.text, s.value) FROM NVTX_EVENTS e LEFT JOIN StringIds s ON e.textId = s.id WHERE eventType = 59"):
        name, _, id_, sizes, inputs = TEXT.match(text).groups()
        if id_:
            ops[int(id_)] = (start, name, sizes, inputs)
            threads[thread].append((start, end, int(id_)))
    db.close()
    parent = {k: v for ranges in threads.values() for k, v in around(ranges).items()}
    made = {id_: [tuple(map(int, x)) for x in re.findall(r"\((\d+),(-?\d+)\)", inputs or "")] for id_, (_, _, _, inputs) in ops.items()}
    rows, seen = [], {}
    for id_, (_, _, sizes, _) in sorted(ops.items(), key=lambda x: x[1][0]):
        shapes = json.loads(sizes) if sizes else []
        for maker, shape in zip(made[id_], shapes) if len(shapes) == len(made[id_]) else ():
            seen.setdefault(maker, shape)
    for id_, (start, name, sizes, _) in ops.items():
        shapes = json.loads(sizes) if sizes else []
        for i, (maker, output) in enumerate(made[id_]):
            if maker == 0:
                continue
            known = len(shapes) == len(made[id_])
            believed = maker in ops and (not known or seen[maker, output] == shapes[i])  # one output has one shape
            rows.append((id_, name, i, json.dumps(shapes[i]) if known else None, maker, ops[maker][1] if believed else None, output, (maker, output) in made.get(parent[id_], ())))
    return sorted(rows, key=str)


def shown(table, ids=SHOWN):
    return sorted((tuple(r.get(k) for k in ids) for r in table.rows), key=str)


class OpGraph(Case):
    def setUp(self):
        super().setUp()
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)

    def database(self, *ranges):
        path = os.path.join(self.tmp, "x.sqlite")
        nsys_db.make(path, {"StringIds": [], "NVTX_EVENTS": [nsys_db.nvtx(*r) for r in ranges]})
        return path

    def kept(self, path, *args):
        """The same, read from an .opscope file."""
        file = os.path.join(self.tmp, "kept.opscope")
        code, _, err = oracle.run("import", path, "-o", file, *args)
        self.assertEqual(code, 0, err)
        return file

    def test_ranges(self):
        """GPT-2 under emit_nvtx: each input of 4,022 ops, through an .opscope file, too."""
        path = data("more", "nsys", "2026.3_gpt_small_a100", "forward.sqlite")
        want, got = of_ranges(path), oracle.report("op-graph", path, "--limit=0")
        self.assertEqual(len(want), 4580)
        self.assertEqual(shown(got), want)
        self.assertTrue(any("4022" in n.replace(",", "") for n in got.notes), got.notes)
        self.assertEqual(oracle.report("op-graph", self.kept(path), "--limit=0").rows, got.rows)

    def test_backward(self):
        """The same with the backward pass: what the forward pass made goes into it, across threads."""
        path = data("more", "nsys", "2026.3_gpt_small_a100", "forward_backward.sqlite")
        got = oracle.report("op-graph", path, "--limit=0")
        self.assertEqual(shown(got), of_ranges(path))
        ways = collections.Counter((r["producer_direction"], r["direction"]) for r in got.rows)
        self.assertGreater(ways["forward", "backward"], 100)
        self.assertEqual(ways["backward", "forward"], 0)

    def test_by_hand(self):
        def text(name, id_, *inputs, sizes=None, seq=None):
            sizes = "".join(f", sizes = {sizes}" if sizes else "")
            return f"{name}{'' if seq is None else f', seq = {seq}'}, op_id = {id_}{sizes}" + (f", input_op_ids = [{', '.join(inputs)}]" if inputs else "")
        path = self.database(
            (0, 10, text("aten::empty", 1), 7, 1), (20, 60, text("aten::linear", 2, "(1,0)", "(0,-1)", "(99,1)", sizes="[[2, 3], [4, 3], []]", seq=5), 7, 1),
            (30, 40, text("aten::addmm", 3, "(1,0)", "(0,-1)", sizes="[[2, 3]]"), 7, 1), (70, 80, text("AddmmBackward0", 4, "(2,0)", "(5,0)", seq=5), 7, 2),
            (75, 90, text("aten::mul", 5, "(6,0)", "(6,0)"), 7, 3), (100, 110, text("aten::sum", 6, "(8,0)"), 7, 1), (120, 130, text("aten::sum", 8), 7, 1),
            (140, 150, text("aten::sum", 8), 7, 1), (160, 170, text("aten::add", 9, "(8,0)", "(2,3)"), 7, 1),
            (180, 190, text("aten::abs", 10, "(9,0)", sizes="[[2, 3]]"), 7, 1), (200, 210, text("aten::mul", 11, "(9,0)", "(9,0)", sizes="[[], [2, 3]]"), 7, 1),
            (220, 220, text("aten::neg", 12, "(12,0)"), 7, 1), (0, 5, text("aten::other", 2), 8, 1), (30, 40, text("aten::relu", 4, "(2,0)"), 8, 1))
        got = oracle.report("op-graph", path, "--limit=0")
        ids = (*SHOWN, "producer_direction", "direction")
        want = [(2, "aten::linear", 0, "[2, 3]", 1, "aten::empty", 0, False, "forward", "forward"), (2, "aten::linear", 2, "[]", 99, None, 1, False, None, "forward"),
                (3, "aten::addmm", 0, None, 1, "aten::empty", 0, True, "forward", "forward"), (4, "AddmmBackward0", 0, None, 2, "aten::linear", 0, False, "forward", "backward"),
                (4, "AddmmBackward0", 1, None, 5, None, 0, False, None, "backward"), (5, "aten::mul", 0, None, 6, None, 0, False, None, "forward"), (5, "aten::mul", 1, None, 6, None, 0, False, None, "forward"),
                (6, "aten::sum", 0, None, 8, None, 0, False, None, "forward"), (9, "aten::add", 0, None, 8, None, 0, False, None, "forward"),
                (9, "aten::add", 1, None, 2, "aten::linear", 3, False, "forward", "forward"), (10, "aten::abs", 0, "[2, 3]", 9, "aten::add", 0, False, "forward", "forward"),
                (11, "aten::mul", 0, "[]", 9, None, 0, False, None, "forward"), (11, "aten::mul", 1, "[2, 3]", 9, "aten::add", 0, False, "forward", "forward"), (4, "aten::relu", 0, None, 2, "aten::other", 0, False, "forward", "forward"),
                (12, "aten::neg", 0, None, 12, None, 0, False, None, "forward")]  # which takes no time, and is not its own producer
        self.assertEqual(shown(got, ids), sorted(want, key=str))
        notes = "\n".join(got.notes)
        self.assertIn("ended after the op began, or several ops have its id, or an op before saw this output with another shape: 7", notes)
        self.assertIn("not in the recording: 1", notes)
        self.assertIn("is not stated (weights, data, what was made before the recording): 1", notes)
        code, out, err = oracle.run("sql", path, "SELECT op_id, input_ops FROM span WHERE name = 'aten::addmm'", "--format=csv")
        self.assertEqual((code, out), (0, b'op_id,input_ops\n3,"[(1,0), (0,-1)]"\n'), err)

    def test_calls(self):
        """Markers of DLProf and opscope.torch, which number calls."""
        def marker(op, call, *inputs):
            return f"{{'mod': 'torch', 'op': '{op}', 'args': [], 'callid': {call}, 'input_callids': {list(inputs)}}}"
        path = self.database((0, 10, marker("rand", 0), 7, 1), (20, 30, marker("add", 1, 0, -1), 7, 1), (40, 50, marker("cat", 2, 1, 0), 7, 1))
        got = oracle.report("op-graph", path)
        self.assertEqual(shown(got, ("op_id", "op", "input", "producer_id", "producer", "output")),
                         [(1, "torch.add", 0, 0, "torch.rand", None), (2, "torch.cat", 0, 1, "torch.add", None), (2, "torch.cat", 1, 0, "torch.rand", None)])

    def test_execution_trace(self):
        """Tensor by tensor: an input is of the op that ended last with this tensor, of the same storage, among its outputs."""
        et, kineto = data("more", "execution_trace", "megatron_a100_tp8", "megatron_et_0.json.gz"), data("multirank", "megatron_a100_tp8", "megatron_kineto_0.json.gz")
        with gzip.open(et) as f:
            nodes = sorted((n for n in json.load(f)["nodes"] if not n["name"].startswith("[pytorch|profiler|execution_trace|")), key=lambda n: n["id"])
        with gzip.open(kineto) as f:
            events = [e for e in json.load(f)["traceEvents"] if e.get("cat") in ("cpu_op", "user_annotation") and not re.match(r"ProfilerStep|enumerate\(DataLoader\)", e["name"])]
        events.sort(key=lambda e: e["args"]["External id"])
        self.assertEqual([n["name"] for n in nodes], [e["name"] for e in events])
        moments = []
        for node, e in zip(nodes, events):
            if e["cat"] == "cpu_op":
                # At one time, ends come first, the inner ones before the outer ones; an op that takes no time begins before it ends.
                id_ = e["args"]["External id"]
                moments += [(e["ts"], 1 if e["dur"] else 0.5, id_, False, node, e), (e["ts"] + e["dur"], 0 if e["dur"] else 0.6, -id_, True, node, e)]
        made, want = {}, []
        for _, _, _, ends, node, e in sorted(moments, key=lambda m: m[:3]):
            side = "outputs" if ends else "inputs"
            i = 0
            for value, kind in zip(node[side], node[f"{side[:-1]}_types"]):
                tensors = [value] if kind.startswith("Tensor(") else value if kind.startswith("GenericList[Tensor(") else []
                for t in tensors:
                    if ends:
                        made[t[0]] = (e, i, t[1])
                    elif t[0] in made and made[t[0]][2] == t[1]:
                        maker, output, _ = made[t[0]]
                        want.append((e["args"]["External id"], e["name"], i, maker["args"]["External id"], maker["name"], output))
                    i += 1
                i += not tensors
        got = oracle.report("op-graph", kineto, f"--execution-trace={et}", "--limit=0")
        self.assertGreater(len(want), 3000)
        self.assertEqual(shown(got, ("op_id", "op", "input", "producer_id", "producer", "output")), sorted(want, key=str))
        self.assertEqual(oracle.report("op-graph", self.kept(kineto, f"--execution-trace={et}"), "--limit=0").rows, got.rows)

    def test_refused(self):
        """Most recordings do not state it, and the report says what does."""
        for path, said in ((oracle.synthetic("training_gpu"), b"--execution-trace"), (self.database((0, 10, "aten::add, seq = 3, op_id = 4", 7, 1)), b"emit_nvtx(record_shapes=True)")):
            code, out, err = oracle.run("report", "op-graph", path)
            self.assertEqual((code, out, err.count(b"\n")), (1, b"", 1), err)
            self.assertIn(said, err)

    def test_damaged(self):
        for inputs in ("[", "[(1,0)", "[(1,0), x]", "[(1)]", "[[(1,0)]]", "[(99999999999999999999,0)]", "[(1,0,0)]", "[(1,99999999999)]", "[" * 100 + "]" * 100):
            path = self.database((0, 10, "aten::a, op_id = 1, input_op_ids = [(0,-1)]", 7, 1), (20, 30, f"aten::b, op_id = 2, input_op_ids = {inputs}", 7, 1))
            code, out, err = oracle.run("report", "op-graph", path, "--format=csv")
            self.assertIn(code, (0, 1), err)
            if code:
                self.assertEqual((out, err.count(b"\n")), (b"", 1), err)
            os.unlink(path)


if __name__ == "__main__":
    oracle.main()
