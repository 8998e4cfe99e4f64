"""memory_latency: the SMs are occupied with warps that wait, and neither memory bandwidth nor any pipe is used much."""

from __future__ import annotations

from ..rule import DiagnosisRule, above, below, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Confidence, Verdict
    from ..rule import Case

SM = 60.0
OCCUPANCY = 15.0
PIPES = 25.0
DRAM = 45.0


def _judge(case: Case) -> Verdict | None:
    load = case.load
    sm, occupancy = load.mean("sm_active"), load.mean("sm_occupancy")
    if sm is None or sm < SM or not load.detailed or (occupancy is not None and occupancy < OCCUPANCY):
        return None
    pipes = {
        key: load.mean(key) or 0.0
        for key in ("tensor_active", "fp32_active", "fp64_active", "fp16_active", "integer_active")
    }
    dram = load.mean("dram_active") or 0.0
    worst = max(pipes, key=lambda key: pipes[key])
    if (
        max(pipes["tensor_active"], pipes["fp32_active"], pipes["fp64_active"], pipes["fp16_active"]) >= PIPES
        or dram >= DRAM
    ):
        return None
    if pipes["integer_active"] >= 2 * PIPES:
        return None
    sure: Confidence = "high" if dram < 35 and pipes[worst] < 20 and (load.fill or 0.0) >= 0.8 else "medium"
    evidence = [
        above("sm_active", sm, SM),
        above("sm_occupancy", occupancy, OCCUPANCY),
        below("dram_active", dram, DRAM),
        below(worst, pipes[worst], PIPES if worst != "integer_active" else 2 * PIPES),
        seen("power_draw", load.mean("power_draw")),
    ]
    return found(load, "memory_latency", sure, evidence, advice=RULE.advice)


RULE = DiagnosisRule(
    "memory_latency",
    "device",
    "phase",
    _judge,
    needs=("sm_active", "sm_occupancy", "dram_active", "tensor_active"),
    signature=(
        f"SM activity is {SM:.0f} % or more and occupancy {OCCUPANCY:.0f} % or more, while DRAM stays "
        f"below {DRAM:.0f} % and every floating-point pipe below "
        f"{PIPES:.0f} %: warps wait for scattered loads, atomics or each other."
    ),
    blind="Random access, atomics, synchronization and long dependency chains look the same from outside; a profiler tells them apart.",
    sources=(
        "DCGM guide: active SMs include warps that wait for memory",
        "gpulse H200 recordings of embedding gathers",
    ),
    advice=("sort_indices", "fuse_gathers", "profile_kernel"),
)
