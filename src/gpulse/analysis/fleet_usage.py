"""GPU hours of a fleet by user, job, machine and day; and its last hours as means per interval, in memory."""

from __future__ import annotations

import time
from array import array
from collections import deque

from ..model.catalog import DOWN, SUMMARY
from ..value import Value, fresh
from .energy import Cost, sum_known
from .fleet import is_allocated, job_of, sm_share

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TypeAlias

    from ..model.catalog import Gpu
    from ..model.fleet import HostReport
    from ..model.serving import Tariff

    Owner: TypeAlias = tuple[str, str]  # user and job, "" where unknown


GROUPS = ("user", "job", "host", "day")
_MOST = 200_000  # records; of more, those of the oldest days are dropped


class UsageRecord(Value):
    """What one owner had of one machine on one day, in GPU seconds; a record without owner is of GPUs that nobody held.

    `judged` are the seconds whose utilization is known and `busy` the utilized part of them; `joules` is None without power.
    """

    seconds: float = 0.0
    judged: float = 0.0
    busy: float = 0.0
    joules: float | None = None

    def add(self, seconds: float, busy: float | None, watts: float | None) -> None:
        """Add GPU seconds; `busy` is a share (0-1), None where it is not known."""
        judged = 0.0 if busy is None else seconds
        self.merge(UsageRecord(seconds, judged, judged * (busy or 0.0), None if watts is None else seconds * watts))

    def merge(self, other: UsageRecord) -> None:
        """Add all of another record."""
        self.seconds += other.seconds
        self.judged += other.judged
        self.busy += other.busy
        self.joules = sum_known((self.joules, other.joules))


class FleetUsage:
    """Records by day, machine and owner, of which None is nobody; bounded in number."""

    def __init__(self) -> None:
        self.records: dict[tuple[str, str, Owner | None], UsageRecord] = {}

    def record(self, at: float, host: str, owner: Owner | None) -> UsageRecord:
        """Return the record of an owner on a machine on the day of a time, on this computer's clock; None is nobody."""
        key = (day_text(at), host, owner)
        found = self.records.get(key)
        if found is None:
            if len(self.records) >= _MOST:  # drop a tenth, those of the oldest days first
                for old in sorted(self.records, key=lambda key: key[0])[: max(1, _MOST // 10)]:
                    del self.records[old]
            found = self.records[key] = UsageRecord()
        return found

    def add(self, at: float, seconds: float, hosts: Iterable[HostReport]) -> None:
        """Count the last seconds of some machines; a GPU that several owners hold is shared evenly.

        A GPU that does not respond is left out: nobody knows who held it.
        """
        for host in hosts:
            for gpu in host.gpus:
                if gpu.state in DOWN:
                    continue
                busy = None if gpu.utilization is None else gpu.utilization / 100
                holders = owners_of(gpu) or [None]
                for owner in holders:
                    share = seconds / len(holders)
                    self.record(at, host.name, owner).add(share, busy, gpu.power_draw)

    def merged(self, other: FleetUsage) -> FleetUsage:
        """Return both together."""
        both = FleetUsage()
        for one in (self, other):
            for key, record in list(one.records.items()):
                both.records.setdefault(key, UsageRecord()).merge(record)
        return both

    def rows(self, by: str, tariff: Tariff | None = None) -> list[dict[str, Any]]:
        """Return one row per user, job, machine or day, those with the most GPU hours first, days in order."""
        whole: dict[str, UsageRecord] = {}
        held: dict[str, UsageRecord] = {}
        for (day, host, owner), record in list(self.records.items()):
            if owner is None and by in ("user", "job"):
                continue
            name = {"day": day, "host": host, "user": (owner or ("", ""))[0], "job": (owner or ("", ""))[1]}[by]
            whole.setdefault(name, UsageRecord()).merge(record)
            if owner is not None:
                held.setdefault(name, UsageRecord()).merge(record)
        rows = [_row(name, record, held.get(name), tariff) for name, record in whole.items()]
        return sorted(rows, key=lambda row: row["name"] if by == "day" else (-row["gpu_hours"], row["name"]))


def owners_of(gpu: Gpu) -> list[Owner | None]:
    """Return who holds a GPU, each user and job once; a holder whose user nobody knows is ("", "")."""
    holders = [one for one in gpu.all_processes() if one.type != "G"]
    if not holders and is_allocated(gpu):
        return [(gpu.job_user or "", gpu.job or "")]
    return list(dict.fromkeys((one.user or "", job_of(one) or "") for one in holders))


def day_text(at: float) -> str:
    """Return the day of a time on this computer's clock: 2026-11-15."""
    return time.strftime("%Y-%m-%d", time.localtime(at))


def _row(name: str, whole: UsageRecord, held: UsageRecord | None, tariff: Tariff | None) -> dict[str, Any]:
    idle = None if not whole.judged else 1 - whole.busy / whole.judged
    hours = whole.seconds / 3600
    row: dict[str, Any] = {
        "name": name,
        "gpu_hours": round(hours, 4),
        "held_hours": None if held is None else round(held.seconds / 3600, 4),
        "idle_share": None if idle is None else round(100 * idle, 2),
        "energy": None if whole.joules is None else round(whole.joules, 1),
    }
    idle_hours = None if idle is None else hours * idle
    cost = Cost(tariff, hours, whole.joules, idle_hours, None, True) if tariff else None
    return row | {"cost": cost and cost.total, "idle_cost": cost and cost.idle}


KEYS = SUMMARY
_BUSY, _ACTIVE = KEYS.index("utilization"), KEYS.index("sm_active")
SHORTEST = 15.0  # seconds of one interval, at least
LONGEST = 6 * 3600.0  # seconds that are kept
_ROOM = 32 << 20  # bytes of all values; a fleet of 8,000 GPUs has 52 minutes at 15 seconds
_NONE = float("nan")
UNKNOWN = 255  # of a share in one byte


def share_of(gpu: Gpu) -> float | None:
    """Return how much of a GPU works, in percent: SM activity where it is measured, also of MIG instances, else utilization."""
    return gpu.utilization if (active := sm_share(gpu)) is None else active


def share_byte(share: float | None) -> int:
    """Return a share as one byte: percent, or UNKNOWN."""
    return UNKNOWN if share is None else max(0, min(100, round(share)))


class _Interval(Value):
    """One interval: sums while it lasts, then means in one array; `slots` has the place of each GPU by machine and UUID."""

    start: float
    slots: dict[tuple[str, str], int]
    values: array[float]
    shares: dict[str, int] = fresh(factory=dict)


class FleetRing:
    """Means of each interval, oldest first; bounded in time and memory. For one writing thread and one reader at a time."""

    def __init__(self, interval: float) -> None:
        self.width = max(SHORTEST, interval)
        self._kept: deque[_Interval] = deque()
        self._slots: dict[tuple[str, str], int] = {}
        self._start = 0.0
        self._sums = array("d")
        self._counts = array("H")
        self._size = 0

    @property
    def since(self) -> float | None:
        """The beginning of what is kept; None before the first interval has ended."""
        return self._kept[0].start if self._kept else None

    def add(self, time: float, hosts: Iterable[HostReport]) -> None:
        """Take the newest values of some machines."""
        start = time - time % self.width
        if start != self._start:
            self._close()
            self._start = start
        for host in hosts:
            for gpu in host.gpus:
                self._take(host.name, gpu)

    def _take(self, host: str, gpu: Gpu) -> None:
        key = (host, gpu.uuid or str(gpu.index))
        slot = self._slots.get(key)
        if slot is None:
            self._slots = {**self._slots, key: len(self._slots)}  # a copy: intervals that have ended keep theirs
            slot = self._slots[key]
        while len(self._counts) <= slot * len(KEYS) + len(KEYS) - 1:
            self._sums.append(0.0)
            self._counts.append(0)
        for place, name in enumerate(KEYS, slot * len(KEYS)):
            value = sm_share(gpu) if name == "sm_active" else getattr(gpu, name)
            if value is not None and self._counts[place] < 65_535:
                self._sums[place] += value
                self._counts[place] += 1

    def _close(self) -> None:
        """End the open interval and drop what is too old or too much."""
        if not any(self._counts):
            return
        pairs = zip(self._sums, self._counts, strict=True)
        ended = _Interval(self._start, self._slots, array("f", [_NONE if not n else total / n for total, n in pairs]))
        ended.shares = _shares(ended)
        self._kept.append(ended)
        self._size += 4 * len(ended.values)
        self._sums, self._counts = array("d", bytes(8 * len(self._sums))), array("H", bytes(2 * len(self._counts)))
        while self._size > _ROOM or self._kept[0].start < self._start - LONGEST:
            self._size -= 4 * len(self._kept.popleft().values)

    def history(
        self, host: str, start: float, end: float
    ) -> tuple[list[float], dict[tuple[str, str], list[float | None]]]:
        """Return the times and, by UUID and metric, the values of one machine."""
        chosen = [one for one in list(self._kept) if start <= one.start <= end]
        uuids = dict.fromkeys(uuid for one in chosen[-1:] + chosen[:1] for name, uuid in one.slots if name == host)
        found: dict[tuple[str, str], list[float | None]] = {}
        for uuid in uuids:
            for place, key in enumerate(KEYS):
                values = [_value(one, (host, uuid), place) for one in chosen]
                if any(value is not None for value in values):
                    found[uuid, key] = values
        return [one.start for one in chosen], found

    def shares(self, times: list[float], step: float) -> dict[str, bytearray]:
        """Return the share of each machine in each interval that begins at `times`, one byte each; UNKNOWN where nothing is known."""
        found: dict[str, bytearray] = {}
        sums: dict[str, dict[int, list[int]]] = {}
        for one in list(self._kept):
            at = int((one.start - times[0]) // step)
            if 0 <= at < len(times):
                for host, share in one.shares.items():
                    sums.setdefault(host, {}).setdefault(at, []).append(share)
        for host, places in sums.items():
            row = found.setdefault(host, bytearray([UNKNOWN]) * len(times))
            for at, known in places.items():
                row[at] = round(sum(known) / len(known))
        return found


def _value(interval: _Interval, key: tuple[str, str], place: int) -> float | None:
    slot = interval.slots.get(key)
    at = -1 if slot is None else slot * len(KEYS) + place
    value = interval.values[at] if 0 <= at < len(interval.values) else _NONE
    return value if value == value else None


def _shares(interval: _Interval) -> dict[str, int]:
    """Return the mean share of the GPUs of each machine."""
    sums: dict[str, tuple[float, int]] = {}
    for (host, _), slot in interval.slots.items():
        values = interval.values[slot * len(KEYS) : (slot + 1) * len(KEYS)]
        if len(values) < len(KEYS):
            continue
        share = values[_BUSY] if values[_ACTIVE] != values[_ACTIVE] else values[_ACTIVE]
        if share == share:
            total, count = sums.get(host, (0.0, 0))
            sums[host] = total + share, count + 1
    return {host: share_byte(total / count) for host, (total, count) in sums.items()}
