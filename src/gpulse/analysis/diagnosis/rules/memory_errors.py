"""memory_errors: memory errors that could not be corrected."""

from __future__ import annotations

from itertools import pairwise

from ..rule import DiagnosisRule, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Verdict
    from ..rule import Case


def _judge(case: Case) -> Verdict | None:
    known = [value for value in case.gpu.columns["ecc_uncorrected"] if value is not None]
    errors = sum(max(0.0, later - earlier) for earlier, later in pairwise(known))
    if errors <= 0:
        return None
    return found(case.load, "memory_errors", "high", [seen("ecc_uncorrected", errors)], advice=RULE.advice)


RULE = DiagnosisRule(
    "memory_errors",
    "fault",
    "window",
    _judge,
    needs=("ecc_uncorrected",),
    signature="The count of memory errors that could not be corrected rose.",
    blind="Errors before the first sample are in the count, but not told as new.",
    sources=("NVIDIA GPU memory error management guide",),
    advice=("ecc", "kernel_log"),
)
