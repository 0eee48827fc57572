"""Execution traces beside Kineto traces: what torch's observer states of ops against what torch.profiler stated of the same ops."""
import csv
import gzip
import io
import json
import os
import resource
import shutil
import subprocess
import tempfile

import oracle
from oracle import Case, data, data_glob

SHAPES = ("Input Dims", "Input type", "Concrete Inputs")
QUERY = "SELECT name, ext_id, arg(args, 'Input Dims') AS dims, arg(args, 'Input type') AS types, arg(args, 'Concrete Inputs') AS given, {} FROM span WHERE ext_id IS NOT NULL AND kind IN ('op', 'user') ORDER BY ext_id, name"
TENSORS = "arg(args, 'Input Tensors') AS tensors, arg(args, 'Output Tensors') AS out, arg(args, 'Output Dims') AS out_dims, arg(args, 'Op schema') AS schema, arg(args, 'Record function id') AS id"


def load(path):
    with gzip.open(path, "rt") as f:
        return json.load(f)


def newer(doc):
    """The same in the words of schema 1.0.2."""
    nodes = []
    for n in doc["nodes"]:
        attrs = [{"name": k, "type": "uint64", "value": n[k]} for k in ("rf_id", "fw_parent", "seq_id", "scope", "tid", "fw_tid", "op_schema")]
        nodes.append({"id": n["id"], "name": n["name"], "ctrl_deps": n["parent"], "attrs": attrs,
                      **{side: {"values": n[side], "shapes": n[f"{side[:-1]}_shapes"], "types": n[f"{side[:-1]}_types"]} for side in ("inputs", "outputs")}})
    return {**doc, "schema": "1.0.2-chakra.0.0.4", "nodes": nodes}


class Pairs(Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        if not data_glob("more/execution_trace/*"):
            self.skipTest("no execution traces")

    def write(self, name, doc):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(json.dumps(doc))
        return path

    def rank(self, rank):
        """(Kineto's trace, the same without shapes, the execution trace's path)"""
        whole = load(data("multirank", "megatron_a100_tp8", f"megatron_kineto_{rank}.json.gz"))
        bare = json.loads(json.dumps(whole))
        for e in bare["traceEvents"]:
            for key in SHAPES:
                e.get("args", {}).pop(key, None)
        return whole, bare, data("more", "execution_trace", "megatron_a100_tp8", f"megatron_et_{rank}.json.gz")

    def rows(self, path, *args, what="1"):
        code, out, err = oracle.run("sql", path, QUERY.format(what), "--format=csv", *args)
        self.assertEqual(code, 0, err)
        return list(csv.DictReader(io.StringIO(out.decode())))

    def refused(self, *args):
        code, out, err = oracle.run(*args)
        self.assertEqual((code, out, err.count(b"\n")), (1, b"", 1), err)
        return err.decode()

    def test_shapes(self):
        """5,062 ops a rank get what the profiler had stated of them, to the letter; costs and tables by shape are those of the whole trace."""
        for rank in range(4):
            whole, bare, et = self.rank(rank)
            whole_path, bare_path = self.write("whole.json", whole), self.write("bare.json", bare)
            expected, got = self.rows(whole_path), self.rows(bare_path, f"--execution-trace={et}")
            self.assertEqual(len(expected), len(got))
            self.assertEqual(sum(1 for r in expected if r["dims"]), 5062)
            differ = [(a, b) for a, b in zip(expected, got) if a["dims"] and a != b]
            # Doubles are printed by torch in their own way (0.02 as 0.02, 1e-05 as 1.0000000000000001e-05).
            for a, b in differ:
                self.assertEqual({**a, "given": ""}, {**b, "given": ""})
                for x, y in zip(json.loads(a["given"]), json.loads(b["given"]), strict=True):
                    self.assertTrue(x == y or float(x) == float(y), (a, b))
            for report in ["costs"], ["operators", "--group-by=shape"]:
                args = [*report, "--format=csv", "--steps=all"]
                one, two = (oracle.run("report", args[0], path, *args[1:], *more) for path, more in ((whole_path, ()), (bare_path, (f"--execution-trace={et}",))))
                self.assertEqual(one[0], 0, one)
                self.assertEqual(one[:2], two[:2], report)
            if rank == 0:
                self.assertNotEqual(one[1], oracle.run("report", args[0], bare_path, *args[1:])[1])

    def test_tensors(self):
        """Ids of tensors and storages, what comes out, and the schema; by an own pairing."""
        whole, bare, et = self.rank(0)
        nodes = [n for n in sorted(load(et)["nodes"], key=lambda n: n["id"]) if not n["name"].startswith("[pytorch|")]
        got = [r for r in self.rows(self.write("bare.json", bare), f"--execution-trace={et}", what=TENSORS) if not r["name"].startswith(("ProfilerStep", "enumerate(DataLoader"))]
        self.assertEqual([r["name"] for r in got], [n["name"] for n in nodes])
        pair = lambda v: v[:2]
        for r, n in zip(got, nodes):
            for column, side in ("tensors", "input"), ("out", "output"):
                expected = [pair(v) if t.startswith("Tensor(") else [pair(x) for x in v] if t.startswith("GenericList[Tensor(") else [] for v, t in zip(n[side + "s"], n[side + "_types"])]
                self.assertEqual(json.loads(r[column] or "[]"), expected)
            self.assertEqual(r["schema"], n["op_schema"])
        self.assertEqual(sum(1 for r in got if r["tensors"]), sum(1 for n in nodes if n["inputs"]))

    def test_by_function_id(self):
        """Where the recording has them, ids pair: of a recording of a part, and whatever the order."""
        whole, bare, et = self.rank(1)
        doc = load(et)
        nodes = [n for n in sorted(doc["nodes"], key=lambda n: n["id"]) if not n["name"].startswith("[pytorch|")]
        ops = sorted((e for e in bare["traceEvents"] if e.get("cat") in ("cpu_op", "user_annotation") and not e["name"].startswith(("ProfilerStep", "enumerate(DataLoader"))), key=lambda e: e["args"]["External id"])
        for e, n in zip(ops, nodes):
            e["args"]["Record function id"] = n["rf_id"]
        gone = {id(e) for e in ops[::3]}
        bare["traceEvents"] = [e for e in bare["traceEvents"] if id(e) not in gone]
        path = self.write("part.json", bare)
        expected = {r["ext_id"]: r for r in self.rows(self.write("whole.json", whole))}
        for trace in et, self.write("newer.json", newer(doc)):
            got = self.rows(path, f"--execution-trace={trace}", what="arg(args, 'Record function id') AS id")
            stated = [r for r in got if r["dims"]]
            self.assertGreater(len(stated), 3000)
            for r in stated:
                if expected[r["ext_id"]]["dims"]:
                    self.assertEqual((r["name"], r["dims"], r["types"]), tuple(expected[r["ext_id"]][k] for k in ("name", "dims", "types")))
                self.assertFalse(r["id"])
        ops[1]["name"] = "aten::other"
        self.assertIn("of another run", self.refused("report", "operators", self.write("other.json", bare), f"--execution-trace={et}"))

    def planted(self, function_ids, nodes):
        """Ops aten::mm with these ids, and nodes (id, rows of the first input)."""
        node = lambda i, f, n: {"id": i, "name": "aten::mm", "attrs": [{"name": "rf_id", "value": f}], "inputs": {"values": [[1, 1, 0, n, 4, "cuda:0"]], "shapes": [[n]], "types": ["Tensor(float)"]}}
        events = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10 * i, "dur": 5, "args": {"External id": i + 1, "Record function id": f}} for i, f in enumerate(function_ids)]
        return self.write("planted.json", {"traceEvents": events}), self.write("planted.et.json", {"schema": "1.1.1", "pid": 1, "nodes": [node(i + 1, f, n) for i, (f, n) in enumerate(nodes)]})

    def test_function_ids_of_several_ops(self):
        """Which op a node is of is unknown where several ops or several nodes have one id: none gets arguments."""
        path, et = self.planted([1, 2, 2, 3, 4, 5], [(1, 10), (2, 20), (3, 30), (3, 31), (5, 50)])
        code, out, err = oracle.run("sql", path, QUERY.format("1"), "--format=csv", f"--execution-trace={et}")
        self.assertEqual([r["dims"] for r in csv.DictReader(io.StringIO(out.decode()))], ["[[10]]", "", "", "", "", "[[50]]"])
        code, out, err = oracle.run("report", "operators", path, f"--execution-trace={et}", "--notes=full")
        self.assertIn('3', err.decode())
        self.assertIn('several ops, there or in the recording, have its "Record function id"', err.decode())
        self.assertIn("none of its ops can be told", self.refused("report", "operators", *self.with_et(*self.planted([1, 1], [(1, 10)]))))

    def test_a_function_id_of_all_ops_takes_time_in_proportion(self):
        """Each of many ops had the id of one node with many tensors."""
        times = []
        for n in 2000, 8000:
            path, et = self.planted([7] * n + [1], [(1, 10), (7, 5)])
            with open(et) as f:
                doc = json.load(f)
            for key in doc["nodes"][1]["inputs"]:
                doc["nodes"][1]["inputs"][key] *= n
            before = oracle.children_cpu_s()
            self.assertEqual(oracle.run("report", "operators", path, f"--execution-trace={self.write('wide.et.json', doc)}")[0], 0)
            times.append(oracle.children_cpu_s() - before)
        self.assertLess(times[1], 8 * times[0] + 0.3)

    def with_et(self, path, et):
        return path, f"--execution-trace={et}"

    def test_many_arguments(self):
        """An op keeps all that the recording states of it."""
        path, et = self.planted([1], [(1, 10)])
        with open(path) as f:
            doc = json.load(f)
        doc["traceEvents"][0]["args"].update({f"x{i}": i for i in range(200)})
        columns = ", ".join(f"arg(args, 'x{i}') AS x{i}" for i in range(200))
        code, out, err = oracle.run("sql", self.write("many.json", doc), f"SELECT arg(args, 'Input Dims') AS dims, {columns} FROM span", "--format=csv", f"--execution-trace={et}")
        self.assertEqual(code, 0, err)
        self.assertEqual(list(csv.DictReader(io.StringIO(out.decode()))), [{"dims": "[[10]]", **{f"x{i}": str(i) for i in range(200)}}])

    def test_ends_early(self):
        path, et = self.planted([1, 2], [(1, 10), (2, 20)])
        with open(et) as f:
            text = f.read()
        for n in 1, 20, len(text) // 2, len(text) - 1:
            cut = os.path.join(self.folder, "cut.et.json")
            with open(cut, "w") as f:
                f.write(text[:n])
            self.assertIn(f"cut.et.json: the file ends early, at byte {n}", self.refused("report", "operators", path, f"--execution-trace={cut}"))
        with open(cut, "w") as f:
            f.write(text[:-20] + "?" + text[-20:])
        self.assertIn("not JSON", self.refused("report", "operators", path, f"--execution-trace={cut}"))
        self.assertIn("--execution-trace", self.refused("report", "operators", path, "--execution-trace="))

    def test_memory_in_proportion(self):
        """24 MB of empty lists beside the nodes are not kept; in a node they are refused."""
        path, et = self.planted([1, 2], [(1, 10), (2, 20)])
        with open(et) as f:
            text = f.read()
        wide = "[" + 8_000_000 * "[]," + "[]]"
        found = []
        for made in text.replace('"nodes"', f'"more": {wide}, "nodes"'), text.replace('"attrs"', f'"more": {wide}, "attrs"', 1):
            big = os.path.join(self.folder, "big.et.json")
            with open(big, "w") as f:
                f.write(made)
            limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))
            done = subprocess.run([oracle.OPSCOPE, "report", "operators", path, f"--execution-trace={big}"], capture_output=True, timeout=oracle.TIMEOUT, preexec_fn=limit)
            found.append((done.returncode, done.stderr.decode()))
        self.assertEqual(found[0][0], 0, found[0])
        self.assertEqual((found[1][0], found[1][1].count("\n")), (1, 1), found[1])
        self.assertIn("a node of 22 MB: nodes of an execution trace were expected, of 8 MB at most", found[1][1])

    def test_exported(self):
        """A Chrome trace has what the execution trace tells: read alone, it says the same. All else comes out as it was written."""
        whole, bare, et = self.rank(0)
        path, out = self.write("bare.json", bare), os.path.join(self.folder, "out.json")
        code, _, err = oracle.run("export", "chrome", path, f"--execution-trace={et}", "-o", out)
        self.assertEqual(code, 0, err)
        self.assertEqual(self.rows(out), self.rows(path, f"--execution-trace={et}"))
        with open(out) as f:
            got = json.load(f)["traceEvents"]
        self.assertEqual(len(got), len(bare["traceEvents"]))
        added = 0
        for a, b in zip(bare["traceEvents"], got):
            more = {k: v for k, v in b.get("args", {}).items() if k not in a.get("args", {})}
            added += bool(more)
            self.assertEqual({**b, "args": {k: v for k, v in b.get("args", {}).items() if k not in more}}, {"args": {}, **a})
        self.assertGreater(added, 5000)

    def test_which(self):
        """Of a folder that of the recording's process; of ranks of a job each its own. One of another process, or of another run, is refused."""
        _, bare, et = self.rank(2)
        path, folder = self.write("bare.json", bare), os.path.dirname(et)
        self.assertEqual(self.rows(path, f"--execution-trace={folder}"), self.rows(path, f"--execution-trace={et}"))
        job = os.path.join(self.folder, "job")
        os.mkdir(job)
        for rank in range(2):
            self.write(f"job/rank{rank}.json", self.rank(rank)[1])
        code, out, err = oracle.run("report", "costs", job, f"--execution-trace={folder}", "--format=csv")
        self.assertEqual(code, 0, err)
        self.assertNotEqual(out, oracle.run("report", "costs", job, "--format=csv")[1])
        other = data("more", "execution_trace", "megatron_a100_tp8", "megatron_et_3.json.gz")
        self.assertIn("of process 2590095", self.refused("report", "operators", path, f"--execution-trace={other}"))
        self.assertIn("no execution trace in this folder", self.refused("report", "operators", path, f"--execution-trace={self.folder}"))
        doc = load(et)
        doc["nodes"] = [n for n in doc["nodes"] if not n["name"].startswith("[pytorch|")][:98]
        self.assertIn("98 ops, but the recording has 5422", self.refused("report", "operators", path, f"--execution-trace={self.write('short.json', doc)}"))

    def test_other_schemas(self):
        """Real files of schema 1.0.2 and of a linked trace, beside recordings made of their own names."""
        for name in "ddp_2rank_schema_1.0.2/eg.rank_0.json.gz", "dlrm_linked/dlrm_eg_0_plus.json.gz":
            et = data("more", "execution_trace", *name.split("/"))
            doc = load(et)
            nodes = [n for n in sorted(doc["nodes"], key=lambda n: n["id"]) if not n["name"].startswith(("[pytorch|", "ProfilerStep", "enumerate(DataLoader")) and "cat" not in n]
            events = [{"ph": "X", "cat": "cpu_op", "name": n["name"], "pid": doc["pid"], "tid": 1, "ts": n.get("ts", 10 * i), "dur": n.get("dur", 5), "args": {"External id": i + 1}} for i, n in enumerate(nodes)]
            got = self.rows(self.write("made.json", {"traceEvents": events}), f"--execution-trace={et}", what=TENSORS)
            self.assertEqual([r["name"] for r in got], [n["name"] for n in nodes])
            types = [n["inputs"]["types"] if isinstance(n["inputs"], dict) else n["input_types"] for n in nodes]
            self.assertEqual([bool(r["dims"]) for r in got], [bool(t) for t in types])
            shapes = [n["inputs"]["shapes"] if isinstance(n["inputs"], dict) else n["input_shapes"] for n in nodes]
            for r, t, s in zip(got, types, shapes):
                dims = json.loads(r["dims"] or "[]")
                self.assertEqual([d for d, k in zip(dims, t) if k.startswith("Tensor(")], [d for d, k in zip(s, t) if k.startswith("Tensor(")])

    def test_no_execution_trace(self):
        _, bare, et = self.rank(0)
        path = self.write("bare.json", bare)
        with open(et, "rb") as f:
            packed = f.read()
        whole = gzip.decompress(packed)
        with open(os.path.join(self.folder, "cut.json"), "wb") as f:
            f.write(whole[:len(whole) // 2])
        with open(os.path.join(self.folder, "cut.json.gz"), "wb") as f:
            f.write(packed[:50000])
        for bad in "cut.json", "cut.json.gz", "gone.json", "bare.json":
            self.refused("report", "operators", path, f"--execution-trace={os.path.join(self.folder, bad)}")
        for doc in [], {"schema": 1, "nodes": 2}, {"schema": "1", "nodes": [1, None, {"name": 3}, {"id": "x"}]}, {"schema": "1", "nodes": [{"id": 1, "name": "a", "inputs": {"values": 1, "types": {}}, "attrs": [7]}]}:
            self.refused("report", "operators", path, f"--execution-trace={self.write('odd.json', doc)}")


if __name__ == "__main__":
    oracle.main()
