"""driver_unresponsive: the driver did not answer for this GPU in time."""

from __future__ import annotations

from ..rule import DiagnosisRule, Span, Verdict, seen


def _judge(span: Span) -> Verdict | None:
    gpu = span.gpu
    silent = [at for at, row in enumerate(gpu.rows) if row.state == "timeout"]
    if not silent:
        return None
    evidence = [seen("state_timeout", sum(gpu.weights[at] for at in silent))]
    return RULE.found(span, "high", evidence, kind="now" if gpu.rows[-1].state == "timeout" else "recovered")


RULE = DiagnosisRule(
    "driver_unresponsive", "fault", "window", _judge, needs=("state",), advice=("driver_hang", "kernel_log"),
    signature="A driver call about this GPU did not return within its deadline at one or more samples.",
    blind="Says that the driver hangs, not why: a failing GPU, a stuck process and an overloaded machine look the same.",
    sources=("gpulse's own deadline per driver call",),
)  # fmt: skip
