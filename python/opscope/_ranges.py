"""Ranges: record_function in what torch records, and each op as a range of NVTX or ITT."""
from __future__ import annotations

import json
import warnings
from contextlib import ContextDecorator
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from ._torch_modules import torch, torch_profiler

if TYPE_CHECKING:
    from concurrent.futures import Future


#: What a trace calls the args of a record_function; torch's profiler drops them.
RANGE_ARGS = "Record function args"


class Notes:
    """The args of the ranges that torch records from begin() to end(), by name, in order of their starts; None = it has none."""

    _here: Optional[Dict[str, List[Optional[str]]]] = None

    @classmethod
    def begin(cls) -> None:
        cls._here = {}

    @classmethod
    def end(cls) -> Dict[str, List[Optional[str]]]:
        """Those of the names of which one range at least has args."""
        here, cls._here = cls._here or {}, None
        return {name: args for name, args in here.items() if any(a is not None for a in args)}

    @classmethod
    def take(cls, name: str, args: Optional[str]) -> None:
        """A range begins. It is in the recording where torch's profiler is on on this thread."""
        here = cls._here
        if here is not None and torch()._C._autograd._profiler_enabled():
            here.setdefault(name, []).append(args)


def put_args(events: List[Any], notes: Dict[str, List[Optional[str]]]) -> None:
    """Into events of a trace. Left out, with a warning, where others have opened ranges of the same name: nobody says which is which."""
    ranges: Dict[str, List[Any]] = {name: [] for name in notes}
    for e in events:
        if e.get("ph") == "X" and e.get("cat") == "user_annotation" and e.get("name") in ranges:
            ranges[e["name"]].append(e)
    for name, args in notes.items():
        found = sorted(ranges[name], key=lambda e: float(e["ts"]))
        if len(found) != len(args):
            warnings.warn(f"record_function({name!r}): the recording has {len(found)} such ranges, of which {len(args)} are opscope's: their args are left out",
                          stacklevel=2)
            continue
        for e, text in zip(found, args):
            if text is not None:
                e.setdefault("args", {})[RANGE_ARGS] = text


def patch_file(path: str, notes: Dict[str, List[Optional[str]]]) -> None:
    """The same, of a file of torch's."""
    with open(path, encoding="utf-8") as f:
        document = json.load(f)
    put_args(document["traceEvents"], notes)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(document, f)


def patch_part(path: str, begin: int, end: int, notes: Dict[str, List[Optional[str]]]) -> int:
    """The same, of a file whose events stand from byte `begin` to `end`; where they end then."""
    with open(path, "rb") as f:
        head, events, tail = f.read(begin), json.loads(b"[" + f.read(end - begin) + b"]"), f.read()
    put_args(events, notes)
    text = ",\n".join(map(json.dumps, events)).encode()
    with open(path, "wb") as f:
        f.write(head + text + tail)
    return begin + len(text)


class record_function(ContextDecorator):
    """A range with a name, as a context manager or a decorator. args: a text that traces show with it."""

    def __init__(self, name: str, args: Optional[str] = None):
        self.name, self.args = name, args
        self._ranges: List[Any] = []

    def __enter__(self) -> record_function:
        self._ranges.append(torch_profiler().record_function(self.name, self.args))
        self._ranges[-1].__enter__()
        Notes.take(self.name, self.args)
        return self

    def __exit__(self, kind: Any, error: Any, where: Any) -> None:
        self._ranges.pop().__exit__(kind, error, where)

    def _call_end_callbacks_on_future(self, fut: Future[Any]) -> Future[Any]:
        """The range lasts until the future is done. Once only."""
        if not self._ranges:
            raise RuntimeError(f"record_function({self.name!r}): _call_end_callbacks_on_future can only be called within the range")
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
        profiler = torch_profiler()
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
        torch_profiler()._disable_profiler()


class emit_nvtx(_Emit):
    """Every op becomes an NVTX range: "name, seq = N, op_id = K", with record_shapes also sizes and where inputs come from. For Nsight Systems,
    nvprof and `opscope record`. It waits for the GPU at both ends. A torch without CUDA has no NVTX, and says so."""

    _state, _what = "NVTX", "NVTX"

    def _synchronize(self) -> None:
        cuda = torch().cuda
        if cuda.is_available():
            cuda.synchronize()


class emit_itt(_Emit):
    """Every op becomes a range of Intel's ITT, for VTune and `opscope record`. A torch built without ITT says so."""

    _state, _what = "ITT", "ITT"
