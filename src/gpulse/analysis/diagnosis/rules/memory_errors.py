"""memory_errors: memory errors that could not be corrected."""

from __future__ import annotations

from itertools import pairwise

from ..rule import DiagnosisRule, Span, Verdict, seen


def _judge(span: Span) -> Verdict | None:
    known = [value for value in span.gpu.columns["ecc_uncorrected"] if value is not None]
    errors = sum(max(0.0, later - earlier) for earlier, later in pairwise(known))
    if errors <= 0:
        return None
    return RULE.found(span, "high", [seen("ecc_uncorrected", errors)])


RULE = DiagnosisRule(
    "memory_errors", "fault", "window", _judge, needs=("ecc_uncorrected",), advice=("ecc", "kernel_log"),
    signature="The count of memory errors that could not be corrected rose.",
    blind="Errors before the first sample are in the count, but not told as new.",
    sources=("NVIDIA GPU memory error management guide",),
)  # fmt: skip
