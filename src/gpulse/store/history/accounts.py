"""What is kept beside ticks: who used which GPU, for how long and with how much energy, per hour; and events."""

from __future__ import annotations

import json
import sqlite3

from ...model.catalog import slice_share
from ...model.condition import LASTING
from ...model.event import Event
from ...model.snapshot import Growth
from .answers import UNATTRIBUTED, UNATTRIBUTED_PID
from .blocks import DAMAGED
from .columns import sound
from .database import SPAN, insertion, is_sound, sum_of
from .recorded import history_cadence
from .slots import parts_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from ...model.catalog import Gpu, Process
    from ...model.snapshot import Snapshot
    from .slots import Slots, Statement


_SLACK = 5.0  # seconds by which two readings of the age of a process may differ
_NO_PID = 1 << 32
_TEXT = 500  # characters kept of a command
_INSERT = insertion("process")
_LABEL = insertion("label").replace("INSERT", "REPLACE", 1)
# never add to a damaged row
_FORGET = f"DELETE FROM main.usage WHERE process = ? AND hour = ? AND NOT {is_sound('usage')}"
_ADD = f"""{insertion("usage")} ON CONFLICT(process, hour) DO UPDATE SET
first = min(first, excluded.first), last = max(last, excluded.last), seconds = seconds + excluded.seconds,
held = held + excluded.held, memory_most = max(ifnull(memory_most, excluded.memory_most), ifnull(excluded.memory_most, memory_most)),
memory_seconds = ifnull(memory_seconds + excluded.memory_seconds, ifnull(memory_seconds, excluded.memory_seconds)),
busy_seconds = ifnull(busy_seconds + excluded.busy_seconds, ifnull(busy_seconds, excluded.busy_seconds)),
energy = ifnull(energy + excluded.energy, ifnull(energy, excluded.energy))
"""
_STAMP = f"UPDATE main.usage SET sum = {sum_of('usage')} WHERE process = ? AND hour = ?"


class Account:
    """What one process has used of one GPU since it was last written; None where nothing was known."""

    __slots__ = ("_ran", "age", "busy", "energy", "first", "held", "id", "last", "memory", "most", "seconds")

    def __init__(self, id: int, time: float, ran: Growth | None = None) -> None:
        self.id = id
        self.age: float | None = None  # seconds the process had run at the last sample
        self.last = time
        self._ran = ran or Growth()
        self.clear()

    def clear(self) -> None:
        """Begin again where it ended."""
        self.first = self.last
        self.seconds = self.held = 0.0
        self.most: float | None = None
        self.memory: float | None = None
        self.busy: float | None = None
        self.energy: float | None = None

    def add(self, process: Process, time: float, elapsed: float, sharers: int) -> float | None:
        """Count the seconds since the last sample, and return those in which its kernels are now known to have run.

        A GPU that several processes hold at once counts for each in equal parts.
        """
        self.reach(time)
        self.age = process.running_time
        self.seconds += elapsed
        self.held += elapsed / sharers
        if (memory := process.memory_used) is not None:
            self.most = max(self.most or 0.0, float(memory))
            self.memory = (self.memory or 0.0) + memory * elapsed
        if (ran := self._busy_seconds(process, time, elapsed)) is not None:
            self.busy = (self.busy or 0.0) + ran
        return ran

    def forget(self) -> None:
        """Count kernels from the next reading on."""
        self._ran = Growth()

    def reach(self, time: float) -> None:
        """Note that it was there at a time; a clock that was set back makes it begin earlier."""
        self.first, self.last = min(self.first, time), max(self.last, time)

    def charge(self, joules: float) -> None:
        """Add energy."""
        self.energy = (self.energy or 0.0) + joules

    def _busy_seconds(self, process: Process, time: float, elapsed: float) -> float | None:
        if process.sm_time is not None:
            ran, since = self._ran.grown(process.sm_time, time) or (0.0, time)
            # more than the time that passed was counted before the process left and came back
            return ran if ran <= 1.05 * (time - since) + 1.0 else 0.0
        return None if process.sm_utilization is None else process.sm_utilization / 100 * elapsed

    def taken(self) -> list[Statement]:
        """Return the statements that write this, and begin again."""
        values = (self.seconds, self.held, self.most, self.memory, self.busy, self.energy)
        key = self.id, int(self.last // 3600)
        statements: list[Statement] = [(_FORGET, key), (_ADD, (*key, self.first, self.last, *values)), (_STAMP, key)]
        self.clear()
        return statements

    def turned(self, time: float) -> list[Statement]:
        """Return the statements that write this if another hour has begun, as also a clock does that is set, and begin that hour."""
        if self.last // 3600 == time // 3600:
            return []
        statements = self.taken()
        self.first = self.last = time
        return statements


class Accounts:
    """All processes seen on the last sample; `news` is what the database has to learn of new ones, in order."""

    def __init__(self, connection: sqlite3.Connection, slots: Slots) -> None:
        self.news: list[Statement] = []
        self._connection = connection
        self._slots = slots
        self._live: dict[tuple[str, float], Account] = {}
        self._last = connection.execute("SELECT ifnull(max(id), 0) FROM main.process").fetchone()[0]
        self._seen: float | None = None
        self._cadence = history_cadence()
        self._splits: dict[str, EnergySplit] = {}
        self._unlisted: dict[str, float] = {}  # seconds since the list of a GPU's processes was last read
        self._nobody: dict[str, Account] = {}

    def add(self, snapshot: Snapshot) -> None:
        """Count one sample."""
        time = snapshot.time
        elapsed, late = self._cadence.next(time)
        if late:  # a gap belongs to nobody, nor does what counters grew by in it
            elapsed = 0.0
            for split in self._splits.values():
                split.forget()
            for account in self._live.values():
                account.forget()
        live: dict[tuple[str, float], Account] = {}
        hidden: set[str] = set()
        for uuid, gpu, parent in parts_of(snapshot):
            passed = self._since_listed(uuid, gpu, elapsed)
            if gpu.state != "ok" or "processes" in gpu.gaps:
                hidden.add(uuid)
            split = self._splits.setdefault(parent or uuid, EnergySplit())
            for process in gpu.processes:
                if process.pid is not None and 0 <= process.pid < _NO_PID:
                    account = self._account(uuid, process, time)
                    ran = account.add(process, time, passed, len(gpu.processes))
                    split.hold(account, passed, ran, counted=process.sm_time is not None)
                    live[uuid, process.pid] = account
            if not parent:
                self._watch(uuid, gpu, time, elapsed, passed)
        self._charge(snapshot, elapsed, live)
        for (uuid, pid), account in self._live.items():
            if (uuid, pid) not in live:
                if uuid in hidden:
                    live[uuid, pid] = account  # nobody can say that it has ended
                else:
                    self.news += account.taken()
        self._live, self._seen = live, time

    def _since_listed(self, uuid: str, gpu: Gpu, elapsed: float) -> float:
        """Return the seconds that a list of processes stands for; 0 for a sample that was to have none: its time waits for the next."""
        passed = self._unlisted.pop(uuid, 0.0) + elapsed
        if gpu.gaps.get("processes") == "skipped":
            self._unlisted[uuid] = passed
            return 0.0
        return passed

    def _watch(self, uuid: str, gpu: Gpu, time: float, elapsed: float, passed: float) -> None:
        """Count the time in which a GPU was watched, and the part in which nobody held it; where nobody can say, neither."""
        nobody = self._unattributed(uuid, time)
        nobody.reach(time)
        nobody.seconds += elapsed
        if gpu.state == "asleep" or (gpu.state == "ok" and "processes" not in gpu.gaps):
            held = [slice_share(dict(one.items())) for one in gpu.instances if one.processes or "processes" in one.gaps]
            nobody.held += passed * (0.0 if gpu.processes else max(0.0, 1.0 - sum(held)))

    def _charge(self, snapshot: Snapshot, elapsed: float, live: dict[tuple[str, float], Account]) -> None:
        """Split the energy of each GPU among those that held it; what belongs to none of them is kept apart."""
        there = {id(account) for account in (*live.values(), *self._live.values())}
        for uuid, gpu, parent in parts_of(snapshot):
            if parent:
                continue
            charged, left = self._splits[uuid].settle(gpu, snapshot.time, elapsed)
            for account, joules in charged:
                account.charge(joules)
                if id(account) not in there:
                    self.news += account.taken()
            if left > 0:
                self._unattributed(uuid, snapshot.time).charge(left)

    def _unattributed(self, uuid: str, time: float) -> Account:
        """Return the account of a GPU itself: `seconds` it was watched, `held` by nobody, and the energy that no process used."""
        known = self._nobody.get(uuid)
        if known is not None:
            self.news += known.turned(time)
            return known
        gpu = self._slots.gpu(uuid)
        if (before := self._before(gpu, UNATTRIBUTED_PID, 0.0)) is None:
            before = self._last = self._last + 1
            values = (before, gpu, UNATTRIBUTED_PID, 0.0, *[UNATTRIBUTED] * 2, *[None] * 4)
            self.news.append((_INSERT, values))
        account = self._nobody[uuid] = Account(before, time)
        self.news += account.taken()  # without use, it would be deleted as one whose time is over
        return account

    def taken(self) -> list[Statement]:
        """Return the statements that write all accounts down, and start them over."""
        accounts = (*self._live.values(), *self._nobody.values())
        held = [account for account in accounts if account.seconds or account.energy]
        return [statement for account in held for statement in account.taken()]

    def _account(self, uuid: str, process: Process, time: float) -> Account:
        pid = process.pid or 0
        age = process.running_time
        started = None if age is None else time - age
        known = self._live.get((uuid, pid))
        if known is not None:
            if age is None or known.age is None or age > known.age - _SLACK:  # not by when it began: clocks are set
                self.news += known.turned(time)
                return known
            self.news += known.taken()
        gpu = self._slots.gpu(uuid)
        if self._seen is None and (before := self._before(gpu, pid, started)) is not None:
            return Account(before, time)
        self._last += 1
        texts = (process.user, process.name, (process.command or "")[:_TEXT] or None)
        owner = (process.job, process.container, process.pod)
        self.news.append((_INSERT, (self._last, gpu, pid, started, *map(_sound, texts + owner))))
        if any(labels := (process.project or process.get("account"), process.get("job_name"))):
            self.news.append((_LABEL, (self._last, *(_sound(str(label)) if label else None for label in labels))))
        # a process that came after the first sample has run nothing before it
        account = Account(self._last, time, None if self._seen is None else Growth(0.0, self._seen))
        self.news += account.taken()  # a process without use is taken for one whose time is over
        return account

    def _before(self, gpu: int, pid: float, started: float | None) -> int | None:
        """Return the number under which a writer before this one knew the process."""
        try:
            row = self._connection.execute(
                "SELECT id FROM process WHERE gpu = ? AND pid = ? AND abs(started - ?) < ? ORDER BY id DESC LIMIT 1",
                (gpu, pid, started, _SLACK),
            ).fetchone()
        except sqlite3.Error:
            return None  # the next write meets the same error and reports it
        return None if row is None else int(row[0])


def _sound(text: str | None) -> str | None:
    return None if text is None else sound(text)


_SLOW = 4.9  # seconds after which the times that kernels ran have been read again, whether they grew or not


class EnergySplit:
    """One GPU. Counters are read every few seconds, so energy waits until it is known who ran kernels meanwhile."""

    def __init__(self) -> None:
        self._counter = Growth()
        self._joules = 0.0
        self._seconds = 0.0
        self._held: dict[Account, tuple[float, float | None]] = {}
        self._waits = False
        self._grew = False

    def forget(self) -> None:
        """Count energy from the next reading on."""
        self._counter = Growth()
        self._clear()

    def hold(self, holder: Account, seconds: float, ran: float | None, counted: bool) -> None:
        """Note who holds the GPU and for how many seconds its kernels ran; `counted`: by a counter, which is read occasionally."""
        before, busy = self._held.get(holder, (0.0, 0.0))
        self._held[holder] = (before + seconds, None if ran is None or busy is None else busy + ran)
        self._waits |= counted
        self._grew |= bool(ran)

    def settle(self, gpu: Gpu, time: float, seconds: float) -> tuple[list[tuple[Account, float]], float]:
        """Return the joules of each holder that are known now, and those of none."""
        self._seconds += seconds
        if gpu.energy is not None:
            known = self._counter.at is not None
            growth = self._counter.grown(gpu.energy, time)
            if growth is None:
                if not known:
                    self._clear()
                return [], 0.0
            self._joules = growth[0]
            self._seconds = max(self._seconds, time - growth[1])  # also time that nobody watched
        elif gpu.power_draw is not None:
            self._joules += gpu.power_draw * seconds
            unlisted = gpu.gaps.get("processes") == "skipped"  # who held it is known at the next sample with a list
            if unlisted or (self._waits and not self._grew and self._seconds < _SLOW):
                return [], 0.0
        else:
            self._clear()
            return [], 0.0
        shares = self._shares()
        charged = [(holder, self._joules * share) for holder, share in shares.items()]
        left = self._joules - sum(joules for _, joules in charged)
        self._clear()
        return charged, left if left > 1e-6 else 0.0

    def _shares(self) -> dict[Account, float]:
        """Return the part of each holder: of one that is alone, its time; of several, by the time their kernels ran."""
        if len(self._held) == 1:
            ((holder, (seconds, _)),) = self._held.items()
            return {holder: min(1.0, seconds / self._seconds) if self._seconds else 1.0}
        known = {holder: busy for holder, (_, busy) in self._held.items() if busy is not None}
        total = sum(known.values())
        if len(known) < len(self._held) or total <= 0:
            return {}
        return {holder: busy / total for holder, busy in known.items()}

    def _clear(self) -> None:
        self._joules = self._seconds = 0.0
        self._held = {}
        self._waits = self._grew = False


_INSERT_EVENT = insertion("event")
_SPANS = (*LASTING, DAMAGED)  # listed also when they began before the time asked for
_OPEN = ", ".join(repr(kind) for kind in LASTING)
# what nobody has seen the end of lasts until the newest sample
_LATER = "ifnull((SELECT time FROM tick ORDER BY id DESC LIMIT 1), ?2) >= ?2"
_OVERLAPS = f"time < ?1 AND (time >= ?2 OR until >= ?2 OR (until IS NULL AND kind IN ({_OPEN}) AND {_LATER}))"


class EventRows:
    """Events that the database has yet to learn, as statements in `news`, in order."""

    def __init__(self, slots: Slots) -> None:
        self.news: list[Statement] = []
        self._slots = slots

    def add(self, event: Event) -> None:
        """Add an event; one that was added before, without its end, is replaced."""
        gpu = self._slots.gpu(sound(event.uuids[0])) if event.uuids else None
        row = row_of(event, gpu)
        if event.until is not None:
            self.news.append(("DELETE FROM main.event WHERE time = ? AND text = ?", (event.time, row[4])))
        self.news.append((_INSERT_EVENT, row))

    def close_open(self, connection: sqlite3.Connection) -> None:
        """End what an earlier writer left open with the last time it recorded: what still holds is found again."""
        last = connection.execute(SPAN).fetchone()[1]
        if last is not None:
            changed = f"until = max(time, ?1), sum = {sum_of('event', until='max(time, ?1)')}"
            sql = f"UPDATE main.event SET {changed} WHERE until IS NULL AND kind IN ({_OPEN})"
            self.news.append((sql, (last,)))


def row_of(event: Event, gpu: int | None) -> tuple[Any, ...]:
    """Return the row of an event about the GPU with this number, or about none."""
    texts = event.category, sound(json.dumps(event.key)), sound(json.dumps(event.to_plain()))
    return event.time, event.until, gpu, *texts


def read_events(connection: sqlite3.Connection, start: float, end: float, kinds: Collection[str] | None) -> list[Event]:
    """Return the events that began or lasted between two times, in order."""
    sql = f"SELECT data, until FROM event WHERE {_OVERLAPS} ORDER BY time, id"
    found = []
    for data, until in connection.execute(sql, (end, start)):
        try:
            event = Event.from_plain(json.loads(data))
        except (ValueError, KeyError, TypeError):
            continue  # of a later version, which knows more kinds
        if (kinds is None or event.is_named(kinds)) and (event.time >= start or event.kind in _SPANS):
            found.append(event if until is None else event.replace(until=until))
    return found
