"""`opscope serve`: its answers are those of the command line, it finds, loads, watches and lets go of inputs, and it says no with a reason."""
import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import nsys_db
import oracle
import segment
from served import Server

SMALL = oracle.synthetic("two_steps_overlap")
TRAINING = oracle.synthetic("training_gpu")
RESNET = os.path.join(oracle.ROOT, "tests", "data", "torch214_cpu_resnet.json.gz")


def printed(*args):
    code, out, err = oracle.run(*args, "--format=json")
    return json.loads(out) if code == 0 else err.decode().strip()


def cpu_of(pid):
    with open(f"/proc/{pid}/stat") as f:
        return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def unpacked(lane):
    """Items of a tile: start, duration, busy, count, row, name, category."""
    end = row = 0
    for i in range(0, len(lane), 7):
        gap, duration, idle, count, further, name, category = lane[i:i + 7]
        start, row = end + gap, row + further
        end = start + duration
        yield [start, duration, duration - idle, count, row, name, category]


class ServeCase(oracle.Case):
    def setUp(self):
        super().setUp()
        if oracle.run("help")[1].find(b"\n  serve ") < 0:
            self.skipTest("built without libmicrohttpd")
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)

    def copy(self, source, name):
        path = os.path.join(self.tmp, name)
        shutil.copy(source, path + ".new")
        os.rename(path + ".new", path)
        return path

    def until(self, s, key, state, seconds=20):
        end = time.time() + seconds
        while True:
            got = s.inputs().get(key, {})
            if got.get("state") == state:
                return got
            self.assertLess(time.time(), end, f"{key}: {got}, not {state}")
            time.sleep(0.1)


class Answers(ServeCase):
    """What is asked for by HTTP is what the command line prints."""

    def equal_reports(self, path, of=1):
        s = Server(self, path)
        reports = s.get("/api/reports")["reports"]
        self.assertLessEqual({r["name"] for r in reports}, set(oracle.run("help")[1].decode().split()))
        compared = rows = 0
        for r in reports:
            for args in oracle.part([{}] + [{"group_by": g.replace(":N", ":2")} for g in r["group_by"]] + [{"compat": c} for c in r["compat"]], of):
                want = printed("report", r["name"], path, *(f"--{k.replace('_', '-')}={v}" for k, v in args.items()))
                a = s.ask("/api/report/" + r["name"], args)
                if isinstance(want, str):
                    self.assertIn(a.status, (400, 422), (r["name"], args, a.body[:300]))
                    self.assertIn(a.json()["error"].split(":")[-1], want)
                    continue
                self.assertEqual(a.status, 200, (r["name"], args, a.body[:300]))
                got = a.json()
                self.assertEqual(got, want, (r["name"], args))
                compared += 1
                rows += len(got["rows"])
        self.assertGreater(compared, 30)
        self.assertGreater(rows, 300)

    def test_reports_of_a_training(self):
        self.equal_reports(TRAINING)

    def test_reports_of_a_cpu_trace(self):
        if oracle.SANITIZED:
            self.skipTest("the reports of a training are the same ones")
        self.equal_reports(RESNET, of=3)

    def test_reports_of_a_real_gpu_trace(self):
        if oracle.SANITIZED:
            self.skipTest("a hundred questions: test_reports_of_a_training asks the same of a smaller trace")
        self.equal_reports(oracle.data("tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz"), of=6)

    def test_choices(self):
        s = Server(self, SMALL)
        for args in ({"steps": "1..1"}, {"steps": "2.."}, {"key_op": "aten::to"}, {"steps": "1", "key_op": "ProfilerStep#"}):
            want = printed("report", "operators", SMALL, *(f"--{k.replace('_', '-')}={v}" for k, v in args.items()))
            a = s.ask("/api/report/operators", args)
            if isinstance(want, str):
                self.assertEqual(a.status, 400, (args, a.body))
            else:
                self.assertEqual(a.json(), want, args)

    def test_a_key_op_stays_with_its_request(self):
        s = Server(self, RESNET)
        want = [s.get("/api/" + x) for x in ("timeline", "advise", "report/steps")]
        key = s.get("/api/report/operators")["rows"][0][0]
        for i, x in enumerate(("timeline", "advise", "report/steps")):
            fresh = Server(self, RESNET)
            fresh.ask("/api/report/steps", {"key_op": key})
            self.assertEqual(fresh.get("/api/" + x), want[i], x)

    def test_findings(self):
        for path in (TRAINING, RESNET):
            s = Server(self, path)
            self.assertEqual(s.get("/api/advise"), printed("advise", path))
            self.assertEqual(s.get("/api/advise", steps="1.."), printed("advise", path, "--steps=1.."))
            refused = s.get("/api/advise", 400, compat="nothing")["error"]
            self.assertRegex(refused, "expected ")
            with self.subTest(path=path):
                self.assertEqual(s.get("/api/advise", compat="torch"), printed("advise", path, "--compat=torch"))
                self.assertRegex(refused, "expected .*torch")

    def test_diff(self):
        s = Server(self, SMALL, TRAINING, RESNET)
        keys = {os.path.basename(i["path"]): i["input"] for i in s.get("/api/state")["inputs"]}
        of = {p: keys[os.path.basename(p)] for p in (SMALL, TRAINING, RESNET)}
        steps = [r[0] for r in printed("report", "steps", RESNET)["rows"]]
        for more in ({}, {"by": "op"}, {"a_steps": str(steps[0]), "b_steps": str(steps[-1])}):
            sides = [[RESNET, *([f"--steps={more[x]}"] if x in more else [])] for x in ("a_steps", "b_steps")]
            want = printed("diff", *sides[0], *sides[1], *(f"--by={v}" for k, v in more.items() if k == "by"))
            got = s.get("/api/diff", a=of[RESNET], b=of[RESNET], **more)
            self.assertEqual({k: v for k, v in got.items() if k != "input"}, {k: v for k, v in want.items() if k != "input"}, more)
        self.assertIn("these are not two runs of one program", s.get("/api/diff", 422, a=of[SMALL], b=of[TRAINING])["error"])
        self.assertTrue(s.get("/api/diff", a=of[SMALL], b=of[TRAINING], force="1")["sections"])
        self.assertIn("no input 'x'", s.get("/api/diff", 404, a=of[SMALL], b="x")["error"])
        self.assertIn("by=x", s.get("/api/diff", 400, a=of[SMALL], b=of[SMALL], by="x")["error"])
        self.assertIn("'b' was expected", s.get("/api/diff", 400, a=of[SMALL])["error"])
        self.assertEqual(s.get("/api/diff", 422, a=of[RESNET], b=of[TRAINING])["error"], printed("diff", RESNET, TRAINING).split("opscope: ", 1)[1])

    def test_sql(self):
        s = Server(self, TRAINING)
        for q in ("SELECT * FROM operators", "SELECT * FROM span LIMIT 5", "SELECT count(*) AS n FROM findings", "SELECT 1 AS one"):
            self.assertEqual(s.get("/api/sql", query=q), printed("sql", TRAINING, q))
        for q in ("DROP TABLE span", "SELECT * FROM nothing", "PRAGMA writable_schema=1", "ATTACH 'x' AS y", "SELECT 1; SELECT 2", "",
                  "SELECT load_extension('x')", "SELECT readfile('/etc/passwd')"):
            self.assertIn("SQL", s.get("/api/sql", 400, query=q)["error"])

    def test_sort_filter_and_pages(self):
        s = Server(self, TRAINING)
        whole = oracle.Table(s.get("/api/report/operators"))
        ids = whole.ids
        name, calls = ids.index("name"), ids.index("calls")
        rows = [[r[i] for i in ids] for r in whole.rows]
        self.assertGreater(len(rows), 5)

        def ask(**args):
            return s.get("/api/report/operators", **args)
        self.assertEqual(ask(sort="calls")["rows"], sorted(rows, key=lambda r: r[calls]))
        self.assertEqual(ask(sort="-calls")["rows"], sorted(rows, key=lambda r: -r[calls]))
        self.assertEqual(ask(sort="name")["rows"], sorted(rows, key=lambda r: r[name]))
        self.assertEqual(ask(filter="MM")["rows"], [r for r in rows if "mm" in r[name].lower()])
        for offset in (0, 2, len(rows) - 1, len(rows), len(rows) + 7):
            for limit in (0, 1, 3, 1000):
                want = rows[offset:offset + limit] if limit else rows[offset:]
                self.assertEqual(ask(offset=offset, limit=limit)["rows"], want, (offset, limit))
        self.assertEqual(ask(columns="calls,name", limit=2)["rows"], [[r[calls], r[name]] for r in rows[:2]])
        self.assertEqual(ask(sort="-calls", filter="a", offset=1, limit=2)["rows"],
                         [r for r in sorted(rows, key=lambda r: -r[calls]) if "a" in r[name].lower()][1:3])

    def test_a_slice_that_the_next_cuts_off_has_its_own_duration(self):
        """"crossing" stands below "outer", which it outlasts; in its row "below" begins before its end."""
        path = os.path.join(self.tmp, "cut.json")
        with open(path, "w") as f:
            json.dump({"schemaVersion": 1, "traceEvents": [
                {"ph": "X", "cat": "cpu_op", "name": name, "pid": 100, "tid": 1, "ts": ts, "dur": dur}
                for name, ts, dur in (("outer", 100, 100), ("crossing", 150, 100), ("after", 210, 90), ("below", 220, 10))]}, f)
        s = Server(self, path)
        tile = s.get("/api/timeline/tile", zoom=8, index=0)
        items = [i for t in tile["tracks"] for lane in t["lanes"] for i in unpacked(lane)]
        self.assertEqual({tile["names"][str(i[5])]: i[:4] for i in items},
                         {"outer": [0, 100000, 100000, 1], "crossing": [50000, 70000, 100000, 1],
                          "after": [110000, 90000, 90000, 1], "below": [120000, 10000, 10000, 1]})
        self.assertIn("no such events", s.get("/api/timeline/event", 422, kind="gpu", row=0)["error"])

    def test_an_op_of_many_inputs(self):
        """A long list of tensors: the first inputs are listed, and how many there are is said."""
        path = os.path.join(self.tmp, "many.sqlite")
        nsys_db.make(path, {"StringIds": [], "NVTX_EVENTS": [
            nsys_db.nvtx(0, 10, "aten::rand, op_id = 1", 7, 1), nsys_db.nvtx(20, 30, "aten::neg, op_id = 2, input_op_ids = [(1,0)]", 7, 1),
            nsys_db.nvtx(40, 50, f"aten::cat, op_id = 3, input_op_ids = [{', '.join(['(1,0)'] * 5000 + ['(9,0)'] * 40 + ['(2,0)'])}]", 7, 1)]})
        s = Server(self, path)
        rows = {name: row for row, name in s.get("/api/sql", query="SELECT rowid, name FROM span")["rows"]}
        cat, rand = (s.get("/api/timeline/event", kind="span", row=rows[name])["graph"] for name in ("aten::cat", "aten::rand"))
        self.assertEqual((len(cat["edges"]), cat["inputs"], cat["users"], cat["left_out"]), (201, 5041, 0, 5042 - 201))
        self.assertEqual(cat["edges"][0], [1, 0, 0, 0, ""])
        self.assertEqual([n["name"] for n in cat["nodes"]], ["aten::cat", "aten::rand", "aten::neg"])
        self.assertEqual((len(rand["edges"]), rand["inputs"], rand["users"], rand["left_out"]), (400, 0, 5001, 5002 - 400))

    def test_csv(self):
        s = Server(self, TRAINING)
        a = s.ask("/api/report/operators", {"format": "csv"})
        self.assertEqual(a.body, oracle.run("report", "operators", TRAINING, "--format=csv")[1])
        self.assertEqual(a.headers["content-type"], "text/csv; charset=utf-8")
        self.assertEqual(a.headers["content-disposition"], 'attachment; filename="training_gpu_operators.csv"')
        a = s.ask("/api/report/overview", {"format": "csv", "section": "steps"})
        self.assertEqual(a.body, oracle.run("report", "overview", TRAINING, "--format=csv", "--section=steps")[1])
        odd = self.copy(TRAINING, 'we"ird\n\\x.json')
        s = Server(self, odd)
        self.assertEqual(s.ask("/api/report/operators", {"format": "csv"}).headers["content-disposition"],
                         'attachment; filename="we_ird__x_operators.csv"')


class Protocol(ServeCase):
    def test_validators_packing_and_head(self):
        s = Server(self, RESNET)
        plain = s.ask("/api/report/operators")
        packed = s.ask("/api/report/operators", headers={"Accept-Encoding": "br, gzip;q=0.5"})
        refused = s.ask("/api/report/operators", headers={"Accept-Encoding": "gzip;q=0"})
        self.assertNotIn("content-encoding", plain.headers)
        self.assertEqual(packed.headers["content-encoding"], "gzip")
        self.assertLess(len(packed.raw), len(plain.raw) / 2)
        self.assertEqual((packed.body, refused.raw), (plain.raw, plain.raw))
        for a in (plain, packed, refused):
            self.assertEqual((a.headers["vary"], a.headers["cache-control"]), ("Accept-Encoding", "no-cache"))
        # Other bytes, another strong validator: each is for its own form alone.
        self.assertEqual(refused.headers["etag"], plain.headers["etag"])
        self.assertNotEqual(packed.headers["etag"], plain.headers["etag"])
        for known, asked, status in ((packed, "gzip", 304), (packed, "identity", 200), (plain, "gzip", 200)):
            a = s.ask("/api/report/operators", headers={"If-None-Match": known.headers["etag"], "Accept-Encoding": asked})
            self.assertEqual(a.status, status)
            self.assertEqual(a.headers["etag"], (packed if asked == "gzip" else plain).headers["etag"])
        # Kept in both forms, each by itself.
        self.assertEqual(s.ask("/api/report/operators", headers={"Accept-Encoding": "gzip"}).raw, packed.raw)
        self.assertEqual(s.ask("/api/report/operators").raw, plain.raw)
        head = s.ask("/api/report/operators", method="HEAD")
        self.assertEqual((head.status, head.raw, head.headers["content-length"]), (200, b"", str(len(plain.raw))))
        for tag, status in ((plain.headers["etag"], 304), (f'"x", {plain.headers["etag"]}', 304), ("*", 304), ('"x"', 200)):
            a = s.ask("/api/report/operators", headers={"If-None-Match": tag})
            self.assertEqual((a.status, a.raw == b""), (status, status == 304), tag)

    def test_pages_and_their_rules(self):
        s = Server(self, SMALL)
        a = s.ask("/")
        self.assertEqual((a.status, a.headers["content-type"], a.body), (200, "text/html; charset=utf-8", s.ask("/index.html").body))
        for path in ("/", "/api/state", "/api/nothing", "/nothing"):
            h = s.ask(path).headers
            self.assertEqual((h["x-content-type-options"], h["x-frame-options"], h["referrer-policy"]), ("nosniff", "DENY", "no-referrer"), path)
            self.assertIn("default-src 'none'", h["content-security-policy"])
            self.assertNotIn("access-control-allow-origin", h)

    def test_refusals_say_why(self):
        s = Server(self, SMALL, TRAINING)
        good = {"input": next(iter(s.inputs()))}
        cases = [
            (404, "/nothing", {}, "no page '/nothing'"),
            (404, "/api/report/", good, "no report ''"),
            (404, "/api/report/nothing", good, "no report 'nothing'"),
            (404, "/api/report/operators", {"input": "a/b/c"}, "no input 'a/b/c'"),
            (400, "/api/report/operators", {}, "the argument 'input' was expected"),
            (400, "/api/report/operators", {**good, "sort": "nothing"}, "nothing"),
            (400, "/api/report/operators", {**good, "columns": "name,nothing"}, "nothing"),
            (400, "/api/report/operators", {**good, "limit": "-1"}, "limit=-1"),
            (400, "/api/report/operators", {**good, "limit": "x"}, "limit=x"),
            (400, "/api/report/operators", {**good, "offset": "99999999999999999999"}, "offset="),
            (400, "/api/report/operators", {**good, "format": "xml"}, "json, csv"),
            (400, "/api/report/operators", {**good, "section": "x"}, "no such table"),
            (400, "/api/report/operators", {**good, "group_by": "x"}, "group-by=x"),
            (400, "/api/report/operators", {**good, "compat": "x"}, "has no --compat" if oracle.absent("tb_plugin") else "compat=x"),
            (400, "/api/report/operators", {**good, "steps": "9..1"}, "steps=9..1"),
            (400, "/api/report/operators", {**good, "steps": ""}, "steps="),
            (400, "/api/report/operators", {**good, "device": "0"}, "device"),
            (400, "/api/report/operators", {**good, "aggregation": "7"}, "aggregation=7"),
            (400, "/api/report/operators", {**good, "key_op": "nothing"}, "nothing"),
            (400, "/api/report/operators", {**good, "colour": "red"}, "no argument 'colour'"),
            (400, "/api/state", {"x": "1"}, "no argument 'x'"),
            (400, "/api/sql", good, "'query' was expected"),
            (422, "/api/report/memory", good, "memory"),
            (400, "/api/timeline/tile", {**good, "zoom": "99", "index": "0"}, "zoom=99"),
            (400, "/api/timeline/tile", {**good, "zoom": "10", "index": "-1"}, "index=-1"),
            (400, "/api/timeline/tile", {**good, "zoom": "10", "index": "0", "tracks": "9-1"}, "tracks"),
            (400, "/api/timeline/event", {**good, "kind": "gpu", "row": "999999"}, "row=999999"),
            (400, "/api/timeline/event", {**good, "kind": "x", "row": "0"}, "span, gpu"),
        ]
        for status, path, args, reason in cases:
            self.assertIn(reason, s.get(path, status, **args)["error"], (path, args))
        # Browsers log what is above 399; the viewer's own pages are told aside.
        url = "/api/report/memory?input=%s" % next(iter(s.inputs()))
        a = s.ask(url, headers={"X-Opscope": "1"})
        self.assertEqual((a.status, a.headers["x-opscope-status"], a.json()), (200, "422", s.ask(url).json()))
        self.assertNotIn("x-opscope-status", s.ask("/api/state", headers={"X-Opscope": "1"}).headers)
        a = s.ask("/api/state?x=1&x=2")
        self.assertEqual(a.status, 400)
        twice = s.ask("/api/report/operators?input=%s&input=b" % next(iter(s.inputs())))
        self.assertEqual((twice.status, "twice" in twice.json()["error"]), (400, True))
        for method in ("PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "FOO"):
            a = s.ask("/api/state", method=method)
            self.assertEqual((a.status, a.headers["allow"]), (405, "GET, HEAD, POST"), method)
            self.assertIn("GET", a.json()["error"])
        self.assertIn("GET was expected", s.post("/api/state", status=405)["error"])
        self.assertEqual(s.post("/", status=404)["error"], "no page '/'")

    def test_prefix(self):
        s = Server(self, "--path-prefix=/a/b/", SMALL)
        self.assertEqual(s.url, f"http://localhost:{s.port}/a/b/")
        for path, status in (("/a/b/", 200), ("/a/b/api/state", 200), ("/a/b", 404), ("/", 404), ("/api/state", 404), ("/a/bapi/state", 404)):
            self.assertEqual(s.ask(path).status, status, path)
        for bad in ("x", "/a?b", "/a b", "/%41", '/"'):
            code, _, err = oracle.run("serve", "--path-prefix=" + bad, "-p0", SMALL)
            self.assertEqual((code, b"a path like /x" in err), (2, True), bad)

    def test_host(self):
        s = Server(self, "--allow-host=profiles.example", SMALL)
        for host, status in (("localhost", 200), ("LOCALHOST:%d" % s.port, 200), ("127.0.0.1:1", 200), ("[::1]:9", 200), ("profiles.example", 200),
                             ("evil.example", 403), ("localhost.evil.example", 403), ("127.0.0.1.nip.io", 403), ("", 403), ("localhost@evil", 403)):
            a = s.ask("/api/state", headers={"Host": host})
            self.assertEqual(a.status, status, host)
        self.assertIn("--allow-host=evil.example", s.ask("/", headers={"Host": "evil.example:80"}).json()["error"])

    def test_ten_thousand_files(self):
        """The first look compares no file with all others; two folders of one name have files of one name."""
        folders = [os.path.join(self.tmp, x, "run") for x in "abc"]
        for folder, n in zip(folders, (10000, 3, 1000)):
            os.makedirs(folder)
            shutil.copy(SMALL, os.path.join(folder, "host0.pt.trace.json"))
            for i in range(1, n):
                os.link(os.path.join(folder, "host0.pt.trace.json"), os.path.join(folder, f"host{i}.pt.trace.json"))
        few, s = cpu_of(Server(self, folders[2]).process.pid), Server(self, *folders[:2])
        self.assertLess(cpu_of(s.process.pid), 20 * few + 0.1)
        inputs = s.inputs()
        self.assertEqual(len(inputs), 10003)
        self.assertEqual([i["worker"] for i in inputs.values()], sorted((i["worker"] for i in inputs.values()), key=lambda w: int(w[4:])))
        self.assertEqual(sorted(k for k in inputs if "~" in k), [f"run/host{i}/default~2" for i in range(3)])
        self.assertEqual(s.get("/api/report/steps", input="run/host1/default~2")["rows"], s.get("/api/report/steps", input="run/host1/default")["rows"])

    def test_usage(self):
        for args, status, why in ((["serve"], 2, "an INPUT was expected"), (["serve", "-p", "70000", SMALL], 2, "--port=70000"),
                                  (["serve", "--editor=javascript://{file}", SMALL], 2, "javascript: is no scheme of an editor"),
                                  (["serve", "--editor=HTTPS://host/{file}", SMALL], 2, "HTTPS: is no scheme of an editor"),
                                  (["serve", "--editor=ms-word://{file}", SMALL], 2, "ms-word: is no scheme of an editor"),
                                  (["serve", "--editor=x://{line}", SMALL], 2, "an address with {file} and {line}"),
                                  (["serve", "--editor={file}://x", SMALL], 2, "an address with {file} and {line}"),
                                  (["serve", "--editor=x://{file}<b>", SMALL], 2, "an address with {file} and {line}"),
                                  (["serve", "-p", "0", "/nowhere"], 1, "/nowhere"), (["serve", "-p", "0", "-b", "256.1.1.1", SMALL], 1, "--bind=256.1.1.1")):
            code, out, err = oracle.run(*args)
            self.assertEqual((code, out, why in err.decode(), err.count(b"\n")), (status, b"", True, 1), (args, err))
        s = Server(self, SMALL)
        code, _, err = oracle.run("serve", "-p", s.port, SMALL)
        self.assertEqual((code, b"cannot listen at localhost:" in err), (1, True), err)

    @oracle.of("dlprof")
    def test_dlprofviewer(self):
        link = os.path.join(self.tmp, "dlprofviewer")
        os.symlink(oracle.OPSCOPE, link)
        s = Server(self, "-b", "127.0.0.1", SMALL, program=link)
        self.assertEqual(s.url, f"http://127.0.0.1:{s.port}/")
        self.assertEqual(s.get("/api/report/operators"), printed("report", "operators", SMALL))
        dldb = Server(self, oracle.data("dlprof", "w_relu", "dlprof_dldb.sqlite"), program=link)
        self.assertEqual(dldb.get("/api/report/ops", compat="dlprof")["rows"],
                         printed("report", "ops", oracle.data("dlprof", "w_relu", "dlprof_dldb.sqlite"), "--compat=dlprof")["rows"])

    def test_http_is_loaded_by_the_server_alone(self):
        needed = subprocess.run([oracle.OPSCOPE, "--version"], env={**os.environ, "LD_TRACE_LOADED_OBJECTS": "1"}, capture_output=True).stdout
        self.assertIn(b"libsqlite3", needed)
        self.assertNotRegex(needed, b"microhttpd|gnutls")
        # a library that is none
        with open(os.path.join(self.tmp, "libmicrohttpd.so.12"), "wb"):
            pass
        env = {**os.environ, "LD_LIBRARY_PATH": self.tmp}
        p = subprocess.run([oracle.OPSCOPE, "serve", "-p", "0", SMALL], env=env, capture_output=True, timeout=60)
        self.assertEqual((p.returncode, p.stdout, p.stderr.count(b"\n")), (1, b"", 1))
        self.assertRegex(p.stderr, b"^opscope: the server needs libmicrohttpd.so.12, which cannot be loaded: .*file too short")
        self.assertEqual(subprocess.run([oracle.OPSCOPE, "report", "operators", SMALL], env=env, capture_output=True).returncode, 0)

    def test_signals_end_it(self):
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            Server(self, SMALL).stop(how)


class Library(ServeCase):
    def test_loaded_when_asked(self):
        s = Server(self, SMALL)
        key, x = next(iter(s.inputs().items()))
        self.assertEqual((x["state"], x["path"], x["span"]), ("found", SMALL, "default"))
        a = s.ask("/api/report/operators", {"wait": "0"})
        self.assertEqual((a.status, a.json()["state"]), (202, "loading"))
        x = self.until(s, key, "ready")
        self.assertEqual(x["format"], "kineto")
        self.assertEqual(s.ask("/api/report/operators", {"wait": "0"}).status, 200)
        self.assertEqual(x["events"], len(oracle.events(oracle.load(SMALL))))

    def test_watched(self):
        s = Server(self, self.tmp)
        self.assertEqual(s.inputs(), {})
        path = self.copy(SMALL, "a.pt.trace.json")
        run = os.path.basename(self.tmp)
        key = f"{run}/a/default"
        self.until(s, key, "found")
        first = s.get("/api/report/operators", input=key)
        # other content
        self.copy(TRAINING, "a.pt.trace.json")
        self.until(s, key, "found")
        second = s.get("/api/report/operators", input=key)
        self.assertNotEqual(first["rows"], second["rows"])
        self.assertEqual(second["rows"], printed("report", "operators", TRAINING)["rows"])
        # damaged, and mended
        with open(path, "wb") as f:
            f.write(b"{\"traceEvents\": nonsense")
        self.until(s, key, "found")
        reason = s.get("/api/report/operators", 422, input=key)["error"]
        self.assertIn("a.pt.trace.json", reason)
        self.assertEqual(s.inputs()[key]["error"], reason)
        self.copy(SMALL, "a.pt.trace.json")
        self.until(s, key, "found")
        self.assertEqual(s.get("/api/report/operators", input=key)["rows"], first["rows"])
        # gone while it is in memory: it can still be shown
        os.unlink(path)
        time.sleep(4)
        self.assertEqual(s.get("/api/report/operators", input=key)["rows"], first["rows"])
        # another one; gone before it was read
        other = self.copy(SMALL, "b.pt.trace.json")
        self.until(s, f"{run}/b/default", "found")
        os.unlink(other)
        self.until(s, f"{run}/b/default", "gone")
        self.assertIn("b.pt.trace.json", s.get("/api/report/operators", 422, input=f"{run}/b/default")["error"])

    def test_capture_that_grows(self):
        """It is written through memory: neither size nor time of the file tell."""
        def planted(ranges):
            c = segment.Segment(last=segment.BASE + 100 * ranges)
            for i in range(ranges):
                c.push(1, f"step {i}", segment.BASE + 100 * i)
                c.pop(1, segment.BASE + 100 * i + 50)
            return c.bytes().ljust(1 << 16, b"\0")
        path = os.path.join(self.tmp, f"node-100-{segment.BASE}.seg")
        with open(path, "wb") as f:
            f.write(planted(1))
        at = os.stat(path).st_mtime_ns
        s = Server(self, self.tmp)
        (key, _), = s.inputs().items()
        self.assertEqual([r[0] for r in s.get("/api/report/steps", input=key)["rows"]], [0])
        with open(path, "r+b") as f:
            f.write(planted(3))
        os.utime(path, ns=(at, at))
        self.until(s, key, "found")
        self.assertEqual([r[0] for r in s.get("/api/report/steps", input=key)["rows"]], [0, 1, 2])

    def test_runs_workers_and_spans(self):
        for name in ("r1/w0.1.pt.trace.json", "r1/w0.2.pt.trace.json", "r1/w1.1.pt.trace.json", "r2/x/w0.pt.trace.json", "top.json"):
            os.makedirs(os.path.dirname(os.path.join(self.tmp, name)), exist_ok=True)
            shutil.copy(SMALL, os.path.join(self.tmp, name))
        s = Server(self, self.tmp)
        top = os.path.basename(self.tmp)
        self.assertEqual(sorted(s.inputs()), sorted(["r1/w0/1", "r1/w0/2", "r1/w1/1", "r2/x/w0/default", f"{top}/top/default"]))

    def test_version_grows(self):
        s = Server(self, self.tmp)
        before = s.get("/api/state")["version"]
        self.copy(SMALL, "a.json")
        self.until(s, f"{os.path.basename(self.tmp)}/a/default", "found")
        self.assertGreater(s.get("/api/state")["version"], before)

    def test_links_that_lead_out(self):
        folder, beside = os.path.join(self.tmp, "folder"), os.path.join(self.tmp, "beside")
        os.mkdir(folder)
        os.mkdir(beside)
        self.copy(SMALL, "beside/secret.pt.trace.json")
        self.copy(SMALL, "folder/own.pt.trace.json")
        links = {"link.pt.trace.json": os.path.join(beside, "secret.pt.trace.json"), "all": beside, "within.pt.trace.json": "own.pt.trace.json", "gone.pt.trace.json": "nothing"}
        for name, to in links.items():
            os.symlink(to, os.path.join(folder, name))
        left_out = [os.path.join(folder, name) for name in ("all", "link.pt.trace.json")]
        s = Server(self, folder, quiet=False)
        state = s.get("/api/state")
        self.assertEqual((sorted(x["worker"] for x in state["inputs"]), state["left_out"]), (["own", "within"], left_out))
        self.assertEqual(s.get("/api/report/operators", input="folder/within/default")["rows"], printed("report", "operators", SMALL)["rows"])
        # a link that comes later, and a file that becomes one
        os.symlink(beside, os.path.join(folder, "zlater"))
        self.until_left_out(s, left_out + [os.path.join(folder, "zlater")])
        os.symlink(links["link.pt.trace.json"], os.path.join(folder, "new"))
        os.rename(os.path.join(folder, "new"), os.path.join(folder, "own.pt.trace.json"))
        deadline = time.time() + 20
        while (a := s.ask("/api/report/operators", {"input": "folder/own/default"})).status == 200 and time.time() < deadline:
            time.sleep(0.1)
        self.assertEqual(a.json(), {"error": f"{folder}/own.pt.trace.json: leads out of {os.path.realpath(folder)}, a trace in there was expected; --follow-links reads it all the same"})
        s.stop()
        self.assertEqual(b"".join(s.errors).decode(), "".join(f"opscope: {path}: left out, since it leads out of its directory; opscope serve --follow-links shows it\n" for path in left_out))
        # wanted, or named itself
        s = Server(self, "--follow-links", folder)
        self.assertEqual(s.get("/api/state")["left_out"], [])
        self.assertEqual({x["path"] for x in s.inputs().values()} & {left_out[1], os.path.join(folder, "all", "secret.pt.trace.json")},
                         {left_out[1], os.path.join(folder, "all", "secret.pt.trace.json")})
        os.symlink(beside, os.path.join(self.tmp, "named"))
        s = Server(self, left_out[1], os.path.join(self.tmp, "named"))
        self.assertEqual(sorted(x["worker"] for x in s.inputs().values()), ["link", "secret"])

    def test_segments_that_lead_out(self):
        """A capture is read with those of its segments that lie in the directory: neither do others add to it, nor does one that began earlier stand for it."""
        served, outside = os.path.join(self.tmp, "served", "run"), os.path.join(self.tmp, "outside")
        for folder in (served, outside):
            os.makedirs(folder)
        links = []

        def write(pid, linked):
            one = segment.Segment(pid=pid, start=segment.BASE + pid)
            one.push(pid, "range", one.start + 10)
            one.pop(pid, one.start + 20)
            path = one.write(outside if linked else served)
            if linked:
                links.append(os.path.join(served, os.path.basename(path)))
                os.symlink(path, links[-1])

        def processes(s):
            self.assertEqual(len(s.inputs()), 1)
            return [row[0] for row in s.get("/api/sql", query="SELECT DISTINCT tid FROM track ORDER BY 1")["rows"]]

        write(1, linked=True)
        write(2, linked=False)
        write(3, linked=True)
        s = Server(self, os.path.dirname(served), quiet=False)
        self.assertEqual((processes(s), s.get("/api/state")["left_out"]), ([2], links))
        write(4, linked=True)
        self.until_left_out(s, links)
        self.assertEqual(processes(s), [2])
        s = Server(self, "--follow-links", os.path.dirname(served))
        self.assertEqual((processes(s), s.get("/api/state")["left_out"]), ([1, 2, 3, 4], []))

    def until_left_out(self, s, paths):
        end = time.time() + 20
        while (got := s.get("/api/state")["left_out"]) != paths:
            self.assertLess(time.time(), end, got)
            time.sleep(0.1)

    def test_memory_is_let_go(self):
        big = oracle.data("tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz")
        for i in range(8):
            shutil.copy(big, os.path.join(self.tmp, f"w{i}.pt.trace.json.gz"))
        s = Server(self, "--memory=12M", self.tmp)
        keys = sorted(s.inputs())
        want = None
        for _ in range(2):
            for key in keys:
                got = s.get("/api/report/kernels", input=key)["rows"]
                self.assertEqual(got, want or got)
                s.get("/api/timeline", input=key)
                want = got
        ready = [k for k, x in s.inputs().items() if x["state"] == "ready"]
        self.assertTrue(0 < len(ready) < 8, ready)

    def test_a_large_input_stays(self):
        """It takes more than --memory, and is not read again for each request."""
        shutil.copy(oracle.data("tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz"), os.path.join(self.tmp, "w.pt.trace.json.gz"))
        s = Server(self, "--memory=1M", self.tmp)
        key, = s.inputs()
        s.get("/api/report/kernels", input=key)
        s.get("/api/timeline", input=key)
        self.assertEqual(s.inputs()[key]["state"], "ready")

    def test_ends_at_once_while_loading(self):
        path = os.path.join(self.tmp, "big.pt.trace.json")
        event = '{"ph":"X","cat":"cpu_op","name":"aten::op%d","pid":1,"tid":%d,"ts":%d,"dur":1},\n'
        with open(path, "w") as f:
            f.write('{"traceEvents":[\n')
            for k in range(40):
                f.write("".join(event % (i % 1000, i % 7, k * 100000 + i) for i in range(60000)))
            f.write('{"ph":"X","cat":"cpu_op","name":"x","pid":1,"tid":1,"ts":1,"dur":1}]}')
        s = Server(self, path)
        self.assertEqual(s.ask("/api/report/operators", {"wait": "0"}).status, 202)
        begin = time.time()
        s.stop()
        self.assertLess(time.time() - begin, 3)


if __name__ == "__main__":
    oracle.main()
