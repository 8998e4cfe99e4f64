"""Limits on connections, so that clients cannot use up the descriptors that sampling needs.

At a limit the oldest idle connection is closed in favor of a new one, so that a crowd of idle connections does not keep
others out. Connections with a request in progress, such as streams, are never closed; streams may use half of the places,
so that the other half is left for short requests such as those of Prometheus.
"""

from __future__ import annotations

import ctypes
import gc
import resource
import socket
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    class Guest(Protocol):
        """One connection."""

        @property
        def idle(self) -> bool:
            """Whether no request is in progress."""

        def drop(self) -> None:
            """Close it at once."""


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
    gone left 15 MB behind, with this 7 MB.
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
    def of(cls, listening: socket.socket, limit: int, crowd: Crowd) -> Door:
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
