"""Figures and events as people read them."""

from __future__ import annotations

import time as clock

from ...present.cells import THROTTLE
from ...units import duration_text, size_text
from .document import MISSING, Raw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...analysis.events import Event
    from ...analysis.summary import GpuSummary
    from ...model.catalog import Process
    from ...sinks.base import Mark
    from .document import Cell

_STATES = {"lost": "was lost", "timeout": "stopped answering", "asleep": "fell asleep", "back": "answers again"}


def date_text(time: float) -> str:
    """Return a moment in UTC, to the second."""
    return clock.strftime("%Y-%m-%d %H:%M:%S UTC", clock.gmtime(time))


def clock_text(time: float) -> str:
    """Return the time of day in UTC."""
    return clock.strftime("%H:%M:%S", clock.gmtime(time))


def elapsed_text(seconds: float) -> str:
    """Return how far into a run: 0:07, 12:05, 3:20:00."""
    whole = int(max(0.0, seconds))
    hours, minutes, rest = whole // 3600, whole % 3600 // 60, whole % 60
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def time_text(seconds: float) -> str:
    """Return a duration: 0.4 s, 12 s, 12m05s."""
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s" if seconds < 60 else duration_text(seconds)


def energy_text(joules: float | None) -> str:
    """Return energy in kWh, or in Wh where that would be little."""
    if joules is None:
        return MISSING
    hours = joules / 3.6e6
    return f"{hours:,.{3 if hours < 10 else 1}f} kWh" if hours >= 0.1 else f"{hours * 1000:.3g} Wh"


def number(value: float | None, unit: str = "", digits: int = 0) -> str:
    """Return a number with its unit; a dash where there is none."""
    if value is None:
        return MISSING
    return f"{value:,.{digits}f}{f' {unit}' if unit else ''}"


def value_in(unit: str, value: float | None) -> str:
    """Return a value in the unit of a chart."""
    if value is None:
        return MISSING
    if unit in ("B", "B/s"):
        return size_text(value) + unit[1:]
    return f"{value:.0f} {unit}" if unit else f"{value:.3g}"


def reasons_text(reasons: Iterable[str]) -> Cell:
    """Return in words why clocks are held down."""
    words = list(reasons)
    if "hw_thermal_slowdown" in words or "hw_power_brake_slowdown" in words:
        words = [word for word in words if word != "hw_slowdown"]  # the bit that is set with either of them
    parts: list[str] = []
    for word in dict.fromkeys(THROTTLE.get(word, Raw(word)) for word in words):
        parts += [", ", word] if parts else [word]
    return tuple(parts)


def throttled_text(gpu: GpuSummary) -> Cell:
    """Return how long and why a GPU was held down."""
    if gpu.throttled_seconds < 1:
        return MISSING
    return (f"{duration_text(gpu.throttled_seconds)} (", *reasons_text(gpu.throttled), ")")


def gpus_text(labels: Sequence[str]) -> str:
    """Return numbers of GPUs, ranges where they follow: GPU 0, GPUs 0-3."""
    return f"GPU{'s' if len(labels) > 1 else ''} {ranges(labels)}"


def ranges(labels: Sequence[str]) -> str:
    """Return labels with a dash for three or more numbers in a row: 0-3, 7."""
    parts: list[list[str]] = []
    for label in labels:
        follows = parts and label.isdecimal() and parts[-1][-1].isdecimal() and int(label) == int(parts[-1][-1]) + 1
        if follows:
            parts[-1].append(label)
        else:
            parts.append([label])
    return ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 2 else ", ".join(part) for part in parts)


def event_text(event: Event, end: float) -> Cell:
    """Return an event as a sentence; `end` is when the run ended, for what goes on until then."""
    gpus = gpus_text(event.gpus)
    code = "" if event.value is None else f"{event.value:.0f}"
    if event.kind in _STATES:
        return f"{gpus} {_STATES[event.kind]}{f' (XID {code})' if code and event.kind == 'lost' else ''}"
    if event.kind == "throttled":
        lasted = "to the end" if event.until is None else f"for {time_text(max(1.0, event.until - event.time))}"
        return (f"{gpus} held down {lasted}: ", *reasons_text(event.reasons))
    if event.kind == "gap":
        return f"nothing recorded for {time_text((event.until or end) - event.time)}"
    if event.kind in ("added", "removed"):
        return f"{gpus} {'appeared' if event.kind == 'added' else 'is no longer there'}"
    if event.kind == "xid":
        return f"{gpus} reported XID {code}"
    if event.kind == "memory-errors":
        return f"{gpus}: {code} memory errors that could not be corrected"
    who = called(event.process)
    if event.kind == "out-of-memory":
        return (*who, f" ended on {gpus}, probably out of memory: it held {size_text(event.value or 0.0)}")
    return (*who, f" {'started' if event.kind == 'process-start' else 'ended'} on {gpus}")


def mark_text(mark: Mark) -> Cell:
    """Return what a program noted."""
    if mark.value is None:
        return ("mark ", Raw(mark.name))
    value = Raw(mark.value) if isinstance(mark.value, str) else f"{mark.value:g}"
    return ("mark ", Raw(mark.name), ": ", value)


def called(process: Process | None) -> tuple[str, ...]:
    """Return whose process it is and how it is called."""
    if process is None:
        return ("a process",)
    pid = () if process.pid is None else (f" (pid {process.pid:.0f})",)
    owner = (Raw(process.user), "'s ") if process.user else ()
    return (*owner, Raw(process.name or "process"), *pid)
