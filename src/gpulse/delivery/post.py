"""HTTP POSTs of alerts, in the shape that each service takes.

Certificates are checked; redirects are not followed, since they would carry headers elsewhere.
"""

from __future__ import annotations

import time

from ..model.event import owner_of
from ..present.alerts import alert_advice, alert_facts, alert_link, alert_plain, alert_text, notice_lines, notice_title
from ..present.text import clean
from ..value import Value
from .delivery import Delivery, Failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from ..analysis.alerts import Notice, Transition

    # what is posted, None for nothing; `host` is this machine, `link` the page, `key` the secret of the service
    Shape: TypeAlias = "Callable[[Notice, str, str, str], Any]"

_LONGEST_DETAIL = 200
_LONGEST_BODY = 1 << 16


class Answer(Value):
    """What came of a POST: `why` it failed, empty if it did not; whether to try `again`, and `after` how many seconds
    if the other side names them; and the `detail` it gave, one line of untrusted text; after a success the `body` it sent."""

    why: str = ""
    again: bool = False
    after: float | None = None
    detail: str = ""
    body: bytes = b""


class Poster:
    """Posts to a URL, which may be a secret; `ca_file` names the certificates to trust instead of the system's."""

    def __init__(self, url: str, timeout: float, ca_file: str | None = None) -> None:
        self.url = url
        self._timeout = timeout
        self._ca_file = ca_file
        self._opener: Any = None

    def post(self, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Post once; what may get better (no answer, 408, 429, 5xx) is worth another try."""
        import http.client
        from urllib.error import HTTPError
        from urllib.request import Request

        try:
            request = Request(self.url, body, dict(headers), method="POST")
            with self._opened().open(request, timeout=self._timeout) as response:
                return Answer(body=_body(response))
        except HTTPError as error:
            with error:
                moved = "; use the address it redirects to" if 300 <= error.code < 400 else ""
                again = error.code in (408, 429) or error.code >= 500
                return Answer(
                    f"responded with status {error.code}{moved}", again, _seconds(error.headers), _detail(error)
                )
        except OSError as error:
            reason = getattr(error, "reason", None) or error
            told = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
            return Answer("no response in time" if isinstance(reason, TimeoutError) else told, True)
        except (http.client.HTTPException, ValueError) as error:
            return Answer(f"invalid response ({type(error).__name__})", True)  # their texts repeat the URL

    def _opened(self) -> Any:
        if self._opener is None:
            from urllib.request import HTTPRedirectHandler, HTTPSHandler, build_opener

            class Stay(HTTPRedirectHandler):
                def redirect_request(self, *_: Any) -> None:
                    return None

            handlers: list[Any] = [Stay]
            if self._ca_file is not None:
                import ssl

                handlers.append(HTTPSHandler(context=ssl.create_default_context(cafile=self._ca_file)))
            self._opener = build_opener(*handlers)
        return self._opener


def masked(url: str) -> str:
    """Return a URL as it may be shown: user, path and query are often the secret itself."""
    scheme, _, rest = url.partition("://")
    place, *more = rest.replace("?", "/").replace("#", "/").split("/", 1)
    return f"{scheme}://{place.rpartition('@')[2]}" + ("/***" if more and more[0] else "")


def _body(response: Any) -> bytes:
    """Return the body of a success; one that never comes does not make it a failure."""
    import http.client

    try:
        return bytes(response.read(_LONGEST_BODY))
    except (OSError, http.client.HTTPException):
        return b""


def _detail(error: Any) -> str:
    try:
        lines = error.read(4096).decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return clean(lines[0])[:_LONGEST_DETAIL] if lines else ""


def _seconds(headers: Any) -> float | None:
    given = (headers.get("Retry-After") or "").strip()
    return float(given) if given.isdecimal() and len(given) < 6 else None


_TIMEOUT = 5.0
_RETRIES = 3
_BACKOFF = 1.0  # seconds before the first retry; each next one waits four times as long
_LONGEST = 60.0
_REFRESH = 60.0  # seconds after which Alertmanager is told again of what is active
PAGERDUTY = "https://events.pagerduty.com/v2/enqueue"
_ALERTMANAGER = "/api/v2/alerts"


class Webhook(Delivery):
    """Posts to a URL.

    What may get better (no answer, 429, 5xx) is tried again, `retries` times, after 1, 4, 16 s or what Retry-After says.
    """

    name = "webhook"

    def __init__(
        self,
        url: str,
        shape: str = "json",
        headers: Mapping[str, str] | None = None,
        *,
        key: str = "",
        timeout: float = _TIMEOUT,
        retries: int = _RETRIES,
        backoff: float = _BACKOFF,
        **common: Any,
    ) -> None:
        manages = shape in ("alertmanager", "pagerduty")  # these keep state, and limit messages themselves
        super().__init__(**common | ({"limit": 0} if manages else {}))
        self._url, self._key = _endpoint(url, shape, key)
        self._shape = SHAPES[shape]
        if shape == "alertmanager":
            self.kinds, self.refresh = ("fire", "clear", "refresh", "test"), _REFRESH
        elif shape == "pagerduty":
            self.kinds = (*self.kinds, "ack")
        self._headers = {"Content-Type": "application/json", "User-Agent": "gpulse", **(headers or {})}
        self._poster = Poster(self._url, timeout)
        self._retries = retries
        self._backoff = backoff

    @property
    def place(self) -> str:
        return masked(self._url)

    def deliver(self, notice: Notice) -> None:
        import json

        if (plain := self._shape(notice, self._host, self._link, self._key)) is None:
            return
        body = json.dumps(plain).encode()
        pause = self._backoff
        for left in range(self._retries, -1, -1):
            answer = self._poster.post(body, self._headers)
            if not answer.why:
                return
            asked = pause if answer.after is None else answer.after
            if not answer.again or not left or self.stopping.wait(min(_LONGEST, asked)):
                raise Failed(f"{masked(self._url)}: {answer.why}")
            pause *= 4


def _endpoint(url: str, shape: str, key: str) -> tuple[str, str]:
    """Return where to post, and the secret or topic that is sent along."""
    if shape == "alertmanager" and not url.rstrip("/").endswith(_ALERTMANAGER):
        return url.rstrip("/") + _ALERTMANAGER, key
    if shape == "ntfy" and not key:  # JSON is posted to the root, which the topic's address has to be split for
        root, _, topic = url.rstrip("/").rpartition("/")
        return f"{root}/", topic
    return url, key


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
    color = _GREEN if notice.ends else _COLORS[_severity(notice)]
    embed |= {"description": _unmarked("\n".join(_more(notice)))[:4000], "color": color}
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
