"""Mail: a message to people, through an SMTP server or the machine's own sendmail."""

from __future__ import annotations

import os
import re
import threading

from ..errors import ConfigError
from ..present.alerts import notice_lines, notice_title
from ..present.text import clean
from ..store.secret_file import read_secret
from .delivery import Delivery, Failed, run_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from email.message import EmailMessage
    from typing import Any

    from ..analysis.alerts import Notice

_TIMEOUT = 20.0
_LOCAL = ("localhost", "127.0.0.1", "::1")
_PORTS = {"tls": 465, "starttls": 587, "none": 25}


class Mailer:
    """Sends mail as the table [mail] of the settings says: `settings` are those of its keys that are set.

    Raises ConfigError if they make no sense together, and ValueError for an address that is none.
    """

    def __init__(self, settings: Mapping[str, Any], timeout: float = _TIMEOUT) -> None:
        self._host, self._port, self._tls = _server(settings)
        self._user = settings.get("user") or ""
        self._password_file = settings.get("password_file") or ""
        if bool(self._user) != bool(self._password_file):
            raise ConfigError("mail.user and mail.password_file belong together;", "set both, or neither.")
        if self._user and self._tls == "none" and self._host not in _LOCAL:
            raise ConfigError("mail.tls is none, so the password would be sent unencrypted;", 'write tls = "starttls".')
        self._sender = checked_address(settings.get("sender") or f"gpulse@{os.uname().nodename}")
        self._sendmail = settings.get("sendmail") or "/usr/sbin/sendmail"
        self._timeout = timeout

    @property
    def place(self) -> str:
        """What it sends through, for messages to people."""
        return f"{self._host}:{self._port}" if self._host else self._sendmail

    def send(
        self, to: Sequence[str], subject: str, text: str, html: str = "", stopping: threading.Event | None = None
    ) -> None:
        """Send one message to all of `to`; raise Failed with the reason if it was not taken."""
        from email.message import EmailMessage
        from email.utils import formatdate, make_msgid

        message = EmailMessage()
        message["From"] = self._sender
        message["To"] = ", ".join(map(checked_address, to))
        message["Subject"] = clean(subject)[:200]
        message["Date"] = formatdate(localtime=True)
        message["Message-ID"] = make_msgid("gpulse")
        message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no out-of-office replies
        message.set_content(text)
        if html:
            message.add_alternative(html, subtype="html")
        if self._host:
            self._through_server(message, to)
        else:
            self._through_program(message, stopping or threading.Event())

    def _through_server(self, message: EmailMessage, to: Sequence[str]) -> None:
        import smtplib
        import ssl

        secure = ssl.create_default_context()
        try:
            opened = (
                smtplib.SMTP_SSL(self._host, self._port, timeout=self._timeout, context=secure)
                if self._tls == "tls"
                else smtplib.SMTP(self._host, self._port, timeout=self._timeout)
            )
            with opened as server:
                if self._tls == "starttls":
                    server.starttls(context=secure)
                if self._user:
                    server.login(self._user, read_secret(self._password_file, "mail.password_file"))
                refused = server.send_message(message, self._sender, list(to))
        except ConfigError as error:
            raise Failed(str(error)) from None
        except (OSError, smtplib.SMTPException) as error:
            raise Failed(f"{self.place}: {_reason(error)}") from None
        if refused:
            raise Failed(f"{self.place} refused {', '.join(map(clean, refused))}")

    def _through_program(self, message: EmailMessage, stopping: threading.Event) -> None:
        import tempfile
        from email.policy import SMTP

        with tempfile.TemporaryFile() as file:
            file.write(message.as_bytes(policy=SMTP.clone(linesep="\n")))
            file.flush()
            file.seek(0)
            words = [self._sendmail, "-i", "-t", "-f", self._sender]
            run_program(words, os.environ, self._timeout, stopping, stdin=file.fileno())


class Mail(Delivery):
    """Mails each message."""

    name = "mail"

    def __init__(self, mailer: Mailer, to: Sequence[str], **common: Any) -> None:
        super().__init__(**common)
        self._mailer = mailer
        self._to = list(to)

    @property
    def place(self) -> str:
        return f"{', '.join(self._to)} through {self._mailer.place}"

    def deliver(self, notice: Notice) -> None:
        text = "\n".join([*notice_lines(notice, self._link), ""])
        self._mailer.send(self._to, notice_title(notice, self._host), text, stopping=self.stopping)


def checked_address(address: Any) -> str:
    """Return a mail address; raise ValueError if it is none, or could be taken for an option."""
    plain = isinstance(address, str) and address.isascii() and address.isprintable()
    if not plain or not re.fullmatch(r"[^-@\s,;<>\"'()\\][^@\s,;<>\"'()\\]*(@[^@\s,;<>\"'()\\]+)?", address):
        raise ValueError("a mail address such as ops@example.org")
    return str(address)


def _server(settings: Mapping[str, Any]) -> tuple[str, int, str]:
    """Return host, port and encryption; the host is empty for sendmail."""
    given, tls = settings.get("server") or "", settings.get("tls") or "auto"
    host, colon, digits = given.rpartition(":") if given.count(":") == 1 else (given, "", "")
    if colon and not (digits.isascii() and digits.isdecimal() and 0 < int(digits) < 65_536):
        raise ConfigError(f"mail.server: {given!r} is not HOST:PORT;", 'write server = "smtp.example.org:587".')
    if tls == "auto":
        tls = "tls" if digits == "465" else "none" if host in _LOCAL else "starttls"
    return host, int(digits) if colon else _PORTS[tls], tls


def _reason(error: Exception) -> str:
    """Return why a server did not take a message, without what it was sent."""
    said = getattr(error, "smtp_error", None)
    if isinstance(said, bytes):
        return f"responded with {getattr(error, 'smtp_code', '')} {clean(said.decode('utf-8', 'replace'))[:200]}"
    if isinstance(error, TimeoutError):
        return "no response in time"
    return clean(str(error))[:200] or type(error).__name__
