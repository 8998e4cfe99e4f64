"""hw_slowdown: the hardware cut the clocks, for a reason other than heat."""

from __future__ import annotations

from ....model.condition import BRAKES, HEAT, POWER_BRAKE
from ..rule import DiagnosisRule, Span, Verdict, above, seen

LEAST = 0.01  # of the time


def _judge(span: Span) -> Verdict | None:
    share = span.reasons_share(BRAKES)
    if share is None or share < LEAST:
        return None
    brake = span.reasons_share((POWER_BRAKE,)) or 0.0
    if brake < LEAST and (span.reasons_share(HEAT) or 0.0) >= 0.5 * share:
        return None
    evidence = [
        above("throttled_share", 100 * share, 100 * LEAST),
        seen("throttle_reasons", (POWER_BRAKE,) if brake >= LEAST else ("hw_slowdown",)),
        seen("clock_sm", span.mean("clock_sm")),
        seen("clock_sm_max", span.gpu.last("clock_sm_max")),
    ]
    return RULE.found(span, "high", evidence, share=share)


RULE = DiagnosisRule(
    "hw_slowdown", "limit", "window", _judge, needs=("throttle_reasons",), advice=("power_cables", "kernel_log"),
    signature=(
        f"The hardware slowdown or power brake reason is set for {100 * LEAST:g} % of the workload or more, and heat "
        "does not explain it."
    ),
    blind="Slowdowns shorter than the sampling interval are seen only by chance.",
    sources=("NVML clocks event reasons", "leptonai gpud hardware-slowdown rule"),
)  # fmt: skip
