"""A series of weighted values, kept in bounded memory: its mean, extremes and percentiles."""

from __future__ import annotations

from array import array

_MOST = 4096  # values kept; beyond, one of two neighbours stands for both, which moves a percentile by far less than it varies


class WeightedSeries:
    """Values with the seconds each stood for. Mean, lowest and highest are exact for any length, percentiles nearly so."""

    __slots__ = (
        "_dice",
        "_pending",
        "_seconds",
        "_stride",
        "_sum",
        "_values",
        "_within",
        "highest",
        "lowest",
        "seconds",
    )

    def __init__(self) -> None:
        self.seconds = 0.0
        self.lowest = float("inf")
        self.highest = float("-inf")
        self._sum = 0.0
        self._values = array("d")
        self._seconds = array("d")
        self._stride = 1
        self._pending = (0, 0.0, 0.0)
        self._dice = 1
        self._within = False

    def add(self, value: float, seconds: float, within: bool = True) -> None:
        """Add a value that held for `seconds`; durations of 0 or less are ignored.

        One that was read outside, not `within`, is no extreme while there are others.
        """
        if seconds <= 0:
            return
        if within and not self._within:
            self.lowest, self.highest = float("inf"), float("-inf")
        if within or not self._within:
            self.lowest = min(self.lowest, value)
            self.highest = max(self.highest, value)
        self._within = self._within or within
        self.seconds += seconds
        self._sum += value * seconds
        count, kept, gathered = self._pending
        count, kept, gathered = count + 1, self._one_of(kept, gathered, value, seconds), gathered + seconds
        if count < self._stride:
            self._pending = (count, kept, gathered)
            return
        self._pending = (0, 0.0, 0.0)
        self._values.append(kept)
        self._seconds.append(gathered)
        if len(self._values) > _MOST:
            self._thin()

    @property
    def mean(self) -> float | None:
        """The mean over time; None when nothing was added."""
        return self._sum / self.seconds if self.seconds else None

    def percentile(self, percent: float) -> float | None:
        """Return the value that the series stays at or below for this share of its time; None when nothing was added."""
        return self.percentiles(percent)[0]

    def percentiles(self, *percents: float) -> list[float | None]:
        """Return several percentiles, each larger than the one before: the values are sorted once."""
        if not self.seconds or not self._values:
            return [self.highest if self.seconds else None for _ in percents]
        total, spent, found = sum(self._seconds), 0.0, []
        pairs = iter(sorted(zip(self._values, self._seconds, strict=True)))
        value = self.lowest
        for percent in percents:
            while spent < total * percent / 100.0 - 1e-9 or not spent:
                value, seconds = next(pairs, (value, total))
                spent += seconds
            found.append(value)
        return [*found]

    def _thin(self) -> None:
        self._stride *= 2
        values, seconds = self._values, self._seconds
        pairs = [(at, at + 1) for at in range(0, len(values) - 1, 2)]
        self._values = array("d", (self._one_of(values[a], seconds[a], values[b], seconds[b]) for a, b in pairs))
        self._seconds = array("d", (seconds[a] + seconds[b] for a, b in pairs))
        if len(values) % 2:
            self._values.append(values[-1])
            self._seconds.append(seconds[-1])

    def _one_of(self, first: float, seconds: float, second: float, others: float) -> float:
        """Choose by lot, each by its time: always the same place would show only half of what comes and goes in turn."""
        if not seconds:
            return second
        self._dice = (self._dice * 1103515245 + 12345) & 0x7FFFFFFF
        return first if self._dice < 0x80000000 * seconds / (seconds + others) else second
