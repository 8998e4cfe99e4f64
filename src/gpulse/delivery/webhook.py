"""Webhook: an alert posted as JSON, plain or as Slack and its likes take it."""

from __future__ import annotations

from ..present.alerts import alert_plain, alert_text
from .delivery import Delivery, Failed
from .post import Poster, masked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ..analysis.alerts import Transition

_TIMEOUT = 5.0
_RETRIES = 3
_BACKOFF = 1.0  # seconds before the first retry; each next one waits four times as long
_LONGEST = 60.0
_SIGNS = {"critical": "🔴", "warn": "🟠", "info": "🔵"}
SHAPES = ("json", "slack")


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
        host: str = "",
        timeout: float = _TIMEOUT,
        retries: int = _RETRIES,
        backoff: float = _BACKOFF,
        rules: Iterable[str] = (),
        clears: bool = True,
    ) -> None:
        super().__init__(rules, clears)
        self._url = url
        self._shape = shape
        self._headers = {"Content-Type": "application/json", "User-Agent": "gpulse", **(headers or {})}
        self._host = host
        self._poster = Poster(url, timeout)
        self._retries = retries
        self._backoff = backoff

    def deliver(self, transition: Transition) -> None:
        import json

        body = json.dumps(payload(transition, self._shape, self._host)).encode()
        pause = self._backoff
        for left in range(self._retries, -1, -1):
            answer = self._poster.post(body, self._headers)
            if not answer.why:
                return
            asked = pause if answer.after is None else answer.after
            if not answer.again or not left or self.stopping.wait(min(_LONGEST, asked)):
                raise Failed(f"{masked(self._url)}: {answer.why}")
            pause *= 4


def payload(transition: Transition, shape: str, host: str) -> dict[str, Any]:
    """Return what is posted: all there is to know, or Slack's one text."""
    if shape == "json":
        return {**alert_plain(transition), "host": host}
    sign = "✅" if transition.state == "clear" else _SIGNS[transition.severity]
    text = f"{sign} {host + ': ' if host else ''}{alert_text(transition)}"
    # Slack's own rule for text that must not become a mention or a link
    return {"text": text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")}
