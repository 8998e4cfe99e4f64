"""Shapes: a message as each service takes it over HTTP."""

from __future__ import annotations

import time

from ..model.event import owner_of
from ..present.alerts import alert_advice, alert_facts, alert_link, alert_plain, alert_text, notice_lines, notice_title

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from ..analysis.alerts import Notice, Transition

    # what is posted, None for nothing; `host` is this machine, `link` the page, `key` the secret of the service
    Shape: TypeAlias = "Callable[[Notice, str, str, str], Any]"

_SIGNS = {"critical": "🔴", "warn": "🟠", "info": "🔵"}
_COLORS = {"critical": 0xD7263D, "warn": 0xF2A33A, "info": 0x3A86F2}
_GREEN = 0x2E9E5B
_ALIVE = 300.0  # seconds after which Alertmanager takes an alert for over unless it is told again


def json_shape(notice: Notice, host: str, link: str, key: str) -> dict[str, Any]:
    """Return everything there is to know; the fields of the first alert stand at the top as well."""
    alerts = [_with_facts(alert, link) for alert in notice.alerts]
    title = notice_title(notice)
    whole = {"kind": notice.kind, "title": title, "count": len(alerts), "active": notice.active}
    return {**alerts[0], "host": host, **whole, "held": notice.held, "alerts": alerts}


def _with_facts(alert: Transition, link: str) -> dict[str, Any]:
    facts = {name: text for name, text in alert_facts(alert) if name in ("user", "job", "limit")}
    plain = {**alert_plain(alert), **facts, "advice": alert_advice(alert.event)}
    return plain | ({"link": alert_link(alert, link)} if link else {})


def slack_shape(notice: Notice, host: str, link: str, key: str) -> dict[str, Any]:
    """Return one text, for Slack, Mattermost and Rocket.Chat."""
    text = "\n".join([f"{_sign(notice)} {notice_title(notice, host)}", *_more(notice, link)])
    # Slack's own rule for text that must not become a mention or a link
    return {"text": text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")}


def discord_shape(notice: Notice, host: str, link: str, key: str) -> dict[str, Any]:
    """Return an embed; nobody is mentioned, whatever a process is called."""
    embed: dict[str, Any] = {"title": _unmarked(f"{_sign(notice)} {notice_title(notice, host)}")[:256]}
    embed |= {"description": _unmarked("\n".join(_more(notice)))[:4000], "color": _color(notice)}
    embed |= {"url": alert_link(notice.alerts[0], link)} if link else {}
    return {"username": "gpulse", "embeds": [embed], "allowed_mentions": {"parse": []}}


def teams_shape(notice: Notice, host: str, link: str, key: str) -> dict[str, Any]:
    """Return an adaptive card, as workflows of Microsoft Teams take it."""
    style = "Good" if notice.ends else {"critical": "Attention", "warn": "Warning"}.get(_severity(notice), "Default")
    title = {
        "type": "TextBlock",
        "text": _unmarked(f"{_sign(notice)} {notice_title(notice, host)}"),
        "weight": "Bolder",
    }
    lines = [{"type": "TextBlock", "text": _unmarked(line), "wrap": True} for line in _more(notice)]
    card: dict[str, Any] = {"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard"}
    card |= {"version": "1.4", "body": [title | {"color": style, "wrap": True}, *lines]}
    if link:
        address = alert_link(notice.alerts[0], link)
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Show on the page", "url": address}]
    kind = "application/vnd.microsoft.card.adaptive"
    return {"type": "message", "attachments": [{"contentType": kind, "contentUrl": None, "content": card}]}


def ntfy_shape(notice: Notice, host: str, link: str, key: str) -> dict[str, Any]:
    """Return a message to a topic, which `key` names."""
    priority = 2 if notice.ends else {"critical": 5, "warn": 4}.get(_severity(notice), 3)
    tag = (
        "white_check_mark"
        if notice.ends
        else {"critical": "rotating_light", "warn": "warning"}.get(_severity(notice), "information_source")
    )
    plain = {"topic": key, "title": notice_title(notice, host)[:250], "message": "\n".join(_more(notice))[:3500]}
    return (
        plain | {"priority": priority, "tags": [tag]} | ({"click": alert_link(notice.alerts[0], link)} if link else {})
    )


def pagerduty_shape(notice: Notice, host: str, link: str, key: str) -> dict[str, Any] | None:
    """Return an event (API v2). All alerts of a rule are one incident of a machine, which ends with the last of them."""
    plain: dict[str, Any] = {"routing_key": key, "dedup_key": f"gpulse/{host}/{notice.rule}"[:255], "client": "gpulse"}
    if notice.ends or notice.kind == "ack":
        action = "resolve" if notice.ends else "acknowledge"
        return None if notice.ends and notice.active else plain | {"event_action": action}
    severity = {"critical": "critical", "warn": "warning"}.get(_severity(notice), "info")
    details = {
        alert.id: "; ".join([alert_text(alert), *(f"{name}: {text}" for name, text in alert_facts(alert))])
        for alert in notice.alerts
    }
    payload = {"summary": notice_title(notice, host)[:1024], "source": host or "gpulse", "severity": severity}
    payload |= {"timestamp": _written(notice.alerts[0].time), "class": notice.rule, "component": "gpu"}
    links = [{"href": alert_link(notice.alerts[0], link), "text": "Show on the page"}] if link else []
    return plain | {"event_action": "trigger", "payload": payload | {"custom_details": details}, "links": links}


def alertmanager_shape(notice: Notice, host: str, link: str, key: str) -> list[dict[str, Any]] | None:
    """Return alerts of Prometheus' Alertmanager (API v2), which groups, silences and repeats them itself."""
    if notice.kind == "ack":
        return None
    return [_prometheus(alert, notice, host, link) for alert in notice.alerts]


def _prometheus(alert: Transition, notice: Notice, host: str, link: str) -> dict[str, Any]:
    event, ends = alert.event, notice.ends
    labels = {"alertname": alert.rule, "severity": alert.severity, "instance": host, "job": "gpulse", "id": alert.id}
    labels |= {"gpu": alert.gpu, "uuid": alert.uuid, "user": owner_of(event)}
    notes = {
        "summary": alert_text(alert),
        "description": "\n".join(f"{name}: {text}" for name, text in alert_facts(alert)),
    }
    notes["advice"] = alert_advice(event)
    over = notice.time if ends else notice.time + (1.0 if alert.once else _ALIVE)
    plain = {
        "labels": {name: text for name, text in labels.items() if text},
        "annotations": notes,
        "endsAt": _written(over),
    }
    plain |= {} if ends else {"startsAt": _written(alert.time)}
    return plain | ({"generatorURL": alert_link(alert, link)} if link else {})


def _more(notice: Notice, link: str = "") -> list[str]:
    """Return what follows the title; the sentence of a single alert is the title itself."""
    lines = notice_lines(notice, link)
    return [line.strip() for line in lines[1:]] if len(notice.alerts) == 1 else lines


def _severity(notice: Notice) -> str:
    found = {alert.severity for alert in notice.alerts}
    return next((one for one in ("critical", "warn") if one in found), "info")


def _sign(notice: Notice) -> str:
    return "✅" if notice.ends else _SIGNS[_severity(notice)]


def _color(notice: Notice) -> int:
    return _GREEN if notice.ends else _COLORS[_severity(notice)]


def _unmarked(text: str) -> str:
    """Return a text in which nothing is Markdown."""
    return "".join(f"\\{char}" if char in "\\`*_~|[]<" else char for char in text)


def _written(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{int(moment % 1 * 1000):03d}Z"


SHAPES: dict[str, Shape] = {
    "json": json_shape,
    "slack": slack_shape,
    "discord": discord_shape,
    "teams": teams_shape,
    "ntfy": ntfy_shape,
    "pagerduty": pagerduty_shape,
    "alertmanager": alertmanager_shape,
}
