"""thermal_throttled: the clocks were reduced because the GPU is too hot."""

from __future__ import annotations

from ....model.condition import HEAT
from ..rule import DiagnosisRule, Span, Verdict, above, seen

LEAST = 0.01  # of the time


def _judge(span: Span) -> Verdict | None:
    share = span.reasons_share(HEAT)
    if share is None or share < LEAST:
        return None
    limit, hot = span.gpu.last("temperature_limit"), span.high("temperature")
    reached = limit is not None and hot is not None and hot >= limit
    evidence = [
        above("throttled_share", 100 * share, 100 * LEAST),
        above("temperature", hot, limit or 0.0) if reached else seen("temperature", hot),
        seen("clock_sm", span.mean("clock_sm")),
        seen("clock_sm_max", span.gpu.last("clock_sm_max")),
    ]
    return RULE.found(span, "high", evidence, share=share)


RULE = DiagnosisRule(
    "thermal_throttled", "limit", "window", _judge, needs=("throttle_reasons",),
    advice=("cooling", "lower_power_limit"),
    signature=f"A thermal slowdown reason is set for {100 * LEAST:g} % of the workload or more.",
    blind="Slowdowns shorter than the sampling interval are seen only by chance. Memory temperature can cause it where the chip is cool.",
    sources=("NVML clocks event reasons",),
)  # fmt: skip
