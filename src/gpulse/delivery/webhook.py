"""Webhook: an alert posted as JSON, plain or as Slack and its likes take it."""

from __future__ import annotations

from ..present.alerts import alert_plain, alert_text
from .delivery import Delivery, Failed

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
    """Posts to a URL; certificates are checked, redirects are not followed, since they would carry headers elsewhere.

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
        self._timeout = timeout
        self._retries = retries
        self._backoff = backoff
        self._opener: Any = None

    def deliver(self, transition: Transition) -> None:
        import json

        body = json.dumps(payload(transition, self._shape, self._host)).encode()
        pause = self._backoff
        for left in range(self._retries, -1, -1):
            why, again, asked = self._post(body)
            if not why:
                return
            if not again or not left or self.stopping.wait(min(_LONGEST, pause if asked is None else asked)):
                raise Failed(f"{masked(self._url)}: {why}")
            pause *= 4

    def _post(self, body: bytes) -> tuple[str, bool, float | None]:
        """Return what went wrong, whether to try again, and after how many seconds if the other side says so."""
        import http.client
        from urllib.error import HTTPError
        from urllib.request import Request

        request = Request(self._url, body, self._headers, method="POST")
        try:
            with self._opened().open(request, timeout=self._timeout):
                return "", False, None
        except HTTPError as error:
            error.close()
            moved = "; use the address it redirects to" if 300 <= error.code < 400 else ""
            return (
                f"responded with status {error.code}{moved}",
                error.code == 429 or error.code >= 500,
                _seconds(error.headers),
            )
        except OSError as error:
            reason = getattr(error, "reason", None) or error
            why = "no response in time" if isinstance(reason, TimeoutError) else str(reason) or type(reason).__name__
            return why, True, None
        except (http.client.HTTPException, ValueError) as error:
            return (
                f"invalid response ({type(error).__name__})",
                True,
                None,
            )  # their texts repeat the URL

    def _opened(self) -> Any:
        if self._opener is None:
            from urllib.request import HTTPRedirectHandler, build_opener

            class Stay(HTTPRedirectHandler):
                def redirect_request(self, *_: Any) -> None:
                    return None

            self._opener = build_opener(Stay)
        return self._opener


def payload(transition: Transition, shape: str, host: str) -> dict[str, Any]:
    """Return what is posted: all there is to know, or Slack's one text."""
    if shape == "json":
        return {**alert_plain(transition), "host": host}
    sign = "✅" if transition.state == "clear" else _SIGNS[transition.severity]
    text = f"{sign} {host + ': ' if host else ''}{alert_text(transition)}"
    # Slack's own rule for text that must not become a mention or a link
    return {"text": text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")}


def masked(url: str) -> str:
    """Return a URL as it may be shown: user, path and query are often the secret itself."""
    scheme, _, rest = url.partition("://")
    place, *more = rest.replace("?", "/").replace("#", "/").split("/", 1)
    return f"{scheme}://{place.rpartition('@')[2]}" + ("/***" if more and more[0] else "")


def _seconds(headers: Any) -> float | None:
    given = (headers.get("Retry-After") or "").strip()
    return float(given) if given.isdecimal() and len(given) < 6 else None
