"""opscope.torch under `opscope record`, on a real PyTorch: the reports name layer, line, shape and direction."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from annotated import torch
from support import cuda_stub, oracle

if torch:
    import train


# A tool that listens to NVTX alone: it writes down ranges, each with its number or text.
TOOL = """
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
static int push(const char *text) { return printf("push %s\\n", text) < 0; }
static int pop(void) { return printf("pop\\n") < 0; }
static uint64_t start(const char *text) { static uint64_t n = 40; printf("start %s %d\\n", text, (int)++n); return n; }
static void end(uint64_t n) { printf("end %d\\n", (int)n); fflush(stdout); }
int InitializeInjectionNvtx2(const void *(*export)(uint32_t))
{
	const struct { size_t size; int (*table)(int, void ****, unsigned *); } *callbacks = export(1);
	void ***core;
	if (!callbacks->table(1, &core, NULL))
		return 0;
	*core[5] = (void *)start; *core[7] = (void *)end; *core[9] = (void *)push; *core[11] = (void *)pop;
	return 1;
}
"""


@unittest.skipUnless(torch, "torch is not installed")
class Recorded(oracle.Case):
    """Under `opscope record`: reports name layer, line, shape and direction."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.runs = {}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_of(self, kind, *options):
        key = "-".join((kind, *options)).replace('"', "").replace("/", "_")
        if key not in self.runs:
            out = os.path.join(self.folder.name, key)
            env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1", "OPSCOPE_MAX_SIZE": "64000000"}
            p = subprocess.run([oracle.OPSCOPE, "record", "--no-report", "-o", out, "--", sys.executable, train.__file__, kind, *options], env=env,
                               capture_output=True, text=True)
            self.assertEqual(p.returncode, 0, p.stderr)
            self.runs[key] = out, float(p.stdout)
        return self.runs[key]

    def test_result_is_the_same(self):
        for kind in ("resnet", "lstm", "transformer"):
            self.assertEqual(train.train(kind), self.run_of(kind)[1])

    def ops(self, kind, *options):
        return oracle.report("ops", self.run_of(kind, *options)[0], "--limit=0").rows

    def test_layers(self):
        for kind in ("resnet", "lstm", "transformer"):
            with self.subTest(kind):
                model, _ = train.model_of(kind)
                root = type(model).__name__
                rows = {r["layer"]: r for r in oracle.report("layers", self.run_of(kind)[0], "--limit=0").rows}
                optimizer, outside = rows.pop("(optimizer)"), rows.pop("(outside layers)")
                self.assertGreater(optimizer["optimizer_host_ns"], 0)
                self.assertGreater(outside["forward_host_ns"], 0)  # the loss is a function
                # Those that have a forward of their own; a list of modules is never called.
                names = {root + "." + n if n else root: type(m).__name__ for n, m in model.named_modules() if type(m).__name__ != "ModuleList"}
                unused = {n for n in names if n.endswith("out_proj")}  # its weights are used, it is not called
                self.assertEqual({n: r["type"] for n, r in rows.items()}, {n: t for n, t in names.items() if n not in unused})
                leaves = [r for r in rows.values() if r["type"] in ("Conv2d", "Linear", "BatchNorm2d", "LSTM", "Embedding", "LayerNorm", "MultiheadAttention")]
                self.assertTrue(leaves)
                for r in leaves:
                    self.assertEqual(r["calls"], 3)
                    self.assertGreater(r["forward_host_ns"], 0)
                    self.assertGreater(r["backward_host_ns"], 0)

    def test_ops(self):
        rows = {(r["name"], r["direction"]): r for r in self.ops("resnet")}
        for direction in ("forward", "backward"):
            conv = rows["/ResNet/layer1/0/conv2/conv2d", direction]
            self.assertEqual((conv["calls"], conv["shapes"], conv["data_type"]), (3, "<N:4, C:8, H:16, W:16>; <K:8, C:8, R:3, S:3>", "float32"))
            frames = [f for f in conv["stack"].split("\n") if f.startswith(train.__file__)]
            self.assertEqual(self.line_of(frames[-1]), "y = self.bn2(self.conv2(y))")
            second = rows["/ResNet/layer1/0/relu(2)", direction]
            self.assertEqual(self.line_of(second["stack"].split("\n")[-1]), "return F.relu(y + self.short(x))")
        self.assertTrue(any(r["direction"] == "optimizer" and r["type"] == "add_" for r in rows.values()))

    def test_ops_of_other_models(self):
        """The line of the program, and shapes: of the LSTM input, state, and for each layer weights (4 gates of 24) and biases."""
        layers = [f"<96, {n}>; <96, 24>; <96>; <96>" for n in (16, 24)]
        for kind, op, shapes, line in (
                ("lstm", "/Tagger/lstm/lstm", "; ".join(["<4, 7, 16>; <2, 4, 24>; <2, 4, 24>", *layers]), "y, _ = self.lstm(self.words(x))"),
                ("lstm", "/Tagger/words/embedding", "<4, 7>; <50, 16>", "y, _ = self.lstm(self.words(x))"),
                ("lstm", "/Tagger/tags/linear", "<N:4, K:24>; <M:10, K:24>; <10>", "return self.tags(y[:, -1])"),
                ("transformer", "/Translator/encoder/layers/1/linear2/linear", "<4, 7, 64>; <M:32, K:64>; <32>", "return self.out(self.encoder(self.words(x)).mean(1))"),
                ("transformer", "/Translator/encoder/layers/0/norm1/layer_norm", "<4, 7, 32>; <32>; <32>", "return self.out(self.encoder(self.words(x)).mean(1))"),
                ("transformer", "/Translator/mean", "<4, 7, 32>", "return self.out(self.encoder(self.words(x)).mean(1))")):
            rows = {r["direction"]: r for r in self.ops(kind) if r["name"] == op}
            self.assertEqual(set(rows), {"forward", "backward"}, op)
            for row in rows.values():
                self.assertEqual((row["calls"], row["shapes"]), (3, shapes))
                self.assertEqual(self.line_of([f for f in row["stack"].split("\n") if f.startswith(train.__file__)][-1]), line)
        attention = {r["direction"]: r["calls"] for r in self.ops("transformer") if r["name"] == "/Translator/encoder/layers/0/self_attn/multi_head_attention_forward"}
        self.assertEqual(attention["forward"], 3)
        self.assertGreater(attention["backward"], 3)  # a function of Python with many nodes, which a note says
        self.assertRegex("\n".join(oracle.report("ops", self.run_of("transformer")[0]).notes),
                         r"nodes of autograd's graph, .* in 2 of 30 rows they are not as many as forward calls")
        self.assertNotIn("nodes of autograd", "\n".join(oracle.report("ops", self.run_of("lstm")[0]).notes))

    def line_of(self, frame):
        with open(train.__file__) as f:
            return f.read().split("\n")[int(frame.split("(")[1].split(")")[0]) - 1].strip()

    def test_flops(self):
        """By the shapes: of a convolution 2 N K P Q C R S forward, twice that backward."""
        rows = oracle.report("module-flops", self.run_of("resnet")[0], "--limit=0").rows
        model, conv = (next(r for r in rows if r["module"].strip() == name) for name in ("ResNet", "conv1"))
        self.assertEqual(model["unknown_ops"], 0)
        flops = 3 * 2 * 4 * 8 * 16 * 16 * 3 * 9
        self.assertEqual((conv["forward_flops"], conv["backward_flops"]), (flops, 2 * flops))
        rows = oracle.report("module-flops", self.run_of("lstm")[0], "--limit=0").rows
        lstm = next(r for r in rows if r["module"].strip() == "lstm")
        flops = 3 * 2 * 4 * 7 * 4 * 24 * (16 + 24 + 24 + 24)  # calls, steps of the batch, gates of the layers by what they take
        self.assertEqual((lstm["forward_flops"], lstm["backward_flops"], lstm["unknown_ops"]), (flops, 2 * flops, 0))

    def test_coroutines(self):
        """Two tasks, the first of which ends while the second goes on."""
        program = """if 1:
            import asyncio, opscope.torch
            from torch.autograd.profiler import record_function
            opscope.torch.init()
            async def task(text, begun, goes_on):
                with record_function(text):
                    begun.set()
                    await goes_on.wait()
            async def main():
                first, second = asyncio.Event(), asyncio.Event()
                b = asyncio.Event()
                tasks = [asyncio.ensure_future(task(*a)) for a in (("first", asyncio.Event(), first), ("second", b, second))]
                await b.wait()
                for goes_on, t in zip((first, second), tasks):
                    goes_on.set()
                    await t
            asyncio.run(main())"""
        out = os.path.join(self.folder.name, "coroutines")
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run([oracle.OPSCOPE, "record", "--no-report", "-o", out, "--", sys.executable, "-c", program], env=env, check=True, capture_output=True)
        rows = {r["range"]: r for r in oracle.report("nvtx", out).rows}
        code, text, err = oracle.run("sql", out, "SELECT count(*) FROM span WHERE name LIKE '%model_config%'", "--format=csv")
        self.assertEqual((code, text.decode().split()[1:]), (0, ["1"]), err)
        self.assertFalse([n for n in rows if "model_config" in n], "what opscope.torch tells of the program is no range of it")
        self.assertEqual([(rows[n]["style"], rows[n]["calls"]) for n in ("first", "second")], [("StartEnd", 1)] * 2)
        code, text, err = oracle.run("sql", out, "SELECT name FROM span WHERE name IN ('first', 'second') ORDER BY start_ns + dur_ns", "--format=csv")
        self.assertEqual((code, text.decode().split()), (0, ["name", "first", "second"]), err)

    def test_the_end_of_a_profile_is_no_step(self):
        """The step that a profile's last step() begins and its end ends counts in no mean, whoever profiles; without step() there is one."""
        program = """if 1:
            import opscope, opscope.torch, torch
            opscope.torch.init()
            plan = opscope.schedule(wait=0, warmup=0, active=5)
            def run(profile, steps):
                with profile as p:
                    for i in range(steps):
                        torch.ones(2)
                        p.step()
                    with opscope.record_function("after"):
                        pass
            for steps in (2, 0):
                run(torch.profiler.profile(schedule=torch.profiler.schedule(wait=0, warmup=0, active=5)), steps)
                run(opscope.profile(schedule=plan), steps)
                run(opscope.profile(schedule=plan, backend="opscope"), steps)"""
        out = os.path.join(self.folder.name, "ends")
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run([oracle.OPSCOPE, "record", "--no-report", "-o", out, "--", sys.executable, "-c", program], env=env, check=True, capture_output=True)
        code, text, err = oracle.run("sql", out, "SELECT arg(args, 'Recorded') r FROM span WHERE name LIKE 'ProfilerStep#%' ORDER BY start_ns", "--format=json")
        self.assertEqual(code, 0, err)
        whole, cut = [None], ["not to its end"]
        self.assertEqual(json.loads(text)["rows"], [whole, whole, cut] * 3 + [whole] * 3)
        self.assertEqual(sum(r["whole"] for r in oracle.report("steps", out).rows), 9)

    def test_tools_that_listen_to_nvtx(self):
        """Ranges of generators are started and ended by number, those of functions are pushed and popped."""
        compiler = shutil.which("cc")
        if not compiler:
            self.skipTest("no compiler")
        tool = os.path.join(self.folder.name, "tool.so")
        subprocess.run([compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", tool], input=TOOL, text=True, check=True)
        program = """if 1:
            import opscope.torch
            from torch.autograd.profiler import record_function
            def turn(text):
                with record_function(text):
                    yield
            assert opscope.torch.init(stacks=False)
            a, b = turn("a"), turn("b")
            next(a), next(b)
            with record_function("c"):
                a.close()
            b.close()"""
        env = {k: v for k, v in os.environ.items() if k != "OPSCOPE_DIR"}
        env.update(PYTHONPATH=os.pathsep.join(sys.path), NVTX_INJECTION64_PATH=tool)
        p = subprocess.run([sys.executable, "-c", program], env=env, check=True, capture_output=True, text=True)
        lines = [line for line in p.stdout.splitlines() if "model_config" not in line]
        self.assertEqual(lines[lines.index("start a 41"):], ["start a 41", "start b 42", "push c", "end 41", "pop", "end 42"])

    def test_args_of_ranges(self):
        program = """if 1:
            import opscope.torch
            from torch.profiler import record_function
            opscope.torch.init()
            with record_function("part", "batch 7"), record_function("inner"):
                opscope.torch.torch.ones(2)"""
        out = os.path.join(self.folder.name, "args")
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run([oracle.OPSCOPE, "record", "--no-report", "-o", out, "--", sys.executable, "-c", program], env=env, check=True, capture_output=True)
        rows = {r["name"]: r["arguments"] for r in oracle.report("function-events", out, "--limit=0").rows}
        self.assertEqual((rows["part"], rows["inner"]), ('{"Record function args": "batch 7"}', None))

    @unittest.skipUnless(torch and torch.distributed.is_available(), "a torch without torch.distributed")
    def test_collectives_are_communication(self):
        """Those of torch.distributed, of Gloo here; what asks for a rank is none."""
        program = """if 1:
            import sys, opscope.torch
            import torch.distributed as dist
            from torch.profiler import record_function
            torch = opscope.torch.torch
            opscope.torch.init()
            dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=0, world_size=1)
            x = torch.ones(300, 300)
            for i in range(3):
                with record_function(f"ProfilerStep#{i}"):
                    (x @ x).sum()
                    dist.all_reduce(x)
                    dist.broadcast(x, 0)
                    dist.get_rank()
                    dist.barrier()"""
        out = os.path.join(self.folder.name, "collectives")
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run([oracle.OPSCOPE, "record", "--no-report", "-o", out, "--", sys.executable, "-c", program, out + ".store"], env=env, check=True,
                       capture_output=True)
        names = ("torch.distributed.all_reduce", "torch.distributed.broadcast", "torch.distributed.barrier")
        spans = oracle.report("operators", out, "--limit=0", "--per=total").rows
        want = sum(r["host_total_ns"] for r in spans if r["name"] in names)
        roles = {r["role"]: r["total_ns"] for r in oracle.report("overview", out).rows}
        self.assertEqual(roles["Communication"], want)
        self.assertGreater(want, 0)

    def test_emit_nvtx(self):
        """torch's own ranges inside ours: where they are, they link, and nothing is linked twice."""
        stub = cuda_stub()
        # A linear layer has two nodes: the product, and its weights turned around.
        for kind, forward, nodes in (("resnet", "/ResNet/layer1/0/conv2/conv2d", 1), ("transformer", "/Translator/out/linear", 2)):
            with self.subTest(kind):
                out, loss = self.run_of(kind, f'stub="{stub}"')
                self.assertEqual(loss, self.run_of(kind)[1])
                rows = {(r["name"], r["direction"]): r["calls"] for r in oracle.report("ops", out, "--limit=0").rows}
                self.assertEqual((rows[forward, "forward"], rows[forward, "backward"]), (3, 3 * nodes))
                layers = oracle.report("layers", out, "--limit=0")
                linked = next(n for n in layers.notes if n.startswith("backward ops linked"))
                self.assertRegex(linked, r": [1-9]\d+ by sequence number, 0 by a flow alone; not linked 0 ")

    def test_ids_and_functions(self):
        out, _ = self.run_of("lstm", "capture_input_ops=True", "enable_function_stack=True")
        code, text, err = oracle.run("sql", out, "SELECT arg(args, 'callid') c, arg(args, 'input_callids') i, arg(args, 'funcStack') f FROM span "
                                     "WHERE arg(args, 'Op') = 'cross_entropy'", "--format=json")
        self.assertEqual(code, 0, err)
        for row in json.loads(text)["rows"]:
            self.assertEqual(len(json.loads(row[1])), 2)
            self.assertTrue(all(i < int(row[0]) for i in json.loads(row[1])))
            self.assertTrue(row[2].endswith("/train/cross_entropy"), row)
        names = {r["name"] for r in self.ops("lstm", "capture_input_ops=True", "enable_function_stack=True")}
        self.assertTrue(any(n.startswith("/module/train/Tagger::_call_impl/Tagger::forward/") for n in names), names)

    def test_markers_of_the_old_tools(self):
        for compat in ("pyprof", "dlprof"):
            with self.subTest(compat):
                out, _ = self.run_of("resnet", f'compat="{compat}"')
                ops = {r["type"] for r in oracle.report("ops", out, "--limit=0").rows}
                self.assertLessEqual({"conv2d", "batch_norm", "relu", "linear", "cross_entropy"}, ops)


if __name__ == "__main__":
    oracle.main()
