"""report layers: the parts sum to the whole, agree with report modules, and small traces that state one rule each."""
import ast
import collections
import csv
import json
import os
import sqlite3
import struct
import tempfile

import nsys_db
import oracle
from oracle import Case, data, report

HOST_PARTS = ("forward_host_ns", "backward_host_ns", "optimizer_host_ns")
PARTS = ("forward_gpu_ns", "backward_gpu_ns", "optimizer_gpu_ns", "other_gpu_ns")


def host_sums(case, t):
    """Of a run without a GPU: each row is the sum of its directions, and both notes say what all of them are."""
    parts = [f"{d}_host_ns" for d in ("forward", "backward", "optimizer") if f"{d}_host_ns" in t.ids]
    for r in t.rows:
        case.assertEqual(r["total_host_ns"], sum(r[p] for p in parts), r)
        case.assertAlmostEqual(r["total_host_pct"], 100 * r["total_host_ns"] / sum(x["total_host_ns"] for x in t.rows))
    by_direction, by_place = (note_numbers(n) for n in t.notes[1:3])
    whole, special = sum(r["total_host_ns"] for r in t.rows), {r[t.ids[0]]: r["total_host_ns"] for r in t.rows if r[t.ids[0]].startswith("(")}
    case.assertEqual(by_direction, [whole] + [sum(r.get(f"{d}_host_ns", 0) for r in t.rows) for d in ("forward", "backward", "optimizer")])
    optimizer, outside = special.pop("(optimizer)", 0), special.pop("(outside layers)", 0)
    case.assertEqual(special, {})
    case.assertEqual(by_place, [whole, whole - optimizer - outside, optimizer, outside])


def note_numbers(note):
    return [int(w) for w in note.split() if w.isdigit()]


class Sums(Case):
    """Each row is the sum of its directions, all rows are all device work, and both notes say so."""

    def check(self, path, *args):
        t = report("layers", path, *args)
        gpu = [e for e in oracle.events(oracle.load(path)) if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and e["ph"] == "X"]
        whole = sum(round(e["dur"] * 1000) for e in gpu)
        self.assertEqual(sum(r["total_gpu_ns"] for r in t.rows), whole)
        for r in t.rows:
            self.assertEqual(r["total_gpu_ns"], sum(r[p] for p in PARTS), r)
        by_direction, by_place = (note_numbers(n) for n in t.notes[:2])
        self.assertEqual(by_direction, [whole] + [sum(r[p] for r in t.rows) for p in PARTS])
        first = t.ids[0]
        special = {r[first]: r["total_gpu_ns"] for r in t.rows if r[first].startswith("(")}
        outside = special.pop("(outside layers)", 0) + special.pop("(no line)", 0)
        self.assertEqual(by_place[0], whole)
        self.assertEqual(by_place[2:], [special.pop("(optimizer)", 0), special.pop("(gradient collectives)", 0), outside,
                                        special.pop("(unattributed)", 0)])
        self.assertEqual(special, {})
        self.assertEqual(by_place[1], whole - sum(by_place[2:]))
        return t

    def test_groupings_of_training(self):
        path = data("tracelens", "mi300", "resnet_act_checkpoint.json.gz")
        layers, types = self.check(path), self.check(path, "--group-by=type")
        self.check(path, "--group-by=line")
        for column in PARTS:
            self.assertEqual(sum(r[column] for r in layers.rows if r["type"] == "Conv2d"), types.by("type")["Conv2d"][column])

    def test_forward_only(self):
        for name in ("gaunernst_bert-small-uncased__1016001", "Falconsai_nsfw_image_detection__1016002"):
            t = self.check(data("tracelens", "h100", name + ".json.gz"))
            self.assertEqual(sum(r["backward_gpu_ns"] for r in t.rows), 0)

    def test_agrees_with_modules(self):
        """The same figures as report modules, whose paths have the same names."""
        path = data("tracelens", "mi300", "resnet_act_checkpoint.json.gz")
        layers = report("layers", path).by("layer")
        seen = 0
        for r in report("modules", path, "--group-by=flat").rows:
            x = layers[r["path"]]
            self.assertEqual((x["forward_gpu_ns"], x["backward_gpu_ns"], x["with_inner_gpu_ns"], x["calls"]),
                             (r["device_self_ns"], r["backward_device_self_ns"], r["device_total_ns"] + r["backward_device_total_ns"],
                              r["calls"]), r["path"])
            seen += 1
        self.assertEqual(seen, 73)

    def test_host_only(self):
        path = data("torch", "torch214_cpu", "resnet_full.json.gz")
        t = report("layers", path)
        self.assertIn("the trace holds no device work: times are of the host", t.notes)
        modules = {r["path"]: r for r in report("modules", path, "--group-by=flat").rows}
        for r in t.rows:
            if not r["layer"].startswith("("):
                self.assertEqual(r["backward_host_ns"], modules[r["layer"]]["backward_host_ns"] - sum(
                    m["backward_host_ns"] for m in modules.values()
                    if m["path"].rpartition("/")[0] == r["layer"]), r["layer"])
        self.assertEqual(oracle.run("report", "layers", path)[1].decode().splitlines()[0], "Host time by layer, per step (mean of 3; notes are of all)")
        self.assertFalse([i for i in t.ids if "gpu" in i])
        host_sums(self, t)
        # The optimizer's ranges, which hold no others here.
        events = [e for e in oracle.events(oracle.load(path)) if e["ph"] == "X" and e["name"].startswith("Optimizer.")]
        self.assertEqual(t.by("layer")["(optimizer)"]["total_host_ns"], sum(round(e["dur"] * 1000) for e in events))
        self.assertEqual(t.by("layer")["(optimizer)"]["optimizer_host_ns"], sum(r.get("optimizer_host_ns") for r in t.rows))


class DLProf(Case):
    """Function stacks of a database of DLProf, against a join in Python."""

    def test_modules_of_function_stacks(self):
        path = data("dlprof", "w_relu", "nsys_profile.sqlite")
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            launches = db.execute("select r.start, r.globalTid, k.end - k.start from CUPTI_ACTIVITY_KIND_KERNEL k "
                                  "join CUPTI_ACTIVITY_KIND_RUNTIME r using (correlationId)").fetchall()
            launches += [r for t in ("MEMCPY", "MEMSET") if db.execute("select 1 from sqlite_master where name=?", (f"CUPTI_ACTIVITY_KIND_{t}",)).fetchone()
                         for r in db.execute(f"select r.start, r.globalTid, k.end - k.start from CUPTI_ACTIVITY_KIND_{t} k "
                                             "join CUPTI_ACTIVITY_KIND_RUNTIME r using (correlationId)")]
            ranges = db.execute("select start, end, globalTid, text from NVTX_EVENTS where text like '%funcStack%' and end is not null").fetchall()
        want = collections.Counter()
        for start, tid, ns in launches:
            around = [r for r in ranges if r[0] <= start < r[1] and r[2] == tid]
            stack = ast.literal_eval(max(around)[3])["funcStack"] if around else ""
            want["/".join(p.replace("::_call_impl", "") for p in stack.split("/") if "::_call_impl" in p) or "(outside layers)"] += ns
        t = report("layers", path)
        self.assertEqual({r["layer"]: r["total_gpu_ns"] for r in t.rows if r["total_gpu_ns"]}, dict(want))
        self.assertEqual(t.by("layer")["dummy_network"]["with_inner_gpu_ns"],
                         sum(v for k, v in want.items() if k.startswith("dummy_network")))


class PyProf(Case):
    """Direction of each kernel of a database of nvprof, as PyProf printed it; copies and sets go by the thread of their call."""

    def test_directions(self):
        path = data("pyprof", "lm_nvprof", "net.sql")
        with open(data("pyprof", "lm_nvprof", "expected_lm.csv"), newline="") as f:
            rows = list(csv.DictReader(f))
        ns = {d: sum(int(r["Sil(ns)"]) for r in rows if r["Direction"] == d) for d in ("fprop", "bprop")}
        # The additions of AccumulateGrad: backward to us, to PyProf forward, since no number is on them.
        accumulated = sum(int(r["Sil(ns)"]) for r in rows if (r["Module"], r["Op"]) == ("na", "add_"))
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            backward = {struct.unpack("<II", r[0][:8])[1] for r in db.execute(
                "select objectId from CUPTI_ACTIVITY_KIND_MARKER m join StringTable s on m.name = s._id_ where s.value like '%Backward, seq%'")}
            other = [r for t in ("MEMCPY", "MEMSET") for r in db.execute(
                f"select k.end - k.start, r.threadId from CUPTI_ACTIVITY_KIND_{t} k left join CUPTI_ACTIVITY_KIND_RUNTIME r using (correlationId)")]
        other_backward = sum(d for d, tid in other if tid in backward or (tid or 0) & 0xffffffff in backward)
        t = report("layers", path, "--group-by=line")
        self.assertEqual(sum(r["backward_gpu_ns"] for r in t.rows), ns["bprop"] + accumulated + other_backward)
        self.assertEqual(sum(r["total_gpu_ns"] for r in t.rows), sum(ns.values()) + sum(d for d, _ in other))


def x(name, ts, dur, cat="cpu_op", tid=1, pid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur,
            "args": {k.replace("_", " "): v for k, v in args.items()}}


class Trace:
    """Ranges and kernels; `kernel` is launched at a time of a thread. No forward thread ids: as emit_nvtx records."""

    def __init__(self):
        self.events, self.n = [], 0

    def op(self, name, ts, dur, seq=None, tid=1, **kw):
        self.events.append(x(name, ts, dur, tid=tid, **({} if seq is None else {"Sequence_number": seq}), **kw))

    def layer(self, name, ts, dur, tid=1):
        self.events.append(x("layer:" + name, ts, dur, "user_annotation", tid))

    def kernel(self, ts, dur, tid=1, name="k"):
        self.n += 1
        self.events += [x("cudaLaunchKernel", ts, 1, "cuda_runtime", tid, correlation=self.n),
                        x(name, 10000 + 1000 * self.n, dur, "kernel", 7, 0, correlation=self.n, device=0, stream=7)]


class Rules(Case):
    def rows(self, trace, *args):
        f = tempfile.NamedTemporaryFile("w", suffix=".json", delete=False)
        self.addCleanup(os.unlink, f.name)
        with f:
            f.write(json.dumps({"traceEvents": trace.events}))
        self.table = report("layers", f.name, *args)
        first = self.table.ids[0]
        parts = PARTS if PARTS[0] in self.table.ids else HOST_PARTS
        return {r[first]: tuple(r.get(p, 0) // 1000 for p in parts) for r in self.table.rows}

    def test_nothing_to_show(self):
        with self.assertRaisesRegex(AssertionError, "layer:NAME"):
            t = Trace()
            t.op("aten::mm", 0, 10)
            self.rows(t)

    def test_nested_names_and_plain_ranges(self):
        t = Trace()
        t.layer("block:ignored", 0, 100)
        t.layer("fc", 10, 20)
        t.op("aten::linear", 12, 10)
        t.kernel(13, 5)
        t.kernel(25, 7)   # in the range, in no op
        t.op("aten::relu", 50, 10)
        t.kernel(51, 3)
        t.kernel(200, 2)  # after it
        self.assertEqual(self.rows(t), {"block:fc": (12, 0, 0, 0), "block": (3, 0, 0, 0), "(outside layers)": (0, 0, 0, 2)})
        by = self.table.by("layer")
        self.assertEqual((by["block"]["with_inner_gpu_ns"], by["block"]["forward_host_ns"], by["block:fc"]["forward_host_ns"],
                          by["block"]["calls"]), (15000, 80000, 20000, 1))

    def test_backward_by_number_alone(self):
        """Another thread, no forward thread id; the engine's own range, what it adds itself, and AccumulateGrad."""
        t = Trace()
        t.layer("a", 0, 100)
        t.op("aten::linear", 10, 50, 4)
        t.op("aten::addmm", 20, 20, 4)
        t.kernel(21, 11)
        t.layer("b", 100, 100)
        t.op("aten::relu", 110, 20, 5)
        t.kernel(111, 13)
        for node, seq, ts, us in (("ReluBackward0", 5, 1000, 17), ("AddmmBackward0", 4, 1100, 19)):
            t.op("autograd::engine::evaluate_function: " + node, ts, 90, tid=2)
            t.op(node, ts + 10, 50, seq, tid=2)
            t.op("aten::mm", ts + 12, 20, tid=2)
            t.kernel(ts + 13, us, tid=2)
            t.op("aten::add", ts + 70, 10, tid=2)
            t.kernel(ts + 71, 1, tid=2)
        t.op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 1200, 50, tid=2)
        t.op("torch::autograd::AccumulateGrad", 1210, 30, tid=2)
        t.kernel(1211, 23, tid=2)
        t.op("Optimizer.step#SGD.step", 2000, 100, cat="user_annotation")
        t.op("aten::_foreach_add_", 2010, 50)
        t.kernel(2011, 29)
        self.assertEqual(self.rows(t), {"a": (11, 19 + 1 + 23, 0, 0), "b": (13, 18, 0, 0), "(optimizer)": (0, 0, 29, 0)})

    def test_same_thread(self):
        """Work of the CPU alone runs the backward on the thread that calls backward()."""
        t = Trace()
        t.layer("a", 0, 100)
        t.op("aten::mm", 10, 20, 0)
        t.kernel(11, 5)
        t.op("MmBackward", 500, 50, 0)
        t.kernel(510, 7)
        self.assertEqual(self.rows(t), {"a": (5, 7, 0, 0)})

    def test_gradient_accumulation(self):
        """Two forward and two backward passes; then one forward with two backward passes (retain_graph)."""
        t = Trace()
        for i, name in enumerate("ab"):
            t.layer(name, 1000 * i, 100)
            t.op("aten::mm", 1000 * i + 10, 20, 7 + i)
            t.op("MmBackward0", 1000 * i + 500, 50, 7 + i, tid=2)
            t.kernel(1000 * i + 510, 3 + i, tid=2)
        t.op("MmBackward0", 3000, 50, 8, tid=2)
        t.kernel(3010, 5, tid=2)
        self.assertEqual(self.rows(t), {"a": (0, 3, 0, 0), "b": (0, 9, 0, 0)})

    def test_number_used_again(self):
        """A second run in one recording counts from 0 again: the latest one before counts."""
        t = Trace()
        for i, name in enumerate("ab"):
            t.layer(name, 1000 * i, 100)
            t.op("aten::mm", 1000 * i + 10, 20, 3)
            t.op("MmBackward0", 1000 * i + 500, 50, 3, tid=2)
            t.kernel(1000 * i + 510, 3 + i, tid=2)
        self.assertEqual(self.rows(t), {"a": (0, 3, 0, 0), "b": (0, 4, 0, 0)})

    def test_double_backward(self):
        """create_graph: the backward thread's own ops have numbers; their backward belongs to the layer of the first forward op."""
        t = Trace()
        t.layer("a", 0, 100)
        t.op("aten::tanh", 10, 20, 5)
        t.layer("b", 200, 100)
        t.op("aten::mm", 210, 20, 1)          # the number that the backward thread uses too
        t.op("TanhBackward0", 1000, 50, 5, tid=2)
        t.op("aten::mul", 1010, 20, 1, tid=2)
        t.kernel(1011, 11, tid=2)
        t.op("MulBackward0", 2000, 50, 1, tid=2)
        t.kernel(2010, 13, tid=2)
        t.op("MmBackward0", 2100, 50, 1, tid=2)
        t.kernel(2110, 17, tid=2)
        self.assertEqual(self.rows(t), {"a": (0, 24, 0, 0), "b": (0, 17, 0, 0)})

    def test_threads_that_fit_equally_well(self):
        t = Trace()
        for tid in (1, 3):
            t.layer("ab"[tid // 2], 0, 100, tid)
            t.op("aten::mm", 10, 20, 1, tid)
        t.op("MmBackward0", 1000, 50, 1, tid=2)
        t.kernel(1010, 7, tid=2)
        self.assertEqual(self.rows(t), {"(outside layers)": (0, 7, 0, 0), "a": (0, 0, 0, 0), "b": (0, 0, 0, 0)})
        self.assertTrue(any("not linked 1 (1 of them fit several threads)" in n for n in self.table.notes), self.table.notes)

    def test_another_process(self):
        t = Trace()
        t.layer("a", 0, 100)
        t.op("aten::mm", 10, 20, 1)
        t.op("MmBackward0", 1000, 50, 1, tid=2, pid=9)
        self.assertEqual(self.rows(t), {"a": (100, 0, 0), "(outside layers)": (0, 50, 0)})
        self.assertNotIn("optimizer_host_ns", self.table.ids)  # nowhere any

    def test_recomputation(self):
        """Activation checkpointing: the layer's own range within the backward pass goes first."""
        t = Trace()
        t.layer("outer", 0, 200)
        t.op("CheckpointFunction", 10, 100, 3)
        t.layer("inner", 20, 50)
        t.op("aten::relu", 30, 10)
        t.kernel(31, 5)
        t.op("CheckpointFunctionBackward", 1000, 500, 3, tid=2)
        t.layer("inner", 1010, 50, tid=2)
        t.op("aten::relu", 1020, 10, tid=2)
        t.kernel(1021, 7, tid=2)
        t.op("aten::mul", 1200, 10, tid=2)
        t.kernel(1201, 9, tid=2)
        self.assertEqual(self.rows(t), {"outer:inner": (5, 7, 0, 0), "outer": (0, 9, 0, 0)})
        self.assertEqual(self.table.by("layer")["outer:inner"]["calls"], 1)

    def test_host(self):
        """Without a GPU: each moment counts once, for the innermost, and the optimizer and what is outside layers have rows."""
        t = Trace()
        t.op("ProfilerStep#1", 0, 3000, cat="user_annotation")  # a range alone is nobody's
        t.layer("a", 0, 100)
        t.layer("fc", 10, 60)
        t.op("aten::mm", 20, 40, 4)
        t.op("aten::nll_loss", 150, 30)
        t.op("aten::sum", 160, 10)
        for ts in (1000, 1200):
            t.op("MmBackward0", ts, 80, 4 if ts == 1000 else 99, tid=2)
            t.op("aten::mm", ts + 10, 20, tid=2)
        t.op("Optimizer.step#LBFGS.step", 2000, 500, cat="user_annotation")
        t.op("aten::add_", 2010, 30)
        t.layer("a", 2100, 100)  # a closure
        t.op("aten::mm", 2110, 20, 7)
        t.op("MmBackward0", 2300, 70, 7)
        self.assertEqual(self.rows(t), {"a:fc": (60, 80, 0), "a": (40 + 100, 70, 0), "(outside layers)": (30, 80, 0), "(optimizer)": (0, 0, 500 - 100 - 70)})
        host_sums(self, self.table)
        self.assertEqual({r["layer"]: r["calls"] for r in self.table.rows}, {"a:fc": 1, "a": 2, "(outside layers)": None, "(optimizer)": None})
        self.assertEqual(self.rows(t, "--group-by=type"), self.rows(t))

    def test_host_of_ranges_across_ends(self):
        """What ends behind the range around it ends with that; of two that overlap beside each other the first has what both hold."""
        t = Trace()
        t.layer("a", 0, 100)
        t.layer("b", 80, 40)
        t.layer("c", 200, 100)
        t.events.append(x("nn.py(1): enter", 210, 40, "python_function"))
        t.layer("d", 230, 50)
        self.assertEqual(self.rows(t), {"a": (80, 0, 0), "a:b": (20, 0, 0), "c": (50, 0, 0), "c:d": (50, 0, 0)})
        host_sums(self, self.table)

    def test_lines_without_a_device(self):
        t = Trace()
        t.op("aten::mm", 0, 10, Call_stack="net.py(5): forward")
        with self.assertRaisesRegex(AssertionError, "no device work.*report operators --group-by=line"):
            self.rows(t, "--group-by=line")
        with self.assertRaisesRegex(AssertionError, "which layers there are.*report operators --group-by=line"):
            self.rows(t)

    def test_gradient_collectives(self):
        t = Trace()
        t.layer("a", 0, 100)
        t.op("aten::mm", 10, 20, 1)
        t.op("MmBackward0", 1000, 50, 1, tid=2)
        t.op("torch::autograd::AccumulateGrad", 1100, 50, tid=2)
        t.kernel(1110, 31, tid=2, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
        t.kernel(1120, 3, tid=2)
        self.assertEqual(self.rows(t), {"a": (0, 3, 0, 0), "(gradient collectives)": (0, 31, 0, 0)})


class Nsys:
    """A database of Nsight Systems with ranges of one process and a kernel a launch; times in us."""

    def __init__(self):
        self.ranges, self.calls, self.kernels = [], [], []

    def range(self, text, ts, dur, tid=11):
        self.ranges.append(nsys_db.nvtx(1000 * ts, 1000 * (ts + dur), text, 10, tid))

    def kernel(self, ts, dur, tid=11, name=1):
        n = len(self.calls) + 1
        self.calls.append(nsys_db.call(1000 * ts, 1000 * ts + 500, n, 10, tid))
        self.kernels.append(nsys_db.kernel(10**8 + 10**6 * n, 10**8 + 10**6 * n + 1000 * dur, n, 10, name=name))

    def write(self, path):
        sample = nsys_db.sample()
        nsys_db.make(path, {**{t: sample[t] for t in ("META_DATA_EXPORT", "TARGET_INFO_GPU", "PROCESSES")},
                            "StringIds": nsys_db.strings("sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32_kernel", "cudaLaunchKernel_v7000"),
                            "NVTX_EVENTS": self.ranges, "CUPTI_ACTIVITY_KIND_RUNTIME": self.calls, "CUPTI_ACTIVITY_KIND_KERNEL": self.kernels})


class EmitNvtx(Case):
    """The whole way: texts of emit_nvtx and of PyProf's markers, in a database of Nsight Systems."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "x.sqlite")

    def rows(self, db, *args):
        db.write(self.path)
        self.table = report("layers", self.path, *args)
        return {r["layer"]: tuple(r[p] // 1000 for p in PARTS) for r in self.table.rows}

    def training(self, linear, backward, engine, accumulate):
        """One product in layer fc: forward, both gradients, the parameter's gradient added up, one optimizer step."""
        db = Nsys()
        db.range("layer:fc", 0, 100)
        db.range(linear, 10, 50)
        db.kernel(15, 10)
        if engine:
            db.range(engine, 1000, 90, tid=12)
        db.range(backward, 1010, 60, tid=12)
        db.kernel(1020, 11, tid=12)
        db.kernel(1030, 12, tid=12)
        db.range(accumulate, 1100, 30, tid=12)
        db.kernel(1110, 3, tid=12)
        db.range("Optimizer.step#SGD.step", 2000, 100)
        db.range("aten::add_", 2010, 20)
        db.kernel(2015, 4)
        db.kernel(2500, 5)  # in no range
        return db

    def test_generations_of_emit_nvtx(self):
        want = {"fc": (10, 26, 0, 0), "(optimizer)": (0, 0, 4, 0), "(outside layers)": (0, 0, 0, 5)}
        for texts in (("aten::mm, seq = 3", "MmBackward, seq = 3", None, "torch::autograd::AccumulateGrad"),
                      ("mm, seq = 3, sizes = [[4, 5], [5, 6]]", "MmBackward, seq = 3, sizes = [[4, 6]]", None, "torch::autograd::AccumulateGrad"),
                      ("aten::mm, seq = 3, op_id = 9", "MmBackward0, seq = 3, op_id = 12", "autograd::engine::evaluate_function: MmBackward0, op_id = 11",
                       "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad, op_id = 14"),
                      ("aten::mm, seq = 3", "struct MmBackward0, seq = 3", None, "struct torch::autograd::AccumulateGrad")):
            with self.subTest(texts=texts):
                self.assertEqual(self.rows(self.training(*texts)), want)
                os.unlink(self.path)

    def test_flops_of_the_backward(self):
        """torch's flop counter says 240 for (4x5) x (5x6); the two gradients are as much each."""
        self.training("aten::mm, seq = 3, op_id = 9, sizes = [[4, 5], [5, 6]]", "MmBackward0, seq = 3, op_id = 12", None,
                      "torch::autograd::AccumulateGrad").write(self.path)
        rows = {r["direction"]: (r["op"], r["flops"], r["total_gpu_ns"]) for r in report("gemm", self.path).rows if r["flops"]}
        self.assertEqual(rows, {"forward": ("aten::mm", 240, 10000), "backward": ("MmBackward0", 480, 23000)})
        self.assertEqual(report("layers", self.path).by("layer")["fc"]["flops"], 720)
        # The type is not recorded, but the kernel's name has it: enough for the share of the FLOP/s, not for bytes.
        for r in (r for r in report("gemm", self.path).rows if r["flops"]):
            self.assertAlmostEqual(r["peak_pct"], 100 * r["flops"] / 312e12 / (r["total_gpu_ns"] * 1e-9))
            self.assertIsNone(r["bytes"])

    def marker(self, mod, op, *shapes, dtype="float32"):
        args = ", ".join(f"{{'name': '', 'type': 'tensor', 'shape': {s}, 'dtype': '{d if isinstance(d, str) else dtype}'}}"
                         for s, d in ((x if isinstance(x[-1], str) else (x, None)) for x in shapes))
        return f"{{'mod': '{mod}', 'op': '{op}', 'args': [{args}]}}"

    def test_backward_of_a_marked_call(self):
        """Shapes are in PyProf's marker around the forward op. Its backward is two nodes: one instance, FLOPs once; when it runs a
        second time, they are another."""
        db = Nsys()
        db.range(self.marker("torch.nn.functional", "linear", (4, 5), (6, 5), (6,)), 0, 100)
        db.range("aten::expand, seq = 3", 10, 10)
        db.kernel(12, 2)
        db.range("aten::addmm, seq = 4", 30, 30)
        db.kernel(35, 10)
        for ts in (1000, 2000):
            db.range("AddmmBackward0, seq = 4", ts, 60, tid=12)
            db.kernel(ts + 10, 11, tid=12)
            db.kernel(ts + 20, 12, tid=12)
            db.range("ExpandBackward0, seq = 3", ts + 100, 60, tid=12)
            db.kernel(ts + 110, 3, tid=12)
        db.write(self.path)
        rows = {r["direction"]: (r["calls"], r["flops"], r["total_gpu_ns"]) for r in report("gemm", self.path).rows}
        self.assertEqual(rows, {"forward": (1, 240, 12000), "backward": (2, 2 * 480, 2 * 26000)})

    def test_order_of_arguments(self):
        """The table first in torch, last in torch.nn.functional: 6 numbers of 8 bytes, 6 rows of 10 floats read and written."""
        for mod, shapes in (("torch", [(50, 10), ((2, 3), "int64")]), ("torch.nn.functional", [((2, 3), "int64"), (50, 10)])):
            db = Nsys()
            db.range(self.marker(mod, "embedding", *shapes), 0, 100)
            db.kernel(10, 5)
            db.write(self.path)
            self.assertEqual(report("roofline", self.path).rows[0]["bytes"], 6 * 8 + 2 * 6 * 10 * 4)
            os.unlink(self.path)

    def test_module_markers(self):
        db = Nsys()
        outer = "{'mod': 'mynet.Block', 'strRepr': ''}"
        inner = "{'mod': 'torch.nn.modules.linear.Linear', 'strRepr': 'Linear(in_features=4, out_features=6, bias=False)'}"
        db.range(outer, 0, 200)
        db.range(inner, 10, 100)
        db.range("aten::linear, seq = 5", 20, 50)
        db.kernel(30, 7)
        db.range("aten::relu, seq = 6", 120, 20)
        db.kernel(125, 2)
        for name, seq, ts, us in (("ReluBackward0", 6, 1000, 3), ("LinearBackward0", 5, 1100, 8)):
            db.range(f"{name}, seq = {seq}", ts, 50, tid=12)
            db.kernel(ts + 10, us, tid=12)
        self.assertEqual(self.rows(db), {"Block/Linear(in_features=4, out_features=6, bias=False)": (7, 8, 0, 0), "Block": (2, 3, 0, 0)})
        self.assertEqual([(r["type"], r["calls"]) for r in self.table.rows], [("Linear", 1), ("Block", 1)])

    def test_module_markers_with_the_arguments_alone(self):
        """PyProf notes extra_repr(): without the class, '64, 128' would be the layer's name."""
        db = Nsys()
        db.range("{'mod': 'LSTM', 'strRepr': '64, 128, num_layers=2'}", 0, 100)
        db.range("aten::lstm, seq = 5", 20, 50)
        db.kernel(30, 7)
        self.assertEqual(list(self.rows(db)), ["LSTM(64, 128, num_layers=2)"])
        self.assertEqual(self.table.rows[0]["type"], "LSTM")


if __name__ == "__main__":
    oracle.main()
