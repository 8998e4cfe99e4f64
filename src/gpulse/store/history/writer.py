"""The writer: stores each snapshot within about a second, and never raises because of the disk."""

from __future__ import annotations

import os
import sqlite3
import time
from collections import deque
from itertools import chain

from ...model.event import Event
from ...model.snapshot import Problem
from ..liveness import boot_id as _boot_id
from ..place import HistoryError, WriterLock, default_path, prepare
from .accounts import Accounts, EventRows
from .answers import COUNTED_EVERY
from .blocks import Damage, events_of
from .database import BROKEN, insertion, is_damage, open_to_write
from .sealing import SIZE_LIMIT, WINDOW, seal, tidy
from .slots import Slots
from .verifying import set_aside_and_save

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from typing_extensions import Self

    from ...model.snapshot import Snapshot

_INSERT = insertion("tick")
_COMMIT_EVERY = 0.9  # seconds; a kill -9 costs at most this and one tick
_RETRY_EVERY = 5.0
_LEAP = 5.0  # seconds by which the clock must have been set back to be worth an event
_MOST_WAITING = 3600  # ticks kept in memory while the disk is full
_MOST_NEWS = 20_000  # statements of each kind that are, too


class HistoryWriter:
    """The one writer of a history. Used by one thread at a time; closed by its creator.

    Raises HistoryBusy when somebody else writes it and HistoryError when it cannot be kept there; afterwards it raises nothing:
    `problems` says what is wrong. A damaged block costs that block and is an event; a file that SQLite cannot read any more is
    set aside, never deleted, and what is readable is copied into a new one. Ticks are kept in the order they came and with the
    time they state: a clock that goes back overwrites nothing, and both stretches are there.
    """

    def __init__(self, path: str | None = None, *, clock: Any = time, size_limit: int = SIZE_LIMIT) -> None:
        self.path = path or default_path()
        self._clock = clock  # has `monotonic`
        self._size_limit = size_limit
        self._mode = prepare(self.path)
        self._lock = WriterLock(self.path, self._mode)
        self._damage: list[Problem] = []
        self._damages: list[Damage] = []  # found, and not yet an event
        self._trouble: Problem | None = None
        self._ticks: deque[tuple[float, int, bytes]] = deque(maxlen=_MOST_WAITING)
        self._lost = 0
        self._lost_before = 0
        self.failures = 0  # writes that failed since the start
        self._retry = self._committed = self._accounted = -1e9
        self._window: float | None = None
        self._hour: float | None = None
        self._last: float | None = None  # the time of the last tick
        self._connection: sqlite3.Connection | None = None
        try:
            self._begin()
        except BaseException:  # whatever it was, nothing of it stays held
            self._lock.release()
            raise

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong now, and files that had to be set aside since the start."""
        return (*self._damage, self._trouble) if self._trouble else tuple(self._damage)

    @property
    def writable(self) -> bool:
        """Whether the last write succeeded."""
        return self._trouble is None

    @property
    def waiting(self) -> int:
        """How many snapshots are in memory until they can be written."""
        return len(self._ticks)

    @property
    def lost(self) -> int:
        """How many snapshots were lost since the start: memory was full, or the file was removed or damaged."""
        return self._lost + self._lost_before

    @property
    def unwritten(self) -> int:
        """How many snapshots are not on the disk: those that wait for it, and those lost since the start."""
        return self.waiting + self.lost

    def add(self, snapshot: Snapshot, events: Iterable[Event] = ()) -> None:
        """Keep one snapshot, and the events that were found at it."""
        now = self._clock.monotonic()
        if self._last is None:
            self._note_start(snapshot.time)
        self._last = snapshot.time
        layout, data = self._slots.row(snapshot)
        self._lost += len(self._ticks) == _MOST_WAITING
        self._ticks.append((snapshot.time, layout, data))
        self._accounts.add(snapshot)
        for event in events:
            self._events.add(event)
        if now - self._committed >= _COMMIT_EVERY:
            self.flush()

    def flush(self) -> None:
        """Put on disk what waits, unless the disk has just refused."""
        now = self._committed = self._clock.monotonic()
        if now >= self._retry:
            self._attempt(now)

    def close(self) -> None:
        """Write what waits, and let others write; safe to call twice."""
        if self._connection is not None:
            if self._last is not None:
                self._events.add(Event(self._last, "stop", note=f"pid {os.getpid()}"))
            self._accounted = -1e9
            self._attempt(self._clock.monotonic())
            if self._events.news:  # of damage that was found while sealing
                self._attempt(self._clock.monotonic())
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _begin(self) -> None:
        try:
            self._take_up(open_to_write(self.path, self._mode))
        except BROKEN as error:
            if not is_damage(error):
                raise HistoryError(f"{self.path} cannot be opened: {error}.") from None
            try:
                self._set_aside(error)
                self._take_up(open_to_write(self.path, self._mode))
            except (OSError, *BROKEN) as again:
                raise HistoryError(f"{self.path} is damaged ({error}) and cannot be renamed: {again}.") from None

    def _take_up(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        try:
            self._slots = Slots(connection)
            self._events = EventRows(self._slots)
            self._events.close_open(connection)
            self._accounts = Accounts(connection, self._slots)
            known = connection.execute("SELECT value FROM meta WHERE key = 'boot'").fetchone()
            ended = connection.execute("SELECT time FROM event ORDER BY id DESC LIMIT 1").fetchone()
            connection.execute("SELECT max(id), max(stop) FROM block").fetchone()
        except BaseException:  # whatever it was, nothing of it stays held
            connection.close()
            raise
        self._inode = os.stat(self.path).st_ino
        self._known_boot: str | None = known[0] if known else None
        self._ended: float | None = ended[0] if ended else None  # when the writer before noted its last event
        self._last = None
        self._chores: Iterator[object] | None = None

    def _set_aside(self, error: Exception) -> None:
        aside, saved = set_aside_and_save(self.path, self._mode)
        message = f"the history {self.path} was damaged ({error}) and was renamed to {aside}; {saved.text}."
        self._damage.append(Problem("history", message, "Delete it if you do not need it."))
        self._damages += saved.damages

    def _attempt(self, now: float) -> None:
        try:
            self._write(now)
            self._trouble, self._retry = None, -1e9
            if self._lost and self._last is not None:
                self._events.add(Event(self._last, "dropped", value=float(self._lost)))
                self._lost_before += self._lost
                self._lost = 0
        except FileNotFoundError:
            self._start_over(None)
        except UnicodeDecodeError as error:
            self._start_over(error)
        except (sqlite3.InterfaceError, sqlite3.ProgrammingError, OverflowError, ValueError) as error:
            moment = time.time() if self._last is None else self._last
            self._start_over(None)  # something that SQLite will never take: without it, the next can be kept
            self._events.add(Event(moment, "dropped", note=str(error)))
        except (sqlite3.Error, OSError) as error:
            if isinstance(error, sqlite3.Error) and is_damage(error):
                self._start_over(error)
            else:
                self._give_up_for_now(error, now)

    def _write(self, now: float) -> None:
        connection = self._connection
        if connection is None or os.stat(self.path).st_ino != self._inode:
            raise FileNotFoundError  # somebody has removed it: what is written now would go nowhere
        if self._trouble is None and now - self._accounted >= COUNTED_EVERY:
            self._accounted = now
            self._accounts.news.extend(self._accounts.taken())
        news = self._slots.news, self._accounts.news, self._events.news  # in this order: the later refer to the earlier
        connection.execute("BEGIN IMMEDIATE")
        for sql, values in chain(*news):
            connection.execute(sql, values)
        connection.executemany(_INSERT, self._ticks)
        connection.execute("COMMIT")
        newest = self._ticks[-1][0] if self._ticks else None
        for written in (*news, self._ticks):
            written.clear()
        if self._chores is not None and next(self._chores, self) is self:
            self._chores = None
        if newest is not None and newest // WINDOW != self._window:
            self._seal(connection, newest)
        self._tell_damage()

    def _tell_damage(self) -> None:
        """Add events of what was found damaged; they are written with the next ticks."""
        if self._damages and self._connection is not None:
            for event in events_of(self._connection, self._damages):
                self._events.add(event)
            self._damages.clear()

    def _seal(self, connection: sqlite3.Connection, newest: float) -> None:
        if used := seal(connection, self._damages):
            self._slots.keep_only(used)
        if self._hour != newest // 3600 and self._chores is None:
            self._chores = tidy(connection, self._size_limit, self._damages)  # a step at each commit from now on
            self._hour = newest // 3600
        self._window = newest // WINDOW

    def _give_up_for_now(self, error: Exception, now: float) -> None:
        self._retry = now + _RETRY_EVERY
        self.failures += 1
        for news in (self._accounts.news, self._events.news):
            del news[:-_MOST_NEWS]
        if self._connection is not None and self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except sqlite3.Error:
                pass  # SQLite has rolled back by itself
        kept = f"the last {_MOST_WAITING} samples are kept in memory, older samples were lost"
        message = f"{self.path} cannot be written ({error}); {kept if self._lost else 'samples are kept in memory'}."
        full = "full" in str(error) or "I/O" in str(error)
        freed = "Free some disk space; recording resumes automatically."
        self._trouble = Problem("history", message, freed if full else "Writing is retried every few seconds.")

    def _start_over(self, error: Exception | None) -> None:
        """Begin a new file in the place of one that is damaged or gone. The ticks that met this are lost."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self.failures += 1
        self._lost_before += len(self._ticks)  # their layout is that of the old file
        self._ticks.clear()
        try:
            if error is not None:
                self._set_aside(error)
            self._begin()
            self._trouble, self._retry = None, -1e9
        except (HistoryError, OSError) as again:
            self._trouble = Problem("history", f"{self.path} cannot be recreated: {again}")
            self._retry = self._clock.monotonic() + _RETRY_EVERY

    def _note_start(self, moment: float) -> None:
        if (boot := _boot_id()) and boot != self._known_boot:
            self._events.news.append(("REPLACE INTO meta VALUES('boot', ?)", (boot,)))
            if self._known_boot is not None:  # a new file knows of no boot before
                self._events.add(Event(moment, "boot", note=boot))
        if self._ended is not None and moment < self._ended - _LEAP:  # while nobody recorded: nobody else can tell
            self._events.add(Event(moment, "clock", value=moment - self._ended))
        self._events.add(Event(moment, "start", note=f"pid {os.getpid()}"))
