"""Alerts as text and as the plain data that pages, webhooks and programs are given."""

from __future__ import annotations

from .events import event_text
from .text import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..analysis.alerts import Transition

_LONGEST = 1000  # characters of a text; more is a mistake or an attack


def alert_text(transition: Transition) -> str:
    """Return the sentence of an alert, without control characters."""
    return event_text(transition.event)[:_LONGEST]


def alert_line(transition: Transition) -> str:
    """Return a transition as a line of a log, without its time."""
    return f"alert {transition.state} {transition.rule}: {alert_text(transition)}"


def alert_plain(transition: Transition) -> dict[str, Any]:
    """Return a transition as JSON takes it; no text in it holds control characters."""
    return {
        "time": transition.time,
        "rule": transition.rule,
        "state": transition.state,
        "severity": transition.severity,
        "gpu": transition.gpu,
        "uuid": transition.uuid,
        "what": transition.what,
        "text": alert_text(transition),
        "values": {
            key: clean(value[:_LONGEST]) if isinstance(value, str) else value
            for key, value in transition.values.items()
        },
        "once": transition.once,
    }
