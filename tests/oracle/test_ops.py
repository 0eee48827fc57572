"""`report ops`, `op-types`, `groups`, `tensor-cores` against DLProf 1.8's own files of the same run, cell by cell, and against its database;
and what must hold of every input: nothing is counted twice, nothing is lost."""
import csv
import io
import os
import re
import sqlite3
import tempfile

import oracle
from oracle import Case, data, data_glob, report

RUN = ("dlprof", "w_relu")


def expected(name):
    """DLProf's file as rows by title; the first line is the report's name."""
    with open(data(*RUN, name), newline="") as f:
        f.readline()
        return list(csv.DictReader(io.StringIO(f.read())))


def as_printed(column, value):
    """A cell as DLProf prints it."""
    if value is None:
        return ""
    if column["type"] == "boolean":
        return "yes" if value else "no"
    if column["type"] == "number":
        return f"{value:.1f}"
    return str(value)


def ours(name, path, *args):
    t = report(name, path, "--compat=dlprof", *args)
    columns = t.doc["columns"]
    return [c["title"] for c in columns], [{c["title"]: as_printed(c, v) for c, v in zip(columns, r)} for r in t.doc["rows"]]


@oracle.of("dlprof")
class DLProf(Case):
    def compare(self, name, file, rows, columns):
        want = expected(file)
        titles, got = ours(name, data(*RUN, "nsys_profile.sqlite"))
        self.assertEqual(titles, list(want[0]))
        self.assertEqual((len(want), len(titles)), (rows, columns))
        self.assertEqual(len(got), rows)
        for i, (w, g) in enumerate(zip(want, got)):
            with self.subTest(row=i + 3):
                self.assertEqual(g, w)

    def test_detailed(self):
        self.compare("ops", "dlprof_detailed.csv", 36, 25)

    def test_op_type(self):
        self.compare("op-types", "dlprof_op_type.csv", 9, 19)

    def test_group_op(self):
        self.compare("groups", "dlprof_group_op.csv", 48, 20)

    def test_tensor_core(self):
        self.compare("tensor-cores", "dlprof_tensor_core.csv", 5, 14)

    def test_shapes(self):
        """Shapes and types of each op, as DLProf's list of kernels has them; parameters and outputs are there for products."""
        want = {}
        with open(data(*RUN, "dlprof_iteration.csv"), newline="") as f:
            f.readline()
            for r in csv.DictReader(f):
                want[r["Op ID"]] = (r["Input Shapes"], r["Data Types"])
        rows = report("ops", data(*RUN, "nsys_profile.sqlite")).by("op_id")
        self.assertEqual(len(want), 11)
        for op, (shapes, types) in want.items():
            with self.subTest(op=op):
                self.assertEqual((rows[op]["shapes"] or "", rows[op]["data_type"] or ""), (shapes, types))

    def test_database(self):
        """Start and length of every call, and which device work is whose, against DLProf's own database."""
        db = sqlite3.connect(f"file:{data(*RUN, 'dlprof_dldb.sqlite')}?mode=ro&immutable=1", uri=True)
        path = data(*RUN, "nsys_profile.sqlite")
        rows = {r["op_id"]: r for r in report("ops", path, "--compat=dlprof").rows}
        instances = db.execute("select o.op_id, i.cpu_stop - i.cpu_start from read_only_op_instances i "
                               "join read_only_ops o on o.id = i.read_only_ops_id").fetchall()
        self.assertEqual(len(instances), 36)
        for op, cpu in instances:
            self.assertEqual((rows[op]["no_calls"], rows[op]["total_cpu_time_ns"]), (1, cpu), op)
        own = report("ops", path).by("op_id")
        kernels = dict(db.execute("select o.op_id, count(*) from read_only_kernels k join read_only_ops o on o.id = k.read_only_ops_id "
                                  "group by 1"))
        self.assertEqual(sum(kernels.values()), 59)
        for op, row in own.items():
            self.assertEqual(row["kernels"], kernels.get(op, 0), op)


class Everywhere(Case):
    """What holds of every input."""
    FILES = ("nsys/*/*.sqlite", "pyprof/*/net.s*", "pyprof/*/*.dict", "tb_plugin/*/*.json.gz", "tracelens/*/*.json.gz", "torch/*/*plain.json.gz",
             "torch/*/*full.json.gz", "hta/*/*.json.gz", "nvprof/*")

    def files(self, part=1):
        """part: under the sanitizers every so many alone, where another test has the same report of all."""
        out = [f for pattern in self.FILES for f in data_glob(pattern)]
        if not out:
            self.skipTest("no real traces")
        return out[::part] if oracle.SANITIZED else out

    @staticmethod
    def device_sum(path):
        code, out, err = oracle.run("sql", path, "select count(*), sum(kind = 'kernel'), coalesce(sum(dur_ns), 0) from gpu_op", "--format=json")
        assert code == 0, err
        row = oracle.Table(oracle.json.loads(out)).rows[0]
        return list(row.values())

    def test_nothing_lost(self):
        """Each kernel is in one op; all device time is in ops, in calls outside ops, or in work of no recorded call."""
        read = 0
        for path in self.files(3):
            code, out, err = oracle.run("report", *oracle.whole("ops", path), "--format=json")
            if code:
                self.assertIn(b"no op, no API call and no device work", err, path)
                continue
            read += 1
            table = oracle.Table(oracle.json.loads(out))
            n, kernels, ns = self.device_sum(path)
            with self.subTest(path=os.path.relpath(path, oracle.DATA)):
                self.assertEqual(sum(r["kernels"] for r in table.rows), kernels or 0)
                if n:
                    part = [int(x) for x in re.search(r"device work (\d+) ns = in ops (\d+) \+ of API calls outside ops (\d+) "
                                                      r"\+ of no recorded call (\d+)", table.notes[0]).groups()]
                    self.assertEqual(part[0], ns)
                    self.assertEqual(part[0], sum(part[1:]))
                self.assertEqual(len({r["op_id"] for r in table.rows}), len(table.rows))
        self.assertGreater(read, 6 if oracle.SANITIZED else 20)

    def test_what_backward_ops_ran_for_others(self):
        """Gradient collectives and modules that ran again are told as `layers` and `modules` have them; elsewhere nothing is said."""
        words = r"^(\d+) ns of device work are (gradient collectives|modules that ran again)"
        said = lambda name, path: {m[2]: int(m[1]) for m in (re.match(words, n) for n in report(name, path).notes) if m}
        path = data("tracelens", "mi300", "resnet_act_checkpoint.json.gz")
        layers = {r["layer"]: r["total_gpu_ns"] for r in report("layers", path).rows}
        again = next(r["recompute_device_ns"] for r in report("modules", path).rows if r["depth"] == 0)
        for name in ("ops", "op-types"):
            self.assertEqual(said(name, path), {"gradient collectives": layers["(gradient collectives)"], "modules that ran again": again}, name)
        self.assertEqual(said("ops", data("tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz")), {})

    def test_groupings_agree(self):
        """By op, by name, by shape, by type: the same calls, the same times."""
        for path in self.files(4):
            code, out, err = oracle.run("report", *oracle.whole("ops", path), "--format=json")
            if code:
                continue
            tables = [oracle.Table(oracle.json.loads(out))]
            tables += [report("ops", path, "--group-by=" + g) for g in ("name", "shape")]
            tables.append(report("op-types", path))
            with self.subTest(path=os.path.relpath(path, oracle.DATA)):
                for column in ("calls", "total_gpu_ns", "total_cpu_ns", "total_overhead_ns", "total_idle_ns"):
                    self.assertEqual(len({sum(r[column] or 0 for r in t.rows) for t in tables}), 1, column)

    def test_versions(self):
        """The version of CUDA that the driver supports and that with which the program ran, each by its name; HIP's likewise."""
        for path, want in ((("tracelens", "h100", "Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"), {"cuda_driver_version": "12.9", "cuda_runtime_version": "12.4"}),
                           (("nsys", "2025.3_nsightful_t4", "power_iteration__baseline.sqlite"), {"cuda_driver_version": "12.4"}),
                           (("graphs", "vllm_decode_full", "graph_execution.json.gz"), {"hip_driver_version": "7.0.51831", "hip_runtime_version": "7.0.51831"})):
            rows = report("summary", oracle.data(*path)).section("system").by("id")
            self.assertEqual({k: r["value"] for k, r in rows.items() if k.startswith(("cuda", "hip"))}, want)
            self.assertTrue(all(("driver" in r["name"]) == ("driver" in k) and ("runtime" in r["name"]) == ("runtime" in k) for k, r in rows.items() if k.startswith(("cuda", "hip"))))

    def test_groups(self):
        """A group is no more than the parts in it, and no less than the largest; all ops together are what the GPU was busy with them."""
        for path in self.files(3):
            code, out, err = oracle.run("report", *oracle.whole("groups", path), "--format=json")
            if code:
                continue
            rows = oracle.Table(oracle.json.loads(out)).rows
            path = os.path.relpath(path, oracle.DATA)
            stack = []
            for r in rows[:-1]:
                del stack[r["depth"]:]
                self.assertEqual(len(stack), r["depth"], path)
                if stack:
                    for column in ("gpu_ns", "cpu_ns", "overhead_ns", "idle_ns", "calls"):
                        self.assertLessEqual(r[column] or 0, stack[-1][column] or 0, (path, r["path"], column))
                stack.append(r)
            self.assertTrue(all((r["gpu_ns"] or 0) <= (rows[-1]["gpu_ns"] or 0) for r in rows), path)

    def test_union_of_all(self):
        """The last row's GPU time is the union of all device work, each GPU by itself, by python's own union."""
        checked = 0
        for path in self.files(4):
            code, out, err = oracle.run("report", *oracle.whole("groups", path), "--format=json")
            if code or path.endswith(".dict"):
                continue
            table = oracle.Table(oracle.json.loads(out))
            if not any(" 1 step" in note for note in table.notes):
                continue
            code, out, err = oracle.run("sql", path, "select l.device, g.start_ns, g.start_ns + g.dur_ns from gpu_op g join launch l "
                                        "on l.rowid = g.launch order by 1, 2", "--format=csv", "--limit=0")
            self.assertEqual(code, 0, err)
            end, device, busy = -1 << 62, None, 0
            for d, a, b in (map(int, line.split(",")) for line in out.decode().splitlines()[1:]):
                if d != device:
                    device, end = d, -1 << 62
                busy += max(0, b - max(a, end))
                end = max(end, b)
            with self.subTest(path=os.path.relpath(path, oracle.DATA)):
                self.assertEqual(table.rows[-1]["gpu_ns"], busy)
            checked += 1
        self.assertGreater(checked, 1 if oracle.SANITIZED else 8)

    def test_reopened(self):
        """A file that was imported gives the same tables."""
        path = data(*RUN, "nsys_profile.sqlite")
        with tempfile.TemporaryDirectory() as folder:
            kept = os.path.join(folder, "x.opscope")
            self.assertEqual(oracle.run("import", path, "-o", kept)[0], 0)
            for name in ("ops", "op-types", "groups", "tensor-cores"):
                self.assertEqual(report(name, kept).rows, report(name, path).rows)

    @oracle.of("dlprof")
    def test_reopened_dlprof(self):
        path = data(*RUN, "nsys_profile.sqlite")
        with tempfile.TemporaryDirectory() as folder:
            kept = os.path.join(folder, "x.opscope")
            self.assertEqual(oracle.run("import", path, "-o", kept)[0], 0)
            for name in ("ops", "op-types", "groups", "tensor-cores"):
                self.assertEqual(report(name, kept, "--compat=dlprof").rows, report(name, path, "--compat=dlprof").rows)


if __name__ == "__main__":
    oracle.main()
