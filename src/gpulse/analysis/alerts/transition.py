"""Transitions: an alert that fires and an alert that clears."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...model.event import Event


class Transition:
    """One turn of one alert, which is known by (rule, uuid, what).

    `event` is what happened, with `rule` and `alert` ("fire" or "clear") set. `what` tells alerts of one rule on one GPU apart: a PID,
    an XID code. `once` is true for something that happened rather than lasts: no clear follows.
    """

    __slots__ = ("event", "once", "what")

    def __init__(self, event: Event, what: str = "", once: bool = False) -> None:
        self.event = event
        self.what = what
        self.once = once

    def with_values(self, now: Event) -> Transition:
        """Return the same alert, fired at the same time, with its condition as it is now."""
        fired = self.event
        changes = {"time": fired.time, "rule": fired.rule, "alert": fired.alert, "severity": fired.severity}
        return Transition(now.replace(**changes), self.what, self.once)

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

    def __repr__(self) -> str:
        return f"Transition({self.event!r}, {self.what!r})"
