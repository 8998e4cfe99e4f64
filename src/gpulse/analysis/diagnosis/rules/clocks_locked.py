"""clocks_locked: the clock stays low under load and neither heat nor power explains it."""

from __future__ import annotations

from ....model.condition import BRAKES, HEAT
from ...readings import POWER_CAP
from ..rule import DiagnosisRule, Span, Verdict, above, below, percent, seen

BUSY = 60.0  # per cent of utilization of the samples that count
SLOW = 0.85  # of the highest clock
POWER = 0.80  # of the limit
_EXPLAINED = HEAT | BRAKES | {POWER_CAP}
_SET = ("applications_clocks_setting",)


def _judge(span: Span) -> Verdict | None:
    most = span.gpu.last("clock_sm_max")
    if not most:
        return None
    rows = span.gpu.rows[span.first : span.end]
    clocks = [
        clock
        for row, clock, use in zip(rows, span.values("clock_sm"), span.values("utilization"), strict=True)
        if clock is not None and use is not None and use >= BUSY and _EXPLAINED.isdisjoint(row.reasons or ())
    ]
    if len(clocks) < 3 or len(clocks) < 0.5 * len(rows):
        return None
    speed = sum(clocks) / len(clocks) / most
    power = span.power_share
    stated = span.reasons_share(_SET) or 0.0
    if speed >= SLOW or (power is not None and power >= POWER) or (power is None and stated < 0.5):
        return None  # without a power limit, as on a GB10, nothing tells a power cap from locked clocks
    evidence = [
        below("clock_share", 100 * speed, 100 * SLOW),
        seen("clock_sm", sum(clocks) / len(clocks)),
        seen("clock_sm_max", most),
        below("power_share", percent(power), 100 * POWER),
        above("applications_clocks", 100 * stated, 1.0) if stated >= 0.01 else None,
    ]
    return RULE.found(span, "high" if stated >= 0.5 else "medium", evidence)


RULE = DiagnosisRule(
    "clocks_locked", "limit", "window", _judge, needs=("clock_sm", "clock_sm_max", "utilization"),
    advice=("reset_clocks", "persistence_mode"),
    signature=(
        f"While utilization is {BUSY:.0f} % or more, the SM clock stays below {100 * SLOW:.0f} % of its maximum without "
        f"a thermal or power reason and with power below {100 * POWER:.0f} % of the limit."
    ),
    blind="Some boards advertise a maximum clock that only a single busy SM reaches; then this is harmless.",
    sources=("NVML clocks event reasons: applications clocks setting",),
)  # fmt: skip
