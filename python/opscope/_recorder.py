"""What records for opscope.profile (Recorder), which says when; and torch's profiler as one: what it recorded becomes a file."""
from __future__ import annotations

import json
import os
import sys
import warnings
from abc import abstractmethod
from importlib import import_module
from typing import Any, Callable, ContextManager, Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Protocol, Set, Tuple

from ._direct import Direct, write
from ._held import Facts, Held, tell
from ._ranges import Notes, patch_file, patch_part
from ._recording import Recording, join
from ._torch_modules import accepts, end, rules_of, supported_activities, torch, torch_profiler

#: What may be recorded beside times, as torch names it.
FLAGS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")

# torch's name for a device -> the activity that records it; others are PrivateUse1. The first that was chosen is the one whose times are told.
_DEVICES = {"cuda": "CUDA", "xpu": "XPU", "mtia": "MTIA", "hpu": "HPU"}

Filters = Dict[Any, Set[str]]


def parse_activities(activities: Optional[Iterable[Any]]) -> Tuple[Set[Any], Filters]:
    """What profile(activities=...) says: activities, and of some only certain kinds of events ({ProfilerActivity.CUDA: ["kernel"]})."""
    kinds = torch_profiler().ProfilerActivity
    chosen: Set[Any] = set()
    filters: Filters = {}
    for one in activities or ():
        for activity, only in one.items() if isinstance(one, dict) else ((one, None),):
            if not isinstance(activity, kinds):
                raise TypeError(f"activities: values of torch.profiler.ProfilerActivity were expected, not {activity!r}")
            chosen.add(activity)
            if only is not None:
                filters[activity] = set(only)
    return chosen or set(supported_activities()), filters


def choose_devices(chosen: Set[Any], switches: Dict[str, Optional[bool]], use_device: Optional[str], use_cpu: bool, use_kineto: bool) -> Set[Any]:
    """The same with what torch's older arguments add and take away. switches: "cuda" -> use_cuda, and so on; None = not given."""
    kinds = torch_profiler().ProfilerActivity
    for device, on in switches.items():
        if on is None:
            continue
        if device == "cuda":
            warnings.warn("use_cuda is deprecated, use activities argument instead", FutureWarning, stacklevel=3)
        kind = getattr(kinds, _DEVICES[device], None)
        if kind is None and on:
            warnings.warn(f"use_{device}=True: this torch cannot record that device", stacklevel=3)
        elif kind is not None:
            (chosen.add if on else chosen.discard)(kind)
    if use_device is not None:
        kind = getattr(kinds, _DEVICES.get(use_device, "PrivateUse1"), None)
        if kind is None:
            warnings.warn(f"The {use_device} is not a valid device option.", stacklevel=3)
        else:
            chosen.add(kind)
    if not use_cpu:
        assert use_kineto, "Device-only events supported only with Kineto (use_kineto=True)"
        chosen.discard(kinds.CPU)
    assert chosen, "No valid profiler activities found"
    return chosen


class Asked(NamedTuple):
    """What is to be recorded, and how."""

    flags: FrozenSet[str]            # of FLAGS
    activities: Set[Any]
    filters: Filters
    config: Any                      # torch's _ExperimentalConfig, or None
    observer: Any                    # torch's ExecutionTraceObserver, or None
    compat: Optional[str]            # whose answers; None = those of the running torch


class Recorder(Protocol):
    """A backend of opscope.profile: a class that derives from this one and is in profiler.BACKENDS.

    A profile makes one, and calls open() when it begins and close() when it has ended, each of them as often as it is started. Between them come the
    recordings, one after the other: prepare() and start(), or prepare() and forget(); stop() after all that was prepared and not forgotten. All this is
    done by the thread that runs the profile, and by a child that was forked meanwhile, too. An exception goes to the program; what had been begun when
    one is raised is taken back, so that `ready` is False and the next prepare() may be called. The files of recordings go with the recorder."""

    #: As texts call it: "torch's profiler".
    name: str
    #: The name of the recording that was prepared last; None = it has none.
    trace_id: Optional[str]
    #: Gives each recording its name, when it is prepared; None = the recorder does. Set by the profile.
    trace_id_callback: Optional[Callable[[], str]]

    @abstractmethod
    def __init__(self, asked: Asked):
        """Nothing is begun. What was asked for and has no effect is a warning."""

    @property
    @abstractmethod
    def ready(self) -> bool:
        """Whether there is something to be started or stopped: prepare() was called, and neither failed nor was it ended since."""

    @abstractmethod
    def open(self) -> None:
        """The profile begins. Where it raises, close() is not called."""

    @abstractmethod
    def close(self) -> None:
        """The profile has ended, or its first prepare() or start() has failed. The recordings stay."""

    @abstractmethod
    def why_nothing(self) -> Optional[str]:
        """Why there never is a recording, a sentence without a full stop; None = there may be."""

    @abstractmethod
    def step(self, number: int) -> ContextManager[Any]:
        """The range of a step; also outside of recordings."""

    @abstractmethod
    def cut(self, step: Any) -> None:
        """Of what step() gave, and is entered still: the end of the profile ends it, not that of the step."""

    @abstractmethod
    def prepare(self) -> None:
        """What takes time before a recording, and is not to be in it."""

    @abstractmethod
    def forget(self) -> bool:
        """What was prepared will not be started, since the profile ends. False: it has to be started, and stopped, to be ended; that is a recording."""

    @abstractmethod
    def start(self) -> None:
        """From here on the program is recorded. Only when `ready`."""

    @abstractmethod
    def stop(self) -> Optional[Recording]:
        """Until here: the recording, complete; None where nothing was being recorded, as after a start() that failed."""

    @abstractmethod
    def join(self, recordings: List[Recording]) -> Recording:
        """All of these, two or more and the oldest first, as one; they stay as they are."""

    @abstractmethod
    def toggle(self, enable: bool, activities: Iterable[Any]) -> None:
        """Stops and resumes what is recorded of some torch.profiler.ProfilerActivity, within a recording. RuntimeError where that cannot be."""

    @abstractmethod
    def add_metadata_json(self, key: str, value: str) -> None:
        """A fact, as JSON, for the recording that goes on and those that come. A warning where a recording has no place for it."""


def kineto() -> bool:
    return bool(torch_profiler().kineto_available())


def _new_id() -> str:
    import uuid

    return uuid.uuid4().hex.upper()


def _distributed() -> Dict[str, str]:
    dist = import_module("torch.distributed")
    if not dist.is_available() or not dist.is_initialized():
        return {}
    facts = {"backend": dist.get_backend(), "rank": dist.get_rank(), "world_size": dist.get_world_size()}
    return {"distributedInfo": json.dumps(facts)}


class TorchRecorder(Recorder):
    """torch's profiler."""

    name = "torch's profiler"

    def __init__(self, asked: Asked):
        self.asked = asked
        #: Facts for the recording: names with JSON.
        self.metadata: Dict[str, str] = {}
        #: Gives each recording its name; None = a random one.
        self.trace_id_callback: Optional[Callable[[], str]] = None
        self.trace_id: Optional[str] = None
        self._inner: Any = None  # torch's profiler, prepared or running
        self._folder: Optional[Tuple[int, str]] = None  # of which process
        self._number = 0
        self._base_us: Optional[int] = None
        self._held: Optional[Held] = None  # of the recording that goes on

    @property
    def ready(self) -> bool:
        """Whether there is something to be stopped."""
        return self._inner is not None

    def device(self) -> Optional[str]:
        """torch's name for the device that is recorded beside the CPU."""
        names = {a.name for a in self.asked.activities} - {"CPU"}
        own = getattr(torch()._C, "_get_privateuse1_backend_name", lambda: "privateuseone")
        return next((device for device, name in _DEVICES.items() if name in names), own() if "PrivateUse1" in names else None)

    def open(self) -> None:
        """The profile begins."""

    def close(self) -> None:
        """It ends."""

    def why_nothing(self) -> Optional[str]:
        """Why there never is a recording; None = there may be."""
        return None

    def step(self, number: int) -> Any:
        """The range of a step."""
        self._follow(Held.step)
        return torch_profiler().record_function(f"ProfilerStep#{number}")

    def cut(self, step: Any) -> None:
        """What ends the range of a step is the end of the profile. torch's recordings do not say so; `opscope record` around them does."""
        ranges = sys.modules.get("opscope._record_function")
        if ranges:
            ranges.cut(step)

    def join(self, recordings: List[Recording]) -> Recording:
        """All as one."""
        return join(recordings, os.path.join(self.folder(), "all.pt.trace.json"))

    def prepare(self) -> None:
        if not kineto():
            Direct.find()  # before anything is recorded: it records something itself
        made = torch_profiler().profile(**self._arguments())
        name = None if hasattr(made, "trace_id") else self.trace_id_callback() if self.trace_id_callback else _new_id()
        made._prepare_trace()
        self.trace_id = name or made.trace_id
        self._inner = made

    def _arguments(self) -> Dict[str, Any]:
        """Those of torch.autograd.profiler.profile; it has not had all of them in each version."""
        device = self.device()
        known = torch_profiler().profile.__init__
        arguments: Dict[str, Any] = {flag: flag in self.asked.flags for flag in FLAGS}
        arguments.update(use_kineto=True, use_cpu=any(a.name == "CPU" for a in self.asked.activities), use_mtia=device == "mtia",
                         experimental_config=self.asked.config, activity_filters=self.asked.filters or None,
                         custom_trace_id_callback=self.trace_id_callback)
        if accepts(known, "use_device"):
            arguments["use_device"] = device
        else:
            arguments["use_cuda"] = device == "cuda"
        return {name: value for name, value in arguments.items() if accepts(known, name)}

    def forget(self) -> bool:
        """What was prepared will not be started. False: it has to be, to be ended."""
        return False

    def start(self) -> None:
        try:
            if "profile_memory" in self.asked.flags:
                self._held = Held()
                self._follow(Held.begin)
            if self.asked.observer:
                self.asked.observer.start()
            self._inner._start_trace()
            Notes.begin()
        except BaseException:
            self._inner = None
            self._forget_held()
            if self.asked.observer:
                self.asked.observer.stop()
            raise
        if kineto():
            for key, value in self._facts().items():
                torch().autograd._add_metadata_json(key, value)

    def stop(self) -> Optional[Recording]:
        """What was recorded; None where nothing was being recorded, since it could not begin."""
        inner, self._inner = self._inner, None
        if inner is None:
            return None
        try:
            result = end(inner)
        finally:
            notes = Notes.end()
            if self.asked.observer:
                self.asked.observer.stop()
            self._follow(Held.end)
            facts = self._forget_held()
        recording = self.take(result)
        if notes:
            _tell_args(recording, notes)
        if facts:
            recording.held = facts
            tell(recording.path, facts)
        return recording

    def _follow(self, moment: Callable[[Held], None]) -> None:
        """Notes what is held. Where that fails, the program goes on, and memory has no categories from there."""
        if self._held is None:
            return
        try:
            moment(self._held)
        except Exception as e:
            self._forget_held()
            warnings.warn(f"what memory is for could not be noted: {type(e).__name__}: {e}", stacklevel=4)

    def _forget_held(self) -> Optional[Facts]:
        held, self._held = self._held, None
        if held is None:
            return None
        held.close()
        return held.facts()

    def toggle(self, enable: bool, activities: Iterable[Any]) -> None:
        if not hasattr(self._inner, "toggle_collection_dynamic"):
            raise RuntimeError("this torch cannot, or nothing is being recorded")
        self._inner.toggle_collection_dynamic(enable, activities)

    def add_metadata_json(self, key: str, value: str) -> None:
        self.metadata[key] = value
        if self.ready and kineto():
            torch().autograd._add_metadata_json(key, value)

    def _facts(self) -> Dict[str, str]:
        """What torch.profiler.profile says of itself in a trace, and what the program adds: names with JSON."""
        return {**{flag: "1" for flag in FLAGS if flag in self.asked.flags}, **_distributed(), **self.metadata}

    def folder(self) -> str:
        """Where the files are. It goes with this object. A forked child has its own."""
        pid = os.getpid()
        if self._folder is None or self._folder[0] != pid:
            import tempfile
            import weakref

            self._folder = pid, tempfile.mkdtemp(prefix="opscope-profile-")
            weakref.finalize(self, _remove, self._folder[1], pid)
        return self._folder[1]

    def take(self, result: Any) -> Recording:
        """Makes a recording of what torch has recorded."""
        self._number += 1
        path = os.path.join(self.folder(), f"{self._number}.pt.trace.json")
        bare = not kineto()
        recording = Recording(path, self.asked.compat or rules_of(torch().__version__), self.asked.flags, self.device(), bare)
        if bare:
            self._write(result, recording)
        else:
            result.save(path)
        return recording

    @staticmethod
    def _cudnn() -> Dict[str, str]:
        """Its version as it numbers it, 90100; nothing where torch was built without it, or with another than is there."""
        try:
            version = torch().backends.cudnn.version()
        except RuntimeError:
            version = None
        return {"cudnn": str(version)} if version else {}

    def _head(self, base_us: int) -> str:
        facts = {"schemaVersion": "1", "displayTimeUnit": '"ms"', "baseTimeNanoseconds": str(base_us * 1000), "torch": json.dumps(torch().__version__),
                 **self._cudnn(), **({"trace_id": json.dumps(self.trace_id)} if self.trace_id else {}), **self._facts()}
        return "{" + ",\n".join(f"{json.dumps(k)}: {v}" for k, v in facts.items()) + ',\n"traceEvents": ['

    def _write(self, result: Any, recording: Recording) -> None:
        if self._base_us is None:
            self._base_us = result.trace_start_us()  # one clock for all recordings
        flags = self.asked.flags
        with open(recording.path, "wb", buffering=0) as f:
            made = write(result, f.fileno(), head=self._head(self._base_us), tail="\n]}\n", base_us=self._base_us, pid=os.getpid(),
                         shapes="record_shapes" in flags, stacks="with_stack" in flags, flops="with_flops" in flags,
                         device_times=recording.use_device is not None)
        recording.written = made
        if made.lost_times:
            warnings.warn(f"{made.lost_times} ops have a device time that CUDA events measured; it is left out: that takes a torch with Kineto", stacklevel=4)


def _tell_args(recording: Recording, notes: Dict[str, List[Optional[str]]]) -> None:
    """torch's profiler drops the args of ranges."""
    written = recording.written
    if written is None:
        patch_file(recording.path, notes)
    else:
        recording.written = written._replace(end=patch_part(recording.path, written.begin, written.end, notes))


def _remove(folder: str, pid: int) -> None:
    """The folder of a profile that is gone; a forked child leaves it to its parent."""
    if os.getpid() == pid:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
