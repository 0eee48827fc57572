"""What PyProf2 annotates programs with: by opscope.torch, which writes the same markers."""
from opscope_pyprof.annotate import add_wrapper, begin

__all__ = ["add_wrapper", "init"]


def init():
    begin("pyprof2", compat="pyprof")
