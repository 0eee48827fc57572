"""`report osrt` against plain SQL on the tables of Nsight Systems, as its own osrt_sum counts; kinds of calls; time in which the devices were idle."""
import os
import sqlite3
import statistics
import tempfile

import oracle
from nsys_db import call, kernel, make, strings, tid
from oracle import Case, data_glob, report

TRACER = ("OS runtime libraries profiling started", "OS runtime libraries profiling finished", "[Unknown]")


def databases():
    for path in data_glob("**/*.sqlite"):
        db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
        if db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'OSRT_API'").fetchone()[0] and db.execute("SELECT count(*) FROM OSRT_API").fetchone()[0]:
            yield path, db


class RealFiles(Case):
    def test_sums(self):
        checked = 0
        for path, db in databases():
            durations = {}
            for name, ns in db.execute('SELECT value, "end" - start FROM OSRT_API o JOIN StringIds s ON s.id = o.nameId'):
                if name not in TRACER:
                    durations.setdefault(name, []).append(ns)
            if not durations:
                continue
            with self.subTest(file=path.split("/")[-2]):
                rows = report("osrt", path).by("name")
                self.assertEqual(set(rows), set(durations))
                for name, d in durations.items():
                    r = rows[name]
                    self.assertEqual((r["calls"], r["total_ns"], r["min_ns"], r["max_ns"], r["median_ns"]), (len(d), sum(d), min(d), max(d), statistics.median(d)), name)
                    self.assertAlmostEqual(r["mean_ns"], statistics.fmean(d), delta=1e-6 * max(d))
                    self.assertAlmostEqual(r["stddev_ns"], statistics.stdev(d) if len(d) > 1 else 0, delta=1e-6 * max(d) + 1e-9)
                    if r["kind"] == "other":
                        self.fail(f"{name} has no kind")
                total = sum(map(sum, durations.values()))
                for grouping in "kind", "thread":
                    self.assertEqual(sum(r["total_ns"] for r in report("osrt", path, f"--group-by={grouping}").rows), total)
                checked += 1
        self.assertTrue(checked >= 7 or not data_glob("nsys/*"), checked)


class Made(Case):
    def test_idle_devices(self):
        """Of a call in a thread that launches work the part in which no device works; of other threads nothing."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.sqlite")
            make(path, {"StringIds": strings("k", "cudaLaunchKernel_v7000", "read", "pthread_cond_wait", "nanosleep", "unheard_of"),
                        "CUPTI_ACTIVITY_KIND_RUNTIME": [call(100, 110, 1, 10, 11), call(300, 310, 2, 10, 11)],
                        "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(150, 250, 1, 10), kernel(240, 260, 2, 10, stream=8)],
                        "OSRT_API": [{"start": s, "end": e, "globalTid": tid(10, t), "nameId": n} for s, e, t, n in (
                            (120, 200, 11, 3), (255, 290, 11, 4), (160, 240, 11, 5), (0, 1000, 12, 4), (400, 401, 11, 6))]})
            rows = {(r["name"], r["kind"]): (r["total_ns"], r["idle_ns"]) for r in report("osrt", path).rows}
            self.assertEqual(rows, {("read", "file I/O"): (80, 30), ("pthread_cond_wait", "lock"): (1035, 30), ("nanosleep", "sleep"): (80, 0),
                                    ("unheard_of", "other"): (1, 1)})
            notes = " ".join(report("osrt", path).notes)
            self.assertIn("spent 61 ns in these calls: file I/O 30, wait for I/O 0, lock 30, sleep 0, driver 0, others 1", notes)

    def test_synthetic(self):
        rows = {r["name"]: (r["kind"], r["total_ns"], r["idle_ns"]) for r in report("osrt", oracle.synthetic("os_calls")).rows}
        self.assertEqual(rows, {"read": ("file I/O", 30000, 20000), "pthread_mutex_lock": ("lock", 10000, 10000), "usleep": ("sleep", 15000, 15000),
                                "poll": ("wait for I/O", 120000, 0)})

    def test_none(self):
        code, _, err = oracle.run("report", "osrt", oracle.synthetic("pure_cpu"))
        self.assertEqual(code, 1)
        self.assertIn(b"osrt", err)


class Graphs(Case):
    def test_replayed_graph(self):
        """A graph that was recorded as a whole is a row of its own class, and no kernel in any count."""
        path = oracle.data("nsys", "2025.5_flameox_graph", "nsight-2025.5.2.sqlite")
        table = report("kernels", path)
        self.assertEqual({r["name"]: (r["class"], r["calls"]) for r in table.rows}, {"add_one(const float *, float *, int)": ("unknown", 3), "CUDA graph 1": ("graph", 2)})
        self.assertIn("kernels 3840 ns = ", table.notes[0])
        self.assertTrue(any("2 replays of whole CUDA graphs, 3104 ns" in n for n in table.notes), table.notes)
        self.assertEqual(report("devices", path).rows[0]["kernels"], 3)
        self.assertEqual([r["name"] for r in report("kernels-unknown", path).rows], ["add_one(const float *, float *, int)"])


if __name__ == "__main__":
    oracle.main()
