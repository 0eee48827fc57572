"""nvprof databases: every row of every table is read and says what plain SQL says, for real files and for made ones of versions 8 to
18; damaged databases, and files that are none, are read as far as they go, or refused with a reason."""
import collections
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

import nvprof_db
import oracle
from nvprof_db import END, START, STRINGS, T0, call, kernel, make, mark, sample
from oracle import Case, data_glob, info

CUPTI = "CUPTI_ACTIVITY_KIND_"
# Table -> category and phase of its rows.
FILED = {"CONCURRENT_KERNEL": ("kernel", "X"), "KERNEL": ("kernel", "X"), "CDP_KERNEL": ("kernel", "X"), "GRAPH_TRACE": ("kernel", "X"),
         "MEMCPY": ("gpu_memcpy", "X"), "MEMCPY2": ("gpu_memcpy", "X"), "MEMSET": ("gpu_memset", "X"), "SYNCHRONIZATION": ("cuda_sync", "X"),
         "RUNTIME": ("cuda_runtime", "X"), "DRIVER": ("cuda_driver", "X"), "OVERHEAD": ("overhead", "X"), "OPENACC_DATA": ("openacc", "X"),
         "OPENACC_LAUNCH": ("openacc", "X"), "OPENACC_OTHER": ("openacc", "X"), "OPENMP": ("openmp", "X")}
GPU = ("CONCURRENT_KERNEL", "KERNEL", "CDP_KERNEL", "GRAPH_TRACE", "MEMCPY", "MEMCPY2", "MEMSET")
HOST = ("RUNTIME", "DRIVER", "OVERHEAD", "SYNCHRONIZATION", "OPENACC_DATA", "OPENACC_LAUNCH", "OPENACC_OTHER", "OPENMP")


def files():
    found = data_glob("nvprof/*.nvvp") + data_glob("pyprof/lm_nvprof/*.sql")
    if not found:
        raise unittest.SkipTest("no nvprof (real traces are not part of the repository)")
    return found


def connect(path):
    return sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)


def sql(path, query):
    code, out, err = oracle.run("sql", path, query, "--format=json", "--limit=0")
    if code:
        raise AssertionError(err.decode(errors="replace"))
    return [tuple(r) for r in oracle.json.loads(out)["rows"]]


def problems(path):
    return {r["kind"]: r for r in info(path).section("problems").rows}


class Source:
    """What plain SQL says of a database; tables and columns that are not there count 0."""

    def __init__(self, path):
        self.db = connect(path)
        self.tables = [r[0] for r in self.db.execute("SELECT name FROM sqlite_master WHERE type='table' AND name NOT LIKE 'sqlite_%'")]

    def one(self, table, what="count(*)", where="1"):
        if CUPTI + table not in self.tables:
            return 0
        return self.db.execute(f"SELECT {what} FROM {CUPTI}{table} WHERE {where}").fetchone()[0] or 0

    def all(self, table, what):
        return self.db.execute(f"SELECT {what} FROM {CUPTI}{table}").fetchall() if CUPTI + table in self.tables else []

    def ranges(self):
        """(thread, name, start, end) of every range that has both; the latest start under an id before its end."""
        return self.db.execute(
            f"SELECT hex(a.objectId), s.value, a.timestamp, b.timestamp FROM {CUPTI}MARKER a JOIN {CUPTI}MARKER b ON b.id = a.id JOIN StringTable s "
            "ON s._id_ = a.name WHERE a.flags & 2 AND b.flags & 4").fetchall()


class Rows(Case):
    """The same of every file, real or made."""

    def check_counts(self, path):
        s, want = Source(path), collections.Counter()
        for table in s.tables:
            rows = s.db.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0]
            short = table.removeprefix(CUPTI)
            if short in FILED:
                want[FILED[short]] += rows
            elif short not in ("MARKER", "StringTable"):
                want[table, "M" if short in ("Version", "DEVICE", "CONTEXT", "STREAM", "NAME", "CUDA_EVENT") else "-"] += rows
        seen = collections.Counter()
        for r in info(path).section("events").rows:
            seen[r["category"], r["phase"]] += r["events"]
        marks = {p: sum(n for (c, q), n in seen.items() if q == p) for p in "BEi"}
        self.assertEqual(marks, {"B": s.one("MARKER", where="flags & 2"), "E": s.one("MARKER", where="flags & 4 AND NOT flags & 2"),
                                 "i": s.one("MARKER", where="not flags & 6")})
        self.assertEqual({k: n for k, n in seen.items() if k[1] not in "BEi"}, {k: n for k, n in want.items() if n})

    def check_sums(self, path):
        s, ns = Source(path), 'sum("end" - start)'
        self.assertEqual(sql(path, "SELECT count(*), coalesce(sum(dur_ns), 0) FROM gpu_op"),
                         [(sum(s.one(t) for t in GPU), sum(s.one(t, ns) for t in GPU))])
        self.assertEqual(sql(path, "SELECT count(*), coalesce(sum(dur_ns), 0) FROM span WHERE cat IN ('cuda_runtime', 'cuda_driver', 'overhead',"
                                   " 'cuda_sync', 'openacc', 'openmp')"), [(sum(s.one(t) for t in HOST), sum(s.one(t, ns) for t in HOST))])

    def check_kernels(self, path):
        s, want = Source(path), collections.Counter()
        names = dict(s.db.execute("SELECT _id_, value FROM StringTable"))
        readable = self.readable(names.values())
        for t in "CONCURRENT_KERNEL", "KERNEL", "CDP_KERNEL":
            for name, *row in s.all(t, 'name, start, "end" - start, deviceId, streamId, contextId, correlationId, gridX, gridY, gridZ, blockX, blockY,'
                                       " blockZ, registersPerThread, staticSharedMemory + dynamicSharedMemory"):
                want[(readable[names[name]], *row)] += 1
        got = sql(path, "SELECT g.name, g.start_ns, g.dur_ns, l.device, l.stream, l.context, g.corr_id, l.grid_x, l.grid_y, l.grid_z, l.block_x,"
                        " l.block_y, l.block_z, l.registers, l.shared_bytes FROM gpu_op g JOIN launch l ON l.rowid = g.launch WHERE g.kind = 'kernel'"
                        " AND g.name NOT LIKE 'CUDA graph%'")
        self.assertEqual(collections.Counter(got), want)

    def readable(self, names):
        """By c++filt."""
        names = list(names)
        if not shutil.which("c++filt"):
            raise unittest.SkipTest("no c++filt")
        text = "\n".join(n if n.startswith("_Z") else "" for n in names)
        out = subprocess.run(["c++filt"], input=text, capture_output=True, text=True, check=True).stdout.split("\n")
        return {n: r or n for n, r in zip(names, out)}

    def check_calls(self, path):
        s, want = Source(path), collections.Counter()
        for table, cat in ("RUNTIME", "cuda_runtime"), ("DRIVER", "cuda_driver"):
            for start, dur, pid, tid, corr in s.all(table, 'start, "end" - start, processId, threadId, correlationId'):
                want[cat, start, dur, pid, tid & 0xFFFFFFFF, corr] += 1
        got = sql(path, "SELECT s.cat, s.start_ns, s.dur_ns, t.pid, t.tid, s.link_id FROM span s JOIN track t ON t.rowid = s.track WHERE s.kind = 'call'")
        self.assertEqual(collections.Counter(got), want)

    def check_correlation(self, path):
        """Device work goes to the call with its correlation id; ids are those of one process."""
        s = Source(path)
        calls = {c for t in ("RUNTIME", "DRIVER") for c, in s.all(t, "correlationId")}
        work = [c for t in GPU for c, in s.all(t, "correlationId")]
        got = sql(path, "SELECT g.corr_id, s.link_id FROM gpu_op g LEFT JOIN span s ON s.rowid = g.call")
        self.assertEqual(collections.Counter(got), collections.Counter((c, c if c in calls else None) for c in work))

    def check_ranges(self, path):
        """Every range by thread and time; its name is a part of its text, or made of it."""
        s, want = Source(path), collections.Counter()
        for thread, _, a, b in s.ranges():
            key = bytes.fromhex(thread)
            want[int.from_bytes(key[:4], "little"), int.from_bytes(key[4:8], "little"), a, b - a] += 1
        got = sql(path, "SELECT t.pid, t.tid, s.start_ns, s.dur_ns FROM span s JOIN track t ON t.rowid = s.track WHERE s.kind IN ('op', 'user', 'marker')"
                        " AND s.cat <> 'openacc'")
        self.assertEqual(collections.Counter(got), want)


class RealFiles(Rows):
    def each(self, check):
        for path in files():
            with self.subTest(file=os.path.basename(path)):
                check(path)

    def test_counts(self):
        self.each(self.check_counts)

    def test_sums(self):
        self.each(self.check_sums)

    def test_kernels(self):
        self.each(self.check_kernels)

    def test_calls(self):
        self.each(self.check_calls)

    def test_correlation(self):
        self.each(self.check_correlation)

    def test_ranges(self):
        self.each(self.check_ranges)

    def test_names_of_calls(self):
        """What is known from the documentation of CUPTI, and that a launch is called one."""
        known = {("RUNTIME", 211): "cudaLaunchKernel", ("RUNTIME", 16): "cudaSetDevice", ("RUNTIME", 17): "cudaGetDevice", ("RUNTIME", 20): "cudaMalloc",
                 ("RUNTIME", 22): "cudaFree", ("RUNTIME", 41): "cudaMemcpyAsync", ("RUNTIME", 131): "cudaStreamSynchronize"}
        seen = 0
        for path in files():
            s = Source(path)
            names = dict(sql(path, "SELECT link_id, name FROM span WHERE kind = 'call'"))
            for (table, cbid), name in known.items():
                for corr, in s.db.execute(f"SELECT correlationId FROM {CUPTI}{table} WHERE cbid = {cbid}"):
                    self.assertEqual(names[corr], name)
                    seen += 1
            unknown = [n for n in names.values() if not re.match(r"cu(da)?[A-Z]", n)]
            self.assertEqual(unknown, [])
            launches = {names[c] for c, in s.db.execute(f"SELECT correlationId FROM {CUPTI}CONCURRENT_KERNEL") if c in names}
            self.assertLessEqual(launches, {"cudaLaunchKernel", "cudaLaunch", "cuLaunchKernel", "cudaLaunchCooperativeKernelMultiDevice",
                                            "cudaLaunchCooperativeKernel", "cudaLaunchKernelExC"})
        self.assertGreater(seen, 1000)

    def test_devices(self):
        for path in files():
            s = Source(path)
            want = s.db.execute(f"SELECT id, value, globalMemorySize, numMultiprocessors, computeCapabilityMajor FROM {CUPTI}DEVICE JOIN StringTable st "
                                "ON st._id_ = name").fetchall()
            self.assertEqual(sorted(sql(path, "SELECT id, name, memory_bytes, sm_count, cc_major FROM device")), sorted(want))
            process, = s.db.execute(f"SELECT value FROM {CUPTI}NAME JOIN StringTable st ON st._id_ = name WHERE objectKind = 1").fetchone()
            self.assertLessEqual({r[0] for r in sql(path, "SELECT DISTINCT process_name FROM track WHERE process_labels = 'CPU'")}, {process})

    def test_synchronisation(self):
        """A wait is filed under the device whose stream it waits for."""
        for path in files():
            streams = dict(Source(path).all("STREAM", "streamId, contextId"))
            device = dict(Source(path).all("CONTEXT", "contextId, deviceId"))
            for stream, ordinal in sql(path, "SELECT t.tid, t.pid FROM span s JOIN track t ON t.rowid = s.track WHERE s.kind = 'sync'"):
                if stream in streams:
                    self.assertEqual(ordinal, device[streams[stream]])


class MadeCase(Rows):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(folder.name, "a.nvvp")

    def make(self, rows, version=18, strings=STRINGS, **more):
        if os.path.exists(self.path):
            os.unlink(self.path)
        make(self.path, version, rows, strings, **more)


class Made(MadeCase):
    def test_versions(self):
        for version in nvprof_db.VERSIONS:
            with self.subTest(version=version):
                rows = sample()
                rows["MARKER"] = [m for m in rows["MARKER"] if m["id"] not in (5, 77)]  # those without an end or a start
                self.make(rows, version)
                self.check_counts(self.path)
                self.check_sums(self.path)
                self.check_kernels(self.path)
                self.check_calls(self.path)
                self.check_correlation(self.path)
                self.check_ranges(self.path)
                self.assertIn((str(version),), sql(self.path, "SELECT value FROM meta WHERE key = 'nvprof database version'"))
                self.assertNotIn("unknown-version", problems(self.path))

    def test_unknown_version(self):
        for version in 7, 19, -1:
            self.make(sample(), version if version < 8 else 18, extra=[f"UPDATE Version SET version = {version}"])
            self.check_counts(self.path)
            self.assertIn("unknown-version", problems(self.path))

    def test_host_rows(self):
        self.make(sample())
        got = sql(self.path, f"SELECT s.kind, s.cat, s.name, s.start_ns - {T0}, s.dur_ns, t.tid_text, s.link_id FROM span s JOIN track t ON t.rowid = s.track")
        main = "3590305536"
        for row in [
            ("overhead", "overhead", "Driver Compiler", 61, 1, "5", None), ("overhead", "overhead", "Buffer Flush", 63, 1, "7", None),
            ("overhead", "overhead", "Instrumentation", 50, 10, "process", None),
            ("sync", "cuda_sync", "Stream Sync", 400, 10, "7", 7), ("sync", "cuda_sync", "Context Sync", 411, 1, "-1", 8),
            ("op", "nvtx", "aten::mm", 100, 100, main, 7), ("op", "NCCL", "ncclAllReduce", 141, 8, main, None),
            ("user", "nvtx", "epoch", 101, 39, main, None), ("user", "nvtx", "epoch", 100, 400, "5", None),
            ("user", "nvtx", "epoch", 170, 330, main, None),   # without an end
            ("user", "nvtx", "copies", 180, 10, main, None),   # its end stands before its start
            ("call", "cuda_runtime", "cudaLaunch", 120, 5, main, 2), ("call", "cuda_driver", "cuLaunchKernel", 126, 1, "5", 9),
            ("call", "cuda_runtime", "cbid 100000", 413, 1, main, 8), ("call", "cuda_runtime", "cudaGraphLaunch", 160, 5, main, 6),
            ("op", "openacc", "acc_compute_construct@loop.c:12", 420, 60, main, None),
            ("op", "openacc", "acc_enqueue_upload@loop.c:12", 421, 9, main, None), ("op", "openacc", "acc_enqueue_launch", 431, 9, main, None),
            ("other", "openmp", "omp_parallel", 481, 9, main, None),
        ]:
            self.assertIn(row, got)
        found = problems(self.path)
        self.assertEqual({k: (found[k]["level"], found[k]["count"]) for k in
                          ("range-without-start", "range-without-end", "unknown-call", "mangled-name", "not-read", "whole-graphs")},
                         {"range-without-start": ("lost", 1), "range-without-end": ("repaired", 1), "unknown-call": ("note", 1),
                          "mangled-name": ("note", 1), "not-read": ("note", 6), "whole-graphs": ("note", 1)})
        self.assertEqual(sql(self.path, f"SELECT name, time_ns - {T0}, cat FROM mark"), [("here", 105, "nvtx")])
        args = dict(sql(self.path, "SELECT s.name || ' ' || a.key, a.value FROM span s JOIN arg_set x ON x.rowid = s.args JOIN arg a ON a.rowid >= "
                                   "x.first AND a.rowid < (SELECT min(first) FROM (SELECT first FROM arg_set WHERE first > x.first UNION SELECT count(*) "
                                   "FROM arg)) WHERE s.args > 0"))
        self.assertEqual(args, {"aten::mm Input Dims": "[[2, 3], [3, 4]]", "cbid 100000 returnValue": "600",
                                "acc_compute_construct@loop.c:12 Function": "main", "acc_enqueue_upload@loop.c:12 Function": "main",
                                "acc_enqueue_upload@loop.c:12 Variable": "x", "acc_enqueue_upload@loop.c:12 bytes": "64",
                                "acc_enqueue_launch Kernel": "sgemm_128x64"})
        self.assertEqual(sorted(set(sql(self.path, "SELECT tid_text, process_name, thread_name FROM track"))),
                         [("-1", "", "no stream"), (main, "python train.py", ""), ("5", "python train.py", "worker"), ("7", "", "copies"),
                          ("process", "python train.py", "")])

    def test_device_rows(self):
        self.make(sample())
        got = sql(self.path, f"SELECT g.name, g.kind, g.cat, g.start_ns - {T0}, g.dur_ns, l.device, l.stream, l.bytes, l.graph_id, l.graph_node_id, "
                             "l.blocks_per_sm, l.warps_per_sm FROM gpu_op g JOIN launch l ON l.rowid = g.launch")
        for row in [
            ("void add<float>(float*, int)", "kernel", "kernel", 150, 40, 0, 7, None, 6, 5, 2.0, 16.0),
            ("sgemm_128x64", "kernel", "kernel", 200, 60, 0, 7, None, 6, 5, 2.0, 16.0), ("_Z", "kernel", "kernel", 262, 8, 0, 7, None, 6, 5, 2.0, 16.0),
            ("CUDA graph 3", "kernel", "kernel", 340, 50, 0, 7, None, 3, None, None, None),
            ("Memcpy HtoD (Pinned -> Device)", "memcpy", "gpu_memcpy", 300, 20, 0, 7, 4096, None, None, None, None),
            ("Memcpy PtoP (Device -> Device)", "memcpy", "gpu_memcpy", 321, 8, 0, 7, 4096, None, None, None, None),
            ("Memset (Device)", "memset", "gpu_memset", 330, 1, 0, 7, 4096, None, None, None, None),
        ]:
            self.assertIn(row, got)
        self.assertEqual(sql(self.path, "SELECT DISTINCT pid, tid, process_labels FROM track JOIN gpu_op g ON g.track = track.rowid"), [(0, 7, "GPU 0")])

    def test_attribution(self):
        """Through runtime and driver calls to the ranges around them; a call counts by its own thread."""
        self.make(sample())
        got = sql(self.path, f"SELECT g.start_ns - {T0}, c.name, o.name FROM gpu_op g LEFT JOIN span c ON c.rowid = g.call LEFT JOIN span o ON o.rowid = g.op")
        for row in [(150, "cudaLaunchKernel", "aten::mm"), (200, "cudaLaunch", "aten::mm"), (262, "cuLaunchKernel", None), (155, None, None),
                    (321, "cudaMemcpyAsync", "aten::mm"), (340, "cudaGraphLaunch", "aten::mm")]:
            self.assertIn(row, got)

    def test_process_of_the_work(self):
        """Rows of device work name no process: it is that of the calls, where all are of one."""
        kernels, pids = {"CONCURRENT_KERNEL": [kernel(50, 60, 1), kernel(70, 80, 2)]}, "SELECT DISTINCT l.pid FROM gpu_op g JOIN launch l ON l.rowid = g.launch"
        for calls, want in (([], None), ([call(1, 2, 1, 211), call(3, 4, 2, 211, tid=5)], 10), ([call(1, 2, 1, 211), call(3, 4, 2, 211, pid=11)], None)):
            self.make({**kernels, "RUNTIME": calls}, strings=("k",))
            self.assertEqual(sql(self.path, pids), [(want,)])
            self.check_correlation(self.path)

    def test_same_times(self):
        """Ranges of the same start and end nest in the order in which they were opened."""
        rows = {"MARKER": [mark(10, 1, START, 1), mark(10, 2, START, 2), mark(10, 3, START, 3), mark(90, 3, END), mark(90, 2, END), mark(90, 1, END)],
                "RUNTIME": [call(10, 90, 1, 211)], "CONCURRENT_KERNEL": [kernel(50, 60, 1)]}
        self.make(rows, strings=("outer", "middle", "inner"))
        self.assertEqual(sql(self.path, "SELECT s.name, p.name FROM span s LEFT JOIN span p ON p.rowid = s.parent"),
                         [("outer", None), ("middle", "outer"), ("inner", "middle"), ("cudaLaunchKernel", "inner")])

    def test_repeated_ids(self):
        """An id used again after its range has ended is a new range; before, the older one has no end of its own."""
        self.make({"MARKER": [mark(1, 1, START, 1), mark(3, 1, END), mark(5, 1, START, 2), mark(9, 1, END), mark(10, 2, START, 1), mark(12, 2, START, 3),
                              mark(15, 2, END)]}, strings=("a", "b", "c"))
        self.assertEqual(sql(self.path, f"SELECT name, start_ns - {T0}, dur_ns FROM span"), [("a", 1, 2), ("b", 5, 4), ("a", 10, 0), ("c", 12, 3)])
        self.assertEqual(problems(self.path)["repeated-range-id"]["count"], 1)

    def test_without_times(self):
        """Rows without a time are counted and left out: they would be 50 years before all others."""
        self.make({"CONCURRENT_KERNEL": [kernel(-T0, -T0, 1), kernel(5, 9, 2), kernel(9, 5, 3)], "RUNTIME": [call(1, 2, 2, 211)],
                   "MARKER": [mark(2 ** 63 - 1 - T0, 1, START, 1)]})
        self.check_counts(self.path)
        self.assertEqual(sql(self.path, f"SELECT start_ns - {T0}, dur_ns FROM gpu_op"), [(5, 4), (9, 0)])
        found = problems(self.path)
        self.assertEqual([(found[k]["level"], found[k]["count"]) for k in ("no-time", "bad-time", "negative-duration")],
                         [("lost", 1), ("lost", 1), ("repaired", 1)])

    def test_far_times(self):
        """Times of which the distance is no int64 are none."""
        far = 2 ** 62
        self.make({"CONCURRENT_KERNEL": [kernel(-far - T0, far - T0, 1), kernel(5, 9, 2)],
                   "MARKER": [mark(-far - T0, 1, START, 1), mark(far - T0, 1, END)]})
        self.check_counts(self.path)
        self.assertEqual(sql(self.path, f"SELECT start_ns - {T0}, dur_ns FROM gpu_op"), [(5, 4)])
        found = problems(self.path)
        self.assertEqual((found["bad-time"]["level"], found["bad-time"]["count"]), ("lost", 2))
        self.assertEqual({"no-time", "negative-duration"} & set(found), set())

    def test_hostile_values(self):
        """Wrong types, ids that point nowhere, extreme numbers: read, and said."""
        rows = sample()
        for text in ("'x'", "-9223372036854775808", "9223372036854775807") if oracle.SANITIZED else ("'x'", "NULL", "1.5", "-9223372036854775808", "9223372036854775807", "x'00ff'"):
            self.make(rows, extra=["CREATE TABLE loose (a)"])
            db = sqlite3.connect(self.path, isolation_level=None)
            tables = [r[0] for r in db.execute("SELECT name FROM sqlite_master WHERE name LIKE 'CUPTI%'")]
            for t in tables:
                columns = [r[1] for r in db.execute(f"PRAGMA table_info({t})") if r[1] != "_id_"]
                text_rows = db.execute(f"SELECT {', '.join(map(quoted, columns))} FROM {t}").fetchall()
                db.execute(f"DROP TABLE {t}")
                db.execute(f"CREATE TABLE {t} (_id_ INTEGER PRIMARY KEY, {', '.join(map(quoted, columns))})")
                db.executemany(f"INSERT INTO {t} ({', '.join(map(quoted, columns))}) VALUES ({', '.join('?' * len(columns))})", text_rows)
                for c in columns:
                    db.execute(f'INSERT INTO {t} ({", ".join(map(quoted, columns))}) SELECT '
                               f'{", ".join(text if k == c else quoted(k) for k in columns)} FROM {t} LIMIT 1')
            db.close()
            for report in "kernels", "operators", "api", "memcpy":
                self.assertIn(oracle.run("report", report, self.path)[0], (0, 1))
            if text != "NULL":  # NULL flags are no markers of any kind to SQL
                self.check_counts(self.path)

    def test_truncated(self):
        rows = sample()
        rows["CONCURRENT_KERNEL"] += [kernel(600 + 9 * i, 605 + 9 * i, i) for i in range(3000)]
        self.make(rows, page_size=512)
        whole = open(self.path, "rb").read()
        for part in (100, 600, len(whole) // 3, len(whole) - 512, len(whole) - 100):
            cut = os.path.join(self.folder, "cut.nvvp")
            with open(cut, "wb") as f:
                f.write(whole[:part])
            code, out, err = oracle.run("info", cut)
            self.assertIn(code, (0, 1))
            self.assertTrue(out if code == 0 else err)

    def test_empty(self):
        self.make({})
        self.assertIn("no-gpu-work", problems(self.path))
        code, out, err = oracle.run("report", "kernels", self.path)
        self.assertEqual((code, out), (1, b""))
        self.assertIn("no kernels", err.decode())

    def refused(self, content, *words, name="b.nvvp"):
        path = os.path.join(self.folder, name)
        if isinstance(content, bytes):
            with open(path, "wb") as f:
                f.write(content)
        else:
            db = sqlite3.connect(path)
            db.executescript(content)
            db.close()
        code, out, err = oracle.run("info", path)
        self.assertEqual((code, out), (1, b""))
        for w in words:
            self.assertIn(w, err.decode())

    def test_other_files(self):
        """Files of the same name that hold something else say what it is."""
        self.refused(b'<?xml version="1.0"?>\n<session/>', "session of the Visual Profiler", "nvprof -o")
        self.refused("CREATE TABLE profStringTable (id, value); CREATE TABLE collLibrary (id)", "pgprof", name="c.nvvp")
        self.refused("CREATE TABLE bookmarks (id, url)", "not recognised", name="d.nvvp")
        self.refused("CREATE VIEW StringTable AS SELECT 1 AS _id_, 'x' AS value; CREATE VIEW CUPTI_ACTIVITY_KIND_MARKER AS SELECT 1",
                     "not recognised", name="e.nvvp")

    def test_other_names(self):
        """The ending does not count."""
        self.make(sample())
        for name in "a.sql", "a.prof", "a", "a.nsys-rep":
            path = os.path.join(self.folder, name)
            shutil.copy(self.path, path)
            self.assertIn({"property": "format", "value": "nvprof"}, [{"property": list(r.values())[0], "value": list(r.values())[1]}
                                                                      for r in info(path).rows])


class NvtxStrings(MadeCase):
    """What emit_nvtx of four versions of PyTorch wrote, through a database, against another reading of the texts."""
    FIELD = re.compile(r", (seq|op_id|sizes|input_op_ids) = (-?\d+|\[[][\d, ()-]*\])(?=, (?:seq|op_id|sizes|input_op_ids) = |$)")

    def parse(self, text):
        fields = dict(self.FIELD.findall(text))
        first = self.FIELD.search(text)
        return text[:first.start()] if first else text, int(fields["seq"]) if "seq" in fields else None, fields.get("sizes")

    def test_strings(self):
        paths = data_glob("nvtx_strings/*.txt")
        if not paths:
            raise unittest.SkipTest("no nvtx_strings (real traces are not part of the repository)")
        ops = re.compile(r"(aten|torch|autograd|profiler)::|\w+Backward\d*$")
        bare_ops = ("detach", "detach_", "requires_grad_")  # ops that PyTorch itself names without a scope
        for path in paths:
            with self.subTest(file=os.path.basename(path)), open(path) as f:
                texts = [line.rstrip("\n").split(" PUSH ", 1)[1] for line in f if " PUSH " in line]
                self.assertGreater(len(texts), 500)
                marks = [m for i in range(len(texts)) for m in (mark(2 * i, i + 1, START, i + 1), mark(2 * i + 1, i + 1, END))]
                self.make({"MARKER": marks}, strings=texts)
                got = sql(self.path, "SELECT s.name, s.link_id, s.kind, (SELECT value FROM arg WHERE rowid = x.first) FROM span s LEFT JOIN arg_set x "
                                     "ON x.rowid = s.args AND s.args > 0 ORDER BY s.start_ns")
                self.assertNotIn("damaged-marker", problems(self.path))
                self.assertEqual(len(got), len(texts))
                for text, (name, seq, kind, sizes) in zip(texts, got):
                    self.assertEqual((name, seq, sizes), self.parse(text))
                    if seq is not None or ops.match(name) or (name in bare_ops and ", op_id" in text):
                        self.assertEqual(kind, "op", text)
                    elif name:
                        self.assertEqual(kind, "user", text)


def quoted(column):
    return f'"{column}"'


oracle.main()
