"""Reports by name: `trace.report("operators")`, and as attributes, so that a shell completes them."""
from __future__ import annotations

from functools import lru_cache
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

from . import _core
from .table import Table


class Report(NamedTuple):
    """A report there is. The first of group_by is the default; compat names predecessors whose numbers it can give."""

    name: str
    title: str
    help: str
    group_by: Tuple[str, ...]
    compat: Tuple[str, ...]


@lru_cache(maxsize=None)
def _known() -> Dict[str, Report]:
    return {name: Report(name, title, text, tuple(group_by), tuple(compat)) for name, title, text, group_by, compat in _core.reports()}


def reports() -> List[Report]:
    """The reports there are."""
    return list(_known().values())


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, _known(), 1)
    return f", did you mean '{near[0]}'?" if near else "; opscope.reports() lists them"


def _described(report: Report) -> str:
    choices = [f"group_by: {', '.join(report.group_by)}" if report.group_by else "", f"compat: {', '.join(report.compat)}" if report.compat else ""]
    return "\n\n".join(t for t in (report.title + ".", report.help, *choices) if t)


class Reports:
    """The reports of a trace or job: `trace.report("key-averages", group_by="name")`, or `trace.report.key_averages(group_by="name")`.

    One table: what `opscope report NAME` prints, with its options as keywords: group_by, compat, per ("total", "step" or "call"), steps ("5..7", 6 or (5, 7)), key_op, device,
    aggregation, top_level (a bool); and of the table: sort ("-calls"), filter, columns, limit, title, time_unit, max_width. opscope.reports() lists the reports. Error when there
    is no such report or the trace lacks what it is about.
    """

    def __init__(self, ask: Callable[[str, Dict[str, Any]], _core.Table]) -> None:
        self._ask = ask

    def __call__(self, name: str, **params: Any) -> Table:
        if not isinstance(name, str):
            raise TypeError(f"report: a name was expected, not {name!r}")
        known = name.replace("_", "-")
        if known not in _known():
            raise _core.Error(f"no report '{name}'{_nearest(known)}")
        return Table(self._ask(known, params))

    def __getattr__(self, name: str) -> Callable[..., Table]:
        known = name.replace("_", "-")
        if "-" in name or known not in _known():
            raise AttributeError(f"no report '{name}'{_nearest(known)}")

        def ask(**params: Any) -> Table:
            return self(known, **params)

        ask.__name__ = ask.__qualname__ = name
        ask.__doc__ = _described(_known()[known])
        return ask

    def __dir__(self) -> List[str]:
        return [name.replace("-", "_") for name in _known()]

    def __repr__(self) -> str:
        return f"<the reports: {', '.join(dir(self))}>"
