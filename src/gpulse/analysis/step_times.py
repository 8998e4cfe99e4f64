"""The times of a program's steps in bounded memory: percentiles, and means of consecutive steps that tell how far they vary."""

from __future__ import annotations

import threading

from .series import WeightedSeries
from .summary import Stats

MOST_BLOCKS = 128  # beyond, two neighbors become one: between 64 and 128 blocks for a run of any length


class StepTimes:
    """Counts how long each step took, from the end of one to the end of the next; thread-safe.

    `blocks` are the mean times of equally many consecutive steps. Their spread shows how far a run varies by itself, with pauses and
    slow stretches, which the spread of single steps does not: neighbors are alike.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._series = WeightedSeries()
        self._blocks: list[float] = []  # mean seconds of a step
        self._size = 1  # steps in a block
        self._open = [0.0, 0.0]  # seconds and steps of the block that is not full yet
        self._told: tuple[float, Stats | None] = (0.0, None)

    def add(self, seconds: float, steps: int = 1) -> None:
        """Add the time that this number of steps took together."""
        if seconds < 0 or steps < 1:
            return
        with self._lock:
            self._series.add(seconds / steps, steps)
            self._open[0] += seconds
            self._open[1] += steps
            if self._open[1] >= self._size:
                self._blocks.append(self._open[0] / self._open[1])
                self._open = [0.0, 0.0]
                if len(self._blocks) > MOST_BLOCKS:
                    self._merge()

    @property
    def stats(self) -> Stats | None:
        """Mean, percentiles and extremes in seconds; None before the second step."""
        with self._lock:
            return Stats.of(self._series) if self._series.seconds else None

    @property
    def recent(self) -> Stats | None:
        """The same for who asks every second: percentiles may be those of up to 3 % fewer steps, since sorting takes milliseconds."""
        steps, stats = self._told
        series = self._series
        if stats is None or series.seconds > 1.03 * steps:
            stats = self.stats
            self._told = series.seconds, stats
        elif series.seconds > steps and (mean := series.mean) is not None:
            stats = Stats(mean, stats.p50, stats.p95, series.highest, series.lowest)
        return stats

    @property
    def blocks(self) -> list[float]:
        """The mean time of a step in each full block, in seconds and in order."""
        with self._lock:
            return [*self._blocks]

    def _merge(self) -> None:
        pairs = zip(self._blocks[::2], self._blocks[1::2], strict=False)
        odd = self._blocks[-1] if len(self._blocks) % 2 else None
        self._blocks = [(one + other) / 2 for one, other in pairs]
        self._size *= 2
        if odd is not None:  # the last block has no partner yet: it is the first half of the next one
            self._open = [odd * self._size / 2, self._size / 2]
