"""`compile` on programs of XLA and engines of TensorRT: planted ranges whose times are known, and a real recording of TensorRT."""
import json
import os
import sqlite3
import tempfile

import labelled
import nsys_db
import oracle
from nsys_db import call, kernel, nvtx
from oracle import Case, data

PROCESS, THREAD, TSL, TENSORRT = 10, 11, 3, 4


def ask(path, *args):
    code, out, err = oracle.run("report", "compile", path, "--steps=all", "--format=json", *args)
    if code:
        raise AssertionError(err.decode())
    doc = json.loads(out)
    return {s["name"]: oracle.Table(s) for s in [{**doc, "name": doc["report"]}] + doc.get("sections", [])}


class Run:
    """Ranges on one thread, on a clock that each piece moves on."""

    def __init__(self):
        self.now, self.rows, self.calls, self.kernels = 100, [], [], []

    def range(self, text, domain, us, *inside):
        """`us`: what it takes besides what is inside."""
        start = self.now
        self.now += 1
        for x in inside:
            x()
        self.now += us - 1
        self.rows.append((start, self.now, text, domain))

    def module(self, name, *inside, us=10, program=1):
        return lambda: self.range(f"XlaModule:#hlo_module={name},program_id={program}#", TSL, us, *inside)

    def thunk(self, op, *inside, us=4, form="Thunk:#hlo_op={}#"):
        return lambda: self.range(form.format(op), TSL, us, *inside)

    def tensorrt(self, name, *inside, us=4):
        return lambda: self.range(name, TENSORRT, us, *inside)

    def launch(self, ns):
        def go():
            n = len(self.calls) + 1
            self.calls.append(call(self.now, self.now + 2, n, PROCESS, THREAD))
            self.now += 2
            self.kernels.append(kernel(1000000 + 1000 * n, 1000000 + 1000 * n + ns, n, PROCESS))
        return go

    def save(self, path):
        domains = [nvtx(1, None, name, PROCESS, THREAD, nsys_db.DOMAIN, domainId=i) for name, i in (("TSL", TSL), ("TensorRT", TENSORRT))]
        nsys_db.make(path, {
            "StringIds": nsys_db.strings("loop_fusion", "cudaLaunchKernel_v7000"), "META_DATA_EXPORT": [{"name": "EXPORT_SCHEMA_VERSION", "value": "3.25.0"}],
            "TARGET_INFO_GPU": nsys_db.sample()["TARGET_INFO_GPU"], "PROCESSES": [{"globalPid": nsys_db.pid(PROCESS), "pid": PROCESS, "name": "train.py"}],
            "CUPTI_ACTIVITY_KIND_KERNEL": self.kernels, "CUPTI_ACTIVITY_KIND_RUNTIME": self.calls,
            "NVTX_EVENTS": domains + [nvtx(a, b, text, PROCESS, THREAD, domainId=d) for a, b, text, d in self.rows]})


class Planted(Case):
    def ask(self, run):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "planted.sqlite")
            run.save(path)
            return ask(path)

    def programs(self, tables):
        return {(r["program"], r["program_id"]): (r["compiler"], r["calls"], r["device_ns"], r["host_ns"]) for r in tables["programs"].rows}

    def ops(self, tables):
        return {(r["program"], r["program_id"], r["op"]): (r["calls"], r["count"], r["device_ns"], r["host_ns"]) for r in tables["program_ops"].rows}

    def test_xla(self):
        """Two modules of one name, an op inside another (a loop), a launch outside of thunks, and work that is none of XLA's."""
        r = Run()
        for _ in range(2):
            r.module("jit_step", r.thunk("fusion.1", r.launch(100)), r.thunk("while.2", r.thunk("fusion.3", r.launch(200), r.launch(300)), r.launch(50)), r.launch(7))()
            r.module("jit_step", r.thunk("fusion.1", r.launch(1000), form="Thunk:#name=jit(step)/add,hlo_op={},hlo_module=jit_step#"), program=2)()
            r.launch(5000)()
        r.range("XlaCompile:#module=jit_step,program_id=2#", TSL, 40)
        tables = self.ask(r)
        self.assertEqual(self.programs(tables), {("jit_step", "1"): ("XLA", 2, 2 * 657, 2 * (10 + 4 + 4 + 4 + 5 * 2)), ("jit_step", "2"): ("XLA", 2, 2000, 2 * (10 + 4 + 2))})
        self.assertEqual(self.ops(tables), {("jit_step", "1", "fusion.1"): (2, 2, 200, 2 * 6), ("jit_step", "1", "while.2"): (2, 2, 100, 2 * 6), ("jit_step", "1", "fusion.3"): (2, 4, 1000, 2 * 8),
                                            ("jit_step", "1", None): (None, 2, 14, None), ("jit_step", "2", "fusion.1"): (2, 2, 2000, 2 * 6)})
        compiled = {r["program_id"]: (r["compiles"], r["compiler_ns"]) for r in tables["programs"].rows}
        self.assertEqual(compiled, {"1": (0, 0), "2": (1, 40)})
        self.assertEqual(tables["compile"].rows, [])
        self.assertIn("device work 13314 ns = of XLA's programs 3314 + of TensorRT's engines 0 + other 10000", tables["programs"].notes)

    def test_xla_without_module(self):
        """Thunks whose module has no range: the module that they name."""
        r = Run()
        r.thunk("fusion.1", r.launch(100), form="Thunk:#hlo_op={},hlo_module=jit_f,program_id=5#")()
        tables = self.ask(r)
        self.assertEqual(self.programs(tables), {("jit_f", "5"): ("XLA", None, 100, None)})
        self.assertEqual(self.ops(tables), {("jit_f", "5", "fusion.1"): (1, 1, 100, 6)})

    def test_tensorrt(self):
        """Engines are told by their first layers; layers of an engine that is being built count nowhere."""
        r = Run()
        r.tensorrt("/conv1/Conv", r.launch(9))()
        for _ in range(3):
            r.tensorrt("ExecutionContext::enqueue", r.tensorrt("/conv1/Conv + /relu1/Relu", r.launch(10)), r.tensorrt("/fc/Gemm", r.launch(20)))()
            r.tensorrt("ExecutionContext::enqueue", r.tensorrt("/head/Conv", r.launch(100), r.launch(200)), r.launch(1))()
        tables = self.ask(r)
        one, two = "ExecutionContext::enqueue: /conv1/Conv + /relu1/Relu", "ExecutionContext::enqueue: /head/Conv"
        self.assertEqual(self.programs(tables), {(one, None): ("TensorRT", 3, 90, 3 * (4 + 4 + 4 + 4)), (two, None): ("TensorRT", 3, 903, 3 * (4 + 4 + 6))})
        self.assertEqual(self.ops(tables), {(one, None, "/conv1/Conv + /relu1/Relu"): (3, 3, 30, 18), (one, None, "/fc/Gemm"): (3, 3, 60, 18), (two, None, "/head/Conv"): (3, 6, 900, 24),
                                            (two, None, None): (None, 3, 3, None)})

    def test_torch_tensorrt(self):
        """The op by which torch runs an engine, in a trace of torch.profiler: no layers are in it, and a note says so."""
        t = labelled.Trace()
        for _ in range(2):
            with t.op("tensorrt::execute_engine", 30):
                t.kernel(50, "sm80_xmma_gemm")
            t.launch("aten::add", 7)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "planted.pt.trace.json.gz")
            t.save(path)
            tables = ask(path)
        self.assertEqual(self.programs(tables)["tensorrt::execute_engine", None][:3], ("TensorRT", 2, 100000))
        self.assertTrue(any("engines are not told apart" in n for n in tables["programs"].notes))

    def test_beside_torch(self):
        """With code of torch.compile the programs are tables of their own behind it."""
        t = labelled.Trace()
        with t.op("Torch-Compiled Region: 0/0", 5):
            with t.op("tensorrt::execute_engine", 30):
                t.kernel(50, "sm80_xmma_gemm")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "planted.pt.trace.json.gz")
            t.save(path)
            tables = ask(path)
        self.assertEqual([r["region"] for r in tables["compile"].rows], ["Torch-Compiled Region: 0/0"])
        self.assertEqual([(r["program"], r["device_ns"]) for r in tables["programs"].rows], [("tensorrt::execute_engine", 50000)])


class Real(Case):
    def test_tensorrt(self):
        """Calls and host time of the engine and of each layer, as sums over the database's rows; three layers stand before the first run, as the recording began within one."""
        path = data("nsys", "tensorrt_poolformer", "poolformer.sqlite")
        db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
        rows = db.execute("select coalesce(text, (select value from StringIds where id = textId)), globalTid, start, end from NVTX_EVENTS "
                          "where eventType = 59 and domainId = (select domainId from NVTX_EVENTS where eventType = 75 and text = 'TensorRT')").fetchall()
        db.close()
        runs = [x for x in rows if x[0] == "ExecutionContext::execute"]
        run, want = (len(runs), sum(end - start for _, _, start, end in runs)), {}
        for text, tid, start, end in rows:
            if text != "ExecutionContext::execute" and any(t == tid and a <= start and end <= b for _, t, a, b in runs):
                n, ns = want.get(text, (0, 0))
                want[text] = (n + 1, ns + end - start)
        tables = ask(path)
        self.assertEqual([(r["compiler"], r["calls"], r["host_ns"]) for r in tables["programs"].rows], [("TensorRT", *run)])
        self.assertEqual({r["op"]: (r["calls"], r["host_ns"]) for r in tables["program_ops"].rows}, want)


if __name__ == "__main__":
    oracle.main()
