"""torch.profiler's interface with opscope behind it: torch records, the C library does everything after that.

    with opscope.profile(record_shapes=True) as prof:
        train()
    print(prof.key_averages().table(sort_by="self_cpu_time_total"))   # the text that torch prints, many times sooner

Arguments, methods and texts are those of torch.profiler.profile and torch.autograd.profiler.profile. Each repeat of a schedule is kept: prof.recordings
has them all, prof itself answers for the newest. What a recording holds is more than torch's own answers: prof.trace is an opscope.Trace.

torch is imported when a profile begins, not before.

Here is the profile itself; when it records is _schedule's, torch's profiler below it _recorder's, a recording and its answers _recording's and _events'.
"""
from __future__ import annotations

import json
import os
import warnings
from importlib import import_module
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple, Type

from . import _profiler
from ._event import FunctionEvent, FunctionEventAvg, Kernel
from ._events import Averages, EventList, Events, NvprofEvents
from ._ranges import emit_itt, emit_nvtx, record_function
from ._recorder import FLAGS, Asked, Recorder, choose_devices, parse_activities
from ._records import EnforceUnique, MemRecordsAcc
from ._recording import Recording, tensorboard_trace_handler, trace_handler
from ._reports import reports
from ._schedule import EXIT, KinetoStepTracker, ProfilerAction, action_of, always, schedule
from ._torch_modules import accepts, supported_activities, torch, torch_profiler
from .table import Table
from .trace import Path, Trace, load

__all__ = [
    "EnforceUnique", "EventList", "FunctionEvent", "FunctionEventAvg", "Kernel", "KinetoStepTracker", "MemRecordsAcc", "ProfilerAction", "Recording", "emit_itt", "emit_nvtx", "load_nvprof",
    "parse_nvprof_trace", "profile", "record_function", "schedule", "supported_activities", "tensorboard_trace_handler", "trace_handler",
]

# What torch.profiler has beside its own classes: torch's, so that they are imported when they are asked for. Some had another name once.
TORCHS = {"DeviceType": "", "ExecutionTraceObserver": "ExecutionGraphObserver", "ProfilerActivity": "", "itt": "", "kineto_available": ""}


def __getattr__(name: str) -> Any:
    if name not in TORCHS:
        raise AttributeError(f"module 'opscope.profiler' has no attribute {name!r}")
    module = import_module("torch.profiler")
    for known in (name, TORCHS[name]):
        if known and hasattr(module, known):
            return getattr(module, known)
    raise AttributeError(f"torch {torch().__version__} has no torch.profiler.{name}")


# Who records, by profile(backend=...): the module of this package, and the class in it, which is a _recorder.Recorder.
BACKENDS = {"torch": ("._recorder", "TorchRecorder"), "opscope": ("._own", "OwnRecorder")}


def _recorder_of(backend: str) -> Type[Recorder]:
    if backend not in BACKENDS:
        raise ValueError(f"backend={backend!r}: there are {', '.join(BACKENDS)}")
    module, name = BACKENDS[backend]
    recorder: Type[Recorder] = getattr(import_module(module, __package__), name)
    return recorder


def _check_compat(compat: Optional[str]) -> None:
    known = next(r.compat for r in reports() if r.name == "key-averages")
    if compat is not None and compat not in known:
        raise ValueError(f"compat={compat!r}: there are {', '.join(known)}")


class profile:
    """Profiles what runs in it with torch's profiler: a context manager, or start(), step(), stop().

    enabled=False makes it do nothing. activities: torch.profiler.ProfilerActivity values, by default all that torch has. schedule: a function of
    the step's number (opscope.schedule or torch.profiler.schedule); without one everything is recorded. on_trace_ready(prof) is called whenever a
    recording is complete. record_shapes, profile_memory, with_stack, with_flops, with_modules: what to record beside times, as in torch.
    acc_events=True: prof answers for all recordings together, not for the newest. custom_trace_id_callback() names a recording.
    compat: the version of torch whose answers are wanted ("torch-1.13", "torch-2.6", "torch-2.11", "torch-2.14"), by default the running one's or the nearest.
    keep: how many recordings are kept, the newest; None = all.

    backend="opscope": opscope's own library records, not torch's profiler: docs/python.md says what that has, and what it leaves unknown.

    post_processing_timeout_s is taken, and has no effect: it bounds what torch does in Python after a recording, which is not done here.
    """

    def __init__(self, enabled: bool = True, *, activities: Optional[Iterable[Any]] = None, schedule: Optional[Callable[[int], Any]] = None,
                 on_trace_ready: Optional[Callable[[profile], Any]] = None, record_shapes: bool = False, profile_memory: bool = False,
                 with_stack: bool = False, with_flops: bool = False, with_modules: bool = False, experimental_config: Any = None,
                 execution_trace_observer: Any = None, acc_events: bool = False, use_cuda: Optional[bool] = None, use_xpu: Optional[bool] = None,
                 use_mtia: Optional[bool] = None, use_device: Optional[str] = None, use_cpu: bool = True, use_kineto: bool = True,
                 custom_trace_id_callback: Optional[Callable[[], str]] = None, post_processing_timeout_s: Optional[float] = None,
                 compat: Optional[str] = None, keep: Optional[int] = None, backend: str = "torch"):
        _check_compat(compat)
        recorder = _recorder_of(backend)
        self.enabled = enabled
        self.record_shapes = record_shapes or with_flops
        self.profile_memory, self.with_stack, self.with_flops, self.with_modules = profile_memory, with_stack, with_flops, with_modules
        self.experimental_config, self.execution_trace_observer, self.acc_events = experimental_config, execution_trace_observer, acc_events
        self.schedule, self.record_steps = (schedule, True) if schedule else (always, False)
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        #: What was recorded, one for each repeat of the schedule, the oldest first.
        self.recordings: List[Recording] = []
        self._keep = keep
        if keep is not None and keep < 1:
            raise ValueError(f"keep: 1 or more recordings, or None for all, were expected, not {keep}")
        if post_processing_timeout_s is not None and post_processing_timeout_s < 0:
            raise ValueError(f"post_processing_timeout_s: seconds were expected, not {post_processing_timeout_s}")
        self._running = False    # between start() and stop()
        self._stopped = False    # once at least
        self._failure = ""       # why the newest recording could not begin
        self._range: Any = None  # the current ProfilerStep
        self._complete = False   # whether there is a recording that on_trace_ready has not seen
        self._together: Optional[Tuple[Recording, Recording]] = None  # the newest, and all as one
        if enabled:
            chosen, filters = parse_activities(activities)
            switches = {"cuda": use_cuda, "xpu": use_xpu, "mtia": use_mtia}
            self.activities = choose_devices(chosen, switches, use_device, use_cpu, use_kineto)
            if filters and not accepts(torch_profiler().profile.__init__, "activity_filters"):
                warnings.warn(f"activities: torch {torch().__version__} records all kinds of events of an activity: {{activity: kinds}} has no effect", stacklevel=2)
            flags = frozenset(flag for flag in FLAGS if getattr(self, flag))
            self._recorder = recorder(Asked(flags, self.activities, filters, experimental_config, execution_trace_observer, compat))
            self._recorder.trace_id_callback = custom_trace_id_callback
            self.current_action = action_of(self.schedule, 0)

    # --- recording ---

    def _begin(self, operation: Callable[[], None]) -> None:
        """Of the recorder: prepare or start."""
        self._failure = ""
        try:
            operation()
        except BaseException as e:
            self._failure = f"{type(e).__name__}: {e}"
            raise

    def _stop(self) -> None:
        recording = self._recorder.stop()
        if recording is None:
            return
        self._complete = True
        self.recordings.append(recording)
        while self._keep is not None and len(self.recordings) > self._keep:
            self.recordings.pop(0).drop()

    def _ready(self) -> None:
        complete, self._complete = self._complete, False
        if complete and self.on_trace_ready:
            self.on_trace_ready(self)

    def _go(self, before: int, after: int) -> None:
        """From one action to the next."""
        if (before, after) == (ProfilerAction.WARMUP.value, EXIT) and self._recorder.forget():
            return
        todo, warning = _profiler.transition(before, after)
        if warning:
            warnings.warn(warning, stacklevel=4)
        self._do(todo)

    def _one(self, operation: str) -> None:
        if operation == "prepare":
            self._begin(self._recorder.prepare)
        elif operation == "start":
            if self._recorder.ready:  # else it could not be prepared, which has been told
                self._begin(self._recorder.start)
        elif operation == "stop":
            self._stop()
        else:
            self._ready()

    def _do(self, todo: Iterable[str]) -> None:
        """What comes after on_trace_ready is done also when that fails: torch's profiler is then as the step's action has it."""
        rest = iter(todo)
        for operation in rest:
            try:
                self._one(operation)
            finally:
                if operation == "ready":
                    self._do(rest)

    def _open_step(self) -> None:
        if self.record_steps:
            self._range = self._recorder.step(self.step_num)
            self._range.__enter__()

    def _close_step(self) -> None:
        if self._range is not None:
            self._range.__exit__(None, None, None)
            self._range = None

    def start(self) -> None:
        """Begins, with the action of the current step. After stop() it begins anew; `with` does not, as in torch.autograd.profiler."""
        if not self.enabled:
            return
        if self._running:
            raise RuntimeError("Profiler context manager is not reentrant")
        self._recorder.open()
        try:
            self._go(ProfilerAction.NONE.value, self.current_action.value)
        except BaseException:
            self._recorder.close()
            raise
        self._running = True
        if self.record_steps:
            KinetoStepTracker.init_step_count("Profiler")
        self._open_step()

    def step(self) -> None:
        """The next step of the schedule begins. After stop() it does nothing, as in torch; before start() it says so."""
        if not self.enabled or (self._stopped and not self._running):
            return
        if not self._running:
            warnings.warn("step() before start() has no effect: nothing is being profiled", stacklevel=2)
            return
        self._close_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = action_of(self.schedule, self.step_num)
        try:
            self._go(before.value, self.current_action.value)
        finally:
            KinetoStepTracker.increment_step("Profiler")
            self._open_step()

    def stop(self) -> None:
        """Ends. What was being recorded becomes a recording."""
        if not self.enabled:
            return
        if not self._running:
            if not self._stopped and self.current_action is ProfilerAction.NONE:
                warnings.warn("stop() before start() has no effect: nothing was being profiled", stacklevel=2)
                return
            raise RuntimeError("stop() before start()")
        self._running, self._stopped = False, True
        if self._range is not None and self.step_num:  # begun by the last step(): nobody says whether it was one
            self._recorder.cut(self._range)
        self._close_step()
        try:
            self._go(self.current_action.value, EXIT)
        finally:
            self._recorder.close()
            if self.record_steps:
                KinetoStepTracker.erase_step_count("Profiler")

    def __enter__(self) -> profile:
        if self.enabled and self._stopped:
            raise RuntimeError("Profiler context manager is not reentrant: it has ended; start() begins it anew")
        self.start()
        return self

    def __exit__(self, kind: Any, error: Any, where: Any) -> None:
        """An error of the program passes as it is: what then fails here as well is a warning."""
        try:
            self.stop()
        except Exception as later:
            if error is None:
                raise
            warnings.warn(f"opscope.profile could not end as it should: {type(later).__name__}: {later}", stacklevel=2)

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[Any]) -> None:
        """Stops and resumes the recording of some activities, where torch can."""
        if not self.enabled:
            return
        self._recorder.toggle(enable, activities)

    def add_metadata(self, key: str, value: str) -> None:
        """A fact for the recording: text. Before it ends."""
        self.add_metadata_json(key, json.dumps(value))

    def add_metadata_json(self, key: str, value: str) -> None:
        """The same, of any JSON."""
        json.loads(value)
        if self.enabled:
            self._recorder.add_metadata_json(key, value)

    preset_metadata_json = add_metadata_json

    def get_trace_id(self) -> Optional[str]:
        """The name of the recording that was prepared last, as its file has it; None before."""
        return self._recorder.trace_id if self.enabled else None

    def set_custom_trace_id_callback(self, callback: Optional[Callable[[], str]]) -> None:
        """Names the recordings that are prepared from now on."""
        if self.enabled:
            self._recorder.trace_id_callback = callback

    # --- answers: of the newest recording, or of all ---

    def _current(self) -> Recording:
        if not self.recordings:
            raise RuntimeError(self._why_nothing())
        return self._all() if self.acc_events and len(self.recordings) > 1 else self.recordings[-1]

    def _why_nothing(self) -> str:
        if not self.enabled:
            return "nothing was recorded: enabled=False"
        if self._recorder.why_nothing():
            return str(self._recorder.why_nothing())
        if self._failure:
            return f"nothing was recorded: {self._recorder.name} could not begin: {self._failure}"
        if self._running or not self._stopped or self.current_action is not ProfilerAction.NONE:
            return "Profiler didn't finish running"
        return f"nothing was recorded: the schedule was still in wait at step {self.step_num}"

    def _all(self) -> Recording:
        """One recording of all."""
        newest = self.recordings[-1]
        if self._together is None or self._together[0] is not newest:
            self._together = newest, self._recorder.join(self.recordings)
        return self._together[1]

    @property
    def unknown(self) -> Dict[str, str]:
        """What answers leave unknown (None), and why."""
        return self._current().unknown

    @property
    def trace(self) -> Trace:
        """The recording as an opscope.Trace."""
        return self._current().trace

    def events(self) -> Events:
        return self._current().events()

    function_events = property(events)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False) -> Averages:
        return self._current().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def table(self, *arguments: Any, **keywords: Any) -> str:
        return self._current().table(*arguments, **keywords)

    def total_average(self) -> FunctionEventAvg:
        return self._current().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        return self._current().self_cpu_time_total

    def report(self, name: str, **params: Any) -> Table:
        return self._current().report(name, **params)

    def advise(self, **params: Any) -> Table:
        return self._current().advise(**params)

    def save(self, path: Path) -> None:
        self._current().save(path)

    def export_chrome_trace(self, path: Path) -> None:
        """Of the newest recording, as in torch."""
        self._current()
        self.recordings[-1].export_chrome_trace(path)

    def export_stacks(self, path: Path, metric: str = "self_cpu_time_total") -> None:
        self._current().export_stacks(path, metric)

    def export_memory_timeline(self, path: Path, device: Optional[str] = None) -> None:
        self._current().export_memory_timeline(path, device)

    for _answer in (events, key_averages, table, total_average, report, advise, save, export_stacks, export_memory_timeline):
        _answer.__doc__ = getattr(Recording, _answer.__name__).__doc__
    del _answer

    def __str__(self) -> str:
        return self.table() if self.recordings else "<unfinished opscope.profile>"

    def __repr__(self) -> str:
        n = len(self.recordings)
        return f"<opscope.profile, {n} recording{'' if n == 1 else 's'}>" if n else "<unfinished opscope.profile>"


def load_nvprof(path: Path) -> NvprofEvents:
    """The ranges of emit_nvtx in a database of nvprof, with the kernels that were launched in each."""
    return NvprofEvents(load(path))


def parse_nvprof_trace(path: Path) -> List[FunctionEvent]:
    """The same as a list."""
    return list(load_nvprof(path))
