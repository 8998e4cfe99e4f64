"""Usage over time: which owner held how many GPUs, and how much power that took, in equal stretches of time."""

from __future__ import annotations

from ...model.derive import slice_share
from .answers import TEXTS, UNATTRIBUTED, UNATTRIBUTED_PID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

OWNERS = ("user", "job", "container", "pod", "name", "gpu", "process")
_SLACK = 5.0  # seconds
_FIXED = 3  # columns before the texts: number of the process, PID, start


class UsageTimes:
    """One owner over time. `held` are mean numbers of GPUs, `watts` mean watts, None where no energy is known.

    `owner` is None for processes without such an owner. `text` has what all processes of the owner have in common, and `pid` is
    set if the owner is a process. `uuids` are its GPUs and instances.
    """

    __slots__ = ("held", "owner", "pid", "text", "uuids", "watts")

    def __init__(self, owner: str | None, points: int) -> None:
        self.owner = owner
        self.pid: int | None = None
        self.text: dict[str, str] = {}
        self.uuids: list[str] = []
        self.held = [0.0] * points
        self.watts: list[float] | None = None


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
        self.first: float = min(rest[1], self.last - rest[3])
        self.held: float = rest[4]
        self.energy: float | None = rest[8]

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


def usage_times(
    rows: Sequence[Sequence[Any]],
    start: float,
    end: float,
    by: str,
    points: int,
    uuids: Collection[str] | None,
    instances: Mapping[str, Mapping[str, Any]],
) -> list[UsageTimes]:
    """Return the owners of rows of the database, those who held the most first; a MIG instance counts by its slices."""
    found: dict[str | None, UsageTimes] = {}
    width = (end - start) / points
    names = ProcessNames()
    for row in map(_Row, rows):
        if uuids is not None and row.uuid not in uuids:
            continue
        owner = row.owner(by, names)
        times = found.setdefault(owner, UsageTimes(owner, points))
        _name(times, row, by)
        part = slice_share(instances.get(row.uuid))
        for at, share in _overlaps(row, start, width, points):
            times.held[at] += row.held * part * share / width
            if row.energy is not None:
                times.watts = times.watts or [0.0] * points
                times.watts[at] += row.energy * share / width
    return sorted(found.values(), key=lambda times: -sum(times.held))


def _name(times: UsageTimes, row: _Row, by: str) -> None:
    if row.uuid not in times.uuids:
        times.uuids.append(row.uuid)
    if by == "process" and row.pid != UNATTRIBUTED_PID:
        times.pid, times.text = row.pid, row.text


def _overlaps(row: _Row, start: float, width: float, points: int) -> list[tuple[int, float]]:
    """Return the stretches in which a process was there, each with the part of its usage that belongs to it."""
    lasted = row.last - row.first
    if lasted <= 0:
        at = int((row.first - start) / width)
        return [(at, 1.0)] if 0 <= at < points else []
    first, last = max(0, int((row.first - start) / width)), min(points - 1, int((row.last - start) / width))
    found = []
    for at in range(first, last + 1):
        inside = min(row.last, start + (at + 1) * width) - max(row.first, start + at * width)
        if inside > 0:
            found.append((at, inside / lasted))
    return found
