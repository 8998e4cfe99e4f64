"""Alerts as text and as the plain data that pages, webhooks and programs are given."""

from __future__ import annotations

from ..units import duration_text
from .events import ended_text, event_text
from .text import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..analysis.alerts import Transition

_LONGEST = 1000  # characters of a text; more is a mistake or an attack


def alert_text(transition: Transition) -> str:
    """Return the sentence of an alert, without control characters; of an active one what is true now, and how often it was."""
    standing = transition.standing
    if standing is None:
        return event_text(transition.event)[:_LONGEST]
    ago = _ago(standing.now.time - standing.last.time)
    sentence = event_text(transition.event) if standing.holds else ended_text(standing.last, standing.now, ago)
    often = f"; {standing.repeats} times in 30 min" if standing.repeats > 1 else ""
    return sentence[:_LONGEST] + often


def alert_line(transition: Transition) -> str:
    """Return a transition as a line of a log, without its time."""
    return f"alert {transition.state} {transition.rule}: {alert_text(transition)}"


def alert_plain(transition: Transition) -> dict[str, Any]:
    """Return a transition as JSON takes it; no text in it holds control characters."""
    return {
        "id": transition.id,
        "time": transition.time,
        "rule": transition.rule,
        "state": _state(transition),
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
        "last_true": transition.last_true,
        "repeats": transition.repeats,
    }


def _state(transition: Transition) -> str:
    """Return fire or clear for a turn; of an active alert whether its condition holds: firing or ended."""
    standing = transition.standing
    return transition.state if standing is None else "firing" if standing.holds else "ended"


def _ago(seconds: float) -> str:
    """Return how long ago something was, to the minute, so that a text does not change with each sample."""
    if seconds < 60:
        return "seconds ago"
    return f"{seconds // 60:.0f} min ago" if seconds < 3600 else f"{duration_text(seconds)} ago"
