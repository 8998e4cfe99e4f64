"""Counters to rates: per elapsed time, and a gap wherever the two counts do not belong together."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable

    from ..sources.base import Counter

_KEEP = 120  # looks after which a counter nobody brought again is forgotten


class Rates:
    """The last count of every counter, by name; one sampler's own."""

    def __init__(self) -> None:
        self._last: dict[Hashable, tuple[float, float, int, float | None]] = {}
        self._sample = 0

    def rate(self, name: Hashable, counter: Counter) -> float | None:
        """Return the rate since the count before; None for the first and for one that went back.

        Counts too close to each other are one: the rate before them still holds.
        """
        before = self._last.get(name)
        if before is None:
            self._last[name] = (counter.value, counter.at, self._sample, None)
            return None
        grown, elapsed = counter.value - before[0], counter.at - before[1]
        if grown >= 0 and 0 <= elapsed < counter.apart:
            self._last[name] = (before[0], before[1], self._sample, before[3])
            return before[3]
        rate = None if elapsed <= 0 or grown < 0 else counter.scale * grown / elapsed
        self._last[name] = (counter.value, counter.at, self._sample, rate)
        return rate

    def next_sample(self) -> None:
        """Tell that a sample is over; now and then, forget counters of things that are gone."""
        self._sample += 1
        if self._sample % _KEEP == 0:
            self._last = {name: entry for name, entry in self._last.items() if self._sample - entry[2] <= _KEEP}

    def restart(self) -> None:
        """Forget every count: after a suspend the next one has nothing to be compared with."""
        self._last.clear()
