"""What the tests of the package use: the package that is to be tested, the program to compare it with, TAP.

The package is the one that Python finds: PYTHONPATH=BUILD/python, or what is installed. Everything else is tests/oracle/oracle.py's.
"""
import fcntl
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "oracle"))

import oracle  # noqa: E402

try:
    import opscope  # noqa: F401
except ImportError:
    if "OPSCOPE_BUILD" in os.environ:
        raise
    sys.path.insert(0, os.path.join(ROOT, "build", "python"))
    import opscope  # noqa: F401

BUILD = os.path.abspath(os.environ.get("OPSCOPE_BUILD", os.path.join(ROOT, "build")))
RESNET = os.path.join(ROOT, "tests", "data", "torch214_cpu_resnet.json.gz")


def csv(*args):
    """What the program prints with --format=csv, as text."""
    code, out, err = oracle.run(*args, "--format=csv")
    if code:
        raise AssertionError(f"{args}: exit {code}: {err.decode(errors='replace')}")
    return out.decode()


def sources(extension):
    """The C files of an extension of the package."""
    folders = {"_annotate": "annotate", "_profiler": "profiler"}
    python = os.path.join(ROOT, "python")
    return sorted(glob.glob(os.path.join(python, folders[extension], "*.c"))) if extension in folders else [os.path.join(python, "opscope", extension + ".c")]


def under_debug_python(case, test, rounds, *extensions):
    """Runs a test of the case's file under a debug build of Python, with these extensions built for it: only then are their own references counted. Without
    _core, there is nothing else of the package. Skipped where there is no such Python."""
    debug, compiler = shutil.which("python3-dbg"), shutil.which("cc")
    if not debug or not compiler or hasattr(sys, "gettotalrefcount"):
        case.skipTest("no python3-dbg and compiler for it" if not debug or not compiler else "this is the debug build")
    include = subprocess.run([debug, "-c", "import sysconfig; print(sysconfig.get_path('include'))"], capture_output=True, text=True, check=True).stdout.strip()
    if not os.path.exists(os.path.join(include, "Python.h")):
        case.skipTest(f"no {include}/Python.h")
    library = oracle.built(os.path.join(BUILD, "src", "api", "libopscope.so"), "OPSCOPE_BUILD")
    with tempfile.TemporaryDirectory() as folder:
        package = os.path.join(folder, "opscope")
        if "_core" in extensions:
            shutil.copytree(os.path.dirname(opscope.__file__), package, ignore=shutil.ignore_patterns("*.so*", "__pycache__", "bin"))
        else:
            os.mkdir(package)
        for name in extensions:
            subprocess.run([compiler, "-shared", "-fPIC", "-g", "-D_GNU_SOURCE", "-o", os.path.join(package, name + ".so"), *sources(name), "-I" + include,
                            "-I" + os.path.join(ROOT, "include"), "-Wl,--as-needed", library, "-Wl,-rpath," + os.path.dirname(library)], check=True)
        env = {**os.environ, "PYTHONPATH": folder, "OPSCOPE_ROUNDS": str(rounds)}
        p = subprocess.run([debug, os.path.abspath(sys.modules[type(case).__module__].__file__), test], env=env, capture_output=True, text=True)
    case.assertEqual(p.returncode, 0, p.stdout + p.stderr)
    case.assertNotIn("SKIP", p.stdout)


def cuda_stub():
    """cuda_stub.cpp as a library, built when it is first asked for; the test is skipped where it cannot be."""
    import torch
    header, compiler = "/usr/include/torch/csrc/profiler/api.h", shutil.which("c++")
    if not os.path.exists(header) or not compiler or not torch.__version__.startswith("1.13"):
        raise unittest.SkipTest("no headers of torch 1.13 and compiler for them")
    source = os.path.join(ROOT, "python", "tests", "cuda_stub.cpp")
    made = os.path.join(BUILD, "python", "cuda_stub.so")
    with open(made + ".lock", "w") as lock:  # torch's headers take ten seconds: other tests that need it, too, wait for the first
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(made) or os.path.getmtime(made) < os.path.getmtime(source):
            part = f"{made}.{os.getpid()}"
            subprocess.run([compiler, "-std=c++17", "-O0", "-shared", "-fPIC", source, "-o", part, "-ltorch_cpu", "-lc10"], check=True)
            os.rename(part, made)
    return made
