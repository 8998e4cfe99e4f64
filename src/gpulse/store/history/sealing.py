"""Sealing: ticks whose ten minutes are over become packed blocks of every tier, small blocks become larger ones, old ones go."""

from __future__ import annotations

from array import array

from .blocks import joined, read_block, rolled_up, ticks_to_rows, write_block
from .columns import coding_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from .blocks import Rows

WINDOW = 600  # seconds of ticks that are sealed together
SIZE_LIMIT = 1 << 30  # bytes; 90 days of 8 GPUs with 25 metrics each, a second apart, take 100 to 170 MB
_MOST_TICKS = 1200  # of one block, so that sealing ten ticks a second does not take a second at once
_MOST_EVENTS = 200_000
_REMEMBERED = 16  # times from which the interval of the recorder is known
_DAY = 86_400


class Tier:
    """A resolution: `seconds` a row (0: every tick), `spans` the growing stretches its blocks are joined to, `keep` how long it stays."""

    __slots__ = ("keep", "seconds", "spans")

    def __init__(self, seconds: int, spans: tuple[int, ...], keep: int) -> None:
        self.seconds = seconds
        self.spans = spans
        self.keep = keep


TIERS = (
    Tier(0, (), _DAY),
    Tier(10, (3600,), 7 * _DAY),
    Tier(60, (3600, 21_600), 90 * _DAY),
    Tier(600, (21_600, 4 * _DAY), 90 * _DAY),  # so that 90 days are drawn from 13,000 rows
)


def owners_of(connection: sqlite3.Connection) -> dict[int, tuple[int, int]]:
    """Return each slot's GPU and coding."""
    rows = connection.execute("SELECT id, gpu, key FROM slot")
    return {slot: (gpu, coding_of(key, host=gpu == 0)) for slot, gpu, key in rows}


def layouts_of(connection: sqlite3.Connection) -> dict[int, Sequence[int]]:
    """Return the slots of each layout that ticks have, in their order."""
    rows = connection.execute("SELECT id, slots FROM layout WHERE id IN (SELECT layout FROM tick)")
    return {layout: array("I", slots) for layout, slots in rows}


def times_before(connection: sqlite3.Connection, until: float = float("inf")) -> list[float]:
    """Return the times of the last ticks that are sealed, as far as they precede a moment."""
    found: list[float] = []
    for block, count, times in connection.execute(
        "SELECT id, row_count, times FROM block WHERE tier = 0 AND start < ? ORDER BY id DESC LIMIT ?",
        (until, _REMEMBERED),
    ).fetchall():
        found = [*read_block(connection, 0, block, count, times, {}).times, *found]
        if len(found) >= _REMEMBERED:
            break
    return [time for time in found if time < until][-_REMEMBERED:]


def seal(connection: sqlite3.Connection) -> set[int]:
    """Seal all ticks but those of the newest ten minutes; return the slots that had a value in the last block, if any."""
    ticks = connection.execute("SELECT id, time, layout, data FROM tick ORDER BY id").fetchall()
    used: set[int] = set()
    layouts, owners = layouts_of(connection), owners_of(connection)
    groups = _groups(ticks)
    before = times_before(connection) if len(groups) > 1 else []
    for group in groups[:-1]:
        rows = ticks_to_rows([tick[1:] for tick in group], layouts, owners, None, before)
        before = [*before, *rows.times][-_REMEMBERED:]
        connection.execute("BEGIN IMMEDIATE")
        _write(connection, rows)
        connection.execute("DELETE FROM tick WHERE id BETWEEN ? AND ?", (group[0][0], group[-1][0]))
        connection.execute("COMMIT")
        used = {
            slot
            for columns in rows.parts.values()
            for slot, column in columns.items()
            if not column.gaps or any(value == value for value in column.mean)
        }
    return used


def tidy(connection: sqlite3.Connection, size_limit: int = SIZE_LIMIT) -> Iterator[None]:
    """Join small blocks and delete what has been kept long enough, in steps of a tenth of a second or less."""
    for tier in TIERS:
        for level, span in enumerate(tier.spans):
            yield from _join(connection, tier.seconds, level, span)
    connection.execute("BEGIN IMMEDIATE")
    for tier in TIERS:
        _expire(connection, tier)
    _shrink(connection, size_limit)
    (oldest,) = connection.execute("SELECT min(start) FROM block").fetchone()
    if oldest is not None:
        connection.execute("DELETE FROM event WHERE time < ?", (oldest,))
        connection.execute("DELETE FROM usage WHERE last < ?", (oldest,))
        connection.execute("DELETE FROM process WHERE id NOT IN (SELECT process FROM usage)")
    connection.execute("DELETE FROM event WHERE id <= (SELECT max(id) FROM event) - ?", (_MOST_EVENTS,))
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


def _join(connection: sqlite3.Connection, tier: int, level: int, span: int) -> Iterator[None]:
    """Join the blocks of each span that is over; the newest span still grows."""
    found = connection.execute(
        "SELECT id, start, covered, row_count, times FROM block WHERE tier = ? AND level = ? ORDER BY id", (tier, level)
    ).fetchall()
    first = 0
    for at in range(1, len(found)):
        if found[at][1] // span != found[first][1] // span:
            together = found[first:at]
            first = at
            pieces = [read_block(connection, tier, block, count, times) for block, _, _, count, times in together]
            connection.execute("BEGIN IMMEDIATE")
            _delete(connection, [block for block, *_ in together])
            write_block(connection, tier, level + 1, joined(pieces), sum(covered for _, _, covered, *_ in together))
            connection.execute("COMMIT")
            yield


def _expire(connection: sqlite3.Connection, tier: Tier) -> None:
    kept = 0.0
    old: list[int] = []
    for block, covered in connection.execute(
        "SELECT id, covered FROM block WHERE tier = ? ORDER BY id DESC", (tier.seconds,)
    ):
        if kept >= tier.keep:
            old.append(block)
        kept += covered
    _delete(connection, old)


def _shrink(connection: sqlite3.Connection, limit: int) -> None:
    """Delete oldest blocks of the tier that takes most, until the file's used pages fit the limit."""
    while _used(connection) > limit:
        largest = connection.execute(
            "SELECT tier FROM block JOIN part ON part.block = block.id GROUP BY tier ORDER BY sum(length(data)) DESC"
        ).fetchone()
        if largest is None:
            return
        _delete(
            connection,
            [id for (id,) in connection.execute("SELECT id FROM block WHERE tier = ? ORDER BY id LIMIT 8", largest)],
        )


def _used(connection: sqlite3.Connection) -> int:
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def _delete(connection: sqlite3.Connection, blocks: list[int]) -> None:
    for block in blocks:
        connection.execute("DELETE FROM part WHERE block = ?", (block,))
        connection.execute("DELETE FROM block WHERE id = ?", (block,))
