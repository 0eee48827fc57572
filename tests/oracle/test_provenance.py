"""What torch.compile wrote down about its kernels: planted in logs and folders, and found again at each launch."""
import gzip
import json
import os
import tempfile

import labelled
import oracle
import torch_trace
from oracle import Case
from torch_trace import Call, Graph

MODEL = "/home/me/model.py"
MUL, GELU = "triton_poi_fused_mul_0", "triton_poi_fused_add_gelu_1"


def frames(*lines):
    """Each line of the model is called from main.py(3)."""
    return [[("/home/me/main.py", 3, "run"), (MODEL, n, "forward")] for n in lines]


def graphs(**more):
    """Two graphs of one frame, in which kernels have the same names. The first calls one kernel three times."""
    return [Graph("fone", [Call("extern_kernels.mm", frames(10), ["addmm"], ["mm"], ["linear"], 1), Call(MUL, frames(11), ["mul"], ["mul"], ["mul"], 2),
                           Call("extern_kernels.mm", frames(12), ["addmm"], ["mm_1"], ["linear_1"], 3), Call(MUL, frames(13), ["mul"], ["mul_1"], ["mul_1"], 4),
                           Call(GELU, frames(14, 15), ["add", "gelu"], ["add", "erf"], ["add", "gelu"], 5), Call(MUL, frames(16), ["mul"], ["mul_2"], ["mul_2"], 12)],
                  hashes={MUL: "cmulone", GELU: "cgelu"}, **more),
            Graph("ftwo", [Call(MUL, frames(21, 22), ["mul", "neg"], ["mul", "neg"], ["mul_3", "neg"], 13), Call("torch.ops.aten.bmm.default", frames(23), ["bmm"], ["bmm"], ["matmul"], 14),
                           Call(GELU, frames(24), ["gelu"], ["erf_1"], ["gelu_1"], 15)], hashes={MUL: "cmultwo", GELU: "cgelu"}, **more)]


OPS = {"extern_kernels.mm": "aten::mm", "torch.ops.aten.bmm.default": "aten::bmm"}


def us_of(graph, i):
    """The duration of the kernel of call i: a power of two, so that any sum tells which ones are in it."""
    return 1 << (i + (6 if graph.key == "ftwo" else 0))


def trace(of, runs=2, region="Torch-Compiled Region: 0/0", keys=True, hashes=True, leave=(), extra=0):
    """`leave`: calls of the first graph whose launches are not in it; `extra`: launches of the first kernel in its first run, as when it is tuned."""
    t = labelled.Trace()
    for run in range(runs):
        with t.op(region, 5):
            for g in of:
                with t.range(f"## Call CompiledFxGraph {g.key} ##" if keys else "a range"):
                    for i, c in enumerate(g.calls):
                        if g is of[0] and i in leave:
                            continue
                        args = {"kernel_hash": g.hashes[c.kernel], "kernel_file": f"/tmp/{g.hashes[c.kernel]}.py"} if hashes and c.kernel in g.hashes else {}
                        for _ in range(1 + (extra if g is of[0] and i == 1 and run == 0 else 0)):
                            with t.op(OPS.get(c.kernel, c.kernel), 5, **args):
                                t.kernel(us_of(g, i), c.kernel if c.kernel.startswith("triton_") else "gemm")
        t.launch("aten::sgd", 3000)
    return t


def text_of(*lines):
    return f"{MODEL}({','.join(map(str, lines))}): forward"


class Provenance(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(self.folder, "planted.pt.trace.json.gz")

    def file(self, text, name="dedicated_log_torch_trace_rank_0_x.log"):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with (gzip.open if name.endswith(".gz") else open)(path, "wt") as f:
            f.write(text)
        return path

    def ask(self, t, provenance=None, report="compile", *args):
        if t:
            t.save(self.path)
        code, out, err = oracle.run("report", report, self.path, "--steps=all", "--format=json", *([f"--provenance={provenance}"] if provenance else []), *args)
        self.assertEqual(code, 0, err.decode())
        doc = json.loads(out)
        return oracle.Table(doc), {s["name"]: oracle.Table(s) for s in doc.get("sections", [])}

    def lines(self, t, provenance=None):
        """lines -> us of device time"""
        sections = self.ask(t, provenance)[1]
        rows = sections["lines"].rows
        self.assertEqual([r["generated_ns"] + r["called_ns"] for r in rows], [r["device_ns"] for r in rows])
        return {r["lines"]: r["device_ns"] // 1000 for r in rows}

    def truth(self, of, runs=2):
        out = {}
        for g in of:
            for i, c in enumerate(g.calls):
                key = text_of(*sorted(s[-1][1] for s in c.stacks))
                out[key] = out.get(key, 0) + runs * us_of(g, i)
        return out


class Planted(Provenance):
    def test_each_launch(self):
        """Three calls of one kernel in a graph, and kernels of the same name in two graphs: each launch has the lines of its call."""
        of = graphs()
        self.assertEqual(self.lines(trace(of), self.file(torch_trace.log(of))), self.truth(of))

    def test_kernels(self):
        of = graphs()
        rows = self.ask(trace(of), self.file(torch_trace.log(of)))[1]["kernels"].rows
        self.assertEqual({(r["kernel"], r["source_lines"], r["source_ops"], r["source_nodes"], r["calls"], r["ops_are"]) for r in rows}, {
            (MUL, text_of(11), "mul", "mul", 2, None), (MUL, text_of(13), "mul", "mul_1", 2, None), (MUL, text_of(16), "mul", "mul_2", 2, None), (MUL, text_of(21, 22), "mul, neg", "mul_3, neg", 2, None),
            (GELU, text_of(14, 15), "add, gelu", "add, gelu", 2, None), (GELU, text_of(24), "gelu", "gelu_1", 2, None)})

    def test_source_ops(self):
        of = graphs()
        rows = self.ask(trace(of), self.file(torch_trace.log(of)))[1]["source_ops"].by("op")
        self.assertEqual({op: r["kernels_ns"] // 1000 for op, r in rows.items()}, {"mul": 2 * (2 + 8 + 32 + 64), "neg": 2 * 64, "add": 2 * 16, "gelu": 2 * (16 + 256)})

    def test_ops_without_a_name(self):
        """A name space with nothing behind it is no op, and does not end the report."""
        of = [Graph("fone", [Call(MUL, frames(11), ["mul", "", "neg"], ["mul"], ["mul"], 1), Call(GELU, frames(12), [""], ["erf"], ["gelu"], 2)])]
        sections = self.ask(trace(of), self.file(torch_trace.log(of)))[1]
        self.assertEqual({r["kernel"]: r["source_ops"] for r in sections["kernels"].rows}, {MUL: "mul, neg", GELU: "add, gelu"})
        self.assertEqual({r["op"] for r in sections["source_ops"].rows}, {"mul", "neg", "add", "gelu"})

    def test_very_many_graphs(self):
        """Thousands of graphs whose kernels have one name: each launch has the line of its own graph, and no launch costs a look at every text."""
        of = [Graph(f"f{i}", [Call(MUL, frames(i + 1), ["mul"], ["mul"], ["mul"], 1)], hashes={MUL: f"c{i}"}) for i in range(4000)]
        for keys in (True, False):
            lines = self.lines(trace(of, runs=1, keys=keys), self.file(torch_trace.log(of)))
            self.assertEqual(lines, {text_of(i + 1): 1 for i in range(len(of))})

    def test_containers(self):
        """The same in a folder of logs, in packed logs, in folders of tlparse and of TORCH_COMPILE_DEBUG; and found beside the trace."""
        of = graphs()
        want = self.truth(of)
        self.file(torch_trace.log(of), "logs/dedicated_log_torch_trace_x.log")
        self.assertEqual(self.lines(trace(of), os.path.join(self.folder, "logs")), want)
        self.assertEqual(self.lines(None, self.file(torch_trace.log(of), "x.log.gz")), want)
        torch_trace.tlparse(of, os.path.join(self.folder, "tl_out"))
        self.assertEqual(self.lines(None, os.path.join(self.folder, "tl_out")), want)
        torch_trace.debug(of, os.path.join(self.folder, "torch_compile_debug"))
        gelu = {text_of(14, 15), text_of(24)} # no keys are in it, and both graphs have this kernel
        self.assertEqual(self.lines(None, os.path.join(self.folder, "torch_compile_debug")),
                         {None: sum(want[x] for x in gelu), **{x: us for x, us in want.items() if x not in gelu}})
        self.assertNotIn("lines", self.ask(None)[1])
        self.file(torch_trace.log(of), "torch_trace/dedicated_log_torch_trace_x.log")
        self.assertEqual(self.lines(None), want)

    def test_without_handles(self):
        """Before handles: the comments above each call name source nodes, whose lines stand in the graph that Dynamo traced."""
        of = graphs()
        self.assertEqual(self.lines(trace(of), self.file(torch_trace.log(of, handles=False, stacks=False, mapping=False, pre=True))), self.truth(of))

    def test_without_stack_traces(self):
        of = graphs()
        self.assertEqual(self.lines(trace(of), self.file(torch_trace.log(of, stacks=False))), self.truth(of))

    def test_all_calls_together(self):
        """A mapping without numbers: a kernel has the lines of all its calls in the graph, and a note says so."""
        of = graphs()
        for c in of[0].calls:
            c.handle = None
        one = [(c.kernel, c) for c in of[0].calls]
        merged = {}
        for kernel, c in one:
            m = merged.setdefault(kernel, Call(kernel, [], [], [], []))
            m.stacks += c.stacks
            m.nodes += c.nodes
            m.pre += c.pre
        told = Graph("fone", list(merged.values()))
        log = "".join(torch_trace.artifact(n, json.dumps(x), told) for n, x in (("inductor_provenance_tracking_node_mappings", told.mapping()),
                      ("inductor_provenance_tracking_kernel_stack_traces", told.traces()), ("fx_graph_cache_miss", {"key": "fone"})))
        sections = self.ask(trace(of[:1]), self.file(log))[1]
        self.assertEqual({r["lines"]: r["device_ns"] // 1000 for r in sections["lines"].rows}, {text_of(10, 12): 2 * 5, text_of(11, 13, 16): 2 * 42, text_of(14, 15): 2 * 16})
        self.assertTrue(any("lines are those of all calls of the kernel" in n for n in sections["lines"].notes))

    def test_missing_launches(self):
        """A run of the graph that launches the kernel less often: which calls these are is not known, and their lines are left out. Other kernels keep theirs."""
        of = graphs()
        got = self.lines(trace(of, leave=(3,)), self.file(torch_trace.log(of)))
        want = self.truth(of)
        for n in (11, 13, 16):
            del want[text_of(n)]
        self.assertEqual(got, {**want, None: 2 * (2 + 32)})

    def test_tuned_kernel(self):
        """More launches than calls in one run alone: the other run is told."""
        of = graphs()
        got = self.lines(trace(of, extra=4), self.file(torch_trace.log(of)))
        want = self.truth(of)
        for n in (11, 13, 16):
            want[text_of(n)] //= 2
        self.assertEqual(got, {**want, None: 5 * 2 + 8 + 32})

    def test_equal_calls(self):
        """Calls of one source need not be told apart."""
        of = graphs()[:1]
        for c in of[0].calls:
            if c.kernel == MUL:
                c.stacks = frames(11)
        self.assertEqual(self.lines(trace(of, leave=(3,)), self.file(torch_trace.log(of)))[text_of(11)], 2 * (2 + 32))

    def test_other_run(self):
        """Provenance of graphs with other hashes: nothing is told."""
        of = graphs()
        other = graphs()
        for g in other:
            g.key = "x" + g.key
        self.ask(trace(of), None)
        code, out, err = oracle.run("report", "compile", self.path, f"--provenance={self.file(torch_trace.log(other))}", "--steps=all", "--format=json")
        self.assertEqual(code, 0, err)
        self.assertNotIn("lines", {s["name"] for s in json.loads(out).get("sections", [])})
        self.assertIn(b"no kernel of the recording is one that the compiler's provenance tells of", err)

    def test_told_with_earlier_graphs(self):
        """A mapping that holds the calls of the graph before as well: those that the graph's own code has count."""
        of = graphs()
        both = Graph("ftwo", of[0].calls + of[1].calls)
        both.code, both.hashes = of[1].code, of[1].hashes
        self.assertEqual(self.lines(trace(of), self.file(torch_trace.log([of[0], both]))), self.truth(of))

    def test_by_code(self):
        """Without keys the hash of a kernel's code tells the graph, where the kernels differ; where they do not, what both graphs agree on is told."""
        of = graphs()
        got = self.lines(trace(of), self.file(torch_trace.log(of, keys=False)))
        want = self.truth(of)
        gelu = want.pop(text_of(14, 15)) + want.pop(text_of(24))
        self.assertEqual(got, {**want, None: gelu})

    def test_by_name(self):
        """Neither keys nor hashes in the recording: one graph with the name is taken, with a warning; of two, nothing in which they differ."""
        of = graphs()
        path = self.file(torch_trace.log(of))
        sections = self.ask(trace(of, keys=False, hashes=False), path)[1]
        rows = {r["source_lines"] for r in sections["kernels"].rows}
        self.assertEqual(rows, {None})
        one = self.ask(trace(of[1:], keys=False, hashes=False), self.file(torch_trace.log(of[1:])))[1]
        self.assertEqual({r["kernel"]: r["source_lines"] for r in one["kernels"].rows}, {MUL: text_of(21, 22), GELU: text_of(24)})
        self.assertTrue(any("by the names of kernels and ops alone" in n for n in one["lines"].notes))

    def test_frames(self):
        """Kernels of one name and code in two compiled frames, without keys: the frame around the launch tells which."""
        a, b = graphs()[0], graphs()[0]
        b.frame = (1, 0)
        for c in b.calls:
            c.stacks = [[(f, n + 100, fn) for f, n, fn in s] for s in c.stacks]
        got = self.lines(trace([a], region="Torch-Compiled Region: 1/0"), self.file(torch_trace.log([a, b], keys=False)))
        self.assertEqual(got, self.truth([b]))

    def test_ranks(self):
        """In a log of several ranks, equal graphs of other ranks do no harm."""
        of = graphs(rank=0) + graphs(rank=1)
        self.assertEqual(self.lines(trace(of[:2]), self.file(torch_trace.log(of))), self.truth(of[:2]))

    def test_lines_report(self):
        """`lines` gives the same times; a kernel of several lines has one row, and rows sum to the whole."""
        of = graphs()
        path = self.file(torch_trace.log(of))
        t = trace(of)
        lines = self.ask(t, path, "lines")[0]
        want = self.truth(of)
        got = {r["python_line"]: r["device_self_ns"] // 1000 for r in lines.rows if "model.py" in r["python_line"]}
        self.assertEqual(got, want)

    def test_kernels_report(self):
        """`kernels` says the lines where all calls have the same, and of each launch by itself."""
        of = graphs()
        path = self.file(torch_trace.log(of))
        rows = self.ask(trace(of), path, "kernels")[0].by("name")
        self.assertEqual({k: r["source_lines"] for k, r in rows.items() if "triton" in k}, {MUL: "(several)", GELU: "(several)"})
        one = self.ask(trace(of[1:]), path, "kernels", "--group-by=op")[0].by("name")
        self.assertEqual({k: r["source_lines"] for k, r in one.items() if "triton" in k}, {MUL: text_of(21, 22), GELU: text_of(24)})
        got = {}
        for r in self.ask(trace(of), path, "kernels", "--group-by=instance")[0].rows:
            got[r["source_lines"]] = got.get(r["source_lines"], 0) + r["dur_ns"] // 1000
        self.assertEqual(got, {**self.truth(of), None: 6000})

    def test_cpu(self):
        """Kernels of the CPU, which have a range where they are profiled: `lines` has the host's time. Other ops of the graph are told as on a GPU."""
        g = Graph("fcpu", [Call("cpp_fused_mul_0", frames(31), ["mul"], ["mul"], ["mul"], 1), Call("extern_kernels.mm", frames(32), ["mm"], ["mm"], ["linear"], 2),
                           Call("cpp_fused_mul_0", frames(33, 34), ["mul"], ["mul_1", "mul_2"], ["mul_1", "mul_2"], 3)])
        t = labelled.Trace()
        for _ in range(2):
            with t.range("## Call CompiledFxGraph fcpu ##"):
                for name, us in (("graph_0_cpp_fused_mul_0", 5), ("aten::mm", 70), ("graph_0_cpp_fused_mul_0", 300)):
                    t.simple(name, us)
        rows = self.ask(t, self.file(torch_trace.log([g])), "lines")[0].rows
        self.assertEqual({r["python_line"]: (r["calls"], r["host_self_ns"]) for r in rows}, {text_of(31): (2, 10000), text_of(32): (2, 140000), text_of(33, 34): (2, 600000)})

    def test_backward(self):
        """Kernels of a compiled backward pass have the lines of the forward pass that they belong to."""
        g = graphs()[1]
        t = labelled.Trace()
        with t.op("Torch-Compiled Region: 0/0", 5):
            t.simple("CompiledFunction", 5, **{"Sequence number": 7, "Fwd thread id": 0})
        with t.op("autograd::engine::evaluate_function: CompiledFunctionBackward", 5, **{"Sequence number": 7, "Fwd thread id": 1}):
            with t.op("CompiledFunctionBackward", 5, **{"Sequence number": 7, "Fwd thread id": 1}):
                with t.range("## Call CompiledFxGraph ftwo ##"):
                    for i, c in enumerate(g.calls):
                        with t.op(OPS.get(c.kernel, c.kernel), 5):
                            t.kernel(us_of(g, i), c.kernel if c.kernel.startswith("triton_") else "gemm")
        path = self.file(torch_trace.log([g]))
        self.assertEqual(self.lines(t, path), self.truth([g], runs=1))
        got = {r["python_line"]: r["device_self_ns"] // 1000 for r in self.ask(None, path, "lines")[0].rows if "model.py" in r["python_line"]}
        self.assertEqual(got, self.truth([g], runs=1))

    def test_reasons(self):
        """What the compiler said of graph breaks, in the words of several versions, and of recompilations, one or several reasons at once."""
        of = graphs()
        again = Graph("", [], frame=(0, 1))
        stack = '  File "/home/me/main.py", line 3, in run\n    model(x)\n  File "/home/me/model.py", line 40, in forward\n    print(x)\n'
        said = [("Graph break in user code at /home/me/model.py:40\nGraph Break Reason: Attempted to call a function marked as skipped\n  Explanation: none\n\nUser code traceback:\n" + stack, of[0]),
                ("Graph break in user code at /home/me/model.py:40\nGraph Break Reason: Attempted to call a function marked as skipped\n", of[0]),
                ("Graph break in user code at /home/me/model.py:41\nReason: Unsupported: call_function print\nUser code traceback:\n" + stack, of[0]),
                ("Graph break: skip: from user code at:\n" + stack + "\nTraceback (most recent call last):\n" + '  File "/x/torch/_dynamo/convert_frame.py", line 9, in compile\n', again)]
        log = torch_trace.log(of) + "".join(torch_trace.artifact("dynamo_graph_break_reason", text, g, "string") for text, g in said)
        log += torch_trace.artifact("recompile_reasons", "0/0: tensor 'x' size mismatch at index 0. expected 8, actual 9", again)
        log += torch_trace.artifact("recompile_reasons", json.dumps(["0/1: L['n'] == 3", "0/0: L['n'] == 2"]), Graph("", [], frame=(0, 2)))
        sections = self.ask(trace(of), self.file(log))[1]
        self.assertEqual({(r["kind"], r["frame"], r["place"], r["reason"], r["count"]) for r in sections["reasons"].rows}, {
            ("graph break", "0/0", "/home/me/model.py:40", "Attempted to call a function marked as skipped", 2), ("graph break", "0/0", "/home/me/model.py:41", "Unsupported: call_function print", 1),
            ("graph break", "0/1", "/home/me/model.py:40", "Graph break: skip: from user code at:", 1),
            ("recompile", "0/1", None, "0/0: tensor 'x' size mismatch at index 0. expected 8, actual 9", 1), ("recompile", "0/2", None, "0/1: L['n'] == 3", 1),
            ("recompile", "0/2", None, "0/0: L['n'] == 2", 1)})
        self.assertEqual(self.lines(None, self.file(log)), self.truth(of))

    def test_imported(self):
        of = graphs()
        trace(of).save(self.path)
        kept = os.path.join(self.folder, "kept.opscope")
        self.assertEqual(oracle.run("import", self.path, "-o", kept, f"--provenance={self.file(torch_trace.log(of))}")[0], 0)
        self.path = kept
        self.assertEqual(self.lines(None), self.truth(of))
        code, _, err = oracle.run("report", "compile", kept, f"--provenance={self.folder}/dedicated_log_torch_trace_rank_0_x.log")
        self.assertEqual(code, 2)
        self.assertIn(b"was imported; give it to opscope import", err)


class Real(Provenance):
    """Recordings of an H200 whose graphs are given a provenance in which each call has a line of its own."""

    def plant(self, name):
        """The graphs, from the first run of each; and the device time of each line over all runs. Launches are in order of their calls, those of one call in order of the device."""
        self.path = os.path.join(oracle.ROOT, "tests", "data", "h200", name)
        events = [e for e in oracle.events(oracle.load(self.path)) if e.get("ph") == "X" and "dur" in e]
        calls = {e["args"]["correlation"]: e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e.get("args", {})}
        ranges = sorted((e for e in events if e.get("cat") == "user_annotation" and e["name"].startswith("## Call CompiledFxGraph")), key=lambda e: e["ts"])
        launched = {id(r): [] for r in ranges}
        for w in events:
            if w.get("cat") == "kernel" and w["name"].startswith("triton_"):
                c = calls[w["args"]["correlation"]]
                r = next(r for r in ranges if r["tid"] == c["tid"] and r["ts"] <= c["ts"] <= r["ts"] + r["dur"])
                launched[id(r)].append((c["ts"], w["ts"], w))
        found, want, n = {}, {}, 0
        for r in ranges:
            work = [w for _, _, w in sorted(launched[id(r)], key=lambda x: x[:2])]
            key = r["name"].split()[3]
            if key not in found:
                found[key] = Graph(key, [])
                for w in work:
                    n += 1
                    found[key].calls.append(Call(w["name"], frames(n), ["add"], [f"add_{n}"], [f"linear_{n}"], n))
            self.assertEqual([w["name"] for w in work], [c.kernel for c in found[key].calls])
            for w, c in zip(work, found[key].calls):
                line = text_of(c.stacks[0][-1][1])
                want[line] = want.get(line, 0) + round(float(w["dur"]) * 1000)
        return list(found.values()), want

    def test_each_launch(self):
        for name in ("gpt_bf16_compiled.json.gz", "gpt_bf16_compiled_graphs.json.gz"):
            with self.subTest(name):
                of, want = self.plant(name)
                self.assertEqual(len(of), 2)
                path = self.file(torch_trace.log(of))
                rows = self.ask(None, path)[1]["lines"].rows
                self.assertEqual({r["lines"]: r["generated_ns"] for r in rows if r["lines"]}, want)
                self.assertEqual(sum(r["generated_ns"] for r in rows), sum(want.values()))

    def test_lines_report(self):
        """`lines` has the same times, and its rows sum to the same whole as without provenance."""
        of, want = self.plant("gpt_bf16_compiled.json.gz")
        before = self.ask(None, None, "lines")[0].rows
        rows = self.ask(None, self.file(torch_trace.log(of)), "lines")[0].rows
        got = {r["python_line"]: r["device_self_ns"] for r in rows}
        self.assertEqual({k: v for k, v in got.items() if k.startswith(MODEL)}, want)
        self.assertEqual(sum(got.values()), sum(r["device_self_ns"] for r in before))


class Bad(Provenance):
    def refused(self, path, *words):
        code, _, err = oracle.run("report", "compile", self.path, f"--provenance={path}")
        self.assertEqual((code, err.count(b"\n")), (1, 1), err)
        for w in words:
            self.assertIn(w, err.decode())

    def test_refused(self):
        of = graphs()
        trace(of).save(self.path)
        self.refused(os.path.join(self.folder, "none"), "--provenance=", "No such file")
        self.refused(self.file("", "empty.log"), "no line of a log of TORCH_TRACE")
        self.refused(self.file("hello\n", "hello.log"), "no line of a log of TORCH_TRACE")
        self.refused(self.file(torch_trace.line({"str": ["a", 0]}), "strings.log"), "nothing in it tells of kernels")
        os.mkdir(os.path.join(self.folder, "nothing"))
        self.refused(os.path.join(self.folder, "nothing"), "nothing in it tells of kernels")

    def test_damaged(self):
        """A log that is cut anywhere, and one in which any byte is another, is read as far as it goes."""
        of = graphs()
        trace(of).save(self.path)
        text = torch_trace.log(of, pre=True)
        for at in range(0, len(text), len(text) // 40):
            for damaged in (text[:at], text[:at] + "\x00" + text[at + 1:], text[:at] + "{[\"" + text[at:]):
                code, _, err = oracle.run("report", "compile", self.path, f"--provenance={self.file(damaged, 'cut.log')}")
                self.assertIn(code, (0, 1), err)
                self.assertLessEqual(err.count(b"\n"), 2 - code, err)

    def test_beside_unreadable(self):
        """What lies beside and is not readable is told, and stops nothing."""
        of = graphs()
        trace(of).save(self.path)
        self.file("hello\n", "torch_trace/x.log")
        code, _, err = oracle.run("report", "compile", self.path)
        self.assertEqual(code, 0)


if __name__ == "__main__":
    oracle.main()
