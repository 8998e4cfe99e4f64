"""Limits on connections, so that clients cannot use up the descriptors that sampling needs.

At a limit the oldest idle connection is closed in favor of a new one, so that a crowd of idle connections does not keep
others out. Connections with a request in progress, such as streams, are never closed.
"""

from __future__ import annotations

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


_MOST = 900  # simultaneous connections
_ENOUGH = 4096  # descriptors; the soft limit is raised to this if the hard limit allows
_QUIET = 60.0  # seconds between two log lines


def reserve_descriptors() -> int:
    """Raise the soft limit of open files, and return up to which descriptor connections may use them; the rest is for sampling."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    aim = _ENOUGH if hard == resource.RLIM_INFINITY else min(_ENOUGH, hard)
    if soft != resource.RLIM_INFINITY and soft < aim:
        resource.setrlimit(resource.RLIMIT_NOFILE, (aim, hard))
        soft = aim
    limit = _ENOUGH if soft == resource.RLIM_INFINITY else soft
    return limit - max(32, limit // 4)


class Crowd:
    """The open connections, oldest first: at most `most`, and at most half of them from one peer. Used by one thread."""

    def __init__(self, most: int = _MOST, say: Callable[[str], object] = sys.stderr.write) -> None:
        self.most = most
        self._per_peer = max(1, most // 2)
        self._say = say
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
        return True

    def leave(self, guest: Guest, peer: str) -> None:
        """Remove a connection; nothing happens if it was removed before."""
        own = self._peers.get(peer, {})
        if guest in own:
            del own[guest]
            self._count -= 1
        if not own:
            self._peers.pop(peer, None)

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
