"""Machines that run `gpulse serve`: asked for their snapshot every interval."""

from __future__ import annotations

import json

from ..errors import GpulseError, UsageError
from ..model.codec import from_plain, time_text
from .fleet import PollingFeed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from http.client import HTTPConnection

    from ..model.fleet import HostState
    from ..model.snapshot import Snapshot
    from .fleet import Fleet
    from .past import Past

_PATIENCE = 5.0  # seconds for one answer
MOST = 1 << 25  # bytes of one answer


class Url:
    """The address of a server, and what it is asked with; raises UsageError if it is no http or https address.

    `token` is sent as a bearer token, `headers` as they are. `ca_file` names the certificates to trust instead of the system's.
    """

    __slots__ = ("base", "ca_file", "headers", "host", "port", "secure")

    def __init__(
        self, text: str, token: str = "", headers: Mapping[str, str] | None = None, ca_file: str | None = None
    ) -> None:
        from urllib.parse import urlsplit

        try:
            parts = urlsplit(text if "//" in text else f"http://{text}")
            self.port, self.host = parts.port, parts.hostname or ""
        except ValueError:
            parts, self.host = urlsplit(""), ""
        if parts.scheme not in ("http", "https") or not self.host:
            raise UsageError(f"{text!r} is not the address of a server;", "write it as http://gpu-box:9440.")
        if parts.username or parts.password:
            raise UsageError(
                f"{self.host}: a password in an address can be seen by everybody;",
                "put user and password_file into the settings file.",
            )
        self.secure = parts.scheme == "https"
        self.base = parts.path.rstrip("/")
        self.headers = {"Accept": "application/json", **(headers or {})}
        if token:
            self.headers["Authorization"] = f"Bearer {token}"
        self.ca_file = ca_file

    @property
    def name(self) -> str:
        """What the machine is called until it says its own name."""
        return self.host if self.port is None else f"{self.host}:{self.port}"

    def connect(self) -> HTTPConnection:
        """Return a connection, which is made with the first request; raises OSError if `ca_file` cannot be read."""
        from http.client import HTTPConnection, HTTPSConnection

        if not self.secure:
            return HTTPConnection(self.host, self.port, timeout=_PATIENCE)
        import ssl

        return HTTPSConnection(
            self.host, self.port, timeout=_PATIENCE, context=ssl.create_default_context(cafile=self.ca_file)
        )

    @property
    def link(self) -> str:
        """The address of its page, without anything secret."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port is None else f":{self.port}"
        return f"{'https' if self.secure else 'http'}://{host}{port}{self.base}/"

    def fetched(self, path: str) -> bytes:
        """Return the body of an answer, over a connection of its own; raises Refused or OSError."""
        connection = self.connect()
        try:
            return self.answer(connection, path)
        finally:
            connection.close()

    def answer(self, connection: HTTPConnection, path: str) -> bytes:
        """Return the body of an answer with status 200; raises Refused or OSError.

        Redirects are not followed, so that no other server gets the token.
        """
        from http.client import HTTPException

        try:
            connection.request("GET", self.base + path, headers=self.headers)
            response = connection.getresponse()
            body = response.read(MOST + 1)
        except (HTTPException, ValueError) as error:
            raise Refused("failed", f"it does not speak HTTP ({type(error).__name__})") from None
        if response.status in (401, 403):
            raise Refused("denied", "the token is wrong or missing")
        if response.status != 200:
            raise Refused("failed", f"it answers with status {response.status}")
        if len(body) > MOST:
            raise Refused("failed", "its answer is too long")
        return body


class Refused(Exception):
    """An answer that is no snapshot: the state that follows, and why."""

    def __init__(self, state: HostState, reason: str) -> None:
        super().__init__(reason)
        self.state = state
        self.reason = reason


def why_refused(error: Refused | OSError) -> tuple[HostState, str]:
    """Return the state of a machine whose server cannot be read, and why."""
    if isinstance(error, Refused):
        return error.state, error.reason
    return "unreachable", str(error.strerror or error or "no answer")


class UrlFeed(PollingFeed):
    """Asks each server in a thread of its own: one that hangs delays nobody."""

    def __init__(self, urls: Sequence[Url], interval: float = 5.0) -> None:
        super().__init__(interval)
        self._urls = tuple(urls)
        self._named: dict[str, Url] = {}

    @property
    def past(self) -> Past:  # type: ignore[override]
        """The histories that the servers record."""
        from .past import UrlPast

        return UrlPast(self._named)

    def start(self, fleet: Fleet) -> None:
        for url in self._urls:
            name = fleet.expect(url.name, "url", url.link)
            self._named[name] = url
            self._begin(self._poll, fleet, name, url)

    def _poll(self, fleet: Fleet, name: str, url: Url) -> None:
        try:
            connection = url.connect()
        except OSError as error:
            fleet.fail(name, "failed", f"{url.ca_file} cannot be read ({error.strerror or error})")
            return
        for _ in self._rounds():
            try:
                fleet.put(name, snapshot_of(url.answer(connection, "/api/snapshot")))
            except (Refused, OSError) as error:
                connection.close()
                fleet.fail(name, *why_refused(error))
        connection.close()


def snapshot_of(body: bytes) -> Snapshot:
    """Return the snapshot in an answer; raises Refused."""
    try:
        plain = json.loads(body)
        if isinstance(plain, dict) and isinstance(plain.get("time"), (int, float)):
            plain["time"] = time_text(plain["time"])  # the API has numbers, recordings have text
        return from_plain(plain)
    except (ValueError, OverflowError, OSError, RecursionError, GpulseError):
        raise Refused("failed", "its answer is not a snapshot of gpulse") from None
