"""Request handlers: the API and the stream of gpulse.live, behind Jupyter's authentication; blocking calls run in worker threads."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus

import tornado.web as web
from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler, JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from jupyter_server.utils import ensure_async
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from ...live.api import LARGEST_DECISION, QUESTIONS, decide
from ...live.parameters import Refusal, read
from ...live.wire import compact, message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any, TypeVar

    from ...live.hub import Hub
    from ...live.machine import LiveMachine

    T = TypeVar("T")

RESOURCE = "gpulse"  # the name that Jupyter authorizers see
_KEEP_ALIVE = 15.0  # seconds of silence after which a comment is sent, so that proxies keep the connection
_LAG = 64  # samples a client may lag behind before its stream ends; it reconnects and gets them again
_PATHS = {question.path.removeprefix("/api/"): question for question in QUESTIONS}


class QuestionHandler(APIHandler):  # type: ignore[misc]
    """The requests of `gpulse serve`'s API, with the same JSON."""

    auth_resource = RESOURCE

    @web.authenticated  # type: ignore[untyped-decorator]
    @authorized  # type: ignore[untyped-decorator]
    async def get(self, demo: str | None, name: str) -> None:
        """Answer one request in a worker thread."""
        question = _PATHS.get(name)
        try:
            if question is None:
                raise Refusal(404, f"there is nothing called {name[:40]!r}.")
            given = read(question.parameters, texts_of(self))
            machine = machine_of(self, demo)
            answer = question.answer
            self.finish_json(await workers_of(self).work(lambda: answer(machine.ask(), given)))
        except Refusal as refusal:
            self.refuse(refusal)

    @web.authenticated  # type: ignore[untyped-decorator]
    @authorized  # type: ignore[untyped-decorator]
    async def post(self, demo: str | None, name: str) -> None:
        """Take a decision about alerts."""
        body, by, machine = self.request.body, str(getattr(self.current_user, "username", "")), machine_of(self, demo)
        try:
            if name != "alerts" or len(body) > LARGEST_DECISION:
                raise Refusal(404 if name != "alerts" else 413, "this path takes no such POST request.")
            self.finish_json(await workers_of(self).work(lambda: decide(machine.ask(), body, f"{by} (lab)")))
        except Refusal as refusal:
            self.refuse(refusal)

    def finish_json(self, data: bytes) -> None:
        """Send encoded JSON."""
        self.set_header("Content-Type", "application/json")
        self.set_header("Cache-Control", "no-store")
        self.finish(data, set_content_type="application/json")

    def refuse(self, refusal: Refusal) -> None:
        """Send an error as problem details (RFC 9457), like `gpulse serve`."""
        title = HTTPStatus(refusal.status).phrase
        plain = {"type": "about:blank", "title": title, "status": refusal.status, "detail": refusal.detail}
        self.set_status(refusal.status)
        for header, value in (refusal.headers or {}).items():
            self.set_header(header, value)
        self.finish(compact(plain), set_content_type="application/problem+json")


class StreamHandler(WebSocketMixin, WebSocketHandler, JupyterHandler):  # type: ignore[misc]
    """The stream of `gpulse serve` over a WebSocket: the same text, one message per sample."""

    auth_resource = RESOURCE

    def get_compression_options(self) -> dict[str, Any]:
        """Enable compression: a sample of eight GPUs shrinks from 12 KB to about 2 KB."""
        return {}

    async def get(self, *arguments: Any, **named: Any) -> Any:
        """Refuse unauthenticated and unauthorized users with 403; a WebSocket cannot be redirected to the login page."""
        if self.current_user is None:
            raise web.HTTPError(403)
        if not await ensure_async(self.authorizer.is_authorized(self, self.current_user, "read", RESOURCE)):
            raise web.HTTPError(403)
        return await super().get(*arguments, **named)

    def open(self, demo: str | None = None) -> None:
        """Start sending."""
        super().open()
        self._machine = machine_of(self, demo)
        self._hub: Hub | None = None
        self._changed = asyncio.Event()
        self._gone = False
        self._serving = asyncio.ensure_future(self._serve())

    def on_message(self, message: str | bytes) -> None:
        """Ignore what clients send."""

    def on_close(self) -> None:
        """Stop sampling for this client."""
        self._gone = True
        self._changed.set()
        self._machine.leave(self)

    async def _serve(self) -> None:
        try:
            hub = self._hub = (await workers_of(self).work(self._machine.open)).hub
            if self._gone:
                return
            self._machine.enter(self, _interval(self.get_argument("interval", "")))
            self._changed = workers_of(self).join(hub)
            try:
                await self._send(hub)
            finally:
                workers_of(self).part(hub, self._changed)
        except (Refusal, WebSocketClosedError):
            pass  # the page learns the reason from its other requests
        finally:
            self._machine.leave(self)
            self.close()

    async def _send(self, hub: Hub) -> None:
        at, text = self._beginning(hub)
        await self._write(text)
        allowed = max(_LAG, hub.number - at)
        while not (self._gone or hub.over or hub.number - at > allowed):
            self._changed.clear()
            for entry in hub.after(at):
                await self._write(entry.data)  # waits while the client does not read
                at = entry.number
            try:
                await asyncio.wait_for(self._changed.wait(), _KEEP_ALIVE)
            except asyncio.TimeoutError:
                await self._write(b": still here\n\n")

    def _beginning(self, hub: Hub) -> tuple[int, bytes]:
        """Return the number of the sample to continue after, and the first message."""
        last = self.get_argument("last", "")
        if not last:
            return hub.greeting()
        at, hole = hub.resume(last)
        return at, b"" if hole is None else message("hole", {"from": round(hole, 3)})

    async def _write(self, data: bytes) -> None:
        if data and not self._gone:
            await self.write_message(data.decode())


def machine_of(handler: JupyterHandler, demo: str | None) -> LiveMachine:
    machine: LiveMachine = handler.settings["gpulse_machines"][demo or ""]
    return machine


def workers_of(handler: JupyterHandler) -> Workers:
    workers: Workers = handler.settings["gpulse_workers"]
    return workers


def texts_of(handler: JupyterHandler) -> dict[str, str]:
    """Return the query parameters without those of Jupyter: the token and the number that defeats caches."""
    given = handler.request.query_arguments
    return {
        name: values[-1].decode("utf-8", "replace")
        for name, values in given.items()
        if name != "token" and not name.isdecimal()
    }


def _interval(text: str) -> float | None:
    """Return the requested interval in seconds; None if it is not valid."""
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 < seconds <= 3600 else None


_AT_ONCE = 4  # requests answered concurrently, one thread each


class Workers:
    """Runs blocking calls in threads and wakes the open streams; a hub wakes the event loop once for all of them."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_AT_ONCE, "gpulse-jupyter")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waking: dict[int, set[asyncio.Event]] = {}

    def begin(self, job: Callable[[], object]) -> None:
        """Run a blocking call in a thread without waiting for it."""
        self._threads.submit(job)

    def work(self, job: Callable[[], T]) -> Awaitable[T]:
        """Run a blocking call in a thread; await the result."""
        return asyncio.wrap_future(self._threads.submit(job))

    def join(self, hub: Hub) -> asyncio.Event:
        """Return an event that is set whenever the hub has something new."""
        self._loop = asyncio.get_running_loop()
        if id(hub) not in self._waking:
            self._waking[id(hub)] = set()
            hub.listen(lambda: self._told(hub))
        event = asyncio.Event()
        self._waking[id(hub)].add(event)
        return event

    def part(self, hub: Hub, event: asyncio.Event) -> None:
        """Stop setting the event."""
        self._waking[id(hub)].discard(event)

    def _told(self, hub: Hub) -> None:
        """Wake the loop; called in the hub's thread."""
        if self._loop is not None and self._waking[id(hub)]:
            try:
                self._loop.call_soon_threadsafe(self._wake, hub)
            except RuntimeError:
                pass  # the loop has just ended

    def _wake(self, hub: Hub) -> None:
        for event in self._waking[id(hub)]:
            event.set()
