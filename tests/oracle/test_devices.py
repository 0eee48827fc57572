"""What `devices` makes of values that a trace states wrongly or only in part, and of which time its figures are."""
import json
import os
import tempfile

import oracle
from oracle import Case, data, report

H100 = {"id": 0, "name": "NVIDIA H100", "numSms": 100, "maxThreadsPerMultiprocessor": 2048, "warpSize": 32}


def kernel(start, dur, device=0, **more):
    return {"ph": "X", "cat": "kernel", "name": "k", "pid": device, "tid": 7, "ts": start, "dur": dur,
            "args": {"device": device, "stream": 7, **more}}


def stated(blocks=None, warps=None, occupancy=None, grid=None):
    names = (("blocks per SM", blocks), ("warps per SM", warps), ("est. achieved occupancy %", occupancy), ("grid", grid))
    return {k: v for k, v in names if v is not None}


def step(number, start, dur):
    return {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 10, "tid": 1, "ts": start, "dur": dur}


STEP = step(1, 0, 100)


class Devices(Case):
    def table(self, *events, devices=(H100,), args=()):
        doc = {"schemaVersion": 1, "deviceProperties": list(devices), "traceEvents": [*events]}
        return report("devices", "-", *args, stdin=json.dumps(doc).encode())

    def noted(self, table, text):
        self.assertTrue([n for n in table.notes if text in n], table.notes)

    def test_blocks_from_the_grid(self):
        """A stated zero, a negative value and none at all: blocks of the grid / SMs."""
        for blocks in (0, -1, None):
            table = self.table(STEP, kernel(10, 40, **stated(blocks, grid=[5, 10, 1])))
            self.assertAlmostEqual(table.rows[0]["sm_efficiency_pct"], 20)
            if blocks is not None:
                self.noted(table, "1 zero or negative values of blocks per SM")

    def test_blocks_unknown(self):
        """Neither stated nor to be computed: a lower bound while more than half is known, then nothing."""
        known, unknown = kernel(0, 50, **stated(1.0)), stated(0)
        table = self.table(STEP, known, kernel(50, 30, **unknown), devices=())
        self.assertAlmostEqual(table.rows[0]["sm_efficiency_pct"], 50)
        self.noted(table, "blocks per SM are known for 50000 of 80000 ns of kernels; SM efficiency counts the others as 0")
        table = self.table(STEP, kernel(0, 30, **stated(1.0)), kernel(50, 50, **unknown), devices=())
        self.assertIsNone(table.rows[0]["sm_efficiency_pct"])
        self.noted(table, "blocks per SM are known for 30000 of 80000 ns of kernels, too few")
        self.assertIsNone(self.table(STEP, kernel(0, 30, **unknown), devices=()).rows[0]["sm_efficiency_pct"])

    def test_false_zero_of_occupancy(self):
        """64 warps fit an SM: with 0.64 and more of them an occupancy of 0 % is none."""
        full = kernel(0, 50, **stated(1, 32, 50))
        for warps, want in ((0.63, 50 * 50 / 80), (0.64, 50)):
            table = self.table(STEP, full, kernel(50, 30, **stated(1, warps, 0)))
            self.assertAlmostEqual(table.rows[0]["achieved_occupancy_pct"], want)
        self.noted(table, "occupancy is known for 50000 of 80000 ns of kernels")
        table = self.table(STEP, kernel(0, 20, **stated(1, 32, 50)), kernel(50, 30, **stated(1, 8, 0)))
        self.assertIsNone(table.rows[0]["achieved_occupancy_pct"])

    def rows(self, *events, devices, args=()):
        return [(r["device"], r["name"]) for r in self.table(STEP, *events, devices=devices, args=args).rows]

    def test_one_described_one_works(self):
        """HIP_VISIBLE_DEVICES: described as device 0, work on device 2."""
        described = {**H100, "id": 0}
        table = self.table(STEP, kernel(0, 50, device=2, grid=[50, 1, 1]), devices=[described])
        self.assertEqual([(r["device"], r["name"]) for r in table.rows], [(2, "NVIDIA H100")])
        self.assertAlmostEqual(table.rows[0]["sm_efficiency_pct"], 25)
        self.noted(table, "Device 2 is the one that the input describes as device 0")
        self.assertEqual(self.rows(kernel(0, 50, device=2), devices=[described], args=["--compat=tb-plugin"]), [(2, None)])

    def test_not_joined(self):
        """Two that work, two that are described, or the number that is described: nothing to guess."""
        described = {**H100, "id": 0}
        self.assertEqual(self.rows(kernel(0, 50, device=2), kernel(0, 50, device=3), devices=[described]), [(2, None), (3, None), (0, "NVIDIA H100")])
        self.assertEqual(self.rows(kernel(0, 50, device=2), devices=[described, {**H100, "id": 1}]), [(2, None), (0, "NVIDIA H100"), (1, "NVIDIA H100")])
        self.assertEqual(self.rows(kernel(0, 50, device=0), devices=[described]), [(0, "NVIDIA H100")])

    def test_joined_in_real_traces(self):
        """info counts the operations on the device that does them; a saved profile knows it, too."""
        for path, device, operations in (("tracelens/triton/trace.json.gz", 2, 12), ("tracelens/inference/sglang_decode/sglang_Qwen3-8B_decode.json.gz", 9, 558)):
            rows = oracle.info(data(*path.split("/"))).section("devices").rows
            self.assertEqual([(r["device"], r["operations"], r["name"]) for r in rows], [(device, operations, "AMD Instinct MI300X")])
        with tempfile.TemporaryDirectory() as folder:
            saved = os.path.join(folder, "t.opscope")
            self.assertEqual(oracle.run("import", data("tracelens", "triton", "trace.json.gz"), "-o", saved)[0], 0)
            self.assertEqual(oracle.info(saved).section("devices").rows[0]["operations"], 12)

    def test_plugin_takes_what_is_stated(self):
        events = [STEP, kernel(0, 50, **stated(1, 32, 50)), kernel(50, 50, **stated(0, 8, 0, grid=[100, 1, 1]))]
        row = self.table(*events, args=["--compat=tb-plugin"]).rows[0]
        self.assertEqual((row["sm_efficiency_pct"], row["achieved_occupancy_pct"]), (50, 25))

    def test_one_window(self):
        """All figures of a row are of the steps asked for; work that crosses a border counts with its part inside."""
        events = [step(1, 0, 100), step(2, 100, 100), kernel(10, 50, **stated(1)), kernel(90, 20, **stated(1)),
                  kernel(150, 30, **stated(1)), kernel(300, 30, **stated(1))]
        for args, kernels, ns, outside in (((), 3, 100, 1), (("--steps=1",), 2, 60, 2), (("--steps=2",), 2, 40, 2)):
            table = self.table(*events, args=args)
            row = table.rows[0]
            self.assertEqual((row["kernels"], row["kernel_ns"], row["kernel_busy_ns"]), (kernels, ns * 1000, ns * 1000), args)
            self.noted(table, f"{outside} of the trace's kernels, copies and sets outside the steps: not counted")

    def test_h100(self):
        """Kineto writes an occupancy of 0 for GEMMs whose shared memory it cannot place: one block of 12 of 64 warps on each of the SMs that have one."""
        path = oracle.data("tracelens", "h100", "Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz")
        table = report("devices", path)
        self.noted(table, "168 zero or negative values of blocks per SM or occupancy in the trace were taken as not stated")
        self.assertFalse([n for n in table.notes if "occupancy is known for" in n])
        code, out, err = oracle.run("sql", path, "SELECT start_ns, dur_ns, occupancy_pct, warps_per_sm FROM kernels_raw", "--format=json")
        self.assertEqual(code, 0, err)
        first, last = (f(r["start_ns"] + k * r["total_ns"] for r in report("steps", path).rows) for f, k in ((min, 0), (max, 1)))
        ns = sums = 0
        for start, dur, stated, warps in json.loads(out)["rows"]:
            within = max(0, min(start + dur, last) - max(start, first))
            ns += within
            sums += within * (stated if stated or warps < 0.64 else 100 * min(12, warps) / 64)
        self.assertAlmostEqual(table.rows[0]["achieved_occupancy_pct"], sums / ns, delta=0.3)


if __name__ == "__main__":
    oracle.main()
