"""Commands that write are interrupted, or run out of memory: they end at once, and what stood in the folder stands there as it was."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

import failing
import oracle

EVENTS = 60_000 if oracle.SANITIZED else 400_000
ENDS_S = 10 if oracle.SANITIZED else 1  # 0.1 s on a machine that does nothing else
ALLOCATIONS = int(os.environ.get("OPSCOPE_SAMPLES", 200 if oracle.ALL else 30))


def event(i):
    return {"ph": "X", "name": f"op {i % 97}", "cat": "kernel" if i % 2 else "cpu_op", "pid": i % 2, "tid": 7, "ts": 10 * i, "dur": 7, "args": {"External id": i // 2}}


def step(k, n):
    return {"ph": "X", "name": f"ProfilerStep#{k}", "cat": "cpu_op", "pid": 0, "tid": 7, "ts": 10 * EVENTS // n * k, "dur": 10 * EVENTS // n - 1}


class Interrupted(oracle.Case):
    @classmethod
    def setUpClass(cls):
        cls.tmp = tempfile.mkdtemp()
        cls.trace = os.path.join(cls.tmp, "large.json")
        with open(cls.trace, "w") as f:
            f.write('{"traceEvents": [')
            f.write(",\n".join(json.dumps(e) for e in [step(k, 4) for k in range(4)] + [event(i) for i in range(EVENTS)]))
            f.write("]}")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.tmp)

    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.out = os.path.join(self.folder, "out.opscope")

    def wait_for_writing(self, p):
        """Until the unfinished file stands there."""
        deadline = time.monotonic() + oracle.TIMEOUT
        while not any(f.startswith(".opscope-") for f in os.listdir(self.folder)):
            self.assertIsNone(p.poll(), "it ended before it was interrupted")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.002)

    def interrupt(self, args, number, after_s=None):
        """The signal after `after_s`, or as soon as something is being written; how long it took to end."""
        before = sorted(os.listdir(self.folder))
        p = subprocess.Popen([oracle.OPSCOPE, *args], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if after_s is None:
            self.wait_for_writing(p)
        else:
            time.sleep(after_s)
        self.assertIsNone(p.poll(), "it ended before it was interrupted")
        began = time.monotonic()
        p.send_signal(number)
        p.wait(oracle.TIMEOUT)
        took = time.monotonic() - began
        print(f"# {args[0]}, signal {number}, {'while it writes' if after_s is None else 'early'}: ended after {1000 * took:.0f} ms", flush=True)
        self.assertEqual(p.returncode, -number)
        self.assertLess(took, ENDS_S)
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_import(self):
        self.interrupt(["import", self.trace, "-o", self.out], signal.SIGINT, after_s=0.3)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.interrupt(["import", self.trace, "-o", self.out], number)

    def test_import_over_a_file(self):
        with open(self.out, "w") as f:
            f.write("older")
        self.interrupt(["import", self.trace, "-o", self.out], signal.SIGINT)
        with open(self.out) as f:
            self.assertEqual(f.read(), "older")

    def test_aggregate(self):
        self.assertEqual(oracle.run("import", self.trace, "-o", self.out)[0], 0)
        self.interrupt(["aggregate", self.out, "--steps=1..2"], signal.SIGTERM)

    def test_export(self):
        self.interrupt(["export", "chrome", self.trace, "-o", os.path.join(self.folder, "a.json.gz")], signal.SIGINT)

    def test_killed(self):
        """What nobody could remove is removed by the next command that writes there."""
        p = subprocess.Popen([oracle.OPSCOPE, "import", self.trace, "-o", self.out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_for_writing(p)
        p.kill()
        p.wait()
        self.assertEqual(len(os.listdir(self.folder)), 1)
        table = os.path.join(self.folder, "table.csv")
        self.assertEqual(oracle.run("report", "operators", oracle.synthetic("two_steps"), "-o", table)[0], 0)
        self.assertEqual(os.listdir(self.folder), ["table.csv"])

    def test_out_of_memory(self):
        """At any allocation."""
        if oracle.SANITIZED:
            self.skipTest("a sanitizer has its own malloc")
        oracle.built(failing.LIBRARY, "OPSCOPE_BUILD")
        counter = failing.Counter(os.path.join(self.tmp, "state"))
        trace, given = oracle.synthetic("two_steps"), os.path.join(self.tmp, "given.opscope")
        self.assertEqual(oracle.run("import", trace, "-o", given)[0], 0)
        stacks = os.path.join(self.folder, "stacks.json")
        for args, path in ((["import", trace, "-o", self.out], trace), (["aggregate", self.out, "--steps=1"], self.out), (["export", "chrome", trace, "-o", stacks], trace)):
            shutil.copyfile(given, self.out)
            self.assertEqual(counter.run(args, path, "malloc:0:once")[0], 0)
            n = counter.get("count")
            failed = 0
            for i in range(1, n, 1 + n // ALLOCATIONS):
                shutil.copyfile(given, self.out)
                status = counter.run(args, path, f"malloc:{i}:from")[0]
                with self.subTest(command=args[0], alloc=i):
                    failed += status == 1
                    self.assertIn(status, (0, 1))
                    self.assertLessEqual(set(os.listdir(self.folder)), {"out.opscope", "stacks.json"})
            self.assertGreater(failed, ALLOCATIONS // 3)


oracle.main()
