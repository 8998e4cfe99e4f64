"""Ports for servers that cannot choose one themselves."""

from __future__ import annotations

import itertools
import os
import socket
from pathlib import Path

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FIRST = 10_000
_EACH = 50  # ports that one test process hands out before it meets those of the next
_NUMBERS = itertools.count()


def free_port() -> int:
    """Return a port where nobody listens, each time another one.

    It is below those that the kernel gives to connections, and to servers that take any: nobody gets it by chance before the server has it.
    """
    size = max(int(_RANGE.read_text().split()[0]), 2 * _FIRST) - _FIRST
    for number in _NUMBERS:
        port = _FIRST + (os.getpid() * _EACH + number) % size
        if is_free(port):
            return port
    raise AssertionError("endless")


def is_free(port: int) -> bool:
    """Return whether a server could listen on a port; connections that have just ended do not count."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
