"""opscope.on_demand(): torch's profiler, begun and ended in step() when `opscope record --ask` asks for it. What a recording has are the steps that it counts;
nothing is recorded where nobody asks; what fails is said to who asked, and is no error of the program.

Skipped under a Python without torch (Debian: python3-torch).
"""
import gzip
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
import warnings

from support import oracle
import opscope

try:
    import torch
    from opscope import _on_demand
except ImportError:
    torch = None

PATIENCE = 60


class Client:
    """Who asks, by the protocol of include/opscope/ask.h."""

    def __init__(self, path):
        self.s = socket.socket(socket.AF_UNIX)
        self.s.settimeout(PATIENCE)
        self.s.connect(path)
        self.lines = self.s.makefile("r", errors="surrogateescape")
        self.greeting = self.line()

    def line(self):
        return self.lines.readline().rstrip("\n")

    def ask(self, name="asked", start=0, duration=0, steps=0, key=""):
        self.send(f"record name={name} start={start} duration={duration} steps={steps} key={key}\n".encode())
        return self

    def send(self, data):
        self.s.sendall(data)

    def close(self):
        self.lines.close()
        self.s.close()


@unittest.skipUnless(torch, "no Python with torch (Debian: python3-torch)")
class Case(oracle.Case):
    def setUp(self):
        super().setUp()
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.run_dir, self.sockets = os.path.join(self.dir, "run"), os.path.join(self.dir, "sockets")
        patch = unittest.mock.patch.dict(os.environ, OPSCOPE_ASK=self.sockets)
        patch.start()
        self.addCleanup(patch.stop)
        torch.set_num_threads(1)
        self.net = torch.nn.Linear(4, 4)

    def begin(self, **options):
        demand = opscope.on_demand(self.run_dir, **options)
        self.addCleanup(demand.close)
        return demand

    def connect(self):
        name, = os.listdir(self.sockets)
        client = Client(os.path.join(self.sockets, name))
        self.addCleanup(client.close)
        return client

    def one(self, demand):
        demand.step()
        with torch.autograd.profiler.record_function(f"number {demand._number}"):
            self.net(torch.ones(2, 4))

    def until(self, demand, client, what="done"):
        """Steps until the client is told something; that."""
        said = []
        thread = threading.Thread(target=lambda: said.append(client.line()))
        thread.start()
        end = time.monotonic() + PATIENCE
        while not said and time.monotonic() < end:
            self.one(demand)
            time.sleep(0.001)
        thread.join()
        self.assertTrue(said[0].startswith(what), said)
        return said[0]

    def recorded(self, line):
        """The steps and the numbers that a recording has."""
        path = line.split(" file=")[1]
        trace = opscope.load(path)
        names = trace.sql("SELECT name FROM span WHERE name LIKE 'ProfilerStep#%' OR name LIKE 'number %' ORDER BY start_ns")["name"]
        trace.close()
        return [int(n.split("#")[1]) for n in names if "#" in n], [int(n.split()[1]) for n in names if "#" not in n]


class Recordings(Case):
    def test_steps(self):
        """Twice in one run: exactly so many, each with what is in it."""
        demand = self.begin(record_shapes=True)
        for n in (1, 4):
            client = self.connect().ask(f"of {n}".replace(" ", "-"), steps=n)
            self.until(demand, client, "begun")
            line = self.until(demand, client)
            self.assertIn(f"done steps={n} ", line)
            steps, numbers = self.recorded(line)
            self.assertEqual(len(steps), n)
            self.assertEqual(steps, list(range(steps[0], steps[0] + n)))
            self.assertEqual(numbers, steps)
            self.assertEqual(os.stat(line.split(" file=")[1]).st_mode & 0o777, 0o600)
        self.assertEqual(sorted(os.listdir(self.run_dir)), ["of-1", "of-4"])

    def test_a_directory_that_is_not_utf8(self):
        """Its bytes reach who asks as they are."""
        self.run_dir = os.path.join(os.fsencode(self.dir), b"run \xff\xe9")
        demand = self.begin()
        client = self.connect().ask(steps=1)
        self.assertEqual(os.fsencode(client.greeting.split(" dir=")[1]), self.run_dir)
        self.until(demand, client, "begun")
        path = os.fsencode(self.until(demand, client).split(" file=")[1])
        self.assertEqual(os.path.dirname(path), os.path.join(self.run_dir, b"asked"))
        with gzip.open(path) as f:
            self.assertIn("traceEvents", json.load(f))

    def test_rank_of_the_launcher(self):
        """Before torch.distributed begins, the environment says which rank this is; the trace has it."""
        with unittest.mock.patch.dict(os.environ, RANK="3", WORLD_SIZE="8"):
            demand = self.begin()
            client = self.connect().ask(steps=1)
            self.until(demand, client, "begun")
            path = self.until(demand, client).split(" file=")[1]
        with gzip.open(path) as f:
            self.assertEqual(json.load(f)["distributedInfo"], {"rank": 3, "world_size": 8})

    def test_duration(self):
        demand = self.begin()
        client = self.connect().ask(duration=10 ** 8)
        self.until(demand, client, "begun")
        line = self.until(demand, client)
        self.assertGreaterEqual(int(line.split(" ns=")[1].split()[0]), 10 ** 8)
        steps, numbers = self.recorded(line)
        self.assertEqual(steps, numbers)
        self.assertGreater(len(steps), 2)

    def test_until_the_client_ends(self):
        demand = self.begin()
        client = self.connect().ask()
        self.until(demand, client, "begun")
        for _ in range(5):
            self.one(demand)
        client.s.shutdown(socket.SHUT_WR)
        self.assertGreaterEqual(len(self.recorded(self.until(demand, client))[0]), 5)

    def test_start(self):
        demand = self.begin()
        at = time.time_ns() + 5 * 10 ** 8
        client = self.connect().ask(start=at, steps=1)
        self.until(demand, client, "begun")
        self.assertGreaterEqual(time.time_ns(), at)
        self.until(demand, client)

    def test_own_library(self):
        """backend="opscope": a segment."""
        demand = self.begin(backend="opscope")
        client = self.connect().ask(steps=2)
        self.until(demand, client, "begun")
        line = self.until(demand, client)
        self.assertTrue(line.endswith(".seg"))
        self.assertEqual(len(self.recorded(line)[0]), 2)

    def test_never_asked(self):
        with unittest.mock.patch.object(_on_demand, "profile", side_effect=_on_demand.profile) as made:
            demand = self.begin()
            self.assertEqual(made.call_count, 1)  # enabled=False: it checks the options
            for _ in range(100):
                self.one(demand)
            self.assertEqual(made.call_count, 1)
        demand.close()
        self.assertEqual((os.listdir(self.run_dir), os.listdir(self.sockets)), ([], []))

    def test_end_of_the_program(self):
        """It ends in the midst of a recording: what there is, is written."""
        code = """if 1:
            import opscope, torch, sys, time
            demand = opscope.on_demand(sys.argv[1])
            print("running", flush=True)
            sys.stdin.readline()
            demand.step()
            torch.ones(2).add(1)
            """
        with subprocess.Popen([sys.executable, "-c", code, self.run_dir], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
            self.assertEqual(p.stdout.readline(), b"running\n")
            client = self.connect().ask()
            time.sleep(0.3)
            p.stdin.write(b"\n")
            p.stdin.flush()
            self.assertEqual(client.line(), "begun")
            line = client.line()
            self.assertEqual(p.wait(PATIENCE), 0)
        self.assertTrue(line.startswith("done steps=0 "), line)
        self.assertTrue(os.path.exists(line.split(" file=")[1]))
        self.assertEqual(os.listdir(self.sockets), [])


class Errors(Case):
    def test_options(self):
        for wrong in ({"schedule": None}, {"enabled": False}, {"no_such": 1}):
            with self.assertRaises(TypeError):
                opscope.on_demand(self.run_dir, **wrong)
        with self.assertRaises(ValueError):
            opscope.on_demand(self.run_dir, backend="none")
        for name in ("a\nb", "a\x1b", "\x7f"):
            with self.assertRaisesRegex(ValueError, "control character"):
                opscope.on_demand(os.path.join(self.dir, name))
        self.assertFalse(os.path.exists(self.sockets))
        self.assertEqual(os.listdir(self.dir), [])

    def test_another_profiler(self):
        """The program's own runs: the request fails, the program does not."""
        demand = self.begin()
        client = self.connect().ask(steps=1)
        broken = RuntimeError("another one\nruns")
        with unittest.mock.patch.object(_on_demand.profile, "start", side_effect=broken), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            line = self.until(demand, client, "error ")
        self.assertEqual(line, "error the profiler could not begin: RuntimeError: another one runs")
        self.assertEqual(len(warned), 1)
        client = self.connect().ask("again", steps=1)
        self.until(demand, client, "begun")
        self.until(demand, client)

    def test_disk(self):
        demand = self.begin()
        client = self.connect().ask(steps=1)
        with unittest.mock.patch.object(opscope.Recording, "save", side_effect=OSError(28, "No space left on device")):
            self.until(demand, client, "begun")
            line = self.until(demand, client, "error ")
        self.assertTrue(line.endswith(".pt.trace.json.gz: No space left on device"), line)
        self.assertEqual(os.listdir(os.path.join(self.run_dir, "asked")), [])

    def test_already(self):
        demand = self.begin()
        first = self.connect().ask(steps=2)
        self.until(demand, first, "begun")
        second = self.connect().ask("second")
        self.assertEqual(second.line(), f"error already recording for process {os.getpid()}")
        self.assertIn(" state=recording ", second.greeting)
        self.until(demand, first)

    def test_given_up(self):
        """Before any step: the thread that listens answers."""
        demand = self.begin()
        client = self.connect().ask(steps=2)
        client.s.shutdown(socket.SHUT_WR)
        self.assertEqual(client.line(), "error the recording was given up before it began")
        self.one(demand)
        again = self.connect().ask("again", steps=1)
        self.until(demand, again, "begun")
        self.until(demand, again)

    def test_attacks(self):
        demand = self.begin()
        good = "record name={} start=0 duration=0 steps={} key={}\n"
        for data in (b"\n", b"\0\n", b"x" * 5000, b"\xff\n", good.format("../a", 1, "").encode(), good.format(".a", 1, "").encode(), good.format("a/b", 1, "").encode(),
                     good.format("a", "9" * 30, "").encode(), good.format("a", 1, "k").encode(), good.format("a", -1, "").encode(), good.format("a", 1, "").encode() * 2):
            with self.subTest(data[:40]):
                client = self.connect()
                client.send(data)
                self.assertTrue(client.line().startswith("error "))
        held = [self.connect() for _ in range(8)]
        began = time.monotonic()
        self.assertEqual([h.line() for h in held], ["error no request came"] * 8)
        self.assertLess(time.monotonic() - began, 20)
        os.symlink(self.dir, os.path.join(self.run_dir, "link"))
        client = self.connect().ask("link", steps=1)
        self.assertIn("a folder of the program's user was expected", client.line())
        self.assertEqual(os.listdir(self.run_dir), ["link"])
        client = self.connect().ask("works", steps=1)
        self.until(demand, client, "begun")
        self.until(demand, client)

    def test_folder_of_sockets(self):
        os.mkdir(self.sockets)
        os.chmod(self.sockets, 0o755)
        with self.assertRaises(PermissionError):
            opscope.on_demand(self.run_dir)

    def test_fork(self):
        """The child does not listen; its step() does nothing; the parent goes on."""
        demand = self.begin()
        pid = os.fork()
        if pid == 0:
            try:
                demand.step()
                demand.close()
            finally:
                os._exit(0 if demand._server is None else 1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        client = self.connect().ask(steps=1)
        self.until(demand, client, "begun")
        self.until(demand, client)

    def test_many_descriptors(self):
        """The program has so many files open that select() could not know ours."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY and hard < 2048:
            self.skipTest("ulimit -n: a process may not have 2048 descriptors")
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
        self.addCleanup(lambda: [os.close(fd) for fd in held])
        for n in (1, 2):
            demand = self.begin()
            client = self.connect().ask(f"many-{n}", steps=n)
            self.until(demand, client, "begun")
            self.assertEqual(len(self.recorded(self.until(demand, client))[0]), n)
            self.assertTrue(demand._server.thread.is_alive())
            demand.close()

    def test_the_thread_fails(self):
        """Whatever the reason: who waits for an answer is not left waiting, and no socket stays."""
        demand = self.begin()
        client = self.connect().ask()
        self.until(demand, client, "begun")
        with unittest.mock.patch.object(threading, "excepthook"), unittest.mock.patch.object(_on_demand._Server, "_hear", side_effect=ValueError):
            demand._server.wake()
            demand._server.thread.join(PATIENCE)
        self.assertEqual(client.line(), "")
        self.assertEqual(os.listdir(self.sockets), [])
        self.one(demand)
        self.assertIsNone(demand._request)

    def test_closed_descriptors(self):
        """By the program: it goes on, and nothing of it is read."""
        demand = self.begin()
        time.sleep(0.2)  # it waits for what comes
        fd = demand._server.wakes
        read, write = os.pipe()
        os.dup2(read, fd)
        os.write(write, b"mine")
        demand._server.thread.join(PATIENCE)
        self.assertFalse(demand._server.thread.is_alive())
        self.one(demand)
        self.assertEqual(os.read(read, 10), b"mine")
        os.close(read)
        os.close(write)


class UnderRecord(Case):
    def test_marks_steps(self):
        """`opscope record --on-demand` in front: its library records, step() marks the steps that are counted."""
        code = """if 1:
            import opscope, sys, time
            with opscope.on_demand("run2") as demand:
                print("running", flush=True)
                while not sys.stdin.closed and not __import__("select").select([sys.stdin], [], [], 0.002)[0]:
                    demand.step()
            """
        run = os.path.join(self.dir, "recorded")
        with subprocess.Popen([oracle.OPSCOPE, "record", "--on-demand", "-o", run, "--", sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, cwd=self.dir) as p:
            self.assertEqual(p.stdout.readline(), b"running\n")
            client = self.connect().ask(steps=3)
            self.assertEqual(client.line(), "begun")
            line = client.line()
            _, err = p.communicate(timeout=PATIENCE)
        self.assertEqual(p.returncode, 0, err)
        self.assertTrue(line.startswith("done steps=3 "), line)
        self.assertEqual(len(self.recorded(line)[0]), 3)
        self.assertFalse(os.path.exists(os.path.join(self.dir, "run2")))


if __name__ == "__main__":
    oracle.main()
