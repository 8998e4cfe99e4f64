"""Fetching: the rows of a stretch of time from the tier that fits, with coarser ones where it has been deleted."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from math import inf

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
    recorded_in,
    seconds_there,
    ticks_to_rows,
)
from .columns import NAN, Column
from .recorded import RecordedSpan, RecordedTime, stretches_of, union, unpack_stretches
from .sealing import TIERS, WINDOW, layouts_of, owners_of, recorder_starts, times_before

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from typing import TypeAlias

    Slots: TypeAlias = "dict[int, frozenset[int]] | None"


_MARGIN = 3600.0  # seconds around a time in which neighboring samples are looked for


class Fetched(Value):
    """Rows in the order of time; `spacing` is how many seconds each represents at least, 0 for a tick.

    `before` are the times of the last ticks before the first row: they tell the recorder's interval where few rows are fetched.
    """

    rows: Rows
    spacing: list[int]
    before: list[float] = fresh(factory=list)


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
    if any(fetched.spacing):
        found = _recorded_rows(fetched, recorded_between(connection, start, end), start, end)
        if found is None:
            return None
        fetched = found
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
    """Return the rows of one tier in windows that are not covered yet, and add its windows to `covered`.

    A window of which the tier has rows is covered also where these lie outside the span: nothing else was recorded in it.
    """
    start, end = span
    earliest = start - tier + 0.001 if tier else start  # a row reaches into the span from before
    pieces: list[tuple[Rows, int]] = []
    fresh: set[float] = set()
    for block in blocks_where(connection, "tier = ? AND stop >= ? AND start < ?", (tier, *_windows(start, end))):
        rows = read_block(connection, block, {})
        times = [] if rows is None else rows.times
        kept = [at for at, time in enumerate(times) if earliest <= time < end and time // WINDOW not in covered]
        if kept and (rows := read_block(connection, block, slots)) is not None:
            pieces.append((_chosen(rows, kept), tier))
        fresh.update([time // WINDOW for time in times])
        damages += damage_of(block)
    covered |= fresh
    return pieces


def _windows(start: float, end: float) -> tuple[float, float]:
    """Return a span that begins and ends with a window."""
    return start // WINDOW * WINDOW, -(-end // WINDOW) * WINDOW


def recorded_between(connection: sqlite3.Connection, start: float, end: float) -> RecordedTime:
    """Return what was recorded between two times and in the hour before and after them, whichever tiers are left.

    Blocks of an earlier version, which do not name their stretches, count where no finer tier has the same window.
    """
    first, last = _windows(start - _MARGIN, end + _MARGIN)
    found: list[RecordedSpan] = []
    covered: set[float] = set()
    for tier in TIERS:
        fresh: set[float] = set()
        for block in blocks_where(connection, "tier = ? AND stop >= ? AND start < ?", (tier.seconds, first, last)):
            if (named := unpack_stretches(block.times)) is not None:
                found += named
            elif (rows := read_block(connection, block, {})) is not None:
                kept = [at for at, time in enumerate(rows.times) if time // WINDOW not in covered]
                fresh.update([rows.times[at] // WINDOW for at in kept])
                found += recorded_in(block, [rows.times[at] for at in kept], [rows.seconds[at] for at in kept])
        covered |= fresh
    ticks = connection.execute("SELECT time FROM tick WHERE time >= ? AND time < ? ORDER BY id", (first, last))
    if times := [time for (time,) in ticks]:
        found += stretches_of(times, _ticks_before(connection, times[0]), recorder_starts(connection, min(times)))
    near = union(one for one in found if one.stop >= first and one.start < last)
    newest = connection.execute("SELECT time FROM tick ORDER BY id DESC LIMIT 1").fetchone()
    later = (
        [RecordedSpan(newest[0], newest[0], 0.0)] if newest and newest[0] >= last else []
    )  # what is missing before it is a gap
    return RecordedTime([*near, *later])


def _recorded_rows(fetched: Fetched, recorded: RecordedTime, start: float, end: float) -> Fetched | None:
    """Return rows with something recorded between two times, each beginning with its first recorded moment; None without any."""
    times: list[float] = []
    kept: list[int] = []
    for at, (time, spacing) in enumerate(zip(fetched.rows.times, fetched.spacing, strict=True)):
        whole = recorded.part_of(time, time + spacing) if spacing else (time, time)
        if whole is not None and (not spacing or recorded.part_of(max(start, time), min(end, time + spacing))):
            times.append(whole[0])
            kept.append(at)
    if not kept:
        return None
    rows = _chosen(fetched.rows, kept)
    return Fetched(Rows(times, rows.seconds, rows.parts, rows.recorded), [fetched.spacing[at] for at in kept])


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
    return Rows(pick(rows.times), pick(rows.seconds), parts, rows.recorded)


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
    """The moments a chart gets: one for each interval that has rows, and one without values in each longer gap between them.

    `gaps` are the times without records.
    """

    __slots__ = ("_bounds", "_holes", "_lasting", "_seconds", "_uneven", "gaps", "times")

    def __init__(
        self, fetched: Fetched, gaps: Sequence[tuple[float, float]], start: float, width: float, points: int
    ) -> None:
        rows = fetched.rows
        moments = [max(start, time) for time in rows.times]
        few = len(moments) <= points
        self._bounds = (
            [(time, at, at + 1) for at, time in enumerate(moments)] if few else bounds_of(moments, width, start)
        )
        self._uneven = None if min(rows.seconds) == max(rows.seconds) else rows.seconds
        self._holes: list[int] = []  # before which interval one without values is put in
        self.times = [_outside(gaps, self._bounds[0][0], moments[0])]
        self.gaps = gaps
        usual = _usual([*fetched.before, *moments[:16]])
        for at in range(1, len(self._bounds)):
            (before, _, end), (time, first, _) = self._bounds[at - 1], self._bounds[at]
            step = max(fetched.spacing[end - 1], usual) if few else width
            if (hole := _hole_between(gaps, before, time, step)) is not None:
                self._holes.append(at)
                self.times.append(hole)
            self.times.append(_outside(gaps, time, moments[first]))
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


def _hole_between(gaps: Sequence[tuple[float, float]], before: float, time: float, step: float) -> float | None:
    """Return when values end between two moments `step` seconds apart or more; None if no gap of half a step lies between them."""
    for first, last in gaps[max(0, bisect_right(gaps, (before, before)) - 1) :]:
        if first >= time:
            break
        if first >= before and last - first > 0.5 * step:
            return max(first, before) + min(1.0, (min(last, time) - max(first, before)) / 2)
    return None


def _outside(gaps: Sequence[tuple[float, float]], time: float, moment: float) -> float:
    """Return a time, or the moment of its first row if the time lies in a gap."""
    at = bisect_right(gaps, (time, inf)) - 1
    return moment if at >= 0 and time < gaps[at][1] else time


def _usual(times: Sequence[float]) -> float:
    """Return the usual distance between rows."""
    steps = sorted(later - earlier for earlier, later in pairwise(times))
    return steps[len(steps) // 2] if steps else 0.0
