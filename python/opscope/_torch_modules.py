"""torch, imported when a profile needs it, not before. By name, so that type checkers of others need not read it."""
from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Optional


def torch() -> Any:
    return import_module("torch")


def torch_profiler() -> Any:
    return import_module("torch.autograd.profiler")


def accepts(function: Any, name: str) -> bool:
    import inspect

    return name in inspect.signature(function).parameters


def rules_of(version: Optional[str] = None) -> str:
    """The version of torch, among those whose rules the library has, that has made events as `version` does; None = the one that is loaded, or the newest."""
    if version is None:
        version = str(getattr(sys.modules.get("torch"), "__version__", "99.0"))
    numbers = tuple(int(n) if n.isdigit() else 0 for n in version.split("+")[0].split(".")[:2])
    return "torch-1.13" if numbers < (2,) else "torch-2.6" if numbers < (2, 7) else "torch-2.11" if numbers < (2, 13) else "torch-2.14"


def supported_activities() -> Any:
    """The activities that this torch can record."""
    return torch().autograd._supported_activities()


def end(inner: Any) -> Any:
    """Ends torch's profiler as its user would, so that whoever watches that sees it, but without its Python work; what C++ recorded."""
    inner._parse_kineto_results = lambda *result, **options: []
    inner.__exit__(None, None, None)
    return inner.kineto_results
