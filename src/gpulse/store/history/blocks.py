"""Blocks: many rows of one tier, kept together and packed, with a part for each GPU."""

from __future__ import annotations

from operator import mul

from .columns import NAN, Column, pack, unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Sequence

_TIMES, _COUNTS = 0, 1  # the slots of a block's own part
_MILLISECONDS, _WHOLE_NUMBERS = 6, 3  # their codings


class Rows:
    """Values over time: `times` when each row begins, `counts` how many ticks it stands for, `parts` columns by GPU and slot."""

    __slots__ = ("counts", "parts", "times")

    def __init__(self, times: Sequence[float], counts: Sequence[float], parts: dict[int, dict[int, Column]]) -> None:
        self.times = times
        self.counts = counts
        self.parts = parts


def write_block(connection: sqlite3.Connection, tier: int, level: int, rows: Rows, covered: float) -> None:
    """Add a block; the caller commits."""
    times = pack({_TIMES: Column.of(_MILLISECONDS, rows.times), _COUNTS: Column.of(_WHOLE_NUMBERS, rows.counts)})
    block = connection.execute(
        "INSERT INTO block(tier, level, start, stop, covered, row_count, times) VALUES(?, ?, ?, ?, ?, ?, ?)",
        (tier, level, min(rows.times), max(rows.times), covered, len(rows.times), times),
    ).lastrowid
    connection.executemany(
        "INSERT INTO part(block, gpu, data) VALUES(?, ?, ?)",
        [(block, gpu, pack(columns)) for gpu, columns in rows.parts.items()],
    )


def read_block(
    connection: sqlite3.Connection,
    block: int,
    row_count: int,
    times: bytes,
    slots: dict[int, frozenset[int]] | None = None,
) -> Rows:
    """Return a block's rows: the slots asked for by GPU, or all."""
    own = unpack(times, row_count)
    query = "SELECT gpu, data FROM part WHERE block = ?"
    if slots is not None:
        query += f" AND gpu IN ({','.join(map(str, slots))})"
    parts = {
        gpu: unpack(data, row_count, None if slots is None else slots[gpu])
        for gpu, data in connection.execute(query, (block,))
    }
    return Rows(own[_TIMES].mean, own[_COUNTS].mean, parts)


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
    return Rows(times, [count for piece in pieces for count in piece.counts], parts)


def _joined(pieces: Sequence[Rows], gpu: int, slot: int) -> Column:
    mean: list[float] = []
    low: list[float] = []
    high: list[float] = []
    gaps, coding, same = False, 0, True
    for piece in pieces:
        column = piece.parts.get(gpu, {}).get(slot)
        if column is None:
            gaps = True
            column = Column.of(coding, [NAN] * len(piece.times))
        else:
            coding = column.coding or coding
            gaps |= column.gaps
        same &= column.mean is column.low
        mean += column.mean
        low += column.low
        high += column.high
    return Column(coding, mean, mean, mean, gaps) if same else Column(coding, mean, low, high, gaps)


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


def gathered(column: Column, bounds: Sequence[tuple[float, int, int]], counts: Sequence[float] | None) -> Column:
    """Return a column with one row a stretch: the least, the mean and the most of the rows in it, NaN only where all miss.

    `counts` weigh the rows of the mean; None when all weigh the same.
    """
    if len(bounds) == len(column.mean):
        return column
    mean, low, high = column.mean, column.low, column.high
    if not column.gaps:  # most stretches of a chart have one row: taking it is a third of the price of slicing
        lows = [low[at] if end == at + 1 else min(low[at:end]) for _, at, end in bounds]
        highs = [high[at] if end == at + 1 else max(high[at:end]) for _, at, end in bounds]
        if counts is None:
            means = [mean[at] if end == at + 1 else sum(mean[at:end]) / (end - at) for _, at, end in bounds]
        else:
            heavy = list(map(mul, mean, counts))
            means = [mean[at] if end == at + 1 else sum(heavy[at:end]) / sum(counts[at:end]) for _, at, end in bounds]
    else:
        lows, means, highs = [], [], []
        for _, first, end in bounds:
            there = [at for at in range(first, end) if mean[at] == mean[at]]
            weights = [1.0 if counts is None else counts[at] for at in there]
            lows.append(min((low[at] for at in there), default=NAN))
            highs.append(max((high[at] for at in there), default=NAN))
            means.append(
                sum(mean[at] * weight for at, weight in zip(there, weights, strict=True)) / sum(weights)
                if there
                else NAN
            )
    means = list(
        map(max, lows, map(min, highs, means))
    )  # sums round: a mean of equal values may lie a hair beside them
    total = sum(means) if column.gaps else 0.0
    return Column(column.coding, means, lows, highs, gaps=total != total)


def rolled_up(rows: Rows, seconds: float) -> Rows:
    """Return rows of a coarser tier."""
    bounds = bounds_of(rows.times, seconds)
    uneven = None if min(rows.counts) == max(rows.counts) else rows.counts
    parts = {
        gpu: {slot: gathered(column, bounds, uneven) for slot, column in columns.items()}
        for gpu, columns in rows.parts.items()
    }
    return Rows([time for time, _, _ in bounds], [sum(rows.counts[first:end]) for _, first, end in bounds], parts)


def ticks_to_rows(
    ticks: Sequence[tuple[float, int, bytes]],
    layouts: dict[int, Sequence[int]],
    owners: dict[int, tuple[int, int]],
    wanted: Collection[int] | None = None,
) -> Rows:
    """Return ticks (time, layout, data) as rows; `owners` gives each slot's GPU and coding, `wanted` leaves others out."""
    pieces: list[Rows] = []
    first = 0
    for at in range(1, len(ticks) + 1):
        if at == len(ticks) or ticks[at][1] != ticks[first][1]:
            pieces.append(_alike(ticks[first:at], layouts[ticks[first][1]], owners, wanted))
            first = at
    return joined(pieces)


def _alike(
    ticks: Sequence[tuple[float, int, bytes]],
    layout: Sequence[int],
    owners: dict[int, tuple[int, int]],
    wanted: Collection[int] | None,
) -> Rows:
    together = memoryview(b"".join(data for _, _, data in ticks)).cast("d")
    parts: dict[int, dict[int, Column]] = {}
    for place, slot in enumerate(layout):
        if wanted is None or slot in wanted:
            gpu, coding = owners[slot]
            parts.setdefault(gpu, {})[slot] = Column.of(coding, together[place :: len(layout)].tolist())
    return Rows([time for time, _, _ in ticks], [1.0] * len(ticks), parts)
