"""Traces: read once, asked many times."""
from __future__ import annotations

import os
from types import TracebackType
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Type, Union

from . import _core
from .table import Table

Path = Union[str, "os.PathLike[str]"]


class Problem(NamedTuple):
    """Something odd about an input. severity: 0 worth knowing, 1 was wrong and has been repaired, 2 something could not be used."""

    text: str
    times: int
    severity: int


class Report(NamedTuple):
    """A report there is. The first of group_by is the default; compat names predecessors whose numbers it can give."""

    name: str
    title: str
    help: str
    group_by: Tuple[str, ...]
    compat: Tuple[str, ...]


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


class Trace:
    """What a trace holds. Made by opscope.load; a context manager that closes it.

    Several threads may ask one trace at the same time: other Python code runs meanwhile, the reports take turns.
    """

    def __init__(self, profile: _core.Profile, path: str):
        self._profile = profile
        #: As given to load().
        self.path = path

    @property
    def format(self) -> str:
        """Name of the input's format: "kineto", "nsys", ..."""
        return self._profile.format

    @property
    def events(self) -> int:
        """How many events the input held."""
        return self._profile.events

    @property
    def problems(self) -> List[Problem]:
        """What was odd about the input. Reports may find more."""
        return [Problem(*p) for p in self._profile.problems]

    def report(self, name: str, **params: Any) -> Table:
        """One table: what `opscope report NAME` prints, with its options as keywords.

        group_by, compat, per ("total", "step" or "call"), steps ("5..7", 6 or (5, 7)), key_op, device, aggregation, top_level (a bool);
        and of the table: sort ("-calls"), filter, columns, limit, title, time_unit, max_width. opscope.reports() lists the reports. Error when there
        is no such report or the trace lacks what it is about.
        """
        if not isinstance(name, str):
            raise TypeError(f"report: a name was expected, not {name!r}")
        known = name.replace("_", "-")
        if known not in (names := [r[0] for r in _core.reports()]):
            raise _core.Error(f"no report '{name}'{_nearest(known, names)}")
        return Table(self._profile.report(known, options(params)))

    def advise(self, **params: Any) -> Table:
        """Findings, the worst first: problem, evidence, what to do, the most it can gain. compat="dlprof" or "torch" gives theirs."""
        return Table(self._profile.advise(options(params)))

    def diff(self, other: Trace, *, steps: Any = None, other_steps: Any = None, key_op: Any = None, **params: Any) -> Table:
        """What changed from this run to another, as terms that add up to the difference of their steps; the section "verdict" says it in a sentence.

        by="term", "module", "op", "kernel" or "line"; force=True compares runs that have little in common, too. steps are of this run, other_steps of the other.
        """
        this = options({"steps": steps, "key_op": key_op})
        return Table(self._profile.diff(this, other._profile, options({"steps": other_steps, "key_op": key_op}), options(params)))

    def sql(self, query: str, **params: Any) -> Table:
        """A SELECT over the events and all reports; see `opscope sql --help`.

        Of columns with one name the second is "name:1", and so on. Infinite numbers are None.
        """
        return Table(self._profile.sql(query, options(params)))

    def export(self, format: str, path: Path, **params: Any) -> List[str]:
        """A file for another program, as `opscope export FORMAT`: "chrome", "stacks", "flamegraph", ...; as gzip if path ends in .gz.

        Returns what the file lacks, and why. "chrome" copies a Kineto trace event by event only if it was loaded with as_written=True.
        """
        notes = self._profile.export(format, path, options(params))
        return notes.split("\n") if notes else []

    def close(self) -> None:
        """Gives its memory back, once the calls of other threads are done. Tables made of it stay."""
        self._profile.close()

    @property
    def closed(self) -> bool:
        return self._profile.closed

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], where: Optional[TracebackType]) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<opscope.Trace {self.path!r}{', closed' if self.closed else f', {self.format}, {self.events} events'}>"


def _nearest(name: str, names: List[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, names, 1)
    return f", did you mean '{near[0]}'?" if near else "; opscope.reports() lists them"


_ADDRESSES = ("https://", "http://", "s3://", "gs://", "az://")


def _shown(name: str) -> str:
    """The name without what an address hides: its query and password."""
    if name.startswith("http"):
        scheme, rest = name.split("://", 1)
        host, slash, below = rest.split("?", 1)[0].split("#", 1)[0].partition("/")
        return f"{scheme}://{host.rpartition('@')[2]}{slash}{below}"
    return name.rpartition("?")[0] if name.startswith("az://") and "sig=" in name.rpartition("?")[2] and "?" in name else name


def load(path: Path, **params: Any) -> Trace:
    """Reads a trace: a file of any format that opscope knows, told by its content; a directory in which there is one; an address (s3://, https://, ...); "-" for standard input.

    input_format, capture (a trace of the capture of its graphs, or a folder of such), provenance (what torch.compile wrote down: a log of TORCH_TRACE, or a folder), counters (CSV of Nsight Compute), as_written (a bool), gpu ("H100 80GB HBM3"), rules and kernel_rules (files of your own, for this trace alone), and, where the directory holds
    several: run, worker, span, rank. OSError when there is no such file, Error when it is no trace. Ctrl-C ends the wait.
    """
    name = os.fspath(path)
    address = name.startswith(_ADDRESSES)
    if name != "-" and not address:
        os.stat(name)
    return Trace(_core.open(name, options(params)), _shown(name) if address else name)


# What load() takes, beside the path.
_OF_INPUTS = frozenset({"input_format", "capture", "provenance", "execution_trace", "counters", "as_written", "gpu", "rules", "kernel_rules", "run", "worker", "span", "rank"})


def advise(trace: Union[Trace, Path], **params: Any) -> Table:
    """Findings about a trace, or about the file of one: see Trace.advise. A file may have the options of load(), too."""
    if isinstance(trace, Trace):
        return trace.advise(**params)
    of_input = {name: value for name, value in params.items() if name in _OF_INPUTS}
    with load(trace, **of_input) as opened:
        return opened.advise(**{name: value for name, value in params.items() if name not in _OF_INPUTS})


def diff(a: Union[Trace, Path], b: Union[Trace, Path], **params: Any) -> Table:
    """What changed from run a to run b, traces or the files of some: see Trace.diff. Files may have the options of load(), too."""
    of_input = {name: value for name, value in params.items() if name in _OF_INPUTS}
    of_diff = {name: value for name, value in params.items() if name not in _OF_INPUTS}
    opened: List[Trace] = []
    try:
        for x in (a, b):
            opened.append(x if isinstance(x, Trace) else load(x, **of_input))
        return opened[0].diff(opened[1], **of_diff)
    finally:
        for given, trace in zip((a, b), opened):
            if trace is not given:
                trace.close()


def reports() -> List[Report]:
    """The reports there are."""
    return [Report(name, title, text, tuple(group_by), tuple(compat)) for name, title, text, group_by, compat in _core.reports()]
