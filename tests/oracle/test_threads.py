"""A large trace is read and analysed by several threads: what is printed and kept is that of one, byte for byte."""
import contextlib
import json
import os
import random
import shutil
import sqlite3
import subprocess
import tempfile

import oracle

EVENTS = 120_000  # 14 MB: parts are 4 MB at least
STEPS = os.path.join(oracle.ROOT, "tests", "data", "h200", "gpt_bf16_compiled.json.gz")


def event(i, r):
    if i % 5 == 4:
        return {"ph": "X", "name": f"kernel {i % 13}", "cat": "kernel", "pid": 0, "tid": 7, "ts": 10 * i + 5, "dur": 7, "args": {"correlation": i - 1, "External id": i // 5, "stream": 7}}
    if i % 5 == 3:
        return {"ph": "X", "name": "cudaLaunchKernel", "cat": "cuda_runtime", "pid": 1, "tid": 1, "ts": 10 * i, "dur": 2, "args": {"correlation": i, "External id": i // 5}}
    return {"ph": "X", "name": f"aten::op{r.randrange(90)}", "cat": "cpu_op", "pid": 1, "tid": 1 + i % 3, "ts": 10 * i, "dur": 9, "args": {"External id": i // 5, "Input Dims": [[r.randrange(99)]]}}


class Threads(oracle.Case):
    @classmethod
    def setUpClass(cls):
        cls.tmp = tempfile.mkdtemp()
        cls.trace = os.path.join(cls.tmp, "large.json")
        r = random.Random(3)
        with open(cls.trace, "w") as f:
            f.write('{"traceEvents": [\n  ' + ",\n  ".join(json.dumps(event(i, r)) for i in range(EVENTS)) + '\n], "traceName": "a"}')

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.tmp)

    def run_opscope(self, *args, **env):
        p = subprocess.run([oracle.OPSCOPE, *args], capture_output=True, env={**os.environ, "SOURCE_DATE_EPOCH": "86400", **env})
        return p.returncode, p.stdout, p.stderr

    def test_same_output(self):
        one = self.run_opscope("report", "operators", self.trace, "--format=csv", "--threads=1")
        self.assertEqual((one[0], one[2]), (0, b""))
        for n in (2, 3, 64, 10 ** 15):
            self.assertEqual(self.run_opscope("report", "operators", self.trace, "--format=csv", f"--threads={n}"), one, n)
        self.assertEqual(self.run_opscope("report", "operators", self.trace, "--format=csv", OPSCOPE_THREADS="3"), one)

    def same_files(self, trace):
        kept = []
        for n in (1, 2, 3, 8):
            path = os.path.join(self.tmp, "kept.opscope")
            self.assertEqual(self.run_opscope("import", trace, "-o", path, f"--threads={n}"), (0, b"", b""))
            with open(path, "rb") as f:
                kept.append(f.read())
            os.remove(path)
        for other in kept[1:]:
            self.assertEqual(len(kept[0]), len(other))
            self.assertLess(sum(a != b for a, b in zip(kept[0], other)) if kept[0] != other else 0, 12)  # SQLite's change counters

    def test_same_file(self):
        self.same_files(self.trace)

    def test_same_file_of_steps(self):
        """Reports ask the part of the steps, detectors find something."""
        self.same_files(STEPS)

    def test_same_findings(self):
        for trace in (self.trace, STEPS):
            for form in ("text", "json"):
                one, *others = (self.run_opscope("advise", trace, f"--format={form}", f"--threads={n}") for n in (1, 2, 3, 8))
                self.assertEqual((one[0], one[2]), (0, b""))
                for other in others:
                    self.assertEqual(other, one)

    def test_aggregation_of_steps(self):
        """Reports and findings of the same part, which one thread makes before several ask."""
        kept = []
        for n in (1, 3):
            path = os.path.join(self.tmp, "steps.opscope")
            self.assertEqual(self.run_opscope("import", STEPS, "-o", path, f"--threads={n}")[0], 0)
            done = self.run_opscope("aggregate", path, "--steps=4..4", f"--threads={n}")
            self.assertEqual(done[0], 0, done[2])
            with contextlib.closing(sqlite3.connect(path)) as db:
                kept.append([line for line in db.iterdump() if "INSERT" in line])
            os.remove(path)
        self.assertEqual(kept[0], kept[1])

    def test_cut_off(self):
        """The message counts the events before, whoever read them."""
        path = os.path.join(self.tmp, "cut.json")
        with open(self.trace, "rb") as f, open(path, "wb") as to:
            to.write(f.read()[:-700])
        said = {self.run_opscope("info", path, f"--threads={n}") for n in (1, 2, 3)}
        (status, _, err), = said
        self.assertEqual(status, 0)
        self.assertIn(b"events before were used", err)

    def test_wrong_values(self):
        for value in ("0", "-1", "two", ""):
            self.assertEqual(self.run_opscope("info", self.trace, f"--threads={value}"), (2, b"", f"opscope: --threads={value}: a whole number from 1 on was expected\n".encode()))
        status, _, err = self.run_opscope("report", "operators", self.trace, OPSCOPE_THREADS="two")
        self.assertEqual((status, err), (0, b"opscope: OPSCOPE_THREADS=two: a number from 1 on was expected; as many threads read as there are processors\n"))
        # The option goes before the environment.
        self.assertEqual(self.run_opscope("report", "operators", self.trace, "--threads=1", OPSCOPE_THREADS="two")[2], b"")


if __name__ == "__main__":
    oracle.main()
