from pyprof.nvtx.nvmarker import add_wrapper as wrap, init

__all__ = ["init", "wrap"]
