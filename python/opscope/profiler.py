"""torch.profiler's interface with opscope behind it: torch records, the C library does everything after that.

    with opscope.profile(record_shapes=True) as prof:
        train()
    print(prof.key_averages().table(sort_by="self_cpu_time_total"))   # the text that torch prints, many times sooner

Arguments, methods and texts are those of torch.profiler.profile and torch.autograd.profiler.profile. Each repeat of a schedule is kept: prof.recordings
has them all, prof itself answers for the newest. What a recording holds is more than torch's own answers: prof.trace is an opscope.Trace.

torch is imported when a profile begins, not before.
"""
from __future__ import annotations

import json
import os
import warnings
from contextlib import ContextDecorator
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Optional, Tuple

from . import _core, _profiler
from ._events import Averages, EventList, Events, FunctionEvent, FunctionEventAvg, NvprofEvents, averages_of
from .table import Table
from .trace import Path, Trace, load, reports

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = [
    "EventList", "FunctionEvent", "FunctionEventAvg", "KinetoStepTracker", "ProfilerAction", "Recording", "emit_itt", "emit_nvtx", "load_nvprof",
    "parse_nvprof_trace", "profile", "record_function", "schedule", "supported_activities", "tensorboard_trace_handler", "trace_handler",
]


class ProfilerAction(Enum):
    """What a step is for."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


_EXIT = 4

# What torch.profiler has beside its own classes: torch's, so that they are imported when they are asked for.
TORCHS = ("DeviceType", "ProfilerActivity", "itt", "kineto_available")


def __getattr__(name: str) -> Any:
    if name not in TORCHS:
        raise AttributeError(f"module 'opscope.profiler' has no attribute {name!r}")
    return getattr(import_module("torch.profiler"), name)


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0) -> Callable[[int], ProfilerAction]:
    """Which steps are recorded: after skip_first steps, cycles of wait + warmup + active; repeat of them, 0 = without end.

    skip_first_wait: anything but 0 = the first cycle has no wait. Works as the schedule of opscope.profile.
    """
    spec = (wait, warmup, active, repeat, skip_first, skip_first_wait)
    verdict, message = _profiler.schedule_check(spec, 0)
    if verdict < 0:
        raise AssertionError(message)
    if verdict > 0:
        warnings.warn(message, stacklevel=2)
    return lambda step: ProfilerAction(_profiler.schedule_action(spec, step))


def _always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def _torch() -> Any:
    """torch, when it is needed. By name, so that type checkers of others need not read it."""
    return import_module("torch")


def _torch_profiler() -> Any:
    return import_module("torch.autograd.profiler")


def _end(inner: Any) -> Any:
    """Ends torch's profiler as its user would, so that whoever watches that sees it, but without its Python work; what C++ recorded."""
    inner._parse_kineto_results = lambda result: []
    inner.__exit__(None, None, None)
    return inner.kineto_results


def supported_activities() -> Any:
    """The activities that this torch can record."""
    return _torch().autograd._supported_activities()


def _rules(version: str) -> str:
    """The version of torch, among those whose rules the library has, that has made events as `version` does."""
    numbers = tuple(int(n) if n.isdigit() else 0 for n in version.split("+")[0].split(".")[:2])
    return "torch-1.13" if numbers < (2,) else "torch-2.6" if numbers < (2, 7) else "torch-2.14"


def _check_compat(compat: Optional[str]) -> None:
    known = next(r.compat for r in reports() if r.name == "key-averages")
    if compat is not None and compat not in known:
        raise ValueError(f"compat={compat!r}: there are {', '.join(known)}")


class KinetoStepTracker:
    """Counts steps for several requesters (the profiler, optimizers): the step is the largest count, so that it is counted once."""

    _own = _profiler.Tracker()

    @staticmethod
    def _torchs() -> Any:
        """torch's own, with which optimizers count, where it has one."""
        return getattr(_torch_profiler(), "KinetoStepTracker", None)

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        tracker = cls._torchs()
        if tracker:
            tracker.init_step_count(requester)
        else:
            cls._own.init(requester)

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        tracker = cls._torchs()
        return bool(tracker.erase_step_count(requester)) if tracker else cls._own.erase(requester)

    @classmethod
    def increment_step(cls, requester: str) -> int:
        tracker = cls._torchs()
        if tracker:
            return int(tracker.increment_step(requester))
        step, kineto_steps, warning = cls._own.increment(requester)
        if warning:
            warnings.warn(warning, stacklevel=2)
        for _ in range(kineto_steps):
            _torch_profiler().kineto_step()
        return step

    @classmethod
    def current_step(cls) -> int:
        tracker = cls._torchs()
        return int(tracker.current_step()) if tracker else cls._own.current()


class _Direct:
    """Whether this process may read recordings as they lie in memory, found out once: a small recording is read both ways and compared."""

    VERSIONS = ("1.13",)
    stride: Optional[int] = None

    @classmethod
    def find(cls) -> int:
        """Bytes of an event; 0 = not possible."""
        if cls.stride is None:
            cls.stride = 0
            cls.stride = cls._try()
        return cls.stride

    @classmethod
    def _try(cls) -> int:
        torch = _torch()
        library = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")
        if not torch.__version__.startswith(cls.VERSIONS) or not _profiler.open_direct(library):
            return 0
        result = cls._sample(torch)
        events = result.events()
        stride = _profiler.stride(result, len(events))
        if not stride:
            return 0
        start = result.trace_start_us()
        with _temporary() as plain, _temporary() as direct:
            flags = ("", "", 0, 1, True, True, True, True)
            _profiler.write_events(events, start, plain.fileno(), *flags)
            _profiler.write_direct(result, stride, direct.fileno(), *flags)
            same = _content(plain) == _content(direct)
        return stride if same else 0

    @staticmethod
    def _sample(torch: Any) -> Any:
        """A recording with shapes, types, stacks, FLOPs, allocations, a backward pass and long and short names."""
        profiler = _torch_profiler()
        p = profiler.profile(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True)
        with torch.enable_grad():
            a = torch.ones(3, 4, requires_grad=True)
            b = torch.ones(4, 5)
            p._prepare_trace()
            p._start_trace()
            with profiler.record_function("a range whose name does not fit into a short string"):
                torch.mm(a, b).sum().backward()
            return _end(p)


def _temporary() -> Any:
    import tempfile

    return tempfile.TemporaryFile()


def _content(file: Any) -> bytes:
    file.seek(0)
    return bytes(file.read())


def _text_member(key: str, value: str) -> str:
    return f"{json.dumps(key)}: {value}"


class Recording:
    """What was recorded from one start to one stop: one repeat of a schedule. All answers of torch's profiler, and prof.trace for the rest."""

    def __init__(self, path: str, rules: str, stacks: bool = False, missing: Tuple[str, ...] = ()):
        #: The file that has it: a Kineto trace. It is deleted with the profile that made it.
        self.path = path
        #: The version of torch whose answers these are, as in --compat.
        self.compat = rules
        self.whole_us = rules == "torch-1.13"
        self._zero_ns: Optional[int] = None
        self.span: Optional[Tuple[int, int]] = None  # where its events stand in the file
        self._stacks = stacks
        self._missing = missing
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
            if "holds no framework ops" in str(e):
                return None
            raise

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

    def save(self, path: Path) -> None:
        """The whole recording as a file that every opscope command reads; as gzip if path ends in .gz."""
        _copy(self.path, os.fspath(path))

    def export_chrome_trace(self, path: Path) -> None:
        """The file that torch's export_chrome_trace writes: Kineto's own, or without Kineto the bare array; as gzip if path ends in .gz."""
        if self.span is None:
            self.save(path)
        else:
            self.export_list(path)

    def export_list(self, path: Path) -> None:
        """The bare array that torch writes without Kineto."""
        self.trace.export("chrome-list", path, compat=self.compat)

    def export_stacks(self, path: Path, metric: str = "self_cpu_time_total") -> None:
        """Folded stacks for a flame graph. metric: self_cpu_time_total, or self_cuda_time_total and the like: the device's."""
        if not self._stacks:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.write_stacks(path, metric)

    def stack_metrics(self) -> List[str]:
        """What export_stacks takes."""
        devices = ("cuda",) if self.whole_us else ("cuda", "xpu", "privateuse1")
        return ["self_cpu_time_total", *(f"self_{d}_time_total" for d in devices)]

    def write_stacks(self, path: Path, metric: str) -> None:
        if metric not in self.stack_metrics():
            raise ValueError("metric should be one of: " + str(self.stack_metrics()))
        self.trace.export("stacks", path, compat=self.compat, metric=metric)

    def export_memory_timeline(self, path: Path, device: Optional[str] = None) -> None:
        """Memory by what it is used for, over time: .html is a page, .raw.json.gz every change, .json(.gz) sums. device: "cpu", "cuda:0"."""
        if self._missing:
            raise ValueError(f"{' '.join(self._missing)} required for memory profiling: profile({', '.join(m + '=True' for m in self._missing)})")
        name = os.fspath(path)
        form = "html" if name.endswith(".html") else "raw" if name.endswith((".raw.json", ".raw.json.gz")) else "json"
        where = None if device is None else device if device == "cpu" else device.rpartition(":")[2] if ":" in device else "0"
        self.trace.export("memory-timeline", path, form=form, device=where)

    def __repr__(self) -> str:
        return f"<opscope.Recording {self.path!r}, {self.trace.events} events>"


def _remove(folder: str, pid: int) -> None:
    """The folder of a profile that is gone; a forked child leaves it to its parent."""
    if os.getpid() == pid:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


def _copy(source: str, path: str) -> None:
    import gzip
    import shutil

    out: Any = gzip.open(path, "wb") if path.endswith(".gz") else open(path, "wb")
    with open(source, "rb") as f, out:
        shutil.copyfileobj(f, out)


def _accepts(function: Any, name: str) -> bool:
    import inspect

    return name in inspect.signature(function).parameters


class profile:
    """Profiles what runs in it with torch's profiler: a context manager, or start(), step(), stop().

    enabled=False makes it do nothing. activities: torch.profiler.ProfilerActivity values, by default all that torch has. schedule: a function of
    the step's number (opscope.schedule or torch.profiler.schedule); without one everything is recorded. on_trace_ready(prof) is called whenever a
    recording is complete. record_shapes, profile_memory, with_stack, with_flops, with_modules: what to record beside times, as in torch.
    acc_events=True: prof answers for all recordings together, not for the newest. compat: the version of torch whose answers are wanted
    ("torch-1.13", "torch-2.6", "torch-2.14"), by default the running one's or the nearest. keep: how many recordings are kept, the newest; None = all.
    """

    def __init__(self, enabled: bool = True, *, activities: Optional[Iterable[Any]] = None, schedule: Optional[Callable[[int], Any]] = None,
                 on_trace_ready: Optional[Callable[[profile], Any]] = None, record_shapes: bool = False, profile_memory: bool = False,
                 with_stack: bool = False, with_flops: bool = False, with_modules: bool = False, experimental_config: Any = None,
                 execution_trace_observer: Any = None, acc_events: bool = False, use_cuda: Optional[bool] = None, use_device: Optional[str] = None,
                 use_cpu: bool = True, use_kineto: bool = True, compat: Optional[str] = None, keep: Optional[int] = None):
        _check_compat(compat)
        self.enabled = enabled
        self.record_shapes = record_shapes or with_flops
        self.profile_memory, self.with_stack, self.with_flops, self.with_modules = profile_memory, with_stack, with_flops, with_modules
        self.experimental_config, self.execution_trace_observer, self.acc_events = experimental_config, execution_trace_observer, acc_events
        self.schedule, self.record_steps = (schedule, True) if schedule else (_always, False)
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        #: What was recorded, one for each repeat of the schedule, the oldest first.
        self.recordings: List[Recording] = []
        self._compat, self._keep = compat, keep
        self._metadata: Dict[str, str] = {}
        if keep is not None and keep < 1:
            raise ValueError(f"keep: 1 or more recordings, or None for all, were expected, not {keep}")
        self._running = False    # between start() and stop()
        self._stopped = False    # once at least
        self._inner: Any = None  # torch's profiler, prepared or running
        self._range: Any = None  # the current ProfilerStep
        self._folder: Optional[str] = None
        self._number = 0
        self._together: Optional[Tuple[int, Recording]] = None
        self._base_us: Optional[int] = None
        if enabled:
            self._choose_activities(activities, use_cuda, use_device, use_cpu, use_kineto)
            self.current_action = self._action(0)

    def _choose_activities(self, activities: Optional[Iterable[Any]], use_cuda: Optional[bool], use_device: Optional[str], use_cpu: bool,
                           use_kineto: bool) -> None:
        kinds = _torch_profiler().ProfilerActivity
        chosen = set(activities) if activities else set(supported_activities())
        for activity in chosen:
            if not isinstance(activity, kinds):
                raise TypeError(f"activities: values of torch.profiler.ProfilerActivity were expected, not {activity!r}")
        if use_cuda is not None:
            warnings.warn("use_cuda is deprecated, use activities argument instead", FutureWarning, stacklevel=3)
            (chosen.add if use_cuda else chosen.discard)(kinds.CUDA)
        if use_device is not None:
            kind = getattr(kinds, {"cuda": "CUDA", "xpu": "XPU", "mtia": "MTIA", "hpu": "HPU"}.get(use_device, "PrivateUse1"), None)
            if kind is None:
                warnings.warn(f"The {use_device} is not a valid device option.", stacklevel=3)
            else:
                chosen.add(kind)
        if not use_cpu:
            assert use_kineto, "Device-only events supported only with Kineto (use_kineto=True)"
            chosen.discard(kinds.CPU)
        assert chosen, "No valid profiler activities found"
        self.activities = chosen

    # --- recording ---

    def _action(self, step: int) -> ProfilerAction:
        action = self.schedule(step)
        if getattr(action, "name", None) not in ProfilerAction.__members__:
            raise TypeError(f"schedule({step}): a ProfilerAction was expected, not {action!r}")
        return ProfilerAction[action.name]

    def _device(self) -> Optional[str]:
        names = {a.name for a in self.activities} - {"CPU"}
        for name, device in (("CUDA", "cuda"), ("XPU", "xpu"), ("MTIA", "mtia"), ("HPU", "hpu"), ("PrivateUse1", "privateuseone")):
            if name in names:
                return device
        return None

    def _prepare(self) -> None:
        if not self._kineto():
            _Direct.find()  # before anything is recorded: it records something itself
        inner = _torch_profiler().profile
        arguments = {
            "record_shapes": self.record_shapes, "with_flops": self.with_flops, "profile_memory": self.profile_memory, "with_stack": self.with_stack,
            "with_modules": self.with_modules, "use_kineto": True, "experimental_config": self.experimental_config,
            "use_cpu": any(a.name == "CPU" for a in self.activities),
        }
        device = self._device()
        if _accepts(inner.__init__, "use_device"):
            arguments["use_device"] = device
        elif _accepts(inner.__init__, "use_cuda"):
            arguments["use_cuda"] = device == "cuda"
        self._inner = inner(**{k: v for k, v in arguments.items() if _accepts(inner.__init__, k)})
        self._inner._prepare_trace()

    def _start(self) -> None:
        if self.execution_trace_observer:
            self.execution_trace_observer.start()
        self._inner._start_trace()
        if self._kineto():
            for key, value in self._facts().items():
                _torch().autograd._add_metadata_json(key, value)

    @staticmethod
    def _kineto() -> bool:
        return bool(_torch_profiler().kineto_available())

    def _facts(self) -> Dict[str, str]:
        """What torch.profiler.profile says of itself in a trace, and what the program adds: names with JSON."""
        flags = {name: "1" for name in ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules") if getattr(self, name)}
        return {**flags, **self._distributed(), **self._metadata}

    @staticmethod
    def _distributed() -> Dict[str, str]:
        dist = import_module("torch.distributed")
        if not dist.is_available() or not dist.is_initialized():
            return {}
        facts = {"backend": dist.get_backend(), "rank": dist.get_rank(), "world_size": dist.get_world_size()}
        return {"distributedInfo": json.dumps(facts)}

    def _stop(self) -> None:
        inner, self._inner = self._inner, None
        result = _end(inner)
        if self.execution_trace_observer:
            self.execution_trace_observer.stop()
        self._take(result)

    def _new_path(self) -> str:
        if self._folder is None:
            import tempfile
            import weakref

            self._folder = tempfile.mkdtemp(prefix="opscope-profile-")
            weakref.finalize(self, _remove, self._folder, os.getpid())
        self._number += 1
        return os.path.join(self._folder, f"{self._number}.pt.trace.json")

    def _take(self, result: Any) -> None:
        """Makes a recording of what torch has recorded."""
        rules = self._compat or _rules(_torch().__version__)
        missing = tuple(n for n in ("record_shapes", "profile_memory", "with_stack") if not getattr(self, n))
        recording = Recording(self._new_path(), rules, self.with_stack, missing)
        if self._kineto():
            result.save(recording.path)
        else:
            self._write(result, recording)
        self.recordings.append(recording)
        while self._keep is not None and len(self.recordings) > self._keep:
            os.unlink(self.recordings.pop(0).path)

    def _head(self, base_us: int) -> str:
        facts = {"schemaVersion": "1", "displayTimeUnit": '"ms"', "baseTimeNanoseconds": str(base_us * 1000), "torch": json.dumps(_torch().__version__),
                 **self._facts()}
        return "{" + ",\n".join(_text_member(k, v) for k, v in facts.items()) + ',\n"traceEvents": ['

    def _write(self, result: Any, recording: Recording) -> None:
        start_us = result.trace_start_us()
        if self._base_us is None:
            self._base_us = start_us  # one clock for all recordings
        rest = (self._head(self._base_us), "\n]}\n", self._base_us, os.getpid(), self.record_shapes, self.with_stack, self.with_flops,
                self._device() is not None)
        stride = _Direct.find()
        with open(recording.path, "wb", buffering=0) as f:
            if stride:
                made = _profiler.write_direct(result, stride, f.fileno(), *rest)
            else:
                made = _profiler.write_events(result.events(), start_us, f.fileno(), *rest)
        recording.span = made[2], made[3]
        if made[4]:
            warnings.warn(f"{made[4]} ops have a device time that CUDA events measured; it is left out: that takes a torch with Kineto", stacklevel=4)

    def _ready(self) -> None:
        if self.on_trace_ready:
            self.on_trace_ready(self)

    def _go(self, before: int, after: int) -> None:
        """From one action to the next."""
        todo, warning = _profiler.transition(before, after)
        if warning:
            warnings.warn(warning, stacklevel=4)
        self._do(todo)

    def _do(self, todo: Iterable[str]) -> None:
        """What comes after on_trace_ready is done also when that fails: torch's profiler is then as the step's action has it."""
        rest = iter(todo)
        for operation in rest:
            try:
                {"prepare": self._prepare, "start": self._start, "stop": self._stop, "ready": self._ready}[operation]()
            finally:
                if operation == "ready":
                    self._do(rest)

    def _open_step(self) -> None:
        if self.record_steps:
            self._range = _torch_profiler().record_function(f"ProfilerStep#{self.step_num}")
            self._range.__enter__()

    def _close_step(self) -> None:
        if self._range is not None:
            self._range.__exit__(None, None, None)
            self._range = None

    def start(self) -> None:
        """Begins, with the action of the current step."""
        if not self.enabled:
            return
        if self._running:
            raise RuntimeError("Profiler context manager is not reentrant")
        self._go(ProfilerAction.NONE.value, self.current_action.value)
        self._running = True
        if self.record_steps:
            KinetoStepTracker.init_step_count("Profiler")
        self._open_step()

    def step(self) -> None:
        """The next step of the schedule begins. After stop() it does nothing, as in torch."""
        if not self.enabled or (self._stopped and not self._running):
            return
        if not self._running:
            raise RuntimeError("step() before start()")
        self._close_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self._action(self.step_num)
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
            raise RuntimeError("stop() before start()")
        self._running, self._stopped = False, True
        self._close_step()
        try:
            self._go(self.current_action.value, _EXIT)
        finally:
            if self.record_steps:
                KinetoStepTracker.erase_step_count("Profiler")

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, kind: Any, error: Any, where: Any) -> None:
        self.stop()

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[Any]) -> None:
        """Stops and resumes the recording of some activities, where torch can."""
        if self._inner is None or not hasattr(self._inner, "toggle_collection_dynamic"):
            raise RuntimeError("this torch cannot, or nothing is being recorded")
        self._inner.toggle_collection_dynamic(enable, activities)

    def add_metadata(self, key: str, value: str) -> None:
        """A fact for the recording: text. Before it ends."""
        self.add_metadata_json(key, json.dumps(value))

    def add_metadata_json(self, key: str, value: str) -> None:
        """The same, of any JSON."""
        json.loads(value)
        self._metadata[key] = value
        if self.enabled and self._inner is not None and self._running and self._kineto():
            _torch().autograd._add_metadata_json(key, value)

    preset_metadata_json = add_metadata_json

    # --- answers: of the newest recording, or of all ---

    def _current(self) -> Recording:
        if not self.recordings:
            raise RuntimeError(self._why_nothing())
        return self._all() if self.acc_events and len(self.recordings) > 1 else self.recordings[-1]

    def _why_nothing(self) -> str:
        if not self.enabled:
            return "nothing was recorded: enabled=False"
        if self._running or not self._stopped or self.current_action is not ProfilerAction.NONE:
            return "Profiler didn't finish running"
        return f"nothing was recorded: the schedule was still in wait at step {self.step_num}"

    def _all(self) -> Recording:
        """One recording of all."""
        if self._together is None or self._together[0] != self._number:
            self._together = self._number, _join(self.recordings, os.path.join(self._folder or "", "all.pt.trace.json"))
        return self._together[1]

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


def _join(recordings: List[Recording], path: str) -> Recording:
    """The events of all in one file, under the facts of the last."""
    last = recordings[-1]
    joined = Recording(path, last.compat, last._stacks, last._missing)
    if all(r.span for r in recordings):
        _splice(recordings, path)
        joined.span = 0, 0
        return joined
    documents = []
    for r in recordings:
        with open(r.path, encoding="utf-8") as f:
            documents.append(json.load(f))
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
    return joined


def _splice(recordings: List[Recording], path: str) -> None:
    with open(path, "wb") as out:
        for i, r in enumerate(recordings):
            with open(r.path, "rb") as f:
                begin, end = r.span or (0, 0)
                head, events = f.read(begin), f.read(end - begin)
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


class record_function(ContextDecorator):
    """A range with a name, as a context manager or a decorator. args: a text that traces show with it."""

    def __init__(self, name: str, args: Optional[str] = None):
        self.name, self.args = name, args
        self._ranges: List[Any] = []

    def __enter__(self) -> record_function:
        self._ranges.append(_torch_profiler().record_function(self.name, self.args))
        self._ranges[-1].__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, where: Any) -> None:
        self._ranges.pop().__exit__(kind, error, where)

    def _call_end_callbacks_on_future(self, fut: Future[Any]) -> Future[Any]:
        """The range lasts until the future is done. Once only."""
        done: Future[Any] = self._ranges[-1]._call_end_callbacks_on_future(fut)
        return done


class _Emit:
    """Each op as a range of NVTX or ITT, while it is entered."""

    _state = ""
    _what = ""

    def __init__(self, enabled: bool = True, record_shapes: bool = False):
        self.enabled, self.record_shapes, self.entered = enabled, record_shapes, False

    def _synchronize(self) -> None:
        pass

    def __enter__(self) -> Any:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError(f"{self._what} annotation context manager is not reentrant")
        profiler = _torch_profiler()
        self._synchronize()
        plain = (False,) * 4
        config = profiler.ProfilerConfig(getattr(profiler.ProfilerState, self._state), self.record_shapes, *plain, profiler._ExperimentalConfig())
        profiler._enable_profiler(config, set())
        self.entered = True
        return self

    def __exit__(self, kind: Any, error: Any, where: Any) -> None:
        if not self.enabled:
            return
        self._synchronize()
        _torch_profiler()._disable_profiler()


class emit_nvtx(_Emit):
    """Every op becomes an NVTX range: "name, seq = N, op_id = K", with record_shapes also sizes and where inputs come from. For Nsight Systems,
    nvprof and `opscope record`. It waits for the GPU at both ends. A torch without CUDA has no NVTX, and says so."""

    _state, _what = "NVTX", "NVTX"

    def _synchronize(self) -> None:
        cuda = _torch().cuda
        if cuda.is_available():
            cuda.synchronize()


class emit_itt(_Emit):
    """Every op becomes a range of Intel's ITT, for VTune and `opscope record`. A torch built without ITT says so."""

    _state, _what = "ITT", "ITT"


def load_nvprof(path: Path) -> NvprofEvents:
    """The ranges of emit_nvtx in a database of nvprof, with the kernels that were launched in each."""
    return NvprofEvents(load(path))


def parse_nvprof_trace(path: Path) -> List[FunctionEvent]:
    """The same as a list."""
    return list(load_nvprof(path))
