"""One recording of opscope.profile: its file, what it answers, and the handlers that keep it."""
from __future__ import annotations

import errno
import json
import os
from typing import TYPE_CHECKING, Any, Callable, Dict, FrozenSet, List, Optional, Tuple

from . import _core, _held
from ._direct import Written
from ._event import FunctionEventAvg
from ._events import Averages, Events, averages_of, stack_metrics
from .table import Table
from .trace import Path, Trace, load

if TYPE_CHECKING:
    from .profiler import profile


class Recording:
    """What was recorded from one start to one stop: one repeat of a schedule. All answers of torch's profiler, and prof.trace for the rest."""

    #: What it has not, and why, in a sentence each.
    unknown: Dict[str, str] = {}

    def __init__(self, path: str, rules: str, asked: FrozenSet[str], device: Optional[str] = None, bare: bool = False):
        #: The file that has it: a Kineto trace. It is deleted with the profile that made it.
        self.path = path
        #: The version of torch whose answers these are, as in --compat.
        self.compat = rules
        self.whole_us = rules == "torch-1.13"
        #: What was asked for: "record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules".
        self.asked = asked
        #: torch's name for the device that was recorded beside the CPU.
        self.use_device = device
        #: Whether it was recorded without Kineto: torch itself then writes a bare array of events.
        self.bare = bare
        #: Of a file that we wrote: where its events stand.
        self.written: Optional[Written] = None
        #: What the process held meanwhile, as far as Python knew; None = it was not followed.
        self.held: Optional[_held.Facts] = None
        self._pid = os.getpid()
        self._zero_ns: Optional[int] = None
        self._trace: Optional[Trace] = None
        self._events: Optional[Events] = None

    @property
    def trace(self) -> Trace:
        """The recording as an opscope.Trace: every report, findings, SQL, exports."""
        if self._trace is None:
            self._trace = load(self.path)
        return self._trace

    def ask(self, name: str, options: Dict[str, str]) -> Optional[_core.Table]:
        """A report by torch's rules. None where nothing was recorded: torch's answers are empty then, the library's an error."""
        try:
            return self.trace._profile.report(name, {**options, "compat": self.compat})
        except _core.Error as e:
            if e.code != "lacks":
                raise
            return None

    @property
    def zero_ns(self) -> int:
        """When the recording began, on the trace's clock."""
        if self._zero_ns is None:
            table = self.trace.sql("SELECT min(start_ns) AS zero FROM span WHERE kind = 'trace'")
            zero = table["zero"][0] if len(table) else None
            self._zero_ns = zero if isinstance(zero, int) else 0
        return self._zero_ns

    def events(self) -> Events:
        """All events, one by one."""
        if self._events is None:
            self._events = Events(self)
        return self._events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False) -> Averages:
        """Events added up by name, and by input shapes, the innermost N frames of the stack, the overload."""
        return Averages(self, group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def table(self, *arguments: Any, **keywords: Any) -> str:
        """key_averages().table(...)."""
        return self.key_averages().table(*arguments, **keywords)

    def total_average(self) -> FunctionEventAvg:
        """All events as one."""
        table = self.ask("total-average", {})
        if table is None:
            raise RuntimeError("nothing was recorded")
        return averages_of(table, self.whole_us, True)[0]

    @property
    def self_cpu_time_total(self) -> float:
        """Sum of the own times on the CPU, us."""
        return self.key_averages().self_cpu_time_total

    def report(self, name: str, **params: Any) -> Table:
        """Any report of opscope: see Trace.report."""
        return self.trace.report(name, **params)

    def advise(self, **params: Any) -> Table:
        """What keeps the run from being faster: see Trace.advise."""
        return self.trace.advise(**params)

    def drop(self) -> None:
        """Its file goes; a forked child leaves that of its parent."""
        if self._pid == os.getpid():
            os.unlink(self.path)

    def save(self, path: Path) -> None:
        """The whole recording as a file that every opscope command reads; as gzip if path ends in .gz."""
        _copy(self.path, os.fsdecode(path))

    def export_chrome_trace(self, path: Path) -> None:
        """The file that torch's export_chrome_trace writes: Kineto's own, or without Kineto the bare array; as gzip if path ends in .gz."""
        if self.bare:
            self.export_list(path)
        else:
            self.save(path)

    def export_list(self, path: Path) -> None:
        """The bare array that torch writes without Kineto."""
        self._export("chrome-list", path, compat=self.compat)

    def _export(self, name: str, path: Path, **params: Any) -> None:
        """Where the file cannot be written, torch's users expect an OSError."""
        try:
            self.trace.export(name, path, **params)
        except _core.Error as e:
            if e.code != "io":
                raise
            raise _os_error(os.fsdecode(path), str(e)) from None

    def export_stacks(self, path: Path, metric: str = "self_cpu_time_total") -> None:
        """Folded stacks for a flame graph. metric: self_cpu_time_total, or self_cuda_time_total and the like: the device's."""
        if "with_stack" not in self.asked:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.write_stacks(path, metric)

    def stack_metrics(self) -> List[str]:
        """What export_stacks takes."""
        return stack_metrics(self.compat)

    def write_stacks(self, path: Path, metric: str) -> None:
        if metric not in self.stack_metrics():
            raise ValueError("metric should be one of: " + str(self.stack_metrics()))
        self._export("stacks", path, compat=self.compat, metric=metric)

    def export_memory_timeline(self, path: Path, device: Optional[str] = None) -> None:
        """Memory by what it is used for, over time: .html is a page, .raw.json.gz every change, .json(.gz) sums. device: "cpu", "cuda:0"."""
        missing = [n for n in ("record_shapes", "profile_memory", "with_stack") if n not in self.asked]
        if missing:
            raise ValueError(f"{' '.join(missing)} required for memory profiling: profile({', '.join(m + '=True' for m in missing)})")
        name = os.fsdecode(path)
        form = "html" if name.endswith(".html") else "raw" if name.endswith((".raw.json", ".raw.json.gz")) else "json"
        where = None if device is None else device if device == "cpu" else device.rpartition(":")[2] if ":" in device else "0"
        self._export("memory-timeline", path, form=form, device=where)

    def __repr__(self) -> str:
        return f"<opscope.Recording {self.path!r}, {self.trace.events} events>"


def _os_error(path: str, text: str) -> OSError:
    """FileNotFoundError, IsADirectoryError or PermissionError where that is why, else with the number of the reason that the text ends with."""
    folder = os.path.dirname(os.path.abspath(path))
    reasons = ((errno.ENOENT, not os.path.isdir(folder)), (errno.EISDIR, os.path.isdir(path)), (errno.EACCES, not os.access(folder, os.W_OK)))
    told = next((n for n in errno.errorcode if text.endswith(": " + os.strerror(n))), errno.EIO)
    number = next((n for n, so in reasons if so), told)
    return OSError(number, text, path)


def _copy(source: str, path: str) -> None:
    import gzip
    import shutil

    if os.path.exists(path) and os.path.samefile(source, path):
        return
    out: Any = gzip.open(path, "wb") if path.endswith(".gz") else open(path, "wb")
    with open(source, "rb") as f, out:
        shutil.copyfileobj(f, out)


def join(recordings: List[Recording], path: str) -> Recording:
    """The events of all in one file, under the facts of the last."""
    last = recordings[-1]
    joined = Recording(path, last.compat, last.asked, last.use_device, last.bare)
    written = [(r.path, r.written) for r in recordings if r.written]
    if len(written) == len(recordings):
        _splice(written, path)
    else:
        _merge(recordings, path)
    facts = [r.held for r in recordings if r.held]
    if len(facts) == len(recordings):
        joined.held = _held.join(facts)
        _held.tell(path, joined.held)
    return joined


def _merge(recordings: List[Recording], path: str) -> None:
    """Of Kineto's own files, each of which has a clock of its own."""
    documents = []
    for r in recordings:
        with open(r.path, encoding="utf-8") as f:
            documents.append(json.load(f))
    documents[-1].pop(_held.KEY, None)
    base = int(documents[-1].get("baseTimeNanoseconds", 0))
    events = []
    for d in documents:
        later_us = (int(d.get("baseTimeNanoseconds", 0)) - base) / 1000
        for e in d["traceEvents"]:
            if later_us and "ts" in e:
                e["ts"] += later_us
            events.append(e)
    with open(path, "w", encoding="utf-8") as f:
        json.dump({**documents[-1], "traceEvents": events}, f)


def _splice(files: List[Tuple[str, Written]], path: str) -> None:
    """Of files that we wrote, which have one clock."""
    with open(path, "wb") as out:
        for i, (name, written) in enumerate(files):
            with open(name, "rb") as f:
                head, events = f.read(written.begin), f.read(written.end - written.begin)
                if i == 0:
                    out.write(head)
                else:
                    out.write(b",")
                out.write(events)
        out.write(b"\n]}\n")


def _handler(dir_name: Path, worker_name: Optional[str], suffix: str, write: Callable[[profile, str], None]) -> Callable[[profile], None]:
    def handle(prof: profile) -> None:
        import socket
        import time

        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        write(prof, os.path.join(os.fspath(dir_name), f"{worker}.{time.time_ns()}{suffix}"))
    return handle


def tensorboard_trace_handler(dir_name: Path, worker_name: Optional[str] = None, use_gzip: bool = False) -> Callable[[profile], None]:
    """on_trace_ready: each recording as torch's own handler writes it, DIR/WORKER.TIME.pt.trace.json."""
    return _handler(dir_name, worker_name, ".pt.trace.json" + ".gz" * use_gzip, lambda prof, path: prof.export_chrome_trace(path))


def trace_handler(dir_name: Path, worker_name: Optional[str] = None, use_gzip: bool = False) -> Callable[[profile], None]:
    """on_trace_ready: the same names, and all that was recorded: what prof.save writes. `opscope serve DIR` shows them side by side."""
    return _handler(dir_name, worker_name, ".pt.trace.json" + ".gz" * use_gzip, lambda prof, path: prof.recordings[-1].save(path))
