"""torch's small helpers for who works on raw records: keys that must not come twice, allocations by time."""
from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any, Iterator, Sequence, Set, Tuple


class EnforceUnique:
    """see(...) is a RuntimeError the second time it gets the same key."""

    def __init__(self) -> None:
        self.seen: Set[Tuple[Any, ...]] = set()

    def see(self, *key: Any) -> None:
        if key in self.seen:
            raise RuntimeError(f"duplicate key: {key}")
        self.seen.add(key)


def _start_ns(record: Any) -> int:
    """torch's events have had us, and have ns since 2.3."""
    return int(record.start_ns()) if hasattr(record, "start_ns") else int(record.start_us()) * 1000


class MemRecordsAcc:
    """Records of allocations by time. A record is a list whose first item is torch's event of an allocation, which says when it was: start_ns() or start_us()."""

    def __init__(self, mem_records: Sequence[Any]):
        self._records = sorted(mem_records, key=lambda r: _start_ns(r[0]))
        self._starts_ns = [_start_ns(r[0]) for r in self._records]

    def in_interval(self, start_us: float, end_us: float) -> Iterator[Any]:
        """Those from start_us to end_us, both included, the earliest first. O(log n) for each call."""
        for i in range(bisect_left(self._starts_ns, start_us * 1000), bisect_right(self._starts_ns, end_us * 1000)):
            yield self._records[i]
