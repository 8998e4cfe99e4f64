"""Streams: server-sent events to any number of clients, each at its own place in what the hub keeps."""

from __future__ import annotations

import asyncio

from ...live.wire import message
from .answers import problem
from .auth import is_loopback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from ...live.stream_log import StreamLog

MOST = 512  # clients at once, if nobody says how many connections there may be
LAG = 64  # samples a client may be behind before its stream ends; it comes back with Last-Event-ID and is given them again
_KEEP_ALIVE = 15.0  # seconds after which proxies and browsers are told that somebody is still here
_RETRY = b"retry: 2000\n\n"
_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no")]


class _Client:
    """One who listens: `changed` is set when there is something to do for it."""

    __slots__ = ("changed", "gone", "peer", "quiet")

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.changed = asyncio.Event()
        self.gone = False
        self.quiet = False  # whether it is time for a sign of life


class Streams:
    """The streams of one event loop. Nobody has a queue: a client is a number, and the text is shared by all.

    At most `most`; with `by_address` at most half of them to one address of another machine. Clients that have shown the token need
    no such limit, and those behind a proxy all come from its address.
    """

    def __init__(self, hub: StreamLog, most: int = MOST, *, by_address: bool = False) -> None:
        self._hub = hub
        self._most = most
        self._by_address = by_address
        self._clients: set[_Client] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._beating = False
        hub.listen(self._told)

    @property
    def count(self) -> int:
        """How many clients listen."""
        return len(self._clients)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one client until it leaves, falls behind, or the hub ends."""
        self._loop = asyncio.get_running_loop()
        peer = (scope.get("client") or ("",))[0]
        if reached := self._limit_reached(peer):
            await problem(503, reached, {"retry-after": "10"})(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        if scope["method"] != "HEAD":
            client = _Client(peer)
            leaving = self._loop.create_task(_leaving(receive, client))
            self._clients.add(client)
            if not self._beating:
                self._beating = True
                self._loop.call_later(_KEEP_ALIVE, self._beat)
            try:
                await self._serve(client, _header(scope, b"last-event-id"), send)
            finally:
                self._clients.discard(client)
                leaving.cancel()
        await send({"type": "http.response.body", "body": b""})

    def _limit_reached(self, peer: str) -> str:
        """Return which limit keeps a new client out; empty if none does."""
        if len(self._clients) >= self._most:
            return f"the limit of {self._most} streams is reached."
        own, half = sum(client.peer == peer for client in self._clients), max(1, self._most // 2)
        if self._by_address and peer and not is_loopback(peer) and own >= half:
            return f"the limit of {half} streams of one address is reached."
        return ""

    async def _serve(self, client: _Client, last_id: str, send: Send) -> None:
        hub = self._hub
        if last_id:
            at, hole = hub.resume(last_id)
            await send(_part(_RETRY if hole is None else _RETRY + message("hole", {"from": round(hole, 3)})))
        else:
            at, text = hub.greeting()
            await send(_part(_RETRY + text))
        allowed = max(LAG, hub.number - at)
        while not (client.gone or hub.over or hub.number - at > allowed):
            client.changed.clear()
            for entry in hub.after(at):
                await send(_part(entry.data))  # waits while the client does not read
                at = entry.number
                if client.gone:
                    return
            if client.quiet:
                client.quiet = False
                await send(_part(b": still here\n\n"))
            await client.changed.wait()

    def _beat(self) -> None:
        """Have all say that they are still here, now and again; one timer for all is cheaper than one for each wait of each."""
        for client in self._clients:
            client.quiet = True
        self._wake()
        self._beating = bool(self._clients)
        if self._loop is not None and self._beating:
            self._loop.call_later(_KEEP_ALIVE, self._beat)

    def _told(self) -> None:
        """Wake the loop; called in the hub's thread."""
        if self._clients and self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._wake)
            except RuntimeError:
                pass  # the loop has just ended

    def _wake(self) -> None:
        for client in self._clients:
            client.changed.set()


async def _leaving(receive: Receive, client: _Client) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    client.gone = True
    client.changed.set()


def _part(body: bytes) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": True}


def _header(scope: Scope, name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")
