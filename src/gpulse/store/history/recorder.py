"""The recorder: writes a history in its own thread, so that a slow disk delays nothing else."""

from __future__ import annotations

from ...model.snapshot import Problem
from ...queue_worker import QueueWorker
from .writer import HistoryWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    from ...model.event import Event
    from ...model.snapshot import Snapshot

    Tick: TypeAlias = tuple[Snapshot, tuple[Event, ...]]


class Recorder(QueueWorker):
    """A writer with a thread. Closed by its creator; raises as HistoryWriter does when it is made, and never afterwards."""

    pause = 1.0  # after which what waits is written even when no tick follows

    def __init__(self, path: str | None = None, size: int = 120) -> None:
        """Open the history; at most `size` snapshots wait for the disk."""
        super().__init__("history", size, self._note)
        self._writer = HistoryWriter(path)
        self.path = self._writer.path
        self._failure: Problem | None = None
        self.start()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the history now."""
        return (*self._writer.problems, self._failure) if self._failure else self._writer.problems

    @property
    def unwritten(self) -> int:
        """How many snapshots are not on the disk; final after `close`."""
        return self._writer.unwritten

    def put(self, snapshot: Snapshot, events: Iterable[Event] = ()) -> None:
        """Hand over a snapshot and its events, dropping the oldest when the disk is behind; never waits. Any thread may call it."""
        super().put((snapshot, tuple(events)))

    def close(self, patience: float = 5.0) -> None:
        """Write what waits and end the thread; gives up on a disk that hangs after `patience` seconds. Safe to call twice."""
        super().close()
        self.join(patience)

    def displace(self, oldest: Tick, newest: Tick) -> Tick:
        return newest[0], oldest[1] + newest[1]  # a snapshot may go, what happened must not

    def handle(self, tick: Tick) -> None:
        self._writer.add(*tick)

    def idle(self) -> None:
        self._writer.flush()

    def finish(self) -> None:
        self._writer.close()

    def complaint(self, error: Exception) -> str:
        return f"a snapshot could not be kept: {error!r}."

    def _note(self, sentence: str) -> None:
        self._failure = Problem("history", sentence)
