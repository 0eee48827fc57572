"""Pictures, drawn by the viewer's ECharts: pages that ask nothing of a network, in a notebook or in a file."""
from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import os
import re
import zlib
from functools import lru_cache
from typing import Any, Dict, List, Sequence, Tuple, Union

from . import _core
from ._html import escape
from ._options import options
from ._reports import Reports
from .table import Table

# What a timeline draws at most: lanes of one thread or stream, and of all; and points of a curve, dots of a roofline.
_LANES_EACH, _LANES, _POINTS, _DOTS = 16, 48, 2000, 500
_COLORS = 8
_DEVICE = re.compile(r"CPU|GPU\d+")

_LOADER = ('const e=document.getElementById("opscope-script"),b=Uint8Array.from(atob(e.textContent),c=>c.charCodeAt(0));'
           'new Response(new Blob([b]).stream().pipeThrough(new DecompressionStream("gzip"))).text().then(t=>{'
           'const s=document.createElement("script");s.textContent=t;document.body.append(s)})')
_STYLE = ("body{margin:0;padding:.4rem .6rem;font:13px/1.4 system-ui,sans-serif;color-scheme:light dark;background:#fff;color:#1b1f24}"
          "@media(prefers-color-scheme:dark){body{background:#16191d;color:#e4e8ec}}"
          ".tools{display:flex;align-items:baseline}.tools h3{margin:0;font-size:1rem}.space{flex:1}button{font:inherit}.note{margin:.2rem 0;opacity:.75}")


def _lacks(text: str) -> _core.Error:
    error = _core.Error(text)
    error.code = "lacks"
    return error


@lru_cache(maxsize=None)
def _script() -> bytes:
    """Packed. Error where the package was built without it."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_plot.js.gz")
    try:
        with open(path, "rb") as f:
            return f.read()
    except FileNotFoundError:
        raise _lacks("this opscope was built without the viewer's pages (npm was not there), and they draw the pictures") from None


def _hash(text: bytes) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'"


class Plot:
    """A picture. A notebook shows it; save() writes it as one HTML file that needs no network."""

    def __init__(self, title: str, kind: str, data: Dict[str, Any], notes: Sequence[str], height: int) -> None:
        self.title = title
        #: What the picture does not show, and what is summed up.
        self.notes = tuple(notes)
        #: Pixels that it needs.
        self.height = height
        self._text = json.dumps({"kind": kind, "title": title, "notes": self.notes, "data": data}, separators=(",", ":"), allow_nan=False)
        _script()  # an error now, and not in the notebook's own code

    def to_html(self) -> str:
        """The page. Nothing but its own two scripts can run in it, and it can fetch nothing."""
        script = _script()
        policy = f"default-src 'none'; script-src {_hash(_LOADER.encode())} {_hash(gzip.decompress(script))}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
        data = self._text.replace("<", "\\u003c")  # no name of a trace ends the script
        return (f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
                f'<meta name="viewport" content="width=device-width">\n<title>{escape(self.title)}</title>\n<style>{_STYLE}</style>\n<body>\n'
                f'<script type="application/json" id="opscope-plot">{data}</script>\n<script type="text/plain" id="opscope-script">{base64.b64encode(script).decode()}</script>\n'
                f"<script>{_LOADER}</script>\n</body>\n</html>\n")

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes the page to a file."""
        with open(path, "w", encoding="utf-8") as f:
            f.write(self.to_html())

    def _repr_html_(self) -> str:
        return (f'<iframe title="{escape(self.title)}" sandbox="allow-scripts allow-downloads" style="width:100%;border:0" height="{self.height}" '
                f'srcdoc="{html.escape(self.to_html())}"></iframe>')

    def __repr__(self) -> str:
        return f"<opscope.Plot {self.title!r}>"


def _shown_lanes(table: Table) -> Tuple[Dict[Tuple[int, int], int], List[Dict[str, Any]]]:
    """(track, lane) -> its place from the top, and the lanes. Where there are too many, those of the busiest threads and streams."""
    seen: Dict[int, Dict[str, Any]] = {}
    for row in table:
        if row["kind"] == "trace":  # the span of the whole recording says nothing
            continue
        track = seen.setdefault(int(row["track"] or 0), {"busy": 0, "lanes": 0, "row": row})
        track["lanes"] = min(_LANES_EACH, max(track["lanes"], int(row["lane"] or 0) + 1))
        track["busy"] += 0 if row["lane"] else int(row["busy_ns"] or 0)
    kept, left = set(), _LANES
    for number, track in sorted(seen.items(), key=lambda x: (-x[1]["busy"], x[0])):
        if track["lanes"] <= left:
            kept.add(number)
            left -= track["lanes"]
    place: Dict[Tuple[int, int], int] = {}
    lanes: List[Dict[str, Any]] = []
    for number in sorted(kept, key=lambda n: (not seen[n]["row"]["on_device"], n)):
        row = seen[number]["row"]
        name = row["thread_name"] or row["thread"] or ""
        name = f"GPU {row['process']}: {name}" if row["on_device"] and row["process"] else str(name)
        for lane in range(seen[number]["lanes"]):
            place[number, lane] = len(lanes)
            lanes.append({"name": "" if lane else name, "device": row["on_device"]})
    return place, lanes


def _timeline(table: Table) -> Tuple[Dict[str, Any], List[str], int]:
    place, lanes = _shown_lanes(table)
    names: Dict[str, int] = {}
    items: List[Tuple[int, ...]] = []
    left_out = 0
    for row in table:
        at = place.get((int(row["track"] or 0), int(row["lane"] or 0)))
        if at is None:
            left_out += int(row["events"] or 0) if row["kind"] != "trace" else 0
            continue
        name = str(row["name"] or "")
        times = (int(row[c] or 0) for c in ("since_first_ns", "duration_ns", "busy_ns", "events"))
        items.append((at, *times, names.setdefault(name, len(names)), zlib.crc32(name.encode()) % _COLORS))
    steps = [[s["name"], s["since_first_ns"], s["duration_ns"]] for s in table.sections["steps"]]
    notes = [*table.notes, *([f"Not drawn: {left_out:,} events that are nested deeper than {_LANES_EACH} ranges, or of the least busy threads and streams."] if left_out else [])]
    end = max((i[1] + i[2] for i in items), default=0)
    return {"lanes": lanes, "names": list(names), "items": items, "steps": steps, "end": end}, notes, len(lanes)


def _thinned(rows: List[List[Any]], most: int) -> List[List[Any]]:
    """Of points over time, in each of `most` / 2 equal parts the highest and the last: peaks and levels stay."""
    if len(rows) <= most:
        return rows
    parts = most // 2
    begin, length = rows[0][0], max(rows[-1][0] - rows[0][0], 1)
    highest: Dict[int, int] = {}
    last: Dict[int, int] = {}
    for i, row in enumerate(rows):
        part = (row[0] - begin) * parts // (length + 1)
        last[part] = i
        if part not in highest or (row[1] or 0) > (rows[highest[part]][1] or 0):
            highest[part] = i
    return [rows[i] for i in sorted({*highest.values(), *last.values()})]


def _json(table: Table, rows: List[List[Any]]) -> Dict[str, Any]:
    """As the viewer gets it."""
    return {"name": table.name, "title": table.title, "columns": [c._asdict() for c in table.columns], "rows": rows, "notes": [], "sections": []}


def _rows(table: Table, ids: Sequence[str]) -> List[List[Any]]:
    return [list(r) for r in zip(*(table[c] for c in ids))]


class Plots:
    """The pictures of a trace: plot.timeline(), plot.roofline(), plot.memory(). Each is a Plot. What is too much to be seen is summed up."""

    def __init__(self, profile: _core.Profile, path: str, report: Reports) -> None:
        self._profile = profile
        self._path = path
        self._report = report

    def timeline(self, *, steps: Any = None, key_op: Any = None) -> Plot:
        """Threads of the host and streams of devices over time; the wheel zooms. Events that are too short to be drawn are summed up."""
        table = Table(self._profile.timeline(options({"steps": steps, "key_op": key_op})))
        if not len(table):
            raise _lacks(f"{self._path}: the trace holds no events with a duration")
        data, notes, lanes = _timeline(table)
        return Plot("Timeline", "timeline", data, notes, min(900, 96 + 17 * max(3, lanes)) + 60 + 20 * len(notes))

    def roofline(self, *, group_by: str = "op", **params: Any) -> Plot:
        """FLOP/s over FLOPs per byte, against what the GPU could: a dot for each op ("op", "shape" or "kernel"), as large as its share of device work."""
        table = self._report("roofline", group_by=group_by, **params)
        shown = [c for c in table.columns if c.id in _OF_ROOFLINE]
        ids = [c.id for c in shown]
        x, y = ids.index("flops_per_byte"), ids.index("tflops_per_s")
        rows = [r for r in _rows(table, ids) if (r[x] or 0) > 0 and (r[y] or 0) > 0]
        if not rows:
            raise _lacks(f"{self._path}: no op whose FLOPs, bytes and device time are all known")
        left = len(table) - min(len(rows), _DOTS)
        notes = [f"Not in the picture: {left} of {len(table)} rows, whose FLOPs or bytes are 0 or unknown{f', or that are behind the first {_DOTS}' if len(rows) > _DOTS else ''}."] if left else []
        return Plot("Roofline", "roofline", {**_json(table, rows[:_DOTS]), "columns": [c._asdict() for c in shown]}, notes, 480 + 20 * len(notes))

    def memory(self, *, device: Any = None) -> Plot:
        """Allocated and reserved bytes over time, of one device: "cpu" or the number of a GPU."""
        table = self._report("memory", device=device)
        curve = table.sections.get("curve")
        if curve is None or not len(curve):
            raise _lacks(f"{self._path}: {curve.notes[0] if curve is not None and curve.notes else 'no memory over time'}")
        shown = [c for i, c in enumerate(curve.columns) if i < 2 or any(curve[c.id])]  # what is reserved is 0 where the allocator reserves nothing
        rows = _rows(curve, [c.id for c in shown])
        thin = _thinned(rows, _POINTS)
        notes = [f"{len(thin):,} of {len(rows):,} points: in each part of the time the highest and the last."] if len(thin) < len(rows) else []
        of = table.notes[0].partition(":")[0] if table.notes else ""
        return Plot(f"Memory over time, {of}" if _DEVICE.fullmatch(of) else "Memory over time", "memory", {**_json(curve, thin), "columns": [c._asdict() for c in shown]}, notes, 380 + 20 * len(notes))

    def __repr__(self) -> str:
        return "<the pictures: timeline(), roofline(), memory()>"


# What the picture reads of the report.
_OF_ROOFLINE = frozenset("op kernel direction total_gpu_ns total_pct tflops_per_s gb_per_s flops_per_byte bound peak_pct peak bandwidth_pct".split())
