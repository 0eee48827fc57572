"""What torch's lists of events answer, of a list that a program made or changed: averages, sums, nesting, the table as text, files. Lists of a recording are
answered by the library."""
from __future__ import annotations

import json
import math
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

from ._event import FunctionEvent, FunctionEventAvg, format_time, is_on_host

# Widths of the table: of a column, between columns.
_WIDTH, _GAP = 12, 2
_FLOPS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")


# --- averages and nesting ---


def averages(events: Iterable[Any], by_shapes: bool, frames: int, by_overload: bool) -> List[FunctionEventAvg]:
    """A FunctionEventAvg for each group, in the order of their first events."""
    groups: Dict[Any, FunctionEventAvg] = {}
    for e in events:
        stack = tuple(e.stack or ())[:frames] if frames > 0 else ()
        kind = (e.key, e.node_id, str(e.device_type), bool(e.is_legacy), bool(e.is_user_annotation))
        groups.setdefault((kind, str(e.input_shapes) if by_shapes else "", e.overload_name if by_overload else "", stack), FunctionEventAvg()).add(e)
    for (_, _, _, stack), a in groups.items():
        a.stack = list(stack)
        if not by_shapes:
            a.input_shapes = ""
        if not by_overload:
            a.overload_name = ""
    return list(groups.values())


def total(events: Iterable[Any]) -> FunctionEventAvg:
    """All as one."""
    sums = FunctionEventAvg()
    for e in events:
        sums.key = None  # it takes that of the next
        sums.add(e)
    sums.key = "Total"
    return sums


def populate_cpu_children(events: Iterable[FunctionEvent]) -> None:
    """An event is a child of the innermost one of its thread and node that lasts from before it to after it. Asynchronous ones are in none. O(n log n)."""
    threads: Dict[Tuple[Any, Any], List[FunctionEvent]] = {}
    for e in events:
        if not e.is_async and is_on_host(e):
            threads.setdefault((e.thread, e.node_id), []).append(e)
    for of_thread in threads.values():
        around: List[FunctionEvent] = []
        for e in sorted(of_thread, key=lambda e: (e.time_range.start, -e.time_range.end)):
            while around and (e.time_range.start >= around[-1].time_range.end or e.time_range.end > around[-1].time_range.end):
                around.pop()
            if around:
                around[-1].append_cpu_child(e)
                e.set_cpu_parent(around[-1])
            around.append(e)


# --- the table ---


class Style:
    """What differs between the versions of torch."""

    def __init__(self, rules: str):
        self.frames: Optional[int] = 5 if rules == "torch-1.13" else None
        self.units = ("b", "Kb", "Mb", "Gb") if rules in ("torch-1.13", "torch-2.6") else ("B", "KB", "MB", "GB")

    def memory(self, n: Optional[int]) -> str:
        if n is None:
            return "unknown"
        power = 3 if abs(n) >= 1 << 30 else 2 if abs(n) >= 1 << 20 else 1 if abs(n) >= 1 << 10 else 0
        return f"{n / (1 << 10 * power):.2f} {self.units[power]}" if power else f"{n} {self.units[0]}"


def _time(us: Optional[float], unit: Optional[str]) -> str:
    if us is None:
        return "unknown"
    sizes = {"s": 1e6, "ms": 1e3, "us": 1.0}
    return format_time(us) if unit is None else f"{us / sizes[unit]:.3f}{unit}"


def _share(us: Optional[float], whole: float) -> str:
    return "unknown" if us is None else "NaN" if whole == 0 else f"{us * 100.0 / whole:.2f}%"


def _cut(text: str, most: Optional[int]) -> str:
    return text if most is None or len(text) < most - 3 else text[:most - 3] + "..."


def _cut_path(path: str, most: int) -> str:
    end = path[-most:] if len(path) > most else path
    return "..." + end[3:] if len(path) > most and len(end) > 3 else end


def _width(texts: Iterable[str], most: Optional[int]) -> int:
    n = max(map(len, texts)) + 4
    return n if most is None else min(n, most)


class _Columns:
    """Columns in order: heading, width, and what stands in the row of an event."""

    def __init__(self) -> None:
        self.headings: List[str] = []
        self.widths: List[int] = []
        self.cells: List[Callable[[Any], Any]] = []
        self.stack_at = -1

    def add(self, heading: str, cell: Callable[[Any], Any], width: int = _WIDTH) -> None:
        self.headings.append(heading)
        self.widths.append(width)
        self.cells.append(cell)

    def line(self, cells: Sequence[Any]) -> str:
        aligned = [f"{c:<{w}}" if i == self.stack_at else f"{c:>{w}}" for i, (c, w) in enumerate(zip(cells, self.widths))]
        return "".join(a + " " * _GAP for a in aligned)


def text(events: Sequence[Any], style: Style, *, sort_by: Optional[str], row_limit: Any, max_src: Optional[int], max_name: Optional[int],
         max_shapes: Optional[int], header: Optional[str], top_level: bool, unit: Optional[str], device: str, memory: bool, flops: bool) -> str:
    """What torch's table() returns."""
    if not events:
        return ""
    if sort_by is not None:
        key: str = sort_by
        events = sorted(events, key=lambda e: getattr(e, key) or 0, reverse=True)
    cpu_us = sum(e.self_cpu_time_total or 0 for e in events)
    device_us = sum(e.self_device_time_total or 0 for e in events if (e.is_legacy if is_on_host(e) else not e.is_user_annotation))
    has_device = any((e.self_device_time_total or 0) > 0 for e in events)
    c = _Columns()
    c.add("Name", lambda e: _cut(e.key, max_name), _width((e.key for e in events), max_name))
    if any(e.overload_name for e in events):
        c.add("Overload Name", lambda e: _cut(e.overload_name, max_name), _width((e.overload_name for e in events), max_name))
    c.add("Self CPU %", lambda e: _share(e.self_cpu_time_total, cpu_us))
    c.add("Self CPU", lambda e: _time(e.self_cpu_time_total, unit))
    c.add("CPU total %", lambda e: 0 if e.is_async else _share(e.cpu_time_total, cpu_us))
    c.add("CPU total", lambda e: _time(e.cpu_time_total, unit))
    c.add("CPU time avg", lambda e: _time(e.cpu_time, unit))
    if has_device:
        c.add(f"Self {device}", lambda e: _time(e.self_device_time_total, unit))
        c.add(f"Self {device} %", lambda e: _share(e.self_device_time_total, device_us))
        c.add(f"{device} total", lambda e: _time(e.device_time_total, unit))
        c.add(f"{device} time avg", lambda e: _time(e.device_time, unit))
    if memory:
        _add_memory(c, events, style, device)
    c.add("# of Calls", lambda e: e.count)
    if any(e.node_id != -1 for e in events):
        c.add("Node ID", lambda e: e.node_id)
    _add_wide(c, events, style, max_shapes, max_src, flops)
    return _lines(c, events, style, row_limit, header, top_level,
                  [f"Self CPU time total: {_time(cpu_us, unit)}"] + [f"Self {device} time total: {_time(device_us, unit)}"] * has_device)


def _add_memory(c: _Columns, events: Sequence[Any], style: Style, device: str) -> None:
    c.add("CPU Mem", lambda e: style.memory(e.cpu_memory_usage))
    c.add("Self CPU Mem", lambda e: style.memory(e.self_cpu_memory_usage))
    if any((e.self_device_memory_usage or 0) > 0 for e in events):
        c.add(f"{device} Mem", lambda e: style.memory(e.device_memory_usage))
        c.add(f"Self {device} Mem", lambda e: style.memory(e.self_device_memory_usage))


def _add_wide(c: _Columns, events: Sequence[Any], style: Style, max_shapes: Optional[int], max_src: Optional[int], flops: bool) -> None:
    """Shapes, stack, FLOPs. Where the last two both stand, torch writes each below the other's heading."""
    known = [e.flops for e in events if e.flops and e.flops > 0] if flops else []
    if any(e.input_shapes for e in events):
        room = _width((str(e.input_shapes) for e in events), max_shapes)
        c.add("Input Shapes", lambda e: str(e.input_shapes)[:room], room)
    wide: List[Tuple[str, int]] = []
    cells: List[Callable[[Any], Any]] = []
    if known:
        power = min(int(math.log10(min(known)) / 3), len(_FLOPS) - 1)
        cells.append(lambda e: f"{e.flops / 1000 ** power:8.3f}" if e.flops and e.flops > 0 else "--")
        wide.append((f"Total {_FLOPS[power]}", _WIDTH))
    if any(e.stack for e in events):
        width = _width((frame for e in events for frame in e.stack or ()), max_src)
        cells.append(lambda e: _cut_path(e.stack[0], width) if e.stack else "")
        wide.insert(0, ("Source Location", width))
        c.stack_at = len(c.headings)
    for (heading, columns), cell in zip(wide, cells):
        c.add(heading, cell, columns)


def _lines(c: _Columns, events: Sequence[Any], style: Style, row_limit: Any, header: Optional[str], top_level: bool, footer: List[str]) -> str:
    rule, double = "".join("-" * w + " " * _GAP for w in c.widths), "=" * (sum(c.widths) + _GAP * (len(c.widths) - 1))
    lines = [double, header] if header is not None else []
    lines += [double, "This report only display top-level ops statistics"] if top_level else []
    lines += [rule, c.line(c.headings), rule]
    shown = [e for e in events if not top_level or e.cpu_parent is None]
    for e in shown if row_limit is None or row_limit < 0 else shown[:row_limit]:
        lines.append(c.line([cell(e) for cell in c.cells]))
        if c.stack_at >= 0:
            empty, width = [""] * (len(c.headings) - 1), c.widths[c.stack_at]
            lines += [c.line([*empty, _cut_path(frame, width)]) for frame in (e.stack or [])[1:style.frames]] + [c.line([*empty, ""])]
    return "".join(line + "\n" for line in [*lines, rule, *footer])


# --- files ---


def write_chrome_list(events: Iterable[FunctionEvent], path: Any, device: str) -> None:
    """The bare array that torch writes of a list of events."""
    rows, number = [], 0
    for e in events:
        if e.trace_name is None:
            continue
        tid = f'" node_id:{e.node_id}, thread_id:{e.thread} "' if e.is_remote else e.thread
        head = {"name": e.trace_name, "ph": "X", "ts": e.time_range.start, "dur": e.time_range.elapsed_us(), "tid": tid, "pid": "CPU functions", "args": {}}
        rows.append(head)
        for _ in e.kernels:
            rows.append({"name": e.trace_name, "ph": "s", "ts": e.time_range.start, "tid": tid, "pid": "CPU functions", "id": number,
                         "cat": f"cpu_to_{device}", "args": {}})
            number += 1
    with open(path, "w", encoding="utf-8") as f:
        json.dump(rows, f)


def write_stacks(events: Iterable[Any], path: Any, metric: str) -> None:
    """Folded stacks: frames outermost first, then whole us."""
    plain = str.maketrans(" ;\t\n", "____")
    with open(path, "w", encoding="utf-8") as f:
        for e in events:
            us = int(getattr(e, metric) or 0)
            if e.stack and us > 0:
                f.write(";".join(frame.translate(plain) for frame in reversed(e.stack)) + f" {us}\n")
