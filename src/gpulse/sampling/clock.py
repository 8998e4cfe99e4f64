"""Clocks: the system clock, and one that tests control; and when something is due that is not read with every sample."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_NEARLY = 0.98  # a sample that comes a little early is the one that was meant, or "every 5 s" would be every 6 s
_TURN = 0.002  # real seconds between two looks at a clock that tests control


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

    def wait(self, ended: Callable[[float | None], bool], seconds: float | None) -> bool:
        """Wait for something that takes a timeout, such as `event.wait`, for at most these seconds; return whether it ended."""
        return ended(seconds)


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

    def wait(self, ended: Callable[[float | None], bool], seconds: float | None) -> bool:
        """Wait until it ends or another thread has advanced the clock far enough, however long that takes."""
        due = float("inf") if seconds is None else self.monotonic() + seconds
        while not ended(_TURN):
            if self.monotonic() >= due:
                return False
        return True

    def suspend(self, seconds: float) -> None:
        """Advance the clock as if the machine had been suspended."""
        self._now += seconds
        self._suspended += seconds


class Turns:
    """When things that are read less often than every sample were last read, by name."""

    def __init__(self, clock: SystemClock) -> None:
        self._clock = clock
        self._taken: dict[str, float] = {}

    def is_due(self, what: str, every: float) -> bool:
        """Return whether something is due that is read at most every `every` seconds."""
        return self._clock.monotonic() - self._taken.get(what, float("-inf")) >= _NEARLY * every

    def take(self, what: str, every: float) -> bool:
        """Return whether something is due; if so, it counts as read."""
        due = self.is_due(what, every)
        if due:
            self._taken[what] = self._clock.monotonic()
        return due

    def hurry(self, *names: str) -> None:
        """Make these due now."""
        for name in names:
            self._taken.pop(name, None)
