"""The command `dlprof` against DLProf 1.8's own files of the same run, byte by byte; its switches, files and console; and nsys, played by a
script that records how it was called."""
import csv
import io
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time

import nsys_db
import oracle
from oracle import Case, data, report

RUN = ("dlprof", "w_relu")
SUFFIXES = {"summary": "summary", "detail": "detailed", "iteration": "iteration", "kernel": "kernel", "tensor": "tensor_core",
            "op_type": "op_type", "group_node": "group_op", "expert_systems": "expert_systems"}
# Rows of System Config that are DLProf's own and stand in no input but its database.
LIVE_ROWS = ("DLProf Version", "DLProf Build")
SYNTHETIC = oracle.synthetic("two_steps")


def read(*path):
    with open(os.path.join(*path), "rb") as f:
        return f.read()


def rows(text):
    return list(csv.reader(io.StringIO(text)))


class Command(Case):
    """Each test has an empty folder to run dlprof in."""

    def setUp(self):
        super().setUp()
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.program = os.path.join(self.dir, "bin", "dlprof")
        os.mkdir(os.path.join(self.dir, "bin"))
        os.symlink(oracle.OPSCOPE, self.program)
        self.work = os.path.join(self.dir, "work")
        os.mkdir(self.work)

    def dlprof(self, *args, status=0, path=None):
        env = {**os.environ, "TZ": "UTC"}
        if path is not None:
            env["PATH"] = path
        p = subprocess.run([self.program, *map(str, args)], cwd=self.work, env=env, capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
        out, err = p.stdout.decode(), p.stderr.decode()
        self.assertEqual(p.returncode, status, f"{args}: {out}{err}")
        return out, err

    def files(self, folder="."):
        return sorted(f for f in os.listdir(os.path.join(self.work, folder)))


class Files(Command):
    def compare(self, name, ours):
        theirs = read(data(*RUN, name)).decode().split("\n")
        for i, (w, g) in enumerate(zip(theirs, ours.decode().split("\n"))):
            self.assertEqual(g, w, f"{name} line {i + 1}")
        self.assertEqual(ours, read(data(*RUN, name)), name)

    def test_from_nsys(self):
        self.dlprof("--database=" + data(*RUN, "nsys_profile.sqlite"), "--reports=all", "--mode=pytorch")
        for suffix in SUFFIXES.values():
            if suffix != "summary":
                self.compare(f"dlprof_{suffix}.csv", read(self.work, f"dlprof_{suffix}.csv"))
        theirs = read(data(*RUN, "dlprof_summary.csv")).decode().split("\n")
        ours = read(self.work, "dlprof_summary.csv").decode().split("\n")
        wanted = [line for line in theirs if line.split(",")[0] not in LIVE_ROWS]
        self.assertEqual(len(theirs) - len(wanted), len(LIVE_ROWS))
        self.assertEqual(ours, wanted)

    def test_from_dlprof_database(self):
        """All eight, the live machine's rows included; the kept aggregation is made anew."""
        self.dlprof("--database=" + data(*RUN, "dlprof_dldb.sqlite"), "--reports=all", "--mode=pytorch")
        for suffix in SUFFIXES.values():
            self.compare(f"dlprof_{suffix}.csv", read(self.work, f"dlprof_{suffix}.csv"))

    def test_from_our_own_file(self):
        """What dlprof keeps is an input, and gives the same files."""
        self.dlprof("--database=" + data(*RUN, "nsys_profile.sqlite"), "--reports=all")
        self.dlprof("--database=dlprof_dldb.opscope", "--reports=all", "--output_path=again")
        for f in self.files("again"):
            self.assertEqual(read(self.work, "again", f), read(self.work, f), f)
        self.assertEqual(len(self.files("again")), 8)

    def test_json_twins(self):
        self.dlprof("--database=" + data(*RUN, "nsys_profile.sqlite"), "--reports=all", "--formats=csv,json")
        cells = 0
        for key, suffix in SUFFIXES.items():
            doc = json.loads(read(self.work, f"dlprof_{suffix}.json"))
            sheet = rows(read(self.work, f"dlprof_{suffix}.csv").decode())
            if key == "summary":
                cells += self.compare_summary(doc, sheet)
                continue
            self.assertEqual(doc["title"], sheet[0][0])
            self.assertEqual(len(doc["rows"]), len(sheet) - 2)
            for got, want in zip(doc["rows"], sheet[2:]):
                self.assertEqual(list(got), sheet[1])
                self.assertEqual([self.printed(v) for v in got.values()], want)
                cells += len(want)
        self.assertGreater(cells, 3500)

    @staticmethod
    def printed(v):
        return {True: "yes", False: "no", None: ""}[v] if v is None or isinstance(v, bool) else str(v)

    def compare_summary(self, doc, sheet):
        section, cells = None, 0
        for row in sheet:
            if not row:
                continue
            if len(row) == 1:
                section, seen = doc[row[0]], 0
            elif isinstance(section, dict):
                self.assertEqual(self.printed(section[row[0]]), ",".join(row[1:]))
                cells += 1
            elif row[0]:
                self.assertEqual([self.printed(v) for v in section[seen].values()], row)
                seen, cells = seen + 1, cells + len(row)
            else:
                self.assertEqual(list(section[0]), row)
        return cells

    def test_layout_of_several_gpus(self):
        """The summary of a run on four GPUs, and ours of one on two: sections, rows in their order, forms of numbers."""
        path = data("nsys", "2026.2_mfu_2gpu", "mfu_2gpu_before.sqlite")
        theirs = read(data("dlprof", "summary_4xA100_1.7.csv")).decode().split("\n")
        self.dlprof("--database=" + path, "--reports=summary")
        ours = read(self.work, "dlprof_summary.csv").decode().split("\n")
        end = theirs.index("")
        labels = [line.split(",")[0] for line in theirs]
        own = [line.split(",")[0] for line in ours]
        self.assertEqual(own[own.index(""):], labels[end:])
        system = own[:own.index("")]
        self.assertEqual(system, [x for x in labels[:end] if x in system])  # what was recorded, in DLProf's order
        self.assertEqual(system, ["System Config", "GPU Count", "GPU Driver Version", "CUDA Version", "NSys Version"])
        self.assertIn("GPU Count,2", ours)
        form = [re.sub(r"\d+", "9", line) for line in theirs[end:]]
        self.assertEqual([re.sub(r"\d+", "9", line) for line in ours[own.index(""):]], form)

    def test_summary_adds_up(self):
        """Uses sum to the wall clock time; GPU time of ops and kernels by the events themselves."""
        for path in (data(*RUN, "nsys_profile.sqlite"), data("nsys", "2026.2_mfu_2gpu", "mfu_2gpu_before.sqlite")):
            t = report("summary", path, "--compat=dlprof")
            u = t.section("summary_report").rows[0]
            self.assertAlmostEqual(sum(v for k, v in u.items() if k.endswith("_duration")), 100, 6)
            db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
            wanted = 0
            for table in ("KERNEL", "MEMCPY", "MEMSET"):
                wanted += db.execute(f"select sum(a.end - a.start) from CUPTI_ACTIVITY_KIND_{table} a where exists (select 1 from "
                                     "CUPTI_ACTIVITY_KIND_RUNTIME r where r.correlationId = a.correlationId and r.globalTid >> 24 = a.globalPid >> 24)").fetchone()[0] or 0
            self.assertEqual(t.section("all_kernels").rows[0]["gpu_time_ns"], wanted)
            own = report("summary", path)
            used = sum(r["total_ns"] for r in own.rows)
            self.assertEqual(used, own.section("figures").rows[0]["wall_ns"])

    def test_summary_of_w_relu(self):
        """The utilization that DLProf's database holds with six digits, and ours."""
        t = report("summary", data(*RUN, "nsys_profile.sqlite"), "--compat=dlprof")
        db = sqlite3.connect(f"file:{data(*RUN, 'dlprof_dldb.sqlite')}?mode=ro&immutable=1", uri=True)
        columns = ("gpu_utilization", "tc_duration_pct", "non_tc_duration_pct", "memory_duration_pct", "dataloader_duration_pct",
                   "io_duration_pct", "cpu_duration_pct", "other_duration_pct")
        want = db.execute(f"select {', '.join(columns)} from model_summary").fetchone()
        got = t.section("summary_report").rows[0]
        ids = ("gpu_utilization", "tensor_core_kernel_duration", "non_tensor_core_kernel_duration", "memory_duration", "dataloader_duration",
               "io_duration", "cpu_duration", "other_duration")
        for i, w in zip(ids, want):
            self.assertAlmostEqual(got[i], w, 6, i)

    def test_steps_of_summary(self):
        """ProfilerSteps are the steps, and their time is what is divided."""
        for path in oracle.data_glob("tb_plugin/resnet50_*/*.json.gz")[:2]:
            own = report("summary", path)
            s = own.section("steps").rows[0]
            self.assertEqual((s["source"], s["found"]), ("profiler", s["counted"] + s["partial"]))
            self.assertAlmostEqual(sum(r["share_pct"] for r in own.rows), 100, 6)
            overview = report("overview", path).by("role")
            use = own.by("use")
            mean = s["mean_ns"]
            loader = overview["DataLoader"]["mean_ns"]
            self.assertLess(abs(use["data loader"]["mean_ns"] - loader), 0.02 * mean, path)


class Iterations(Command):
    def test_key_op(self):
        path = data(*RUN, "nsys_profile.sqlite")
        out, _ = self.dlprof("--database=" + path, "--key_node=CONV2D_1", "--reports=summary,iteration")
        self.assertIn('Found 2 iterations using key_op "CONV2D_1"', out)
        sheet = dict(r for r in rows(read(self.work, "dlprof_summary.csv").decode()) if len(r) == 2)
        self.assertEqual((sheet["Total Iterations"], sheet["Aggregated Iterations"], sheet["Stop Iteration"]), ("2", "2", "1"))
        self.assertEqual(sheet["Wall Clock Time (ns)"], "2840562182")
        self.assertEqual(float(sheet["Average Iteration Time (ns)"]), 2840562182 / 2)
        kernels = rows(read(self.work, "dlprof_iteration.csv").decode())[2:]
        self.assertEqual(len(kernels), 59)
        self.assertEqual({r[0] for r in kernels if r[1] == "CONV2D_1"}, {"0"})
        self.assertEqual({r[0] for r in kernels if r[1] != "CONV2D_1"}, {"1"})

    def test_range(self):
        path = data(*RUN, "nsys_profile.sqlite")
        self.dlprof("--database=" + path, "--key_op=conv2d_1", "--iter_start=1", "--iter_stop=1", "--reports=summary,detail")
        sheet = dict(r for r in rows(read(self.work, "dlprof_summary.csv").decode()) if len(r) == 2)
        self.assertEqual((sheet["Total Iterations"], sheet["Aggregated Iterations"], sheet["Start Iteration"]), ("2", "1", "1"))
        self.assertNotIn("CONV2D_1", [r[0] for r in rows(read(self.work, "dlprof_detailed.csv").decode())])
        _, err = self.dlprof("--database=" + path, "--iter_start=5", status=1)
        self.assertIn("iterations 0 to 0 were found", err)

    def test_key_op_not_found(self):
        """As DLProf: one iteration, and a finding; and what would do."""
        path = data(*RUN, "nsys_profile.sqlite")
        out, _ = self.dlprof("--database=" + path, "--key_node=nonsense", "--reports=summary")
        self.assertIn('key_op "nonsense" was not found: all is one iteration; what is called several times: ', out)
        self.assertIn("Unable to split profile into training iterations", out)
        self.assertIn("dlprof_dldb.opscope", self.files())


class ByHand(Command):
    """Figures that follow from a recording of four steps: a product on Tensor Cores, 100 + i ns, and the op relu, 100 + 10 i ns of which 20 are
    its call, with a kernel of 30 ns."""

    def setUp(self):
        super().setUp()
        made = {
            "StringIds": nsys_db.strings("ampere_s16816gemm_fp16_128x64(float*)", "cudaLaunchKernel_v7000", "void relu_kernel<float>(float*)",
                                         "ampere_s16816gemm_fp16_128x64", "relu_kernel"),
            "META_DATA_EXPORT": [{"name": "EXPORT_SCHEMA_VERSION", "value": "3.25.0"}],
            "TARGET_INFO_GPU": [{"vmId": 1, "id": 0, "name": "NVIDIA A100-SXM4-80GB", "smCount": 108, "computeMajor": 8, "computeMinor": 0}],
            "PROCESSES": [{"globalPid": nsys_db.pid(10), "pid": 10, "name": "train.py"}],
            "CUPTI_ACTIVITY_KIND_KERNEL": [], "CUPTI_ACTIVITY_KIND_RUNTIME": [], "NVTX_EVENTS": [],
        }
        for i in range(4):
            t, a, b = 1000 * i + 100, 2 * i + 1, 2 * i + 2
            made["NVTX_EVENTS"] += [nsys_db.nvtx(t, t + 200, f"aten::mm, seq = {a}, op_id = {a}, sizes = [[8, 8], [8, 8]]", 10, 11),
                                    nsys_db.nvtx(t + 300, t + 400 + 10 * i, f"aten::relu, seq = {b}, op_id = {b}, sizes = [[8, 8]]", 10, 11)]
            made["CUPTI_ACTIVITY_KIND_RUNTIME"] += [nsys_db.call(t + 10, t + 20, a, 10, 11), nsys_db.call(t + 310, t + 330, b, 10, 11)]
            made["CUPTI_ACTIVITY_KIND_KERNEL"] += [nsys_db.kernel(t + 50, t + 150 + i, a, 10, 1, shortName=4),
                                                   nsys_db.kernel(t + 350, t + 380, b, 10, 3, shortName=5)]
        nsys_db.make(os.path.join(self.work, "made.sqlite"), made)

    def lines(self, suffix):
        return read(self.work, f"dlprof_{suffix}.csv").decode().split("\n")

    def test_range(self):
        """relu ends at 500, 1510, 2520, 3530: five iterations; 1 and 2 are 1010 ns each."""
        out, _ = self.dlprof("--database=made.sqlite", "--reports=all", "--key_node=relu", "--iter_start=1", "--iter_stop=2")
        self.assertIn("[499, 1509, 2519, 3529, 3530]", out)
        summary = self.lines("summary")
        for line in ("Wall Clock Time (ns),2020", "Tensor Core Kernel Utilization %,100.0", "GPU Utilization %,13.0",
                     "Tensor Core Kernel Duration %,10.0", "Non-Tensor Core Kernel Duration %,3.0", "Total Iterations,5", "Aggregated Iterations,2",
                     "Start Iteration,1", "Stop Iteration,2", "Average Iteration Time (ns),1010.0", "Iteration Time Standard Deviation,0.0",
                     "All ops,263,630,2", "Ops using TC,203,400,1", "Ops eligible for TC but not using,0,0,0", "All other ops,60,230,1",
                     "All kernels,263,60,2", "Kernels using TC,203,20,1", "Memory,0,0,0", "All other kernels,60,40,1"):
            self.assertEqual(summary.count(line), 1, line)
        self.assertEqual(self.lines("kernel")[2:], ['"ampere_s16816gemm_fp16_128x64","MM_1","/mm",fprop,yes,203,101.5,101,102,20,10.0,10,10',
                                                    '"relu_kernel","RELU_1","/relu",fprop,no,60,30.0,30,30,40,20.0,20,20', ""])
        self.assertEqual(self.lines("detailed")[2:], ['"MM_1","/mm",fprop,"mm",2,yes,yes,400,200.0,200,200,203,101.5,101,102,380,190.0,190,190,0,0.0,0,0,,""',
                                                      '"RELU_1","/relu",fprop,"relu",2,no,no,230,115.0,110,120,60,30.0,30,30,190,95.0,90,100,0,0.0,0,0,,""',
                                                      ""])
        self.assertEqual(self.lines("tensor_core")[2:], ['"MM_1","/mm",fprop,"mm",yes,203,203,0,100.0,1,1,"ampere_s16816gemm_fp16_128x64",0,""', ""])
        self.assertEqual([line.split(",")[0] for line in self.lines("iteration")[2:-1]], ["1", "1", "2", "2"])

    def test_whole(self):
        self.dlprof("--database=made.sqlite", "--reports=summary")
        for line in ("Wall Clock Time (ns),3530", "All ops,526,1260,2", "Kernels using TC,406,40,1", "GPU Utilization %,14.9", "Total Iterations,1"):
            self.assertEqual(self.lines("summary").count(line), 1, line)

    def test_simple(self):
        self.dlprof("--database=made.sqlite", "--mode=simple", "--reports=all")
        self.assertEqual(self.lines("summary")[-4:], ["Total Wall Clock Time (ns),3530", "Total GPU Time (ns),526",
                                                      "Total Tensor Core Kernel Time (ns),406", ""])
        self.assertEqual(self.lines("kernel")[2:], ['"ampere_s16816gemm_fp16_128x64",yes,406,101.5,100,103,40,10.0,10,10',
                                                    '"relu_kernel",no,120,30.0,30,30,80,20.0,20,20', ""])


class System(Command):
    def test_facts_of_opscope_profile(self):
        """What opscope.profile states of torch and cuDNN; and again from the database that is made of it."""
        event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 50, "args": {"External id": 1}}
        for number, version in ((90100, "9.1.0"), (8902, "8.9.2"), (91002, "9.10.2"), (None, None)):
            facts = {"cudnn": number} if number else {}
            with open(os.path.join(self.work, "run.json"), "w") as f:
                f.write(json.dumps({"schemaVersion": 1, "torch": "2.6.0+cu124", **facts, "traceEvents": [event]}))
            wanted = ["System Config", "Framework,PyTorch 2.6.0+cu124", *([f"cuDNN Version,{version}"] if version else []), ""]
            self.dlprof("--database=run.json", "--reports=summary", "--dldb=instead", "--output_path=a", "--force=true")
            self.dlprof("--database=a/dlprof_dldb.sqlite", "--reports=summary", "--output_path=b", "--force=true")
            for folder in ("a", "b"):
                self.assertEqual(read(self.work, folder, "dlprof_summary.csv").decode().split("\n")[:len(wanted)], wanted)


class Database(Command):
    """dlprof_dldb.sqlite as DLProf's own: what is read of it is what it was made of, and its tables and views are those of the one that DLProf made."""

    def again(self, path, *args, first=("--dldb=instead",), status=0):
        """Writes a database and reads it back; both times all reports, which are compared. The files that differ."""
        self.dlprof("--database=" + path, "--reports=all", "--output_path=a", *first, *args, status=status)
        self.dlprof("--database=a/dlprof_dldb.sqlite", "--reports=all", "--output_path=b", "--dldb=instead", *args, status=status)
        reports = [f for f in self.files("a") if f.endswith(".csv")]
        self.assertEqual(reports, [f for f in self.files("b") if f.endswith(".csv")])
        return [f for f in reports if read(self.work, "a", f) != read(self.work, "b", f)]

    def test_same_reports(self):
        """Byte by byte, of recordings of four ways to mark ops; with and without a key op and a range."""
        for path, args in ((data(*RUN, "nsys_profile.sqlite"), ()), (data(*RUN, "nsys_profile.sqlite"), ("--key_op=CONV2D_1", "--iter_start=1", "--profile_name=my run")),
                           (data("pyprof", "mmagic_nsys", "net.sqlite"), ()), (data("more", "nsys", "2026.3_gpt_small_a100", "forward_backward.sqlite"), ()),
                           (data("hta", "df_index_resolver", "df_index_resolver.json.gz"), ()),
                           (data("more", "nsys", "2026.3_ddp_2gpu_nccl", "ddp_overlapped.sqlite"), ())):
            with self.subTest(path=path, args=args):
                self.assertEqual(self.again(path, *args), [])
                self.assertEqual(len(self.files("a")), 9)
                shutil.rmtree(os.path.join(self.work, "a"))
                shutil.rmtree(os.path.join(self.work, "b"))

    @staticmethod
    def rows_of(db, table):
        """Rows without their ids; ids of others as what they stand for."""
        words = dict(db.execute("select id, string from dictionary"))
        columns = [r[1] for r in db.execute(f"pragma table_info({table})")]
        whole = {t: {r[0]: r[1:] for r in db.execute(f"select * from {t}")} for t in ("metric", "category_summary", "read_only_grid_block")}
        times = {t: {r[0]: tuple(whole["metric"][m] for m in r[1:]) for r in db.execute(f"select * from {t}")} for t in ("node_time_metrics", "kernel_time_metrics")}
        ops = dict(db.execute("select id, op_id from read_only_ops"))
        kernels = {r[0]: r[1:] for r in db.execute("select id, api_start, gpu_start from read_only_kernels")}
        of = {"read_only_ops_id": ops, "read_only_kernel_id": kernels, "grid_id": whole["read_only_grid_block"], "block_id": whole["read_only_grid_block"],
              "node_time_metrics_id": times["node_time_metrics"], "group_op_time_metrics_id": times["node_time_metrics"],
              "op_type_metrics_id": times["node_time_metrics"], "kernel_time_metrics_id": times["kernel_time_metrics"],
              "api_time_metric_id": whole["metric"], "gpu_time_metric_id": whole["metric"], "memory_time_id": whole["category_summary"],
              **{c: whole["category_summary"] for c in columns if c.startswith(("nodes_", "kernels_"))}}
        plain = {"id", "aggr_id", "domain_id", "gpu_info_id", "device_id", "process_id", "thread_id", "event_id", "op_id", "exp_sys_id"}
        plain -= {"device_id"} if table == "read_only_ops" else set()  # there it is a word
        rows = []
        for r in db.execute(f"select * from {table}"):
            rows.append(tuple(v if c in plain or not c.endswith("_id") else of.get(c, words)[v] for c, v in zip(columns, r) if c != "id"))
        return columns, sorted(rows, key=repr)

    def test_same_tables(self):
        """DLProf's own database, read and written: every table and every view, by their names and columns. CUPTI's numbers of events are not kept, and of a call that waits
        no device; who aggregated when differs."""
        self.dlprof("--database=" + data(*RUN, "dlprof_dldb.sqlite"), "--dldb=instead", "--mode=pytorch")
        theirs = sqlite3.connect(f"file:{data(*RUN, 'dlprof_dldb.sqlite')}?mode=ro&immutable=1", uri=True)
        ours = sqlite3.connect(os.path.join(self.work, "dlprof_dldb.sqlite"))
        self.addCleanup(ours.close)
        names = {kind: [r[0] for r in theirs.execute(f"select name from sqlite_master where type='{kind}' and name not like 'sqlite%' order by rowid")]
                 for kind in ("table", "view")}
        self.assertEqual((len(names["table"]), len(names["view"])), (36, 23))
        compared = 0
        for table in names["table"]:
            if table in ("dictionary", "metric", "node_time_metrics", "kernel_time_metrics", "category_summary"):
                continue  # what the others refer to
            (columns, want), (ours_columns, got) = self.rows_of(theirs, table), self.rows_of(ours, table)
            self.assertEqual(ours_columns, columns, table)
            if table == "read_only_cuda_syncs":
                want, got = ([tuple(v for c, v in zip(columns[1:], r) if c not in ("event_id", "device_id")) for r in rows] for rows in (want, got))
                want, got = sorted(want), sorted(got)
            if table != "aggregations":
                self.assertEqual(got, want, table)
                compared += len(got)
        self.assertGreater(compared, 600)
        for view in names["view"]:
            a, b = theirs.execute("select * from " + view), ours.execute("select * from " + view)
            self.assertEqual([c[0] for c in b.description], [c[0] for c in a.description], view)
            if view != "view_aggregations":
                self.assertEqual(sorted(b.fetchall(), key=repr), sorted(a.fetchall(), key=repr), view)
        self.assertEqual(ours.execute("select iter_start, iter_stop, iter_aggregated, key_node_name from view_aggregations").fetchall(), [(0, 0, 1, "")])

    def test_beside(self):
        path = data(*RUN, "nsys_profile.sqlite")
        out, _ = self.dlprof("--database=" + path, "--dldb=beside")
        self.assertEqual(self.files(), ["dlprof_dldb.opscope", "dlprof_dldb.sqlite"])
        self.assertIn("Creating dlprof database at ./dlprof_dldb.sqlite", out)
        self.dlprof("--database=" + path, "--dldb=instead")
        self.assertEqual(self.files(), ["dlprof_dldb.opscope", "dlprof_dldb.sqlite", "dlprof_dldb_1.sqlite"])
        before = read(self.work, "dlprof_dldb.sqlite")
        self.dlprof("--database=dlprof_dldb.sqlite", "--dldb=instead", "--force=true")  # what is read stays
        self.assertEqual(read(self.work, "dlprof_dldb.sqlite"), before)
        _, err = self.dlprof("--database=" + path, "--dldb=yes", status=2)
        self.assertIn("--dldb=yes: expected one of no, beside, instead", err)


class TensorFlow(Command):
    """Ranges as TensorFlow's core/profiler/nvtx_utils.cc writes them, which starts and ends them: ten steps of a convolution, a product and the
    node that counts steps."""
    NODES = (("Conv2D", "resnet/conv1/Conv2D"), ("MatMul", "resnet/fc/MatMul_1"), ("AssignAddVariableOp", "global_step/AssignAdd"))

    def make(self, detailed, ended_by=11):
        made = {
            "StringIds": nsys_db.strings("volta_fp16_s884gemm_fp16_128x64_nn", "cudaLaunchKernel_v7000"),
            "META_DATA_EXPORT": [{"name": "EXPORT_SCHEMA_VERSION", "value": "3.25.0"}],
            "PROCESSES": [{"globalPid": nsys_db.pid(10), "pid": 10, "name": "train.py"}],
            "CUPTI_ACTIVITY_KIND_KERNEL": [], "CUPTI_ACTIVITY_KIND_RUNTIME": [],
            "NVTX_EVENTS": [nsys_db.nvtx(0, None, "tensorflow-core", 10, 11, nsys_db.DOMAIN, domainId=7)],
        }
        for i in range(10):
            for k, (op, name) in enumerate(self.NODES):
                t, corr = 1000 * i + 200 * k + 100, 3 * i + k + 1
                text = (f'{{"op":"{op}","name":"{name}","args":[{{"name":"x:0","shape":[8,64]}},null],"attrs":{{"m":"a "b"","T":"float16"}}}}' if detailed
                        else f"{op}: {name}")
                made["NVTX_EVENTS"].append(nsys_db.nvtx(t, t + 150, text, 10, 11, nsys_db.START_END, domainId=7, rangeId=corr,
                                                        endGlobalTid=nsys_db.tid(10, ended_by)))
                if k < 2:
                    made["CUPTI_ACTIVITY_KIND_RUNTIME"].append(nsys_db.call(t + 10, t + 20, corr, 10, 11))
                    made["CUPTI_ACTIVITY_KIND_KERNEL"].append(nsys_db.kernel(t + 50, t + 130 + 10 * k, corr, 10, 1))
        path = os.path.join(self.work, "tf.sqlite")
        nsys_db.make(path, made)
        return path

    def test_ops(self):
        for detailed in (False, True):
            for mode in ("tensorflow1", "tensorflow2"):
                out, _ = self.dlprof("--database=" + self.make(detailed), "--mode=" + mode, "--reports=detail,iteration,kernel,tensor", "--force=true")
                self.assertIn('Found 11 iterations using key_op "global_step', out)
                self.assertNotIn("contains a lot of variation", out)
                ops = {r[1]: r for r in rows(read(self.work, "dlprof_detailed.csv").decode())[2:]}
                self.assertEqual({name: r[2] for name, r in ops.items()}, {name: op for op, name in self.NODES})  # no "/" before them
                self.assertEqual([ops[name][10] for _, name in self.NODES], ["800", "900", "0"])
                self.assertEqual(ops["resnet/conv1/Conv2D"][-2:], ["float16", "<8, 64>"] if detailed else ["", ""])
                for suffix in ("iteration", "kernel", "tensor_core"):
                    names = {cell for r in rows(read(self.work, f"dlprof_{suffix}.csv").decode())[2:] for cell in r if "resnet" in cell}
                    self.assertEqual(names, {"resnet/conv1/Conv2D", "resnet/fc/MatMul_1"}, suffix)
                os.unlink(os.path.join(self.work, "tf.sqlite"))

    def test_database(self):
        """Names, types of data and iterations by the node that counts steps come back."""
        for detailed in (False, True):
            path = self.make(detailed)
            self.dlprof("--database=" + path, "--mode=tensorflow1", "--reports=all", "--output_path=a", "--dldb=instead", "--iter_start=2")
            self.dlprof("--database=a/dlprof_dldb.sqlite", "--mode=tensorflow1", "--reports=all", "--output_path=b", "--iter_start=2")
            for f in self.files("a"):
                if f.endswith(".csv"):
                    self.assertEqual(read(self.work, "b", f), read(self.work, "a", f), f)
            for folder in ("a", "b"):
                shutil.rmtree(os.path.join(self.work, folder))
            os.unlink(path)

    def test_ended_elsewhere(self):
        """What another thread ends is work that goes on: nothing that a thread calls in the meantime is part of it."""
        self.dlprof("--database=" + self.make(False, ended_by=12), "--mode=tensorflow2", "--reports=detail")
        self.assertNotIn("resnet/conv1/Conv2D", [r[1] for r in rows(read(self.work, "dlprof_detailed.csv").decode())[2:]])


class Switches(Command):
    def test_names_and_formats(self):
        self.dlprof("--database=" + SYNTHETIC, "--profile_name=my run", "--output_path=a/b", "--reports=summary", "--file_formats=json")
        self.assertEqual(self.files("a/b"), ["dlprof_dldb.opscope", "my_run_summary.json"])
        self.assertEqual(list(json.loads(read(self.work, "a/b/my_run_summary.json"))["System Config"].items())[0], ("Profile Name", "my run"))

    def test_spellings(self):
        """Both spellings of what the guide says two ways give the same."""
        for i, args in enumerate((["--reports=op_type,tensor"], ["--reports=node_op,tensor_core"], ["--reports", "op_type", "tensor", "--"],
                                  ["--reports", "op_type", "tensor", "--", "python", "train.py"])):
            self.dlprof("--database=" + SYNTHETIC, f"--output_path={i}", *args)
            self.assertEqual(self.files(str(i)), ["dlprof_dldb.opscope", "dlprof_op_type.csv", "dlprof_tensor_core.csv"], args)
        for mode in ("tensorrt", "trtexec"):
            self.dlprof("--database=" + SYNTHETIC, "--mode=" + mode, "--reports=detail", "--output_path=" + mode)
            self.assertNotIn("Direction", read(self.work, mode, "dlprof_detailed.csv").decode())

    def test_tensorflow_columns(self):
        for detailed in ("true", "false"):
            self.dlprof("--nsys_database=" + SYNTHETIC, "-m", "tensorflow2", "--detailed_mode=" + detailed, "--reports=detail",
                        "--output_path=" + detailed)
            titles = rows(read(self.work, detailed, "dlprof_detailed.csv").decode())[1]
            self.assertEqual(("Data Type" in titles, "Input Shapes" in titles), (detailed == "true",) * 2)
            self.assertNotIn("Stack Trace", titles)

    def test_frameworks_without_directions(self):
        """Guide 10.3 to 10.6: Direction and Stack Trace are PyTorch's alone; every other column is in the same place."""
        wanted = {}
        for mode in ("pytorch", "tensorflow1", "tensorflow2", "tensorrt"):
            self.dlprof("--database=" + data(*RUN, "nsys_profile.sqlite"), "--mode=" + mode, "--reports=detail,iteration,kernel,tensor_core",
                        "--output_path=" + mode)
            for suffix in ("detailed", "iteration", "kernel", "tensor_core"):
                sheet = rows(read(self.work, mode, f"dlprof_{suffix}.csv").decode())[1:]
                if mode == "pytorch":
                    self.assertIn("Direction", sheet[0])
                    keep = [i for i, title in enumerate(sheet[0]) if title not in ("Direction", "Stack Trace")]
                    wanted[suffix] = [[row[i] for i in keep] for row in sheet]
                    continue
                if suffix == "detailed" and mode != "tensorrt":
                    self.assertEqual(sheet[0][-1], "Input Shapes")
                    sheet = [row[:-1] for row in sheet]
                self.assertEqual(sheet, wanted[suffix], (mode, suffix))

    def test_nothing_is_overwritten(self):
        args = ("--database=" + SYNTHETIC, "--reports=summary,detail")
        self.dlprof(*args)
        before = {f: read(self.work, f) for f in self.files()}
        out, err = self.dlprof(*args, status=1)
        self.assertIn("dlprof_summary.csv is there already", err)
        self.assertEqual(out, "")  # before any work
        self.assertEqual({f: read(self.work, f) for f in self.files()}, before)
        self.dlprof("--database=" + SYNTHETIC)  # a database that exists is kept
        self.dlprof("--database=" + SYNTHETIC)
        self.assertEqual([f for f in self.files() if "dldb" in f], ["dlprof_dldb.opscope", "dlprof_dldb_1.opscope", "dlprof_dldb_2.opscope"])
        self.dlprof(*args, "--force=true")
        self.assertEqual(len(self.files()), 5)
        self.assertEqual(read(self.work, "dlprof_detailed.csv"), before["dlprof_detailed.csv"])

    def test_input_is_kept(self):
        """Under the name of a report, and whatever --force says."""
        for name, switch in (("dlprof_summary.json", "--reports=summary"), ("dlprof_model_data.json", "--dump_model_data=true")):
            path = os.path.join(self.work, name)
            shutil.copyfile(SYNTHETIC, path)
            out, err = self.dlprof("--database=" + name, "--formats=json", "--force=true", switch, status=1)
            self.assertEqual((out, err.count("\n")), ("", 1))
            self.assertIn(name + " is the input", err)
            self.assertEqual(read(path), read(SYNTHETIC))
            self.dlprof("--database=" + name, "--formats=json", "--force=true", "--base_name=other", switch)
            os.remove(path)

    def test_aggregations_are_added(self):
        """To a file of ours another key op adds an aggregation; the rest is left as it is."""
        path = data(*RUN, "nsys_profile.sqlite")
        self.dlprof("--database=" + path)
        self.dlprof("--database=dlprof_dldb.opscope", "--key_node=LINEAR_2", "--base_name=again", "--reports=summary")
        self.assertEqual(self.files(), ["again_summary.csv", "dlprof_dldb.opscope"])
        found = report("aggregations", os.path.join(self.work, "dlprof_dldb.opscope")).rows
        self.assertEqual([(r["aggregation"], r["key_op"] or None) for r in found], [(1, None), (2, "LINEAR_2")])

    def test_verbosity(self):
        said = {}
        for level in ("quiet", "minimal", "normal", "detailed"):
            said[level], err = self.dlprof("--database=" + SYNTHETIC, "-v", level, "-f", "true", "--reports=detail")
            self.assertEqual(err, "")
        self.assertEqual(said["quiet"], "")
        self.assertEqual(len(said["minimal"].splitlines()), 1)
        self.assertRegex(said["minimal"], r"^\[DLProf-\d\d:\d\d:\d\d\] Found 1 iteration using key_op \"\"\n$")
        self.assertIn("Expert Systems Feedback: ", said["normal"])
        self.assertGreater(len(said["detailed"]), len(said["normal"]))

    def test_simple(self):
        path = data(*RUN, "nsys_profile.sqlite")
        out, _ = self.dlprof("--database=" + path, "--mode=simple", "--reports=all")
        self.assertEqual(self.files(), ["dlprof_kernel.csv", "dlprof_summary.csv"])  # no database
        self.assertNotIn("Expert", out)
        self.assertRegex(out, r"\] Total Wall Clock Time \(ns\): 2840562182\n")
        text = read(self.work, "dlprof_summary.csv").decode()
        self.assertIn("\n\nSummary Report\nTotal Wall Clock Time (ns),2840562182\nTotal GPU Time (ns),655837\nTotal Tensor Core Kernel Time (ns),0\n", text)
        kernels = rows(read(self.work, "dlprof_kernel.csv").decode())
        db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
        want = db.execute("select s.value, sum(k.end - k.start), min(k.end - k.start), max(k.end - k.start) from CUPTI_ACTIVITY_KIND_KERNEL k "
                          "join StringIds s on s.id = k.shortName group by 1 order by 1").fetchall()
        self.assertEqual([(r[0], int(r[2]), int(r[4]), int(r[5])) for r in kernels[2:]], want)
        for wrong in ("--key_node=x", "--iter_start=1", "--reports=detail"):
            self.dlprof("--database=" + path, "--mode=simple", wrong, status=2)

    def test_model_data(self):
        """Each call and each piece of device work has its instance, each instance its op, with the times of the database."""
        path = data(*RUN, "nsys_profile.sqlite")
        self.dlprof("--database=" + path, "--dump_model_data=true")
        m = json.loads(read(self.work, "dlprof_model_data.json"))
        self.assertEqual((len(m["ops"]), len(m["op_instances"]), len(m["cuda_calls"]), len(m["gpu_work"])), (36, 36, 321, 76))
        db = sqlite3.connect(f"file:{data(*RUN, 'dlprof_dldb.sqlite')}?mode=ro&immutable=1", uri=True)
        want = db.execute("select o.op_id, k.gpu_start, k.gpu_stop, k.api_start, k.api_stop from read_only_kernels k join read_only_ops o on "
                          "o.id = k.read_only_ops_id").fetchall()
        got = [(m["ops"][m["op_instances"][k["op_instance"]]["op"]]["op_id"], k["gpu_start"], k["gpu_stop"], k["api_start"], k["api_stop"])
               for k in m["gpu_work"] if k["kind"] == "kernel"]
        self.assertEqual(sorted(got), sorted(want))

    def test_wrong_usage(self):
        for args, said in (([], "a program to profile was expected"), (["--reports=nothing", "x"], "no 'nothing'"),
                           (["--mode=caffe", "x"], "expected one of simple"), (["--force=maybe", "x"], "false, true"),
                           (["--iter_start=5", "--iter_stop=4", "x"], "5 or more"), (["-d", "0", "x"], "above 0"),
                           (["--delay=soon", "x"], "seconds"), (["--base_name=a/b", "x"], "output_path"), (["--base_name=a\nb", "x"], "one line"),
                           (["--nonsense", "x"], "unknown option"),
                           (["--iter_start=-1", "x"], "0 or more")):
            _, err = self.dlprof(*args, status=2)
            self.assertIn(said, err, args)
            self.assertEqual(err.count("\n"), 1, err)
        self.assertEqual(self.files(), [])

    def test_errors(self):
        _, err = self.dlprof("--database=absent.sqlite", "--reports=all", status=1)
        self.assertIn("absent.sqlite", err)
        with open(os.path.join(self.work, "file"), "w"):
            pass
        _, err = self.dlprof("--database=" + SYNTHETIC, "--output_path=file/x", status=1)
        self.assertIn("it is no folder", err)
        _, err = self.dlprof("--database=" + oracle.synthetic("pure_cpu"), "--reports=kernel,detail", status=1)
        self.assertIn("report kernel: ", err)
        self.assertIn("dlprof_detailed.csv", self.files())  # the others are written

    def test_help_and_version(self):
        out, _ = self.dlprof("--help")
        for word in ("--key_node", "--key_op", "--nsys_opts", "--nsys_options", "--formats", "--file_formats", "--profile_name"):
            self.assertIn(word, out)
        self.assertIn("opscope", self.dlprof("-V")[0])


BASE_US = 1700000000000000
NEWER = "nvjet_hsh_128x128_64x4_2x1_v_bz_coopA_NTT"


def trace(path, gpus, job=None, kernel=NEWER, typed=False):
    """Three steps of 900 us, 1000 us apart, on GPU 0: mm and relu, each with a kernel of 100 us; `gpus` are listed."""
    events = []
    for i in range(6):
        step, second = divmod(i, 2)
        t, c = BASE_US + 1000 * step, i + 1
        if not second:
            events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step + 3}", "pid": 1, "tid": 1, "ts": t, "dur": 900})
        shapes = {"Input Dims": [[8, 8], [8, 8]], "Input type": ["float", "float"]} if typed else {}
        events += [{"ph": "X", "cat": "cpu_op", "name": "aten::relu" if second else "aten::mm", "pid": 1, "tid": 1, "ts": t + 100 + 200 * second,
                    "dur": 100, "args": {"External id": c, **shapes}},
                   {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": t + 120 + 200 * second, "dur": 10,
                    "args": {"External id": c, "correlation": c}},
                   {"ph": "X", "cat": "kernel", "name": "void relu_kernel<float>(float*)" if second else kernel, "pid": 0, "tid": 7,
                    "ts": t + 200 + 200 * second, "dur": 100, "args": {"External id": c, "correlation": c, "device": 0, "stream": 7}}]
    listed = [{"id": i, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85 * 10**9, "computeMajor": 9, "computeMinor": 0, "numSms": 132,
               "warpSize": 32, "maxThreadsPerMultiprocessor": 2048} for i in range(gpus)]
    with open(path, "w") as f:
        f.write(json.dumps({"schemaVersion": 1, "deviceProperties": listed, **({"distributedInfo": job} if job else {}), "traceEvents": events}))


class Kineto(Command):
    """Of traces that DLProf never read, by hand."""

    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.work, "run.json")

    def facts(self):
        return dict(r for r in rows(read(self.work, "dlprof_summary.csv").decode()) if len(r) == 2)

    def ask(self, **kw):
        trace(self.path, **kw)
        out, _ = self.dlprof("--database=run.json", "--reports=summary,expert_systems", "--force=true")
        return out, self.facts()

    def test_rank_of_a_job(self):
        """GPUs of other ranks are neither unused nor divided by; without a rank, or as the only one, a GPU without work is unused."""
        busy = f"{100 * 600 / 2900:.1f}"
        out, facts = self.ask(gpus=8, job={"backend": "nccl", "rank": 3, "world_size": 8})
        self.assertNotIn("visible but unused", out)
        self.assertIn("This is rank 3 of 8: listed GPUs 1, 2, 3, 4, 5, 6, 7 have no work here and count as those of other ranks", out)
        self.assertEqual((facts["GPU Utilization %"], facts["GPU Count"]), (busy, "1"))
        for notes in (report("summary", self.path, "--compat=dlprof").notes, report("summary", self.path).section("system").notes,
                      report("steps", self.path, "--compat=dlprof").notes,
                      json.loads(oracle.run("advise", self.path, "--compat=dlprof", "--format=json")[1])["notes"]):
            self.assertEqual(len([n for n in notes if n.startswith("This is rank 3 of 8: listed GPUs 1, 2,")]), 1, notes)
        steps = report("steps", self.path, "--compat=dlprof").rows
        self.assertAlmostEqual(steps[0]["gpu_utilization_pct"], 100 * 600 / 2900)
        for job in (None, {"rank": 0, "world_size": 1}):
            out, facts = self.ask(gpus=2, job=job)
            self.assertIn("The following GPUs are visible but unused: 1\n", out)
            self.assertNotIn("other ranks", out)
            self.assertEqual((facts["GPU Utilization %"], facts["GPU Count"]), (f"{100 * 600 / 2900 / 2:.1f}", "2"))

    def test_unnamed_op(self):
        """An op without a name has a type without a name, in no report another op's row."""
        events = [{"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": {"External id": ts}}
                  for name, ts, dur in (("aten::mm", 100, 50), ("", 300, 70), ("", 500, 30))]
        with open(self.path, "w") as f:
            f.write(json.dumps({"traceEvents": events}))
        got = report("op-types", self.path, "--compat=dlprof").rows
        self.assertEqual([(r["op_type"], r["no_ops"], r["no_calls"], r["total_cpu_time_ns"]) for r in got], [("", 1, 2, 100000), ("mm", 1, 1, 50000)])

    def test_newer_kernels(self):
        """DLProf's numbers stay; what they leave out is said, in the iterations asked for."""
        out, facts = self.ask(gpus=1)
        said = "300000 ns (50.0 %) of kernel time are in kernels newer than DLProf's list that do use Tensor Cores; " \
               "`opscope report tensor-cores` counts them."
        self.assertEqual(facts["Tensor Core Kernel Utilization %"], "0.0")
        self.assertIn("Note: " + said, out)
        self.assertIn("none are using FP16", out)
        self.assertIn("Of 1 of the 1 op that could use Tensor Cores no data types were recorded", out)
        advice = json.loads(oracle.run("advise", self.path, "--compat=dlprof", "--format=json")[1])["notes"]
        self.assertIn(said, advice)
        for name, args in (("summary", ()), ("tensor-cores", ()), ("ops", ()), ("groups", ()), ("kernels", ("--group-by=op",)),
                           ("kernels", ("--group-by=instance",))):
            self.assertIn(said, report(name, self.path, "--compat=dlprof", *args).notes, name)
        part = report("summary", self.path, "--compat=dlprof", "--key-op=aten::mm", "--steps=1..1").notes
        self.assertIn(said.replace("300000", "100000"), part)
        self.assertEqual(sum(r["tc_ns"] for r in report("tensor-cores", self.path).rows), 300000)
        out, _ = self.dlprof("--database=run.json", "--mode=simple")
        self.assertIn(said, out)
        out, facts = self.ask(gpus=1, kernel="ampere_s16816gemm_fp16_128x64", typed=True)
        self.assertEqual(facts["Tensor Core Kernel Utilization %"], "100.0")
        self.assertNotIn("Note: ", out)

    def test_times_since_the_recording_began(self):
        trace(self.path, 1)
        out, _ = self.dlprof("--database=run.json", "--reports=iteration", "--dump_model_data=true", "--key_op=aten::mm", "--iter_start=1")
        self.assertIn("Iterations: [199999, 1199999, 2199999, 2900000]", out)
        self.assertIn("iteration 1 start (200000 ns) to iteration 3 end (2900000 ns)", out)
        got = rows(read(self.work, "dlprof_iteration.csv").decode())
        at = [got[1].index(t) for t in ("GPU Start Time (ns)", "API Call Start (ns)")]
        self.assertEqual(sorted([int(r[i]) for i in at] for r in got[2:]),
                         [[400000, 320000], [1200000, 1120000], [1400000, 1320000], [2200000, 2120000], [2400000, 2320000]])
        model = json.loads(read(self.work, "dlprof_model_data.json"))
        self.assertEqual([w["gpu_start"] for w in model["gpu_work"]][:2], [200000, 400000])
        self.assertEqual([c["start"] for c in model["cuda_calls"]][:2], [120000, 320000])
        self.assertEqual([(i["cpu_start"], i["cpu_stop"]) for i in model["op_instances"]][0], (100000, 200000))
        steps = report("steps", self.path, "--compat=dlprof", "--key-op=aten::mm").rows
        self.assertEqual([(r["start_ns"], r["stop_ns"]) for r in steps],
                         [(0, 199999), (200000, 1199999), (1200000, 2199999), (2200000, 2900000)])


class Kept(Command):
    """What the database holds, and that it is settled before anything is written."""

    def setUp(self):
        super().setUp()
        trace(os.path.join(self.work, "run.json"), 1)

    def kept(self, name="dlprof_dldb.opscope"):
        return [(r["key_op"], r["first_step"], r["last_step"], r["wall_ns"]) for r in report("aggregations", os.path.join(self.work, name)).rows]

    def test_new(self):
        all_steps = (None, 3, 5, 2700000)
        for args, want in (((), all_steps), (("--key_op=aten::mm", "--iter_start=1", "--iter_stop=2"), ("aten::mm", 1, 2, 2000000)),
                           (("--key_op=aten::mm", "--iter_start=2"), ("aten::mm", 2, 2, 1000000)), (("--key_op=aten::mm",), ("aten::mm", 1, 2, 2000000)),
                           (("--iter_start=0",), all_steps), (("--key_op=aten::mm", "--iter_stop=0"), all_steps), (("--key_op=none",), all_steps)):
            out, _ = self.dlprof("--database=run.json", "--force=true", *args)
            self.assertEqual(self.kept(), [want], args)
            self.assertEqual("will hold all iterations: --" in out, args[-1:] in (("--iter_stop=0",), ("--key_op=none",)), args)
            self.assertEqual("iteration 0 is all of it" in out, args == ("--iter_start=0",))
        created = report("aggregations", os.path.join(self.work, "dlprof_dldb.opscope")).rows[0]["created"]
        self.assertRegex(created, r"^20\d\d-\d\d-\d\dT")
        self.dlprof("--database=run.json", "--key_op=aten::mm", "--iter_start=1", "--iter_stop=1")  # the old file is kept
        self.assertEqual(self.kept("dlprof_dldb_1.opscope"), [("aten::mm", 1, 1, 1000000)])

    def test_added(self):
        self.dlprof("--database=run.json")
        before = read(self.work, "dlprof_dldb.opscope")
        for args, said in ((("--key_op=none",), "--key_op=none was not found"),
                           (("--key_op=aten::mm", "--iter_start=0", "--iter_stop=0"), "--iter_start=0 --iter_stop=0: there is no whole step"),
                           (("--key_op=aten::mm", "--iter_start=4"), "--iter_start=4: iterations 0 to 3")):
            _, err = self.dlprof("--database=dlprof_dldb.opscope", "--reports=all", "--dump_model_data=true", *args, status=1)
            self.assertIn(said, err)
            self.assertEqual(err.count("\n"), 1)
            self.assertNotIn("--steps", err)
            self.assertNotIn("--key-op", err)
            self.assertEqual(self.files(), ["dlprof_dldb.opscope", "run.json"])
            self.assertEqual(read(self.work, "dlprof_dldb.opscope"), before)
        for i in range(2):
            out, _ = self.dlprof("--database=dlprof_dldb.opscope", "--key_op=aten::mm", "--iter_start=1", "--iter_stop=1", "--reports=summary", "-f", "true")
            self.assertEqual("Aggregation 2 of dlprof_dldb.opscope is this one: nothing is added" in out, i == 1)
            self.assertEqual(self.kept(), [(None, 3, 5, 2700000), ("aten::mm", 1, 1, 1000000)])

    def test_behind_the_options(self):
        for args in (("--", "--force=true"), ("--reports", "summary", "--", "--formats=json", "python"), ("--reports", "summary", "--", "-v", "quiet")):
            _, err = self.dlprof("--database=run.json", *args, status=2)
            self.assertIn("options stand before it", err)
        out, _ = self.dlprof("--database=run.json", "--reports", "summary", "--", "python", "train.py", "--formats=json")
        self.assertIn("nothing is run: what follows the options was not looked at: python train.py --formats=json", out)
        self.assertEqual(self.files(), ["dlprof_dldb.opscope", "dlprof_summary.csv", "run.json"])


NSYS = """#!/bin/bash
# Stands in for nsys: records its arguments, runs the program, leaves a database.
printf '%s\\n' "$@" > "$CALLED"
while [ $# -gt 0 ] && [ "$1" != -o ]; do shift; done
base=$2; shift 2
"$@"
code=$?
[ -n "$DATABASE" ] && cp "$DATABASE" "$base.${SUFFIX:-sqlite}"
exit $code
"""


class Nsys(Command):
    def setUp(self):
        super().setUp()
        self.called = os.path.join(self.dir, "called")
        tools = os.path.join(self.dir, "tools")
        os.mkdir(tools)
        self.nsys = os.path.join(tools, "nsys")
        with open(self.nsys, "w") as f:
            f.write(NSYS)
        os.chmod(self.nsys, 0o755)
        self.database = os.path.join(self.dir, "given.sqlite")
        shutil.copyfile(data(*RUN, "nsys_profile.sqlite"), self.database)
        os.environ.update(CALLED=self.called, DATABASE=self.database)
        self.addCleanup(lambda: [os.environ.pop(v, None) for v in ("CALLED", "DATABASE", "SUFFIX")])
        self.path = tools + ":" + os.environ["PATH"]

    def arguments(self):
        return read(self.called).decode().splitlines()

    def test_default_command(self):
        self.dlprof("--mode=pytorch", "--reports=detail", "true", "--force=true", "-x", path=self.path)
        self.assertEqual(self.arguments(), ["profile", "-t", "cuda,nvtx", "-s", "none", "--show-output=true", "--export=sqlite", "-o",
                                            "./nsys_profile", "true", "--force=true", "-x"])
        self.assertEqual(self.files(), ["dlprof_detailed.csv", "dlprof_dldb.opscope", "nsys_profile.sqlite"])
        self.assertEqual(read(self.work, "dlprof_detailed.csv"), read(data(*RUN, "dlprof_detailed.csv")))

    def test_all_switches(self):
        self.dlprof("--nsys_opts=\"-t cuda,nvtx,osrt -s 'cpu'\"", "-y", "5", "-d", "2.5", "--nsys_profile_range=true", "-v", "quiet", "-f", "true",
                    "--nsys_base_name=other", "--output_path=out", "--", "true", "a b", path=self.path)
        self.assertEqual(self.arguments(), ["profile", "-t", "cuda,nvtx,osrt", "-s", "cpu", "--show-output=false", "--export=sqlite",
                                            "--force-overwrite=true", "--delay=5", "--duration=2.5", "--capture-range=cudaProfilerApi",
                                            "--capture-range-end=stop", "-o", "out/other", "true", "a b"])
        self.assertEqual(self.files("out"), ["dlprof_dldb.opscope", "other.sqlite"])

    def test_script(self):
        """`dlprof train.py`: a script that is no program is run by python; one that is, by itself."""
        script = os.path.join(self.work, "train.py")
        with open(script, "w") as f:
            f.write("#!/usr/bin/env python3\npass\n")
        self.dlprof("train.py", "--epochs=2", path=self.path)
        words = self.arguments()
        self.assertIn(words[-3], ("python", "python3"))
        self.assertEqual(words[-2:], ["train.py", "--epochs=2"])
        os.chmod(script, 0o755)
        self.dlprof("-f", "true", "./train.py", path=self.path)
        self.assertEqual(self.arguments()[-2:], ["./nsys_profile", "./train.py"])

    def test_name_of_the_files(self):
        self.dlprof("--nsys_base_output_filename=third", "true", path=self.path)
        self.assertEqual(self.files(), ["dlprof_dldb.opscope", "third.sqlite"])

    def test_database_runs_nothing(self):
        self.dlprof("--database=" + self.database, "--reports=summary", "false", path=self.path)
        self.assertFalse(os.path.exists(self.called))

    def test_status_is_kept(self):
        """That of the program; what was recorded is read all the same."""
        out, _ = self.dlprof("--reports=kernel", "sh", "-c", "exit 42", path=self.path, status=42)
        self.assertIn("nsys ended with status 42", out)
        self.assertIn("dlprof_kernel.csv", self.files())

    def test_no_database(self):
        os.environ["DATABASE"] = ""
        _, err = self.dlprof("true", path=self.path, status=1)
        self.assertEqual(err.count("\n"), 1)
        self.assertIn("wrote no ./nsys_profile.sqlite", err)
        self.dlprof("sh", "-c", "exit 3", path=self.path, status=3)

    def test_old_results_are_kept(self):
        for name in ("nsys_profile.sqlite", "nsys_profile.nsys-rep"):
            with open(os.path.join(self.work, name), "w") as f:
                f.write("old")
            _, err = self.dlprof("true", path=self.path, status=1)
            self.assertIn(name + " is there already", err)
            self.assertEqual(read(self.work, name), b"old")
            os.unlink(os.path.join(self.work, name))
        self.assertFalse(os.path.exists(self.called))
        # an old database that nsys did not replace is not taken for a new one
        with open(os.path.join(self.work, "nsys_profile.sqlite"), "w") as f:
            f.write("old")
        os.environ["DATABASE"] = ""
        _, err = self.dlprof("-f", "true", "true", path=self.path, status=1)
        self.assertIn("wrote no", err)

    def test_absent(self):
        empty = os.path.join(self.dir, "empty")
        os.mkdir(empty)
        os.environ["OPSCOPE_INJECT"] = os.path.join(empty, "no-library")
        self.addCleanup(os.environ.pop, "OPSCOPE_INJECT")
        _, err = self.dlprof("--reports=all", "python", "train.py", path=empty, status=1)
        self.assertEqual(err.count("\n"), 1)
        self.assertIn("nsys was not found on the PATH", err)
        self.assertEqual(self.files(), [])

    def test_report_is_exported(self):
        """An nsys that leaves its own report only is asked for the export."""
        os.environ["SUFFIX"] = "nsys-rep"
        with open(self.nsys, "w") as f:
            f.write(NSYS.replace("printf", "[ \"$1\" = export ] && { while [ \"$1\" != --output ]; do shift; done; cp \"$DATABASE\" \"$2\"; exit; }\nprintf", 1))
        self.dlprof("--reports=op_type", "true", path=self.path)
        self.assertEqual(read(self.work, "dlprof_op_type.csv"), read(data(*RUN, "dlprof_op_type.csv")))

    def test_signals(self):
        """What ends dlprof from outside ends the program, and its status says so."""
        with open(self.nsys, "w") as f:
            f.write(NSYS.replace('"$@"\ncode', 'exec "$@"\ncode'))
        env = {**os.environ, "PATH": self.path}
        p = subprocess.Popen([self.program, "sleep", "100"], cwd=self.work, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(500):
            if os.path.exists(self.called):
                break
            time.sleep(0.01)
        p.send_signal(signal.SIGTERM)
        _, err = p.communicate(timeout=30)
        self.assertEqual(p.returncode, 128 + signal.SIGTERM, err)
        self.assertIn(b"wrote no ./nsys_profile.sqlite", err)

    def test_signals_are_as_usual_in_the_program(self):
        """Signals that opscope ignores are not ignored there."""
        self.dlprof("sh", "-c", "grep SigIgn /proc/self/status > ignored", path=self.path)
        self.assertEqual(int(read(self.work, "ignored").split()[1], 16) & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)), 0)


if __name__ == "__main__":
    oracle.main()
