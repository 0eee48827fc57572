"""What graphs replay is attributed to the ops that captured it: of real replays as an independent reading of both files says, and of made ones, whose truth is known, never to a wrong op."""
import collections
import csv
import decimal
import gzip
import json
import lzma
import os
import random
import re
import shutil
import sqlite3
import tempfile

import oracle
from oracle import Case, data

H200 = os.path.join(oracle.ROOT, "tests", "data", "h200")
VLLM = ("graphs", "vllm_decode_full")
SGLANG = ("tracelens", "inference", "sglang_decode")


def events(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as f:
        return [e for e in json.load(f)["traceEvents"] if e.get("ph") == "X"]


def sql(path, query, *args):
    code, out, err = oracle.run("sql", path, query, "--steps=all", "--format=json", "--limit=0", *args)
    if code:
        raise AssertionError(err.decode(errors="replace"))
    return json.loads(out)["rows"]


def attributed(path):
    """[(kernel, op, dims, evidence)] of all device work, by start."""
    return sql(path, "select g.name, s.name, arg(s.args, 'Input Dims'), g.evidence from gpu_op g left join span s on s.rowid = g.op order by g.start_ns, g.rowid")


def captured_ops(capture):
    """The names of the ops around the launches of a capture, in order: by External id, as the file states it."""
    of_id = {e["args"]["External id"]: e["name"] for e in capture if e["cat"] == "cpu_op" and "External id" in e.get("args", {})}
    calls = sorted((e for e in capture if e["cat"] in ("cuda_runtime", "cuda_driver")), key=lambda e: e["ts"])
    begin = next(e["ts"] for e in calls if "StreamBeginCapture" in e["name"])
    end = next(e["ts"] for e in calls if "StreamEndCapture" in e["name"])
    nodes = [e for e in calls if begin < e["ts"] < end and any(w in e["name"] for w in ("Launch", "Memset", "Memcpy")) and "GraphLaunch" not in e["name"]]
    return [of_id.get(e["args"].get("External id")) for e in nodes]


class Real(Case):
    def check(self, folder, replay, capture, launches):
        """Kernel k of the replay is of the op of launch k of the capture."""
        path = data(*folder, replay)
        want = captured_ops(events(data(*folder, "capture_traces", capture)))
        launch, = (e["args"]["correlation"] for e in events(path) if "GraphLaunch" in e["name"])
        kernels = sorted((e for e in events(path) if e["cat"] == "kernel" and e["args"].get("correlation") == launch), key=lambda e: e["ts"])
        self.assertEqual(len(kernels), launches)
        got = [(r[0], r[1]) for r in attributed(path) if r[3]]
        self.assertEqual(got, [(e["name"], op) for e, op in zip(kernels, want)])

    def test_vllm(self):
        self.check(VLLM, "graph_execution.json.gz", "graph_capture_rank_0.1773709742341309550.pt.trace.json.gz", 421)

    def test_sglang(self):
        self.check(SGLANG, "sglang_Qwen3-8B_decode.json.gz", "bs_32_rank0.json.gz", 544)

    @staticmethod
    def plain(name):
        """TraceLens leaves out the number at the end of a name."""
        return re.sub(r"_\d+$", "", name)

    def test_times_of_tracelens(self):
        """Kernel times and calls of each op as TraceLens gives them, but for its clock, whose doubles are exact to 1 ns a kernel."""
        for folder, replay in ((VLLM, "graph_execution.json.gz"), (SGLANG, "sglang_Qwen3-8B_decode.json.gz")):
            want = collections.Counter()
            with open(data(*folder, "perf_csvs", "ops_summary.csv")) as f:
                for r in csv.DictReader(f):
                    want[self.plain(r["name"])] += float(r["total_direct_kernel_time_sum"])
            rows = attributed(data(*folder, replay))
            self.assertGreater(len(rows), 400)
            got, calls = collections.Counter(), collections.Counter()
            for name, ns in sql(data(*folder, replay), "select s.name, g.dur_ns from gpu_op g join span s on s.rowid = g.op"):
                got[self.plain(name)] += ns / 1000
                calls[self.plain(name)] += 1
            for name, us in want.items():
                if us == 0 or name.startswith(("hipLaunchKernel", "hipModuleLaunchKernel", "hipExtModuleLaunchKernel")):
                    continue  # kernels outside of all ops
                self.assertAlmostEqual(got[name], us, delta=0.001 * calls[name] + 0.001, msg=name)

    def test_position(self):
        """CUDA's calls name no kernels: of our own recording on an H200 each replay's kernel k is of the op of call k."""
        path = os.path.join(H200, "gpt_bf16_graph.json.gz")
        want = captured_ops(events(path))
        rows = [r for r in attributed(path) if r[3]]
        self.assertEqual(len(rows), 10 * len(want))
        self.assertEqual({r[3] for r in rows}, {"position"})
        for i, r in enumerate(rows):
            self.assertEqual(r[1], want[i % len(want)], r)

    def test_eager_and_graph(self):
        """The forward pass of one model, eager and replayed, has the same kernels for each op."""
        def by_op(name):
            of = collections.defaultdict(collections.Counter)
            for kernel, op, _, _ in attributed(os.path.join(H200, name)):
                if op in ("aten::addmm", "aten::native_layer_norm", "aten::gelu", "aten::_cudnn_attention_forward"):
                    of[op][kernel] += 1
            return of
        graph = by_op("gpt_bf16_graph.json.gz")
        self.assertEqual(set(graph), {"aten::addmm", "aten::native_layer_norm", "aten::gelu", "aten::_cudnn_attention_forward"})
        for op, word in (("aten::addmm", "nvjet"), ("aten::native_layer_norm", "layer_norm"), ("aten::gelu", "elementwise"), ("aten::_cudnn_attention_forward", "cudnn")):
            self.assertTrue(any(word in k for k in graph[op]), graph[op])
        self.assertTrue(all("layer_norm" in k for k in graph["aten::native_layer_norm"]), graph["aten::native_layer_norm"])

    def nodes_of_nsys(self):
        """A recording with nodes, and a range around each call that made one: (its path, an open database, [(node, op)] of those that are no copies). The recording has no ranges of its own."""
        path = os.path.join(tempfile.mkdtemp(), "g.sqlite")
        self.addCleanup(shutil.rmtree, os.path.dirname(path))
        with lzma.open(os.path.join(H200, "gpt_bf16_graph.nsys.sqlite.xz")) as packed, open(path, "wb") as f:
            shutil.copyfileobj(packed, f)
        db = sqlite3.connect(path)
        made = db.execute("""select n.graphNodeId, c.start, c.end, c.globalTid from CUDA_GRAPH_NODE_EVENTS n join (select * from CUPTI_ACTIVITY_KIND_RUNTIME) c
            on c.globalTid = n.globalTid and c.start <= n.start and n.start <= c.end join StringIds s on s.id = c.nameId
            where n.originalGraphNodeId is null and (s.value like '%Launch%' or s.value like '%Memset%') order by n.start""").fetchall()
        self.assertEqual(len(made), 53)
        db.execute("create table NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, rangeId INTEGER, category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, "
                   "domainId INTEGER, uint64Value INTEGER, int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL, jsonTextId INTEGER, jsonText TEXT, binaryData TEXT)")
        op_of = {}
        for k, (node, start, end, tid) in enumerate(made):
            db.execute("insert into NVTX_EVENTS (start, end, eventType, text, globalTid, domainId) values (?, ?, 59, ?, ?, 0)", (start - 1, end + 1, f"aten::op{k}, seq = {k}", tid))
            op_of[node] = f"aten::op{k}"
        return path, db, op_of

    def check_nodes(self, path, db, op_of):
        """Kernels and memsets by the op of the node that theirs is a copy of; returns how many."""
        copies = dict(db.execute("select graphNodeId, originalGraphNodeId from CUDA_GRAPH_NODE_EVENTS where originalGraphNodeId is not null"))
        names = collections.Counter()
        for table in ("KERNEL", "MEMSET"):
            for node, in db.execute(f"select graphNodeId from CUPTI_ACTIVITY_KIND_{table} where graphNodeId is not null"):
                if copies.get(node) in op_of:
                    names[op_of[copies[node]]] += 1
        db.commit()
        db.close()
        got = collections.Counter(dict(sql(path, "select o.name, count(*) from gpu_op g join span o on o.rowid = g.op where g.evidence = 'node' group by 1")))
        self.assertEqual(got, names)
        return sum(names.values())

    def test_nodes_of_nsys(self):
        """A replayed node is a copy of the one that a captured call made: by the ids of nodes."""
        self.assertEqual(self.check_nodes(*self.nodes_of_nsys()), 4 * 53)

    def test_ids_given_twice(self):
        """Of two nodes with one id nobody knows which one ran."""
        path, db, op_of = self.nodes_of_nsys()
        nodes = sorted(op_of)
        db.execute("insert into CUDA_GRAPH_NODE_EVENTS select start, end, eventClass, globalTid, nameId, ?, null from CUDA_GRAPH_NODE_EVENTS where graphNodeId = ? and originalGraphNodeId is null", (nodes[3], nodes[8]))
        db.execute("insert into CUDA_GRAPH_NODE_EVENTS select start, end, eventClass, globalTid, nameId, graphNodeId, null from CUDA_GRAPH_NODE_EVENTS where graphNodeId = ?", (nodes[5],))
        del op_of[nodes[3]]
        self.assertEqual(self.check_nodes(path, db, op_of), 4 * 52)

    def test_eager_twin(self):
        """A recording in which the same kernels ran one by one serves as the capture: all work of the compiled model's graphs is told, each by the op of the eager kernel with its name, grid and block."""
        path, twin = (os.path.join(H200, f"gpt_bf16_compiled{x}.json.gz") for x in ("_graphs", ""))
        self.assertEqual({r[3] for r in attributed(path) if r[3]}, {"unknown"})
        rows = sql(path, "select g.name, s.name, g.evidence, l.grid_x, l.block_x from gpu_op g left join span s on s.rowid = g.op join launch l on l.rowid = g.launch where g.evidence is not null", f"--capture={twin}")
        self.assertEqual(len(rows), 2 * (76 + 149))
        self.assertEqual({r[2] for r in rows}, {"sequence"})
        eager = collections.defaultdict(set)
        for name, op, grid, block in sql(twin, "select g.name, s.name, l.grid_x, l.block_x from gpu_op g join span s on s.rowid = g.op join launch l on l.rowid = g.launch"):
            eager[name, grid, block].add(op)
        for name, op, _, grid, block in rows:
            if not name.startswith("Memset"):
                self.assertIn(op, eager[name, grid, block], name)

    def test_report(self):
        t = oracle.report("graphs", data(*SGLANG, "sglang_Qwen3-8B_decode.json.gz"), "--steps=all")
        row, = t.rows
        self.assertEqual((row["launches"], row["pieces"], row["evidence"], row["known_pct"], row["odd_launches"]), (1, 544, "sequence", 100, 0))
        self.assertEqual((row["blocks"], row["block_pieces"]), (36, 15))  # Qwen3-8B has 36 layers
        blocks = t.section("blocks").rows
        self.assertEqual(len(blocks), 15)
        self.assertEqual({b["runs"] for b in blocks}, {36})
        row2, = oracle.report("graphs", data(*VLLM, "graph_execution.json.gz")).rows
        self.assertEqual((row2["blocks"], row2["block_pieces"]), (11, 35))  # two layers that alternate
        self.assertAlmostEqual(row["longest_gap_ns"], 273_690, delta=10)
        for parts, got in (((*SGLANG, "sglang_Qwen3-8B_decode.json.gz"), row), ((*VLLM, "graph_execution.json.gz"), row2)):
            gaps, before = gaps_of_launch(data(*parts))
            place = max(range(len(gaps)), key=lambda i: gaps[i])
            self.assertEqual((got["gaps"], got["gap_ns"]), (sum(g > 0 for g in gaps), sum(g for g in gaps if g > 0)))
            if gaps[place] > 1:  # of gaps of 1 ns, the rounding of times, the first is as good as another
                self.assertEqual((got["longest_gap_ns"], got["gap_place"], got["gap_kernel"]), (gaps[place], place + 2, before[place]))
        self.assertAlmostEqual(row["total_ns"], 9_656_400, delta=100)

    def test_whole_graphs(self):
        """Recorded at the level of graphs, a launch is one piece, which cannot be opened."""
        path = data("nsys", "2025.5_flameox_graph")
        path = next(os.path.join(path, f) for f in sorted(os.listdir(path)) if ".sqlite" in f)
        t = oracle.report("graphs", path)
        self.assertEqual(t.rows, [])
        self.assertIn("2 launches of graphs are recorded as one piece of work each", "\n".join(t.notes))
        code, _, err = oracle.run("report", "graphs", path, "--capture=" + os.path.join(H200, "gpt_bf16_compiled.json.gz"))
        self.assertEqual(code, 0)
        self.assertIn("was read and not used: no launch of a graph has work that was recorded piece by piece", err.decode())


def gaps_of_launch(path):
    """Of the one launch of a graph: the gaps between its pieces of work, in ns, and the name of the piece behind each."""
    with gzip.open(path, "rt", encoding="utf-8") as f:
        events = [e for e in json.load(f, parse_float=decimal.Decimal)["traceEvents"] if e.get("ph") == "X"]
    launch, = [e["args"]["correlation"] for e in events if "GraphLaunch" in e["name"]]
    work = sorted((int(e["ts"] * 1000), int(e["ts"] * 1000) + int(e["dur"] * 1000), e["name"]) for e in events if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset") and e["args"]["correlation"] == launch)
    return [b[0] - a[1] for a, b in zip(work, work[1:])], [w[2] for w in work[1:]]


class Model:
    """A model of repeated layers whose ops launch kernels; equal layers launch equal kernels."""

    def __init__(self, rnd, layers, kinds):
        self.nodes = []  # (op, dims, module, kernel)
        blocks = []
        for k in range(kinds):
            ops = []
            for i in range(rnd.randint(2, 6)):
                op = f"aten::op{rnd.randint(0, 5)}"
                ops.append((op, [[rnd.randint(1, 4), 8]], [f"kernel{rnd.randint(0, 7)}" for _ in range(rnd.randint(1, 3))]))
            blocks.append(ops)
        for n in range(layers):
            for op, dims, kernels in blocks[n % kinds]:
                self.nodes += [(op, dims, f"Block_{n}", kernel, len(kernels), i) for i, kernel in enumerate(kernels)]


def capture_doc(nodes, named=True):
    """The recording of a capture: ranges of modules and ops around calls that launch, and no device work."""
    ev, at, ids = [], 1000.0, 1
    call = lambda name, ts, **args: ev.append({"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": 0.4, "args": args})
    call("hipStreamBeginCapture", at, correlation=900001)
    module, since, at = None, at, at + 1
    for op, dims, mod, kernel, n, i in nodes:
        if mod != module:
            if module:
                ev.append({"ph": "X", "cat": "python_function", "name": f"nn.Module: {module}", "pid": 1, "tid": 1, "ts": since, "dur": at - since - 0.1, "args": {"Python id": 5000 + ids, "Python module id": 0}})
            module, since = mod, at
            at += 0.1
        if i == 0:
            ids += 1
            ev.append({"ph": "X", "cat": "cpu_op", "name": op, "pid": 1, "tid": 1, "ts": at, "dur": n * 1.0, "args": {"External id": ids, "Input Dims": dims}})
        args = {"kernel": kernel} if named else {}
        call("hipLaunchKernel", at + 0.3 + i * 0.9, correlation=len(ev) + 10, **{"External id": ids}, **args)
        if i == n - 1:
            at += n * 1.0 + 0.5
    ev.append({"ph": "X", "cat": "python_function", "name": f"nn.Module: {module}", "pid": 1, "tid": 1, "ts": since, "dur": at - since - 0.1, "args": {"Python id": 5000, "Python module id": 0}})
    call("hipStreamEndCapture", at + 1, correlation=900002)
    return {"schemaVersion": 1, "traceEvents": ev}


def replay_doc(launches, graph=None, nodes=None):
    """launches: [[(kernel, stream)]]; each piece has its number as its duration, 1 us + n ns. `graph`: the id that all state; `nodes`: of each piece of each launch."""
    ev, at = [], 1_000_000.0
    for c, work in enumerate(launches):
        ev.append({"ph": "X", "cat": "cuda_runtime", "name": "hipGraphLaunch", "pid": 1, "tid": 1, "ts": at, "dur": 50, "args": {"correlation": 70 + c}})
        at += 100
        for n, (kernel, stream) in enumerate(work):
            ev.append({"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": stream, "ts": at, "dur": 1 + n / 1000, "args": {"correlation": 70 + c, "device": 0, "stream": stream, **({"graph id": graph, "grid": [1, 1, 1], "block": [64, 1, 1]} if graph else {}), **({"graph node id": nodes[c][n]} if nodes else {})}})
            at += 5
        at += 100
    return {"schemaVersion": 1, "traceEvents": ev}


def interleaved(rnd, nodes, stream_of):
    """[(node, stream)] in an order that keeps that of each stream."""
    queues = collections.defaultdict(list)
    for node in nodes:
        queues[stream_of(node)].append(node)
    order = []
    while any(queues.values()):
        s = rnd.choice([s for s, q in queues.items() if q])
        order.append((queues[s].pop(0), s))
    return order


class Made(Case):
    def setUp(self):
        super().setUp()
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)

    def attribute(self, nodes, launches, **more):
        """[(op, dims, module, evidence)] of each piece of each launch."""
        return self.attribute_doc(capture_doc(nodes, **more), replay_doc(launches))

    def attribute_doc(self, capture, replay):
        folder = tempfile.mkdtemp(dir=self.tmp)
        os.mkdir(os.path.join(folder, "capture_traces"))
        with open(os.path.join(folder, "capture_traces", "bs_1_rank0.json"), "w") as f:
            f.write(json.dumps(capture))
        self.path = path = os.path.join(folder, "replay.json")
        with open(path, "w") as f:
            f.write(json.dumps(replay))
        rows = sql(path, """select s.name, arg(s.args, 'Input Dims'),
            (with recursive up(i) as (select g.op union all select parent from span, up where span.rowid = up.i and parent is not null)
             select group_concat(name, '/') from span, up where span.rowid = up.i and name like 'nn.Module: %'), g.evidence, g.start_ns
            from gpu_op g left join span s on s.rowid = g.op order by g.start_ns""")
        return [(op, json.loads(dims) if dims else None, (module or "").replace("nn.Module: ", ""), by) for op, dims, module, by, _ in rows]

    def check(self, got, truth):
        """No piece is of a wrong op or module; returns the share that is told."""
        self.assertEqual(len(got), len(truth))
        told = 0
        for (op, dims, module, by), want in zip(got, truth):
            if by in ("unknown", "ambiguous"):
                continue
            self.assertIsNotNone(want, f"{op} was captured nowhere")
            self.assertEqual((op, dims, module), (want[0], want[1], want[2]))
            told += 1
        return told / len(truth)

    def test_equal(self):
        rnd = random.Random(1)
        for _ in range(15):
            m = Model(rnd, rnd.randint(1, 8), rnd.randint(1, 3))
            launches = [[(k, 7) for *_, k, _, _ in m.nodes]] * rnd.randint(1, 3)
            self.assertEqual(self.check(self.attribute(m.nodes, launches), m.nodes * len(launches)), 1)

    def test_without_names(self):
        """As many calls of the same kinds: by position. One call more: nothing is told."""
        m = Model(random.Random(2), 4, 2)
        work = [(k, 7) for *_, k, _, _ in m.nodes]
        got = self.attribute(m.nodes, [work], named=False)
        self.assertEqual({by for *_, by in got}, {"position"})
        self.assertEqual(self.check(got, m.nodes), 1)
        self.assertEqual({by for *_, by in self.attribute(m.nodes, [work[:-1]], named=False)}, {"unknown"})
        self.assertEqual({by for *_, by in self.attribute(m.nodes, [[(k, 7 + i % 2) for i, (k, _) in enumerate(work)]], named=False)}, {"unknown"})

    def test_changed(self):
        """Pieces taken out and put in: what is told is right, and most is told where layers can be told apart."""
        rnd, shares = random.Random(3), []
        for n in range(40):
            m = Model(rnd, rnd.randint(2, 10), rnd.randint(1, 4))
            work, truth = [], []
            for node in m.nodes:
                what = rnd.random()
                if what < 0.03:
                    continue
                if what > 0.97:
                    work.append((f"other{rnd.randint(0, 3)}", 7))
                    truth.append(None)
                work.append((node[3], 7))
                truth.append(node)
            if work:
                shares.append(self.check(self.attribute(m.nodes, [work]), truth))
        self.assertGreater(sum(shares) / len(shares), 0.6, shares)

    def test_streams(self):
        """Branches run on streams of their own, and interleave in another order than that of capture."""
        rnd = random.Random(4)
        told = []
        for _ in range(25):
            m = Model(rnd, rnd.randint(2, 6), rnd.randint(1, 3))
            stream_of = {f"Block_{i}": rnd.choice((7, 8, 9)) for i in range(6)}
            order = interleaved(rnd, m.nodes, lambda node: stream_of[node[2]])
            told.append(self.check(self.attribute(m.nodes, [[(n[3], s) for n, s in order]]), [n for n, _ in order]))
        self.assertGreater(sum(told), 0)

    def test_two_captures(self):
        """Two captures of the same names and other shapes, and nothing says which: ambiguous. The batch of the step tells."""
        m = Model(random.Random(5), 3, 2)
        other = [(op, [[64, 8]], *rest) for op, _, *rest in m.nodes]
        folder = tempfile.mkdtemp(dir=self.tmp)
        os.mkdir(os.path.join(folder, "capture_traces"))
        for batch, nodes in ((8, m.nodes), (16, other)):
            with open(os.path.join(folder, "capture_traces", f"bs_{batch}_rank0.json"), "w") as f:
                doc = capture_doc(nodes)
                doc["traceEvents"].append({"ph": "X", "cat": "user_annotation", "name": f"capture_{batch}_FULL", "pid": 1, "tid": 1, "ts": 900, "dur": 1e6, "args": {}})
                f.write(json.dumps(doc))
        path = os.path.join(folder, "replay.json")
        for annotation, want in ((None, None), ("execute_context_0(0)_generation_12(12)", [[64, 8]]), ("step[DECODE bs=7]", "first")):
            doc = replay_doc([[(k, 7) for *_, k, _, _ in m.nodes]])
            if annotation:
                doc["traceEvents"].append({"ph": "X", "cat": "user_annotation", "name": annotation, "pid": 1, "tid": 1, "ts": 999_000, "dur": 5000, "args": {}})
            with open(path, "w") as f:
                f.write(json.dumps(doc))
            rows = attributed(path)
            if want is None:
                self.assertEqual({r[3] for r in rows}, {"ambiguous"})
            elif want == "first":
                self.assertEqual([json.loads(r[2]) for r in rows], [n[1] for n in m.nodes])
            else:
                self.assertEqual({json.dumps(json.loads(r[2])) for r in rows}, {json.dumps(want)})
        # The same of work on two streams, and of work that lacks a piece: no shapes of the wrong batch.
        names = [k for *_, k, _, _ in m.nodes]
        for work in ([(k, 7 + (k > "kernel3")) for k in names], [(k, 7) for k in names[:-1]]):
            with open(path, "w") as f:
                f.write(json.dumps(replay_doc([work])))
            self.assertEqual({r[1] for r in attributed(path)}, {None})
        # Two steps that pad to different batches.
        doc = replay_doc([[(k, 7) for k in names]] * 2)
        launches = [e["ts"] for e in doc["traceEvents"] if e["name"] == "hipGraphLaunch"]
        doc["traceEvents"] += [{"ph": "X", "cat": "user_annotation", "name": f"step[DECODE bs={bs}]", "pid": 1, "tid": 1, "ts": ts - 10, "dur": 80, "args": {}} for bs, ts in zip((7, 12), launches)]
        with open(path, "w") as f:
            f.write(json.dumps(doc))
        self.assertEqual([json.loads(r[2]) for r in attributed(path)], [n[1] for n in m.nodes] + [[[64, 8]]] * len(names))

    def pieces(self, n, steps, annotated, last=None):
        """Equal layers, each captured in a graph of its own; each step launches them in turn, with attention in between that no graph has. `last`: pieces of the last step."""
        layer = [("aten::mm", [[8, 64]], "kernel_a", 1), ("aten::add", [[8, 64]], "kernel_b", 1), ("aten::mul", [[8, 64]], "kernel_c", 1)]
        ev, at = [], 1000.0
        for k in range(n):
            doc = capture_doc([(op, dims, f"Block_{k}", kernel, 1, 0) for op, dims, kernel, _ in layer])
            for e in doc["traceEvents"]:
                args = {key: v + 100_000 * k if key in ("External id", "correlation", "Python id") else v for key, v in e["args"].items()}
                ev.append({**e, "ts": e["ts"] + 1000 * k, "args": args})
        folder = tempfile.mkdtemp(dir=self.tmp)
        os.mkdir(os.path.join(folder, "capture_traces"))
        with open(os.path.join(folder, "capture_traces", "bs_8_rank0.json"), "w") as f:
            f.write(json.dumps({"schemaVersion": 1, "traceEvents": ev}))
        ev, at, truth, corr = [], 1_000_000.0, [], 10
        for step in range(steps):
            since = at
            for k in range(n if step < steps - 1 or last is None else last):
                corr += 1
                ev.append({"ph": "X", "cat": "cuda_runtime", "name": "hipGraphLaunch", "pid": 1, "tid": 1, "ts": at, "dur": 5, "args": {"correlation": corr}})
                for i, (op, dims, kernel, _) in enumerate(layer):
                    ev.append({"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": at + 10 + 5 * i, "dur": 4, "args": {"correlation": corr, "device": 0, "stream": 7}})
                    truth.append((op, dims, f"Block_{k}"))
                at += 40
            if annotated:
                ev.append({"ph": "X", "cat": "user_annotation", "name": "execute_context_0(0)_generation_8(8)", "pid": 1, "tid": 1, "ts": since - 1, "dur": at - since, "args": {}})
            at += 100
        path = os.path.join(folder, "replay.json")
        with open(path, "w") as f:
            f.write(json.dumps({"schemaVersion": 1, "traceEvents": ev}))
        rows = sql(path, """select s.name, arg(s.args, 'Input Dims'),
            (with recursive up(i) as (select g.op union all select parent from span, up where span.rowid = up.i and parent is not null)
             select group_concat(name, '/') from span, up where span.rowid = up.i and name like 'nn.Module: %'), g.evidence, g.start_ns
            from gpu_op g left join span s on s.rowid = g.op order by g.start_ns""")
        return [(op, json.loads(dims) if dims else None, (module or "").replace("nn.Module: ", ""), by) for op, dims, module, by, _ in rows], truth

    def test_pieces(self):
        """The k-th launch of a step is of the k-th capture. Where steps are not known, or one has other launches, the op is known, and its layer is not."""
        got, truth = self.pieces(6, 3, True)
        self.assertEqual([g[:3] for g in got], truth)
        self.assertEqual({g[3] for g in got}, {"sequence"})
        for annotated, last in ((False, None), (True, 4)):
            got, truth = self.pieces(6, 3, annotated, last)
            self.assertEqual([(g[0], g[1]) for g in got], [t[:2] for t in truth])
            self.assertEqual({g[2] for g in got}, {""})

    def test_changed_graph(self):
        """A launch that replays other work than the first one of its graph is left alone, and the report says how many."""
        m = Model(random.Random(6), 3, 2)
        work = [(k, 7) for *_, k, _, _ in m.nodes]
        got = self.attribute(m.nodes, [work, work[:4], work])
        self.assertEqual(self.check(got[:len(work)], m.nodes), 1)
        self.assertEqual(self.check(got[-len(work):], m.nodes), 1)

    @staticmethod
    def whole_model(rnd):
        """With a first and a last kernel that no layer has."""
        m = Model(rnd, 4, 2)
        m.nodes = [("aten::embedding", [[3, 8]], "Embedding", "embedding", 1, 0), *m.nodes, ("aten::head", [[9, 8]], "Head", "head", 1, 0)]
        return m

    def test_cut_launches(self):
        """Where the recording begins or ends in the middle of a launch, the others are told all the same, and of the cut ones what they have. Their ops without work are not there."""
        rnd = random.Random(8)
        for named in (True, False):
            m = self.whole_model(rnd)
            work = [(k, 7) for *_, k, _, _ in m.nodes]
            for first, last in ((5, len(work)), (0, len(work) - 3), (len(work) - 1, 1), (7, 4)):
                launches, truth = [work[first:], work, work, work[:last]], m.nodes[first:] + 2 * m.nodes + m.nodes[:last]
                self.assertEqual(self.check(self.attribute_doc(capture_doc(m.nodes, named), replay_doc(launches, graph=5)), truth), 1, (first, last))
                ops = lambda nodes: len({i - node[5] for i, node in enumerate(nodes)})
                want = ops(m.nodes[first:]) if m.nodes[first][5] == 0 else None
                if want is not None:
                    got, = sql(self.path, "select count(*) from span where kind = 'op' and start_ns < (select min(start_ns) from span where name = 'hipGraphLaunch' and start_ns > (select min(start_ns) from span where name = 'hipGraphLaunch'))")
                    self.assertEqual(got, [want])
        # Of equal layers alone nobody knows which of them a part is; nor what a stretch out of the middle is.
        layer = Model(random.Random(9), 1, 1).nodes
        nodes = [(*n[:2], f"Block_{i}", *n[3:]) for i in range(4) for n in layer]
        work = [(k, 7) for *_, k, _, _ in nodes]
        got = self.attribute_doc(capture_doc(nodes), replay_doc([work[:len(layer)], work, work], graph=5))
        self.assertEqual({g[3] for g in got[:len(layer)]}, {"unknown"})
        self.assertEqual(self.check(got[len(layer):], 2 * nodes), 1)
        work = [(k, 7) for *_, k, _, _ in m.nodes]
        self.assertEqual({g[3] for g in self.attribute_doc(capture_doc(m.nodes), replay_doc([work[2:-2], work], graph=5))[:len(work) - 4]}, {"unknown"})

    def test_launches_that_interleave(self):
        """Streams of one graph run side by side, each launch in another order: the same work."""
        rnd = random.Random(10)
        for _ in range(8):
            m = Model(rnd, rnd.randint(2, 5), 2)
            m.nodes = [(op, dims, module, kernel + module[-1], n, i) for op, dims, module, kernel, n, i in m.nodes]  # each layer has kernels of its own
            stream_of = lambda node: 7 + int(node[2][-1]) % 3
            orders = [interleaved(rnd, m.nodes, stream_of) for _ in range(6)]
            for graph in (5, None):
                got = self.attribute_doc(capture_doc(m.nodes), replay_doc([[(n[3], s) for n, s in o] for o in orders], graph))
                self.assertEqual(self.check(got, [n for o in orders for n, _ in o]), 1)
                row, = oracle.report("graphs", self.path).rows
                self.assertEqual((row["launches"], row["odd_launches"]), (6, 0))

    def test_lost_nodes(self):
        """Nodes tell which pieces of a launch are missing, on whatever streams."""
        rnd = random.Random(11)
        m = self.whole_model(rnd)
        m.nodes = [(op, dims, module, f"{kernel}_{i}", n, at) for i, (op, dims, module, kernel, n, at) in enumerate(m.nodes)]
        orders = [interleaved(rnd, list(enumerate(m.nodes)), lambda node: 7 + node[0] % 2) for _ in range(4)]
        orders[0] = [x for x in orders[0] if rnd.random() < 0.6]
        orders[3] = orders[3][:9]
        got = self.attribute_doc(capture_doc(m.nodes), replay_doc([[(n[3], s) for (_, n), s in o] for o in orders], 5, [[2**40 + i for (i, _), s in o] for o in orders]))
        self.assertEqual(self.check(got, [n for o in orders for (_, n), _ in o]), 1)
        row, = oracle.report("graphs", self.path).rows
        self.assertEqual((row["launches"], row["odd_launches"], row["pieces"]), (4, 2, len(m.nodes)))

    def captures_doc(self, models, begins, ends, threads=None, named=True):
        """Captures whose calls stand one behind the other, each on its thread; begins[i] and ends[i] are the models behind whose calls capture i begins and ends; ends[i] None: it does not."""
        ev, at, edges = [], 10_000.0, [10_000.0]
        for k, nodes in enumerate(models):
            doc = capture_doc(nodes, named)
            own = [e for e in doc["traceEvents"] if "Capture" not in e["name"]]
            for e in own:
                args = {key: v + 100_000 * k if key in ("External id", "correlation", "Python id") else v for key, v in e["args"].items()}
                ev.append({**e, "ts": e["ts"] - 1000 + at, "tid": (threads or {}).get(k, 1), "args": args})
            at = max(e["ts"] + e["dur"] for e in ev) + 10
            edges.append(at)
        for i, (begin, end) in enumerate(zip(begins, ends)):
            for name, edge, shift in (("hipStreamBeginCapture", begin, -4 + i), ("hipStreamEndCapture", end, -6 - i)):
                if edge is not None:
                    ev.append({"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 1, "tid": (threads or {}).get(("capture", i), 1), "ts": edges[edge] + shift / 2, "dur": 0.2, "args": {"correlation": 800_000 + 10 * i + (edge == end)}})
        return {"schemaVersion": 1, "traceEvents": ev}

    def test_captures_that_overlap(self):
        """A capture within another one, on several threads at once, and without an end: calls with names tell whose they are, and calls without names are not believed."""
        rnd = random.Random(12)
        a, b, c = (Model(rnd, 2, 2).nodes for _ in range(3))
        work = lambda nodes: [(n[3], 7) for n in nodes]
        cases = (
            ("within", dict(models=[a, b, c], begins=[0, 1], ends=[3, 2]), [a + c, b]),
            ("no end", dict(models=[a, b], begins=[0, 1], ends=[None, 2]), [a, b]),
            ("no end at last", dict(models=[a, b], begins=[0, 1], ends=[1, None]), [a, b]),
            ("threads", dict(models=[a, b], begins=[0, 0], ends=[2, 2], threads={0: 1, 1: 2, ("capture", 1): 2}), [a, b]),
            ("another thread works", dict(models=[a, b], begins=[0], ends=[2], threads={1: 2}), [a + b]),
        )
        for name, how, graphs in cases:
            for nodes in graphs:
                with self.subTest(name):
                    self.assertEqual(self.check(self.attribute_doc(self.captures_doc(**how), replay_doc([work(nodes)])), nodes), 1)
        for name, how, graphs in cases[:1]:
            for nodes in graphs:
                with self.subTest(name + ", no names"):
                    self.assertEqual({g[3] for g in self.attribute_doc(self.captures_doc(**how, named=False), replay_doc([work(nodes)]))}, {"unknown"})
        # Threads that capture at once: each one's calls are its own.
        name, how, graphs = cases[3]
        for nodes in graphs:
            got = self.attribute_doc(self.captures_doc(**how, named=False), replay_doc([work(nodes)]))
            self.assertEqual(self.check(got, nodes), 1 if len(a) != len(b) else 0)

    def test_graph_in_a_capture(self):
        """A graph that is launched into a capture is one node of that, and runs all that it holds: calls without names are not the nodes one by one."""
        nodes = Model(random.Random(13), 2, 1).nodes
        doc = capture_doc(nodes, named=False)
        call = next(e for e in doc["traceEvents"] if "Launch" in e["name"])
        doc["traceEvents"].append({**call, "name": "hipGraphLaunch", "ts": call["ts"] + 0.5, "dur": 0.1, "args": {"correlation": 700_000}})
        self.assertEqual({g[3] for g in self.attribute_doc(doc, replay_doc([[(n[3], 7) for n in nodes]]))}, {"unknown"})

    def test_branches(self):
        """Branches may run on one stream, in another order than that of capture: kernels of one name between two waits are of one of their ops, nobody knows of which."""
        q, k = ("aten::norm", [[8, 32]], "Q", "norm", 1, 0), ("aten::norm", [[8, 4]], "K", "norm", 1, 0)
        nodes = [("aten::embedding", [[3, 8]], "Embedding", "embedding", 1, 0)]
        for i in range(3):
            nodes += [("aten::mm", [[8, i + 1]], f"In_{i}", "gemm_in", 1, 0), q, k, ("aten::mm", [[8, i + 9]], f"Out_{i}", "gemm_out", 1, 0)]
        doc = capture_doc(nodes)
        ops = [e for e in doc["traceEvents"] if e["cat"] == "cpu_op"]
        for e, node in zip(ops, nodes):
            if node is q:  # one wait before each branch, one behind
                doc["traceEvents"] += [{"ph": "X", "cat": "cuda_runtime", "name": "hipStreamWaitEvent", "pid": 1, "tid": 1, "ts": e["ts"] + at, "dur": 0.05, "args": {}} for at in (-0.2, 3.0)]
        swapped = [k if n is q else q if n is k else n for n in nodes]
        for truth in (nodes, swapped):
            got = self.attribute_doc(doc, replay_doc([[(n[3], 7) for n in truth]]))
            self.assertEqual([g[3] for g in got], ["ambiguous" if n in (q, k) else "sequence" for n in truth])
            self.check(got, truth)

    def test_calls_in_calls(self):
        """The runtime's call and the driver's call that it makes are one."""
        nodes = Model(random.Random(14), 3, 2).nodes
        for named in (True, False):
            doc = capture_doc(nodes, named)
            doc["traceEvents"] += [{**e, "cat": "cuda_driver", "name": e["name"].replace("hip", "cu"), "ts": e["ts"] + 0.1, "dur": 0.1, "args": {**e["args"], "correlation": e["args"]["correlation"] + 500_000}}
                                   for e in doc["traceEvents"] if e["name"].startswith("hip")]
            self.assertEqual(self.check(self.attribute_doc(doc, replay_doc([[(n[3], 7) for n in nodes]])), nodes), 1)

    def test_many_captures_like_it(self):
        """Of more captures of similar length than are tried, those that were left out may be the one."""
        nodes = self.whole_model(random.Random(15)).nodes
        ev = []
        for k in range(40):
            doc = capture_doc([(op, [[k, 8]], *rest) for op, _, *rest in nodes])
            for e in doc["traceEvents"]:
                args = {key: v + 1_000_000 * k if key in ("External id", "correlation", "Python id") else v for key, v in e["args"].items()}
                ev.append({**e, "ts": e["ts"] + 1000 * k, "args": args})
        got = self.attribute_doc({"schemaVersion": 1, "traceEvents": ev}, replay_doc([[(n[3], 7) for n in nodes[:-1]]]))
        self.assertEqual({g[0] for g in got}, {None})

    def test_another_program(self):
        """A capture without names that has as many calls by chance: its ops launch no such kernels."""
        gemm, norm, add = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_nn", "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)", "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float> >(int)"
        kernels = [norm, gemm, add, gemm, add, gemm] * 6
        ops = {norm: "aten::native_layer_norm", gemm: "aten::addmm", add: "aten::add"}
        own = [(ops[k], [[8, 8]], f"Block_{i}", k, 1, 0) for i, k in enumerate(kernels)]
        replay = replay_doc([[(k, 7) for k in kernels]])
        self.assertEqual(self.check(self.attribute_doc(capture_doc(own, named=False), replay), own), 1)
        for turn in (1, 2, 3):
            other = [(op, dims, f"Block_{i}", k, 1, 0) for i, (op, dims, _, k, _, _) in enumerate(own[turn:] + own[:turn])]
            self.assertEqual({g[3] for g in self.attribute_doc(capture_doc(other, named=False), replay)}, {"unknown"})
        code, out, _ = oracle.run("info", self.path)
        self.assertIn("taken for another program's", out.decode())

    def captured(self, files, *args, replay=None, folder="captures"):
        """Report `graphs` with --capture of a folder of these files: (status, message, evidence, info)."""
        top = tempfile.mkdtemp(dir=self.tmp)
        os.mkdir(os.path.join(top, folder))
        for name, content in files.items():
            with open(os.path.join(top, folder, name), "wb") as f:
                f.write(content if isinstance(content, bytes) else json.dumps(content).encode())
        path = os.path.join(top, "replay.json")
        with open(path, "w") as f:
            f.write(json.dumps(replay))
        more = [f"--capture={os.path.join(top, folder)}"] if folder == "captures" else []
        code, out, err = oracle.run("report", "graphs", path, "--format=json", *more, *args)
        table = json.loads(out) if code == 0 else {}
        self.columns, self.notes = [c["id"] for c in table.get("columns", [])], table.get("notes", [])
        return code, err.decode(errors="replace"), table.get("rows")

    def test_folders_of_captures(self):
        """What of a folder cannot be read is said, and costs itself alone."""
        nodes = Model(random.Random(16), 3, 2).nodes
        replay, good = replay_doc([[(n[3], 7) for n in nodes]]), capture_doc(nodes)
        broken = {"empty.json": b"", "broken.json.gz": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + b"\xff" * 1000, "torn.json.gz": gzip.compress(json.dumps(good).encode())[:400], "cut.json": b'{"traceEvents": [{"ph": "X", '}
        for name, content in broken.items():
            for folder in ("captures", "capture_traces"):
                with self.subTest(name, folder=folder):
                    code, err, rows = self.captured({"good.json": good, name: content}, replay=replay, folder=folder)
                    self.assertEqual(code, 0, err)
                    self.assertIn("sequence", json.dumps(rows))
                    self.assertIn(name, err)
                    self.assertEqual(err.count("\n"), 1, err)
        for files, words in (({}, "no trace of the capture of graphs (*.json, *.json.gz) in this folder"), ({"list.json": {"a": 1}}, "list.json is no trace"),
                             ({"list.json": {"a": 1}, "hello.json": b"hello"}, "and others are no trace"), ({"empty.json": b""}, "the file is empty"), ({"broken.json.gz": broken["broken.json.gz"]}, "broken.json.gz")):
            with self.subTest(words):
                code, err, _ = self.captured(files, replay=replay)
                self.assertEqual(code, 1, err)
                self.assertIn(words, err)
                self.assertEqual(err.count("\n"), 1, err)

    def test_ranks(self):
        """A rank's graphs are told by its own captures; where the rank is not known, and captures of ranks differ, by none. A folder of other ranks says so."""
        nodes = Model(random.Random(20), 3, 2).nodes
        other = [(op, [[77, 8]], *rest) for op, _, *rest in nodes]
        captures = {"bs_1_rank0.json": capture_doc(nodes), "bs_1_rank1.json": capture_doc(other)}
        replay = replay_doc([[(n[3], 7) for n in nodes]])
        for rank, truth in ((0, nodes), (1, other), (None, None)):
            folder = tempfile.mkdtemp(dir=self.tmp)
            os.mkdir(os.path.join(folder, "capture_traces"))
            for name, doc in captures.items():
                with open(os.path.join(folder, "capture_traces", name), "w") as f:
                    f.write(json.dumps(doc))
            path = os.path.join(folder, "replay.json")
            with open(path, "w") as f:
                f.write(json.dumps({**replay, **({"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 4}} if truth else {})}))
            rows = attributed(path)
            self.assertEqual([(r[1], json.loads(r[2]) if r[2] else None) for r in rows], [(n[0], n[1]) for n in truth] if truth else [(None, None)] * len(nodes))
        code, err, _ = self.captured(captures, replay={**replay, "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 4}})
        self.assertEqual(code, 1)
        self.assertRegex(err, r"in this folder; 2 traces are of other ranks \([01]\), and this is rank 3\n$")

    def test_odd_capture_traces(self):
        """capture_traces as a file, as links in a circle; the trace itself as its capture."""
        nodes = Model(random.Random(17), 3, 2).nodes
        replay = replay_doc([[(n[3], 7) for n in nodes]])
        for make, said in ((lambda p: open(p, "w").close(), None), (lambda p: os.symlink(p, p), "Too many levels"), (lambda p: os.symlink(os.path.dirname(p), p), None)):
            top = tempfile.mkdtemp(dir=self.tmp)
            path = os.path.join(top, "replay.json")
            with open(path, "w") as f:
                f.write(json.dumps(replay))
            make(os.path.join(top, "capture_traces"))
            code, out, err = oracle.run("report", "graphs", path, "--format=csv")
            self.assertEqual(code, 0)
            self.assertIn(b"unknown", out)
            if said:
                self.assertIn(said, err.decode())
            code, out, err = oracle.run("report", "graphs", path, "--capture=" + path)
            self.assertEqual((code, err), (0, b"") if not said else (0, err))

    def many(self, n):
        """n graphs, each captured without names and launched once, n that no capture has, and 30 n kernels that ran without graphs."""
        rnd, ev, at, ids = random.Random(19), [], 1000.0, 10
        call = lambda name, ts, dur, **args: ev.append({"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args})
        work = lambda name, ts, corr: ev.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": 1, "args": {"correlation": corr, "device": 0, "stream": 7}})
        graphs = [[f"kernel{rnd.randint(0, 9)}" for _ in range(12)] for _ in range(2 * n)]
        for kernels in graphs[:n] + [[k] for k in rnd.choices([f"kernel{i}" for i in range(10)], k=30 * n)]:
            captured = len(kernels) > 1
            if captured:
                call("cudaStreamBeginCapture", at, 0.1)
            for k in kernels:
                at, ids = at + 2, ids + 1
                ev.append({"ph": "X", "cat": "cpu_op", "name": "aten::op" + k[6:], "pid": 1, "tid": 1, "ts": at, "dur": 1, "args": {"External id": ids}})
                call("cudaLaunchKernel", at + 0.2, 0.5, correlation=ids, **{"External id": ids})
                if not captured:
                    work(k, at + 1, ids)
            at += 2
            if captured:
                call("cudaStreamEndCapture", at, 0.1)
        for kernels in graphs:
            at, ids = at + 30, ids + 1
            call("cudaGraphLaunch", at, 1, correlation=ids)
            for i, k in enumerate(kernels):
                work(k, at + 2 + 2 * i, ids)
        path = os.path.join(self.tmp, f"many{n}.json")
        with open(path, "w") as f:
            f.write(json.dumps({"schemaVersion": 1, "traceEvents": ev}))
        since = oracle.children_cpu_s()
        code, out, err = oracle.run("report", "graphs", path, "--capture=" + path, "--format=json", "--limit=1")
        self.assertEqual((code, err), (0, b""))
        return oracle.children_cpu_s() - since

    def test_many(self):
        """Four times as many graphs, captures and kernels take about four times as long, not sixteen times."""
        n = 150 if oracle.SANITIZED else 600
        self.assertLess(self.many(4 * n), 9 * self.many(n))

    def test_hostile(self):
        """Captures that begin and end anywhere, ids that many share, fields of any kind: an answer, or one line."""
        rnd = random.Random(18)
        nodes = Model(rnd, 3, 2).nodes
        odd = [-1, -1e300, 1e300, 2**63, 2**64, -2**63, 2**63 - 1, 0, "x", None, "18446744073709551615", [], {}]
        fields = ("ts", "dur", "pid", "tid", "name", "cat", "correlation", "External id", "graph id", "graph node id", "stream", "kernel", "grid", "Python id")
        for n in range(40):
            capture = capture_doc(nodes)
            replay = replay_doc([[(x[3], rnd.choice((7, 7, 8))) for x in nodes if rnd.random() < 0.9] for _ in range(rnd.randint(1, 4))], rnd.choice((None, 5)), rnd.choice((None, [[rnd.randint(0, 20) for _ in nodes] for _ in range(4)])))
            for _ in range(rnd.randint(0, 10)):
                name = rnd.choice(("cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaStreamBeginCaptureToGraph", "cudaGraphLaunch", "cudaStreamWaitEvent", "cudaMemcpyAsync"))
                capture["traceEvents"].append({"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 1, "tid": rnd.choice((1, 2)), "ts": rnd.choice((1000.0, rnd.uniform(990, 1100))), "dur": rnd.choice((0, 0.4, 50)), "args": {}})
            for doc in (capture, replay):
                for _ in range(rnd.choice((0, 1, 5))):
                    event, field = rnd.choice(doc["traceEvents"]), rnd.choice(fields)
                    (event if field in event else event.setdefault("args", {}))[field] = rnd.choice(odd)
            code, err, rows = self.captured({"a.json": capture}, replay=replay, folder="capture_traces")
            self.assertIn(code, (0, 1), err)
            self.assertLessEqual(err.count("\n"), 3, err)

    def test_wrong_captures(self):
        path = os.path.join(self.tmp, "replay.json")
        with open(path, "w") as f:
            f.write(json.dumps(replay_doc([[("kernel1", 7)]])))
        code, out, err = oracle.run("report", "graphs", path, "--capture=" + os.path.join(self.tmp, "none"))
        self.assertEqual(code, 1)
        self.assertRegex(err.decode(), r"--capture=.*none: No such file or directory; a trace of the capture of graphs, or a folder of such, was expected\n$")
        os.mkdir(os.path.join(self.tmp, "capture_traces"))
        with open(os.path.join(self.tmp, "capture_traces", "bad.json"), "w") as f:
            f.write('{"traceEvents": [{"ph": "X", ')
        t = oracle.report("graphs", path)
        self.assertEqual([r["evidence"] for r in t.rows], ["unknown"])

    def test_captures_in_vain(self):
        """How many captures were read, and where the nearest differs; that of others only where the trace does not tell its graphs by itself."""
        nodes = Model(random.Random(21), 3, 2).nodes
        replay = replay_doc([[(n[3], 7) for n in nodes]])
        far = [(*n[:3], f"far{i}", *n[4:]) for i, n in enumerate(nodes)]
        few, cut = [*nodes[:2], *far[2:]], nodes[:len(nodes) // 3]
        for files, says in (([few, far], f"2 captures, none fits; the nearest differs at piece 3: `far2` was captured, `{nodes[2][3]}` was replayed"),
                            ([far, cut], f"2 captures, none fits; the nearest differs at piece {len(cut) + 1}: nothing more was captured, `{nodes[len(cut)][3]}` was replayed")):
            for folder in ("captures", "capture_traces"):
                with self.subTest(says, folder=folder):
                    code, err, rows = self.captured({f"{i}.json": capture_doc(x) for i, x in enumerate(files)}, replay=replay, folder=folder)
                    self.assertEqual((code, rows[0][self.columns.index("evidence")]), (0, "unknown"))
                    self.assertTrue(any(says in n for n in self.notes), self.notes)
                    if folder == "captures":
                        self.assertIn(says, err)
                    self.assertEqual(err.count("\n"), folder == "captures", err)
        eager = {"traceEvents": [e for e in capture_doc(far)["traceEvents"] if "Capture" not in e["name"]]}
        self.assertIn("no capture of a graph, and what ran there without graphs is not what the graphs replay", self.captured({"a.json": eager}, replay=replay)[1])
        steps = {"traceEvents": replay["traceEvents"] + [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "pid": 1, "tid": 1, "ts": 999_000 + i * 9000, "dur": 9000, "args": {}} for i in range(2)]}
        self.captured({"a.json": capture_doc(far)}, replay=steps)
        self.assertTrue(any("1 capture, none fits" in n for n in self.notes), self.notes)
        own = {"traceEvents": capture_doc(nodes)["traceEvents"] + replay["traceEvents"]}
        code, err, rows = self.captured({"a.json": capture_doc(far)}, replay=own)
        self.assertEqual((code, rows[0][self.columns.index("evidence")]), (0, "sequence"))
        self.assertIn("was read and not needed: the trace itself tells the ops of its graphs", err)

    def test_captures_beside(self):
        """--capture takes the place of capture_traces/, which a line says where it tells nothing; and where the trace holds its own capture, that another was not needed."""
        nodes = Model(random.Random(22), 3, 2).nodes
        other = capture_doc([(*n[:3], f"far{i}", *n[4:]) for i, n in enumerate(nodes)])
        replay = replay_doc([[(n[3], 7) for n in nodes]])
        os.mkdir(os.path.join(self.tmp, "capture_traces"))
        for name, doc in (("replay.json", replay), ("other.json", other), (os.path.join("capture_traces", "good.json"), capture_doc(nodes))):
            with open(os.path.join(self.tmp, name), "w") as f:
                f.write(json.dumps(doc))
        path, given = (os.path.join(self.tmp, x) for x in ("replay.json", "other.json"))
        self.assertEqual([r["evidence"] for r in oracle.report("graphs", path).rows], ["sequence"])
        code, _, err = oracle.run("report", "graphs", path, "--capture=" + given)
        self.assertEqual(code, 0)
        self.assertIn("other.json was read: 1 capture, none fits; the nearest differs at piece 1: `far0` was captured", err.decode())
        self.assertIn("; capture_traces/ beside the trace was not read, since --capture takes its place", err.decode())
        readme = os.path.join(self.tmp, "README.md")
        with open(readme, "w") as f:
            f.write("# no trace\n")
        code, _, err = oracle.run("report", "graphs", path, "--capture=" + readme)
        self.assertEqual((code, err.decode().split("README.md: ")[-1]), (1, "no trace is recognised by its content; a trace of the capture of graphs, or a folder of such, was expected\n"))

    def test_kept(self):
        """An imported file keeps what was attributed, and answers the same."""
        m = Model(random.Random(7), 4, 2)
        self.attribute(m.nodes, [[(k, 7) for *_, k, _, _ in m.nodes]] * 2)
        folder = next(os.path.join(self.tmp, d) for d in os.listdir(self.tmp))
        path, kept = os.path.join(folder, "replay.json"), os.path.join(folder, "kept.opscope")
        self.assertEqual(oracle.run("import", path, "-o", kept)[0], 0)
        for name in ("graphs", "operators", "modules", "op-types"):
            self.assertEqual(oracle.report(name, path).rows, oracle.report(name, kept).rows, name)


if __name__ == "__main__":
    oracle.main()
