"""The OpenAPI document of the server, made from the tables that also answer."""

from __future__ import annotations

from http import HTTPStatus

from ..._version import __version__
from ...live import api, fleet_api
from ...live.fleet_api import SHAPES
from ...live.wire import catalog, compact
from ...model.catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS
from ...model.codec import STATES, object_schema, reading_schema
from ...store.history import OWNERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from ...model.metric import Metric

_ALWAYS = (400, 401, 405, 413)
_NUMBER = {"type": "number"}
_TEXT = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_VALUES = {"type": "array", "items": {"type": ["number", "null"]}}
_TIME = {"$ref": "#/components/schemas/Time"}
_TIMES = {"type": "array", "items": _TIME}
_KNOWN = {"type": ["number", "null"]}


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
        "security": [{"bearer": []}, {"cookie": []}],
        "paths": paths | (_OTHERS if others is None else dict(others)),
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "gpulse_token"},
            },
            "schemas": _SCHEMAS
            | ({} if others is None else SHAPES)
            | {"Gpu": _reading("gpu"), "Host": _reading("host"), "Process": _reading("process")},
        },
    }


def _path(question: api.Question) -> dict[str, Any]:
    return _get(
        question.summary,
        {"application/json": {"schema": {"$ref": f"#/components/schemas/{question.shape}"}}},
        {*_ALWAYS, 422, *question.statuses},
        parameters=[parameter.to_openapi() for parameter in question.parameters],
    )


def _get(summary: str, content: Mapping[str, Any], statuses: Collection[int], **more: Any) -> dict[str, Any]:
    wrong = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    refusals = {
        str(status): {"description": HTTPStatus(status).phrase, "content": wrong} for status in sorted(set(statuses))
    }
    return {
        "get": {"summary": summary, **more, "responses": {"200": {"description": "OK", "content": content}, **refusals}}
    }


def _array(of: str) -> dict[str, Any]:
    return {"type": "array", "items": {"$ref": f"#/components/schemas/{of}"}}


def _reading(thing: str) -> dict[str, Any]:
    """Return the shape of one thing of the catalog; any value may be missing, or null with its reason in `gaps`."""
    metrics: dict[str, dict[str, Metric]] = {"gpu": GPU_METRICS, "host": HOST_METRICS, "process": PROCESS_METRICS}
    served = [metrics[thing][metric["key"]] for metric in catalog()[thing]]
    if thing != "gpu":
        return reading_schema(served, {})
    more = {"state": {"enum": list(STATES)}, "processes": _array("Process"), "instances": _array("Gpu")}
    return reading_schema(served, more, ["state"])


_LINES = {"text/plain": {"schema": _TEXT}}
_EVENT = object_schema(
    {
        "time": _TIME,
        "uuid": _TEXT,
        "uuids": {"type": "array", "items": _TEXT},
        "kind": _TEXT,
        "level": _TEXT,
        "text": _TEXT,
    }
)
_PERIOD = object_schema({"from": _TIME, "to": _TIME, "recorded": _NUMBER})
_MAYBE_TIME = {"anyOf": [_TIME, {"type": "null"}]}
_PROBLEMS: dict[str, Any] = {"type": "array", "items": object_schema({
    "key": _TEXT, "severity": {"enum": ["critical", "warn"]}, "gpus": _TEXTS, "uuids": _TEXTS, "owner": _TEXT,
    "pid": {"type": ["integer", "null"]}, "since": _MAYBE_TIME, "expected": _MAYBE_TIME,
    "lost": _NUMBER | {"description": "Estimated GPU time lost since then, in seconds."},
    "confidence": _TEXT, "title": _TEXT, "text": _TEXT, "remedy": _TEXT,
    "alerts": {"type": "array", "items": {"type": ["object", "string"]}}})}  # fmt: skip
_SCHEMAS: dict[str, Any] = {
    "Time": {"type": "number", "format": "unixtime", "description": "Seconds since 1970-01-01T00:00:00Z."},
    "Problem": object_schema({"type": _TEXT, "title": _TEXT, "status": {"type": "integer"}, "detail": _TEXT}),
    "Snapshot": object_schema({
        "schema": {"const": 1}, "time": _TIME, "host": {"$ref": "#/components/schemas/Host"},
        "driver": {"type": "object", "additionalProperties": _TEXT}, "gpus": _array("Gpu"),
        "errors": {"type": "array", "items": object_schema({"source": _TEXT, "message": _TEXT, "remedy": _TEXT})},
        "alerts": {"type": "array", "items": {"type": "object"}},
        "verdicts": {"type": "array", "items": object_schema({
            "uuid": _TEXT, "gpu": _TEXT, "verdict": _TEXT, "confidence": _TEXT, "level": _TEXT, "short": _TEXT, "text": _TEXT,
            "evidence": _TEXTS, "advice": _TEXTS, "also": _TEXTS})},
        "problems": _PROBLEMS,
        "server": object_schema({"version": _TEXT, "started": _TIME, "interval": _NUMBER, "commands": {"type": "boolean"},
                           "history": {"type": "boolean"}}),
    }),
    "Alerts": object_schema({
        "time": _TIME, "alerts": {"type": "array", "items": {"type": "object"}},
        "silences": {"type": "array", "items": object_schema({"id": _TEXT, "rule": _TEXT, "gpus": _TEXTS, "user": _TEXT, "by": _TEXT,
                                                        "reason": _TEXT, "since": _TIME, "until": _TIME})}}),
    "Problems": object_schema({"time": _TIME, "problems": _PROBLEMS}),
    "History": object_schema({
        "from": _TIME, "to": _TIME, "times": _TIMES, "gaps": {"type": "array", "items": _TIMES},
        "gpus": {"type": "array", "items": object_schema({"uuid": _TEXT, "index": {"type": ["integer", "null"]},
                                                    "name": {"type": ["string", "null"]}, "memory_total": {"type": ["number", "null"]}})},
        "series": {"type": "array", "items": object_schema({"uuid": _TEXT, "key": _TEXT, "times": _TIMES, "min": _VALUES, "mean": _VALUES,
                                                      "max": _VALUES}, ["uuid", "key", "min", "mean", "max"])},
    }, ["from", "to", "gpus", "gaps", "series"]),
    "Processes": object_schema({"time": _TIME, "processes": {"type": "array", "items": {"allOf": [
        {"$ref": "#/components/schemas/Process"}, object_schema({"gpu": {"type": ["number", "null"]}, "uuid": _TEXT})]}},
        "uses": {"type": "array", "items": object_schema({"uuid": _TEXT, "pid": {"type": "integer"}, "first": _TIME, "last": _TIME})}},
        ["time"]),
    "Usage": object_schema({
        "from": _TIME, "to": _TIME, "by": {"enum": list(OWNERS)}, "times": _TIMES, "seconds": _NUMBER, "owners": {"type": "integer"},
        "usage": {"type": "array", "items": object_schema({
            "owner": {"type": ["string", "null"]}, "label": _TEXT, "gpu_hours": _NUMBER, "instance_hours": _KNOWN, "busy_hours": _KNOWN,
            "memory_gib_hours": _KNOWN, "memory_most": _KNOWN, "energy": _KNOWN, "processes": {"type": "integer"}, "uuids": _TEXTS,
            "gpus": _VALUES | {"description": "Mean number of GPUs held in each interval; null if not recorded or not counted yet."},
            "watts": _VALUES | {"description": "Mean power in each interval, estimated; null as for `gpus`."},
            "pid": {"type": "integer"}, "first": _TIME, "last": _TIME}, ["owner", "label", "uuids", "gpus"])},
    }),
    "Comparison": object_schema({
        "a": _PERIOD, "b": _PERIOD, "note": _TEXT, "headline": _TEXTS,
        "figures": {"type": "array", "items": object_schema({"title": _TEXT, "a": _KNOWN, "b": _KNOWN, "a_text": _TEXT, "b_text": _TEXT,
                                                       "difference": _TEXT, "matters": {"type": "boolean"}})},
        "gpus": {"type": "array", "items": object_schema({"uuid": _TEXT, "label": _TEXT, "activity": _TEXT, "a": _TEXTS, "b": _TEXTS})},
    }),
    "Runs": object_schema({"note": _TEXT, "runs": {"type": "array", "items": object_schema({
        "id": _TEXT, "start": _TIME, "seconds": _KNOWN, "result": _TEXT, "command": _TEXT, "gpus": _TEXT, "speed": _TEXT,
        "limit": _TEXT})}}),
    "Run": object_schema({
        "id": _TEXT, "title": _TEXT, "facts": {"type": "array", "items": _TEXTS}, "verdicts": _TEXTS, "code": _TEXTS,
        "budget": {"type": "array", "items": {"type": "object"}},
        "flame": {"anyOf": [{"type": "null"}, {"$ref": "#/components/schemas/Flame"}]}}),
    "Flame": object_schema({"name": _TEXT, "own": {"type": "boolean"}, "seconds": _NUMBER, "inner": _array("Flame")},
                           ["name", "own", "seconds"]),
    "Events": object_schema({"events": {"type": "array", "items": _EVENT}}),
    "Catalog": object_schema({thing: {"type": "array", "items": object_schema({"key": _TEXT, "title": _TEXT, "unit": _TEXT})}
                        for thing in ("gpu", "host", "process")}),
    "OpenAPI": {"type": "object"},
}  # fmt: skip
_TRACE = object_schema({"pid": {"type": "integer"}, "steps": {"type": "integer", "minimum": 1, "maximum": 1000}})
_MONITORS = object_schema({"monitors": {"type": "array", "items": object_schema({
    "pid": {"type": "integer"}, "run": _TEXT, "phase": _TEXT, "step": {"type": ["integer", "null"]}, "steps_per_second": _KNOWN,
    "data_wait": _KNOWN, "trace": {"anyOf": [{"type": "null"}, object_schema({"state": _TEXT, "text": _TEXT})]}})}})  # fmt: skip
_DECIDED = object_schema({
    "action": {"enum": ["silence", "unsilence", "acknowledge"]}, "for": _TEXT, "rule": _TEXT, "gpus": _TEXTS, "user": _TEXT,
    "reason": _TEXT, "id": _TEXT, "ids": _TEXTS}, ["action"])  # fmt: skip
_DECISION = {"post": _get("Silence alerts for a while, end a silence, or acknowledge active alerts; needs a token.",
                          {"application/json": {"schema": {"type": "object"}}}, (*_ALWAYS, 403, 404, 422),
                          requestBody={"required": True, "content": {"application/json": {"schema": _DECIDED}}})["get"]}  # fmt: skip
_OTHERS = {
    "/api/monitors": _get("Programs of the server's user that have a running Monitor: phase, step, waits, and the state of a trace.",
                          {"application/json": {"schema": _MONITORS}}, _ALWAYS),
    "/api/trace": {"post": _get("Ask a Monitor for a profiler trace of its next steps; needs a token.",
                                {"application/json": {"schema": _TRACE}}, (*_ALWAYS, 403, 404, 422),
                                requestBody={"required": True, "content": {"application/json": {"schema": _TRACE}}})["get"]},
    "/api/stream": _get("Samples as server-sent events: sample, processes, event, alert, alerts, problems, verdicts, runs, hole.",
                        {"text/event-stream": {"schema": _TEXT}}, (*_ALWAYS, 503)),
    "/metrics": _get("Metrics for Prometheus; no token required if only this machine can connect.",
                     _LINES | {"application/openmetrics-text": {"schema": _TEXT}}, (*_ALWAYS, 503)),
    "/healthz": _get("200 while the server is running.", _LINES, _ALWAYS),
    "/readyz": _get("200 while samples are fresh.", _LINES, (*_ALWAYS, 503)),
}  # fmt: skip


def _answer(asked: api.ApiRequest, given: Mapping[str, Any]) -> bytes:
    return compact(document(QUESTIONS))


def _fleet_answer(asked: Any, given: Mapping[str, Any]) -> bytes:
    stream = _get("New values of all machines as server-sent events: fleet, problems, hole.",
                  {"text/event-stream": {"schema": _TEXT}}, (*_ALWAYS, 503))  # fmt: skip
    others = {path: _OTHERS[path] for path in ("/healthz", "/readyz")} | {"/api/stream": stream}
    return compact(document(FLEET_QUESTIONS, "GPUs of many machines: current values and history.", others))


QUESTIONS = (*api.QUESTIONS, api.Question("/api/openapi.json", "This document.", _answer, "OpenAPI"))
FLEET_QUESTIONS = (
    *fleet_api.FLEET_QUESTIONS,
    api.Question("/api/openapi.json", "This document.", _fleet_answer, "OpenAPI"),
)
