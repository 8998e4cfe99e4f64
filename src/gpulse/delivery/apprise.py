"""Messages through Apprise, a package that knows Slack, Discord, Teams, ntfy, PagerDuty, mail and more than a hundred other services."""

from __future__ import annotations

import re
from contextvars import ContextVar

from ..plugins import missing_extra
from ..present.alerts import notice_lines, notice_title
from ..present.text import clean, masked
from .delivery import Delivery, Failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from typing import Any

    from ..analysis.alerts import Notice

PREFIX = "apprise:"
_LONGEST_REASON = 200
_SHORTEST_SECRET = 4  # characters
_MENTION = re.compile(r"(?<!\w)@")
_reasons: ContextVar[list[str]] = ContextVar("reasons")  # what Apprise logs while it sends one message


class AppriseDelivery(Delivery):
    """Sends to an Apprise URL such as slack://..., which is a secret as a whole. It is sent once; `?retry=` in the URL changes that."""

    name = "apprise"

    def __init__(self, url: str, **common: Any) -> None:
        super().__init__(**common)
        self._url = url
        self._service: Any = None

    @property
    def place(self) -> str:
        return masked(PREFIX + self._url).removeprefix(PREFIX)

    def deliver(self, notice: Notice) -> None:
        found: list[str] = []
        _reasons.set(found)
        if not self._opened().notify(**_message(notice, self._host, self._link)):
            raise Failed(
                f"{self.place}: {self._without_secrets(found[0]) if found else 'the message was not accepted'}"
            )

    def _opened(self) -> Any:
        """Return Apprise with this URL; kept, because it limits the rate of messages as each service wants it."""
        if self._service is None:
            try:
                import apprise  # 0.4 s with all its services
            except ImportError as error:
                raise Failed(str(missing_extra(self.place, error.name or "apprise", "alerts"))) from None
            _listen()
            service = apprise.Apprise(asset=apprise.AppriseAsset(app_id="gpulse", app_desc="GPU monitor"))
            if not service.add(self._url):  # its own message repeats the URL
                raise Failed(f"{self.place}: Apprise does not know such a URL; see https://appriseit.com")
            self._service = service
        return self._service

    def _without_secrets(self, text: str) -> str:
        """Return a text without any part of the URL."""
        from urllib.parse import unquote

        address = self._url.partition("://")[2]
        parts = {part for url in (address, unquote(address)) for part in re.split(r"[/:@?&=#,]", url)}
        for part in sorted(parts, key=len, reverse=True):
            text = text.replace(part, "***") if len(part) >= _SHORTEST_SECRET else text
        return clean(text)[:_LONGEST_REASON].rstrip(".")


def _message(notice: Notice, host: str, link: str) -> dict[str, Any]:
    """Return title, text and kind of a message. Apprise escapes what the service would take for markup."""
    title, lines = notice_title(notice, host), notice_lines(notice, link)
    if len(notice.alerts) == 1:  # its sentence is the title
        lines = [line.strip() for line in lines[1:]] or [title]
    body = "\n".join(lines)
    kind = "success" if notice.ends else {"critical": "failure", "warn": "warning"}.get(_severity(notice), "info")
    return {"title": _unmentioned(title), "body": _unmentioned(body), "notify_type": kind, "body_format": "text"}


def _severity(notice: Notice) -> str:
    found = {alert.severity for alert in notice.alerts}
    return next((one for one in ("critical", "warn") if one in found), "info")


def _unmentioned(text: str) -> str:
    """Return a text that mentions nobody, whatever a process is called: an invisible space parts @ from the name."""
    return _MENTION.sub("@\u200b", text)


def _listen() -> None:
    """Keep what Apprise logs for the message that is being sent, instead of printing it: it may repeat the URL."""
    import logging

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if (found := _reasons.get(None)) is not None:
                found.append(record.getMessage())

    logger = logging.getLogger("apprise")
    if logger.propagate:
        logger.propagate = False
        logger.addHandler(Listener(logging.WARNING))
