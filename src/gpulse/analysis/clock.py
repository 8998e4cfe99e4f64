"""Suspends and changes of the system clock, found by comparing it with clocks that cannot be set."""

from __future__ import annotations

from ..model.event import Event
from ..sampling.clock import SystemClock

_LEAP = 5.0  # seconds by which wall clock and monotonic clock must part to be worth an event


class RecordedClock:
    """Finds in the times of snapshots alone where the clock was set back; set forward, it looks like a gap. For one thread."""

    def __init__(self) -> None:
        self._before: float | None = None
        self._apart = 0.0  # seconds between the two snapshots before

    def observe(self, moment: float) -> list[Event]:
        """Return a change of the clock, with the seconds it was set forward, which are negative."""
        before, self._before = self._before, moment
        if before is None:
            return []
        if moment >= before:
            self._apart = moment - before
            return []
        leap = moment - before - self._apart
        return [Event(moment, "clock", value=leap)] if leap < -_LEAP else []


class ClockWatch(RecordedClock):
    """Compares the time of each snapshot with the monotonic clock. For one thread."""

    def __init__(self, clock: SystemClock | None = None) -> None:
        super().__init__()
        self._clock = clock or SystemClock()
        self._last: tuple[float, float, float] | None = None  # time, monotonic and asleep at the last snapshot

    def observe(self, moment: float) -> list[Event]:
        """Return a suspend, with its seconds as `value`, or a change of the clock, with the seconds it was set forward."""
        now, asleep = self._clock.monotonic(), self._clock.asleep()
        before, self._last = self._last, (moment, now, asleep)
        if before is None:
            return []
        passed, elapsed, slept = moment - before[0], now - before[1], asleep - before[2]
        found = [Event(moment, "suspend", value=slept)] if slept > _LEAP else []
        leap = passed - elapsed - slept
        return [*found, Event(moment, "clock", value=leap)] if abs(leap) > _LEAP else found
