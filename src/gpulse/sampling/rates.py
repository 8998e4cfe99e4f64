"""Convert counters to rates per second, with a gap if two counts cannot be compared."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable

    from ..sources.base import Counter

_KEEP = 120  # samples after which a counter that no longer appears is forgotten


class Rates:
    """The last value of every counter of one sampler, by name."""

    def __init__(self) -> None:
        self._last: dict[Hashable, tuple[float, float, int, float | None]] = {}
        self._sample = 0

    def rate(self, name: Hashable, counter: Counter) -> float | None:
        """Return the rate since the previous count; None for the first count and for one that decreased.

        If two counts are too close in time, the previous rate is returned.
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
        """Mark the end of a sample; from time to time, forget counters that no longer appear."""
        self._sample += 1
        if self._sample % _KEEP == 0:
            self._last = {name: entry for name, entry in self._last.items() if self._sample - entry[2] <= _KEEP}

    def restart(self) -> None:
        """Forget every count: after a suspend, counts cannot be compared with earlier ones."""
        self._last.clear()
