"""`report waits`: waits by the tracer's records, and by the API calls that wait where there is no record, against a count by python."""
import collections
import json
import os
import re
import sqlite3
import tempfile

import oracle
from nsys_db import call, kernel, make, pid, strings
from oracle import Case, data, events, load, report

SYNC = re.compile(r"(Stream|Device|Event|Ctx)Synchronize(_ptsz)?$")
COPY = re.compile(r"(cudaMemcpy|hipMemcpy|hipMemcpyWithStream)$")
ASKS = re.compile(r"(Event|Stream)Query$")


def ns(us):
    """Digits of a trace are taken as they are: a double is too coarse."""
    return round(us * 1000)


def counted(path):
    """{evidence: [calls, ns]} of a JSON trace. What a copy waited for is found by its correlation id."""
    all_events = [e for e in events(load(path)) if e.get("ph") == "X" and isinstance(e.get("args"), dict)]
    calls = [e for e in all_events if e["cat"].lower() in ("cuda_runtime", "cuda_driver", "runtime")]
    name = {e["args"].get("correlation"): e["name"] for e in calls}
    records = [e for e in all_events if e["cat"] == "cuda_sync"]
    recorded = {e["args"]["correlation"] for e in records}
    copies = {e["args"]["correlation"]: e for e in all_events if e["cat"].lower() in ("gpu_memcpy", "memcpy")}
    out = collections.defaultdict(lambda: [0, 0])

    def add(evidence, e):
        out[evidence][0] += 1
        out[evidence][1] += ns(e["dur"])
    for e in records:
        if not ASKS.search(name.get(e["args"]["correlation"], "")):
            add("record", e)
    for e in calls:
        corr = e["args"].get("correlation")
        if corr in recorded:
            continue
        copy = copies.get(corr)
        ended = copy and copy["ts"] + copy["dur"] <= e["ts"] + e["dur"]
        if SYNC.search(e["name"]):
            add("call", e)
        elif copy and copy["name"].endswith("-> Pageable)"):
            add("copying call", e)
        elif COPY.match(e["name"]) and (not copy or ended) or copy and "Pageable" in copy["name"] and ended:
            add("copying call", e)
    return {k: tuple(v) for k, v in out.items()}


def told(path, *args):
    out = collections.defaultdict(lambda: [0, 0])
    for r in report("waits", path, *args).rows:
        out[r["evidence"]][0] += r["calls"]
        out[r["evidence"]][1] += r["total_ns"]
    return {k: tuple(v) for k, v in out.items()}


class RealTraces(Case):
    def test_calls_where_records_are_missing(self):
        """The evidence of each wait, in traces that have records, some and none."""
        for path in (("verdicts", "google_owlv2-large-patch14-ensemble__1016001.json.gz"),
                     ("tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz"),
                     ("multirank", "megatron_a100_tp8", "megatron_kineto_1.json.gz"),
                     ("more", "puzzlers", "d2h_sync", "d2h_sync_final.json.gz"),
                     ("more", "puzzlers", "streams", "blocking.json.gz"),
                     ("more", "puzzlers", "streams", "non_blocking.json.gz"),
                     ("tracelens", "inference", "sglang_decode", "sglang_Qwen3-8B_decode.json.gz"),
                     ("hta", "critical_path", "cuda_event_sync", "event_sync_trace.json.gz"),
                     ("hta", "critical_path", "simple_add", "benchmark_result_493459_1694039959_trace.json.gz")):
            with self.subTest(trace=path[-1]):
                want = counted(data(*path))
                self.assertTrue(want)
                self.assertEqual(told(data(*path)), want)
                self.assertEqual(told(data(*path), "--group-by=name"), want)

    def test_owlv2(self):
        """80 cudaStreamSynchronize of 358.8 ms, on the one GPU that works; the stream is not recorded."""
        rows = report("waits", data("verdicts", "google_owlv2-large-patch14-ensemble__1016001.json.gz")).by("name")
        r = rows["cudaStreamSynchronize"]
        self.assertEqual((r["calls"], r["evidence"], r["device"], r["stream"]), (80, "call", "0", None))
        self.assertAlmostEqual(r["total_ns"] / 1e6, 358.8, places=1)

    def test_no_wait(self):
        """Launches and copies alone: not a lack of the recording."""
        code, _, err = oracle.run("report", "waits", data("tracelens", "b200", "eager_trace.json.gz"))
        self.assertEqual(code, 1)
        self.assertIn(b"did not wait for a device", err)
        self.assertIn(b"why the device waited: `opscope report streams`", err)

    def test_no_wait_in_the_steps(self):
        """The host waits before the first step alone: the message says so, and which report says why the device waited."""
        code, _, err = oracle.run("report", "waits", data("hta", "df_index_resolver", "df_index_resolver.json.gz"))
        self.assertEqual(code, 1)
        self.assertIn(b"the host did not wait for a device in them (why the device waited: `opscope report streams`); --steps=all", err)

    def test_gpu_of_a_context(self):
        """nsys says device 0 of every synchronisation: the kernels of the context say which it is."""
        for name in "mfu_2gpu_after", "mfu_2gpu_before":
            path = data("nsys", "2026.2_mfu_2gpu", name + ".sqlite")
            db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
            want = {}
            for device, stream, n, total in db.execute(
                    "SELECT k.deviceId, s.streamId, count(*), sum(s.end - s.start) FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION s JOIN (SELECT DISTINCT "
                    "globalPid, contextId, deviceId FROM CUPTI_ACTIVITY_KIND_KERNEL) k USING (globalPid, contextId) WHERE s.streamId < 4294967295 GROUP BY 1, 2"):
                want[str(device), str(stream)] = n, total
            got = collections.defaultdict(lambda: (0, 0))
            for r in report("waits", path).rows:
                if r["stream"]:
                    n, total = got[r["device"], r["stream"]]
                    got[r["device"], r["stream"]] = n + r["calls"], total + r["total_ns"]
            self.assertEqual({d for d, _ in want}, {"0", "1"})
            self.assertEqual(dict(got), want)
            code, out, _ = oracle.run("sql", path, "SELECT tid_text, process_labels FROM track WHERE tid_text LIKE '%of process%' OR tid = 15", "--format=json")
            self.assertEqual(json.loads(out)["rows"], [["15", "GPU 1"]], code)


class Made(Case):
    def setUp(self):
        super().setUp()
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def trace(self, *rows):
        """Rows: (cat, name, start, duration, correlation, more arguments)."""
        path = os.path.join(self.dir.name, "t.json")
        device = ("kernel", "gpu_memcpy", "cuda_sync")
        made = [{"ph": "X", "cat": c, "name": n, "ts": t, "dur": d, "pid": more.pop("device", 0) if c in device else more.pop("pid", 1),
                 "tid": 7 if c in device else more.pop("tid", 1), "args": {"correlation": corr, **more}} for c, n, t, d, corr, more in rows]
        for e in made:
            if e["cat"] in device:
                e["args"] |= {"device": e["pid"], "stream": 7}
        with open(path, "w") as f:
            f.write(json.dumps({"schemaVersion": 1, "traceEvents": made}))
        return path

    def rows(self, path, *columns):
        return sorted((tuple(r[c] for c in columns) for r in report("waits", path).rows), key=str)

    def test_call_inside_a_call(self):
        """One wait: of two calls without a record the outer one, and neither if either has a record."""
        path = self.trace(("cuda_runtime", "cudaStreamSynchronize", 10, 20, 1, {}), ("cuda_driver", "cuStreamSynchronize", 12, 15, 2, {}),
                          ("cuda_runtime", "cudaStreamSynchronize", 110, 20, 3, {}), ("cuda_driver", "cuStreamSynchronize", 112, 15, 4, {}),
                          ("cuda_sync", "Stream Sync", 113, 13, 4, {}),
                          ("cuda_runtime", "cudaStreamSynchronize", 210, 20, 5, {}), ("cuda_driver", "cuStreamSynchronize", 212, 15, 6, {}),
                          ("cuda_sync", "Stream Sync", 213, 12, 5, {}))
        self.assertEqual(self.rows(path, "name", "evidence", "calls", "total_ns"),
                         [("Stream Sync", "record", 2, 25000), ("cudaStreamSynchronize", "call", 1, 20000)])

    def test_same_id_elsewhere(self):
        """A record of the same correlation id, at another time, is that of another process."""
        path = self.trace(("cuda_runtime", "cudaDeviceSynchronize", 10, 20, 1, {}), ("cuda_sync", "Context Sync", 500, 10, 1, {}))
        self.assertEqual(self.rows(path, "name", "total_ns", "stream"), [("Context Sync", 10000, "7"), ("cudaDeviceSynchronize", 20000, None)])

    def test_many_of_one_id(self):
        """A long record around short ones of its id: each call that any of them overlaps has a record, and the one behind all has none."""
        path = self.trace(("cuda_sync", "Context Sync", 0, 300, 1, {}), ("cuda_sync", "Stream Sync", 20, 5, 1, {}),
                          ("cuda_runtime", "cudaStreamSynchronize", 18, 8, 1, {}), ("cuda_runtime", "cudaStreamSynchronize", 200, 8, 1, {}),
                          ("cuda_runtime", "cudaStreamSynchronize", 400, 8, 1, {}))
        self.assertEqual(self.rows(path, "name", "evidence", "calls", "total_ns"),
                         [("Context Sync", "record", 1, 300000), ("Stream Sync", "record", 1, 5000), ("cudaStreamSynchronize", "call", 1, 8000)])

    def test_copies(self):
        """What was still being copied when the call returned kept nobody waiting; a copy to pageable memory is done when its call returns, whatever the clocks say."""
        path = self.trace(
            ("cuda_runtime", "cudaMemcpyAsync", 0, 50, 1, {}), ("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 20, 20, 1, {}),
            ("cuda_runtime", "cudaMemcpyAsync", 100, 10, 2, {}), ("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 120, 20, 2, {}),
            ("cuda_runtime", "cudaMemcpyAsync", 200, 21, 3, {}), ("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 202, 20, 3, {}),
            ("cuda_runtime", "cudaMemcpyAsync", 300, 90, 4, {}), ("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 310, 20, 4, {}),
            ("cuda_runtime", "cudaMemcpy", 400, 32, 5, {}), ("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 410, 20, 5, {}),
            ("cuda_runtime", "cudaMemcpy", 500, 5, 6, {}), ("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 510, 20, 6, {}),
            ("cuda_runtime", "cudaMemcpy", 600, 7, 7, {}))
        self.assertEqual(self.rows(path, "name", "evidence", "device", "stream", "calls", "total_ns"),
                         [("cudaMemcpy", "copying call", "0", "7", 1, 32000), ("cudaMemcpy", "copying call", "0", None, 1, 7000), ("cudaMemcpyAsync", "copying call", "0", "7", 2, 71000)])

    def test_several_devices(self):
        """A process that works on two GPUs: for which one it waited is not known."""
        launches = [row for d, corr in ((0, 1), (1, 2)) for row in (("cuda_runtime", "cudaLaunchKernel", corr, 1, corr, {}),
                                                                  ("kernel", "k", 10 * corr, 5, corr, {"device": d}))]
        path = self.trace(*launches, ("cuda_runtime", "cudaDeviceSynchronize", 40, 5, 3, {}), ("cuda_runtime", "cudaDeviceSynchronize", 60, 5, 4, {"pid": 2, "tid": 2}),
                          ("cuda_runtime", "cudaLaunchKernel", 70, 1, 5, {"pid": 2, "tid": 2}), ("kernel", "k", 75, 5, 5, {"device": 1}))
        self.assertEqual(self.rows(path, "name", "device", "calls"), [("cudaDeviceSynchronize", "1", 1), ("cudaDeviceSynchronize", None, 1)])

    def test_records_of_queries(self):
        path = self.trace(("cuda_runtime", "cudaEventQuery", 10, 2, 1, {}), ("cuda_sync", "Event Sync", 10, 2, 1, {}),
                          ("cuda_runtime", "cudaEventSynchronize", 20, 9, 2, {}), ("cuda_sync", "Event Sync", 21, 7, 2, {}))
        table = report("waits", path)
        self.assertEqual([(r["name"], r["calls"], r["total_ns"]) for r in table.rows], [("Event Sync", 1, 7000)])
        self.assertTrue(any("1 record of calls that only ask" in n for n in table.notes), table.notes)

    def test_contexts_of_nsys(self):
        """Context 2 of process 21 is GPU 1 by its kernel; context 5 by the table of contexts; of context 9 only the row itself says anything."""
        path = os.path.join(self.dir.name, "t.sqlite")
        sync = [(1, 20, 7), (2, 21, 15), (5, 21, 16), (9, 21, 17)]
        make(path, {"StringIds": strings("k", "cudaLaunchKernel_v7000"),
                    "CUPTI_ACTIVITY_KIND_RUNTIME": [call(1, 2, 1, p, p) for p in (20, 21)],
                    "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(10, 20, 1, 20), kernel(10, 20, 1, 21, device=1, stream=15, contextId=2)],
                    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": [
                        {"start": 30 + i, "end": 40 + i, "deviceId": 0, "contextId": c, "streamId": s, "correlationId": 9 + i, "globalPid": pid(p), "syncType": 3,
                         "eventId": 4294967295} for i, (c, p, s) in enumerate(sync)]},
             extra=["CREATE TABLE TARGET_INFO_CUDA_CONTEXT_INFO (nullStreamId INTEGER, processId INTEGER, deviceId INTEGER, contextId INTEGER)",
                    "INSERT INTO TARGET_INFO_CUDA_CONTEXT_INFO VALUES (16, 21, 1, 5)"])
        self.assertEqual(self.rows(path, "device", "stream"), [("0", "17"), ("0", "7"), ("1", "15"), ("1", "16")])


if __name__ == "__main__":
    oracle.main()
