"""Parts of sentences that only reports have."""

from __future__ import annotations

from ...present.cells import throttle_words
from ...present.quantities import DASH, number_text
from ...present.text import Untrusted
from ...units import duration_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...analysis.summary import GpuSummary
    from ...sinks.base import Mark
    from .document import Cell


def throttled_text(gpu: GpuSummary) -> Cell:
    """Return how long and why a GPU was throttled."""
    if gpu.throttled_seconds < 1:
        return DASH
    return (f"{duration_text(gpu.throttled_seconds)} (", *throttle_words(gpu.throttled), ")")


def mark_text(mark: Mark) -> Cell:
    """Return what a program noted."""
    if mark.value is None:
        return ("mark ", Untrusted(mark.name))
    value = Untrusted(mark.value) if isinstance(mark.value, str) else number_text(mark.value)
    return ("mark ", Untrusted(mark.name), ": ", value)
