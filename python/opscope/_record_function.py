"""torch's record_function as ranges of whoever records.

Ranges of a thread nest: its pop ends what it pushed last. A `with` in a coroutine or generator stays open while others run on the same thread and open
and close theirs, so such a range has a number instead, by which it is ended, and is in no other one."""
from __future__ import annotations

import contextlib
import inspect
import threading
from types import FrameType
from typing import Any, Dict, List, Optional

from opscope import _annotate

_NAME = "_opscope_ranges"  # of the record_function: those that it has open
_WAITS = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_GENERATOR
_ENTERS = ("__enter__", "enter_context")  # who opens a range for its caller
_STEP = "ProfilerStep#"  # of torch's profilers, which call step() wherever the program does; reports know steps by it
_MANAGER = contextlib._GeneratorContextManager.__enter__.__code__


class _Range:
    __slots__ = ("text", "args", "place", "number", "open", "depth", "over", "cut")

    def __init__(self, text: str, args: Optional[str], frame: FrameType):
        self.text = text
        self.args = args            # what the program gave it beside its name
        self.place = id(frame)      # where the `with` is: the same at its end
        self.number: Optional[int] = None
        self.open: Optional[List[_Range]] = None  # of its thread, that nest
        self.depth = 0              # of the thread, with this range
        self.over = False
        self.cut = False            # a step that the end of its profile ends


class _Here(threading.local):
    def __init__(self) -> None:
        self.open: List[_Range] = []


_here = _Here()


def _waits(frame: Optional[FrameType]) -> bool:
    """Whether what is open in the frame may be open while others run on its thread. A context manager that is a generator is as who enters it."""
    while frame:
        if frame.f_code.co_flags & _WAITS:
            caller = frame.f_back
            if not (caller and caller.f_code is _MANAGER):
                return True
            frame = caller.f_back
        elif frame.f_code.co_name in _ENTERS:
            frame = frame.f_back
        else:
            return False
    return False


def begin(function: Any, frame: FrameType) -> None:
    """`function`, a record_function, is entered in the frame. As a decorator it is one object for all calls, also for those inside, and on other threads."""
    args = getattr(function, "args", None)
    r = _Range(str(function.name), None if args is None else str(args), frame)
    if _waits(frame):
        r.number = _annotate.start(r.text)
    else:
        _settle(_here.open)
        if r.text.startswith(_STEP):
            _push_beneath(r, _here.open)
        else:
            _push(r, _here.open)
    vars(function).setdefault(_NAME, []).append(r)


def cut(function: Any) -> None:
    """What `function`, a profiler's step, has open will end with the profile: that step counts in no mean."""
    for r in vars(function).get(_NAME, []):
        r.cut = True


def end(function: Any, frame: FrameType) -> None:
    """It is left there; nothing, where it was entered while nobody told us."""
    own: Dict[str, Any] = vars(function)
    ranges: List[_Range] = own.get(_NAME, [])
    if not ranges:
        return
    r = ranges.pop(_which(ranges, frame) if len(ranges) > 1 else 0)
    if not ranges:
        del own[_NAME]
    if r.number is None:
        r.cut |= _ends_profile(r.text, frame)
        _close(r)
    else:
        _annotate.end(r.number)


def _ends_profile(text: str, frame: FrameType) -> bool:
    """Whether torch's own profile.stop() ends a step here that its last step() has begun."""
    return text.startswith(_STEP) and frame.f_code.co_name == "stop" and getattr(frame.f_locals.get("self"), "step_num", 0) > 0


def _which(ranges: List[_Range], frame: FrameType) -> int:
    """That of this `with`; else the last one of this thread, or of all."""
    here = [i for i, r in enumerate(ranges) if r.place == id(frame)]
    return (here or [i for i, r in enumerate(ranges) if r.open is _here.open] or [-1])[-1]


def _push(r: _Range, thread: List[_Range]) -> None:
    _annotate.push(r.text)
    if r.args is not None:
        _annotate.range_args(r.args)
    r.open, r.depth = thread, _annotate.open()
    thread.append(r)


def _pop(r: _Range) -> None:
    """It is the one that was pushed last."""
    if r.cut:
        _annotate.cut()
    _annotate.pop()


def _push_beneath(r: _Range, thread: List[_Range]) -> None:
    """A step must not be cut: what is open on top, and will end in the midst of it, is."""
    top, depth = len(thread), _annotate.open()
    while top and thread[top - 1].depth == depth and not thread[top - 1].text.startswith(_STEP):
        top, depth = top - 1, depth - 1
    above = thread[top:]
    for one in above:
        thread.remove(one)
        _annotate.pop()
    for one in (r, *above):
        if not one.over:
            _push(one, thread)


def _settle(thread: List[_Range]) -> None:
    """Ends what is over and stands on top of the thread; forgets what is open no more."""
    depth = _annotate.open()
    while thread and thread[-1].depth > depth:
        thread.pop()
    while thread and thread[-1].over and thread[-1].depth == depth:
        _pop(thread.pop())
        depth -= 1


def _close(r: _Range) -> None:
    """What was begun inside and goes on, as profilers' steps may, is ended and begun again. Where that cannot be, since a layer or op is open inside, or this
    is another thread, the range lasts until its thread begins or ends the next one outside of that."""
    r.over = True
    thread = _here.open
    if r.open is not thread:
        return
    _settle(thread)
    inside = thread[thread.index(r) + 1:] if r in thread else []
    if inside and _annotate.open() - r.depth == len(inside):
        for one in (*reversed(inside), r):
            thread.remove(one)
            _pop(one)
        for one in inside:
            if not one.over:
                _push(one, thread)
