"""POST /api/aggregate: what `opscope aggregate` adds, the viewer adds; who may not is told why and nothing is changed."""
import os
import shutil
import tempfile

import oracle
from served import Server

TRACE = os.path.join(oracle.ROOT, "tests", "data", "torch214_cpu_resnet.json.gz")


class Aggregate(oracle.Case):
    def setUp(self):
        super().setUp()
        if oracle.run("help")[1].find(b"\n  serve ") < 0:
            self.skipTest("built without libmicrohttpd")
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)
        self.path = os.path.join(self.tmp, "run.opscope")
        self.other = os.path.join(self.tmp, "other.opscope")
        code, _, err = oracle.run("import", TRACE, "-o", self.path)
        self.assertEqual(code, 0, err)
        shutil.copy(self.path, self.other)

    def test_as_the_command_does(self):
        s = Server(self, self.path)
        key = s.get("/api/report/operators")["rows"][0][0]
        cases = [({"steps": "3..4", "name": "warm"}, None), (None, {"steps": "2..2", "key_op": None}), ({}, {"key_op": key, "name": "by \u00e9\" op"})]
        for number, (args, body) in enumerate(cases, 2):
            wish = {k: v for k, v in {**(args or {}), **(body or {})}.items() if v}
            raw = b"" if body is None else __import__("json").dumps(body).encode()
            self.assertEqual(s.post("/api/aggregate", args, body=raw), {"aggregation": number, "added": True})
            options = [f"--{k.replace('_', '-')}={v}" for k, v in wish.items()]
            code, _, err = oracle.run("aggregate", self.other, *options)
            self.assertEqual(code, 0, err)
            # the file has been read again
            got = s.get("/api/report/operators", aggregation=number)
            want = oracle.report("operators", self.other, f"--aggregation={number}").doc
            self.assertEqual((got["rows"], got["notes"]), (want["rows"], want["notes"]))
            listed = next(iter(s.inputs().values()))
            self.assertTrue(listed["aggregates"])
            self.assertEqual([a["id"] for a in listed["aggregations"]], list(range(1, number + 1)))
            self.assertEqual(listed["aggregations"][-1]["name"], wish.get("name", ""))
        mine, theirs = (oracle.report("aggregations", p) for p in (self.path, self.other))
        drop = {"created", "input"}
        self.assertEqual([{k: v for k, v in r.items() if k not in drop} for r in mine.rows], [{k: v for k, v in r.items() if k not in drop} for r in theirs.rows])
        self.assertEqual(len(mine.rows), 4)

    def test_the_same_twice(self):
        s = Server(self, self.path)
        self.assertEqual(s.post("/api/aggregate", {"steps": "3"}), {"aggregation": 2, "added": True})
        with open(self.path, "rb") as f:
            before = f.read()
        self.assertEqual(s.post("/api/aggregate", {"steps": "3"}), {"aggregation": 2, "added": False})
        with open(self.path, "rb") as f:
            self.assertEqual(f.read(), before)

    def test_refused(self):
        s = Server(self, self.path)
        with open(self.path, "rb") as f:
            before = f.read()
        for status, args, body, why in (
                (422, {"steps": "99..100"}, b"", "99"), (400, {"steps": "x"}, b"", "steps=x"), (400, {"key_op": "nothing"}, b"", "nothing"),
                (400, {}, b"[]", "JSON object"), (400, {}, b"{", "expected"), (400, {}, b"{} {}", "one JSON object"), (400, {}, b'{"steps": 3}', "a string"),
                (400, {}, b'{"colour": "red"}', "no member 'colour'"), (400, {"steps": "3"}, b'{"steps": "3"}', "given twice"),
                (400, {}, b'{"name": "a\\u0000b"}', "a string"), (400, {}, b'{"name": "\xff"}', "a string"), (400, {}, b"[" * 100000, "JSON object"),
                (400, {}, b'{"name": ' + b"[" * 100000, "expected"), (400, {"name": "a\nb"}, b"", "one line"), (400, {"name": "x" * 2000}, b"", "at most"),
                (400, {"device": "0"}, b"", "no argument 'device'")):
            self.assertIn(why, s.post("/api/aggregate", args, status, body=body)["error"], (args, body[:40]))
        self.assertEqual(s.ask("/api/aggregate").status, 405)
        for headers in ({}, {"X-Opscope": "0"}, {"X-Opscope": "1", "Origin": "http://evil.example"}, {"X-Opscope": "1", "Sec-Fetch-Site": "cross-site"},
                        {"X-Opscope": "1", "Origin": "null"}, {"X-Opscope": "1", "Sec-Fetch-Site": "same-site"}):
            a = s.ask("/api/aggregate", {"steps": "3"}, "POST", headers)
            self.assertEqual(a.status, 403, headers)
        with open(self.path, "rb") as f:
            self.assertEqual(f.read(), before)
        ours = {"Origin": f"http://127.0.0.1:{s.port}", "Sec-Fetch-Site": "same-origin"}
        self.assertEqual(s.post("/api/aggregate", {"steps": "3"}, headers=ours), {"aggregation": 2, "added": True})

    def test_other_files_and_read_only(self):
        s = Server(self, TRACE)
        self.assertIn("opscope import", s.post("/api/aggregate", {"steps": "3"}, 422)["error"])
        self.assertFalse(next(iter(s.inputs().values()))["aggregates"])
        s = Server(self, "--read-only", self.path)
        self.assertIn("--read-only", s.post("/api/aggregate", {"steps": "3"}, 403)["error"])
        self.assertTrue(s.get("/api/state")["read_only"])

    def test_a_file_that_cannot_be_written(self):
        s = Server(self, self.path)
        s.get("/api/report/operators")
        os.unlink(self.path)
        os.mkdir(self.path)
        a = s.ask("/api/aggregate", {"steps": "3"}, "POST", {"X-Opscope": "1"})
        self.assertIn(a.status, (422, 500))
        self.assertIn("run.opscope", a.json()["error"])
        self.assertEqual(os.listdir(self.path), [])

    def test_other_data_in_its_place(self):
        s = Server(self, self.path)
        s.get("/api/report/operators")
        code, _, err = oracle.run("import", oracle.synthetic("training_gpu"), "-o", self.path)
        self.assertEqual(code, 0, err)
        self.assertEqual(s.post("/api/aggregate", {"name": "x"}), {"aggregation": 1, "added": False})
        steps = oracle.report("steps", oracle.synthetic("training_gpu")).rows[-1]["step"]
        self.assertEqual(s.post("/api/aggregate", {"steps": str(steps)}), {"aggregation": 2, "added": True})
        self.assertEqual(oracle.report("operators", self.path, "--aggregation=2").rows,
                         oracle.report("operators", oracle.synthetic("training_gpu"), f"--steps={steps}").rows)

    def test_a_file_without_it_in_its_place(self):
        s = Server(self, self.path)
        self.assertEqual(s.post("/api/aggregate", {"steps": "3"}), {"aggregation": 2, "added": True})
        before = next(iter(s.inputs().values()))["content"]
        os.rename(self.other, self.path)
        self.assertEqual(s.post("/api/aggregate", {"steps": "3"}), {"aggregation": 2, "added": True})
        self.assertGreater(next(iter(s.inputs().values()))["content"], before)
        self.assertEqual(len(oracle.report("aggregations", self.path).rows), 2)


if __name__ == "__main__":
    oracle.main()
