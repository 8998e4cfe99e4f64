"""A mail server on the loopback that keeps what it is sent."""

from __future__ import annotations

import email
import email.policy
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult


class Mailbox:
    """What the server took, and who each message was for; `refuse` is its answer to a message in place of taking it."""

    def __init__(self) -> None:
        self.messages: list[EmailMessage] = []
        self.recipients: list[list[str]] = []
        self.encrypted: list[bool] = []
        self.refuse = ""
        self.port = 0
        self._took = threading.Condition()

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # aiosmtpd's name
        if self.refuse:
            return self.refuse
        with self._took:
            self.messages.append(email.message_from_bytes(envelope.content, policy=email.policy.default))
            self.recipients.append(envelope.rcpt_tos)
            self.encrypted.append(session.ssl is not None)
            self._took.notify_all()
        return "250 taken"

    def wait(self, count: int, seconds: float = 30.0) -> bool:
        """Wait until there are so many messages."""
        with self._took:
            return self._took.wait_for(lambda: len(self.messages) >= count, seconds)


class _AnyPort(Controller):
    def _trigger_server(self) -> None:
        assert self.server is not None
        self.port = self.server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
        super()._trigger_server()  # type: ignore[no-untyped-call]


@contextmanager
def mail_server(tls: ssl.SSLContext | None = None, user: str = "", password: str = "") -> Iterator[Mailbox]:
    """Serve on a free port until the block ends; with a user, only who logs in as them may send."""
    box = Mailbox()

    def authenticate(server: Any, session: Any, envelope: Any, mechanism: Any, given: Any) -> AuthResult:
        return AuthResult(handled=False, success=(given.login, given.password) == (user.encode(), password.encode()))

    controller = _AnyPort(
        box,
        hostname="127.0.0.1",
        port=0,
        tls_context=tls,
        require_starttls=tls is not None,
        auth_required=bool(user),
        auth_require_tls=tls is not None,
        authenticator=authenticate if user else None,
    )
    controller.start()
    try:
        box.port = controller.port
        yield box
    finally:
        controller.stop()
