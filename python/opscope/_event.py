"""One event, one average of events, as torch.profiler has them: of a recording, or made by a program.

Times are microseconds, memory is bytes. What a recording says of an event is stored in it; what it does not say, and all of an event that a program made
or changed, is worked out as torch does: own time is the time less that of the children, device time that of its kernels and of its children's."""
from __future__ import annotations

import sys
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Union

_DEVICES = ("cuda", "xpu", "privateuse1")  # whose names a device's numbers have, too


def format_time(us: float) -> str:
    """A time as torch writes it: "1.234ms"."""
    if us >= 1000000:
        return f"{us / 1000000.0:.3f}s"
    if us >= 1000:
        return f"{us / 1000.0:.3f}ms"
    return f"{us:.3f}us"


def kind_of_device(name: str) -> Any:
    """torch's DeviceType where torch is loaded, else its name."""
    torch = sys.modules.get("torch")
    types = getattr(getattr(torch, "autograd", None), "DeviceType", None)
    return getattr(types, name or "CPU", name or "CPU")


def is_on_host(event: Any) -> bool:
    """Of torch's own events, too."""
    kind = event.device_type
    return getattr(kind, "name", kind) in ("CPU", "")


class Kernel(NamedTuple):
    """Work on a device that an event launched. device: its ordinal, None = not known; duration: us."""

    name: str
    device: Optional[int]
    duration: float


class Interval:
    """Start and end of an event in us since the recording began."""

    __slots__ = ("start", "end")

    def __init__(self, start: float, end: float):
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        return self.end - self.start

    def __repr__(self) -> str:
        return f"Interval(start={self.start}, end={self.end})"


class Times:
    """What FunctionEvent and FunctionEventAvg have in common: means, texts, and one number for a device under each of its names.

    X_str is the time X as torch writes it; cuda_X, self_cuda_X and those of xpu and privateuse1 are device_X and self_device_X.
    """

    count: int
    device_time_total: float
    self_cpu_time_total: float
    self_device_time_total: float

    @property
    def cpu_time(self) -> float:
        """Mean time on the CPU."""
        total: float = self.cpu_time_total
        return total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Mean time on the device; None where that is unknown."""
        total: Any = self.device_time_total
        mean: float = total and total / self.count if self.count else 0.0
        return mean

    #: What is worked out where it is not stored: name -> how.
    _worked_out: Dict[str, Callable[[Any], Any]] = {}

    def __getattr__(self, name: str) -> Any:
        how = type(self)._worked_out.get(name)
        if how:
            return how(self)
        for device in _DEVICES:
            if name.startswith((device + "_", "self_" + device + "_")):
                return getattr(self, name.replace(device, "device", 1))
        if name.endswith("_str") and "time" in name:
            time = getattr(self, name[:-len("_str")])
            return "unknown" if time is None else format_time(time)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


class FunctionEvent(Times):
    """One event. Of a recording, `id` is its number in the list, and `kernel_count` how many pieces of device work it launched itself.

    A program may make its own, with torch's arguments; times are us.
    """

    id: Any
    name: str
    trace_name: Optional[str]
    time_range: Interval
    thread: Any
    fwd_thread: Optional[int]
    node_id: int
    input_shapes: Any
    concrete_inputs: List[Any]
    kwinputs: Dict[str, Any]
    metadata_json: Optional[str]
    stack: Any
    scope: int
    cpu_memory_usage: int
    self_cpu_memory_usage: int
    device_memory_usage: int
    self_device_memory_usage: int
    is_async: bool
    is_remote: bool
    is_user_annotation: bool
    is_legacy: bool
    sequence_nr: int
    device_type: Any
    flops: Optional[int]
    overload_name: str
    kernels: List[Kernel]
    kernel_count: int
    cpu_children: List[FunctionEvent]
    cpu_parent: Optional[FunctionEvent]
    use_device: Optional[str]
    device_index: int
    device_resource_id: Any

    def __init__(self, id: Any, name: str, thread: Any, start_us: float, end_us: float, fwd_thread: Optional[int] = None, input_shapes: Any = None,
                 stack: Any = None, scope: int = 0, use_device: Optional[str] = None, cpu_memory_usage: int = 0, device_memory_usage: int = 0,
                 is_async: bool = False, is_remote: bool = False, sequence_nr: int = -1, node_id: int = -1, device_type: Any = None, device_index: int = 0,
                 device_resource_id: Any = None, is_legacy: bool = False, flops: Optional[int] = None, trace_name: Optional[str] = None,
                 concrete_inputs: Optional[List[Any]] = None, kwinputs: Optional[Dict[str, Any]] = None, is_user_annotation: bool = False,
                 overload_name: Optional[str] = None, metadata_json: Optional[str] = None, cuda_memory_usage: int = 0):
        self.id, self.name, self.trace_name, self.thread, self.fwd_thread = id, name, trace_name, thread, fwd_thread
        self.time_range = Interval(start_us, end_us)
        self.count, self.node_id, self.sequence_nr, self.scope = 1, node_id, sequence_nr, scope
        self.input_shapes, self.stack, self.flops = input_shapes, stack, flops
        self.concrete_inputs, self.kwinputs, self.metadata_json = concrete_inputs or [], kwinputs or {}, metadata_json
        self.cpu_memory_usage, self.device_memory_usage = cpu_memory_usage, device_memory_usage or cuda_memory_usage
        self.is_async, self.is_remote, self.is_legacy, self.is_user_annotation = is_async, is_remote, is_legacy, is_user_annotation
        self.device_type = kind_of_device("CPU") if device_type is None else device_type
        self.use_device, self.device_index = use_device, device_index
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.overload_name = overload_name or ""
        self.kernels, self.cpu_children, self.cpu_parent = [], [], None

    def _own(self) -> None:
        """From here on it is the program's: what was stored of what can be worked out is forgotten."""
        for name in FunctionEvent._worked_out:
            self.__dict__.pop(name, None)

    def append_kernel(self, name: str, device: Optional[int], duration: float) -> None:
        """It launched this, too. duration: us."""
        assert is_on_host(self), "what runs on a device launches nothing"
        self._own()
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """`child` ran directly in it."""
        assert isinstance(child, FunctionEvent) and is_on_host(self) and is_on_host(child), "events on the host were expected"
        self._own()
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """It ran directly in `parent`."""
        assert isinstance(parent, FunctionEvent) and is_on_host(self) and is_on_host(parent), "events on the host were expected"
        self._own()
        self.cpu_parent = parent

    @property
    def key(self) -> str:
        return self.name

    @property
    def cpu_time_total(self) -> float:
        return self.time_range.elapsed_us() if is_on_host(self) else 0

    def __repr__(self) -> str:
        return (f"<FunctionEvent id={self.id} name={self.name} device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str} "
                f"start_us={self.time_range.start} end_us={self.time_range.end} cpu_children={[child.id for child in self.cpu_children]} "
                f"cuda_time={self.cuda_time_str} name={self.name} thread={self.thread} input_shapes={self.input_shapes} "
                f"cpu_memory_usage={self.cpu_memory_usage} cuda_memory_usage={self.device_memory_usage} is_async={self.is_async} "
                f"is_remote={self.is_remote} seq_nr={self.sequence_nr} is_legacy={self.is_legacy}>")


def _less_children(of_all: str) -> Callable[[FunctionEvent], Any]:
    def own(event: FunctionEvent) -> Any:
        if event.is_async or not is_on_host(event):
            return 0
        parts = [getattr(e, of_all) for e in (event, *event.cpu_children)]
        return None if None in parts else parts[0] - sum(parts[1:])
    return own


def _device_total(event: FunctionEvent) -> float:
    if event.is_async:
        return 0
    if not is_on_host(event):
        return event.time_range.elapsed_us()
    launched = sum(kernel.duration for kernel in event.kernels)
    return launched if event.is_legacy else launched + sum(child.device_time_total for child in event.cpu_children)


def _device_self(event: FunctionEvent) -> float:
    if event.is_async or not is_on_host(event):
        return event.device_time_total
    return event.device_time_total - sum(child.device_time_total for child in event.cpu_children)


FunctionEvent._worked_out = {
    "self_cpu_time_total": _less_children("cpu_time_total"), "self_cpu_memory_usage": _less_children("cpu_memory_usage"),
    "self_device_memory_usage": _less_children("device_memory_usage"), "device_time_total": _device_total,
    "self_device_time_total": _device_self, "kernel_count": lambda event: len(event.kernels),
}


#: What averages add up.
SUMS = ("cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total", "cpu_memory_usage", "self_cpu_memory_usage",
        "device_memory_usage", "self_device_memory_usage", "count")


class FunctionEventAvg(Times):
    """The sums of one group of events."""

    key: Optional[str] = None
    node_id = 0
    is_async = False
    is_remote = False
    is_legacy = False
    is_user_annotation = False
    use_device: Optional[str] = None
    count = 0
    cpu_time_total: float = 0
    self_cpu_time_total = 0
    device_time_total = 0
    self_device_time_total = 0
    cpu_memory_usage = 0
    self_cpu_memory_usage = 0
    device_memory_usage = 0
    self_device_memory_usage = 0
    flops: int = 0
    input_shapes: Union[str, List[List[int]], None] = None
    stack: Any = None
    overload_name: str = ""
    device_type: Any = "CPU"
    # Of the first event of the group; asked for by __getattr__ where a recording has them.
    scope: Optional[int]
    cpu_children: Optional[List[FunctionEvent]]
    cpu_parent: Optional[FunctionEvent]
    _first: Optional[Callable[[], Optional[FunctionEvent]]] = None

    def add(self, other: Union[FunctionEvent, FunctionEventAvg]) -> FunctionEventAvg:
        """Adds an event, or another average, of the same name. The first one says what is not added up."""
        if self.key is None:
            for name in _OF_FIRST:
                setattr(self, name, getattr(other, name))
        assert isinstance(other, (FunctionEvent, FunctionEventAvg)), "a FunctionEvent or FunctionEventAvg was expected"
        assert other.key == self.key, f"{other.key!r} is not {self.key!r}"
        for name in SUMS:
            setattr(self, name, _sum(getattr(self, name), getattr(other, name)))
        self.flops = (self.flops or 0) + (other.flops or 0)
        return self

    __iadd__ = add

    def __copy__(self) -> FunctionEventAvg:
        twin = FunctionEventAvg()
        twin.__dict__.update(self.__dict__)
        return twin

    def __getstate__(self) -> Dict[str, Any]:
        """Without the recording."""
        return {name: value for name, value in self.__dict__.items() if name != "_first"}

    def __repr__(self) -> str:
        return (f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
                f" self_cuda_time={self.self_cuda_time_total_str} cuda_time={self.cuda_time_str} input_shapes={self.input_shapes} "
                f"cpu_memory_usage={self.cpu_memory_usage} cuda_memory_usage={self.cuda_memory_usage}>")


def _of_first(name: str) -> Callable[[FunctionEventAvg], Any]:
    def ask(average: FunctionEventAvg) -> Any:
        first = average._first() if average._first else None
        return getattr(first, name) if first else None
    return ask


FunctionEventAvg._worked_out = {name: _of_first(name) for name in ("scope", "cpu_children", "cpu_parent")}


_OF_FIRST = ("key", "node_id", "is_async", "is_remote", "cpu_parent", "cpu_children", "input_shapes", "stack", "scope", "device_type", "is_legacy",
             "use_device", "is_user_annotation", "overload_name")


def _sum(a: Any, b: Any) -> Any:
    """What is unknown of one is unknown of both."""
    return None if a is None or b is None else a + b
