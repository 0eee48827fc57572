"""What the tests of `opscope record` share: running it in a folder of its own, in an environment without profilers."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import oracle

PATIENCE = 120
# What a profiler, a launcher of jobs, or a test before may have left.
FOREIGN = ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "INTEL_LIBITTNOTIFY64", "QUADD_INJECTION_CONFIG", "RANK", "WORLD_SIZE", "PMI_RANK")


def wait_until(true, what, patience=PATIENCE):
    """The first value that counts as true; an error when that takes too long."""
    end = time.monotonic() + patience
    while True:
        value = true()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not in {patience} s")
        time.sleep(0.01)


class RecordCase(oracle.Case):
    def setUp(self):
        super().setUp()
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.work = os.path.join(self.dir, "work")
        os.mkdir(self.work)
        prefixes = ("OPSCOPE_", "SLURM_", "OMPI_", "PMI", "TORCHELASTIC_", "MASTER_")
        self.env = {k: v for k, v in os.environ.items() if k not in FOREIGN and (not k.startswith(prefixes))}
        self.env["TMPDIR"] = os.path.join(self.dir, "tmp")
        os.mkdir(self.env["TMPDIR"])

    def start(self, *args, env=(), command="record", **kw):
        return subprocess.Popen([oracle.OPSCOPE, command, *map(str, args)], cwd=self.work, env={**self.env, **dict(env)}, stdin=kw.pop("stdin", subprocess.DEVNULL),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)

    def record(self, *args, status=0, env=(), **kw):
        """(stdout, stderr)."""
        with self.start(*args, env=env, **kw) as p:
            out, err = (x.decode() for x in p.communicate(timeout=PATIENCE))
        self.assertEqual(p.returncode, status, f"{args}: {out}{err}")
        return out, err

    def path(self, *parts):
        return os.path.join(self.work, *parts)

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, mode)
        return path

    def files(self, folder="."):
        return sorted(os.listdir(self.path(folder)))

    def run_file(self, folder):
        names = [n for n in self.files(folder) if n.endswith(".run.json")]
        self.assertEqual(len(names), 1, names)
        with open(self.path(folder, names[0])) as f:
            return json.load(f)


def python(code, *args):
    """A command line."""
    return [sys.executable, "-c", code, *args]
