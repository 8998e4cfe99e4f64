"""The questions of the API of a fleet: each with its parameters, the shape of its answer, and what answers it, in a worker thread."""

from __future__ import annotations

import base64
import math
import time

from ..analysis.fleet import Funnel, filtered, free_gpus, held_by, job_of, sm_share, unused_grants, user_of
from ..analysis.fleet_usage import GROUPS, KEYS, UNKNOWN
from ..errors import UsageError
from ..model.fleet import FleetSnapshot
from ..present.concerns import product
from ..present.text import clean
from ..present.words import label, owners, short_name, silence
from ..remote.settings import Refused
from ..units import parse_size
from .api import Question, stretch
from .parameters import Parameter, Refusal, choice, count, text, timestamp
from .wire import catalog, words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, TypeAlias

    from ..model.catalog import Gpu, Process
    from ..model.fleet import HostReport
    from ..remote.past import Past
    from .fleet import FleetHub

    Row: TypeAlias = dict[str, Any]

_SEVERAL = 50  # names in one cell


def _host_row(host: HostReport) -> Row:
    sums = Funnel(host.gpus)
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
        **_shares(sums),
        "memory_used": sums.memory_used if sums.memory_total else None,
        "memory_total": sums.memory_total or None,
        "power": sums.power,
        "users": _people(host.gpus),
    }


def _shares(sums: Funnel) -> Row:
    """Return how much of some GPUs computes, and how much is active, in percent."""
    shares = {"effective": sums.sm_active, "active": sums.utilization}
    return {name: None if share is None else round(share, 1) for name, share in shares.items()}


def _people(gpus: Iterable[Gpu]) -> list[str]:
    return list(dict.fromkeys(user for gpu in gpus for user, *_ in owners(gpu.all_processes()) if user))[:_SEVERAL]


def _gpu_row(host: HostReport, gpu: Gpu) -> Row:
    return {
        "host": host.name,
        "gpu": label(gpu),
        "name": short_name(gpu),
        "state": gpu.state,
        "silence": silence(gpu, host.snapshot.time if host.snapshot else 0.0)[0],
        "effective": sm_share(gpu),
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
                **_shares(sums),
                "memory_used": sums.memory_used if sums.memory_total else None,
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
    "effective": lambda item: sm_share(item[1]),
    "active": lambda item: item[1].utilization,
    "memory_used": lambda item: item[1].memory_used,
    "power": lambda item: item[1].power_draw,
    "temperature": lambda item: item[1].temperature,
}
# What the rows are made of, how one is made, keys that need no row, and the usual order.
TABLES: Mapping[
    str, tuple[Callable[[FleetSnapshot], list[Any]], Callable[[Any], Row], Mapping[str, Callable[[Any], Any]], str]
] = {
    "host": (lambda snapshot: list(snapshot.hosts), _host_row, {"name": lambda host: host.name}, ""),
    "gpu": (lambda snapshot: list(snapshot.gpus()), lambda item: _gpu_row(*item), _GPU_RANKS, "-effective"),
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


_SPAN = 12 * 3600.0


def _table(hub: FleetHub, given: Mapping[str, Any]) -> Any:
    snapshot = hub.known()
    total, page = table_rows(snapshot, given["by"], given["filter"], given["sort"], given["offset"], given["limit"])
    told = {"by": given["by"], "total": total, "offset": given["offset"]}
    return {"time": round(snapshot.time, 3), **told, "rows": page}


def _free(hub: FleetHub, given: Mapping[str, Any]) -> Any:
    snapshot = hub.known()
    rows = free_rows(snapshot, given["count"], given["memory"])
    return {"time": round(snapshot.time, 3), "rows": [cleaned(row) for row in rows]}


def _host(hub: FleetHub, given: Mapping[str, Any]) -> Any:
    host = hub.host(given["name"])
    name = clean(host.name)
    problems = [one for one in hub.problems if one["host"] == name]
    plain = FleetSnapshot(hub.latest.time, (host,)).to_plain()["hosts"][0]
    taken = host.snapshot.time if host.snapshot else hub.latest.time
    plain["gpus"] = [values | words_of(gpu, taken) for values, gpu in zip(plain["gpus"], host.gpus, strict=True)]
    return {"time": round(hub.latest.time, 3), "host": cleaned(plain), "problems": problems}


def _grid(given: Mapping[str, Any], points: int) -> tuple[list[float], float]:
    """Return the beginnings of the intervals of a period, at even times, and their width."""
    start, end = stretch(given, _SPAN)
    step = float(max(15, math.ceil((end - start) / points)))  # whole, so that equal questions have equal answers
    first = start - start % step
    return [first + at * step for at in range(max(1, math.ceil((end - first) / step)))], step


def _asked(hub: FleetHub, ask: Callable[[Past], Any]) -> list[Any]:
    """Return what each past answers; one that refuses is a 502 with its reason."""
    try:
        return [ask(past) for past in hub.fleet.pasts]
    except Refused as refused:
        raise Refusal(502, f"the history cannot be read: {clean(refused.reason)}.") from None
    except OSError as error:
        raise Refusal(502, f"the history cannot be read: {clean(str(error.strerror or error))}.") from None


def _history(hub: FleetHub, given: Mapping[str, Any]) -> Any:
    host = hub.host(given["name"])
    times, step = _grid(given, given["points"])
    found = next(
        (one for one in _asked(hub, lambda past: past.history(host.name, times, step)) if one is not None), None
    )
    source = host.source
    if not found:
        source = "memory"
        times, found = hub.ring.history(host.name, times[0], times[-1] + step)
        step = hub.ring.width
    known = {gpu.uuid or str(gpu.index): gpu for gpu in hub.seen.get(host.name, ())}
    gpus = [
        {"uuid": clean(uuid), "index": getattr(known.get(uuid), "index", None), "name": clean(getattr(known.get(uuid), "name", None) or ""),
         "memory_total": getattr(known.get(uuid), "memory_total", None)}
        for uuid in dict.fromkeys(uuid for uuid, _ in found)
    ]  # fmt: skip
    series = [
        {"uuid": clean(uuid), "key": key, "values": [None if value is None else round(value, 3) for value in values]}
        for (uuid, key), values in found.items()
        if key in KEYS
    ]
    told = {"source": source, "since": hub.ring.since if source == "memory" else None, "seconds": step}
    return {"times": [round(at, 3) for at in times], "gpus": gpus, "series": series, **told}


def _heat(hub: FleetHub, given: Mapping[str, Any]) -> Any:
    times, step = _grid(given, given["points"])
    rows = hub.ring.shares(times, step)
    for found in hub.remembered(
        ("heat", times[0], times[-1]), lambda: _asked(hub, lambda past: past.shares(times, step))
    ):
        rows |= found
    empty = bytes([UNKNOWN]) * len(times)
    names = [host.name for host in hub.known().hosts]
    packed = base64.b64encode(b"".join(rows.get(name, empty) for name in names)).decode()
    told = {"memory_since": hub.ring.since, "seconds": step, "times": [round(at, 3) for at in times]}
    return {"hosts": [clean(name) for name in names], "map": packed, **told}


def _usage(hub: FleetHub, given: Mapping[str, Any]) -> Any:
    by = given["by"]
    times, step = _grid({**given, "from": given["from"] or time.time() - 86400}, 96)
    whole = hub.usage
    recorded = False
    for found in hub.remembered(
        ("usage", times[0], times[-1]), lambda: _asked(hub, lambda past: past.usage(times, step))
    ):
        recorded = recorded or bool(found.records)
        whole = whole.merged(found)
    rows = [cleaned(row) for row in whole.rows(by, hub.tariff)]
    own = {host.source for host in hub.known().hosts} - {"prometheus"}
    told = {
        "from": round(times[0], 3) if recorded else round(hub.started, 3),
        "to": round(times[-1] + step, 3) if recorded else round(time.time(), 3),
        "counted_since": round(hub.started, 3) if own else None,
        "currency": clean(hub.tariff.currency) if hub.tariff else "",
    }
    return {"by": by, **told, "total": len(rows), "rows": rows[:1000]}


def _size(text: str) -> float:
    try:
        return float(parse_size(text[:40]))
    except UsageError:
        raise ValueError(f"{text[:40]!r} is not a size; write it as 70GiB.") from None


_NAME = text("name", "Name of the machine.", 300)
_FROM = timestamp("from", "Start time (default: 12 hours before `to`).")
_TO = timestamp("to", "End time (default: now).")
_SORT = choice(
    "sort", "Column to sort by; with a minus before it in falling order.", (*SORTS, *(f"-{key}" for key in SORTS))
)
FLEET_QUESTIONS = (
    Question("/api/overview", "What the page begins with: machines in order, newest values, problems.", lambda hub, given: hub.overview(),
             "FleetOverview", (), (503,)),
    Question("/api/snapshot", "All machines with their GPUs, as in `gpulse fleet --json`.",
             lambda hub, given: hub.known().to_plain() | {"time": round(hub.latest.time, 3)}, "Fleet", (), (503,)),
    Question("/api/problems", "What is wrong on all machines, the worst and costliest first.",
             lambda hub, given: {"time": round(hub.known().time, 3), "problems": hub.problems}, "FleetProblems", (), (503,)),
    Question("/api/table", "Machines, GPUs, users, jobs, or GPUs that a scheduler has allocated and no process uses.", _table,
             "FleetTable", (
                 choice("by", "Rows (default: host).", tuple(TABLES), "host"),
                 text("filter", "A part of a machine's name, or words as in `gpulse top`: user:ada mem>1G.", 500), _SORT,
                 count("offset", "First row (default: 0).", 0, 10_000_000, 0),
                 count("limit", "Number of rows (default: 200).", 1, 2000, 200),
             ), (503,)),
    Question("/api/free", "Machines with free GPUs.", _free, "FleetFree", (
        count("count", "Free GPUs that a machine must have (default: 1).", 1, 1024, 1),
        Parameter("memory", "Memory that each of them must have, for example 70GiB.", {"type": "string"}, _size, 0.0)), (503,)),
    Question("/api/host", "One machine: its newest sample and its problems.", _host, "FleetHost", (_NAME,), (404, 503)),
    Question("/api/history", "Metrics of one machine over time, from Prometheus, its own `gpulse serve`, or memory.",
             _history, "FleetHistory",
             (_NAME, _FROM, _TO, count("points", "Number of intervals (default: 360).", 1, 2000, 360)), (404, 502, 503)),
    Question("/api/heat", "How much of each machine worked over time, as a map of bytes.", _heat, "FleetHeat",  # 1,000 machines are 96 KB
             (_FROM, _TO, count("points", "Number of intervals (default: 96).", 1, 500, 96)), (502, 503)),
    Question("/api/metrics-catalog", "All metrics with unit and meaning.", lambda hub, given: catalog(), "Catalog"),
    Question("/api/usage", "GPU hours, idle share, energy and cost by user, job, machine or day.", _usage, "FleetUsage",
             (choice("by", "Rows (default: user).", GROUPS, "user"), _FROM, _TO), (502, 503)),
)  # fmt: skip
