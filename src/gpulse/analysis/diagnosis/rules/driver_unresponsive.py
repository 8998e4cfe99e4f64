"""driver_unresponsive: the driver did not answer for this GPU in time."""

from __future__ import annotations

from ..outage import outage_of
from ..rule import DiagnosisRule, Span, Verdict, seen


def _judge(span: Span) -> Verdict | None:
    outage = outage_of(span.gpu, "timeout")
    if outage is None:
        return None
    kind = "now" if outage.end is None else "recovered"
    evidence = [seen("state_timeout", outage.seconds)]
    return RULE.found(span, "high", evidence, kind=kind, start_time=outage.start, end_time=outage.end)


RULE = DiagnosisRule(
    "driver_unresponsive", "fault", "window", _judge, needs=("state",), advice=("driver_hang", "kernel_log"),
    signature="A driver call about this GPU did not return within its deadline at one or more samples.",
    blind="Says that the driver hangs, not why: a failing GPU, a stuck process and an overloaded machine look the same.",
    sources=("gpulse's own deadline per driver call",),
)  # fmt: skip
