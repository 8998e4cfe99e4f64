"""Blocks: many rows of one tier, kept together and packed, with a part for each GPU; and what of them is damaged."""

from __future__ import annotations

from array import array
from math import inf
from operator import mul
from zlib import crc32

from ...model.event import Event
from ...value import Value, fresh
from ..place import DamagedBlock
from .answers import labels_of, uuids_of
from .columns import NAN, Column, pack, unpack
from .database import insertion, is_sound, pack_parts, unpack_parts
from .recorded import estimated, history_cadence, pack_stretches, stretches_of, union, unpack_stretches

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from .columns import Floats
    from .recorded import RecordedSpan

_TIMES, _SECONDS = 0, 2  # the slots of a block's own part
_MILLISECONDS = 6  # their coding
_INSERT = insertion("block")
_LEAST = 0.001  # seconds that a row stands for at least, so that each has a weight


class Rows(Value):
    """Values over time: `times` when each row begins, `seconds` how much time it represents, `parts` columns by GPU and slot.

    `recorded` are the stretches of the samples that the rows come from.
    """

    times: Floats
    seconds: Floats
    parts: dict[int, dict[int, Column]]
    recorded: list[RecordedSpan] = fresh(factory=list)


def write_block(connection: sqlite3.Connection, tier: int, level: int, rows: Rows, covered: float) -> None:
    """Add a block; the caller commits."""
    own = {_TIMES: rows.times, _SECONDS: rows.seconds}
    times = pack({slot: Column.of_ticks(_MILLISECONDS, values) for slot, values in own.items()}) + pack_stretches(
        rows.recorded
    )
    block, part = (
        connection.execute(f"SELECT ifnull(max(id), 0) + 1 FROM main.{table} WHERE id < 1 << 60").fetchone()[0]
        for table in ("block", "part")
    )
    packed = [(part + at, gpu, pack(columns)) for at, (gpu, columns) in enumerate(rows.parts.items())]
    parts = pack_parts([(id, gpu, crc32(data)) for id, gpu, data in packed])
    span = min(rows.times), max(rows.times)
    connection.execute(_INSERT, (block, tier, level, *span, covered, len(rows.times), times, parts))
    connection.executemany(
        "INSERT INTO part(id, block, gpu, data) VALUES(?, ?, ?, ?)",
        [(id, block, gpu, data) for id, gpu, data in packed],
    )


class BlockRow(Value):
    """A block as it is in the table; `damaged` are the GPUs whose values turned out to be damaged when it was read."""

    id: int
    tier: int
    start: float
    stop: float
    covered: float
    count: int
    times: bytes
    parts: bytes
    damaged: list[int] = fresh(factory=list)


# Not the view of sound blocks: with that, SQLite compares the checksums of all blocks before it looks for those asked for.
_SELECT = "SELECT id, tier, start, stop, covered, row_count, times, parts FROM main.block NOT INDEXED"
_SOUND = is_sound("block")


def blocks_where(
    connection: sqlite3.Connection, condition: str, values: Sequence[float], order: str = ""
) -> list[BlockRow]:
    """Return the sound blocks that meet an SQL condition; `order` is what may follow it."""
    found = connection.execute(f"{_SELECT} WHERE {condition} AND {_SOUND} {order}", values)
    return [BlockRow(*row) for row in found]


def read_block(
    connection: sqlite3.Connection, block: BlockRow, slots: dict[int, frozenset[int]] | None = None
) -> Rows | None:
    """Return a block's rows: the slots asked for by GPU, or all.

    None when its times are damaged; that, and GPUs whose values are damaged and left out, is noted in the block.
    """
    try:
        own = unpack(block.times, block.count)
    except DamagedBlock:
        own = {}
    if not own.keys() >= {_TIMES, _SECONDS}:
        block.damaged.append(0)
        return None
    parts: dict[int, dict[int, Column]] = {}
    for gpu, data in _data_of(connection, block, slots):
        try:
            parts[gpu] = unpack(data, block.count, None if slots is None else slots[gpu])
        except DamagedBlock:
            block.damaged.append(gpu)
    times, seconds = own[_TIMES].mean, own[_SECONDS].mean
    return Rows(times, seconds, parts, recorded_in(block, times, seconds))


def recorded_in(block: BlockRow, times: Sequence[float], seconds: Sequence[float]) -> list[RecordedSpan]:
    """Return the stretches that a block names; of one that names none, those that its rows tell."""
    if (found := unpack_stretches(block.times)) is not None:
        return found
    return estimated(times, seconds, block.tier) if block.tier else stretches_of(times)


def _data_of(
    connection: sqlite3.Connection, block: BlockRow, slots: dict[int, frozenset[int]] | None
) -> Iterator[tuple[int, bytes]]:
    """Yield GPU and bytes of each part that is asked for; what is not as it was written is noted in the block."""
    for id, gpu, expected in unpack_parts(block.parts):
        if slots is None or gpu in slots:
            found = connection.execute("SELECT data FROM part WHERE id = ?", (id,)).fetchone()
            if found is not None and isinstance(found[0], bytes) and crc32(found[0]) == expected:
                yield gpu, found[0]
            else:
                block.damaged.append(gpu)


def weigh(times: Sequence[float], before: Sequence[float] = ()) -> list[float]:
    """Return the seconds that each tick represents: those since the tick before it; `before` are the times of earlier ticks."""
    cadence = history_cadence()
    for time in before:
        cadence.next(time)
    return [max(_LEAST, cadence.next(time)[0]) for time in times]


def joined(pieces: Sequence[Rows]) -> Rows:
    """Return rows one after the other; a slot that a piece does not have is missing there."""
    if len(pieces) == 1:
        return pieces[0]
    slots: dict[int, dict[int, None]] = {}
    for piece in pieces:
        for gpu, columns in piece.parts.items():
            slots.setdefault(gpu, {}).update(dict.fromkeys(columns))
    parts = {gpu: {slot: _joined(pieces, gpu, slot) for slot in some} for gpu, some in slots.items()}
    times = [time for piece in pieces for time in piece.times]
    recorded = union(stretch for piece in pieces for stretch in piece.recorded)
    return Rows(times, [seconds for piece in pieces for seconds in piece.seconds], parts, recorded)


def _joined(pieces: Sequence[Rows], gpu: int, slot: int) -> Column:
    mean: list[float] = []
    low: list[float] = []
    high: list[float] = []
    shares: list[float] = []
    gaps, coding, same = False, 0, True
    for piece in pieces:
        column = piece.parts.get(gpu, {}).get(slot)
        if column is None:
            gaps = True
            column = Column.of_ticks(coding, [NAN] * len(piece.times))
        else:
            coding = column.coding or coding
            gaps |= column.gaps
        same &= column.mean is column.low
        mean += column.mean
        low += column.low
        high += column.high
        shares += column.shares or [1.0] * len(column.mean)
    part = shares if min(shares, default=1.0) < 1.0 else None
    return Column(coding, mean, mean, mean, gaps, part) if same else Column(coding, mean, low, high, gaps, part)


def bounds_of(times: Sequence[float], seconds: float, origin: float = 0.0) -> list[tuple[float, int, int]]:
    """Return, for each stretch of `seconds` that has rows, when it begins and where its rows do and end. `times` must rise."""
    numbers = [(time - origin) // seconds for time in times]
    found: list[tuple[float, int, int]] = []
    first = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] != numbers[first]:
            found.append((origin + numbers[first] * seconds, first, at))
            first = at
    return found


def gathered(column: Column, bounds: Sequence[tuple[float, int, int]], weights: Sequence[float] | None) -> Column:
    """Return a column with one row a stretch: the least, the mean and the most of the rows in it, NaN only where all miss.

    `weights` are the seconds of the rows; None when all weigh the same. A row with values for part of its time weighs that much.
    """
    if len(bounds) == len(column.mean):
        return column
    shares: list[float] = []
    mean, low, high = column.mean, column.low, column.high
    if not column.gaps:  # most stretches of a chart have one row: taking it is a third of the price of slicing
        lows = [low[at] if end == at + 1 else min(low[at:end]) for _, at, end in bounds]
        highs = [high[at] if end == at + 1 else max(high[at:end]) for _, at, end in bounds]
        if weights is None:
            means = [mean[at] if end == at + 1 else sum(mean[at:end]) / (end - at) for _, at, end in bounds]
        else:
            heavy = list(map(mul, mean, weights))
            means = [mean[at] if end == at + 1 else sum(heavy[at:end]) / sum(weights[at:end]) for _, at, end in bounds]
    else:
        lows, means, highs = [], [], []
        for _, first, end in bounds:
            there = [at for at in range(first, end) if mean[at] == mean[at]]
            seconds = seconds_there(column, there, weights)
            lows.append(min((low[at] for at in there), default=NAN))
            highs.append(max((high[at] for at in there), default=NAN))
            total = sum(mean[at] * weight for at, weight in zip(there, seconds, strict=True))
            means.append(total / sum(seconds) if there else NAN)
            whole = end - first if weights is None else sum(weights[first:end])
            shares.append(min(1.0, sum(seconds) / whole))
    # sums round: a mean of equal values may lie a hair beside them
    means = list(map(max, lows, map(min, highs, means)))
    total = sum(means) if column.gaps else 0.0
    partial = min(shares, default=1.0) < 1.0
    return Column(column.coding, means, lows, highs, total != total or partial, shares if partial else None)


def seconds_there(column: Column, rows: Sequence[int], weights: Sequence[float] | None) -> list[float]:
    """Return for how long each of some rows has values; a row of unknown length counts as 1."""
    seconds = [1.0 if weights is None else weights[at] for at in rows]
    shares = column.shares
    return seconds if shares is None else [one * shares[at] for one, at in zip(seconds, rows, strict=True)]


def rolled_up(rows: Rows, seconds: float) -> Rows:
    """Return rows of a coarser tier."""
    bounds = bounds_of(rows.times, seconds)
    uneven = None if min(rows.seconds) == max(rows.seconds) else rows.seconds
    parts = {
        gpu: {slot: gathered(column, bounds, uneven) for slot, column in columns.items()}
        for gpu, columns in rows.parts.items()
    }
    lasted = [sum(rows.seconds[first:end]) for _, first, end in bounds]
    return Rows([time for time, _, _ in bounds], lasted, parts, rows.recorded)


def ticks_to_rows(
    ticks: Sequence[tuple[float, int, bytes]],
    layouts: dict[int, Sequence[int]],
    owners: dict[int, tuple[int, int]],
    wanted: Collection[int] | None = None,
    before: Sequence[float] = (),
    starts: Collection[float] = (),
) -> Rows:
    """Return ticks (time, layout, data) as rows; `owners` gives each slot's GPU and coding, `wanted` leaves others out.

    `before` are the times of the ticks before them, `starts` those at which a recorder began.
    """
    pieces: list[Rows] = []
    first = 0
    ticks = [tick for tick in ticks if len(tick[2]) == 8 * len(layouts.get(tick[1], ()))]  # their layout may be damaged
    for at in range(1, len(ticks) + 1):
        if at == len(ticks) or ticks[at][1] != ticks[first][1]:
            pieces.append(_alike(ticks[first:at], layouts[ticks[first][1]], owners, wanted))
            first = at
    rows = joined(pieces)
    return Rows(rows.times, weigh(rows.times, before), rows.parts, stretches_of(rows.times, before, starts))


def _alike(
    ticks: Sequence[tuple[float, int, bytes]],
    layout: Sequence[int],
    owners: dict[int, tuple[int, int]],
    wanted: Collection[int] | None,
) -> Rows:
    together = memoryview(b"".join(data for _, _, data in ticks)).cast("d")
    parts: dict[int, dict[int, Column]] = {}
    for place, slot in enumerate(layout):
        if slot in owners and (wanted is None or slot in wanted):
            gpu, coding = owners[slot]
            # a list of floats would take four times the memory
            values = array("d", together[place :: len(layout)].tobytes())
            parts.setdefault(gpu, {})[slot] = Column.of_ticks(coding, values)
    return Rows([time for time, _, _ in ticks], [1.0] * len(ticks), parts)


DAMAGED = "history-damaged"  # the kind of its events
_BLOCKS = f"SELECT start, stop, {is_sound('block')} FROM main.block NOT INDEXED ORDER BY id"


class Damage(Value):
    """Values that are lost between two times: of one GPU, by its number in the file, or of the whole machine with None."""

    start: float
    stop: float
    gpu: int | None = None


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
    return _around(connection.execute(f"SELECT time, time, {is_sound('tick')} FROM main.tick ORDER BY id").fetchall())


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
    connection: sqlite3.Connection, damages: Sequence[Damage], start: float = -inf, end: float = inf
) -> list[Event]:
    """Return the events of what is damaged between two times."""
    found: list[Event] = []
    uuids, labels = (uuids_of(connection), labels_of(connection, end)) if damages else ({}, {})
    for damage in merged(damages):
        if damage.start < end and damage.stop >= start:
            uuid = "" if damage.gpu is None else uuids.get(damage.gpu, "")
            gpus = (labels.get(uuid, "?"),) if uuid else ()
            found.append(Event(damage.start, DAMAGED, gpus, uuids=(uuid,) if uuid else (), until=damage.stop))
    return found


def without_repeats(events: Sequence[Event], told: Collection[Event]) -> list[Event]:
    """Return events that those told already do not include."""
    spans = [(one.time, one.until or one.time, one.uuids) for one in told if one.kind == DAMAGED]
    return [
        event
        for event in events
        if not any(
            first <= event.time and (event.until or event.time) <= last and uuids in ((), event.uuids)
            for first, last, uuids in spans
        )
    ]


def _around(rows: Sequence[tuple[float, float, int]]) -> list[Damage]:
    """Return a stretch for each run of damaged rows (start, stop, whether sound); what a damaged row says itself is not believed."""
    found: list[Damage] = []
    before: float | None = None
    waiting = False
    for start, stop, intact in rows:
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
