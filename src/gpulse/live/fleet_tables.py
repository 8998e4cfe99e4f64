"""The tables of a fleet as rows of plain data: machines, GPUs, users, jobs, and GPUs that are allocated and not used."""

from __future__ import annotations

from ..analysis.fleet import Funnel, filtered, free_gpus, held_by, job_of, unused_grants, user_of
from ..present.concerns import product
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
        "gpus": None if host.snapshot is None else sums.total,
        "product": product(host.gpus) if host.gpus else "",
        "allocated": None if host.snapshot is None else sums.allocated,
        "free": None if host.snapshot is None else len(free_gpus(host)),
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


_GPU_RANKS: Mapping[str, Callable[[Any], Any]] = {
    "host": lambda item: item[0].name,
    "gpu": lambda item: item[1].index,
    "effective": lambda item: item[1].sm_active,
    "active": lambda item: item[1].utilization,
    "memory_used": lambda item: item[1].memory_used,
    "power": lambda item: item[1].power_draw,
    "temperature": lambda item: item[1].temperature,
}
# What the rows are made of, how one is made, keys that need no row, and the usual order.
TABLES: Mapping[
    str, tuple[Callable[[FleetSnapshot], list[Any]], Callable[[Any], Row], Mapping[str, Callable[[Any], Any]], str]
] = {
    "host": (lambda snapshot: list(snapshot.hosts), _host, {"name": lambda host: host.name}, ""),
    "gpu": (lambda snapshot: list(snapshot.gpus()), lambda item: _gpu(*item), _GPU_RANKS, "-effective"),
    "user": (lambda snapshot: _holders(snapshot, user_of), dict, {}, "-gpus"),
    "job": (lambda snapshot: _holders(snapshot, job_of), dict, {}, "-gpus"),
    "unused": (_unused, dict, {}, ""),
}
SORTS = (
    "name", "host", "gpu", "source", "state", "age", "gpus", "product", "allocated", "free", "effective", "active", "memory_used", "power",
    "temperature", "users", "jobs", "hosts", "user", "job",
)  # fmt: skip


def table_rows(
    snapshot: FleetSnapshot, by: str, filter: str, sort: str, start: int, limit: int
) -> tuple[int, list[Row]]:
    """Return how many rows of a table fit a filter, and some of them in an order: a key, with a minus before it for falling order.

    What is missing comes last. Rows are made only of what is returned where the key can be read without: one costs 50 µs.
    """
    items, make, ranks, usual = TABLES[by]
    rows = items(filtered(snapshot, filter))
    order = sort or usual
    key = order.removeprefix("-")
    rank = ranks.get(key) or (lambda item: make(item).get(key))
    if order:
        known = [(value, item) for value, item in ((rank(item), item) for item in rows) if value is not None]
        missing = [item for item in rows if rank(item) is None] if len(known) < len(rows) else []
        known.sort(key=lambda pair: _rank(pair[0]), reverse=order.startswith("-"))
        rows = [item for _, item in known] + missing
    return len(rows), [cleaned(make(item)) for item in rows[start : start + limit]]


def _rank(value: Any) -> tuple[float, str]:
    """Return what a value is sorted by: numbers as such, also in text; texts by letter; lists by length."""
    if isinstance(value, list):
        return float(len(value)), str(value[:1])
    if isinstance(value, str):
        return (float(value), "") if value.isascii() and value.isdecimal() else (0.0, value.lower())
    return float(value), ""


def cleaned(plain: Any) -> Any:
    """Return plain data with text of other machines safe to show, and numbers with four digits after the point."""
    if isinstance(plain, dict):
        return {key: cleaned(value) for key, value in plain.items()}
    if isinstance(plain, list):
        return [cleaned(value) for value in plain]
    if isinstance(plain, str):
        return clean(plain)
    return round(plain, 4) if isinstance(plain, float) else plain


def free_rows(snapshot: FleetSnapshot, count: int, memory: float) -> list[Row]:
    """Return the machines that have this many free GPUs with this much memory, most free ones first."""
    found = [(host, free_gpus(host, memory)) for host in snapshot.hosts]
    rows = [
        {"host": host.name, "gpus": [label(gpu) for gpu in free], "product": product(free)}
        for host, free in found
        if len(free) >= count
    ]
    return sorted(rows, key=lambda row: -len(row["gpus"]))
