"""Route requests to answers, and check what every request must satisfy first: password or token, host name, size."""

from __future__ import annotations

import json
import sys
import time
from urllib.parse import parse_qsl, urlencode

import anyio.to_thread
from anyio import CapacityLimiter
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router

from ...errors import GpulseError
from ...live.api import LARGEST_DECISION, ApiRequest, decide
from ...live.parameters import Refusal, read
from ...live.wire import compact
from ...monitor.presence import folder_of, presences
from ...monitor.traces import MOST_STEPS, STEPS, ask
from ...present.exposition import exposition
from ...value import Value
from . import access
from .answers import CSP, MOST, Streams, packed, page, problem, read_assets
from .openapi import FLEET_QUESTIONS, QUESTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Any

    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from ...live.api import Question
    from ...live.fleet import FleetHub
    from ...live.hub import Hub
    from ...live.past import Past
    from ...live.wire import StreamLog
    from ...monitor.traces import TraceRequest
    from .access import Hosts

    # The text for Prometheus and its content type, for an Accept header; called in a worker thread.
    Metrics = Callable[[str], tuple[bytes, str]]
    from starlette.types import Message


LARGEST = 1024  # bytes of a request for a trace
_AT_ONCE = 8  # questions answered side by side, each in a thread
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


class ServerSettings(Value):
    """How the server is reached. `token` None: by everybody; `hosts` None: by any name, as on a unix socket.

    `open_metrics` lets /metrics be asked without a token; `base_path` begins and ends with a slash.
    """

    token: str | None
    hosts: Hosts | None
    base_path: str = "/"
    open_metrics: bool = True
    access_log: bool = False


def make_app(
    hub: Hub, settings: ServerSettings, *, past: Past | None = None, metrics: Metrics | None = None, streams: int = MOST
) -> ASGIApp:
    """Return the ASGI app of one machine, with at most `streams` live streams."""
    threads, asked, desk = _Threads(), ApiRequest(hub, past), TraceDesk(hub)

    def plain_metrics(accept: str) -> tuple[bytes, str]:
        assert hub.latest is not None
        return ("\n".join(exposition(hub.latest)) + "\n").encode(), _TEXT

    async def scraped(request: Request) -> Response:
        if hub.latest is None:
            return problem(503, "no sample has been taken yet.", {"retry-after": "1"})
        accept = ",".join(request.headers.getlist("accept"))
        return await threads.run(lambda: packed(request.scope, *(metrics or plain_metrics)(accept)))

    async def monitors(request: Request) -> Response:
        return await threads.run(lambda: packed(request.scope, compact(desk.monitors())))

    async def trace(request: Request) -> Response:
        body = await _body(request, LARGEST)
        return await threads.run(lambda: packed(request.scope, compact(desk.ask(body))))

    async def decision(request: Request) -> Response:
        body = await _body(request, LARGEST_DECISION)
        by = f"{request.client.host} (page)" if request.client else "the page"
        return await threads.run(lambda: packed(request.scope, decide(asked, body, by)))

    more = [
        Route("/metrics", scraped),
        Route("/api/monitors", monitors),
        Route("/api/trace", trace, methods=["POST"]),
        Route("/api/alerts", decision, methods=["POST"]),
    ]
    return _app(hub, settings, (QUESTIONS, asked), threads, more, streams=streams)


def make_fleet_app(hub: FleetHub, settings: ServerSettings, *, streams: int = MOST) -> ASGIApp:
    """Return the ASGI app of a fleet: the same frame, access control and streams, with other questions."""
    return _app(hub, settings, (FLEET_QUESTIONS, hub), _Threads(), page_name="fleet.html", streams=streams)


def _app(
    hub: StreamLog,
    settings: ServerSettings,
    questions: tuple[Sequence[Question], Any],
    threads: _Threads,
    more: Sequence[Route] = (),
    *,
    page_name: str = "index.html",
    streams: int,
) -> ASGIApp:
    """Return an app that answers some questions. Its event loop touches bytes only: what reads a disk or makes text is done in threads."""
    assets = read_assets()

    async def index(request: Request) -> Response:
        if page_name in assets:
            return assets[page_name].response(request.scope)
        return page(
            "gpulse", "The page has not been built (run make page). The API is available: see api/openapi.json."
        )

    async def static(request: Request) -> Response:
        asset = assets.get(request.path_params["name"])
        return problem(404, "file not found.") if asset is None else asset.response(request.scope)

    async def healthz(request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(request: Request) -> Response:
        return problem(503, trouble) if (trouble := hub.unready) else PlainTextResponse("ok\n")

    routes = [
        Route("/", index),
        Route("/static/{name:path}", static),
        Route("/healthz", healthz),
        Route("/readyz", readyz),
        *more,
        Route("/api/stream", Streams(hub, streams, by_address=settings.token is None)),
        *(Route(question.path, _answering(question, questions[1], threads)) for question in questions[0]),
    ]
    return Gate(Router(routes, redirect_slashes=False, default=_nothing), settings)


def _answering(question: Question, asked: Any, threads: _Threads) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        given = read(question.parameters, request.query_params)
        return await threads.run(lambda: packed(request.scope, question.answer(asked, given)))

    return endpoint


async def _body(request: Request, most: int) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise Refusal(413, f"this request must not have a body larger than {most} bytes.")
    return body


class _Threads:
    """Worker threads, so few that questions wait for each other and not for memory."""

    def __init__(self) -> None:
        self._limit: CapacityLimiter | None = None

    async def run(self, job: Callable[[], Response]) -> Response:
        if self._limit is None:
            self._limit = CapacityLimiter(_AT_ONCE)  # belongs to an event loop, so it is made in it
        return await anyio.to_thread.run_sync(job, limiter=self._limit)


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    await problem(404, "not found; see api/openapi.json.")(scope, receive, send)


class TraceDesk:
    """Asks Monitors for traces and remembers the last request to each; called in worker threads."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._asked: dict[int, TraceRequest] = {}

    def monitors(self) -> dict[str, Any]:
        """Return the running Monitors, each with the state of its last trace: null, or `state` and `text`; none of a simulated machine."""
        there = presences() if self._hub.real else {}
        own = {pid: one.to_plain() for pid, one in there.items() if folder_of(pid) is not None}
        self._asked = {pid: request for pid, request in self._asked.items() if pid in own}
        hidden: dict[str, Any] = {} if self._hub.tells_programs else {"code": []}
        return {"monitors": [one | hidden | {"trace": self._state(pid)} for pid, one in sorted(own.items())]}

    def ask(self, body: bytes) -> dict[str, Any]:
        """Ask for a trace, as the body says: {"pid": 4242, "steps": 20}; refuse what is not such a request."""
        try:
            asked = json.loads(body)
            pid, steps = asked["pid"], asked.get("steps", STEPS)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise Refusal(422, 'send JSON: {"pid": 4242, "steps": 20}.') from None
        if not all(isinstance(one, int) and not isinstance(one, bool) for one in (pid, steps)):
            raise Refusal(422, "pid and steps must be integers.")
        if not 1 <= steps <= MOST_STEPS:
            raise Refusal(422, f"steps must be from 1 to {MOST_STEPS}.")
        if not self._hub.real:
            raise Refusal(404, "this server shows a machine that is not this computer.")
        try:
            self._asked[pid] = ask(pid, steps)
        except (GpulseError, OSError) as error:
            raise Refusal(404, str(error)) from None
        return {"pid": pid, "steps": steps}

    def _state(self, pid: int) -> dict[str, str] | None:
        request = self._asked.get(pid)
        return None if request is None else dict(zip(("state", "text"), request.answer(), strict=True))


HEALTH = ("/healthz", "/readyz")  # never need a token: they tell nothing private, and Kubernetes' probes send none
DECISIONS = "/api/alerts"
WRITES = ("/api/trace", DECISIONS)  # the only paths that take a POST
_LARGEST = 65_536  # maximum bytes of a body; no path uses one
_HEADERS = {
    b"content-security-policy": CSP.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}


class Gate:
    """Passes allowed requests to the app; an error of the app becomes one line on stderr and a 500."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._app = app
        self._settings = settings

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
        if scope["method"] == "POST" and path in WRITES:
            if settings.token is None:  # everybody could slow down a program, or silence alerts
                return problem(403, "this needs a server that requires a token.")
        elif scope["method"] not in ("GET", "HEAD"):
            allowed = "GET, HEAD, POST" if path == DECISIONS else "GET, HEAD"
            return problem(405, "this API is read-only: use GET.", {"allow": allowed})
        if any(key == b"content-length" and not _is_small(value) for key, value in headers):
            return problem(413, f"requests must not have a body larger than {_LARGEST} bytes.", {"connection": "close"})
        if path + "/" == settings.base_path:
            return Response(b"", 308, {"location": f"{path.rpartition('/')[2]}/"})
        if settings.token is None or path in HEALTH:
            return None
        if path == "/metrics" and settings.open_metrics and not _forwarded(scope):
            return None
        return self._unknown(scope, settings.token)

    def _unknown(self, scope: Scope, token: str) -> Response | None:
        """Return the response to a request without the token; None if it has the token."""
        wrong = False
        if scope["path"] == "/":
            pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
            given = [value for key, value in pairs if key == "token"]
            if any(access.is_token(value.encode("utf-8", "surrogateescape"), token) for value in given):
                return self._welcome(scope, [pair for pair in pairs if pair[0] != "token"], token)
            wrong = bool(given)
        if not wrong and access.carries(scope["headers"], token):
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

    def _welcome(self, scope: Scope, rest: list[tuple[str, str]], token: str) -> Response:
        """Return the redirect to the same page without the token in its address, and the cookie instead."""
        settings = self._settings
        secure = scope["scheme"] == "https" or (settings.base_path != "/" and _proto(scope) == "https")
        where = f"./?{urlencode(rest)}" if rest else "./"
        return Response(b"", 303, {"location": where, "set-cookie": access.cookie(token, settings.base_path, secure)})


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


def _forwarded(scope: Scope) -> bool:
    """Return whether a proxy forwarded the request."""
    return any(key in (b"x-forwarded-for", b"forwarded", b"x-real-ip") for key, _ in scope["headers"])


def _proto(scope: Scope) -> str:
    return next((value.decode("latin-1").strip() for key, value in scope["headers"] if key == b"x-forwarded-proto"), "")
