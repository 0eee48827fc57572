"""tools/gpu-check where there is no GPU: it says so; with the mock driver it passes; and where CUPTI does wrong, the check that is meant for it fails."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import oracle

BUILD = os.environ.get("OPSCOPE_BUILD", os.path.join(oracle.ROOT, "build"))
MOCK = os.path.join(BUILD, "tests", "mock")
CHECKS = ["loaded", "device", "kernels", "calls", "ranges", "order", "copies", "waits", "memory", "graph-nodes", "whole-graphs", "own", "fork"]
# What CUPTI does, and the checks that must notice.
WRONG = {"busy": {"loaded", "kernels"}, "refuse=38": {"loaded", "waits"}, "pthreads": {"calls", "ranges"}, "lossy": {"kernels"}, "skewed": {"order"},
         "refuse=49": {"memory"}, "refuse=51": {"whole-graphs"}}


class Base(oracle.Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        shutil.copy(os.path.join(MOCK, "libmock_cupti_13.0.so"), os.path.join(self.folder.name, "libcupti.so.13"))

    def run_checks(self, *args, mode="", libraries=True, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("OPSCOPE_DIR", "OPSCOPE_CUPTI", "MOCK", "CUDA", "NVTX"))}
        where = ["--libraries", self.folder.name + ":" + MOCK] if libraries else []
        p = subprocess.run([sys.executable, os.path.join(oracle.ROOT, "tools", "gpu-check"), "--build", BUILD, *where, *args],
                           env={**env, "MOCK_CUPTI": mode, **more}, capture_output=True, timeout=oracle.TIMEOUT)
        self.assertEqual(p.stderr, b"", p.stderr)
        return p.returncode, dict(re.findall(r"^(\S+) +(passed|skipped|FAILED) ", p.stdout.decode(), re.M)), p.stdout.decode()


class GpuCheck(Base):
    def test_passes(self):
        kept = os.path.join(self.folder.name, "kept")
        code, results, text = self.run_checks("--keep", kept, *CHECKS)
        self.assertEqual((code, results), (0, {name: "passed" for name in CHECKS}), text)
        self.assertGreaterEqual(len(os.listdir(kept)), len(CHECKS))

    def test_each_can_fail(self):
        for mode, checks in WRONG.items():
            with self.subTest(mode):
                code, results, text = self.run_checks(*sorted(checks), mode=mode)
                self.assertEqual((code, results), (1, {name: "FAILED" for name in checks}), text)

    def test_torch_profiler(self):
        """With something in the place of a Python with torch, which loses kernels beside torch.profiler, or does not: only what is lost unsaid fails."""
        python = os.path.join(self.folder.name, "python")
        for beside, result in (("threads=2", "passed"), ("threads=1", "FAILED")):
            with open(python, "w") as f:
                f.write('#!/bin/sh\n[ "$1" = -c ] && exit 0\n'
                        f'grep -q "with torch.profiler.profile" "$1" && exec "{BUILD}/tools/gpu_guest" {beside}\nexec "{BUILD}/tools/gpu_guest" threads=2\n')
            os.chmod(python, 0o755)
            code, results, text = self.run_checks("torch-profiler", OPSCOPE_TORCH_PYTHON=python)
            self.assertEqual((code, results), (int(result != "passed"), {"torch-profiler": result}), text)

    def test_no_gpu(self):
        code, results, text = self.run_checks(libraries=False)
        if code != 77 and results:
            self.skipTest("this machine has a GPU")
        self.assertEqual((code, results), (77, {}))
        self.assertIn("no GPU", text)


if __name__ == "__main__":
    oracle.main()
