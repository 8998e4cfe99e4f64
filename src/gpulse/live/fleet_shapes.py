"""The shapes of the answers about a fleet, as JSON schemas for its OpenAPI document."""

from __future__ import annotations

from ..model.fleet import HOST_STATES
from ..model.schema import object_schema as _object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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
