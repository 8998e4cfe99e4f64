"""A queue of bodies to send, kept as files in a folder: in order, within a limit, and still there after a crash."""

from __future__ import annotations

import os
import threading
import time
from collections import deque

from ..value import Value
from .lines import remove, replaced
from .place import WriterLock

_ENDING = ".body"


class Body(Value):
    """A waiting body: the name of its file, how many samples it holds, and its bytes on disk."""

    name: str
    samples: int
    size: int


class Spool:
    """The queue, held by one process: one thread may `put` while another sends what `first` returns and calls `done`.

    A body is written under another name and renamed, so that a killed process leaves it whole or not at all. Opening raises
    HistoryBusy if another process holds the folder, HistoryError or OSError if it cannot be used. Only the user can read it.
    """

    def __init__(self, folder: str, limit: int) -> None:
        self._folder = folder
        self._limit = limit
        self._guard = threading.Lock()
        self._sending = ""  # the body that is being sent, which is not dropped to make room
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._lock = WriterLock(os.path.join(folder, "queue"))
        self._waiting: deque[Body] = deque(self._found())
        self._size = sum(body.size for body in self._waiting)
        self._next = int(self._waiting[-1].name.partition("-")[0]) + 1 if self._waiting else 1

    @property
    def waiting(self) -> int:
        """How many bodies wait."""
        return len(self._waiting)

    @property
    def size(self) -> int:
        """Their bytes."""
        return self._size

    def put(self, body: bytes, samples: int) -> int:
        """Append a body; return how many samples were dropped to stay within the limit. Raises OSError if it cannot be written."""
        dropped = self._make_room(len(body))
        if len(body) > self._limit:
            return dropped + samples
        with self._guard:
            made = Body(f"{self._next:012d}-{samples}{_ENDING}", samples, len(body))
            self._next += 1
        with replaced(os.path.join(self._folder, made.name)) as file:
            file.write(body)
        with self._guard:
            self._waiting.append(made)
            self._size += made.size
        return dropped

    def first(self) -> Body | None:
        """Return the oldest body, which is kept until `done`; None if none waits."""
        with self._guard:
            self._sending = self._waiting[0].name if self._waiting else ""
            return self._waiting[0] if self._waiting else None

    def read(self, body: Body) -> bytes:
        """Return the bytes of a body; raises OSError."""
        with open(os.path.join(self._folder, body.name), "rb") as file:
            return file.read()

    def done(self, body: Body) -> None:
        """Remove the body that `first` returned."""
        remove(os.path.join(self._folder, body.name))
        with self._guard:
            self._sending = ""
            self._waiting.remove(body)
            self._size -= body.size

    def close(self) -> None:
        """Let other processes use the folder; what waits stays there."""
        self._lock.release()

    def _make_room(self, needed: int) -> int:
        dropped = 0
        while True:
            with self._guard:
                old = next((body for body in self._waiting if body.name != self._sending), None)
                if old is None or self._size + needed <= self._limit:
                    return dropped
                self._waiting.remove(old)
                self._size -= old.size
            remove(os.path.join(self._folder, old.name))
            dropped += old.samples

    def _found(self) -> list[Body]:
        """Return what an earlier process left, oldest first; halves and empty files are removed."""
        found = []
        for entry in os.scandir(self._folder):
            number, _, samples = entry.name.removesuffix(_ENDING).partition("-")
            if entry.name.endswith(_ENDING) and number.isdecimal() and samples.isdecimal() and entry.stat().st_size:
                found.append(Body(entry.name, int(samples), entry.stat().st_size))
            elif entry.name.endswith((_ENDING, ".part")):
                remove(entry.path)
        return sorted(found, key=lambda body: body.name)


def waiting(folder: str) -> tuple[int, int, float] | None:
    """Return how many bodies wait in a folder, their bytes and the age of the oldest in seconds; None if it cannot be read."""
    try:
        paths = [entry.path for entry in os.scandir(folder) if entry.name.endswith(_ENDING)]
    except OSError:
        return None
    found = []
    for path in paths:
        try:
            found.append(os.stat(path))
        except OSError:
            pass  # it has just been sent
    oldest = min((status.st_mtime for status in found), default=time.time())
    return len(found), sum(status.st_size for status in found), max(0.0, time.time() - oldest)
