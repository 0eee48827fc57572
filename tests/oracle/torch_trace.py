"""What torch.compile writes down while it compiles, made from a known truth: as the log of TORCH_TRACE, as a folder of tlparse, and as a folder of TORCH_COMPILE_DEBUG."""
import hashlib
import json
import os


class Call:
    """A call of a kernel in a graph's code. `stacks`: of each source line its frames, outermost first, as (file, line, function)."""

    def __init__(self, kernel, stacks, ops=(), nodes=(), pre=(), handle=None):
        self.kernel, self.stacks, self.ops, self.nodes, self.pre, self.handle = kernel, stacks, list(ops), list(nodes), list(pre), handle


class Graph:
    def __init__(self, key, calls, frame=(0, 0), attempt=0, rank=None, hashes=None):
        self.key, self.calls, self.frame, self.attempt, self.rank, self.hashes = key, calls, frame, attempt, rank, hashes or {}

    def name(self, call):
        return call.kernel if call.handle is None else f"{call.kernel}:{call.handle}"

    def code(self, handles=True):
        out = ["# AOT ID: ['0_inference']", "import torch", "async_compile = AsyncCompile()", ""]
        for kernel in dict.fromkeys(c.kernel for c in self.calls if c.kernel.startswith("triton_")):
            first = next(c for c in self.calls if c.kernel == kernel)
            if kernel in self.hashes:
                out.append(f"# kernel path: /tmp/torchinductor_x/{self.hashes[kernel][1:3]}/{self.hashes[kernel]}.py")
            out += [self.sources(first), "# Source node to ATen node mapping:", f"#   {', '.join(first.pre)} => {', '.join(first.nodes)}",
                    f"{kernel} = async_compile.triton('{kernel}', '''", "import triton", "@triton.jit", f"def {kernel}(in_ptr0, xnumel, XBLOCK : tl.constexpr):",
                    "    tmp0 = tl.load(in_ptr0 + (x0), xmask)", "''', device_str='cuda')", ""]
        out += ["async_compile.wait(globals())", "def call(self, args):", "    with torch.cuda._DeviceGuard(0):"]
        for c in self.calls:
            out.append("        buf0 = empty_strided_cuda((8, 8), (8, 1), torch.float32)")
            if c.ops or c.pre:
                out.append("        " + self.sources(c))
            if handles and c.handle is not None:
                out.append(f"        # [Provenance debug handles] {self.name(c)}")
            if c.kernel.startswith("triton_"):
                out += ["        stream0 = get_raw_stream(0)", f"        {c.kernel}.run(arg0_1, buf0, 64, stream=stream0)"]
            elif c.kernel.startswith("torch.ops."):
                out.append(f"        buf1 = {c.kernel}(arg0_1, buf0)")
            else:
                out.append(f"        {c.kernel}(arg0_1, arg1_1, out=buf0)")
            out.append("        del arg0_1")
        return "\n".join(out + ["        return (buf0, )", ""])

    @staticmethod
    def sources(c):
        return f"# Topologically Sorted Source Nodes: [{', '.join(c.pre)}], Original ATen: [{', '.join('aten.' + op for op in c.ops)}]"

    def mapping(self):
        to_post = {self.name(c): c.nodes for c in self.calls}
        pre = {n: [c.pre[min(i, len(c.pre) - 1)]] for c in self.calls for i, n in enumerate(c.nodes)}
        return {"preToPost": {}, "postToPre": pre, "cppCodeToPost": to_post, "postToCppCode": {}, "version": 2.0}

    def traces(self):
        return {self.name(c): ["".join(f'  File "{f}", line {n}, in {fn}\n    x = y\n' for f, n, fn in s) for s in c.stacks] for c in self.calls}

    def text(self, pre=False):
        """The graph as print_readable shows it: each node below a comment with its innermost line."""
        out = ["class GraphModule(torch.nn.Module):" if pre else "class <lambda>(torch.nn.Module):", '    def forward(self, arg0_1: "f32[8, 8]"):']
        for c in self.calls:
            names = c.pre if pre else c.nodes
            for i, name in enumerate(names):
                f, n, fn = c.stacks[min(i, len(c.stacks) - 1)][-1]
                out += [f"         # File: {f}:{n} in {fn}, code: x = y(a, in b)", f'        {name}: "f32[8, 8][8, 1]cuda:0" = torch.ops.aten.add.Tensor(arg0_1, 1.0);  arg0_1 = None']
        return "\n".join(out + ["        return (x,)", ""])


def line(meta, payload=None, graph=None, at="torch/_inductor/debug.py:690"):
    meta = dict(meta)
    if graph:
        meta.update(frame_id=graph.frame[0], frame_compile_id=graph.frame[1], attempt=graph.attempt, **({} if graph.rank is None else {"rank": graph.rank}))
    if payload is not None:
        meta["has_payload"] = hashlib.md5(payload.encode()).hexdigest()
    body = "" if payload is None else "".join("\t" + x + "\n" for x in payload.split("\n"))
    return f"V0521 11:53:00.355000 3076301 {at}] {json.dumps(meta)}\n{body}"


def artifact(name, payload, graph, encoding="json"):
    return line({"artifact": {"name": name, "encoding": encoding}}, payload, graph)


def log(graphs, handles=True, stacks=True, mapping=True, pre=False, keys=True):
    """`pre`: the graph that Dynamo traced comes once for each compiled frame."""
    out, seen = [line({"str": ["/a/model.py", 0]}), line({"dynamo_start": {"stack": []}}, graph=graphs[0])], set()
    for g in graphs:
        if pre and g.frame not in seen:
            same = Graph("", [c for x in graphs if x.frame == g.frame for c in x.calls])
            out.append(line({"dynamo_output_graph": {"sizes": {}}}, same.text(pre=True), g))
            seen.add(g.frame)
        out.append(artifact("fx_graph_runnable", "import torch\n# [Provenance debug handles] nothing:1", g, "string"))
        out.append(artifact("inductor_post_grad_graph", g.text(), g, "string"))
        out.append(line({"inductor_output_code": {"filename": "/tmp/torchinductor_x/ab/cab.py"}}, g.code(handles), g))
        if mapping:
            out.append(artifact("inductor_provenance_tracking_node_mappings", json.dumps(g.mapping()), g))
        if stacks:
            out.append(artifact("inductor_provenance_tracking_kernel_stack_traces", json.dumps(g.traces()), g))
        if keys and g.key:
            out.append(artifact("fx_graph_cache_miss", json.dumps({"key": g.key, "cache_state": "miss", "components": ["a"]}), g))
    return "".join(out)


def tlparse(graphs, folder):
    number = 0
    for g in graphs:
        path = os.path.join(folder, f"-_{g.frame[0]}_{g.frame[1]}_{g.attempt}")
        os.makedirs(path, exist_ok=True)
        for name, text in ((("inductor_post_grad_graph", "txt"), g.text()), (("inductor_output_code_cabc", "html"), "<html>" + g.code()),
                           (("inductor_provenance_tracking_node_mappings", "json"), json.dumps(g.mapping(), indent=2)),
                           (("inductor_provenance_tracking_kernel_stack_traces", "json"), json.dumps(g.traces(), indent=2)),
                           (("fx_graph_cache_miss", "json"), json.dumps({"key": g.key}, indent=2))):
            with open(os.path.join(path, f"{name[0]}_{number}.{name[1]}"), "w") as f:
                f.write(text)
            number += 1


def debug(graphs, folder):
    for i, g in enumerate(graphs):
        path = os.path.join(folder, "run_2026_01_02_pid_7", "torchinductor", f"model__{i}_forward_{2 * i + 1}.{i}")
        os.makedirs(path)
        for name, text in (("fx_graph_transformed.py", g.text()), ("fx_graph_readable.py", "def forward(self): pass"), ("output_code.py", g.code()),
                           ("inductor_provenance_tracking_node_mappings.json", json.dumps(g.mapping())), ("ir_post_fusion.txt", "op0: SchedulerNode")):
            with open(os.path.join(path, name), "w") as f:
                f.write(text)
