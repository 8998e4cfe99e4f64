"""The list of `gpulse alerts`: what is active, and what people have decided about it."""

from __future__ import annotations

from ..present.alerts import alert_plain, alert_text
from ..present.decisions import silence_parts
from ..present.quantities import moment_text
from ..present.text import aligned, clean
from ..units import duration_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..analysis.alerts import Desk, Transition
    from ..model.silence import Silence


def alert_lines(desk: Desk, active: Sequence[Transition], now: float) -> list[str]:
    """Return the lines of the list."""
    lines = ["No alert is active."] if not active else []
    rows = [_row(desk, alert, now) for alert in active]
    lines += (
        [line.rstrip() for line in aligned([("ID", "SEVERITY", "RULE", "FOR", "", "ALERT"), *rows], left=6)]
        if rows
        else []
    )
    silences = [one for one in desk.silences if one.until > now]
    if silences:
        lines += ["", "Silences:"]
        rows = [(one.id, silence_text(one), f"until {moment_text(one.until)}", _whose(one)) for one in silences]
        lines += [line.rstrip() for line in aligned(rows, left=4)]
    return lines


def _row(desk: Desk, alert: Transition, now: float) -> tuple[str, ...]:
    standing, state = desk.standing(alert, now), ""
    if standing["silenced"] is not None:
        state = "silenced"
    elif standing["acknowledged"] is not None:
        state = f"ack by {clean(str(standing['acknowledged'].get('by')))}"
    lasted = duration_text(max(0.0, now - alert.time))
    return alert.id, alert.severity, clean(alert.rule), lasted, state, alert_text(alert)


def _whose(silence: Silence) -> str:
    return f"by {clean(silence.by)}{f': {clean(silence.reason)}' if silence.reason else ''}"


def silence_text(silence: Silence) -> str:
    """Return which alerts a silence is about: hot of ada on GPU 3."""
    return clean("".join(silence_parts(silence.event("alert-silenced", silence.since))))


def alerts_to_plain(desk: Desk, active: Sequence[Transition], now: float, watched: bool) -> dict[str, Any]:
    """Return the list as JSON takes it; `watched` says whether a server is running that keeps it current."""
    alerts = [alert_plain(alert) | desk.standing(alert, now) for alert in active]
    silences = [one.to_plain() for one in desk.silences if one.until > now]
    return {"schema": 1, "time": now, "watched": watched, "alerts": alerts, "silences": silences}
