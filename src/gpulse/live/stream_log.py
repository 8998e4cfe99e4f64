"""The last minutes of a stream as numbered text, so that a client that reconnects receives what it missed."""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

REPLAYED = 120  # samples that a client which comes back is given again
KEPT = REPLAYED + 64  # one that has begun to read these may be slow for so long


class StreamEntry:
    """One sample: its number, from 1 on, its time in seconds since 1970, and the text of the stream for it."""

    __slots__ = ("data", "number", "time")

    def __init__(self, number: int, time: float, data: bytes) -> None:
        self.number = number
        self.time = time
        self.data = data


class StreamLog:
    """What streams are served from. One thread appends; any thread may read, and never waits for a driver or a disk."""

    def __init__(self, interval: float, kept: int = KEPT) -> None:
        self.run = secrets.token_hex(4)
        self.started = time.time()
        self.interval = interval
        self.number = 0
        self.over = False
        self._seen = float("-inf")  # when the latest came, on the clock that cannot be set
        self._listeners: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)
        self._entries: deque[StreamEntry] = deque(maxlen=kept)
        self._replayed = min(REPLAYED, kept)

    @property
    def age(self) -> float:
        """Seconds since the latest sample came; infinite when there is none."""
        return time.monotonic() - self._seen

    @property
    def trouble(self) -> str:
        """Why it is not ready to be asked, in a sentence; empty if it is."""
        if not self.number:
            return "no sample has been taken yet."
        return "" if self.age < 3 * self.interval + 5 else f"the last sample is {self.age:.0f} s old."

    @property
    def ready(self) -> bool:
        """Whether it can be asked: the latest sample is fresh."""
        return not self.trouble

    def listen(self, listener: Callable[[], None]) -> None:
        """Have a function called, in the appending thread, whenever there is something new."""
        self._listeners.append(listener)

    def after(self, number: int) -> list[StreamEntry]:
        """Return the entries that follow a number, the oldest first; those that are gone are missing."""
        with self._lock:
            count = min(self.number - number, len(self._entries))
            return [self._entries[at] for at in range(-count, 0)] if count > 0 else []

    def greeting(self) -> tuple[int, bytes]:
        """Return what a new client is given at once, and the number of its last sample; 0 when there is none yet."""
        with self._lock:
            return self.number, self._before_latest() + self._entries[-1].data if self._entries else b""

    def resume(self, last_id: str) -> tuple[int, float | None]:
        """Return the number that a client with this Last-Event-ID goes on from, and where a hole in its samples begins.

        None where all it missed is still here. The beginning of a hole is an estimate: a client knows better what it has.
        """
        run, _, digits = last_id.rpartition("-")
        number = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 16 else -1
        with self._lock:
            newest, latest = self.number, self._entries[-1] if self._entries else None
        if run == self.run and 0 <= newest - number <= self._replayed:
            return number, None
        since = self.started
        if run == self.run and 0 <= number < newest and latest is not None:
            since = max(since, latest.time - (newest - number) * self.interval)
        return max(0, newest - 1), since

    def _before_latest(self) -> bytes:
        """Return what a new client needs beside the latest entry."""
        return b""

    def _next_id(self) -> str:
        return f"{self.run}-{self.number + 1}"

    def _append(self, time_: float, data: bytes, also: Callable[[], None] = lambda: None) -> None:
        """Add an entry and wake those who listen; `also` is called under the same lock."""
        with self._lock:
            also()
            self.number, self._seen = self.number + 1, time.monotonic()
            self._entries.append(StreamEntry(self.number, time_, data))
            self._arrived.notify_all()
        self._tell()

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()
