"""busy: kernels run all the time, and nothing says how well they use the chip."""

from __future__ import annotations

from ..rule import DiagnosisRule, Span, Verdict, above, facts, percent, seen

UTILIZATION = 80.0  # per cent


def _judge(span: Span) -> Verdict | None:
    busy, power = span.busy, span.power_share
    if span.detailed or busy is None or busy < UTILIZATION:
        return None
    evidence = [
        above("utilization", busy, UTILIZATION),
        seen("power_share", percent(power)),
        *facts(span, "memory_utilization", "cpu_main"),
    ]
    return RULE.found(span, "medium", evidence)


RULE = DiagnosisRule(
    "busy", "device", "phase", _judge, needs=("utilization",), advice=("check_tensor", "profile_kernel"),
    signature=f"Kernels run {UTILIZATION:.0f} % of the time or more on a GPU without activity counters.",
    blind="Whether tensor cores, FP32 pipes or memory are the limit, and whether kernels fill the chip, needs GPM (Hopper and later).",
    sources=("Trainy: GPU utilization is a misleading metric", "gpulse H200 traces with their counters taken out"),
)  # fmt: skip
