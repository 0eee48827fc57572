"""DLProf's own database as an input: a real one against SQL, and DLProf's files from it cell by cell; made ones of other versions, with several
domains, and hostile ones."""
import os
import re
import sqlite3
import tempfile

import oracle
from dldb_db import TABLES, W, make, sample
from oracle import Case, data, info, report
from test_ops import RUN, expected, ours


def sql(path, query):
    code, out, err = oracle.run("sql", path, query, "--format=json", "--limit=0")
    assert code == 0, err
    return [tuple(r) for r in oracle.json.loads(out)["rows"]]


class Real(Case):
    def setUp(self):
        super().setUp()
        self.path = data(*RUN, "dlprof_dldb.sqlite")
        self.db = sqlite3.connect(f"file:{self.path}?mode=ro&immutable=1", uri=True)
        self.addCleanup(self.db.close)

    def one(self, query):
        return self.db.execute(query).fetchone()[0]

    def test_tables(self):
        """DLProf's files from its database instead of nsys', every cell."""
        for name, file, rows in (("ops", "dlprof_detailed.csv", 36), ("op-types", "dlprof_op_type.csv", 9), ("groups", "dlprof_group_op.csv", 48),
                                 ("tensor-cores", "dlprof_tensor_core.csv", 5)):
            want = expected(file)
            titles, got = ours(name, self.path)
            self.assertEqual(titles, list(want[0]))
            self.assertEqual((len(want), len(got)), (rows, rows))
            for i, (w, g) in enumerate(zip(want, got)):
                with self.subTest(file=file, row=i + 3):
                    self.assertEqual(g, w)

    def test_same_ops(self):
        """Our own table is the same from both, but for the brackets around numbers: a database has DLProf's own."""
        both = [report("ops", data(*RUN, f)).rows for f in ("dlprof_dldb.sqlite", "nsys_profile.sqlite")]
        for a, b in zip(*both):
            with self.subTest(op=a["op_id"]):
                self.assertEqual({**a, "name": re.sub(r"\[(\d+)\]", r"(\1)", a["name"])}, b)
        self.assertEqual(len(both[0]), len(both[1]))

    def test_rows(self):
        """As many as SQL counts; each kernel with its name, times, size and op."""
        counts = {k: n for k, n in sql(self.path, "SELECT kind, count(*) FROM gpu_op GROUP BY 1")}
        tables = {"kernel": "kernels", "memcpy": "memcpys", "memset": "memsets"}
        for kind, table in tables.items():
            self.assertEqual(counts[kind], self.one(f"SELECT count(*) FROM read_only_{table}"))
        spans = dict(sql(self.path, "SELECT kind, count(*) FROM span GROUP BY 1"))
        self.assertEqual(spans["op"], self.one("SELECT count(*) FROM read_only_op_instances i JOIN read_only_ops o ON o.id = i.read_only_ops_id "
                                               "WHERE o.op_name NOT LIKE 'unassociated%'"))
        launches = " UNION ".join(f"SELECT process_id, thread_id, api_start, api_stop FROM read_only_{t}" for t in tables.values())
        self.assertEqual(spans["call"], self.one("SELECT count(*) FROM read_only_cuda_calls") + self.one("SELECT count(*) FROM read_only_cuda_syncs") +
                         self.one(f"SELECT count(*) FROM ({launches})"))
        want = self.db.execute(
            "SELECT k.gpu_start, k.gpu_stop - k.gpu_start, d.string, g.x, g.y, g.z, b.x, b.y, b.z, k.api_start, k.api_stop - k.api_start, o.op_id "
            "FROM read_only_kernels k JOIN dictionary d ON d.id = k.long_name_id JOIN read_only_grid_block g ON g.id = k.grid_id "
            "JOIN read_only_grid_block b ON b.id = k.block_id JOIN read_only_ops o ON o.id = k.read_only_ops_id ORDER BY 1").fetchall()
        got = sql(self.path, "SELECT k.start_ns, k.dur_ns, k.name, grid_x, grid_y, grid_z, block_x, block_y, block_z, c.start_ns, c.dur_ns, "
                             "arg(o.args, 'op_id') FROM gpu_op k JOIN launch l ON l.rowid = k.launch JOIN span c ON c.rowid = k.call "
                             "JOIN span o ON o.rowid = c.op WHERE k.kind = 'kernel' ORDER BY 1")
        self.assertEqual(len(want), 59)
        self.assertEqual(got, want)
        self.assertEqual([r for r in info(self.path).section("problems").rows if r["level"] != "note"], [])

    def test_system(self):
        facts = dict(sql(self.path, "SELECT key, value FROM meta"))
        row = self.db.execute("SELECT cpu_model, driver_version, framework, cuda_version, nsys_version, original_command "
                              "FROM read_only_system_config").fetchone()
        keys = ("cpu_model", "driver_version", "framework", "cuda_version", "nsys_version", "original_command")
        self.assertEqual(tuple(facts["system_config:" + k] for k in keys), row)
        gpu = self.db.execute("SELECT device_id, gpu_name, compute_capability_major, compute_capability_minor, sm_count "
                              "FROM read_only_gpu_infos").fetchall()
        self.assertEqual(sql(self.path, "SELECT id, name, cc_major, cc_minor, sm_count FROM device"), gpu)

    def stated(self, table):
        """Rows of a table of results, as columns and values."""
        rows = {}
        for row, column, value, is_string in sql(self.path, f"SELECT row, col, value, is_string FROM stated WHERE tbl = '{table}'"):
            rows.setdefault(row, {})[column] = value if is_string else float(value)
        return [rows[i] for i in sorted(rows)]

    def test_stated(self):
        """The numbers of DLProf's own aggregation: each table has the rows that SQL counts, metrics resolved."""
        names = [t for t, in sql(self.path, "SELECT DISTINCT tbl FROM stated")]
        for name in ("aggregations", "model_summary", "op_nodes", "op_type_metrics", "kernel_summaries", "expert_systems_feedback"):
            self.assertIn(name, names)
            self.assertEqual(len(self.stated(name)), self.one(f"SELECT count(*) FROM {name}"), name)
        want = self.db.execute("SELECT o.op_id, g.sum, c.sum FROM op_nodes n JOIN read_only_ops o ON o.id = n.read_only_ops_id "
                               "JOIN node_time_metrics t ON t.id = n.node_time_metrics_id JOIN metric g ON g.id = t.gpu_time_metric_id "
                               "JOIN metric c ON c.id = t.cpu_time_metric_id ORDER BY n.id").fetchall()
        self.assertEqual([(r["op_id"], r["total_gpu_time_ns"], r["total_cpu_time_ns"]) for r in self.stated("op_nodes")], want)
        self.assertIn(self.one("SELECT wall_time FROM model_summary"), self.stated("model_summary")[0].values())

    def test_other_reports(self):
        """Reports of kernels and of the whole are DLProf's numbers from its database, too."""
        for name, *args in (["summary", "--compat=dlprof"], ["kernels", "--group-by=op", "--compat=dlprof"],
                            ["kernels", "--group-by=instance", "--compat=dlprof"]):
            with self.subTest(report=name, args=args):
                ours, nsys = (oracle.run("report", name, data(*RUN, f), "--format=json", *args) for f in ("dlprof_dldb.sqlite",
                                                                                                          "nsys_profile.sqlite"))
                self.assertEqual((ours[0], nsys[0]), (0, 0), (ours[2], nsys[2]))
                both = [oracle.json.loads(x[1]) for x in (ours, nsys)]
                if name == "summary":  # the first table is about the machine, of which nsys keeps less
                    self.assertGreater(len(both[0]["rows"]), len(both[1]["rows"]))
                else:
                    self.assertEqual((both[0]["columns"], both[0]["rows"]), (both[1]["columns"], both[1]["rows"]))
                self.assertEqual(both[0].get("sections"), both[1].get("sections"))


class Made(Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory(prefix="opscope-dldb-")
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "d.sqlite")

    def problems(self):
        return {r["kind"]: r for r in info(self.path).section("problems").rows}

    def test_sample(self):
        make(self.path, sample(), page_size=512)
        rows = report("ops", self.path, "--compat=dlprof").by("op_id")
        self.assertEqual({k: (r["no_calls"], r["tc_eligible"], r["direction"], r["op_name"]) for k, r in rows.items()}, {
            "CONV2D_1": (2, True, "fprop", "/Net/conv2d"), "RELU_1": (1, False, "bprop", "/Net/relu[2]"),
            "CUDADEVICESYNCHRONIZE_V3020_1": (1, False, "", "unassociated_cudaDeviceSynchronize_v3020")})
        self.assertEqual(rows["CONV2D_1"]["stack_trace"], "a.py:1\nb.py:2")
        own = report("ops", self.path).by("op_id")
        self.assertEqual(own["CONV2D_1"]["shapes"], "<N:8, C:3, H:32, W:32>; <K:6, C:3, R:3, S:3>")
        self.assertEqual((own["CONV2D_1"]["kernels"], own["CONV2D_1"]["total_gpu_ns"]), (3, 115))
        self.assertEqual((own["RELU_1"]["kernels"], own["RELU_1"]["total_gpu_ns"]), (2, 20 + 8 + 2))
        # The two kernels of one call share it; a call that is not within its op stays where the database says, with a word.
        self.assertEqual(sql(self.path, "SELECT count(DISTINCT call), count(*) FROM gpu_op"), [(6, 7)])
        self.assertEqual(self.problems()["outside-its-op"]["count"], 1)
        self.assertEqual(sql(self.path, "SELECT name FROM gpu_op WHERE kind <> 'kernel' ORDER BY start_ns"), [("Memcpy DtoH",), ("Memset",)])
        self.assertEqual(sql(self.path, "SELECT arg(args, 'short_name') FROM gpu_op WHERE name = 'void fused(float*)'"), [("odd",)])

    def test_nodes(self):
        """Nodes of TensorFlow have paths without a first '/': they are ops, and have their place in the tree."""
        rows = sample()
        rows["read_only_ops"][0] = (1, 1, "resnet/conv1/Conv2D", "resnet/conv1/Conv2D", W["conv2d"], 0, W["float16"], W["fprop"], "")
        make(self.path, rows)
        op = report("ops", self.path, "--compat=dlprof").by("op_id")["resnet/conv1/Conv2D"]
        self.assertEqual((op["no_calls"], op["tc_eligible"], op["op_name"]), (2, True, "resnet/conv1/Conv2D"))
        self.assertEqual([r["shapes"] for r in report("ops", self.path).rows if r["op_id"] == "resnet/conv1/Conv2D"],
                         ["<N:8, C:3, H:32, W:32>; <K:6, C:3, R:3, S:3>"])
        paths = report("groups", self.path).by("path")
        self.assertIn("/resnet/conv1/", paths)
        self.assertEqual(paths["/resnet/conv1/"]["gpu_ns"], 50 + 5 + 60)

    def test_versions(self):
        for version, ok, kind in (("1.3", True, None), ("1.5.2", True, None), ("1.8.0", True, None), ("1.9.1", True, "unknown-version"),
                                  ("2.0", True, "unknown-version"), ("what", True, "unknown-version"), ("1.2.0", False, None), ("0.20", False, None)):
            with self.subTest(version=version):
                if os.path.exists(self.path):
                    os.unlink(self.path)
                make(self.path, sample(version))
                code, _, err = oracle.run("info", self.path)
                self.assertEqual(code, 0 if ok else 1, err)
                if ok:
                    self.assertEqual({k for k in self.problems() if k.endswith("-version")}, {kind} - {None})
                else:
                    self.assertEqual(err.count(b"\n"), 1)
                    self.assertTrue(err.decode().startswith(f"opscope: {self.path}: a database of DLProf {version}, which is too old"), err)
        os.unlink(self.path)
        make(self.path, sample(), tables={k: v for k, v in TABLES.items() if k != "db_version"})
        self.assertIn("which is too old", oracle.run("info", self.path)[2].decode())

    def test_lacks(self):
        """Columns and tables that a version lacks: what is there is read."""
        for table in TABLES:
            if table in ("db_version", "dictionary", "read_only_ops"):
                continue
            with self.subTest(without=table):
                if os.path.exists(self.path):
                    os.unlink(self.path)
                make(self.path, sample(), extra=[f"DROP TABLE {table}"])
                self.assertEqual(oracle.run("info", self.path)[0], 0)
        os.unlink(self.path)
        make(self.path, sample(), extra=["ALTER TABLE read_only_kernels DROP COLUMN long_name_id", "ALTER TABLE read_only_ops DROP COLUMN stack_trace",
                                         "ALTER TABLE read_only_op_instances DROP COLUMN parameters_id"])
        self.assertEqual({n for n, in sql(self.path, "SELECT DISTINCT name FROM gpu_op WHERE kind = 'kernel'")}, {"gemm", "odd"})

    def test_domains(self):
        """The same ranges under two domains: one is read, its work counts once, and what only the other has is not lost."""
        rows = sample()
        rows["read_only_domains"].append((2, W["other"]))
        rows["read_only_ops"].append((4, 2, "CONV2D_1", "/Other/conv2d", W["conv2d"], 0, W["float16"], W["fprop"], ""))
        rows["read_only_op_instances"].append((5, 4, 100, 200, 5, 5, W["null\n"], W["null\n"], W["null\n"]))
        rows["read_only_kernels"] = [(10, 4, 0, *rows["read_only_kernels"][0][3:]), *rows["read_only_kernels"],
                                     (11, 4, 0, W["odd"], W["void fused(float*)"], 0, 185, 186, 600, 610, 1, 2, 0, 5, 5)]
        make(self.path, rows)
        self.assertEqual(sql(self.path, "SELECT count(*) FROM gpu_op WHERE kind = 'kernel'"), [(6,)])
        self.assertEqual(sql(self.path, "SELECT count(*) FROM span WHERE kind = 'op'"), [(3,)])
        found = self.problems()
        self.assertEqual((found["other-domains"]["count"], found["repeated-work"]["count"]), (1, 1))

    def test_wrong_values(self):
        """Whatever stands in the cells: read or counted, never believed."""
        odd = ["NULL", "'x'", "1.5", "x'00ff'", "-1", "9223372036854775807", "-9223372036854775808"]
        for table, columns in TABLES.items():
            names = [c.split()[0] for c in columns.split(", ")][1:]
            for value in odd:
                with self.subTest(table=table, value=value):
                    if os.path.exists(self.path):
                        os.unlink(self.path)
                    loose = {**TABLES, table: TABLES[table].replace(" NOT NULL UNIQUE", "")}
                    make(self.path, sample(), tables=loose, extra=[f"UPDATE {table} SET " + ", ".join(f"{n} = {value}" for n in names)])
                    code, _, err = oracle.run("report", "ops", self.path, "--format=json")
                    self.assertIn(code, (0, 1), err)
                    self.assertNotIn(b"Sanitizer", err)

    def test_cut_off(self):
        make(self.path, sample(), page_size=512)
        with open(self.path, "rb") as f:
            content = f.read()
        for part in range(1, 20):
            with open(self.path, "wb") as f:
                f.write(content[:len(content) * part // 20])
            code, _, err = oracle.run("info", self.path)
            self.assertIn(code, (0, 1), err)

    def test_views(self):
        """What another program would run when it is looked at, is not looked at."""
        make(self.path, sample(), extra=["DROP TABLE read_only_kernels", "CREATE VIEW read_only_kernels AS WITH RECURSIVE t(id) AS (SELECT 1 UNION ALL "
                                         "SELECT id + 1 FROM t) SELECT * FROM t"])
        self.assertEqual(sql(self.path, "SELECT count(*) FROM gpu_op WHERE kind = 'kernel'"), [(0,)])


if __name__ == "__main__":
    oracle.main()
