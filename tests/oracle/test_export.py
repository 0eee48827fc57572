"""Exports: a trace that goes out and comes in again has lost nothing, whoever wrote it; what other readers of JSON need is kept."""
import collections
import concurrent.futures
import decimal
import functools
import gzip
import json
import os
import resource
import subprocess
import tempfile
import zlib

import oracle
from oracle import Case, data, events, load, report, run, synthetic

PATTERNS = ("hta/**/*.json.gz", "torch/**/*.json.gz", "multirank/**/*.json.gz", "tracelens/**/*.json.gz", "tb_plugin/**/*.json.gz")
NO_TRACES = (".events.json.gz", ".memory.json.gz")
BUNDLED = os.path.join(oracle.ROOT, "tests", "data", "torch214_cpu_resnet.json.gz")

# Arguments of Kineto events that an .opscope file does not keep (src/input/kineto/kineto_args.def), and null ones.
NOT_STORED = {"memory bandwidth (GB/s)", "queued", "Ev Idx", "Record function id", "external ts", "Trace name", "Trace iteration",
              "Device", "finished"}
SPELLED = {"cid": "cbid", "external id": "External id"}
# Reports about the file itself, not the run.
OF_THE_FILE = {"trace"}


def traces():
    """Of several alike one, and of two recordings of a worker one."""
    alike = ("megatron_kineto_0", "worker0.1623143089861")
    found = [p for pattern in PATTERNS for p in oracle.data_glob(pattern) if not p.endswith(NO_TRACES)]
    return [BUNDLED] + [p for p in found if not ("multirank" in p or "tb_plugin" in p) or any(a in p for a in alike)]


def facts(doc):
    return {} if isinstance(doc, list) else {k: v for k, v in doc.items() if k != "traceEvents"}


def export(*args, status=0):
    code, out, err = run("export", *args)
    if code != status:
        raise AssertionError(f"export {args}: exit {code}: {err.decode(errors='replace')}")
    return out if status == 0 else err.decode()


def strict(raw):
    """JSON as the standard has it: UTF-8, no NaN, no control characters."""
    def bad(word):
        raise ValueError(f"{word} is no JSON")
    return json.loads(raw.decode("utf-8"), parse_constant=bad)


def asked_of(path):
    """A fifth of (report, grouping), other ones of other inputs."""
    keys = [(r["name"], group) for r in report_list().rows for group in (r["group_by"] or "").split(", ") if not group.startswith("depth:")]
    return oracle.part(keys, 5, zlib.crc32(os.path.basename(path).encode()))


def all_reports(path, keys):
    """(report, grouping) -> its JSON without the name of the input, or its error."""
    def ask(name, group):
        code, text, err = run("report", name, path, "--format=json", *(["--group-by=" + group] if group else []))
        return {**json.loads(text), "input": ""} if code == 0 else err.decode().replace(path, "INPUT")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return dict(zip(keys, pool.map(lambda key: ask(*key), keys)))


@functools.lru_cache
def reports_before(path):
    return all_reports(path, asked_of(path))


@functools.lru_cache
def report_list():
    code, out, _ = run("report", "--format=json")
    assert code == 0
    return oracle.Table(json.loads(out))


class ChromeCopy(Case):
    """Kineto traces: event by event, in their order."""


def check_copy(path):
    def test(self):
        before, after = load(path), strict(export("chrome", path))
        self.assertIsInstance(after, dict)
        a, b = events(before), events(after)
        self.assertEqual(len(a), len(b))
        for n, (x, y) in enumerate(zip(a, b)):
            if x != y:
                self.assertEqual(x, y, f"event {n}")
        self.assertEqual(facts(before), facts(after))
    return test


for trace in traces():
    folder = "tests/data" if trace.startswith(oracle.ROOT) else os.path.dirname(os.path.relpath(trace, oracle.DATA))
    setattr(ChromeCopy, f"test {folder}/{os.path.basename(trace)}", check_copy(trace))


class Folder(Case):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def same_reports(self, x, y, but=(), other_format=False):
        before, after = reports_before(x), all_reports(y, asked_of(x))
        self.assertEqual(before.keys(), after.keys())
        self.assertGreater(len(before), 100 if oracle.ALL else 20)
        for key in before:
            refused = isinstance(before[key], str) and isinstance(after[key], str)
            if key[0] not in but and not (refused and other_format):
                self.assertEqual(before[key], after[key], key)


class Counters(Folder):
    """--counter-tracks adds events behind the others, with the values of `queues` and `memcpy`, and how busy GPUs were; no report sees them."""

    def check_use(self, plain, use):
        """Utilization by the kernels in the file itself, piece by piece; as the TensorBoard plugin has it: from 1 to 0 at the begin, 100 pieces of 10^n us at most, 0 at the end."""
        kernels, efficiency = collections.defaultdict(list), collections.defaultdict(list)
        for e in plain:
            if e.get("ph") == "X" and e.get("cat", "").lower() == "kernel":
                kernels[int(e["args"].get("device", e["pid"]))].append((int(e["ts"] * 1000), int((e["ts"] + e["dur"]) * 1000)))
        points = collections.defaultdict(list)
        for e in use:
            (name, value), = e["args"].items()
            self.assertEqual(e["name"], f"GPU {e['pid']} " + {"GPU Utilization": "Utilization"}.get(name, name))
            (points if name == "GPU Utilization" else efficiency)[e["pid"]].append((int(e["ts"] * 1000), float(value)))
        self.assertLessEqual(set(kernels), set(points))
        for device, found in points.items():
            (begin, one), (again, zero), *pieces, (end, last) = found
            self.assertEqual((begin, one, zero, last), (again, 1, 0, 0))
            self.assertEqual(pieces[0][0], begin)
            length = (end - begin) // len(pieces)
            self.assertRegex(str(length), r"^10{3,}$")
            self.assertLessEqual(len(pieces), 100)
            self.assertEqual([t for t, _ in pieces], [begin + i * length for i in range(len(pieces))])
            busy, reached = [0] * len(pieces), begin
            for start, stop in sorted(kernels[device]):
                start, reached = max(start, reached), max(reached, min(stop, end))
                for i in range((start - begin) // length, min((stop - 1 - begin) // length + 1, len(pieces))):
                    busy[i] += max(0, min(stop, begin + (i + 1) * length) - max(start, begin + i * length))
            for (t, value), ns in zip(pieces, busy):
                self.assertAlmostEqual(value, ns / length, delta=1e-5, msg=f"GPU {device} at {t}")
            if device in efficiency:
                self.assertEqual([t for t, _ in efficiency[device]], [t for t, _ in pieces] + [end])
                for (_, e), (_, u) in zip(efficiency[device], pieces):
                    self.assertLessEqual(e, u + 1e-5)
        return efficiency

    def check(self, path, *args):
        text, out = export("chrome", path, *args), self.path("counters.json")
        plain = strict(text)
        export("chrome", path, "--counter-tracks", "-o", out, *args)
        after = strict(open(out, "rb").read())
        self.assertEqual(after["traceEvents"][:len(plain["traceEvents"])], plain["traceEvents"])
        self.assertEqual(facts(after), facts(plain))
        added = after["traceEvents"][len(plain["traceEvents"]):]
        self.assertEqual({e["ph"] for e in added}, {"C"})
        queues = [(f"stream {r['stream']}", r["time_ns"], r["length"]) for r in report("queues", path, "--group-by=change", *args).rows]
        exact = json.loads(open(out, "rb").read(), parse_float=decimal.Decimal)["traceEvents"][len(plain["traceEvents"]):]
        self.assertEqual([(k, int(e["ts"] * 1000), v) for e in exact if e["name"] == "Queue Length" for k, v in e["args"].items()], queues)
        code, memcpy, _ = run("report", "memcpy", path, "--group-by=change", "--format=json", *(args or ["--steps=all"]))
        rates = oracle.Table(json.loads(memcpy)).rows if code == 0 else []
        names = [(r["operation"].capitalize() + (" " + r["direction"] if r["direction"] else "")) for r in rates]
        use = [e for e in added if e["name"].startswith("GPU ")]
        self.efficiency = self.check_use(json.loads(text, parse_float=decimal.Decimal)["traceEvents"], [e for e in exact if e["name"].startswith("GPU ")])
        got = [e for e in added[:len(added) - len(use)] if e["name"] != "Queue Length"]
        self.assertEqual([e["name"] for e in got], names)
        for e, r in zip(got, rates):
            self.assertAlmostEqual(e["args"]["GB/s"], r["gb_per_s"], delta=1e-5 * abs(r["gb_per_s"]))
        return out

    def test_kineto(self):
        path = data("hta", "critical_path", "simple_add", "benchmark_result_493459_1694039959_trace.json.gz")
        self.same_reports(path, self.check(path), OF_THE_FILE)

    def test_others(self):
        self.check(data("nsys", "2024.6_fuser_h100", "report1__da819b5f.sqlite"))
        self.check(data("more", "puzzlers", "streams", "blocking.json.gz"))

    def test_steps(self):
        self.check(data("hta", "nccl_parser_config", "nccl_data.json.gz"), "--steps=4..5")

    def test_use_of_gpus(self):
        """12 pieces of 10 us. SM efficiency is blocks per SM, at most 1: over all pieces what `devices` has."""
        path = synthetic("gpu_utilization")
        self.check(path)
        (device, found), = self.efficiency.items()
        self.assertEqual(device, 1)
        self.assertEqual(len(found), 13)
        self.assertAlmostEqual(sum(v * 10 for _, v in found), 0.5 * 5 + 1.0 * 5 + 0.6 * 5 + 0.9 * 5 + 0.3 * 20 + 1.0 * 20, places=3)

    def test_without_a_device(self):
        path = synthetic("pure_cpu")
        self.assertEqual(export("chrome", path, "--counter-tracks"), export("chrome", path))

    def test_a_job(self):
        self.assertIn("--counter-tracks is of one recording", export("chrome", data("multirank", "megatron_a100_tp8"), "--counter-tracks", "-o", self.path("x.json"), status=2))


class ChromeReports(Folder):
    """What opscope says of the copy is what it says of the trace."""

    def reports_of_copy(self, path):
        out = self.path("copy.json")
        export("chrome", path, "-o", out)
        self.same_reports(path, out)

    def reports_of_file(self, path, but=OF_THE_FILE):
        kept, out = self.path("kept.opscope"), self.path("copy.json")
        self.assertEqual(run("import", path, "-o", kept)[0], 0)
        export("chrome", kept, "-o", out)
        self.same_reports(path, out, but)

    def test_bundled(self):
        self.reports_of_copy(BUNDLED)

    def test_gpu(self):
        self.reports_of_copy(data("hta", "critical_path", "simple_add", "benchmark_result_493459_1694039959_trace.json.gz"))

    def test_rocm(self):
        self.reports_of_copy(data("tracelens", "triton", "trace.json.gz"))

    def test_list_form(self):
        self.reports_of_copy(data("torch", "torch113_cpu", "resnet_full.json.gz"))

    def test_bundled_through_opscope_file(self):
        self.reports_of_file(BUNDLED)

    def test_gpu_through_opscope_file(self):
        self.reports_of_file(data("tracelens", "h100", "gaunernst_bert-small-uncased__1016001.json.gz"))

    def test_rocm_through_opscope_file(self):
        self.reports_of_file(data("tracelens", "triton", "trace.json.gz"))

    def test_list_form_through_opscope_file(self):
        self.reports_of_file(data("torch", "torch113_cpu", "resnet_full.json.gz"))


class ChromeRows(Folder):
    """What is made from the rows, not copied."""

    def normal(self, e):
        """An event as an .opscope file keeps it; metadata, which it keeps otherwise, is None."""
        if e.get("ph") == "M" and e["name"] in ("process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index"):
            return None
        args = {} if e["ph"] in "stf" else e.get("args") or {}
        args = {SPELLED.get(k, k): float(v) if isinstance(v, int) else v for k, v in args.items() if k not in NOT_STORED and v is not None}
        e = {k: v for k, v in e.items() if k not in ("args", "s")}
        for k in ("ts", "dur"):
            if k in e:
                e[k] = round(float(e[k]) * 1000)
        return json.dumps([e, args], sort_keys=True)

    def through_file(self, path):
        kept = self.path("kept.opscope")
        self.assertEqual(run("import", path, "-o", kept)[0], 0)
        before, after = load(path), strict(export("chrome", kept))
        count = lambda doc: collections.Counter(filter(None, map(self.normal, events(doc))))
        a, b = count(before), count(after)
        self.assertGreater(sum(a.values()), 50)
        self.assertEqual(a - b, collections.Counter())
        self.assertEqual(b - a, collections.Counter())
        self.assertEqual(facts(before), facts(after))
        names = lambda doc: {(e["name"], str(e["pid"]), json.dumps(e["args"])) for e in events(doc) if e.get("name") == "process_name"}
        with_rows = {str(e["pid"]) for e in events(after) if e["ph"] != "M"}
        self.assertEqual({n for n in names(before) if n[1] in with_rows}, {n for n in names(after) if n[1] in with_rows})

    def test_bundled(self):
        self.through_file(BUNDLED)

    def test_stacks_and_memory(self):
        self.through_file(data("torch", "torch26_cpu", "resnet_full.json.gz"))

    def test_gpu(self):
        self.through_file(data("tracelens", "h100", "Falconsai_nsfw_image_detection__1016002.json.gz"))

    def test_rocm(self):
        self.through_file(data("tracelens", "triton", "trace.json.gz"))

    def test_arrows_and_instants(self):
        self.through_file(data("hta", "critical_path", "end_to_end", "simple_add", "output", "overlaid_critical_path_trace.json.gz"))


class ChromeOfOthers(Folder):
    """Nsight Systems, nvprof and DLProf: the same reports of what torch.profiler would have written."""

    # nvtx: ops are ops now, not ranges of a domain. groups: a note says how such an input could be recorded better. What is refused is
    # refused with other advice.
    BUT = {"trace", "nvtx", "load-nvprof", "groups", "aggregations"}

    def export_reports(self, path, but=frozenset()):
        out = self.path("made.json")
        export("chrome", path, "-o", out)
        self.same_reports(path, out, self.BUT | but, other_format=True)
        return load(out)

    def test_nsys_pyprof(self):
        doc = self.export_reports(data("pyprof", "mmagic_nsys", "net.sqlite"))
        self.assertEqual({d["name"] for d in doc["deviceProperties"]}, {"NVIDIA A100-SXM4-40GB"})
        cats = collections.Counter(e.get("cat") for e in doc["traceEvents"] if e["ph"] == "X")
        self.assertEqual(cats["kernel"], 328)
        self.assertEqual(cats["gpu_memcpy"] + cats["gpu_memset"], 47)

    def test_nsys_dlprof(self):
        self.export_reports(data("dlprof", "w_relu", "nsys_profile.sqlite"))

    def test_nvprof(self):
        doc = self.export_reports(data("pyprof", "lm_nvprof", "net.sql"))
        flows = collections.Counter((e["cat"], e["ph"]) for e in doc["traceEvents"] if "id" in e)
        work = [e for e in doc["traceEvents"] if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
        self.assertEqual(flows["ac2g", "s"], flows["ac2g", "f"])
        self.assertEqual(flows["fwdbwd", "s"], flows["fwdbwd", "f"])
        self.assertGreater(flows["fwdbwd", "s"], 100)
        calls = {e["args"]["correlation"]: e for e in doc["traceEvents"] if e.get("cat") == "cuda_runtime"}
        ops = {e["args"]["External id"]: e for e in doc["traceEvents"] if e.get("cat") == "cpu_op"}
        self.assertEqual(len(work), 331)
        linked = 0
        for e in work:
            call = calls[e["args"]["correlation"]]
            self.assertLessEqual(call["ts"], e["ts"])
            self.assertTrue({"device", "stream", "context"} <= set(e["args"]))
            self.assertTrue(e["cat"] != "kernel" or {"grid", "block", "registers per thread"} <= set(e["args"]))
            if "External id" in e["args"]:
                op = ops[e["args"]["External id"]]
                self.assertTrue(op["ts"] <= call["ts"] <= op["ts"] + op["dur"])
                linked += 1
        self.assertGreater(linked, 250)

    def test_dldb(self):
        self.export_reports(data("dlprof", "w_relu", "dlprof_dldb.sqlite"))

    def test_several_processes_have_calls_of_their_own(self):
        path, out = data("nsys", "2026.2_mfu_2gpu", "mfu_2gpu_before.sqlite"), self.path("made.json")
        export("chrome", path, "-o", out)
        calls = collections.defaultdict(set)
        for e in load(out)["traceEvents"]:
            if e.get("cat") in ("cuda_runtime", "cuda_driver"):
                calls[e["args"]["correlation"]].add(e["pid"])
        self.assertEqual({len(pids) for pids in calls.values()}, {1})
        self.assertEqual(len({p for pids in calls.values() for p in pids}), 2)
        for name in ("kernels", "operators", "gpu-timeline", "devices", "api", "key-averages", "total-average", "costs", "memcpy"):
            self.assertEqual(report(name, path).rows, report(name, out).rows, name)


class ChromeSteps(Folder):
    def test_steps_are_those_of_reports(self):
        out = self.path("steps.json")
        path = data("tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz")
        export("chrome", path, "--steps=6..7", "-o", out)
        for name in ("kernels", "operators", "memcpy"):
            want, got = report(name, path, "--steps=6..7"), report(name, out)
            self.assertEqual(want.rows, got.rows, name)
        whole = collections.Counter(json.dumps(e, sort_keys=True) for e in events(load(path)))
        part = collections.Counter(json.dumps(e, sort_keys=True) for e in events(load(out)))
        self.assertEqual(part - whole, collections.Counter())
        self.assertLess(sum(part.values()), sum(whole.values()) / 2)
        metadata = lambda path: sum(e["ph"] == "M" for e in events(load(path)))
        self.assertEqual(metadata(out), metadata(path))

    def test_steps_of_an_opscope_file(self):
        kept, a, b = self.path("kept.opscope"), self.path("a.json"), self.path("b.json")
        self.assertEqual(run("import", BUNDLED, "-o", kept)[0], 0)
        export("chrome", BUNDLED, "--steps=2..2", "-o", a)
        export("chrome", kept, "--steps=2..2", "-o", b)
        for name in ("operators", "key-averages"):
            self.assertEqual(report(name, a).rows, report(name, b).rows)

    def test_no_such_step(self):
        self.assertIn("the trace has steps", export("chrome", BUNDLED, "--steps=100..200", status=1))

    def test_steps_of_which_some_are_there(self):
        """What is there is written, and what is not is said; an open end asks for no more than there is."""
        for steps, said in (("3..9", "--steps=3..9: the trace has steps 2 to 4: "), ("1..3", "--steps=1..3: the trace has steps 2 to 4: "),
                            ("3..4", ""), ("3..", ""), ("..3", "")):
            code, _, err = run("export", "chrome", BUNDLED, "--steps=" + steps, "-o", self.path("some.json"))
            self.assertEqual(code, 0, err)
            self.assertEqual((said in err.decode(), bool(err)), (True, bool(said)), (steps, err))


# Everything that the reader takes and the standard does not, and what is odd but right.
ODD = b"""{"schemaVersion": 1, "note": N/A, "path": "C:\\Users\\x", "shape": [1, 2,], "traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "tab\there", "pid": 1, "tid": 2, "ts": 1000.5, "dur": 7.125, "args": {"External id": 5, "a": NaN, "b": N/A}},
{"ph": "X", "cat": "cpu_op", "name": "caf\xe9 \xc3\xa9 \\u00e9 \\/ \\"q\\" \x7f", "pid": 1, "tid": "2", "ts": "2000", "dur": 1.0, "args": {"p": "D:\\new\\x"}},
{"ph": "X", "cat": "cpu_op", "name": "", "pid": "Spans", "tid": "t \\ud83d\\ude00", "ts": 3000, "dur": 0, "args": {"list": ["a\tb", N/A, 01, [1,2,], {"k": .5}], "n": null, "big": 123456789012345678901234567890, "e": 1e5, "z": -0, "zz": 007}},
{"name": "no cat", "ph": "X", "pid": 1, "tid": 2, "ts": 1656454173444137.123, "dur": 0.001, "tts": 5, "cname": "good", "args": {}},
{"ph": "B", "name": "begun", "cat": "c", "pid": 1, "tid": 3, "ts": 10.1}, {"ph": "E", "pid": 1, "tid": 3, "ts": 20.25, "args": {"end": true}},
{"ph": "b", "cat": "async", "name": "x", "id": "0x1f", "pid": 1, "tid": 3, "ts": 5}, {"ph": "e", "cat": "async", "name": "x", "id": "0x1f", "pid": 1, "tid": 3, "ts": 6},
{"ph": "s", "id": "text id", "cat": "ac2g", "name": "other name", "pid": 1, "tid": 3, "ts": 5, "args": {"w": 1}}, {"ph": "f", "id": -7, "bp": "e", "cat": "ac2g", "name": "ac2g", "pid": 0, "tid": 7, "ts": 6},
{"ph": "C", "name": "counter", "pid": 1, "tid": 1, "ts": 5, "args": {"a": 1.5, "b": -2}},
{"ph": "i", "name": "[memory]", "s": "t", "pid": 1, "tid": 2, "ts": 4, "args": {"Addr": 18446744073709551615, "Bytes": 1024, "Device Type": 0, "Device Id": -1, "extra": "kept"}},
{"ph": "M", "name": "process_sort_index", "pid": 1, "tid": 0, "ts": 0, "args": {"sort_index": 9}}, {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "main"}},
{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5, "dur": 2, "args": {"grid": [1,1,1], "block": [32,1,1], "registers per thread": "16", "queued": 0, "est. achieved occupancy %": 0.0, "stream": 7, "external id": 5}},
{"ph": "X", "cat": "cpu_op", "name": "no time", "pid": 1, "tid": 2, "args": {"kept": 1}}
]}
"""


class ChromeOdd(Folder):
    def odd(self):
        path = self.path("odd.json")
        with open(path, "wb") as f:
            f.write(ODD)
        return path

    def test_odd_events_come_out_as_json(self):
        doc = strict(export("chrome", self.odd()))
        e = doc["traceEvents"]
        self.assertEqual((doc["note"], doc["path"], doc["shape"]), ("N/A", "C:\\Users\\x", [1, 2]))
        self.assertEqual(e[0], {"ph": "X", "cat": "cpu_op", "name": "tab\there", "pid": 1, "tid": 2, "ts": 1000.5, "dur": 7.125,
                                "args": {"External id": 5, "a": "NaN", "b": "N/A"}})
        self.assertEqual(e[1]["name"], "caf\ufffd \u00e9 \u00e9 / \"q\" \x7f")
        self.assertEqual((e[1]["tid"], e[1]["ts"], e[1]["args"]), ("2", "2000", {"p": "D:\\new\\x"}))
        self.assertEqual((e[2]["name"], e[2]["pid"], e[2]["tid"]), ("", "Spans", "t \U0001f600"))
        self.assertEqual(e[2]["args"], {"list": ["a\tb", "N/A", "01", [1, 2], {"k": ".5"}], "n": None, "big": 123456789012345678901234567890,
                                        "e": 1e5, "z": 0, "zz": "007"})
        self.assertEqual(e[3], {"name": "no cat", "ph": "X", "pid": 1, "tid": 2, "ts": 1656454173444137.123, "dur": 0.001, "tts": 5,
                                "cname": "good", "args": {}})
        self.assertEqual(e[4], {"ph": "B", "name": "begun", "cat": "c", "pid": 1, "tid": 3, "ts": 10.1})
        self.assertEqual(e[5], {"ph": "E", "pid": 1, "tid": 3, "ts": 20.25, "args": {"end": True}})
        self.assertEqual([x["id"] for x in e[6:10]], ["0x1f", "0x1f", "text id", -7])
        self.assertEqual((e[8]["name"], e[8]["args"], e[9]["bp"]), ("other name", {"w": 1}, "e"))
        self.assertEqual(e[10]["args"], {"a": 1.5, "b": -2})
        self.assertEqual(e[11]["args"], {"Addr": 18446744073709551615, "Bytes": 1024, "Device Type": 0, "Device Id": -1, "extra": "kept"})
        self.assertEqual([x["name"] for x in e[12:14]], ["process_sort_index", "thread_name"])
        self.assertEqual(e[14]["args"], {"grid": [1, 1, 1], "block": [32, 1, 1], "registers per thread": "16", "queued": 0,
                                         "est. achieved occupancy %": 0.0, "stream": 7, "external id": 5})
        self.assertEqual(e[15], {"ph": "X", "cat": "cpu_op", "name": "no time", "pid": 1, "tid": 2, "args": {"kept": 1}})
        self.assertEqual(len(e), 16)

    def test_a_copy_of_the_copy_is_the_same(self):
        once, twice = self.path("once.json"), self.path("twice.json")
        export("chrome", self.odd(), "-o", once)
        export("chrome", once, "-o", twice)
        with open(once, "rb") as a, open(twice, "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_rows_come_out_as_json(self):
        kept = self.path("kept.opscope")
        self.assertEqual(run("import", self.odd(), "-o", kept)[0], 0)
        doc = strict(export("chrome", kept))
        names = [e["name"] for e in doc["traceEvents"] if e["ph"] == "X"]
        self.assertEqual(sorted(names), sorted(["tab\there", "caf\ufffd \u00e9 \u00e9 / \"q\" \x7f", "", "no cat", "begun", "k"]))
        self.assertEqual(doc["note"], "N/A")

    def test_phases_that_are_none(self):
        path, kept = self.path("phases.json"), self.path("kept.opscope")
        with open(path, "wb") as f:
            f.write(b'{"traceEvents": [' + b",".join(b'{"ph": "%s", "name": "n", "pid": 1, "tid": 1, "ts": %d}' % (ph, i)
                                                     for i, ph in enumerate((b"\\\\", b'\\"', b"\\u00e9", b"\xe9", b"", b"\x01"))) + b"]}")
        self.assertEqual(run("import", path, "-o", kept)[0], 0)
        for source in (path, kept):
            self.assertEqual(len(strict(export("chrome", source))["traceEvents"]), 6)

    def test_cut_file(self):
        path = self.path("cut.json")
        whole = gzip.decompress(open(BUNDLED, "rb").read())
        with open(path, "wb") as f:
            f.write(whole[:len(whole) // 2])
        got = strict(export("chrome", path))["traceEvents"]
        self.assertEqual(got, events(load(BUNDLED))[:len(got)])
        self.assertGreater(len(got), 500)


class ChromeList(Folder):
    def test_of_itself(self):
        for model in ("resnet_full", "resnet_plain", "lstm_full", "lstm_plain"):
            path = data("torch", "torch113_cpu", model + ".json.gz")
            for compat in ([], ["--compat=torch-1.13"]):
                with self.subTest(model=model, compat=compat):
                    self.assertEqual(strict(export("chrome-list", path, *compat)), load(path))

    def test_of_newer_traces(self):
        """Against prof.events() of the same run. Times are those of the file, in ns; a trace has the system's thread ids, torch counts threads."""
        for version, folder in (("2.6", "torch26_cpu"), ("2.14", "torch214_cpu")):
            for model in ("resnet_full", "lstm_full"):
                with self.subTest(version=version, model=model):
                    got = strict(export("chrome-list", data("torch", folder, model + ".json.gz"), "--compat=torch-" + version))
                    want = load(data("torch", folder, model + ".events.json.gz"))
                    self.check(got, want)

    def check(self, got, want):
        ns = lambda us: round(us * 1000)
        threads = {}
        self.assertEqual(len(got), len(want))
        for g, w in zip(got, want):
            self.assertEqual(g["name"].split("#")[0] if g["name"].startswith("ProfilerStep") else g["name"], w["name"].replace("ProfilerStep*", "ProfilerStep"))
            self.assertEqual((ns(g["ts"]), ns(g["ts"]) + ns(g["dur"])), (ns(w["start"]), ns(w["end"])), g["name"])
            self.assertEqual(threads.setdefault(g["tid"], w["thread"]), w["thread"])
            self.assertEqual((g["ph"], g["pid"], g["args"]), ("X", "CPU functions", {}))
        self.assertEqual(len(set(threads.values())), len(threads))

    def test_arrow_of_a_remote_event(self):
        """torch writes node and thread of the event as one text, but the bare thread where its arrow starts."""
        remote = {"pid": 1, "tid": " node_id:1, thread_id:2 "}
        trace = [{"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": 10, "dur": 20, "args": {"External id": 1}, **remote},
                 {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 12, "dur": 3, "args": {"External id": 1, "correlation": 5}, **remote},
                 {"ph": "X", "cat": "kernel", "name": "k", "ts": 40, "dur": 5, "pid": 0, "tid": 7,
                  "args": {"External id": 1, "correlation": 5, "device": 0, "stream": 7}}]
        path = os.path.join(self.folder, "remote.json")
        with open(path, "w") as f:
            f.write(json.dumps({"traceEvents": trace}))
        for compat in ([], ["--compat=torch-1.13"]):
            got = [e for e in strict(export("chrome-list", path, *compat)) if e["name"] == "aten::add"]
            self.assertEqual([(e["ph"], e["tid"]) for e in got], [("X", remote["tid"]), ("s", 2)])

    def test_an_arrow_for_each_kernel(self):
        path = data("tracelens", "h100", "gaunernst_bert-small-uncased__1016001.json.gz")
        got = strict(export("chrome-list", path))
        starts = [e for e in got if e["ph"] == "s"]
        kernels = sum(e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") for e in events(load(path)))
        launched = sum(r["kernels"] for r in report("function-events", path).rows)
        self.assertEqual([e["id"] for e in starts], list(range(len(starts))))
        self.assertEqual(len(starts), launched)
        self.assertLessEqual(launched, kernels)
        self.assertGreater(launched, 0)
        self.assertEqual({e["cat"] for e in starts}, {"cpu_to_cuda"})


class PyprofDict(Folder):
    def test_as_the_old_command(self):
        path = data("pyprof", "lm_nvprof", "net.sql")
        code, want, _ = run("pyprof-parse", path)
        self.assertEqual(code, 0)
        self.assertEqual(export("pyprof-dict", path, "--compat=pyprof"), want)


class Files(Folder):
    def test_gzip(self):
        plain = export("chrome", BUNDLED)
        for args in (["-o", self.path("x.json.gz")], ["-o", self.path("y"), "--gzip"]):
            export("chrome", BUNDLED, *args)
            with open(args[1], "rb") as f:
                packed = f.read()
            self.assertEqual(gzip.decompress(packed), plain)
            self.assertEqual(packed[4:8], b"\0\0\0\0", "no time in it: same input, same bytes")
        self.assertEqual(gzip.decompress(export("chrome", BUNDLED, "--gzip")), plain)

    def test_full_disk(self):
        self.assertIn("No space left on device", export("chrome", BUNDLED, "-o", "/dev/full", status=1))

    def test_limit_of_size_leaves_the_old_file(self):
        path = self.path("x.json")
        with open(path, "w") as f:
            f.write("old")
        p = subprocess.run([oracle.OPSCOPE, "export", "chrome", BUNDLED, "-o", path], capture_output=True,
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000)))
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertEqual((open(path).read(), os.listdir(self.folder)), ("old", ["x.json"]))

    def test_reader_that_goes(self):
        r, w = os.pipe()
        p = subprocess.Popen([oracle.OPSCOPE, "export", "chrome", BUNDLED], stdout=w, stderr=subprocess.PIPE)
        os.close(w)
        os.read(r, 10)
        os.close(r)
        err = p.communicate()[1]
        self.assertEqual((p.returncode, b"Broken pipe" in err), (1, True), err)

    def test_never_over_the_input(self):
        path = self.path("in.json")
        with open(path, "wb") as f:
            f.write(gzip.decompress(open(BUNDLED, "rb").read()))
        before = open(path, "rb").read()
        os.symlink(path, self.path("link"))
        for out in (path, self.path("link")):
            self.assertIn("is the input", export("chrome", path, "-o", out, status=2))
        self.assertEqual(open(path, "rb").read(), before)

    def test_nothing_is_left_of_what_fails(self):
        out = self.path("x.dict")
        self.assertIn("no kernels", export("pyprof-dict", BUNDLED, "-o", out, status=1))
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    oracle.main()
