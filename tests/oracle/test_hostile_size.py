"""Traces made so that a careless search takes quadratic time. Each is answered within a few times what reading it takes; the bound
is generous, so that a slow machine or a build with sanitizers passes, and a quadratic search, which takes minutes, does not."""
import json
import os
import tempfile

import labelled
import labelled_compute
import oracle
from oracle import Case

BOUND_S = 8  # of the CPU


def event(ph, cat, name, ts, **more):
    return {"ph": ph, "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, **more}


class HostileSize(Case):
    def ask(self, events, *command, **top):
        doc = json.dumps({"schemaVersion": 1, **top, "traceEvents": events}, separators=(",", ":")).encode()
        start = oracle.children_cpu_s()
        code, out, err = oracle.run(*command, "-", "--format=json", stdin=doc, timeout=30 * BOUND_S)
        self.assertEqual(code, 0, err)
        self.assertLess(oracle.children_cpu_s() - start, BOUND_S)
        return oracle.Table(json.loads(out))

    def test_bytes_of_chains(self):
        """Chains of elementwise kernels on 2^48 complex numbers each: the bytes of all do not fit int64. They wrapped: to a small number, or to one
        below zero, with which the chains were not told of."""
        most, types = [[1 << 24, (1 << 24) - 1]] * 2, ["c10::complex<double>"] * 2
        for ops in (800, 3000):
            t = labelled.Trace(dict(labelled.A100, name="a GPU whose bandwidth is not known"))
            for _ in t.steps():
                for _ in range(ops):
                    labelled_compute.op(t, 30, "aten::mul", most, types)
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "x.pt.trace.json.gz")
                t.save(path)
                row, = self.found(path)
            self.assertIn("do not fit 64 bits", row["evidence"])
            self.assertNotIn("GiB", row["evidence"])

    def found(self, path):
        code, out, err = oracle.run("advise", path, "--format=json")
        self.assertEqual(code, 0, err)
        return [r for r in oracle.Table(json.loads(out)).rows if r["detector"] == "unfused-elementwise"]

    def test_devices(self):
        """150 k kernels on 100 k devices, described in an order of their own."""
        n, kernels = 100000, 150000
        properties = [{"id": (i * 7919) % n, "name": f"g{i % 1000}", "numSms": 10} for i in range(n)]
        events = [event("X", "kernel", "k", 10 * i, dur=5, args={"device": i * 31 % n, "stream": 1, "grid": [5, 1, 1]})
                  for i in range(kernels)]
        rows = self.ask(events, "report", "devices", deviceProperties=properties).rows
        self.assertEqual(sorted(r["device"] for r in rows), list(range(n)))
        self.assertEqual(sum(r["kernels"] for r in rows), kernels)
        table = self.ask(events, "info", deviceProperties=properties).section("devices")
        self.assertEqual(sum(r["operations"] for r in table.rows), kernels)

    def test_kernels_by_launch(self):
        """Each kernel's device is looked up by its launch configuration."""
        n = 100000
        properties = [{"id": (i * 7919) % n, "name": "g", "numSms": 10} for i in range(n)]
        events = [event("X", "kernel", f"k{i % 9}", 10 * i, dur=5, args={"device": i * 31 % n, "stream": 1, "grid": [5, 1, 1]})
                  for i in range(150000)]
        self.assertEqual(len(self.ask(events, "report", "kernels", deviceProperties=properties).rows), 9)

    def test_memory_devices(self):
        """400 k memory events of 32 k devices, all described."""
        properties = [{"id": i, "name": "gpu", "totalGlobalMem": 1 << 30} for i in range(32000)]
        events = [event("i", "cpu_instant_event", "[memory]", i, s="t",
                        args={"Device Type": 1, "Device Id": i % 32000, "Addr": i, "Bytes": 64}) for i in range(400000)]
        self.ask(events, "advise", deviceProperties=properties)

    def test_collectives_of_devices(self):
        """120 k devices with a collective and other work each."""
        events = []
        for i in range(120000):
            events += [event("X", "kernel", name, 10 * i, dur=dur, args={"device": i, "stream": dur})
                       for name, dur in (("k", 4), ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", 6))]
        self.assertEqual(sum(r["calls"] for r in self.ask(events, "report", "comm").rows), 120000)

    def test_waits_of_one_id(self):
        """180 k calls that wait and their records, all with one correlation id."""
        events = []
        for i in range(180000):
            events += [event("X", "cuda_runtime", "cudaStreamSynchronize", 20 * i, dur=9, args={"correlation": 5}),
                       dict(event("X", "cuda_sync", "Stream Sync", 20 * i + 1, dur=7, args={"correlation": 5, "device": 0, "stream": 7}), pid=0, tid=7)]
        rows = self.ask(events, "report", "waits").rows
        self.assertEqual([(r["evidence"], r["calls"], r["total_ns"]) for r in rows], [("record", 180000, 1260000000)])

    MODULE = event("X", "python_function", "nn.Module: Linear_0", 0, dur=10 ** 7, args={"Python id": 1, "Python module id": 0})

    def test_arrows_to_one_place(self):
        """150 k ops that start together, and as many arrows to them."""
        n = 150000
        events = [self.MODULE]
        events += [event("X", "cpu_op", "aten::add", 100, dur=5, args={"External id": i + 1}) for i in range(n)]
        for i in range(n):
            events += [event("s", "fwdbwd", "fwdbwd", 100, id=i), event("f", "fwdbwd", "fwdbwd", 100, id=i, bp="e")]
        self.ask(events, "report", "modules")

    def test_one_sequence_number_everywhere(self):
        """3000 threads and 100 k backward ops have one sequence number."""
        events = [self.MODULE]
        events += [dict(event("X", "cpu_op", "aten::mul", 1, dur=5, args={"External id": i + 1, "Sequence number": 1,
                                                                         "Fwd thread id": 0}), tid=i + 2) for i in range(3000)]
        events += [event("X", "cpu_op", "MulBackward0", 100 + 10 * i, dur=5,
                         args={"External id": 5000 + i, "Sequence number": 1, "Fwd thread id": 1 + i % 7}) for i in range(100000)]
        self.ask(events, "report", "modules")

    def test_deep_annotations(self):
        """100 k of the user's ranges, one in another, and as many kernels of the innermost: each looks for an op around it."""
        n = 100000
        events = [event("X", "user_annotation", f"r{i % 100}", i, dur=10 * n - 2 * i) for i in range(n)]
        for i in range(n):
            events += [event("X", "cuda_runtime", "cudaLaunchKernel", n + 2 * i, dur=1, args={"correlation": i + 1}),
                       event("X", "kernel", "k", 20 * n + 10 * i, dur=5, args={"device": 0, "stream": 7, "correlation": i + 1})]
        self.assertEqual(sum(r["calls"] for r in self.ask(events, "report", "kernels").rows), n)
        self.ask(events, "report", "gpu-timeline", "--group-by=recompute")


if __name__ == "__main__":
    oracle.main()
