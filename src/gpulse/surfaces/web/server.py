"""Route requests to answers."""

from __future__ import annotations

import anyio.to_thread
from anyio import CapacityLimiter
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router

from ...live.api import LARGEST_DECISION, ApiRequest, decide
from ...live.origin import READS
from ...live.parameters import Refusal, read
from ...live.wire import compact
from ...monitor.presence import folder_of, presences
from ...present.exposition import exposition
from .answers import MOST, Streams, packed, page, problem, read_assets
from .gate import Gate, ServerSettings
from .openapi import FLEET_QUESTIONS, QUESTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Any

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from ...live.api import Question
    from ...live.fleet import FleetHub
    from ...live.hub import Hub
    from ...live.past import Past
    from ...live.wire import StreamLog

    # The text for Prometheus and its content type, for an Accept header; called in a worker thread.
    Metrics = Callable[[str], tuple[bytes, str]]


_AT_ONCE = 8  # questions answered side by side, each in a thread
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


def make_app(
    hub: Hub, settings: ServerSettings, *, past: Past | None = None, metrics: Metrics | None = None, streams: int = MOST
) -> Gate:
    """Return the ASGI app of one machine, with at most `streams` live streams."""
    threads, asked = _Threads(), ApiRequest(hub, past)

    def plain_metrics(accept: str) -> tuple[bytes, str]:
        assert hub.latest is not None
        return ("\n".join(exposition(hub.latest)) + "\n").encode(), _TEXT

    async def scraped(request: Request) -> Response:
        if hub.latest is None:
            return problem(503, "no sample has been taken yet.", {"retry-after": "1"})
        accept = ",".join(request.headers.getlist("accept"))
        return await threads.run(lambda: packed(request.scope, *(metrics or plain_metrics)(accept)))

    async def monitors(request: Request) -> Response:
        return await threads.run(lambda: packed(request.scope, compact(_monitors(hub))))

    async def decision(request: Request) -> Response:
        body = await _body(request, LARGEST_DECISION)
        by = f"{request.client.host} (page)" if request.client else "the page"
        return await threads.run(lambda: packed(request.scope, decide(asked, body, by)))

    more = [
        Route("/metrics", scraped),
        Route("/api/monitors", monitors),
        Route("/api/alerts", decision, methods=["POST"]),
    ]
    return _app(hub, settings, (QUESTIONS, asked), threads, more, streams=streams)


def make_fleet_app(hub: FleetHub, settings: ServerSettings, *, streams: int = MOST) -> Gate:
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
) -> Gate:
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
    return Gate(Router(routes, redirect_slashes=False, default=_nothing), settings, _methods(routes))


def _methods(routes: Sequence[Route]) -> dict[str, frozenset[str]]:
    """Return the methods that each path takes."""
    found: dict[str, frozenset[str]] = {}
    for route in routes:
        found[route.path] = found.get(route.path, frozenset()) | (route.methods or READS)
    return found


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


def _monitors(hub: Hub) -> dict[str, Any]:
    """Return the running Monitors of the server's user, without lines of code where programs are hidden; none of a simulated machine."""
    there = presences() if hub.real else {}
    own = {pid: one.to_plain() for pid, one in there.items() if folder_of(pid) is not None}
    hidden: dict[str, Any] = {} if hub.tells_programs else {"code": []}
    return {"monitors": [one | hidden for _, one in sorted(own.items())]}
