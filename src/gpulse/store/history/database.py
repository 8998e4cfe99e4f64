"""The file itself: its tables, the checksums of their rows, and how writer and readers open it.

Every table but `meta` and `part` has a column `sum` over the other columns. On each connection a temporary view hides the
table of the same name and shows only the rows whose checksum is right, so queries need not know about checksums; statements
that write name the table itself as `main.TABLE`. The checksums of parts are in the row of their block.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import time
from zlib import crc32

from ..place import HistoryError, let_group_read

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


def add_views(connection: sqlite3.Connection) -> None:
    """Hide each table behind a view of its sound rows."""
    connection.create_function("checksum", -1, checksum, deterministic=True)
    for table, columns in COLUMNS.items():
        names = ", ".join(columns if columns[0] == "id" or table == "usage" else ("id", *columns))
        # an index may be damaged as well: it would hide sound blocks
        plan = " NOT INDEXED" if table == "block" else ""
        sql = f"SELECT {names} FROM main.{table}{plan} WHERE {is_sound(table)}"
        if table in COPIED:
            sql += f" UNION SELECT {names} FROM main.{table}_copy WHERE {is_sound(f'{table}_copy')}"
        connection.execute(f"CREATE TEMP VIEW {table} AS {sql}")


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


def _checked_as(table: str) -> str:
    return table.removesuffix("_copy")


def _sum(table: str, expressions: list[str]) -> str:
    """Text goes in as bytes: damaged text may not be UTF-8, which a function in Python cannot be given."""
    given = ", ".join(f"CASE typeof({one}) WHEN 'text' THEN CAST({one} AS BLOB) ELSE {one} END" for one in expressions)
    return f"checksum('{_checked_as(table)}', {given})"


# the first and the last moment of which there are values
SPAN = "SELECT min(start), max(stop) FROM (SELECT start, stop FROM block UNION ALL SELECT time, time FROM tick)"
BROKEN = (sqlite3.Error, UnicodeDecodeError)  # the latter when SQLite quotes a damaged name in its message
FORMAT = 3  # of the tables; a file with another one is refused, and left as it is
_APPLICATION = 0x67707568  # "gpuh": tells our files from other SQLite databases

# A tick is one row of float64, all values of a moment in the order of its layout, until its ten minutes are over; then they
# become blocks, one for each tier, with a part for each GPU (and one for the host, gpu 0). `covered` is the recorded time a
# block stands for: what is kept is counted in it and not in dates, so a clock that leaps deletes nothing. `parts` names the
# rows of a block's parts, and `sum` is a checksum of the row. Few processes have a `label`.
_TABLES = """
CREATE TABLE gpu(id INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE, sum INTEGER);
CREATE TABLE fact(id INTEGER PRIMARY KEY, gpu INTEGER NOT NULL, since REAL NOT NULL, facts TEXT NOT NULL, sum INTEGER);
CREATE TABLE slot(id INTEGER PRIMARY KEY, gpu INTEGER NOT NULL, key TEXT NOT NULL, sum INTEGER, UNIQUE(gpu, key));
CREATE TABLE layout(id INTEGER PRIMARY KEY, slots BLOB NOT NULL, sum INTEGER);
CREATE TABLE tick(id INTEGER PRIMARY KEY, time REAL NOT NULL, layout INTEGER NOT NULL, data BLOB NOT NULL, sum INTEGER);
CREATE TABLE block(id INTEGER PRIMARY KEY, tier INTEGER NOT NULL, level INTEGER NOT NULL, start REAL NOT NULL,
    stop REAL NOT NULL, covered REAL NOT NULL, row_count INTEGER NOT NULL, times BLOB NOT NULL, parts BLOB, sum INTEGER);
CREATE TABLE part(id INTEGER PRIMARY KEY, block INTEGER NOT NULL, gpu INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE process(id INTEGER PRIMARY KEY, gpu INTEGER NOT NULL, pid INTEGER NOT NULL, started REAL, user TEXT, name TEXT,
    command TEXT, job TEXT, container TEXT, pod TEXT, sum INTEGER);
CREATE INDEX process_of ON process(gpu, pid);
CREATE TABLE usage(process INTEGER NOT NULL, hour INTEGER NOT NULL, first REAL NOT NULL, last REAL NOT NULL,
    seconds REAL NOT NULL, held REAL NOT NULL, memory_most REAL, memory_seconds REAL, busy_seconds REAL, energy REAL,
    sum INTEGER, PRIMARY KEY(process, hour)) WITHOUT ROWID;
CREATE INDEX usage_when ON usage(last);
CREATE TABLE event(id INTEGER PRIMARY KEY, time REAL NOT NULL, gpu INTEGER, kind TEXT NOT NULL, text TEXT NOT NULL,
    until REAL, data TEXT, sum INTEGER);
CREATE INDEX event_when ON event(time);
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE gpu_copy(id INTEGER PRIMARY KEY, uuid TEXT NOT NULL, sum INTEGER);
CREATE TABLE slot_copy(id INTEGER PRIMARY KEY, gpu INTEGER NOT NULL, key TEXT NOT NULL, sum INTEGER);
CREATE TABLE layout_copy(id INTEGER PRIMARY KEY, slots BLOB NOT NULL, sum INTEGER);
CREATE TABLE label(id INTEGER PRIMARY KEY, project TEXT, job_name TEXT, sum INTEGER);
"""
_BEGINNING = 512  # bytes that tell a text from a damaged history
_HOST_ROW = f"(0, '', {checksum('gpu', 0, '')})"  # the machine itself, as GPU 0


def open_to_write(path: str, mode: int) -> sqlite3.Connection:
    """Open a history, made when missing or empty; raise HistoryError when it is not one that this version can go on with.

    Raises sqlite3.DatabaseError when it is damaged.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        with os.fdopen(handle, "rb") as file:
            _refuse_foreign(path, file.read(_BEGINNING))
        let_group_read(path, mode)  # SQLite gives the files beside it the same mode and group
    except OSError as error:
        raise HistoryError(f"{path} cannot be opened: {error.strerror}.") from None
    connection = sqlite3.connect(path, timeout=2.0, isolation_level=None, check_same_thread=False)
    try:
        if not _is_ours(connection, path):
            create_tables(connection)
        connection.execute("PRAGMA journal_mode=WAL").fetchone()
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA journal_size_limit=4194304").fetchone()
        add_views(connection)
        heal(connection)
    except BaseException:  # whatever it was, the file must not stay open
        connection.close()
        raise
    return connection


def create_tables(connection: sqlite3.Connection) -> None:
    """Make an empty history."""
    connection.executescript(
        f"PRAGMA auto_vacuum=NONE; PRAGMA journal_mode=WAL; BEGIN; {_TABLES} "
        f"INSERT INTO gpu VALUES{_HOST_ROW}; INSERT INTO gpu_copy VALUES{_HOST_ROW}; "
        f"PRAGMA application_id={_APPLICATION}; PRAGMA user_version={FORMAT}; COMMIT;"
    )


def open_to_read(path: str) -> sqlite3.Connection:
    """Open a history that somebody else may be writing; raise HistoryError when it is not there or cannot be read.

    Raises sqlite3.DatabaseError when it is damaged.
    """
    if not os.path.exists(path):
        raise HistoryError(
            f"no history found at {path}.",
            "Record one with Monitor(HistorySink()).",
            option="Record one with `gpulse record --history` or `gpulse serve`.",
        )
    from urllib.parse import quote

    try:
        with open(path, "rb") as file:
            _refuse_foreign(path, file.read(_BEGINNING))
    except OSError as error:
        raise HistoryError(f"{path} cannot be read: {error.strerror}.") from None
    address = f"file:{quote(os.path.abspath(path))}?mode=ro"
    try:
        connection = _opened(address, path)
    except BROKEN as error:
        if is_damage(error):
            raise
        if os.path.exists(f"{path}-wal") and os.path.getsize(f"{path}-wal"):
            raise HistoryError(f"{path} cannot be read: {error}.") from None
        try:  # nobody writes it, and in its folder a reader may not make the files that sharing takes
            connection = _opened(f"{address}&immutable=1", path)
        except BROKEN:
            raise HistoryError(f"{path} cannot be read: {error}.") from None
    return connection


def set_aside(path: str) -> str:
    """Rename a damaged history and what lies beside it; return the new name."""
    aside = f"{path}.damaged-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}"
    for end in ("", "-wal", "-shm"):
        if os.path.exists(path + end):
            os.rename(path + end, aside + end)
    return aside


def is_damage(error: Exception) -> bool:
    """Return whether an error says that the file itself is bad, and not the disk or the moment."""
    words = ("malformed", "not a database", "no such table", "no such column", "corrupt", "too big")
    if isinstance(error, sqlite3.DatabaseError):
        return any(word in str(error) for word in words)
    return isinstance(error, UnicodeDecodeError)


def _opened(address: str, path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(address, uri=True, timeout=2.0, isolation_level=None, check_same_thread=False)
    try:
        if not _is_ours(connection, path):
            raise HistoryError(f"{path} contains no history yet;", "nothing has been recorded.")
        add_views(connection)
    except BaseException:  # whatever it was, the file must not stay open
        connection.close()
        raise
    return connection


def _refuse_foreign(path: str, beginning: bytes) -> None:
    """Raise HistoryError for a recording or another text, which a history does not become by damage; it is not ours to rename."""
    if beginning.startswith(b"\x1f\x8b\x08") or (beginning and beginning.isascii() and b"\x00" not in beginning):
        raise HistoryError(f"{path} is not a history of gpulse;", "name another file.")


def _is_ours(connection: sqlite3.Connection, path: str) -> bool:
    """Return whether the file is a history, False when it is empty; raise HistoryError when it is something else or of another format."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not tables and not application:
        return False
    columns = {row[1] for row in connection.execute("PRAGMA main.table_info(block)")}
    if application != _APPLICATION and not columns >= {"tier", "level", "covered"}:
        raise HistoryError(f"{path} is a database, but not a history of gpulse;", "name another file.")
    if version > FORMAT:
        raise HistoryError(
            f"{path} was written by a newer gpulse (format {version}, this version reads {FORMAT});",
            "update gpulse, or name another file.",
        )
    if version < FORMAT and "sum" not in columns:  # else, only the number in the header is damaged
        raise HistoryError(
            f"{path} has format {version}, which no release of gpulse wrote (this version reads {FORMAT});",
            "move it away, and a new one is begun; or name another file.",
        )
    return True
