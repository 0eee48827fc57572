"""opscope.profile(backend="opscope"): the process records itself, by the library that `opscope record` puts into programs.

What a recording holds is what opscope.torch says of the program: calls with shapes and lines, layers, steps, record_function; and with CUDA the work of the
device. Under `opscope record` no second capture is made: the profile marks its steps in the one that runs, which has the answers.
"""
from __future__ import annotations

import errno
import glob
import os
import shutil
import tempfile
import warnings
import weakref
from contextlib import suppress
from importlib import import_module
from typing import Any, Callable, Dict, FrozenSet, Iterable, List, Optional, Tuple, TypeVar

from . import _annotate
from ._event import FunctionEvent, FunctionEventAvg
from ._events import Averages, Events
from ._recorder import Asked, Recorder
from ._recording import Recording
from ._torch_modules import torch
from .trace import Path

#: What such a recording has not, and why: the values say it in a sentence.
UNKNOWN = {
    "memory": "unknown, because opscope's own library is not told of torch's allocations; profile(profile_memory=True) with backend='torch' is",
    "times of coroutines": "own and device times of a record_function that is open while others run on its thread, in a coroutine or generator, are unknown, because "
                           "nobody says which ops are its own; how long it took (cpu_time_total) is right",
    "overload names": "unknown, because functions of Python are recorded, not what torch's dispatcher chose for them",
}
#: Whose answers are given unless compat= says: the newest, whose times are not cut to whole microseconds.
RULES = "torch-2.14"
TIMES_OF_COROUTINES = ("self_cpu_time_total", "device_time_total", "self_device_time_total")
MEMORY = ("cpu_memory_usage", "self_cpu_memory_usage", "device_memory_usage", "self_device_memory_usage")


# --- what a recording answers ---

Answer = TypeVar("Answer", FunctionEvent, FunctionEventAvg)


class OwnEvents(Events):
    def _event(self, i: int) -> FunctionEvent:
        return _without_unknown(super()._event(i))


class OwnAverages(Averages):
    def table(self, sort_by: Optional[str] = None, *arguments: Any, **keywords: Any) -> str:
        """The text that torch's table() gives: arguments as there."""
        if sort_by is not None and sort_by.endswith("memory_usage"):
            raise ValueError(f"sort_by={sort_by!r}: {UNKNOWN['memory']}")
        return super().table(sort_by, *arguments, **keywords)

    def _make(self) -> List[FunctionEventAvg]:
        return [_without_unknown(a) for a in super()._make()]


def _without(event: Answer, names: Tuple[str, ...]) -> Answer:
    for name in names:
        setattr(event, name, None)
    return event


def _without_unknown(event: Answer) -> Answer:
    return _without(event, MEMORY + TIMES_OF_COROUTINES if event.is_async else MEMORY)


class OwnRecording(Recording):
    """A capture of opscope's own library: a segment, or a folder of several. What torch's profiler would know and this does not is None: see `unknown`."""

    unknown = UNKNOWN

    def events(self) -> Events:
        if self._events is None:
            self._events = OwnEvents(self)
        return self._events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False) -> Averages:
        if group_by_overload_name:
            raise ValueError(f"group_by_overload_name: {UNKNOWN['overload names']}")
        return OwnAverages(self, group_by_input_shape, group_by_stack_n)

    def total_average(self) -> FunctionEventAvg:
        return _without(super().total_average(), MEMORY)

    def save(self, path: Path) -> None:
        """The segment, as every opscope command reads it; a Chrome trace if path ends in .json or .gz. With acc_events a folder of segments."""
        if os.fspath(path).endswith((".json", ".gz")):
            self.export_chrome_trace(path)
        elif os.path.isdir(self.path):
            shutil.copytree(self.path, path)
        else:
            shutil.copyfile(self.path, path)

    def export_chrome_trace(self, path: Path) -> None:
        """As a Chrome trace: made of the capture, not by torch; as gzip if path ends in .gz."""
        self.trace.export("chrome", path)

    def export_memory_timeline(self, path: Path, device: Optional[str] = None) -> None:
        raise ValueError(f"memory timeline: {UNKNOWN['memory']}")


# --- what records ---


def find_library() -> str:
    """The library that records: OPSCOPE_INJECT, else in the wheel, in the build tree, where it is installed."""
    name, package = "libopscope-inject.so", os.path.dirname(os.path.abspath(__file__))
    given = os.environ.get("OPSCOPE_INJECT")
    places = [given] if given else [os.path.join(folder, name) for folder in (
        os.path.join(package, "bin"), os.path.normpath(os.path.join(package, "..", "..", "collect")), _annotate.library_folder) if folder]
    for place in places:
        if os.path.isfile(place):
            return os.path.abspath(place)
    raise FileNotFoundError(errno.ENOENT, f"{name} was not found, which records inside the program; looked for {', '.join(places)}")


class _Annotated:
    """opscope.torch.init() for as long as a profile wants it. Where the program has called it, it stays as the program wants it."""

    def __init__(self) -> None:
        self._ours: Optional[Dict[str, Any]] = None  # options that were set here; when others, or the program's own, are set, these stay
        self._before: Optional[Dict[str, Any]] = None

    def open(self, stacks: bool) -> None:
        module = import_module("opscope.torch")
        if module._state.patches:
            return
        self._before = module._state.options  # of an init() that found no listener
        # Ranges of NVTX are not in the capture: hooks link backward work.
        wanted = {"stacks": stacks} if self._before is None or self._before["compat"] else self._before
        module.init(**{**wanted, "links": "hooks", "force": True})
        self._ours = module._state.options

    def close(self) -> None:
        if self._ours is None:
            return
        module, ours, before = import_module("opscope.torch"), self._ours, self._before
        self._ours = self._before = None
        if module._state.options is not ours:
            return
        module.close()
        if before is not None:
            module.init(**before)

    @staticmethod
    def tell_again() -> None:
        """Facts about the program that were told before the capture began."""
        for fact in sorted(import_module("opscope.torch")._state.facts):
            _annotate.push(fact)
            _annotate.pop()


class Capture:
    """The captures of one profile; what has to go when it is gone."""

    running: Optional[Capture] = None  # of the process

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.folder: Optional[str] = None
        self.number = 0

    def inside(self, name: str) -> str:
        """A new folder in that of the profile."""
        if self.folder is None:
            self.folder = tempfile.mkdtemp(prefix="opscope-profile-")
        path = os.path.join(self.folder, name)
        os.mkdir(path)
        return path

    def begin(self) -> str:
        """The folder that will have the segment."""
        library = find_library()
        self.number += 1
        folder = self.inside(str(self.number))
        try:
            _annotate.capture_begin(library, folder, 0, False)
        except OSError as e:
            if e.errno in (errno.EALREADY, errno.EBUSY):
                raise RuntimeError("a capture of this process goes on already: one at a time, of one profile(backend='opscope')") from None
            raise
        Capture.running = self
        return folder

    def end(self) -> None:
        if Capture.running is not self:
            return
        try:
            _annotate.capture_end()
        except OSError as e:
            if e.errno != errno.EBUSY:  # else it goes on
                Capture.running = None
            raise
        Capture.running = None

    def close(self) -> None:
        """A forked child leaves all to its parent."""
        if os.getpid() == self.pid:
            try:
                self.end()
            finally:
                if self.folder is not None:
                    shutil.rmtree(self.folder, ignore_errors=True)


def _drop(capture: Capture, annotated: _Annotated) -> None:
    """A profile that is gone, stopped or not."""
    try:
        annotated.close()
    finally:
        capture.close()


def _forked() -> None:
    """In a child: the capture is the parent's, and nobody listens here."""
    if Capture.running is not None:
        Capture.running = None
        with suppress(OSError):
            _annotate.capture_end()


os.register_at_fork(after_in_child=_forked)


class _Step:
    """The range of a step."""

    def __init__(self, number: int):
        self._text = f"ProfilerStep#{number}"

    def __enter__(self) -> None:
        _annotate.push(self._text)
        self._depth = _annotate.open()

    def cut(self) -> None:
        """What ends it is the end of the profile. What the program has opened in it is not told so."""
        if _annotate.open() == self._depth:
            _annotate.cut()

    def __exit__(self, *unused: Any) -> None:
        _annotate.pop()


class OwnRecorder(Recorder):
    """opscope's own library, in this process."""

    name = "opscope's own library"
    trace_id: Optional[str] = None
    trace_id_callback: Optional[Callable[[], str]] = None

    def __init__(self, asked: Asked):
        self.asked = asked
        self._flags: FrozenSet[str] = asked.flags
        self._annotated = _Annotated()
        self._capture = Capture()
        self._prepared = False
        self._begun: Optional[str] = None  # the folder of the capture that goes on
        self._under: Optional[str] = None  # that of the `opscope record` which records this process
        weakref.finalize(self, _drop, self._capture, self._annotated)
        if "profile_memory" in asked.flags:
            warnings.warn(f"profile_memory: {UNKNOWN['memory']}", stacklevel=3)
        if asked.config is not None:
            warnings.warn("experimental_config has no effect with backend='opscope': torch's profiler does not run", stacklevel=3)

    @property
    def ready(self) -> bool:
        return self._prepared

    def open(self) -> None:
        if self._is_parents():
            self._capture = Capture()
            weakref.finalize(self, self._capture.close)
        listener = _annotate.listener()
        if listener == "nvtx":
            raise RuntimeError("another tool records this process already (NVTX_INJECTION64_PATH): only one can")
        if listener == "opscope" and Capture.running is None:
            self._under = os.environ.get("OPSCOPE_DIR", "?")
            warnings.warn(f"{self.why_nothing()}; on_trace_ready is not called", stacklevel=3)
        self._annotated.open("with_stack" in self._flags or "with_modules" in self._flags)

    def close(self) -> None:
        self._annotated.close()

    def _is_parents(self) -> bool:
        """This is a forked child, in which the profile was not begun: what goes on is the parent's."""
        return self._capture.pid != os.getpid()

    def why_nothing(self) -> Optional[str]:
        if self._is_parents():
            return "this process was forked while the profile went on: it is the parent's, and nothing is recorded here until start() is called here"
        if self._under is None:
            return None
        return ("this process runs under `opscope record`: the profile marks its steps in that capture and makes none of its own; "
                f"opscope.load({self._under!r}) has the answers")

    def step(self, number: int) -> _Step:
        return _Step(number)

    def cut(self, step: _Step) -> None:
        step.cut()

    def prepare(self) -> None:
        self._prepared = True

    def forget(self) -> bool:
        self._prepared = False
        return True

    def start(self) -> None:
        try:
            if self._under is None and not self._is_parents():
                self._initialise_devices()
                self._begun = self._capture.begin()
                self._annotated.tell_again()
            if self.asked.observer:
                self.asked.observer.start()
        except BaseException:
            self._prepared = False
            if self._begun is not None:
                self._begun = None
                self._capture.end()
            raise

    def _wants_cuda(self) -> bool:
        return any(a.name == "CUDA" for a in self.asked.activities)

    def _initialise_devices(self) -> None:
        """CUPTI is asked when the capture begins; a process that comes to CUDA later would not be seen."""
        if self._wants_cuda() and torch().cuda.is_available():
            torch().cuda.init()

    def _wait_for_devices(self) -> None:
        """Work that was launched in a window belongs to it, also if it ends later; torch's profiler waits, too. A device that the process does not use
        gets no context for that, and a graph that is being captured would be spoilt."""
        cuda, has_context = torch().cuda, getattr(torch()._C, "_cuda_hasPrimaryContext", None)
        if not self._wants_cuda() or not cuda.is_initialized() or getattr(cuda, "is_current_stream_capturing", bool)():
            return
        try:
            for device in filter(has_context, range(cuda.device_count())) if has_context else (None,):
                cuda.synchronize(device)
        except RuntimeError as e:
            warnings.warn(f"the device could not be waited for: work that had not ended is not recorded: {e}", stacklevel=6)

    def stop(self) -> Optional[Recording]:
        folder, self._begun, was_ready, self._prepared = self._begun, None, self._prepared, False
        if was_ready and self.asked.observer:
            self.asked.observer.stop()
        if folder is None or self._is_parents():
            return None
        try:
            self._wait_for_devices()
        finally:
            self._capture.end()
        segments = glob.glob(os.path.join(glob.escape(folder), "*.seg"))
        if not segments:
            raise FileNotFoundError(errno.ENOENT, "what was recorded is gone: its folder was removed meanwhile", folder)
        return OwnRecording(segments[0], self.asked.compat or RULES, self._flags)

    def join(self, recordings: List[Recording]) -> Recording:
        """All segments in one folder are one run."""
        folder = self._capture.inside(f"all-{self._capture.number}")
        try:
            for r in recordings:
                os.link(r.path, os.path.join(folder, os.path.basename(r.path)))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return OwnRecording(folder, recordings[-1].compat, self._flags)

    def toggle(self, enable: bool, activities: Iterable[Any]) -> None:
        raise RuntimeError("backend='opscope' cannot: torch's profiler does not run")

    def add_metadata_json(self, key: str, value: str) -> None:
        warnings.warn(f"metadata {key!r}: a capture of opscope's own library has no place for it", stacklevel=4)
