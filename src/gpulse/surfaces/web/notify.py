"""Telling systemd how it goes, where systemd has asked: a few words to a socket, no library."""

from __future__ import annotations

import os
import socket


def notify(words: str) -> None:
    """Say READY=1, STOPPING=1 or WATCHDOG=1; nothing happens where nobody listens."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as speaker:
        speaker.setblocking(False)
        try:
            speaker.sendto(words.encode(), f"\0{address[1:]}" if address.startswith("@") else address)
        except OSError:
            pass  # systemd restarts who is silent for too long; there is nobody else to tell


def watchdog_seconds() -> float | None:
    """Return how often systemd wants to hear from us; None when it does not."""
    text, pid = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
    if not text.isdecimal() or int(text) == 0 or (pid and pid != str(os.getpid())):
        return None
    return int(text) / 1e6
