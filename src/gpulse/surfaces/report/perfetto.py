"""Files for other viewers: samples as a trace for ui.perfetto.dev, on the clock of torch's profiler, and stacks as flame graphs."""

from __future__ import annotations

import gzip
import json
from html import escape
from itertools import chain

from ...analysis.own_lines import flame_of, frame_name
from ...errors import GpulseError
from ...model.catalog import CURVES, GPU_METRICS, HOST_CURVES, HOST_METRICS
from ...present.cells import seconds_text
from ...present.text import clean
from ...present.words import product_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from ...analysis.own_lines import FlameNode
    from ...model.metric import Reading
    from ...model.stacks import Frame, TimedStack
    from .recorded_samples import RecordedSample

# torch's profiler (Kineto) counts microseconds from the last multiple of three average months since 1970, and says so in the file.
_QUARTER = 7_889_238
_GPULSE = 1 << 30  # process ids of our tracks; no real process has one as high
_LARGEST = 4 << 30  # bytes of a trace that are read


def perfetto(samples: Iterable[RecordedSample], traces: Sequence[str] = ()) -> Iterator[str]:
    """Yield the text of a trace of samples and of these traces of torch's profiler, on one clock; raise GpulseError if one is none."""
    read = [_profiled(path) for path in traces]
    bases = {base for base, _ in read}
    samples = iter(samples)
    first = next(samples, None)
    start = 0.0 if first is None else first.snapshot.time
    base = min(bases) if bases else int(start // _QUARTER) * _QUARTER * 1_000_000_000
    yield f'{{"schemaVersion":1,"displayTimeUnit":"ms","baseTimeNanoseconds":{base},"traceEvents":[\n'
    comma = ""
    for event in chain(_joined(read, base), _events(first, samples, base)):
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


def _events(first: RecordedSample | None, samples: Iterator[RecordedSample], base: int) -> Iterator[dict[str, Any]]:
    known: set[str] = set()
    before, phase, since = None, "", 0.0
    sample: RecordedSample | None = first
    while sample is not None:
        now = (sample.snapshot.time * 1e9 - base) / 1000
        # a share or a rate stands for the time since the sample before, a value read at one moment for the time after it
        earlier = now if before is None else before
        for at, gpu in enumerate(sample.snapshot.gpus):
            number = at if gpu.index is None else int(gpu.index)
            name = f"GPU {number} {clean(product_name(gpu.name or 'GPU'))}"
            yield from _named(known, _GPULSE + 1 + at, name, at)
            for key in CURVES:
                yield from _counter(_GPULSE + 1 + at, GPU_METRICS[key], gpu, now, earlier)
        yield from _named(known, _GPULSE, "gpulse: host and program", -1)
        for key in HOST_CURVES:
            yield from _counter(_GPULSE, HOST_METRICS[key], sample.snapshot.host, now, earlier)
        for tag, value in sample.values.items():
            yield {"ph": "C", "pid": _GPULSE, "name": clean(tag), "ts": earlier, "args": {"value": value}}
        for mark in sample.marks:
            text = clean(mark.name if mark.value is None else f"{mark.name} {mark.value}")
            yield {"ph": "i", "pid": _GPULSE, "tid": 2, "s": "g", "name": text, "ts": (mark.time * 1e9 - base) / 1000}
        if sample.phase != phase:
            yield from _phase(phase, since, now)
            phase, since = sample.phase, now
        before, sample = now, next(samples, None)
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


_ROW = 18  # pixels
_WIDTH = 1000
_THINNEST = 1.0  # pixels below which a box is left out
_LETTER = 6.6  # pixels


def folded(stacks: Sequence[TimedStack]) -> str:
    """Return one line per stack with the milliseconds in which the GPU waited, as flamegraph.pl and inferno read them."""
    rows: dict[str, float] = {}
    for stack, waited, _ in stacks:
        if name := ";".join(frame_name(frame).replace(";", ",") for frame in stack):
            rows[name] = rows.get(name, 0.0) + waited
    return "".join(f"{name} {1000 * waited:.0f}\n" for name, waited in rows.items() if waited >= 0.0005)


def speedscope(stacks: Sequence[TimedStack], title: str) -> str:
    """Return a profile for speedscope.app: seconds in which the GPU waited, and in which it computed."""
    numbers: dict[Frame, int] = {}
    for stack, _, _ in stacks:
        for frame in stack:
            numbers.setdefault(frame, len(numbers))
    profiles = []
    for name, place in (("GPU waited", 1), ("GPU computed", 2)):
        chosen = [one for one in stacks if one[0] and float(one[place]) > 0]  # type: ignore[arg-type]
        weights = [round(float(one[place]), 4) for one in chosen]  # type: ignore[arg-type]
        profiles.append(
            {
                "type": "sampled",
                "name": name,
                "unit": "seconds",
                "startValue": 0,
                "endValue": round(sum(weights), 4),
                "samples": [[numbers[frame] for frame in one[0]] for one in chosen],
                "weights": weights,
            }
        )
    frames = [{"name": frame_name(frame), "file": frame.file, "line": frame.line} for frame in numbers]
    plain = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "gpulse",
        "name": title,
        "shared": {"frames": frames},
        "profiles": profiles,
    }
    return json.dumps(plain, separators=(",", ":")) + "\n"


def flame_svg(stacks: Sequence[TimedStack]) -> str:
    """Return a flame graph of the GPU time that was lost, the outermost frames on top; empty where nothing was."""
    root = flame_of(stacks)
    if root.seconds <= 0:
        return ""
    boxes: list[str] = []
    depth = _draw(root, 0.0, 0, _WIDTH / root.seconds, boxes)
    height = _ROW * (depth + 1)
    label = f"Where the GPU waited, {seconds_text(root.seconds)} in all, by stack"
    return (
        f'<svg class="flame" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(label)}" '
        f'preserveAspectRatio="xMinYMin meet">{"".join(boxes)}</svg>'
    )


def _draw(node: FlameNode, x: float, depth: int, scale: float, boxes: list[str]) -> int:
    width = node.seconds * scale
    name = clean(node.name)
    room = int((width - 4) / _LETTER)
    shown = name if len(name) <= room else f"{name[: room - 1]}…" if room > 3 else ""
    text = f'<text x="{x + 3:.1f}" y="{depth * _ROW + 13}">{escape(shown)}</text>' if shown else ""
    boxes.append(
        f'<g class="{"own" if node.own else "library"}"><title>{escape(name)}: {seconds_text(node.seconds)}</title>'
        f'<rect x="{x:.1f}" y="{depth * _ROW}" width="{max(0.5, width - 0.5):.1f}" height="{_ROW - 1}"/>{text}</g>'
    )
    deepest = depth
    for inner in node.largest():
        if inner.seconds * scale >= _THINNEST:
            deepest = max(deepest, _draw(inner, x, depth + 1, scale, boxes))
        x += inner.seconds * scale
    return deepest
