"""opscope.torch under `opscope record`, in programs of a few lines: workers, names of places, lines."""
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

from support import oracle

try:
    import torch
except ImportError:
    torch = None
else:
    import opscope


@unittest.skipUnless(torch, "torch is not installed")
class Runs(oracle.Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = folder.name

    def record(self, text, status=0):
        """Runs the program; the capture."""
        program, out = os.path.join(self.dir, "program.py"), os.path.join(self.dir, "run")
        with open(program, "w") as f:
            f.write(textwrap.dedent(text))
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1", "OPSCOPE_MAX_SIZE": "64000000"}
        p = subprocess.run([oracle.OPSCOPE, "record", "--no-report", "-o", out, "--", sys.executable, program], env=env, capture_output=True, text=True)
        self.assertEqual(p.returncode, status, p.stderr)
        return out

    def problems(self, path):
        return {r["kind"]: r["count"] for r in oracle.info(path).section("problems").rows}


class Workers(Runs):
    def exits(self, text, workers):
        out = self.record(text)
        self.assertEqual(len([n for n in os.listdir(out) if n.endswith(".seg")]), 1 + workers)
        return {k: n for k, n in self.problems(out).items() if k.endswith("exit")}

    def test_of_a_data_loader(self):
        """They leave by os._exit() when all is well: nothing is wrong."""
        self.assertEqual(self.exits("""
            import torch, torch.utils.data._utils
            import opscope.torch

            torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL = 300  # for so long it waits before it kills a worker

            class Squares(torch.utils.data.Dataset):
                def __len__(self):
                    return 4
                def __getitem__(self, i):
                    return torch.nn.functional.relu(torch.full((2,), float(i)))

            opscope.torch.init()
            for batch in torch.utils.data.DataLoader(Squares(), num_workers=2):
                pass
            """, workers=2), {})

    def test_that_are_killed(self):
        """One is killed, one fails with an error, one leaves with a status, one is well: of the first alone is told."""
        self.assertEqual(self.exits("""
            import multiprocessing, os, signal, sys
            import torch
            import opscope.torch

            def work(end):
                torch.add(torch.ones(2), 1)
                end()

            opscope.torch.init()
            ends = (lambda: os.kill(os.getpid(), signal.SIGKILL)), (lambda: 1 / 0), (lambda: sys.exit(3)), (lambda: None)
            for end, status in zip(ends, (-9, 1, 3, 0)):
                worker = multiprocessing.get_context("fork").Process(target=work, args=(end,))
                worker.start()
                worker.join()
                assert worker.exitcode == status
            """, workers=4), {"child-no-exit": 1})


class Names(Runs):
    def test_example_of_the_guide(self):
        """a calls b twice, b calls conv1d twice, three times over: four ops, called three times each, forward and backward."""
        out = self.record("""
            import torch
            import opscope.torch

            x, w = torch.ones(1, 2, 8, requires_grad=True), torch.ones(3, 2, 3)

            def b():
                y = torch.conv1d(x, w)
                return y, torch.conv1d(x, w)

            def a():
                y = b()
                return y + b()

            opscope.torch.init(enable_function_stack=True)
            for _ in range(3):
                torch.autograd.backward(a(), [torch.ones(1, 3, 6)] * 4)
            """)
        rows = [r for r in oracle.report("ops", out, "--limit=0").rows if r["type"] == "conv1d"]
        want = ["/a/b/conv1d", "/a/b/conv1d(2)", "/a/b(2)/conv1d", "/a/b(2)/conv1d(2)"]
        for direction in ("forward", "backward"):
            found = {r["name"]: r["calls"] for r in rows if r["direction"] == direction}
            self.assertEqual(found, {"/module" + name: 3 for name in want})
        rows = [r for r in oracle.report("ops", out, "--compat=dlprof", "--limit=0").rows if r["op_type"] == "conv1d"]
        self.assertEqual({(r["op_name"], r["direction"]) for r in rows},  # as DLProf prints numbers
                         {("/module" + name.replace("(", "[").replace(")", "]"), d) for name in want for d in ("fprop", "bprop")})

    def test_functions_of_modules(self):
        """torch.linalg, torch.fft, torch.special and torch.sparse have ops with shapes, and FLOPs where a rule knows them."""
        out = self.record("""
            import torch
            import opscope.torch

            x, sparse = torch.ones(4, 8), torch.eye(4).to_sparse()
            opscope.torch.init()
            torch.linalg.vector_norm(x)
            torch.linalg.cond(x)
            torch.fft.fft(x)
            torch.special.erfcx(x)
            torch.sparse.mm(sparse, x)
            """)
        rows = {r["type"]: r["shapes"] for r in oracle.report("ops", out, "--limit=0").rows}
        self.assertEqual(rows, {"vector_norm": "<4, 8>", "cond": "<4, 8>", "fft": "<4, 8>", "erfcx": "<4, 8>", "mm": "<4, 4>; <4, 8>"})
        flops = {r["op"]: r["flops"] for r in oracle.report("costs", out, "--limit=0").rows}
        self.assertEqual(flops, {"torch.linalg.vector_norm": 64, "torch.fft.fft": 5 * 32 * 3, "torch.special.erfcx": 32})


class Lines(Runs):
    def test_of_opscope_profile(self):
        """Frames of our own package are not the program's: what opscope.profile itself says has the line of the program that called it."""
        x = torch.ones(4, 4)
        with opscope.profile(with_stack=True, schedule=opscope.schedule(wait=0, warmup=1, active=2, repeat=1)) as prof:
            for _ in range(3):
                torch.mm(x, x)
                prof.step()
        lines = [r["python_line"] for r in prof.report("operators", group_by="line")]
        self.assertEqual({line.rsplit("/", 1)[-1].split("(")[0] for line in lines}, {os.path.basename(__file__)})

    def test_of_annotations(self):
        """The same of opscope.profile and opscope.torch together, under a recorder."""
        out = self.record("""
            import torch
            import opscope
            import opscope.torch

            opscope.torch.init()
            x = torch.ones(4, 4)
            with opscope.profile(schedule=opscope.schedule(wait=0, warmup=1, active=1)) as prof:
                for _ in range(2):
                    with opscope.record_function("mine"):
                        torch.mm(x, x)
                    prof.step()
            """)
        ops = oracle.report("ops", out, "--limit=0").rows
        # The profile's own sample recording is no work of the program.
        self.assertEqual({r["name"] for r in ops}, {"/ones", "/mine/mm"})
        stacks = [r["stack"] for r in ops]
        self.assertTrue(any("program.py" in s for s in stacks))
        self.assertEqual([s for s in stacks if "opscope/" in s], [])


if __name__ == "__main__":
    oracle.main()
