"""thermal_throttled: the clocks were reduced because the GPU is too hot."""

from __future__ import annotations

from ..rule import DiagnosisRule, above, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Verdict
    from ..rule import Case

HEAT = ("sw_thermal_slowdown", "hw_thermal_slowdown")
LEAST = 0.01  # of the time


def _judge(case: Case) -> Verdict | None:
    load = case.load
    share = load.reasons_share(HEAT)
    if share is None or share < LEAST:
        return None
    limit = case.gpu.last("temperature_limit")
    hot = load.high("temperature")
    evidence = [
        above("throttled_share", 100 * share, 100 * LEAST),
        above("temperature", hot, limit)
        if limit is not None and hot is not None and hot >= limit
        else seen("temperature", hot),
        seen("clock_sm", load.mean("clock_sm")),
        seen("clock_sm_max", case.gpu.last("clock_sm_max")),
    ]
    return found(load, "thermal_throttled", "high", evidence, advice=RULE.advice, share=share)


RULE = DiagnosisRule(
    "thermal_throttled",
    "limit",
    "window",
    _judge,
    needs=("throttle_reasons",),
    signature=f"A thermal slowdown reason is set for {100 * LEAST:g} % of the workload or more.",
    blind="Slowdowns shorter than the sampling interval are seen only by chance. Memory temperature can cause it where the chip is cool.",
    sources=("NVML clocks event reasons",),
    advice=("cooling", "lower_power_limit"),
)
