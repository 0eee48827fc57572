"""What the collector records of CUDA, without a GPU: programs that use a mock driver, a mock CUPTI in the layouts of several versions and a
mock NVML (tests/mock/) are run under the collector; what the reports then say must be, to the nanosecond, what was planted ($MOCK_TRUTH)."""
import collections
import glob
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import oracle

BUILD = os.environ.get("OPSCOPE_BUILD", os.path.join(oracle.ROOT, "build"))
MOCK = os.path.join(BUILD, "tests", "mock")
LIBRARY = os.path.join(BUILD, "collect", "libopscope-inject.so")
LAYOUTS = ("11.2", "11.8", "12.4", "12.5", "13.0", "future")
PATIENCE = 60  # seconds until something that must happen counts as not happening
KIND = {"api": "call", "kernel": "kernel", "memcpy": "memcpy", "memset": "memset"}
NOISE = {"cudaGetLastError", "cudaPeekAtLastError", "cudaGetDevice", "cudaEventQuery"}
# CUPTI's numbers
DEVICE, CONTEXT, KERNEL, SYNC, GRAPH = 8, 9, 10, 38, 51


class Run:
    """A guest under the collector. `cupti`: the layout that is put where the loader looks; None = there is no CUPTI."""

    def __init__(self, folder, *words, cupti="13.0", mode="", nvml=None, nvml_mode="", env=None, interactive=False):
        self.folder = tempfile.mkdtemp(dir=folder)
        self.out, self.libs = os.path.join(self.folder, "run"), os.path.join(self.folder, "lib")
        self.truth_path, self.calls_path = os.path.join(self.folder, "truth"), os.path.join(self.folder, "calls")
        os.mkdir(self.out)
        os.mkdir(self.libs)
        if cupti:
            shutil.copy(os.path.join(MOCK, f"libmock_cupti_{cupti}.so"), os.path.join(self.libs, "libcupti.so.13"))
        if nvml:
            shutil.copy(os.path.join(MOCK, f"libmock_nvml_{nvml}.so"), os.path.join(self.libs, "libnvidia-ml.so.1"))
        self.env = {**{k: v for k, v in os.environ.items() if not k.startswith(("OPSCOPE", "MOCK", "CUDA", "NVTX"))},
                    "LD_LIBRARY_PATH": self.libs + ":" + MOCK, "CUDA_INJECTION64_PATH": LIBRARY, "NVTX_INJECTION64_PATH": LIBRARY,
                    "OPSCOPE_DIR": self.out, "MOCK_TRUTH": self.truth_path, "MOCK_CALLS": self.calls_path, "MOCK_CUPTI": mode,
                    "MOCK_NVML": nvml_mode, **(env or {})}
        self.argv = [os.path.join(MOCK, "guest_cuda"), *words]
        self.process = None
        if interactive:
            self.process = subprocess.Popen(self.argv, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        else:
            self.done(subprocess.run(self.argv, env=self.env, capture_output=True, timeout=PATIENCE))

    def done(self, p):
        self.code, self.stdout, self.stderr = p.returncode, p.stdout, p.stderr

    def says(self, text):
        line = self.process.stdout.readline().decode().strip()
        assert line == text, (line, self.process.stderr.read())

    def go_on(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def finish(self):
        out, err = self.process.communicate(timeout=PATIENCE)
        self.code, self.stdout, self.stderr = self.process.returncode, out, err

    def truth(self, what=None):
        rows = [json.loads(l) for l in open(self.truth_path)]
        return [r for r in rows if r["what"] == what] if what else rows

    def calls(self):
        return open(self.calls_path).read().split("\n")[:-1] if os.path.exists(self.calls_path) else []

    def sql(self, query):
        code, out, err = oracle.run("sql", self.out, query, "--format=json", "--limit=0")
        if code:
            raise AssertionError(f"{query}: exit {code}: {err.decode(errors='replace')}")
        return [tuple(r) for r in json.loads(out)["rows"]]

    def base(self):
        return int(self.sql("SELECT value FROM meta WHERE key = 'baseTimeNanoseconds'")[0][0])

    def problems(self):
        """{kind: (level, count, message)} of what was met while reading; notes of the collector are among them."""
        rows = oracle.info(self.out).section("problems").rows
        return {r["kind"]: (r["level"], r["count"], r["message"]) for r in rows}

    def report(self, name, *args):
        return oracle.report(name, self.out, *args)

    def wait_for(self, query, enough):
        """Until the segment, while it is being written, says so: the first value that is enough."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            value = self.sql(query)[0][0]
            if enough(value):
                return value
            time.sleep(0.1)
        raise AssertionError(f"{query}: still {value}")


class Cuda(oracle.Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.running = []

    def tearDown(self):
        for r in self.running:
            if r.process.poll() is None:
                r.process.kill()
                r.process.communicate()

    def run_guest(self, *words, **kw):
        r = Run(self.folder.name, *words, **kw)
        if kw.get("interactive"):
            self.running.append(r)
        else:
            self.assertEqual(r.code, 0, r.stderr)
            self.assertEqual((r.stdout, r.stderr), (b"", b""), "the collector prints nothing")
        return r

    def same(self, rows, truth, where=""):
        """As multisets: the order of what has one time is nobody's."""
        have, want = collections.Counter(rows), collections.Counter(truth)
        self.assertEqual((sorted((have - want).elements())[:3], sorted((want - have).elements())[:3]), ([], []), where)
        self.assertTrue(want, where)


class Exactly(Cuda):
    """Everything that was planted, and nothing else, in every layout of CUPTI's records."""

    def test_every_layout(self):
        for layout in LAYOUTS:
            with self.subTest(layout):
                r = self.run_guest("other", "threads=3", cupti=layout)
                self.device_work(r)
                self.calls_and_waits(r)
                self.attribution(r)
                self.devices(r)
                self.assertEqual(r.problems(), {})

    def device_work(self, r):
        base = r.base()
        rows = r.sql("SELECT kind, gpu_op.name, start_ns, dur_ns, corr_id, device, context, stream FROM gpu_op JOIN launch ON launch.rowid = gpu_op.launch")
        names = {("memcpy", 1): "Memcpy HtoD (Pinned -> Device)", ("memcpy", 10): "Memcpy PtoP (Device -> Device)", ("memset", 0): "Memset (Device)"}
        self.same([(k, n, s + base, d, c, dev, ctx, st) for k, n, s, d, c, dev, ctx, st in rows],
                  [(t["what"], t["name"] or names[t["what"], t["copy"]], t["start"], t["end"] - t["start"], t["correlation"], t["device"], t["context"], t["stream"])
                   for t in r.truth() if t["what"] in ("kernel", "memcpy", "memset")])
        self.same(r.sql("SELECT corr_id, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers, shared_bytes FROM gpu_op JOIN launch ON "
                        "launch.rowid = gpu_op.launch WHERE kind = 'kernel'"),
                  [(t["correlation"], *t["grid"], *t["block"], t["registers"], t["shared"]) for t in r.truth("kernel")])
        self.same(r.sql("SELECT corr_id, bytes FROM gpu_op JOIN launch ON launch.rowid = gpu_op.launch WHERE kind <> 'kernel'"),
                  [(t["correlation"], t["bytes"]) for t in r.truth() if t["what"] in ("memcpy", "memset")])

    def calls_and_waits(self, r):
        base = r.base()
        names = {20: "cudaMalloc", 41: "cudaMemcpyAsync", 51: "cudaMemsetAsync", 131: "cudaStreamSynchronize", 135: "cudaEventRecord",
                 137: "cudaEventSynchronize", 147: "cudaStreamWaitEvent", 161: "cudaMemcpyPeerAsync", 165: "cudaDeviceSynchronize", 211: "cudaLaunchKernel"}
        rows = r.sql("SELECT span.name, start_ns, dur_ns, link_id, tid FROM span JOIN track ON track.rowid = span.track WHERE kind = 'call'")
        self.same([(n, s + base, d, c, tid) for n, s, d, c, tid in rows],
                  [(names[t["cbid"]], t["start"], t["end"] - t["start"], t["correlation"], t["thread"]) for t in r.truth("api")])
        kinds = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}
        rows = r.sql("SELECT span.name, start_ns, dur_ns, link_id, track.pid, tid FROM span JOIN track ON track.rowid = span.track WHERE kind = 'sync'")
        self.same([(n, s + base, d, c, pid, tid) for n, s, d, c, pid, tid in rows],
                  [(kinds[t["type"]], t["start"], t["end"] - t["start"], t["correlation"], 0, t["stream"] if t["stream"] != 2**32 - 1 else -1)
                   for t in r.truth("sync")], "waits")
        rows = r.sql("SELECT name, start_ns, dur_ns FROM span WHERE kind = 'overhead'")
        older = r.sql("SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'capture:cupti.version'")[0][0] < 18  # no records of compilation
        self.same([(n, s + base, d) for n, s, d in rows],
                  [("Lazy Function Loading" if t["what"] == "overhead" else "JIT PTX to Cubin (cache load)", t["start"], t["end"] - t["start"])
                   for t in r.truth() if t["what"] == "overhead" or (t["what"] == "jit" and not older)])

    def attribution(self, r):
        """Device work belongs to the call with its correlation id, the call to the innermost range open on its thread."""
        ranges = {t["correlation"]: t["range"] for t in r.truth("api")}
        rows = r.sql("SELECT gpu_op.corr_id, c.link_id, coalesce(r.name, '') FROM gpu_op JOIN span c ON c.rowid = gpu_op.call LEFT JOIN span r ON r.rowid = c.parent")
        self.same(rows, [(t["correlation"], t["correlation"], ranges[t["correlation"]]) for t in r.truth() if t["what"] in ("kernel", "memcpy", "memset")])
        # and the reports say it
        by_range = collections.Counter()
        for t in r.truth("kernel"):
            if ranges[t["correlation"]]:
                by_range[ranges[t["correlation"]]] += 1
        for name, row in r.report("nvtx").by("range").items():
            inside = sum(n for range_, n in by_range.items() if name in ("step", range_))
            self.assertEqual(row["kernels"], inside, name)

    def devices(self, r):
        rows = r.sql("SELECT id, name, memory_bytes, cc_major, cc_minor, sm_count, warp_size, max_threads_per_sm FROM device")
        self.assertEqual(sorted(rows), [(d, "NVIDIA H200", 150754820096, 9, 0, 132, 32, 2048) for d in (0, 1)])

    def test_small_buffers(self):
        """Buffers of three records come back by the hundred, on threads of the program."""
        r = self.run_guest("threads=4", mode="small")
        self.device_work(r)
        self.attribution(r)

    def test_names_of_streams(self):
        """By their handles, of the device that they belong to; what the library asks the driver for it is no call of the program."""
        r = self.run_guest("other", "name=7", "name=264", "name=9", "context=9", "name=9", "record=7", "record=8", "record=9", "work=1", "threads=3")
        names = dict(r.sql("SELECT tid, thread_name FROM track WHERE process_labels = 'GPU 0'"))
        self.assertEqual({k: v for k, v in names.items() if k > 0}, {7: "stream 7 (default): copies of 7", 8: "stream 8", 9: "stream 9: copies of 9"})
        self.assertEqual(r.sql("SELECT count(*) FROM span WHERE name = 'cuStreamGetCtx'"), [(1,)])
        facts = {v for v, in r.sql("SELECT value FROM meta WHERE key LIKE 'resource:%'")}
        self.assertEqual(facts, {"copies of 7", "copies of 264", "copies of 9"})
        r = self.run_guest("fork", "name=7", "work=1", mode="hang")
        self.assertEqual(r.sql("SELECT thread_name FROM track WHERE process_labels = 'GPU 0'"), [("stream 7: copies of 7",)])

    def test_what_no_column_has(self):
        r = self.run_guest("work=1")
        self.assertEqual(r.sql("SELECT arg(args, 'cluster'), arg(args, 'local memory per thread'), arg(args, 'Launched by') FROM gpu_op"), [("[2, 1, 1]", "48", None)])
        r = self.run_guest("other")
        self.assertEqual(sorted(r.sql("SELECT key, value FROM meta WHERE key LIKE 'capture:device.%'")),
                         [(f"capture:device.{d}.{k}", v) for d in (0, 1) for k, v in (("clock_khz", "1980000"), ("memory_bandwidth_bytes_per_s", "4916000"))])

    def test_calls_of_the_future(self):
        """A number that is in no table has the name that CUPTI gives it, without its version."""
        r = self.run_guest("call=1023", "call=1022", "call=211", cupti="future")
        self.assertEqual({n for n, in r.sql("SELECT name FROM span WHERE kind = 'call'")}, {"cudaOfTheFuture", "runtime call 1022", "cudaLaunchKernel"})

    def test_calls_that_say_nothing(self):
        """From CUDA 12.5 on they are left out at the source."""
        for layout, seen in (("12.4", NOISE), ("12.5", set()), ("13.0", set())):
            with self.subTest(layout):
                r = self.run_guest("noise=5", "work=1", cupti=layout)
                self.assertEqual({n for n, in r.sql("SELECT name FROM span WHERE kind = 'call'")} - {"cudaLaunchKernel"}, seen)

    def test_record_command(self):
        """The whole path from the command line on."""
        r = Run(self.folder.name, "work=1")  # for its folders alone
        out = os.path.join(self.folder.name, "recorded")
        env = {**r.env, "OPSCOPE_INJECT": LIBRARY}
        for name in ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "OPSCOPE_DIR"):
            del env[name]
        done = subprocess.run([oracle.OPSCOPE, "record", "--output=" + out, "--", *r.argv[:1], "other", "threads=2"], env=env, capture_output=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        r.out = out
        self.device_work(r)
        self.attribution(r)


class Options(Cuda):
    def test_memory(self):
        r = self.run_guest("other", "memory", env={"OPSCOPE_MEMORY": "1"})
        base = r.base()
        rows = r.sql("SELECT time_ns, addr, bytes, device_type, device_id FROM memory")
        planted = r.truth("memory")
        self.same([(t + base, *rest) for t, *rest in rows],
                  [(t["start"], t["address"], t["bytes"] if t["type"] == 1 else -t["bytes"], 1, 0) for t in planted])
        # the most that was held at a time, and to whom the blocks belong
        held = most = 0
        for t in planted:
            held += t["bytes"] if t["type"] == 1 else -t["bytes"]
            most = max(most, held)
        peaks = [x for x in r.report("memory").section("peaks").rows if x["device"] == "GPU0"]
        self.assertEqual([x["peak_at_least_bytes"] for x in peaks], [most])
        around = r.sql("SELECT r.name FROM memory JOIN track t ON t.rowid = memory.track JOIN span r ON r.track = memory.track AND "
                       "memory.time_ns BETWEEN r.start_ns AND r.start_ns + r.dur_ns WHERE r.kind = 'user'")
        self.assertEqual(around, [("allocate",)] * len(planted))

    def test_no_memory_unless_asked(self):
        r = self.run_guest("memory")
        self.assertEqual(r.sql("SELECT count(*) FROM memory"), [(0,)])
        self.assertNotIn("enable 49", r.calls())

    def test_sync(self):
        """--sync: an event that is waited for says on which stream it was recorded last, however often it moves; report waits shows it."""
        plan = ["record=7", "wait=9", "record=8", "wait=9", "wait=8", "record=7", "host=0", "work=1"]
        for asked in (True, False):
            r = self.run_guest(*plan, env={"OPSCOPE_SYNC": "1"} if asked else {})
            rows = collections.Counter()
            for x in r.report("waits").rows:
                rows[x["name"], x["stream"], x["wait_on_stream"]] += x["calls"]
            waits = [("Stream Wait Event", "9", "7"), ("Stream Wait Event", "9", "8"), ("Stream Wait Event", "8", "8"), ("Event Sync", None, "7")]
            self.assertEqual(rows, collections.Counter((name, stream, on if asked else None) for name, stream, on in waits))
            self.assertEqual("enable 36" in r.calls(), asked)
            total = sum(t["end"] - t["start"] for t in r.truth("sync"))
            self.assertEqual(sum(x["total_ns"] for x in r.report("waits", "--group-by=name").rows), total)

    def test_graph_nodes(self):
        """Kernels of a graph by its nodes; each says in which range its node was captured, and its launch is the call that replayed it."""
        r = self.run_guest("graph=5", "work=1")
        captured = {t["name"]: t["range"] for t in r.truth("node")}
        self.assertEqual(captured, {"graph_kernel_a": "layer_a", "graph_kernel_b": "layer_b", "graph_kernel_c": "capture"})
        rows = r.sql("SELECT gpu_op.name, graph_node_id, graph_id, c.name, r.name FROM gpu_op JOIN launch ON launch.rowid = gpu_op.launch "
                     "JOIN span c ON c.rowid = gpu_op.call LEFT JOIN span r ON r.rowid = c.parent WHERE graph_node_id IS NOT NULL")
        self.same(rows, [(t["name"], t["node"], t["graph"], "cudaGraphLaunch", "replay") for t in r.truth("kernel") if t["node"]])
        rows = r.sql("SELECT DISTINCT g.name, a.value FROM gpu_op g JOIN arg_set s ON s.rowid = g.args JOIN arg a ON a.rowid = s.first WHERE g.args <> 0 AND a.key = 'Captured in'")
        self.assertEqual(dict(rows), captured)

    def test_whole_graphs(self):
        for layout in ("11.8", "13.0"):
            r = self.run_guest("graph=5", "work=2", cupti=layout, env={"OPSCOPE_GRAPH": "graph"})
            base = r.base()
            self.same([(n, s + base, d, c) for n, s, d, c in r.sql("SELECT name, start_ns, dur_ns, corr_id FROM gpu_op")],
                      [(f"CUDA graph {t['graph']}", t["start"], t["end"] - t["start"], t["correlation"]) for t in r.truth("graph")] +
                      [(t["name"], t["start"], t["end"] - t["start"], t["correlation"]) for t in r.truth("kernel") if not t["node"]])
        r = self.run_guest("graph=5", cupti="11.2", env={"OPSCOPE_GRAPH": "graph"})
        self.assertIn("cupti-no-whole-graphs", r.problems())
        self.assertEqual(r.sql("SELECT count(*) FROM gpu_op"), [(15,)], "by nodes, then")

    def test_cuda_profiler_window(self):
        r = self.run_guest("work=3", "profiler=1", "work=5", "threads=1", "profiler=0", "work=7", env={"OPSCOPE_CUDA_PROFILER": "1"})
        start, end = (t["start"] for t in r.truth("profiler"))
        inside = [t for t in r.truth("kernel") if start <= t["start"] < end]
        self.assertGreater(len(inside), 5)
        self.same(r.sql("SELECT name, corr_id FROM gpu_op WHERE kind = 'kernel'"), [(t["name"], t["correlation"]) for t in inside])


class Trouble(Cuda):
    """CUPTI that is not there, busy, refusing, stealing or wrong: the program goes on, its ranges are all there, and the report says why."""

    def only_ranges(self, kind, *says, **kw):
        r = self.run_guest("threads=2", **kw)
        self.assertEqual(r.sql("SELECT count(*) FROM gpu_op"), [(0,)])
        ranges = dict(r.sql("SELECT name, count(*) FROM span WHERE kind = 'user' GROUP BY name"))
        self.assertEqual(ranges, {"step": 40, "conv": 40, "norm": 40, "linear": 40})
        problems = r.problems()
        self.assertEqual(set(problems), {kind})
        self.assertEqual(problems[kind][0], "lost")
        for text in says:
            self.assertIn(text, problems[kind][2])
        return r

    def test_busy(self):
        self.only_ranges("cupti-busy", "another profiler", "CUPTI for the mock", mode="busy")
        self.only_ranges("cupti-busy", "another profiler", mode="busy", cupti="12.4")
        self.only_ranges("cupti-busy", "another profiler", mode="limit", cupti="11.2")

    def test_no_driver_or_no_permission(self):
        self.only_ranges("cupti-not-initialized", "NOT_INITIALIZED", mode="uninitialised")
        self.only_ranges("cupti-no-permission", "NVreg_RestrictProfilingToAdminUsers", mode="unprivileged")
        self.only_ranges("cupti-no-permission", "--cap-add=SYS_ADMIN", mode="unprivileged", env={"container": "podman"})

    def test_permission_on_the_host(self):
        if "container" in os.environ or os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv"):
            self.skipTest("this machine is a container")
        self.only_ranges("cupti-no-permission", "sudo tee /etc/modprobe.d/profiling.conf", mode="unprivileged")

    def test_none(self):
        if any(glob.glob(p) for p in ("/usr/local/cuda*/**/libcupti.so*", "/usr/lib/**/libcupti.so*", "/opt/cuda/**/libcupti.so*")):
            self.skipTest("this machine has a real libcupti")
        self.only_ranges("cupti-not-found", "OPSCOPE_CUPTI", cupti=None)

    def test_named_but_not_there(self):
        self.only_ranges("cupti-not-found", "/no/such/libcupti.so", env={"OPSCOPE_CUPTI": "/no/such/libcupti.so"})

    def test_too_old(self):
        r = self.only_ranges("cupti-too-old", "13", "11.2", cupti="11.1")
        self.assertEqual(r.calls(), [], "nothing of it was switched on")

    def test_off(self):
        r = self.run_guest("threads=1", env={"OPSCOPE_CUPTI": "off"})
        self.assertEqual((r.calls(), r.problems(), r.sql("SELECT count(*) FROM gpu_op")), ([], {}, [(0,)]))

    def test_refused_in_part(self):
        """Without kernels there is nothing to see: all is undone, in order."""
        r = self.only_ranges("cupti-refused", "kernels", mode=f"refuse={KERNEL}")
        calls = r.calls()
        enabled = [c.split()[1] for c in calls if c.startswith("enable")]
        disabled = [c.split()[1] for c in calls if c.startswith("disable")]
        self.assertTrue(enabled)
        self.assertEqual((calls[0], calls[-1]), ("subscribe", "unsubscribe"))
        self.assertEqual(sorted(enabled), sorted(disabled))

    def test_refused_detail(self):
        """Without waits there is still everything else."""
        r = self.run_guest("threads=1", mode=f"refuse={SYNC}")
        self.assertEqual(r.sql("SELECT count(*) FROM gpu_op WHERE kind = 'kernel'"), [(len(r.truth("kernel")),)])
        self.assertIn("waits", r.problems()["cupti-fewer-kinds"][2])

    def test_broken_records(self):
        """What is sound is there; the rest is counted, by kind of nonsense."""
        r = self.run_guest("work=10", mode="broken")
        planted = len(r.truth("kernel"))
        rows = dict(r.sql("SELECT name, count(*) FROM gpu_op GROUP BY name"))
        self.assertEqual(rows["work_kernel"], planted)
        self.assertNotIn("never_ended", rows)
        self.assertNotIn("at_the_end_of_time", rows)
        self.assertNotIn("counted_in_ticks", rows)
        problems = r.problems()
        self.assertEqual(problems["device-work-without-time"][1], planted)
        self.assertEqual(problems["negative-duration"][1], planted)
        lost = [m for k, (level, n, m) in problems.items() if "clock" in k]
        self.assertEqual(len(lost), 1, problems)

    def test_other_copy_in_the_process(self):
        """The CUPTI that the program has loaded itself goes before the one that would be found."""
        own = os.path.join(self.folder.name, "own")
        os.mkdir(own)
        own = os.path.join(own, "libcupti.so.12")
        shutil.copy(os.path.join(MOCK, "libmock_cupti_12.4.so"), own)
        r = self.run_guest("work=5", cupti="13.0", env={"LD_PRELOAD": own})
        facts = dict(r.sql("SELECT key, value FROM meta WHERE key LIKE 'capture:cupti%'"))
        self.assertEqual(facts, {"capture:cupti.library": own, "capture:cupti.version": "22"})
        self.assertEqual(r.sql("SELECT count(*) FROM gpu_op"), [(5,)])

    def test_folder_from_outside(self):
        """Where the loader does not look, $OPSCOPE_CUPTI_PATH names folders."""
        folder = os.path.join(self.folder.name, "there")
        os.mkdir(folder)
        shutil.copy(os.path.join(MOCK, "libmock_cupti_12.4.so"), os.path.join(folder, "libcupti.so.12"))
        r = self.run_guest("work=5", cupti=None, env={"OPSCOPE_CUPTI_PATH": "/nowhere:" + folder})
        self.assertEqual(r.sql("SELECT count(*) FROM gpu_op"), [(5,)])

    def test_stolen_buffers(self):
        """Another client replaces the buffers, as torch.profiler does: what came before stays, and the gap is told."""
        r = self.run_guest("work=5", "say=ready", "work=30", "say=stolen", interactive=True, mode="steal=40")
        r.says("ready")
        r.wait_for("SELECT count(*) FROM gpu_op", lambda n: n == 5)
        r.go_on()
        r.says("stolen")
        end = time.monotonic() + PATIENCE
        while "cupti-taken-over" not in r.problems() and time.monotonic() < end:
            time.sleep(0.2)
        self.assertIn("another profiler", r.problems()["cupti-taken-over"][2])
        r.go_on()
        r.finish()
        self.assertEqual(r.code, 0)
        self.assertEqual(r.sql("SELECT count(*) FROM gpu_op"), [(5,)])


class Ends(Cuda):
    """The process forks, or dies: what CUPTI had handed over stays."""

    def test_forked_child(self):
        """CUPTI in a child hangs when it is called: it is not called. The child's ranges have a segment of their own."""
        r = self.run_guest("work=5", "fork", "work=5", mode="hang")
        segments = [n for n in os.listdir(r.out) if n.endswith(".seg")]
        self.assertEqual(len(segments), 2)
        rows = r.sql("SELECT span.name, track.pid FROM span JOIN track ON track.rowid = span.track WHERE kind = 'user'")
        self.assertEqual([n for n, _ in rows], ["in_the_child"])
        parent = {t["pid"] for t in r.truth() if t["range"] != "in_the_child"}
        self.assertNotIn(rows[0][1], parent)
        self.assertEqual(r.sql("SELECT count(*) FROM gpu_op WHERE name = 'work_kernel'"), [(10,)], "the parent's, all of them")

    def test_forked_before_cuda(self):
        """A child that is the first to use CUDA has a CUPTI of its own, flushed each second, since it leaves without exit handlers."""
        r = self.run_guest("fork-first", "threads=1", "say=ready", interactive=True, mode="hang", nvml="new")
        r.says("ready")
        planted = len([t for t in r.truth() if t["what"] in ("kernel", "memcpy", "memset")])
        r.wait_for("SELECT count(*) FROM gpu_op", lambda n: n == planted)
        r.go_on()
        r.finish()
        self.assertEqual((r.code, r.stderr), (0, b""))
        child = r.truth()[0]["pid"]
        rows = dict(r.sql("SELECT span.name, track.pid FROM span JOIN track ON track.rowid = span.track WHERE kind = 'user'"))
        self.assertEqual(set(rows), {"before", "step", "conv", "norm", "linear"})
        self.assertEqual({rows[n] for n in ("step", "conv")}, {child})
        self.assertNotEqual(rows["before"], child)

    def test_killed(self):
        """kill -9: all that was flushed once a second is there."""
        r = self.run_guest("threads=2", "say=ready", interactive=True)
        r.says("ready")
        planted = len([t for t in r.truth() if t["what"] in ("kernel", "memcpy", "memset")])
        r.wait_for("SELECT count(*) FROM gpu_op", lambda n: n == planted)
        r.process.send_signal(signal.SIGKILL)
        r.finish()
        self.assertEqual(r.code, -signal.SIGKILL)
        self.assertEqual(r.sql("SELECT count(*) FROM gpu_op"), [(planted,)])
        self.assertNotIn("flush 1", r.calls())

    def test_exit_flushes(self):
        r = self.run_guest("work=50")
        self.assertEqual(r.calls()[-1], "flush 1")
        self.assertEqual(r.sql("SELECT count(*) FROM gpu_op"), [(50,)])

    def test_failing_driver(self):
        """cuInit that finds no device calls the library all the same; its status is the program's business."""
        r = Run(self.folder.name, "threads=1", env={"MOCK_CUDA_RETURN": "100"}, mode="uninitialised")
        self.assertEqual((r.code, r.stderr), (100, b""))
        self.assertIn("cupti-not-initialized", r.problems())


class Samples(Cuda):
    """NVML: what is sampled is what the mock's rule says (tests/mock/nvml.c)."""

    def sampled(self, least, nvml="new", **kw):
        r = self.run_guest("other", "say=ready", interactive=True, nvml=nvml, **kw)
        r.says("ready")
        r.wait_for("SELECT count(*) FROM mark WHERE name = 'gpu_power_mw'", lambda n: n >= least)
        r.go_on()
        r.finish()
        self.assertEqual((r.code, r.stderr), (0, b""))
        return r

    def expected(self, device, n):
        """Sample n of a device, by counter."""
        return {"gpu_utilization_pct": 10 * device + n % 10, "gpu_memory_utilization_pct": 5 * device + n % 5,
                "gpu_memory_used_bytes": (1 + device + n % 4) << 30, "gpu_sm_clock_mhz": 1980 - 10 * (n % 8), "gpu_memory_clock_mhz": 2619,
                "gpu_power_mw": 100000 * (device + 1) + 1000 * (n % 50), "gpu_temperature_c": 40 + device + n % 20, "gpu_throttle_reasons": 0}

    def counters(self, r):
        """{device: [{counter: value}] in order of time}; the first call of all was for the size of the memory."""
        out = collections.defaultdict(list)
        rows = r.sql("SELECT time_ns, mark.name, (SELECT value FROM arg WHERE arg.rowid = s.first), (SELECT value FROM arg WHERE arg.rowid = s.first + 1) "
                     "FROM mark JOIN arg_set s ON s.rowid = mark.args WHERE phase = 'C' ORDER BY time_ns")
        moments = collections.defaultdict(dict)
        for at, name, value, device in rows:
            moments[int(device), at][name] = int(value)
        for (device, _), values in sorted(moments.items()):
            out[device].append(values)
        return out

    def test_values_and_report(self):
        for nvml in ("new", "old"):
            with self.subTest(nvml):
                r = self.sampled(3, nvml=nvml)
                counters = self.counters(r)
                self.assertEqual(set(counters), {0}, "the process has no context on the other GPU")
                for device, samples in counters.items():
                    self.assertEqual(samples, [self.expected(device, n + 1) for n in range(len(samples))])
                rows = {(x["device"], x["metric"]): x for x in r.report("gpu-samples").rows}
                power = [s["gpu_power_mw"] / 1000 for s in counters[0]]
                self.assertEqual(rows[0, "Power"]["samples"], len(power))
                self.assertAlmostEqual(rows[0, "Power"]["mean"], sum(power) / len(power))
                self.assertEqual((rows[0, "Power"]["min"], rows[0, "Power"]["max"]), (min(power), max(power)))
                self.assertEqual(rows[0, "Memory used"]["max"], max(s["gpu_memory_used_bytes"] for s in counters[0]) / 2**20)
                self.assertEqual(dict(r.sql("SELECT key, value FROM meta WHERE key = 'capture:version.driver'")), {"capture:version.driver": "580.95.05"})

    def test_slowed_down_by_heat(self):
        """The first 60 of 100 samples say so; the finding names the GPU, what NVML calls it, and how often."""
        r = self.sampled(3, nvml_mode="thermal=60")
        counters = self.counters(r)
        reasons = {(x["device"], x["reason"]): x for x in r.report("gpu-samples").section("throttle_reasons").rows}
        told = len(counters[0])
        for reason in ("hw_slowdown", "hw_thermal_slowdown"):
            self.assertEqual((reasons[0, reason]["samples"], reasons[0, reason]["share_pct"]), (told, 100), reason)
        code, out, err = oracle.run("advise", r.out, "--format=json")
        self.assertEqual(code, 0, err)
        found = [x for x in oracle.Table(json.loads(out)).rows if x["detector"] == "throttling"]
        self.assertEqual({x["severity"] for x in found}, {"high"})
        self.assertIn("GPU 0 is slowed down by heat in 100 %", found[0]["problem"])
        self.assertIn(f"{told} of {told} samples", found[0]["evidence"])

    def test_what_nvml_does_not_tell(self):
        """As on MIG devices: the others are there, and nothing is made up."""
        r = self.sampled(2, nvml_mode="partial")
        names = {n for n, in r.sql("SELECT DISTINCT name FROM mark WHERE phase = 'C'")}
        self.assertEqual(names, {"gpu_memory_used_bytes", "gpu_sm_clock_mhz", "gpu_memory_clock_mhz", "gpu_power_mw", "gpu_temperature_c"})
        self.assertTrue(any("does not tell" in n for n in r.report("gpu-samples").section("throttle_reasons").notes))

    def test_no_nvml(self):
        r = self.run_guest("threads=1", "say=ready", interactive=True, nvml="new", nvml_mode="broken")
        r.says("ready")
        end = time.monotonic() + PATIENCE
        while "nvml-not-available" not in r.problems() and time.monotonic() < end:
            time.sleep(0.2)
        r.go_on()
        r.finish()
        self.assertEqual((r.code, r.problems()["nvml-not-available"][0]), (0, "note"))
        self.assertEqual(r.sql("SELECT count(*) FROM mark WHERE phase = 'C'"), [(0,)])

    def test_not_wanted(self):
        r = self.run_guest("threads=1", "say=ready", interactive=True, nvml="new", env={"OPSCOPE_GPU_SAMPLES": "0"})
        r.says("ready")
        r.wait_for("SELECT count(*) FROM gpu_op", lambda n: n > 0)
        r.go_on()
        r.finish()
        self.assertEqual(r.sql("SELECT count(*) FROM mark WHERE phase = 'C'"), [(0,)])


if __name__ == "__main__":
    oracle.main()
