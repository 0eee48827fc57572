"""`opscope record --on-demand` and `--ask`: a program that records when somebody asks for it, and nothing else. guest_steps.c writes down when each of its steps
was; what a recording has must be the steps between its begin and its end, all of them, whole. Also what is refused, and that whatever is said to the socket does
nothing to the program."""
import glob
import os
import signal
import socket
import stat
import struct
import subprocess
import threading
import time
import unittest

import oracle
from recording import PATIENCE, RecordCase, python, wait_until
from test_capture import GUESTS, LIBRARY, problems, sql
from test_capture_cuda import MOCK

GUEST = os.path.join(GUESTS, "guest_steps")
MS = 10 ** 6


class Asked:
    """A connection to a program, by the protocol of include/opscope/ask.h."""

    def __init__(self, path):
        self.s = socket.socket(socket.AF_UNIX)
        self.s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", PATIENCE, 0))  # where many others wait
        self.s.connect(path)
        self.s.settimeout(PATIENCE)
        self.lines = self.s.makefile("r")

    def line(self):
        return self.lines.readline().rstrip("\n")

    def send(self, data):
        self.s.sendall(data)

    def ask(self, name="raw", start=0, duration=0, steps=0, key=""):
        self.send(f"record name={name} start={start} duration={duration} steps={steps} key={key}\n".encode())

    def end(self):
        self.s.shutdown(socket.SHUT_WR)

    def close(self):
        self.lines.close()
        self.s.close()


class Case(RecordCase):
    def setUp(self):
        super().setUp()
        self.env["XDG_RUNTIME_DIR"] = os.path.join(self.dir, "runtime")
        self.env["OPSCOPE_INJECT"] = LIBRARY
        os.mkdir(self.env["XDG_RUNTIME_DIR"], 0o700)
        self.sockets = os.path.join(self.env["XDG_RUNTIME_DIR"], "opscope")
        self.truth_path = os.path.join(self.dir, "truth")

    def begin(self, *command, options=(), run="run", said=b"running\n"):
        """A program under `record --on-demand`, that runs."""
        p = self.start("--on-demand", "-o", run, *options, "--", *command, stdin=subprocess.PIPE) if not isinstance(options, str) else \
            self.start(options, "-o", run, "--", *command, stdin=subprocess.PIPE)
        self.addCleanup(self.kill, p)
        if said:
            self.assertEqual(p.stdout.readline(), said)
        return p

    def steps_program(self, kind, *words, **kw):
        return self.begin(GUEST, kind, self.truth_path, *words, **kw)

    def kill(self, p):
        p.kill()
        for f in (p.stdin, p.stdout, p.stderr):
            if f:
                f.close()
        p.wait()

    def end(self, p, status=0):
        """What it printed."""
        out, err = (x.decode() for x in p.communicate(timeout=PATIENCE))
        self.assertEqual(p.returncode, status, err)
        return out, err

    def socket_paths(self, n=1):
        return wait_until(lambda: len(found := sorted(glob.glob(os.path.join(self.sockets, "*.ask")))) == n and found, "sockets")

    def connect(self):
        return Asked(self.socket_paths()[0])

    def ask(self, whom, *options, status=0):
        """What it said, by line, behind "opscope: record: "."""
        out, err = self.record(f"--ask={whom}", "--no-report", *options, status=status)
        self.assertEqual(out, "")
        return [line.replace("opscope: record: ", "", 1) for line in err.splitlines()]

    def segments(self, folder):
        return sorted(glob.glob(self.path("run", folder, "*.seg")))

    def truth(self):
        """{step: (begin, end)} in ns."""
        with open(self.truth_path) as f:
            return {int(i): (int(a), int(b)) for i, a, b in (line.split() for line in f if line.endswith("\n"))}

    def rows(self, folder):
        """(name, begin, end, whether it was recorded to its end) on CLOCK_REALTIME."""
        zero = sql(folder, "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'baseTimeNanoseconds'")[0][0]
        return [(n, s + zero, s + zero + d, cut is None) for n, s, d, cut in
                sql(folder, "SELECT name, start_ns, dur_ns, arg(args, 'Recorded') FROM span WHERE cat <> '' OR name LIKE 'ProfilerStep%' ORDER BY start_ns")]

    def no_loss(self, folder):
        found = {k: v for k, v in problems(self.path("run", folder)).items() if v[0] != "note"}
        self.assertLessEqual(set(found), {"range-without-end", "lost-busy", "lost-texts"})  # the latter on a busy machine

    def whole_steps(self, folder, n):
        """Their numbers: so many, one after the other, each with what is in it, where the program says it was."""
        rows, truth = self.rows(self.path("run", folder)), self.truth()
        inner = {int(name.split()[1]): (a, b) for name, a, b, whole in rows if name.startswith("inner") and whole}
        self.assertEqual(len(inner), n)
        self.assertEqual(sorted(inner), list(range(min(inner), min(inner) + n)))
        for i, (a, b) in inner.items():
            self.assertTrue(truth[i][0] <= a <= b <= truth[i][1], (i, a, b, truth[i]))
        for name, a, b, _ in rows:
            if not name.startswith("other"):  # of another thread; a step by number ends in the next one
                last = max(inner) + name.startswith("ProfilerStep")
                self.assertTrue(truth[min(inner)][0] <= a and b <= truth[last][1], (name, a, b))
        self.no_loss(folder)
        return sorted(inner)


class Windows(Case):
    def test_steps_then_time(self):
        """Two recordings of one run, each with what was between its begin and its end; names that were given before any of them."""
        p = self.steps_program("profiler", "threads=2", "domain")
        said = self.ask("run", "--steps=5")
        self.assertRegex(said[0], r"^process \d+: 5 of 5 steps in \d\.\d{3} s: ")
        said = self.ask("run", "--duration=150ms")
        self.assertRegex(said[0], r"^process \d+: 0\.150 s: ")
        out, err = self.end(p)
        self.assertIn(f"opscope: record: recorded on demand: {self.path('run', 'asked-1')} {self.path('run', 'asked-2')} ", err)
        self.assertEqual(self.files("run")[:2], ["asked-1", "asked-2"])
        self.assertEqual([len(self.segments(f)) for f in ("asked-1", "asked-2")], [1, 1])

        first = self.whole_steps("asked-1", 5)
        rows = self.rows(self.path("run", "asked-1"))
        self.assertEqual([n for n, *_ in rows if n.startswith("ProfilerStep")], [f"ProfilerStep#{i}" for i in first])
        self.assertEqual(sum(n == "registered text" for n, *_ in rows), 5)
        self.assertEqual(sql(self.path("run", "asked-1"), "SELECT DISTINCT cat FROM span WHERE name = 'registered text'"), [("own domain",)])

        rows, truth = self.rows(self.path("run", "asked-2")), self.truth()
        begin, end = min(a for _, a, *_ in rows), max(b for _, _, b, _ in rows)
        self.assertLessEqual(max(a for _, a, *_ in rows) - begin, 150 * MS)
        self.assertGreater(end - begin, 100 * MS)
        inside = [i for i, (a, b) in truth.items() if a >= begin and b <= end]
        recorded = [int(n.split("#")[1]) for n, *_, whole in rows if n.startswith("ProfilerStep") and whole]
        self.assertGreater(len(inside), 10)
        self.assertLessEqual(set(inside), set(recorded))
        self.assertEqual(recorded, list(range(recorded[0], recorded[-1] + 1)))
        self.assertGreater(recorded[0], first[-1])
        self.assertEqual(len(sql(self.path("run", "asked-2"), "SELECT DISTINCT track FROM span WHERE name = 'other'")), 2)
        self.no_loss("asked-2")

    def test_steps_by_number(self):
        """Those of opscope_step: each ends where the next begins."""
        p = self.steps_program("numbers")
        for n, folder in ((1, "asked-1"), (7, "asked-2")):
            self.assertIn(f"{n} of {n} steps", self.ask("run", f"--steps={n}")[0])
        self.end(p)
        for n, folder in ((1, "asked-1"), (7, "asked-2")):
            inner = self.whole_steps(folder, n)
            steps = sql(self.path("run", folder), "SELECT name, arg(args, 'Recorded') FROM span WHERE name LIKE 'ProfilerStep%' ORDER BY start_ns")
            self.assertEqual(steps, [(f"ProfilerStep#{i}", None) for i in inner])
            self.assertEqual(len(oracle.report("steps", self.path("run", folder)).rows), n)

    def test_steps_by_key(self):
        p = self.steps_program("key", "threads=1")
        self.assertIn("4 of 4 steps", self.ask("run", "--steps=4", "--key-range=train")[0])
        self.end(p)
        self.whole_steps("asked-1", 4)

    def test_whichever_is_over_first(self):
        """No step ever comes: the duration ends it. Many come: the steps do."""
        p = self.steps_program("none")
        self.assertRegex(self.ask("run", "--steps=2", "--duration=0.1", status=1)[0], r"process \d+: no step began in 0\.000 s: ")
        self.end(p)
        self.assertEqual(self.rows(self.path("run", "asked-1")), [])
        p = self.steps_program("profiler", run="other")
        began = time.monotonic()
        self.assertIn("3 of 3 steps", self.ask("other", "--steps=3", "--duration=60")[0])
        self.assertLess(time.monotonic() - began, 50)
        self.end(p)

    def test_never_asked(self):
        """Nothing is recorded, nothing is left."""
        p = self.steps_program("profiler", "threads=1", "domain")
        self.socket_paths()
        out, err = self.end(p)
        self.assertIn("nothing was recorded: nobody asked for it", err)
        self.assertFalse(os.path.exists(self.path("run")))
        self.assertEqual(os.listdir(self.sockets), [])

    def test_many_times(self):
        p = self.steps_program("profiler", "us=200")
        for i in range(1, 21):
            self.assertIn("2 of 2 steps", self.ask("run", "--steps=2")[0])
        os.rename(self.path("run", "asked-7"), self.path("run", "moved"))
        self.assertIn("/asked-21/", self.ask("run", "--steps=1")[0])
        os.rename(self.path("run", "moved"), self.path("run", "asked-7"))
        self.end(p)
        numbers = [self.whole_steps(f"asked-{i}", 2) for i in range(1, 21)]
        self.assertEqual(numbers, sorted(numbers))

    def test_until_interrupted(self):
        p = self.steps_program("profiler")
        client = self.start("--ask=run", "--no-report")
        self.recorded_some()
        client.send_signal(signal.SIGINT)
        _, err = (x.decode() for x in client.communicate(timeout=PATIENCE))
        self.assertEqual(client.returncode, 0, err)
        self.assertRegex(err, r"process \d+: 0\.\d+ s: ")
        self.end(p)
        self.assertGreater(len(self.rows(self.path("run", "asked-1"))), 10)

    def test_client_is_killed(self):
        """What it asked for ends with it, and others may ask."""
        p = self.steps_program("profiler")
        client = self.start("--ask=run", "--no-report")
        self.recorded_some()
        self.kill(client)
        wait_until(lambda: self.connect_is_idle(), "the end")
        self.assertIn("2 of 2 steps", self.ask("run", "--steps=2")[0])
        self.end(p)
        self.assertGreater(len(self.rows(self.path("run", "asked-1"))), 0)
        self.whole_steps("asked-2", 2)

    def recorded_some(self):
        """There is a file, and the program has made some steps since."""
        wait_until(lambda: self.segments("asked-1"), "a file")
        before = len(self.truth())
        wait_until(lambda: len(self.truth()) >= before + 20, "steps")

    def connect_is_idle(self):
        a = self.connect()
        line = a.line()
        a.close()
        return " state=idle " in line

    def test_program_ends_meanwhile(self):
        p = self.steps_program("profiler")
        client = self.start("--ask=run", "--no-report")
        self.recorded_some()
        self.end(p)
        _, err = (x.decode() for x in client.communicate(timeout=PATIENCE))
        self.assertEqual(client.returncode, 1)
        self.assertIn("the process ended while it recorded: its file has what was recorded until then", err)
        self.assertGreater(len(self.rows(self.path("run", "asked-1"))), 10)
        self.assertNotIn("no-exit", problems(self.path("run", "asked-1")))

    def test_several_begin_together(self):
        """Of ranks that are asked at once all windows are the same."""
        p = self.begin("sh", "-c", f"exec 3<&0; RANK=0 WORLD_SIZE=2 {GUEST} profiler {self.truth_path} <&3 & RANK=1 WORLD_SIZE=2 {GUEST} profiler {self.truth_path}.1 <&3; wait",
                       said=None)
        self.socket_paths(2)
        said = self.ask(p.pid, "--duration=200ms")
        self.assertEqual(sorted(line.split("(")[1].split(")")[0] for line in said[:2]), ["rank 0", "rank 1"])
        for line in said[:2]:
            self.assertRegex(line, r"^process \d+ \(rank \d\): 0\.(200|19\d|18\d) s: ")  # from its first event on
        at = time.time() + 1
        self.ask("run", "--duration=0.2s", f"--at={at:.6f}", "-o", "together")
        self.end(p)
        for folder, least in (("asked-1", 0), ("together", at * 1e9)):
            self.assertEqual(len(self.segments(folder)), 2)
            rows = [self.rows(s) for s in self.segments(folder)]
            begins = [a for r in rows for _, a, *_ in r]
            self.assertLessEqual(max(begins) - min(begins), 200 * MS)
            self.assertGreaterEqual(min(begins), least - 1000)
            for r in rows:
                self.assertGreater(len(r), 20)

    def test_descriptors_are_closed(self):
        """By the program, which then can be asked all the same."""
        p = self.steps_program("profiler", "close")
        self.assertIn("2 of 2 steps", wait_until(lambda: self.try_ask("--steps=2"), "an answer"))
        self.end(p)

    def try_ask(self, *options):
        with self.start("--ask=run", "--no-report", *options) as client:
            _, err = client.communicate(timeout=PATIENCE)
        return client.returncode == 0 and err.decode()

    def test_forked_child(self):
        """It is not asked, records nothing, and does not keep the socket of its parent."""
        p = self.steps_program("profiler", "fork")
        self.assertIn("2 of 2 steps", self.ask("run", "--steps=2")[0])
        parent = int(os.path.basename(self.socket_paths()[0]).split("-")[0])
        os.kill(parent, signal.SIGKILL)
        wait_until(lambda: p.poll() is not None, "the end of the parent")
        self.assertIn("no process on this machine records on demand into this directory", self.ask("run", "--steps=2", status=1)[0])
        self.assertEqual(os.listdir(self.sockets), [], "of a process that was killed")


class Stopped(Case):
    """Processes that hang: they are told of, and others are recorded all the same."""

    def pid_of(self, before=()):
        """Of the one that listens besides those."""
        path, = set(self.socket_paths(len(before) + 1)) - set(before)
        return path, int(os.path.basename(path).split("-")[0])

    def stop(self, pid):
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(self.kill_pid, pid)

    def kill_pid(self, pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def test_of_another_run(self):
        """It does not even take time."""
        self.begin(GUEST, "profiler", "/dev/null", run="other")
        path, other = self.pid_of()
        p = self.steps_program("profiler")
        self.pid_of([path])
        self.stop(other)
        for _ in range(2):
            began = time.monotonic()
            said = self.ask("run", "--steps=2")
            self.assertIn("2 of 2 steps", said[0])
            self.assertEqual(len(said), 2, said)
            self.assertLess(time.monotonic() - began, 4)
        began = time.monotonic()
        said = self.ask("other", "--steps=2", status=1)
        self.assertEqual(said, [f"--ask=other: process {other} listens, but does not answer within 5 s: it is stopped, or hangs"])
        os.kill(other, signal.SIGCONT)
        self.assertIn("2 of 2 steps", self.ask("other", "--steps=2")[0])
        self.end(p)

    def test_one_rank(self):
        """Whoever names the job, or its directory: the other rank is recorded."""
        p = self.begin("sh", "-c", f"exec 3<&0; RANK=0 WORLD_SIZE=2 {GUEST} profiler {self.truth_path} <&3 & RANK=1 WORLD_SIZE=2 {GUEST} profiler {self.truth_path}.1 <&3; wait",
                       said=None)
        pids = [int(os.path.basename(path).split("-")[0]) for path in self.socket_paths(2)]
        self.stop(pids[0])
        for whom in ("run", p.pid):
            said = self.ask(whom, "--duration=0.1", status=1)
            self.assertIn(f"process {pids[0]}: does not answer within 5 s: it is stopped, or hangs", said)
            other, = (line for line in said if line.startswith(f"process {pids[1]} "))
            self.assertRegex(other, r"\(rank \d\): 0\.\d{3} s: ")
        os.kill(pids[0], signal.SIGCONT)
        self.end(p)
        self.assertEqual([len(self.segments(f)) for f in ("asked-1", "asked-2")], [1, 1])


    def test_one_rank_is_late(self):
        """It is asked as soon as it answers; the others are not kept waiting until they give up who asks."""
        p = self.begin("sh", "-c", f"exec 3<&0; RANK=0 WORLD_SIZE=2 {GUEST} profiler {self.truth_path} <&3 & RANK=1 WORLD_SIZE=2 {GUEST} profiler {self.truth_path}.1 <&3; wait",
                       said=None)
        pids = [int(os.path.basename(path).split("-")[0]) for path in self.socket_paths(2)]
        self.stop(pids[1])
        goes_on = threading.Timer(2.5, os.kill, (pids[1], signal.SIGCONT))
        goes_on.start()
        self.addCleanup(goes_on.join)
        said = self.ask("run", "--steps=3")
        self.assertEqual(sum("3 of 3 steps" in line for line in said), 2, said)
        self.end(p)

    def stopped_meanwhile(self, run, *options):
        """(the client, the process): the latter hangs while it records for the former."""
        before = glob.glob(os.path.join(self.sockets, "*.ask"))
        self.begin(GUEST, "profiler", "/dev/null", run=run)
        _, pid = self.pid_of(before)
        client = self.start(f"--ask={run}", "--no-report", *options)
        wait_until(lambda: glob.glob(self.path(run, "asked-1", "*.seg")), "a file")
        time.sleep(0.2)
        self.stop(pid)
        return client, pid

    def given_up(self, client, said, least, most, began):
        err = client.communicate(timeout=PATIENCE)[1].decode()
        self.assertEqual(client.returncode, 1, err)
        self.assertIn(said, err)
        self.assertTrue(least <= time.monotonic() - began < most)

    def test_meanwhile_and_told_to_end(self):
        client, pid = self.stopped_meanwhile("run")
        client.send_signal(signal.SIGINT)
        self.given_up(client, f"process {pid}: does not answer: it has not ended the recording within 10 s after it was told to", 9, 30, time.monotonic())

    @unittest.skipUnless(oracle.ALL, "takes half a minute: tools/nightly whole")
    def test_meanwhile(self):
        """The duration ends, and a bound after it the waiting."""
        began = time.monotonic()
        client, pid = self.stopped_meanwhile("run", "--duration=1")
        self.assertIn(f"process {pid}: the recording should have ended ten seconds ago", client.stderr.readline().decode())
        self.given_up(client, f"process {pid}: does not answer: the recording should have ended 30 s ago", 30, 60, began)


class Signals(Case):
    def test_signal(self):
        """It comes to opscope alone: the program has a handler of its own for it."""
        p = self.steps_program("profiler", "usr2", options=("--on-demand=USR2", "--steps=3"))
        for i in (1, 2):
            while not self.segments(f"asked-{i}"):  # one that comes before the last recording has come to its end makes none
                p.send_signal(signal.SIGUSR2)
                time.sleep(1)
            wait_until(self.idle, "its end")
        out, err = self.end(p)
        self.assertEqual(out, "0\n")
        self.assertIn("recorded on demand: ", err)
        self.whole_steps("asked-1", 3)
        self.whole_steps("asked-2", 3)

    def idle(self):
        a = self.connect()
        line = a.line()
        a.close()
        return " state=idle " in line

    def test_others_are_handed_on(self):
        p = self.steps_program("profiler", "usr2", options=("--on-demand=SIGUSR1", "--duration=50ms"))
        p.send_signal(signal.SIGUSR2)
        time.sleep(0.2)
        self.assertEqual(self.end(p)[0], "1\n")

    def test_nobody_to_be_asked(self):
        """The program does nothing that could be recorded: that is told at its end."""
        p = self.begin("cat", options=("--on-demand=USR2", "--duration=50ms"), said=None)
        wait_until(lambda: os.path.exists(self.path("run")), "the run")
        time.sleep(0.3)
        p.send_signal(signal.SIGUSR2)
        time.sleep(0.3)
        _, err = self.end(p)
        self.assertIn("a signal asked for a recording, and none was made: ", err)


class Refused(Case):
    def one_line(self, *args, status=1):
        out, err = self.record(*args, status=status)
        self.assertEqual((out, err.count("\n")), ("", 1), err)
        return err.replace("opscope: record: ", "", 1)

    def test_nobody_listens(self):
        self.assertIn("there is no such process", self.one_line("--ask=2147483646", "--steps=1"))
        with subprocess.Popen(["sleep", "60"]) as other:
            self.assertIn(f"--ask={other.pid}: neither this process nor a descendant listens", self.one_line(f"--ask={other.pid}", "--steps=1"))
            other.kill()
        self.assertIn("No such file or directory; the number of a process, a run directory or a socket was expected", self.one_line("--ask=nothing", "--steps=1"))
        os.mkdir(self.path("empty"))
        self.assertIn("no process on this machine records on demand into this directory", self.one_line("--ask=empty", "--steps=1"))
        self.write("work/file", "")
        self.assertIn("was expected", self.one_line("--ask=file", "--steps=1"))

    def test_already_recording(self):
        p = self.steps_program("profiler")
        a = self.connect()
        a.line()
        a.ask()
        self.assertEqual(a.line(), "begun")
        self.assertRegex(self.one_line("--ask=run", "--steps=1"), r"^process \d+: already recording for process \d+\n$")
        self.assertNotIn("asked-1", self.files("run"))
        a.end()
        self.assertRegex(a.line(), r"^done steps=0 ns=\d+ file=/.*\.seg$")
        a.close()
        self.end(p)

    def test_process_is_gone(self):
        p = self.steps_program("profiler")
        path = self.socket_paths()[0]
        os.kill(int(os.path.basename(path).split("-")[0]), signal.SIGKILL)
        p.wait(PATIENCE)
        self.assertIn("nobody listens there: the process has ended", self.one_line(f"--ask={path}", "--steps=1"))

    def test_no_room(self):
        """The program may write no file: an error of the request alone."""
        p = self.begin("sh", "-c", f"ulimit -f 0; exec {GUEST} profiler /dev/null")
        self.assertRegex(self.one_line("--ask=run", "--steps=1"), r"^process \d+: .*/run/asked-1: the program may not write so long a file \(ulimit -f\)\n$")
        self.assertNotIn("asked-1", self.files("run"))
        self.end(p)

    def test_folder_is_gone(self):
        p = self.steps_program("profiler")
        a = self.connect()
        a.line()
        for f in self.files("run"):
            os.unlink(self.path("run", f))
        os.rmdir(self.path("run"))
        a.ask()
        self.assertEqual(a.line(), f"error {self.path('run', 'raw')}: there is no such folder")
        a.close()
        self.kill(p)

    def test_names(self):
        p = self.steps_program("profiler")
        self.assertIn("2 of 2", self.ask("run", "--steps=2", "-o", "first.look")[0])
        self.assertIn("the folder has files already", self.one_line("--ask=run", "--steps=2", "-o", "first.look"))
        for name in ("a/b", "../out", ".hidden", "a b", "x" * 65):
            self.assertIn("the name of a folder", self.one_line("--ask=run", "--steps=2", "-o", name, status=2))
        self.end(p)

    def test_control_characters(self):
        """In the path of the run directory: nobody could ask."""
        for name in ("a\nb", "a\x1bb", "a\x7f", "\tb"):
            with self.subTest(name):
                self.assertIn("the run directory has a control character", self.one_line("--on-demand", "-o", name, "--", "true"))
        os.mkdir(self.path("in\nside"))
        self.assertIn("the run directory has a control character", self.one_line("--on-demand", "-o", "in\nside/run", "--", "true"))
        self.assertEqual((self.files(), self.files("in\nside")), (["in\nside"], []))
        self.assertEqual(self.end(self.begin("true", run="ünd so", said=None))[0], "")

    def test_usage(self):
        for args in (["--ask=1", "--", "true"], ["--ask=1", "--range=a"], ["--on-demand", "--duration=1", "--", "true"], ["--on-demand=USR2", "--", "true"],
                     ["--on-demand=TERM", "--duration=1", "--", "true"], ["--on-demand", "--sample=cpu", "--", "true"], ["--on-demand", "--backend=nsys", "--", "true"],
                     ["--ask=1", "--steps=0"], ["--ask=1", "--steps=1..3"], ["--ask=1", "--key-range=a"], ["--ask=1", "--at=12"], ["--ask=1", "--at=1000000000"],
                     ["--at=9999999999", "--", "true"], ["--ask=1", "--duration=0ms"], ["--ask=1", "--duration=5m"], ["--ask=1", "--on-demand"]):
            with self.subTest(args):
                self.one_line(*args, status=2)

    def test_folder_of_sockets(self):
        """That of another, or one that others may enter, is not used."""
        os.mkdir(self.sockets)
        os.chmod(self.sockets, 0o777)
        self.assertIn("closed to others", self.one_line("--on-demand", "--", "true", status=1) if not self.has_other_place() else "closed to others")
        self.env["OPSCOPE_ASK"] = self.sockets
        self.assertIn("closed to others", self.one_line("--on-demand", "--", "true"))
        self.assertEqual(self.files(), [])

    def has_other_place(self):
        return True  # /tmp/opscope-UID takes its place


class Attack(Case):
    """Whatever is said to the socket, the program goes on, and can be asked."""

    def setUp(self):
        super().setUp()
        self.program = self.steps_program("profiler", "threads=1")

    def tearDown(self):
        before = len(self.truth())
        self.assertIn("2 of 2 steps", wait_until(lambda: self.try_ask(), "an answer"))
        self.assertGreaterEqual(len(self.truth()), before + 2)
        self.end(self.program)
        super().tearDown()

    def try_ask(self):
        with self.start("--ask=run", "--no-report", "--steps=2") as client:
            _, err = client.communicate(timeout=PATIENCE)
        return client.returncode == 0 and err.decode()

    def refused(self, data):
        a = self.connect()
        self.assertTrue(a.line().startswith("opscope-ask 1 pid="))
        try:
            a.send(data)
            line = a.line()
        except OSError:
            line = ""
        a.close()
        self.assertTrue(line.startswith("error ") or line == "", (data[:80], line))
        return line

    def test_malformed(self):
        good = "record name={} start={} duration={} steps={} key={}\n"
        for data in (b"\n", b"\0\n", b"x\n", b"record\n", b"record name=\n", b"record name=a\n", "recördé\n".encode(), b"\xff\xfe\n", b"record name=a start=0 duration=0 steps=0\n",
                     *(good.format(*v).encode() for v in (
                         ("../a", 0, 0, 1, ""), ("a/b", 0, 0, 1, ""), ("/tmp/a", 0, 0, 1, ""), (".", 0, 0, 1, ""), ("..", 0, 0, 1, ""), ("", 0, 0, 1, ""), ("x" * 65, 0, 0, 1, ""),
                         ("a", -1, 0, 1, ""), ("a", "", 0, 1, ""), ("a", 0, "1e9", 1, ""), ("a", 0, 0, "9" * 400, ""), ("a", 2 ** 62, 0, 1, ""), ("a", 0, 0, 1, "k" * 512),
                         ("a", "0 ", 0, 1, ""), ("a\tb", 0, 0, 1, ""), ("a%2fb", 0, 0, 1, ""))),
                     good.format("a", 0, 0, 1, "").encode() * 2):
            with self.subTest(data[:60]):
                self.assertTrue(self.refused(data).startswith("error "))
        self.assertEqual([f for f in self.files("run") if not f.endswith(".run.json")], [])
        self.assertFalse(os.path.exists(self.path("a")))

    def test_huge(self):
        self.refused(b"record name=" + b"a" * (8 << 20) + b"\n")
        self.refused(b"a" * (8 << 20))

    def test_slow(self):
        """Bytes one by one, and connections on which nothing comes, are given up in time."""
        held = [self.connect() for _ in range(6)]
        a = self.connect()
        a.line()
        began = time.monotonic()
        with self.assertRaises(OSError):
            for byte in b"record name=slow start=0 duration=0 steps=1 key=" * 10:
                a.send(bytes([byte]))
                time.sleep(0.05)
        self.assertLess(time.monotonic() - began, 20)
        for h in (*held, a):
            h.close()

    def test_many(self):
        held = []
        for _ in range(300):
            s = socket.socket(socket.AF_UNIX)
            s.setblocking(False)
            try:
                s.connect(self.socket_paths()[0])
                held.append(s)
            except OSError:
                s.close()
        self.assertGreater(len(held), 8)
        for s in held:
            s.close()
        for _ in range(100):
            self.connect().close()

    def test_while_it_records(self):
        """Who asked says more; others come: the recording of the one ends, the others are refused."""
        a = self.connect()
        a.line()
        a.ask("mine")
        self.assertEqual(a.line(), "begun")
        self.refused(b"x\n")
        self.refused(b"record name=b start=0 duration=0 steps=1 key=\n")
        a.send(b"more" * 1000)
        self.assertRegex(a.line(), "^done ")
        a.close()

    def test_given_up_before(self):
        a = self.connect()
        a.line()
        a.ask("later", start=time.time_ns() + 600 * 10 ** 9)
        time.sleep(0.1)
        a.end()
        self.assertEqual(a.line(), "error the recording was given up before it began")
        a.close()
        self.assertNotIn("later", self.files("run"))

    def test_link_in_the_run_directory(self):
        """A name that leads elsewhere is not followed."""
        elsewhere = os.path.join(self.dir, "elsewhere")
        os.mkdir(elsewhere)
        os.symlink(elsewhere, self.path("run", "link"))
        a = self.connect()
        a.line()
        a.ask("link")
        self.assertRegex(a.line(), "^error .*/run/link: ")
        a.close()
        self.assertEqual(os.listdir(elsewhere), [])

    def test_permissions(self):
        self.assertEqual(stat.S_IMODE(os.stat(self.sockets).st_mode), 0o700)
        self.assertEqual(stat.S_IMODE(os.stat(self.socket_paths()[0]).st_mode), 0o600)
        self.assertIn("1 of 1", self.ask("run", "--steps=1")[0])
        self.assertEqual(stat.S_IMODE(os.stat(self.path("run", "asked-1")).st_mode), 0o700)
        self.assertEqual([stat.S_IMODE(os.stat(s).st_mode) for s in self.segments("asked-1")], [0o600])

    @unittest.skipUnless(os.geteuid() == 0, "only root can be somebody else")
    def test_another_user(self):
        """Even where the modes let it in."""
        path = self.socket_paths()[0]
        code = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({path!r}); print(s.recv(1000).decode(), end='')"
        outside = subprocess.run(["python3", "-c", code], user=65534, group=65534, capture_output=True)
        self.assertIn(b"PermissionError", outside.stderr)
        above = path
        while above != "/":
            above = os.path.dirname(above)
            mode = stat.S_IMODE(os.stat(above).st_mode)
            self.addCleanup(lambda p=above, m=mode: os.path.exists(p) and os.chmod(p, m))
            os.chmod(above, mode | 0o111)
        os.chmod(path, 0o666)
        inside = subprocess.run(["/usr/bin/python3", "-c", code], user=65534, group=65534, capture_output=True)
        os.chmod(self.sockets, 0o700)
        self.assertEqual((inside.stdout, inside.stderr), (b"error only the user whose program this is may ask\n", b""))


class FakeProgram(Case):
    """What answers is not opscope, or wants to hurt who asks: one line says so, in time."""

    def fake(self, *answers, after=b"", reads=True):
        """A socket where such a thing listens, for one client."""
        os.makedirs(self.sockets, 0o700, exist_ok=True)
        path = os.path.join(self.sockets, f"{os.getpid()}-{time.time_ns()}.ask")
        s = socket.socket(socket.AF_UNIX)
        s.bind(path)
        s.listen(1)
        self.addCleanup(s.close)

        def serve():
            c = s.accept()[0]
            with c:
                c.settimeout(PATIENCE)
                try:
                    for answer in answers:
                        c.sendall(answer)
                        if reads and not c.recv(4096):
                            return
                    if after is not None:
                        c.sendall(after)
                except OSError:
                    pass
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        self.addCleanup(thread.join, PATIENCE)
        return path

    def said_of(self, path):
        out, err = self.record(f"--ask={path}", "--steps=1", status=1)
        self.assertEqual((out, err.count("\n")), ("", 1), err)
        return err

    def greeting(self, folder="run"):
        os.makedirs(self.path(folder), exist_ok=True)
        return f"opscope-ask 1 pid=1 rank=-1 state=idle dir={self.path(folder)}\n".encode()

    def test_greetings(self):
        good = self.greeting()
        for bad in (b"", b"\n", b"\0" * 100 + b"\n", b"x" * 100000, good[:-1], good.replace(b"pid=1", b"pid="), good.replace(b"rank=-1", b"rank=x"), good.replace(b"ask 1", b"ask 2"),
                    good.replace(b"dir=/", b"dir="), b"opscope-ask 1 \n", "öpscope\n".encode()):
            with self.subTest(bad[:40]):
                self.assertIn("the process that listens there does not answer as opscope does", self.said_of(self.fake(bad, reads=False)))

    def test_silence(self):
        began = time.monotonic()
        self.assertIn("does not answer as opscope does", self.said_of(self.fake(b" ", after=None)))
        self.assertLess(time.monotonic() - began, 60)

    def test_answers(self):
        for answer, said in ((b"", "the process ended, or listens no more"), (b"begun\n", "the process ended while it recorded"), (b"what\n", "does not know the answer of the process"),
                             (b"done steps=x ns=1 file=a\n", "does not know the answer"), (b"error \x1b[31mred\n", "red"), (b"y" * 100000, "the answer of the process is too long"),
                             (b"error " + b"z" * 7000 + b"\n", "zzz"), (b"done steps=1\n", "does not know the answer")):
            with self.subTest(answer[:30]):
                self.assertIn(said, self.said_of(self.fake(self.greeting(), after=answer)))
        self.assertEqual(self.files("run"), [])

    @unittest.skipUnless(oracle.ALL, "takes most of a minute: tools/nightly whole")
    def test_long_step(self):
        """The recording ends with a step, 36 s after it should have. What listens goes on answering meanwhile, and so is waited for."""
        os.makedirs(self.sockets, 0o700, exist_ok=True)
        path, greeted = os.path.join(self.sockets, f"{os.getpid()}-{time.time_ns()}.ask"), []
        s = socket.socket(socket.AF_UNIX)
        s.bind(path)
        s.listen(8)
        self.addCleanup(s.close)

        def record(c):
            c.recv(4096)
            c.sendall(b"begun\n")
            time.sleep(37)
            self.write("work/run/asked-1/a.seg", "")
            c.sendall(f"done steps=1 ns=37000000000 file={self.path('run', 'asked-1', 'a.seg')}\n".encode())

        def serve():
            for worker in record, lambda c: c.recv(4096):
                c = s.accept()[0]
                c.sendall(self.greeting())
                greeted.append(c)
                threading.Thread(target=worker, args=(c,), daemon=True).start()
        threading.Thread(target=serve, daemon=True).start()
        said = self.ask(path, "--duration=1")
        self.assertIn("should have ended ten seconds ago", said[0])
        self.assertIn("37.000 s", said[-1])
        self.assertEqual(len(greeted), 2)
        for c in greeted:
            c.close()

    def test_refused_before_it_is_asked(self):
        """What the process said last is told, although it hears no more."""
        path = self.fake(self.greeting() + b"error of its own\n", reads=False)
        self.assertIn(": of its own\n", self.said_of(path))

    def test_what_is_done_is_checked(self):
        """Numbers, and a file, that cannot be."""
        for folder in ("run", "elsewhere"):
            os.makedirs(self.path(folder, "asked-1"))
        self.write("work/run/a.seg", "")
        self.write("work/elsewhere/asked-1/a.seg", "")
        for steps, ns, file, said in ((-1, 1, "run/asked-2/a.seg", "less than nothing"), (1, -1, "run/asked-2/a.seg", "less than nothing"), (-2 ** 63, -2 ** 63, "x", "less than nothing"),
                                      (1, 1, "/etc/passwd", "not in the folder"), (1, 1, "run/asked-2/none.seg", "not in the folder"), (1, 1, "run/asked-2", "not in the folder"),
                                      (1, 1, "run/asked-2/../a.seg", "not in the folder"), (1, 1, "elsewhere/asked-1/a.seg", "not in the folder")):
            with self.subTest(steps=steps, ns=ns, file=file):
                self.assertIn(said, self.said_of(self.fake(self.greeting(), after=f"done steps={steps} ns={ns} file={self.path(file)}\n".encode())))
        self.assertEqual(self.files("run"), ["a.seg", "asked-1"])

    def test_run_directory_is_none(self):
        self.assertIn("cannot make the folder", self.said_of(self.fake(self.greeting("run").replace(b"/run\n", b"/none\n"), reads=False)))


class Cuda(Case):
    """Work of devices, by a mock driver and a mock CUPTI: what was launched while somebody recorded, and nothing else."""

    def setUp(self):
        super().setUp()
        libs = os.path.join(self.dir, "lib")
        os.mkdir(libs)
        os.symlink(os.path.join(MOCK, "libmock_cupti_13.0.so"), os.path.join(libs, "libcupti.so.13"))
        self.env.update(LD_LIBRARY_PATH=f"{libs}:{MOCK}", MOCK_TRUTH=self.truth_path)

    def test_cuda_comes_meanwhile(self):
        """It is initialised while a recording goes on, which has its work from the next second on."""
        p = self.begin(os.path.join(MOCK, "guest_cuda"), "late=before", "say=cuda", "work=6", "say=done", said=b"before\n")
        a = self.connect()
        a.line()
        a.ask("late")
        self.assertEqual(a.line(), "begun")
        for said, pause in ((b"cuda\n", 2.5), (b"done\n", 0)):
            p.stdin.write(b"\n")
            p.stdin.flush()
            self.assertEqual(p.stdout.readline(), said)
            time.sleep(pause)
        a.end()
        self.assertRegex(a.line(), "^done ")
        a.close()
        p.stdin.write(b"\n")
        self.end(p)
        self.assertEqual(sql(self.path("run", "late"), "SELECT name, count(*) FROM gpu_op GROUP BY name"), [("work_kernel", 6)])

    def test_two_windows(self):
        words = ["work=5", "say=one", "work=7", "say=two", "work=9", "say=three", "work=11", "say=four", "work=13"]
        p = self.begin(os.path.join(MOCK, "guest_cuda"), *words, said=b"one\n")
        for name, said in (("first", b"two\n"), ("second", b"four\n")):
            a = self.connect()
            a.line()
            a.ask(name)
            self.assertEqual(a.line(), "begun")
            p.stdin.write(b"\n")
            p.stdin.flush()
            self.assertEqual(p.stdout.readline(), said)
            a.end()
            self.assertRegex(a.line(), "^done ")
            a.close()
            if name == "first":
                p.stdin.write(b"\n")
                p.stdin.flush()
                self.assertEqual(p.stdout.readline(), b"three\n")
        p.stdin.write(b"\n")
        self.end(p)
        for name, n in (("first", 7), ("second", 11)):
            self.assertEqual(sql(self.path("run", name), "SELECT name, count(*) FROM gpu_op GROUP BY name"), [("work_kernel", n)])
            self.assertEqual(sql(self.path("run", name), "SELECT count(*) FROM span WHERE kind = 'call' AND name = 'cudaLaunchKernel'"), [(n,)])


if __name__ == "__main__":
    oracle.main()
