"""`report kernels` against the TensorBoard plugin's own table and pie, and against TraceLens' summary of the same traces."""
import collections
import csv
import decimal
import glob
import json
import math
import os
import re
import statistics
import tempfile

import labelled
import oracle
from oracle import Case, data, report

RUN = ("tb_plugin", "resnet50_num_workers_0")
TRACE = "worker0.1623143089861.pt.trace.json.gz"  # span 1


def expected(name):
    with open(data(*RUN, name)) as f:
        return json.load(f)


def by_title(table):
    """Rows keyed by the columns' titles, as the plugin names them."""
    titles = [c["title"] for c in table.doc["columns"]]
    return [dict(zip(titles, r)) for r in table.doc["rows"]]


class TbPlugin(Case):
    def test_table(self):
        want = expected("expected_kernel_table.json")["data"]
        titles = [c["name"] for c in want["columns"]]
        rows = by_title(report("kernels", data(*RUN, TRACE), "--compat=tb-plugin"))
        self.assertEqual(len(want["rows"]), 67)
        self.assertEqual(len(rows), 67)
        got = {r["Name"]: r for r in rows}
        for w in want["rows"]:
            with self.subTest(kernel=w[0][:60]):
                self.assertEqual([got[w[0]][t] for t in titles], w)
        self.assertEqual([r["Total Duration (us)"] for r in rows], [w[titles.index("Total Duration (us)")] for w in want["rows"]])

    def test_pie(self):
        rows = by_title(report("kernels", data(*RUN, TRACE), "--compat=tb-plugin"))
        want = expected("expected_kernel_pie.json")["total"]["rows"]
        self.assertEqual(sorted((r["Name"], r["Total Duration (us)"]) for r in rows), sorted(map(tuple, want)))


class Occupancy(Case):
    """The columns that say what limits a launch, against a calculation of its own by the rules of CUDA's occupancy calculator, and against the estimate that Kineto states:
    min(blocks that fit, blocks / SMs) x threads of a block / threads of an SM."""

    SM = {"7.0": (64, 32, 96, 256, 0), "8.0": (64, 32, 164, 128, 1024), "9.0": (64, 32, 228, 128, 1024)}  # warps, blocks, KiB, unit of shared memory, reserved
    TRACES = [("tb_plugin", "resnet50_num_workers_0", TRACE), ("tracelens", "h100", "Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"),
              ("multirank", "megatron_a100_tp8", "megatron_kineto_0.json.gz"), ("hta", "ns_resolution_trace", "rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz")]

    @staticmethod
    def limits(sm, threads, registers, shared):
        warps, blocks, kib, unit, reserved = sm
        of_block = -(-threads // 32)
        fit = {"registers": 65536 // 4 // (-(-registers * 32 // 256) * 256) * 4 // of_block, "block size": warps // of_block, "blocks": blocks}
        if shared + reserved:
            fit["shared memory"] = kib * 1024 // (-(-(shared + reserved) // unit) * unit)
        least = min(fit.values())
        return least, "none" if least * of_block == warps else ", ".join(k for k in ("registers", "shared memory", "block size", "blocks") if fit.get(k) == least), 100 * least * of_block / warps

    def test_limits(self):
        seen = set()
        for path in self.TRACES:
            device = report("devices", data(*path)).rows[0]
            sm, sms = self.SM[device["compute_capability"]], device["sm_count"]
            for r in report("kernels", data(*path), "--group-by=launch").rows:
                if r["registers_per_thread"] is None or not r["registers_per_thread"]:
                    self.assertIsNone(r["limited_by"])
                    continue
                threads, blocks = math.prod(map(int, r["block"].split(","))), math.prod(map(int, r["grid"].split(",")))
                fit, by, pct = self.limits(sm, threads, r["registers_per_thread"], r["shared_bytes"])
                self.assertEqual((r["blocks_fit_per_sm"], r["limited_by"], r["theoretical_occupancy_pct"]), (fit, by, pct), (path, r))
                if r["mean_occupancy_pct"]:
                    estimate = 100 * min(fit, blocks / sms) * threads / (sm[0] * 32)
                    self.assertAlmostEqual(r["mean_occupancy_pct"], estimate, delta=0.51, msg=(path, r))
                seen.update(by.split(", "))
        self.assertEqual(seen, {"registers", "shared memory", "blocks", "none"})  # block size: test_occupancy.c

    def test_instances(self):
        path, by_launch = data(*self.TRACES[0]), collections.defaultdict(set)
        for r in report("kernels", path, "--group-by=launch").rows:
            by_launch[r["name"], r["grid"], r["block"]].add((r["theoretical_occupancy_pct"], r["blocks_fit_per_sm"], r["limited_by"]))
        for r in report("kernels", path, "--group-by=instance").rows:
            self.assertIn((r["theoretical_occupancy_pct"], r["blocks_fit_per_sm"], r["limited_by"]), by_launch[r["kernel_name"], r["grid"], r["block"]])

    def test_amd(self):
        rows = report("kernels", data("tracelens", "mi300", "resnet_act_checkpoint.json.gz"), "--group-by=launch").rows
        self.assertEqual({r["limited_by"] for r in rows}, {None})


class TbPluginByName(Case):
    """The plugin's table by name is made of all events of kind kernel, whatever its tree of ops made of their launches: its KernelParser
    adds up calls and durations by name. Its table by op leaves out kernels whose call belongs to no op."""

    TRACES = (("hta", "df_index_resolver", "df_index_resolver.json.gz"), ("hta", "triton_example", "triton_example.json.gz"),
              ("hta", "amd_trace", "mi250_minitoy_train_ROCm6_2_kineto.json.gz"),
              ("hta", "critical_path", "cuda_event_sync", "event_sync_trace.json.gz"),
              ("multirank", "megatron_a100_tp8", "megatron_kineto_0.json.gz"))

    @staticmethod
    def kernels(path):
        ns = {}
        for e in oracle.events(oracle.load(path)):
            if e.get("ph") == "X" and str(e.get("cat", "")).lower() == "kernel":
                ns.setdefault(e["name"], []).append(decimal.Decimal(str(e["dur"])) * 1000)
        return {n: (len(d), round(sum(d) / 1000)) for n, d in ns.items()}

    def check(self, path):
        want = self.kernels(path)
        if want:
            rows = report("kernels", path, "--compat=tb-plugin").rows
            self.assertEqual({r["name"]: (r["calls"], r["total_duration_us"]) for r in rows}, want)
        return sum(calls for calls, _ in want.values())

    def test_real(self):
        paths = [data(*t) for t in self.TRACES]
        n = {os.path.basename(p): self.check(p) for p in paths}
        self.assertEqual(n["df_index_resolver.json.gz"], 19370)

    def test_synthetic(self):
        for path in sorted(oracle.glob.glob(oracle.synthetic("*"))):
            with self.subTest(trace=os.path.basename(path)):
                self.check(path)


class Independent(Case):
    """Every figure of a kernel, from python's own reading of the trace."""

    def test_statistics(self):
        path = data("tracelens", "h100", "Falconsai_nsfw_image_detection__1016002.json.gz")
        durations = {}
        for e in oracle.events(oracle.load(path)):
            if e.get("cat") == "kernel":
                durations.setdefault(e["name"], []).append(round(e["dur"] * 1000))
        rows = report("kernels", path).by("name")
        self.assertEqual(set(rows), set(durations))
        for name, d in durations.items():
            d.sort()
            r = rows[name]
            with self.subTest(kernel=name[:60]):
                self.assertEqual((r["calls"], r["total_ns"], r["min_ns"], r["max_ns"]), (len(d), sum(d), d[0], d[-1]))
                self.assertTrue(math.isclose(r["mean_ns"], sum(d) / len(d), rel_tol=1e-12), r)
                self.assertEqual(r["median_ns"], statistics.median(d))
                for column, percent in (("p95_ns", 95), ("p99_ns", 99)):
                    rank = max(1, -(-percent * len(d) // 100))  # nearest rank
                    self.assertEqual(r[column], d[rank - 1], column)
                self.assertTrue(math.isclose(r["stddev_ns"], statistics.stdev(d) if len(d) > 1 else 0, rel_tol=1e-9, abs_tol=1e-9), r)


class TraceLens(Case):
    """Counts and times per launching op and kernel; TraceLens' summary has the stream besides, of which each of these
    traces uses one."""

    @staticmethod
    def summary(path):
        out = {}
        with open(path, newline="") as f:
            for r in csv.DictReader(f):
                have = out.setdefault((r["Parent cpu_op"] or None, r["Kernel name"]), [0, 0, math.inf, 0])
                figures = [float(r[f"Kernel duration (µs)_{c}"]) for c in ("count", "sum", "min", "max")]
                out[r["Parent cpu_op"] or None, r["Kernel name"]] = [
                    have[0] + int(figures[0]), have[1] + round(figures[1] * 1000), min(have[2], round(figures[2] * 1000)),
                    max(have[3], round(figures[3] * 1000))]
        return out

    def test_kernel_summaries(self):
        paths = oracle.data_glob("tracelens/**/kernel_summary.csv")
        if not paths:
            self.skipTest("no TraceLens summaries")
        for path in paths:
            trace = os.path.dirname(path).replace("_perf_report_csvs", "") + ".json.gz"
            got = {(r["operator"] or None, r["name"]): [r["calls"], r["total_ns"], r["min_ns"], r["max_ns"]]
                   for r in report("kernels", trace, "--group-by=op").rows}
            want = self.summary(path)
            with self.subTest(trace=os.path.basename(trace)):
                self.assertEqual({k: v for k, v in got.items() if k not in want}, {})
                for key, w in want.items():
                    self.assertEqual(got.get(key), w, key)


class Triton(Case):
    def test_time_stays_at_80_columns(self):
        """Files and parameters give way to the time."""
        t = labelled.Trace()
        for i, us in enumerate((300, 200)):
            name = f"triton_red_fused_add_mean_mul_pow_rsqrt_view_unsafe_view_{i}"
            with t.op(name, 10, [[8, 8]], **{"kernel_file": f"/tmp/torchinductor_me/{i}{i}/c{i}abcdefghijklmnopqrstuvwxyz.py", "num_warps": str(4 << i),
                                             "kernel_kwargs": f"XBLOCK={512 << i},RBLOCK=2048"}):
                t.kernel(us, name)
        t.events = [{**e, "args": {k.replace("kernel file", "kernel_file").replace("num warps", "num_warps").replace("kernel kwargs", "kernel_kwargs"): v
                                   for k, v in e["args"].items()}} for e in t.events]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.pt.trace.json.gz")
            t.save(path)
            code, out, err = oracle.run("report", "triton", path, "--width=80")
            rows = report("triton", path).rows
        self.assertEqual(code, 0, err)
        title = out.decode().splitlines()[1]
        self.assertEqual(title.split()[:2], ["Kernel", "Total"])
        self.assertIn("300.000 us", out.decode())
        self.assertEqual([(r["total_ns"], r["num_warps"], r["kernel_kwargs"]) for r in rows],
                         [(300000, "4", "XBLOCK=512,RBLOCK=2048"), (200000, "8", "XBLOCK=1024,RBLOCK=2048")])


class ShortNames(Case):
    """What people read: one name for each kernel, the same in all reports of an input, without the noise of C++."""

    NOISE = re.compile(r"\bvoid |\bat::|::native|lambda|unnamed|anonymous|[(){}]|^[\s<>]|\s$")
    PATTERNS = ("tracelens/h100/*.gz", "tracelens/mi300/*.gz", "tracelens/b200/*.gz", "tracelens/triton/*.gz", "verdicts/*.gz", "hta/**/*.gz", "nsys/**/*.sqlite",
                "pyprof/**/*.s*", "more/kineto_*/**/*.gz", "more/puzzlers/**/*.gz", "tb_plugin/**/*.pt.trace.json.gz")

    def rows(self, path):
        code, out, _ = oracle.run("report", "kernels", path, "--format=json")
        return oracle.Table(json.loads(out)).rows if code == 0 else []

    def test_all_inputs(self):
        seen = 0
        paths = [p for pattern in self.PATTERNS for p in oracle.data_glob(pattern)]
        if not paths:
            self.skipTest("no real traces")
        for path in paths[::4] if oracle.SANITIZED else paths:
            rows = self.rows(path)
            short = [r["short_name"] for r in rows]
            with self.subTest(trace=os.path.relpath(path, oracle.DATA)):
                self.assertEqual(len(set(short)), len(rows))
                self.assertEqual([s for s in short if not s or self.NOISE.search(s)], [])
                self.assertEqual([r["name"] for r in rows if r["name"].startswith("triton_") and r["short_name"] != r["name"]], [])
                for r in rows:
                    words = re.findall(r"\w+", r["short_name"])[:1]  # the first is one of the full name's, or says the library or the kind of it
                    self.assertTrue(r["name"].startswith("_Z") or words[0] in re.findall(r"\w+", r["name"]) or
                                    words[0] in ("elementwise", "scatter_gather", "reduce", "multi_tensor_apply", "tensile", "cutlass", "xmma", "igemm"), r)
            seen += len(rows)
        self.assertGreater(seen, 250 if oracle.SANITIZED else 1000)

    def test_same_in_all_reports(self):
        path = data("tracelens", "h100", "Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz")
        names = {r["name"]: r["short_name"] for r in report("kernels", path).rows}
        for r in report("kernels", path, "--group-by=instance").rows:
            self.assertEqual(r["kernel"], names[r["kernel_name"]])
        for r in report("kernels", path, "--steps=6").rows:
            self.assertEqual(r["short_name"], names[r["name"]])
        for r in report("gemm", path).rows:
            self.assertEqual(r["short_name"].split("; "), [names.get(n, n) for n in r["kernels"].split("; ")])

    def test_shown(self):
        """Text and HTML have short names, with the full one a tooltip; CSV has both; --names chooses; a column asked for is itself."""
        path = data("tracelens", "h100", "Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz")
        show = lambda *args: oracle.run("report", "kernels", path, "--limit=2", *args)[1].decode()
        full = "void at::native::elementwise_kernel<128, 4,"
        self.assertIn("elementwise<MulFunctor> BFloat16 not vectorized  ", show())
        self.assertNotIn(full, show())
        self.assertIn(full, show("--names=full"))
        self.assertIn(full, show("--columns=name,short_name"))
        self.assertNotIn(full, show("--columns=name"))
        html = show("--format=html")
        self.assertIn('title="' + full.replace("<", "&lt;"), html)
        self.assertIn(">elementwise&lt;MulFunctor&gt; BFloat16 not vectorized</td>", html)
        rows = list(csv.DictReader(show("--format=csv").splitlines()))
        self.assertEqual([r["short_name"] for r in rows], ["xmma gemm bf16 128x128x64 sm90", "elementwise<MulFunctor> BFloat16 not vectorized"])
        self.assertTrue(rows[1]["name"].startswith(full))


class TensorCoresUnknown(Case):
    """How much of the kernel time is of kernels of which neither the name nor the op's types tell whether they used Tensor Cores."""

    def share(self, path):
        table = report("kernels-unknown", path)
        return {r["name"]: r["total_pct"] for r in table.rows if "Tensor Cores" in r["unknown"]}

    def test_decode(self):
        """The attention kernels, which a graph's replay launched, are told by their op, which the capture beside the trace gives."""
        path = data("graphs", "vllm_decode_full", "graph_execution.json.gz")
        self.assertEqual(self.share(path), {})
        tc = {r["name"]: r["tensor_cores"] for r in report("kernels", path).rows}
        self.assertEqual({tc[n] for n in tc if n.startswith("_matmul_ogs_NNT_bf16xbf16xmxfp4")}, {"yes"})

    def test_by_op(self):
        """Triton's attn_fwd says nothing of its type; its op aten::_flash_attention_forward has operands in bfloat16."""
        path = data("tracelens", "triton", "trace.json.gz")
        self.assertEqual(self.share(path), {})
        for of in ("name", "op", "launch", "instance"):
            rows = report("kernels", path, f"--group-by={of}").rows
            name = "kernel_name" if of == "instance" else "name"
            self.assertEqual({r["tensor_cores"] for r in rows if r[name] == "attn_fwd"}, {"yes"}, of)

    def test_our_own(self):
        for path in sorted(glob.glob(os.path.join(oracle.SYNTHETIC, "..", "h200", "*.json.gz"))):
            with self.subTest(path=os.path.basename(path)):
                self.assertEqual(self.share(path), {})


if __name__ == "__main__":
    oracle.main()
