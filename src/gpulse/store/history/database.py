"""The file itself: its tables, and how writer and readers open it."""

from __future__ import annotations

import os
import sqlite3
import time

from .checks import COLUMNS, add_views, checksum, heal, stamp
from .failure import HistoryError
from .place import let_group_read

BROKEN = (sqlite3.Error, UnicodeDecodeError)  # the latter when SQLite quotes a damaged name in its message
FORMAT = 3  # of the tables; a file with a higher one is refused
_APPLICATION = 0x67707568  # "gpuh": tells our files from other SQLite databases

# A tick is one row of float64, all values of a moment in the order of its layout, until its ten minutes are over; then they
# become blocks, one for each tier, with a part for each GPU (and one for the host, gpu 0). `covered` is the recorded time a
# block stands for: what is kept is counted in it and not in dates, so a clock that leaps deletes nothing. `parts` names the
# rows of a block's parts, and `sum` is a checksum of the row (see checks.py).
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
"""
_COPIES = """
CREATE TABLE gpu_copy(id INTEGER PRIMARY KEY, uuid TEXT NOT NULL, sum INTEGER);
CREATE TABLE slot_copy(id INTEGER PRIMARY KEY, gpu INTEGER NOT NULL, key TEXT NOT NULL, sum INTEGER);
CREATE TABLE layout_copy(id INTEGER PRIMARY KEY, slots BLOB NOT NULL, sum INTEGER);
"""
# The names of a process that few have. A version that does not know the table leaves it alone.
_LABELS = "CREATE TABLE IF NOT EXISTS label(id INTEGER PRIMARY KEY, project TEXT, job_name TEXT, sum INTEGER);"
# Format 1 kept a text for each event, no values; formats 1 and 2 had no checksums.
_UPGRADES = {
    1: "ALTER TABLE event ADD COLUMN until REAL; ALTER TABLE event ADD COLUMN data TEXT;",
    2: "".join(f"ALTER TABLE {table} ADD COLUMN sum INTEGER; " for table in COLUMNS if table != "label")
    + f"ALTER TABLE block ADD COLUMN parts BLOB; DROP INDEX block_when; DROP INDEX part_of; {_COPIES}",
}
_HOST_ROW = f"(0, '', {checksum('gpu', 0, '')})"  # the machine itself, as GPU 0


def open_to_write(path: str, mode: int) -> sqlite3.Connection:
    """Open a history, made when missing or empty; raise HistoryError when it is not one that this version can go on with.

    Raises sqlite3.DatabaseError when it is damaged.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        os.close(handle)
        let_group_read(path, mode)  # SQLite gives the files beside it the same mode and group
    except OSError as error:
        raise HistoryError(f"{path} cannot be opened: {error.strerror}.") from None
    connection = sqlite3.connect(path, timeout=2.0, isolation_level=None, check_same_thread=False)
    try:
        if not _is_ours(connection, path):
            create_tables(connection)
        connection.execute("PRAGMA journal_mode=WAL").fetchone()
        _upgrade(connection)
        connection.execute(_LABELS)
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA journal_size_limit=4194304").fetchone()
        add_views(connection, FORMAT)
        heal(connection)
    except BaseException:  # whatever it was, the file must not stay open
        connection.close()
        raise
    return connection


def create_tables(connection: sqlite3.Connection) -> None:
    """Make an empty history."""
    connection.executescript(
        f"PRAGMA auto_vacuum=NONE; PRAGMA journal_mode=WAL; BEGIN; {_TABLES} {_COPIES} {_LABELS} "
        f"INSERT INTO gpu VALUES{_HOST_ROW}; INSERT INTO gpu_copy VALUES{_HOST_ROW}; "
        f"PRAGMA application_id={_APPLICATION}; PRAGMA user_version={FORMAT}; COMMIT;"
    )


def _upgrade(connection: sqlite3.Connection) -> None:
    """Bring a file of an earlier version to this one, whole or not at all."""
    version = version_of(connection)
    if version == FORMAT:
        return
    connection.create_function("checksum", -1, checksum, deterministic=True)
    connection.execute("BEGIN IMMEDIATE")
    for number in range(version, FORMAT):
        for statement in _UPGRADES[number].split(";"):
            connection.execute(statement)
    stamp(connection)
    connection.execute(f"PRAGMA user_version={FORMAT}")
    connection.execute("COMMIT")


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


def version_of(connection: sqlite3.Connection) -> int:
    """Return the format of a file; one with checksums is no earlier one, whatever its damaged header says."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return max(int(version), 3) if "sum" in _columns_of_blocks(connection) else int(version)


def _columns_of_blocks(connection: sqlite3.Connection) -> set[str]:
    return {row[1] for row in connection.execute("PRAGMA main.table_info(block)")}


def _opened(address: str, path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(address, uri=True, timeout=2.0, isolation_level=None, check_same_thread=False)
    try:
        if not _is_ours(connection, path):
            raise HistoryError(f"{path} contains no history yet;", "nothing has been recorded.")
        add_views(connection, version_of(connection))
    except BaseException:  # whatever it was, the file must not stay open
        connection.close()
        raise
    return connection


def _is_ours(connection: sqlite3.Connection, path: str) -> bool:
    """Return whether the file is a history, False when it is empty; raise HistoryError when it is something else or newer."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    version = version_of(connection)
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not tables and not application:
        return False
    if application != _APPLICATION and not _columns_of_blocks(connection) >= {"tier", "level", "covered"}:
        raise HistoryError(f"{path} is a database, but not a history of gpulse;", "name another file.")
    if version > FORMAT:
        raise HistoryError(
            f"{path} was written by a newer gpulse (format {version}, this version reads {FORMAT});",
            "update gpulse, or name another file.",
        )
    return True
