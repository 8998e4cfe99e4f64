"""Transitions with a text of choice, for tests of how alerts are delivered."""

from __future__ import annotations

from gpulse.analysis.alerts import Notice, Transition
from gpulse.model.event import Event


def turned(
    state: str,
    rule: str,
    uuid: str,
    time: float,
    text: str,
    values: dict[str, float | str],
    *,
    gpu: str = "",
    what: str = "",
    severity: str = "warn",
) -> Transition:
    """Return a transition whose sentence is `text`."""
    gpus, uuids = ((gpu,) if gpu else ()), ((uuid,) if uuid else ())
    event = Event(time, "test", gpus, uuids=uuids, values=values, note=text, rule=rule, alert=state, severity=severity)
    return Transition(event, what)


def fire(rule: str, uuid: str, time: float, text: str, values: dict[str, float | str], **more: str) -> Transition:
    """Return an alert that begins."""
    return turned("fire", rule, uuid, time, text, values, **more)


def notice(*alerts: Transition, kind: str = "", active: int = 0) -> Notice:
    """Return the message about some alerts."""
    return Notice(kind or alerts[0].state, alerts[0].time, alerts, active)
