"""`report function-events` and `report key-averages` against what torch.profiler itself said of the same runs: prof.events() event by
event, key_averages() cell by cell, for torch 1.13, 2.6 and 2.14; and device time, which counts once."""
import collections
import gzip
import json
import os
import re
import statistics
import tempfile
import unittest

import oracle
from oracle import Case, data, report

VERSIONS = {"torch113_cpu": "torch-1.13", "torch26_cpu": "torch-2.6", "torch214_cpu": "torch-2.14"}
RUNS = [(d, m, k) for d in VERSIONS for m in ("resnet", "lstm") for k in ("plain", "full")]
LEGACY = "torch113_cpu"  # written as a bare array: neither shapes, memory, FLOPs, stacks nor numbers of the backward pass


def ns(us):
    return round(us * 1000)


def frames_of(row):
    return row["call_stack"].split(";") if row.get("call_stack") else []


def is_python(name):
    return name.startswith(("<", "nn.Module: ")) or ("(" in name and "): " in name)


class Events(Case):
    def check(self, directory, run):
        path = data("torch", directory, f"{run}.json.gz")
        with gzip.open(data("torch", directory, f"{run}.events.json.gz")) as f:
            want = json.load(f)
        rows = report("function-events", path, f"--compat={VERSIONS[directory]}", "--limit=0").rows
        self.assertEqual(len(rows), len(want))
        zero = rows[0]["start_ns"] - ns(want[0]["start"])
        thread = {}
        for i, (w, r) in enumerate(zip(want, rows)):
            got = {"name": r["name"], "start": r["start_ns"] - zero, "end": r["end_ns"] - zero, "async": r["async"],
                   "thread": thread.setdefault(r["thread"], w["thread"])}
            wanted = {"name": w["name"], "start": ns(w["start"]), "end": ns(w["end"]), "async": w["is_async"], "thread": w["thread"]}
            if directory != LEGACY:  # whose trace has no stacks: test_stacks_of_torch_113
                got["stack"], wanted["stack"] = frames_of(r), w["stack"]
            if directory == LEGACY:
                self.assertFalse({"input_shape", "host_memory_bytes", "flops", "call_stack"} & set(r))
            else:
                scope = 7 if r["user_annotation"] else 1 if r["backward_node"] else 0
                got.update(shapes=r["input_shape"], seq=-1 if r["sequence_number"] is None else r["sequence_number"],
                           fwd_thread=r["fwd_thread"] or 0, scope=scope, mem=r["host_memory_bytes"], flops=r["flops"])
                wanted.update({k: w[k] for k in ("shapes", "seq", "fwd_thread", "scope", "mem", "flops")})
            self.assertEqual(got, wanted, f"event {i}")

    def test_all(self):
        for directory in VERSIONS:
            for model in ("resnet", "lstm"):
                with self.subTest(version=directory, model=model):
                    self.check(directory, f"{model}_full")


    def test_stacks_of_torch_113(self):
        """torch's own stack of each event, of the backward pass too. The trace has none: one is made of the event list."""
        for model in ("resnet", "lstm"):
            with gzip.open(data("torch", LEGACY, f"{model}_full.events.json.gz")) as f:
                want = json.load(f)
            t = Trace()
            for w in want:
                args = {"External id": w["id"], "Fwd thread id": w["fwd_thread"]}
                if w["seq"] >= 0:
                    args["Sequence number"] = w["seq"]
                if w["stack"]:
                    args["Call stack"] = ";".join(w["stack"])
                t.add("cpu_op", w["name"], w["start"], w["end"] - w["start"], w["thread"], **args)
            rows = t.events("--compat=torch-1.13")
            self.assertEqual(len(rows), len(want))
            for i, (w, r) in enumerate(zip(want, rows)):
                self.assertEqual((r["name"], frames_of(r)), (w["name"], w["stack"]), f"{model} event {i}")
            self.assertGreater(sum(bool(w["stack"]) for w in want), 100)


class KeyAverages(Case):
    """Of `full` runs the groups are by shape. Order: of first appearance, as torch has it."""

    def check(self, directory, model, kind):
        path = data("torch", directory, f"{model}_{kind}.json.gz")
        with open(data("torch", directory, f"{model}_{kind}.key_averages.json")) as f:
            want = json.load(f)
        by_shape = kind == "full" and directory != LEGACY
        if kind == "full" and directory == LEGACY:  # no shapes in the trace: by name alone
            merged = collections.OrderedDict()
            for w in want:
                m = merged.setdefault(w["key"], dict(w, **{k: 0 for k in w if k not in ("key", "input_shapes")}))
                for k in w:
                    if k not in ("key", "input_shapes"):
                        m[k] += w[k]
            want = list(merged.values())
        args = ["--group-by=shape"] if by_shape else []
        rows = report("key-averages", path, f"--compat={VERSIONS[directory]}", "--limit=0", *args).rows
        self.assertEqual(len(rows), len(want))
        for w, r in zip(want, rows):
            got = {"key": r["key"], "count": r["count"], "self": ns(r["self_cpu_time_total"]), "total": ns(r["cpu_time_total"])}
            wanted = {"key": w["key"], "count": w["count"], "self": ns(w["self_cpu_time_total"]), "total": ns(w["cpu_time_total"])}
            if by_shape:
                got.update(shapes=r["input_shapes"], mem=r["cpu_memory_usage"], self_mem=r["self_cpu_memory_usage"], flops=r["flops"])
                wanted.update(shapes=w["input_shapes"], mem=w["cpu_memory_usage"], self_mem=w["self_cpu_memory_usage"], flops=w["flops"])
            self.assertEqual(got, wanted)

    def test_all(self):
        for directory, model, kind in RUNS:
            with self.subTest(version=directory, model=model, kind=kind):
                self.check(directory, model, kind)


class Own(Case):
    """opscope's own answer: host self times are those of `report operators`, and every ns of device work counts once."""

    def check_device(self, path):
        trace = oracle.events(oracle.load(path))
        device = [e for e in trace if e.get("ph") == "X" and
                  str(e.get("cat", "")).lower() in ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset")]
        self.assertTrue(device)
        want = sum(round(float(e.get("dur", 0)) * 1000) for e in device)
        for grouping in ("name", "shape"):
            rows = report("key-averages", path, f"--group-by={grouping}", "--limit=0").rows
            self.assertEqual(sum(r["device_self_ns"] for r in rows), want)
            self.assertTrue(all(r["device_self_ns"] <= r["device_total_ns"] for r in rows))
            self.assertAlmostEqual(sum(r["device_self_pct"] for r in rows), 100)
        operators = report("operators", path, "--limit=0").by("name")
        kinds = {e["name"] for e in trace if e.get("ph") == "X" and str(e.get("cat")).lower() in ("cpu_op", "operator")}
        checked = 0
        for r in report("key-averages", path, "--limit=0").rows:
            o = operators.get(r["name"])
            if o is None or r["name"] not in kinds or r["name"] == "(unattributed)":
                continue
            with self.subTest(op=r["name"]):
                self.assertEqual((r["calls"], r["device_self_ns"], r["device_total_ns"], r["host_self_ns"], r["host_total_ns"]),
                                 (o["calls"], o["device_self_ns"], o["device_total_ns"], o["host_self_ns"], o["host_total_ns"]))
            checked += 1
        self.assertGreater(checked, 10)

    def test_host_time_once(self):
        """Own times add up to the time in which threads are in any event, and the profiler's own work, which is on no thread."""
        for path in (data("tracelens", "mi300", "resnet_act_checkpoint.json.gz"), data("tracelens", "b200", "eager_trace.json.gz")):
            trace = [e for e in oracle.events(oracle.load(path)) if e.get("ph") == "X"]
            threads, want = collections.defaultdict(list), 0
            for e in trace:
                if e.get("cat") in ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver"):
                    threads[e["pid"], e["tid"]].append((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])))
            for rows in threads.values():
                end = -1
                for a, b in sorted(rows):
                    want += max(0, b - max(a, end))
                    end = max(end, b)
            overhead = sum(ns(e["dur"]) for e in trace if e.get("cat") == "overhead")
            table = report("key-averages", path, "--limit=0")
            self.assertEqual(sum(r["host_self_ns"] or 0 for r in table.rows), want + overhead, path)
            note = f"host self times add up to {want + overhead} ns" + (f"; {overhead} of them are the profiler's own work" if overhead else "")
            self.assertTrue(any(n.startswith(note) for n in table.notes), table.notes)

    def test_device_time_once(self):
        paths = oracle.data_glob("tb_plugin/*/*.json.gz") + oracle.data_glob("tracelens/h100/*.json.gz")
        if not paths:
            self.skipTest("no GPU traces")
        for path in paths:
            with self.subTest(path=os.path.basename(path)):
                self.check_device(path)

    def test_percentiles(self):
        path = data("torch", "torch26_cpu", "resnet_full.json.gz")
        events = report("function-events", path, "--limit=0").rows
        durations = collections.defaultdict(list)
        for r in events:
            durations[r["name"], r["user_annotation"]].append(r["end_ns"] - r["start_ns"])
        def at(d, p):
            return d[-(-p * len(d) // 100) - 1]
        want = []
        for (name, _), d in durations.items():
            d.sort()
            want.append((name, len(d), d[0], statistics.median(d), at(d, 95), at(d, 99), d[-1]))
        rows = report("key-averages", path, "--limit=0").rows
        self.assertGreater(len(rows), 50)
        self.assertEqual(sorted((r["name"], r["calls"], r["min_ns"], r["median_ns"], r["p95_ns"], r["p99_ns"], r["max_ns"]) for r in rows), sorted(want))


def in_own_words(table):
    """With --compat the columns have torch's names, and times are in us."""
    for r in table.rows if "key" in table.ids else ():
        r.update(name=r["key"], calls=r["count"], host_total_ns=ns(r["cpu_time_total"]), device_self_ns=ns(r["self_device_time_total"]),
                 device_total_ns=ns(r["device_time_total"]))
    return table


class Trace:
    """A trace of a few events; times in us."""

    def __init__(self, **facts):
        self.doc = dict(facts, traceEvents=[])
        self.ids = 0

    def add(self, cat, name, ts, dur, tid=1, pid=1, **args):
        self.doc["traceEvents"].append({"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": tid, "args": args})

    def op(self, name, ts, dur, tid=1, cat="cpu_op", **args):
        self.ids += 1
        self.add(cat, name, ts, dur, tid, **{"External id": self.ids, **{k.replace("_", " "): v for k, v in args.items()}})
        return self.ids

    def kernel(self, op, ts, dur, call_ts=None, call_tid=1, name="kernel"):
        corr = 1000 + len(self.doc["traceEvents"])
        self.add("cuda_runtime", "cudaLaunchKernel", ts - 5 if call_ts is None else call_ts, 1, call_tid, **{"External id": op, "correlation": corr})
        self.add("kernel", name, ts, dur, 7, 0, **{"External id": op, "correlation": corr, "device": 0, "stream": 7})

    def memory(self, ts, size, device=0, tid=1, name="[memory]"):
        self.doc["traceEvents"].append({"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": name, "ts": ts, "pid": 1, "tid": tid,
                                        "args": {"Device Type": device, "Device Id": 0 if device else -1, "Bytes": size, "Addr": 1}})

    def text(self, name, *args):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            f.write(json.dumps(self.doc))
            f.flush()
            code, out, err = oracle.run("report", name, f.name, *args)
        if code:
            raise AssertionError(err)
        return out.decode()

    def report(self, name, *args):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            f.write(json.dumps(self.doc))
            f.flush()
            return report(name, f.name, "--limit=0", *args)

    def events(self, *args):
        return self.report("function-events", *args).rows

    def averages(self, *args):
        return in_own_words(self.report("key-averages", *args))


class Rules(Case):
    """Small traces that state one rule each; what follows by hand, for torch and for opscope where they differ."""

    def test_parent_of_same_name(self):
        """torch: the parent gets its only child's kernels in place of its own; they are one event. opscope keeps both."""
        t = Trace()
        outer = t.op("aten::x", 0, 100)
        inner = t.op("aten::x", 20, 60)
        t.kernel(outer, 200, 30, call_ts=10)
        t.kernel(inner, 300, 50, call_ts=30)
        t.op("aten::y", 40, 10)
        # The call below the outer one makes it two children there: the events stay apart, with their own kernels.
        with self.subTest("two children"):
            x = [r for r in t.events("--compat=torch-2.6") if r["name"] == "aten::x"]
            self.assertEqual([r["device_self_ns"] for r in x], [30000, 50000])
            self.assertEqual([r["host_self_ns"] for r in x], [100000 - 60000 - 1000, 60000 - 10000 - 1000])

        t = Trace()
        outer = t.op("aten::x", 0, 100)
        inner = t.op("aten::x", 20, 60)
        t.kernel(outer, 200, 30, call_ts=110)
        t.kernel(inner, 300, 50, call_ts=112)
        t.op("aten::y", 40, 10)
        x = [r for r in t.events() if r["name"] == "aten::x"]
        self.assertEqual([(r["device_self_ns"], r["kernels"]) for r in x], [(80000, 2)])
        self.assertIn("1 events were folded into a parent of the same name", t.averages().notes)
        for rules in VERSIONS.values():
            x = [r for r in t.events(f"--compat={rules}") if r["name"] == "aten::x"]
            self.assertEqual([(r["device_self_ns"], r["device_total_ns"], r["host_self_ns"], r["kernels"]) for r in x], [(50000, 50000, 90000, 1)])

    def test_two_children_of_same_name_stay(self):
        t = Trace()
        t.op("aten::x", 0, 100)
        t.op("aten::x", 10, 20)
        t.op("aten::x", 40, 20)
        for args in ((), ("--compat=torch-2.14",)):
            self.assertEqual([r["host_self_ns"] for r in t.events(*args)], [60000, 20000, 20000])

    def test_partial_overlap(self):
        """torch: ranges that overlap partially have no relation, and one that is over is over for good."""
        t = Trace()
        t.op("outer", 0, 100)
        t.op("a", 10, 40)
        t.op("b", 30, 40)
        t.op("in both", 35, 5)
        got = {r["name"]: (r["parent"], r["host_self_ns"]) for r in t.events("--compat=torch-2.6")}
        self.assertEqual(got, {"outer": (None, 20000), "a": (0, 40000), "b": (0, 35000), "in both": (2, 5000)})

    def test_device_time(self):
        """torch counts a kernel as an event and at its op. The shadow of an annotation on the device is an event, and no work of the annotation."""
        t = Trace()
        note = t.op("note", 0, 100, cat="user_annotation")
        op = t.op("aten::mm", 10, 50)
        t.kernel(op, 200, 30, call_ts=20)
        t.add("gpu_user_annotation", "note", 200, 30, 7, 0, **{"External id": note})
        got = {r["name"]: (r["device_self_ns"], r["device_total_ns"]) for r in t.events()}
        self.assertEqual(got, {"note": (0, 30000), "aten::mm": (30000, 30000), "cudaLaunchKernel": (0, 0)})
        got = {(r["name"], r["on_device"]): (r["device_self_ns"], r["device_total_ns"]) for r in t.events("--compat=torch-2.6")}
        self.assertEqual(got, {("note", False): (0, 30000), ("aten::mm", False): (30000, 30000), ("cudaLaunchKernel", False): (0, 0),
                               ("kernel", True): (30000, 30000), ("note", True): (30000, 30000)})

    def test_call_on_another_thread(self):
        """An API call nests where the op is that made it."""
        t = Trace()
        op = t.op("aten::mm", 10, 50)
        t.kernel(op, 200, 30, call_ts=20, call_tid=2)
        for args in ((), ("--compat=torch-1.13",), ("--compat=torch-2.14",)):
            rows = {r["name"]: r for r in t.events(*args)}
            self.assertEqual(rows["cudaLaunchKernel"]["parent"], rows["aten::mm"]["event"])
            self.assertEqual(rows["aten::mm"]["host_self_ns"], 49000)

    def test_call_of_an_op_inside_its_annotation(self):
        """The call belongs to the op by its id; what is innermost around it does not keep its time."""
        t = Trace()
        op = t.op("record_param_comms", 10, 50)
        t.op("nccl:broadcast", 15, 30, cat="user_annotation")
        t.kernel(op, 200, 30, call_ts=20)
        rows = {r["name"]: r for r in t.averages().rows}
        self.assertEqual(rows["cudaLaunchKernel"]["host_self_ns"], 1000)
        self.assertEqual(rows["nccl:broadcast"]["host_self_ns"], 29000)
        self.assertEqual(rows["record_param_comms"]["host_self_ns"], 20000)
        self.assertEqual(rows["record_param_comms"]["device_self_ns"], 30000)

    def test_memory(self):
        """torch: by time whatever the thread, both ends included. opscope: the innermost event of the thread, its end not in it."""
        t = Trace()
        t.op("aten::x", 10, 90)
        t.op("aten::y", 20, 10)
        t.op("other", 15, 50, tid=2)
        t.memory(25, 100)
        t.memory(30, 16)
        t.memory(40, -8)
        t.memory(50, 1000, device=1)
        t.memory(60, 7, tid=2)
        t.memory(200, 5)
        t.memory(300, 1 << 40, name="[OutOfMemory]", device=1)
        columns = ("host_memory_bytes", "host_self_memory_bytes", "device_memory_bytes", "device_self_memory_bytes")

        def of(*args):
            return {r["name"]: tuple(r[c] for c in columns) for r in t.events(*args)}
        self.assertEqual(of(), {
            "aten::x": (108, 8, 1000, 1000), "aten::y": (100, 100, 0, 0), "other": (7, 7, 0, 0), "[memory]": (5, 5, 0, 0),
            "[OutOfMemory]": (0, 0, 0, 0)})
        with self.subTest("by torch's rules"):
            self.assertEqual(of("--compat=torch-2.14"), {
                "aten::x": (115, -1, 1000, 1000), "aten::y": (116, 116, 0, 0), "other": (115, 115, 1000, 1000), "[memory]": (5, 5, 0, 0),
                "[OutOfMemory]": (0, 0, 1 << 40, 1 << 40)})
        for args in ((), ("--compat=torch-2.14",)):
            row = [r for r in t.events(*args) if r["name"] == "[memory]"][0]
            self.assertEqual((row["parent"], row["end_ns"] - row["start_ns"], row["trace_name"]), (None, 0, None))

    def test_memory_times_in_doubles(self):
        """torch 2.6 takes the ends of an event through microseconds in a double, which is 250 ns coarse since 1970; 2.14 does not."""
        t = Trace(baseTimeNanoseconds=1790857026000000000)
        t.op("aten::x", 4363514239655.551, 10)
        t.memory(4363514239655.549, 64)
        self.assertEqual([r["host_memory_bytes"] for r in t.events("--compat=torch-2.6")], [64])
        self.assertEqual([r["host_memory_bytes"] for r in t.events("--compat=torch-2.14")], [64, 0])

    def test_memory_in_whole_microseconds(self):
        """torch 1.13 compares whole microseconds, both ends included, of allocations too: those at an end count."""
        t = Trace()
        begin = 1667000000000000
        for i in range(20):
            t.op(f"aten::x{i}", begin + i * 101, 10)
            t.memory(begin + i * 101, 64)
            t.memory(begin + i * 101 + 10, 1)
        t.memory(begin + 10.75, 5)  # floored, so in the first
        t.memory(begin + 50, 3)
        got = [(r["name"], r["host_memory_bytes"]) for r in t.events("--compat=torch-1.13")]
        self.assertEqual(sorted(got), sorted([("aten::x0", 70)] + [(f"aten::x{i}", 65) for i in range(1, 20)] + [("[memory]", 3)]))
        t = Trace()
        t.op("aten::x", 10, 5)
        t.memory(20.6, 3)
        got = [(r["name"], r["start_ns"], r["end_ns"]) for r in t.events("--compat=torch-1.13")]
        self.assertEqual(got, [("aten::x", 10000, 15000), ("[memory]", 20000, 20000)])

    def of_versions(self, answer):
        return {compat: answer(f"--compat={compat}") for compat in VERSIONS.values()}

    def test_memory_of_xpu(self):
        t = Trace()
        t.op("aten::x", 0, 10)
        t.memory(5, 64, device=12)
        self.assertEqual([r["device_memory_bytes"] for r in t.events()], [64])
        got = self.of_versions(lambda a: [(r["name"], r["host_memory_bytes"], r["device_memory_bytes"]) for r in t.events(a)])
        self.assertEqual(got, {"torch-1.13": [("aten::x", 0, 0)], "torch-2.6": [("aten::x", 0, 0)], "torch-2.14": [("aten::x", 0, 64)]})

    def test_times_in_whole_microseconds(self):
        """1.13: beginning and duration, each without what is below."""
        t = Trace()
        t.op("aten::x", 10.75, 5.5)
        exact = [(10750, 16250, 5500)]
        got = self.of_versions(lambda a: [(r["start_ns"], r["end_ns"], r["host_self_ns"]) for r in t.events(a)])
        self.assertEqual(got, {"torch-1.13": [(10000, 15000, 5000)], "torch-2.6": exact, "torch-2.14": exact})

    def test_annotation_of_the_name_of_an_op(self):
        """A group of its own from 2 on."""
        t = Trace()
        t.op("both", 0, 10)
        t.op("both", 20, 30, cat="user_annotation")
        got = self.of_versions(lambda a: [(r["name"], r["calls"], r["host_total_ns"]) for r in t.averages(a).rows])
        two = [("both", 1, 10000), ("both", 1, 30000)]
        self.assertEqual(got, {"torch-1.13": [("both", 2, 40000)], "torch-2.6": two, "torch-2.14": two})

    def test_overloads(self):
        """By 2.14 alone; the others refuse."""
        t = Trace()
        t.op("aten::add", 0, 10, Overload_Name="Tensor")
        t.op("aten::add", 20, 10, Overload_Name="Scalar")
        rows = t.averages("--compat=torch-2.14", "--group-by=overload").rows
        self.assertEqual([(r["overload_name"], r["calls"]) for r in rows], [("Tensor", 1), ("Scalar", 1)])
        for compat in ("torch-1.13", "torch-2.6"):
            with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
                f.write(json.dumps(t.doc))
                f.flush()
                code, out, err = oracle.run("report", "key-averages", f.name, "--compat=" + compat, "--group-by=overload")
            self.assertEqual((code, out), (2, b""))
            self.assertIn(f"--compat={compat} knows no overloads", err.decode())

    def test_stack_is_its_own(self):
        """torch: what was recorded at the event itself, without the frames it hides. opscope: also what is around."""
        t = Trace()
        t.op("aten::mm", 0, 100, Call_stack="a.py(1): f;torch/autograd/__init__.py(3): backward;b.py(2): g")
        t.op("inside", 10, 5, cat="user_annotation")
        t.kernel(1, 200, 5, call_ts=20)
        t.add("python_function", "c.py(3): h", 300, 50, **{"Python id": 1})
        t.op("aten::add", 310, 10)
        got = {r["name"]: frames_of(r)[0] for r in t.events()}
        self.assertEqual(got["inside"], "a.py(1): f")
        self.assertEqual(got["aten::add"], "c.py(3): h")
        for compat in VERSIONS.values():
            got = {r["name"]: frames_of(r) for r in t.events(f"--compat={compat}")}
            self.assertEqual({n for n in got if got[n]}, {"aten::mm"})
            self.assertEqual(got["aten::mm"], ["a.py(1): f", "b.py(2): g"])
            rows = t.averages(f"--compat={compat}", "--group-by=stack:5").rows
            self.assertEqual({r["name"]: r["stack"] for r in rows if r["stack"]}, {"aten::mm": "a.py(1): f;b.py(2): g"})

    def test_many_frames(self):
        """Groups of N frames are what their text is, for any N: hidden frames do not count, and what is beyond does not."""
        def trace(depth):
            t = Trace()
            frames = [f"a.py({i}): f{i}" for i in range(depth)]
            t.op("aten::mm", 0, 10, Call_stack=";".join(frames))
            t.op("aten::mm", 20, 10, Call_stack=";".join(frames[:3] + ["torch/autograd/__init__.py(3): backward"] + frames[3:]))
            t.op("aten::mm", 40, 10, Call_stack=";".join(frames + ["main.py(1): other"]))
            return t, frames
        for depth in (5, 64, 65, 70, 100):
            t, frames = trace(depth)
            for n in (1, depth - 1, depth):
                for compat in VERSIONS.values():
                    rows = t.averages(f"--compat={compat}", f"--group-by=stack:{n}").rows
                    self.assertEqual([(r["calls"], r["stack"]) for r in rows], [(3, ";".join(frames[:n]))], (depth, n, compat))
            rows = t.averages("--compat=torch-2.6", f"--group-by=stack:{depth + 1}").rows
            self.assertEqual([(r["calls"], r["stack"].count(";") + 1) for r in rows], [(2, depth), (1, depth + 1)])

    def test_stack_of_backward(self):
        """Of the first event outside of any node that has the node's number, on the forward thread; also where times are equal."""
        t = Trace()
        t.op("aten::mm", 0, 10, Call_stack="f.py(1): first", Sequence_number=7)
        t.op("aten::t", 1, 2, Call_stack="f.py(2): inner", Sequence_number=7)
        t.op("aten::add", 20, 10, Call_stack="f.py(3): mine", Sequence_number=8)
        engine = "autograd::engine::evaluate_function: MmBackward0"
        t.op(engine, 50, 10, tid=2, Call_stack="b.py(1): engine")
        t.op("MmBackward0", 50, 10, tid=2, Sequence_number=7, Fwd_thread_id=1, Call_stack="b.py(2): node")
        t.op("aten::mm", 50, 10, tid=2, Call_stack="b.py(3): in node")
        t.op("autograd::engine::evaluate_function: LostBackward0", 70, 10, tid=2)
        t.op("LostBackward0", 71, 8, tid=2, Sequence_number=99, Fwd_thread_id=1, Call_stack="b.py(4): lost")
        t.op("MulBackward0", 90, 8, Call_stack="b.py(5): named as a node")  # but the engine did not run it
        rows = t.events("--compat=torch-2.14")
        self.assertEqual([(r["name"], r["call_stack"]) for r in rows if r["start_ns"] >= 50000], [
            (engine, "b.py(1): engine"), ("MmBackward0", "f.py(1): first"), ("aten::mm", "f.py(1): first"),
            ("autograd::engine::evaluate_function: LostBackward0", None), ("LostBackward0", None), ("MulBackward0", "b.py(5): named as a node")])

    def test_remote(self):
        """The list form says in place of the thread where a remote event ran."""
        t = Trace()
        x = {"ph": "X", "pid": "CPU functions", "args": {}}
        t.doc = [dict(x, name="rpc", ts=0, dur=50, tid=1), dict(x, name="aten::add", ts=10, dur=20, tid=" node_id:1, thread_id:2 "),
                 dict(x, name="aten::add", ts=15, dur=5, tid=1)]
        for args in ((), ("--compat=torch-1.13",)):
            rows = t.events(*args)
            self.assertEqual([(r["name"], r["node_id"], r["parent"]) for r in rows], [("rpc", None, None), ("aten::add", 1, None), ("aten::add", None, 0)])
            self.assertEqual(sorted((r["name"], r["node_id"] or -1, r["calls"]) for r in t.averages(*args).rows),
                             [("aten::add", -1, 1), ("aten::add", 1, 1), ("rpc", -1, 1)])

    def test_left_out(self):
        t = Trace()
        t.op("aten::x", 0, 100)
        t.op("profiler::_record_function_enter_new", 10, 20)
        t.op("aten::is_leaf", 50, 10)
        t.op("aten::mul", 70, 10)
        for args in ((), ("--compat=torch-2.14",)):
            self.assertEqual([(r["name"], r["host_self_ns"]) for r in t.events(*args)], [("aten::x", 90000), ("aten::mul", 10000)])

    def test_python_frames(self):
        """Events from 2.14 on, which leaves them out of the averages, where their time is then nobody's own. Before, torch took them out of the list."""
        t = Trace()
        t.add("python_function", "train.py(1): step", 0, 100, **{"Python id": 1})
        t.op("aten::x", 10, 20)
        self.assertEqual([r["name"] for r in t.averages().rows], ["aten::x"])
        names = {a: [r["name"] for r in t.averages(f"--compat={a}").rows] for a in VERSIONS.values()}
        self.assertEqual(names, {"torch-1.13": ["aten::x"], "torch-2.6": ["aten::x"], "torch-2.14": ["aten::x"]})
        for compat, names in (("torch-2.6", ["aten::x"]), ("torch-2.11", ["aten::x"]), ("torch-2.14", ["train.py(1): step", "aten::x"])):
            self.assertEqual([r["name"] for r in t.events("--compat=" + compat)], names)
            self.assertEqual(in_own_words(t.report("total-average", "--compat=" + compat)).rows[0]["calls"], len(names))

    def test_cycles(self):
        t = Trace()
        for i, step in enumerate((3, 4, 9, 10)):
            t.op(f"ProfilerStep#{step}", 100 * i, 90, cat="user_annotation")
            t.op("aten::x", 100 * i + 10, 10 * (i + 1))
        rows = t.averages("--group-by=name,cycle").rows
        self.assertEqual(sorted((r["name"], r["cycle"], r["calls"], r["host_total_ns"]) for r in rows),
                         [("ProfilerStep*", 1, 2, 180000), ("ProfilerStep*", 2, 2, 180000), ("aten::x", 1, 2, 30000), ("aten::x", 2, 2, 70000)])
        self.assertTrue(any("2 spans of a repeated schedule" in n for n in t.averages().notes))

    def test_cycles_of_processes(self):
        """Processes are not in step: one is still in its first span when the other begins the next."""
        t = Trace()
        for i, step in enumerate((3, 4, 5, 9, 10, 11)):
            for pid in 1, 2:
                late = 150 * (pid - 1)
                t.add("user_annotation", f"ProfilerStep#{step}", 100 * i + late, 90, pid=pid)
                t.add("cpu_op", "aten::x", 100 * i + late + 10, 1, pid=pid)
        rows = t.averages("--group-by=name,cycle").rows
        self.assertEqual(sorted((r["name"], r["cycle"], r["calls"]) for r in rows),
                         [("ProfilerStep*", 1, 6), ("ProfilerStep*", 2, 6), ("aten::x", 1, 6), ("aten::x", 2, 6)])

    def test_steps_have_the_times_of_the_whole(self):
        """torch's doubles of microseconds are from the start of the recording on, whatever part is asked for."""
        for span in True, False:
            t, zero = Trace(), 1667000000000000
            if span:
                t.add("Trace", "PyTorch Profiler (0)", zero, 10000, "PyTorch Profiler", "Spans")
            for step in 1, 2:
                t.op(f"ProfilerStep#{step}", zero + 1000 * step, 900, cat="user_annotation")
                t.op("aten::x", zero + 1000 * step + 10, 0.3)
            for more in (), ("--steps=2..2",):
                table = t.text("key-averages", "--compat=torch-2.6", *more)
                self.assertEqual(re.findall(r"aten::x +\S+ +\S+ +\S+ +\S+ +(\S+) +\d", table), ["0.300us"], (span, more))

    def test_flops(self):
        """Unknown is empty in opscope's own answer; torch says 0 for what it does not count."""
        t = Trace()
        t.op("aten::mm", 0, 10, Input_Dims=[[4, 5], [5, 6]], Input_type=["float", "float"])
        t.op("aten::nothing_known", 20, 10, Input_Dims=[[4, 5]], Input_type=["float"])
        self.assertEqual({r["name"]: r["flops"] for r in t.averages().rows}, {"aten::mm": 240, "aten::nothing_known": None})
        self.assertEqual([r["flops"] for r in t.averages("--compat=torch-2.6").rows], [240, 0])

    def test_each_event_by_itself(self):
        """A row for each, in the order of function-events; torch's table then is that of prof.events()."""
        t = Trace()
        t.op("aten::x", 0, 100)
        t.op("aten::y", 10, 20, Input_Dims=[[2, 3]])
        t.op("aten::y", 40, 30, Input_Dims=[[2, 3]])
        rows = t.averages("--group-by=event,shape", "--sort=+event").rows
        self.assertEqual([(r["event"], r["name"], r["calls"], r["host_self_ns"]) for r in rows],
                         [(0, "aten::x", 1, 50000), (1, "aten::y", 1, 20000), (2, "aten::y", 1, 30000)])
        rows = t.report("key-averages", "--compat=torch-1.13", "--group-by=event,shape").rows
        self.assertEqual([(r["key"], r["count"], r["input_shapes"]) for r in rows], [("aten::x", 1, "[]"), ("aten::y", 1, "[[2, 3]]"), ("aten::y", 1, "[[2, 3]]")])

    def test_what_recordings_of_opscope_profile_say(self):
        """The scope, the FLOPs and the threads that torch itself had: nothing has to be told from names, shapes and times then."""
        t = Trace()
        t.op("torch::autograd::AccumulateGrad", 0, 10, Backward_node=1, Input_Dims=[])
        t.op("MyBackward", 20, 10, Sequence_number=1, Fwd_thread_id=1, Input_Dims=[])
        t.op("aten::conv2d", 40, 10, Counted_FLOPs=123, Input_Dims=[[1, 2, 8, 8], [4, 2, 3, 3], [], [], [], [], []])
        t.op("aten::mm", 60, 20, cat="async_op", Input_Dims=[[2, 3], [3, 4]])
        t.op("aten::inside", 65, 5)
        rows = {r["name"]: r for r in t.events("--compat=torch-1.13")}
        self.assertEqual([n for n in rows if rows[n]["backward_node"]], ["torch::autograd::AccumulateGrad"])
        self.assertEqual(rows["aten::conv2d"]["flops"], 123)
        self.assertEqual([n for n in rows if rows[n]["async"]], ["aten::mm"])
        self.assertEqual((rows["aten::mm"]["host_self_ns"], rows["aten::inside"]["parent"]), (0, None))

    def test_total(self):
        t = Trace()
        t.op("aten::linear", 0, 100, Input_Dims=[[2, 3], [4, 3], []], Input_type=["float", "float", ""])
        mm = t.op("aten::mm", 10, 50, Input_Dims=[[2, 3], [3, 4]], Input_type=["float", "float"])
        t.kernel(mm, 200, 30, call_ts=20)
        t.kernel(0, 300, 7, call_ts=120)
        own = t.report("total-average").rows[0]
        self.assertEqual((own["calls"], own["host_self_ns"], own["device_self_ns"], own["flops"], own["flops_unknown"]), (4, 101000, 37000, 48, 0))
        torch = in_own_words(t.report("total-average", "--compat=torch-2.14")).rows[0]
        self.assertEqual((torch["calls"], torch["host_total_ns"], torch["device_self_ns"], torch["device_total_ns"]), (6, 152000, 67000, 97000))


if __name__ == "__main__":
    oracle.main()
