"""A live machine (sampler, hub and history, opened by the first request and paced by its clients), and clients of a stream in an
event loop: each at its own place in what the hub keeps, all woken at once."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack

from ..errors import GpulseError
from ..sampling.sampler import Sampler
from ..sources.registry import make_source
from ..store.history import HistoryBusy
from ..value import Value
from . import wire
from .api import ApiRequest
from .hub import Hub, wanted
from .parameters import Refusal
from .past import open_history

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..delivery.alerts import Alerts
    from ..store.history import HistoryError, Recorder
    from .wire import StreamLog

SHORTEST = 0.25  # seconds; the shortest interval that clients can ask for
_FIRST = 3.0  # seconds to wait for the first sample


class MachineSettings(Value):
    """Settings of a live machine.

    `source` as on the command line. `interval` in seconds applies unless a client asks for another one; `idle_interval` applies to
    the history while no client is connected, None pauses. `history` is a file, "" the default one, None disables it. Only command
    lines of `user` are shown; None shows all. `alerts` makes the alerts for a history, which may be None; it may return None.
    """

    source: str
    interval: float = 1.0
    idle_interval: float | None = 10.0
    history: str | None = ""
    user: str | None = None
    failed: Callable[[str], None] = lambda text: None
    alerts: Callable[[str | None], Alerts | None] = lambda history: None


class LiveMachine:
    """A machine that is sampled while clients are connected, and at a slower pace for its history while none is.

    `open` and `ask` block: call them in worker threads. `enter` and `leave` return immediately.
    """

    def __init__(self, settings: MachineSettings) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self._asked: ApiRequest | None = None
        self._clients: dict[object, float] = {}
        self._sampler: Sampler | None = None
        self._recorder: Recorder | None = None
        self._ends = ExitStack()
        self._closed = False

    @property
    def hub(self) -> Hub | None:
        """The hub; None before the first request."""
        return None if self._asked is None else self._asked.hub

    @property
    def real(self) -> bool:
        """Whether its processes are those of this computer; False before the first request."""
        return self._sampler is not None and self._sampler.source.machine.real

    def open(self) -> ApiRequest:
        """Open the machine unless it is open; raise Refusal if no GPU can be read."""
        with self._lock:
            if self._closed:
                raise Refusal(503, "the server is stopping.")
            if self._asked is None:
                try:
                    self._asked = self._opened()
                except GpulseError as error:
                    self._ends.close()
                    raise Refusal(503, str(error), {"retry-after": "10"}) from None
            return self._asked

    def ask(self) -> ApiRequest:
        """Like `open`, and take a sample first if the latest one is old."""
        asked = self.open()
        if not asked.hub.ready or asked.hub.latest is None:
            asked.hub.refresh(_FIRST)
        return asked

    def enter(self, client: object, interval: float | None = None) -> None:
        """Sample for a client; the shortest interval of all clients applies."""
        self._clients[client] = max(SHORTEST, interval or self.settings.interval)
        self._pace()

    def leave(self, client: object) -> None:
        """Stop sampling for a client."""
        if self._clients.pop(client, None) is not None:
            self._pace()

    def close(self) -> None:
        """Stop sampling and close everything; returns soon even if the driver hangs. Safe to call twice."""
        with self._lock:
            self._closed = True
            self._asked = None
        self._ends.close()

    def _pace(self) -> None:
        if (hub := self.hub) is not None:
            if self._clients:
                hub.interval = min(self._clients.values())
            hub.pace(self._interval())

    def _interval(self) -> float | None:
        if self._clients:
            return min(self._clients.values())
        return self.settings.idle_interval if self._recorder is not None else None

    def _opened(self) -> ApiRequest:
        settings = self.settings
        sampler = Sampler(make_source(settings.source), wanted()).open()
        self._sampler = sampler
        self._ends.callback(sampler.close)
        past = None
        if settings.history is not None:
            history, real = settings.history or None, sampler.source.machine.real
            self._recorder, past = open_history(history, real, self._ends, self._unwritten, settings.failed)
        user = settings.user
        hub = Hub(
            sampler,
            settings.interval,
            commands=user is None,
            conceal=None if user is None else lambda snapshot: wire.without_commands(snapshot, user),
            recorder=self._recorder,
            alerts=settings.alerts(None if past is None else past.path),
            failed=lambda error: settings.failed(f"a sample failed: {error!r}"),
        )
        if hub.alerts is not None:
            self._ends.callback(hub.alerts.close, 0.0)
        self._ends.callback(hub.close)
        hub.idle_interval = settings.idle_interval if past else None  # of whoever writes the history
        sampler.settle()
        hub.start()
        hub.pace(self._interval())
        return ApiRequest(hub, past)

    def _unwritten(self, error: HistoryError) -> None:
        if not isinstance(error, HistoryBusy):  # one that another program writes is only read here
            self.settings.failed(f"no history is kept: {error}")


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
                text = b"" if hole is None else wire.message("hole", {"from": round(hole, 3)})
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
