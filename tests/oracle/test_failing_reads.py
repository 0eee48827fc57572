"""Traces on a disk that fails, and in a memory that is full: a command gives what it gives of the sound file, or says why it cannot."""
import gzip
import json
import os
import shutil
import sqlite3
import tempfile

import failing
import oracle
import segment

SAMPLES = int(os.environ.get("OPSCOPE_SAMPLES", 200 if oracle.ALL else 20))  # of the reads and the allocations, which are thousands: of each kind, spread over all


class FailingReads(oracle.Case):
    def setUp(self):
        super().setUp()
        if oracle.SANITIZED:
            self.skipTest("a sanitizer has its own malloc")
        oracle.built(failing.LIBRARY, "OPSCOPE_BUILD")
        self.counter = failing.Counter(os.path.join(self.folder(), "state"))

    def folder(self):
        path = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, path)
        return path

    def check(self, path, *args, whole=None):
        """The same bytes, or a status and a line that says why; the words are those of what failed. `whole`: the trace that the file is a part of."""
        args = [*args, whole or path]
        counts = []
        for kind in ("read", "malloc"):
            status, sound, _ = self.counter.run(args, path, f"{kind}:0:once")
            self.assertEqual(status, 0)
            counts.append(self.counter.get("count"))
        reads, allocations = counts
        self.assertGreater(reads, 2)
        points = [f"read:{n}:{how}" for how in ("once", "from", "once:short") for n in range(1, reads + 1, 1 + reads // SAMPLES)]
        points += [f"malloc:{n}:{how}" for how in ("once", "from") for n in range(1, allocations + 1, 1 + allocations // SAMPLES)]
        failed = 0
        for point in points:
            status, out, why = self.counter.run(args, path, point)
            with self.subTest(file=path, point=point):
                if status == 0:
                    self.assertEqual(out, sound, why)
                    continue
                failed += 1
                words = "out of memory" if point.startswith("malloc") else "cannot read: "
                self.assertEqual(status, 1, why)
                self.assertIn(words, why)
                self.assertEqual(why.count("\n"), 1, why)
        self.assertGreater(failed, len(points) // 3)

    def test_nsys(self):
        self.check(oracle.data("nsys", "2021.2_mordred", "report1.sqlite"), "info")

    def test_nvprof(self):
        self.check(oracle.data("nvprof", "nccl_8gpu_v16.nvvp"), "info")

    def test_dlprof(self):
        self.check(oracle.data("dlprof", "w_relu", "dlprof_dldb.sqlite"), "info")

    def test_wide_text(self):
        """Texts of UTF-16 are read by the library, which makes UTF-8 of each."""
        path = os.path.join(self.folder(), "wide.sqlite")
        with sqlite3.connect(oracle.data("nsys", "2021.2_mordred", "report1.sqlite")) as old, sqlite3.connect(path) as new:
            new.execute("PRAGMA encoding = 'UTF-16le'")
            for name, sql in old.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'"):
                new.execute(sql)
                for row in old.execute(f"SELECT * FROM {name}"):
                    new.execute(f"INSERT INTO {name} VALUES({','.join('?' * len(row))})", row)
        self.check(path, "report", "kernels", "--format=json")

    def test_opscope(self):
        path = os.path.join(self.folder(), "a.opscope")
        self.assertEqual(oracle.run("import", oracle.data("nsys", "2021.2_mordred", "report1.sqlite"), "-o", path)[0], 0)
        self.check(path, "info")
        self.check(path, "report", "aggregations", "--format=json")

    def test_json(self):
        """Plain, and packed by gzip: what came before a read that failed is not the trace."""
        path = os.path.join(self.folder(), "a.json")
        doc = {"traceEvents": [{"ph": "X", "name": f"op {i % 97}", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 10 * i, "dur": 7} for i in range(20000)]}
        with open(path, "w") as f:
            f.write(json.dumps(doc))
        with open(path, "rb") as f, gzip.open(path + ".gz", "wb") as z:
            z.write(f.read())
        self.check(path, "info")
        self.check(path + ".gz", "info")

    def test_capture(self):
        """A run of two segments: a read of either."""
        run, paths = self.folder(), []
        for pid in (1000, 1001):
            s = segment.Segment(pid=pid)
            for i in range(2000):
                s.push(1, f"range {i % 7}", segment.BASE + 20 * i)
                s.pop(1, segment.BASE + 20 * i + 10)
            paths.append(s.write(run))
        self.assertEqual(len(os.listdir(run)), 2)
        for path in paths:
            self.check(path, "info", whole=paths[0])

    def test_found_in_a_folder(self):
        """A trace that cannot be looked into is not left out."""
        folder = self.folder()
        for name in ("a.json", "bad.json"):
            shutil.copy(oracle.synthetic("two_steps"), os.path.join(folder, name))
        bad = os.path.join(folder, "bad.json")
        status, out, why = self.counter.run(["info", folder], bad, "read:1:from")
        self.assertIn("bad.json", out.decode() + why)

    def test_recognised(self):
        """What cannot be read is not of an unknown format."""
        path = oracle.data("nvprof", "nccl_8gpu_v16.nvvp")
        for n in range(1, 40):
            status, _, why = self.counter.run(["info", path], path, f"read:{n}:from")
            self.assertEqual((status, why), (1, f"opscope: {path}: cannot read: Input/output error\n"), n)

    def test_shortened(self):
        """A file that becomes shorter while it is read: what is left of it is not taken for the whole."""
        sound, path = oracle.data("nsys", "2021.2_mordred", "report1.sqlite"), os.path.join(self.folder(), "a.sqlite")
        told = 0
        for n in range(1, 75, 3):
            shutil.copyfile(sound, path)
            status, out, why = self.counter.run(["info", path], path, f"read:{n}:once:cut")
            with self.subTest(read=n):
                said = status == 1 and "the file has become shorter meanwhile" in why
                told += said
                if status == 0:  # the reader began behind that
                    self.assertIn("the file was written to while it was read", out.decode() + why)
        self.assertGreater(told, 5)


oracle.main()
