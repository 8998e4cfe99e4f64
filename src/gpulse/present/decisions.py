"""What people have decided, as sentences: alerts that were silenced or acknowledged, and memory that was reclaimed."""

from __future__ import annotations

from ..units import duration_text, size_text
from .quantities import moment_text
from .text import Untrusted, clean
from .words import gpus_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..analysis.reclaim import ReclaimStep
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


def step_text(step: ReclaimStep) -> str:
    """Return what follows for a process that holds memory: warn ada; wait: owner warned, next step at 14:00."""
    user, reason = clean(step.holding.process.user or "?"), clean(step.reason)
    if step.action == "wait":
        return reason + (f", next step at {moment_text(step.due)}" if step.due is not None else "")
    words = {
        "warn": f"warn {user}",
        "report": "tell the administrators",
        "end": "end it (SIGTERM)",
        "spare": f"nothing: {reason}",
    }
    return words.get(step.action, f"cannot tell: {reason}")


def holding_text(step: ReclaimStep) -> str:
    """Return who holds what for how long: ada's python (pid 42) holds 3.0 GiB on GPU 3 and has been idle for 2h."""
    return "".join(
        clean(part) if isinstance(part, Untrusted) else part
        for part in _holding(step.holding.event(0.0, "", step.idle))
    )


def _holding(event: Event) -> Parts:
    process, idle = event.process, event.values.get("idle")
    whose = (Untrusted(process.user or "?"), "'s ", Untrusted(process.name or "process")) if process is not None else ()
    pid = "" if process is None or process.pid is None else f" (pid {process.pid:.0f})"
    lasted = duration_text(idle) if isinstance(idle, (int, float)) else "long"
    return (
        *whose,
        f"{pid} holds {size_text(event.value or 0.0)} on {gpus_text(event.gpus)} and has been idle for {lasted}",
    )


def _warned(event: Event) -> Parts:
    return ("its owner was warned (", Untrusted(event.values.get("told", "")), "): ", *_holding(event))


def _reported(event: Event) -> Parts:
    return ("administrators were told (", Untrusted(event.values.get("told", "")), "): ", *_holding(event))


def _reclaimed(event: Event) -> Parts:
    return ("gpulse reclaim, run by ", _who(event), ", sent SIGTERM: ", *_holding(event))


DECISIONS = {
    "alert-silenced": _silenced,
    "alert-unsilenced": _unsilenced,
    "alert-acknowledged": _acknowledged,
    "reclaim-warned": _warned,
    "reclaim-reported": _reported,
    "reclaim-ended": _reclaimed,
}
