"""report module-flops: with --compat=torch against torch.utils.flop_counter's formulas and table, computed here from the trace's shapes;
by default against a count of the innermost ops; the constants of that counter's own test in small made traces."""
import collections
import functools
import json
import math
import os
import tempfile

import oracle
from oracle import Case, data_glob, report
from test_modules import Naive

SUFFIXES = ["", "K", "M", "B", "T"]


def conv_flops(x, w, out, transposed=False):
    return 2 * math.prod((x if transposed else out)[2:]) * math.prod(w[2:]) * x[0] * w[0] * w[1]


def swap(shape):
    return [shape[1], shape[0], *shape[2:]]


def torch_flops(name, dims, values):
    """By torch's formulas; None = it does not count this op."""
    if name in ("aten::mm", "aten::addmm"):
        a, b = dims[:2] if name == "aten::mm" else dims[1:3]
        return 2 * a[0] * a[1] * b[1]
    if name in ("aten::bmm", "aten::baddbmm"):
        a, b = dims[:2] if name == "aten::bmm" else dims[1:3]
        return 2 * a[0] * a[1] * a[2] * b[2]
    if name == "aten::convolution":
        x, w = dims[:2]
        stride, pad, dilation = (json.loads(v) for v in values[3:6])
        if values[6] == "True":
            return conv_flops(x, w, None, True)
        out = [x[0], w[0]] + [(x[i + 2] + 2 * pad[i] - dilation[i] * (w[i + 2] - 1) - 1) // stride[i] + 1 for i in range(len(w) - 2)]
        return conv_flops(x, w, out)
    if name == "aten::convolution_backward":
        grad, x, w = dims[:3]
        transposed, mask = values[7] == "True", [v == "True" for v in values[10].strip("[]").split(", ")]
        flops = conv_flops(grad, w, x, not transposed) if mask[0] else 0
        if mask[1]:
            flops += conv_flops(swap(grad), swap(x), swap(w)) if transposed else conv_flops(swap(x), swap(grad), swap(w))
        return flops
    if name in ("aten::_scaled_dot_product_flash_attention", "aten::_scaled_dot_product_efficient_attention"):
        (b, h, q, d), (_, _, k, _), (_, _, _, v) = dims[:3]
        return 2 * b * h * q * k * (d + v)
    if name == "aten::_scaled_dot_product_flash_attention_backward":
        (b, h, q, d), (_, _, k, _), (_, _, _, v) = dims[1:4]
        return 2 * b * h * q * k * (3 * d + 2 * v)
    return None


def torch_table(counts, total, depth):
    """FlopCounterMode.get_table: `counts`: dotted name -> {op: FLOPs} in order of first calls, "Global" included."""
    suffix = max(0, min(len(SUFFIXES) - 1, (len(str(total)) - 2) // 3))
    rows, subsumed = [], False

    def put(into, name, pad):
        for label, flops in [(name, sum(counts[name].values()))] + [(" - " + op, v) for op, v in counts[name].items()]:
            into.append([" " * pad + label, f"{flops / 1000 ** suffix:.3f}{SUFFIXES[suffix]}", f"{flops / total:.2%}" if total else "0%"])

    for name in sorted(counts):
        if name != "Global" and name.count(".") < depth:
            put(rows, name, name.count("."))
            subsumed |= sum(counts[name].values()) >= total
    if counts["Global"] and not subsumed:
        head = []
        put(head, "Global", 0)
        rows = head + [[" " + r[0], *r[1:]] for r in rows]
    return rows or [["Global", "0", "0%"]]


naive = functools.lru_cache(maxsize=None)(Naive)


def counted(trace):
    """(start, path, torch's name, FLOPs) of every outermost op that torch counts, in order of time."""
    n = naive(trace)
    ops = [s for s in n.spans if s.cat == "cpu_op"]
    forward = {}
    for s in ops:
        if s.args.get("Sequence number", -1) >= 0 and s.args.get("Fwd thread id", 0) == 0:
            forward[s.args["Sequence number"]] = s # the last one that began: the innermost
    out = []
    for s in ops:
        flops = torch_flops(s.name, s.args.get("Input Dims"), s.args.get("Concrete Inputs"))
        around = [a for a in n.around(s.parent) if a.cat == "cpu_op"]
        if flops is None or any(torch_flops(a.name, a.args.get("Input Dims"), a.args.get("Concrete Inputs")) is not None for a in around):
            continue
        node = next((a for a in [s, *around] if a.args.get("Fwd thread id", 0) > 0), None)
        path = forward[node.args["Sequence number"]].path if node else s.path
        out.append((s.start, path, "aten." + s.name[len("aten::"):], flops))
    return sorted(out)


def as_counter(ops):
    counts = collections.defaultdict(dict)
    for _, path, op, flops in ops:
        for name in ["Global"] + [".".join(path[:i]) for i in range(1, len(path) + 1)]:
            counts[name][op] = counts[name].get(op, 0) + flops
    return counts


class Real(Case):
    def traces(self):
        found = data_glob("torch/torch2*_cpu/*_full.json.gz") + data_glob("tracelens/h100/*.json.gz")
        if not found:
            self.skipTest("no torch (real traces are not part of the repository)")
        return [t for t in found if naive(t).modules()]

    def check_parts(self, table):
        note = [int(w) for w in table.notes[0].replace(";", " ").split() if w.isdigit()]
        self.assertEqual(note[0], sum(note[1:4]))
        self.assertEqual(note[0], sum(r["flops"] for r in table.rows if r["depth"] == 0))
        modules = [r for r in table.rows if r["forward_flops"] is not None]
        self.assertEqual(note[1], sum(r["self_flops"] for r in modules))
        for r in modules:
            self.assertEqual(r["flops"], r["forward_flops"] + r["backward_flops"])
        return note[0]

    def test_as_torch_counts(self):
        seen = 0
        for trace in self.traces():
            ops = counted(trace)
            if any(f is None for *_, f in ops):
                continue
            counts, total = as_counter(ops), sum(f for *_, f in ops)
            for depth, group in ((2, None), (1, "depth:1"), (4, "depth:4"), (10 ** 6, "tree")):
                got = report("module-flops", trace, "--compat=torch", *([f"--group-by={group}"] if group else []))
                want = torch_table(counts, total, depth)
                self.assertEqual(got.doc["rows"], want, f"{trace} {group}")
                seen += len(want)
        self.assertGreater(seen, 300)

    def test_default_parts(self):
        for trace in self.traces():
            self.assertGreater(self.check_parts(report("module-flops", trace)), 0, trace)

    def test_default_products(self):
        """Of a model of products and convolutions alone, both count the same in the modules that hold them."""
        for trace in data_glob("torch/torch214_cpu/resnet_full.json.gz"):
            want = collections.Counter()
            for _, path, _, flops in counted(trace):
                want[path] += flops
            rows, stack, compared = report("module-flops", trace), [], 0
            for r in rows.rows:
                stack[r["depth"]:] = [r["module"]]
                if r["module"].startswith("Conv2d"):
                    # where the input's gradient is the sum of several, they are added up in the backward node
                    extra = r["flops"] - want[tuple(stack)]
                    self.assertTrue(0 <= extra < want[tuple(stack)] / 400, (stack, r["flops"], want[tuple(stack)]))
                    compared += 1
            self.assertEqual(compared, 9)

    def test_depth(self):
        for trace in self.traces()[:1]:
            whole = report("module-flops", trace).rows
            for n in (1, 2, 6):
                self.assertEqual(report("module-flops", trace, f"--group-by=depth:{n}").rows, [r for r in whole if r["depth"] < n])


class Made(Case):
    """A module Net_0 with Inner_0 in it; ops in one of them or outside."""

    def made(self, *ops):
        """op: (name, dims, values or None, "net" | "inner" | "outside")"""
        events, at = [], 0

        def event(name, cat, start, dur, **args):
            events.append({"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": start, "dur": dur, "args": args})

        for group in ("net", "inner", "outside"):
            start = at
            for name, dims, values, where in ops:
                if where == group:
                    event(name, "cpu_op", at + 1, 5, **({"Input Dims": dims} if dims is not None else {}),
                          **({"Concrete Inputs": values} if values else {}), **({"Input type": ["float"] * len(dims)} if dims else {}))
                    at += 10
            if group == "inner":
                event("nn.Module: Inner_0", "python_function", start, at - start + 1, **{"Python id": 2, "Python parent id": 1})
                at += 2
                event("nn.Module: Net_0", "python_function", 0, at, **{"Python id": 1})
                at += 1
        path = os.path.join(self.folder.name, "made.json")
        with open(path, "w") as f:
            f.write(json.dumps({"schemaVersion": 1, "traceEvents": events}))
        return path

    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def check(self, op, flops, text):
        """FLOPs of the one op, by default and as torch counts it."""
        trace = self.made((*op, "inner"))
        rows = {r["module"]: r["flops"] for r in report("module-flops", trace).rows}
        self.assertEqual((rows["Net_0"], rows["Inner_0"]), (flops, flops), op)
        with self.subTest(op=op):
            self.assertEqual(report("module-flops", trace, "--compat=torch").rows[0]["flop"], text)

    def test_constants_of_the_counters_own_test(self):
        """torch/test/test_flop_counter.py's figures."""
        conv = ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]
        q, k = [4, 8, 128, 64], [4, 8, 256, 64]
        for name, dims, values, flops, text in (
                ("aten::mm", [[4, 5], [5, 6]], None, 240, "240.000"),
                ("aten::bmm", [[3, 4, 5], [3, 5, 6]], None, 720, "720.000"),
                ("aten::addmm", [[4, 6], [4, 5], [5, 6], [], []], None, 240, "240.000"),
                ("aten::baddbmm", [[3, 4, 6], [3, 4, 5], [3, 5, 6], [], []], None, 720, "720.000"),
                ("aten::convolution", [[2, 3, 6, 6], [6, 3, 4, 4], [6], [], [], [], [], [], []], conv, 28800, "28.800K"),
                ("aten::convolution", [[2, 3, 6], [6, 3, 4], [6], [], [], [], [], [], []], [v.replace("1, 1", "1").replace("0, 0", "0") for v in conv],
                 1440, "1440.000"),
                ("aten::_scaled_dot_product_flash_attention", [q, q, q], None, 134217728, "134.218M"),
                ("aten::_scaled_dot_product_efficient_attention", [q, k, k], None, 268435456, "268.435M"),
                ("aten::_scaled_dot_product_flash_attention_backward", [q, q, k, k], None, 939524096 - 268435456, "671.089M")):
            self.check((name, dims, values), flops, text)

    def test_backward_of_convolution(self):
        """Each gradient that is asked for is a convolution of the same size; torch counts that of grouped weights once a group."""
        dims = [[2, 8, 6, 6], [2, 4, 8, 8], [8, 4, 3, 3], [], [], [], [], [], [], [], []]
        one = 2 * 2 * 8 * 4 * 9 * 36

        def values(mask, groups):
            return ["", "", "", "[0]", "[1, 1]", "[0, 0]", "[1, 1]", "False", "[0, 0]", str(groups), mask]

        def text(flops):
            return torch_table({"Global": {"x": flops}}, flops, 1)[0][1]

        for mask, times in (("[True, True, False]", 2), ("[False, True, True]", 1), ("[True, False, False]", 1)):
            self.check(("aten::convolution_backward", dims, values(mask, 1)), times * one, text(times * one))
        grouped = [dims[0], dims[1], [8, 2, 3, 3], *dims[3:]]
        for mask, times, theirs in (("[True, True, False]", 2, 3), ("[False, True, False]", 1, 2), ("[True, False, False]", 1, 1)):
            self.check(("aten::convolution_backward", grouped, values(mask, 2)), times * one // 2, text(theirs * one // 2))

    def test_global(self):
        """FLOPs outside any module: torch's row "Global" stands first and moves the others in."""
        trace = self.made(("aten::mm", [[4, 5], [5, 6]], None, "inner"), ("aten::bmm", [[3, 4, 5], [3, 5, 6]], None, "outside"))
        self.assertEqual([(r["module"], r["flops"]) for r in report("module-flops", trace).rows],
                         [("Net_0", 240), ("Inner_0", 240), ("(outside modules)", 720)])
        self.assertEqual(report("module-flops", trace, "--compat=torch").doc["rows"],
                         [["Global", "960.000", "100.00%"], [" - aten.mm", "240.000", "25.00%"], [" - aten.bmm", "720.000", "75.00%"],
                          [" Net_0", "240.000", "25.00%"], ["  - aten.mm", "240.000", "25.00%"],
                          ["  Net_0.Inner_0", "240.000", "25.00%"], ["   - aten.mm", "240.000", "25.00%"]])

    def test_nothing_counted(self):
        trace = self.made(("aten::relu", [[4, 5]], None, "net"))
        self.assertEqual(report("module-flops", trace).rows[0]["flops"], 20)
        self.assertEqual(report("module-flops", trace, "--compat=torch").doc["rows"], [["Global", "0", "0%"]])

    def test_unknown(self):
        """An op without a model and a product without shapes: counted as unknown, their share is said."""
        trace = self.made(("my::op", [[4, 5]], None, "inner"), ("aten::mm", None, None, "net"), ("aten::mm", [[4, 5], [5, 6]], None, "net"))
        t = report("module-flops", trace)
        self.assertEqual([(r["module"], r["flops"], r["unknown_ops"]) for r in t.rows], [("Net_0", 240, 2), ("Inner_0", 0, 1)])
        self.assertEqual(t.notes[1], "unknown: the FLOPs of 2 calls of ops, with 66.67 % of the host time of ops (10000 of 15000 ns); they count 0 here")
        t = report("module-flops", trace, "--compat=torch")
        self.assertEqual(t.rows[0], {"module": "Net_0", "flop": "240.000", "pct_total": "100.00%"})
        self.assertEqual(t.notes, ["1 calls of ops that torch counts have no FLOPs here: their shapes were not recorded"])

    def test_too_many(self):
        """Shapes that cannot be: no number rather than a wrong one."""
        big = [[2 ** 20, 2 ** 20], [2 ** 20, 2 ** 20]]
        code, out, err = oracle.run("report", "module-flops", self.made(*[("aten::mm", big, None, "inner")] * 5))
        self.assertEqual((code, out), (1, b""))
        self.assertIn(b"more than 2^63", err)

    def test_no_modules(self):
        code, out, err = oracle.run("report", "module-flops", oracle.synthetic("pure_cpu"))
        self.assertEqual((code, out), (1, b""))
        self.assertIn(b"with_stack=True", err)


if __name__ == "__main__":
    oracle.main()
