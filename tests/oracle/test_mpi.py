"""opscope-mpi: any number of processes answers byte for byte what opscope does, and one that fails ends all."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import jobs
import oracle
from oracle import Case, data

PROGRAM = os.environ.get("OPSCOPE_MPI", os.path.join(os.path.dirname(oracle.OPSCOPE), "opscope-mpi"))
# On this machine, also as root, and more processes than it has cores.
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl": "self,vader,tcp", "OMPI_MCA_btl_tcp_if_include": "lo",
               "OMPI_MCA_oob_tcp_if_include": "lo"}

# Starts the program and kills it once it reads the file.
KILLER = """
import os, signal, subprocess, sys, time
p = subprocess.Popen(sys.argv[2:])
while p.poll() is None:
    try:
        opened = [os.readlink(f"/proc/{p.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{p.pid}/fd")]
    except OSError:
        opened = []
    if sys.argv[1] in opened:
        p.send_signal(signal.SIGKILL)
        p.wait()
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.001)
"""


def mpirun(*words, timeout=oracle.TIMEOUT):
    """(exit status, stdout, stderr) of what mpirun starts."""
    p = subprocess.run(["mpirun", "-q", "--oversubscribe", *map(str, words)], capture_output=True, timeout=timeout, env=ENVIRONMENT, stdin=subprocess.DEVNULL)
    return p.returncode, p.stdout, p.stderr


@unittest.skipUnless(shutil.which("mpirun"), "mpirun is not installed")
@unittest.skipUnless(os.path.exists(PROGRAM), "opscope-mpi is not built")
class Mpi(Case):
    def setUp(self):
        super().setUp()
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)
        self.folder = os.path.join(self.tmp, "ranks")
        os.mkdir(self.folder)

    def make(self, **how):
        jobs.Job(tp=4, dp=2, late=lambda rank, step, part: 900_000 * (rank == 2 and part == 0)).write(self.folder, {1: (40_000_000, 0.0), 3: (-7_000_000, 0.0)}, **how)

    def assert_same(self, *args, processes=(1, 2, 4, 7)):
        want = oracle.run(*args)
        for n in processes:
            self.assertEqual(mpirun("-n", n, PROGRAM, *args), want, (n, args))

    def test_reports_and_advice(self):
        self.make()
        self.assert_same("report", "ranks", self.folder)
        for args in (["report", "collectives", self.folder, "--group-by=instance", "--format=csv"], ["report", "overlap", self.folder, "--format=json"],
                     ["report", "stragglers", self.folder], ["advise", self.folder], [self.folder], ["report", "ranks", self.folder, "--align=none", "--steps=2"]):
            self.assert_same(*args, processes=(4,))

    def test_real_ranks(self):
        folder = data("multirank", "megatron_a100_tp8")
        for args in (["report", "ranks", folder], ["report", "stragglers", folder, "--format=csv"], ["advise", folder]):
            self.assert_same(*args, processes=(2, 7))

    def test_missing_and_damaged_ranks_are_named_as_ever(self):
        self.make(ranks=[0, 1, 2, 4, 5, 6], name="rank{}.json.gz")
        for rank in (3, 7):
            with open(os.path.join(self.folder, f"rank{rank}.json"), "w") as f:
                f.write('{"distributedInfo": {"rank": %d, "world_size": 8}, "traceEvents": 7' % rank)
        self.assert_same("report", "ranks", self.folder, processes=(2, 4))

    def test_what_one_process_reads(self):
        """Reports about one recording at a time, one recording, and a kept job: the first process does them."""
        self.make()
        file = os.path.join(self.tmp, "job.opscope")
        self.assertEqual(oracle.run("import", self.folder, "-o", file)[0], 0)
        rank = os.path.join(self.folder, sorted(os.listdir(self.folder))[0])
        for args in (["report", "kernels", self.folder], ["report", "kernels", rank], ["report", "ranks", file], ["--help"], ["report"]):
            if args == ["--help"]:
                self.assertEqual(mpirun("-n", 3, PROGRAM, *args)[0], 0)
            else:
                self.assert_same(*args, processes=(3,))

    def test_import(self):
        self.make()
        kept = []
        for n, start in enumerate((lambda file: oracle.run("import", self.folder, "-o", file), lambda file: mpirun("-n", 4, PROGRAM, "import", self.folder, "-o", file))):
            file = os.path.join(self.tmp, f"{n}.opscope")
            self.assertEqual(start(file), (0, b"", b""))
            with open(file, "rb") as f:
                kept.append(f.read())
        self.assertEqual(*kept)
        self.assertEqual(sorted(os.listdir(self.tmp)), ["0.opscope", "1.opscope", "ranks"])

    def test_wrong_usage_is_said_once(self):
        for args in (["report", "rank", self.folder], ["report", "ranks"], ["report", "ranks", self.folder, "--align=x"], ["report", "ranks", os.path.join(self.tmp, "none")]):
            code, out, err = mpirun("-n", 3, PROGRAM, *args)
            self.assertNotEqual(code, 0)
            self.assertEqual((out, [line for line in err.splitlines() if line.startswith(b"opscope")]), (b"", oracle.run(*args)[2].splitlines()), args)

    def assert_ends(self, *words, says=b""):
        begin = time.monotonic()
        code, out, err = mpirun(*words, timeout=60)
        self.assertNotEqual(code, 0)
        self.assertEqual(out, b"")
        self.assertIn(says, err)
        self.assertLess(time.monotonic() - begin, 60)
        return err

    def test_a_process_that_cannot_take_the_options(self):
        self.make()
        ask = [PROGRAM, "report", "ranks", self.folder]
        rules = os.path.join(self.tmp, "rules")
        err = self.assert_ends("-n", 1, *ask, ":", "-n", 1, *ask, "--kernel-rules=" + rules)
        self.assertEqual(len([line for line in err.splitlines() if line.startswith(b"opscope: ") and rules.encode() in line]), 1, err)

    def test_a_process_that_is_killed(self):
        """While it reads: a file that takes a while."""
        self.make()
        for rank in (0, 1):
            with open(os.path.join(self.folder, f"rank{rank}.json"), "w") as f:
                f.write(json.dumps({**jobs.Job(tp=2, dp=1, steps=3).trace(rank), "more": [list(range(200))] * (30000 * rank)}))
        for name in os.listdir(self.folder):
            if not name.startswith("rank"):
                os.remove(os.path.join(self.folder, name))
        ask = [PROGRAM, "report", "ranks", self.folder, "-o", os.path.join(self.tmp, "out.txt")]
        self.assert_ends("-n", 1, *ask, ":", "-n", 1, sys.executable, "-c", KILLER, os.path.join(self.folder, "rank1.json"), *ask)
        self.assertEqual(os.listdir(self.tmp), ["ranks"])


if __name__ == "__main__":
    oracle.main()
