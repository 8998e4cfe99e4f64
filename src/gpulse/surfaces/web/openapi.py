"""The OpenAPI document of the server, made from the tables that also answer; and the shapes of the answers."""

from __future__ import annotations

from http import HTTPStatus

from ..._version import __version__
from ...live import api, fleet_api
from ...live.wire import catalog
from ...model.catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS
from ...model.codec import STATES, object_schema, reading_schema
from ...model.fleet import HOST_STATES
from ...store.history import OWNERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from ...model.metric import Metric

_ALWAYS = (400, 401, 403, 405, 413)
_TYPES: dict[str, dict[str, Any]] = {
    "text": {"type": "string"}, "number": {"type": "number"}, "integer": {"type": "integer"}, "flag": {"type": "boolean"},
    "object": {"type": "object"}, "array": {"type": "array"}, "bytes": {"type": "string", "contentEncoding": "base64"},
}  # fmt: skip


def _typed(kind: str) -> dict[str, Any]:
    """Return the schema of a type: one of _TYPES or a shape of the document, `number?` that may be null, `[text]` a list."""
    if kind.endswith("]"):
        return {"type": "array", "items": _typed(kind[1:-1])}
    if kind.endswith("?"):
        known = _typed(kind[:-1])
        return {"type": [known["type"], "null"]} if "type" in known else {"anyOf": [known, {"type": "null"}]}
    return _TYPES.get(kind) or {"$ref": f"#/components/schemas/{kind}"}


def _shape(fields: str, **others: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object from `name` (a text), `name:type`, or `~name:type` that may be missing.

    `others` are schemas of fields that are more than a type; those among them that may be missing are named `~name` in `fields`.
    """
    words = [word.partition(":") for word in fields.split()]
    properties = {name.removeprefix("~"): _typed(kind or "text") for name, _, kind in words} | others
    missing = {name[1:] for name, _, _ in words if name.startswith("~")}
    return object_schema(properties, [name for name in properties if name not in missing])


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _told(kind: str, description: str) -> dict[str, Any]:
    return _typed(kind) | {"description": description}


def document(
    questions: Sequence[api.Question],
    about: str = "GPUs of one machine: current values and history.",
    others: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the document of some questions as plain data, with paths of `others`."""
    paths = {question.path: _path(question) for question in questions}
    if "/api/alerts" in paths:
        paths["/api/alerts"] |= _DECISION
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "gpulse",
            "version": __version__,
            "description": f"{about} Every time in a response is a number: seconds since "
            "1970-01-01T00:00:00Z (schema Time), with up to three digits after the point. A missing value is null or absent, never 0.",
        },
        "servers": [{"url": ".."}],
        "security": [{"bearer": []}],
        "paths": paths | (_OTHERS if others is None else dict(others)),
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": _SHAPES
            | ({} if others is None else _FLEET_SHAPES)
            | {"Gpu": _reading("gpu"), "Host": _reading("host"), "Process": _reading("process")},
        },
    }


def _path(question: api.Question) -> dict[str, Any]:
    parameters = [parameter.to_openapi() for parameter in question.parameters]
    return {"get": _asked(question.summary, question.shape, {*_ALWAYS, 422, *question.statuses}, parameters=parameters)}


def _asked(
    summary: str, answer: str, statuses: Collection[int], kind: str = "application/json", **more: Any
) -> dict[str, Any]:
    """Return how a path is asked: `answer` is the type of what it returns as `kind`, `statuses` are those of its refusals."""
    wrong = {"application/problem+json": {"schema": _typed("Problem")}}
    refusals = {
        str(status): {"description": HTTPStatus(status).phrase, "content": wrong} for status in sorted(statuses)
    }
    found = {"200": {"description": "OK", "content": {one: {"schema": _typed(answer)} for one in kind.split()}}}
    return {"summary": summary, **more, "responses": found | refusals}


def _posted(summary: str, body: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Return how something is decided with a POST request, for which a token is needed."""
    asked = _asked(summary, "object", (*_ALWAYS, 404, 415, 422))
    asked["responses"]["200"]["content"]["application/json"]["schema"] = answer
    return {"post": asked | {"requestBody": {"required": True, "content": {"application/json": {"schema": body}}}}}


def _reading(thing: str) -> dict[str, Any]:
    """Return the shape of one thing of the catalog; any value may be missing, or null with its reason in `gaps`."""
    metrics: dict[str, dict[str, Metric]] = {"gpu": GPU_METRICS, "host": HOST_METRICS, "process": PROCESS_METRICS}
    served = [metrics[thing][metric["key"]] for metric in catalog()[thing]]
    if thing != "gpu":
        return reading_schema(served, {})
    more = {"state": {"enum": list(STATES)}, "processes": _typed("[Process]"), "instances": _typed("[Gpu]")}
    more |= {"silence": _told("[text]", "Why it shows no values, and the style of that text."),
             "notes": _told("[[text]]", "What its values do not say: texts with their styles.")}  # fmt: skip
    return reading_schema(served, more, ["state"])


_SEVERITY = {"enum": ["critical", "warn"]}
_LOST = _told("number", "Estimated GPU time lost since then, in seconds.")
_PERIOD = _shape("from:Time to:Time recorded:number")
_PROBLEMS = _list(_shape(
    "key gpus:[text] uuids:[text] owner pid:integer? since:Time? expected:Time? confidence title text remedy",
    severity=_SEVERITY, lost=_LOST, alerts=_list({"type": ["object", "string"]})))  # fmt: skip
_SHAPES: dict[str, Any] = {
    "Time": {"type": "number", "format": "unixtime", "description": "Seconds since 1970-01-01T00:00:00Z."},
    "Problem": _shape("type title status:integer detail"),
    "Snapshot": _shape(
        "time:Time host:Host gpus:[Gpu] alerts:[object]",
        schema={"const": 1}, driver={"type": "object", "additionalProperties": _typed("text")},
        errors=_list(_shape("source message remedy")), problems=_PROBLEMS,
        verdicts=_list(_shape("uuid gpu verdict confidence level short text evidence:[text] advice:[text] also:[text]")),
        server=_shape("version started:Time interval:number commands:flag history:flag")),
    "Alerts": _shape("time:Time alerts:[object]",
                     silences=_list(_shape("id rule gpus:[text] user by reason since:Time until:Time"))),
    "Problems": _shape("time:Time", problems=_PROBLEMS),
    "History": _shape(
        "from:Time to:Time ~times:[Time] gaps:[[Time]]",
        gpus=_list(_shape("uuid index:integer? name:text? memory_total:number?")),
        series=_list(_shape("uuid key ~times:[Time] min:[number?] mean:[number?] max:[number?]"))),
    "Processes": _shape(
        "time:Time ~processes ~uses", processes=_list({"allOf": [_typed("Process"), _shape("gpu:number? uuid")]}),
        uses=_list(_shape("uuid pid:integer first:Time last:Time"))),
    "Usage": _shape(
        "from:Time to:Time times:[Time] seconds:number owners:integer", by={"enum": list(OWNERS)},
        usage=_list(_shape(
            "owner:text? label ~gpu_hours:number ~instance_hours:number? ~busy_hours:number? ~memory_gib_hours:number? "
            "~memory_most:number? ~energy:number? ~processes:integer uuids:[text] ~watts ~pid:integer ~first:Time ~last:Time",
            gpus=_told("[number?]", "Mean number of GPUs held in each interval; null if not recorded or not counted yet."),
            watts=_told("[number?]", "Mean power in each interval, estimated; null as for `gpus`.")))),
    "Comparison": _shape(
        "note headline:[text]", a=_PERIOD, b=_PERIOD,
        figures=_list(_shape("title a:number? b:number? a_text b_text difference matters:flag")),
        gpus=_list(_shape("uuid label activity a:[text] b:[text]"))),
    "Runs": _shape("note", runs=_list(_shape("id start:Time seconds:number? result command gpus speed limit"))),
    "Run": _shape("id title facts:[[text]] verdicts:[text] code:[text] budget:[object]",
                  flame={"anyOf": [{"type": "null"}, _typed("Flame")]}),
    "Flame": _shape("name own:flag seconds:number ~inner:[Flame]"),
    "Events": _shape("", events=_list(_shape("time:Time uuid uuids:[text] kind level text"))),
    "Catalog": _shape("", **dict.fromkeys(("gpu", "host", "process"), _list(_shape("key title unit")))),
    "Monitors": _shape("", monitors=_list(_shape("pid:integer run phase step:integer? steps_per_second:number? data_wait:number?"))),
    "OpenAPI": {"type": "object"},
}  # fmt: skip
_FLEET_PROBLEMS = _list(
    _shape("host key place owner since:Time? title text remedy ~gpus:[text]", severity=_SEVERITY, lost=_LOST)
)
_FLEET_SHAPES: dict[str, Any] = {
    "FleetProblems": _shape("time:Time", problems=_FLEET_PROBLEMS),
    "FleetOverview": _shape(
        "time:Time problem_count:integer", layout=_told("integer", "Changes when machines or their numbers of GPUs do."),
        funnel=_shape("total:number allocated:number down:number active:number judged:number memory_used:number memory_total:number "
                      "effective:number? power:number?"),
        states=_told("text", "One letter per machine: the first of its state."),
        map=_told("bytes", "One byte per GPU: percent at work, 254 if it does not respond, 255 if unknown."),
        hosts=_list(_told("array", "Name and number of GPUs.")), problems=_FLEET_PROBLEMS | {"description": "The worst 500."},
        server=_shape("version started:Time interval:number sources:[text] currency priced:flag recorded:flag")),
    "FleetHostReport": _shape("name age:number? gpus:[Gpu] ~reason ~link", source={"enum": ["ssh", "url", "prometheus"]},
                              state={"enum": list(HOST_STATES)}),
    "Fleet": _shape("time:Time hosts:[FleetHostReport]", schema={"const": 1}),
    "FleetHost": _shape("time:Time host:FleetHostReport", problems=_FLEET_PROBLEMS),
    "FleetTable": _shape("time:Time by total:integer offset:integer rows:[object]"),
    "FleetFree": _shape("time:Time", rows=_list(_shape("host gpus:[text] product"))),
    "FleetHistory": _shape(
        "times:[Time] seconds:number since:Time?", source={"enum": ["prometheus", "url", "memory"]},
        gpus=_list(_shape("uuid index:number? name memory_total:number?")), series=_list(_shape("uuid key values:[number?]"))),
    "FleetHeat": _shape(
        "times:[Time] seconds:number hosts:[text]", map=_told("bytes", "One row of bytes per machine: percent at work, 255 if unknown."),
        memory_since=_told("Time?", "Machines that are not in Prometheus are known from then on, in this server's memory.")),
    "FleetUsage": _shape(
        "by from:Time to:Time currency total:integer",
        counted_since=_told("Time?", "Machines that are not in Prometheus are counted from then on, since this server started."),
        rows=_list(_shape("name gpu_hours:number held_hours:number? idle_share:number? energy:number? cost:number? idle_cost:number?"))),
}  # fmt: skip
_DECISION = _posted(
    "Silence alerts for a while, end a silence, or acknowledge active alerts; needs a token.",
    _shape("~for ~rule ~gpus:[text] ~user ~reason ~id ~ids:[text]", action={"enum": ["silence", "unsilence", "acknowledge"]}),
    _typed("object"))  # fmt: skip
_OTHERS = {
    "/api/monitors": {"get": _asked(
        "Programs of the server's user that have a running Monitor: phase, step and waits.", "Monitors", _ALWAYS)},
    "/api/stream": {"get": _asked("Samples as server-sent events: sample, processes, event, alert, alerts, problems, verdicts, runs, hole.",
                                  "text", (*_ALWAYS, 503), "text/event-stream")},
    "/metrics": {"get": _asked("Metrics for Prometheus; no token required if only this machine can connect.", "text", (*_ALWAYS, 503),
                               "text/plain application/openmetrics-text", security=[{}, {"bearer": []}])},
    "/healthz": {"get": _asked("200 while the server is running.", "text", _ALWAYS, "text/plain", security=[])},
    "/readyz": {"get": _asked("200 while samples are fresh.", "text", (*_ALWAYS, 503), "text/plain", security=[])},
}  # fmt: skip
_FLEET_OTHERS = {path: _OTHERS[path] for path in ("/healthz", "/readyz")} | {"/api/stream": {"get": _asked(
    "New values of all machines as server-sent events: fleet, problems, hole.", "text", (*_ALWAYS, 503), "text/event-stream")}}  # fmt: skip


def _with_document(questions: Sequence[api.Question], *about: Any) -> tuple[api.Question, ...]:
    """Return questions and the one for the document of all of them."""
    own = api.Question("/api/openapi.json", "This document.", lambda *_: document(found, *about), "OpenAPI")
    found = (*questions, own)
    return found


QUESTIONS = _with_document(api.QUESTIONS)
FLEET_QUESTIONS = _with_document(
    fleet_api.FLEET_QUESTIONS, "GPUs of many machines: current values and history.", _FLEET_OTHERS
)
