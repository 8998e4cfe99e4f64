"""The time that a sample stands for, and the growth of a counter between two readings: one rule for every mean, sum and share."""

from __future__ import annotations

from collections import deque

_HOLE = 5.0  # times the usual interval, and at least this many seconds: samples are missing
_UNSEEN = 60.0  # seconds without a sample, at least: what happened meanwhile is unknown


class Cadence:
    """How often samples arrive. A sample stands for the time since the previous one, or for the usual interval after a long hole.

    A hole is told from slow sampling by the recorder's own interval: the usual one, or the one just before. While neither is
    known, more than `first` seconds are a hole: the clock may have been set.
    """

    __slots__ = ("_before", "_first", "_intervals", "_last", "usual")

    def __init__(self, first: float = float("inf")) -> None:
        self._first = first
        self._intervals: deque[float] = deque(maxlen=15)
        self._last: float | None = None
        self._before = 0.0
        self.usual = 0.0

    def next(self, time: float) -> tuple[float, bool]:
        """Return the seconds a sample stands for, and whether samples are missing before it."""
        passed = 0.0 if self._last is None else max(0.0, time - self._last)
        self._last = time
        limit = _HOLE * max(self.usual, self._before) if self.usual else self._first
        late = passed > max(limit, _HOLE)
        seconds = self.usual if passed > max(limit, _UNSEEN) else passed
        self._before = passed
        if passed:
            self._intervals.append(passed)
            self.usual = sorted(self._intervals)[len(self._intervals) // 2]
        return seconds, late


class Growth:
    """A counter that is read every few seconds, so most samples repeat its last value; `at` is the time of its last reading."""

    __slots__ = ("at", "value")

    def __init__(self, value: float = 0.0, at: float | None = None) -> None:
        self.at = at
        self.value = value

    def since(self, value: float | None, at: float) -> tuple[float, float] | None:
        """Return the growth like `grown`, but for a value that has just been read: no growth is 0."""
        if value is not None and self.at is not None and value == self.value and at > self.at:
            since, self.at = self.at, at
            return 0.0, since
        return self.grown(value, at)

    def grown(self, value: float | None, at: float) -> tuple[float, float] | None:
        """Return the growth since the last reading and the time of that one; None if there is no new growth.

        A counter that fell was reset with the driver: counting begins again.
        """
        if value is None or (self.at is not None and value == self.value):
            return None
        before, since = self.value, self.at
        self.value, self.at = value, at
        return None if since is None or value < before or at <= since else (value - before, since)
