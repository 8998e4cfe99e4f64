"""The app: which path is answered by what."""

from __future__ import annotations

import anyio.to_thread
from anyio import CapacityLimiter
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router

from ...live.api import LARGEST_DECISION, ApiRequest, decide
from ...live.parameters import read
from ...live.refusal import Refusal
from ...live.wire import compact
from ...present.exposition import exposition
from .answers import packed, page, problem
from .assets import read_assets
from .gate import Gate
from .openapi import FLEET_QUESTIONS, QUESTIONS
from .streams import MOST, Streams
from .traces import LARGEST, TraceDesk

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
    from ...live.stream_log import StreamLog
    from .auth import Hosts

    # The text for Prometheus and its content type, for an Accept header; called in a worker thread.
    Metrics = Callable[[str], tuple[bytes, str]]

_AT_ONCE = 8  # questions answered side by side, each in a thread
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


class ServerSettings:
    """How the server is reached. `token` None: by everybody; `hosts` None: by any name, as on a unix socket.

    `open_metrics` lets /metrics be asked without a token; `base_path` begins and ends with a slash.
    """

    def __init__(
        self,
        token: str | None,
        hosts: Hosts | None,
        *,
        base_path: str = "/",
        open_metrics: bool = True,
        access_log: bool = False,
    ) -> None:
        self.token = token
        self.hosts = hosts
        self.base_path = base_path
        self.open_metrics = open_metrics
        self.access_log = access_log


def make_app(
    hub: Hub,
    settings: ServerSettings,
    *,
    past: Past | None = None,
    metrics: Metrics | None = None,
    streams: int = MOST,
) -> ASGIApp:
    """Return the ASGI app of one machine, with at most `streams` live streams."""
    threads = _Threads()
    scrape = metrics or _plain_metrics(hub)

    async def scraped(request: Request) -> Response:
        if hub.latest is None:
            return problem(503, "no sample has been taken yet.", {"retry-after": "1"})
        accept = ",".join(request.headers.getlist("accept"))
        return await threads.run(lambda: packed(request.scope, *scrape(accept)))

    asked = ApiRequest(hub, past)
    more = [Route("/metrics", scraped), *_trace_routes(hub, threads), _decision_route(asked, threads)]
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
        trouble = hub.trouble
        return problem(503, trouble) if trouble else PlainTextResponse("ok\n")

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


def _trace_routes(hub: Hub, threads: _Threads) -> list[Route]:
    desk = TraceDesk(hub)

    async def monitors(request: Request) -> Response:
        return await threads.run(lambda: packed(request.scope, compact(desk.monitors())))

    async def trace(request: Request) -> Response:
        body = await _body(request, LARGEST)
        return await threads.run(lambda: packed(request.scope, compact(desk.ask(body))))

    return [Route("/api/monitors", monitors), Route("/api/trace", trace, methods=["POST"])]


def _decision_route(asked: ApiRequest, threads: _Threads) -> Route:
    async def decision(request: Request) -> Response:
        body = await _body(request, LARGEST_DECISION)
        by = f"{request.client.host} (page)" if request.client else "the page"
        return await threads.run(lambda: packed(request.scope, decide(asked, body, by)))

    return Route("/api/alerts", decision, methods=["POST"])


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


def _plain_metrics(hub: Hub) -> Metrics:
    def scrape(accept: str) -> tuple[bytes, str]:
        assert hub.latest is not None
        return ("\n".join(exposition(hub.latest)) + "\n").encode(), _TEXT

    return scrape


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    await problem(404, "not found; see api/openapi.json.")(scope, receive, send)
