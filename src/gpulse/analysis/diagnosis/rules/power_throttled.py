"""power_throttled: a lowered power limit, or a very low clock under it, slows the GPU down."""

from __future__ import annotations

from ..rule import DiagnosisRule, Span, Verdict, above, below, seen

CAPPED = 0.10  # of the time at the power cap
LOWERED = 0.95  # of the default limit
SLOW = 0.60  # of the highest clock


def _judge(span: Span) -> Verdict | None:
    share = span.reasons_share(("sw_power_cap",))
    limit, default = span.mean("power_limit"), span.mean("power_default_limit")
    clock, most = span.mean("clock_sm"), span.gpu.last("clock_sm_max")
    lowered = limit is not None and default is not None and limit < LOWERED * default
    speed = 1.0 if clock is None or not most else clock / most
    if share is None or share < CAPPED or not (lowered or speed < SLOW):
        return None
    evidence = [
        above("power_capped_share", 100 * share, 100 * CAPPED),
        below("power_limit", limit, LOWERED * (default or 0.0)) if lowered else seen("power_limit", limit),
        seen("power_draw", span.mean("power_draw")),
        below("clock_share", 100 * speed, 100 * SLOW) if speed < SLOW else seen("clock_sm", clock),
    ]
    return RULE.found(span, "high", evidence, share=share)


RULE = DiagnosisRule(
    "power_throttled", "limit", "window", _judge, needs=("throttle_reasons", "power_limit", "power_default_limit"),
    advice=("raise_power_limit",),
    signature=(
        f"The power cap holds the clocks down for {100 * CAPPED:.0f} % of the workload or more, and the limit is below "
        f"{100 * LOWERED:.0f} % of the board's default or the clock below {100 * SLOW:.0f} % of its maximum."
    ),
    blind="A GPU at its default limit under full load is capped too; that is how it should run, and no finding.",
    sources=(
        "NVML clocks event reasons",
        "gpulse H200 traces: 690 of 700 W at 1500 of 1980 MHz is normal for bf16 products",
    ),
)  # fmt: skip
