"""The TensorBoard plugin's Distributed view: the numbers of its unit tests, and its answers about eight real ranks, through reports and endpoints."""
import json
import os
import shutil
import tempfile

import oracle
from oracle import data, report
from served import Server

ROOT = "/data/plugin/pytorch_profiler/"
TP8 = ("multirank", "megatron_a100_tp8")


def op(name, ts, dur, ext, shape=None, tid="1", cat="cpu_op", kind="float"):
    args = {"External id": ext, **({} if shape is None else {"Input Dims": [shape], "Input type": [kind]})}
    return {"ph": "X", "cat": cat, "name": name, "pid": 23803, "tid": tid, "ts": ts, "dur": dur, "args": args}


def kernel(name, ts, dur, ext, stream=7):
    return {"ph": "X", "cat": "Kernel", "name": name, "pid": 0, "tid": f"stream {stream}", "ts": ts, "dur": dur, "args": {"device": 0, "correlation": ts, "external id": ext}}


BROADCAST, REDUCE = [53120], [2049000]
# As in the plugin's test_profiler.py, TestDistributed: two workers, what it expects of them.
NCCL = [[op("nccl:broadcast", 0, 75, 146, BROADCAST), kernel("ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclWorkElem)", 16, 16, 146, 16),
         op("aten::add_", 100, 20, 24504, [1000]), kernel("vectorized_elementwise_kernel", 130, 161, 24504),
         op("nccl:all_reduce", 160, 75, 2513, REDUCE, tid="2"), kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", 162, 1556, 2513, 16)],
        [op("nccl:broadcast", 0, 20, 146, BROADCAST), kernel("ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclWorkElem)", 8, 31, 146, 16),
         op("aten::add_", 25, 20, 24504, [1000]), kernel("vectorized_elementwise_kernel", 30, 161, 24504),
         op("nccl:all_reduce", 160, 75, 2513, REDUCE, tid="2"), kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", 562, 1058, 2513, 16)]]


def gloo(first, second):
    """Three broadcasts and two all-reduces on each worker, and what computes beside them."""
    return [[op("gloo:broadcast", 16, 38, 165, BROADCAST), op("gloo:broadcast", 25, 36, 166, BROADCAST, tid="3"), op("gloo:broadcast", 66, 18, 167, BROADCAST),
             op("aten::add_", 0, 20, 24504, [1000], tid="2"), first, op("gloo:all_reduce", 110, 18, 2513, REDUCE, tid="3"), op("gloo:all_reduce", 120, 36, 2516, REDUCE)],
            [op("gloo:broadcast", 20, 28, 256, BROADCAST), op("gloo:broadcast", 28, 30, 257, BROADCAST, tid="3"), op("gloo:broadcast", 77, 6, 258, BROADCAST),
             op("aten::add_", 0, 30, 24504, [1000], tid="2"), second, op("gloo:all_reduce", 88, 38, 2513, REDUCE, tid="3"), op("gloo:all_reduce", 130, 16, 2516, REDUCE)]]


GLOO_OPS = [[["gloo:broadcast", 3, 637440, 212480, 63, 21, 41, 14], ["gloo:all_reduce", 2, 16392000, 8196000, 46, 23, 34, 17]],
            [["gloo:broadcast", 3, 637440, 212480, 44, 15, 44, 15], ["gloo:all_reduce", 2, 16392000, 8196000, 54, 27, 34, 17]]]
CASES = {
    "nccl": (NCCL, [[30, 75, 75, 55], [121, 40, 74, 0]], [[1169, 464], [1169, 3]],
             [[["nccl:broadcast", 1, 212480, 212480, 75, 75, 36, 36], ["nccl:all_reduce", 1, 8196000, 8196000, 1558, 1558, 1133, 1133]],
              [["nccl:broadcast", 1, 212480, 212480, 39, 39, 36, 36], ["nccl:all_reduce", 1, 8196000, 8196000, 1133, 1133, 1133, 1133]]]),
    "gloo_gpu": (gloo(kernel("vectorized_elementwise_kernel", 30, 101, 24504), kernel("vectorized_elementwise_kernel", 70, 70, 24504)),
                 [[31, 70, 39, 16], [16, 54, 44, 32]], [[75, 34], [78, 20]], GLOO_OPS),
    "gloo_cpu": (gloo(op("aten::mul", 30, 101, 24505, tid="2"), op("aten::mul", 70, 70, 24505, tid="2")),
                 [[47, 74, 35, 0], [36, 64, 34, 12]], [[75, 34], [78, 20]], GLOO_OPS),
}
OVERLAP = ("computation_us", "overlapping_us", "communication_us", "other_us")
WAIT = ("data_transfer_us", "synchronizing_us")
OPS = ("name", "calls", "total_bytes", "avg_bytes", "total_latency_us", "avg_latency_us", "data_transfer_us", "avg_data_transfer_us")


class Distributed(oracle.Case):
    def setUp(self):
        super().setUp()
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)

    def write(self, workers, name="worker{}.pt.trace.json", folder=None, **more):
        folder = folder or tempfile.mkdtemp(dir=self.tmp)
        for i, events in enumerate(workers):
            with open(os.path.join(folder, name.format(i)), "w") as f:
                f.write(json.dumps({"distributedInfo": {"rank": i, "world_size": len(workers)}, **more, "traceEvents": events}))
        return folder

    def serve(self, folder):
        if oracle.run("help")[1].find(b"\n  serve ") < 0:
            self.skipTest("built without libmicrohttpd")
        server = Server(self, folder)
        run = os.path.basename(folder)
        return lambda path, status=200, **args: server.get(ROOT + path, status, **{"run": run, **args})

    def ask(self, name, folder):
        return report(name, folder, "--compat=tb-plugin")

    def rows(self, table, columns, **key):
        return [[r[c] for c in columns] for r in table.rows if all(r[k] == v for k, v in key.items())]


class OfThePluginsTests(Distributed):
    def test_reports(self):
        for case, (workers, overlap, wait, ops) in CASES.items():
            with self.subTest(case):
                folder = self.write(workers)
                for step in ("0", "all"):
                    self.assertEqual(self.rows(self.ask("overlap", folder), OVERLAP, step=step), overlap)
                    self.assertEqual(self.rows(self.ask("ranks", folder), WAIT, step=step), wait)
                for rank in (0, 1):
                    self.assertEqual(self.rows(self.ask("collectives", folder), OPS, rank=rank), ops[rank])

    def test_endpoints(self):
        for case, (workers, overlap, wait, ops) in CASES.items():
            with self.subTest(case):
                ask = self.serve(self.write(workers))
                span = {"span": "default"}
                self.assertIn("Distributed", ask("views"))
                self.assertEqual(ask("workers", view="Distributed"), ["All"])
                self.assertEqual(ask("workers", view="Overview"), ["worker0", "worker1"])
                self.assertEqual(ask("spans", worker="All"), ["default"])
                by_step = lambda values: {step: {f"worker{i}": v for i, v in enumerate(values)} for step in ("all", "0")}
                self.assertEqual(ask("distributed/overlap", **span)["data"], by_step(overlap))
                self.assertEqual(ask("distributed/waittime", **span)["data"], by_step(wait))
                self.assertEqual({w: t["rows"] for w, t in ask("distributed/commops", **span)["data"].items()}, {f"worker{i}": v for i, v in enumerate(ops)})
                self.assertIsNone(ask("distributed/gpuinfo", **span))

    def test_an_annotation_is_an_op(self):
        folder = self.write([[op("nccl:all_reduce", 1686070155939447, 71, 647, cat="user_annotation"), op("aten::add", 1686070155939447, 100, 1)]])
        self.assertEqual(self.rows(self.ask("collectives", os.path.join(folder, "worker0.pt.trace.json")), OPS), [["nccl:all_reduce", 1, 0, 0, 71, 71, 71, 71]])


class NoView(Distributed):
    def refused(self, workers, why):
        folder = self.write(workers)
        for name in ("overlap", "ranks", "collectives"):
            code, out, err = oracle.run("report", name, folder, "--compat=tb-plugin")
            self.assertEqual((code, out, err.count(b"\n")), (1, b"", 1), err)
            self.assertIn(why, err.decode())
        ask = self.serve(folder)
        self.assertNotIn("Distributed", ask("views"))
        self.assertEqual(ask("workers", view="Distributed"), [])
        ask("spans", 404, worker="All")
        for path in ("gpuinfo", "overlap", "waittime", "commops"):
            self.assertIn(why, ask("distributed/" + path, 404, span="default")["error"])

    def test_both_libraries(self):
        self.refused([events + [op("gloo:broadcast", 300, 5, 1)] for events in NCCL], "both NCCL and Gloo")

    def test_a_worker_without(self):
        self.refused([NCCL[0], [e for e in NCCL[1] if e["cat"] == "cpu_op" and "nccl" not in e["name"]]], "worker1 has no communication op")

    def test_unequal_numbers(self):
        self.refused([NCCL[0], NCCL[1] + [op("nccl:reduce", 300, 5, 1)]], "worker1 has 3 communication ops, and worker0 has 2")

    def test_unequal_kernels(self):
        self.refused([NCCL[0], [e for e in NCCL[1] if "AllReduce" not in e["name"]]], "communication op 2 of worker1 has 0 kernels, and that of worker0 has 1")


class Rules(Distributed):
    """What its source says, and no test of its own."""

    def test_an_op_across_the_border_of_a_step(self):
        steps = [op("ProfilerStep#1", 0, 100, 1), op("ProfilerStep#2", 100, 100, 2)]
        folder = self.write([steps + [op("gloo:reduce", 10, 20, 3), op("gloo:reduce", 95, 10, 4), op("gloo:reduce", 150, 20, 5)]])
        path = os.path.join(folder, "worker0.pt.trace.json")
        self.assertEqual([[r["step"], r["data_transfer_us"]] for r in self.ask("ranks", path).rows], [["all", 16], ["1", 20], ["2", 20], ["null", 10]])
        self.assertEqual([[r["step"], r["data_transfer_us"]] for r in report("ranks", path, "--compat=tb-plugin", "--steps=2").rows], [["all", 20], ["2", 20]])
        self.assertEqual(self.rows(report("collectives", path, "--compat=tb-plugin", "--steps=1..2"), OPS)[0][:2], ["gloo:reduce", 2])
        self.assertEqual(self.rows(self.ask("collectives", path), OPS)[0][:2], ["gloo:reduce", 3])

    def test_one_op_for_each_external_id(self):
        """Kineto repeats an annotation on the device: that one counts, and has no shape."""
        events = [op("nccl:all_reduce", 0, 50, 7, REDUCE, cat="user_annotation"), op("aten::add", 0, 300, 1), kernel("ncclDevKernel_AllReduce", 60, 100, 9, 16),
                  {**op("nccl:all_reduce", 60, 100, 7, cat="gpu_user_annotation", tid=16), "pid": 0}]
        path = os.path.join(self.write([events]), "worker0.pt.trace.json")
        self.assertEqual(self.rows(self.ask("collectives", path), OPS), [["nccl:all_reduce", 1, 0, 0, 100, 100, 100, 100]])

    def test_sizes(self):
        sizes = {"long int": 8, "float": 4, "int": 4, "c10::Half": 2, "c10::BFloat16": 2, "unsigned char": 1, "double": 0}
        for kind, size in sizes.items():
            path = os.path.join(self.write([[op("nccl:reduce", 0, 5, 1, [3, 7], kind=kind)]]), "worker0.pt.trace.json")
            self.assertEqual(self.rows(self.ask("collectives", path), ("total_bytes",)), [[21 * size]], kind)
        for dims in ([[]], [[1 << 40, 1 << 40]], [["x"]], "text", [[[2, 3]]]):
            event = op("nccl:reduce", 0, 5, 1)
            event["args"].update({"Input Dims": dims, "Input type": ["float"]})
            path = os.path.join(self.write([[event]]), "worker0.pt.trace.json")
            self.assertEqual(self.rows(self.ask("collectives", path), ("total_bytes",)), [[4 if dims == [[]] else 0]], dims)

    def test_machines_and_processes(self):
        """HOST_PID of the worker's name; without, the name and a running number."""
        folder = tempfile.mkdtemp(dir=self.tmp)
        for i, name in enumerate(("host_a_12", "host_a_7", "plain", "other")):
            self.write([NCCL[0]], name=name + ".pt.trace.json", folder=folder, deviceProperties=[{"id": 0, "name": "GPU", "totalGlobalMem": 40 << 30}] if i != 3 else [])
        gpu = {"GPU0": {"Name": "GPU", "Memory": "40.0 GB", "Memory Raw": 40 << 30}}
        self.assertEqual(self.serve(folder)("distributed/gpuinfo", span="default"),
                         {"metadata": {"title": "Device Information"}, "data": {"host_a": {"Process 12": gpu, "Process 7": gpu}, "plain": {"Process 0": gpu}}})

    def test_spans_stand_alone(self):
        folder = tempfile.mkdtemp(dir=self.tmp)
        self.write(NCCL, name="worker{}.100.pt.trace.json", folder=folder)
        self.write([NCCL[0], NCCL[1][:2]], name="worker{}.200.pt.trace.json", folder=folder)
        self.write([NCCL[1], NCCL[1]], name="worker{}.300.pt.trace.json", folder=folder)
        ask = self.serve(folder)
        self.assertEqual(ask("spans", worker="All"), ["1", "3"])
        self.assertEqual(ask("distributed/overlap", span="1")["data"]["0"]["worker0"], [30, 75, 75, 55])
        self.assertEqual(ask("distributed/overlap", span="3")["data"]["0"]["worker0"], [121, 40, 74, 0])
        ask("distributed/overlap", 404, span="2")
        ask("distributed/overlap", 404, span="4")

    def test_a_file_that_changes(self):
        folder = self.write(NCCL)
        ask = self.serve(folder)
        self.assertEqual(ask("distributed/overlap", span="default")["data"]["0"]["worker1"], [121, 40, 74, 0])
        os.remove(os.path.join(folder, "worker1.pt.trace.json"))
        self.write([NCCL[0]], name="worker1.pt.trace.json", folder=folder)
        for _ in range(100):
            if ask("distributed/overlap", span="default")["data"]["0"]["worker1"] == [30, 75, 75, 55]:
                return
            oracle.time.sleep(0.2)
        self.fail("the answer is still that of the former file")


class Real(Distributed):
    """Eight ranks of one tensor-parallel step."""

    def expected(self):
        with open(data("expected", "megatron_a100_tp8", "tb_distributed_megatron_a100_tp8.json")) as f:
            return json.load(f)

    def test_endpoints(self):
        for r in range(8):
            shutil.copy(data(*TP8, f"megatron_kineto_{r}.json.gz"), os.path.join(self.tmp, f"worker{r}.pt.trace.json.gz"))
        ask = self.serve(self.tmp)
        want = self.expected()
        self.assertEqual(ask("views"), ["Overview", "Operator", "Kernel", "Trace", "Distributed"])
        for path, name in (("gpuinfo", "gpu_info"), ("overlap", "steps_to_overlap"), ("waittime", "steps_to_wait"), ("commops", "comm_ops")):
            self.assertEqual(ask("distributed/" + path, span="default"), want[name])

    def test_reports(self):
        want = self.expected()
        overlap, wait, ops = (self.ask(name, data(*TP8)) for name in ("overlap", "ranks", "collectives"))
        for table, columns, name in ((overlap, OVERLAP, "steps_to_overlap"), (wait, WAIT, "steps_to_wait")):
            self.assertEqual({step: {f"worker{r['rank']}": [r[c] for c in columns] for r in table.rows if r["step"] == step} for step in ("all", "3")}, want[name]["data"])
        for r in range(8):
            self.assertEqual(self.rows(ops, OPS, rank=r), want["comm_ops"]["data"][f"worker{r}"]["rows"])


if __name__ == "__main__":
    oracle.main()
