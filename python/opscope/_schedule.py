"""When to record: torch.profiler's schedules, and the counter of steps that the profiler and optimizers share."""
from __future__ import annotations

import warnings
from enum import Enum
from typing import Any, Callable

from . import _profiler
from ._torch_modules import torch_profiler


class ProfilerAction(Enum):
    """What a step is for. Members equal torch's own, which its profiler compares with what a schedule says."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3

    def __eq__(self, other: object) -> bool:
        return self is other or (_is_torchs(type(other)) and getattr(other, "name", None) == self.name)

    def __hash__(self) -> int:
        return hash(self.name)  # as torch's: it looks actions up in a dict


def _is_torchs(kind: type) -> bool:
    return kind.__name__ == "ProfilerAction" and kind.__module__.startswith("torch.")


#: Where the last transition goes: not of a step.
EXIT = 4


# More steps than a run has; sums of them still fit into 64 bits.
_ENDLESS = 1 << 60


def _steps(name: str, n: Any) -> int:
    """A number of steps. torch counts in any numbers: whole ones are taken, whatever their type and size."""
    try:
        whole = int(n)
        same = bool(whole == n)
    except (TypeError, ValueError, OverflowError):
        same = False
    if not same:
        raise TypeError(f"schedule: {name}={n!r}: a whole number was expected")
    return max(min(whole, _ENDLESS), -_ENDLESS)


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0) -> Callable[[int], ProfilerAction]:
    """Which steps are recorded: after skip_first steps, cycles of wait + warmup + active; repeat of them, 0 = without end.

    skip_first_wait: anything but 0 = the first cycle has no wait. Works as the schedule of opscope.profile.
    """
    spec = (_steps("wait", wait), _steps("warmup", warmup), _steps("active", active), _steps("repeat", repeat), _steps("skip_first", skip_first),
            _steps("skip_first_wait", skip_first_wait))
    verdict, message = _profiler.schedule_check(spec)
    if verdict < 0:
        raise AssertionError(message)
    if verdict > 0:
        warnings.warn(message, stacklevel=2)
    return lambda step: ProfilerAction(_profiler.schedule_action(spec, step))


def always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def action_of(plan: Callable[[int], Any], step: int) -> ProfilerAction:
    """What `plan` says of a step; torch's own actions serve, too."""
    action = plan(step)
    if getattr(action, "name", None) not in ProfilerAction.__members__:
        raise TypeError(f"schedule({step}): a ProfilerAction was expected, not {action!r}")
    return ProfilerAction[action.name]


class KinetoStepTracker:
    """Counts steps for several requesters (the profiler, optimizers): the step is the largest count, so that it is counted once."""

    _own = _profiler.Tracker()

    @staticmethod
    def _torchs() -> Any:
        """torch's own, with which optimizers count, where it has one."""
        return getattr(torch_profiler(), "KinetoStepTracker", None)

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        tracker = cls._torchs()
        if tracker:
            tracker.init_step_count(requester)
        else:
            cls._own.init(requester)

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        tracker = cls._torchs()
        return bool(tracker.erase_step_count(requester)) if tracker else cls._own.erase(requester)

    @classmethod
    def increment_step(cls, requester: str) -> int:
        tracker = cls._torchs()
        if tracker:
            return int(tracker.increment_step(requester))
        step, kineto_steps, warning = cls._own.increment(requester)
        if warning:
            warnings.warn(warning, stacklevel=2)
        for _ in range(kineto_steps):
            torch_profiler().kineto_step()
        return step

    @classmethod
    def current_step(cls) -> int:
        tracker = cls._torchs()
        return int(tracker.current_step()) if tracker else cls._own.current()
