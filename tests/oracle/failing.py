"""Runs of opscope in which a call fails: tests/fail/fail.c, which says what its settings mean."""
import mmap
import os
import struct
import subprocess

import oracle

BUILD = os.path.abspath(os.environ.get("OPSCOPE_BUILD", os.path.join(oracle.ROOT, "build")))
LIBRARY = os.path.join(BUILD, "tests", "fail", "fail.so")
STATE = "armed at from count delivered main_pid".split()  # struct state of fail.c


class Counter:
    """What fail.c counts, in memory shared with the program."""

    def __init__(self, path):
        self.path = path
        with open(path, "wb") as f:
            f.write(bytes(8 * len(STATE)))
        with open(path, "r+b") as f:
            self.memory = mmap.mmap(f.fileno(), 8 * len(STATE))

    def get(self, name):
        return struct.unpack_from("<Q", self.memory, 8 * STATE.index(name))[0]

    def set(self, **values):
        for name, v in values.items():
            struct.pack_into("<Q", self.memory, 8 * STATE.index(name), v)

    def clear(self):
        self.set(**dict.fromkeys(STATE, 0))

    def run(self, args, path, point):
        """(status, stdout, stderr) of a run in which the `point` fails, FAIL_AT, counted from the first read of the file `path` on."""
        self.clear()
        env = {**os.environ, "LD_PRELOAD": LIBRARY, "FAIL_AT": point, "FAIL_UNDER": os.path.realpath(path), "FAIL_STATE": self.path, "FAIL_WAIT": "read"}
        p = subprocess.run([oracle.OPSCOPE, *args], env=env, capture_output=True, timeout=oracle.TIMEOUT)
        return p.returncode, p.stdout, p.stderr.decode(errors="replace")
