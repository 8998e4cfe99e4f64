"""The reader: series, GPUs, users, events and snapshots of a history, also while it is being written."""

from __future__ import annotations

import os
import sqlite3
import threading
from functools import partial

from ...errors import UsageError
from ..place import HistoryError, path_to_read
from .accounts import read_events
from .answers import (
    OWNERS,
    UNATTRIBUTED_PID,
    GpuIdentity,
    HistorySeries,
    ProcessUse,
    Usage,
    UsageTimes,
    instances_of,
    latest_facts,
    usage_times,
    use_of,
    uuids_of,
)
from .blocks import DAMAGED, damaged_rows, damaged_uses, events_of, merged, without_repeats
from .columns import SERVING
from .database import BROKEN, SPAN, is_damage, open_to_read
from .fetching import TimeGrid, fetch, recorded_between
from .slots import HOST, STRETCH, rebuilt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from typing import Any, TypeAlias, TypeVar

    from typing_extensions import Self

    from ...model.event import Event
    from ...model.snapshot import Snapshot
    from .blocks import Damage
    from .columns import Column
    from .recorded import RecordedTime

    Parts: TypeAlias = "dict[int, dict[int, Column]]"
    Answer = TypeVar("Answer")

_USES = """
SELECT process.id, pid, started, user, name, command, job, container, pod, project, job_name, uuid, first, last, seconds, held,
memory_most, memory_seconds, busy_seconds, energy FROM usage JOIN process ON process.id = usage.process
JOIN gpu ON gpu.id = process.gpu LEFT JOIN label ON label.id = process.id
WHERE last >= ? AND first < ? ORDER BY process.id, first
"""


class HistoryReader:
    """A history to look at. Any thread may ask, one at a time; closed by its creator. Times are seconds since 1970.

    Raises HistoryError when there is none or it cannot be read. A file that is replaced meanwhile is taken up at the next question.
    """

    def __init__(self, path: str | None = None) -> None:
        self.path = path_to_read(path)
        self._lock = threading.Lock()
        self._inode = -1
        self._connection: sqlite3.Connection | None = None
        self._damages: list[Damage] = []  # met so far
        self._salvaged = False
        self._ask(lambda connection: None)

    def close(self) -> None:
        """Close the file; safe to call twice."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def span(self) -> tuple[float, float] | None:
        """Return the first and the last moment there is; None when nothing has been recorded."""
        first, last = self._ask(lambda connection: connection.execute(SPAN).fetchone())
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
        width = (end - start) / points

        def found(
            connection: sqlite3.Connection,
        ) -> tuple[dict[tuple[str, str], tuple[int, int]], TimeGrid | None, Parts]:
            named = {
                (uuid, key): (gpu, slot)
                for uuid, key, gpu, slot in connection.execute(
                    "SELECT uuid, key, gpu.id, slot.id FROM slot JOIN gpu ON gpu.id = slot.gpu"
                )
                if key in keys and (_is_gpu(uuid) if uuids is None else uuid in uuids)
            }
            slots: dict[int, set[int]] = {}
            for gpu, slot in named.values():
                slots.setdefault(gpu, set()).add(slot)
            wanted = {gpu: frozenset(some) for gpu, some in slots.items()}
            fetched = fetch(connection, wanted, start, end, width, self._damages) if wanted else None
            if fetched is None:
                return named, None, {}
            gaps = recorded_between(connection, start, end).gaps(start, end)
            return named, TimeGrid(fetched, gaps, start, width, points), fetched.rows.parts

        named, grid, parts = self._ask(found)
        if grid is None:
            return []
        return [
            HistorySeries(uuid, key, grid.times, grid.weights(column), *grid.spread(column), grid.gaps)
            for (uuid, key), column in ((name, parts.get(gpu, {}).get(slot)) for name, (gpu, slot) in named.items())
        ]

    def recorded(self, start: float, end: float) -> RecordedTime:
        """Return what was recorded between two times, and its gaps, at any age and resolution."""
        return self._ask(lambda connection: recorded_between(connection, start, end))

    def host_series(self, keys: Sequence[str], start: float, end: float, points: int = 600) -> list[HistorySeries]:
        """Return metrics of the machine, as `series` does."""
        return self.series(keys, [HOST], start, end, points)

    def servers(self, start: float, end: float) -> dict[str, dict[str, Any]]:
        """Return the model servers that answered in a stretch of time: what does not change of each, by the name for `series`."""
        there, known = self._known(start, end, "running")
        return {name: facts for owner, name, facts in known if owner in there and name.startswith(SERVING)}

    def gpus(self, start: float, end: float) -> list[GpuIdentity]:
        """Return the GPUs and MIG instances with records in a stretch of time, as they were known at its end, by index."""
        there, known = self._known(start, end, "state")
        found = [GpuIdentity(uuid, facts) for gpu, uuid, facts in known if gpu in there]
        return sorted(found, key=lambda gpu: (gpu.parent != "", gpu.index is None, gpu.index or 0, gpu.uuid))

    def _known(self, start: float, end: float, key: str) -> tuple[set[int], list[tuple[int, str, dict[str, Any]]]]:
        return self._ask(
            lambda connection: (_recorded(connection, start, end, self._damages, key), latest_facts(connection, end))
        )

    def processes(self, start: float, end: float) -> list[ProcessUse]:
        """Return who used which GPU in a stretch of time; hours that only partly lie in it count in proportion."""
        return [use for use in self._uses(start, end) if use.pid != UNATTRIBUTED_PID]

    def hourly_uses(self, start: float, end: float) -> list[ProcessUse]:
        """Return who used which GPU, hour by hour; under UNATTRIBUTED_PID for how many `seconds` it was watched and `held` by nobody."""
        return [use for _, use in self._parts(start, end)]

    def _parts(self, start: float, end: float) -> list[tuple[int, ProcessUse]]:
        """Return the number of each process with its use of one hour, as far as it lies between two times."""

        def found(connection: sqlite3.Connection) -> list[tuple[int, ProcessUse]]:
            rows = [(row[0], use_of(row)) for row in connection.execute(_USES, (start, end))]
            recorded = _around(connection, start, end, [use for _, use in rows])
            return [(number, use.within(start, end, recorded)) for number, use in rows]

        return self._ask(found)

    def instances(self, end: float) -> dict[str, float]:
        """Return which part of its GPU each MIG instance is, by UUID."""
        return self._ask(lambda connection: instances_of(connection, end))

    def host_name(self) -> str:
        """Return the name of the machine that was recorded; empty if it is not known."""
        known = self._ask(lambda connection: latest_facts(connection, float("inf")))
        return next((str(facts.get("name") or "") for _, uuid, facts in known if uuid == HOST), "")

    def _uses(self, start: float, end: float) -> list[ProcessUse]:
        found: dict[int, ProcessUse] = {}
        for number, use in self._parts(start, end):
            if number in found:
                found[number].add(use)
            else:
                found[number] = use
        return list(found.values())

    def usage(self, start: float, end: float, by: str = "user", uuids: Collection[str] | None = None) -> list[Usage]:
        """Return what each user used, or each job, container, pod, name or gpu, of these GPUs; the most GPU hours first."""
        if by not in OWNERS or by == "process":
            raise UsageError(f"unknown usage owner {by!r};", f"choose one of {', '.join(sorted(OWNERS[:-1]))}.")
        instances = self.instances(end)
        totals: dict[str | None, Usage] = {}
        for use in self._uses(start, end):
            if uuids is not None and use.uuid not in uuids:
                continue
            nobody = use.pid == UNATTRIBUTED_PID
            if nobody and use.energy is None:
                continue
            owner = use.owner(by)
            total = totals.setdefault(owner, Usage(owner))
            total.processes += not nobody
            total.gpu_hours += 0.0 if nobody else use.held / 3600 * instances.get(use.uuid, 1.0)
            if use.uuid in instances:
                total.instance_hours = (total.instance_hours or 0.0) + use.held / 3600
            total.add(use)
        return sorted(totals.values(), key=lambda total: -total.gpu_hours)

    def usage_times(
        self, start: float, end: float, by: str, points: int, uuids: Collection[str] | None = None
    ) -> list[UsageTimes]:
        """Return the same over time: per owner the GPUs held and the power drawn, as means of `points` equal stretches.

        `by` may also be `process`. Usage is kept by process and hour; inside an hour it is spread evenly over the recorded time in
        which the process was there. Where nothing was recorded, or usage has not been counted yet, the means are None.
        """
        if by not in OWNERS:
            raise UsageError(f"unknown usage owner {by!r};", f"choose one of {', '.join(OWNERS)}.")

        def found(connection: sqlite3.Connection) -> list[UsageTimes]:
            rows = connection.execute(_USES, (start, end)).fetchall()
            recorded = _around(connection, start, end, [use_of(row) for row in rows])
            newest = connection.execute(SPAN).fetchone()[1] or 0.0
            return usage_times(rows, start, end, by, points, uuids, instances_of(connection, end), recorded, newest)

        return self._ask(found)

    def unknown(self, uuids: Collection[str]) -> list[str]:
        """Return those UUIDs of which nothing was ever recorded."""
        known = set(self._ask(uuids_of).values())
        return [uuid for uuid in uuids if uuid not in known]

    def events(self, start: float, end: float, kinds: Collection[str] | None = None) -> list[Event]:
        """Return what happened, in the order of time, and what began earlier and still lasted; all kinds with None.

        The kind `alert` is every alert, whatever it was about.
        """
        return self._ask(lambda connection: self._events(connection, start, end, kinds))

    def _events(
        self, connection: sqlite3.Connection, start: float, end: float, kinds: Collection[str] | None
    ) -> list[Event]:
        told = read_events(connection, start, end, kinds)
        if kinds is not None and DAMAGED not in kinds:
            return told
        lost = [*self._damages, *damaged_rows(connection), *damaged_uses(connection, start, end)]
        found = without_repeats(events_of(connection, lost, start, end), told)
        return sorted([*told, *found], key=lambda event: event.time) if found else told

    def snapshots(self, start: float, end: float, width: float = 0.0) -> Iterator[Snapshot]:
        """Yield snapshots rebuilt from the finest rows there are, or from those that stand for about `width` seconds; means where the
        ticks themselves are gone.

        Gaps have no reasons and processes only who they are and the mean memory of their hour.
        """
        span = self.span()
        if span is None:
            return
        start, end = max(start, span[0]), min(end, span[1] + 0.001)
        step = STRETCH if width < 60 else 36 * STRETCH
        while start < end:
            until = min(end, (start // step + 1) * step)
            damages: list[Damage] = []
            yield from self._ask(partial(rebuilt, start=start, end=until, damages=damages, width=width))
            self._damages += damages
            start = until

    def _ask(self, question: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """Answer inside one transaction: ticks that are sealed meanwhile are seen either before or after, never both.

        What is readable of a file that SQLite calls damaged is asked in its place.
        """
        with self._lock:
            try:
                try:
                    return self._within(self._current, question)
                except BROKEN as error:
                    if not is_damage(error) or self._salvaged:
                        raise
                    return self._within(self._readable_copy, question)
            except BROKEN as error:
                raise HistoryError(f"{self.path} cannot be read: {error}.") from None

    def _within(
        self, opened: Callable[[], sqlite3.Connection], question: Callable[[sqlite3.Connection], Answer]
    ) -> Answer:
        connection = opened()
        connection.execute("BEGIN")
        try:
            return question(connection)
        finally:
            self._damages = merged(self._damages)  # each question meets the same again
            if connection.in_transaction:
                connection.execute("ROLLBACK")

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
            self._inode, self._salvaged, self._damages = inode, False, []
        return self._connection

    def _readable_copy(self) -> sqlite3.Connection:
        """Replace the connection by one to a copy of what is readable, which is gone when it is closed."""
        from .verifying import open_copy

        copy, saved = open_copy(self.path)
        if self._connection is not None:
            self._connection.close()
        self._connection, self._salvaged = copy, True
        self._inode = os.stat(self.path).st_ino
        self._damages = saved.damages
        return copy


def _is_gpu(uuid: str) -> bool:
    return uuid != HOST and not uuid.startswith(SERVING)


def _around(connection: sqlite3.Connection, start: float, end: float, uses: Sequence[ProcessUse]) -> RecordedTime:
    """Return what was recorded between two times and while these processes were there."""
    first, last = min([start, *(use.first for use in uses)]), max([end, *(use.last for use in uses)])
    return recorded_between(connection, first, last)


def _recorded(connection: sqlite3.Connection, start: float, end: float, damages: list[Damage], key: str) -> set[int]:
    """Return the owners of values with a metric in a stretch of time; all GPUs that were there, also lost ones, have a `state`."""
    slots = dict(connection.execute("SELECT gpu, id FROM slot WHERE key = ?", (key,)))
    wanted = {gpu: frozenset({slot}) for gpu, slot in slots.items()}
    fetched = fetch(connection, wanted, start, end, (end - start) / 600, damages)
    parts = {} if fetched is None else fetched.rows.parts
    return {
        gpu for gpu, columns in parts.items() if any(value == value for one in columns.values() for value in one.mean)
    }
