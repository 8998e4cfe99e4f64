"""Fetching: the rows of a stretch of time from the tier that fits, with coarser ones where it has been deleted."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

from ...model.snapshot import Cadence
from ...value import Value, fresh
from .blocks import (
    Damage,
    Rows,
    blocks_where,
    bounds_of,
    damage_of,
    gathered,
    joined,
    read_block,
    seconds_there,
    ticks_to_rows,
)
from .columns import NAN, Column
from .sealing import TIERS, WINDOW, layouts_of, owners_of, times_before

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from typing import TypeAlias

    Slots: TypeAlias = "dict[int, frozenset[int]] | None"


_FIRST_HOLE = 60.0  # seconds between two ticks that count as a hole while the recorder's interval is unknown
_TOUCHING = 0.002  # seconds; times are kept in milliseconds


class Fetched(Value):
    """Rows in the order of time; `spacing` is how many seconds each stands for at least, 0 for a tick.

    `before` are the times of the last ticks before the first row: they tell the recorder's interval where few rows are fetched.
    """

    rows: Rows
    spacing: list[int]
    before: list[float] = fresh(factory=list)

    def late(self) -> list[bool]:
        """Return for each row whether samples are missing between the row before and this one."""
        cadence = Cadence(_FIRST_HOLE)
        for time in self.before:
            cadence.next(time)
        found, last = [], None
        for time, spacing in zip(self.rows.times, self.spacing, strict=True):
            usual = cadence.usual
            _, missing = cadence.next(time)
            if last is not None and (spacing or last[1]):
                missing = time - last[0] > 1.9 * max(spacing, last[1], usual)
            found.append(last is not None and missing)
            last = (time, spacing)
        return found

    def stretches(self, starts: Sequence[float] = ()) -> list[tuple[float, float]]:
        """Return the stretches of time that samples stand for, in order; a recorder was started at each of `starts`.

        A late sample stands for the time since the one before, as it does where usage is counted (see Cadence).
        """
        found: list[tuple[float, float]] = []
        last = 0.0
        rows = zip(self.rows.times, self.rows.seconds, self.spacing, self.late(), strict=True)
        for time, seconds, spacing, late in rows:
            resumed = not found or bisect_right(starts, last) != bisect_right(starts, time)
            there = min(seconds, spacing)  # recording may have begun or ended inside a row
            if not resumed and (not late or time + spacing - seconds <= found[-1][1] + _TOUCHING):
                found[-1] = (found[-1][0], max(found[-1][1], time + there))
            else:
                start = time + spacing - there
                found.append((max(start, found[-1][1]) if found else start, time + spacing))
            last = time
        return found


def fetch(
    connection: sqlite3.Connection, slots: Slots, start: float, end: float, width: float, damages: list[Damage]
) -> Fetched | None:
    """Return the rows from `start` to before `end`, about `width` seconds apart or less where they are kept so; None for none.

    Ticks that are not sealed yet are in no tier and always come along. What is damaged is added to `damages` and taken from
    another tier where one has it.
    """
    pieces: list[tuple[Rows, int]] = []
    covered: set[float] = set()
    finer = [tier for tier in TIERS if tier.seconds <= width]
    known = len(damages)
    for tier in finer[-1:] + [tier for tier in TIERS if tier.seconds > width]:
        pieces += _rows_of(connection, tier.seconds, slots, (start, end), covered, damages)
    if len(damages) > known:
        for tier in reversed(finer[:-1]):
            pieces += _rows_of(connection, tier.seconds, slots, (start, end), covered, damages)
    if (open_rows := _open_rows(connection, slots, start, end)) is not None:
        pieces.append((open_rows, 0))
    if not pieces:
        return None
    fetched = _in_order(pieces)
    fetched.before = _ticks_before(connection, fetched.rows.times[0])
    return fetched


def _rows_of(
    connection: sqlite3.Connection,
    tier: int,
    slots: Slots,
    span: tuple[float, float],
    covered: set[float],
    damages: list[Damage],
) -> list[tuple[Rows, int]]:
    """Return the rows of one tier in stretches that are not covered yet, and add those stretches to `covered`."""
    start, end = span
    earliest = start - tier + 0.001 if tier else start  # a row reaches into the stretch from before
    pieces: list[tuple[Rows, int]] = []
    fresh: set[float] = set()
    for block in blocks_where(connection, "tier = ? AND stop >= ? AND start < ?", (tier, earliest, end)):
        rows = read_block(connection, block, {})
        times = [] if rows is None else rows.times
        kept = [at for at, time in enumerate(times) if earliest <= time < end and time // WINDOW not in covered]
        if kept and (rows := read_block(connection, block, slots)) is not None:
            pieces.append((_chosen(rows, kept), tier))
            fresh.update([times[at] // WINDOW for at in kept])
        damages += damage_of(block)
    covered |= fresh
    return pieces


def _ticks_before(connection: sqlite3.Connection, until: float) -> list[float]:
    """Return the times of the last ticks before a moment, oldest first."""
    found = connection.execute("SELECT time FROM tick WHERE time < ? ORDER BY time DESC LIMIT 16", (until,)).fetchall()
    return [time for (time,) in reversed(found)] or times_before(connection, until)


def _open_rows(connection: sqlite3.Connection, slots: Slots, start: float, end: float) -> Rows | None:
    ticks = connection.execute(
        "SELECT time, layout, data FROM tick WHERE time >= ? AND time < ? ORDER BY id", (start, end)
    ).fetchall()
    if not ticks:
        return None
    wanted = None if slots is None else frozenset().union(*slots.values())
    before = _ticks_before(connection, ticks[0][0])
    rows = ticks_to_rows(ticks, layouts_of(connection), owners_of(connection), wanted, before)
    return rows if rows.times else None


def _chosen(rows: Rows, kept: list[int]) -> Rows:
    """Return some of the rows, in the order given."""
    first, end = kept[0], kept[0] + len(kept)
    together = kept == list(range(first, end))
    if together and len(kept) == len(rows.times):
        return rows

    def pick(values: Sequence[float]) -> Sequence[float]:
        return values[first:end] if together else [values[at] for at in kept]

    def part(column: Column) -> Column:
        shares = None if column.shares is None else pick(column.shares)
        return Column(column.coding, pick(column.mean), pick(column.low), pick(column.high), column.gaps, shares)

    parts = {gpu: {slot: part(column) for slot, column in columns.items()} for gpu, columns in rows.parts.items()}
    return Rows(pick(rows.times), pick(rows.seconds), parts)


def _in_order(pieces: list[tuple[Rows, int]]) -> Fetched:
    pieces.sort(key=lambda piece: piece[0].times[0])
    rows = joined([piece for piece, _ in pieces])
    spacing = [seconds for piece, seconds in pieces for _ in piece.times]
    times = rows.times
    if any(later < earlier for earlier, later in pairwise(times)):  # the clock has been set back
        order = sorted(range(len(times)), key=times.__getitem__)
        rows = _chosen(rows, order)
        spacing = [spacing[at] for at in order]
    return Fetched(rows, spacing)


class TimeGrid:
    """The moments a chart gets: one for each stretch that has rows, and one without values where rows are missing.

    `gaps` are the stretches without records: the last moment before and the first one after each.
    """

    __slots__ = ("_bounds", "_holes", "_lasting", "_seconds", "_uneven", "gaps", "times")

    def __init__(self, fetched: Fetched, start: float, width: float, points: int) -> None:
        rows = fetched.rows
        moments = [max(start, time) for time in rows.times]
        if len(moments) <= points:
            self._bounds = [(time, at, at + 1) for at, time in enumerate(moments)]
        else:
            self._bounds = bounds_of(moments, width, start)
        self._uneven = None if min(rows.seconds) == max(rows.seconds) else rows.seconds
        self._holes: list[int] = []  # before which stretch one without values is put in
        self.times = [self._bounds[0][0]]
        late = fetched.late()
        usual = _usual([*fetched.before, *moments[:16]])
        self.gaps = [(moments[at - 1], moments[at]) for at in range(1, len(moments)) if late[at]]
        for at in range(1, len(self._bounds)):
            (before, _, end), (time, first, _) = self._bounds[at - 1], self._bounds[at]
            step = width if len(moments) > points else max(fetched.spacing[end - 1], usual)
            if late[first] and time - before > 1.5 * step:
                self._holes.append(at)
                self.times.append(before + step)
            self.times.append(time)
        self._lasting = rows.seconds
        self._seconds = self._with_holes([sum(rows.seconds[first:end]) for _, first, end in self._bounds], 0.0)

    def weights(self, column: Column | None) -> list[float]:
        """Return for how many seconds there are values at each moment."""
        if column is None or not column.gaps:
            return self._seconds
        found = []
        for _, first, end in self._bounds:
            there = [at for at in range(first, end) if column.mean[at] == column.mean[at]]
            found.append(sum(seconds_there(column, there, self._lasting)))
        return self._with_holes(found, 0.0)

    def spread(self, column: Column | None) -> tuple[list[float], list[float], list[float]]:
        """Return least, mean and most at each moment; NaN if there is none."""
        if column is None:
            nothing = [NAN] * len(self.times)
            return nothing, nothing, nothing
        column = gathered(column, self._bounds, self._uneven)
        low, mean, high = (self._with_holes(list(values), NAN) for values in (column.low, column.mean, column.high))
        return low, mean, high

    def _with_holes(self, values: list[float], filler: float) -> list[float]:
        for at in reversed(self._holes):
            values.insert(at, filler)
        return values


def _usual(times: Sequence[float]) -> float:
    """Return the usual distance between rows."""
    steps = sorted(later - earlier for earlier, later in pairwise(times))
    return steps[len(steps) // 2] if steps else 0.0
