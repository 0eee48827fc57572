"""opscope.load and its tables say what the program says; errors, threads, laziness."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

from support import RESNET, csv, oracle
import opscope

GPU = oracle.synthetic("all_categories")


class Load(oracle.Case):
    def test_facts(self):
        with opscope.load(RESNET) as trace:
            self.assertEqual((trace.format, trace.path), ("kineto", RESNET))
            self.assertEqual([p.text for p in trace.problems if p.severity], [])
            self.assertIn(f"{trace.n_events:,}", oracle.run("info", RESNET)[1].decode())
            self.assertIn(f"{trace.n_events} events", repr(trace))
        odd = opscope.load(oracle.synthetic("partial_overlap"))
        odd.report("operators")
        self.assertTrue(odd.problems and all(p.text and p.times and p.severity in (0, 1, 2) for p in odd.problems))
        self.assertTrue(trace.closed)
        with self.assertRaisesRegex(opscope.Error, "closed"):
            trace.report("operators")
        self.assertIn("closed", repr(trace))

    def test_address(self):
        """A file of a web server: its path says nothing of what the address hides, and neither does an error."""
        import functools
        import http.server

        class Quiet(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=os.path.dirname(RESNET)))
        self.addCleanup(server.server_close)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        host = f"127.0.0.1:{server.server_address[1]}"
        with unittest.mock.patch.dict(os.environ, {"no_proxy": "127.0.0.1"}):
            try:
                trace = opscope.load(f"http://me:s3cret@{host}/{os.path.basename(RESNET)}?token=s3cret")
            except opscope.Error as e:
                if "without libcurl" in str(e):
                    self.skipTest(str(e))
                raise
            self.assertEqual(trace.path, f"http://{host}/{os.path.basename(RESNET)}")
            self.assertEqual(list(trace.report("operators")), list(opscope.load(RESNET).report("operators")))
            with self.assertRaisesRegex(opscope.Error, "404") as raised:
                opscope.load(f"http://{host}/gone?token=s3cret")
            self.assertNotIn("s3cret", str(raised.exception))

    def test_threads(self):
        self.assertEqual(list(opscope.load(RESNET, threads=3).report("operators")), list(opscope.load(RESNET).report("operators")))
        with self.assertRaisesRegex(opscope.Error, "^threads=0: a number from 1 on was expected$"):
            opscope.load(RESNET, threads=0)

    def test_path_like_and_directory(self):
        import pathlib
        self.assertEqual(opscope.load(pathlib.Path(RESNET)).format, "kineto")
        with tempfile.TemporaryDirectory() as folder:
            for name in ("worker0.1.pt.trace.json", "worker1.1.pt.trace.json"):
                os.symlink(GPU, os.path.join(folder, name))
            with self.assertRaisesRegex(opscope.Error, "2 traces where one was expected.*worker0"):
                opscope.load(folder)
            self.assertEqual(opscope.load(folder, worker="worker1").format, "kineto")
            self.assertEqual(opscope.load(folder, rank=0).format, "kineto")
            self.assertEqual(opscope.advise(folder, worker="worker1", compat="torch").to_csv(), csv("advise", folder, "--worker=worker1", "--compat=torch"))
            with self.assertRaisesRegex(opscope.Error, "none of 2 traces"):
                opscope.load(folder, worker="worker7")
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(opscope.Error, "no traces in this directory"):
            opscope.load(folder)

    def test_rules_of_a_trace(self):
        """Two traces in one process, each with rules of its own."""
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for word in ("NORM", "SORT"):
                files.append(os.path.join(folder, word))
                with open(files[-1], "w", encoding="utf-8") as f:
                    f.write(f'KERNEL("_kernel", {word}, NO)\n')
            traces = [opscope.load(GPU, kernel_rules=f) for f in files]
        plain, *own = [{row["class"]: row["n"] for row in trace.sql("SELECT class, count(*) AS n FROM kernels GROUP BY class")} for trace in (opscope.load(GPU), *traces)]
        self.assertGreater(own[0]["norm"], plain.get("norm", 0))
        self.assertGreater(own[1]["sort"], plain.get("sort", 0))
        self.assertEqual(own[0].get("sort", 0), plain.get("sort", 0))
        with self.assertRaisesRegex(opscope.Error, "rules: .*No such file"):
            opscope.load(GPU, rules="/no/such/rules")

    def test_memory(self):
        plain = str(opscope.load(GPU).report.operators())
        # In a process of its own, whose limit it stays.
        code = "import opscope, sys; print(opscope.load(sys.argv[1], memory='1M').report.operators(), end='')"
        self.assertEqual(subprocess.run([sys.executable, "-c", code, GPU], capture_output=True, check=True).stdout.decode(), plain)
        for size in ("much", 0, "1.5G"):
            with self.assertRaisesRegex(opscope.Error, f"^memory={size}: 8 or 8G [(]GiB[)] or 500M [(]MiB[)] was expected$"):
                opscope.load(GPU, memory=size)

    def test_errors(self):
        with self.assertRaises(FileNotFoundError):
            opscope.load("/no/such/file")
        with self.assertRaisesRegex(opscope.Error, "test_core.py"):
            opscope.load(os.path.abspath(__file__))
        with self.assertRaisesRegex(opscope.Error, "no option 'no-such'.*group-by"):
            opscope.load(RESNET, no_such=1)
        with self.assertRaisesRegex(opscope.Error, "no such format|no input|format"):
            opscope.load(RESNET, input_format="punched-cards")
        trace = opscope.load(GPU)
        with self.assertRaisesRegex(opscope.Error, "no report 'no-such'"):
            trace.report("no-such")
        with self.assertRaisesRegex(opscope.Error, "^no report 'operator', did you mean 'operators'\\?$"):
            trace.report("operator")
        self.assertEqual(str(trace.report("key_averages")), str(trace.report("key-averages")))
        with self.assertRaisesRegex(opscope.Error, "no column 'no-such'"):
            trace.report("operators", sort="no-such")
        with self.assertRaisesRegex(opscope.Error, "steps"):
            trace.report("operators", steps="what")
        with self.assertRaises(TypeError):
            type(trace._profile)()
        with self.assertRaises(TypeError):
            type(trace.report("operators")._table)()

    def test_codes_of_errors(self):
        """For programs: the text is for people. Also after copying and pickling."""
        import copy
        import pickle

        trace = opscope.load(GPU)
        asks = {"usage": lambda: trace.report("no-such"), "lacks": lambda: trace.report("attention"), "format": lambda: opscope.load(os.path.abspath(__file__)),
                "io": lambda: trace.export("chrome", "/no/such/folder/x")}
        for code, ask in asks.items():
            with self.assertRaises(opscope.Error) as caught:
                ask()
            self.assertEqual([e.code for e in (caught.exception, copy.copy(caught.exception), pickle.loads(pickle.dumps(caught.exception)))], [code] * 3)
        self.assertEqual(opscope.Error("made here").code, "usage")
        trace.close()
        with self.assertRaises(opscope.Error) as caught:
            trace.report("attention")
        self.assertEqual(caught.exception.code, "usage")

    def test_arguments_of_any_kind(self):
        """What _core is given is checked there, whatever table.py and trace.py let through."""
        profile = opscope.load(GPU)._profile
        table = profile.report("operators", {})
        for ask, error in ((lambda: profile.report("operators", None), TypeError), (lambda: profile.report("operators", {"limit": 5}), TypeError),
                           (lambda: profile.report("operators", {"limit": "-1"}), opscope.Error), (lambda: profile.report("operators", {"a\0b": "1"}), ValueError),
                           (lambda: profile.report("oper\0ators", {}), ValueError), (lambda: profile.report("operators\ud800", {}), UnicodeError),
                           (lambda: profile.report("operators", {"filter": "\ud800"}), UnicodeError), (lambda: profile.report("operators", {}, {}), TypeError),
                           (lambda: opscope._core.open("a\0b", {}), ValueError), (lambda: opscope._core.open(3.5, {}), TypeError),
                           (lambda: table.column("name"), TypeError), (lambda: table.column(-1), IndexError), (lambda: table.column(1 << 70), OverflowError),
                           (lambda: table.numbers(len(table.columns)), IndexError), (lambda: table.render("punched-cards", {}), opscope.Error),
                           (lambda: table.render("csv", {"width": "x"}), opscope.Error), (lambda: profile.export("chrome", "a\0b", {}), ValueError),
                           (lambda: profile.export("chrome", None, {}), TypeError), (lambda: setattr(table, "rows", 1), AttributeError)):
            with self.assertRaises(error):
                ask()
        self.assertEqual(table.numbers(0), (bytes(8 * table.rows), b"\1" * table.rows))  # a column of text has no numbers

    def test_bytes_that_are_no_text(self):
        """A file's name may be any bytes, and so may be in a message."""
        with self.assertRaisesRegex(opscope.Error, "\ufffd|\\\\xff"), tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, os.fsdecode(b"\xff.json"))
            with open(path, "w") as f:
                f.write("nothing")
            opscope.load(path)

    def test_import_is_light(self):
        code = "import sys, opscope; print(sorted({'torch', 'numpy', 'pandas', 'pyarrow'} & {*sys.modules}))"
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        self.assertEqual(subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout, "[]\n")
        with self.assertRaisesRegex(AttributeError, "no_such"):
            opscope.no_such
        self.assertIn("load", dir(opscope))


class Memory(oracle.Case):
    """Where there is none, MemoryError; what has memory goes on."""

    def run_limited(self, code):
        if oracle.SANITIZED:
            self.skipTest("a sanitizer has a use of its own for addresses")
        start = f"""
import opscope, resource, sys
def leave(room):
    with open("/proc/self/status") as f:
        size = int(next(line for line in f if line.startswith("VmSize")).split()[1]) << 10
    resource.setrlimit(resource.RLIMIT_AS, (size + room if room is not None else resource.RLIM_INFINITY, resource.RLIM_INFINITY))
def raises(ask):
    try:
        ask()
    except MemoryError as e:
        return str(e)
    sys.exit("no MemoryError")
large, small = {self.large!r}, {GPU!r}
right = str(opscope.load(small).report("operators"))
"""
        # Each arena has addresses in store, which would do for the trace.
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "MALLOC_ARENA_MAX": "1"}
        p = subprocess.run([sys.executable, "-c", start + code], env=env, capture_output=True, text=True, timeout=oracle.TIMEOUT)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        return p.stdout.splitlines()

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.large = os.path.join(folder.name, "large.json")
        with open(self.large, "w") as f:
            f.write('{"schemaVersion": 1, "traceEvents": [')
            f.writelines(f'{{"ph": "X", "cat": "cpu_op", "name": "op{i}", "pid": 1, "tid": 1, "ts": {i * 10}, "dur": 9, "args": {{"External id": {i}}}}},\n'
                         for i in range(150000))
            f.write('{"ph": "X", "cat": "cpu_op", "name": "last", "pid": 1, "tid": 1, "ts": 2000000, "dur": 1}]}')

    def test_load(self):
        self.assertEqual(self.run_limited("""
for _ in range(3):
    leave(4 << 20)
    print(raises(lambda: opscope.load(large)))
    assert str(opscope.load(small).report("operators")) == right
leave(None)
print(opscope.load(large).n_events)
"""), [f"{self.large}: out of memory"] * 3 + ["150001"])

    def test_report(self):
        """The trace is of no use afterwards, and says so."""
        self.assertEqual(self.run_limited("""
trace = opscope.load(large)
leave(1 << 20)
print(raises(lambda: trace.report("ops")))
leave(None)
print(raises(lambda: trace.report("operators")))
print(len(trace.problems))
trace.close()
"""), ["out of memory", f"{self.large}: memory ran out in an earlier call on this trace, which left it half done: open it again", "0"])


def text(*args):
    """What the program prints when it is asked for totals and all notes, as the API gives them; without the lines that tell of its own --help."""
    code, out, err = oracle.run(*args, *(["--per=total"] if args[0] == "report" else []), "--notes=full")
    if code:
        raise AssertionError(err.decode())
    return re.sub("[0-9]+ more columns?: --columns shows .*\n", "", out.decode())


class Reports(oracle.Case):
    """Byte for byte what the program prints."""

    def test_every_report(self):
        compared = 0
        for path in (RESNET, GPU):
            with opscope.load(path) as trace:
                for report in opscope.reports():
                    code, out, _ = oracle.run("report", report.name, path, "--format=csv")
                    if code:
                        with self.assertRaises(opscope.Error, msg=report.name):
                            trace.report(report.name)
                        continue
                    table = trace.report(report.name)
                    self.assertEqual(table.to_csv(), out.decode(), report.name)
                    self.assertEqual(table.to_text(), text("report", report.name, path), report.name)
                    self.assertEqual(table.to_json(), oracle.run("report", report.name, path, "--format=json")[1].decode(), report.name)
                    compared += 1
        self.assertGreaterEqual(compared, 40)

    def test_options(self):
        cases = [
            ("operators", {"group_by": "shape"}, ["--group-by=shape"]),
            ("key-averages", {"group_by": ["name", "shape"], "top_level": True}, ["--group-by=name,shape", "--top-level"]),
            ("operators", {"sort": "+calls", "limit": 5}, ["--sort=+calls", "--limit=5"]),
            ("operators", {"filter": "conv", "columns": "name,calls"}, ["--filter=conv", "--columns=name,calls"]),
            ("operators", {"columns": ["name", "device_self_ns"]}, ["--columns=name,device_self_ns"]),
            ("modules", {"columns": "module"}, ["--columns=module"]),
            ("steps", {"steps": (2, 3)}, ["--steps=2..3"]),
            ("steps", {"steps": (2, None)}, ["--steps=2.."]),
            ("key-averages", {"compat": "torch-2.14"}, ["--compat=torch-2.14"]),
        ]
        with opscope.load(RESNET) as trace:
            for name, keywords, words in cases:
                with self.subTest(name=name, words=words):
                    table = trace.report(name, **keywords)
                    self.assertEqual(table.to_csv(), csv("report", name, RESNET, *words))
                    self.assertEqual(table.to_text(), text("report", name, RESNET, *words))
                    self.assertEqual([c.id for c in table.columns], table.to_csv().split("\n", 1)[0].split(","))
                    self.assertEqual(len(table), table.to_csv().count("\n") - 1)

    def test_text_options(self):
        with opscope.load(RESNET) as trace:
            table = trace.report("operators")
            self.assertEqual(table.to_text(width=90, limit=3), text("report", "operators", RESNET, "--width=90", "--limit=3"))
            self.assertEqual(trace.report("operators", limit=3).to_text(), text("report", "operators", RESNET, "--limit=3"))
            self.assertEqual(trace.report("operators", limit=0).to_text(), text("report", "operators", RESNET, "--limit=0"))
            shown = trace.report("operators", title="Mine", time_unit="ms", max_width="name:9").to_text()
            self.assertEqual(shown, text("report", "operators", RESNET, "--title=Mine", "--time-unit=ms", "--max-width=name:9"))
            self.assertEqual(str(table) + "\n", table.to_text())
            words = {"sort": "-calls", "filter": "conv", "title": "Mine", "max-width": "name:30", "columns": "name,calls"}
            shown = table._table.render("text", words).decode()
            self.assertEqual(shown, text("report", "operators", RESNET, *(f"--{k}={v}" for k, v in words.items())))
            with self.assertRaisesRegex(opscope.Error, "nonsense"):
                table._table.render("text", {"sort": "nonsense"})
            self.assertEqual(str(table) + "\n", table.to_text())

    def test_findings_and_sql(self):
        with opscope.load(GPU) as trace:
            self.assertEqual(trace.advise().to_csv(), csv("advise", GPU))
            self.assertEqual(trace.advise().to_text(), text("advise", GPU, "--all"))
            self.assertEqual(opscope.advise(GPU).to_csv(), csv("advise", GPU))
            self.assertEqual(opscope.advise(trace).to_csv(), csv("advise", GPU))
            self.assertEqual(opscope.advise(GPU, compat="torch").to_csv(), csv("advise", GPU, "--compat=torch"))
            with self.assertRaisesRegex(opscope.Error, "expected dlprof or torch"):
                trace.advise(compat="pyprof")
            with self.assertRaisesRegex(opscope.Error, "device"):
                trace.advise(device=0)
            query = "SELECT name, count(*) AS n, avg(dur_ns) FROM gpu_op GROUP BY name ORDER BY name"
            self.assertEqual(trace.sql(query).to_csv(), csv("sql", GPU, query))
            self.assertEqual(trace.sql("SELECT 1 AS one").to_dict(), {"one": [1]})
            twice = trace.sql("SELECT 1 AS a, 2 AS a, 3 AS a, 4 AS \"a:1\", 9e999 AS big")
            self.assertEqual(twice.to_dict(), {"a": [1], "a:1": [2], "a:2": [3], "a:1:1": [4], "big": [None]})
            self.assertEqual([c.title for c in twice.columns], ["a", "a", "a", "a:1", "big"])
            with self.assertRaisesRegex(TypeError, "^report: a name was expected, not 5$"):
                trace.report(5)
            with self.assertRaisesRegex(opscope.Error, "syntax"):
                trace.sql("SELEC")

    def test_diff(self):
        with opscope.load(RESNET) as a, opscope.load(GPU) as gpu:
            first, last = (a.report("steps")["step"][i] for i in (0, -1))
            want = csv("diff", RESNET, f"--steps={first}", RESNET, f"--steps={last}")
            self.assertGreater(want.count("\n"), 5)
            self.assertEqual(a.diff(a, steps=first, other_steps=last).to_csv(), want)
            with opscope.load(RESNET) as b:
                self.assertEqual(a.diff(b, steps=first, other_steps=last).to_csv(), want)
                self.assertEqual(a.diff(b, steps=first, other_steps=last, by="op").to_csv(), csv("diff", RESNET, f"--steps={first}", RESNET, f"--steps={last}", "--by=op"))
            self.assertEqual(opscope.diff(GPU, gpu).to_markdown(), text("diff", GPU, GPU, "--format=markdown", "--notes=full"))
            self.assertRegex(opscope.diff(GPU, gpu).sections["verdict"]["verdict"][0], "^No difference")
            with self.assertRaisesRegex(opscope.Error, "term, module, tree, op, kernel or line"):
                a.diff(a, by="layer")
            with self.assertRaisesRegex(opscope.Error, "device"):
                a.diff(a, device=0)
            with self.assertRaisesRegex(opscope.Error, "has none"):
                a.diff(gpu)
            with self.assertRaisesRegex(opscope.Error, "closed"):
                a.diff(b)

    def test_signals_while_it_loads(self):
        """A handler runs, and what it raises ends the wait for a pipe that nobody writes into; other handlers do not."""
        class Enough(Exception):
            pass

        calls = []

        def handle(number, frame):
            calls.append(number)
            if len(calls) == 3:
                raise Enough

        def knock(stop, main):
            while not stop.wait(0.01):
                signal.pthread_kill(main, signal.SIGUSR1)

        before, stop = signal.signal(signal.SIGUSR1, handle), threading.Event()
        with tempfile.TemporaryDirectory() as folder:
            pipe = os.path.join(folder, "pipe")
            os.mkfifo(pipe)
            thread = threading.Thread(target=knock, args=(stop, threading.get_ident()))
            try:
                with self.assertRaises(Enough):
                    thread.start()
                    opscope.load(pipe)
            finally:
                stop.set()
                thread.join()
                signal.signal(signal.SIGUSR1, before)
            self.assertGreaterEqual(len(calls), 3)
            os.close(os.open(pipe, os.O_RDWR))  # the reader that was left behind ends

    def test_export(self):
        with tempfile.TemporaryDirectory() as folder, opscope.load(RESNET, as_written=True) as trace:
            for name, path, keywords, words in (("chrome", "a.json", {}, []), ("stacks", "a.txt", {"metric": "self_cpu_time_total", "by": "op"},
                                                                               ["--metric=self_cpu_time_total", "--by=op"])):
                path = os.path.join(folder, path)
                notes = trace.export(name, path, **keywords)
                code, out, err = oracle.run("export", name, RESNET, *words)
                self.assertEqual((code, ["opscope: " + n for n in notes]), (0, err.decode().splitlines()))
                with open(path, "rb") as f:
                    self.assertEqual(f.read(), out, name)
            trace.export("chrome", os.path.join(folder, "b.json.gz"))
            self.assertEqual(oracle.load(os.path.join(folder, "b.json.gz")), oracle.load(os.path.join(folder, "a.json")))
            with self.assertRaisesRegex(opscope.Error, "no export format 'no-such'"):
                trace.export("no-such", os.path.join(folder, "c"))
            with self.assertRaisesRegex(opscope.Error, "no option 'metric'"):
                trace.export("chrome", os.path.join(folder, "c"), metric="auto")
            with self.assertRaisesRegex(opscope.Error, "/no/such/folder"):
                trace.export("chrome", "/no/such/folder/a.json")
            self.assertEqual(sorted(os.listdir(folder)), ["a.json", "a.txt", "b.json.gz"])


class Tables(oracle.Case):
    def table(self, **params):
        return opscope.load(RESNET).report("operators", **params)

    def test_rows_and_columns(self):
        table = self.table()
        columns = table.to_dict()
        want = oracle.report("operators", RESNET)
        self.assertEqual(list(columns), want.ids)
        self.assertEqual(list(table), want.rows)
        self.assertEqual(table[0], want.rows[0])
        self.assertEqual(table[-2:], want.rows[-2:])
        self.assertEqual((table[-1], table[1:9:3], table[5:2]), (want.rows[-1], want.rows[1:9:3], []))
        self.assertEqual(table["calls"], [r["calls"] for r in want.rows])
        self.assertEqual(list(table.notes), want.notes)
        self.assertEqual([c._asdict() for c in table.columns], want.doc["columns"])
        with self.assertRaisesRegex(KeyError, "no column 'no-such'"):
            table["no-such"]
        for outside in (len(table), -len(table) - 1):
            with self.assertRaises(IndexError):
                table[outside]
        with self.assertRaises(IndexError):
            table._table.row(len(table))
        self.assertRegex(repr(table), rf"operators: {len(table)} rows x {len(columns)} columns")
        self.assertTrue(all(type(v) is bool or v is None for c in table.columns if c.type == "boolean" for v in table[c.id]))

    def test_a_row_is_made_alone(self):
        """The others cost nothing: no column is made for it."""
        table = self.table()
        want = list(table)[3]
        with unittest.mock.patch.object(table, "_column", side_effect=AssertionError):
            self.assertEqual(table[3], want)

    def test_sections(self):
        want = oracle.report("overview", RESNET)
        trace = opscope.load(RESNET)
        table = trace.report("overview")
        trace.close()
        sections = table.sections
        self.assertEqual(list(sections), [s["name"] for s in want.doc["sections"]])
        del table, trace  # a section keeps what it lies in
        for name, section in sections.items():
            self.assertEqual(list(section), want.section(name).rows)
            self.assertEqual(section.sections, {})
            self.assertEqual(section.to_csv(), csv("report", "overview", RESNET, "--section=" + name))

    def test_files(self):
        table = self.table()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t")
            for put in (table.to_csv, table.to_json, table.to_html):
                text = put(path)
                with open(path, "rb") as f:
                    self.assertEqual(f.read().decode(), text)
                self.assertEqual(put(), text)
        self.assertTrue(table.to_html().startswith("<!doctype html>"))

    def test_html_for_notebooks(self):
        html = self.table()._repr_html_()
        self.assertTrue(html.startswith("<div class=opscope>"))
        self.assertNotIn("<script", html)
        self.assertEqual(html.count("<tr>"), 1 + min(30, len(self.table())))
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            f.write('{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "<script>alert(1)</script>", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}')
            f.flush()
            html = opscope.load(f.name).report("operators")._repr_html_()
        self.assertIn("&lt;script&gt;alert(1)", html)
        self.assertNotIn("<script", html)

    def test_text_that_is_not_utf8(self):
        """As in CSV: each byte that is none becomes U+FFFD, whatever its neighbours."""
        with tempfile.NamedTemporaryFile("wb", suffix=".json") as f:
            f.write(b'{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a\xe2\x82b\xff\xc3\xa9\xed\xa0\x80", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}')
            f.flush()
            table = opscope.load(f.name).report("operators")
            self.assertEqual(table["name"], ["a\ufffd\ufffdb\ufffd\u00e9\ufffd\ufffd\ufffd"])
            self.assertEqual(table.to_csv(), csv("report", "operators", f.name))
            self.assertIn(table["name"][0], table.to_csv())

    def test_pandas(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("pandas is not installed")
        for path, name in ((RESNET, "operators"), (GPU, "kernels"), (GPU, "operators")):
            table = opscope.load(path).report(name)
            frame = table.to_pandas()
            self.assertEqual(list(frame.columns), [c.id for c in table.columns])
            self.assertEqual(len(frame), len(table))
            for c in table.columns:
                got = [None if pandas.isna(v) else v for v in frame[c.id]]
                self.assertEqual(got, table[c.id], c.id)
                kinds = {"string": "O", "integer": "i", "number": "f", "boolean": "b"}
                self.assertEqual(frame[c.id].dtype.kind, kinds[c.type], c.id)


class Threads(oracle.Case):
    def test_reports_of_one_trace(self):
        want = csv("report", "operators", GPU)
        trace, got = opscope.load(GPU), []

        def ask():
            for _ in range(20):
                got.append(trace.report("operators").to_csv())
                trace.problems

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(set(got), {want})
        self.assertEqual(len(got), 80)

    def test_the_interpreter_is_let_go(self):
        """A thread that reads from a pipe waits for what this one is to write."""
        with tempfile.TemporaryDirectory() as folder:
            pipe, loaded = os.path.join(folder, "trace.json"), []
            os.mkfifo(pipe)
            thread = threading.Thread(target=lambda: loaded.append(opscope.load(pipe)))
            thread.start()
            with open(GPU, "rb") as f, open(pipe, "wb") as out:
                out.write(f.read())
            thread.join()
        self.assertEqual(loaded[0].report("operators").to_csv(), csv("report", "operators", GPU))

    def test_closed_while_asked(self):
        """close() never pulls the trace away from under a report."""
        for _ in range(20):
            trace, got = opscope.load(GPU), []

            def ask():
                try:
                    while True:
                        got.append(len(trace.report("operators")))
                except opscope.Error as e:
                    got.append(str(e))

            threads = [threading.Thread(target=ask) for _ in range(3)]
            for t in threads:
                t.start()
            while not got:
                pass
            trace.close()
            self.assertTrue(trace.closed)
            for t in threads:
                t.join()
            self.assertEqual({g for g in got if isinstance(g, str)}, {"the trace is closed"})


if __name__ == "__main__":
    oracle.main()
