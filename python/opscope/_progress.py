"""How far reading is: a line in a terminal, a bar in a notebook."""
from __future__ import annotations

import sys
import time
from typing import Any, Callable, Optional, Union

from ._html import escape

#: Called with the bytes that were read and those that there are, 0 where that is not known.
Progress = Callable[[int, int], object]

# Reading that takes less is not shown, in seconds.
_FIRST = 0.5


def _notebook() -> Any:
    """The module IPython.display in a notebook; None anywhere else."""
    shell = sys.modules.get("IPython")
    shell = shell.get_ipython() if shell else None
    if shell is None or not getattr(shell, "kernel", None):
        return None
    from IPython import display

    return display


def line(what: str, done: int, total: int, seconds: float) -> str:
    """ "run.json.gz: 41 % of 812 MB, 3 s left"; names may hold anything, of which a terminal gets what can be printed. """
    name = "".join(c if c.isprintable() else "?" for c in what)
    if not total or done > total:
        return f"{name}: {done / 1e6:.0f} MB read"
    left = f", {seconds * (total - done) / done:.0f} s left" if done else ""
    return f"{name}: {100 * done // total} % of {total / 1e6:.0f} MB{left}"


class _Shown:
    def __init__(self, what: str) -> None:
        self.what = what
        self.begin = time.monotonic()
        self.display = _notebook()
        self.handle: Any = None
        self.drawn = False

    def __call__(self, done: int, total: int) -> None:
        seconds = time.monotonic() - self.begin
        if seconds < _FIRST:
            return
        text = line(self.what, done, total, seconds)
        if self.display:
            self._put(f'<progress max="{max(total, done, 1)}" value="{done}"></progress> {escape(text)}')
        elif sys.stderr and sys.stderr.isatty():
            sys.stderr.write(f"\r\033[K{text}")
            sys.stderr.flush()
            self.drawn = True

    def _put(self, html: str) -> None:
        shown = self.display.HTML(html)
        if self.handle:
            self.handle.update(shown)
        else:
            self.handle = self.display.display(shown, display_id=True)

    def end(self) -> None:
        if self.handle:
            self._put("")
        if self.drawn:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


class Told:
    """A context: what `progress=` asks for, as a function for _core, or None. It wipes at its end what it drew."""

    def __init__(self, progress: Union[bool, Progress, None], what: str) -> None:
        if progress is not None and not isinstance(progress, bool) and not callable(progress):
            raise TypeError(f"progress: True, or a function of the bytes that were read and those that there are, was expected, not {progress!r}")
        self._shown = _Shown(what) if progress is True else None
        self._told: Optional[Progress] = self._shown or (progress if callable(progress) else None)

    def __enter__(self) -> Optional[Progress]:
        return self._told

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._shown.end()
