"""Where memory runs out: the program says so and ends with status 1; of the server, the request alone fails, and what has memory is answered as before."""
import os
import resource
import shutil
import subprocess
import tempfile
import time

import oracle
from served import Server

SMALL = oracle.synthetic("two_steps_overlap")


def write_large(path, events):
    """About 170 bytes each."""
    with open(path, "w") as f:
        f.write('{"schemaVersion": 1, "traceEvents": [\n')
        for i in range(events):
            f.write(f'{{"ph": "X", "cat": "cpu_op", "name": "aten::op{i % 5000}", "pid": 1, "tid": 1, "ts": {i * 10}, "dur": 9, '
                    f'"args": {{"External id": {i}, "Input Dims": [[{i}, 64], [64, 64]], "Sequence number": {i}}}}},\n')
        f.write(f'{{"ph": "X", "cat": "cpu_op", "name": "last", "pid": 1, "tid": 1, "ts": {events * 10}, "dur": 1}}]}}\n')


# Columns are mappings of their own, and count as soon as they are there: no thread has addresses in reserve for them.
PLAIN_MALLOC = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
os.environ.update(PLAIN_MALLOC)


class NoMemory(oracle.Case):
    def setUp(self):
        super().setUp()
        if oracle.SANITIZED:
            self.skipTest("a sanitizer has a use of its own for addresses")
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)


class Program(NoMemory):
    def limited(self, bytes, *args, preload=None):
        environment = dict(os.environ, **({"LD_PRELOAD": preload} if preload else {}))
        return subprocess.run([oracle.OPSCOPE, *args], capture_output=True, timeout=oracle.TIMEOUT, env=environment,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (bytes, bytes)))

    def test_options_cannot_be_parsed(self):
        """No command takes that for one without arguments."""
        preload = oracle.built(os.path.join(os.environ.get("OPSCOPE_BUILD", "build"), "tests", "mock", "libmock_argp.so"), "OPSCOPE_BUILD")
        for command in (["report", "operators", SMALL], ["advise", SMALL], ["sql", SMALL, "SELECT 1"], ["import", SMALL]):
            p = self.limited(resource.RLIM_INFINITY, *command, preload=preload)
            self.assertEqual((p.returncode, p.stdout, p.stderr), (1, b"", b"opscope: out of memory\n"), command)

    def test_a_query(self):
        """SQLite's memory, which is not wrong usage."""
        query = "SELECT length(hex(zeroblob(400000000)))"
        p = self.limited(600 << 20, "sql", SMALL, query)
        self.assertEqual((p.returncode, p.stdout, p.stderr), (1, b"", b"opscope: SQL: out of memory\n"))

    def test_a_large_trace(self):
        path = os.path.join(self.dir, "large.json")
        write_large(path, 150000)
        p = self.limited(30 << 20, "report", "operators", path)
        self.assertEqual((p.returncode, p.stdout), (1, b""))
        self.assertRegex(p.stderr.decode(), r"\Aopscope: out of memory[^\n]*\n\Z")


class Served(NoMemory):
    def setUp(self):
        super().setUp()
        if oracle.run("help")[1].find(b"\n  serve ") < 0:
            self.skipTest("built without libmicrohttpd")
        self.small, self.large = os.path.join(self.dir, "small.pt.trace.json"), os.path.join(self.dir, "large.pt.trace.json")
        shutil.copy(SMALL, self.small)

    def keys(self, s):
        inputs = s.inputs()
        return next(k for k in inputs if "small" in k), next(k for k in inputs if "large" in k)

    def leave(self, s, bytes):
        """So much may be added to what the server has; None = any."""
        with open(f"/proc/{s.process.pid}/status") as f:
            size = int(next(line for line in f if line.startswith("VmSize")).split()[1]) << 10
        soft = resource.RLIM_INFINITY if bytes is None else size + bytes
        resource.prlimit(s.process.pid, resource.RLIMIT_AS, (soft, resource.RLIM_INFINITY))

    def refused(self, s, path, **args):
        got = s.ask(path, args)
        self.assertEqual(got.status, 503, got.body[:300])
        error = got.json()["error"]
        self.assertIn("out of memory", error)
        self.assertNotIn("\n", error)
        self.assertEqual(got.headers["retry-after"], "1")
        return error

    def test_an_input_that_is_too_large(self):
        write_large(self.large, 150000)
        s = Server(self, self.dir)
        small, large = self.keys(s)
        right = s.get("/api/report/operators", input=small)
        self.leave(s, 3 << 20)
        for _ in range(3):
            self.refused(s, "/api/report/operators", input=large)
            self.assertEqual(s.get("/api/report/operators", input=small), right)
        self.leave(s, None)
        table = oracle.Table(s.get("/api/report/operators", input=large, limit=0))
        self.assertEqual(sum(r["calls"] for r in table.rows), 150001)

    def test_who_does_not_wait_is_told_once(self):
        """Then it is tried again."""
        write_large(self.large, 150000)
        s = Server(self, self.dir)
        small, large = self.keys(s)
        self.leave(s, 3 << 20)
        for _ in range(2):
            self.assertEqual(s.ask("/api/report/operators", {"input": large, "wait": 0}).status, 202)
            end = time.time() + 30
            while s.inputs()[large]["state"] in ("queued", "loading"):
                self.assertLess(time.time(), end)
                time.sleep(0.05)
            self.assertEqual(s.inputs()[large]["error"], f"{self.large}: out of memory")
            self.refused(s, "/api/report/operators", input=large, wait=0)

    def test_a_row_of_the_start_page(self):
        """The file is read for it alone: without memory the row says so, and is not asked for again and again."""
        write_large(self.large, 60000)
        s = Server(self, self.dir)
        small, large = self.keys(s)
        for room in (1 << 20, 4 << 20, 8 << 20):
            self.leave(s, room)
            got = s.ask("/api/summary", {"of": large})
            self.assertEqual(got.status, 422, got.body[:300])
            self.assertIn(f"{self.large}: there was no memory", got.json()["error"])
        self.leave(s, None)
        fresh = Server(self, self.dir)
        for key in (small, large):
            self.assertEqual(s.get("/api/summary", of=key), fresh.get("/api/summary", of=key))
        self.assertEqual({x["state"] for x in s.inputs().values()}, {"found"})

    def test_what_is_asked_of_an_input(self):
        """With little memory and less: an answer is the right one, or 503; when there is memory again, all are right."""
        write_large(self.large, 60000)
        asks = [("/api/report/operators", {"limit": 0}), ("/api/report/ops", {}), ("/api/timeline", {}), ("/api/advise", {}),
                ("/api/sql", {"query": "SELECT name, count(*) AS n, group_concat(dur_ns) AS d FROM span GROUP BY name ORDER BY name"}),
                ("/api/sql", {"query": "SELECT count(*) AS n FROM operators_by_shape"}), ("/api/report/kernels", {}), ("/api/export/chrome", {})]
        s = Server(self, self.dir)
        small, large = self.keys(s)
        right = [(s.ask(path, {"input": large, **args}).status, s.ask(path, {"input": large, **args}).body) for path, args in asks]
        refused = 0
        for room in (1 << 20, 4 << 20, 12 << 20):
            s = Server(self, self.dir)
            s.get("/api/report/overview", input=large)
            self.leave(s, room)
            for (path, args), (status, body) in zip(asks, right):
                got = s.ask(path, {"input": large, **args})
                refused += got.status == 503
                if got.status == 503:
                    self.assertIn("out of memory", got.json()["error"], path)
                else:
                    self.assertEqual((got.status, got.body), (status, body), path)
            self.assertIn(s.ask("/api/report/operators", {"input": small}).status, (200, 503))
            self.leave(s, None)
            for (path, args), (status, body) in zip(asks, right):
                got = s.ask(path, {"input": large, **args})
                self.assertEqual((got.status, got.body), (status, body), path)
            s.stop()
        self.assertGreater(refused, 5)


if __name__ == "__main__":
    oracle.main()
