"""report memory against naive computations, torch's own key_averages() and the plugin's synthetic cases."""
import bisect
import collections
import functools
import gzip
import json
import math
import os
import tempfile
from decimal import Decimal

import oracle
from oracle import Case, data, load, report, synthetic

CPU_TYPES = (0, 2, 5)


def ns(text):
    return int((Decimal(str(text)) * 1000).to_integral_value())


def exact(path):
    """The events with their times as the decimal digits say."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
        doc = json.loads(f.read().decode("utf-8", "surrogatepass"), strict=False, parse_float=Decimal)
    return oracle.events(doc)


class Naive:
    """Nodes, their innermost-first chains for each memory event, by looking at every op."""

    def __init__(self, path):
        self.ops, self.mem = collections.defaultdict(list), []
        self.start = None
        for e in exact(path):
            cat = str(e.get("cat", "")).lower()
            if e.get("ph") == "X" and "ts" in e and isinstance(e["ts"], (int, Decimal)):
                t = ns(e["ts"])
                self.start = t if self.start is None else min(self.start, t)
                if cat in ("cpu_op", "operator", "user_annotation"):
                    track = (str(e["pid"]), str(e["tid"]))
                    self.ops[track].append([t, t + ns(e["dur"]), e["name"], cat != "user_annotation"])
            elif e.get("name") == "[memory]":
                a = e["args"]
                self.mem.append((ns(e["ts"]), (str(e["pid"]), str(e["tid"])), a["Bytes"], a.get("Addr"),
                                 a.get("Total Allocated"), a.get("Total Reserved"),
                                 -1 if a["Device Type"] in CPU_TYPES else a["Device Id"]))
        self.mem.sort(key=lambda m: m[0])
        for ops in self.ops.values():
            ops.sort(key=lambda o: (o[0], -o[1]))

    def chain(self, track, t):
        """Ops around time t, outermost first."""
        return [o for o in self.ops[track] if o[0] <= t < o[1]]

    def parents(self):
        """For each op (by identity) the number of its children and its parent."""
        children, parent = collections.Counter(), {}
        for ops in self.ops.values():
            stack = []
            for o in ops:
                while stack and stack[-1][1] <= o[0]:
                    stack.pop()
                parent[id(o)] = stack[-1] if stack else None
                if stack:
                    children[id(stack[-1])] += 1
                stack.append(o)
        return children, parent

    def folded(self):
        """Ids of ops that are the only child of an op of the same name."""
        children, parent = self.parents()
        return {id(o) for ops in self.ops.values() for o in ops
                if parent[id(o)] is not None and children[id(parent[id(o)])] == 1 and o[3] and parent[id(o)][3]
                and parent[id(o)][2] == o[2]}

    def statistics(self, device):
        out = collections.defaultdict(lambda: [0, 0, 0, 0, 0, 0, 0])
        folded = self.folded()
        for ops in self.ops.values():
            for o in ops:
                if o[3] and id(o) not in folded:
                    out[o[2]][0] += 1
        touched = set()
        for t, track, size, _, _, _, dev in self.mem:
            if dev != device:
                continue
            # Several ops can begin at one time: the list is in order of nesting, so the last is innermost.
            chain = self.chain(track, t)
            ops = [o for o in chain if o[3]]
            alloc = max(size, 0)
            for o in ops:
                if id(o) in folded:
                    continue
                touched.add(o[2])
                s = out[o[2]]
                s[1] += size
                s[3] += size > 0
                s[5] += alloc
            if ops:
                s = out[ops[-1][2]]
                s[2] += size
                s[4] += size > 0
                s[6] += alloc
        return {k: v for k, v in out.items() if k in touched and plain(k)}

    def blocks(self, device):
        """(operator, size, allocated, released), in order of the allocation or else the free."""
        open_, out = {}, []
        for t, track, size, addr, _, _, dev in self.mem:
            if dev != device or addr is None or size == 0:
                continue
            if size > 0:
                chain = self.chain(track, t)
                ops = [o for o in chain if o[3]]
                name = ops[-1][2] if ops else "<unknown>"
                if name.startswith("aten::empty"):
                    around = ops[-2:-1] or [o for o in chain[:chain.index(ops[-1])] if not o[3]][-1:]
                    name = f"{around[0][2]} ({name})" if around else name
                out.append([name, size, t, None])
                open_[addr] = out[-1]
            elif addr in open_:
                open_.pop(addr)[3] = t
            else:
                out.append(["<unknown>", -size, None, t])
        return out


def plain(name):
    """What tables count as an operator."""
    return not (name.startswith(("ProfilerStep#", "enumerate(Data", "Optimizer.")) or
                name in ("DataParallel.forward", "DistributedDataParallel.forward"))


STATISTICS = ["calls", "size_increase_bytes", "self_size_increase_bytes", "allocations", "self_allocations",
              "allocation_bytes", "self_allocation_bytes"]


def statistics(table):
    return {r["operator"]: [r[c] for c in STATISTICS] for r in table.rows}


class Synthetic(Case):
    def test_memory_view(self):
        gpu, cpu = report("memory", synthetic("memory_view")), report("memory", synthetic("memory_view"), "--device=cpu")
        self.assertEqual((len(gpu.rows), len(cpu.rows)), (8, 5))
        self.assertEqual(statistics(gpu), {
            "aten::to": [4, 104, 104, 3, 2, 204, 104], "aten::nll_loss_backward": [1, 0, 0, 1, 1, 10, 10],
            "aten::copy_": [1, 0, 0, 1, 1, 100, 100], "aten::linear": [1, 20, 20, 7, 3, 360, 130],
            "aten::t": [1, 0, 0, 3, 1, 200, 100], "aten::transpose": [1, 0, 0, 2, 1, 100, 50],
            "aten::as_strided": [1, 0, 0, 1, 1, 50, 50], "aten::addmm": [1, 0, 0, 1, 1, 30, 30]})
        self.assertEqual(statistics(cpu), {
            "aten::to": [4, 4, 4, 1, 1, 4, 4], "aten::linear": [1, 50, 0, 2, 1, 150, 100],
            "aten::t": [1, 50, 0, 1, 0, 50, 0], "aten::transpose": [1, 50, 0, 1, 0, 50, 0],
            "aten::as_strided": [1, 50, 50, 1, 1, 50, 50]})

    def test_memory_view_as_the_plugin_shows_it(self):
        t = report("memory", synthetic("memory_view"), "--device=cpu", "--compat=tb-plugin")
        self.assertEqual([c["title"] for c in t.doc["columns"]], [
            "Operator Name", "Calls", "Size Increase (KB)", "Self Size Increase (KB)", "Allocation Count",
            "Self Allocation Count", "Allocation Size (KB)", "Self Allocation Size (KB)"])
        rows = {r["operator"]: r for r in t.rows}
        self.assertEqual(rows["aten::linear"]["allocation_kb"], 0.15)
        self.assertEqual(rows["aten::to"]["size_increase_kb"], 0.004)
        self.assertEqual(rows["aten::as_strided"]["self_size_increase_kb"], 0.05)

    def test_free_on_another_device_pairs_with_nothing(self):
        blocks = report("memory", synthetic("memory_view"), "--device=cpu").section("events").rows
        self.assertEqual([(r["operator"], r["size_bytes"], r["allocation_time_ns"], r["duration_ns"]) for r in blocks][-1],
                         ("<unknown>", 100, None, None))

    def test_free_on_another_device_as_the_plugin_has_it(self):
        """Only the address counts: what the GPU allocated at 690 and the CPU freed is a block of the GPU."""
        gpu, cpu = (report("memory", synthetic("memory_view"), f"--device={d}", "--compat=tb-plugin").section("events").rows for d in ("0", "cpu"))
        figures = [tuple(r.values()) for r in gpu]
        self.assertIn(("<unknown>", 0.1, 0.68, 0.74, 0.06), figures)
        self.assertEqual([r["operator"] for r in cpu if r["allocation_time_ms"] is None], [])

    def test_plugin_events(self):
        """What is around aten::empty; allocations of one address; times half-way; where zero stands."""
        def op(name, ts, dur, cat="cpu_op"):
            return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": {}}
        path = self.trace([
            op("aten::empty", 0, 10), op("ProfilerStep#1", 20, 980, "user_annotation"), op("aten::empty", 30, 10), op("mine", 95, 30, "user_annotation"),
            op("aten::empty_like", 100, 10), op("enumerate(DataLoader)#_Iter.__next__", 200, 50, "user_annotation"), op("aten::empty", 210, 10),
            op("aten::linear", 300, 50), op("aten::empty", 310, 10), op("Optimizer.step#SGD.step", 400, 50, "user_annotation"),
            op("aten::mm", 500, 50),
            *[self.event(t, s, a, 0) for t, s, a in (
                (5, 1, 1), (35, 2048, 2), (105, 3, 3), (215, 4, 4), (315, 5, 5), (405, 6, 6), (505, 7, 7), (506, 8, 7), (520, -8, 7), (600, -9, 9), (601, -10, 9), (700, -2048, 2))]])
        names = [r["operator"] for r in report("memory", path).section("events").rows]
        self.assertEqual(names, ["aten::empty", "ProfilerStep#1 (aten::empty)", "mine (aten::empty_like)",
                                 "enumerate(DataLoader)#_Iter.__next__ (aten::empty)", "aten::linear (aten::empty)", "<unknown>", "aten::mm", "aten::mm",
                                 "<unknown>", "<unknown>"])
        rows = [tuple(r.values()) for r in report("memory", path, "--compat=tb-plugin").section("events").rows]
        self.assertEqual(rows, [
            ("aten::mm", 0.008, 0.51, 0.52, 0.01), ("ProfilerStep#1 (aten::empty)", 2, 0.04, 0.7, 0.67),
            ("CallTreeRoot (aten::empty)", 0.001, 0.005, None, None), ("ProfilerStep#1 (aten::empty_like)", 0.003, 0.1, None, None),
            ("enumerate(DataLoader)#_Iter.__next__ (aten::empty)", 0.004, 0.21, None, None),
            ("aten::linear (aten::empty)", 0.005, 0.32, None, None), ("<unknown>", 0.006, 0.41, None, None),
            ("<unknown>", 0.01, None, 0.6, None)])

    def test_memory_curve_has_2n_minus_1_points(self):
        for device, n in (("cpu", 12), ("0", 10)):
            points = report("memory", synthetic("memory_curve"), "--device=" + device).section("curve").rows
            self.assertEqual(len(points), 2 * n - 1)
            for before, corner in zip(points[1::2], points[2::2]):
                self.assertEqual(before["time_ns"], corner["time_ns"])
            for before, last in zip(points[1::2], points[0::2]):
                self.assertEqual(before["allocated_bytes"], last["allocated_bytes"])
        peaks = report("memory", synthetic("memory_curve")).section("peaks").by("device")
        self.assertEqual((peaks["GPU0"]["peak_allocated_bytes"], peaks["GPU0"]["peak_allocated_time_ns"]), (8000, 105000))
        self.assertEqual((peaks["GPU0"]["peak_reserved_bytes"], peaks["GPU0"]["peak_reserved_time_ns"]), (10240, 104000))

    def trace(self, events):
        f = tempfile.NamedTemporaryFile("w", suffix=".json", delete=False)
        self.addCleanup(os.unlink, f.name)
        with f:
            f.write(json.dumps({"traceEvents": events}))
        return f.name

    @staticmethod
    def event(ts, size, addr, allocated, name="[memory]", device=(1, 0)):
        return {"ph": "i", "s": "t", "name": name, "pid": 1, "tid": 1, "ts": ts,
                "args": {"Device Type": device[0], "Device Id": device[1], "Addr": addr, "Bytes": size,
                         "Total Allocated": allocated, "Total Reserved": 1 << 40}}

    def test_curve_is_sampled_to_the_limit(self):
        points, total = [], 0
        for i in range(30000):
            size = (i * 7919) % 1000 + 1 if i % 3 else -min(total, (i * 31) % 1500)
            total += size
            points.append((i * 3 + i % 2, total, size))
        path = self.trace([self.event(t, s, 1000 + t, a) for t, a, s in points])
        curve = report("memory", path).section("curve").rows
        self.assertLessEqual(len(curve), 10240)
        kept = [(r["time_ns"], r["allocated_bytes"]) for r in curve[0::2]]
        self.assertEqual(kept, lttb([((t - points[0][0]) * 1000, a) for t, a, _ in points], 5120))

    def test_out_of_memory_is_counted_apart(self):
        path = self.trace([self.event(1, 10, 1, 10), self.event(2, 1 << 50, 0, 10, "[OutOfMemory]"),
                           self.event(3, -10, 1, 0)])
        t = report("memory", path)
        self.assertTrue(any("1 allocations failed" in n for n in t.notes), t.notes)
        self.assertEqual(t.section("peaks").rows[0]["out_of_memory"], 1)
        self.assertEqual(len(t.section("events").rows), 1)

    def test_same_address_on_two_devices(self):
        path = self.trace([self.event(1, 10, 7, 10), self.event(2, 20, 7, 20, device=(1, 1)),
                           self.event(3, -10, 7, 0), self.event(5, -20, 7, 0, device=(1, 1))])
        for device, size, life in (("0", 10, 2000), ("1", 20, 3000)):
            rows = report("memory", path, "--device=" + device).section("events").rows
            self.assertEqual([(r["size_bytes"], r["duration_ns"]) for r in rows], [(size, life)])

    def test_what_is_missing_is_said(self):
        code, _, err = oracle.run("report", "memory", self.trace([{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1,
                                                                    "tid": 1, "ts": 1, "dur": 2, "args": {}}]))
        self.assertEqual(code, 1)
        self.assertIn(b"profile_memory=True", err)
        path = self.trace([self.event(1, 10, 7, 10)])
        for device in ("3", "tpu"):
            code, _, err = oracle.run("report", "memory", path, "--device=" + device)
            self.assertEqual((code, err.count(b"\n")), (1 if device == "3" else 2, 1))


def lttb(points, keep):
    """Steinarsson's Largest-Triangle-Three-Buckets, as in his thesis."""
    n = len(points)
    if n <= keep:
        return points
    every, out, a = (n - 2) / (keep - 2), [points[0]], 0
    for b in range(keep - 2):
        lo, hi = int(b * every) + 1, int((b + 1) * every) + 1
        nxt = points[hi:int((b + 2) * every) + 1 if b + 3 < keep else n]
        mx, my = sum(p[0] for p in nxt) / len(nxt), sum(p[1] for p in nxt) / len(nxt)
        ax, ay = points[a]
        best = max(range(lo, hi), key=lambda i: (abs((ax - mx) * (points[i][1] - ay) - (ax - points[i][0]) * (my - ay)), -i))
        out.append(points[best])
        a = best
    return out + [points[-1]]


SMALL = ["torch/torch214_cpu/lstm_full.json.gz", "torch/torch214_cpu/resnet_full.json.gz",
         "torch/torch26_cpu/lstm_full.json.gz", "torch/torch26_cpu/resnet_full.json.gz",
         "tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz",
         "tracelens/h100/Falconsai_nsfw_image_detection__1016002.json.gz",
         "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
         "tracelens/inference/sglang_decode/capture_traces/bs_32_rank0.json.gz"]


@functools.lru_cache(maxsize=None)
def naive_of(path):
    return Naive(path)


class RealTraces(Case):
    def each(self, check):
        for name in SMALL:
            path = data(*name.split("/"))
            naive = naive_of(path)
            for device in sorted({m[6] for m in naive.mem}):
                with self.subTest(trace=name, device=device):
                    check(naive, device, report("memory", path, "--device=" + ("cpu" if device < 0 else str(device))))

    def test_statistics(self):
        self.each(lambda naive, device, t: self.assertEqual(statistics(t), naive.statistics(device)))

    def test_blocks(self):
        def check(naive, device, t):
            rows = t.section("events").rows
            want = [[n, s, a if a is None else a - naive.start, r if r is None else r - naive.start]
                    for n, s, a, r in naive.blocks(device)]
            self.assertEqual([[r["operator"], r["size_bytes"], r["allocation_time_ns"], r["release_time_ns"]] for r in rows],
                             want)
        self.each(check)

    def test_blocks_of_the_plugin(self):
        """Times as differences of python's own numbers, times a factor."""
        def shown(v):
            return round(v, 2 if abs(v) >= 0.01 or v == 0 else abs(math.floor(math.log10(abs(v)))))

        for name in SMALL:
            path = data(*name.split("/"))
            events = oracle.events(oracle.load(path))
            start = min(e["ts"] for e in events if e.get("ph") == "X" and not isinstance(e.get("ts"), str))
            want, open_ = collections.defaultdict(list), {}
            for e in sorted((e for e in events if e.get("name") == "[memory]"), key=lambda e: e["ts"]):
                a, ms = e["args"], lambda us: shown(1 / 1e3 * us)
                device = "cpu" if a["Device Type"] == 0 else str(a["Device Id"])
                if a["Bytes"] > 0:
                    open_[a["Addr"]] = e["ts"], a["Bytes"], device
                elif a["Addr"] in open_:
                    since, _, device = open_.pop(a["Addr"])
                    want[device].append((shown(-a["Bytes"] / 1024), ms(since - start), ms(e["ts"] - start), ms(e["ts"] - since)))
                else:
                    want[device].append((shown(-a["Bytes"] / 1024), None, ms(e["ts"] - start), None))
            for since, size, device in open_.values():
                want[device].append((shown(size / 1024), shown(1 / 1e3 * (since - start)), None, None))
            for device, blocks in want.items():
                rows = report("memory", path, "--device=" + device, "--compat=tb-plugin").section("events").rows
                with self.subTest(trace=name, device=device):
                    self.assertEqual(collections.Counter(tuple(r.values())[1:] for r in rows), collections.Counter(blocks))

    def test_curve_and_peaks(self):
        def check(naive, device, t):
            mem = [m for m in naive.mem if m[6] == device]
            points = [(m[0] - naive.start, m[4], m[5]) for m in mem]
            rows = [(r["time_ns"], r["allocated_bytes"], r["reserved_bytes"]) for r in t.section("curve").rows]
            self.assertEqual(rows[0::2], points)
            self.assertEqual(rows[1::2], [(b[0], a[1], a[2]) for a, b in zip(points, points[1:])])
            peak = t.section("peaks").by("device")["CPU" if device < 0 else f"GPU{device}"]
            self.assertEqual(peak["peak_allocated_bytes"], max(m[4] for m in mem))
            self.assertEqual(peak["peak_reserved_bytes"], max(m[5] for m in mem))
            self.assertEqual(peak["events"], len(mem))
        self.each(check)

    def test_held_at_the_peak(self):
        """By op: the blocks that live then, from a naive pairing; by category: the same bytes; with what was held before they are the allocator's total."""
        def check(naive, device, t):
            name = "CPU" if device < 0 else f"GPU{device}"
            mem = [m for m in naive.mem if m[6] == device]
            top = max(m[4] for m in mem)
            peak = next(m[0] for m in mem if m[4] == top)
            want = collections.defaultdict(lambda: [0, 0])
            for op, size, allocated, released in naive.blocks(device):
                if (allocated is None or allocated <= peak) and (released is None or released > peak):
                    want[op if allocated is not None else None][0] += size
                    want[op if allocated is not None else None][1] += 1
            got = collections.defaultdict(lambda: [0, 0])
            rest = 0
            for r in t.section("held_by_op").rows:
                self.assertEqual(r["device"], name)
                op = {"(outside of any op)": "<unknown>", "(before the recording)": None}.get(r["operator"], r["operator"])
                if r["blocks"]:
                    got[op][0] += r["bytes"]
                    got[op][1] += r["blocks"]
                else:
                    rest += r["bytes"]
            self.assertEqual(dict(got), dict(want))
            self.assertEqual(sum(b for b, _ in want.values()) + rest, top)
            kinds = collections.Counter()
            for r in t.section("held_by_op").rows:
                kinds[r["category"]] += r["bytes"]
            self.assertEqual({r["category"]: r["bytes"] for r in t.section("held").rows}, dict(kinds))
        self.each(check)

    def test_weights_of_inference(self):
        """A model of 464 million bf16 weights, allocated before the recording and never freed in it; and the line that holds most of the rest."""
        path = data("tracelens", "h100", "Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz")
        t = report("memory", path)
        held = t.section("held").by("category")
        kept = next(r for c, r in held.items() if c.startswith("held before the recording (weights"))
        self.assertTrue(464e6 * 2 < kept["bytes"] < 464e6 * 2 * 1.1, kept)
        most = [r for r in t.section("held_by_op").rows if r["blocks"]][0]
        self.assertEqual((most["operator"], most["blocks"]), ("aten::addmm", 24))
        self.assertIn("modeling_qwen2.py(150)", most["line"])
        categories = report("memory-categories", path).by("category")
        self.assertEqual(categories[kept["category"]]["at_peak_bytes"], kept["bytes"])
        self.assertEqual({c: r["at_peak_bytes"] for c, r in categories.items() if r["at_peak_bytes"]}, {c: r["bytes"] for c, r in held.items()})

    def test_numbers_of_devices(self):
        """The allocator's device 0 is device 2 to the tracer: a note says so, and says nothing where the numbers agree."""
        def notes(*path):
            return [n for n in report("memory", data(*path)).section("held").notes if "numbers the devices" in n]
        self.assertEqual(len(notes("more", "tracelens", "normalization_mi300", "normalization_layer_test.json.gz")), 1)
        self.assertEqual(notes("tracelens", "h100", "Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"), [])

    def test_no_shapes(self):
        """Without recorded shapes no op is taken for one without tensor arguments by that: what addmm keeps is no input."""
        t = report("memory", data("hta", "df_index_resolver", "df_index_resolver.json.gz"))
        self.assertEqual({r["category"] for r in t.section("held_by_op").rows if r["operator"] == "aten::addmm"}, {"ACTIVATION"})

    def test_plugin_trace_of_2021_has_no_addresses(self):
        path = data("tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz")
        mem = [m for m in naive_of(path).mem if m[6] == 0]
        t = report("memory", path)
        self.assertEqual(t.section("events").rows, [])
        self.assertTrue(any("left out" in n for n in t.section("events").notes))
        curve, want, total = t.section("curve"), [], 0
        for m in mem:
            total += m[2]
            want.append((m[0] - naive_of(path).start, total))
        self.assertEqual(min(v for _, v in want), 0)
        got = [(r["time_ns"], r["allocated_at_least_bytes"]) for r in curve.rows[0::2]]
        self.assertGreater(len(got), 1000)
        self.assertEqual(set(got) - set(want), set())
        self.assertTrue(any(n.startswith("no totals were recorded") for n in curve.notes))
        self.assertTrue(t.notes[0].startswith(f"GPU0: {len(mem)} allocations and frees, net {sum(m[2] for m in mem)} bytes"))
        peak = t.section("peaks").by("device")["GPU0"]
        self.assertEqual((peak["peak_allocated_bytes"], peak["peak_at_least_bytes"]), (None, max(v for _, v in want)))
        self.assertTrue(any(n.startswith("GPU0: no totals were recorded") for n in t.section("peaks").notes))
        unknown, = t.section("held_by_op").rows  # and the table says why
        self.assertEqual(unknown["operator"], "(not known)")
        self.assertEqual(t.section("held_by_op").notes, [f"GPU0: of {unknown['bytes']} bytes the op is not known: the trace has no addresses, so that no block "
                                                         "can be followed (torch 1.10 and later record them)"])
        self.assertEqual(report("memory", path, "--compat=tb-plugin").section("curve").rows, [])

    def test_more_freed_than_allocated(self):
        """No totals: 100 bytes are freed that the trace has not allocated, so they were held before."""
        t = report("memory", synthetic("memory_no_totals"))
        self.assertEqual([r["allocated_at_least_bytes"] for r in t.section("curve").rows[0::2]], [100, 0, 50, 40, 80, 20])
        self.assertEqual(t.section("peaks").by("device")["GPU0"]["peak_at_least_bytes"], 100)

    def test_plugin_trace_statistics(self):
        path = data("tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz")
        naive = naive_of(path)
        self.assertEqual(
            {k: v[2:3] + v[4:5] + v[6:7] for k, v in statistics(report("memory", path)).items() if v[2] or v[4]},
            sweep_self(naive, 0))


def sweep_self(naive, device):
    """Self figures by a different way: cut each thread's time into pieces with one innermost op each."""
    out = collections.defaultdict(lambda: [0, 0, 0])
    for track, ops in naive.ops.items():
        edges = sorted({e for o in ops for e in o[:2]})
        owner = [None] * len(edges)
        for o in ops:  # outer before inner: inner overwrite
            if o[3]:
                for i in range(bisect.bisect_left(edges, o[0]), bisect.bisect_left(edges, o[1])):
                    owner[i] = o
        for t, tr, size, _, _, _, dev in naive.mem:
            if tr != track or dev != device:
                continue
            i = bisect.bisect_right(edges, t) - 1
            o = owner[i] if i >= 0 else None
            if o is not None and plain(o[2]):
                s = out[o[2]]
                s[0] += size
                s[1] += size > 0
                s[2] += max(size, 0)
    return {k: v for k, v in out.items() if v[0] or v[1]}


class KeyAverages(Case):
    # torch 2.6 leaves two memory events out of the ops that they lie in by its own times (160 ns and 70 ns before the end).
    TORCH26_RESNET = {"aten::empty": (0, -64, -64), "aten::native_batch_norm": (0, 0, 64), "aten::div_": (0, 8, 8),
                      "aten::mean": (0, 0, -8)}

    def test_key_averages(self):
        for version in ("torch26_cpu", "torch214_cpu"):
            for model in ("lstm", "resnet"):
                with self.subTest(version=version, model=model):
                    got = {r["operator"]: (r["calls"], r["size_increase_bytes"], r["self_size_increase_bytes"])
                           for r in report("memory", data("torch", version, model + "_full.json.gz")).rows}
                    with open(data("torch", version, model + "_full.key_averages.json")) as f:
                        rows = json.load(f)
                    annotations = {e["name"] for e in exact(data("torch", version, model + "_full.json.gz"))
                                   if e.get("cat") == "user_annotation"}
                    want = collections.defaultdict(lambda: (0, 0, 0))
                    for r in rows:
                        if r["key"] != "ProfilerStep*" and r["key"] not in annotations:
                            want[r["key"]] = tuple(a + b for a, b in zip(want[r["key"]], (
                                r["count"], r["cpu_memory_usage"], r["self_cpu_memory_usage"])))
                    differ = {k: tuple(a - b for a, b in zip(want[k], got.get(k, (want[k][0], 0, 0))))
                              for k in want if want[k][1:] != (0, 0) or k in got}
                    differ = {k: v for k, v in differ.items() if v != (0, 0, 0)}
                    expected = self.TORCH26_RESNET if (version, model) == ("torch26_cpu", "resnet") else {}
                    self.assertEqual(differ, expected)


if __name__ == "__main__":
    oracle.main()
