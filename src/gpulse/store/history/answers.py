"""Answers: what a reader of a history is given: series, GPUs, and who used what, in sum or over time."""

from __future__ import annotations

from itertools import pairwise

from ...model import catalog
from ...model.catalog import slice_share
from ...value import Value, fresh

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from .recorded import RecordedTime

UNATTRIBUTED = "unattributed"  # the owner of energy that no process used
UNATTRIBUTED_PID = -1
TEXTS = ("user", "name", "command", "job", "container", "pod", "project", "job_name")


class HistorySeries(Value):
    """One metric of one GPU, or of the host with uuid "": least, mean and most at each of `times`, NaN if there is none.

    `times` are seconds since 1970 at which each stretch begins, rising, not always evenly; `seconds` is how much time with
    values each holds, the weight of its mean. `gaps` are the times without records, by the recorder's own interval. Series of one
    call share `times` and `gaps`.
    """

    uuid: str
    key: str
    times: list[float]
    seconds: list[float]
    min: list[float]
    mean: list[float]
    max: list[float]
    gaps: Sequence[tuple[float, float]] = ()


class GpuIdentity:
    """What a GPU was known by: `facts` has all that does not change with time by catalog key, `parent` the UUID of an instance's GPU."""

    __slots__ = ("facts", "index", "memory_total", "name", "parent", "uuid")

    def __init__(self, uuid: str, facts: Mapping[str, Any]) -> None:
        self.uuid = uuid
        self.facts = {key: value for key, value in facts.items() if key != "parent"}
        self.parent: str = facts.get("parent", "")
        self.index: int | None = facts.get("index")
        self.name: str | None = facts.get("name")
        self.memory_total: float | None = facts.get("memory_total")


class Usage(Value):
    """What somebody used. `gpu_hours` shares a GPU that several hold at once evenly, so all add up to the time GPUs were held.

    A MIG instance counts by its slices (a seventh of an H100 each); `instance_hours` count it whole, None without instances.
    `busy_hours` are those in which kernels ran, `memory_hours` GiB times hours, `memory_most` bytes of the largest process,
    `energy` joules; None where nothing is known. `owner` is None for processes that have no such owner, and UNATTRIBUTED for
    energy that no process used.
    """

    owner: str | None = None
    processes: int = 0
    gpu_hours: float = 0.0
    instance_hours: float | None = None
    busy_hours: float | None = None
    memory_hours: float | None = None
    memory_most: float | None = None
    energy: float | None = None

    def add(self, use: ProcessUse) -> None:
        """Add what a process used besides the time it held the GPU."""
        self.busy_hours = _sum(self.busy_hours, use.busy_seconds, 1 / 3600)
        self.memory_hours = _sum(self.memory_hours, use.memory_seconds, 1 / 3600 / 2**30)
        self.energy = _sum(self.energy, use.energy)
        if use.memory_most is not None:
            self.memory_most = max(self.memory_most or 0.0, use.memory_most)


class ProcessUse(Value):
    """One process on one GPU, from `first` to `last` seen in the time asked for; `text` has what is known of TEXTS.

    `seconds` it was there, `held` its even share of them beside others, `memory_seconds` bytes times seconds, `energy` joules.
    """

    uuid: str
    pid: int
    started: float | None
    text: dict[str, str]
    first: float = float("inf")
    last: float = float("-inf")
    seconds: float = 0.0
    held: float = 0.0
    memory_most: float | None = None
    memory_seconds: float | None = None
    busy_seconds: float | None = None
    energy: float | None = None

    def owner(self, by: str) -> str | None:
        """Return whose usage it is, by one of OWNERS but the process."""
        return self.uuid if by == "gpu" else UNATTRIBUTED if self.pid == UNATTRIBUTED_PID else self.text.get(by)

    def within(self, start: float, end: float, recorded: RecordedTime) -> ProcessUse:
        """Return the part of it between two times, between which it was seen; use is spread evenly over recorded time."""
        if start <= self.first and self.last <= end:
            return self  # as most are: copying 100,000 rows took 2 s on a busy machine
        part = self.part(recorded.share(self.first, self.last, start, end) if self.last > self.first else 1.0)
        part.first, part.last = max(self.first, start), min(self.last, end)
        return part

    def part(self, share: float) -> ProcessUse:
        """Return a part of it, as large as `share`."""
        whole = {name: getattr(self, name) for name in ("seconds", "held", "memory_seconds", "busy_seconds", "energy")}
        return self.replace(**{name: None if amount is None else amount * share for name, amount in whole.items()})

    def add(self, more: ProcessUse) -> None:
        """Add another hour of the same process."""
        self.first, self.last = min(self.first, more.first), max(self.last, more.last)
        self.seconds += more.seconds
        self.held += more.held
        if more.memory_most is not None:
            self.memory_most = max(self.memory_most or 0.0, more.memory_most)
        self.memory_seconds = _sum(self.memory_seconds, more.memory_seconds)
        self.busy_seconds = _sum(self.busy_seconds, more.busy_seconds)
        self.energy = _sum(self.energy, more.energy)


def _sum(total: float | None, more: float | None, scale: float = 1.0) -> float | None:
    return total if more is None else (total or 0.0) + more * scale


def latest_facts(connection: sqlite3.Connection, end: float) -> list[tuple[int, str, dict[str, Any]]]:
    """Return number, UUID and facts of each GPU as last told before a moment, or first told when that was later."""
    import json

    told: dict[int, tuple[str, str]] = {}
    for gpu, uuid, since, text in connection.execute(
        "SELECT gpu, uuid, since, facts FROM fact JOIN gpu ON gpu.id = fact.gpu ORDER BY fact.id"
    ):
        if since < end or gpu not in told:
            told[gpu] = (uuid, text)
    return [(gpu, uuid, json.loads(text)) for gpu, (uuid, text) in told.items()]


def instances_of(connection: sqlite3.Connection, end: float) -> dict[str, float]:
    """Return which part of its GPU each MIG instance is, by UUID."""
    return {uuid: slice_share(facts) for _, uuid, facts in latest_facts(connection, end) if "parent" in facts}


def uuids_of(connection: sqlite3.Connection) -> dict[int, str]:
    """Return the UUIDs of GPUs, servers and, as 0, the host by the number each has in the database."""
    return dict(connection.execute("SELECT id, uuid FROM gpu"))


def labels_of(connection: sqlite3.Connection, end: float = float("inf")) -> dict[str, str]:
    """Return the number that people know each GPU by at a moment, by UUID."""
    found = latest_facts(connection, end)
    return {uuid: f"{facts['index']:.0f}" for _, uuid, facts in found if isinstance(facts.get("index"), (int, float))}


OWNERS = (*catalog.OWNERS, "project", "name", "gpu", "process")
COUNTED_EVERY = 10.0  # seconds between two writes of who uses what
_UNCOUNTED = COUNTED_EVERY + 2.0  # seconds before the newest sample whose usage may not have been written yet
_SLACK = 5.0  # seconds
_LONGEST = 600.0  # seconds; a clock that was set back inside an hour counts parts of it twice


class UsageTimes(Value):
    """One owner over time. `held` are mean numbers of GPUs, `watts` mean watts, None as a whole where no energy is known.

    Means are over the time with records; where there are none, or usage is still being counted, they are None. `held_seconds` is
    the whole time in which GPUs were held.
    `owner` is None for processes without such an owner. `text` has what all processes of the owner have in common, and `pid` is
    set if the owner is a process. `uuids` are its GPUs and instances.
    """

    owner: str | None
    held: list[float | None]
    held_seconds: float = 0.0
    pid: int | None = None
    text: dict[str, str] = fresh(factory=dict)
    uuids: list[str] = fresh(factory=list)
    watts: list[float | None] | None = None


def use_of(row: Sequence[Any]) -> ProcessUse:
    """Return a row of the database: a process on one GPU in one hour."""
    _, pid, started, *rest = row
    known = {name: word for name, word in zip(TEXTS, rest, strict=False) if word is not None}
    return ProcessUse(rest[len(TEXTS)], pid, started, known, *rest[len(TEXTS) + 1 :])


class ProcessNames:
    """One name for a process on several GPUs: its PID and when it started, which two readings tell within some seconds."""

    def __init__(self) -> None:
        self._started: dict[int, list[float]] = {}

    def name_of(self, pid: int, started: float | None) -> str:
        """Return the name; processes must be asked for in the order of the database."""
        moment = started or 0.0
        known = self._started.setdefault(pid, [])
        same = next((one for one in known if abs(one - moment) < _SLACK), None)
        if same is None:
            known.append(moment)
        return f"{pid}@{moment if same is None else same:.0f}"


class _Intervals:
    """Equal intervals, each with the recorded time of which all usage has been counted."""

    def __init__(self, start: float, end: float, points: int, recorded: RecordedTime, counted: float) -> None:
        self.start, self.points = start, points
        self.width = (end - start) / points
        self._recorded = recorded
        self._counted = counted
        edges = [start + at * self.width for at in range(points + 1)]
        self._known = [self._within(*edge) for edge in pairwise(edges)]

    def _within(self, start: float, end: float) -> float:
        return self._recorded.seconds(start, max(start, min(end, self._counted)))

    def nothing(self) -> list[float | None]:
        """Return zeros, None for intervals without records."""
        return [0.0 if known > 0 else None for known in self._known]

    def shares(self, row: ProcessUse) -> list[tuple[int, float]]:
        """Return the intervals in which a process was there, each with the part of its usage for every second that is known."""
        lasted = self._recorded.seconds(row.first, row.last) or row.last - row.first
        first = max(0, int((row.first - self.start) / self.width))
        last = min(self.points - 1, int((row.last - self.start) / self.width))
        found = []
        for at in range(first, last + 1):
            known, begin = self._known[at], self.start + at * self.width
            inside = self._within(max(row.first, begin), min(row.last, begin + self.width))
            if known > 0 and lasted > 0:
                found.append((at, inside / lasted / known))
        return found


def usage_times(
    rows: Sequence[Sequence[Any]],
    start: float,
    end: float,
    by: str,
    points: int,
    uuids: Collection[str] | None,
    instances: Mapping[str, float],
    recorded: RecordedTime,
    newest: float,
) -> list[UsageTimes]:
    """Return the owners of rows of the database, those who held the most first; a MIG instance counts by its part of a GPU.

    `newest` is when the history was last written.
    """
    found: dict[str | None, UsageTimes] = {}
    names = ProcessNames()
    uses = [use_of(row) for row in rows]
    for use in uses:
        # the first sample of an hour represents the time since the one before it, too
        use.first -= min(_LONGEST, max(0.0, use.seconds - recorded.seconds(use.first, use.last)))
        use.held = 0.0 if use.pid == UNATTRIBUTED_PID else use.held
    just_counted = any(use.held and use.last > newest - 0.001 for use in uses)
    intervals = _Intervals(start, end, points, recorded, newest if just_counted else newest - _UNCOUNTED)
    for use in uses:
        nobody = use.pid == UNATTRIBUTED_PID
        if (uuids is not None and use.uuid not in uuids) or (nobody and use.energy is None):
            continue
        owner = names.name_of(use.pid, use.started) if by == "process" and not nobody else use.owner(by)
        times = found.setdefault(owner, UsageTimes(owner, intervals.nothing()))
        if use.uuid not in times.uuids:
            times.uuids.append(use.uuid)
        if by == "process" and not nobody:
            times.pid, times.text = use.pid, use.text
        part = instances.get(use.uuid, 1.0)
        times.held_seconds += use.held * part * recorded.share(use.first, use.last, start, end)
        for at, share in intervals.shares(use):
            _add(times.held, at, use.held * part * share)
            if use.energy is not None:
                times.watts = times.watts or intervals.nothing()
                _add(times.watts, at, use.energy * share)
    return sorted(found.values(), key=lambda times: -times.held_seconds)


def _add(values: list[float | None], at: int, more: float) -> None:
    values[at] = (values[at] or 0.0) + more
