"""A latch: one fire and one clear, however a value hovers; and the clock it goes by."""

from __future__ import annotations

from collections import deque

_LONG = 60.0  # seconds between samples that are never taken for a hole
_RECENT = 9  # steps whose median is the usual one


class WatchedTime:
    """Turns the times of looks into seconds that were really watched: a hole counts as one usual step, a clock set back as none."""

    __slots__ = ("_last", "_steps", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self._last: float | None = None
        self._steps: deque[float] = deque(maxlen=_RECENT)

    def advance(self, time: float) -> float:
        """Take the time of a sample, in seconds since 1970, and return the seconds watched until it."""
        step = 0.0 if self._last is None else max(0.0, time - self._last)
        self._last = time
        usual = sorted(self._steps)[len(self._steps) // 2] if self._steps else 0.0
        self.now += usual if step > max(_LONG, 5 * usual) else step
        if step:
            self._steps.append(step)
        return self.now


class Latch:
    """Active once something has held for a while, until its opposite has: never two fires in a row.

    Time in which nobody knows is not counted and ends nothing.
    """

    __slots__ = ("_calm", "_counting", "_last", "_run", "active")

    def __init__(self) -> None:
        self.active = False
        self._run = 0.0  # seconds for which what is waited for has held
        self._calm = 0.0
        self._counting = False
        self._last: float | None = None

    def step(
        self, now: float, holds: bool | None, calm: bool | None, patience: float, calm_for: float, slack: float = 0.0
    ) -> bool | None:
        """Return True when it fires, False when it clears, else None.

        It fires after `patience` seconds of `holds` and clears after `calm_for` of `calm`; both may be false, between two
        thresholds. With `slack`, interruptions that are no longer do not start the patience anew, and do not count either.
        """
        seconds = 0.0 if self._last is None else now - self._last
        self._last = now
        sought, needed = (calm, calm_for) if self.active else (holds, patience)
        if sought is None:
            self._counting = False
            return None
        if not sought:
            self._calm += seconds
            self._counting = False
            if self.active or self._calm > slack:
                self._run = 0.0
            return None
        self._run += seconds if self._counting else 0.0
        self._calm = 0.0
        self._counting = True
        if self._run < needed:
            return None
        self.active = not self.active
        self._run, self._counting = 0.0, False
        return self.active
