"""What a torch without Kineto has recorded, as a file: by its own methods, or as it lies in memory."""
from __future__ import annotations

import _thread
import os
from contextlib import suppress
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import _annotate, _profiler
from ._torch_modules import end, torch, torch_profiler


class Written(NamedTuple):
    """What came of it. Times are us; begin and end are bytes of the file."""

    events: int
    start_us: int
    #: Where the text of the events stands.
    begin: int
    end: int
    #: Ops with a device time that events of CUDA measured: the file lacks those.
    lost_times: int


def write(result: Any, fd: int, **form: Any) -> Written:
    """form: the keywords of _profiler.write_direct and write_events."""
    stride = Direct.find()
    if stride:
        return Written(*_profiler.write_direct(result, stride, fd, **form))
    return Written(*_profiler.write_events(result.events(), result.trace_start_us(), fd, **form))


class Direct:
    """Whether this process may read recordings as they lie in memory, found out once: a small recording is read both ways and compared."""

    VERSIONS = ("1.13",)
    stride: Optional[int] = None

    @classmethod
    def find(cls) -> int:
        """Bytes of an event; 0 = not possible, whatever the reason."""
        if cls.stride is None:
            cls.stride = 0
            # In a thread of its own: grad and inference modes, hooks, modes that see each op, and a profiler that is on, are a thread's. Not one of
            # `threading`, in which the program's hooks run: torch's profiler cannot take stacks beside them.
            done = _thread.allocate_lock()
            done.acquire()
            with suppress(RuntimeError):  # no room for a thread
                _thread.start_new_thread(cls._find, (done,))
                done.acquire()
        return cls.stride

    @classmethod
    def _find(cls, done: Any) -> None:
        _annotate.quiet(True)  # it is no work of the program
        try:
            with suppress(Exception):
                cls.stride = cls._try()
        finally:
            done.release()

    @classmethod
    def _try(cls) -> int:
        module = torch()
        library = os.path.join(os.path.dirname(module.__file__), "lib", "libtorch_cpu.so")
        if not module.__version__.startswith(cls.VERSIONS) or not _profiler.open_direct(library):
            return 0
        result = cls._sample(module)
        events = result.events()
        stride = _profiler.stride(result, len(events))
        if not stride:
            return 0
        _profiler.find_memory(result, stride, [])  # Python's methods do not tell that: without it both are the same
        form: Dict[str, Any] = {"head": "", "tail": "", "base_us": 0, "pid": 1, "shapes": True, "stacks": True, "flops": True, "device_times": True}
        with _temporary() as plain, _temporary() as direct:
            _profiler.write_events(events, result.trace_start_us(), plain.fileno(), **form)
            _profiler.write_direct(result, stride, direct.fileno(), **form)
            same = _content(plain) == _content(direct)
        if not same:
            return 0
        _profiler.find_memory(result, stride, cls._allocations(result.experimental_event_tree()))
        return stride

    @classmethod
    def _allocations(cls, tree: List[Any]) -> List[Tuple[int, int, int, int]]:
        """Address, size and totals of each, which no method of an event tells."""
        found = []
        for event in tree:
            fields = event.extra_fields
            if type(fields).__name__ == "_ExtraFields_Allocation":
                found.append((fields.ptr, fields.alloc_size, fields.total_allocated, fields.total_reserved))
            found.extend(cls._allocations(event.children))
        return found

    @staticmethod
    def _sample(module: Any) -> Any:
        """A recording with shapes, types, stacks, FLOPs, allocations, a backward pass and long and short names."""
        profiler = torch_profiler()
        p = profiler.profile(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True)
        with module.enable_grad():
            plain = {"dtype": module.float32, "device": "cpu"}  # whatever the program's defaults are
            a = module.ones(3, 4, requires_grad=True, **plain)
            b = module.ones(4, 5, **plain)
            p._prepare_trace()
            p._start_trace()
            try:
                with profiler.record_function("a range whose name does not fit into a short string"):
                    module.mm(a, b).sum().backward()
            finally:
                result = end(p)
            return result


def _temporary() -> Any:
    import tempfile

    return tempfile.TemporaryFile()


def _content(file: Any) -> bytes:
    file.seek(0)
    return bytes(file.read())
