"""Rates computed in a source, because the first read of a pair happens in `prime`, before the sampler reads."""

from __future__ import annotations


class Pace:
    """Growth per second of one counter between reads that are at least `apart` seconds from each other."""

    __slots__ = ("_apart", "_at", "_last", "_value")

    def __init__(self, apart: float) -> None:
        self._apart = apart * 0.999  # a wait of exactly that long may come out a hair shorter
        self._value: float | None = None
        self._at = 0.0
        self._last: float | None = None

    @property
    def begun(self) -> bool:
        """Whether there is a count to compare the next one with."""
        return self._value is not None

    def settled(self, now: float) -> bool:
        """Return whether a count taken now would give a rate."""
        return self._value is None or now - self._at >= self._apart

    def rate(self, value: float, now: float) -> float | None:
        """Return the growth per second since the count before; None for the first count and for one that went back.

        Counts too close to each other are one: the rate before them still holds.
        """
        before, elapsed = self._value, now - self._at
        if before is not None and value >= before and 0 <= elapsed < self._apart:
            return self._last
        grown = None if before is None or value < before or elapsed <= 0 else (value - before) / elapsed
        self._value, self._at, self._last = value, now, grown
        return grown

    def forget(self) -> None:
        """Begin anew: after the GPU slept, its counts do not compare."""
        self._value = self._last = None
