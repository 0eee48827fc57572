"""What prof.key_averages() and prof.events() of torch.profiler give, over tables that the C library makes.

An EventList reads like torch's list of events: len(), [], for, table(), total_average(), export_stacks() and so on. It is read-only, and a Python
object is made for a row only when one is asked for. Times are microseconds, as in torch; memory is bytes."""
from __future__ import annotations

import ast
import json
import sys
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NoReturn, Optional, Sequence, TypeVar, Union, overload

from . import _core
from .table import Cell, Table
from .trace import Path, Trace

if TYPE_CHECKING:
    from .profiler import Recording

# What table(sort_by=...) takes: attributes of FunctionEventAvg, as the library's columns are called.
_DEVICES = ("cuda", "xpu", "privateuse1", "device")
SORT_KEYS = frozenset(
    ["key", "count", "cpu_time", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "flops", "node_id"]
    + [f"{d}_{what}" for d in _DEVICES for what in ("time", "time_total", "memory_usage")]
    + [f"self_{d}_{what}" for d in _DEVICES for what in ("time_total", "memory_usage")])


def format_time(us: float) -> str:
    """A time as torch writes it: "1.234ms"."""
    if us >= 1000000:
        return f"{us / 1000000.0:.3f}s"
    if us >= 1000:
        return f"{us / 1000.0:.3f}ms"
    return f"{us:.3f}us"


def device_type(name: str) -> Any:
    """torch's DeviceType where torch is loaded, else its name."""
    torch = sys.modules.get("torch")
    types = getattr(getattr(torch, "autograd", None), "DeviceType", None)
    return getattr(types, name or "CPU", name or "CPU")


def columns_of(table: _core.Table) -> Dict[str, int]:
    """{id: number} of a _core.Table."""
    return {c[0]: i for i, c in enumerate(table.columns)}


class Times:
    """What FunctionEvent and FunctionEventAvg have in common: means, texts, and one number for a device under each of its names.

    X_str is the time X as torch writes it; cuda_X, self_cuda_X and those of xpu and privateuse1 are device_X and self_device_X.
    """

    count: int = 1
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

    def __getattr__(self, name: str) -> Any:
        for device in _DEVICES[:-1]:
            if name.startswith((device + "_", "self_" + device + "_")):
                return getattr(self, name.replace(device, "device", 1))
        if name.endswith("_str") and "time" in name:
            time = getattr(self, name[:-len("_str")])
            return "unknown" if time is None else format_time(time)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


class FunctionEventAvg(Times):
    """The sums of one group of events."""

    key: str
    node_id: int
    is_async: bool
    is_remote: bool
    is_legacy = False
    cpu_time_total: float
    cpu_memory_usage: int
    self_cpu_memory_usage: int
    device_memory_usage: int
    self_device_memory_usage: int
    flops: int
    input_shapes: Union[str, List[List[int]]]
    stack: List[str]
    overload_name: str
    device_type: Any

    def __repr__(self) -> str:
        return (f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
                f" self_cuda_time={self.self_cuda_time_total_str} cuda_time={self.cuda_time_str} input_shapes={self.input_shapes} "
                f"cpu_memory_usage={self.cpu_memory_usage} cuda_memory_usage={self.cuda_memory_usage}>")


_ALL_FRAMES = 1 << 20


def _shapes(text: str) -> List[List[int]]:
    return list(ast.literal_eval(text)) if text else []


_SUMS = ("cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total", "cpu_memory_usage", "self_cpu_memory_usage",
         "device_memory_usage", "self_device_memory_usage", "flops", "count")


def averages_of(table: _core.Table, whole_us: bool, by_shape: bool) -> List[FunctionEventAvg]:
    """A FunctionEventAvg for each row of a key-averages or total-average table. whole_us: torch of that version has integers."""
    at = columns_of(table)

    def column(name: str, otherwise: Any) -> List[Any]:
        values: List[Cell] = table.column(at[name]) if name in at else [None] * table.rows
        return [otherwise if v is None else v for v in values]

    data = {name: column(name, 0) for name in _SUMS}
    keys, nodes, stacks = column("key", ""), column("node_id", -1), column("stack", "")
    shapes, overloads, types = column("input_shapes", ""), column("overload_name", ""), column("device_type", "CPU")
    is_async = column("is_async", False)
    averages = []
    for i in range(table.rows):
        a = FunctionEventAvg()
        for name in _SUMS:
            v = data[name][i]
            setattr(a, name, int(v) if whole_us and name.endswith("time_total") else v)
        a.key, a.node_id, a.is_async, a.is_remote = keys[i], nodes[i], is_async[i], nodes[i] >= 0
        a.input_shapes = _shapes(shapes[i]) if by_shape else ""
        a.stack = stacks[i].split(";") if stacks[i] else []
        a.overload_name, a.device_type = overloads[i], device_type(types[i])
        averages.append(a)
    return averages


class Interval:
    """Start and end of an event in us since the recording began."""

    __slots__ = ("start", "end")

    def __init__(self, start: float, end: float):
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        return self.end - self.start

    def __repr__(self) -> str:
        return f"Interval(start={self.start}, end={self.end})"


# Arguments of ops that torch itself writes; any other is an argument by name of the op's call (or, of a collective, what torch says of it).
_OF_TORCH = frozenset(["Input type", "Input Strides", "Module Hierarchy", "Python thread"])


def _value(text: str) -> Any:
    """A value as torch writes it: "", "1", "[2, 3]", "True"; other texts are themselves."""
    try:
        return ast.literal_eval(text) if text else None
    except (ValueError, SyntaxError):
        return text


class FunctionEvent(Times):
    """One event. `id` is its number in the list, `kernel_count` how many pieces of device work it launched itself."""

    _list: EventList[FunctionEvent]
    _parent: Optional[int]
    _on_device: bool
    id: int
    name: str
    trace_name: Optional[str]
    time_range: Interval
    thread: Any
    fwd_thread: int
    node_id: int
    input_shapes: List[List[int]]
    stack: List[str]
    scope: int
    cpu_memory_usage: int
    self_cpu_memory_usage: int
    device_memory_usage: int
    self_device_memory_usage: int
    is_async: bool
    is_remote: bool
    is_user_annotation: bool
    is_legacy = False
    sequence_nr: int
    device_type: Any
    flops: int
    overload_name: str
    kernel_count: int
    use_device: Optional[str]
    device_index: int
    device_resource_id: Any
    _concrete = ""
    _arguments = ""

    @property
    def concrete_inputs(self) -> List[Any]:
        """Values of the inputs that are no tensors, None for those that are; with record_shapes, since torch 2."""
        return [_value(v) if isinstance(v, str) else v for v in json.loads(self._concrete)] if self._concrete else []

    @property
    def kwinputs(self) -> Dict[str, Any]:
        """Inputs by name, as far as torch records any."""
        known = json.loads(self._arguments) if self._arguments and not self._on_device else {}
        return {name: value for name, value in known.items() if name not in _OF_TORCH}

    @property
    def metadata_json(self) -> Optional[str]:
        """What else the trace says of the event, as the inside of a JSON object."""
        return self._arguments[1:-1] or None

    @property
    def key(self) -> str:
        return self.name

    @property
    def cpu_time_total(self) -> float:
        return 0 if self._on_device else self.time_range.elapsed_us()

    @property
    def cpu_parent(self) -> Optional[FunctionEvent]:
        return None if self._parent is None else self._list[self._parent]

    @property
    def cpu_children(self) -> List[FunctionEvent]:
        return [self._list[i] for i in self._list.children(self.id)]

    def __repr__(self) -> str:
        return (f"<FunctionEvent id={self.id} name={self.name} device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str} "
                f"start_us={self.time_range.start} end_us={self.time_range.end} cpu_children={self._list.children(self.id)} "
                f"cuda_time={self.cuda_time_str} name={self.name} thread={self.thread} input_shapes={self.input_shapes} "
                f"cpu_memory_usage={self.cpu_memory_usage} cuda_memory_usage={self.device_memory_usage} is_async={self.is_async} "
                f"is_remote={self.is_remote} seq_nr={self.sequence_nr} is_legacy={self.is_legacy}>")


def _thread(text: str) -> Any:
    return int(text) if text and text.lstrip("-").isdigit() else text


Made = TypeVar("Made", FunctionEvent, FunctionEventAvg)


class EventList(Sequence[Made]):
    """Events, or groups of them, of one recording."""

    def __init__(self) -> None:
        self._made: Optional[List[Made]] = None

    def _make(self) -> List[Made]:
        raise NotImplementedError

    def _all(self) -> List[Made]:
        if self._made is None:
            self._made = self._make()
        return self._made

    def __len__(self) -> int:
        return len(self._all())

    def __iter__(self) -> Iterator[Made]:
        return iter(self._all())

    @overload
    def __getitem__(self, i: int) -> Made: ...
    @overload
    def __getitem__(self, i: slice) -> List[Made]: ...

    def __getitem__(self, i: Union[int, slice]) -> Union[Made, List[Made]]:
        return self._all()[i]

    def children(self, i: int) -> List[int]:
        """Numbers of the events directly inside event i."""
        return []

    def __deepcopy__(self, memo: Dict[int, Any]) -> EventList[Made]:
        """Items of its own, made anew when they are asked for, of the same recording, which never changes."""
        twin = memo[id(self)] = self.__copy__()
        twin._made = None
        return twin

    def __copy__(self) -> EventList[Made]:
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} cannot be pickled, since it answers from its recording: pickle what you need of it (list(prof.key_averages()), "
                        "prof.events().data.to_dict()), or keep the recording by prof.save(path)")

    def table(self, *arguments: Any, **keywords: Any) -> str:
        raise NotImplementedError

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return repr(list(self))


# Of columns and rows: more than any table has.
_WIDEST = 1000000
_ROWS = (1 << 63) - 1


def _limit(rows: Any) -> int:
    """torch stops where the number of rows equals row_limit: what is no whole number is never reached. 0 = all."""
    try:
        whole = int(rows)
        return whole if whole == rows and 0 < whole <= _ROWS else 0
    except (TypeError, ValueError, OverflowError):
        return 0


def _width(argument: str, n: Any) -> int:
    if n is None:
        return _WIDEST
    if not isinstance(n, int) or n < 1:
        raise ValueError(f"table({argument}={n!r}): a number from 1 on, or None for no limit, was expected")
    return min(n, _WIDEST)


def table_options(sort_by: Optional[str], row_limit: Optional[int], max_src_column_width: Optional[int], max_name_column_width: Optional[int],
                  max_shapes_column_width: Optional[int], header: Optional[str], time_unit: Optional[str]) -> Dict[str, str]:
    """The library's options for torch's arguments of table()."""
    if sort_by is not None and sort_by not in SORT_KEYS:
        raise AttributeError(f"table(sort_by={sort_by!r}): there are {', '.join(sorted(SORT_KEYS))}")
    widths = {"key": _width("max_name_column_width", max_name_column_width), "input_shapes": _width("max_shapes_column_width", max_shapes_column_width),
              "stack": _width("max_src_column_width", max_src_column_width)}
    options = {"limit": str(_limit(row_limit)), "max-width": ",".join(f"{name}:{n}" for name, n in widths.items())}
    if sort_by is not None:
        options["sort"] = "-" + sort_by
    if header is not None:
        options["title"] = header
    if time_unit is not None:
        options["time-unit"] = time_unit
    return options


class Averages(EventList[FunctionEventAvg]):
    """prof.key_averages(): groups in the order of their first events."""

    def __init__(self, recording: Recording, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False,
                 each: bool = False):
        super().__init__()
        self._recording = recording
        self._by_shape = group_by_input_shape
        parts = ["name"] + ["shape"] * bool(group_by_input_shape) + ["overload"] * bool(group_by_overload_name) + ["event"] * each
        if group_by_stack_n > 0:
            parts.append(f"stack:{group_by_stack_n}")
        self._options = {"group-by": ",".join(parts)}
        self._table = recording.ask("key-averages", self._options)

    @property
    def data(self) -> Optional[Table]:
        """The table itself, for pandas, Arrow, CSV; None where nothing was recorded."""
        return None if self._table is None else Table(self._table)

    def __len__(self) -> int:
        return self._table.rows if self._table else 0

    def _make(self) -> List[FunctionEventAvg]:
        return averages_of(self._table, self._recording.whole_us, self._by_shape) if self._table else []

    def table(self, sort_by: Optional[str] = None, row_limit: Optional[int] = 100, max_src_column_width: Optional[int] = 75,
              max_name_column_width: Optional[int] = 55, max_shapes_column_width: Optional[int] = 80, header: Optional[str] = None,
              top_level_events_only: bool = False, time_unit: Optional[str] = None) -> str:
        """The text that torch's table() gives: arguments as there."""
        options = table_options(sort_by, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width, header, time_unit)
        table = self._table
        if top_level_events_only and table:
            table = self._recording.ask("key-averages", {**self._options, "top-level": "1"})
        return table.render("text", options).decode() if table else ""

    @property
    def self_cpu_time_total(self) -> float:
        """Sum of the own times on the CPU, us."""
        return sum(a.self_cpu_time_total or 0 for a in self)

    def total_average(self) -> FunctionEventAvg:
        return self._recording.total_average()


class Events(EventList[FunctionEvent]):
    """prof.events(): each event, in order of start."""

    def __init__(self, recording: Recording):
        super().__init__()
        self._recording = recording
        self._table = recording.ask("function-events", {})
        self._columns: Dict[str, Optional[List[Cell]]] = {}
        self._inside: Optional[Dict[int, List[int]]] = None

    @property
    def data(self) -> Optional[Table]:
        """The table itself, for pandas, Arrow, CSV; None where nothing was recorded."""
        return None if self._table is None else Table(self._table)

    def __len__(self) -> int:
        return self._table.rows if self._table else 0

    def __iter__(self) -> Iterator[FunctionEvent]:
        return map(self._event, range(len(self)))

    @overload
    def __getitem__(self, i: int) -> FunctionEvent: ...
    @overload
    def __getitem__(self, i: slice) -> List[FunctionEvent]: ...

    def __getitem__(self, i: Union[int, slice]) -> Union[FunctionEvent, List[FunctionEvent]]:
        if isinstance(i, slice):
            return [self._event(k) for k in range(*i.indices(len(self)))]
        if not -len(self) <= i < len(self):
            raise IndexError("no such event")
        return self._event(i % len(self))

    def _column(self, name: str) -> Optional[List[Cell]]:
        """None where the table lacks it."""
        if name not in self._columns and self._table:
            at = columns_of(self._table).get(name)
            self._columns[name] = None if at is None else self._table.column(at)
        return self._columns.get(name)

    def _us(self, ns: int) -> float:
        return ns // 1000 if self._recording.whole_us else ns / 1000

    def _event(self, i: int) -> FunctionEvent:
        def get(name: str, otherwise: Any) -> Any:
            values = self._column(name)
            v = None if values is None else values[i]
            return otherwise if v is None else v

        e = FunctionEvent()
        e._list, e.id, e._parent, e._on_device = self, i, get("parent", None), get("on_device", False)
        e.name, e.trace_name = get("name", ""), get("trace_name", None)
        zero = self._recording.zero_ns
        e.time_range = Interval(self._us(get("start_ns", 0) - zero), self._us(get("end_ns", 0) - zero))
        e.thread, e.fwd_thread, e.node_id = _thread(get("thread", "0")), get("fwd_thread", 0), get("node_id", -1)
        e.input_shapes = _shapes(get("input_shape", ""))
        stack = get("call_stack", "")
        e.stack = stack.split(";") if stack else []
        e.scope = 1 if get("backward_node", False) else 7 if get("user_annotation", False) else 0
        e.is_async, e.is_remote, e.is_user_annotation = get("async", False), e.node_id >= 0, get("user_annotation", False)
        e.sequence_nr, e.flops, e.overload_name, e.kernel_count = get("sequence_number", -1), get("flops", 0), get("overload_name", ""), get("kernels", 0)
        e.device_type = device_type("CUDA" if e._on_device else "CPU")
        e.use_device, e.device_index, e.device_resource_id = self._recording.use_device, get("device", 0), get("stream", e.thread)
        e._concrete, e._arguments = get("concrete_inputs", ""), get("arguments", "")
        e.cpu_memory_usage, e.self_cpu_memory_usage = get("host_memory_bytes", 0), get("host_self_memory_bytes", 0)
        e.device_memory_usage, e.self_device_memory_usage = get("device_memory_bytes", 0), get("device_self_memory_bytes", 0)
        e.self_cpu_time_total = self._us(get("host_self_ns", 0))
        e.device_time_total, e.self_device_time_total = self._us(get("device_total_ns", 0)), self._us(get("device_self_ns", 0))
        return e

    def children(self, i: int) -> List[int]:
        """Numbers of the events directly inside event i."""
        if self._inside is None:
            self._inside = {}
            for k, up in enumerate(self._column("parent") or ()):
                if isinstance(up, int):
                    self._inside.setdefault(up, []).append(k)
        return self._inside.get(i, [])

    @property
    def self_cpu_time_total(self) -> float:
        """Sum of the own times on the CPU, us."""
        return self._us(sum(v for v in self._column("host_self_ns") or () if isinstance(v, int)))

    def key_averages(self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False) -> Averages:
        return Averages(self._recording, group_by_input_shapes, group_by_stack_n, group_by_overload_name)

    def total_average(self) -> FunctionEventAvg:
        return self._recording.total_average()

    def table(self, *arguments: Any, **keywords: Any) -> str:
        """The text that torch's table() gives of single events: arguments as for averages."""
        return Averages(self._recording, True, _ALL_FRAMES, each=True).table(*arguments, **keywords)

    def supported_export_stacks_metrics(self) -> List[str]:
        return self._recording.stack_metrics()

    def export_chrome_trace(self, path: Path) -> None:
        self._recording.export_list(path)

    def export_stacks(self, path: Path, metric: str) -> None:
        self._recording.write_stacks(path, metric)


class NvprofEvents(EventList[FunctionEvent]):
    """load_nvprof(): the ranges of a database of nvprof, in order of start. `id` is the range's own."""

    def __init__(self, trace: Trace):
        super().__init__()
        #: The table itself, for pandas, Arrow, CSV.
        self.data: Table = trace.report("load-nvprof")

    def _make(self) -> List[FunctionEvent]:
        names = ("id", "name", "start_ns", "cpu_time_ns", "kernels", "cuda_time_ns")
        return [self._event(*row) for row in zip(*(self.data[n] for n in names))]

    def _event(self, number: Any, name: Any, start: Any, cpu: Any, kernels: Any, cuda: Any) -> FunctionEvent:
        e = FunctionEvent()
        e._list, e.id, e._parent, e._on_device = self, number, None, False
        e.name = e.trace_name = name
        e.time_range = Interval(start / 1000, (start + (cpu or 0)) / 1000)
        e.thread = e.node_id = e.fwd_thread = e.scope = e.flops = 0
        e.input_shapes, e.stack, e.sequence_nr, e.overload_name = [], [], -1, ""
        e.is_async = e.is_remote = e.is_user_annotation = False
        e.cpu_memory_usage = e.self_cpu_memory_usage = e.device_memory_usage = e.self_device_memory_usage = 0
        e.use_device, e.device_index, e.device_resource_id = "cuda", 0, 0
        e.self_cpu_time_total, e.kernel_count = (cpu or 0) / 1000, kernels or 0
        e.device_time_total = e.self_device_time_total = (cuda or 0) / 1000
        e.device_type = device_type("CPU")
        return e

    def table(self, **options: Any) -> str:
        """As text, with the options of opscope's tables: sort="cuda_time_ns", limit=10."""
        return self.data._text("text", **{k.replace("_", "-"): str(v) for k, v in options.items()}).decode()
