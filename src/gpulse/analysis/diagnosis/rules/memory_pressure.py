"""memory_pressure: nearly all of the memory is in use, and a larger allocation would fail."""

from __future__ import annotations

from ....model.serving import preallocates
from ...events import NEARLY_FULL
from ..rule import DiagnosisRule, Span, Verdict, above, seen


def _judge(span: Span) -> Verdict | None:
    share = span.memory_share
    if share is None or share < NEARLY_FULL or not span.worked:
        return None
    if any(preallocates(track.process) for track in span.tracks):
        return None
    evidence = [above("memory_percent", share, NEARLY_FULL), seen("memory_used", span.high("memory_used"))]
    return RULE.found(span, "high", evidence)


RULE = DiagnosisRule(
    "memory_pressure", "rest", "window", _judge, needs=("memory_used", "memory_total"),
    advice=("smaller_batch", "checkpointing", "expandable_segments"),
    signature=(
        f"At least {NEARLY_FULL:.0f} % of the memory was in use at the highest sample, by a program that does not "
        "reserve it all by design."
    ),
    blind="Peaks between two samples are missed. Frameworks that allocate a pool at the start are recognized only by their command line.",
    sources=("PyTorch profiler TensorBoard plugin (peak memory over 90 %)",),
)  # fmt: skip
