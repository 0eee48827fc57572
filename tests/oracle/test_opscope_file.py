"""What `opscope import` keeps: every report printed from the .opscope file is, byte for byte, the one printed from the trace;
its rows are there for any SQLite tool; `opscope sql` counts what an independent reader counts."""
import collections
import contextlib
import csv
import io
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

import oracle

BUNDLED = os.path.join(oracle.ROOT, "tests", "data", "torch214_cpu_resnet.json.gz")
GPU = ("tb_plugin", "resnet50_num_workers_0", "worker0.1623143566756.pt.trace.json.gz")
AMD = ("hta", "amd_trace", "mi250_minitoy_train_ROCm6_2_kineto.json.gz")
B200 = ("tracelens", "b200", "eager_trace.json.gz")
FORMATS = ("text", "csv", "json", "html", "markdown")


def reports():
    """(name, [group-by values]) of every report that this program has."""
    code, out, err = oracle.run("report", "--format=json")
    assert code == 0, err
    return [(r["name"], [None] + [g for g in (r["group_by"] or "").split(", ")[1:] if g])
            for r in oracle.Table(json.loads(out)).rows if r["name"] != "aggregations"]  # that one is about the file itself


def tables():
    """(name, group-by value or None) of every table that they make."""
    return [(name, group) for name, groups in reports() for group in groups]


def sql(path, query):
    code, out, err = oracle.run("sql", path, query, "--format=json", "--limit=0")
    if code:
        raise AssertionError(f"{query}: exit {code}: {err.decode(errors='replace')}")
    return oracle.Table(json.loads(out))


class OpscopeFile(oracle.Case):
    def setUp(self):
        super().setUp()
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)

    def imported(self, trace):
        path = os.path.join(self.tmp, "run.opscope")
        code, out, err = oracle.run("import", trace, "-o", path)
        self.assertEqual((code, out), (0, b""), err)
        self.assertEqual(os.listdir(self.tmp), ["run.opscope"])
        return path

    def same_reports(self, trace, formats, of, at):
        """Of every `of`-th question."""
        kept = self.imported(trace)
        asked = [(name, group, fmt) for name, group in tables() for fmt in (formats if group is None else ("json",))]
        for name, group, fmt in oracle.part(asked, of, at):
            options = ["--group-by=" + group] if group else []
            want = oracle.run("report", name, trace, "--format=" + fmt, *options)
            got = oracle.run("report", name, kept, "--format=" + fmt, *options)
            with self.subTest(report=name, group_by=group, format=fmt):
                self.assertEqual(got[0], want[0], got[2])
                self.assertTrue(got[1] == want[1], f"{name} {options} {fmt} differs")
        self.assertEqual(oracle.run("advise", kept, "--format=json")[1], oracle.run("advise", trace, "--format=json")[1])
        return kept

    def test_reports_bundled(self):
        self.same_reports(BUNDLED, FORMATS, 8, 0)

    def test_reports_gpu(self):
        if oracle.SANITIZED:
            self.skipTest("hundreds of questions: test_reports_amd asks the same of a smaller trace")
        self.same_reports(oracle.data(*GPU), ("json",), 9, 0)

    def test_reports_amd(self):
        self.same_reports(oracle.data(*AMD), ("json",), 5, 1)

    def test_reports_b200(self):
        if oracle.SANITIZED:
            self.skipTest("hundreds of questions: test_reports_amd asks the same of a smaller trace")
        self.same_reports(oracle.data(*B200), ("json",), 9, 2)

    def test_import_of_an_import(self):
        first = self.imported(BUNDLED)
        second = os.path.join(self.tmp, "second.opscope")
        self.assertEqual(oracle.run("import", first, "-o", second)[0], 0)
        with open(first, "rb") as a, open(second, "rb") as b:
            self.assertEqual(a.read(), b.read())

    def rows_are_there(self, trace, of=1):
        kept = self.imported(trace)
        db = sqlite3.connect(f"file:{kept}?mode=ro&immutable=1", uri=True)
        self.assertEqual(db.execute("PRAGMA integrity_check").fetchone()[0], "ok")
        missing = dict(db.execute("SELECT name, reason FROM report_missing"))
        for name, group in oracle.part(tables(), of):
            table = "report_" + name.replace("-", "_") + (f"_by_{group.replace('-', '_').replace(':', '_')}" if group else "")
            code, out, err = oracle.run("report", name, trace, "--format=json", "--limit=0",
                                        *(["--group-by=" + group] if group else []))
            with self.subTest(table=table):
                if missing.get(table, "").startswith("one row an event"):  # no aggregation: made when asked for
                    self.assertIn((name, group), (("pyprof", None), ("kernels", "instance"), ("function-events", None), ("queues", "change"), ("memcpy", "change"), ("op-graph", None)))
                    self.assertEqual(db.execute("SELECT count(*) FROM sqlite_master WHERE name=?", (table,)).fetchone()[0], 0)
                    continue
                if code:
                    self.assertIn(table, missing)
                    self.assertIn(missing[table], err.decode())
                    continue
                want = oracle.Table(json.loads(out))
                cursor = db.execute(f'SELECT * FROM "{table}"')
                self.assertEqual([d[0] for d in cursor.description], want.ids + ["aggregation"])
                self.assertEqual([list(r) for r in cursor], [r + [1] for r in want.doc["rows"]])
                units = db.execute("SELECT id, unit FROM report_columns WHERE table_name=?", (table,)).fetchall()
                self.assertEqual(units, [(c["id"], c["unit"]) for c in want.doc["columns"]])
                notes = db.execute("SELECT note FROM report_notes WHERE table_name=?", (table,)).fetchall()
                self.assertEqual([n for n, in notes], want.notes)
        db.close()

    def test_rows_bundled(self):
        self.rows_are_there(BUNDLED)

    def test_rows_gpu(self):
        self.rows_are_there(oracle.data(*(AMD if oracle.SANITIZED else GPU)), of=8)

    def sql_counts(self, trace):
        want, total = collections.Counter(), 0
        for e in oracle.events(oracle.load(trace)):
            if e.get("ph") == "X":
                want[e.get("cat", "")] += 1
                total += 1
        kept = self.imported(trace)
        query = "SELECT cat, count(*) AS n FROM (SELECT cat FROM span UNION ALL SELECT cat FROM gpu_op) GROUP BY cat"
        for path in (trace, kept):
            self.assertEqual({r["cat"]: r["n"] for r in sql(path, query).rows}, dict(want))
        self.assertEqual(sql(kept, "SELECT sum(events) AS n FROM count WHERE phase = 'X'").rows[0]["n"], total)
        # References lead where they say: each kernel's op was running when its API call was made.
        bad = sql(kept, "SELECT count(*) AS n FROM gpu_op g JOIN span c ON c.rowid = g.call JOIN span o ON o.rowid = c.op"
                        " WHERE c.track = o.track AND (c.start_ns < o.start_ns OR c.start_ns > o.start_ns + o.dur_ns)")
        self.assertEqual(bad.rows[0]["n"], 0)
        for name in ("operators", "report_operators"):
            table = sql(kept, f"SELECT * FROM {name}")
            self.assertEqual(table.doc["rows"], oracle.steps_report("operators", trace).doc["rows"])

    def test_sql_bundled(self):
        self.sql_counts(BUNDLED)

    def test_sql_gpu(self):
        self.sql_counts(oracle.data(*GPU))

    def test_sql_views_and_arguments(self):
        events = [e for e in oracle.events(oracle.load(BUNDLED)) if e.get("cat") == "cpu_op"]
        want = collections.Counter(e["name"] for e in events if "Input Dims" in e.get("args", {}))
        got = sql(BUNDLED, "SELECT name, count(*) AS n FROM ops_raw WHERE input_dims IS NOT NULL GROUP BY name")
        self.assertEqual({r["name"]: r["n"] for r in got.rows}, dict(want))

    def test_sql_sections_and_descriptions(self):
        names = [r["name"] for r in sql(BUNDLED, "SELECT * FROM opscope_tables").rows]
        self.assertIn("report_memory", names)
        self.assertIn("kernels_raw", names)
        for section in oracle.steps_report("overview", BUNDLED).doc["sections"]:
            rows = sql(BUNDLED, "SELECT * FROM overview_" + section["name"]).doc["rows"]
            self.assertEqual(rows, section["rows"])
        self.assertTrue(sql(BUNDLED, "SELECT help FROM opscope_columns WHERE table_name='span' AND name='dur_ns'").rows)

    def test_sql_everything_is_described(self):
        """What opscope_tables lists can be asked for, and opscope_columns has its columns."""
        for trace in (BUNDLED, oracle.synthetic("memory_view")):
            columns = collections.defaultdict(list)
            for r in sql(trace, "SELECT * FROM opscope_columns").rows:
                columns[r["table_name"]].append(r["name"])
                self.assertTrue(r["help"], r)
            tables = sql(trace, "SELECT * FROM opscope_tables").by("name")
            sections = {"overview_" + s["name"] for s in oracle.report("overview", trace).doc["sections"]}
            self.assertEqual({n for n, r in tables.items() if n.startswith("overview_") and r["kind"] == "section"}, sections)
            for name, r in tables.items():
                with self.subTest(table=name):
                    code, out, err = oracle.run("sql", trace, f"SELECT * FROM {name} LIMIT 1", "--format=json")
                    if "(not there: " in r["help"]:
                        self.assertEqual(code, 2)
                        self.assertIn(r["help"].split("(not there: ")[1][:-1], err.decode())
                    elif r["kind"] != "view":
                        self.assertEqual(oracle.Table(json.loads(out)).ids, columns[name])
        self.assertIn("memory_curve", tables)

    def test_sql_missing_section(self):
        """A section of a report that the trace cannot give says what to record."""
        for query in ("SELECT * FROM memory_curve", "SELECT * FROM report_memory_curve"):
            code, out, err = oracle.run("sql", oracle.synthetic("two_steps"), query)
            self.assertEqual((code, out, err.count(b"\n")), (2, b"", 1))
            self.assertIn(b"profile_memory=True", err)
        code, out, err = oracle.run("sql", oracle.synthetic("two_steps"), "SELECT * FROM nothing_here")
        self.assertIn(b"opscope_tables", err)

    def findings_are_there(self, trace):
        code, out, err = oracle.run("advise", trace, "--format=json", "--limit=0")
        self.assertEqual(code, 0, err)
        want = oracle.Table(json.loads(out))
        kept = self.imported(trace)
        for path in (trace, kept):
            for name in ("findings", "report_findings"):
                self.assertEqual(sql(path, f"SELECT * FROM {name}").doc["rows"], want.doc["rows"])
        db = sqlite3.connect(f"file:{kept}?mode=ro&immutable=1", uri=True)
        self.assertEqual([list(r) for r in db.execute("SELECT * FROM report_findings")], [r + [1] for r in want.doc["rows"]])
        notes = db.execute("SELECT note FROM report_notes WHERE table_name='report_findings'").fetchall()
        self.assertEqual([n for n, in notes], want.notes)
        db.close()
        return want

    def test_findings(self):
        self.assertTrue(self.findings_are_there(oracle.synthetic("two_steps")).rows)

    def test_findings_gpu(self):
        self.assertTrue(self.findings_are_there(oracle.data(*GPU)).rows)

    def test_sql_csv(self):
        code, out, err = oracle.run("sql", BUNDLED, "SELECT 1 AS a, 2.5 AS b, 'x,y' AS c, NULL AS d", "--format=csv")
        self.assertEqual((code, list(csv.reader(io.StringIO(out.decode())))), (0, [["a", "b", "c", "d"], ["1", "2.5", "x,y", ""]]))

    def test_sql_errors(self):
        for query in ("SELECT", "SELECT * FROM nothing_here", "DELETE FROM span", "DROP TABLE span", "CREATE TABLE x(y)",
                      "ATTACH 'x' AS y", "VACUUM INTO 'x'", "SELECT load_extension('x')", "SELECT 1; SELECT 2", "", "BEGIN",
                      "PRAGMA journal_mode=WAL", "UPDATE sqlite_master SET sql=''", "INSERT INTO span VALUES(1)"):
            with self.subTest(query=query):
                code, out, err = oracle.run("sql", BUNDLED, query)
                self.assertEqual((code, out), (2, b""))
                self.assertEqual(err.count(b"\n"), 1, err)

    def test_marks_of_passes(self):
        """The steps are not in the file, whatever it says of itself."""
        trace = oracle.synthetic("two_steps_overlap")
        kept = self.imported(trace)
        for value in (255, 4, -1, 0):
            db = sqlite3.connect(kept)
            db.execute("UPDATE meta SET value=? WHERE key='passes'", (value,))
            db.commit()
            db.close()
            for command in (("report", "steps"), ("report", "overview"), ("advise",), ("info",)):
                with self.subTest(value=value, command=command):
                    code, out, err = oracle.run(*command, kept, "--format=json")
                    self.assertEqual((code, err), (0, b""))
            self.assertEqual(oracle.report("steps", kept).doc["rows"], oracle.report("steps", trace).doc["rows"])

    def test_losses_are_told_again(self):
        """Who has the file alone has to know that the end of the run is missing, in the words of the source's reader."""
        damaged = os.path.join(self.tmp, "cut.json")
        with open(oracle.synthetic("two_steps_overlap"), "rb") as f, open(damaged, "wb") as out:
            out.write(f.read()[:-40])
        kept = os.path.join(self.tmp, "run.opscope")
        code, out, err = oracle.run("import", damaged, "-o", kept)
        self.assertEqual((code, out), (0, b""))
        self.assertIn(b"ends", err)
        for command in (("report", "operators"), ("advise",), ("info",), ("import", "-o", os.path.join(self.tmp, "2.opscope"))):
            with self.subTest(command=command):
                code, out, again = oracle.run(*command, kept)
                self.assertEqual((code, again.replace(kept.encode(), damaged.encode())), (0, err))
        message = err.decode().splitlines()[0].split(": ", 2)[2]
        self.assertIn(message, oracle.run("info", kept, "--format=json")[1].decode())

    def test_repairs_are_told_once(self):
        """What was read after all, in a known way, is said when the file is made; `info` has it later."""
        repaired, kept = os.path.join(self.tmp, "comma.json"), os.path.join(self.tmp, "run.opscope")
        with open(oracle.synthetic("two_steps_overlap"), "rb") as f, open(repaired, "wb") as out:
            out.write(f.read().replace(b'"dur":', b'"bare": N/A, "dur":', 1))
        code, _, err = oracle.run("import", repaired, "-o", kept)
        self.assertEqual((code, err.count(b"\n")), (0, 1))
        self.assertEqual(oracle.run("report", "operators", kept)[::2], (0, b""))
        self.assertIn(err.decode().strip().split(": ", 2)[2], oracle.run("info", kept, "--format=json")[1].decode())

    def test_where_other_sqlite_tools_differ(self):
        """What docs/sql.md says: but for the column `aggregation` and the tables about tables, a query gives the same in both."""
        kept = self.imported(BUNDLED)

        def ours(query):
            code, out, err = oracle.run("sql", kept, query, "--format=json")
            return (oracle.Table(json.loads(out)).rows if code == 0 else None), err.decode()
        with contextlib.closing(sqlite3.connect(kept)) as db:
            db.row_factory = sqlite3.Row
            for table in ("report_operators", "report_operators_by_stack", "report_memory", "report_overview_environment", "report_findings"):
                columns = [r["name"] for r in db.execute(f"PRAGMA table_info({table})")]
                self.assertEqual(columns[-1], "aggregation", table)
                query = f"SELECT {', '.join(columns[:-1])} FROM {table}"
                rows = ours(query)[0]
                for row, want in zip(rows, db.execute(query).fetchall(), strict=True):
                    for column in columns[:-1]:
                        self.assertEqual(row[column], want[column], (table, column))
            self.assertEqual(ours("SELECT aggregation FROM report_operators")[0], None)
            for table in ("report_columns", "report_notes", "report_missing"):
                self.assertTrue(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
                self.assertIn("no such table", ours(f"SELECT * FROM {table}")[1])
            self.assertEqual(len(ours("SELECT * FROM report_aggregations")[0]), 1)
            with self.assertRaises(sqlite3.OperationalError):
                db.execute("SELECT * FROM report_aggregations")

    def test_info_names_the_file(self):
        """The file itself, then what the recording is."""
        kept = self.imported(BUNDLED)
        def facts(path):
            return {r["fact"]: (r["value"], r["number"]) for r in oracle.info(path).rows}
        of_file, of_trace = facts(kept), facts(BUNDLED)
        with contextlib.closing(sqlite3.connect(kept)) as db:
            version, = db.execute("PRAGMA user_version").fetchone()
        self.assertEqual((of_file[".opscope file"][0], of_file[".opscope version"][1], of_file[".opscope size"][1]), (kept, version, os.path.getsize(kept)))
        self.assertEqual({k for k in of_file if k not in of_trace}, {".opscope file", ".opscope version", ".opscope size"})
        self.assertEqual(of_file["format"], of_trace["format"])

    def test_pipe_and_usage(self):
        kept = self.imported(BUNDLED)
        with open(kept, "rb") as f:
            code, out, err = oracle.run("report", "operators", "-", stdin=f.read())
        self.assertNotEqual(code, 0)
        self.assertIn(b"cannot be read from a pipe", err)
        self.assertEqual(oracle.run("import", BUNDLED)[0], 2)
        self.assertEqual(oracle.run("import", BUNDLED, "--steps=1", "-o", kept)[0], 2)

    def test_disk_full(self):
        kept = self.imported(BUNDLED)
        with open(kept, "rb") as f:
            before = f.read()
        p = subprocess.run(["bash", "-c", 'ulimit -f 64; exec "$0" import "$1" -o "$2"', oracle.OPSCOPE, BUNDLED, kept],
                           capture_output=True, timeout=oracle.TIMEOUT)
        self.assertEqual((p.returncode, p.stdout, p.stderr.count(b"\n")), (1, b"", 1), p.stderr)
        with open(kept, "rb") as f:
            self.assertEqual(f.read(), before)
        self.assertEqual(os.listdir(self.tmp), ["run.opscope"])

    def test_opening_is_much_faster(self):
        trace = oracle.data(*GPU)
        kept = self.imported(trace)

        def fastest(path):
            times = []
            for _ in range(7):
                start = resource.getrusage(resource.RUSAGE_CHILDREN)
                oracle.run("report", "devices", path, "--format=csv")
                end = resource.getrusage(resource.RUSAGE_CHILDREN)
                times.append(end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime)
            return min(times)

        empty = fastest(oracle.synthetic("pure_cpu"))  # what starting the program takes
        kept_s, trace_s = fastest(kept) - empty, fastest(trace) - empty
        print(f"# CPU {trace_s * 1e3:.1f} ms from the trace, {kept_s * 1e3:.1f} ms from the .opscope file")
        # bench/ measures how much: a third and less. Beside other work on the same cores, opening (memory) takes up to twice the time, parsing (arithmetic) not; parsing again would be 1.
        self.assertLess(kept_s, 0.75 * trace_s)


if __name__ == "__main__":
    oracle.main()
