"""Keyword arguments as options of the command line."""
from __future__ import annotations

from typing import Any, Dict


def _value(name: str, value: Any) -> str:
    if isinstance(value, bool) or getattr(value, "dtype", None) == bool:  # also NumPy's
        return "1" if value else "0"
    if name == "steps" and isinstance(value, tuple) and len(value) == 2:
        first, last = ("" if v is None else str(v) for v in value)
        return f"{first}..{last}"
    if isinstance(value, (list, tuple)):
        return ",".join(str(v) for v in value)
    return str(value)


def options(given: Dict[str, Any]) -> Dict[str, str]:
    """Keyword arguments as options of the command line without dashes: group_by=["name", "shape"] is "group-by": "name,shape".

    None means not given. True and False are 1 and 0, steps=(5, 7) is 5..7.
    """
    return {name.replace("_", "-"): _value(name, value) for name, value in given.items() if value is not None}
