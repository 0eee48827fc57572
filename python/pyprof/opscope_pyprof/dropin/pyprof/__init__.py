"""PyProf's module, by opscope: init() before the training loop, as with PyProf; wrap(owner, "name") for functions of one's own. What is written are PyProf's
markers, for `python -m pyprof.parse`, under nsys, nvprof or `opscope record`. Where nobody records, nothing is wrapped."""
from pyprof.nvtx import init, wrap

__all__ = ["init", "wrap"]
