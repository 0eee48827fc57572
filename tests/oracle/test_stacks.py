"""export stacks: torch's lines (export_stacks) of three versions, line by line, and our own: what the weights add up to."""
import collections
import gzip
import json
import os
import tempfile

import oracle

CPU = "self_cpu_time_total"
TRANSLATE = str.maketrans(" ;\t\n", "____")
MODELS = ("resnet", "lstm")


def stacks(path, *args):
    code, out, err = oracle.run("export", "stacks", path, *args)
    if code:
        raise AssertionError(err.decode())
    return out.decode().split("\n")[:-1], err.decode()


def of_events(events, *args):
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as f:
        f.write(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    try:
        return stacks(f.name, *args)
    finally:
        os.unlink(f.name)


def torch_events(version, model):
    with gzip.open(oracle.data("torch", version, model + "_full.events.json.gz")) as f:
        return json.load(f)


def nest(events):
    """cpu_parent and self time (us) as FunctionEvents have them."""
    threads = collections.defaultdict(list)
    for e in events:
        e["parent"], e["self"] = None, e["end"] - e["start"]
        if not e["is_async"]:
            threads[e["thread"]].append(e)
    for rows in threads.values():
        stack = []
        for e in sorted(rows, key=lambda e: (e["start"], -e["end"])):
            while stack and (e["start"] >= stack[-1]["end"] or e["end"] > stack[-1]["end"]):
                stack.pop()
            if stack:
                e["parent"] = stack[-1]
                stack[-1]["self"] -= e["end"] - e["start"]
            stack.append(e)


def lines(events):
    """What torch's export_stacks writes of them: int() of microseconds, frames outermost first."""
    out = []
    for e in events:
        weight = int(round(e["self"], 3))
        if e["stack"] and weight > 0:
            out.append(";".join(f.translate(TRANSLATE) for f in reversed(e["stack"])) + f" {weight}")
    return out


def backward_stacks(events):
    """EventList._set_backward_stacktraces."""
    def node(e):
        while e is not None and e["scope"] != 1:
            e = e["parent"]
        return e
    forward = {}
    for e in events:
        if node(e) is None:
            forward.setdefault((e["seq"], e["thread"]), e["stack"])
    for e in events:
        if node(e) is not None:
            e["stack"] = forward.get((node(e)["seq"], node(e)["fwd_thread"]), [])


class AgainstTorch(oracle.Case):
    def test_lines_of_torch_113(self):
        """Its trace has no stacks, so a trace is made of its event list; the lines must be those of its own file."""
        for m in MODELS:
            events = torch_events("torch113_cpu", m)
            with open(oracle.data("torch", "torch113_cpu", m + "_full.stacks.self_cpu_time_total.txt")) as f:
                want = f.read().splitlines()
            nest(events)
            self.assertEqual(lines(events), want)  # the rule, as this test has it
            trace = []
            for e in events:
                args = {"External id": e["id"], "Fwd thread id": e["fwd_thread"]}
                if e["seq"] >= 0:
                    args["Sequence number"] = e["seq"]
                if e["stack"]:
                    args["Call stack"] = ";".join(e["stack"])
                trace.append({"ph": "X", "cat": "cpu_op", "name": e["name"], "pid": 1, "tid": e["thread"], "ts": e["start"],
                              "dur": e["end"] - e["start"], "args": args})
            got, _ = of_events(trace, "--compat=torch-1.13", "--metric=" + CPU)
            self.assertEqual(len(got), len(want))
            self.assertEqual([(a, b) for a, b in zip(got, want) if a != b], [])
            print(f"# torch 1.13 {m}: {len(want)} lines")

    def test_trace_of_torch_113(self):
        """The legacy form has no stacks: an empty file, and why."""
        for m in MODELS:
            got, err = stacks(oracle.data("torch", "torch113_cpu", m + "_full.json.gz"), "--compat=torch-1.13")
            self.assertEqual(got, [])
            self.assertIn("no event has a recorded 'Call stack'", err)

    def test_without_recorded_stacks(self):
        """torch 2 fills in stacks with verbose=True alone: its event lists have none, and so would its files."""
        for version, compat in (("torch26_cpu", "torch-2.6"), ("torch214_cpu", "torch-2.14")):
            for m in MODELS:
                events = torch_events(version, m)
                nest(events)
                self.assertEqual(lines(events), [])
                got, err = stacks(oracle.data("torch", version, m + "_full.json.gz"), "--compat=" + compat, "--metric=" + CPU)
                self.assertEqual(got, [])
                self.assertIn("verbose=True", err)

    def test_lines_of_torch_2(self):
        """The same traces with a stack written to every op: order, own times, stacks of the backward pass from torch's event lists."""
        for version, compat in (("torch26_cpu", "torch-2.6"), ("torch214_cpu", "torch-2.14")):
            for m in MODELS:
                events = torch_events(version, m)
                ids = collections.Counter(e["id"] for e in events)
                own = [e["id"] for e in events if e["id"] and ids[e["id"]] == 1]
                for e in events:
                    if e["id"] in own:
                        e["stack"] = [f"inner {e['id']}; x", "outer\tframe"]
                doc = oracle.load(oracle.data("torch", version, m + "_full.json.gz"))
                for e in doc["traceEvents"]:
                    if e.get("ph") == "X" and e.get("args", {}).get("External id") in own:
                        e["args"]["Call stack"] = f"inner {e['args']['External id']}_ x;outer\tframe"
                nest(events)
                backward_stacks(events)
                with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
                    f.write(json.dumps(doc))
                    f.flush()
                    got, _ = stacks(f.name, "--compat=" + compat, "--metric=" + CPU)
                want = lines(events)
                self.assertGreater(len(want), 500)
                self.assertEqual(len(got), len(want))
                self.assertEqual([(a, b) for a, b in zip(got, want) if a != b], [], (version, m))
                print(f"# {compat} {m}: {len(want)} lines")

    def test_metrics(self):
        events = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 20,
                   "args": {"External id": 1, "Call stack": "a.py(3): f;a.py(9): main"}},
                  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 12, "dur": 5,
                   "args": {"External id": 1, "correlation": 1}},
                  {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 40, "dur": 7.9,
                   "args": {"External id": 1, "correlation": 1, "device": 0, "stream": 7}}]
        line = "a.py(9):_main;a.py(3):_f "
        for metric in ("self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total", "auto"):
            self.assertEqual(of_events(events, "--compat=torch-2.6", "--metric=" + metric)[0], [line + "7"])
        self.assertEqual(of_events(events)[0], ["a.py(9):_main;a.py(3):_f;aten::mm;gemm 7900"])
        self.assertEqual(of_events(events, "--unit=us")[0], ["a.py(9):_main;a.py(3):_f;aten::mm;gemm 7"])
        self.assertEqual(of_events(events, "--by=op")[0], ["aten::mm;gemm 7900"])
        self.assertEqual(of_events(events, "--metric=" + CPU)[0], ["a.py(9):_main;a.py(3):_f;aten::mm 20000"])
        for args, say in ((("--compat=torch-1.13", "--metric=self_xpu_time_total"), "torch-1.13 has no metric self_xpu_time_total"),
                          (("--metric=time",), "export stacks has: auto")):
            code, out, err = oracle.run("export", "stacks", "-", *args, stdin=json.dumps({"traceEvents": events}).encode())
            self.assertEqual((code, out), (2, b""))
            self.assertIn(say, err.decode())


def weights(rows):
    return sum(int(r.rsplit(" ", 1)[1]) for r in rows)


def covered_ns(path):
    """The time in which threads are in any op, annotation or frame."""
    threads = collections.defaultdict(list)
    for e in oracle.events(oracle.load(path)):
        if e.get("ph") == "X" and e.get("cat") in ("cpu_op", "user_annotation", "python_function"):
            start = round(e["ts"] * 1000)
            threads[e["pid"], e["tid"]].append((start, start + round(e["dur"] * 1000)))
    total = 0
    for rows in threads.values():
        end = None
        for a, b in sorted(rows):
            total += max(0, b - (a if end is None else max(a, end)))
            end = b if end is None else max(b, end)
    return total


class Own(oracle.Case):
    def test_device_work_adds_up(self):
        for f in oracle.data_glob("tracelens/h100/*.json.gz") + oracle.data_glob("tracelens/mi300/*.json.gz") + \
                oracle.data_glob("tb_plugin/*/worker0.1623143089861.pt.trace.json.gz"):
            ns = sum(round(e["dur"] * 1000) for e in oracle.events(oracle.load(f))
                     if e.get("ph") == "X" and e.get("cat", "").lower() in ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"))
            for by in ("stack", "module", "op"):
                self.assertEqual(weights(stacks(f, "--by=" + by)[0]), ns, (f, by))
            print(f"# {os.path.basename(f)}: {ns} ns")

    def test_host_time_adds_up(self):
        for version in ("torch26_cpu", "torch214_cpu"):
            for m in MODELS:
                f = oracle.data("torch", version, m + "_full.json.gz")
                for by in ("stack", "module", "op"):
                    self.assertEqual(weights(stacks(f, "--by=" + by, "--metric=" + CPU)[0]), covered_ns(f), (f, by))

    def test_python_frames(self):
        """Every line of a trace with Python frames stands under the script; ops stand under what called them."""
        rows, _ = stacks(oracle.data("torch", "torch214_cpu", "lstm_full.json.gz"), "--metric=" + CPU)
        self.assertEqual({r.split(";")[0].split(" ")[0] for r in rows}, {"gen_traces.py(52):_<module>"})
        lstm = [r for r in rows if "nn.Module:_LSTM_0;" in r and ";aten::lstm;" in r]
        self.assertTrue(lstm)
        backward = [r for r in rows if "MkldnnRnnLayerBackward0" in r]
        self.assertTrue(backward)
        self.assertTrue(all("nn.Module:_LSTM_0;" in r for r in backward), "backward stands at the stack of the forward op")

    def test_hostile_names(self):
        name = "a;b c\nd\te\u2028\r\u009b<&\">"
        got, _ = of_events([{"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 1, "dur": 2, "args": {}}])
        self.assertEqual(got, ["a_b_c_d_e___<&\"> 2000"])
        deep = [{"ph": "X", "cat": "cpu_op", "name": f"op{i % 7}", "pid": 1, "tid": 1, "ts": i, "dur": 6000 - 2 * i, "args": {}} for i in range(3000)]
        got, err = of_events(deep)
        self.assertEqual(weights(got), 6000 * 1000)
        self.assertEqual(max(r.count(";") for r in got) + 1, 512)
        self.assertIn("nested deeper than 512", err)

    def test_nothing_to_show(self):
        memory = {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": 1, "args": {"Bytes": 8, "Device Type": 0, "Device Id": -1}}
        code, out, err = oracle.run("export", "stacks", "-", stdin=json.dumps({"traceEvents": [memory]}).encode())
        self.assertEqual((code, out), (1, b""))
        self.assertIn(b"there is no op, annotation or Python frame in the input; to record it", err)


if __name__ == "__main__":
    oracle.main()
