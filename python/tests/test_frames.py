"""Frames, names that a shell completes, what a notebook shows, progress: exact against the traces themselves and against the program."""
import collections
import html.parser as html_parser
import json
import os
import subprocess
import sys
import tempfile
import unittest

from support import RESNET, oracle
import opscope

try:
    import pandas
except ImportError:
    pandas = None

GPU = oracle.synthetic("all_categories")
HOSTILE = "</script><script>alert(1)</script>\"'&<img src=x onerror=alert(2)>\u202e\n`${x}`"
# Categories of Kineto by where they run.
DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "Memcpy", "Memset"}


def trace_of(case, events):
    """A trace with these events, in a file that lives as long as the test."""
    file = tempfile.NamedTemporaryFile("w", suffix=".json")
    case.addCleanup(file.close)
    json.dump({"traceEvents": events}, file)
    file.flush()
    return file.name


def hostile(case):
    """A host op and a kernel that it launched, of a GPU, whose names are HTML."""
    name = HOSTILE
    return trace_of(case, [
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": name}},
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "ts": 1, "dur": 100, "pid": 1, "tid": 1, "args": {}},
        {"ph": "X", "cat": "cpu_op", "name": name, "ts": 2, "dur": 50, "pid": 1, "tid": 1, "args": {"External id": 7, "Input Dims": [[2, 2], [2, 2]]}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 10, "dur": 5, "pid": 1, "tid": 1, "args": {"External id": 7, "correlation": 3}},
        {"ph": "X", "cat": "kernel", "name": name, "ts": 30, "dur": 40, "pid": 0, "tid": 7, "args": {"External id": 7, "correlation": 3, "device": 0, "stream": 7}},
    ])


@unittest.skipUnless(pandas, "pandas is not installed")
class Events(oracle.Case):
    def check_every_event(self, path):
        """Every range and piece of device work of the JSON, by name, category, duration and place; and no other."""
        frame = opscope.load(path).events
        raw = [e for e in oracle.events(oracle.load(path)) if e.get("ph") == "X"]
        want = collections.Counter((e["name"], e["cat"], round(e["dur"] * 1000)) for e in raw if e["cat"] not in ("gpu_user_annotation",))
        mine = frame[frame.kind != "gpu-user"] if "gpu-user" in set(frame.kind) else frame[frame.category != "gpu_user_annotation"]
        got = collections.Counter(zip(mine.name, mine.category, mine.duration_ns))
        self.assertEqual(got, want)
        on_device = {(e["name"], e["args"].get("device"), e["args"].get("stream")) for e in raw if e["cat"] in DEVICE}
        work = frame[frame.kind.isin(["kernel", "memcpy", "memset"])]
        self.assertEqual({(n, d, s) for n, d, s in zip(work.name, work.device, work.stream)}, on_device)
        self.assertTrue(frame.start_ns.is_monotonic_increasing)
        self.assertEqual(list(frame.event), list(frame.index))
        return frame

    def test_of_a_cpu(self):
        frame = self.check_every_event(RESNET)
        self.assertFalse(frame.kind.isin(["kernel", "memcpy", "memset"]).any())
        self.assertTrue(frame.device.isna().all())
        inside = frame[frame.parent.notna()]
        around = frame.loc[inside.parent.astype("int64")]
        self.assertTrue((inside.start_ns.values >= around.start_ns.values).all())
        self.assertTrue((inside.thread.values == around.thread.values).all())

    def test_of_a_gpu(self):
        path = oracle.data("multirank", "megatron_a100_tp8", "megatron_kineto_3.json.gz")
        frame = self.check_every_event(path)
        raw = [e for e in oracle.events(oracle.load(path)) if e.get("ph") == "X"]
        calls = {e["args"]["correlation"]: e for e in raw if e["cat"] in ("cuda_runtime", "cuda_driver")}
        ops = [e for e in raw if e["cat"] == "cpu_op"]
        kernels = frame[frame.kind == "kernel"]
        told = kernels[kernels.op.notna()]
        self.assertGreater(len(told), 500)
        self.assertEqual(list(frame.loc[told.op_event.astype("int64")].name), list(told.op))
        for kernel in told.iloc[::20].itertuples():  # times of the file are whole us: several ops may be the innermost one
            call = calls[kernel.correlation]
            around = [o for o in ops if o["tid"] == call["tid"] and o["ts"] <= call["ts"] and o["ts"] + o["dur"] >= call["ts"] + call["dur"]]
            least = min(o["dur"] for o in around)
            self.assertIn(kernel.op, {o["name"] for o in around if o["dur"] <= least + 2})
        launched = kernels[kernels.call.notna()]
        self.assertEqual(list(frame.loc[launched.call.astype("int64")].correlation), list(launched.correlation))

    def test_steps_are_those_of_the_option(self):
        """The events of each step are those that --steps leaves, less frames of Python that were open before it."""
        for path in (RESNET, GPU, oracle.synthetic("last_steps_no_kernel"), oracle.synthetic("kernel_out_of_step")):
            trace = opscope.load(path)
            frame, steps = trace.events, list(trace.steps.step)
            self.assertTrue(steps)
            for step in steps:
                part = trace.event_table(steps=int(step)).to_pandas()
                context = part.kind.isin(["python", "marker"]) & (part.step != step).fillna(True)
                mine, want = (sorted(zip(f.name, f.start_ns, f.duration_ns)) for f in (frame[frame.step == step], part[~context]))
                self.assertTrue(mine)
                self.assertEqual(mine, want, (path, step))

    def test_modules_are_those_of_layers(self):
        """Device work by module and direction adds up to the report."""
        path = oracle.data("more", "tracelens", "normalization_mi300", "normalization_layer_test.json.gz")
        trace = opscope.load(path)
        frame = trace.events
        work = frame[frame.kind.isin(["kernel", "memcpy", "memset"]) & frame.module.notna()]
        rows = [r for r in trace.report("layers", steps="all") if not r["layer"].startswith("(")]
        self.assertTrue(rows)
        for direction in ("forward", "backward"):
            want = {r["layer"]: r[f"{direction}_gpu_ns"] for r in rows if r[f"{direction}_gpu_ns"]}
            self.assertEqual(work[work.direction == direction].groupby("module").duration_ns.sum().to_dict(), want)

    def test_arrangement_and_options(self):
        trace = opscope.load(GPU)
        table = trace.event_table(sort="-duration_ns", limit=3, columns="name,duration_ns")
        self.assertEqual([c.id for c in table.columns], ["name", "duration_ns"])
        self.assertEqual(table["duration_ns"], sorted(trace.events.duration_ns, reverse=True)[:3])
        for wrong in ({"device": 0}, {"group_by": "name"}, {"compat": "torch"}, {"per": "step"}):
            with self.assertRaises(opscope.Error) as caught:
                trace.event_table(**wrong)
            self.assertEqual(caught.exception.code, "usage")
        with self.assertRaises(opscope.Error):
            trace.event_table(steps="7000")
        trace.close()
        with self.assertRaisesRegex(opscope.Error, "closed"):
            trace.events

    def test_empty(self):
        frame = opscope.load(trace_of(self, [])).events
        self.assertEqual(len(frame), 0)
        self.assertEqual(list(frame.columns), list(opscope.load(GPU).events.columns))
        self.assertEqual(frame.duration_ns.dtype, "int64")


@unittest.skipUnless(pandas, "pandas is not installed")
class Frames(oracle.Case):
    def test_frames_are_reports(self):
        for path, names in ((RESNET, {"steps": "steps", "ops": "operators"}), (GPU, {"steps": "steps", "ops": "operators", "kernels": "kernels"})):
            trace = opscope.load(path)
            for attribute, report in names.items():
                frame, want = getattr(trace, attribute), json.loads(oracle.run("report", report, path, "--format=json")[1])
                self.assertEqual(list(frame.columns), [c["id"] for c in want["columns"]])
                rows = [[None if pandas.isna(v) else v for v in row] for row in frame.astype(object).values.tolist()]
                self.assertEqual(rows, want["rows"])
                self.assertEqual(frame.attrs["units"], {c["id"]: c["unit"] for c in want["columns"]})
                self.assertEqual(frame.attrs["help"], {c["id"]: c["help"] for c in want["columns"]})
                self.assertEqual((frame.attrs["report"], frame.attrs["notes"]), (report, want["notes"]))

    def test_attrs_go_with_the_frame(self):
        frame = opscope.load(RESNET).ops
        self.assertEqual(frame.head(3).attrs, frame.attrs)
        self.assertEqual(frame[frame.calls > 1].attrs["units"]["host_self_ns"], "ns")

    def test_values_may_be_written(self):
        trace = opscope.load(RESNET)
        frame = trace.ops
        before = frame.calls.iloc[0]
        frame.loc[0, "calls"] = -1
        frame["more"] = 1
        self.assertEqual(trace.ops.calls.iloc[0], before)
        self.assertNotIn("more", trace.ops.columns)

    def test_without_a_device(self):
        with self.assertRaisesRegex(opscope.Error, "no kernels") as caught:
            opscope.load(RESNET).kernels
        self.assertEqual(caught.exception.code, "lacks")

    def test_texts_are_shared(self):
        frame = opscope.load(RESNET).events
        ids = {id(n) for n in frame.name}
        self.assertEqual(len(ids), frame.name.nunique())

    def test_others(self):
        """to_arrow and to_polars, where there are any."""
        table = opscope.load(RESNET).report("operators")
        for name, made in (("pyarrow", lambda: table.to_arrow().to_pydict()), ("polars", lambda: table.to_polars().to_dict(as_series=False))):
            try:
                __import__(name)
            except ImportError:
                with self.assertRaisesRegex(ImportError, name):
                    made()
                continue
            self.assertEqual(made(), table.to_dict())


class Names(oracle.Case):
    def test_reports_are_completed(self):
        trace = opscope.load(RESNET)
        self.assertEqual(sorted(r.name.replace("-", "_") for r in opscope.reports()), dir(trace.report))
        self.assertEqual(trace.report.key_averages(group_by="name", limit=3).to_csv(), trace.report("key-averages", group_by="name", limit=3).to_csv())
        self.assertIn("Which framework ops took the time", trace.report.operators.__doc__)
        self.assertEqual(trace.report.operators.__name__, "operators")
        with self.assertRaisesRegex(AttributeError, "did you mean 'operators'"):
            trace.report.operator
        self.assertFalse(hasattr(trace.report, "key-averages"))
        self.assertFalse(hasattr(trace.report, "__len__"))
        self.assertIn("key_averages", repr(trace.report))
        self.assertTrue({"events", "n_events", "steps", "kernels", "ops", "plot", "report"} <= set(dir(trace)))

    def test_shells_complete(self):
        """Of an instance's own attributes: IPython runs no property to complete what is behind it."""
        import rlcompleter

        trace = opscope.load(RESNET)
        self.assertTrue({"report", "plot"} <= set(vars(trace)))
        completer = rlcompleter.Completer({"trace": trace})
        self.assertEqual([completer.complete("trace.report.key", i) for i in range(2)], ["trace.report.key_averages(", None])
        self.assertEqual([completer.complete("trace.plot.", i) for i in range(4)], ["trace.plot.memory(", "trace.plot.roofline(", "trace.plot.timeline(", None])

    def test_the_package(self):
        """Nothing that the package needs itself, and all that it says that it has."""
        names = dir(opscope)
        self.assertTrue(set(opscope.__all__) <= set(names))
        self.assertEqual([n for n in names if n.startswith("_") and not (n.startswith("__") and n.endswith("__"))], [])
        self.assertFalse({"Any", "Dict", "List", "importlib", "annotations", "table", "trace", "job"} & set(names))
        code = "from opscope import *; print(sorted(n for n in globals() if not n.startswith('__')))"
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        shown = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
        self.assertEqual(shown.strip(), repr(sorted(opscope.__all__)))


class Shown(oracle.Case):
    def check(self, html):
        """Nothing that runs, and nothing that is fetched."""
        seen = []

        class Reader(html_parser.HTMLParser):
            def handle_starttag(self, tag, attributes):
                seen.append((tag, {name for name, _ in attributes}))

        Reader().feed(html)
        self.assertTrue(seen)
        for tag, attributes in seen:
            self.assertNotIn(tag, ("script", "img", "link", "iframe", "object", "a", "form"))
            self.assertFalse({a for a in attributes if a.startswith("on") or a in ("src", "href", "srcset")}, tag)
        self.assertNotIn("\u202e", html)
        self.assertLess(len(html), 20000)

    def test_traces(self):
        html = opscope.load(RESNET)._repr_html_()
        self.check(html)
        overview = opscope.load(RESNET).report("overview")
        for text in (os.path.basename(RESNET), "kineto", f"{opscope.load(RESNET).n_events:,}", f"{overview[0]['mean_ns'] / 1e6:,.3f} ms", "average step time", *overview["role"][1:2]):
            self.assertIn(str(text), html)
        trace = opscope.load(hostile(self))
        self.check(trace._repr_html_())
        self.check(trace.report("operators")._repr_html_())
        trace.close()
        self.assertIn("closed", trace._repr_html_())

    def test_a_hostile_path(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "<img src=x onerror=alert(1)>.json")
            os.symlink(GPU, path)
            html = opscope.load(path)._repr_html_()
        self.check(html)
        self.assertIn("&lt;img src=x onerror", html)

    def test_nothing_in_it(self):
        self.check(opscope.load(trace_of(self, []))._repr_html_())
        op = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 2, "dur": 50, "pid": 1, "tid": 1}
        self.assertNotIn("average step time", opscope.load(trace_of(self, [op]))._repr_html_())


class Progress(oracle.Case):
    def test_a_function_is_told(self):
        told = []
        opscope.load(RESNET, progress=lambda done, total: told.append((done, total)))
        size = os.path.getsize(RESNET)
        self.assertTrue(told)
        self.assertTrue(all(0 <= done <= size and total in (0, size) for done, total in told))
        self.assertEqual([d for d, _ in told], sorted(d for d, _ in told))
        self.assertEqual(opscope.advise(RESNET, progress=lambda *_: None).to_csv(), opscope.advise(RESNET).to_csv())

    def test_what_it_raises_ends_the_wait(self):
        def stop(done, total):
            raise KeyError("enough")

        with self.assertRaisesRegex(KeyError, "enough"):
            opscope.load(RESNET, progress=stop)
        for wrong in (3, "yes"):
            with self.assertRaisesRegex(TypeError, "progress"):
                opscope.load(RESNET, progress=wrong)

    def test_in_another_thread(self):
        import threading

        told, opened = [], []
        thread = threading.Thread(target=lambda: opened.append(opscope.load(RESNET, progress=lambda *x: told.append(x))))
        thread.start()
        thread.join()
        self.assertTrue(told and opened)

    def test_shown(self):
        """Nothing where there is no terminal; what there is has no control characters."""
        from opscope._progress import line

        code = f"import opscope; opscope.load({RESNET!r}, progress=True)"
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        p = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        self.assertEqual((p.stdout, p.stderr), ("", ""))
        self.assertEqual(line("a\x1b[2Jb", 410_000_000, 1_000_000_000, 2.0), "a?[2Jb: 41 % of 1000 MB, 3 s left")
        self.assertEqual(line("a", 5_000_000, 0, 2.0), "a: 5 MB read")


if __name__ == "__main__":
    oracle.main()
