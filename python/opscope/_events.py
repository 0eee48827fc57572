"""What prof.key_averages() and prof.events() of torch.profiler give, over tables that the C library makes.

An EventList is like torch's list of events: len(), [], for, append(), sort(), table(), total_average(), export_stacks() and so on. Of a recording, a Python
object is made for a row only when one is asked for, and the library answers; once a program changes the list, or an event of it, all answers are worked out
from its items, as torch does. Times are microseconds, as in torch; memory is bytes."""
from __future__ import annotations

import ast
import bisect
import copy
import json
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, MutableSequence, NamedTuple, Optional, TypeVar, Union, overload

from . import _core, _made
from ._event import SUMS, FunctionEvent, FunctionEventAvg, Interval, Kernel, kind_of_device
from ._ranges import RANGE_ARGS
from ._torch_modules import rules_of
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


def columns_of(table: _core.Table) -> Dict[str, int]:
    """{id: number} of a _core.Table."""
    return {c[0]: i for i, c in enumerate(table.columns)}


_ALL_FRAMES = 1 << 20


def _shapes(text: str) -> List[List[int]]:
    return list(ast.literal_eval(text)) if text else []


def averages_of(table: _core.Table, whole_us: bool, by_shape: bool) -> List[FunctionEventAvg]:
    """A FunctionEventAvg for each row of a key-averages or total-average table. whole_us: torch of that version has integers."""
    at = columns_of(table)

    def column(name: str, otherwise: Any) -> List[Any]:
        values: List[Cell] = table.column(at[name]) if name in at else [None] * table.rows
        return [otherwise if v is None else v for v in values]

    sums = (*SUMS, "flops")
    data = {name: column(name, 0) for name in sums}
    keys, nodes, stacks = column("key", ""), column("node_id", -1), column("stack", "")
    shapes, overloads, types = column("input_shapes", ""), column("overload_name", ""), column("device_type", "CPU")
    is_async = column("is_async", False)
    averages = []
    for i in range(table.rows):
        a = FunctionEventAvg()
        for name in sums:
            v = data[name][i]
            setattr(a, name, int(v) if whole_us and name.endswith("time_total") else v)
        a.key, a.node_id, a.is_async, a.is_remote = keys[i], nodes[i], is_async[i], nodes[i] >= 0
        a.input_shapes = _shapes(shapes[i]) if by_shape else ""
        a.stack = stacks[i].split(";") if stacks[i] else []
        a.overload_name, a.device_type = overloads[i], kind_of_device(types[i])
        averages.append(a)
    return averages


# Arguments of ops that torch itself writes; any other is an argument by name of the op's call (or, of a collective, what torch says of it).
_OF_TORCH = frozenset(["Input type", "Input Strides", "Module Hierarchy", "Python thread", RANGE_ARGS])


def _value(text: str) -> Any:
    """A value as torch writes it: "", "1", "[2, 3]", "True"; other texts are themselves."""
    try:
        return ast.literal_eval(text) if text else None
    except (ValueError, SyntaxError):
        return text


class RecordedEvent(FunctionEvent):
    """An event of a recording, which answers what is not stored in it: its kernels, children and parent are looked up when they are asked for. Once a program
    changes one (append_kernel, append_cpu_child, set_cpu_parent), the whole list is the program's."""

    _list: Events
    _parent: Optional[int]
    _on_device: bool
    is_legacy = False
    count = 1
    _concrete = ""
    _arguments = ""

    def __init__(self) -> None:
        """Empty: its list stores what it has."""

    @property
    def cpu_time_total(self) -> float:
        return 0 if self._on_device else self.time_range.elapsed_us()

    def _own(self) -> None:
        self._list.take_over()

    def detach(self) -> None:
        """What was looked up is stored, and what can be worked out no more."""
        known = self.kernels, self.cpu_children, self.cpu_parent
        super()._own()
        self.kernels, self.cpu_children, self.cpu_parent = known


def _concrete_inputs(e: RecordedEvent) -> List[Any]:
    """Values of the inputs that are no tensors, None for those that are; with record_shapes, since torch 2."""
    return [_value(v) if isinstance(v, str) else v for v in json.loads(e._concrete)] if e._concrete else []


def _kwinputs(e: RecordedEvent) -> Dict[str, Any]:
    """Inputs by name, as far as torch records any."""
    known = json.loads(e._arguments) if e._arguments and not e._on_device else {}
    return {name: value for name, value in known.items() if name not in _OF_TORCH}


RecordedEvent._worked_out = {
    **FunctionEvent._worked_out,
    "kernels": lambda e: e._list.kernels(e.id),
    "cpu_children": lambda e: [e._list[i] for i in e._list.children(e.id)],
    "cpu_parent": lambda e: None if e._parent is None else e._list[e._parent],
    "concrete_inputs": _concrete_inputs,
    "kwinputs": _kwinputs,
    # What else the trace says of the event, as the inside of a JSON object.
    "metadata_json": lambda e: e._arguments[1:-1] or None,
}


def _thread(text: str) -> Any:
    return int(text) if text and text.lstrip("-").isdigit() else text


Made = TypeVar("Made", FunctionEvent, FunctionEventAvg)


class EventList(MutableSequence[Made]):
    """Events, or groups of them: of a recording, or a program's own, with torch's arguments."""

    #: Whether answers are worked out from the items.
    _changed = True

    def __init__(self, items: Iterable[Made] = (), *, use_device: Optional[str] = None, use_cuda: bool = True, profile_memory: bool = False,
                 with_flops: bool = False):
        self._items: Optional[List[Made]] = list(items)
        self._device = use_device or ("cuda" if use_cuda else None)
        self._memory, self._flops = profile_memory, with_flops
        self._rules = rules_of()

    def _of(self, recording: Recording) -> None:
        """Not a program's: the recording's, until somebody changes it."""
        self._items, self._changed = None, False
        self._device = recording.use_device
        self._memory, self._flops = "profile_memory" in recording.asked, "with_flops" in recording.asked
        self._rules = recording.compat

    def _make(self) -> List[Made]:
        raise NotImplementedError

    def _all(self) -> List[Made]:
        if self._items is None:
            self._items = self._make()
        return self._items

    def take_over(self) -> None:
        """From here on answers are worked out from the items."""
        self._all()
        self._changed = True

    def _mine(self) -> List[Made]:
        """To be changed."""
        if not self._changed:
            self.take_over()
        return self._all()

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

    def __setitem__(self, i: Any, item: Any) -> None:
        self._mine()[i] = item

    def __delitem__(self, i: Union[int, slice]) -> None:
        del self._mine()[i]

    def insert(self, i: int, item: Made) -> None:
        self._mine().insert(i, item)

    def sort(self, *, key: Optional[Callable[[Made], Any]] = None, reverse: bool = False) -> None:
        items: List[Any] = self._mine()
        items.sort(key=key, reverse=reverse)

    def __deepcopy__(self, memo: Dict[int, Any]) -> EventList[Made]:
        """Items of its own; those of a recording, which never changes, are made anew when they are asked for."""
        twin = memo[id(self)] = self.__copy__()
        twin._items = copy.deepcopy(self._items, memo) if self._changed else None
        return twin

    def __copy__(self) -> EventList[Made]:
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        if self._changed:
            twin._items = list(self._all())
        return twin

    def __reduce__(self) -> Any:
        if type(self) is EventList:
            return super().__reduce__()
        raise _not_pickled(type(self).__name__)

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return repr(list(self))

    # --- answers ---

    @property
    def self_cpu_time_total(self) -> float:
        """Sum of the own times on the CPU, us."""
        return sum(a.self_cpu_time_total or 0 for a in self)

    def key_averages(self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False) -> EventList[FunctionEventAvg]:
        """Events added up by name, and by input shapes, the innermost N frames of the stack, the overload."""
        groups = _made.averages(self, group_by_input_shapes, group_by_stack_n, group_by_overload_name)
        averages: EventList[FunctionEventAvg] = EventList(groups, use_device=self._device, use_cuda=False, profile_memory=self._memory, with_flops=self._flops)
        averages._rules = self._rules
        return averages

    def total_average(self) -> FunctionEventAvg:
        """All events as one."""
        return _made.total(self)

    def table(self, sort_by: Optional[str] = None, row_limit: Optional[int] = 100, max_src_column_width: Optional[int] = 75,
              max_name_column_width: Optional[int] = 55, max_shapes_column_width: Optional[int] = 80, header: Optional[str] = None,
              top_level_events_only: bool = False, time_unit: Optional[str] = None) -> str:
        """The text that torch's table() gives: arguments as there."""
        return _made.text(self._all(), _made.Style(self._rules), sort_by=sort_by, row_limit=_limit(row_limit) or None, max_src=max_src_column_width,
                          max_name=max_name_column_width, max_shapes=max_shapes_column_width, header=header, top_level=top_level_events_only,
                          unit=time_unit, device=(self._device or "cuda").upper(), memory=self._memory, flops=self._flops)

    def supported_export_stacks_metrics(self) -> List[str]:
        """What export_stacks takes."""
        return stack_metrics(self._rules)

    def export_chrome_trace(self, path: Path) -> None:
        """The bare array that torch writes of a list of events."""
        events: Any = self
        _made.write_chrome_list(events, path, self._device or "cuda")

    def export_stacks(self, path: Path, metric: str) -> None:
        """Folded stacks for a flame graph."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError("metric should be one of: " + str(self.supported_export_stacks_metrics()))
        _made.write_stacks(self, path, metric)

    def _populate_cpu_children(self) -> None:
        """As torch calls it: which event is in which, by their times."""
        events: Any = self._mine()
        _made.populate_cpu_children(events)


def stack_metrics(rules: str) -> List[str]:
    """Of export_stacks, in that version of torch."""
    devices = ("cuda",) if rules == "torch-1.13" else ("cuda", "xpu", "privateuse1")
    return ["self_cpu_time_total", *(f"self_{d}_time_total" for d in devices)]


def _not_pickled(name: str) -> TypeError:
    return TypeError(f"{name} cannot be pickled, since it answers from its recording: pickle what you need of it (list(prof.key_averages()), "
                     "prof.events().data.to_dict()), or keep the recording by prof.save(path)")


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
        self._of(recording)
        self._recording = recording
        self._by_shape, self._frames, self._by_overload = bool(group_by_input_shape), group_by_stack_n, bool(group_by_overload_name)
        self._firsts: Optional[Dict[Any, int]] = None
        parts = ["name"] + ["shape"] * self._by_shape + ["overload"] * self._by_overload + ["event"] * each
        if group_by_stack_n > 0:
            parts.append(f"stack:{group_by_stack_n}")
        self._options = {"group-by": ",".join(parts)}
        self._table = recording.ask("key-averages", self._options)

    @property
    def data(self) -> Optional[Table]:
        """The table itself, for pandas, Arrow, CSV; None where nothing was recorded."""
        return None if self._table is None else Table(self._table)

    def __len__(self) -> int:
        return super().__len__() if self._changed else self._table.rows if self._table else 0

    def _make(self) -> List[FunctionEventAvg]:
        averages = averages_of(self._table, self._recording.whole_us, self._by_shape) if self._table else []
        for a in averages:
            a._first = _First(self, a).event
        return averages

    def first_event(self, average: FunctionEventAvg) -> Optional[FunctionEvent]:
        """The first event of a group, as the recording has it."""
        events = self._recording.events()
        if self._firsts is None:
            self._firsts = events.firsts(self._by_shape, self._frames, self._by_overload)
        i = self._firsts.get(_group(average, self._by_shape, self._frames, self._by_overload))
        return None if i is None else events[i]

    def table(self, sort_by: Optional[str] = None, row_limit: Optional[int] = 100, max_src_column_width: Optional[int] = 75,
              max_name_column_width: Optional[int] = 55, max_shapes_column_width: Optional[int] = 80, header: Optional[str] = None,
              top_level_events_only: bool = False, time_unit: Optional[str] = None) -> str:
        """The text that torch's table() gives: arguments as there."""
        if self._changed:
            return super().table(sort_by, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width, header, top_level_events_only,
                                 time_unit)
        options = table_options(sort_by, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width, header, time_unit)
        table = self._table
        if top_level_events_only and table:
            table = self._recording.ask("key-averages", {**self._options, "top-level": "1"})
        return table.render("text", options).decode() if table else ""

    def total_average(self) -> FunctionEventAvg:
        rows_alone = self._rules == "torch-2.14"  # of a recording that version adds up Python frames, too, which have no rows
        if not self._changed and not rows_alone:
            return self._recording.total_average()
        total = super().total_average()
        for name in SUMS if not self._changed else ():  # what is unknown of some rows is left out of the sum, as in the recording's own
            known = [v for v in (getattr(a, name) for a in self) if v is not None]
            if known and getattr(total, name) is None:
                setattr(total, name, sum(known))
        return total


def _group(e: Union[FunctionEvent, FunctionEventAvg], by_shape: bool, frames: int, by_overload: bool) -> Any:
    """What is equal for all events of a group."""
    return (e.key, e.node_id, str(e.device_type), str(e.input_shapes) if by_shape else "", e.overload_name if by_overload else "",
            tuple(e.stack[:frames]) if frames > 0 else ())


class _First(NamedTuple):
    """The first event of a group of averages, looked up when it is asked for."""

    averages: Averages
    average: FunctionEventAvg

    def event(self) -> Optional[FunctionEvent]:
        return self.averages.first_event(self.average)


class Events(EventList[FunctionEvent]):
    """prof.events(): each event, in order of start."""

    def __init__(self, recording: Recording):
        self._of(recording)
        self._recording = recording
        self._table = recording.ask("function-events", {})
        self._columns: Dict[str, Optional[List[Cell]]] = {}
        self._inside: Optional[Dict[int, List[int]]] = None
        self._live: weakref.WeakValueDictionary[int, RecordedEvent] = weakref.WeakValueDictionary()

    @property
    def data(self) -> Optional[Table]:
        """The table itself, for pandas, Arrow, CSV; None where nothing was recorded."""
        return None if self._table is None else Table(self._table)

    def __copy__(self) -> EventList[FunctionEvent]:
        twin = super().__copy__()
        vars(twin)["_live"] = weakref.WeakValueDictionary()
        return twin

    def _make(self) -> List[FunctionEvent]:
        return list(self)

    def take_over(self) -> None:
        if self._changed:
            return
        super().take_over()
        for e in self._all():
            if isinstance(e, RecordedEvent):
                e.detach()

    def __len__(self) -> int:
        return super().__len__() if self._items is not None else self._table.rows if self._table else 0

    def __iter__(self) -> Iterator[FunctionEvent]:
        return super().__iter__() if self._items is not None else map(self._event, range(len(self)))

    @overload
    def __getitem__(self, i: int) -> FunctionEvent: ...
    @overload
    def __getitem__(self, i: slice) -> List[FunctionEvent]: ...

    def __getitem__(self, i: Union[int, slice]) -> Union[FunctionEvent, List[FunctionEvent]]:
        if self._items is not None:
            return self._items[i]
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
        """The same object as long as somebody has it."""
        e = self._live.get(i)
        if e is None:
            e = self._live[i] = self._fill(RecordedEvent(), i)
        return e

    def _fill(self, e: RecordedEvent, i: int) -> RecordedEvent:
        def get(name: str, otherwise: Any) -> Any:
            values = self._column(name)
            v = None if values is None else values[i]
            return otherwise if v is None else v

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
        e.device_type = kind_of_device("CUDA" if e._on_device else "CPU")
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

    def kernels(self, i: int) -> List[Kernel]:
        """What event i launched itself."""
        column = self._column("device_work")
        text = column[i] if column else None
        return [Kernel(name, device, self._us(ns)) for name, device, ns in json.loads(text)] if isinstance(text, str) and text else []

    def firsts(self, by_shape: bool, frames: int, by_overload: bool) -> Dict[Any, int]:
        """Of each group of key_averages(), the number of its first event."""
        numbers: Dict[Any, int] = {}
        for e in self:
            numbers.setdefault(_group(e, by_shape, frames, by_overload), e.id)
        return numbers

    @property
    def self_cpu_time_total(self) -> float:
        """Sum of the own times on the CPU, us."""
        if self._changed:
            return sum(e.self_cpu_time_total or 0 for e in self)
        return self._us(sum(v for v in self._column("host_self_ns") or () if isinstance(v, int)))

    def key_averages(self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False) -> EventList[FunctionEventAvg]:
        if self._changed:
            return super().key_averages(group_by_input_shapes, group_by_stack_n, group_by_overload_name)
        return self._recording.key_averages(group_by_input_shapes, group_by_stack_n, group_by_overload_name)

    def total_average(self) -> FunctionEventAvg:
        return super().total_average() if self._changed else self._recording.total_average()

    def table(self, *arguments: Any, **keywords: Any) -> str:
        """The text that torch's table() gives of single events: arguments as for averages."""
        if self._changed:
            return super().table(*arguments, **keywords)
        return Averages(self._recording, True, _ALL_FRAMES, each=True).table(*arguments, **keywords)

    def export_chrome_trace(self, path: Path) -> None:
        if self._changed:
            super().export_chrome_trace(path)
        else:
            self._recording.export_list(path)

    def export_stacks(self, path: Path, metric: str) -> None:
        if self._changed:
            super().export_stacks(path, metric)
        else:
            self._recording.write_stacks(path, metric)


class NvprofEvents(EventList[FunctionEvent]):
    """load_nvprof(): the ranges of a database of nvprof, in order of start, each with the kernels that were launched in it, on whatever thread. `id` is the
    range's own; times are us since the first range began."""

    def __init__(self, trace: Trace):
        #: The table itself, for pandas, Arrow, CSV.
        self.data: Table = trace.report("load-nvprof")
        launches = _Launches(trace)
        names = ("id", "name", "start_ns", "cpu_time_ns", "kernels", "cuda_time_ns")
        rows: List[Any] = list(zip(*(self.data[n] for n in names)))
        super().__init__(_nvprof_event(launches, rows[0][2], *row) for row in rows)


class _NvprofEvent(FunctionEvent):
    """Its kernels are looked up when they are asked for: what is around many others has all of theirs."""

    _launches: _Launches
    _ns: Any = None

    def _own(self) -> None:
        self.kernels = self.kernels
        super()._own()


_NvprofEvent._worked_out = {**FunctionEvent._worked_out, "kernels": lambda e: e._launches.inside(*e._ns)}


def _nvprof_event(launches: _Launches, zero_ns: int, number: Any, name: Any, start_ns: int, cpu_ns: Any, kernels: Any, cuda_ns: Any) -> FunctionEvent:
    start = start_ns - zero_ns
    e = _NvprofEvent(number, name, 0, start / 1000, (start + (cpu_ns or 0)) / 1000, node_id=0, use_device="cuda", trace_name=name, fwd_thread=0,
                     input_shapes=[], stack=[], flops=0)
    e.device_time_total = e.self_device_time_total = (cuda_ns or 0) / 1000
    e.kernel_count = kernels or 0
    e._launches, e._ns = launches, (start_ns, start_ns + (cpu_ns or 0))
    del e.kernels
    return e


class _Launches:
    """Kernels of a database of nvprof, by the calls of CUDA's runtime that launched them."""

    def __init__(self, trace: Trace):
        rows = trace.sql(_LAUNCHES)
        columns: Any = [rows[c] for c in ("start_ns", "end_ns", "name", "dur_ns")]
        self._calls = list(zip(*columns))
        self._starts = columns[0]

    def inside(self, start_ns: int, end_ns: int) -> List[Kernel]:
        """What was launched by calls strictly inside of these times."""
        first, last = bisect.bisect_right(self._starts, start_ns), bisect.bisect_left(self._starts, end_ns)
        return [Kernel(name, 0, ns / 1000) for _, end, name, ns in self._calls[first:last] if end < end_ns]


_LAUNCHES = """SELECT c.start_ns AS start_ns, c.start_ns + c.dur_ns AS end_ns, g.name AS name, g.dur_ns AS dur_ns
FROM span c JOIN gpu_op g ON g.corr_id = c.link_id
WHERE c.kind = 'call' AND c.cat = 'cuda_runtime' AND g.kind = 'kernel' ORDER BY c.start_ns"""
