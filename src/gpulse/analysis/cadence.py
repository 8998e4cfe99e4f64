"""Cadence: how often samples come, and which come after a gap."""

from __future__ import annotations

from collections import deque


class Cadence:
    """How often looks come, and which come late: after a gap, a sample stands for the usual time only."""

    __slots__ = ("_intervals", "_last", "usual")

    def __init__(self) -> None:
        self._intervals: deque[float] = deque(maxlen=15)
        self._last: float | None = None
        self.usual = 0.0

    def next(self, time: float) -> tuple[float, bool]:
        """Return the seconds a sample stands for, and whether it comes after a gap."""
        passed = 0.0 if self._last is None else max(0.0, time - self._last)
        self._last = time
        if self.usual and passed > max(5 * self.usual, 5.0):
            self._intervals.append(passed)  # a history grows coarser with age: a new rhythm is a gap once or twice
            seconds, late = self.usual, True
        else:
            seconds, late = passed, False
            if passed:
                self._intervals.append(passed)
        if self._intervals:
            self.usual = sorted(self._intervals)[len(self._intervals) // 2]
        return seconds, late
