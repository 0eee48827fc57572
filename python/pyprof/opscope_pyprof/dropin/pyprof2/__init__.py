"""PyProf2's module, by opscope: see pyprof. Its two programs lie in parse/parse.py and prof/prof.py, as PyProf2's do."""
from pyprof2.nvtx.nvmarker import add_wrapper as wrap, init

__all__ = ["init", "wrap"]
