"""GPU hours of a fleet by user, job, machine and day: held, busy, energy and cost."""

from __future__ import annotations

import time

from .cost import Cost

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


class UsageRecord:
    """What one owner had of one machine on one day, in GPU seconds; a record without owner is of GPUs that nobody held.

    `judged` are the seconds whose utilization is known and `busy` the utilized part of them; `joules` is None without power.
    """

    __slots__ = ("busy", "joules", "judged", "seconds")

    def __init__(self) -> None:
        self.seconds = self.judged = self.busy = 0.0
        self.joules: float | None = None

    def add(self, seconds: float, busy: float | None, watts: float | None) -> None:
        """Add GPU seconds; `busy` is a share (0-1), None where it is not known."""
        self.seconds += seconds
        if busy is not None:
            self.judged += seconds
            self.busy += seconds * busy
        if watts is not None:
            self.joules = (self.joules or 0.0) + seconds * watts

    def merge(self, other: UsageRecord) -> None:
        """Add all of another record."""
        self.seconds += other.seconds
        self.judged += other.judged
        self.busy += other.busy
        if other.joules is not None:
            self.joules = (self.joules or 0.0) + other.joules


class FleetUsage:
    """Records by day, machine and owner, of which None is nobody; bounded in number."""

    def __init__(self) -> None:
        self.records: dict[tuple[str, str, Owner | None], UsageRecord] = {}

    def record(self, at: float, host: str, owner: Owner | None) -> UsageRecord:
        """Return the record of an owner on a machine on the day of a time, on this computer's clock; None is nobody."""
        key = (day_text(at), host, owner)
        found = self.records.get(key)
        if found is None:
            if len(self.records) >= _MOST:
                self._forget()
            found = self.records[key] = UsageRecord()
        return found

    def add(self, at: float, seconds: float, hosts: Iterable[HostReport]) -> None:
        """Count the last seconds of some machines; a GPU that several owners hold is shared evenly."""
        for host in hosts:
            for gpu in host.gpus:
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

    def _forget(self) -> None:
        """Drop a tenth of the records, those of the oldest days first."""
        for key in sorted(self.records, key=lambda key: key[0])[: max(1, _MOST // 10)]:
            del self.records[key]


def owners_of(gpu: Gpu) -> list[Owner | None]:
    """Return who holds a GPU, each user and job once; a holder whose user nobody knows is ("", "")."""
    return list(
        dict.fromkeys((one.user or "", one.job or one.pod or one.container or "") for one in gpu.all_processes())
    )


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
    return row | _prices(hours, idle, whole.joules, tariff)


def _prices(hours: float, idle: float | None, joules: float | None, tariff: Tariff | None) -> dict[str, Any]:
    if not tariff:
        return {"cost": None, "idle_cost": None}
    cost = Cost(tariff, hours, joules, None if idle is None else hours * idle, None, True)
    return {"cost": cost.total, "idle_cost": cost.idle}
