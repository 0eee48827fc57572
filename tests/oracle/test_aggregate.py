"""Several aggregations in one .opscope file: each holds what the reports say of its steps; files change whole or not at all; older files are
raised to the newest version; what DLProf stored is shown, and compared with what its recording gives."""
import json
import lzma
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time

import oracle
from test_opscope_file import tables

SMALL = oracle.synthetic("two_steps_overlap")
GPU = ("tb_plugin", "resnet50_num_workers_0", "worker0.1623143566756.pt.trace.json.gz")
OLD = {version: os.path.join(oracle.ROOT, "tests", "data", f"version{version}.opscope.xz") for version in (1, 2)}
DLDB = ("dlprof", "w_relu", "dlprof_dldb.sqlite")


def read(path):
    with open(path, "rb") as f:
        return f.read()


class FileCase(oracle.Case):
    def setUp(self):
        super().setUp()
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)
        self.path = os.path.join(self.tmp, "run.opscope")

    def do(self, *args, status=0):
        code, out, err = oracle.run(*args)
        self.assertEqual(code, status, err)
        if status:
            self.assertEqual((out, err.count(b"\n")), (b"", 1), err)
        return err.decode() if status else out

    def imported(self, trace=SMALL):
        self.do("import", trace, "-o", self.path)
        return self.path

    def listed(self, path=None):
        """Aggregations by number."""
        return oracle.report("aggregations", path or self.path).by("aggregation")

    def sql(self, query, path=None):
        db = sqlite3.connect(path or self.path)
        try:
            rows = db.execute(query).fetchall()
            db.commit()
            return rows
        finally:
            db.close()

    def tables(self):
        return [n for n, in self.sql("SELECT name FROM sqlite_master WHERE type='table' AND name LIKE 'report\\_%' ESCAPE '\\'")]

    def refused(self, *words, status=1, args=("--steps=1",)):
        """Nothing has changed, and one line says why."""
        before = read(self.path)
        err = self.do("aggregate", self.path, *args, status=status)
        for w in words:
            self.assertIn(w, err)
        self.assertEqual(read(self.path), before)
        self.assertEqual(os.listdir(self.tmp), ["run.opscope"])


class Aggregate(FileCase):
    # What it holds.

    def same_as_reports(self, trace, *choice, numbers=(1, 2), of=1):
        self.imported(trace)
        self.do("aggregate", self.path, *choice, "--name=some")
        missing = {(a, n): r for a, n, r in self.sql("SELECT aggregation, name, reason FROM report_missing")}
        compared = 0
        for number, args in [(n, choice if n == 2 else ()) for n in numbers]:
            for name, group in oracle.part(tables(), of, number):
                table = "report_" + name.replace("-", "_") + (f"_by_{group.replace('-', '_').replace(':', '_')}" if group else "")
                grouped = ["--group-by=" + group] if group else []
                code, out, err = oracle.run("report", name, trace, "--format=json", "--limit=0", *grouped, *args)
                chosen = oracle.run("report", name, self.path, "--format=json", "--limit=0", *grouped, f"--aggregation={number}")
                with self.subTest(table=table, aggregation=number):
                    self.assertEqual((chosen[0], chosen[1]), (code, out))
                    if (number, table) in missing:
                        why = missing[number, table]
                        self.assertTrue(why.startswith("one row an event") or (code and why in err.decode()), why)
                        continue
                    want = oracle.Table(json.loads(out))
                    columns = ", ".join(f'"{c}"' for c in want.ids)
                    rows = self.sql(f'SELECT {columns} FROM "{table}" WHERE aggregation={number} ORDER BY rowid')
                    self.assertEqual([list(r) for r in rows], want.doc["rows"])
                    compared += 1
        findings = [json.loads(oracle.run("advise", f, "--format=json", "--limit=0", *a)[1])["rows"]
                    for f, a in ((trace, choice), (self.path, ("--aggregation=2",)))]
        self.assertEqual(findings[0], findings[1])
        columns = [r[1] for r in self.sql("PRAGMA table_info(report_findings)") if r[1] != "aggregation"]
        kept = self.sql(f"SELECT {', '.join(columns)} FROM report_findings WHERE aggregation=2 ORDER BY rowid")
        self.assertEqual([list(r) for r in kept], findings[0])
        self.assertGreater(compared, 20 * len(numbers) // (1 if oracle.ALL else of))

    def test_steps(self):
        self.same_as_reports(SMALL, "--steps=2..2", of=2)

    def test_steps_gpu(self):
        self.same_as_reports(oracle.data(*GPU), "--steps=..18", of=12)

    def test_key_op(self):
        self.same_as_reports(oracle.data(*GPU), "--key-op=aten::conv2d", "--steps=20..22", numbers=[2], of=12)  # the first is test_steps_gpu's

    def test_list(self):
        self.imported()
        self.do("aggregate", self.path, "--steps=2", "--name=second step")
        rows = self.listed()
        self.assertEqual(sorted(rows), [1, 2])
        self.assertEqual([(r["steps"], r["first_step"], r["last_step"], r["aggregated_steps"], r["total_steps"]) for r in rows.values()],
                         [(None, 1, 2, 2, 2), ("2..2" if rows[2]["steps"] != "2" else "2", 2, 2, 1, 2)])
        steps = {r["step"]: r for r in oracle.report("steps", SMALL).rows} if "step" in oracle.report("steps", SMALL).ids else None
        if steps:
            self.assertEqual(rows[2]["wall_ns"], list(steps.values())[1]["total_ns"])
        self.assertEqual((rows[1]["name"], rows[2]["name"]), (None, "second step"))
        kept = self.sql("SELECT id, name, steps, tables, rows, missing FROM aggregations ORDER BY id")
        self.assertEqual([(r["aggregation"], r["name"], r["steps"], r["tables"], r["rows"], r["missing"]) for r in rows.values()],
                         [(i, n or None, s or None, t, w, m) for i, n, s, t, w, m in kept])
        for number, *_, tables, count, missing in kept:
            there = [t for t in self.tables() if t not in ("report_columns", "report_notes", "report_missing")]
            self.assertEqual(count, sum(self.sql(f'SELECT count(*) FROM "{t}" WHERE aggregation={number}')[0][0] for t in there))
            self.assertEqual(missing, self.sql(f"SELECT count(*) FROM report_missing WHERE aggregation={number}")[0][0])
            self.assertEqual(tables, self.sql(f"SELECT count(DISTINCT table_name) FROM report_columns WHERE aggregation={number}")[0][0])
        code, out, err = oracle.run("sql", self.path, "SELECT aggregation, name FROM aggregations", "--format=csv")
        self.assertEqual((code, out.decode().split()), (0, ["aggregation,name", "1,", "2,second", "step"]), err)

    def test_same_bytes(self):
        """Only the time differs between two runs of the same."""
        env = {**os.environ, "SOURCE_DATE_EPOCH": "86400"}
        made = []
        for name in ("a.opscope", "b.opscope"):
            path = os.path.join(self.tmp, name)
            subprocess.run([oracle.OPSCOPE, "import", SMALL, "-o", path], env=env, check=True)
            subprocess.run([oracle.OPSCOPE, "aggregate", path, "--steps=1"], env=env, check=True, stdout=subprocess.DEVNULL)
            made.append(read(path))
        self.assertEqual(made[0], made[1])
        self.assertEqual(self.listed(path)[2]["created"], "1970-01-02T00:00:00Z")

    def test_import_keeps_them(self):
        self.imported()
        self.do("aggregate", self.path, "--steps=1", "--name=one")
        self.do("aggregate", self.path, "--key-op=aten::to")
        self.do("aggregate", self.path, "--delete=1")
        again = os.path.join(self.tmp, "again.opscope")
        self.do("import", self.path, "-o", again)
        self.assertEqual(self.listed(again), self.listed())

    def test_numbers_are_those_of_the_summary(self):
        for trace in (SMALL, oracle.data(*GPU), oracle.synthetic("no_profilerstep")):
            self.imported(trace)
            choices = [(), ("--steps=2",)] if trace == SMALL else [(), ("--steps=18..19",)] if trace != oracle.synthetic("no_profilerstep") else [()]
            for choice in choices[1:]:
                self.do("aggregate", self.path, *choice)
            for row, choice in zip(self.listed().values(), choices):
                figures = oracle.report("summary", trace, *choice).section("figures").rows[0]
                self.assertEqual(row["wall_ns"], figures["wall_ns"], (trace, choice))
                self.assertEqual(row["gpu_utilization_pct"] is None, figures["gpu_busy_pct"] is None)
                if figures["gpu_busy_pct"] is not None:
                    self.assertAlmostEqual(row["gpu_utilization_pct"], figures["gpu_busy_pct"], 6)
            os.unlink(self.path)

    def test_twice_the_same(self):
        """Told with its number; other rules are another question."""
        self.imported()
        self.do("aggregate", self.path, "--steps=1", "--name=one")
        before = read(self.path)
        for args, number in (((), 1), (("--steps=1",), '2 ("one", steps 1)'), (("--steps=1..1", "--name=other"), 2)):
            code, out, err = oracle.run("aggregate", self.path, *args)
            self.assertEqual((code, err.count(b"\n")), (0, 1))
            self.assertIn(f"this is aggregation {number}", err.decode())
            self.assertIn("Aggregations in the file", out.decode())
            self.assertEqual(read(self.path), before)
        rules = os.path.join(self.tmp, "own.def")
        with open(rules, "w") as f:
            f.write('KERNEL("my_kernel", GEMM, YES)\n')
        for _ in range(2):
            code, _, err = oracle.run("aggregate", self.path, "--steps=1", "--kernel-rules=" + rules)
            self.assertEqual(code, 0, err)
        self.assertEqual(sorted(self.listed()), [1, 2, 3])
        self.assertEqual(len(self.sql("SELECT rules FROM aggregations WHERE rules LIKE '--kernel-rules=#%'")), 1)

    def test_import_over(self):
        """Aggregations that someone asked for are not lost unasked."""
        self.imported()
        self.imported()  # nothing but what import makes
        self.do("aggregate", self.path, "--steps=1", "--name=one")
        before = read(self.path)
        err = self.do("import", SMALL, "-o", self.path, status=1)
        self.assertIn('holds an aggregation that would be lost: 2 ("one", steps 1); --force', err)
        self.assertEqual(read(self.path), before)
        self.do("import", SMALL, "-o", self.path, "--force")
        self.assertEqual(list(self.listed()), [1])

    def test_no_steps(self):
        """Step 0 of a trace without steps is not the whole."""
        self.imported(oracle.synthetic("no_profilerstep"))
        self.refused("the trace has no steps", args=("--steps=0",))

    def test_delete(self):
        self.imported()
        self.do("aggregate", self.path, "--steps=1")
        sizes = []
        for number in (3, 4, 5, 6, 7):
            self.do("aggregate", self.path, "--delete=%d" % (number - 1))
            self.assertEqual({n for t in self.tables() for n, in self.sql(f'SELECT DISTINCT aggregation FROM "{t}"')}, {1})
            self.do("aggregate", self.path, "--steps=1")
            self.assertEqual(sorted(self.listed()), [1, number])
            sizes.append(os.path.getsize(self.path))
        self.assertEqual(set(sizes[1:]), {sizes[0]}) # the pages of what was deleted serve again
        self.assertEqual(self.sql("PRAGMA integrity_check"), [("ok",)])
        self.refused("holds no aggregation 2", status=2, args=("--delete=2",))

    def test_size(self):
        trace = oracle.data(*GPU)
        self.imported(trace)
        before = os.path.getsize(self.path)
        for _ in range(4):
            self.do("aggregate", self.path, "--steps=17..19")
        each = (os.path.getsize(self.path) - before) / 4
        print(f"# {os.path.getsize(trace)} bytes of trace, {before} imported, {each:.0f} an aggregation")
        self.assertLess(each, before / 4)

    # Versions.

    def old_file(self, version=1):
        with open(self.path, "wb") as f:
            f.write(lzma.decompress(read(OLD[version])))
        self.assertEqual(self.sql("PRAGMA user_version"), [(version,)])

    def test_version_1(self):
        self.check_old(1)

    def test_version_2(self):
        self.check_old(2)

    def check_old(self, version):
        self.old_file(version)
        before = read(self.path)
        trace = oracle.synthetic("two_steps")
        for name in ("operators", "kernels", "steps", "memory"):
            self.assertEqual(oracle.run("report", name, self.path, "--format=csv")[:2], oracle.run("report", name, trace, "--format=csv")[:2])
        self.assertEqual(list(self.listed()), [1])
        self.assertEqual(read(self.path), before)  # reading changes nothing
        rows = {t: self.sql(f'SELECT * FROM "{t}"') for t in self.tables()}
        chunks = self.sql("SELECT * FROM store_chunk")
        self.do("aggregate", self.path, "--steps=2")
        self.assertEqual(self.sql("PRAGMA user_version"), [(3,)])
        meta = dict(self.sql("SELECT key, value FROM meta"))
        self.assertEqual((meta["version_original"], meta["opscope"], meta["opscope_current"]), (version, "0.1.0", meta["opscope_current"]))
        self.assertEqual(sorted(self.listed()), [1, 2])
        self.assertEqual(self.sql("SELECT * FROM store_chunk"), [(*c, None) for c in chunks])  # as they are: no column is packed
        for name in ("operators", "kernels", "steps", "memory"):
            self.assertEqual(oracle.run("report", name, self.path, "--format=csv")[:2], oracle.run("report", name, trace, "--format=csv")[:2])
        for table, old in rows.items():
            n = len(old[0]) if old else 0
            now = self.sql(f'SELECT * FROM "{table}" WHERE aggregation=1 ORDER BY rowid')
            self.assertEqual([r[:n] for r in now], [r[:n] for r in old], table)
        self.assertEqual(self.sql("PRAGMA integrity_check"), [("ok",)])
        self.assertEqual(dict(self.sql("SELECT key, value FROM meta"))["opscope"], "0.1.0")

    def test_versions_refused(self):
        for version, words in ((4, ("newer opscope", "file version 4", "reads up to 3")), (0, ("file version 0", "too old", "reads 1 to 3")),
                               (-1, ("file version -1", "too old"))):
            self.imported()
            self.sql(f"PRAGMA user_version={version}")
            self.refused(*words)
            err = self.do("report", "operators", self.path, status=1)
            for w in words:
                self.assertIn(w, err)
            os.unlink(self.path)

    # Damage.

    def test_disk_full(self):
        self.imported()
        before = read(self.path)
        for blocks in (0, 1, len(before) // 2048, len(before) // 1024, len(before) // 1024 + 30):
            p = subprocess.run(["bash", "-c", f'ulimit -f {blocks}; exec "$0" aggregate "$1" --steps=1', oracle.OPSCOPE, self.path],
                               capture_output=True, timeout=oracle.TIMEOUT)
            with self.subTest(blocks=blocks):
                self.assertEqual((p.returncode, p.stdout, p.stderr.count(b"\n")), (1, b"", 1), p.stderr)
                self.assertEqual(read(self.path), before)
                self.assertEqual(os.listdir(self.tmp), ["run.opscope"])

    def test_killed(self):
        """At whatever moment: the file is the old or the new one."""
        self.imported()
        before = read(self.path)
        started = time.monotonic()
        self.do("aggregate", self.path, "--steps=1")
        takes = time.monotonic() - started
        after = len(read(self.path))
        ended = set()
        for i in range(12):
            with open(self.path, "wb") as f:
                f.write(before)
            p = subprocess.Popen([oracle.OPSCOPE, "aggregate", self.path, "--steps=1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(takes * i / 8)
            p.send_signal(signal.SIGKILL if i % 2 else signal.SIGTERM)
            p.wait()
            now = read(self.path)
            ended.add(now == before)
            self.assertTrue(now == before or len(now) == after)
            self.assertIn(sorted(self.listed()), ([1], [1, 2]))
            if not i % 2:  # a signal that can be caught leaves nothing behind
                self.assertEqual([f for f in os.listdir(self.tmp) if f != "run.opscope"], [])
            for f in os.listdir(self.tmp):
                if f != "run.opscope":
                    os.unlink(os.path.join(self.tmp, f))
        self.assertIn(True, ended)

    def test_at_once(self):
        self.imported()
        running = [subprocess.Popen([oracle.OPSCOPE, "aggregate", self.path, f"--steps={steps}", f"--name=n{i}"], stdout=subprocess.DEVNULL)
                   for i, steps in enumerate(("1", "2", "1..2", "..1", "2.."))]
        self.assertEqual([p.wait() for p in running], [0] * 5)
        rows = self.listed()
        self.assertEqual(sorted(rows), [1, 2, 3, 4, 5, 6])
        self.assertEqual({r["name"] for r in rows.values()}, {None, "n0", "n1", "n2", "n3", "n4"})

    def test_the_same_at_once(self):
        """One is added; whoever comes later is told its number, as if it had been there before."""
        self.imported()
        running = [subprocess.Popen([oracle.OPSCOPE, "aggregate", self.path, "--steps=2"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(6)]
        said = [p.communicate()[1].decode() for p in running]
        self.assertEqual([p.returncode for p in running], [0] * 6)
        self.assertEqual(sorted(self.listed()), [1, 2])
        self.assertEqual(sorted("this is aggregation 2 (steps 2): nothing was added" in s for s in said), [False] + [True] * 5, said)

    def test_strangers_schema(self):
        """What a stranger wrote into the file's schema does not run, or the file is refused."""
        forever = "WITH RECURSIVE a(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM a) SELECT count(*) FROM a"
        self.imported()
        self.sql(f"CREATE TRIGGER t AFTER INSERT ON report_operators BEGIN INSERT INTO report_notes(note) {forever}; END")
        self.sql("CREATE INDEX own ON report_operators(name)")
        self.sql(f"CREATE VIEW report_own AS {forever}")
        self.do("aggregate", self.path, "--steps=1")
        self.assertEqual(sorted(self.listed()), [1, 2])
        for change in ("ALTER TABLE report_operators ADD COLUMN mine INTEGER DEFAULT 5",
                       "DROP TABLE report_steps; CREATE TABLE report_steps(a INTEGER CHECK (a > 0), aggregation INTEGER)",
                       "DROP TABLE report_notes; CREATE VIEW report_notes AS SELECT 1",
                       "DROP TABLE meta; CREATE TABLE meta(key TEXT PRIMARY KEY, value CHECK (abs(value) < 7))"):
            os.unlink(self.path)
            self.imported()
            db = sqlite3.connect(self.path)
            rows = db.execute("SELECT * FROM meta").fetchall()
            db.executescript(change)
            if "meta" in change:
                db.execute("PRAGMA ignore_check_constraints=1")
                db.executemany("INSERT INTO meta VALUES(?, ?)", rows)
            db.commit()
            db.close()
            with self.subTest(change=change):
                self.refused("import the trace again")

    def test_other_columns(self):
        """A table made by another version, with fewer columns and one of its own, is added to."""
        self.imported()
        want = self.sql("SELECT name, calls FROM report_operators")
        self.sql("ALTER TABLE report_operators DROP COLUMN calls")
        self.sql("ALTER TABLE report_operators ADD COLUMN \"old_column\" TEXT")
        self.sql("UPDATE aggregations SET opscope='0.0.9'")
        self.do("aggregate", self.path)
        self.assertEqual(self.sql("SELECT name, calls FROM report_operators WHERE aggregation=1"), [(n, None) for n, _ in want])
        self.assertEqual(self.sql("SELECT name, calls FROM report_operators WHERE aggregation=2"), want)

    def test_damaged(self):
        self.imported()
        whole = read(self.path)
        for at in range(100, len(whole), len(whole) // 60):
            with open(self.path, "wb") as f:
                f.write(whole[:at] + bytes(64) + whole[at + 64:])
            before = read(self.path)
            code, out, err = oracle.run("aggregate", self.path, "--steps=1")
            self.assertIn(code, (0, 1))
            if code:
                self.assertEqual(err.count(b"\n"), 1, err)
                self.assertEqual(read(self.path), before)
            self.assertEqual(os.listdir(self.tmp), ["run.opscope"])

    def test_written_by_others(self):
        self.imported()
        for end in ("-wal", "-journal"):
            with open(self.path + end, "wb") as f:
                f.write(b"x")
            err = self.do("aggregate", self.path, "--steps=1", status=1)
            self.assertIn(end, err)
            os.unlink(self.path + end)
        db = sqlite3.connect(self.path)
        db.execute("PRAGMA journal_mode=WAL")
        db.close()
        self.do("aggregate", self.path, "--steps=1")
        self.assertEqual((sorted(self.listed()), os.listdir(self.tmp)), ([1, 2], ["run.opscope"]))

    def test_link_and_mode(self):
        self.imported()
        os.chmod(self.path, 0o640)
        link = os.path.join(self.tmp, "link.opscope")
        os.symlink("run.opscope", link)
        self.do("aggregate", link, "--steps=1")
        self.assertTrue(os.path.islink(link))
        self.assertEqual((os.stat(self.path).st_mode & 0o777, sorted(self.listed())), (0o640, [1, 2]))

    def test_usage(self):
        self.imported()
        self.refused("no such op", status=2, args=("--key-op=no such op",))
        self.refused("7..9", status=1, args=("--steps=7..9",))
        for args in (("--delete=x",), ("--delete=0",), ("--delete=1", "--list"), ("--list", "--steps=1"), ("--device=0",), ("--aggregation=1",),
                     ("--name=a\nb",), ("--name=" + "n" * 1001,)):
            with self.subTest(args=args):
                self.refused(status=2, args=args)
        self.assertIn("opscope import", self.do("aggregate", SMALL, "--steps=1", status=1))
        self.do("aggregate", status=2)
        self.do("aggregate", os.path.join(self.tmp, "none"), status=1)
        self.assertIn("no such aggregation", self.do("report", "operators", self.path, "--aggregation=5", status=2))
        self.assertIn("of its own", self.do("report", "operators", self.path, "--aggregation=1", "--steps=1", status=2))
        self.assertIn("holds no aggregations", self.do("report", "aggregations", SMALL, status=1))

    def test_as_many_as_there_can_be(self):
        self.imported()
        self.sql("WITH RECURSIVE a(i) AS (SELECT 2 UNION ALL SELECT i+1 FROM a WHERE i < 1000) INSERT INTO aggregations(id) SELECT i FROM a")
        self.refused("1000 aggregations", args=("--steps=1",))
        self.do("aggregate", self.path, "--delete=500")
        self.do("aggregate", self.path, "--steps=1")
        self.assertEqual(max(self.listed()), 1001)


@oracle.of("dlprof")
class Stated(FileCase):
    """Aggregations that a DLProf database brings."""

    def changed(self, *statements):
        path = os.path.join(self.tmp, "changed.sqlite")
        shutil.copyfile(oracle.data(*DLDB), path)
        os.chmod(path, 0o644)
        for s in statements:
            self.sql(s, path)
        return path

    def test_text_folds(self):
        """What DLProf stored is named in a note, and shown when asked for; other formats have all."""
        path = oracle.data(*DLDB)
        text = oracle.run("report", "aggregations", path, "--notes=full")[1].decode()
        stored = [s["name"] for s in oracle.report("aggregations", path).doc["sections"] if s["name"] != "differences"]
        self.assertGreater(len(stored), 12)
        self.assertIn(f"{len(stored)} more tables: {', '.join(stored)}. --section=NAME shows one", text)
        self.assertNotIn("as stored", text)
        self.assertIn("Stored numbers that opscope computes differently", text)
        self.assertLess(text.count("\n"), 20)
        self.assertEqual(oracle.run("report", "aggregations", path, "--section=all")[1].decode().count(", as stored\n"), len(stored))
        one = oracle.run("report", "aggregations", path, "--section=group_ops")[1].decode()
        self.assertTrue(one.startswith("group_ops, as stored\n"))
        self.assertNotIn("more tables", one)

    def test_all_numbers_agree(self):
        t = oracle.report("aggregations", oracle.data(*DLDB))
        differences = t.section("differences")
        self.assertEqual(differences.rows, [])
        self.assertEqual(differences.notes, ["2626 stored numbers in 150 rows were compared with those computed from the recording: 0 differ"])
        db = sqlite3.connect(f"file:{oracle.data(*DLDB)}?mode=ro&immutable=1", uri=True)
        wall, start, stop, n, gpu = db.execute("SELECT wall_time, iter_start, iter_stop, iter_aggregated, gpu_utilization FROM model_summary").fetchone()
        when, = db.execute("SELECT start_timestamp FROM aggregations").fetchone()
        row = t.rows[0]
        self.assertEqual((row["wall_ns"], row["first_step"], row["last_step"], row["aggregated_steps"], row["gpu_utilization_pct"], row["created"]),
                         (wall, start, stop, n, gpu, when))
        for table, in db.execute("SELECT name FROM sqlite_master WHERE name IN ('op_nodes', 'group_ops', 'kernel_summaries', 'model_summary', "
                                 "'op_type_metrics', 'iteration_list', 'expert_systems_feedback', 'device_gpu_utilizations')"):
            self.assertEqual(len(t.section(table).rows), db.execute(f"SELECT count(*) FROM {table}").fetchone()[0], table)
        db.close()

    def test_a_number_that_differs_is_told(self):
        path = self.changed("UPDATE metric SET sum = sum + 1 WHERE id = (SELECT gpu_time_metric_id FROM kernel_summaries WHERE id = 1)",
                            "UPDATE model_summary SET wall_time = 7", "DELETE FROM op_type_metrics WHERE id = 1",
                            "UPDATE expert_systems_feedback SET problem = 'other words' WHERE id = 2")
        t = oracle.report("aggregations", path).section("differences")
        told = {(r["table_name"], r["column"]) for r in t.rows}
        self.assertEqual(told, {("kernel_summaries", "total_gpu_time_ns"), ("model_summary", "wall_clock_time_ns"), ("op_type_metrics", ""),
                                ("expert_systems_feedback", "")})
        self.assertEqual({(r["stated"], r["computed"]) for r in t.rows if r["table_name"] == "model_summary"}, {("7", "2840562182")})

    def test_aggregate_again(self):
        self.imported(oracle.data(*DLDB))
        self.do("aggregate", self.path, "--key-op=conv2d", "--steps=1")
        rows = self.listed()
        self.assertEqual([r["made_by"].split()[0] for r in rows.values()], ["DLProf", "opscope", "opscope"])
        self.assertEqual((rows[3]["key_op"], rows[3]["aggregated_steps"]), ("conv2d", 1))
        self.refused("stays", status=2, args=("--delete=1",))
        self.assertEqual(oracle.report("aggregations", self.path).section("differences").rows, [])
        for name in ("ops", "op-types", "groups", "tensor-cores", "summary"):
            both = [oracle.run("report", name, p, "--compat=dlprof", "--format=csv", "--aggregation=1")[:2] for p in (self.path, oracle.data(*DLDB))]
            self.assertEqual(both[0], both[1])
        self.assertEqual(oracle.report("ops", self.path, "--aggregation=3").rows,
                         oracle.report("ops", oracle.data(*DLDB), "--key-op=conv2d", "--steps=1").rows)

    def test_part_of_the_iterations(self):
        path = self.changed("UPDATE model_summary SET iter_start = 1, iter_stop = 1, iter_total = 3, iter_aggregated = 1, "
                            "key_node_id = (SELECT id FROM dictionary WHERE string = 'conv2d')")
        self.assertIn("--compat=dlprof", self.do("report", "kernels", path, "--aggregation=1", status=1))
        a = oracle.report("ops", path, "--compat=dlprof", "--aggregation=1")
        b = oracle.report("ops", path, "--compat=dlprof", "--key-op=conv2d", "--steps=1")
        self.assertEqual(a.rows, b.rows)
        self.assertLess(len(a.rows), 36)


if __name__ == "__main__":
    oracle.main()
