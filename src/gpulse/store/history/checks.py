"""Checksums of rows: a row whose bytes are not what was written is never read.

Every table but `meta` and `part` has a column `sum` over the other columns. On each connection a temporary view hides the
table of the same name and shows only the rows whose checksum is right, so queries need not know about checksums; statements
that write name the table itself as `main.TABLE`. The checksums of parts are in the row of their block.
"""

from __future__ import annotations

import struct
from zlib import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

COLUMNS: dict[str, tuple[str, ...]] = {
    "gpu": ("id", "uuid"),
    "fact": ("gpu", "since", "facts"),
    "slot": ("id", "gpu", "key"),
    "layout": ("id", "slots"),
    "tick": ("time", "layout", "data"),
    "block": ("id", "tier", "level", "start", "stop", "covered", "row_count", "times", "parts"),
    "process": ("id", "gpu", "pid", "started", "user", "name", "command", "job", "container", "pod"),
    "usage": (
        "process", "hour", "first", "last", "seconds", "held", "memory_most", "memory_seconds", "busy_seconds", "energy",
    ),
    "event": ("time", "until", "gpu", "kind", "text", "data"),
    "label": ("id", "project", "job_name"),
}  # fmt: skip
_NO_LABELS = "CREATE TEMP VIEW label AS SELECT NULL AS id, NULL AS project, NULL AS job_name WHERE 0"
# A damaged row of these would cost a whole GPU or metric, so each row is kept twice.
COPIED = ("gpu", "slot", "layout")
_NUMBER = struct.Struct("<d")
_PART = struct.Struct("<QII")  # row, GPU and checksum of a part


def checksum(table: str, *values: float | bytes | str | None) -> int:
    """Return the CRC-32 of values as SQLite stores them: integers and floats that are equal count as equal."""
    sum = crc32(table.encode())
    for value in values:
        if value is None:
            data = b"n"
        elif isinstance(value, (int, float)):
            data = _NUMBER.pack(value + 0.0)  # SQLite knows no -0.0
        else:
            data = value.encode() if isinstance(value, str) else value
            sum = crc32(b"%d:" % len(data), sum)
        sum = crc32(data, sum)
    return sum


def insertion(table: str) -> str:
    """Return the statement that inserts a row with its checksum; its parameters are the columns in the order of COLUMNS."""
    columns = COLUMNS[_checked_as(table)]
    given = [f"?{at}" for at in range(1, len(columns) + 1)]
    return f"INSERT INTO main.{table}({', '.join(columns)}, sum) VALUES({', '.join(given)}, {_sum(table, given)})"


def sum_of(table: str, **changed: str) -> str:
    """Return the SQL expression of a row's checksum, with other expressions in place of some columns."""
    return _sum(table, [changed.get(name, name) for name in COLUMNS[_checked_as(table)]])


def is_sound(table: str) -> str:
    """Return the SQL condition that a row is as it was written."""
    return f"(sum IS {sum_of(table)})"


def add_views(connection: sqlite3.Connection, version: int) -> None:
    """Hide each table behind a view of its sound rows; files of earlier versions have no checksums to compare."""
    connection.create_function("checksum", -1, checksum, deterministic=True)
    if version < 3:
        connection.execute("CREATE TEMP VIEW block AS SELECT *, NULL AS parts FROM main.block")
    if version < 3 or "label" not in tables_of(connection):
        connection.execute(_NO_LABELS)
    for table in tables_of(connection) if version >= 3 else ():
        columns = COLUMNS[table]
        names = ", ".join(columns if columns[0] == "id" or table == "usage" else ("id", *columns))
        # an index may be damaged as well: it would hide sound blocks
        plan = " NOT INDEXED" if table == "block" else ""
        sql = f"SELECT {names} FROM main.{table}{plan} WHERE {is_sound(table)}"
        if table in COPIED:
            sql += f" UNION SELECT {names} FROM main.{table}_copy WHERE {is_sound(f'{table}_copy')}"
        connection.execute(f"CREATE TEMP VIEW {table} AS {sql}")


def tables_of(connection: sqlite3.Connection) -> list[str]:
    """Return the tables with checksums that a file has: earlier versions kept no labels."""
    return [table for table in COLUMNS if table != "label" or has_labels(connection)]


def has_labels(connection: sqlite3.Connection) -> bool:
    """Return whether a file has a table of labels."""
    return bool(connection.execute("PRAGMA main.table_info(label)").fetchall())


def stamp(connection: sqlite3.Connection) -> None:
    """Give all rows their checksums, as they are; the caller commits."""
    for block, parts in _parts_of_blocks(connection).items():
        connection.execute("UPDATE main.block SET parts = ? WHERE id = ?", (pack_parts(parts), block))
    for table in tables_of(connection):
        connection.execute(f"UPDATE main.{table} SET sum = {sum_of(table)}")
    for table in COPIED:
        connection.execute(f"DELETE FROM main.{table}_copy")
        connection.execute(f"INSERT INTO main.{table}_copy SELECT * FROM main.{table}")


def heal(connection: sqlite3.Connection) -> None:
    """Restore rows that are kept twice from the one of the two that is sound."""
    connection.execute("BEGIN IMMEDIATE")
    for table in COPIED:
        for one, other in ((table, f"{table}_copy"), (f"{table}_copy", table)):
            connection.execute(f"DELETE FROM main.{one} WHERE NOT {is_sound(one)}")
            connection.execute(f"INSERT OR IGNORE INTO main.{one} SELECT * FROM main.{other} WHERE {is_sound(other)}")
    connection.execute("COMMIT")


def pack_parts(parts: list[tuple[int, int, int]]) -> bytes:
    """Return row, GPU and checksum of each part of a block as bytes."""
    return b"".join(_PART.pack(*part) for part in parts)


def unpack_parts(data: bytes) -> list[tuple[int, int, int]]:
    """Return row, GPU and checksum of each part of a block."""
    return list(_PART.iter_unpack(data))


def _parts_of_blocks(connection: sqlite3.Connection) -> dict[int, list[tuple[int, int, int]]]:
    found: dict[int, list[tuple[int, int, int]]] = {}
    for id, block, gpu, data in connection.execute("SELECT id, block, gpu, data FROM part ORDER BY id"):
        found.setdefault(block, []).append((id, gpu, crc32(data)))
    return found


def _checked_as(table: str) -> str:
    return table.removesuffix("_copy")


def _sum(table: str, expressions: list[str]) -> str:
    """Text goes in as bytes: damaged text may not be UTF-8, which a function in Python cannot be given."""
    given = ", ".join(f"CASE typeof({one}) WHEN 'text' THEN CAST({one} AS BLOB) ELSE {one} END" for one in expressions)
    return f"checksum('{_checked_as(table)}', {given})"
