"""Hardware counters: those of a real pair of recordings, counted again from the CSV; planted ones; and CUPTI's ranges of kernels."""
import csv
import difflib
import gzip
import json
import os
import re
import tempfile

import labelled
import oracle
from oracle import Case

H200 = os.path.join(os.environ["OPSCOPE_ROOT"], "tests", "data", "h200")
TRACE, NCU = os.path.join(H200, "gpt_bf16.json.gz"), os.path.join(H200, "gpt_bf16.ncu.csv.gz")
READ, WRITTEN, TENSOR = "dram__bytes_read.sum", "dram__bytes_write.sum", "sm__ops_path_tensor_src_bf16_dst_fp32.sum"
FADD, FFMA, HFMA = (f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum" for op in ("fadd", "ffma", "hfma"))


def base(name):
    """The function's name alone."""
    out, depth = "", 0
    for c in name.replace("(anonymous namespace)::", "").replace("<unnamed>::", ""):
        depth += (c == "<") - (c == ">")
        if c == "(" and not depth:
            break
        if not depth and c != ">":
            out += c
    return out.split()[-1].split("::")[-1]


def measured():
    with gzip.open(NCU, "rt") as f:
        head, _, *rows = csv.reader(line for line in f if line.startswith('"'))
    rows = [dict(zip(head, row)) for row in rows]
    triple = lambda text: tuple(int(x) for x in text.strip("()").split(","))
    return [((base(r["Kernel Name"]), triple(r["Grid Size"]), triple(r["Block Size"])), {k: float(r[k].replace(",", "")) for k in (READ, WRITTEN, TENSOR)}) for r in rows]


def kernels(doc):
    found = sorted((e for e in doc["traceEvents"] if e.get("cat") == "kernel"), key=lambda e: e["ts"])
    return [((base(e["name"]), tuple(e["args"]["grid"]), tuple(e["args"]["block"])), e) for e in found]


class Real(Case):
    """A step and the beginning of the next of the program that the trace has two steps of."""

    @classmethod
    def setUpClass(cls):
        cls.ncu = measured()
        with gzip.open(TRACE, "rt") as f:
            cls.kernels = kernels(json.load(f))

    def told(self):
        table = oracle.report("counters", TRACE, f"--counters={NCU}", "--group-by=instance")
        of = {}
        for r in table.rows:
            of.setdefault(r["start_ns"], {})[r["metric"]] = r["value"]
        return [of[at] for at in sorted(of)]

    def test_the_row_of_launches_that_both_have(self):
        """Python's own search for the longest row; the launches that it does not cover have keys of kernels in it."""
        known = {k for k, _ in self.ncu}
        work = [k for k, _ in self.kernels if k in known]
        row = difflib.SequenceMatcher(None, [k for k, _ in self.ncu], work, autojunk=False).find_longest_match()
        self.assertGreater(row.size, 200)
        told = self.told()
        self.assertEqual(len(told), len(work))
        for i in range(row.size):
            want = self.ncu[row.a + i][1]
            for metric, v in want.items():
                self.assertEqual(told[row.b + i][metric], v, (i, metric))

    def test_products_did_the_operations_of_their_shapes(self):
        """A tile may stick out of the matrix: up to an eighth more. Shapes that differ fourfold have the same kernel, grid and block here."""
        table = oracle.report("roofline", TRACE, f"--counters={NCU}", "--group-by=shape")
        n = 0
        for r in table.rows:
            if r["class"] != "gemm":
                continue
            self.assertEqual(r["measured_calls"], r["calls"])
            self.assertTrue(1 <= r["measured_tensor_flops"] / r["flops"] < 1.125, r["params"])
            n += 1
        self.assertGreater(n, 10)

    def test_ops_without_a_model(self):
        """They have rows where they were measured: of the kernels of the op, by `kernels`, with nothing of a model; and the note on what is left out, which is most time, comes first."""
        table = oracle.report("roofline", TRACE, f"--counters={NCU}")
        kernels = oracle.report("kernels", TRACE, f"--counters={NCU}", "--group-by=op").rows
        key = lambda r: (r["op"], r["direction"], r["done_by"])
        modelled = {key(r) for r in oracle.report("roofline", TRACE).rows}
        rows = [r for r in table.rows if key(r) not in modelled]
        self.assertEqual(len(table.rows), len(modelled) + len(rows))
        self.assertIn("aten::_foreach_addcdiv_", [r["op"] for r in rows])
        for r in rows:
            self.assertEqual([r[c] for c in ("flops", "bytes", "bound", "gain_ns", "measured_to_model")], [None] * 5)
            if not r["op"].startswith("aten::_foreach"):
                continue
            own = [k for k in kernels if k["operator"] == r["op"]]
            self.assertEqual(r["total_gpu_ns"], sum(k["total_ns"] for k in own))
            self.assertAlmostEqual(r["measured_dram_bytes"], sum(k["measured_dram_per_call_bytes"] * k["calls"] for k in own), delta=1)
        notes = [n for n in table.notes if "leaves out" in n or "cannot be" in n]
        self.assertRegex(notes[0], "leaves out [0-9]+ ns")
        self.assertEqual(len(notes), 2)
        text = oracle.run("report", "roofline", TRACE, f"--counters={NCU}")[1].decode()
        self.assertRegex(text.rstrip().splitlines()[-1], "^the roofline leaves out")
        for by in ("shape", "kernel"):
            other = oracle.report("roofline", TRACE, f"--counters={NCU}", f"--group-by={by}").rows
            self.assertEqual(sum(r["total_gpu_ns"] for r in other), sum(r["total_gpu_ns"] for r in table.rows))

    def test_kernels(self):
        table = oracle.report("kernels", TRACE, f"--counters={NCU}", "--group-by=launch")
        softmax = [m for k, m in self.ncu if k[0] == "cunn_SoftMaxForwardReg"]
        row = next(r for r in table.rows if "cunn_SoftMaxForwardReg" in r["name"])
        self.assertEqual((row["calls"], row["measured_calls"], len(softmax)), (2, 2, 1))
        self.assertAlmostEqual(row["measured_dram_per_call_bytes"], softmax[0][READ] + softmax[0][WRITTEN])
        self.assertAlmostEqual(row["measured_gb_per_s"], 2 * (softmax[0][READ] + softmax[0][WRITTEN]) / row["total_ns"])

    def test_per_step(self):
        """Sums are divided by the number of steps, and means of a call are not."""
        for name in ("kernels", "roofline"):
            total, step = oracle.report(name, TRACE, f"--counters={NCU}").rows, oracle.steps_report(name, TRACE, f"--counters={NCU}", "--per=step").rows
            self.assertEqual(len(total), len(step))
            key = "name" if name == "kernels" else "op"
            whole, mean = ({(r[key], r.get("direction")): r for r in rows} for rows in (total, step))
            for k, r in whole.items():
                self.assertEqual(mean[k]["measured_calls_per_step"], r["measured_calls"] / 2)
                self.assertEqual(mean[k]["measured_dram_per_call_bytes"], r["measured_dram_per_call_bytes"])
                if name == "roofline" and r["measured_dram_bytes"] is not None:
                    self.assertEqual(mean[k]["measured_dram_bytes_per_step"], r["measured_dram_bytes"] / 2)

    def test_measured_bytes_beside_modelled_ones(self):
        """Both are sums over all calls of a row; where a call was not measured, the sum is empty, and the ratio is over calls of which both are known."""
        rows = oracle.report("roofline", TRACE, f"--counters={NCU}", "--group-by=shape").rows
        whole, part = ([r for r in rows if r["measured_calls"] and (r["measured_calls"] == r["calls"]) == all_of] for all_of in (True, False))
        self.assertGreater(len(whole), 30)
        for r in whole:
            self.assertAlmostEqual(r["measured_dram_bytes"], r["measured_dram_per_call_bytes"] * r["calls"], delta=1)
            self.assertAlmostEqual(r["measured_dram_bytes"], r["measured_gb_per_s"] * r["total_gpu_ns"], delta=1)
            if r["bytes"]:
                self.assertAlmostEqual(r["measured_to_model"], r["measured_dram_bytes"] / r["bytes"])
        for r in part:
            self.assertIsNone(r["measured_dram_bytes"])
            self.assertIsNotNone(r["measured_dram_per_call_bytes"])
            if r["bytes"]:
                self.assertAlmostEqual(r["measured_to_model"], r["measured_dram_per_call_bytes"] * r["calls"] / r["bytes"])

    def test_without_counters_there_are_no_columns(self):
        for name in ("kernels", "roofline"):
            self.assertFalse([c for c in oracle.report(name, TRACE).rows[0] if c.startswith("measured")])

    def test_imported(self):
        with tempfile.TemporaryDirectory() as d:
            kept = os.path.join(d, "a.opscope")
            oracle.run("import", TRACE, f"--counters={NCU}", "-o", kept)
            table = oracle.report("counters", TRACE, f"--counters={NCU}")
            self.assertEqual(oracle.report("counters", kept).rows, table.rows)
            self.assertEqual({r["unit"] for r in table.rows if r["metric"] == READ}, {"byte"})


def write(trace, counters, launches, measured, unit="byte", metric="dram__bytes.sum"):
    """Both are lists of (kernel, value); of launches the value is their duration."""
    t = labelled.Trace()
    for name, us in launches:
        with t.op("aten::" + name):
            t.kernel(us, f"void {name}<int>(int)", grid=[2, 1, 1], block=[64, 1, 1])
    t.save(trace)
    with open(counters, "w") as f:
        w = csv.writer(f, quoting=csv.QUOTE_ALL)
        w.writerow(["ID", "Process ID", "Kernel Name", "Block Size", "Grid Size", "Device", metric])
        w.writerow([""] * 6 + [unit])
        for i, (name, value) in enumerate(measured):
            w.writerow([i, 1, f"{name}(int)", "(64, 1, 1)", "(2, 1, 1)", 0, value])


class Planted(Case):
    def made(self, *args):
        d = tempfile.TemporaryDirectory()
        self.addCleanup(d.cleanup)
        trace, counters = os.path.join(d.name, "t.json.gz"), os.path.join(d.name, "c.csv")
        write(trace, counters, *args)
        return trace, counters

    def values(self, trace, counters):
        table = oracle.report("counters", trace, f"--counters={counters}", "--group-by=instance")
        return [(r["operator"], r["value"], r["told_by"]) for r in sorted(table.rows, key=lambda r: r["start_ns"])]

    def refused(self, trace, counters, says):
        code, out, err = oracle.run("report", "counters", trace, f"--counters={counters}")
        self.assertEqual((code != 0, out), (True, b""))
        self.assertIn(says, err.decode())

    def test_the_kth_launch(self):
        """As many as were launched, in the order of each kernel; another kernel was not measured."""
        made = self.made([("a", 8), ("b", 8), ("x", 8), ("a", 8)], [("a", 1), ("a", 2), ("b", "1,234.5")], "Kbyte")
        self.assertEqual(self.values(*made), [("aten::a", 1000, "order"), ("aten::b", 1234500, "order"), ("aten::a", 2000, "order")])

    def test_other_numbers_of_launches_are_unknown(self):
        trace, counters = self.made([("a", 8), ("b", 8), ("a", 8)], [("a", 1), ("b", 3)])
        self.refused(trace, counters, "measured launches can be told to be")

    def test_a_row_of_launches(self):
        """One step was measured, without its first two kernels, and two were recorded: values say which launch of the step."""
        step = list("abcadbacbd")
        trace, counters = self.made([(k, 8) for k in 2 * step], [(k, 100 + i) for i, k in enumerate(step)][2:])
        values = self.values(trace, counters)
        self.assertEqual([v for _, v, _ in values], 2 * list(range(102, 110)))
        self.assertEqual({how for _, _, how in values}, {"row of launches"})

    def test_equal_launches_in_a_row_tell_nothing(self):
        trace, counters = self.made([("a", 8)] * 40, [("a", i) for i in range(20)])
        self.refused(trace, counters, "measured launches can be told to be")

    def test_a_long_recording_takes_time_in_proportion(self):
        """The same kernel over and over, in rows that all begin alike."""
        times = []
        for n in (250, 1000) if oracle.SANITIZED else (1000, 4000):
            trace, counters = self.made([(k, 8) for k in n * "aaaaaaaab"], [(k, 1) for k in (n - 1) * "aaaaaaaab"])
            before = oracle.children_cpu_s()
            oracle.run("report", "counters", trace, f"--counters={counters}")
            times.append(oracle.children_cpu_s() - before)
        self.assertLess(times[1], 10 * times[0] + 0.5)

    def shared(self, launches, metrics):
        """Rows of 8 launches that share what was measured of one such row."""
        trace, counters = self.made([(k, 8) for k in launches // 8 * "abcabbca"], [(k, 1) for k in "abcabbca"])
        with open(counters, newline="") as f:
            rows = list(csv.reader(f))
        with open(counters, "w", newline="") as f:
            csv.writer(f, quoting=csv.QUOTE_ALL).writerows([rows[0] + [f"m__{k}.sum" for k in range(metrics)], rows[1] + metrics * ["byte"]] + [r + [i * 1000 + k for k in range(metrics)] for i, r in enumerate(rows[2:])])
        return trace, counters

    def test_many_launches_of_few_measured_ones_share_them(self):
        """800 launches have the 400 metrics of 8 measured ones."""
        trace, counters = self.shared(800, 400)
        kept = trace + ".opscope"
        self.assertEqual(oracle.run("import", trace, f"--counters={counters}", "-o", kept)[0], 0)
        self.assertLess(os.path.getsize(kept), 800 * 400 * 4) # a value is a number of four bytes
        values = {m: [r["value"] for r in sorted(oracle.report("counters", kept, "--group-by=instance").rows, key=lambda r: r["start_ns"]) if r["metric"] == f"m__{m}.sum"] for m in (0, 399)}
        self.assertEqual(values, {m: 100 * [i * 1000 + m for i in range(8)] for m in (0, 399)})
        sums = {(r["name"], r["metric"]): (r["calls"], r["sum"], r["min"], r["max"]) for r in oracle.report("counters", kept).rows}
        of = {f"void {k}<int>(int)": [i * 1000 + 399 for i, x in enumerate("abcabbca") if x == k] for k in "abc"}
        self.assertEqual({k[0]: v for k, v in sums.items() if k[1] == "m__399.sum"}, {k: (100 * len(v), 100 * sum(v), min(v), max(v)) for k, v in of.items()})

    def test_what_launches_share_is_read_once(self):
        """Launches times metrics would take seconds."""
        times = {}
        for launches in (80, 8000):
            trace, counters = self.shared(launches, 2000)
            for name in ("kernels", "roofline", "counters"):
                before = oracle.children_cpu_s()
                oracle.report(name, trace, f"--counters={counters}")
                times[name, launches] = oracle.children_cpu_s() - before
        for name in ("kernels", "roofline", "counters"):
            self.assertLess(times[name, 8000], 3 * times[name, 80] + 0.5, (name, times))

    def test_appended(self):
        """The second part has the columns the other way round, in other units."""
        trace, counters = self.made([("a", 8), ("b", 8)], [("a", 1), ("b", 3)])
        with open(counters) as f:
            once = f.read()
        with open(counters, "a") as f:
            f.write(once.replace("byte", "Mbyte"))
        self.refused(trace, counters, "c.csv: line 5: a second header of Nsight Compute")

    def test_byte_order_mark(self):
        trace, counters = self.made([("a", 8)], [("a", 1)])
        with open(counters) as f:
            text = f.read()
        with open(counters, "w", encoding="utf-8-sig") as f:
            f.write(text)
        self.assertEqual(self.values(trace, counters), [("aten::a", 1, "order")])
        for encoding in "utf-16-le", "utf-16-be":
            with open(counters, "w", encoding=encoding) as f:
                f.write("\ufeff" + text)
            self.refused(trace, counters, "c.csv: the text is UTF-16, as PowerShell's > writes it")

    def test_counters_of_a_program_that_is_alike_in_part(self):
        part = list("abcadbacbd")
        trace, counters = self.made([(k, 8) for k in part + list("aabb" * 20)], [(k, 100 + i) for i, k in enumerate(part + list("ddcc" * 20))])
        code, out, err = oracle.run("report", "counters", trace, f"--counters={counters}")
        self.assertEqual(code, 0)
        self.assertIn("may be of another program", err.decode())

    def test_counters_of_another_program(self):
        trace, counters = self.made([("a", 8)], [("z", 1)])
        self.refused(trace, counters, "no measured launch, of 1, has")


class Recorded(Case):
    """The details page of real recordings, whose rows are shorter than the header: no trace of these programs is at hand, so kernels of their names are planted."""

    SCALE = {"Mbyte": (1e6, "byte"), "Kbyte": (1e3, "byte"), "us": (1e3, "ns"), "Ghz": (1e9, "hz"), "Gbyte/s": (1e9, "byte/second"), "byte/s": (1, "byte/second")}
    LABELS = {("Duration", "us"): "gpu__time_duration.sum", ("Duration", "ns"): "gpu__time_duration.sum", ("Achieved Occupancy", "%"): "sm__warps_active.avg.pct_of_peak_sustained_active",
              ("DRAM Throughput", "%"): "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", ("Compute (SM) Throughput", "%"): "sm__throughput.avg.pct_of_peak_sustained_elapsed",
              ("Memory Throughput", "%"): "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"}

    def files(self):
        return oracle.data_glob("recorders/ncu/nsightful_t4/*.csv") + oracle.data_glob("recorders/ncu/dsocr_rtx50/kernel_*/ncu.[dm]*.csv") + oracle.data_glob("recorders/ncu/dsocr_rtx50/kernel_0001/ncu.section_*.csv")

    def read(self, path):
        """The launch, and {metric: value in base units}: of what stands twice the first."""
        with open(path, newline="", encoding="utf-8") as f:
            rows = [dict(zip(head, row)) for head, rows in [(lambda r: (r[0], r[1:]))(list(csv.reader(f)))] for row in rows]
        values = {}
        for r in rows:
            name, unit, text = r["Metric Name"], r["Metric Unit"], r["Metric Value"].replace(",", "")
            name = self.LABELS.get((name, unit), name)
            measured = "__" in name and not name.startswith(("launch__", "device__")) or "__" not in name and r["Section Name"] not in ("Launch Statistics", "Occupancy")
            if name and measured and re.fullmatch(r"-?[0-9.]+", text):
                values.setdefault(name, float(f"{float(text) * self.SCALE.get(unit, (1, unit))[0]:.15g}"))
        return rows[0], values

    def test_every_value(self):
        files = self.files()
        if not files:
            self.skipTest("no recordings of ncu")
        triple = lambda text: [int(x) for x in text.strip("()").split(",")]
        for path in files:
            launch, want = self.read(path)
            self.assertTrue(want)
            with self.subTest(file="/".join(path.split("/")[-2:])), tempfile.TemporaryDirectory() as d:
                trace = os.path.join(d, "t.json.gz")
                t = labelled.Trace()
                with t.op("aten::x"):
                    t.kernel(8, launch["Kernel Name"], grid=triple(launch["Grid Size"]), block=triple(launch["Block Size"]))
                t.save(trace)
                kept = os.path.join(d, "t.opscope")
                self.assertEqual(oracle.run("import", trace, f"--counters={path}", "-o", kept)[0], 0)
                code, out, err = oracle.run("export", "chrome", kept)
                self.assertEqual(code, 0, err)
                got = next(e for e in json.loads(out)["traceEvents"] if e.get("cat") == "kernel")["args"]
                self.assertEqual({k: got.get(k) for k in want}, want)
                rows = oracle.report("counters", kept).rows
                self.assertEqual({r["metric"]: r["mean"] for r in rows}, want)
                self.assertEqual({r["calls"] for r in rows}, {1})

    def test_of_another_program(self):
        for path in self.files()[:3]:
            code, out, err = oracle.run("report", "counters", TRACE, f"--counters={path}")
            self.assertEqual((code != 0, out, len(err.decode().splitlines())), (True, b"", 1))
            self.assertIn("counters of the same program were expected", err.decode())


class Ranges(Case):
    """Kineto's events of CUPTI's range profiler, of which HTA gives each to a launch in order."""

    def table(self, launches, ranges, *args):
        d = tempfile.TemporaryDirectory()
        self.addCleanup(d.cleanup)
        t = labelled.Trace()
        for i in range(launches):
            with t.op("aten::conv2d"), t.op(f"aten::op{i}"):
                t.call("cudaLaunchKernel", correlation=t.id())
        for i in range(ranges):
            t.event("cuda_profiler_range", f"void fft{i}()", 10 * i, 10 * i + 10, {"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum": 86114304 + i, "sm__cycles.avg": 1.5}, pid=0, tid=0)
        path = os.path.join(d.name, "t.json.gz")
        t.save(path)
        return oracle.report("counters", path, *args)

    def test_each_has_the_op_of_its_launch(self):
        rows = self.table(6, 6, "--group-by=instance").rows
        self.assertEqual([(r["name"], r["operator"], r["value"]) for r in rows if "fadd" in r["metric"]], [(f"void fft{i}()", f"aten::op{i}", 86114304 + i) for i in range(6)])

    def test_other_numbers_leave_the_op_unknown(self):
        table = self.table(6, 4, "--group-by=instance")
        self.assertEqual({r["operator"] for r in table.rows}, {None})
        self.assertEqual(len(table.rows), 4 * 3) # two metrics, and the FLOPs


class RangesByOp(Case):
    """Planted: no recording at hand has such events. HolisticTraceAnalysis joins the k-th range with the k-th cudaLaunchKernel, and names the outermost and the innermost op around it."""

    OPS = [("aten::conv2d", 0, 100), ("aten::cudnn_convolution", 10, 50), ("aten::add", 120, 20)]
    RANGES = [("fft2d_r2c_32x32", 30, {FADD: 86114304, FFMA: 10, "sm__warps_active.avg.pct_of_peak_sustained_active": 51.25, "device": 0, "note__x": "text"}),
              ("fft2d_r2c_32x32", 40, {FADD: 4, FFMA: 0, "sm__warps_active.avg.pct_of_peak_sustained_active": 48.75}), ("add_kernel", 130, {FADD: 7, HFMA: 3}), ("set", 140, {})]

    def write(self, folder, calls, ranges):
        events = [{"ph": "X", "cat": "cpu_op", "name": n, "pid": 1, "tid": 1, "ts": s, "dur": d, "args": {"External id": i}} for i, (n, s, d) in enumerate(self.OPS, 1)]
        events += [{"ph": "X", "cat": "cuda_runtime", "name": n, "pid": 1, "tid": 1, "ts": s, "dur": 2, "args": {"correlation": i}} for i, (n, s) in enumerate(calls, 1)]
        events += [{"ph": "X", "cat": "cuda_profiler_range", "name": n, "pid": 0, "tid": 0, "ts": s, "dur": 5, "args": a} for n, s, a in reversed(ranges)]
        path = os.path.join(folder, "t.json")
        with open(path, "w", encoding="utf-8") as f:
            f.write(json.dumps({"traceEvents": events}))
        return path

    LAUNCHES = [("cudaLaunchKernel", 20), ("cudaLaunchKernel", 25), ("cudaDeviceSynchronize", 27), ("cudaLaunchKernelExC", 125), ("cudaLaunchKernel", 150)]

    def test_rows(self):
        with tempfile.TemporaryDirectory() as tmp:
            path, kept = self.write(tmp, self.LAUNCHES, self.RANGES), os.path.join(tmp, "t.opscope")
            self.assertEqual(oracle.run("import", path, "-o", kept)[0], 0)
            tables = [oracle.report("counters", p) for p in (path, kept)]
            each = oracle.report("counters", path, "--group-by=instance").rows
        self.assertEqual(tables[0].rows, tables[1].rows)
        rows = {(r["name"], r["metric"]): r for r in tables[0].rows}
        self.assertEqual({k[1] for k in rows if k[0] == "fft2d_r2c_32x32"}, {FADD, FFMA, "sm__warps_active.avg.pct_of_peak_sustained_active", "flops"})
        self.assertNotIn("set", {k[0] for k in rows})
        r = rows["fft2d_r2c_32x32", FADD]
        self.assertEqual([r[c] for c in ("operator", "top_operator", "calls", "sum", "mean", "min", "max")],
                         ["aten::cudnn_convolution", "aten::conv2d", 2, 86114308, 43057154, 4, 86114304])
        self.assertEqual(rows["fft2d_r2c_32x32", "flops"]["sum"], 86114304 + 20 + 4)
        self.assertEqual(rows["fft2d_r2c_32x32", "sm__warps_active.avg.pct_of_peak_sustained_active"]["mean"], 50)
        self.assertEqual((rows["add_kernel", "flops"]["sum"], rows["add_kernel", "flops"]["operator"], rows["add_kernel", "flops"]["top_operator"]), (7 + 6, "aten::add", "aten::add"))
        self.assertEqual([(r["start_ns"], r["value"]) for r in each if r["metric"] == FADD], [(30000, 86114304), (40000, 4), (130000, 7)])

    def test_not_as_many(self):
        """HTA gives nothing then; the counters are known all the same."""
        with tempfile.TemporaryDirectory() as tmp:
            table = oracle.report("counters", self.write(tmp, self.LAUNCHES[:2], self.RANGES))
        self.assertEqual({r["operator"] for r in table.rows}, {None})
        self.assertIn("CUPTI measured 4 kernels and the recording has 2 launches", "\n".join(table.notes))

    def test_none(self):
        with tempfile.TemporaryDirectory() as tmp, self.assertRaisesRegex(AssertionError, "no hardware counters of kernels"):
            oracle.report("counters", self.write(tmp, self.LAUNCHES, []))


if __name__ == "__main__":
    oracle.main()
