"""Where the GPU time of a deep-learning run went.

    import opscope
    print(opscope.advise("trace.json.gz"))           # findings: problem, evidence, what to do
    print(opscope.diff("before.json.gz", "after.json.gz").sections["verdict"])
    trace = opscope.load("trace.json.gz")            # also *.sqlite of Nsight Systems, .opscope, captures of `opscope record`
    trace.report("operators", group_by="shape").to_pandas()

Importing this costs a few milliseconds: neither torch nor pandas is imported before it is needed.
"""
from __future__ import annotations

import importlib
from typing import Any, Dict, List

from ._core import Error, version as __version__
from .table import Column, Table
from .trace import Problem, Report, Trace, advise, diff, load, reports

version = __version__

# Name -> the module of this package that has it, imported when the name is first asked for. A module stands for itself.
_LAZY: Dict[str, str] = {
    "torch": "torch",
    **dict.fromkeys(
        ["EnforceUnique", "EventList", "FunctionEvent", "FunctionEventAvg", "Kernel", "KinetoStepTracker", "MemRecordsAcc", "ProfilerAction", "Recording", "emit_itt", "emit_nvtx", "load_nvprof",
         "parse_nvprof_trace", "profile", "profiler", "record_function", "schedule", "supported_activities", "tensorboard_trace_handler", "trace_handler"],
        "profiler"),
    "on_demand": "_on_demand",
}

# The same of what imports torch at once: `from opscope import *` leaves it out.
_WITH_TORCH: Dict[str, str] = dict.fromkeys(["FlopCounterMode", "flops", "register_flop_formula"], "flops")

_TORCHS = ("DeviceType", "ExecutionTraceObserver", "ProfilerActivity", "itt", "kineto_available")  # torch's own, as torch.profiler has them

# Not `torch`: `from opscope import *` leaves PyTorch's alone.
__all__ = ["Column", "Error", "Problem", "Report", "Table", "Trace", "advise", "diff", "load", "reports", "version", *(n for n in _LAZY if n != "torch")]


def __getattr__(name: str) -> Any:
    if name in _TORCHS:
        return getattr(importlib.import_module(".profiler", __name__), name)
    place = _LAZY.get(name) or _WITH_TORCH.get(name)
    if place is None:
        raise AttributeError(f"module 'opscope' has no attribute {name!r}")
    module = importlib.import_module("." + place, __name__)
    value = module if place == name else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return sorted({*globals(), *_LAZY, *_WITH_TORCH, *_TORCHS})
