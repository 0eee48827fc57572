"""The TensorBoard plugin's addresses: its own recorded answers, its shapes, and what it refused. Numbers and keys count; tooltips and the words of
recommendations do not."""
import html
import json
import os
import re
import shutil
import tempfile

import oracle
import tb_tree
from served import Server

ROOT = "/data/plugin/pytorch_profiler/"
FOLDER = ("tb_plugin", "resnet50_num_workers_0")
NAME = "resnet50_num_workers_0"


def expected(name):
    with open(oracle.data(*FOLDER, f"expected_{name}.json")) as f:
        return json.load(f)


def plain(x):
    """Markup taken out of all text; tooltips of columns and metadata left out."""
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items() if k not in ("tooltip", "tooltips")}
    if isinstance(x, list):
        return [plain(v) for v in x]
    if isinstance(x, str):
        return html.unescape(re.sub(r"<[^>]*>", " ", x))
    return x


def keys(x):
    """The shape: keys at all depths, tooltips included."""
    if isinstance(x, dict):
        return {k: keys(v) for k, v in x.items()}
    if isinstance(x, list):
        return [keys(v) for v in x[:1]]
    return None


class PluginCase(oracle.Case):
    def setUp(self):
        super().setUp()
        if oracle.run("help")[1].find(b"\n  serve ") < 0:
            self.skipTest("built without libmicrohttpd")

    def folder(self, **files):
        """run/worker.N.pt.trace.json = trace"""
        tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, tmp)
        for name, trace in files.items():
            run, worker, span = name.split("__")
            os.makedirs(os.path.join(tmp, run), exist_ok=True)
            shutil.copy(oracle.synthetic(trace), os.path.join(tmp, run, f"{worker}{'.' + span if span else ''}.pt.trace.json"))
        return Server(self, tmp)

    def one(self, trace):
        s = self.folder(**{"r__w__": trace})
        return lambda path, status=200, **args: s.get(ROOT + path, status, run="r", worker="w", span="default", **args)


class Recorded(PluginCase):
    def start(self, prefix=""):
        s = Server(self, *([f"--path-prefix={prefix}"] if prefix else []), oracle.data("tb_plugin"))
        return lambda path, **args: s.get(prefix + ROOT + path, run=NAME, worker="worker0", span="1", **args)

    def test_overview(self):
        got, want = self.start()("overview"), expected("overview")
        said = plain(got.pop("recommendations"))
        for figure in re.findall(r"\d+(?:\.\d+)?(?=%)", want.pop("recommendations")):
            self.assertRegex(said, rf"\b{re.escape(figure)}\d*(\.\d+)? ?%")
        self.assertEqual(keys(got), keys(want))
        self.assertEqual(plain(got), plain(want))

    def test_operation(self):
        got, want = self.start()("operation", group_by="Operation"), expected("operator_pies")
        self.assertEqual(list(got), list(want))
        for pie in want:
            self.assertEqual({k: v for k, v in got[pie].items() if k != "rows"}, {k: v for k, v in want[pie].items() if k != "rows"})
            # rows of the same value stand in no order that is told
            self.assertEqual([v for _, v in got[pie]["rows"]], [v for _, v in want[pie]["rows"]])
            self.assertEqual(sorted(got[pie]["rows"]), sorted(want[pie]["rows"]))

    def test_operation_table(self):
        got, want = self.start()("operation/table", group_by="Operation"), expected("operator_table")
        self.assertEqual(keys(got), keys(want))
        self.assertEqual(got["metadata"]["sort"], want["metadata"]["sort"])
        sort = got["metadata"]["sort"]
        self.assertEqual([r[sort] for r in got["data"]], [r[sort] for r in want["data"]])
        self.assertEqual(sorted(got["data"], key=lambda r: r["name"]), sorted(want["data"], key=lambda r: r["name"]))

    def test_kernel_table(self):
        got, want = self.start()("kernel/table", group_by="Kernel"), expected("kernel_table")
        self.assertEqual(keys(got), keys(want))
        self.assertEqual(plain(got["metadata"]), plain(want["metadata"]))
        self.assertEqual(plain(got["data"]["columns"]), plain(want["data"]["columns"]))
        self.assertEqual([set(c) for c in got["data"]["columns"]], [set(c) for c in want["data"]["columns"]])
        self.assertEqual(sorted(got["data"]["rows"]), sorted(want["data"]["rows"]))

    def test_kernel(self):
        got, want = self.start()("kernel", group_by="Kernel"), expected("kernel_pie")
        self.assertEqual(got["total"]["columns"], want["total"]["columns"])
        self.assertEqual([v for _, v in got["total"]["rows"]], [v for _, v in want["total"]["rows"]])
        self.assertEqual(sorted(got["total"]["rows"]), sorted(want["total"]["rows"]))

    def test_kernels_that_no_op_of_its_tree_launched(self):
        """19,370 kernels, none of whose calls the plugin's tree finds an op for."""
        tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, tmp)
        shutil.copy(oracle.data("hta", "df_index_resolver", "df_index_resolver.json.gz"), os.path.join(tmp, "w.pt.trace.json.gz"))
        server = Server(self, tmp)
        ask = lambda path, **args: server.get(ROOT + path, run=os.path.basename(tmp), worker="w", span="default", **args)
        rows = ask("kernel")["total"]["rows"]
        table = ask("kernel/table", group_by="Kernel")["data"]
        calls, total = (next(i for i, c in enumerate(table["columns"]) if c["name"] == n) for n in ("Calls", "Total Duration (us)"))
        self.assertEqual(sum(r[calls] for r in table["rows"]), 19370)
        self.assertEqual(sum(r[total] for r in table["rows"]), sum(r[1] for r in rows))
        self.assertEqual(ask("kernel/tc_pie")["total"]["rows"], [["Using Tensor Cores", 0], ["Not Using Tensor Cores", 1]])

    def test_behind_a_prefix(self):
        self.assertEqual(len(self.start("/profiles")("kernel")["total"]["rows"]), 67)

    def test_sums_agree(self):
        ask = self.start()
        rows = ask("kernel")["total"]["rows"]
        pie = ask("kernel/tc_pie")["total"]["rows"]
        self.assertEqual([r[0] for r in pie], ["Using Tensor Cores", "Not Using Tensor Cores"])
        uses = {r["name"]: r["tensor_cores_used"] for r in oracle.report("kernels", oracle.data(*FOLDER, "worker0.1623143089861.pt.trace.json.gz"), "--compat=tb-plugin").rows}
        self.assertAlmostEqual(pie[0][1], sum(us for name, us in rows if uses[name] == "Yes") / sum(us for _, us in rows), places=12)
        self.assertAlmostEqual(sum(r[1] for r in pie), 1, places=12)
        launches = ask("kernel/table", group_by="KernelNameAndOpName")["data"]
        total, calls = (next(i for i, c in enumerate(launches["columns"]) if c["name"] == n) for n in ("Total Duration (us)", "Calls"))
        self.assertEqual(sum(r[total] for r in launches["rows"]), sum(r[1] for r in rows))
        table = ask("kernel/table", group_by="Kernel")["data"]
        self.assertEqual(sum(r[calls] for r in launches["rows"]), sum(r[2] for r in table["rows"]))
        shapes = ask("operation/table", group_by="OperationAndInputShape")["data"]
        names = {r["name"]: r for r in ask("operation/table")["data"]}
        self.assertEqual(sum(r["calls"] for r in shapes), sum(r["calls"] for r in names.values()))
        stacks = ask("operation/stack", op_name="aten::conv2d")["data"]
        self.assertEqual(sum(r["calls"] for r in stacks), names["aten::conv2d"]["calls"])
        self.assertTrue(all("call_stack" in r and "has_call_stack" not in r for r in stacks))

    def test_stacks_of_shapes(self):
        """The stacks of an op with given shapes add up to its row in the table by shape, the stacks of all shapes to those of the op."""
        ask = self.start()
        columns = ("calls", "host_self_duration", "host_total_duration", "device_self_duration", "device_total_duration")
        table = [r for r in ask("operation/table", group_by="OperationAndInputShape")["data"] if r["name"] == "aten::conv2d"]
        every = {r["call_stack"]: r["calls"] for r in ask("operation/stack", op_name="aten::conv2d", group_by="Operation")["data"]}
        self.assertGreater(len(table), 15)
        for row in table[:3]:  # each costs a pass over the trace
            stacks = ask("operation/stack", op_name="aten::conv2d", input_shape=row["input_shape"], group_by="OperationAndInputShape")["data"]
            self.assertEqual({(r["name"], r["input_shape"]) for r in stacks}, {("aten::conv2d", row["input_shape"])})
            self.assertEqual(len({r["call_stack"] for r in stacks}), len(stacks))
            for c in columns:  # rounded to us in each row
                self.assertAlmostEqual(sum(r[c] for r in stacks), row[c], delta=0 if c == "calls" else len(stacks))
            for r in stacks:
                self.assertLessEqual(r["calls"], every[r["call_stack"]])

    def test_trace(self):
        ask = self.start()
        trace = oracle.load(oracle.data(*FOLDER, "worker0.1623143089861.pt.trace.json.gz"))
        want = [e for e in trace["traceEvents"] if e.get("ph") == "X" and e.get("cat") == "Kernel"]
        events = ask("trace")["traceEvents"]
        got = [e for e in events if e.get("ph") == "X" and e.get("cat", "").lower() == "kernel"]
        self.assertEqual(len(got), len(want))
        self.assertLessEqual({"GPU 0 Utilization", "GPU 0 Est. SM Efficiency"}, {e["name"] for e in events if e.get("ph") == "C"})


class Shapes(PluginCase):
    def test_runs_workers_spans(self):
        s = self.folder(r1__w0__1="training_gpu", r1__w0__2="training_gpu", r1__w1__1="memory_view", r2__w0__="module_hierarchy", r3__w0__="pure_cpu")
        ask = lambda path, **args: s.get(ROOT + path, **args)
        self.assertEqual(ask("runs"), {"runs": ["r1", "r2", "r3"], "loading": False})
        self.assertEqual(ask("views", run="r1"), ["Overview", "Operator", "Kernel", "Trace", "Memory", "Module"])
        self.assertEqual(ask("views", run="r2"), ["Overview", "Operator", "Trace", "Module"])
        self.assertEqual(ask("views", run="r3"), ["Overview", "Operator", "Trace"])
        self.assertEqual(ask("workers", run="r1", view="Overview"), ["w0", "w1"])
        self.assertEqual(ask("workers", run="r1", view="Memory"), ["w1"])
        self.assertEqual(ask("workers", run="r1", view="Distributed"), [])
        self.assertEqual(ask("spans", run="r1", worker="w0"), ["1", "2"])
        self.assertEqual(ask("spans", run="r2", worker="w0"), ["default"])
        self.assertEqual(ask("overview", run="r1", worker="w0", span="1")["environments"][0], {"title": "Number of Worker(s)", "value": "2"})

    def test_a_damaged_worker_does_not_hide_the_others(self):
        s = self.folder(r__good__="pure_cpu", r__bad__="pure_cpu")
        path = next(x["path"] for x in s.inputs().values() if "bad" in x["worker"])
        with open(path, "w") as f:
            f.write('{"traceEvents": nonsense')
        self.assertEqual(s.get(ROOT + "workers", run="r", view="Overview"), ["good"])
        self.assertIn("bad", s.get(ROOT + "overview", 422, run="r", worker="bad", span="default")["error"])

    def test_cpu_alone(self):
        ask = self.one("pure_cpu")
        o = ask("overview")
        self.assertNotIn("gpu_metrics", o)
        self.assertEqual(o["environments"][1]["value"], "CPU")
        pies = ask("operation")
        self.assertEqual([k for k, v in pies.items() if v is None], ["device_total_time", "device_self_time"])
        table = ask("operation/table")
        self.assertEqual(table["metadata"]["sort"], "host_self_duration")
        self.assertNotIn("device_self_duration", table["data"][0])
        self.assertIn("error", ask("kernel", 422))

    def test_memory(self):
        ask = self.one("memory_view")
        m = ask("memory")
        self.assertEqual(m["metadata"], {"title": "Memory View", "default_device": "GPU0", "search": "Operator Name", "sort": "Self Size Increase (KB)"})
        self.assertEqual([c["name"] for c in m["columns"]], ["Operator Name", "Calls", "Size Increase (KB)", "Self Size Increase (KB)", "Allocation Count",
                                                               "Self Allocation Count", "Allocation Size (KB)", "Self Allocation Size (KB)"])
        self.assertEqual({d: len(r) for d, r in m["rows"].items()}, {"GPU0": 8, "CPU": 5})
        for rows in m["rows"].values():
            self.assertEqual([r[0] for r in rows], sorted(r[0] for r in rows))
        path = oracle.synthetic("memory_view")
        for device, arg in (("GPU0", "0"), ("CPU", "cpu")):
            want = oracle.report("memory", path, "--compat=tb-plugin", f"--device={arg}")
            self.assertEqual(sorted(m["rows"][device]), sorted([r[i] for i in want.ids] for r in want.rows))
            got = ask("memory_events")["rows"][device]
            events = want.section("events")
            self.assertEqual([r[1:] for r in got], [[r[i] for i in events.ids][1:] for r in events.rows])
        self.assertIn("memory_metric=X", ask("memory", 400, memory_metric="X")["error"])
        self.assertIn("start_ts", ask("memory", 400, start_ts="soon")["error"])
        self.assertIn("memory", self.one("pure_cpu")("memory", 422)["error"])

    def test_memory_of_a_part(self):
        """Of the time before and after each moment: events are in one of both, both ends included; calls in each that they reach into."""
        path = os.path.join(oracle.ROOT, "tests", "data", "torch214_cpu_resnet.json.gz")
        tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, tmp)
        shutil.copy(path, os.path.join(tmp, "w.pt.trace.json.gz"))
        server = Server(self, tmp)

        def ask(path, **args):
            return server.get(ROOT + path, run=os.path.basename(tmp), worker="w", span="default", memory_metric="KB", time_metric="us", **args)["rows"]["CPU"]
        trace = oracle.events(oracle.load(path))
        events = sorted((e["ts"], e["args"]["Bytes"]) for e in trace if e.get("name") == "[memory]")
        begin, end = int(min(e["ts"] for e in trace if "ts" in e)) - 1, int(max(e["ts"] + e.get("dur", 0) for e in trace if "ts" in e)) + 1
        whole, curve = {r[0]: r for r in ask("memory")}, ask("memory_curve")
        for share in (0.3, 0.7):
            at = int(share * len(events))
            middle = next(int(a) + 1 for (a, _), (b, _) in zip(events[at:], events[at + 1:]) if b > int(a) + 2)  # no event is in neither part
            parts = [{r[0]: r for r in ask("memory", **args)} for args in ({"end_ts": middle}, {"start_ts": middle + 1, "end_ts": end})]
            for name, row in whole.items():
                halves = [p[name] for p in parts if name in p]
                for column in (3, 5, 7):  # own: size, allocations, their size
                    self.assertAlmostEqual(sum(h[column] for h in halves), row[column], delta=0 if column == 5 else 0.011 * len(halves), msg=name)
                self.assertTrue(all(h[1] <= row[1] for h in halves) and (len(halves) < 2 or sum(h[1] for h in halves) >= row[1]), name)
            self.assertLess(sum(r[5] for r in parts[0].values()), sum(r[5] for r in whole.values()))
            for args, inside in (({"end_ts": middle}, lambda t: t <= middle), ({"start_ts": middle}, lambda t: t >= middle)):
                rows = ask("memory_events", **args)
                self.assertEqual([sum(r[c] is not None for r in rows) for c in (2, 3)], [sum(inside(t) and (b > 0) == (c == 2) for t, b in events) for c in (2, 3)])
        self.assertEqual(ask("memory", start_ts=begin, end_ts=end), ask("memory"))
        self.assertEqual(ask("memory_curve", start_ts=middle), curve)

    def test_memory_curve(self):
        ask = self.one("memory_curve")
        c = ask("memory_curve")
        events = [e for e in oracle.events(oracle.load(oracle.synthetic("memory_curve"))) if e.get("name") == "[memory]"]
        begin = min(e["ts"] for e in oracle.events(oracle.load(oracle.synthetic("memory_curve"))) if "ts" in e)
        self.assertEqual(c["metadata"]["first_ts"], begin)
        self.assertEqual((c["metadata"]["default_device"], c["metadata"]["time_factor"], c["metadata"]["memory_factor"]), ("GPU0", 1000, 1024))
        self.assertEqual([x["name"] for x in c["columns"]], ["Time (ms)", "Allocated (KB)", "Reserved (KB)"])
        for device, number in (("GPU0", 0), ("CPU", -1)):
            points = [e for e in events if (e["args"]["Device Type"] == 1) == (device != "CPU") and "Addr" in e["args"]]
            rows = c["rows"][device]
            self.assertEqual(len(rows), 2 * len(points) - 1)
            exact = ask("memory_curve", memory_metric="B", time_metric="us")["rows"][device][::2]
            self.assertEqual(exact, [[e["ts"] - begin, e["args"]["Total Allocated"], e["args"]["Total Reserved"]] for e in sorted(points, key=lambda e: e["ts"])])
            peak = max(e["args"]["Total Allocated"] for e in points)
            self.assertEqual(c["metadata"]["peaks"][device], f"Peak Memory Usage: {peak / 1024:.1f}KB")

    def test_memory_that_a_gpu_has(self):
        tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, tmp)
        trace = oracle.load(oracle.synthetic("memory_curve"))
        for worker, devices in (("told", [{"id": 1, "totalGlobalMem": 7 << 30}, {"id": 0, "totalGlobalMem": 3 << 29}]), ("untold", [{"id": 0, "name": "GPU"}])):
            with open(os.path.join(tmp, worker + ".pt.trace.json"), "w") as f:
                f.write(json.dumps({**trace, "deviceProperties": devices}))
        server = Server(self, tmp)
        totals = [server.get(ROOT + "memory_curve", run=os.path.basename(tmp), worker=w, span="default", memory_metric="GB")["metadata"]["totals"] for w in ("told", "untold")]
        self.assertEqual(totals, [{"GPU0": 1.5}, {}])

    def test_modules(self):
        m = self.one("module_hierarchy")("module")
        self.assertEqual([c["key"] for c in m["columns"]], ["name", "occurences", "operators", "host_duration", "self_host_duration", "device_duration",
                                                              "self_device_duration"])
        self.assertEqual([d["name"] for d in m["data"]], ["Conv2", "MyModule"])
        self.assertEqual(m["data"][0]["children"], [])
        self.assertEqual({k: v for k, v in m["data"][1]["children"][0].items() if k != "id"},
                         {"name": "Linear", "occurences": 3, "operators": 3, "host_duration": 186, "self_host_duration": 90, "device_duration": 0,
                          "self_device_duration": 0, "avg_duration": 62, "children": []})
        self.assertIn("modules", self.one("pure_cpu")("module", 404)["error"])

    def test_tree(self):
        """Node by node as an independent reading has the plugin's tree: with modules, and the backward pass of each in place of the engine's ranges."""
        bundled = os.path.join(oracle.ROOT, "tests", "data", "torch214_cpu_resnet.json.gz")
        tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, tmp)
        paths = {t: oracle.synthetic(t) for t in ("training_gpu", "two_steps", "self_time", "memory_view", "module_hierarchy")} | {"bundled": bundled}
        for name, path in paths.items():
            os.mkdir(os.path.join(tmp, name))
            shutil.copy(path, os.path.join(tmp, name, "w.pt.trace.json" + path[path.index(".json") + 5:]))
        s = Server(self, tmp)
        for name, path in paths.items():
            with self.subTest(trace=name):
                self.same_tree(s.get(ROOT + "tree", run=name, worker="w", span="default"), tb_tree.root_of(path))

    def same_tree(self, got, want, at=""):
        at = f"{at}/{want.name}"
        self.assertEqual(list(got), ["name", "start_time", "end_time", "type", "tid", "children"])
        self.assertEqual((got["name"], got["type"], got["tid"]), (want.name, want.type, str(want.tid)), at)
        self.assertAlmostEqual(got["start_time"], want.start, delta=0.05, msg=at)
        self.assertAlmostEqual(got["end_time"], want.end, delta=0.05, msg=at)
        self.assertEqual([c["name"] for c in got["children"]], [c.name for c in want.children], at)
        for g, w in zip(got["children"], want.children):
            self.same_tree(g, w, at)

    def test_tree_of_backward_modules(self):
        """By hand: the backward pass of the outer module has that of the inner one and the gradients added behind it, is of the engine's thread, and stands by its time."""
        engine = "autograd::engine::evaluate_function: "
        events = [("python_function", "nn.Module: Outer", 1, 100, 100, {"Python id": 1, "Python module id": 0}),
                  ("python_function", "nn.Module: Inner", 1, 110, 50, {"Python id": 2, "Python parent id": 1, "Python module id": 1}),
                  ("cpu_op", "aten::mm", 1, 120, 20, {"External id": 1, "Sequence number": 1}), ("cpu_op", "aten::add", 1, 170, 10, {"External id": 2, "Sequence number": 2}),
                  ("cpu_op", "aten::sum", 1, 210, 10, {"External id": 3}), ("cpu_op", "aten::item", 1, 500, 10, {"External id": 4}),
                  ("cpu_op", engine + "AddBackward0", 2, 300, 20, {"External id": 5}), ("cpu_op", "AddBackward0", 2, 305, 10, {"External id": 6, "Sequence number": 2}),
                  ("cpu_op", engine + "MmBackward0", 2, 330, 20, {"External id": 7}), ("cpu_op", "MmBackward0", 2, 335, 10, {"External id": 8, "Sequence number": 1}),
                  ("cpu_op", engine + "torch::autograd::AccumulateGrad", 2, 360, 5, {"External id": 9})]
        rows = [{"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args} for cat, name, tid, ts, dur, args in events]
        for i, (forward, backward) in enumerate(((120, 335), (170, 305))):
            rows += [{"ph": "s", "cat": "fwdbwd", "name": "fwdbwd", "id": i, "pid": 1, "tid": 1, "ts": forward},
                     {"ph": "f", "bp": "e", "cat": "fwdbwd", "name": "fwdbwd", "id": i, "pid": 1, "tid": 2, "ts": backward}]
        tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, tmp)
        with open(os.path.join(tmp, "w.pt.trace.json"), "w") as f:
            f.write(json.dumps({"schemaVersion": 1, "traceEvents": rows}))
        s = Server(self, tmp)
        run = s.get(ROOT + "runs")["runs"][0]

        def said(node):
            return (node["name"], node["type"], node["tid"], node["start_time"], node["end_time"], [said(c) for c in node["children"]])

        def op(name, tid, start, end, *inside):
            return (name, "Operator", tid, start, end, list(inside))
        want = ("CallTreeRoot", "Python", "1", 100, 510, [
            ("nn.Module: Outer", "Module", "1", 100, 200, [
                ("nn.Module: Inner", "Module", "1", 110, 160, [op("aten::mm", "1", 120, 140)]),
                op("aten::add", "1", 170, 180)]),
            op("aten::sum", "1", 210, 220),
            ("nn.Module: Outer.backward", "backward", "2", 300, 365, [
                op(engine + "AddBackward0", "2", 300, 320, op("AddBackward0", "2", 305, 315)),
                ("nn.Module: Inner.backward", "backward", "2", 330, 365, [
                    op(engine + "MmBackward0", "2", 330, 350, op("MmBackward0", "2", 335, 345)),
                    op(engine + "torch::autograd::AccumulateGrad", "2", 360, 365)])]),
            op("aten::item", "1", 500, 510)])
        self.assertEqual(said(s.get(ROOT + "tree", run=run, worker="w", span="default")), want)

    def test_refused(self):
        s = self.folder(r__w__="training_gpu")
        profile = {"run": "r", "worker": "w", "span": "default"}
        for path in ("overview", "operation", "operation/table", "kernel", "kernel/table", "kernel/tc_pie", "trace", "memory", "memory_curve", "memory_events",
                     "module", "tree"):
            for missing in profile:
                args = {k: v for k, v in profile.items() if k != missing}
                self.assertIn(f"'{missing}' was expected", s.get(ROOT + path, 400, **args)["error"], path)
                self.assertIn("no profile", s.get(ROOT + path, 404, **{**profile, missing: "nothing"})["error"], path)
        self.assertIn("'op_name' was expected", s.get(ROOT + "operation/stack", 400, **profile)["error"])
        self.assertIn("'input_shape' was expected", s.get(ROOT + "operation/stack", 400, op_name="aten::add", group_by="OperationAndInputShape", **profile)["error"])
        self.assertIn("nothing", s.get(ROOT + "operation/stack", 404, op_name="nothing", **profile)["error"])
        for path, args in (("views", {}), ("workers", {"view": "Overview"}), ("spans", {"worker": "w"})):
            self.assertIn("'run' was expected", s.get(ROOT + path, 400, **args)["error"])
            self.assertIn("nothing", s.get(ROOT + path, 404, run="nothing", **args)["error"])
        for path in ("distributed/gpuinfo", "distributed/overlap", "distributed/waittime", "distributed/commops"):
            self.assertIn("error", s.get(ROOT + path, 404, run="r", span="default"))
            self.assertIn("'span' was expected", s.get(ROOT + path, 400, run="r")["error"])
        both = {**profile, **{"exp_" + k: v for k, v in profile.items()}}
        for path in ("diff", "diffnode"):
            self.assertIn("no profile", s.get(ROOT + path, 404, **{**both, "exp_run": "nothing"})["error"])
            self.assertIn("'exp_run' was expected", s.get(ROOT + path, 400, **profile)["error"])
        self.assertIn("no page", s.get(ROOT + "nothing", 404)["error"])
        a = s.ask(ROOT + "overview", {**profile, "anything": "else"})
        self.assertEqual((a.status, a.headers["x-content-type-options"]), (200, "nosniff"))


if __name__ == "__main__":
    oracle.main()
