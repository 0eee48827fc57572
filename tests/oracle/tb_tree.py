"""The TensorBoard plugin's op tree and its comparison of two runs (op_tree.py, node.py and diffrun/ of the plugin, as docs/compat.md describes them), of a Kineto trace read by python.
Independent of opscope: test_tb_diff.py compares both, where the plugin's own answers are not at hand."""
import collections
import sys

import oracle

CATEGORIES = {"cpu_op": "op", "operator": "op", "python": "python", "user_annotation": "user", "gpu_user_annotation": "user", "python_function": "frame", "runtime": "call", "cuda_runtime": "call", "mtia_runtime": "call", "glow_runtime": "call",
              "xpu_runtime": "call", "privateuse1_runtime": "call",
              "kernel": "device", "memcpy": "device", "gpu_memcpy": "device", "memset": "device", "gpu_memset": "device"}
COLLECTIVES = {f"{lib}:{op}" for lib in ("nccl", "gloo") for op in ("broadcast", "reduce", "all_reduce", "all_gather", "reduce_scatter")}
MATCHED = {"DataLoader", "Module", "Backward", "Optimizer", "ProfilerStep"}
BACKWARD = "autograd::engine::evaluate_function:"


class Node:
    def __init__(self, kind, name, start, end, ext=None, is_op=False):
        self.kind, self.name, self.start, self.end, self.ext, self.is_op = kind, name, start, end, ext, is_op
        self.children, self.calls, self.device, self.own_host, self.own_device = [], [], 0, 0, 0
        self.tid = None

    @property
    def type(self):
        """The plugin's word for the category that it was recorded with."""
        return {"Root": "Python", "Module": "Module", "ProfilerStep": "ProfilerStep", "Backward": "backward"}.get(self.kind, "Operator" if self.is_op else "user_annotation")

    @property
    def counts(self):
        return self.kind == "Op" and self.is_op and self.name not in ("DataParallel.forward", "DistributedDataParallel.forward") and not self.name.startswith("Optimizer.")

    def fill(self):
        self.children.sort(key=lambda c: (c.start, -c.end))
        for c in self.children:
            c.fill()
        self.own_host = self.end - self.start - sum(c.end - c.start for c in self.children) - sum(end - start for start, end, _ in self.calls)
        self.own_device = sum(d for _, _, devices in self.calls for d in devices)
        self.device += self.own_device + sum(c.device for c in self.children)

    def fill_backward(self):
        self.children.sort(key=lambda c: (c.start, -c.end))
        self.start, self.end = self.children[0].start, self.children[-1].end
        self.tid = self.children[0].tid
        self.own_host = self.end - self.start - sum(c.end - c.start for c in self.children)
        self.device += sum(c.device for c in self.children)


def node_of(event):
    name, args, kind = event["name"], event.get("args") or {}, CATEGORIES.get((event.get("cat") or "").lower())
    ext = args.get("external id", args.get("External id"))
    start, end = event["ts"], event["ts"] + event.get("dur", 0)
    if kind == "frame":
        return Node("Module", name, start, end) if args.get("Python module id") is not None else None
    if kind in ("op", "user") and name.startswith("ProfilerStep#"):
        return Node("ProfilerStep", name, start, end, ext)
    if (name.startswith("enumerate(DataLoader)#") and name.endswith(".__next__")) or name.startswith("enumerate(DataPipe)#"):
        return Node("DataLoader", name, start, end, ext, kind == "op")
    if name.startswith("Optimizer.step"):
        return Node("Optimizer", name, start, end, ext, kind == "op")
    if kind == "user" and name not in COLLECTIVES:
        return None
    return Node("Op", name, start, end, ext, kind == "op")


def fold(node):
    """A node whose only child has its name takes the child's children and calls, and loses its own."""
    while len(node.children) == 1 and node.is_op and node.children[0].is_op and node.name == node.children[0].name:
        node.children, node.calls = node.children[0].children, node.children[0].calls
    for c in node.children:
        fold(c)


def nested(nodes):
    root = Node("Root", "CallTreeRoot", -1e30, 1e30)
    stack = [root]
    for n in sorted(nodes, key=lambda n: (n.start, -n.end)):
        while n.start >= stack[-1].end:
            stack.pop()
        if n.end <= stack[-1].end:
            stack[-1].children.append(n)
            stack.append(n)
    fold(root)
    root.fill()
    root.start, root.end = (root.children[0].start, root.children[-1].end) if root.children else (None, None)
    return root


def add_backward(trees, arrows, main):
    """The backward pass of each module, which stands where the module began, in place of the ranges of the autograd engine."""
    modules, found, by_parent = [], [], {}

    def look(parent, node):
        if node.kind == "Module":
            modules.append(node)
        elif node.kind == "ProfilerStep":
            for c in node.children:
                look(node, c)
        elif node.name.startswith(BACKWARD):
            by_parent.setdefault(id(parent), (parent, []))[1].append(node)
    for root in trees.values():
        for c in root.children:
            look(root, c)
    if not modules:
        return
    for parent, nodes in by_parent.values():
        parent.children = [c for c in parent.children if c not in nodes]
        found += nodes
    if not found:
        return
    parent_at = {}

    def parents(node):
        for c in node.children:
            parent_at.setdefault(c.start, node)
            parents(c)
    groups = []
    for n in found:
        parents(n)
        if n.name == BACKWARD + " torch::autograd::AccumulateGrad" and groups:
            groups[-1].append(n)
        else:
            groups.append([n])
    group_of = {id(g[0]): g for g in groups}
    of_forward = {}
    for forward, backward in arrows.items():
        parent = parent_at.get(backward)
        while parent is not None and not parent.name.startswith(BACKWARD):
            parent = parent_at.get(parent.start)
        if parent is not None and id(parent) in group_of:
            of_forward[forward] = group_of.pop(id(parent))
    made = []

    def build(node, parent):
        if not of_forward:
            return
        if node.kind == "Module":
            backward = Node("Backward", node.name + ".backward", node.start, node.end)
            backward.tid = node.tid
            (parent.children if parent else made).append(backward)
            parent = backward
        for c in node.children:
            if parent and c.counts:
                parent.children += of_forward.get(c.start, [])
            build(c, parent)
        if node.kind == "Module" and parent.children:
            parent.fill_backward()
    for m in modules:
        build(m, None)
    insert(trees[main], sorted(made, key=lambda n: (n.start, -n.end)))


def insert(node, made):
    stack, at, i = [], 0, 0
    while i < len(made):
        m = made[i]
        if node is None or m.end < node.start:
            i += 1
        elif m.start > node.end:
            node, at = stack.pop() if stack else (None, 0)
            at += 1
        else:
            while at < len(node.children):
                c = node.children[at]
                if m.end < c.start:
                    break
                if m.start >= c.end:
                    at += 1
                else:
                    stack.append((node, at))
                    node, at = c, 0
            node.children.insert(at, m)
            at += 1
            i += 1


def tree_of(path):
    """The ops of the first thread, inside each other: below the steps if there are any."""
    root = root_of(path)
    steps = [c for c in root.children if c.kind == "ProfilerStep"]
    return [c for s in steps for c in s.children] if steps else root.children


def root_of(path):
    """The ops and modules of the first thread, inside each other."""
    sys.setrecursionlimit(100000)
    events = oracle.events(oracle.load(path))
    known = sorted((e for e in events if e.get("ph") == "X" and CATEGORIES.get((e.get("cat") or "").lower())), key=lambda e: e["ts"])
    threads, calls, waiting, of_ext = {}, {}, collections.defaultdict(list), collections.defaultdict(list)
    for e in known:
        kind, args = CATEGORIES[e["cat"].lower()], e.get("args") or {}
        id_ = args.get("correlation")
        if kind == "device":
            (calls[id_][2] if id_ in calls else waiting[id_]).append(e.get("dur", 0))
        elif kind == "call":
            calls[id_] = (e["ts"], e["ts"] + e.get("dur", 0), waiting.pop(id_, []))
            of_ext[args.get("external id", args.get("External id"))].append(calls[id_])
        elif (n := node_of(e)) is not None:
            n.tid = e["tid"]
            threads.setdefault(int(e["tid"]), []).append(n)
    for nodes in threads.values():
        for n in nodes:
            n.calls += of_ext.pop(n.ext, [])
    trees = {tid: nested(nodes) for tid, nodes in threads.items()}
    starts, ends = ({e["id"]: e["ts"] for e in events if e.get("cat") == "fwdbwd" and e.get("ph") == ph} for ph in "sf")
    arrows = {ts: ends[i] for i, ts in starts.items() if i in ends}
    if arrows:
        stepping = [tid for tid, root in trees.items() if any(n.kind == "ProfilerStep" for n in threads[tid])]
        engines = [tid for tid, root in trees.items() if any(c.name.startswith(BACKWARD) for c in root.children)]
        main = stepping[-1] if stepping else max((tid for tid in trees if len(trees) == 1 or tid not in engines[:1]), key=lambda tid: trees[tid].end - trees[tid].start)
        add_backward(trees, arrows, main)
    tid, root = next(((tid, r) for tid, r in trees.items() if r.children), (None, None))
    root.tid = tid
    return root


def ops_of(node, out):
    for c in node.children:
        ops_of(c, out)
    if node.counts:
        out.append(node)


def said_of(nodes):
    """What the plugin says of one node, a list of some, or none."""
    if not nodes:
        return {"name": "Blank", "duration": 0, "device_duration": 0, "total_duration": 0, "aggs": []}
    several = nodes if isinstance(nodes, list) else [nodes]
    ops, sums = [], {}
    for n in several:
        ops_of(n, ops)
    for n in ops:
        s = sums.setdefault(n.name, [0, 0, 0, 0, 0])
        for i, x in enumerate((1, n.end - n.start, n.device, n.own_host, n.own_device)):
            s[i] += x
    keys = ("calls", "host_duration", "device_duration", "self_host_duration", "self_device_duration")
    return {"name": "CompositeNodes" if isinstance(nodes, list) else nodes.name, "duration": sum(n.end - n.start for n in several), "device_duration": sum(n.device for n in several),
            "total_duration": sum(n.device or n.end - n.start for n in several), "aggs": [{"name": name, **dict(zip(keys, s))} for name, s in sums.items()]}


def compare(left, right):
    left, right = (x[0] if isinstance(x, list) and len(x) == 1 else x for x in (left, right))
    out = {"left": said_of(left), "right": said_of(right), "children": []}
    if left and right and isinstance(left, list) == isinstance(right, list):
        out["children"] = compare_lists(*(x if isinstance(x, list) else x.children for x in (left, right)))
    return out


def compare_lists(left, right):
    pairs, after = [], 0
    for i, n in enumerate(left):
        at = next((j for j in range(after, len(right)) if (right[j].kind, right[j].name) == (n.kind, n.name)), None) if n.kind in MATCHED else None
        if at is not None:
            pairs.append((i, at))
            after = at + 1
    out, i, j = [], 0, 0
    for a, b in pairs + ([(len(left), len(right))] if pairs else []):
        if left[i:a] or right[j:b]:
            out.append(compare(left[i:a], right[j:b]))
        if a < len(left):
            out.append(compare(left[a], right[b]))
        i, j = a + 1, b + 1
    return out


def paths(node, path="0"):
    """{path: node}"""
    out = {path: node}
    for i, c in enumerate(node["children"]):
        out.update(paths(c, f"{path}-{i}"))
    return out
