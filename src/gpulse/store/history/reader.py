"""The reader: series, GPUs, users, events and snapshots of a history, also while it is being written."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import contextmanager

from ...errors import UsageError
from ...model.derive import slice_share
from .answers import TEXTS, UNATTRIBUTED, UNATTRIBUTED_PID, GpuIdentity, HistorySeries, ProcessUse, Usage, latest_facts
from .database import open_to_read
from .event_rows import read_events
from .failure import HistoryError
from .fetching import TimeGrid, fetch
from .place import check_access, default_path, existing_path, system_path
from .slots import HOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from types import TracebackType

    from typing_extensions import Self

    from ...model.event import Event
    from ...model.snapshot import Snapshot

_OWNERS = {"user", "job", "container", "pod", "name", "gpu"}
_USES = """
SELECT process.id, pid, started, user, name, command, job, container, pod, uuid, first, last, seconds, held, memory_most,
memory_seconds, busy_seconds, energy FROM usage JOIN process ON process.id = usage.process JOIN gpu ON gpu.id = process.gpu
WHERE last >= ? AND first < ? ORDER BY process.id, first
"""


class HistoryReader:
    """A history to look at. Any thread may ask, one at a time; closed by whoever made it. Times are seconds since 1970.

    Raises HistoryError when there is none or it cannot be read. A file that is replaced meanwhile is taken up at the next question.
    """

    def __init__(self, path: str | None = None) -> None:
        self.path = path or existing_path() or default_path()
        check_access(self.path if path or os.path.exists(self.path) else system_path())
        self._lock = threading.Lock()
        self._inode = -1
        self._connection: sqlite3.Connection | None = None
        with self._reading():
            pass

    def close(self) -> None:
        """Close the file; safe to call twice."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def span(self) -> tuple[float, float] | None:
        """Return the first and the last moment there is; None when nothing has been recorded."""
        with self._reading() as connection:
            first, last = connection.execute(
                "SELECT min(start), max(stop) FROM (SELECT start, stop FROM block UNION ALL SELECT time, time FROM tick)"
            ).fetchone()
        return None if first is None else (first, last)

    def series(
        self, keys: Sequence[str], uuids: Sequence[str] | None, start: float, end: float, points: int = 600
    ) -> list[HistorySeries]:
        """Return metrics of GPUs, all with None, in at most about `points` stretches; one never recorded is left out.

        A metric that is words gives how many applied, `key:word` the share of time in which one did; `state` is the position
        in ok, lost, timeout, asleep.
        """
        if end <= start or points < 1:
            return []
        with self._reading() as connection:
            named = {
                (uuid, key): (gpu, slot)
                for uuid, key, gpu, slot in connection.execute(
                    "SELECT uuid, key, gpu.id, slot.id FROM slot JOIN gpu ON gpu.id = slot.gpu"
                )
                if key in keys and (uuid != HOST if uuids is None else uuid in uuids)
            }
            slots: dict[int, set[int]] = {}
            for gpu, slot in named.values():
                slots.setdefault(gpu, set()).add(slot)
            wanted = {gpu: frozenset(some) for gpu, some in slots.items()}
            width = (end - start) / points
            fetched = fetch(connection, wanted, start, end, width) if wanted else None
        if fetched is None:
            return []
        grid = TimeGrid(fetched, start, width, points)
        parts = fetched.rows.parts
        return [
            HistorySeries(uuid, key, grid.times, grid.seconds, grid.spread(parts.get(gpu, {}).get(slot)), grid.gaps)
            for (uuid, key), (gpu, slot) in named.items()
        ]

    def host_series(self, keys: Sequence[str], start: float, end: float, points: int = 600) -> list[HistorySeries]:
        """Return metrics of the machine, as `series` does."""
        return self.series(keys, [HOST], start, end, points)

    def gpus(self, start: float, end: float) -> list[GpuIdentity]:
        """Return the GPUs and MIG instances with records in a stretch of time, as they were known at its end, by index."""
        with self._reading() as connection:
            there = _recorded(connection, start, end)
            found = [GpuIdentity(uuid, facts) for gpu, uuid, facts in latest_facts(connection, end) if gpu in there]
        return sorted(found, key=lambda gpu: (gpu.parent != "", gpu.index is None, gpu.index or 0, gpu.uuid))

    def processes(self, start: float, end: float) -> list[ProcessUse]:
        """Return who used which GPU in a stretch of time; hours that only partly lie in it count in proportion."""
        return [use for use in self._uses(start, end) if use.pid != UNATTRIBUTED_PID]

    def _uses(self, start: float, end: float) -> list[ProcessUse]:
        found: dict[int, ProcessUse] = {}
        with self._reading() as connection:
            for (
                id,
                pid,
                started,
                *texts,
                uuid,
                first,
                last,
                seconds,
                held,
                most,
                memory,
                busy,
                energy,
            ) in connection.execute(_USES, (start, end)):
                text = {name: word for name, word in zip(TEXTS, texts, strict=True) if word is not None}
                use = found.setdefault(id, ProcessUse(uuid, pid, started, text))
                share = (min(last, end) - max(first, start)) / (last - first) if last > first else 1.0
                use.first, use.last = min(use.first, max(first, start)), max(use.last, min(last, end))
                use.seconds += seconds * share
                use.held += held * share
                use.memory_most = most if use.memory_most is None else max(use.memory_most, most or 0.0)
                use.memory_seconds = _sum(use.memory_seconds, memory, share)
                use.busy_seconds = _sum(use.busy_seconds, busy, share)
                use.energy = _sum(use.energy, energy, share)
        return list(found.values())

    def usage(self, start: float, end: float, by: str = "user", uuids: Collection[str] | None = None) -> list[Usage]:
        """Return what each user used, or each job, container, pod, name or gpu, of these GPUs; the most GPU hours first."""
        if by not in _OWNERS:
            raise UsageError(f"unknown usage owner {by!r};", f"choose one of {', '.join(sorted(_OWNERS))}.")
        with self._reading() as connection:
            instances = {uuid: facts for _, uuid, facts in latest_facts(connection, end) if "parent" in facts}
        totals: dict[str | None, Usage] = {}
        for use in self._uses(start, end):
            if uuids is not None and use.uuid not in uuids:
                continue
            nobody = use.pid == UNATTRIBUTED_PID
            owner = use.uuid if by == "gpu" else UNATTRIBUTED if nobody else use.text.get(by)
            total = totals.setdefault(owner, Usage(owner))
            total.processes += not nobody
            total.gpu_hours += use.held / 3600 * slice_share(instances.get(use.uuid))
            if use.uuid in instances:
                total.instance_hours = (total.instance_hours or 0.0) + use.held / 3600
            total.busy_hours = _sum(total.busy_hours, use.busy_seconds, 1 / 3600)
            total.memory_hours = _sum(total.memory_hours, use.memory_seconds, 1 / 3600 / 2**30)
            total.energy = _sum(total.energy, use.energy, 1.0)
            if use.memory_most is not None:
                total.memory_most = max(total.memory_most or 0.0, use.memory_most)
        return sorted(totals.values(), key=lambda total: -total.gpu_hours)

    def events(self, start: float, end: float, kinds: Collection[str] | None = None) -> list[Event]:
        """Return what happened, in the order of time, and what began earlier and still lasted; all kinds with None.

        The kind `alert` is every alert, whatever it was about.
        """
        with self._reading() as connection:
            labels = {
                uuid: f"{facts['index']:.0f}" for _, uuid, facts in latest_facts(connection, end) if "index" in facts
            }
            return read_events(connection, start, end, kinds, labels)

    def snapshots(self, start: float, end: float) -> Iterator[Snapshot]:
        """Yield snapshots rebuilt from the finest rows there are, means where the ticks themselves are gone.

        Gaps have no reasons and processes only who they are and the mean memory of their hour.
        """
        from .rebuilding import STRETCH, rebuilt

        span = self.span()
        if span is None:
            return
        start, end = max(start, span[0]), min(end, span[1] + 0.001)
        while start < end:
            until = min(end, (start // STRETCH + 1) * STRETCH)
            with self._reading() as connection:
                found = rebuilt(connection, start, until)
            yield from found
            start = until

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Give the connection inside one transaction: ticks that are sealed meanwhile are seen either before or after, never both."""
        with self._lock:
            try:
                connection = self._current()
                connection.execute("BEGIN")
                try:
                    yield connection
                finally:
                    connection.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise HistoryError(f"{self.path} cannot be read: {error}.") from None

    def _current(self) -> sqlite3.Connection:
        try:
            inode = os.stat(self.path).st_ino
        except OSError:
            inode = -1
        if self._connection is None or inode != self._inode:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            self._connection = open_to_read(self.path)
            self._inode = inode
        return self._connection


def _recorded(connection: sqlite3.Connection, start: float, end: float) -> set[int]:
    """Return the GPUs that were there in a stretch of time, lost ones among them."""
    slots = dict(connection.execute("SELECT gpu, id FROM slot WHERE key = 'state'"))
    wanted = {gpu: frozenset({slot}) for gpu, slot in slots.items()}
    fetched = fetch(connection, wanted, start, end, (end - start) / 600)
    parts = {} if fetched is None else fetched.rows.parts
    return {
        gpu
        for gpu, columns in parts.items()
        if any(value == value for column in columns.values() for value in column.mean)
    }


def _sum(total: float | None, more: float | None, scale: float) -> float | None:
    return total if more is None else (total or 0.0) + more * scale
