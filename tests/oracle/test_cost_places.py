"""Where the calls of `costs` stand in the program: against the parent modules and entry points that TraceLens has in ops_unique_args.csv and unified_perf_summary.csv, and on
a small trace by hand."""
import ast
import collections
import csv
import json
import os
import tempfile

import oracle
from oracle import Case, data, report

FOLDER = ("tracelens", "inference", "sglang_decode")
csv.field_size_limit(10**9)


def tuples(x):
    return tuple(tuples(i) for i in x) if isinstance(x, list) else x


class TraceLens(Case):
    def rows(self, sheet):
        """Pairs of its rows and ours of the same op and shapes; ops that are of several places in both are left to neither."""
        ours = collections.defaultdict(list)
        for r in report("costs", data(*FOLDER, "sglang_Qwen3-8B_decode.json.gz")).rows:
            ours[r["op"], tuples(json.loads(r["input_dims"])) if r["input_dims"] else ()].append(r)
        with open(data(*FOLDER, "perf_csvs", sheet + ".csv"), newline="", encoding="utf-8") as f:
            for r in csv.DictReader(f):
                dims = () if r["Input Dims"] in ("", "NA") or "Synthetic" in r["name"] else ast.literal_eval(r["Input Dims"])
                for mine in ours.get((r["name"], dims), [])[:2]:
                    yield r, mine

    def test_modules(self):
        seen = 0
        for theirs, mine in self.rows("ops_unique_args"):
            self.assertEqual(mine["module"] or "NA", theirs["parent_module"].replace("nn.Module: ", ""), theirs["name"])
            if mine["module_path"]:
                stack = [s.replace("nn.Module: ", "") for s in ast.literal_eval(theirs["call_stack"]) if s.startswith("nn.Module: ")]
                self.assertEqual(mine["module_path"].split("/"), stack[::-1], theirs["name"])
                seen += 1
        self.assertGreater(seen, 10)

    def test_callers(self):
        """Its entry point of an op that Python implements is that implementation; ours is what called the op. Of ops of torch itself there is one answer."""
        seen = 0
        for theirs, mine in self.rows("unified_perf_summary"):
            if not theirs["name"].startswith("aten::") or theirs["entry_point"].startswith("torch/") or theirs["name"] == "aten::copy_":
                continue
            self.assertEqual(mine["called_by"], theirs["entry_point"], theirs["name"])
            self.assertIn(mine["called_by"], mine["call_stack"].split(";"))
            seen += 1
        self.assertGreater(seen, 3)


class Small(Case):
    def test_the_first_that_launched(self):
        """Two calls of one op and shape: the second is in a module and launches work."""
        args = {"Input Dims": [[4, 4], [4, 4]], "Input type": ["float", "float"]}
        x = [("python_function", "train.py(7): main", 0, 100, {"Python id": 1}), ("cpu_op", "aten::mm", 5, 5, {**args, "External id": 1}),
             ("python_function", "nn.Module: Head_2", 20, 60, {"Python id": 2, "Python parent id": 1, "Python module id": 2}),
             ("python_function", "model.py(3): forward", 21, 50, {"Python id": 3, "Python parent id": 2}),
             ("python_function", "util.py(9): wrapper", 22, 40, {"Python id": 4, "Python parent id": 3}),
             ("python_function", "<built-in method mm>", 23, 30, {"Python id": 5, "Python parent id": 4}), ("cpu_op", "aten::mm", 24, 5, {**args, "External id": 2}),
             ("cuda_runtime", "cudaLaunchKernel", 25, 1, {"correlation": 9, "External id": 2})]
        events = [{"ph": "X", "cat": c, "name": n, "pid": 1, "tid": 1, "ts": s, "dur": d, "args": a} for c, n, s, d, a in x]
        events.append({"ph": "X", "cat": "kernel", "name": "sgemm", "pid": 0, "tid": 7, "ts": 50, "dur": 3, "args": {"device": 0, "stream": 7, "correlation": 9, "External id": 2}})
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, "t.json")
            with open(path, "w", encoding="utf-8") as f:
                f.write(json.dumps({"traceEvents": events}))
            row, = report("costs", path).rows
        self.assertEqual((row["calls"], row["module"], row["module_path"], row["called_by"]), (2, "Head", "Head_2", "model.py(3): forward"))
        self.assertIn("train.py(7): main", row["call_stack"])

    def test_without_stacks(self):
        table = report("costs", oracle.synthetic("costs_gpu"))
        for column in ("module", "module_path", "called_by", "call_stack"):
            self.assertNotIn(column, table.ids)


if __name__ == "__main__":
    oracle.main()
