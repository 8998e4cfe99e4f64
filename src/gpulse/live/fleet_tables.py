"""The tables of a fleet as rows of plain data: machines, GPUs, users, jobs, and GPUs that are given to somebody and not used."""

from __future__ import annotations

from ..analysis.fleet import Funnel, filtered, free_gpus, held_by, job_of, unused_grants, user_of
from ..present.fleet import product
from ..present.text import clean
from ..present.words import label, owners, short_name, silence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, TypeAlias

    from ..model.catalog import Gpu, Process
    from ..model.fleet import FleetSnapshot, HostReport

    Row: TypeAlias = dict[str, Any]

_SEVERAL = 50  # names in one cell


def _host(host: HostReport) -> Row:
    sums = Funnel(host.gpus)
    heard = sums.total - sums.down
    return {
        "name": host.name,
        "source": host.source,
        "state": host.state,
        "age": None if host.age is None else round(host.age, 1),
        "reason": host.reason,
        "gpus": sums.total,
        "product": product(host.gpus) if host.gpus else "",
        "allocated": sums.allocated,
        "free": len(free_gpus(host)),
        "effective": None if sums.effective is None else round(100 * sums.effective / sums.judged, 1),
        "active": round(100 * sums.active / heard, 1) if heard else None,
        "memory_used": sums.memory_used if sums.memory_total else None,
        "memory_total": sums.memory_total or None,
        "power": sums.power,
        "users": _people(host.gpus),
    }


def _people(gpus: Iterable[Gpu]) -> list[str]:
    return list(dict.fromkeys(user for gpu in gpus for user, *_ in owners(gpu.all_processes()) if user))[:_SEVERAL]


def _gpu(host: HostReport, gpu: Gpu) -> Row:
    return {
        "host": host.name,
        "gpu": label(gpu),
        "name": short_name(gpu),
        "state": gpu.state,
        "silence": silence(gpu, host.snapshot.time if host.snapshot else 0.0)[0],
        "effective": gpu.sm_active,
        "active": gpu.utilization,
        "memory_used": gpu.memory_used,
        "memory_total": gpu.memory_total,
        "power": gpu.power_draw,
        "temperature": gpu.temperature,
        "users": _people([gpu]),
        "jobs": list(dict.fromkeys(job for one in gpu.all_processes() if (job := job_of(one))))[:_SEVERAL],
    }


def _holders(snapshot: FleetSnapshot, name: Callable[[Process], str | None]) -> list[Row]:
    rows = []
    for who, theirs in held_by(snapshot, name):
        sums = Funnel(gpu for _, gpu in theirs)
        rows.append(
            {
                "name": who,
                "gpus": sums.total,
                "effective": None if sums.effective is None else round(100 * sums.effective / sums.judged, 1),
                "active": round(100 * sums.active / sums.total, 1),
                "memory_used": sums.memory_used,
                "power": sums.power,
                "hosts": list(dict.fromkeys(host.name for host, _ in theirs))[:_SEVERAL],
            }
        )
    return rows


def _unused(snapshot: FleetSnapshot) -> list[Row]:
    return [
        {
            "host": host.name,
            "gpu": label(gpu),
            "name": short_name(gpu),
            "user": who.get("user", ""),
            "job": who.get("job", "") or who.get("pod", ""),
        }
        for host, gpu, who in unused_grants(snapshot)
    ]


TABLES: Mapping[str, tuple[Callable[[FleetSnapshot], list[Row]], str]] = {
    "host": (lambda snapshot: [_host(host) for host in snapshot.hosts], ""),
    "gpu": (lambda snapshot: [_gpu(host, gpu) for host, gpu in snapshot.gpus()], "-effective"),
    "user": (lambda snapshot: _holders(snapshot, user_of), "-gpus"),
    "job": (lambda snapshot: _holders(snapshot, job_of), "-gpus"),
    "unused": (_unused, ""),
}
SORTS = (
    "name", "host", "gpu", "source", "state", "age", "gpus", "product", "allocated", "free", "effective", "active", "memory_used", "power",
    "temperature", "users", "jobs", "hosts", "user", "job",
)  # fmt: skip


def table_rows(snapshot: FleetSnapshot, by: str, filter: str, sort: str) -> list[Row]:
    """Return the rows of a table that fit a filter, in an order: a key, with a minus before it for falling order.

    What is missing comes last.
    """
    make, usual = TABLES[by]
    rows = make(filtered(snapshot, filter))
    order = sort or usual
    key = order.removeprefix("-")
    if not order or (rows and key not in rows[0]):
        return rows
    known = [row for row in rows if row[key] is not None]
    known.sort(key=lambda row: _rank(row[key]), reverse=order.startswith("-"))
    return known + [row for row in rows if row[key] is None]


def _rank(value: Any) -> tuple[float, str]:
    """Return what a value is sorted by: numbers as such, also in text; texts by letter; lists by length."""
    if isinstance(value, list):
        return float(len(value)), str(value[:1])
    if isinstance(value, str):
        return (float(value), "") if value.isascii() and value.isdecimal() else (0.0, value.lower())
    return float(value), ""


def cleaned(row: Row) -> Row:
    """Return a row with text of other machines safe to show."""
    return {
        key: round(value, 3)
        if isinstance(value, float)
        else clean(value)
        if isinstance(value, str)
        else [clean(one) for one in value]
        if isinstance(value, list)
        else value
        for key, value in row.items()
    }


def free_rows(snapshot: FleetSnapshot, count: int, memory: float) -> list[Row]:
    """Return the machines that have this many free GPUs with this much memory, most free ones first."""
    found = [(host, free_gpus(host, memory)) for host in snapshot.hosts]
    rows = [
        {"host": host.name, "gpus": [label(gpu) for gpu in free], "product": product(free)}
        for host, free in found
        if len(free) >= count
    ]
    return sorted(rows, key=lambda row: -len(row["gpus"]))
