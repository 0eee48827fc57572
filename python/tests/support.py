"""What the tests of the package use: the package that is to be tested, the program to compare it with, TAP.

The package is the one that Python finds: PYTHONPATH=BUILD/python, or what is installed. Everything else is tests/oracle/oracle.py's.
"""
import os
import sys

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

RESNET = os.path.join(ROOT, "tests", "data", "torch214_cpu_resnet.json.gz")


def csv(*args):
    """What the program prints with --format=csv, as text."""
    code, out, err = oracle.run(*args, "--format=csv")
    if code:
        raise AssertionError(f"{args}: exit {code}: {err.decode(errors='replace')}")
    return out.decode()
