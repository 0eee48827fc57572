"""advise --compat=torch: torch's anti-patterns, by its rules. Real traces against those rules written out here over a tree of objects;
made ones that fire each rule, and that miss it by one thing."""
import collections
import json
import os
import re
import tempfile

import oracle
from oracle import Case, data_glob
from test_modules import ns

NAMES = {"copy": "Extra CUDA Copy Pattern", "optimizer": "Optimizer Single Tensor Pattern", "loader": "Synchronized DataLoader Pattern",
         "zero": "Gradient Set To Zero Instead of None Pattern", "bias": "Enabling Bias in Conv2d Followed By BatchNorm Pattern",
         "align": "Matrix Multiplication Dimension Not Aligned Pattern"}


class Node:
    def __init__(self, e, parent):
        self.name, self.cat, self.args, self.parent, self.children = e["name"], e["cat"], e.get("args", {}), parent, []
        self.types, self.dims = self.args.get("Input type", []), self.args.get("Input Dims", [])

    def below(self):
        for c in self.children:
            yield c
            yield from c.below()


def tree(events):
    """All nodes, and the roots of each thread."""
    rows = [(str(e["pid"]), str(e["tid"]), ns(e["ts"]), -ns(e["ts"]) - ns(e["dur"]), i) for i, e in enumerate(events)
            if e.get("ph") == "X" and e.get("cat") in ("cpu_op", "user_annotation", "python_function")]
    nodes, roots, stack = [], collections.defaultdict(list), []
    for pid, tid, start, end, i in sorted(rows):
        while stack and (stack[-1][0] != (pid, tid) or stack[-1][1] <= start):
            stack.pop()
        node = Node(events[i], stack[-1][2] if stack else None)
        (node.parent.children if node.parent else roots[pid, tid]).append(node)
        node.siblings = node.parent.children if node.parent else roots[pid, tid]
        nodes.append(node)
        stack.append(((pid, tid), -end, node))
    return nodes


def beside(n, step):
    at = n.siblings.index(n) + step
    return n.siblings[at] if 0 <= at < len(n.siblings) else None


def copies(n):
    if n.name != "aten::to" or not n.children or n.children[-1].name != "aten::_to_copy" or not n.children[-1].children:
        return False
    c = n.children[-1].children[-1]
    if c.name != "aten::copy_" or len(c.types) < 2 or not c.types[0] or c.types[0] != c.types[1] or not n.parent:
        return False
    fills = ("aten::fill_", "aten::zero_", "aten::normal_", "aten::uniform_")
    at = beside(n.parent, -1)
    while at and at.children:
        at = at.children[-1]
        if at.name in fills:
            return True
    return bool(at) and at.name in fills


def loads(n):
    def is_loader(x, what):
        return x.name.startswith("torch/utils/data/dataloader.py") and x.name.endswith(what)
    if not is_loader(n, "__iter__") or not n.children or not is_loader(n.children[0], "_get_iterator") or not n.children[0].children:
        return False
    return not is_loader(n.children[0].children[0], "check_worker_number_rationality")


def biased(n):
    if n.name != "aten::conv2d" or len(n.types) < 3 or not n.types[2]:
        return False
    while n.parent and not n.name.startswith("nn.Module: Conv2d"):
        n = n.parent
    n = beside(n, 1)
    return bool(n) and n.name.startswith("nn.Module: BatchNorm2d")


RULES = {
    "copy": copies, "loader": loads, "bias": biased,
    "optimizer": lambda n: n.name.endswith(("_single_tensor_adam", "_single_tensor_sgd", "_single_tensor_adamw")),
    "zero": lambda n: n.name.endswith(": zero_grad") and any(b.name == "aten::zero_" and b.parent.name != "aten::zeros" for b in n.below()),
    "align": lambda n: n.name in ("aten::mm", "aten::bmm", "aten::addmm") and n.types and n.types[0] in ("c10::Half", "c10::BFloat16") and
    any(size % 8 for shape in n.dims for size in shape[-2:]),
}


def line_of(n):
    n = n.parent
    while n:
        m = re.match(r"([^(<]+)\((\d+)\): ", n.name)
        if n.cat == "python_function" and m and not n.name.startswith(("torch/", "nn.Module: ")):
            return f"{m[1]}:{m[2]}"
        n = n.parent
    return "No source code location found"


def findings(trace):
    """[(problem, places)], notes."""
    code, out, err = oracle.run("advise", "--compat=torch", trace, "--format=json")
    if code:
        raise AssertionError(err)
    doc = json.loads(out)
    return [(p, r.split(" [Source Code Location] ")[1].split("; ")) for p, r in doc["rows"]], doc["notes"]


def expected(events):
    out = []
    nodes = tree(events)
    for rule, name in NAMES.items():
        hits = [n for n in nodes if RULES[rule](n)]
        if hits:
            out.append((f"{name}: {len(hits)} events matched.", list(dict.fromkeys(line_of(n) for n in hits))))
    return out


class Real(Case):
    def test_traces(self):
        seen = collections.Counter()
        for path in data_glob("torch/torch214_cpu/*_full.json.gz") + data_glob("hta/*/*.json.gz") + data_glob("tracelens/h100/*.json.gz"):
            events = oracle.events(oracle.load(path))
            if not any(e.get("cat") == "python_function" for e in events) or not any("Input Dims" in e.get("args", {}) for e in events):
                continue
            got, _ = findings(path)
            self.assertEqual(got, expected(events), path)
            seen.update(p.split(":")[0] for p, _ in got)
        if not seen:
            self.skipTest("no torch traces with stacks (real traces are not part of the repository)")
        self.assertGreater(seen[NAMES["optimizer"]], 0, seen)

    def test_what_is_not_recorded(self):
        got, notes = findings(oracle.data("torch", "torch26_cpu", "resnet_full.json.gz"))
        self.assertEqual(got, [])
        self.assertIn("extra_cuda_copy, optimizer_single_tensor, synchronized_dataloader, grad_not_set_to_none, matmul_not_aligned not applicable: "
                      "Python frames were not recorded; applicable with: profile(with_stack=True).", notes)


class Made(Case):
    def events(self, *nodes):
        """node: (name, args or None, [nodes inside]); in a frame of the user's, beside what else is there."""
        out, clock = [], [0]

        def put(name, args, inside):
            start = clock[0]
            clock[0] += 1
            for n in inside:
                put(*n)
            clock[0] += 1
            python = re.search(r"\(\d+\): |^nn\.Module: ", name)
            out.append({"ph": "X", "cat": "python_function" if python else "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": start,
                        "dur": clock[0] - start, "args": args or {}})
            clock[0] += 1
        put("app/train.py(12): step", None, nodes)
        put("aten::ones", {"Input Dims": [[]], "Input type": ["ScalarList"]}, [])
        return out

    def found(self, *nodes):
        events = self.events(*nodes)
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "made.json")
            with open(path, "w") as f:
                f.write(json.dumps({"schemaVersion": 1, "traceEvents": events}))
            got, _ = findings(path)
        self.assertEqual(got, expected(events))
        for _, places in got:
            self.assertEqual(places, ["app/train.py:12"])
        return [p.split(":")[0] for p, _ in got]

    def fires(self, rule, *nodes):
        self.assertEqual(self.found(*nodes), [NAMES[rule]])

    def silent(self, *nodes):
        self.assertEqual(self.found(*nodes), [])

    def test_copy(self):
        def moved(types, fill="aten::fill_", to="aten::to"):
            return (("<built-in method ones>(1): x", None, [("aten::ones", None, [("aten::empty", None, []), (fill, None, [])])]),
                    ("<built-in method to>(1): x", None, [(to, None, [("aten::_to_copy", None, [("aten::copy_", {"Input type": types, "Input Dims": [[2]]}, [])])])]))
        self.fires("copy", *moved(["float", "float", "Scalar"]))
        self.silent(*moved(["float", "double", "Scalar"]))
        self.silent(*moved(["", "", ""]))
        self.silent(*moved(["float", "float"], fill="aten::add_"))
        self.silent(*moved(["float", "float"], to="aten::cpu"))
        # What stands before is itself a fill: torch goes down first, and looks at it only when there is nothing inside.
        copied = ("aten::add", None, [("aten::to", None, [("aten::_to_copy", None, [("aten::copy_", {"Input type": ["float"] * 2, "Input Dims": [[2]]}, [])])])])
        self.fires("copy", ("aten::zero_", None, [("aten::fill_", None, [])]), copied)
        self.fires("copy", ("aten::zero_", None, [("aten::x", None, [("aten::fill_", None, [("aten::y", None, [])])])]), copied)
        self.fires("copy", ("aten::zero_", None, []), copied)
        self.silent(("aten::zero_", None, [("aten::x", None, [])]), copied)

    def test_optimizer(self):
        for name in ("adam", "sgd", "adamw"):
            self.fires("optimizer", ("torch/optim/x.py(3): _single_tensor_" + name, None, []))
        self.silent(("torch/optim/x.py(3): _multi_tensor_adam", None, []), ("torch/optim/x.py(3): _single_tensor_rprop", None, []))

    def test_loader(self):
        def loader(first, file="torch/utils/data/dataloader.py"):
            return (f"{file}(5): __iter__", None, [(f"{file}(6): _get_iterator", None, [(f"{file}(7): {first}", None, [])])])
        self.fires("loader", loader("__init__"))
        self.silent(loader("check_worker_number_rationality"))
        self.silent(loader("__init__", "mine/dataloader.py"))

    def test_zero(self):
        def zero(around):
            return ("torch/optim/optimizer.py(9): zero_grad", None, [("torch/x.py(1): f", None, [(around, None, [("aten::zero_", None, [])])])])
        self.fires("zero", zero("aten::foreach_zero_"))
        self.silent(zero("aten::zeros"))
        self.silent(("torch/optim/optimizer.py(9): zero_grad", None, []), ("aten::zero_", None, []))

    def test_bias(self):
        def conv(types, after):
            return (("nn.Module: Conv2d_0", None, [("torch/nn/x.py(1): forward", None, [("aten::conv2d", {"Input type": types, "Input Dims": [[2, 2]]}, [])])]),
                    (after, None, []))
        self.fires("bias", *conv(["float", "float", "float", "ScalarList"], "nn.Module: BatchNorm2d_0"))
        self.silent(*conv(["float", "float", "", "ScalarList"], "nn.Module: BatchNorm2d_0"))
        self.silent(*conv(["float", "float", "float", "ScalarList"], "nn.Module: ReLU_0"))

    def test_align(self):
        def product(name, types, *dims):
            return (name, {"Input type": types, "Input Dims": list(dims)}, [])
        self.fires("align", product("aten::mm", ["c10::Half"] * 2, [8, 16], [16, 9]))
        self.fires("align", product("aten::addmm", ["c10::BFloat16"] * 3, [12], [8, 16], [16, 8]))
        self.fires("align", product("aten::bmm", ["c10::BFloat16"] * 2, [3, 8, 4], [3, 4, 8]))
        self.silent(product("aten::bmm", ["c10::BFloat16"] * 2, [3, 8, 16], [3, 16, 8]))
        self.silent(product("aten::mm", ["float"] * 2, [8, 16], [16, 9]))
        self.silent(product("aten::matmul", ["c10::Half"] * 2, [8, 16], [16, 9]))


if __name__ == "__main__":
    oracle.main()
