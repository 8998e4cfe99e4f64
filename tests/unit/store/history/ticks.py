"""Snapshots and clocks for tests of the history."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gpulse.analysis.events import EventDetector
from gpulse.model.catalog import Gpu, Host, Process
from gpulse.model.snapshot import Snapshot
from gpulse.store.history import HistoryReader, HistorySeries, HistoryWriter

if TYPE_CHECKING:
    from gpulse.model.metric import Value

START = 1_700_000_000.0 // 21_600 * 21_600


class TurnedClock:
    """A clock that moves only when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


def gpu(uuid: str = "GPU-a", processes: tuple[Process, ...] = (), **values: Value) -> Gpu:
    """Return a GPU."""
    named: dict[str, Value] = {"uuid": uuid, "index": 0, "name": "H100", "memory_total": 80 << 30}
    return Gpu(named | values, processes=processes)


def tick(time: float, *gpus: Gpu, **host: Value) -> Snapshot:
    """Return a snapshot at a number of seconds after START."""
    return Snapshot(START + time, gpus, Host(host))


def write(path: str, snapshots: Iterable[Snapshot]) -> None:
    """Write snapshots as if they came in real time."""
    clock = TurnedClock()
    detector = EventDetector()
    first: float | None = None
    with HistoryWriter(path, clock=clock) as writer:
        for snapshot in snapshots:
            first = snapshot.time if first is None else first
            clock.now = max(clock.now, snapshot.time - first)
            writer.add(snapshot, detector.observe(snapshot))
        assert writer.problems == ()


def series(path: str, key: str, start: float, end: float, points: int = 10_000, uuid: str = "GPU-a") -> HistorySeries:
    """Return one series of a history between two numbers of seconds after START."""
    with HistoryReader(path) as reader:
        (found,) = reader.series([key], [uuid], START + start, START + end, points)
    return found


def known(values: list[float]) -> list[float]:
    """Return the values that are there."""
    return [value for value in values if value == value]
