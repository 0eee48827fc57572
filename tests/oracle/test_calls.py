"""`report api`, `memcpy`, `nvtx`, `kernels-unknown`, and `kernels` on the same inputs: against what `nsys stats` printed of a capture,
against another tool's projection of NVTX ranges, and against python's own reading of the files."""
import csv
import gzip
import json
import math
import os
import re
import sqlite3
import statistics

import oracle
from oracle import Case, data, data_glob, report

FUSER = ("nsys", "2024.6_fuser_h100")


def close(a, b, digits=9):
    return math.isclose(a, b, rel_tol=10.0 ** -digits, abs_tol=1e-9)


def statistics_of(values):
    return {"calls": len(values), "total_ns": sum(values), "min_ns": min(values), "max_ns": max(values),
            "mean_ns": statistics.fmean(values), "median_ns": statistics.median(values),
            "stddev_ns": statistics.stdev(values) if len(values) > 1 else 0}


def log_section(path, name):
    """A table of an `nsys stats` log as rows of texts by column title; the last column is the rest of the line."""
    lines = open(path, encoding="utf-8").read().splitlines()
    at = next(i for i, s in enumerate(lines) if f"'{name}'" in s)
    rule = next(i for i in range(at, len(lines)) if lines[i].strip().startswith("---"))
    columns = [m.span() for m in re.finditer(r"-+", lines[rule])]
    columns[-1] = (columns[-1][0], None)
    title = next(lines[i] for i in range(rule - 1, at, -1) if lines[i].strip())
    titles = [title[a:b].strip() for a, b in columns]
    out = []
    for line in lines[rule + 1:]:
        if line.startswith("["):
            break
        if line.strip():
            out.append(dict(zip(titles, [line[a:b].strip() for a, b in columns])))
    return out


def same_figures(case, got, want):
    """A row of ours against one of `nsys stats`, whose mean, median and deviation have one decimal."""
    calls = next(want[t] for t in ("Num Calls", "Instances", "Count") if t in want)
    case.assertEqual([got[c] for c in ("calls", "total_ns", "min_ns", "max_ns")],
                     [int(calls)] + [int(want[t]) for t in ("Total Time (ns)", "Min (ns)", "Max (ns)")])
    for column, title in (("mean_ns", "Avg (ns)"), ("median_ns", "Med (ns)"), ("stddev_ns", "StdDev (ns)"), ("total_pct", "Time (%)")):
        case.assertAlmostEqual(got[column], float(want[title]), delta=0.0500001, msg=column)


def short(name):
    """nsys stats leaves out a version of four digits: cudaLaunchKernel_v7000."""
    return re.sub(r"_v\d{4}$", "", name)


class Nsys(Case):
    def nsys(self, *parts):
        path = data(*parts)
        return path

    def database(self, *parts):
        return [os.path.join(*parts, n) for n in os.listdir(data(*parts)) if n.endswith(".sqlite")][0]

    def compare(self, got, want, key):
        self.assertEqual(sorted(got), sorted(w[key] for w in want))
        for w in want:
            with self.subTest(row=w[key]):
                same_figures(self, got[w[key]], w)

    def test_api_csv(self):
        path = self.nsys(self.database("nsys", "trixi_stats"))
        with open(data("nsys", "trixi_stats", "expected_cuda_api_sum.csv"), newline="") as f:
            want = list(csv.DictReader(f))
        self.compare({short(r["name"]): r for r in report("api", path).rows}, want, "Name")

    def log(self):
        return [os.path.join(data(*FUSER), n) for n in os.listdir(data(*FUSER)) if n.startswith("nsys-log")][0]

    def test_api_log(self):
        path = self.nsys(self.database(*FUSER))
        self.compare({short(r["name"]): r for r in report("api", path).rows}, log_section(self.log(), "cuda_api_sum"), "Name")

    def test_nvtx_log(self):
        path = self.nsys(self.database(*FUSER))
        want = log_section(self.log(), "nvtx_sum")
        got = {(r["domain"] + ":" + r["range"]): r for r in report("nvtx", path).rows}
        self.assertEqual(len(got), len(want))
        for w in want:
            with self.subTest(range=w["Range"][:60]):
                self.assertEqual(got[w["Range"]]["style"], w["Style"])
                same_figures(self, got[w["Range"]], w)

    def test_memory_log(self):
        path = self.nsys(self.database(*FUSER))
        spelling = {("memcpy", "DtoH"): "[CUDA memcpy Device-to-Host]", ("memcpy", "HtoD"): "[CUDA memcpy Host-to-Device]",
                    ("memcpy", "DtoD"): "[CUDA memcpy Device-to-Device]", ("memset", ""): "[CUDA memset]"}
        got = {spelling[r["operation"], r["direction"]]: r for r in report("memcpy", path).rows}
        self.compare(got, log_section(self.log(), "cuda_gpu_mem_time_sum"), "Operation")

    def kernels(self, path, want):
        """Of kernels nsys and we state the same sums; its deviation is of a sample, ours of the population, its median of an even
        number a mean, ours the nearest rank."""
        got = report("kernels", path).rows
        figures = lambda r: (r["name"], r["calls"], r["total_ns"], r["min_ns"], r["max_ns"])
        ask = [(w["Name"], int(w["Instances"]), int(w["Total Time (ns)"]), int(w["Min (ns)"]), int(w["Max (ns)"])) for w in want]
        self.assertEqual(sorted(figures(r)[1:] for r in got), sorted(w[1:] for w in ask))
        return sorted(map(figures, got)), sorted(ask)

    def test_kernels(self):
        path = self.nsys(self.database("nsys", "trixi_stats"))
        with open(data("nsys", "trixi_stats", "expected_cuda_gpu_kern_sum.csv"), newline="") as f:
            self.assertEqual(*self.kernels(path, list(csv.DictReader(f))))
        # The log cuts long names: figures alone.
        self.kernels(self.nsys(self.database(*FUSER)), log_section(self.log(), "cuda_gpu_kern_sum"))

    def test_projection(self):
        """Range by range summed up, as the Chrome trace beside the database has them."""
        folder = ("nsys", "2025.3_nsightful_t4")
        path = self.nsys(self.database(*folder))
        with gzip.open([os.path.join(data(*folder), n) for n in os.listdir(data(*folder)) if n.endswith(".json.gz")][0]) as f:
            events = oracle.events(json.load(f))
        sums = {"nvtx": {}, "nvtx-kernel": {}}
        for e in events:
            if e["cat"] in sums:
                s = sums[e["cat"]].setdefault(e["name"], [0, 0])
                s[0] += 1
                s[1] += round(e["dur"] * 1000)
        self.assertGreater(len(sums["nvtx-kernel"]), 100)
        got = report("nvtx", path).by("range")
        self.assertEqual(set(got), set(sums["nvtx"]))
        for name, r in got.items():
            with self.subTest(range=name):
                self.assertEqual([r["calls"], r["total_ns"]], sums["nvtx"][name])
                # Ranges of the other tool are there only with kernels; of ours gpu_ranges may have launched copies alone.
                self.assertEqual(r["kernel_projected_ns"], sums["nvtx-kernel"].get(name, [0, 0])[1])

    def test_all_databases(self):
        """Calls, copies and sets of every database, against SQL."""
        for path in data_glob("nsys/*/*.sqlite"):
            self.nsys(path)
            db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
            tables = {r[0] for r in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            for name, found in (("api", ("RUNTIME", "DRIVER")), ("memcpy", ("MEMCPY", "MEMSET"))):
                n = ns = 0
                for t in sorted(tables):
                    if re.fullmatch(r"CUPTI_ACTIVITY_KIND_(%s)" % "|".join(found), t):
                        # A backtrace (67) repeats the call that it was taken in, under the same correlation id.
                        once = " AND eventClass <> 67" if name == "api" else ""
                        a, b = db.execute(f'SELECT count(*), sum("end" - start) FROM "{t}" WHERE "end" >= start{once}').fetchone()
                        n, ns = n + a, ns + (b or 0)
                with self.subTest(file=os.path.basename(path), report=name):
                    if not n:
                        self.assertEqual(oracle.run("report", name, path)[0], 1)
                        continue
                    rows = report(name, path).rows
                    self.assertEqual((sum(r["calls"] for r in rows), sum(r["total_ns"] for r in rows)), (n, ns))


class Kineto(Case):
    """Every figure from python's own reading of a trace."""

    TRACE = ("tracelens", "h100", "Falconsai_nsfw_image_detection__1016002.json.gz")
    RESNET = ("tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz")

    def check(self, got, values):
        self.assertEqual(got["calls"], len(values))
        for column, want in statistics_of(values).items():
            self.assertTrue(close(got[column], want), (column, got[column], want))

    def test_api(self):
        path = data(*self.TRACE)
        events = oracle.events(oracle.load(path))
        calls, name_of, launched = {}, {}, {}
        for e in events:
            if e.get("cat") in ("cuda_runtime", "cuda_driver"):
                calls.setdefault(e["name"], []).append(round(e["dur"] * 1000))
                name_of[e["args"]["correlation"]] = e["name"]
        for e in events:
            if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
                s = launched.setdefault(name_of.get(e["args"]["correlation"]), [0, 0])
                s[0] += 1
                s[1] += round(e["dur"] * 1000)
        got = report("api", path).by("name")
        self.assertEqual(set(got), set(calls))
        for name, values in calls.items():
            with self.subTest(call=name):
                self.check(got[name], values)
                self.assertEqual([got[name]["gpu_ops"], got[name]["gpu_ns"]], launched.get(name, [0, 0]))
        for by in ("thread", "op"):
            rows = report("api", path, f"--group-by={by}").rows
            self.assertEqual(sum(r["total_ns"] for r in rows), sum(map(sum, calls.values())))

    def test_memcpy(self):
        path = data(*self.RESNET)
        times, sizes = {}, {}
        for e in oracle.events(oracle.load(path)):
            if e.get("cat") in ("Memcpy", "Memset"):
                times.setdefault(e["name"], []).append(round(e["dur"] * 1000))
                sizes.setdefault(e["name"], []).append(e["args"]["bytes"])
        self.assertGreater(len(times), 1)
        got = report("memcpy", path).by("name")
        self.assertEqual(set(got), set(times))
        for name, values in times.items():
            r = got[name]
            self.check(r, values)
            self.assertEqual((r["bytes"], r["min_bytes"], r["max_bytes"]), (sum(sizes[name]), min(sizes[name]), max(sizes[name])))
            self.assertTrue(close(r["gb_per_s"], sum(sizes[name]) / sum(values)))
        copy = got["Memcpy HtoD (Pageable -> Device)"]
        self.assertEqual([copy[c] for c in ("operation", "direction", "from_memory", "to_memory")], ["memcpy", "HtoD", "Pageable", "Device"])
        rows = report("memcpy", path, "--group-by=device").rows
        self.assertEqual(sum(r["total_ns"] for r in rows), sum(map(sum, times.values())))

    def brute_force(self, path, events):
        """The projection by looking at every launch for every range."""
        ns = lambda v: round(v * 1000)
        base = min(e["ts"] for e in events if e.get("ph") == "X")
        at = lambda e: (ns(e["ts"] - base), ns(e["ts"] - base) + ns(e["dur"]))
        calls = {e["args"]["correlation"]: e for e in events if str(e.get("cat")).lower() in ("runtime", "cuda_runtime", "cuda_driver")}
        launched = []
        for e in events:
            call = calls.get(e["args"].get("correlation")) if str(e.get("cat")).lower() in ("kernel", "memcpy", "memset") else None
            if call:
                launched.append((call["pid"], call["tid"], at(call)[0], *at(e), e["cat"].lower() == "kernel"))
        out = {}
        for e in events:
            if e.get("ph") != "X" or not (e.get("cat") == "user_annotation" or str(e.get("name")).startswith("ProfilerStep#")):
                continue
            a, b = at(e)
            inside = [x for x in launched if x[0] == e["pid"] and x[1] == e["tid"] and a <= x[2] < b]
            kernels = [x for x in inside if x[5]]
            s = out.setdefault(re.sub(r"^ProfilerStep#\d+$", "ProfilerStep*", e["name"]), [0] * 6)
            for i, v in enumerate((1, b - a, len(inside), len(kernels), sum(x[4] - x[3] for x in kernels),
                                   max(x[4] for x in inside) - min(x[3] for x in inside) if inside else 0)):
                s[i] += v
        return out

    def test_nvtx(self):
        path = data(*self.RESNET)
        want = self.brute_force(path, oracle.events(oracle.load(path)))
        self.assertEqual({name: w[0] for name, w in want.items()}, {"ProfilerStep*": 6})
        got = report("nvtx", path).by("range")
        self.assertEqual({n: [r[c] for c in ("calls", "total_ns", "gpu_ops", "kernels", "kernel_ns", "projected_ns")]
                          for n, r in got.items()}, want)

    def test_nvtx_of_steps(self):
        """Of a range that is a step nvtx has what its own thread launched, steps what all did: a note gives both, and the second is what steps adds up to."""
        oracle.data("tb_plugin")
        checked = 0
        for path in data_glob("tb_plugin/**/*.trace.json.gz") + data_glob("hta/**/*.json.gz") + data_glob("tracelens/mi300/*.json.gz"):
            if oracle.run("report", "nvtx", path, "--format=json")[0]:
                continue
            notes = [n for n in report("nvtx", path).notes if n.startswith("ranges that are steps")]
            if not notes:
                continue
            with self.subTest(trace=os.path.basename(path)):
                n, own, own_ns, every, _ = map(int, re.findall(r"\d+", notes[0]))
                steps = report("steps", path).rows
                self.assertEqual(every, sum(r["device_ops"] for r in steps))
                rows = [r for r in report("nvtx", path).rows if r["range"] == "ProfilerStep*"]
                self.assertEqual((sum(r["calls"] for r in rows), sum(r["gpu_ops"] for r in rows), sum(r["gpu_ns"] for r in rows)), (n, own, own_ns))
                checked += 1
        self.assertGreaterEqual(checked, 6)

    def test_unknown_kernels(self):
        """What kernels-unknown lists is what kernels has as unknown, and the notes add up."""
        for path in data_glob("tracelens/**/*.json.gz") + data_glob("hta/**/*.json.gz"):
            code, out, _ = oracle.run("report", *oracle.whole("kernels", path), "--format=json")
            if code:
                continue
            kernels = oracle.Table(json.loads(out)).rows
            unknown = report("kernels-unknown", path)
            with self.subTest(trace=os.path.basename(path)):
                self.assertEqual({r["name"]: (r["calls"], r["total_ns"]) for r in unknown.rows},
                                 {r["name"]: (r["calls"], r["total_ns"]) for r in kernels
                                  if "unknown" in (r["class"], r["tensor_cores"])})
                for note in unknown.notes[:2]:
                    all_ns, known, not_known = map(int, re.findall(r"\d+", note))
                    self.assertEqual((all_ns, known + not_known), (sum(r["total_ns"] for r in kernels), all_ns))


class Names(Case):
    """Tensor Core answers of other tools: DLProf's for each kernel it saw, the TensorBoard plugin's list."""

    def test_tb_plugin(self):
        path = data(*Kineto.RESNET)
        ours = {r["name"]: r["tensor_cores"] for r in report("kernels", path).rows}
        for r in report("kernels", path, "--compat=tb-plugin").rows:
            self.assertEqual(ours[r["name"]], r["tensor_cores_used"].lower(), r["name"])

    @oracle.of("dlprof")
    def test_dlprof(self):
        """DLProf lists short names: each kernel of ours has one of them inside, and all of them the same answer."""
        path = data("dlprof", "w_relu", "nsys_profile.sqlite")
        with open(data("dlprof", "w_relu", "dlprof_kernel.csv"), newline="") as f:
            rows = list(csv.reader(f))
        want = {}
        for r in rows[2:]:
            want.setdefault(r[rows[1].index("Kernel Name")], set()).add(r[rows[1].index("Uses TC")])
        self.assertGreater(len(want), 20)
        for r in report("kernels", path).rows:
            answers = {a for name, answer in want.items() if name in r["name"] for a in answer}
            self.assertEqual(answers, {r["tensor_cores"]}, r["name"])


if __name__ == "__main__":
    oracle.main()
