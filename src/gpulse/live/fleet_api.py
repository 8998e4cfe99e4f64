"""The questions of the API of a fleet: parameters, shapes of the answers, and what answers each, in a worker thread."""

from __future__ import annotations

import base64
import math
import time

from ..analysis.fleet_ring import KEYS, UNKNOWN
from ..analysis.fleet_usage import GROUPS
from ..errors import UsageError
from ..model.codec import object_schema as _object
from ..model.fleet import HOST_STATES, FleetSnapshot
from ..present.text import clean
from ..remote.urls import Refused
from ..units import parse_size
from . import wire
from .api import Question, stretch
from .fleet_tables import SORTS, TABLES, cleaned, free_rows, table_rows
from .parameters import Parameter, Refusal, choice, count, moment, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..remote.past import Past
    from .fleet import FleetHub

_SPAN = 12 * 3600.0
_LIMIT = 200
_COLUMNS = 96  # intervals of a heat map: 1,000 machines are 96 KB


def _overview(hub: FleetHub, given: Mapping[str, Any]) -> bytes:
    return wire.compact(hub.overview())


def _fleet(hub: FleetHub, given: Mapping[str, Any]) -> bytes:
    return wire.compact(hub.known().to_plain() | {"time": round(hub.latest.time, 3)})


def _problems(hub: FleetHub, given: Mapping[str, Any]) -> bytes:
    return wire.compact({"time": round(hub.known().time, 3), "problems": hub.problems})


def _table(hub: FleetHub, given: Mapping[str, Any]) -> bytes:
    by, start = given["by"] or "host", given["offset"] or 0
    snapshot = hub.known()
    total, page = table_rows(snapshot, by, given["filter"] or "", given["sort"] or "", start, given["limit"] or _LIMIT)
    return wire.compact({"time": round(snapshot.time, 3), "by": by, "total": total, "offset": start, "rows": page})


def _free(hub: FleetHub, given: Mapping[str, Any]) -> bytes:
    snapshot = hub.known()
    rows = free_rows(snapshot, given["count"] or 1, given["memory"] or 0.0)
    return wire.compact({"time": round(snapshot.time, 3), "rows": [cleaned(row) for row in rows]})


def _host(hub: FleetHub, given: Mapping[str, Any]) -> bytes:
    if not given["name"]:
        raise Refusal(422, "name: required.")
    host = hub.host(given["name"])
    name = clean(host.name)
    problems = [one for one in hub.problems if one["host"] == name]
    plain = FleetSnapshot(hub.latest.time, (host,)).to_plain()["hosts"][0]
    return wire.compact({"time": round(hub.latest.time, 3), "host": cleaned(plain), "problems": problems})


def _grid(given: Mapping[str, Any], points: int, least: float = 5.0) -> tuple[list[float], float]:
    """Return the beginnings of the intervals of a period, at even times, and their width of at least some seconds."""
    start, end = stretch(given, _SPAN)
    step = float(
        max(15, math.ceil((end - start) / points))
    )  # whole seconds, so that equal questions have equal answers
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


def _history(hub: FleetHub, given: Mapping[str, Any]) -> bytes:
    if not given["name"]:
        raise Refusal(422, "name: required.")
    host = hub.host(given["name"])
    times, step = _grid(given, given["points"] or 360)
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
    return wire.compact({"times": [round(at, 3) for at in times], "gpus": gpus, "series": series, **told})


def _heat(hub: FleetHub, given: Mapping[str, Any]) -> bytes:
    times, step = _grid(given, given["points"] or _COLUMNS, hub.ring.width)
    rows = hub.ring.shares(times, step)
    for found in hub.remembered(
        ("heat", times[0], times[-1]), lambda: _asked(hub, lambda past: past.shares(times, step))
    ):
        rows |= found
    empty = bytes([UNKNOWN]) * len(times)
    names = [host.name for host in hub.known().hosts]
    packed = base64.b64encode(b"".join(rows.get(name, empty) for name in names)).decode()
    told = {"memory_since": hub.ring.since, "seconds": step, "times": [round(at, 3) for at in times]}
    return wire.compact({"hosts": [clean(name) for name in names], "map": packed, **told})


def _usage(hub: FleetHub, given: Mapping[str, Any]) -> bytes:
    by = given["by"] or "user"
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
    return wire.compact({"by": by, **told, "total": len(rows), "rows": rows[:1000]})


def _size(text: str) -> float:
    try:
        return float(parse_size(text[:40]))
    except UsageError:
        raise ValueError(f"{text[:40]!r} is not a size; write it as 70GiB.") from None


_NAME = text("name", "Name of the machine.", 300)
_FROM = moment("from", "Start time (default: 12 hours before `to`).")
_TO = moment("to", "End time (default: now).")
_SORT = choice(
    "sort", "Column to sort by; with a minus before it in falling order.", (*SORTS, *(f"-{key}" for key in SORTS))
)
FLEET_QUESTIONS = (
    Question("/api/overview", "What the page begins with: machines in order, newest values, problems.", _overview, "FleetOverview",
             (), (503,)),
    Question("/api/snapshot", "All machines with their GPUs, as in `gpulse fleet --json`.", _fleet, "Fleet", (), (503,)),
    Question("/api/problems", "What is wrong on all machines, the worst and costliest first.", _problems, "FleetProblems", (), (503,)),
    Question("/api/table", "Machines, GPUs, users, jobs, or GPUs that a scheduler has allocated and no process uses.", _table,
             "FleetTable", (
                 choice("by", "Rows (default: host).", tuple(TABLES)),
                 text("filter", "A part of a machine's name, or words as in `gpulse top`: user:ada mem>1G.", 500), _SORT,
                 count("offset", "First row (default: 0).", 0, 10_000_000), count("limit", "Number of rows (default: 200).", 1, 2000),
             ), (503,)),
    Question("/api/free", "Machines with free GPUs.", _free, "FleetFree", (
        count("count", "Free GPUs that a machine must have (default: 1).", 1, 1024),
        Parameter("memory", "Memory that each of them must have, for example 70GiB.", {"type": "string"}, _size)), (503,)),
    Question("/api/host", "One machine: its newest sample and its problems.", _host, "FleetHost", (_NAME,), (404, 503)),
    Question("/api/history", "Metrics of one machine over time, from Prometheus, its own `gpulse serve`, or memory.",
             _history, "FleetHistory",
             (_NAME, _FROM, _TO, count("points", "Number of intervals (default: 360).", 1, 2000)), (404, 502, 503)),
    Question("/api/heat", "How much of each machine worked over time, as a map of bytes.", _heat, "FleetHeat",
             (_FROM, _TO, count("points", "Number of intervals (default: 96).", 1, 500)), (502, 503)),
    Question("/api/metrics-catalog", "All metrics with unit and meaning.", lambda hub, given: wire.compact(wire.catalog()), "Catalog"),
    Question("/api/usage", "GPU hours, idle share, energy and cost by user, job, machine or day.", _usage, "FleetUsage",
             (choice("by", "Rows (default: user).", GROUPS), _FROM, _TO), (502, 503)),
)  # fmt: skip


_NUMBER: dict[str, Any] = {"type": "number"}
_INTEGER: dict[str, Any] = {"type": "integer"}
_KNOWN: dict[str, Any] = {"type": ["number", "null"]}
_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_FLAG: dict[str, Any] = {"type": "boolean"}
_TIME: dict[str, Any] = {"$ref": "#/components/schemas/Time"}
_TIMES: dict[str, Any] = {"type": "array", "items": _TIME}
_SINCE: dict[str, Any] = {"anyOf": [_TIME, {"type": "null"}]}
_BYTES: dict[str, Any] = {"type": "string", "contentEncoding": "base64"}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _told(shape: dict[str, Any], description: str) -> dict[str, Any]:
    return {**shape, "description": description}


_PROBLEM = {
    "host": _TEXT, "key": _TEXT, "severity": {"enum": ["critical", "warn"]}, "place": _TEXT, "owner": _TEXT, "since": _SINCE,
    "lost": _told(_NUMBER, "Estimated GPU time lost since then, in seconds."), "title": _TEXT, "text": _TEXT, "remedy": _TEXT,
}  # fmt: skip
_PROBLEMS = _list(_object({**_PROBLEM, "gpus": _TEXTS}, list(_PROBLEM)))
_FUNNEL = _object(
    {
        **dict.fromkeys(("total", "allocated", "down", "active", "judged", "memory_used", "memory_total"), _NUMBER),
        "effective": _KNOWN,
        "power": _KNOWN,
    }
)
_HOST = {
    "name": _TEXT, "source": {"enum": ["ssh", "url", "prometheus"]}, "state": {"enum": list(HOST_STATES)}, "age": _KNOWN,
    "gpus": _list({"$ref": "#/components/schemas/Gpu"}),
}  # fmt: skip
SHAPES: dict[str, Any] = {
    "FleetProblems": _object({"time": _TIME, "problems": _PROBLEMS}),
    "FleetOverview": _object({
        "time": _TIME, "layout": _told(_INTEGER, "Changes when machines or their numbers of GPUs do."), "funnel": _FUNNEL,
        "states": _told(_TEXT, "One letter per machine: the first of its state."),
        "map": _told(_BYTES, "One byte per GPU: percent at work, 254 if it does not respond, 255 if unknown."),
        "hosts": _list({"type": "array", "description": "Name and number of GPUs."}),
        "problems": _told(_PROBLEMS, "The worst 500."), "problem_count": _INTEGER,
        "server": _object({"version": _TEXT, "started": _TIME, "interval": _NUMBER, "sources": _TEXTS, "currency": _TEXT,
                           "priced": _FLAG, "recorded": _FLAG})}),
    "FleetHostReport": _object({**_HOST, "reason": _TEXT, "link": _TEXT}, list(_HOST)),
    "Fleet": _object({"schema": {"const": 1}, "time": _TIME, "hosts": _list({"$ref": "#/components/schemas/FleetHostReport"})}),
    "FleetHost": _object({"time": _TIME, "host": {"$ref": "#/components/schemas/FleetHostReport"}, "problems": _PROBLEMS}),
    "FleetTable": _object({"time": _TIME, "by": _TEXT, "total": _INTEGER, "offset": _INTEGER, "rows": _list({"type": "object"})}),
    "FleetFree": _object({"time": _TIME, "rows": _list(_object({"host": _TEXT, "gpus": _TEXTS, "product": _TEXT}))}),
    "FleetHistory": _object({
        "times": _TIMES, "seconds": _NUMBER, "source": {"enum": ["prometheus", "url", "memory"]}, "since": _SINCE,
        "gpus": _list(_object({"uuid": _TEXT, "index": _KNOWN, "name": _TEXT, "memory_total": _KNOWN})),
        "series": _list(_object({"uuid": _TEXT, "key": _TEXT, "values": _list(_KNOWN)}))}),
    "FleetHeat": _object({
        "times": _TIMES, "seconds": _NUMBER, "hosts": _TEXTS,
        "memory_since": _told(_SINCE, "Machines that are not in Prometheus are known from then on, in this server's memory."),
        "map": _told(_BYTES, "One row of bytes per machine: percent at work, 255 if unknown.")}),
    "FleetUsage": _object({
        "by": _TEXT, "from": _TIME, "to": _TIME, "currency": _TEXT, "total": _INTEGER,
        "counted_since": _told(_SINCE, "Machines that are not in Prometheus are counted from then on, since this server started."),
        "rows": _list(_object({"name": _TEXT, "gpu_hours": _NUMBER, "held_hours": _KNOWN, "idle_share": _KNOWN, "energy": _KNOWN,
                               "cost": _KNOWN, "idle_cost": _KNOWN}))}),
}  # fmt: skip
