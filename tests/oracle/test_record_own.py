"""`opscope record` with its own library in the program: a guest that speaks to mocks of the CUDA driver and of CUPTI (tests/mock), so that what it did is
known. Here it is what `record` makes of it; what the library records is tested elsewhere."""
import collections
import json
import os
import shutil
import signal
import subprocess

import oracle
from recording import PATIENCE, RecordCase, wait_until

BUILD = os.environ.get("OPSCOPE_BUILD", os.path.join(oracle.ROOT, "build"))
MOCK = os.path.join(BUILD, "tests", "mock")
STEP = ["conv", "norm", "linear"]
INIT = "import opscope.torch; opscope.torch.init()"


class Own(RecordCase):
    def setUp(self):
        super().setUp()
        self.guest = oracle.built(os.path.join(MOCK, "guest_cuda"), "OPSCOPE_BUILD")
        self.cupti = oracle.built(os.path.join(MOCK, "libmock_cupti_12.4.so"), "OPSCOPE_BUILD")
        oracle.built(os.path.join(BUILD, "collect", "libopscope-inject.so"), "OPSCOPE_BUILD")
        self.truth_file = os.path.join(self.dir, "truth")
        self.env.update(OPSCOPE_CUPTI=self.cupti, MOCK_TRUTH=self.truth_file)

    def own(self, *words, options=(), status=0, env=(), out="out"):
        return self.record("-o", out, "--force", *options, "--", self.guest, *words, status=status, env=env)

    def truth(self, what, field="name"):
        with open(self.truth_file) as f:
            return collections.Counter(e[field] for e in map(json.loads, f) if e["what"] == what)

    def kernels(self, folder="out", *args):
        return {r["name"]: r["calls"] for r in oracle.report("kernels", self.path(folder), "--limit=0", *args).rows}

    def ranges(self, folder="out", *args):
        return {r["range"]: r["calls"] for r in oracle.report("nvtx", self.path(folder), "--limit=0", *args).rows}


class Program(Own):
    def test_everything(self):
        out, err = self.own("threads=2")
        self.assertEqual(out, "")
        for text in ("Where the step time went", "Findings", "recorded by opscope", f"recorded in {os.path.realpath(self.path('out'))}"):
            self.assertIn(text, err)
        self.assertEqual(self.kernels(), self.truth("kernel"))
        self.assertEqual(self.ranges(), {"step": 40, **{name: 40 for name in STEP}})

    def gpus(self, folder):
        code, out, err = oracle.run("sql", self.path(folder), "SELECT DISTINCT pid_text, process_labels FROM track WHERE pid < 16 ORDER BY 1", "--format=json")
        self.assertEqual(code, 0, err)
        return [tuple(r.values()) for r in oracle.Table(json.loads(out)).rows]

    def test_gpu_of_a_context(self):
        """Where CUPTI tells of no context: a wait in one with work is on the GPU of that work; without any, which GPU it is remains unknown."""
        self.own("threads=2")
        self.assertEqual(self.gpus("out"), [("0", "GPU 0")])
        self.own("record=7", "host=0", out="waits")
        self.assertEqual(self.gpus("waits"), [("-1", "unknown GPU")])

    def test_what_the_time_went_to(self):
        """The summary names the ranges of the steps, and the reports that have more."""
        _, err = self.own("threads=1")
        self.assertIn("Marked ranges", err)
        self.assertRegex(err, r"step > conv +20 ")
        self.assertIn("its reports NAME: nvtx (ranges; --group-by=path: in what), kernels; `opscope report` lists all\n", err)
        self.assertIn("--notes=full", err)
        overview = oracle.run("report", "overview", self.path("out"), "--notes=full")[1].decode()
        self.assertIn("DataLoader is the time of ranges that begin with `enumerate(DataLoader)#`", overview)
        _, err = self.own("work=3")
        self.assertNotIn("Marked ranges", err)
        self.assertIn("its reports NAME: kernels;", err)

    def test_advice_for_captures(self):
        """What a capture lacks is to be had by opscope's own means, not by those of other recorders."""
        self.own("work=3")
        for report, how in (("memory", "opscope record --memory"), ("nvtx", "opscope_push() of opscope/trace.h"), ("modules", INIT), ("layers", INIT), ("gemm", INIT)):
            code, _, err = oracle.run("report", report, self.path("out"))
            self.assertEqual(code, 1, err)
            self.assertIn(how, err.decode())
            self.assertNotIn("nsys", err.decode())
        for report in ("operators", "ops", "pyprof"):  # of device work alone
            notes = " ".join(oracle.report(report, self.path("out")).notes)
            self.assertIn(INIT, notes)
            self.assertNotIn("nsys", notes)

    def test_no_report(self):
        _, err = self.own("work=3", options=["--no-report"])
        self.assertEqual(err.count("\n"), 1)
        self.assertIn("recorded in", err)
        self.assertEqual(self.kernels(), {"work_kernel": 3})

    def test_nothing_of_what_was_asked_for(self):
        """That the capture is empty is told, and what it waited for, whether a report was asked for or not."""
        for options, reason in ((["--range=nosuch"], "never entered the range `nosuch`; record a moment without it"),
                                (["--range=cudaProfilerApi"], "never called cudaProfilerStart()"),
                                (["--steps=1..3"], "--steps without --key-range=NAME is about the numbers of opscope_step()"),
                                (["--steps=1..3", "--key-range=nope"], "no range `nope` (--key-range) came"),
                                (["--delay=3600"], "ended before --delay")):
            for more in ([], ["--no-report"]):
                _, err = self.own("threads=1", options=[*options, *more])
                said = [line for line in err.splitlines() if line.startswith("opscope: record: nothing was recorded: ")]
                self.assertEqual(len(said), 1, err)
                self.assertIn(reason, said[0])

    def test_one_file(self):
        _, err = self.own("work=5", out="x.opscope")
        self.assertEqual(self.files(), ["x.opscope"])
        self.assertIn("recorded in x.opscope", err)
        self.assertEqual(self.kernels("x.opscope"), {"work_kernel": 5})

    def test_status_and_signals(self):
        """The capture of a program that was killed is there, and said so."""
        _, err = self.own("threads=1", "raise=9", status=-9)
        self.assertIn("killed, aborted", err)
        self.assertEqual(self.ranges()["step"], 20)
        self.assertEqual(self.run_file("out")["status"], 137)

    def test_processes(self):
        _, err = self.own("fork", "work=2")
        self.assertEqual(len([n for n in self.files("out") if n.endswith(".seg")]), 2)
        self.assertEqual(self.ranges()["in_the_child"], 1)
        self.record("-o", "out", "--force", "--no-report", "--", "sh", "-c", f"'{self.guest}' work=1; '{self.guest}' work=1; exit 3", status=3)
        self.assertEqual(self.kernels(), {"work_kernel": 2})

    def test_processes_that_could_not_begin(self):
        """They are told of, by the recorder and by what reads the others."""
        poor = os.path.join(BUILD, "tests", "collect", "guest")
        _, err = self.record("-o", "out", "--force", "--", poor, "poor_from_the_start", "never", "5")
        self.assertIn("1 process could not begin a capture: no free descriptor, or no room in ", err)
        self.assertNotIn("nothing was recorded", err)
        _, err = self.record("-o", "out", "--force", "--", "sh", "-c", f"'{self.guest}' work=1; for i in 1 2; do '{poor}' poor_from_the_start never 5; done")
        self.assertIn("2 processes could not begin a capture", err)
        self.assertEqual(self.kernels(), {"work_kernel": 1})
        found = {r["kind"]: (r["level"], r["count"]) for r in oracle.info(self.path("out")).section("problems").rows}
        self.assertEqual(found, {"process-missing": ("lost", 2)})

    def test_options_reach_the_library(self):
        self.own("threads=1", options=["--range=linear"])
        self.assertEqual(self.ranges(), {"linear": 20})
        self.own("threads=1", options=["--steps=2..3", "--key-range=step"])
        self.assertEqual(self.ranges(), {"step": 2, **{name: 2 for name in STEP}})
        # counted from 0, as reports do: the guest's kernels take 3000 ns in the first step, then 1 ns more in each
        conv = next(r for r in oracle.report("kernels", self.path("out")).rows if r["name"].startswith("void conv"))
        self.assertEqual((conv["min_ns"], conv["max_ns"]), (3002, 3003))
        self.own("threads=1", options=["--steps=..0", "--key-range=step"])
        self.assertEqual(self.ranges()["step"], 1)
        _, err = self.own("threads=1", options=["--delay=100000"])
        self.assertIn("no ranges and no work of a GPU", err)

    def test_samples_beside_ranges(self):
        """One capture holds both, or says why it does not."""
        _, err = self.own("threads=1", options=["--sample=cpu"])
        self.assertEqual(self.ranges()["step"], 20)
        self.assertNotIn("Traceback", err)

    def test_what_could_not_be_seen(self):
        _, err = self.own("threads=1", env={"MOCK_CUPTI": "busy"})
        self.assertIn("another", err)
        self.assertEqual(self.ranges()["step"], 20)
        _, err = self.own("threads=1", env={"OPSCOPE_CUPTI": "/no/such/libcupti.so"})
        self.assertIn("OPSCOPE_CUPTI names /no/such/libcupti.so, which cannot be loaded", err)

    def test_cupti_of_a_python(self):
        """As wheels of torch bring it, where no loader looks."""
        del self.env["OPSCOPE_CUPTI"]
        folder = os.path.join(self.dir, "venv", "lib", "python3.11", "site-packages", "nvidia", "cuda_cupti", "lib")
        os.makedirs(folder)
        os.makedirs(os.path.join(self.dir, "venv", "bin"))
        shutil.copy(self.cupti, os.path.join(folder, "libcupti.so.12"))
        program = os.path.join(self.dir, "venv", "bin", "program")
        self.write("venv/bin/program", f"#!/bin/sh\necho $OPSCOPE_CUPTI_PATH\nexec '{self.guest}' work=4\n", 0o755)
        out, _ = self.record("-o", "out", "--", program, env={"OPSCOPE_CUPTI_PATH": "/first"})
        self.assertEqual(out, f"/first:{os.path.dirname(os.path.dirname(program))}/lib/python3.11/site-packages/nvidia/cuda_cupti/lib\n")
        names = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
        if "libcupti" not in names and "LD_LIBRARY_PATH" not in self.env:  # what the loader finds comes first
            self.assertEqual(self.kernels(), {"work_kernel": 4})

    def test_nothing_but_a_reason(self):
        """A capture that only says why there is nothing does not change the program's status."""
        _, err = self.own("work=0", options=["--env", "MOCK_CUPTI=uninitialised"])
        self.assertIn("CUPTI could not be initialised", err)

    @oracle.of("dlprof")
    def test_dlprof(self):
        """Without an nsys, dlprof records by itself."""
        tools = os.path.join(self.dir, "bin")
        os.mkdir(tools)
        os.symlink(oracle.OPSCOPE, os.path.join(tools, "dlprof"))
        env = {**self.env, "PATH": tools, "OPSCOPE_INJECT": os.path.join(BUILD, "collect", "libopscope-inject.so")}
        p = subprocess.run([os.path.join(tools, "dlprof"), "--reports=kernel", self.guest, "threads=1"], cwd=self.work, env=env, capture_output=True, text=True,
                           timeout=PATIENCE)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.assertIn("nsys is not on the PATH: recording by opscope itself", p.stdout)
        self.assertIn("dlprof_kernel.csv", self.files())
        self.assertIn("conv_kernel", open(self.path("dlprof_kernel.csv")).read())
        self.assertEqual(sum(self.kernels("nsys_profile.run").values()), sum(self.truth("kernel").values()))
        p = subprocess.run([os.path.join(tools, "dlprof"), "--reports=kernel", self.guest, "threads=1"], cwd=self.work, env=env, capture_output=True, text=True)
        self.assertEqual(p.returncode, 1)
        self.assertIn("is there already", p.stderr)


class Jobs(Own):
    COMMAND = "for r in 0 1; do RANK=$r WORLD_SIZE=2 \"$0\" work=$((r + 3)) & done; wait"

    def test_ranks_of_one_command(self):
        """As torchrun starts them: a trace each; the first is shown."""
        _, err = self.record("-o", "out", "--", "sh", "-c", self.COMMAND, self.guest)
        self.assertIn("there are 2 traces, a rank of the job each", err)
        for rank in (0, 1):
            self.assertEqual(self.kernels("out", f"--rank={rank}"), {"work_kernel": rank + 3})
        _, err = self.record("-o", "x.opscope", "--", "sh", "-c", self.COMMAND, self.guest, status=1)
        self.assertIn("x.opscope was not written: a file holds one trace, and there are 2; they are kept in", err)
        self.assertEqual(self.kernels("x.opscope.run", "--rank=1"), {"work_kernel": 4})

    def test_a_record_each(self):
        """As srun and mpirun start them."""
        ps = [self.start("-o", "out", "--", self.guest, f"work={r + 3}",
                         env={"SLURM_PROCID": str(r), "SLURM_STEP_NUM_TASKS": "3", "SLURM_NTASKS": "3", "SLURM_JOB_ID": "5", "SLURM_STEP_ID": "0"}) for r in range(3)]
        said = []
        for p in ps:
            said.append(p.communicate(timeout=PATIENCE)[1].decode())
            self.assertEqual(p.returncode, 0, said[-1])
        self.assertIn("rank 0: recorded in", said[0])
        for rank in range(3):
            self.assertEqual(self.kernels("out", f"--rank={rank}"), {"work_kernel": rank + 3})


class Follow(Own):
    def test_follow(self):
        """A report is shown while the program runs, again when there is more, and once more when it has ended."""
        p = self.start("-o", "out", "--no-report", "--", self.guest, "threads=1", "say=waiting", "threads=2", stdin=subprocess.PIPE)
        line = p.stdout.readline()
        self.assertEqual(line, b"waiting\n")
        f = self.start("nvtx", "out", "--follow=0.05", "--format=csv", "--columns=range,calls", "-o", "table.csv", command="report")
        seen = lambda: os.path.exists(self.path("table.csv")) and open(self.path("table.csv")).read()
        wait_until(lambda: "step,20\n" in (seen() or "").replace("\r", ""), "the first steps")
        self.assertIsNone(f.poll())
        p.communicate(b"go on\n", timeout=PATIENCE)
        _, err = f.communicate(timeout=PATIENCE)
        self.assertEqual(f.returncode, 0, err)
        self.assertIn("step,60\n", seen().replace("\r", ""))

    def test_follow_without_record(self):
        """Who recorded was killed: the report is shown for as long as the program runs."""
        p = self.start("-o", "out", "--no-report", "--", self.guest, "threads=1", "say=waiting", "threads=2", stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), b"waiting\n")
        p.send_signal(signal.SIGKILL)
        p.wait(timeout=PATIENCE)
        f = self.start("nvtx", "out", "--follow=0.05", "--format=csv", "--columns=range,calls", "-o", "table.csv", command="report")
        for _ in range(2):
            wait_until(lambda: os.path.exists(self.path("table.csv")) or f.poll() is not None, "a report")
            self.assertIsNone(f.poll())
            os.unlink(self.path("table.csv"))
        p.communicate(b"go on\n", timeout=PATIENCE)
        _, err = f.communicate(timeout=PATIENCE)
        self.assertEqual(f.returncode, 0, err)
        with open(self.path("table.csv")) as table:
            self.assertIn("step,60\n", table.read().replace("\r", ""))

    def test_moments(self):
        """As text each table says of which moment it is, and the last one that the run has ended."""
        p = self.start("-o", "out", "--no-report", "--", self.guest, "threads=1", "say=waiting", stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), b"waiting\n")
        f = self.start("nvtx", "out", "--follow=0.05", command="report")
        self.assertRegex(f.stdout.readline().decode(), r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ: the run goes on, \d+ s after its start\n$")
        self.assertEqual(f.stdout.readline(), b"\n")
        p.communicate(b"go on\n", timeout=PATIENCE)
        out, err = f.communicate(timeout=PATIENCE)  # of the first table less or more has been read
        self.assertEqual(f.returncode, 0, err)
        self.assertRegex(out.decode(), r"\n\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ: the run has ended\n\nMarked ranges\n")

    def test_killed_record(self):
        """The program goes on without opscope, and so does its capture."""
        p = self.start("-o", "out", "--", self.guest, "say=waiting", "work=6", stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), b"waiting\n")
        p.send_signal(signal.SIGKILL)
        p.communicate(b"go on\n", timeout=PATIENCE)  # ends when the program has closed its streams
        self.assertEqual(p.returncode, -signal.SIGKILL)
        wait_until(lambda: self.kernels() == {"work_kernel": 6}, "the capture's end")


if __name__ == "__main__":
    oracle.main()
