"""Transitions: an alert that fires and an alert that clears."""

from __future__ import annotations

import zlib

from ...model.event import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Standing:
    """How an active alert stands: `last` is its condition as it last held, `now` as it is, and `holds` whether it still does."""

    __slots__ = ("holds", "last", "now", "repeats")

    def __init__(self, last: Event, now: Event, holds: bool, repeats: int) -> None:
        self.last = last
        self.now = now
        self.holds = holds
        self.repeats = repeats


class Transition:
    """One turn of one alert, which is known by (rule, uuid, what).

    `event` is what happened, with `rule` and `alert` ("fire" or "clear") set. `what` tells alerts of one rule on one GPU apart: a PID,
    an XID code. `once` is true for something that happened rather than lasts: no clear follows. `last_true` is when the condition
    last held, `repeats` how many times it began to hold in the last half hour. An active alert has `standing`.
    """

    __slots__ = ("event", "last_true", "once", "repeats", "standing", "what")

    def __init__(
        self,
        event: Event,
        what: str = "",
        once: bool = False,
        *,
        last_true: float | None = None,
        repeats: int = 1,
        standing: Standing | None = None,
    ) -> None:
        self.event = event
        self.what = what
        self.once = once
        self.last_true = event.time if last_true is None else last_true
        self.repeats = repeats
        self.standing = standing

    def renewed(self, standing: Standing) -> Transition:
        """Return the same alert, fired at the same time, with its condition as it was when it last held, and as it is now."""
        fired = self.event
        changes = {"time": fired.time, "rule": fired.rule, "alert": fired.alert, "severity": fired.severity}
        event = standing.last.replace(**changes, values={**fired.values, **standing.last.values})
        return Transition(
            event, self.what, self.once, last_true=standing.last.time, repeats=standing.repeats, standing=standing
        )

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

    def __repr__(self) -> str:
        return f"Transition({self.event!r}, {self.what!r})"
