"""What every test of the house uses: the tests' own main, and the root of the tree."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "oracle"))
from oracle import ROOT, absent, main  # noqa: E402,F401


def read(*parts):
    with open(os.path.join(ROOT, *parts), encoding="utf-8") as f:
        return f.read()
