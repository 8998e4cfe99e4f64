"""Sealing: ticks whose ten minutes are over become packed blocks of every tier, small blocks become larger ones, old ones go."""

from __future__ import annotations

from array import array

from ...value import Value
from .blocks import (
    Damage,
    blocks_where,
    damage_of,
    damaged_ticks,
    delete_damaged_blocks,
    joined,
    read_block,
    rolled_up,
    ticks_to_rows,
    write_block,
)
from .columns import coding_of
from .database import is_sound, unpack_parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from .blocks import BlockRow, Rows

WINDOW = 600  # seconds of ticks that are sealed together
SIZE_LIMIT = 1 << 30  # bytes; 90 days of 8 GPUs with 25 metrics each, a second apart, take 100 to 170 MB
_MOST_TICKS = 1200  # of one block, so that sealing ten ticks a second does not take a second at once
_MOST_EVENTS = 200_000
_REMEMBERED = 16  # times from which the interval of the recorder is known
_DAY = 86_400


class Tier(Value):
    """A resolution: `seconds` a row (0: every tick), `spans` the growing stretches its blocks are joined to, `keep` how long it stays."""

    seconds: int
    spans: tuple[int, ...]
    keep: int


TIERS = (
    Tier(0, (), _DAY),
    Tier(10, (3600,), 7 * _DAY),
    Tier(60, (3600, 21_600), 90 * _DAY),
    Tier(600, (21_600, 4 * _DAY), 90 * _DAY),  # so that 90 days are drawn from 13,000 rows
)


def owners_of(connection: sqlite3.Connection) -> dict[int, tuple[int, int]]:
    """Return each slot's GPU and coding."""
    rows = connection.execute("SELECT slot.id, gpu, key, uuid FROM slot LEFT JOIN gpu ON gpu.id = slot.gpu")
    return {slot: (gpu, coding_of(key, (uuid or "?") if gpu else "")) for slot, gpu, key, uuid in rows}


def layouts_of(connection: sqlite3.Connection) -> dict[int, Sequence[int]]:
    """Return the slots of each layout that ticks have, in their order."""
    rows = connection.execute("SELECT id, slots FROM layout WHERE id IN (SELECT layout FROM main.tick)")
    return {layout: array("I", slots) for layout, slots in rows}


def times_before(connection: sqlite3.Connection, until: float = float("inf")) -> list[float]:
    """Return the times of the last ticks that are sealed, as far as they precede a moment."""
    found: list[float] = []
    latest = f"ORDER BY id DESC LIMIT {_REMEMBERED}"
    for block in blocks_where(connection, "tier = 0 AND start < ?", (until,), latest):
        if (rows := read_block(connection, block, {})) is not None:  # else, reading its values reports the damage
            found = [*rows.times, *found]
        if len(found) >= _REMEMBERED:
            break
    return [time for time in found if time < until][-_REMEMBERED:]


def recorder_starts(connection: sqlite3.Connection, since: float) -> frozenset[float]:
    """Return the times of the first samples of recorders from a moment on."""
    sql = "SELECT time FROM event WHERE time >= ? AND kind = 'start'"
    return frozenset(time for (time,) in connection.execute(sql, (since,)))


def seal(connection: sqlite3.Connection, damages: list[Damage]) -> set[int]:
    """Seal all ticks but those of the newest ten minutes; return the slots that had a value in the last block, if any.

    Damaged ticks are deleted and added to `damages`.
    """
    if lost := damaged_ticks(connection):
        damages += lost
        connection.execute(f"DELETE FROM main.tick WHERE NOT {is_sound('tick')}")
    ticks = connection.execute("SELECT id, time, layout, data FROM tick ORDER BY id").fetchall()
    used: set[int] = set()
    layouts, owners = layouts_of(connection), owners_of(connection)
    groups = _groups(ticks)
    before = times_before(connection) if len(groups) > 1 else []
    starts = recorder_starts(connection, min(tick[1] for tick in ticks)) if len(groups) > 1 else frozenset()
    for group in groups[:-1]:
        rows = ticks_to_rows([tick[1:] for tick in group], layouts, owners, None, before, starts)
        before = [*before, *rows.times][-_REMEMBERED:]
        if len(rows.times) < len(group):
            damages.append(Damage(group[0][1], group[-1][1]))
        connection.execute("BEGIN IMMEDIATE")
        if rows.times:
            _write(connection, rows)
        connection.execute("DELETE FROM main.tick WHERE id BETWEEN ? AND ?", (group[0][0], group[-1][0]))
        connection.execute("COMMIT")
        used = {
            slot
            for columns in rows.parts.values()
            for slot, column in columns.items()
            if not column.gaps or any(value == value for value in column.mean)
        }
    return used


def tidy(connection: sqlite3.Connection, size_limit: int, damages: list[Damage]) -> Iterator[None]:
    """Join small blocks and delete what has been kept long enough, in steps of a tenth of a second or less.

    Damaged blocks are deleted and added to `damages`; only they are lost.
    """
    (newest,) = connection.execute("SELECT start FROM main.block ORDER BY id DESC LIMIT 1").fetchone() or (0.0,)
    if newest % _DAY < 3600:  # once a day: 2,000 rows take 20 ms
        connection.execute("BEGIN IMMEDIATE")
        damages += delete_damaged_blocks(connection)
        connection.execute("COMMIT")
    for tier in TIERS:
        for level, span in enumerate(tier.spans):
            yield from _join(connection, (tier.seconds, level), span, damages)
    connection.execute("BEGIN IMMEDIATE")
    for tier in TIERS:
        _expire(connection, tier)
    _shrink(connection, size_limit)
    for table in ("layout", "layout_copy"):  # a job that comes or goes makes another one; the newest is in use
        connection.execute(
            f"DELETE FROM main.{table} WHERE id NOT IN (SELECT layout FROM main.tick)"
            f" AND id < (SELECT max(id) FROM main.{table})"
        )
    (oldest,) = connection.execute("SELECT min(start) FROM block").fetchone()
    if oldest is not None:
        connection.execute(
            "DELETE FROM main.fact WHERE since < ?1 AND id NOT IN (SELECT max(id) FROM fact WHERE since < ?1 GROUP BY gpu)",
            (oldest,),
        )
        connection.execute("DELETE FROM main.event WHERE time < ?", (oldest,))
        connection.execute("DELETE FROM main.usage WHERE last < ?", (oldest,))
        connection.execute("DELETE FROM main.process WHERE id NOT IN (SELECT process FROM main.usage)")
        connection.execute("DELETE FROM main.label WHERE id NOT IN (SELECT id FROM main.process)")
    connection.execute("DELETE FROM main.event WHERE id <= (SELECT max(id) FROM main.event) - ?", (_MOST_EVENTS,))
    connection.execute("COMMIT")


def _groups(ticks: Sequence[tuple[int, float, int, bytes]]) -> list[list[tuple[int, float, int, bytes]]]:
    """Return ticks by stretches of ten minutes; one in which the clock goes back is divided there, so times always rise."""
    groups: list[list[tuple[int, float, int, bytes]]] = [[]]
    for tick in ticks:
        last = groups[-1]
        if last and (last[-1][1] // WINDOW != tick[1] // WINDOW or tick[1] < last[-1][1] or len(last) >= _MOST_TICKS):
            groups.append([])
        groups[-1].append(tick)
    return groups


def _write(connection: sqlite3.Connection, rows: Rows) -> None:
    newest = connection.execute("SELECT start FROM block WHERE tier = 0 ORDER BY id DESC LIMIT 1").fetchone()
    again = newest is not None and newest[0] // WINDOW == rows.times[0] // WINDOW
    for tier in TIERS:
        part = rows if tier.seconds == 0 else rolled_up(rows, tier.seconds)
        write_block(connection, tier.seconds, 0, part, 0 if again else WINDOW)


def _join(connection: sqlite3.Connection, place: tuple[int, int], span: int, damages: list[Damage]) -> Iterator[None]:
    """Join the blocks of each span that is over; the newest span still grows. `place` is their tier and level."""
    sql = "SELECT id, start FROM main.block WHERE tier = ? AND level = ? ORDER BY id"
    found = connection.execute(sql, place).fetchall()
    first = 0
    for at in range(1, len(found)):
        if found[at][1] // span != found[first][1] // span:
            together = _blocks(connection, [id for id, _ in found[first:at]])
            first = at
            pieces = _read_all(connection, together, damages)
            connection.execute("BEGIN IMMEDIATE")
            _delete(connection, together)
            if pieces:
                covered = sum(block.covered for block in together)
                write_block(connection, place[0], place[1] + 1, joined(pieces), covered)
            connection.execute("COMMIT")
            yield


def _read_all(connection: sqlite3.Connection, blocks: Sequence[BlockRow], damages: list[Damage]) -> list[Rows]:
    """Return the rows of blocks as far as they are sound."""
    pieces = []
    for block in blocks:
        if (rows := read_block(connection, block)) is not None:
            pieces.append(rows)
        damages += damage_of(block)
    return pieces


def _expire(connection: sqlite3.Connection, tier: Tier) -> None:
    kept = 0.0
    old: list[int] = []
    sql = "SELECT id, covered FROM main.block WHERE tier = ? ORDER BY id DESC"
    for block, covered in connection.execute(sql, (tier.seconds,)):
        if kept >= tier.keep:
            old.append(block)
        kept += covered
    _delete(connection, _blocks(connection, old))


def _blocks(connection: sqlite3.Connection, ids: list[int]) -> list[BlockRow]:
    return [block for id in ids for block in blocks_where(connection, "id = ?", (id,))]


def _shrink(connection: sqlite3.Connection, limit: int) -> None:
    """Delete oldest blocks of the tier that has most values, until the file's used pages fit the limit."""
    while _used(connection) > limit:
        largest = connection.execute(
            "SELECT tier FROM block GROUP BY tier ORDER BY sum(row_count * length(parts)) DESC"
        ).fetchone()
        if largest is None:
            return
        _delete(connection, blocks_where(connection, "tier = ?", largest, "ORDER BY id LIMIT 8"))


def _used(connection: sqlite3.Connection) -> int:
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def _delete(connection: sqlite3.Connection, blocks: Sequence[BlockRow]) -> None:
    for block in blocks:
        parts = [(id,) for id, _, _ in unpack_parts(block.parts)]
        connection.executemany("DELETE FROM part WHERE id = ?", parts)
        connection.execute("DELETE FROM main.block WHERE id = ?", (block.id,))
