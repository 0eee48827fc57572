"""report load-nvprof: the functions that torch.autograd.profiler.load_nvprof makes of an nvprof database, cell by cell against the
join that it does in SQL, and against torch itself where that is installed; what torch would stop at, in made databases."""
import json
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile

import oracle
from nvprof_db import END, START, T0, call, kernel, make, mark
from oracle import Case

CUPTI = "CUPTI_ACTIVITY_KIND_"
PAIRS = f"{CUPTI}MARKER a JOIN {CUPTI}MARKER b ON a.id = b.id"
FUNCTIONS = f"SELECT a.id, a.name, a.timestamp, b.timestamp FROM {PAIRS} WHERE a.name != 0 AND b.name = 0 ORDER BY a.timestamp, a._id_"
KERNELS = (f"SELECT a.id, count(*), sum(k.end - k.start) FROM {PAIRS} JOIN {CUPTI}RUNTIME r ON a.timestamp < r.start AND r.end < b.timestamp "
           f"JOIN {CUPTI}CONCURRENT_KERNEL k ON k.correlationId = r.correlationId GROUP BY a.id")
TORCH = """
import json, sys, torch.autograd.profiler as p
events = p.load_nvprof(sys.argv[1])
print(json.dumps([[e.id, e.name, e.time_range.start, e.cpu_time_total, len(e.kernels), e.cuda_time_total] for e in events]))
"""


def by_sql(path):
    """Rows as the report has them."""
    db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    strings = dict(db.execute("SELECT _id_, value FROM StringTable"))
    kernels = {i: (n, ns) for i, n, ns in db.execute(KERNELS)}
    return [[i, strings[name], start, end - start, *kernels.get(i, (0, 0))] for i, name, start, end in db.execute(FUNCTIONS)]


def by_torch(path):
    """The same by torch, or None where it is not installed. It opens databases for writing: of a copy."""
    with tempfile.TemporaryDirectory() as d:
        p = subprocess.run([os.environ.get("TORCH_PYTHON", "/usr/bin/python3"), "-W", "ignore", "-c", TORCH, shutil.copy(path, d + "/copy")],
                           capture_output=True, text=True)
    if "No module named 'torch'" in p.stderr or "not found" in p.stderr:
        return None
    return json.loads(p.stdout) if p.returncode == 0 else p.stderr.strip().splitlines()[-1]


def ours(path):
    t = oracle.report("load-nvprof", path)
    assert t.ids == ["id", "name", "start_ns", "cpu_time_ns", "kernels", "cuda_time_ns"], t.ids
    return t.doc["rows"], t.notes


class LoadNvprof(Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def made(self, strings=("kernel", "outer", "inner", "aten::mm, seq = 7, sizes = [[2, 3], [3, 4]]"), **rows):
        path = os.path.join(self.folder.name, "made.sql")
        make(path, 18, rows, strings)
        return path

    def agree(self, path):
        rows, notes = ours(path)
        want = by_sql(path)
        self.assertEqual(len(rows), len(want))
        for got, expected in zip(rows, want):
            self.assertEqual(got, expected)
        theirs = by_torch(path)
        if theirs is not None:
            self.assertEqual(rows, theirs)
        return rows, notes

    def test_language_model(self):
        rows, notes = self.agree(oracle.data("pyprof", "lm_nvprof", "net.sql"))
        self.assertEqual(len(rows), 1195)
        self.assertEqual(sum(r[4] for r in rows), 1209)
        self.assertFalse(any("torch's load_nvprof would stop" in n for n in notes))
        parts = [int(x) for x in re.match(r"kernels (\d+) ns = inside ranges (\d+) \+ launched outside any (\d+) \+ .* recorded (\d+);", notes[0]).groups()]
        self.assertEqual(parts[0], sum(parts[1:]))
        db = sqlite3.connect(f"file:{oracle.data('pyprof', 'lm_nvprof', 'net.sql')}?mode=ro&immutable=1", uri=True)
        self.assertEqual(parts[0], db.execute(f"SELECT sum(end - start) FROM {CUPTI}CONCURRENT_KERNEL").fetchone()[0])

    def test_kept_in_a_file(self):
        path = oracle.data("pyprof", "lm_nvprof", "net.sql")
        kept = os.path.join(self.folder.name, "kept.opscope")
        code, _, err = oracle.run("import", path, "-o", kept)
        self.assertEqual(code, 0, err)
        self.assertEqual(ours(kept)[0], ours(path)[0])

    def test_strictly_inside(self):
        """A call that begins or ends with the range is not in it; one of another thread is."""
        rows, notes = self.agree(self.made(
            MARKER=[mark(100, 1, START, 2), mark(120, 2, START, 3), mark(160, 2, END), mark(200, 1, END), mark(300, 3, START, 4), mark(400, 3, END)],
            RUNTIME=[call(100, 110, 1, 211), call(130, 140, 2, 211, tid=5), call(150, 160, 3, 211), call(190, 200, 4, 211), call(310, 320, 9, 13),
                     call(500, 510, 5, 211)],
            CONCURRENT_KERNEL=[kernel(1000, 1007, 1), kernel(1010, 1021, 2), kernel(1030, 1043, 3), kernel(1050, 1067, 4), kernel(1070, 1089, 5),
                               kernel(1100, 1123, 77)]))
        self.assertEqual([r[4:] for r in rows], [[2, 24], [1, 11], [0, 0]])
        self.assertEqual(rows[2][1], "aten::mm, seq = 7, sizes = [[2, 3], [3, 4]]")
        self.assertIn("kernels 90 ns = inside ranges 24 + launched outside any 43 + launched by no runtime call that was recorded 23", notes[0])

    def test_other_launches(self):
        """cudaLaunch (13): torch's assertion."""
        path = self.made(MARKER=[mark(100, 1, START, 2), mark(200, 1, END)], RUNTIME=[call(110, 120, 1, 13), call(130, 140, 2, 211)],
                         CONCURRENT_KERNEL=[kernel(1000, 1007, 1), kernel(1010, 1021, 2)])
        rows, notes = ours(path)
        self.assertEqual(rows, by_sql(path))
        self.assertEqual([n for n in notes if "AssertionError" in n],
                         ["torch's load_nvprof would stop with an AssertionError: 1 kernels were launched by other calls than cudaLaunchKernel, the first by "
                          f"cudaLaunch at {T0 + 110}; here they count"])
        self.assertIn(by_torch(path), (None, "AssertionError"))

    def test_repeated_id(self):
        path = self.made(MARKER=[mark(100, 1, START, 2), mark(200, 1, END), mark(300, 1, START, 3), mark(400, 1, END)],
                         RUNTIME=[call(110, 120, 1, 211)], CONCURRENT_KERNEL=[kernel(1000, 1007, 1)])
        rows, notes = ours(path)
        self.assertEqual(rows, [[1, "outer", T0 + 100, 100, 1, 7], [1, "inner", T0 + 300, 100, 0, 0]])
        self.assertEqual([n for n in notes if "duplicate" in n],
                         [f"torch's load_nvprof would stop with 'duplicate key: (1,)': the id is that of outer at {T0 + 100} and of inner at {T0 + 300}; "
                          "here they are two"])
        self.assertIn(by_torch(path), (None, "RuntimeError: duplicate key: (1,)"))

    def test_call_with_two_kernels(self):
        path = self.made(("first", "range", "second"), MARKER=[mark(100, 8, START, 2), mark(200, 8, END)], RUNTIME=[call(110, 120, 1, 211)],
                         CONCURRENT_KERNEL=[kernel(1000, 1007, 1), kernel(1010, 1021, 1, name=3)])
        rows, notes = ours(path)
        self.assertEqual(rows, [[8, "range", T0 + 100, 100, 2, 18]])
        self.assertEqual([n for n in notes if "duplicate" in n],
                         [f"torch's load_nvprof would stop with 'duplicate key': the call at {T0 + 110} inside range 8 (range) launched first at {T0 + 1000} "
                          f"and second at {T0 + 1010}; here both count"])
        self.assertIn(by_torch(path), (None, "RuntimeError: duplicate key: (8, 1)"))

    def test_many_repeats(self):
        """Calls and kernels that all share an id: counted, not multiplied out; a note for the first few."""
        n = 2000
        path = self.made(MARKER=[mark(0, 1, START, 2), mark(100_000, 1, END)], RUNTIME=[call(10 * i + 1, 10 * i + 2, 1, 211) for i in range(n)],
                         CONCURRENT_KERNEL=[kernel(1000 + 2 * i, 1001 + 2 * i, 1) for i in range(n)])
        rows, notes = ours(path)
        self.assertEqual(rows, [[1, "outer", T0, 100_000, n * n, n * n]])
        self.assertIn(f"and {n - 5} more calls with several kernels", notes)

    def test_open_range(self):
        path = self.made(MARKER=[mark(100, 1, START, 2), mark(110, 2, START, 3), mark(120, 2, END)])
        rows, notes = ours(path)
        self.assertEqual([r[1] for r in rows], ["outer", "inner"])
        self.assertEqual([r[1] for r in by_sql(path)], ["inner"])
        self.assertIn("1 ranges had no end and end here with the capture; torch leaves them out", notes)

    def test_not_nvprof(self):
        code, out, err = oracle.run("report", "load-nvprof", oracle.synthetic("all_categories"))
        self.assertEqual((code, out), (1, b""))
        self.assertIn(b"this is an input of the format kineto", err)

    def test_no_ranges(self):
        code, out, err = oracle.run("report", "load-nvprof", self.made(CONCURRENT_KERNEL=[kernel(1, 2, 3)]))
        self.assertEqual((code, out), (1, b""))
        self.assertIn(b"emit_nvtx", err)


if __name__ == "__main__":
    oracle.main()
