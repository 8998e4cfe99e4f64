"""Alerts as text, as plain data for pages and programs, and as messages: title, facts, what to do and where to look."""

from __future__ import annotations

from ..model.event import owner_of
from ..units import count_text, duration_text
from .cells import moment_text, value_text, xid_remedy, zone_text
from .events import amount_text, ended_text, event_text, metric_of
from .figures import advice_text
from .text import clean
from .words import gpus_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..analysis.alerts import Notice, Transition
    from ..model.event import Event

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


_LONGEST_TITLE = 500  # characters of a title
_AROUND = 300.0  # seconds before and after an alert that a link shows
_MOST = 20  # alerts of one message that are told one by one
_OPENINGS = {"repeat": "still: ", "ack": "acknowledged: ", "test": "test: "}
# What to do first about conditions that no verdict rule advises on.
_ADVICE = {
    "hot": "cooling",
    "link_errors": "reseat",
    "nvlink_down": "reseat",
    "fabric_not_ready": "kernel_log",
    "slower_than_peers": "fix_slow_gpu",
    "removed": "gpu_lost",
    "stalled": "rank_stacks",
    "serving_queue_long": "more_replicas",
    "serving_slow": "more_replicas",
    "serving_errors": "server_log",
}


def notice_title(notice: Notice, host: str = "") -> str:
    """Return a message in one line: the sentence of its alert, or what is the case on which GPUs."""
    events = [alert.event for alert in notice.alerts]
    if len(events) == 1:
        said = alert_text(notice.alerts[0])
    else:
        titles = dict.fromkeys(event.rule if (one := event.condition) is None else one.title for event in events)
        gpus = list(dict.fromkeys(name for event in events for name in event.gpus))
        people = list(dict.fromkeys(filter(None, map(owner_of, events))))
        whose = f" ({', '.join(map(clean, people))})" if people else ""
        over = "resolved: " if notice.ends else ""
        said = f"{over}{gpus_text(gpus) if gpus else 'machine'}: {' and '.join(map(clean, titles))}{whose}"
    return f"{clean(host) + ': ' if host else ''}{_OPENINGS.get(notice.kind, '')}{said}"[:_LONGEST_TITLE]


def notice_lines(notice: Notice, link: str = "") -> list[str]:
    """Return a message whole, line by line."""
    alerts = notice.alerts
    lines = []
    for alert in alerts[:_MOST]:
        lines.append(alert_text(alert))
        lines += [f"  {name}: {text}" for name, text in alert_facts(alert)]
    if len(alerts) > _MOST:
        lines.append(f"and {len(alerts) - _MOST} more")
    if not notice.ends and (todo := alert_advice(alerts[0].event)):
        lines.append(f"What to do: {todo}")
    if notice.ends and notice.active:
        lines.append(f"{count_text(notice.active, 'other alert')} of this rule still active.")
    if notice.held:
        before = f"{count_text(notice.held, 'alert')} before this one {'was' if notice.held == 1 else 'were'}"
        lines.append(f"{before} not sent: too many messages in an hour.")
    if notice.last:
        lines.append("This is the last message for now: too many in an hour. See `gpulse alerts list`.")
    if link:
        lines.append(alert_link(alerts[0], link))
    return lines


def alert_facts(alert: Transition) -> list[tuple[str, str]]:
    """Return what is known of an alert beside its sentence, as names and texts: user, job, value, limit, since."""
    event, process = alert.event, alert.event.process
    found = [("user", owner_of(event))]
    if process is not None:
        found += [(key, str(process.get(key) or "")) for key in ("job", "container")]
    metric = metric_of(event)
    if metric is not None and isinstance(value := event.values.get(metric.key, event.value), (int, float)):
        found.append(("value", value_text(metric, value)))
    limits = [(side, limit) for side in ("above", "below") if isinstance(limit := event.values.get(side), (int, float))]
    found += [("limit", f"{side} {amount_text(event, limit)}") for side, limit in limits]
    if not alert.once:
        name, since = ("since", alert.since) if event.alert == "fire" else ("ended", event.time)
        found.append((name, f"{moment_text(since)} {zone_text(since)}"))
    if isinstance(full := event.values.get("full_in_low"), (int, float)) and event.alert == "fire":
        found.append(("memory full in", duration_text(full)))
    return [(name, clean(text)) for name, text in found if text]


def alert_advice(event: Event) -> str:
    """Return the first thing to do about an alert; empty where there is nothing to say."""
    condition = event.condition
    if condition is None:
        return ""
    if condition.key == "xid" and event.value is not None and (remedy := xid_remedy(event.value)):
        return f"{remedy}."
    from ..analysis.diagnosis.rules import BY_KEY  # loads every rule

    advice = BY_KEY[condition.key].advice[:1] if condition.key in BY_KEY else (_ADVICE.get(condition.key, ""),)
    return advice_text(advice[0]) if any(advice) else ""


def alert_link(alert: Transition, link: str) -> str:
    """Return the address of the moment on the page; `link` is that of the page."""
    start, end = alert.time - _AROUND, alert.time + _AROUND
    gpus = f"&gpus={','.join(uuid[:12] for uuid in alert.event.uuids)}" if alert.event.uuids else ""
    return f"{link}#/timelines?from={start:.0f}&to={end:.0f}{gpus}"
