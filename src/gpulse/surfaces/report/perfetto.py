"""Samples as a trace in Chrome's JSON format, for ui.perfetto.dev: counters, phases and marks, on the clock of torch's profiler."""

from __future__ import annotations

import gzip
import json

from ...errors import GpulseError
from ...model.catalog import GPU_METRICS, HOST_METRICS
from ...model.presets import CURVES, HOST_CURVES
from ...present.text import clean
from ...present.words import product_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from ...model.metric import Reading
    from .recorded_samples import RecordedSample

# torch's profiler (Kineto) counts microseconds from the last multiple of three average months since 1970, and says so in the file.
_QUARTER = 7_889_238
_GPULSE = 1 << 30  # process ids of our tracks; no real process has one as high
_LARGEST = 4 << 30  # bytes of a trace that are read


def perfetto(moments: Iterable[RecordedSample], traces: Sequence[str] = ()) -> Iterator[str]:
    """Yield the text of a trace of samples and of these traces of torch's profiler, on one clock; raise GpulseError if one is none."""
    read = [_profiled(path) for path in traces]
    bases = {base for base, _ in read}
    moments = iter(moments)
    first = next(moments, None)
    start = 0.0 if first is None else first.snapshot.time
    base = min(bases) if bases else int(start // _QUARTER) * _QUARTER * 1_000_000_000
    yield f'{{"schemaVersion":1,"displayTimeUnit":"ms","baseTimeNanoseconds":{base},"traceEvents":[\n'
    comma = ""
    for event in (*_joined(read, base), *_events(first, moments, base)):
        yield f"{comma}{json.dumps(event, separators=(',', ':'), allow_nan=False)}"
        comma = ",\n"
    yield "\n]}\n"


def _joined(read: Sequence[tuple[int, list[dict[str, Any]]]], base: int) -> Iterator[dict[str, Any]]:
    for own, events in read:
        for event in events:
            if isinstance(event.get("ts"), (int, float)) and own != base:
                event = event | {"ts": event["ts"] + (own - base) / 1000}
            yield event


def _profiled(path: str) -> tuple[int, list[dict[str, Any]]]:
    """Return the base of a trace's clock in nanoseconds since 1970, and its events."""
    try:
        with open(path, "rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if packed else open(path, "rb") as file:
            plain = json.loads(file.read(_LARGEST))
    except (OSError, EOFError) as error:
        raise GpulseError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    except (ValueError, RecursionError):
        plain = None
    events = plain.get("traceEvents") if isinstance(plain, dict) else None
    if not isinstance(plain, dict) or not isinstance(events, list):
        raise GpulseError(f"{path} is not a trace of torch's profiler.", "Name a file that `gpulse trace` has written.")
    base = plain.get("baseTimeNanoseconds", 0)  # none before torch 2.4: since 1970
    return base if isinstance(base, int) else 0, [event for event in events if isinstance(event, dict)]


def _events(first: RecordedSample | None, moments: Iterator[RecordedSample], base: int) -> Iterator[dict[str, Any]]:
    known: set[str] = set()
    before, phase, since = None, "", 0.0
    moment: RecordedSample | None = first
    while moment is not None:
        now = (moment.snapshot.time * 1e9 - base) / 1000
        # a share or a rate stands for the time since the sample before, a value read at one moment for the time after it
        earlier = now if before is None else before
        for at, gpu in enumerate(moment.snapshot.gpus):
            number = at if gpu.index is None else int(gpu.index)
            name = f"GPU {number} {clean(product_name(gpu.name or 'GPU'))}"
            yield from _named(known, _GPULSE + 1 + at, name, at)
            for key in CURVES:
                yield from _counter(_GPULSE + 1 + at, GPU_METRICS[key], gpu, now, earlier)
        yield from _named(known, _GPULSE, "gpulse: host and program", -1)
        for key in HOST_CURVES:
            yield from _counter(_GPULSE, HOST_METRICS[key], moment.snapshot.host, now, earlier)
        for tag, value in moment.values.items():
            yield {"ph": "C", "pid": _GPULSE, "name": clean(tag), "ts": earlier, "args": {"value": value}}
        for mark in moment.marks:
            text = clean(mark.name if mark.value is None else f"{mark.name} {mark.value}")
            yield {"ph": "i", "pid": _GPULSE, "tid": 2, "s": "g", "name": text, "ts": (mark.time * 1e9 - base) / 1000}
        if moment.phase != phase:
            yield from _phase(phase, since, now)
            phase, since = moment.phase, now
        before, moment = now, next(moments, None)
    if before is not None:
        yield from _phase(phase, since, before)


def _named(known: set[str], pid: int, name: str, order: int) -> Iterator[dict[str, Any]]:
    if name not in known:
        known.add(name)
        yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}
        yield {"ph": "M", "pid": pid, "name": "process_sort_index", "args": {"sort_index": order - 1000}}
        if pid == _GPULSE:
            for thread, title in ((1, "phases"), (2, "marks")):
                yield {"ph": "M", "pid": pid, "tid": thread, "name": "thread_name", "args": {"name": title}}


def _counter(pid: int, metric: Any, reading: Reading, now: float, earlier: float) -> Iterator[dict[str, Any]]:
    value = reading.get(metric.key)
    if isinstance(value, (int, float)):
        unit = metric.unit.symbol or "value"
        yield {
            "ph": "C",
            "pid": pid,
            "name": metric.title,
            "ts": earlier if metric.window else now,
            "args": {unit: value},
        }


def _phase(name: str, since: float, until: float) -> Iterator[dict[str, Any]]:
    if name:
        yield {"ph": "X", "pid": _GPULSE, "tid": 1, "name": clean(name), "ts": since, "dur": max(0.0, until - since)}
