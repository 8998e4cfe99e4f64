"""Verifying: whether every row of a history is as it was written, a repair that drops only what is not, and a copy of what is readable."""

from __future__ import annotations

import os
import sqlite3

from ...value import Value, fresh
from ..place import HistoryError, WriterLock, path_to_read, prepare
from . import database
from .accounts import row_of
from .answers import uuids_of
from .blocks import Damage, blocks_where, damage_of, damaged_rows, delete_damaged_blocks, events_of, read_block

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ...model.event import Event
    from .blocks import BlockRow

_MESSAGES = 20  # of SQLite about damaged pages


class Verification(Value):
    """What is damaged: `pages` as SQLite says it, `rows` by table, and `events` with the stretches of time."""

    blocks: int = 0
    ticks: int = 0
    pages: list[str] = fresh(factory=list)
    rows: dict[str, int] = fresh(factory=dict)
    events: list[Event] = fresh(factory=list)

    @property
    def sound(self) -> bool:
        """Whether nothing is damaged."""
        return not (self.pages or self.rows or self.events)

    @property
    def only_indexes(self) -> bool:
        """Whether SQLite complains of nothing but indexes, which can be rebuilt."""
        return all("index" in message for message in self.pages)


def verify(path: str) -> Verification:
    """Check a history; raise HistoryError when there is none or it cannot be opened."""
    found = Verification()
    connection: sqlite3.Connection | None = None
    try:
        connection = database.open_to_read(path_to_read(path))
        for (message,) in connection.execute(f"PRAGMA main.integrity_check({_MESSAGES})"):
            found.pages += [] if message == "ok" else str(message).splitlines()
        _check(connection, found)
    except database.BROKEN as error:
        if not database.is_damage(error):
            raise HistoryError(f"{path} cannot be read: {error}.") from None
        found.pages.append(str(error))
    finally:
        if connection is not None:
            connection.close()
    return found


def repair(path: str, found: Verification) -> str:
    """Drop what is damaged and nothing else; return what was done, as a sentence. Raises HistoryError when it cannot be.

    A file whose pages are damaged is copied as far as it is readable, and kept beside the copy.
    """
    mode = prepare(path)
    lock = WriterLock(path, mode)
    try:
        if found.pages and not found.only_indexes:
            aside, saved = set_aside_and_save(path, mode)
            return f"the damaged file was renamed to {aside}; {saved.text}."
        _repair(path, mode, bool(found.pages))
        return "what was damaged was deleted; everything else was kept."
    except (OSError, *database.BROKEN) as error:
        raise HistoryError(f"{path} cannot be repaired: {error}.") from None
    finally:
        lock.release()


def _repair(path: str, mode: int, reindex: bool) -> None:
    connection = database.open_to_write(path, mode)
    try:
        if reindex:
            connection.execute("REINDEX")
            database.heal(connection)
        connection.execute("BEGIN IMMEDIATE")
        _check(connection, Verification(), drop=True)
        connection.execute("COMMIT")
    finally:
        connection.close()


def _check(connection: sqlite3.Connection, found: Verification, *, drop: bool = False) -> None:
    """Read every row, and `drop` what is damaged if asked to; the caller commits."""
    damages = damaged_rows(connection)
    if drop:
        delete_damaged_blocks(connection)
    for block in blocks_where(connection, "1", ()):
        whole = read_block(connection, block) is None
        damages += damage_of(block)
        found.blocks += 1
        if drop and block.damaged:
            _drop(connection, block, whole)
    for table in database.COLUMNS:
        damaged = f"FROM main.{table} NOT INDEXED WHERE NOT {database.is_sound(table)}"
        if (count := connection.execute(f"SELECT count(*) {damaged}").fetchone()[0]) > 0:
            found.rows[table] = count
            if drop:
                connection.execute(f"DELETE {damaged}")
    (found.ticks,) = connection.execute("SELECT count(*) FROM tick").fetchone()
    found.events = events_of(connection, damages)
    for event in found.events if drop else ():
        number = next((id for id, uuid in uuids_of(connection).items() if (uuid,) == event.uuids), None)
        connection.execute(database.insertion("event"), row_of(event, number))


def _drop(connection: sqlite3.Connection, block: BlockRow, whole: bool) -> None:
    """Delete the damaged parts of a block, or the `whole` block."""
    parts = database.unpack_parts(block.parts)
    kept = [part for part in parts if not whole and part[1] not in block.damaged]
    connection.executemany("DELETE FROM part WHERE id = ?", [part[:1] for part in parts if part not in kept])
    if whole:
        connection.execute("DELETE FROM main.block WHERE id = ?", (block.id,))
        return
    connection.execute("UPDATE main.block SET parts = ? WHERE id = ?", (database.pack_parts(kept), block.id))
    connection.execute(f"UPDATE main.block SET sum = {database.sum_of('block')} WHERE id = ?", (block.id,))


# In this order: rows of later tables refer to those of earlier ones.
_TABLES = ("gpu", "slot", "layout", "fact", "block", "part", "tick", "process", "usage", "event", "meta", "label")
_PAGE = 4096
_FURTHEST = 1 << 40  # how far ahead the next readable row is looked for


class Saved(Value):
    """What a salvage copied: rows by table, the stretch in which something is missing, and whether all tables were found."""

    complete: bool = False
    rows: dict[str, int] = fresh(factory=dict)
    damages: list[Damage] = fresh(factory=list)

    @property
    def found_any(self) -> bool:
        """Whether any values were copied."""
        return bool(self.rows.get("tick") or self.rows.get("block"))

    @property
    def text(self) -> str:
        """What became of the content, as the end of a sentence."""
        kept = self.rows.get("tick", 0), self.rows.get("block", 0)
        return (
            f"{kept[1]} blocks and {kept[0]} samples were saved into a new one"
            if any(kept)
            else "a new one was started"
        )


def set_aside_and_save(path: str, mode: int) -> tuple[str, Saved]:
    """Rename a damaged history and copy what is readable into a new one in its place; return the new name and what was copied.

    Raises OSError when it cannot be renamed.
    """
    aside = database.set_aside(path)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode))
    try:
        return aside, save(aside, path)
    except database.BROKEN:  # the disk is full, or nothing at all can be read
        for end in ("", "-wal", "-shm"):
            if os.path.exists(path + end):
                os.unlink(path + end)
        return aside, Saved()


def open_copy(damaged: str) -> tuple[sqlite3.Connection, Saved]:
    """Return a connection to a copy of what is readable, which is gone when it is closed, and what was copied.

    Raises sqlite3.DatabaseError when nothing is.
    """
    import tempfile

    with tempfile.TemporaryDirectory() as folder:  # SQLite keeps an open file that has been deleted
        fresh = os.path.join(folder, "history.db")
        saved = save(damaged, fresh)
        if not saved.found_any:
            raise sqlite3.DatabaseError("database disk image is malformed, and nothing of it is readable")
        connection = sqlite3.connect(fresh, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode=MEMORY").fetchone()
        database.add_views(connection)
        return connection, saved


def save(damaged: str, fresh: str) -> Saved:
    """Copy what is readable and as it was written from one file into another, which must be empty."""
    target = sqlite3.connect(fresh, timeout=2.0, isolation_level=None)
    try:
        target.create_function("checksum", -1, database.checksum, deterministic=True)
        database.create_tables(target)
        saved = _save(damaged, target)
        if not saved.complete:
            more = _save_with_schema_of(fresh, damaged, target)
            saved.rows = {table: saved.rows.get(table, 0) + more.rows.get(table, 0) for table in _TABLES}
            saved.damages += more.damages
    finally:
        target.close()
    return saved


def _save(damaged: str, target: sqlite3.Connection) -> Saved:
    saved = Saved()
    source = sqlite3.connect(damaged, timeout=2.0, isolation_level=None)
    try:
        source.execute("PRAGMA writable_schema=ON")  # or SQLite refuses a file that has been cut off
        source.text_factory = lambda raw: raw.decode("utf-8", "replace")
        source.create_function("checksum", -1, database.checksum, deterministic=True)
        # the description of a table may be damaged as well
        sound = [table for table in _TABLES if set(_columns(target, table)) <= set(_columns(source, table))]
        target.execute("BEGIN IMMEDIATE")
        for table in sound:
            _copy(source, target, table, saved)
        saved.complete = len(sound) == len(_TABLES)
        target.execute("COMMIT")
        saved.damages = _holes(target) if saved.found_any else []
    except database.BROKEN:
        if target.in_transaction:
            target.execute("ROLLBACK")
        return Saved()
    finally:
        source.close()
    return saved


def _save_with_schema_of(fresh: str, damaged: str, target: sqlite3.Connection) -> Saved:
    """Read a file whose first page is damaged with that of a new file: their tables begin at the same pages."""
    import shutil
    import tempfile

    target.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    with open(fresh, "rb") as file:
        page = bytearray(file.read(_PAGE))
    page[92:96] = b"\xff\xff\xff\xff"  # not valid for this state of the file: SQLite then counts the pages itself
    page[32:40] = bytes(8)
    with tempfile.TemporaryDirectory() as folder:
        patched = shutil.copy(damaged, folder)
        with open(patched, "r+b") as file:
            file.write(page)
        return _save(patched, target)


def _copy(source: sqlite3.Connection, target: sqlite3.Connection, table: str, saved: Saved) -> None:
    wanted = _columns(target, table)
    places = ", ".join("?" * len(wanted))
    sql = f"INSERT OR IGNORE INTO {table}({', '.join(wanted)}) VALUES({places})"
    twins = [table, f"{table}_copy"] if table in database.COPIED else [table]
    for twin in twins:
        for row in _readable(source, twin, wanted):
            try:
                saved.rows[table] = saved.rows.get(table, 0) + target.execute(sql, row).rowcount
                if table in database.COPIED:
                    target.execute(sql.replace(f"INTO {table}(", f"INTO {table}_copy("), row)
            except (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.InterfaceError, ValueError):
                continue  # not a row that was ever written


def _readable(source: sqlite3.Connection, table: str, columns: list[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows that SQLite can reach, in the order of their keys; where it cannot, go on behind the damage."""
    key = {"usage": "process", "meta": "key"}.get(table, "id")
    checked = f"AND {database.is_sound(table)}" if "sum" in columns else ""
    sql = f"SELECT {key}, {', '.join(columns)} FROM {table} NOT INDEXED WHERE {key} > ? {checked} ORDER BY {key}"
    last: Any = "" if table == "meta" else -1
    step = 1
    while step < _FURTHEST:
        try:
            for key_value, *row in source.execute(sql, (last,)):
                yield tuple(row)
                if key_value > last:
                    last, step = key_value, 1
            return
        except (*database.BROKEN, TypeError):
            if table == "meta":
                return
            last, step = last + step, 2 * step


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    try:
        return [row[1] for row in connection.execute(f"PRAGMA main.table_info({table})")]
    except database.BROKEN:
        return []


def _holes(target: sqlite3.Connection) -> list[Damage]:
    """Return the stretch of the copy: within it, values are missing that cannot be named any more."""
    first, last = target.execute(database.SPAN).fetchone()
    return [] if first is None else [Damage(first, last)]
