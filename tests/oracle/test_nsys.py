"""Nsight Systems databases: every row of every table is read, and says what plain SQL says; databases that are damaged, still being
written or of another program are read as far as they go, or refused with a reason."""
import ast
import collections
import contextlib
import csv
import io
import os
import re
import shutil
import signal
import sqlite3
import stat
import struct
import subprocess
import tempfile
import time
import unittest

import nsys_db
import oracle
from nsys_db import call, kernel, make, nvtx, pid, sample, strings, tid
from oracle import Case, data, data_glob, info

BACKTRACE = 67  # such rows repeat the call that they belong to
NO_STREAM = 4294967295
LOOKUP = re.compile(r"ENUM_|TARGET_INFO_|ANALYSIS_|META_DATA_|NVTX_PAYLOAD_|_|StringIds|UnwindMethodType|ProcessStreams|sqlite_")


def files():
    found = data_glob("nsys/*/*.sqlite") + data_glob("dlprof/*/nsys_profile.sqlite") + data_glob("pyprof/*_nsys/*.sqlite")
    if not found:
        raise unittest.SkipTest("no nsys (real traces are not part of the repository)")
    return found


def connect(path):
    db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    db.text_factory = lambda b: b.decode("utf-8", "replace")
    return db


def sql(path, query):
    code, out, err = oracle.run("sql", path, query, "--format=json", "--limit=0")
    if code:
        raise AssertionError(err.decode(errors="replace"))
    return [tuple(r) for r in oracle.json.loads(out)["rows"]]


class Source:
    """Counts and sums of a database, by plain SQL; tables that are not there count 0."""

    def __init__(self, path):
        self.db = connect(path)
        self.tables = [r[0] for r in self.db.execute("SELECT name FROM sqlite_master WHERE type='table'")]

    def rows(self, table, what="count(*)", where="1"):
        if table not in self.tables:
            return 0
        return self.db.execute(f'SELECT {what} FROM "{table}" WHERE {where}').fetchone()[0] or 0


class RealFiles(Case):
    def test_counts(self):
        """Rows by category, of every table, against count(*)."""
        for path in files():
            with self.subTest(file=path.split("/")[-2]):
                s = Source(path)
                seen = collections.Counter()
                for r in info(path).section("events").rows:
                    seen[r["category"], r["phase"]] += r["events"]
                cupti = lambda *names: sum(s.rows("CUPTI_ACTIVITY_KIND_" + n) for n in names)
                self.assertEqual(seen["kernel", "X"], cupti("KERNEL", "GRAPH_TRACE"))
                self.assertEqual(seen["gpu_memcpy", "X"], cupti("MEMCPY"))
                self.assertEqual(seen["gpu_memset", "X"], cupti("MEMSET"))
                self.assertEqual(seen["cuda_sync", "X"], cupti("SYNCHRONIZATION"))
                self.assertEqual(seen["overhead", "X"], cupti("OVERHEAD") + s.rows("PROFILER_OVERHEAD"))
                self.assertEqual(seen["osrt", "X"], s.rows("OSRT_API"))
                self.assertEqual(seen["cuda_graph", "X"], s.rows("CUDA_GRAPH_EVENTS"))
                self.assertEqual(seen["nsys", "i"], s.rows("DIAGNOSTIC_EVENT"))
                for cat, where in ("cuda_runtime", "eventClass=0"), ("cuda_driver", "eventClass=1"), ("cuda_backtrace", "eventClass=67"):
                    self.assertEqual(seen[cat, "X"], s.rows("CUPTI_ACTIVITY_KIND_RUNTIME", where=where), cat)
                self.assertEqual(seen["nvtx", "M"], s.rows("NVTX_EVENTS", where="eventType NOT IN (34, 59, 60)"))
                own = {c for c, p in seen if p == "X"} - {"kernel", "gpu_memcpy", "gpu_memset", "cuda_sync", "overhead", "osrt",
                                                           "cuda_graph", "cuda_runtime", "cuda_driver", "cuda_backtrace"}
                self.assertEqual(sum(seen[c, "X"] for c in own), s.rows("NVTX_EVENTS", where="eventType IN (59, 60)"))
                self.assertEqual(seen["nvtx", "X"], s.rows("NVTX_EVENTS", where="eventType IN (59, 60) AND coalesce(domainId, 0)=0"))
                for t in s.tables:  # what is read by no one is counted by name
                    if (t, "-") in seen:
                        self.assertEqual(seen[t, "-"], s.rows(t))
                        self.assertFalse(LOOKUP.match(t), t)

    def test_nothing_unmentioned(self):
        """A table with rows is counted, whether it is used or not."""
        used = ("CUPTI_ACTIVITY_KIND_", "NVTX_EVENTS", "OSRT_API", "PROFILER_OVERHEAD", "CUDA_GRAPH_", "DIAGNOSTIC_EVENT")
        for path in files():
            with self.subTest(file=path.split("/")[-2]):
                s = Source(path)
                seen = {r["category"] for r in info(path).section("events").rows}
                for t in s.tables:
                    if s.rows(t) and not LOOKUP.match(t) and not t.startswith(used):
                        self.assertIn(t, seen)

    def test_sums(self):
        """Rows and time of all host tables, and of the device."""
        host = ("CUPTI_ACTIVITY_KIND_RUNTIME", "OSRT_API", "PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD", "CUDA_GRAPH_EVENTS",
                "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION")
        device = tuple("CUPTI_ACTIVITY_KIND_" + t for t in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE"))
        for path in files():
            with self.subTest(file=path.split("/")[-2]):
                s = Source(path)
                ns = 'sum(max("end" - start, 0))'
                ranges = "eventType IN (59, 60)"
                want = (sum(s.rows(t) for t in host) + s.rows("NVTX_EVENTS", where=ranges),
                        sum(s.rows(t, ns) for t in host) + s.rows("NVTX_EVENTS", ns, ranges))
                self.assertEqual(sql(path, "SELECT count(*), coalesce(sum(dur_ns), 0) FROM span"), [want])
                want = sum(s.rows(t) for t in device), sum(s.rows(t, ns) for t in device)
                self.assertEqual(sql(path, "SELECT count(*), coalesce(sum(dur_ns), 0) FROM gpu_op"), [want])

    def test_kernels_by_name(self):
        for path in files():
            s = Source(path)
            if not s.rows("CUPTI_ACTIVITY_KIND_KERNEL"):
                continue
            with self.subTest(file=path.split("/")[-2]):
                want = s.db.execute('SELECT value, count(*), sum("end" - start), sum(gridX), sum(registersPerThread), '
                                    "sum(staticSharedMemory + dynamicSharedMemory) FROM CUPTI_ACTIVITY_KIND_KERNEL k "
                                    "JOIN StringIds s ON s.id = k.demangledName GROUP BY 1").fetchall()
                got = sql(path, "SELECT g.name, count(*), sum(g.dur_ns), sum(l.grid_x), sum(l.registers), sum(l.shared_bytes) FROM gpu_op g "
                                "JOIN launch l ON l.rowid = g.launch WHERE g.name NOT LIKE 'CUDA graph %' AND g.cat = 'kernel' GROUP BY 1")
                self.assertEqual(sorted(got), sorted(want))

    def test_correlation(self):
        """Device work without a call is what a join on process and correlation id leaves over."""
        for path in files():
            s = Source(path)
            if not s.rows("CUPTI_ACTIVITY_KIND_KERNEL"):
                continue
            with self.subTest(file=path.split("/")[-2]):
                calls = set(s.db.execute("SELECT globalTid >> 24 & 16777215, correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME "
                                         f"WHERE eventClass <> {BACKTRACE}"))
                orphans = 0
                for t in "KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE":
                    if "CUPTI_ACTIVITY_KIND_" + t in s.tables:
                        orphans += sum(key not in calls for key in s.db.execute(
                            f"SELECT globalPid >> 24 & 16777215, correlationId FROM CUPTI_ACTIVITY_KIND_{t}"))
                self.assertEqual(sql(path, "SELECT count(*) FROM gpu_op WHERE call IS NULL"), [(orphans,)])

    def test_two_gpus(self):
        """Both processes number their calls alike: each kernel goes to a call of its own process, before it."""
        path = data("nsys", "2026.2_mfu_2gpu", "mfu_2gpu_before.sqlite")
        rows = sql(path, "SELECT l.pid, t.pid, g.start_ns >= s.start_ns, g.corr_id = s.link_id FROM gpu_op g JOIN launch l ON "
                         "l.rowid = g.launch JOIN span s ON s.rowid = g.call JOIN track t ON t.rowid = s.track")
        self.assertEqual(len(rows), 5268)
        for launched, called, after, same in rows:
            self.assertEqual((launched, after, same), (called, 1, 1))
        self.assertEqual({r[0] for r in rows}, {144, 145})

    def test_nesting(self):
        """The innermost push/pop range around each one, by looking at all of its thread."""
        path = data("nsys", "2025.3_nsightful_t4", "power_iteration__baseline.sqlite")
        ranges = connect(path).execute('SELECT globalTid & 16777215, start, "end" FROM NVTX_EVENTS WHERE eventType = 59').fetchall()
        want = collections.Counter()
        for t, a, b in ranges:
            around = [(d - c, c, d) for u, c, d in ranges if u == t and c <= a and b <= d and (c, d) != (a, b)]
            want[t, a, b, min(around)[1:] if around else None] += 1
        got = collections.Counter()
        for t, a, n, c, m in sql(path, "SELECT t.tid, s.start_ns, s.dur_ns, p.start_ns, p.dur_ns FROM span s JOIN track t ON "
                                       "t.rowid = s.track LEFT JOIN span p ON p.rowid = s.parent WHERE s.kind IN ('op', 'user')"):
            got[t, a, a + n, None if c is None else (c, c + m)] += 1
        self.assertEqual(got, want)

    def test_registered_and_plain_texts(self):
        """Names of ranges in a file of registered strings only, with two domains."""
        path = data("nsys", "tensorrt_poolformer", "poolformer.sqlite")
        db = connect(path)
        want = collections.Counter(r[0] for r in db.execute("SELECT coalesce(text, value) FROM NVTX_EVENTS n LEFT JOIN StringIds s ON "
                                                            "s.id = n.textId WHERE eventType IN (59, 60)"))
        got = collections.Counter()
        for name, n in sql(path, "SELECT name, count(*) FROM span WHERE kind IN ('op', 'user', 'range') GROUP BY 1"):
            got[name] += n
        self.assertEqual(got, want)
        self.assertEqual({r[0] for r in sql(path, "SELECT DISTINCT cat FROM span WHERE kind <> 'overhead'")}, {"nvtx", "TensorRT", "myelin-exec"})

    def test_whole_graphs(self):
        path = data("nsys", "2025.5_flameox_graph", "nsight-2025.5.2.sqlite")
        rows = sql(path, "SELECT g.name, g.dur_ns, l.graph_id, s.name FROM gpu_op g JOIN launch l ON l.rowid = g.launch JOIN span s ON "
                         "s.rowid = g.call WHERE l.graph_id IS NOT NULL")
        self.assertEqual(rows, [("CUDA graph 1", 1728, 1, "cudaGraphLaunch_v10000"), ("CUDA graph 1", 1376, 1, "cudaGraphLaunch_v10000")])
        self.assertIn("whole-graphs", {r["kind"] for r in info(path).section("problems").rows})

    def test_synchronisation(self):
        """What was waited for, told by the call that waited, although the numbers of syncType changed between versions."""
        means = {"cudaDeviceSynchronize": "Context Sync", "cuCtxSynchronize": "Context Sync", "cudaEventSynchronize": "Event Sync",
                 "cudaEventQuery": "Event Sync", "cudaStreamSynchronize": "Stream Sync", "cudaStreamWaitEvent": "Stream Wait Event"}
        checked = set()
        for path in files():
            s = Source(path)
            if not s.rows("CUPTI_ACTIVITY_KIND_RUNTIME"):
                continue
            calls = dict(((p, c), v) for p, c, v in s.db.execute(
                "SELECT globalTid >> 24 & 16777215, correlationId, value FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id = r.nameId"))
            pids = {p for p, _ in calls}
            with self.subTest(file=path.split("/")[-2]):
                for name, corr in sql(path, "SELECT name, link_id FROM span WHERE kind = 'sync'"):
                    found = {calls[p, corr] for p in pids if (p, corr) in calls}
                    if len(found) == 1:
                        base = re.sub(r"_v\d{4}$", "", found.pop())
                        self.assertEqual(name, means.get(base, name), base)
                        checked.add(base)
        self.assertLessEqual(set(means), checked)

    def test_devices(self):
        for path in files():
            s = Source(path)
            with self.subTest(file=path.split("/")[-2]):
                want = sorted(s.db.execute("SELECT id, name, totalMemory, smCount FROM TARGET_INFO_GPU")) if "TARGET_INFO_GPU" in s.tables else []
                got = sql(path, "SELECT id, name, memory_bytes, sm_count FROM device ORDER BY id")
                self.assertEqual(got, want)

    def test_empty_capture(self):
        path = data("nsys", "2023.4_easycuda_empty", "report1.sqlite")
        problems = {r["kind"]: r["message"] for r in info(path).section("problems").rows}
        self.assertIn("nsys profile --trace=cuda", problems["no-gpu-work"])


class Made(Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory(prefix="opscope-nsys-")
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "r.sqlite")

    def problems(self, path=None):
        return {r["kind"]: r for r in info(path or self.path).section("problems").rows}

    def check_sample(self, path=None):
        """What sample() holds, however it was stored."""
        path = path or self.path
        self.assertEqual(sql(path, "SELECT name, start_ns, dur_ns FROM gpu_op ORDER BY start_ns"), [
            ("void k<float>(float*)", 150, 40), ("void k<float>(float*)", 200, 60), ("Memcpy HtoD (Pageable -> Device)", 300, 20),
            ("Memset (Device)", 330, 1), ("CUDA graph 3", 340, 50)])
        self.assertEqual(sql(path, "SELECT name, kind, cat, start_ns, dur_ns FROM span ORDER BY start_ns, dur_ns"), [
            ("read", "overhead", "overhead", 50, 10), ("aten::mm", "op", "nvtx", 100, 100), ("read", "os", "osrt", 101, 2),
            ("registered", "user", "nvtx", 105, 25), ("cudaLaunchKernel", "call", "cuda_runtime", 110, 5),
            ("cudaLaunchKernel", "call", "cuda_runtime", 120, 5), ("load", "range", "nvtx", 120, 380),
            ("cudaLaunchKernel", "call", "cuda_runtime", 130, 5), ("registered", "user", "nvtx", 131, 8),
            ("cudaLaunchKernel", "call", "cuda_runtime", 140, 5), ("ncclAllReduce", "op", "NCCL", 140, 9),
            ("cudaLaunchKernel", "call", "cuda_runtime", 150, 5), ("still open", "user", "nvtx", 160, 340),
            ("cudaLaunchKernel", "call", "cuda_runtime", 395, 17), ("Context Sync", "sync", "cuda_sync", 400, 10)])

    def args(self, name):
        return sql(self.path, "SELECT a.key, a.value FROM span s JOIN arg_set f ON f.rowid = s.args JOIN arg a ON a.rowid >= f.first AND a.rowid < "
                              "coalesce((SELECT first FROM arg_set n WHERE n.rowid = f.rowid + 1), (SELECT count(*) FROM arg)) "
                              f"WHERE s.name = '{name}' ORDER BY s.start_ns, a.rowid")

    def test_sample(self):
        make(self.path, sample())
        self.check_sample()
        self.assertEqual(self.args("registered"), [("Category", "io"), ("Payload", "42"), ("Payload", '{"a": 1}')])
        self.assertEqual(self.args("ncclAllReduce"), [("NCCL communicator ID", "99"), ("Message size [bytes]", "1048576"), ("Peer rank", "-1")])
        self.assertEqual(self.args("load"), [("End thread", "12")])
        tracks = sql(self.path, "SELECT pid_text, tid_text, process_name, process_labels, thread_name FROM track ORDER BY 1, 2")
        self.assertEqual(tracks, [("0", "-1", "", "GPU 0", "no stream"), ("0", "7", "", "GPU 0", "stream 7"), ("10", "11", "train.py", "CPU", "main"),
                                  ("10", "11 start/end", "train.py", "CPU", ""), ("nsys", "nsys", "", "", "")])
        self.assertEqual(sql(self.path, "SELECT name, time_ns FROM mark ORDER BY 2"), [("some events were lost", 5), ("here", 170)])
        launch = sql(self.path, "SELECT l.pid, l.shared_bytes, l.graph_node_id, l.blocks_per_sm, l.warps_per_sm FROM gpu_op g JOIN launch l ON "
                                "l.rowid = g.launch WHERE g.start_ns = 200")
        self.assertEqual(launch, [(10, 48, 77, 10 / 108, 10 / 108 * 4)])
        found = self.problems()
        self.assertEqual(found["range-without-end"]["count"], 1)
        self.assertIn("some events were lost", found["capture-warning"]["message"])
        self.assertEqual((found["not-read"]["count"], found["not-read"]["level"]), (3, "note"))

    def test_columns_of_other_types(self):
        """SQLite holds no column to its type: integers stored as REAL or TEXT are the same integers."""
        for kind in "REAL", "TEXT":
            with self.subTest(kind=kind):
                path = os.path.join(self.folder.name, kind + ".sqlite")
                make(path, sample())
                db = sqlite3.connect(path)
                for table, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                    columns = [r[1] for r in db.execute(f"PRAGMA table_info({table})")]
                    plain = {"text", "value", "name", "jsonText", "binaryData"}
                    declared = ", ".join(f'"{c}" ' + ("" if c in plain else kind) for c in columns)
                    db.executescript(f"ALTER TABLE {table} RENAME TO old; CREATE TABLE {table} ({declared});"
                                     f"INSERT INTO {table} SELECT * FROM old; DROP TABLE old")
                db.close()
                self.check_sample(path)

    def test_inexact_times(self):
        """A double beyond 2^53 may stand for a neighbour of what was meant: no time."""
        make(self.path, {"StringIds": strings("k"), "CUPTI_ACTIVITY_KIND_KERNEL": [
            kernel(2.0 ** 53, 2.0 ** 53, 1, 2), kernel(1.7e18, 1.7e18, 2, 2), kernel(0.5, 3, 3, 2), kernel("7 ", 9, 4, 2)]})
        self.assertEqual(sql(self.path, "SELECT start_ns FROM gpu_op"), [(2 ** 53,)])
        self.assertEqual(self.problems()["bad-time"]["count"], 3)

    def test_tables_in_lower_case(self):
        rows = sample()
        make(self.path, rows, extra=[x for t in rows for x in (f"ALTER TABLE {t} RENAME TO x", f"ALTER TABLE x RENAME TO {t.lower()}")])
        self.check_sample()

    def test_view(self):
        """A view is not read, which is said."""
        make(self.path, sample(), extra=["ALTER TABLE OSRT_API RENAME TO _x", "CREATE VIEW OSRT_API AS SELECT * FROM _x"])
        self.assertEqual(sql(self.path, "SELECT count(*) FROM span WHERE cat = 'osrt'"), [(0,)])
        found = self.problems()["views"]
        self.assertEqual(found["level"], "lost")
        self.assertTrue(found["message"].endswith(": OSRT_API"), found["message"])

    def test_many_tables(self):
        """20 k tables are listed once, not for each question."""
        # Made by CREATE TABLE, each takes longer than the one before; here all lie in one page.
        make(self.path, sample(), extra=["CREATE TABLE t0(a)", "PRAGMA writable_schema=ON",
                                         "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 19999) INSERT INTO sqlite_master "
                                         "SELECT 'table', 't' || i, 't' || i, (SELECT rootpage FROM sqlite_master WHERE name = 't0'), "
                                         "'CREATE TABLE t' || i || '(a)' FROM n"])
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            self.assertGreater(db.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchone()[0], 20000)
            db.execute("SELECT * FROM t19999")
        start = oracle.children_cpu_s()
        self.check_sample()
        self.assertLess(oracle.children_cpu_s() - start, 20)

    def test_many_fields(self):
        make(self.path, {"StringIds": strings("x"), "NVTX_EVENTS": [nvtx(1, 2, "a", 1, 1)], "NVTX_PAYLOAD_SCHEMA_ENTRIES": [
            {"domainId": 1, "schemaId": 1, "type": 1, "offset": i, "name": "f"} for i in range(2000)]})
        self.assertEqual(self.problems()["too-many-fields"]["level"], "lost")

    def test_texts_that_steer_a_terminal(self):
        """What pyprof-parse and pyprof-prof print holds no control characters, and is CSV or python whatever the names are."""
        name = 'k\x1b[31m"a",b\x9b\u202e'
        make(self.path, {"StringIds": strings(name, "cudaLaunchKernel_v7000"), "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(10, 30, 1, 2)],
                         "CUPTI_ACTIVITY_KIND_RUNTIME": [call(1, 5, 1, 2, 2)]})
        code, out, err = oracle.run("pyprof-parse", self.path)
        self.assertEqual(code, 0, err)
        record = ast.literal_eval(out.decode())
        self.assertEqual(record["kLongName"], name)
        self.assertNotIn(b"\x1b", out)
        for more in ["-w", "200"], []:
            code, out, err = oracle.run("pyprof-prof", self.path, "-c", "kernel", *more)
            self.assertEqual(code, 0, err)
            self.assertNotIn(b"\x1b", out)
            self.assertIn(b'k\\x1b[31m"a",b\\u009b\\u202e', out)
        code, out, err = oracle.run("pyprof-prof", self.path, "-c", "kernel,idx", "--csv")
        self.assertEqual(list(csv.reader(io.StringIO(out.decode()))), [["Kernel", "Idx"], [name, "1"]])

    def test_page_sizes_and_encodings(self):
        for size, encoding in (512, None), (65536, None), (4096, "UTF-16le"):
            with self.subTest(size=size, encoding=encoding):
                path = os.path.join(self.folder.name, f"{size}{encoding}.sqlite")
                make(path, sample(), page_size=size, encoding=encoding)
                self.check_sample(path)

    def test_same_ids_in_two_processes(self):
        """E-03: two processes on two GPUs, each with correlation ids 1, 2, ... and the same stream."""
        n = 50
        rows = {"StringIds": strings("k", "cudaLaunchKernel_v7000"),
                "TARGET_INFO_CUDA_DEVICE": [{"gpuId": g, "cudaId": 0, "pid": 20 + g} for g in (0, 1)],
                "CUPTI_ACTIVITY_KIND_RUNTIME": [], "CUPTI_ACTIVITY_KIND_KERNEL": [], "NVTX_EVENTS": []}
        for p in 20, 21:
            for i in range(n):
                t = 100 * i + (p - 20) * 7
                rows["NVTX_EVENTS"].append(nvtx(t, t + 60, f"p{p}", p, p))
                rows["CUPTI_ACTIVITY_KIND_RUNTIME"].append(call(t + 5, t + 8, i + 1, p, p))
                rows["CUPTI_ACTIVITY_KIND_KERNEL"].append(kernel(t + 50, t + 70, i + 1, p))
        make(self.path, rows)
        got = sql(self.path, "SELECT l.pid, l.device, t.pid, count(*) FROM gpu_op g JOIN launch l ON l.rowid = g.launch JOIN span s ON s.rowid = g.call "
                             "JOIN track t ON t.rowid = s.track WHERE g.start_ns = s.start_ns + 45 GROUP BY 1, 2, 3 ORDER BY 1")
        self.assertEqual(got, [(20, 0, 20, n), (21, 1, 21, n)])

    def test_same_stream_in_two_processes(self):
        """Without a table that tells the GPUs apart: one device, two streams of number 7."""
        make(self.path, {"StringIds": strings("k", "c"), "CUPTI_ACTIVITY_KIND_RUNTIME": [call(1, 2, 1, p, p) for p in (20, 21)],
                         "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(10, 30, 1, 20), kernel(20, 40, 1, 21)]})
        self.assertEqual(sql(self.path, "SELECT t.tid, t.tid_text, g.start_ns FROM gpu_op g JOIN track t ON t.rowid = g.track ORDER BY 3"),
                         [(7, "7", 10), (7, "7 of process 21", 20)])

    def test_newest_table(self):
        rows = {"StringIds": strings("old", "c", "new")}
        for suffix, name in ("", 1), ("_V2", 1), ("_V3", 3):
            rows["CUPTI_ACTIVITY_KIND_KERNEL" + suffix] = [kernel(10, 30, 1, 20, name)]
        rows["NVTX_EVENTS_V2"] = [nvtx(1, 2, "r", 20, 20)]
        make(self.path, rows)
        self.assertEqual(sql(self.path, "SELECT name FROM gpu_op"), [("new",)])
        self.assertEqual(sql(self.path, "SELECT name FROM span"), [("r",)])

    def test_names_that_come_late(self):
        """A domain and a category are named behind the ranges that use them."""
        make(self.path, {"StringIds": strings("x"), "NVTX_EVENTS": [
            nvtx(10, 20, "a", 1, 1, domainId=3, category=4), nvtx(30, None, "mine", 1, 1, nsys_db.DOMAIN, domainId=3),
            nvtx(31, None, "fast", 1, 1, nsys_db.CATEGORY, domainId=3, category=4), nvtx(40, 50, "b", 1, 1, domainId=9)]})
        self.assertEqual(sql(self.path, "SELECT name, cat FROM span ORDER BY start_ns"), [("a", "mine"), ("b", "domain 9")])
        self.assertEqual(self.args("a"), [("Category", "fast")])

    def test_thread_named_first(self):
        """The name of a thread is the first that is heard of it: of many threads, so that the table of tracks grows meanwhile."""
        make(self.path, {"StringIds": strings("x"), "NVTX_EVENTS": [nvtx(t, None, f"rank {t}", 1, t, 39) for t in range(1, 300)]})
        self.assertEqual(sql(self.path, "SELECT count(*), count(DISTINCT thread_name) FROM track WHERE thread_name LIKE 'rank %'"), [(299, 299)])

    def test_wrong_values(self):
        """Wrong types, no times, negative durations, missing strings and ids beyond 32 bits: the row is kept where it can be."""
        big = (1 << 40) + 5
        make(self.path, {"StringIds": strings("k", "c"),
                         "CUPTI_ACTIVITY_KIND_RUNTIME": [call(1, 2, big, 20, 20), call(3, 1, 2, 20, 20), call("x", 9, 3, 20, 20), call(4, 5, 4, 20, 20, 999),
                                                         call(6, 7, 5.5, 20, 20), {**call(8, 9, 6, 20, 20), "globalTid": None}],
                         "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(10, 30, big, 20, gridX="many"), kernel(None, 30, 2, 20), kernel((1 << 63) - 1, 5, 2, 20)]})
        self.assertEqual(sql(self.path, "SELECT name, start_ns, dur_ns, link_id FROM span ORDER BY 2"),
                         [("c", 1, 1, big), ("c", 3, 0, 2), ("?", 4, 1, 4), ("c", 6, 1, None), ("c", 8, 1, 6)])
        self.assertEqual(sql(self.path, "SELECT start_ns, call IS NOT NULL FROM gpu_op"), [(10, 1)])
        found = self.problems()
        self.assertEqual({k: v["count"] for k, v in found.items() if v["level"] != "note"},
                         {"bad-time": 3, "negative-duration": 1, "missing-string": 1, "wrong-type": 2, "no-thread": 1})

    def test_farthest_times(self):
        """2^62 ns is no time: a row with it is lost. The last time is a nanosecond before, and what is imported of it can be opened again."""
        far, kept = 1 << 62, os.path.join(self.folder.name, "far.opscope")
        make(self.path, {"StringIds": strings("k"), "NVTX_EVENTS": [nvtx(-far, far, "eternal", 1, 1), nvtx(far, far, "late", 1, 1), nvtx(far - 10, far - 1, "last", 1, 1)]})
        self.assertEqual(sql(self.path, "SELECT name, dur_ns FROM span"), [("last", 9)])
        found = self.problems()
        self.assertNotIn("negative-duration", found)
        self.assertEqual(found["bad-time"]["count"], 2)
        self.assertIn("NVTX_EVENTS, row 1: start or end is no time", found["bad-time"]["message"])
        oracle.run("import", self.path, "-o", kept)
        self.assertEqual(sql(kept, "SELECT name, dur_ns FROM span"), [("last", 9)])

    def test_sizes_that_cannot_be(self):
        """Bytes whose sum is beyond 64 bits are unknown, with a note; those below 0 are not stated, with a diagnostic."""
        copies = [{**kernel(10 * i, 10 * i + 5, i + 1, 1), "bytes": n, "copyKind": kind, "srcKind": 0, "dstKind": 2}
                  for i, (kind, n) in enumerate([(1, 1 << 62), (1, 1 << 62), (1, 7), (2, 100), (2, -5), (2, -(1 << 62))])]
        make(self.path, {"StringIds": strings("k"), "CUPTI_ACTIVITY_KIND_MEMCPY": copies})
        table = oracle.report("memcpy", self.path)
        got = {r["direction"]: [r[c] for c in ("calls", "bytes", "gb_per_s", "mean_bytes", "min_bytes", "max_bytes")] for r in table.rows}
        self.assertEqual(got, {"HtoD": [3, None, None, None, 7, 1 << 62], "DtoH": [3, 100, 20, 100, 100, 100]})
        self.assertTrue(any(n.startswith("bytes of 1 row are not known") for n in table.notes), table.notes)
        self.assertEqual(self.problems()["negative-size"]["count"], 2)

    def test_text_that_is_not_utf8(self):
        make(self.path, {**sample(), "TARGET_INFO_SYSTEM_ENV": []},
             extra=["INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES(1, 'x', 'Host', 1, CAST(x'66ff00fe67' AS TEXT))",
                    "INSERT INTO NVTX_EVENTS(start, \"end\", eventType, text, globalTid) VALUES(600, 700, 59, CAST(x'61ff62' AS TEXT), 9)"])
        code, out, err = oracle.run("report", "trace", self.path, "--format=json")
        self.assertEqual(code, 0, err)
        out.decode("utf-8")
        self.assertEqual(sql(self.path, "SELECT count(*) FROM span WHERE start_ns = 600"), [(1,)])

    def test_wal_left_behind(self):
        """The rows are in the WAL only; nothing is written beside the file, and it does not change."""
        open_db = make(self.path, sample(), journal="WAL")
        copy = os.path.join(self.folder.name, "copy")
        os.mkdir(copy)
        for suffix in "", "-wal":
            shutil.copy(self.path + suffix, os.path.join(copy, "r.sqlite" + suffix))
        open_db.close()
        path = os.path.join(copy, "r.sqlite")
        before = {n: open(os.path.join(copy, n), "rb").read() for n in sorted(os.listdir(copy))}
        self.assertGreater(len(before["r.sqlite-wal"]), 4096)
        self.check_sample(path)
        self.assertEqual({n: open(os.path.join(copy, n), "rb").read() for n in sorted(os.listdir(copy))}, before)

    def test_being_written(self):
        """Another program holds an exclusive lock on it."""
        make(self.path, sample())
        db = sqlite3.connect(self.path, isolation_level=None)
        db.execute("BEGIN EXCLUSIVE")
        self.check_sample()
        db.execute("ROLLBACK")
        db.close()

    def test_hot_journal(self):
        make(self.path, sample())
        with open(self.path + "-journal", "wb") as f:
            f.write(bytes.fromhex("d9d505f920a163d7") + bytes(600))
        self.check_sample()
        self.assertIn("newest rows may be missing", self.problems()["unfinished-database"]["message"])

    def test_read_only_folder(self):
        make(self.path, sample(), journal="WAL").close()
        os.chmod(self.path, stat.S_IRUSR)
        os.chmod(self.folder.name, stat.S_IRUSR | stat.S_IXUSR)
        self.addCleanup(os.chmod, self.folder.name, 0o700)
        self.check_sample()

    def test_odd_names(self):
        """Nothing in a file's name is taken for part of an address."""
        path = os.path.join(self.folder.name, "100%41 of a?b#c&mode=rw.sqlite")
        make(self.path, sample())
        os.rename(self.path, path)
        self.check_sample(path)

    def big(self):
        rows = sample()
        rows["CUPTI_ACTIVITY_KIND_KERNEL"] = [kernel(1000 + 10 * i, 1005 + 10 * i, 100 + i, 10) for i in range(4000)]
        make(self.path, rows)
        db = connect(self.path)
        root = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'CUPTI_ACTIVITY_KIND_KERNEL'").fetchone()[0]
        with open(self.path, "rb") as f:
            return bytearray(f.read()), root

    def test_cut_off(self):
        """A file that ends early: what is left is read, the rest is named."""
        content, _ = self.big()
        for part in 0.95, 0.6, 0.3:
            with self.subTest(part=part):
                path = os.path.join(self.folder.name, f"cut{part}.sqlite")
                with open(path, "wb") as f:
                    f.write(content[:int(len(content) * part)])
                code, out, err = oracle.run("info", path, "--format=json")
                if code:
                    self.assertRegex(err.decode(), r"opscope: .*cut.*sqlite: ")
                else:
                    self.assertIn("damaged-table", self.problems(path))

    def test_corrupt_page(self):
        """Rows before a page that was overwritten are kept."""
        content, root = self.big()
        db = connect(self.path)
        pages = sorted(r[0] for r in db.execute("SELECT pageno FROM dbstat WHERE name = 'CUPTI_ACTIVITY_KIND_KERNEL' AND pagetype = 'leaf'")) \
            if self.has_dbstat(db) else list(range(root + 20, root + 30))
        middle = pages[len(pages) // 2]
        content[(middle - 1) * 4096:middle * 4096] = b"\xa5" * 4096
        path = os.path.join(self.folder.name, "corrupt.sqlite")
        with open(path, "wb") as f:
            f.write(content)
        n, = sql(path, "SELECT count(*) FROM gpu_op WHERE start_ns >= 1000")[0]
        self.assertTrue(500 < n < 4000, n)
        self.assertEqual(self.problems(path)["damaged-table"]["level"], "lost")

    def test_page_that_comes_twice(self):
        """All children of the root are the first, or the right-most is the root itself: no row comes twice, and the loss is told."""
        make(self.path, {"StringIds": strings("k"), "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(10 * i, 10 * i + 5, i + 1, 1) for i in range(2000)]}, 512)
        db = connect(self.path)
        root, = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'CUPTI_ACTIVITY_KIND_KERNEL'").fetchone()
        db.close()
        with open(self.path, "rb") as f:
            sound = f.read()
        at = (root - 1) * 512
        self.assertEqual(sound[at], 5)
        cells = struct.unpack(">%dH" % struct.unpack_from(">H", sound, at + 3), sound[at + 12:at + 12 + 2 * struct.unpack_from(">H", sound, at + 3)[0]])
        same, itself = bytearray(sound), bytearray(sound)
        for cell in cells:
            same[at + cell:at + cell + 4] = sound[at + cells[0]:at + cells[0] + 4]
        struct.pack_into(">I", itself, at + 8, root)
        for content in (same, itself):
            path = os.path.join(self.folder.name, "twice.sqlite")
            with open(path, "wb") as f:
                f.write(content)
            n, distinct = sql(path, "SELECT count(*), count(DISTINCT start_ns) FROM gpu_op")[0]
            self.assertTrue(0 < n == distinct < 2000, (n, distinct))
            self.assertIn("rows from there on", self.problems(path)["damaged-table"]["message"])

    @staticmethod
    def has_dbstat(db):
        try:
            db.execute("SELECT count(*) FROM dbstat").fetchone()
            return True
        except sqlite3.OperationalError:
            return False

    def test_other_programs(self):
        """A database of another program is not claimed; one named as a table but a view is not run."""
        db = sqlite3.connect(self.path)
        db.execute("CREATE TABLE bookmarks (id INTEGER PRIMARY KEY, url TEXT)")
        db.commit()
        code, out, err = oracle.run("info", self.path)
        self.assertEqual((code, out), (1, b""))
        self.assertIn("not recognised by its content", err.decode())
        db.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        db.execute("CREATE TABLE ThreadNames (nameId INTEGER, globalTid INTEGER)")
        db.execute("CREATE VIEW NVTX_EVENTS AS WITH RECURSIVE t(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM t) SELECT * FROM t")
        db.commit()
        db.close()
        code, out, err = oracle.run("info", self.path)
        self.assertEqual((code, out), (1, b""))
        self.assertIn("no event could be read: views are not read", err.decode())

    def test_hostile_row_ids(self):
        """Row ids near 2^63 reserve no memory."""
        rows = sample()
        make(self.path, rows, extra=["UPDATE NVTX_EVENTS SET rowid = 9223372036854775807 WHERE text = 'here'",
                                     "UPDATE StringIds SET id = 9223372036854775806 WHERE id = 3", "UPDATE OSRT_API SET nameId = 9223372036854775806",
                                     "UPDATE PROFILER_OVERHEAD SET nameId = 9223372036854775806"])
        self.check_sample()

    def test_report_files(self):
        """.nsys-rep: what to run; with an nsys on the PATH it is run."""
        report = os.path.join(self.folder.name, "a b.nsys-rep")
        with open(report, "wb") as f:
            f.write(b"\x01\x02not a database")
        env = {**os.environ, "PATH": "/nowhere"}
        done = subprocess.run([oracle.OPSCOPE, "info", report], capture_output=True, env=env)
        self.assertEqual(done.returncode, 1)
        self.assertIn("nsys export --type sqlite " + report, done.stderr.decode())
        make(self.path, sample())
        tools = os.path.join(self.folder.name, "tools")
        os.mkdir(tools)
        with open(os.path.join(tools, "nsys"), "w") as f:
            f.write('#!/bin/sh\nwhile [ $# -gt 1 ]; do [ "$1" = --output ] && out=$2; shift; done\n'
                    f'[ "$1" = "$WANTED" ] || exit 3\ncp "{self.path}" "$out"\n')
        os.chmod(os.path.join(tools, "nsys"), 0o755)
        env = {**os.environ, "PATH": tools + ":" + os.environ["PATH"], "TMPDIR": self.folder.name, "WANTED": report}
        done = subprocess.run([oracle.OPSCOPE, "report", "kernels", report, "--format=csv"], capture_output=True, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"void k<float>(float*)", done.stdout)
        self.assertFalse([n for n in os.listdir(self.folder.name) if n.startswith("opscope-nsys")])
        dashed = os.path.join(self.folder.name, "-v.nsys-rep")
        os.rename(report, dashed)
        env["WANTED"] = "./-v.nsys-rep"
        done = subprocess.run([oracle.OPSCOPE, "info", "--", "-v.nsys-rep"], capture_output=True, env=env, cwd=self.folder.name)
        self.assertEqual(done.returncode, 0, done.stderr)
        os.rename(dashed, report)
        env["WANTED"] = "something else"
        done = subprocess.run([oracle.OPSCOPE, "info", report], capture_output=True, env=env)
        self.assertEqual(done.returncode, 1)
        self.assertIn("failed with status 3", done.stderr.decode())
        self.interrupted(report, env, tools)

    def interrupted(self, report, env, tools):
        """Signals end the export and leave nothing behind."""
        started = os.path.join(self.folder.name, "started")
        with open(os.path.join(tools, "nsys"), "w") as f:
            f.write(f'#!/bin/sh\nwhile [ $# -gt 1 ]; do [ "$1" = --output ] && out=$2; shift; done\n: > "$out"\n: > "$out-journal"\n'
                    f': > "{started}"\nexec sleep 60\n')
        for sig in signal.SIGINT, signal.SIGTERM:
            with subprocess.Popen([oracle.OPSCOPE, "info", report], env=env, stderr=subprocess.DEVNULL) as p:
                end = time.monotonic() + 20
                while not os.path.exists(started) and time.monotonic() < end:
                    time.sleep(0.02)
                p.send_signal(sig)
                self.assertEqual(p.wait(20), -sig)
            os.unlink(started)
            self.assertFalse([n for n in os.listdir(self.folder.name) if n.startswith("opscope-nsys")])


oracle.main()
