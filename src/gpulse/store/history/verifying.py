"""Verifying: whether every row of a history is as it was written, and a repair that drops only what is not."""

from __future__ import annotations

import sqlite3

from .answers import labels_of
from .blocks import blocks_where, read_block
from .checks import heal, insertion, is_sound, pack_parts, sum_of, tables_of, unpack_parts
from .damage import Damage, damage_of, damaged_rows, delete_damaged_blocks, events_of
from .database import BROKEN, is_damage, open_to_read, open_to_write, version_of
from .event_rows import row_of
from .failure import DamagedBlock, HistoryError
from .lock import WriterLock
from .place import check_access, prepare
from .salvage import set_aside_and_save

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.event import Event
    from .blocks import BlockRow

_MESSAGES = 20  # of SQLite about damaged pages


class Verification:
    """What is damaged: `pages` as SQLite says it, `rows` by table, and `events` with the stretches of time."""

    def __init__(self) -> None:
        self.blocks = self.ticks = 0
        self.pages: list[str] = []
        self.rows: dict[str, int] = {}
        self.events: list[Event] = []

    @property
    def sound(self) -> bool:
        """Whether nothing is damaged."""
        return not (self.pages or self.rows or self.events)

    @property
    def only_indexes(self) -> bool:
        """Whether SQLite complains of nothing but indexes, which can be built anew."""
        return all("index" in message for message in self.pages)


def verify(path: str) -> Verification:
    """Check a history; raise HistoryError when there is none or it cannot be opened."""
    check_access(path)
    found = Verification()
    connection: sqlite3.Connection | None = None
    try:
        connection = open_to_read(path)
        for (message,) in connection.execute(f"PRAGMA main.integrity_check({_MESSAGES})"):
            found.pages += [] if message == "ok" else str(message).splitlines()
        _check_rows(connection, found)
    except BROKEN as error:
        if not is_damage(error):
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
        _drop(path, mode, bool(found.pages))
        return "what was damaged was deleted; everything else was kept."
    except (OSError, *BROKEN) as error:
        raise HistoryError(f"{path} cannot be repaired: {error}.") from None
    finally:
        lock.release()


def _check_rows(connection: sqlite3.Connection, found: Verification) -> None:
    checked = version_of(connection) >= 3
    for table in tables_of(connection) if checked else ():
        sql = f"SELECT count(*) FROM main.{table} NOT INDEXED WHERE NOT {is_sound(table)}"
        if (count := connection.execute(sql).fetchone()[0]) > 0:
            found.rows[table] = count
    damages = damaged_rows(connection)
    blocks = blocks_where(connection, "1", ())
    for block in blocks:
        damages += _damage_in(connection, block)
    found.blocks = len(blocks)
    (found.ticks,) = connection.execute("SELECT count(*) FROM tick").fetchone()
    uuids = dict(connection.execute("SELECT id, uuid FROM gpu"))
    found.events = events_of(damages, float("-inf"), float("inf"), uuids, labels_of(connection))


def _damage_in(connection: sqlite3.Connection, block: BlockRow) -> list[Damage]:
    try:
        read_block(connection, block)
    except DamagedBlock:
        return [Damage(block.start, block.stop + block.tier)]
    return damage_of(block)


def _drop(path: str, mode: int, reindex: bool) -> None:
    connection = open_to_write(path, mode)
    try:
        if reindex:
            connection.execute("REINDEX")
        heal(connection)
        uuids, labels = dict(connection.execute("SELECT id, uuid FROM gpu")), labels_of(connection)
        connection.execute("BEGIN IMMEDIATE")
        damages = damaged_rows(connection)
        delete_damaged_blocks(connection)
        for block in blocks_where(connection, "1", ()):
            if lost := _damage_in(connection, block):
                damages += lost
                _without(connection, block, [damage.gpu or 0 for damage in lost], whole=not block.damaged)
        for table in tables_of(connection):
            connection.execute(f"DELETE FROM main.{table} WHERE NOT {is_sound(table)}")
        for event in events_of(damages, float("-inf"), float("inf"), uuids, labels):
            number = next((id for id, uuid in uuids.items() if (uuid,) == event.uuids), None)
            connection.execute(insertion("event"), row_of(event, number))
        connection.execute("COMMIT")
    finally:
        connection.close()


def _without(connection: sqlite3.Connection, block: BlockRow, gpus: list[int], whole: bool) -> None:
    """Delete the parts of some GPUs of a block, or the `whole` block."""
    parts = unpack_parts(block.parts or b"")
    gone = [(id,) for id, gpu, _ in parts if whole or gpu in gpus]
    connection.executemany("DELETE FROM part WHERE id = ?", gone)
    if whole:
        connection.execute("DELETE FROM main.block WHERE id = ?", (block.id,))
        return
    kept = pack_parts([part for part in parts if part[1] not in gpus])
    connection.execute("UPDATE main.block SET parts = ? WHERE id = ?", (kept, block.id))
    connection.execute(f"UPDATE main.block SET sum = {sum_of('block')} WHERE id = ?", (block.id,))
