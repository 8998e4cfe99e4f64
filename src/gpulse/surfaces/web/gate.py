"""Check what every request must satisfy: host name, origin, method, size, and the token or the session that replaces it."""

from __future__ import annotations

import sys
import time
from urllib.parse import parse_qsl, urlencode

from starlette.responses import Response

from ...live.origin import READS, is_foreign, is_json
from ...live.parameters import Refusal
from ...value import Value
from . import access
from .answers import CSP, page, problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from .access import Hosts


class ServerSettings(Value):
    """How the server is reached. `token` None: by everybody; `hosts` None: by any name, as on a unix socket.

    `server` names this server among all others; `open_metrics` lets /metrics be asked without a token; `base_path` begins and ends with
    a slash.
    """

    token: str | None
    hosts: Hosts | None
    server: str = ""
    base_path: str = "/"
    open_metrics: bool = True
    access_log: bool = False


HEALTH = ("/healthz", "/readyz")  # never need a token: they tell nothing private, and Kubernetes' probes send none
_LARGEST = 65_536  # maximum bytes of a body; paths that take one allow less
_FOREIGN = (
    "a page of another server sent this request. If it is this server's page behind a proxy, "
    "let the proxy pass the Host header, and use --allow-host NAME."
)
_HEADERS = {
    b"content-security-policy": CSP.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}


class Gate:
    """Passes allowed requests to the app; an error of the app becomes one line on stderr and a 500.

    `methods` are those that each path takes; other paths take those that only read.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings, methods: Mapping[str, frozenset[str]]) -> None:
        self._app = app
        self._settings = settings
        self.methods = methods
        self._session = access.Session.derive(settings.token or "", settings.server)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        answer = _Answer(scope, send, self._settings.access_log)
        scope = {**scope, "path": self._within(scope["path"])}
        try:
            refused = self._refused(scope)
            await (refused or self._app)(scope, receive, answer.send)
        except Refusal as error:
            await problem(error.status, error.detail, error.headers)(scope, receive, answer.send)
        except Exception as error:  # noqa: BLE001  # whatever it is, the next request is answered
            sys.stderr.write(f"gpulse: {scope['path']!r} failed: {error!r}\n")
            if not answer.begun:
                await problem(500, "internal error of gpulse; see its log.")(scope, receive, answer.send)

    def _within(self, path: str) -> str:
        """Return the path without the base path, which a proxy may have removed already."""
        base = self._settings.base_path
        return path[len(base) - 1 :] if path.startswith(base) else path

    def _refused(self, scope: Scope) -> Response | None:
        """Return the error response for a request that is not allowed, else None."""
        settings, headers, path = self._settings, scope["headers"], scope["path"]
        named = [value.decode("latin-1") for key, value in headers if key == b"host"]
        if settings.hosts is not None and not (len(named) == 1 and settings.hosts.permit(named[0])):
            return problem(400, "this host name is not allowed; use --allow-host NAME to allow it.")
        if refused := self._foreign(scope) or self._wrong_method(scope):
            return refused
        if any(key == b"content-length" and not _is_small(value) for key, value in headers):
            return problem(413, f"requests must not have a body larger than {_LARGEST} bytes.", {"connection": "close"})
        if path + "/" == settings.base_path:
            return Response(b"", 308, {"location": f"{path.rpartition('/')[2]}/"})
        if settings.token is None or path in HEALTH:
            return None
        if path == "/metrics" and settings.open_metrics and not _forwarded(scope):
            return None
        return self._unknown(scope, settings.token)

    def _foreign(self, scope: Scope) -> Response | None:
        """Return the error response for a request of another server's page, which a browser may send with our cookie; else None."""
        permit = self._settings.hosts.permit if self._settings.hosts else lambda host: True
        foreign = is_foreign(scope["method"], _texts(scope), permit, self._is_secure(scope))
        return problem(403, _FOREIGN) if foreign else None

    def _wrong_method(self, scope: Scope) -> Response | None:
        """Return the error response for a method that the path does not take, or a change without token or JSON; else None."""
        allowed = self.methods.get(scope["path"], READS)
        if scope["method"] not in allowed:
            names = ", ".join(sorted(allowed))
            return problem(405, f"this path takes {names} only.", {"allow": names})
        if scope["method"] in READS:
            return None
        if self._settings.token is None:  # everybody could slow down a program, or silence alerts
            return problem(403, "this needs a server that requires a token.")
        if not is_json(_texts(scope)):
            return problem(415, "send JSON, with the header `Content-Type: application/json`.")
        return None

    def _is_secure(self, scope: Scope) -> bool:
        """Return whether the browser uses https; a proxy is believed only below a base path."""
        return scope["scheme"] == "https" or (self._settings.base_path != "/" and _proto(scope) == "https")

    def _unknown(self, scope: Scope, token: str) -> Response | None:
        """Return the response to a request without the token; None if it has the token."""
        wrong = False
        if scope["path"] == "/":
            pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
            given = [value for key, value in pairs if key == "token"]
            if any(access.is_token(value.encode("utf-8", "surrogateescape"), token) for value in given):
                return self._welcome(scope, [pair for pair in pairs if pair[0] != "token"])
            wrong = bool(given)
        if not wrong and access.carries(scope["headers"], token, self._session):
            return None
        if scope["path"] == "/":
            said = "Wrong token." if wrong else "This page requires a token."
            response = page(
                "gpulse",
                f"{said} `gpulse serve` prints a link with the token, or the name of the file that contains it.",
                401,
                form=True,
            )
        else:
            response = problem(
                401, "a token is required: send `Authorization: Bearer TOKEN`, or open the page with the token first."
            )
        response.headers["www-authenticate"] = 'Bearer realm="gpulse"'
        return response

    def _welcome(self, scope: Scope, rest: list[tuple[str, str]]) -> Response:
        """Return the redirect to the same page without the token in its address, and the session as a cookie instead."""
        cookie = self._session.header(self._settings.base_path, self._is_secure(scope))
        where = f"./?{urlencode(rest)}" if rest else "./"
        return Response(b"", 303, {"location": where, "set-cookie": cookie})


class _Answer:
    """Adds headers to every response, and writes the access log if enabled."""

    def __init__(self, scope: Scope, send: Send, log: bool) -> None:
        self._scope = scope
        self._send = send
        self._log = log
        self.begun = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            headers = [*message.get("headers", ())]
            there = {key for key, _ in headers}
            message = {**message, "headers": headers + [pair for pair in _HEADERS.items() if pair[0] not in there]}
            if self._log:
                self._write(message["status"])
        await self._send(message)

    def _write(self, status: int) -> None:
        """Write a line without the query, which may contain the token."""
        who = (self._scope.get("client") or ("-",))[0]
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        sys.stderr.write(f"{now} {who} {self._scope['method']} {ascii(self._scope['path'])[1:-1]} {status}\n")


def _is_small(length: bytes) -> bool:
    return length.isdigit() and len(length) < 10 and int(length) <= _LARGEST


def _texts(scope: Scope) -> dict[str, str]:
    """Return the headers as text; those that are repeated are joined, as none of the ones we compare may be."""
    found: dict[str, str] = {}
    for key, value in scope["headers"]:
        name, text = key.decode("latin-1"), value.decode("latin-1")
        found[name] = f"{found[name]},{text}" if name in found else text
    return found


def _forwarded(scope: Scope) -> bool:
    """Return whether a proxy forwarded the request."""
    return any(key in (b"x-forwarded-for", b"forwarded", b"x-real-ip") for key, _ in scope["headers"])


def _proto(scope: Scope) -> str:
    return next((value.decode("latin-1").strip() for key, value in scope["headers"] if key == b"x-forwarded-proto"), "")
