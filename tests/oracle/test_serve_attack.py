"""Hostile clients of `opscope serve`: it answers or refuses, goes on answering others, shows nothing but its inputs, and ends cleanly. Meant to be run
under sanitizers as well, with OPSCOPE=build-asan/src/cli/opscope, or a build with -Db_sanitize=thread and TSAN_OPTIONS=report_thread_leaks=0 (a server whose
answers take longer than it waits for at its end leaves by _exit)."""
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import socket
import tempfile
import threading
import time
import unittest
import urllib.parse

import oracle
from served import Server

SMALL = oracle.synthetic("two_steps_overlap")
TRAINING = oracle.synthetic("training_gpu")
RESNET = os.path.join(oracle.ROOT, "tests", "data", "torch214_cpu_resnet.json.gz")


class AttackCase(oracle.Case):
    def setUp(self):
        super().setUp()
        if oracle.run("help")[1].find(b"\n  serve ") < 0:
            self.skipTest("built without libmicrohttpd")
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)

    def open(self, s, timeout=20):
        c = socket.create_connection(("127.0.0.1", s.port), timeout)
        self.addCleanup(c.close)
        return c

    def raw(self, s, data, timeout=20):
        """All that comes back until the server closes or keeps silent."""
        c = self.open(s, timeout)
        got = b""
        try:
            c.sendall(data)
            c.shutdown(socket.SHUT_WR)
            while more := c.recv(1 << 16):
                got += more
        except OSError:
            pass
        c.close()
        return got

    def alive(self, s, seconds=5):
        begin = time.time()
        self.assertEqual(s.ask("/api/state", timeout=seconds).status, 200)
        return time.time() - begin


def request(path, *headers, method=b"GET"):
    return method + b" " + path + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + b"".join(h + b"\r\n" for h in headers) + b"\r\n"


def status_of(answer):
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.") else 0


class Requests(AttackCase):
    def test_paths_outside(self):
        secret = os.path.join(self.tmp, "secret.txt")
        with open(secret, "w") as f:
            f.write("SESAME")
        served = os.path.join(self.tmp, "served")
        os.mkdir(served)
        shutil.copy(SMALL, os.path.join(served, "a.json"))
        s = Server(self, served)
        paths = [b"/../secret.txt", b"/..%2fsecret.txt", b"/%2e%2e/%2e%2e/etc/passwd", b"/....//....//etc/passwd", b"//etc/passwd", b"/..\\..\\etc/passwd",
                 b"/index.html/../../etc/passwd", b"/index.html%00.js", b"/%2fetc%2fpasswd", b"/.%00./etc/passwd", b"/file:///etc/passwd",
                 secret.encode(), b"/api/report/../../etc/passwd", b"/api/../etc/passwd", b"http://localhost/../etc/passwd", b"/%c0%ae%c0%ae/etc/passwd"]
        for p in paths:
            got = self.raw(s, request(p))
            self.assertIn(status_of(got), (400, 404), (p, got[:200]))
            self.assertNotIn(b"SESAME", got)
            self.assertNotIn(b"root:", got)
        for name in ("../secret.txt", "../../secret.txt", secret, "/etc/passwd", "served/a/default/../../secret.txt", "file:///etc/passwd", ".", "..", "/"):
            a = s.ask("/api/report/operators", {"input": name})
            self.assertEqual(a.status, 404, name)
            self.assertNotIn(b"SESAME", a.body)
        for name in ("../secret", "..", "/etc/passwd", "operators/../x", "\u0000", "operators/"):
            self.assertIn(s.ask("/api/report/" + __import__("urllib.parse").parse.quote(name)).status, (400, 404), name)

    def test_malformed_queries(self):
        s = Server(self, SMALL)
        for q in (b"?%", b"?%%%", b"?%zz=1", b"?a=%f", b"?limit=%00", b"?limit=1%00", b"?%00=1", b"?limit=%ff", b"?limit=\xff", b"?sort=%c3%28", b"?=&=&=", b"?&&&&",
                  b"?limit=1&limit=2", b"?limit", b"?" + b"a&" * 1000, b"?" + b"a" * 20000, b"?limit=1?limit=2", b"?limit=1#x",
                  b"?" + b"&".join(b"a%d=1" % i for i in range(41))):
            got = self.raw(s, request(b"/api/report/operators" + q))
            self.assertIn(status_of(got), (400, 404, 414, 431, *([0] if len(q) > 1500 else [])), (q[:60], got[:200]))
        self.assertIn(status_of(self.raw(s, request(b"/api/report/operators?filter=" + b"%41" * 6000))), (200, 414, 431, 0))
        for q in (b"", b"?filter=50%", b"?filter=%c3%a4", b"?filter=", b"?filter=a+b%20c"):
            self.assertEqual(status_of(self.raw(s, request(b"/api/report/operators" + q))), 200, q)
        self.alive(s)

    def test_malformed_requests(self):
        s = Server(self, SMALL)
        line = b"GET /api/state HTTP/1.1\r\n"
        for data in (b"\r\n\r\n", b"\x00" * 1000, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n", b"GET  HTTP/1.1\r\n\r\n", b"\xff\xfe" * 500, line + b"Host: localhost\r\n",
                     line + b": x\r\n\r\n", line + b"Host: localhost\r\nHost: evil\r\n\r\n", line + b"Host: localhost\r\nContent-Length: -1\r\n\r\n",
                     line + b"Host: localhost\r\nContent-Length: 99999999999999999999999\r\n\r\n", line + b"Host: localhost\r\nTransfer-Encoding: nonsense\r\n\r\n",
                     line + b"Host: localhost\r\n continued\r\n\r\n", b"GET /api/state HTTP/1.1\nHost: localhost\n\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                     line + b"Host: localhost\r\n" + b"X: y\r\n" * 5000 + b"\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                     b"POST /api/aggregate HTTP/1.1\r\nHost: localhost\r\nX-Opscope: 1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"):
            self.raw(s, data, 3)
        self.alive(s)

    def test_huge_headers_and_bodies(self):
        s = Server(self, SMALL)
        for h in (b"X: " + b"a" * 60000, b"Cookie: " + b"a" * 1000000, b"Host: " + b"a" * 100000):
            self.assertIn(status_of(self.raw(s, request(b"/api/state", h))), (0, 400, 403, 413, 431), h[:20])
        self.assertIn(status_of(self.raw(s, request(b"/" + b"a" * 100000))), (0, 404, 414, 431))
        post = [b"X-Opscope: 1"]
        # whoever goes on sending may see the connection end before the answer
        self.assertIn(status_of(self.raw(s, request(b"/api/aggregate", *post, b"Content-Length: 2000000", method=b"POST") + b"x" * 2000000)), (413, 0))
        self.assertEqual(status_of(self.raw(s, request(b"/api/aggregate", *post, b"Content-Length: 99999999999", method=b"POST"))), 413)
        # without an end, in pieces
        c = self.open(s)
        c.sendall(request(b"/api/aggregate", *post, b"Transfer-Encoding: chunked", method=b"POST"))
        sent, before = 0, s.memory_kb()
        try:
            while sent < 200 << 20:
                c.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
                sent += 65536
        except ConnectionError:
            pass
        self.assertLess(sent, 100 << 20)
        self.assertLess(s.memory_kb() - before, 50000)
        self.alive(s)

    def test_pipelining(self):
        s = Server(self, SMALL)
        one = b"GET /api/report/operators?limit=%d HTTP/1.1\r\nHost: localhost\r\n%s\r\n"
        got = self.raw(s, b"".join(one % (1 + i % 5, b"Connection: close\r\n" if i == 199 else b"") for i in range(200)))
        self.assertEqual(got.count(b"HTTP/1.1 200 OK"), 200)
        got = self.raw(s, b"POST /api/state HTTP/1.1\r\nHost: localhost\r\nX-Opscope: 1\r\nContent-Length: 5\r\n\r\nGET /" + one % (1, b"Connection: close\r\n"))
        self.assertEqual((got.count(b"HTTP/1.1 405"), got.count(b"HTTP/1.1 200 OK")), (1, 1))

    def test_other_origins(self):
        s = Server(self, SMALL)
        for headers, status in (({}, 403), ({"X-Opscope": "1", "Origin": "http://evil"}, 403), ({"X-Opscope": "1", "Host": "evil.example"}, 403),
                                ({"X-Opscope": "1", "Origin": "http://localhost.evil:%d" % s.port}, 403)):
            self.assertEqual(s.ask("/api/aggregate", {}, "POST", headers).status, status, headers)
        a = s.ask("/api/aggregate", method="OPTIONS", headers={"Origin": "http://evil", "Access-Control-Request-Method": "POST",
                                                                "Access-Control-Request-Headers": "x-opscope"})
        self.assertEqual((a.status, [h for h in a.headers if h.startswith("access-control")]), (405, []))

    def test_pages_of_other_sites(self):
        s = Server(self, SMALL)
        plugin = {"run": s.inputs().popitem()[1]["run"], "worker": s.inputs().popitem()[1]["worker"], "span": "default"}
        asks = [("/api/state", {}), ("/api/report/operators", {}), ("/api/sql", {"query": "SELECT 1"}), ("/api/timeline", {}),
                ("/data/plugin/pytorch_profiler/runs", {}), ("/data/plugin/pytorch_profiler/overview", plugin)]
        for path, args in asks:
            with self.subTest(path=path):
                for site, method, status in (("cross-site", "GET", 403), ("same-site", "GET", 403), ("cross-site", "HEAD", 403), ("anything", "GET", 403), ("", "GET", 403),
                                             ("same-origin", "GET", 200), ("none", "GET", 200), (None, "GET", 200)):
                    a = s.ask(path, args, method, {} if site is None else {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"})
                    self.assertEqual(a.status, status, (path, site, a.body))
                    if status == 403 and method == "GET":
                        self.assertEqual(a.json(), {"error": f"{path}: a page of another site asks; one of the viewer's own, or none, was expected"})
        # but it may lead to the viewer
        for path in ("/", "/index.html"):
            self.assertEqual(s.ask(path, headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}).status, 200)
        prefixed = Server(self, "--path-prefix=/x", SMALL)
        for path, status in (("/x/", 200), ("/x/api/state", 403), ("/x/data/plugin/pytorch_profiler/runs", 403), ("/x/%61pi/state", 403)):
            with self.subTest(path=path):
                self.assertEqual(prefixed.ask(path, headers={"Sec-Fetch-Site": "cross-site"}).status, status)

    def test_names_of_the_server(self):
        s = Server(self, "--allow-host=box.example", SMALL)
        for host, status in ((b"localhost", 200), (b"LOCALHOST:1", 200), (b"127.0.0.1:65535", 200), (b"[::1]", 200), (b"[::1]:80", 200), (b"box.example:443", 200),
                             (b"localhost:80:evil", 403), (b"[::1]evil", 403), (b"[::1]:80evil", 403), (b"[::1", 403), (b"localhost:", 403), (b"localhost:8a", 403),
                             (b"localhost:-1", 403), (b":80", 403), (b"", 403), (b"localhost.", 403), (b"evil@localhost", 403), (b"localhost:80:80", 403), (b"localhost:80@evil", 403)):
            got = self.raw(s, b"GET /api/state HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n")
            self.assertEqual(status_of(got), status, (host, got[:200]))
        self.assertEqual(status_of(self.raw(s, b"GET /api/state HTTP/1.0\r\n\r\n")), 403)

    def test_random_bytes(self):
        s = Server(self, SMALL)
        r = random.Random(7)
        base = request(b"/api/timeline/tile?zoom=10&index=0&tracks=0-3,1")
        for _ in range(300):
            data = bytearray(base)
            for _ in range(r.randrange(1, 6)):
                data[r.randrange(len(data))] = r.randrange(256)
            self.raw(s, bytes(data), 1)
        self.alive(s)


class Slow(AttackCase):
    def many(self, s, n, begin):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
        open_ones = []
        for _ in range(n):
            c = self.open(s)
            c.sendall(begin)
            open_ones.append(c)
        return open_ones

    def test_a_thousand_that_ask_slowly(self):
        s = Server(self, SMALL)
        s.get("/api/report/operators")
        slow = self.many(s, 1000, b"GET /api/state HTTP/1.1\r\nHost: localhost\r\nX-")
        took = [self.alive(s) for _ in range(10)]
        self.assertLess(sorted(took)[5], 1)
        more = self.many(s, 1000, b"GET /api/st")
        took = [self.alive(s) for _ in range(10)]
        self.assertLess(sorted(took)[5], 1)
        # those that drip are closed after a while all the same
        end, left = time.time() + 40, slow + more
        while left and time.time() < end:
            still = []
            for c in left:
                try:
                    c.send(b"a")
                    still.append(c)
                except OSError:
                    pass
            left = still
            time.sleep(2)
        self.assertEqual(len(left), 0)
        self.alive(s)

    def test_a_thousand_at_once(self):
        s = Server(self, RESNET)
        s.get("/api/report/operators")
        got = []
        asked = self.many(s, 1000, request(b"/api/report/operators?limit=5"))
        for c in asked:
            data = b""
            try:
                while more := c.recv(1 << 16):
                    data += more
            except ConnectionError:
                pass
            got.append(status_of(data))
        self.assertEqual({x for x in got if x not in (200, 503)}, set())
        self.assertGreater(got.count(200), 300)
        self.alive(s)

    def test_those_who_do_not_read(self):
        s = Server(self, RESNET)
        s.get("/api/timeline")
        before = s.memory_kb()
        for c in self.many(s, 300, b"GET /api/report/function-events HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20):
            pass
        self.assertLess(sorted(self.alive(s, 20) for _ in range(9))[4], 5)
        self.assertLess(s.memory_kb() - before, 400000)

    def test_those_who_leave(self):
        s = Server(self, RESNET)
        for i in range(200):
            c = self.open(s)
            c.sendall(request(b"/api/report/operators?limit=%d" % i))
            c.close()
        self.alive(s)


def read_proc(path):
    """The text of a file of /proc; empty when its thread or process has ended."""
    try:
        with open(f"/proc/{path}") as f:
            return f.read()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def children(s):
    tasks = os.listdir(f"/proc/{s.process.pid}/task")
    return [int(child) for task in tasks for child in read_proc(f"{s.process.pid}/task/{task}/children").split()]


def stat_of(process):
    """The fields of /proc/PID/stat from the state on; none when the process has ended."""
    return read_proc(f"{process}/stat").rpartition(")")[2].split()


def child_of(s):
    """The process that answers the query, once it does."""
    end = time.time() + 20
    while time.time() < end:
        for child in children(s):
            stat = stat_of(child)
            if stat and int(stat[11]) > 5: # its own time in hundredths of a second
                return child
        time.sleep(0.02)
    raise AssertionError("no process answers the query")


def has_ended(process):
    return stat_of(process)[:1] in ([], ["Z"])


class Queries(AttackCase):
    ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"

    def test_a_query_without_end_holds_up_nobody(self):
        s = Server(self, RESNET)
        s.get("/api/report/operators")
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(s.ask("/api/sql", {"query": self.ENDLESS}, timeout=90))) for _ in range(4)]
        for t in threads:
            t.start()
        time.sleep(0.5)
        begin = time.time()
        for name in ("operators", "overview", "steps"):
            s.get("/api/report/" + name)
        s.get("/api/timeline")
        self.assertLess(time.time() - begin, 10)
        begin = time.time()
        s.stop()
        self.assertLess(time.time() - begin, 5)
        for t in threads:
            t.join()
        self.assertEqual({a.status for a in answers} - {422, 503}, set())

    def test_a_query_is_ended(self):
        s = Server(self, "--query-time=2", RESNET)
        for query in (self.ENDLESS, "SELECT count(*) FROM span a, span b, span c WHERE a.name || b.name || c.name = 'x'"):
            begin = time.time()
            self.assertIn("took too long", s.get("/api/sql", 422, query=query)["error"])
            self.assertLess(time.time() - begin, 20)

    # Each is one instruction of SQLite's machine for long, or many long ones, or a plan that is long in the making. A value has a megabyte at most.
    TEXT, PART = "hex(zeroblob(500000))", "hex(zeroblob(250000))"
    NUMBERS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < %d) "
    HOSTILE = [
        "SELECT instr(hex(zeroblob(20000000)), hex(zeroblob(10000000)) || '1')",
        f"SELECT instr({TEXT}, {PART} || '1')",
        f"SELECT length(replace({TEXT}, {PART} || '1', ''))",
        f"SELECT length(trim({TEXT}, replace({PART}, '00', '12') || '0'))",
        f"SELECT {TEXT} LIKE '%' || substr({TEXT}, 1, 8000) || '1%'",
        f"SELECT {TEXT} LIKE '%' || {PART} || '1%'",
        f"SELECT count(*) FROM span a, span b WHERE {TEXT} GLOB '*' || replace(substr({TEXT}, 1, 2700), '0', '[0]') || b.rowid || '*'",
        NUMBERS % 40000 + "SELECT length(json_patch(json_group_object('a' || x, 1), json_group_object('b' || x, 1))) FROM c",
        NUMBERS % 2000 + "SELECT json_set(j, " + ", ".join(f"'$.b{i}', 1" for i in range(60)) + ") FROM (SELECT json_group_object('a' || x, 1) AS j FROM c), c",
        NUMBERS % 200000 + "SELECT max(length(g)) FROM (SELECT group_concat(x) OVER (ORDER BY x ROWS 50000 PRECEDING) AS g FROM c)",
        NUMBERS % 100000 + f"SELECT x FROM c ORDER BY substr({TEXT}, 1, 2000) || x % 7 LIMIT 1",
        NUMBERS % 100000000 + "SELECT count(DISTINCT x) FROM c",
        "SELECT printf('%.*f', 900000, 1e300), printf('%900000d', 1), printf('%,.*f', 100000000, 1.0)",
        "SELECT count(*) FROM json_tree('" + "[" * 900 + "]" * 900 + "') a, json_tree('[1, 2]') b, span c, span d, span e",
        "SELECT 1 FROM " + ", ".join(f"span a{i}" for i in range(60)) + " WHERE " + " AND ".join(f"a{i}.parent = a{i + 1}.rowid" for i in range(59)),
        "SELECT count(*) FROM ops_raw a, ops_raw b, ops_raw c WHERE " + " OR ".join(f"a.name || b.name LIKE c.name || '%{i}%'" for i in range(100)),
        "SELECT x FROM (SELECT randomblob(900000) AS x FROM span a, span b) ORDER BY hex(substr(x, 1, 9)) LIMIT 1",
        ENDLESS,
    ]

    def test_every_query_is_ended(self):
        s = Server(self, "--query-time=1", RESNET)
        s.get("/api/sql", query="SELECT 1")
        for query in self.HOSTILE:
            for last in (False, True): # the machine may be busy with something else for a moment
                begin = time.time()
                a = s.ask("/api/sql", {"query": query})
                took = time.time() - begin
                self.assertIn(a.status, (200, 400, 422), (query, a.body[:300]))
                if took < 2 or last:
                    break
            self.assertLess(took, 2, query)
        self.assertEqual(children(s), [])
        self.alive(s)

    def test_hostile_queries_leave_others_their_turn(self):
        s = Server(self, "--query-time=2", RESNET)
        slow = [q for q in self.HOSTILE if "json_patch" in q] * 2
        answers = []
        threads = [threading.Thread(target=lambda q=q: answers.append(s.ask("/api/sql", {"query": q}))) for q in slow]
        for t in threads:
            t.start()
        time.sleep(0.5)
        begin = time.time()
        self.assertEqual(s.get("/api/sql", query="SELECT 7 AS n")["rows"], [[7]])
        self.assertLess(time.time() - begin, 4)
        for t in threads:
            t.join()
        self.assertEqual([a.status for a in answers], [422, 422])

    def test_queries_of_those_who_left_are_ended(self):
        s = Server(self, "--query-time=30", RESNET)
        s.get("/api/sql", query="SELECT 1 AS n")
        path = "/api/sql?" + urllib.parse.urlencode({"query": self.ENDLESS})
        clients = [self.open(s) for _ in range(6)]
        for c in clients:
            c.sendall(request(path.encode()))
        child_of(s)
        begin = time.time()
        for c in clients:
            c.close()
        self.assertEqual(s.get("/api/sql", query="SELECT 7 AS n")["rows"], [[7]])
        self.assertLess(time.time() - begin, 10)
        while children(s) and time.time() - begin < 10: # one that ends just now
            time.sleep(0.01)
        self.assertEqual(children(s), [])

    def test_a_query_that_dies_harms_nobody(self):
        s = Server(self, "--query-time=20", RESNET)
        for how, status, words in ((signal.SIGABRT, 500, "ended with signal 6"), (signal.SIGKILL, 422, "too much memory"), (signal.SIGXCPU, 422, "took too long")):
            answers = []
            t = threading.Thread(target=lambda: answers.append(s.ask("/api/sql", {"query": self.ENDLESS})))
            t.start()
            os.kill(child_of(s), how)
            t.join()
            self.assertEqual(answers[0].status, status, answers[0].body)
            self.assertIn(words, answers[0].json()["error"])
            self.alive(s)

    def test_queries_while_files_are_read_by_sqlite(self):
        """A child is the copy of a server whose other threads were at anything: also inside SQLite and malloc."""
        source = oracle.data("nsys", "2023.1_gtls", "report1__430cb02d.sqlite")
        paths = [os.path.join(self.tmp, f"{i}.sqlite") for i in range(4)]
        for path in paths:
            shutil.copy(source, path)
        s = Server(self, "--query-time=5", RESNET, *paths)
        inputs = {x["path"]: key for key, x in s.inputs().items()}
        s.get("/api/sql", input=inputs[RESNET], query="SELECT 0")
        begin, end, read, asked = time.time(), 60, [], 0 # 6 s, or on a slow machine until both have been at it

        def go_on():
            spent = time.time() - begin
            return spent < end and (spent < 6 or asked <= 20 or len(read) <= 4)

        def read_again(path):
            while go_on():
                os.utime(path)
                with contextlib.suppress(ConnectionError): # when the test has failed
                    read.append(s.ask("/api/aggregate", {"input": inputs[path]}, "POST", {"X-Opscope": "1"}).status) # looks at the file anew

        readers = [threading.Thread(target=read_again, args=(path,)) for path in paths]
        for t in readers:
            t.start()
        try:
            while go_on():
                asked += 1
                self.assertEqual(s.get("/api/sql", input=inputs[RESNET], query=f"SELECT {asked}")["rows"], [[asked]])
        finally:
            end = 0
            for t in readers:
                t.join()
        self.assertGreater(asked, 20)
        self.assertGreater(len(read), 4)

    def test_the_end_of_the_server_ends_its_queries(self):
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            s = Server(self, "--query-time=60", RESNET)
            client = self.open(s)
            client.sendall(request(b"/api/sql?query=" + urllib.parse.quote_plus(self.ENDLESS).encode()))
            child = child_of(s)
            if how == signal.SIGKILL:
                self.assertRaises(AssertionError, s.stop, how)
            else:
                s.stop(how, timeout=3)
            end = time.time() + 3
            while not has_ended(child) and time.time() < end:
                time.sleep(0.05)
            self.assertTrue(has_ended(child), how)

    @unittest.skipIf(os.environ.get("OPSCOPE_SANITIZED"), "the sanitizers keep the memory of a process unbounded")
    def test_memory_of_a_query(self):
        s = Server(self, "--query-time=20", RESNET)
        for query in ("SELECT count(*) FROM (SELECT randomblob(900000) AS x FROM span a, span b ORDER BY x)",
                      "SELECT a.name, b.name, c.name FROM span a, span b, span c", "SELECT hex(randomblob(400000)) FROM span LIMIT 250"):
            error = s.get("/api/sql", 422, query=query)["error"]
            self.assertRegex(error, "^SQL: the query was ended: (it took too much memory|its result is too long)$")
        self.assertLess(s.memory_kb(), 200000)
        self.alive(s)

    @unittest.skipIf(os.environ.get("OPSCOPE_SANITIZED"), "the sanitizers keep the memory of a process unbounded")
    def test_memory_of_answers(self):
        """An answer that is kept takes its own size, not that of the buffer that it was read into."""
        s = Server(self, SMALL)
        for n in range(450):
            s.get("/api/sql", query=f"SELECT name, count(*) AS n FROM span GROUP BY 1 LIMIT {n}")
            if n == 10:
                before = s.memory_kb()
        self.assertLess(s.memory_kb() - before, 20000)

    def test_long_text_of_a_trace_can_be_read(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "long.pt.trace.json")
        name = "n" * 3000000
        with open(path, "w") as f:
            f.write(json.dumps({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": name + str(i), "pid": 1, "tid": 1, "ts": i * 10, "dur": 5} for i in range(3)]}))
        s = Server(self, path)
        self.assertEqual(s.get("/api/sql", query="SELECT name FROM span ORDER BY name, start_ns")["rows"], [[name + str(i)] for i in range(3)])

    def test_large_results(self):
        s = Server(self, "--query-time=10", RESNET)
        for query, status in (("SELECT a.name, b.name, c.name FROM span a, span b, span c", 422), ("SELECT hex(zeroblob(500000000))", 422), ("SELECT zeroblob(1000000000)", 422),
                              ("SELECT printf('%1000000000d', 1)", None), ("SELECT group_concat(a.name || b.name) FROM span a, span b", None),
                              ("SELECT replace(hex(zeroblob(1000000)), '0', hex(zeroblob(1000000)))", 422), ("SELECT " + "(" * 5000 + "1" + ")" * 5000, 400)):
            a = s.ask("/api/sql", {"query": query}, timeout=90)
            self.assertIn(a.status, (status,) if status else (200, 400, 422), (query, a.body[:300]))
            self.assertLess(len(a.body), 300 << 20)
        self.alive(s)


class Turns(AttackCase):
    def test_reports_timelines_and_changes_at_once(self):
        """Everything at the same time, on inputs that change and that do not all fit into the memory."""
        for name in ("a", "b", "c"):
            shutil.copy(RESNET, os.path.join(self.tmp, name + ".pt.trace.json.gz"))
        kept = os.path.join(self.tmp, "kept.opscope")
        self.assertEqual(oracle.run("import", RESNET, "-o", kept)[0], 0)
        s = Server(self, "--memory=6M", self.tmp)
        keys = sorted(s.inputs())
        self.assertEqual(len(keys), 4)
        begin, end, bad = time.time(), time.time() + 8, []
        key_ops = ["", "aten::conv2d", "ProfilerStep#"]

        def ask(seed):
            r = random.Random(seed)
            while time.time() < end:
                key = r.choice(keys)
                path, args = r.choice([("/api/report/operators", {}), ("/api/report/steps", {"key_op": r.choice(key_ops)}), ("/api/report/operators", {"steps": "3"}),
                                       ("/api/timeline", {}), ("/api/timeline/tile", {"zoom": r.randrange(30), "index": 0}), ("/api/advise", {}),
                                       ("/api/timeline/event", {"kind": "span", "row": r.randrange(2000)}), ("/api/timeline/find", {"text": "conv"}),
                                       ("/api/report/memory", {}), ("/api/report/ops", {}), ("/api/report/modules", {}), ("/api/state", None),
                                       ("/api/sql", {"query": "SELECT * FROM report_operators_by_stack, span LIMIT 200"})])
                a = s.ask(path, {"input": key, **args} if args is not None else None, timeout=120)
                if a.status not in (200, 400, 422, 503):
                    bad.append((path, args, a.status, a.body[:200]))

        def change():
            k = 0
            while time.time() < end:
                name = os.path.join(self.tmp, random.Random(k).choice("abc") + ".pt.trace.json.gz")
                shutil.copy((RESNET, TRAINING)[0], name + ".new")
                os.rename(name + ".new", name)
                a = s.ask("/api/aggregate", {"input": next(x for x in keys if "kept" in x), "steps": f"{2 + k % 3}", "name": str(k)}, "POST", {"X-Opscope": "1"}, timeout=120)
                if a.status not in (200, 422):
                    bad.append(("aggregate", a.status, a.body[:200]))
                k += 1
                time.sleep(0.7)

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)] + [threading.Thread(target=change)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(bad, [])
        self.assertGreater(time.time() - begin, 5)
        self.alive(s, 30)

    def test_ends_amid_requests(self):
        for _ in range(3):
            s = Server(self, RESNET)
            stop = threading.Event()

            def ask():
                while not stop.is_set():
                    try:
                        s.ask("/api/report/operators", {"limit": random.randrange(100)}, timeout=10)
                        s.ask("/api/timeline", timeout=10)
                    except OSError:
                        pass
                    except Exception as e:  # an answer cut off in the middle
                        if "Incomplete" not in repr(e) and "BadStatus" not in repr(e) and "Remote" not in repr(e):
                            raise
            threads = [threading.Thread(target=ask) for _ in range(6)]
            for t in threads:
                t.start()
            time.sleep(0.7)
            s.stop()
            stop.set()
            for t in threads:
                t.join()


class Traces(AttackCase):
    def test_deep_and_odd_traces(self):
        def trace(name, events):
            with open(os.path.join(self.tmp, name + ".json"), "w") as f:
                f.write(json.dumps({"traceEvents": events}))

        def op(i, ts, dur, tid=1, **more):
            return {"ph": "X", "cat": "cpu_op", "name": f"op{i % 10}<script>alert(1)</script>\u2028\"", "pid": 1, "tid": tid, "ts": ts, "dur": dur, **more}
        trace("deep", [op(i, i, 100000 - 2 * i) for i in range(40000)])
        trace("tracks", [op(i, i, 1, tid=i) for i in range(5000)])
        trace("same", [op(i, 5, 0) for i in range(20000)])
        trace("long", [op(0, 0, 9.2e12), op(1, -9e12, 1), op(2, 9e15, 1)])
        trace("names", [{**op(i, i, 1), "name": "\u0000\u0007%s%n../" * 50 + str(i)} for i in range(100)])
        with open(os.path.join(self.tmp, "nested.json"), "w") as f:
            f.write('{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":1,"args":{"x":' + "[" * 400 + "]" * 400 + "}}]}")
        s = Server(self, self.tmp)
        self.assertEqual(len(s.inputs()), 6)
        for key in s.inputs():
            for path, args in (("/api/timeline", {}), ("/api/timeline/tile", {"zoom": 42, "index": 0}), ("/api/timeline/tile", {"zoom": 0, "index": 0}),
                               ("/api/timeline/event", {"kind": "span", "row": 0}), ("/api/timeline/find", {"text": "op"}), ("/api/report/operators", {}),
                               ("/api/report/overview", {}), ("/api/report/modules", {}), ("/api/advise", {}), ("/api/sql", {"query": "SELECT count(*) FROM span"})):
                a = s.ask(path, {"input": key, **args}, timeout=120)
                self.assertIn(a.status, (200, 422), (key, path, a.body[:300]))
                json.loads(a.body)


class Files(AttackCase):
    """Files that are not what they were when they were found."""

    def served(self, **files):
        folder = os.path.join(self.tmp, "d")
        os.mkdir(folder)
        for name, text in files.items():
            with open(os.path.join(folder, name + ".json"), "w", encoding="ascii") as f:
                f.write(text)
        return folder

    @staticmethod
    def trace(name, n=1):
        return '{"traceEvents":[' + ",\n".join('{"ph":"X","cat":"cpu_op","name":"%s","pid":1,"tid":1,"ts":%d,"dur":1}' % (name, 2 * i) for i in range(1000000, 1000000 + n)) + "]}"

    def names(self, s, key):
        t = s.get("/api/report/operators", input=key)
        at = [c["id"] for c in t["columns"]].index("name")
        return {r[at] for r in t["rows"]}

    def test_a_pipe_in_place_of_a_file_holds_up_nobody(self):
        folder = self.served(a=self.trace("a"), b=self.trace("b"))
        s = Server(self, folder)
        os.unlink(os.path.join(folder, "a.json"))
        os.mkfifo(os.path.join(folder, "a.json"))
        self.assertIn("no longer a regular file", s.get("/api/report/operators", 422, input="d/a/default")["error"])
        self.assertEqual(self.names(s, "d/b/default"), {"b"})

    def test_files_that_become_pipes_now_and_then_hold_up_nobody(self):
        folder, stop = self.served(b=self.trace("b")), threading.Event()
        sources = {"a.json": os.path.join(folder, "b.json"), "a.opscope": os.path.join(self.tmp, "saved.opscope")}
        self.assertEqual(oracle.run("import", sources["a.json"], "-o", sources["a.opscope"])[0], 0)
        for name, source in sources.items():
            shutil.copy(source, os.path.join(folder, name))
            for i in range(50): # each is looked at, every few seconds
                os.symlink(name, os.path.join(folder, f"link{i}-{name}"))
        s = Server(self, folder)

        def swap(name):
            """A file and a pipe take each other's place: between a look at it and its opening, too."""
            new = os.path.join(self.tmp, name)
            while not stop.is_set():
                for make in (os.mkfifo, lambda to: os.link(sources[name], to)):
                    make(new)
                    os.rename(new, os.path.join(folder, name))

        swappers = [threading.Thread(target=swap, args=(name,)) for name in sources]
        for t in swappers:
            t.start()
        try:
            end = time.time() + 8
            while time.time() < end:
                for key in s.inputs():
                    a = s.ask("/api/report/operators", {"input": key}, timeout=20)
                    self.assertIn(a.status, (200, 422), a.body)
        finally:
            stop.set()
            for t in swappers:
                t.join()
        self.assertEqual(self.names(s, "d/b/default"), {"b"})
        shutil.copy(os.path.join(folder, "b.json"), os.path.join(folder, "later.json"))
        end = time.time() + 20
        while "d/later/default" not in s.inputs():
            self.assertLess(time.time(), end)
            time.sleep(0.1)

    def test_two_versions_are_not_mixed(self):
        """Written to while it is read, it is read again."""
        folder, n = self.served(), 300000
        text = self.trace("mid", n).encode()
        ends = text.index(b'"mid"') + 1, text.rindex(b'"mid"') + 1
        for i in range(3):
            with open(os.path.join(folder, f"{i}.json"), "wb") as f:
                f.write(text)
                for at in ends:
                    f.seek(at)
                    f.write(b"old")
        s = Server(self, folder)
        for i in range(3):
            key, got = f"d/{i}/default", []
            with open(os.path.join(folder, f"{i}.json"), "r+b", buffering=0) as f:
                asks = threading.Thread(target=lambda k=key, to=got: to.append(self.names(s, k)))
                asks.start()
                while (state := s.inputs()[key])["state"] in ("found", "queued") or (state["state"] == "loading" and not state["done_bytes"]):
                    pass
                if state["state"] == "loading":  # stopped: what lies between the two writes is a content of the file, too
                    s.process.send_signal(signal.SIGSTOP)
                    for at in ends:
                        os.pwrite(f.fileno(), b"new", at)
                    s.process.send_signal(signal.SIGCONT)
                asks.join()
            self.assertIn(got, ([{"mid", "old"}], [{"mid", "new"}]))

    def test_a_file_that_never_rests_is_shown_with_its_problem(self):
        folder = self.served(a=self.trace("a", 100000))
        s, stop = Server(self, folder), threading.Event()

        def touch():
            k = 0
            while not stop.is_set():
                k += 1
                os.utime(os.path.join(folder, "a.json"), ns=(k, k))

        toucher = threading.Thread(target=touch)
        toucher.start()
        try:
            end, seen = time.time() + 120, None
            while not seen and time.time() < end:
                self.assertEqual(self.names(s, "d/a/default"), {"a"})
                seen = s.inputs()["d/a/default"].get("problems")
        finally:
            stop.set()
            toucher.join()
        self.assertEqual(seen, 1)

    def test_names_that_are_not_utf8(self):
        folder = os.fsencode(self.served())
        for name in (b"x\xff", b"x\xfe"):
            with open(os.path.join(folder, name + b".json"), "w", encoding="ascii") as f:
                f.write(self.trace(name[1:].hex()))
        s = Server(self, os.fsdecode(folder))
        keys = sorted(s.inputs())
        self.assertEqual(keys, ["d/x\ufffd/default", "d/x\ufffd/default~2"])
        self.assertEqual([self.names(s, k) for k in keys], [{"fe"}, {"ff"}])
        self.assertEqual(s.get("/data/plugin/pytorch_profiler/workers", run="d", view="Overview"), ["x\ufffd"])


if __name__ == "__main__":
    oracle.main()
