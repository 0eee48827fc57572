"""What few traces have, in one small trace: every phase, other vendors, an unknown category, CUDA graphs."""
import json

import oracle
from oracle import Case, info, report, run, synthetic

TRACE = synthetic("formats")


def sql(query):
    code, out, err = run("sql", TRACE, query, "--format=json")
    if code:
        raise AssertionError(err.decode(errors="replace"))
    return [tuple(r) for r in json.loads(out)["rows"]]


class Formats(Case):
    def test_begin_and_end(self):
        self.assertEqual(sql("select name, start_ns, dur_ns from span where kind = 'user' order by start_ns"), [
            ("outer", 10000, 90000), ("inner", 20500, 9750), ("endless", 400000, 100000)])

    def test_diagnostics(self):
        kinds = {r["kind"]: r["count"] for r in info(TRACE).section("problems").rows}
        self.assertEqual(kinds["begin-without-end"], 1)
        self.assertEqual(kinds["end-without-begin"], 1)

    def test_unknown_category_is_kept(self):
        self.assertEqual(sql("select name, dur_ns, cat, kind from span where cat = 'npu_stage'"),
                         [("unheard of", 6000, "npu_stage", "other")])

    def test_other_phases_are_kept(self):
        self.assertEqual(sql("select name, phase, time_ns from mark order by time_ns"), [("power", "C", 50000), ("mark", "i", 51000)])
        self.assertEqual(sql("select phase, time_ns, count(distinct id) from flow group by phase order by time_ns"),
                         [("s", 60000, 1), ("t", 61000, 1), ("f", 62000, 1)])

    def test_names_of_threads(self):
        self.assertEqual(sql("select tid_text, process_name, thread_name from track where tid_text = 'worker'"),
                         [("worker", "trainer", "loader 1")])

    def test_every_kernel_is_accounted_for(self):
        by_op = {r["name"]: r["operator"] for r in report("kernels", TRACE, "--group-by=op").rows}
        self.assertEqual(by_op, {"xpu_add": "aten::add", "node_a": "replay", "node_b": "replay", "orphan": None})
        rows = {r["name"]: r["device_self_ns"] for r in report("operators", TRACE).rows}
        self.assertEqual(rows["(unattributed)"], 9000)
        self.assertEqual(rows["replay"], 12000)

    def test_graph_nodes(self):
        self.assertEqual(sql("select name, graph_id, graph_node_id from kernels_raw where graph_id is not null order by 3"),
                         [("node_a", 2, 81), ("node_b", 2, 82)])

    def test_categories_of_the_plugin(self):
        """Every category that the TensorBoard plugin reads, in the spelling of each year."""
        kinds = {"trace": "trace", "op": "cpu_op Operator", "python": "python python_function", "user": "user_annotation", "gpu_user": "gpu_user_annotation",
                 "call": "Runtime cuda_runtime cuda_driver mtia_runtime glow_runtime xpu_runtime privateuse1_runtime", "kernel": "Kernel", "memcpy": "Memcpy gpu_memcpy",
                 "memset": "Memset gpu_memset"}
        want = {c: kind for kind, names in kinds.items() for c in names.split()}
        made = [{"ph": "X", "cat": c, "name": c, "pid": 1, "tid": i, "ts": 100 * i, "dur": 10, "args": {"External id": i, "correlation": i, "device": 0, "stream": 7}}
                for i, c in enumerate(want, 1)]
        code, out, err = run("sql", "-", "select cat, kind from span union all select cat, kind from gpu_op", "--format=json",
                             stdin=json.dumps({"schemaVersion": 1, "traceEvents": made}).encode())
        self.assertEqual(code, 0, err)
        self.assertEqual(dict(json.loads(out)["rows"]), want)

    def test_mtia(self):
        """MTIA: copies are events among the kernels, told by their name; products bear the op's name."""
        rows = [("mtia_ccp_events", "fc-3", 40), ("mtia_ccp_events", "batch_matmul-1", 20), ("mtia_ccp_events", "dma_request", 30), ("mtia_ccp_events", "tbe-7", 10)]
        made = [{"ph": "X", "cat": c, "name": n, "pid": 0, "tid": 1, "ts": 100 * i, "dur": d, "args": {"device": 0, "stream": 1}} for i, (c, n, d) in enumerate(rows)]
        text = json.dumps({"schemaVersion": 1, "traceEvents": made}).encode()
        kernels = report("kernels", "-", stdin=text).by("name")
        self.assertEqual({n: r["class"] for n, r in kernels.items()}, {"fc-3": "gemm", "batch_matmul-1": "gemm", "tbe-7": "unknown"})
        self.assertEqual([(r["name"], r["total_ns"]) for r in report("memcpy", "-", stdin=text).rows], [("dma_request", 30000)])
        unknown = report("kernels-unknown", "-", "--group-by=vendor", stdin=text).rows
        self.assertEqual([(r["vendor"], r["unknown_names"], r["total_ns"], r["no_class_ns"]) for r in unknown], [("Meta MTIA", 1, 70000, 10000)])

    def test_vendors(self):
        """By the device's name, else by the API that launched; XPU kernels have classes of their own."""
        def work(i, device, name, call):
            return [{"ph": "X", "cat": "cuda_runtime", "name": call, "pid": 9, "tid": 9, "ts": 100 * i, "dur": 5, "args": {"correlation": i}},
                    {"ph": "X", "cat": "kernel", "name": name, "pid": device, "tid": 1, "ts": 100 * i + 10, "dur": 20, "args": {"device": device, "stream": 1, "correlation": i}}]
        made = (work(1, 0, "mystery", "cudaLaunchKernel") + work(2, 1, "mystery", "cudaLaunchKernel") + work(3, 2, "at::native::xpu::ReduceKernel<1>", "urEnqueueKernelLaunch") +
                work(4, 3, "enigma", "somethingElse"))
        text = json.dumps({"schemaVersion": 1, "traceEvents": made, "deviceProperties": [{"id": 1, "name": "AMD Instinct MI300X"}]}).encode()
        rows = report("kernels-unknown", "-", "--group-by=vendor", stdin=text).by("vendor")
        self.assertEqual({v: r["no_class_ns"] for v, r in rows.items()}, {"NVIDIA": 20000, "AMD": 20000, "Intel": 0, "unknown": 20000})
        self.assertEqual(report("kernels", "-", stdin=text).by("name")["at::native::xpu::ReduceKernel<1>"]["class"], "reduce")


if __name__ == "__main__":
    oracle.main()
