"""--memory=SIZE: a trace that needs more is answered as ever, within the limit; so it is in a control group that has no more. A disk that is full is said in a line,
and followed by the next."""
import contextlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

import oracle

LAUNCHES = 200_000
LIMIT_MB = 32
GROUP_MB = 48  # a disk may be read 8 MB at a time, which a group of less reads again and again
SMALL = "opscope: --memory={} cannot be kept: opscope itself needs 10 to 20 MB; the least is 32M"
GROUPS = "/sys/fs/cgroup"
# In a process of its own, since a child begins with what its parent has in memory.
PEAK = "import resource, subprocess, sys; p = subprocess.run(sys.argv[1:]); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, file=sys.stderr); sys.exit(p.returncode)"


def write_trace(path):
    """Calls as they come, then all kernels, the last first: nothing is sorted."""
    with open(path, "w", encoding="ascii") as f:
        f.write('{"traceEvents":[\n')
        for i in range(LAUNCHES):
            t = 20 * i
            f.write(f'{{"ph":"X","cat":"cpu_op","name":"aten::op{i % 97}","pid":1,"tid":{1 + i % 3},"ts":{t},"dur":15,"args":{{"External id":{i + 1}}}}},\n'
                    f'{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":{1 + i % 3},"ts":{t + 2},"dur":9,"args":{{"correlation":{i + 1}}}}},\n')
        for i in reversed(range(LAUNCHES)):
            f.write(f'{{"ph":"X","cat":"kernel","name":"kernel{i % 31}","pid":0,"tid":7,"ts":{20 * i + 5},"dur":{1 + i % 13},"args":{{"device":0,"stream":7,"correlation":{i + 1}}}}},\n')
        f.write('{"ph":"M","name":"process_name","pid":1,"args":{"name":"python"}}]}\n')


@contextlib.contextmanager
def group_of(megabytes):
    """A control group with so much memory: the file that takes its processes, and None; or None, and why this process can make none."""
    v1 = os.path.join(GROUPS, "memory")
    top, limit = (v1, "memory.limit_in_bytes") if os.path.isdir(v1) else (GROUPS, "memory.max")
    path = os.path.join(top, f"opscope_test_{os.getpid()}")
    try:
        os.mkdir(path)
    except OSError as e:
        yield None, f"no control group can be made: {e}"
        return
    try:
        try:
            with open(os.path.join(path, limit), "w", encoding="ascii") as f:
                f.write(str(megabytes << 20))
        except OSError as e:
            yield None, f"a control group gets no limit of memory: {e}"
        else:
            yield os.path.join(path, "cgroup.procs"), None
    finally:
        os.rmdir(path)


@contextlib.contextmanager
def small_disk(folder, free_mb):
    """A folder on a disk of its own with so much room, or None where none can be mounted."""
    image, mount = os.path.join(folder, "image"), os.path.join(folder, "disk")
    os.mkdir(mount)
    with open(image, "wb") as f:
        f.truncate(64 << 20)
    for command in (["mkfs.ext4", "-q", "-O", "^has_journal", "-m", "0", image], ["mount", "-o", "loop", image, mount]):
        if not shutil.which(command[0]) or subprocess.run(command, capture_output=True, check=False).returncode:
            yield None
            return
    try:
        free = os.statvfs(mount)
        with open(os.path.join(mount, "filler"), "wb") as f:
            os.posix_fallocate(f.fileno(), 0, free.f_bavail * free.f_frsize - (free_mb << 20))
        yield mount
    finally:
        subprocess.run(["umount", "-l", mount], check=True)


class Spill(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        cls.trace = os.path.join(cls.dir.name, "trace.json")
        write_trace(cls.trace)
        cls.plain, cls.plain_mb = cls.measured("report", "operators", cls.trace, "--format=csv")

    @classmethod
    def measured(cls, *args, says=()):
        """(output, peak in MB) of a command that says these lines."""
        env = {k: v for k, v in os.environ.items() if k != "MALLOC_PERTURB_"}  # by which each block is touched when it is freed
        p = subprocess.run([sys.executable, "-S", "-c", PEAK, oracle.OPSCOPE, *args], capture_output=True, timeout=oracle.TIMEOUT, check=True, env=env)
        lines = p.stderr.decode().splitlines()
        assert lines[:-1] == list(says), lines
        return p.stdout, int(lines[-1])

    def test_a_report(self):
        self.assertIn(b"aten::op96", self.plain)
        out, mb = self.measured("report", "operators", self.trace, "--format=csv", f"--memory={LIMIT_MB}M")
        self.assertEqual(out, self.plain)
        if not oracle.SANITIZED:
            self.assertGreater(self.plain_mb, LIMIT_MB * 5 / 4)
            self.assertLess(mb, (LIMIT_MB + self.plain_mb) / 2)  # a thread of a busy machine comes late

    def test_what_is_kept(self):
        path = os.path.join(self.dir.name, "limited.opscope")
        self.measured("import", self.trace, "-o", path, f"--memory={LIMIT_MB}M")
        plain, plain_mb = self.measured("report", "operators", path, "--format=csv")
        out, mb = self.measured("report", "operators", path, "--format=csv", "--memory=18M", says=[SMALL.format("18M")])
        self.assertEqual((out, plain), (self.plain, self.plain))
        if not oracle.SANITIZED:
            self.assertLess(mb, plain_mb * 3 / 4)

    @unittest.skipUnless(oracle.ALL, "what waits for a disk takes as long as the disk is busy: tools/nightly whole")
    @unittest.skipIf(oracle.SANITIZED, "the sanitizer itself needs more")
    def test_a_group_without_memory(self):
        self.assertGreater(self.plain_mb, GROUP_MB)
        with group_of(GROUP_MB) as (processes, why):
            if not processes:
                self.skipTest(why)
            p = subprocess.run(["sh", "-c", 'echo $$ >"$0" && exec "$@"', processes, oracle.OPSCOPE, "report", "operators", self.trace, "--format=csv"], capture_output=True, timeout=1200,
                               check=False)
        self.assertEqual((p.returncode, p.stderr), (0, b""))
        self.assertEqual(p.stdout, self.plain)

    @unittest.skipIf(oracle.SANITIZED, "the sanitizer itself needs more")
    def test_a_full_disk(self):
        p = subprocess.run([oracle.OPSCOPE, "report", "operators", self.trace, f"--memory={LIMIT_MB}M"], capture_output=True, timeout=oracle.TIMEOUT, check=False,
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
        self.assertEqual((p.returncode, p.stdout), (1, b""))
        self.assertRegex(p.stderr.decode(), r"\Aopscope: out of memory: the disk of /\S+ is full; --memory keeps the rest of the trace there \(\d+ bytes more were needed\)\. Set TMPDIR to a larger disk\n\Z")

    def test_a_disk_that_becomes_full_is_followed_by_the_next(self):
        room = LIMIT_MB + 1
        with tempfile.TemporaryDirectory() as folder, small_disk(folder, room) as disk:
            if not disk:
                self.skipTest("no disk can be mounted here")
            p = subprocess.run([oracle.OPSCOPE, "report", "operators", self.trace, "--format=csv", f"--memory={LIMIT_MB}M"], capture_output=True, timeout=oracle.TIMEOUT, check=False,
                               env={**os.environ, "TMPDIR": disk})
            self.assertEqual(sorted(os.listdir(disk)), ["filler", "lost+found"])
        self.assertEqual((p.returncode, p.stdout), (0, self.plain))
        self.assertRegex(p.stderr.decode(), rf"\Aopscope: the disk of {disk} is full: the rest of what --memory keeps there goes to (/var)?/tmp\n\Z")

    def test_sizes(self):
        for size in ("", "0", "-1", "1P", "1.5G", "much", "99999999999999999999"):
            for args in (("report", "operators", self.trace), ("advise", self.trace), ("import", self.trace), ("diff", self.trace, self.trace), ("serve", self.trace)):
                status, out, err = oracle.run(*args, "--memory=" + size)
                self.assertEqual((status, out, err.decode()), (2, b"", f"opscope: --memory={size}: 8 or 8G (GiB) or 500M (MiB) was expected\n"))

    def test_an_option_of_all_that_reads(self):
        for command in "report advise info import export diff look sql gate aggregate serve".split():
            with self.subTest(command):
                self.assertIn(b"--memory=SIZE", oracle.run(command, "--help")[1])


if __name__ == "__main__":
    oracle.main()
