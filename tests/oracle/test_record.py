"""`opscope record`: manners towards the program, its run directory, jobs, refusals, and `report --follow`. The programs here write no segments: what the
library in them records is tested with the library."""
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import time

import oracle
from recording import PATIENCE, RecordCase, python, wait_until

INJECTION = ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "INTEL_LIBITTNOTIFY64")


class Launched(RecordCase):
    """With a library that is never loaded."""

    def setUp(self):
        super().setUp()
        self.library = self.write("lib/libopscope-inject.so", "")
        self.env["OPSCOPE_INJECT"] = self.library

    def environment(self, *args, env=()):
        """What the program gets."""
        out, _ = self.record("--force", "-o", "out", *args, "--", *python("import json, os; print(json.dumps(dict(os.environ)))"), env=env)
        return json.loads(out)


class Manners(Launched):
    def test_status(self):
        for status in (0, 1, 7, 255):
            self.record("--", "sh", "-c", f"exit {status}", status=status)
        for sig in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT):
            _, err = self.record("--", "sh", "-c", f"kill -{int(sig)} $$", status=-int(sig))
            self.assertIn("nothing was recorded: no process of the command called CUDA, NVTX, ITT or opscope/trace.h", err)
            self.assertIn("; --sample=cpu shows what a program does that marks nothing\n", err)
        self.assertEqual(self.files(), [])  # nothing recorded leaves nothing

    def test_programs_that_cannot_run(self):
        script = self.write("work/not-executable", "#!/bin/sh\n")
        for command, status, said in ((["no-such-program"], 127, "no such program"), (["./none"], 127, "no such program"), ([script], 126, "Permission denied"),
                                      (["/"], 126, "Permission denied")):
            out, err = self.record("--", *command, status=status)
            self.assertEqual((out, err), ("", f"opscope: record: {command[0]}: cannot be run: {said}\n"))
        wrong = self.write("work/wrong", "#!/no/such/interpreter\n", 0o755)
        _, err = self.record("--", wrong, status=127)
        self.assertIn("cannot be run", err)
        self.assertEqual(self.files(), ["not-executable", "wrong"])

    def test_streams(self):
        """Standard input and output are the program's alone."""
        with self.start("--", "cat", stdin=subprocess.PIPE) as p:
            out, err = p.communicate(b"through\n", timeout=PATIENCE)
        self.assertEqual(out, b"through\n")
        self.assertIn(b"nothing was recorded", err)

    def test_options_of_the_program(self):
        out, _ = self.record("sh", "-c", 'echo "$0" "$@"', "--force", "-o", "--", "x y")
        self.assertEqual(out, "--force -o -- x y\n")

    def test_signals_are_as_usual(self):
        """No signal is ignored or blocked in the program because of us."""
        code = "print([l.split()[1] for l in open('/proc/self/status') if l.startswith(('SigBlk', 'SigIgn'))])"
        direct = subprocess.run(["sh", "-c", "exec \"$@\"", "sh", *python(code)], capture_output=True, text=True, env=self.env).stdout
        self.assertEqual(self.record("--", "sh", "-c", "exec \"$@\"", "sh", *python(code))[0], direct)

    def test_errors_of_writing(self):
        """SIGPIPE and SIGXFSZ are in the program what they were when opscope was started: ignored, or not."""
        for ignored in ((), (signal.SIGPIPE,), (signal.SIGXFSZ,)):
            def set_signals():
                for sig in (signal.SIGPIPE, signal.SIGXFSZ):
                    signal.signal(sig, signal.SIG_IGN if sig in ignored else signal.SIG_DFL)
            shell = ["sh", "-c", "exec grep SigIgn /proc/self/status"]
            out, _ = self.record("--", *shell, preexec_fn=set_signals)
            direct = subprocess.run(shell, capture_output=True, text=True, env=self.env, preexec_fn=set_signals, restore_signals=False).stdout
            self.assertEqual(out, direct)
            mask = int(out.split()[1], 16)
            self.assertEqual([bool(mask >> (sig - 1) & 1) for sig in (signal.SIGPIPE, signal.SIGXFSZ)], [sig in ignored for sig in (signal.SIGPIPE, signal.SIGXFSZ)])

    def send(self, sig, handler, env=(), preexec=None):
        """Sends opscope alone a signal when the program has its handlers, and gives its status and what the program wrote."""
        ready = self.path("ready")
        code = ("import os, signal, sys, time\ngot = []\n"
                f"signal.signal({int(sig)}, {handler})\nopen(sys.argv[1], 'w').close()\nend = time.monotonic() + {PATIENCE}\n"
                "while not got and time.monotonic() < end: time.sleep(0.01)\nsys.exit(got[0] if got else 0)")
        p = self.start("-o", "out", "--force", "--", *python(code, ready), preexec_fn=preexec)
        wait_until(lambda: os.path.exists(ready), "the program's start")
        p.send_signal(sig)
        _, err = p.communicate(timeout=PATIENCE + 60)
        os.unlink(ready)
        return p.returncode, err.decode()

    def test_signals_are_handed_on(self):
        for sig in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            with self.subTest(signal=sig):
                self.assertEqual(self.send(sig, "lambda s, f: got.append(40 + s)")[0], 40 + sig)
                self.assertEqual(self.send(sig, "signal.SIG_DFL")[0], -sig)

    def test_ignored_signals(self):
        """As under nohup: the program has SIGHUP ignored, and opscope does not end by it or hand it on."""
        ready, go = self.path("ready"), self.path("go")
        code = ("import os, signal, sys, time\nassert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN\n"
                "got = []\nsignal.signal(signal.SIGHUP, lambda *_: got.append(1))\nopen(sys.argv[1], 'w').close()\n"
                "while not os.path.exists(sys.argv[2]): time.sleep(0.01)\nsys.exit(9 if got else 3)")
        p = self.start("--", *python(code, ready, go), preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        wait_until(lambda: os.path.exists(ready), "the program's start")
        p.send_signal(signal.SIGHUP)
        open(go, "w").close()
        _, err = p.communicate(timeout=PATIENCE)
        self.assertEqual(p.returncode, 3, err)

    def test_ignored_child_signal(self):
        """A parent that ignores SIGCHLD must not cost the exit status."""
        p = self.start("--", "sh", "-c", "exit 5", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        p.communicate(timeout=PATIENCE)
        self.assertEqual(p.returncode, 5)

    def test_terminal(self):
        """The program is in the foreground of the terminal, and Ctrl-C reaches it once, and opscope not at all."""
        code = ("import os, signal, sys, time\ngot = []\nsignal.signal(signal.SIGINT, lambda *_: got.append(1))\n"
                "print('tty', all(os.isatty(i) for i in range(3)), os.tcgetpgrp(0) == os.getpgrp(), flush=True)\n"
                "while not got: time.sleep(0.01)\nprint('interrupted', flush=True)\nsys.exit(30 + len(got))")
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(self.work)
            os.execve(oracle.OPSCOPE, [oracle.OPSCOPE, "record", "--", *python(code)], {**self.env, "TERM": "dumb"})
        text = b""

        def read_until(what):
            nonlocal text
            end = time.monotonic() + PATIENCE
            while what not in text and time.monotonic() < end:
                if select.select([fd], [], [], 1)[0]:
                    try:
                        piece = os.read(fd, 4096)
                    except OSError:  # its end
                        return
                    text += piece
        read_until(b"\n")
        self.assertIn(b"tty True True", text)
        os.write(fd, b"\x03")
        read_until(b"nothing was recorded")
        _, status = os.waitpid(pid, 0)
        os.close(fd)
        self.assertTrue(os.WIFEXITED(status), status)
        self.assertEqual(os.WEXITSTATUS(status), 31)
        self.assertIn(b"nothing was recorded", text)

    def test_kill(self):
        self.record("--duration=0.1", "--kill", "--", "sleep", "1000", status=-signal.SIGTERM)
        self.record("--duration=1000", "--kill", "--", "sh", "-c", "exit 4", status=4)
        self.record("--duration=0.001", "--", "sh", "-c", "exit 4", status=4)


class Environment(Launched):
    def test_the_library(self):
        env = self.environment()
        self.assertEqual({n: env[n] for n in INJECTION}, {n: self.library for n in INJECTION})
        self.assertEqual(env["OPSCOPE_DIR"], os.path.join(os.path.realpath(self.work), "out"))
        self.assertEqual(sorted(n for n in env if n.startswith("OPSCOPE_")), ["OPSCOPE_DIR", "OPSCOPE_INJECT"])

    def test_options(self):
        env = self.environment("--delay=1.25", "--duration=2", "--range=a b", "--memory", "--sync", "--graph=graph", "--max-size=500M,ring", "--env", "A=b=c",
                               env={"OPSCOPE_STEPS": "1..2", "OPSCOPE_FULL": "stop"})
        want = {"DELAY_NS": "1250000000", "DURATION_NS": "2000000000", "RANGE": "a b", "MEMORY": "1", "SYNC": "1", "GRAPH": "graph",
                "MAX_SIZE": str(500 << 20), "FULL": "ring"}
        self.assertEqual({n[8:]: v for n, v in env.items() if n.startswith("OPSCOPE_") and n not in ("OPSCOPE_DIR", "OPSCOPE_INJECT")}, want)
        self.assertEqual(env["A"], "b=c")
        env = self.environment("--steps=3..", "--key-range=train", "--max-size=1")
        self.assertEqual((env["OPSCOPE_STEPS"], env["OPSCOPE_STEP_RANGE"], env["OPSCOPE_FULL"]), (f"3..{2 ** 63 - 1}", "train", "stop"))
        env = self.environment("--range=cudaProfilerApi")
        self.assertEqual((env.get("OPSCOPE_CUDA_PROFILER"), env.get("OPSCOPE_RANGE")), ("1", None))

    def test_another_profiler(self):
        for name in ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "QUADD_INJECTION_CONFIG"):
            out, err = self.record("--", "sh", "-c", "echo ran", status=1, env={name: "/opt/other.so"})
            self.assertEqual(out, "")
            self.assertIn(f"{name}=/opt/other.so: another profiler is set up", err)
            self.record("--", "true", env={name: ""})
        _, err = self.record("--env", "CUDA_INJECTION64_PATH=/x", "--", "true", status=1)
        self.assertIn("another profiler", err)
        _, err = self.record("--", "true", status=1, env={"NVTX_INJECTION64_PATH": self.library})
        self.assertIn("already runs under opscope record", err)
        self.assertEqual(self.files(), [])
        env = self.environment(env={"INTEL_LIBITTNOTIFY64": "/opt/vtune.so"})
        self.assertEqual(env["INTEL_LIBITTNOTIFY64"], "/opt/vtune.so")

    def test_no_library(self):
        _, err = self.record("--backend=own", "--", "true", status=1, env={"OPSCOPE_INJECT": "/no/such/file"})
        self.assertIn("OPSCOPE_INJECT=/no/such/file: No such file or directory", err)
        # beside the program; else it says where it looked
        alone = os.path.join(self.dir, "alone")
        os.mkdir(alone)
        shutil.copy(oracle.OPSCOPE, alone)
        program, env = os.path.join(alone, "opscope"), {k: v for k, v in self.env.items() if k != "OPSCOPE_INJECT"}
        p = subprocess.run([program, "record", "--backend=own", "--", "true"], capture_output=True, text=True, env=env, cwd=self.work)
        if p.returncode:  # it may be installed
            self.assertIn("libopscope-inject.so was not found", p.stderr)
            self.assertIn(os.path.join(alone, "libopscope-inject.so"), p.stderr)
        shutil.copy(self.library, alone)
        p = subprocess.run([program, "record", "--", "sh", "-c", "echo $CUDA_INJECTION64_PATH"], capture_output=True, text=True, env=env, cwd=self.work)
        self.assertEqual(p.stdout.strip(), os.path.join(os.path.realpath(alone), "libopscope-inject.so"))


class Directory(Launched):
    def capture(self, folder, name="host-12-1700000000000000000.seg"):
        os.makedirs(self.path(folder), exist_ok=True)
        with open(self.path(folder, name), "w") as f:
            f.write("x")

    def test_default(self):
        out, _ = self.record("--no-report", "--", "sh", "-c", "touch $OPSCOPE_DIR/keep; echo $OPSCOPE_DIR")
        self.assertEqual(out.strip(), os.path.join(os.path.realpath(self.work), "opscope-1"))
        out, _ = self.record("--no-report", "--", "sh", "-c", "echo $OPSCOPE_DIR")
        self.assertTrue(out.strip().endswith("/opscope-2"))
        self.assertEqual(self.files(), ["opscope-1"])

    def test_run_file(self):
        code = "import glob, os, sys\nprint(open(glob.glob(os.environ['OPSCOPE_DIR'] + '/*.run.json')[0]).read())\nopen(os.environ['OPSCOPE_DIR'] + '/h-1-2.seg', 'w')\nsys.exit(3)"
        out, _ = self.record("-o", "a/b", "--no-report", "--", *python(code, 'x"y\n'), status=3)
        during, after = json.loads(out), self.run_file("a/b")
        self.assertEqual((during["end_ns"], during["status"]), (None, None))
        self.assertEqual(after["status"], 3)
        self.assertLess(after["start_ns"], after["end_ns"])
        for k in ("start_ns", "command", "cwd", "pid", "host", "backend", "version"):
            self.assertEqual(during[k], after[k])
        self.assertEqual(after["command"], python(code, 'x"y\n'))
        self.assertEqual((after["backend"], after["cwd"], after["opscope_run"]), ("own", os.path.realpath(self.work), 1))

    def test_captures_are_there(self):
        self.capture("out")
        for name in ("mine.seg", "run.json", "host-12.seg", "notes.txt"):
            self.capture("out", name)
        _, err = self.record("-o", "out", "--", "sh", "-c", "exit 9", status=1)
        self.assertIn("there are captures already: --force removes them", err)
        self.assertEqual(len(self.files("out")), 5)
        self.record("-o", "out", "--force", "--", "sh", "-c", "exit 9", status=9)
        self.assertEqual(self.files("out"), ["host-12.seg", "mine.seg", "notes.txt", "run.json"])

    def test_places(self):
        self.write("work/file", "")
        for name, said in (("file", "it is no folder"), ("file/x", "it is no folder"), ("/proc/none/x", "cannot make")):
            _, err = self.record("-o", name, "--", "true", status=1)
            self.assertIn(said, err)
        self.record("-o", "deep/er", "--", "true")

    def test_one_file(self):
        self.write("work/x.opscope", "old")
        _, err = self.record("-o", "x.opscope", "--", "true", status=1)
        self.assertIn("x.opscope is there already", err)
        _, err = self.record("-o", "y.opscope", "--", "true")
        self.assertIn("nothing was recorded", err)
        self.assertEqual(self.files(), ["x.opscope"])

    def test_one_file_beside_a_trap(self):
        """The run directory of NAME.opscope, which nobody names, is a directory of our own."""
        self.capture("victim", "h-1-1.seg")
        os.symlink("victim", self.path("link.opscope.run"))
        self.write("work/file.opscope.run", "")
        os.mkdir(self.path("mine.opscope.run"))
        names = ["link", "file"]
        if os.geteuid() == 0:  # only root can give a directory away
            os.mkdir(self.path("other.opscope.run"))
            os.chmod(self.path("other.opscope.run"), 0o777)
            os.chown(self.path("other.opscope.run"), 12345, 12345)
            names.append("other")
        for name in names:
            _, err = self.record("-o", f"{name}.opscope", "--force", "--", "true", status=1)
            self.assertIn(f"{name}.opscope.run: a directory of your own was expected where the run is recorded", err)
        self.record("-o", "mine.opscope", "--", "true")
        self.assertEqual(self.files("victim"), ["h-1-1.seg"])

    def test_links_of_others(self):
        """In a folder where everyone may write, another user's link to a directory is not followed; one's own is."""
        if os.geteuid() != 0:
            self.skipTest("only root can give a link away")
        self.capture("victim", "h-1-1.seg")
        os.mkdir(self.path("shared"))
        os.chmod(self.path("shared"), 0o1777)
        os.symlink("../victim", self.path("shared", "link"))
        os.symlink("../victim", self.path("shared", "opscope-7"))
        for options, env in ((("-o", "link"), {}), (("-o", "link/"), {}), ((), {"OPSCOPE_JOB": "7", "PMI_RANK": "1", "PMI_SIZE": "2"})):
            for name in ("link", "opscope-7"):
                os.chown(self.path("shared", name), 12345, 12345, follow_symlinks=False)
            with self.subTest(options=options):
                p = subprocess.run([oracle.OPSCOPE, "record", *options, "--force", "--", "true"], capture_output=True, text=True, env={**self.env, **env},
                                   cwd=self.path("shared"), timeout=PATIENCE)
                self.assertEqual(p.returncode, 1, p.stderr)
                self.assertRegex(p.stderr, "another user('s)?, in a folder where everyone may write")
                self.assertEqual(self.files("victim"), ["h-1-1.seg"])
        os.chown(self.path("shared", "link"), 0, 0, follow_symlinks=False)
        self.record("-o", "shared/link", "--force", "--", "true")
        self.assertEqual(self.files("victim"), [])

    def test_pipes_in_the_directory(self):
        """A pipe that is named like a run file or a segment is not waited for."""
        for name in ("h-1.run.json", "h-1-1.seg"):
            with self.subTest(name=name):
                os.makedirs(self.path("out"), exist_ok=True)
                os.mkfifo(self.path("out", name))
                _, err = self.record("-o", "out", "--", "true", status=1)
                self.assertIn("there are captures already", err)
                with self.start("kernels", "out", "--follow=0.01", command="report") as p:
                    self.assertTrue(p.stdout.readline())
                    p.send_signal(signal.SIGINT)
                    p.communicate(timeout=PATIENCE)
                self.record("-o", "out", "--force", "--", "true")
                self.assertFalse(os.path.exists(self.path("out", name)))


class Jobs(Launched):
    TORCH = {"TORCHELASTIC_RUN_ID": "run7", "MASTER_ADDR": "node0", "MASTER_PORT": "29500", "WORLD_SIZE": "2"}

    def rank(self, r, *args, status=0, env=(), command=("sh", "-c", ": >$OPSCOPE_DIR/h-$RANK-1.seg")):
        return self.record("--no-report", *args, "--", *command, status=status, env={**self.TORCH, "RANK": str(r), **dict(env)})

    def test_ranks_share(self):
        for r in (0, 1):
            self.rank(r, "-o", "out")
        self.assertEqual([n for n in self.files("out") if n.endswith(".seg")], ["h-0-1.seg", "h-1-1.seg"])
        self.assertEqual(len([n for n in self.files("out") if n.endswith(".run.json")]), 2)
        # the same rank again is another run, unless torchrun has restarted it; so is another job
        for env in ({}, {"MASTER_PORT": "29501"}):
            _, err = self.rank(0, "-o", "out", status=1, env=env)
            self.assertIn("there are captures already", err)
        self.rank(0, "-o", "out", env={"TORCHELASTIC_RESTART_COUNT": "1"})
        self.rank(0, "-o", "out", "--force", env={"MASTER_PORT": "29501"})
        self.rank(1, "-o", "out", "--force", env={"MASTER_PORT": "29501"})
        self.assertEqual(len([n for n in self.files("out") if n.endswith(".run.json")]), 2)

    def test_at_once(self):
        """Ranks that start together, over an older run: --force of the one does not remove what the other wrote."""
        os.mkdir(self.path("out"))
        open(self.path("out", "old-1-1.seg"), "w").close()
        ps = [self.start("--no-report", "--force", "-o", "out", "--", "sh", "-c", ": >$OPSCOPE_DIR/h-$RANK-1.seg",
                         env={**self.TORCH, "WORLD_SIZE": "8", "RANK": str(r)}) for r in range(8)]
        for p in ps:
            _, err = p.communicate(timeout=PATIENCE)
            self.assertEqual(p.returncode, 0, err)
        self.assertEqual([n for n in self.files("out") if n.endswith(".seg")], [f"h-{r}-1.seg" for r in range(8)])

    def test_names(self):
        """Without -o all ranks of a job agree on a name."""
        jobs = (({**self.TORCH, "RANK": "0"}, "opscope-torchrun-run7-node0-29500"),
                ({"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4", "SLURM_JOB_ID": "99", "SLURM_STEP_ID": "2"}, "opscope-slurm-99-2"),
                ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "PMIX_NAMESPACE": "prterun-a@1"}, "opscope-mpi-prterun-a_1"),
                ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_MCA_ess_base_jobid": "42"}, "opscope-mpi-42"),
                ({"PMI_RANK": "1", "PMI_SIZE": "2", "PMI_PORT": "a:1"}, "opscope-mpi-a_1"),
                ({"PMI_RANK": "1", "PMI_SIZE": "2", "OPSCOPE_JOB": "my job"}, "opscope-my_job"),
                ({"PMI_RANK": "1", "PMI_SIZE": "2"}, "opscope-1"),                        # cannot be told from other jobs
                ({"SLURM_PROCID": "0", "SLURM_JOB_ID": "99", "SLURM_NTASKS": "4"}, "opscope-1"),  # a batch script, not a rank
                ({**self.TORCH, "RANK": "0", "WORLD_SIZE": "1"}, "opscope-1"))
        for env, name in jobs:
            out, _ = self.record("--no-report", "--", "sh", "-c", "echo $OPSCOPE_DIR", env=env)
            self.assertEqual(os.path.basename(out.strip()), name)

    def test_messages(self):
        _, err = self.rank(1, "-o", "out", command=["true"])
        self.assertIn("opscope: record: rank 1: nothing was recorded", err)
        _, err = self.rank(1, "-o", "x.opscope", status=2)
        self.assertIn("the ranks of a job share a directory", err)
        _, err = self.rank(1, "-o", "out")
        self.assertEqual(err, "")  # rank 0 says where


class Follow(RecordCase):
    def test_until_interrupted(self):
        """What may change for ever is shown again and again."""
        trace = oracle.synthetic("two_steps")
        p = self.start("overview", trace, "--follow=0.01", "--format=csv", command="report")
        once, _ = self.record("overview", trace, "--format=csv", command="report")
        want, got = (once * 3).encode(), b""
        while len(got) < len(want):
            piece = os.read(p.stdout.fileno(), 65536)
            self.assertTrue(piece)
            got += piece
        p.send_signal(signal.SIGINT)
        p.communicate(timeout=PATIENCE)
        self.assertEqual(got[:len(want)], want)
        self.assertEqual(p.returncode, -signal.SIGINT)

    def test_closed_pipe(self):
        p = self.start("overview", oracle.synthetic("two_steps"), "--follow=0.01", command="report")
        p.stdout.read(1)
        p.stdout.close()
        self.assertEqual(p.wait(timeout=PATIENCE), 0)
        p.stderr.close()

    def test_nothing_there(self):
        """What is not there, or was removed, is not waited for."""
        _, err = self.record("nvtx", "nothing", "--follow=0.01", command="report", status=1)
        self.assertEqual(err.count("\n"), 1, err)
        os.mkdir(self.path("traces"))
        shutil.copy(oracle.synthetic("two_steps"), self.path("traces"))
        p = self.start("overview", "traces", "--follow=0.01", "--format=csv", command="report")
        self.assertTrue(p.stdout.read(1))
        shutil.rmtree(self.path("traces"))
        _, err = p.communicate(timeout=PATIENCE)
        self.assertEqual(p.returncode, 1, err)

    def test_run_that_ended(self):
        self.env["OPSCOPE_INJECT"] = self.write("lib/libopscope-inject.so", "")
        self.record("-o", "out", "--no-report", "--", "sh", "-c", 'cp "$0" $OPSCOPE_DIR/t.pt.trace.json; : >$OPSCOPE_DIR/keep-1-1.seg',
                    oracle.synthetic("two_steps"))
        os.unlink(self.path("out", "keep-1-1.seg"))
        once, _ = self.record("overview", "out", "--format=csv", command="report")
        followed, _ = self.record("overview", "out", "--format=csv", "--follow=0.01", command="report")
        self.assertEqual(followed, once)


if __name__ == "__main__":
    oracle.main()
