"""Webhook: a message posted as JSON, in the shape that a service takes."""

from __future__ import annotations

from .delivery import LIMIT, Delivery, Failed
from .post import Poster, masked
from .shapes import SHAPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..analysis.alerts import Notice

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
