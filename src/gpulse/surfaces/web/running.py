"""Run the app: uvicorn in its own thread until a signal stops it, with limits on connections, and systemd notified.

Clients must not use up the descriptors that sampling needs. At a limit the oldest idle connection is closed in favor of a new one, so
that a crowd of idle connections does not keep others out. Connections with a request in progress, such as streams, are never closed;
streams may use half of the places, so that the other half is left for short requests such as those of Prometheus.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import resource
import signal
import socket
import sys
import threading
import time

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ...errors import GpulseError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from starlette.types import ASGIApp

    class Guest(Protocol):
        """One connection."""

        @property
        def idle(self) -> bool:
            """Whether no request is in progress."""

        def drop(self) -> None:
            """Close it at once."""


_HEADERS = 10.0  # seconds before an idle connection is closed
_GRACE = 1  # seconds for responses to finish when the server stops
_SLACK = 2.0
_AFTERMATH = 2.0  # seconds between connections that were closed and the return of their memory
_TIDY_EVERY = 60  # ticks between two returns of memory: 20 ms of CPU time each


class Patient(H11Protocol):
    """HTTP with timeouts and limits: idle connections, very slow requests and connections beyond the limit are closed."""

    crowd: Crowd
    _timer: asyncio.TimerHandle | None = None
    _peer = ""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._peer = str((transport.get_extra_info("peername") or ("",))[0])
        if self.crowd.enter(self, self._peer):
            self._wait()
        else:
            transport.abort()

    @property
    def idle(self) -> bool:
        """Whether no request is in progress."""
        return self.cycle is None or bool(self.cycle.response_complete)

    def drop(self) -> None:
        """Close the connection at once."""
        self.transport.abort()

    def on_response_complete(self) -> None:
        self._wait()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.crowd.leave(self, self._peer)
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(_HEADERS, self._enough)

    def _enough(self) -> None:
        if self.idle:
            self.drop()


class Quiet:
    """A filter for uvicorn's log: streams that end with the server are not errors."""

    stopping = False

    def filter(self, record: Any) -> bool:
        """Return whether to log a line."""
        return not Quiet.stopping and "without completing response" not in record.getMessage()


_LOG = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"quiet": {"()": Quiet}},
    "formatters": {"plain": {"format": "gpulse: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain", "filters": ["quiet"]}},
    "loggers": {
        name: {"handlers": ["stderr"], "level": "ERROR", "propagate": False}
        for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio")
    },
}


class Running:
    """An app on a socket. `wait` blocks the main thread until SIGINT, SIGTERM or SIGHUP; `stop` ends within about two seconds."""

    def __init__(
        self, app: ASGIApp, listening: socket.socket, places: Places, cert: str | None = None, key: str | None = None
    ) -> None:
        crowd = Crowd(places.connections, thinned=_give_back_memory_after)
        self._socket = Door.take_over(listening, places.descriptors, crowd)
        self._said = False
        self._ticks = 0
        self._ready: Callable[[], None] = lambda: None
        self._watched = watchdog_seconds()
        config = uvicorn.Config(
            app,
            http=type("Patient", (Patient,), {"crowd": crowd}),
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=_LOG,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            ssl_certfile=cert,
            ssl_keyfile=key,
            backlog=places.backlog,
            timeout_keep_alive=int(_HEADERS),
            timeout_graceful_shutdown=_GRACE,
            callback_notify=self._tick,
            timeout_notify=1,
        )
        try:
            config.load()
        except OSError as error:  # includes errors of TLS
            raise GpulseError(f"the certificate or its key cannot be used: {error.strerror or error};", _PEM) from None
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="gpulse-web", daemon=True)
        # a pipe instead of an event: a signal handler can write to it at any point
        self._told, self._tell = os.pipe()

    def wait(self, ready: Callable[[], None]) -> None:
        """Serve until stopped; `ready` is called in the server's thread once it accepts requests."""
        Quiet.stopping = False
        self._ready = ready
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # ignored under nohup and in background jobs of scripts
                signal.signal(number, lambda *_: self._wake())
        self._thread.start()
        os.read(self._told, 1)

    def stop(self) -> None:
        """Stop the server; streams must have ended before."""
        notify("STOPPING=1")
        Quiet.stopping = True
        self._server.should_exit = True
        self._thread.join(_GRACE + _SLACK)

    async def _tick(self) -> None:
        """Called by the event loop about every second, for the watchdog and to keep memory small."""
        if not self._said:
            self._said = True
            notify("READY=1")
            self._ready()
        if self._watched is not None:
            notify("WATCHDOG=1")
        self._ticks += 1
        if self._ticks % _TIDY_EVERY == 0:
            _give_back_memory_after(0.0)

    def _run(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._wake()

    def _wake(self) -> None:
        os.write(self._tell, b".")


def _give_back_memory_after(seconds: float = _AFTERMATH) -> None:
    """Return unused memory once the connections that have just ended are gone; called in the event loop."""
    loop = asyncio.get_running_loop()
    loop.call_later(seconds, lambda: loop.run_in_executor(None, give_back_memory))


_PEM = "--cert and --key must be PEM files that this user can read."


def notify(words: str) -> None:
    """Send READY=1, STOPPING=1 or WATCHDOG=1; does nothing without systemd."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as speaker:
        speaker.setblocking(False)
        try:
            speaker.sendto(words.encode(), f"\0{address[1:]}" if address.startswith("@") else address)
        except OSError:
            pass  # systemd restarts a service that is silent for too long; nothing else to do


def watchdog_seconds() -> float | None:
    """Return the watchdog interval of systemd; None if there is none."""
    text, pid = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
    if not text.isdecimal() or int(text) == 0 or (pid and pid != str(os.getpid())):
        return None
    return int(text) / 1e6


_MOST = 1024  # simultaneous connections
_BACKLOG = 128  # connections that asyncio accepts at once, before any of them can be closed
_MANY = 64  # connections; this many leave memory behind that is worth giving back
_ENOUGH = 4096  # descriptors; the soft limit is raised to this if the hard limit allows
_QUIET = 60.0  # seconds between two log lines


class Places:
    """How many connections there may be, how many of them may be streams, and below which descriptor; the rest is for sampling."""

    backlog = _BACKLOG

    def __init__(self, descriptors: int) -> None:
        self.descriptors = descriptors
        self.connections = min(_MOST, max(2, descriptors - _BACKLOG))
        self.streams = self.connections // 2


def reserve_places() -> Places:
    """Raise the soft limit of open files, and return how many connections it allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    aim = _ENOUGH if hard == resource.RLIM_INFINITY else min(_ENOUGH, hard)
    if soft != resource.RLIM_INFINITY and soft < aim:
        resource.setrlimit(resource.RLIMIT_NOFILE, (aim, hard))
        soft = aim
    limit = _ENOUGH if soft == resource.RLIM_INFINITY else soft
    return Places(limit - max(32, limit // 4))


class Crowd:
    """The open connections, oldest first: at most `most`, and at most three quarters of them from one peer. Used by one thread.

    A proxy is one peer: what it may have is more than the streams of all its users. `thinned` is called when half of many
    connections have gone.
    """

    def __init__(
        self,
        most: int = _MOST,
        say: Callable[[str], object] = sys.stderr.write,
        thinned: Callable[[], object] = lambda: None,
    ) -> None:
        self.most = most
        self._per_peer = max(1, most * 3 // 4)
        self._say = say
        self._thinned = thinned
        self._peak = 0
        self._peers: dict[str, dict[Guest, None]] = {}
        self._count = 0
        self._closed = 0
        self._said_at = float("-inf")

    def enter(self, guest: Guest, peer: str) -> bool:
        """Add a connection and return True; at a limit an idle one makes room, and if there is none, return False."""
        own = self._peers.setdefault(peer, {})
        if len(own) >= self._per_peer or self._count >= self.most:
            largest = own if len(own) >= self._per_peer else max(self._peers.values(), key=len)
            if not self._evict(largest):
                return False
        self._peers.setdefault(peer, {})[guest] = None
        self._count += 1
        self._peak = max(self._peak, self._count)
        return True

    def leave(self, guest: Guest, peer: str) -> None:
        """Remove a connection; nothing happens if it was removed before."""
        own = self._peers.get(peer, {})
        if guest in own:
            del own[guest]
            self._count -= 1
        if not own:
            self._peers.pop(peer, None)
        if self._peak >= _MANY and self._count <= self._peak // 2:
            self._peak = self._count
            self._thinned()

    def make_room(self) -> None:
        """Close an idle connection of the peer with the most: descriptors are running out."""
        self._evict(max(self._peers.values(), key=len, default={}))

    def _evict(self, own: dict[Guest, None]) -> bool:
        self._note()
        idle = next((guest for guest in own if guest.idle), None)
        if idle is None:
            return False
        del own[idle]
        self._count -= 1
        idle.drop()
        return True

    def _note(self) -> None:
        """Write at most one line per minute."""
        self._closed += 1
        now = time.monotonic()
        if now - self._said_at >= _QUIET:
            self._say(
                f"gpulse: too many connections ({self._count} are open): closed {self._closed}, idle ones first.\n"
            )
            self._said_at, self._closed = now, 0


def give_back_memory() -> None:
    """Return unused memory to the system.

    A closed connection is a cycle of objects, which Python may keep for hours, and glibc keeps what is freed: 440 streams that have
    gone left 15 MB behind, with this 7 MB. Answers about the past and the sealing of the history leave holes, too: after 35 minutes
    with 50 clients that come and go, 112 MB instead of 92.
    """
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):
        pass  # another C library than glibc


class Door(socket.socket):
    """A listening socket that closes new connections whose descriptor is one of those reserved for sampling.

    The kernel always gives out the lowest free descriptor, so its number tells how many are in use.
    """

    limit: int
    crowd: Crowd

    @classmethod
    def take_over(cls, listening: socket.socket, limit: int, crowd: Crowd) -> Door:
        """Take over a socket."""
        door = cls(listening.family, listening.type, listening.proto, listening.detach())
        door.limit, door.crowd = limit, crowd
        return door

    def accept(self) -> tuple[socket.socket, Any]:
        connection, address = super().accept()
        if connection.fileno() >= self.limit:
            connection.close()
            self.crowd.make_room()
            raise BlockingIOError  # asyncio tries again after it has closed what was dropped
        return connection, address
