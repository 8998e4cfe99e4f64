"""Events as rows of the history, in both directions."""

from __future__ import annotations

import json

from ...model.condition import KINDS, LASTING
from ...model.event import Event
from .checks import insertion, sum_of
from .damage import KIND
from .database import version_of
from .slots import sound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from sqlite3 import Connection
    from typing import Any

    from .slots import Slots, Statement

_MOST = 10_000  # events that wait in memory for a disk with room
_INSERT = insertion("event")
_SPANS = (*LASTING, KIND)  # listed also when they began before the time asked for
_OPEN = ", ".join(repr(kind) for kind in LASTING)
_OVERLAPS = f"time < ? AND (time >= ? OR until >= ? OR (until IS NULL AND kind IN ({_OPEN})))"


class EventRows:
    """Events that the database has yet to learn, as statements in `news`, in order."""

    def __init__(self, slots: Slots) -> None:
        self.news: list[Statement] = []
        self._slots = slots

    def add(self, event: Event) -> None:
        """Add an event; one that was added before, without its end, is replaced."""
        gpu = self._slots.gpu(sound(event.uuids[0])) if event.uuids else None
        row = row_of(event, gpu)
        if event.until is not None:
            self.news.append(("DELETE FROM main.event WHERE time = ? AND text = ?", (event.time, row[4])))
        self.news.append((_INSERT, row))
        del self.news[:-_MOST]

    def close_open(self, connection: Connection) -> None:
        """End what an earlier writer left open with the last time it recorded: what still holds is found again."""
        last = connection.execute(
            "SELECT max(stop) FROM (SELECT stop FROM block UNION ALL SELECT time FROM tick)"
        ).fetchone()[0]
        if last is not None:
            changed = f"until = max(time, ?1), sum = {sum_of('event', until='max(time, ?1)')}"
            sql = f"UPDATE main.event SET {changed} WHERE until IS NULL AND kind IN ({_OPEN})"
            self.news.append((sql, (last,)))


def row_of(event: Event, gpu: int | None) -> tuple[Any, ...]:
    """Return the row of an event about the GPU with this number, or about none."""
    texts = event.category, sound(json.dumps(event.key)), sound(json.dumps(event.to_plain()))
    return event.time, event.until, gpu, *texts


def read_events(
    connection: Connection, start: float, end: float, kinds: Collection[str] | None, labels: Mapping[str, str]
) -> list[Event]:
    """Return the events that began or lasted between two times, in order; `labels` names GPUs in files of format 1."""
    if version_of(connection) < 2:
        sql = (
            "SELECT time, uuid, kind, text FROM event LEFT JOIN gpu ON gpu.id = event.gpu WHERE time >= ? AND time < ?"
        )
        rows = connection.execute(f"{sql} ORDER BY time, event.id", (start, end)).fetchall()
        old = [_of_format_1(row, labels) for row in rows]
        return [event for event in old if event is not None and _is_kind(event, kinds)]
    sql = "SELECT time, uuid, kind, text, data, until FROM event LEFT JOIN gpu ON gpu.id = event.gpu"
    rows = connection.execute(f"{sql} WHERE {_OVERLAPS} ORDER BY time, event.id", (end, start, start)).fetchall()
    found = []
    for *row, data, until in rows:
        event = _of_format_1(row, labels) if data is None else _of_data(data, until)
        if event is not None and _is_kind(event, kinds) and (event.time >= start or event.kind in _SPANS):
            found.append(event)
    return found


def _is_kind(event: Event, kinds: Collection[str] | None) -> bool:
    return kinds is None or event.is_named(kinds)


def _of_data(data: str, until: float | None) -> Event | None:
    try:
        event = Event.from_plain(json.loads(data))
    except (ValueError, KeyError, TypeError):
        return None  # a damaged row costs this event only
    return event.replace(until=until) if until is not None else event


def _of_format_1(row: Sequence[Any], labels: Mapping[str, str]) -> Event | None:
    """Return an event of a file that kept a text in place of values; None for what format 2 tells with another event."""
    time, uuid, kind, text = row
    if kind not in KINDS:
        return None
    digits = "".join(char for char in text if char.isdecimal())
    value = float(digits) if digits and kind in ("xid", "suspend") else None
    reasons = text.split(", ") if kind == "throttled" else ()
    process = None
    if kind.startswith("process-"):
        from ...model.catalog import Process

        pid, _, rest = text.partition(" ")
        name, _, user = rest.rpartition(" (")
        process = Process({"pid": float(pid) if pid.isdecimal() else 0.0, "name": name, "user": user.rstrip(")")})
    gpus = (labels.get(uuid, "?"),) if uuid else ()
    return Event(time, kind, gpus, uuids=(uuid,) if uuid else (), value=value, reasons=reasons, process=process)
