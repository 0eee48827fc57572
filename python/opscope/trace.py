"""Traces: read once, asked many times."""
from __future__ import annotations

import os
from collections import Counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Tuple, Type, Union

from . import _core, _html
from ._options import options
from ._plot import Plots
from ._progress import Progress, Told
from ._reports import Reports
from .job import Job
from .table import Table

if TYPE_CHECKING:
    import pandas

Path = Union[str, "os.PathLike[str]"]


class Problem(NamedTuple):
    """Something odd about an input. severity: 0 worth knowing, 1 was wrong and has been repaired, 2 something could not be used."""

    text: str
    times: int
    severity: int


def _gpus(overview: Table) -> List[str]:
    """ "2 x NVIDIA A100-SXM4-80GB", ... of those that did work. """
    devices = overview.sections.get("devices")
    names = Counter(str(r["name"] or "unknown") for r in devices or [] if r["busy_pct"])
    return [f"{n} x {name}" if n > 1 else name for name, n in names.items()]


def _step_time(overview: Table) -> List[Tuple[str, str]]:
    """What the shares are of: "average step time", or of a trace without steps "time looked at"."""
    return [(str(row["role"]).lower(), f"{row['mean_ns'] / 1e6:,.3f} ms") for row in overview[:1] if isinstance(row["mean_ns"], (int, float))]


class Trace:
    """What a trace holds. Made by opscope.load; a context manager that closes it.

    Several threads may ask one trace at the same time: other Python code runs meanwhile, the reports take turns.
    """

    def __init__(self, profile: _core.Profile, path: str):
        self._profile = profile
        #: As given to load().
        self.path = path
        # Attributes, not properties: shells do not run those to complete what is behind them.
        #: Its reports: report("operators", limit=10), or report.operators(limit=10); a shell completes the names.
        self.report = Reports(lambda name, params: profile.report(name, options(params)))
        #: Pictures: plot.timeline(), plot.roofline(), plot.memory().
        self.plot = Plots(profile, path, self.report)

    @property
    def format(self) -> str:
        """Name of the input's format: "kineto", "nsys", ..."""
        return self._profile.format

    @property
    def n_events(self) -> int:
        """How many events the input held, of all kinds."""
        return self._profile.n_events

    @property
    def problems(self) -> List[Problem]:
        """What was odd about the input. Reports may find more."""
        return [Problem(*p) for p in self._profile.problems]

    def event_table(self, **params: Any) -> Table:
        """A row for each range of the host and each piece of device work: what `events` is made of. steps, key_op, aggregation, and sort, filter, columns, limit."""
        return Table(self._profile.event_list(options(params)))

    @property
    def events(self) -> pandas.DataFrame:
        """A row for each range of the host and each piece of device work, in order of start: name, kind, category, start_ns, duration_ns, step, op, module, thread, device, stream, ...

        Each time a new frame: keep it. parent, call and op_event are rows of the same frame. frame.attrs["help"] says what each column is.
        """
        return self.event_table().to_pandas()

    @property
    def steps(self) -> pandas.DataFrame:
        """A row for each step: the report "steps". Each time a new frame."""
        return self.report("steps").to_pandas()

    @property
    def kernels(self) -> pandas.DataFrame:
        """A row for each kernel by name: the report "kernels". Each time a new frame; `events` has each launch."""
        return self.report("kernels").to_pandas()

    @property
    def ops(self) -> pandas.DataFrame:
        """A row for each operator by name: the report "operators". Each time a new frame; `events` has each call."""
        return self.report("operators").to_pandas()

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
        return f"<opscope.Trace {self.path!r}{', closed' if self.closed else f', {self.format}, {self.n_events} events'}>"

    def _repr_html_(self) -> str:
        if self.closed:
            return _html.facts(self.path, [("state", "closed")])
        rows = [("format", self.format), ("events", f"{self.n_events:,}")]
        shares = ""
        try:
            overview = self.report("overview")
        except _core.Error as e:
            rows.append(("overview", str(e)))
        else:
            rows += [("GPUs", ", ".join(gpus))] if (gpus := _gpus(overview)) else []
            rows += _step_time(overview)
            shares = _html.bar([(str(r["role"]), float(r["share_pct"] or 0)) for r in list(overview)[1:]])
        odd = [p for p in self.problems if p.severity]
        rows += [("problems", f"{len(odd)}: {odd[0].text}")] if odd else []
        return _html.facts(self.path, rows, shares, _html.hint("`trace.advise()` says what to do; `trace.report.` and the tab key list the reports; `trace.events` is a frame"))


_ADDRESSES = ("https://", "http://", "s3://", "gs://", "az://")


def _shown(name: str) -> str:
    """The name without what an address hides: its query and password."""
    if name.startswith("http"):
        scheme, rest = name.split("://", 1)
        host, slash, below = rest.split("?", 1)[0].split("#", 1)[0].partition("/")
        return f"{scheme}://{host.rpartition('@')[2]}{slash}{below}"
    return name.rpartition("?")[0] if name.startswith("az://") and "sig=" in name.rpartition("?")[2] and "?" in name else name


def load(path: Path, *, progress: Union[bool, Progress, None] = None, **params: Any) -> Union[Trace, Any]:
    """Reads a trace: a file of any format that opscope knows, told by its content; a directory in which there is one; an address (s3://, https://, ...); "-" for standard input.

    A directory with the ranks of one job, and the file that `opscope import DIRECTORY` made of one, give a Job. (To a type checker the result is a Trace: isinstance(x, opscope.Job)
    tells.) input_format, capture (a trace of the capture of its graphs, or a folder of such), provenance (what torch.compile wrote down: a log of TORCH_TRACE, or a folder),
    execution_trace, counters (CSV of Nsight Compute), as_written (a bool), gpu ("H100 80GB HBM3"), rules and kernel_rules (files of your own, for this trace alone), threads
    (read on so many; else one a processor), memory ("1G": what the process keeps of large traces in memory from then on; the rest lies in a file), and, where the directory holds
    several: run, worker, span, rank. progress: True shows how far reading is, a function is called with the bytes that were read and those that there are (0: not known).
    OSError when there is no such file, Error when it is no trace. Ctrl-C ends the wait.
    """
    name = os.fspath(path)
    address = name.startswith(_ADDRESSES)
    if name != "-" and not address:
        os.stat(name)
    shown = _shown(name) if address else name
    if params.get("rank") is None and name != "-" and (not address or name.endswith("/")):
        job = _core.open_job(name, options(params))
        if job is not None:
            return Job(job, shown, {k: v for k, v in params.items() if k not in _CHOOSE}, progress)
    with Told(progress, os.path.basename(shown.rstrip("/")) or shown) as told:
        return Trace(_core.open(name, options(params), told), shown)


# What load() takes, beside the path.
_OF_INPUTS = frozenset({"input_format", "capture", "provenance", "execution_trace", "counters", "as_written", "gpu", "rules", "kernel_rules", "threads", "memory", "run", "worker", "span", "rank", "progress"})
_CHOOSE = frozenset({"run", "worker", "span", "rank"})


def advise(trace: Union[Trace, Job, Path], **params: Any) -> Table:
    """Findings about a trace or a job, or about the file or folder of one: see Trace.advise. A file may have the options of load(), too."""
    if isinstance(trace, (Trace, Job)):
        return trace.advise(**params)
    of_input = {name: value for name, value in params.items() if name in _OF_INPUTS}
    with load(trace, **of_input) as opened:
        findings: Table = opened.advise(**{name: value for name, value in params.items() if name not in _OF_INPUTS})
        return findings


def diff(a: Union[Trace, Job, Path], b: Union[Trace, Job, Path], **params: Any) -> Table:
    """What changed from run a to run b, two traces, two jobs, or their files or folders: see Trace.diff. Files may have the options of load(), too."""
    of_input = {name: value for name, value in params.items() if name in _OF_INPUTS}
    of_diff = {name: value for name, value in params.items() if name not in _OF_INPUTS}
    opened: List[Any] = []
    try:
        for x in (a, b):
            opened.append(x if isinstance(x, (Trace, Job)) else load(x, **of_input))
        if type(opened[0]) is not type(opened[1]):
            raise _core.Error(f"{opened[0].path}, {opened[1].path}: two traces or two jobs were expected, not one of each; `opscope diff A B` takes both")
        found: Table = opened[0].diff(opened[1], **of_diff)
        return found
    finally:
        for given, trace in zip((a, b), opened):
            if trace is not given:
                trace.close()
