"""JSON Schema of the snapshots that `gpulse --json`, recordings and `gpulse query --format=ndjson` write, made from the catalog."""

from __future__ import annotations

from .catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS, SERVER_METRICS
from .codec import SCHEMA, STATES
from .metric import GAPS, Flag, Number, Numbers, Text, Words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from .metric import Metric

_TYPES: dict[type[Metric], dict[str, Any]] = {
    Number: {"type": ["number", "null"]},
    Text: {"type": ["string", "null"]},
    Flag: {"type": ["boolean", "null"]},
    Words: {"type": ["array", "null"], "items": {"type": "string"}},
    Numbers: {"type": ["array", "null"], "items": {"type": "number"}},
}
_TIME = {"type": "string", "format": "date-time"}


def snapshot_schema() -> dict[str, Any]:
    """Return the schema of one snapshot (JSON Schema 2020-12). New keys may be added; readers ignore those they do not know."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "gpulse snapshot",
        "description": "All values of one machine at one time. A missing value is absent, or null with its reason in `gaps`.",
        **object_schema(
            {
                "schema": {"const": SCHEMA},
                "time": _TIME | {"description": "RFC 3339, UTC"},
                "host": {"$ref": "#/$defs/host"},
                "driver": {"type": "object", "additionalProperties": {"type": "string"}},
                "gpus": _array("gpu"),
                "serving": _array("server"),
                "errors": _array("error"),
                "check": {"type": "string", "description": "checksum of a recording's line"},
            },
            ("schema", "time", "host", "driver", "gpus", "errors"),
        ),
        "$defs": _definitions(),
    }


def reading_schema(metrics: Iterable[Metric], more: Mapping[str, Any], required: Sequence[str] = ()) -> dict[str, Any]:
    """Return the schema of an object with these metrics, any of which may be missing, and other properties."""
    values = {metric.key: _value(metric) for metric in metrics}
    gaps = {"type": "object", "additionalProperties": {"enum": list(GAPS)}}
    return object_schema(values | {"gaps": gaps} | dict(more), required)


def object_schema(properties: Mapping[str, Any], required: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the schema of an object; without `required`, all properties are."""
    names = list(properties if required is None else required)
    return {"type": "object", "properties": dict(properties), "required": names}


def _value(metric: Metric) -> dict[str, Any]:
    shape = next(shape for kind, shape in _TYPES.items() if isinstance(metric, kind))
    unit = f" Unit: {metric.unit.symbol}." if metric.unit.symbol else ""
    return {**shape, "title": metric.title, "description": f"{metric.help}{unit}"}


def _definitions() -> dict[str, Any]:
    described = {"description": "null values have a reason in `gaps`"}
    gpu = {
        "state": {"enum": list(STATES)},
        "since": _TIME | {"description": "start of a state other than ok"},
        "processes": _array("process"),
        "instances": _array("gpu") | {"description": "MIG instances"},
    }
    return {
        "gpu": reading_schema(GPU_METRICS.values(), gpu, ("state", "gaps", "processes")) | described,
        "process": reading_schema(PROCESS_METRICS.values(), {}),
        "host": reading_schema(HOST_METRICS.values(), {}),
        "server": reading_schema(SERVER_METRICS.values(), {}),
        "error": object_schema({key: {"type": "string"} for key in ("source", "message", "remedy")}),
    }


def _array(of: str) -> dict[str, Any]:
    return {"type": "array", "items": {"$ref": f"#/$defs/{of}"}}
