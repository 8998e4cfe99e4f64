"""hang: the GPUs of one job spin in a collective and none of them gets any work done."""

from __future__ import annotations

from ....model.catalog import LINK_TRAFFIC, PIPES
from ..rule import DiagnosisRule, Span, Verdict, above, below, percent, seen

SPINNING = 95.0  # per cent of utilization
POWER = 0.55  # of the limit
TENSOR = 1.0
DRAM = 4.0
TRAFFIC = 1e9  # bytes per second
_SHORTEST = 20.0  # seconds
_SURE = 120.0


def _judge(span: Span) -> Verdict | None:
    everyone = [span, *span.peers]
    if not span.peers or span.seconds < _SHORTEST or any(_works(one) for one in everyone):
        return None
    spinning = [one for one in everyone if _spins(one)]
    if not spinning or (len(spinning) < 2 and len(everyone) > 2):
        return None
    stuck, use = [one for one in everyone if one not in spinning], span.mean("utilization")
    evidence = [
        above("spinning_gpus", float(len(spinning)), 2.0) if len(spinning) >= 2 else seen("spinning_gpus", 1.0),
        above("utilization", use, SPINNING) if span in spinning else seen("utilization", use),
        below("tensor_active", span.mean("tensor_active"), TENSOR),
        below("dram_active", span.mean("dram_active"), DRAM),
        below("power_share", percent(span.power_share), 100 * POWER),
        above("window_seconds", span.seconds, _SHORTEST),
    ]
    indexes = tuple(float(one.gpu.index) for one in stuck if one.gpu.index is not None)
    return RULE.found(
        span,
        "high" if span.seconds >= _SURE and span.detailed else "medium" if span.detailed else "low",
        evidence,
        stuck=indexes,
        gpus=float(len(everyone)),
    )


def _spins(span: Span) -> bool:
    values, power = span.known("utilization"), span.power_share
    return bool(values) and min(values) >= SPINNING and (power is None or power < POWER)


def _works(span: Span) -> bool:
    """Tell whether a GPU computes or moves data."""
    if any((span.mean(key) or 0.0) >= TENSOR for key in PIPES) or (span.mean("dram_active") or 0.0) >= DRAM:
        return True
    if any((span.mean(key) or 0.0) >= TRAFFIC for key in LINK_TRAFFIC):
        return True
    return not span.detailed and (span.mean("memory_utilization") or 0.0) >= DRAM


RULE = DiagnosisRule(
    "hang", "fault", "job", _judge, needs=("utilization", "power_draw", "processes"),
    advice=("rank_stacks", "nccl_debug", "check_peers"),
    signature=(
        f"Of the GPUs of one job at least one, in a job of more than two at least two, read {SPINNING:.0f} % "
        f"utilization without a break at less than {100 * POWER:.0f} % of their power, and none computes or moves data, "
        f"for {_SHORTEST:.0f} s or more."
    ),
    blind=(
        "Needs GPUs of the same job on this machine. A kernel that polls on purpose looks the same; so does a job that "
        "waits for another node."
    ),
    sources=("stas00/ml-engineering: debugging multi-GPU hangs", "simulated: a stuck rank cannot be had on one GPU"),
)  # fmt: skip
