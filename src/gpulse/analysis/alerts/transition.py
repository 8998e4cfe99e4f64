"""Transitions: an alert that fires and an alert that clears; the latch that decides when, and the clock it goes by."""

from __future__ import annotations

import zlib
from collections import deque
from math import nan

from ...model.event import Event
from ...model.snapshot import Cadence
from ...value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Standing(Value):
    """How an active alert stands: `last` is its condition as it last held, `now` as it is, and `holds` whether it still does."""

    last: Event
    now: Event
    holds: bool
    repeats: int


class Transition(Value):
    """One turn of one alert, which is known by (rule, uuid, what).

    `event` is what happened, with `rule` and `alert` ("fire" or "clear") set. `what` tells alerts of one rule on one GPU apart: a PID,
    an XID code. `once` is true for something that happened rather than lasts: no clear follows. `last_true` is when the condition
    last held, `repeats` how many times it began to hold in the last half hour. An active alert has `standing`.
    """

    event: Event
    what: str = ""
    once: bool = False
    last_true: float = nan  # the time of the event, if it is not given
    repeats: int = 1
    standing: Standing | None = None

    def __post_init__(self) -> None:
        if self.last_true != self.last_true:
            self.last_true = self.event.time

    def renewed(self, standing: Standing) -> Transition:
        """Return the same alert, fired at the same time, with its condition as it was when it last held, and as it is now."""
        fired = self.event
        changes = {"time": fired.time, "rule": fired.rule, "alert": fired.alert, "severity": fired.severity}
        event = standing.last.replace(**changes, values={**fired.values, **standing.last.values})
        return self.replace(event=event, last_true=standing.last.time, repeats=standing.repeats, standing=standing)

    @property
    def rule(self) -> str:
        """The rule that turned."""
        return self.event.rule

    @property
    def state(self) -> str:
        """fire or clear."""
        return self.event.alert

    @property
    def severity(self) -> str:
        """info, warn or critical."""
        return self.event.severity

    @property
    def uuid(self) -> str:
        """The GPU it is about; empty for the machine itself."""
        return self.event.uuids[0] if self.event.uuids else ""

    @property
    def gpu(self) -> str:
        """The number people call the GPU by; empty where it has none."""
        return self.event.gpus[0] if self.event.gpus and self.event.gpus[0] != "?" else ""

    @property
    def time(self) -> float:
        """Seconds since 1970."""
        return self.event.time

    @property
    def values(self) -> Mapping[str, float | str]:
        """Numbers and texts by name, in stored units."""
        return self.event.values

    @property
    def key(self) -> tuple[str, str, str]:
        """What the alert is known by."""
        return self.rule, self.uuid, self.what

    @property
    def id(self) -> str:
        """What people call the alert by on a command line: six characters, the same for as long as it lasts."""
        return f"{zlib.crc32(repr(self.key).encode()):08x}"[:6]

    def to_plain(self) -> dict[str, Any]:
        """Return it as JSON takes it, for `from_plain`."""
        plain = {"event": self.event.to_plain(), "what": self.what, "once": self.once}
        return plain | {"last_true": self.last_true, "repeats": self.repeats}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Transition:
        """Return a transition of plain data; raises KeyError, TypeError or ValueError for what is none."""
        event = Event.from_plain(plain["event"])
        last, repeats = float(plain["last_true"]), int(plain["repeats"])
        return cls(event, str(plain["what"]), bool(plain["once"]), last_true=last, repeats=repeats)


_LONG = 60.0  # seconds between the first two samples that are a hole
_OFTEN = 600.0  # seconds after a clear in which another fire is a repeat
_REPEATS = 2  # repeats after which the calm that is needed doubles with each
_LEAST_CALM = 15.0
COUNTED = 1800.0  # seconds for which spells are counted


class WatchedTime:
    """Turns the times of samples into seconds watched: a long hole counts as one usual interval, a clock set back as none."""

    __slots__ = ("_cadence", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self._cadence = Cadence(first=_LONG)

    def advance(self, time: float) -> float:
        """Take the time of a sample, in seconds since 1970, and return the seconds watched until it."""
        self.now += self._cadence.next(time)[0]
        return self.now


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
