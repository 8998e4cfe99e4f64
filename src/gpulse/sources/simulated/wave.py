"""Repeating levels with exact integrals, so that values add up for any sampling interval."""

from __future__ import annotations

from bisect import bisect_right
from math import exp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Wave:
    """A repeating sequence of levels; each step is (seconds, level)."""

    __slots__ = ("_areas", "_edges", "_levels", "_whole", "period")

    def __init__(self, steps: Sequence[tuple[float, float]]) -> None:
        self._edges: list[float] = []
        self._areas: list[float] = []
        self._levels = [level for _, level in steps]
        edge = area = 0.0
        for seconds, level in steps:
            self._edges.append(edge)
            self._areas.append(area)
            edge += seconds
            area += seconds * level
        self.period = edge
        self._whole = area

    def area(self, at: float) -> float:
        """Return the integral of the level from 0 to `at`."""
        laps, rest = divmod(at, self.period)
        step = bisect_right(self._edges, rest) - 1
        return laps * self._whole + self._areas[step] + (rest - self._edges[step]) * self._levels[step]

    def mean(self, at: float, window: float = 1.0) -> float:
        """Return the mean level over the window that ends at `at`."""
        return (self.area(at) - self.area(at - window)) / window


class Inertia:
    """A wave followed with a delay, as temperature follows power: it covers 63 % of the way in `seconds`.

    It has no start, so the same time of each lap has the same value.
    """

    __slots__ = ("_edges", "_period", "_seconds", "_starts", "_steps")

    def __init__(self, steps: Sequence[tuple[float, float]], seconds: float) -> None:
        self._seconds = seconds
        self._steps = steps
        self._edges: list[float] = []
        self._period = 0.0
        for duration, _ in steps:
            self._edges.append(self._period)
            self._period += duration
        lap = self._lap(0.0)[-1] / (1.0 - exp(-self._period / seconds))
        self._starts = self._lap(lap)

    def at(self, at: float) -> float:
        """Return the value of the follower at that time."""
        rest = at % self._period
        step = bisect_right(self._edges, rest) - 1
        return self._follow(self._starts[step], self._steps[step][1], rest - self._edges[step])

    def _lap(self, value: float) -> list[float]:
        """Return the value at the start of each step and at the end of the last one, starting with `value`."""
        values = [value]
        for duration, level in self._steps:
            values.append(self._follow(values[-1], level, duration))
        return values

    def _follow(self, value: float, level: float, duration: float) -> float:
        return level + (value - level) * exp(-duration / self._seconds)
