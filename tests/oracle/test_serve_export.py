"""`opscope serve --export`: the page holds what the server answers, to the letter; it cannot be broken out of; it appears whole or not at all."""
import base64
import gzip
import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
import tempfile

import oracle
from served import Server

TRAINING = oracle.synthetic("training_gpu")
RESNET = os.path.join(oracle.ROOT, "tests", "data", "torch214_cpu_resnet.json.gz")


def unpack(text):
    return json.loads(gzip.decompress(base64.b64decode(text, validate=True)))


class Report:
    """An exported page, and what it holds."""

    def __init__(self, path):
        self.folder = path if os.path.isdir(path) else None
        with open(os.path.join(path, "index.html") if self.folder else path, encoding="utf-8", newline="") as f:
            self.page = f.read()
        self.scripts = re.findall(r'<script type="([^"]*)"(?: id="opscope-([^"]*)")?>([^<]*)</script>', re.sub(r'(?s)(<script type="module">).*?(</script>)', r"\1\2", self.page))
        self.inline = {name: text for kind, name, text in self.scripts if kind == "text/plain"}
        self.index = unpack(self.inline["index"])
        self.blocks = [unpack(self.text(name)) for name in self.index["blocks"]]

    def text(self, name):
        if not self.folder:
            return self.inline[name]
        with open(os.path.join(self.folder, name), encoding="ascii") as f:
            return re.fullmatch(rf'opscopeBlock\("{re.escape(name)}","([^"]*)"\);\n', f.read())[1]

    def main(self):
        return re.search(r'(?s)<script type="module">(.*?)</script>', self.page)[1]

    def answers(self, key):
        """(address, arguments) -> (status, answer)"""
        for address, place in self.index["answers"][key].items():
            path, _, query = address.partition("?")
            args = dict(x.split("=", 1) for x in query.split("&") if x)
            yield ("/api/" + path, args), (200, self.blocks[place[0]][place[1]]) if isinstance(place, list) else (place["status"], place["answer"])


class ExportCase(oracle.Case):
    def setUp(self):
        super().setUp()
        if oracle.run("help")[1].find(b"\n  serve ") < 0:
            self.skipTest("built without libmicrohttpd")
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)
        self.out = os.path.join(self.tmp, "out")
        os.mkdir(self.out)
        if not hasattr(ExportCase, "viewer"):
            ExportCase.viewer = b"built without the viewer" not in oracle.run("serve", f"--export={self.path('probe.html')}", TRAINING)[2]
            for name in os.listdir(self.out):
                os.remove(self.path(name))
        if not ExportCase.viewer:
            self.skipTest("built without npm")

    def path(self, name):
        return os.path.join(self.out, name)

    def export(self, name, *inputs, status=0, said="", **kw):
        p = subprocess.run([oracle.OPSCOPE, "serve", f"--export={self.path(name)}", *inputs], capture_output=True, timeout=120, **kw)
        errors = p.stderr.decode()
        self.assertEqual(p.returncode, status, errors)
        self.assertIn(said, errors)
        if status:
            self.assertEqual((errors.count("\n") - errors.count("not in the report"), p.stdout), (1, b""), errors)
        elif not said:
            self.assertEqual(errors, "")
        return Report(self.path(name)) if status == 0 else None

    def equal_answers(self, report, *served):
        s, compared = Server(self, *served), 0
        for key in report.index["answers"]:
            for (path, args), (status, answer) in report.answers(key):
                a = s.ask(path, {**args, "input": key} if key else args)
                if status != 413:
                    self.assertEqual((a.status, a.json()), (status, answer), (key, path, args))
                    compared += status == 200
        mine = {x["input"]: x for x in report.index["state"]["inputs"]}
        for key in mine:
            s.ask("/api/timeline", {"input": key})  # what cannot be read is known to be so once it was asked for
        self.assertEqual(mine, s.inputs())
        return compared


class Answers(ExportCase):
    def test_of_several_inputs(self):
        bad = os.path.join(self.tmp, "bad.pt.trace.json")
        with open(bad, "w", encoding="ascii") as f:
            f.write("{]")
        inputs = [TRAINING, RESNET, bad]
        r = self.export("a.html", *inputs, said="not in the report: ")
        states = {x["input"]: x for x in r.index["state"]["inputs"]}
        self.assertEqual(sorted(x["state"] for x in states.values()), ["failed", "ready", "ready"])
        self.assertEqual(len(r.index["answers"]), 3)
        self.assertGreater(self.equal_answers(r, *inputs), 90)
        d = self.export("d", *inputs, said="not in the report: ")
        self.assertEqual((d.index["state"], d.index["answers"]), (r.index["state"], r.index["answers"]))
        self.assertEqual(d.blocks, r.blocks)
        self.assertEqual(sorted(os.listdir(self.path("d"))), sorted(["index.html", *d.index["blocks"]]))

    def test_of_every_report_and_grouping(self):
        r = self.export("a.html", TRAINING)
        key = r.index["state"]["inputs"][0]["input"]
        held = {(path, json.dumps(args)) for (path, args), _ in r.answers(key)}
        for x in next(answer for (path, _), (_, answer) in r.answers("") if path == "/api/reports")["reports"]:
            for args in [{}, *({"group_by": g} for g in x["group_by"])]:
                self.assertIn(("/api/report/" + x["name"], json.dumps(args)), held)
        for path in ("advise", "instances", "timeline", "timeline/events", "timeline/counters"):
            self.assertIn("/api/" + path, {p for p, _ in held})
        self.assertNotIn("/api/timeline/whole", {p for p, _ in held})

    def test_of_aggregations(self):
        path = os.path.join(self.tmp, "run.opscope")
        self.assertEqual(oracle.run("import", RESNET, "-o", path)[0], 0)
        self.assertEqual(oracle.run("aggregate", path, "--steps=3..4", "--name=warm")[0], 0)
        r = self.export("a.html", path)
        key = r.index["state"]["inputs"][0]["input"]
        self.assertEqual([a["id"] for a in r.index["state"]["inputs"][0]["aggregations"]], [1, 2])
        answers = {(p, json.dumps(a, sort_keys=True)): x for (p, a), x in r.answers(key)}
        got = answers[("/api/report/operators", '{"aggregation": "2"}')]
        self.assertEqual((got[0], got[1]["rows"]), (200, oracle.report("operators", path, "--aggregation=2").doc["rows"]))
        self.assertNotEqual(got[1]["rows"], answers[("/api/report/operators", "{}")][1]["rows"])

    def test_of_some_steps(self):
        """Reports are of these alone, the timeline is whole; the page knows which."""
        r = self.export("a.html", "--steps=3..4", RESNET)
        self.assertEqual(r.index["state"]["steps"], "3..4")
        self.assertGreater(self.equal_answers(r, RESNET), 40)
        addresses = list(next(a for key, a in r.index["answers"].items() if key))
        self.assertFalse([a for a in addresses if not a.startswith("timeline") and "steps=3..4" not in a])
        self.assertFalse([a for a in addresses if a.startswith("timeline") and "steps" in a])
        self.assertNotIn("steps", self.export("b.html", RESNET).index["state"])
        self.export("c.html", "--steps=nine", RESNET, status=2, said="steps")
        self.assertEqual(oracle.run("serve", "--steps=3", RESNET)[0], 2)

    def test_same_input_same_bytes(self):
        for name in ("a.html", "b.html"):
            self.export(name, TRAINING)
        self.assertEqual(open(self.path("a.html"), "rb").read(), open(self.path("b.html"), "rb").read())

    def test_of_a_long_recording(self):
        if oracle.SANITIZED:
            self.skipTest("400,000 ops: the other tests go the same ways with fewer")
        path, n = os.path.join(self.tmp, "long.json"), 400001
        with open(path, "w", encoding="ascii") as f:
            f.write('{"traceEvents":[')
            f.write(",\n".join('{"ph":"X","cat":"cpu_op","name":"op%d","pid":1,"tid":1,"ts":%d,"dur":%d}' % (i % 3, 10 * i, 1 + i % 9) for i in range(n)))
            f.write("]}")
        r = self.export("a.html", path)
        answers = {p: x for (p, a), x in r.answers("/long/default") if not a}
        self.assertEqual(answers["/api/timeline/events"][0], 422)
        self.assertIn(str(n), answers["/api/timeline/events"][1]["error"])
        status, whole = answers["/api/timeline/whole"]
        lane = whole["lanes"][0]
        self.assertEqual((status, len(whole["lanes"])), (200, 1))
        self.assertLessEqual(len(lane["start"]), 200000)
        self.assertGreater(len(lane["start"]), 50000)
        self.assertEqual(sum(lane["count"]), n)
        self.assertEqual(sum(lane["dur"]) - sum(lane["idle"]), sum(1000 * (1 + i % 9) for i in range(n)))
        self.assertEqual([s for (p, _), (s, _) in r.answers("/long/default") if p == "/api/report/function-events"], [413])


class Page(ExportCase):
    def check(self, r):
        """Nothing of the recording is read as HTML, and nothing but the viewer may run."""
        self.assertEqual(len(re.findall(r"(?i)<script", r.page.replace(r.main(), ""))), len(r.scripts))
        self.assertNotRegex(r.main(), r"(?i)</script|<!--")
        self.assertEqual([kind for kind, _, _ in r.scripts if kind != "text/plain"], ["module"])
        for text in r.inline.values():
            self.assertRegex(text, r"\A[A-Za-z0-9+/=]+\Z")
        policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', r.page)[1]
        digest = base64.b64encode(hashlib.sha256(r.main().encode()).digest()).decode()
        rules = dict(x.strip().split(" ", 1) for x in policy.split(";"))
        self.assertEqual(rules["default-src"], "'none'")
        self.assertEqual(rules["script-src"], f"'sha256-{digest}'" + (" 'strict-dynamic'" if r.folder else ""))
        self.assertNotIn("connect-src", rules)
        self.assertLess(r.page.index("Content-Security-Policy"), r.page.index("<script"))
        head = r.page[:r.page.index("<style>")]
        self.assertNotRegex(head, r'(?:src|href)="(?!data:)')

    def test_of_a_file_and_a_directory(self):
        self.check(self.export("a.html", RESNET))
        self.check(self.export("a", RESNET))

    def test_names_that_would_break_out(self):
        hostile = "</script><script>alert(1)</script>\u2028<!--\"'&"
        run = os.path.join(self.tmp, "r <b>&'\u2028")
        os.mkdir(run)
        with open(os.path.join(run, "w <script>.json"), "w", encoding="utf-8") as f:
            json.dump({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": hostile, "pid": 1, "tid": 1, "ts": 1, "dur": 5, "args": {hostile: hostile}},
                                       {"ph": "X", "cat": "kernel", "name": hostile, "pid": 0, "tid": 7, "ts": 2, "dur": 5, "args": {"device": 0, "stream": 7}}]}, f)
        for name in ("a.html", "a"):
            r = self.export(name, run)
            self.check(r)
            self.assertNotIn("alert(1)", r.page)
            x = r.index["state"]["inputs"][0]
            self.assertEqual((x["run"], x["worker"]), (os.path.basename(run), "w <script>"))
            events = next(a for (p, _), (_, a) in r.answers(x["input"]) if p == "/api/timeline/events")
            self.assertIn(hostile, events["texts"])
        self.assertGreater(self.equal_answers(Report(self.path("a.html")), run), 40)


class Places(ExportCase):
    def listing(self):
        return sorted(os.listdir(self.out))

    def test_usage(self):
        with open(self.path("x.txt"), "w", encoding="ascii") as f:
            f.write("mine")
        self.export("x.txt", TRAINING, status=2, said="a directory or a file NAME.html was expected")
        self.export("no/such/a.html", TRAINING, status=1, said="No such file")
        self.export("x.txt/a.html", TRAINING, status=1, said="Not a directory")
        self.export("a.html", os.path.join(self.tmp, "nothing.json"), status=1, said="nothing.json")
        self.assertIn(b"--force: only", oracle.run("serve", "--force", TRAINING)[2])
        self.assertEqual(oracle.run("serve", "--export=", TRAINING)[0], 2)
        self.assertEqual((self.listing(), open(self.path("x.txt"), encoding="ascii").read()), (["x.txt"], "mine"))

    def test_nothing_that_can_be_read(self):
        bad = os.path.join(self.tmp, "bad.json")
        with open(bad, "w", encoding="ascii") as f:
            f.write("nothing")
        self.export("a.html", bad, status=1, said="none of the inputs can be read")
        self.assertEqual(self.listing(), [])

    def test_never_over_the_input(self):
        shutil.copy(RESNET, self.path("in.html"))
        self.export("in.html", self.path("in.html"), status=2, said="is the input")
        self.assertEqual(open(self.path("in.html"), "rb").read(), open(RESNET, "rb").read())

    def test_never_over_an_input_in_the_directory(self):
        os.mkdir(self.path("d"))
        for name in ("index.html", "data-0123456789abcdef.js"):
            shutil.copy(TRAINING, self.path("d/" + name))
            self.export("d", "--force", RESNET, self.path("d/" + name), status=2, said="holds an input")
            self.assertEqual((open(self.path("d/" + name), "rb").read(), os.listdir(self.path("d"))), (open(TRAINING, "rb").read(), [name]))
            os.remove(self.path("d/" + name))

    def test_directory_that_holds_something(self):
        os.mkdir(self.path("d"))
        self.export("d", TRAINING)
        first = set(os.listdir(self.path("d")))
        with open(self.path("d/notes.txt"), "w", encoding="ascii") as f:
            f.write("mine")
        self.export("d", RESNET, status=2, said="--force writes into it")
        self.assertEqual(set(os.listdir(self.path("d"))), first | {"notes.txt"})
        r = self.export("d", "--force", RESNET)
        self.assertEqual(set(os.listdir(self.path("d"))), {"index.html", "notes.txt", *r.index["blocks"]})
        self.assertEqual(self.listing(), ["d"])

    def limited(self, name, *args):
        return self.export(name, *args, RESNET, status=1, said="File too large", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000)))

    def test_full_disk(self):
        with open(self.path("a.html"), "w", encoding="ascii") as f:
            f.write("old")
        self.limited("a.html")
        self.limited("d")
        self.assertEqual((self.listing(), open(self.path("a.html"), encoding="ascii").read()), (["a.html"], "old"))
        self.export("d", TRAINING)
        before = sorted(os.listdir(self.path("d")))
        self.limited("d", "--force")
        self.assertEqual((sorted(os.listdir(self.path("d"))), self.listing()), (before, ["a.html", "d"]))
        Report(self.path("d"))

    def kill(self):
        """Kills an export to d once its unfinished folder is there, which is returned; None when the export was faster."""
        with subprocess.Popen([oracle.OPSCOPE, "serve", f"--export={self.path('d')}", TRAINING, RESNET], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
            while p.poll() is None and not self.listing():
                pass
            p.kill()
        left = [n for n in self.listing() if n != "d"]
        shutil.rmtree(self.path("d"), ignore_errors=True)
        return left[0] if left else None

    def test_killed(self):
        """What a killed export left, the next one removes, and so does another command that writes there."""
        for args in (("serve", f"--export={self.path('d')}", TRAINING), ("report", "overview", TRAINING, "-o", self.path("d.txt"))):
            left = next(filter(None, (self.kill() for _ in range(20))))
            self.assertRegex(left, r"^\.opscope-[0-9a-f]{16}$")
            self.assertEqual(oracle.run(*args)[0], 0)
            self.assertNotIn(left, self.listing())
            shutil.rmtree(self.path("d"), ignore_errors=True)


class Instances(ExportCase):
    """/api/instances is what these queries say."""

    def test_as_sql(self):
        s = Server(self, TRAINING)
        rows = s.get("/api/report/kernels", group_by="instance")
        at = {c["id"]: i for i, c in enumerate(rows["columns"])}
        sums = {}
        for r in rows["rows"]:
            k = (r[at["step"]], r[at["op_id"]], r[at["direction"]], r[at["kernel_name"]], r[at["tensor_cores"]])
            n, ns = sums.get(k, (0, 0))
            sums[k] = (n + 1, ns + r[at["dur_ns"]])
        got = s.get("/api/instances", by="all")
        g = {c["id"]: i for i, c in enumerate(got["columns"])}
        self.assertEqual({tuple(r[g[x]] for x in ("step", "op_id", "direction", "kernel_name", "tensor_cores")): (r[g["calls"]], r[g["total_ns"]]) for r in got["rows"]}, sums)
        self.assertGreaterEqual(len(sums), 5)
        for step in {k[0] for k in sums}:
            args = {"unknown": "step"} if step is None else {"step": step}
            of = s.get("/api/instances", by="kernel", **args)
            n = [c["id"] for c in of["columns"]].index("calls")
            self.assertEqual(sum(r[n] for r in of["rows"]), sum(v[0] for k, v in sums.items() if k[0] == step), args)
        for _, op, direction, _, _ in list(sums)[:5]:
            known = {k: v for k, v in (("op", op), ("direction", direction)) if v is not None}
            unknown = [k for k, v in (("op", op), ("direction", direction)) if v is None]
            of = s.get("/api/instances", by="kernel", **known, **({"unknown": ",".join(unknown)} if unknown else {}))
            ids = [c["id"] for c in of["columns"]]
            self.assertNotIn("op_id", ids if op is not None else [])
            self.assertEqual(sum(r[ids.index("total_ns")] for r in of["rows"]), sum(v[1] for k, v in sums.items() if k[1:3] == (op, direction)), (op, direction))
        self.assertEqual(s.get("/api/instances", by="op", op="it's \" none")["rows"], [])

    def test_arguments(self):
        s = Server(self, TRAINING)
        self.assertIn("one of step, op", s.get("/api/instances", 400, by="x")["error"])
        self.assertIn("'by' was expected", s.get("/api/instances", 400)["error"])
        self.assertIn("whole number", s.get("/api/instances", 400, by="op", step="x")["error"])
        self.assertIn("not together", s.get("/api/instances", 400, by="op", step="1", unknown="step")["error"])
        self.assertIn("whole number from 1", s.get("/api/timeline/whole", 400, items="0")["error"])


class WithoutTheViewer(oracle.Case):
    def test_refused_before_anything_is_read(self):
        if oracle.run("help")[1].find(b"\n  serve ") < 0:
            self.skipTest("built without libmicrohttpd")
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out.html")
            if b"built without the viewer" not in oracle.run("serve", f"--export={out}", TRAINING)[2]:
                self.skipTest("built with npm")
            status, printed, said = oracle.run("serve", f"--export={out}", os.path.join(folder, "no such input"))
            self.assertEqual((status, printed, os.listdir(folder)), (1, b"", []))
            self.assertEqual(said, b"opscope: this opscope was built without the viewer's pages (npm was not there)\n")


if __name__ == "__main__":
    oracle.main()
