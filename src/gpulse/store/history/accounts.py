"""Accounts: who used which GPU, for how long and how much, an hour at a time."""

from __future__ import annotations

import sqlite3

from .slots import parts_of, sound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...model.catalog import Gpu, Process
    from ...model.snapshot import Snapshot
    from .slots import Slots, Statement

_LONGEST = 30.0  # seconds between two samples that still count as use; beyond, nobody saw
_SLACK = 5.0  # seconds by which two readings of when a process started may differ
_NO_PID = 1 << 32
_TEXT = 500  # characters kept of a command
_INSERT = "INSERT INTO process VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ADD = """
INSERT INTO usage VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(process, hour) DO UPDATE SET
first = min(first, excluded.first), last = max(last, excluded.last), seconds = seconds + excluded.seconds,
held = held + excluded.held, memory_most = max(ifnull(memory_most, excluded.memory_most), ifnull(excluded.memory_most, memory_most)),
memory_seconds = ifnull(memory_seconds + excluded.memory_seconds, ifnull(memory_seconds, excluded.memory_seconds)),
busy_seconds = ifnull(busy_seconds + excluded.busy_seconds, ifnull(busy_seconds, excluded.busy_seconds)),
energy = ifnull(energy + excluded.energy, ifnull(energy, excluded.energy))
"""


class Account:
    """What one process has used of one GPU since it was last written down; None where nothing was known."""

    __slots__ = ("busy", "energy", "first", "held", "id", "last", "memory", "most", "seconds", "started")

    def __init__(self, id: int, started: float | None, time: float) -> None:
        self.id = id
        self.started = started
        self.last = time
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self.first = self.last
        self.seconds = self.held = 0.0
        self.most: float | None = None
        self.memory: float | None = None
        self.busy: float | None = None
        self.energy: float | None = None

    def add(self, process: Process, time: float, elapsed: float, sharers: int, energy: float | None) -> None:
        """Count the seconds since the last sample; a GPU that several hold at once counts for each in equal parts."""
        self.last = time
        self.seconds += elapsed
        self.held += elapsed / sharers
        if (memory := process.memory_used) is not None:
            self.most = max(self.most or 0.0, float(memory))
            self.memory = (self.memory or 0.0) + memory * elapsed
        if (busy := process.sm_utilization) is not None:
            self.busy = (self.busy or 0.0) + busy / 100 * elapsed
        if energy is not None:
            self.energy = (self.energy or 0.0) + energy

    def taken(self) -> Statement:
        """Return the statement that writes this down, and begin anew."""
        values = (self.seconds, self.held, self.most, self.memory, self.busy, self.energy)
        statement = (_ADD, (self.id, int(self.last // 3600), self.first, self.last, *values))
        self.clear()
        return statement


class Accounts:
    """All processes seen on the last sample; `news` is what the database has to learn of new ones, in order."""

    def __init__(self, connection: sqlite3.Connection, slots: Slots) -> None:
        self.news: list[Statement] = []
        self._connection = connection
        self._slots = slots
        self._live: dict[tuple[str, float], Account] = {}
        self._last = connection.execute("SELECT ifnull(max(id), 0) FROM process").fetchone()[0]
        self._seen: float | None = None

    def add(self, snapshot: Snapshot) -> None:
        """Count one sample."""
        time = snapshot.time
        elapsed = 0.0 if self._seen is None else time - self._seen
        elapsed = elapsed if 0 < elapsed <= _LONGEST else 0.0
        live: dict[tuple[str, float], Account] = {}
        hidden: set[str] = set()
        for uuid, gpu, _ in parts_of(snapshot):
            if gpu.state != "ok" or "processes" in gpu.gaps:
                hidden.add(uuid)
            energies = _energies(gpu, elapsed)
            for process, energy in zip(gpu.processes, energies, strict=True):
                if process.pid is not None and 0 <= process.pid < _NO_PID:
                    account = self._account(uuid, process, time)
                    account.add(process, time, elapsed, len(gpu.processes), energy)
                    live[uuid, process.pid] = account
        for (uuid, pid), account in self._live.items():
            if (uuid, pid) not in live:
                if uuid in hidden:
                    live[uuid, pid] = account  # nobody can say that it has ended
                else:
                    self.news.append(account.taken())
        self._live, self._seen = live, time

    def taken(self) -> list[Statement]:
        """Return the statements that write all accounts down, and begin them anew."""
        return [account.taken() for account in self._live.values() if account.last > account.first]

    def _account(self, uuid: str, process: Process, time: float) -> Account:
        pid = process.pid or 0
        age = process.running_time
        started = None if age is None else time - age
        known = self._live.get((uuid, pid))
        if known is not None:
            if started is None or known.started is None or started < known.started + _SLACK:
                if known.last // 3600 != time // 3600:
                    self.news.append(known.taken())
                    known.first = time
                return known
            self.news.append(known.taken())
        gpu = self._slots.gpu(uuid)
        if self._seen is None and (before := self._before(gpu, pid, started)) is not None:
            return Account(before, started, time)
        self._last += 1
        texts = (process.user, process.name, (process.command or "")[:_TEXT] or None)
        owner = (process.job, process.container, process.pod)
        self.news.append((_INSERT, (self._last, gpu, pid, started, *map(_sound, texts + owner))))
        account = Account(self._last, started, time)
        self.news.append(account.taken())  # a process without use is taken for one whose time is over
        return account

    def _before(self, gpu: int, pid: float, started: float | None) -> int | None:
        """Return the number under which a writer before this one knew the process."""
        try:
            row = self._connection.execute(
                "SELECT id FROM process WHERE gpu = ? AND pid = ? AND abs(started - ?) < ? ORDER BY id DESC LIMIT 1",
                (gpu, pid, started, _SLACK),
            ).fetchone()
        except sqlite3.Error:
            return None  # whoever writes next will meet it and say so
        return None if row is None else int(row[0])


def _energies(gpu: Gpu, elapsed: float) -> Sequence[float | None]:
    """Return joules for each process: all to one that is alone, else by the share of time their kernels ran; None where unknown."""
    power = gpu.power_draw
    shares = [process.sm_utilization for process in gpu.processes]
    if power is None or not shares:
        return [None] * len(shares)
    if len(shares) == 1:
        return [power * elapsed]
    known = [share for share in shares if share is not None]
    total = sum(known)
    if len(known) < len(shares) or total <= 0:
        return [None] * len(shares)
    return [power * elapsed * share / total for share in known]


def _sound(text: str | None) -> str | None:
    return None if text is None else sound(text)
