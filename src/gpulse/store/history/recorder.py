"""The recorder: a history written in a thread of its own, so that a slow disk holds nobody up."""

from __future__ import annotations

import threading
from collections import deque

from ...model.snapshot import Problem
from .writer import HistoryWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...model.event import Event
    from ...model.snapshot import Snapshot

_IDLE = 1.0  # seconds after which what waits is written even when no tick follows


class Recorder:
    """A writer with a thread. Closed by whoever made it; raises as HistoryWriter does when it is made, and never afterwards."""

    def __init__(self, path: str | None = None, size: int = 120) -> None:
        """Open the history; at most `size` snapshots wait for the disk."""
        self._writer = HistoryWriter(path)
        self.path = self._writer.path
        self._waiting: deque[tuple[Snapshot, tuple[Event, ...]]] = deque(maxlen=size)
        self._changed = threading.Condition()
        self._closing = False
        self._failure: Problem | None = None
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name="gpulse-history", daemon=True)
        self._thread.start()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the history now."""
        return (*self._writer.problems, self._failure) if self._failure else self._writer.problems

    def put(self, snapshot: Snapshot, events: Iterable[Event] = ()) -> None:
        """Hand over a snapshot and its events, pushing out the oldest when the disk is behind; never waits. Any thread may call it."""
        with self._changed:
            kept = tuple(events)
            if len(self._waiting) == self._waiting.maxlen:
                self.dropped += 1
                kept = self._waiting.popleft()[1] + kept  # a snapshot may go, what happened must not
            self._waiting.append((snapshot, kept))
            self._changed.notify()

    def close(self, patience: float = 5.0) -> None:
        """Write what waits and end the thread; gives a disk that hangs up after `patience` seconds. Safe to call twice."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(patience)

    def _run(self) -> None:
        while not self._over():
            try:
                if self._waiting:
                    self._writer.add(*self._waiting.popleft())
                else:
                    self._writer.flush()
            except Exception as error:  # noqa: BLE001  # one bad snapshot must not end all that follow
                self._failure = Problem("history", f"a snapshot could not be kept: {error!r}.")
        self._writer.close()

    def _over(self) -> bool:
        """Wait for the next snapshot, or a while; return whether there will be none any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing, _IDLE)
            return self._closing and not self._waiting
