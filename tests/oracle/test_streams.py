"""`streams`: why a stream of a GPU did nothing. Against the idle times that HolisticTraceAnalysis found on eight real ranks, and on small traces by hand; and its breakdown of the time of
these ranks."""
import json
import os
import tempfile

import oracle
from oracle import Case, data, report

TP8 = ("multirank", "megatron_a100_tp8")


class Real(Case):
    def expected(self, what):
        with open(data("expected", "megatron_a100_tp8", "hta_megatron_a100_tp8.json"), encoding="utf-8") as f:
            return json.load(f)[what]

    def test_idle_times(self):
        rows = {(r["rank"], r["stream"]): r for r in report("streams", data(*TP8), "--rank=all").rows}
        want = self.expected("idle")
        self.assertEqual(len(want), 40)
        self.assertEqual({(r["rank"], r["stream"]) for r in want}, set(rows))
        told = {}
        for r in want:
            row = rows[r["rank"], r["stream"]]
            column = {"host_wait": "host_wait_ns", "kernel_wait": "kernel_wait_ns", "other": "other_wait_ns"}[r["idle_category"]]
            self.assertAlmostEqual(row[column] / row["idle_ns"], r["idle_time_ratio"], delta=0.005, msg=r)
            told[r["rank"], r["stream"], column] = r["idle_time"] * 1000
        got = {(*k, c): row[c] for k, row in rows.items() for c in ("host_wait_ns", "kernel_wait_ns", "other_wait_ns") if row[c]}
        # Of work that begins while the stream still runs, HTA adds a gap below zero; a gap of exactly 30 us is another's there.
        self.assertEqual({k: v for k, v in got.items() if v != told.get(k)}, {})
        self.assertEqual(set(got), set(told))

    @oracle.of("tracelens")
    def test_breakdown(self):
        """Its time goes from the first to the last device work, as that of TraceLens. Its compute time is that of kernels without sets of memory: the role Kernel of `overview`."""
        for want in self.expected("breakdown"):
            rank = f"--rank={want['rank']}"
            busy = report("gpu-timeline", data(*TP8), rank, "--compat=tracelens").by("type")
            kernel = next(r for r in report("overview", data(*TP8), rank).rows if r["role"] == "Kernel")
            total, idle, compute = round(busy["total_time"]["time_ms"] * 1e6), round(busy["idle_time"]["time_ms"] * 1e6), kernel["total_ns"]
            self.assertEqual([idle, compute, total - idle - compute, total], [want[k + "_time(us)"] * 1000 for k in ("idle", "compute", "non_compute", "kernel")])
            self.assertEqual([round(100 * x / total, 2) for x in (idle, compute, total - idle - compute)],
                             [want[k + "_time_pctg"] for k in ("idle", "compute", "non_compute")])

    def test_parts_add_up(self):
        for path in (data(*TP8, "megatron_kineto_0.json.gz"), data("nsys", "2026.2_mfu_2gpu", "mfu_2gpu_after.sqlite"), oracle.synthetic("training_gpu")):
            for row in report("streams", path).rows:
                self.assertEqual(row["host_wait_ns"] + row["kernel_wait_ns"] + row["other_wait_ns"], row["idle_ns"])
                self.assertLessEqual(row["longest_ns"], row["idle_ns"])


class Small(Case):
    def rows(self, work, *args):
        """work: (stream, start, duration, when it was launched; None = not recorded), in us."""
        events = []
        for i, (stream, start, dur, call) in enumerate(work, 1):
            events.append({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": stream, "ts": start, "dur": dur, "args": {"device": 0, "stream": stream, "correlation": i}})
            if call is not None:
                events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": call, "dur": 1, "args": {"correlation": i}})
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, "t.json")
            with open(path, "w", encoding="utf-8") as f:
                f.write(json.dumps({"traceEvents": events}))
            return report("streams", path, *args)

    def test_causes(self):
        table = self.rows([(7, 100, 10, 50), (7, 200, 10, 150), (7, 215, 10, 160), (7, 325, 5, 170), (20, 400, 7, 60)])
        row, other = table.rows
        self.assertEqual((row["stream"], row["count"], row["gaps"]), (7, 4, 3))
        self.assertEqual([row[c] for c in ("busy_ns", "idle_ns", "host_wait_ns", "kernel_wait_ns", "other_wait_ns", "longest_ns")], [35_000, 195_000, 90_000, 5_000, 100_000, 100_000])
        self.assertEqual((other["stream"], other["idle_ns"], other["host_wait_pct"]), (20, 0, None))

    def test_work_beside_work_of_its_stream(self):
        row, = self.rows([(7, 100, 100, 50), (7, 110, 20, 60), (7, 190, 30, 70), (7, 230, 10, 75)]).rows
        self.assertEqual((row["busy_ns"], row["idle_ns"], row["gaps"]), (130_000, 10_000, 1))

    def test_a_launch_that_is_not_recorded(self):
        table = self.rows([(7, 100, 10, 50), (7, 200, 10, None), (7, 215, 10, None)])
        self.assertEqual([table.rows[0][c] for c in ("host_wait_ns", "kernel_wait_ns", "other_wait_ns")], [0, 5_000, 90_000])
        self.assertIn("of 2 gaps, 2 lie before work whose launch was not recorded", "\n".join(table.notes))

    def test_without_a_device(self):
        code, _, err = oracle.run("report", "streams", oracle.synthetic("pure_cpu"))
        self.assertEqual((code, err.count(b"\n")), (1, 1), err)
        self.assertIn(b"no device work", err)


if __name__ == "__main__":
    oracle.main()
