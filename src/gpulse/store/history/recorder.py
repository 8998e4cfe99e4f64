"""The recorder: a writer with a thread of its own, which says once what is wrong with the disk and once that it is over."""

from __future__ import annotations

from ...model.snapshot import Problem
from ...queue_worker import QueueWorker
from .writer import HistoryWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    from ...model.event import Event
    from ...model.snapshot import Snapshot

    Tick: TypeAlias = tuple[Snapshot, tuple[Event, ...]]


class Recorder(QueueWorker):
    """A writer with a thread. Closed by its creator; raises as HistoryWriter does when it is made, and never afterwards.

    `told` is given a sentence, in that thread, when the history cannot be written any more, when samples begin to be lost, and when it
    is written again. What is lost at the end is `unwritten`.
    """

    pause = 1.0  # after which what waits is written even when no tick follows

    def __init__(self, path: str | None = None, size: int = 120, told: Callable[[str], None] | None = None) -> None:
        """Open the history; at most `size` snapshots wait for the disk."""
        super().__init__("history", size, self._note)
        self._writer = HistoryWriter(path)
        self.path = self._writer.path
        self._told = told or (lambda sentence: None)
        self._said: set[str] = set()  # what was told since the history could last be written
        self._failure: Problem | None = None
        self.start()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the history now."""
        return (*self._writer.problems, self._failure) if self._failure else self._writer.problems

    @property
    def writable(self) -> bool:
        """Whether the last write succeeded."""
        return self._writer.writable

    @property
    def failures(self) -> int:
        """How many writes have failed since the start."""
        return self._writer.failures

    @property
    def waiting(self) -> int:
        """How many snapshots are in memory until they can be written."""
        return self._writer.waiting + len(self._waiting)

    @property
    def lost(self) -> int:
        """How many snapshots are lost: memory was full, the disk was too slow, or the file was removed or damaged."""
        return self._writer.lost + self.dropped + self.failed

    @property
    def unwritten(self) -> int:
        """How many snapshots are not on the disk; final after `close`."""
        return self.waiting + self.lost

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
        self._report()

    def idle(self) -> None:
        self._writer.flush()
        self._report()

    def finish(self) -> None:
        self._writer.close()

    def complaint(self, error: Exception) -> str:
        return f"a snapshot could not be kept: {error!r}."

    def _note(self, sentence: str) -> None:
        self._failure = Problem("history", sentence)
        self._tell("failure", sentence)

    def _report(self) -> None:
        """Tell what has changed: numbers grow with every sample, so what was told is known by its kind."""
        if self.writable:
            if {"refused", "losing"} & self._said:
                lost = f"{self._writer.lost} samples were lost" if self._writer.lost else "no sample was lost"
                self._told(f"{self.path} is written again; {lost}.")
            self._said -= {"refused", "losing"}
        for problem in self._writer.problems:
            refused = problem is self._writer.problems[-1] and not self.writable
            kind = problem.message if not refused else "losing" if self._writer.lost else "refused"
            self._tell(kind, f"{problem.message} {problem.remedy}".strip())

    def _tell(self, kind: str, sentence: str) -> None:
        if kind not in self._said:
            self._said.add(kind)
            self._told(sentence)
