"""HTTP POSTs of alerts: certificates are checked, redirects are not followed, since they would carry headers elsewhere."""

from __future__ import annotations

from ..present.text import clean
from .delivery import LIMIT, Delivery, Failed
from .shapes import SHAPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ..analysis.alerts import Notice

_LONGEST_DETAIL = 200


class Answer:
    """What came of a POST: `why` it failed, empty if it did not; whether to try `again`, and `after` how many seconds
    if the other side names them; and the `detail` it gave, one line of untrusted text."""

    __slots__ = ("after", "again", "detail", "why")

    def __init__(self, why: str = "", again: bool = False, after: float | None = None, detail: str = "") -> None:
        self.why = why
        self.again = again
        self.after = after
        self.detail = detail


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
            with self._opened().open(request, timeout=self._timeout):
                return Answer()
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
        host: str = "",
        link: str = "",
        key: str = "",
        timeout: float = _TIMEOUT,
        retries: int = _RETRIES,
        backoff: float = _BACKOFF,
        rules: Iterable[str] = (),
        clears: bool = True,
        limit: int = LIMIT,
    ) -> None:
        manages = shape in ("alertmanager", "pagerduty")  # these keep state, and limit messages themselves
        super().__init__(rules, clears, 0 if manages else limit)
        self._url, self._key = _endpoint(url, shape, key)
        self._shape = SHAPES[shape]
        self._link = link
        if shape == "alertmanager":
            self.kinds, self.refresh = ("fire", "clear", "refresh", "test"), _REFRESH
        elif shape == "pagerduty":
            self.kinds = (*self.kinds, "ack")
        self._headers = {"Content-Type": "application/json", "User-Agent": "gpulse", **(headers or {})}
        self._host = host
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
