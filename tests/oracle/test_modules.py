"""report modules against naive computations on real traces, and on small traces of each kind."""
import collections
import gzip
import json
import os
import tempfile
from decimal import Decimal

import oracle
from oracle import Case, data, report, synthetic


def ns(x):
    return int((Decimal(str(x)) * 1000).to_integral_value())


class Span:
    __slots__ = ("start", "end", "name", "cat", "track", "args", "parent", "path")

    def __init__(self, e):
        self.start, self.end = ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])
        self.name, self.cat, self.args = e["name"], e["cat"], e.get("args", {})
        self.track = (str(e["pid"]), str(e["tid"]))

    def is_module(self):
        return self.cat == "python_function" and self.name.startswith("nn.Module: ")


class Naive:
    """Module path of every op and frame by a stack per thread; device work by correlation, then External id, then time."""

    def __init__(self, path):
        with gzip.open(path, "rb") as f:
            events = oracle.events(json.loads(f.read().decode("utf-8", "surrogatepass"), strict=False, parse_float=Decimal))
        self.spans, self.gpu = [], []
        for e in events:
            if e.get("ph") != "X":
                continue
            if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset"):
                self.gpu.append((ns(e["dur"]), e["name"], e.get("args", {})))
            elif e["cat"] in ("cpu_op", "user_annotation", "python_function", "cuda_runtime", "cuda_driver"):
                self.spans.append(Span(e))
        self.spans.sort(key=lambda s: (s.track, s.start, -s.end))
        self.nest()
        self.by_ext = {}
        for s in self.spans:
            if s.cat in ("cpu_op", "user_annotation") and s.args.get("External id"):
                self.by_ext.setdefault(s.args["External id"], s)
        self.calls = {s.args["correlation"]: s for s in self.spans if s.cat.startswith("cuda_") and "correlation" in s.args}

    def nest(self):
        stack, track = [], None
        for s in self.spans:
            if s.track != track:
                stack, track = [], s.track
            while stack and stack[-1].end <= s.start:
                stack.pop()
            s.parent = stack[-1] if stack else None
            above = s.parent.path if s.parent else ()
            s.path = above + (s.name[len("nn.Module: "):],) if s.is_module() else above
            if not s.cat.startswith("cuda_"):
                stack.append(s)

    def op_of_gpu(self, args):
        call = self.calls.get(args.get("correlation"))
        if call is not None:
            op = self.by_ext.get(call.args.get("External id"))
            if op is not None:
                return op
            op = call.parent
            while op is not None and op.cat != "cpu_op":
                op = op.parent
            return op or call
        return self.by_ext.get(args.get("External id"))

    def around(self, span):
        """The span and all that is around it, innermost first."""
        while span is not None:
            yield span
            span = span.parent

    def modules(self):
        """path -> [calls, host total] of frames."""
        out = collections.defaultdict(lambda: [0, 0])
        for s in self.spans:
            if s.is_module():
                out[s.path][0] += 1
                out[s.path][1] += s.end - s.start
        return dict(out)


def paths(table):
    """Rows by the path of module names."""
    out, stack = {}, []
    for r in table.rows:
        stack[r["depth"]:] = [r["module"]]
        assert tuple(stack) not in out, stack
        out[tuple(stack)] = r
    return out


def up_the_tree(self_times):
    """Totals of every path and its prefixes."""
    out = collections.Counter()
    for path, value in self_times.items():
        for n in range(1, len(path) + 1):
            out[path[:n]] += value
    return out


FORWARD_ONLY = ["tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz",
                "tracelens/h100/Falconsai_nsfw_image_detection__1016002.json.gz",
                "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
                "tracelens/b200/eager_trace.json.gz"]


class RealTraces(Case):
    def check_sums(self, table):
        """The first note's parts, and the tree's own, add up."""
        note = next(n for n in table.notes if n.startswith("device work"))
        numbers = [int(w) for w in note.replace("(", " ").split() if w.isdigit()]
        total, forward, backward, collectives, optimizer, outside, _, unattributed = numbers
        self.assertEqual(total, forward + backward + collectives + optimizer + outside + unattributed)
        self.assertEqual(sum(r["device_self_ns"] for r in table.rows), forward)
        self.assertEqual(sum(r["device_total_ns"] for r in table.rows if r["depth"] == 0), forward)
        if "backward_device_self_ns" in table.ids:
            self.assertEqual(sum(r["backward_device_self_ns"] for r in table.rows), backward)
            self.assertEqual(sum(r["backward_device_total_ns"] for r in table.rows if r["depth"] == 0), backward)
        return total

    def test_forward_of_each_module(self):
        for name in FORWARD_ONLY:
            with self.subTest(trace=name):
                naive, table = Naive(data(*name.split("/"))), report("modules", data(*name.split("/")))
                rows = paths(table)
                self.assertEqual({p: [r["calls"], r["host_total_ns"]] for p, r in rows.items()}, naive.modules())
                own = collections.Counter()
                for dur, _, args in naive.gpu:
                    op = naive.op_of_gpu(args)
                    if op is not None and op.path:
                        own[op.path] += dur
                totals = up_the_tree(own)
                self.assertEqual({p: (r["device_self_ns"], r["device_total_ns"]) for p, r in rows.items()},
                                 {p: (own[p], totals[p]) for p in rows})
                self.assertEqual(self.check_sums(table), sum(g[0] for g in naive.gpu))

    def test_operators_and_own_time(self):
        for name in FORWARD_ONLY + ["torch/torch214_cpu/resnet_full.json.gz"]:
            with self.subTest(trace=name):
                naive = Naive(data(*name.split("/")))
                operators, own = collections.Counter(), collections.Counter()
                for s in naive.spans:
                    inside = next((a for a in naive.around(s.parent) if a.is_module() or a.cat == "cpu_op"), None)
                    if s.is_module():
                        own[s.path] += s.end - s.start
                    if inside is not None and inside.is_module() and (s.is_module() or s.cat == "cpu_op"):
                        own[inside.path] -= s.end - s.start
                        operators[inside.path] += s.cat == "cpu_op"
                rows = paths(report("modules", data(*name.split("/"))))
                self.assertEqual({p: r["operators"] for p, r in rows.items()}, {p: operators[p] for p in rows})
                # API calls are subtracted too, once where one contains another; only modules without any compare.
                with_calls = {a.path for s in naive.spans if s.cat.startswith("cuda_") for a in naive.around(s.parent)}
                self.assertEqual({p: r["host_self_ns"] for p, r in rows.items() if p not in with_calls},
                                 {p: own[p] for p in rows if p not in with_calls})

    def test_backward_host_time(self):
        """CPU training: each engine range counts for the forward op of its number that began last."""
        for model in ("resnet", "lstm"):
            with self.subTest(model=model):
                path = data("torch", "torch214_cpu", model + "_full.json.gz")
                naive = Naive(path)
                forward, own, last = collections.defaultdict(list), collections.Counter(), ()
                ops = [s for s in naive.spans if s.cat == "cpu_op"]
                for s in ops:
                    if s.args.get("Fwd thread id") == 0 and "Sequence number" in s.args:
                        forward[s.args["Sequence number"]].append(s)
                linked = 0
                for s in ops:
                    if not s.name.startswith("autograd::engine::evaluate_function"):
                        continue
                    if not s.name.endswith("AccumulateGrad"):
                        found = [f for f in forward[s.args["Sequence number"]] if f.start < s.start]
                        last = max(found, key=lambda f: f.start).path
                        linked += 2  # the engine's range and the node in it
                    own[last] += s.end - s.start
                del own[()]
                table = report("modules", path)
                totals = up_the_tree(own)
                self.assertEqual({p: r["backward_host_ns"] for p, r in paths(table).items()},
                                 {p: totals[p] for p in paths(table)})
                self.assertTrue(any(f"{linked} by sequence number ({linked} confirmed by a flow, 0 contradicted)" in n
                                    for n in table.notes), table.notes)

    def test_recomputation_and_gradient_collectives(self):
        path = data("tracelens", "mi300", "resnet_act_checkpoint.json.gz")
        naive, table = Naive(path), report("modules", path)
        rows = paths(table)
        total = self.check_sums(table)
        self.assertEqual(total, sum(g[0] for g in naive.gpu))
        self.assertEqual({p[0] for p in rows if len(p) == 1 and rows[p]["recompute_calls"]}, set())
        recompute = forward = collectives = 0
        for dur, name, args in naive.gpu:
            op = naive.op_of_gpu(args)
            around = [] if op is None else list(naive.around(op))
            backward = any(a.name.startswith("autograd::engine::evaluate_function") for a in around)
            module = next((i for i, a in enumerate(around) if a.is_module()), None)
            if backward and module is not None:
                recompute += dur
            elif module is not None:
                forward += dur
            elif "nccl" in name and any("AccumulateGrad" in a.name for a in around):
                collectives += dur
        top = [r for r in table.rows if r["depth"] == 0]
        self.assertEqual(sum(r["recompute_device_ns"] for r in top), recompute)
        self.assertEqual(sum(r["device_total_ns"] for r in top), forward)
        self.assertIn(f"collectives of gradients {collectives} ", table.notes[0])
        calls = collections.Counter()
        for s in naive.spans:
            if s.is_module() and any(a.name.startswith("autograd::engine") for a in naive.around(s)):
                calls[s.path[-1]] += 1
        got = collections.Counter()
        for r in table.rows:
            got[r["module"]] += r["recompute_calls"]
        self.assertEqual(+got, calls)

    def test_backward_device_time(self):
        """mi300: device work of linked backward ops, by number on the one forward thread."""
        path = data("tracelens", "mi300", "resnet_act_checkpoint.json.gz")
        naive = Naive(path)
        forward = collections.defaultdict(list)
        for s in naive.spans:
            if s.cat == "cpu_op" and s.args.get("Fwd thread id") == 0 and s.track[1] == "542":
                forward[s.args.get("Sequence number")].append(s)
        last, place = (), {}
        for s in naive.spans:
            if s.cat != "cpu_op" or not s.name.startswith("autograd::engine::evaluate_function"):
                continue
            if not s.name.endswith("AccumulateGrad"):
                found = [f for f in forward[s.args["Sequence number"]] if f.start < s.start]
                last = max(found, key=lambda f: f.start).path if found else ()
            place[id(s)] = last
        own = collections.Counter()
        for dur, name, args in naive.gpu:
            op = naive.op_of_gpu(args)
            if op is None:
                continue
            around = list(naive.around(op))
            engine = next((a for a in around if id(a) in place), None)
            if engine is None or any(a.is_module() for a in around):
                continue
            if "nccl" in name and "AccumulateGrad" in engine.name:
                continue
            own[place[id(engine)]] += dur
        del own[()]
        rows = paths(report("modules", path))
        got = {p: r["backward_device_self_ns"] for p, r in rows.items()}
        # Without children the recompute column is the module's own.
        leaves = [p for p in rows if not any(q[:len(p)] == p and q != p for q in rows)]
        self.assertEqual({p: got[p] - rows[p]["recompute_device_ns"] for p in leaves}, {p: own[p] for p in leaves})

    def test_plugin_columns(self):
        path = data("torch", "torch214_cpu", "resnet_full.json.gz")
        t = report("modules", path, "--compat=tb-plugin")
        self.assertEqual([c["title"] for c in t.doc["columns"][1:]], [
            "Module Name", "Occurences", "Operators", "Host Total Time", "Host Self Time", "Device Total Time",
            "Device Self Time"])
        ours = {r["module"]: r for r in report("modules", path).rows}
        for r in t.rows:
            self.assertEqual(r["occurences"], ours[r["name"]]["calls"])
            self.assertAlmostEqual(r["host_total_time"], ours[r["name"]]["host_total_ns"] / 1000, places=6)


def x(name, ts, dur, cat="cpu_op", tid=1, pid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur,
            "args": {k.replace("_", " "): v for k, v in args.items()}}


def launch(op, ts, corr, dur, tid=1):
    """An API call in an op, and its kernel."""
    return [x("cudaLaunchKernel", ts, 1, "cuda_runtime", tid, correlation=corr, External_id=op),
            x("k", ts + 100, dur, "kernel", 7, 0, correlation=corr, External_id=op, device=0, stream=7)]


def shown_at(path, width):
    """Ids of the columns behind the name that text of this width shows, in order: those of unlimited width less those it has no room for."""
    table = report("modules", path)
    wide = oracle.run("report", "modules", path)[1].decode().splitlines()[1]
    shown = [c["id"] for c in table.doc["columns"] if "  " + c["title"] in wide]
    narrow = oracle.run("report", "modules", path, f"--width={width}")[1].decode()
    cut = narrow.split("no room for: ")[1].split(" (--columns")[0] if "no room for: " in narrow else ""
    return [i for i in shown if i not in cut.replace("\n", " ").split(", ")]


class Flat(Case):
    """--group-by=flat: the same modules without the hierarchy, by what each took itself."""

    def agree(self, path, key):
        tree, flat = report("modules", path), report("modules", path, "--group-by=flat")
        self.assertNotIn("depth", flat.ids)
        self.assertEqual([r[key] for r in flat.rows], sorted((r[key] for r in tree.rows), reverse=True))
        self.assertEqual(flat.notes, tree.notes)
        by_path, both = flat.by("path"), [i for i in tree.ids if i in flat.ids]
        for place, r in paths(tree).items():
            self.assertEqual([by_path["/".join(place)][i] for i in both], [r[i] for i in both])
        return tree, flat

    def test_host(self):
        path = os.path.join(oracle.ROOT, "tests", "data", "torch214_cpu_resnet.json.gz")
        tree, flat = self.agree(path, "host_exclusive_ns")
        roots = sum(r["host_total_ns"] + r["backward_host_ns"] for r in tree.rows if r["depth"] == 0)
        self.assertEqual(sum(r["host_exclusive_ns"] for r in flat.rows), roots)
        self.assertAlmostEqual(sum(r["host_pct"] for r in tree.rows if r["depth"] == 0), 100)
        for r in tree.rows:
            self.assertEqual(r["forward_backward_host_ns"], r["host_total_ns"] + r["backward_host_ns"])
            self.assertAlmostEqual(r["host_pct"], 100 * r["forward_backward_host_ns"] / roots)
        self.assertEqual(shown_at(path, 100)[:4], ["forward_backward_host_ns", "host_pct", "host_total_ns", "backward_host_ns"])
        by = tree.by("module")
        children = [by["Block_1"][k] - sum(r[k] for p, r in paths(tree).items() if len(p) == 3 and p[1] == "Block_1")
                    for k in ("host_total_ns", "backward_host_ns")]
        self.assertEqual(by["Block_1"]["host_exclusive_ns"], sum(children))
        # --sort and --limit rank over all modules, which the tree cannot.
        code, out, _ = oracle.run("report", "modules", path, "--group-by=flat", "--sort=calls", "--limit=2", "--format=csv",
                                  "--columns=module,calls")
        self.assertEqual((code, out), (0, b"module,calls\nConv2d_3,3\nConv2d_1,3\n"))

    def test_device(self):
        tree, flat = self.agree(data("tracelens", "h100", "gaunernst_bert-small-uncased__1016001.json.gz"),
                                "device_exclusive_ns")
        self.assertEqual(flat.rows[0]["module"], "Linear_25")
        self.assertEqual([r["device_exclusive_ns"] for r in tree.rows], [r["device_self_ns"] for r in tree.rows])
        self.assertAlmostEqual(sum(r["device_exclusive_pct"] for r in flat.rows), 100)

    def test_text_of_a_hundred_columns(self):
        path = data("tracelens", "h100", "gaunernst_bert-small-uncased__1016001.json.gz")
        self.assertEqual(shown_at(path, 100)[:4], ["device_total_ns", "device_self_ns", "device_pct", "host_total_ns"])
        code, out, _ = oracle.run("report", "modules", path, "--columns=module,calls", "--limit=4")
        self.assertEqual([len(line) - len(line.lstrip()) for line in out.decode().splitlines()[3:7]], [0, 2, 4, 6])


class Synthetic(Case):
    def trace(self, events, **top):
        f = tempfile.NamedTemporaryFile("w", suffix=".json", delete=False)
        self.addCleanup(os.unlink, f.name)
        with f:
            f.write(json.dumps({"traceEvents": events, **top}))
        return f.name

    def test_hierarchy(self):
        t = report("modules", synthetic("module_hierarchy"))
        self.assertEqual([(r["depth"], r["module"], r["calls"], r["operators"], r["host_total_ns"], r["host_self_ns"])
                          for r in t.rows],
                         [(0, "Conv2", 1, 0, 211000, 211000), (0, "MyModule", 3, 0, 633000, 447000),
                          (1, "Linear", 3, 3, 186000, 90000)])

    def test_calls_are_not_own_time(self):
        """What a module itself runs is without its ops and without its API calls, one within another counted once."""
        call = lambda name, ts, dur: {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": {"correlation": ts}}  # noqa: E731
        module = {"ph": "X", "cat": "python_function", "name": "nn.Module: A_0", "pid": 1, "tid": 1, "ts": 0, "dur": 100, "args": {"Python id": 1, "Python module id": 0}}
        op = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 20, "dur": 30, "args": {"External id": 1}}
        kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": "stream 7", "ts": 40, "dur": 10, "args": {"correlation": 25, "device": 0, "stream": 7}}
        path = self.trace([module, op, call("cudaLaunchKernel", 25, 5), call("cudaMemcpyAsync", 60, 10), call("cuMemcpyAsync", 62, 4), kernel])
        self.assertEqual([(r["module"], r["host_total_ns"], r["host_self_ns"]) for r in report("modules", path).rows], [("A_0", 100000, 60000)])

    def test_nothing_to_show(self):
        code, _, err = oracle.run("report", "modules", self.trace([x("aten::mm", 1, 2)]))
        self.assertEqual(code, 1)
        self.assertIn(b"to record them: profile(with_stack=True)", err)

    def test_nothing_to_show_of_what_was_asked_for(self):
        """A torch without Kineto has no Python frames, with_stack=True or not: it is not advised again."""
        path = self.trace([x("aten::mm", 1, 2)], with_stack=1)
        for name in ("modules", "layers"):
            code, _, err = oracle.run("report", name, path)
            self.assertEqual(code, 1)
            self.assertIn(b'to record them: opscope.profile(backend="opscope"), or opscope.torch.init() in the program under `opscope record`', err)

    def test_lightning(self):
        t = report("modules", self.trace(
            [x("[pl][module]torch.nn.modules.container.Sequential: net", 0, 50, "user_annotation"),
             x("[pl][module]torch.nn.modules.linear.Linear: net.0", 5, 20, "user_annotation"),
             x("aten::linear", 6, 10, External_id=3), *launch(3, 7, 1, 40),
             x("[pl][module]torch.nn.modules.linear.Linear: head.deep.out", 60, 20, "user_annotation")],
            Framework="pytorch-lightning"))
        self.assertEqual([(r["depth"], r["module"], r["type"], r["calls"], r["host_total_ns"], r["device_total_ns"])
                          for r in t.rows],
                         [(0, "head", None, 0, 20000, 0), (1, "deep", None, 0, 20000, 0),
                          (2, "out", "torch.nn.modules.linear.Linear", 1, 20000, 0),
                          (0, "net", "torch.nn.modules.container.Sequential", 1, 50000, 40000),
                          (1, "0", "torch.nn.modules.linear.Linear", 1, 20000, 40000)])


    def test_lightning_profile(self):
        """What Lightning's own profiler tables: mean, calls and total of each of its actions."""
        batches = [x("[pl][profile]run_training_batch", 100 * i, 90, "user_annotation") for i in range(3)]
        steps = [x("[pl][profile][Strategy]SingleDeviceStrategy.training_step", 100 * i + 10, 30, "user_annotation") for i in range(3)]
        path = self.trace([x("[pl][profile]run_training_epoch", 0, 300, "user_annotation"), *batches, *steps, x("mine", 310, 5, "user_annotation")])
        rows = report("nvtx", path, "--filter=[pl][profile]").rows
        self.assertEqual({r["range"]: (r["mean_ns"], r["calls"], r["total_ns"], r["self_ns"]) for r in rows},
                         {"[pl][profile]run_training_epoch": (300000, 1, 300000, 30000), "[pl][profile]run_training_batch": (90000, 3, 270000, 180000),
                          "[pl][profile][Strategy]SingleDeviceStrategy.training_step": (30000, 3, 90000, 90000)})

    def test_lightning_flat(self):
        t = report("modules", synthetic("lightning"), "--group-by=flat")
        self.assertEqual([(r["module"], r["path"], r["host_exclusive_ns"]) for r in t.rows],
                         [("net", "net", 30000), ("head.deep.out", "head.deep.out", 20000), ("net.0", "net.0", 20000),
                          ("head", "head", 0), ("head.deep", "head.deep", 0)])

    def test_inference(self):
        t = report("modules", synthetic("inference_gpu"))
        self.assertEqual([(r["module"], r["device_total_ns"], r["device_exclusive_ns"]) for r in t.rows],
                         [("Net_0", 120000, 0), ("Linear_0", 100000, 100000), ("GELU_0", 20000, 20000)])
        self.assertFalse([i for i in t.ids if i.startswith("backward")])

    def test_training_with_recomputation(self):
        """The same on a GPU and on the CPU; GELU_0 runs again inside its backward (15 us of its 55 on the device)."""
        host = {"Net_0": (200000, 160000, 60000), "Linear_0": (80000, 60000, 140000), "GELU_0": (60000, 100000, 160000)}
        for name in ("training_gpu", "training_cpu"):
            t = report("modules", synthetic(name))
            self.assertEqual({r["module"]: (r["host_total_ns"], r["backward_host_ns"], r["host_exclusive_ns"]) for r in t.rows}, host)
            self.assertEqual([r["recompute_calls"] for r in t.rows], [0, 0, 1])
        self.assertEqual([r["host_pct"] for r in t.rows], [100, 100 * 140 / 360, 100 * 160 / 360])
        t = report("modules", synthetic("training_gpu"))
        ids = ("device_total_ns", "backward_device_total_ns", "recompute_device_ns", "device_exclusive_ns")
        self.assertEqual([[r[i] // 1000 for i in ids] for r in t.rows], [[120, 255, 15, 0], [100, 200, 0, 300], [20, 55, 15, 75]])
        self.assertIn("optimizer 5000", t.notes[0])
        self.assertEqual([(r["kernel"], r["kernel_file"], r["num_warps"], r["total_ns"])
                          for r in report("triton", synthetic("training_gpu")).rows],
                         [("triton_poi_fused_gelu_0", "/tmp/inductor/ab/cab.py", "4", 20000)])

    def test_torchscript_hierarchy(self):
        top = "TOP(Net)::forward"
        t = report("modules", self.trace(
            [x("aten::conv2d", 0, 30, External_id=1, Module_Hierarchy=top + ".conv(Conv2d)::forward.SELF(Conv2d)::_conv_forward"),
             x("aten::convolution", 1, 20, External_id=2), *launch(2, 2, 1, 40),
             x("aten::relu", 40, 5, External_id=3, Module_Hierarchy=top), *launch(3, 41, 2, 7)]))
        self.assertEqual([(r["depth"], r["module"], r["calls"], r["operators"], r["host_total_ns"], r["device_self_ns"],
                           r["device_total_ns"]) for r in t.rows],
                         [(0, "TOP(Net)", None, 1, 35000, 7000, 47000), (1, "conv(Conv2d)", None, 1, 30000, 40000, 40000)])

    def module(self, name, ts, dur, py, parent=None, tid=1, pid=1, mid=0):
        args = {"Python_id": py, "Python_module_id": mid}
        if parent is not None:
            args["Python_parent_id"] = parent
        return x("nn.Module: " + name, ts, dur, "python_function", tid, pid, **args)

    def test_frames_on_another_thread_than_the_ops(self):
        frames = [self.module("Net_0", 10, 100, 1, tid=0, pid=0), self.module("Linear_0", 20, 30, 2, 1, tid=0, pid=0)]
        ops = [x("ProfilerStep#1", 0, 200, "user_annotation", 5), x("aten::linear", 25, 10, tid=5, External_id=1),
               *launch(1, 26, 1, 40, 5), x("aten::relu", 60, 10, tid=5, External_id=2), *launch(2, 61, 2, 7, 5)]
        t = report("modules", self.trace(frames + ops))
        self.assertEqual([(r["module"], r["operators"], r["host_self_ns"], r["device_total_ns"], r["device_self_ns"])
                          for r in t.rows],
                         [("Net_0", 1, 60000, 47000, 7000), ("Linear_0", 1, 20000, 40000, 40000)])
        self.assertTrue(any("is taken for the one thread" in n for n in t.notes), t.notes)
        # A second thread whose ops fit as well: no one can tell.
        t = report("modules", self.trace(frames + ops + [x("aten::add", 27, 5, tid=6, External_id=9)]))
        self.assertEqual([r["device_total_ns"] for r in t.rows], [0, 0])
        self.assertTrue(any("fit no other thread or several" in n for n in t.notes), t.notes)

    def training(self, flows, numbers=True):
        number = (lambda n, tid: {"Sequence_number": n, "Fwd_thread_id": tid}) if numbers else (lambda n, tid: {})
        e = [self.module("Net_0", 0, 100, 1), self.module("A_0", 10, 30, 2, 1), self.module("B_0", 50, 30, 3, 1),
             x("aten::mm", 12, 20, External_id=1, **number(5, 0)), *launch(1, 13, 1, 10),
             x("aten::relu", 52, 20, External_id=2, **number(6, 0)), *launch(2, 53, 2, 20),
             x("autograd::engine::evaluate_function: ReluBackward0", 200, 20, tid=2, External_id=3, **number(6, 1)),
             x("ReluBackward0", 201, 10, tid=2, External_id=4, **number(6, 1)), *launch(4, 202, 3, 100, 2),
             x("autograd::engine::evaluate_function: MmBackward0", 230, 20, tid=2, External_id=5, **number(5, 1)),
             x("MmBackward0", 231, 10, tid=2, External_id=6, **number(5, 1)), *launch(6, 232, 4, 200, 2),
             x("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 260, 9, tid=2, External_id=7),
             *launch(7, 261, 5, 3, 2)]
        for n, (start, end) in enumerate(flows):
            e += [{"ph": "s", "cat": "fwdbwd", "name": "fwdbwd", "id": n, "pid": 1, "tid": 1, "ts": start},
                  {"ph": "f", "cat": "fwdbwd", "name": "fwdbwd", "id": n, "pid": 1, "tid": 2, "ts": end, "bp": "e"}]
        return e

    def backward(self, events):
        t = report("modules", self.trace(events))
        return ({r["module"]: (r["device_total_ns"], r["backward_device_total_ns"], r["backward_host_ns"]) for r in t.rows},
                t.notes)

    WANT = {"Net_0": (30000, 303000, 49000), "A_0": (10000, 203000, 29000), "B_0": (20000, 100000, 20000)}

    def test_backward_by_number(self):
        rows, notes = self.backward(self.training([]))
        self.assertEqual(rows, self.WANT)
        self.assertTrue(any("4 by sequence number (0 confirmed" in n for n in notes), notes)

    def test_own_time_and_text_of_training(self):
        path = self.trace(self.training([]))
        flat = report("modules", path, "--group-by=flat")
        self.assertEqual([(r["module"], r["path"], r["device_exclusive_ns"], r["host_exclusive_ns"]) for r in flat.rows],
                         [("A_0", "Net_0/A_0", 213000, 59000), ("B_0", "Net_0/B_0", 120000, 50000),
                          ("Net_0", "Net_0", 0, 40000)])
        self.assertEqual(shown_at(path, 100)[:5], ["device_total_ns", "device_self_ns", "backward_device_total_ns",
                                                   "device_pct", "host_total_ns"])

    def test_backward_by_flow(self):
        rows, notes = self.backward(self.training([(52, 201), (12, 231)], numbers=False))
        self.assertEqual(rows, self.WANT)
        self.assertTrue(any("4 by a flow alone" in n for n in notes), notes)

    def test_number_and_flow_disagree(self):
        rows, notes = self.backward(self.training([(12, 201)]))
        self.assertEqual(rows, self.WANT)
        self.assertTrue(any("2 contradicted" in n for n in notes), notes)

    def test_two_threads_with_the_same_numbers(self):
        other = [x("aten::mm", 12, 20, tid=9, External_id=21, Sequence_number=5, Fwd_thread_id=0),
                 x("aten::relu", 52, 20, tid=9, External_id=22, Sequence_number=6, Fwd_thread_id=0)]
        t = report("modules", self.trace(self.training([]) + other))
        self.assertTrue(any("(4 of them fit several threads)" in n for n in t.notes), t.notes)
        # One arrow tells which thread it is.
        rows, _ = self.backward(self.training([(52, 201)]) + other)
        self.assertEqual(rows, self.WANT)

    def test_parent_ids_in_a_ring(self):
        t = report("modules", self.trace([self.module("A_0", 0, 10, 1, 2, tid=1), self.module("B_0", 0, 10, 2, 1, tid=2)]))
        self.assertEqual(sum(r["calls"] for r in t.rows), 2)


if __name__ == "__main__":
    oracle.main()
