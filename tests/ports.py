"""Ports for servers that cannot choose one themselves, or that come back where they were.

`python -m tests.ports` prints one and holds it until its standard input ends.
"""

from __future__ import annotations

import socket
import sys

_HELD: list[socket.socket] = []


def free_port() -> int:
    """Return a port where nobody listens, each time another one; it stays ours until this process ends.

    A socket that is bound and does not listen holds it: the kernel gives it to nobody who takes any port, and a server that sets
    SO_REUSEADDR, as all do, can listen there.
    """
    held = _socket()
    held.bind(("127.0.0.1", 0))
    _HELD.append(held)
    return int(held.getsockname()[1])


def is_free(port: int) -> bool:
    """Return whether a server could listen on a port of ours; connections that have just ended do not count."""
    with _socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _socket() -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return made


if __name__ == "__main__":
    print(free_port(), flush=True)
    sys.stdin.read()
