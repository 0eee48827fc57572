"""`opscope record --sample=cpu` and the report `samples`: what a program spends its CPU time on, with time counted by the program's own CPU clock, so that
a busy machine changes nothing. Where the system does not allow sampling, one line must say so."""
import ctypes
import json
import os
import shutil
import signal
import struct
import subprocess
import unittest

import oracle
from recording import RecordCase, python, wait_until

SPIN = os.path.join(os.environ.get("OPSCOPE_BUILD", os.path.join(oracle.ROOT, "build")), "tests", "guest_spin")


def forbid(number):
    """From now on this system call fails with EPERM, by seccomp."""
    load, equal, ret, errno, allow = 0x20, 0x15, 0x06, 0x50001, 0x7FFF0000
    rules = b"".join(struct.pack("=HBBI", *r) for r in ((load, 0, 0, 0), (equal, 0, 1, number), (ret, 0, 0, errno), (ret, 0, 0, allow)))
    code = ctypes.create_string_buffer(rules)
    program = ctypes.create_string_buffer(struct.pack("@HP", 4, ctypes.addressof(code)))
    libc = ctypes.CDLL(None)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):  # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP
        raise OSError("no seccomp")


class Sample(RecordCase):
    def setUp(self):
        super().setUp()
        self.spin = oracle.built(SPIN, "OPSCOPE_BUILD")
        self.env["OPSCOPE_INJECT"] = self.write("lib/libopscope-inject.so", "")

    def sampled(self, *args, status=0, options=()):
        """What was printed; the test ends here where sampling is not allowed."""
        _, err = self.record("-o", "out", "--force", "--sample=cpu", *options, "--", *args, status=status)
        self.need_samples(err)
        return err

    def need_samples(self, err):
        refused = [line for line in err.splitlines() if "--sample=cpu: no stacks were recorded: " in line]
        if refused:
            self.assertEqual(len(refused), 1)
            raise unittest.SkipTest(refused[0])

    def functions(self, *args):
        return oracle.report("samples", self.path("out"), "--limit=0", *args)

    def test_functions(self):
        err = self.sampled(self.spin, "600")
        self.assertIn("What the CPU did, by samples", err)
        self.assertIn("recorded in", err)
        t = self.functions()
        f = t.by("function")
        self.assertGreater(f["spin_inner (guest_spin)"]["self_pct"], 60)
        self.assertGreater(f["spin_outer (guest_spin)"]["total_pct"], 60)
        self.assertLess(f["spin_outer (guest_spin)"]["self_pct"], 40)
        # the samples stand for the CPU time of the program, which ends when it has used 600 ms
        total = sum(r["self_cpu_ns"] for r in t.rows)
        self.assertGreater(total, 200_000_000)
        self.assertEqual(sum(r["self_samples"] for r in t.rows), sum(r["samples"] for r in self.functions("--group-by=thread").rows))
        for r in t.rows:
            self.assertLessEqual(r["self_samples"], r["total_samples"])
        stacks = self.functions("--group-by=stack")
        self.assertEqual(sum(r["samples"] for r in stacks.rows), sum(r["self_samples"] for r in t.rows))
        self.assertTrue(stacks.rows[0]["stack"].startswith("spin_inner (guest_spin);spin_outer (guest_spin);main (guest_spin)"), stacks.rows[0])

    def test_processes(self):
        """Children, and what a process becomes by exec, each by its own files' names."""
        other = shutil.copy(self.spin, os.path.join(self.dir, "other-program"))
        third = shutil.copy(self.spin, os.path.join(self.dir, "third-program"))
        self.sampled(self.spin, "200", other, "200", "--", third, "200")
        f = self.functions().by("function")
        for name in ("guest_spin", "other-program", "third-program"):
            self.assertGreater(f[f"spin_inner ({name})"]["self_cpu_ns"], 30_000_000, name)
        threads = self.functions("--group-by=thread").rows
        self.assertEqual(len({r["pid"] for r in threads}), 2)
        self.assertIn("third-program", {r["thread_name"] for r in threads})

    def test_rate(self):
        self.sampled(self.spin, "500", options=["--sample=cpu:100"])
        samples = sum(r["self_samples"] for r in self.functions().rows)
        self.assertGreater(samples, 15)
        self.assertLess(samples, 120)

    def test_signals_and_status(self):
        self.sampled("sh", "-c", f"'{self.spin}' 50; exit 7", status=7)
        self.record("-o", "x", "--sample=cpu", "--", "sh", "-c", "kill -TERM $$", status=-15)
        self.record("-o", "y", "--sample=cpu", "--", "no-such-program", status=127)

    def test_slurm(self):
        """The only task of a step is no rank: what the samples and the library say of it is one run."""
        library = os.path.join(os.environ.get("OPSCOPE_BUILD", os.path.join(oracle.ROOT, "build")), "collect", "libopscope-inject.so")
        guest = os.path.join(os.path.dirname(SPIN), "collect", "guest")
        self.env.update(OPSCOPE_INJECT=oracle.built(library, "OPSCOPE_BUILD"), SLURM_PROCID="0", SLURM_NTASKS="1", SLURM_STEP_NUM_TASKS="1", SLURM_JOB_ID="7")
        self.sampled("sh", "-c", f"'{self.spin}' 100; exec '{oracle.built(guest, 'OPSCOPE_BUILD')}' threads 2 200000")
        self.assertEqual({r["range"] for r in oracle.report("nvtx", self.path("out")).rows}, {"even", "odd"})
        self.assertIn("spin_inner (guest_spin)", self.functions().by("function"))

    def test_damaged_programs(self):
        """Files that look like programs and are none must not disturb: names are missing, no more."""
        with open(self.spin, "rb") as f:
            good = f.read()
        # what is mapped may have become anything by the time that names are looked for
        code = ("import os, subprocess, sys\nsubprocess.check_call([sys.argv[1], '100'])\n"
                "data = bytearray(open(sys.argv[1], 'rb').read())\nos.unlink(sys.argv[1])\n"
                "n = int(sys.argv[2])\nopen(sys.argv[1], 'wb').write(data[:n] if n > 0 else data[:16] + bytes(b ^ 0x5a for b in data[16:]))")
        for n in (-1, 20, 64, 1000, len(good) - 1000):
            program = shutil.copy(self.spin, os.path.join(self.dir, "damaged"))
            os.chmod(program, 0o755)
            self.sampled(*python(code, program, str(n)))
            self.assertTrue(any(r["function"].endswith("(damaged)") for r in self.functions().rows))

    def test_names_of_made_code(self):
        """Code that a program makes while it runs, and names as Python with -X perf does."""
        out, err = self.record("-o", "out", "--sample=cpu", "--", "sh", "-c", '"$0" made 300 || test $? = 77', self.spin)
        if not out:
            self.skipTest("no memory is given here that can be written and run")
        self.need_samples(err)
        os.unlink(f"/tmp/perf-{int(out)}.map")
        self.assertGreater(self.functions().by("function")["work (/models/train.py)"]["self_pct"], 60)

    def test_not_allowed(self):
        """As in most containers: one line, and everything else as usual."""
        number = {"x86_64": 298, "aarch64": 241}.get(os.uname().machine)
        if not number:
            self.skipTest("the number of perf_event_open is not known here")
        try:
            _, err = self.record("-o", "out", "--sample=cpu", "--", "sh", "-c", "exit 4", status=4, preexec_fn=lambda: forbid(number))
        except subprocess.SubprocessError:
            self.skipTest("seccomp is not to be had")
        self.assertEqual(err.count("--sample=cpu"), 1)
        self.assertIn("no stacks were recorded: the system does not allow it (perf_event_open: Operation not permitted", err)

    def test_not_ended(self):
        """While the program runs, and when what took the samples was killed, the files of the code are known; names of functions are not yet."""
        with self.start("-o", "out", "--sample=cpu:2000", "--", self.spin, "600000", start_new_session=True) as p:
            try:
                def functions():
                    if p.poll() is not None:
                        raise AssertionError(p.communicate())
                    if not os.path.isdir(self.path("out")) or not any(n.endswith(".seg") for n in self.files("out")):
                        return None
                    code, out, _ = oracle.run("report", "samples", self.path("out"), "--format=json")
                    return {r["function"] for r in oracle.Table(json.loads(out)).rows} if code == 0 else None
                _, allowed = self.record("-o", "try", "--sample=cpu", "--no-report", "--", "true")
                if "no stacks were recorded: the system" in allowed:
                    raise unittest.SkipTest(allowed)
                living = wait_until(functions, "samples of a program that runs")
                self.assertTrue(any(f.startswith("guest_spin+0x") for f in living), living)
                p.kill()
                p.wait()
                self.assertTrue(any(r["function"].startswith("guest_spin+0x") for r in self.functions().rows))
            finally:
                os.killpg(p.pid, signal.SIGKILL)

    def test_no_samples(self):
        code, _, err = oracle.run("report", "samples", oracle.synthetic("two_steps"))
        self.assertEqual(code, 1)
        self.assertIn(b"the input holds no samples of stacks", err)


if __name__ == "__main__":
    oracle.main()
