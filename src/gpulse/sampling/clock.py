"""Clocks: the system clock, and one that tests control."""

from __future__ import annotations

import time


class SystemClock:
    """The system clock."""

    def now(self) -> float:
        """Return seconds since 1970."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds of a clock that never goes back."""
        return time.monotonic()

    def asleep(self) -> float:
        """Return the seconds this machine has spent suspended since it booted."""
        boot = getattr(time, "CLOCK_BOOTTIME", None)
        return 0.0 if boot is None else time.clock_gettime(boot) - time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(max(0.0, seconds))


class ManualClock(SystemClock):
    """A clock that advances only when told to, or when a caller sleeps."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._now = start
        self._start = start
        self._suspended = 0.0

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now - self._start - self._suspended

    def asleep(self) -> float:
        return self._suspended

    def sleep(self, seconds: float) -> None:
        self._now += max(0.0, seconds)

    def suspend(self, seconds: float) -> None:
        """Advance the clock as if the machine had been suspended."""
        self._now += seconds
        self._suspended += seconds
