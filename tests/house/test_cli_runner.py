#!/usr/bin/env python3
"""tests/cli/run.py itself: which program it runs, and what it blesses."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import house

RUNNER = os.path.join(house.ROOT, "tests", "cli", "run.py")


class Runner(unittest.TestCase):
    """A copy of the runner with scripts of its own, beside a program that says which one it is."""

    def setUp(self):
        tmp = tempfile.TemporaryDirectory()
        self.addCleanup(tmp.cleanup)
        self.root = tmp.name
        self.cli = os.path.join(self.root, "tests", "cli")
        os.makedirs(self.cli)
        shutil.copy(RUNNER, self.cli)

    def program(self, build):
        path = os.path.join(self.root, build, "src", "cli", "opscope")
        os.makedirs(os.path.dirname(path))
        self.write(path, f"#!/bin/sh\necho of {build}\n")
        os.chmod(path, 0o755)
        return path

    def write(self, path, text):
        with open(os.path.join(self.cli, path), "w", encoding="utf-8") as f:
            f.write(text)

    def read(self, name):
        with open(os.path.join(self.cli, name), encoding="utf-8") as f:
            return f.read()

    def run_it(self, *args, **env):
        plain = {k: v for k, v in os.environ.items() if not k.startswith("OPSCOPE")}
        return subprocess.run([sys.executable, os.path.join(self.cli, "run.py"), *args], env={**plain, **env}, capture_output=True, text=True)

    def test_the_program_of_the_build_folder(self):
        self.program("build")
        self.program("build-other")
        self.write("which.sh", "opscope\n")
        for env, said in (({}, "of build\n"), ({"OPSCOPE_BUILD": os.path.join(self.root, "build-other")}, "of build-other\n")):
            self.assertEqual(self.run_it("--bless", "which", **env).returncode, 0)
            self.assertEqual(self.read("which.stdout"), said)

    def test_the_program_named_itself_goes_first(self):
        named = self.program("build-named")
        self.program("build-other")
        self.write("which.sh", "opscope\n")
        self.run_it("--bless", "which", OPSCOPE=named, OPSCOPE_BUILD=os.path.join(self.root, "build-other"))
        self.assertEqual(self.read("which.stdout"), "of build-named\n")

    def test_no_other_program_stands_in_for_a_missing_one(self):
        installed = self.program("installed")
        self.write("which.sh", "opscope\n")
        p = self.run_it("--bless", "which", PATH=os.path.dirname(installed) + ":" + os.environ["PATH"])
        self.assertEqual((p.returncode, p.stdout), (1, f"Bail out! {self.root}/build/src/cli/opscope is missing: build it, or set OPSCOPE or OPSCOPE_BUILD\n"))
        self.assertFalse(os.path.exists(os.path.join(self.cli, "which.stdout")))

    def test_a_failed_script_is_not_blessed(self):
        self.program("build")
        self.write("fails.sh", "opscope; false\n")
        self.write("fails.stdout", "what it should print\n")
        p = self.run_it("--bless", "fails")
        self.assertEqual(p.returncode, 1)
        self.assertIn("not ok 1 - fails", p.stdout)
        self.assertEqual(self.read("fails.stdout"), "what it should print\n")

    def test_a_script_that_cannot_run_is_skipped(self):
        self.program("build")
        self.write("lacks.sh", "opscope; echo no server >&2; exit 77\n")
        self.write("lacks.stdout", "what it should print\n")
        p = self.run_it("--bless", "lacks")
        self.assertEqual((p.returncode, p.stdout), (0, "1..1\nok 1 - lacks # SKIP no server\n"))
        self.assertEqual(self.read("lacks.stdout"), "what it should print\n")

    def test_scripts_of_a_predecessor(self):
        self.program("build")
        os.mkdir(os.path.join(self.cli, "old"))
        self.write("old/names.sh", "opscope\n")
        p = self.run_it()
        self.assertEqual((p.returncode, p.stdout), (0, "1..1\nok 1 - old/names # SKIP no src/predecessors/old\n"))
        os.makedirs(os.path.join(self.root, "src", "predecessors", "old"))
        self.assertEqual(self.run_it().returncode, 1)
        self.assertEqual(self.run_it("--bless", "old/names").returncode, 0)
        self.assertEqual(self.run_it().stdout, "1..1\nok 1 - old/names\n")


if __name__ == "__main__":
    house.main()
