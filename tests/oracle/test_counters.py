"""`counters`: hardware counters joined to the op that launched the kernel, as HolisticTraceAnalysis joins them (the k-th range of a kernel is of the k-th cudaLaunchKernel; the
outermost and the innermost op around it). Planted: no recording at hand has such events."""
import json
import os
import tempfile

import oracle
from oracle import Case, report

FADD, FFMA, HFMA = (f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum" for op in ("fadd", "ffma", "hfma"))


class Counters(Case):
    OPS = [("aten::conv2d", 0, 100), ("aten::cudnn_convolution", 10, 50), ("aten::add", 120, 20)]
    RANGES = [("fft2d_r2c_32x32", 30, {FADD: 86114304, FFMA: 10, "sm__warps_active.avg.pct_of_peak_sustained_active": 51.25, "device": 0, "note__x": "text"}),
              ("fft2d_r2c_32x32", 40, {FADD: 4, FFMA: 0, "sm__warps_active.avg.pct_of_peak_sustained_active": 48.75}), ("add_kernel", 130, {FADD: 7, HFMA: 3}), ("set", 140, {})]

    def write(self, folder, calls, ranges):
        events = [{"ph": "X", "cat": "cpu_op", "name": n, "pid": 1, "tid": 1, "ts": s, "dur": d, "args": {"External id": i}} for i, (n, s, d) in enumerate(self.OPS, 1)]
        events += [{"ph": "X", "cat": "cuda_runtime", "name": n, "pid": 1, "tid": 1, "ts": s, "dur": 2, "args": {"correlation": i}} for i, (n, s) in enumerate(calls, 1)]
        events += [{"ph": "X", "cat": "cuda_profiler_range", "name": n, "pid": 0, "tid": 0, "ts": s, "dur": 5, "args": a} for n, s, a in reversed(ranges)]
        path = os.path.join(folder, "t.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"traceEvents": events}, f)
        return path

    LAUNCHES = [("cudaLaunchKernel", 20), ("cudaLaunchKernel", 25), ("cudaDeviceSynchronize", 27), ("cudaLaunchKernelExC", 125), ("cudaLaunchKernel", 150)]

    def test_rows(self):
        with tempfile.TemporaryDirectory() as tmp:
            path, kept = self.write(tmp, self.LAUNCHES, self.RANGES), os.path.join(tmp, "t.opscope")
            self.assertEqual(oracle.run("import", path, "-o", kept)[0], 0)
            tables = [report("counters", p) for p in (path, kept)]
            each = report("counters", path, "--group-by=instance").rows
        self.assertEqual(tables[0].rows, tables[1].rows)
        rows = {(r["name"], r["counter"]): r for r in tables[0].rows}
        self.assertEqual({k[1] for k in rows if k[0] == "fft2d_r2c_32x32"}, {FADD, FFMA, "sm__warps_active.avg.pct_of_peak_sustained_active", "flops"})
        self.assertNotIn("set", {k[0] for k in rows})
        r = rows["fft2d_r2c_32x32", FADD]
        self.assertEqual([r[c] for c in ("operator", "top_operator", "launches", "sum", "mean", "min", "max")],
                         ["aten::cudnn_convolution", "aten::conv2d", 2, 86114308, 43057154, 4, 86114304])
        self.assertEqual(rows["fft2d_r2c_32x32", "flops"]["sum"], 86114304 + 20 + 4)
        self.assertEqual(rows["fft2d_r2c_32x32", "sm__warps_active.avg.pct_of_peak_sustained_active"]["mean"], 50)
        self.assertEqual((rows["add_kernel", "flops"]["sum"], rows["add_kernel", "flops"]["operator"], rows["add_kernel", "flops"]["top_operator"]), (7 + 6, "aten::add", "aten::add"))
        self.assertEqual([(r["start_ns"], r["value"]) for r in each if r["counter"] == FADD], [(30000, 86114304), (40000, 4), (130000, 7)])

    def test_not_as_many(self):
        """HTA gives nothing then; the counters are known all the same."""
        with tempfile.TemporaryDirectory() as tmp:
            table = report("counters", self.write(tmp, self.LAUNCHES[:2], self.RANGES))
        self.assertEqual({r["operator"] for r in table.rows}, {None})
        self.assertIn("of 4 kernels with counters and 2 launches", "\n".join(table.notes))

    def test_none(self):
        with tempfile.TemporaryDirectory() as tmp, self.assertRaisesRegex(AssertionError, "no hardware counters of kernels"):
            report("counters", self.write(tmp, self.LAUNCHES, []))


if __name__ == "__main__":
    oracle.main()
