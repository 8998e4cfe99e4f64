"""The latch that decides when an alert fires and when it clears."""

from __future__ import annotations

from collections import deque

_OFTEN = 600.0  # seconds after a clear in which another fire is a repeat
_REPEATS = 2  # repeats after which the calm that is needed doubles with each
_LEAST_CALM = 15.0
COUNTED = 1800.0  # seconds for which spells are counted


class Latch:
    """Active once something has held for a while, until its opposite has: never two fires in a row.

    Time in which nobody knows is not counted and ends nothing. What comes and goes must stay calm for longer with each repeat,
    so that it does not flood the recipients.
    """

    __slots__ = ("_cleared", "_counting", "_held", "_last", "_repeats", "_run", "_spell", "_spells", "active")

    def __init__(self) -> None:
        self.active = False
        self._run = 0.0  # seconds for which what is waited for has held
        self._held: deque[tuple[float, float]] = (
            deque()
        )  # when it held, and for how long, as far as `slack` reaches back
        self._counting = False
        self._last: float | None = None
        self._cleared: float | None = None
        self._repeats = 0
        self._spell: float | None = -1.0  # seconds for which it has held without a break; None once that was counted
        self._spells: deque[float] = deque(maxlen=1000)

    def times(self, now: float) -> int:
        """Return how many times it has begun to hold, for as long as is needed to fire, in the last half hour."""
        return sum(began > now - COUNTED for began in self._spells)

    def resume(self) -> None:
        """Be active, as another latch was before a restart."""
        self.active = True
        self._spell = None

    def step(
        self, now: float, holds: bool | None, calm: bool | None, patience: float, calm_for: float, slack: float = 0.0
    ) -> bool | None:
        """Return True when it fires, False when it clears, else None.

        It fires after `patience` seconds of `holds` and clears after `calm_for` of `calm`; both may be false, between two
        thresholds. With `slack`, it fires once it held for `patience` of the last `slack` seconds, with pauses: a sample stands
        for the time since the one before.
        """
        seconds = 0.0 if self._last is None else now - self._last
        self._last = now
        self._count(now, holds, patience, seconds)
        sought, needed = (calm, self._calm_for(calm_for)) if self.active else (holds, patience)
        if sought is None:
            self._counting = False
            return None
        if not sought:
            self._counting = False
            self._run = 0.0
            return None
        if slack and not self.active:
            self._run = self._held_within(now, seconds, slack)
        else:
            self._run += seconds if self._counting else 0.0
        self._counting = True
        return self._turned(now) if self._run >= needed else None

    def _count(self, now: float, holds: bool | None, patience: float, seconds: float) -> None:
        if holds is False:
            self._spell = -1.0  # the first sample of a spell stands for no time yet
        elif holds and self._spell is not None:
            self._spell = 0.0 if self._spell < 0 else self._spell + seconds
            if self._spell >= patience:
                self._spells.append(now)
                self._spell = None

    def _held_within(self, now: float, seconds: float, slack: float) -> float:
        self._held.append((now, seconds))
        while self._held and self._held[0][0] <= now - slack:
            self._held.popleft()
        return sum(held for _, held in self._held)

    def _turned(self, now: float) -> bool:
        self.active = not self.active
        self._run, self._counting = 0.0, False
        self._held.clear()
        if self.active and self._spell is not None:  # fired with pauses
            self._spells.append(now)
            self._spell = None
        if not self.active:
            self._cleared = now
        elif self._cleared is not None:
            self._repeats = self._repeats + 1 if now - self._cleared < _OFTEN else 0
        return self.active

    def _calm_for(self, calm_for: float) -> float:
        if self._repeats <= _REPEATS:
            return calm_for
        doubled: float = max(calm_for, _LEAST_CALM) * 2.0 ** (self._repeats - _REPEATS)
        return min(max(calm_for, _OFTEN), doubled)
