"""Events as rows of the history, and damage: periods whose values can no longer be read, which are reported as events."""

from __future__ import annotations

import json

from ...model.condition import LASTING
from ...model.event import Event
from ...value import Value
from .columns import sound
from .database import insertion, is_sound, sum_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from sqlite3 import Connection
    from typing import Any, TypeAlias

    from .blocks import BlockRow
    from .slots import Slots, Statement

    Found: TypeAlias = "Sequence[tuple[int, float, float, int]]"  # row, start, stop, whether it is sound

KIND = "history-damaged"
_BLOCKS = f"SELECT id, start, stop, {is_sound('block')} FROM main.block NOT INDEXED ORDER BY id"


class Damage(Value):
    """Values that are lost between two times: of one GPU, by its number in the file, or of the whole machine with None."""

    start: float
    stop: float
    gpu: int | None = None

    def to_event(self, uuids: Mapping[int, str], labels: Mapping[str, str]) -> Event:
        """Return the event; `uuids` are those of the GPUs by number, `labels` the numbers people know them by."""
        uuid = "" if self.gpu is None else uuids.get(self.gpu, "")
        gpus = (labels.get(uuid, "?"),) if uuid else ()
        return Event(self.start, KIND, gpus, uuids=(uuid,) if uuid else (), until=self.stop)


def damage_of(block: BlockRow) -> list[Damage]:
    """Return what turned out to be damaged when a block was read."""
    end = block.stop + block.tier
    return [Damage(block.start, end, gpu or None) for gpu in dict.fromkeys(block.damaged)]


def damaged_rows(connection: sqlite3.Connection) -> list[Damage]:
    """Return the stretches of blocks and ticks whose rows are damaged: from the sound row before to the one after.

    Rows of one kind are written in the order of time, so those around a damaged one say when it was.
    """
    return [*_around(connection.execute(_BLOCKS).fetchall()), *damaged_ticks(connection)]


def damaged_ticks(connection: sqlite3.Connection) -> list[Damage]:
    """Return the stretches of ticks whose rows are damaged."""
    return _around(
        connection.execute(f"SELECT id, time, time, {is_sound('tick')} FROM main.tick ORDER BY id").fetchall()
    )


def damaged_uses(connection: sqlite3.Connection, start: float, end: float) -> list[Damage]:
    """Return the stretch that was asked for if usage in it is damaged: totals are too small then."""
    uses = f"SELECT 1 FROM main.usage WHERE last >= ? AND first < ? AND NOT {is_sound('usage')} LIMIT 1"
    owners = f"SELECT 1 FROM main.process WHERE NOT {is_sound('process')} LIMIT 1"
    lost = connection.execute(uses, (start, end)).fetchone() or connection.execute(owners).fetchone()
    return [Damage(start, end)] if lost else []


def delete_damaged_blocks(connection: sqlite3.Connection) -> list[Damage]:
    """Delete blocks whose rows are damaged, with their parts, and return what that was; the caller commits."""
    found = connection.execute(_BLOCKS).fetchall()
    if all(intact for *_, intact in found):
        return []
    connection.execute(f"DELETE FROM main.block WHERE NOT {is_sound('block')}")
    connection.execute("DELETE FROM part WHERE block NOT IN (SELECT id FROM main.block)")
    return _around(found)


def merged(damages: Iterable[Damage]) -> list[Damage]:
    """Return stretches that overlap as one; those of one GPU within those of the machine are left out."""
    found: list[Damage] = []
    for damage in sorted(damages, key=lambda damage: (damage.gpu is not None, damage.gpu or 0, damage.start)):
        for known in found:
            if known.gpu in (None, damage.gpu) and known.start <= damage.start <= damage.stop <= known.stop:
                break
            if known.gpu == damage.gpu and known.start <= damage.start <= known.stop:
                known.stop = max(known.stop, damage.stop)
                break
        else:
            found.append(Damage(damage.start, damage.stop, damage.gpu))
    return sorted(found, key=lambda damage: damage.start)


def events_of(
    damages: Iterable[Damage], start: float, end: float, uuids: Mapping[int, str], labels: Mapping[str, str]
) -> list[Event]:
    """Return the events of what is damaged between two times."""
    return [damage.to_event(uuids, labels) for damage in merged(damages) if damage.start < end and damage.stop >= start]


def without_repeats(events: Sequence[Event], told: Collection[Event]) -> list[Event]:
    """Return events that those told already do not include."""
    spans = [(one.time, one.until or one.time, one.uuids) for one in told if one.kind == KIND]
    return [
        event
        for event in events
        if not any(
            first <= event.time and (event.until or event.time) <= last and uuids in ((), event.uuids)
            for first, last, uuids in spans
        )
    ]


def _around(rows: Found) -> list[Damage]:
    """Return a stretch for each run of damaged rows; what is said by a damaged row itself is not believed."""
    found: list[Damage] = []
    before: float | None = None
    waiting = False
    for _, start, stop, intact in rows:
        if not intact:
            waiting = True
            continue
        if waiting:
            first = start if before is None else before
            found.append(Damage(min(first, start), max(first, start)))
            waiting = False
        before = stop
    if waiting and before is not None:
        found.append(Damage(before, before))
    return found


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


def read_events(connection: Connection, start: float, end: float, kinds: Collection[str] | None) -> list[Event]:
    """Return the events that began or lasted between two times, in order."""
    sql = f"SELECT data, until FROM event WHERE {_OVERLAPS} ORDER BY time, id"
    found = []
    for data, until in connection.execute(sql, (end, start, start)):
        try:
            event = Event.from_plain(json.loads(data))
        except (ValueError, KeyError, TypeError):
            continue  # of a later version, which knows more kinds
        if (kinds is None or event.is_named(kinds)) and (event.time >= start or event.kind in _SPANS):
            found.append(event if until is None else event.replace(until=until))
    return found
