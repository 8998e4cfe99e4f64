"""Figures and events as people read them."""

from __future__ import annotations

import time as clock

from ...present.cells import throttle_words
from ...present.text import Untrusted
from ...units import duration_text, size_text
from .document import MISSING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...analysis.summary import GpuSummary
    from ...sinks.base import Mark
    from .document import Cell


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


def throttled_text(gpu: GpuSummary) -> Cell:
    """Return how long and why a GPU was throttled."""
    if gpu.throttled_seconds < 1:
        return MISSING
    return (f"{duration_text(gpu.throttled_seconds)} (", *throttle_words(gpu.throttled), ")")


def mark_text(mark: Mark) -> Cell:
    """Return what a program noted."""
    if mark.value is None:
        return ("mark ", Untrusted(mark.name))
    value = Untrusted(mark.value) if isinstance(mark.value, str) else f"{mark.value:g}"
    return ("mark ", Untrusted(mark.name), ": ", value)
