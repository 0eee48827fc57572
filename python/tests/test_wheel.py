"""The wheel and the sdist: what is in them; the wheel, installed into a clean virtual environment without any network, passes the tests."""
import base64
import csv
import glob
import hashlib
import json
import os
import shutil
import site
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

from support import RESNET, ROOT, oracle

BUILD = os.environ.get("OPSCOPE_BUILD", os.path.join(ROOT, "build"))
CALL = "import sys; sys.path.insert(0, sys.argv[1]); import backend; print(getattr(backend, sys.argv[2])(sys.argv[3], {'build-dir': sys.argv[4]}))"
# What pip does to a build in an environment that has the system's packages: a meson of the system is to run all the same.
HIDE = "import sys; sys.path[:] = [p for p in sys.path if not p.endswith(('dist-packages', 'site-packages'))]"
TESTS = [["test_core.py"], ["test_annotate.py", "Functions"]]
# What needs torch, a small part of each file.
TORCH = [["test_torch.py", "Markers.test_lenet", "Layers.test_layers", "Links.test_numbers"],
         ["test_profiler.py", "Profile.test_every_repeat_is_kept", "Profile.test_what_a_recording_holds", "Others.test_record_function"]]


def build(hook, folder):
    """The file that a hook of PEP 517 makes, called as pip calls it: in a process of its own."""
    p = subprocess.run([sys.executable, "-c", CALL, os.path.join(ROOT, "python"), hook, folder, BUILD], cwd=ROOT, capture_output=True, text=True, check=True)
    return os.path.join(folder, p.stdout.strip())


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


class Wheel(oracle.Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = build("build_wheel", cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_what_is_in_it(self):
        with zipfile.ZipFile(self.path) as z:
            names = z.namelist()
            for name in ("__init__.py", "table.py", "trace.py", "_core.pyi", "py.typed", "_core.abi3.so", "bin/opscope", "bin/libopscope-inject.so"):
                self.assertIn("opscope/" + name, names)
            info = os.path.basename(self.path).split("-")
            info = f"{info[0]}-{info[1]}.dist-info"
            self.assertEqual({n.split("/")[0] for n in names}, {"opscope", info})
            self.assertEqual(names[-1], info + "/RECORD")
            for path in ("LICENSE", "NOTICE", "docs/licences.md"):
                self.assertIn(f"{info}/licenses/{path}", names)
                self.assertIn(f"\nLicense-File: {path}\n", z.read(info + "/METADATA").decode())
            record = {r[0]: r[1:] for r in csv.reader(z.read(names[-1]).decode().splitlines())}
            self.assertEqual(sorted(record), sorted(names))
            for name in names[:-1]:
                data = z.read(name)
                self.assertEqual(record[name], ["sha256=" + digest(data), str(len(data))], name)
            self.assertIn("Name: opscope\n", z.read(info + "/METADATA").decode())
            self.assertIn("Tag: " + "-".join(os.path.basename(self.path)[:-4].split("-")[2:]), z.read(info + "/WHEEL").decode())
            self.assertTrue(z.getinfo("opscope/bin/opscope").external_attr >> 16 & 0o111)

    def test_the_same_again(self):
        with tempfile.TemporaryDirectory() as other, open(self.path, "rb") as a, open(build("build_wheel", other), "rb") as b:
            self.assertEqual(digest(a.read()), digest(b.read()))

    def test_in_a_clean_environment(self):
        with tempfile.TemporaryDirectory() as folder:
            made = subprocess.run([sys.executable, "-m", "venv", folder], capture_output=True, text=True)
            if made.returncode:
                self.skipTest("no virtual environment can be made here: " + made.stdout.strip())
            python = os.path.join(folder, "bin", "python")
            env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
            subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", "--disable-pip-version-check", self.path], env=env, cwd=folder, check=True,
                           capture_output=True)
            for test in TESTS:
                self.passes(python, test, env, folder)
            where = subprocess.run([python, "-c", "import opscope; print(opscope.__file__)"], env=env, cwd=folder, capture_output=True, text=True, check=True)
            self.assertTrue(where.stdout.startswith(os.path.realpath(folder)) or where.stdout.startswith(folder), where.stdout)
            want = oracle.run("report", "overview", RESNET)[1].decode()
            for command in ([os.path.join(folder, "bin", "opscope")], [python, "-m", "opscope"]):
                p = subprocess.run([*command, "report", "overview", RESNET], env=env, cwd=folder, capture_output=True, text=True)
                self.assertEqual((p.stdout, p.stderr), (want, ""))
            p = subprocess.run([os.path.join(folder, "bin", "pyprof-parse"), "--help"], env=env, cwd=folder, capture_output=True, text=True)
            self.assertIn("pyprof-parse", p.stdout)
            p = subprocess.run([os.path.join(folder, "bin", "opscope"), "record", "-o", "run", "--", "true"], env=env, cwd=folder, capture_output=True, text=True)
            self.assertEqual(p.returncode, 0, p.stderr)
            self.with_torch(python, env, folder)

    def passes(self, python, test, env, folder):
        """What the tests of a file print, all of which pass."""
        p = subprocess.run([python, os.path.join(ROOT, "python", "tests", test[0]), *test[1:]], env=env, cwd=folder, capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        return p.stdout

    def with_torch(self, python, env, folder):
        """The same environment, now as one that has the system's packages: torch, where it is installed, and the program of the wheel."""
        settings = os.path.join(folder, "pyvenv.cfg")
        with open(settings) as f:
            text = f.read()
        with open(settings, "w") as f:
            f.write(text.replace("include-system-site-packages = false", "include-system-site-packages = true"))
        if subprocess.run([python, "-c", "import torch"], env=env, cwd=folder, capture_output=True).returncode:
            print("# torch is not installed: what needs it is not asked of the wheel")
            return
        env = {**env, "OPSCOPE": os.path.join(folder, "bin", "opscope")}
        for test in TORCH:
            out = self.passes(python, test, env, folder)
            self.assertEqual((out.count("\nok ") + out.startswith("ok "), "SKIP" in out), (len(test) - 1, False), out)

    def test_other_versions(self):
        """One binary for all: what the wheel holds works with every other Python from 3.9 on that is here."""
        here, seen = "%d.%d" % sys.version_info[:2], {}
        for python in [shutil.which(f"python3.{minor}") for minor in range(9, 30)] + sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))):
            p = subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2], sys.version_info >= (3, 9))"], capture_output=True,
                               text=True) if python else None
            if p and p.returncode == 0 and p.stdout.split()[1] == "True" and p.stdout.split()[0] != here:
                seen.setdefault(p.stdout.split()[0], python)
        if not seen:
            self.skipTest(f"no other Python than {here}")
        with tempfile.TemporaryDirectory() as folder:
            with zipfile.ZipFile(self.path) as z:
                z.extractall(folder)
            for version, python in seen.items():
                p = subprocess.run([python, os.path.join(ROOT, "python", "tests", "test_arrow.py")], env={**os.environ, "PYTHONPATH": folder}, cwd=folder,
                                   capture_output=True, text=True)
                self.assertEqual(p.returncode, 0, version + p.stdout + p.stderr)


class Setup(oracle.Case):
    """What a wheel is built of where no build folder is given; building it is what ./test does all the time."""

    def test_setup(self):
        with tempfile.TemporaryDirectory() as folder:
            code = "import sys; sys.path.insert(0, sys.argv[1]); import backend; backend._setup(sys.argv[2], {'setup-args': '-Dserve=disabled'})"
            env = {**{k: v for k, v in os.environ.items() if not k.startswith("MESON")}, "PYTHONPATH": folder}
            with open(os.path.join(folder, "sitecustomize.py"), "w") as f:
                f.write(HIDE)
            where = os.path.join(folder, "build")
            p = subprocess.run([sys.executable, "-c", code, os.path.join(ROOT, "python"), where], env=env, capture_output=True, text=True)
            if p.returncode and "Python.h" in p.stdout + p.stderr:
                self.skipTest("this Python has no headers")
            self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
            with open(os.path.join(where, "meson-info", "intro-buildoptions.json")) as f:
                options = {o["name"]: o["value"] for o in json.load(f)}
            self.assertEqual([options[o] for o in ("python", "tests", "serve", "buildtype")], ["enabled", "disabled", "disabled", "release"])
            with open(os.path.join(where, "meson-info", "intro-installed.json")) as f:
                folders = {os.path.dirname(os.path.dirname(d)) for d in json.load(f).values() if "/opscope/_core." in d}
            known = {p for p in site.getsitepackages() if p.startswith(options["prefix"] + "/")}
            self.assertTrue(len(folders) == 1 and (folders <= known or not known), f"{folders} is not where Python looks: {known}")
            sys.path.insert(0, os.path.join(ROOT, "python"))
            import backend
            places = {place for _, place in backend._installed(where)}  # the program is not built: only then it has a file
            self.assertLessEqual({"opscope/_core.abi3.so", "opscope/table.py", "opscope/py.typed"}, places)

    def test_metadata_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            info = build("prepare_metadata_for_build_wheel", folder)
            with open(os.path.join(info, "METADATA")) as f:
                self.assertRegex(f.read(), r"(?s)^Metadata-Version: 2\.4\nName: opscope\nVersion: [0-9.]+\n.*\n\n# opscope\n")
            with open(os.path.join(info, "entry_points.txt")) as f:
                self.assertIn("opscope = opscope.__main__:main\n", f.read())


class Sdist(oracle.Case):
    def test_what_is_in_it(self):
        if not os.path.exists(os.path.join(ROOT, ".git")):  # of a worktree it is a file
            self.skipTest("not a clone")
        tracked = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True, check=True).stdout.split("\0")
        tracked = {f for f in tracked if f and os.path.isfile(os.path.join(ROOT, f))}
        with tempfile.TemporaryDirectory() as folder:
            path = build("build_sdist", folder)
            self.assertRegex(os.path.basename(path), r"^opscope-[0-9.]+\.tar\.gz$")
            stem = os.path.basename(path)[:-len(".tar.gz")]
            with tarfile.open(path) as tar:
                names = {m.name.split("/", 1)[1] for m in tar if m.name.startswith(stem + "/")}
                fetched = os.path.isdir(os.path.join(ROOT, "web", "node_modules"))
                pages = {"web/pages/" + name for name in ("icon.svg", "index.html", "main.css", "main.js")} | {"web/pages-plot/plot.js"} if fetched else set()
                self.assertEqual(names, tracked | pages | {"PKG-INFO", "SOURCES.txt"})
                self.assertEqual(tar.extractfile(stem + "/SOURCES.txt").read().decode().splitlines(), [*sorted(tracked), *sorted(pages)])
                self.assertEqual(len(names), len(tar.getmembers()))
                self.assertIn("Name: opscope\n", tar.extractfile(stem + "/PKG-INFO").read().decode())


if __name__ == "__main__":
    oracle.main()
