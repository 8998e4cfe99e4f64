"""Usage over time: which owner held how many GPUs, and how much power that took, in equal stretches of time."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate, pairwise

from ...model.derive import slice_share
from .answers import TEXTS, UNATTRIBUTED, UNATTRIBUTED_PID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

OWNERS = ("user", "job", "container", "pod", "project", "name", "gpu", "process")
COUNTED_EVERY = 10.0  # seconds between two writes of who uses what
_UNCOUNTED = COUNTED_EVERY + 2.0  # seconds before the newest sample whose usage may not have been written yet
_SLACK = 5.0  # seconds
_LONGEST = 600.0  # seconds; a clock that was set back inside an hour counts parts of it twice
_FIXED = 3  # columns before the texts: number of the process, PID, start


class UsageTimes:
    """One owner over time. `held` are mean numbers of GPUs, `watts` mean watts, None as a whole where no energy is known.

    Means are over the time with records; where there are none, or usage is still being counted, they are None. `held_seconds` is
    the whole time in which GPUs were held.
    `owner` is None for processes without such an owner. `text` has what all processes of the owner have in common, and `pid` is
    set if the owner is a process. `uuids` are its GPUs and instances.
    """

    __slots__ = ("held", "held_seconds", "owner", "pid", "text", "uuids", "watts")

    def __init__(self, owner: str | None, intervals: _Intervals) -> None:
        self.owner = owner
        self.held_seconds = 0.0
        self.pid: int | None = None
        self.text: dict[str, str] = {}
        self.uuids: list[str] = []
        self.held = intervals.nothing()
        self.watts: list[float | None] | None = None


class _Row:
    """One row of the database: a process on one GPU in one hour."""

    def __init__(self, row: Sequence[Any]) -> None:
        self.pid: int = row[1]
        self.started: float | None = row[2]
        texts, rest = row[_FIXED : _FIXED + len(TEXTS)], row[_FIXED + len(TEXTS) :]
        self.text = {name: word for name, word in zip(TEXTS, texts, strict=True) if word is not None}
        self.uuid: str = rest[0]
        self.last: float = rest[2]
        # the first sample of an hour stands for the time since the one before it, too
        self.first: float = max(rest[1] - _LONGEST, min(rest[1], self.last - rest[3]))
        self.held: float = 0.0 if self.pid == UNATTRIBUTED_PID else rest[4]
        self.energy: float | None = rest[8]

    def share(self, start: float, end: float) -> float:
        """Return which part of it lies between two times."""
        if self.last <= self.first:
            return float(start <= self.last < end)
        return max(0.0, min(self.last, end) - max(self.first, start)) / (self.last - self.first)

    def owner(self, by: str, names: ProcessNames) -> str | None:
        if by == "gpu":
            return self.uuid
        if self.pid == UNATTRIBUTED_PID:
            return UNATTRIBUTED
        return names.of(self.pid, self.started) if by == "process" else self.text.get(by)


class ProcessNames:
    """One name for a process on several GPUs: its PID and when it started, which two readings tell within some seconds."""

    def __init__(self) -> None:
        self._started: dict[int, list[float]] = {}

    def of(self, pid: int, started: float | None) -> str:
        """Return the name; processes must be asked for in the order of the database."""
        moment = started or 0.0
        known = self._started.setdefault(pid, [])
        same = next((one for one in known if abs(one - moment) < _SLACK), None)
        if same is None:
            known.append(moment)
        return f"{pid}@{moment if same is None else same:.0f}"


class RecordedTime:
    """The stretches of time of which there are records, in order and apart."""

    def __init__(self, stretches: Sequence[tuple[float, float]]) -> None:
        self._starts = [start for start, _ in stretches]
        self._ends = [end for _, end in stretches]
        self._before = [0.0, *accumulate(end - start for start, end in stretches)]

    def within(self, start: float, end: float) -> float:
        """Return how many of the seconds between two times have records."""
        return max(0.0, self._until(end) - self._until(start))

    def _until(self, time: float) -> float:
        at = bisect_right(self._starts, time) - 1
        return 0.0 if at < 0 else self._before[at] + min(time, self._ends[at]) - self._starts[at]


class _Intervals:
    """Equal intervals, each with the time of which there are records and all usage has been counted."""

    def __init__(self, start: float, end: float, points: int, recorded: RecordedTime, counted: float) -> None:
        self.start, self.points = start, points
        self.width = (end - start) / points
        self.recorded = recorded
        self.counted = counted
        edges = [start + at * self.width for at in range(points + 1)]
        self._known = [self._within(*edge) for edge in pairwise(edges)]

    def _within(self, start: float, end: float) -> float:
        return self.recorded.within(start, max(start, min(end, self.counted)))

    def nothing(self) -> list[float | None]:
        """Return zeros, None for intervals without records."""
        return [0.0 if known > 0 else None for known in self._known]

    def shares(self, row: _Row) -> list[tuple[int, float]]:
        """Return the intervals in which a process was there, each with the part of its usage for every second that is known."""
        lasted = self.recorded.within(row.first, row.last) or row.last - row.first
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
    instances: Mapping[str, Mapping[str, Any]],
    recorded: RecordedTime,
    newest: float,
) -> list[UsageTimes]:
    """Return the owners of rows of the database, those who held the most first; a MIG instance counts by its slices.

    `newest` is when the history was last written.
    """
    found: dict[str | None, UsageTimes] = {}
    names = ProcessNames()
    read = [_Row(row) for row in rows]
    just_counted = any(row.held and row.last > newest - 0.001 for row in read)
    intervals = _Intervals(start, end, points, recorded, newest if just_counted else newest - _UNCOUNTED)
    for row in read:
        if (uuids is not None and row.uuid not in uuids) or (row.pid == UNATTRIBUTED_PID and row.energy is None):
            continue
        owner = row.owner(by, names)
        times = found.setdefault(owner, UsageTimes(owner, intervals))
        _name(times, row, by)
        part = slice_share(instances.get(row.uuid))
        times.held_seconds += row.held * part * row.share(start, end)
        for at, share in intervals.shares(row):
            _add(times.held, at, row.held * part * share)
            if row.energy is not None:
                times.watts = times.watts or intervals.nothing()
                _add(times.watts, at, row.energy * share)
    return sorted(found.values(), key=lambda times: -times.held_seconds)


def _add(values: list[float | None], at: int, more: float) -> None:
    values[at] = (values[at] or 0.0) + more


def _name(times: UsageTimes, row: _Row, by: str) -> None:
    if row.uuid not in times.uuids:
        times.uuids.append(row.uuid)
    if by == "process" and row.pid != UNATTRIBUTED_PID:
        times.pid, times.text = row.pid, row.text
