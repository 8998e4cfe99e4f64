"""What people have decided, as sentences: alerts that were silenced or acknowledged, by whom, until when and why."""

from __future__ import annotations

from .quantities import moment_text
from .text import Untrusted
from .words import gpus_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.event import Event
    from .events import Parts


def _who(event: Event) -> str:
    return Untrusted(event.values.get("by") or "somebody")


def _silenced(event: Event) -> Parts:
    reason, until = event.values.get("reason"), event.values.get("until")
    end = f" until {moment_text(until)}" if isinstance(until, (int, float)) else ""
    why = (": ", Untrusted(reason)) if reason else ()
    return (_who(event), " silenced ", *silence_parts(event), end, *why)


def _unsilenced(event: Event) -> Parts:
    return (_who(event), " ended the silence of ", *silence_parts(event))


def _acknowledged(event: Event) -> Parts:
    return (_who(event), " acknowledged ", *silence_parts(event))


def silence_parts(event: Event) -> Parts:
    """Return which alerts a decision is about: hot of ada on GPU 3; all alerts."""
    rule, user = event.values.get("rule"), event.values.get("user")
    whose = (" of ", Untrusted(user)) if user else ()
    return (Untrusted(rule) if rule else "all alerts", *whose, f" on {gpus_text(event.gpus)}" if event.gpus else "")


DECISIONS = {"alert-silenced": _silenced, "alert-unsilenced": _unsilenced, "alert-acknowledged": _acknowledged}
