"""Jobs: one run on several ranks, each of which has a recording of its own."""
from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Optional, Type, Union

from . import _core, _html
from ._options import options
from ._progress import Progress, Told
from ._reports import Reports
from .table import Table

if TYPE_CHECKING:
    from .trace import Trace

# How many recordings a notebook lists.
_SHOWN = 8


class RankFile(NamedTuple):
    """A recording of a job: whose, and where it lies."""

    rank: int
    path: str


class Ranks(Mapping[int, "Trace"]):
    """The traces of a job by rank: job.ranks[3]. Each is read when it is first asked for, and kept until the job is closed."""

    def __init__(self, path: str, kept: bool, recordings: List[RankFile], params: Dict[str, Any], progress: Union[bool, Progress, None]) -> None:
        self._path = path
        self._kept = kept
        self._recordings = recordings
        self._params = params
        self._progress = progress
        self._open: Dict[int, Trace] = {}

    def __getitem__(self, rank: int) -> Trace:
        files = [f.path for f in self._recordings if f.rank == rank]
        if not files:
            raise KeyError(f"no rank {rank!r}; there are: {', '.join(str(r) for r in self)}")
        if self._kept:
            raise _core.Error(f"{self._path} keeps what reports of all ranks need, and no recordings: the folder of the ranks has those")
        if len(files) > 1:
            raise _core.Error(f"rank {rank} has {len(files)} recordings; opscope.load takes the path of one: {', '.join(files)}")
        if rank not in self._open or self._open[rank].closed:
            from .trace import load

            self._open[rank] = load(files[0], progress=self._progress, **self._params)
        return self._open[rank]

    def __iter__(self) -> Iterator[int]:
        return iter(dict.fromkeys(f.rank for f in self._recordings))

    def __len__(self) -> int:
        return len({f.rank for f in self._recordings})

    def __repr__(self) -> str:
        return f"<the ranks {', '.join(str(r) for r in self)}>"

    def _close(self) -> None:
        for trace in self._open.values():
            trace.close()
        self._open.clear()


class Job:
    """The ranks of one run. Made by opscope.load of a directory; a context manager that closes the traces of ranks that were asked for.

    Reports are those of all ranks together, as `opscope report NAME DIRECTORY` has them: ranks, collectives, stragglers, overlap, ...; of other reports, the means over the ranks, or
    with rank="all" the rows of each. Each report reads all recordings, several at a time, and holds none: `opscope import DIRECTORY -o job.opscope` makes a file that
    opscope.load takes in their place and that answers at once.
    """

    def __init__(self, job: _core.Job, path: str, params: Dict[str, Any], progress: Union[bool, Progress, None]) -> None:
        def told() -> Told:
            return Told(progress, os.path.basename(path.rstrip("/")) or path)

        def ask(name: str, given: Dict[str, Any]) -> _core.Table:
            with told() as function:
                return job.report(name, options(given), function)

        self._job = job
        self._told = told
        #: As given to load().
        self.path = path
        #: All recordings, by rank: of a rank there may be several.
        self.recordings: List[RankFile] = [RankFile(*r) for r in job.recordings]
        #: The trace of each rank.
        self.ranks = Ranks(self.path, self.kept, self.recordings, params, progress)
        #: Its reports: report("stragglers"), or report.stragglers(); a shell completes the names.
        self.report = Reports(ask)

    @property
    def kept(self) -> bool:
        """Whether it is kept in one file, without the recordings."""
        return self._job.kept

    def advise(self, **params: Any) -> Table:
        """Findings about the job, the worst first: for whom ranks wait, what of communication is transfer, and the findings of the ranks."""
        with self._told() as told:
            return Table(self._job.advise(options(params), told))

    def diff(self, other: Job, *, steps: Any = None, other_steps: Any = None, key_op: Any = None, **params: Any) -> Table:
        """What changed from this run to another one on several ranks: see Trace.diff. Waiting is told from transfer."""
        of_this, of_other = options({"steps": steps, "key_op": key_op}), options({"steps": other_steps, "key_op": key_op})
        return Table(self._job.diff(of_this, other._job, of_other, options(params)))

    def close(self) -> None:
        """Closes the traces of ranks that were asked for. The job can go on being asked."""
        self.ranks._close()

    def __len__(self) -> int:
        return len(self.ranks)

    def __enter__(self) -> Job:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], where: Optional[TracebackType]) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<opscope.Job {self.path!r}, {len(self)} ranks>"

    def _repr_html_(self) -> str:
        below = os.path.join(self.path, "")
        files = [(f"rank {f.rank}", f.path[len(below):] if f.path.startswith(below) else f.path) for f in self.recordings]
        more = len(files) - _SHOWN
        rows = [("ranks", f"{len(self)}")] + files[:_SHOWN] + ([("...", f"{more} more")] if more > 0 else [])
        return _html.facts(self.path, rows, _html.hint("`job.report.stragglers()`, `job.report.collectives()`, `job.advise()` are of all ranks; `job.ranks[0]` is the trace of one"))
