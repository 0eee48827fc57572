"""Captures that a program makes of itself (opscope/capture.h): what each holds, and what does not disturb it."""
import errno
import os
import subprocess

import oracle
from test_capture import GUESTS, LIBRARY, CaptureCase, planted_environment, problems, sql

GUEST = os.path.join(GUESTS, "guest_capture")
PATIENCE = 240
# What is worth knowing of a capture that a living process ended, with threads in the midst of ranges; of rings; and of a busy machine, on which a thread
# waits in vain for the one that holds a lock.
EXPECTED = {"range-without-end", "lost-ring", "range-cut-by-ring", "range-end-unknown", "lost-busy", "lost-texts"}


class OwnCapture(CaptureCase):
    def run_guest(self, what, *args, **env):
        plain = {k: v for k, v in planted_environment("").items() if not k.startswith(("OPSCOPE", "NVTX", "INTEL"))}
        p = subprocess.run([GUEST, LIBRARY, what, self.dir, *map(str, args)], env={**plain, **env}, capture_output=True, timeout=PATIENCE)
        self.assertEqual((p.returncode, p.stderr), (0, b""))
        return p.stdout.decode()

    def folder(self, *names):
        return os.path.join(self.dir, *names)

    def segments(self, folder):
        return [f for f in os.listdir(folder) if not os.path.isdir(os.path.join(folder, f))]

    def names(self, folder):
        return {n: k for n, k in sql(folder, "SELECT name, count(*) FROM span WHERE cat <> '' GROUP BY name")}

    def test_one_after_the_other(self):
        """Three threads say things all the while: each capture has what was said in it, whole, and no capture takes anything from the process for good."""
        n = 24
        more = int(self.run_guest("rounds", n, 3))
        self.assertLess(more, 12, "mappings that each capture left behind")
        for i in range(n):
            with self.subTest(i):
                self.assertEqual(len(self.segments(self.folder(str(i)))), 1)
                names = self.names(self.folder(str(i)))
                ring = i % 3 == 2
                windows = {k: v for k, v in names.items() if k.startswith("window")}
                found = {k: v for k, v in problems(self.folder(str(i))).items() if v[0] != "note"}
                self.assertLessEqual(set(found), EXPECTED)
                lost = {"lost-busy", "lost-texts"} & set(found)
                self.assertLessEqual(windows.items(), {f"window {i}": 1}.items())
                self.assertLessEqual(names.get("in each", 0), 1)
                if not lost and (windows or not ring):
                    self.assertEqual((windows, names["in each"]), ({f"window {i}": 1}, 1))
                self.assertNotIn("in none", names)
                self.assertNotIn("before all captures", names)
                self.assertEqual({k for k in names if not k.startswith(("window", "of ", "ProfilerStep"))} - {"outer", "inner", "in each"}, set())
                answers = sql(self.folder(str(i)), "SELECT DISTINCT arg(args, 'answer') FROM span WHERE name = 'in each'")
                if not lost and not ring:
                    self.assertEqual(answers, [("42",)])

    def test_forked_child(self):
        self.run_guest("forks")
        self.assertEqual(self.names(self.folder("0")), {"parent": 1})
        self.assertEqual(self.names(self.folder("1")), {"child": 1})
        self.assertEqual([len(self.segments(self.folder(f))) for f in "01"], [1, 1])

    def test_what_cannot_be(self):
        said = dict(line.split(": ") for line in self.run_guest("errors").splitlines())
        wanted = {"library": errno.ELIBACC, "end": 0, "bytes": errno.EINVAL, "none": errno.EINVAL, "ring": errno.EINVAL, "small": errno.EINVAL,
                  "missing": errno.ENOENT, "file": errno.ENOTDIR, "begin": 0, "twice": errno.EALREADY, "again": errno.ESRCH}
        self.assertEqual({k: -int(v) for k, v in said.items()}, wanted)
        self.assertEqual(len(self.segments(self.dir)), 1)

    def test_exit_without_end(self):
        """Whole, as with an end; the range that was open is told."""
        self.run_guest("leaves")
        self.assertEqual(self.names(self.dir), {"open": 1, "work": 1})
        self.assertNotIn("no-exit", problems(self.dir))

    def test_folder_goes_away(self):
        self.run_guest("gone")
        self.assertFalse(os.path.exists(self.folder("0")))
        self.assertEqual(self.names(self.folder("1")), {"again": 1})

    def test_under_record(self):
        """Who records already goes on, alone."""
        run = self.folder("run")
        os.mkdir(run)
        said = self.run_guest("recorded", OPSCOPE_DIR=run, NVTX_INJECTION64_PATH=LIBRARY)
        self.assertEqual(int(said), -errno.EBUSY)
        self.assertEqual(self.names(run), {"recorded": 1})
        self.assertEqual(self.segments(self.dir), [])


if __name__ == "__main__":
    oracle.main()
