"""Notify systemd of the server's state through its socket, without a library."""

from __future__ import annotations

import os
import socket


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
