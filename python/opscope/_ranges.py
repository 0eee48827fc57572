"""Ranges: record_function in what torch records, and each op as a range of NVTX or ITT."""
from __future__ import annotations

from contextlib import ContextDecorator
from typing import TYPE_CHECKING, Any, List, Optional

from ._torch_modules import torch, torch_profiler

if TYPE_CHECKING:
    from concurrent.futures import Future


class record_function(ContextDecorator):
    """A range with a name, as a context manager or a decorator. args: a text that traces show with it."""

    def __init__(self, name: str, args: Optional[str] = None):
        self.name, self.args = name, args
        self._ranges: List[Any] = []

    def __enter__(self) -> record_function:
        self._ranges.append(torch_profiler().record_function(self.name, self.args))
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
