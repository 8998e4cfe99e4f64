"""hw_slowdown: the hardware cut the clocks, for a reason other than heat."""

from __future__ import annotations

from ..rule import DiagnosisRule, above, found, seen
from .thermal_throttled import HEAT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Verdict
    from ..rule import Case

LEAST = 0.01  # of the time
_REASONS = ("hw_slowdown", "hw_power_brake_slowdown")


def _judge(case: Case) -> Verdict | None:
    load = case.load
    share = load.reasons_share(_REASONS)
    if share is None or share < LEAST:
        return None
    brake = load.reasons_share(("hw_power_brake_slowdown",)) or 0.0
    if brake < LEAST and (load.reasons_share(HEAT) or 0.0) >= 0.5 * share:
        return None
    evidence = [
        above("throttled_share", 100 * share, 100 * LEAST),
        seen("throttle_reasons", ("hw_power_brake_slowdown",) if brake >= LEAST else ("hw_slowdown",)),
        seen("clock_sm", load.mean("clock_sm")),
        seen("clock_sm_max", case.gpu.last("clock_sm_max")),
    ]
    return found(load, "hw_slowdown", "high", evidence, advice=RULE.advice, share=share)


RULE = DiagnosisRule(
    "hw_slowdown",
    "limit",
    "window",
    _judge,
    needs=("throttle_reasons",),
    signature=(
        f"The hardware slowdown or power brake reason is set for {100 * LEAST:g} % of the workload or "
        f"more, and heat does not explain it."
    ),
    blind="Slowdowns shorter than the sampling interval are seen only by chance.",
    sources=("NVML clocks event reasons", "leptonai gpud hardware-slowdown rule"),
    advice=("power_cables", "kernel_log"),
)
