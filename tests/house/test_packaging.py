#!/usr/bin/env python3
"""What a build makes is fit to be given to others: it does not tell where it was made, pkg-config finds it, and its binary interface is the one that is kept."""
import glob
import os
import platform
import re
import shutil
import subprocess
import tempfile
import unittest

import house
import oracle

BUILD = os.environ.get("OPSCOPE_BUILD", os.path.join(house.ROOT, "build"))
TRACE = os.path.join(house.ROOT, "tests", "data", "torch214_cpu_resnet.json.gz")


def library():
    return oracle.built(os.path.join(BUILD, "src", "api", "libopscope.so.0"), "OPSCOPE_BUILD")


def needed(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise unittest.SkipTest(f"no {tool} here")


class Build(oracle.Case):
    def test_no_paths(self):
        """Then the same sources give the same bytes wherever they are built: tools/reproducible builds twice and compares."""
        for path in (oracle.OPSCOPE, library(), os.path.join(BUILD, "collect", "libopscope-inject.so"), *glob.glob(os.path.join(BUILD, "python", "opscope", "*.so"))):
            with self.subTest(os.path.basename(path)), open(path, "rb") as f:
                data = f.read()
                for where in {house.ROOT, os.path.realpath(BUILD)}:
                    self.assertNotIn(os.fsencode(where) + b"/", data)
                self.assertFalse(re.search(rb"\.\./src/[a-z]+/", data))

    def test_pkg_config(self):
        """The example of the manual, compiled with what opscope.pc says, as it will be installed and as it is not installed yet."""
        needed("pkg-config", "cc")
        library()
        env = {**os.environ, "PKG_CONFIG_PATH": os.pathsep.join(os.path.join(BUILD, f) for f in ("meson-private", "meson-uninstalled"))}

        def ask(*args):
            return subprocess.run(["pkg-config", *args], env=env, capture_output=True, text=True, check=True).stdout.split()

        self.assertIn("-lopscope", ask("--libs", "opscope"))
        self.assertNotIn("-lsqlite3", ask("--libs", "opscope"))
        self.assertIn("-lsqlite3", ask("--libs", "--static", "opscope"))
        self.assertEqual(ask("--modversion", "opscope"), [oracle.run("--version")[1].decode().split()[1]])
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "top")
            flags = ask("--cflags", "--libs", "opscope-uninstalled")
            subprocess.run(["cc", "-Wall", "-Werror", os.path.join(house.ROOT, "docs", "examples", "top_operators.c"), "-o", program, *flags], check=True, cwd=BUILD)
            p = subprocess.run([program, TRACE], env={**os.environ, "LD_LIBRARY_PATH": os.path.dirname(library())}, capture_output=True, text=True, check=True)
            self.assertIn("aten::convolution_backward", p.stdout)


    def test_symbols_of_the_debian_package(self):
        needed("nm")
        if not os.path.isdir(os.path.join(house.ROOT, "debian")):
            self.skipTest("no debian/: a tarball of a release")
        listed = re.findall(r"(?m)^ (\w+)@Base ", house.read("debian", "libopscope0.symbols"))
        said = subprocess.run(["nm", "-D", "--defined-only", library()], capture_output=True, text=True, check=True).stdout
        self.assertEqual(sorted(listed), sorted(line.split()[-1] for line in said.splitlines()))


class Interface(oracle.Case):
    """tools/abi, by libabigail."""

    def setUp(self):
        super().setUp()
        needed("abidw", "abidiff")
        library()
        if platform.machine() != "x86_64":
            self.skipTest("the kept interface is of x86-64")

    def abi(self, *args):
        p = subprocess.run([os.path.join(house.ROOT, "tools", "abi"), BUILD, *args], capture_output=True, text=True)
        if "no debug information" in p.stderr:
            self.skipTest(p.stderr.strip())
        return p.returncode, p.stdout + p.stderr

    def test_is_the_one_that_is_kept(self):
        status, said = self.abi()
        self.assertEqual(status, 0, said)

    def changed(self, was, becomes):
        """What is said where the kept interface is another one."""
        text = house.read("src", "api", "opscope.abi")
        self.assertRegex(text, was)
        with tempfile.NamedTemporaryFile("w", suffix=".abi") as f:
            f.write(re.sub(was, becomes, text))
            f.flush()
            return self.abi(f.name)

    def test_a_function_that_is_gone(self):
        status, said = self.changed(r"\bopscope_version\b", "opscope_edition")
        self.assertEqual(status, 1)
        self.assertIn("opscope_edition", said)
        self.assertIn("would break", said)

    def test_a_type_that_is_another_one(self):
        status, said = self.changed("name='OPSCOPE_ERROR_LACKS' value='4'", "name='OPSCOPE_ERROR_LACKS' value='9'")
        self.assertEqual(status, 1)
        self.assertIn("would break", said)

    def test_a_function_that_is_new(self):
        status, said = self.changed(r"<elf-symbol name='opscope_version'[^\n]*\n", "")
        self.assertEqual(status, 1)
        self.assertIn("--update", said)


if __name__ == "__main__":
    house.main()
