"""memory_latency: the SMs are occupied with warps that wait, and neither memory bandwidth nor any pipe is used much."""

from __future__ import annotations

from ....model.catalog import PIPES
from ..rule import DiagnosisRule, Span, Verdict, above, below, seen

SM = 60.0
OCCUPANCY = 15.0
FULL = 25.0
DRAM = 45.0
_MOST = dict.fromkeys(PIPES, FULL) | {"integer_active": 2 * FULL}


def _judge(span: Span) -> Verdict | None:
    sm, occupancy = span.mean("sm_active"), span.mean("sm_occupancy")
    if sm is None or sm < SM or not span.detailed or (occupancy is not None and occupancy < OCCUPANCY):
        return None
    pipes = {key: span.mean(key) or 0.0 for key in _MOST}
    dram = span.mean("dram_active") or 0.0
    worst = max(pipes, key=lambda key: pipes[key])
    if dram >= DRAM or any(pipes[key] >= most for key, most in _MOST.items()):
        return None
    certain = dram < 35 and pipes[worst] < 20 and (span.fill or 0.0) >= 0.8
    evidence = [
        above("sm_active", sm, SM),
        above("sm_occupancy", occupancy, OCCUPANCY),
        below("dram_active", dram, DRAM),
        below(worst, pipes[worst], _MOST[worst]),
        seen("power_draw", span.mean("power_draw")),
    ]
    return RULE.found(span, "high" if certain else "medium", evidence)


RULE = DiagnosisRule(
    "memory_latency", "device", "phase", _judge, needs=("sm_active", "sm_occupancy", "dram_active", "tensor_active"),
    advice=("sort_indices", "fuse_gathers", "profile_kernel"),
    signature=(
        f"SM activity is {SM:.0f} % or more and occupancy {OCCUPANCY:.0f} % or more, while DRAM stays below {DRAM:.0f} "
        f"% and every floating-point pipe below {FULL:.0f} %: warps wait for scattered loads, atomics or each other."
    ),
    blind="Random access, atomics, synchronization and long dependency chains look the same from outside; a profiler tells them apart.",
    sources=(
        "DCGM guide: active SMs include warps that wait for memory",
        "gpulse H200 recordings of embedding gathers",
    ),
)  # fmt: skip
