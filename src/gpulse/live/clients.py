"""Clients of a stream in an event loop: each at its own place in what the hub keeps, all woken at once."""

from __future__ import annotations

import asyncio

from .wire import message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .wire import StreamLog

LAG = 64  # samples a client may be behind before its stream ends; it comes back with Last-Event-ID and is given them again
_KEEP_ALIVE = 15.0  # seconds after which proxies and browsers are told that somebody is still here


class StreamClient:
    """One who listens: `peer` is its address. `leave` ends its stream."""

    __slots__ = ("changed", "gone", "peer", "quiet")

    def __init__(self, peer: str = "") -> None:
        self.peer = peer
        self.changed = asyncio.Event()  # set when there is something to do for it
        self.gone = False
        self.quiet = False  # whether it is time for a sign of life

    def leave(self) -> None:
        """Note that it has gone; called in the event loop."""
        self.gone = True
        self.changed.set()


class StreamClients:
    """The streams of one event loop. Nobody has a queue: a client is a number, and the text is shared by all."""

    def __init__(self, hub: StreamLog) -> None:
        self._hub = hub
        self._clients: set[StreamClient] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._beating = False
        hub.listen(self._told)

    @property
    def count(self) -> int:
        """How many clients listen."""
        return len(self._clients)

    def count_of(self, peer: str) -> int:
        """Return how many clients of an address listen."""
        return sum(client.peer == peer for client in self._clients)

    async def serve(
        self, client: StreamClient, last_id: str, write: Callable[[bytes], Awaitable[object]], head: bytes = b""
    ) -> None:
        """Write the stream until the client leaves, falls behind, or the hub ends.

        `last_id` is that of the last sample it had, `head` comes first; `write` waits while the client does not read.
        """
        hub, self._loop = self._hub, asyncio.get_running_loop()
        self._clients.add(client)
        if not self._beating:
            self._beating = True
            self._loop.call_later(_KEEP_ALIVE, self._beat)
        try:
            if last_id:
                at, hole = hub.resume(last_id)
                text = b"" if hole is None else message("hole", {"from": round(hole, 3)})
            else:
                at, text = hub.greeting()
            if head + text:
                await write(head + text)
            allowed = max(LAG, hub.number - at)
            while not (client.gone or hub.over or hub.number - at > allowed):
                client.changed.clear()
                for entry in hub.after(at):
                    await write(entry.data)
                    at = entry.number
                    if client.gone:
                        return
                if client.quiet:
                    client.quiet = False
                    await write(b": still here\n\n")
                await client.changed.wait()
        finally:
            self._clients.discard(client)

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
