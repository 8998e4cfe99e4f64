"""A timeline: series over one run in bounded memory, each point with least, mean and most, so that a spike never vanishes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

POINTS = 1000  # at most, of each series
_FIRST = 1 / 16  # seconds of a point at the beginning; doubled until all fits, so an hour of seconds has points of 4 s


class TimelineSeries:
    """One series: of each point the least, the sum, the number and the most of its values; where the number is 0, nothing else counts."""

    __slots__ = ("counts", "highs", "lows", "sums")

    def __init__(self) -> None:
        self.lows: list[float] = []
        self.sums: list[float] = []
        self.counts: list[int] = []
        self.highs: list[float] = []

    def add(self, point: int, value: float) -> None:
        """Add a value to a point, which is the last or a later one."""
        counts = self.counts
        if len(counts) <= point:
            self.reach(point)
            counts.append(1)
            self.sums.append(value)
            self.lows.append(value)
            self.highs.append(value)
            return
        if not counts[point]:
            self.lows[point] = self.highs[point] = value
        elif value < self.lows[point]:
            self.lows[point] = value
        elif value > self.highs[point]:
            self.highs[point] = value
        counts[point] += 1
        self.sums[point] += value

    def reach(self, length: int) -> None:
        """Fill up with points that have no value."""
        missing = length - len(self.counts)
        if missing <= 0:
            return
        for column in (self.lows, self.sums, self.highs):
            column.extend([0.0] * missing)
        self.counts.extend([0] * missing)

    def merge(self, groups: list[tuple[int, int]]) -> None:
        """Make one point of each group, given as first and behind the last."""
        self.reach(groups[-1][1])
        full = [[at for at in range(*group) if self.counts[at]] for group in groups]
        self.lows = [min((self.lows[at] for at in group), default=0.0) for group in full]
        self.highs = [max((self.highs[at] for at in group), default=0.0) for group in full]
        self.sums = [sum(self.sums[at] for at in group) for group in full]
        self.counts = [sum(self.counts[at] for at in group) for group in full]

    def figures(self) -> tuple[float, float, float]:
        """Return mean, least and most over all points; there must be at least one value."""
        full = [at for at, count in enumerate(self.counts) if count]
        mean = sum(self.sums[at] for at in full) / sum(self.counts[at] for at in full)
        return mean, min(self.lows[at] for at in full), max(self.highs[at] for at in full)

    def means(self) -> Iterator[float | None]:
        """Walk the means, None where a point has no value."""
        for total, count in zip(self.sums, self.counts, strict=True):
            yield total / count if count else None


class Timeline:
    """All series of one run by name; they share their points, which begin at `at` times `width` seconds into the run.

    A name is where and what: ("gpu 0", "power_draw"). `breaks` are the points before which nothing was recorded for a while.
    """

    def __init__(self) -> None:
        self.width = _FIRST
        self.at: list[int] = []
        self.breaks: set[int] = set()
        self.traces: dict[tuple[str, str], TimelineSeries] = {}
        self._start: float | None = None

    def begin(self, time: float, after_gap: bool = False) -> None:
        """Go to the point of a moment; the values that follow belong to it."""
        if self._start is None:
            self._start = time
        place = int((time - self._start) / self.width)
        if not self.at or place > self.at[-1]:
            if after_gap:
                self.breaks.add(len(self.at))
            self.at.append(place)
            while len(self.at) > POINTS:
                self._halve()

    def add(self, where: str, key: str, value: float) -> None:
        """Add a value of the moment that was begun."""
        trace = self.traces.get((where, key))
        if trace is None:
            trace = self.traces[where, key] = TimelineSeries()
        trace.add(len(self.at) - 1, value)

    def _halve(self) -> None:
        self.width *= 2
        groups: list[tuple[int, int]] = []
        merged: list[int] = []
        for point, place in enumerate(self.at):
            if merged and merged[-1] == place // 2:
                groups[-1] = (groups[-1][0], point + 1)
            else:
                merged.append(place // 2)
                groups.append((point, point + 1))
        if len(groups) < len(self.at):
            for trace in self.traces.values():
                trace.merge(groups)
            self.breaks = {new for new, group in enumerate(groups) if self.breaks.intersection(range(*group))}
        self.at = merged
