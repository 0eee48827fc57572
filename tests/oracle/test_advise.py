"""The detectors, each on a run that has its problem, one that has not, and one that does not say."""
import json

import oracle
from oracle import Case

STEP = 100000
V100 = {"id": 0, "name": "Tesla V100", "totalGlobalMem": 1 << 34, "computeMajor": 7, "computeMinor": 0, "warpSize": 32}


def span(name, start, dur, ext=0, cat="cpu_op", tid=1):
    return {"ph": "X", "cat": cat, "name": name, "pid": 10, "tid": tid, "ts": start, "dur": dur, "args": {"External id": ext}}


def launch(corr, start, ext):
    return {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 10, "tid": 1, "ts": start, "dur": 5,
            "args": {"correlation": corr, "External id": ext}}


def kernel(name, corr, start, dur, ext, device=0):
    return {"ph": "X", "cat": "kernel", "name": name, "pid": device, "tid": 7, "ts": start, "dur": dur,
            "args": {"device": device, "stream": 7, "correlation": corr, "External id": ext}}


def run_of(name, op, dur, device=0, corr=1, start=1000):
    """An op that launches one kernel."""
    return [span(op, start, 20, corr), launch(corr, start + 5, corr), kernel(name, corr, start + 100, dur, corr, device)]


def step(*events):
    return [span("ProfilerStep#1", 0, STEP, 999, cat="user_annotation"), *(e for group in events for e in group)]


def memory(total, device=0):
    return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 10, "tid": 1, "ts": 50, "s": "t",
            "args": {"Device Type": 1, "Device Id": device, "Addr": 1, "Bytes": 512, "Total Allocated": total, "Total Reserved": total}}


BUSY = run_of("elementwise_kernel", "aten::add", 95000)


class Advise(Case):
    def advise(self, events, devices=(V100,), **top):
        doc = {"schemaVersion": 1, "deviceProperties": list(devices), **top, "traceEvents": events}
        code, out, err = oracle.run("advise", "-", "--format=json", stdin=json.dumps(doc).encode())
        self.assertEqual(code, 0, err)
        return oracle.Table(json.loads(out))

    def found(self, *args, **kw):
        return {r["detector"]: r for r in self.advise(*args, **kw).rows}

    def not_looked(self, table, detector):
        return [n for n in table.notes if n.startswith(detector + " could not look")]

    def test_nothing(self):
        self.assertEqual(self.found(step(BUSY, [memory(1 << 20)])), {})

    def test_dataloader(self):
        loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
        r = self.found(step([span(loader, 10, 800)], BUSY))
        self.assertNotIn("dataloader-bound", r)
        for dur, severity in ((6000, "medium"), (60000, "high")):
            r = self.found(step([span(loader, 10, dur)], run_of("k", "aten::add", 20000, start=70000)))["dataloader-bound"]
            self.assertEqual((r["severity"], r["gain_ns_per_step"]), (severity, dur * 1000))
            self.assertIn(f"{100 * dur / STEP:.1f} % of the step time is in DataLoader", r["problem"])

    def test_dataloader_hidden_by_the_gpu(self):
        self.assertEqual(self.found(step([span("enumerate(DataLoader)#x.__next__", 10000, 60000)], BUSY)), {})

    def test_data_parallel(self):
        dp = [span("DataParallel.forward", 500, 3000)]
        second = run_of("k2", "aten::mul", 90000, device=1, corr=2, start=2000)
        r = self.found(step(dp, BUSY, second))["data-parallel"]
        self.assertIn("2 GPUs", r["problem"])
        self.assertNotIn("data-parallel", self.found(step(dp, BUSY)))
        self.assertNotIn("data-parallel", self.found(step(BUSY, second)))

    def test_ddp_without_nccl(self):
        ddp = [span("DistributedDataParallel.forward", 500, 3000)]
        self.assertIn("ddp-without-nccl", self.found(step(ddp, BUSY)))
        self.assertIn("ddp-without-nccl", self.found(step(ddp, BUSY), distributedInfo={"backend": "gloo", "rank": 0}))
        self.assertNotIn("ddp-without-nccl", self.found(step(ddp, BUSY), distributedInfo={"backend": "nccl", "rank": 0}))
        self.assertNotIn("ddp-without-nccl", self.found(step(ddp, BUSY, run_of("ncclKernel_AllReduce", "x", 9, corr=3))))
        self.assertNotIn("ddp-without-nccl", self.found(step(BUSY)))
        old = dict(V100, computeMajor=3, computeMinor=0)
        self.assertNotIn("ddp-without-nccl", self.found(step(ddp, BUSY), devices=[old]))
        self.assertTrue(self.not_looked(self.advise(step(ddp, BUSY), devices=[]), "ddp-without-nccl"))

    def test_communication(self):
        comm = run_of("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "nccl:all_reduce", 40000, corr=2, start=40000)
        add = run_of("elementwise_kernel", "aten::add", 20000)
        r = self.found(step(add, comm))["communication-bound"]
        self.assertEqual(r["severity"], "high")
        self.assertGreaterEqual(r["gain_ns_per_step"], 40000000)
        self.assertNotIn("communication-bound", self.found(step(BUSY, comm)))

    def test_low_utilization(self):
        r = self.found(step(run_of("k", "aten::add", 40000)))["low-gpu-utilization"]
        self.assertIn("GPU 0 40.0 %", r["problem"])
        self.assertEqual((r["severity"], r["gain_ns_per_step"]), ("medium", 60000000))
        table = self.advise([span("aten::add", 0, 10)])
        self.assertTrue(self.not_looked(table, "low-gpu-utilization"))

    def test_tensor_cores(self):
        slow = step(run_of("volta_sgemm_128x64_nn", "aten::mm", 60000), run_of("elementwise_kernel", "aten::add", 20000, corr=2, start=70000))
        r = self.found(slow)["no-tensor-cores"]
        self.assertIn("Kernels with 75 % of the time", r["problem"])
        self.assertEqual(r["gain_ns_per_step"], 60000000)
        fast = step(run_of("volta_h884gemm_128x64_nn", "aten::mm", 60000))
        self.assertNotIn("no-tensor-cores", self.found(fast))
        self.assertNotIn("no-tensor-cores", self.found(slow, devices=[dict(V100, computeMajor=6)]))
        self.assertNotIn("no-tensor-cores", self.found(slow, devices=[dict(V100, name="AMD Instinct MI300X", computeMajor=9, warpSize=64)]))
        self.assertTrue(self.not_looked(self.advise(slow, devices=[]), "no-tensor-cores"))

    def test_memory(self):
        total = V100["totalGlobalMem"]
        r = self.found(step(BUSY, [memory(total * 95 // 100)]))["memory-nearly-full"]
        self.assertIn("95.0 % of 16.00 GiB", r["problem"])
        self.assertNotIn("memory-nearly-full", self.found(step(BUSY, [memory(total * 9 // 10)])))
        self.assertTrue(self.not_looked(self.advise(step(BUSY)), "memory-nearly-full"))

    def test_worst_first(self):
        order = ["high", "medium", "low", "info"]
        rows = self.advise(step([span("enumerate(DataLoader)#x.__next__", 10, 60000)], run_of("volta_sgemm", "aten::mm", 20000, start=70000))).rows
        self.assertEqual([r["severity"] for r in rows], sorted((r["severity"] for r in rows), key=order.index))
        self.assertGreaterEqual(len(rows), 3)


if __name__ == "__main__":
    oracle.main()
