"""export memory-timeline: the total curve and its peak against torch's own export_memory_timeline of the same run, point by point, and
the category of each allocation against the one that torch gave it (read from the step of its curve). torch 2.14."""
import bisect
import collections
import gzip
import json
import os
import re
import tempfile
import unittest

import oracle

CATEGORIES = ["PARAMETER", "OPTIMIZER_STATE", "INPUT", "TEMPORARY", "ACTIVATION", "GRADIENT", "AUTOGRAD_DETAIL", "Unknown"]
PREEXISTING, CREATE, DESTROY = 1, 2, 4
MODELS = ("resnet", "lstm")


def export(path, *args, stdin=None):
    code, out, err = oracle.run("export", "memory-timeline", path, *args, stdin=stdin)
    if code:
        raise AssertionError(err.decode())
    return json.loads(out)


def theirs(model):
    with gzip.open(oracle.data("torch", "torch214_cpu", model + "_full.memory.json.gz")) as f:
        return json.load(f)


def torch_us(ns):
    return int(ns / 1000)


def at(times, t):
    """The last entry of a curve at or before t."""
    return bisect.bisect_right(times, t) - 1


class AgainstTorch(oracle.Case):
    def setUp(self):
        super().setUp()
        self.trace = {m: oracle.data("torch", "torch214_cpu", m + "_full.json.gz") for m in MODELS}

    # What torch adds because it saw live tensors that were neither allocated nor freed while it recorded: bytes of OPTIMIZER_STATE, INPUT,
    # GRADIENT and Unknown in its first row. The bytes of PARAMETER are found from the trace.
    ABSENT = {"resnet": {"OPTIMIZER_STATE": 312168, "INPUT": 297792, "GRADIENT": 31080, "Unknown": 72},
              "lstm": {"OPTIMIZER_STATE": 544588, "INPUT": 3072, "GRADIENT": 65536, "Unknown": 0}}

    def test_total_curve_and_peak(self):
        for m in MODELS:
            (t0, s0), (t1, s1) = theirs(m), export(self.trace[m])
            absent = sum(self.ABSENT[m].values())
            self.assertLessEqual(set(t1), set(t0))  # torch has more: where only a version changes
            self.assertEqual(t1[0], t0[0])
            self.assertEqual(sum(s1[0]) + absent, sum(s0[0]))
            wrong = [t for t, s in zip(t0[1:], s0[1:]) if sum(s) != sum(s1[at(t1, t)]) + absent]
            self.assertEqual(wrong, [], m)
            self.assertEqual(max(map(sum, s1)) + absent, max(map(sum, s0)))
            self.assertEqual(t1[max(range(len(s1)), key=lambda i: sum(s1[i]))], t0[max(range(len(s0)), key=lambda i: sum(s0[i]))])
            print(f"# {m}: {len(t0)} points of the total agree, {absent} bytes apart; peak {max(map(sum, s1))} bytes")

    def test_first_row(self):
        """Parameters are known from the sizes of their gradients, to the byte; the rest of the difference is ABSENT."""
        for m in MODELS:
            first, mine = theirs(m)[1][0], export(self.trace[m])[1][0]
            self.assertEqual((mine[0], first[0]), (0, 0))
            for k, name in enumerate(CATEGORIES, 1):
                self.assertEqual(first[k] - mine[k], self.ABSENT[m].get(name, 0), (m, name))

    def test_times(self):
        for m in MODELS:
            base = oracle.load(self.trace[m])["baseTimeNanoseconds"]
            raw = export(self.trace[m], "--form=raw")
            times = export(self.trace[m])[0]
            self.assertTrue(all(t > base for t, a, *_ in raw if a != PREEXISTING))
            seen = {torch_us(t) for t, a, *_ in raw if a != PREEXISTING}
            self.assertEqual(sorted(seen), times[1:])

    # ours -> torch's, number of allocations where they differ and of those why; docs/compat.md tells more.
    DIFFER = {
        "resnet": {
            ("Unknown", "INPUT"): 87,       # Python numbers in Optimizer.step: torch floods them as inputs of a gradient's update
            ("Unknown", "PARAMETER"): 58,   # grad + weight_decay * param in Optimizer.step: torch joins them to the parameter's id
            ("Unknown", "GRADIENT"): 8,     # workspaces at the address of an old gradient, which torch takes for it
            ("Unknown", "TEMPORARY"): 6,    # made by aten::div inside mean: no aten::empty says that it is a tensor
        },
        "lstm": {
            ("Unknown", "INPUT"): 99,
            ("Unknown", "PARAMETER"): 22,
            ("Unknown", "ACTIVATION"): 21,  # intermediate values of Adam's step
            ("Unknown", "GRADIENT"): 3,
            ("TEMPORARY", "GRADIENT"): 3,
            ("AUTOGRAD_DETAIL", "GRADIENT"): 3,
            ("TEMPORARY", "Unknown"): 11,   # made inside mkldnn_rnn_layer_backward; a tensor of the same size is used beside them
        },
    }

    def test_category_of_each_allocation(self):
        for m in MODELS:
            times, sizes = theirs(m)
            raw = export(self.trace[m], "--form=raw")
            in_us = collections.Counter(torch_us(t) for t, a, *_ in raw if a != PREEXISTING)
            pairs, several = collections.Counter(), 0
            for t, action, bytes_, category in raw:
                if action != CREATE:
                    continue
                us = torch_us(t)
                i = bisect.bisect_left(times, us, 1)
                self.assertEqual(times[i], us)
                step = [CATEGORIES[k] for k in range(8) if sizes[i][k + 1] - sizes[i - 1][k + 1] == bytes_]
                if in_us[us] > 1 or len(step) != 1:
                    several += 1
                    continue
                pairs[CATEGORIES[category], step[0]] += 1
            differ = {k: n for k, n in pairs.items() if k[0] != k[1]}
            agree = sum(n for k, n in pairs.items() if k[0] == k[1])
            for name in CATEGORIES:
                torch_n = sum(n for k, n in pairs.items() if k[1] == name)
                our_n = sum(n for k, n in pairs.items() if k[0] == name)
                if torch_n or our_n:
                    print(f"# {m} {name}: torch {torch_n}, ours {our_n}, both {pairs[name, name]}")
            print(f"# {m}: {agree} of {sum(pairs.values())} allocations agree, {several} stand in one microsecond with others")
            self.assertLessEqual(several, 1)
            self.assertEqual(differ, {k: n for k, n in self.DIFFER[m].items() if n}, m)

    def test_curve_of_each_category(self):
        """OPTIMIZER_STATE never differs, ACTIVATION of resnet neither; others do as their allocations do."""
        for m in MODELS:
            (t0, s0), (t1, s1) = theirs(m), export(self.trace[m])
            same = {}
            for k, name in enumerate(CATEGORIES, 1):
                absent = self.ABSENT[m].get(name, 0)
                d = [a[k] - s1[at(t1, t)][k] - absent for t, a in zip(t0[1:], s0[1:])]
                same[name] = sum(x == 0 for x in d) / len(d)
                print(f"# {m} {name}: {100 * same[name]:.1f} % of {len(d)} points are {absent} bytes apart, the others up to "
                      f"{max(map(abs, d))} more")
            self.assertEqual(same["OPTIMIZER_STATE"], 1)
            for name in ("GRADIENT", "AUTOGRAD_DETAIL"):
                self.assertGreater(same[name], 0.95, (m, name))
            if m == "resnet":
                self.assertEqual(same["ACTIVATION"], 1)

    def test_same_of_torch_26(self):
        """The same script on torch 2.6: the same parameters, and a curve that the records add up to."""
        for m in MODELS:
            path = oracle.data("torch", "torch26_cpu", m + "_full.json.gz")
            raw = export(path, "--form=raw")
            records = [e for e in oracle.events(oracle.load(path)) if e.get("name") == "[memory]"]
            self.assertEqual([b for _, a, b, _ in raw if a != PREEXISTING], [e["args"]["Bytes"] for e in records])
            self.assertEqual(sum(b for _, a, b, _ in raw if a == PREEXISTING), {"resnet": 312168, "lstm": 272272}[m])


class AgainstAllocator(oracle.Case):
    def test_gpu_totals(self):
        """On a GPU the allocator's own totals stand beside each record: the curve is the same, and so is its peak."""
        for f in oracle.data_glob("tracelens/h100/*.json.gz"):
            records = [e["args"] for e in oracle.events(oracle.load(f)) if e.get("name") == "[memory]" and e["args"]["Device Type"] == 1]
            total, got = 0, []
            for _, action, bytes_, _ in export(f, "--form=raw"):
                total += bytes_
                if action != PREEXISTING:
                    got.append(total)
            self.assertEqual(got, [a["Total Allocated"] for a in records])
            print(f"# {os.path.basename(f)}: {len(got)} totals, peak {max(got)}")


class Report(oracle.Case):
    """report memory-categories: the sums of the exported changes."""

    def check(self, path, *args):
        curve, moments = [0] * 8, {0: [0] * 8}
        raw = export(path, "--form=raw", *args)
        # Both count from their own zero; the first change is the same moment.
        first = next(t for t, *_ in raw if t >= 0)
        blocks = collections.Counter()
        for t, action, size, category in raw:
            curve[category] += size
            moments[max(t - first, 0) + 1 if t >= 0 else 0] = list(curve)
            blocks[CATEGORIES[category]] += action == CREATE
        table = oracle.report("memory-categories", path, "--limit=0", *args)
        rows = table.by("category")
        peak = max(moments.values(), key=sum)
        kept = [r for c, r in rows.items() if c.startswith("held before the recording")]  # torch's Unknown, told apart: never allocated, never freed
        self.assertLessEqual(len(kept), 1)
        for k, name in enumerate(CATEGORIES):
            apart = sum(r["at_peak_bytes"] for r in kept) if name == "Unknown" else 0
            own = max(m[k] for m in moments.values()) - apart
            if not own and not blocks[name]:
                self.assertNotIn(name, rows)
                continue
            r = rows[name]
            self.assertEqual((r["at_peak_bytes"], r["peak_bytes"], r["end_bytes"], r["blocks"]), (peak[k] - apart, own, curve[k] - apart, blocks[name]), name)
            self.assertAlmostEqual(r["at_peak_pct"], 100 * (peak[k] - apart) / sum(peak), 6)
        for r in kept:
            self.assertEqual((r["peak_bytes"], r["end_bytes"], r["blocks"]), (r["at_peak_bytes"], r["at_peak_bytes"], 0))
            self.assertLessEqual(r["at_peak_bytes"], min(m[CATEGORIES.index("Unknown")] for m in moments.values()))
        points = table.section("curve")
        zero = points.rows[1]["time_ns"]
        self.assertEqual(points.rows[0]["time_ns"], 0)
        for r in points.rows[1:]:
            self.assertEqual([r[c.lower() + "_bytes"] for c in CATEGORIES], moments[r["time_ns"] - zero + 1])
        unknown = table.section("unknown")
        self.assertEqual(sum(r["blocks"] for r in unknown.rows), blocks["Unknown"])
        self.assertIn(f"add up to {sum(peak)} bytes", table.notes[0])
        return len(points.rows), len(moments)

    def test_bundled(self):
        kept, moments = self.check(os.path.join(oracle.ROOT, "tests/data/torch214_cpu_resnet.json.gz"))
        self.assertEqual(kept, moments)

    def test_models(self):
        for m in MODELS:
            self.check(oracle.data("torch", "torch214_cpu", m + "_full.json.gz"))

    def test_gpu(self):
        path = oracle.data("tracelens", "h100", "gaunernst_bert-small-uncased__1016001.json.gz")
        self.check(path)
        self.check(path, "--device=cpu")

    def test_steps(self):
        """The steps side by side are the whole: the end of one is the beginning of the next."""
        path = os.path.join(oracle.ROOT, "tests/data/torch214_cpu_resnet.json.gz")
        steps = [oracle.report("memory-categories", path, f"--steps={k}", "--limit=0") for k in (2, 3, 4)]
        whole = oracle.report("memory-categories", path, "--steps=2..4", "--limit=0")
        for a, b in zip(steps, steps[1:]):
            first = b.section("curve").rows[0]
            for r in a.rows:
                self.assertEqual(r["end_bytes"], first[r["category"].lower() + "_bytes"], r["category"])
        for name, r in whole.by("category").items():
            parts = [s.by("category").get(name) for s in steps]
            self.assertEqual(sum(x["blocks"] for x in parts if x), r["blocks"], name)
            self.assertEqual(max(x["peak_bytes"] for x in parts if x), r["peak_bytes"], name)

    def test_none(self):
        code, out, err = oracle.run("report", "memory-categories", os.path.join(oracle.SYNTHETIC, "tensor_core.json"))
        self.assertEqual((code, out), (1, b""))
        self.assertIn(b"no memory events", err)


class Page(oracle.Case):
    def page(self, path, *args, stdin=None):
        code, out, err = oracle.run("export", "memory-timeline", path, "--form=html", *args, stdin=stdin)
        self.assertEqual(code, 0, err)
        return out.decode()

    def of(self, events, *args):
        return self.page("-", *args, stdin=json.dumps({"schemaVersion": 1, "traceEvents": events}).encode())

    def test_bands(self):
        """The uppermost edge of the plot reaches the top at the peak; categories that never occur have no band."""
        html = self.page(oracle.data("torch", "torch214_cpu", "resnet_full.json.gz"))
        bands = re.findall(r'<path class="band c(\d)" d="([^"]*)"', html)
        self.assertEqual([int(c) for c, _ in bands], [0, 3, 4, 5, 6, 7])
        highest = min(int(y) for _, d in bands for y in re.findall(r"V(\d+)", d))
        self.assertEqual(highest, 150)
        self.assertIn("Peak of the plot: 6.27 MiB", html)       # 6576152 bytes
        self.assertIn("does not say how much was held before", html)
        rows = re.findall(r"<tr><td><i class=c(\d)></i>(\w+)</td>.*<td class=n>(\d+)</td>", html)
        self.assertEqual([(name, int(n)) for _, name, n in rows],
                         [("Unknown", 594), ("AUTOGRAD_DETAIL", 84), ("GRADIENT", 87), ("ACTIVATION", 156), ("TEMPORARY", 105), ("PARAMETER", 0)])

    def test_gpu(self):
        html = self.page(oracle.data("tracelens", "h100", "Falconsai_nsfw_image_detection__1016002.json.gz"))
        for say in ("Memory of GPU 0", "Peak of the plot: 220.61 MiB", "by the allocator's own count: 220.61 MiB", "reserved: 234.00 MiB"):
            self.assertIn(say, html)

    def test_offline_without_script(self):
        html = self.of([mem(1, 1, 8)])
        self.assertIn("default-src 'none'", html)
        self.assertEqual(re.findall(r"<script|https?:|(?:src|href)=(?!\w*')|url\(", html.replace("default-src", "")), [])

    def test_small(self):
        self.assertIn("Peak of the plot: 8 B", self.of([mem(1, 1, 8)]))
        no_address = [{**e, "args": {k: v for k, v in e["args"].items() if k != "Addr"}} for e in (mem(1, 1, -8), mem(2, 1, 4))]
        self.assertIn("goes below zero", self.of(no_address))
        self.assertIn("the trace has no addresses", self.of(no_address))
        huge = self.of([mem(1, 1, 2**57), mem(10**9, 2, 2**50)])
        self.assertIn("Peak of the plot: 129.00 PiB", huge)


def op(name, ts, dur, tid=1, **args):
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}


def mark(name, ts, dur):
    return {"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur}


def tensors(*dims, dtype="float"):
    return {"Input Dims": [list(d) for d in dims], "Input type": [dtype] * len(dims)}


def mem(ts, addr, bytes_, total=None, cuda=True, tid=1):
    args = {"Addr": addr, "Bytes": bytes_, "Device Type": int(cuda), "Device Id": 0 if cuda else -1}
    if total is not None:
        args.update({"Total Allocated": total, "Total Reserved": total})
    return {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": tid, "ts": ts, "args": args}


def copy(ts, dur, external):
    return [{"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "pid": 1, "tid": 1, "ts": ts, "dur": dur,
             "args": {"correlation": external, "External id": external}},
            {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 7, "ts": ts, "dur": dur,
             "args": {"device": 0, "stream": 7, "correlation": external, "External id": external}}]


class Rules(oracle.Case):
    def timeline(self, events, *args):
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as f:
            f.write(json.dumps({"schemaVersion": 1, "traceEvents": events}))
        try:
            return export(f.name, "--form=raw", *args)
        finally:
            os.unlink(f.name)

    def category(self, events, bytes_, *args):
        """Category of the one block of this size that the recording allocates."""
        got = {CATEGORIES[c] for _, a, b, c in self.timeline(events, *args) if a == CREATE and b == bytes_}
        self.assertEqual(len(got), 1, got)
        return got.pop()

    BACKWARD = [op("aten::mul", 10, 10, **tensors([128])), op("autograd::engine::evaluate_function: MulBackward0", 100, 40, tid=2),
                op("MulBackward0", 105, 30, tid=2),
                op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 150, 20, tid=2),
                op("torch::autograd::AccumulateGrad", 152, 16, tid=2), op("aten::detach", 155, 5, tid=2, **tensors([128])),
                mark("Optimizer.step#SGD.step", 200, 50), op("aten::add_", 210, 10, **tensors([128], [128]))]

    def test_gradient(self):
        held = self.BACKWARD + [mem(110, 1, 512, tid=2)]
        self.assertEqual(self.category(held, 512), "GRADIENT")
        # A parameter is as large as its gradient, and was there before.
        self.assertEqual([x for x in self.timeline(held) if x[1] == PREEXISTING], [[-1, PREEXISTING, 512, 0]])
        self.assertEqual(self.category(self.BACKWARD + [mem(110, 1, 512, tid=2), mem(300, 1, -512)], 512), "GRADIENT")
        self.assertEqual(self.category(self.BACKWARD + [mem(110, 1, 1024, tid=2)], 1024), "Unknown")

    def test_gradient_of_rounded_size(self):
        events = [e if e["name"] != "aten::detach" else {**e, "args": tensors([100])} for e in self.BACKWARD]
        self.assertEqual(self.category(events + [mem(110, 1, 512, tid=2)], 512), "GRADIENT")

    def test_gradient_without_shapes(self):
        events = [e if e["name"] != "aten::detach" else {**e, "args": {}} for e in self.BACKWARD]
        self.assertEqual(self.category(events + [mem(110, 1, 1024, tid=2)], 1024), "GRADIENT")

    def test_autograd_detail(self):
        self.assertEqual(self.category(self.BACKWARD + [mem(110, 1, 512, tid=2), mem(145, 1, -512, tid=2)], 512), "AUTOGRAD_DETAIL")
        self.assertEqual(self.category(self.BACKWARD + [mem(110, 1, 512, tid=2), mem(165, 1, -512, tid=2)], 512), "AUTOGRAD_DETAIL")

    def test_two_passes(self):
        """What the first backward pass leaves is still held when the second begins, and is freed inside it."""
        again = [{**e, "ts": e["ts"] + 1000} for e in self.BACKWARD]
        self.assertEqual(self.category(self.BACKWARD + again + [mem(110, 1, 512, tid=2), mem(900, 1, -512)], 512), "GRADIENT")
        # Two passes make no more parameters than one.
        before = [b for _, a, b, _ in self.timeline(self.BACKWARD + again + [mem(110, 1, 512, tid=2), mem(900, 1, -512)]) if a == PREEXISTING]
        self.assertEqual(before, [512])

    def test_optimizer(self):
        self.assertEqual(self.category(self.BACKWARD + [mem(215, 1, 512)], 512), "OPTIMIZER_STATE")
        self.assertEqual(self.category(self.BACKWARD + [mem(215, 1, 512), mem(240, 1, -512)], 512), "Unknown")

    def test_activation_and_input(self):
        self.assertEqual(self.category(self.BACKWARD + [mem(15, 1, 512), mem(145, 1, -512, tid=2)], 512), "ACTIVATION")
        zeros = self.BACKWARD + [op("aten::zeros", 30, 10)]
        self.assertEqual(self.category(zeros + [mem(35, 1, 512), mem(130, 1, -512, tid=2)], 512), "INPUT")
        self.assertEqual(self.category(zeros + [mem(35, 1, 512), mem(90, 1, -512)], 512), "Unknown")
        loader = [mark("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 50), op("aten::stack", 5, 20, **tensors([4]))]
        self.assertEqual(self.category(loader + [mem(10, 1, 512, cuda=False), mem(70, 1, -512, cuda=False)], 512), "INPUT")
        self.assertEqual(self.category([op("aten::to", 5, 20, **tensors([4]))] + [mem(10, 1, 512), mem(70, 1, -512)], 512), "ACTIVATION")
        sent = [op("aten::to", 5, 20, **{"External id": 9, **tensors([4])})] + copy(12, 5, 9)
        self.assertEqual(self.category(sent + [mem(10, 1, 512), mem(70, 1, -512)], 512), "INPUT")
        self.assertEqual(self.category(sent + [mem(10, 1, 512)], 512), "Unknown")

    def test_temporary(self):
        inside = [op("aten::mean", 10, 50, **tensors([8])), op("aten::empty", 15, 5), op("aten::copy_", 25, 5, **tensors([128], [7]))]
        self.assertEqual(self.category(inside + [mem(17, 1, 512), mem(40, 1, -512)], 512), "TEMPORARY")
        self.assertEqual(self.category(inside + [mem(17, 1, 2048), mem(40, 1, -2048)], 2048), "Unknown")   # nothing takes it
        self.assertEqual(self.category(inside + [mem(12, 1, 512), mem(40, 1, -512)], 512), "Unknown")      # no tensor was asked for

    def test_parameter_made_in_the_recording(self):
        """A block of that size that is never freed may be the parameter: it is not counted twice."""
        events = [op("aten::empty", 1, 5)] + self.BACKWARD + [mem(3, 7, 512), mem(110, 1, 512, tid=2)]
        self.assertEqual([x for x in self.timeline(events) if x[1] == PREEXISTING], [])

    def test_parameters_are_on_the_device_of_the_gradients(self):
        events = self.BACKWARD + [mem(110, 1, 512, tid=2), mem(15, 2, 64, cuda=False)]
        self.assertEqual([x for x in self.timeline(events, "--device=cpu") if x[1] == PREEXISTING], [])
        self.assertEqual(len([x for x in self.timeline(events, "--device=cuda:0") if x[1] == PREEXISTING]), 1)

    def test_what_was_held_before(self):
        """An accelerator's totals say how much; the host's do not."""
        events = self.BACKWARD + [mem(110, 1, 512, total=10512, tid=2)]
        before = [x[2:] for x in self.timeline(events) if x[1] == PREEXISTING]
        self.assertEqual(before, [[512, 0], [9488, 7]])
        events = self.BACKWARD + [mem(110, 1, 512, total=612, tid=2)]  # too little for the parameter: something is not as supposed
        self.assertEqual([x[2:] for x in self.timeline(events) if x[1] == PREEXISTING], [[100, 7]])
        freed = [mem(5, 3, -256, total=1000), mem(7, 1, 512, total=1512)]
        self.assertEqual([x[2:] for x in self.timeline(freed) if x[1] == PREEXISTING], [[256, 7], [1000, 7]])
        self.assertEqual(self.timeline([mem(5, 3, 256, total=9999, cuda=False)]), [[5000, CREATE, 256, 7]])

    def test_json_form(self):
        """Changes of one microsecond are one entry; the first row is what was held before."""
        events = [mem(5, 3, -256, total=1000), mem(7.2, 1, 512, total=1512), mem(7.6, 1, -512, total=1000)]
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            f.write(json.dumps({"schemaVersion": 1, "traceEvents": events}))
            f.flush()
            self.assertEqual(export(f.name), [[5, 5, 7], [[0] * 8 + [1256], [0] * 8 + [1000], [0] * 8 + [1000]]])

    def test_errors(self):
        for events, args, say in (([op("aten::mm", 1, 2)], (), "profile(profile_memory=True)"),
                                  ([mem(1, 1, 8)], ("--device=cpu",), "no memory events of device 'cpu'"),
                                  ([mem(1, 1, 8)], ("--device=mine",), "expected cpu, the ordinal of a GPU")):
            text = json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()
            code, out, err = oracle.run("export", "memory-timeline", "-", *args, stdin=text)
            self.assertNotEqual(code, 0)
            self.assertEqual(out, b"")
            self.assertIn(say, err.decode())
            self.assertEqual(err.count(b"\n"), 1)

    def test_sums_beyond_64_bits(self):
        text = json.dumps({"schemaVersion": 1, "traceEvents": [mem(1, 1, 1, total=2**63 - 2), mem(2, 2, 2**50)]}).encode()
        code, out, err = oracle.run("export", "memory-timeline", "-", stdin=text)
        self.assertEqual((code, out), (1, b""))
        self.assertIn(b"64 bits", err)


class Held(oracle.Case):
    """What the program said of its memory (opscope.profile): `moments`, the first of which is before the recording, and blocks as the file has them."""
    KINDS = ["TENSOR", "BUFFER", "INPUT", "OPTIMIZER_STATE", "GRADIENT", "PARAMETER"]
    BASE = 10**18

    def fact(self, blocks, freed=(), moments=(0, 1000), cuda=False, **more):
        device = [1, 0] if cuda else [0, -1]
        return {"version": 1, "moments": [self.BASE + 1000 * m for m in moments], "kinds": self.KINDS,
                "blocks": [[m, *device, self.KINDS.index(kind), *place] for m, kind, *place in blocks],
                "freed": [[self.BASE + 1000 * us, *device, addr] for us, addr in freed], "left_out": 0, **more}

    def ask(self, command, events, fact, *args):
        text = json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": self.BASE, "traceEvents": events, "opscope_held_memory": fact}).encode()
        code, out, err = oracle.run(*command, "-", *args, stdin=text)
        self.assertEqual(code, 0, err)
        return out

    def timeline(self, events, fact, *args):
        """Changes with times in us of the trace, and names of categories."""
        raw = json.loads(self.ask(("export", "memory-timeline"), events, fact, "--form=raw", *args))
        return [((t - self.BASE) / 1000 if t >= 0 else -1, a, b, CATEGORIES[c]) for t, a, b, c in raw]

    def notes(self, events, fact):
        return json.loads(self.ask(("report", "memory-categories"), events, fact, "--format=json"))["notes"]

    def test_before(self):
        """Categories of what was held; one that is freed, one whose place is used again, one whose free was recorded, and one that two tensors share."""
        fact = self.fact([(0, "PARAMETER", 10, 400), (0, "OPTIMIZER_STATE", 20, 800), (0, "GRADIENT", 30, 404), (0, "BUFFER", 40, 8), (0, "TENSOR", 50, 12),
                          (0, "INPUT", 60, 16), (0, "TENSOR", 70, 20), (0, "TENSOR", 80, 24), (0, "BUFFER", 80, 24), (0, "PARAMETER", 90, 28)],
                         freed=[(15, 30)])
        events = [mem(5, 1, 64, cuda=False), mem(20, 60, 32, cuda=False), mem(25, 70, -20, cuda=False)]
        got = self.timeline(events, fact)
        self.assertEqual(sorted(got[:9]), sorted([(-1, 1, 400, "PARAMETER"), (-1, 1, 28, "PARAMETER"), (-1, 1, 800, "OPTIMIZER_STATE"), (-1, 1, 404, "GRADIENT"),
                                                  (-1, 1, 8, "Unknown"), (-1, 1, 12, "Unknown"), (-1, 1, 16, "INPUT"), (-1, 1, 20, "Unknown"), (-1, 1, 24, "Unknown")]))
        self.assertEqual(got[9:], [(5, 2, 64, "Unknown"), (15, 4, -404, "GRADIENT"), (20, 4, -16, "INPUT"), (20, 2, 32, "Unknown"), (25, 4, -20, "Unknown")])
        notes = self.notes(events, fact)
        self.assertTrue(any("32 bytes that were held before have no category: a buffer of a module" in n for n in notes), notes)
        self.assertTrue(any("32 bytes that were held before have no category: a tensor of the program" in n for n in notes), notes)

    def test_later(self):
        """A block of the recording is what was said of it while it was there, not what is said of another at its address."""
        events = [mem(5, 1, 64, cuda=False), mem(15, 1, -64, cuda=False), mem(20, 1, 64, cuda=False), mem(40, 2, 100, cuda=False)]
        fact = self.fact([(1, "GRADIENT", 1, 64), (2, "OPTIMIZER_STATE", 1, 64), (2, "TENSOR", 1, 64), (2, "PARAMETER", 2, 90), (0, "PARAMETER", 2, 100)], moments=(0, 10, 30))
        self.assertEqual(self.timeline(events, fact), [(-1, 1, 100, "PARAMETER"), (5, 2, 64, "GRADIENT"), (15, 4, -64, "GRADIENT"), (20, 2, 64, "OPTIMIZER_STATE"),
                                                      (40, 4, -100, "PARAMETER"), (40, 2, 100, "Unknown")])

    def test_rules_go_on(self):
        """What is not said has the category of its place; parameters are not guessed, since those that there are would have been said."""
        events = Rules.BACKWARD + [mem(110, 1, 512, tid=2)]
        self.assertEqual(self.timeline(events, self.fact([], cuda=True)), [(110, 2, 512, "GRADIENT")])
        self.assertEqual(self.timeline(events, self.fact([(0, "PARAMETER", 7, 512)], cuda=True)), [(-1, 1, 512, "PARAMETER"), (110, 2, 512, "GRADIENT")])

    def test_accelerator(self):
        """Its allocator gives multiples of 512 bytes, and counts all: a rest is Unknown; where less was held than is said, nothing of it is believed."""
        events = [mem(5, 9, 1024, total=11024)]
        fact = self.fact([(0, "PARAMETER", 1, 1000), (0, "OPTIMIZER_STATE", 2, 2048)], cuda=True)
        self.assertEqual(self.timeline(events, fact)[:3], [(-1, 1, 1024, "PARAMETER"), (-1, 1, 2048, "OPTIMIZER_STATE"), (-1, 1, 10000 - 3072, "Unknown")])
        self.assertEqual(self.timeline([mem(5, 9, 1024, total=2048)], fact)[0], (-1, 1, 1024, "Unknown"))
        self.assertEqual(self.timeline(events, self.fact([(0, "PARAMETER", 1, 1000)]))[0], (-1, 1, 10000, "Unknown"))  # of the CPU
        self.assertEqual(self.timeline([mem(5, 1, -1024, total=0)], fact)[0], (-1, 1, 1024, "PARAMETER"))

    def test_damaged(self):
        events, good = [mem(5, 1, 64, cuda=False)], self.fact([(0, "PARAMETER", 7, 512)])
        self.assertFalse([n for n in self.notes(events, good) if "damaged" in n])
        self.assertEqual(len(self.timeline(events, good)), 2)
        odd = [{**good, "kinds": ["A_LATER_ONE"] * 6}, {**good, "more": [1]}]
        for fact in odd:
            self.assertFalse([n for n in self.notes(events, fact) if "damaged" in n], fact)
        for key, values in {"version": [2, "1", None], "moments": [[], ["x"], [2**70], {}, 1], "kinds": [[1], ["X"] * 17, 3], "left_out": [None, "1", 2**70],
                            "blocks": [[[0, 0, -1, 5, 7]], [[0, 0, -1, 5, 7, 512, 1]], [[2, 0, -1, 5, 7, 512]], [[-1, 0, -1, 5, 7, 512]], [[0, 0, -1, 6, 7, 512]],
                                       [[0, 0, -1, 5, 7, 0]], [[0, 0, -1, 5, 7, -512]], [[0, 0, -1, 5, "7", 512]], [7], {}, "x"],
                            "freed": [[[1, 0, -1]], [[1, 0, -1, 2, 3]], [3], [[2**70, 0, -1, 2]], 0]}.items():
            for value in values:
                fact = {**good, key: value}
                self.assertEqual(self.timeline(events, fact), [(5, 2, 64, "Unknown")], fact)
                self.assertTrue([n for n in self.notes(events, fact) if "is damaged" in n], fact)
        for fact in ([], 3, "x", None, {}):
            self.assertEqual(self.timeline(events, fact), [(5, 2, 64, "Unknown")], fact)

    def test_many_at_one_address(self):
        fact = self.fact([(0, "PARAMETER", 7, 512)] * 40000, freed=[(3, 7)] * 20000)
        self.assertEqual(self.timeline([mem(5, 1, 64, cuda=False)], fact), [(-1, 1, 512, "PARAMETER"), (3, 4, -512, "PARAMETER"), (5, 2, 64, "Unknown")])

    def test_too_many(self):
        self.assertTrue(any("nothing is said of 17 blocks" in n for n in self.notes([mem(5, 1, 64, cuda=False)], self.fact([], left_out=17))))

    def test_sums_beyond_64_bits(self):
        fact = self.fact([(0, "PARAMETER", a, 2**62) for a in range(5)])
        self.assertEqual(self.timeline([mem(5, 100, 64, cuda=False)], fact), [(5, 2, 64, "Unknown")])

    def test_kept(self):
        """An imported file has the fact, too; so has an exported trace."""
        events, fact = [mem(5, 1, 64, cuda=False)], self.fact([(0, "PARAMETER", 7, 512)])
        with tempfile.TemporaryDirectory() as folder:
            source, kept, chrome = (os.path.join(folder, n) for n in ("a.json", "a.opscope", "b.json"))
            with open(source, "w") as f:
                f.write(json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": self.BASE, "traceEvents": events, "opscope_held_memory": fact}))
            self.assertEqual(oracle.run("import", source, "-o", kept)[0], 0)
            self.assertEqual(oracle.run("export", "chrome", source, "-o", chrome)[0], 0)
            want = export(source, "--form=raw")
            self.assertEqual(len(want), 2)
            self.assertEqual([export(kept, "--form=raw"), export(chrome, "--form=raw")], [want, want])


def lies(start, dur, takes=(), makes=(), name="aten::mul", device="cpu", tid=1):
    """An op with the storages that an execution trace states: (number, bytes)."""
    stated = {key: [[n, size, device] for n, size in what] for key, what in (("Input Storages", takes), ("Output Storages", makes)) if what}
    return op(name, start, dur, tid=tid, **stated)


class Storages(oracle.Case):
    """What was held before, by the numbers of storages that an execution trace adds to ops."""
    LAST = [mem(990, 99, 4, cuda=False)]  # that there is memory at all

    def before(self, events, *args, last=LAST):
        text = json.dumps({"schemaVersion": 1, "traceEvents": events + last}).encode()
        return sorted((b, CATEGORIES[c]) for _, a, b, c in export("-", "--form=raw", *args, stdin=text) if a == PREEXISTING)

    BACKWARD = [op("autograd::engine::evaluate_function: MulBackward0", 100, 40, tid=2), op("MulBackward0", 105, 30, tid=2)]
    STEP = [mark("Optimizer.step#SGD.step", 200, 50)]

    def test_categories(self):
        events = self.BACKWARD + self.STEP + [
            lies(10, 5, [(1, 64), (2, 100)], [(3, 60)]), lies(20, 5, [(3, 60)], [(4, 60)]), lies(110, 5, [(1, 64), (3, 60), (5, 72)], [(6, 64)], tid=2),
            op("torch::autograd::AccumulateGrad", 160, 20, tid=2), lies(165, 5, [(7, 80), (6, 64)], [(7, 80)], tid=2),
            lies(210, 5, [(1, 64), (6, 64), (8, 88)], [(1, 64)])]
        self.assertEqual(self.before(events), [(64, "PARAMETER"), (72, "Unknown"), (80, "GRADIENT"), (88, "OPTIMIZER_STATE"), (100, "Unknown")])

    def test_a_step_before_any_backward_pass(self):
        """Gradients of before cannot be told from parameters and state."""
        events = [mark("Optimizer.step#SGD.step", 5, 50), lies(10, 5, [(1, 64), (2, 100)])] + self.BACKWARD + self.STEP + [lies(210, 5, [(1, 64), (2, 100), (3, 8)])]
        self.assertEqual(self.before(events), [(8, "OPTIMIZER_STATE"), (64, "Unknown"), (100, "Unknown")])
        zeroed = [mark("Optimizer.zero_grad#SGD.zero_grad", 60, 20), lies(65, 5, [(2, 100)])]
        self.assertEqual(self.before(events + zeroed), [(8, "OPTIMIZER_STATE"), (64, "Unknown"), (100, "GRADIENT")])

    def test_made_in_the_recording(self):
        """By an op before, by the op around, whose result an op inside already takes; and a number that is given anew."""
        self.assertEqual(self.before([lies(10, 5, (), [(1, 64)]), lies(20, 5, [(1, 64)])]), [])
        self.assertEqual(self.before([lies(10, 20, (), [(1, 64)]), lies(15, 5, [(1, 64)], [(1, 64)])]), [])
        self.assertEqual(self.before([lies(10, 5, [(1, 64)]), lies(20, 5, (), [(1, 72)]), lies(30, 5, [(1, 72)])]), [(64, "Unknown")])

    def test_size(self):
        """That of the first tensor: others are parts, or repeat it."""
        self.assertEqual(self.before([lies(10, 5, [(1, 64)]), lies(20, 5, [(1, 16), (1, 6400)])]), [(64, "Unknown")])

    def test_blocks_of_that_size(self):
        """A block that nobody is known to have made may be what an op takes; of two storages one then was there before, and which is unknown."""
        block = [mem(5, 7, 64, cuda=False)]
        self.assertEqual(self.before(block + [lies(10, 5, [(1, 64)])]), [])
        self.assertEqual(self.before(block + self.BACKWARD + self.STEP + [lies(10, 5, [(1, 64), (2, 64)]), lies(210, 5, [(1, 64), (2, 64)])]), [(64, "Unknown")])
        self.assertEqual(self.before(block + [lies(2, 6, (), [(3, 64)]), lies(10, 5, [(1, 64)])]), [(64, "Unknown")])  # it is that of 3
        self.assertEqual(self.before(block + [lies(2, 40, (), [(3, 64)]), lies(10, 5, [(1, 64)])]), [])                # which may come later
        self.assertEqual(self.before(block + [lies(2, 40, (), [(3, 64)]), lies(3, 4, (), [(3, 64)]), lies(10, 5, [(1, 64)])]), [(64, "Unknown")])
        self.assertEqual(self.before([mem(15, 7, 64, cuda=False), lies(10, 5, [(1, 64)])]), [(64, "Unknown")])       # it comes later

    def test_accelerator(self):
        """Sizes are rounded, what is freed counts once, and no more is told than the allocator held."""
        gpu = {"device": "cuda:0"}
        events = self.BACKWARD + self.STEP + [lies(10, 5, [(1, 500), (2, 1000)], **gpu), lies(210, 5, [(1, 500), (3, 700)], **gpu), lies(12, 2, [(4, 64)]),
                                              lies(14, 2, [(5, 64)], device="cuda:1"), lies(16, 2, [(6, 64)], device="meta")]
        self.assertEqual(self.before(events, last=[mem(990, 99, 512, total=10512)]),
                         [(512, "PARAMETER"), (1024, "OPTIMIZER_STATE"), (1024, "Unknown"), (7440, "Unknown")])
        self.assertEqual(self.before(events, last=[mem(980, 99, -1024, total=8976)]), [(512, "PARAMETER"), (1024, "OPTIMIZER_STATE"), (1024, "Unknown"), (7440, "Unknown")])
        self.assertEqual(self.before(events, last=[mem(990, 99, 512, total=1512)]), [(1000, "Unknown")])
        self.assertEqual(self.before(events, "--device=cpu", last=[mem(990, 99, 512, total=10512)] + self.LAST), [(64, "Unknown")])

    def test_damaged(self):
        for odd in ("x", 3, [], [3], [[]], [[1, 64]], [[1, 64, "cpu", 2]], [[1, "64", "cpu"]], [["1", 64, "cpu"]], [[1, -64, "cpu"]], [[1, 0, "cpu"]], [[1, 64, 5]],
                    [[1, 2**70, "cpu"]], [[1, 64, "cuda:x"]], [[[1, 64, "cpu"]]]):
            events = [op("aten::mul", 10, 5, **{"Input Storages": odd, "Output Storages": odd}), lies(20, 5, [(9, 24)])]
            self.assertEqual(self.before(events), [(24, "Unknown")], odd)

    def test_sums_beyond_64_bits(self):
        self.assertEqual(self.before([lies(10, 5, [(1, 2**62), (2, 2**62), (3, 2**62)])]), [])

    def test_many(self):
        """In proportion to the tensors: lists of thousands, and one storage in thousands of ops, one in the other."""
        events = [lies(10 + i * 0.001, 100 - i * 0.002, [(1, 64)], name="aten::add") for i in range(20000)]
        events += [lies(500, 5, [(k, 8 * k) for k in range(2, 30000)], [(k, 8 * k) for k in range(15000, 45000)])]
        self.assertEqual(len(self.before(events)), 29999)


if __name__ == "__main__":
    oracle.main()
