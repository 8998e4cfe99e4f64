"""Convert snapshots to and from plain data: the JSON format with schema 1, one object per snapshot, and its JSON Schema.

The texts of `repr()` are here, too: one line, safe to print whatever a process or a board is called.

Reading is tolerant: unknown keys are ignored, and a value of the wrong type or out of range becomes a gap. Who wrote a recording, or
what another machine answers, is not trusted: lists are cut, too.
"""

from __future__ import annotations

import json
import time as clock

from ..errors import RecordingError
from ..units import size_text
from .catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS, SERVER_METRICS, Gpu, Host, Process, Server
from .metric import GAPS, Flag, Number, Numbers, Reading, Text, Words
from .plausible import drop_implausible
from .snapshot import Problem, Snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from .catalog import State
    from .metric import Gap, Metric, Value

SCHEMA = 1
_MOST_OBJECTS = 4096  # GPUs of a machine, processes of a GPU, problems; the rest of a longer list is left out
STATES: tuple[State, ...] = ("ok", "lost", "timeout", "asleep")


def to_line(snapshot: Snapshot) -> str:
    """Return a snapshot as one line of JSON, without the newline."""
    return json.dumps(to_plain(snapshot), ensure_ascii=True, allow_nan=False, separators=(", ", ": "))


def from_line(line: str) -> Snapshot:
    """Parse a snapshot from one line of JSON; raise RecordingError if it is not one."""
    try:
        plain = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RecordingError(f"this line is not JSON ({error}).") from None
    return from_plain(plain)


def to_plain(snapshot: Snapshot) -> dict[str, Any]:
    """Return a snapshot as dicts, lists, numbers and text."""
    return {
        "schema": SCHEMA,
        "time": time_text(snapshot.time),
        "host": _with_gaps(snapshot.host),
        "driver": dict(snapshot.driver),
        "gpus": [_gpu_to_plain(gpu) for gpu in snapshot.gpus],
        "serving": [_with_gaps(server) for server in snapshot.serving],
        "errors": [problem.to_plain() for problem in snapshot.problems],
    }


def from_plain(plain: Any) -> Snapshot:
    """Build a snapshot from plain data; raise RecordingError if this version cannot read its schema."""
    if not isinstance(plain, dict):
        raise RecordingError("this line is not a snapshot: it is not a JSON object.")
    if plain.get("schema") != SCHEMA:
        raise RecordingError(
            f"this line has schema {plain.get('schema')!r}, but this version reads schema {SCHEMA};",
            "use the version of gpulse that wrote it.",
        )
    return Snapshot(
        time=parse_time(plain.get("time")),
        host=Host(*_values(_mapping(plain.get("host")), HOST_METRICS)),
        driver={str(key): str(value) for key, value in _mapping(plain.get("driver")).items() if value is not None},
        gpus=tuple(_gpu_from_plain(gpu) for gpu in _objects(plain.get("gpus"))),
        problems=tuple(
            Problem(*(str(entry.get(key, "")) for key in ("source", "message", "remedy")))
            for entry in _objects(plain.get("errors"))
        ),
        serving=tuple(Server(*_values(server, SERVER_METRICS)) for server in _objects(plain.get("serving"))),
    )


def time_text(seconds: float) -> str:
    """Return seconds since 1970 as RFC 3339 in UTC, always with six digits: pandas reads a column in one format only."""
    whole, micros = divmod(round(seconds * 1_000_000), 1_000_000)
    text = clock.strftime("%Y-%m-%dT%H:%M:%S", clock.gmtime(whole))
    return f"{text}.{micros:06d}Z"


def parse_time(text: Any) -> float:
    """Parse RFC 3339 into seconds since 1970; raise RecordingError if it is not a time."""
    from datetime import datetime, timezone  # takes 2 ms, and only recordings need it

    try:
        moment = datetime.fromisoformat(_six_digits(text.replace("Z", "+00:00").replace("z", "+00:00")))
        return moment.timestamp() if moment.tzinfo else moment.replace(tzinfo=timezone.utc).timestamp()
    except (AttributeError, ValueError, OverflowError, OSError):
        raise RecordingError(f"{text!r} is not a time;", "write it as 2026-11-15T06:00:00Z.") from None


def _six_digits(text: str) -> str:
    """Return a time with six fractional digits: Python 3.10 parses three or six, RFC 3339 allows any number."""
    head, dot, rest = text.partition(".")
    zone = rest.lstrip("0123456789")
    return f"{head}.{rest[: len(rest) - len(zone)][:6]:0<6}{zone}" if dot else text


def _gpu_to_plain(gpu: Gpu) -> dict[str, Any]:
    plain = _reading_to_plain(gpu)
    plain["state"] = gpu.state
    if gpu.since is not None:
        plain["since"] = time_text(gpu.since)
    plain["gaps"] = dict(gpu.gaps)
    plain["processes"] = [_with_gaps(process) for process in gpu.processes]
    if gpu.instances:
        plain["instances"] = [_gpu_to_plain(instance) for instance in gpu.instances]
    return plain


def _with_gaps(reading: Reading) -> dict[str, Any]:
    return _reading_to_plain(reading) | ({"gaps": dict(reading.gaps)} if reading.gaps else {})


_ORDERS: dict[type, dict[str, int]] = {}  # places of the keys in the catalog, by class of readings


def _reading_to_plain(reading: Reading) -> dict[str, Any]:
    """Return values and gaps in the order of the catalog; only the keys that are there are visited, a fifth of all."""
    kind = type(reading)
    if kind not in _ORDERS:
        _ORDERS[kind] = {metric.key: place for place, metric in enumerate(reading.metrics())}
    order = _ORDERS[kind]
    found: dict[str, Any] = {**dict.fromkeys(reading.gaps), **dict(reading.items())}
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in sorted(found.items(), key=lambda entry: order.get(entry[0], 0))
        if key in order and (value is not None or key in reading.gaps)
    }


def _gpu_from_plain(plain: Mapping[str, Any], whole: bool = True) -> Gpu:
    """Build a GPU or, with `whole` false, a MIG instance, which has no instances itself."""
    values, gaps = _values(plain, GPU_METRICS)
    state = plain.get("state", "ok")
    return Gpu(
        values,
        gaps,
        state=state if state in STATES else "ok",
        since=_moment(plain.get("since")),
        processes=tuple(Process(*_values(process, PROCESS_METRICS)) for process in _objects(plain.get("processes"))),
        instances=tuple(_gpu_from_plain(part, False) for part in _objects(plain.get("instances"))) if whole else (),
    )


def _moment(plain: Any) -> float | None:
    try:
        return None if plain is None else parse_time(plain)
    except RecordingError:
        return None


def _values(plain: Mapping[str, Any], metrics: Mapping[str, Metric]) -> tuple[dict[str, Value], dict[str, Gap]]:
    values = {key: entry for key, entry in plain.items() if key in metrics}
    gaps: dict[str, Gap] = {}
    drop_implausible(values, gaps, metrics)
    stated = _mapping(plain.get("gaps"))
    # the list of processes is not a metric, but may be missing like one
    told = {key: gap for key, gap in stated.items() if gap in GAPS and (key in metrics or key == "processes")}
    return values, {**gaps, **{key: gap for key, gap in told.items() if key not in values}}


def _mapping(plain: Any) -> Mapping[str, Any]:
    return plain if isinstance(plain, dict) else {}


def _objects(plain: Any) -> list[Mapping[str, Any]]:
    return [entry for entry in plain[:_MOST_OBJECTS] if isinstance(entry, dict)] if isinstance(plain, list) else []


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
    values = {metric.key: _value_schema(metric) for metric in metrics}
    gaps = {"type": "object", "additionalProperties": {"enum": list(GAPS)}}
    return object_schema(values | {"gaps": gaps} | dict(more), required)


def object_schema(properties: Mapping[str, Any], required: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the schema of an object; without `required`, all properties are."""
    names = list(properties if required is None else required)
    return {"type": "object", "properties": dict(properties), "required": names}


def _value_schema(metric: Metric) -> dict[str, Any]:
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


_LONGEST = 40  # characters of a name
_SHOWN = 8  # GPUs listed in a snapshot


def printable(text: str, most: int = _LONGEST) -> str:
    """Return a text without control characters, cut to `most` characters."""
    kept = text if len(text) <= most else f"{text[: most - 1]}…"
    return "".join(char if char.isprintable() else "?" for char in kept)


def utc_text(seconds: float) -> str:
    """Return a time as 2026-11-15 18:00:00 UTC; the number itself where no calendar has it."""
    try:
        return clock.strftime("%Y-%m-%d %H:%M:%S UTC", clock.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return repr(seconds)


def snapshot_brief(snapshot: Snapshot) -> str:
    """Return <Snapshot TIME, N GPUs: state or utilization of each>."""
    count = len(snapshot.gpus)
    shown = ", ".join(_state(gpu) for gpu in snapshot.gpus[:_SHOWN])
    more = ", …" if count > _SHOWN else ""
    problems = f"; {_counted(len(snapshot.problems), 'problem')}" if snapshot.problems else ""
    listed = f": {shown}{more}" if count else ""
    return f"<Snapshot {utc_text(snapshot.time)}, {_counted(count, 'GPU')}{listed}{problems}>"


def gpu_brief(gpu: Gpu) -> str:
    """Return <Gpu INDEX NAME: utilization, memory, temperature, power, processes>."""
    who = f"Gpu {_number(gpu.index)} {printable(gpu.name or 'without a name')}"
    if gpu.state != "ok":
        return f"<{who}: {gpu.state}>"
    parts = [_state(gpu)] if gpu.utilization is not None else []
    if gpu.memory_used is not None:
        parts.append(_part(gpu.memory_used, gpu.memory_total))
    parts += [f"{gpu.temperature:.0f} °C"] if gpu.temperature is not None else []
    parts += [f"{gpu.power_draw:.0f} W"] if gpu.power_draw is not None else []
    parts += [_counted(len(gpu.instances), "MIG instance")] if gpu.instances else []
    count = sum(1 for _ in gpu.all_processes())
    parts += [_counted(count, "process", "processes")] if count else []
    return f"<{who}: {', '.join(parts)}>" if parts else f"<{who}>"


def process_brief(process: Process) -> str:
    """Return <Process PID NAME, user: GPU memory>."""
    user = f", {printable(process.user)}" if process.user else ""
    held = f": {size_text(process.memory_used)}" if process.memory_used is not None else ""
    return f"<Process {_number(process.pid)} {printable(process.name or '?')}{user}{held}>"


def host_brief(host: Host) -> str:
    """Return <Host NAME: CPU, memory>."""
    parts = [f"CPU {host.cpu_percent:.0f} %"] if host.cpu_percent is not None else []
    if host.memory_used is not None:
        parts.append(_part(host.memory_used, host.memory_total))
    return f"<Host {printable(host.name or '?')}{': ' if parts else ''}{', '.join(parts)}>"


def _state(gpu: Gpu) -> str:
    if gpu.state != "ok":
        return gpu.state
    return "?" if gpu.utilization is None else f"{gpu.utilization:.0f} %"


def _part(used: float, total: float | None) -> str:
    return size_text(used) if total is None else f"{size_text(used, total, unit=False)}/{size_text(total, total)}"


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.0f}"


def _counted(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"
