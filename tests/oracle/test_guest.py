"""The manners of the capture library as a guest: whatever the program does, it goes as without the library, and what it said until then is there."""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time

import oracle
from test_capture import GUESTS, LIBRARY, CaptureCase, planted_environment, problems, sql

GUEST = os.path.join(GUESTS, "guest")
PATIENCE = 240


class GuestCase(CaptureCase):
    def run_guest(self, *args, status=0, said=b"", folder=None, **env):
        folder = folder or os.path.join(self.dir, "run")
        os.makedirs(folder, exist_ok=True)
        p = subprocess.run([GUEST, *map(str, args)], env=planted_environment(folder, **env), capture_output=True, timeout=PATIENCE)
        self.assertEqual((p.returncode, p.stderr), (status, b""))
        if said is not None:
            self.assertEqual(p.stdout, said)
        self.said = p.stdout.decode()
        return folder

    def names(self, path):
        """{(name, cat): how many}"""
        return {(n, c): k for n, c, k in sql(path, "SELECT name, cat, count(*) FROM span GROUP BY name, cat")}

    def segments(self, folder):
        return sorted(f for f in os.listdir(folder) if f.endswith(".seg"))


class Ends(GuestCase):
    """Whatever way a program ends, what it said is there, and it ends that way."""

    def check(self, how, status, kinds):
        folder = self.run_guest("ends", how, 5000, status=status)
        self.assertEqual(self.names(folder), {("outer", "nvtx"): 1, ("work", "nvtx"): 5000})
        found = problems(folder)
        self.assertEqual({k: v[1] for k, v in found.items()}, kinds)
        if "range-without-end" in kinds:  # "outer" ends with the last thing that is known
            self.assertEqual(sql(folder, "SELECT (SELECT start_ns + dur_ns FROM span WHERE name = 'outer') >= max(start_ns + dur_ns) FROM span"), [(1,)])

    def test_exit(self):
        self.check("exit", 7, {"range-without-end": 1})

    def test_quick_exit(self):
        self.check("quick_exit", 7, {"range-without-end": 1, "no-exit": 1})

    def test_underscore_exit(self):
        self.check("_exit", 7, {"range-without-end": 1, "no-exit": 1})

    def test_leaving(self):
        """By _exit(), and says so before; what comes between is there as well."""
        folder = self.run_guest("ends", "leaving", 5000, status=7)
        self.assertEqual(self.names(folder), {("outer", "nvtx"): 1, ("work", "nvtx"): 5001})
        self.assertEqual(problems(folder), {})

    def test_abort(self):
        self.check("abort", -signal.SIGABRT, {"range-without-end": 1, "no-exit": 1})

    def test_kill(self):
        self.check("kill", -signal.SIGKILL, {"range-without-end": 1, "no-exit": 1})

    def test_segmentation_fault(self):
        self.check("segv", -signal.SIGSEGV, {"range-without-end": 1, "no-exit": 1})

    def test_last_thread(self):
        self.check("thread", 0, {"range-without-end": 1})

    def test_exec(self):
        folder = self.run_guest("ends", "exec", 5000, status=7)
        self.assertEqual(len(self.segments(folder)), 2)
        self.assertEqual(self.names(folder), {("outer", "nvtx"): 2, ("work", "nvtx"): 5003})


class Threads(GuestCase):
    def test_a_thousand(self):
        folder = self.run_guest("threads", 1000, 20)
        self.assertEqual(self.names(folder), {("even", "nvtx"): 10000, ("odd", "nvtx"): 10000})
        per_thread = sql(folder, "SELECT t.tid, count(*), min(s.name) = max(s.name) FROM span s JOIN track t ON t.rowid = s.track GROUP BY t.tid")
        self.assertEqual((len(per_thread), {r[1:] for r in per_thread}), (1000, {(20, 1)}))
        self.assertLess(os.stat(os.path.join(folder, self.segments(folder)[0])).st_blocks * 512, 16 << 20)  # little was said by each
        self.assertEqual(problems(folder), {})

    def test_one_after_the_other(self):
        folder = self.run_guest("many_threads", 3000, 3)
        self.assertEqual(self.names(folder), {("one of many", "nvtx"): 9000})
        self.assertEqual(problems(folder), {})

    def test_many_events(self):
        folder = self.run_guest("threads", 4, 100000)
        self.assertEqual(self.names(folder), {("even", "nvtx"): 200000, ("odd", "nvtx"): 200000})
        self.assertEqual(problems(folder), {})


class Children(GuestCase):
    def check(self, how):
        folder = self.run_guest("forks", how, 300)
        self.assertEqual(len(self.segments(folder)), 3)
        self.assertEqual(self.names(folder), {("outer of the parent", "nvtx"): 1, ("parent", "nvtx"): 600, ("child", "nvtx"): 600, ("outer of the child", "nvtx"): 2,
                                              ("registered by the parent", "of the parent"): 900})
        by_process = sql(folder, "SELECT t.pid, sum(s.name = 'child'), sum(s.name = 'parent'), sum(cat = 'of the parent') FROM span s JOIN track t ON t.rowid = s.track GROUP BY t.pid")
        self.assertEqual(sorted(r[1:] for r in by_process), [(0, 600, 300), (300, 0, 300), (300, 0, 300)])
        self.assertEqual({k: v[1] for k, v in problems(folder).items()}, {"child-no-exit": 1, "range-without-end": 1})

    def test_fork(self):
        self.check("fork")

    def test_clone(self):
        """What no handler of fork() sees."""
        self.check("clone")

    def test_first_calls(self):
        """The first that a child says may be a counter, an argument or a name, in a text that its parent knew or in a new one."""
        folder = self.run_guest("first_calls_of_children")
        self.assertEqual(len(self.segments(folder)), 7)
        self.assertEqual(sql(folder, "SELECT m.name, arg(m.args, 'value'), arg(m.args, 'unit') FROM mark m ORDER BY 2"),
                         [("known", "1", "pieces"), ("known", "10", "pieces"), ("fresh", "11", "pieces")])
        self.assertEqual(sql(folder, "SELECT name, arg(args, 'known'), arg(args, 'fresh') FROM span ORDER BY start_ns"),
                         [("of the parent", "1", None)] + [("of a child", *((None, str(i)) if i % 2 else (str(i), None))) for i in range(6)])
        self.assertEqual({v for v, in sql(folder, "SELECT value FROM meta WHERE key LIKE 'resource:%'")}, {"known", "fresh"})
        self.assertEqual(set(problems(folder)), {"child-no-exit"})

    def test_workers(self):
        """Of one that says that it leaves nothing is told; what became of the others, one of which was killed, is unknown."""
        folder = self.run_guest("workers", 300)
        self.assertEqual(self.names(folder), {("parent", "nvtx"): 1, ("child", "nvtx"): 900})
        found = problems(folder)
        self.assertEqual({k: v[:2] for k, v in found.items()}, {"child-no-exit": ("note", 2)})
        self.assertRegex(found["child-no-exit"][2], r"^how process \d+ ended is unknown, because it was forked \(by process \d+\) ")

    def test_silent_child(self):
        self.assertEqual(len(self.segments(self.run_guest("silent_child"))), 1)

    def test_fork_while_busy(self):
        folder = self.run_guest("busy_forks", 12)
        found = self.names(folder)
        self.assertEqual(found[("child", "nvtx")], 120)
        self.assertEqual(len(self.segments(folder)), 13)
        self.assertEqual(set(problems(folder)) - {"child-no-exit"}, set())


class Library(GuestCase):
    def test_dlclose(self):
        folder = self.run_guest("unloads", 50)
        self.assertEqual(self.names(folder), {("before", "nvtx"): 50, ("after", "nvtx"): 50})

    def test_cancelled_threads(self):
        """A thread that is cancelled while it is in the library ends outside of it: nobody waits for a lock of its."""
        folder = self.run_guest("cancels", 40000)
        self.assertEqual(sql(folder, "SELECT count(*), count(DISTINCT name), sum(name = 'after') FROM span"), [(80001, 40002, 40000)])
        self.assertEqual(set(problems(folder)), {"child-no-exit"})

    def test_closed_descriptors(self):
        """No descriptor of the library is left for a program to close, or to get for a file of its own."""
        mine = os.path.join(self.dir, "mine")
        folder = self.run_guest("closes", mine, 200000)
        self.assertEqual(self.names(folder), {("before", "nvtx"): 10, ("after", "nvtx"): 200000})
        with open(mine, "rb") as f:
            self.assertEqual(f.read(), b"mine")

    def test_no_allocations(self):
        """None in a call, not even the first of a thread or of a child."""
        folder = self.run_guest("allocates", said=b"0\n")
        self.assertEqual(self.names(folder)[("a text", "a domain")], 9)

    def test_little_stack(self):
        """A thread whose stack is smaller than many texts are long may be the one that begins the capture of its process."""
        folder = os.path.join(self.dir, "run")
        os.mkdir(folder)
        p = subprocess.run([GUEST, "little_stack"], env=planted_environment(folder), capture_output=True, timeout=PATIENCE)
        if p.returncode == 77:
            self.skipTest("threads must have more than 24 KB of stack here")
        self.assertEqual((p.returncode, p.stderr), (0, b""))
        self.assertEqual(self.names(folder), {("said with little stack", "nvtx"): 1})

    def test_signal_handlers(self):
        """A handler that says something while the library is being called: counted, not recorded; all else is."""
        folder = self.run_guest("signals", 200, said=None)
        done, handled = map(int, self.said.split())
        found, lost = self.names(folder), problems(folder).get("lost-nested", (0, 0))[1]
        self.assertEqual(found[("interrupted", "nvtx")], done)
        self.assertEqual(found.get(("handler", "nvtx"), 0) * 2 + lost, handled * 2)

    def test_needs_little(self):
        """What it needs is there on systems of 2012, and in processes with neither CUDA nor NVTX."""
        out = subprocess.run(["objdump", "-T", LIBRARY], capture_output=True, text=True, check=True).stdout
        versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([\d.]+)", out)}
        self.assertLessEqual(max(versions), (2, 17))
        defined = sorted(line.split()[-1] for line in out.splitlines() if " .text" in line and " g " in line)
        self.assertEqual(defined, ["InitializeInjection", "InitializeInjectionNvtx", "InitializeInjectionNvtx2", "__itt_api_init", "opscope_capture_start",
                                   "opscope_capture_stop", "opscope_trace_get"])
        needed = re.findall(r"NEEDED +(\S+)", subprocess.run(["objdump", "-p", LIBRARY], capture_output=True, text=True, check=True).stdout)
        self.assertLessEqual(set(needed), {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"})
        tls = re.search(r"\.tbss +([0-9a-f]+)", subprocess.run(["objdump", "-h", LIBRARY], capture_output=True, text=True, check=True).stdout)
        self.assertLessEqual(int(tls.group(1), 16), 64)
        self.assertEqual(subprocess.run(["env", f"LD_PRELOAD={LIBRARY}", "true"], capture_output=True).stderr, b"")


    def test_unknown_texts(self):
        """What is no handle of a text is not looked at: the range has no name, and that is told."""
        folder = self.run_guest("unknown_texts")
        self.assertEqual(self.names(folder), {("known", "nvtx"): 2, ("", "nvtx"): 4})
        self.assertEqual({k: v[1] for k, v in problems(folder).items()}, {"unknown-text": 1})

    def test_valgrind(self):
        """Nothing that valgrind minds, and no mapping so large that its search for leaks does not end."""
        if not shutil.which("valgrind"):
            self.skipTest("no valgrind")
        for args in (["guest_nvtx"], ["guest", "forks", "fork", "10"]):
            folder = os.path.join(self.dir, args[0])
            os.mkdir(folder)
            p = subprocess.run(["valgrind", "-q", "--error-exitcode=9", os.path.join(GUESTS, args[0]), *args[1:]], env=planted_environment(folder), capture_output=True,
                               timeout=PATIENCE)
            self.assertEqual((p.returncode, p.stderr), (0, b""))
            self.assertTrue(self.names(folder))


class NoPlace(GuestCase):
    """Nowhere to write: the program goes on alone."""

    def test_no_folder(self):
        for folder in ("/proc/self/fd", "/dev/null", "/no/such/folder", "x" * 5000):
            p = subprocess.run([GUEST, "threads", "2", "1000"], env=planted_environment(folder, GUEST_ALONE="1"), capture_output=True, timeout=PATIENCE)
            self.assertEqual((p.returncode, p.stdout, p.stderr), (0, b"", b""))

    def test_read_only(self):
        """A file system that is mounted to be read: the program goes on alone, and nothing is left there."""
        folder = os.path.join(self.dir, "read-only")
        os.mkdir(folder)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", folder], capture_output=True).returncode:
            self.skipTest("file systems cannot be mounted here")
        try:
            p = subprocess.run([GUEST, "threads", "2", "1000"], env=planted_environment(folder, GUEST_ALONE="1"), capture_output=True, timeout=PATIENCE)
            self.assertEqual((p.returncode, p.stdout, p.stderr), (0, b"", b""))
            self.assertEqual(os.listdir(folder), [])
        finally:
            subprocess.run(["umount", "-l", folder], check=True)

    def test_not_asked(self):
        env = {k: v for k, v in planted_environment("").items() if k != "OPSCOPE_DIR"}
        self.assertEqual(subprocess.run([GUEST, "threads", "1", "1"], env=env, capture_output=True, timeout=PATIENCE).returncode, 99)

    def test_full_disk(self):
        """A file system of 3 MB: what fits is there, the program ends well, the rest is counted."""
        folder = os.path.join(self.dir, "full")
        os.mkdir(folder)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", folder], capture_output=True).returncode:
            self.skipTest("file systems cannot be mounted here")
        try:
            self.run_guest("threads", 2, 200000, folder=folder)
            found, trouble = self.names(folder), problems(folder)
            kept = sum(found.values())
            self.assertGreater(kept, 50000)
            self.assertEqual(kept + trouble["lost-disk"][1], 400000)
            self.assertIn("disk-full", trouble)
        finally:
            subprocess.run(["umount", "-l", folder], check=True)

    def test_full_after_the_end(self):
        """What was given back at the end of the program is not written to when somebody else has taken it."""
        folder = os.path.join(self.dir, "full")
        os.mkdir(folder)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", folder], capture_output=True).returncode:
            self.skipTest("file systems cannot be mounted here")
        try:
            self.run_guest("full_after_the_end", os.path.join(folder, "filler"), folder=folder)
            found, trouble = self.names(folder), problems(folder)
            self.assertEqual(found[("early", "nvtx")], 1000)
            self.assertEqual(found.get(("late", "nvtx"), 0) + trouble["lost-disk"][1], 200000)
        finally:
            subprocess.run(["umount", "-l", folder], check=True)

    def test_file_size_limit(self):
        """A limit of the program's own (ulimit -f): never the signal that going beyond it is."""
        folder = self.run_guest("file_limit", 3 << 20, 200000)
        found, trouble = self.names(folder), problems(folder)
        self.assertEqual(found[("limited", "nvtx")] + trouble["lost-disk"][1], 200000)
        self.assertGreater(found[("limited", "nvtx")], 50000)
        self.assertEqual(set(trouble), {"lost-disk", "file-limit"})

    def test_no_descriptors(self):
        """A program that has all its descriptors in use: what finds no room meanwhile is counted, and what comes later is there again."""
        folder = self.run_guest("no_descriptors", 500000)
        found, trouble = self.names(folder), problems(folder)
        self.assertEqual((found[("before", "nvtx")], found[("after", "nvtx")]), (10, 500000))
        self.assertEqual(found[("without", "nvtx")] + trouble["lost-disk"][1], 500000)
        self.assertGreater(trouble["lost-disk"][1], 1000)
        self.assertIn("no-descriptor", trouble)
        self.assertNotIn("disk-full", trouble)

    def test_poor_children(self):
        """A child that cannot begin a file of its own: its parent's says so. What it named meanwhile it has when it can."""
        folder = self.run_guest("poor_children", "later", 100)
        self.assertEqual(self.names(folder), {("parent", "nvtx"): 1, ("text named without", "named without"): 5, ("last", "nvtx"): 1})
        self.assertEqual({k: v[1] for k, v in problems(folder).items()}, {"lost-processes": 200, "child-no-exit": 1})
        folder = self.run_guest("poor_children", "never", 100, folder=os.path.join(self.dir, "never"))
        self.assertEqual((self.names(folder), os.listdir(folder)), ({("parent", "nvtx"): 1}, self.segments(folder)))
        self.assertEqual({k: v[1] for k, v in problems(folder).items()}, {"lost-processes": 200})

    def test_children_on_a_full_disk(self):
        folder = os.path.join(self.dir, "full")
        os.mkdir(folder)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1100k", "none", folder], capture_output=True).returncode:
            self.skipTest("file systems cannot be mounted here")
        try:
            self.run_guest("poor_children", "disk", 100, folder=folder)
            self.assertEqual((self.names(folder), os.listdir(folder)), ({("parent", "nvtx"): 1}, self.segments(folder)))
            self.assertEqual({k: v[1] for k, v in problems(folder).items()}, {"lost-processes": 200})
        finally:
            subprocess.run(["umount", "-l", folder], check=True)

    def test_poor_from_the_start(self):
        """The same of the first process: it begins when it can, and a file says so where it never can."""
        folder = self.run_guest("poor_from_the_start", "later", 100)
        self.assertEqual((self.names(folder), os.listdir(folder)), ({("with", "nvtx"): 100}, self.segments(folder)))
        self.assertEqual({k: v[1] for k, v in problems(folder).items()}, {"lost-processes": 200})
        folder = self.run_guest("poor_from_the_start", "never", 100, folder=os.path.join(self.dir, "never"))
        left, = os.listdir(folder)
        self.assertRegex(left, r"-\d+-\d+\.none$")
        self.assertEqual(os.path.getsize(os.path.join(folder, left)), 0)

    def check_let_go(self, how, kind):
        folder = os.path.join(self.dir, "run")
        os.mkdir(folder)
        p = subprocess.run([GUEST, "lets_go", how, "500000"], env=planted_environment(folder), capture_output=True, timeout=PATIENCE)
        if p.returncode == 77:
            self.skipTest("only root can give up its rights")
        self.assertEqual((p.returncode, p.stdout, p.stderr), (0, b"", b""))
        found, trouble = self.names(folder), problems(folder)
        self.assertEqual((found[("before", "nvtx")], found[("after", "nvtx")] + trouble["lost-disk"][1]), (10, 500000))
        self.assertEqual(set(trouble), {"lost-disk", kind})

    def test_setuid(self):
        self.check_let_go("rights", "not-allowed")

    def test_moved(self):
        self.check_let_go("moves", "file-gone")

    def test_locked_memory(self):
        """mlockall: what a capture may come to need is not kept in memory, and does not count against what the program may keep there."""
        folder = os.path.join(self.dir, "run")
        os.mkdir(folder)
        p = subprocess.run([GUEST, "locks_memory"], env=planted_environment(folder), capture_output=True, timeout=PATIENCE)
        if p.returncode == 77:
            self.skipTest("memory cannot be locked here")
        self.assertEqual((p.returncode, p.stderr), (0, b""))
        self.assertLess(int(p.stdout), 32 << 10)
        self.assertEqual(self.names(folder), {("locked", "nvtx"): 1000})

    def test_few_addresses(self):
        """ulimit -v: the file is mapped at a length that leaves the program what it may have."""
        folder = os.path.join(self.dir, "run")
        os.mkdir(folder)
        p = subprocess.run([GUEST, "threads", "4", "1000"], env=planted_environment(folder), capture_output=True, timeout=PATIENCE,
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (512 << 20, 512 << 20)))
        self.assertEqual((p.returncode, p.stderr), (0, b""))
        self.assertEqual(sum(self.names(folder).values()), 4000)

    def test_very_few_addresses(self):
        """Tables of texts are smaller then, and are there."""
        folder = os.path.join(self.dir, "run")
        os.mkdir(folder)
        p = subprocess.run([GUEST, "domains", "10"], env=planted_environment(folder), capture_output=True, timeout=PATIENCE,
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (90 << 20, 90 << 20)))
        self.assertEqual((p.returncode, p.stderr), (0, b""))
        self.assertEqual((self.names(folder), problems(folder)), ({("in it", f"domain {i}"): 1 for i in range(10)}, {}))

    def test_little_memory(self):
        """ulimit -d, which counts as vm.overcommit_memory=2 does: memory is asked for when it is needed."""
        folder = os.path.join(self.dir, "run")
        os.mkdir(folder)
        p = subprocess.run([GUEST, "threads", "100", "100"], env=planted_environment(folder), capture_output=True, timeout=PATIENCE,
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (48 << 20, 48 << 20)))
        self.assertEqual((p.returncode, p.stderr), (0, b""))
        self.assertEqual((sum(self.names(folder).values()), problems(folder)), (10000, {}))

    def test_no_memory(self):
        folder = self.run_guest("no_memory", 7)
        self.assertEqual(self.names(folder), {("before", "nvtx"): 1, ("in it", "domain 99"): 7})
        self.assertEqual({k: v[1] for k, v in problems(folder).items()}, {"lost-threads": 7})


class Bounds(GuestCase):
    def test_deep(self):
        folder = self.run_guest("deep", 5000)
        found, trouble = self.names(folder), problems(folder)
        self.assertEqual(found[("deep", "nvtx")] + trouble["lost-depth"][1], 5000)
        self.assertEqual(found[("deep", "nvtx")], 1789)
        self.assertEqual(set(trouble), {"lost-depth"})

    def test_deep_and_long(self):
        """The longest records in the deepest ranges leave the pops their room."""
        short, long = ("text number 7 of many", "nvtx"), ("x" * 32768, "nvtx")
        folder = self.run_guest("deep_and_long", 1780, 9)
        self.assertEqual((self.names(folder), problems(folder)), ({short: 1780, long: 9}, {}))
        folder = self.run_guest("deep_and_long", 2040, 8, folder=os.path.join(self.dir, "deeper"))
        self.assertEqual(self.names(folder), {short: 1789})
        self.assertEqual({k: v[1] for k, v in problems(folder).items()}, {"lost-depth": 2048 - 1789})

    def test_domains(self):
        folder = self.run_guest("domains", 5000)
        found, trouble = self.names(folder), problems(folder)
        self.assertEqual(sum(found.values()), 5000)
        self.assertEqual(found[("in it", "domain 4000")], 1)
        self.assertEqual(found[("in it", "(more domains)")], 5000 - 4094)
        self.assertIn("lost-domains", trouble)

    def test_texts(self):
        """More than there are places for: then they stand in their records."""
        folder = self.run_guest("texts", 270000)
        self.assertEqual(sql(folder, "SELECT count(*), count(DISTINCT name) FROM span"), [(270000, 270000)])
        self.assertEqual(problems(folder), {})

    def test_stop(self):
        size = 2 << 20
        folder = self.run_guest("threads", 2, 100000, OPSCOPE_MAX_SIZE=str(size))
        path = os.path.join(folder, self.segments(folder)[0])
        self.assertLessEqual(os.path.getsize(path), size)
        found, trouble = self.names(folder), problems(folder)
        self.assertEqual(sum(found.values()) + trouble["lost-size"][1], 200000)
        self.assertGreater(sum(found.values()), 30000)
        first, = sql(folder, "SELECT min(start_ns) FROM span")[0]
        self.assertLess(first, 60_000_000_000)
        self.assertIn("max-size", trouble)
        self.assertTrue(any("greatest size" in n for n in oracle.report("nvtx", folder).notes))

    def test_ring(self):
        """The newest stay, with their texts, which were first said long ago."""
        size = 2 << 20
        folder = self.run_guest("script", "+outer", *["+early", "-"] * 3, "-", OPSCOPE_MAX_SIZE=str(size), OPSCOPE_FULL="ring")
        self.assertEqual(sum(self.names(folder).values()), 4)
        folder = self.run_guest("threads", 2, 200000, folder=os.path.join(self.dir, "ring"), OPSCOPE_MAX_SIZE=str(size), OPSCOPE_FULL="ring")
        path = os.path.join(folder, self.segments(folder)[0])
        self.assertLessEqual(os.path.getsize(path), size)
        found, trouble = self.names(folder), problems(folder)
        kept = sum(found.values())
        self.assertGreater(kept, 20000)
        self.assertEqual(set(found), {("even", "nvtx"), ("odd", "nvtx")})
        # 16 bytes a push and a pop: what is not there was counted, but for halves of pairs at the edge of what was overwritten.
        waited = trouble.get("lost-busy", (0, 0))[1]
        self.assertAlmostEqual((kept + waited) * 32 + trouble["lost-ring"][1], 400000 * 32, delta=64 * 40)
        self.assertEqual(set(trouble) - {"lost-ring", "range-without-start", "lost-busy"}, set())

    def test_threads_after_a_ring_turned(self):
        """A thread that begins when all of the ring was used has its place in it, too."""
        folder = self.run_guest("late_threads", 30, 3, 200000, OPSCOPE_MAX_SIZE=str(4 << 20), OPSCOPE_FULL="ring")
        found = self.names(folder)
        self.assertGreater(found[("one of many", "nvtx")], 60)
        self.assertGreater(found[("early", "nvtx")], 1000)


class Windows(GuestCase):
    WORK = ("+before", "-", "+train", "+one", "-", "-", "+between", "-", "+train", "+two", "s range", "-", "-", "+after", "-")

    def window(self, *script, **env):
        folder = self.run_guest("script", *script, folder=os.path.join(self.dir, "w%d" % len(os.listdir(self.dir))), **env)
        self.path = folder
        return [n for n, in sql(folder, "SELECT name FROM span ORDER BY start_ns, dur_ns DESC")]

    def test_range(self):
        self.assertEqual(self.window(*self.WORK, OPSCOPE_RANGE="train"), ["train", "one", "train", "two", "range"])
        self.assertEqual(set(problems(self.path)), {"recorded-in-part"})
        self.assertEqual(self.window(*self.WORK, OPSCOPE_RANGE="t*"), ["train", "one", "train", "two", "range"])
        self.assertEqual(self.window(*self.WORK, OPSCOPE_RANGE="train@"), ["train", "one", "train", "two", "range"])
        self.assertEqual(self.window(*self.WORK, OPSCOPE_RANGE="train@other"), [])
        for same in ("train@*", "t*@*", "trai*@", "\\train"):
            self.assertEqual(self.window(*self.WORK, OPSCOPE_RANGE=same), ["train", "one", "train", "two", "range"], same)
        for text, ranges in (("a@b", ("a\\@b", "a\\@b@", "a*")), ("a*", ("a\\*", "a\\*@*")), ("a\\", ("a\\\\", "a\\"))):
            for asked in ranges:
                self.assertEqual(self.window("+no", "-", "+" + text, "-", OPSCOPE_RANGE=asked), [text], asked)
        self.assertEqual(self.window("+ab", "-", "+a@b", "-", OPSCOPE_RANGE="a\\*"), [])
        self.assertEqual(self.window(*self.WORK, OPSCOPE_RANGE="never"), [])
        self.assertIn("nothing-recorded", problems(self.path))

    def test_range_inside(self):
        """What was open when the window opened began before it, and its pop says nothing; a range in a range of the same name is no end."""
        self.assertEqual(self.window("+outer", "+train", "+train", "-", "+in", "-", "-", "+out", "-", "-", OPSCOPE_RANGE="train"), ["train", "train", "in"])
        self.assertEqual(self.window("+outer", "s train", "+out", "-", "-", OPSCOPE_RANGE="train"), ["train"])

    def test_steps(self):
        script = [w for i in range(6) for w in ("+step", f"+in {i}", "-", "-", f"+behind {i}", "-")]
        self.assertEqual(self.window(*script, OPSCOPE_STEPS="2..4", OPSCOPE_STEP_RANGE="step"), ["step", "in 2", "behind 2", "step", "in 3", "behind 3", "step", "in 4"])
        self.assertEqual(self.window(*script, OPSCOPE_STEPS="5..", OPSCOPE_STEP_RANGE="step"), ["step", "in 5", "behind 5"])
        self.assertEqual(self.window(*script, OPSCOPE_STEPS="6", OPSCOPE_STEP_RANGE="step"), [])

    def test_delay_and_duration(self):
        """The clock decides: what is certain is only what lies far from its edges."""
        hour = str(3600 * 10**9)
        self.assertEqual(self.window("+a", "-", OPSCOPE_DELAY_NS=hour), [])
        self.assertEqual(self.window("+a", "-", OPSCOPE_DURATION_NS=hour), ["a"])
        self.assertEqual(self.window("+a", "-", OPSCOPE_DELAY_NS=str(2**63 - 1), OPSCOPE_DURATION_NS=str(2**63 - 1)), [])
        self.assertEqual(self.window("+a", "-", "@5", "+b", "-", OPSCOPE_DURATION_NS="1"), [])
        # Where the machine is slow to begin, "open" may come after the delay.
        self.assertIn(self.window("+open", "@60", "+b", "-", "-", OPSCOPE_DELAY_NS="20000000"), (["b"], ["open", "b"]))

    def test_fork_in_a_window(self):
        folder = self.run_guest("forks", "fork", 10, OPSCOPE_RANGE="outer of the child")
        self.assertEqual(self.names(folder), {("outer of the child", "nvtx"): 2})

    def in_child(self, folder):
        return sorted(n for n, in sql(folder, "SELECT s.name FROM span s JOIN track t ON t.rowid = s.track WHERE t.pid != (SELECT pid FROM track ORDER BY rowid LIMIT 1)"))

    def test_fork_beside_a_window(self):
        """The range that another thread of the parent has open is none of the child's; those of the thread that forks are, pushed or started."""
        folder = self.run_guest("forks_beside", "others", OPSCOPE_RANGE="train")
        self.assertEqual(self.in_child(folder), ["inside", "train"])
        folder = self.run_guest("forks_beside", "own", OPSCOPE_RANGE="train", folder=os.path.join(self.dir, "own"))
        self.assertEqual(self.in_child(folder), ["by another thread", "first", "inside", "second", "train"])

    def test_thread_that_leaves_its_window_open(self):
        folder = self.run_guest("leaves_open", "last", OPSCOPE_RANGE="train")
        found = self.names(folder)
        self.assertEqual((found[("train", "nvtx")], found[("inside", "nvtx")]), (1, 1))
        self.assertNotIn(("last", "nvtx"), found)

    def test_many_switches(self):
        """A range that was open when collecting was switched off ends there, however often it was switched since."""
        folder = self.run_guest("many_switches", 40000)
        self.assertEqual(self.names(folder), {("open", "nvtx"): 1, ("after the first", "nvtx"): 1, ("late", "nvtx"): 1})
        self.assertEqual(sql(folder, "SELECT (SELECT start_ns + dur_ns FROM span WHERE name = 'open') <= (SELECT start_ns FROM span WHERE name = 'after the first')"), [(1,)])
        self.assertEqual(set(problems(folder)), {"recorded-in-part"})

    def test_deep_window(self):
        """A range so deep that it is not recorded is a window all the same, and ends where it ends."""
        folder = self.run_guest("deep_window", "inside", OPSCOPE_RANGE="train")
        self.assertEqual(self.names(folder), {("inside", "beside"): 10, ("train", "nvtx"): 2, ("in", "nvtx"): 2})
        self.assertEqual({k: v[1] for k, v in problems(folder).items()}, {"recorded-in-part": 8, "lost-depth": 6})

    def test_long_options(self):
        """One that is too long is told, and hides none behind it."""
        self.assertEqual(self.window(*self.WORK, OPSCOPE_CUPTI_PATH="x" * 20000, OPSCOPE_RANGE="train"), ["train", "one", "train", "two", "range"])
        self.assertIn("OPSCOPE_CUPTI_PATH was not looked at", problems(self.path)["option-left-out"][2])


class Living(GuestCase):
    """A program that still runs."""

    def test_read_while_running(self):
        folder = os.path.join(self.dir, "run")
        os.mkdir(folder)
        p = subprocess.Popen([GUEST, "waits", "1000"], env=planted_environment(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            self.assertEqual(p.stdout.readline(), b"ready\n")
            self.assertEqual(self.names(folder), {("open", "nvtx"): 1, ("done", "nvtx"): 1000})
            found = problems(folder)
            self.assertEqual({k: v[0] for k, v in found.items()}, {"still-recording": "note", "range-without-end": "repaired"})
            p.communicate(b"x", timeout=PATIENCE)
        finally:
            p.kill()
            p.wait()
        self.assertEqual(p.returncode, 0)
        self.assertEqual(self.names(folder), {("open", "nvtx"): 1, ("done", "nvtx"): 1000, ("later", "nvtx"): 1})
        self.assertEqual(problems(folder), {})

    def test_read_while_a_ring_turns(self):
        """Chunks that are used again while they are read are left out, never read half old, half new. The ring has turned before the first look, and
        must have turned on between those that count."""
        size, wanted, looks, lost = 2 << 20, 5, [], set()
        folder = os.path.join(self.dir, "run")
        os.mkdir(folder)
        p = subprocess.Popen([GUEST, "talks", str(2 * size)], env=planted_environment(folder, OPSCOPE_MAX_SIZE=str(size), OPSCOPE_FULL="ring"), stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
        try:
            self.assertEqual(p.stdout.readline(), b"ready\n")
            end = time.monotonic() + PATIENCE
            while (len(looks) < wanted or len(lost) < wanted) and time.monotonic() < end:
                found = problems(folder)
                lost.add(found["lost-ring"][1])
                self.assertLessEqual(set(found), {"lost-ring", "lost-busy", "still-recording", "range-without-start", "range-without-end", "range-cut-by-ring",
                                                  "nothing-recorded"})
                names = self.names(folder)  # empty where all that was listed had been used again
                self.assertLessEqual(set(names), {("even", "nvtx"), ("odd", "nvtx")})
                if names:
                    looks.append(sum(names.values()))
            self.assertGreaterEqual((len(looks), len(lost)), (wanted, wanted))
            p.communicate(b"", timeout=PATIENCE)
            self.assertEqual(p.returncode, 0)
            self.assertEqual(set(self.names(folder)), {("even", "nvtx"), ("odd", "nvtx")})
        finally:
            p.kill()
            p.wait()


class Itt(CaptureCase):
    def setUp(self):
        super().setUp()
        self.run_dir = self.guest("guest_itt")

    def test_everything(self):
        self.tasks()
        self.marks_and_numbers()

    def tasks(self):
        rows = sql(self.run_dir, "SELECT s.name, kind, cat, link_id, arg(args, 'Input Dims'), t.thread_name FROM span s JOIN track t ON t.rowid = s.track "
                   "WHERE s.name != 'aten::add' ORDER BY start_ns")
        thread = "the only one"
        self.assertEqual(rows, [
            ("aten::linear", "op", "PyTorch", 3, "[[2, 3], [4, 3]]", thread), ("aten::addmm", "op", "PyTorch", 3, None, thread),
            ("same", "range", "PyTorch", None, None, thread), ("crossing", "range", "PyTorch", None, None, thread),
            ("PyTorch", "range", "PyTorch", None, None, thread), ("an event", "range", "nvtx", None, None, thread),
            ("with metadata", "user", "PyTorch", None, None, thread), ("resumed", "user", "PyTorch", None, None, thread)])
        same, crossing = sql(self.run_dir, "SELECT start_ns, start_ns + dur_ns FROM span WHERE name IN ('same', 'crossing') ORDER BY start_ns")
        self.assertTrue(same[0] <= crossing[0] <= same[1] <= crossing[1])
        self.assertEqual(sql(self.run_dir, "SELECT count(*), min(link_id), max(link_id) FROM span WHERE name = 'aten::add'"), [(280000, 0, 279999)])
        self.assertEqual(set(problems(self.run_dir)), {"recorded-in-part"})

    def marks_and_numbers(self):
        rows = sql(self.run_dir, "SELECT name, phase, arg(args, 'value') FROM mark ORDER BY time_ns, rowid")
        self.assertEqual(rows, [("a group", "i", None), ("a marker", "i", None), ("queue", "C", "7"), ("queue", "C", "8"), ("queue", "C", "-2"), ("loss", "C", "0.5")])
        self.assertEqual(sql(self.run_dir, "SELECT arg(args, 'small'), arg(args, 'who') FROM span WHERE name = 'with metadata'"), [("-3", "me")])


class Secrets(GuestCase):
    """What a recording keeps of its program is its owner's alone, and has no secrets in it."""

    def facts(self, folder):
        return dict(sql(folder, "SELECT key, value FROM meta WHERE key LIKE 'capture:%'"))

    def test_command_and_variables(self):
        folder = self.run_guest("ends", "exit", 5, "--api-key=abcdef", "--hf-token", "ghijkl", "https://me:hunter2@host", status=7, OPSCOPE_RANGE="outer",
                                OPSCOPE_API_KEY="mnopqr")
        facts = self.facts(folder)
        self.assertRegex(facts["capture:argv"], r"ends exit 5 --api-key=\*\*\* --hf-token \*\*\* https://me:\*\*\*@host")
        self.assertEqual(facts["capture:option.RANGE"], "outer")
        with open(os.path.join(folder, *self.segments(folder)), "rb") as f:
            written = f.read()
        for secret in (b"abcdef", b"ghijkl", b"hunter2", b"mnopqr", b"API_KEY"):
            self.assertNotIn(secret, written)

    def test_processor(self):
        with open("/proc/cpuinfo") as f:
            names = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
        self.assertEqual(self.facts(self.run_guest("ends", "exit", 5, status=7)).get("capture:cpu_model"), names[0] if names else None)

    def test_permissions(self):
        folder = self.run_guest("ends", "exit", 5, status=7)
        self.assertEqual([os.stat(os.path.join(folder, f)).st_mode & 0o777 for f in os.listdir(folder)], [0o600])


class Privileged(CaptureCase):
    """A program that has more rights than its caller does not do what the caller's environment says."""
    NOBODY = 65534

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("only root can make a program that runs with root's rights")
        os.chmod(self.dir, 0o755)
        self.library = shutil.copy(LIBRARY, self.dir)
        self.folder = os.path.join(self.dir, "run")
        os.mkdir(self.folder)
        os.chmod(self.folder, 0o777)
        if self.run_as_nobody("/usr/bin/id", "-u")[1] != b"0\n":
            self.skipTest("programs in the folder for temporary files cannot run with root's rights")

    def run_as_nobody(self, program, *args, rights=0o4755):
        """Status and output of a copy of the program, which runs with root's rights unless told otherwise."""
        copy = shutil.copy(program, os.path.join(self.dir, "program"))
        os.chmod(copy, rights)
        env = {**planted_environment(self.folder), "NVTX_INJECTION64_PATH": self.library}
        p = subprocess.run([copy, *args], env=env, capture_output=True, timeout=PATIENCE, user=self.NOBODY, group=self.NOBODY, extra_groups=[], cwd=self.dir)
        return p.returncode, p.stdout

    def test_marked_program(self):
        example = os.path.join(GUESTS, "trace_example")
        said = self.run_as_nobody(example)
        self.assertEqual((said[0], os.listdir(self.folder)), (0, []))
        self.assertEqual(self.run_as_nobody(example, rights=0o755), said)
        self.assertEqual(len(os.listdir(self.folder)), 1, "the same program without these rights is recorded")

    def test_library(self):
        """A capture that the program makes of itself works; that which the environment asks for does not begin."""
        own = os.path.join(self.dir, "own")
        os.mkdir(own)
        os.chmod(own, 0o777)
        guest = os.path.join(GUESTS, "guest_capture")
        self.assertEqual(self.run_as_nobody(guest, self.library, "recorded", own), (0, b"0\n"))
        self.assertEqual((os.listdir(self.folder), len(os.listdir(own))), ([], 1))


class Trace(CaptureCase):
    """opscope/trace.h: the example of the docs, as C and as C++, and what C++ has besides."""

    def check_example(self, name):
        if not os.path.exists(os.path.join(GUESTS, name)):
            self.skipTest("no C++ compiler")
        folder = os.path.join(self.dir, "run")
        os.mkdir(folder)
        alone = {k: v for k, v in planted_environment(folder).items() if k != "OPSCOPE_DIR"}
        example = os.path.join(GUESTS, name)
        said = subprocess.run([example], env=alone, capture_output=True, check=True).stdout
        self.assertEqual(os.listdir(folder), [])
        self.assertEqual(subprocess.run([example], env=planted_environment(folder), capture_output=True, check=True).stdout, said)
        rows = sql(folder, "SELECT s.name, s.cat, s.kind, s.link_id, arg(s.args, 'Input Dims'), p.name, count(*) FROM span s LEFT JOIN span p ON p.rowid = s.parent "
                   "WHERE s.cat != 'step' GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 4, 1")
        steps = {f"ProfilerStep#{i}" for i in range(4)}
        self.assertEqual([(r[:5], r[6]) for r in rows if r[2] == "op"], [(("aten::mm", "nvtx", "op", i, "[[1, 64], [64, 64]]"), 1) for i in range(4)])
        self.assertEqual({r[5] for r in rows if r[0] == "aten::mm"}, {"forward"})
        self.assertEqual({r[5] for r in rows if r[0] in ("forward", "load batch", "update")}, steps)
        self.assertEqual({(r[0], r[1]) for r in rows if r[0] in ("update", "save")}, {("update", "my library"), ("save", "nvtx")})
        self.assertEqual({n for n, in sql(folder, "SELECT name FROM span WHERE cat = 'step'")}, steps)
        self.assertEqual(sql(folder, "SELECT bytes, total_allocated, device_type FROM memory"), [(16384, 16384, 0)])
        marks = sql(folder, "SELECT m.name, phase, arg(args, 'unit'), t.thread_name FROM mark m JOIN track t ON t.rowid = m.track ORDER BY time_ns, m.rowid")
        self.assertEqual(marks, [("loss", "C", None, "trainer"), ("samples", "C", "samples", "trainer")] * 4 + [("trained", "i", None, "trainer")])
        self.assertEqual([(r["flops"], r["calls"]) for r in oracle.report("costs", folder).rows], [(2 * 64 * 64, 4)])
        self.assertEqual(problems(folder), {})

    def test_example_in_c(self):
        self.check_example("trace_example")

    def test_example_in_cpp(self):
        self.check_example("trace_example_cpp")

    def test_scopes(self):
        if not os.path.exists(os.path.join(GUESTS, "trace_scopes")):
            self.skipTest("no C++ compiler")
        folder = self.guest("trace_scopes")
        rows = sql(folder, "SELECT s.name, s.cat, s.kind, p.name, arg(s.args, 'count') FROM span s LEFT JOIN span p ON p.rowid = s.parent ORDER BY s.start_ns")
        self.assertEqual(rows, [("one", "nvtx", "user", None, None), ("of the same line", "nvtx", "user", "one", None), ("aten::neg", "nvtx", "op", "of the same line", None),
                                ("outer", "c++", "user", None, None), ("inner", "nvtx", "user", "outer", None)] +
                         [row for parent in ("inner", "inner") for row in (("class", "nvtx", "user", parent, None), ("inner", "nvtx", "user", "class", None))] +
                         [("class", "nvtx", "user", "inner", None), ("aten::relu", "nvtx", "op", "outer", "3")])


if __name__ == "__main__":
    oracle.main()
