"""Transitions for tests of how alerts are delivered."""

from __future__ import annotations

from typing import Any

from gpulse.analysis.alerts import Notice, Transition
from gpulse.model.catalog import Process
from gpulse.model.event import Event

AT = 1_700_000_000.0


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


def hot(gpu: int, state: str = "fire") -> Transition:
    """Return a GPU that is hot."""
    values: dict[str, float | str] = {"temperature": 90.0 + gpu, "above": 86.0}
    event = Event(
        AT, "hot", (str(gpu),), uuids=(f"GPU-{gpu}",), value=90.0 + gpu, values=values, rule="hot", alert=state
    )
    return Transition(event)


def idle() -> Transition:
    """Return a process that holds memory and is called like a mention of everybody."""
    process = Process(
        {"pid": 42, "name": "python\n<@everyone> *x*", "user": "ada", "job": "123", "memory_used": 1 << 30}
    )
    values: dict[str, float | str] = {"memory_used": 1 << 30, "idle": 900.0, "user": "ada"}
    more: dict[str, Any] = {"process": process, "rule": "idle_allocation", "alert": "fire"}
    event = Event(AT, "idle-allocation", ("1",), uuids=("GPU-1",), value=1 << 30, values=values, **more)
    return Transition(event, "42")
