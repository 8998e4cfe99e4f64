"""Suspends and changes of the system clock, found by comparing it with clocks that cannot be set."""

from __future__ import annotations

from ..model.event import Event
from ..sampling.clock import SystemClock

_LEAP = 5.0  # seconds by which wall clock and monotonic clock must part to be worth an event


class ClockWatch:
    """Compares the time of each snapshot with the monotonic clock. For one thread."""

    def __init__(self, clock: SystemClock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._before: tuple[float, float, float] | None = None  # time, monotonic and asleep at the last snapshot

    def observe(self, moment: float) -> list[Event]:
        """Return a suspend, with its seconds as `value`, or a change of the clock, with the seconds it was set forward."""
        now, asleep = self._clock.monotonic(), self._clock.asleep()
        before, self._before = self._before, (moment, now, asleep)
        if before is None:
            return []
        passed, elapsed, slept = moment - before[0], now - before[1], asleep - before[2]
        found = [Event(moment, "suspend", value=slept)] if slept > _LEAP else []
        leap = passed - elapsed - slept
        return [*found, Event(moment, "clock", value=leap)] if abs(leap) > _LEAP else found
