"""HTTP POSTs of alerts: as JSON for programs, and as Alertmanager takes them.

Certificates are checked; redirects are not followed, since they would carry headers elsewhere.
"""

from __future__ import annotations

import time

from ..model.event import owner_of
from ..present.alerts import alert_advice, alert_facts, alert_link, alert_plain, alert_text, notice_title
from ..present.text import clean, masked
from ..value import Value
from .delivery import Delivery, Failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from ..analysis.alerts import Notice, Transition

    # what is posted, for the name of this machine and the address of its page
    Shape: TypeAlias = "Callable[[Notice, str, str], Any]"

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
        timeout: float = _TIMEOUT,
        retries: int = _RETRIES,
        backoff: float = _BACKOFF,
        **common: Any,
    ) -> None:
        managed = shape == "alertmanager"  # keeps state, and limits messages itself
        super().__init__(**common | ({"limit": 0} if managed else {}))
        self._url = _alertmanager(url) if managed else url
        self._shape = SHAPES[shape]
        if managed:
            self.kinds, self.refresh = ("fire", "clear", "refresh", "test"), _REFRESH
        self._headers = {"Content-Type": "application/json", "User-Agent": "gpulse", **(headers or {})}
        self._poster = Poster(self._url, timeout)
        self._retries = retries
        self._backoff = backoff

    @property
    def place(self) -> str:
        return masked(self._url)

    def deliver(self, notice: Notice) -> None:
        import json

        body = json.dumps(self._shape(notice, self._host, self._link)).encode()
        pause = self._backoff
        for left in range(self._retries, -1, -1):
            answer = self._poster.post(body, self._headers)
            if not answer.why:
                return
            asked = pause if answer.after is None else answer.after
            if not answer.again or not left or self.stopping.wait(min(_LONGEST, asked)):
                raise Failed(f"{masked(self._url)}: {answer.why}")
            pause *= 4


def _alertmanager(url: str) -> str:
    """Return where an Alertmanager takes alerts; its address is enough."""
    root = url.rstrip("/")
    return root if root.endswith(_ALERTMANAGER) else root + _ALERTMANAGER


_ALIVE = 300.0  # seconds after which Alertmanager takes an alert for over unless it is told again


def json_shape(notice: Notice, host: str, link: str) -> dict[str, Any]:
    """Return everything there is to know; the fields of the first alert stand at the top as well."""
    alerts = [_with_facts(alert, link) for alert in notice.alerts]
    title = notice_title(notice)
    whole = {"kind": notice.kind, "title": title, "count": len(alerts), "active": notice.active}
    return {**alerts[0], "host": host, **whole, "held": notice.held, "alerts": alerts}


def _with_facts(alert: Transition, link: str) -> dict[str, Any]:
    facts = {name: text for name, text in alert_facts(alert) if name in ("user", "job", "limit")}
    plain = {**alert_plain(alert), **facts, "advice": alert_advice(alert.event)}
    return plain | ({"link": alert_link(alert, link)} if link else {})


def alertmanager_shape(notice: Notice, host: str, link: str) -> list[dict[str, Any]]:
    """Return alerts of Prometheus' Alertmanager (API v2), which groups, silences and repeats them itself."""
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


def _written(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{int(moment % 1 * 1000):03d}Z"


SHAPES: dict[str, Shape] = {"json": json_shape, "alertmanager": alertmanager_shape}
